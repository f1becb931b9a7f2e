/*
 * Keeping, in the one pass, what a digest will need.
 *
 * Which lines matter is known at the end, when stdin and a FIFO are gone. So while the log is read
 * all its lines are folded by shape, and of a bounded number of places the lines themselves are
 * kept: around rule hits, around the first line of each new shape that sounds like trouble, each
 * different traceback, the end of each file. The lines around a line are those of the same rank
 * where ranks are told: in a log of two thousand ranks the neighbours are strangers.
 *
 * Lines are folded in order by one thread at a time; only tags are made in several.
 */
#include "diagnose/gather.h"

#include "base/alloc.h"
#include "compress/shape.h"

#define PATIENCE 20000 /* lines in which a rank's next ones are waited for */
#define TAG_CODES (1ull << 40)
#define TAG_BADNESS 41 /* two bits */

int fl_gather_new(struct fl_gather **out, fl_err *err)
{
    struct fl_gather *g = fl_calloc(1, sizeof(*g));

    if (!g)
        return fl_fail_nomem(err);
    fl_arena_init(&g->arena);
    fl_shapes_init(&g->shapes);
    fl_map_init(&g->whole_of);
    *out = g;
    return FL_OK;
}

void fl_gather_free(struct fl_gather *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->nopen; i++)
        fl_buf_dispose(&g->open[i]);
    fl_free(g->open);
    fl_free(g->contexts);
    fl_free(g->wholes);
    fl_free(g->endings);
    fl_map_dispose(&g->whole_of);
    fl_shapes_dispose(&g->shapes);
    fl_arena_dispose(&g->arena);
    fl_free(g);
}

/* The line's prefix is read with every digit as a 1, so that all lines of a class have it alike. */
static void shape_of(fl_str line, struct fl_tag *out)
{
    char ones[FL_SHAPE_IN], shape[FL_SHAPE_OUT];
    size_t n = line.n < sizeof(ones) ? line.n : sizeof(ones), body;
    struct fl_prefix p;
    bool codes;

    for (size_t i = 0; i < n; i++)
        ones[i] = line.p[i] >= '0' && line.p[i] <= '9' ? '1' : line.p[i];
    fl_prefix_parse(fl_str_n(ones, n), &p);
    body = p.message < n ? p.message : n;
    n = fl_shape(fl_str_from(line, body), shape, &codes);
    out->a = fl_hash64(shape, n, (uint64_t)p.severity * 31 + p.origin);
    out->b |= (uint64_t)body << 48 | (codes ? TAG_CODES : 0) |
              (uint64_t)fl_badness(fl_str_from(line, body)) << TAG_BADNESS;
}

bool fl_gather_tag(fl_str line, bool again, struct fl_tag *out)
{
    bool codes = out->b & TAG_CODES;
    int32_t rank = -1;
    enum fl_peek kind = (enum fl_peek)fl_prefix_peek_rank(line, &rank);

    if (!again)
        out->b = 0;
    out->b = (out->b & ~0xffffffffffull) | (uint64_t)kind << 32 | (uint32_t)rank;
    if (!again || codes) {
        out->b &= 0xffffffffffull;
        shape_of(line, out);
    }
    return kind == FL_PEEK_NONE && !(out->b & TAG_CODES);
}

static struct fl_kept keep(struct fl_gather *g, fl_str line, struct fl_at at, uint64_t hash)
{
    fl_str text = fl_arena_str(&g->arena, fl_str_sub(line, 0, FL_KEPT_TEXT));

    g->failed |= !text.p;
    return (struct fl_kept){.at = at, .hash = hash, .text = text, .cut = line.n - text.n};
}

/* What a line's writer is known by: file, kind and rank as its first bytes tell. */
static uint64_t writer_of(const struct fl_line *l)
{
    return l->tag.b & 0xffffffffffull;
}

