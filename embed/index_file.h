#ifndef FL_EMBED_INDEX_FILE_H
#define FL_EMBED_INDEX_FILE_H
/*
 * What index.c (reads) and index_build.c (writes) share: the file's layout and the engine.
 *
 * Format 1, numbers as the machine has them (another byte order is another format number):
 *
 *   struct fl_index_disk     fixed size, its own hash at the end
 *   front                    what FAISS wrote, up to its first inverted list's table
 *   table and lists          FAISS's own: "ilar", sizes, then each list's codes and ids
 *   directory                for each list its count and its hash
 *
 * From the front to the end of the lists it is byte for byte the index as FAISS writes it. A flat
 * index is all front. Hashes are XXH3 with 64 bits: they find damage and not malice. The
 * first, of front and table, is chained over blocks of 64 KiB, each hash the seed of the next.
 */
#include "base/err.h"
#include "embed/index.h"
#include "embed/index_engine.h"

#define FL_INDEX_MAGIC "FLINDEX\n"
#define FL_INDEX_FORMAT 1u
#define FL_INDEX_HASH_SEED 0x464c494eu
#define FL_INDEX_HASH_BLOCK 65536u

struct fl_index_disk {
    char magic[8];
    uint32_t format, dim;
    char model[64];
    uint64_t generation, count;
    int64_t last_id;
    uint64_t trained; /* vectors that the centroids were made for */
    uint32_t nlist, nprobe;
    uint32_t entry;    /* bytes of a vector in a list, its id included */
    uint32_t reserved; /* 0 */
    uint64_t front_len, front_hash;
    uint64_t lists_at; /* where the first list begins */
    uint64_t dir_at, dir_hash;
    uint64_t file_len;
    uint64_t zero[9];
    uint64_t hash; /* of all before it */
};
_Static_assert(sizeof(struct fl_index_disk) == 256, "the head is 256 bytes");

struct fl_index_dir {
    uint64_t count, hash;
};

/* Reads exactly n bytes at `at`. FL_EINPUT names the path. */
int fl_index_pread(int fd, const char *path, void *p, size_t n, uint64_t at, fl_err *err);
/* Loads the shared object (once in a process, never unloaded). FL_EBACKEND: it is not there. */
int fl_index_engine_load(const struct fl_index_engine **out, fl_err *err);
/* FL_EUSAGE for a head that cannot be. */
int fl_index_head_check(const struct fl_index_head *head, fl_err *err);

/* Probes so many lists from now on; all of them is what a flat index of 8-bit codes would answer.
 * For tests and the bench: the number in the file is the one that was measured. */
void fl_index_probe(fl_index *ix, uint32_t nprobe);

/* For an update: the whole index in FAISS's hands, every byte checked. */
struct fl_index_whole {
    const struct fl_index_engine *engine;
    void *ix;
    struct fl_index_disk disk;
};
int fl_index_read_whole(const char *path, const struct fl_index_head *expect,
                        struct fl_index_whole *out, fl_err *err);

#endif
