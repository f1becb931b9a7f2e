/*
 * embed/index, reading: the exact scan against plain arithmetic, the index against the exact scan,
 * and what must be refused: files of another model or generation, cut, or changed in any one place.
 */
#include "index_fixture.h"

#include <pthread.h>

static void plain_arithmetic(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 7, 31, 32, 33, 64, 255, 256, 300};
    int64_t ids[2 * 5];
    float scores[2 * 5];
    fl_err err = {0};

    for (size_t d = 0; d < sizeof(dims) / sizeof(*dims); d++) {
        struct fl_vectors v = {.seed = d, .count = 400, .dim = dims[d], .id_step = 1};
        float *all = need(v.count * v.dim * sizeof(*all)),
              *queries = need(2 * v.dim * sizeof(*all));
        for (uint64_t i = 0; i < v.count; i++)
            fl_vectors_make(&v, i, all + i * v.dim);
        fl_vectors_query(&v, 3, queries);
        fl_vectors_query(&v, 399, queries + v.dim);
        ok(fl_exact_search(all, NULL, v.count, v.dim, queries, 2, 5, ids, scores, &err), &err);
        for (size_t q = 0; q < 2; q++)
            for (size_t i = 0; i < 5; i++) {
                double sum = 0;
                size_t above = 0;
                for (uint64_t j = 0; j < v.count; j++) {
                    double s = 0;
                    for (uint32_t c = 0; c < v.dim; c++)
                        s += (double)all[j * v.dim + c] * queries[q * v.dim + c];
                    above += s > scores[q * 5 + i] + 1e-5;
                    if ((int64_t)j == ids[q * 5 + i])
                        sum = s;
                }
                if (fabs(sum - scores[q * 5 + i]) > 1e-5 || above > i)
                    fail_msg("dim %u query %zu place %zu: score %.7f, it is %.7f; %zu are better",
                             v.dim, q, i, scores[q * 5 + i], sum, above);
            }
        free(all);
        free(queries);
    }
}

