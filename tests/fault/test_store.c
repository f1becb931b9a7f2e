/*
 * What happens to the incident memory from outside: writers killed at any moment, many processes at
 * once, folders that cannot be written, damaged files, databases of other programs and other times.
 */
#include "../unit/store_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "store/sqlite.h"

#define KILLS 200
#define CROWD_SECONDS 4

static void pause_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

static int write_number(int fd, uint32_t n)
{
    return write(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? 0 : -1;
}

/* Adds incidents with these numbers for ever, each with a vector, and tells which are stored. */
static void child_adds(const char *dir, uint32_t n, uint32_t step, int tell)
{
    static const struct fl_store_model model = {FL_S("m"), 4, FL_VECTOR_INT8};
    int8_t data[4] = {1, 2, 3, 4};
    struct fl_store_vector v = {.data = data, .scale = 1};
    fl_store *s = NULL;
    fl_err err = {0};

    if (fl_store_open(dir, NULL, &s, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(2);
    }
    for (;; n += step) {
        char id[32];
        fl_str lines[] = {FL_S("rank 3 died of an error"), fl_str_n(id, 0)};
        struct fl_store_added added;
        struct fl_incident inc = {
            .cause = FL_S("gpu.ecc"), .evidence = lines, .nevidence = 2, .title = FL_S("t")};
        snprintf(id, sizeof(id), "n-%08u", n);
        inc.id = lines[1] = fl_str_c(id);
        if (fl_store_begin(s, &err) || fl_store_add(s, &inc, &added, &err) ||
            fl_store_put_vectors(s, &model, added.number, &v, 1, &err) ||
            fl_store_commit(s, &err)) {
            fprintf(stderr, "%s\n", err.msg);
            _exit(3);
        }
        if (write_number(tell, n))
            _exit(0);
    }
}

static int whole_incident(void *ctx, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    unsigned *n = ctx;

    (void)number;
    ++*n;
    if (inc->nevidence != 2 || !fl_str_eq(inc->evidence[1], inc->id))
        return fl_fail(err, FL_EBUG, "incident '%.*s' is not whole", FL_FMT(inc->id));
    return 0;
}

static int count_whole(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    return whole_incident(ctx, 0, inc, err);
}

static int any_hit(void *ctx, const struct fl_store_hit *h, fl_err *err)
{
    (void)h;
    (void)err;
    ++*(unsigned *)ctx;
    return 0;
}

/* Reads and searches until it is told to stop by a closed pipe; status 0 when nothing failed. */
static void child_reads(const char *dir, int stop)
{
    struct fl_store_opts o = {.read_only = true};
    unsigned rounds = 0;
    char byte;
    fl_err err = {0};

    fcntl(stop, F_SETFL, O_NONBLOCK);
    while (read(stop, &byte, 1) != 0) {
        struct fl_store_filter all = FL_STORE_ALL;
        fl_str term = FL_S("rank");
        struct fl_store_query q = {.terms = &term, .n = 1};
        unsigned listed = 0, hits = 0;
        fl_store *s = NULL;
        int r = fl_store_open(dir, &o, &s, &err);
        for (int i = 0; !r && i < 3; i++) {
            listed = 0;
            r = fl_store_list(s, &all, whole_incident, &listed, &err);
            if (!r)
                r = fl_store_search(s, &q, any_hit, &hits, &err);
        }
        fl_store_close(s);
        if (r || (listed && !hits)) {
            fprintf(stderr, "a reader failed: %d: %s (%u listed, %u hits)\n", r, err.msg, listed,
                    hits);
            _exit(1);
        }
        rounds++;
    }
    _exit(rounds ? 0 : 4);
}

static pid_t start_reader(const char *dir, int stop[2])
{
    pid_t pid = fork();

    if (pid == 0) {
        close(stop[1]);
        child_reads(dir, stop[0]);
    }
    return pid;
}

static void must_end_well(pid_t pid, const char *who)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s ended with status %x", who, status);
}

/* Every number told is stored, whole. */
static void must_hold(const char *dir, const uint32_t *told, size_t n, bool verify)
{
    struct fl_store_filter all = FL_STORE_ALL;
    fl_store *s = NULL;
    unsigned listed = 0;
    fl_err err = {0};

    must(fl_store_open(dir, NULL, &s, &err));
    must(fl_store_list(s, &all, whole_incident, &listed, &err));
    for (size_t i = 0; i < n; i++) {
        struct fl_incident inc;
        char id[32];
        fl_arena a;
        fl_arena_init(&a);
        snprintf(id, sizeof(id), "n-%08u", told[i]);
        must(fl_store_get(s, fl_str_c(id), &a, &inc, NULL, &err));
        fl_arena_dispose(&a);
    }
    assert_true(listed >= n);
    if (verify)
        must_be_whole(s);
    fl_store_close(s);
}

static void a_kill_loses_nothing(void **state)
{
    struct folder f;
    uint32_t *told = calloc(1u << 20, sizeof(*told));
    size_t n = 0;
    int stop[2];
    pid_t readers[2];
    fl_store *s = NULL;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    must(fl_store_open(f.dir, NULL, &s, &err));
    fl_store_close(s);
    assert_int_equal(pipe(stop), 0);
    for (int i = 0; i < 2; i++)
        readers[i] = start_reader(f.dir, stop);
    srand(5);
    for (int i = 0; i < KILLS; i++) {
        int tell[2], status;
        uint32_t last;
        size_t before = n;
        pid_t pid;
        assert_int_equal(pipe(tell), 0);
        pid = fork();
        if (pid == 0) {
            close(tell[0]);
            close(stop[1]);
            child_adds(f.dir, (uint32_t)i * 5000, 1, tell[1]);
        }
        close(tell[1]);
        pause_us(rand() % 40000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSIGNALED(status))
            fail_msg("the writer ended by itself, status %x", status);
        while (read(tell[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
            told[n++] = last;
        close(tell[0]);
        must_hold(f.dir, told + before, n - before, i % 20 == 0);
    }
    close(stop[0]);
    close(stop[1]);
    for (int i = 0; i < 2; i++)
        must_end_well(readers[i], "a reader beside killed writers");
    must_hold(f.dir, told, n, true);
    print_message("%d kills, %zu incidents acknowledged and there\n", KILLS, n);
    assert_true(n > KILLS);
    free(told);
    folder_remove(&f);
}

/* Ten readers and two writers; the same on a rollback journal. */
static void crowd(int64_t fs_type)
{
    struct fl_store_opts o = {.fs_type = fs_type};
    struct folder f;
    uint32_t *told = calloc(1u << 20, sizeof(*told)), last;
    size_t n = 0, from_each[2] = {0};
    int stop[2], tell[2];
    pid_t readers[10], writers[2];
    fl_store *s = NULL;
    fl_err err = {0};

    folder_make(&f);
    must(fl_store_open(f.dir, &o, &s, &err));
    fl_store_close(s);
    assert_int_equal(pipe(stop), 0);
    for (int i = 0; i < 10; i++)
        readers[i] = start_reader(f.dir, stop);
    assert_int_equal(pipe(tell), 0); /* now, or the readers would hold its other end */
    for (int i = 0; i < 2; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            close(tell[0]);
            close(stop[1]);
            child_adds(f.dir, (uint32_t)i, 2, tell[1]);
        }
    }
    close(tell[1]);
    pause_us(CROWD_SECONDS * 1000000L);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        kill(writers[i], SIGKILL);
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        if (!WIFSIGNALED(status))
            fail_msg("writer %d ended by itself, status %x", i, status);
    }
    while (read(tell[0], &last, sizeof(last)) == (ssize_t)sizeof(last)) {
        told[n++] = last;
        from_each[last % 2]++;
    }
    close(tell[0]);
    close(stop[0]);
    close(stop[1]);
    for (int i = 0; i < 10; i++)
        must_end_well(readers[i], "a reader in the crowd");
    must_hold(f.dir, told, n, true);
    print_message("%zu and %zu incidents by two writers under ten readers\n", from_each[0],
                  from_each[1]);
    assert_true(n > 0); /* one that waits too long ends by itself, above */
    free(told);
    folder_remove(&f);
}

static void a_crowd_gets_along(void **state)
{
    (void)state;
    crowd(0);
}

static void add_some(const char *dir, const struct fl_store_opts *o, unsigned n)
{
    fl_store *s = NULL;
    fl_err err = {0};

    must(fl_store_open(dir, o, &s, &err));
    must(fl_store_begin(s, &err));
    for (unsigned i = 0; i < n; i++) {
        char id[32];
        fl_str lines[] = {FL_S("rank 3 died of an error"), fl_str_n(id, 0)};
        struct fl_incident inc = {.cause = FL_S("gpu.ecc"), .evidence = lines, .nevidence = 2};
        snprintf(id, sizeof(id), "s-%08u", i);
        inc.id = lines[1] = fl_str_c(id);
        must(fl_store_add(s, &inc, NULL, &err));
    }
    must(fl_store_commit(s, &err));
    fl_store_close(s);
}

/* In a child that is nobody, since root may write anywhere. */
static void as_nobody(const struct folder *f, void (*what)(const struct folder *f))
{
    pid_t pid = fork();

    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(9);
        what(f);
        _exit(0);
    }
    must_end_well(pid, "a reader of a read-only folder");
}

static void reads_it(const struct folder *f)
{
    struct fl_store_opts o = {.read_only = true};
    struct fl_store_filter all = FL_STORE_ALL;
    fl_str term = FL_S("rank");
    struct fl_store_query q = {.terms = &term, .n = 1};
    fl_store *s = NULL;
    unsigned n = 0, hits = 0;
    fl_err err = {0};

    if (fl_store_open(f->dir, &o, &s, &err) || fl_store_list(s, &all, whole_incident, &n, &err) ||
        fl_store_search(s, &q, any_hit, &hits, &err) || n != 20 || hits != 20 ||
        !fl_store_note(s) || !strstr(fl_store_note(s), "the folder cannot be written")) {
        fprintf(stderr, "%s; %u listed, %u hits, note %s\n", err.msg, n, hits,
                s && fl_store_note(s) ? fl_store_note(s) : "none");
        _exit(1);
    }
    if (fl_store_remove(s, FL_S("s-00000001"), &err) != FL_EBACKEND ||
        !strstr(err.msg, "opened for reading only"))
        _exit(2);
    if (fl_store_verify(s, NULL, NULL, &err) != 0)
        _exit(3);
    fl_store_close(s);
    s = NULL;
    if (fl_store_open(f->dir, NULL, &s, &err) != FL_EIO || !strstr(err.msg, "cannot be written")) {
        fprintf(stderr, "for writing: %s\n", err.msg);
        _exit(4);
    }
}

static void refuses_a_waiting_log(const struct folder *f)
{
    struct fl_store_opts o = {.read_only = true};
    fl_store *s = NULL;
    fl_err err = {0};

    if (fl_store_open(f->dir, &o, &s, &err) != FL_EBACKEND || !strstr(err.msg, "copy the folder")) {
        fprintf(stderr, "with a waiting log: %s\n", err.msg);
        _exit(1);
    }
}

static void read_only_folders_are_read(void **state)
{
    struct folder f;
    char log[120];
    int fd;

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 20);
    assert_int_equal(chmod(f.db, 0444), 0);
    assert_int_equal(chmod(f.dir, 0555), 0);
    as_nobody(&f, reads_it);
    assert_int_equal(chmod(f.dir, 0755), 0);
    snprintf(log, sizeof(log), "%s-wal", f.db);
    fd = open(log, O_WRONLY | O_CREAT, 0444);
    assert_true(fd >= 0 && write(fd, "something", 9) == 9 && close(fd) == 0);
    assert_int_equal(chmod(f.dir, 0555), 0);
    as_nobody(&f, refuses_a_waiting_log);
    assert_int_equal(chmod(f.dir, 0755), 0);
    folder_remove(&f);
}

