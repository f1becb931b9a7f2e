/*
 * The public form of a verdict: struct fl_report, in the job's arena.
 *
 * Evidence is ordered for the reader and capped: the winner's strongest line first, then its
 * earliest, other rules of the same cause, what confirms it, and the first lines of what it
 * explains. A healthy job is proven too: by its last lines of progress and its own word that it is
 * done.
 */
#include "diagnose/arbitrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "diagnose/engine.h"
#include "diagnose/timeline.h"

#define EVIDENCE 24
#define PER_EVENT 3

struct builder {
    struct fl_job *j;
    const struct fl_verdict *v;
    struct fl_evidence *ev;
    size_t nev;
    bool failed;
};

static const char *keep(struct builder *b, const char *z)
{
    if (!z)
        b->failed = true;
    return z;
}

static struct fl_place place_at(const struct fl_job *j, const struct fl_mark *m)
{
    if (!m->line)
        return (struct fl_place){NULL, 0};
    return (struct fl_place){fl_reader_file(j->reader, m->file)->name, m->line};
}

static const char *time_text(struct builder *b, const struct fl_mark *m)
{
    struct fl_time t = {.us = m->t - (m->zoned ? m->zone_min * 60000000LL : 0),
                        .kind = FL_TIME_WALL,
                        .zoned = m->zoned,
                        .zone_min = m->zone_min};
    char text[40];

    if (!m->own_time || m->t == FL_T_NONE || m->clock == FL_CLOCK_NONE)
        return NULL;
    if (m->clock == FL_CLOCK_BOOT)
        return NULL;
    if (m->clock == FL_CLOCK_LOCAL && !b->j->year)
        return NULL; /* nobody said which year */
    fl_time_print(&t, text);
    return text[0] ? keep(b, fl_arena_z(&b->j->arena, fl_str_c(text))) : NULL;
}

static const char *host_name(const struct fl_job *j, int32_t host)
{
    return host >= 0 ? j->places.hosts[host].name.p : NULL;
}

static bool have_line(const struct builder *b, const struct fl_mark *m)
{
    struct fl_place at = place_at(b->j, m);

    for (size_t i = 0; i < b->nev; i++)
        if (b->ev[i].at.line == at.line && b->ev[i].at.file == at.file)
            return true;
    return false;
}

static void add_line(struct builder *b, const struct fl_mark *m, const char *text, const char *role,
                     const char *cause, fl_str gpu)
{
    struct fl_evidence *e;

    if (!text || b->nev >= EVIDENCE || have_line(b, m))
        return;
    e = &b->ev[b->nev++];
    *e = (struct fl_evidence){.at = place_at(b->j, m),
                              .text = text,
                              .role = role,
                              .cause = cause,
                              .rank = fl_places_rank_of(b->j, m),
                              .host = host_name(b->j, fl_places_host_of(b->j, m)),
                              .gpu = gpu.n ? gpu.p : NULL,
                              .time = time_text(b, m)};
}

static void add_hit(struct builder *b, const struct fl_hit *h, const char *role, const char *cause)
{
    size_t n = b->nev;

    add_line(b, &h->mark, h->text, role, cause, h->gpu);
    if (b->nev > n) {
        b->ev[n].match_at = h->match_at;
        b->ev[n].match_len = h->match_len;
    }
}

static void add_hits(struct builder *b, const struct fl_event *e, size_t most)
{
    const char *cause = b->j->rules->causes[e->cause].id;

    for (size_t i = 0, n = 0; i < e->nhits && n < most; i++, n++)
        add_hit(b, &e->hits[i], fl_role_word(e->rule->role), cause);
}

static void add_finding(struct builder *b, const struct fl_finding *f, const char *role)
{
    for (size_t i = 0; i < sizeof(f->proof) / sizeof(*f->proof) && f->proof[i]; i++)
        add_line(b, &f->proof[i]->at, f->proof[i]->text, role, f->cause, FL_S(""));
}

/* Each kind of line once, then the kinds' further lines: ten different proofs say more than ten
 * copies of one. */
