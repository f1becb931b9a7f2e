/*
 * The client against a scripted transport: what it sends, what it makes of answers, which endpoint
 * is asked when, what it leaves out when a server objects, the repair turn, vectors.
 */
#include "llm_fixture.h"

#include <math.h>

#include "base/alloc.h"

#define OK_REPLY(content)                                                                          \
    "{\"model\":\"m1\",\"choices\":[{\"message\":{\"content\":" content                            \
    "},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":100}}"
#define REFUSE(status, message)                                                                    \
    {                                                                                              \
        FL_HTTP_DONE, status, NULL, NULL, "{\"error\":{\"message\":\"" message "\"}}", 0           \
    }
#define GOOD                                                                                       \
    {                                                                                              \
        FL_HTTP_DONE, 200, NULL, NULL, OK_REPLY("\"fine\""), 0                                     \
    }

static const struct fl_llm_endpoint two[] = {
    {.name = "first", .url = "http://a/v1", .model = "m1", .price_in = 2, .price_out = 10},
    {.name = "second", .url = "http://b/v1", .model = "m2"},
};
static const struct fl_llm_message hello = {FL_LLM_USER, FL_S("hello")};

struct job {
    struct fx_script script;
    struct fl_llm_answer answer;
    fl_llm *c;
    struct fl_llm_ask ask;
    fl_err err;
};

static void begin(struct job *j, const struct fl_llm_endpoint *e, size_t n,
                  const struct fx_step *steps, size_t nsteps)
{
    static struct fl_llm_opts o;

    memset(j, 0, sizeof(*j));
    o = (struct fl_llm_opts){.endpoints = e, .nendpoints = n};
    o.transport = fx_play(&j->script, steps, nsteps);
    assert_int_equal(fl_llm_new(&o, &j->c, &j->err), 0);
    fl_llm_answer_init(&j->answer);
    j->ask = (struct fl_llm_ask)FL_LLM_ASK_INIT;
    j->ask.messages = &hello;
    j->ask.nmessages = 1;
}

static int ask(struct job *j)
{
    return fl_llm_chat(j->c, &j->ask, &j->answer, &j->err);
}

static void end(struct job *j)
{
    fl_llm_answer_dispose(&j->answer);
    fl_llm_free(j->c);
}

static void a_plain_answer(void **state)
{
    (void)state;
    const struct fx_step steps[] = {GOOD};
    struct job j;

    begin(&j, two, 2, steps, 1);
    assert_int_equal(ask(&j), 0);
    assert_string_equal(j.answer.text.p, "fine");
    assert_string_equal(j.answer.model, "m1");
    assert_string_equal(j.answer.finish, "stop");
    assert_int_equal(j.answer.endpoint, 0);
    assert_int_equal(j.answer.tokens_in, 1000);
    assert_int_equal(j.answer.tokens_out, 100);
    assert_float_equal(j.answer.cost, 0.003, 1e-12);
    assert_string_equal(j.script.url[0], "http://a/v1/chat/completions");
    assert_string_equal(
        j.script.sent[0],
        "{\"model\":\"m1\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],"
        "\"max_tokens\":2000,\"temperature\":0}");
    end(&j);
}

