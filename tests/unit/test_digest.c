/*
 * The choice under a budget, by the counter that is shipped and by a plain one: whatever is
 * offered, the page keeps to its budget, holds all evidence, and each of its lines is one that was
 * offered, under its number, in order, whole or with a mark where it was cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "compress/digest.h"
#include "embed/tokens.h"

#define FL_BASE_INTERNAL /* the truth is kept by libc */
#include "base/alloc.h"

#define LINES 400
#define FILES 5

static uint64_t seed = 7;
static fl_tokenizer *tokenizer;

static uint64_t next_random(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

static size_t by_threes(void *ctx, fl_str text)
{
    (void)ctx;
    return text.n / 3 + 1;
}

static size_t by_pieces(void *ctx, fl_str text)
{
    size_t n = fl_tokenizer_count(ctx, text);

    return n ? n : 1;
}

/* What the test knows of a line it offered. */
static struct truth {
    char *text;
    size_t n;
    uint32_t file;
    uint64_t number;
    bool offered, must;
} truth[LINES];

static const char *const names[FILES] = {"job.log", "logs/rank-0007.log", "a b.log", "#odd.log",
                                         "n\tx\x1b[2J\n.log"};
static const char *const shown_names[FILES] = {"job.log", "logs/rank-0007.log", "a b.log",
                                               "./#odd.log", "n x\\x1b[2J\\x0a.log"};

static void make_truth(size_t longest)
{
    static const char *const piece[] = {
        "step ", "12 ",         "loss=2.31 ", "\xc3\xa4\xe2\x96\x88", "RuntimeError: ", "\x1b[31m",
        "\xff",  "CUDA error ", "x",          "\xf0\x9f\x92\xa5",     "/data/a/b.py ",  "[...]"};

    for (size_t i = 0; i < LINES; i++) {
        size_t n = next_random(8) ? next_random(120) : next_random(longest);
        fl_buf b;
        fl_buf_init(&b, 1 << 20);
        fl_buf_addf(&b, "%zu ", i);
        while (b.n < n)
            fl_buf_addz(&b, piece[next_random(sizeof(piece) / sizeof(*piece))]);
        free(truth[i].text);
        truth[i] = (struct truth){.n = b.n,
                                  .file = (uint32_t)(i * FILES / LINES),
                                  .number = 1 + i * 3,
                                  .text = malloc(b.n + 1)};
        memcpy(truth[i].text, b.p, b.n + 1);
        fl_buf_dispose(&b);
    }
}

static void offer(struct fl_digest *d, size_t i, bool must)
{
    struct truth *t = &truth[i];
    struct fl_digest_offer o = {.name = names[t->file],
                                .file = t->file,
                                .line = t->number,
                                .text = {t->text, t->n},
                                .hash = i + 1};

    if (next_random(3) == 0 && t->n > 30) {
        o.match_at = (uint32_t)next_random(t->n - 20);
        o.match_len = 1 + (uint32_t)next_random(20);
    }
    t->offered = true;
    t->must |= must;
    fl_digest_add(d, &o);
}

static void offer_blocks(struct fl_digest *d, size_t musts)
{
    for (size_t k = 0; k < musts; k++) {
        fl_digest_open(d, next_random(4) ? FL_SECTION_EVIDENCE : FL_SECTION_TIMELINE, 20, true);
        offer(d, next_random(LINES), true);
    }
    for (size_t k = next_random(200); k; k--) {
        fl_digest_open(d, (enum fl_section)next_random(FL_SECTIONS), (double)next_random(100) / 9,
                       false);
        for (size_t n = 1 + next_random(12); n; n--)
            offer(d, next_random(LINES), false);
    }
    for (size_t k = 0; k < d->nlines; k++)
        if (next_random(2)) {
            struct fl_digest_line *l = &d->lines[k];
            l->count = next_random(5000);
            l->last_line = 90000;
            l->last_name = names[next_random(FILES)];
            l->ranks = (uint32_t)next_random(3);
            l->joined = next_random(3);
        }
}

static void say_something(struct fl_digest *d, size_t longest)
{
    char text[900];
    size_t n = next_random(longest);

    memset(text, 'w', sizeof(text));
    for (size_t i = 0; i < n; i++)
        if (next_random(5) == 0)
            text[i] = " \xff\n#"[next_random(4)];
    text[n] = 0;
    fl_digest_say(d, FL_SECTIONS, "%s", text);
    for (uint64_t k = next_random(6); k; k--)
        fl_digest_say(d, (int)next_random(FL_SECTIONS), "note %s", text);
}

/* Is `shown` the line, or the line with marks for what is left out of it? */
static bool stands_for(fl_str shown, const struct truth *t)
{
    const fl_str mark = FL_S(FL_CUT_MARK);
    fl_str left, part;
    bool good = true;
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    fl_text_escape_buf(fl_str_n(t->text, t->n), &b);
    left = fl_buf_str(&b);
    if (!fl_str_eq(shown, left))
        while (good && shown.n) {
            ptrdiff_t at = fl_str_find(shown, mark), in;
            part = at < 0 ? shown : fl_str_sub(shown, 0, (size_t)at);
            shown = at < 0 ? FL_S("") : fl_str_from(shown, (size_t)at + mark.n);
            in = fl_str_find(left, part);
            good = part.n == 0 || in >= 0;
            left = good && part.n ? fl_str_from(left, (size_t)in + part.n) : left;
        }
    fl_buf_dispose(&b);
    return good;
}

static bool is_utf8(fl_str s)
{
    while (s.n) {
        size_t n = fl_text_unit(s);
        if (!n)
            return false;
        s = fl_str_from(s, n);
    }
    return true;
}

static const struct truth *truth_of(fl_str line, fl_str *text)
{
    for (size_t i = 0; i < LINES; i++) {
        char head[100];
        int n = snprintf(head, sizeof(head), "%s:%llu\t", shown_names[truth[i].file],
                         (unsigned long long)truth[i].number);
        if (!fl_str_starts(line, fl_str_n(head, (size_t)n)))
            continue;
        *text = fl_str_from(line, (size_t)n);
        return &truth[i];
    }
    return NULL;
}

/* The page, line by line. */
static void check_page(const struct fl_digest *d, size_t budget, bool all_musts)
{
    fl_str rest = fl_buf_str(&d->page), text = {NULL, 0};
    const struct truth *before = NULL;
    bool shown[LINES] = {false};
    size_t tokens = 0, missing = 0;

    assert_true(is_utf8(rest));
    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        const struct truth *t;
        tokens += d->count(d->count_ctx, line) + 1;
        if (line.n && line.p[0] == '#') {
            before = fl_str_starts(line, FL_S("# -- ")) ? NULL : before;
            continue;
        }
        t = truth_of(line, &text);
        if (!t || !t->offered)
            fail_msg("nobody offered: %.*s", FL_FMT(line));
        if (shown[t - truth])
            fail_msg("twice: %.*s", FL_FMT(line));
        if (!stands_for(text, t))
            fail_msg("not the line: %.*s\n%s", FL_FMT(line), t->text);
        if (before && before >= t)
            fail_msg("out of order: %.*s", FL_FMT(line));
        shown[t - truth] = true;
        before = t;
    }
    for (size_t i = 0; i < LINES; i++)
        missing += truth[i].must && !shown[i];
    assert_int_equal(tokens, d->tokens);
    if (tokens > budget)
        fail_msg("%zu tokens for a budget of %zu", tokens, budget);
    assert_int_equal(missing, d->missing);
    if (all_musts && missing)
        fail_msg("%zu lines of evidence are missing at %zu tokens", missing, budget);
}

