/*
 * Memory runs out: each allocation of one whole diagnosis fails in turn, from opening the rules to
 * the JSON of the answer and of its digest.
 *
 * With the small rules of tests/data/principles and PCRE2 every allocation is tried, alone and
 * together with all that follow it; with Vectorscan, which compiles for as long as it takes to run
 * fifty of these jobs, every 13th. With the shipped rules every 97th of a diagnosis, and as many of
 * opening them as time allows. What may come out is FL_ERROR_MEMORY, or the same answer as ever: a
 * place that can do without (JIT, the cache) may do without, but no fact may be lost in silence.
 * Nothing may stay behind: the hook counts what is handed out and given back, and a sanitizer sees
 * what does not pass through it.
 */
#include "../unit/job_fixture.h"

#include "../unit/alloc_fixture.h"

#define FULL_STEP 97
#define FULL_OPEN_TRIES 40

/* A bit of everything: prefixes, metrics, tracebacks, places, waits, a scheduler, two attempts. */
static const char job_log[] =
    "SLURM_JOB_NODELIST=n[12-13] world_size: 4\n"
    "n12:71:90 [0] NCCL INFO comm 0x55 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 - Init "
    "COMPLETE\n"
    "2026-03-01 10:00:01,000 [rank0]: step: 1 loss: 2.31 grad_norm: 0.5 tps: 900\n"
    "2026-03-01 10:00:02,000 [rank0]: step: 2 loss: 2.30 grad_norm: 0.5 tps: 900\n"
    "successfully saved checkpoint at step 2 to /ckpt/step_2\n"
    "[rank1]: RuntimeError: CUDA error: launch failed\n"
    "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"
    "2026-03-01 10:10:02,000 [rank0]: step: 3 loss: nan grad_norm: nan tps: 900\n"
    "[rank1]: Traceback (most recent call last):\n"
    "[rank1]:   File \"/home/u/train.py\", line 7, in f\n"
    "[rank1]: KeyError: 'lr'\n"
    "[rank1]: During handling of the above exception, another exception occurred:\n"
    "[rank1]: Traceback (most recent call last):\n"
    "[rank1]:   File \"/home/u/train.py\", line 9, in g\n"
    "[rank1]: ValueError: bad\n"
    "2026-03-01 10:40:02,000 [rank0]: Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) ran for "
    "1800500 milliseconds before timing out.\n"
    "2026-03-01 10:40:03,000 [rank2]: Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLGATHER, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) ran for "
    "1800500 milliseconds before timing out.\n"
    "n13: NVRM: Xid (PCI:0000:3b:00): 94, pid=4711, name=python3, Contained\n"
    "srun: error: n12: task 3: Exited with exit code 1\n"
    "slurmstepd: error: *** STEP 550.0 ON n12 CANCELLED AT 2026-03-01T10:40:50 DUE TO NODE ***\n"
    "slurmstepd: error: *** STEP 551.0 ON n12 CANCELLED AT 2026-03-01T10:41:00 ***\n";

struct setting {
    struct hook h;
    const char *rules, *cache;
    bool pcre2_only;
    char dir[64], path[100];
    char *answer; /* of the first run that came to its end */
};

/* Not by the hook, which counts. */
static char *both_texts(const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 2;
    char *copy = malloc(n);

    if (!copy)
        fail_msg("out of memory");
    snprintf(copy, n, "%s\n%s", a, b);
    return copy;
}

static size_t first_difference(const char *a, const char *b)
{
    size_t i = 0;

    while (a[i] && a[i] == b[i])
        i++;
    return i > 60 ? i - 60 : 0;
}

/* One diagnosis; 0 or a code. `e` NULL: the engine is opened too. */
static int whole_run(struct setting *s, const fl_engine *e)
{
    struct fl_engine_opts eo = {.rule_dirs = &s->rules,
                                .nrule_dirs = 1,
                                .cache_dir = s->cache,
                                .pcre2_only = s->pcre2_only};
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    const char *path = s->path;
    fl_engine *own = NULL;
    fl_digest_page *page = NULL;
    fl_diagnosis *d = NULL;
    char *json = NULL, *digest = NULL, *answer;
    fl_err err = {0};
    int r = FL_OK;

    o.digest = true;
    o.paths = &path;
    o.npaths = 1;
    o.threads = 1;
    if (!e)
        r = fl_engine_open(&eo, &own, &err);
    if (!r)
        r = fl_diagnose(e ? e : own, &o, &d, &err);
    if (!r) {
        struct fl_report report = *fl_diagnosis_report(d);
        report.elapsed_ms = 0;
        r = fl_report_json(&report, false, &json, &err);
    }
    if (!r)
        r = fl_digest_build(e ? e : own, d, 1500, &page, &err);
    if (!r)
        r = fl_digest_json(page, false, &digest, &err);
    if (r && err.code != r)
        fail_msg("allocation %lu: returned %d, told %d", s->h.fail_at, r, err.code);
    if (r && r != FL_ENOMEM)
        print_error("allocation %lu: %d: %s\n", s->h.fail_at, r, err.msg);
    answer = r ? NULL : both_texts(json, digest);
    if (!r && !s->answer)
        s->answer = both_texts(json, digest);
    if (!r && strcmp(answer, s->answer) != 0) {
        print_error("allocation %lu: the answer is another: %s\n", s->h.fail_at,
                    answer + first_difference(answer, s->answer));
        r = FL_EBUG;
    }
    free(answer);
    fl_text_free(json);
    fl_text_free(digest);
    fl_digest_free(page);
    fl_diagnosis_free(d);
    fl_engine_free(own);
    return r;
}