static void addresses_and_keys(void **state)
{
    (void)state;
    static const struct {
        struct fl_llm_endpoint e;
        const char *url, *auth;
    } rows[] = {
        {{.url = "http://h:8080"}, "http://h:8080/v1/chat/completions", ""},
        {{.url = "http://h:8080/"}, "http://h:8080/v1/chat/completions", ""},
        {{.url = "http://h/v1/"}, "http://h/v1/chat/completions", ""},
        {{.url = "http://h/v1/chat/completions"}, "http://h/v1/chat/completions", ""},
        {{.url = "https://h/api/openai"}, "https://h/api/openai/chat/completions", ""},
        {{.url = "https://h/v1?x=1"}, "https://h/v1/chat/completions?x=1", ""},
        {{.url = "https://h/v1", .api_key_env = "FL_TEST_KEY"},
         "https://h/v1/chat/completions",
         "Authorization: Bearer sk-test-0123456789"},
        {{.url = "https://r.openai.azure.com/openai/deployments/d", .api_key_env = "FL_TEST_KEY"},
         "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
         "api-key: sk-test-0123456789"},
        {{.url = "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=v9",
          .api_key_env = "FL_TEST_KEY"},
         "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=v9",
         "api-key: sk-test-0123456789"},
        {{.url = "https://proxy.corp/openai/deployments/d",
          .api_version = "2025-01-01",
          .api_key_env = "FL_TEST_KEY"},
         "https://proxy.corp/openai/deployments/d/chat/completions?api-version=2025-01-01",
         "api-key: sk-test-0123456789"},
        {{.url = "https://r.openai.azure.com/openai/v1", .api_key_env = "FL_TEST_KEY"},
         "https://r.openai.azure.com/openai/v1/chat/completions",
         "api-key: sk-test-0123456789"},
    };
    const struct fx_step steps[] = {GOOD};

    setenv("FL_TEST_KEY", "  sk-test-0123456789\n", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct job j;
        begin(&j, &rows[i].e, 1, steps, 1);
        if (ask(&j) || strcmp(j.script.url[0], rows[i].url) != 0 ||
            strcmp(j.script.auth[0], rows[i].auth) != 0)
            fail_msg("%s: '%s' '%s' %s", rows[i].e.url, j.script.url[0], j.script.auth[0],
                     j.err.msg);
        end(&j);
    }
}

static void a_key_that_is_not_there(void **state)
{
    (void)state;
    static const struct fl_llm_endpoint e[] = {
        {.url = "http://u:pass-word-9@a/v1?key=k-12345678", .api_key_env = "FL_TEST_NOT_SET"},
        {.name = "b", .url = "http://b/v1", .api_key_file = "/nonexistent/key"},
        {.name = "c", .url = "http://c/v1", .api_key_file = "/dev/null"},
        {.name = "d", .url = "http://d/v1"},
    };
    const struct fx_step steps[] = {GOOD};
    struct job j;

    begin(&j, e, 4, steps, 1);
    assert_int_equal(ask(&j), 0); /* the fourth needs none */
    assert_int_equal(j.answer.endpoint, 3);
    assert_non_null(strstr(j.answer.failures.p, "http://a/v1: the environment variable "
                                                "FL_TEST_NOT_SET, which holds its key, is not "
                                                "set"));
    assert_null(strstr(j.answer.failures.p, "pass-word-9"));
    assert_null(strstr(j.answer.failures.p, "k-12345678"));
    assert_non_null(strstr(j.answer.failures.p, "b: its key cannot be read: /nonexistent/key: "));
    assert_non_null(strstr(j.answer.failures.p, "c: /dev/null: empty; it must hold the key"));
    end(&j);
}

static void what_a_server_objects_to_is_left_out(void **state)
{
    (void)state;
    static const struct fl_llm_endpoint e = {.name = "a", .url = "http://a/v1", .model = "m"};
    const struct fx_step steps[] = {
        REFUSE(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                    "'max_completion_tokens' instead."),
        REFUSE(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        REFUSE(400, "'response_format' of type 'json_schema' is not supported"),
        REFUSE(422, "json_object is unknown"),
        GOOD,
        GOOD,
    };
    struct job j;

    begin(&j, &e, 1, steps, 6);
    j.ask.schema = FL_S("{\"type\":\"object\"}");
    assert_int_equal(ask(&j), 0);
    assert_non_null(strstr(j.script.sent[0], "\"response_format\":{\"type\":\"json_schema\","
                                             "\"json_schema\":{\"name\":\"answer\",\"strict\":true,"
                                             "\"schema\":{\"type\":\"object\"}}}"));
    assert_non_null(strstr(j.script.sent[1], "\"max_completion_tokens\":2000"));
    assert_null(strstr(j.script.sent[2], "temperature"));
    assert_non_null(strstr(j.script.sent[3], "{\"type\":\"json_object\"}"));
    assert_null(strstr(j.script.sent[4], "response_format"));
    assert_int_equal(j.answer.format, FL_LLM_PLAIN);
    assert_int_equal(j.answer.requests, 5);
    assert_int_equal(ask(&j), 0); /* and it is remembered */
    assert_string_equal(j.script.sent[5],
                        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],"
                        "\"max_completion_tokens\":2000}");
    end(&j);
}

