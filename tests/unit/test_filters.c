/*
 * rules: filters. How a verdict comes about, what is refused, and that no shipped filter drops what
 * a reader needs: lines of tracebacks, and the decisive lines of the labelled cases.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fixture.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "read/reader.h"
#include "rules/filter.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const char taxonomy[] = "causes:\n  - {id: a.b, class: script, title: t, action: none}\n";

static const char some[] =
    "filters:\n"
    "  - {id: d-first, action: drop, match: 'step \\d+'}\n"
    "  - {id: d-second, action: drop, match: ['loss [\\d.]+', 'step \\d+ of']}\n"
    "  - {id: h, action: head, match: 'world size'}\n"
    "  - {id: k, action: keep, match: 'nan\\b', icase: true}\n"
    "  - {id: g-word, action: guard, match: 'failed'}\n"
    "  - {id: g-other, action: guard, match: 'lost'}\n"
    "  - {id: d-bold, action: drop, match: 'known: .*', despite: [g-word], not: ['not this']}\n"
    "  - {id: d-draft, action: drop, maturity: draft, match: 'drafted'}\n"
    "  - {id: d-test, action: drop, maturity: test, match: 'tested'}\n"
    "  - {id: d-old, action: drop, maturity: retired, match: 'retired'}\n";

struct fix {
    struct fl_ruleset *rs;
    fl_filters *f;
    fl_match_scratch *s;
};

static void works(int r, const fl_err *err)
{
    if (r < 0)
        fail_msg("%s", err->msg);
}

static void open_text(struct fix *x, const char *filters, enum fl_match_engine engine)
{
    struct fl_match_opts opts = {.engine = engine, .jit = true};
    fl_err err = {0};

    *x = (struct fix){0};
    works(fl_ruleset_parse_filters(fl_str_c(taxonomy), FL_S(""), fl_str_c(filters), &x->rs, &err),
          &err);
    works(fl_filters_new(x->rs, &opts, &x->f, &err), &err);
    works(fl_filters_scratch_new(x->f, &x->s, &err), &err);
}

static void open_shipped(struct fix *x, enum fl_match_engine engine)
{
    struct fl_match_opts opts = {.engine = engine, .jit = true};
    const char *dir = FL_SOURCE_DIR "/rules";
    fl_err err = {0};

    *x = (struct fix){0};
    works(fl_ruleset_load(&dir, 1, &x->rs, &err), &err);
    works(fl_filters_new(x->rs, &opts, &x->f, &err), &err);
    works(fl_filters_scratch_new(x->f, &x->s, &err), &err);
}

static void shut(struct fix *x)
{
    fl_match_scratch_free(x->s);
    fl_filters_free(x->f);
    fl_ruleset_free(x->rs);
}

/* The id of the filter that decides one line; "" none. */
static const char *decided(struct fix *x, fl_str line)
{
    uint16_t v = 7;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    fl_buf_add(&b, line);
    fl_buf_addz(&b, "\n");
    works(fl_filters_block(x->f, x->s, fl_buf_str(&b), &v, 1, &err), &err);
    fl_buf_dispose(&b);
    return v ? x->rs->filters[v - 1].id : "";
}

static const struct fl_filter *dropped(struct fix *x, fl_str line)
{
    const char *id = decided(x, line);
    int at = *id ? fl_filter_find(x->rs, fl_str_c(id)) : -1;

    return at >= 0 && x->rs->filters[at].action == FL_FILTER_DROP ? &x->rs->filters[at] : NULL;
}

static const struct {
    const char *line, *by;
} verdicts[] = {
    {"step 3 loss 2.1", "d-first"},
    {"the loss 2.1 of step", "d-second"},
    {"step 3 of 9", "d-first"},
    {"step 3 world size 8", "h"},
    {"step 3 world size 8 loss NaN", "k"},
    {"step 3 failed", ""},
    {"step 3 lost", ""},
    {"known: it failed", "d-bold"},
    {"known: it failed and was lost", ""},
    {"known: not this", ""},
    {"step 3 known: it failed", "d-bold"},
    {"world size 8 failed", "h"},
    {"failed", ""},
    {"drafted", ""},
    {"tested", "d-test"},
    {"retired", ""},
    {"", ""},
    {"nothing of all this", ""},
    {"(worker pid=4123, ip=10.0.0.1) [rank0]: one two three: step 3", "d-first"},
    {"one two three four step 3", ""},
    {"one two-three four, five six 7 eight nine step 3", "d-first"},
    {"one two three four world size 3", "h"},
};

