/*
 * What the numbers show when nothing printed an error: NaN, divergence, slow-down, stall, a resume
 * that started over.
 *
 * All yardsticks are the job's own history (medians and the median absolute deviation, MAD), never
 * fixed values: a loss of 8 is a collapse for one model and a first step for another. The
 * thresholds stand here and nowhere else:
 *
 * SPIKE_MADS, SPIKE_LEAST, SPIKE_SHARE: the loss has left its level when it stands above the median
 * of its best stretch by 6 MAD, and by 0.3, and by 12 % of that median.
 *
 * SPIKE_RUN: and this for at least 3 points that are the last ones. A loss that came back down has
 * recovered and is no failure (a healthy run of BigScience climbed from 2.9 to 8 and returned
 * within 600 iterations).
 *
 * NAN_RUN: 3 points with NaN at the end. A NaN that training got over is mixed precision at work.
 *
 * SLOW_RATIO: step time 1.6 times the median of the first half, in 4 of 5 of the last points.
 *
 * STALL_LEAST, STALL_MEDIANS: no progress for 10 minutes and for 5 median intervals, while the log
 * went on.
 *
 * QUIET_LEAST: no first step, and nothing printed for 30 minutes when the job was ended.
 */
#include "diagnose/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

#define WINDOW 50
#define SPIKE_MADS 6.0
#define SPIKE_LEAST 0.3
#define SPIKE_SHARE 0.12
#define SPIKE_RUN 3
#define SPIKE_POINTS 10
#define NAN_RUN 3
#define SLOW_RATIO 1.6
#define SLOW_POINTS 5
#define STALL_LEAST (600 * 1000000LL)
#define STALL_MEDIANS 5
#define QUIET_LEAST (1800 * 1000000LL)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

int64_t fl_course_interval(const struct fl_job *j)
{
    struct fl_timeline *t = j->timeline;
    int64_t copy[FL_GAPS];

    if (t->ngaps < 2)
        return 0;
    memcpy(copy, t->gaps, t->ngaps * sizeof(*copy));
    qsort(copy, t->ngaps, sizeof(*copy), by_time);
    return copy[t->ngaps / 2];
}

static bool bad(const struct fl_point *p)
{
    return p->m.loss_nan ||
           (p->m.grad_nan && (p->m.loss_absent || p->m.loss == 0 || !(p->m.loss_scale > 1))) ||
           p->m.nans > 0;
}

/* One more line that shows it. */
static void prove(struct fl_finding *f, const struct fl_point *p)
{
    size_t n = 0;

    while (n < sizeof(f->proof) / sizeof(*f->proof) && f->proof[n]) {
        if (f->proof[n] == p)
            return;
        n++;
    }
    if (n < sizeof(f->proof) / sizeof(*f->proof) && p->text)
        f->proof[n] = p;
}

/* ---- NaN ---- */

static bool find_nan(struct fl_job *j, struct fl_finding *f)
{
    struct fl_timeline *t = j->timeline;
    size_t run = 0, first;

    while (run < t->n && bad(&t->points[t->n - 1 - run]))
        run++;
    if (run == 0 && !(t->eval_nan && t->pending.text))
        return false;
    if (run > 0 && run < NAN_RUN && !t->points[t->n - 1].m.loss_nan && !t->eval_nan)
        return false;
    first = t->n - run;
    *f = (struct fl_finding){
        .cause = "fw.nan", .strength = 84, .first_bad_step = -1, .last_good_step = -1};
    if (run) {
        f->first_bad_step = t->points[first].m.step;
        prove(f, &t->points[first]);
        for (size_t i = first + 1; i < t->n && i < first + 4; i++)
            prove(f, &t->points[i]);
        prove(f, &t->points[t->n - 1]);
        if (first > 0) {
            f->last_good_step = t->points[first - 1].m.step;
            prove(f, &t->points[first - 1]);
        }
    } else {
        prove(f, &t->pending);
        f->strength = 70;
    }
    f->why = fl_arena_f(&j->arena,
                        "loss or gradient norm is NaN or infinite from step %lld on, in %zu"
                        " points to the end",
                        (long long)f->first_bad_step, run);
    return true;
}

/* ---- divergence ---- */

