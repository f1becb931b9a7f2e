#ifndef FL_TEST_VECTORS_H
#define FL_TEST_VECTORS_H
/*
 * Vectors for the tests and the bench of the index, made from a seed and their number alone, so
 * that a source can give them twice and nothing has to be kept.
 *
 * Clustered: a centre out of `centres` and noise of `noise` times its length, which is roughly how
 * the lines of logs lie: many wordings of few failures. With centres 0 they are uniform on the
 * sphere, which no text is: there nothing is near anything.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "embed/index.h"

struct fl_vectors {
    uint64_t seed, count;
    uint32_t dim, centres;
    float noise;
    uint64_t at;      /* where the source stands */
    int64_t first_id; /* id of vector 0; ids grow by id_step */
    int64_t id_step;
    uint64_t lose; /* the source ends so many early */
};

static inline uint64_t fl_vectors_draw(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Nearly normal with deviation 1: four uniform numbers. */
static inline void fl_vectors_noise(uint64_t seed, float *v, uint32_t dim, float scale)
{
    for (uint32_t i = 0; i < dim; i++) {
        uint64_t r = fl_vectors_draw(&seed);
        float sum = (float)(r & 0xffff) + (float)(r >> 16 & 0xffff) + (float)(r >> 32 & 0xffff) +
                    (float)(r >> 48);
        v[i] += scale * (sum / 65536.0f - 2.0f) * 1.7320508f;
    }
}

static inline void fl_vectors_normalise(float *v, uint32_t dim)
{
    double n = 0;

    for (uint32_t i = 0; i < dim; i++)
        n += (double)v[i] * v[i];
    n = 1 / sqrt(n);
    for (uint32_t i = 0; i < dim; i++)
        v[i] = (float)(v[i] * n);
}

static inline void fl_vectors_make(const struct fl_vectors *s, uint64_t i, float *v)
{
    uint64_t x = s->seed * 0x2545f4914f6cdd1du + i;
    float scale = s->centres ? s->noise / sqrtf((float)s->dim) : 1;

    memset(v, 0, s->dim * sizeof(*v));
    fl_vectors_draw(&x);
    if (s->centres) {
        fl_vectors_noise(s->seed + 7919 * (1 + fl_vectors_draw(&x) % s->centres), v, s->dim, 1);
        fl_vectors_normalise(v, s->dim);
    }
    fl_vectors_noise(x, v, s->dim, scale);
    fl_vectors_normalise(v, s->dim);
}

/* A query: vector i moved by a third of the noise. */
static inline void fl_vectors_query(const struct fl_vectors *s, uint64_t i, float *v)
{
    fl_vectors_make(s, i, v);
    fl_vectors_noise(~i, v, s->dim, (s->centres ? s->noise : 1) * 0.3f / sqrtf((float)s->dim));
    fl_vectors_normalise(v, s->dim);
}

static inline int64_t fl_vectors_id(const struct fl_vectors *s, uint64_t i)
{
    return s->first_id + (int64_t)i * s->id_step;
}

static inline int fl_vectors_next(void *ctx, int64_t *ids, float *vectors, size_t cap, size_t *n,
                                  fl_err *err)
{
    struct fl_vectors *s = ctx;
    size_t k = 0;

    (void)err;
    while (k < cap && s->at + s->lose < s->count) {
        ids[k] = fl_vectors_id(s, s->at);
        fl_vectors_make(s, s->at++, vectors + k++ * s->dim);
    }
    *n = k;
    return FL_OK;
}

static inline int fl_vectors_rewind(void *ctx, fl_err *err)
{
    struct fl_vectors *s = ctx;

    (void)err;
    s->at = 0;
    return FL_OK;
}

static inline struct fl_index_source fl_vectors_source(struct fl_vectors *s)
{
    struct fl_index_source source = {fl_vectors_next, fl_vectors_rewind, s};

    s->at = 0;
    return source;
}

static inline struct fl_index_head fl_vectors_head(const struct fl_vectors *s, uint64_t generation)
{
    struct fl_index_head head = {.model = "test-256", .dim = s->dim, .generation = generation};

    head.count = s->count;
    head.last_id = fl_vectors_id(s, s->count ? s->count - 1 : 0);
    return head;
}

/* How many of want's ids are among have's. */
static inline size_t fl_vectors_common(const int64_t *want, const int64_t *have, size_t k)
{
    size_t n = 0;

    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k && want[i] >= 0; j++)
            n += want[i] == have[j];
    return n;
}

#endif
