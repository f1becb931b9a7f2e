/*
 * Watchdog arithmetic: who did not come to the collective.
 *
 * When a rank is missing, every other rank prints the same time-out, and the guilty one prints
 * nothing or something else. So the lines are collected from all ranks and read together: a wait
 * began `ran for` milliseconds before its line; in the group whose wait began first, the ranks that
 * have no wait, or whose last enqueued work is older than the collective, are the suspects. Ranks
 * that wait at the same number for another operation are a mismatch, not a hang. When all entered
 * and none finished, nobody is accused.
 *
 * Only a rank's own line counts. Copies ("what():", "Original reason", tracebacks) and echoes
 * ("Received a dump signal from rank K") are left out. Source of the forms: PyTorch,
 * ProcessGroupNCCL.cpp, 1.13 to 2.9.
 */
#include "diagnose/watchdog.h"

#include <stdlib.h>

#include "diagnose/timeline.h"

#include "base/alloc.h"

#define MOST_TEXTS 64
#define MOST_MS (1000LL * 365 * 86400 * 1000) /* a thousand years: more is no time */
#define CONTROL 16 /* elements: more is a gradient, less is bookkeeping */

static bool field(fl_str s, const char *name, int64_t *out)
{
    ptrdiff_t at = fl_str_find(s, fl_str_c(name));
    size_t q;
    uint64_t v;
    bool minus;

    if (at < 0)
        return false;
    q = (size_t)at + strlen(name);
    while (q < s.n && (s.p[q] == ' ' || s.p[q] == ':' || s.p[q] == '='))
        q++;
    minus = q < s.n && s.p[q] == '-';
    if (!fl_str_u64(fl_str_from(s, q + minus), INT64_MAX, &v))
        return false;
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

/* "[PG ID 2 PG GUID 5(tp) Rank 3]", "[PG 0 (default_pg) Rank 3]", "[Rank 3]" */
static uint64_t group_of(fl_str s)
{
    ptrdiff_t at = fl_str_find(s, FL_S("GUID ")), end;
    fl_str g;

    if (at < 0)
        at = fl_str_find(s, FL_S("[PG "));
    if (at < 0 || fl_str_has(s, FL_S("default_pg")))
        return 0;
    g = fl_str_from(s, (size_t)at);
    end = fl_str_find(g, FL_S("Rank "));
    if (end > 0)
        g = fl_str_sub(g, 0, (size_t)end);
    return fl_hash64(g.p, g.n, 7) | 1;
}

static bool copy_of_another(fl_str s)
{
    static const char *const marks[] = {"what():",
                                        "Original reason",
                                        "Received a dump signal",
                                        "Observed flight recorder",
                                        "terminated with exception",
                                        "DistBackendError",
                                        "RuntimeError"};

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (fl_str_has(s, fl_str_c(marks[i])))
            return true;
    return false;
}

static struct fl_wait *wait_of(struct fl_job *j, int32_t rank, uint64_t group)
{
    struct fl_waits *w = &j->waits;
    struct {
        uint64_t group;
        int64_t rank;
    } key = {group, rank};
    uint32_t at;
    bool added;

    if (w->n >= FL_MAX_WAITS)
        return fl_map_get(&w->index, fl_str_n((const char *)&key, sizeof(key)), &at) ? &w->v[at]
                                                                                     : NULL;
    if (fl_map_intern(&w->index, fl_str_n((const char *)&key, sizeof(key)), (uint32_t)w->n, &at,
                      &added) ||
        (added && fl_grow((void **)&w->v, &w->cap, w->n + 1, sizeof(*w->v)))) {
        j->failed = FL_ENOMEM;
        return NULL;
    }
    if (added)
        w->v[w->n++] = (struct fl_wait){.rank = rank,
                                        .group = group,
                                        .seq = -1,
                                        .enqueued = -2,
                                        .numel = -1,
                                        .begin = FL_T_NONE};
    return &w->v[at];
}

/* The texts of the first few, and of a few that wait for another thing than the one before. */
static void keep_text(struct fl_job *j, struct fl_wait *w, fl_str line)
{
    struct fl_waits *all = &j->waits;
    const struct fl_wait *first = all->n ? &all->v[0] : NULL;
    bool odd = first && w->group == first->group &&
               (strcmp(w->op, first->op) != 0 || w->numel != first->numel || w->seq != first->seq);

    if (all->texts < MOST_TEXTS || (odd && all->odd_texts < MOST_TEXTS)) {
        w->text = fl_arena_z(&j->arena, fl_str_sub(line, 0, 1000));
        *(all->texts < MOST_TEXTS ? &all->texts : &all->odd_texts) += 1;
    }
}

void fl_watchdog_line(struct fl_job *j, fl_str s, fl_str line, const struct fl_mark *m)
{
    bool timeout = fl_str_has(s, FL_S("Watchdog caught collective operation timeout"));
    int64_t rank = m->rank, ms = 0, v;
    struct fl_wait *w;
    ptrdiff_t at;
    uint64_t group = group_of(line);

    if (copy_of_another(s))
        return;
    /* c10d's own number, taken off with the prefix: of a rank where there is but one group */
    if (rank < 0 && group == 0 && !field(s, "Rank ", &rank))
        field(line, "[Rank ", &rank);
    if (rank < 0)
        rank = m->task;
    if (rank < 0 || rank > FL_MAX_RANKS || !(w = wait_of(j, (int32_t)rank, group)))
        return;
    if (field(s, "last enqueued work", &v) || field(s, "last enqueued NCCL work", &v))
        w->enqueued = v;
    if (!timeout || w->timed_out)
        return;
    w->timed_out = true;
    w->mark = *m;
    field(s, "SeqNum", &w->seq);
    field(s, "NumelIn", &w->numel);
    at = fl_str_find(s, FL_S("OpType="));
    if (at >= 0) {
        size_t n = 0;
        fl_str op = fl_str_from(s, (size_t)at + 7);
        while (n < op.n && n < sizeof(w->op) - 1 && op.p[n] >= 'A' && op.p[n] <= '_')
            n++;
        memcpy(w->op, op.p, n);
        w->op[n] = 0;
    }
    if (field(s, "ran for", &ms) && ms >= 0 && ms < MOST_MS && m->t != FL_T_NONE)
        w->begin = m->t - ms * 1000;
    keep_text(j, w, line);
}

/* ---- judging ---- */

/* The group whose first wait began first (or was printed first). */
static bool first_group(const struct fl_waits *w, uint64_t *group, const struct fl_wait **first)
{
    *first = NULL;
    for (size_t i = 0; i < w->n; i++) {
        const struct fl_wait *x = &w->v[i], *b = *first;
        bool earlier;
        if (!x->timed_out)
            continue;
        earlier =
            !b || (x->begin != FL_T_NONE && b->begin != FL_T_NONE ? x->begin < b->begin
                                                                  : x->mark.seq < b->mark.seq);
        if (earlier)
            *first = x;
    }
    if (*first)
        *group = (*first)->group;
    return *first != NULL;
}

static int by_rank(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

static void suspect(struct fl_wait_verdict *v, int32_t rank)
{
    if (v->nsuspects < FL_SUSPECTS)
        v->suspects[v->nsuspects] = rank;
    v->nsuspects++;
}

/* Ranks of the job that have no wait of their own in the default group. */
static void missing_ranks(const struct fl_job *j, const int32_t *waiting, size_t n,
                          struct fl_wait_verdict *v)
{
    int32_t world = j->places.world_size > 0 ? j->places.world_size : j->places.max_rank + 1;

    if (n < 2 || (size_t)world <= n)
        return;
    for (int32_t r = 0; r < world; r++)
        if (!bsearch(&r, waiting, n, sizeof(*waiting), by_rank))
            suspect(v, r);
}

/* Ranks of the group that stand at the smaller of two numbers, or enqueued less. */
static void behind(const struct fl_waits *w, uint64_t group, struct fl_wait_verdict *v)
{
    int64_t top = -1;
    size_t at_top = 0, n = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct fl_wait *x = &w->v[i];
        if (x->group != group || x->seq < 0)
            continue;
        n++;
        if (x->seq > top)
            top = x->seq, at_top = 0;
        at_top += x->seq == top;
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct fl_wait *x = &w->v[i];
        if (x->group == group && x->enqueued >= 0 && v->seq >= 0 && x->enqueued < v->seq)
            suspect(v, x->rank);
    }
    if (v->nsuspects == 0 && n > at_top && (n - at_top) * 4 <= n)
        for (size_t i = 0; i < w->n; i++)
            if (w->v[i].group == group && w->v[i].seq >= 0 && w->v[i].seq < top)
                suspect(v, w->v[i].rank);
}

static bool mismatch(const struct fl_waits *w, uint64_t group, const struct fl_wait *first,
                     struct fl_wait_verdict *v)
{
    size_t same = 0, other = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct fl_wait *x = &w->v[i];
        if (x->group != group || !x->timed_out || x->seq != first->seq)
            continue;
        if (strcmp(x->op, first->op) == 0 &&
            (x->numel < 0 || first->numel < 0 || x->numel == first->numel))
            same++;
        else
            other++;
    }
    if (!other)
        return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct fl_wait *x = &w->v[i];
        bool alike = strcmp(x->op, first->op) == 0 &&
                     (x->numel < 0 || first->numel < 0 || x->numel == first->numel);
        if (x->group == group && x->timed_out && x->seq == first->seq && alike == (same < other))
            suspect(v, x->rank);
    }
    return true;
}

