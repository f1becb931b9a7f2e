/*
 * Lines that differ in digits alone are searched once: that must never lose a match.
 *
 * Every hit and near-miss of the shipped rules goes in with its digits changed at random, many
 * times, so that most lines belong to a class that is known already. What PCRE2 finds in a line
 * with the pattern itself must be among the line's candidates, by either engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "match/match.h"
#include "rules/rules.h"

#define VARIANTS 12

static struct fl_ruleset *rules;
static uint64_t seed = 20260301;

static uint64_t next_random(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

static bool no_tag(void *ctx, fl_str line, bool again, struct fl_tag *out)
{
    (void)ctx;
    out->a = line.n;
    out->b = again;
    return true;
}

static void add_variant(fl_buf *b, fl_str line, unsigned number)
{
    for (size_t i = 0; i < line.n; i++) {
        bool digit = line.p[i] >= '0' && line.p[i] <= '9';
        char c = line.p[i] == '\n' ? ' ' : line.p[i];
        fl_buf_addc(b, digit && number && next_random(3) ? (char)('0' + next_random(10)) : c);
    }
    fl_buf_addc(b, '\n');
}

static void add_lines(fl_buf *b, const struct fl_rule *r, unsigned number)
{
    for (size_t i = 0; i < r->nhits; i++)
        add_variant(b, r->hits[i], number);
    for (size_t i = 0; i < r->nmisses; i++)
        add_variant(b, r->misses[i], number);
}

static bool has(const struct fl_lines *lines, const struct fl_line *l, uint32_t pattern)
{
    for (uint32_t i = 0; i < l->ncand; i++)
        if (lines->cand[l->cand + i] == pattern)
            return true;
    return false;
}

/* Counts the candidates of the truth that are missing, and prints the first ones. */
static size_t missing(const struct fl_lines *lines, fl_str block, const struct fl_candidate *c,
                      size_t n)
{
    size_t lost = 0, k = 0;

    for (size_t i = 0; i < lines->n; i++) {
        const struct fl_line *l = &lines->v[i];
        for (; k < n && c[k].at <= l->at; k++) {
            if (c[k].at == l->at && has(lines, l, c[k].pattern))
                continue;
            if (lost++ < 5)
                print_error("%s is not found in: %.*s\n", rules->patterns[c[k].pattern].where,
                            (int)l->len, block.p + l->at);
        }
    }
    return lost + (n - k);
}

static void check_engine(enum fl_match_engine engine, size_t max)
{
    struct fl_match_opts mo = {.engine = engine, .jit = true}, to = {FL_MATCH_PCRE2, NULL, true};
    struct fl_classes_opts co = {.tag = no_tag, .max = max, .seed = {12345, 678910111}};
    fl_matcher *m = NULL, *truth = NULL;
    fl_match_scratch *s = NULL, *ts = NULL;
    fl_classes *classes = NULL;
    struct fl_lines lines = {0};
    size_t lost = 0, found = 0;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 64u << 20);
    if (fl_matcher_new(rules->patterns, rules->npatterns, &mo, &m, &err) ||
        fl_matcher_new(rules->patterns, rules->npatterns, &to, &truth, &err) ||
        fl_match_scratch_new(m, &s, &err) || fl_match_scratch_new(truth, &ts, &err) ||
        fl_classes_new(m, &co, &classes, &err))
        fail_msg("%s", err.msg);
    for (unsigned v = 0; v < VARIANTS; v++) {
        const struct fl_candidate *c;
        size_t n = 0;
        fl_buf_clear(&b);
        for (size_t i = 0; i < rules->nrules; i++)
            add_lines(&b, &rules->rules[(i * 7 + v) % rules->nrules], v);
        if (fl_classes_block(classes, s, fl_buf_str(&b), &lines, &err) ||
            fl_match_block(truth, ts, fl_buf_str(&b), &c, &n, &err))
            fail_msg("%s", err.msg);
        lost += missing(&lines, fl_buf_str(&b), c, n);
        found += n;
    }
    print_message("%s: %zu matches, %zu lost\n", fl_matcher_engine(m), found, lost);
    assert_int_equal(lost, 0);
    assert_true(found > 10000);
    fl_lines_dispose(&lines);
    fl_classes_free(classes);
    fl_match_scratch_free(s);
    fl_match_scratch_free(ts);
    fl_matcher_free(m);
    fl_matcher_free(truth);
    fl_buf_dispose(&b);
}

static void no_match_is_lost(void **state)
{
    (void)state;
    check_engine(FL_MATCH_AUTO, 0);
}

static void no_match_is_lost_by_pcre2(void **state)
{
    (void)state;
    check_engine(FL_MATCH_PCRE2, 0);
}

