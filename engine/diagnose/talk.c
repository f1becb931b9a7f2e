/*
 * A conversation with a language model about one diagnosed job.
 *
 * It opens with the digest, the nearest incidents and the verdict (prompts/chat.md), all redacted
 * by one redactor, which then redacts each question as well: a host that the log names is hidden
 * when a person types it. What comes back streams, and the placeholders in it are put back as it
 * comes. A placeholder may be cut anywhere between two pieces, so the end of what has come is held
 * back as long as it may be the beginning of one: the last word, and what stands behind an opening
 * bracket, for at most sixty-four bytes. Holding back until the line ends was simpler and made the
 * answer come in jerks.
 *
 * Nothing here can change the diagnosis: an answer is text for a person. Recordings are not made;
 * they are of one diagnosis and not of a talk.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/text.h"
#include "diagnose/ask.h"
#include "diagnose/engine.h"

#define SECONDS 240
#define ROOM 8192   /* tokens, where no endpoint tells its context */
#define ANSWER 1500 /* tokens kept free for a question and its answer */
#define LEAST 1200  /* tokens that the beginning needs */
#define HELD 64     /* bytes held back at most */

struct fl_talk {
    struct fl_asking asking;
    bool made;
    struct fl_wire wire;
    fl_llm *llm;
    fl_llm_talk *talk;
    const volatile int *cancel;
    double seconds;
};

/* One answer while it comes. */
struct coming {
    const struct fl_talk *t;
    fl_buf held, shown;
    int (*on_text)(void *ctx, const char *text);
    void *ctx;
    bool stopped;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Bytes that may stand between the brackets of a placeholder, or be part of a bracket. */
static bool may_be_inside(char c)
{
    return ((unsigned char)c < 0x80 && is_word(c)) || c == '-' || c == ' ' || c == '\\' ||
           c == '&' || c == ';' || c == '%' || c == '<';
}

/* How much of `s` may be handed out while more is to come. */
static size_t settled(fl_str s)
{
    size_t cut = s.n, from;

    while (cut > 0 && s.n - cut < HELD && is_word(s.p[cut - 1]))
        cut--;
    if (s.n - cut >= HELD) { /* no placeholder is so long: only a character must stay whole */
        cut = s.n;
        while (cut > s.n - 4 && ((unsigned char)s.p[cut - 1] & 0xc0) == 0x80)
            cut--;
        return cut > 0 && (unsigned char)s.p[cut - 1] >= 0xc0 ? cut - 1 : cut;
    }
    from = s.n > HELD ? s.n - HELD : 0;
    for (size_t i = s.n; i > from && may_be_inside(s.p[i - 1]); i--)
        if (i - 1 < cut && strchr("<&\\%", s.p[i - 1]))
            cut = i - 1;
    return cut;
}

/* Hands out the first `n` bytes of what is held, names put back. */
static int hand_out(struct coming *c, size_t n)
{
    fl_str text = fl_str_sub(fl_buf_str(&c->held), 0, n);
    int r = 0;

    if (!n)
        return 0;
    fl_buf_clear(&c->shown);
    if (!c->t->asking.redactor || fl_restore(c->t->asking.redactor, text, &c->shown, NULL))
        fl_buf_add(&c->shown, text);
    for (size_t i = 0; i < c->shown.n; i++)
        if (!c->shown.p[i])
            c->shown.p[i] = ' ';
    if (c->shown.n && !c->shown.bad)
        r = c->on_text(c->ctx, c->shown.p);
    memmove(c->held.p, c->held.p + n, c->held.n - n);
    fl_buf_cut(&c->held, c->held.n - n);
    return r;
}

static bool is_cancelled(const struct fl_talk *t)
{
    return t->cancel && *t->cancel;
}

static int on_piece(void *ctx, fl_str text)
{
    struct coming *c = ctx;

    fl_buf_add(&c->held, text);
    if (c->held.bad)
        return FL_ENOMEM;
    if (hand_out(c, settled(fl_buf_str(&c->held))) || is_cancelled(c->t)) {
        c->stopped = true;
        return FL_EUSAGE;
    }
    return FL_OK;
}

static unsigned room_of(const struct fl_ask_config *c)
{
    unsigned room = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->endpoints[i].context && (!room || c->endpoints[i].context < room))
            room = c->endpoints[i].context;
    return room ? room : ROOM;
}

