/*
 * Filters tested on their own lines and against the failure rules.
 *
 * An example is one line, since a filter sees one line. Whether a filter's patterns match is asked
 * of PCRE2 alone first, so that a filter that works only because another one has the line is found,
 * and a draft can be tested too; then the whole lot is asked for the verdict. What no drop filter
 * may take is the text of every failure that the rules know: each line of each of their hits.
 */
#include "rules/filter.h"

#include <stdio.h>
#include <stdlib.h>

#include "rules/parts.h"
#include "base/alloc.h"

#define PROBE_LIMIT 3000000
#define MIN_TAKES 2
#define MIN_DROP_MISSES 1

struct tester {
    const fl_filters *f;
    const struct fl_ruleset *rs;
    fl_match_scratch *s;
    struct fl_filters_tally *tally;
    fl_buf line;
    struct fl_findings found;
};

/* The whole lot's verdict on one line. */
static int verdict_on(struct tester *t, fl_str text, const struct fl_filter **out, fl_err *err)
{
    uint16_t v = 0;
    int r;

    fl_buf_clear(&t->line);
    fl_buf_add(&t->line, text);
    fl_buf_addz(&t->line, "\n");
    r = fl_buf_check(&t->line, "an example line", err);
    if (r == FL_OK)
        r = fl_filters_block(t->f, t->s, fl_buf_str(&t->line), &v, 1, err);
    if (r == FL_OK)
        *out = v ? &t->rs->filters[v - 1] : NULL;
    return r;
}

static bool matches(struct tester *t, const struct fl_filter *f, fl_str text)
{
    bool found = false;

    for (size_t i = 0; i < f->nnots; i++)
        if (fl_regex_match(f->nots[i], t->s, text, NULL))
            return false;
    for (uint32_t k = 0; k < f->npatterns && !found; k++)
        found = fl_match_confirm(fl_filters_matcher(t->f), t->s, f->pattern + k, text, 0, NULL);
    return found;
}

/* Each pattern is found by the block scan wherever PCRE2 finds it. */
static int scan_finds(struct tester *t, const struct fl_filter *f, fl_str text, unsigned line,
                      fl_err *err)
{
    fl_buf lost;
    int r = 0;

    fl_buf_init(&lost, 1 << 20);
    for (uint32_t k = 0; k < f->npatterns && r >= 0; k++) {
        fl_buf_clear(&lost);
        r = fl_match_verify(fl_filters_matcher(t->f), t->s, f->pattern + k, text, &lost, err);
        if (r > 0)
            fl_found_at(&t->found, f->file, line,
                        "'%s': %s loses pattern %u where PCRE2 finds it, as in: %.*s", f->id,
                        fl_matcher_engine(fl_filters_matcher(t->f)), k + 1,
                        FL_FMT(fl_str_sub(fl_buf_str(&lost), 0, 300)));
    }
    fl_buf_dispose(&lost);
    return r < 0 ? r : FL_OK;
}

static int test_takes(struct tester *t, const struct fl_filter *f, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < f->ntakes && r == FL_OK; i++) {
        const struct fl_filter *got = NULL;
        fl_str text = f->takes[i];

        t->tally->takes++;
        if (fl_str_find_c(text, '\n') >= 0) {
            fl_found_at(&t->found, f->file, f->take_lines[i],
                        "'%s': example %zu has more than one line", f->id, i + 1);
            continue;
        }
        if (!matches(t, f, text))
            fl_found_at(&t->found, f->file, f->take_lines[i], "'%s': example %zu is not matched",
                        f->id, i + 1);
        r = verdict_on(t, text, &got, err);
        if (r == FL_OK && f->maturity >= FL_TEST && f->action != FL_FILTER_GUARD && got != f)
            fl_found_at(&t->found, f->file, f->take_lines[i], "'%s': example %zu is taken by %s",
                        f->id, i + 1, got ? got->id : "no filter (a guard may match it)");
        if (r == FL_OK)
            r = scan_finds(t, f, text, f->take_lines[i], err);
    }
    return r;
}

static int test_misses(struct tester *t, const struct fl_filter *f, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < f->nmisses && r == FL_OK; i++) {
        const struct fl_filter *got = NULL;

        t->tally->misses++;
        r = verdict_on(t, f->misses[i], &got, err);
        if (r)
            break;
        if (got == f || (f->action == FL_FILTER_GUARD && matches(t, f, f->misses[i])))
            fl_found_at(&t->found, f->file, f->miss_lines[i],
                        "'%s': near-miss %zu is taken by the filter", f->id, i + 1);
        else if (f->action == FL_FILTER_DROP && got && got->action == FL_FILTER_DROP)
            fl_found_at(&t->found, f->file, f->miss_lines[i],
                        "'%s': near-miss %zu is dropped by '%s'", f->id, i + 1, got->id);
    }
    return r;
}

