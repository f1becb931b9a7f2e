#ifndef FL_DIAGNOSE_LOOK_H
#define FL_DIAGNOSE_LOOK_H
/*
 * The log of a diagnosed job, line by line, once more.
 *
 *   look.c      what can be read again, and what was kept of the rest
 *   look_at.c   around a line, by expression, by rank
 *   answer.c    by the words of a question
 */
#include "diagnose/engine.h"
#include "diagnose/page.h"

struct fl_kept_line {
    uint32_t file;
    uint64_t line;
    fl_str text;
};

struct fl_log {
    const fl_engine *engine;
    const struct fl_diagnosis *d;
    const fl_reader *reader;
    struct fl_log_input { /* as it was when the log was opened */
        int64_t size, sec, nsec;
        bool regular;
    } * inputs;
    uint32_t *input_of;        /* by file */
    fl_map file_of;            /* name -> file */
    struct fl_kept_line *kept; /* by file and line, each once; made when needed */
    size_t nkept, kept_cap;
    bool sorted;
    fl_match_scratch *scratch;
    fl_buf text; /* the line that is handed out */
};

/* 0 goes on, a positive number ends the walk well, a negative code is an error. */
typedef int (*fl_walk_fn)(void *ctx, uint32_t file, uint64_t line, fl_str text, fl_err *err);
/* Every line of one file, or of all (UINT32_MAX), in reading order. What cannot be read again comes
 * out of what was kept, which `seen->note` tells. A cancel ends it, with seen->stopped. */
int fl_log_walk(fl_log *l, uint32_t only, const struct fl_log_look *look, struct fl_log_seen *seen,
                fl_walk_fn fn, void *ctx, fl_err *err);
/* What was kept of the log, sorted. */
int fl_log_keep(fl_log *l, fl_err *err);
/* Hands one line out; counts it. Positive when `fn` wants no more. */
int fl_log_give(fl_log *l, const struct fl_log_look *look, struct fl_log_seen *seen, uint32_t file,
                uint64_t line, fl_str text, fl_str match, bool asked);
static inline size_t fl_log_limit(const struct fl_log_look *look)
{
    return look->limit ? look->limit : 40;
}

#endif