int fl_watchdog_judge(struct fl_job *j, struct fl_wait_verdict *v)
{
    const struct fl_waits *w = &j->waits;
    const struct fl_wait *first;
    int32_t *ranks;
    uint64_t group;
    size_t n = 0;

    *v = (struct fl_wait_verdict){.begin = FL_T_NONE, .seq = -1};
    if (!first_group(w, &group, &first))
        return FL_OK;
    ranks = fl_malloc((w->n + 1) * sizeof(*ranks));
    if (!ranks)
        return FL_ENOMEM;
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].group == group && w->v[i].timed_out)
            ranks[n++] = w->v[i].rank;
    qsort(ranks, n, sizeof(*ranks), by_rank);
    v->begin = first->begin;
    v->clock = first->mark.clock;
    v->seq = first->seq;
    v->numel = first->numel;
    memcpy(v->op, first->op, sizeof(v->op));
    if (mismatch(w, group, first, v)) {
        v->kind = FL_WAIT_MISMATCH;
    } else {
        behind(w, group, v);
        if (v->nsuspects == 0 && group == 0)
            missing_ranks(j, ranks, n, v);
        v->kind = v->nsuspects ? FL_WAIT_MISSING : FL_WAIT_ALL;
    }
    if (v->nsuspects > FL_SUSPECTS || v->nsuspects * 2 > n + v->nsuspects) {
        v->nsuspects = 0; /* half the job is not a suspect */
        if (v->kind == FL_WAIT_MISSING)
            v->kind = FL_WAIT_UNKNOWN;
    }
    fl_free(ranks);
    return FL_OK;
}

