/*
 * embed_lines: this room on standard input and output, for the training scripts and for looking.
 *
 *   embed_lines normal                    each line as it is embedded
 *   embed_lines count TOKENS              each line's number of pieces, TAB, the line
 *   embed_lines pieces TOKENS             each line's pieces as ids, without normalising it
 *   embed_lines vectors TOKENS TABLE      each line's vector, as floats of this machine
 *   embed_lines golden TOKENS TABLE       the model's name; then each line, TAB, a hash of its
 * vector embed_lines like TOKENS TABLE TEXT    each line's likeness to TEXT, TAB, the line
 *   embed_lines size TOKENS               how many pieces there are, once a line
 *   embed_lines seal FILE OUT             FILE with its seal, as OUT
 *   embed_lines hash FILE                 the hash in a file's seal, 16 hex digits
 *
 * The scripts do not normalise or cut text themselves: what is trained is what is run. It refuses
 * to be more than that; a line is what stands between two newlines, and memory is one line's.
 */
#define _POSIX_C_SOURCE 200809L
#include "embed/embed.h"
#include "embed/normal.h"
#include "embed/seal.h"
#include "embed/static.h"

#include "base/file.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { IDS = 4096, FILE_MAX = 64 << 20, LINE_MAX = 1 << 20 };

/* What a verb needs for its lines. */
struct work {
    fl_tokenizer *tokens;
    struct fl_embedder embedder;
    fl_buf normal;
    float *vector, *other; /* of dim */
    size_t lines;
};
typedef int (*put_fn)(struct work *w, fl_str line, fl_err *err);

static int put_normal(struct work *w, fl_str line, fl_err *err)
{
    fl_buf_clear(&w->normal);
    fl_normal(line, &w->normal);
    printf("%.*s\n", FL_FMT(fl_buf_str(&w->normal)));
    return fl_buf_check(&w->normal, "a line", err);
}

static int put_count(struct work *w, fl_str line, fl_err *err)
{
    (void)err;
    printf("%zu\t%.*s\n", fl_tokenizer_count(w->tokens, line), FL_FMT(line));
    return 0;
}

