/*
 * Shapes: the table of tests/data/shapes.tsv, what they promise of digits over all lines of
 * tests/cases, and the words that sound like trouble.
 *
 * match/classes.c takes one line's shape for all that differ from it in digits alone. So the shape
 * may not depend on a digit's value unless it says that it kept one, and what is tagged once must
 * hold for each. A line in which a number counts is never folded into one with another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "compress/shape.h"

#include "base/alloc.h"

static uint64_t seed = 4711;

static uint64_t next_random(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

/* One row of the table; prints what differs. */
static bool row_holds(fl_str kind, fl_str a, fl_str b, int line)
{
    char x[FL_SHAPE_OUT], y[FL_SHAPE_OUT];
    bool codes, codes_b;
    fl_str sa = fl_str_n(x, fl_shape(a, x, &codes)), sb = fl_str_n(y, fl_shape(b, y, &codes_b));
    bool good;

    if (fl_str_eqz(kind, "shape") || fl_str_eqz(kind, "code")) {
        good = fl_str_eq(sa, b) && codes == fl_str_eqz(kind, "code");
        sb = b;
    } else if (fl_str_eqz(kind, "same")) {
        good = fl_str_eq(sa, sb) && codes == codes_b;
    } else {
        good = fl_str_eqz(kind, "differ") && !fl_str_eq(sa, sb);
    }
    if (!good)
        print_error("shapes.tsv:%d: %.*s: %.*s\n  '%.*s' codes=%d\n  '%.*s' codes=%d\n", line,
                    FL_FMT(kind), FL_FMT(a), FL_FMT(sa), codes, FL_FMT(sb), codes_b);
    return good;
}

static void table(void **state)
{
    fl_buf file;
    fl_str rest;
    fl_err err;
    int rows = 0, wrong = 0, line = 0;

    (void)state;
    fl_buf_init(&file, 1 << 20);
    if (fl_file_read(FL_TEST_DATA "/shapes.tsv", &file, &err))
        fail_msg("%s", err.msg);
    for (rest = fl_buf_str(&file); rest.n;) {
        fl_str row = fl_str_cut(&rest, '\n'), kind, a;
        line++;
        if (!row.n || row.p[0] == '#')
            continue;
        kind = fl_str_cut(&row, '\t');
        a = fl_str_cut(&row, '\t');
        rows++;
        wrong += !row_holds(kind, a, row, line);
    }
    fl_buf_dispose(&file);
    assert_true(rows > 70);
    assert_int_equal(wrong, 0);
}

