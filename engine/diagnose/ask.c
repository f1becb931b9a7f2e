/*
 * When a language model is asked, and what becomes of its answer.
 *
 * The deterministic answer is complete before anything is sent, and whatever goes wrong afterwards
 * leaves it as it is: no endpoint, no answer, no JSON, an invented line, the time used up. The
 * model can change cause and action only where the rules said `unknown` or stayed under
 * `ask_below`, only to a known cause, and only when a line that it cites is there and can carry the
 * claim; otherwise its answer is shown as an opinion. The action follows from the policy for that
 * cause, and hosts are excluded only when a cited line names them.
 *
 * With several votes the endpoints are asked one after the other and must agree on the cause;
 * a disagreement is told and decides nothing.
 */
#include "diagnose/ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/engine.h"

#define CITATIONS 20
#define CLAIM_MOST 0.75 /* what a model says of its own certainty is not calibrated */
#define BUDGET_SECONDS 240
#define WARMER 0.7 /* temperature of a second answer by the same model */

struct answer {
    struct fl_asking *a;
    struct fl_llm_report *out;
};

/* Whether numbers can show this cause: a falling throughput shows no broken disk. */
static bool numbers_show(const struct answer *x, const char *cause)
{
    const struct fl_ruleset *rs = x->a->d->job.rules;
    int i = fl_ruleset_cause(rs, fl_str_c(cause));

    return i >= 0 && rs->causes[i].timeline;
}

/* Grounds every citation of a verdict; counts those that ground. */
static int ground_all(struct answer *x, const struct fl_said *v, struct fl_citation *out,
                      size_t *grounding, fl_buf *complaints, fl_err *err)
{
    *grounding = 0;
    for (size_t i = 0; i < v->ncitations && i < CITATIONS; i++) {
        const struct fl_said_citation *c = &v->citations[i];
        const char *file = fl_asking_restore(x->a, c->file),
                   *quote = fl_asking_restore(x->a, c->quote);
        struct fl_grounding g;
        int r = fl_ground(x->a, file, c->line, quote, &g, err);
        bool grounds;
        if (r)
            return r;
        grounds =
            g.mark <= FL_MARK_NEARBY && g.carries && (!g.numbers || numbers_show(x, v->cause));
        if (out)
            out[i] = (struct fl_citation){.at = g.mark <= FL_MARK_ELSEWHERE
                                                    ? g.at
                                                    : (struct fl_place){file, (uint64_t)c->line},
                                          .quote = quote,
                                          .text = g.text.p,
                                          .mark = fl_ground_word(g.mark),
                                          .grounds = grounds};
        *grounding += grounds;
        if (complaints && g.mark == FL_MARK_NOT_FOUND)
            fl_buf_addf(complaints, "- The quote of %s:%lld does not stand in the log.\n", c->file,
                        (long long)c->line);
        else if (complaints && !grounds)
            fl_buf_addf(complaints, "- %s:%lld does not show this by itself.\n", c->file,
                        (long long)c->line);
    }
    return FL_OK;
}

static int check_verdict(void *ctx, const struct fl_said *v, fl_buf *complaints, fl_err *err)
{
    struct answer *x = ctx;
    size_t grounding;
    int r;

    if (strcmp(v->cause, "unknown") == 0 || strcmp(v->cause, "none") == 0)
        return 0;
    if (!v->ncitations) {
        fl_buf_addz(complaints, "- No line is cited.\n");
        return 1;
    }
    r = ground_all(x, v, NULL, &grounding, complaints, err);
    if (r)
        return r;
    if (grounding) {
        fl_buf_clear(complaints);
        return 0;
    }
    return 1;
}

/* Copies what must outlive the asking. */
static const char *keep(struct answer *x, const char *text)
{
    return text ? fl_arena_z(&x->a->d->job.arena, fl_str_c(text)) : NULL;
}