static void what_cannot_be_helped_goes_to_the_next(void **state)
{
    (void)state;
    static const struct {
        struct fx_step step;
        const char *says;
    } rows[] = {
        {REFUSE(401, "Invalid API Key"), "first: the server wants a key; name one by api_key_file "
                                         "or api_key_env (status 401): Invalid API Key"},
        {REFUSE(403, "no"), "first: access is refused"},
        {REFUSE(404, "The model `m1` does not exist"), "first: there is no such address or model"},
        {REFUSE(429, "slow down"), "first: the service is crowded"},
        {REFUSE(500, "oops"), "first: the server failed; see its log (status 500): oops"},
        {REFUSE(400, "This model's maximum context length is 2048 tokens"),
         "first: the prompt is too long for the model (This model's maximum"},
        {REFUSE(400, "model is not a chat model"), "first: the request was refused (status 400)"},
        {{FL_HTTP_REFUSED, 0, NULL, NULL, "", 0}, "step 1 failed"},
        {{FL_HTTP_TIMEOUT, 0, NULL, NULL, "", 0}, "step 1 failed"},
        {{FL_HTTP_DONE, 200, "text/html", NULL, "<html>hi</html>", 0},
         "first: the answer is a web page, text/html and not JSON"},
        {{FL_HTTP_DONE, 200, "text/plain", NULL, "hi", 0}, "first: the answer is text/plain"},
        {{FL_HTTP_DONE, 200, NULL, NULL, "{\"choices\": [{\"mess", 0},
         "first: the answer is not valid JSON, or was cut short"},
        {{FL_HTTP_DONE, 200, NULL, NULL, OK_REPLY("\"  \""), 0},
         "first: the model answered with nothing"},
        {{FL_HTTP_DONE, 204, NULL, NULL, "", 0}, "first: the answer is empty"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fx_step steps[2] = {rows[i].step, GOOD};
        struct job j;
        begin(&j, two, 2, steps, 2);
        j.ask.schema = FL_S("{}");
        if (ask(&j) || j.answer.endpoint != 1 || !strstr(j.answer.failures.p, rows[i].says))
            fail_msg("row %zu: endpoint %zu, '%s', wanted '%s' (%s)", i, j.answer.endpoint,
                     j.answer.failures.p ? j.answer.failures.p : "", rows[i].says, j.err.msg);
        end(&j);
    }
}

static void all_fail(void **state)
{
    (void)state;
    const struct fx_step steps[] = {REFUSE(500, "oops"), REFUSE(404, "no such model")};
    struct job j;

    begin(&j, two, 2, steps, 2);
    assert_int_equal(ask(&j), FL_EBACKEND);
    assert_string_equal(j.err.msg,
                        "none of 2 endpoints answered: first: the server failed; see its "
                        "log (status 500): oops; second: there is no such address or "
                        "model; check url (it mostly ends in /v1) and model (status "
                        "404): no such model");
    end(&j);
    begin(&j, two, 2, steps, 1);
    j.ask.endpoint = 0;
    assert_int_equal(ask(&j), FL_EBACKEND);
    assert_string_equal(j.err.msg, "first: the server failed; see its log (status 500): oops");
    end(&j);
    begin(&j, two, 0, steps, 1);
    assert_int_equal(ask(&j), FL_EUSAGE);
    end(&j);
}

static void stopped_is_stopped(void **state)
{
    (void)state;
    static const enum fl_http_end ends[] = {FL_HTTP_CANCELLED, FL_HTTP_DEADLINE};

    for (size_t i = 0; i < 2; i++) {
        struct fx_step steps[] = {{ends[i], 0, NULL, NULL, "", 0}, GOOD};
        struct job j;
        begin(&j, two, 2, steps, 2);
        assert_int_equal(ask(&j), FL_EBACKEND);
        assert_int_equal(j.script.at, 1); /* the second endpoint is not asked */
        end(&j);
    }
}

static void a_key_is_in_no_message(void **state)
{
    (void)state;
    static const struct fl_llm_endpoint e = {.url = "http://a/v1", .api_key_env = "FL_TEST_KEY"};
    const struct fx_step steps[] = {
        REFUSE(401, "Incorrect API key provided: sk-test-0123456789. Or sk-test-01******6789?")};
    struct job j;

    setenv("FL_TEST_KEY", "sk-test-0123456789", 1);
    begin(&j, &e, 1, steps, 1);
    assert_int_equal(ask(&j), FL_EBACKEND);
    assert_string_equal(j.err.msg, "http://a/v1: the key was refused; check what api_key_file or "
                                   "api_key_env holds (status 401): Incorrect API key provided: "
                                   "[key]. Or [key]******6789?");
    end(&j);
}

static void what_cannot_fit_is_not_sent(void **state)
{
    (void)state;
    static char large[40000];
    static const struct fl_llm_endpoint e = {
        .name = "a", .url = "http://a/v1", .context = 8192, .max_tokens = 1000};
    const struct fl_llm_message m = {FL_LLM_USER, {large, sizeof(large)}};
    struct job j;

    memset(large, 'x', sizeof(large));
    begin(&j, &e, 1, NULL, 0);
    j.ask.messages = &m;
    assert_int_equal(ask(&j), FL_ELIMIT);
    assert_non_null(strstr(j.err.msg, "about 10008 tokens and the answer may have 1000, but the "
                                      "endpoint's context is 8192"));
    end(&j);
}

/* ---- streams ---- */

static int on_text(void *ctx, fl_str text)
{
    fl_buf_add(ctx, text);
    return fl_str_has(fl_buf_str(ctx), FL_S("STOP")) ? -1 : 0;
}

#define DELTA(text) "data: {\"choices\":[{\"delta\":{\"content\":" text "}}]}\n\n"
static const char stream[] =
    "data: {\"model\":\"m1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}"
    "\n\n: comment\n\n" DELTA("\"<think>hm</think>\"") DELTA("\"Hal\"") DELTA("\"lo\"") DELTA(
        "\"\"") "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n"
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}"
                "\n\ndata: [DONE]\n\n";

