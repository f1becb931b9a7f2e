#ifndef FL_COMPRESS_SHAPE_H
#define FL_COMPRESS_SHAPE_H
/*
 * The shape of a line: what is left when numbers, addresses, ids and folders are masked.
 *
 * Two lines of one shape say the same of different ranks, steps or moments. What a number means
 * decides whether it is masked: Xids, exit codes, error numbers, signals, HTTP statuses and the
 * result codes of CUDA, NCCL and HCCL stay, so that two errors are never folded into one.
 */
#include "base/str.h"

#define FL_SHAPE_IN 1024 /* bytes of a line that are looked at */
#define FL_SHAPE_OUT 1040

/*
 * Writes the shape of a message (a line without its prefixes) and returns its length. *codes tells
 * whether a number was kept: if not, all lines that differ from this one in digits alone have this
 * shape. O(n).
 */
size_t fl_shape(fl_str message, char out[FL_SHAPE_OUT], bool *codes);

/* How much a text sounds like trouble, by its words: 0 nothing, 1 a warning, 2 an error, 3 the end
 * of something. A hint for the order in which lines are shown, and no evidence. */
int fl_badness(fl_str text);

#endif
