/*
 * Arbitration: one failure printed several errors; which is the cause?
 *
 * Events of one cause in one attempt make a candidate. A candidate has a score, and every term of
 * it is a reason that the answer shows:
 *
 *   strength     of its strongest rule (0..100), and a share of its cause's precedence
 *   tier         a symptom alone, a cause that gives way, a last resort: each starts lower
 *   time         who began first gains, who came after another root loses
 *   chain        a later block of a Python exception chain loses to the first
 *   place        a candidate that a launcher's table or the watchdog arithmetic points to gains
 *   confirmed    by lines that prove it
 *
 * and before all that it may step back altogether: it was survived (training went on), it is stale
 * (a kernel line from before the job), it was printed while the job was being torn down, or another
 * candidate explains it. What explains what stands in rules/taxonomy.yaml. A candidate that began
 * later does not explain an earlier one, except that a last resort or a symptom (a time-out, a
 * closed connection) is explained by a root of the same burst in any order: streams are buffered.
 *
 * A sum was chosen over a chain of special cases because it degrades gently: on the labelled cases
 * a single wrong term moves the confidence, seldom the answer. The weights stand in one table
 * below.
 */
#include "diagnose/arbitrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/engine.h"
#include "diagnose/timeline.h"

#define US 1000000LL
#define STRONG_CONFIRM 70 /* a confirming rule of this strength may stand alone; see only_ends() */
#define BURST (90 * US) /* errors this near to each other are one burst */

/* The weights, in points of a rule's strength. */
static const struct {
    double precedence, symptom, gives_way, last_resort, chained, after_teardown, after_end,
        earliest, later, named, confirmed, enough, other_file;
} W = {.precedence = 0.25,
       .symptom = -28,
       .gives_way = -14,
       .last_resort = -34,
       .chained = -25,
       .after_teardown = -30,
       .after_end = -75,
       .earliest = 10,
       .later = -14,
       .named = 10,
       .confirmed = 7,
       .enough = 0,
       .other_file = 0};

struct arbiter {
    struct fl_job *j;
    struct fl_verdict *v;
    struct fl_candidate_cause *c;
    size_t n;
    struct fl_mark job_first; /* earliest timed line of the job's own logs */
};

static const struct fl_cause *cause_of(const struct arbiter *a, const struct fl_candidate_cause *c)
{
    return &a->j->rules->causes[c->cause];
}

static void reason(struct fl_candidate_cause *c, const char *text)
{
    if (text && c->nreasons < FL_REASONS)
        c->reasons[c->nreasons++] = text;
}

static const char *where(const struct arbiter *a, const struct fl_mark *m)
{
    return fl_arena_f(&a->j->arena, "%s:%llu", fl_reader_file(a->j->reader, m->file)->name,
                      (unsigned long long)m->line);
}

/* Order of two beginnings: waits are moved back to their start. */
static enum fl_order began(const struct arbiter *a, const struct fl_candidate_cause *x,
                           const struct fl_candidate_cause *y)
{
    struct fl_mark mx = x->first, my = y->first;

    if (x->begin != FL_T_NONE && y->begin != FL_T_NONE && mx.clock == my.clock &&
        mx.clock != FL_CLOCK_NONE && mx.own_time && my.own_time && (x->begin != mx.t || y->begin != my.t)) {
        int64_t d = x->begin - y->begin;
        return d < -5 * US ? FL_ORDER_BEFORE : d > 5 * US ? FL_ORDER_AFTER : FL_ORDER_UNKNOWN;
    }
    if ((x->waited || y->waited) && (x->begin == FL_T_NONE || y->begin == FL_T_NONE))
        return FL_ORDER_UNKNOWN; /* a wait began before its line, nobody says when */
    return fl_mark_order(a->j, &mx, &my);
}

/* Within one burst, or nothing says that they are not. */
static bool one_burst(const struct fl_candidate_cause *x, const struct fl_candidate_cause *y)
{
    if (x->begin == FL_T_NONE || y->begin == FL_T_NONE || x->first.clock != y->first.clock)
        return true;
    return llabs(x->begin - y->begin) <= BURST || llabs(x->first.t - y->first.t) <= BURST;
}

