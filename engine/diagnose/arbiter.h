#ifndef FL_DIAGNOSE_ARBITER_H
#define FL_DIAGNOSE_ARBITER_H
/*
 * What the parts of arbitration share: candidates.c makes the candidates of an attempt, stepback.c
 * takes those back that are survived, stale or explained, arbitrate.c scores the rest.
 */
#include "diagnose/arbitrate.h"

#define FL_US 1000000LL

struct fl_arbiter {
    struct fl_job *j;
    struct fl_verdict *v;
    struct fl_candidate_cause *c; /* of the attempt that is being judged */
    size_t n;
    struct fl_mark job_first; /* earliest timed line of the job's own logs; line 0: none */
};

const struct fl_cause *fl_arbiter_cause(const struct fl_arbiter *a,
                                        const struct fl_candidate_cause *c);
/* Order of two beginnings: waits are moved back to their start. */
enum fl_order fl_arbiter_began(const struct fl_candidate_cause *x,
                               const struct fl_candidate_cause *y);
/* A symptom alone, or a last resort. */
bool fl_arbiter_weak(const struct fl_arbiter *a, const struct fl_candidate_cause *c);

/* candidates.c. 0 or FL_ENOMEM. */
int fl_candidates_gather(struct fl_arbiter *a, uint16_t attempt, fl_err *err);
void fl_candidates_add_findings(struct fl_arbiter *a, uint16_t attempt);
int fl_candidates_add_confirmed(struct fl_arbiter *a, uint16_t attempt, fl_err *err);
void fl_candidates_confirm(struct fl_arbiter *a, uint16_t attempt);

/* stepback.c */
void fl_arbiter_find_start(struct fl_arbiter *a);
void fl_events_set_aside(struct fl_arbiter *a); /* marks events survived or stale, once a job */
void fl_candidates_step_back_alone(struct fl_arbiter *a);
void fl_candidates_judge_bystanders(struct fl_arbiter *a);
void fl_candidates_explain(struct fl_arbiter *a);

#endif
