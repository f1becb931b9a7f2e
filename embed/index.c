/*
 * Opening and searching the index.
 *
 * An index of 400,000 vectors is 103 MB. Reading all of it took 120 to 250 ms in a fresh process,
 * and a restart pipeline starts a fresh process for each failure, whose search looks at one list in
 * twenty. So opening reads the head, the centroids and the table of lists, and a search reads the
 * lists that its queries fall into. What was read stays ("parts"), so that a session which asks
 * again does not read again. FAISS does the comparing in both steps: from the front of its file, a
 * table that names only some lists and the bytes of those lists it makes an index of these alone.
 *
 * Mapping the file would do the same with less code and is refused: a file cut under us would kill
 * the process (ARCHITECTURE.md). Each list has a hash in the directory which is compared when the
 * list is read; a difference is an error of that search, and the caller then scans exactly.
 *
 * Sizes in the head are believed only after its hash, and are then still compared with the file's
 * length: what is asked of the allocator is never more than the file holds.
 *
 * The lock makes a search from several threads possible and not parallel. A search takes
 * milliseconds, and nothing here runs more than one at a time.
 */
#include "embed/index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/alloc.h"

#define MAX_PARTS 32
#define MAX_KEPT (256u << 20)
#define QUERIES_AT_ONCE 16
#define MEND "; run diagnose reindex"

struct part {
    void *ix;
    uint64_t bytes;
};

/* What changes while searching, behind the lock. */
struct parts {
    pthread_mutex_t lock;
    struct part part[MAX_PARTS];
    size_t n;
    uint64_t bytes;
    uint8_t *of_list; /* part + 1; 0: not read yet */
};

struct fl_index {
    char *path;
    int fd;
    const struct fl_index_engine *engine;
    struct fl_index_disk disk;
    struct fl_index_head head;
    struct fl_index_dir *dir;
    uint64_t *at; /* where each list begins */
    char *front;
    void *whole; /* a flat index is all here; of another, the centroids without a list */
    char kind[40];
    struct parts *parts;
};

