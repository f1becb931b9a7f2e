/*
 * The incident memory runs out of disk and of memory.
 *
 * A file system between SQLite and the real one fails the n-th write, sync or truncation, alone or
 * for good, for every n that a session of every kind of change makes. After each, what was
 * acknowledged is there, what was not is not there in part, and the next run works. Where the
 * machine lets us mount one, a small tmpfs is filled in earnest as well.
 *
 * Memory: each allocation of ours and each of SQLite's fails in turn, through the hook of base and
 * through SQLite's configuration, which a test program, other than a library, may change. What may
 * come out is FL_ENOMEM or the same result as ever.
 */
#include "../unit/store_fixture.h"

#include <sqlite3.h>
#include <sys/mount.h>

/* --- a file system that fails --- */

static struct {
    unsigned long n, fail_at; /* 0: never */
    bool for_good;
    int code;
} disk;

struct shim {
    sqlite3_file base;
    sqlite3_file *real;
    max_align_t room[];
};

static sqlite3_vfs shim_vfs;
static sqlite3_vfs *real_vfs;

static bool disk_fails(void)
{
    disk.n++;
    return disk.fail_at && (disk.n == disk.fail_at || (disk.for_good && disk.n > disk.fail_at));
}

#define REAL(f) (((struct shim *)(void *)(f))->real)