static void a_stream_is_read_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof(stream); piece += piece < 40 ? 1 : 37) {
        const struct fx_step steps[] = {
            {FL_HTTP_DONE, 200, "text/event-stream", NULL, stream, piece}};
        struct job j;
        fl_buf seen;
        begin(&j, two, 1, steps, 1);
        fl_buf_init(&seen, 1000);
        j.ask.on_text = on_text;
        j.ask.ctx = &seen;
        if (ask(&j))
            fail_msg("%zu bytes at once: %s", piece, j.err.msg);
        assert_string_equal(seen.p, "Hallo");
        assert_string_equal(j.answer.text.p, "<think>hm</think>Hallo");
        assert_int_equal(j.answer.tokens_in, 7);
        assert_string_equal(j.answer.finish, "stop");
        assert_non_null(strstr(j.script.sent[0], "\"stream\":true,\"stream_options\":"
                                                 "{\"include_usage\":true}"));
        fl_buf_dispose(&seen);
        end(&j);
    }
}

static void streams_that_go_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *type, *body, *seen, *says; /* says NULL: it is fine */
        unsigned requests;
    } rows[] = {
        {"text/event-stream", DELTA("\"a\""), "a", "the stream ended in the middle", 1},
        {"text/event-stream", DELTA("\"a\"") "data: {\"error\":{\"message\":\"boom\"}}\n\n", "a",
         "first: the server reported an error: boom", 1},
        {"text/event-stream", DELTA("\"a\"") "error: {\"message\":\"boom\"}\n\n", "a",
         "first: the server reported an error: boom", 1},
        {"text/event-stream", DELTA("\"a\"") "data: {\"cho\n\n", "a",
         "an event that is not valid JSON", 1},
        {"text/event-stream", DELTA("\"STOP\"") DELTA("\"b\""), "STOP", "the answer was stopped",
         1},
        {"text/event-stream", "data: [DONE]\n\n", "", "the model answered with nothing", 2},
        {"text/html", "<html>", "", "a web page", 2},
        {"text/plain", DELTA("\"a\"") "data: [DONE]\n\n", "a", NULL, 1}, /* a proxy lost the type */
        {"application/json", OK_REPLY("\"whole\""), "whole", NULL, 1},   /* or the stream */
        {"text/plain", OK_REPLY("\"whole\""), "whole", NULL, 1},
        {"application/json", "{\"error\":\"x\"}", "", "reported an error: x", 2},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct fx_step steps[] = {{FL_HTTP_DONE, 200, rows[i].type, NULL, rows[i].body, 11},
                                        {FL_HTTP_DONE, 200, rows[i].type, NULL, rows[i].body, 0}};
        struct job j;
        fl_buf seen;
        int r;
        begin(&j, two, 2, steps, 2);
        fl_buf_init(&seen, 1000);
        j.ask.on_text = on_text;
        j.ask.ctx = &seen;
        r = ask(&j);
        if ((r != 0) != (rows[i].says != NULL) || strcmp(seen.p ? seen.p : "", rows[i].seen) != 0 ||
            (rows[i].says && !strstr(j.err.msg, rows[i].says)) || j.script.at != rows[i].requests)
            fail_msg("row %zu: code %d, seen '%s', %zu requests, '%s'", i, r, seen.p ? seen.p : "",
                     j.script.at, j.err.msg);
        fl_buf_dispose(&seen);
        end(&j);
    }
}

