/*
 * The principles of arbitration, each with its own case: tests/data/principles/ holds one folder
 * of small rules and *.case files.
 *
 * A case file:
 *
 *   # what is shown, in words
 *   since: TIME, until: TIME       optional, as for the options of that name
 *   rules: shipped                 optional; else the small rules beside the cases
 *   --- NAME                       a log file of this name, up to the next ---
 *   @for 0-7: text {} {02} {+5}    one line for each number: plain, two digits, number plus five
 *   --- expect
 *   key: text                      the report's part is exactly this
 *   key~: text                     it holds this
 *   key!~: text                    it does not
 *
 * The keys are those of job_fixture.h. With several files the folder is diagnosed, as a user would.
 * `test_principles NAME...` runs some cases and prints their reports.
 */
#include "job_fixture.h"

struct one_case {
    fl_str text;
    const char *name, *log;
    char dir[64], since[40], until[40];
    fl_buf file, part;
    bool shipped;
    unsigned wrong;
};

static fl_engine *small, *shipped;
static char **only;
static int nonly;

static bool wanted(const char *name)
{
    for (int i = 0; i < nonly; i++)
        if (strstr(name, only[i]))
            return true;
    return nonly == 0;
}

/* "{}" and its kin, for one number. */
static void fill(fl_buf *b, fl_str s, long v)
{
    while (s.n) {
        ptrdiff_t open = fl_str_find_c(s, '{');
        fl_str rest = fl_str_from(s, open < 0 ? s.n : (size_t)open);
        uint64_t plus;
        size_t used;
        fl_buf_add(b, fl_str_sub(s, 0, s.n - rest.n));
        if (fl_str_starts(rest, FL_S("{}"))) {
            fl_buf_addf(b, "%ld", v);
            s = fl_str_from(rest, 2);
        } else if (fl_str_starts(rest, FL_S("{02}"))) {
            fl_buf_addf(b, "%02ld", v);
            s = fl_str_from(rest, 4);
        } else if (fl_str_starts(rest, FL_S("{+")) &&
                   (used = fl_str_u64(fl_str_from(rest, 2), 1000000, &plus))) {
            fl_buf_addf(b, "%ld", v + (long)plus);
            s = fl_str_from(rest, 3 + used);
        } else {
            fl_buf_add(b, fl_str_sub(rest, 0, 1));
            s = fl_str_from(rest, 1);
        }
    }
    fl_buf_addc(b, '\n');
}

static void log_line(struct one_case *c, fl_str line)
{
    uint64_t from, to;
    size_t n;
    fl_str s;

    if (!fl_str_starts(line, FL_S("@for "))) {
        fl_buf_add(&c->file, line);
        fl_buf_addc(&c->file, '\n');
        return;
    }
    s = fl_str_from(line, 5);
    n = fl_str_u64(s, 100000, &from);
    s = fl_str_from(s, n + 1);
    n = fl_str_u64(s, 100000, &to);
    s = fl_str_from(s, n + 2);
    for (uint64_t i = from; i <= to; i++)
        fill(&c->file, s, (long)i);
}

/* Reads everything up to "--- expect"; leaves `text` behind it. Number of log files. */
static unsigned read_logs(struct one_case *c)
{
    char name[200] = "";
    unsigned n = 0;

    while (c->text.n) {
        fl_str line = fl_str_cut(&c->text, '\n');
        bool head = fl_str_starts(line, FL_S("--- "));
        if (head && name[0])
            job_write(c->dir, name, fl_buf_str(&c->file));
        if (head && fl_str_eqz(line, "--- expect"))
            return n;
        if (head) {
            snprintf(name, sizeof(name), "%.*s", FL_FMT(fl_str_from(line, 4)));
            fl_buf_clear(&c->file);
            n++;
        } else if (name[0]) {
            log_line(c, line);
        } else if (fl_str_starts(line, FL_S("since: "))) {
            snprintf(c->since, sizeof(c->since), "%.*s", FL_FMT(fl_str_from(line, 7)));
        } else if (fl_str_starts(line, FL_S("until: "))) {
            snprintf(c->until, sizeof(c->until), "%.*s", FL_FMT(fl_str_from(line, 7)));
        } else if (fl_str_eqz(line, "rules: shipped")) {
            c->shipped = true;
        } else if (line.n && line.p[0] != '#') {
            fail_msg("%s: not understood: %.*s", c->name, FL_FMT(line));
        }
    }
    fail_msg("%s: no '--- expect'", c->name);
    return 0;
}

