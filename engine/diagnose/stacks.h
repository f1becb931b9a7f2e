#ifndef FL_DIAGNOSE_STACKS_H
#define FL_DIAGNOSE_STACKS_H
/*
 * Stack dumps of a hanging job.
 */
#include "diagnose/job.h"

/* A line that FL_SIGN_STACK matched. */
void fl_stacks_line(struct fl_job *j, fl_str message, fl_str line, const struct fl_mark *m);
/* True and *out filled when a few of many processes are not in a collective. */
bool fl_stacks_finding(struct fl_job *j, struct fl_finding *out);

#endif
