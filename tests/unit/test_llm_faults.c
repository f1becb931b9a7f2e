/*
 * The real client, libcurl and all, against a server that misbehaves (tests/fakes/llm_server.c).
 * Every case must come to its end in bounded time; the bounds are generous, because what they guard
 * against is waiting for ever.
 */
#include "llm_fixture.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"

static const struct fl_llm_message hello = {FL_LLM_USER, FL_S("hello")};

struct job {
    struct fl_llm_endpoint e;
    char url[200];
    fl_http_client *client;
    struct fl_http_retry retry;
    fl_llm *c;
    struct fl_llm_ask ask;
    struct fl_llm_answer answer;
    volatile sig_atomic_t cancel;
    char seen[2000];
    fl_err err;
    double seconds;
};

static double now(void)
{
    const struct fl_http_world *w = fl_http_world();

    return w->now(w->ctx);
}

static int on_text(void *ctx, fl_str text)
{
    struct job *j = ctx;
    size_t n = strlen(j->seen);

    snprintf(j->seen + n, sizeof(j->seen) - n, "%.*s", FL_FMT(text));
    return 0;
}

static void begin(struct job *j, int port, const char *mode, const char *scheme)
{
    struct fl_llm_opts o = {.endpoints = &j->e, .nendpoints = 1, .cancel = &j->cancel};

    memset(j, 0, sizeof(*j));
    snprintf(j->url, sizeof(j->url), "%s://127.0.0.1:%d/%s/v1", scheme, port, mode);
    j->e.url = j->url;
    j->e.model = "fake-1";
    j->e.timeout = 2;
    if (fl_http_client_new(NULL, &j->client, &j->err))
        fail_msg("%s", j->err.msg);
    j->retry.inner = fl_http_client_transport(j->client);
    j->retry.world = fl_http_world();
    j->retry.tries = 2;
    j->retry.first = 0.1;
    j->retry.most = 5;
    o.transport = fl_http_retry_transport(&j->retry);
    assert_int_equal(fl_llm_new(&o, &j->c, &j->err), 0);
    fl_llm_answer_init(&j->answer);
    j->ask = (struct fl_llm_ask)FL_LLM_ASK_INIT;
    j->ask.messages = &hello;
    j->ask.nmessages = 1;
}

static int ask(struct job *j, bool streamed)
{
    double start = now();
    int r;

    j->ask.on_text = streamed ? on_text : NULL;
    j->ask.ctx = j;
    r = fl_llm_chat(j->c, &j->ask, &j->answer, &j->err);
    j->seconds = now() - start;
    return r;
}

static void end(struct job *j)
{
    fl_llm_answer_dispose(&j->answer);
    fl_llm_free(j->c);
    fl_http_client_free(j->client);
}

static const struct {
    const char *mode, *says, *says_streamed; /* NULL: it answers */
    double most;                             /* seconds */
} rows[] = {
    {"good", NULL, NULL, 5},
    {"hang", "no complete answer within 2 seconds", "no complete answer within 2 seconds", 7},
    {"drip", "no complete answer within 2 seconds, though it had begun",
     "no complete answer within 2 seconds, though it had begun", 7},
    {"reset", "the connection broke in the middle of the answer",
     "the connection broke in the middle of the answer", 7},
    {"reset-once", NULL, NULL, 7},
    {"cut", "the connection broke in the middle of the answer",
     "the connection broke in the middle of the answer", 7},
    {"429",
     "the service is crowded, or the quota is used up (status 429, 2 tries): Rate limit "
     "reached",
     "(status 429, 2 tries)", 7},
    {"429-once", NULL, NULL, 7},
    {"429-after", NULL, NULL, 7},
    {"429-date", NULL, NULL, 7},
    {"429-long", "(status 429)", "(status 429)", 5},
    {"500", "the server failed; see its log (status 500, 2 tries): out of order",
     "(status 500, 2 tries)", 7},
    {"500-once", NULL, NULL, 7},
    {"html", "a web page, text/html and not JSON", "a web page, text/html and not JSON", 5},
    {"half", "not valid JSON, or was cut short", "an event that is not valid JSON", 5},
    {"huge", "the answer is larger than 4194304 bytes", "larger than 1048576 bytes", 20},
    {"redirect",
     "the server points elsewhere (307, to http://127.0.0.1:9/elsewhere), which is not "
     "followed",
     "the server points elsewhere (307", 5},
    {"type", "the answer is text/plain and not JSON", "the stream ended in the middle", 5},
    {"empty", "the answer is empty", "the answer is empty", 5},
    {"context", "the prompt is too long for the model (This model's maximum context length",
     "the prompt is too long", 5},
    {"401", "the server wants a key; name one by api_key_file or api_key_env (status 401)",
     "(status 401)", 5},
    {"403", "(status 403)", "(status 403)", 5},
    {"404", "there is no such address or model", "(status 404)", 5},
    {"error-200", "the server reported an error: the backend is gone", "the backend is gone", 5},
    {"broken-stream", "not valid JSON, or was cut short", "the stream ended in the middle", 5},
    {"stream-error", NULL, "the server reported an error: the model crashed", 5},
};

