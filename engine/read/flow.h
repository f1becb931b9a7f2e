#ifndef FL_READ_FLOW_H
#define FL_READ_FLOW_H
/*
 * A flow gives bytes; flows stand on each other: file, decompressor, archive member, UTF-16.
 *
 * Not for other rooms. A fault after the first byte is not an error but an end with a note: what
 * came before a broken tail is as good as any log that stops early.
 */
#include <sys/types.h>

#include "base/err.h"

/* One sentence about a file; the first one stays. */
struct fl_note {
    char text[200];
};
__attribute__((format(printf, 2, 3))) void fl_note_set(struct fl_note *n, const char *fmt, ...);

typedef struct fl_flow fl_flow;
struct fl_flow {
    /* >0: bytes put at dst (n > 0), 0: the end, <0: an error code (FL_ENOMEM, or FL_EIO before the
     * first byte of a file). */
    ptrdiff_t (*read)(fl_flow *f, char *dst, size_t n, fl_err *err);
    void (*close)(fl_flow *f); /* frees this flow, not the one below */
    fl_flow *below;
    struct fl_note *note;
};

static inline ptrdiff_t fl_flow_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    return f->read(f, dst, n, err);
}
/* Closes a flow and all below it. NULL is fine. */
void fl_flow_close(fl_flow *top);
/* Reads until `n` bytes are there or the end: bytes, or <0. */
ptrdiff_t fl_flow_fill(fl_flow *f, char *dst, size_t n, fl_err *err);

/* Makers: each returns 0 and sets *out, or FL_ENOMEM with `below` still the caller's. */

/* Over an open descriptor, which it owns when `own`. `size` < 0 when it is no regular file. `total`
 * counts the bytes read. */
struct fl_fd_opts {
    int fd;
    bool own;
    int64_t size;
    uint64_t *total;
    ssize_t (*read)(void *ctx, int fd, void *buf, size_t n);
    void *read_ctx;
};
int fl_flow_fd(const struct fl_fd_opts *o, struct fl_note *note, fl_flow **out, fl_err *err);

/* Keeps the first bytes for a look, and gives them again when read. */
#define FL_HEAD 4096
int fl_flow_peek(fl_flow *below, fl_flow **out, fl_err *err);
/* The head, up to FL_HEAD bytes, before anything was read; <0 on error. Drops `skip` bytes of it.
 */
int fl_flow_head(fl_flow *peek, fl_str *head, fl_err *err);
void fl_flow_skip(fl_flow *peek, size_t skip);

/* Whether these first bytes are gzip, zstd or xz; then *out decodes `below`. */
bool fl_inflate_knows(fl_str head);
int fl_flow_inflate(fl_flow *below, fl_str head, fl_flow **out, fl_err *err);

/* UTF-16 (behind its byte order mark, skipped by the caller) as UTF-8. */
int fl_flow_utf16(fl_flow *below, bool big_endian, fl_flow **out, fl_err *err);

/* A tar archive. */
typedef struct fl_tar fl_tar;
bool fl_tar_knows(fl_str head);
int fl_tar_open(fl_flow *below, fl_tar **out, fl_err *err); /* owns `below` then */
/* 1 and the next regular member's name (good until the next call), 0 at the end, <0. */
int fl_tar_next(fl_tar *t, fl_str *name, fl_err *err);
/* A flow over the current member; a new one each time. */
int fl_tar_member(fl_tar *t, fl_flow **out, fl_err *err);
void fl_tar_close(fl_tar *t);
void fl_tar_note(fl_tar *t, struct fl_note *note);

#endif