static void keep_beats_head_beats_drop(void **state)
{
    static const enum fl_match_engine engines[] = {FL_MATCH_AUTO, FL_MATCH_PCRE2};
    struct fix x;

    (void)state;
    for (size_t e = 0; e < COUNT(engines); e++) {
        open_text(&x, some, engines[e]);
        for (size_t i = 0; i < COUNT(verdicts); i++)
            if (strcmp(decided(&x, fl_str_c(verdicts[i].line)), verdicts[i].by) != 0)
                fail_msg("'%s' is decided by '%s', not by '%s'", verdicts[i].line,
                         decided(&x, fl_str_c(verdicts[i].line)), verdicts[i].by);
        shut(&x);
    }
}

static void each_line_of_a_block_has_its_own(void **state)
{
    uint16_t v[COUNT(verdicts) + 1];
    struct fix x;
    fl_err err = {0};
    fl_buf b;

    (void)state;
    open_text(&x, some, FL_MATCH_AUTO);
    fl_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < COUNT(verdicts); i++) {
        fl_buf_addz(&b, verdicts[i].line);
        fl_buf_addz(&b, "\n");
    }
    works(fl_filters_block(x.f, x.s, fl_buf_str(&b), v, COUNT(verdicts), &err), &err);
    for (size_t i = 0; i < COUNT(verdicts); i++)
        assert_string_equal(v[i] ? x.rs->filters[v[i] - 1].id : "", verdicts[i].by);
    v[0] = 9;
    assert_int_equal(fl_filters_block(x.f, x.s, fl_buf_str(&b), v, COUNT(verdicts) + 1, &err),
                     FL_EBUG);
    assert_int_equal(v[0], 0);
    assert_int_equal(fl_filters_block(x.f, x.s, FL_S("no newline"), v, 0, &err), FL_EBUG);
    works(fl_filters_block(x.f, x.s, FL_S(""), v, 0, &err), &err);
    fl_buf_dispose(&b);
    shut(&x);
}

static void hostile_lines_are_not_judged(void **state)
{
    struct fix x;
    fl_buf b;

    (void)state;
    fl_buf_init(&b, 1 << 20);
    fl_buf_addz(&b, "filters:\n");
    for (int i = 0; i <= FL_FILTER_TRIES; i++)
        fl_buf_addf(&b, "  - {id: d-%d, action: drop, match: 'same text'}\n", i);
    fl_buf_addz(&b, "  - {id: d-slow, action: drop, match: 'slow (?:a*)*(?:a*)*b|slow a'}\n");
    fl_buf_addz(&b, "");
    open_text(&x, b.p, FL_MATCH_AUTO);
    assert_string_equal(decided(&x, FL_S("same text")), "");
    fl_buf_clear(&b);
    fl_buf_addz(&b, "slow a");
    assert_string_equal(decided(&x, fl_buf_str(&b)), "d-slow");
    while (b.n < FL_FILTER_LINE_MAX - 100)
        fl_buf_addz(&b, " and more ");
    assert_string_equal(decided(&x, fl_buf_str(&b)), "d-slow");
    while (b.n <= FL_FILTER_LINE_MAX)
        fl_buf_addz(&b, " and more ");
    assert_string_equal(decided(&x, fl_buf_str(&b)), "");
    fl_buf_dispose(&b);
    shut(&x);
}

/* A guard that PCRE2 gave up on may have matched: the line stays. */
static void what_was_given_up_is_not_dropped(void **state)
{
    static const char text[] = "filters:\n"
                               "  - {id: g, action: guard, match: '(?:x+x+)+(?:x+x+)+y'}\n"
                               "  - {id: d, action: drop, match: 'xx', despite: []}\n";
    struct fix x;
    fl_buf b;

    (void)state;
    open_text(&x, text, FL_MATCH_PCRE2);
    assert_string_equal(decided(&x, FL_S("xx")), "d");
    fl_buf_init(&b, 1 << 20);
    for (int i = 0; i < 6000; i++)
        fl_buf_addz(&b, "x");
    fl_buf_addz(&b, " y");
    assert_string_equal(decided(&x, fl_buf_str(&b)), "");
    assert_true(fl_match_limited(x.s) > 0);
    fl_buf_dispose(&b);
    shut(&x);
}

