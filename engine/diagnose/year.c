/*
 * Dates without a year, once the year is known.
 *
 * syslog and glog print "Nov 20" or "E1120". Until some line of the job gives a full date such
 * times are kept in a stand-in leap year. When the year becomes known, what has been kept is moved
 * to it, once. Without that, a kernel log that is read first would lie fifty years before the job.
 */
#include "diagnose/job.h"

#include "diagnose/timeline.h"

#define DAY (86400 * 1000000LL)

static int64_t moved(int64_t t, int year)
{
    int64_t day = t / DAY;
    unsigned month = day >= fl_days_from_civil(FL_NO_YEAR, 3, 1) ? 3 : 1;

    if (t == FL_T_NONE || t < 0 || day < fl_days_from_civil(FL_NO_YEAR, 1, 1) ||
        day >= fl_days_from_civil(FL_NO_YEAR + 1, 1, 1))
        return t;
    return t +
           (fl_days_from_civil(year, month, 1) - fl_days_from_civil(FL_NO_YEAR, month, 1)) * DAY;
}

static void move_mark(struct fl_mark *m, int year)
{
    if (m->clock == FL_CLOCK_LOCAL)
        m->t = moved(m->t, year);
}

static void move_events(struct fl_job *j)
{
    for (size_t i = 0; i < j->nevents; i++) {
        move_mark(&j->events[i]->last, j->year);
        for (size_t h = 0; h < j->events[i]->nhits; h++) {
            struct fl_hit *hit = &j->events[i]->hits[h];
            if (hit->mark.clock == FL_CLOCK_LOCAL)
                hit->begin = moved(hit->begin, j->year);
            move_mark(&hit->mark, j->year);
            move_mark(&hit->latest, j->year);
        }
    }
}

static void move_timeline(struct fl_job *j)
{
    struct fl_timeline *t = j->timeline;

    for (size_t i = 0; i < t->n; i++)
        move_mark(&t->points[i].at, j->year);
    for (size_t i = 0; i < FL_SIGNS; i++)
        move_mark(&t->sign[i], j->year);
    for (size_t i = 0; i < t->nends; i++)
        move_mark(&t->ends[i].at, j->year);
    move_mark(&t->last_progress, j->year);
    move_mark(&t->last_eval, j->year);
    move_mark(&t->restart_at, j->year);
    move_mark(&t->pending.at, j->year);
    if (t->last_time)
        t->last_time = moved(t->last_time, j->year);
    if (t->n && !t->mixed && t->time_clock == FL_CLOCK_LOCAL) {
        t->first_time = moved(t->first_time, j->year);
        t->latest_time = moved(t->latest_time, j->year);
    }
}

void fl_job_rebase(struct fl_job *j)
{
    move_events(j);
    move_timeline(j);
    for (size_t i = 0; i < j->nwriters; i++) {
        move_mark(&j->writers[i].last, j->year);
        if (j->writers[i].clock == FL_CLOCK_LOCAL)
            j->writers[i].t = moved(j->writers[i].t, j->year);
    }
    for (size_t i = 0; i < j->nfiles; i++)
        if (j->files[i].clock == FL_CLOCK_LOCAL)
            j->files[i].t = moved(j->files[i].t, j->year);
    for (size_t i = 0; i < j->places.nranks; i++) {
        move_mark(&j->places.ranks[i].last, j->year);
        move_mark(&j->places.ranks[i].told, j->year);
    }
    for (size_t i = 0; i < j->waits.n; i++) {
        if (j->waits.v[i].mark.clock == FL_CLOCK_LOCAL)
            j->waits.v[i].begin = moved(j->waits.v[i].begin, j->year);
        move_mark(&j->waits.v[i].mark, j->year);
    }
    for (size_t i = 0; i < sizeof(j->teardown) / sizeof(*j->teardown); i++) {
        move_mark(&j->teardown[i], j->year);
        move_mark(&j->attempt_first[i], j->year);
    }
    for (size_t i = 0; i < j->ntracebacks; i++) {
        move_mark(&j->tracebacks[i].first, j->year);
        move_mark(&j->tracebacks[i].last, j->year);
    }
    move_mark(&j->quiet.point.at, j->year);
    move_mark(&j->first_line, j->year);
    move_mark(&j->last_line, j->year);
    move_mark(&j->latest, j->year);
}
