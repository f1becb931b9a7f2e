/*
 * Retries with a clock of their own, Retry-After, and what messages may say.
 */
#include "llm_fixture.h"

static void retry_after_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } rows[] = {
        {"5", 5},
        {" 120 ", 120},
        {"0", 0},
        {"1.5", 1.5},
        {"Wed, 21 Oct 2015 07:28:30 GMT", 30},
        {"Wed, 21 Oct 2015 07:27:00 GMT", 0},
        {"Thu, 22 Oct 2015 07:28:00 GMT", 86400},
        {"Mon, 29 Feb 2016 07:28:00 GMT", 131 * 86400.0},
        {"", -1},
        {"soon", -1},
        {"-5", -1},
        {"5 minutes", -1},
        {"1e300", -1},
        {"Wed, 21 Oct 2015", -1},
        {"Wed, 21 Foo 2015 07:28:30 GMT", -1},
        {"Wed, 21 Oct 2015 25:28:30 GMT", -1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        double got = fl_http_retry_after(rows[i].text, 1445412480);
        if (got != rows[i].seconds)
            fail_msg("'%s': %g, wanted %g", rows[i].text, got, rows[i].seconds);
    }
}

/* Runs a script through the retries. Returns what they returned. */
static int try(const struct fx_step *steps, size_t n, double chance, double deadline,
               struct fx_world *world, struct fl_http_reply *reply, size_t *sent)
{
    struct fl_http_request rq = {.method = "POST", .url = "http://s/v1", .deadline = deadline};
    struct fl_http_retry retry = {0};
    static struct fx_script script;
    fl_err err = {0};
    int r;

    fx_world_init(world);
    world->chance = chance;
    retry.inner = fx_play(&script, steps, n);
    retry.world = &world->w;
    fl_http_reply_init(reply);
    r = fl_http_perform(fl_http_retry_transport(&retry), &rq, reply, &err);
    *sent = script.at;
    return r;
}

static void which_answers_are_tried_again(void **state)
{
    (void)state;
    static const struct {
        struct fx_step first;
        bool again;
    } rows[] = {
        {{FL_HTTP_DONE, 408, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 429, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 500, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 502, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 503, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 504, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 529, NULL, NULL, "", 0}, true},
        {{FL_HTTP_RESET, 0, NULL, NULL, "", 0}, true},
        {{FL_HTTP_DONE, 200, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 400, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 401, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 403, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 404, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 422, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DONE, 501, NULL, NULL, "", 0}, false},
        {{FL_HTTP_REFUSED, 0, NULL, NULL, "", 0}, false},
        {{FL_HTTP_DNS, 0, NULL, NULL, "", 0}, false},
        {{FL_HTTP_TLS, 0, NULL, NULL, "", 0}, false},
        {{FL_HTTP_TIMEOUT, 0, NULL, NULL, "", 0}, false},
        {{FL_HTTP_TOO_LARGE, 0, NULL, NULL, "", 0}, false},
        {{FL_HTTP_CANCELLED, 0, NULL, NULL, "", 0}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fx_step steps[2] = {rows[i].first, {FL_HTTP_DONE, 200, NULL, NULL, "ok", 0}};
        struct fl_http_reply reply;
        struct fx_world world;
        size_t sent = 0;
        try(steps, 2, 0.5, 0, &world, &reply, &sent);
        if (sent != (rows[i].again ? 2u : 1u))
            fail_msg("row %zu (end %d, status %d): %zu requests", i, rows[i].first.end,
                     rows[i].first.status, sent);
        if (rows[i].again && (reply.status != 200 || strcmp(reply.body.p, "ok") != 0))
            fail_msg("row %zu: the second answer did not take the first one's place", i);
        fl_http_reply_dispose(&reply);
    }
}

static void pauses_double_and_vary(void **state)
{
    (void)state;
    static const struct fx_step down = {FL_HTTP_DONE, 503, NULL, NULL, "", 0};
    const struct fx_step steps[] = {down, down, down, down, down};
    struct fl_http_reply reply;
    struct fx_world world;
    size_t sent = 0;

    assert_int_equal(try(steps, 5, 0, 0, &world, &reply, &sent), 0);
    assert_int_equal(sent, 4);
    assert_int_equal(reply.status, 503);
    assert_int_equal(reply.tries, 4);
    assert_int_equal(world.pauses, 3);
    assert_float_equal(world.pause[0], 0.5, 1e-9); /* half is fixed, half is chance */
    assert_float_equal(world.pause[1], 1.0, 1e-9);
    assert_float_equal(world.pause[2], 2.0, 1e-9);
    assert_float_equal(reply.seconds, 3.5, 1e-9);
    fl_http_reply_dispose(&reply);
    try(steps, 5, 0.999999, 0, &world, &reply, &sent);
    assert_float_equal(world.pause[2], 4.0, 1e-4);
    fl_http_reply_dispose(&reply);
}

static void what_the_server_asks_for_is_kept(void **state)
{
    (void)state;
    struct fx_step steps[2] = {{FL_HTTP_DONE, 429, NULL, "7", "", 0},
                               {FL_HTTP_DONE, 200, NULL, NULL, "", 0}};
    struct fl_http_reply reply;
    struct fx_world world;
    size_t sent = 0;

    try(steps, 2, 0, 0, &world, &reply, &sent);
    assert_int_equal(sent, 2);
    assert_true(world.pause[0] >= 7 && world.pause[0] < 8);
    fl_http_reply_dispose(&reply);
    steps[0].retry_after = "Wed, 21 Oct 2015 07:28:12 GMT";
    try(steps, 2, 0, 0, &world, &reply, &sent);
    assert_true(world.pause[0] >= 12 && world.pause[0] < 13);
    fl_http_reply_dispose(&reply);
    steps[0].retry_after = "3600"; /* nobody waits for an hour: the 429 stands */
    try(steps, 2, 0, 0, &world, &reply, &sent);
    assert_int_equal(sent, 1);
    assert_int_equal(reply.status, 429);
    assert_int_equal(world.pauses, 0);
    fl_http_reply_dispose(&reply);
}

static void the_deadline_is_not_slept_over(void **state)
{
    (void)state;
    const struct fx_step steps[2] = {{FL_HTTP_DONE, 429, NULL, "7", "", 0},
                                     {FL_HTTP_DONE, 200, NULL, NULL, "", 0}};
    struct fl_http_reply reply;
    struct fx_world world;
    size_t sent = 0;

    try(steps, 2, 0, 1005, &world, &reply, &sent); /* five seconds are left */
    assert_int_equal(sent, 1);
    assert_int_equal(world.pauses, 0);
    fl_http_reply_dispose(&reply);
}

static int take(void *ctx, const struct fl_http_reply *so_far, fl_str bytes, fl_err *err)
{
    (void)so_far, (void)err;
    *(size_t *)ctx += bytes.n;
    return 0;
}

static void a_stream_that_was_seen_is_not_begun_again(void **state)
{
    (void)state;
    const struct fx_step steps[2] = {{FL_HTTP_RESET, 200, NULL, NULL, "half", 0},
                                     {FL_HTTP_DONE, 200, NULL, NULL, "whole", 0}};
    size_t seen = 0;
    struct fl_http_request rq = {
        .method = "POST", .url = "http://s", .on_bytes = take, .ctx = &seen};
    struct fl_http_retry retry = {0};
    static struct fx_script script;
    struct fl_http_reply reply;
    struct fx_world world;
    fl_err err = {0};

    fx_world_init(&world);
    retry.inner = fx_play(&script, steps, 2);
    retry.world = &world.w;
    fl_http_reply_init(&reply);
    assert_int_equal(fl_http_perform(fl_http_retry_transport(&retry), &rq, &reply, &err),
                     FL_EBACKEND);
    assert_int_equal(script.at, 1);
    assert_int_equal(seen, 4);
    fl_http_reply_dispose(&reply);
}

static void urls_are_shown_without_secrets(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"},
        {"https://user:pass@h.example/v1?key=abc#x", "https://h.example/v1"},
        {"https://u:p@ss@h/v1", "https://h/v1"},
        {"https://h/a@b", "https://h/a@b"},
        {"https://h?api-key=1", "https://h"},
        {"h/v1?x", "h/v1"},
        {"", ""},
    };
    char out[200];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fl_http_show_url(rows[i][0], out, sizeof(out));
        if (strcmp(out, rows[i][1]) != 0)
            fail_msg("%s: '%s', wanted '%s'", rows[i][0], out, rows[i][1]);
    }
    fl_http_show_url("https://host.example/v1", out, 10); /* cut, and terminated */
    assert_string_equal(out, "https://h");
}