static void nothing_there_is_said(void **state)
{
    struct fl_store_opts o = {.read_only = true};
    struct folder f;
    fl_store *s = NULL;
    fl_err err = {0};
    int fd;

    (void)state;
    folder_make(&f);
    must_fail(fl_store_open(f.dir, &o, &s, &err), FL_ENOTFOUND, "there is no incident memory yet");
    fd = open(f.db, O_WRONLY | O_CREAT, 0600); /* made, and killed before it had a schema */
    close(fd);
    must_fail(fl_store_open(f.dir, &o, &s, &err), FL_ENOTFOUND, "there is no incident memory yet");
    must(fl_store_open(f.dir, NULL, &s, &err));
    fl_store_close(s);
    must_fail(fl_store_open("/dev/null/x", NULL, &s, &err), FL_EIO, "/dev/null");
    folder_remove(&f);
}

static void overwrite(const char *path, long at, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

/* What can be saved is whole, and with what is lost it is all there was. */
static bool salvages(fl_store *s)
{
    struct fl_store_salvaged done = {0};
    unsigned n = 0;
    fl_buf out;
    fl_err err = {0};

    fl_buf_init(&out, 1u << 24);
    if (fl_store_salvage(s, keep_bytes, &out, &done, &err) == 0) {
        must(fl_incidents_parse(fl_buf_str(&out), "saved.yaml", count_whole, &n, &err));
        assert_int_equal(n, done.saved);
        if (done.saved + done.lost != 400)
            fail_msg("%u saved and %u lost of 400", (unsigned)done.saved, (unsigned)done.lost);
    }
    fl_buf_dispose(&out);
    return done.saved > 0;
}

/* Each page in turn filled with 0xA5: what can be read may be read, and what cannot is said. */
static void damaged_pages_are_told(void **state)
{
    struct folder f;
    struct stat st;
    char page[4096], saved[4096];
    unsigned told = 0, found = 0, rescued = 0;
    fl_err err = {0};
    int fd;

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 400);
    assert_int_equal(stat(f.db, &st), 0);
    memset(page, 0xA5, sizeof(page));
    fd = open(f.db, O_RDONLY);
    for (long at = 0; at < st.st_size; at += 4096) {
        struct fl_store_opts o = {.read_only = true};
        struct fl_store_filter all = FL_STORE_ALL;
        fl_str term = FL_S("rank");
        struct fl_store_query q = {.terms = &term, .n = 1, .k = 500};
        fl_store *s = NULL;
        unsigned n = 0, hits = 0;
        int r;
        assert_int_equal(pread(fd, saved, sizeof(saved), at), sizeof(saved));
        overwrite(f.db, at, page, sizeof(page));
        r = fl_store_open(f.dir, &o, &s, &err);
        if (!r)
            r = fl_store_list(s, &all, whole_incident, &n, &err);
        if (!r)
            r = fl_store_search(s, &q, any_hit, &hits, &err);
        if (r && (!strstr(err.msg, "is damaged") || !strstr(err.msg, "--salvage")))
            fail_msg("page %ld: %d: \"%s\" instead of what to do", at / 4096, r, err.msg);
        told += r != 0;
        rescued += s && salvages(s);
        if (s)
            found += fl_store_verify(s, NULL, NULL, &err) != 0;
        else
            found++;
        fl_store_close(s);
        overwrite(f.db, at, saved, sizeof(saved));
    }
    close(fd);
    print_message("%ld pages: %u failed a reading, %u a check, %u left something to save\n",
                  (long)st.st_size / 4096, told, found, rescued);
    assert_true(told > 0 && found >= told && rescued > st.st_size / 8192);
    folder_remove(&f);
}