/* ---- stepping back ---- */

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
        if (p->file == m->file ? p->line <= m->line : fl_mark_order(j, m, p) != FL_ORDER_BEFORE)
            break;
        n++;
    }
    return n;
}

/* A cancelled job may go on printing while it is being killed. When steps come minutes later, the log
 * is of two jobs, and the cancel belongs to the first. */
static bool another_job_followed(const struct arbiter *a, const struct fl_event *e)
{
    const struct fl_mark *p = &a->j->timeline->last_progress;

    return p->own_time && e->last.t != FL_T_NONE && p->clock == e->last.clock &&
           p->t > e->last.t + 300 * US && progress_after(a->j, &e->last) >= 3;
}

/* Training went on after the last of it. Causes that the timeline itself can see are judged there.
 */
static bool survived(const struct arbiter *a, const struct fl_event *e)
{
    static const char *const seen_by_timeline[] = {"fw.nan",  "fw.loss_spike",    "fw.slowdown",
                                                   "fw.hang", "fw.resume_lost",   "gpu.thermal",
                                                   "gpu.sdc", "fw.data_exhausted"};
    static const char *const of_the_start[] = {"container.start", "sched.launch"};
    const char *id = a->j->rules->causes[e->cause].id;
    uint32_t n;

    if (a->j->rules->causes[e->cause].bystander)
        return another_job_followed(a, e);
    for (size_t i = 0; i < sizeof(seen_by_timeline) / sizeof(*seen_by_timeline); i++)
        if (strcmp(id, seen_by_timeline[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof(of_the_start) / sizeof(*of_the_start); i++)
        if (strcmp(id, of_the_start[i]) == 0 && a->j->progress &&
            fl_mark_order(a->j, &e->last, &a->j->timeline->last_progress) != FL_ORDER_AFTER)
            return true; /* a job that trains has started */
    n = progress_after(a->j, &e->last);
    return n >= 3;
}

/* A kernel or scheduler log remembers what was before the job. */
static bool stale(const struct arbiter *a, const struct fl_event *e)
{
    const struct fl_mark *m = &e->last, *f = &a->job_first;

    return f->line && m->file != f->file && m->own_time && m->clock == f->clock &&
           m->clock != FL_CLOCK_BOOT && m->t < f->t - 600 * US;
}

static void set_aside(struct arbiter *a)
{
    for (size_t i = 0; i < a->j->nevents; i++) {
        struct fl_event *e = a->j->events[i];
        if (survived(a, e))
            e->survived = true;
        else if (stale(a, e))
            e->stale = true;
    }
}

/* ---- candidates ---- */

static bool takes_part(const struct fl_event *e, uint16_t attempt)
{
    return e->attempt == attempt && e->nhits > 0 &&
           (e->rule->role == FL_ROLE_ROOT || e->rule->role == FL_ROLE_SYMPTOM);
}

/* When a job ended and nothing but its end is told (a cancel, exit codes, waiting ranks), a strong
 * confirming line is the best there is: "will start from random" before somebody cancelled. */
static bool only_ends(const struct arbiter *a)
{
    bool any = false;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *c = &a->c[i];
        const struct fl_cause *k = cause_of(a, c);
        if (!c->best)
            return false; /* the timeline has found something */
        if (c->best->survived || c->best->stale)
            continue;
        if (strcmp(k->id, "unknown") && strcmp(k->id, "sched.cancelled") && !k->last_resort)
            return false;
        any = true;
    }
    return any;
}

static bool better_event(const struct fl_event *x, const struct fl_event *y)
{
    if ((x->survived || x->stale) != (y->survived || y->stale))
        return !(x->survived || x->stale);
    if (x->rule->role != y->rule->role)
        return x->rule->role == FL_ROLE_ROOT;
    if (x->rule->strength != y->rule->strength)
        return x->rule->strength > y->rule->strength;
    return x->hits[0].mark.seq < y->hits[0].mark.seq;
}

static int by_merit(const void *p, const void *q)
{
    const struct fl_event *x = *(struct fl_event *const *)p, *y = *(struct fl_event *const *)q;

    return better_event(x, y) ? -1 : better_event(y, x) ? 1 : 0;
}

static struct fl_candidate_cause *candidate(struct arbiter *a, uint16_t cause, uint16_t attempt)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->c[i].cause == cause)
            return &a->c[i];
    a->c[a->n] =
        (struct fl_candidate_cause){.cause = cause, .attempt = attempt, .begin = FL_T_NONE};
    return &a->c[a->n++];
}

