/*
 * Keeping, in the one pass, what a digest will need.
 *
 * Which lines matter is known at the end, when stdin and a FIFO are gone. So while the log is read
 * all its lines are folded by shape, and of a bounded number of places the lines themselves are
 * kept: around rule hits, around the first line of each new shape that sounds like trouble, each
 * different traceback, the end of each file. The lines around a line are those of the same rank
 * where ranks are told: in a log of two thousand ranks the neighbours are strangers.
 *
 * What is kept does not depend on where blocks begin: the end of a block is copied, so that a
 * context, and the end of a file, can reach over it. How far back is a number of lines and bytes.
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
    fl_buf_init(&g->back.text, 64u << 20);
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
    fl_buf_dispose(&g->back.text);
    fl_free(g->back.v);
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
    int bad;
    bool codes;

    for (size_t i = 0; i < n; i++)
        ones[i] = line.p[i] >= '0' && line.p[i] <= '9' ? '1' : line.p[i];
    fl_prefix_parse(fl_str_n(ones, n), &p);
    body = p.message < n ? p.message : n;
    n = fl_shape(fl_str_from(line, body), shape, &codes);
    out->a = fl_hash64(shape, n, (uint64_t)p.severity * 31 + p.origin);
    bad = fl_badness(fl_str_from(line, body));
    if (bad < 2 && p.severity >= FL_SEV_ERROR) /* the logger says it, whatever words it finds */
        bad = 2;
    out->b |= (uint64_t)body << 48 | (codes ? TAG_CODES : 0) | (uint64_t)bad << TAG_BADNESS;
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

struct seen { /* a line that has been folded */
    fl_str text;
    struct fl_tag tag;
    uint64_t number;
};

/* The line `d` lines before the i-th of the block; false when it is too far back. */
static bool line_before(const struct fl_gather *g, const struct fl_block *b,
                        const struct fl_lines *lines, size_t i, size_t d, struct seen *out)
{
    if (d <= i) {
        const struct fl_line *l = &lines->v[i - d];
        *out = (struct seen){fl_str_n(b->data + l->at, l->len), l->tag, 0};
        if (b->nshifts == 0)
            out->number = b->first_line + (i - d);
        else
            out->number = fl_block_line(b, l->at, i - d);
        return true;
    }
    d -= i;
    if (d > g->back.n)
        return false;
    *out = (struct seen){
        fl_str_n(g->back.text.p + g->back.v[g->back.n - d].at, g->back.v[g->back.n - d].len),
        g->back.v[g->back.n - d].tag, g->back.v[g->back.n - d].number};
    return true;
}

/* What a line's writer is known by: file, kind and rank as its first bytes tell. */
static uint64_t writer_of(const struct fl_tag *t)
{
    return t->b & 0xffffffffffull;
}

/* The writer's last lines before the i-th, the latest first; how many. */
static size_t lines_before(const struct fl_gather *g, const struct fl_block *b,
                           const struct fl_lines *lines, size_t i, size_t d[FL_CONTEXT_BEFORE])
{
    uint64_t writer = writer_of(&lines->v[i].tag);
    size_t n = 0, bytes = 0;
    struct seen s;

    for (size_t k = 1; k <= FL_BACK_LINES && n < FL_CONTEXT_BEFORE; k++) {
        if (!line_before(g, b, lines, i, k, &s) || (bytes += s.text.n + 1) > FL_BACK_BYTES)
            break;
        if (writer_of(&s.tag) == writer)
            d[n++] = k;
    }
    return n;
}

