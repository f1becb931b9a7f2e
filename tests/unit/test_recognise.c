/*
 * One line, printed alone, must be named: every row of tests/data/recognise/, cause TAB line.
 *
 * "\n" in a row is a line break. Several causes that are right stand with '|' between them. At
 * least 95 % of all rows and 90 % of each file must be right; what is not is printed.
 *
 * Rules of role `confirm` prove a cause and never decide one, so a row that only such a rule takes
 * cannot be named alone. Those rows stand in confirm-only.tsv, where it is asked only that a rule
 * of that cause takes the line.
 */
#include "diagnose/engine.h"
#include "job_fixture.h"

struct looking {
    const fl_engine *e;
    fl_str causes;
    bool found, confirms;
};

static bool one_of(fl_str list, const char *cause)
{
    while (list.n)
        if (fl_str_eqz(fl_str_trim(fl_str_cut(&list, '|')), cause))
            return true;
    return false;
}

static void rule_seen(void *ctx, const struct fl_rule *r)
{
    struct looking *l = ctx;

    if (!one_of(l->causes, l->e->rules->causes[r->cause].id))
        return;
    l->found = true;
    l->confirms |= r->role == FL_ROLE_CONFIRM;
}

static void unescaped(fl_buf *b, fl_str s)
{
    fl_buf_clear(b);
    for (size_t i = 0; i < s.n; i++) {
        bool more = s.p[i] == '\\' && i + 1 < s.n;
        if (more && (s.p[i + 1] == 'n' || s.p[i + 1] == 't')) {
            fl_buf_addc(b, s.p[++i] == 'n' ? '\n' : '\t');
        } else {
            if (more && s.p[i + 1] == '\\')
                i++;
            fl_buf_addc(b, s.p[i]);
        }
    }
    fl_buf_addc(b, '\n');
}

static bool row_is_right(const fl_engine *e, const char *dir, const char *file, fl_str row,
                         bool confirm)
{
    struct looking l = {.e = e, .causes = fl_str_cut(&row, '\t')};
    const struct fl_report *r;
    fl_diagnosis *d;
    char path[100];
    bool ok;
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    unescaped(&b, row);
    job_write(dir, "line", fl_buf_str(&b));
    snprintf(path, sizeof(path), "%s/line", dir);
    d = job_run(e, path);
    r = fl_diagnosis_report(d);
    fl_diagnosis_rules(d, false, rule_seen, &l);
    ok = confirm ? l.confirms : one_of(l.causes, r->cause.id);
    if (!ok)
        print_message("%s: %s (%s), not %.*s%s: %.*s\n", file, r->cause.id,
                      r->cause.rule ? r->cause.rule : r->outcome, FL_FMT(l.causes),
                      l.confirms ? " (but it is confirmed)"
                      : l.found  ? " (but a rule of it takes the line)"
                                 : "",
                      FL_FMT(row));
    fl_diagnosis_free(d);
    fl_buf_dispose(&b);
    return ok;
}

/* Adds the rows of one file to the sums; false when too few of them are right. */
static bool file_is_right(const fl_engine *e, const char *dir, const char *name, fl_str text,
                          unsigned *right, unsigned *of)
{
    bool confirm = !strcmp(name, "confirm-only.tsv");
    unsigned ok = 0, n = 0;

    while (text.n) {
        fl_str row = fl_str_cut(&text, '\n');
        if (!row.n || row.p[0] == '#')
            continue;
        ok += row_is_right(e, dir, name, row, confirm);
        n++;
    }
    *right += ok;
    *of += n;
    if (ok * 10 >= n * 9 && (!confirm || ok == n))
        return true;
    print_error("%s: only %u of %u are named\n", name, ok, n);
    return false;
}

static void each_line_is_named_alone(void **state)
{
    (void)state;
    static const char folder[] = FL_TEST_DATA "/recognise";
    fl_engine *e = job_engine(NULL, false);
    unsigned right = 0, of = 0, bad = 0;
    const char **names;
    size_t n = 0;
    char dir[64];
    fl_arena a;
    fl_err err = {0};
    fl_buf b;

    job_dir_make(dir);
    fl_arena_init(&a);
    fl_buf_init(&b, 16 << 20);
    if (fl_file_list(folder, &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".tsv")))
            continue;
        fl_buf_clear(&b);
        if (fl_file_read(fl_file_join(&a, folder, names[i]), &b, &err))
            fail_msg("%s", err.msg);
        bad += !file_is_right(e, dir, names[i], fl_buf_str(&b), &right, &of);
    }
    print_message("%u of %u lines named, %.1f %%\n", right, of, of ? 100.0 * right / of : 0);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    job_dir_remove(dir);
    fl_engine_free(e);
    assert_int_equal(bad, 0);
    assert_true(of > 0 && right * 100 >= of * 95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_line_is_named_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
