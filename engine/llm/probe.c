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

__attribute__((format(printf, 3, 4))) static void say(struct findings *f, enum fl_llm_state state,
                                                      const char *fmt, ...)
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
    f->n++;
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
    int64_t context = e->context ? (int64_t)e->context : -1;
    bool there = false;
    fl_buf names;

    fl_buf_init(&names, 600);
    for (size_t i = 0; i < n; i++) {
        if (e->model && !strcmp(m[i].id, e->model)) {
            there = true;
            context = m[i].context > 0 ? m[i].context : context;
        }
        if (i < SHOWN_MODELS)
            fl_buf_addf(&names, "%s%.60s", i ? ", " : "", short_name(m[i].id));
    }
    if (n > SHOWN_MODELS)
        fl_buf_addf(&names, " and %zu more", n - SHOWN_MODELS);
    if (there)
        say(f, FL_LLM_GOOD, "the model %s is there", e->model);
    else if (n == 1) /* whether it minds is what the request will show */
        say(f, FL_LLM_GOOD, "the server has one model, %s", names.p ? names.p : "");
    else if (n)
        say(f, FL_LLM_POOR, "the model %s is not in the server's list (%s); correct model",
            e->model ? e->model : "(none named)", names.p ? names.p : "");
    if (n == 1 && context < 0)
        context = m[0].context;
    if (context > 0 && context < (int64_t)least)
        say(f, FL_LLM_POOR,
            "its context of %lld tokens is too small, a diagnosis takes up to %u; start the server "
            "with a larger one",
            (long long)context, least);
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
        say(f, FL_LLM_POOR,
            "it answered, but not with the JSON that was asked for; a larger model, or a server "
            "that "
            "enforces a schema, will do better");
    else if (a->format == FL_LLM_JSON_SCHEMA)
        say(f, FL_LLM_GOOD, "it answers in JSON by a schema");
    else
        say(f, FL_LLM_POOR,
            "it does not take a JSON schema (response_format %s was used); answers are checked all "
            "the same, but more of them will need a second try",
            fl_llm_format_word(a->format));
    if (a->tokens_out > 0 && a->seconds > 0)
        say(f, FL_LLM_GOOD, "model %s, %lld tokens in, %lld out, %.1f s", short_name(a->model),
            (long long)a->tokens_in, (long long)a->tokens_out, a->seconds);
    else
        say(f, FL_LLM_GOOD, "model %s, %.1f s, tokens not told", short_name(a->model), a->seconds);
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
        say(f, FL_LLM_BROKEN, "%s", said.msg);
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
    fl_err said = {0};

    if (endpoint >= c->o.nendpoints)
        return fl_fail(err, FL_EUSAGE, "there is no endpoint number %zu", endpoint + 1);
    if (!fl_llm_models(c, endpoint, deadline, arena, &models, &nmodels, &said))
        say_model(&f, &c->o.endpoints[endpoint], models, nmodels, least_context);
    else if (said.code == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (probe_chat(c, endpoint, probe, deadline, &f) == FL_ENOMEM)
        return fl_fail_nomem(err);
    list = fl_arena_alloc(arena, (f.n + 1) * sizeof(*list));
    if (!list || arena->failed)
        return fl_fail_nomem(err);
    memcpy(list, f.list, f.n * sizeof(*list));
    *out = list;
    *n = f.n;
    return FL_OK;
}
