/*
 * BM25 without a look-up for each document.
 *
 * FTS5's own bm25() asks a table for the length of every document that matches: 4 us each, 3.3 ms
 * of processor time for the 725 documents of five rare words in a memory of 400,000, where walking
 * the postings takes 0.2 ms. Here the length is part of the document's number, in eight bits (exact
 * up to 127 words, then in steps of eight), so a score needs the postings alone. The number also
 * says incident and piece, which saves the join afterwards.
 *
 * Counting goes through the same door: FTS5 walks a term's postings in C and stops at a limit,
 * where "SELECT count(*)" takes a step of the virtual machine for each document, and one query
 * counts all terms of a piece.
 *
 * k1 and b are the usual 1.2 and 0.75. The weight of a term is the variant that is never negative,
 * log(1 + (N - n + 0.5) / (n + 0.5)): FTS5 gives a term of half the documents nothing at all, which
 * in a memory of ten incidents is most of them.
 */
#include "store/sqlite.h"

#include <math.h>

#include "base/alloc.h"

#define K1 1.2
#define B 0.75
#define EXACT 128
#define STEP 8
#define LONGEST 255

struct weights {
    double average; /* words a document */
    int n;
    double idf[];
};

int64_t sq_doc_number(int64_t incident, uint32_t piece, size_t words)
{
    size_t code = words < EXACT ? words : EXACT + (words - EXACT) / STEP;

    return incident * ((int64_t)1 << 24) + (int64_t)piece * 256 +
           (int64_t)(code < LONGEST ? code : LONGEST);
}

int64_t sq_doc_incident(int64_t number)
{
    return number >> 24;
}

uint32_t sq_doc_piece(int64_t number)
{
    return (uint32_t)(number >> 8 & 0xFFFF);
}

static double words_of(int64_t number)
{
    int code = (int)(number & 0xFF);

    return code < EXACT ? code : EXACT + (code - EXACT) * STEP;
}

static int count_one(const Fts5ExtensionApi *api, Fts5Context *fts, void *ctx)
{
    (void)api;
    (void)fts;
    ++*(int64_t *)ctx;
    return SQLITE_OK;
}

/* Made at the first document of a query, kept by FTS5 until its end. */
static int weights_of(const Fts5ExtensionApi *api, Fts5Context *fts, struct weights **out)
{
    int n = api->xPhraseCount(fts), rc;
    int64_t docs = 0, words = 0;
    struct weights *w = api->xGetAuxdata(fts, 0);

    if (w) {
        *out = w;
        return SQLITE_OK;
    }
    w = sqlite3_malloc64(sizeof(*w) + (size_t)n * sizeof(*w->idf));
    if (!w)
        return SQLITE_NOMEM;
    w->n = n;
    rc = api->xRowCount(fts, (sqlite3_int64 *)&docs);
    if (rc == SQLITE_OK)
        rc = api->xColumnTotalSize(fts, 0, (sqlite3_int64 *)&words);
    w->average = docs > 0 && words > 0 ? (double)words / (double)docs : 1;
    for (int i = 0; rc == SQLITE_OK && i < n; i++) {
        int64_t with = 0;
        rc = api->xQueryPhrase(fts, i, &with, count_one);
        if (docs < with)
            docs = with;
        w->idf[i] = log(1 + ((double)(docs - with) + 0.5) / ((double)with + 0.5));
    }
    if (rc == SQLITE_OK)
        rc = api->xSetAuxdata(fts, w, sqlite3_free); /* frees it on failure, too */
    else
        sqlite3_free(w);
    *out = w;
    return rc;
}

static void score(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *ctx, int nval,
                  sqlite3_value **val)
{
    struct weights *w = NULL;
    double sum = 0, length;
    int rc = weights_of(api, fts, &w);

    (void)nval;
    (void)val;
    if (rc != SQLITE_OK) {
        sqlite3_result_error_code(ctx, rc);
        return;
    }
    length = K1 * (1 - B + B * words_of(api->xRowid(fts)) / w->average);
    for (int i = 0; rc == SQLITE_OK && i < w->n; i++) {
        Fts5PhraseIter it;
        int column = -1, at = 0, n = 0;
        rc = api->xPhraseFirst(fts, i, &it, &column, &at);
        for (; rc == SQLITE_OK && column >= 0; api->xPhraseNext(fts, &it, &column, &at))
            n++;
        if (n)
            sum += w->idf[i] * n * (K1 + 1) / (n + length);
    }
    if (rc == SQLITE_OK)
        sqlite3_result_double(ctx, sum);
    else
        sqlite3_result_error_code(ctx, rc);
}

struct counting {
    int64_t n, cap;
};

static int count_capped(const Fts5ExtensionApi *api, Fts5Context *fts, void *ctx)
{
    struct counting *c = ctx;

    (void)api;
    (void)fts;
    return ++c->n < c->cap ? SQLITE_OK : SQLITE_DONE;
}

static void counts(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *ctx, int nval,
                   sqlite3_value **val)
{
    int n = api->xPhraseCount(fts), rc = SQLITE_OK;
    int64_t *v = sqlite3_malloc64(((size_t)n + 1) * sizeof(*v));

    if (!v) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (int i = 0; rc == SQLITE_OK && i < n; i++) {
        struct counting c = {0, nval > 0 ? sqlite3_value_int64(val[0]) : 1};
        rc = api->xQueryPhrase(fts, i, &c, count_capped);
        v[i] = c.n;
    }
    if (rc == SQLITE_OK) {
        sqlite3_result_blob64(ctx, v, (size_t)n * sizeof(*v), sqlite3_free);
    } else {
        sqlite3_free(v);
        sqlite3_result_error_code(ctx, rc);
    }
}

int sq_score_start(struct sq *q, fl_err *err)
{
    fts5_api *api = NULL;
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(q->db, "SELECT fts5(?1)", -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    sqlite3_finalize(st);
    if (rc == SQLITE_OK && !api)
        return fl_fail(err, FL_EBACKEND,
                       "%s: this SQLite's FTS5 takes no functions; install your "
                       "system's own libsqlite3",
                       q->path);
    if (rc == SQLITE_OK)
        rc = api->xCreateFunction(api, "fl_score", NULL, score, NULL);
    if (rc == SQLITE_OK)
        rc = api->xCreateFunction(api, "fl_counts", NULL, counts, NULL);
    return rc == SQLITE_OK ? FL_OK : sq_fail(q, rc, err);
}
