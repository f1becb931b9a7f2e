/*
 * The timeline: how far the job came, in which phase it was, and the points of its metrics.
 *
 * One series is kept for the job, not one a rank: the first rank to report a step makes the point,
 * what others say of the same step fills gaps. A step that falls back far is a new beginning (a
 * resume, or an append to the same file). Trainers that print step and loss on two lines (progress
 * bar and dict, Composer's blocks) are joined here.
 *
 * When FL_MAX_POINTS is reached every second point of the older half goes, the first of a run of
 * NaN excepted where that leaves enough: what is looked for is at the end, and the past serves as
 * the yardstick.
 */
#include "diagnose/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

#define FOLLOW_AFTER 32 /* points, before the rank that made the last of them is followed alone */
#define FOLLOW_LINES                                                                               \
    100000 /* lines without a point of its own, after which any rank is read again */

int fl_timeline_new(struct fl_job *j, fl_err *err)
{
    struct fl_timeline *t = fl_calloc(1, sizeof(*t));

    if (!t)
        return fl_fail_nomem(err);
    fl_metric_names_init(&t->names);
    t->first_step = t->last_step = t->total = t->saving_step = -1;
    t->first_time = INT64_MAX;
    t->latest_time = INT64_MIN;
    j->timeline = t;
    return FL_OK;
}

void fl_timeline_free(struct fl_timeline *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        fl_free((char *)(uintptr_t)t->points[i].text);
    for (size_t i = 0; i < t->nends; i++)
        fl_free((char *)(uintptr_t)t->ends[i].text);
    fl_free((char *)(uintptr_t)t->pending.text);
    fl_free(t->points);
    fl_free(t);
}

static bool nan_begins(const struct fl_timeline *t, size_t i)
{
    const struct fl_metric *m = &t->points[i].m, *before = &t->points[i - 1].m;

    return (m->loss_nan || m->grad_nan) && !before->loss_nan && !before->grad_nan;
}

static void thin_out(struct fl_timeline *t)
{
    size_t half = t->n / 2, to = 0, begins = 0;

    for (size_t i = 1; i < half; i += 2)
        begins += nan_begins(t, i);
    for (size_t i = 0; i < t->n; i++) {
        struct fl_point *p = &t->points[i];
        if (i < half && i % 2 && (begins > half / 4 || !nan_begins(t, i))) {
            fl_free((char *)(uintptr_t)p->text);
            continue;
        }
        t->points[to++] = *p;
    }
    t->n = to;
}

/* A point of this time is there. */
static void span(struct fl_timeline *t, const struct fl_mark *at)
{
    t->mixed |= at->t == FL_T_NONE || (t->n > 1 && at->clock != t->time_clock);
    t->time_clock = at->clock;
    if (at->t < t->first_time)
        t->first_time = at->t;
    if (at->t > t->latest_time)
        t->latest_time = at->t;
}

static struct fl_point *add_point(struct fl_job *j, const struct fl_metric *m, fl_str line,
                                  const struct fl_mark *at)
{
    struct fl_timeline *t = j->timeline;
    struct fl_point *p;

    if (t->n >= FL_MAX_POINTS)
        thin_out(t);
    if (fl_grow((void **)&t->points, &t->cap, t->n + 1, sizeof(*t->points))) {
        j->failed = FL_ENOMEM;
        return NULL;
    }
    p = &t->points[t->n++];
    *p = (struct fl_point){
        .m = *m, .at = *at, .segment = t->segment, .text = fl_strdup_s(fl_str_sub(line, 0, 1200))};
    if (!p->text)
        j->failed = FL_ENOMEM;
    span(t, at);
    return p;
}