int fl_index_pread(int fd, const char *path, void *p, size_t n, uint64_t at, fl_err *err)
{
    char *to = p;

    while (n) {
        ssize_t r = pread(fd, to, n, (off_t)at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return fl_fail(err, FL_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
        if (r == 0)
            return fl_fail(err, FL_EINPUT, "%s: the index is cut short" MEND, path);
        to += r;
        at += (uint64_t)r;
        n -= (size_t)r;
    }
    return FL_OK;
}

int fl_index_head_check(const struct fl_index_head *head, fl_err *err)
{
    if (!memchr(head->model, 0, sizeof(head->model)) || !head->model[0])
        return fl_fail(err, FL_EUSAGE, "an index needs its model's name, of 1 to 63 bytes");
    if (head->dim == 0 || head->dim > FL_INDEX_MAX_DIM)
        return fl_fail(err, FL_EUSAGE, "an index of %u dimensions is not possible; 1 to %d are",
                       head->dim, FL_INDEX_MAX_DIM);
    if (head->count == 0 || head->count > UINT32_MAX)
        return fl_fail(err, FL_EUSAGE, "an index of %llu vectors is not possible",
                       (unsigned long long)head->count);
    return FL_OK;
}

/* NULL when what the head says can be so in a file of `len` bytes, else what is wrong. */
static const char *wrong(const struct fl_index_disk *d, uint64_t len)
{
    if (memcmp(d->magic, FL_INDEX_MAGIC, sizeof(d->magic)) != 0)
        return "it does not begin as an index does";
    if (d->format != FL_INDEX_FORMAT)
        return "it has another format version";
    if (d->hash != fl_hash64(d, offsetof(struct fl_index_disk, hash), FL_INDEX_HASH_SEED))
        return "the checksum of its head is wrong";
    if (d->file_len != len)
        return len < d->file_len ? "it is cut short" : "it is longer than it should be";
    if (d->dim == 0 || d->dim > FL_INDEX_MAX_DIM || d->front_len == 0 || d->front_len > len ||
        d->lists_at > d->dir_at || d->dir_at > len || sizeof(*d) + d->front_len > d->lists_at ||
        len - d->dir_at != d->nlist * (uint64_t)sizeof(struct fl_index_dir) ||
        (d->nlist && (d->nprobe == 0 || d->nprobe > d->nlist || d->entry <= sizeof(int64_t))) ||
        !memchr(d->model, 0, sizeof(d->model)))
        return "its head makes no sense";
    return NULL;
}

static int mismatch(const struct fl_index_disk *d, const struct fl_index_head *expect, int flags,
                    const char *path, fl_err *err)
{
    if (strcmp(d->model, expect->model) != 0)
        return fl_fail(err, FL_ERULE, "%s: the index was made with the model %s, not with %s" MEND,
                       path, d->model, expect->model);
    if (d->dim != expect->dim)
        return fl_fail(err, FL_ERULE, "%s: the index has %u dimensions, the model has %u" MEND,
                       path, d->dim, expect->dim);
    if (flags & FL_INDEX_ANY_GENERATION)
        return FL_OK;
    if (d->generation != expect->generation)
        return fl_fail(err, FL_ENOTFOUND,
                       "%s: the index is of generation %llu, the store is at %llu" MEND, path,
                       (unsigned long long)d->generation, (unsigned long long)expect->generation);
    if (d->count != expect->count || d->last_id != expect->last_id)
        return fl_fail(err, FL_ENOTFOUND,
                       "%s: the index holds %llu vectors up to id %lld, the store %llu up to "
                       "%lld" MEND,
                       path, (unsigned long long)d->count, (long long)d->last_id,
                       (unsigned long long)expect->count, (long long)expect->last_id);
    return FL_OK;
}

static int read_head(int fd, const char *path, struct fl_index_disk *d, fl_err *err)
{
    struct stat st;
    const char *why;
    int r;

    if (fstat(fd, &st))
        return fl_fail(err, FL_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
    if (st.st_size < (off_t)sizeof(*d))
        return fl_fail(err, FL_EINPUT, "%s: the index is not used: it is too short" MEND, path);
    r = fl_index_pread(fd, path, d, sizeof(*d), 0, err);
    if (r)
        return r;
    why = wrong(d, (uint64_t)st.st_size);
    if (why)
        return fl_fail(err, FL_EINPUT, "%s: the index is not used: %s" MEND, path, why);
    return FL_OK;
}

/* What stands before the lists. Of an inverted file it is kept, since parts are made of it; a flat
 * index would be there twice, and goes through a small buffer. */
static int read_front(struct fl_index *ix, uint64_t *hash, fl_err *err)
{
    const struct fl_index_disk *d = &ix->disk;
    uint64_t len = d->lists_at - sizeof(*d);
    size_t room = d->nlist ? len : FL_INDEX_HASH_BLOCK, n = 0;
    int r = FL_OK;

    ix->front = fl_malloc(room);
    if (!ix->front)
        return fl_fail_nomem(err);
    *hash = FL_INDEX_HASH_SEED;
    for (uint64_t at = 0; at < len && r == FL_OK; at += n) {
        char *p = ix->front + (d->nlist ? at : 0);
        n = len - at < FL_INDEX_HASH_BLOCK ? len - at : FL_INDEX_HASH_BLOCK;
        r = fl_index_pread(ix->fd, ix->path, p, n, sizeof(*d) + at, err);
        if (r == FL_OK)
            *hash = fl_hash64(p, n, *hash);
    }
    return r;
}

static int read_tables(struct fl_index *ix, fl_err *err)
{
    const struct fl_index_disk *d = &ix->disk;
    size_t dir_len = d->nlist * sizeof(*ix->dir);
    uint64_t at = d->lists_at, front_hash = 0;
    int r = read_front(ix, &front_hash, err);

    if (r)
        return r;
    ix->dir = fl_malloc(dir_len);
    ix->at = fl_malloc((d->nlist + (size_t)1) * sizeof(*ix->at));
    if (!ix->dir || !ix->at)
        return fl_fail_nomem(err);
    r = fl_index_pread(ix->fd, ix->path, ix->dir, dir_len, d->dir_at, err);
    if (r)
        return r;
    if (front_hash != d->front_hash ||
        fl_hash64(ix->dir, dir_len, FL_INDEX_HASH_SEED) != d->dir_hash)
        return fl_fail(err, FL_EINPUT, "%s: the index is not used: a checksum is wrong" MEND,
                       ix->path);
    for (uint32_t i = 0; i < d->nlist; i++) {
        ix->at[i] = at;
        if (ix->dir[i].count > (d->dir_at - at) / d->entry)
            return fl_fail(err, FL_EINPUT, "%s: the index is not used: its lists overlap" MEND,
                           ix->path);
        at += ix->dir[i].count * d->entry;
    }
    return FL_OK;
}

static int damaged(const struct fl_index *ix, uint32_t list, fl_err *err)
{
    return fl_fail(err, FL_EINPUT, "%s: the checksum of list %u is wrong" MEND, ix->path, list);
}

/* Reads and checks one list. `p` holds at least count*entry bytes. */
static int read_list(const struct fl_index *ix, uint32_t list, char *p, fl_err *err)
{
    size_t n = (size_t)ix->dir[list].count * ix->disk.entry;
    int r = fl_index_pread(ix->fd, ix->path, p, n, ix->at[list], err);

    if (r == FL_OK && fl_hash64(p, n, FL_INDEX_HASH_SEED) != ix->dir[list].hash)
        r = damaged(ix, list, err);
    return r;
}

static int faiss_read(const struct fl_index *ix, FILE *from, void **out, fl_err *err)
{
    char why[FL_ENGINE_WHY];
    int r = FL_OK;

    if (!from)
        return fl_fail_nomem(err);
    if (ix->engine->read(from, out, why))
        r = fl_fail(err, FL_EINPUT, "%s: FAISS cannot read the index: %s" MEND, ix->path, why);
    fclose(from);
    return r;
}

/*
 * Has FAISS make an index of these lists alone (ascending; none is possible). The front is FAISS's
 * own, the table is made to name only these.
 */
static int make_part(const struct fl_index *ix, const uint32_t *lists, size_t n, struct part *out,
                     fl_err *err)
{
    const struct fl_index_disk *d = &ix->disk;
    uint64_t *sizes = fl_malloc(n * sizeof(*sizes)), lists_len = 0;
    char *bytes = NULL;
    size_t head, at;
    int r = FL_OK;

    if (!sizes)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        sizes[i] = ix->dir[lists[i]].count;
        lists_len += sizes[i] * d->entry;
    }
    head = ix->engine->lists_head(d->nlist, d->entry, lists, sizes, n, 1, NULL, 0);
    bytes = fl_malloc(d->front_len + head + lists_len);
    if (!bytes) {
        r = fl_fail_nomem(err);
        goto out;
    }
    memcpy(bytes, ix->front, d->front_len);
    ix->engine->lists_head(d->nlist, d->entry, lists, sizes, n, 1, bytes + d->front_len, head);
    at = d->front_len + head;
    for (size_t i = 0; i < n && r == FL_OK; i++) {
        r = read_list(ix, lists[i], bytes + at, err);
        at += sizes[i] * d->entry;
    }
    if (r == FL_OK)
        r = faiss_read(ix, fmemopen(bytes, at, "rb"), &out->ix, err);
    if (r == FL_OK)
        out->bytes = at;
out:
    fl_free(bytes);
    fl_free(sizes);
    return r;
}

/* All of FAISS's bytes, from the file into its hands; they were checked a moment before. */
static int faiss_read_file(const struct fl_index *ix, void **out, fl_err *err)
{
    int fd = fcntl(ix->fd, F_DUPFD_CLOEXEC, 0);
    FILE *f = fd >= 0 ? fdopen(fd, "rb") : NULL;
    int r;

    if (!f && fd >= 0)
        close(fd);
    if (!f || fseeko(f, sizeof(ix->disk), SEEK_SET)) {
        r = fl_fail(err, FL_EINPUT, "%s: cannot be read: %s", ix->path, strerror(errno));
        if (f)
            fclose(f);
        return r;
    }
    return faiss_read(ix, f, out, err);
}

static int read_whole(struct fl_index *ix, fl_err *err)
{
    struct part none = {NULL, 0};
    int r;

    if (!ix->disk.nlist)
        return faiss_read_file(ix, &ix->whole, err);
    r = make_part(ix, NULL, 0, &none, err);
    if (r == FL_OK)
        ix->whole = none.ix;
    return r;
}

static int open_parts(struct fl_index *ix, fl_err *err)
{
    struct parts *p = fl_calloc(1, sizeof(*p));

    if (!p)
        return fl_fail_nomem(err);
    p->of_list = fl_calloc(ix->disk.nlist + (size_t)1, 1);
    if (!p->of_list || pthread_mutex_init(&p->lock, NULL)) {
        fl_free(p->of_list);
        fl_free(p);
        return fl_fail_nomem(err);
    }
    ix->parts = p;
    return FL_OK;
}

static void set_head(struct fl_index *ix)
{
    const struct fl_index_disk *d = &ix->disk;

    memcpy(ix->head.model, d->model, sizeof(ix->head.model));
    ix->head.dim = d->dim;
    ix->head.generation = d->generation;
    ix->head.count = d->count;
    ix->head.last_id = d->last_id;
    if (d->nlist)
        snprintf(ix->kind, sizeof(ix->kind), "ivf %u/%u", d->nlist, d->nprobe);
    else
        snprintf(ix->kind, sizeof(ix->kind), "flat");
}

static int open_file(const char *path, int *fd, fl_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0)
        return FL_OK;
    if (errno == ENOENT)
        return fl_fail(err, FL_ENOTFOUND, "%s: there is no index yet" MEND, path);
    return fl_fail(err, FL_EINPUT, "%s: cannot be opened: %s", path, strerror(errno));
}

int fl_index_open(const char *path, const struct fl_index_head *expect, int flags, fl_index **out,
                  fl_err *err)
{
    struct fl_index *ix = fl_calloc(1, sizeof(*ix));
    int r;

    if (!ix)
        return fl_fail_nomem(err);
    ix->fd = -1;
    ix->path = fl_strdup_s(fl_str_c(path));
    r = ix->path ? open_file(path, &ix->fd, err) : fl_fail_nomem(err);
    if (r == FL_OK)
        r = read_head(ix->fd, path, &ix->disk, err);
    if (r == FL_OK)
        r = mismatch(&ix->disk, expect, flags, path, err);
    if (r == FL_OK)
        r = read_tables(ix, err);
    if (r == FL_OK)
        r = fl_index_engine_load(&ix->engine, err);
    if (r == FL_OK)
        r = read_whole(ix, err);
    if (r == FL_OK)
        r = open_parts(ix, err);
    if (r) {
        fl_index_free(ix);
        return r;
    }
    set_head(ix);
    *out = ix;
    return FL_OK;
}

static void drop_parts(const struct fl_index *ix)
{
    struct parts *p = ix->parts;

    for (size_t i = 0; i < p->n; i++)
        ix->engine->free(p->part[i].ix);
    p->n = 0;
    p->bytes = 0;
    memset(p->of_list, 0, ix->disk.nlist);
}

void fl_index_free(fl_index *ix)
{
    if (!ix)
        return;
    if (ix->parts) {
        drop_parts(ix);
        pthread_mutex_destroy(&ix->parts->lock);
        fl_free(ix->parts->of_list);
        fl_free(ix->parts);
    }
    if (ix->whole)
        ix->engine->free(ix->whole);
    if (ix->fd >= 0)
        close(ix->fd);
    fl_free(ix->front);
    fl_free(ix->dir);
    fl_free(ix->at);
    fl_free(ix->path);
    fl_free(ix);
}

const struct fl_index_head *fl_index_head(const fl_index *ix)
{
    return &ix->head;
}

const char *fl_index_kind(const fl_index *ix)
{
    return ix->kind;
}

void fl_index_probe(fl_index *ix, uint32_t nprobe)
{
    if (!ix->disk.nlist || nprobe == 0)
        return;
    drop_parts(ix);
    ix->disk.nprobe = nprobe < ix->disk.nlist ? nprobe : ix->disk.nlist;
}

int fl_index_verify(const fl_index *ix, fl_err *err)
{
    uint64_t longest = 0;
    char *p;
    int r = FL_OK;

    for (uint32_t i = 0; i < ix->disk.nlist; i++)
        if (ix->dir[i].count > longest)
            longest = ix->dir[i].count;
    p = fl_malloc(longest * ix->disk.entry);
    if (!p)
        return fl_fail_nomem(err);
    for (uint32_t i = 0; i < ix->disk.nlist && r == FL_OK; i++)
        r = read_list(ix, i, p, err);
    fl_free(p);
    return r;
}

int fl_index_read_whole(const char *path, const struct fl_index_head *expect,
                        struct fl_index_whole *out, fl_err *err)
{
    struct fl_index *ix = NULL;
    void *all = NULL;
    int r = fl_index_open(path, expect, 0, &ix, err);

    if (r)
        return r;
    if (ix->disk.nlist) {
        r = fl_index_verify(ix, err);
        if (r == FL_OK)
            r = faiss_read_file(ix, &all, err);
    } else {
        all = ix->whole;
        ix->whole = NULL;
    }
    if (r == FL_OK) {
        out->engine = ix->engine;
        out->disk = ix->disk;
        out->ix = all;
    }
    fl_index_free(ix);
    return r;
}

/* The queries of one round, and where they fall. */
struct round {
    const float *queries;
    size_t nq, k;
    int64_t *lists; /* nq * nprobe, -1 where none */
    float *near;
    int64_t *here; /* nprobe: those of one query in one part */
    int64_t *more_ids;
    float *more_scores;
    int64_t *ids; /* out */
    float *scores;
};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The lists of the round that are in no part yet, ascending, each once. */
static size_t missing(const struct fl_index *ix, const struct round *t, uint32_t *out)
{
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < t->nq * ix->disk.nprobe; i++)
        if (t->lists[i] >= 0 && !ix->parts->of_list[t->lists[i]])
            out[n++] = (uint32_t)t->lists[i];
    qsort(out, n, sizeof(*out), by_number);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || out[kept - 1] != out[i])
            out[kept++] = out[i];
    return kept;
}