static int put_pieces(struct work *w, fl_str line, fl_err *err)
{
    uint32_t ids[IDS];
    size_t n;
    int rc = fl_tokenizer_pieces(w->tokens, line, ids, IDS, &n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        printf(i ? " %" PRIu32 : "%" PRIu32, ids[i]);
    putchar('\n');
    return 0;
}

static int put_size(struct work *w, fl_str line, fl_err *err)
{
    (void)line;
    (void)err;
    printf("%zu\n", fl_tokenizer_size(w->tokens));
    return 0;
}

static int put_vector(struct work *w, fl_str line, fl_err *err)
{
    int rc = w->embedder.embed(w->embedder.ctx, &line, 1, w->vector, err);
    if (!rc)
        fwrite(w->vector, sizeof(float), w->embedder.dim, stdout);
    return rc;
}

/* The hash is of the vector's bits in little-endian order, as tests/unit/test_static.c has it. */
static int put_golden(struct work *w, fl_str line, fl_err *err)
{
    unsigned char bytes[4 * FL_STATIC_DIM_MAX];
    int rc = w->embedder.embed(w->embedder.ctx, &line, 1, w->vector, err);
    if (rc)
        return rc;
    for (uint32_t d = 0; d < w->embedder.dim; d++) {
        uint32_t u;
        memcpy(&u, w->vector + d, 4);
        for (int i = 0; i < 4; i++)
            bytes[4 * d + (uint32_t)i] = (unsigned char)(u >> (8 * i));
    }
    if (!w->lines++)
        printf("%s\n", w->embedder.name);
    printf("%.*s\t%016" PRIx64 "\n", FL_FMT(line), fl_hash64(bytes, 4 * w->embedder.dim, 0));
    return 0;
}

static int put_like(struct work *w, fl_str line, fl_err *err)
{
    double dot = 0;
    int rc = w->embedder.embed(w->embedder.ctx, &line, 1, w->vector, err);
    if (rc)
        return rc;
    for (uint32_t d = 0; d < w->embedder.dim; d++)
        dot += (double)w->vector[d] * w->other[d];
    printf("%.3f\t%.*s\n", dot, FL_FMT(line));
    return 0;
}

static int each_line(put_fn put, struct work *w, fl_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;
    while (!rc && (n = getline(&line, &cap, stdin)) >= 0) {
        if (n && line[n - 1] == '\n')
            n--;
        rc = put(w, fl_str_n(line, (size_t)n), err);
    }
    free(line);
    return rc;
}

/* Each of the paths and `text` may be NULL. */
static int with(const char *tokens, const char *table, const char *text, put_fn put, fl_err *err)
{
    struct work w = {0};
    fl_str other = fl_str_c(text);
    int rc = 0;
    fl_buf_init(&w.normal, 2 * LINE_MAX);
    if (tokens)
        rc = fl_tokenizer_open(tokens, &w.tokens, err);
    if (!rc && table)
        rc = fl_static_open(table, w.tokens, &w.embedder, err);
    if (!rc && table) {
        w.vector = fl_calloc(w.embedder.dim, sizeof(float));
        w.other = fl_calloc(w.embedder.dim, sizeof(float));
        rc = w.vector && w.other ? 0 : fl_fail_nomem(err);
    }
    if (!rc && text)
        rc = w.embedder.embed(w.embedder.ctx, &other, 1, w.other, err);
    if (!rc)
        rc = each_line(put, &w, err);
    fl_embedder_dispose(&w.embedder);
    fl_tokenizer_free(w.tokens);
    fl_buf_dispose(&w.normal);
    fl_free(w.vector);
    fl_free(w.other);
    return rc;
}

static int seal(const char *path, const char *out, fl_err *err)
{
    fl_buf b;
    int rc;
    fl_buf_init(&b, FILE_MAX);
    rc = fl_file_read(path, &b, err);
    if (!rc) {
        fl_seal_add(&b);
        rc = fl_buf_check(&b, path, err);
    }
    if (!rc)
        rc = fl_file_write_atomic(out, fl_buf_str(&b), err);
    fl_buf_dispose(&b);
    return rc;
}

static int hash(const char *path, fl_err *err)
{
    fl_buf b;
    uint64_t h;
    int rc;
    fl_buf_init(&b, FILE_MAX);
    rc = fl_file_read(path, &b, err);
    if (!rc && fl_seal_check(fl_buf_str(&b), &h))
        rc = fl_fail(err, FL_EINPUT, "%s: no seal, or one of other bytes", path);
    if (!rc)
        printf("%016" PRIx64 "\n", h);
    fl_buf_dispose(&b);
    return rc;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    fl_err err;
    int rc;
    if (argc == 2 && !strcmp(verb, "normal"))
        rc = with(NULL, NULL, NULL, put_normal, &err);
    else if (argc == 3 && !strcmp(verb, "count"))
        rc = with(argv[2], NULL, NULL, put_count, &err);
    else if (argc == 3 && !strcmp(verb, "pieces"))
        rc = with(argv[2], NULL, NULL, put_pieces, &err);
    else if (argc == 3 && !strcmp(verb, "size"))
        rc = with(argv[2], NULL, NULL, put_size, &err);
    else if (argc == 4 && !strcmp(verb, "vectors"))
        rc = with(argv[2], argv[3], NULL, put_vector, &err);
    else if (argc == 4 && !strcmp(verb, "golden"))
        rc = with(argv[2], argv[3], NULL, put_golden, &err);
    else if (argc == 5 && !strcmp(verb, "like"))
        rc = with(argv[2], argv[3], argv[4], put_like, &err);
    else if (argc == 4 && !strcmp(verb, "seal"))
        rc = seal(argv[2], argv[3], &err);
    else if (argc == 3 && !strcmp(verb, "hash"))
        rc = hash(argv[2], &err);
    else
        rc = fl_fail(
            &err, FL_EUSAGE,
            "usage: embed_lines normal|count|pieces|size|vectors|golden|like|seal|hash FILE...");
    if (rc)
        fprintf(stderr, "embed_lines: %s\n", err.msg);
    return rc ? 2 : 0;
}