static void one_page(size_t budget, size_t musts, size_t longest, size_t words, bool pieces)
{
    struct fl_digest d;
    fl_err err = {0};

    make_truth(longest);
    fl_digest_init(&d, budget, pieces ? by_pieces : by_threes, pieces ? tokenizer : NULL);
    say_something(&d, words);
    offer_blocks(&d, musts);
    assert_int_equal(fl_digest_finish(&d, &err), 0);
    check_page(&d, budget, musts <= 8);
    fl_digest_dispose(&d);
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    static const size_t budgets[] = {500, 501, 750, 1500, 4000, 20000};

    for (int round = 0; round < 240; round++)
        one_page(budgets[round % 6], next_random(9), 3000, 60, false);
}

static void by_the_real_counter_too(void **state)
{
    (void)state;
    static const size_t budgets[] = {500, 900, 1500, 4000};

    for (int round = 0; round < 24; round++)
        one_page(budgets[round % 4], next_random(7), 1500, 60, true);
}

/* More evidence than there can be room for, and words of the page's own as long as can be. */
static void nor_is_it_broken_by_too_much(void **state)
{
    (void)state;

    for (int round = 0; round < 60; round++)
        one_page(500, 40, 6000, 890, false);
    for (int round = 0; round < 60; round++)
        one_page(500, 4, 6000, 890, false);
}

