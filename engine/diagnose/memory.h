#ifndef FL_DIAGNOSE_MEMORY_H
#define FL_DIAGNOSE_MEMORY_H
/*
 * The memory of past incidents as the pipeline uses it: store, embedding and index wired together.
 *
 *   memory.c      opening, the shipped corpus
 *   space.c       the vectors of one model: those that are missing, the index in force
 *   remote.c      the second model: an endpoint's
 *   hide.c        names and secrets to placeholders, before anything is sent
 *   pieces.c      a job as pieces to look up
 *   search.c      pieces -> vectors and words -> incidents, fused
 *   reindex.c     a new generation of the index
 *   evidence.c    the lines of a job that an incident is known by
 *   incidents.c   what people do with incidents
 *   doctor.c      what is there and what fits together
 */
#include "base/json.h"
#include "base/map.h"
#include "diagnose/page.h"
#include "embed/embed.h"
#include "embed/index.h"
#include "store/store.h"

#define FL_INDEX_FROM 8000 /* vectors; fewer are compared in less time than FAISS takes to load */
#define FL_PIECES 60
#define FL_PIECE_TEXT 400

struct fl_piece {
    fl_str text; /* as it is looked up */
    fl_str raw;  /* what that was made of */
    fl_str line; /* as it stands in the log; empty: words of the timeline */
    const char *file;
    uint64_t number;
    double weight;
};

struct fl_pieces {
    fl_arena arena;
    struct fl_piece v[FL_PIECES];
    size_t n;
    const struct fl_job *job; /* whose names are in them; NULL: a text */
    size_t late; /* that sound like trouble after the last step, or are a finding of the timeline */
};

/* Pieces of a diagnosed job (made with fl_diagnose_opts.digest). Rules of failures play no part. */
int fl_pieces_of_job(const fl_engine *e, struct fl_diagnosis *d, struct fl_pieces *out,
                     fl_err *err);
/* Each line of a text. */
int fl_pieces_of_text(fl_str text, struct fl_pieces *out, fl_err *err);
void fl_pieces_dispose(struct fl_pieces *p);

/* All vectors of the model in memory, for exact search. */
struct fl_vectors {
    float *v;
    int64_t *id; /* vector numbers */
    struct fl_doc {
        int64_t incident;
        uint32_t piece;
    } * doc;
    size_t n, cap, id_cap, doc_cap;
};

/* The vectors of one model. A memory has the local model's, and may have those of an endpoint: they
 * are never compared with each other. */
struct fl_space {
    struct fl_embedder embedder; /* dim 0: not known yet */
    const char *keys;            /* before the names of its small facts */
    const char *files;           /* before the number of an index file */
    fl_index *index;             /* NULL: exact search */
    struct fl_store_lock index_lock;
    struct fl_vectors fresh; /* what is not in the index */
    bool loaded;             /* index and fresh */
    bool no_index;           /* it failed: not opened again */
};

struct fl_remote; /* an endpoint that makes vectors */

struct fl_memory {
    const fl_engine *engine;
    char dir[4096];
    fl_store *store;
    bool read_only;
    fl_tokenizer *tokens;
    struct fl_space local;
    struct fl_remote *remote; /* NULL: none is configured, or it must not be asked */
    char note[1200];
};
/* Adds a sentence to the note. */
__attribute__((format(printf, 2, 3))) void fl_memory_say(struct fl_memory *m, const char *fmt, ...);

/* The lines of a job that an incident of `cause` is known by, in the arena: never none unless the
 * job has no line. *from as fl_past_added.lines_from. */
int fl_evidence_of(const fl_engine *e, struct fl_diagnosis *d, const char *cause, fl_arena *a,
                   const fl_str **lines, size_t *n, const char **from, fl_err *err);

/* Parts of opening, for doctor. The data folder as fl_memory_opts.home says. */
int fl_memory_home(const char *home, char *out, size_t cap, fl_err *err);
int fl_memory_open_model(struct fl_memory *m, const char *data, fl_err *err);
int fl_memory_hash_corpus(const char *dir, char hash[33], fl_err *err);

/* The array "neighbours". */
void fl_neighbours_put(fl_json *root, const struct fl_neighbour *v, size_t n);

/* ---- space.c ---- */

/* Numbers as the store tells them: zeroed at first, `v` freed with fl_free. */
struct fl_numbers {
    int64_t *v;
    size_t n, cap;
};
int fl_numbers_add(void *numbers, int64_t number, fl_err *err); /* an fl_store_number_fn */

/* Embeds, with the local model, what has no vector of it yet. */
int fl_memory_embed_missing(struct fl_memory *m, uint64_t *embedded,
                            int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                            fl_err *err);
/* The texts of an incident that are looked up, before they are normalised: each line of evidence,
 * then what it means. Number of them, at most FL_INCIDENT_TEXTS. */
#define FL_INCIDENT_TEXTS 40
size_t fl_incident_texts(const struct fl_incident *inc, fl_arena *a, fl_str *out);
/* Makes rows of vectors out of floats; `bytes` has n * dim of room, `v` n. */
void fl_space_rows(uint32_t dim, int64_t incident, const float *floats, size_t n, int8_t *bytes,
                   struct fl_store_vector *v);
struct fl_store_model fl_space_model(const struct fl_space *sp);
/* Path of the index file of a generation. */
void fl_space_index_path(const struct fl_memory *m, const struct fl_space *sp, uint64_t generation,
                         char *out, size_t cap);
/* A small fact of the space; 0: none. */
int64_t fl_space_number(struct fl_memory *m, const struct fl_space *sp, const char *key);
int fl_space_set_number(struct fl_memory *m, const struct fl_space *sp, const char *key, int64_t n,
                        fl_err *err);
uint64_t fl_space_generation(struct fl_memory *m, const struct fl_space *sp); /* 0: none */
/* Opens the index in force, and what is newer than it. */
int fl_space_load(struct fl_memory *m, struct fl_space *sp, fl_err *err);
void fl_space_unload(struct fl_space *sp);
void fl_memory_unload(struct fl_memory *m); /* all spaces */

#endif
