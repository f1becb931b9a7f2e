/*
 * Asking, with one endpoint after the other.
 *
 * An endpoint gets one request, and another each time it turns out not to understand something that
 * can be left out (body.c). When it fails, whatever the reason, the next one is asked: a key that
 * is refused here says nothing about the server there. Only three things end the round at once: the
 * user stopped it, the time of the whole answer is up, memory is out.
 *
 * A stream that breaks is not begun again by itself, neither here nor by the retries below: the
 * person has read the first half, and a second answer that begins otherwise would contradict it.
 * It ends in an error with what came. Without on_text nothing is streamed, so a broken connection
 * is tried again like any other failure.
 *
 * A server that is asked for a stream may answer with one piece of JSON, and does when a proxy
 * stands between. What came is therefore read for what it says it is.
 */
#include <stdio.h>

#include "llm/parts.h"

#include "base/alloc.h"

#define MAX_TEXT (1u << 20)
#define MAX_ROUNDS 8

int fl_llm_new(const struct fl_llm_opts *opts, fl_llm **out, fl_err *err)
{
    fl_llm *c = fl_calloc(1, sizeof(*c));

    if (!c)
        return fl_fail_nomem(err);
    c->o = *opts;
    if (!c->o.world)
        c->o.world = fl_http_world();
    c->habits = fl_calloc(opts->nendpoints + 1, sizeof(*c->habits));
    if (!c->habits) {
        fl_llm_free(c);
        return fl_fail_nomem(err);
    }
    *out = c;
    return FL_OK;
}

void fl_llm_free(fl_llm *c)
{
    if (!c)
        return;
    fl_free(c->habits);
    fl_free(c);
}

double fl_llm_now(const fl_llm *c)
{
    return c->o.world->now(c->o.world->ctx);
}

uint64_t fl_llm_seed(const struct fl_http_world *world)
{
    uint64_t high, low;

    world = world ? world : fl_http_world();
    high = (uint64_t)(world->chance(world->ctx) * 4294967296.0);
    low = (uint64_t)(world->chance(world->ctx) * 4294967296.0);
    return high << 32 | low;
}

void fl_llm_answer_init(struct fl_llm_answer *a)
{
    memset(a, 0, sizeof(*a));
    fl_buf_init(&a->text, MAX_TEXT);
    fl_buf_init(&a->failures, 16384);
    a->tokens_in = a->tokens_out = -1;
    a->cost = -1;
}

void fl_llm_answer_dispose(struct fl_llm_answer *a)
{
    fl_buf_dispose(&a->text);
    fl_buf_dispose(&a->failures);
}

/* ---- one request ---- */

struct stream {
    struct fl_llm_reading *reading;
    const struct fl_llm_ask *ask;
    struct fl_sse sse;
    fl_buf whole; /* a piece of JSON instead of a stream */
    const char *shown;
    bool events; /* it is a stream */
    bool told;   /* what it is has been decided */
};

static int show_text(void *ctx, fl_str text)
{
    struct stream *s = ctx;

    return s->ask->on_text(s->ask->ctx, text);
}

static int on_event(void *ctx, bool failed, fl_str data, fl_err *err)
{
    struct stream *s = ctx;

    return fl_llm_read_event(s->reading, failed, data, s->shown, err);
}

static int on_bytes(void *ctx, const struct fl_http_reply *so_far, fl_str bytes, fl_err *err)
{
    struct stream *s = ctx;

    if (!s->told && bytes.n) {
        s->told = true;
        s->events = !strcmp(so_far->content_type, "text/event-stream") ||
                    (strcmp(so_far->content_type, "application/json") != 0 && bytes.p[0] != '{' &&
                     bytes.p[0] != '<');
    }
    if (s->events)
        return fl_sse_feed(&s->sse, bytes, err);
    fl_buf_add(&s->whole, bytes);
    return fl_buf_check(&s->whole, "the answer", err);
}

static bool is_json(const struct fl_http_reply *reply, fl_str body)
{
    fl_str s = fl_str_trim(body);

    return strstr(reply->content_type, "json") || fl_str_starts(s, FL_S("{"));
}

/* Everything has come: a stream is closed, a whole reply read. */
static int finish_reading(struct stream *s, const struct fl_llm_endpoint *e,
                          struct fl_llm_call *call, struct fl_http_reply *reply, fl_err *err)
{
    int r;

    if (s->events) {
        r = fl_sse_end(&s->sse, err);
        if (!r && s->reading->showing)
            fl_llm_unthink_end(&s->reading->show);
        if (!r && !s->reading->done)
            r = fl_fail(err, FL_EBACKEND, "%s: the stream ended in the middle of the answer",
                        s->shown);
        return r;
    }
    if (s->whole.n) {
        fl_buf swap = reply->body;
        reply->body = s->whole;
        s->whole = swap;
    }
    if (!is_json(reply, fl_buf_str(&reply->body)))
        return fl_llm_refusal(e, call, reply, err);
    r = fl_llm_read_reply(s->reading, fl_buf_str(&reply->body), s->shown, err);
    if (!r && s->reading->showing)
        fl_llm_unthink_end(&s->reading->show);
    return r;
}

