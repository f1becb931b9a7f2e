/*
 * Whether the endpoints would answer, before a job has died.
 *
 * Each is asked for its models and gets one tiny request with a schema, over the same way as a
 * diagnosis takes, so that what works here works there. What is wrong is told one thing a row, each
 * with what to change; what is right of an endpoint that answers is one row behind them. A broken
 * endpoint is worse and not broken: the rules and the memory answer without it.
 *
 * A person waits for this. So there are thirty seconds for an endpoint and one second try, where a
 * diagnosis has minutes and four.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "diagnose/ask.h"

#define NAME "endpoint"
#define SECONDS 30
#define TRIES 2
#define ANSWER 2000 /* tokens, where an endpoint says nothing else */

struct look {
    const struct fl_doctor_ask *o;
    fl_llm *llm;
    fl_arena arena;
    struct fl_prompt probe, diagnose;
    int worst;
};

/* Messages mostly begin with the endpoint's name or its URL; the others get it in front. */
static int tell(struct look *l, enum fl_health health, const char *name, const char *text,
                const char *change, fl_err *err)
{
    struct fl_checkup c = {.name = NAME, .health = health, .run = change};
    size_t n = strlen(name);

    c.text = strncmp(text, name, n) == 0 && (text[n] == ':' || text[n] == '/')
                 ? text
                 : fl_arena_f(&l->arena, "%s: %s", name, text);
    if (!c.text)
        return fl_fail_nomem(err);
    l->worst = (int)health > l->worst ? (int)health : l->worst;
    l->o->tell(l->o->ctx, &c);
    return FL_OK;
}

/* What is wrong, one by one. */
static int tell_faults(struct look *l, const char *name, const struct fl_llm_finding *f, size_t n,
                       bool *broken, fl_err *err)
{
    int r = FL_OK;

    *broken = false;
    for (size_t i = 0; i < n && !r; i++) {
        *broken |= f[i].state == FL_LLM_BROKEN;
        if (f[i].state != FL_LLM_GOOD)
            r = tell(l, FL_HEALTH_WORSE, name, f[i].text, f[i].change, err);
    }
    return r;
}

/* What is right, in one row. */
static int tell_good(struct look *l, const char *name, const struct fl_llm_finding *f, size_t n,
                     fl_err *err)
{
    fl_buf b;
    int r;

    fl_buf_init(&b, 8192);
    for (size_t i = 0; i < n; i++)
        if (f[i].state == FL_LLM_GOOD)
            fl_buf_addf(&b, "%s%s", b.n ? "; " : "", f[i].text);
    r = fl_buf_check(&b, "what an endpoint said", err);
    if (!r && b.n)
        r = tell(l, FL_HEALTH_OK, name, b.p, NULL, err);
    fl_buf_dispose(&b);
    return r;
}

static int look_at(struct look *l, size_t i, fl_err *err)
{
    const struct fl_llm_endpoint *e = &l->o->config->llm->endpoints[i];
    double seconds = l->o->seconds > 0 ? l->o->seconds : SECONDS;
    unsigned least = l->diagnose.token_budget + (e->max_tokens ? e->max_tokens : ANSWER);
    const struct fl_llm_finding *f = NULL;
    char room[300];
    const char *name = fl_llm_endpoint_name(e, room);
    size_t n = 0;
    bool broken;
    int r;

    if (l->o->asking)
        l->o->asking(l->o->ctx, name);
    r = fl_llm_probe(l->llm, i, &l->probe, least, fl_llm_now(l->llm) + seconds, &l->arena, &f, &n,
                     err);
    if (!r)
        r = tell_faults(l, name, f, n, &broken, err);
    if (!r && !broken)
        r = tell_good(l, name, f, n, err);
    return r;
}

static int load(struct look *l, fl_err *err)
{
    char data[4096], path[4200];
    int r = fl_data_dir(data, sizeof(data), err);

    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/probe.md", data);
    r = fl_prompt_load(path, &l->arena, &l->probe, err);
    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/diagnose.md", data);
    return fl_prompt_load(path, &l->arena, &l->diagnose, err);
}

int fl_doctor_endpoints(const struct fl_doctor_ask *o, fl_err *err)
{
    const struct fl_ask_config *config = o->config ? o->config->llm : NULL;
    struct fl_llm_opts lo = {.cancel = o->cancel};
    struct look l = {.o = o};
    struct fl_wire w;
    int r;

    if (!config || !config->n) {
        o->tell(o->ctx,
                &(struct fl_checkup){.name = NAME,
                                     .health = FL_HEALTH_OK,
                                     .text = "none is configured; answers come from rules and past "
                                             "incidents alone"});
        return FL_HEALTH_OK;
    }
    fl_arena_init(&l.arena);
    r = fl_wire_open(&w, NULL, NULL, err);
    w.retry.tries = TRIES;
    lo.endpoints = config->endpoints;
    lo.nendpoints = config->n;
    lo.transport = w.transport;
    if (!r)
        r = load(&l, err);
    if (!r)
        r = fl_llm_new(&lo, &l.llm, err);
    for (size_t i = 0; i < config->n && !r && !(o->cancel && *o->cancel); i++)
        r = look_at(&l, i, err);
    fl_llm_free(l.llm);
    fl_wire_close(&w);
    fl_arena_dispose(&l.arena);
    return r ? r : l.worst;
}