static int read_missing(const struct fl_index *ix, const struct round *t, fl_err *err)
{
    struct parts *p = ix->parts;
    uint32_t *lists = fl_malloc(t->nq * ix->disk.nprobe * sizeof(*lists));
    size_t n;
    int r = FL_OK;

    if (!lists)
        return fl_fail_nomem(err);
    n = missing(ix, t, lists);
    if (n && (p->n == MAX_PARTS || p->bytes > MAX_KEPT)) {
        drop_parts(ix);
        n = missing(ix, t, lists);
    }
    if (n)
        r = make_part(ix, lists, n, &p->part[p->n], err);
    if (n && r == FL_OK) {
        ix->engine->set_nprobe(p->part[p->n].ix, ix->disk.nprobe);
        p->bytes += p->part[p->n++].bytes;
        for (size_t i = 0; i < n; i++)
            p->of_list[lists[i]] = (uint8_t)p->n;
    }
    fl_free(lists);
    return r;
}

static int refused(const struct fl_index *ix, const char *why, fl_err *err)
{
    return fl_fail(err, FL_EBACKEND, "%s: FAISS refused the search: %s", ix->path, why);
}

/* Merges one part's k best into the k best so far; both are sorted, the places at the end empty. */
static void merge(size_t k, int64_t *ids, float *scores, const int64_t *more,
                  const float *more_scores)
{
    for (size_t i = 0; i < k && more[i] >= 0; i++) {
        size_t at = k;
        while (at > 0 && (ids[at - 1] < 0 || scores[at - 1] < more_scores[i]))
            at--;
        if (at == k)
            return;
        memmove(ids + at + 1, ids + at, (k - at - 1) * sizeof(*ids));
        memmove(scores + at + 1, scores + at, (k - at - 1) * sizeof(*scores));
        ids[at] = more[i];
        scores[at] = more_scores[i];
    }
}