static void cut_files_are_told(void **state)
{
    struct folder f;
    struct stat st;
    fl_store *s = NULL;
    struct fl_store_filter all = FL_STORE_ALL;
    unsigned n = 0;
    fl_err err = {0};
    int r;

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 400);
    assert_int_equal(stat(f.db, &st), 0);
    assert_int_equal(truncate(f.db, st.st_size / 8192 * 4096), 0);
    r = fl_store_open(f.dir, NULL, &s, &err);
    if (!r)
        r = fl_store_list(s, &all, whole_incident, &n, &err);
    if (r != FL_EBACKEND || !strstr(err.msg, "is damaged"))
        fail_msg("a cut database gives %d: %s", r, err.msg);
    fl_store_close(s);
    s = NULL;
    overwrite(f.db, 0, "This is text.....", 16);
    must_fail(fl_store_open(f.dir, NULL, &s, &err), FL_EBACKEND, "is damaged");
    folder_remove(&f);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;

    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, &why))
        fail_msg("%s: %s", sql, why ? why : sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void other_databases_are_refused(void **state)
{
    struct fl_store_opts ro = {.read_only = true};
    struct folder f;
    struct stat before, after;
    fl_store *s = NULL;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 3);
    run_sql(f.db, "PRAGMA journal_mode=DELETE; PRAGMA user_version=99");
    assert_int_equal(stat(f.db, &before), 0);
    must_fail(fl_store_open(f.dir, NULL, &s, &err), FL_EBACKEND,
              "was written by a newer Faultline (schema 99, this one knows up to 1)");
    must_fail(fl_store_open(f.dir, &ro, &s, &err), FL_EBACKEND, "update Faultline here");
    assert_int_equal(stat(f.db, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec); /* not even its journal */
    folder_remove(&f);
    folder_make(&f);
    run_sql(f.db, "CREATE TABLE bookmarks(url TEXT); PRAGMA application_id=77");
    must_fail(fl_store_open(f.dir, NULL, &s, &err), FL_EBACKEND, "another program's database");
    folder_remove(&f);
}

/* Steps of the schema: in order, from where it stands, all or none. */
static void schemas_move_forward(void **state)
{
    static const struct sq_migration good[] = {{1, "not reached, it is there"},
                                               {2, "CREATE TABLE two(x INTEGER) STRICT"},
                                               {3, "ALTER TABLE incident ADD COLUMN three TEXT;"
                                                   "INSERT INTO meta VALUES('three', x'33')"}};
    static const struct sq_migration bad[] = {{2, "CREATE TABLE gone(x INTEGER) STRICT"},
                                              {3, "this is no SQL"}};
    struct sq q = {.db = NULL};
    struct folder f;
    int64_t n = -1;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 3);
    q.path = f.db;
    assert_int_equal(sqlite3_open(f.db, &q.db), SQLITE_OK);
    must_fail(sq_schema(&q, bad, 2, 3, &err), FL_EBACKEND, "syntax error");
    must(sq_number(&q, "PRAGMA user_version", &n, &err));
    assert_int_equal(n, 1);
    must(sq_number(&q, "SELECT count(*) FROM sqlite_schema WHERE name = 'gone'", &n, &err));
    assert_int_equal(n, 0);
    q.read_only = true;
    must_fail(sq_schema(&q, good, 3, 3, &err), FL_EBACKEND, "written by an older Faultline");
    q.read_only = false;
    must(sq_schema(&q, good, 3, 3, &err));
    must(sq_number(&q, "PRAGMA user_version", &n, &err));
    assert_int_equal(n, 3);
    must(sq_number(&q, "SELECT count(*) FROM incident WHERE three IS NULL", &n, &err));
    assert_int_equal(n, 3);
    for (int i = 0; i < SQ_STATEMENTS; i++)
        sqlite3_finalize(q.st[i]);
    assert_int_equal(sqlite3_close(q.db), SQLITE_OK);
    folder_remove(&f);
}

