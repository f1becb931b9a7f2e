/*
 * The reader of server-sent events: the same events however the bytes are cut.
 */
#include "llm_fixture.h"

#include "llm/sse.h"

struct row {
    const char *name, *bytes, *events; /* events: each in <>, errors in ! ! */
};

static const struct row rows[] = {
    {"one event", "data: a\n\n", "<a>"},
    {"two", "data: a\n\ndata: b\n\n", "<a><b>"},
    {"no blank behind the colon", "data:a\n\n", "<a>"},
    {"only one blank is taken", "data:  a\n\n", "< a>"},
    {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "<a><b>"},
    {"CR alone", "data: a\r\rdata: b\r\r", "<a><b>"},
    {"mixed line ends", "data: a\r\n\ndata: b\n\r\n", "<a><b>"},
    {"comments", ": ping\n\n: ping\ndata: a\n: in between\n\n:\n\n", "<a>"},
    {"several data lines", "data: a\ndata: b\ndata\n\n", "<a\nb\n>"},
    {"empty data is an event", "data:\n\n", "<>"},
    {"other fields", "event: x\nid: 7\nretry: 1\ndata: a\n\nevent: y\n\n", "<a>"},
    {"a field that begins alike", "dataset: x\n\ndata: a\n\n", "<a>"},
    {"byte order mark",
     "\xef\xbb\xbf"
     "data: a\n\n",
     "<a>"},
    {"the mark is taken once",
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     "<a>"},
    {"colons in the value", "data: {\"a\": 1}\n\n", "<{\"a\": 1}>"},
    {"the last empty line is missing", "data: a\n\ndata: b\n", "<a><b>"},
    {"the last line end too", "data: a\n\ndata: b", "<a><b>"},
    {"error field", "error: {\"m\":1}\n\n", "!{\"m\":1}!"},
    {"UTF-8 is kept", "data: \xc3\xa9\xf0\x9f\x98\x80\n\n", "<\xc3\xa9\xf0\x9f\x98\x80>"},
    {"empty lines alone", "\n\n\r\n\n", ""},
    {"nothing", "", ""},
    {"no SSE at all", "<!doctype html>\n<p>data: x\n\n", ""},
};

static int on_event(void *ctx, bool failed, fl_str data, fl_err *err)
{
    (void)err;
    fl_buf_addf(ctx, failed ? "!%.*s!" : "<%.*s>", FL_FMT(data));
    return 0;
}

static void run(const struct row *row, size_t piece, fl_buf *out)
{
    fl_str rest = fl_str_c(row->bytes);
    fl_err err = {0};
    struct fl_sse s;

    fl_buf_clear(out);
    fl_sse_init(&s, on_event, out);
    while (rest.n) {
        if (fl_sse_feed(&s, fl_str_sub(rest, 0, piece), &err))
            fail_msg("%s: %s", row->name, err.msg);
        rest = fl_str_from(rest, piece);
    }
    if (fl_sse_end(&s, &err))
        fail_msg("%s: %s", row->name, err.msg);
    fl_sse_dispose(&s);
}

static void same_events_however_cut(void **state)
{
    (void)state;
    fl_buf out;

    fl_buf_init(&out, 65536);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t piece = 1; piece < 60; piece++) {
            run(&rows[i], piece, &out);
            if (strcmp(out.p ? out.p : "", rows[i].events) != 0)
                fail_msg("%s, %zu bytes at once: '%s', wanted '%s'", rows[i].name, piece, out.p,
                         rows[i].events);
        }
    fl_buf_dispose(&out);
}

static void cut_in_two_everywhere(void **state)
{
    (void)state;
    fl_buf out;
    struct fl_sse s;
    fl_err err = {0};

    fl_buf_init(&out, 65536);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fl_str bytes = fl_str_c(rows[i].bytes);
        for (size_t at = 0; at <= bytes.n; at++) {
            fl_buf_clear(&out);
            fl_sse_init(&s, on_event, &out);
            assert_int_equal(fl_sse_feed(&s, fl_str_sub(bytes, 0, at), &err), 0);
            assert_int_equal(fl_sse_feed(&s, fl_str_from(bytes, at), &err), 0);
            assert_int_equal(fl_sse_end(&s, &err), 0);
            fl_sse_dispose(&s);
            if (strcmp(out.p ? out.p : "", rows[i].events) != 0)
                fail_msg("%s, cut at %zu: '%s', wanted '%s'", rows[i].name, at, out.p,
                         rows[i].events);
        }
    }
    fl_buf_dispose(&out);
}

static int refuse(void *ctx, bool failed, fl_str data, fl_err *err)
{
    (void)failed;
    ++*(int *)ctx;
    return fl_str_eqz(data, "b") ? fl_fail(err, FL_EINPUT, "no b") : 0;
}

static void an_error_ends_the_feed(void **state)
{
    (void)state;
    int count = 0;
    fl_err err = {0};
    struct fl_sse s;

    fl_sse_init(&s, refuse, &count);
    assert_int_equal(fl_sse_feed(&s, FL_S("data: a\n\ndata: b\n\ndata: c\n\n"), &err), FL_EINPUT);
    assert_int_equal(count, 2);
    assert_string_equal(err.msg, "no b");
    fl_sse_dispose(&s);
}

static void endless_lines_are_refused(void **state)
{
    (void)state;
    static char line[65536];
    int count = 0, r = 0;
    fl_err err = {0};
    struct fl_sse s;

    memset(line, 'x', sizeof(line));
    fl_sse_init(&s, refuse, &count);
    for (int i = 0; i < 17 && !r; i++)
        r = fl_sse_feed(&s, (fl_str){line, sizeof(line)}, &err);
    assert_int_equal(r, FL_ELIMIT);
    assert_string_equal(err.msg, "a line of the server's stream is larger than 1048576 bytes");
    fl_sse_dispose(&s);
    fl_sse_init(&s, refuse, &count); /* many data lines are one event */
    r = 0;
    for (int i = 0; i < 40 && !r; i++) {
        r = fl_sse_feed(&s, FL_S("data: "), &err);
        if (!r)
            r = fl_sse_feed(&s, (fl_str){line, 32768}, &err);
        if (!r)
            r = fl_sse_feed(&s, FL_S("\n"), &err);
    }
    assert_int_equal(r, FL_ELIMIT);
    fl_sse_dispose(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_events_however_cut),
        cmocka_unit_test(cut_in_two_everywhere),
        cmocka_unit_test(an_error_ends_the_feed),
        cmocka_unit_test(endless_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
