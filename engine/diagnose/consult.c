/*
 * What past incidents say of a job that no rule resolves.
 *
 * They decide only where they are alike enough and agree, which was measured (search.c): a first
 * neighbour of 0.9 was right in all of 29 cases, of 0.65 to 0.9 in three of four. Otherwise they
 * are shown, and the answer stays `unknown`. The evidence is then what they matched; places are not
 * theirs to name, so no host is excluded on their word.
 */
#include "diagnose/memory.h"

#include <stdio.h>

#define ENOUGH 0.9

static bool agree(const struct fl_neighbour *v, size_t n)
{
    size_t same = 0;

    for (size_t i = 0; i < n && i < 3; i++)
        same += strcmp(v[i].cause, v[0].cause) == 0;
    return same >= 2;
}

/* The matched lines of the log, in front of the leads that were found before. */
static int show_lines(struct fl_diagnosis *d, const struct fl_neighbour *first, fl_err *err)
{
    struct fl_report *r = &d->report;
    struct fl_evidence *v =
        fl_arena_alloc(&d->job.arena, (r->nevidence + first->nmatched) * sizeof(*v) + sizeof(*v));
    size_t n = 0;

    if (!v)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < first->nmatched; i++) {
        if (!first->matched[i].at.file)
            continue;
        v[n] = (struct fl_evidence){.at = first->matched[i].at,
                                    .text = first->matched[i].text,
                                    .role = n ? "confirm" : "root",
                                    .cause = first->cause,
                                    .rank = -1};
        n++;
    }
    for (size_t i = 0; i < r->nevidence; i++)
        v[n++] = r->evidence[i];
    r->evidence = v;
    r->nevidence = n;
    return FL_OK;
}

static int decide(struct fl_diagnosis *d, const struct fl_neighbour *first, fl_err *err)
{
    const struct fl_ruleset *rs = d->job.rules;
    int cause = fl_ruleset_cause(rs, fl_str_c(first->cause));
    struct fl_candidate_cause *w;
    struct fl_report *r = &d->report;

    if (cause < 0 || cause == rs->unknown || cause == rs->none)
        return FL_OK;
    w = fl_arena_alloc(&d->job.arena, sizeof(*w));
    if (!w)
        return fl_fail_nomem(err);
    w->cause = (uint16_t)cause;
    w->attempt = d->verdict.attempt;
    d->verdict.outcome = FL_OUTCOME_DIAGNOSED;
    d->verdict.winner = w;
    d->verdict.confidence = first->score;
    d->verdict.decided_by = "neighbours";
    fl_decide(&d->job, &d->verdict, &d->where, &d->decision);
    r->outcome = "diagnosed";
    r->cause.id = first->cause;
    r->cause.class_name = fl_class_word(rs->causes[cause].class);
    r->cause.title = rs->causes[cause].title;
    r->cause.confidence = first->score;
    r->cause.decided_by = "neighbours";
    r->cause.rule = NULL;
    r->cause.summary =
        fl_arena_f(&d->job.arena, "No rule knows it; it is like the past incident %s: %s",
                   first->incident, first->title);
    if (!r->cause.summary)
        return fl_fail_nomem(err);
    fl_report_action(&d->job, &d->decision, r);
    return show_lines(d, first, err);
}

int fl_diagnosis_consult(fl_diagnosis *d, fl_memory *m, fl_err *err)
{
    int r;

    if (d->verdict.outcome != FL_OUTCOME_UNKNOWN || d->neighbours)
        return FL_OK;
    r = fl_search_job(m, d, NULL, &d->neighbours, err);
    if (r)
        return r;
    d->report.neighbours = fl_neighbours_get(d->neighbours, 0);
    d->report.nneighbours = fl_neighbours_count(d->neighbours);
    if (d->report.nneighbours && d->report.neighbours[0].score >= ENOUGH &&
        agree(d->report.neighbours, d->report.nneighbours))
        r = decide(d, &d->report.neighbours[0], err);
    return r;
}