static const struct fl_point *proof_line(struct fl_job *j, const struct fl_mark *m,
                                         const char *text)
{
    struct fl_point *p = text && *text ? fl_arena_alloc(&j->arena, sizeof(*p)) : NULL;

    if (!p)
        return NULL;
    p->at = *m;
    p->text = fl_arena_z(&j->arena, fl_str_c(text));
    return p->text ? p : NULL;
}

static const struct fl_wait *wait_by(const struct fl_job *j, int32_t rank)
{
    for (size_t i = 0; i < j->waits.n; i++)
        if (j->waits.v[i].rank == rank && j->waits.v[i].timed_out && j->waits.v[i].text)
            return &j->waits.v[i];
    return NULL;
}

/* Any wait of a rank that is no suspect. */
static const struct fl_wait *other_wait(const struct fl_job *j, const struct fl_wait_verdict *v)
{
    for (size_t i = 0; i < j->waits.n; i++) {
        bool suspected = false;
        for (size_t s = 0; s < v->nsuspects && s < FL_SUSPECTS; s++)
            suspected |= v->suspects[s] == j->waits.v[i].rank;
        if (!suspected && j->waits.v[i].timed_out && j->waits.v[i].text)
            return &j->waits.v[i];
    }
    return NULL;
}

/* The suspect printed something of its own after the others had begun to wait: it was busy. What
 * its watchdog thread prints shows nothing of that. */