static void first_of(const struct arbiter *a, struct fl_candidate_cause *c)
{
    bool have = false;

    for (size_t i = 0; i < c->nevents; i++) {
        const struct fl_event *e = c->events[i];
        if ((e->survived || e->stale) && !(c->best->survived || c->best->stale))
            continue;
        for (size_t h = 0; h < e->nhits; h++) {
            const struct fl_mark *m = &e->hits[h].mark;
            if (!have || fl_mark_order(a->j, m, &c->first) == FL_ORDER_BEFORE) {
                c->first = *m;
                c->waited = e->hits[h].waited;
                have = true;
            }
            if (e->hits[h].begin != FL_T_NONE && m->clock == c->first.clock &&
                (c->begin == FL_T_NONE || e->hits[h].begin < c->begin))
                c->begin = e->hits[h].begin;
        }
    }
}

static int gather(struct arbiter *a, uint16_t attempt, fl_err *err)
{
    struct fl_job *j = a->j;
    size_t most = j->rules->ncauses;

    a->n = 0;
    a->c = fl_arena_alloc(&j->arena, (most + 1) * sizeof(*a->c));
    if (!a->c)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < j->nevents; i++) {
        struct fl_candidate_cause *c;
        if (!takes_part(j->events[i], attempt))
            continue;
        c = candidate(a, j->events[i]->cause, attempt);
        if (!c->events)
            c->events = fl_arena_alloc(&j->arena, j->nevents * sizeof(*c->events));
        if (!c->events)
            return fl_fail_nomem(err);
        c->events[c->nevents++] = j->events[i];
    }
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *c = &a->c[i];
        qsort(c->events, c->nevents, sizeof(*c->events), by_merit);
        c->best = c->events[0];
        c->strength = c->best->rule->strength;
        c->root = c->best->rule->role == FL_ROLE_ROOT;
        first_of(a, c);
    }
    return FL_OK;
}

/* A worker left by itself with an ordinary status: not killed, not told to go. */
static bool plain_exit(const struct fl_candidate_cause *c)
{
    for (size_t e = 0; e < c->nevents; e++)
        for (size_t i = 0; i < c->events[e]->nhits; i++)
            if (c->events[e]->hits[i].exit_code > 0 && c->events[e]->hits[i].exit_code < 126)
                return true;
    return false;
}

/* Something failed by itself, so that the silence before it needs no other name. What schedulers and
 * waiting ranks print at the end of a hang does not count. */
static bool other_failure(const struct arbiter *a)
{
    const struct fl_timeline *t = a->j->timeline;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *c = &a->c[i];
        const struct fl_cause *k = cause_of(a, c);
        bool torn = a->j->teardown[c->attempt].line &&
                    c->first.seq >= a->j->teardown[c->attempt].seq;
        bool own_end = strcmp(k->id, "unknown") == 0 && (!torn || plain_exit(c));
        if (!c->best || c->best->survived || c->best->stale || k->bystander || k->last_resort ||
            c->first.seq < t->last_progress.seq)
            continue;
        if ((c->root && c->strength >= 55 && !torn) || own_end)
            return true;
    }
    return false;
}

static void add_findings(struct arbiter *a, uint16_t attempt)
{
    for (size_t i = 0; i < a->v->nfindings; i++) {
        const struct fl_finding *f = &a->v->findings[i];
        int cause = fl_ruleset_cause(a->j->rules, fl_str_c(f->cause));
        struct fl_candidate_cause *c;
        if (cause < 0 || !f->proof[0] || (strcmp(f->cause, "fw.hang") == 0 && other_failure(a)))
            continue;
        c = candidate(a, (uint16_t)cause, attempt);
        c->finding = f;
        if (!c->nevents || f->strength > c->strength) {
            c->strength = f->strength;
            c->root = true;
        }
        if (!c->nevents) {
            c->first = f->proof[0]->at;
            c->begin = c->first.t;
        }
    }
}

