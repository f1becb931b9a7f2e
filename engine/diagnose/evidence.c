/*
 * The lines of a job that an incident is known by.
 *
 * What a person will look up later is what this log looked like, so the lines are those by which
 * the cause was seen: the evidence of the diagnosis for that cause. When a person names another
 * cause than the diagnosis, the evidence proves the wrong thing; then the pieces that a search
 * would look up are taken, the weightiest first, since they are what a job like this will be
 * compared by. A job without any (a log that simply ends) is known by its last lines: an incident
 * without lines would be found by nobody.
 *
 * A line is kept without what launchers and clocks put in front of it, cut around what matched, and
 * once for each shape. What the numbers show has no line that says it; there the sentence stands
 * for it, as it does in the shipped corpus.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "diagnose/memory.h"
#include "embed/normal.h"

#define LINES 12       /* of the diagnosis's evidence */
#define FROM_PIECES 8  /* of the pieces */
#define FROM_ENDING 4  /* of the last lines */
#define LINE_BYTES 400 /* as the lint of a corpus allows */
#define TRACE_LINES 3  /* before an exception */

struct choice {
    fl_arena *a;
    fl_str v[LINES];
    uint64_t shape[LINES];
    size_t n, most;
};

static bool is_tail(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* At most LINE_BYTES of a line, with the bytes from `at` in it, not through a character. */
static fl_str window(fl_str s, size_t at, size_t len)
{
    size_t from = 0, end;

    if (s.n <= LINE_BYTES)
        return s;
    if (at + len > LINE_BYTES)
        from = at > LINE_BYTES / 4 ? at - LINE_BYTES / 4 : 0;
    if (s.n - from < LINE_BYTES)
        from = s.n - LINE_BYTES;
    end = from + LINE_BYTES;
    for (int i = 0; i < 3 && from < end && is_tail(s.p[from]); i++)
        from++;
    for (int i = 0; i < 3 && end > from && end < s.n && is_tail(s.p[end]); i++)
        end--;
    return fl_str_sub(s, from, end - from);
}

static fl_str body_of(fl_str line, struct fl_tag *tag)
{
    *tag = (struct fl_tag){0, 0};
    fl_gather_tag(line, false, tag);
    return fl_str_from(line, fl_tag_body(tag));
}

static void take_text(struct choice *c, fl_str text, uint64_t shape)
{
    if (!fl_str_trim(text).n || c->n >= c->most)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (c->shape[i] == shape)
            return;
    c->shape[c->n] = shape;
    c->v[c->n++] = fl_arena_str(c->a, text);
}

static void take_line(struct choice *c, fl_str line, size_t at, size_t len)
{
    struct fl_tag tag;
    fl_str body = body_of(line, &tag);
    size_t cut = line.n - body.n;

    take_text(c, window(fl_str_trim(body), at > cut ? at - cut : 0, len), tag.a);
}

static void take_sentence(struct choice *c, const char *text)
{
    struct fl_tag tag;

    body_of(fl_str_c(text), &tag);
    take_text(c, window(fl_str_c(text), 0, 0), tag.a);
}

static void from_evidence(struct choice *c, const struct fl_diagnosis *d, const char *cause)
{
    const struct fl_report *r = &d->report;
    const struct fl_verdict *v = &d->verdict;

    for (size_t i = 0; i < v->nfindings; i++)
        if (v->findings[i].cause && strcmp(v->findings[i].cause, cause) == 0)
            take_sentence(c, v->findings[i].why);
    for (size_t i = 0; i < r->nevidence; i++)
        if (r->evidence[i].cause && strcmp(r->evidence[i].cause, cause) == 0)
            take_line(c, fl_str_c(r->evidence[i].text), r->evidence[i].match_at,
                      r->evidence[i].match_len);
}

/* The sentence that a piece was made of: pieces hold it normalised. */
static const char *sentence_of(const struct fl_diagnosis *d, fl_str normal, fl_buf *b)
{
    const struct fl_verdict *v = &d->verdict;
    const struct fl_report *r = &d->report;

    for (size_t i = 0; i < v->nfindings + r->timeline.nnotes; i++) {
        const char *text =
            i < v->nfindings ? v->findings[i].why : r->timeline.notes[i - v->nfindings];
        fl_buf_clear(b);
        fl_normal(fl_str_c(text), b);
        if (fl_str_eq(fl_buf_str(b), normal))
            return text;
    }
    return NULL;
}

/* An exception with the frames above it, which say what the exception's line does not. */
static bool take_traceback(struct choice *c, const struct fl_diagnosis *d, const struct fl_piece *p)
{
    const struct fl_gather *g = d->job.gather;
    bool taken = false;
    struct fl_tag tag;
    fl_buf b;

    fl_buf_init(&b, 1u << 16);
    for (size_t i = 0; i < g->nwholes && !taken; i++) {
        const struct fl_whole *w = &g->wholes[i];
        const struct fl_kept *last = &w->line[w->n - 1];
        if (last->at.line != p->number || !fl_str_eq(last->text, p->line))
            continue;
        for (size_t k = w->n > TRACE_LINES + 1 ? w->n - TRACE_LINES - 1 : 0; k < w->n; k++) {
            fl_str line = body_of(w->line[k].text, &tag);
            fl_buf_add(&b, window(line, 0, 0));
            fl_buf_addz(&b, k + 1 < w->n ? "\n" : "");
        }
        take_text(c, fl_buf_str(&b), w->count ? last->hash : tag.a);
        taken = true;
    }
    c->a->failed |= b.bad != 0;
    fl_buf_dispose(&b);
    return taken;
}

static int by_weight(const void *a, const void *b)
{
    const struct fl_piece *x = *(const struct fl_piece *const *)a,
                          *y = *(const struct fl_piece *const *)b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x < y ? -1 : x > y; /* as they were made */
}

static int from_pieces(struct choice *c, const fl_engine *e, struct fl_diagnosis *d, fl_err *err)
{
    const struct fl_piece *order[FL_PIECES];
    struct fl_pieces p;
    fl_buf b;
    int r = fl_pieces_of_job(e, d, &p, err);

    if (r)
        return r;
    fl_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < p.n; i++)
        order[i] = &p.v[i];
    qsort(order, p.n, sizeof(*order), by_weight);
    for (size_t i = 0; i < p.n && c->n < c->most; i++) {
        const char *sentence = sentence_of(d, order[i]->text, &b);
        if (sentence)
            take_sentence(c, sentence);
        else if (!take_traceback(c, d, order[i]))
            take_line(c, order[i]->line, 0, 0);
    }
    fl_buf_dispose(&b);
    fl_pieces_dispose(&p);
    return FL_OK;
}

