#ifndef FL_DIAGNOSE_WATCHDOG_H
#define FL_DIAGNOSE_WATCHDOG_H
/*
 * Collective time-outs of all ranks, read together.
 */
#include "diagnose/job.h"

#define FL_SUSPECTS 16

enum fl_wait_kind {
    FL_WAIT_NONE,     /* no time-out in the log */
    FL_WAIT_MISSING,  /* some ranks never entered: the suspects */
    FL_WAIT_MISMATCH, /* ranks wait at one number for different operations: the minority */
    FL_WAIT_ALL,      /* all entered, none finished: nobody is accused */
    FL_WAIT_UNKNOWN   /* too many are missing to accuse any */
};

struct fl_wait_verdict {
    enum fl_wait_kind kind;
    int64_t begin; /* us, of the first wait */
    uint8_t clock;
    int64_t seq, numel;
    char op[32];
    int32_t suspects[FL_SUSPECTS];
    size_t nsuspects;
};

/* A line with a time-out or with last enqueued work. */
void fl_watchdog_line(struct fl_job *j, fl_str message, fl_str line, const struct fl_mark *m);
/* At the end, after fl_places_settle. 0 or FL_ENOMEM. */
int fl_watchdog_judge(struct fl_job *j, struct fl_wait_verdict *out);
/* What the waits show as a cause of its own (a mismatch, a rank that was busy elsewhere): true and
 * *out filled. Its proof is in the job's arena. */
bool fl_watchdog_finding(struct fl_job *j, const struct fl_wait_verdict *v, struct fl_finding *out);
void fl_waits_dispose(struct fl_waits *w);

#endif
