#ifndef FL_STORE_PARTS_H
#define FL_STORE_PARTS_H
/*
 * What a database must be able to do to be the store: the one table between the rules of store.h
 * and SQL. SQLite is the first that fills it; a server shared by many machines can be the second.
 *
 * Checking, ids, duplicates, the choice of terms and the order of the steps are decided above it,
 * once. Below it each function is a few statements. All of them are called inside a transaction
 * that the caller opened with `begin`, except those marked (any).
 */
#include "store/store.h"

enum fl_store_tx { FL_TX_READ, FL_TX_WRITE };

struct fl_store_ops {
    void (*close)(void *db);                                    /* (any) */
    int (*begin)(void *db, enum fl_store_tx kind, fl_err *err); /* (any) */
    /* On failure of `commit` the transaction is undone. */
    int (*commit)(void *db, fl_err *err);
    void (*rollback)(void *db);

    /* Rows of incidents. `find` and `same` give 1 and the number, or 0. */
    int (*find)(void *db, fl_str id, int64_t *number, fl_err *err);
    int (*same)(void *db, fl_str shape, fl_str cause, int64_t *number, fl_err *err);
    int (*read)(void *db, int64_t number, fl_arena *a, struct fl_incident *out, fl_err *err);
    int (*insert)(void *db, const struct fl_incident *inc, int64_t *number, fl_err *err);
    int (*replace)(void *db, int64_t number, const struct fl_incident *inc, fl_err *err);
    int (*count_on)(void *db, int64_t number, uint64_t more, fl_str now, fl_err *err);
    int (*remove)(void *db, int64_t number, fl_err *err);
    /* Numbers and nothing else, in the order of ids; cause may end in ".*". */
    int (*list)(void *db, const struct fl_store_filter *f, fl_store_number_fn fn, void *ctx,
                fl_err *err);
    int (*highest)(void *db, int64_t *number, fl_err *err); /* ever given; 0: none */
    int (*counts)(void *db, struct fl_store_counts *out, fl_err *err);

    /* Search documents. */
    int (*add_doc)(void *db, int64_t incident, uint32_t piece, fl_str words, fl_err *err);
    int (*drop_docs)(void *db, int64_t incident, fl_err *err);
    /* In how many documents each of the terms stands, counted up to `cap`. */
    int (*frequency)(void *db, const fl_str *terms, size_t n, uint64_t cap, uint64_t *out,
                     fl_err *err);
    int (*tidy)(void *db, fl_err *err); /* after many changes: makes the words quick to search */
    int (*search)(void *db, const fl_str *terms, size_t n, size_t k, fl_store_hit_fn fn, void *ctx,
                  fl_err *err);

    /* Vectors. `model` gives 1 and what is known of the model, or 0. */
    int (*model)(void *db, fl_str name, int64_t *number, uint32_t *dim, enum fl_vector_form *form,
                 fl_err *err);
    int (*add_model)(void *db, const struct fl_store_model *m, int64_t *number, fl_err *err);
    int (*drop_model)(void *db, int64_t model, fl_err *err);
    int (*models)(void *db, fl_store_model_fn fn, void *ctx, fl_err *err);
    int (*add_vector)(void *db, int64_t model, const struct fl_store_vector *v, size_t bytes,
                      fl_err *err);
    int (*drop_vectors)(void *db, int64_t model, int64_t incident, fl_err *err); /* model 0: all */
    /* At most `limit` of them; *next is the number to go on after, 0 when there are no more. */
    int (*vectors)(void *db, int64_t model, int64_t after, int64_t upto, size_t limit, size_t bytes,
                   fl_store_vector_fn fn, void *ctx, int64_t *next, uint64_t *damaged, fl_err *err);
    int (*vector_of)(void *db, int64_t number, int64_t *incident, uint32_t *piece, fl_err *err);
    int (*mark)(void *db, int64_t model, struct fl_store_mark *out, fl_err *err);
    int (*tombstones)(void *db, int64_t model, int64_t after, fl_store_number_fn fn, void *ctx,
                      fl_err *err);
    int (*forget)(void *db, int64_t model, int64_t upto, fl_err *err);
    int (*missing)(void *db, int64_t model, size_t limit, fl_store_number_fn fn, void *ctx,
                   fl_err *err);

    /* Small facts: 1 and the value in the arena, or 0. */
    int (*meta_get)(void *db, const char *key, fl_arena *a, fl_str *out, fl_err *err);
    int (*meta_set)(void *db, const char *key, fl_str value, fl_err *err);

    int (*verify)(void *db, fl_store_say_fn say, void *ctx, fl_err *err); /* (any) */
};

struct fl_store {
    const struct fl_store_ops *ops;
    void *db;
    struct fl_store_hooks hooks;
    bool read_only;
    bool open;   /* a transaction of the caller */
    bool failed; /* something in it failed */
    char *path, *note;
};

/* SQLite. `note` gets a text of fl_malloc, or stays NULL. */
int fl_store_sqlite(const char *path, const struct fl_store_opts *o,
                    const struct fl_store_ops **ops, void **db, char **note, fl_err *err);

/* A transaction of one call, inside that of the caller where there is one. */
int fl_store_enter(fl_store *s, enum fl_store_tx kind, fl_err *err);
/* Ends it: commits when r == 0 (or positive), else undoes. Returns r, or the commit's failure. */
int fl_store_leave(fl_store *s, enum fl_store_tx kind, int r, fl_err *err);
/* The steps of add and update, inside a transaction; the incident is complete and checked. */
int fl_store_insert_in(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                       fl_err *err);
int fl_store_replace_in(fl_store *s, int64_t number, const struct fl_incident *inc,
                        struct fl_store_added *out, fl_err *err);
int fl_store_remove_in(fl_store *s, int64_t number, fl_err *err);
int fl_store_docs_in(fl_store *s, int64_t number, const struct fl_incident *inc, fl_err *err);
/* Sets what is empty: shape, id, times. Texts that it makes live in the arena. */
int fl_store_complete(fl_store *s, struct fl_incident *inc, fl_arena *a, fl_err *err);

#endif
