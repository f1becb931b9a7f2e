/*
 * Server-sent events.
 *
 * The format is small: lines, a field name, a colon, a value; an empty line ends an event. What
 * breaks readers is where the pieces are cut (inside a UTF-8 sequence, between CR and LF, one byte
 * at a time), so lines are put together first and looked at when they are whole. Comments keep a
 * connection awake and are passed over, as are the fields id, event and retry: chat servers say all
 * they mean in data. Two liberties are taken: an `error:` field, with which older llama.cpp servers
 * report a failure in mid-stream, is delivered as one, and an event that the server did not close
 * before it hung up is delivered too, since several leave out the last empty line.
 */
#include "llm/sse.h"

#include "base/alloc.h"

#define MAX_EVENT (1u << 20)

void fl_sse_init(struct fl_sse *s, int (*on_event)(void *, bool, fl_str, fl_err *), void *ctx)
{
    memset(s, 0, sizeof(*s));
    fl_buf_init(&s->line, MAX_EVENT);
    fl_buf_init(&s->data, MAX_EVENT);
    s->on_event = on_event;
    s->ctx = ctx;
}

void fl_sse_dispose(struct fl_sse *s)
{
    fl_buf_dispose(&s->line);
    fl_buf_dispose(&s->data);
}

static int dispatch(struct fl_sse *s, fl_err *err)
{
    int r = FL_OK;

    if (s->has_data)
        r = s->on_event(s->ctx, s->is_error, fl_buf_str(&s->data), err);
    fl_buf_clear(&s->data);
    s->has_data = s->is_error = false;
    return r < 0 ? r : FL_OK;
}

static int take_line(struct fl_sse *s, fl_str line, fl_err *err)
{
    fl_str name;

    if (!s->begun && fl_str_starts(line, FL_S("\xef\xbb\xbf")))
        line = fl_str_from(line, 3);
    s->begun = true;
    if (!line.n)
        return dispatch(s, err);
    name = fl_str_cut(&line, ':'); /* a comment's name is empty */
    if (line.n && line.p[0] == ' ')
        line = fl_str_from(line, 1);
    if (!fl_str_eqz(name, "data") && !fl_str_eqz(name, "error"))
        return FL_OK;
    if (s->has_data)
        fl_buf_addc(&s->data, '\n');
    fl_buf_add(&s->data, line);
    s->has_data = true;
    s->is_error = s->is_error || name.n == 5;
    return fl_buf_check(&s->data, "an event of the server's stream", err);
}

static int end_line(struct fl_sse *s, fl_str rest, fl_err *err)
{
    int r;

    if (!s->line.n)
        return take_line(s, rest, err);
    fl_buf_add(&s->line, rest);
    r = fl_buf_check(&s->line, "a line of the server's stream", err);
    if (!r)
        r = take_line(s, fl_buf_str(&s->line), err);
    fl_buf_clear(&s->line);
    return r;
}

int fl_sse_feed(struct fl_sse *s, fl_str bytes, fl_err *err)
{
    size_t start = 0;

    for (size_t i = 0; i < bytes.n; i++) {
        int r;
        char c = bytes.p[i];
        if (s->after_cr && c == '\n') { /* the second half of a CRLF */
            s->after_cr = false;
            start = i + 1;
            continue;
        }
        s->after_cr = c == '\r';
        if (c != '\n' && c != '\r')
            continue;
        r = end_line(s, fl_str_sub(bytes, start, i - start), err);
        if (r)
            return r;
        start = i + 1;
    }
    fl_buf_add(&s->line, fl_str_from(bytes, start));
    return fl_buf_check(&s->line, "a line of the server's stream", err);
}

int fl_sse_end(struct fl_sse *s, fl_err *err)
{
    int r = FL_OK;

    if (s->line.n)
        r = end_line(s, FL_S(""), err);
    return r ? r : dispatch(s, err);
}
