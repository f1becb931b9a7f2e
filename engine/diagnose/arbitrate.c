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
#include "diagnose/arbiter.h"

#include <math.h>
#include <stdlib.h>

#include "diagnose/engine.h"
#include "diagnose/stacks.h"
#include "diagnose/timeline.h"

#define LAST_RESORT 0.45 /* the most that a last resort is worth */

/* The weights, in points of a rule's strength. */
static const struct {
    double precedence, symptom, gives_way, last_resort, chained, after_teardown, after_end,
        earliest, later, named, confirmed, enough;
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
       .enough = 0};

static void reason(struct fl_candidate_cause *c, const char *text)
{
    if (text && c->nreasons < FL_REASONS)
        c->reasons[c->nreasons++] = text;
}

static const char *where(const struct fl_arbiter *a, const struct fl_mark *m)
{
    return fl_arena_f(&a->j->arena, "%s:%llu", fl_reader_file(a->j->reader, m->file)->name,
                      (unsigned long long)m->line);
}

/* Every exception of it was raised while another was handled. */
static bool chained(const struct fl_arbiter *a, const struct fl_candidate_cause *c)
{
    if (!c->best)
        return false;
    for (size_t i = 0; i < c->best->nhits; i++) {
        uint32_t tb = c->best->hits[i].traceback;
        if (!tb || a->j->tracebacks[tb - 1].position == 0 ||
            a->j->tracebacks[tb - 1].last.seq != c->best->hits[i].mark.seq)
            return false;
    }
    return true;
}

static void score_time(struct fl_arbiter *a, struct fl_candidate_cause *c)
{
    bool earliest = false, later = false;
    const struct fl_candidate_cause *first = NULL;

    for (size_t i = 0; i < a->n; i++) {
        const struct fl_candidate_cause *o = &a->c[i];
        enum fl_order order;
        if (o == c || o->out)
            continue;
        order = fl_arbiter_began(c, o);
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
        reason(c, fl_arena_f(&a->j->arena, "began after %s", fl_arbiter_cause(a, first)->id));
    }
}

/* After the job's own word that it is done. What ranks say of each other when they leave (a
 * symptom) belongs there unless it certainly came before. */
static bool after_end(const struct fl_arbiter *a, const struct fl_candidate_cause *c)
{
    enum fl_order o = fl_mark_order(&c->first, &a->j->timeline->ends[0].at);

    return o == FL_ORDER_AFTER || (o == FL_ORDER_UNKNOWN && fl_arbiter_weak(a, c));
}

static void score_teardown(struct fl_arbiter *a, struct fl_candidate_cause *c)
{
    const struct fl_mark *t = &a->j->teardown[c->attempt];
    const struct fl_timeline *tl = a->j->timeline;

    if (t->line && c->best && !fl_arbiter_cause(a, c)->bystander && c->first.seq > t->seq &&
        fl_mark_order(&c->first, t) == FL_ORDER_AFTER &&
        !(c->begin != FL_T_NONE && t->t != FL_T_NONE && c->begin < t->t - 5 * FL_US)) {
        c->score += W.after_teardown;
        reason(c, "printed while the job was being torn down");
    }
    if (tl->nends && c->best && tl->ends[0].at.seq > tl->last_progress.seq &&
        c->first.attempt == tl->ends[0].at.attempt && after_end(a, c)) {
        c->score += W.after_end;
        reason(c, "printed after the job said that it was done");
    }
}

static bool named_by_watchdog(const struct fl_arbiter *a, const struct fl_candidate_cause *c)
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

