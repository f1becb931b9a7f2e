#ifndef FL_READ_READER_H
#define FL_READ_READER_H
/*
 * fl_reader: the bytes of one job, file after file, as blocks of whole clean lines.
 *
 * Takes files, folders (one job each: all files below, sorted by name), "-" (stdin), FIFOs; looks
 * through gzip, zstd, xz and tar by their first bytes, never by their name. Unwraps container and
 * journal JSON. Memory does not grow with the input: one block and the decompressor's window.
 *
 * What a block's text is: the log's lines with
 *   - CR LF as LF; a lone CR ends a segment (a progress bar redrawn is many segments of one line);
 *     segments without text are dropped;
 *   - ANSI escape sequences and NULs removed; UTF-16 with a BOM turned into UTF-8;
 *   - Docker / fluent-bit / journald JSON unwrapped to the message, with a prefix that
 *     fl_prefix_parse() knows ("TIME stderr F " as in CRI files, "[pod/NAME/CONTAINER] "; for
 *     journald "TIME host ident[pid]: ");
 *   - CRI partial lines ("P") joined with what follows;
 *   - a segment longer than the cap cut at its end with what was dropped counted.
 * The same bytes give the same lines whatever the block size.
 * Clean input passes without a copy.
 */
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"

#define FL_READ_BLOCK (1u << 20) /* target bytes a block */
#define FL_READ_LINE_MAX                                                                           \
    (256u << 10) /* longest line kept; the excess is counted, not lost silently */

#define FL_READ_FILES 65536 /* most files of one job; further ones are skipped */
#define FL_READ_SKIPS 4096  /* most skips that are named */

typedef struct fl_reader fl_reader;

/* Where the n-th LF of a block is not the end of one line of the file. Sorted by `at`. */
struct fl_line_shift {
    uint32_t at; /* offset in the block: applies to all text at or behind it */
    int32_t by;  /* added to the line number */
};

struct fl_block {
    uint32_t file;       /* fl_reader_file() */
    uint64_t first_line; /* number of the block's first line in its file, 1-based */
    const char *data;    /* borrowed until the next call; ends with LF unless len == 0 */
    size_t len;
    const struct fl_line_shift *shifts;
    size_t nshifts;
    bool first, last; /* first or last block of its file; the last one may hold nothing */
};

struct fl_read_file {
    const char *name;    /* for people and answers: as given, or path below the given folder,
                            "archive.tar.gz/member" in archives, "-" for stdin */
    const char *path;    /* to open it again; NULL for stdin and archive members */
    uint64_t bytes;      /* read from disk (compressed size where compressed) */
    uint64_t text_bytes; /* after decompression */
    uint64_t lines;
    uint64_t cut_lines, cut_bytes; /* over the cap: how many lines, how many bytes dropped */
    const char *note; /* NULL, or one sentence: broken gzip tail, grew, was truncated, ... */
};

struct fl_read_skip {
    const char *name;
    const char *why; /* "binary file", "cannot be opened: Permission denied", ... */
};

struct fl_reader_opts {
    size_t block;    /* 0: FL_READ_BLOCK */
    size_t line_max; /* 0: FL_READ_LINE_MAX */
    /* Called now and then with bytes read so far and in all (0 when unknown). May be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
    /* NULL: read(2). Tests put short reads, EINTR and EIO here; same contract as read(2). */
    ssize_t (*read)(void *ctx, int fd, void *buf, size_t n);
    void *read_ctx;
};

/*
 * Lists the inputs; opens none yet. A named file that does not exist or cannot be read is
 * FL_EINPUT (the message names it); a file inside a folder that cannot be read is skipped and
 * noted. `label.json` files are never input. Hidden files, and files that hold NUL-rich binary
 * data, are skipped and noted in a folder; named by hand they are read as far as they are text.
 */
int fl_reader_open(const char *const *paths, size_t n, const struct fl_reader_opts *opts,
                   fl_reader **out, fl_err *err);
/* 1: *block filled, 0: all read, <0: error (only FL_ENOMEM or a named file that failed before its
 * first byte; a later fault ends that file with a note). */
int fl_reader_next(fl_reader *r, struct fl_block *block, fl_err *err);
void fl_reader_free(fl_reader *r);

/*
 * Several inputs at once. The reader is then a list: each input is read by a branch, in any thread,
 * and what came of it is put on the list's record in the order of inputs, by one thread.
 */
size_t fl_reader_inputs(const fl_reader *r);
/* The name of an input for people; *path is what opens it, NULL for stdin. */
const char *fl_reader_input(const fl_reader *r, size_t input, const char **path);
uint64_t fl_reader_total(const fl_reader *r); /* bytes of all inputs; 0 unknown */
/* A reader of one input, freed before `r` is; its files count from 0. */
int fl_reader_branch(const fl_reader *r, size_t input, fl_reader **out, fl_err *err);
/* As fl_reader_next(), and the block is the caller's: its text and shifts stand in `own`, which is
 * the one of an earlier call or all zero; fl_block_own_dispose() frees it. */
struct fl_block_own {
    char *room, *text;
    struct fl_line_shift *shifts;
    size_t room_n, text_cap, shifts_cap;
};
int fl_reader_next_own(fl_reader *r, struct fl_block_own *own, struct fl_block *block, fl_err *err);
void fl_block_own_dispose(struct fl_block_own *own);
bool fl_reader_ended(const fl_reader *r);     /* no further block will come */
uint64_t fl_reader_bytes(const fl_reader *r); /* read from disk so far */
/* Puts a file of a branch on the record of `r` (`again`: replaces the latest) or a skip; texts are
 * copied. FL_ELIMIT: there are FL_READ_FILES, and a skip says so instead. */
int fl_reader_record(fl_reader *r, const struct fl_read_file *f, bool again, fl_err *err);
int fl_reader_record_skip(fl_reader *r, const struct fl_read_skip *s, fl_err *err);

/* Those opened so far: an input is added when its first block is made, a member of an archive when
 * it is met. Of a member, `bytes` is what was read from the archive meanwhile. A returned pointer
 * is good until the next fl_reader_next(). */
size_t fl_reader_files(const fl_reader *r);
const struct fl_read_file *fl_reader_file(const fl_reader *r, size_t i);
size_t fl_reader_skips(const fl_reader *r);
const struct fl_read_skip *fl_reader_skip(const fl_reader *r, size_t i);

/* Line number of the text at offset `at`, given the number of LFs before it in the block. */
uint64_t fl_block_line(const struct fl_block *b, size_t at, uint64_t lfs_before);

#endif