/* One query in every part that holds one of its lists. */
static int search_parts(const struct fl_index *ix, struct round *t, size_t q, fl_err *err)
{
    const struct parts *p = ix->parts;
    size_t nprobe = ix->disk.nprobe, k = t->k;
    const int64_t *lists = t->lists + q * nprobe;
    char why[FL_ENGINE_WHY];

    for (size_t part = 0; part < p->n; part++) {
        size_t n = 0;
        for (size_t i = 0; i < nprobe; i++) {
            bool in = lists[i] >= 0 && p->of_list[lists[i]] == part + 1;
            t->here[i] = in ? lists[i] : -1;
            n += in;
        }
        if (n == 0)
            continue;
        if (ix->engine->search(p->part[part].ix, t->queries + q * ix->disk.dim, k, t->here,
                               t->near + q * nprobe, t->more_scores, t->more_ids, why))
            return refused(ix, why, err);
        merge(k, t->ids + q * k, t->scores + q * k, t->more_ids, t->more_scores);
    }
    return FL_OK;
}

static int search_round(const struct fl_index *ix, struct round *t, fl_err *err)
{
    size_t nprobe = ix->disk.nprobe;
    char why[FL_ENGINE_WHY];
    int r = FL_OK;

    for (size_t i = 0; i < t->nq * t->k; i++) {
        t->ids[i] = -1;
        t->scores[i] = 0;
    }
    for (size_t q = 0; q < t->nq; q++)
        if (ix->engine->assign(ix->whole, t->queries + q * ix->disk.dim, nprobe,
                               t->lists + q * nprobe, t->near + q * nprobe, why))
            return refused(ix, why, err);
    r = read_missing(ix, t, err);
    for (size_t q = 0; q < t->nq && r == FL_OK; q++)
        r = search_parts(ix, t, q, err);
    return r;
}

