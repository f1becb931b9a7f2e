/*
 * What a model wrote, read: the object in the chatter, the verdict in the object, the text in the
 * reply. Tables: tests/data/llm/extract.txt and verdicts.txt.
 */
#include "llm_fixture.h"

#include "base/file.h"
#include "llm/extract.h"
#include "llm/parts.h"

/* ---- tables of "=== name", an input, "--- ..." and what is wanted ---- */

struct row {
    fl_str name, input, head, rest; /* head: behind "---" in its line */
};

static bool next_row(fl_str *table, struct row *row)
{
    fl_str line = fl_str_cut(table, '\n'), all = *table;
    ptrdiff_t at;

    if (!fl_str_starts(line, FL_S("=== ")))
        return false;
    row->name = fl_str_from(line, 4);
    at = fl_str_find(all, FL_S("\n=== "));
    if (at >= 0) {
        *table = fl_str_from(all, (size_t)at + 1);
        all = fl_str_sub(all, 0, (size_t)at);
    } else {
        *table = fl_str_from(all, all.n);
    }
    at = fl_str_find(all, FL_S("\n---"));
    assert_true(at >= 0);
    row->input = fl_str_sub(all, 0, (size_t)at);
    all = fl_str_from(all, (size_t)at + 4);
    row->head = fl_str_trim(fl_str_cut(&all, '\n'));
    row->rest = fl_str_trim(all);
    return true;
}

static fl_str load(const char *path, fl_buf *file)
{
    fl_err err = {0};

    fl_buf_init(file, 1 << 20);
    if (fl_file_read(path, file, &err))
        fail_msg("%s", err.msg);
    return fl_buf_str(file);
}

static void the_object_is_found(void **state)
{
    (void)state;
    fl_buf file;
    fl_str table = load(FL_TEST_DATA "/llm/extract.txt", &file);
    struct row row;
    int rows = 0, wrong = 0;

    while (next_row(&table, &row)) {
        fl_str got = {NULL, 0};
        fl_err err = {0};
        int r = fl_llm_extract(row.input, "cause", &got, &err);
        bool ok = fl_str_eqz(row.head, "json")   ? r == 0 && fl_str_eq(got, row.rest)
                  : fl_str_eqz(row.head, "none") ? r == FL_ENOTFOUND
                                                 : r == FL_ELIMIT;
        rows++;
        if (ok)
            continue;
        wrong++;
        print_error("%.*s: code %d, '%.*s' %s\n", FL_FMT(row.name), r, FL_FMT(got), err.msg);
    }
    fl_buf_dispose(&file);
    assert_int_equal(wrong, 0);
    assert_true(rows > 20);
}

static void show(const struct fl_said *v, fl_buf *out)
{
    fl_buf_addf(out, "%s %s %s %.2f", v->cause, v->class_name, v->action, v->confidence);
    for (size_t i = 0; i < v->ncitations; i++)
        fl_buf_addf(out, " [%s:%lld \"%s\"]", v->citations[i].file, (long long)v->citations[i].line,
                    v->citations[i].quote);
    for (size_t i = 0; i < v->nalternatives; i++)
        fl_buf_addf(out, " (%s)", v->alternatives[i].id);
}

static void verdicts_are_checked(void **state)
{
    (void)state;
    fl_buf file, got;
    fl_str table = load(FL_TEST_DATA "/llm/verdicts.txt", &file);
    fl_arena arena;
    struct fl_llm_terms terms;
    struct row row;
    int rows = 0, wrong = 0;

    fl_arena_init(&arena);
    fl_buf_init(&got, 65536);
    terms = fx_terms(&arena);
    while (next_row(&table, &row)) {
        struct fl_said v = {0};
        fl_err err = {0};
        fl_str wanted = row.head.n ? row.head : row.rest;
        int n;
        fl_buf_clear(&got);
        n = fl_said_read(row.input, &terms, &arena, &v, &got, &err);
        if (n == 0)
            show(&v, &got);
        rows++;
        if (n >= 0 && (n == 0) == (row.head.n > 0) &&
            fl_str_eq(fl_str_trim(fl_buf_str(&got)), wanted))
            continue;
        wrong++;
        print_error("%.*s: %d complaints\n%s\nwanted\n%.*s\n", FL_FMT(row.name), n,
                    got.p ? got.p : "", FL_FMT(wanted));
    }
    fl_buf_dispose(&file);
    fl_buf_dispose(&got);
    fl_arena_dispose(&arena);
    assert_int_equal(wrong, 0);
    assert_true(rows > 10);
}

