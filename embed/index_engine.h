#ifndef FL_EMBED_INDEX_ENGINE_H
#define FL_EMBED_INDEX_ENGINE_H
/*
 * Between index.c and FAISS: the one symbol of the shared object, a table of functions.
 *
 * Everything here is plain C types, so that the object needs nothing of the program that loads it,
 * not even its allocator. Functions return 0, or -1 with a reason in `why`, a buffer of
 * FL_ENGINE_WHY bytes. An index of nlist 0 is flat, any other an inverted file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FL_ENGINE_ABI 1
#define FL_ENGINE_WHY 256
#define FL_ENGINE_SYMBOL "fl_index_engine_1"
#define FL_ENGINE_FILE "faultline-faiss.so"

struct fl_index_engine {
    uint32_t abi;
    /* An empty index; *ix is owned by the caller. */
    int (*make)(uint32_t dim, uint32_t nlist, uint32_t nprobe, void **ix, char *why);
    void (*free)(void *ix);
    /* Finds the centroids (deterministic for its input) and the ranges of the 8-bit codes. */
    int (*train)(void *ix, const float *x, size_t n, char *why);
    int (*add)(void *ix, const float *x, const int64_t *ids, size_t n, char *why);
    int (*remove)(void *ix, const int64_t *ids, size_t n, char *why);
    uint64_t (*count)(const void *ix);
    uint64_t (*list_size)(const void *ix, uint32_t list);
    /* Bytes of one vector in a list, its id included. */
    int (*entry_size)(const void *ix, uint32_t *bytes, char *why);

    /* The whole index as FAISS writes it, and back. */
    int (*write)(const void *ix, FILE *to, char *why);
    int (*read)(FILE *from, void **ix, char *why);
    /*
     * In what `write` wrote the lists stand at the end, one after another. What stands between the
     * part that knows no list ("front") and the first list is made by `lists_head`, for the lists
     * named (ascending) out of nlist: bytes written, or those needed when more than cap. front,
     * lists_head and those lists are then again what `read` reads: an index of these lists alone.
     */
    size_t (*lists_head)(uint32_t nlist, uint32_t entry, const uint32_t *lists,
                         const uint64_t *sizes, size_t n, int sparse, void *out, size_t cap);

    /* How many lists `search` is given; as made until set. */
    void (*set_nprobe)(void *ix, uint32_t nprobe);
    /* The nprobe lists nearest to one vector, -1 in places not used. */
    int (*assign)(const void *ix, const float *x, size_t nprobe, int64_t *lists, float *near,
                  char *why);
    /* One query in the lists given, as many as its nprobe, with near as from `assign`. */
    int (*search)(const void *ix, const float *x, size_t k, const int64_t *lists, const float *near,
                  float *scores, int64_t *ids, char *why);
    /* The vectors and ids of a flat index, borrowed. */
    int (*flat)(const void *ix, const float **x, const int64_t **ids, size_t *n, char *why);
};

#endif
