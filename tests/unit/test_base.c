/*
 * base: slices, buffers, arena, map, errors, text, JSON, YAML, files.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/yaml.h"

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
        size_t used;
    } rows[] = {{"1.5", 1.5, 3},      {"-2e3x", -2000, 4},        {".5", 0.5, 2}, {"7.", 7, 2},
                {"1e", 1, 1},         {"6.25E-02", 0.0625, 8},    {"x", 0, 0},    {"-", 0, 0},
                {"inf", INFINITY, 3}, {"-Infinity", -INFINITY, 9}};
    uint64_t u = 5;
    double v;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        v = 0;
        assert_int_equal(fl_str_f64(fl_str_c(rows[i].text), &v), rows[i].used);
        if (rows[i].used && isfinite(rows[i].value))
            assert_float_equal(v, rows[i].value, 1e-9);
        else if (rows[i].used)
            assert_true(v == rows[i].value);
    }
    assert_int_equal(fl_str_f64(FL_S("NaN"), &v), 3);
    assert_true(isnan(v));
    assert_int_equal(fl_str_u64(FL_S("18446744073709551616"), UINT64_MAX, &u), 0);
    assert_int_equal(u, 5);
    assert_int_equal(fl_str_u64(FL_S("18446744073709551615"), UINT64_MAX, &u), 20);
    assert_int_equal(fl_str_u64(FL_S("300"), 255, &u), 0);
}

static void buffer_is_capped(void **state)
{
    (void)state;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 5);
    fl_buf_addz(&b, "abc");
    fl_buf_addz(&b, "defg");
    fl_buf_addz(&b, "h");
    assert_true(fl_str_eqz(fl_buf_str(&b), "abc"));
    assert_int_equal(fl_buf_check(&b, "the test", &err), FL_ELIMIT);
    assert_string_equal(err.msg, "the test is larger than 5 bytes");
    fl_buf_dispose(&b);
}

static void hostile_text_is_escaped(void **state)
{
    (void)state;
    char out[64];
    fl_err err = {0};

    fl_text_escape(FL_S("a\x1b]0;t\x07\tb\xff\xe2\x80\xae\xc3\xa9"), out, sizeof(out));
    assert_string_equal(out, "a\\x1b]0;t\\x07\tb\\xff\\u202e\xc3\xa9");
    fl_fail(&err, FL_EINPUT, "%s", "x\033[2Jy");
    assert_string_equal(err.msg, "x\\x1b[2Jy");
    memset(out, 1, sizeof(out)); /* escapes take four times the room */
    fl_fail(&err, FL_EINPUT, "%.64s%.64s%.64s", out, out, out);
    assert_string_equal(err.msg + strlen(err.msg) - 7, "\\x01...");
}

static void map_keeps_all(void **state)
{
    (void)state;
    fl_map m;
    char key[16];
    uint32_t v;
    bool added;

    fl_map_init(&m);
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(fl_map_set(&m, fl_str_c(key), i), 0);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        assert_true(fl_map_get(&m, fl_str_c(key), &v));
        assert_int_equal(v, i);
    }
    assert_int_equal(fl_map_intern(&m, FL_S("k7"), 99, &v, &added), 0);
    assert_int_equal(v, 7);
    assert_false(added);
    assert_false(fl_map_get(&m, FL_S("none"), &v));
    fl_map_dispose(&m);
}

static void json_round_trip(void **state)
{
    (void)state;
    fl_json *o = fl_json_object(), *back;
    fl_buf b;
    fl_err err = {0};
    double num;

    fl_json_put_str(o, "s", FL_S("bad \xff byte"));
    fl_json_put_num(o, "n", 0.97);
    fl_json_put_num(o, "nan", NAN);
    fl_json_add_int(fl_json_put_array(o, "a"), 3);
    fl_buf_init(&b, 1000);
    assert_int_equal(fl_json_print(o, false, &b, &err), 0);
    assert_string_equal(b.p, "{\"s\":\"bad \xEF\xBF\xBD byte\",\"n\":0.97,\"nan\":null,\"a\":[3]}");
    assert_int_equal(fl_json_parse(fl_buf_str(&b), "t", &back, &err), 0);
    assert_true(fl_json_num(fl_json_get(back, "n"), &num));
    assert_float_equal(num, 0.97, 1e-12);
    fl_json_free(back);
    fl_json_free(o);
    assert_int_equal(fl_json_parse(FL_S("{\n\n x"), "t.json", &back, &err), FL_EINPUT);
    assert_non_null(strstr(err.msg, "t.json:"));
    fl_buf_dispose(&b);
}

static void yaml_knows_lines(void **state)
{
    (void)state;
    static const char *const known[] = {"role", "match", NULL};
    const fl_yaml *root;
    fl_arena a;
    fl_err err = {0};

    fl_arena_init(&a);
    assert_int_equal(fl_yaml_parse(FL_S("role: x\nmatsh: y\n"), "r.yaml", &a, &root, &err), 0);
    assert_int_equal(fl_yaml_known(root, known, &err), FL_ERULE);
    assert_string_equal(err.msg, "r.yaml:2: unknown key 'matsh'; did you mean 'match'?");
    assert_int_equal(fl_yaml_parse(FL_S("a: 1\na: 2\n"), "r.yaml", &a, &root, &err), FL_ERULE);
    assert_string_equal(err.msg, "r.yaml:2: key 'a' stands here twice; remove one");
    assert_int_equal(fl_yaml_parse(FL_S("a: &x [1]\nb: *x\n"), "r.yaml", &a, &root, &err),
                     FL_ERULE);
    assert_non_null(strstr(err.msg, "r.yaml:2: aliases"));
    assert_int_equal(fl_yaml_parse(FL_S("a: [1\n"), "r.yaml", &a, &root, &err), FL_ERULE);
    fl_arena_dispose(&a);
}

static void files_are_written_whole(void **state)
{
    (void)state;
    char dir[] = "/tmp/fl-test-XXXXXX", path[64];
    fl_err err = {0};
    fl_buf b;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/x", dir);
    assert_int_equal(fl_file_write_atomic(path, FL_S("one"), &err), 0);
    assert_int_equal(fl_file_write_atomic(path, FL_S("two"), &err), 0);
    fl_buf_init(&b, 100);
    assert_int_equal(fl_file_read(path, &b, &err), 0);
    assert_string_equal(b.p, "two");
    fl_buf_dispose(&b);
    fl_buf_init(&b, 2);
    assert_int_equal(fl_file_read(path, &b, &err), FL_ELIMIT);
    fl_buf_dispose(&b);
    unlink(path);
    assert_int_equal(fl_file_write_atomic("/nonexistent/x", FL_S("one"), &err), FL_EIO);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(buffer_is_capped),
        cmocka_unit_test(hostile_text_is_escaped),
        cmocka_unit_test(map_keeps_all),
        cmocka_unit_test(json_round_trip),
        cmocka_unit_test(yaml_knows_lines),
        cmocka_unit_test(files_are_written_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
