/*
 * Looking at an endpoint before it is needed: which models it has, and whether a small constrained
 * request works from end to end.
 *
 * Findings are sentences, most basic first. The list of models is optional in practice (proxies and
 * Azure deployments have none), so that its absence is only told; what counts is the request. It is
 * tiny, so that it can be sent to a paid service without a thought, and asks for something that a
 * model cannot answer by accident: an object with one member that may have one value.
 */
#include <stdarg.h>
#include <stdio.h>

#include "llm/parts.h"

#include "base/alloc.h"

#define MAX_MODELS 2000
#define SHOWN_MODELS 6
#define LIST_SHARE 0.3 /* of the time, for the list; the request is what counts */

static int64_t context_of(const fl_json *m)
{
    const fl_json *meta = fl_json_get(m, "meta");
    double x;

    if (fl_json_get(m, "max_model_len") && fl_json_num(fl_json_get(m, "max_model_len"), &x))
        return (int64_t)x;
    if (fl_json_get(m, "context_length") && fl_json_num(fl_json_get(m, "context_length"), &x))
        return (int64_t)x;
    if (meta && fl_json_is_object(meta) && fl_json_get(meta, "n_ctx") &&
        fl_json_num(fl_json_get(meta, "n_ctx"), &x))
        return (int64_t)x;
    return -1;
}

static int read_models(fl_str body, const char *name, fl_arena *arena,
                       const struct fl_llm_model **out, size_t *n, fl_err *err)
{
    fl_json *root = NULL;
    const fl_json *data;
    struct fl_llm_model *list;
    size_t count = 0, most;
    int r = fl_json_parse(body, name, &root, err);

    if (r)
        return r;
    data = fl_json_get(root, "data");
    if (!data || !fl_json_is_array(data)) {
        r = fl_fail(err, FL_EBACKEND, "%s: the answer holds no list of models", name);
        goto out;
    }
    most = fl_json_size(data) < MAX_MODELS ? fl_json_size(data) : MAX_MODELS;
    list = fl_arena_alloc(arena, (most + 1) * sizeof(*list));
    if (!list) {
        r = fl_fail_nomem(err);
        goto out;
    }
    for (const fl_json *m = fl_json_first(data); m && count < most; m = fl_json_next(m)) {
        const char *id = fl_json_is_object(m) ? fl_json_z(fl_json_get(m, "id")) : NULL;
        if (!id)
            continue;
        list[count].id = fl_arena_z(arena, fl_str_c(id));
        list[count].context = context_of(m);
        if (list[count].id)
            count++;
    }
    r = arena->failed ? fl_fail_nomem(err) : FL_OK;
    *out = list;
    *n = count;
out:
    fl_json_free(root);
    return r;
}

int fl_llm_models(fl_llm *c, size_t endpoint, double deadline, fl_arena *arena,
                  const struct fl_llm_model **out, size_t *n, fl_err *err)
{
    const struct fl_llm_endpoint *e;
    struct fl_llm_call call;
    struct fl_http_reply reply;
    char shown[300];
    int r;

    if (endpoint >= c->o.nendpoints)
        return fl_fail(err, FL_EUSAGE, "there is no endpoint number %zu", endpoint + 1);
    e = &c->o.endpoints[endpoint];
    fl_http_reply_init(&reply);
    r = fl_llm_call_init(&call, e, "/models", err);
    if (!r) {
        call.rq.method = "GET";
        call.rq.deadline = deadline;
        call.rq.cancel = c->o.cancel;
        call.rq.note = "models";
        r = fl_http_perform(c->o.transport, &call.rq, &reply, err);
    }
    if (!r && (reply.status < 200 || reply.status >= 300 ||
               !fl_str_starts(fl_str_trim(fl_buf_str(&reply.body)), FL_S("{"))))
        r = fl_llm_refusal(e, &call, &reply, err);
    if (!r)
        r = read_models(fl_buf_str(&reply.body), fl_llm_endpoint_name(e, shown), arena, out, n,
                        err);
    fl_http_reply_dispose(&reply);
    fl_llm_call_dispose(&call);
    return r;
}

/* ---- findings ---- */

struct findings {
    fl_arena *arena;
    struct fl_llm_finding list[8];
    size_t n;
};

