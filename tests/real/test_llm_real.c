/*
 * The client against a real llama.cpp server and a real embedding server; tests/real/run.sh starts
 * them. The model has 135 million parameters and names no cause; what is tested is the protocol:
 * that JSON comes as constrained, that streams are read, keys refused, answers stopped in their
 * middle, prompts refused that are too long. Two cores may be busy, so the timeouts are long.
 */
#include "../unit/llm_fixture.h"

#include <math.h>

#include "base/alloc.h"
#include "base/json.h"
#include "llm/extract.h"
#include "llm/record.h"

#define KEY "real-key-0123456789"

struct job {
    struct fl_llm_endpoint e;
    fl_http_client *client;
    struct fl_http_retry retry;
    struct fl_llm_opts o;
    fl_llm *c;
    struct fl_llm_ask ask;
    struct fl_llm_message m;
    struct fl_llm_answer answer;
    volatile sig_atomic_t cancel;
    unsigned pieces, stop_at;
    char seen[4000];
    fl_err err;
};

static const char *address(const char *name)
{
    const char *z = getenv(name);

    if (!z)
        fail_msg("%s is not set; tests/real/run.sh starts this", name);
    return z;
}

static int on_text(void *ctx, fl_str text)
{
    struct job *j = ctx;
    size_t n = strlen(j->seen);

    snprintf(j->seen + n, sizeof(j->seen) - n, "%.*s", FL_FMT(text));
    if (++j->pieces == j->stop_at)
        j->cancel = 1;
    return 0;
}

static void begin(struct job *j, const char *question)
{
    memset(j, 0, sizeof(*j));
    setenv("FL_REAL_KEY", KEY, 1);
    j->e.url = address("FL_REAL_LLM");
    j->e.model = "SmolLM2";
    j->e.api_key_env = "FL_REAL_KEY";
    j->e.timeout = 200;
    if (fl_http_client_new(NULL, &j->client, &j->err))
        fail_msg("%s", j->err.msg);
    j->retry.inner = fl_http_client_transport(j->client);
    j->retry.world = fl_http_world();
    j->o = (struct fl_llm_opts){.endpoints = &j->e, .nendpoints = 1, .cancel = &j->cancel};
    j->o.transport = fl_http_retry_transport(&j->retry);
    assert_int_equal(fl_llm_new(&j->o, &j->c, &j->err), 0);
    fl_llm_answer_init(&j->answer);
    j->m = (struct fl_llm_message){FL_LLM_USER, fl_str_c(question)};
    j->ask = (struct fl_llm_ask)FL_LLM_ASK_INIT;
    j->ask.messages = &j->m;
    j->ask.nmessages = 1;
    j->ask.max_tokens = 40;
    j->ask.ctx = j;
}

static void end(struct job *j)
{
    fl_llm_answer_dispose(&j->answer);
    fl_llm_free(j->c);
    fl_http_client_free(j->client);
}

static double now(void)
{
    return fl_http_world()->now(NULL);
}

static const char colours[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"colour\",\"sure\"],"
    "\"properties\":{\"colour\":{\"type\":\"string\",\"enum\":[\"red\",\"green\"]},\"sure\":"
    "{\"type\":\"boolean\"}}}";

static void check_colour(fl_str text)
{
    fl_json *root = NULL;
    const char *colour;
    fl_str object;
    fl_err err = {0};

    if (fl_llm_extract(text, "colour", &object, &err) ||
        fl_json_parse(object, "the answer", &root, &err))
        fail_msg("'%.*s': %s", FL_FMT(text), err.msg);
    colour = fl_json_z(fl_json_get(root, "colour"));
    if (!colour || (strcmp(colour, "red") != 0 && strcmp(colour, "green") != 0))
        fail_msg("'%.*s' is not of the schema", FL_FMT(text));
    fl_json_free(root);
}

static void json_as_constrained(void **state)
{
    (void)state;
    struct job j;

    begin(&j, "Which colour has grass?");
    j.ask.schema = fl_str_c(colours);
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err))
        fail_msg("%s", j.err.msg);
    check_colour(fl_buf_str(&j.answer.text));
    assert_int_equal(j.answer.format, FL_LLM_JSON_SCHEMA);
    assert_int_equal(j.answer.requests, 1);
    assert_true(j.answer.tokens_in > 5 && j.answer.tokens_out > 3);
    assert_string_equal(j.answer.finish, "stop");
    print_message("%lld tokens in, %lld out, %.1f s: %s\n", (long long)j.answer.tokens_in,
                  (long long)j.answer.tokens_out, j.answer.seconds, j.answer.text.p);
    end(&j);
}