/* The longest give way first, and what matched stays. */
static void long_evidence_is_cut_around_its_match(void **state)
{
    (void)state;
    static char text[4000];
    struct fl_digest d;
    struct fl_digest_offer o = {.name = "a.log", .line = 1, .text = {text, sizeof(text)}};
    fl_err err = {0};

    memset(text, '-', sizeof(text));
    text[10] = '\x01'; /* becomes four bytes */
    memcpy(text + 3000, "THE MATCH", 9);
    o.match_at = 3000;
    o.match_len = 9;
    fl_digest_init(&d, 500, by_threes, NULL);
    fl_digest_open(&d, FL_SECTION_EVIDENCE, 1, true);
    fl_digest_add(&d, &o);
    fl_digest_open(&d, FL_SECTION_EVIDENCE, 1, true);
    o = (struct fl_digest_offer){.name = "a.log", .line = 2, .text = FL_S("a short line")};
    fl_digest_add(&d, &o);
    assert_int_equal(fl_digest_finish(&d, &err), 0);
    assert_int_equal(d.cut, 1);
    assert_int_equal(d.missing, 0);
    assert_non_null(strstr(d.page.p, "THE MATCH"));
    assert_non_null(strstr(d.page.p, "a.log:2\ta short line\n"));
    assert_non_null(strstr(d.page.p, "\t" FL_CUT_MARK));
    assert_non_null(strstr(d.page.p, FL_CUT_MARK "\n"));
    fl_digest_dispose(&d);
}

/* Greedy by value: what is worth more a token goes first, and a line is paid for once. */
static void the_dearer_is_left_out(void **state)
{
    (void)state;
    struct fl_digest d;
    char text[300];
    fl_err err = {0};

    memset(text, 'v', sizeof(text));
    fl_digest_init(&d, 500, by_threes, NULL);
    for (uint64_t i = 1; i <= 10; i++) {
        struct fl_digest_offer o = {
            .name = "a.log", .line = i, .text = {text, sizeof(text)}, .hash = i};
        fl_digest_open(&d, FL_SECTION_REST, i == 7 ? 50 : 1, false);
        fl_digest_add(&d, &o);
        fl_digest_open(&d, FL_SECTION_EVENTS, i == 7 ? 50 : 0.5, false);
        fl_digest_add(&d, &o);
    }
    assert_int_equal(fl_digest_finish(&d, &err), 0);
    assert_non_null(strstr(d.page.p, "a.log:7\t"));
    assert_non_null(strstr(d.page.p, "a.log:1\t"));
    assert_null(strstr(d.page.p, "a.log:10\t"));
    assert_true(d.tokens > 380); /* one more of 104 would not fit */
    fl_digest_dispose(&d);
}

/* A line that was worth showing alone stands with its block when that is shown too. */
static void a_block_is_in_one_place(void **state)
{
    (void)state;
    struct fl_digest d;
    fl_err err = {0};

    fl_digest_init(&d, 500, by_threes, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        struct fl_digest_offer o = {.name = "a.log", .line = i, .text = FL_S("of a traceback")};
        fl_digest_open(&d, FL_SECTION_REST, i == 2 ? 90 : 0.1, false);
        fl_digest_add(&d, &o);
    }
    fl_digest_open(&d, FL_SECTION_TRACEBACKS, 5, false);
    for (uint64_t i = 1; i <= 3; i++) {
        struct fl_digest_offer o = {.name = "a.log", .line = i, .text = FL_S("of a traceback")};
        fl_digest_add(&d, &o);
    }
    assert_int_equal(fl_digest_finish(&d, &err), 0);
    assert_string_equal(d.page.p, "# -- tracebacks\na.log:1\tof a traceback\n"
                                  "a.log:2\tof a traceback\na.log:3\tof a traceback\n");
    assert_int_equal(d.nprinted, 3);
    fl_digest_dispose(&d);
}

static int open_tokens(void **state)
{
    fl_err err = {0};

    (void)state;
    if (fl_tokenizer_open(FL_SOURCE_DIR "/embed/model/tokens.model", &tokenizer, &err)) {
        print_error("%s\n", err.msg);
        return -1;
    }
    return 0;
}

static int close_tokens(void **state)
{
    (void)state;
    fl_tokenizer_free(tokenizer);
    for (size_t i = 0; i < LINES; i++)
        free(truth[i].text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_budget_is_kept),
                                       cmocka_unit_test(by_the_real_counter_too),
                                       cmocka_unit_test(nor_is_it_broken_by_too_much),
                                       cmocka_unit_test(long_evidence_is_cut_around_its_match),
                                       cmocka_unit_test(the_dearer_is_left_out),
                                       cmocka_unit_test(a_block_is_in_one_place)};

    return cmocka_run_group_tests_name("digest", tests, open_tokens, close_tokens);
}