static int look(const struct fx_server *s, size_t i, bool streamed)
{
    const char *says = streamed ? rows[i].says_streamed : rows[i].says;
    struct job j;
    int r, wrong = 0;

    begin(&j, s->port, rows[i].mode, "http");
    r = ask(&j, streamed);
    if ((r != 0) != (says != NULL) || (says && !strstr(j.err.msg, says)) ||
        (!r && !strstr(j.answer.text.p, "gpu.off_bus")) ||
        (!r && streamed && strcmp(j.seen, j.answer.text.p) != 0)) {
        print_error("%s%s: code %d, '%s', wanted '%s'\n", rows[i].mode,
                    streamed ? ", streamed" : "", r, j.err.msg, says ? says : "an answer");
        wrong = 1;
    }
    if (j.seconds > rows[i].most) {
        print_error("%s%s: %.1f seconds\n", rows[i].mode, streamed ? ", streamed" : "", j.seconds);
        wrong = 1;
    }
    if (!r && (j.answer.tokens_in != 100 || j.answer.tokens_out != 20)) {
        print_error("%s: %lld tokens in, %lld out\n", rows[i].mode, (long long)j.answer.tokens_in,
                    (long long)j.answer.tokens_out);
        wrong = 1;
    }
    end(&j);
    return wrong;
}

static void every_fault_ends_in_a_sentence(void **state)
{
    const struct fx_server *s = *state;
    int wrong = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        wrong += look(s, i, false);
    assert_int_equal(wrong, 0);
}

static void and_so_when_it_is_streamed(void **state)
{
    struct fx_server s = fx_serve(NULL); /* what happens once has happened on the other one */
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(rows[i].mode, "reset-once") != 0) /* half an answer is not begun again */
            wrong += look(&s, i, true);
    fx_stop(&s);
    assert_int_equal(wrong, 0);
}

static void nobody_listens(void **state)
{
    static const char *const args[] = {"--mode", "refuse", NULL};
    struct fx_server s = fx_serve(args);
    struct job j;
    char wanted[300];

    (void)state;
    begin(&j, s.port, "x", "http");
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    snprintf(wanted, sizeof(wanted),
             "%s/chat/completions: the connection was refused; is the "
             "server running, and is the port right?",
             j.url);
    assert_string_equal(j.err.msg, wanted);
    assert_true(j.seconds < 5);
    end(&j);
    fx_stop(&s);
    begin(&j, 1, "x", "http");
    snprintf(j.url, sizeof(j.url), "http://no-such-host.invalid/v1");
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    if (!strstr(j.err.msg, "the host name does not resolve") &&
        !strstr(j.err.msg,
                "no complete answer within 2 seconds")) /* a name server that is silent */
        fail_msg("%s", j.err.msg);
    end(&j);
    begin(&j, 1, "x", "ftp");
    assert_int_equal(ask(&j, false), FL_EUSAGE);
    assert_non_null(strstr(j.err.msg, "only http and https are spoken"));
    end(&j);
}

static void *press(void *ctx)
{
    struct timespec t = {0, 400000000};

    nanosleep(&t, NULL);
    ((struct job *)ctx)->cancel = 1;
    return NULL;
}

