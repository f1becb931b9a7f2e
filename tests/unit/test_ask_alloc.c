/*
 * Memory runs out while a model is asked: an answer is recorded once, and replayed with one
 * allocation after the other failing, alone and with all that follow. What comes out is the model's
 * decision, or an error and the rules' answer as it was; never something between. Nothing stays
 * behind. The same for the look at the endpoints.
 */
#include "job_fixture.h"
#include "llm_fixture.h"

#include "alloc_fixture.h"

#define TRIES 150

static const char job[] = "FATAL accelmon: accelerator 5 failed its self test, code 0x1f\n"
                          "srun: error: n12: task 3: Exited with exit code 1\n";
static const char said[] =
    "{\"citations\": [{\"file\": \"job.log\", \"line\": 1, \"quote\": \"accelerator 5 failed its "
    "self test\"}], \"cause\": \"gpu.hardware\", \"class\": \"infrastructure\", \"summary\": \"A "
    "GPU is broken.\", \"alternatives\": [], \"action\": \"restart\", \"confidence\": 0.9}";

struct lab {
    char dir[64], log[100], recording[100], config_path[100];
    struct fx_server server;
    struct fl_config *config;
    fl_engine *engine;
};

static void open_lab(struct lab *l)
{
    char answer[100], text[200];
    const char *args[] = {"--answer", answer, NULL};
    fl_err err = {0};

    job_dir_make(l->dir);
    job_write(l->dir, "job.log", fl_str_c(job));
    job_write(l->dir, "answer", fl_str_c(said));
    snprintf(answer, sizeof(answer), "%s/answer", l->dir);
    snprintf(l->log, sizeof(l->log), "%s/job.log", l->dir);
    snprintf(l->recording, sizeof(l->recording), "%s/recording", l->dir);
    snprintf(l->config_path, sizeof(l->config_path), "%s/config.yaml", l->dir);
    l->server = fx_serve(args);
    snprintf(text, sizeof(text), "llm: {endpoints: [{url: 'http://127.0.0.1:%d/v1', model: m}]}\n",
             l->server.port);
    job_write(l->dir, "config.yaml", fl_str_c(text));
    if (fl_config_load(l->config_path, &l->config, &err))
        fail_msg("%s", err.msg);
    l->engine = job_engine(NULL, false);
}

static fl_diagnosis *diagnosed(const struct lab *l)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    const char *path = l->log;
    fl_diagnosis *d = NULL;
    fl_err err = {0};

    o.paths = &path;
    o.npaths = 1;
    o.threads = 1;
    o.digest = true;
    if (fl_diagnose(l->engine, &o, &d, &err))
        fail_msg("%s", err.msg);
    return d;
}

static void check(const fl_diagnosis *d, int r, const struct hook *h)
{
    const struct fl_report *p = fl_diagnosis_report(d);
    bool decided = strcmp(p->cause.id, "gpu.hardware") == 0 &&
                   strcmp(p->cause.decided_by, "llm") == 0 && p->llm && p->llm->decided &&
                   p->evidence[0].at.line == 1 && strcmp(p->action.id, "investigate") != 0;
    bool as_it_was = strcmp(p->cause.id, "unknown") == 0 && strcmp(p->outcome, "unknown") == 0 &&
                     strcmp(p->cause.decided_by, "none") == 0 &&
                     strcmp(p->action.id, "investigate") == 0 && !(p->llm && p->llm->decided);

    if (r == 0 ? !decided && !(as_it_was && p->llm && p->llm->error) : !as_it_was)
        fail_msg("allocation %lu%s: returned %d; cause %s by %s, action %s, error %s", h->fail_at,
                 h->for_good ? " and after" : "", r, p->cause.id, p->cause.decided_by, p->action.id,
                 p->llm && p->llm->error ? p->llm->error : "none");
}

