/*
 * From pieces to the nearest incidents.
 *
 * Two ways of likeness: vectors see meaning, BM25 sees names and error codes. Each piece is looked
 * up by both; an incident has, of each, the best score that any piece has with any of its lines.
 * The lists are joined by reciprocal rank (Cormack, Clarke, Buettcher 2009, k = 60), which needs no
 * common scale. An embedding endpoint, where one is configured, makes a third list beside the local
 * model's: one more opinion, and no list less when it is down or knows less of logs than hoped.
 *
 * A piece whose best match is a follow-on error or a harmless line is probably one, and counts less
 * for all; such entries absorb noise and are never returned.
 *
 * The score that is told is not the cosine, which lies within a few hundredths for right and wrong:
 * it says how often a first neighbour with such a cosine, such a BM25 and such an agreement of the
 * two lists had the right cause, measured on the labelled cases (see score_of).
 */
#include "diagnose/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/remote.h"

#define NEAR 32  /* vectors and documents looked at for each piece */
#define DEEP 100 /* incidents of each list that are ranked */
#define RRF 60.0
#define ABSORBED 0.3
#define RAREST 16 /* words of a piece that are searched */
#define MATCHES 4 /* lines shown of an incident */
#define FLOOR 0.25
#define QUIET_FLOOR 0.75 /* of a log in which nothing sounds like trouble after its last step */

enum { VECTORS, WORDS, REMOTE, WAYS };

/* The cosine, and the BM25 by the root of the words, that any two lines of logs have. */
static const double common[WAYS] = {0.4, 1.0, 0.4};

struct found { /* an incident, by one way */
    double best, sum;
    uint32_t rank; /* from 1; 0: not in the list */
};

struct candidate {
    int64_t incident;
    struct found by[WAYS];
    struct { /* the best lines, by vectors */
        uint32_t piece, doc;
        double score;
    } match[MATCHES];
    size_t nmatch;
    bool known;
    int kind;
    struct fl_incident inc;
    double fused;
};

struct fl_neighbours {
    fl_arena arena;
    struct fl_neighbour *v;
    size_t n;
};

struct search {
    fl_memory *m;
    struct fl_pieces *p;
    fl_arena arena;
    struct candidate *c;
    size_t n, cap;
    fl_map at;   /* incident -> candidate */
    struct hit { /* all that was found, before absorption */
        uint32_t candidate, piece, doc;
        float score;
        uint8_t way;
    } * hits;
    size_t nhits, hits_cap;
    uint32_t piece; /* in work */
    double scale;
    struct fl_pieces *whole;
};

static int candidate_of(struct search *s, int64_t incident, uint32_t *out, fl_err *err)
{
    bool added = false;

    if (fl_map_intern(&s->at, fl_str_n((const char *)&incident, sizeof(incident)), (uint32_t)s->n,
                      out, &added))
        return fl_fail_nomem(err);
    if (!added)
        return FL_OK;
    if (fl_grow((void **)&s->c, &s->cap, s->n + 1, sizeof(*s->c)))
        return fl_fail_nomem(err);
    s->c[s->n++] = (struct candidate){.incident = incident};
    return FL_OK;
}

static int add_hit(struct search *s, int64_t incident, uint32_t doc, double score, int way,
                   fl_err *err)
{
    uint32_t c = 0;
    int r = candidate_of(s, incident, &c, err);

    if (r)
        return r;
    if (fl_grow((void **)&s->hits, &s->hits_cap, s->nhits + 1, sizeof(*s->hits)))
        return fl_fail_nomem(err);
    s->hits[s->nhits++] = (struct hit){c, s->piece, doc, (float)score, (uint8_t)way};
    return FL_OK;
}

static int load_info(struct search *s, struct candidate *c, fl_err *err)
{
    int r;

    if (c->known)
        return FL_OK;
    r = fl_store_get_number(s->m->store, c->incident, &s->arena, &c->inc, err);
    if (r == FL_ENOTFOUND) { /* removed meanwhile */
        c->kind = FL_KIND_HARMLESS;
        r = FL_OK;
    } else if (!r) {
        c->kind = (int)c->inc.kind;
    }
    c->known = !r;
    return r;
}

