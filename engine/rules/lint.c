/*
 * Lint: what loads but should not ship.
 *
 * Only what can be seen without running the pipeline: whether a hit resolves to its own rule is for
 * `rules test`, which has the whole path of a line. The probe for backtracking uses a rule's own
 * first hits, because a line that stops early never shows what the rest of a pattern can do.
 */
#include "rules/rules.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "rules/parts.h"
#include "base/alloc.h"

/* Steps on a line of about 200 bytes. A quadratic pattern needs tens of thousands, A.*B.*C up to a
 * million; nested repetition passes any limit. */
#define PROBE_LIMIT 3000000
#define PROBE_HITS 2

struct lint {
    const struct fl_ruleset *rs;
    fl_match_scratch *scratch;
    struct fl_findings found;
};

void fl_found(struct fl_findings *f, const char *text)
{
    f->report(f->ctx, text);
    f->n++;
}

void fl_found_at(struct fl_findings *f, const char *file, unsigned line, const char *fmt, ...)
{
    char text[1400];
    size_t n = (size_t)snprintf(text, sizeof(text), "%.300s:%u: ", file, line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - n, fmt, ap);
    va_end(ap);
    fl_found(f, text);
}

static void say_where(struct lint *l, const struct fl_pattern *p, const char *what)
{
    char text[1024];

    snprintf(text, sizeof(text), "%.300s: rule '%.100s': %s: %.*s", p->where,
             l->rs->rules[p->id].id, what, FL_FMT(fl_str_sub(p->regex, 0, 300)));
    fl_found(&l->found, text);
}

static int lint_pattern(struct lint *l, const struct fl_rule *rule, const struct fl_pattern *p,
                        fl_err *err)
{
    fl_regex *re = NULL;
    fl_err problem = {0};
    int r = fl_regex_new(p->regex, p->icase, p->where, &re, &problem);

    if (r == FL_ERULE) {
        fl_found(&l->found, problem.msg);
        return FL_OK;
    }
    if (r)
        return fl_fail(err, r, "%s", problem.msg);
    if (fl_regex_match(re, l->scratch, FL_S(""), NULL))
        say_where(l, p, "the pattern matches an empty line");
    fl_regex_free(re);
    if (!fl_pattern_is_regular(p->regex))
        say_where(l, p, "Vectorscan and ripgrep read this pattern differently or not at all");
    if (fl_pattern_has_caret(p->regex))
        say_where(l, p, "no '^' in a pattern; write 'anchored: true'");
    r = fl_pattern_probe(p, rule->hits, rule->nhits < PROBE_HITS ? rule->nhits : PROBE_HITS,
                         PROBE_LIMIT, &problem);
    if (r == FL_ELIMIT) {
        fl_found(&l->found, problem.msg);
    } else if (r < 0) {
        return fl_fail(err, r, "%s", problem.msg);
    }
    return FL_OK;
}

/* Each {name} of the summary must be a group of at least one of the rule's patterns. */
static void lint_summary(struct lint *l, const struct fl_rule *rule)
{
    fl_str rest = fl_str_c(rule->summary), name;

    while (rest.n) {
        bool found = false;
        ptrdiff_t at = fl_str_find_c(rest, '{');
        if (at < 0)
            return;
        rest = fl_str_from(rest, (size_t)at + 1);
        if (fl_str_find_c(rest, '}') < 0) {
            fl_found_at(&l->found, rule->file, rule->line,
                        "rule '%s': the summary has a '{' without '}'", rule->id);
            return;
        }
        name = fl_str_cut(&rest, '}');
        for (uint32_t i = 0; i < rule->npatterns && !found; i++)
            found = fl_pattern_has_group(&l->rs->patterns[rule->pattern + i], name);
        if (!found)
            fl_found_at(&l->found, rule->file, rule->line,
                        "rule '%s': no pattern has the group {%.*s} of the "
                        "summary",
                        rule->id, FL_FMT(fl_str_sub(name, 0, 60)));
    }
}

static int lint_rule(struct lint *l, const struct fl_rule *rule, fl_err *err)
{
    int r = FL_OK;

    if (rule->nhits == 0)
        fl_found_at(&l->found, rule->file, rule->line,
                    "rule '%s' has no example; add one under hits:", rule->id);
    if (rule->nmisses == 0)
        fl_found_at(&l->found, rule->file, rule->line,
                    "rule '%s' has no near-miss; add one under misses:", rule->id);
    if (!rule->source)
        fl_found_at(&l->found, rule->file, rule->line,
                    "rule '%s' has no source; say where the wording is from", rule->id);
    lint_summary(l, rule);
    for (uint32_t i = 0; i < rule->npatterns && r == FL_OK; i++)
        r = lint_pattern(l, rule, &l->rs->patterns[rule->pattern + i], err);
    return r;
}

static void lint_causes(struct lint *l)
{
    const struct fl_ruleset *rs = l->rs;

    for (size_t i = 0; i < rs->ncauses; i++) {
        const struct fl_cause *c = &rs->causes[i];
        bool covered = i == rs->unknown || i == rs->none || c->timeline;
        for (size_t k = 0; k < rs->nrules && !covered; k++)
            covered = rs->rules[k].cause == i && rs->rules[k].maturity >= FL_TEST &&
                      rs->rules[k].maturity != FL_RETIRED && rs->rules[k].role <= FL_ROLE_SYMPTOM;
        if (!covered)
            fl_found_at(&l->found, c->file, c->line, "cause '%s' has no root or symptom rule",
                        c->id);
    }
}

int fl_ruleset_lint(const struct fl_ruleset *rs, fl_lint_fn report, void *ctx, fl_err *err)
{
    struct lint l = {.rs = rs, .found = {.report = report, .ctx = ctx}};
    int r = fl_match_scratch_new(NULL, &l.scratch, err);

    for (size_t i = 0; i < rs->nrules && r == FL_OK; i++)
        if (rs->rules[i].maturity != FL_RETIRED)
            r = lint_rule(&l, &rs->rules[i], err);
    if (r == FL_OK)
        lint_causes(&l);
    fl_match_scratch_free(l.scratch);
    return r ? r : l.found.n;
}
