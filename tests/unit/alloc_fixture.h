#ifndef FL_TEST_ALLOC_FIXTURE_H
#define FL_TEST_ALLOC_FIXTURE_H
/*
 * What the tests of memory put behind fl_alloc_hook: an allocator that fails where it is told to,
 * and one that counts bytes.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define FL_BASE_INTERNAL /* the hooks themselves call libc */
#include "base/alloc.h"

struct hook {
    unsigned long n, fail_at; /* 0: never */
    bool for_good;            /* and all that follow */
    long live;                /* blocks */
};

static inline void *counted(void *ctx, void *p, size_t n)
{
    struct hook *h = ctx;

    if (n == 0) {
        h->live -= p != NULL;
        free(p);
        return NULL;
    }
    h->n++;
    if (h->fail_at && (h->n == h->fail_at || (h->for_good && h->n > h->fail_at)))
        return NULL;
    h->live += p == NULL;
    return realloc(p, n);
}

struct bytes {
    size_t live, top;
};

static inline void *counted_bytes(void *ctx, void *p, size_t n)
{
    struct bytes *b = ctx;
    void *q = NULL;

    b->live -= p ? malloc_usable_size(p) : 0;
    if (n == 0)
        free(p);
    else
        q = realloc(p, n);
    b->live += q ? malloc_usable_size(q) : 0;
    b->top = b->live > b->top ? b->live : b->top;
    return q;
}

#endif
