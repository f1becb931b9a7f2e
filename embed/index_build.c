/*
 * Making the index file.
 *
 * Nobody ever sees a half-made index: it is written under a name of its own beside the old one, the
 * head last, synced, and renamed over it. A reader that has the old one open goes on reading that.
 * The temporary file is locked (flock) while its maker lives, so the next build can tell what a
 * killed one left from what another is writing, and removes it; where the file system has no locks,
 * after an hour. A full disk is one sentence and leaves the old index and nothing else.
 *
 * Which kind, as measured (256 dimensions, ten queries, processor time; tests/bench/index_bench.c):
 *
 *   A flat index costs 0.5 ms for a thousand vectors, so up to FLAT_MAX it stays under 10 ms and is
 *   exact. Above, an inverted file. A centroid costs 0.14 us a query, a code in a probed list 0.23.
 *   Ten queries that look at WORK codes each, where a centroid counts as four fifths of one, take 7
 *   to 9 ms. Few vectors a list (30 to 64) find more for the same work than many: at 50,000, 1,024
 *   lists of which 48 are probed found 0.996 of what flat codes find, where 512 lists of which 48
 *   are probed, at nearly twice the work, found 0.967. Beyond 2,048 lists training grows and the
 *   centroids eat the gain.
 *
 *   vectors    index         build  file   opening  first ten  next ten  of flat  in thirty  update
 *     10,000   flat          0.1 s  10 MB   17 ms      5 ms      5 ms    1        1          0.1 s
 *     24,000   ivf 512/59    1 s     7 MB    7 ms     18 ms      8 ms    0.972    0.972      0.1 s
 *     50,000   ivf 1024/48   3 s    14 MB    7 ms     19 ms      8 ms    0.996    0.996      0.1 s
 *    100,000   ivf 2048/31   9 s    27 MB   13 ms     19 ms      7 ms    1.000    1.000      0.2 s
 *    400,000   ivf 2048/8   14 s   103 MB   10 ms     17 ms      7 ms    1.000    1.000      0.3 s
 *  1,000,000   ivf 2048/8   24 s   254 MB    8 ms     27 ms     14 ms    1.000    1.000      0.8 s
 *
 *   The vectors lie around 2,000 centres with as much noise as centre (at a million with half); "of
 *   flat" is recall@10 against 8-bit codes with every list probed, "in thirty" how many of the true
 *   ten are among thirty: 8 bits alone lose 1 to 4 of 100 among near ties, so a caller who wants
 *   the true order asks for more and compares the stored vectors. A search needs 10 to 35 MB, a
 *   build 180 MB at 400,000 and 380 at a million. On vectors without any structure (uniform on the
 *   sphere) recall is 0.25 at 100,000, and 0.14 at 400,000 with ten lists probed; nothing is near
 *   anything there.
 *
 * Training sees a sample of 40 vectors a list: one drawn from each of as many equal stretches of
 * the source, by a generator of fixed seed. A fixed stride would see only the first piece of every
 * incident where each has four. The order of the source and the seed decide everything, so the same
 * vectors give the same file (on one machine: another processor may round differently in the
 * linear algebra, which moves centroids by the last bit).
 *
 * The vectors are read twice when a sample is needed and are never all in memory: 400,000 of them
 * are 410 MB as floats and 105 MB in the index.
 *
 * Not here: the choice of when to build and what a generation is. The store decides that.
 */
#define _GNU_SOURCE
#include "embed/index_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/alloc.h"

#define FLAT_MAX 20000u
#define MAX_LISTS 2048u
#define MIN_PROBED 8u
#define WORK 3200u
#define SAMPLE_A_LIST 40u
#define SAMPLE_BYTES (128u << 20)
#define BATCH 8192u
#define TMP_MARK ".tmp-"
#define TMP_AGE 3600