static void loopback_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool is;
    } rows[] = {
        {"http://127.0.0.1:8080/v1", true},
        {"http://localhost/v1", true},
        {"http://LOCALHOST:1", true},
        {"https://[::1]:8/v1", true},
        {"http://127.9.9.9", true},
        {"http://127.0.0.1.example.org/v1", false},
        {"http://10.0.0.1/", false},
        {"https://api.example.com/v1", false},
        {"http://localhost.example/", false},
        {"http://u@localhost/", true},
        {"http://localhost@evil.example/", false},
        {"http://[::2]/", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (fl_http_is_loopback(rows[i].url) != rows[i].is)
            fail_msg("%s: wanted %d", rows[i].url, rows[i].is);
}

static void keys_are_scrubbed(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        /* text, secret, what is left */
        {"the key sk-abcdef123456 is bad", "sk-abcdef123456", "the key [key] is bad"},
        {"sk-abcdef12****3456", "sk-abcdef123456", "[key]****3456"}, /* echoed in part */
        {"sk-abcdef123456sk-abcdef123456", "sk-abcdef123456", "[key][key]"},
        {"nothing here", "sk-abcdef123456", "nothing here"},
        {"abcdef1 is seven", "sk-abcdef123456", "abcdef1 is seven"},
        {"k1pw and more", "k1pw", "[key and more"}, /* short: replaced within its length */
        {"abc", "abc", "abc"},                      /* hides nothing */
        {"", "sk-abcdef123456", ""},
    };
    char text[100];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(text, sizeof(text), "%s", rows[i][0]);
        fl_http_scrub(text, rows[i][1]);
        if (strcmp(text, rows[i][2]) != 0)
            fail_msg("'%s' with '%s': '%s', wanted '%s'", rows[i][0], rows[i][1], text, rows[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after_is_read),
        cmocka_unit_test(which_answers_are_tried_again),
        cmocka_unit_test(pauses_double_and_vary),
        cmocka_unit_test(what_the_server_asks_for_is_kept),
        cmocka_unit_test(the_deadline_is_not_slept_over),
        cmocka_unit_test(a_stream_that_was_seen_is_not_begun_again),
        cmocka_unit_test(urls_are_shown_without_secrets),
        cmocka_unit_test(loopback_is_told),
        cmocka_unit_test(keys_are_scrubbed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
