/*
 * SQLite: opening, transactions, statements, and what its errors mean.
 *
 * Journal. WAL where the folder is on a local disk: readers never wait for a writer, nor it for
 * them. WAL keeps its index in shared memory, which a network file system cannot share between
 * machines; there the rollback journal is used, and the note says so. A database that comes to such
 * a folder in WAL mode is turned over under an exclusive lock, so that no shared memory is touched.
 *
 * Synchronous: FULL (EXTRA with the rollback journal). NORMAL would lose the last transactions at a
 * power cut. One fsync for each of a person's few additions is nothing, and an import of a hundred
 * thousand is one transaction.
 *
 * Read-only folders: SQLite needs the shared-memory file to read a WAL database. Where that can
 * neither be found nor made (or the disk has no room for its 32 KiB) and no log is waiting, nobody
 * is writing, so the file is opened as immutable. With a log waiting that would show an old state,
 * and is refused with a sentence.
 *
 * Memory: SQLite's allocator stays libc's. Setting another one is process-wide and must come before
 * SQLite's first use, which a library inside somebody's program has no right to assume; the fault
 * tests set it in their own process and fail each of SQLite's allocations there.
 *
 * The page cache may grow to 32 MiB, for imports: one transaction that does not fit writes the same
 * pages to the log again and again. A search in 100,000 incidents stays below 60 MB in all.
 *
 * The file may have come from anywhere, so it is not trusted: no triggers or views run functions
 * of it that are not harmless, and its pages are checked when read.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/alloc.h"

#define BUSY_MS 10000
#define OLDEST 3037000 /* STRICT tables */
#define RETRIES 50     /* of 100 ms, for what SQLite does not wait for by itself */