/* The latest lines of each file, those of the file that came last first. */
static void from_endings(struct choice *c, const struct fl_diagnosis *d)
{
    const struct fl_gather *g = d->job.gather;

    for (size_t i = g->nendings; i-- > 0;)
        for (size_t k = g->endings[i].n; k-- > 0;)
            take_line(c, g->endings[i].line[k].text, 0, 0);
}

int fl_evidence_of(const fl_engine *e, struct fl_diagnosis *d, const char *cause, fl_arena *a,
                   const fl_str **lines, size_t *n, const char **from, fl_err *err)
{
    struct choice c = {.a = a, .most = LINES};
    fl_str *v;
    int r = FL_OK;

    *from = "evidence";
    from_evidence(&c, d, cause);
    if (!c.n) {
        *from = "pieces";
        c.most = FROM_PIECES;
        r = from_pieces(&c, e, d, err);
    }
    if (!r && !c.n) {
        *from = "last";
        c.most = FROM_ENDING;
        from_endings(&c, d);
    }
    v = fl_arena_alloc(a, (c.n + 1) * sizeof(*v));
    if (!r && (!v || a->failed))
        r = fl_fail_nomem(err);
    if (r)
        return r;
    memcpy(v, c.v, c.n * sizeof(*v));
    *lines = v;
    *n = c.n;
    return FL_OK;
}
