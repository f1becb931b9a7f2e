/*
 * The same answer, whoever scans: PCRE2 alone and the default engine give the same JSON on every
 * case of tests/cases and on random lines made from pieces of the rules' own hits. A second run
 * with eight threads over small blocks gives the same bytes. A job in one file mostly has the cause
 * that it has in many: 31 of 40 cases when this was written. It cannot be all of them, since a
 * file's name tells the host of its lines, and lines of one file have an order that lines of two
 * without times have not.
 *
 * `test_engines SEED` makes other random lines. Only `elapsed_ms` may differ. Where the default
 * engine is PCRE2 (preset min) the comparison is of one engine with itself, and still tests that
 * runs do not depend on each other.
 */
#include "job_fixture.h"

#ifdef FL_FEWER /* under the thread sanitizer */
#define LOGS 2
#define EACH 16 /* of so many cases one */
#else
#define LOGS 12
#define EACH 1
#endif
#define LINES 400
#define SMALL_BLOCK 3000 /* bytes: many blocks of a small log */

static fl_engine *fast, *slow;
static uint64_t seed = 20260301;

static uint64_t next_random(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

static char *json_of(const fl_engine *e, const char *path, unsigned threads)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    struct fl_report r;
    char *text = NULL;
    fl_err err = {0};

    o.paths = &path;
    o.npaths = 1;
    o.threads = threads;
    o.block = threads > 1 ? SMALL_BLOCK : 0;
    if (fl_diagnose(e, &o, &d, &err))
        fail_msg("fl_diagnose %s: %s", path, err.msg);
    r = *fl_diagnosis_report(d);
    r.elapsed_ms = 0;
    if (fl_report_json(&r, true, &text, &err))
        fail_msg("%s: %s", path, err.msg);
    fl_diagnosis_free(d);
    return text;
}

/* Prints the first line that differs. */
static bool same_text(const char *what, const char *a, const char *b)
{
    fl_str x = fl_str_c(a), y = fl_str_c(b);

    if (fl_str_eq(x, y))
        return true;
    while (x.n || y.n) {
        fl_str p = fl_str_cut(&x, '\n'), q = fl_str_cut(&y, '\n');
        if (!fl_str_eq(p, q)) {
            print_error("%s:\n- %.*s\n+ %.*s\n", what, FL_FMT(p), FL_FMT(q));
            break;
        }
    }
    return false;
}

static bool same_answers(const char *path, const char *name)
{
    char *a = json_of(fast, path, 1), *b = json_of(slow, path, 1), *again = json_of(fast, path, 8);
    char what[300];
    bool same;

    snprintf(what, sizeof(what), "%s: - default, + pcre2", name);
    same = same_text(what, a, b);
    snprintf(what, sizeof(what), "%s: - one thread, + eight and small blocks", name);
    same &= same_text(what, a, again);
    fl_text_free(a);
    fl_text_free(b);
    fl_text_free(again);
    return same;
}

static size_t case_names(fl_arena *a, const char ***names)
{
    size_t n = 0;
    fl_err err = {0};

    fl_arena_init(a);
    if (fl_file_list(FL_SOURCE_DIR "/tests/cases", a, names, &n, &err))
        fail_msg("%s", err.msg);
    return n;
}

static void engines_agree_on_the_cases(void **state)
{
    (void)state;
    const char **names;
    fl_arena a;
    size_t n = case_names(&a, &names), differ = 0;
    char path[600];

    for (size_t i = 0; i < n; i += EACH) {
        snprintf(path, sizeof(path), FL_SOURCE_DIR "/tests/cases/%s", names[i]);
        if (fl_file_is_dir(path))
            differ += !same_answers(path, names[i]);
    }
    fl_arena_dispose(&a);
    assert_int_equal(differ, 0);
    assert_true(n >= 35);
}

/* A piece of a hit: a whole line, or some bytes of it. */
static void add_piece(fl_buf *b)
{
    const struct fl_rule_info *r = fl_engine_rule(fast, next_random(fl_engine_rules(fast)));
    fl_str s;
    size_t from;

    if (!r->nhits)
        return;
    s = fl_str_c(r->hits[next_random(r->nhits)]);
    from = next_random(2) || s.n == 0 ? 0 : next_random(s.n);
    s = fl_str_from(s, from);
    fl_buf_add(b, next_random(3) || s.n < 2 ? s : fl_str_sub(s, 0, 1 + next_random(s.n - 1)));
}