/* `change` NULL: nothing to change, or the sentence says what. */
__attribute__((format(printf, 4, 5))) static void say(struct findings *f, enum fl_llm_state state,
                                                      const char *change, const char *fmt, ...)
{
    char text[700];
    va_list ap;

    if (f->n == sizeof(f->list) / sizeof(*f->list))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    f->list[f->n].state = state;
    f->list[f->n].text = fl_arena_z(f->arena, fl_str_c(text));
    f->list[f->n].change = change;
    f->n++;
}

/* A key may come back as the name of a model, or in any other word of the server's. */
static void scrub(const struct fl_llm_endpoint *e, struct findings *f)
{
    struct fl_llm_call call;

    if (!fl_llm_call_init(&call, e, "/models", NULL))
        for (size_t i = 0; i < f->n && f->list[i].text; i++) {
            size_t n = strlen(f->list[i].text) + 1;
            char *text = fl_arena_alloc(f->arena, n);
            if (!text)
                break; /* the caller sees that the arena has failed */
            memcpy(text, f->list[i].text, n);
            fl_http_scrub_all(text, &call.rq);
            f->list[i].text = text;
        }
    fl_llm_call_dispose(&call);
}

/* A server that was started with a file may call its model by the whole path. */
static const char *short_name(const char *id)
{
    const char *slash = strrchr(id, '/');

    return strlen(id) > 60 && slash && slash[1] ? slash + 1 : id;
}

static void say_model(struct findings *f, const struct fl_llm_endpoint *e,
                      const struct fl_llm_model *m, size_t n, unsigned least)
{
    int64_t has = -1;         /* the server's word */
    bool there = false, told; /* told: it is what limits, and not the configuration */
    fl_buf names;

    fl_buf_init(&names, 600);
    for (size_t i = 0; i < n; i++) {
        if (e->model && !strcmp(m[i].id, e->model)) {
            there = true;
            has = m[i].context;
        }
        if (i < SHOWN_MODELS)
            fl_buf_addf(&names, "%s%.60s", i ? ", " : "", short_name(m[i].id));
    }
    if (n > SHOWN_MODELS)
        fl_buf_addf(&names, " and %zu more", n - SHOWN_MODELS);
    if (there)
        say(f, FL_LLM_GOOD, NULL, "the model %s is there", e->model);
    else if (n == 1) /* whether it minds is what the request will show */
        say(f, FL_LLM_GOOD, NULL, "the server has one model, %s", names.p ? names.p : "");
    else if (n)
        say(f, FL_LLM_POOR, "set the endpoint's `model` to one of these",
            "the model %s is not in the server's list (%s)", e->model ? e->model : "(none named)",
            names.p ? names.p : "");
    if (n == 1 && has <= 0)
        has = m[0].context;
    told = has > 0 && (!e->context || has < (int64_t)e->context);
    if (told && has < (int64_t)least)
        say(f, FL_LLM_POOR,
            "start the server with a larger context, or set the endpoint's `context` to what it "
            "has, so that less of a log is sent",
            "its context of %lld tokens is too small, a diagnosis takes up to %u", (long long)has,
            least);
    else if (e->context && e->context < least)
        say(f, FL_LLM_POOR,
            "set the endpoint's `context` to what the server has, or start it with a larger one",
            "its `context` is %u tokens, a diagnosis takes up to %u; less of a log is sent",
            e->context, least);
    fl_buf_dispose(&names);
}

/* Whether it said {"status": "ready"}. */
static bool is_ready(const struct fl_llm_answer *a)
{
    fl_json *root = NULL;
    fl_str object;
    const char *z;
    bool ready;

    if (fl_llm_extract(fl_buf_str(&a->text), "status", &object, NULL) ||
        fl_json_parse(object, "the reply", &root, NULL))
        return false;
    z = fl_json_z(fl_json_get(root, "status"));
    ready = z && !strcmp(z, "ready");
    fl_json_free(root);
    return ready;
}

