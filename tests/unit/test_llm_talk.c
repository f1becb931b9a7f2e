/*
 * Conversations that outgrow the context, and endpoints as the configuration has them.
 */
#include "llm_fixture.h"

#include "base/alloc.h"

static const struct fl_llm_endpoint endpoint = {.name = "a", .url = "http://a/v1"};
static const struct fl_llm_message begin[] = {{FL_LLM_SYSTEM, FL_S("the rules")},
                                              {FL_LLM_USER, FL_S("the log")}};

#define ANSWER(text)                                                                               \
    {                                                                                              \
        FL_HTTP_DONE, 200, NULL, NULL,                                                             \
            "{\"choices\":[{\"message\":{\"content\":\"" text "\"},\"finish_reason\":\"stop\"}]}", \
            0                                                                                      \
    }

static int on_text(void *ctx, fl_str text)
{
    (void)ctx;
    return fl_str_has(text, FL_S("STOP")) ? -1 : 0;
}

struct job {
    struct fx_script script;
    struct fl_llm_answer answer;
    struct fl_llm_ask ask;
    fl_llm_talk *talk;
    fl_llm *c;
    fl_err err;
};

static void start(struct job *j, unsigned room, const struct fx_step *steps, size_t n)
{
    struct fl_llm_opts o = {.endpoints = &endpoint, .nendpoints = 1};

    memset(j, 0, sizeof(*j));
    o.transport = fx_play(&j->script, steps, n);
    assert_int_equal(fl_llm_new(&o, &j->c, &j->err), 0);
    assert_int_equal(fl_llm_talk_new(begin, 2, room, &j->talk, &j->err), 0);
    fl_llm_answer_init(&j->answer);
    j->ask = (struct fl_llm_ask)FL_LLM_ASK_INIT;
    j->ask.max_tokens = 50;
}

static int ask(struct job *j, const char *question)
{
    return fl_llm_talk_ask(j->talk, j->c, &j->ask, fl_str_c(question), &j->answer, &j->err);
}

static void end(struct job *j)
{
    fl_llm_answer_dispose(&j->answer);
    fl_llm_talk_free(j->talk);
    fl_llm_free(j->c);
}

#define BEGIN                                                                                      \
    "{\"role\":\"system\",\"content\":\"the rules\"},{\"role\":\"user\",\"content\":\"the log\"}"
#define Q(text) ",{\"role\":\"user\",\"content\":\"" text "\"}"
#define A(text) ",{\"role\":\"assistant\",\"content\":\"" text "\"}"

static void wants(const struct job *j, size_t call, const char *messages)
{
    if (!strstr(j->script.sent[call], messages))
        fail_msg("call %zu sent\n%s\nwanted\n%s", call, j->script.sent[call], messages);
}

static void old_turns_are_left_out_and_the_log_never(void **state)
{
    (void)state;
    const struct fx_step steps[] = {ANSWER("<think>hm</think>a1"), ANSWER("a2"), ANSWER("a3"),
                                    ANSWER("a4")};
    struct job j;

    /* 21 tokens at the beginning, 50 for the answer, 9 a question, 18 a turn: two turns fit */
    start(&j, 118, steps, 4);
    assert_int_equal(ask(&j, "q1"), 0);
    assert_int_equal(ask(&j, "q2"), 0);
    assert_int_equal(ask(&j, "q3"), 0);
    assert_int_equal(fl_llm_talk_left_out(j.talk), 0);
    assert_int_equal(ask(&j, "q4"), 0);
    assert_int_equal(fl_llm_talk_left_out(j.talk), 1);
    assert_int_equal(fl_llm_talk_turns(j.talk), 4);
    wants(&j, 0, "[" BEGIN Q("q1") "]");
    wants(&j, 1, "[" BEGIN Q("q1") A("a1") Q("q2") "]");
    wants(&j, 2, "[" BEGIN Q("q1") A("a1") Q("q2") A("a2") Q("q3") "]");
    wants(&j, 3, "[" BEGIN Q("q2") A("a2") Q("q3") A("a3") Q("q4") "]");
    end(&j);
}

static void a_question_that_cannot_fit(void **state)
{
    (void)state;
    struct job j;

    start(&j, 79, NULL, 0);
    assert_int_equal(ask(&j, "q1"), FL_ELIMIT);
    assert_non_null(strstr(j.err.msg, "take about 80 tokens, and the context has 79"));
    end(&j);
}