static int take_verdict(struct answer *x, const struct fl_llm_verdict *v, fl_err *err)
{
    struct fl_llm_report *out = x->out;
    struct fl_citation *citations;
    size_t grounding = 0, n = v->verdict.ncitations < CITATIONS ? v->verdict.ncitations : CITATIONS;
    int r;

    citations = fl_arena_alloc(&x->a->d->job.arena, (n + 1) * sizeof(*citations));
    if (!citations)
        return fl_fail_nomem(err);
    r = ground_all(x, &v->verdict, citations, &grounding, NULL, err);
    if (r)
        return r;
    for (size_t i = 0; i < n; i++) {
        struct fl_citation *c = &citations[i];
        c->at.file = keep(x, c->at.file);
        c->quote = keep(x, c->quote);
        c->text = keep(x, c->text);
    }
    out->citations = citations;
    out->ncitations = n;
    out->grounded = grounding > 0;
    out->cause = keep(x, v->verdict.cause);
    out->class_name = keep(x, v->verdict.class_name);
    out->summary = keep(x, fl_asking_restore(x->a, v->verdict.summary));
    out->action = keep(x, v->verdict.action);
    out->confidence = v->verdict.confidence;
    return x->a->d->job.arena.failed ? fl_fail_nomem(err) : FL_OK;
}

static void take_figures(struct answer *x, const struct fl_llm_answer *a)
{
    struct fl_llm_report *out = x->out;

    if (a->url[0]) {
        out->endpoint = keep(x, a->url);
        out->model = keep(x, a->model);
    }
    out->prompt = keep(x, a->prompt);
    out->tokens_in = a->tokens_in;
    out->tokens_out = a->tokens_out;
    out->seconds = a->seconds;
    out->cost = a->cost;
    if (a->failures.n)
        out->passed_over = keep(x, a->failures.p);
}

/* Asks one endpoint, or all in order. */
static int ask_one(struct answer *x, fl_llm *c, int endpoint, double temperature, double deadline,
                   fl_err *err)
{
    struct fl_llm_message messages[] = {{FL_LLM_SYSTEM, fl_buf_str(&x->a->system)},
                                        {FL_LLM_USER, fl_buf_str(&x->a->user)}};
    struct fl_llm_question q = {.ask = FL_LLM_ASK_INIT,
                                .repair = &x->a->repair,
                                .terms = &x->a->terms,
                                .check = check_verdict,
                                .check_ctx = x};
    struct fl_llm_verdict v;
    int r;

    q.ask.messages = messages;
    q.ask.nmessages = 2;
    q.ask.schema = fl_buf_str(&x->a->schema);
    q.ask.schema_name = "diagnosis";
    q.ask.deadline = deadline;
    q.ask.temperature = temperature;
    q.ask.endpoint = endpoint;
    q.ask.prompt = &x->a->prompt;
    fl_llm_verdict_init(&v);
    r = fl_llm_judge(c, &q, &x->a->arena, &v, err);
    take_figures(x, &v.answer);
    if (!r)
        r = take_verdict(x, &v, err);
    fl_llm_verdict_dispose(&v);
    return r;
}

/* The hosts that a grounded citation names, of those that the log knows. */
static void cited_hosts(const struct answer *x, struct fl_location *where)
{
    const struct fl_places *p = &x->a->d->job.places;

    *where = (struct fl_location){.nhosts = 0};
    for (size_t i = 0; i < x->out->ncitations; i++)
        for (size_t h = 0;
             x->out->citations[i].grounds && h < p->nhosts && where->nhosts < FL_PLACES; h++) {
            int32_t real = fl_places_real_host(p, (int32_t)h);
            bool there = false;
            if (p->hosts[h].no_host || p->hosts[h].name.n < 3 || !x->out->citations[i].text ||
                !fl_str_has(fl_str_c(x->out->citations[i].text), p->hosts[h].name))
                continue;
            for (size_t k = 0; k < where->nhosts; k++)
                there |= where->hosts[k] == real;
            if (!there)
                where->hosts[where->nhosts++] = real;
        }
}

static bool listed(const struct fl_evidence *v, size_t n, const struct fl_place *at)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].at.line == at->line && v[i].at.file && at->file &&
            strcmp(v[i].at.file, at->file) == 0)
            return true;
    return false;
}

