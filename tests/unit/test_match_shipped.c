/*
 * match: the block engine finds what PCRE2 finds, for every pattern of the shipped rules, on all
 * their hits in many places (fl_match_verify()); and so it does for patterns whose matches
 * Vectorscan 5.4.9 loses with its wide scanners.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "rules/rules.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void fails_nowhere(int r, const fl_err *err)
{
    if (r)
        print_error("%s\n", err->msg);
    assert_int_equal(r, 0);
}

struct tally {
    const fl_matcher *m;
    fl_match_scratch *s;
    fl_buf lost;
    size_t lines, patterns; /* lines tried, patterns that lose one */
};

/* All lines of the texts. True when the pattern was found wherever it matches. */
static bool verify(struct tally *t, uint32_t pattern, const fl_str *texts, size_t n)
{
    fl_err err = {0};
    int missing = 0;

    for (size_t i = 0; i < n; i++) {
        fl_str rest = texts[i];
        while (rest.n) {
            int r;
            fl_buf_clear(&t->lost);
            r = fl_match_verify(t->m, t->s, pattern, fl_str_cut(&rest, '\n'), &t->lost, &err);
            fails_nowhere(r < 0 ? r : 0, &err);
            if (r > 0 && missing == 0)
                print_error("pattern %u is lost in %d of 50 places, first in: %.*s\n", pattern, r,
                            FL_FMT(fl_buf_str(&t->lost)));
            missing += r;
            t->lines++;
        }
    }
    t->patterns += missing > 0;
    return missing == 0;
}

static void open_tally(struct tally *t, const struct fl_pattern *p, size_t n, fl_matcher **m)
{
    fl_err err = {0};

    *t = (struct tally){0};
    fl_buf_init(&t->lost, 1 << 20);
    fails_nowhere(fl_matcher_new(p, n, NULL, m, &err), &err);
    fails_nowhere(fl_match_scratch_new(*m, &t->s, &err), &err);
    t->m = *m;
}

static void close_tally(struct tally *t, fl_matcher *m)
{
    fl_match_scratch_free(t->s);
    fl_matcher_free(m);
    fl_buf_dispose(&t->lost);
}

static void shipped_patterns_are_not_lost(void **state)
{
    const char *dir = FL_SOURCE_DIR "/rules";
    struct fl_ruleset *rs = NULL;
    fl_matcher *m = NULL;
    struct tally t;
    fl_err err = {0};

    (void)state;
    fails_nowhere(fl_ruleset_load(&dir, 1, &rs, &err), &err);
    open_tally(&t, rs->patterns, rs->npatterns, &m);
    for (size_t i = 0; i < rs->nrules; i++) {
        const struct fl_rule *r = &rs->rules[i];
        for (uint32_t k = 0; k < r->npatterns; k++)
            if (!verify(&t, r->pattern + k, r->hits, r->nhits))
                print_error("  %s, rule %s\n", rs->patterns[r->pattern + k].where, r->id);
    }
    print_message("%s: %zu patterns, %zu lines\n", fl_matcher_engine(m), rs->npatterns, t.lines);
    assert_true(t.lines > rs->npatterns);
    assert_int_equal(t.patterns, 0);
    close_tally(&t, m);
    fl_ruleset_free(rs);
}

/* Pairs of patterns of which one or both lose matches, see match_hs.c. */
static const struct fl_pattern known[] = {
    {FL_S("\\[[\\d, -]+\\] joined but didn't finish collective #\\d+"), 0, false, false, "k:1"},
    {FL_S("\\[[\\d, -]+\\] finished collective #\\d+, but didn't join collective #\\d+"), 1, false,
     false, "k:2"},
    {FL_S("wandb.*(?:permission denied|do(?:es)? not have permission)"), 2, false, false, "k:3"},
    {FL_S("wandb.*entity \\S+ not found"), 3, false, false, "k:4"},
};
static const fl_str known_hits[] = {
    FL_S("[3] joined but didn't finish collective #7"),
    FL_S("[3] finished collective #7, but didn't join collective #8"),
    FL_S("wandb.errors.CommError: It appears that you do not have permission to access this."),
    FL_S("wandb: entity lab not found"),
};

static void known_bugs_stay_away(void **state)
{
    fl_matcher *m = NULL;
    struct tally t;

    (void)state;
    open_tally(&t, known, COUNT(known), &m);
    for (uint32_t i = 0; i < COUNT(known); i++)
        verify(&t, i, &known_hits[i], 1);
    assert_int_equal(t.patterns, 0);
    close_tally(&t, m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_bugs_stay_away),
        cmocka_unit_test(shipped_patterns_are_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