static void a_stream(void **state)
{
    (void)state;
    struct job j;

    begin(&j, "Count from one to ten.");
    j.ask.on_text = on_text;
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err))
        fail_msg("%s", j.err.msg);
    assert_true(j.pieces > 3);
    assert_string_equal(j.seen, fl_str_trim(fl_buf_str(&j.answer.text)).p);
    assert_true(j.answer.tokens_in > 5 && j.answer.tokens_out > 3);
    assert_true(j.answer.finish[0]);
    end(&j);
}

static void a_wrong_key(void **state)
{
    (void)state;
    struct job j;

    begin(&j, "Hello");
    setenv("FL_REAL_KEY", "wrong-key-9876543210", 1);
    assert_int_equal(fl_llm_chat(j.c, &j.ask, &j.answer, &j.err), FL_EBACKEND);
    if (!strstr(j.err.msg, "the key was refused") || !strstr(j.err.msg, "(status 401)") ||
        strstr(j.err.msg, "wrong-key"))
        fail_msg("%s", j.err.msg);
    end(&j);
    begin(&j, "Hello");
    j.e.api_key_env = NULL;
    assert_int_equal(fl_llm_chat(j.c, &j.ask, &j.answer, &j.err), FL_EBACKEND);
    if (!strstr(j.err.msg, "the server wants a key"))
        fail_msg("%s", j.err.msg);
    end(&j);
}

static void stopped_in_mid_answer(void **state)
{
    (void)state;
    struct job j;
    double start;

    begin(&j, "Tell a very long story about a ship.");
    j.ask.max_tokens = 1500;
    j.ask.on_text = on_text;
    j.stop_at = 5;
    assert_int_equal(fl_llm_chat(j.c, &j.ask, &j.answer, &j.err), FL_EBACKEND);
    assert_string_equal(j.err.msg, "the request was stopped");
    assert_true(j.pieces >= 5 && j.pieces < 100); /* the pieces of one packet came together */
    assert_true(j.answer.text.n > 0);
    j.cancel = 0;
    j.stop_at = 0;
    j.m.text = FL_S("Say yes.");
    j.ask.max_tokens = 5;
    start = now();
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err)) /* the server has let go of the first one */
        fail_msg("%s", j.err.msg);
    assert_true(now() - start < 60);
    end(&j);
}

static void the_deadline(void **state)
{
    (void)state;
    struct job j;
    double start = now();

    begin(&j, "Tell a very long story about a ship.");
    j.ask.max_tokens = 3000;
    j.ask.deadline = start + 1;
    assert_int_equal(fl_llm_chat(j.c, &j.ask, &j.answer, &j.err), FL_EBACKEND);
    if (!strstr(j.err.msg, "within the time that was left"))
        fail_msg("%s", j.err.msg);
    assert_true(now() - start < 10);
    end(&j);
}

static void a_prompt_that_is_too_long(void **state)
{
    (void)state;
    static char text[60000];
    struct job j;

    for (size_t i = 0; i + 1 < sizeof(text); i += 6)
        memcpy(text + i, "error ", 6);
    text[sizeof(text) - 1] = 0;
    begin(&j, text);
    j.ask.schema = fl_str_c(colours);
    assert_int_equal(fl_llm_chat(j.c, &j.ask, &j.answer, &j.err), FL_ELIMIT);
    if (!strstr(j.err.msg, "the prompt is too long for the model"))
        fail_msg("%s", j.err.msg);
    assert_int_equal(j.answer.requests, 1); /* leaving out the schema would not help */
    end(&j);
}