/* ---- vectors ---- */

static int take_vector(struct search *s, const struct fl_space *sp, int64_t incident, uint32_t doc,
                       double cosine, fl_err *err)
{
    bool remote = sp != &s->m->local;

    if (remote)
        cosine = fl_remote_cosine(s->m, cosine);
    if (cosine <= 0)
        return FL_OK;
    return add_hit(s, incident, doc, cosine, remote ? REMOTE : VECTORS, err);
}

static int take_fresh(struct search *s, const struct fl_space *sp, const int64_t *ids,
                      const float *scores, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; !r && i < NEAR && ids[i] >= 0; i++) {
        const struct fl_doc *d = &sp->fresh.doc[ids[i]];
        r = take_vector(s, sp, d->incident, d->piece, scores[i], err);
    }
    return r;
}

static int take_indexed(struct search *s, const struct fl_space *sp, const int64_t *ids,
                        const float *scores, fl_err *err)
{
    int64_t incident;
    uint32_t doc;
    int r = FL_OK;

    for (size_t i = 0; !r && i < NEAR && ids[i] >= 0; i++) {
        r = fl_store_vector_of(s->m->store, ids[i], &incident, &doc, err);
        if (!r)
            r = take_vector(s, sp, incident, doc, scores[i], err);
        r = r == FL_ENOTFOUND ? FL_OK : r; /* removed since the index was made */
    }
    return r;
}

/* A fault of the index costs its speed and not the answer. */
static int without_index(struct search *s, struct fl_space *sp, const fl_err *why, fl_err *err)
{
    fl_space_unload(sp);
    fl_memory_say(s->m,
                  "the index is not used (%.300s); incidents are compared one by one until "
                  "`diagnose reindex` has run",
                  why->msg);
    sp->no_index = true;
    return fl_space_load(s->m, sp, err);
}

/* The vectors of a space that are nearest to those of the pieces. */
static int in_space(struct search *s, struct fl_space *sp, const float *q, fl_err *err)
{
    size_t n = s->p->n, dim = sp->embedder.dim;
    float *scores = fl_arena_alloc(&s->arena, n * NEAR * sizeof(*scores));
    int64_t *ids = fl_arena_alloc(&s->arena, n * NEAR * sizeof(*ids));
    fl_err why = {0};
    int r = scores && ids ? fl_space_load(s->m, sp, err) : fl_fail_nomem(err);

    if (!r && sp->index && fl_index_search(sp->index, q, n, NEAR, ids, scores, &why))
        r = without_index(s, sp, &why, err);
    for (size_t i = 0; !r && sp->index && i < n; i++) {
        s->piece = (uint32_t)i;
        r = take_indexed(s, sp, ids + i * NEAR, scores + i * NEAR, err);
    }
    if (!r && sp->fresh.n)
        r = fl_exact_search(sp->fresh.v, NULL, sp->fresh.n, (uint32_t)dim, q, n, NEAR, ids, scores,
                            err);
    for (size_t i = 0; !r && sp->fresh.n && i < n; i++) {
        s->piece = (uint32_t)i;
        r = take_fresh(s, sp, ids + i * NEAR, scores + i * NEAR, err);
    }
    return r;
}

static int by_local(struct search *s, fl_err *err)
{
    struct fl_embedder *e = &s->m->local.embedder;
    size_t n = s->p->n;
    fl_str *texts = fl_arena_alloc(&s->arena, n * sizeof(*texts));
    float *q = fl_arena_alloc(&s->arena, n * e->dim * sizeof(*q));
    int r;

    if (!texts || !q)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        texts[i] = s->p->v[i].text;
    r = e->embed(e->ctx, texts, n, q, err);
    return r ? r : in_space(s, &s->m->local, q, err);
}

