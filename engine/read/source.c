/*
 * The lowest flows: a descriptor, and a look at the first bytes.
 *
 * A descriptor is read with read(2), never mapped: a log that is truncated while we look must cost
 * its tail, not the process. Interrupted calls are repeated, short reads are normal, a
 * non-blocking stdin is waited for. A file that grows is read to its end as it is then, but no
 * further than 1 GiB past its size at the start, so that a log that is fed with our own output
 * ends.
 */
#include "read/flow.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define GROWTH_MAX (1LL << 30)

void fl_note_set(struct fl_note *n, const char *fmt, ...)
{
    va_list ap;

    if (n->text[0])
        return;
    va_start(ap, fmt);
    vsnprintf(n->text, sizeof(n->text), fmt, ap);
    va_end(ap);
}

void fl_flow_close(fl_flow *top)
{
    while (top) {
        fl_flow *below = top->below;
        top->close(top);
        top = below;
    }
}

ptrdiff_t fl_flow_fill(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    size_t got = 0;

    while (got < n) {
        ptrdiff_t r = fl_flow_read(f, dst + got, n - got, err);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ptrdiff_t)got;
}

struct fd_flow {
    fl_flow flow;
    struct fl_fd_opts o;
    int64_t at;
    bool ended;
};

static ssize_t plain_read(void *ctx, int fd, void *buf, size_t n)
{
    (void)ctx;
    return read(fd, buf, n);
}

static void fd_end(struct fd_flow *d)
{
    d->ended = true;
    if (d->o.size >= 0 && d->at < d->o.size)
        fl_note_set(d->flow.note, "it was truncated while it was read: %lld of %lld bytes",
                    (long long)d->at, (long long)d->o.size);
    else if (d->o.size > 0 && d->at > d->o.size)
        fl_note_set(d->flow.note, "it grew while it was read: %lld bytes, %lld at the start",
                    (long long)d->at, (long long)d->o.size);
}

static ptrdiff_t fd_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    struct fd_flow *d = (struct fd_flow *)f;
    ssize_t r;

    if (d->ended)
        return 0;
    if (d->o.size > 0 && d->at >= d->o.size + GROWTH_MAX) {
        fd_end(d);
        return 0;
    }
    while ((r = d->o.read(d->o.read_ctx, d->o.fd, dst, n)) < 0) {
        struct pollfd p = {.fd = d->o.fd, .events = POLLIN};
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            break;
        poll(&p, 1, -1);
    }
    if (r < 0) {
        d->ended = true;
        if (d->at == 0)
            return fl_fail(err, FL_EIO, "%s", strerror(errno));
        fl_note_set(f->note, "reading stopped after %lld bytes: %s", (long long)d->at,
                    strerror(errno));
        return 0;
    }
    if (r == 0) {
        fd_end(d);
        return 0;
    }
    d->at += r;
    *d->o.total += (uint64_t)r;
    return r;
}

static void fd_close(fl_flow *f)
{
    struct fd_flow *d = (struct fd_flow *)f;

    if (d->o.own)
        close(d->o.fd);
    fl_free(d);
}

int fl_flow_fd(const struct fl_fd_opts *o, struct fl_note *note, fl_flow **out, fl_err *err)
{
    struct fd_flow *d = fl_calloc(1, sizeof(*d));

    if (!d)
        return fl_fail_nomem(err);
    d->flow = (fl_flow){fd_read, fd_close, NULL, note};
    d->o = *o;
    if (!d->o.read)
        d->o.read = plain_read;
    *out = &d->flow;
    return FL_OK;
}

struct peek_flow {
    fl_flow flow;
    size_t at, n;
    bool looked;
    char head[FL_HEAD];
};

static ptrdiff_t peek_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    struct peek_flow *p = (struct peek_flow *)f;
    size_t left = p->n - p->at;

    if (left == 0)
        return fl_flow_read(f->below, dst, n, err);
    if (n > left)
        n = left;
    memcpy(dst, p->head + p->at, n);
    p->at += n;
    return (ptrdiff_t)n;
}

static void free_flow(fl_flow *f)
{
    fl_free(f);
}

int fl_flow_peek(fl_flow *below, fl_flow **out, fl_err *err)
{
    struct peek_flow *p = fl_calloc(1, sizeof(*p));

    if (!p)
        return fl_fail_nomem(err);
    p->flow = (fl_flow){peek_read, free_flow, below, below->note};
    *out = &p->flow;
    return FL_OK;
}

int fl_flow_head(fl_flow *peek, fl_str *head, fl_err *err)
{
    struct peek_flow *p = (struct peek_flow *)peek;
    ptrdiff_t r;

    if (!p->looked) {
        r = fl_flow_fill(peek->below, p->head, sizeof(p->head), err);
        if (r < 0)
            return (int)r;
        p->n = (size_t)r;
        p->looked = true;
    }
    *head = fl_str_n(p->head + p->at, p->n - p->at);
    return FL_OK;
}

void fl_flow_skip(fl_flow *peek, size_t skip)
{
    struct peek_flow *p = (struct peek_flow *)peek;

    p->at += skip < p->n - p->at ? skip : p->n - p->at;
}
