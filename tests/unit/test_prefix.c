/*
 * prefix: rows of tests/data/prefix.tsv, times.tsv and places.tsv.
 *
 * A row names only the fields it expects to be known; every other field must be unknown, so a row
 * also proves what is not found. In the tables \t, \e and \\ are escapes; '#' starts a comment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "read/prefix.h"

#include "base/file.h"

static const char *const origins[] = {"unknown", "python",   "torch",     "nccl",     "kernel",
                                      "syslog",  "launcher", "scheduler", "container"};
static const char *const sevs[] = {"none", "debug", "info", "warn", "error", "fatal"};

static void unescape(fl_str s, fl_buf *out)
{
    fl_buf_clear(out);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n) {
            i++;
            fl_buf_addc(out, (char)(s.p[i] == 't' ? '\t' : s.p[i] == 'e' ? 27 : s.p[i]));
        } else {
            fl_buf_addc(out, s.p[i]);
        }
    }
}

static void put_int(fl_buf *b, const char *key, int64_t v)
{
    if (v >= 0)
        fl_buf_addf(b, "%s=%lld ", key, (long long)v);
}

/* What was found, in a fixed order, as the table writes it. */
static void render(fl_str line, fl_buf *b)
{
    struct fl_prefix p;
    char when[40];

    fl_prefix_parse(line, &p);
    fl_buf_clear(b);
    put_int(b, "rank", p.rank);
    put_int(b, "local", p.local_rank);
    put_int(b, "node", p.node_rank);
    put_int(b, "gpu", p.gpu_index);
    put_int(b, "msg_rank", p.msg_rank);
    put_int(b, "task", p.task);
    put_int(b, "pid", p.pid);
    if (p.host.n)
        fl_buf_addf(b, "host=%.*s ", FL_FMT(p.host));
    fl_time_print(&p.time, when);
    if (when[0])
        fl_buf_addf(b, "time=%s ", when);
    if (p.severity)
        fl_buf_addf(b, "sev=%s ", sevs[p.severity]);
    if (p.origin)
        fl_buf_addf(b, "from=%s ", origins[p.origin]);
    assert_true(p.message <= line.n);
    fl_buf_addf(b, "msg=%.*s", FL_FMT(fl_str_from(line, p.message)));
}

typedef int (*row_fn)(fl_str first, fl_str want, fl_buf *scratch);

/* Runs each row "TEXT<TAB>EXPECTED"; counts the ones that differ. */
static void run_table(const char *name, size_t least, row_fn fn)
{
    char path[500];
    fl_buf file, text, want, scratch;
    fl_str rest, row, first;
    fl_err err = {0};
    size_t rows = 0, line = 0;
    int bad = 0;

    snprintf(path, sizeof(path), "%s/%s", FL_TEST_DATA, name);
    fl_buf_init(&file, 1 << 20);
    fl_buf_init(&text, 1 << 16);
    fl_buf_init(&want, 1 << 16);
    fl_buf_init(&scratch, 1 << 16);
    assert_int_equal(fl_file_read(path, &file, &err), 0);
    for (rest = fl_buf_str(&file); rest.n;) {
        row = fl_str_cut(&rest, '\n');
        line++;
        if (row.n == 0 || row.p[0] == '#')
            continue;
        first = fl_str_cut(&row, '\t');
        unescape(first, &text);
        unescape(row, &want);
        rows++;
        if (fn(fl_buf_str(&text), fl_buf_str(&want), &scratch)) {
            bad++;
            fprintf(stderr, "%s:%zu: %.*s\n  want: %s\n  got:  %s\n", name, line, FL_FMT(first),
                    want.p ? want.p : "", scratch.p ? scratch.p : "");
        }
    }
    fl_buf_dispose(&file);
    fl_buf_dispose(&text);
    fl_buf_dispose(&want);
    fl_buf_dispose(&scratch);
    assert_int_equal(bad, 0);
    assert_true(rows >= least);
}

static int prefix_row(fl_str line, fl_str want, fl_buf *b)
{
    char *exact = malloc(line.n ? line.n : 1); /* so that a sanitizer sees one byte too far */

    if (line.n)
        memcpy(exact, line.p, line.n);
    render(fl_str_n(exact, line.n), b);
    free(exact);
    return !fl_str_eq(fl_buf_str(b), want);
}

static void prefixes(void **state)
{
    (void)state;
    run_table("prefix.tsv", 120, prefix_row);
}

