/*
 * Lines that differ in their numbers only are searched once.
 *
 * A log of two thousand ranks is a few hundred different lines with other numbers in them. Lines of
 * the same length that become equal when every digit is made a 0 form a class. The first line of a
 * class is searched for all patterns, in the form that sees every digit alike (relax.c), so what is
 * not found there is in no line of the class; what is found is tried on each line with the pattern
 * itself where that one names a digit. So a repeated line costs a hash and a look-up, a tenth of
 * what searching costs, and the answer is the same.
 *
 * The hash is of 64 bits under a secret seed: equal hashes are taken for equal lines, which one
 * pair in 10^19 is not, and a hostile log cannot make up without the seed. Keeping and comparing
 * the lines themselves was the other way; it would read twice as many bytes to be right in a case
 * that does not come.
 *
 * Limits: lines over LONG bytes form no classes and are searched each. When the table is full it is
 * emptied; if most of its classes had one line the next blocks are searched without, so that a log
 * that never repeats itself costs little more than the search.
 */
#include "match/engine.h"

#include "base/alloc.h"

#define LONG 1024
#define REST 64           /* blocks, after a full table in which most lines were alone */
#define FIRST_SLOTS 4096u /* of the table; it grows between blocks while half are used */
#define MOST_SLOTS 131072u

typedef uint8_t bytes16 __attribute__((vector_size(16)));
struct pair {
    uint64_t a, b;
};

struct slot {
    uint64_t hash; /* 0: free */
    struct fl_tag tag;
    uint32_t cand; /* in `pool`; while a block is looked through: the line to be searched */
    uint16_t ncand;
    bool fresh;  /* met in this block */
    bool varies; /* the tag is each line's own */
    bool try;    /* some candidate has to be tried on each line */
};

/* A line that is searched, and where it is in what is scanned. */
struct todo {
    uint32_t line, at, cand, ncand; /* found: in s->found */
};

struct fl_classes {
    const fl_matcher *m;
    struct fl_classes_opts opts;
    struct slot *slots;
    uint32_t nslots; /* a power of two */
    size_t used, most;
    uint64_t known;   /* lines of classes that were there, since the table was emptied */
    unsigned resting; /* blocks that are searched without classes */
    uint32_t *pool;   /* candidates of all classes */
    size_t npool, pool_cap;
    struct fl_lines *out; /* of the block in work */
    uint32_t *slot_of;    /* of each line: slot + 1, 0 none */
    size_t slot_cap;
    struct todo *todo;
    size_t ntodo, todo_cap;
    size_t todo_bytes;
    fl_buf text;
};

