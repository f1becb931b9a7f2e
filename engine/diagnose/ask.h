#ifndef FL_DIAGNOSE_ASK_H
#define FL_DIAGNOSE_ASK_H
/*
 * Asking a language model about a diagnosed job.
 *
 *   ask_config.c  the section `llm` of the configuration
 *   hide.c        names and secrets to placeholders, before anything is sent
 *   ask_prompt.c  what is sent: digest, neighbours, what the rules said, redacted
 *   ground.c      is what the model cites there, and can it carry a claim?
 *   prose.c       is a line somebody's opinion?
 *   ask.c         when to ask, and what becomes of the answer
 *   wire.c        the way to the endpoints
 *   doctor_llm.c  whether an endpoint would answer
 */
#include "base/yaml.h"
#include "diagnose/memory.h"
#include "diagnose/page.h"
#include "llm/chat.h"
#include "llm/record.h"
#include "redact/redact.h"

struct fl_ask_config {
    struct fl_llm_endpoint *endpoints;
    size_t n;
    double ask_below;
    unsigned votes;
    bool redact;
    const fl_str *patterns; /* of what else is secret */
    size_t npatterns;
    const fl_str *plain_to; /* URLs that may get the text unredacted */
    size_t nplain_to;
};
/* Reads the map `llm`; NULL gives the defaults. Everything in the arena. */
int fl_ask_config_read(const fl_yaml *llm, fl_arena *a, struct fl_ask_config *out, fl_err *err);
/* Whether this endpoint may get the text as it is. */
bool fl_ask_plain(const struct fl_ask_config *c, const struct fl_llm_endpoint *e);

/* What hides names from these endpoints, and knows those of the job (which may be NULL). *out is
 * NULL when all of them may get the text as it is. */
int fl_hide_open(const struct fl_ask_config *c, const struct fl_llm_endpoint *endpoints, size_t n,
                 const struct fl_job *job, fl_redactor **out, fl_err *err);
/* Hides in place; nothing to do without a redactor. Texts that belong together are joined by
 * FL_HIDE_PART before, and taken apart by fl_hide_next behind it. */
#define FL_HIDE_PART "\n\x1e\n"
int fl_hide(fl_redactor *x, const struct fl_job *job, fl_buf *text, fl_err *err);
fl_str fl_hide_next(fl_str *rest); /* trimmed */

/* What is sent. */
struct fl_asking {
    const fl_engine *engine;
    struct fl_diagnosis *d;
    const struct fl_ask_config *config;
    fl_arena arena;
    fl_digest_page *page;
    fl_neighbours *neighbours; /* owned here unless the diagnosis has them */
    fl_redactor *redactor;     /* NULL: nothing is redacted */
    struct fl_prompt prompt, repair;
    struct fl_llm_terms terms;
    fl_buf system, user, schema;
    size_t tokens;
};
int fl_asking_new(const fl_engine *e, struct fl_diagnosis *d, const struct fl_ask_config *c,
                  fl_memory *m, uint64_t seed, struct fl_asking *out, fl_err *err);
/* The same for a conversation (prompts/chat.md): no terms, no schema. At most `most` tokens. */
int fl_asking_new_talk(const fl_engine *e, struct fl_diagnosis *d, const struct fl_ask_config *c,
                       fl_memory *m, uint64_t seed, unsigned most, struct fl_asking *out,
                       fl_err *err);
void fl_asking_dispose(struct fl_asking *a);
/* Puts placeholders back; the text is in the asking's arena. */
const char *fl_asking_restore(struct fl_asking *a, const char *text);

/* The way to the endpoints; stays where it is while it is open, since the retries point into it. */
struct fl_wire {
    fl_http_client *client;
    struct fl_http_retry retry; /* before the first request: fewer tries, other pauses */
    fl_llm_recorder *recorder;
    const struct fl_http_transport *transport;
    uint64_t seed; /* of the recording, else by chance */
};
/* `record` and `replay` are folders as in struct fl_ask_opts, or NULL. What was opened is closed by
 * fl_wire_close, after an error too. */
int fl_wire_open(struct fl_wire *w, const char *record, const char *replay, fl_err *err);
void fl_wire_close(struct fl_wire *w);
/* A replay goes nowhere, so it needs no key: whoever runs it may have none. */
int fl_wire_without_keys(fl_arena *a, struct fl_llm_opts *o, fl_err *err);

enum fl_ground_mark { FL_MARK_EXACT, FL_MARK_NEARBY, FL_MARK_ELSEWHERE, FL_MARK_NOT_FOUND };
const char *fl_ground_word(enum fl_ground_mark m);
struct fl_grounding {
    enum fl_ground_mark mark;
    struct fl_place at; /* where the quote stands, when it stands anywhere */
    fl_str text;        /* that line */
    bool carries;       /* it can carry a claim */
    bool numbers;       /* only of what numbers show: it is a metric line and nothing else */
};
/* Whether a line states a cause, gives orders or poses as a message, rather than reporting a
 * failure. Such a line carries nothing. */
bool fl_is_prose(fl_str text);
/* Looks for a quote in the digest, then in the log itself where that can be read again. */
int fl_ground(struct fl_asking *a, const char *file, int64_t line, const char *quote,
              struct fl_grounding *out, fl_err *err);

#endif