static int add_confirmed(struct arbiter *a, uint16_t attempt, fl_err *err)
{
    struct fl_job *j = a->j;

    if (!only_ends(a) || fl_timeline_ended(j))
        return FL_OK;
    for (size_t i = 0; i < j->nevents; i++) {
        struct fl_event *e = j->events[i];
        struct fl_candidate_cause *c;
        if (e->rule->role != FL_ROLE_CONFIRM || e->attempt != attempt || !e->nhits ||
            e->rule->strength < STRONG_CONFIRM || e->stale)
            continue;
        c = candidate(a, e->cause, attempt);
        if (c->nevents)
            continue;
        c->events = fl_arena_alloc(&j->arena, sizeof(*c->events));
        if (!c->events)
            return fl_fail_nomem(err);
        c->events[c->nevents++] = e;
        c->best = e;
        c->strength = e->rule->strength;
        first_of(a, c);
    }
    return FL_OK;
}

static void count_confirms(struct arbiter *a, uint16_t attempt)
{
    for (size_t i = 0; i < a->j->nevents; i++) {
        const struct fl_event *e = a->j->events[i];
        if (e->rule->role != FL_ROLE_CONFIRM || (e->attempt != attempt && a->j->attempt))
            continue;
        for (size_t k = 0; k < a->n; k++)
            if (a->c[k].cause == e->cause)
                a->c[k].confirms++;
    }
}

/* ---- explaining ---- */

static bool weak(const struct arbiter *a, const struct fl_candidate_cause *c)
{
    return !c->root || cause_of(a, c)->last_resort;
}

static bool explains(const struct arbiter *a, const struct fl_candidate_cause *x,
                     const struct fl_candidate_cause *y)
{
    const struct fl_cause *cx = cause_of(a, x);
    enum fl_order o;

    if (x == y || !fl_cause_explains(cx, y->cause) || x->out)
        return false;
    if (x->strength + (x->root ? 0 : -25) + 10 < y->strength + (y->root ? 0 : -25) - 35)
        return false;
    o = began(a, x, y);
    if (o != FL_ORDER_AFTER)
        return true;
    if (cx->bystander)
        return false;
    /* A rendezvous waits from the start of the job: what fails during the wait makes it fail. */
    if (y->waited && !cause_of(a, y)->last_resort &&
        fl_mark_order(a->j, &x->first, &y->first) != FL_ORDER_AFTER)
        return true;
    return weak(a, y) && !weak(a, x) && one_burst(x, y);
}

static void explain_all(struct arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *y = &a->c[i];
        for (size_t k = 0; k < a->n && !y->by; k++) {
            struct fl_candidate_cause *x = &a->c[k];
            if (!explains(a, x, y))
                continue;
            if (explains(a, y, x) && (x->first.seq > y->first.seq ||
                                      (cause_of(a, y)->precedence > cause_of(a, x)->precedence &&
                                       began(a, x, y) != FL_ORDER_BEFORE)))
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
            y->why_out = fl_arena_f(&a->j->arena, "follows from %s", cause_of(a, top)->id);
        }
    }
}

/* ---- scheduler and operator ---- */

/* A limit, a preemption, a cancel: wins over what it caused, loses to a failure that came before.
 */
static void judge_bystanders(struct arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *b = &a->c[i];
        bool cancel = strcmp(cause_of(a, b)->id, "sched.cancelled") == 0;
        if (!cause_of(a, b)->bystander || b->out)
            continue;
        for (size_t k = 0; k < a->n; k++) {
            struct fl_candidate_cause *x = &a->c[k];
            enum fl_order o = began(a, x, b);
            bool before = o == FL_ORDER_BEFORE ||
                          (o == FL_ORDER_UNKNOWN && cancel && x->first.file != b->first.file);
            bool far = x->begin != FL_T_NONE && b->begin != FL_T_NONE &&
                       x->first.clock == b->first.clock && b->begin - x->begin > 120 * US;
            if (x == b || x->out || cause_of(a, x)->bystander)
                continue;
            if (before && (cancel || far || (x->root && x->strength >= 85)) &&
                (x->root || far || cancel)) {
                b->out = true;
                b->by = x;
                b->why_out = fl_arena_f(&a->j->arena, "came after %s", cause_of(a, x)->id);
            } else if (!before && b->root && !b->out) {
                x->out = true;
                x->by = b;
                x->why_out = fl_arena_f(&a->j->arena, "began with or after %s", cause_of(a, b)->id);
            }
        }
    }
}

