/*
 * Any bytes as a stream of events, at once and in pieces whose sizes the input chooses: the events
 * must be the same, and what a chat stream makes of them must not depend on the cut either.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int on_event(void *ctx, bool failed, fl_str data, fl_err *err)
{
    (void)err;
    fl_buf_addc(ctx, failed ? '!' : '<');
    fl_buf_add(ctx, data);
    fl_buf_addc(ctx, '\0');
    return 0;
}

/* 0, or the code that ended it; pieces of `piece` bytes, or as many as the bytes themselves say. */
static int run(fl_str bytes, size_t piece, fl_buf *out)
{
    struct fl_sse s;
    fl_err err = {0};
    int r = 0;

    fl_sse_init(&s, on_event, out);
    while (bytes.n && !r) {
        size_t k = piece ? piece : (size_t)(1 + (bytes.p[0] & 15));
        r = fl_sse_feed(&s, fl_str_sub(bytes, 0, k), &err);
        bytes = fl_str_from(bytes, k);
    }
    if (!r)
        r = fl_sse_end(&s, &err);
    if (r && !err.msg[0])
        abort();
    fl_sse_dispose(&s);
    return r;
}

struct chat {
    struct fl_llm_reading r;
    fl_buf text;
};

static int on_chat(void *ctx, bool failed, fl_str data, fl_err *err)
{
    struct chat *c = ctx;

    return fl_llm_read_event(&c->r, failed, data, "s", err);
}

static int run_chat(fl_str bytes, size_t piece, struct chat *c)
{
    struct fl_sse s;
    fl_err err = {0};
    int r = 0;

    memset(c, 0, sizeof(*c));
    fl_buf_init(&c->text, 1 << 20);
    c->r.text = &c->text;
    fl_sse_init(&s, on_chat, c);
    for (; bytes.n && !r; bytes = fl_str_from(bytes, piece))
        r = fl_sse_feed(&s, fl_str_sub(bytes, 0, piece), &err);
    if (!r)
        r = fl_sse_end(&s, &err);
    fl_sse_dispose(&s);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const size_t pieces[] = {1, 3, 0};
    fl_str bytes = {(const char *)data, n};
    struct chat a, b;
    fl_buf whole, other;
    int r, s;

    fl_buf_init(&whole, 1 << 20);
    fl_buf_init(&other, 1 << 20);
    r = run(bytes, n ? n : 1, &whole);
    for (size_t i = 0; i < 3; i++) {
        fl_buf_clear(&other);
        s = run(bytes, pieces[i], &other);
        if (r != s || !fl_str_eq(fl_buf_str(&whole), fl_buf_str(&other)))
            abort();
    }
    r = run_chat(bytes, n ? n : 1, &a);
    s = run_chat(bytes, 2, &b);
    if (r != s || a.r.done != b.r.done || strcmp(a.r.finish, b.r.finish) != 0 ||
        !fl_str_eq(fl_buf_str(&a.text), fl_buf_str(&b.text)))
        abort();
    fl_buf_dispose(&a.text);
    fl_buf_dispose(&b.text);
    fl_buf_dispose(&whole);
    fl_buf_dispose(&other);
    return 0;
}
