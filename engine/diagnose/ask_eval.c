/*
 * What a language model adds: each labelled case by the rules alone, and with the model.
 *
 * A case is asked about where `diagnose` would ask, or always when that is wanted: then what the
 * model said is counted by itself, which is how prompts and models are compared on cases that the
 * rules know. An answer costs money and minutes, so after each the results so far are written to a
 * file, as a whole and renamed into place; a run that was interrupted goes on where it stopped.
 * Only answers are kept there. A case whose endpoint failed is asked again, and one that needs no
 * asking is diagnosed again, which takes milliseconds and follows the rules as they are now.
 *
 * Results of another prompt, another model or other rules are not mixed: such a file is refused.
 */
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "diagnose/ask.h"
#include "diagnose/engine.h"

#include "base/alloc.h"

#define SCHEMA "faultline.ask_eval/1"

struct fl_ask_eval {
    fl_arena arena;
    const fl_engine *engine;
    struct fl_ask_opts ask;
    const char *resume, *prompt, *asked; /* what must be the same to go on */
    fl_json *old;
    struct fl_ask_case *cases;
    size_t n, cap;
};

static const char *keep(fl_ask_eval *ev, const char *z)
{
    return z ? fl_arena_z(&ev->arena, fl_str_c(z)) : NULL;
}

static bool accepts(const fl_json *label, const char *key, const char *more, const char *got)
{
    const char *want = fl_json_z(fl_json_get(label, key));

    if (!got)
        return false;
    if (want && strcmp(want, got) == 0)
        return true;
    for (const fl_json *i = fl_json_first(fl_json_get(label, more)); i; i = fl_json_next(i))
        if (fl_json_z(i) && strcmp(fl_json_z(i), got) == 0)
            return true;
    return false;
}

static void judge(struct fl_ask_case *c, const fl_json *label)
{
    c->rules_ok = accepts(label, "cause", "also_acceptable", c->rules);
    c->with_ok = accepts(label, "cause", "also_acceptable", c->with_model);
    c->said_ok = accepts(label, "cause", "also_acceptable", c->said);
    c->rules_action_ok = accepts(label, "action", "also_acceptable_actions", c->rules_action);
    c->with_action_ok = accepts(label, "action", "also_acceptable_actions", c->with_action);
}

/* ---- the file of results ---- */

static void put_case(fl_json *list, const struct fl_ask_case *c)
{
    fl_json *o = fl_json_add_object(list);

    fl_json_put_z(o, "id", c->id);
    fl_json_put_z(o, "expected", c->expected);
    fl_json_put_z(o, "rules", c->rules);
    fl_json_put_z(o, "with_model", c->with_model);
    fl_json_put_z(o, "said", c->said);
    fl_json_put_z(o, "rules_action", c->rules_action);
    fl_json_put_z(o, "with_action", c->with_action);
    fl_json_put_z(o, "error", c->error);
    fl_json_put_bool(o, "asked", c->asked);
    fl_json_put_bool(o, "grounded", c->grounded);
    fl_json_put_bool(o, "decided", c->decided);
    fl_json_put_bool(o, "rules_ok", c->rules_ok);
    fl_json_put_bool(o, "with_ok", c->with_ok);
    fl_json_put_bool(o, "said_ok", c->said_ok);
    fl_json_put_int(o, "tokens_in", c->tokens_in);
    fl_json_put_int(o, "tokens_out", c->tokens_out);
    fl_json_put_num(o, "seconds", c->seconds);
    fl_json_put_num(o, "cost", c->cost);
}

static fl_json *begin(const fl_ask_eval *ev)
{
    fl_json *root = fl_json_object();

    fl_json_put_z(root, "schema", SCHEMA);
    fl_json_put_z(root, "prompt", ev->prompt);
    fl_json_put_z(root, "asked", ev->asked);
    fl_json_put_z(root, "rules_version", fl_engine_rules_version(ev->engine));
    return root;
}