#define F "filters:\n  - id: a\n    action: drop\n    match: x\n"
static const struct {
    const char *text, *says;
} wrong[] = {
    {"filters: x\n", "filters.yaml:1: 'filters' must be a list"},
    {"rules: []\n", "filters.yaml:1: unknown key 'rules'"},
    {"filters:\n  - id: a\n    match: x\n", "filters.yaml:2: 'action:' is missing here"},
    {"filters:\n  - id: a\n    action: drop\n", "filters.yaml:2: 'match:' is missing here"},
    {"filters:\n  - {id: a, action: lose, match: x}\n",
     "filters.yaml:2: 'action' is 'lose' but must be one of: drop, keep, head, guard"},
    {"filters:\n  - {id: A b, action: drop, match: x}\n",
     "filters.yaml:2: filter id 'A b' must be lower-case words"},
    {"filters:\n  - {id: a, action: drop, match: []}\n", "'match' has no pattern"},
    {F "    anchored: true\n", "filters.yaml:5: unknown key 'anchored'"},
    {F "    keeps: [x]\n", "filters.yaml:5: a filter with action drop has its lines under 'drops'"},
    {"filters:\n  - {id: a, action: keep, match: x, drops: [x]}\n",
     "a filter with action keep has its lines under 'keeps'"},
    {"filters:\n  - {id: a, action: keep, match: x, despite: [b]}\n",
     "'despite' is for filters with action drop"},
    {"filters:\n  - {id: a, action: head, match: x, metric: true}\n",
     "'metric' is for filters with action drop"},
    {F "    despite: [b]\n", "filters.yaml:5: 'b' is not a filter with action guard"},
    {F "    despite: [a]\n", "filters.yaml:5: 'a' is not a filter with action guard"},
    {F "    not: ['(']\n", "filters.yaml:5: the pattern is wrong at position 1"},
    {F "  - {id: a, action: drop, match: y}\n",
     "filters.yaml:5: filter 'a' stands already in filters.yaml:2; ids are unique"},
    {F "  - {id: taken, action: drop, match: y}\n",
     "filters.yaml:5: 'taken' is a failure rule's id already"},
    {F "    maturity: old\n", "'maturity' is 'old'"},
};

static void wrong_files_are_refused_with_their_line(void **state)
{
    fl_str rules = FL_S("rules:\n  - {id: taken, maturity: retired}\n");

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct fl_ruleset *rs = NULL;
        fl_err err = {0};
        int r =
            fl_ruleset_parse_filters(fl_str_c(taxonomy), rules, fl_str_c(wrong[i].text), &rs, &err);
        if (r != FL_ERULE || !strstr(err.msg, wrong[i].says))
            fail_msg("%zu: %d, '%s' does not say '%s'", i, r, err.msg, wrong[i].says);
        assert_null(rs);
    }
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[300];
    fl_err err = {0};

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    works(fl_file_write_atomic(path, fl_str_c(text), &err), &err);
}

static void later_folders_add_and_retire(void **state)
{
    char one[] = "/tmp/fl-filters-XXXXXX", two[sizeof(one) + 8], cmd[200];
    const char *dirs[2] = {one, two};
    struct fl_ruleset *rs = NULL;
    fl_filters *f = NULL;
    fl_match_scratch *s = NULL;
    char before[33];
    uint16_t v[2] = {0};
    fl_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(one));
    snprintf(two, sizeof(two), "%s/two", one);
    snprintf(cmd, sizeof(cmd), "mkdir -p %s/filters/deep %s/filters", one, two);
    assert_int_equal(system(cmd), 0);
    put(one, "taxonomy.yaml", taxonomy);
    works(fl_ruleset_load(dirs, 1, &rs, &err), &err);
    assert_int_equal(rs->nfilters, 0);
    memcpy(before, rs->version, sizeof(before));
    fl_ruleset_free(rs);
    put(one, "filters/deep/a.yaml",
        "filters:\n  - {id: gone, action: drop, match: abc}\n"
        "  - {id: stays, action: drop, match: abcd, despite: [g]}\n"
        "  - {id: g, action: guard, match: e}\n");
    put(two, "filters/b.yaml",
        "filters:\n  - {id: gone, maturity: retired}\n"
        "  - {id: own, action: keep, match: xyz}\n");
    works(fl_ruleset_load(dirs, 2, &rs, &err), &err);
    assert_string_not_equal(rs->version, before);
    assert_int_equal(rs->nfilters, 4);
    works(fl_filters_new(rs, NULL, &f, &err), &err);
    works(fl_filters_scratch_new(f, &s, &err), &err);
    works(fl_filters_block(f, s, FL_S("abcde\nabcxyz\n"), v, 2, &err), &err);
    assert_string_equal(rs->filters[v[0] - 1].id, "stays");
    assert_string_equal(rs->filters[v[1] - 1].id, "own");
    fl_match_scratch_free(s);
    fl_filters_free(f);
    fl_ruleset_free(rs);
    rs = NULL;
    put(two, "filters/b.yaml", "filters:\n  - {id: gone, action: drop, match: y}\n");
    assert_int_equal(fl_ruleset_load(dirs, 2, &rs, &err), FL_ERULE);
    assert_non_null(strstr(err.msg, "retire it here"));
    snprintf(cmd, sizeof(cmd), "rm -rf %s", one);
    assert_int_equal(system(cmd), 0);
}

