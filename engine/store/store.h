#ifndef FL_STORE_STORE_H
#define FL_STORE_STORE_H
/*
 * The memory of past incidents: DIR/incidents.db, an SQLite database behind struct fl_store_ops.
 *
 * Any number of processes may read and write one folder at once. A handle belongs to one thread at
 * a time. Whatever returned 0 is on the disk: neither a killed process nor a power cut loses it.
 * Every function below that changes something is one transaction, or part of the one that
 * fl_store_begin opened; when it fails, nothing of it (or of that transaction) remains.
 *
 * Callbacks must not call the store they were called from. They return 0 to go on, a negative code
 * (with err set) to fail, a positive number to end well. What they are given is borrowed for the
 * call.
 */
#include "store/incident.h"

typedef struct fl_store fl_store;

/* What the caller knows better. Each may be NULL. */
struct fl_store_hooks {
    void *ctx;
    /* Appends the shape key of an incident: hex digits, the same for incidents that differ only in
     * numbers, names and times. Nothing appended, or no hook: never a duplicate, unless the
     * incident carries a shape. */
    void (*shape)(void *ctx, const struct fl_incident *inc, fl_buf *out);
    /* Appends the words of search document number `piece` of an incident, as fl_store_words writes
     * them; false: there are no more. Default: each evidence line, then title and explanation. */
    bool (*text)(void *ctx, const struct fl_incident *inc, uint32_t piece, fl_buf *out);
    int64_t (*now)(void *ctx); /* seconds since 1970; default: the clock */
};

struct fl_store_opts {
    bool read_only;  /* the folder need not be writable; a missing database is FL_ENOTFOUND */
    int busy_ms;     /* how long to wait for another writer; 0: 10 s */
    int64_t fs_type; /* taken for statfs's f_type, for tests; 0: asked of the system */
    struct fl_store_hooks hooks; /* copied */
};

/* `o` may be NULL. Creates folder and database unless read_only; brings an older schema up to date;
 * refuses a newer one (FL_EBACKEND). */
int fl_store_open(const char *dir, const struct fl_store_opts *o, fl_store **out, fl_err *err);
void fl_store_close(fl_store *s); /* an open transaction is undone */
/* What a person should know about how it was opened (a network file system, a folder that cannot be
 * written), or NULL. */
const char *fl_store_note(const fl_store *s);
const char *fl_store_path(const fl_store *s);

/* Several changes as one. Not nested. When one of them fails, fl_store_commit undoes all and
 * returns FL_EBACKEND. */
int fl_store_begin(fl_store *s, fl_err *err);
int fl_store_commit(fl_store *s, fl_err *err);
void fl_store_rollback(fl_store *s); /* nothing open: does nothing */

/* --- incidents --- */

struct fl_store_added {
    int64_t number; /* stands for the incident in searches; never used again */
    char id[FL_INCIDENT_MAX_WORD + 1];
    bool duplicate; /* shape and cause were there: counted on the incident named here */
};

/* Stores an incident; with an empty id it gets one. created and updated are set when empty, shape
 * by the hook when empty. FL_EUSAGE when the id is taken by another one. `out` may be NULL. */
int fl_store_add(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                 fl_err *err);
/* Replaces what is stored under inc->id: all but `created`, and `count` when it is 0. The shape
 * comes from the hook where there is one. Vectors of the old text are dropped. If shape and cause
 * are now those of another incident, this one is counted there and removed. FL_ENOTFOUND. */
int fl_store_update(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                    fl_err *err);
int fl_store_remove(fl_store *s, fl_str id, fl_err *err); /* FL_ENOTFOUND */
/* Texts in the arena. FL_ENOTFOUND. `number` may be NULL. */
int fl_store_get(fl_store *s, fl_str id, fl_arena *a, struct fl_incident *out, int64_t *number,
                 fl_err *err);
int fl_store_get_number(fl_store *s, int64_t number, fl_arena *a, struct fl_incident *out,
                        fl_err *err);

/* Empty texts and -1 let everything through. */
struct fl_store_filter {
    fl_str cause;     /* an id, or "area.*" */
    int kind, origin; /* of the enums, or -1 */
    fl_str text;      /* somewhere in id, title, evidence, explanation, fix or source; ASCII case is
                       * ignored */
    size_t limit;     /* 0: none */
};
#define FL_STORE_ALL ((struct fl_store_filter){.kind = -1, .origin = -1})
typedef int (*fl_store_list_fn)(void *ctx, int64_t number, const struct fl_incident *inc,
                                fl_err *err);
