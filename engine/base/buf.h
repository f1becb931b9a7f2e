#ifndef FL_BASE_BUF_H
#define FL_BASE_BUF_H
/*
 * fl_buf: a growing byte buffer with a hard maximum and a sticky error.
 *
 * Appending never fails visibly: when memory runs out or the maximum is reached the buffer
 * remembers it (`bad`) and ignores further appends, so a chain of appends is checked once, with
 * fl_buf_check(). The bytes are always NUL-terminated when p != NULL.
 */
#include "base/err.h"
#include "base/str.h"

typedef struct fl_buf {
    char *p;
    size_t n, cap, max;
    int bad; /* 0, FL_ENOMEM or FL_ELIMIT */
} fl_buf;

void fl_buf_init(fl_buf *b, size_t max); /* max: most bytes it may ever hold */
void fl_buf_dispose(fl_buf *b);
static inline fl_str fl_buf_str(const fl_buf *b)
{
    return (fl_str){b->p, b->n};
}
static inline void fl_buf_clear(fl_buf *b)
{
    b->n = 0;
    b->bad = 0;
    if (b->p)
        b->p[0] = 0;
}
void fl_buf_add(fl_buf *b, fl_str s);
void fl_buf_addz(fl_buf *b, const char *z);
void fl_buf_addc(fl_buf *b, char c);
__attribute__((format(printf, 2, 3))) void fl_buf_addf(fl_buf *b, const char *fmt, ...);
/* Drops bytes from the end until `n` remain. */
void fl_buf_cut(fl_buf *b, size_t n);
/* Room for `n` more bytes at p + n (behind the end), or NULL with `bad` set. The caller then adds
 * what it wrote to b->n. */
char *fl_buf_room(fl_buf *b, size_t n);
/* 0, or the sticky error with a message; `what` names the text that was built. */
int fl_buf_check(const fl_buf *b, const char *what, fl_err *err);
/* The bytes as a NUL-terminated string that the caller frees with fl_free; the buffer is empty
 * then. NULL when bad. */
char *fl_buf_take(fl_buf *b);

#endif
