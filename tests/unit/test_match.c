/*
 * match: candidates and confirmation, both engines against each other, the database cache, lint.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Under the name that base/alloc.h poisons below. */
static void *libc_realloc(void *p, size_t n)
{
    return realloc(p, n);
}

#include "base/alloc.h"
#include "base/file.h"
#include "match/match.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct fl_pattern patterns[] = {
    {FL_S("NVRM: Xid \\(PCI:(?P<gpu>[0-9A-Fa-f:.]+)[^)]*\\): 79\\b"), 0, false, false, "p:1"},
    {FL_S("CUDA out of memory"), 1, true, false, "p:2"},
    {FL_S("rank (?P<rank>\\d+).*timed? ?out after (?P<seconds>\\d+)"), 2, false, false, "p:3"},
    {FL_S("error$"), 3, true, false, "p:4"},
    {FL_S("\\bkilled\\b"), 4, true, false, "p:5"},
    {FL_S("Traceback \\(most recent"), 5, false, true, "p:6"},
    {FL_S("loss[ =:]+(?:nan|inf)"), 6, true, false, "p:7"},
    {FL_S("[^ab]{3}x+y?z*"), 7, false, false, "p:8"},
    {FL_S("step (?!1)\\d+"), 8, false, false, "p:9"},
    {FL_S("(\\w+) again \\1"), 9, false, false, "p:10"},
    {FL_S("(?>[^e]*)end$"), 10, false, false, "p:11"},
    {FL_S("\\Afirst"), 11, false, false, "p:12"},
    {FL_S("last\\z"), 12, false, false, "p:13"},
    {FL_S("x*"), 13, false, false, "p:14"},
    {FL_S("\\xff\\xfe"), 14, false, false, "p:15"},
    {FL_S("a.c"), 15, false, false, "p:16"},
    {FL_S("\\s\\S\\s$"), 16, false, false, "p:17"},
    {FL_S("\\Bout\\b"), 17, false, false, "p:18"},
    {FL_S("(?i:WARN)ing|notice(?-i)"), 18, false, false, "p:19"},
    {FL_S("[[:upper:]]{4,9} [[:xdigit:]]{2,}"), 19, false, false, "p:20"},
    {FL_S("a(?:b|c(?:d|e)*)+f{2,3}"), 20, true, false, "p:21"},
    {FL_S("(?s)begin.end"), 21, false, false, "p:22"},
    {FL_S("foo\\Kbar"), 22, false, false, "p:23"},
    {FL_S("(?<=:)\\d+$"), 23, false, false, "p:24"},
    {FL_S("q(?:.{0,300}r){2}"), 24, false, false, "p:25"},
    {FL_S("[^\\n]*\\t\\v?tail"), 25, false, false, "p:26"},
};

/* Pieces of lines: parts of the patterns' texts and what may stand between them. */
static const char *const pieces[] = {
    "NVRM: Xid (PCI:0000:3b:00): 79",
    ", pid=1",
    "NVRM: Xid (PCI:0000:3b:00): 790",
    "CUDA out of memory",
    "cuda OUT of Memory",
    "rank 3",
    " timeout after 600",
    " timed out after 10",
    "error",
    "ERROR",
    "killed",
    "_killed",
    "Killed.",
    "Traceback (most recent call last):",
    "loss: nan",
    "LOSS=inf",
    "xxxyz",
    "abx",
    "step 12",
    "step 2",
    "step ",
    "bar again bar",
    "again",
    "end",
    "eend",
    "first",
    "last",
    "\xff\xfe",
    "\xff",
    "abc",
    "a\tc",
    "a",
    "c",
    "out",
    "about",
    "WARNing",
    "notice",
    "ABCD ff",
    "acdedff",
    "ABFFF",
    "begin",
    "begin end",
    "foobar",
    "foo",
    ":42",
    "q",
    "r",
    "\ttail",
    "\v",
    "\r",
    " ",
    " ",
    "  ",
    "\t",
    ".",
    ":",
    "\x1b[31m",
    "\x80\xc3\xa9",
};