/* In the order of ids, as of one moment. */
int fl_store_list(fl_store *s, const struct fl_store_filter *f, fl_store_list_fn fn, void *ctx,
                  fl_err *err);

struct fl_store_counts {
    uint64_t kinds[3], origins[4]; /* incidents, by the enums */
    uint64_t incidents, docs, vectors, tombstones;
};
int fl_store_count(fl_store *s, struct fl_store_counts *out, fl_err *err);

/* --- many at once --- */

enum fl_store_clash {                  /* an id that is there already with another text */
                      FL_CLASH_FAIL,   /* an error with file and line */
                      FL_CLASH_KEEP,   /* the stored one stays */
                      FL_CLASH_REPLACE /* the read one wins */
};
struct fl_store_import {
    enum fl_store_clash clash;
    /* The file or folder is the whole shipped corpus: each row has origin corpus, replaces the row
     * of its id unless a person confirmed or corrected that, and shipped rows that are no longer in
     * it go. */
    bool corpus;
};
struct fl_store_imported {
    uint64_t read, added, replaced, kept, same, duplicates, removed;
};
/* All in one transaction. `out` may be NULL. */
int fl_store_import(fl_store *s, const char *path, const struct fl_store_import *o,
                    struct fl_store_imported *out, fl_err *err);
int fl_store_import_text(fl_store *s, fl_str text, const char *name,
                         const struct fl_store_import *o, struct fl_store_imported *out,
                         fl_err *err);
/* Writes YAML through `out` in pieces, in the order of ids. Importing it into an empty store and
 * exporting that gives the same bytes. `map` as in fl_incident_write, or NULL. */
typedef int (*fl_store_sink_fn)(void *ctx, fl_str bytes, fl_err *err);
int fl_store_export(fl_store *s, const struct fl_store_filter *f, fl_incident_map_fn map,
                    void *map_ctx, fl_store_sink_fn out, void *ctx, fl_err *err);

/* Of a damaged store: writes what can still be read, as fl_store_export does, in the order of
 * numbers. `lost` counts those that were there and cannot be read. */
struct fl_store_salvaged {
    uint64_t saved, lost;
};
int fl_store_salvage(fl_store *s, fl_store_sink_fn out, void *ctx, struct fl_store_salvaged *done,
                     fl_err *err);

/* --- vectors --- */

enum fl_vector_form { FL_VECTOR_INT8, FL_VECTOR_FLOAT }; /* float: 4 bytes, this machine's order */
struct fl_store_model {
    fl_str name; /* and version: vectors of two models are never mixed */
    uint32_t dim;
    enum fl_vector_form form;
};
struct fl_store_vector {
    int64_t number; /* grows, is never used again; not looked at when writing */
    int64_t incident;
    uint32_t piece;   /* as the caller counts them */
    float scale;      /* what int8 is multiplied with */
    const void *data; /* dim elements */
};
/* Puts the vectors of one incident in the place of all it had for this model. FL_EUSAGE when the
 * model is known with another dimension or form, FL_ENOTFOUND without the incident. */
int fl_store_put_vectors(fl_store *s, const struct fl_store_model *m, int64_t incident,
                         const struct fl_store_vector *v, size_t n, fl_err *err);
typedef int (*fl_store_vector_fn)(void *ctx, const struct fl_store_vector *v, fl_err *err);
/* Those with a number in (after, upto], in the order of numbers; upto 0: all. Reads in batches, so
 * no writer waits for a long callback: take a mark first, read up to it, then what the mark's
 * tombstones say has gone in between. Vectors whose size is wrong are left out and counted in
 * *damaged (may be NULL); a model that was never stored has none; one stored with another dimension
 * or form is FL_EUSAGE. */
int fl_store_vectors(fl_store *s, const struct fl_store_model *m, int64_t after, int64_t upto,
                     fl_store_vector_fn fn, void *ctx, uint64_t *damaged, fl_err *err);
/* Incident and piece of a vector, without its data: FL_ENOTFOUND when it was removed. */
int fl_store_vector_of(fl_store *s, int64_t number, int64_t *incident, uint32_t *piece,
                       fl_err *err);