static void stream_options_are_left_out(void **state)
{
    (void)state;
    const struct fx_step steps[] = {
        REFUSE(400, "Unrecognized request argument supplied: stream_options"),
        {FL_HTTP_DONE, 200, "text/event-stream", NULL, stream, 0}};
    struct job j;
    fl_buf seen;

    begin(&j, two, 1, steps, 2);
    fl_buf_init(&seen, 1000);
    j.ask.on_text = on_text;
    j.ask.ctx = &seen;
    assert_int_equal(ask(&j), 0);
    assert_null(strstr(j.script.sent[1], "stream_options"));
    fl_buf_dispose(&seen);
    end(&j);
}

/* ---- verdicts ---- */

#define VERDICT(cause)                                                                             \
    OK_REPLY("\"{\\\"citations\\\":[{\\\"file\\\":\\\"a\\\",\\\"line\\\":1,\\\"quote\\\":"         \
             "\\\"q\\\"}],\\\"cause\\\":\\\"" cause "\\\",\\\"class\\\":\\\"framework\\\","        \
             "\\\"summary\\\":\\\"s\\\",\\\"alternatives\\\":[],\\\"action\\\":\\\"none\\\","      \
             "\\\"confidence\\\":0.5}\"")
#define STEP(body)                                                                                 \
    {                                                                                              \
        FL_HTTP_DONE, 200, NULL, NULL, body, 0                                                     \
    }

