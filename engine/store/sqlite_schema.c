/*
 * The schema, how it grows, and how it is checked.
 *
 * The version stands in user_version, and a number of ours in application_id, so that neither
 * somebody else's database nor one from the future is ever written to: both are refused before
 * anything is changed, the journal included. A step from one version to the next is SQL, all of it
 * in one transaction with the number it leads to.
 *
 * Texts that programs choose by are TEXT; what logs and people wrote is BLOB, because it may hold a
 * NUL or be no UTF-8, on which SQLite's text functions are undefined. Numbers of incidents and
 * vectors are AUTOINCREMENT: an index file names them, and a number that came to mean another
 * incident would be found with the old one's words. Each vector that goes leaves a tombstone, by a
 * trigger, so that no way of deletion can forget it.
 *
 * The words of FTS5 are an index over `doc` and hold no second copy of its text, nor of
 * its length, which is in the document's number (sqlite_score.c). They are kept up
 * by hand and not by triggers, because FTS5 may not be called from a trigger of a schema that is
 * not trusted.
 */
#include "store/sqlite.h"

#include <stdio.h>

#include "base/alloc.h"

static const char version_1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE incident("
    "  number INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  id TEXT NOT NULL UNIQUE,"
    "  kind TEXT NOT NULL CHECK(kind IN ('incident', 'follow_on', 'harmless')),"
    "  cause TEXT NOT NULL,"
    "  title BLOB NOT NULL,"
    "  stack BLOB NOT NULL," /* one word a line */
    "  phase BLOB NOT NULL,"
    "  explanation BLOB NOT NULL,"
    "  fix BLOB NOT NULL,"
    "  source BLOB NOT NULL,"
    "  origin TEXT NOT NULL CHECK(origin IN ('user', 'corpus', 'confirmed', 'corrected')),"
    "  created TEXT NOT NULL,"
    "  updated TEXT NOT NULL,"
    "  count INTEGER NOT NULL CHECK(count > 0),"
    "  shape TEXT) STRICT;"
    "CREATE UNIQUE INDEX incident_shape ON incident(shape, cause) WHERE shape IS NOT NULL;"
    "CREATE INDEX incident_cause ON incident(cause);"
    "CREATE TABLE evidence("
    "  incident INTEGER NOT NULL REFERENCES incident(number) ON DELETE CASCADE,"
    "  line INTEGER NOT NULL,"
    "  text BLOB NOT NULL,"
    "  PRIMARY KEY(incident, line)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE doc(number INTEGER PRIMARY KEY, text BLOB NOT NULL) STRICT;"
    "CREATE VIRTUAL TABLE words USING fts5(text, content='doc', content_rowid='number', "
    "columnsize=0,"
    "  tokenize=\"ascii tokenchars '_'\");"
    "CREATE TABLE model("
    "  number INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  name TEXT NOT NULL UNIQUE,"
    "  dim INTEGER NOT NULL CHECK(dim > 0),"
    "  form TEXT NOT NULL CHECK(form IN ('int8', 'float'))) STRICT;"
    "CREATE TABLE vector("
    "  number INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  incident INTEGER NOT NULL REFERENCES incident(number) ON DELETE CASCADE,"
    "  model INTEGER NOT NULL REFERENCES model(number) ON DELETE CASCADE,"
    "  piece INTEGER NOT NULL,"
    "  scale REAL NOT NULL,"
    "  data BLOB NOT NULL) STRICT;"
    "CREATE INDEX vector_model ON vector(model);"
    "CREATE INDEX vector_incident ON vector(incident);"
    "CREATE TABLE tombstone("
    "  mark INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  model INTEGER NOT NULL,"
    "  vector INTEGER NOT NULL) STRICT;"
    "CREATE INDEX tombstone_model ON tombstone(model);"
    "CREATE TRIGGER vector_gone AFTER DELETE ON vector BEGIN"
    "  INSERT INTO tombstone(model, vector) VALUES(old.model, old.number); END;";

const struct sq_migration sq_migrations[] = {{1, version_1}};
const size_t sq_nmigrations = sizeof(sq_migrations) / sizeof(*sq_migrations);

/* The version, 0 for an empty file; refuses what is not ours or newer than us. Called inside a
 * transaction: the three answers must be of one moment, or a file that another process is just
 * making looks like a stranger's. */
static int version_of(struct sq *q, int newest, int64_t *version, fl_err *err)
{
    int64_t application = 0, tables = 0;
    int r = sq_number(q, "PRAGMA application_id", &application, err);

    if (!r)
        r = sq_number(q, "PRAGMA user_version", version, err);
    if (!r)
        r = sq_number(q, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r)
        return r;
    if (application == 0 && *version == 0 && tables == 0)
        return FL_OK;
    if (application != SQ_APPLICATION)
        return fl_fail(err, FL_EBACKEND,
                       "%s: is another program's database; move it away or name another folder",
                       q->path);
    if (*version > newest)
        return fl_fail(err, FL_EBACKEND,
                       "%s: was written by a newer Faultline (schema %lld, this one knows up to "
                       "%d); update Faultline here, or name another folder",
                       q->path, (long long)*version, newest);
    return FL_OK;
}

static int migrate(struct sq *q, const struct sq_migration *m, size_t n, int newest, fl_err *err)
{
    char text[80];
    int64_t version = 0;
    int r = version_of(q, newest, &version, err); /* again: another process may have been quicker */

    for (size_t i = 0; !r && i < n; i++) {
        if (m[i].to <= version)
            continue;
        r = sq_exec(q, m[i].sql, err);
        version = m[i].to;
    }
    snprintf(text, sizeof(text), "PRAGMA user_version=%lld; PRAGMA application_id=%d",
             (long long)version, SQ_APPLICATION);
    return r ? r : sq_exec(q, text, err);
}

int sq_schema(struct sq *q, const struct sq_migration *m, size_t n, int newest, fl_err *err)
{
    int64_t version = 0;
    int r = sq_begin(q, FL_TX_READ, err);

    if (r)
        return r;
    r = version_of(q, newest, &version, err);
    sq_rollback(q);
    if (r || version == newest)
        return r;
    if (q->read_only && version == 0)
        return fl_fail(err, FL_ENOTFOUND,
                       "%s: there is no incident memory yet; 'diagnose incidents import' makes one",
                       q->path);
    if (q->read_only)
        return fl_fail(err, FL_EBACKEND,
                       "%s: was written by an older Faultline (schema %lld); run 'diagnose doctor' "
                       "once where the folder can be written",
                       q->path, (long long)version);
    if (!m)
        return FL_OK;
    r = sq_begin(q, FL_TX_WRITE, err);
    if (r)
        return r;
    r = migrate(q, m, n, newest, err);
    if (!r)
        r = sq_commit(q, err);
    if (r)
        sq_rollback(q);
    return r;
}

struct finding {
    struct sq *q;
    fl_store_say_fn say;
    void *ctx;
    int n;
};

__attribute__((format(printf, 2, 3))) static void found(struct finding *f, const char *fmt, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    f->n++;
    if (f->say)
        f->say(f->ctx, text);
}

/* A query each of whose rows is a finding, but the row "ok". A damaged file is a finding too. */
static int each_finding(struct finding *f, const char *query, const char *what, fl_err *err)
{
    sqlite3_stmt *st = NULL;
    fl_err why = {0};
    int rc = sqlite3_prepare_v2(f->q->db, query, -1, &st, NULL), r = FL_OK;

    if (rc == SQLITE_OK)
        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            fl_str s = sq_column(st, 0);
            if (!fl_str_eqz(s, "ok"))
                found(f, "%s: %s: %.*s", f->q->path, what, FL_FMT(fl_str_sub(s, 0, 200)));
        }
    if (rc != SQLITE_DONE)
        r = sq_fail(f->q, rc, &why);
    if ((rc & 0xFF) == SQLITE_CORRUPT || (rc & 0xFF) == SQLITE_NOTADB) {
        found(f, "%s", why.msg);
        r = FL_OK;
    }
    sqlite3_finalize(st);
    return r ? fl_fail(err, r, "%s", why.msg) : FL_OK;
}