struct build {
    const struct fl_index_head *head;
    const struct fl_index_source *source;
    fl_index_progress progress;
    void *progress_ctx;
    const char *path;
    const struct fl_index_engine *engine;
    void *ix;
    uint32_t nlist, nprobe;
    uint64_t trained;
    float *vectors; /* a batch */
    int64_t *ids;
};

/* 512 lists at 20,000 vectors, 1,024 at 40,000, 2,048 from 65,600 on. */
static void choose_kind(uint64_t count, uint32_t *nlist, uint32_t *nprobe)
{
    uint32_t n = 512;

    *nlist = *nprobe = 0;
    if (count <= FLAT_MAX)
        return;
    while (n < MAX_LISTS && count / n > 64)
        n *= 2;
    *nlist = n;
    *nprobe = (uint32_t)((WORK - n * 4 / 5) * (uint64_t)n / count);
    if (*nprobe < MIN_PROBED)
        *nprobe = MIN_PROBED;
}

static int tell(const struct build *b, const char *what, uint64_t done, uint64_t total, fl_err *err)
{
    if (b->progress && b->progress(b->progress_ctx, what, done < total ? done : total, total))
        return fl_fail(err, FL_ELIMIT,
                       "%s: making the index was stopped; what was there is unchanged", b->path);
    return FL_OK;
}

/* The next batch, checked. *n is 0 at the end. */
static int pull(struct build *b, size_t *n, fl_err *err)
{
    uint32_t dim = b->head->dim;
    int r;

    *n = 0;
    r = b->source->next(b->source->ctx, b->ids, b->vectors, BATCH, n, err);
    if (r)
        return r;
    if (*n > BATCH)
        return fl_fail(err, FL_EBUG, "a source of vectors gave more than there was room for");
    for (size_t i = 0; i < *n; i++)
        if (b->ids[i] < 0 || b->ids[i] > b->head->last_id)
            return fl_fail(err, FL_EUSAGE, "vector id %lld is not between 0 and %lld",
                           (long long)b->ids[i], (long long)b->head->last_id);
    for (size_t i = 0; i < *n * dim; i++)
        if (!isfinite(b->vectors[i]))
            return fl_fail(err, FL_EINPUT,
                           "vector %lld has a component that is not a number; embed it anew",
                           (long long)b->ids[i / dim]);
    return FL_OK;
}