/* Complains about fw.hang, as if its quote were in no log. */
static int check(void *ctx, const struct fl_said *v, fl_buf *complaints, fl_err *err)
{
    (void)err;
    ++*(int *)ctx;
    if (strcmp(v->cause, "fw.hang") != 0)
        return 0;
    fl_buf_addz(complaints, "- citation 1: line 1 of a does not hold the quote\n");
    return 1;
}

static const struct {
    const char *name;
    struct fx_step steps[2];
    const char *cause, *says; /* cause NULL: an error that says this */
    unsigned turns;
    int complaints, checks;
} repairs[] = {
    {"good at once", {STEP(VERDICT("fw.nan"))}, "fw.nan", NULL, 1, 0, 1},
    {"no JSON, then good",
     {STEP(OK_REPLY("\"It is the GPU.\"")), STEP(VERDICT("fw.nan"))},
     "fw.nan",
     NULL,
     2,
     0,
     1},
    {"wrong cause, then good",
     {STEP(VERDICT("fw.nam")), STEP(VERDICT("fw.nan"))},
     "fw.nan",
     NULL,
     2,
     0,
     1},
    {"not grounded, then good",
     {STEP(VERDICT("fw.hang")), STEP(VERDICT("fw.nan"))},
     "fw.nan",
     NULL,
     2,
     0,
     2},
    {"never grounded",
     {STEP(VERDICT("fw.hang")), STEP(VERDICT("fw.hang"))},
     "fw.hang",
     NULL,
     2,
     1,
     2},
    {"worse the second time",
     {STEP(VERDICT("fw.hang")), STEP(OK_REPLY("\"sorry\""))},
     "fw.hang",
     NULL,
     2,
     1,
     1},
    {"gone the second time",
     {STEP(VERDICT("fw.hang")), REFUSE(500, "x")},
     "fw.hang",
     NULL,
     2,
     1,
     1},
    {"never of the form",
     {STEP(VERDICT("fw.nam")), STEP(VERDICT("fw.nam"))},
     NULL,
     "cannot be used, not even after a second try: \"cause\" is \"fw.nam\"",
     2,
     0,
     0},
    {"gone before it had a form",
     {STEP(OK_REPLY("\"?\"")), REFUSE(500, "x")},
     NULL,
     "status 500",
     2,
     0,
     0},
};

static void the_repair_turn(void **state)
{
    (void)state;
    struct fl_llm_terms terms;
    struct fl_prompt repair;
    fl_arena arena;
    fl_err err = {0};

    fl_arena_init(&arena);
    terms = fx_terms(&arena);
    assert_int_equal(fl_prompt_load(FL_SOURCE_DIR "/prompts/repair.md", &arena, &repair, &err), 0);
    for (size_t i = 0; i < sizeof(repairs) / sizeof(*repairs); i++) {
        struct fl_llm_question q = {.repair = &repair, .terms = &terms, .check = check};
        struct fl_llm_verdict v;
        struct job j;
        int checks = 0, r;
        begin(&j, two, 1, repairs[i].steps, 2);
        fl_llm_verdict_init(&v);
        q.ask = j.ask;
        q.check_ctx = &checks;
        r = fl_llm_judge(j.c, &q, &arena, &v, &j.err);
        if ((repairs[i].cause ? r || strcmp(v.verdict.cause, repairs[i].cause) != 0
                              : !r || !strstr(j.err.msg, repairs[i].says)) ||
            v.turns != repairs[i].turns || (!r && v.complaints != repairs[i].complaints) ||
            checks != repairs[i].checks)
            fail_msg("%s: code %d, cause %s, %u turns, %d complaints, %d checks, '%s'",
                     repairs[i].name, r, v.verdict.cause ? v.verdict.cause : "-", v.turns,
                     v.complaints, checks, j.err.msg);
        if (!r && repairs[i].steps[1].status == 200 && v.answer.tokens_in != 2000)
            fail_msg("%s: %lld tokens of two turns", repairs[i].name,
                     (long long)v.answer.tokens_in);
        fl_llm_verdict_dispose(&v);
        end(&j);
    }
    fl_arena_dispose(&arena);
}

