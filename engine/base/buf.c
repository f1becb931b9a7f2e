/*
 * The capped buffer.
 *
 * Every text that is built from a log has a maximum, because a log can be made to ask for any
 * amount. Reaching it is sticky and silent here and loud at fl_buf_check(): what was appended
 * before stays, what comes after is dropped whole, so a text is never cut inside an append.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

void fl_buf_init(fl_buf *b, size_t max)
{
    *b = (fl_buf){.max = max};
}

void fl_buf_dispose(fl_buf *b)
{
    if (!b)
        return;
    fl_free(b->p);
    *b = (fl_buf){.max = b->max};
}

char *fl_buf_room(fl_buf *b, size_t n)
{
    size_t cap = b->cap;

    if (b->bad)
        return NULL;
    if (n > b->max - b->n) {
        b->bad = FL_ELIMIT;
        return NULL;
    }
    if (fl_grow((void **)&b->p, &cap, b->n + n + 1, 1)) {
        b->bad = FL_ENOMEM;
        return NULL;
    }
    b->cap = cap;
    return b->p + b->n;
}

void fl_buf_add(fl_buf *b, fl_str s)
{
    char *at = fl_buf_room(b, s.n);

    if (!at)
        return;
    if (s.n)
        memcpy(at, s.p, s.n);
    b->n += s.n;
    b->p[b->n] = 0;
}

void fl_buf_addz(fl_buf *b, const char *z)
{
    fl_buf_add(b, fl_str_c(z));
}

void fl_buf_addc(fl_buf *b, char c)
{
    fl_buf_add(b, fl_str_n(&c, 1));
}

void fl_buf_addf(fl_buf *b, const char *fmt, ...)
{
    va_list ap;
    char *at;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    at = n < 0 ? NULL : fl_buf_room(b, (size_t)n);
    if (!at)
        return;
    va_start(ap, fmt);
    vsnprintf(at, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void fl_buf_cut(fl_buf *b, size_t n)
{
    if (n < b->n) {
        b->n = n;
        b->p[n] = 0;
    }
}

int fl_buf_check(const fl_buf *b, const char *what, fl_err *err)
{
    if (b->bad == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (b->bad)
        return fl_fail(err, FL_ELIMIT, "%s is larger than %zu bytes", what, b->max);
    return FL_OK;
}

char *fl_buf_take(fl_buf *b)
{
    char *p;

    if (b->bad || (!b->p && !fl_buf_room(b, 0)))
        return NULL;
    p = b->p;
    p[b->n] = 0;
    *b = (fl_buf){.max = b->max};
    return p;
}