/* The state of a model's vectors at one moment. */
struct fl_store_mark {
    int64_t last;      /* highest vector number ever given to any model */
    int64_t tombstone; /* the last removal */
    uint64_t vectors;  /* of this model */
};
int fl_store_mark(fl_store *s, fl_str model, struct fl_store_mark *out, fl_err *err);
/* Numbers of the model's vectors removed after `tombstone`, in the order of removal. */
typedef int (*fl_store_number_fn)(void *ctx, int64_t number, fl_err *err);
int fl_store_tombstones(fl_store *s, fl_str model, int64_t tombstone, fl_store_number_fn fn,
                        void *ctx, fl_err *err);
/* Drops tombstones up to this one, when no index is older. */
int fl_store_forget(fl_store *s, fl_str model, int64_t tombstone, fl_err *err);
/* Incidents that have no vector of this model, in the order of numbers, at most `limit` (0: all).
 */
int fl_store_missing(fl_store *s, fl_str model, size_t limit, fl_store_number_fn fn, void *ctx,
                     fl_err *err);
/* The highest incident number and removal ever given: while both stay, no incident has come and no
 * vector has gone. Cheap. */
int fl_store_last(fl_store *s, int64_t *incident, int64_t *tombstone, fl_err *err);
/* Removes a model with its vectors. Not known: nothing to do. */
int fl_store_drop_model(fl_store *s, fl_str model, fl_err *err);
typedef int (*fl_store_model_fn)(void *ctx, const struct fl_store_model *m, uint64_t vectors,
                                 fl_err *err);
int fl_store_models(fl_store *s, fl_store_model_fn fn, void *ctx, fl_err *err);

/* --- search by words --- */

/* Appends the search words of a text, lower case, separated by blanks. Words are runs of letters,
 * digits, _ and bytes above 127; a word of several parts (CUDNN_STATUS_BAD_PARAM, RuntimeError) is
 * followed by its parts. */
void fl_store_words(fl_str text, fl_buf *out);

struct fl_store_query {
    const fl_str *terms; /* words as fl_store_words writes them; others are not found; any bytes */
    size_t n;
    size_t rarest; /* search only so many of the rarest; 0: 5 */
    uint64_t most; /* and no term that stands in more documents than this; 0: 4,096, and 20,000
                    * when there is no rarer one */
    size_t k;      /* results; 0: 50 */
};
struct fl_store_hit {
    int64_t incident;
    uint32_t piece; /* number of the search document, see hooks.text */
    double bm25;    /* higher is better */
};
typedef int (*fl_store_hit_fn)(void *ctx, const struct fl_store_hit *h, fl_err *err);
/* Documents that hold at least one of the terms, best first, equal ones in the order stored. No
 * term found: no result. */
int fl_store_search(fl_store *s, const struct fl_store_query *q, fl_store_hit_fn fn, void *ctx,
                    fl_err *err);
/* In how many documents a term stands, counted up to `cap`. */
int fl_store_frequency(fl_store *s, fl_str term, uint64_t cap, uint64_t *out, fl_err *err);
/* Makes the search documents anew, after hooks.text has changed. */
int fl_store_rebuild_words(fl_store *s, fl_err *err);

/* --- small facts --- */

/* The value in the arena; FL_ENOTFOUND. */
int fl_store_meta_get(fl_store *s, const char *key, fl_arena *a, fl_str *out, fl_err *err);
int fl_store_meta_set(fl_store *s, const char *key, fl_str value, fl_err *err);

/* --- health --- */

/* Reads everything: pages, rows, what points to what, the words. Each finding is one sentence.
 * Number of findings, or a negative code. */
typedef void (*fl_store_say_fn)(void *ctx, const char *text);
int fl_store_verify(fl_store *s, fl_store_say_fn say, void *ctx, fl_err *err);

/* --- locks on files beside the database --- */

struct fl_store_lock {
    int fd;        /* -1: none */
    bool unlocked; /* the file system has no locks; the file is open all the same */
};
/* Opens a file and locks it as long as the handle is open, for readers (shared) or for one
 * (exclusive, which also creates it). 0; FL_EBACKEND when somebody holds it and `wait` is false;
 * FL_ENOTFOUND when a shared one is not there. The system frees the locks of a process that dies.
 */
int fl_store_lock(const char *path, bool exclusive, bool wait, struct fl_store_lock *out,
                  fl_err *err);
void fl_store_unlock(struct fl_store_lock *l); /* closes; -1 is fine */

#endif