/* splitmix64: from a place to a number that looks drawn. */
static uint64_t draw(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The place of the i-th of n samples among count vectors; grows with i. */
static uint64_t sample_place(uint64_t i, uint64_t n, uint64_t count)
{
    uint64_t from = i * count / n, to = (i + 1) * count / n;

    return from + draw(i) % (to - from);
}

static int read_sample(struct build *b, float *sample, size_t want, fl_err *err)
{
    uint64_t seen = 0, place = sample_place(0, want, b->head->count);
    size_t have = 0, n = 0, dim = b->head->dim;
    int r;

    do {
        r = pull(b, &n, err);
        while (r == FL_OK && have < want && place < seen + n) {
            memcpy(sample + have * dim, b->vectors + (place - seen) * dim, dim * sizeof(*sample));
            if (++have < want)
                place = sample_place(have, want, b->head->count);
        }
        seen += n;
        if (r == FL_OK)
            r = tell(b, "reading", seen, b->head->count, err);
    } while (r == FL_OK && n && have < want);
    if (r == FL_OK && have < want)
        r = fl_fail(err, FL_EUSAGE, "%s: the store said %llu vectors and gave %llu", b->path,
                    (unsigned long long)b->head->count, (unsigned long long)seen);
    if (r == FL_OK)
        r = b->source->rewind(b->source->ctx, err);
    return r;
}

static int train(struct build *b, fl_err *err)
{
    size_t most = SAMPLE_BYTES / (b->head->dim * sizeof(float)), want;
    char why[FL_ENGINE_WHY];
    float *sample;
    int r;

    if (!b->nlist)
        return FL_OK;
    want = (size_t)b->nlist * SAMPLE_A_LIST;
    if (want > most)
        want = most > b->nlist ? most : b->nlist;
    if (want > b->head->count)
        want = (size_t)b->head->count;
    sample = fl_malloc(want * b->head->dim * sizeof(*sample));
    if (!sample)
        return fl_fail_nomem(err);
    r = read_sample(b, sample, want, err);
    if (r == FL_OK)
        r = tell(b, "training", 0, 1, err);
    if (r == FL_OK && b->engine->train(b->ix, sample, want, why))
        r = fl_fail(err, FL_EBACKEND, "FAISS could not train the index: %s", why);
    fl_free(sample);
    return r;
}

static int add_all(struct build *b, fl_err *err)
{
    char why[FL_ENGINE_WHY];
    uint64_t count = b->head->count;
    size_t n = 0;
    int r;

    do {
        r = pull(b, &n, err);
        if (r == FL_OK && n && b->engine->add(b->ix, b->vectors, b->ids, n, why))
            r = fl_fail(err, FL_EBACKEND, "FAISS could not add vectors to the index: %s", why);
        if (r == FL_OK && b->engine->count(b->ix) > count)
            break;
        if (r == FL_OK)
            r = tell(b, "adding", b->engine->count(b->ix), count, err);
    } while (r == FL_OK && n);
    if (r == FL_OK && b->engine->count(b->ix) != count)
        r = fl_fail(err, FL_EUSAGE,
                    "%s: the store said %llu vectors and the index came to %llu; run it again",
                    b->path, (unsigned long long)count,
                    (unsigned long long)b->engine->count(b->ix));
    return r;
}

static int disk_failed(const char *path, int e, fl_err *err)
{
    return fl_fail(err, FL_EIO, "%s: the index cannot be written: %s; what was there is unchanged",
                   path, e == ENOSPC || e == EDQUOT ? "the disk is full" : strerror(e ? e : EIO));
}

/* Removes what a killed build of the same path left: no one holds its lock. */
static void drop_debris(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, **names, *name;
    struct stat st;
    size_t n = 0;
    fl_arena a;

    fl_arena_init(&a);
    name = slash ? fl_arena_z(&a, fl_str_n(path, (size_t)(slash - path) + (slash == path))) : ".";
    if (!name || fl_file_list(name, &a, &names, &n, NULL))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        fl_str s = fl_str_c(names[i]);
        const char *full;
        int fd;

        if (!fl_str_starts(s, fl_str_c(base)) ||
            !fl_str_starts(fl_str_from(s, strlen(base)), FL_S(TMP_MARK)))
            continue;
        full = fl_file_join(&a, name, names[i]);
        fd = full ? open(full, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 ||
            (errno != EWOULDBLOCK && !fstat(fd, &st) && time(NULL) - st.st_mtime > TMP_AGE))
            unlink(full);
        close(fd);
    }
    fl_arena_dispose(&a);
}

/* A locked new file that is still there: another's clean-up may come between making and locking. */
static int open_tmp(const char *path, char **tmp, int *fd, fl_err *err)
{
    size_t n = strlen(path) + sizeof(TMP_MARK) + 8;
    char *name = fl_malloc(n);
    struct stat st;
    int f = -1, e = 0;

    if (!name)
        return fl_fail_nomem(err);
    for (int i = 0; i < 8 && f < 0 && !e; i++) {
        snprintf(name, n, "%s" TMP_MARK "XXXXXX", path);
        f = mkostemp(name, O_CLOEXEC);
        if (f < 0) {
            e = errno;
        } else {
            flock(f, LOCK_EX | LOCK_NB);
            if (fstat(f, &st) || st.st_nlink == 0) {
                close(f);
                f = -1;
            }
        }
    }
    if (f < 0) {
        fl_free(name);
        return disk_failed(path, e, err);
    }
    *tmp = name;
    *fd = f;
    return FL_OK;
}

