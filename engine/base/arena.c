/*
 * Arena: pages of 32 KiB, larger requests get a page of their own.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

#define PAGE 32768
#define ALIGN _Alignof(max_align_t)

struct fl_arena_page {
    struct fl_arena_page *older;
    max_align_t data[];
};

void fl_arena_init(fl_arena *a)
{
    *a = (fl_arena){0};
}

void fl_arena_dispose(fl_arena *a)
{
    struct fl_arena_page *p, *older;

    if (!a)
        return;
    for (p = a->page; p; p = older) {
        older = p->older;
        fl_free(p);
    }
    *a = (fl_arena){0};
}

void *fl_arena_alloc(fl_arena *a, size_t n)
{
    struct fl_arena_page *page;
    size_t size;
    void *out;

    if (n > SIZE_MAX / 2) {
        a->failed = true;
        return NULL;
    }
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->page || n > a->cap - a->used) {
        size = n > PAGE ? n : PAGE;
        page = fl_malloc(sizeof(*page) + size);
        if (!page) {
            a->failed = true;
            return NULL;
        }
        page->older = a->page;
        a->page = page;
        a->used = 0;
        a->cap = size;
    }
    out = (char *)a->page->data + a->used;
    a->used += n;
    a->total += n;
    memset(out, 0, n);
    return out;
}

fl_str fl_arena_str(fl_arena *a, fl_str s)
{
    char *p = fl_arena_alloc(a, s.n + 1);

    if (!p)
        return (fl_str){NULL, 0};
    if (s.n)
        memcpy(p, s.p, s.n);
    return (fl_str){p, s.n};
}

const char *fl_arena_z(fl_arena *a, fl_str s)
{
    return fl_arena_str(a, s).p;
}

const char *fl_arena_f(fl_arena *a, const char *fmt, ...)
{
    char small[256]; /* most texts are names, and need no second formatting */
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(small))
        return fl_arena_z(a, fl_str_n(small, (size_t)n));
    p = n < 0 ? NULL : fl_arena_alloc(a, (size_t)n + 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
