/*
 * Memory runs out at each allocation of the client in turn: a prompt loaded and rendered, a
 * streamed answer, a verdict with its repair turn, vectors, a recording and its replay. What comes
 * out is FL_ENOMEM, another error with a sentence, or the whole result; nothing stays behind.
 *
 * libcurl's own memory is not part of this: it does not come from base/alloc.h.
 */
#include "llm_fixture.h"

#include "base/json.h"
#include "llm/record.h"

#include "alloc_fixture.h"

static const struct fl_llm_cause causes[] = {{"fw.nan", "framework", "n"}, {"unknown", "-", "u"}};
static const char *const actions[] = {"none"};
static const struct fl_llm_terms terms = {causes, 2, actions, 1};
static const struct fl_llm_endpoint endpoint = {.url = "http://a/v1", .api_key_env = "FL_TEST_KEY"};
static const struct fl_llm_message hello = {FL_LLM_USER, FL_S("hello")};

static const char stream[] = "data: {\"choices\":[{\"delta\":{\"content\":\"Hal\"}}]}\n\n"
                             "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\n"
                             "data: [DONE]\n\n";
static const char verdict[] =
    "{\"choices\":[{\"message\":{\"content\":\"{\\\"citations\\\":[{\\\"file\\\":\\\"a\\\","
    "\\\"line\\\":1,\\\"quote\\\":\\\"q\\\"}],\\\"cause\\\":\\\"fw.nan\\\",\\\"class\\\":"
    "\\\"framework\\\",\\\"summary\\\":\\\"s\\\",\\\"alternatives\\\":[],\\\"action\\\":"
    "\\\"none\\\",\\\"confidence\\\":0.5}\"},\"finish_reason\":\"stop\"}]}";
static const char prose[] =
    "{\"choices\":[{\"message\":{\"content\":\"I think so.\"},\"finish_reason\":\"stop\"}]}";
static const char vectors[] = "{\"data\":[{\"embedding\":[1,0]},{\"embedding\":[0,1]}]}";

static const struct fx_step steps[] = {
    {FL_HTTP_DONE, 200, "text/event-stream", NULL, stream, 9},
    {FL_HTTP_DONE, 200, NULL, NULL, prose, 0},
    {FL_HTTP_DONE, 200, NULL, NULL, verdict, 0},
    {FL_HTTP_DONE, 200, NULL, NULL, vectors, 0},
};

static int on_text(void *ctx, fl_str text)
{
    *(size_t *)ctx += text.n;
    return 0;
}

static int ask_and_judge(const struct fl_http_transport *t, const struct fl_prompt *repair,
                         fl_arena *arena, fl_err *err)
{
    const fl_str texts[] = {FL_S("a"), FL_S("b")};
    struct fl_llm_opts o = {.endpoints = &endpoint, .nendpoints = 1, .transport = t};
    struct fl_llm_embed_opts eo = {.endpoint = &endpoint, .transport = t};
    struct fl_llm_question q = {.ask = FL_LLM_ASK_INIT, .terms = &terms, .repair = repair};
    struct fl_llm_ask a = FL_LLM_ASK_INIT;
    struct fl_llm_answer answer;
    struct fl_llm_verdict v;
    unsigned dimensions = 0;
    float *vec = NULL;
    size_t seen = 0;
    fl_llm *c = NULL;
    int r = fl_llm_new(&o, &c, err);

    fl_llm_answer_init(&answer);
    fl_llm_verdict_init(&v);
    a.messages = q.ask.messages = &hello;
    a.nmessages = q.ask.nmessages = 1;
    a.on_text = on_text;
    a.ctx = &seen;
    if (!r)
        r = fl_llm_chat(c, &a, &answer, err);
    if (!r && seen != 5)
        fail_msg("the stream lost text and nobody said so");
    if (!r)
        r = fl_llm_judge(c, &q, arena, &v, err);
    if (!r && strcmp(v.verdict.cause, "fw.nan") != 0)
        fail_msg("the verdict is another one");
    if (!r)
        r = fl_llm_embed(&eo, texts, 2, &vec, &dimensions, err);
    if (!r && (dimensions != 2 || vec[3] < 0.99f))
        fail_msg("the vectors are others");
    fl_free(vec);
    fl_llm_answer_dispose(&answer);
    fl_llm_verdict_dispose(&v);
    fl_llm_free(c);
    return r;
}

static void clear(const char *dir)
{
    char path[100];

    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof(path), "%s/%04d.json", dir, i);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/meta.json", dir);
    unlink(path);
}

/* All of it once: recorded, then replayed. */
static int everything(const char *dir, fl_err *err)
{
    static struct fx_script script;
    fl_llm_recorder *rec = NULL;
    struct fl_prompt p, repair;
    fl_buf schema;
    uint64_t seed = 0;
    fl_arena arena;
    int r;

    fl_arena_init(&arena);
    fl_buf_init(&schema, 65536);
    r = fl_prompt_load(FL_SOURCE_DIR "/prompts/diagnose.md", &arena, &p, err);
    if (!r)
        r = fl_prompt_load(FL_SOURCE_DIR "/prompts/repair.md", &arena, &repair, err);
    if (!r)
        r = fl_prompt_schema(&p, &terms, &schema, err);
    if (!r)
        r = fl_llm_record(dir, 7, fx_play(&script, steps, 4), &rec, err);
    if (!r)
        r = ask_and_judge(fl_llm_recorder_transport(rec), &repair, &arena, err);
    fl_llm_recorder_free(rec);
    rec = NULL;
    if (!r)
        r = fl_llm_replay(dir, &rec, &seed, err);
    if (!r)
        r = ask_and_judge(fl_llm_recorder_transport(rec), &repair, &arena, err);
    fl_llm_recorder_free(rec);
    fl_buf_dispose(&schema);
    fl_arena_dispose(&arena);
    return r;
}

static void each_allocation_fails_in_turn(void **state)
{
    (void)state;
    /* In memory where that is possible: a recording is synced to disk, file by file. */
    char shm[] = "/dev/shm/fl-alloc-XXXXXX", tmp[] = "/tmp/fl-alloc-XXXXXX";
    const char *dir = mkdtemp(shm) ? shm : mkdtemp(tmp);
    struct hook h = {0};
    unsigned long all;
    fl_err err = {0};

    assert_non_null(dir);
    setenv("FL_TEST_KEY", "sk-test-0123456789", 1);
    fl_alloc_hook(counted, &h);
    if (everything(dir, &err))
        fail_msg("%s", err.msg);
    clear(dir);
    assert_int_equal(h.live, 0);
    all = h.n;
    for (int for_good = 0; for_good < 2; for_good++)
        for (unsigned long at = 1; at <= all; at++) {
            int r;
            h = (struct hook){.fail_at = at, .for_good = for_good};
            err = (fl_err){0};
            r = everything(dir, &err);
            clear(dir);
            if (h.live || (r && !err.msg[0]))
                fail_msg("allocation %lu%s: %ld left, code %d, '%s'", at,
                         for_good ? " and all after it" : "", h.live, r, err.msg);
        }
    fl_alloc_hook(NULL, NULL);
    rmdir(dir);
    print_message("%lu allocations\n", all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_fails_in_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
