/*
 * The allocator hook.
 *
 * One indirect call in front of realloc(). Tests put a hook here that fails the Nth allocation;
 * everything that allocates in one diagnosis passes through, the libraries with an allocator
 * interface included. Vectorscan, PCRE2, cJSON and zlib get these functions where their room is
 * set up.
 */
#define FL_BASE_INTERNAL
#include "base/alloc.h"

#include <stdlib.h>

#include "base/err.h"

static void *plain(void *ctx, void *p, size_t n)
{
    (void)ctx;
    if (n == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, n);
}

static fl_realloc_fn hook = plain;
static void *hook_ctx;

void fl_alloc_hook(fl_realloc_fn fn, void *ctx)
{
    hook = fn ? fn : plain;
    hook_ctx = ctx;
}

void *fl_malloc(size_t n)
{
    return hook(hook_ctx, NULL, n ? n : 1);
}

void *fl_calloc(size_t count, size_t size)
{
    void *p;

    if (size && count > SIZE_MAX / size)
        return NULL;
    p = fl_malloc(count * size);
    if (p)
        memset(p, 0, count * size);
    return p;
}

void *fl_realloc(void *p, size_t n)
{
    return hook(hook_ctx, p, n ? n : 1);
}

void fl_free(void *p)
{
    if (p)
        hook(hook_ctx, p, 0);
}

char *fl_strdup_s(fl_str s)
{
    char *z = fl_malloc(s.n + 1);

    if (!z)
        return NULL;
    if (s.n)
        memcpy(z, s.p, s.n);
    z[s.n] = 0;
    return z;
}

int fl_grow(void **p, size_t *cap, size_t want, size_t size)
{
    size_t next = *cap;
    void *q;

    if (want <= *cap)
        return FL_OK;
    while (next < want)
        next += next / 2 + 8;
    if (next > SIZE_MAX / size)
        return FL_ENOMEM;
    q = fl_realloc(*p, next * size);
    if (!q)
        return FL_ENOMEM;
    *p = q;
    *cap = next;
    return FL_OK;
}