static void new_context(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                        size_t i, uint64_t number, bool event)
{
    struct fl_gather *g = j->gather;
    uint64_t writer = writer_of(&lines->v[i].tag);
    size_t before[FL_CONTEXT_BEFORE], n;
    struct fl_context *c;
    struct seen s;

    if (g->ncontexts >= FL_MAX_CONTEXTS)
        return;
    if (fl_grow((void **)&g->contexts, &g->contexts_cap, g->ncontexts + 1, sizeof(*c))) {
        g->failed = true;
        return;
    }
    c = &g->contexts[g->ncontexts];
    *c = (struct fl_context){.event = event};
    n = lines_before(g, b, lines, i, before);
    while (n-- > 0)
        if (line_before(g, b, lines, i, before[n], &s))
            c->line[c->n++] =
                keep(g, s.text, (struct fl_at){j->seq - before[n], s.number, b->file}, s.tag.a);
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
    uint64_t writer = writer_of(&l->tag);

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

/* The last lines of the file, of this block and of those before. */
static void ending(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines)
{
    struct fl_gather *g = j->gather;
    struct fl_ending *e;
    struct seen s, first = {0};
    size_t n = 0;

    while (n < FL_ENDING_LINES && line_before(g, b, lines, lines->n, n + 1, &s))
        n++;
    if (g->endings_text >= FL_ENDINGS_TEXT || !n)
        return;
    if (fl_grow((void **)&g->endings, &g->endings_cap, g->nendings + 1, sizeof(*e))) {
        g->failed = true;
        return;
    }
    e = &g->endings[g->nendings++];
    *e = (struct fl_ending){.file = b->file};
    for (size_t d = n; d > 0 && line_before(g, b, lines, lines->n, d, &s); d--) {
        struct fl_at at = {j->seq - (d - 1), s.number, b->file};
        if (d == n)
            first = s;
        e->line[e->n++] = keep(g, s.text, at, s.tag.a);
        g->endings_text += e->line[e->n - 1].text.n + sizeof(struct fl_kept);
        e->several |= writer_of(&s.tag) != writer_of(&first.tag);
    }
}

/* How many of the last lines of the block and of `back` the next block may ask for. */
static size_t wanted(const struct fl_gather *g, const struct fl_block *b,
                     const struct fl_lines *lines)
{
    size_t most = g->ncontexts < FL_MAX_CONTEXTS ? FL_BACK_LINES : FL_ENDING_LINES, n, bytes = 0;
    struct seen s;

    for (n = 0; n < most && line_before(g, b, lines, lines->n, n + 1, &s); n++)
        if ((bytes += s.text.n + 1) > FL_BACK_BYTES && n >= FL_ENDING_LINES)
            break;
    return n;
}

static void drop_back(struct fl_back *k, size_t n)
{
    size_t from = n ? k->v[k->n - n].at : k->text.n;

    if (k->text.n > from)
        memmove(k->text.p, k->text.p + from, k->text.n - from);
    fl_buf_cut(&k->text, k->text.n - from);
    for (size_t i = 0; i < n; i++) {
        k->v[i] = k->v[k->n - n + i];
        k->v[i].at -= from;
    }
    k->n = n;
}

void fl_gather_block(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines)
{
    struct fl_gather *g = j->gather;
    struct fl_back *k = &g->back;
    size_t n, old;

    if (b->last) {
        ending(j, b, lines);
        drop_back(k, 0); /* the next line is of another file */
        return;
    }
    n = wanted(g, b, lines);
    old = n > lines->n ? n - lines->n : 0;
    n -= old;
    /* Moving is for when what is not wanted has grown as large as what is. */
    if (n < lines->n || k->n > 2 * old + 64 || k->text.n > 2 * FL_BACK_BYTES)
        drop_back(k, old);
    if (fl_grow((void **)&k->v, &k->cap, k->n + n, sizeof(*k->v))) {
        g->failed = true;
        return;
    }
    for (size_t i = lines->n - n, start = n ? lines->v[i].at : 0; i < lines->n; i++) {
        const struct fl_line *l = &lines->v[i];
        k->v[k->n++] = (struct fl_back_line){k->text.n + l->at - start, l->len,
                                             fl_block_line(b, l->at, i), l->tag};
    }
    if (n)
        fl_buf_add(&k->text, fl_str_n(b->data + lines->v[lines->n - n].at,
                                      b->len - lines->v[lines->n - n].at));
    if (k->text.bad) { /* lines without a text are none to look back at */
        k->n = 0;
        g->failed |= k->text.bad == FL_ENOMEM;
    }
}
