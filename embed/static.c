/*
 * The static table: a text's vector is the sum of its pieces' rows, made one long.
 *
 * There is no network behind it and nothing that looks at the order of words. For log lines that is
 * little loss: which words a line has says what failed, and the table, trained on pairs of lines
 * and explanations (embed/train/), has learnt which words go together. In return a text costs about
 * a microsecond from pieces, and no library, server or accelerator is needed.
 *
 * The same bits on every machine. Floating sums depend on their order, and a compiler that uses
 * vectors changes the order; so all sums are of integers. A row is 8 bits a dimension times a scale
 * of 15 bits, their product fits 22 bits and a sign, and 512 of them fit 32. For the length the sum
 * is brought down to 23 bits, its squares are added up in 64 bits, and what is left is one square
 * root, one division and a product each dimension in IEEE doubles: each of them is rounded in the
 * one right way, there is nothing to reorder and nothing to contract into a fused multiplication.
 * The mean that is usual here would only change the length.
 *
 * Plain C over blocks of 64 dimensions: gcc 12 and clang 14 make vector code of the loop at -O2
 * because its length is known. Code for one instruction set was not worth a second copy: the
 * tokenizer in front takes three times as long.
 *
 * The file is read, not mapped, and not believed: its seal, version, sizes and the tokenizer it was
 * made for are checked before the first row is used.
 */
#include "embed/static.h"

#include "base/buf.h"
#include "base/file.h"
#include "embed/embed.h"
#include "embed/normal.h"
#include "embed/seal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"

enum { FILE_MAX = 64 << 20, TEXT_MAX = 8192, SCALE_MAX = 32767 };

struct fl_static {
    fl_buf file;
    uint64_t hash;
    uint32_t pieces, dim;
    int16_t *scales;
    const int8_t *rows; /* in `file` */
};

