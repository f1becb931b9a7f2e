#ifndef FL_DIAGNOSE_CREW_H
#define FL_DIAGNOSE_CREW_H
/*
 * The crew: reads and scans with several threads, and hands out blocks in the order of the input.
 */
#include "match/match.h"
#include "read/reader.h"

#define FL_MAX_THREADS 16

/* One block, read and scanned. */
struct fl_part {
    struct fl_block block; /* .file counts within its input */
    struct fl_lines lines;
    struct fl_read_file file;         /* what is known of it behind this block */
    const struct fl_read_skip *skips; /* met before this block */
    size_t nskips;
    bool empty; /* no block: only skips, or the end of the input */
};

struct fl_crew_opts {
    fl_reader *reader; /* a list, see fl_reader_branch() */
    const fl_matcher *matcher;
    unsigned threads; /* 0: one a core, at most 8 */
    bool (*tag)(void *ctx, fl_str line, bool again, struct fl_tag *out); /* in any thread */
    void *tag_ctx;
    uint64_t seed[2];
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* may be NULL */
    void *progress_ctx;
};

/*
 * Calls `fold` for each block, one at a time and in the order of inputs and lines, from any of the
 * threads. Returns when all is read, or the first error in that order; an error of `fold` ends it.
 */
int fl_crew_run(const struct fl_crew_opts *o,
                int (*fold)(void *ctx, const struct fl_part *p, fl_err *err), void *ctx,
                fl_err *err);

#endif
