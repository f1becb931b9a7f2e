#ifndef FL_LLM_PARTS_H
#define FL_LLM_PARTS_H
/*
 * Shared by the files of this room.
 */
#include "base/json.h"
#include "llm/chat.h"
#include "llm/extract.h"
#include "llm/sse.h"

/* What an endpoint does not understand, as far as it has been found out. */
struct fl_llm_habits {
    enum fl_llm_format format;
    bool no_temperature, completion_tokens, no_stream_options;
};

struct fl_llm {
    struct fl_llm_opts o;
    struct fl_llm_habits *habits; /* one an endpoint */
};

/* ---- endpoint.c ---- */

/* A request to `path` (such as "/chat/completions") of an endpoint, with its key. */
struct fl_llm_call {
    struct fl_http_request rq;
    struct fl_http_header headers[40];
    fl_buf url, key, note, body;
    bool has_key;
};
int fl_llm_call_init(struct fl_llm_call *call, const struct fl_llm_endpoint *e, const char *path,
                     fl_err *err);
void fl_llm_call_dispose(struct fl_llm_call *call);

/* ---- reply.c ---- */

/* A reply while it is read. */
struct fl_llm_reading {
    fl_buf *text;
    struct fl_llm_unthink show;
    bool showing; /* text goes through `show` as well */
    bool done;    /* [DONE] or a finish_reason came */
    bool refused;
    char model[128], finish[32];
    int64_t tokens_in, tokens_out;
};
/* A whole reply. */
int fl_llm_read_reply(struct fl_llm_reading *r, fl_str body, const char *shown, fl_err *err);
/* One event of a stream. */
int fl_llm_read_event(struct fl_llm_reading *r, bool failed, fl_str data, const char *shown,
                      fl_err *err);
/* The server's own words for an error, from any of the forms in use; appends nothing when there
 * are none. */
void fl_llm_error_words(fl_str body, fl_buf *out);
/* The sentence for an answer that is not 2xx, or that is no JSON although it is. */
int fl_llm_refusal(const struct fl_llm_endpoint *e, const struct fl_llm_call *call,
                   const struct fl_http_reply *reply, fl_err *err);
bool fl_llm_is_context_error(fl_str words);

/* ---- body.c ---- */

int fl_llm_body(const struct fl_llm_endpoint *e, const struct fl_llm_habits *h,
                const struct fl_llm_ask *ask, fl_buf *out, fl_err *err);
/* Whether what the server said against a request can be helped by leaving something out. */
bool fl_llm_adapt(struct fl_llm_habits *h, const struct fl_llm_ask *ask, int status, fl_str words);

#endif
