/*
 * Many incidents at once: import and export.
 *
 * An import is one transaction. Half an import would leave a corpus that is neither the old nor the
 * new one, and one transaction is also what makes it quick. Shipped incidents are a special case
 * with a rule of its own: a new version of the corpus replaces its rows and takes away those that
 * were withdrawn, and never touches what a person confirmed or corrected, because a person's word
 * must not be lost by an update.
 *
 * The export is sorted by id and holds every field, so that an import into an empty store gives the
 * same export again. Duplicates are the one thing that could break this, and they cannot: no two
 * stored incidents share shape and cause.
 */
#include "store/parts.h"

#include "base/map.h"
#include "base/alloc.h"

#define MANY 100 /* changes that are worth tidying the words for */

struct import {
    fl_store *s;
    const struct fl_store_import *o;
    struct fl_store_imported n;
    fl_map seen; /* ids, when it is the corpus */
};

static bool same_list(const fl_str *a, size_t na, const fl_str *b, size_t nb)
{
    bool same = na == nb;

    for (size_t i = 0; same && i < na; i++)
        same = fl_str_eq(a[i], b[i]);
    return same;
}

static bool same_incident(const struct fl_incident *a, const struct fl_incident *b)
{
    return a->kind == b->kind && a->origin == b->origin && fl_str_eq(a->cause, b->cause) &&
           fl_str_eq(a->title, b->title) && fl_str_eq(a->phase, b->phase) &&
           fl_str_eq(a->explanation, b->explanation) && fl_str_eq(a->fix, b->fix) &&
           fl_str_eq(a->source, b->source) && same_list(a->stack, a->nstack, b->stack, b->nstack) &&
           same_list(a->evidence, a->nevidence, b->evidence, b->nevidence);
}

/* An id that is there already. */
static int clash(struct import *im, int64_t number, struct fl_incident *inc, fl_arena *a,
                 fl_err *err)
{
    struct fl_incident old = {0};
    struct fl_store_added added = {0};
    bool replace = im->o->clash == FL_CLASH_REPLACE;
    int r = im->s->ops->read(im->s->db, number, a, &old, err);

    if (r)
        return r;
    if (same_incident(&old, inc)) {
        im->n.same++;
        return FL_OK;
    }
    if (im->o->corpus)
        replace = old.origin == FL_ORIGIN_CORPUS;
    else if (im->o->clash == FL_CLASH_FAIL)
        return fl_fail(err, FL_EUSAGE,
                       "%s:%u: incident '%.*s' is there already with another text; change the id, "
                       "or say which one is to stay",
                       inc->file, inc->line, FL_FMT(inc->id));
    if (!replace) {
        im->n.kept++;
        return FL_OK;
    }
    r = fl_store_complete(im->s, inc, a, err);
    if (!r)
        r = fl_store_replace_in(im->s, number, inc, &added, err);
    if (!r)
        im->n.replaced++;
    return r;
}

/* One that is not there under its id. */
static int fresh(struct import *im, struct fl_incident *inc, fl_arena *a, fl_err *err)
{
    struct fl_store_added added = {0};
    int64_t number = 0;
    int r = fl_store_complete(im->s, inc, a, err);

    /* read again with each new version, the corpus counts no duplicates */
    if (!r && im->o->corpus && inc->shape.n) {
        r = im->s->ops->same(im->s->db, inc->shape, inc->cause, &number, err);
        if (r > 0) {
            im->n.duplicates++;
            return FL_OK;
        }
    }
    if (!r)
        r = fl_store_insert_in(im->s, inc, &added, err);
    if (r)
        return r;
    if (added.duplicate)
        im->n.duplicates++;
    else
        im->n.added++;
    return FL_OK;
}

static int import_one(void *ctx, const struct fl_incident *row, fl_err *err)
{
    struct import *im = ctx;
    struct fl_incident inc = *row;
    int64_t number = 0;
    fl_arena a;
    int r;

    im->n.read++;
    if (im->o->corpus) {
        inc.origin = FL_ORIGIN_CORPUS;
        if (fl_map_set(&im->seen, inc.id, 1))
            return fl_fail_nomem(err);
    }
    r = im->s->ops->find(im->s->db, inc.id, &number, err);
    if (r < 0)
        return r;
    fl_arena_init(&a);
    r = r ? clash(im, number, &inc, &a, err) : fresh(im, &inc, &a, err);
    fl_arena_dispose(&a);
    return r;
}

struct numbers {
    struct import *im;
    int64_t *v;
    size_t n, cap;
};

static int gone_one(void *ctx, int64_t number, fl_err *err)
{
    struct numbers *g = ctx;
    struct fl_incident inc = {0};
    uint32_t found;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = g->im->s->ops->read(g->im->s->db, number, &a, &inc, err);
    if (!r && !fl_map_get(&g->im->seen, inc.id, &found)) {
        if (fl_grow((void **)&g->v, &g->cap, g->n + 1, sizeof(*g->v)))
            r = fl_fail_nomem(err);
        else
            g->v[g->n++] = number;
    }
    fl_arena_dispose(&a);
    return r;
}

