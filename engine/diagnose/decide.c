/*
 * What the restart pipeline should do: the first row of rules/policy.yaml that fits.
 *
 * Hosts are excluded only when the evidence names them, in the scheduler's spelling where the log
 * shows it, and never more than a few: a decision that takes a third of the cluster out is a
 * decision for a person. A roll-back names the newest checkpoint from before the first bad step and
 * the steps to skip.
 */
#include "diagnose/arbitrate.h"

#include "diagnose/timeline.h"

#define SKIP_MARGIN 10 /* steps skipped beyond the last bad one */

static bool row_fits(const struct fl_job *j, const struct fl_policy_row *r, uint16_t cause,
                     enum fl_class class, size_t hosts, size_t repeats)
{
    bool running = j->progress > 0;

    if (r->causes) {
        bool found = false;
        for (size_t i = 0; i < r->ncauses; i++)
            found |= r->causes[i] == cause;
        if (!found)
            return false;
    }
    if (r->class != FL_CLASS_NONE && r->class != class)
        return false;
    if ((r->phase == FL_WHEN_STARTUP && running) || (r->phase == FL_WHEN_RUNNING && !running))
        return false;
    if ((int)hosts < r->hosts_min || (r->hosts_max >= 0 && (int)hosts > r->hosts_max))
        return false;
    return (int)repeats >= r->repeats_min;
}

enum fl_class fl_verdict_class(const struct fl_job *j, const struct fl_verdict *v)
{
    const struct fl_candidate_cause *w = v->winner;

    if (!w)
        return FL_CLASS_NONE;
    if (w->best && w->best->rule->class != FL_CLASS_NONE)
        return w->best->rule->class;
    return j->rules->causes[w->cause].class;
}

static size_t repeats_of(const struct fl_job *j, const struct fl_verdict *v)
{
    const char *id = j->rules->causes[v->winner->cause].id;
    size_t n = 0;

    for (uint16_t i = 0; i < v->attempt; i++)
        n += v->attempt_cause[i] && strcmp(v->attempt_cause[i], id) == 0;
    return n;
}

static void plan_roll_back(const struct fl_job *j, const struct fl_verdict *v,
                           struct fl_decision *out)
{
    const struct fl_timeline *t = j->timeline;
    int64_t first_bad = -1, last_bad = t->last_step;

    for (size_t i = 0; i < v->nfindings; i++)
        if (v->findings[i].first_bad_step >= 0 &&
            (v->winner->finding == &v->findings[i] || first_bad < 0))
            first_bad = v->findings[i].first_bad_step;
    if (first_bad < 0)
        first_bad = t->last_step;
    for (size_t i = 0; i < t->nsaved; i++) {
        if (t->saved[i].step < 0 || (first_bad >= 0 && t->saved[i].step >= first_bad))
            continue;
        out->resume_step = t->saved[i].step;
        out->checkpoint = t->saved[i].path[0] ? t->saved[i].path : NULL;
        break;
    }
    if (out->resume_step >= 0 && first_bad >= 0) {
        out->skip_from = out->resume_step + 1;
        out->skip_to = (last_bad - first_bad > 200 ? first_bad + 200 : last_bad) + SKIP_MARGIN;
    }
}

/* The name of a host that the scheduler knows: its own spelling when the log has it. */
static int32_t scheduler_name(const struct fl_job *j, int32_t host)
{
    const struct fl_places *p = &j->places;

    for (size_t i = 0; i < p->nhosts; i++)
        if (p->hosts[i].scheduler && fl_places_real_host(p, (int32_t)i) == host)
            return (int32_t)i;
    return host;
}

static const struct fl_action *action_of(const struct fl_job *j, const struct fl_verdict *v,
                                         const struct fl_location *where, struct fl_decision *out)
{
    uint16_t cause = v->winner                          ? v->winner->cause
                     : v->outcome == FL_OUTCOME_HEALTHY ? j->rules->none
                                                        : j->rules->unknown;
    const struct fl_cause *c = &j->rules->causes[cause];

    out->advice = c->advice;
    if (v->winner && v->winner->best && v->winner->best->rule->action)
        return fl_action_find(v->winner->best->rule->action);
    for (size_t i = 0; i < j->rules->npolicy; i++) {
        const struct fl_policy_row *r = &j->rules->policy[i];
        if (!row_fits(j, r, cause, fl_verdict_class(j, v), where->nhosts,
                      v->winner ? repeats_of(j, v) : 0))
            continue;
        if (r->advice)
            out->advice = r->advice;
        return fl_action_find(r->action);
    }
    return fl_action_find(c->action ? c->action : "investigate");
}

/* One sentence: what the action follows from. */
static const char *why_of(struct fl_job *j, const struct fl_verdict *v,
                          const struct fl_location *where, const struct fl_decision *d)
{
    const struct fl_candidate_cause *w = v->winner;
    const char *id = w                                  ? j->rules->causes[w->cause].id
                     : v->outcome == FL_OUTCOME_HEALTHY ? "none"
                                                        : "unknown";
    const char *z;

    if (v->outcome == FL_OUTCOME_HEALTHY)
        return "nothing failed";
    if (v->outcome == FL_OUTCOME_UNKNOWN)
        return "no cause was found, so nothing can be decided by machine";
    if (d->nexclude)
        z = fl_arena_f(&j->arena, "%s on a host that the evidence names", id);
    else if (strcmp(d->action->id, "cordon_and_restart") == 0)
        z = fl_arena_f(&j->arena,
                       where->nhosts ? "%s; the host is known by its address alone"
                                     : "%s; the log does not say on which host",
                       id);
    else
        z = fl_arena_f(&j->arena, "%s, %s", id,
                       j->progress ? "after training had begun" : "before the first step");
    return z ? z : id;
}

void fl_decide(struct fl_job *j, const struct fl_verdict *v, const struct fl_location *where,
               struct fl_decision *out)
{
    *out = (struct fl_decision){.resume_step = -1, .skip_from = -1, .skip_to = -1};
    out->action = action_of(j, v, where, out);
    if (!out->action)
        out->action = fl_action_find("investigate");
    if (strcmp(out->action->id, "cordon_and_restart") == 0)
        for (size_t i = 0; i < where->nhosts; i++)
            if (!j->places.hosts[where->hosts[i]].address)
                out->exclude[out->nexclude++] = scheduler_name(j, where->hosts[i]);
    if (strcmp(out->action->id, "rollback_and_skip") == 0 && v->winner)
        plan_roll_back(j, v, out);
    else if (j->timeline->nsaved && j->progress)
        out->resume_step = j->timeline->saved[0].step,
        out->checkpoint = j->timeline->saved[0].path[0] ? j->timeline->saved[0].path : NULL;
    out->why = why_of(j, v, where, out);
}