static void winner_evidence(struct builder *b)
{
    const struct fl_candidate_cause *w = b->v->winner;
    bool timeline = w->finding && (!w->best || strcmp(b->v->decided_by, "timeline") == 0);

    if (timeline)
        add_finding(b, w->finding, "root");
    for (size_t i = 0; timeline && i < b->v->nfindings; i++) /* another sight of the same */
        if (&b->v->findings[i] != w->finding &&
            strcmp(b->v->findings[i].cause, w->finding->cause) == 0)
            add_finding(b, &b->v->findings[i], "confirm");
    for (size_t round = 1; round <= PER_EVENT; round++) {
        for (size_t i = 0; i < w->nevents; i++)
            if (!w->events[i]->stale && (round < 3 || i == 0))
                add_hits(b, w->events[i], round);
        if (round > 1)
            continue;
        for (size_t i = 0; i < b->j->nevents; i++)
            if (b->j->events[i]->rule->role == FL_ROLE_CONFIRM &&
                b->j->events[i]->cause == w->cause)
                add_hits(b, b->j->events[i], 1);
    }
    if (w->finding && !timeline)
        add_finding(b, w->finding, "root");
    for (size_t i = 0; i < b->v->nranking; i++) {
        const struct fl_candidate_cause *c = b->v->ranking[i];
        if (c != w && c->best && c->by == w)
            add_hits(b, c->best, 1);
    }
}

/* The last good points and the job's own word. */
static void progress_evidence(struct builder *b)
{
    const struct fl_timeline *t = b->j->timeline;

    for (size_t i = t->nends; i-- > 0;)
        add_line(b, &t->ends[i].at, t->ends[i].text, "progress", "none", FL_S(""));
    for (size_t i = t->n; i-- > 0 && t->n - i <= 4;)
        add_line(b, &t->points[i].at, t->points[i].text, "progress", "none", FL_S(""));
    if (t->pending.text)
        add_line(b, &t->pending.at, t->pending.text, "progress", "none", FL_S(""));
}

static void lead_evidence(struct builder *b)
{
    for (size_t i = 0; i < b->v->nranking && i < 6; i++) {
        const struct fl_candidate_cause *c = b->v->ranking[i];
        if (c->best && !c->best->survived && !c->best->stale)
            add_hits(b, c->best, 2);
    }
}

static void build_evidence(struct builder *b, struct fl_report *r)
{
    b->ev = fl_arena_alloc(&b->j->arena, EVIDENCE * sizeof(*b->ev));
    if (!b->ev) {
        b->failed = true;
        return;
    }
    if (b->v->outcome == FL_OUTCOME_DIAGNOSED)
        winner_evidence(b);
    else if (b->v->outcome == FL_OUTCOME_UNKNOWN)
        lead_evidence(b);
    else
        progress_evidence(b);
    r->evidence = b->ev;
    r->nevidence = b->nev;
}

/* Adds the ranks that an event's hits come from; hits that differ as printed can be of one rank. */
static void add_ranks(struct builder *b, const struct fl_event *e, fl_map *ranks, bool *nameless)
{
    for (size_t i = 0; i < e->nhits; i++) {
        int32_t rank = fl_places_rank_of(b->j, &e->hits[i].mark);
        if (rank < 0)
            *nameless = true;
        else if (fl_map_set(ranks, fl_str_n((const char *)&rank, sizeof(rank)), 1))
            b->failed = true;
    }
}

static uint32_t ranks_of(struct builder *b, const struct fl_candidate_cause *c)
{
    bool nameless = false;
    fl_map ranks;
    uint32_t n;

    fl_map_init(&ranks);
    for (size_t e = 0; e < c->nevents; e++)
        add_ranks(b, c->events[e], &ranks, &nameless);
    n = (uint32_t)ranks.n;
    fl_map_dispose(&ranks);
    return n ? n : nameless;
}

static void build_follow_on(struct builder *b, struct fl_report *r)
{
    struct fl_follow_on *f;
    size_t n = 0;

    if (b->v->outcome != FL_OUTCOME_DIAGNOSED || !b->v->nranking)
        return;
    f = fl_arena_alloc(&b->j->arena, b->v->nranking * sizeof(*f));
    if (!f) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < b->v->nranking; i++) {
        const struct fl_candidate_cause *c = b->v->ranking[i];
        if (c == b->v->winner || !c->best || c->best->survived || c->best->stale || !c->by)
            continue;
        f[n] = (struct fl_follow_on){.cause = b->j->rules->causes[c->cause].id,
                                     .first = place_at(b->j, &c->first)};
        for (size_t e = 0; e < c->nevents; e++)
            f[n].count += c->events[e]->count;
        f[n].rank_count = ranks_of(b, c);
        n++;
    }
    r->follow_on = f;
    r->nfollow_on = n;
}