struct findings {
    fl_buf text;
};

static void note(void *ctx, const char *text)
{
    struct findings *f = ctx;

    fl_buf_addz(&f->text, text);
    fl_buf_addz(&f->text, "\n");
}

static const char lax[] =
    "filters:\n"
    "  - {id: d-a, action: drop, match: 'ab+', drops: [abb, xyz], misses: [cab]}\n"
    "  - {id: d-b, action: drop, match: ['(?=b)b', '^c', 'z*'], why: w, source: s,\n"
    "     drops: [\"two\\nlines\", abc], misses: []}\n"
    "  - {id: g-a, action: guard, match: 'stop', why: w, source: s, keeps: [stop a, stop b],\n"
    "     misses: [stop me]}\n";

static void test_finds_each_fault(void **state)
{
    static const char *const says[] = {
        "'d-a' does not say why",
        "'d-a' has no source",
        "'d-a': example 2 is not matched",
        "'d-a': near-miss 1 is taken by the filter",
        "'d-b' has no near-miss",
        "'d-b': Vectorscan and ripgrep read this pattern differently or not at all: (?=b)b",
        "'d-b': no '^' in a pattern",
        "'d-b': no example shows the pattern: ^c",
        "'d-b': the pattern matches an empty line: z*",
        "'d-b': example 1 has more than one line",
        "'d-b': example 2 is taken by d-a",
        "'g-a': near-miss 1 is taken by the filter",
        "the filter 'd-a' drops a line of a hit of rule 'r-1': dab",
    };
    fl_str rules = FL_S("rules:\n  - {id: r-1, cause: a.b, role: root, maturity: test, match: x,\n"
                        "     hits: [\"first\\ndab\\nlast\"]}\n"
                        "  - {id: r-2, cause: a.b, role: benign, maturity: test, match: x,\n"
                        "     hits: [\"abandon\"]}\n");
    struct findings f;
    struct fl_filters_tally tally = {0};
    struct fix x = {0};
    fl_err err = {0};
    int n;

    (void)state;
    fl_buf_init(&f.text, 1 << 20);
    works(fl_ruleset_parse_filters(fl_str_c(taxonomy), rules, fl_str_c(lax), &x.rs, &err), &err);
    works(fl_filters_new(x.rs, NULL, &x.f, &err), &err);
    n = fl_filters_test(x.f, NULL, note, &f, &tally, &err);
    works(n, &err);
    for (size_t i = 0; i < COUNT(says); i++)
        if (!strstr(f.text.p, says[i]))
            fail_msg("nothing says \"%s\" in:\n%s", says[i], f.text.p);
    assert_null(strstr(f.text.p, "'r-2'"));
    assert_int_equal(tally.filters, 3);
    assert_int_equal(tally.hit_lines, 3);
    fl_buf_dispose(&f.text);
    shut(&x);
}