/* The cited lines in front of what the rules had. */
static int show_lines(struct answer *x, fl_err *err)
{
    struct fl_report *r = &x->a->d->report;
    size_t n = 0;
    struct fl_evidence *v =
        fl_arena_alloc(&x->a->d->job.arena, (r->nevidence + x->out->ncitations + 1) * sizeof(*v));

    if (!v)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < x->out->ncitations; i++) {
        const struct fl_citation *c = &x->out->citations[i];
        if (!c->grounds || listed(v, n, &c->at))
            continue;
        v[n] = (struct fl_evidence){.at = c->at,
                                    .text = c->text,
                                    .role = n ? "confirm" : "root",
                                    .cause = x->out->cause,
                                    .rank = -1};
        n++;
    }
    for (size_t i = 0; i < r->nevidence; i++)
        if (!listed(v, n, &r->evidence[i].at))
            v[n++] = r->evidence[i];
    r->evidence = v;
    r->nevidence = n;
    return FL_OK;
}

/* Why, in front of what the rules found, which was not enough. */
static int give_reason(struct answer *x, fl_err *err)
{
    struct fl_report *r = &x->a->d->report;
    fl_arena *a = &x->a->d->job.arena;
    const char **v = fl_arena_alloc(a, (r->nreasons + 1) * sizeof(*v));
    size_t grounds = 0;

    if (!v)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < x->out->ncitations; i++)
        grounds += x->out->citations[i].grounds;
    v[0] = fl_arena_f(a,
                      "%s named it; %zu of %zu lines that it cites are in the log and show a "
                      "failure; the rules alone said %s",
                      x->out->model, grounds, x->out->ncitations, x->out->rules_said);
    for (size_t i = 0; i < r->nreasons; i++)
        v[i + 1] = r->reasons[i];
    r->reasons = v;
    r->nreasons++;
    return v[0] ? FL_OK : fl_fail_nomem(err);
}

/* The answer becomes the diagnosis, or nothing of it does. */
static int become(struct answer *x, fl_err *err)
{
    struct fl_diagnosis *d = x->a->d;
    const struct fl_ruleset *rs = d->job.rules;
    int cause = fl_ruleset_cause(rs, fl_str_c(x->out->cause));
    struct fl_candidate_cause *w;
    struct fl_report *r = &d->report;

    if (cause < 0 || cause == rs->unknown || cause == rs->none)
        return FL_OK;
    x->out->decided = true;
    if (d->verdict.outcome == FL_OUTCOME_DIAGNOSED && strcmp(r->cause.id, x->out->cause) == 0)
        return FL_OK; /* it says what the rules said */
    w = fl_arena_alloc(&d->job.arena, sizeof(*w));
    if (!w)
        return fl_fail_nomem(err);
    w->cause = (uint16_t)cause;
    w->attempt = d->verdict.attempt;
    d->verdict.outcome = FL_OUTCOME_DIAGNOSED;
    d->verdict.winner = w;
    d->verdict.decided_by = "llm";
    d->verdict.confidence = x->out->confidence < CLAIM_MOST ? x->out->confidence : CLAIM_MOST;
    cited_hosts(x, &d->where);
    fl_decide(&d->job, &d->verdict, &d->where, &d->decision);
    r->outcome = "diagnosed";
    r->cause.id = rs->causes[cause].id;
    r->cause.class_name = fl_class_word(rs->causes[cause].class);
    r->cause.title = rs->causes[cause].title;
    r->cause.confidence = d->verdict.confidence;
    r->cause.decided_by = "llm";
    r->cause.rule = NULL;
    r->cause.summary = x->out->summary;
    fl_report_place(&d->job, &d->where, r);
    fl_report_action(&d->job, &d->decision, r);
    return give_reason(x, err) ? FL_ENOMEM : show_lines(x, err);
}

/* The tokens, the time and the cost of all votes are told, not those of the last. */
static void add_up(struct fl_llm_report *sum, const struct fl_llm_report *other)
{
    sum->seconds += other->seconds;
    if (sum->tokens_in >= 0 && other->tokens_in >= 0)
        sum->tokens_in += other->tokens_in;
    if (sum->tokens_out >= 0 && other->tokens_out >= 0)
        sum->tokens_out += other->tokens_out;
    if (sum->cost >= 0 && other->cost >= 0)
        sum->cost += other->cost;
}

