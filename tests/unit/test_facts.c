/*
 * Places told by one line: tests/data/facts.tsv, and Slurm's host lists.
 *
 * A row is the message, TAB, and the facts in the order in which they are told, "; " between them:
 * the kind, then what is said of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "diagnose/place_parse.h"

static void number(fl_buf *b, const char *name, int64_t v)
{
    if (v >= 0)
        fl_buf_addf(b, " %s=%lld", name, (long long)v);
}

static void word(fl_buf *b, const char *name, fl_str s)
{
    if (s.n)
        fl_buf_addf(b, " %s=%.*s", name, FL_FMT(s));
}

static void told(void *ctx, const struct fl_fact *f)
{
    static const char *const kinds[] = {"rank", "world", "nodes", "gpu", "scheduler",
                                        "here", "same",  "pod",   "own"};
    fl_buf *b = ctx;

    fl_buf_addf(b, "%s%s", b->n ? "; " : "", kinds[f->kind]);
    number(b, "rank", f->rank);
    number(b, "local", f->local_rank);
    number(b, "gpu_index", f->gpu_index);
    number(b, "pid", f->pid);
    number(b, "n", f->n);
    if (f->exit_code != INT32_MIN)
        fl_buf_addf(b, " exit=%d", f->exit_code);
    word(b, "host", f->host);
    word(b, "gpu", f->gpu);
    word(b, "address", f->address);
}

static void lines_tell_places(void **state)
{
    (void)state;
    struct fl_table_row row = {.rank = -1, .local_rank = -1};
    size_t listed = 0;
    unsigned wrong = 0, rows = 0;
    fl_buf file, got;
    fl_err err = {0};

    fl_buf_init(&file, 1 << 20);
    fl_buf_init(&got, 1 << 20);
    if (fl_file_read(FL_TEST_DATA "/facts.tsv", &file, &err))
        fail_msg("%s", err.msg);
    for (fl_str text = fl_buf_str(&file); text.n;) {
        fl_str want = fl_str_cut(&text, '\n'), message;
        if (!want.n || want.p[0] == '#')
            continue;
        message = fl_str_cut(&want, '\t');
        fl_buf_clear(&got);
        fl_facts_parse(message, &row, &listed, told, &got);
        rows++;
        if (fl_str_eq(fl_buf_str(&got), want))
            continue;
        wrong++;
        print_error("%.*s\n  wanted %.*s\n  got    %.*s\n", FL_FMT(message), FL_FMT(want),
                    FL_FMT(fl_buf_str(&got)));
    }
    fl_buf_dispose(&file);
    fl_buf_dispose(&got);
    assert_true(rows >= 12);
    assert_int_equal(wrong, 0);
}

static void add_name(void *ctx, fl_str host)
{
    fl_buf *b = ctx;

    fl_buf_addf(b, "%s%.*s", b->n ? " " : "", FL_FMT(host));
}

static void host_lists_unfold(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"n1", "n1"},
        {"n[1-3]", "n1 n2 n3"},
        {"n[01-03,7],gpu12", "n01 n02 n03 n7 gpu12"},
        {"n[098-101]", "n098 n099 n100 n101"},
        {"a1,b2,c3", "a1 b2 c3"},
        {"a[08-11]x", "a08x a09x a10x a11x"},
        {"bad[1-", "bad1"},
        {"n[x-3]", ""},
        {"", ""},
    };
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fl_buf_clear(&b);
        fl_hostlist_each(fl_str_c(rows[i][0]), add_name, &b);
        if (!fl_str_eqz(fl_buf_str(&b), rows[i][1]))
            fail_msg("%s: %.*s", rows[i][0], FL_FMT(fl_buf_str(&b)));
    }
    fl_buf_dispose(&b);
}

static void count_name(void *ctx, fl_str host)
{
    (void)host;
    ++*(size_t *)ctx;
}

/* Lists made to hurt end, and stay under the limit. */
static void hostile_lists_end(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "n[0-999999999]", "n[1-",     "n[3-1]",
        "n[,,,]",         "[[[[]]]]", "n[1-9][1-9][1-9][1-9][1-9]",
        "n]1[",           ",,,,",     "n[18446744073709551615-18446744073709551617]"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t n = 0;
        fl_hostlist_each(fl_str_c(rows[i]), count_name, &n);
        if (n > 4096)
            fail_msg("%s: %zu names", rows[i], n);
    }
}

static void count_fact(void *ctx, const struct fl_fact *f)
{
    (void)f;
    ++*(size_t *)ctx;
}

/* Lists that each ask for thousands of names stop being expanded after some time. */
static void lists_wear_out(void **state)
{
    (void)state;
    struct fl_table_row row = {.rank = -1, .local_rank = -1};
    size_t listed = 0, told = 0;

    for (size_t i = 0; i < 2000; i++)
        fl_facts_parse(FL_S("SLURM_JOB_NODELIST=n[1-9999]"), &row, &listed, count_fact, &told);
    assert_in_range(told, FL_LISTED_NAMES, FL_LISTED_NAMES + 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_tell_places), cmocka_unit_test(host_lists_unfold),
        cmocka_unit_test(hostile_lists_end), cmocka_unit_test(lists_wear_out)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
