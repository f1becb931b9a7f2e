#ifndef FL_COMPRESS_DIGEST_H
#define FL_COMPRESS_DIGEST_H
/*
 * The digest: the lines of a job that are worth reading, within a budget of tokens.
 *
 * The caller offers lines in blocks, says what each is worth, and which must be there; this chooses
 * and writes the page. Each line is printed as FILE:LINE<TAB>text, so that it can be cited; what is
 * not a line of the log begins with '#'.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

#define FL_DIGEST_LEAST 500  /* tokens of the smallest budget */
#define FL_DIGEST_LINE 600   /* bytes shown of a line that is no evidence */
#define FL_DIGEST_PROOF 4096 /* and of one that is, if the budget allows */
#define FL_CUT_MARK "[...]"

enum fl_section {
    FL_SECTION_JOB,
    FL_SECTION_TIMELINE,
    FL_SECTION_EVIDENCE,
    FL_SECTION_EVENTS,
    FL_SECTION_TRACEBACKS,
    FL_SECTION_TAIL,
    FL_SECTION_REST,
    FL_SECTIONS
};

struct fl_digest_line {
    const char *name; /* of its file */
    uint32_t file;    /* orders the files */
    uint64_t line;
    fl_str text;                  /* printable; at the end as it is printed */
    size_t raw;                   /* bytes of it before it was made printable */
    uint32_t match_at, match_len; /* what is cut last, 0 unknown */
    uint32_t tokens, counted;     /* as it is printed with `counted` bytes of text at most */
    uint64_t hash;                /* its shape; 0 unknown */
    bool shown;
    enum fl_section section; /* when shown */
    /* What stands for it, told behind it: lines like it, up to where, by how many ranks. */
    uint64_t count, last_line;
    const char *last_name;
    uint32_t ranks;
    bool ranks_over;
    size_t joined; /* other shapes that differ in a word */
};

struct fl_digest_block {
    enum fl_section section;
    double value;
    bool must;
    size_t first, n; /* its lines in `order` */
    bool taken;
};

struct fl_digest {
    fl_arena arena;
    size_t budget;
    size_t (*count)(void *ctx, fl_str text);
    void *count_ctx;
    struct fl_digest_line *lines;
    size_t nlines, lines_cap;
    fl_map line_of; /* file and number -> line */
    struct fl_digest_block *blocks;
    size_t nblocks, blocks_cap;
    uint32_t *order; /* of each block's lines */
    size_t norder, order_cap;
    fl_buf heads[FL_SECTIONS]; /* '#' lines of each section */
    fl_buf top;
    size_t tokens;  /* of the page */
    size_t cut;     /* lines that were shortened for the budget */
    size_t missing; /* lines of `must` blocks that did not fit even so */
    fl_buf page;
    struct fl_digest_line **printed; /* in the order of the page */
    size_t nprinted;
    bool failed;
};

/* `count` gives the tokens of one line of text without its LF; it must not be 0 for a text. */
void fl_digest_init(struct fl_digest *d, size_t budget, size_t (*count)(void *ctx, fl_str text),
                    void *count_ctx);
void fl_digest_dispose(struct fl_digest *d);

/* Opens a block; the lines that follow are of it. */
void fl_digest_open(struct fl_digest *d, enum fl_section section, double value, bool must);
/* A line of the open block; one that was offered before is the same line, however its text was cut.
 * Copies. `cut`: bytes behind `text` that are not there. Returns its number. */
struct fl_digest_offer {
    const char *name;
    uint32_t file;
    uint64_t line;
    fl_str text;
    size_t cut;
    uint32_t match_at, match_len;
    uint64_t hash;
};
size_t fl_digest_add(struct fl_digest *d, const struct fl_digest_offer *o);
/* A line beginning with '#', on top of a section's or of the page's (FL_SECTIONS) lines. Always
 * printed; cut where all of them would take more than half of the budget. */
__attribute__((format(printf, 3, 4))) void fl_digest_say(struct fl_digest *d, int section,
                                                         const char *fmt, ...);
/* Chooses, once, and writes d->page. 0 or FL_ENOMEM. */
int fl_digest_finish(struct fl_digest *d, fl_err *err);

#endif