/* What the second line says of a step that has a point already. */
static void fill_point(struct fl_job *j, struct fl_point *p, const struct fl_metric *m, fl_str line,
                       const struct fl_mark *at)
{
    bool told = !isnan(p->m.loss) || p->m.loss_nan;

    if (!told && (!isnan(m->loss) || m->loss_nan)) {
        char *text = fl_strdup_s(fl_str_sub(line, 0, 1200));
        p->m.loss = m->loss;
        p->m.loss_nan = m->loss_nan;
        if (!text) {
            j->failed = FL_ENOMEM;
            return;
        }
        fl_free((char *)(uintptr_t)p->text);
        p->text = text;
        p->at = *at;
        span(j->timeline, at);
    }
    if (isnan(p->m.grad_norm) && !p->m.grad_nan) {
        p->m.grad_norm = m->grad_norm;
        p->m.grad_nan = m->grad_nan;
    }
    if (isnan(p->m.step_ms))
        p->m.step_ms = m->step_ms;
    if (isnan(p->m.rate))
        p->m.rate = m->rate;
    if (isnan(p->m.loss_scale))
        p->m.loss_scale = m->loss_scale;
    p->m.loss_absent = false;
}

bool fl_timeline_has_other_file(const struct fl_job *j, uint32_t file)
{
    const struct fl_timeline *t = j->timeline;

    return t->n >= FOLLOW_AFTER && t->main_file != file && j->files[t->main_file].place.rank >= 0 &&
           j->files[file].place.rank >= 0;
}

bool fl_timeline_follows_other(const struct fl_job *j, int kind, int32_t rank)
{
    const struct fl_timeline *t = j->timeline;

    return t->n >= FOLLOW_AFTER && kind == t->main_kind && kind != FL_PEEK_NONE &&
           rank != t->main_rank && j->seq - t->last_progress.seq < FOLLOW_LINES;
}

void fl_timeline_saw_time(struct fl_job *j, const struct fl_mark *m)
{
    struct fl_timeline *t = j->timeline;

    if (t->time_after == FL_T_NONE && t->last_progress.line && !t->last_progress.own_time &&
        m->own_time && m->clock == t->last_progress.clock && m->seq > t->last_progress.seq)
        t->time_after = m->t;
}

static void take_progress(struct fl_job *j, int64_t step, const struct fl_mark *at)
{
    struct fl_timeline *t = j->timeline;

    j->progress++;
    t->last_progress = *at;
    t->time_after = FL_T_NONE;
    if (step >= 0) {
        if (t->first_step < 0)
            t->first_step = step;
        t->last_step = step;
    }
    if (at->own_time && t->last_time != at->t) {
        if (t->last_time != 0 && t->ngaps < FL_GAPS && at->t > t->last_time)
            t->gaps[t->ngaps++] = at->t - t->last_time;
        t->last_time = at->t;
    }
}

/* A file whose steps lie outside the time of those that are known: another part of the job. */
static bool another_time(const struct fl_timeline *t, const struct fl_mark *at)
{
    return !t->mixed && t->time_clock == at->clock && at->own_time &&
           (at->t < t->first_time - 60000000 || at->t > t->latest_time + 60000000);
}

bool fl_timeline_metric(struct fl_job *j, fl_str message, fl_str line, const struct fl_mark *at)
{
    struct fl_timeline *t = j->timeline;
    struct fl_point *last = t->n ? &t->points[t->n - 1] : NULL;
    struct fl_metric m;

    if (!fl_metric_parse(message, &t->names, &m))
        return false;
    if (m.total > 0 && (!m.bar || t->total < 0))
        t->total = m.total;
    if (m.eval) {
        t->last_eval = *at;
        t->eval_nan = m.loss_nan;
        if (!isnan(m.loss) || m.loss_nan) {
            fl_free((char *)(uintptr_t)t->pending.text);
            t->pending = (struct fl_point){
                .m = m, .at = *at, .text = fl_strdup_s(fl_str_sub(line, 0, 1200))};
            if (!t->pending.text)
                j->failed = FL_ENOMEM;
        }
        return true;
    }
    if (m.step < 0) { /* a loss alone: belongs to the step told before */
        if (last && isnan(last->m.loss) && !last->m.loss_nan && at->seq - last->at.seq < 200)
            fill_point(j, last, &m, line, at);
        else if (last && at->seq - last->at.seq < 40 && !isnan(last->m.loss) &&
                 fl_str_has(message, FL_S("Train ")))
            fill_point(j, last, &m, line, at);
        else {
            m.step = last ? last->m.step : -1;
            add_point(j, &m, line, at);
            take_progress(j, -1, at);
        }
        return true;
    }
    if (last && m.step == last->m.step && last->segment == t->segment) {
        fill_point(j, last, &m, line, at);
        return true;
    }
    if (t->last_step >= 0 && m.step < t->last_step) {
        if (last && at->file != last->at.file) {
            if (!another_time(t, at))
                return true; /* another rank's file tells of the same steps */
        } else if (m.step + 1 + t->last_step / 50 >= t->last_step || m.bar ||
                   at->writer != last->at.writer)
            return true; /* another rank, a little behind; or an inner bar */
        t->segment++;
        t->restart_from = t->last_step;
        t->restart_at = *at;
        t->restart_step = m.step;
        t->restart_bar = m.bar || fl_str_has(message, FL_S("[batch="));
    }
    if (add_point(j, &m, line, at) && t->n < FOLLOW_AFTER) {
        t->main_kind = fl_prefix_peek_rank(line, &t->main_rank);
        t->main_file = at->file;
    }
    take_progress(j, m.step, at);
    return true;
}