static inline bytes16 load16(const char *p)
{
    bytes16 v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline struct pair zero_digits(bytes16 v)
{
    const bytes16 zero = {'0', '0', '0', '0', '0', '0', '0', '0',
                          '0', '0', '0', '0', '0', '0', '0', '0'};
    bytes16 digit = (bytes16)((bytes16)(v - zero) < 10);
    bytes16 out = (v & ~digit) | (zero & digit);
    struct pair p;

    memcpy(&p, &out, sizeof(p));
    return p;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Of the line with every digit as 0. Two products in parallel, in the manner of wyhash. */
static uint64_t hash_line(fl_str s, const uint64_t seed[2])
{
    uint64_t h = seed[0] ^ s.n, g = seed[1];
    struct pair p;
    size_t i = 0;

    if (s.n < 16) {
        char text[16] = {0};
        memcpy(text, s.p, s.n);
        p = zero_digits(load16(text));
        h = mix(p.a ^ seed[1], p.b ^ h);
        return mix(h ^ seed[0], g) | 1;
    }
    for (; i + 32 <= s.n; i += 32) {
        p = zero_digits(load16(s.p + i));
        h = mix(p.a ^ seed[1], p.b ^ h);
        p = zero_digits(load16(s.p + i + 16));
        g = mix(p.a ^ seed[0], p.b ^ g);
    }
    if (i + 16 < s.n) {
        p = zero_digits(load16(s.p + i));
        h = mix(p.a ^ seed[1], p.b ^ h);
    }
    p = zero_digits(load16(s.p + s.n - 16));
    g = mix(p.a ^ seed[0], p.b ^ g);
    return mix(h ^ seed[0], g ^ seed[1]) | 1;
}

int fl_classes_new(const fl_matcher *m, const struct fl_classes_opts *opts, fl_classes **out,
                   fl_err *err)
{
    fl_classes *c = fl_calloc(1, sizeof(*c));

    if (!c)
        return fl_fail_nomem(err);
    c->m = m;
    c->opts = *opts;
    c->most = opts->max && opts->max < MOST_SLOTS / 2 ? opts->max : MOST_SLOTS / 2;
    c->nslots = FIRST_SLOTS;
    fl_buf_init(&c->text, INT32_MAX);
    c->slots = fl_calloc(c->nslots, sizeof(*c->slots));
    if (!c->slots) {
        fl_classes_free(c);
        return fl_fail_nomem(err);
    }
    *out = c;
    return FL_OK;
}

void fl_classes_free(fl_classes *c)
{
    if (!c)
        return;
    fl_free(c->slots);
    fl_free(c->pool);
    fl_free(c->slot_of);
    fl_free(c->todo);
    fl_buf_dispose(&c->text);
    fl_free(c);
}

void fl_lines_dispose(struct fl_lines *l)
{
    fl_free(l->v);
    fl_free(l->cand);
    *l = (struct fl_lines){0};
}

static uint32_t slot_for(const fl_classes *c, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 20) & (c->nslots - 1);

    while (c->slots[i].hash && c->slots[i].hash != hash)
        i = (i + 1) & (c->nslots - 1);
    return i;
}

static int add_todo(fl_classes *c, size_t line, size_t len, fl_err *err)
{
    if (fl_grow((void **)&c->todo, &c->todo_cap, c->ntodo + 1, sizeof(*c->todo)))
        return fl_fail_nomem(err);
    c->todo[c->ntodo++] = (struct todo){.line = (uint32_t)line};
    c->todo_bytes += len + 1;
    return FL_OK;
}

static int add_line(fl_classes *c, fl_str data, size_t at, size_t len, fl_err *err)
{
    fl_str text = fl_str_n(data.p + at, len);
    struct fl_lines *o = c->out;
    struct fl_line *l;
    struct slot *s;
    uint64_t hash;
    uint32_t i;

    if (o->n + 1 > o->cap || o->n + 1 > c->slot_cap)
        if (fl_grow((void **)&o->v, &o->cap, o->n + 1, sizeof(*o->v)) ||
            fl_grow((void **)&c->slot_of, &c->slot_cap, o->n + 1, sizeof(*c->slot_of)))
            return fl_fail_nomem(err);
    l = &o->v[o->n];
    *l = (struct fl_line){.at = (uint32_t)at, .len = (uint32_t)len};
    /* No classes either for the rest of a block that brings more of them than there is room for. */
    if (len > LONG || c->resting || c->used >= c->nslots - c->nslots / 4) {
        c->slot_of[o->n] = 0;
        c->opts.tag(c->opts.ctx, text, false, &l->tag);
        return add_todo(c, o->n++, len, err);
    }
    hash = l->class = hash_line(text, c->opts.seed);
    i = slot_for(c, hash);
    s = &c->slots[i];
    c->slot_of[o->n] = i + 1;
    if (!s->hash) {
        *s = (struct slot){.hash = hash, .fresh = true, .cand = (uint32_t)c->ntodo};
        s->varies = !c->opts.tag(c->opts.ctx, text, false, &s->tag);
        c->used++;
        l->tag = s->tag;
        return add_todo(c, o->n++, len, err);
    }
    c->known++;
    l->tag = s->tag;
    if (s->varies)
        c->opts.tag(c->opts.ctx, text, true, &l->tag);
    o->n++;
    return FL_OK;
}

/* Makes room for the classes of the next block: a larger table, or this one emptied. */
static int make_room(fl_classes *c, fl_err *err)
{
    struct slot *old = c->slots, *larger;
    uint32_t n = c->nslots;

    if (c->used <= n / 2 && c->used <= c->most)
        return FL_OK;
    if (n == MOST_SLOTS || c->used > c->most) {
        c->resting = c->known < c->used ? REST : 0;
        memset(c->slots, 0, n * sizeof(*c->slots));
        c->used = c->npool = 0;
        c->known = 0;
        return FL_OK;
    }
    larger = fl_calloc(2 * (size_t)n, sizeof(*larger));
    if (!larger)
        return fl_fail_nomem(err);
    c->slots = larger;
    c->nslots = 2 * n;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].hash)
            c->slots[slot_for(c, old[i].hash)] = old[i];
    fl_free(old);
    return FL_OK;
}

/* The lines of the block, and which of them are to be searched. */
static int look_through(fl_classes *c, fl_str data, fl_err *err)
{
    size_t at = 0;
    int r = make_room(c, err);

    if (c->resting)
        c->resting--;
    c->out->n = c->out->ncand = 0;
    c->ntodo = c->todo_bytes = 0;
    while (at < data.n && r == FL_OK) {
        const char *lf = memchr(data.p + at, '\n', data.n - at);
        size_t len = (size_t)(lf - data.p) - at;
        r = add_line(c, data, at, len, err);
        at += len + 1;
    }
    return r;
}