static void cancel_and_deadline_act(void **state)
{
    static const char *const modes[] = {"hang", "drip", "500"};
    const struct fx_server *s = *state;

    for (size_t i = 0; i < 3; i++) {
        pthread_t thread;
        struct job j;
        begin(&j, s->port, modes[i], "http");
        j.e.timeout = 60;
        j.retry.first = j.retry.most = i < 2 ? 1 : 60; /* the third is in a pause */
        j.retry.tries = 5;
        pthread_create(&thread, NULL, press, &j);
        assert_int_equal(ask(&j, i == 1), FL_EBACKEND);
        pthread_join(thread, NULL);
        if (!strstr(j.err.msg, "the request was stopped"))
            fail_msg("%s: %s", modes[i], j.err.msg);
        if (j.seconds > 5)
            fail_msg("%s: stopped after %.1f seconds", modes[i], j.seconds);
        end(&j);
    }
    for (size_t i = 0; i < 3; i++) {
        struct job j;
        begin(&j, s->port, modes[i], "http");
        j.e.timeout = 60;
        j.retry.first = 2;
        j.ask.deadline = now() + 0.7;
        assert_int_equal(ask(&j, i == 1), FL_EBACKEND);
        if (i < 2 && !strstr(j.err.msg, "no complete answer within the time that was left"))
            fail_msg("%s: %s", modes[i], j.err.msg);
        if (j.seconds > 5)
            fail_msg("%s: over after %.1f seconds", modes[i], j.seconds);
        end(&j);
    }
}

static void certificates_are_verified(void **state)
{
    char dir[] = "/tmp/fl-tls-XXXXXX", ca[64];
    const char *args[] = {"--tls", dir, NULL};
    struct fx_server s;
    struct job j;

    (void)state;
    assert_non_null(mkdtemp(dir));
    s = fx_serve(args);
    snprintf(ca, sizeof(ca), "%s/cert.pem", dir);
    begin(&j, s.port, "good", "https");
    j.e.timeout = 20;
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    if (!strstr(j.err.msg, "the server's certificate is not trusted") ||
        !strstr(j.err.msg, "it is the certificate of CN = faultline test server, issued by CN = "
                           "faultline test server, valid until ") ||
        !strstr(j.err.msg, "name the CA in ca_file"))
        fail_msg("%s", j.err.msg);
    j.e.ca_file = ca;
    if (ask(&j, false))
        fail_msg("%s", j.err.msg);
    j.e.ca_file = "/nonexistent/ca.pem";
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    if (!strstr(j.err.msg, "the CA file /nonexistent/ca.pem cannot be read"))
        fail_msg("%s", j.err.msg);
    end(&j);
    begin(&j, s.port, "hang", "https");
    j.e.ca_file = ca;
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    if (!strstr(j.err.msg, "no complete answer within 2 seconds"))
        fail_msg("%s", j.err.msg);
    end(&j);
    fx_stop(&s);
    unlink(ca);
    rmdir(dir);
    s = fx_serve(NULL);
    begin(&j, s.port, "good", "https"); /* TLS to a port that speaks none */
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    if (!strstr(j.err.msg, "the server does not speak TLS there") &&
        !strstr(j.err.msg, "no TLS connection"))
        fail_msg("%s", j.err.msg);
    end(&j);
    fx_stop(&s);
}

static void keys_reach_the_server_and_nobody_else(void **state)
{
    char kept[] = "/tmp/fl-kept-XXXXXX", key[] = "/tmp/fl-key-XXXXXX";
    const char *args[] = {"--key", "sk-right-key-1234", "--keep", kept, NULL};
    struct fx_server s;
    fl_buf file;
    struct job j;

    (void)state;
    close(mkstemp(kept));
    close(mkstemp(key));
    s = fx_serve(args);
    begin(&j, s.port, "good", "http");
    j.e.api_key_file = key;
    assert_int_equal(fl_file_write_atomic(key, FL_S("sk-wrong-key-1234\n"), &j.err), 0);
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    assert_non_null(strstr(j.err.msg, "the key was refused; check what api_key_file"));
    assert_null(strstr(j.err.msg, "sk-wrong"));
    assert_int_equal(fl_file_write_atomic(key, FL_S("sk-right-key-1234\n"), &j.err), 0);
    if (ask(&j, false))
        fail_msg("%s", j.err.msg);
    fl_buf_init(&file, 1 << 20);
    assert_int_equal(fl_file_read(kept, &file, &j.err), 0);
    assert_true(fl_str_has(fl_buf_str(&file), FL_S("POST /good/v1/chat/completions\n")));
    assert_true(fl_str_has(fl_buf_str(&file), FL_S("Authorization: Bearer sk-right-key-1234\n")));
    assert_true(fl_str_has(fl_buf_str(&file), FL_S("{\"model\":\"fake-1\",\"messages\":")));
    fl_buf_dispose(&file);
    end(&j);
    fx_stop(&s);
    unlink(kept);
    unlink(key);
}