static void say_answer(struct findings *f, const struct fl_llm_answer *a)
{
    if (!is_ready(a))
        say(f, FL_LLM_POOR, "take a larger model, or a server that enforces a schema",
            "it answered, but not with the JSON that was asked for");
    else if (a->format == FL_LLM_JSON_SCHEMA)
        say(f, FL_LLM_GOOD, NULL, "it answers in JSON by a schema");
    else
        say(f, FL_LLM_POOR, "take a server, or a newer version of this one, that enforces a schema",
            "it does not take a JSON schema (response_format %s was used); answers are checked all "
            "the same, but more of them will need a second try",
            fl_llm_format_word(a->format));
    if (a->tokens_out > 0 && a->seconds > 0)
        say(f, FL_LLM_GOOD, NULL, "model %s, %lld tokens in, %lld out, %.1f s",
            short_name(a->model), (long long)a->tokens_in, (long long)a->tokens_out, a->seconds);
    else
        say(f, FL_LLM_GOOD, NULL, "model %s, %.1f s, tokens not told", short_name(a->model),
            a->seconds);
}

static int probe_chat(fl_llm *c, size_t endpoint, const struct fl_prompt *probe, double deadline,
                      struct findings *f)
{
    static const struct fl_llm_terms no_terms = {NULL, 0, NULL, 0};
    struct fl_llm_message m[2];
    struct fl_llm_ask ask = FL_LLM_ASK_INIT;
    struct fl_llm_answer a;
    fl_buf system, user, schema;
    fl_err said = {0};
    int r;

    fl_llm_answer_init(&a);
    fl_buf_init(&system, 65536);
    fl_buf_init(&user, 65536);
    fl_buf_init(&schema, 65536);
    r = fl_prompt_render(probe, NULL, 0, NULL, NULL, &system, &user, NULL, &said);
    if (!r)
        r = fl_prompt_schema(probe, &no_terms, &schema, &said);
    m[0] = (struct fl_llm_message){FL_LLM_SYSTEM, fl_buf_str(&system)};
    m[1] = (struct fl_llm_message){FL_LLM_USER, fl_buf_str(&user)};
    ask.messages = system.n ? m : m + 1;
    ask.nmessages = system.n ? 2 : 1;
    ask.schema = fl_buf_str(&schema);
    ask.schema_name = probe->id;
    ask.endpoint = (int)endpoint;
    ask.deadline = deadline;
    ask.prompt = probe;
    if (!r)
        r = fl_llm_chat(c, &ask, &a, &said);
    if (r)
        say(f, FL_LLM_BROKEN, NULL, "%s", said.msg);
    else
        say_answer(f, &a);
    fl_llm_answer_dispose(&a);
    fl_buf_dispose(&system);
    fl_buf_dispose(&user);
    fl_buf_dispose(&schema);
    return r;
}

int fl_llm_probe(fl_llm *c, size_t endpoint, const struct fl_prompt *probe, unsigned least_context,
                 double deadline, fl_arena *arena, const struct fl_llm_finding **out, size_t *n,
                 fl_err *err)
{
    struct findings f = {.arena = arena};
    const struct fl_llm_model *models = NULL;
    struct fl_llm_finding *list;
    size_t nmodels = 0;
    double now = fl_llm_now(c);
    fl_err said = {0};
    bool listed;
    int r;

    if (endpoint >= c->o.nendpoints)
        return fl_fail(err, FL_EUSAGE, "there is no endpoint number %zu", endpoint + 1);
    listed = !fl_llm_models(c, endpoint, deadline > 0 ? now + (deadline - now) * LIST_SHARE : 0,
                            arena, &models, &nmodels, &said);
    if (listed)
        say_model(&f, &c->o.endpoints[endpoint], models, nmodels, least_context);
    else if (said.code == FL_ENOMEM)
        return fl_fail_nomem(err);
    r = probe_chat(c, endpoint, probe, deadline, &f);
    if (r == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (!r && !listed)
        say(&f, FL_LLM_GOOD, NULL, "it does not list its models");
    scrub(&c->o.endpoints[endpoint], &f);
    list = fl_arena_alloc(arena, (f.n + 1) * sizeof(*list));
    if (!list || arena->failed)
        return fl_fail_nomem(err);
    memcpy(list, f.list, f.n * sizeof(*list));
    *out = list;
    *n = f.n;
    return FL_OK;
}
