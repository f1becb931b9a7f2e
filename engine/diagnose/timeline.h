#ifndef FL_DIAGNOSE_TIMELINE_H
#define FL_DIAGNOSE_TIMELINE_H
/*
 * The timeline's state, shared by timeline.c (which fills it), course.c (which reads its numbers)
 * and the report. See job.h for what the other parts may call.
 */
#include "diagnose/job.h"
#include "diagnose/signs.h"

#define FL_GAPS 4096
#define FL_SAVED 16
#define FL_PATH 400
#define FL_ENDS 4

struct fl_timeline {
    struct fl_metric_names names;
    struct fl_point *points; /* owned, as are their texts */
    size_t n, cap;
    uint16_t segment; /* steps fell back so many times */
    int64_t first_step, last_step, total, saving_step;
    int64_t restart_from, restart_step; /* of the latest fall-back */
    int64_t first_time, latest_time;    /* of all points; of no use when `mixed` */
    uint8_t time_clock;
    bool mixed; /* a point had no time, or one of another clock */
    struct fl_mark restart_at;
    bool restart_bar; /* told by a progress bar: an epoch's beginning */
    struct fl_mark last_progress, last_eval;
    int64_t time_after; /* of the first line with a time behind a progress without one */
    bool eval_nan;
    struct fl_point pending; /* latest evaluation; text owned */
    int64_t last_time;       /* us of the latest timed point, 0 none */
    int64_t gaps[FL_GAPS];   /* us between timed points */
    size_t ngaps;
    int main_kind; /* enum fl_peek of the rank whose lines make the points; main_rank */
    int32_t main_rank;
    uint32_t main_file;
    struct fl_mark sign[FL_SIGNS];
    char busy[FL_RANK_TEXT * 2]; /* the latest busy line, NUL-terminated */
    uint64_t signs[FL_SIGNS];
    struct {
        int64_t step;
        char path[FL_PATH];
    } saved[FL_SAVED]; /* newest first */
    size_t nsaved;
    struct {
        struct fl_mark at;
        const char *text; /* owned */
    } ends[FL_ENDS];
    size_t nends;
    uint32_t attempt_progress;
    uint64_t attempt_seq;
};

/* At the end of reading: where several files made points, brings them into the order of their
 * times, and reads the course anew. */
void fl_timeline_settle(struct fl_job *j);
enum fl_phase fl_timeline_phase(const struct fl_job *j, uint64_t before_seq);
/* The job said that it is done, after its last step. */
bool fl_timeline_ended(const struct fl_job *j);
/* The job said that it is done, or reached its last step. */
bool fl_timeline_finished(const struct fl_job *j);
/* Median time between timed metric lines, us; 0 unknown. */
int64_t fl_course_interval(const struct fl_job *j);
/* How long nothing had progressed at `until`, us; 0 when that is not out of the ordinary. */
int64_t fl_course_stall(const struct fl_job *j, const struct fl_mark *until);

#endif
