/*
 * What of a job is worth a reader's time, in the order of its worth.
 *
 * The evidence of the deterministic diagnosis must be there. Then: the metric lines that carry the
 * timeline's point, the lines around events, each different traceback, the last lines of the rank
 * in question or, when none is, of the files. What a section says in words begins with '#'.
 *
 * Values are points as of one good line; a block is worth what its lines are together, so that a
 * traceback does not lose to single lines for being long. They were set by reading digests of the
 * labelled cases and asking whether the cause could be named from the page alone.
 */
#include "diagnose/page.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "compress/shape.h"
#include "diagnose/timeline.h"

#define EVENT_CONTEXTS 40
#define EARLY_SHARE 16 /* one rank of so many may have stopped early, to be told */
#define EARLY_LINES 20 /* lines of each rank, on average, that came after it */

static const char *file_name(const struct fl_page *p, uint32_t file)
{
    return fl_reader_file(p->job->reader, file)->name;
}

void fl_page_offer_kept(struct fl_page *p, const struct fl_kept *k)
{
    struct fl_digest_offer o = {.name = file_name(p, k->at.file),
                                .file = k->at.file,
                                .line = k->at.line,
                                .text = k->text,
                                .cut = k->cut,
                                .hash = k->hash};

    fl_digest_add(&p->digest, &o);
}

static uint64_t hash_of(const char *text)
{
    struct fl_tag tag = {0, 0};

    fl_gather_tag(fl_str_c(text), false, &tag);
    return tag.a;
}

/* A text that was kept for the diagnosis: its shape is found anew. */
static void offer_text(struct fl_page *p, uint32_t file, uint64_t line, const char *text, bool cut)
{
    struct fl_digest_offer o = {.name = file_name(p, file),
                                .file = file,
                                .line = line,
                                .text = fl_str_c(text),
                                .cut = cut,
                                .hash = hash_of(text)};

    fl_digest_add(&p->digest, &o);
}

static int64_t file_of(const struct fl_page *p, const char *name)
{
    for (size_t i = 0; i < fl_reader_files(p->job->reader); i++)
        if (fl_reader_file(p->job->reader, i)->name == name)
            return (int64_t)i;
    return -1;
}

/* The first line of each shape must be there; more of the same are only worth much. */
static void evidence(struct fl_page *p)
{
    enum fl_section section = p->healthy ? FL_SECTION_TIMELINE : FL_SECTION_EVIDENCE;
    const struct fl_report *r = p->report;
    uint64_t seen[32];
    size_t n = 0;

    for (size_t i = 0; i < r->nevidence; i++) {
        const struct fl_evidence *e = &r->evidence[i];
        int64_t file = file_of(p, e->at.file);
        struct fl_digest_offer o = {.name = e->at.file,
                                    .file = (uint32_t)file,
                                    .line = e->at.line,
                                    .text = fl_str_c(e->text),
                                    .match_at = e->match_at,
                                    .match_len = e->match_len};
        bool again = false;
        if (file < 0 || !e->text)
            continue;
        o.hash = hash_of(e->text);
        for (size_t k = 0; k < n; k++)
            again |= seen[k] == o.hash;
        if (!again && n < 32)
            seen[n++] = o.hash;
        fl_digest_open(&p->digest, section, 20, !again);
        fl_digest_add(&p->digest, &o);
    }
}

static void offer_point(struct fl_page *p, const struct fl_point *point, double value)
{
    if (!point->text)
        return;
    fl_digest_open(&p->digest, FL_SECTION_TIMELINE, value, false);
    offer_text(p, point->at.file, point->at.line, point->text, false);
}

/* The words of the timeline, and the metric lines that carry them: the first, the last, and those
 * that show a spike or a stall. */