static const char *const sql[SQ_STATEMENTS] = {
    [SQ_BEGIN_READ] = "BEGIN",
    [SQ_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQ_COMMIT] = "COMMIT",
    [SQ_ROLLBACK] = "ROLLBACK",
    [SQ_FIND] = "SELECT number FROM incident WHERE id = ?1",
    [SQ_SAME] = "SELECT number FROM incident WHERE shape = ?1 AND cause = ?2",
    [SQ_READ] = "SELECT id, kind, cause, title, stack, phase, explanation, fix, source, origin, "
                "created, updated, count, shape FROM incident WHERE number = ?1",
    [SQ_READ_EVIDENCE] = "SELECT text FROM evidence WHERE incident = ?1 ORDER BY line",
    [SQ_INSERT] = "INSERT INTO incident(id, kind, cause, title, stack, phase, explanation, fix, "
                  "source, origin, created, updated, count, shape) "
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    [SQ_INSERT_EVIDENCE] = "INSERT INTO evidence(incident, line, text) VALUES(?1, ?2, ?3)",
    [SQ_REPLACE] = "UPDATE incident SET id = ?1, kind = ?2, cause = ?3, title = ?4, stack = ?5, "
                   "phase = ?6, explanation = ?7, fix = ?8, source = ?9, origin = ?10, "
                   "created = ?11, updated = ?12, count = ?13, shape = ?14 WHERE number = ?15",
    [SQ_DROP_EVIDENCE] = "DELETE FROM evidence WHERE incident = ?1",
    [SQ_COUNT_ON] = "UPDATE incident SET count = min(count + ?2, 4611686018427387904), "
                    "updated = max(updated, ?3) WHERE number = ?1",
    [SQ_REMOVE] = "DELETE FROM incident WHERE number = ?1",
    [SQ_LIST] = "SELECT number FROM incident WHERE (?1 IS NULL OR cause = ?1) AND "
                "(?2 IS NULL OR substr(cause, 1, length(?2)) = ?2) AND (?3 IS NULL OR kind = ?3) "
                "AND (?4 IS NULL OR origin = ?4) ORDER BY id",
    [SQ_COUNT_KINDS] = "SELECT kind, origin, count(*) FROM incident GROUP BY kind, origin",
    [SQ_COUNT_REST] = "SELECT (SELECT count(*) FROM doc), (SELECT count(*) FROM vector), "
                      "(SELECT count(*) FROM tombstone)",
    [SQ_ADD_DOC] = "INSERT INTO doc(number, text) VALUES(?1, ?2)",
    [SQ_ADD_WORDS] = "INSERT INTO words(rowid, text) VALUES(?1, ?2)",
    [SQ_DROP_WORDS] = "INSERT INTO words(words, rowid, text) "
                      "SELECT 'delete', number, text FROM doc WHERE number BETWEEN ?1 AND ?2",
    [SQ_DROP_DOCS] = "DELETE FROM doc WHERE number BETWEEN ?1 AND ?2",
    [SQ_FREQUENCY] = "SELECT fl_counts(words, ?2) FROM words WHERE words MATCH ?1 LIMIT 1",
    [SQ_TIDY] = "INSERT INTO words(words) VALUES('optimize')",
    [SQ_SEARCH] = "SELECT rowid, fl_score(words) AS score FROM words WHERE words MATCH ?1 "
                  "ORDER BY score DESC, rowid LIMIT ?2",
    [SQ_MODEL] = "SELECT number, dim, form FROM model WHERE name = ?1",
    [SQ_ADD_MODEL] = "INSERT INTO model(name, dim, form) VALUES(?1, ?2, ?3)",
    [SQ_DROP_MODEL] = "DELETE FROM model WHERE number = ?1",
    [SQ_MODELS] = "SELECT name, dim, form, (SELECT count(*) FROM vector v WHERE "
                  "v.model = m.number) FROM model m ORDER BY name",
    [SQ_ADD_VECTOR] = "INSERT INTO vector(incident, model, piece, scale, data) "
                      "SELECT number, ?2, ?3, ?4, ?5 FROM incident WHERE number = ?1",
    [SQ_DROP_VECTORS] = "DELETE FROM vector WHERE incident = ?1 AND (?2 = 0 OR model = ?2)",
    [SQ_VECTORS] = "SELECT number, incident, piece, scale, data FROM vector WHERE model = ?1 AND "
                   "number > ?2 AND number <= ?3 ORDER BY number LIMIT ?4",
    [SQ_VECTOR_OF] = "SELECT incident, piece FROM vector WHERE number = ?1",
    [SQ_MARK] = "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'vector'), "
                "(SELECT seq FROM sqlite_sequence WHERE name = 'tombstone'), "
                "(SELECT count(*) FROM vector WHERE model = ?1)",
    [SQ_TOMBSTONES] = "SELECT vector FROM tombstone WHERE model = ?1 AND mark > ?2 ORDER BY mark",
    [SQ_FORGET] = "DELETE FROM tombstone WHERE model = ?1 AND mark <= ?2",
    [SQ_MISSING] = "SELECT number FROM incident i WHERE NOT EXISTS (SELECT 1 FROM vector v WHERE "
                   "v.incident = i.number AND v.model = ?1) ORDER BY number LIMIT ?2",
    [SQ_META_GET] = "SELECT value FROM meta WHERE key = ?1",
    [SQ_META_SET] = "INSERT INTO meta(key, value) VALUES(?1, ?2) "
                    "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
};