static int shim_close(sqlite3_file *f)
{
    return REAL(f)->pMethods ? REAL(f)->pMethods->xClose(REAL(f)) : SQLITE_OK;
}
static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (disk_fails()) { /* half of it gets there */
        if (n > 1)
            REAL(f)->pMethods->xWrite(REAL(f), p, n / 2, at);
        return disk.code;
    }
    return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int shim_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return disk_fails() ? SQLITE_IOERR_TRUNCATE : REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int shim_sync(sqlite3_file *f, int flags)
{
    (void)f;
    (void)flags;
    return disk_fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK; /* no power is cut here */
}
static int shim_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int shim_lock(sqlite3_file *f, int l)
{
    return REAL(f)->pMethods->xLock(REAL(f), l);
}
static int shim_unlock(sqlite3_file *f, int l)
{
    return REAL(f)->pMethods->xUnlock(REAL(f), l);
}
static int shim_reserved(sqlite3_file *f, int *out)
{
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int shim_control(sqlite3_file *f, int op, void *p)
{
    return REAL(f)->pMethods->xFileControl(REAL(f), op, p);
}
static int shim_sector(sqlite3_file *f)
{
    return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int shim_device(sqlite3_file *f)
{
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int shim_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, out);
}
static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void shim_shm_barrier(sqlite3_file *f)
{
    REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int shim_shm_unmap(sqlite3_file *f, int del)
{
    return REAL(f)->pMethods->xShmUnmap(REAL(f), del);
}

static const sqlite3_io_methods shim_methods = {
    2,           shim_close,   shim_read,     shim_write,       shim_truncate,  shim_sync,
    shim_size,   shim_lock,    shim_unlock,   shim_reserved,    shim_control,   shim_sector,
    shim_device, shim_shm_map, shim_shm_lock, shim_shm_barrier, shim_shm_unmap, NULL,
    NULL};

static int shim_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    struct shim *s = (struct shim *)(void *)f;
    int rc;

    (void)v;
    memset(s, 0, sizeof(*s));
    s->real = (sqlite3_file *)(void *)s->room;
    rc = real_vfs->xOpen(real_vfs, name, s->real, flags, out);
    if (rc == SQLITE_OK)
        s->base.pMethods = &shim_methods;
    return rc;
}

static void shim_start(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    shim_vfs = *real_vfs;
    shim_vfs.zName = "failing";
    shim_vfs.szOsFile = (int)sizeof(struct shim) + real_vfs->szOsFile;
    shim_vfs.xOpen = shim_open;
    sqlite3_vfs_register(&shim_vfs, 1);
}

static void shim_stop(void)
{
    sqlite3_vfs_unregister(&shim_vfs);
    sqlite3_vfs_register(real_vfs, 1);
}

/* --- a session of every kind of change --- */

static const struct fl_store_model model = {FL_S("m"), 4, FL_VECTOR_INT8};

static const char import_text[] =
    "incidents:\n"
    "- {id: i1, cause: net.dns, title: t, evidence: [a name was not found]}\n"
    "- {id: i2, cause: net.dns, title: t, evidence: [another name was not found]}\n";

/* What the session got acknowledged so far, as a number of steps. */
#define STEPS 6
static int session(const char *dir, int *done, fl_err *err)
{
    int8_t data[4] = {1, 2, 3, 4};
    struct fl_store_vector v = {.data = data, .scale = 1};
    struct fl_store_import o = {.corpus = true};
    struct fl_store_added added = {0};
    fl_str line = FL_S("rank 3 died of an error"), other = FL_S("something else");
    struct fl_incident inc = {
        .id = FL_S("new"), .cause = FL_S("gpu.ecc"), .evidence = &line, .nevidence = 1};
    fl_store *s = NULL;
    int r = fl_store_open(dir, NULL, &s, err);

    *done = 0;
    if (!r)
        r = fl_store_add(s, &inc, &added, err);
    if (!r && ++*done)
        r = fl_store_put_vectors(s, &model, added.number, &v, 1, err);
    inc.evidence = &other;
    if (!r && ++*done)
        r = fl_store_update(s, &inc, NULL, err);
    if (!r && ++*done)
        r = fl_store_import_text(s, fl_str_c(import_text), "x.yaml", &o, NULL, err);
    if (!r && ++*done)
        r = fl_store_meta_set(s, "generation", FL_S("7"), err);
    if (!r && ++*done)
        r = fl_store_remove(s, FL_S("old"), err);
    if (!r)
        ++*done;
    fl_store_close(s);
    return r;
}

/* Before the session: one incident. After it, as many steps as were acknowledged are there, and of
 * the next one all or nothing (a commit may have reached the disk and its answer not). */
static void must_be_at(const char *dir, int done, unsigned long n)
{
    struct fl_incident inc;
    fl_store *s = NULL;
    struct fl_store_counts c = {0};
    fl_arena a;
    fl_str v;
    fl_err err = {0};
    int at = 0;

    fl_arena_init(&a);
    must(fl_store_open(dir, NULL, &s, &err));
    must_be_whole(s);
    must(fl_store_count(s, &c, &err));
    if (fl_store_get(s, FL_S("new"), &a, &inc, NULL, &err) == 0)
        at = fl_str_eqz(inc.evidence[0], "something else") ? 3 : c.vectors ? 2 : 1;
    if (fl_store_get(s, FL_S("i1"), &a, &inc, NULL, &err) == 0) {
        must(fl_store_get(s, FL_S("i2"), &a, &inc, NULL, &err));
        at = 4;
    }
    if (fl_store_meta_get(s, "generation", &a, &v, &err) == 0)
        at = 5;
    if (fl_store_get(s, FL_S("old"), &a, &inc, NULL, &err) != 0)
        at = 6;
    if (at != done && at != done + 1)
        fail_msg("failure %lu: %d steps are there, %d were acknowledged", n, at, done);
    fl_store_close(s);
    fl_arena_dispose(&a);
}

static void add_old(const char *dir)
{
    fl_str line = FL_S("an old line");
    struct fl_incident inc = {
        .id = FL_S("old"), .cause = FL_S("gpu.ecc"), .evidence = &line, .nevidence = 1};
    fl_store *s = NULL;
    fl_err err = {0};

    must(fl_store_open(dir, NULL, &s, &err));
    must(fl_store_add(s, &inc, NULL, &err));
    fl_store_close(s);
}

static void each_write_fails(int code, bool for_good)
{
    unsigned long n = 1;
    int done = 0;

    shim_start();
    for (bool reached = true; reached; n++) {
        struct folder f;
        fl_err err = {0};
        int r;
        folder_make(&f);
        disk.fail_at = 0;
        add_old(f.dir);
        disk.n = 0;
        disk.fail_at = n;
        disk.for_good = for_good;
        disk.code = code;
        r = session(f.dir, &done, &err);
        disk.fail_at = 0;
        reached = disk.n >= n;
        if (r && r != FL_EIO && r != FL_EBACKEND)
            fail_msg("write %lu gives %d: %s", n, r, err.msg);
        if (r && code == SQLITE_FULL && r == FL_EIO && !strstr(err.msg, "disk is full") &&
            !strstr(err.msg, "check the disk"))
            fail_msg("write %lu says: %s", n, err.msg);
        must_be_at(f.dir, done, n);
        {
            int again, c = session(f.dir, &again, &err);
            if (c && c != FL_EUSAGE && c != FL_ENOTFOUND)
                fail_msg("the run after write %lu gives %d: %s", n, c, err.msg);
        }
        folder_remove(&f);
        if (n > 5000)
            fail_msg("the session does not end");
    }
    shim_stop();
    print_message("%lu writes failed in turn\n", n - 1); /* the last was not reached */
    assert_true(n > 20);
}

static void the_disk_is_full_for_good(void **state)
{
    (void)state;
    each_write_fails(SQLITE_FULL, true);
}

static void the_disk_is_full_once(void **state)
{
    (void)state;
    each_write_fails(SQLITE_FULL, false);
}

static void the_disk_fails(void **state)
{
    (void)state;
    each_write_fails(SQLITE_IOERR_WRITE, true);
}

/* A small tmpfs, filled until nothing fits, then freed. */
static void a_small_disk_fills_up(void **state)
{
    struct folder f;
    fl_store *s = NULL;
    unsigned n = 0;
    struct fl_store_counts c = {0};
    fl_err err = {0};
    int r = 0;

    (void)state;
    folder_make(&f);
    if (mount("none", f.dir, "tmpfs", 0, "size=1m")) {
        print_message("no tmpfs can be mounted here: not tried\n");
        folder_remove(&f);
        skip();
    }
    must(fl_store_open(f.dir, NULL, &s, &err));
    while (!r && n < 10000) {
        char id[20], text[400];
        fl_str line = {text, sizeof(text)};
        struct fl_incident inc = {.cause = FL_S("gpu.ecc"), .evidence = &line, .nevidence = 1};
        snprintf(id, sizeof(id), "n-%u", n);
        memset(text, 'a' + (int)(n % 26), sizeof(text));
        inc.id = fl_str_c(id);
        r = fl_store_add(s, &inc, NULL, &err);
        n += r == 0;
    }
    print_message("%u incidents fit; then: %s\n", n, err.msg);
    assert_int_equal(r, FL_EIO);
    assert_true(n > 10);
    must(fl_store_count(s, &c, &err));
    assert_int_equal(c.incidents, n);
    fl_store_close(s);
    s = NULL;
    assert_int_equal(mount("none", f.dir, "tmpfs", MS_REMOUNT, "size=4m"), 0);
    must(fl_store_open(f.dir, NULL, &s, &err));
    must_be_whole(s);
    must(fl_store_count(s, &c, &err));
    assert_int_equal(c.incidents, n);
    must(fl_store_remove(s, FL_S("n-0"), &err));
    fl_store_close(s);
    assert_int_equal(umount(f.dir), 0);
    folder_remove(&f);
}

/* --- memory --- */

struct memory {
    unsigned long n, fail_at;
    bool for_good;
    long live;
};
static struct memory ours, theirs;

static bool memory_fails(struct memory *m)
{
    m->n++;
    return m->fail_at && (m->n == m->fail_at || (m->for_good && m->n > m->fail_at));
}

static void *hook(void *ctx, void *p, size_t n)
{
    struct memory *m = ctx;

    if (n == 0) {
        m->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (memory_fails(m))
        return NULL;
    m->live += p == NULL;
    return realloc(p, n);
}

/* SQLite asks for the size of what it got. */
static void *lite_malloc(int n)
{
    max_align_t *p = memory_fails(&theirs) ? NULL : malloc(sizeof(max_align_t) + (size_t)n);

    if (!p)
        return NULL;
    *(int *)(void *)p = n;
    theirs.live++;
    return p + 1;
}
static void lite_free(void *p)
{
    theirs.live--;
    free((max_align_t *)p - 1);
}
static void *lite_realloc(void *p, int n)
{
    max_align_t *q = memory_fails(&theirs)
                         ? NULL
                         : realloc((max_align_t *)p - 1, sizeof(max_align_t) + (size_t)n);

    if (!q)
        return NULL;
    *(int *)(void *)q = n;
    return q + 1;
}
static int lite_size(void *p)
{
    return *(int *)(void *)((max_align_t *)p - 1);
}
static int lite_round(int n)
{
    return (n + 7) & ~7;
}
static int lite_init(void *ctx)
{
    (void)ctx;
    return SQLITE_OK;
}
static void lite_shutdown(void *ctx)
{
    (void)ctx;
}

static int take_vector(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    (void)err;
    *(int64_t *)ctx += v->number;
    return 0;
}

static int take_hit(void *ctx, const struct fl_store_hit *h, fl_err *err)
{
    (void)err;
    *(int64_t *)ctx += h->incident;
    return 0;
}

/* The session, then all that reads. */
static int all_of_it(const char *dir, fl_buf *out, fl_err *err)
{
    struct fl_store_filter all = FL_STORE_ALL;
    fl_str terms[] = {FL_S("name"), FL_S("error"), FL_S("old")};
    struct fl_store_query q = {.terms = terms, .n = 3};
    int64_t sum = 0;
    fl_store *s = NULL;
    int done, r = session(dir, &done, err);

    if (!r)
        r = fl_store_open(dir, NULL, &s, err);
    if (!r)
        r = fl_store_rebuild_words(s, err);
    if (!r)
        r = fl_store_export(s, &all, NULL, NULL, keep_bytes, out, err);
    if (!r)
        r = fl_store_salvage(s, keep_bytes, out, NULL, err);
    if (!r)
        r = fl_store_search(s, &q, take_hit, &sum, err);
    if (!r)
        r = fl_store_vectors(s, &model, 0, 0, take_vector, &sum, NULL, err);
    if (!r)
        fl_buf_addf(out, "# %lld\n", (long long)sum);
    fl_store_close(s);
    return r ? r : fl_buf_check(out, "what came out", err);
}

/* Times are those of the run: taken out. */
static void without_times(fl_buf *b)
{
    for (char *p = b->p; p && (p = strstr(p, "ated: '")) != NULL; p += 7)
        memset(p + 7, 'T', 20);
}

/* Without a failure: what comes out. */
static void run_whole(struct fl_buf *want)
{
    struct folder f;
    fl_err err = {0};

    fl_buf_init(want, 1u << 20);
    folder_make(&f);
    add_old(f.dir);
    must(all_of_it(f.dir, want, &err));
    without_times(want);
    folder_remove(&f);
}

/* The n-th fails; false when there are not so many. */
static bool one_fails(struct memory *m, unsigned long n, bool for_good, fl_str want)
{
    struct folder f;
    fl_err err = {0};
    fl_buf got;
    long live;
    bool reached;
    int r, done;

    fl_buf_init(&got, 1u << 20);
    folder_make(&f);
    add_old(f.dir);
    live = ours.live + theirs.live;
    m->n = 0;
    m->fail_at = n;
    m->for_good = for_good;
    r = all_of_it(f.dir, &got, &err);
    m->fail_at = 0;
    reached = m->n >= n;
    if (r == 0) {
        without_times(&got);
        same_text(fl_buf_str(&got), want, "what came out all the same");
    } else if (r != FL_ENOMEM) {
        fail_msg("allocation %lu gives %d: %s", n, r, err.msg);
    }
    fl_buf_dispose(&got);
    if (ours.live + theirs.live != live)
        fail_msg("allocation %lu leaves %ld behind", n, ours.live + theirs.live - live);
    r = session(f.dir, &done, &err); /* again, and partly done already */
    if (r && r != FL_EUSAGE && r != FL_ENOTFOUND)
        fail_msg("the run after allocation %lu gives %d: %s", n, r, err.msg);
    folder_remove(&f);
    return reached;
}

static void each_allocation_fails(struct memory *m, bool for_good, unsigned step)
{
    unsigned long n = 1;
    fl_buf want;

    run_whole(&want);
    shim_start(); /* quicker: it does not sync */
    while (one_fails(m, n, for_good, fl_buf_str(&want)) && n < 100000)
        n += step;
    shim_stop();
    fl_buf_dispose(&want);
    print_message("%lu allocations, each %u. failed in turn\n", n, step);
    assert_true(n > 20 && n < 100000);
}

static void our_memory_runs_out(void **state)
{
    (void)state;
    each_allocation_fails(&ours, false, 1);
    each_allocation_fails(&ours, true, 1);
}

static void sqlites_memory_runs_out(void **state)
{
    (void)state;
    each_allocation_fails(&theirs, false, 13);
    each_allocation_fails(&theirs, true, 29);
}

int main(void)
{
    static const sqlite3_mem_methods lite = {lite_malloc, lite_free, lite_realloc,  lite_size,
                                             lite_round,  lite_init, lite_shutdown, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_disk_is_full_for_good),
        cmocka_unit_test(the_disk_is_full_once),
        cmocka_unit_test(the_disk_fails),
        cmocka_unit_test(a_small_disk_fills_up),
        cmocka_unit_test(our_memory_runs_out),
        cmocka_unit_test(sqlites_memory_runs_out),
    };

    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &lite) != SQLITE_OK)
        return 1;
    fl_alloc_hook(hook, &ours);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