static uint64_t seed;
static uint32_t random_below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static fl_matcher *new_matcher(enum fl_match_engine engine, const char *cache, bool jit)
{
    struct fl_match_opts opts = {engine, cache, jit};
    fl_matcher *m = NULL;
    fl_err err = {0};

    /* The cache tests build the database dozens of times: a few patterns do for them. */
    if (fl_matcher_new(patterns, cache ? 7 : COUNT(patterns), &opts, &m, &err))
        fail_msg("fl_matcher_new: %s", err.msg);
    return m;
}

/* Every confirmed (line, pattern) of the block, as text. */
static void confirmed(const fl_matcher *m, fl_match_scratch *s, fl_str data, fl_buf *out)
{
    const struct fl_candidate *c;
    struct fl_caps caps;
    size_t n;
    fl_err err = {0};

    fl_buf_clear(out);
    if (fl_match_block(m, s, data, &c, &n, &err))
        fail_msg("fl_match_block: %s", err.msg);
    for (size_t i = 0; i < n; i++) {
        fl_str line = fl_str_sub(data, c[i].at, c[i].len);
        if (i)
            assert_true(c[i - 1].at < c[i].at ||
                        (c[i - 1].at == c[i].at && c[i - 1].pattern < c[i].pattern));
        assert_true(c[i].at == 0 || data.p[c[i].at - 1] == '\n');
        assert_true(data.p[c[i].at + c[i].len] == '\n');
        assert_null(memchr(line.p, '\n', line.n));
        if (fl_match_confirm(m, s, c[i].pattern, line, 0, &caps))
            fl_buf_addf(out, "%u:%u[%.*s]\n", c[i].at, c[i].pattern, FL_FMT(caps.whole));
    }
    assert_int_equal(fl_buf_check(out, "the test's list", &err), 0);
}

static size_t times[COUNT(patterns)]; /* how often each pattern matched in the truth */

/* The truth, without any candidate finding: each pattern on each line. */
static void truth(const fl_matcher *m, fl_match_scratch *s, fl_str data, fl_buf *out)
{
    fl_str rest = data;
    struct fl_caps caps;

    fl_buf_clear(out);
    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        for (uint32_t i = 0; i < COUNT(patterns); i++)
            if (fl_match_confirm(m, s, i, line, 0, &caps)) {
                fl_buf_addf(out, "%u:%u[%.*s]\n", (unsigned)(line.p - data.p), i,
                            FL_FMT(caps.whole));
                times[i]++;
            }
    }
}

static void same_answers(const fl_matcher *const *m, fl_match_scratch *const *s, size_t n,
                         fl_str data, const char *what)
{
    fl_buf want, got;

    fl_buf_init(&want, 64 << 20);
    fl_buf_init(&got, 64 << 20);
    truth(m[0], s[0], data, &want);
    for (size_t i = 0; i < n; i++) {
        confirmed(m[i], s[i], data, &got);
        if (!fl_str_eq(fl_buf_str(&want), fl_buf_str(&got)))
            fail_msg("%s, %s: the answers differ\nwant:\n%.1000s\ngot:\n%.1000s\nblock:\n%.2000s",
                     what, fl_matcher_engine(m[i]), want.p ? want.p : "", got.p ? got.p : "",
                     data.p);
    }
    fl_buf_dispose(&want);
    fl_buf_dispose(&got);
}

static void random_block(fl_buf *b, uint32_t lines)
{
    fl_buf_clear(b);
    for (uint32_t i = 0; i < lines; i++) {
        for (uint32_t k = random_below(8); k; k--)
            fl_buf_addz(b, pieces[random_below(COUNT(pieces))]);
        fl_buf_addc(b, '\n');
    }
}