int sq_fail(struct sq *q, int rc, fl_err *err)
{
    const char *path = q->path, *why = q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(rc);

    switch (rc == SQLITE_IOERR_NOMEM ? SQLITE_NOMEM : rc & 0xFF) {
    case SQLITE_NOMEM:
        return fl_fail_nomem(err);
    case SQLITE_FULL:
        return fl_fail(err, FL_EIO,
                       "%s: the disk is full, nothing was changed; make room and run it again",
                       path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fl_fail(err, FL_EBACKEND,
                       "%s: another process has been writing for too long; run it again", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return fl_fail(err, FL_EBACKEND,
                       "%s: is damaged (%s); keep a copy of the folder, save what can be read with "
                       "'diagnose incidents export --salvage', move the file away and import what "
                       "was saved: shipped incidents come back by themselves",
                       path, why);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return fl_fail(err, FL_EIO, "%s: cannot be written (%s); check its owner and rights", path,
                       why);
    case SQLITE_CANTOPEN:
        return fl_fail(err, FL_EIO, "%s: cannot be opened (%s); check its owner and rights", path,
                       sqlite3_system_errno(q->db) ? strerror(sqlite3_system_errno(q->db)) : why);
    case SQLITE_IOERR:
        return fl_fail(err, FL_EIO,
                       "%s: cannot be read or written (%s, code %d); check the disk "
                       "and that the file system has locks",
                       path, why, rc);
    default:
        return fl_fail(err, FL_EBACKEND, "%s: %s (SQLite code %d)", path, why, rc);
    }
}

int sq_use(struct sq *q, enum sq_sql which, sqlite3_stmt **out, fl_err *err)
{
    int rc;

    q->bad = SQLITE_OK;
    if (!q->st[which]) {
        rc = sqlite3_prepare_v3(q->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &q->st[which],
                                NULL);
        if (rc != SQLITE_OK)
            return sq_fail(q, rc, err);
    }
    sqlite3_reset(q->st[which]);
    sqlite3_clear_bindings(q->st[which]);
    *out = q->st[which];
    return FL_OK;
}

static void bound(struct sq *q, int rc)
{
    if (rc != SQLITE_OK && q->bad == SQLITE_OK)
        q->bad = rc;
}

void sq_int(struct sq *q, sqlite3_stmt *st, int at, int64_t v)
{
    bound(q, sqlite3_bind_int64(st, at, v));
}

void sq_text(struct sq *q, sqlite3_stmt *st, int at, fl_str s)
{
    bound(q, sqlite3_bind_text64(st, at, s.p ? s.p : "", s.n, SQLITE_STATIC, SQLITE_UTF8));
}

void sq_blob(struct sq *q, sqlite3_stmt *st, int at, fl_str s)
{
    bound(q, sqlite3_bind_blob64(st, at, s.p ? s.p : "", s.n, SQLITE_STATIC));
}

int sq_step(struct sq *q, sqlite3_stmt *st, fl_err *err)
{
    int rc = q->bad ? q->bad : sqlite3_step(st), r = 0;

    q->bad = SQLITE_OK;
    if (rc == SQLITE_ROW)
        return 1;
    if (rc != SQLITE_DONE)
        r = sq_fail(q, rc, err);
    sqlite3_reset(st);
    return r;
}

int sq_run(struct sq *q, sqlite3_stmt *st, fl_err *err)
{
    int r = sq_step(q, st, err);

    if (r > 0)
        sqlite3_reset(st);
    return r < 0 ? r : FL_OK;
}

fl_str sq_column(sqlite3_stmt *st, int at)
{
    const void *p = sqlite3_column_blob(st, at);
    int n = sqlite3_column_bytes(st, at);

    return fl_str_n(p, p && n > 0 ? (size_t)n : 0);
}

int sq_column_check(struct sq *q, fl_err *err)
{
    return sqlite3_errcode(q->db) == SQLITE_NOMEM ? fl_fail_nomem(err) : FL_OK;
}

int sq_exec(struct sq *q, const char *text, fl_err *err)
{
    int rc = sqlite3_exec(q->db, text, NULL, NULL, NULL);

    return rc == SQLITE_OK ? FL_OK : sq_fail(q, rc, err);
}

int sq_number(struct sq *q, const char *text, int64_t *out, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(q->db, text, -1, &st, NULL), r = FL_OK;
    int64_t v = 0;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    else if (rc != SQLITE_DONE)
        r = sq_fail(q, rc, err);
    sqlite3_finalize(st);
    if (!r)
        *out = v;
    return r;
}

int sq_begin(void *db, enum fl_store_tx kind, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, kind == FL_TX_WRITE ? SQ_BEGIN_WRITE : SQ_BEGIN_READ, &st, err);

    return r ? r : sq_run(q, st, err);
}

void sq_rollback(void *db)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;

    /* a statement in the middle of its rows would keep its snapshot */
    for (int i = 0; i < SQ_STATEMENTS; i++)
        sqlite3_reset(q->st[i]);
    if (sqlite3_get_autocommit(q->db)) /* SQLite has undone it by itself */
        return;
    if (sq_use(q, SQ_ROLLBACK, &st, NULL) == FL_OK)
        sq_run(q, st, NULL);
    else
        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
}