static void many_braces_cost_little(void **state)
{
    (void)state;
    enum { N = 4 << 20 };
    char *p = malloc(N);
    fl_str got;
    fl_err err = {0};

    memset(p, '{', N);
    assert_int_equal(fl_llm_extract((fl_str){p, N}, "cause", &got, &err), FL_ELIMIT);
    memset(p, '}', N);
    assert_int_equal(fl_llm_extract((fl_str){p, N}, "cause", &got, &err), FL_ENOTFOUND);
    free(p);
}

/* ---- replies ---- */

static const struct {
    const char *name, *body;
    int code;
    const char *text, *finish, *says; /* says: part of the error */
    int64_t in, out;
} replies[] = {
    {"plain",
     "{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":"
     "\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}",
     0, "hi", "stop", NULL, 5, 2},
    {"null content", "{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"stop\"}]}",
     0, "", "stop", NULL, -1, -1},
    {"parts",
     "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image\"},{\"type\":\"text\",\"text\":{\"value\":\"b\"}},\"c\",7]}}]}",
     0, "abc", "", NULL, -1, -1},
    {"refusal",
     "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"I cannot\"},"
     "\"finish_reason\":\"stop\"}]}",
     0, "I cannot", "stop", NULL, -1, -1},
    {"reasoning apart",
     "{\"choices\":[{\"message\":{\"reasoning_content\":\"hm\",\"content\":"
     "\"x\"}}]}",
     0, "x", "", NULL, -1, -1},
    {"cut", "{\"choices\":[{\"message\":{\"content\":\"{\\\"a\"},\"finish_reason\":\"length\"}]}",
     0, "{\"a", "length", NULL, -1, -1},
    {"half", "{\"choices\":[{\"message\":{\"content\":\"hi", FL_EBACKEND, "", "",
     "s: the answer is not valid JSON, or was cut short", -1, -1},
    {"error in a 200", "{\"error\":{\"message\":\"out of memory\",\"code\":500}}", FL_EBACKEND, "",
     "", "s: the server reported an error: out of memory", -1, -1},
    {"error as text", "{\"error\":\"gone\"}", FL_EBACKEND, "", "", "reported an error: gone", -1,
     -1},
    {"null error is none", "{\"error\":null,\"choices\":[{\"message\":{\"content\":\"x\"}}]}", 0,
     "x", "", NULL, -1, -1},
    {"too long", "{\"error\":{\"message\":\"the request exceeds the available context size\"}}",
     FL_ELIMIT, "", "", "the prompt is too long for the model", -1, -1},
    {"no choices", "{\"choices\":[]}", FL_EBACKEND, "", "", "no choices with a message", -1, -1},
    {"something else", "{\"status\":\"ok\"}", FL_EBACKEND, "", "", "no choices", -1, -1},
    {"an array", "[1,2]", FL_EBACKEND, "", "", "no choices", -1, -1},
    {"choices of a wrong kind", "{\"choices\":{\"a\":1}}", FL_EBACKEND, "", "", "no choices", -1,
     -1},
    {"a choice of a wrong kind", "{\"choices\":[7]}", FL_EBACKEND, "", "", "no choices", -1, -1},
    {"a message of a wrong kind", "{\"choices\":[{\"message\":\"x\"}]}", FL_EBACKEND, "", "",
     "no choices", -1, -1},
    {"counts that are none",
     "{\"choices\":[{\"message\":{\"content\":\"x\"}}],\"usage\":"
     "{\"prompt_tokens\":-4,\"completion_tokens\":\"9\"}}",
     0, "x", "", NULL, -1, -1},
};