/* Whatever goes wrong with an endpoint costs a sentence: the local vectors are there. */
static int by_remote(struct search *s, fl_err *err)
{
    fl_memory *m = s->m;
    float *q = NULL;
    fl_err why = {0};
    int r;

    if (!m->remote)
        return FL_OK;
    if (!fl_remote_ready(m)) {
        fl_memory_say(m,
                      "the vectors of %s are not ready; past incidents are searched with the local "
                      "model's until `diagnose reindex` has run",
                      fl_remote_name(m->remote));
        return FL_OK;
    }
    r = fl_remote_pieces(m, s->p, &s->arena, &q, &why);
    if (!r)
        return in_space(s, fl_remote_space(m->remote), q, err);
    if (r == FL_ENOMEM)
        return fl_fail_nomem(err);
    fl_memory_say(m, "past incidents were searched with the local model's vectors: %.500s",
                  why.msg);
    return FL_OK;
}

/* ---- words ---- */

static int take_words(void *ctx, const struct fl_store_hit *h, fl_err *err)
{
    struct search *s = ctx;

    return add_hit(s, h->incident, h->piece, h->bm25 * s->scale, WORDS, err);
}

static int by_words(struct search *s, fl_err *err)
{
    fl_str terms[128];
    int r = FL_OK;
    fl_buf b;

    fl_buf_init(&b, 1u << 20);
    for (size_t i = 0; !r && i < s->p->n; i++) {
        struct fl_store_query q = {.terms = terms, .k = NEAR, .rarest = RAREST};
        fl_str rest;
        fl_buf_clear(&b);
        fl_store_words(s->p->v[i].text, &b);
        rest = fl_buf_str(&b);
        while (rest.n && q.n < sizeof(terms) / sizeof(*terms)) {
            fl_str w = fl_str_cut(&rest, ' ');
            if (w.n)
                terms[q.n++] = w;
        }
        s->piece = (uint32_t)i;
        s->scale = 1 / sqrt(1 + (double)q.n);
        if (q.n)
            r = fl_store_search(s->m->store, &q, take_words, s, err);
    }
    fl_buf_dispose(&b);
    return r;
}

/* ---- together ---- */

/* The factor of each piece and way: less when its best match absorbs. */
static int absorb(struct search *s, double factor[][WAYS], fl_err *err)
{
    struct best {
        float score;
        uint32_t candidate;
    }(*best)[WAYS] = fl_arena_alloc(&s->arena, s->p->n * sizeof(*best));
    int r = FL_OK;

    if (!best)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < s->nhits; i++) {
        const struct hit *h = &s->hits[i];
        if (h->score > best[h->piece][h->way].score)
            best[h->piece][h->way] = (struct best){h->score, h->candidate};
    }
    for (size_t i = 0; i < s->p->n; i++)
        for (int way = 0; !r && way < WAYS; way++) {
            factor[i][way] = 1;
            if (best[i][way].score <= 0)
                continue;
            r = load_info(s, &s->c[best[i][way].candidate], err);
            if (!r && s->c[best[i][way].candidate].kind != FL_KIND_INCIDENT)
                factor[i][way] = ABSORBED;
        }
    return r;
}

static void note_match(struct candidate *c, const struct hit *h)
{
    size_t i = 0;

    while (i < c->nmatch && c->match[i].piece != h->piece)
        i++;
    if (i < c->nmatch) {
        if (c->match[i].score < h->score)
            c->match[i].score = h->score, c->match[i].doc = h->doc;
        return;
    }
    if (c->nmatch < MATCHES)
        i = c->nmatch++;
    else
        for (i = 0, c->nmatch = MATCHES; i < MATCHES && c->match[i].score >= h->score; i++)
            ;
    if (i < MATCHES) {
        c->match[i].piece = h->piece;
        c->match[i].doc = h->doc;
        c->match[i].score = h->score;
    }
}