static void what_was_seen_is_kept(void **state)
{
    (void)state;
    static const char stream[] = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n"
                                 "data: {\"choices\":[{\"delta\":{\"content\":\" STOP\"}}]}\n\n"
                                 "data: {\"choices\":[{\"delta\":{\"content\":\" more\"}}]}\n\n";
    const struct fx_step steps[] = {{FL_HTTP_DONE, 200, "text/event-stream", NULL, stream, 0},
                                    {FL_HTTP_DONE, 500, NULL, NULL, "{}", 0},
                                    ANSWER("a3")};
    struct job j;

    start(&j, 0, steps, 3);
    j.ask.on_text = on_text;
    assert_int_equal(ask(&j, "q1"), FL_EBACKEND);
    assert_int_equal(fl_llm_talk_turns(j.talk), 1);
    assert_int_equal(ask(&j, "q2"), FL_EBACKEND); /* nothing came: no turn */
    assert_int_equal(fl_llm_talk_turns(j.talk), 1);
    assert_int_equal(ask(&j, "q3"), 0);
    wants(&j, 2, "[" BEGIN Q("q1") A("Half STOP") Q("q3") "]");
    end(&j);
}

/* ---- configuration ---- */

static int read_text(const char *text, fl_arena *arena, struct fl_llm_endpoint *e, fl_err *err)
{
    const fl_yaml *map = NULL;

    if (fl_yaml_parse(fl_str_c(text), "c.yaml", arena, &map, err))
        fail_msg("%s", err->msg);
    return fl_llm_endpoint_read(map, arena, e, err);
}

static void endpoints_are_read(void **state)
{
    (void)state;
    struct fl_llm_endpoint e = {0};
    fl_arena arena;
    fl_err err = {0};

    fl_arena_init(&arena);
    setenv("HOME", "/home/u", 1);
    if (read_text("name: big\nurl: https://h/v1\nmodel: gpt-4\napi_key_file: ~/k\napi_version: v1\n"
                  "timeout: 30\nconnect_timeout: 2.5\nmax_tokens: 900\ncontext: 32000\n"
                  "extra_headers: {X-Org: acme, X-Trace: '1'}\nca_file: /etc/ca.pem\n"
                  "proxy: http://p:3128\nprice_in: 2.5\nprice_out: 10\n",
                  &arena, &e, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(e.name, "big");
    assert_string_equal(e.url, "https://h/v1");
    assert_string_equal(e.model, "gpt-4");
    assert_string_equal(e.api_key_file, "/home/u/k");
    assert_null(e.api_key_env);
    assert_string_equal(e.api_version, "v1");
    assert_float_equal(e.timeout, 30, 0);
    assert_float_equal(e.connect_timeout, 2.5, 0);
    assert_int_equal(e.max_tokens, 900);
    assert_int_equal(e.context, 32000);
    assert_int_equal(e.nextra_headers, 2);
    assert_string_equal(e.extra_headers[0].name, "X-Org");
    assert_string_equal(e.extra_headers[0].value, "acme");
    assert_true(e.extra_headers[1].secret);
    assert_string_equal(e.ca_file, "/etc/ca.pem");
    assert_string_equal(e.proxy, "http://p:3128");
    assert_float_equal(e.price_out, 10, 0);
    fl_arena_dispose(&arena);
}

static void faulty_endpoints_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"model: m\n", "c.yaml:1: an endpoint needs a url such as http"},
        {"url: 127.0.0.1:8080\n", "c.yaml:1: an endpoint needs a url such as http"},
        {"url: http://h\napi_key: sk-1\n", "c.yaml:2: a key does not stand in a configuration"},
        {"url: http://h\ntimeuot: 3\n", "c.yaml:2: "},
        {"url: http://h\ntimeout: soon\n", "c.yaml:2: "},
        {"url: http://h\ntimeout: -1\n", "c.yaml:2: timeout must be from 0 to 86400"},
        {"url: http://h\napi_key_env: A\napi_key_file: b\n", "an endpoint has one key"},
        {"url: http://h\ncontext: 1000\nmax_tokens: 1000\n", "leaves nothing of the context"},
        {"url: http://h\nextra_headers: [a]\n", "c.yaml:2: extra_headers is a map"},
        {"- url\n", "c.yaml:1: an endpoint is a map with a url"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fl_llm_endpoint e = {0};
        fl_arena arena;
        fl_err err = {0};
        fl_arena_init(&arena);
        if (!read_text(rows[i][0], &arena, &e, &err) || !strstr(err.msg, rows[i][1]) || e.url ||
            strstr(err.msg, "sk-1"))
            fail_msg("%s: '%s', wanted '%s'", rows[i][0], err.msg, rows[i][1]);
        fl_arena_dispose(&arena);
    }
}

static void seeds_differ(void **state)
{
    (void)state;
    struct fx_world w;

    fx_world_init(&w);
    w.chance = 0.5;
    assert_true(fl_llm_seed(&w.w) == 0x8000000080000000);
    assert_true(fl_llm_seed(NULL) != fl_llm_seed(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_turns_are_left_out_and_the_log_never),
        cmocka_unit_test(a_question_that_cannot_fit),
        cmocka_unit_test(what_was_seen_is_kept),
        cmocka_unit_test(endpoints_are_read),
        cmocka_unit_test(faulty_endpoints_are_refused),
        cmocka_unit_test(seeds_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
