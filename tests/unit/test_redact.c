/*
 * redact: rows of tests/data/redact, the way home, and what must not break it.
 *
 * A row of words.tsv is KIND, TEXT, EXPECTED; "=" expects TEXT itself. KIND says what the row is
 * about; "know HOST x" in front of a ';' makes a name known first. A row of restore.tsv is what a
 * model answers and what the user must read, after a conversation about TALK. In both, \t, \n, \e
 * and \\ are escapes and '#' starts a comment.
 */
#include "redact_walk.h"

#include "alloc_fixture.h"

static const char talk[] =
    "gn-c07:71:72 [0] NCCL INFO rank 3 at 10.31.8.44 of gn-c08:1:2 [1] NCCL\n"
    "user=bob s3://corpus-x/y hf_abcdefGHIJKLmnop1234567890qrst\n";

static fl_redactor *fresh(void)
{
    fl_redactor *r = NULL;
    fl_err err = {0};

    if (fl_redactor_new(NULL, &r, &err))
        fail_msg("%s", err.msg);
    return r;
}

static void unescape(fl_str s, fl_buf *out)
{
    fl_buf_clear(out);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\\' && i + 1 < s.n && strchr("tne\\", s.p[i + 1])) {
            c = s.p[++i];
            c = (char)(c == 't' ? '\t' : c == 'n' ? '\n' : c == 'e' ? 27 : c);
        }
        fl_buf_addc(out, c);
    }
}

/* "know HOST a, USER b; label" */
static void make_known(fl_redactor *r, fl_str kind)
{
    fl_err err = {0};
    fl_str list;

    if (!fl_str_starts(kind, FL_S("know ")))
        return;
    kind = fl_str_from(kind, 5);
    list = fl_str_cut(&kind, ';');
    while (list.n) {
        fl_str one = fl_str_trim(fl_str_cut(&list, ',')), word = fl_str_cut(&one, ' ');
        int k = 0;
        while (k < FL_REDACT_KINDS && !fl_str_eqz(word, fl_redact_word((enum fl_redact_kind)k)))
            k++;
        assert_true(k < FL_REDACT_KINDS);
        assert_int_equal(fl_redact_know(r, (enum fl_redact_kind)k, one, &err), 0);
    }
}

static int redact_row(fl_str kind, fl_str text, fl_str want, fl_buf *got)
{
    fl_redactor *r = fresh();
    fl_err err = {0};
    fl_buf home;
    int bad;

    fl_buf_init(&home, 1 << 20);
    make_known(r, kind);
    assert_int_equal(fl_redact(r, text, got, &err), 0);
    assert_int_equal(fl_restore(r, fl_buf_str(got), &home, &err), 0);
    bad = !fl_str_eq(fl_buf_str(got), want) || !fl_str_eq(fl_buf_str(&home), text);
    fl_buf_dispose(&home);
    fl_redactor_free(r);
    return bad;
}

static int restore_row(fl_str text, fl_str want, fl_buf *got)
{
    fl_redactor *r = fresh();
    fl_err err = {0};

    assert_int_equal(fl_redact(r, fl_str_c(talk), got, &err), 0);
    fl_buf_clear(got);
    assert_int_equal(fl_restore(r, text, got, &err), 0);
    fl_redactor_free(r);
    return !fl_str_eq(fl_buf_str(got), want);
}

static void run_table(const char *name, bool home, size_t least)
{
    char path[500];
    fl_buf file, text, want, got;
    fl_str rest, row, kind, raw;
    fl_err err = {0};
    size_t rows = 0, line = 0, bad = 0;

    snprintf(path, sizeof(path), "%s/redact/%s", FL_TEST_DATA, name);
    fl_buf_init(&file, 1 << 20);
    fl_buf_init(&text, 1 << 16);
    fl_buf_init(&want, 1 << 16);
    fl_buf_init(&got, 1 << 16);
    assert_int_equal(fl_file_read(path, &file, &err), 0);
    for (rest = fl_buf_str(&file); rest.n;) {
        row = fl_str_cut(&rest, '\n');
        line++;
        if (row.n == 0 || row.p[0] == '#')
            continue;
        kind = home ? (fl_str){0} : fl_str_cut(&row, '\t');
        raw = fl_str_cut(&row, '\t');
        unescape(raw, &text);
        unescape(fl_str_eqz(row, "=") ? raw : row, &want);
        rows++;
        fl_buf_clear(&got);
        if (home ? restore_row(fl_buf_str(&text), fl_buf_str(&want), &got)
                 : redact_row(kind, fl_buf_str(&text), fl_buf_str(&want), &got)) {
            bad++;
            fprintf(stderr, "%s:%zu: %.*s\n  want: %s\n  got:  %s\n", name, line, FL_FMT(raw),
                    want.p ? want.p : "", got.p ? got.p : "");
        }
    }
    fl_buf_dispose(&file);
    fl_buf_dispose(&text);
    fl_buf_dispose(&want);
    fl_buf_dispose(&got);
    assert_int_equal(bad, 0);
    assert_true(rows >= least);
}

