/*
 * Search documents and FTS5.
 *
 * The query string is built from terms that the caller has reduced to letters, digits, _ and bytes
 * above 127, each in double quotes and joined by OR, so FTS5's own syntax has no way in. A document
 * is taken out of the index with the very text that was put in, which `doc` keeps: FTS5 has no
 * other way to find what to remove, and another text would leave its words behind for ever.
 */
#include "store/sqlite.h"

#include "base/buf.h"
#include "base/alloc.h"

static size_t count_words(fl_str words)
{
    size_t n = 0;

    while (words.n)
        n += fl_str_cut(&words, ' ').n > 0;
    return n;
}

int sq_add_doc(void *db, int64_t incident, uint32_t piece, fl_str words, fl_err *err)
{
    static const enum sq_sql both[] = {SQ_ADD_DOC, SQ_ADD_WORDS};
    sqlite3_stmt *st = NULL;
    int64_t number = sq_doc_number(incident, piece, count_words(words));
    int r = FL_OK;

    if (piece > 0xFFFF)
        return fl_fail(err, FL_EUSAGE, "an incident has at most 65536 search documents");
    for (int i = 0; !r && i < 2; i++) {
        r = sq_use(db, both[i], &st, err);
        if (r)
            break;
        sq_int(db, st, 1, number);
        sq_blob(db, st, 2, words);
        r = sq_run(db, st, err);
    }
    return r;
}

int sq_drop_docs(void *db, int64_t incident, fl_err *err)
{
    static const enum sq_sql both[] = {SQ_DROP_WORDS, SQ_DROP_DOCS};
    sqlite3_stmt *st = NULL;
    int r = FL_OK;

    for (int i = 0; !r && i < 2; i++) {
        r = sq_use(db, both[i], &st, err);
        if (r)
            break;
        sq_int(db, st, 1, sq_doc_number(incident, 0, 0));
        sq_int(db, st, 2, sq_doc_number(incident + 1, 0, 0) - 1);
        r = sq_run(db, st, err);
    }
    return r;
}

static void add_term(fl_buf *b, fl_str term)
{
    fl_buf_addz(b, b->n ? " OR \"" : "\"");
    fl_buf_add(b, term);
    fl_buf_addc(b, '"');
}

int sq_frequency(void *db, const fl_str *terms, size_t n, uint64_t cap, uint64_t *out, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    fl_str counts = {NULL, 0};
    fl_buf b;
    int r = sq_use(q, SQ_FREQUENCY, &st, err);

    if (r)
        return r;
    fl_buf_init(&b, 65536);
    for (size_t i = 0; i < n; i++)
        add_term(&b, terms[i]);
    r = fl_buf_check(&b, "a query", err);
    if (!r) {
        sq_text(q, st, 1, fl_buf_str(&b));
        sq_int(q, st, 2, cap > INT64_MAX ? INT64_MAX : (int64_t)cap);
        r = sq_step(q, st, err);
    }
    if (r > 0) {
        counts = sq_column(st, 0);
        r = sq_column_check(q, err);
    }
    if (!r) {
        memset(out, 0, n * sizeof(*out)); /* no row: none of them stands anywhere */
        if (counts.n == n * sizeof(*out))
            memcpy(out, counts.p, counts.n);
    }
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    fl_buf_dispose(&b);
    return r;
}

int sq_tidy(void *db, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int r = sq_use(db, SQ_TIDY, &st, err);

    return r ? r : sq_run(db, st, err);
}

int sq_search(void *db, const fl_str *terms, size_t n, size_t k, fl_store_hit_fn fn, void *ctx,
              fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    fl_buf b;
    int r = sq_use(q, SQ_SEARCH, &st, err);

    if (r)
        return r;
    fl_buf_init(&b, 65536);
    for (size_t i = 0; i < n; i++)
        add_term(&b, terms[i]);
    r = fl_buf_check(&b, "a query", err);
    if (!r) {
        sq_text(q, st, 1, fl_buf_str(&b));
        sq_int(q, st, 2, k > INT32_MAX ? INT32_MAX : (int64_t)k);
        while ((r = sq_step(q, st, err)) > 0) {
            struct fl_store_hit h = {.incident = sq_doc_incident(sqlite3_column_int64(st, 0)),
                                     .piece = sq_doc_piece(sqlite3_column_int64(st, 0)),
                                     .bm25 = sqlite3_column_double(st, 1)};
            r = fn(ctx, &h, err);
            if (r)
                break;
        }
    }
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    fl_buf_dispose(&b);
    return r;
}