static void traceback_lines_stay(void **state)
{
    const struct fl_filter *by;
    struct fix x;
    size_t lines = 0;
    fl_buf text;
    fl_str rest;
    fl_err err = {0};

    (void)state;
    open_shipped(&x, FL_MATCH_AUTO);
    fl_buf_init(&text, 4 << 20);
    works(fl_file_read(FL_TEST_DATA "/tracebacks.txt", &text, &err), &err);
    for (rest = fl_buf_str(&text); rest.n; lines++) {
        fl_str line = fl_str_cut(&rest, '\n');
        if ((by = dropped(&x, line)))
            fail_msg("the filter '%s' drops '%.*s'", by->id, FL_FMT(line));
    }
    assert_true(lines > 300);
    fl_buf_dispose(&text);
    shut(&x);
}

/* Both engines give one verdict on every example of every filter and rule. */
static void engines_agree(void **state)
{
    struct fix a, b;
    size_t lines = 0;

    (void)state;
    open_shipped(&a, FL_MATCH_AUTO);
    open_shipped(&b, FL_MATCH_PCRE2);
    for (size_t i = 0; i < a.rs->nfilters + a.rs->nrules; i++) {
        bool filter = i < a.rs->nfilters;
        const struct fl_rule *r = filter ? NULL : &a.rs->rules[i - a.rs->nfilters];
        const struct fl_filter *f = filter ? &a.rs->filters[i] : NULL;
        size_t n = filter ? f->ntakes : r->nhits, m = filter ? f->nmisses : r->nmisses;
        for (size_t k = 0; k < n + m; k++) {
            const fl_str *first = filter ? f->takes : r->hits,
                         *more = filter ? f->misses : r->misses;
            fl_str rest = k < n ? first[k] : more[k - n];
            while (rest.n) {
                fl_str line = fl_str_cut(&rest, '\n');
                char by[100];
                snprintf(by, sizeof(by), "%s", decided(&a, line));
                if (strcmp(by, decided(&b, line)) != 0)
                    fail_msg("'%.*s': '%s' with one engine, '%s' with PCRE2", FL_FMT(line), by,
                             decided(&b, line));
                lines++;
            }
        }
    }
    assert_true(lines > 3000);
    shut(&a);
    shut(&b);
}

/* ---- the labelled cases ---- */

struct label {
    fl_regex *decisive[32];
    size_t n;
};

static void read_label(const char *dir, struct label *l)
{
    const fl_json *list;
    fl_json *root = NULL;
    char path[600];
    fl_buf text;
    fl_err err = {0};

    *l = (struct label){0};
    snprintf(path, sizeof(path), "%s/label.json", dir);
    fl_buf_init(&text, 1 << 20);
    works(fl_file_read(path, &text, &err), &err);
    works(fl_json_parse(fl_buf_str(&text), path, &root, &err), &err);
    list = fl_json_get(root, "decisive_lines");
    for (const fl_json *n = fl_json_first(list); n && l->n < COUNT(l->decisive);
         n = fl_json_next(n))
        works(fl_regex_new(fl_str_c(fl_json_z(n)), false, path, &l->decisive[l->n++], &err), &err);
    fl_json_free(root);
    fl_buf_dispose(&text);
}

struct counts {
    size_t lines, decisive, metric, dropped, wrong;
};

static void block_of_case(struct fix *x, const struct label *l, const char *dir, fl_str lines,
                          struct counts *c)
{
    size_t n = 0, k = 0;
    uint16_t *v;
    fl_err err = {0};

    for (size_t i = 0; i < lines.n; i++)
        n += lines.p[i] == '\n';
    v = fl_calloc(n + 1, sizeof(*v));
    assert_non_null(v);
    works(fl_filters_block(x->f, x->s, lines, v, n, &err), &err);
    for (fl_str rest = lines; rest.n; k++) {
        fl_str line = fl_str_cut(&rest, '\n');
        const struct fl_filter *f = v[k] ? &x->rs->filters[v[k] - 1] : NULL;
        bool drop = f && f->action == FL_FILTER_DROP, decisive = false;
        for (size_t i = 0; i < l->n && !decisive; i++)
            decisive = fl_regex_match(l->decisive[i], x->s, line, NULL);
        c->lines++;
        c->decisive += decisive;
        c->dropped += drop;
        c->metric += decisive && drop && f->metric;
        if (!decisive || !drop || f->metric)
            continue;
        print_error("%s: the filter '%s' drops a decisive line: %.*s\n", dir, f->id,
                    FL_FMT(fl_str_sub(line, 0, 300)));
        c->wrong++;
    }
    fl_free(v);
}

/* Metric lines may be decisive, as the last step or where the numbers show the cause: the timeline
 * quotes them. */