static void proxies_are_for_others(void **state)
{
    static const char *const args[] = {"--mode", "refuse", NULL};
    const struct fx_server *s = *state;
    struct fx_server dead = fx_serve(args);
    char proxy[60];
    struct job j;

    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", dead.port);
    setenv("http_proxy", proxy, 1); /* loopback is reached without it */
    begin(&j, s->port, "good", "http");
    if (ask(&j, false))
        fail_msg("%s", j.err.msg);
    j.e.proxy = proxy; /* unless it is named */
    assert_int_equal(ask(&j, false), FL_EBACKEND);
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", s->port);
    if (ask(&j, false)) /* the server takes a whole URL as well */
        fail_msg("%s", j.err.msg);
    end(&j);
    unsetenv("http_proxy");
    fx_stop(&dead);
}

static void a_schema_is_given_up_once(void **state)
{
    const struct fx_server *s = *state;
    struct job j;

    begin(&j, s->port, "no-schema", "http");
    j.ask.schema = FL_S("{\"type\":\"object\",\"properties\":{}}");
    if (ask(&j, false))
        fail_msg("%s", j.err.msg);
    assert_int_equal(j.answer.format, FL_LLM_JSON_OBJECT);
    assert_int_equal(j.answer.requests, 2);
    assert_int_equal(ask(&j, false), 0);
    assert_int_equal(j.answer.requests, 1);
    end(&j);
}

static void verdicts_of_all_kinds(void **state)
{
    static const struct {
        const char *mode, *cause, *says;
        unsigned turns;
    } kinds[] = {
        {"good", "gpu.off_bus", NULL, 1},
        {"schema-once", "gpu.off_bus", NULL, 2},
        {"schema", NULL, "cannot be used, not even after a second try", 2},
        {"cause", NULL, "did you mean \"gpu.off_bus\"?", 2},
        {"invented", "node.disk_full", NULL, 1}, /* of the right form: grounding is not done here */
        {"type", NULL, "text/plain and not JSON", 0},
    };
    const struct fx_server *s = *state;
    struct fl_llm_terms terms;
    struct fl_prompt repair;
    fl_arena arena;
    fl_err err = {0};

    fl_arena_init(&arena);
    terms = fx_terms(&arena);
    assert_int_equal(fl_prompt_load(FL_SOURCE_DIR "/prompts/repair.md", &arena, &repair, &err), 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct fl_llm_question q = {.terms = &terms, .repair = &repair};
        struct fl_llm_verdict v;
        struct job j;
        int r;
        begin(&j, s->port, kinds[i].mode, "http");
        fl_llm_verdict_init(&v);
        q.ask = j.ask;
        r = fl_llm_judge(j.c, &q, &arena, &v, &j.err);
        if (v.turns != kinds[i].turns || (r != 0) != (kinds[i].says != NULL) ||
            (r ? !strstr(j.err.msg, kinds[i].says) : strcmp(v.verdict.cause, kinds[i].cause) != 0))
            fail_msg("%s: code %d, %u turns, '%s'", kinds[i].mode, r, v.turns, j.err.msg);
        fl_llm_verdict_dispose(&v);
        end(&j);
    }
    fl_arena_dispose(&arena);
}

