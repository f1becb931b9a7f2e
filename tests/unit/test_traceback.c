/*
 * Tracebacks: tests/data/tracebacks.txt, what is read from each text, line by line.
 *
 * A case is "=== NAME", the lines of the log, "---", and one line a traceback in the order in which
 * they end:
 *
 *   CHAIN.POSITION user|library TYPE | MESSAGE | FILE:LINE in FUNCTION [wrapped] [launcher]
 *
 * "A> " and "B> " before a line name its writer; without one it is A.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/job.h"

#define WRITERS 3

struct reading {
    struct fl_job j;
    struct fl_writer w[WRITERS];
    uint64_t line;
    fl_buf got, want;
};

static void feed(struct reading *r, fl_str line)
{
    struct fl_mark m = {.line = ++r->line, .seq = r->line};
    size_t at = 0;

    if (line.n >= 3 && line.p[0] >= 'A' && line.p[0] < 'A' + WRITERS &&
        fl_str_starts(fl_str_from(line, 1), FL_S("> "))) {
        at = (size_t)(line.p[0] - 'A');
        line = fl_str_from(line, 3);
    }
    r->w[at].tb_done = 0;
    fl_traceback_line(&r->j, &r->w[at], line, &m);
}

static void print_tracebacks(struct reading *r)
{
    for (size_t i = 0; i < r->j.ntracebacks; i++) {
        const struct fl_traceback *t = &r->j.tracebacks[i];
        fl_buf_addf(&r->got, "%u.%u %s %.*s | %.*s | %.*s:%llu in %.*s%s%s\n", t->chain,
                    t->position, t->user ? "user" : "library", FL_FMT(t->type), FL_FMT(t->message),
                    FL_FMT(t->file), (unsigned long long)t->file_line, FL_FMT(t->function),
                    t->wrapped ? " wrapped" : "", t->torchrun ? " launcher" : "");
    }
}

/* Reads one case from the text; true when it was right. */
static bool run_case(fl_str name, fl_str *text)
{
    struct reading r = {.line = 0};
    bool expected = false, same;

    fl_arena_init(&r.j.arena);
    fl_buf_init(&r.got, 1 << 20);
    fl_buf_init(&r.want, 1 << 20);
    while (text->n && !fl_str_starts(*text, FL_S("=== "))) {
        fl_str line = fl_str_cut(text, '\n');
        if (fl_str_eqz(line, "---")) {
            expected = true;
        } else if (!expected) {
            feed(&r, line);
        } else if (line.n) {
            fl_buf_add(&r.want, line);
            fl_buf_addc(&r.want, '\n');
        }
    }
    print_tracebacks(&r);
    same = fl_str_eq(fl_buf_str(&r.got), fl_buf_str(&r.want));
    if (!same)
        print_error("%.*s: wanted\n%.*sgot\n%.*s", FL_FMT(name), FL_FMT(fl_buf_str(&r.want)),
                    FL_FMT(fl_buf_str(&r.got)));
    for (size_t i = 0; i < WRITERS; i++)
        fl_traceback_close(&r.j, &r.w[i]);
    assert_int_equal(r.j.open_tracebacks, 0);
    fl_free(r.j.tracebacks);
    fl_buf_dispose(&r.got);
    fl_buf_dispose(&r.want);
    fl_arena_dispose(&r.j.arena);
    return same;
}

static void each_text_is_read_as_it_should(void **state)
{
    (void)state;
    fl_buf b;
    fl_str text;
    fl_err err = {0};
    unsigned n = 0, wrong = 0;

    fl_buf_init(&b, 1 << 20);
    if (fl_file_read(FL_TEST_DATA "/tracebacks.txt", &b, &err))
        fail_msg("%s", err.msg);
    text = fl_buf_str(&b);
    while (text.n) {
        fl_str line = fl_str_cut(&text, '\n');
        if (!fl_str_starts(line, FL_S("=== ")))
            continue;
        wrong += !run_case(fl_str_from(line, 4), &text);
        n++;
    }
    fl_buf_dispose(&b);
    print_message("%u texts, %u wrong\n", n, wrong);
    assert_true(n >= 20);
    assert_int_equal(wrong, 0);
}

/* A traceback that never ends is given up, and costs no memory meanwhile. */
static void an_endless_traceback_is_given_up(void **state)
{
    (void)state;
    struct reading r = {.line = 0};
    char line[100];

    fl_arena_init(&r.j.arena);
    feed(&r, FL_S("Traceback (most recent call last):"));
    for (int i = 0; i < 5000; i++) {
        snprintf(line, sizeof(line), "  no frame %d", i);
        feed(&r, fl_str_c(line));
    }
    assert_int_equal(r.j.open_tracebacks, 0);
    feed(&r, FL_S("ValueError: too late"));
    assert_int_equal(r.j.ntracebacks, 0);
    assert_true(r.j.arena.total < 4096);
    fl_arena_dispose(&r.j.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_text_is_read_as_it_should),
                                       cmocka_unit_test(an_endless_traceback_is_given_up)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
