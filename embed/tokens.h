#ifndef FL_EMBED_TOKENS_H
#define FL_EMBED_TOKENS_H
/*
 * Text to pieces, by the SentencePiece model of embed/model/tokens.model.
 *
 * An open tokenizer never changes: any number of threads may use it at once.
 */
#include "base/err.h"
#include "base/str.h"

typedef struct fl_tokenizer fl_tokenizer;

/* Reads and checks the model (FL_EIO, FL_ENOTFOUND, FL_EINPUT when it is damaged or no such
 * model, FL_ENOMEM). It takes 6 ms, most of it for building the table of pieces. */
int fl_tokenizer_open(const char *model_path, fl_tokenizer **out, fl_err *err);
void fl_tokenizer_free(fl_tokenizer *t); /* NULL is fine */

/*
 * How many pieces one line has; any bytes. It never fails: when SentencePiece does, the number of
 * bytes is given, which is more than any text in ASCII has. A byte that is no UTF-8 counts as up
 * to three. About 8 MB/s. O(n) time; memory does not grow with the line.
 */
size_t fl_tokenizer_count(const fl_tokenizer *t, fl_str text);

/* The pieces' ids, at most `cap` of them; *n is how many were written. Text that is behind the
 * last of them is not looked at. */
int fl_tokenizer_pieces(const fl_tokenizer *t, fl_str text, uint32_t *ids, size_t cap, size_t *n,
                        fl_err *err);

/* How many ids there are, and the content hash of the model: what a table of rows is made for. */
size_t fl_tokenizer_size(const fl_tokenizer *t);
uint64_t fl_tokenizer_hash(const fl_tokenizer *t);

#endif