struct turn {
    fl_llm *c;
    const struct fl_llm_endpoint *e;
    struct fl_llm_habits *habits;
    const struct fl_llm_ask *ask;
    struct fl_llm_answer *out;
    struct fl_llm_reading reading;
    char shown[300];
    const char *name;
    enum fl_http_end end;
    bool again; /* something was left out: ask once more */
};

static void put_note(const struct fl_llm_ask *ask, fl_buf *note)
{
    if (ask->prompt)
        fl_buf_addf(note, "%s version %u, hash %s", ask->prompt->id, ask->prompt->version,
                    ask->prompt->hash);
}

static int request(struct turn *t, struct fl_llm_call *call, struct fl_http_reply *reply,
                   struct stream *s, fl_err *err)
{
    int r = fl_llm_body(t->e, t->habits, t->ask, &call->body, err);
    fl_buf words;

    if (r)
        return r;
    call->rq.method = "POST";
    call->rq.body = fl_buf_str(&call->body);
    call->rq.deadline = t->ask->deadline;
    call->rq.cancel = t->c->o.cancel;
    put_note(t->ask, &call->note);
    call->rq.note = call->note.p;
    if (t->ask->on_text) {
        call->rq.on_bytes = on_bytes;
        call->rq.ctx = s;
    }
    r = fl_http_perform(t->c->o.transport, &call->rq, reply, err);
    t->end = reply->end;
    t->out->requests += reply->tries;
    t->out->seconds += reply->seconds; /* not the clock's: a replay tells what was recorded */
    if (r)
        return r;
    if (reply->status >= 200 && reply->status < 300)
        return finish_reading(s, t->e, call, reply, err);
    fl_buf_init(&words, 65536);
    fl_llm_error_words(fl_buf_str(&reply->body), &words);
    t->again = fl_llm_adapt(t->habits, t->ask, reply->status, fl_buf_str(&words));
    fl_buf_dispose(&words);
    return fl_llm_refusal(t->e, call, reply, err);
}

static void start_reading(struct turn *t, struct stream *s)
{
    fl_buf_clear(&t->out->text);
    memset(&t->reading, 0, sizeof(t->reading));
    t->reading.text = &t->out->text;
    t->reading.tokens_in = t->reading.tokens_out = -1;
    t->reading.showing = t->ask->on_text != NULL;
    fl_llm_unthink_init(&t->reading.show, show_text, s);
    s->reading = &t->reading;
    s->ask = t->ask;
    s->shown = t->name;
    fl_sse_init(&s->sse, on_event, s);
    fl_buf_init(&s->whole, 4u << 20);
}

static int one_request(struct turn *t, fl_err *err)
{
    struct fl_llm_call call;
    struct fl_http_reply reply;
    struct stream s;
    fl_err said = {0};
    int r;

    memset(&s, 0, sizeof(s));
    t->again = false;
    t->end = FL_HTTP_BAD;
    fl_http_reply_init(&reply);
    start_reading(t, &s);
    r = fl_llm_call_init(&call, t->e, "/chat/completions", &said);
    if (!r)
        r = request(t, &call, &reply, &s, &said);
    if (!r && t->out->text.bad)
        r = fl_fail(&said, FL_ELIMIT, "%s: the answer's text is larger than %u bytes", t->name,
                    MAX_TEXT);
    if (!r && !fl_str_trim(fl_buf_str(&t->out->text)).n)
        r = fl_fail(&said, FL_EBACKEND, "%s: the model answered with nothing%s", t->name,
                    !strcmp(t->reading.finish, "length") ? "; raise max_tokens" : "");
    if (r) {
        fl_http_scrub_all(said.msg, &call.rq);
        if (err)
            *err = said;
    }
    fl_sse_dispose(&s.sse);
    fl_buf_dispose(&s.whole);
    fl_http_reply_dispose(&reply);
    fl_llm_call_dispose(&call);
    return r;
}

/* ---- one endpoint ---- */

static size_t quarter(void *ctx, fl_str text)
{
    (void)ctx;
    return (text.n + 3) / 4;
}