static void cut_at_max_tokens(void **state)
{
    (void)state;
    struct job j;
    fl_str object;

    begin(&j, "Which colour has grass?");
    j.ask.schema = fl_str_c(colours);
    j.ask.max_tokens = 4;
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err))
        fail_msg("%s", j.err.msg);
    assert_string_equal(j.answer.finish, "length");
    /* No more than a code fence may have come: then there is no object, else one without an end. */
    if (!fl_llm_extract(fl_buf_str(&j.answer.text), "colour", &object, &j.err))
        fail_msg("'%s' has an object", j.answer.text.p);
    end(&j);
}

/* A verdict from start to end. What a model this small may say is fixed by the schema; that it is
 * said, read and of the right form is what counts. */
static const char one_verdict[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"citations\",\"cause\","
    "\"class\",\"summary\",\"alternatives\",\"action\",\"confidence\"],\"properties\":{"
    "\"citations\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":1,\"items\":{\"type\":"
    "\"object\","
    "\"additionalProperties\":false,\"required\":[\"file\",\"line\",\"quote\"],\"properties\":{"
    "\"file\":{\"enum\":[\"a.log\"]},\"line\":{\"enum\":[1]},\"quote\":{\"enum\":[\"Xid 79\"]}}}},"
    "\"cause\":{\"enum\":[\"gpu.off_bus\",\"unknown\"]},\"class\":{\"enum\":[\"infrastructure\"]},"
    "\"summary\":{\"enum\":[\"A GPU was lost.\"]},\"alternatives\":{\"type\":\"array\","
    "\"maxItems\":0,\"items\":{\"type\":\"string\"}},\"action\":{\"enum\":[\"restart\","
    "\"investigate\"]},\"confidence\":{\"enum\":[0.5,0.9]}}}";

static void a_verdict(void **state)
{
    (void)state;
    static const struct fl_llm_cause causes[] = {
        {"gpu.off_bus", "infrastructure", "GPU fell off the bus"},
        {"unknown", "-", "no cause"},
    };
    static const char *const actions[] = {"restart", "investigate"};
    static const struct fl_llm_terms terms = {causes, 2, actions, 2};
    struct fl_llm_question q = {.terms = &terms};
    struct fl_llm_verdict v;
    fl_arena arena;
    struct job j;

    fl_arena_init(&arena);
    begin(&j, "Why did the job die? a.log:1 says: Xid 79. Answer in JSON.");
    fl_llm_verdict_init(&v);
    q.ask = j.ask;
    q.ask.schema = fl_str_c(one_verdict);
    q.ask.max_tokens = 400;
    if (fl_llm_judge(j.c, &q, &arena, &v, &j.err))
        fail_msg("%s: %s", j.err.msg, v.answer.text.p ? v.answer.text.p : "");
    assert_int_equal(v.verdict.ncitations, 1);
    assert_string_equal(v.verdict.citations[0].quote, "Xid 79");
    assert_string_equal(v.verdict.summary, "A GPU was lost.");
    print_message("%s, %s, %lld tokens out, %.1f s\n", v.verdict.cause, v.verdict.action,
                  (long long)v.answer.tokens_out, v.answer.seconds);
    fl_llm_verdict_dispose(&v);
    fl_arena_dispose(&arena);
    end(&j);
}

static void a_probe(void **state)
{
    (void)state;
    const struct fl_llm_finding *f = NULL;
    struct fl_prompt probe;
    fl_arena arena;
    size_t n = 0;
    bool answers = false, small = false;
    struct job j;

    fl_arena_init(&arena);
    begin(&j, "");
    assert_int_equal(fl_prompt_load(FL_SOURCE_DIR "/prompts/probe.md", &arena, &probe, &j.err), 0);
    if (fl_llm_probe(j.c, 0, &probe, 8000, 0, &arena, &f, &n, &j.err))
        fail_msg("%s", j.err.msg);
    for (size_t i = 0; i < n; i++) {
        print_message("%d %s\n", f[i].state, f[i].text);
        answers = answers || strstr(f[i].text, "answers in JSON by a schema");
        small = small || strstr(f[i].text, "tokens is too small");
        assert_int_not_equal(f[i].state, FL_LLM_BROKEN);
    }
    assert_true(answers);
    (void)small;
    fl_arena_dispose(&arena);
    end(&j);
}

static void record_and_replay(void **state)
{
    (void)state;
    char dir[] = "/tmp/fl-real-XXXXXX", path[60], said[1000];
    static const char *const files[] = {"meta.json", "0001.json", "0002.json"};
    fl_llm_recorder *r = NULL;
    uint64_t seed = 0;
    double seconds;
    struct job j;

    assert_non_null(mkdtemp(dir));
    begin(&j, "Count from one to five.");
    j.ask.on_text = on_text;
    fl_llm_free(j.c);
    if (fl_llm_record(dir, 7, j.o.transport, &r, &j.err))
        fail_msg("%s", j.err.msg);
    j.o.transport = fl_llm_recorder_transport(r);
    assert_int_equal(fl_llm_new(&j.o, &j.c, &j.err), 0);
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err))
        fail_msg("%s", j.err.msg);
    snprintf(said, sizeof(said), "%s", j.answer.text.p);
    fl_llm_free(j.c);
    fl_llm_recorder_free(r);
    j.e.api_key_env = NULL; /* a replay needs no key */
    if (fl_llm_replay(dir, &r, &seed, &j.err))
        fail_msg("%s", j.err.msg);
    j.o.transport = fl_llm_recorder_transport(r);
    assert_int_equal(fl_llm_new(&j.o, &j.c, &j.err), 0);
    seconds = now();
    if (fl_llm_chat(j.c, &j.ask, &j.answer, &j.err))
        fail_msg("%s", j.err.msg);
    seconds = now() - seconds;
    assert_string_equal(said, j.answer.text.p);
    assert_int_equal(seed, 7);
    assert_true(seconds < 2);
    fl_llm_recorder_free(r);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
    end(&j);
}