static int save(const fl_ask_eval *ev, fl_err *err)
{
    fl_json *root = begin(ev), *list = fl_json_put_array(root, "cases");
    fl_buf b;
    int r;

    fl_buf_init(&b, 64u << 20);
    for (size_t i = 0; i < ev->n; i++)
        if (ev->cases[i].said)
            put_case(list, &ev->cases[i]);
    r = fl_json_print(root, true, &b, err);
    fl_buf_addc(&b, '\n');
    if (!r)
        r = fl_buf_check(&b, ev->resume, err);
    if (!r)
        r = fl_file_write_atomic(ev->resume, fl_buf_str(&b), err);
    fl_buf_dispose(&b);
    fl_json_free(root);
    return r;
}

static bool fits(const fl_ask_eval *ev, const char *key, const char *now)
{
    const char *then = fl_json_z(fl_json_get(ev->old, key));

    return then && now && strcmp(then, now) == 0;
}

static int load(fl_ask_eval *ev, fl_err *err)
{
    const char *other = NULL;
    fl_buf text;
    int r;

    if (!fl_file_exists(ev->resume))
        return FL_OK;
    fl_buf_init(&text, 64u << 20);
    r = fl_file_read(ev->resume, &text, err);
    if (!r)
        r = fl_json_parse(fl_buf_str(&text), ev->resume, &ev->old, err);
    fl_buf_dispose(&text);
    if (r)
        return r;
    if (!fits(ev, "schema", SCHEMA))
        other = "something else";
    else if (!fits(ev, "prompt", ev->prompt))
        other = "results of another prompt";
    else if (!fits(ev, "asked", ev->asked))
        other = "results of other models or settings";
    else if (!fits(ev, "rules_version", fl_engine_rules_version(ev->engine)))
        other = "results with other rules";
    return other ? fl_fail(err, FL_EUSAGE, "%s holds %s; name another file, or remove it",
                           ev->resume, other)
                 : FL_OK;
}

static double number(const fl_json *o, const char *key)
{
    double v = 0;

    return fl_json_num(fl_json_get(o, key), &v) ? v : 0;
}

static bool yes(const fl_json *o, const char *key)
{
    bool v = false;

    return fl_json_bool(fl_json_get(o, key), &v) && v;
}

static bool from_file(fl_ask_eval *ev, struct fl_ask_case *c)
{
    const fl_json *o = fl_json_first(fl_json_get(ev->old, "cases"));

    while (o && (!fl_json_z(fl_json_get(o, "id")) ||
                 strcmp(fl_json_z(fl_json_get(o, "id")), c->id) != 0))
        o = fl_json_next(o);
    if (!o)
        return false;
    c->rules = keep(ev, fl_json_z(fl_json_get(o, "rules")));
    c->with_model = keep(ev, fl_json_z(fl_json_get(o, "with_model")));
    c->said = keep(ev, fl_json_z(fl_json_get(o, "said")));
    c->rules_action = keep(ev, fl_json_z(fl_json_get(o, "rules_action")));
    c->with_action = keep(ev, fl_json_z(fl_json_get(o, "with_action")));
    c->grounded = yes(o, "grounded");
    c->decided = yes(o, "decided");
    c->tokens_in = (int64_t)number(o, "tokens_in");
    c->tokens_out = (int64_t)number(o, "tokens_out");
    c->seconds = number(o, "seconds");
    c->cost = number(o, "cost");
    c->asked = c->kept = true;
    return c->said && c->rules && c->with_model;
}

/* ---- one case ---- */

static void take_model(fl_ask_eval *ev, const struct fl_report *r, struct fl_ask_case *c)
{
    const struct fl_llm_report *l = r->llm;

    c->with_model = keep(ev, r->cause.id);
    c->with_action = keep(ev, r->action.id);
    if (!l)
        return;
    c->asked = true;
    c->said = keep(ev, l->cause);
    if (!l->cause)
        c->error = keep(ev, l->error);
    c->grounded = l->grounded;
    c->decided = l->decided;
    c->tokens_in = l->tokens_in > 0 ? l->tokens_in : 0;
    c->tokens_out = l->tokens_out > 0 ? l->tokens_out : 0;
    c->seconds = l->seconds;
    c->cost = l->cost > 0 ? l->cost : 0;
}