struct out {
    int fd;
    FILE *file;
    const char *path;
    struct fl_index_disk disk;
    struct fl_index_dir *dir;
    uint32_t *lists;
    uint64_t *sizes;
};

/* What FAISS wrote must end as this build thinks it does: table of lists, then the lists. */
static int find_lists(struct build *b, struct out *o, uint64_t end, fl_err *err)
{
    uint64_t lists_len = 0;
    uint32_t filled = 0, nlist = b->nlist;
    char *want = NULL, *have = NULL, why[FL_ENGINE_WHY];
    size_t head;
    int r = FL_OK;

    if (b->engine->entry_size(b->ix, &o->disk.entry, why))
        return fl_fail(err, FL_EBACKEND, "FAISS does not tell the size of a vector: %s", why);
    for (uint32_t i = 0; i < nlist; i++) {
        uint64_t n = b->engine->list_size(b->ix, i);
        o->dir[i].count = n;
        lists_len += n * o->disk.entry;
        if (!n)
            continue;
        o->lists[filled] = i;
        o->sizes[filled++] = n;
    }
    head = b->engine->lists_head(nlist, o->disk.entry, o->lists, o->sizes, filled,
                                 filled <= nlist / 2, NULL, 0);
    want = fl_malloc(head);
    have = fl_malloc(head);
    if (!want || !have) {
        r = fl_fail_nomem(err);
        goto out;
    }
    o->disk.lists_at = end - lists_len;
    o->disk.front_len = o->disk.lists_at - head - sizeof(o->disk);
    b->engine->lists_head(nlist, o->disk.entry, o->lists, o->sizes, filled, filled <= nlist / 2,
                          want, head);
    if (lists_len + head + sizeof(o->disk) >= end)
        r = fl_fail(err, FL_EBACKEND, "%s: FAISS wrote less than its lists hold", b->path);
    else
        r = fl_index_pread(o->fd, o->path, have, head, sizeof(o->disk) + o->disk.front_len, err);
    if (r == FL_OK && memcmp(want, have, head) != 0)
        r = fl_fail(err, FL_EBACKEND,
                    "%s: this version of FAISS writes its lists in another way; similar incidents "
                    "are searched one by one",
                    b->path);
out:
    fl_free(want);
    fl_free(have);
    return r;
}

/* The hashes, of what is on the disk and not of what was meant to be. */
static int hash_file(struct build *b, struct out *o, fl_err *err)
{
    struct fl_index_disk *d = &o->disk;
    uint64_t front = d->lists_at - sizeof(*d), most = front, at = d->lists_at;
    char *p;
    int r;

    for (uint32_t i = 0; i < b->nlist; i++)
        if (o->dir[i].count * d->entry > most)
            most = o->dir[i].count * d->entry;
    p = fl_malloc(most);
    if (!p)
        return fl_fail_nomem(err);
    r = fl_index_pread(o->fd, o->path, p, front, sizeof(*d), err);
    d->front_hash = FL_INDEX_HASH_SEED;
    for (uint64_t i = 0; i < front && r == FL_OK; i += FL_INDEX_HASH_BLOCK) {
        size_t n = front - i < FL_INDEX_HASH_BLOCK ? front - i : FL_INDEX_HASH_BLOCK;
        d->front_hash = fl_hash64(p + i, n, d->front_hash);
    }
    for (uint32_t i = 0; i < b->nlist && r == FL_OK; i++) {
        size_t n = (size_t)o->dir[i].count * d->entry;
        r = fl_index_pread(o->fd, o->path, p, n, at, err);
        if (r == FL_OK)
            o->dir[i].hash = fl_hash64(p, n, FL_INDEX_HASH_SEED);
        at += n;
    }
    d->dir_hash = fl_hash64(o->dir, b->nlist * sizeof(*o->dir), FL_INDEX_HASH_SEED);
    fl_free(p);
    return r;
}