static int start(struct fl_talk *t, const fl_engine *e, fl_diagnosis *d,
                 const struct fl_talk_opts *o, fl_err *err)
{
    const struct fl_ask_config *config = o->config->llm;
    struct fl_llm_opts lo = {
        .endpoints = config->endpoints, .nendpoints = config->n, .cancel = o->cancel};
    unsigned room = room_of(config);
    unsigned most = room > ANSWER + LEAST ? room - ANSWER : LEAST;
    int r = fl_wire_open(&t->wire, o->record, o->replay, err);

    if (!r && o->replay)
        r = fl_wire_without_keys(&d->job.arena, &lo, err);
    if (r)
        return r;
    lo.transport = t->wire.transport;
    r = fl_llm_new(&lo, &t->llm, err);
    if (!r)
        r = fl_asking_new_talk(e, d, config, o->memory, t->wire.seed, most, &t->asking, err);
    if (r)
        return r;
    t->made = true;
    struct fl_llm_message begin[] = {{FL_LLM_SYSTEM, fl_buf_str(&t->asking.system)},
                                     {FL_LLM_USER, fl_buf_str(&t->asking.user)}};
    return fl_llm_talk_new(begin, 2, room, &t->talk, err);
}

int fl_talk_open(const fl_engine *e, fl_diagnosis *d, const struct fl_talk_opts *o, fl_talk **out,
                 fl_err *err)
{
    fl_talk *t;
    int r;

    if (!o->config || !o->config->llm || !o->config->llm->n)
        return fl_fail(err, FL_EUSAGE,
                       "no language model is configured; name one under llm.endpoints");
    if (!d->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what is sent; set "
                       "fl_diagnose_opts.digest");
    t = fl_calloc(1, sizeof(*t));
    if (!t)
        return fl_fail_nomem(err);
    t->cancel = o->cancel;
    t->seconds = o->seconds > 0 ? o->seconds : SECONDS;
    r = start(t, e, d, o, err);
    if (r) {
        fl_talk_free(t);
        return r;
    }
    *out = t;
    return FL_OK;
}

void fl_talk_free(fl_talk *t)
{
    if (!t)
        return;
    fl_llm_talk_free(t->talk);
    if (t->made)
        fl_asking_dispose(&t->asking);
    fl_llm_free(t->llm);
    fl_wire_close(&t->wire);
    fl_free(t);
}

static void take(const fl_talk *t, const struct fl_llm_answer *a, const struct coming *c,
                 struct fl_talk_answer *out)
{
    *out = (struct fl_talk_answer){.tokens_in = a->tokens_in,
                                   .tokens_out = a->tokens_out,
                                   .seconds = a->seconds,
                                   .cost = a->cost,
                                   .stopped = c->stopped || is_cancelled(t),
                                   .turns = fl_llm_talk_turns(t->talk),
                                   .left_out = fl_llm_talk_left_out(t->talk)};
    snprintf(out->model, sizeof(out->model), "%s", a->model);
    snprintf(out->endpoint, sizeof(out->endpoint), "%s", a->url);
}

int fl_talk_ask(fl_talk *t, const char *question, int (*on_text)(void *ctx, const char *text),
                void *ctx, struct fl_talk_answer *out, fl_err *err)
{
    struct coming c = {.t = t, .on_text = on_text, .ctx = ctx};
    struct fl_llm_ask ask = FL_LLM_ASK_INIT;
    struct fl_llm_answer a;
    fl_err why = {0};
    fl_buf q;
    int r = FL_OK;

    fl_buf_init(&q, 1u << 20);
    fl_buf_init(&c.held, 1u << 20);
    fl_buf_init(&c.shown, 4u << 20);
    fl_llm_answer_init(&a);
    if (t->asking.redactor)
        r = fl_redact(t->asking.redactor, fl_str_c(question), &q, &why);
    else
        fl_buf_addz(&q, question);
    if (!r)
        r = fl_buf_check(&q, "the question", &why);
    ask.on_text = on_piece;
    ask.ctx = &c;
    ask.temperature = -1;
    ask.deadline = fl_llm_now(t->llm) + t->seconds;
    ask.prompt = &t->asking.prompt;
    if (!r)
        r = fl_llm_talk_ask(t->talk, t->llm, &ask, fl_buf_str(&q), &a, &why);
    if (!c.stopped && hand_out(&c, c.held.n))
        c.stopped = true;
    if (r && r != FL_ENOMEM && (c.stopped || is_cancelled(t)))
        r = FL_OK;
    if (!r)
        take(t, &a, &c, out);
    else
        fl_fail(err, r, "%s", why.msg);
    fl_llm_answer_dispose(&a);
    fl_buf_dispose(&c.held);
    fl_buf_dispose(&c.shown);
    fl_buf_dispose(&q);
    return r;
}