/* How many allocations asking took. */
static unsigned long replay(const struct lab *l, unsigned long fail_at, bool for_good)
{
    struct hook h = {0};
    struct fl_ask_opts o = {.config = l->config, .replay = l->recording};
    fl_diagnosis *d;
    fl_err err = {0};
    unsigned long n;
    int r;

    fl_alloc_hook(counted, &h);
    d = diagnosed(l);
    n = h.n;
    h.fail_at = fail_at ? n + fail_at : 0;
    h.for_good = for_good;
    r = fl_diagnosis_ask(l->engine, d, &o, &err);
    h.fail_at = 0;
    check(d, r, &h);
    if (r && !err.msg[0])
        fail_msg("allocation %lu: no message", fail_at);
    n = h.n - n;
    fl_diagnosis_free(d);
    fl_alloc_hook(NULL, NULL);
    if (h.live)
        fail_msg("allocation %lu: %ld pieces stay behind", fail_at, h.live);
    return n;
}

static void test_replay(void **state)
{
    struct lab l = {.dir = ""};
    struct fl_ask_opts o;
    fl_diagnosis *d;
    fl_err err = {0};
    unsigned long all;

    (void)state;
    open_lab(&l);
    d = diagnosed(&l);
    o = (struct fl_ask_opts){.config = l.config, .record = l.recording};
    if (fl_diagnosis_ask(l.engine, d, &o, &err))
        fail_msg("%s", err.msg);
    check(d, 0, &(struct hook){.n = 0});
    if (!fl_diagnosis_report(d)->llm->decided)
        fail_msg("the model does not decide: %s", fl_diagnosis_report(d)->llm->error);
    fl_diagnosis_free(d);
    fx_stop(&l.server);
    replay(&l, 0, false); /* the tokenizer is opened by then */
    all = replay(&l, 0, false);
    for (int good = 0; good < 2; good++)
        for (unsigned long i = 1; i <= all; i += i < 40 ? 1 : all / TRIES + 1)
            replay(&l, i, good);
    print_message("%lu allocations\n", all);
    fl_config_free(l.config);
    fl_engine_free(l.engine);
    job_dir_remove(l.dir);
}

static void told(void *ctx, const struct fl_checkup *c)
{
    assert_string_equal(c->name, "endpoint");
    assert_true(c->text[0] && c->health != FL_HEALTH_BROKEN);
    ++*(unsigned *)ctx;
}

/* How many allocations looking at the endpoints took. */
static unsigned long look(const struct lab *l, unsigned long fail_at, bool for_good)
{
    struct hook h = {.fail_at = fail_at, .for_good = for_good};
    unsigned rows = 0;
    struct fl_doctor_ask o = {.config = l->config, .tell = told, .ctx = &rows};
    fl_err err = {0};
    int r;

    fl_alloc_hook(counted, &h);
    r = fl_doctor_endpoints(&o, &err);
    fl_alloc_hook(NULL, NULL);
    if (r < 0 ? !err.msg[0] : !rows || r > FL_HEALTH_WORSE)
        fail_msg("allocation %lu%s: returned %d, %u rows: %s", fail_at,
                 for_good ? " and after" : "", r, rows, err.msg);
    if (h.live)
        fail_msg("allocation %lu: %ld pieces stay behind", fail_at, h.live);
    return h.n;
}

static void test_doctor(void **state)
{
    struct lab l = {.dir = ""};
    unsigned long all;

    (void)state;
    open_lab(&l);
    all = look(&l, 0, false);
    for (int good = 0; good < 2; good++)
        for (unsigned long i = 1; i <= all; i += i < 40 ? 1 : all / TRIES + 1)
            look(&l, i, good);
    print_message("%lu allocations\n", all);
    fx_stop(&l.server);
    fl_config_free(l.config);
    fl_engine_free(l.engine);
    job_dir_remove(l.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay),
                                       cmocka_unit_test(test_doctor)};

    setenv("FAULTLINE_DATA", FL_SOURCE_DIR, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