static void decisive_lines_of_cases_stay(void **state)
{
    const char *cases = FL_SOURCE_DIR "/tests/cases";
    struct counts c = {0};
    const char **names;
    struct fix x;
    fl_arena a;
    size_t n = 0;
    fl_err err = {0};

    (void)state;
    open_shipped(&x, FL_MATCH_AUTO);
    fl_arena_init(&a);
    works(fl_file_list(cases, &a, &names, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const char *dir = fl_file_join(&a, cases, names[i]);
        struct fl_reader_opts opts = {0};
        struct fl_block block;
        fl_reader *r = NULL;
        struct label l;
        int more;
        read_label(dir, &l);
        works(fl_reader_open(&dir, 1, &opts, &r, &err), &err);
        while ((more = fl_reader_next(r, &block, &err)) > 0)
            block_of_case(&x, &l, dir, fl_str_n(block.data, block.len), &c);
        works(more, &err);
        fl_reader_free(r);
        for (size_t k = 0; k < l.n; k++)
            fl_regex_free(l.decisive[k]);
    }
    print_message(
        "%zu cases, %zu lines, %zu dropped; %zu decisive, of which %zu metric lines dropped\n", n,
        c.lines, c.dropped, c.decisive, c.metric);
    assert_true(n > 200 && c.decisive > 200 && c.dropped > c.lines / 10);
    assert_int_equal(c.wrong, 0);
    fl_arena_dispose(&a);
    shut(&x);
}

/* All of it once: 0, or the code of what failed. */
static int from_text_to_verdict(uint16_t verdict[2])
{
    struct fl_match_opts opts = {.engine = FL_MATCH_PCRE2, .jit = true};
    struct fl_ruleset *rs = NULL;
    fl_filters *f = NULL;
    fl_match_scratch *s = NULL;
    fl_err err = {0};
    int r = fl_ruleset_parse_filters(fl_str_c(taxonomy), FL_S(""), fl_str_c(some), &rs, &err);

    if (!r)
        r = fl_filters_new(rs, &opts, &f, &err);
    if (!r)
        r = fl_filters_scratch_new(f, &s, &err);
    if (!r)
        r = fl_filters_block(f, s, FL_S("step 3 loss nan\nknown: it failed\n"), verdict, 2, &err);
    if (r && err.code != r)
        fail_msg("returned %d, told %d", r, err.code);
    fl_match_scratch_free(s);
    fl_filters_free(f);
    fl_ruleset_free(rs);
    return r;
}

static void running_out_of_memory_is_told(void **state)
{
    uint16_t right[2] = {0}, v[2];
    unsigned long failed = 0;
    struct hook h = {0};
    int r = FL_ENOMEM;

    (void)state;
    fl_alloc_hook(counted, &h);
    assert_int_equal(from_text_to_verdict(right), 0);
    assert_true(right[0] && right[1] && right[0] != right[1]);
    for (unsigned long at = 1;; at++) {
        v[0] = v[1] = 0;
        h.n = 0;
        h.fail_at = at;
        r = from_text_to_verdict(v);
        if (h.live)
            fail_msg("allocation %lu: %ld are left behind", at, h.live);
        if (h.n < at)
            break;
        failed += r == FL_ENOMEM;
        if (r != FL_ENOMEM && (r || v[0] != right[0] || v[1] != right[1]))
            fail_msg("allocation %lu: %d, verdicts %d and %d", at, r, v[0], v[1]);
        if (r && (v[0] || v[1]))
            fail_msg("allocation %lu: a verdict in spite of failure", at);
    }
    fl_alloc_hook(NULL, NULL);
    print_message("%lu allocations failed\n", failed);
    assert_true(failed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_beats_head_beats_drop),
        cmocka_unit_test(each_line_of_a_block_has_its_own),
        cmocka_unit_test(hostile_lines_are_not_judged),
        cmocka_unit_test(what_was_given_up_is_not_dropped),
        cmocka_unit_test(wrong_files_are_refused_with_their_line),
        cmocka_unit_test(later_folders_add_and_retire),
        cmocka_unit_test(test_finds_each_fault),
        cmocka_unit_test(traceback_lines_stay),
        cmocka_unit_test(engines_agree),
        cmocka_unit_test(decisive_lines_of_cases_stay),
        cmocka_unit_test(running_out_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
