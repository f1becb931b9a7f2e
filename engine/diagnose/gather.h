#ifndef FL_DIAGNOSE_GATHER_H
#define FL_DIAGNOSE_GATHER_H
/*
 * What is kept of the log, while it is read, for a digest of it: shapes, the lines around events,
 * whole tracebacks, the ends of files. Nothing of it takes part in the diagnosis.
 */
#include "compress/shapes.h"
#include "diagnose/job.h"

#define FL_MAX_CONTEXTS 1024
#define FL_CONTEXT_BEFORE 4
#define FL_CONTEXT_AFTER 4
#define FL_BACK_LINES 8192         /* how far a context looks back for its writer's lines */
#define FL_BACK_BYTES (512u << 10) /* and their bytes at most */
#define FL_CONTEXT_LINES (FL_CONTEXT_BEFORE + 1 + FL_CONTEXT_AFTER)
#define FL_MAX_WHOLE 96            /* different tracebacks kept whole */
#define FL_WHOLE_BYTES (16u << 10) /* of one traceback */
#define FL_OPEN_BYTES (8u << 20)   /* of all that are open */
#define FL_ENDING_LINES 16         /* of each file */
#define FL_ENDINGS_TEXT (6u << 20) /* of all files */
#define FL_KEPT_TEXT 1024          /* bytes of a line of these */

/* What is known of a line, kept with its shape. */
enum { FL_OWN_EVENT = 1, FL_OWN_NOISE = 2, FL_OWN_TRACEBACK = 4, FL_OWN_METRIC = 8 };

struct fl_kept {
    struct fl_at at;
    uint64_t hash;
    fl_str text;
    size_t cut;
};

struct fl_context {
    struct fl_kept line[FL_CONTEXT_LINES]; /* in order */
    size_t n, center;
    bool event; /* around a rule's hit, else around a new shape that sounds like trouble */
};

struct fl_whole {
    struct fl_kept *line;
    size_t n;
    uint64_t count;  /* tracebacks like it */
    uint32_t number; /* its fl_traceback, as long as that is kept */
    int32_t rank;
};

struct fl_ending { /* the last lines of a file */
    struct fl_kept line[FL_ENDING_LINES];
    size_t n;
    uint32_t file;
    bool several; /* ranks in it */
};

/* The last lines of the blocks before, of the same file. */
struct fl_back {
    struct fl_back_line {
        size_t at, len; /* in `text` */
        uint64_t number;
        struct fl_tag tag;
    } * v;
    size_t n, cap;
    fl_buf text;
};

struct fl_gather {
    fl_arena arena;
    struct fl_shapes shapes;
    struct fl_context *contexts;
    size_t ncontexts, contexts_cap;
    struct { /* contexts that wait for what comes after them */
        size_t context;
        uint64_t writer; /* the tag that its lines have */
        uint32_t file;
        unsigned left, patience;
    } waiting[16];
    size_t nwaiting;
    struct fl_whole *wholes;
    size_t nwholes, wholes_cap;
    fl_map whole_of;
    fl_buf *open; /* by writer: the lines of its open traceback */
    size_t nopen, open_cap, open_bytes;
    struct fl_back back;
    struct fl_ending *endings;
    size_t nendings, endings_cap, endings_text;
    bool failed;
};

struct fl_part;

int fl_gather_new(struct fl_gather **out, fl_err *err);
void fl_gather_free(struct fl_gather *g);
/* The shape and the start of the message, from a tag of fl_gather_tag(). */
static inline size_t fl_tag_body(const struct fl_tag *t)
{
    return (size_t)(t->b >> 48);
}
/* Fills a tag: shape, message start, rank. See fl_classes_opts.tag. */
bool fl_gather_tag(fl_str line, bool again, struct fl_tag *out);
/* A line as it was folded; `owner` is of FL_OWN_*, `i` its index in the block. */
void fl_gather_line(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                    size_t i, uint64_t number, uint8_t owner);
/* A line of a writer's traceback: `part` is never FL_TB_NONE. */
void fl_gather_traceback(struct fl_job *j, uint32_t writer, enum fl_tb_part part, fl_str line,
                         const struct fl_mark *m, uint64_t hash);
/* Behind all lines of a block, which may have none. */
void fl_gather_block(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines);

#endif
