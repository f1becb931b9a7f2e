/*
 * The normaliser: the table of tests/data/normal.tsv, any bytes, and what it promises of size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "embed/normal.h"

#include "base/alloc.h"

static void table(void **state)
{
    fl_buf file, out;
    fl_str rest;
    fl_err err;
    int rows = 0, wrong = 0, line = 0;
    (void)state;
    fl_buf_init(&file, 1 << 20);
    fl_buf_init(&out, 1 << 16);
    assert_int_equal(fl_file_read(FL_TEST_DATA "/normal.tsv", &file, &err), 0);
    rest = fl_buf_str(&file);
    while (rest.n) {
        fl_str row = fl_str_cut(&rest, '\n'), text;
        line++;
        if (!row.n || row.p[0] == '#')
            continue;
        rows++;
        text = fl_str_cut(&row, '\t');
        fl_buf_clear(&out);
        fl_normal(text, &out);
        if (!fl_str_eq(fl_buf_str(&out), row)) {
            print_error("normal.tsv:%d: %.*s\n  wanted '%.*s'\n  got    '%.*s'\n", line,
                        FL_FMT(text), FL_FMT(row), FL_FMT(fl_buf_str(&out)));
            wrong++;
        }
    }
    assert_true(rows > 40);
    assert_int_equal(wrong, 0);
    fl_buf_dispose(&file);
    fl_buf_dispose(&out);
}

/* Bytes from a small generator, of which many are parts of UTF-8, digits and slashes. */
static void any_bytes(void **state)
{
    static const char some[] = "aZ09/.:_-xf \t\xe2\x96\x88\xc3\xbc\xff\0CUDA exit Xid ";
    char text[300];
    uint32_t seed = 1;
    fl_buf out;
    (void)state;
    fl_buf_init(&out, 1 << 12);
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)round % sizeof(text);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] =
                seed & 0x40000000u ? some[(seed >> 16) % (sizeof(some) - 1)] : (char)(seed >> 20);
        }
        fl_buf_clear(&out);
        fl_normal(fl_str_n(text, n), &out);
        assert_int_equal(out.bad, 0);
        if (out.n > 2 * n) {
            print_error("%zu bytes became %zu\n", n, out.n);
            fail();
        }
        for (size_t i = 0; i < out.n; i++) {
            unsigned char b = (unsigned char)out.p[i];
            bool word = (b >= 'a' && b <= 'z') || (b >= '0' && b <= '9') || b >= 0x80;
            if (!word && !(b == ' ' && i && out.p[i - 1] != ' ' && i + 1 < out.n)) {
                print_error("round %d: byte %02x at %zu of '%.*s'\n", round, b, i,
                            FL_FMT(fl_buf_str(&out)));
                fail();
            }
        }
    }
    fl_buf_dispose(&out);
}

static void too_small_a_buffer_says_so(void **state)
{
    fl_buf out;
    (void)state;
    fl_buf_init(&out, 8);
    fl_normal(FL_S("NCCL watchdog timeout"), &out);
    assert_int_equal(out.bad, FL_ELIMIT);
    assert_int_equal(out.n, 0);
    fl_buf_dispose(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(too_small_a_buffer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