static void random_log(fl_buf *b)
{
    static const char *const heads[] = {"",
                                        "",
                                        "[rank3]: ",
                                        "2026-03-01 10:00:00,123 ERROR ",
                                        "12: ",
                                        "n12:71:90 [2] NCCL WARN ",
                                        "[81234.567] ",
                                        "    ",
                                        "Traceback (most recent call last):\n",
                                        "step: 10 loss: 2.3 grad_norm: 0.5 tps: 900\n"};
    static const char bytes[] = " \t:[]()'\"\\\x1b\x80\xff,0x7";

    fl_buf_clear(b);
    for (int i = 0; i < LINES; i++) {
        fl_buf_addz(b, heads[next_random(sizeof(heads) / sizeof(*heads))]);
        for (uint64_t k = 1 + next_random(3); k > 0; k--) {
            add_piece(b);
            if (next_random(2))
                fl_buf_addc(b, bytes[next_random(sizeof(bytes) - 1)]);
        }
        fl_buf_addc(b, '\n');
    }
}

static void engines_agree_on_random_lines(void **state)
{
    (void)state;
    char dir[64], path[100], name[40];
    size_t differ = 0;
    fl_buf b;

    job_dir_make(dir);
    fl_buf_init(&b, 64 << 20);
    for (int i = 0; i < LOGS; i++) {
        random_log(&b);
        snprintf(name, sizeof(name), "random-%d", i);
        job_write(dir, name, fl_buf_str(&b));
        snprintf(path, sizeof(path), "%s/%s", dir, name);
        differ += !same_answers(path, name);
    }
    fl_buf_dispose(&b);
    if (!differ)
        job_dir_remove(dir);
    else
        print_error("kept: %s\n", dir);
    assert_int_equal(differ, 0);
}

/* All files of a case in one, as a user's `cat`; false when it has only one file. */
static bool joined(const char *path, fl_buf *b)
{
    const char **names;
    size_t n = 0, logs = 0;
    fl_arena a;
    fl_err err = {0};

    fl_arena_init(&a);
    fl_buf_clear(b);
    if (fl_file_list(path, &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        const char *file = fl_file_join(&a, path, names[i]);
        if (!strcmp(names[i], "label.json") || fl_file_is_dir(file))
            continue;
        logs++;
        if (fl_file_read(file, b, &err))
            fail_msg("%s", err.msg);
        if (b->n && b->p[b->n - 1] != '\n')
            fl_buf_addc(b, '\n');
    }
    fl_arena_dispose(&a);
    return logs > 1;
}

static void one_file_or_many_mostly_have_one_cause(void **state)
{
    (void)state;
    const char **names;
    fl_arena a;
    size_t n = case_names(&a, &names), differ = 0, of = 0;
    char dir[64], path[600], whole[100];
    fl_buf b;

    job_dir_make(dir);
    fl_buf_init(&b, 256 << 20);
    snprintf(whole, sizeof(whole), "%s/all.log", dir);
    for (size_t i = 0; i < n; i += EACH) {
        fl_diagnosis *many, *one;
        const char *x, *y;
        snprintf(path, sizeof(path), FL_SOURCE_DIR "/tests/cases/%s", names[i]);
        if (!fl_file_is_dir(path) || !joined(path, &b))
            continue;
        job_write(dir, "all.log", fl_buf_str(&b));
        many = job_run(fast, path);
        one = job_run(fast, whole);
        x = fl_diagnosis_report(many)->cause.id;
        y = fl_diagnosis_report(one)->cause.id;
        of++;
        if (strcmp(x, y) != 0) {
            print_message("%s: %s in its files, %s in one\n", names[i], x, y);
            differ++;
        }
        fl_diagnosis_free(many);
        fl_diagnosis_free(one);
    }
    print_message("%zu jobs of several files, %zu differ\n", of, differ);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    job_dir_remove(dir);
    assert_true(differ * 10 <= of * 3);
}

static int open_engines(void **state)
{
    (void)state;
    fast = job_engine(NULL, false);
    slow = job_engine(NULL, true);
    return 0;
}

static int close_engines(void **state)
{
    (void)state;
    fl_engine_free(fast);
    fl_engine_free(slow);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(engines_agree_on_the_cases),
                                       cmocka_unit_test(engines_agree_on_random_lines),
                                       cmocka_unit_test(one_file_or_many_mostly_have_one_cause)};

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, open_engines, close_engines);
}
