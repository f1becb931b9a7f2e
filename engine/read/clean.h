#ifndef FL_READ_CLEAN_H
#define FL_READ_CLEAN_H
/*
 * Raw bytes to clean lines, in place; and the line numbers of what results. Not for other rooms.
 */
#include "read/reader.h"

/* Line numbers of one block of text under construction. */
struct fl_marks {
    uint64_t first_line;
    uint64_t lfs; /* written so far */
    int64_t by;   /* the shift in force */
    struct fl_line_shift *v;
    size_t n, cap;
};
void fl_marks_start(struct fl_marks *m, uint64_t first_line);
void fl_marks_dispose(struct fl_marks *m);
/* The text written from offset `at` on is of this line of the file. 0 or FL_ENOMEM. */
int fl_marks_line(struct fl_marks *m, size_t at, uint64_t line);

/* What goes on across buffers. */
struct fl_clean {
    size_t cap;    /* longest segment */
    size_t seg;    /* bytes of the open segment so far */
    uint64_t line; /* its line, 1-based */
    uint8_t esc;   /* inside an escape sequence: which part */
    bool cut;      /* the open segment is over the cap */
    bool segments; /* the open line already gave a segment that a CR ended */
    uint64_t cut_lines, cut_bytes;
};

/* The buffer: cleaned bytes [0, done), raw bytes [raw, end). done <= raw. */
struct fl_clean_buf {
    char *p;
    size_t done, raw, end;
    size_t whole; /* cleaned bytes up to behind the last LF */
};

/*
 * Cleans all raw bytes; a last CR stays raw unless `final`, since its meaning depends on the next
 * byte. At the end of a file (`final`) an open segment gets its LF: the buffer must have room for
 * one byte behind `end`. Clean input costs no copy. Returns 0 or FL_ENOMEM.
 */
int fl_clean_run(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m, bool final);

/* Number of LFs. */
size_t fl_count_lf(const char *p, size_t n);

#endif
