#ifndef FL_EMBED_STATIC_H
#define FL_EMBED_STATIC_H
/*
 * The parts of the static table that tests and measurements look at one by one.
 *
 * The file, all numbers little-endian:
 *   8 bytes   "FLROWS\r\n"
 *   u32       version, 1
 *   u32       pieces
 *   u32       dimensions, a multiple of 64, at most 1,024
 *   u32       0
 *   u64       hash of the tokenizer
 *   u16       for each piece: the scale of its row, at most 32,767
 *   i8        for each piece: its row, -127 to 127
 *   10 bytes  seal (embed/seal.h)
 * The row of a piece is its scale times its numbers; how often the piece occurs is folded in.
 *
 * Version history: 1 is the first.
 */
#include "base/err.h"
#include "base/str.h"

enum {
    FL_STATIC_VERSION = 1,
    FL_STATIC_HEAD = 32,
    FL_STATIC_BLOCK = 64,
    FL_STATIC_DIM_MAX = 1024,
    FL_STATIC_PIECES_MAX = 512 /* of one text; what is behind them is not looked at */
};

typedef struct fl_static fl_static;

int fl_static_load(const char *path, uint64_t tokens_hash, size_t pieces, fl_static **out,
                   fl_err *err);
void fl_static_free(fl_static *t); /* NULL is fine */
uint32_t fl_static_dim(const fl_static *t);
uint64_t fl_static_hash(const fl_static *t);

/* Adds up the rows of at most FL_STATIC_PIECES_MAX pieces into sum[dim]; ids that the table does
 * not have are passed over. The second is the first one's plain truth, a number at a time. */
void fl_static_sum(const fl_static *t, const uint32_t *ids, size_t n, int32_t *sum);
void fl_static_sum_plain(const fl_static *t, const uint32_t *ids, size_t n, int32_t *sum);
/* The same direction with length 1; zeros stay zeros. */
void fl_static_unit(const int32_t *sum, uint32_t dim, float *out);

#endif