static int by_confidence(const void *p, const void *q)
{
    double x = ((const struct fl_alternative *)p)->confidence,
           y = ((const struct fl_alternative *)q)->confidence;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void build_alternatives(struct builder *b, struct fl_report *r)
{
    struct fl_alternative *a;
    const struct fl_candidate_cause *w = b->v->winner;
    size_t n = 0;

    a = fl_arena_alloc(&b->j->arena, (b->v->nranking + 1) * sizeof(*a));
    if (!a) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < b->v->nranking && n < 4; i++) {
        const struct fl_candidate_cause *c = b->v->ranking[i];
        double top = w ? w->score : 60, share = exp((c->score - top) / 12);
        if (c == w || (w && c->out) || !strcmp(b->j->rules->causes[c->cause].id, "unknown"))
            continue;
        a[n].id = b->j->rules->causes[c->cause].id;
        a[n].confidence = share > 1 ? 0.3 : (1 - b->v->confidence) * share;
        a[n++].why = c->why_out    ? c->why_out
                     : c->nreasons ? c->reasons[c->nreasons - 1]
                                   : "weaker evidence";
    }
    qsort(a, n, sizeof(*a), by_confidence);
    r->alternatives = a;
    r->nalternatives = n;
}

void fl_report_place(struct fl_job *j, const struct fl_location *w, struct fl_report *r)
{
    const char **hosts = fl_arena_alloc(&j->arena, FL_PLACES * 2 * sizeof(*hosts));
    const char **gpus = hosts ? hosts + FL_PLACES : NULL;
    int32_t *numbers = fl_arena_alloc(&j->arena, FL_PLACES * 2 * sizeof(*numbers));

    if (!hosts || !numbers) {
        return; /* the arena remembers */
    }
    memcpy(numbers, w->ranks, sizeof(w->ranks));
    memcpy(numbers + FL_PLACES, w->gpu_indices, sizeof(w->gpu_indices));
    for (size_t i = 0; i < w->nhosts; i++)
        hosts[i] = host_name(j, w->hosts[i]);
    for (size_t i = 0; i < w->ngpus; i++)
        gpus[i] = w->gpus[i].p;
    r->location.ranks = numbers;
    r->location.nranks = w->nranks;
    r->location.gpu_indices = numbers + FL_PLACES;
    r->location.ngpu_indices = w->ngpu_indices;
    r->location.hosts = hosts;
    r->location.nhosts = w->nhosts;
    r->location.gpus = gpus;
    r->location.ngpus = w->ngpus;
}

void fl_report_action(struct fl_job *j, const struct fl_decision *d, struct fl_report *r)
{
    const char **hosts = fl_arena_alloc(&j->arena, (d->nexclude + 1) * sizeof(*hosts));

    if (!hosts) {
        return; /* the arena remembers */
    }
    for (size_t i = 0; i < d->nexclude; i++)
        hosts[i] = host_name(j, d->exclude[i]);
    r->action.id = d->action->id;
    r->action.decision = d->action->decision;
    r->action.exit_code = d->action->exit_code;
    r->action.why = d->why ? d->why : "";
    r->action.advice = d->advice;
    r->action.exclude_hosts = hosts;
    r->action.nexclude_hosts = d->nexclude;
    r->action.resume_step = d->resume_step;
    r->action.checkpoint = d->checkpoint;
    r->action.skip_from = d->skip_from;
    r->action.skip_to = d->skip_to;
}

static void build_timeline(struct builder *b, struct fl_report *r)
{
    static const char *const words[] = {NULL,         "startup",    "iterating",
                                        "checkpoint", "evaluation", "shutdown"};
    const struct fl_timeline *t = b->j->timeline;
    uint64_t until = b->v->winner && b->v->winner->best && !b->v->winner->finding
                         ? b->v->winner->first.seq
                         : UINT64_MAX;
    const char **notes = fl_arena_alloc(&b->j->arena, (b->v->nfindings + 1) * sizeof(*notes));
    int64_t good = t->last_step;

    if (!notes) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < b->v->nfindings; i++) {
        notes[r->timeline.nnotes++] = b->v->findings[i].why;
        if (b->v->winner && b->v->winner->finding == &b->v->findings[i])
            good = b->v->findings[i].last_good_step;
    }
    r->timeline.notes = notes;
    r->timeline.phase = words[fl_timeline_phase(b->j, until)];
    r->timeline.first_step = t->first_step;
    r->timeline.last_step = t->last_step;
    r->timeline.last_healthy_step = good;
    r->timeline.total_steps = t->total;
    r->timeline.last_progress = place_at(b->j, &t->last_progress);
    r->timeline.last_progress_time = t->last_progress.line ? time_text(b, &t->last_progress) : NULL;
}

static void build_attempts(struct builder *b, struct fl_report *r)
{
    size_t n = (size_t)b->j->attempt + 1;
    struct fl_attempt *a = fl_arena_alloc(&b->j->arena, n * sizeof(*a));

    if (!a) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct fl_mark *first = i ? &b->j->attempt_first[i] : &b->j->first_line;
        const struct fl_mark *last = i + 1 < n ? &b->j->attempt_first[i + 1] : &b->j->last_line;
        a[i] = (struct fl_attempt){.number = (uint32_t)i + 1,
                                   .first = place_at(b->j, first),
                                   .last = place_at(b->j, last),
                                   .cause = b->v->attempt_cause[i]};
        if (!i)
            a[i].first.line = 1;
    }
    r->attempts = a;
    r->nattempts = n;
}