static void new_context(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                        size_t i, uint64_t number, bool event)
{
    struct fl_gather *g = j->gather;
    uint64_t writer = writer_of(&lines->v[i]);
    size_t before[FL_CONTEXT_BEFORE], n = 0;
    struct fl_context *c;

    if (g->ncontexts >= FL_MAX_CONTEXTS)
        return;
    if (fl_grow((void **)&g->contexts, &g->contexts_cap, g->ncontexts + 1, sizeof(*c))) {
        g->failed = true;
        return;
    }
    c = &g->contexts[g->ncontexts];
    *c = (struct fl_context){.event = event};
    for (size_t k = i; k-- > 0 && n < FL_CONTEXT_BEFORE && i - k < 20000;)
        if (writer_of(&lines->v[k]) == writer)
            before[n++] = k;
    while (n-- > 0) {
        const struct fl_line *l = &lines->v[before[n]];
        struct fl_at at = {j->seq - (i - before[n]), fl_block_line(b, l->at, before[n]), b->file};
        c->line[c->n++] = keep(g, fl_str_n(b->data + l->at, l->len), at, l->tag.a);
    }
    c->center = c->n;
    c->line[c->n++] = keep(g, fl_str_n(b->data + lines->v[i].at, lines->v[i].len),
                           (struct fl_at){j->seq, number, b->file}, lines->v[i].tag.a);
    if (g->nwaiting < sizeof(g->waiting) / sizeof(*g->waiting)) {
        g->waiting[g->nwaiting].context = g->ncontexts;
        g->waiting[g->nwaiting].writer = writer;
        g->waiting[g->nwaiting].file = b->file;
        g->waiting[g->nwaiting].left = FL_CONTEXT_AFTER;
        g->waiting[g->nwaiting++].patience = PATIENCE;
    }
    g->ncontexts++;
}

/* Hands a line to the contexts that wait for one of its writer. */
static void feed_waiting(struct fl_job *j, const struct fl_block *b, const struct fl_line *l,
                         uint64_t number)
{
    struct fl_gather *g = j->gather;
    uint64_t writer = writer_of(l);

    for (size_t k = 0; k < g->nwaiting;) {
        if (g->waiting[k].file == b->file && g->waiting[k].writer == writer) {
            struct fl_context *c = &g->contexts[g->waiting[k].context];
            c->line[c->n++] = keep(g, fl_str_n(b->data + l->at, l->len),
                                   (struct fl_at){j->seq, number, b->file}, l->tag.a);
            g->waiting[k].left--;
        }
        if (g->waiting[k].file != b->file || !g->waiting[k].left || !--g->waiting[k].patience)
            g->waiting[k] = g->waiting[--g->nwaiting];
        else
            k++;
    }
}

void fl_gather_line(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                    size_t i, uint64_t number, uint8_t owner)
{
    const struct fl_line *l = &lines->v[i];
    struct fl_gather *g = j->gather;
    struct fl_shape_line s = {.hash = l->tag.a,
                              .text = fl_str_n(b->data + l->at, l->len),
                              .body = fl_tag_body(&l->tag),
                              .at = {j->seq, number, b->file},
                              .rank = (int32_t)(uint32_t)l->tag.b,
                              .owner = owner,
                              .badness = (uint8_t)(l->tag.b >> TAG_BADNESS & 3)};
    const struct fl_shape_row *r;
    bool fresh;

    if (s.rank < 0)
        s.rank = j->files[b->file].place.rank;
    if (g->nwaiting)
        feed_waiting(j, b, l, number);
    fresh = fl_shapes_add(&g->shapes, &s);
    if (owner & FL_OWN_NOISE)
        return;
    r = fresh || owner & FL_OWN_EVENT ? fl_shapes_find(&g->shapes, s.hash) : NULL;
    if (r && ((fresh && r->badness >= 2) || (owner & FL_OWN_EVENT && r->count <= 2)))
        new_context(j, b, lines, i, number, owner & FL_OWN_EVENT);
}

/* ---- tracebacks ---- */

struct record { /* of a line in fl_gather.open */
    uint64_t seq, line, hash;
    uint32_t file, n, cut;
};

static fl_buf *open_of(struct fl_gather *g, uint32_t writer)
{
    if (writer >= g->nopen) {
        if (fl_grow((void **)&g->open, &g->open_cap, (size_t)writer + 1, sizeof(*g->open))) {
            g->failed = true;
            return NULL;
        }
        while (g->nopen <= writer)
            fl_buf_init(&g->open[g->nopen++], 2 * FL_WHOLE_BYTES);
    }
    return &g->open[writer];
}

static void close_open(struct fl_gather *g, fl_buf *b)
{
    g->open_bytes -= b->n;
    fl_buf_dispose(b);
    fl_buf_init(b, 2 * FL_WHOLE_BYTES);
}