static void journal_is(const char *path, const char *want)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 0), want);
    sqlite3_finalize(st);
    sqlite3_close(db);
}

static void network_folders_get_a_rollback_journal(void **state)
{
    struct fl_store_opts nfs = {.fs_type = 0x6969}, lustre = {.fs_type = 0x0BD00BD0};
    struct folder f;
    fl_store *s = NULL, *t = NULL;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 5);
    journal_is(f.db, "wal");
    must(fl_store_open(f.dir, &nfs, &s, &err));
    journal_is(f.db, "delete");
    assert_non_null(strstr(fl_store_note(s), "is on NFS"));
    must(fl_store_open(f.dir, &lustre, &t, &err)); /* and the first one holds no lock */
    assert_non_null(strstr(fl_store_note(t), "is on Lustre"));
    must(fl_store_remove(s, FL_S("s-00000001"), &err));
    must(fl_store_remove(t, FL_S("s-00000002"), &err));
    fl_store_close(t);
    fl_store_close(s);
    add_some(f.dir, &nfs, 0);
    must(fl_store_open(f.dir, NULL, &s, &err)); /* moved to a local disk */
    journal_is(f.db, "wal");
    assert_null(fl_store_note(s));
    fl_store_close(s);
    folder_remove(&f);
    crowd(0x6969);
}