struct level {
    double median, mad, top;
    size_t end; /* the stretch ends before this point */
};

/* The stretch of WINDOW points with the lowest median, before `until`. */
static bool best_level(const struct fl_point **v, size_t until, struct level *out)
{
    double w[WINDOW], d[WINDOW], m;
    size_t step = until / 400 + 1, width = until < 2 * WINDOW ? until / 2 : WINDOW;
    bool found = false;

    if (width < 5)
        return false;
    for (size_t e = width; e <= until; e += step) {
        for (size_t i = 0; i < width; i++)
            w[i] = v[e - width + i]->m.loss;
        m = median(w, width);
        if (found && m >= out->median)
            continue;
        for (size_t i = 0; i < width; i++)
            d[i] = fabs(v[e - width + i]->m.loss - m);
        *out = (struct level){m, median(d, width), w[width - 1 - width / 20], e};
        found = true;
    }
    return found;
}

static double limit_of(const struct level *l)
{
    double by_mad = SPIKE_MADS * l->mad, by_share = SPIKE_SHARE * fabs(l->median),
           over = SPIKE_LEAST;

    if (by_mad > over)
        over = by_mad;
    if (by_share > over)
        over = by_share;
    return l->median + over > l->top ? l->median + over : l->top;
}

/* First index of the final run of points above the limit; one dip in eight is allowed. */
static size_t run_start(const struct fl_point **v, size_t n, double limit)
{
    size_t start = n, dips = 0;

    for (size_t i = n; i-- > 0;) {
        if (v[i]->m.loss > limit)
            start = i;
        else if (++dips > (n - i) / 8)
            break;
    }
    return start;
}

/* Steps began again near nothing though there were checkpoints. The loss is high then, and that is
 * no divergence. */
/* Steps from one printed line to the next, as the last two tell. */
static int64_t point_distance(const struct fl_timeline *t)
{
    return t->n < 2 ? 0 : t->points[t->n - 1].m.step - t->points[t->n - 2].m.step;
}

static bool started_over(const struct fl_timeline *t)
{
    return t->segment && !t->restart_bar && (t->signs[FL_SIGN_LOADED] || t->signs[FL_SIGN_SAVED]) &&
           (t->restart_step <= 10 || t->restart_step <= point_distance(t)) &&
           t->restart_from >= 20 && t->restart_step * 5 <= t->restart_from;
}

static bool find_spike(struct fl_job *j, struct fl_finding *f)
{
    struct fl_timeline *t = j->timeline;
    const struct fl_point **v = fl_malloc((t->n + 1) * sizeof(*v));
    struct level l;
    size_t n = 0, start;
    double limit;
    bool found = false;

    if (!v) {
        j->failed = FL_ENOMEM;
        return false;
    }
    for (size_t i = 0; i < t->n; i++)
        if (isfinite(t->points[i].m.loss) && !t->points[i].m.eval)
            v[n++] = &t->points[i];
    if (n >= SPIKE_POINTS && best_level(v, n, &l)) {
        limit = limit_of(&l);
        start = run_start(v, n, limit);
        if (n - start >= SPIKE_RUN && start >= 5 && start >= l.end - l.end / 4 &&
            !(started_over(t) && v[start]->segment != v[start - 1]->segment)) {
            *f = (struct fl_finding){.cause = "fw.loss_spike",
                                     .strength = 78,
                                     .first_bad_step = v[start]->m.step,
                                     .last_good_step = v[start - 1]->m.step};
            for (size_t i = start; i < n && i < start + 4; i++)
                prove(f, v[i]);
            prove(f, v[n - 1]);
            prove(f, v[(start + n) / 2]);
            prove(f, v[start - 1]);
            f->why = fl_arena_f(&j->arena,
                                "the loss left its level of %.3g at step %lld and stood at %.3g"
                                " at the end, %zu points later",
                                l.median, (long long)v[start]->m.step, v[n - 1]->m.loss, n - start);
            found = f->why != NULL;
        }
    }
    fl_free(v);
    return found;
}

/* ---- slow-down ---- */