static void nor_when_the_table_is_emptied(void **state)
{
    (void)state;
    check_engine(FL_MATCH_AUTO, 50);
}

/* Patterns that a class must not be fooled by: those that name digits in all the ways there are. */
static void patterns_that_name_digits(void **state)
{
    (void)state;
    static const char *const text[] = {
        "code 7\\b",          "code [1-4]",         "code [^0-4]",  "code \\x37",
        "(?P<a1>code) [5]7",  "code \\d{2}$",       "code (?!7)",   "(\\d)\\1",
        "code [+-5]",         "code [^7x]1",        "\\Qcode 7\\E", "code (?:3|4)2",
        "code [\\x30-\\x33]", "[[:digit:]]9",       "code 1?7",     "code (?>1|17)x",
        "code .{0,2}0$",      "\\b0x[0-9a-f]{2}\\b"};
    struct fl_pattern p[sizeof(text) / sizeof(*text)];
    const size_t n = sizeof(text) / sizeof(*text);
    struct fl_classes_opts co = {.tag = no_tag, .seed = {99, 77}};
    struct fl_lines lines = {0};
    fl_match_scratch *s = NULL;
    fl_classes *classes = NULL;
    fl_matcher *m = NULL;
    size_t lost = 0;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct fl_pattern){.regex = fl_str_c(text[i]), .id = (uint32_t)i, .where = text[i]};
    for (unsigned i = 0; i < 2000; i++)
        fl_buf_addf(&b, "code %u%s\n", (unsigned)next_random(i % 2 ? 10 : 1000),
                    i % 3 ? "" : " 0x1f x");
    if (fl_matcher_new(p, n, NULL, &m, &err) || fl_match_scratch_new(m, &s, &err) ||
        fl_classes_new(m, &co, &classes, &err) ||
        fl_classes_block(classes, s, fl_buf_str(&b), &lines, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(lines.n, 2000);
    for (size_t i = 0; i < lines.n; i++) {
        const struct fl_line *l = &lines.v[i];
        fl_str line = fl_str_n(b.p + l->at, l->len);
        for (uint32_t k = 0; k < n; k++)
            if (fl_match_confirm(m, s, k, line, 0, NULL) != has(&lines, l, k) && lost++ < 5)
                print_error("/%s/ %s in: %.*s\n", text[k],
                            has(&lines, l, k) ? "is said to be" : "is not found", FL_FMT(line));
    }
    assert_int_equal(lost, 0);
    fl_lines_dispose(&lines);
    fl_classes_free(classes);
    fl_match_scratch_free(s);
    fl_matcher_free(m);
    fl_buf_dispose(&b);
}

/* A tag that differs within a class is asked for again on each line. */
static bool first_number(void *ctx, fl_str line, bool again, struct fl_tag *out)
{
    uint64_t n = 0;

    fl_str_u64(line, UINT32_MAX, &n);
    out->a = n;
    *(size_t *)ctx += !again;
    return false;
}

static void tags_are_each_lines_own(void **state)
{
    (void)state;
    struct fl_pattern p = {.regex = FL_S("never"), .where = "test"};
    size_t asked = 0;
    struct fl_classes_opts co = {.tag = first_number, .ctx = &asked, .seed = {5, 3}};
    struct fl_lines lines = {0};
    fl_match_scratch *s = NULL;
    fl_classes *classes = NULL;
    fl_matcher *m = NULL;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    for (unsigned i = 0; i < 1000; i++)
        fl_buf_addf(&b, "%03u: step\n", i);
    if (fl_matcher_new(&p, 1, NULL, &m, &err) || fl_match_scratch_new(m, &s, &err) ||
        fl_classes_new(m, &co, &classes, &err) ||
        fl_classes_block(classes, s, fl_buf_str(&b), &lines, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(asked, 1);
    for (size_t i = 0; i < lines.n; i++)
        assert_int_equal(lines.v[i].tag.a, i);
    fl_lines_dispose(&lines);
    fl_classes_free(classes);
    fl_match_scratch_free(s);
    fl_matcher_free(m);
    fl_buf_dispose(&b);
}

static int load(void **state)
{
    const char *dir = FL_SOURCE_DIR "/rules";
    fl_err err = {0};

    (void)state;
    if (fl_ruleset_load(&dir, 1, &rules, &err)) {
        print_error("%s\n", err.msg);
        return -1;
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fl_ruleset_free(rules);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_match_is_lost), cmocka_unit_test(no_match_is_lost_by_pcre2),
        cmocka_unit_test(nor_when_the_table_is_emptied),
        cmocka_unit_test(patterns_that_name_digits), cmocka_unit_test(tags_are_each_lines_own)};

    return cmocka_run_group_tests_name("classes", tests, load, unload);
}