static void timeline(struct fl_page *p)
{
    const struct fl_timeline *t = p->job->timeline;
    const struct fl_report *r = p->report;

    if (r->timeline.phase || r->timeline.last_step >= 0) {
        char steps[160] = "";
        if (r->timeline.last_step >= 0)
            snprintf(steps, sizeof(steps), "%ssteps %lld to %lld", r->timeline.phase ? ", " : "",
                     (long long)r->timeline.first_step, (long long)r->timeline.last_step);
        if (r->timeline.last_step >= 0 && r->timeline.total_steps > 0)
            snprintf(steps + strlen(steps), sizeof(steps) - strlen(steps), " of %lld",
                     (long long)r->timeline.total_steps);
        fl_digest_say(&p->digest, FL_SECTION_TIMELINE, "%s%s",
                      r->timeline.phase ? r->timeline.phase : "", steps);
    }
    for (size_t i = 0; i < r->timeline.nnotes; i++)
        fl_digest_say(&p->digest, FL_SECTION_TIMELINE, "%s", r->timeline.notes[i]);
    for (size_t i = 0; i < p->verdict->nfindings; i++)
        for (size_t k = 0; k < 10 && p->verdict->findings[i].proof[k]; k++)
            offer_point(p, p->verdict->findings[i].proof[k], k < 4 ? 9 : 4);
    if (t->n) {
        offer_point(p, &t->points[0], 3);
        offer_point(p, &t->points[t->n - 1], 8);
        if (t->n > 1)
            offer_point(p, &t->points[t->n - 2], 4);
    }
    if (t->busy[0] && !p->healthy) {
        const struct fl_mark *m = &t->sign[FL_SIGN_BUSY];
        fl_digest_open(&p->digest, FL_SECTION_TIMELINE, 4, false);
        offer_text(p, m->file, m->line, t->busy, strlen(t->busy) == sizeof(t->busy) - 1);
    }
}

/* Where trouble began: the first event of the cause, or what began to sound like trouble after the
 * last step. */
static uint64_t fault_seq(const struct fl_page *p)
{
    const struct fl_candidate_cause *w = p->verdict->winner;
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; w && i < w->nevents; i++)
        for (size_t k = 0; k < w->events[i]->nhits; k++)
            if (w->events[i]->hits[k].mark.seq < first)
                first = w->events[i]->hits[k].mark.seq;
    if (first != UINT64_MAX || p->healthy)
        return first;
    if (p->job->timeline->n)
        return p->job->timeline->last_progress.seq;
    return p->job->seq - p->job->seq / 10;
}

static bool of_cause(const struct fl_page *p, const struct fl_context *c)
{
    const struct fl_candidate_cause *w = p->verdict->winner;
    const struct fl_at *at = &c->line[c->center].at;

    for (size_t i = 0; w && i < w->nevents; i++)
        for (size_t k = 0; k < w->events[i]->nhits; k++)
            if (w->events[i]->hits[k].mark.seq == at->seq)
                return true;
    return false;
}

static double context_value(const struct fl_page *p, const struct fl_context *c)
{
    const struct fl_kept *k = &c->line[c->center];
    const struct fl_shape_row *r = fl_shapes_find(&p->job->gather->shapes, k->hash);
    double v = c->event ? 5 : 3;

    if (of_cause(p, c))
        return fl_page_represents(p, k->hash) ? 6 : 12;
    if (fl_page_represents(p, k->hash))
        v *= 0.4;
    if (r && r->owner & FL_OWN_NOISE)
        return 0.5;
    if (r && r->badness == 3)
        v += 1;
    if (k->at.seq + 5 < p->fault_seq)
        v *= 0.4;
    return p->healthy ? v * 0.2 : v;
}

/* A line that says nothing beside an event: a metric line, or what filters drop. */
static bool routine(const struct fl_page *p, uint64_t hash)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    const struct fl_shape_row *r = fl_shapes_find(t, hash);

    return r && !(r->owner & (FL_OWN_EVENT | FL_OWN_TRACEBACK)) &&
           (r->owner & FL_OWN_METRIC || r->count > 1000 || fl_page_drops(p, (size_t)(r - t->rows)));
}