/* Fails allocation `at`; true when the run got to its end before it. */
static bool one_failure(struct setting *s, const fl_engine *e, unsigned long at, unsigned *wrong)
{
    long before = s->h.live;
    int r;

    s->h.n = 0;
    s->h.fail_at = at;
    r = whole_run(s, e);
    *wrong += r != FL_OK && r != FL_ENOMEM;
    s->h.fail_at = 0;
    /* What an engine compiled at first use stays with it. */
    if (!e && s->h.live != before) {
        print_error("allocation %lu: %ld blocks stay behind\n", at, s->h.live - before);
        (*wrong)++;
    }
    return s->h.n < at;
}

static void setting_open(struct setting *s, const char *rules, bool pcre2_only)
{
    *s = (struct setting){.rules = rules, .pcre2_only = pcre2_only};
    job_dir_make(s->dir);
    job_write(s->dir, "job.log", fl_str_c(job_log));
    snprintf(s->path, sizeof(s->path), "%s", s->dir);
    /* Without the tokenizer's model, which takes longer to read than all the rest. */
    setenv("FAULTLINE_DATA", s->dir, 1);
    fl_alloc_hook(counted, &s->h);
}

static void setting_close(struct setting *s)
{
    fl_alloc_hook(NULL, NULL);
    free(s->answer);
    unsetenv("FAULTLINE_DATA");
    job_dir_remove(s->dir);
}

static void each_in_turn(bool pcre2_only, bool for_good, unsigned long step)
{
    struct setting s;
    unsigned long at = 1;
    unsigned wrong = 0;

    setting_open(&s, FL_TEST_DATA "/principles/rules", pcre2_only);
    assert_int_equal(whole_run(&s, NULL), FL_OK);
    assert_int_equal(s.h.live, 0);
    s.h.for_good = for_good;
    while (!one_failure(&s, NULL, at, &wrong))
        at += step;
    setting_close(&s);
    print_message("allocations up to %lu, %u wrong\n", at - 1, wrong);
    assert_true(at > 500);
    assert_int_equal(wrong, 0);
}

static void some_allocations_fail_with_the_default(void **state)
{
    (void)state;
    each_in_turn(false, false, 13);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    each_in_turn(true, false, 1);
}

static void memory_may_stay_out(void **state)
{
    (void)state;
    each_in_turn(true, true, 1);
}

static void the_shipped_rules_sampled(void **state)
{
    (void)state;
    struct setting s;
    fl_engine *e = NULL;
    struct fl_engine_opts eo = {.nrule_dirs = 1, .cache_dir = FL_TEST_CACHE};
    unsigned long total, at;
    unsigned wrong = 0, tries = 0;

    setting_open(&s, FL_SOURCE_DIR "/rules", false);
    setenv("FAULTLINE_DATA", FL_SOURCE_DIR, 1);
    s.cache = FL_TEST_CACHE;
    assert_int_equal(whole_run(&s, NULL), FL_OK);
    s.h.n = 0;
    assert_int_equal(whole_run(&s, NULL), FL_OK);
    total = s.h.n;
    for (unsigned long i = 0; i < FULL_OPEN_TRIES; i++, tries++)
        one_failure(&s, NULL, 1 + i * total / FULL_OPEN_TRIES, &wrong);
    eo.rule_dirs = &s.rules;
    assert_int_equal(fl_engine_open(&eo, &e, NULL), FL_OK);
    for (at = 1; !one_failure(&s, e, at, &wrong); at += FULL_STEP)
        tries++;
    fl_engine_free(e);
    assert_int_equal(s.h.live, 0);
    setting_close(&s);
    print_message("%lu allocations with opening, %u tries, %u wrong\n", total, tries, wrong);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(some_allocations_fail_with_the_default),
                                       cmocka_unit_test(each_allocation_may_fail),
                                       cmocka_unit_test(memory_may_stay_out),
                                       cmocka_unit_test(the_shipped_rules_sampled)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