/* A folder's files, line by line, its folders too. */
static void each_line(const char *dir, void (*f)(fl_str line, size_t *bad), size_t *lines,
                      size_t *bad)
{
    const char **names;
    size_t n = 0;
    fl_arena a;
    fl_err err;
    fl_buf b;

    fl_arena_init(&a);
    fl_buf_init(&b, 256u << 20);
    if (fl_file_list(dir, &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        const char *path = fl_file_join(&a, dir, names[i]);
        fl_str rest;
        if (fl_file_is_dir(path)) {
            each_line(path, f, lines, bad);
            continue;
        }
        fl_buf_clear(&b);
        if (fl_file_read(path, &b, &err))
            fail_msg("%s", err.msg);
        for (rest = fl_buf_str(&b); rest.n; ++*lines)
            f(fl_str_cut(&rest, '\n'), bad);
    }
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static void other_digits(fl_str line, char *out)
{
    uint64_t how = next_random(4);

    for (size_t i = 0; i < line.n; i++)
        out[i] = !digit(line.p[i]) ? line.p[i]
                 : how == 0        ? '0'
                 : how == 1        ? '9'
                                   : (char)('0' + next_random(10));
}

/* No number kept: any other digits, the same shape. One kept: the others say so too. */
static void digits_do_not_count(fl_str line, size_t *bad)
{
    char other[FL_SHAPE_IN], x[FL_SHAPE_OUT], y[FL_SHAPE_OUT];
    bool codes, codes_b;
    fl_str a, b;

    line = fl_str_sub(line, 0, sizeof(other));
    a = fl_str_n(x, fl_shape(line, x, &codes));
    for (int i = 0; i < 4; i++) {
        other_digits(line, other);
        b = fl_str_n(y, fl_shape(fl_str_n(other, line.n), y, &codes_b));
        if (codes == codes_b && (codes || fl_str_eq(a, b)))
            continue;
        if ((*bad)++ < 5)
            print_error("%.*s\n%.*s\n  '%.*s' codes=%d\n  '%.*s' codes=%d\n", FL_FMT(line),
                        (int)line.n, other, FL_FMT(a), codes, FL_FMT(b), codes_b);
        break;
    }
}

static void no_digit_counts_in_the_cases(void **state)
{
    size_t lines = 0, bad = 0;

    (void)state;
    each_line(FL_SOURCE_DIR "/tests/cases", digits_do_not_count, &lines, &bad);
    print_message("%zu lines\n", lines);
    assert_true(lines > 10000);
    assert_int_equal(bad, 0);
}

/* Bytes from what shapes look at: letters of hex, marks between numbers, words that keep. */
static void nor_in_random_lines(void **state)
{
    static const char *const piece[] = {
        "0x",      "1x",    "a",    "f",         "x",    "T",     "e",  "E-",  ".",
        ":",       "-",     "/",    " ",         ",",    "_",     "1",  "22",  "333",
        "7654321", "code ", "http", "Xid (PCI:", "): ",  "errno", "EI", "ERR", "node",
        "\xff",    "\t",    "[",    "]",         "sig=", "is ",   "G",  "0",   "SXid ("};
    size_t bad = 0;
    fl_buf b;

    (void)state;
    fl_buf_init(&b, 4096);
    for (int i = 0; i < 60000; i++) {
        fl_buf_clear(&b);
        for (uint64_t n = 1 + next_random(14); n; n--)
            fl_buf_addz(&b, piece[next_random(sizeof(piece) / sizeof(*piece))]);
        digits_do_not_count(fl_buf_str(&b), &bad);
    }
    fl_buf_dispose(&b);
    assert_int_equal(bad, 0);
}

/* However long the line, the shape stays inside its room. */
static void long_lines(void **state)
{
    char in[8192], guard[FL_SHAPE_OUT + 16];
    bool codes;

    (void)state;
    for (int round = 0; round < 300; round++) {
        size_t n;
        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = "aZ0 /:._\xc3\0e-x#\t9"[next_random(16)];
        memset(guard, 0x5a, sizeof(guard));
        n = fl_shape(fl_str_n(in, sizeof(in)), guard, &codes);
        assert_true(n <= FL_SHAPE_OUT);
        for (size_t i = FL_SHAPE_OUT; i < sizeof(guard); i++)
            assert_int_equal(guard[i], 0x5a);
    }
    assert_int_equal(fl_shape(fl_str_n(NULL, 0), guard, &codes), 0);
    assert_false(codes);
}

static void badness(void **state)
{
    static const struct {
        const char *text;
        int bad;
    } rows[] = {{"step 12 loss 2.3", 0},
                {"", 0},
                {"FutureWarning: deprecated", 1},
                {"RuntimeError: x", 2},
                {"ncclSystemError", 2},
                {"watchdog timeout", 2},
                {"loss is nan", 2},
                {"finance department", 0}, /* nan within a word */
                {"information", 1},        /* begins with inf */
                {"Killed", 3},
                {"CUDA_ERROR_ILLEGAL_ADDRESS", 3},
                {"SIGKILL", 3},
                {"Traceback (most recent call last):", 3},
                {"GPU has fallen off the bus", 3},
                {"torch.OutOfMemoryError: CUDA OOM", 3}};
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (fl_badness(fl_str_c(rows[i].text)) != rows[i].bad) {
            print_error("'%s' is %d, not %d\n", rows[i].text, fl_badness(fl_str_c(rows[i].text)),
                        rows[i].bad);
            wrong++;
        }
    assert_int_equal(fl_badness(fl_str_n(NULL, 0)), 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table),
                                       cmocka_unit_test(no_digit_counts_in_the_cases),
                                       cmocka_unit_test(nor_in_random_lines),
                                       cmocka_unit_test(long_lines), cmocka_unit_test(badness)};

    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