static void score(struct fl_arbiter *a, struct fl_candidate_cause *c)
{
    const struct fl_cause *k = fl_arbiter_cause(a, c);

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

static int judge_attempt(struct fl_arbiter *a, uint16_t attempt,
                         struct fl_candidate_cause ***ranking, size_t *n, fl_err *err)
{
    int r = fl_candidates_gather(a, attempt, err);

    if (r)
        return r;
    if (attempt == a->j->attempt)
        fl_candidates_add_findings(a, attempt);
    r = fl_candidates_add_confirmed(a, attempt, err);
    if (r)
        return r;
    fl_candidates_confirm(a, attempt);
    fl_candidates_step_back_alone(a);
    fl_candidates_judge_bystanders(a);
    fl_candidates_explain(a);
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
static bool earlier_decides(const struct fl_arbiter *a, const struct fl_candidate_cause *first,
                            const struct fl_candidate_cause *last, bool progressed)
{
    static const char *const left_behind[] = {
        "net.port_in_use",  "net.rendezvous", "storage.checkpoint", "net.nccl_remote",
        "net.nccl_timeout", "unknown",        "net.connection"};
    const struct fl_cause *f = fl_arbiter_cause(a, first), *l = fl_arbiter_cause(a, last);

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

static int judge_all(struct fl_arbiter *a, fl_err *err)
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
        a->v->attempt_cause[at] = top ? fl_arbiter_cause(a, top)->id : NULL;
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

/* What came true of answers that were this sure: the first answers to 144 jobs that nothing had
 * been fitted to (`diagnose eval` prints claimed against observed). Of 102 answers with a raw value
 * of 0.96 and more 92 were right; of 11 that named a last resort, or a hang that only the clock
 * shows, 3 were. */
static double came_true(double raw, bool last_resort)
{
    static const double raws[] = {0, 0.5, 0.8, 0.93, 0.96, 1};
    static const double seen[] = {0.05, 0.5, 0.65, 0.8, 0.9, 0.93};
    size_t k = 1;
    double x;

    while (raw > raws[k] && k + 1 < sizeof(raws) / sizeof(*raws))
        k++;
    x = seen[k - 1] + (seen[k] - seen[k - 1]) * (raw - raws[k - 1]) / (raws[k] - raws[k - 1]);
    return last_resort && x > LAST_RESORT ? LAST_RESORT : x;
}

/* Confidence from the score and the lead over the next candidate. */
static double confidence_of(const struct fl_arbiter *a)
{
    const struct fl_verdict *v = a->v;
    const struct fl_candidate_cause *w = v->winner;
    const struct fl_cause *k = fl_arbiter_cause(a, w);
    double lead = w->score - W.enough, x;

    for (size_t i = 1; i < v->nranking; i++)
        if (!v->ranking[i]->out) {
            lead = w->score - v->ranking[i]->score;
            break;
        }
    if (lead > 40)
        lead = 40;
    x = -1.0 + (w->score - 60) * 0.035 + lead * 0.05;
    return came_true(1 / (1 + exp(-x - 1.2)), k->last_resort || (k->gives_way && !w->best));
}

/* Lines that show that the job failed, though not why. */
static bool failed_somehow(const struct fl_arbiter *a)
{
    for (size_t i = 0; i < a->v->nranking; i++) {
        const struct fl_candidate_cause *c = a->v->ranking[i];
        if (c->best && !c->best->survived && !c->best->stale && c->score > -20)
            return true;
    }
    return false;
}

static void conclude(struct fl_arbiter *a)
{
    struct fl_verdict *v = a->v;
    struct fl_candidate_cause *w = v->winner;

    if (w && strcmp(fl_arbiter_cause(a, w)->id, "unknown") != 0) {
        v->outcome = FL_OUTCOME_DIAGNOSED;
        v->confidence = confidence_of(a);
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
    } else if (!a->j->progress && !fl_timeline_ended(a->j)) {
        v->outcome = FL_OUTCOME_UNKNOWN;
        v->confidence = 0.2;
        v->decided_by = "none";
        v->winner = NULL;
        v->reasons[v->nreasons++] =
            a->j->seq ? "the log shows neither training nor a failure" : "the log is empty";
    } else {
        v->outcome = FL_OUTCOME_HEALTHY;
        v->confidence = fl_timeline_ended(a->j) ? 0.95 : fl_timeline_finished(a->j) ? 0.9 : 0.8;
        v->decided_by = "timeline";
        v->winner = NULL;
        v->reasons[v->nreasons++] =
            fl_timeline_ended(a->j) ? "the job says that it finished, and nothing failed before"
            : fl_timeline_finished(a->j)
                ? "the job reached its last step, and nothing failed"
                : "training progressed to the end of the log, and nothing failed";
    }
}

int fl_arbitrate(struct fl_job *j, struct fl_verdict *out, fl_err *err)
{
    struct fl_arbiter a = {.j = j, .v = out};
    int r;

    *out = (struct fl_verdict){0};
    fl_timeline_findings(j, out->findings, FL_FINDINGS, &out->nfindings);
    if (fl_watchdog_judge(j, &out->waits))
        return fl_fail_nomem(err);
    if (out->nfindings < FL_FINDINGS &&
        fl_watchdog_finding(j, &out->waits, &out->findings[out->nfindings]))
        out->nfindings++;
    if (out->nfindings < FL_FINDINGS && fl_stacks_finding(j, &out->findings[out->nfindings]))
        out->nfindings++;
    fl_arbiter_find_start(&a);
    fl_events_set_aside(&a);
    r = judge_all(&a, err);
    if (r)
        return r;
    if (j->failed)
        return fl_fail_nomem(err);
    conclude(&a);
    return FL_OK;
}
