/*
 * The table of shapes: against a plain one without limits, and at its limits.
 *
 * The plain table keeps every rank of every shape in a list. Up to the limits both must say the
 * same; beyond them the table may say "at least", must count every line somewhere, and may not
 * grow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compress/shape.h"
#include "compress/shapes.h"

#include "alloc_fixture.h"

static uint64_t seed = 99;

static uint64_t next_random(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

/* The table takes its slot from the upper half of a hash. */
static uint64_t spread(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ULL | 1;
}

static bool add(struct fl_shapes *t, uint64_t hash, const char *text, uint64_t line, int32_t rank)
{
    struct fl_shape_line l = {.hash = spread(hash),
                              .text = fl_str_c(text),
                              .at = {.seq = line, .line = line, .file = (uint32_t)(line % 3)},
                              .rank = rank,
                              .badness = (uint8_t)fl_badness(fl_str_c(text))};
    return fl_shapes_add(t, &l);
}

#define SHAPES 60
#define RANKS 5000

static void ranks_are_counted_exactly(void **state)
{
    (void)state;
    static uint8_t seen[SHAPES][RANKS];
    uint64_t count[SHAPES] = {0}, first[SHAPES] = {0}, last[SHAPES] = {0}, bytes[SHAPES] = {0};
    uint32_t ranks[SHAPES] = {0};
    struct fl_shapes t;
    unsigned wrong = 0;

    fl_shapes_init(&t);
    for (uint64_t i = 1; i <= 200000; i++) {
        uint64_t s = next_random(SHAPES), width = 1 + s * s;
        int32_t rank = s % 7 == 3    ? -1
                       : i % 11 == 0 ? (int32_t)(RANKS - 1 - s)
                                     : (int32_t)(next_random(width < RANKS ? width : RANKS));
        bool fresh = add(&t, 2 * s, "a line", i, rank);
        assert_int_equal(fresh, count[s] == 0);
        first[s] = count[s] ? first[s] : i;
        last[s] = i;
        count[s]++;
        bytes[s] += 7;
        if (rank >= 0 && !seen[s][rank])
            ranks[s] += (seen[s][rank] = 1);
    }
    for (size_t s = 0; s < SHAPES; s++) {
        const struct fl_shape_row *r = fl_shapes_find(&t, spread(2 * s));
        if (r && r->count == count[s] && r->first.line == first[s] && r->last.line == last[s] &&
            r->bytes == bytes[s] && r->ranks == ranks[s] && !r->ranks_over)
            continue;
        print_error("shape %zu: %llu lines and %u ranks, not %llu and %u\n", s,
                    r ? (unsigned long long)r->count : 0, r ? r->ranks : 0,
                    (unsigned long long)count[s], ranks[s]);
        wrong++;
    }
    assert_int_equal(t.n, SHAPES);
    assert_int_equal(t.lines, 200000);
    assert_int_equal(t.bytes, 7 * 200000);
    assert_int_equal(t.lost_lines, 0);
    assert_int_equal(wrong, 0);
    fl_shapes_dispose(&t);
}

static void check_sum(const struct fl_shapes *t)
{
    uint64_t lines = t->lost_lines, bytes = t->lost_bytes;

    for (size_t i = 0; i < t->n; i++) {
        lines += t->rows[i].count;
        bytes += t->rows[i].bytes;
    }
    assert_int_equal(lines, t->lines);
    assert_int_equal(bytes, t->bytes);
    assert_false(t->failed);
}

/* A new shape on every line: the first keep their rows, the last are remembered, trouble has room
 * of its own. */
static void a_new_shape_each_line(void **state)
{
    (void)state;
    struct fl_shapes t;
    char text[100];
    const uint64_t n = 60000;

    fl_shapes_init(&t);
    for (uint64_t i = 1; i <= n; i++) {
        snprintf(text, sizeof(text), "chatter of sort %llu", (unsigned long long)i);
        add(&t, 2 * i, text, i, -1);
    }
    check_sum(&t);
    assert_int_equal(t.n, FL_SHAPES - FL_SHAPES_BAD);
    assert_int_equal(t.rows[0].first.line, 1);
    assert_int_equal(t.nlatest[0], t.lost_lines);
    assert_int_equal(t.nlatest[1], 0);
    for (uint64_t i = 0; i < FL_LATEST; i++) {
        const struct fl_late_line *l = &t.latest[0][(t.nlatest[0] - FL_LATEST + i) % FL_LATEST];
        assert_int_equal(l->at.line, n - FL_LATEST + 1 + i);
    }
    /* A line that sounds like trouble still finds room, and so does a known one. */
    assert_true(add(&t, 2 * n + 2, "fatal: the disk is gone", n + 1, 3));
    assert_false(add(&t, 2, "chatter of sort 1", n + 2, 3));
    assert_int_equal(fl_shapes_find(&t, spread(2))->count, 2);
    assert_int_equal(fl_shapes_find(&t, spread(2 * n + 2))->badness, 3);
    check_sum(&t);
    fl_shapes_dispose(&t);
}