static int write_faiss(struct build *b, struct out *o, uint64_t *end, fl_err *err)
{
    char why[FL_ENGINE_WHY];
    int e;

    errno = 0;
    if (fwrite(&o->disk, sizeof(o->disk), 1, o->file) != 1 || fflush(o->file))
        return disk_failed(b->path, errno, err);
    errno = 0;
    if (b->engine->write(b->ix, o->file, why)) {
        e = errno;
        if (ferror(o->file) || e == ENOSPC || e == EDQUOT || e == EFBIG)
            return disk_failed(b->path, e, err);
        return fl_fail(err, FL_EBACKEND, "%s: FAISS could not write the index: %s", b->path, why);
    }
    if (fflush(o->file))
        return disk_failed(b->path, errno, err);
    *end = (uint64_t)ftello(o->file);
    return FL_OK;
}

static void fill_head(const struct build *b, struct fl_index_disk *d)
{
    memcpy(d->magic, FL_INDEX_MAGIC, sizeof(d->magic));
    d->format = FL_INDEX_FORMAT;
    d->dim = b->head->dim;
    memcpy(d->model, b->head->model, strlen(b->head->model));
    d->generation = b->head->generation;
    d->count = b->head->count;
    d->last_id = b->head->last_id;
    d->trained = b->trained;
    d->nlist = b->nlist;
    d->nprobe = b->nprobe;
    d->hash = fl_hash64(d, offsetof(struct fl_index_disk, hash), FL_INDEX_HASH_SEED);
}

static int write_tail(struct build *b, struct out *o, fl_err *err)
{
    size_t n = b->nlist * sizeof(*o->dir);

    errno = 0;
    if ((n && fwrite(o->dir, n, 1, o->file) != 1) || fflush(o->file) ||
        fseeko(o->file, 0, SEEK_SET) || fwrite(&o->disk, sizeof(o->disk), 1, o->file) != 1 ||
        fflush(o->file) || fsync(o->fd))
        return disk_failed(b->path, errno, err);
    return FL_OK;
}

static int fill_file(struct build *b, struct out *o, fl_err *err)
{
    uint64_t end = 0;
    int r = write_faiss(b, o, &end, err);

    if (r)
        return r;
    o->disk.dir_at = end;
    o->disk.file_len = end + b->nlist * sizeof(*o->dir);
    if (b->nlist) {
        r = find_lists(b, o, end, err);
    } else {
        o->disk.front_len = end - sizeof(o->disk);
        o->disk.lists_at = end;
    }
    if (r == FL_OK)
        r = tell(b, "writing", 1, 2, err);
    if (r == FL_OK)
        r = hash_file(b, o, err);
    if (r)
        return r;
    fill_head(b, &o->disk);
    return write_tail(b, o, err);
}