static void engines_agree(void **state)
{
    (void)state;
    const fl_matcher *m[3] = {new_matcher(FL_MATCH_PCRE2, NULL, true),
                              new_matcher(FL_MATCH_PCRE2, NULL, false),
                              new_matcher(FL_MATCH_AUTO, NULL, true)};
    fl_match_scratch *s[3];
    char what[40];
    fl_buf b;

    fl_buf_init(&b, 64 << 20);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fl_match_scratch_new(m[i], &s[i], NULL), 0);
    seed = 20260301;
    for (int i = 0; i < 300; i++) {
        random_block(&b, 1 + random_below(40));
        snprintf(what, sizeof(what), "random block %d", i);
        same_answers(m, s, 3, fl_buf_str(&b), what);
    }
    for (size_t i = 0; i < COUNT(patterns); i++)
        if (times[i] < 5)
            fail_msg("%s matched only %zu times", patterns[i].where, times[i]);
    fl_buf_clear(&b);
    fl_buf_addz(&b, "\n\n\nerror\n\r\nerror\r\nlast\nfirst\n\n");
    same_answers(m, s, 3, fl_buf_str(&b), "empty lines and CR");
    same_answers(m, s, 3, FL_S("\n"), "one empty line");
    same_answers(m, s, 3, FL_S(""), "nothing");
    same_answers(m, s, 3, FL_S("begin\nend\nfoo\nbar\nlast\n\n"), "matches over two lines");
    same_answers(m, s, 3, FL_S("a\0c out\0 error\0\nab\0error\n"), "NUL bytes");
    fl_buf_clear(&b);
    for (int i = 0; i < 300000; i++)
        fl_buf_addz(&b, i % 1000 ? "step 1x" : "CUDA out of memory q r ");
    fl_buf_addz(&b, " error\nkilled\n");
    same_answers(m, s, 3, fl_buf_str(&b), "a line of two megabytes");
    for (int i = 0; i < 3; i++) {
        fl_match_scratch_free(s[i]);
        fl_matcher_free((fl_matcher *)(uintptr_t)m[i]);
    }
    fl_buf_dispose(&b);
}

static void captures_and_anchors(void **state)
{
    (void)state;
    fl_matcher *m = new_matcher(FL_MATCH_AUTO, NULL, true);
    fl_match_scratch *s;
    struct fl_caps caps;
    fl_str line = FL_S("[rank3]: rank 12 timed out after 600 s");
    fl_str tb = FL_S("[rank3]: Traceback (most recent call last):");

    assert_int_equal(fl_match_scratch_new(m, &s, NULL), 0);
    assert_true(fl_match_confirm(m, s, 2, line, 9, &caps));
    assert_int_equal(caps.n, 2);
    assert_string_equal(caps.cap[0].name, "rank");
    assert_true(fl_str_eqz(caps.cap[0].text, "12"));
    assert_string_equal(caps.cap[1].name, "seconds");
    assert_true(fl_str_eqz(caps.cap[1].text, "600"));
    assert_true(fl_match_confirm(m, s, 5, tb, 9, NULL));
    assert_false(fl_match_confirm(m, s, 5, tb, 0, NULL));
    assert_false(fl_match_confirm(m, s, 5, tb, 8, NULL));
    assert_false(fl_match_confirm(m, s, 5, tb, 500, NULL));
    assert_int_equal(fl_match_limited(s), 0);
    fl_match_scratch_free(s);
    fl_matcher_free(m);
}

