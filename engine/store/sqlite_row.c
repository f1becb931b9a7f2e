/*
 * Incidents as rows.
 *
 * Plain statements and nothing decided: what a duplicate is and in which order things are written
 * stands above. The words of `stack` are lines of one column, since nobody asks for one of them and
 * a table of their own would cost a row each.
 */
#include "store/sqlite.h"

#include "base/buf.h"
#include "base/alloc.h"

/* 1 and the number, or 0. */
static int one_number(struct sq *q, sqlite3_stmt *st, int64_t *number, fl_err *err)
{
    int r = sq_step(q, st, err);

    if (r > 0) {
        *number = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return r;
}

int sq_find(void *db, fl_str id, int64_t *number, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_FIND, &st, err);

    if (r)
        return r;
    sq_text(db, st, 1, id);
    return one_number(db, st, number, err);
}

int sq_same(void *db, fl_str shape, fl_str cause, int64_t *number, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_SAME, &st, err);

    if (r)
        return r;
    sq_text(db, st, 1, shape);
    sq_text(db, st, 2, cause);
    return one_number(db, st, number, err);
}

static int read_evidence(struct sq *q, int64_t number, fl_arena *a, struct fl_incident *out,
                         fl_err *err)
{
    sqlite3_stmt *st = NULL;
    fl_str *v = NULL;
    size_t n = 0, cap = 0;
    int r = sq_use(q, SQ_READ_EVIDENCE, &st, err);

    if (r)
        return r;
    sq_int(q, st, 1, number);
    while ((r = sq_step(q, st, err)) > 0) {
        if (fl_grow((void **)&v, &cap, n + 1, sizeof(*v))) {
            r = fl_fail_nomem(err);
            break;
        }
        v[n++] = fl_arena_str(a, sq_column(st, 0));
        r = sq_column_check(q, err);
        if (r)
            break;
    }
    sqlite3_reset(st);
    if (!r) {
        fl_str *kept = fl_arena_alloc(a, (n + 1) * sizeof(*kept));
        if (kept && n)
            memcpy(kept, v, n * sizeof(*kept));
        out->evidence = kept;
        out->nevidence = n;
        r = a->failed ? fl_fail_nomem(err) : FL_OK;
    }
    fl_free(v);
    return r;
}

static void read_stack(fl_str lines, fl_arena *a, struct fl_incident *out)
{
    size_t n = lines.n ? 1 : 0;
    fl_str *v;

    for (size_t i = 0; i < lines.n; i++)
        n += lines.p[i] == '\n';
    v = fl_arena_alloc(a, (n + 1) * sizeof(*v));
    for (size_t i = 0; v && i < n; i++)
        v[i] = fl_str_cut(&lines, '\n');
    out->stack = v;
    out->nstack = v ? n : 0;
}

int sq_read(void *db, int64_t number, fl_arena *a, struct fl_incident *out, fl_err *err)
{
    struct sq *q = db;
    struct fl_incident inc = {0};
    fl_str col[14];
    sqlite3_stmt *st = NULL;
    bool words;
    int r = sq_use(q, SQ_READ, &st, err);

    if (r)
        return r;
    sq_int(q, st, 1, number);
    r = sq_step(q, st, err);
    if (r == 0)
        return fl_fail(err, FL_ENOTFOUND, "%s: there is no incident number %lld", q->path,
                       (long long)number);
    if (r < 0)
        return r;
    for (int i = 0; i < 14; i++)
        col[i] = fl_arena_str(a, sq_column(st, i));
    inc.count = (uint64_t)sqlite3_column_int64(st, 12);
    r = sq_column_check(q, err);
    sqlite3_reset(st);
    if (!r && a->failed)
        r = fl_fail_nomem(err);
    if (r)
        return r;
    inc.id = col[0], inc.cause = col[2], inc.title = col[3], inc.phase = col[5];
    inc.explanation = col[6], inc.fix = col[7], inc.source = col[8];
    inc.created = col[10], inc.updated = col[11], inc.shape = col[13];
    words = fl_incident_kind_of(col[1], &inc.kind) && fl_incident_origin_of(col[9], &inc.origin);
    if (!words)
        return sq_fail(q, SQLITE_CORRUPT, err);
    read_stack(col[4], a, &inc);
    r = read_evidence(q, number, a, &inc, err);
    if (!r)
        *out = inc;
    return r;
}

static int write_evidence(struct sq *q, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = FL_OK;

    for (size_t i = 0; !r && i < inc->nevidence; i++) {
        r = sq_use(q, SQ_INSERT_EVIDENCE, &st, err);
        if (r)
            break;
        sq_int(q, st, 1, number);
        sq_int(q, st, 2, (int64_t)i);
        sq_blob(q, st, 3, inc->evidence[i]);
        r = sq_run(q, st, err);
    }
    return r;
}

