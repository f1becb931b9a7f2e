/*
 * embed/index, writing: the same vectors give the same file; sources that do not keep their word, a
 * build that is stopped and memory that runs out leave what was there; updates.
 */
#include "index_fixture.h"

#include "alloc_fixture.h"

static void same_vectors_same_file(void **state)
{
    struct world *w = *state;
    char path[160], *a, *b;
    size_t n, m;

    snprintf(path, sizeof(path), "%s/two", w->dir);
    build(&w->v, &w->head, path);
    a = bytes_of(w->path, &n);
    b = bytes_of(path, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            fail_msg("byte %zu of %zu differs", i, n);
    free(a);
    free(b);
    unlink(path);
}

struct liar {
    struct fl_vectors v;
    int kind;
};

static int lie(void *ctx, int64_t *ids, float *vectors, size_t cap, size_t *n, fl_err *err)
{
    struct liar *l = ctx;
    int r = fl_vectors_next(&l->v, ids, vectors, cap, n, err);

    if (l->kind == 1 && *n)
        ids[*n / 2] = -1;
    if (l->kind == 2 && *n)
        ids[*n / 2] = INT64_MAX;
    if (l->kind == 3 && *n)
        vectors[*n * l->v.dim - 1] = INFINITY;
    if (l->kind == 4)
        return fl_fail(err, FL_EIO, "the store is gone");
    return r;
}

static int lie_rewind(void *ctx, fl_err *err)
{
    struct liar *l = ctx;

    return l->kind == 5 ? fl_fail(err, FL_EIO, "no second time") : fl_vectors_rewind(&l->v, err);
}

static int stop_at(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return strcmp(ctx, what) == 0;
}

static void a_failed_build_changes_nothing(void **state)
{
    struct world *w = *state;
    static const struct {
        int kind, more, less;
        const char *stop, *says;
        int code;
    } rows[] = {
        {1, 0, 0, "", "vector id -1 is not between 0 and", FL_EUSAGE},
        {2, 0, 0, "", "is not between 0 and", FL_EUSAGE},
        {3, 0, 0, "", "not a number", FL_EINPUT},
        {4, 0, 0, "", "the store is gone", FL_EIO},
        {5, 0, 0, "", "no second time", FL_EIO},
        {0, 1, 0, "", "the store said 24000 vectors and", FL_EUSAGE},
        {0, 0, 1, "", "the store said 24000 vectors and", FL_EUSAGE},
        {0, 0, 0, "reading", "was stopped", FL_ELIMIT},
        {0, 0, 0, "training", "was stopped", FL_ELIMIT},
        {0, 0, 0, "adding", "was stopped", FL_ELIMIT},
        {0, 0, 0, "writing", "was stopped", FL_ELIMIT},
    };
    char *before, *after;
    size_t n, m;

    before = bytes_of(w->path, &n);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct liar l = {w->v, rows[i].kind};
        struct fl_index_source source = {lie, lie_rewind, &l};
        struct fl_index_head head = w->head;
        fl_err err = {0};
        int r;

        l.v.at = 0;
        l.v.count += (uint64_t)rows[i].more;
        l.v.lose = (uint64_t)rows[i].less;
        head.last_id += 3 * rows[i].more;
        r = fl_index_build(&head, &source, stop_at, (void *)(intptr_t)rows[i].stop, w->path, &err);
        if (r != rows[i].code || !strstr(err.msg, rows[i].says))
            fail_msg("row %zu: code %d, '%s'", i, r, err.msg);
        no_debris(w->dir, 1);
    }
    after = bytes_of(w->path, &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
}

static void heads_that_cannot_be(void **state)
{
    struct world *w = *state;
    struct fl_index_source source = fl_vectors_source(&w->v);

    for (int i = 0; i < 5; i++) {
        struct fl_index_head h = w->head;
        fl_err err = {0};

        h.dim = i == 0 ? 0 : i == 1 ? 4097 : h.dim;
        h.count = i == 2 ? 0 : h.count;
        if (i >= 3)
            memset(h.model, i == 3 ? 0 : 'x', sizeof(h.model));
        if (fl_index_build(&h, &source, NULL, NULL, "/nonexistent/i", &err) != FL_EUSAGE)
            fail_msg("row %d: '%s'", i, err.msg);
    }
}

/* The world without every third vector of its first 3,000 (told in `removed`) and with all of
 * `fresh`. Returns how many are left. */
static size_t changed(const struct world *w, const struct fl_vectors *fresh, int64_t *removed,
                      float *kept, int64_t *left)
{
    size_t n = 0;

    for (size_t i = 0; i < w->v.count; i++) {
        if (i < 3000 && i % 3 == 0) {
            removed[i / 3] = w->ids[i];
            continue;
        }
        memcpy(kept + n * w->v.dim, w->all + i * w->v.dim, w->v.dim * sizeof(float));
        left[n++] = w->ids[i];
    }
    fill(fresh, kept + n * w->v.dim, left + n);
    return n + fresh->count;
}

static void an_update_is_like_a_build(void **state)
{
    struct world *w = *state;
    struct fl_vectors fresh = w->v; /* the same centres */
    struct fl_index_source source = fl_vectors_source(&fresh);
    struct fl_index_head head = w->head;
    int64_t removed[1000], ids[QUERIES * K], truth[QUERIES * K], *left;
    float scores[QUERIES * K], *kept;
    size_t found = 0;
    fl_index *ix = NULL;
    char path[160];
    fl_err err = {0};

    fresh.count = 500;
    fresh.first_id = w->head.last_id + 1;
    kept = need((w->v.count + 500) * w->v.dim * sizeof(float));
    left = need((w->v.count + 500) * sizeof(int64_t));
    head.count = changed(w, &fresh, removed, kept, left);
    head.generation = 8;
    head.last_id = fl_vectors_id(&fresh, 499);
    snprintf(path, sizeof(path), "%s/next", w->dir);
    ok(fl_index_update(w->path, &w->head, &head, removed, 1000, &source, NULL, NULL, path, &err),
       &err);
    ok(fl_index_open(path, &head, 0, &ix, &err), &err);
    ok(fl_index_verify(ix, &err), &err);
    ok(fl_index_search(ix, w->queries, QUERIES, K, ids, scores, &err), &err);
    ok(fl_exact_search(kept, left, head.count, w->v.dim, w->queries, QUERIES, K, truth, scores,
                       &err),
       &err);
    for (size_t q = 0; q < QUERIES; q++)
        found += fl_vectors_common(truth + q * K, ids + q * K, K);
    for (size_t i = 0; i < QUERIES * K; i++)
        for (size_t j = 0; j < 1000; j++)
            if (ids[i] == removed[j])
                fail_msg("id %lld was removed and is found", (long long)ids[i]);
    print_message("recall@10 after the update %.4f\n", (double)found / (QUERIES * K));
    assert_true(found >= QUERIES * K * 95 / 100);
    fl_index_free(ix);
    free(kept);
    free(left);
    unlink(path);
}

static void outgrown_ones_are_not_updated(void **state)
{
    struct world *w = *state;
    struct fl_index_source source = fl_vectors_source(&w->v);
    const uint64_t counts[] = {2 * w->v.count + 1, 300};
    char path[160];

    snprintf(path, sizeof(path), "%s/next", w->dir);
    for (size_t i = 0; i < 2; i++) {
        struct fl_index_head head = w->head;
        fl_err err = {0};

        head.count = counts[i];
        if (fl_index_update(w->path, &w->head, &head, NULL, 0, &source, NULL, NULL, path, &err) !=
            FL_ELIMIT)
            fail_msg("to %llu: '%s'", (unsigned long long)counts[i], err.msg);
    }
    no_debris(w->dir, 1);
}

static void a_flat_one_is_updated_too(void **state)
{
    struct world *w = *state;
    struct fl_vectors v = w->v, fresh = w->v;
    struct fl_index_head head, next;
    struct fl_index_source source;
    int64_t gone = fl_vectors_id(&v, 0), ids[2 * K];
    float scores[2 * K], q[2 * 48];
    fl_index *ix = NULL;
    char path[160];
    fl_err err = {0};

    v.count = 600;
    head = fl_vectors_head(&v, 1);
    snprintf(path, sizeof(path), "%s/flat", w->dir);
    build(&v, &head, path);
    fresh.seed = 99;
    fresh.count = 50;
    fresh.first_id = head.last_id + 1;
    source = fl_vectors_source(&fresh);
    next = head;
    next.generation = 2;
    next.count = 649;
    next.last_id = fl_vectors_id(&fresh, 49);
    ok(fl_index_update(path, &head, &next, &gone, 1, &source, NULL, NULL, path, &err), &err);
    ok(fl_index_open(path, &next, 0, &ix, &err), &err);
    fl_vectors_make(&fresh, 49, q);
    fl_vectors_make(&v, 0, q + 48);
    ok(fl_index_search(ix, q, 2, K, ids, scores, &err), &err);
    assert_int_equal(ids[0], next.last_id);
    for (size_t i = K; i < 2 * K; i++)
        assert_int_not_equal(ids[i], gone);
    fl_index_free(ix);
    unlink(path);
}

/* Each allocation of a build, an opening, a search and an update fails in turn. */
static void memory_runs_out(void **state)
{
    struct world *w = *state;
    struct fl_vectors v = w->v;
    struct fl_index_head head;
    struct hook h = {0};
    char path[160];
    unsigned long places = 0;

    v.count = 500;
    head = fl_vectors_head(&v, 1);
    snprintf(path, sizeof(path), "%s/mem", w->dir);
    for (int what = 0; what < 4; what++)
        for (unsigned long at = 1;; at++) {
            const char *file = what < 2 ? w->path : path;
            const struct fl_index_head *which = what < 2 ? &w->head : &head;
            struct fl_index_source source = fl_vectors_source(&v);
            int64_t ids[K];
            float scores[K];
            fl_index *ix = NULL;
            fl_err err = {0};
            int r;

            h = (struct hook){.fail_at = at};
            fl_alloc_hook(counted, &h);
            if (what == 2) {
                r = fl_index_build(which, &source, NULL, NULL, path, &err);
            } else if (what == 3) {
                source.ctx = &(struct fl_vectors){.id_step = 1, .dim = v.dim};
                r = fl_index_update(path, which, which, NULL, 0, &source, NULL, NULL, path, &err);
            } else {
                r = fl_index_open(file, which, 0, &ix, &err);
                if (r == FL_OK && what == 1)
                    r = fl_index_search(ix, w->queries, 1, K, ids, scores, &err);
                fl_index_free(ix);
            }
            fl_alloc_hook(NULL, NULL);
            if (h.live || (r && r != FL_ENOMEM && r != FL_EBACKEND))
                fail_msg("part %d, allocation %lu: code %d '%s', %ld blocks stay", what, at, r,
                         err.msg, h.live);
            if (r == FL_OK && h.n < at)
                break;
            places++;
        }
    print_message("%lu allocations failed in turn\n", places);
    unlink(path);
    no_debris(w->dir, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_vectors_same_file),
        cmocka_unit_test(a_failed_build_changes_nothing),
        cmocka_unit_test(heads_that_cannot_be),
        cmocka_unit_test(an_update_is_like_a_build),
        cmocka_unit_test(outgrown_ones_are_not_updated),
        cmocka_unit_test(a_flat_one_is_updated_too),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, open_world, close_world);
}
