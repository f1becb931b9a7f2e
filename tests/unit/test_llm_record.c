/*
 * Recordings: what is kept, that a replay gives the same without a network, what makes it stale.
 */
#include "llm_fixture.h"

#include <dirent.h>

#include "base/file.h"
#include "llm/base64.h"
#include "llm/record.h"

static const struct fl_llm_message hello = {FL_LLM_USER, FL_S("hello")};
static const struct fl_llm_endpoint endpoint = {
    .url = "http://user:pw@a/v1?sig=hidden", .model = "m", .api_key_env = "FL_TEST_KEY"};

static const char whole[] = "{\"model\":\"m1\",\"choices\":[{\"message\":{\"content\":\"fine\"},"
                            "\"finish_reason\":\"stop\"}]}";
static const char stream[] = "data: {\"choices\":[{\"delta\":{\"content\":\"Hal\"}}]}\n\n"
                             "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\r\n\r\n"
                             "data: [DONE]\n\n";

struct job {
    char dir[40], seen[100];
    struct fx_script script;
    struct fl_llm_answer answer;
    struct fl_prompt prompt;
    fl_llm_recorder *recorder;
    fl_llm *c;
    fl_err err;
};

static int on_text(void *ctx, fl_str text)
{
    struct job *j = ctx;

    snprintf(j->seen + strlen(j->seen), sizeof(j->seen) - strlen(j->seen), "%.*s", FL_FMT(text));
    return 0;
}

static int ask(struct job *j, bool streamed, const char *hash)
{
    struct fl_llm_opts o = {.endpoints = &endpoint, .nendpoints = 1};
    struct fl_llm_ask a = FL_LLM_ASK_INIT;
    int r;

    j->seen[0] = 0;
    o.transport = fl_llm_recorder_transport(j->recorder);
    assert_int_equal(fl_llm_new(&o, &j->c, &j->err), 0);
    j->prompt = (struct fl_prompt){.id = "diagnose", .version = 3};
    snprintf(j->prompt.hash, sizeof(j->prompt.hash), "%s", hash);
    a.messages = &hello;
    a.nmessages = 1;
    a.prompt = &j->prompt;
    a.on_text = streamed ? on_text : NULL;
    a.ctx = j;
    r = fl_llm_chat(j->c, &a, &j->answer, &j->err);
    fl_llm_free(j->c);
    return r;
}

static const struct fx_step steps[] = {
    {FL_HTTP_DONE, 200, NULL, NULL, whole, 0},
    {FL_HTTP_DONE, 200, "text/event-stream", NULL, stream, 5},
    {FL_HTTP_DONE, 429, NULL, "99999", "{\"error\":\"busy\"}", 0},
    {FL_HTTP_RESET, 0, NULL, NULL, "", 0},
    {FL_HTTP_DONE, 500, "text/plain", NULL, "\xff\x01 no text", 0},
};
static const struct {
    bool streamed;
    int code;
    const char *text, *says;
} wanted[] = {
    {false, 0, "fine", ""},
    {true, 0, "Hallo", ""},
    {false, FL_EBACKEND, "", "the service is crowded, or the quota is used up (status 429): busy"},
    {false, FL_EBACKEND, "", "http://s/v1: step 4 failed"},
    {false, FL_EBACKEND, "", "the server failed; see its log (status 500)"},
};
#define N (sizeof(steps) / sizeof(*steps))

static void ask_all(struct job *j)
{
    for (size_t i = 0; i < N; i++) {
        int r = ask(j, wanted[i].streamed, "abc");
        if (r != wanted[i].code || (r && !strstr(j->err.msg, wanted[i].says)) ||
            (!r && strcmp(j->answer.text.p, wanted[i].text) != 0) ||
            (wanted[i].streamed && strcmp(j->seen, wanted[i].text) != 0))
            fail_msg("call %zu: code %d, text '%s', '%s'", i + 1, r,
                     j->answer.text.p ? j->answer.text.p : "", j->err.msg);
    }
    assert_string_equal(j->answer.prompt, "diagnose version 3, hash abc");
}

static void begin(struct job *j)
{
    memset(j, 0, sizeof(*j));
    snprintf(j->dir, sizeof(j->dir), "/tmp/fl-record-XXXXXX");
    assert_non_null(mkdtemp(j->dir));
    setenv("FL_TEST_KEY", "sk-test-0123456789", 1);
    fl_llm_answer_init(&j->answer);
    if (fl_llm_record(j->dir, 0x123456789abcdef0, fx_play(&j->script, steps, N), &j->recorder,
                      &j->err))
        fail_msg("%s", j->err.msg);
    ask_all(j);
    fl_llm_recorder_free(j->recorder);
    j->recorder = NULL;
}

static void replay(struct job *j)
{
    uint64_t seed = 0;

    if (fl_llm_replay(j->dir, &j->recorder, &seed, &j->err))
        fail_msg("%s", j->err.msg);
    assert_true(seed == 0x123456789abcdef0);
}

