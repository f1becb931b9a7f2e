#ifndef FL_LLM_SSE_H
#define FL_LLM_SSE_H
/*
 * Server-sent events, as they arrive in pieces cut anywhere.
 */
#include "base/buf.h"
#include "base/err.h"

struct fl_sse {
    fl_buf line, data; /* unfinished */
    bool after_cr, begun, has_data, is_error;
    /* One event's data, its lines joined by \n. `failed`: it came as an error, not as data. A
     * negative code ends the feed with it. */
    int (*on_event)(void *ctx, bool failed, fl_str data, fl_err *err);
    void *ctx;
};

void fl_sse_init(struct fl_sse *s, int (*on_event)(void *, bool, fl_str, fl_err *), void *ctx);
void fl_sse_dispose(struct fl_sse *s);
/* FL_ELIMIT when a line or an event is larger than 1 MiB. O(n). */
int fl_sse_feed(struct fl_sse *s, fl_str bytes, fl_err *err);
/* The stream is over: what stands in an event without its closing empty line is delivered. */
int fl_sse_end(struct fl_sse *s, fl_err *err);

#endif
