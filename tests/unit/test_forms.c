/*
 * What is kept of an expression on disk is what would be made of it anew.
 *
 * The pattern cache goes by the expressions as they are written, and FL_MATCH_FORMS stands for how
 * their forms are made. If the table below has to change, what is kept is void: raise that number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "match/engine.h"
#include "rules/rules.h"

#define FORMS_OF_THE_TABLE 1

static const struct {
    const char *source;
    unsigned features;
    enum fl_relaxed digits;
    const char *line, *alike;
} table[] = {
    {"plain [a-z]+", 0, FL_RELAX_BLIND, "plain [a-z]+", "plain [a-z]+"},
    {"a\\s+b\\D\\W", 0, FL_RELAX_BLIND, "a[^\\n\\S]+b[^\\n0-9][^\\n\\w]",
     "a[^\\n\\S]+b[^\\n0-9][^\\n\\w]"},
    {"Xid 79: [1-5]{2,3}", 0, FL_RELAX_SENSITIVE, "Xid 79: [1-5]{2,3}",
     "Xid [0-9][0-9]: [1-50-9]{2,3}"},
    {"(?P<gpu3>[^7\\s]*)\\d", 0, FL_RELAX_SENSITIVE, "(?P<gpu3>[^\\n7\\s]*)\\d",
     "(?P<gpu3>[^\\n\\s]*)\\d"},
    {"[\\s\\-x][[:digit:]]", 0, FL_RELAX_BLIND, "[ \\t\\r\\f\\x0b\\-x][[:digit:]]",
     "[ \\t\\r\\f\\x0b\\-x][[:digit:]]"},
    {"\\x37\\x41", 0, FL_RELAX_SENSITIVE, "\\x37\\x41", "[0-9]\\x41"},
    {"(?!1)2", FL_RE_LOOK | FL_RE_DIALECT, FL_RELAX_EXACT, "(?!1)2", "(?![0-9])[0-9]"},
    {"(a)\\1", FL_RE_BACKREF | FL_RE_DIALECT, FL_RELAX_EXACT, "(a)\\1", ""},
    {"a++1", FL_RE_ATOMIC | FL_RE_DIALECT, FL_RELAX_EXACT, "a++1", "a++[0-9]"},
    {"^\\Ax\\Q[1]\\E", FL_RE_CARET | FL_RE_ABSOLUTE | FL_RE_DIALECT, FL_RELAX_EXACT,
     "^\\Ax\\Q[1]\\E", "^\\Ax\\Q[10-9]\\E"},
};

static void forms_are_those_of_their_number(void **state)
{
    (void)state;
    if (FL_MATCH_FORMS != FORMS_OF_THE_TABLE)
        fail_msg(
            "FL_MATCH_FORMS is %d and the table of number %d: see to it that the table is that "
            "of the new forms",
            FL_MATCH_FORMS, FORMS_OF_THE_TABLE);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        unsigned features = fl_pattern_features(fl_str_c(table[i].source));
        enum fl_relaxed digits;
        fl_buf line, alike;

        fl_buf_init(&line, 1000);
        fl_buf_init(&alike, 1000);
        fl_pattern_one_line(fl_str_c(table[i].source), &line);
        digits = fl_pattern_relax(fl_buf_str(&line), &alike);
        if (features != table[i].features || digits != table[i].digits ||
            strcmp(line.p ? line.p : "", table[i].line) != 0 ||
            strcmp(alike.p ? alike.p : "", table[i].alike) != 0)
            fail_msg("%s has features %u, digits %d, forms %s and %s; raise FL_MATCH_FORMS",
                     table[i].source, features, (int)digits, line.p ? line.p : "",
                     alike.p ? alike.p : "");
        fl_buf_dispose(&line);
        fl_buf_dispose(&alike);
    }
}

static fl_matcher *open_matcher(const struct fl_ruleset *rs, const char *cache)
{
    struct fl_match_opts opts = {.cache_dir = cache};
    fl_matcher *m = NULL;
    fl_err err = {0};

    if (fl_matcher_new(rs->filter_patterns, rs->nfilter_patterns, &opts, &m, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Every pattern: from the cache as without one. The filters', of which there are fewer. */
static void what_is_kept_is_what_was_made(void **state)
{
    char dir[] = "/tmp/fl-forms-XXXXXX", command[100];
    const char *rules = FL_SOURCE_DIR "/rules";
    struct fl_ruleset *rs = NULL;
    fl_matcher *fresh, *first, *kept;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(fl_ruleset_load(&rules, 1, &rs, NULL), 0);
    fresh = open_matcher(rs, NULL);
    first = open_matcher(rs, dir);
    kept = open_matcher(rs, dir);
    assert_false(fl_matcher_cache_hit(first));
    if (strncmp(fl_matcher_engine(kept), "pcre2", 5) != 0)
        assert_true(fl_matcher_cache_hit(kept));
    assert_int_equal(fresh->nexact, kept->nexact);
    for (size_t i = 0; i < fresh->n; i++) {
        const struct fl_entry *a = &fresh->entry[i], *b = &kept->entry[i];
        if (a->digits != b->digits || a->features != b->features || a->anchored != b->anchored ||
            a->lazy.form != b->lazy.form || !fl_str_eq(a->lazy.source, b->lazy.source))
            fail_msg("%s: digits %d features %u became %d and %u", a->lazy.where, (int)a->digits,
                     a->features, (int)b->digits, b->features);
    }
    fl_matcher_free(fresh);
    fl_matcher_free(first);
    fl_matcher_free(kept);
    fl_ruleset_free(rs);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms_are_those_of_their_number),
                                       cmocka_unit_test(what_is_kept_is_what_was_made)};

    return cmocka_run_group_tests_name("forms", tests, NULL, NULL);
}