struct ranked {
    size_t index;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The line itself, and as a dearer block the lines around it. */
static void events(struct fl_page *p)
{
    struct fl_gather *g = p->job->gather;
    struct ranked *v = fl_malloc((g->ncontexts + 1) * sizeof(*v));

    if (!v) {
        p->digest.failed = true;
        return;
    }
    for (size_t i = 0; i < g->ncontexts; i++)
        v[i] = (struct ranked){i, context_value(p, &g->contexts[i])};
    qsort(v, g->ncontexts, sizeof(*v), by_value);
    for (size_t i = 0; i < g->ncontexts && i < EVENT_CONTEXTS; i++) {
        const struct fl_context *c = &g->contexts[v[i].index];
        fl_digest_open(&p->digest, FL_SECTION_EVENTS, v[i].value, false);
        fl_page_offer_kept(p, &c->line[c->center]);
        fl_digest_open(&p->digest, FL_SECTION_EVENTS, v[i].value, false);
        for (size_t k = 0; k < c->n; k++)
            if (k == c->center || !routine(p, c->line[k].hash))
                fl_page_offer_kept(p, &c->line[k]);
    }
    fl_free(v);
}

/* Is one of the traceback's lines evidence? */
static bool proves(const struct fl_page *p, const struct fl_whole *w)
{
    for (size_t i = 0; i < p->report->nevidence; i++)
        for (size_t k = 0; k < w->n; k++)
            if (p->report->evidence[i].at.line == w->line[k].at.line &&
                p->report->evidence[i].at.file == file_name(p, w->line[k].at.file))
                return true;
    return false;
}

static void tracebacks(struct fl_page *p)
{
    struct fl_gather *g = p->job->gather;

    for (size_t i = 0; i < g->nwholes; i++) {
        const struct fl_whole *w = &g->wholes[i];
        bool proof = proves(p, w);
        double each = proof ? 3 : w->line[0].at.seq + 5 < p->fault_seq ? 0.5 : 1.5;
        size_t tail = w->n > 5 ? w->n - 5 : 0;
        if (w->count > 1)
            each *= 0.9;
        /* Its end, and all of it. */
        fl_digest_open(&p->digest, FL_SECTION_TRACEBACKS, 6 * each, false);
        for (size_t k = tail; k < w->n; k++)
            fl_page_offer_kept(p, &w->line[k]);
        if (!tail)
            continue;
        fl_digest_open(&p->digest, FL_SECTION_TRACEBACKS, (double)w->n * each * 0.5, false);
        for (size_t k = 0; k < w->n; k++)
            fl_page_offer_kept(p, &w->line[k]);
    }
}

static void rank_tail(struct fl_page *p, int32_t rank)
{
    struct fl_gather *g = p->job->gather;
    const struct fl_rank *r = fl_places_rank(&p->job->places, rank, false);

    for (size_t i = 0; i < g->nendings; i++) {
        const struct fl_ending *e = &g->endings[i];
        if (p->job->files[e->file].place.rank != rank)
            continue;
        fl_digest_open(&p->digest, FL_SECTION_TAIL, 8, false);
        for (size_t k = e->n > 8 ? e->n - 8 : 0; k < e->n; k++)
            fl_page_offer_kept(p, &e->line[k]);
    }
    if (r && r->told.line && r->text[0]) {
        fl_digest_open(&p->digest, FL_SECTION_TAIL, 6, false);
        offer_text(p, r->told.file, r->told.line, r->text, strlen(r->text) == sizeof(r->text) - 1);
    }
}

/* What the rank in question itself said of the cause. */
static void rank_hits(struct fl_page *p, int32_t rank)
{
    const struct fl_candidate_cause *w = p->verdict->winner;

    for (size_t i = 0, told = 0; w && i < w->nevents && told < 3; i++)
        for (size_t k = 0; k < w->events[i]->nhits && told < 3; k++) {
            const struct fl_hit *h = &w->events[i]->hits[k];
            if (!h->text || fl_places_rank_of(p->job, &h->mark) != rank)
                continue;
            fl_digest_open(&p->digest, FL_SECTION_EVENTS, 10, false);
            offer_text(p, h->mark.file, h->mark.line, h->text, false);
            told++;
        }
}

/* The ends of files, when no rank is in question. */
static void file_tails(struct fl_page *p)
{
    struct fl_gather *g = p->job->gather;
    size_t most = g->nendings < 6 ? g->nendings : 6;

    for (size_t i = g->nendings - most; i < g->nendings; i++) {
        const struct fl_ending *e = &g->endings[i];
        double value = p->report->outcome[0] == 'u' ? 8 : p->healthy ? 1 : 2.5;
        if (g->nendings > most && p->report->outcome[0] != 'u')
            continue;
        fl_digest_open(&p->digest, FL_SECTION_TAIL, value, false);
        for (size_t k = e->n > 6 ? e->n - 6 : 0; k < e->n; k++)
            fl_page_offer_kept(p, &e->line[k]);
    }
}

static int by_seq(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* A rank that printed like the others and stopped long before them. */
static void stopped_early(struct fl_page *p)
{
    const struct fl_places *pl = &p->job->places;
    uint64_t *last = fl_malloc((pl->nranks + 1) * sizeof(*last)), middle, gap;
    size_t n = 0, early = 0;

    if (!last) {
        p->digest.failed = true;
        return;
    }
    for (size_t i = 0; i < pl->nranks; i++)
        if (pl->ranks[i].lines > 10)
            last[n++] = pl->ranks[i].last.seq;
    qsort(last, n, sizeof(*last), by_seq);
    middle = n ? last[n / 2] : 0;
    gap = EARLY_LINES * (uint64_t)n;
    if (p->fault_seq != UINT64_MAX && p->fault_seq < middle)
        middle = p->fault_seq; /* who stopped later was stopped */
    for (size_t i = 0; i < n; i++)
        early += last[i] + gap < middle;
    fl_free(last);
    if (n < 4 || !early || early > (n + EARLY_SHARE - 1) / EARLY_SHARE)
        return;
    for (size_t i = 0, told = 0; i < pl->nranks && told < 3; i++) {
        const struct fl_rank *r = &pl->ranks[i];
        if (r->lines <= 10 || r->last.seq + gap >= middle)
            continue;
        fl_digest_say(&p->digest, FL_SECTION_TAIL,
                      "rank %d printed its last line while the others went on for %llu lines",
                      r->rank, (unsigned long long)(middle - r->last.seq));
        rank_tail(p, r->rank);
        told++;
    }
}

static void top(struct fl_page *p)
{
    const struct fl_report *r = p->report;
    char place[160] = "";

    if (r->location.nranks == 1)
        snprintf(place, sizeof(place), ", rank %d", r->location.ranks[0]);
    if (r->location.nhosts == 1)
        snprintf(place + strlen(place), sizeof(place) - strlen(place), ", host %.60s",
                 r->location.hosts[0]);
    fl_digest_say(&p->digest, FL_SECTIONS, "digest of %zu file%s, %llu lines, %llu bytes",
                  r->input.nfiles, r->input.nfiles == 1 ? "" : "s",
                  (unsigned long long)r->input.lines, (unsigned long long)r->input.bytes);
    if (p->healthy)
        fl_digest_say(&p->digest, FL_SECTIONS, "nothing failed in this log");
    else if (r->outcome[0] == 'u')
        fl_digest_say(&p->digest, FL_SECTIONS, "something failed, and no rule knows what");
    else
        fl_digest_say(&p->digest, FL_SECTIONS, "%s (%s), said by %s with confidence %.2f%s",
                      r->cause.id, r->cause.title, r->cause.rule ? r->cause.rule : "the timeline",
                      r->cause.confidence, place);
}

void fl_page_offer(struct fl_page *p)
{
    p->fault_seq = fault_seq(p);
    top(p);
    evidence(p);
    timeline(p);
    events(p);
    tracebacks(p);
    stopped_early(p);
    if (p->where->nranks && p->where->nranks <= 2)
        for (size_t i = 0; i < p->where->nranks; i++) {
            rank_hits(p, p->where->ranks[i]);
            rank_tail(p, p->where->ranks[i]);
        }
    else
        file_tails(p);
    fl_page_offer_rest(p);
}