static int run(fl_ask_eval *ev, const char *dir, struct fl_ask_case *c, fl_err *err)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    int r;

    o.paths = &dir;
    o.npaths = 1;
    o.digest = true;
    r = fl_diagnose(ev->engine, &o, &d, err);
    if (r)
        return r;
    c->rules = keep(ev, fl_diagnosis_report(d)->cause.id);
    c->rules_action = keep(ev, fl_diagnosis_report(d)->action.id);
    if (ev->ask.memory)
        r = fl_diagnosis_consult(d, ev->ask.memory, err);
    if (!r)
        r = fl_diagnosis_ask(ev->engine, d, &ev->ask, err);
    if (!r)
        take_model(ev, fl_diagnosis_report(d), c);
    fl_diagnosis_free(d);
    return r;
}

static int one_case(fl_ask_eval *ev, const char *dir, const char *id, fl_err *err)
{
    const char *path = fl_file_join(&ev->arena, dir, id), *label_path;
    struct fl_ask_case c = {.id = keep(ev, id)};
    fl_json *label = NULL;
    fl_buf text;
    int r;

    label_path = path ? fl_file_join(&ev->arena, path, "label.json") : NULL;
    if (!label_path || !c.id)
        return fl_fail_nomem(err);
    if (!fl_file_exists(label_path))
        return FL_OK;
    fl_buf_init(&text, 1u << 20);
    r = fl_file_read(label_path, &text, err);
    if (!r)
        r = fl_json_parse(fl_buf_str(&text), label_path, &label, err);
    if (!r && !from_file(ev, &c)) {
        c = (struct fl_ask_case){.id = c.id};
        r = run(ev, path, &c, err);
    }
    if (!r) {
        c.expected = keep(ev, fl_json_z(fl_json_get(label, "cause")));
        judge(&c, label);
        r = ev->arena.failed ||
                    fl_grow((void **)&ev->cases, &ev->cap, ev->n + 1, sizeof(*ev->cases))
                ? fl_fail_nomem(err)
                : FL_OK;
    }
    if (!r)
        ev->cases[ev->n++] = c;
    if (!r && c.said && !c.kept)
        r = save(ev, err);
    fl_json_free(label);
    fl_buf_dispose(&text);
    return r;
}

/* ---- all of them ---- */

static int describe(fl_ask_eval *ev, fl_err *err)
{
    const struct fl_ask_config *c = ev->ask.config->llm;
    struct fl_prompt prompt;
    char data[4096], path[4200];
    int r = fl_data_dir(data, sizeof(data), err);
    fl_buf b;

    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/diagnose.md", data);
    r = fl_prompt_load(path, &ev->arena, &prompt, err);
    if (r)
        return r;
    fl_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < c->n; i++)
        fl_buf_addf(&b, "%s %s, ", c->endpoints[i].url,
                    c->endpoints[i].model ? c->endpoints[i].model : "");
    fl_buf_addf(&b, "votes %u, ask_below %g, %s", c->votes, c->ask_below,
                ev->ask.force ? "all" : "where unsure");
    ev->asked = fl_arena_z(&ev->arena, fl_buf_str(&b));
    fl_buf_dispose(&b);
    ev->prompt =
        fl_arena_f(&ev->arena, "%s version %u, hash %s", prompt.id, prompt.version, prompt.hash);
    return ev->arena.failed ? fl_fail_nomem(err) : FL_OK;
}

