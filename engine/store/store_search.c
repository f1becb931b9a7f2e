/*
 * Search by words and the vectors' way in and out.
 *
 * BM25 over all words of an error line is slow in a large memory, and pointlessly so: "error",
 * "rank" and "failed" stand in most documents, cost most of the time and tell nothing. So the terms
 * are counted first and only the rarest are searched. Counting stops early: whether a word stands
 * in three thousand documents or in three hundred thousand makes no difference to the choice, so
 * the limit is raised only as long as there are not enough rare ones, and beyond four thousand only
 * as long as there is none. A term above the last limit is never searched; in a memory so large
 * that this happens, such a word is no name.
 *
 * Terms come from logs, and a log may hold anything; FTS5's query language is never spoken with it.
 * A term that is not made of the search alphabet cannot be in the index and is left out, so there
 * is nothing to escape.
 */
#include "store/parts.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/alloc.h"

#define MAX_WORD 64
#define MAX_DIGITS 4
#define MAX_TERMS 256
#define FEW 512     /* documents: how far terms are counted at first */
#define ENOUGH 4096 /* a term below this is searched alone rather than with commoner ones */
#define BATCH 4096

static bool is_lower(unsigned char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(unsigned char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool in_word(unsigned char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c >= 0x80;
}

/* Long numbers and addresses are different each time and would be the rarest words of all. */
static bool is_noise(fl_str w)
{
    size_t digits = 0;

    while (digits < w.n && is_digit((unsigned char)w.p[digits]))
        digits++;
    if (digits == w.n)
        return w.n > MAX_DIGITS;
    return w.n > 6 && w.p[0] == '0' && (w.p[1] == 'x' || w.p[1] == 'X');
}

static void add_word(fl_str w, fl_buf *out)
{
    char low[MAX_WORD];
    size_t n = w.n < MAX_WORD ? w.n : MAX_WORD;

    if (n == 0 || is_noise(w))
        return;
    for (size_t i = 0; i < n; i++)
        low[i] = is_upper((unsigned char)w.p[i]) ? (char)(w.p[i] + 32) : w.p[i];
    if (out->n && out->p[out->n - 1] != ' ')
        fl_buf_addc(out, ' ');
    fl_buf_add(out, fl_str_n(low, n));
}

/* Where the part that begins at `at` ends: before '_', before Upper behind lower, before the last
 * Upper of a run that a lower one follows. */
static size_t part_end(fl_str w, size_t at)
{
    size_t i = at + 1;

    for (; i < w.n; i++) {
        unsigned char c = (unsigned char)w.p[i], before = (unsigned char)w.p[i - 1];
        if (c == '_' || (is_upper(c) && is_lower(before)))
            break;
        if (is_upper(c) && is_upper(before) && i + 1 < w.n && is_lower((unsigned char)w.p[i + 1]))
            break;
    }
    return i;
}

static void add_parts(fl_str w, fl_buf *out)
{
    size_t at = 0, end;

    for (; at < w.n; at = end) {
        if (w.p[at] == '_') {
            end = at + 1;
            continue;
        }
        end = part_end(w, at);
        if (end - at < w.n && end - at > 1)
            add_word(fl_str_sub(w, at, end - at), out);
    }
}

void fl_store_words(fl_str text, fl_buf *out)
{
    size_t i = 0;

    while (i < text.n) {
        size_t from = i;
        while (i < text.n && in_word((unsigned char)text.p[i]))
            i++;
        if (i > from) {
            fl_str w = fl_str_sub(text, from, i - from);
            add_word(w, out);
            add_parts(fl_str_sub(w, 0, MAX_WORD), out);
        } else {
            i++;
        }
    }
}

struct term {
    fl_str text;
    uint64_t docs; /* counted up to `cap` */
    size_t order;
};

static int by_rarity(const void *pa, const void *pb)
{
    const struct term *a = pa, *b = pb;

    if (a->docs != b->docs)
        return a->docs < b->docs ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Lower case, of the search alphabet, not yet there: else it is left out. */
static int take_terms(const struct fl_store_query *q, fl_arena *a, struct term *t, size_t *n,
                      fl_err *err)
{
    size_t count = 0;

    for (size_t i = 0; i < q->n && count < MAX_TERMS; i++) {
        fl_str w = fl_str_sub(q->terms[i], 0, MAX_WORD);
        bool good = w.n > 0;
        char *low = fl_arena_alloc(a, w.n + 1);
        if (!low)
            return fl_fail_nomem(err);
        for (size_t k = 0; good && k < w.n; k++) {
            good = in_word((unsigned char)w.p[k]);
            low[k] = is_upper((unsigned char)w.p[k]) ? (char)(w.p[k] + 32) : w.p[k];
        }
        for (size_t k = 0; good && k < count; k++)
            good = !fl_str_eq(t[k].text, fl_str_n(low, w.n));
        if (good) {
            t[count] = (struct term){fl_str_n(low, w.n), UINT64_MAX, count};
            count++;
        }
    }
    *n = count;
    return FL_OK;
}

static int count_again(fl_store *s, struct term *t, size_t n, uint64_t cap, fl_err *err)
{
    fl_str texts[MAX_TERMS];
    uint64_t docs[MAX_TERMS];
    int r;

    for (size_t i = 0; i < n; i++)
        texts[i] = t[i].text;
    r = n ? s->ops->frequency(s->db, texts, n, cap, docs, err) : FL_OK;
    for (size_t i = 0; !r && i < n; i++)
        t[i].docs = docs[i];
    if (!r)
        qsort(t, n, sizeof(*t), by_rarity);
    return r;
}

/* Sorts by rarity, counting no further than the choice of `want` terms needs. The counts below
 * *exact are right, the others are at least that. */
static int count_terms(fl_store *s, struct term *t, size_t n, size_t want, uint64_t most,
                       uint64_t enough, uint64_t *exact, fl_err *err)
{
    uint64_t cap = 0;
    size_t sure = 0, absent = 0;
    int r = FL_OK;

    do {
        cap = cap ? cap * 8 : FEW;
        if (cap > most)
            cap = most + 1;
        r = count_again(s, t + sure, n - sure, cap, err);
        while (sure < n && t[sure].docs < cap)
            absent += t[sure++].docs == 0;
    } while (!r && sure < n && sure - absent < want && cap <= most &&
             (cap < enough || sure == absent));
    *exact = cap;
    return r;
}

static int search_in(fl_store *s, const struct fl_store_query *q, struct term *t, size_t n,
                     fl_store_hit_fn fn, void *ctx, fl_err *err)
{
    size_t want = q->rarest ? q->rarest : 5, count = 0;
    uint64_t most = q->most && q->most < INT64_MAX ? q->most : q->most ? INT64_MAX - 1 : 20000;
    uint64_t exact = 0;
    fl_str take[MAX_TERMS];
    int r;

    if (want > MAX_TERMS)
        want = MAX_TERMS;
    r = count_terms(s, t, n, want, most, q->most ? most : ENOUGH, &exact, err);
    for (size_t i = 0; !r && i < n && count < want; i++)
        if (t[i].docs > 0 && t[i].docs < exact)
            take[count++] = t[i].text;
    if (r || count == 0)
        return r;
    return s->ops->search(s->db, take, count, q->k ? q->k : 50, fn, ctx, err);
}

int fl_store_search(fl_store *s, const struct fl_store_query *q, fl_store_hit_fn fn, void *ctx,
                    fl_err *err)
{
    struct term *t;
    size_t n = 0;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    t = fl_arena_alloc(&a, MAX_TERMS * sizeof(*t));
    r = t ? take_terms(q, &a, t, &n, err) : fl_fail_nomem(err);
    if (!r)
        r = fl_store_enter(s, FL_TX_READ, err);
    if (!r)
        r = fl_store_leave(s, FL_TX_READ, search_in(s, q, t, n, fn, ctx, err), err);
    fl_arena_dispose(&a);
    return r > 0 ? FL_OK : r;
}

int fl_store_frequency(fl_store *s, fl_str term, uint64_t cap, uint64_t *out, fl_err *err)
{
    struct fl_store_query q = {.terms = &term, .n = 1};
    struct term t[1];
    size_t n = 0;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = take_terms(&q, &a, t, &n, err);
    if (!r)
        r = fl_store_enter(s, FL_TX_READ, err);
    if (!r) {
        t[0].docs = n ? t[0].docs : 0;
        r = n && cap ? s->ops->frequency(s->db, &t[0].text, 1, cap, &t[0].docs, err) : FL_OK;
        r = fl_store_leave(s, FL_TX_READ, r, err);
    }
    if (!r)
        *out = t[0].docs;
    fl_arena_dispose(&a);
    return r;
}

static int rebuild_one(void *ctx, int64_t number, fl_err *err)
{
    fl_store *s = ctx;
    struct fl_incident inc = {0};
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = s->ops->read(s->db, number, &a, &inc, err);
    if (!r)
        r = s->ops->drop_docs(s->db, number, err);
    if (!r)
        r = fl_store_docs_in(s, number, &inc, err);
    fl_arena_dispose(&a);
    return r;
}

int fl_store_rebuild_words(fl_store *s, fl_err *err)
{
    struct fl_store_filter all = FL_STORE_ALL;
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    return fl_store_leave(s, FL_TX_WRITE, s->ops->list(s->db, &all, rebuild_one, s, err), err);
}

/* --- vectors --- */

static size_t bytes_of(const struct fl_store_model *m)
{
    return m->form == FL_VECTOR_INT8 ? m->dim : m->dim * sizeof(float);
}

/* 1 and the model's number; 0: never stored; FL_EUSAGE: stored in another form. */
static int known_model(fl_store *s, const struct fl_store_model *m, int64_t *number, fl_err *err)
{
    enum fl_vector_form form = FL_VECTOR_INT8;
    uint32_t dim = 0;
    int r = s->ops->model(s->db, m->name, number, &dim, &form, err);

    if (r > 0 && (dim != m->dim || form != m->form))
        return fl_fail(err, FL_EUSAGE,
                       "%s: model '%.*s' has stored vectors of %u %s, not of %u %s; give the new "
                       "one another name, or run 'diagnose reindex --full'",
                       s->path, FL_FMT(m->name), dim, form == FL_VECTOR_INT8 ? "bytes" : "floats",
                       m->dim, m->form == FL_VECTOR_INT8 ? "bytes" : "floats");
    return r;
}

int fl_store_put_vectors(fl_store *s, const struct fl_store_model *m, int64_t incident,
                         const struct fl_store_vector *v, size_t n, fl_err *err)
{
    int64_t model = 0;
    int r;

    if (m->name.n == 0 || m->dim == 0 || m->dim > 65536)
        return fl_fail(err, FL_EUSAGE, "a model needs a name and 1 to 65536 dimensions");
    r = fl_store_enter(s, FL_TX_WRITE, err);
    if (r)
        return r;
    r = known_model(s, m, &model, err);
    if (r == 0)
        r = s->ops->add_model(s->db, m, &model, err);
    if (r >= 0)
        r = s->ops->drop_vectors(s->db, model, incident, err);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct fl_store_vector one = v[i];
        one.incident = incident;
        r = s->ops->add_vector(s->db, model, &one, bytes_of(m), err);
    }
    return fl_store_leave(s, FL_TX_WRITE, r < 0 ? r : FL_OK, err);
}

int fl_store_vectors(fl_store *s, const struct fl_store_model *m, int64_t after, int64_t upto,
                     fl_store_vector_fn fn, void *ctx, uint64_t *damaged, fl_err *err)
{
    uint64_t bad = 0;
    int64_t model = 0, next = after;
    int r;

    do {
        r = fl_store_enter(s, FL_TX_READ, err);
        if (r)
            return r;
        after = next;
        next = 0;
        r = known_model(s, m, &model, err);
        if (r > 0)
            r = s->ops->vectors(s->db, model, after, upto ? upto : INT64_MAX, BATCH, bytes_of(m),
                                fn, ctx, &next, &bad, err);
        r = fl_store_leave(s, FL_TX_READ, r, err);
    } while (r == 0 && next);
    if (r >= 0 && damaged)
        *damaged = bad;
    return r > 0 ? FL_OK : r;
}

int fl_store_vector_of(fl_store *s, int64_t number, int64_t *incident, uint32_t *piece, fl_err *err)
{
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = fl_store_leave(s, FL_TX_READ, s->ops->vector_of(s->db, number, incident, piece, err), err);
    if (r == 0)
        return fl_fail(err, FL_ENOTFOUND, "%s: vector %lld is not there", s->path,
                       (long long)number);
    return r > 0 ? FL_OK : r;
}

/* The model's number, or 0 when it was never stored. */
static int model_named(fl_store *s, fl_str name, int64_t *number, fl_err *err)
{
    enum fl_vector_form form;
    uint32_t dim;
    int r = s->ops->model(s->db, name, number, &dim, &form, err);

    return r < 0 ? r : FL_OK;
}

int fl_store_mark(fl_store *s, fl_str model, struct fl_store_mark *out, fl_err *err)
{
    struct fl_store_mark m = {0};
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = model_named(s, model, &number, err);
    if (!r)
        r = s->ops->mark(s->db, number, &m, err);
    r = fl_store_leave(s, FL_TX_READ, r, err);
    if (!r)
        *out = m;
    return r;
}

int fl_store_tombstones(fl_store *s, fl_str model, int64_t tombstone, fl_store_number_fn fn,
                        void *ctx, fl_err *err)
{
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = model_named(s, model, &number, err);
    if (!r && number)
        r = s->ops->tombstones(s->db, number, tombstone, fn, ctx, err);
    r = fl_store_leave(s, FL_TX_READ, r, err);
    return r > 0 ? FL_OK : r;
}

int fl_store_forget(fl_store *s, fl_str model, int64_t tombstone, fl_err *err)
{
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    r = model_named(s, model, &number, err);
    if (!r && number)
        r = s->ops->forget(s->db, number, tombstone, err);
    return fl_store_leave(s, FL_TX_WRITE, r, err);
}

int fl_store_missing(fl_store *s, fl_str model, size_t limit, fl_store_number_fn fn, void *ctx,
                     fl_err *err)
{
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = model_named(s, model, &number, err);
    if (!r)
        r = s->ops->missing(s->db, number, limit, fn, ctx, err);
    r = fl_store_leave(s, FL_TX_READ, r, err);
    return r > 0 ? FL_OK : r;
}

int fl_store_last(fl_store *s, int64_t *incident, int64_t *tombstone, fl_err *err)
{
    struct fl_store_mark mark = {0};
    int64_t last = 0;
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = s->ops->highest(s->db, &last, err);
    if (!r)
        r = s->ops->mark(s->db, 0, &mark, err); /* of no model: nothing is counted */
    r = fl_store_leave(s, FL_TX_READ, r, err);
    if (!r) {
        *incident = last;
        *tombstone = mark.tombstone;
    }
    return r;
}

int fl_store_drop_model(fl_store *s, fl_str model, fl_err *err)
{
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    r = model_named(s, model, &number, err);
    if (!r && number)
        r = s->ops->drop_model(s->db, number, err);
    return fl_store_leave(s, FL_TX_WRITE, r, err);
}

int fl_store_models(fl_store *s, fl_store_model_fn fn, void *ctx, fl_err *err)
{
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = fl_store_leave(s, FL_TX_READ, s->ops->models(s->db, fn, ctx, err), err);
    return r > 0 ? FL_OK : r;
}
