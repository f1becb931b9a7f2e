/*
 * Stepping back: what takes no part, and why.
 *
 *   survived    training went on after it
 *   stale       a kernel or scheduler line from before the job
 *   over        the log says that the trouble was over, and the job failed later
 *   explained   by another candidate's cause (rules/taxonomy.yaml) that did not begin after it
 *   overridden  by an act of a scheduler or operator that came first; or itself such an act, of
 *               what came before it
 *
 * Unknown order is no order: a candidate is explained only where nothing speaks against it, and a
 * last resort or a symptom gives way to a root of the same burst whichever was printed first, since
 * streams are buffered. Each step back is kept as a sentence for the answer.
 */
#include "diagnose/arbiter.h"

#include <stdlib.h>

#include "diagnose/timeline.h"

#define BURST (90 * FL_US)          /* errors this near to each other are one burst */
#define RECOVERED_FOR (120 * FL_US) /* a failure this long after a recovery is another one */

const struct fl_cause *fl_arbiter_cause(const struct fl_arbiter *a,
                                        const struct fl_candidate_cause *c)
{
    return &a->j->rules->causes[c->cause];
}

/* Order of two beginnings: waits are moved back to their start. */
enum fl_order fl_arbiter_began(const struct fl_candidate_cause *x,
                               const struct fl_candidate_cause *y)
{
    struct fl_mark mx = x->first, my = y->first;

    if (x->begin != FL_T_NONE && y->begin != FL_T_NONE && mx.clock == my.clock &&
        mx.clock != FL_CLOCK_NONE && mx.own_time && my.own_time &&
        (x->begin != mx.t || y->begin != my.t)) {
        int64_t d = x->begin - y->begin;
        return d < -5 * FL_US ? FL_ORDER_BEFORE : d > 5 * FL_US ? FL_ORDER_AFTER : FL_ORDER_UNKNOWN;
    }
    if ((x->waited || y->waited) && (x->begin == FL_T_NONE || y->begin == FL_T_NONE))
        return FL_ORDER_UNKNOWN; /* a wait began before its line, nobody says when */
    return fl_mark_order(&mx, &my);
}

/* Within one burst, or nothing says that they are not. */
static bool one_burst(const struct fl_candidate_cause *x, const struct fl_candidate_cause *y)
{
    if (x->begin == FL_T_NONE || y->begin == FL_T_NONE || x->first.clock != y->first.clock)
        return true;
    return llabs(x->begin - y->begin) <= BURST || llabs(x->first.t - y->first.t) <= BURST;
}

bool fl_arbiter_weak(const struct fl_arbiter *a, const struct fl_candidate_cause *c)
{
    return !c->root || fl_arbiter_cause(a, c)->last_resort;
}

static uint32_t progress_after(const struct fl_job *j, const struct fl_mark *m)
{
    const struct fl_timeline *t = j->timeline;
    uint32_t n = 0;

    if (!t->n)
        return 0;
    for (size_t i = t->n; i-- > 0 && n < 16;) {
        const struct fl_mark *p = &t->points[i].at;
        if (t->points[i].at.attempt != m->attempt)
            break;
        if (p->file == m->file ? p->line <= m->line : fl_mark_order(m, p) != FL_ORDER_BEFORE)
            break;
        n++;
    }
    return n;
}

bool fl_survived_at(const struct fl_job *j, const struct fl_mark *m)
{
    return progress_after(j, m) >= 3;
}

/* A cancelled job may go on printing while it is being killed. When steps come minutes later, the
 * log is of two jobs, and the cancel belongs to the first. */
static bool another_job_followed(const struct fl_arbiter *a, const struct fl_event *e)
{
    const struct fl_mark *p = &a->j->timeline->last_progress;

    return p->own_time && e->last.t != FL_T_NONE && p->clock == e->last.clock &&
           p->t > e->last.t + 300 * FL_US && fl_survived_at(a->j, &e->last);
}

/* Training went on after the last of it. Causes that the timeline itself can see are judged there.
 */
