#ifndef FL_LLM_CHAT_H
#define FL_LLM_CHAT_H
/*
 * Chat completions from any server that speaks OpenAI's protocol.
 *
 * A client has an ordered list of endpoints and asks one after the other until one answers. It
 * remembers for as long as it lives what each of them does not understand (json_schema, a
 * temperature, ...), so that it is found out once.
 */
#include <signal.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/yaml.h"
#include "http/http.h"
#include "llm/prompt.h"
#include "llm/verdict.h"

struct fl_llm_endpoint {
    const char *name; /* for people; NULL: the URL */
    const char *url;  /* up to /v1, or Azure's .../openai/deployments/NAME?api-version=... */
    const char *model;
    const char *api_key_file, *api_key_env; /* at most one; NULL: no key is sent */
    const char *api_version;                /* Azure's, when the URL has none */
    double connect_timeout, timeout;        /* seconds a request; 0: 10 and 120 */
    unsigned max_tokens;                    /* of an answer; 0: 2000 */
    unsigned context;                       /* tokens of prompt and answer; 0: unknown */
    const struct fl_http_header *extra_headers;
    size_t nextra_headers;
    const char *ca_file, *proxy;
    double price_in, price_out; /* of a million tokens; both 0: not known */
};

/*
 * Reads one item of llm.endpoints: the members above under their names, extra_headers a map of name
 * to value, prices as price_in and price_out. Unknown keys are errors, and so is a key in the file
 * itself. "~/" in a path is the home folder, and a relative path lies beside the configuration.
 * Strings live in the arena. All extra headers count as secrets.
 */
int fl_llm_endpoint_read(const fl_yaml *map, fl_arena *arena, struct fl_llm_endpoint *out,
                         fl_err *err);

/* Its name, or its URL without what is secret in it, for people: `out`, or a string of `e`. */
const char *fl_llm_endpoint_name(const struct fl_llm_endpoint *e, char out[300]);

struct fl_llm_opts {
    const struct fl_llm_endpoint *endpoints; /* kept by the caller, like all that they point to */
    size_t nendpoints;
    const struct fl_http_transport *transport; /* with its retries */
    const struct fl_http_world *world;         /* NULL: the real one */
    const volatile sig_atomic_t *cancel;       /* may be NULL */
    fl_prompt_count count;                     /* tokens; NULL: a quarter of the bytes */
    void *count_ctx;
};

typedef struct fl_llm fl_llm;
int fl_llm_new(const struct fl_llm_opts *opts, fl_llm **out, fl_err *err);
void fl_llm_free(fl_llm *c);
double fl_llm_now(const fl_llm *c); /* the clock that deadlines are measured on */
/* 64 random bits from the world's chance, for fences and recordings. */
uint64_t fl_llm_seed(const struct fl_http_world *world);

enum fl_llm_role { FL_LLM_SYSTEM, FL_LLM_USER, FL_LLM_ASSISTANT };
struct fl_llm_message {
    enum fl_llm_role role;
    fl_str text;
};

struct fl_llm_ask {
    const struct fl_llm_message *messages;
    size_t nmessages;
    fl_str schema;           /* of the answer; empty: free text */
    const char *schema_name; /* letters, digits, _ and -; NULL: "answer" */
    unsigned max_tokens;     /* 0: the endpoint's */
    double temperature;      /* below 0: the server's own */
    double deadline;         /* on fl_llm_now(); 0: none */
    int endpoint;            /* index of the only one to ask; below 0: all in order */
    /* When set, the answer is streamed: gets the text as it comes, without reasoning. A negative
     * value stops the answer. */
    int (*on_text)(void *ctx, fl_str text);
    void *ctx;
    const struct fl_prompt *prompt; /* its name goes into answer and recording; may be NULL */
};
#define FL_LLM_ASK_INIT                                                                            \
    {                                                                                              \
        .endpoint = -1                                                                             \
    }

enum fl_llm_format { FL_LLM_JSON_SCHEMA, FL_LLM_JSON_OBJECT, FL_LLM_PLAIN };
const char *fl_llm_format_word(enum fl_llm_format f); /* "json_schema", "json_object", "text" */

struct fl_llm_answer {
    fl_buf text;                   /* what the model said, reasoning included */
    size_t endpoint;               /* index */
    char url[300];                 /* shown form */
    char model[128];               /* as the server names it, else as it was asked for */
    char finish[32];               /* stop, length, content_filter, ...; "" when not told */
    char prompt[96];               /* "ID version N, hash H"; "" without one */
    int64_t tokens_in, tokens_out; /* -1: not told */
    double seconds, cost;          /* cost below 0: not known */
    enum fl_llm_format format;     /* that was asked for in the end */
    unsigned requests;             /* sent in all, to all endpoints */
    fl_buf failures; /* one line for each endpoint that did not answer before this one did */
};
void fl_llm_answer_init(struct fl_llm_answer *a);
void fl_llm_answer_dispose(struct fl_llm_answer *a);