/* ---- scores ---- */

/* Every exception of it was raised while another was handled. */
static bool chained(const struct arbiter *a, const struct fl_candidate_cause *c)
{
    if (!c->best)
        return false;
    for (size_t i = 0; i < c->best->nhits; i++) {
        uint32_t tb = c->best->hits[i].traceback;
        if (!tb || a->j->tracebacks[tb - 1].position == 0)
            return false;
    }
    return true;
}

static void score_time(struct arbiter *a, struct fl_candidate_cause *c)
{
    bool earliest = false, later = false;
    const struct fl_candidate_cause *first = NULL;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *o = &a->c[i];
        enum fl_order order;
        if (o == c || o->out)
            continue;
        order = began(a, c, o);
        if (order == FL_ORDER_BEFORE)
            earliest = true;
        if (order == FL_ORDER_AFTER && o->root && o->strength >= 55) {
            later = true;
            first = o;
        }
    }
    if (earliest && !later) {
        c->score += W.earliest;
        reason(c, fl_arena_f(&a->j->arena, "began first, at %s", where(a, &c->first)));
    } else if (later) {
        c->score += W.later;
        reason(c, fl_arena_f(&a->j->arena, "began after %s", cause_of(a, first)->id));
    }
}

/* After the job's own word that it is done. What ranks say of each other when they leave (a symptom)
 * belongs there unless it certainly came before. */
static bool after_end(const struct arbiter *a, const struct fl_candidate_cause *c)
{
    enum fl_order o = fl_mark_order(a->j, &c->first, &a->j->timeline->ends[0].at);

    return o == FL_ORDER_AFTER || (o == FL_ORDER_UNKNOWN && weak(a, c));
}

static void score_teardown(struct arbiter *a, struct fl_candidate_cause *c)
{
    const struct fl_mark *t = &a->j->teardown[c->attempt];
    const struct fl_timeline *tl = a->j->timeline;

    if (t->line && c->best && !cause_of(a, c)->bystander && c->first.seq > t->seq &&
        fl_mark_order(a->j, &c->first, t) == FL_ORDER_AFTER &&
        !(c->begin != FL_T_NONE && t->t != FL_T_NONE && c->begin < t->t - 5 * US)) {
        c->score += W.after_teardown;
        reason(c, "printed while the job was being torn down");
    }
    if (tl->nends && c->best && tl->ends[0].at.seq > tl->last_progress.seq &&
        c->first.attempt == tl->ends[0].at.attempt && after_end(a, c)) {
        c->score += W.after_end;
        reason(c, "printed after the job said that it was done");
    }
}

static bool named_by_watchdog(const struct arbiter *a, const struct fl_candidate_cause *c)
{
    const struct fl_wait_verdict *w = &a->v->waits;

    if (!w->nsuspects || !c->best)
        return false;
    for (size_t i = 0; i < c->best->nhits; i++)
        for (size_t s = 0; s < w->nsuspects && s < FL_SUSPECTS; s++)
            if (fl_places_rank_of(a->j, &c->best->hits[i].mark) == w->suspects[s])
                return true;
    return false;
}