static void secrets(void **state)
{
    (void)state;
    run_table("secrets.tsv", false, 100);
}

static void names(void **state)
{
    (void)state;
    run_table("names.tsv", false, 60);
}

static void stays(void **state)
{
    (void)state;
    run_table("stays.tsv", false, 70);
}

static void restores(void **state)
{
    (void)state;
    run_table("restore.tsv", true, 25);
}

/* One number a text, whatever stands around it and however often it comes. */
static void numbers_are_stable(void **state)
{
    fl_redactor *r = fresh();
    fl_err err = {0};
    fl_buf out;

    (void)state;
    fl_buf_init(&out, 1 << 16);
    assert_int_equal(fl_redact(r, FL_S("10.1.2.3 10.1.2.4 10.1.2.3"), &out, &err), 0);
    assert_string_equal(out.p, "<IP_1> <IP_2> <IP_1>");
    fl_buf_clear(&out);
    assert_int_equal(fl_redact(r, FL_S("10.1.2.5:1, 10.1.2.4:2"), &out, &err), 0);
    assert_string_equal(out.p, "<IP_3>:1, <IP_2>:2");
    /* a host shown by the last line is hidden in the first */
    fl_buf_clear(&out);
    assert_int_equal(
        fl_redact(r, FL_S("gn-c07 went away\nsrun: error: gn-c07: task 3: Killed\n"), &out, &err),
        0);
    assert_string_equal(out.p, "<HOST_1> went away\nsrun: error: <HOST_1>: task 3: Killed\n");
    fl_buf_clear(&out);
    fl_redact_summary(r, &out);
    assert_string_equal(out.p, "1 host name, 3 addresses");
    assert_int_equal(fl_redact_count(r, FL_REDACT_IP), 3);
    assert_int_equal(fl_redact_lost(r), 0);
    fl_buf_dispose(&out);
    fl_redactor_free(r);
}

static void own_patterns(void **state)
{
    static const fl_str good[] = {
        {"PROJ-[0-9]+", 11}, {"cluster (?P<host>[a-z]+)", 24}, {"(x+x+)+y", 8}};
    static const fl_str wrong[] = {{"a(b", 3}};
    struct fl_redact_opts o = {.patterns = good, .npatterns = 3, .where = "config.yaml"};
    fl_redactor *r = NULL;
    fl_err err = {0};
    char line[300];
    fl_buf out;

    (void)state;
    fl_buf_init(&out, 1 << 16);
    assert_int_equal(fl_redactor_new(&o, &r, &err), 0);
    assert_int_equal(fl_redact(r, FL_S("PROJ-1 on cluster brisk, PROJ-22, PROJ-1"), &out, &err), 0);
    assert_string_equal(out.p, "<SECRET_1> on cluster <HOST_1>, <SECRET_2>, <SECRET_1>");
    /* where a pattern is stopped at the match limit the line goes whole, the next one stays */
    fl_buf_clear(&out);
    memset(line, 'x', sizeof(line));
    memcpy(line + sizeof(line) - 9, " y\nRank 1", 9);
    assert_int_equal(fl_redact(r, fl_str_n(line, sizeof(line)), &out, &err), 0);
    assert_string_equal(out.p, "<SECRET_3>\nRank 1");
    fl_redactor_free(r);

    o = (struct fl_redact_opts){.patterns = wrong, .npatterns = 1, .where = "config.yaml"};
    r = NULL;
    assert_int_equal(fl_redactor_new(&o, &r, &err), FL_ERULE);
    assert_non_null(strstr(err.msg, "config.yaml"));
    assert_null(r);
    fl_buf_dispose(&out);
}