static int lint_pattern(struct tester *t, const struct fl_filter *f, const struct fl_pattern *p,
                        fl_err *err)
{
    fl_err problem = {0};
    int r;

    if (!fl_pattern_is_regular(p->regex))
        fl_found_at(&t->found, f->file, f->line,
                    "'%s': Vectorscan and ripgrep read this pattern differently or not"
                    " at all: %.*s",
                    f->id, FL_FMT(fl_str_sub(p->regex, 0, 300)));
    if (fl_pattern_has_caret(p->regex))
        fl_found_at(&t->found, f->file, f->line, "'%s': no '^' in a pattern; a line has prefixes",
                    f->id);
    if (fl_match_confirm(fl_filters_matcher(t->f), t->s, (uint32_t)(p - t->rs->filter_patterns),
                         FL_S(""), 0, NULL))
        fl_found_at(&t->found, f->file, f->line, "'%s': the pattern matches an empty line: %.*s",
                    f->id, FL_FMT(fl_str_sub(p->regex, 0, 300)));
    r = fl_pattern_probe(p, f->takes, f->ntakes < MIN_TAKES ? f->ntakes : MIN_TAKES, PROBE_LIMIT,
                         &problem);
    if (r == FL_ELIMIT) {
        fl_found(&t->found, problem.msg);
        return FL_OK;
    }
    return r < 0 ? fl_fail(err, r, "%s", problem.msg) : FL_OK;
}

/* A pattern that no example needs is one that nobody has seen work. */
static void show_patterns(struct tester *t, const struct fl_filter *f)
{
    for (uint32_t k = 0; k < f->npatterns; k++) {
        fl_str regex = t->rs->filter_patterns[f->pattern + k].regex;
        bool shown = false;
        for (size_t i = 0; i < f->ntakes && !shown; i++)
            shown = fl_match_confirm(fl_filters_matcher(t->f), t->s, f->pattern + k, f->takes[i], 0,
                                     NULL);
        if (!shown)
            fl_found_at(&t->found, f->file, f->line, "'%s': no example shows the pattern: %.*s",
                        f->id, FL_FMT(fl_str_sub(regex, 0, 300)));
    }
}

static int test_filter(struct tester *t, const struct fl_filter *f, fl_err *err)
{
    int r = FL_OK;

    t->tally->filters++;
    if (f->ntakes < MIN_TAKES)
        fl_found_at(&t->found, f->file, f->line,
                    "'%s' has %zu examples; give at least %d lines under %s:", f->id, f->ntakes,
                    MIN_TAKES, f->action == FL_FILTER_DROP ? "drops" : "keeps");
    if (f->nmisses < MIN_DROP_MISSES)
        fl_found_at(&t->found, f->file, f->line,
                    "'%s' has no near-miss; add one under misses:", f->id);
    if (!f->why)
        fl_found_at(&t->found, f->file, f->line, "'%s' does not say why; add one sentence", f->id);
    if (!f->source)
        fl_found_at(&t->found, f->file, f->line,
                    "'%s' has no source; say where the wording is from", f->id);
    for (uint32_t k = 0; k < f->npatterns && r == FL_OK; k++)
        r = lint_pattern(t, f, &t->rs->filter_patterns[f->pattern + k], err);
    show_patterns(t, f);
    if (r == FL_OK)
        r = test_takes(t, f, err);
    return r ? r : test_misses(t, f, err);
}

/* No drop filter takes a line of what a failure rule must take. */
static int test_rule_lines(struct tester *t, const struct fl_rule *rule,
                           const struct fl_filter *only, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < rule->nhits; i++) {
        fl_str rest = rule->hits[i];
        while (rest.n && r == FL_OK) {
            const struct fl_filter *got = NULL;
            fl_str line = fl_str_cut(&rest, '\n');
            t->tally->hit_lines++;
            r = verdict_on(t, line, &got, err);
            if (r == FL_OK && got && got->action == FL_FILTER_DROP && (!only || got == only))
                fl_found_at(&t->found, rule->file, rule->hit_lines[i],
                            "the filter '%s' drops a line of a hit of rule '%s': %.*s", got->id,
                            rule->id, FL_FMT(fl_str_sub(line, 0, 300)));
        }
    }
    return r;
}

static bool speaks_of_failure(const struct fl_rule *r)
{
    return r->maturity != FL_RETIRED && r->role <= FL_ROLE_RECOVERY;
}

int fl_filters_test(const fl_filters *f, const struct fl_filter *only, fl_lint_fn report, void *ctx,
                    struct fl_filters_tally *tally, fl_err *err)
{
    const struct fl_ruleset *rs = fl_filters_rules(f);
    struct fl_filters_tally counts = {0};
    struct tester t = {.f = f, .rs = rs, .found = {.report = report, .ctx = ctx}, .tally = &counts};
    int r = fl_filters_scratch_new(f, &t.s, err);

    fl_buf_init(&t.line, 1 << 20);
    for (size_t i = 0; i < rs->nfilters && r == FL_OK; i++)
        if (rs->filters[i].maturity != FL_RETIRED && (!only || only == &rs->filters[i]))
            r = test_filter(&t, &rs->filters[i], err);
    for (size_t i = 0; i < rs->nrules && r == FL_OK; i++)
        if (speaks_of_failure(&rs->rules[i]) && (!only || only->action == FL_FILTER_DROP))
            r = test_rule_lines(&t, &rs->rules[i], only, err);
    fl_match_scratch_free(t.s);
    fl_buf_dispose(&t.line);
    if (r)
        return r;
    *tally = counts;
    return t.found.n;
}