static bool survived(const struct fl_arbiter *a, const struct fl_event *e)
{
    static const char *const seen_by_timeline[] = {
        "fw.nan",      "fw.loss_spike", "fw.slowdown",      "fw.resume_lost",
        "gpu.thermal", "gpu.sdc",       "fw.data_exhausted"};
    static const char *const of_the_start[] = {"container.start", "sched.launch"};
    const char *id = a->j->rules->causes[e->cause].id;

    if (a->j->rules->causes[e->cause].bystander)
        return another_job_followed(a, e);
    for (size_t i = 0; i < sizeof(seen_by_timeline) / sizeof(*seen_by_timeline); i++)
        if (strcmp(id, seen_by_timeline[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof(of_the_start) / sizeof(*of_the_start); i++)
        if (strcmp(id, of_the_start[i]) == 0 && a->j->progress &&
            fl_mark_order(&e->last, &a->j->timeline->last_progress) != FL_ORDER_AFTER)
            return true; /* a job that trains has started */
    return fl_survived_at(a->j, &e->last);
}

/* A kernel or scheduler log remembers what was before the job. */
static bool stale(const struct fl_arbiter *a, const struct fl_event *e)
{
    const struct fl_mark *m = &e->last, *f = &a->job_first;

    int64_t last = a->j->files[m->file].t; /* of the remembering log */

    if (!f->line || m->file == f->file || !m->own_time || m->clock != f->clock ||
        m->clock == FL_CLOCK_BOOT || m->t >= f->t - 600 * FL_US)
        return false;
    /* A log that ends hours before the job may only show another zone's clock. */
    return last >= f->t || m->t < f->t - 16 * 3600 * FL_US;
}

static bool before(const struct fl_mark *a, const struct fl_mark *b, int64_t us)
{
    if (a->file == b->file && us == 0)
        return a->line < b->line;
    return fl_mark_timed_alike(a, b) && a->t + us < b->t;
}

/* Something else failed, and all of it began well after the recovery at `m`. */
static bool failed_later(const struct fl_arbiter *a, const struct fl_event *e,
                         const struct fl_mark *m)
{
    bool later = false;

    for (size_t i = 0; i < a->j->nevents; i++) {
        const struct fl_event *f = a->j->events[i];
        struct fl_mark began;
        if (f->cause == e->cause || f->rule->role > FL_ROLE_SYMPTOM || !f->nhits || f->survived ||
            f->hits[0].begin == FL_T_NONE)
            continue;
        began = f->hits[0].mark;
        began.t = f->hits[0].begin;
        if (before(m, &began, RECOVERED_FOR))
            later = true;
        else if (began.clock == m->clock)
            return false;
    }
    return later;
}

/* A line on the same host says that the trouble was over, and the job failed later. */
static bool over(const struct fl_arbiter *a, const struct fl_event *e)
{
    if (!e->nhits || e->rule->role > FL_ROLE_SYMPTOM)
        return false;
    for (size_t i = 0; i < a->j->nevents; i++) {
        const struct fl_event *r = a->j->events[i];
        if (r->rule->role != FL_ROLE_RECOVERY || r->cause != e->cause)
            continue;
        for (size_t k = 0; k < r->nhits; k++)
            if (r->hits[k].latest.host == e->last.host && r->hits[k].latest.file == e->last.file &&
                before(&e->last, &r->hits[k].latest, 0) && failed_later(a, e, &r->hits[k].latest))
                return true;
    }
    return false;
}

void fl_events_set_aside(struct fl_arbiter *a)
{
    for (size_t i = 0; i < a->j->nevents; i++) {
        struct fl_event *e = a->j->events[i];
        if (survived(a, e))
            e->survived = true;
        else if (stale(a, e) || over(a, e))
            e->stale = true;
    }
}

static bool explains(const struct fl_arbiter *a, const struct fl_candidate_cause *x,
                     const struct fl_candidate_cause *y)
{
    const struct fl_cause *cx = fl_arbiter_cause(a, x);
    enum fl_order o;

    if (x == y || !fl_cause_explains(cx, y->cause) || x->out)
        return false;
    if (x->strength + (x->root ? 0 : -25) + 10 < y->strength + (y->root ? 0 : -25) - 35)
        return false;
    o = fl_arbiter_began(x, y);
    /* Broken connections end a job that somebody cancelled as well as they make it end. */
    if (cx->last_resort && y->root && fl_arbiter_cause(a, y)->bystander && o != FL_ORDER_BEFORE)
        return false;
    if (o != FL_ORDER_AFTER)
        return true;
    if (cx->bystander)
        return false;
    /* A rendezvous waits from the start of the job: what fails during the wait makes it fail. */
    if (y->waited && !fl_arbiter_cause(a, y)->last_resort &&
        fl_mark_order(&x->first, &y->first) != FL_ORDER_AFTER)
        return true;
    return fl_arbiter_weak(a, y) && !fl_arbiter_weak(a, x) && one_burst(x, y);
}

void fl_candidates_explain(struct fl_arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *y = &a->c[i];
        for (size_t k = 0; k < a->n && !y->by; k++) {
            struct fl_candidate_cause *x = &a->c[k];
            if (!explains(a, x, y))
                continue;
            if (explains(a, y, x) &&
                (x->first.seq > y->first.seq ||
                 (fl_arbiter_cause(a, y)->precedence > fl_arbiter_cause(a, x)->precedence &&
                  fl_arbiter_began(x, y) != FL_ORDER_BEFORE)))
                continue;
            y->by = x;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *y = &a->c[i];
        const struct fl_candidate_cause *top = y->by;
        for (int hops = 0; top && top->by && top->by != y && hops < 8; hops++)
            top = top->by;
        if (top && top != y) {
            y->out = true;
            y->by = top;
            y->why_out = fl_arena_f(&a->j->arena, "follows from %s", fl_arbiter_cause(a, top)->id);
        }
    }
}

/* A limit, a preemption, a cancel: wins over what it caused, loses to a failure that came before.
 */
void fl_candidates_judge_bystanders(struct fl_arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *b = &a->c[i];
        bool cancel = strcmp(fl_arbiter_cause(a, b)->id, "sched.cancelled") == 0;
        if (!fl_arbiter_cause(a, b)->bystander || b->out)
            continue;
        for (size_t k = 0; k < a->n; k++) {
            struct fl_candidate_cause *x = &a->c[k];
            enum fl_order o = fl_arbiter_began(x, b);
            bool before = o == FL_ORDER_BEFORE ||
                          (o == FL_ORDER_UNKNOWN && cancel && x->first.file != b->first.file) ||
                          (x->waited && fl_mark_order(&x->first, &b->first) == FL_ORDER_BEFORE);
            bool far = x->begin != FL_T_NONE && b->begin != FL_T_NONE &&
                       x->first.clock == b->first.clock && b->begin - x->begin > 120 * FL_US;
            if (x == b || x->out || fl_arbiter_cause(a, x)->bystander)
                continue;
            /* a time-out that was printed before the act tells of a hang that came first */
            if (before && (cancel || far || x->waited || (x->root && x->strength >= 85)) &&
                (x->root || far || cancel || x->waited)) {
                b->out = true;
                b->by = x;
                b->why_out = fl_arena_f(&a->j->arena, "came after %s", fl_arbiter_cause(a, x)->id);
            } else if (!before && b->root && !b->out) {
                x->out = true;
                x->by = b;
                x->why_out =
                    fl_arena_f(&a->j->arena, "began with or after %s", fl_arbiter_cause(a, b)->id);
            }
        }
    }
}

void fl_candidates_step_back_alone(struct fl_arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *c = &a->c[i];
        if (c->finding || !(c->best->survived || c->best->stale))
            continue;
        c->out = true;
        c->why_out = c->best->survived ? "training went on after it" : "from before the job began";
    }
}

void fl_arbiter_find_start(struct fl_arbiter *a)
{
    struct fl_job *j = a->j;

    for (size_t i = 0; i < j->nwriters; i++) {
        const struct fl_mark *m = &j->writers[i].last;
        if (!j->files[m->file].kernel && m->origin != FL_FROM_KERNEL && m->own_time &&
            m->clock != FL_CLOCK_BOOT) {
            if (j->first_line.own_time && !j->files[j->first_line.file].kernel)
                a->job_first = j->first_line;
            return;
        }
    }
}