/* "... to /path/x", "... iteration 1200", "global_step1200", "checkpoint-1200" */
static void note_checkpoint(struct fl_job *j, fl_str message, bool done)
{
    struct fl_timeline *t = j->timeline;
    static const char *const words[] = {"iteration", "step",         "checkpoint-", "global_step",
                                        "iter_",     "batch count:", "step_",       "step="};
    int64_t step = -1;
    ptrdiff_t at;
    uint64_t v;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words) && step < 0; i++) {
        fl_str rest = message;
        while (step < 0 && (at = fl_str_find(rest, fl_str_c(words[i]))) >= 0) {
            size_t q = (size_t)at + strlen(words[i]);
            while (q < rest.n && (rest.p[q] == ' ' || rest.p[q] == ':' || rest.p[q] == '='))
                q++;
            rest = fl_str_from(rest, q);
            if (fl_str_u64(rest, INT64_MAX, &v))
                step = (int64_t)v;
        }
    }
    if (!done) {
        t->saving_step = step;
        return;
    }
    if (step < 0)
        step = t->saving_step;
    if (step < 0)
        return; /* saved, but nobody says what */
    if (t->nsaved < FL_SAVED)
        t->nsaved++;
    memmove(t->saved + 1, t->saved, (FL_SAVED - 1) * sizeof(*t->saved));
    t->saved[0].step = step;
    t->saved[0].path[0] = 0;
    at = fl_str_find_c(message, '/');
    if (at >= 0) {
        size_t n = 0;
        fl_str path;
        while (at > 0 && !strchr(" '\"`=(", message.p[at - 1]))
            at--;
        path = fl_str_from(message, (size_t)at);
        while (n < path.n && !strchr(" '\"`,)]", path.p[n]))
            n++;
        n = n < FL_PATH - 1 ? n : FL_PATH - 1;
        memcpy(t->saved[0].path, path.p, n);
        t->saved[0].path[n] = 0;
    }
}

/* The first few and the latest. */
static void note_end(struct fl_job *j, fl_str line, const struct fl_mark *m)
{
    struct fl_timeline *t = j->timeline;
    const char *text = fl_strdup_s(fl_str_sub(line, 0, 1200));

    if (!text) {
        j->failed = FL_ENOMEM;
        return;
    }
    if (t->nends < FL_ENDS)
        t->nends++;
    else
        fl_free((char *)(uintptr_t)t->ends[FL_ENDS - 1].text);
    t->ends[t->nends - 1].at = *m;
    t->ends[t->nends - 1].text = text;
}