/* One more answer beside those before it. Of two that agree, one whose lines are there is shown. */
static void compare(struct answer *x, const struct fl_llm_report *before)
{
    struct fl_llm_report now = *x->out;

    if (strcmp(before->cause, now.cause) != 0) {
        x->out->disagreement = fl_arena_f(&x->a->d->job.arena, "%s says %s, %s says %s",
                                          before->model, before->cause, now.model, now.cause);
        x->out->grounded = false;
    } else if (before->grounded) {
        *x->out = *before;
    }
    add_up(x->out, before->grounded && !x->out->disagreement ? &now : before);
}

static int decide(struct answer *x, fl_err *err)
{
    struct fl_diagnosis *d = x->a->d;
    struct fl_verdict verdict = d->verdict;
    struct fl_location where = d->where;
    struct fl_decision decision = d->decision;
    struct fl_report report = d->report;
    int r = become(x, err);

    if (!r && d->job.arena.failed)
        r = fl_fail_nomem(err);
    if (r) {
        d->verdict = verdict;
        d->where = where;
        d->decision = decision;
        d->report = report;
        x->out->decided = false;
    }
    return r;
}

/* Endpoints are asked in their order until as many answers have come as were asked for. Where there
 * are fewer endpoints than votes they are asked again, warmer: the same answer twice is no vote.
 * One that has failed is not asked again. */
static int ask_all(struct answer *x, fl_llm *c, const struct fl_ask_config *config, double deadline,
                   fl_err *err)
{
    bool *down = fl_arena_alloc(&x->a->arena, config->n * sizeof(*down));
    const struct fl_llm_report nothing = *x->out;
    fl_err first = {0};
    int failed = FL_OK;
    size_t left = config->n;
    unsigned got = 0;

    if (config->votes < 2)
        return ask_one(x, c, -1, 0, deadline, err);
    if (!down)
        return fl_fail_nomem(err);
    for (size_t i = 0; left && got < config->votes && !x->out->disagreement; i++) {
        struct fl_llm_report before = *x->out;
        size_t k = i % config->n;
        fl_err why = {0};
        int r;
        if (down[k])
            continue;
        *x->out = nothing;
        r = ask_one(x, c, (int)k, i < config->n ? 0 : WARMER, deadline, &why);
        if (r == FL_ENOMEM)
            return fl_fail_nomem(err);
        if (r) {
            *x->out = before;
            failed = r;
            down[k] = true;
            left--;
            first = first.msg[0] ? first : why;
        } else if (got++) {
            compare(x, &before);
        }
    }
    if (!got)
        return fl_fail(err, failed, "%s", first.msg);
    if (first.msg[0])
        x->out->passed_over = keep(x, first.msg);
    return x->a->d->job.arena.failed ? fl_fail_nomem(err) : FL_OK;
}

/* Why an answer that came is not used, in a sentence; NULL when it is, or when it claims nothing.
 */
static const char *unused(const struct answer *x)
{
    const struct fl_llm_report *l = x->out;
    size_t there = 0;

    if (l->disagreement)
        return fl_arena_f(&x->a->d->job.arena, "the models disagree, which decides nothing: %s",
                          l->disagreement);
    if (l->grounded || !l->cause || !strcmp(l->cause, "unknown") || !strcmp(l->cause, "none"))
        return NULL;
    for (size_t i = 0; i < l->ncitations; i++)
        there += !strcmp(l->citations[i].mark, "exact") || !strcmp(l->citations[i].mark, "nearby");
    return fl_arena_f(&x->a->d->job.arena,
                      "%s answered %s, and %s; that is an opinion and changes nothing", l->endpoint,
                      l->cause,
                      !l->ncitations ? "cites no line"
                      : there        ? "the lines that it cites do not show it"
                                     : "the lines that it cites are not in the log");
}

static const char *rules_said(const struct fl_diagnosis *d)
{
    return d->report.outcome[0] == 'd'   ? d->report.cause.id
           : d->report.outcome[0] == 'u' ? "unknown"
                                         : "none";
}