static int by_sum(const void *a, const void *b, int way)
{
    const struct candidate *x = *(struct candidate *const *)a, *y = *(struct candidate *const *)b;

    if (x->by[way].sum != y->by[way].sum)
        return x->by[way].sum > y->by[way].sum ? -1 : 1;
    return x->incident < y->incident ? -1 : x->incident > y->incident;
}

static int by_vector_sum(const void *a, const void *b)
{
    return by_sum(a, b, VECTORS);
}

static int by_word_sum(const void *a, const void *b)
{
    return by_sum(a, b, WORDS);
}

static int by_remote_sum(const void *a, const void *b)
{
    return by_sum(a, b, REMOTE);
}

static int by_fused(const void *a, const void *b)
{
    const struct candidate *x = *(struct candidate *const *)a, *y = *(struct candidate *const *)b;

    if (x->fused != y->fused)
        return x->fused > y->fused ? -1 : 1;
    return x->incident < y->incident ? -1 : x->incident > y->incident;
}

/* Ranks the incidents of one way; entries that absorb take no place. */
static int rank_way(struct search *s, int way, struct candidate **order, fl_err *err)
{
    static int (*const compare[WAYS])(const void *, const void *) = {by_vector_sum, by_word_sum,
                                                                     by_remote_sum};
    uint32_t rank = 0;
    int r = FL_OK;

    qsort(order, s->n, sizeof(*order), compare[way]);
    for (size_t i = 0; !r && i < s->n && rank < DEEP && order[i]->by[way].sum > 0; i++) {
        r = load_info(s, order[i], err);
        if (!r && order[i]->kind == FL_KIND_INCIDENT)
            order[i]->by[way].rank = ++rank;
    }
    return r;
}

/* By incident, way and piece, the best first: what follows of one piece is no news. */
static int by_piece(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;

    if (x->candidate != y->candidate)
        return x->candidate < y->candidate ? -1 : 1;
    if (x->way != y->way)
        return x->way < y->way ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    return x->score > y->score ? -1 : x->score < y->score;
}

/* Adds up what each piece brings an incident above what any two lines have in common. */
static void add_up(struct search *s, double factor[][WAYS])
{
    if (s->nhits)
        qsort(s->hits, s->nhits, sizeof(*s->hits), by_piece);
    for (size_t i = 0; i < s->nhits; i++) {
        const struct hit *h = &s->hits[i];
        struct candidate *c = &s->c[h->candidate];
        struct found *f = &c->by[h->way];
        double score = h->score * factor[h->piece][h->way] * s->p->v[h->piece].weight;
        if (i && h[-1].candidate == h->candidate && h[-1].way == h->way && h[-1].piece == h->piece)
            continue;
        if (score > common[h->way])
            f->sum += score - common[h->way];
        if (h->score * factor[h->piece][h->way] > f->best)
            f->best = h->score * factor[h->piece][h->way];
        if (h->way != WORDS)
            note_match(c, h);
    }
}

static bool counts(enum fl_search_by by, int way)
{
    switch (by) {
    case FL_BY_ALL:
        return true;
    case FL_BY_BOTH:
        return way != REMOTE;
    case FL_BY_WORDS:
        return way == WORDS;
    case FL_BY_VECTORS:
    case FL_BY_WHOLE:
        return way == VECTORS;
    case FL_BY_ENDPOINT:
        return way == REMOTE;
    }
    return false;
}

static int fuse(struct search *s, enum fl_search_by by, struct candidate **order, fl_err *err)
{
    double(*factor)[WAYS] = fl_arena_alloc(&s->arena, (s->p->n + 1) * sizeof(*factor));
    int r = factor ? absorb(s, factor, err) : fl_fail_nomem(err);

    if (!r)
        add_up(s, factor);
    for (int way = 0; !r && way < WAYS; way++)
        r = rank_way(s, way, order, err);
    for (size_t i = 0; !r && i < s->n; i++) {
        struct candidate *c = &s->c[i];
        for (int way = 0; way < WAYS; way++)
            if (c->by[way].rank && counts(by, way))
                c->fused += 1 / (RRF + c->by[way].rank);
    }
    if (!r)
        qsort(order, s->n, sizeof(*order), by_fused);
    return r;
}