/* Milliseconds a step: as printed, else from the rate, else from the times of the lines. */
static double step_cost(const struct fl_timeline *t, size_t i)
{
    const struct fl_point *p = &t->points[i], *q = i ? p - 1 : NULL;

    if (isfinite(p->m.step_ms) && p->m.step_ms > 0)
        return p->m.step_ms;
    if (isfinite(p->m.rate) && p->m.rate > 0)
        return 1e6 / p->m.rate;
    if (q && p->at.own_time && q->at.own_time && p->at.clock == q->at.clock &&
        p->m.step > q->m.step && p->at.t > q->at.t)
        return (double)(p->at.t - q->at.t) / 1000 / (double)(p->m.step - q->m.step);
    return NAN;
}

static bool find_slowdown(struct fl_job *j, struct fl_finding *f)
{
    struct fl_timeline *t = j->timeline;
    double *v = fl_malloc((t->n + 1) * 2 * sizeof(*v)), *copy = v + t->n + 1, early, late;
    size_t n = 0, slow = 0, tail, *at = fl_malloc((t->n + 1) * sizeof(*at)), first = 0, plateau;
    bool found = false;

    if (!v || !at) {
        j->failed = FL_ENOMEM;
        goto out;
    }
    for (size_t i = 2; i < t->n; i++) {
        double c = step_cost(t, i);
        if (isfinite(c) && t->points[i].segment == t->segment) {
            at[n] = i;
            v[n++] = c;
        }
    }
    if (n < 3 * SLOW_POINTS)
        goto out;
    tail = n / 5 > SLOW_POINTS ? n / 5 : SLOW_POINTS;
    memcpy(copy, v, n / 2 * sizeof(*v));
    early = median(copy, n / 2);
    memcpy(copy, v + n - tail, tail * sizeof(*v));
    late = median(copy, tail);
    for (size_t i = n - tail; i < n; i++)
        slow += v[i] > early * SLOW_RATIO * 0.85;
    for (first = n; first > 0 && v[first - 1] > early * 1.25; first--)
        ;
    if (late < early * SLOW_RATIO || slow * 5 < tail * 4 || first >= n)
        goto out;
    *f = (struct fl_finding){.cause = "fw.slowdown",
                             .strength = 66,
                             .first_bad_step = t->points[at[first]].m.step,
                             .last_good_step = first ? t->points[at[first - 1]].m.step : -1};
    prove(f, &t->points[at[first]]);
    for (plateau = first; plateau + 1 < n && v[plateau] < late * 0.9; plateau++)
        ;
    for (size_t i = plateau; i < n && i < plateau + 4; i++)
        prove(f, &t->points[at[i]]);
    prove(f, &t->points[at[n - 1]]);
    prove(f, &t->points[at[n - 1 - tail / 2]]);
    if (first)
        prove(f, &t->points[at[first - 1]]);
    f->why = fl_arena_f(&j->arena,
                        "a step takes %.1f times what it took in the first half, from step"
                        " %lld to the end, without an error",
                        late / early, (long long)f->first_bad_step);
    found = f->why != NULL;
out:
    fl_free(v);
    fl_free(at);
    return found;
}

/* ---- stall ---- */

int64_t fl_course_stall(const struct fl_job *j, const struct fl_mark *until)
{
    struct fl_timeline *t = j->timeline;
    int64_t gap, least = STALL_LEAST, interval = fl_course_interval(j);

    if (!j->progress || !t->last_progress.line || until->t == FL_T_NONE ||
        t->last_progress.t == FL_T_NONE || until->clock != t->last_progress.clock)
        return 0;
    gap = until->t - t->last_progress.t;
    if (interval * STALL_MEDIANS > least)
        least = interval * STALL_MEDIANS;
    return gap >= least ? gap : 0;
}

/* How long the steps took that were printed, without times of their own, after the line from which
 * the last of them has its time. */
static int64_t untimed_steps(const struct fl_timeline *t)
{
    double ms = 0;
    size_t first = t->n;

    while (first && !t->points[first - 1].at.own_time &&
           t->points[first - 1].at.t == t->last_progress.t)
        first--;
    for (size_t i = first + 1; i < t->n; i++) {
        int64_t steps = t->points[i].m.step - t->points[i - 1].m.step;
        double cost = t->points[i].m.step_ms;
        if (steps > 0 && isfinite(cost) && cost > 0)
            ms += cost * (double)steps;
    }
    return ms < 1e12 ? (int64_t)(ms * 1000) : 0;
}

