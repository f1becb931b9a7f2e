/*
 * Metric lines: tests/data/metrics.tsv, one line of a trainer a row.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "diagnose/job.h"

static struct fl_metric_names names;

static fl_str unescape(fl_arena *a, fl_str s)
{
    fl_str out = fl_arena_str(a, s);
    char *w = (char *)(uintptr_t)out.p;
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 't') {
            w[n++] = '\t';
            i++;
        } else {
            w[n++] = s.p[i];
        }
    }
    out.n = n;
    return out;
}

static int differs(const char *what, fl_str want, double got, fl_str line)
{
    double v = NAN;

    if (!fl_str_eqz(want, "-"))
        fl_str_f64(want, &v);
    if ((isnan(v) && isnan(got)) || fabs(v - got) <= 1e-6 * (1 + fabs(v)))
        return 0;
    print_error("%s is %g, wanted %.*s: %.*s\n", what, got, FL_FMT(want), FL_FMT(line));
    return 1;
}

static int flag_differs(const char *name, bool got, fl_str flags, fl_str line)
{
    bool want = fl_str_has(flags, fl_str_c(name));

    if (want == got)
        return 0;
    print_error("flag %s is %d, wanted %d: %.*s\n", name, got, want, FL_FMT(line));
    return 1;
}

static int check_row(fl_arena *a, fl_str row)
{
    fl_str line = unescape(a, fl_str_cut(&row, '\t')), step = fl_str_cut(&row, '\t');
    struct fl_metric m;
    bool is = fl_metric_parse(line, &names, &m);
    int bad = 0;

    if (is == fl_str_eqz(step, "no")) {
        print_error("%s as a metric line: %.*s\n", is ? "taken" : "not taken", FL_FMT(line));
        return 1;
    }
    if (!is)
        return 0;
    bad += differs("step", step, m.step < 0 ? NAN : (double)m.step, line);
    bad += differs("total", fl_str_cut(&row, '\t'), m.total < 0 ? NAN : (double)m.total, line);
    bad += differs("loss", fl_str_cut(&row, '\t'), m.loss, line);
    bad += differs("grad norm", fl_str_cut(&row, '\t'), m.grad_norm, line);
    bad += differs("ms", fl_str_cut(&row, '\t'), m.step_ms, line);
    bad += differs("rate", fl_str_cut(&row, '\t'), m.rate, line);
    bad += flag_differs("eval", m.eval, row, line);
    bad += flag_differs("bar", m.bar, row, line);
    bad += flag_differs("grad_nan", m.grad_nan, row, line);
    bad += flag_differs("loss_nan", m.loss_nan, row, line);
    bad += flag_differs("absent", m.loss_absent, row, line);
    return bad;
}

static void table(void **state)
{
    (void)state;
    fl_arena a;
    fl_buf text;
    fl_str rest;
    int bad = 0;

    fl_arena_init(&a);
    fl_buf_init(&text, 1 << 20);
    assert_int_equal(fl_file_read(FL_TEST_DATA "/metrics.tsv", &text, NULL), 0);
    rest = fl_buf_str(&text);
    while (rest.n) {
        fl_str row = fl_str_cut(&rest, '\n');
        if (row.n && row.p[0] != '#')
            bad += check_row(&a, row);
    }
    fl_buf_dispose(&text);
    fl_arena_dispose(&a);
    assert_int_equal(bad, 0);
}

/* "nan" and 1e300 are numbers, but no counts. */
static void counts_are_counts(void **state)
{
    (void)state;
    struct fl_metric m;

    assert_true(fl_metric_parse(FL_S("step=4, skipped=nan, loss=2.5"), &names, &m));
    assert_int_equal(m.skipped, -1);
    assert_true(fl_metric_parse(FL_S("step=4, skipped=1e300, loss=2.5"), &names, &m));
    assert_int_equal(m.skipped, -1);
    assert_true(fl_metric_parse(FL_S("step=4, skipped=7, loss=2.5"), &names, &m));
    assert_int_equal(m.skipped, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table),
                                       cmocka_unit_test(counts_are_counts)};

    fl_metric_names_init(&names);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