int sq_verify(void *db, fl_store_say_fn say, void *ctx, fl_err *err)
{
    struct finding f = {.q = db, .say = say, .ctx = ctx};
    int r = each_finding(&f, "PRAGMA integrity_check(20)", "integrity", err);

    if (!r)
        r = each_finding(&f,
                         "SELECT \"table\" || ' row ' || rowid FROM pragma_foreign_key_check "
                         "LIMIT 20",
                         "points to nothing", err);
    if (!r)
        r = each_finding(&f,
                         "SELECT 'vector ' || v.number FROM vector v JOIN model m ON "
                         "m.number = v.model WHERE length(v.data) <> m.dim * (CASE m.form WHEN "
                         "'int8' THEN 1 ELSE 4 END) LIMIT 20",
                         "has the wrong size, run 'diagnose reindex --full'", err);
    if (!r)
        r = each_finding(&f,
                         "SELECT 'document ' || number FROM doc WHERE (number >> 24) NOT IN "
                         "(SELECT number FROM incident) LIMIT 20",
                         "belongs to no incident", err);
    /* this check is an insert, which a file opened for reading does not take */
    if (!r && !f.q->read_only)
        r = each_finding(&f, "INSERT INTO words(words, rank) VALUES('integrity-check', 1)", "words",
                         err);
    return r ? r : f.n;
}