static int search_flat(const struct fl_index *ix, const float *queries, size_t nq, size_t k,
                       int64_t *ids, float *scores, fl_err *err)
{
    const float *vectors;
    const int64_t *vector_ids;
    char why[FL_ENGINE_WHY];
    size_t n;

    if (ix->engine->flat(ix->whole, &vectors, &vector_ids, &n, why))
        return refused(ix, why, err);
    return fl_exact_search(vectors, vector_ids, n, ix->disk.dim, queries, nq, k, ids, scores, err);
}

static int search_check(const struct fl_index *ix, const float *queries, size_t nq, size_t k,
                        fl_err *err)
{
    if (k == 0 || k > FL_INDEX_MAX_K)
        return fl_fail(err, FL_EUSAGE, "%zu neighbours cannot be asked for; 1 to %d can", k,
                       FL_INDEX_MAX_K);
    for (size_t i = 0; i < nq * ix->disk.dim; i++)
        if (!isfinite(queries[i]))
            return fl_fail(err, FL_EUSAGE, "query %zu has a component that is not a number",
                           i / ix->disk.dim);
    return FL_OK;
}

int fl_index_search(const fl_index *ix, const float *queries, size_t nq, size_t k, int64_t *ids,
                    float *scores, fl_err *err)
{
    size_t nprobe = ix->disk.nprobe, most = nq < QUERIES_AT_ONCE ? nq : QUERIES_AT_ONCE;
    struct round t = {.k = k};
    int64_t *found = NULL;
    float *found_scores = NULL;
    int r = search_check(ix, queries, nq, k, err);

    if (r || nq == 0)
        return r;
    if (!ix->disk.nlist)
        return search_flat(ix, queries, nq, k, ids, scores, err);
    t.lists = fl_malloc(most * nprobe * sizeof(*t.lists));
    t.near = fl_malloc(most * nprobe * sizeof(*t.near));
    t.here = fl_malloc(nprobe * sizeof(*t.here));
    t.more_ids = fl_malloc(k * sizeof(*t.more_ids));
    t.more_scores = fl_malloc(k * sizeof(*t.more_scores));
    found = fl_malloc(nq * k * sizeof(*found));
    found_scores = fl_malloc(nq * k * sizeof(*found_scores));
    if (!t.lists || !t.near || !t.here || !t.more_ids || !t.more_scores || !found || !found_scores)
        r = fl_fail_nomem(err);
    pthread_mutex_lock(&ix->parts->lock);
    for (size_t q = 0; q < nq && r == FL_OK; q += most) {
        t.queries = queries + q * ix->disk.dim;
        t.nq = nq - q < most ? nq - q : most;
        t.ids = found + q * k;
        t.scores = found_scores + q * k;
        r = search_round(ix, &t, err);
    }
    pthread_mutex_unlock(&ix->parts->lock);
    if (r == FL_OK) {
        memcpy(ids, found, nq * k * sizeof(*ids));
        memcpy(scores, found_scores, nq * k * sizeof(*scores));
    }
    fl_free(t.lists);
    fl_free(t.near);
    fl_free(t.here);
    fl_free(t.more_ids);
    fl_free(t.more_scores);
    fl_free(found);
    fl_free(found_scores);
    return r;
}