static void keep_whole(struct fl_gather *g, const fl_buf *b, uint32_t number, int32_t rank)
{
    struct fl_whole *w;
    size_t n = 0, at = 0;
    struct record r;

    if (fl_grow((void **)&g->wholes, &g->wholes_cap, g->nwholes + 1, sizeof(*w))) {
        g->failed = true;
        return;
    }
    for (; at < b->n; at += sizeof(r) + r.n, n++)
        memcpy(&r, b->p + at, sizeof(r));
    w = &g->wholes[g->nwholes];
    *w = (struct fl_whole){.count = 1, .number = number, .rank = rank};
    w->line = fl_arena_alloc(&g->arena, (n + 1) * sizeof(*w->line));
    if (!w->line) {
        g->failed = true;
        return;
    }
    for (at = 0; at < b->n; at += sizeof(r) + r.n) {
        memcpy(&r, b->p + at, sizeof(r));
        w->line[w->n] = keep(g, fl_str_n(b->p + at + sizeof(r), r.n),
                             (struct fl_at){r.seq, r.line, r.file}, r.hash);
        w->line[w->n++].cut += r.cut;
    }
    g->nwholes++;
}

/* Tracebacks of one exception at one place are alike, whatever their message's numbers. */
static void end_whole(struct fl_job *j, uint32_t number, fl_buf *b, int32_t rank)
{
    const struct fl_traceback *t = &j->tracebacks[number];
    struct fl_gather *g = j->gather;
    char shape[FL_SHAPE_OUT];
    uint64_t key[3];
    uint32_t at;
    bool codes, added = false;

    key[0] = fl_hash64(t->type.p, t->type.n, 1);
    key[1] =
        fl_hash64(t->file.p, t->file.n, t->file_line) ^ fl_hash64(t->function.p, t->function.n, 3);
    key[2] = fl_hash64(shape, fl_shape(t->message, shape, &codes), 2);
    if (g->nwholes >= FL_MAX_WHOLE) {
        if (fl_map_get(&g->whole_of, fl_str_n((const char *)key, sizeof(key)), &at))
            g->wholes[at].count++;
        return;
    }
    if (fl_map_intern(&g->whole_of, fl_str_n((const char *)key, sizeof(key)), (uint32_t)g->nwholes,
                      &at, &added)) {
        g->failed = true;
        return;
    }
    if (added)
        keep_whole(g, b, number, rank);
    else
        g->wholes[at].count++;
}

void fl_gather_traceback(struct fl_job *j, uint32_t writer, enum fl_tb_part part, fl_str line,
                         const struct fl_mark *m, uint64_t hash)
{
    struct fl_gather *g = j->gather;
    fl_str text = fl_str_sub(line, 0, FL_KEPT_TEXT);
    struct record r = {m->seq,  m->line,          hash,
                       m->file, (uint32_t)text.n, (uint32_t)(line.n - text.n)};
    fl_buf *b = open_of(g, writer);
    size_t before;

    if (!b)
        return;
    before = b->n;
    if (part == FL_TB_END || (b->n < FL_WHOLE_BYTES && g->open_bytes < FL_OPEN_BYTES)) {
        fl_buf_add(b, fl_str_n((const char *)&r, sizeof(r)));
        fl_buf_add(b, text);
        g->failed |= b->bad == FL_ENOMEM;
        if (b->bad)
            fl_buf_cut(b, before);
    }
    g->open_bytes += b->n - before;
    if (part == FL_TB_END) {
        if (j->writers[writer].tb_done)
            end_whole(j, j->writers[writer].tb_done - 1, b, m->rank);
        close_open(g, b);
    }
}

/* ---- the ends of files ---- */

void fl_gather_ending(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines)
{
    struct fl_gather *g = j->gather;
    struct fl_ending *e;
    size_t first = lines->n > FL_ENDING_LINES ? lines->n - FL_ENDING_LINES : 0;

    if (g->endings_text >= FL_ENDINGS_TEXT || !lines->n)
        return;
    if (fl_grow((void **)&g->endings, &g->endings_cap, g->nendings + 1, sizeof(*e))) {
        g->failed = true;
        return;
    }
    e = &g->endings[g->nendings++];
    *e = (struct fl_ending){.file = b->file};
    for (size_t i = first; i < lines->n; i++) {
        const struct fl_line *l = &lines->v[i];
        struct fl_at at = {j->seq - (lines->n - 1 - i), fl_block_line(b, l->at, i), b->file};
        e->line[e->n++] = keep(g, fl_str_n(b->data + l->at, l->len), at, l->tag.a);
        g->endings_text += e->line[e->n - 1].text.n + sizeof(struct fl_kept);
        e->several |= writer_of(l) != writer_of(&lines->v[first]);
    }
}
