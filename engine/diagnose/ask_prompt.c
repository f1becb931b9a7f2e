/*
 * What is sent to a language model, complete before the first byte leaves.
 *
 * The digest, the nearest incidents and what the rules said are redacted as one text, since what
 * one line tells about a name holds for all; then they are put into the prompt, the log between two
 * marks that nobody could foresee. A prompt that has more tokens than its budget, or than the
 * endpoint's context has room for, is made again with a smaller digest.
 */
#include <limits.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/ask.h"
#include "diagnose/aside.h"
#include "diagnose/engine.h"

#define NEIGHBOURS 3
#define ANSWER 2000 /* tokens, where an endpoint says nothing else */

static size_t count_tokens(void *ctx, fl_str text)
{
    const fl_tokenizer *t = fl_aside_tokens(((const fl_engine *)ctx)->aside);
    size_t n = 0;

    if (!t)
        return (text.n + 1) / 2;
    while (text.n)
        n += fl_tokenizer_count(t, fl_str_cut(&text, '\n')) + 1;
    return n;
}

static int load_prompts(struct fl_asking *a, const char *name, fl_err *err)
{
    char data[4096], path[4200];
    int r = fl_data_dir(data, sizeof(data), err);

    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/%s.md", data, name);
    r = fl_prompt_load(path, &a->arena, &a->prompt, err);
    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/prompts/repair.md", data);
    return fl_prompt_load(path, &a->arena, &a->repair, err);
}

static int make_terms(struct fl_asking *a, fl_err *err)
{
    static const char *const actions[] = {
        "restart",     "wait_and_retry", "cordon_and_restart", "reset_gpu",  "rollback_and_skip",
        "investigate", "fix_code",       "fix_config",         "free_space", "raise_limit",
        "none"};
    const struct fl_ruleset *rs = a->d->job.rules;
    struct fl_llm_cause *v = fl_arena_alloc(&a->arena, (rs->ncauses + 1) * sizeof(*v));

    if (!v)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < rs->ncauses; i++)
        v[i] = (struct fl_llm_cause){rs->causes[i].id, fl_class_word(rs->causes[i].class),
                                     rs->causes[i].title};
    a->terms = (struct fl_llm_terms){v, rs->ncauses, actions, sizeof(actions) / sizeof(*actions)};
    return FL_OK;
}

/* What the rules made of it, in words. */
static void put_rules(const struct fl_asking *a, fl_buf *out)
{
    const struct fl_report *r = &a->d->report;

    if (r->outcome[0] == 'u')
        fl_buf_addz(out, "Something failed; no rule knows what.\n");
    else
        fl_buf_addf(out, "%s (%s), confidence %.2f: %s\n", r->cause.id, r->cause.title,
                    r->cause.confidence, r->cause.summary ? r->cause.summary : "");
    for (size_t i = 0; i < r->nreasons && i < 4; i++)
        fl_buf_addf(out, "- %s\n", r->reasons[i]);
    for (size_t i = 0; i < r->nalternatives && i < 3; i++)
        fl_buf_addf(out, "Considered: %s (%s)\n", r->alternatives[i].id,
                    r->alternatives[i].why ? r->alternatives[i].why : "");
    for (size_t i = 0; i < r->timeline.nnotes; i++)
        fl_buf_addf(out, "The steps: %s\n", r->timeline.notes[i]);
}

static void put_neighbours(const struct fl_asking *a, fl_buf *out)
{
    size_t n = a->neighbours ? fl_neighbours_count(a->neighbours) : 0;

    for (size_t i = 0; i < n && i < NEIGHBOURS; i++) {
        const struct fl_neighbour *x = fl_neighbours_get(a->neighbours, i);
        fl_buf_addf(out, "- %s: %s. %s", x->cause, x->title, x->explanation);
        if (x->nmatched)
            fl_buf_addf(out, " Its line: %.300s", x->matched[0].incident_text);
        fl_buf_addc(out, '\n');
    }
    if (!n)
        fl_buf_addz(out, "none\n");
}

static int render(struct fl_asking *a, size_t budget, uint64_t seed, fl_err *err)
{
    fl_buf text, causes, actions;
    fl_str rest, digest, near, rules;
    char fence[24];
    int r;

    fl_digest_free(a->page);
    a->page = NULL;
    r = fl_digest_build(a->engine, a->d, budget, &a->page, err);
    if (r)
        return r;
    fl_buf_init(&text, 64u << 20);
    fl_buf_init(&causes, 1u << 20);
    fl_buf_init(&actions, 1u << 16);
    fl_buf_addz(&text, fl_digest_text(a->page));
    fl_buf_addz(&text, FL_HIDE_PART);
    put_neighbours(a, &text);
    fl_buf_addz(&text, FL_HIDE_PART);
    put_rules(a, &text);
    r = fl_buf_check(&text, "the prompt", err);
    if (!r)
        r = fl_hide(a->redactor, &a->d->job, &text, err);
    rest = fl_buf_str(&text);
    digest = fl_hide_next(&rest);
    near = fl_hide_next(&rest);
    rules = fl_hide_next(&rest);
    fl_prompt_fence(seed, digest, fence);
    fl_prompt_causes(&a->terms, &causes);
    fl_prompt_actions(&a->terms, &actions);
    fl_buf_clear(&a->system);
    fl_buf_clear(&a->user);
    if (!r) {
        struct fl_prompt_value v[] = {{"fence", fl_str_c(fence)},
                                      {"digest", digest},
                                      {"neighbours", near},
                                      {a->prompt.schema.n ? "rules" : "verdict", rules},
                                      {"causes", fl_buf_str(&causes)},
                                      {"actions", fl_buf_str(&actions)}};
        size_t n = a->prompt.schema.n ? sizeof(v) / sizeof(*v) : 4;
        r = fl_prompt_render(&a->prompt, v, n, count_tokens, (void *)(uintptr_t)a->engine,
                             &a->system, &a->user, &a->tokens, err);
    }
    fl_buf_dispose(&text);
    fl_buf_dispose(&causes);
    fl_buf_dispose(&actions);
    return r;
}