static size_t hosts_seen(const struct fl_job *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->places.nhosts; i++)
        n += j->places.hosts[i].same_as < 0 && !j->places.hosts[i].address &&
             (j->places.hosts[i].ranks > 0 || j->places.hosts[i].lines > 0);
    return n;
}

static void left_out(struct builder *b, struct fl_report *r)
{
    const struct fl_job *j = b->j;
    const char **v = fl_arena_alloc(&b->j->arena, 3 * sizeof(*v));
    size_t n = 0;

    if (!v) {
        b->failed = true;
        return;
    }
    if (j->left_out)
        v[n++] = "the lines outside --since and --until";
    if (j->places.over)
        v[n++] = "ranks, hosts and cards that are named after more than are kept";
    if (j->nhits >= FL_MAX_HITS)
        v[n++] = "the places of matches after more than are kept; the matches are counted";
    r->input.left_out = v;
    r->input.nleft_out = n;
}

static void build_input(struct builder *b, struct fl_report *r)
{
    struct fl_job *j = b->j;
    size_t n = fl_reader_files(j->reader), k = fl_reader_skips(j->reader);
    struct fl_input_file *f = fl_arena_alloc(&j->arena, (n + 1) * sizeof(*f));
    const char **skipped = fl_arena_alloc(&j->arena, (k + 1) * sizeof(*skipped));

    if (!f || !skipped) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct fl_read_file *x = fl_reader_file(j->reader, i);
        f[i] = (struct fl_input_file){x->name, x->bytes, x->lines, x->note};
        r->input.bytes += x->bytes;
        r->input.lines += x->lines;
        r->input.cut_lines += x->cut_lines;
    }
    for (size_t i = 0; i < k; i++) {
        const struct fl_read_skip *x = fl_reader_skip(j->reader, i);
        skipped[i] = keep(b, fl_arena_f(&j->arena, "%s: %s", x->name, x->why));
    }
    left_out(b, r);
    r->input.files = f;
    r->input.nfiles = n;
    r->input.skipped = skipped;
    r->input.nskipped = k;
    r->input.ranks_seen = j->places.nranks ? (int32_t)j->places.nranks : -1;
    r->input.world_size = j->places.world_size;
    r->input.hosts_seen = hosts_seen(j) ? (int32_t)hosts_seen(j) : -1;
}

static void build_cause(struct builder *b, struct fl_report *r)
{
    static const char *const outcomes[] = {"diagnosed", "unknown", "healthy"};
    const struct fl_verdict *v = b->v;
    const struct fl_candidate_cause *w = v->winner;
    const struct fl_cause *c =
        &b->j->rules->causes[w                                  ? w->cause
                             : v->outcome == FL_OUTCOME_HEALTHY ? b->j->rules->none
                                                                : b->j->rules->unknown];

    r->outcome = outcomes[v->outcome];
    r->cause.id = c->id;
    r->cause.title = c->title;
    r->cause.class_name = fl_class_word(w ? fl_verdict_class(b->j, v) : c->class);
    r->cause.confidence = round(v->confidence * 100) / 100;
    r->cause.decided_by = v->decided_by;
    r->cause.rule = w && w->best && !strcmp(v->decided_by, "rule") ? w->best->rule->id : NULL;
    if (w && w->finding && strcmp(v->decided_by, "timeline") == 0)
        r->cause.summary = w->finding->why;
    else
        r->cause.summary = w && w->best && w->best->summary ? w->best->summary
                           : v->nreasons                    ? v->reasons[0]
                                                            : c->title;
    r->reasons = v->reasons;
    r->nreasons = v->nreasons;
}

int fl_report_build(struct fl_job *j, const struct fl_verdict *v, const struct fl_location *where,
                    const struct fl_decision *d, struct fl_report *out, fl_err *err)
{
    struct builder b = {.j = j, .v = v};
    struct fl_report r = {0};

    build_cause(&b, &r);
    build_evidence(&b, &r);
    fl_report_place(b.j, where, &r);
    build_follow_on(&b, &r);
    build_alternatives(&b, &r);
    fl_report_action(b.j, d, &r);
    build_timeline(&b, &r);
    build_attempts(&b, &r);
    build_input(&b, &r);
    r.rules_version = j->rules->version;
    r.version = fl_version();
    if (b.failed)
        return fl_fail_nomem(err);
    *out = r;
    return FL_OK;
}