int sq_commit(void *db, fl_err *err)
{
    struct sq *q = db;
    sqlite3_stmt *st = NULL;
    int r = sq_use(q, SQ_COMMIT, &st, err);

    if (!r)
        r = sq_run(q, st, err);
    if (r)
        sq_rollback(q);
    return r;
}

static void sq_close(void *db)
{
    struct sq *q = db;

    if (!q)
        return;
    for (int i = 0; i < SQ_STATEMENTS; i++)
        sqlite3_finalize(q->st[i]);
    sqlite3_close_v2(q->db);
    fl_free(q->path);
    fl_free(q);
}

static const struct fl_store_ops ops = {
    .close = sq_close,
    .begin = sq_begin,
    .commit = sq_commit,
    .rollback = sq_rollback,
    .find = sq_find,
    .same = sq_same,
    .read = sq_read,
    .insert = sq_insert,
    .replace = sq_replace,
    .count_on = sq_count_on,
    .remove = sq_remove,
    .list = sq_list,
    .highest = sq_highest,
    .counts = sq_counts,
    .add_doc = sq_add_doc,
    .drop_docs = sq_drop_docs,
    .frequency = sq_frequency,
    .tidy = sq_tidy,
    .search = sq_search,
    .model = sq_model,
    .add_model = sq_add_model,
    .drop_model = sq_drop_model,
    .models = sq_models,
    .add_vector = sq_add_vector,
    .drop_vectors = sq_drop_vectors,
    .vectors = sq_vectors,
    .vector_of = sq_vector_of,
    .mark = sq_mark,
    .tombstones = sq_tombstones,
    .forget = sq_forget,
    .missing = sq_missing,
    .meta_get = sq_meta_get,
    .meta_set = sq_meta_set,
    .verify = sq_verify,
};