static void a_probe_says_what_is_wrong(void **state)
{
    static const struct {
        const char *mode, *model;
        unsigned context;
        const char *says[3]; /* parts of what must be said */
        enum fl_llm_state worst;
    } kinds[] = {
        {"good", "fake-1", 0, {"the model fake-1 is there", "20 out"}, FL_LLM_POOR},
        {"good",
         "fake-2",
         0,
         {"fake-2 is not in the server's list (fake-1, fake-small)"},
         FL_LLM_POOR},
        {"good", "fake-small", 0, {"its context of 2048 tokens is too small"}, FL_LLM_POOR},
        {"401", "m", 0, {"the server wants a key"}, FL_LLM_BROKEN},
        {"404", "m", 0, {"no such address or model"}, FL_LLM_BROKEN},
        {"no-model", "m", 0, {"m is not in the server's list", "status 404"}, FL_LLM_BROKEN},
        {"good", "fake-1", 4096, {"its `context` is 4096 tokens"}, FL_LLM_POOR},
        {"good", "fake-small", 4096, {"its context of 2048 tokens is too small"}, FL_LLM_POOR},
        {"html", "m", 0, {"a web page"}, FL_LLM_BROKEN},
        {"hang", "m", 0, {"within 2 seconds"}, FL_LLM_BROKEN},
    };
    const struct fx_server *s = *state;
    struct fl_prompt probe;
    fl_arena arena;
    fl_err err = {0};

    fl_arena_init(&arena);
    assert_int_equal(fl_prompt_load(FL_SOURCE_DIR "/prompts/probe.md", &arena, &probe, &err), 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const struct fl_llm_finding *f = NULL;
        enum fl_llm_state worst = FL_LLM_GOOD;
        size_t n = 0;
        struct job j;
        begin(&j, s->port, kinds[i].mode, "http");
        j.e.model = kinds[i].model;
        j.e.context = kinds[i].context;
        if (fl_llm_probe(j.c, 0, &probe, 8000, 0, &arena, &f, &n, &j.err))
            fail_msg("%s", j.err.msg);
        for (size_t k = 0; k < n; k++)
            worst = f[k].state > worst ? f[k].state : worst;
        for (size_t w = 0; w < 3 && kinds[i].says[w]; w++) {
            size_t k = 0;
            while (k < n && !strstr(f[k].text, kinds[i].says[w]))
                k++;
            if (k == n)
                fail_msg("%s, %s: nothing says '%s'; the first finding is '%s'", kinds[i].mode,
                         kinds[i].model, kinds[i].says[w], n ? f[0].text : "none");
        }
        if (worst != kinds[i].worst)
            fail_msg("%s, %s: the worst is %d", kinds[i].mode, kinds[i].model, worst);
        end(&j);
    }
    fl_arena_dispose(&arena);
}

static void vectors_from_a_server(void **state)
{
    const struct fx_server *s = *state;
    static const struct {
        const char *mode, *says;
    } kinds[] = {
        {"good", NULL},
        {"500-once", NULL},
        {"vectors", "a vector of 2 numbers came where 4 are needed"},
        {"nan", "not valid JSON"},
        {"hang", "no complete answer within 2 seconds"},
        {"429", "the service is crowded"},
        {"html", "a web page"},
    };
    fl_str texts[70];

    for (size_t i = 0; i < 70; i++)
        texts[i] = FL_S("a \"text\" with ] in it");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct fl_llm_embed_opts o = {0};
        unsigned dimensions = 0;
        float *v = NULL;
        struct job j;
        int r;
        begin(&j, s->port, kinds[i].mode, "http");
        j.retry.first = 0.1;
        o.endpoint = &j.e;
        o.transport = fl_http_retry_transport(&j.retry);
        r = fl_llm_embed(&o, texts, 70, &v, &dimensions, &j.err);
        /* the server counts the texts of a batch: the 34th is number 1 of the second */
        if (kinds[i].says ? !r || !strstr(j.err.msg, kinds[i].says)
                          : r || dimensions != 4 || fabsf(v[33 * 4] - 0.4f) > 1e-6f)
            fail_msg("%s: code %d, %u dimensions, '%s'", kinds[i].mode, r, dimensions, j.err.msg);
        fl_free(v);
        end(&j);
    }
}

static int start(void **state)
{
    static struct fx_server s;

    s = fx_serve(NULL);
    *state = &s;
    return 0;
}

static int stop(void **state)
{
    fx_stop(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_ends_in_a_sentence),
        cmocka_unit_test(and_so_when_it_is_streamed),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(cancel_and_deadline_act),
        cmocka_unit_test(certificates_are_verified),
        cmocka_unit_test(keys_reach_the_server_and_nobody_else),
        cmocka_unit_test(proxies_are_for_others),
        cmocka_unit_test(a_schema_is_given_up_once),
        cmocka_unit_test(verdicts_of_all_kinds),
        cmocka_unit_test(a_probe_says_what_is_wrong),
        cmocka_unit_test(vectors_from_a_server),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
