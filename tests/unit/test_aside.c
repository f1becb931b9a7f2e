/*
 * What digests need is opened beside the rest: the same pages, whoever opened it and whoever asks.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "faultline.h"

#define THREADS 4

static const char *const log_path[] = {FL_SOURCE_DIR "/samples"};

struct asker {
    const fl_engine *engine;
    char *page; /* NULL: none was made */
};

static void *ask(void *ctx)
{
    struct asker *a = ctx;
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    fl_digest_page *page = NULL;

    o.paths = log_path;
    o.npaths = 1;
    o.digest = true;
    if (!fl_diagnose(a->engine, &o, &d, NULL) && !fl_digest_build(a->engine, d, 0, &page, NULL)) {
        const struct fl_digest_account *account = fl_digest_account(page);
        size_t cap = strlen(fl_digest_text(page)) + 100;
        a->page = malloc(cap);
        if (a->page)
            snprintf(a->page, cap, "%s %zu %llu\n%s", account->tokenizer, account->tokens,
                     (unsigned long long)account->dropped, fl_digest_text(page));
    }
    fl_digest_free(page);
    fl_diagnosis_free(d);
    return NULL;
}

static fl_engine *open_engine(bool digests)
{
    struct fl_engine_opts o = {.cache_dir = FL_TEST_CACHE, .digests = digests};
    fl_engine *e = NULL;
    fl_err err;

    if (fl_engine_open(&o, &e, &err))
        fail_msg("%s", err.msg);
    return e;
}

static void pages_are_the_same(void **state)
{
    char *want = NULL;

    (void)state;
    for (int digests = 0; digests < 2; digests++) {
        fl_engine *e = open_engine(digests);
        struct asker a[THREADS];
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            a[i] = (struct asker){e, NULL};
            assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            if (!a[i].page)
                fail_msg("thread %d has no page", i);
            if (!want)
                want = strdup(a[i].page);
            if (strcmp(want, a[i].page) != 0)
                fail_msg("announced %d, thread %d:\n%s\ninstead of\n%s", digests, i, a[i].page,
                         want);
            free(a[i].page);
        }
        fl_engine_free(e);
    }
    if (strncmp(want, "sentencepiece", 13) != 0)
        fail_msg("the tokenizer was not used: %.40s", want);
    free(want);
}

/* An engine is left while the threads are still at work. */
static void nobody_asks(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        fl_engine_free(open_engine(true));
}

static void a_failed_opening_waits(void **state)
{
    const char *dir = FL_SOURCE_DIR "/no/such/rules";
    struct fl_engine_opts o = {.rule_dirs = &dir, .nrule_dirs = 1, .digests = true};
    fl_engine *e = NULL;
    fl_err err;

    (void)state;
    assert_int_equal(fl_engine_open(&o, &e, &err), FL_ERROR_INPUT);
    assert_null(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_are_the_same),
                                       cmocka_unit_test(nobody_asks),
                                       cmocka_unit_test(a_failed_opening_waits)};

    return cmocka_run_group_tests_name("aside", tests, NULL, NULL);
}