static void exact_corners(void **state)
{
    (void)state;
    /* equal scores go by id, whatever the order; what is not a number is nobody's neighbour */
    static const float v[] = {1, 0, NAN, 0, 1, 0, 0, 1, 1, 0};
    static const int64_t of[] = {9, 1, 4, 2, 7};
    static const float q[] = {1, 0};
    static const int64_t want[] = {4, 7, 9, 2, -1, -1};
    int64_t ids[6];
    float scores[6];
    fl_err err = {0};

    ok(fl_exact_search(v, of, 5, 2, q, 1, 6, ids, scores, &err), &err);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(ids[i], want[i]);
    assert_true(scores[0] == 1 && scores[3] == 0 && scores[5] == 0);
    ok(fl_exact_search(NULL, NULL, 0, 2, q, 1, 2, ids, scores, &err), &err);
    assert_int_equal(ids[0], -1);
    ids[0] = 5;
    assert_int_equal(fl_exact_search(v, of, 5, 2, q, 1, 0, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(fl_exact_search(v, of, 5, 0, q, 1, 1, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(fl_exact_search(v, of, 5, 2, q, 1, 1025, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(ids[0], 5);
}

#ifndef FL_HAVE_FAISS

static void says_that_it_has_none(void **state)
{
    (void)state;
    struct fl_vectors v = {.seed = 1, .count = 10, .dim = 4, .id_step = 1};
    struct fl_index_head head = fl_vectors_head(&v, 1);
    struct fl_index_source source = fl_vectors_source(&v);
    fl_err err = {0};

    assert_int_equal(fl_index_build(&head, &source, NULL, NULL, "/nonexistent/x", &err),
                     FL_EBACKEND);
    assert_non_null(strstr(err.msg, "built without FAISS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arithmetic),
        cmocka_unit_test(exact_corners),
        cmocka_unit_test(says_that_it_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void flat_is_exact(void **state)
{
    struct world *w = *state;
    static const uint64_t counts[] = {1, 9, 3000};
    char path[160];

    for (size_t c = 0; c < 3; c++) {
        struct fl_vectors v = w->v;
        struct fl_index_head head;
        int64_t ids[QUERIES * K], truth[QUERIES * K];
        float scores[QUERIES * K], true_scores[QUERIES * K];
        fl_index *ix = NULL;
        fl_err err = {0};

        v.count = counts[c];
        head = fl_vectors_head(&v, 1);
        snprintf(path, sizeof(path), "%s/flat", w->dir);
        build(&v, &head, path);
        ok(fl_index_open(path, &head, 0, &ix, &err), &err);
        assert_string_equal(fl_index_kind(ix), "flat");
        ok(fl_index_verify(ix, &err), &err);
        ok(fl_index_search(ix, w->queries, QUERIES, K, ids, scores, &err), &err);
        ok(fl_exact_search(w->all, w->ids, v.count, v.dim, w->queries, QUERIES, K, truth,
                           true_scores, &err),
           &err);
        assert_memory_equal(ids, truth, sizeof(ids));
        assert_memory_equal(scores, true_scores, sizeof(scores));
        fl_index_free(ix);
        unlink(path);
    }
}

static void ivf_finds_what_flat_finds(void **state)
{
    struct world *w = *state;
    int64_t ids[QUERIES * K], all[QUERIES * K];
    float scores[QUERIES * K];
    size_t of_exact = 0, of_flat = 0;
    fl_index *ix = opened(w);
    fl_err err = {0};

    assert_string_equal(fl_index_kind(ix), "ivf 512/59");
    assert_int_equal(fl_index_head(ix)->generation, 7);
    assert_int_equal(fl_index_head(ix)->last_id, 100 + 23999 * 3);
    ok(fl_index_verify(ix, &err), &err);
    ok(fl_index_search(ix, w->queries, QUERIES, K, ids, scores, &err), &err);
    for (size_t i = 0; i < QUERIES * K; i++) {
        if (i % K && scores[i] > scores[i - 1])
            fail_msg("place %zu is better than the one before", i);
        for (size_t j = 0; j < K; j++) /* a found one has its exact score, to 8 bits */
            if (w->truth[i / K * K + j] == ids[i] &&
                fabsf(w->scores[i / K * K + j] - scores[i]) > 0.01f)
                fail_msg("id %lld scores %f, exactly %f", (long long)ids[i], scores[i],
                         w->scores[i / K * K + j]);
    }
    fl_index_probe(ix, UINT32_MAX);
    ok(fl_index_search(ix, w->queries, QUERIES, K, all, scores, &err), &err);
    for (size_t q = 0; q < QUERIES; q++) {
        of_exact += fl_vectors_common(w->truth + q * K, ids + q * K, K);
        of_flat += fl_vectors_common(all + q * K, ids + q * K, K);
    }
    print_message("recall@10 of exact %.4f, of flat 8-bit codes %.4f\n",
                  (double)of_exact / (QUERIES * K), (double)of_flat / (QUERIES * K));
    assert_true(of_flat >= QUERIES * K * 99 / 100);
    assert_true(of_exact >= QUERIES * K * 95 / 100);
    fl_index_free(ix);
}

/* One query after another makes many parts, and then throws them away; the answers do not change.
 */
static void parts_do_not_show(void **state)
{
    struct world *w = *state;
    int64_t ids[QUERIES * K], one[K];
    float scores[QUERIES * K], one_scores[K];
    fl_index *ix = opened(w), *other = opened(w);
    fl_err err = {0};

    ok(fl_index_search(ix, w->queries, QUERIES, K, ids, scores, &err), &err);
    for (size_t round = 0; round < 2; round++)
        for (size_t q = 0; q < QUERIES; q++) {
            ok(fl_index_search(other, w->queries + q * w->v.dim, 1, K, one, one_scores, &err),
               &err);
            for (size_t i = 0; i < K; i++)
                if (one[i] != ids[q * K + i] || one_scores[i] != scores[q * K + i])
                    fail_msg("round %zu query %zu place %zu: %lld %.9g alone, %lld %.9g together",
                             round, q, i, (long long)one[i], one_scores[i],
                             (long long)ids[q * K + i], scores[q * K + i]);
        }
    fl_index_free(ix);
    fl_index_free(other);
}

static void more_than_there_are(void **state)
{
    struct world *w = *state;
    static int64_t ids[1024];
    static float scores[1024];
    float bad[48] = {NAN};
    fl_index *ix = opened(w);
    fl_err err = {0};
    size_t n = 0;

    fl_index_probe(ix, 1);
    ok(fl_index_search(ix, w->queries, 1, 1024, ids, scores, &err), &err);
    while (n < 1024 && ids[n] >= 0)
        n++;
    assert_in_range(n, 1, 1023);
    for (size_t i = n; i < 1024; i++)
        assert_true(ids[i] == -1 && scores[i] == 0);
    ids[0] = 77;
    assert_int_equal(fl_index_search(ix, bad, 1, 1, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(fl_index_search(ix, w->queries, 1, 0, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(fl_index_search(ix, w->queries, 1, 1025, ids, scores, &err), FL_EUSAGE);
    assert_int_equal(ids[0], 77);
    ok(fl_index_search(ix, NULL, 0, 1, NULL, NULL, &err), &err);
    fl_index_free(ix);
    fl_index_free(NULL);
}

static void others_are_refused(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *model;
        int dim, generation, count, last_id, flags, code;
        const char *says;
    } rows[] = {
        {"other", 0, 0, 0, 0, 0, FL_ERULE, "made with the model test-256, not with other"},
        {"test-256", 1, 0, 0, 0, 0, FL_ERULE, "has 48 dimensions, the model has 49"},
        {"test-256", 0, 1, 0, 0, 0, FL_ENOTFOUND, "of generation 7, the store is at 8"},
        {"test-256", 0, 0, 1, 0, 0, FL_ENOTFOUND, "holds 24000 vectors"},
        {"test-256", 0, 0, 0, 1, 0, FL_ENOTFOUND, "up to id 72097, the store"},
        {"test-256", 0, 1, 1, 1, FL_INDEX_ANY_GENERATION, FL_OK, ""},
        {"other", 0, 0, 0, 0, FL_INDEX_ANY_GENERATION, FL_ERULE, "not with other"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fl_index_head h = w->head;
        fl_index *ix = NULL;
        fl_err err = {0};
        int r;

        memset(h.model, 0, sizeof(h.model));
        memcpy(h.model, rows[i].model, strlen(rows[i].model));
        h.dim += (uint32_t)rows[i].dim;
        h.generation += (uint64_t)rows[i].generation;
        h.count += (uint64_t)rows[i].count;
        h.last_id += rows[i].last_id;
        r = fl_index_open(w->path, &h, rows[i].flags, &ix, &err);
        if (r != rows[i].code || !strstr(err.msg, rows[i].says) || (r == 0) != (ix != NULL))
            fail_msg("row %zu: code %d, '%s'", i, r, err.msg);
        fl_index_free(ix);
    }
}

/* Opens and reads all there is: 0, or the code of what was found. */
static int try_file(const struct world *w, const char *path, fl_err *err)
{
    int64_t ids[4 * K];
    float scores[4 * K];
    fl_index *ix = NULL;
    int r = fl_index_open(path, &w->head, 0, &ix, err), s;

    if (r)
        return r;
    r = fl_index_verify(ix, err);
    fl_index_probe(ix, UINT32_MAX);
    s = fl_index_search(ix, w->queries, 4, K, ids, scores, r ? NULL : err);
    fl_index_free(ix);
    if (r != s)
        fail_msg("verify gave %d and a search of all lists %d", r, s);
    return r;
}

static void damage_is_seen(void **state)
{
    struct world *w = *state;
    char path[160], *p, *q;
    struct fl_index_disk d;
    size_t n;
    fl_err err = {0};

    snprintf(path, sizeof(path), "%s/bad", w->dir);
    p = bytes_of(w->path, &n);
    q = need(n + 1);
    memcpy(&d, p, sizeof(d));
    {
        const size_t cut[] = {0,
                              1,
                              8,
                              255,
                              256,
                              257,
                              5000,
                              d.front_len + 200,
                              d.lists_at - 3,
                              d.lists_at,
                              d.lists_at + 1000,
                              d.dir_at,
                              d.dir_at + 16,
                              n - 1};
        for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
            write_bytes(path, p, cut[i]);
            if (try_file(w, path, &err) != FL_EINPUT || !strstr(err.msg, "run diagnose reindex"))
                fail_msg("cut at %zu of %zu: '%s'", cut[i], n, err.msg);
        }
    }
    memcpy(q, p, n);
    q[n] = 0;
    write_bytes(path, q, n + 1);
    assert_int_equal(try_file(w, path, &err), FL_EINPUT);
    /* One bit, everywhere in the head, and in three hundred places of the rest. */
    for (size_t i = 0; i < 256 + 300; i++) {
        size_t at = i < 256 ? i : 256 + (i - 256) * ((n - 256) / 300);
        int r;

        memcpy(q, p, n);
        q[at] ^= (char)(1 << i % 8);
        write_bytes(path, q, n);
        memset(&err, 0, sizeof(err));
        r = try_file(w, path, &err);
        if (r != FL_EINPUT)
            fail_msg("bit %zu of byte %zu of %zu: code %d, '%s'", i % 8, at, n, r, err.msg);
    }
    free(p);
    free(q);
    unlink(path);
    assert_int_equal(try_file(w, path, &err), FL_ENOTFOUND);
    assert_int_equal(try_file(w, w->dir, &err), FL_EINPUT);
}

/* A file that grew shorter after it was opened costs an error of the search. */
static void cut_while_open(void **state)
{
    struct world *w = *state;
    char path[160], *p;
    int64_t ids[K];
    float scores[K];
    fl_index *ix = NULL;
    fl_err err = {0};
    size_t n;

    snprintf(path, sizeof(path), "%s/cut", w->dir);
    p = bytes_of(w->path, &n);
    write_bytes(path, p, n);
    ok(fl_index_open(path, &w->head, 0, &ix, &err), &err);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(fl_index_search(ix, w->queries, 1, K, ids, scores, &err), FL_EINPUT);
    assert_non_null(strstr(err.msg, "cut short"));
    write_bytes(path, p, n); /* and it mends itself when the bytes are back */
    ok(fl_index_search(ix, w->queries, 1, K, ids, scores, &err), &err);
    assert_int_equal(ids[0], w->truth[0]);
    fl_index_free(ix);
    free(p);
    unlink(path);
}

struct asker {
    const struct world *w;
    fl_index *ix;
    const int64_t *want;
    size_t wrong;
};

static void *ask(void *p)
{
    struct asker *a = p;
    int64_t ids[K];
    float scores[K];

    for (size_t i = 0; i < 4 * QUERIES; i++) {
        size_t q = i * 7 % QUERIES;
        a->wrong +=
            fl_index_search(a->ix, a->w->queries + q * a->w->v.dim, 1, K, ids, scores, NULL) != 0 ||
            memcmp(ids, a->want + q * K, sizeof(ids)) != 0;
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    struct world *w = *state;
    fl_index *ix = opened(w), *other = opened(w);
    int64_t want[QUERIES * K];
    float scores[QUERIES * K];
    struct asker a[4];
    pthread_t t[4];
    fl_err err = {0};

    ok(fl_index_search(other, w->queries, QUERIES, K, want, scores, &err), &err);
    for (size_t i = 0; i < 4; i++) {
        a[i] = (struct asker){w, ix, want, 0};
        assert_int_equal(pthread_create(&t[i], NULL, ask, &a[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(a[i].wrong, 0);
    }
    fl_index_free(ix);
    fl_index_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arithmetic),   cmocka_unit_test(exact_corners),
        cmocka_unit_test(flat_is_exact),      cmocka_unit_test(ivf_finds_what_flat_finds),
        cmocka_unit_test(parts_do_not_show),  cmocka_unit_test(more_than_there_are),
        cmocka_unit_test(others_are_refused), cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(cut_while_open),     cmocka_unit_test(threads_share_it),
    };

    return cmocka_run_group_tests(tests, open_world, close_world);
}

#endif