/* The new name must be on the disk too; where a folder cannot be synced nothing is lost by that. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = fl_strdup_s(slash ? fl_str_n(path, (size_t)(slash - path) + 1) : FL_S("."));
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    fl_free(dir);
}

static int write_index(struct build *b, fl_err *err)
{
    struct out o = {.fd = -1};
    char *tmp = NULL;
    int r, fd = -1;

    o.dir = fl_calloc(b->nlist + (size_t)1, sizeof(*o.dir));
    o.lists = fl_calloc(b->nlist + (size_t)1, sizeof(*o.lists));
    o.sizes = fl_calloc(b->nlist + (size_t)1, sizeof(*o.sizes));
    r = o.dir && o.lists && o.sizes ? FL_OK : fl_fail_nomem(err);
    if (r)
        goto out;
    drop_debris(b->path);
    r = tell(b, "writing", 0, 2, err);
    if (r == FL_OK)
        r = open_tmp(b->path, &tmp, &fd, err);
    if (r)
        goto out;
    o.fd = fd;
    o.path = tmp;
    o.file = fdopen(fd, "w+b");
    r = o.file ? fill_file(b, &o, err) : disk_failed(b->path, errno, err);
    if (r == FL_OK && rename(tmp, b->path))
        r = disk_failed(b->path, errno, err);
    if (r)
        unlink(tmp);
    else
        sync_folder(b->path);
out:
    if (o.file)
        fclose(o.file);
    else if (fd >= 0)
        close(fd);
    fl_free(tmp);
    fl_free(o.dir);
    fl_free(o.lists);
    fl_free(o.sizes);
    return r;
}

static int open_batch(struct build *b, fl_err *err)
{
    b->vectors = fl_malloc((size_t)BATCH * b->head->dim * sizeof(*b->vectors));
    b->ids = fl_malloc(BATCH * sizeof(*b->ids));
    return b->vectors && b->ids ? FL_OK : fl_fail_nomem(err);
}

static void close_build(struct build *b)
{
    if (b->ix)
        b->engine->free(b->ix);
    fl_free(b->vectors);
    fl_free(b->ids);
}

int fl_index_build(const struct fl_index_head *head, const struct fl_index_source *source,
                   fl_index_progress progress, void *progress_ctx, const char *path, fl_err *err)
{
    struct build b = {.head = head,
                      .source = source,
                      .progress = progress,
                      .progress_ctx = progress_ctx,
                      .path = path,
                      .trained = head->count};
    char why[FL_ENGINE_WHY];
    int r = fl_index_head_check(head, err);

    if (r == FL_OK)
        r = fl_index_engine_load(&b.engine, err);
    if (r == FL_OK)
        r = open_batch(&b, err);
    choose_kind(head->count, &b.nlist, &b.nprobe);
    if (r == FL_OK && b.engine->make(head->dim, b.nlist, b.nprobe, &b.ix, why))
        r = fl_fail(err, FL_EBACKEND, "FAISS could not make an index: %s", why);
    if (r == FL_OK)
        r = train(&b, err);
    if (r == FL_OK)
        r = add_all(&b, err);
    if (r == FL_OK)
        r = write_index(&b, err);
    close_build(&b);
    return r;
}

static int outgrown(const struct fl_index_disk *d, uint64_t count)
{
    uint32_t nlist, nprobe;

    choose_kind(count, &nlist, &nprobe);
    return (nlist == 0) != (d->nlist == 0) || (nlist && count > 2 * d->trained) ||
           (nlist && count < d->trained / 2);
}

int fl_index_update(const char *from, const struct fl_index_head *from_head,
                    const struct fl_index_head *head, const int64_t *removed, size_t removed_count,
                    const struct fl_index_source *source, fl_index_progress progress,
                    void *progress_ctx, const char *path, fl_err *err)
{
    struct build b = {.head = head,
                      .source = source,
                      .progress = progress,
                      .progress_ctx = progress_ctx,
                      .path = path};
    struct fl_index_whole old = {0};
    char why[FL_ENGINE_WHY];
    int r = fl_index_head_check(head, err);

    if (r == FL_OK && (strcmp(head->model, from_head->model) || head->dim != from_head->dim))
        r = fl_fail(err, FL_EUSAGE, "%s: vectors of another model cannot be added", from);
    if (r == FL_OK)
        r = fl_index_read_whole(from, from_head, &old, err);
    if (r)
        return r;
    b.engine = old.engine;
    b.ix = old.ix;
    b.nlist = old.disk.nlist;
    b.nprobe = old.disk.nprobe;
    b.trained = old.disk.trained;
    if (outgrown(&old.disk, head->count))
        r = fl_fail(err, FL_ELIMIT, "%s: the index has outgrown its centroids; build it in full",
                    from);
    if (r == FL_OK)
        r = open_batch(&b, err);
    if (r == FL_OK && removed_count && b.engine->remove(b.ix, removed, removed_count, why))
        r = fl_fail(err, FL_EBACKEND, "FAISS could not remove vectors: %s", why);
    if (r == FL_OK)
        r = add_all(&b, err);
    if (r == FL_OK)
        r = write_index(&b, err);
    close_build(&b);
    return r;
}