/*
 * How often a first neighbour like this had the right cause: a logistic function of what the two
 * ways add up to, of its ranks in both, and of how many of the first five have its cause, fitted to
 * 209 labelled failures and 35 healthy logs (which it was measured on as well: 29 claimed over 0.9,
 * all right; 80 claimed 0.65 to 0.9, 60 right; 75 claimed 0.35 to 0.65, 37; 60 less, 13). It was
 * fitted to the local model alone; of an endpoint's list and the local one the stronger counts.
 */
static double score_of(const struct candidate *c, double agree)
{
    const struct found *v = &c->by[VECTORS], *w = &c->by[WORDS], *e = &c->by[REMOTE];
    double first = fmax(v->rank ? 1.0 / v->rank : 0, e->rank ? 1.0 / e->rank : 0);
    double ranks = first + (w->rank ? 1.0 / w->rank : 0);
    double x = -3.43 + 1.41 * log1p(fmax(v->sum, e->sum)) + 0.53 * log1p(w->sum) + 0.33 * ranks +
               2.19 * agree;

    return 1 / (1 + exp(-x));
}

/* The share of the first five that have this one's cause. */
static int agreement(struct search *s, struct candidate **order, struct candidate *c, double *out,
                     fl_err *err)
{
    int r = load_info(s, c, err);
    size_t n = 0;

    for (size_t i = 0; !r && i < 5 && i < s->n && order[i]->fused > 0; i++) {
        r = load_info(s, order[i], err);
        n += !r && order[i]->kind == FL_KIND_INCIDENT &&
             fl_str_eq(order[i]->inc.cause, c->inc.cause);
    }
    *out = (double)n / 5;
    return r;
}

static const char *keep(fl_arena *a, fl_str s)
{
    return fl_arena_z(a, s);
}

static int give(struct search *s, const struct candidate *c, double score,
                struct fl_neighbours *out, fl_err *err)
{
    struct fl_neighbour *n = &out->v[out->n];
    struct fl_matched *m;
    fl_arena *a = &out->arena;

    *n = (struct fl_neighbour){.incident = keep(a, c->inc.id),
                               .cause = keep(a, c->inc.cause),
                               .title = keep(a, c->inc.title),
                               .explanation = keep(a, c->inc.explanation),
                               .fix = keep(a, c->inc.fix),
                               .source = keep(a, c->inc.source),
                               .origin = fl_incident_origin_word(c->inc.origin),
                               .score = score,
                               .similarity = fmax(c->by[VECTORS].best, c->by[REMOTE].best),
                               .words = c->by[WORDS].best,
                               .seen = c->inc.count ? c->inc.count : 1};
    m = fl_arena_alloc(a, MATCHES * sizeof(*m));
    for (size_t i = 0; m && i < c->nmatch; i++) {
        const struct fl_piece *p = &s->p->v[c->match[i].piece];
        uint32_t doc = c->match[i].doc;
        m[i] = (struct fl_matched){
            .at = {p->file ? keep(a, fl_str_c(p->file)) : NULL, p->number},
            .text = keep(a, p->line.n ? p->line : p->text),
            .incident_text =
                keep(a, doc < c->inc.nevidence ? c->inc.evidence[doc] : c->inc.explanation),
            .similarity = c->match[i].score};
    }
    n->matched = m;
    n->nmatched = c->nmatch;
    if (a->failed)
        return fl_fail_nomem(err);
    out->n++;
    return FL_OK;
}