/* Nothing but trouble, of a new sort each time: its latest are told apart from chatter's. */
static void only_trouble(void **state)
{
    (void)state;
    struct fl_shapes t;
    char text[100];
    const uint64_t n = 40000;

    fl_shapes_init(&t);
    for (uint64_t i = 1; i <= n; i++) {
        snprintf(text, sizeof(text), "fatal error of sort %llu", (unsigned long long)i);
        add(&t, 2 * i, text, i, -1);
    }
    add(&t, 2 * n + 2, "chatter", n + 1, -1);
    check_sum(&t);
    assert_int_equal(t.n, FL_SHAPES);
    assert_int_equal(t.bad, FL_SHAPES);
    assert_int_equal(t.nlatest[1], n - FL_SHAPES);
    assert_int_equal(t.nlatest[0], 1);
    assert_int_equal(t.latest[0][0].at.line, n + 1);
    fl_shapes_dispose(&t);
}

/* Long lines, each of a new shape and of a new, large rank. */
static size_t top_of(uint64_t lines)
{
    static char text[4000];
    struct bytes b = {0};
    struct fl_shapes t;

    memset(text, 'e', sizeof(text) - 1);
    memcpy(text, "error ", 6);
    fl_alloc_hook(counted_bytes, &b);
    fl_shapes_init(&t);
    for (uint64_t i = 0; i < lines; i++)
        add(&t, i * 2, text + (i % 2 ? 0 : 6), i + 1, (int32_t)(i * 7919 % INT32_MAX));
    for (uint64_t i = 0; i < lines; i++) /* known shapes, other ranks */
        add(&t, (i % 4096) * 2, text, lines + i, (int32_t)(i * 104729 % INT32_MAX));
    check_sum(&t);
    fl_shapes_dispose(&t);
    fl_alloc_hook(NULL, NULL);
    assert_int_equal(b.live, 0);
    return b.top;
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    size_t once = top_of(60000), twice = top_of(120000);

    print_message("%zu and %zu bytes\n", once, twice);
    assert_true(twice <= once + (1u << 20));
    assert_true(once < (40u << 20));
}

/* When there is no more room for sets of ranks, what is told is no more than there is. */
static void at_least_so_many_ranks(void **state)
{
    (void)state;
    struct fl_shapes t;
    bool over = false;

    fl_shapes_init(&t);
    for (int32_t s = 1; s < 40; s++)
        for (int32_t k = 0; k < 100; k++)
            add(&t, (uint64_t)s * 2, "x", 1, k * 64000 + s);
    for (size_t i = 0; i < t.n; i++) {
        over |= t.rows[i].ranks_over;
        assert_true(t.rows[i].ranks <= 100 && t.rows[i].ranks >= 1);
        assert_true(t.rows[i].ranks_over || t.rows[i].ranks == 100);
    }
    assert_true(over);
    assert_true(t.bit_bytes <= FL_RANK_BITS);
    fl_shapes_dispose(&t);
}

static void a_long_line_is_kept_in_part(void **state)
{
    (void)state;
    static char text[FL_SHAPE_TEXT + 500];
    struct fl_shape_line l = {.hash = 5, .text = {text, sizeof(text)}, .rank = -1, .owner = 4};
    struct fl_shapes t;

    memset(text, 'y', sizeof(text));
    fl_shapes_init(&t);
    fl_shapes_add(&t, &l);
    l.owner = 1;
    l.text.n = 3;
    fl_shapes_add(&t, &l);
    assert_int_equal(t.rows[0].text.n, FL_SHAPE_TEXT);
    assert_int_equal(t.rows[0].cut, 500);
    assert_int_equal(t.rows[0].owner, 5);
    assert_int_equal(t.bytes, sizeof(text) + 1 + 4);
    fl_shapes_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_are_counted_exactly),
                                       cmocka_unit_test(a_new_shape_each_line),
                                       cmocka_unit_test(only_trouble),
                                       cmocka_unit_test(memory_has_a_limit),
                                       cmocka_unit_test(at_least_so_many_ranks),
                                       cmocka_unit_test(a_long_line_is_kept_in_part)};

    return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