/* Past the limits text still goes; it only does not come back. */
static void limits(void **state)
{
    struct fl_redact_opts o = {.max_bytes = 40};
    fl_redactor *r = NULL;
    fl_err err = {0};
    fl_buf out, small;

    (void)state;
    fl_buf_init(&out, 1 << 16);
    assert_int_equal(fl_redactor_new(&o, &r, &err), 0);
    assert_int_equal(
        fl_redact(r, FL_S("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.1"), &out, &err), 0);
    assert_string_equal(out.p, "<IP_1> <IP_2> <IP_3> <IP_4> <IP_0> <IP_1>");
    assert_int_equal(fl_redact_lost(r), 1);
    fl_buf_clear(&out);
    assert_int_equal(fl_restore(r, FL_S("<IP_0> <IP_2> <IP_99> <IP_99999999>"), &out, &err), 0);
    assert_string_equal(out.p, "<IP_0> 10.0.0.2 <IP_99> <IP_99999999>");

    fl_buf_init(&small, 10);
    fl_buf_addz(&small, "ab");
    assert_int_equal(fl_redact(r, FL_S("nothing to hide here"), &small, &err), FL_ELIMIT);
    assert_string_equal(small.p, "ab");
    assert_int_equal(fl_restore(r, FL_S("nothing to restore"), &small, &err), FL_ELIMIT);
    assert_string_equal(small.p, "ab");
    fl_buf_dispose(&small);
    fl_buf_dispose(&out);
    fl_redactor_free(r);
}

static void round_trip(fl_redactor *r, fl_str text, const char *what)
{
    fl_buf out, home;
    fl_err err = {0};

    fl_buf_init(&out, (text.n + 100) * 20);
    fl_buf_init(&home, text.n);
    if (fl_redact(r, text, &out, &err) || fl_restore(r, fl_buf_str(&out), &home, &err))
        fail_msg("%s: %s", what, err.msg);
    if (!fl_str_eq(fl_buf_str(&home), text)) {
        size_t i = 0;
        while (i < home.n && i < text.n && home.p[i] == text.p[i])
            i++;
        i = i > 60 ? i - 60 : 0;
        fail_msg("%s: does not come back as it was: ...%.*s\nbut: ...%.*s", what, 120,
                 home.p ? home.p + i : "", (int)(text.n - i < 120 ? text.n - i : 120), text.p + i);
    }
    fl_buf_dispose(&out);
    fl_buf_dispose(&home);
}

static uint32_t dice(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static const char *const pieces[] = {"<",
                                     ">",
                                     "HOST_1",
                                     "host_2",
                                     "<HOST_1>",
                                     "<IP_1",
                                     "IP_2>",
                                     "&lt;",
                                     "&gt;",
                                     "\\",
                                     "_",
                                     "1",
                                     "\n",
                                     "\x1b[1m",
                                     " ",
                                     "/",
                                     "/home/",
                                     "bob",
                                     "gn07",
                                     "10.1.2.3",
                                     ":",
                                     "@",
                                     "user=",
                                     "token=",
                                     "\"",
                                     "'",
                                     "sk-",
                                     "abcDEF1234567890ghIJ",
                                     "s3://",
                                     "http://",
                                     "<TEXT_1>",
                                     "TEXT_",
                                     "SECRET_1",
                                     "\\u003c",
                                     "\\u003e",
                                     "%3C",
                                     "%3E",
                                     "-----BEGIN RSA PRIVATE KEY-----",
                                     "-----END RSA PRIVATE KEY-----",
                                     "fe80::1",
                                     "::",
                                     ".corp",
                                     "srun: error: ",
                                     "[",
                                     "]",
                                     "\xff",
                                     "\\n",
                                     "=",
                                     "password: ",
                                     "~"};

/* Texts glued from pieces that scanners and placeholders are made of. */
static void glued(void **state)
{
    uint64_t seed = 7;
    fl_redactor *r = fresh();

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[400];
        size_t n = 0, parts = 1 + dice(&seed) % 14;
        while (parts-- > 0) {
            const char *p = pieces[dice(&seed) % (sizeof(pieces) / sizeof(*pieces))];
            memcpy(text + n, p, strlen(p));
            n += strlen(p);
        }
        round_trip(r, fl_str_n(text, n), "glued pieces");
    }
    fl_redactor_free(r);
}

