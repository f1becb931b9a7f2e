/*
 * The table of shapes.
 *
 * Rows are never moved out for others: a log that brings a new shape on every line fills the plain
 * part early with its beginning, and what comes later is counted and the last few hundred lines of
 * it remembered. Lines that sound like trouble have a part of their own, so that noise cannot take
 * their room, and a ring of their own. Throwing out the least interesting row was the other way; it
 * costs a sort now and then, and a hostile log makes it do nothing else.
 */
#include "compress/shapes.h"

#include "base/alloc.h"

#define FIRST_SLOTS 1024

void fl_shapes_init(struct fl_shapes *t)
{
    *t = (struct fl_shapes){0};
    fl_arena_init(&t->arena);
}

void fl_shapes_dispose(struct fl_shapes *t)
{
    for (size_t i = 0; i < t->n; i++)
        fl_free(t->rows[i].bits);
    fl_free(t->rows);
    fl_free(t->slots);
    fl_free(t->latest[0]);
    fl_free(t->latest[1]);
    fl_arena_dispose(&t->arena);
    *t = (struct fl_shapes){0};
}

static size_t slot_of(const struct fl_shapes *t, uint64_t hash)
{
    size_t i = (size_t)(hash >> 32) & (t->nslots - 1);

    while (t->slots[i] && t->rows[t->slots[i] - 1].hash != hash)
        i = (i + 1) & (t->nslots - 1);
    return i;
}

struct fl_shape_row *fl_shapes_find(const struct fl_shapes *t, uint64_t hash)
{
    size_t i = t->nslots ? slot_of(t, hash) : 0;

    return t->nslots && t->slots[i] ? &t->rows[t->slots[i] - 1] : NULL;
}

static bool more_slots(struct fl_shapes *t)
{
    size_t n = t->nslots ? 2 * t->nslots : FIRST_SLOTS;
    uint32_t *old = t->slots, *v;

    if (t->nslots && 2 * (t->n + 1) <= t->nslots)
        return true;
    v = fl_calloc(n, sizeof(*v));
    if (!v)
        return false;
    t->slots = v;
    t->nslots = n;
    for (size_t i = 0; i < t->n; i++)
        t->slots[slot_of(t, t->rows[i].hash)] = (uint32_t)i + 1;
    fl_free(old);
    return true;
}

/* A rank of the row beyond the first. */
static void add_bit(struct fl_shapes *t, struct fl_shape_row *r, int32_t rank)
{
    uint32_t word = (uint32_t)rank / 64;
    uint64_t bit = 1ull << (rank % 64);

    if (word >= r->nbits) {
        uint32_t n = word + 1 < 8 ? 8 : (word + 1) + (word + 1) / 2;
        size_t more = (n - r->nbits) * sizeof(*r->bits);
        uint64_t *v = NULL;
        if (t->bit_bytes + more <= FL_RANK_BITS)
            v = fl_realloc(r->bits, n * sizeof(*v));
        if (!v) {
            t->failed |= t->bit_bytes + more <= FL_RANK_BITS;
            r->ranks_over = true;
            return;
        }
        memset(v + r->nbits, 0, more);
        t->bit_bytes += more;
        r->bits = v;
        r->nbits = n;
    }
    if (!(r->bits[word] & bit)) {
        r->bits[word] |= bit;
        r->ranks++;
    }
}

static void add_rank(struct fl_shapes *t, struct fl_shape_row *r, int32_t rank)
{
    if (rank < 0 || rank == r->rank)
        return;
    if (r->ranks == 0) {
        r->ranks = 1;
    } else {
        if (!r->bits && r->ranks == 1 && !r->ranks_over) {
            r->ranks = 0;
            add_bit(t, r, r->rank);
            if (r->ranks_over)
                r->ranks = 1;
        }
        if (!r->ranks_over || rank / 64 < (int32_t)r->nbits)
            add_bit(t, r, rank);
    }
    r->rank = rank;
}

static fl_str keep_text(struct fl_shapes *t, fl_str text)
{
    size_t most = t->text_bytes < FL_SHAPES_TEXT ? FL_SHAPE_TEXT : FL_SHORT_LINE;

    text = fl_str_sub(text, 0, most);
    t->text_bytes += text.n;
    text = fl_arena_str(&t->arena, text);
    t->failed |= text.p == NULL;
    return text;
}

static void remember(struct fl_shapes *t, const struct fl_shape_line *l, bool bad)
{
    struct fl_late_line *r;
    size_t n = l->text.n < sizeof(r->text) ? l->text.n : sizeof(r->text);

    t->lost_lines++;
    t->lost_bytes += l->text.n + 1;
    if (!t->latest[bad])
        t->latest[bad] = fl_calloc(FL_LATEST, sizeof(*r));
    if (!t->latest[bad]) {
        t->failed = true;
        return;
    }
    r = &t->latest[bad][t->nlatest[bad]++ % FL_LATEST];
    r->at = l->at;
    r->rank = l->rank;
    r->n = (uint32_t)n;
    memcpy(r->text, l->text.p ? l->text.p : "", n);
}

static bool add_row(struct fl_shapes *t, const struct fl_shape_line *l)
{
    bool room = t->n < FL_SHAPES, sure = t->n - t->bad < FL_SHAPES - FL_SHAPES_BAD;
    struct fl_shape_row *r;

    if (!room || (l->badness < 2 && !l->owner && !sure)) {
        remember(t, l, l->badness >= 2);
        return true;
    }
    if (!more_slots(t) || fl_grow((void **)&t->rows, &t->cap, t->n + 1, sizeof(*t->rows))) {
        t->failed = true;
        return true;
    }
    r = &t->rows[t->n++];
    *r = (struct fl_shape_row){.hash = l->hash,
                               .first = l->at,
                               .text = keep_text(t, l->text),
                               .rank = -1,
                               .badness = l->badness};
    r->cut = l->text.n - r->text.n;
    r->body = l->body < r->text.n ? l->body : r->text.n;
    t->bad += l->badness >= 2;
    t->slots[slot_of(t, l->hash)] = (uint32_t)t->n;
    return true;
}

bool fl_shapes_add(struct fl_shapes *t, const struct fl_shape_line *l)
{
    struct fl_shape_row *r = fl_shapes_find(t, l->hash);
    bool fresh = false;

    t->lines++;
    t->bytes += l->text.n + 1;
    if (!r) {
        fresh = add_row(t, l);
        r = fl_shapes_find(t, l->hash);
        if (!r)
            return fresh;
    }
    r->count++;
    r->bytes += l->text.n + 1;
    r->last = l->at;
    r->owner |= l->owner;
    add_rank(t, r, l->rank);
    return fresh;
}