static bool busy_elsewhere(const struct fl_wait_verdict *v, const struct fl_rank *r)
{
    fl_str text = fl_str_c(r->text);

    if (copy_of_another(text) || fl_str_has(text, FL_S("ProcessGroupNCCL")) ||
        fl_str_has(text, FL_S("last enqueued")) || fl_str_has(text, FL_S("Watchdog caught")))
        return false;
    return v->begin != FL_T_NONE && r->last.t != FL_T_NONE && r->last.clock == v->clock &&
           r->last.t > v->begin + 2000000;
}

/* A barrier or another tiny collective at start-up or in a pause of training, with a sign of long
 * work beside it: data are prepared or a checkpoint is written by some ranks while the others wait.
 */
static bool control_collective(const struct fl_job *j, const struct fl_wait_verdict *v)
{
    const struct fl_timeline *t = j->timeline;
    bool startup = j->progress == 0;
    uint64_t at = t->last_progress.seq;
    bool busy = t->sign[FL_SIGN_BUSY].line && (startup || t->sign[FL_SIGN_BUSY].seq > at);
    bool paused =
        !startup && (t->sign[FL_SIGN_EVAL].seq > at || t->sign[FL_SIGN_CHECKPOINT].seq > at);

    return v->kind == FL_WAIT_MISSING && v->nsuspects <= 4 && v->numel >= 0 &&
           v->numel <= CONTROL && (busy || paused);
}

bool fl_watchdog_finding(struct fl_job *j, const struct fl_wait_verdict *v, struct fl_finding *out)
{
    struct fl_finding f = {.first_bad_step = -1, .last_good_step = -1};
    const struct fl_wait *x = other_wait(j, v);
    struct fl_rank *r;
    size_t n = 0;

    if (v->kind == FL_WAIT_MISMATCH) {
        const struct fl_wait *w = v->nsuspects ? wait_by(j, v->suspects[0]) : NULL;
        f.cause = "fw.desync";
        f.strength = 76;
        f.why =
            fl_arena_f(&j->arena, "ranks waited at collective number %lld for different operations",
                       (long long)v->seq);
        if (w && (f.proof[n] = proof_line(j, &w->mark, w->text)))
            n++;
    } else if (v->kind == FL_WAIT_MISSING && v->nsuspects <= 4 &&
               (r = fl_places_rank(&j->places, v->suspects[0], false)) && busy_elsewhere(v, r)) {
        f.cause = "fw.late_rank";
        f.strength = 70;
        f.why = fl_arena_f(&j->arena,
                           "rank %d was still busy when the others had begun to wait for it in %s",
                           v->suspects[0], v->op[0] ? v->op : "a collective");
        if ((f.proof[n] = proof_line(j, &r->told, r->text)))
            n++;
    } else if (control_collective(j, v)) {
        f.cause = "fw.late_rank";
        f.strength = 60;
        f.why = fl_arena_f(
            &j->arena,
            "%zu rank%s did not come to a small collective of bookkeeping outside the training"
            " steps",
            v->nsuspects, v->nsuspects == 1 ? "" : "s");
        r = fl_places_rank(&j->places, v->suspects[0], false);
        if ((f.proof[n] = proof_line(j, &j->timeline->sign[FL_SIGN_BUSY], j->timeline->busy)))
            n++;
        if (r && (f.proof[n] = proof_line(j, &r->told, r->text)))
            n++;
    } else {
        return false;
    }
    if (x && (f.proof[n] = proof_line(j, &x->mark, x->text)))
        n++;
    if (!n || !f.why)
        return false;
    *out = f;
    return true;
}

void fl_waits_dispose(struct fl_waits *w)
{
    fl_free(w->v);
    fl_map_dispose(&w->index);
}
