#ifndef FL_DIAGNOSE_SIGNS_H
#define FL_DIAGNOSE_SIGNS_H
/*
 * Signs: what is looked for besides failures. They are compiled into the same database as the
 * rules' patterns, so that one pass over a block finds both; their pattern ids start at FL_SIGN_ID.
 */
#include "match/match.h"

#define FL_SIGN_ID 0x40000000u

enum fl_sign {
    FL_SIGN_TRACEBACK, /* a traceback begins */
    FL_SIGN_METRIC,    /* may hold step, loss, speed */
    FL_SIGN_PLACE,     /* tells which rank, host, GPU belong together */
    FL_SIGN_CHECKPOINT,
    FL_SIGN_SAVED,  /* a checkpoint is complete */
    FL_SIGN_LOADED, /* resumed from a checkpoint */
    FL_SIGN_EVAL,
    FL_SIGN_END,      /* the job says that it is done */
    FL_SIGN_ATTEMPT,  /* a launcher starts the workers again */
    FL_SIGN_TEARDOWN, /* a launcher or scheduler ends what still runs */
    FL_SIGN_PULSE,    /* a watcher outside says that the job is still there */
    FL_SIGN_BUSY,     /* one rank prepares data, or does other long work of its own */
    FL_SIGN_STACK,    /* a dumped stack's process, thread or frame */
    FL_SIGN_WAIT,     /* a collective timed out, or what was enqueued last */
    FL_SIGNS
};

/* Index in *out equals the order in the table; .id = FL_SIGN_ID + enum fl_sign. */
size_t fl_signs(const struct fl_pattern **out);

#endif