int fl_ask_eval_run(const fl_engine *e, const char *dir, const struct fl_ask_opts *ask,
                    const char *resume, void (*progress)(void *ctx, size_t done, size_t total),
                    void *ctx, fl_ask_eval **out, fl_err *err)
{
    fl_ask_eval *ev;
    const char **names = NULL;
    size_t n = 0;
    int r;

    if (!ask->config || !ask->config->nendpoints)
        return fl_fail(err, FL_EUSAGE,
                       "no language model is configured: llm.endpoints of the configuration names "
                       "none");
    ev = fl_calloc(1, sizeof(*ev));
    if (!ev)
        return fl_fail_nomem(err);
    fl_arena_init(&ev->arena);
    ev->engine = e;
    ev->ask = *ask;
    ev->resume = resume;
    r = describe(ev, err);
    if (!r)
        r = load(ev, err);
    if (!r)
        r = fl_file_list(dir, &ev->arena, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        if (progress)
            progress(ctx, i, n);
        r = one_case(ev, dir, names[i], err);
    }
    if (!r && !ev->n)
        r = fl_fail(err, FL_EINPUT, "%s: no case in it: a folder with its logs and a label.json",
                    dir);
    if (r) {
        fl_ask_eval_free(ev);
        return r;
    }
    *out = ev;
    return FL_OK;
}

void fl_ask_eval_free(fl_ask_eval *ev)
{
    if (!ev)
        return;
    fl_json_free(ev->old);
    fl_free(ev->cases);
    fl_arena_dispose(&ev->arena);
    fl_free(ev);
}

const struct fl_ask_case *fl_ask_eval_cases(const fl_ask_eval *ev, size_t *n)
{
    *n = ev->n;
    return ev->cases;
}

void fl_ask_eval_totals(const fl_ask_eval *ev, struct fl_ask_totals *out)
{
    struct fl_ask_totals t = {.cases = ev->n};

    for (size_t i = 0; i < ev->n; i++) {
        const struct fl_ask_case *c = &ev->cases[i];
        t.asked += c->asked;
        t.answered += c->said != NULL;
        t.kept += c->kept;
        t.grounded += c->grounded;
        t.decided += c->decided;
        t.rules += c->rules_ok;
        t.with_model += c->with_ok;
        t.said += c->said_ok;
        t.rules_answered += c->rules_ok && c->said;
        t.rules_action += c->rules_action_ok;
        t.with_action += c->with_action_ok;
        t.mended += c->with_ok && !c->rules_ok;
        t.spoilt += c->rules_ok && !c->with_ok;
        t.tokens_in += c->tokens_in;
        t.tokens_out += c->tokens_out;
        t.seconds += c->seconds;
        t.cost += c->cost;
    }
    *out = t;
}

int fl_ask_eval_json(const fl_ask_eval *ev, char **out, fl_err *err)
{
    fl_json *root = begin(ev), *list = fl_json_put_array(root, "cases"), *o;
    struct fl_ask_totals t;
    char *text = NULL;
    fl_buf b;
    int r;

    for (size_t i = 0; i < ev->n; i++)
        put_case(list, &ev->cases[i]);
    fl_ask_eval_totals(ev, &t);
    o = fl_json_put_object(root, "totals");
    fl_json_put_int(o, "cases", (int64_t)t.cases);
    fl_json_put_int(o, "asked", (int64_t)t.asked);
    fl_json_put_int(o, "answered", (int64_t)t.answered);
    fl_json_put_int(o, "kept", (int64_t)t.kept);
    fl_json_put_int(o, "grounded", (int64_t)t.grounded);
    fl_json_put_int(o, "decided", (int64_t)t.decided);
    fl_json_put_int(o, "rules", (int64_t)t.rules);
    fl_json_put_int(o, "with_model", (int64_t)t.with_model);
    fl_json_put_int(o, "said", (int64_t)t.said);
    fl_json_put_int(o, "rules_action", (int64_t)t.rules_action);
    fl_json_put_int(o, "with_action", (int64_t)t.with_action);
    fl_json_put_int(o, "mended", (int64_t)t.mended);
    fl_json_put_int(o, "spoilt", (int64_t)t.spoilt);
    fl_buf_init(&b, 64u << 20);
    r = fl_json_print(root, true, &b, err);
    fl_json_free(root);
    if (!r && !(text = fl_buf_take(&b)))
        r = fl_fail_nomem(err);
    fl_buf_dispose(&b);
    if (!r)
        *out = text;
    return r;
}