static void bad_patterns_are_named(void **state)
{
    (void)state;
    static const struct {
        fl_str regex;
        const char *says;
    } rows[] = {
        {FL_S("a(b"), "r.yaml:7: the pattern is wrong at position 3: missing closing parenthesis"},
        {FL_S("(*UTF)a"), "r.yaml:7: the pattern is wrong at position"},
        {FL_S(""), "r.yaml:7: the pattern is empty"},
        {FL_S("a\0b"), "r.yaml:7: the pattern is empty or holds a NUL byte"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fl_pattern p[] = {patterns[0], {rows[i].regex, 1, false, false, "r.yaml:7"}};
        fl_matcher *m = NULL;
        fl_err err = {0};
        assert_int_equal(fl_matcher_new(p, 2, NULL, &m, &err), FL_ERULE);
        assert_null(m);
        if (strncmp(err.msg, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("row %zu: %s", i, err.msg);
    }
}

/* What two lines hold together is in neither of them: no engine may call one a candidate. */
static void a_match_stays_in_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *regex, *text;
        size_t lines; /* candidates that are right */
    } rows[] = {
        {"name '[^']*'", "name 'a\nb'\n", 0},
        {"name '[^']*'", "name 'a'\nname 'b\nc'\n", 1},
        {"a\\s+b", "a\n b\n", 0},
        {"a\\s+b", "a \t b\na\nb\n", 1},
        {"a\\Db", "a\nb\naxb\n", 1},
        {"a\\Wb", "a\nb\na b\n", 1},
        {"a[\\s-x]b", "a\nb\na-b\na b\n", 2},
        {"a[\\s\\d]+b", "a 1\n2 b\na 1 b\n", 1},
        {"a[^]x]b", "a\nb\na]b\na-b\n", 1},
        {"a[^-x]b", "a\nb\na-b\na,b\n", 1},
        {"a[^[:alpha:]]b", "a\nb\na]b\n", 1},
        {"a[^\\]]b", "a\nb\na]b\na[b\n", 1},
    };
    static const enum fl_match_engine engines[] = {FL_MATCH_AUTO, FL_MATCH_PCRE2};

    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        struct fl_pattern p = {fl_str_c(rows[i / 2].regex), 0, false, false, "p"};
        struct fl_match_opts opts = {engines[i % 2], NULL, true};
        const struct fl_candidate *c;
        fl_match_scratch *s;
        fl_matcher *m;
        size_t n;
        fl_err err = {0};
        if (fl_matcher_new(&p, 1, &opts, &m, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(fl_match_scratch_new(m, &s, NULL), 0);
        assert_int_equal(fl_match_block(m, s, fl_str_c(rows[i / 2].text), &c, &n, NULL), 0);
        if (n != rows[i / 2].lines)
            fail_msg("%s (%s): %zu candidates, not %zu", rows[i / 2].regex, fl_matcher_engine(m), n,
                     rows[i / 2].lines);
        fl_match_scratch_free(s);
        fl_matcher_free(m);
    }
}

static void hostile_lines_are_bounded(void **state)
{
    (void)state;
    struct fl_pattern p = {FL_S("(?:a+)+b"), 0, false, false, "p"};
    static const enum fl_match_engine engines[] = {FL_MATCH_AUTO, FL_MATCH_PCRE2};
    const struct fl_candidate *c;
    fl_match_scratch *s;
    fl_matcher *m;
    size_t n;
    fl_buf b;

    fl_buf_init(&b, 1 << 16);
    for (int i = 0; i < 40; i++)
        fl_buf_addc(&b, 'a');
    fl_buf_addz(&b, "c b\nab\n");
    for (size_t i = 0; i < 2; i++) {
        struct fl_match_opts opts = {engines[i], NULL, i == 0};
        assert_int_equal(fl_matcher_new(&p, 1, &opts, &m, NULL), 0);
        assert_int_equal(fl_match_scratch_new(m, &s, NULL), 0);
        assert_int_equal(fl_match_block(m, s, fl_buf_str(&b), &c, &n, NULL), 0);
        assert_true(n >= 1);
        assert_int_equal(c[n - 1].at, 44);
        assert_true(fl_match_confirm(m, s, 0, FL_S("ab"), 0, NULL));
        assert_false(fl_match_confirm(m, s, 0, fl_str_sub(fl_buf_str(&b), 0, 43), 0, NULL));
        assert_true(fl_match_limited(s) >= 1);
        fl_match_scratch_free(s);
        fl_matcher_free(m);
    }
    fl_buf_dispose(&b);
}

static void single_expressions(void **state)
{
    (void)state;
    fl_match_scratch *s;
    struct fl_caps caps;
    fl_regex *re = NULL;
    fl_err err = {0};

    assert_int_equal(fl_match_scratch_new(NULL, &s, NULL), 0);
    assert_int_equal(fl_regex_new(FL_S("(?<!not )FAILED=(?P<n>\\d+)"), true, "c:1", &re, &err), 0);
    assert_true(fl_regex_match(re, s, FL_S("it failed=3"), &caps));
    assert_true(fl_str_eqz(caps.cap[0].text, "3"));
    assert_true(fl_str_eqz(caps.whole, "failed=3"));
    assert_false(fl_regex_match(re, s, FL_S("not failed=3"), NULL));
    fl_regex_free(re);
    assert_int_equal(fl_regex_new(FL_S("[a"), false, "c:2", &re, &err), FL_ERULE);
    assert_non_null(strstr(err.msg, "c:2: the pattern is wrong"));
    fl_match_scratch_free(s);
}

static const struct {
    fl_str regex;
    bool regular;
} regular_rows[] = {
    {FL_S("a\\.b(?:c|d)*[^x\\]]{2,3}?\\d+$"), true},
    {FL_S("(?P<x>\\w+)(?i:abc)(?i)d\\x41[]a-]"), true},
    {FL_S("[[:alpha:]_-]+\\b"), true},
    {FL_S("a(?=b)"), false},
    {FL_S("a(?!b)"), false},
    {FL_S("(?<=a)b"), false},
    {FL_S("(a)\\1"), false},
    {FL_S("(?P<a>x)(?P=a)"), false},
    {FL_S("a++"), false},
    {FL_S("a{2}+"), false},
    {FL_S("[a]?+"), false},
    {FL_S("(?>a)"), false},
    {FL_S("(?<a>x)"), false},
    {FL_S("(?#x)a"), false},
    {FL_S("(*LF)a"), false},
    {FL_S("(?|a|b)"), false},
    {FL_S("a\\Kb"), false},
    {FL_S("\\h"), false},
    {FL_S("a{"), false},
    {FL_S("a{,3}"), false},
    {FL_S("[a[b]"), false},
    {FL_S("[a&&b]"), false},
    {FL_S("\\/"), false},
    {FL_S("a\\n"), false},
    {FL_S("[^\\n]"), true},
    {FL_S("[\\n]"), false},
    {FL_S("can\\'t"), false},
    {FL_S("\\++\\(?\\\\"), true},
};

static void lint_of_patterns(void **state)
{
    (void)state;
    static const fl_str hits[] = {FL_S("worker 3 failed: exit code 1 (pid 33) after 3 s")};
    static const struct {
        const char *regex;
        bool bad;
    } probes[] = {
        {"worker (?P<rank>\\d+) failed: .*pid \\d+", false},
        {"failed.*code.*after", false},
        {"(?:\\w+ ?)+:$", true},
        {"(?:a+)+$", true},
        {"(?:[a-z]+)*[0-9]+(?:[a-z0-9]+)*x", true},
        {".*.*.*.*.*=x", true},
    };
    for (size_t i = 0; i < COUNT(regular_rows); i++)
        if (fl_pattern_is_regular(regular_rows[i].regex) != regular_rows[i].regular)
            fail_msg("%s: regular is not %d", regular_rows[i].regex.p, regular_rows[i].regular);
    for (size_t i = 0; i < COUNT(probes); i++) {
        struct fl_pattern p = {fl_str_c(probes[i].regex), 0, false, false, "r:1"};
        fl_err err = {0};
        int r = fl_pattern_probe(&p, hits, 1, 3000000, &err);
        if (probes[i].bad ? r != FL_ELIMIT : r < 0)
            fail_msg("%s: probe gives %d %s", probes[i].regex, r, err.msg);
    }
    assert_true(fl_pattern_has_caret(FL_S("(^a)")));
    assert_false(fl_pattern_has_caret(FL_S("[^a]\\^")));
    assert_true(fl_pattern_has_group(&patterns[0], FL_S("gpu")));
    assert_false(fl_pattern_has_group(&patterns[0], FL_S("rank")));
}

struct worker {
    const fl_matcher *m;
    const fl_regex *re;
    fl_str data;
    fl_buf out;
    bool ok;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    fl_match_scratch *s;

    if (fl_match_scratch_new(w->m, &s, NULL))
        return NULL;
    confirmed(w->m, s, w->data, &w->out);
    w->ok = fl_regex_match(w->re, s, FL_S("memory"), NULL);
    fl_match_scratch_free(s);
    return NULL;
}

/* Threads meet at patterns that none of them has compiled yet. Run under ThreadSanitizer this shows
 * more than that the answers are the same. */
static void threads_share_a_matcher(void **state)
{
    (void)state;
    enum { N = 4 };
    struct worker w[N];
    pthread_t id[N];
    fl_regex *re;
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    seed = 7;
    random_block(&b, 400);
    assert_int_equal(fl_regex_new(FL_S("mem.*y"), false, "t", &re, NULL), 0);
    for (int round = 0; round < 5; round++) {
        fl_matcher *m = new_matcher(FL_MATCH_AUTO, "", true);
        for (int i = 0; i < N; i++) {
            w[i] = (struct worker){.m = m, .re = re, .data = fl_buf_str(&b)};
            fl_buf_init(&w[i].out, 64 << 20);
            assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
        }
        for (int i = 0; i < N; i++)
            pthread_join(id[i], NULL);
        for (int i = 0; i < N; i++) {
            assert_true(w[i].ok && w[i].out.n > 1000);
            assert_true(fl_str_eq(fl_buf_str(&w[i].out), fl_buf_str(&w[0].out)));
        }
        for (int i = 0; i < N; i++)
            fl_buf_dispose(&w[i].out);
        fl_matcher_free(m);
    }
    fl_regex_free(re);
    fl_buf_dispose(&b);
}

static size_t until_failure; /* SIZE_MAX: never */

static void *failing(void *ctx, void *p, size_t n)
{
    (void)ctx;
    if (n == 0) {
        free(p);
        return NULL;
    }
    if (until_failure == 0)
        return NULL;
    if (until_failure != SIZE_MAX)
        until_failure--;
    return libc_realloc(p, n);
}

/* One whole use of the room; the answer, or a negative error. */
static int one_use(enum fl_match_engine engine)
{
    struct fl_match_opts opts = {engine, NULL, true};
    const struct fl_candidate *c;
    fl_match_scratch *s = NULL;
    fl_matcher *m = NULL;
    fl_regex *re = NULL;
    int r, found = 0;
    size_t n = 0;

    if ((r = fl_matcher_new(patterns, 10, &opts, &m, NULL)) == 0 &&
        (r = fl_match_scratch_new(m, &s, NULL)) == 0 &&
        (r = fl_regex_new(FL_S("mem(?P<x>o)ry"), false, "t", &re, NULL)) == 0)
        r = fl_match_block(m, s, FL_S("error\nx CUDA out of memory\nkilled\n"), &c, &n, NULL);
    for (size_t i = 0; r == 0 && i < n; i++)
        found += fl_match_confirm(m, s, c[i].pattern, FL_S("x CUDA out of memory error"), 0, NULL);
    if (r == 0)
        found += 10 * fl_regex_match(re, s, FL_S("memory"), NULL);
    if (r == 0 && fl_match_out_of_memory(s))
        r = FL_ENOMEM;
    fl_regex_free(re);
    fl_match_scratch_free(s);
    fl_matcher_free(m);
    return r ? r : found;
}

static void each_failed_allocation_is_told(void **state)
{
    (void)state;
    static const enum fl_match_engine engines[] = {FL_MATCH_AUTO, FL_MATCH_PCRE2};

    fl_alloc_hook(failing, NULL);
    for (size_t e = 0; e < COUNT(engines); e++) {
        size_t i = 0;
        int r = FL_ENOMEM, want;
        until_failure = SIZE_MAX;
        want = one_use(engines[e]);
        assert_true(want >= 12);
        for (; r == FL_ENOMEM && i < 100000; i++) {
            until_failure = i;
            r = one_use(engines[e]);
        }
        until_failure = SIZE_MAX;
        if (r != want)
            fail_msg("engine %zu, allocation %zu: got %d, wanted %d", e, i, r, want);
    }
    fl_alloc_hook(NULL, NULL);
}

#ifdef FL_HAVE_VECTORSCAN

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/fl-match-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    fl_arena a;
    const char **names;
    size_t n;

    fl_arena_init(&a);
    chmod(dir, 0700);
    if (fl_file_list(dir, &a, &names, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            unlink(fl_file_join(&a, dir, names[i]));
    rmdir(dir);
    fl_arena_dispose(&a);
    return 0;
}

/* The one file in the folder: its path in `path` and its bytes in `bytes`. */
static void cache_file(char *path, size_t cap, fl_buf *bytes)
{
    fl_arena a;
    const char **names;
    size_t n;
    fl_err err = {0};

    fl_arena_init(&a);
    assert_int_equal(fl_file_list(dir, &a, &names, &n, &err), 0);
    assert_int_equal(n, 1);
    snprintf(path, cap, "%s/%s", dir, names[0]);
    assert_int_equal(fl_file_read(path, bytes, &err), 0);
    fl_arena_dispose(&a);
}

static void works(const fl_matcher *m)
{
    static const char text[] = "x\nCUDA out of memory\nerror\n";
    fl_match_scratch *s;
    fl_buf b;

    fl_buf_init(&b, 10000);
    assert_int_equal(fl_match_scratch_new(m, &s, NULL), 0);
    confirmed(m, s, fl_str_c(text), &b);
    if (!b.p || !strstr(b.p, "2:1[CUDA out of memory]\n") || !strstr(b.p, "21:3[error]\n"))
        fail_msg("wrong answers: %s", b.p ? b.p : "none");
    fl_match_scratch_free(s);
    fl_buf_dispose(&b);
}

static void expect(bool hit, const char *note)
{
    fl_matcher *m = new_matcher(FL_MATCH_VECTORSCAN, dir, true);
    const char *said = fl_matcher_cache_note(m);

    if (fl_matcher_cache_hit(m) != hit || !said != !note || (note && !strstr(said, note)))
        fail_msg("hit %d, note %s; wanted %d, %s", fl_matcher_cache_hit(m), said ? said : "none",
                 hit, note ? note : "none");
    works(m);
    fl_matcher_free(m);
}

static void cache_is_used(void **state)
{
    (void)state;
    expect(false, NULL);
    expect(true, NULL);
    expect(true, NULL);
}

static void cache_survives_damage(void **state)
{
    (void)state;
    char path[128];
    fl_buf good;
    size_t step;

    fl_buf_init(&good, 64 << 20);
    expect(false, NULL);
    cache_file(path, sizeof(path), &good);
    step = good.n / 20 + 1;
    for (size_t at = 0; at < good.n; at += at < 90 ? 5 : step) {
        good.p[at] ^= 0x20;
        assert_int_equal(fl_file_write_atomic(path, fl_buf_str(&good), NULL), 0);
        good.p[at] ^= 0x20;
        expect(false, "is not used");
        expect(true, NULL);
    }
    for (size_t n = 0; n < good.n; n += n < 90 ? 21 : good.n / 5) {
        assert_int_equal(fl_file_write_atomic(path, fl_str_n(good.p, n), NULL), 0);
        expect(false, "is not used");
        expect(true, NULL);
    }
    good.p[8]++;
    assert_int_equal(fl_file_write_atomic(path, fl_buf_str(&good), NULL), 0);
    expect(false, "another format version");
    good.p[8]--;
    assert_int_equal(fl_file_write_atomic(path, fl_buf_str(&good), NULL), 0);
    assert_int_equal(chmod(path, 0666), 0);
    expect(false, "other users");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    expect(false, "not");
    rmdir(path);
    fl_buf_dispose(&good);
}

static void cache_needs_no_folder(void **state)
{
    (void)state;
    fl_matcher *m = new_matcher(FL_MATCH_VECTORSCAN, "/proc/no-such/place", true);
    char sub[128];

    assert_false(fl_matcher_cache_hit(m));
    assert_non_null(strstr(fl_matcher_cache_note(m), "was not written"));
    works(m);
    fl_matcher_free(m);
    m = new_matcher(FL_MATCH_VECTORSCAN, NULL, true);
    assert_null(fl_matcher_cache_note(m));
    works(m);
    fl_matcher_free(m);
    if (geteuid() != 0) { /* root may write everywhere */
        chmod(dir, 0500);
        expect(false, "was not written");
        chmod(dir, 0700);
    }
    snprintf(sub, sizeof(sub), "%s/a/b", dir);
    m = new_matcher(FL_MATCH_VECTORSCAN, sub, true);
    assert_null(fl_matcher_cache_note(m));
    fl_matcher_free(m);
    m = new_matcher(FL_MATCH_VECTORSCAN, sub, true);
    assert_true(fl_matcher_cache_hit(m));
    fl_matcher_free(m);
    snprintf(sub, sizeof(sub), "rm -r %s/a", dir);
    assert_int_equal(system(sub), 0);
}

static void cache_takes_many_writers(void **state)
{
    (void)state;
    enum { N = 6 };
    pid_t pid[N];
    int status;

    for (int i = 0; i < N; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            struct fl_match_opts opts = {FL_MATCH_VECTORSCAN, dir, true};
            fl_matcher *m = NULL;
            int bad = fl_matcher_new(patterns, 7, &opts, &m, NULL);
            bad = bad || fl_matcher_cache_note(m);
            _exit(bad ? 1 : 0);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    expect(true, NULL);
}

static void cache_drops_old_files(void **state)
{
    (void)state;
    struct fl_match_opts opts = {FL_MATCH_VECTORSCAN, dir, true};
    fl_matcher *m;
    fl_arena a;
    const char **names;
    size_t n;

    for (size_t i = 1; i < 9; i++) {
        assert_int_equal(fl_matcher_new(patterns, i, &opts, &m, NULL), 0);
        fl_matcher_free(m);
    }
    fl_arena_init(&a);
    assert_int_equal(fl_file_list(dir, &a, &names, &n, NULL), 0);
    assert_int_equal(n, 4);
    fl_arena_dispose(&a);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_agree),
        cmocka_unit_test(captures_and_anchors),
        cmocka_unit_test(bad_patterns_are_named),
        cmocka_unit_test(a_match_stays_in_its_line),
        cmocka_unit_test(hostile_lines_are_bounded),
        cmocka_unit_test(single_expressions),
        cmocka_unit_test(lint_of_patterns),
        cmocka_unit_test(threads_share_a_matcher),
        cmocka_unit_test(each_failed_allocation_is_told),
#ifdef FL_HAVE_VECTORSCAN
        cmocka_unit_test_setup_teardown(cache_is_used, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(cache_survives_damage, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(cache_needs_no_folder, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(cache_takes_many_writers, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(cache_drops_old_files, make_dir, remove_dir),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