static void the_model_sees_what_was_wrong(void **state)
{
    (void)state;
    const struct fx_step steps[] = {STEP(OK_REPLY("\"<think>long</think>It is the GPU.\"")),
                                    STEP(VERDICT("fw.nan"))};
    struct fl_llm_terms terms;
    struct fl_llm_verdict v;
    struct fl_prompt repair;
    struct fl_llm_question q = {.terms = &terms, .repair = &repair};
    fl_arena arena;
    struct job j;

    fl_arena_init(&arena);
    terms = fx_terms(&arena);
    begin(&j, two, 2, steps, 2);
    assert_int_equal(fl_prompt_load(FL_SOURCE_DIR "/prompts/repair.md", &arena, &repair, &j.err),
                     0);
    fl_llm_verdict_init(&v);
    q.ask = j.ask;
    assert_int_equal(fl_llm_judge(j.c, &q, &arena, &v, &j.err), 0);
    assert_non_null(strstr(j.script.sent[1],
                           "{\"role\":\"assistant\",\"content\":\"It is the GPU.\""
                           "}"));
    assert_non_null(strstr(j.script.sent[1], "The reply holds no valid JSON object."));
    assert_null(strstr(j.script.sent[1], "long"));
    assert_float_equal(v.answer.cost, 0.006, 1e-12);
    fl_llm_verdict_dispose(&v);
    fl_arena_dispose(&arena);
    end(&j);
}

/* ---- vectors ---- */

static const struct {
    const char *name, *body, *says; /* says NULL: good */
    unsigned dimensions;
} vector_rows[] = {
    {"in any order",
     "{\"data\":[{\"index\":1,\"embedding\":[0,2]},{\"index\":0,\"embedding\":"
     "[3,4]}]}",
     NULL, 0},
    {"without indices", "{\"data\":[{\"embedding\":[3,4]},{\"embedding\":[0,2]}]}", NULL, 2},
    {"one too few", "{\"data\":[{\"index\":0,\"embedding\":[3,4]}]}", "1 vectors came for 2", 0},
    {"one twice",
     "{\"data\":[{\"index\":0,\"embedding\":[3,4]},{\"index\":0,\"embedding\":"
     "[3,4]}]}",
     "for texts that were not sent", 0},
    {"one too many",
     "{\"data\":[{\"index\":0,\"embedding\":[3,4]},{\"index\":1,\"embedding\":"
     "[3,4]},{\"index\":2,\"embedding\":[3,4]}]}",
     "for texts that were not sent", 0},
    {"another dimension",
     "{\"data\":[{\"index\":0,\"embedding\":[3,4]},{\"index\":1,"
     "\"embedding\":[3]}]}",
     "a vector of 1 numbers came where 2 are needed", 0},
    {"not the index's dimension",
     "{\"data\":[{\"index\":0,\"embedding\":[3,4]},{\"index\":1,"
     "\"embedding\":[3,4]}]}",
     "a vector of 2 numbers came where 3 are needed", 3},
    {"null in it",
     "{\"data\":[{\"index\":0,\"embedding\":[3,null]},{\"index\":1,\"embedding\":"
     "[3,4]}]}",
     "no finite number", 0},
    {"infinite",
     "{\"data\":[{\"index\":0,\"embedding\":[3,1e999]},{\"index\":1,\"embedding\":"
     "[3,4]}]}",
     "no finite number", 0},
    {"all zero",
     "{\"data\":[{\"index\":0,\"embedding\":[0,0]},{\"index\":1,\"embedding\":[3,4]}"
     "]}",
     "all zero", 0},
    {"empty", "{\"data\":[{\"index\":0,\"embedding\":[]},{\"index\":1,\"embedding\":[]}]}",
     "a vector of 0 numbers", 0},
    {"no list", "{\"data\":7}", "0 vectors came for 2", 0},
    {"half", "{\"data\":[{\"index\"", "not valid JSON, or was cut short", 0},
    {"NaN as some servers write it", "{\"data\":[{\"index\":0,\"embedding\":[NaN,1]}]}",
     "not valid JSON", 0},
};