/* Whether it leaves room for the answer in the contexts of those that are asked first. Their own
 * tokens are not known: the larger of two counts is taken. One that is passed on to later may still
 * find it too long, and says so. */
static bool fits(const struct fl_asking *a)
{
    size_t bytes = (a->system.n + a->user.n + 3) / 4, n = a->tokens > bytes ? a->tokens : bytes;

    for (size_t i = 0; i < a->config->n && i < a->config->votes; i++) {
        const struct fl_llm_endpoint *e = &a->config->endpoints[i];
        if (e->context && n + 32 + (e->max_tokens ? e->max_tokens : ANSWER) > e->context)
            return false;
    }
    return true;
}

static int new_asking(const fl_engine *e, struct fl_diagnosis *d, const struct fl_ask_config *c,
                      fl_memory *m, uint64_t seed, const char *prompt, unsigned most,
                      struct fl_asking *out, fl_err *err)
{
    static const size_t budgets[] = {4000, 3000, 2200, 1500, 1000, 500};
    struct fl_asking *a = out;
    fl_err why = {0};
    int r;

    *a = (struct fl_asking){.engine = e, .d = d, .config = c};
    fl_arena_init(&a->arena);
    fl_buf_init(&a->system, 8u << 20);
    fl_buf_init(&a->user, 8u << 20);
    fl_buf_init(&a->schema, 1u << 20);
    r = load_prompts(a, prompt, err);
    if (!r && most < a->prompt.token_budget)
        a->prompt.token_budget = most;
    if (!r)
        r = make_terms(a, err);
    if (!r)
        r = fl_prompt_schema(&a->prompt, &a->terms, &a->schema, err);
    a->neighbours = d->neighbours;
    if (!r && m && !a->neighbours)
        r = fl_search_job(m, d, NULL, &a->neighbours, err);
    if (!r)
        r = fl_hide_open(c, c->endpoints, c->n, &d->job, &a->redactor, err);
    for (size_t i = 0; !r && i < sizeof(budgets) / sizeof(*budgets); i++) {
        why = (fl_err){0};
        r = render(a, budgets[i], seed, &why);
        if (r != FL_ELIMIT && (r || fits(a)))
            break;
        r = !r || i + 1 < sizeof(budgets) / sizeof(*budgets) ? FL_OK : FL_ELIMIT;
    }
    if (r && why.msg[0])
        fl_fail(err, r, "%s", why.msg);
    if (r)
        fl_asking_dispose(a);
    return r;
}

int fl_asking_new(const fl_engine *e, struct fl_diagnosis *d, const struct fl_ask_config *c,
                  fl_memory *m, uint64_t seed, struct fl_asking *out, fl_err *err)
{
    return new_asking(e, d, c, m, seed, "diagnose", UINT_MAX, out, err);
}

int fl_asking_new_talk(const fl_engine *e, struct fl_diagnosis *d, const struct fl_ask_config *c,
                       fl_memory *m, uint64_t seed, unsigned most, struct fl_asking *out,
                       fl_err *err)
{
    return new_asking(e, d, c, m, seed, "chat", most, out, err);
}

void fl_asking_dispose(struct fl_asking *a)
{
    fl_digest_free(a->page);
    if (a->neighbours != a->d->neighbours)
        fl_neighbours_free(a->neighbours);
    fl_redactor_free(a->redactor);
    fl_buf_dispose(&a->system);
    fl_buf_dispose(&a->user);
    fl_buf_dispose(&a->schema);
    fl_arena_dispose(&a->arena);
}

const char *fl_asking_restore(struct fl_asking *a, const char *text)
{
    const char *out;
    fl_buf b;

    if (!a->redactor || !text)
        return text;
    fl_buf_init(&b, 16u << 20);
    if (fl_restore(a->redactor, fl_str_c(text), &b, NULL)) {
        fl_buf_dispose(&b);
        return text;
    }
    out = fl_arena_z(&a->arena, fl_buf_str(&b));
    fl_buf_dispose(&b);
    return out ? out : text;
}
