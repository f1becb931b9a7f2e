#ifndef FL_READ_UNWRAP_H
#define FL_READ_UNWRAP_H
/*
 * Container and journal records to the lines that the program printed. Not for other rooms.
 */
#include "base/buf.h"
#include "read/clean.h"

enum fl_unwrap_mode { FL_UNWRAP_NONE, FL_UNWRAP_JSON, FL_UNWRAP_CRI };

/* A record's text whose rest is in a later record; one for stdout, one for stderr. */
struct fl_unwrap_part {
    fl_buf text; /* with its prefix */
    uint64_t line;
    bool open;
};

struct fl_unwrap {
    enum fl_unwrap_mode mode;
    size_t cap; /* longest line */
    struct fl_unwrap_part part[2];
    fl_buf out, text, scratch, prefix;
    struct fl_marks marks;
    bool started; /* marks know the block's first line */
    uint64_t cut_lines, cut_bytes;
};

/* `room`: most bytes of text that one block can give. */
void fl_unwrap_init(struct fl_unwrap *u, size_t cap, size_t room);
void fl_unwrap_dispose(struct fl_unwrap *u);
/* Starts a file; its first line tells what it is. */
void fl_unwrap_start(struct fl_unwrap *u, fl_str first_line);
/* Turns the block's text into the unwrapped text, which lives until the next call. At the `last`
 * block open parts are given out. `in` may be what *out is. */
int fl_unwrap_run(struct fl_unwrap *u, struct fl_block *block, bool last, fl_err *err);

#endif
