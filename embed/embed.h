#ifndef FL_EMBED_EMBED_H
#define FL_EMBED_EMBED_H
/*
 * Texts to vectors, whoever makes them: a table of functions, one a provider.
 *
 * Vectors have length 1, so that the inner product is the cosine; a text without a known word gives
 * the zero vector, which is like nothing. Vectors of two providers, or of two models of one, are
 * not comparable: keep `name` and `dim` beside each vector.
 */
#include "base/err.h"
#include "base/str.h"
#include "embed/tokens.h"

struct fl_embedder {
    char name[64]; /* the model: equal names give equal bits */
    uint32_t dim;
    void *ctx;
    /* Writes n * dim floats, row after row. On failure `out` is untouched or half written. */
    int (*embed)(void *ctx, const fl_str *texts, size_t n, float *out, fl_err *err);
    void (*free)(void *ctx);
};

/* Zeroed structs are fine. */
void fl_embedder_dispose(struct fl_embedder *e);

/*
 * The provider that needs nothing: the table of rows at `table_path`, made for this tokenizer,
 * which must outlive it. FL_EINPUT when the file is damaged, of another version, or made for
 * another tokenizer; FL_ENOTFOUND or FL_EIO when it cannot be read. Any number of threads may embed
 * at once. About 2 MB of memory and 1 ms.
 */
int fl_static_open(const char *table_path, const fl_tokenizer *tokens, struct fl_embedder *out,
                   fl_err *err);

#endif