static int time_row(fl_str text, fl_str want, fl_buf *b)
{
    struct fl_time t = {0};
    char when[40];
    size_t n = fl_time_parse(text, &t);

    fl_buf_clear(b);
    fl_time_print(&t, when);
    if (n)
        fl_buf_addf(b, "%zu %s", n, when);
    else
        fl_buf_addz(b, "0");
    return !fl_str_eq(fl_buf_str(b), want);
}

static void times(void **state)
{
    (void)state;
    run_table("times.tsv", 50, time_row);
}

static int place_row(fl_str name, fl_str want, fl_buf *b)
{
    struct fl_file_place p;

    fl_place_from_name(name, &p);
    fl_buf_clear(b);
    put_int(b, "rank", p.rank);
    put_int(b, "local", p.local_rank);
    put_int(b, "node", p.node_rank);
    put_int(b, "attempt", p.attempt);
    if (p.host.n)
        fl_buf_addf(b, "host=%.*s ", FL_FMT(p.host));
    if (p.kernel)
        fl_buf_addz(b, "kernel ");
    if (b->n)
        fl_buf_cut(b, b->n - 1);
    return !fl_str_eq(fl_buf_str(b), want);
}

static void places(void **state)
{
    (void)state;
    run_table("places.tsv", 40, place_row);
}

static void peeking(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int kind, value;
    } rows[] = {
        {"[rank3]: x", FL_PEEK_RANK, 3},
        {"[rank12]:[E605 12:00:00.1 a.cpp:1] x", FL_PEEK_RANK, 12},
        {"[default3]:x", FL_PEEK_LOCAL, 3},
        {"[default3]:[rank11]: x", FL_PEEK_RANK, 11},
        {"12: x", FL_PEEK_TASK, 12},
        {"  3: x", FL_PEEK_TASK, 3},
        {"0: [rank7]: x", FL_PEEK_RANK, 7},
        {"[1,9]<stderr>:x", FL_PEEK_RANK, 9},
        {"12:30:01 x", FL_PEEK_NONE, -7},
        {"12:", FL_PEEK_NONE, -7},
        {"[3] x", FL_PEEK_NONE, -7},
        {"[1, 9] x", FL_PEEK_NONE, -7},
        {"", FL_PEEK_NONE, -7},
        {"        3: x", FL_PEEK_NONE, -7},
        {"[rank", FL_PEEK_NONE, -7},
        {"   4: std::rt::start", FL_PEEK_NONE, -7},
        {"2: eth0: <BROADCAST>", FL_PEEK_NONE, -7},
        {"12345678: x", FL_PEEK_NONE, -7},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int32_t v = -7;
        int kind = fl_prefix_peek_rank(fl_str_c(rows[i].line), &v);
        if (kind != rows[i].kind || v != rows[i].value)
            fail_msg("'%s': kind %d value %d", rows[i].line, kind, v);
    }
}

/* The parser never reads behind the slice: every cut of every row is parsed in a block of its own
 * size. */
static int cut_row(fl_str line, fl_str want, fl_buf *b)
{
    struct fl_prefix p;
    int32_t rank;

    (void)want;
    for (size_t n = 0; n < line.n; n++) {
        char *exact = malloc(n ? n : 1);
        memcpy(exact, line.p, n);
        fl_prefix_parse(fl_str_n(exact, n), &p);
        fl_prefix_peek_rank(fl_str_n(exact, n), &rank);
        free(exact);
        if (p.message > n)
            return 1;
    }
    fl_buf_clear(b);
    return 0;
}

static void cuts(void **state)
{
    (void)state;
    run_table("prefix.tsv", 120, cut_row);
}

static void civil_days(void **state)
{
    (void)state;
    assert_int_equal(fl_days_from_civil(1970, 1, 1), 0);
    assert_int_equal(fl_days_from_civil(2000, 3, 1), 11017);
    assert_int_equal(fl_days_from_civil(1969, 12, 31), -1);
    assert_int_equal(fl_days_from_civil(2024, 2, 29) + 1, fl_days_from_civil(2024, 3, 1));
    assert_int_equal(fl_days_from_civil(2100, 2, 28) + 1, fl_days_from_civil(2100, 3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes), cmocka_unit_test(times), cmocka_unit_test(places),
        cmocka_unit_test(peeking),  cmocka_unit_test(cuts),  cmocka_unit_test(civil_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
