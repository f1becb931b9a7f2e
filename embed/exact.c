/*
 * Exact search: every vector is compared with every query.
 *
 * This is the slow truth that the index is measured against, and what searches where there is no
 * index. It is plain C with the compiler's vector type: 32 sums side by side, added up in one fixed
 * order, without fused multiply-add (the compiler may not contract in ISO mode). So the scores are
 * the same bits with SSE, AVX or none, which a library for linear algebra does not promise.
 *
 * Memory is what limits it: a block of vectors that fits the cache is compared with all queries
 * before the next is touched. The best k are kept in a small sorted row, since nearly every vector
 * is worse than the worst kept; a heap would be faster only for large k. Equal scores are ordered
 * by id, so the order of the array does not show in the answer. A score that is not a number (a
 * vector with a NaN in it) is nobody's neighbour.
 */
#include "embed/index.h"

#include "base/alloc.h"

#define LANES 8
#define BLOCK_BYTES (128u << 10)

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

static float dot(const float *a, const float *b, size_t n)
{
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    float sum = 0, tail = 0;
    size_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        s0 += *(const lanes *)(a + i) * *(const lanes *)(b + i);
        s1 += *(const lanes *)(a + i + LANES) * *(const lanes *)(b + i + LANES);
        s2 += *(const lanes *)(a + i + 2 * LANES) * *(const lanes *)(b + i + 2 * LANES);
        s3 += *(const lanes *)(a + i + 3 * LANES) * *(const lanes *)(b + i + 3 * LANES);
    }
    for (; i < n; i++)
        tail += a[i] * b[i];
    s0 += s1;
    s2 += s3;
    s0 += s2;
    for (int j = 0; j < LANES; j++)
        sum += s0[j];
    return sum + tail;
}

static bool better(float score, int64_t id, float than, int64_t than_id)
{
    return score > than || (score == than && id < than_id);
}

/* Puts (id, score) into its place among the best k, of which `have` are there. */
static size_t keep(int64_t *ids, float *scores, size_t have, size_t k, int64_t id, float score)
{
    size_t at = have < k ? have : k - 1;

    while (at > 0 && better(score, id, scores[at - 1], ids[at - 1])) {
        scores[at] = scores[at - 1];
        ids[at] = ids[at - 1];
        at--;
    }
    scores[at] = score;
    ids[at] = id;
    return have < k ? have + 1 : k;
}

struct scan {
    const float *vectors;
    const int64_t *vector_ids;
    uint32_t dim;
    size_t k;
};

/* One query against vectors from..to. */
static size_t scan_block(const struct scan *s, size_t from, size_t to, const float *query,
                         int64_t *ids, float *scores, size_t have)
{
    for (size_t i = from; i < to; i++) {
        float score = dot(s->vectors + i * s->dim, query, s->dim);
        int64_t id = s->vector_ids ? s->vector_ids[i] : (int64_t)i;
        if (score != score)
            continue;
        if (have < s->k || better(score, id, scores[s->k - 1], ids[s->k - 1]))
            have = keep(ids, scores, have, s->k, id, score);
    }
    return have;
}

int fl_exact_search(const float *vectors, const int64_t *vector_ids, size_t count, uint32_t dim,
                    const float *queries, size_t nq, size_t k, int64_t *ids, float *scores,
                    fl_err *err)
{
    struct scan s = {vectors, vector_ids, dim, k};
    size_t *have, block;

    if (dim == 0 || dim > FL_INDEX_MAX_DIM || k == 0 || k > FL_INDEX_MAX_K)
        return fl_fail(err, FL_EUSAGE,
                       "a search for %zu neighbours of %u dimensions is not possible; 1 to %d and "
                       "1 to %d are",
                       k, dim, FL_INDEX_MAX_K, FL_INDEX_MAX_DIM);
    have = fl_calloc(nq ? nq : 1, sizeof(*have));
    if (!have)
        return fl_fail_nomem(err);
    block = BLOCK_BYTES / (dim * sizeof(float)) + 1;
    for (size_t i = 0; i < count; i += block)
        for (size_t q = 0; q < nq; q++)
            have[q] = scan_block(&s, i, count - i < block ? count : i + block, queries + q * dim,
                                 ids + q * k, scores + q * k, have[q]);
    for (size_t q = 0; q < nq; q++)
        for (size_t i = have[q]; i < k; i++) {
            ids[q * k + i] = -1;
            scores[q * k + i] = 0;
        }
    fl_free(have);
    return FL_OK;
}