void fl_timeline_sign(struct fl_job *j, int kind, fl_str message, fl_str line,
                      const struct fl_mark *m)
{
    struct fl_timeline *t = j->timeline;

    t->sign[kind] = *m;
    t->signs[kind]++;
    switch (kind) {
    case FL_SIGN_CHECKPOINT:
        note_checkpoint(j, message, false);
        break;
    case FL_SIGN_SAVED:
        note_checkpoint(j, message, true);
        break;
    case FL_SIGN_BUSY:
        snprintf(t->busy, sizeof(t->busy), "%.*s",
                 FL_FMT(fl_str_sub(line, 0, sizeof(t->busy) - 1)));
        break;
    case FL_SIGN_END:
        note_end(j, line, m);
        break;
    case FL_SIGN_ATTEMPT:
        if (j->progress != t->attempt_progress || t->signs[kind] == 1 ||
            m->seq - t->attempt_seq > 50) {
            if (j->attempt + 1 < 64) {
                j->attempt++;
                j->attempt_first[j->attempt] = *m;
                j->attempt_progress = j->progress;
            }
        }
        t->attempt_progress = j->progress;
        t->attempt_seq = m->seq;
        break;
    default:
        break;
    }
}

static int by_time(const void *p, const void *q)
{
    const struct fl_point *a = p, *b = q;

    if (a->at.t != b->at.t)
        return a->at.t < b->at.t ? -1 : 1;
    return a->at.seq < b->at.seq ? -1 : 1;
}

/* A new series of steps at each fall-back. */
static void recount(struct fl_timeline *t)
{
    t->segment = 0;
    t->first_step = t->last_step = -1;
    for (size_t i = 0; i < t->n; i++) {
        struct fl_point *p = &t->points[i];
        if (p->m.step >= 0 && t->last_step >= 0 &&
            p->m.step < t->last_step - t->last_step / 50 - 1) {
            t->segment++;
            t->restart_from = t->last_step;
            t->restart_step = p->m.step;
            t->restart_at = p->at;
            t->restart_bar = p->m.bar;
        }
        p->segment = t->segment;
        if (p->m.step >= 0) {
            if (t->first_step < 0)
                t->first_step = p->m.step;
            t->last_step = p->m.step;
        }
    }
    t->last_progress = t->points[t->n - 1].at;
}

void fl_timeline_settle(struct fl_job *j)
{
    struct fl_timeline *t = j->timeline;
    bool several = false, timed = t->n > 0;

    for (size_t i = 0; i < t->n && timed; i++) {
        several |= t->points[i].at.file != t->points[0].at.file;
        timed = t->points[i].at.t != FL_T_NONE && t->points[i].at.clock == t->points[0].at.clock;
    }
    if (!several || !timed)
        return;
    qsort(t->points, t->n, sizeof(*t->points), by_time);
    recount(t);
}

static bool later(const struct fl_mark *a, const struct fl_mark *b)
{
    return a->line && (!b->line || a->seq > b->seq);
}

enum fl_phase fl_timeline_phase(const struct fl_job *j, uint64_t before_seq)
{
    const struct fl_timeline *t = j->timeline;
    const struct fl_mark *p = &t->last_progress;

    if (t->nends && later(&t->ends[t->nends - 1].at, p) &&
        t->ends[t->nends - 1].at.seq < before_seq)
        return FL_PHASE_SHUTDOWN;
    if (t->sign[FL_SIGN_CHECKPOINT].seq < before_seq && later(&t->sign[FL_SIGN_CHECKPOINT], p) &&
        !later(&t->sign[FL_SIGN_SAVED], &t->sign[FL_SIGN_CHECKPOINT]))
        return FL_PHASE_CHECKPOINT;
    if (t->sign[FL_SIGN_EVAL].seq < before_seq && later(&t->sign[FL_SIGN_EVAL], p))
        return FL_PHASE_EVALUATION;
    return j->progress ? FL_PHASE_ITERATING : FL_PHASE_STARTUP;
}

bool fl_timeline_ended(const struct fl_job *j)
{
    const struct fl_timeline *t = j->timeline;

    return t->nends && later(&t->ends[t->nends - 1].at, &t->last_progress);
}

bool fl_timeline_finished(const struct fl_job *j)
{
    const struct fl_timeline *t = j->timeline;

    if (fl_timeline_ended(j))
        return true;
    return t->total > 0 && t->last_step >= 0 && t->last_step >= t->total - 1;
}
