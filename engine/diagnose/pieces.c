/*
 * A job as pieces that can be looked up.
 *
 * The whole digest as one text finds little: what is peculiar to the failure drowns in what all
 * failures print. So each distinct line that sounds like trouble is a piece, a traceback is one
 * (its exception and the last lines before it), and what the numbers show is one in words, because
 * a hang or a slow-down has no line of its own.
 *
 * Rules of failures play no part: what they know is not looked up, and what they do not know must
 * not depend on them. Filters do: what is routine is no piece.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/engine.h"
#include "diagnose/memory.h"
#include "diagnose/timeline.h"
#include "embed/normal.h"

#define BODY_LINES 3 /* of a traceback, before its exception */
#define MOST_TRACEBACKS 12
#define LAST_LINES 20
#define WEIGHT 0.3 /* how much the order of pieces counts, as a power */

void fl_pieces_dispose(struct fl_pieces *p)
{
    fl_arena_dispose(&p->arena);
}

static void add_piece(struct fl_pieces *p, fl_str text, fl_str line, const char *file,
                      uint64_t number, double weight)
{
    fl_buf b;
    struct fl_piece *x;

    if (p->n == FL_PIECES)
        return;
    fl_buf_init(&b, 1u << 20);
    fl_normal(text, &b);
    for (size_t i = 0; i < p->n; i++)
        if (fl_str_eq(p->v[i].text, fl_buf_str(&b)))
            b.n = 0;
    if (b.n) {
        x = &p->v[p->n++];
        x->text = fl_arena_str(&p->arena, fl_buf_str(&b));
        x->raw = fl_arena_str(&p->arena, text);
        x->line = line.n ? fl_arena_str(&p->arena, line) : line;
        x->file = file ? fl_arena_z(&p->arena, fl_str_c(file)) : NULL;
        x->number = number;
        x->weight = pow(weight / 2, WEIGHT);
    }
    p->arena.failed |= b.bad != 0;
    fl_buf_dispose(&b);
}

int fl_pieces_of_text(fl_str text, struct fl_pieces *out, fl_err *err)
{
    *out = (struct fl_pieces){.n = 0};
    fl_arena_init(&out->arena);
    while (text.n) {
        fl_str line = fl_str_trim(fl_str_cut(&text, '\n'));
        if (line.n)
            add_piece(out, fl_str_sub(line, 0, FL_PIECE_TEXT), line, NULL, 0, 2);
    }
    out->late = out->n;
    return out->arena.failed ? fl_fail_nomem(err) : FL_OK;
}

struct ranked {
    size_t row;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The last step, or the last tenth of a log without steps, but no fewer than its last lines: what
 * began behind it. */
static uint64_t late_seq(const struct fl_job *j)
{
    uint64_t last = j->seq / 10 > LAST_LINES ? j->seq / 10 : LAST_LINES;

    return j->timeline->n ? j->timeline->last_progress.seq : j->seq > last ? j->seq - last : 0;
}

static double value_of(const struct fl_job *j, const struct fl_shape_row *r)
{
    static const double bad[] = {0, 0.5, 1, 1.3};
    size_t ranks = j->places.nranks;
    double v = bad[r->badness];

    if (r->first.seq >= late_seq(j))
        v *= 1.6;
    if (r->ranks == 1 && ranks > 4)
        v *= 1.5;
    if (r->count > 1000)
        v *= 0.7;
    return v;
}

static void add_rows(struct fl_page *p, struct fl_pieces *out)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    struct ranked *v = fl_malloc((t->n + 1) * sizeof(*v));
    size_t n = 0;

    if (!v) {
        out->arena.failed = true;
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct fl_shape_row *r = &t->rows[i];
        double value = value_of(p->job, r);
        bool drop =
            p->filter[i] && p->job->rules->filters[p->filter[i] - 1].action == FL_FILTER_DROP;
        if (value > 0 && !drop && !(r->owner & FL_OWN_TRACEBACK))
            v[n++] = (struct ranked){i, value};
    }
    qsort(v, n, sizeof(*v), by_value);
    for (size_t i = 0; i < n && out->n < FL_PIECES; i++) {
        const struct fl_shape_row *r = &t->rows[v[i].row];
        fl_str body = fl_str_from(r->text, r->body);
        out->late += r->badness >= 2 && r->first.seq > late_seq(p->job);
        add_piece(out, fl_str_sub(body, 0, FL_PIECE_TEXT), r->text,
                  fl_reader_file(p->job->reader, r->first.file)->name, r->first.line, v[i].value);
    }
    fl_free(v);
}

/* The exception's line first, then what stands before it. */
static void add_traceback(struct fl_page *p, const struct fl_whole *w, struct fl_pieces *out)
{
    const struct fl_kept *last = &w->line[w->n - 1];
    struct fl_tag tag;
    fl_buf b;

    fl_buf_init(&b, 1u << 16);
    for (size_t k = 0; k <= BODY_LINES && k < w->n; k++) {
        const struct fl_kept *line = &w->line[w->n - 1 - k];
        tag = (struct fl_tag){0, 0};
        fl_gather_tag(line->text, false, &tag);
        fl_buf_add(&b, fl_str_sub(fl_str_from(line->text, fl_tag_body(&tag)), 0,
                                  k ? FL_PIECE_TEXT / 4 : FL_PIECE_TEXT));
        fl_buf_addc(&b, ' ');
    }
    out->arena.failed |= b.bad != 0;
    out->late += last->at.seq > late_seq(p->job);
    add_piece(out, fl_buf_str(&b), last->text, fl_reader_file(p->job->reader, last->at.file)->name,
              last->at.line, last->at.seq >= late_seq(p->job) ? 2 : 1.2);
    fl_buf_dispose(&b);
}

static void add_timeline(struct fl_page *p, struct fl_pieces *out)
{
    const struct fl_report *r = p->report;

    for (size_t i = 0; i < p->verdict->nfindings; i++) {
        const struct fl_finding *f = &p->verdict->findings[i];
        const struct fl_point *proof = f->proof[0];
        out->late++;
        add_piece(out, fl_str_c(f->why), fl_str_c(proof && proof->text ? proof->text : ""),
                  proof ? fl_reader_file(p->job->reader, proof->at.file)->name : NULL,
                  proof ? proof->at.line : 0, 1.5);
    }
    for (size_t i = 0; i < r->timeline.nnotes; i++)
        add_piece(out, fl_str_c(r->timeline.notes[i]), FL_S(""), NULL, 0, 1.2);
}

int fl_pieces_of_job(const fl_engine *e, struct fl_diagnosis *d, struct fl_pieces *out, fl_err *err)
{
    struct fl_page p = {.job = &d->job, .report = &d->report, .verdict = &d->verdict};
    struct fl_gather *g = d->job.gather;
    int r;

    *out = (struct fl_pieces){.job = &d->job};
    fl_arena_init(&out->arena);
    r = fl_page_ask_filters(&p, e, err);
    if (!r) {
        add_timeline(&p, out);
        for (size_t i = g->nwholes, n = 0; i-- > 0 && n < MOST_TRACEBACKS; n++)
            add_traceback(&p, &g->wholes[i], out);
        add_rows(&p, out);
        if (out->arena.failed)
            r = fl_fail_nomem(err);
    }
    fl_free(p.filter);
    fl_free(p.fate);
    if (r)
        fl_pieces_dispose(out);
    return r;
}