/* Runs an insert or replace, whose first 14 parameters are the same. */
static int write_row(struct sq *q, enum sq_sql which, int64_t number, const struct fl_incident *inc,
                     fl_err *err)
{
    sqlite3_stmt *st = NULL;
    fl_buf stack;
    int r;

    fl_buf_init(&stack, FL_INCIDENT_MAX_BYTES);
    for (size_t i = 0; i < inc->nstack; i++) {
        if (i)
            fl_buf_addc(&stack, '\n');
        fl_buf_add(&stack, inc->stack[i]);
    }
    r = fl_buf_check(&stack, "stack", err);
    if (!r)
        r = sq_use(q, which, &st, err);
    if (!r) {
        sq_text(q, st, 1, inc->id);
        sq_text(q, st, 2, fl_str_c(fl_incident_kind_word(inc->kind)));
        sq_text(q, st, 3, inc->cause);
        sq_blob(q, st, 4, inc->title);
        sq_blob(q, st, 5, fl_buf_str(&stack));
        sq_blob(q, st, 6, inc->phase);
        sq_blob(q, st, 7, inc->explanation);
        sq_blob(q, st, 8, inc->fix);
        sq_blob(q, st, 9, inc->source);
        sq_text(q, st, 10, fl_str_c(fl_incident_origin_word(inc->origin)));
        sq_text(q, st, 11, inc->created);
        sq_text(q, st, 12, inc->updated);
        sq_int(q, st, 13, (int64_t)inc->count);
        if (inc->shape.n) /* else NULL */
            sq_text(q, st, 14, inc->shape);
        if (which == SQ_REPLACE)
            sq_int(q, st, 15, number);
        r = sq_run(q, st, err);
        sqlite3_clear_bindings(st);
    }
    fl_buf_dispose(&stack);
    return r;
}

int sq_insert(void *db, const struct fl_incident *inc, int64_t *number, fl_err *err)
{
    struct sq *q = db;
    int64_t at;
    int r = write_row(q, SQ_INSERT, 0, inc, err);

    if (r)
        return r;
    at = sqlite3_last_insert_rowid(q->db);
    r = write_evidence(q, at, inc, err);
    if (!r)
        *number = at;
    return r;
}

/* One number in, no rows out. */
static int run_number(struct sq *q, enum sq_sql which, int64_t number, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, which, &st, err);

    if (r)
        return r;
    sq_int(q, st, 1, number);
    return sq_run(q, st, err);
}

int sq_replace(void *db, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    int r = write_row(db, SQ_REPLACE, number, inc, err);

    if (!r)
        r = run_number(db, SQ_DROP_EVIDENCE, number, err);
    return r ? r : write_evidence(db, number, inc, err);
}

int sq_count_on(void *db, int64_t number, uint64_t more, fl_str now, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_COUNT_ON, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, number);
    sq_int(db, st, 2, (int64_t)more);
    sq_text(db, st, 3, now);
    return sq_run(db, st, err);
}

int sq_remove(void *db, int64_t number, fl_err *err)
{
    return run_number(db, SQ_REMOVE, number, err);
}

int sq_list(void *db, const struct fl_store_filter *f, fl_store_number_fn fn, void *ctx,
            fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_LIST, &st, err);

    if (r)
        return r;
    if (fl_str_ends(f->cause, FL_S(".*")))
        sq_text(q, st, 2, fl_str_sub(f->cause, 0, f->cause.n - 1));
    else if (f->cause.n)
        sq_text(q, st, 1, f->cause);
    if (f->kind >= 0)
        sq_text(q, st, 3, fl_str_c(fl_incident_kind_word((enum fl_incident_kind)f->kind)));
    if (f->origin >= 0)
        sq_text(q, st, 4, fl_str_c(fl_incident_origin_word((enum fl_incident_origin)f->origin)));
    while ((r = sq_step(q, st, err)) > 0) {
        r = fn(ctx, sqlite3_column_int64(st, 0), err);
        if (r)
            break;
    }
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return r;
}

/* Two ways, since this is asked of damaged files too. */
int sq_highest(void *db, int64_t *number, fl_err *err)
{
    if (sq_number(db, "SELECT seq FROM sqlite_sequence WHERE name = 'incident'", number, NULL) == 0)
        return FL_OK;
    return sq_number(db, "SELECT max(number) FROM incident", number, err);
}

int sq_counts(void *db, struct fl_store_counts *out, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_COUNT_KINDS, &st, err);

    if (r)
        return r;
    while ((r = sq_step(q, st, err)) > 0) {
        enum fl_incident_kind k;
        enum fl_incident_origin o;
        uint64_t n = (uint64_t)sqlite3_column_int64(st, 2);
        out->incidents += n;
        if (fl_incident_kind_of(sq_column(st, 0), &k))
            out->kinds[k] += n;
        if (fl_incident_origin_of(sq_column(st, 1), &o))
            out->origins[o] += n;
    }
    if (!r)
        r = sq_use(q, SQ_COUNT_REST, &st, err);
    if (r)
        return r;
    r = sq_step(q, st, err);
    if (r > 0) {
        out->docs = (uint64_t)sqlite3_column_int64(st, 0);
        out->vectors = (uint64_t)sqlite3_column_int64(st, 1);
        out->tombstones = (uint64_t)sqlite3_column_int64(st, 2);
        sqlite3_reset(st);
    }
    return r < 0 ? r : FL_OK;
}

int sq_meta_get(void *db, const char *key, fl_arena *a, fl_str *out, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_META_GET, &st, err);

    if (r)
        return r;
    sq_text(q, st, 1, fl_str_c(key));
    r = sq_step(q, st, err);
    if (r > 0) {
        fl_str v = fl_arena_str(a, sq_column(st, 0));
        int c = sq_column_check(q, err);
        sqlite3_reset(st);
        if (c || !v.p)
            return c ? c : fl_fail_nomem(err);
        *out = v;
    }
    return r;
}

int sq_meta_set(void *db, const char *key, fl_str value, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_META_SET, &st, err);

    if (r)
        return r;
    sq_text(db, st, 1, fl_str_c(key));
    sq_blob(db, st, 2, value);
    return sq_run(db, st, err);
}
