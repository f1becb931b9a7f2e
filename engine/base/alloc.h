#ifndef FL_BASE_ALLOC_H
#define FL_BASE_ALLOC_H
/*
 * The one way to memory.
 *
 * All of Faultline allocates through these functions, and hands them to the libraries that take an
 * allocator. The hook is process-wide and set once, before anything is allocated: passing an
 * allocator through each call was tried on paper and cost a parameter everywhere for the sake of
 * one test. Outside base/ the libc names are poisoned at the end of this header.
 */
#include <stddef.h>

#include "base/str.h"

/* p == NULL allocates, n == 0 frees. Returns NULL on failure and leaves p as it was. */
typedef void *(*fl_realloc_fn)(void *ctx, void *p, size_t n);
void fl_alloc_hook(fl_realloc_fn fn, void *ctx);

void *fl_malloc(size_t n);                  /* NULL on failure; n == 0 gives one byte */
void *fl_calloc(size_t count, size_t size); /* zeroed; overflow of count*size gives NULL */
void *fl_realloc(void *p, size_t n);
void fl_free(void *p);       /* NULL is fine */
char *fl_strdup_s(fl_str s); /* NUL-terminated copy, owned by the caller; NULL on failure */

/*
 * Makes room for `want` elements of `size` bytes in the array *p, whose capacity in elements is
 * *cap; grows by half. 0, or FL_ENOMEM with both untouched. Amortised O(1) an element.
 *   if (fl_grow((void **)&v, &cap, n + 1, sizeof(*v))) ...
 */
int fl_grow(void **p, size_t *cap, size_t want, size_t size);

#ifndef FL_BASE_INTERNAL
#pragma GCC poison malloc calloc realloc strdup strndup asprintf
#endif

#endif
