/*
 * The candidates of one attempt: a cause each, with the events and the findings that speak for it.
 *
 * Roles decide who may be one. Root and symptom rules make candidates; advice and benign rules
 * never reach this far; a confirming rule only makes an existing candidate surer, but for one case:
 * a job whose log tells of nothing but its end. What the timeline found is a candidate like any
 * other, save that silence needs no name of its own where something failed by itself.
 */
#include "diagnose/arbiter.h"

#include <stdlib.h>

#include "diagnose/timeline.h"

#define STRONG_CONFIRM                                                                             \
    70 /* a confirming rule of this strength may stand alone; see only_ends()                      \
        */

static bool takes_part(const struct fl_event *e, uint16_t attempt)
{
    return e->attempt == attempt && e->nhits > 0 &&
           (e->rule->role == FL_ROLE_ROOT || e->rule->role == FL_ROLE_SYMPTOM);
}

/* When a job ended and nothing but its end is told (a cancel, exit codes, waiting ranks), a strong
 * confirming line is the best there is: "will start from random" before somebody cancelled. */
static bool only_ends(const struct fl_arbiter *a)
{
    bool any = false;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *c = &a->c[i];
        const struct fl_cause *k = fl_arbiter_cause(a, c);
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

static struct fl_candidate_cause *candidate(struct fl_arbiter *a, uint16_t cause, uint16_t attempt)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->c[i].cause == cause)
            return &a->c[i];
    a->c[a->n] =
        (struct fl_candidate_cause){.cause = cause, .attempt = attempt, .begin = FL_T_NONE};
    return &a->c[a->n++];
}

static void first_of(struct fl_candidate_cause *c)
{
    bool have = false;

    for (size_t i = 0; i < c->nevents; i++) {
        const struct fl_event *e = c->events[i];
        if ((e->survived || e->stale) && !(c->best->survived || c->best->stale))
            continue;
        for (size_t h = 0; h < e->nhits; h++) {
            const struct fl_mark *m = &e->hits[h].mark;
            if (!have || fl_mark_order(m, &c->first) == FL_ORDER_BEFORE) {
                c->first = *m;
                have = true;
            }
            c->waited |= e->hits[h].waited;
            if (e->hits[h].begin != FL_T_NONE && m->clock == c->first.clock &&
                (c->begin == FL_T_NONE || e->hits[h].begin < c->begin))
                c->begin = e->hits[h].begin;
        }
    }
}

int fl_candidates_gather(struct fl_arbiter *a, uint16_t attempt, fl_err *err)
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
        first_of(c);
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

/* Something failed by itself, so that the silence before it needs no other name. What schedulers
 * and waiting ranks print at the end of a hang does not count. */
/* An operator or the scheduler had spoken before this candidate's first line. */
static bool after_an_act(const struct fl_arbiter *a, const struct fl_candidate_cause *c)
{
    for (size_t i = 0; i < a->n; i++)
        if (fl_arbiter_cause(a, &a->c[i])->bystander && a->c[i].best && !a->c[i].best->survived &&
            a->c[i].first.seq <= c->first.seq)
            return true;
    return false;
}

static bool other_failure(const struct fl_arbiter *a)
{
    const struct fl_timeline *t = a->j->timeline;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *c = &a->c[i];
        const struct fl_cause *k = fl_arbiter_cause(a, c);
        bool torn =
            a->j->teardown[c->attempt].line && c->first.seq >= a->j->teardown[c->attempt].seq;
        bool own_end =
            strcmp(k->id, "unknown") == 0 && (!torn || plain_exit(c)) && !after_an_act(a, c);
        if (!c->best || c->best->survived || c->best->stale || k->bystander || k->last_resort ||
            c->first.seq < t->last_progress.seq)
            continue;
        if ((c->strength >= (c->root ? 55 : 60) && !torn) || own_end)
            return true;
    }
    return false;
}

void fl_candidates_add_findings(struct fl_arbiter *a, uint16_t attempt)
{
    for (size_t i = 0; i < a->v->nfindings; i++) {
        const struct fl_finding *f = &a->v->findings[i];
        int cause = fl_ruleset_cause(a->j->rules, fl_str_c(f->cause));
        struct fl_candidate_cause *c;
        if (cause < 0 || !f->proof[0] || (strcmp(f->cause, "fw.hang") == 0 && other_failure(a)))
            continue;
        c = candidate(a, (uint16_t)cause, attempt);
        if (!c->finding || f->strength > c->finding->strength)
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

int fl_candidates_add_confirmed(struct fl_arbiter *a, uint16_t attempt, fl_err *err)
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
        first_of(c);
    }
    return FL_OK;
}

void fl_candidates_confirm(struct fl_arbiter *a, uint16_t attempt)
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
