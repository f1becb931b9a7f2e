#ifndef FL_STORE_SQLITE_H
#define FL_STORE_SQLITE_H
/*
 * What the files of the SQLite store share. Nothing outside the room sees it.
 */
#include <sqlite3.h>
#include <time.h>

#include "store/parts.h"

#define SQ_APPLICATION 0x464c544c /* "FLTL": tells our file from others */
#define SQ_SCHEMA 1               /* the newest version this program knows */

/* All statements stand in one table in sqlite.c; prepared on first use and kept. */
enum sq_sql {
    SQ_BEGIN_READ,
    SQ_BEGIN_WRITE,
    SQ_COMMIT,
    SQ_ROLLBACK,
    SQ_FIND,
    SQ_SAME,
    SQ_READ,
    SQ_READ_EVIDENCE,
    SQ_INSERT,
    SQ_INSERT_EVIDENCE,
    SQ_REPLACE,
    SQ_DROP_EVIDENCE,
    SQ_COUNT_ON,
    SQ_REMOVE,
    SQ_LIST,
    SQ_COUNT_KINDS,
    SQ_COUNT_REST,
    SQ_ADD_DOC,
    SQ_ADD_WORDS,
    SQ_DROP_WORDS,
    SQ_DROP_DOCS,
    SQ_FREQUENCY,
    SQ_TIDY,
    SQ_SEARCH,
    SQ_MODEL,
    SQ_ADD_MODEL,
    SQ_DROP_MODEL,
    SQ_MODELS,
    SQ_ADD_VECTOR,
    SQ_DROP_VECTORS,
    SQ_VECTORS,
    SQ_VECTOR_OF,
    SQ_MARK,
    SQ_TOMBSTONES,
    SQ_FORGET,
    SQ_MISSING,
    SQ_META_GET,
    SQ_META_SET,
    SQ_STATEMENTS
};

struct sq {
    sqlite3 *db;
    sqlite3_stmt *st[SQ_STATEMENTS];
    int bad; /* the first bind that failed, until the next step */
    bool read_only;
    int busy_ms;           /* how long to wait for a lock */
    struct timespec since; /* when the present wait began */
    char *path;
};

/* The statement, reset and without bindings. */
int sq_use(struct sq *q, enum sq_sql which, sqlite3_stmt **out, fl_err *err);
void sq_int(struct sq *q, sqlite3_stmt *st, int at, int64_t v);
void sq_text(struct sq *q, sqlite3_stmt *st, int at, fl_str s); /* borrowed until the step */
void sq_blob(struct sq *q, sqlite3_stmt *st, int at, fl_str s); /* never NULL, may be empty */
/* 1: a row; 0: done; negative: failed. Resets when there is no row. */
int sq_step(struct sq *q, sqlite3_stmt *st, fl_err *err);
/* A statement without rows. */
int sq_run(struct sq *q, sqlite3_stmt *st, fl_err *err);
/* Bytes of a column, borrowed until the next step. */
fl_str sq_column(sqlite3_stmt *st, int at);
/* FL_ENOMEM when SQLite could not hand a column over for lack of memory. */
int sq_column_check(struct sq *q, fl_err *err);
/* SQLite's code as an error that says what to do. */
int sq_fail(struct sq *q, int rc, fl_err *err);
/* SQL without results, for the schema. */
int sq_exec(struct sq *q, const char *sql, fl_err *err);
/* The first number that a query gives, or 0. */
int sq_number(struct sq *q, const char *sql, int64_t *out, fl_err *err);

/* A search document's number holds its incident, its piece (below 65,536) and its length. */
int64_t sq_doc_number(int64_t incident, uint32_t piece, size_t words);
int64_t sq_doc_incident(int64_t number);
uint32_t sq_doc_piece(int64_t number);
/* Gives FTS5 the functions fl_score(words), BM25, and fl_counts(words, cap): in how many documents
 * each phrase of the query stands, counted up to `cap`, as a blob of int64_t. */
int sq_score_start(struct sq *q, fl_err *err);

/* Steps from a schema version to the next; the last one leads to SQ_SCHEMA. */
struct sq_migration {
    int to;
    const char *sql;
};
/* Creates or migrates, in one transaction; refuses foreign and newer databases. */
int sq_schema(struct sq *q, const struct sq_migration *m, size_t n, int newest, fl_err *err);
extern const struct sq_migration sq_migrations[];
extern const size_t sq_nmigrations;

int sq_begin(void *db, enum fl_store_tx kind, fl_err *err);
int sq_commit(void *db, fl_err *err);
void sq_rollback(void *db);
int sq_verify(void *db, fl_store_say_fn say, void *ctx, fl_err *err);

int sq_find(void *db, fl_str id, int64_t *number, fl_err *err);
int sq_same(void *db, fl_str shape, fl_str cause, int64_t *number, fl_err *err);
int sq_read(void *db, int64_t number, fl_arena *a, struct fl_incident *out, fl_err *err);
int sq_insert(void *db, const struct fl_incident *inc, int64_t *number, fl_err *err);
int sq_replace(void *db, int64_t number, const struct fl_incident *inc, fl_err *err);
int sq_count_on(void *db, int64_t number, uint64_t more, fl_str now, fl_err *err);
int sq_remove(void *db, int64_t number, fl_err *err);
int sq_list(void *db, const struct fl_store_filter *f, fl_store_number_fn fn, void *ctx,
            fl_err *err);
int sq_highest(void *db, int64_t *number, fl_err *err);
int sq_counts(void *db, struct fl_store_counts *out, fl_err *err);
int sq_meta_get(void *db, const char *key, fl_arena *a, fl_str *out, fl_err *err);
int sq_meta_set(void *db, const char *key, fl_str value, fl_err *err);

int sq_add_doc(void *db, int64_t incident, uint32_t piece, fl_str words, fl_err *err);
int sq_drop_docs(void *db, int64_t incident, fl_err *err);
int sq_frequency(void *db, const fl_str *terms, size_t n, uint64_t cap, uint64_t *out, fl_err *err);
int sq_tidy(void *db, fl_err *err);
int sq_search(void *db, const fl_str *terms, size_t n, size_t k, fl_store_hit_fn fn, void *ctx,
              fl_err *err);

int sq_model(void *db, fl_str name, int64_t *number, uint32_t *dim, enum fl_vector_form *form,
             fl_err *err);
int sq_add_model(void *db, const struct fl_store_model *m, int64_t *number, fl_err *err);
int sq_drop_model(void *db, int64_t model, fl_err *err);
int sq_models(void *db, fl_store_model_fn fn, void *ctx, fl_err *err);
int sq_add_vector(void *db, int64_t model, const struct fl_store_vector *v, size_t bytes,
                  fl_err *err);
int sq_drop_vectors(void *db, int64_t model, int64_t incident, fl_err *err);
int sq_vectors(void *db, int64_t model, int64_t after, int64_t upto, size_t limit, size_t bytes,
               fl_store_vector_fn fn, void *ctx, int64_t *next, uint64_t *damaged, fl_err *err);
int sq_vector_of(void *db, int64_t number, int64_t *incident, uint32_t *piece, fl_err *err);
int sq_mark(void *db, int64_t model, struct fl_store_mark *out, fl_err *err);
int sq_tombstones(void *db, int64_t model, int64_t after, fl_store_number_fn fn, void *ctx,
                  fl_err *err);
int sq_forget(void *db, int64_t model, int64_t upto, fl_err *err);
int sq_missing(void *db, int64_t model, size_t limit, fl_store_number_fn fn, void *ctx,
               fl_err *err);

#endif