static void vectors_are_checked(void **state)
{
    (void)state;
    const fl_str texts[] = {FL_S("a"), FL_S("b")};

    for (size_t i = 0; i < sizeof(vector_rows) / sizeof(*vector_rows); i++) {
        const struct fx_step steps[] = {STEP(vector_rows[i].body)};
        struct fx_script script;
        struct fl_llm_embed_opts o = {.endpoint = &two[0], .dimensions = vector_rows[i].dimensions};
        unsigned dimensions = 0;
        float *v = NULL;
        fl_err err = {0};
        int r;
        o.transport = fx_play(&script, steps, 1);
        r = fl_llm_embed(&o, texts, 2, &v, &dimensions, &err);
        if (vector_rows[i].says
                ? !r || v || !strstr(err.msg, vector_rows[i].says)
                : r || dimensions != 2 || fabsf(v[0] - 0.6f) > 1e-6f || fabsf(v[3] - 1.0f) > 1e-6f)
            fail_msg("%s: code %d, '%s'", vector_rows[i].name, r, err.msg);
        fl_free(v);
    }
}

static void texts_go_in_batches(void **state)
{
    (void)state;
    static const char two_vectors[] = "{\"data\":[{\"embedding\":[1,0]},{\"embedding\":[0,1]}]}";
    const struct fx_step steps[] = {STEP(two_vectors), STEP(two_vectors),
                                    STEP("{\"data\":[{\"embedding\":[-1,0]}]}")};
    const fl_str texts[] = {FL_S("a"), FL_S("b\xff"), FL_S("c"), FL_S("d"), FL_S("e")};
    const fl_str blank[] = {FL_S("a"), FL_S(" \n")};
    struct fx_script script;
    struct fl_llm_embed_opts o = {.endpoint = &two[0], .batch = 2};
    unsigned dimensions = 0;
    float *v = NULL;
    fl_err err = {0};

    o.transport = fx_play(&script, steps, 3);
    assert_int_equal(fl_llm_embed(&o, texts, 5, &v, &dimensions, &err), 0);
    assert_string_equal(script.url[0], "http://a/v1/embeddings");
    assert_string_equal(script.sent[0], "{\"model\":\"m1\",\"encoding_format\":\"float\","
                                        "\"input\":[\"a\",\"b\xef\xbf\xbd\"]}");
    assert_string_equal(script.sent[2], "{\"model\":\"m1\",\"encoding_format\":\"float\","
                                        "\"input\":[\"e\"]}");
    assert_true(v[2 * 4] < -0.99f);
    fl_free(v);
    assert_int_equal(fl_llm_embed(&o, blank, 2, &v, &dimensions, &err), FL_EUSAGE);
    assert_string_equal(err.msg, "text 2 of 2 is empty and has no vector");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_answer),
        cmocka_unit_test(addresses_and_keys),
        cmocka_unit_test(a_key_that_is_not_there),
        cmocka_unit_test(what_a_server_objects_to_is_left_out),
        cmocka_unit_test(what_cannot_be_helped_goes_to_the_next),
        cmocka_unit_test(all_fail),
        cmocka_unit_test(stopped_is_stopped),
        cmocka_unit_test(a_key_is_in_no_message),
        cmocka_unit_test(what_cannot_fit_is_not_sent),
        cmocka_unit_test(a_stream_is_read_however_it_is_cut),
        cmocka_unit_test(streams_that_go_wrong),
        cmocka_unit_test(stream_options_are_left_out),
        cmocka_unit_test(the_repair_turn),
        cmocka_unit_test(the_model_sees_what_was_wrong),
        cmocka_unit_test(vectors_are_checked),
        cmocka_unit_test(texts_go_in_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