static uint32_t u32_at(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t u64_at(const unsigned char *p)
{
    return u32_at(p) | (uint64_t)u32_at(p + 4) << 32;
}

/* The head's claims against the file's size and the tokenizer in use. */
static int check_head(fl_static *t, const char *path, uint64_t tokens_hash, size_t pieces,
                      fl_err *err)
{
    const unsigned char *p = (const unsigned char *)t->file.p;
    uint64_t want;

    if (t->file.n < FL_STATIC_HEAD + FL_SEAL_BYTES || memcmp(p, "FLROWS\r\n", 8))
        return fl_fail(err, FL_EINPUT,
                       "%s: this is no embedding table; restore it or install "
                       "again",
                       path);
    if (u32_at(p + 8) != FL_STATIC_VERSION)
        return fl_fail(err, FL_EINPUT,
                       "%s: an embedding table of version %" PRIu32 ", and this program reads %d; "
                       "install program and table of one release",
                       path, u32_at(p + 8), FL_STATIC_VERSION);
    if (fl_seal_check(fl_buf_str(&t->file), &t->hash))
        return fl_fail(err, FL_EINPUT,
                       "%s: the embedding table is damaged or cut short; restore it or install "
                       "again",
                       path);
    t->pieces = u32_at(p + 12);
    t->dim = u32_at(p + 16);
    want = FL_STATIC_HEAD + (uint64_t)t->pieces * 2 + (uint64_t)t->pieces * t->dim + FL_SEAL_BYTES;
    if (!t->dim || t->dim % FL_STATIC_BLOCK || t->dim > FL_STATIC_DIM_MAX || want != t->file.n)
        return fl_fail(err, FL_EINPUT,
                       "%s: %" PRIu32 " rows of %" PRIu32 " do not fit a file of %zu bytes; make "
                       "it again with embed/train/run",
                       path, t->pieces, t->dim, t->file.n);
    if (u64_at(p + 24) != tokens_hash || t->pieces != pieces)
        return fl_fail(err, FL_EINPUT,
                       "%s: this embedding table was made for another tokenizer; install both from "
                       "one release or make both again with embed/train/run",
                       path);
    return 0;
}

static int take_scales(fl_static *t, const char *path, fl_err *err)
{
    const unsigned char *p = (const unsigned char *)t->file.p + FL_STATIC_HEAD;
    t->scales = fl_calloc(t->pieces, sizeof(*t->scales));
    if (!t->scales)
        return fl_fail_nomem(err);
    for (uint32_t i = 0; i < t->pieces; i++) {
        unsigned v = p[2 * i] | (unsigned)p[2 * i + 1] << 8;
        if (v > SCALE_MAX)
            return fl_fail(err, FL_EINPUT, "%s: the scale of row %" PRIu32 " is too large", path,
                           i);
        t->scales[i] = (int16_t)v;
    }
    t->rows = (const int8_t *)p + (size_t)t->pieces * 2;
    return 0;
}

int fl_static_load(const char *path, uint64_t tokens_hash, size_t pieces, fl_static **out,
                   fl_err *err)
{
    fl_static *t = fl_calloc(1, sizeof(*t));
    int rc;
    if (!t)
        return fl_fail_nomem(err);
    fl_buf_init(&t->file, FILE_MAX);
    rc = fl_file_read(path, &t->file, err);
    if (!rc)
        rc = check_head(t, path, tokens_hash, pieces, err);
    if (!rc)
        rc = take_scales(t, path, err);
    if (!rc) {
        *out = t;
        t = NULL;
    }
    fl_static_free(t);
    return rc;
}

void fl_static_free(fl_static *t)
{
    if (!t)
        return;
    fl_buf_dispose(&t->file);
    fl_free(t->scales);
    fl_free(t);
}

uint32_t fl_static_dim(const fl_static *t)
{
    return t->dim;
}

uint64_t fl_static_hash(const fl_static *t)
{
    return t->hash;
}

/* One block of one row; the compiler knows the length and that nothing overlaps. */
static void add_block(int32_t *restrict sum, const int8_t *restrict row, int16_t scale)
{
    for (int d = 0; d < FL_STATIC_BLOCK; d++)
        sum[d] += (int32_t)((int16_t)row[d] * scale);
}

void fl_static_sum(const fl_static *t, const uint32_t *ids, size_t n, int32_t *sum)
{
    memset(sum, 0, t->dim * sizeof(*sum));
    n = n < FL_STATIC_PIECES_MAX ? n : FL_STATIC_PIECES_MAX;
    for (size_t i = 0; i < n; i++) {
        const int8_t *row;
        if (ids[i] >= t->pieces)
            continue;
        row = t->rows + (size_t)ids[i] * t->dim;
        for (uint32_t d = 0; d < t->dim; d += FL_STATIC_BLOCK)
            add_block(sum + d, row + d, t->scales[ids[i]]);
    }
}

void fl_static_sum_plain(const fl_static *t, const uint32_t *ids, size_t n, int32_t *sum)
{
    n = n < FL_STATIC_PIECES_MAX ? n : FL_STATIC_PIECES_MAX;
    for (uint32_t d = 0; d < t->dim; d++) {
        int64_t total = 0;
        for (size_t i = 0; i < n; i++)
            if (ids[i] < t->pieces)
                total += (int64_t)t->scales[ids[i]] * t->rows[(size_t)ids[i] * t->dim + d];
        sum[d] = (int32_t)total;
    }
}

void fl_static_unit(const int32_t *sum, uint32_t dim, float *out)
{
    uint32_t most = 0;
    int32_t by = 1;
    int64_t squares = 0;
    double inverse;

    for (uint32_t d = 0; d < dim; d++) {
        uint32_t size = sum[d] < 0 ? 0u - (uint32_t)sum[d] : (uint32_t)sum[d];
        most = size > most ? size : most;
    }
    while (most >> 23) {
        most >>= 1;
        by *= 2;
    }
    for (uint32_t d = 0; d < dim; d++)
        squares += (int64_t)(sum[d] / by) * (sum[d] / by);
    inverse = squares ? 1.0 / sqrt((double)squares) : 0;
    for (uint32_t d = 0; d < dim; d++)
        out[d] = (float)((double)(sum[d] / by) * inverse);
}

/* The embedder. */

struct provider {
    fl_static *table;
    const fl_tokenizer *tokens;
};

static int embed_one(const struct provider *p, fl_str text, fl_buf *normal, float *out, fl_err *err)
{
    uint32_t ids[FL_STATIC_PIECES_MAX];
    int32_t sum[FL_STATIC_DIM_MAX];
    size_t n;
    int rc;

    fl_buf_clear(normal);
    fl_normal(fl_str_sub(text, 0, TEXT_MAX), normal);
    rc = fl_buf_check(normal, "the text to embed", err);
    if (!rc)
        rc = fl_tokenizer_pieces(p->tokens, fl_buf_str(normal), ids, FL_STATIC_PIECES_MAX, &n, err);
    if (rc)
        return rc;
    fl_static_sum(p->table, ids, n, sum);
    fl_static_unit(sum, p->table->dim, out);
    return 0;
}

static int provider_embed(void *ctx, const fl_str *texts, size_t n, float *out, fl_err *err)
{
    const struct provider *p = ctx;
    fl_buf normal;
    int rc = 0;
    fl_buf_init(&normal, 2 * TEXT_MAX + 16);
    for (size_t i = 0; i < n && !rc; i++)
        rc = embed_one(p, texts[i], &normal, out + i * p->table->dim, err);
    fl_buf_dispose(&normal);
    return rc;
}

static void provider_free(void *ctx)
{
    struct provider *p = ctx;
    if (!p)
        return;
    fl_static_free(p->table);
    fl_free(p);
}

int fl_static_open(const char *table_path, const fl_tokenizer *tokens, struct fl_embedder *out,
                   fl_err *err)
{
    struct provider *p = fl_calloc(1, sizeof(*p));
    int rc;
    if (!p)
        return fl_fail_nomem(err);
    p->tokens = tokens;
    rc = fl_static_load(table_path, fl_tokenizer_hash(tokens), fl_tokenizer_size(tokens), &p->table,
                        err);
    if (rc) {
        provider_free(p);
        return rc;
    }
    *out = (struct fl_embedder){
        .dim = p->table->dim, .ctx = p, .embed = provider_embed, .free = provider_free};
    /* The seal covers the tokenizer's hash, so it names both. */
    snprintf(out->name, sizeof(out->name), "static-%016" PRIx64, p->table->hash);
    return 0;
}

void fl_embedder_dispose(struct fl_embedder *e)
{
    if (e->free)
        e->free(e->ctx);
    memset(e, 0, sizeof(*e));
}
