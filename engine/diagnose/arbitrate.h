#ifndef FL_DIAGNOSE_ARBITRATE_H
#define FL_DIAGNOSE_ARBITRATE_H
/*
 * From events to the cause: candidates, what each gains and loses, and the verdict.
 */
#include "diagnose/job.h"
#include "diagnose/watchdog.h"

#define FL_FINDINGS 6
#define FL_REASONS 12

/* One cause in one attempt. */
struct fl_candidate_cause {
    uint16_t cause, attempt;
    struct fl_event **events; /* of this cause, strongest first */
    size_t nevents;
    const struct fl_event *best;
    const struct fl_finding *finding; /* when the timeline says it */
    struct fl_mark first;             /* its earliest hit */
    int64_t begin;                    /* when it began, us on first.clock */
    double score, strength;
    bool waited; /* its first hit ends a wait */
    bool root;   /* a root rule or a finding says it, not a symptom alone */
    bool out;    /* survived, stale or explained: takes no part */
    const char *why_out;
    const struct fl_candidate_cause *by;
    int confirms;
    const char *reasons[FL_REASONS];
    size_t nreasons;
};

enum fl_outcome { FL_OUTCOME_DIAGNOSED, FL_OUTCOME_UNKNOWN, FL_OUTCOME_HEALTHY };

struct fl_verdict {
    enum fl_outcome outcome;
    struct fl_candidate_cause *winner;   /* NULL unless diagnosed */
    struct fl_candidate_cause **ranking; /* all candidates of the attempt, best first */
    size_t nranking;
    uint16_t attempt;
    double confidence;
    const char *decided_by; /* rule, timeline, none */
    const char *reasons[FL_REASONS];
    size_t nreasons;
    struct fl_wait_verdict waits;
    struct fl_finding findings[FL_FINDINGS];
    size_t nfindings;
    const char *attempt_cause[64]; /* cause id of each attempt, NULL none */
};

/* Everything is allocated in the job's arena. 0 or FL_ENOMEM. */
int fl_arbitrate(struct fl_job *j, struct fl_verdict *out, fl_err *err);

/* stepback.c: steps came after this line, so that it cannot have ended the job. */
bool fl_survived_at(const struct fl_job *j, const struct fl_mark *m);

/* locate.c: the culprit's place. */
#define FL_PLACES 8
struct fl_location {
    int32_t ranks[FL_PLACES], hosts[FL_PLACES], gpu_indices[FL_PLACES];
    fl_str gpus[FL_PLACES];
    size_t nranks, nhosts, ngpus, ngpu_indices;
};
void fl_locate(struct fl_job *j, const struct fl_verdict *v, struct fl_location *out);

/* decide.c: the action. */
struct fl_decision {
    const struct fl_action *action;
    const char *why, *advice;
    int32_t exclude[FL_PLACES];
    size_t nexclude;
    int64_t resume_step, skip_from, skip_to; /* -1 none */
    const char *checkpoint;
};
void fl_decide(struct fl_job *j, const struct fl_verdict *v, const struct fl_location *where,
               struct fl_decision *out);

enum fl_class fl_verdict_class(const struct fl_job *j, const struct fl_verdict *v);

/* report.c: place and action of the public form alone. */
void fl_report_place(struct fl_job *j, const struct fl_location *w, struct fl_report *r);
void fl_report_action(struct fl_job *j, const struct fl_decision *d, struct fl_report *r);
/* report.c: the public form, in the job's arena. */
int fl_report_build(struct fl_job *j, const struct fl_verdict *v, const struct fl_location *where,
                    const struct fl_decision *d, struct fl_report *out, fl_err *err);

#endif