/* Shipped rows that the new corpus no longer has. */
static int remove_gone(struct import *im, fl_err *err)
{
    struct fl_store_filter f = FL_STORE_ALL;
    struct numbers g = {.im = im};
    int r;

    f.origin = FL_ORIGIN_CORPUS;
    r = im->s->ops->list(im->s->db, &f, gone_one, &g, err);
    for (size_t i = 0; !r && i < g.n; i++) {
        r = fl_store_remove_in(im->s, g.v[i], err);
        im->n.removed++;
    }
    fl_free(g.v);
    return r;
}

static int import(fl_store *s, const char *path, fl_str text, bool is_text,
                  const struct fl_store_import *o, struct fl_store_imported *out, fl_err *err)
{
    struct import im = {.s = s, .o = o};
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    fl_map_init(&im.seen);
    r = is_text ? fl_incidents_parse(text, path, import_one, &im, err)
                : fl_incidents_load(path, import_one, &im, err);
    if (!r && o->corpus)
        r = remove_gone(&im, err);
    if (!r && im.n.added + im.n.replaced + im.n.removed > MANY)
        r = s->ops->tidy(s->db, err);
    fl_map_dispose(&im.seen);
    r = fl_store_leave(s, FL_TX_WRITE, r, err);
    if (!r && out)
        *out = im.n;
    return r;
}

int fl_store_import(fl_store *s, const char *path, const struct fl_store_import *o,
                    struct fl_store_imported *out, fl_err *err)
{
    return import(s, path, FL_S(""), false, o, out, err);
}

int fl_store_import_text(fl_store *s, fl_str text, const char *name,
                         const struct fl_store_import *o, struct fl_store_imported *out,
                         fl_err *err)
{
    return import(s, name, text, true, o, out, err);
}

struct export
{
    fl_incident_map_fn map;
    void *map_ctx;
    fl_store_sink_fn out;
    void *ctx;
    fl_buf b;
};

static int export_one(void *ctx, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    struct export *x = ctx;
    int r;

    (void)number;
    fl_buf_clear(&x->b);
    fl_incident_write(inc, x->map, x->map_ctx, &x->b);
    r = fl_buf_check(&x->b, "an incident as YAML", err);
    return r ? r : x->out(x->ctx, fl_buf_str(&x->b), err);
}

/* Each read is a transaction of its own: after a damaged page there is none to go on with. */
static int salvage_one(fl_store *s, int64_t number, struct export *x,
                       struct fl_store_salvaged *done, fl_err *err)
{
    struct fl_incident inc = {0};
    fl_err why = {0};
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = fl_store_get_number(s, number, &a, &inc, &why);
    if (!r)
        r = fl_incident_check(&inc, true, &why) ? FL_EBACKEND : FL_OK;
    if (!r) {
        r = export_one(x, number, &inc, err);
        done->saved += r == 0;
    } else if (r == FL_EBACKEND || r == FL_EIO) {
        done->lost++;
        r = FL_OK;
    } else if (r == FL_ENOTFOUND) {
        r = FL_OK;
    } else {
        fl_fail(err, r, "%s", why.msg);
    }
    fl_arena_dispose(&a);
    return r;
}

int fl_store_salvage(fl_store *s, fl_store_sink_fn out, void *ctx, struct fl_store_salvaged *done,
                     fl_err *err)
{
    struct export x = {.out = out, .ctx = ctx};
    struct fl_store_salvaged n = {0};
    int64_t last = 0;
    int r = s->ops->highest(s->db, &last, err);

    fl_buf_init(&x.b, 16 * FL_INCIDENT_MAX_BYTES);
    if (!r)
        r = out(ctx, FL_S(FL_INCIDENTS_HEAD), err);
    for (int64_t i = 1; !r && i <= last; i++)
        r = salvage_one(s, i, &x, &n, err);
    fl_buf_dispose(&x.b);
    if (!r && done)
        *done = n;
    return r;
}

int fl_store_export(fl_store *s, const struct fl_store_filter *f, fl_incident_map_fn map,
                    void *map_ctx, fl_store_sink_fn out, void *ctx, fl_err *err)
{
    struct export x = {.map = map, .map_ctx = map_ctx, .out = out, .ctx = ctx};
    int r;

    fl_buf_init(&x.b, 16 * FL_INCIDENT_MAX_BYTES);
    r = out(ctx, FL_S(FL_INCIDENTS_HEAD), err);
    if (!r)
        r = fl_store_list(s, f, export_one, &x, err);
    fl_buf_dispose(&x.b);
    return r > 0 ? FL_OK : r;
}
