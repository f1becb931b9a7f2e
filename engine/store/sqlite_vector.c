/*
 * Vectors as rows, and what is left of those that went.
 *
 * A vector is never changed in place: a new one is a new number. So an index that knows all numbers
 * up to a mark is brought up to date by the vectors above it and the tombstones since, whatever
 * happened in between, and two readers of one mark see the same. A row whose size does not fit its
 * model (a damaged or hand-edited file) is left out and counted: a search must not end for it, nor
 * read behind its end.
 */
#include "store/sqlite.h"

#include "base/alloc.h"

static const char *const forms[] = {"int8", "float"};

int sq_model(void *db, fl_str name, int64_t *number, uint32_t *dim, enum fl_vector_form *form,
             fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_MODEL, &st, err);

    if (r)
        return r;
    sq_text(q, st, 1, name);
    r = sq_step(q, st, err);
    if (r > 0) {
        *number = sqlite3_column_int64(st, 0);
        *dim = (uint32_t)sqlite3_column_int64(st, 1);
        *form = fl_str_eqz(sq_column(st, 2), forms[1]) ? FL_VECTOR_FLOAT : FL_VECTOR_INT8;
        r = sq_column_check(q, err);
        sqlite3_reset(st);
        return r ? r : 1;
    }
    return r;
}

int sq_add_model(void *db, const struct fl_store_model *m, int64_t *number, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_ADD_MODEL, &st, err);

    if (r)
        return r;
    sq_text(q, st, 1, m->name);
    sq_int(q, st, 2, m->dim);
    sq_text(q, st, 3, fl_str_c(forms[m->form]));
    r = sq_run(q, st, err);
    if (!r)
        *number = sqlite3_last_insert_rowid(q->db);
    return r;
}

int sq_drop_model(void *db, int64_t model, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_DROP_MODEL, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, model);
    r = sq_run(db, st, err);
    /* nobody can ask for them: the number of a model is never used again */
    return r ? r : sq_forget(db, model, INT64_MAX, err);
}

int sq_models(void *db, fl_store_model_fn fn, void *ctx, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_MODELS, &st, err);

    if (r)
        return r;
    while ((r = sq_step(q, st, err)) > 0) {
        struct fl_store_model m = {.name = sq_column(st, 0),
                                   .dim = (uint32_t)sqlite3_column_int64(st, 1)};
        m.form = fl_str_eqz(sq_column(st, 2), forms[1]) ? FL_VECTOR_FLOAT : FL_VECTOR_INT8;
        r = sq_column_check(q, err);
        if (!r)
            r = fn(ctx, &m, (uint64_t)sqlite3_column_int64(st, 3), err);
        if (r)
            break;
    }
    sqlite3_reset(st);
    return r;
}

int sq_add_vector(void *db, int64_t model, const struct fl_store_vector *v, size_t bytes,
                  fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_ADD_VECTOR, &st, err);

    if (r)
        return r;
    sq_int(q, st, 1, v->incident);
    sq_int(q, st, 2, model);
    sq_int(q, st, 3, v->piece);
    if (sqlite3_bind_double(st, 4, v->scale) != SQLITE_OK)
        q->bad = SQLITE_NOMEM;
    sq_blob(q, st, 5, fl_str_n(v->data, bytes));
    r = sq_run(q, st, err);
    if (!r && sqlite3_changes(q->db) == 0)
        r = fl_fail(err, FL_ENOTFOUND, "%s: there is no incident number %lld to put vectors to",
                    q->path, (long long)v->incident);
    return r;
}

int sq_drop_vectors(void *db, int64_t model, int64_t incident, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_DROP_VECTORS, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, incident);
    sq_int(db, st, 2, model);
    return sq_run(db, st, err);
}

int sq_vectors(void *db, int64_t model, int64_t after, int64_t upto, size_t limit, size_t bytes,
               fl_store_vector_fn fn, void *ctx, int64_t *next, uint64_t *damaged, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    int r = sq_use(q, SQ_VECTORS, &st, err);

    if (r)
        return r;
    sq_int(q, st, 1, model);
    sq_int(q, st, 2, after);
    sq_int(q, st, 3, upto);
    sq_int(q, st, 4, (int64_t)limit);
    while ((r = sq_step(q, st, err)) > 0) {
        fl_str data = sq_column(st, 4);
        struct fl_store_vector v = {.number = sqlite3_column_int64(st, 0),
                                    .incident = sqlite3_column_int64(st, 1),
                                    .piece = (uint32_t)sqlite3_column_int64(st, 2),
                                    .scale = (float)sqlite3_column_double(st, 3),
                                    .data = data.p};
        r = sq_column_check(q, err);
        n++;
        *next = v.number;
        if (!r && data.n == bytes)
            r = fn(ctx, &v, err);
        else
            ++*damaged;
        if (r)
            break;
    }
    sqlite3_reset(st);
    if (n < limit)
        *next = 0;
    return r;
}

int sq_vector_of(void *db, int64_t number, int64_t *incident, uint32_t *piece, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_VECTOR_OF, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, number);
    r = sq_step(db, st, err);
    if (r > 0) {
        *incident = sqlite3_column_int64(st, 0);
        *piece = (uint32_t)sqlite3_column_int64(st, 1);
        sqlite3_reset(st);
    }
    return r;
}

int sq_mark(void *db, int64_t model, struct fl_store_mark *out, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_MARK, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, model);
    r = sq_step(db, st, err);
    if (r > 0) {
        out->last = sqlite3_column_int64(st, 0);
        out->tombstone = sqlite3_column_int64(st, 1);
        out->vectors = (uint64_t)sqlite3_column_int64(st, 2);
        sqlite3_reset(st);
    }
    return r < 0 ? r : FL_OK;
}

/* Rows of one number each, for a statement whose parameters are set. */
static int each_number(struct sq *q, sqlite3_stmt *st, fl_store_number_fn fn, void *ctx,
                       fl_err *err)
{
    int r;

    while ((r = sq_step(q, st, err)) > 0) {
        r = fn(ctx, sqlite3_column_int64(st, 0), err);
        if (r)
            break;
    }
    sqlite3_reset(st);
    return r;
}

int sq_tombstones(void *db, int64_t model, int64_t after, fl_store_number_fn fn, void *ctx,
                  fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_TOMBSTONES, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, model);
    sq_int(db, st, 2, after);
    return each_number(db, st, fn, ctx, err);
}

int sq_forget(void *db, int64_t model, int64_t upto, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_FORGET, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, model);
    sq_int(db, st, 2, upto);
    return sq_run(db, st, err);
}

int sq_missing(void *db, int64_t model, size_t limit, fl_store_number_fn fn, void *ctx, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_MISSING, &st, err);

    if (r)
        return r;
    sq_int(db, st, 1, model);
    sq_int(db, st, 2, limit ? (int64_t)limit : -1);
    return each_number(db, st, fn, ctx, err);
}