static void replies_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
        struct fl_llm_reading r = {.tokens_in = -1, .tokens_out = -1};
        fl_buf text;
        fl_err err = {0};
        int code;
        fl_buf_init(&text, 65536);
        r.text = &text;
        code = fl_llm_read_reply(&r, fl_str_c(replies[i].body), "s", &err);
        if (code != replies[i].code || strcmp(text.p ? text.p : "", replies[i].text) != 0 ||
            strcmp(r.finish, replies[i].finish) != 0 || r.tokens_in != replies[i].in ||
            r.tokens_out != replies[i].out ||
            (replies[i].says && !strstr(err.msg, replies[i].says)))
            fail_msg("%s: code %d, text '%s', finish '%s', %lld/%lld, '%s'", replies[i].name, code,
                     text.p ? text.p : "", r.finish, (long long)r.tokens_in,
                     (long long)r.tokens_out, err.msg);
        fl_buf_dispose(&text);
    }
}

static void errors_have_words(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"error\":{\"message\":\"m\",\"param\":\"temperature\",\"code\":\"c\"}}",
         "m (temperature) [c]"},
        {"{\"error\":\"t\"}", "t"},
        {"{\"object\":\"error\",\"message\":\"v\"}", "v"},
        {"{\"detail\":\"d\"}", "d"},
        {"{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"field required\"}]}", "field required"},
        {"{\"detail\":[]}", ""},
        {"{\"x\":1}", ""},
        {"[]", ""},
        {"<html>", ""},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fl_buf out;
        fl_buf_init(&out, 1000);
        fl_llm_error_words(fl_str_c(rows[i][0]), &out);
        if (strcmp(out.p ? out.p : "", rows[i][1]) != 0)
            fail_msg("%s: '%s', wanted '%s'", rows[i][0], out.p ? out.p : "", rows[i][1]);
        fl_buf_dispose(&out);
    }
}

/* ---- reasoning, while it arrives ---- */

static int collect(void *ctx, fl_str text)
{
    fl_buf_add(ctx, text);
    return 0;
}

static void reasoning_is_not_shown(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"plain text", "plain text"},
        {"  plain", "plain"},
        {"<think>a</think>b", "b"},
        {"\n<think>a < b </thin </think>\n\nb <think>stays</think>", "b <think>stays</think>"},
        {"<think>a</think><think>c</think>b", "b"},
        {"<thinking>a</thinking>b", "b"},
        {"<thinker>b", "<thinker>b"},
        {"<", "<"},
        {"<think>never ends", ""},
        {"<|channel|>analysis x<|end|>b", "b"},
        {"<think><</think>b", "b"},
        {"<think></</think>b", "b"},
        {"", ""},
    };
    fl_buf out;

    fl_buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t piece = 1; piece < 40; piece++) {
            fl_str rest = fl_str_c(rows[i][0]);
            struct fl_llm_unthink u;
            fl_buf_clear(&out);
            fl_llm_unthink_init(&u, collect, &out);
            for (; rest.n; rest = fl_str_from(rest, piece))
                fl_llm_unthink_feed(&u, fl_str_sub(rest, 0, piece));
            fl_llm_unthink_end(&u);
            if (strcmp(out.p ? out.p : "", rows[i][1]) != 0)
                fail_msg("'%s', %zu bytes at once: '%s', wanted '%s'", rows[i][0], piece,
                         out.p ? out.p : "", rows[i][1]);
        }
    fl_buf_dispose(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_object_is_found),     cmocka_unit_test(verdicts_are_checked),
        cmocka_unit_test(many_braces_cost_little), cmocka_unit_test(replies_are_read),
        cmocka_unit_test(errors_have_words),       cmocka_unit_test(reasoning_is_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