/* Many who find no database at once: one makes it, all can use it. */
static void first_use_by_many(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct folder f;
        pid_t pids[8];
        folder_make(&f);
        for (int i = 0; i < 8; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                fl_store *s = NULL;
                fl_err err = {0};
                /* apart by less than the making of a database takes */
                usleep((useconds_t)(i * round * 25));
                if (fl_store_open(f.dir, NULL, &s, &err)) {
                    fprintf(stderr, "%s\n", err.msg);
                    _exit(1);
                }
                fl_store_close(s);
                _exit(0);
            }
        }
        for (int i = 0; i < 8; i++)
            must_end_well(pids[i], "a first user");
        folder_remove(&f);
    }
}

/* A writer that waits too long says so, and what it wanted is not half there. */
static void a_busy_store_is_told(void **state)
{
    struct fl_store_opts o = {.busy_ms = 50};
    struct folder f;
    fl_store *s = NULL, *t = NULL;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 3);
    must(fl_store_open(f.dir, &o, &s, &err));
    must(fl_store_open(f.dir, &o, &t, &err));
    must(fl_store_begin(s, &err));
    must_fail(fl_store_remove(t, FL_S("s-00000001"), &err), FL_EBACKEND,
              "another process has been writing for too long");
    must(fl_store_commit(s, &err));
    must(fl_store_remove(t, FL_S("s-00000001"), &err));
    fl_store_close(s);
    fl_store_close(t);
    folder_remove(&f);
}

