#ifndef FL_EMBED_SEAL_H
#define FL_EMBED_SEAL_H
/*
 * The end of a model file: a mark and XXH3 of all bytes before it, so that a cut file or a flipped
 * bit is found before the file is believed.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { FL_SEAL_BYTES = 10 };

/* 0 and the hash, or FL_EINPUT. */
int fl_seal_check(fl_str file, uint64_t *hash);
/* Appends the seal of what is in `file`; what is sealed already is left alone. */
void fl_seal_add(fl_buf *file);

#endif