/* The kinds of file system whose memory is not shared, or whose locks are those of a daemon. */
static const struct {
    uint32_t type;
    const char *name;
} networks[] = {
    {0x6969, "NFS"},          {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},  {0x00C36400, "CephFS"},
    {0x65735546, "FUSE"},     {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB"},   {0x517B, "SMB"},
    {0x19830326, "BeeGFS"},   {0x5346414F, "AFS"},    {0x01021997, "9P"},    {0xAAD7AAEA, "PanFS"},
    {0x20030528, "OrangeFS"}, {0x01161970, "GFS2"},   {0x7461636F, "OCFS2"}, {0x73757245, "Coda"},
};

static const char *network_of(const char *path, int64_t type)
{
    struct statfs fs;

    if (type == 0 && statfs(path, &fs) == 0)
        type = (int64_t)fs.f_type;
    for (size_t i = 0; i < sizeof(networks) / sizeof(*networks); i++)
        if ((uint32_t)type == networks[i].type)
            return networks[i].name;
    return NULL;
}

/* file:PATH?immutable=1, everything but the plainest bytes escaped. */
static int open_immutable(struct sq *q, fl_err *err)
{
    fl_buf uri;
    int rc, r;

    fl_buf_init(&uri, 65536);
    fl_buf_addz(&uri, "file:");
    for (const char *p = q->path; *p; p++) {
        bool safe = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || strchr("/._-", *p);
        if (safe)
            fl_buf_addc(&uri, *p);
        else
            fl_buf_addf(&uri, "%%%02X", (unsigned char)*p);
    }
    fl_buf_addz(&uri, "?immutable=1");
    r = fl_buf_check(&uri, "the path of the database", err);
    if (!r) {
        rc = sqlite3_open_v2(uri.p, &q->db,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
        r = rc == SQLITE_OK ? FL_OK : sq_fail(q, rc, err);
    }
    fl_buf_dispose(&uri);
    return r;
}

/* Bytes of the log of a WAL database that wait to be written into it. */
static bool log_waits(struct sq *q, fl_err *err, int *r)
{
    struct stat st;
    fl_buf name;
    bool waits = false;

    fl_buf_init(&name, 65536);
    fl_buf_addf(&name, "%s-wal", q->path);
    *r = fl_buf_check(&name, "the path of the database", err);
    if (!*r)
        waits = stat(name.p, &st) == 0 && st.st_size > 0;
    fl_buf_dispose(&name);
    return waits;
}

/* SQLite's own handler soon sleeps for 100 ms at a time, and a process that writes without pause
 * then keeps all others out: of two such writers one stored nothing in four seconds. */
static int wait_a_little(void *ctx, int n)
{
    struct sq *q = ctx;
    struct timespec now, nap = {0, 1000000L * (1 + n % 8)};
    int64_t waited;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (n == 0)
        q->since = now;
    waited =
        (int64_t)(now.tv_sec - q->since.tv_sec) * 1000 + (now.tv_nsec - q->since.tv_nsec) / 1000000;
    if (waited >= q->busy_ms)
        return 0;
    nanosleep(&nap, NULL);
    return 1;
}

static int open_reading(struct sq *q, char **note, fl_err *err)
{
    int64_t any;
    fl_err why = {0};
    bool full;
    int r, rc = sqlite3_open_v2(q->path, &q->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK)
        sqlite3_busy_handler(q->db, wait_a_little, q);
    r = rc == SQLITE_OK ? sq_number(q, "SELECT count(*) FROM sqlite_schema", &any, &why)
                        : sq_fail(q, rc, &why);
    if (r == FL_OK)
        return FL_OK;
    full = sqlite3_extended_errcode(q->db) == SQLITE_IOERR_SHMSIZE;
    rc = sqlite3_errcode(q->db);
    if (rc != SQLITE_CANTOPEN && rc != SQLITE_READONLY && !full)
        return fl_fail(err, r, "%s", why.msg);
    if (log_waits(q, err, &r))
        return fl_fail(err, FL_EBACKEND,
                       "%s: was left with unfinished writes in a folder that cannot be written%s; "
                       "copy the folder to where it can, and use the copy",
                       q->path, full ? " (the disk is full)" : "");
    if (r)
        return r;
    sqlite3_close_v2(q->db);
    q->db = NULL;
    r = open_immutable(q, err);
    if (!r) {
        fl_buf b;
        fl_buf_init(&b, 65536);
        fl_buf_addf(&b, "%s: the %s, so it is read as it is", q->path,
                    full ? "disk is full" : "folder cannot be written");
        *note = fl_buf_take(&b);
        fl_buf_dispose(&b);
        r = *note ? FL_OK : fl_fail_nomem(err);
    }
    return r;
}

/* Changing the journal wants to be alone for a moment and does not wait by itself. */
static int journal(struct sq *q, const char *text, const char *want, fl_err *err)
{
    for (int i = 0;; i++) {
        sqlite3_stmt *st = NULL;
        int rc = sqlite3_prepare_v2(q->db, text, -1, &st, NULL);
        bool done;
        if (rc == SQLITE_OK)
            rc = sqlite3_step(st);
        done = rc == SQLITE_ROW && fl_str_ieq(sq_column(st, 0), fl_str_c(want));
        sqlite3_finalize(st);
        if (done)
            return FL_OK;
        if (rc == SQLITE_ROW && !strcmp(want, "wal"))
            return journal(q, "PRAGMA journal_mode=DELETE", "delete", err);
        if ((rc != SQLITE_BUSY && rc != SQLITE_LOCKED && rc != SQLITE_ROW) || i == RETRIES)
            return sq_fail(q, rc == SQLITE_ROW ? SQLITE_BUSY : rc, err);
        sqlite3_sleep(100);
    }
}

static int set_journal(struct sq *q, const char *network, char **note, fl_err *err)
{
    fl_buf b;
    int r;

    if (!network) {
        r = journal(q, "PRAGMA journal_mode=WAL", "wal", err);
        return r ? r : sq_exec(q, "PRAGMA synchronous=FULL", err);
    }
    r = sq_exec(q, "PRAGMA locking_mode=EXCLUSIVE", err);
    if (!r)
        r = journal(q, "PRAGMA journal_mode=DELETE", "delete", err);
    /* the lock is given back at the next access */
    if (!r)
        r = sq_exec(q,
                    "PRAGMA locking_mode=NORMAL; PRAGMA synchronous=EXTRA; "
                    "SELECT count(*) FROM sqlite_schema",
                    err);
    if (r)
        return r;
    fl_buf_init(&b, 65536);
    fl_buf_addf(&b,
                "%s: is on %s, so a rollback journal is used and readers may wait for writers; "
                "all machines that share it must honour its locks",
                q->path, network);
    *note = fl_buf_take(&b);
    fl_buf_dispose(&b);
    return *note ? FL_OK : fl_fail_nomem(err);
}

static int check_library(struct sq *q, fl_err *err)
{
    int64_t fts5 = 0;
    int r;

    if (sqlite3_libversion_number() < OLDEST)
        return fl_fail(err, FL_EBACKEND,
                       "SQLite %s is too old for the incident memory; install 3.37 or newer",
                       sqlite3_libversion());
    r = sq_number(q, "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'", &fts5, err);
    if (!r && !fts5)
        r = fl_fail(err, FL_EBACKEND,
                    "this SQLite (%s) was built without FTS5, which the incident memory needs; "
                    "install your system's own libsqlite3",
                    sqlite3_libversion());
    return r;
}

static int open_writing(struct sq *q, const struct fl_store_opts *o, char **note, fl_err *err)
{
    const char *network;
    int rc = sqlite3_open_v2(
        q->path, &q->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    int r = rc == SQLITE_OK ? FL_OK : sq_fail(q, rc, err);

    if (r)
        return r;
    sqlite3_busy_handler(q->db, wait_a_little, q);
    r = check_library(q, err);
    if (r)
        return r;
    network = network_of(q->path, o->fs_type);
    /* SQLite opens what it may not write for reading, and says so at the first write only */
    if (sqlite3_db_readonly(q->db, "main") == 1)
        return fl_fail(err, FL_EIO, "%s: cannot be written; check its owner and rights", q->path);
    /* whose file it is must be known before anything in it is changed, its journal too */
    if (network)
        r = sq_exec(q, "PRAGMA locking_mode=EXCLUSIVE", err);
    if (!r)
        r = sq_schema(q, NULL, 0, SQ_SCHEMA, err);
    if (!r)
        r = set_journal(q, network, note, err);
    if (!r)
        r = sq_schema(q, sq_migrations, sq_nmigrations, SQ_SCHEMA, err);
    return r;
}

int fl_store_sqlite(const char *path, const struct fl_store_opts *o,
                    const struct fl_store_ops **out_ops, void **db, char **note, fl_err *err)
{
    struct sq *q = fl_calloc(1, sizeof(*q));
    int r;

    if (q)
        q->path = fl_strdup_s(fl_str_c(path));
    if (!q || !q->path) {
        sq_close(q);
        return fl_fail_nomem(err);
    }
    q->read_only = o->read_only;
    q->busy_ms = o->busy_ms ? o->busy_ms : BUSY_MS;
    r = o->read_only ? open_reading(q, note, err) : open_writing(q, o, note, err);
    if (!r && o->read_only)
        r = check_library(q, err);
    if (!r && o->read_only)
        r = sq_schema(q, NULL, 0, SQ_SCHEMA, err);
    if (!r)
        r = sq_score_start(q, err);
    if (!r) {
        sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(q->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        r = sq_exec(q,
                    "PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON; PRAGMA temp_store=2; "
                    "PRAGMA journal_size_limit=16777216; PRAGMA cache_size=-32768",
                    err);
    }
    if (r) {
        sq_close(q);
        return r;
    }
    *out_ops = &ops;
    *db = q;
    return FL_OK;
}