static bool find_stall(struct fl_job *j, struct fl_finding *f)
{
    struct fl_timeline *t = j->timeline;
    int64_t gap = fl_course_stall(j, &j->latest);
    bool pulse = t->signs[FL_SIGN_PULSE] > 0 && t->sign[FL_SIGN_PULSE].seq > t->last_progress.seq;
    /* A progress bar has no time: its step may be as late as the next line that has one. */
    bool loose = gap && !t->last_progress.own_time &&
                 (t->time_after == FL_T_NONE || j->latest.t - t->time_after < STALL_LEAST);

    if (loose && (gap -= untimed_steps(t)) < STALL_LEAST)
        gap = 0;

    if (fl_timeline_ended(j) || (fl_timeline_finished(j) && !j->teardown[j->attempt].line) ||
        (!gap && !(pulse && j->progress && t->signs[FL_SIGN_PULSE] > 2)))
        return false;
    *f = (struct fl_finding){.cause = "fw.hang",
                             .strength = loose ? 44 : 62,
                             .first_bad_step = -1,
                             .last_good_step = t->last_step};
    f->proof[0] = t->n ? &t->points[t->n - 1] : NULL;
    f->why =
        gap ? fl_arena_f(&j->arena,
                         "no progress for %s%lld minutes after step %lld while the log went"
                         " on",
                         loose ? "perhaps " : "", (long long)(gap / 60000000),
                         (long long)t->last_step)
            : fl_arena_f(&j->arena, "no progress after step %lld while watchers went on printing",
                         (long long)t->last_step);
    return f->why != NULL;
}

/* Silence before the first step, until somebody ended the job. */
static bool find_quiet_start(struct fl_job *j, struct fl_finding *f)
{
    const struct fl_quiet *q = &j->quiet;
    int64_t us = q->us;

    if (us < QUIET_LEAST || q->attempt != j->attempt || j->progress != j->attempt_progress)
        return false;
    for (size_t i = 0; i < j->nfiles; i++) { /* did another file go on? */
        int64_t late = j->files[i].t - q->point.at.t;
        if (i != q->point.at.file && j->files[i].t != FL_T_NONE && !j->files[i].kernel &&
            j->files[i].clock == q->point.at.clock && late > 0 && late < q->us && q->us - late < us)
            us = q->us - late;
    }
    if (us < QUIET_LEAST)
        return false;
    *f = (struct fl_finding){
        .cause = "fw.hang", .strength = 62, .first_bad_step = -1, .last_good_step = -1};
    f->proof[0] = &q->point;
    f->why = fl_arena_f(&j->arena,
                        "nothing was printed for %lld minutes before the job was ended, and no"
                        " step had been made",
                        (long long)(us / 60000000));
    return f->why != NULL;
}

/* ---- resume that started over ---- */

static bool find_lost_resume(struct fl_job *j, struct fl_finding *f)
{
    struct fl_timeline *t = j->timeline;
    const struct fl_point *after = NULL, *before = NULL;

    if (!started_over(t))
        return false;
    for (size_t i = 1; i < t->n; i++)
        if (t->points[i].segment == t->segment && t->points[i - 1].segment != t->segment)
            after = &t->points[i], before = &t->points[i - 1];
    if (!after)
        return false;
    *f = (struct fl_finding){.cause = "fw.resume_lost",
                             .strength = 64,
                             .first_bad_step = t->restart_step,
                             .last_good_step = t->restart_from};
    f->proof[0] = after;
    f->proof[1] = before;
    f->why = fl_arena_f(&j->arena, "steps began again at %lld after %lld had been reached",
                        (long long)t->restart_step, (long long)t->restart_from);
    return f->why != NULL;
}

void fl_timeline_findings(struct fl_job *j, struct fl_finding *out, size_t max, size_t *n)
{
    static bool (*const looks[])(struct fl_job *, struct fl_finding *) = {
        find_nan, find_spike, find_lost_resume, find_stall, find_quiet_start, find_slowdown};

    *n = 0;
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks) && *n < max; i++)
        if (looks[i](j, &out[*n]))
            (*n)++;
}