static int ask(struct fl_diagnosis *d, const fl_engine *e, const struct fl_ask_config *config,
               const struct fl_ask_opts *o, struct fl_llm_report *out, bool may_decide, fl_err *err)
{
    struct fl_llm_opts lo = {
        .endpoints = config->endpoints, .nendpoints = config->n, .cancel = o->cancel};
    struct answer x = {.out = out};
    struct fl_asking asking;
    fl_llm *c = NULL;
    struct fl_wire w;
    fl_err why = {0};
    double budget =
               (o->seconds > 0 ? o->seconds : BUDGET_SECONDS) - (double)d->report.elapsed_ms / 1000,
           start = fl_http_world()->now(fl_http_world()->ctx);
    int r = fl_wire_open(&w, o->record, o->replay, &why), made;

    made = r ? r : fl_asking_new(e, d, config, o->memory, w.seed, &asking, &why);
    r = made;
    if (!r && o->replay)
        r = fl_wire_without_keys(&d->job.arena, &lo, &why);
    if (!r) {
        x.a = &asking;
        lo.transport = w.transport;
        r = fl_llm_new(&lo, &c, &why);
    }
    if (!r)
        r = ask_all(&x, c, config, start + budget, &why);
    if (!r)
        out->error = unused(&x);
    if (r && r != FL_ENOMEM) {
        out->error = fl_arena_z(&d->job.arena, fl_str_c(why.msg));
        r = FL_OK;
    } else if (!r && out->grounded && may_decide) {
        r = decide(&x, &why);
    }
    fl_llm_free(c);
    if (!made)
        fl_asking_dispose(&asking);
    fl_wire_close(&w);
    if (r && !out->error)
        out->error = "memory ran out while the model was asked";
    return r ? fl_fail(err, r, "%s", why.msg) : FL_OK;
}

static bool is_unsure(const fl_diagnosis *d, const struct fl_ask_config *c)
{
    return d->verdict.outcome == FL_OUTCOME_UNKNOWN ||
           (d->verdict.outcome == FL_OUTCOME_DIAGNOSED && d->verdict.confidence < c->ask_below);
}

bool fl_diagnosis_wants_model(const fl_diagnosis *d, const struct fl_config *c, bool force)
{
    return c && c->llm && c->llm->n && (force || is_unsure(d, c->llm));
}

int fl_diagnosis_ask(const fl_engine *e, fl_diagnosis *d, const struct fl_ask_opts *o, fl_err *err)
{
    const struct fl_ask_config *config = o->config ? o->config->llm : NULL;
    bool unsure = config && is_unsure(d, config);
    struct fl_llm_report *out;
    char shown[300];

    if (!config || !config->n || (!unsure && !o->force) || d->report.llm)
        return FL_OK;
    if (!d->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what is sent; set "
                       "fl_diagnose_opts.digest");
    out = fl_arena_alloc(&d->job.arena, sizeof(*out));
    if (!out)
        return fl_fail_nomem(err);
    fl_http_show_url(config->endpoints[0].url, shown, sizeof(shown));
    *out = (struct fl_llm_report){.tokens_in = -1,
                                  .tokens_out = -1,
                                  .cost = -1,
                                  .rules_said = rules_said(d),
                                  .endpoint = fl_arena_z(&d->job.arena, fl_str_c(shown))};
    if (!out->endpoint)
        return fl_fail_nomem(err);
    d->report.llm = out;
    return ask(d, e, config, o, out, unsure, err);
}

int fl_diagnosis_prompt(const fl_engine *e, fl_diagnosis *d, const struct fl_config *c,
                        fl_memory *m, char **out, size_t *tokens, fl_err *err)
{
    struct fl_ask_config plain = {.ask_below = 0.8, .votes = 1, .redact = true};
    struct fl_asking a;
    fl_buf b;
    int r = fl_asking_new(e, d, c && c->llm ? c->llm : &plain, m, fl_llm_seed(fl_http_world()), &a,
                          err);

    if (r)
        return r;
    fl_buf_init(&b, 16u << 20);
    fl_buf_addz(&b, "[system]\n");
    fl_buf_add(&b, fl_buf_str(&a.system));
    fl_buf_addz(&b, "\n[user]\n");
    fl_buf_add(&b, fl_buf_str(&a.user));
    *tokens = a.tokens;
    r = fl_buf_check(&b, "the prompt", err);
    *out = r ? NULL : fl_buf_take(&b);
    if (!r && !*out)
        r = fl_fail_nomem(err);
    fl_buf_dispose(&b);
    fl_asking_dispose(&a);
    return r;
}