static void score(struct arbiter *a, struct fl_candidate_cause *c)
{
    const struct fl_cause *k = cause_of(a, c);

    c->score = c->strength + W.precedence * k->precedence;
    if (k->last_resort)
        c->score += W.last_resort;
    else if (!c->root)
        c->score += W.symptom;
    if (k->gives_way)
        c->score += W.gives_way;
    if (c->best && !c->finding)
        reason(c, fl_arena_f(&a->j->arena, "rule %s matched %s%s", c->best->rule->id,
                             where(a, &c->best->hits[0].mark),
                             c->best->count > 1 ? fl_arena_f(&a->j->arena, " and %llu more lines",
                                                             (unsigned long long)c->best->count - 1)
                                                : ""));
    if (c->finding)
        reason(c, c->finding->why);
    if (chained(a, c)) {
        c->score += W.chained;
        reason(c, "raised while another exception was handled");
    }
    score_time(a, c);
    score_teardown(a, c);
    if (!k->last_resort && named_by_watchdog(a, c)) {
        c->score += W.named;
        reason(c, "its rank never entered the collective for which the others waited");
    }
    if (c->confirms) {
        c->score += W.confirmed * (c->confirms > 2 ? 2 : c->confirms);
        reason(c, fl_arena_f(&a->j->arena, "confirmed by %d other kind%s of line", c->confirms,
                             c->confirms > 1 ? "s" : ""));
    }
}

static int by_score(const void *p, const void *q)
{
    const struct fl_candidate_cause *x = *(struct fl_candidate_cause *const *)p,
                                    *y = *(struct fl_candidate_cause *const *)q;

    if (x->out != y->out)
        return x->out ? 1 : -1;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->first.seq < y->first.seq ? -1 : 1;
}

/* ---- one attempt ---- */

static void drop_survived(struct arbiter *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct fl_candidate_cause *c = &a->c[i];
        if (c->finding || !(c->best->survived || c->best->stale))
            continue;
        c->out = true;
        c->why_out = c->best->survived ? "training went on after it" : "from before the job began";
    }
}

static int judge_attempt(struct arbiter *a, uint16_t attempt, struct fl_candidate_cause ***ranking,
                         size_t *n, fl_err *err)
{
    int r = gather(a, attempt, err);

    if (r)
        return r;
    if (attempt == a->j->attempt)
        add_findings(a, attempt);
    r = add_confirmed(a, attempt, err);
    if (r)
        return r;
    count_confirms(a, attempt);
    drop_survived(a);
    judge_bystanders(a);
    explain_all(a);
    *ranking = fl_arena_alloc(&a->j->arena, (a->n + 1) * sizeof(**ranking));
    if (!*ranking)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < a->n; i++) {
        score(a, &a->c[i]);
        (*ranking)[i] = &a->c[i];
    }
    qsort(*ranking, a->n, sizeof(**ranking), by_score);
    *n = a->n;
    return FL_OK;
}

static struct fl_candidate_cause *top_of(struct fl_candidate_cause **ranking, size_t n)
{
    return n && !ranking[0]->out && ranking[0]->score >= W.enough ? ranking[0] : NULL;
}

/* The last attempt counts, unless its failure is only what an earlier one left behind. */
static bool earlier_decides(const struct arbiter *a, const struct fl_candidate_cause *first,
                            const struct fl_candidate_cause *last, bool progressed)
{
    static const char *const left_behind[] = {
        "net.port_in_use",  "net.rendezvous", "storage.checkpoint", "net.nccl_remote",
        "net.nccl_timeout", "unknown",        "net.connection"};
    const struct fl_cause *f = cause_of(a, first), *l = cause_of(a, last);

    if (first->cause == last->cause || f->bystander || !strcmp(f->id, "unknown"))
        return false;
    if (fl_cause_explains(f, last->cause) ||
        (f->precedence >= 80 && l->precedence < f->precedence && !progressed))
        return true;
    for (size_t i = 0; i < sizeof(left_behind) / sizeof(*left_behind); i++)
        if (!progressed && strcmp(l->id, left_behind[i]) == 0)
            return true;
    return false;
}

static bool progressed_in(const struct fl_job *j, uint16_t attempt)
{
    for (size_t i = j->timeline->n; i-- > 0;)
        if (j->timeline->points[i].at.attempt == attempt)
            return true;
    return false;
}