/* A vector of the wrong size, as a hand or a fault may leave it. */
static int count_vector(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    (void)v;
    (void)err;
    ++*(unsigned *)ctx;
    return 0;
}

static void vectors_of_a_wrong_size_are_left_out(void **state)
{
    static const struct fl_store_model model = {FL_S("m"), 4, FL_VECTOR_INT8};
    int8_t data[4] = {1, 2, 3, 4};
    struct fl_store_vector v[3] = {{.data = data}, {.data = data}, {.data = data}};
    struct folder f;
    fl_store *s = NULL;
    unsigned n = 0;
    uint64_t damaged = 0;
    fl_err err = {0};

    (void)state;
    folder_make(&f);
    add_some(f.dir, NULL, 1);
    must(fl_store_open(f.dir, NULL, &s, &err));
    must(fl_store_put_vectors(s, &model, 1, v, 3, &err));
    run_sql(f.db, "UPDATE vector SET data = x'0102' WHERE number = 2");
    must(fl_store_vectors(s, &model, 0, 0, count_vector, &n, &damaged, &err));
    assert_int_equal(n, 2);
    assert_int_equal(damaged, 1);
    assert_int_equal(fl_store_verify(s, print_finding, NULL, &err), 1);
    fl_store_close(s);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_loses_nothing),
        cmocka_unit_test(a_crowd_gets_along),
        cmocka_unit_test(read_only_folders_are_read),
        cmocka_unit_test(nothing_there_is_said),
        cmocka_unit_test(damaged_pages_are_told),
        cmocka_unit_test(cut_files_are_told),
        cmocka_unit_test(other_databases_are_refused),
        cmocka_unit_test(schemas_move_forward),
        cmocka_unit_test(network_folders_get_a_rollback_journal),
        cmocka_unit_test(first_use_by_many),
        cmocka_unit_test(a_busy_store_is_told),
        cmocka_unit_test(vectors_of_a_wrong_size_are_left_out),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
