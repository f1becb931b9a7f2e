/*
 * embed_bench TOKENS TABLE FILE: how fast texts become vectors, on one core.
 *
 * FILE gives the texts, its lines; each number is the best of five rounds. It prints one line a
 * measurement; nothing is asserted.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"
#include "embed/embed.h"
#include "embed/normal.h"
#include "embed/static.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"

enum { TEXTS = 20000, ROUNDS = 5, SHORT = 160 };

struct bench {
    fl_str texts[TEXTS];
    size_t n, bytes;
    fl_tokenizer *tokens;
    struct fl_embedder embedder;
    fl_static *table;
    uint32_t *ids; /* of all texts, one after another */
    size_t *ends;
    fl_buf normal;
    float *out;
    double sink; /* so that nothing is left out */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void do_count(struct bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->sink += (double)fl_tokenizer_count(b->tokens, b->texts[i]);
}

static void do_normal(struct bench *b)
{
    for (size_t i = 0; i < b->n; i++) {
        fl_buf_clear(&b->normal);
        fl_normal(b->texts[i], &b->normal);
        b->sink += (double)b->normal.n;
    }
}

static void from_pieces(struct bench *b,
                        void (*add)(const fl_static *, const uint32_t *, size_t, int32_t *))
{
    int32_t sum[FL_STATIC_DIM_MAX];
    for (size_t i = 0, at = 0; i < b->n; at = b->ends[i++]) {
        add(b->table, b->ids + at, b->ends[i] - at, sum);
        fl_static_unit(sum, fl_static_dim(b->table), b->out);
        b->sink += (double)b->out[0];
    }
}

static void do_pieces(struct bench *b)
{
    from_pieces(b, fl_static_sum);
}

static void do_plain(struct bench *b)
{
    from_pieces(b, fl_static_sum_plain);
}

static void do_text(struct bench *b)
{
    fl_err err;
    if (b->embedder.embed(b->embedder.ctx, b->texts, b->n, b->out, &err))
        fprintf(stderr, "%s\n", err.msg);
    b->sink += (double)b->out[0];
}

static void measure(struct bench *b, const char *what, void (*run)(struct bench *))
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double began = now(), took;
        run(b);
        took = now() - began;
        best = took < best ? took : best;
    }
    printf("%-34s %9.0f texts/s %8.1f MB/s\n", what, (double)b->n / best,
           (double)b->bytes / best / 1e6);
}

static int prepare(struct bench *b, char **argv, fl_buf *file, fl_err *err)
{
    double began = now();
    fl_str rest;
    size_t have = 0, n;
    int rc = fl_tokenizer_open(argv[1], &b->tokens, err);
    printf("%-34s %9.2f ms\n", "open the tokenizer, first time", 1e3 * (now() - began));
    began = now();
    if (!rc)
        rc = fl_static_open(argv[2], b->tokens, &b->embedder, err);
    printf("%-34s %9.2f ms\n", "open the table", 1e3 * (now() - began));
    if (!rc)
        rc = fl_static_load(argv[2], fl_tokenizer_hash(b->tokens), fl_tokenizer_size(b->tokens),
                            &b->table, err);
    if (!rc)
        rc = fl_file_read(argv[3], file, err);
    for (rest = fl_buf_str(file); !rc && rest.n && b->n < TEXTS;) {
        fl_str line = fl_str_sub(fl_str_cut(&rest, '\n'), 0, SHORT);
        if (line.n)
            b->texts[b->n++] = line;
        b->bytes += line.n;
    }
    b->ids = fl_calloc(b->bytes + b->n, sizeof(*b->ids));
    b->ends = fl_calloc(b->n + 1, sizeof(*b->ends));
    b->out = fl_calloc(b->n + 1, FL_STATIC_DIM_MAX * sizeof(float));
    if (!rc && (!b->ids || !b->ends || !b->out))
        rc = fl_fail_nomem(err);
    for (size_t i = 0; !rc && i < b->n; i++) {
        fl_buf_clear(&b->normal);
        fl_normal(b->texts[i], &b->normal);
        rc = fl_tokenizer_pieces(b->tokens, fl_buf_str(&b->normal), b->ids + have,
                                 b->bytes + b->n - have, &n, err);
        have += rc ? 0 : n;
        b->ends[i] = have;
    }
    if (!rc && b->n)
        printf("%zu texts, %.0f bytes and %.1f pieces on average\n", b->n,
               (double)b->bytes / (double)b->n, (double)have / (double)b->n);
    return rc;
}

int main(int argc, char **argv)
{
    struct bench *b = fl_calloc(1, sizeof(*b));
    fl_buf file;
    fl_err err;
    int rc;
    if (argc != 4 || !b) {
        fprintf(stderr, "usage: embed_bench TOKENS TABLE FILE\n");
        return 2;
    }
    fl_buf_init(&file, 1 << 30);
    fl_buf_init(&b->normal, 1 << 16);
    rc = prepare(b, argv, &file, &err);
    if (rc) {
        fprintf(stderr, "embed_bench: %s\n", err.msg);
        return 2;
    }
    measure(b, "count tokens", do_count);
    measure(b, "normalise", do_normal);
    measure(b, "pieces to vectors", do_pieces);
    measure(b, "pieces to vectors, plain truth", do_plain);
    measure(b, "text to vectors", do_text);
    fl_embedder_dispose(&b->embedder);
    fl_static_free(b->table);
    fl_tokenizer_free(b->tokens);
    fl_buf_dispose(&b->normal);
    fl_buf_dispose(&file);
    fl_free(b->ids);
    fl_free(b->ends);
    fl_free(b->out);
    return b->sink < 0 ? 1 : (fl_free(b), 0);
}