static int judge_all(struct arbiter *a, fl_err *err)
{
    struct fl_job *j = a->j;
    struct fl_candidate_cause **best = NULL, *winner = NULL;
    size_t nbest = 0;

    for (uint16_t at = 0; at <= j->attempt; at++) {
        struct fl_candidate_cause **ranking = NULL, *top;
        size_t n = 0;
        int r = judge_attempt(a, at, &ranking, &n, err);
        if (r)
            return r;
        top = top_of(ranking, n);
        a->v->attempt_cause[at] = top ? cause_of(a, top)->id : NULL;
        if (top && winner && earlier_decides(a, winner, top, progressed_in(j, at)))
            continue;
        if (!top && winner && !progressed_in(j, at))
            continue;
        winner = top;
        best = ranking;
        nbest = n;
        a->v->attempt = at;
    }
    a->v->winner = winner;
    a->v->ranking = best;
    a->v->nranking = nbest;
    return FL_OK;
}

/* ---- the verdict ---- */

/* Confidence from the score and the lead over the next candidate, fitted on the labelled cases
 * (`diagnose eval` prints claimed against observed). */
static double confidence_of(const struct fl_verdict *v)
{
    const struct fl_candidate_cause *w = v->winner;
    double lead = w->score - W.enough, x;

    for (size_t i = 1; i < v->nranking; i++)
        if (!v->ranking[i]->out) {
            lead = w->score - v->ranking[i]->score;
            break;
        }
    if (lead > 40)
        lead = 40;
    x = -1.0 + (w->score - 60) * 0.035 + lead * 0.05;
    x = 1 / (1 + exp(-x - 1.2));
    return x > 0.99 ? 0.99 : x < 0.05 ? 0.05 : x;
}

/* Lines that show that the job failed, though not why. */
static bool failed_somehow(const struct arbiter *a)
{
    for (size_t i = 0; i < a->v->nranking; i++) {
        const struct fl_candidate_cause *c = a->v->ranking[i];
        if (c->best && !c->best->survived && !c->best->stale && c->score > -20)
            return true;
    }
    return false;
}

static void conclude(struct arbiter *a)
{
    struct fl_verdict *v = a->v;
    struct fl_candidate_cause *w = v->winner;

    if (w && strcmp(cause_of(a, w)->id, "unknown") != 0) {
        v->outcome = FL_OUTCOME_DIAGNOSED;
        v->confidence = confidence_of(v);
        v->decided_by = w->finding && (!w->best || w->finding->strength >= w->best->rule->strength)
                            ? "timeline"
                            : "rule";
        memcpy(v->reasons, w->reasons, sizeof(v->reasons));
        v->nreasons = w->nreasons;
    } else if (w || (failed_somehow(a) && !fl_timeline_finished(a->j))) {
        v->outcome = FL_OUTCOME_UNKNOWN;
        v->confidence = 0.3;
        v->decided_by = "none";
        v->winner = NULL;
        v->reasons[v->nreasons++] = "the log shows a failure, and no line that names its cause";
    } else {
        v->outcome = FL_OUTCOME_HEALTHY;
        v->confidence = fl_timeline_finished(a->j) ? 0.95 : a->j->progress ? 0.8 : 0.5;
        v->decided_by = "timeline";
        v->winner = NULL;
        v->reasons[v->nreasons++] =
            fl_timeline_finished(a->j) ? "the job says that it finished, and nothing failed before"
            : a->j->progress ? "training progressed to the end of the log, and nothing failed"
                             : "nothing in the log speaks of a failure";
    }
}

static void find_job_start(struct arbiter *a)
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

int fl_arbitrate(struct fl_job *j, struct fl_verdict *out, fl_err *err)
{
    struct arbiter a = {.j = j, .v = out};
    int r;

    *out = (struct fl_verdict){0};
    fl_timeline_findings(j, out->findings, FL_FINDINGS, &out->nfindings);
    if (fl_watchdog_judge(j, &out->waits))
        return fl_fail_nomem(err);
    if (out->nfindings < FL_FINDINGS &&
        fl_watchdog_finding(j, &out->waits, &out->findings[out->nfindings]))
        out->nfindings++;
    find_job_start(&a);
    set_aside(&a);
    r = judge_all(&a, err);
    if (r)
        return r;
    if (j->failed)
        return fl_fail_nomem(err);
    conclude(&a);
    return FL_OK;
}