/*
 * Asks. FL_EBACKEND when no endpoint gave a usable answer, FL_ELIMIT when the prompt is too long
 * for all; err then names each and what to do. A stream that breaks leaves what came in
 * answer->text, together with the error. `out` must be initialised and is filled anew.
 */
int fl_llm_chat(fl_llm *c, const struct fl_llm_ask *ask, struct fl_llm_answer *out, fl_err *err);

/* ---- an answer that names a cause ---- */

struct fl_llm_question {
    struct fl_llm_ask ask; /* messages of the rendered prompt; its schema with the terms put in */
    const struct fl_prompt *repair; /* its input is `complaints`; NULL: no second turn */
    const struct fl_llm_terms *terms;
    /* Looks at an answer of the right form: appends a line for each complaint and returns their
     * number, or a negative code. NULL: the form is all that matters. */
    int (*check)(void *ctx, const struct fl_said *v, fl_buf *complaints, fl_err *err);
    void *check_ctx;
};
struct fl_llm_verdict {
    struct fl_said verdict;
    struct fl_llm_answer answer; /* of the turn that is taken; tokens, cost and time of all turns */
    unsigned turns;              /* 1, or 2 with a repair */
    int complaints;              /* of `check` that the second turn did not mend */
    fl_buf complaint_text;       /* the last complaints, whether mended or not */
};
void fl_llm_verdict_init(struct fl_llm_verdict *v);
void fl_llm_verdict_dispose(struct fl_llm_verdict *v);
/* Asks, reads, and gives the model one turn to mend what was wrong. 0 when the answer has the right
 * form: complaints of `check` may be left. The verdict's strings live in the arena. */
int fl_llm_judge(fl_llm *c, const struct fl_llm_question *q, fl_arena *arena,
                 struct fl_llm_verdict *out, fl_err *err);

/* ---- a conversation ---- */

/*
 * Carries what was rendered (the digest among it) once, at its beginning, and the turns behind it.
 * When question, turns and answer would not fit into `room` tokens, the oldest turns are left out
 * of what is sent, never the beginning.
 */
typedef struct fl_llm_talk fl_llm_talk;
/* Copies `begin`, its messages in order. `room`: tokens of context; 0: 8192. */
int fl_llm_talk_new(const struct fl_llm_message *begin, size_t n, unsigned room, fl_llm_talk **out,
                    fl_err *err);
void fl_llm_talk_free(fl_llm_talk *t);
/*
 * Asks one question. `ask` has everything but the messages. On success question and answer (without
 * its reasoning) become a turn; an answer that was stopped or broke off is kept as far as it came,
 * since the person has read it. FL_ELIMIT when the question does not fit even without any turn.
 */
int fl_llm_talk_ask(fl_llm_talk *t, fl_llm *c, const struct fl_llm_ask *ask, fl_str question,
                    struct fl_llm_answer *out, fl_err *err);
size_t fl_llm_talk_turns(const fl_llm_talk *t);
/* Turns that the last question was asked without. */
size_t fl_llm_talk_left_out(const fl_llm_talk *t);

/* ---- looking at an endpoint ---- */

struct fl_llm_model {
    const char *id;
    int64_t context; /* tokens; -1: not told */
};
/* What GET /models lists; array and names in the arena. */
int fl_llm_models(fl_llm *c, size_t endpoint, double deadline, fl_arena *arena,
                  const struct fl_llm_model **out, size_t *n, fl_err *err);

enum fl_llm_state { FL_LLM_GOOD, FL_LLM_POOR, FL_LLM_BROKEN };
struct fl_llm_finding {
    enum fl_llm_state state;
    const char *text;   /* one sentence: what is so; of a broken one also what to do about it */
    const char *change; /* what to change; NULL: nothing, or it stands in the text */
};
/* Lists the models and sends one tiny request with a schema (`probe`, a prompt without inputs).
 * Findings in the arena, the most basic first, scrubbed of the endpoint's key; fails only for lack
 * of memory. `least_context`: tokens that a diagnosis needs. The list gets a part of the time until
 * the deadline, so that a server that hangs there can still answer. */
int fl_llm_probe(fl_llm *c, size_t endpoint, const struct fl_prompt *probe, unsigned least_context,
                 double deadline, fl_arena *arena, const struct fl_llm_finding **out, size_t *n,
                 fl_err *err);

/* ---- vectors ---- */

struct fl_llm_embed_opts {
    const struct fl_llm_endpoint *endpoint; /* its model's name goes into the request */
    const struct fl_http_transport *transport;
    const struct fl_http_world *world; /* NULL: the real one */
    const volatile sig_atomic_t *cancel;
    double deadline;
    unsigned dimensions; /* that must come; 0: whatever comes, the same for all */
    unsigned batch;      /* texts a request; 0: 32 */
};
/*
 * One vector a text, of length 1, in one array of n * *dimensions numbers that the caller frees
 * with fl_free. Texts must not be empty. A vector that is missing, twice there, of another
 * dimension, not finite or all zero is an error: no part of the result is used then.
 */
int fl_llm_embed(const struct fl_llm_embed_opts *o, const fl_str *texts, size_t n, float **out,
                 unsigned *dimensions, fl_err *err);

#endif
