#ifndef FL_EMBED_INDEX_H
#define FL_EMBED_INDEX_H
/*
 * The vector index: a file that finds the nearest of many vectors quickly, and the exact scan that
 * says what it should have found.
 *
 * Vectors are float, of length one, compared by inner product. An id is the caller's number for a
 * vector (a row of the store), not negative and not twice in one index. The file is derived: it
 * holds no vector that the store does not hold, and is made anew when anything is wrong with it.
 *
 * The work is FAISS's, in a shared object of its own that is loaded when an index is first opened
 * or made (index_engine.h). Where that object is missing these functions fail with FL_EBACKEND and
 * fl_exact_search() remains.
 */
#include "base/err.h"
#include "base/str.h"

struct fl_index_head {
    char model[64];      /* NUL-terminated name of the model that made the vectors */
    uint32_t dim;        /* 1 to FL_INDEX_MAX_DIM */
    uint64_t generation; /* of the store's choosing */
    uint64_t count;      /* vectors; the source must yield exactly so many */
    int64_t last_id;     /* the largest id in it; what is newer is the caller's to scan */
};

#define FL_INDEX_MAX_DIM 4096
#define FL_INDEX_MAX_K 1024

/*
 * Yields vectors in batches. `next` fills at most `cap` ids and cap*dim floats and sets *n, 0 at
 * the end. `rewind` starts over: vectors are read twice when the index must be trained, and both
 * times must give the same. Both return 0 or a negative code with `err` set.
 */
struct fl_index_source {
    int (*next)(void *ctx, int64_t *ids, float *vectors, size_t cap, size_t *n, fl_err *err);
    int (*rewind)(void *ctx, fl_err *err);
    void *ctx;
};

/* Told now and then; may be NULL. `done` of `total` units, `what` is "reading", "training",
 * "adding" or "writing". Anything but 0 stops the build with FL_ELIMIT. */
typedef int (*fl_index_progress)(void *ctx, const char *what, uint64_t done, uint64_t total);

/*
 * Writes a new index beside `path`, syncs it and renames it over `path`, mode 0600. When that fails
 * or the process is killed, `path` is as it was; a killed build may leave "PATH.tmp-XXXXXX", which
 * nothing reads and the next build for the same path removes when it is an hour old. The same
 * vectors in the same order give the same file, on the same machine. Memory: about 270 bytes a
 * vector of 256 dimensions, and the sample of at most 82,000 vectors. FL_EIO: the disk.
 *
 * Training uses all processors through OpenMP (OMP_NUM_THREADS limits it; on a busy machine
 * OMP_WAIT_POLICY=passive). OpenMP does not survive fork(): do not build in a process that was
 * forked from one that has built before. Searching starts no threads.
 */
int fl_index_build(const struct fl_index_head *head, const struct fl_index_source *source,
                   fl_index_progress progress, void *progress_ctx, const char *path, fl_err *err);

/*
 * Makes the index at `path` from the one at `from` (may be the same path): without the ids in
 * `removed`, with the vectors of `source`, with nothing trained anew. head->count is what must come
 * out. FL_ELIMIT: the result would be of another kind or more than twice what the old one was
 * trained for; build it in full. Other failures as of open and build.
 */
int fl_index_update(const char *from, const struct fl_index_head *from_head,
                    const struct fl_index_head *head, const int64_t *removed, size_t removed_count,
                    const struct fl_index_source *source, fl_index_progress progress,
                    void *progress_ctx, const char *path, fl_err *err);

/* Loads the shared object with FAISS, for who wants to know. FL_EBACKEND with the reason. */
int fl_index_available(fl_err *err);

typedef struct fl_index fl_index;

/* What is asked for in fl_index_open(). Only model and dim are always compared. */
enum fl_index_open_flags {
    FL_INDEX_ANY_GENERATION = 1 /* the caller looks at fl_index_head() itself */
};

/*
 * Opens an index. Refused, each with a sentence of its own: another model or dimension (FL_ERULE),
 * another generation, count or last id (FL_ENOTFOUND), no such file (FL_ENOTFOUND), a damaged or
 * cut file (FL_EINPUT), one of another format version (FL_EINPUT), no FAISS (FL_EBACKEND).
 *
 * Only the head, the table of lists and the centroids are read and checked here. The lists of
 * vectors are read and checked when a search needs them, so damage in one of them is an error of
 * that search. The file stays open: replacing or removing it does not disturb this reader.
 */
int fl_index_open(const char *path, const struct fl_index_head *expect, int flags, fl_index **out,
                  fl_err *err);
void fl_index_free(fl_index *ix);
const struct fl_index_head *fl_index_head(const fl_index *ix);
/* "flat" or "ivf 2048/12" (lists/probed), borrowed. */
const char *fl_index_kind(const fl_index *ix);
/* Reads and checks every byte; for doctor and tests. FL_EINPUT: damaged. */
int fl_index_verify(const fl_index *ix, fl_err *err);

/*
 * The k nearest of each of nq queries (nq*dim floats), best first, into ids[nq*k] and
 * scores[nq*k]. Places without a vector have id -1 and score 0. From several threads at once is
 * allowed, and then one after another. Lists once read are kept, up to 256 MB.
 */
int fl_index_search(const fl_index *ix, const float *queries, size_t nq, size_t k, int64_t *ids,
                    float *scores, fl_err *err);

/*
 * The same over an array of `count` vectors, by comparing all: the truth that the index is measured
 * against, what searches when there is none, and what scans the newest vectors that are in no index
 * yet. `ids` NULL: the vector's place is its id. Equal scores are ordered by id. The same bits on
 * every machine. About 2 ms for ten queries over 10,000 vectors of 256 dimensions. Never fails for
 * want of anything but memory or sense.
 */
int fl_exact_search(const float *vectors, const int64_t *vector_ids, size_t count, uint32_t dim,
                    const float *queries, size_t nq, size_t k, int64_t *ids, float *scores,
                    fl_err *err);

#endif
