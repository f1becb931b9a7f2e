/*
 * Each configured language model, asked before it is needed.
 *
 * An endpoint that does not answer makes the answers no worse than they are without one, so nothing
 * here is broken for `doctor`: it works less well than it could. Each is given half a minute, so
 * that a monitor is not held up by one that hangs.
 */
#include <stdio.h>

#include "diagnose/ask.h"
#include "diagnose/engine.h"

#define SECONDS 30
#define PROMPT 6000 /* tokens that a diagnosis is sent with at most */
#define ANSWER 2000 /* and gets, where the endpoint says nothing else */

struct looking {
    void (*tell)(void *ctx, const struct fl_checkup *c);
    void *ctx;
    int worst;
};

static void say(struct looking *l, const char *endpoint, enum fl_health health, const char *text)
{
    struct fl_checkup c = {.name = "endpoint", .health = health};
    char line[1200];

    if (endpoint && strncmp(text, endpoint, strlen(endpoint)) != 0)
        snprintf(line, sizeof(line), "%s: %s", endpoint, text);
    else
        snprintf(line, sizeof(line), "%s", text);
    c.text = line;
    l->worst = (int)health > l->worst ? (int)health : l->worst;
    l->tell(l->ctx, &c);
}

static int look_at(struct looking *l, fl_llm *llm, const struct fl_llm_endpoint *e, size_t i,
                   const struct fl_prompt *probe, fl_arena *a, fl_err *err)
{
    const struct fl_llm_finding *v = NULL;
    char shown[300];
    size_t n = 0;
    int r = fl_llm_probe(llm, i, probe, PROMPT + (e->max_tokens ? e->max_tokens : ANSWER),
                         fl_llm_now(llm) + SECONDS, a, &v, &n, err);

    for (size_t k = 0; !r && k < n; k++)
        say(l, fl_llm_endpoint_name(e, shown),
            v[k].state == FL_LLM_GOOD ? FL_HEALTH_OK : FL_HEALTH_WORSE, v[k].text);
    return r;
}

static int load_probe(fl_arena *a, struct fl_prompt *out, fl_err *err)
{
    char data[4096], path[4200];
    int r = fl_data_dir(data, sizeof(data), err);

    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/probe.md", data);
    return fl_prompt_load(path, a, out, err);
}

int fl_doctor_endpoints(const struct fl_config *c, bool offline,
                        void (*tell)(void *ctx, const struct fl_checkup *c), void *ctx, fl_err *err)
{
    const struct fl_ask_config *llm = c ? c->llm : NULL;
    struct looking l = {.tell = tell, .ctx = ctx};
    struct fl_llm_opts o = {.count = NULL};
    struct fl_prompt probe;
    fl_llm *client = NULL;
    struct fl_wire wire;
    fl_err why = {0};
    fl_arena a;
    int r;

    if (!llm || !llm->n || offline) {
        say(&l, NULL, FL_HEALTH_OK,
            !llm || !llm->n
                ? "none is configured; rules and past incidents answer (`diagnose help ask`)"
                : "not asked, as --offline says");
        return l.worst;
    }
    fl_arena_init(&a);
    r = fl_wire_open(&wire, NULL, NULL, &why);
    o.endpoints = llm->endpoints;
    o.nendpoints = llm->n;
    o.transport = wire.transport;
    if (!r)
        r = load_probe(&a, &probe, &why);
    if (!r)
        r = fl_llm_new(&o, &client, &why);
    for (size_t i = 0; !r && i < llm->n; i++)
        r = look_at(&l, client, &llm->endpoints[i], i, &probe, &a, &why);
    fl_llm_free(client);
    fl_wire_close(&wire);
    fl_arena_dispose(&a);
    if (r == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (r)
        say(&l, NULL, FL_HEALTH_WORSE, why.msg);
    return l.worst;
}