/* Scans the lines to be searched, in the block itself when they are most of it. */
static int search(fl_classes *c, fl_match_scratch *s, fl_str data, fl_err *err)
{
    bool whole = c->todo_bytes * 2 > data.n;
    size_t k = 0;
    int r;

    fl_buf_clear(&c->text);
    for (size_t i = 0; i < c->ntodo; i++) {
        const struct fl_line *l = &c->out->v[c->todo[i].line];
        c->todo[i].at = whole ? l->at : (uint32_t)c->text.n;
        if (!whole)
            fl_buf_add(&c->text, fl_str_n(data.p + l->at, l->len + 1));
    }
    r = fl_buf_check(&c->text, "lines to be searched", err);
    if (r == FL_OK)
        r = fl_match_scan(c->m, s, whole ? data : fl_buf_str(&c->text), true, err);
    for (size_t i = 0; i < c->ntodo && r == FL_OK; i++) {
        struct todo *t = &c->todo[i];
        while (k < s->nfound && s->found[k].at < t->at)
            k++;
        t->cand = (uint32_t)k;
        while (k < s->nfound && s->found[k].at == t->at)
            k++;
        t->ncand = (uint32_t)k - t->cand;
    }
    return r;
}

static int pool_add(fl_classes *c, struct slot *s, uint32_t pattern, fl_err *err)
{
    if (s->ncand == UINT16_MAX)
        return FL_OK;
    if (fl_grow((void **)&c->pool, &c->pool_cap, c->npool + 1, sizeof(*c->pool)))
        return fl_fail_nomem(err);
    c->pool[c->npool++] = pattern;
    s->ncand++;
    s->try |= c->m->entry[pattern].digits != FL_RELAX_BLIND;
    return FL_OK;
}

/* What was found in a class's first line, and what has to be tried on every line. */
static int settle(fl_classes *c, const fl_match_scratch *s, struct slot *slot, fl_err *err)
{
    const struct todo *t = &c->todo[slot->cand];
    int r = FL_OK;

    slot->cand = (uint32_t)c->npool;
    slot->fresh = false;
    for (uint32_t i = 0; i < t->ncand && r == FL_OK; i++) {
        uint32_t pattern = s->found[t->cand + i].pattern;
        if (c->m->entry[pattern].digits != FL_RELAX_EXACT)
            r = pool_add(c, slot, pattern, err);
    }
    for (size_t i = 0; i < c->m->nexact && r == FL_OK; i++)
        r = pool_add(c, slot, c->m->exact[i], err);
    return r;
}

static int add_cand(fl_classes *c, struct fl_line *l, uint32_t pattern, fl_err *err)
{
    struct fl_lines *o = c->out;

    if (fl_grow((void **)&o->cand, &o->cand_cap, o->ncand + 1, sizeof(*o->cand)))
        return fl_fail_nomem(err);
    o->cand[o->ncand++] = pattern;
    l->ncand++;
    return FL_OK;
}

/* The line's candidates out of a list; what names digits is tried. */
static int choose(fl_classes *c, fl_match_scratch *s, struct fl_line *l, fl_str text,
                  const struct slot *slot, const struct todo *t, fl_err *err)
{
    uint32_t n = slot ? slot->ncand : t->ncand;
    int r = FL_OK;

    l->cand = (uint32_t)c->out->ncand;
    for (uint32_t i = 0; i < n && r == FL_OK; i++) {
        uint32_t pattern = slot ? c->pool[slot->cand + i] : s->found[t->cand + i].pattern;
        bool blind = c->m->entry[pattern].digits == FL_RELAX_BLIND;
        if (blind || fl_match_anywhere(c->m, s, pattern, text))
            r = add_cand(c, l, pattern, err);
    }
    return r;
}

int fl_classes_block(fl_classes *c, fl_match_scratch *s, fl_str data, struct fl_lines *out,
                     fl_err *err)
{
    size_t next = 0;
    int r;

    c->out = out;
    r = look_through(c, data, err);
    if (r == FL_OK && c->ntodo)
        r = search(c, s, data, err);
    for (size_t i = 0; i < c->out->n && r == FL_OK; i++) {
        struct fl_line *l = &c->out->v[i];
        struct slot *slot = c->slot_of[i] ? &c->slots[c->slot_of[i] - 1] : NULL;
        if (slot && slot->fresh)
            r = settle(c, s, slot, err);
        while (next < c->ntodo && c->todo[next].line < i)
            next++;
        if (r == FL_OK && (!slot || slot->ncand))
            r = choose(c, s, l, fl_str_n(data.p + l->at, l->len), slot, &c->todo[next], err);
    }
    if (r == FL_OK && s->tools.nomem)
        r = fl_fail_nomem(err);
    return r;
}