/* ---- vectors ---- */

static double dot(const float *a, const float *b, unsigned n)
{
    double sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void real_vectors(void **state)
{
    (void)state;
    const fl_str texts[] = {FL_S("GPU has fallen off the bus"),
                            FL_S("Xid 79: the graphics card was lost from PCIe"),
                            FL_S("KeyError: 'learning_rate'"), FL_S("\xff not UTF-8 \x01")};
    struct fl_llm_embed_opts o = {.batch = 3};
    unsigned dimensions = 0;
    float *v = NULL;
    struct job j;

    begin(&j, "");
    j.e.url = address("FL_REAL_EMBED");
    j.e.model = "multilingual-e5-small";
    j.e.api_key_env = NULL;
    o.endpoint = &j.e;
    o.transport = j.o.transport;
    if (fl_llm_embed(&o, texts, 4, &v, &dimensions, &j.err))
        fail_msg("%s", j.err.msg);
    assert_int_equal(dimensions, 384);
    for (unsigned i = 0; i < 4; i++)
        assert_true(fabs(dot(v + i * 384, v + i * 384, 384) - 1) < 1e-4);
    assert_true(dot(v, v + 384, 384) > dot(v, v + 2 * 384, 384)); /* like is nearer than unlike */
    fl_free(v);
    v = NULL;
    o.dimensions = 256;
    assert_int_equal(fl_llm_embed(&o, texts, 4, &v, &dimensions, &j.err), FL_EBACKEND);
    if (!strstr(j.err.msg, "a vector of 384 numbers came where 256 are needed"))
        fail_msg("%s", j.err.msg);
    end(&j);
    begin(&j, ""); /* a chat server gives no vectors */
    o.endpoint = &j.e;
    o.transport = j.o.transport;
    assert_int_equal(fl_llm_embed(&o, texts, 4, &v, &dimensions, &j.err), FL_EBACKEND);
    print_message("%s\n", j.err.msg);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_as_constrained),
        cmocka_unit_test(a_stream),
        cmocka_unit_test(a_wrong_key),
        cmocka_unit_test(stopped_in_mid_answer),
        cmocka_unit_test(the_deadline),
        cmocka_unit_test(a_prompt_that_is_too_long),
        cmocka_unit_test(cut_at_max_tokens),
        cmocka_unit_test(a_verdict),
        cmocka_unit_test(a_probe),
        cmocka_unit_test(record_and_replay),
        cmocka_unit_test(real_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