/* A megabyte of each must be read in time that grows with it and no faster. */
static const char *const grains[] = {"x",
                                     "=",
                                     "@",
                                     ":",
                                     "/",
                                     "\\",
                                     "-",
                                     ".",
                                     "~",
                                     "\"",
                                     "1",
                                     "[",
                                     "<HOST_1>",
                                     "a@b",
                                     "sk-",
                                     "a=",
                                     "token=",
                                     "://",
                                     "1.",
                                     "10.0.0.",
                                     "a:",
                                     "-----BEGIN PRIVATE KEY-----",
                                     "fe80:",
                                     "/home/",
                                     "user ",
                                     "key ",
                                     "eyJ",
                                     "\x1b[",
                                     "\xff\xfe",
                                     "Q~",
                                     "n1.",
                                     "password: \"",
                                     "ssh a@b ",
                                     "password for ",
                                     "login -a ",
                                     "bucket a ",
                                     "chown -R ",
                                     "mysql -p",
                                     "/scratch/",
                                     "/gpfs/u/",
                                     "connect to ",
                                     "a1: ",
                                     "uid=1(ab),",
                                     "from 1.1.1.1 ",
                                     "export A_KEY=",
                                     "setenv A_KEY ",
                                     "-----BEGIN PRIVATE KEY-----\n",
                                     "-----BEGIN PRIVATE KEY-----\nMIIEvAIBADANBgkqhkiG9w0B\n",
                                     "-----END PRIVATE KEY-----\nMIIEvAIBADANBgkqhkiG9w0B\n",
                                     "user ab has "};

static void hostile(void **state)
{
    size_t size = 1 << 20;
    char *text = malloc(size);

    (void)state;
    assert_non_null(text);
    for (size_t k = 0; k < sizeof(grains) / sizeof(*grains); k++) {
        fl_redactor *r = fresh();
        size_t n = strlen(grains[k]);
        for (size_t i = 0; i + n <= size; i += n)
            memcpy(text + i, grains[k], n);
        round_trip(r, fl_str_n(text, size - size % n), grains[k]);
        fl_redactor_free(r);
    }
    for (size_t i = 0, seed = 3; i < size; i++) {
        uint64_t x = seed;
        text[i] = (char)dice(&x);
        seed = x;
    }
    fl_redactor *r = fresh();
    round_trip(r, fl_str_n(text, size), "random bytes");
    fl_redactor_free(r);
    free(text);
}

static void one_case(void *ctx, const char *path, fl_str text)
{
    fl_redactor *r = fresh();

    (void)ctx;
    round_trip(r, text, path);
    fl_redactor_free(r);
}

static void cases_come_back(void **state)
{
    size_t n;

    (void)state;
    n = walk_folder(FL_SOURCE_DIR "/tests/cases", one_case, NULL);
    assert_true(n > 300);
}

/* 0, or the code of what failed; what was written is checked in both cases. */
static int whole(const char *want)
{
    static const fl_str own = {"PROJ-[0-9]+", 11};
    struct fl_redact_opts o = {.patterns = &own, .npatterns = 1};
    fl_redactor *r = NULL;
    fl_buf out, home;
    fl_err err = {0};
    int e;

    fl_buf_init(&out, 1 << 16);
    fl_buf_init(&home, 1 << 16);
    e = fl_redactor_new(&o, &r, &err);
    if (!e)
        e = fl_redact_know(r, FL_REDACT_HOST, FL_S("brisk"), &err);
    if (!e)
        e = fl_redact(r, FL_S("brisk \x1b[1mPROJ-7 user=bob7 10.1.2.3 gn07.ib.lan <HOST_1>\n"),
                      &out, &err);
    assert_true(e || strcmp(out.p, want) == 0);
    assert_true(!e || out.n == 0);
    if (!e)
        e = fl_restore(r, fl_buf_str(&out), &home, &err);
    assert_true(!e || home.n == 0);
    assert_true(e == 0 || (e == FL_ENOMEM && err.msg[0]));
    fl_buf_dispose(&out);
    fl_buf_dispose(&home);
    fl_redactor_free(r);
    return e;
}

static void memory_runs_out(void **state)
{
    static const char want[] =
        "<HOST_1> \x1b[1m<SECRET_1> user=<USER_1> <IP_1> <HOST_2>.<DOMAIN_1> <TEXT_1>\n";
    struct hook h = {0};
    unsigned failed = 0;

    (void)state;
    fl_alloc_hook(counted, &h);
    assert_int_equal(whole(want), 0);
    assert_int_equal(h.live, 0);
    for (unsigned long k = 1, total = h.n; k <= total; k++) {
        h = (struct hook){.fail_at = k};
        failed += whole(want) != 0;
        if (h.live != 0)
            fail_msg("%ld allocations leak when number %lu fails", h.live, k);
    }
    assert_true(failed > 20);
    fl_alloc_hook(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets),
        cmocka_unit_test(names),
        cmocka_unit_test(stays),
        cmocka_unit_test(restores),
        cmocka_unit_test(numbers_are_stable),
        cmocka_unit_test(own_patterns),
        cmocka_unit_test(limits),
        cmocka_unit_test(glued),
        cmocka_unit_test(hostile),
        cmocka_unit_test(cases_come_back),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
