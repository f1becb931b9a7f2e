/*
 * Memory runs out: each allocation of opening the tokenizer and the table and of embedding a text
 * fails in turn, alone and with all that follow. It must come out as FL_ENOMEM, with nothing left
 * behind. What SentencePiece allocates does not pass here: it is C++'s own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "embed/embed.h"

#include "alloc_fixture.h"

#define MODEL(name) FL_SOURCE_DIR "/embed/model/" name

static int all_of_it(fl_err *err)
{
    fl_str text = FL_S("CUDA error: an illegal memory access was encountered");
    fl_tokenizer *t = NULL;
    struct fl_embedder e = {0};
    float v[1024];
    int rc = fl_tokenizer_open(MODEL("tokens.model"), &t, err);
    if (!rc)
        rc = fl_static_open(MODEL("table.bin"), t, &e, err);
    if (!rc)
        rc = e.embed(e.ctx, &text, 1, v, err);
    fl_embedder_dispose(&e);
    fl_tokenizer_free(t);
    return rc;
}

static void each_allocation_may_fail(void **state)
{
    struct hook *h = *state;
    unsigned long total;
    int wrong = 0;
    fl_err err;
    h->n = h->fail_at = 0;
    assert_int_equal(all_of_it(&err), 0);
    total = h->n;
    assert_true(total >= 6);
    for (unsigned long i = 1; i <= 2 * total; i++) {
        int rc;
        *h = (struct hook){.fail_at = (i + 1) / 2, .for_good = i % 2, .live = h->live};
        rc = all_of_it(&err);
        if (rc != FL_ENOMEM || h->live) {
            print_error("allocation %lu%s: code %d, %ld left behind\n", (i + 1) / 2,
                        i % 2 ? " and all that follow" : "", rc, h->live);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    static struct hook h;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(each_allocation_may_fail, &h)};
    fl_alloc_hook(counted, &h);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