/* A prompt that cannot fit is not sent: a server may cut its front off and say nothing. */
static int check_fit(const struct turn *t, fl_err *err)
{
    fl_prompt_count count = t->c->o.count ? t->c->o.count : quarter;
    unsigned answer = t->ask->max_tokens ? t->ask->max_tokens : t->e->max_tokens;
    size_t n = 0;

    if (!t->e->context)
        return FL_OK;
    for (size_t i = 0; i < t->ask->nmessages; i++)
        n += 8 + count(t->c->o.count_ctx, t->ask->messages[i].text);
    answer = answer ? answer : 256;
    if (n + answer <= t->e->context)
        return FL_OK;
    return fl_fail(err, FL_ELIMIT,
                   "%s: the prompt has about %zu tokens and the answer may have %u, but the "
                   "endpoint's context is %u; make the digest smaller or the context larger",
                   t->name, n, answer, t->e->context);
}

static void take(struct turn *t, size_t index)
{
    struct fl_llm_answer *a = t->out;
    const char *model = t->reading.model[0] ? t->reading.model : t->e->model ? t->e->model : "";

    a->endpoint = index;
    fl_http_show_url(t->e->url, a->url, sizeof(a->url));
    snprintf(a->model, sizeof(a->model), "%s", model);
    snprintf(a->finish, sizeof(a->finish), "%s",
             t->reading.refused ? "refusal" : t->reading.finish);
    a->tokens_in = t->reading.tokens_in;
    a->tokens_out = t->reading.tokens_out;
    a->format = t->ask->schema.n ? t->habits->format : FL_LLM_PLAIN;
    if ((t->e->price_in > 0 || t->e->price_out > 0) && a->tokens_in >= 0 && a->tokens_out >= 0)
        a->cost =
            ((double)a->tokens_in * t->e->price_in + (double)a->tokens_out * t->e->price_out) / 1e6;
}

static int ask_one(fl_llm *c, const struct fl_llm_ask *ask, size_t index, struct fl_llm_answer *out,
                   enum fl_http_end *end, fl_err *err)
{
    struct turn t = {.c = c,
                     .e = &c->o.endpoints[index],
                     .habits = &c->habits[index],
                     .ask = ask,
                     .out = out,
                     .end = FL_HTTP_BAD};
    int r;

    t.name = fl_llm_endpoint_name(t.e, t.shown);
    r = check_fit(&t, err);
    for (unsigned round = 0; !r && round < MAX_ROUNDS; round++) {
        r = one_request(&t, err);
        if (!r || !t.again)
            break;
        r = FL_OK;
    }
    if (!r && t.again)
        r = fl_fail(err, FL_EBACKEND, "%s: the server refused every form of the request", t.name);
    *end = t.end;
    if (!r)
        take(&t, index);
    return r;
}

/* Nobody else is asked then: the user or the clock said so, or half an answer has been shown. */
static bool is_final(int code, enum fl_http_end end, const struct fl_llm_ask *ask,
                     const struct fl_llm_answer *out)
{
    return code == FL_ENOMEM || end == FL_HTTP_CANCELLED || end == FL_HTTP_DEADLINE ||
           (ask->on_text && out->text.n > 0);
}

static int none_answered(const struct fl_llm_answer *out, unsigned asked, const fl_err *last,
                         fl_err *err)
{
    fl_buf all;
    fl_str rest = fl_buf_str(&out->failures);
    int code = last->code;

    if (asked < 2) {
        if (err)
            *err = *last;
        return code;
    }
    fl_buf_init(&all, 4096);
    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        fl_buf_addf(&all, "%s%.*s", all.n ? "; " : "", FL_FMT(fl_str_sub(line, 0, 250)));
    }
    fl_fail(err, code, "none of %u endpoints answered: %s", asked, all.p ? all.p : "");
    fl_buf_dispose(&all);
    return code;
}

int fl_llm_chat(fl_llm *c, const struct fl_llm_ask *ask, struct fl_llm_answer *out, fl_err *err)
{
    size_t from = ask->endpoint < 0 ? 0 : (size_t)ask->endpoint;
    size_t to = ask->endpoint < 0 ? c->o.nendpoints : from + 1;
    enum fl_http_end end = FL_HTTP_BAD;
    fl_err last = {0};
    fl_buf note;
    int r = FL_EUSAGE;

    fl_llm_answer_dispose(out);
    fl_llm_answer_init(out);
    if (from >= to || to > c->o.nendpoints)
        return fl_fail(err, FL_EUSAGE, "no endpoint is configured; name one under llm.endpoints");
    fl_buf_init(&note, sizeof(out->prompt));
    put_note(ask, &note);
    snprintf(out->prompt, sizeof(out->prompt), "%s", note.p ? note.p : "");
    fl_buf_dispose(&note);
    for (size_t i = from; i < to; i++) {
        r = ask_one(c, ask, i, out, &end, &last);
        if (!r)
            break;
        fl_buf_addf(&out->failures, "%s\n", last.msg);
        if (is_final(r, end, ask, out))
            break;
    }
    if (!r)
        return FL_OK;
    return none_answered(out, (unsigned)(to - from), &last, err);
}