static void check_line(struct one_case *c, const struct fl_report *r, fl_str line)
{
    ptrdiff_t colon = fl_str_find_c(line, ':');
    fl_str key = fl_str_sub(line, 0, colon < 0 ? line.n : (size_t)colon), got;
    fl_str want = fl_str_trim(fl_str_from(line, key.n + 1));
    bool holds = fl_str_ends(key, FL_S("~")), absent = fl_str_ends(key, FL_S("!~")), ok;
    char name[40];

    snprintf(name, sizeof(name), "%.*s", (int)(key.n - holds - absent), key.p);
    if (!job_put(r, name, &c->part))
        fail_msg("%s: no such key: %.*s", c->name, FL_FMT(line));
    got = fl_str_trim(fl_buf_str(&c->part));
    ok = absent ? !fl_str_has(got, want) : holds ? fl_str_has(got, want) : fl_str_eq(got, want);
    if (ok)
        return;
    c->wrong++;
    print_error("%s: wanted  %.*s\n%s: got     %.*s\n", c->name, FL_FMT(line), c->name,
                FL_FMT(got));
}

static void show(struct one_case *c, const struct fl_report *r)
{
    static const char *const parts[] = {"cause", "rule",   "summary",   "reasons", "alternatives",
                                        "ranks", "hosts",  "follow_on", "notes",   "attempts",
                                        "phase", "action", "evidence"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        job_put(r, parts[i], &c->part);
        print_message("    %s: %.*s\n", parts[i], FL_FMT(fl_buf_str(&c->part)));
    }
}

static unsigned run_case(const char *name, fl_str text)
{
    struct one_case c = {.text = text, .name = name};
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    const char *path = c.dir;
    fl_diagnosis *d = NULL;
    fl_err err = {0};

    fl_buf_init(&c.file, 64 << 20);
    fl_buf_init(&c.part, 1 << 20);
    job_dir_make(c.dir);
    read_logs(&c);
    if ((c.since[0] && !fl_time_from_text(c.since, &o.since_us)) ||
        (c.until[0] && !fl_time_from_text(c.until, &o.until_us)))
        fail_msg("%s: not a time", name);
    o.paths = &path;
    o.npaths = 1;
    if (c.shipped && !shipped)
        shipped = job_engine(NULL, false);
    if (fl_diagnose(c.shipped ? shipped : small, &o, &d, &err))
        fail_msg("%s: %s", name, err.msg);
    while (c.text.n) {
        fl_str line = fl_str_cut(&c.text, '\n');
        if (line.n && line.p[0] != '#')
            check_line(&c, fl_diagnosis_report(d), line);
    }
    if (c.wrong || nonly)
        show(&c, fl_diagnosis_report(d));
    fl_diagnosis_free(d);
    job_dir_remove(c.dir);
    fl_buf_dispose(&c.file);
    fl_buf_dispose(&c.part);
    return c.wrong;
}

static void each_principle_holds(void **state)
{
    (void)state;
    static const char dir[] = FL_TEST_DATA "/principles";
    const char **names;
    size_t n = 0, ran = 0;
    unsigned wrong = 0;
    fl_arena a;
    fl_err err = {0};
    fl_buf b;

    fl_arena_init(&a);
    fl_buf_init(&b, 4 << 20);
    if (fl_file_list(dir, &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".case")) || !wanted(names[i]))
            continue;
        fl_buf_clear(&b);
        if (fl_file_read(fl_file_join(&a, dir, names[i]), &b, &err))
            fail_msg("%s", err.msg);
        wrong += run_case(names[i], fl_buf_str(&b)) > 0;
        ran++;
    }
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    print_message("%zu principles, %u wrong\n", ran, wrong);
    assert_int_equal(wrong, 0);
    assert_true(ran > 0);
}

static int open_engine(void **state)
{
    (void)state;
    small = job_engine(FL_TEST_DATA "/principles/rules", false);
    return 0;
}

static int close_engine(void **state)
{
    (void)state;
    fl_engine_free(small);
    fl_engine_free(shipped);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_principle_holds)};

    only = argv + 1;
    nonly = argc - 1;
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