/* Runs `look` on each file of the recording, then removes it. */
static void end(struct job *j, void (*look)(const char *path, fl_str text))
{
    DIR *d = opendir(j->dir);
    struct dirent *e;
    char path[400];
    unsigned n = 0;

    while ((e = readdir(d)) != NULL) {
        fl_buf file;
        fl_err err = {0};
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", j->dir, e->d_name);
        fl_buf_init(&file, 1 << 20);
        assert_int_equal(fl_file_read(path, &file, &err), 0);
        if (look)
            look(path, fl_buf_str(&file));
        fl_buf_dispose(&file);
        unlink(path);
        n++;
    }
    closedir(d);
    rmdir(j->dir);
    assert_int_equal(n, N + 1);
    fl_llm_recorder_free(j->recorder);
    fl_llm_answer_dispose(&j->answer);
}

static void no_secrets(const char *path, fl_str text)
{
    static const char *const secrets[] = {"sk-test", "0123456789\"", "Bearer",
                                          "pw@",     "hidden",       "Authorization"};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++)
        if (fl_str_has(text, fl_str_c(secrets[i])))
            fail_msg("%s holds '%s'", path, secrets[i]);
}

static void a_replay_gives_the_same(void **state)
{
    (void)state;
    struct job j;

    begin(&j);
    replay(&j);
    assert_int_equal(fl_llm_recorder_left(j.recorder), N);
    ask_all(&j);
    assert_int_equal(fl_llm_recorder_left(j.recorder), 0);
    assert_int_equal(ask(&j, false, "abc"), FL_EINPUT);
    assert_non_null(strstr(j.err.msg, "holds 5 answers, and one more is asked for; record again"));
    end(&j, no_secrets);
}

static void what_changed_is_told(void **state)
{
    (void)state;
    struct job j;

    begin(&j);
    replay(&j);
    assert_int_equal(ask(&j, false, "def"), FL_EINPUT);
    assert_non_null(strstr(j.err.msg,
                           "0001.json is stale: it was recorded with the prompt diagnose "
                           "version 3, hash abc, which is now diagnose version 3, hash "
                           "def; record again with --record"));
    assert_int_equal(ask(&j, true, "abc"), FL_EINPUT); /* a stream where none was */
    assert_non_null(strstr(j.err.msg, "0001.json is stale: the request differs from byte 93 on"));
    assert_int_equal(fl_llm_recorder_left(j.recorder), N); /* and it is not used up */
    assert_int_equal(ask(&j, false, "abc"), 0);
    end(&j, NULL);
}

static void folders_are_looked_at(void **state)
{
    (void)state;
    fl_llm_recorder *other = NULL;
    uint64_t seed = 0;
    char path[400];
    struct job j;

    begin(&j);
    assert_int_equal(fl_llm_record(j.dir, 1, &j.script.t, &other, &j.err), FL_EUSAGE);
    assert_non_null(strstr(j.err.msg, "holds a recording already; name another folder"));
    assert_int_equal(fl_llm_replay("/nonexistent", &other, &seed, &j.err), FL_EINPUT);
    replay(&j);
    snprintf(path, sizeof(path), "%s/0001.json", j.dir);
    assert_int_equal(fl_file_write_atomic(path, FL_S("{\"schema\": \"x\"}"), &j.err), 0);
    assert_int_equal(ask(&j, false, "abc"), FL_EINPUT);
    assert_non_null(strstr(j.err.msg, "0001.json: not a recording of this version"));
    assert_int_equal(fl_file_write_atomic(path, FL_S("{\"sche"), &j.err), 0);
    assert_int_equal(ask(&j, false, "abc"), FL_EINPUT);
    assert_non_null(strstr(j.err.msg, "0001.json:1: not valid JSON"));
    end(&j, NULL);
}

static void base64_round_trips(void **state)
{
    (void)state;
    static const char *const wrong[] = {"A",    "AB",       "ABC",  "A===", "AB=C",
                                        "====", "AB==AAAA", "A*BC", "AB C"};
    unsigned char bytes[40];
    fl_buf text, back;

    fl_buf_init(&text, 1000);
    fl_buf_init(&back, 1000);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 37 + n * 101 + (i == n / 2 ? 255 : 0));
        fl_buf_clear(&text);
        fl_buf_clear(&back);
        fl_base64_put(fl_str_n((char *)bytes, n), &text);
        assert_int_equal(text.n, (n + 2) / 3 * 4);
        assert_true(fl_base64_get(fl_buf_str(&text), &back));
        assert_int_equal(back.n, n);
        if (n)
            assert_memory_equal(back.p, bytes, n);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        fl_buf_clear(&back);
        if (fl_base64_get(fl_str_c(wrong[i]), &back))
            fail_msg("'%s' was taken", wrong[i]);
    }
    fl_buf_clear(&text);
    fl_base64_put(FL_S("light work."), &text);
    assert_string_equal(text.p, "bGlnaHQgd29yay4=");
    fl_buf_dispose(&text);
    fl_buf_dispose(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_gives_the_same),
        cmocka_unit_test(what_changed_is_told),
        cmocka_unit_test(folders_are_looked_at),
        cmocka_unit_test(base64_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
