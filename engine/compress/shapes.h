#ifndef FL_COMPRESS_SHAPES_H
#define FL_COMPRESS_SHAPES_H
/*
 * All lines of a job, folded by shape: how often, where first and last, by how many ranks.
 *
 * Bounded: at most FL_SHAPES rows. The lines of shapes that found no room are counted, and the
 * latest of them are kept as they are, so that what ended the job is not lost in a log that never
 * repeats itself.
 */
#include "base/arena.h"

#define FL_SHAPES 16384
#define FL_SHAPES_BAD 4096        /* of these for lines that sound like trouble alone */
#define FL_LATEST 256             /* lines without room that are remembered, of each sort */
#define FL_SHAPE_TEXT 2048        /* bytes kept of a line */
#define FL_SHAPES_TEXT (8u << 20) /* of all; then FL_SHORT_LINE a line */
#define FL_SHORT_LINE 200
#define FL_RANK_BITS (16u << 20) /* bytes for the sets of ranks; then "at least" */

struct fl_at { /* a line of the job */
    uint64_t seq, line;
    uint32_t file;
};

struct fl_shape_row {
    uint64_t hash, count, bytes;
    struct fl_at first, last;
    fl_str text;    /* the first line */
    size_t cut;     /* bytes of it that are not kept */
    size_t body;    /* where its message begins */
    uint32_t ranks; /* different ones; 0: no line told its rank */
    int32_t rank;   /* of the latest line, -1 none */
    uint64_t *bits;
    uint32_t nbits;  /* of 64 ranks each */
    uint8_t badness; /* fl_badness */
    bool ranks_over; /* there may be more */
    uint8_t owner;   /* what the caller knows of the line, see fl_shapes_add() */
};

struct fl_late_line {
    struct fl_at at;
    int32_t rank;
    uint32_t n;
    char text[300];
};

struct fl_shapes {
    struct fl_shape_row *rows;
    size_t n, cap, bad;
    uint32_t *slots; /* row + 1; 0 free */
    size_t nslots;
    fl_arena arena;
    size_t text_bytes, bit_bytes;
    uint64_t lines, bytes;           /* all that was added */
    uint64_t lost_lines, lost_bytes; /* without a row */
    struct fl_late_line *latest[2];  /* rings of FL_LATEST: of these, plain and bad */
    uint64_t nlatest[2];
    bool failed; /* out of memory */
};

/* One line. `owner` is a mark of the caller's that stays with the shape's row, by `or`. */
struct fl_shape_line {
    uint64_t hash;
    fl_str text;
    size_t body; /* where the message begins */
    struct fl_at at;
    int32_t rank; /* -1 unknown */
    uint8_t owner, badness;
};

void fl_shapes_init(struct fl_shapes *t);
void fl_shapes_dispose(struct fl_shapes *t);
/* Counts one line. True when its shape is new. O(1); memory is bounded. */
bool fl_shapes_add(struct fl_shapes *t, const struct fl_shape_line *l);
/* NULL when the shape is not known. Good until the next fl_shapes_add(). */
struct fl_shape_row *fl_shapes_find(const struct fl_shapes *t, uint64_t hash);

#endif
