/*
 * UTF-16 as UTF-8, for logs that Windows tools or PowerShell redirections wrote.
 *
 * Only files with a byte order mark come here. A lone surrogate and a lone last byte become
 * U+FFFD: a damaged file must still give lines.
 */
#include "read/flow.h"

#include "base/alloc.h"

#define INPUT 8192

struct utf16_flow {
    fl_flow flow;
    bool big, ended;
    uint32_t high; /* a high surrogate that waits for its other half */
    size_t in_n, in_at, out_n, out_at;
    unsigned char in[INPUT];
    char out[INPUT * 2 + 16];
};

static void put(struct utf16_flow *u, uint32_t c)
{
    char *o = u->out + u->out_n;

    if (c < 0x80) {
        o[0] = (char)c;
        u->out_n += 1;
    } else if (c < 0x800) {
        o[0] = (char)(0xc0 | c >> 6);
        o[1] = (char)(0x80 | (c & 0x3f));
        u->out_n += 2;
    } else if (c < 0x10000) {
        o[0] = (char)(0xe0 | c >> 12);
        o[1] = (char)(0x80 | (c >> 6 & 0x3f));
        o[2] = (char)(0x80 | (c & 0x3f));
        u->out_n += 3;
    } else {
        o[0] = (char)(0xf0 | c >> 18);
        o[1] = (char)(0x80 | (c >> 12 & 0x3f));
        o[2] = (char)(0x80 | (c >> 6 & 0x3f));
        o[3] = (char)(0x80 | (c & 0x3f));
        u->out_n += 4;
    }
}

static void unit(struct utf16_flow *u, uint32_t c)
{
    if (u->high) {
        if (c >= 0xdc00 && c < 0xe000) {
            put(u, 0x10000 + ((u->high - 0xd800) << 10) + (c - 0xdc00));
            u->high = 0;
            return;
        }
        put(u, 0xfffd);
        u->high = 0;
    }
    if (c >= 0xd800 && c < 0xdc00)
        u->high = c;
    else
        put(u, c >= 0xdc00 && c < 0xe000 ? 0xfffd : c);
}

static int convert(struct utf16_flow *u, fl_err *err)
{
    size_t left = u->in_n - u->in_at;
    ptrdiff_t r;

    memmove(u->in, u->in + u->in_at, left);
    u->in_at = 0;
    r = fl_flow_read(u->flow.below, (char *)u->in + left, INPUT - left, err);
    if (r < 0)
        return (int)r;
    u->in_n = left + (size_t)r;
    u->out_n = u->out_at = 0;
    for (; u->in_at + 1 < u->in_n; u->in_at += 2) {
        uint32_t a = u->in[u->in_at], b = u->in[u->in_at + 1];
        unit(u, u->big ? a << 8 | b : b << 8 | a);
    }
    if (r == 0) {
        u->ended = true;
        if (u->high || left)
            put(u, 0xfffd);
    }
    return FL_OK;
}

static ptrdiff_t utf16_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    struct utf16_flow *u = (struct utf16_flow *)f;
    int r;

    while (u->out_at == u->out_n && !u->ended) {
        r = convert(u, err);
        if (r)
            return r;
    }
    if (n > u->out_n - u->out_at)
        n = u->out_n - u->out_at;
    memcpy(dst, u->out + u->out_at, n);
    u->out_at += n;
    return (ptrdiff_t)n;
}

static void utf16_close(fl_flow *f)
{
    fl_free(f);
}

int fl_flow_utf16(fl_flow *below, bool big_endian, fl_flow **out, fl_err *err)
{
    struct utf16_flow *u = fl_calloc(1, sizeof(*u));

    if (!u)
        return fl_fail_nomem(err);
    u->flow = (fl_flow){utf16_read, utf16_close, below, below->note};
    u->big = big_endian;
    *out = &u->flow;
    return FL_OK;
}
