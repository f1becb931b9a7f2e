#ifndef FL_DIAGNOSE_MEMORY_H
#define FL_DIAGNOSE_MEMORY_H
/*
 * The memory of past incidents as the pipeline uses it: store, embedding and index wired together.
 *
 *   memory.c      opening, the shipped corpus, vectors that are missing, the index in force
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
    fl_str line; /* as it stands in the log; empty: words of the timeline */
    const char *file;
    uint64_t number;
    double weight;
};

struct fl_pieces {
    fl_arena arena;
    struct fl_piece v[FL_PIECES];
    size_t n;
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

struct fl_memory {
    const fl_engine *engine;
    char dir[4096];
    fl_store *store;
    bool read_only;
    fl_tokenizer *tokens;
    struct fl_embedder embedder;
    fl_index *index; /* NULL: exact search */
    struct fl_store_lock index_lock;
    struct fl_vectors fresh; /* what is not in the index */
    bool loaded;             /* index and fresh */
    bool no_index;           /* it failed: not opened again */
    char note[600];
};

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
/* Embeds what has no vector of the model yet. */
int fl_memory_embed_missing(struct fl_memory *m, uint64_t *embedded,
                            int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                            fl_err *err);
struct fl_store_model fl_memory_model(const struct fl_memory *m);
/* Path of the index file of a generation. */
void fl_memory_index_path(const struct fl_memory *m, uint64_t generation, char *out, size_t cap);
uint64_t fl_memory_generation(struct fl_memory *m);             /* in force; 0: none */
int64_t fl_memory_number(struct fl_memory *m, const char *key); /* a small fact; 0: none */
/* Opens the index in force, and what is newer than it. */
int fl_memory_load(struct fl_memory *m, fl_err *err);
void fl_memory_unload(struct fl_memory *m);

#endif