static int run(struct search *s, const struct fl_search_opts *opts, fl_neighbours *out, fl_err *err)
{
    size_t k = opts && opts->k ? opts->k : 5;
    double floor = opts && opts->floor != 0 ? opts->floor : s->p->late ? FLOOR : QUIET_FLOOR, agree;
    enum fl_search_by by = opts ? opts->by : FL_BY_ALL;
    struct candidate **order;
    int r = by_local(s, err);

    if (!r && counts(by, REMOTE))
        r = by_remote(s, err);
    if (!r)
        r = by_words(s, err);
    order = fl_arena_alloc(&s->arena, (s->n + 1) * sizeof(*order));
    out->v = fl_arena_alloc(&out->arena, (k + 1) * sizeof(*out->v));
    if (!r && (!order || !out->v))
        r = fl_fail_nomem(err);
    for (size_t i = 0; !r && i < s->n; i++)
        order[i] = &s->c[i];
    if (!r)
        r = fuse(s, by, order, err);
    for (size_t i = 0; !r && i < s->n && out->n < k && order[i]->fused > 0; i++) {
        r = agreement(s, order, order[i], &agree, err);
        if (!r && score_of(order[i], agree) >= floor)
            r = give(s, order[i], score_of(order[i], agree), out, err);
    }
    return r;
}

/* All pieces as one: what the others are measured against. */
static int as_one(struct search *s, fl_err *err)
{
    fl_buf b;

    s->whole = fl_calloc(1, sizeof(*s->whole));
    if (!s->whole)
        return fl_fail_nomem(err);
    fl_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < s->p->n; i++) {
        fl_buf_add(&b, s->p->v[i].text);
        fl_buf_addc(&b, ' ');
    }
    if (s->p->n)
        s->whole->v[s->whole->n++] =
            (struct fl_piece){.text = fl_arena_str(&s->arena, fl_buf_str(&b)), .weight = 1};
    s->p = s->whole;
    fl_buf_dispose(&b);
    return s->arena.failed ? fl_fail_nomem(err) : FL_OK;
}

static int search(fl_memory *m, struct fl_pieces *p, const struct fl_search_opts *opts,
                  fl_neighbours **out, fl_err *err)
{
    fl_neighbours *n = fl_calloc(1, sizeof(*n));
    struct search s = {.m = m, .p = p};
    int r = FL_OK;

    if (!n)
        return fl_fail_nomem(err);
    fl_arena_init(&n->arena);
    fl_arena_init(&s.arena);
    fl_map_init(&s.at);
    if (opts && opts->by == FL_BY_WHOLE)
        r = as_one(&s, err);
    if (!r && s.p->n)
        r = run(&s, opts, n, err);
    fl_free(s.whole);
    fl_free(s.c);
    fl_free(s.hits);
    fl_map_dispose(&s.at);
    fl_arena_dispose(&s.arena);
    if (r) {
        fl_neighbours_free(n);
        return r;
    }
    *out = n;
    return FL_OK;
}

int fl_search_job(fl_memory *m, const fl_diagnosis *d, const struct fl_search_opts *opts,
                  fl_neighbours **out, fl_err *err)
{
    struct fl_pieces p;
    int r;

    if (!d->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what a search needs; "
                       "set fl_diagnose_opts.digest");
    /* The diagnosis is read, not changed. */
    r = fl_pieces_of_job(m->engine, (struct fl_diagnosis *)(uintptr_t)d, &p, err);
    if (r)
        return r;
    r = search(m, &p, opts, out, err);
    fl_pieces_dispose(&p);
    return r;
}

int fl_search_text(fl_memory *m, const char *text, const struct fl_search_opts *opts,
                   fl_neighbours **out, fl_err *err)
{
    struct fl_pieces p;
    int r = fl_pieces_of_text(fl_str_c(text), &p, err);

    if (!r)
        r = search(m, &p, opts, out, err);
    fl_pieces_dispose(&p);
    return r;
}

void fl_neighbours_free(fl_neighbours *n)
{
    if (!n)
        return;
    fl_arena_dispose(&n->arena);
    fl_free(n);
}

size_t fl_neighbours_count(const fl_neighbours *n)
{
    return n->n;
}

const struct fl_neighbour *fl_neighbours_get(const fl_neighbours *n, size_t i)
{
    return &n->v[i];
}
