/*
 * Opening the memory, and keeping it complete.
 *
 * The store is the truth. The shipped corpus is imported when the store has not seen it in this
 * form, known by a hash of its bytes; incidents without a vector of the present model are embedded
 * when the memory is opened, so that what was added at noon is found at noon. The index is a file
 * of one generation, derived from the store: an index that does not fit is not used, the vectors
 * are compared one by one instead, and that is said.
 *
 * A folder that cannot be written is opened for reading: what is there is found, and nothing is
 * imported or embedded.
 */
#include "diagnose/memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/engine.h"
#include "embed/normal.h"

#define EMBED_AT_ONCE 4096 /* incidents in one transaction: others want to write too */
#define TEXTS 40           /* of one incident that are embedded */

/* The texts of an incident that are looked up: each line of evidence, then what it means. */
static bool text_of(const struct fl_incident *inc, uint32_t piece, fl_buf *out)
{
    if (piece < inc->nevidence) {
        fl_normal(fl_str_sub(inc->evidence[piece], 0, FL_PIECE_TEXT), out);
        return true;
    }
    if (piece > inc->nevidence || (!inc->title.n && !inc->explanation.n))
        return false;
    fl_normal(inc->title, out);
    fl_buf_addc(out, ' ');
    fl_normal(inc->explanation, out);
    return true;
}

/* For the search by words an incident is one document: a line of the log has words of several of
 * its lines. (One a line found the right cause first in 49 of 100 cases, one an incident in 59.) */
static bool words_of(void *ctx, const struct fl_incident *inc, uint32_t piece, fl_buf *out)
{
    fl_buf text;

    (void)ctx;
    fl_buf_init(&text, 1u << 20);
    for (uint32_t i = 0; piece == 0 && text_of(inc, i, &text); i++)
        fl_buf_addc(&text, ' ');
    if (text.n)
        fl_store_words(fl_buf_str(&text), out);
    if (text.bad)
        out->bad = text.bad;
    fl_buf_dispose(&text);
    return piece == 0;
}

/* Incidents of one shape have lines of the same shapes, in any order. */
static void shape_of(void *ctx, const struct fl_incident *inc, fl_buf *out)
{
    uint64_t sum = 0, product = 1;

    (void)ctx;
    for (size_t i = 0; i < inc->nevidence; i++) {
        struct fl_tag tag = {0, 0};
        fl_gather_tag(inc->evidence[i], false, &tag);
        sum += tag.a;
        product *= tag.a | 1;
    }
    if (inc->nevidence)
        fl_buf_addf(out, "%016llx%016llx", (unsigned long long)sum, (unsigned long long)product);
}

int fl_memory_home(const char *home, char *out, size_t cap, fl_err *err)
{
    const char *named = home ? home : getenv("FAULTLINE_HOME"), *xdg = getenv("XDG_DATA_HOME"),
               *user = getenv("HOME");
    int n = -1;

    if (named && *named)
        n = snprintf(out, cap, "%s", named);
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, cap, "%s/faultline", xdg);
    else if (user && user[0] == '/')
        n = snprintf(out, cap, "%s/.local/share/faultline", user);
    if (n < 0 || (size_t)n >= cap)
        return fl_fail(err, FL_EUSAGE,
                       "no folder for past incidents is known: set $FAULTLINE_HOME or $HOME");
    return FL_OK;
}

int fl_memory_open_model(struct fl_memory *m, const char *data, fl_err *err)
{
    char path[4300];
    int r;

    snprintf(path, sizeof(path), "%s/embed/model/tokens.model", data);
    r = fl_tokenizer_open(path, &m->tokens, err);
    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/embed/model/table.bin", data);
    return fl_static_open(path, m->tokens, &m->embedder, err);
}

static int open_store(struct fl_memory *m, bool read_only, fl_err *err)
{
    struct fl_store_opts o = {.read_only = read_only,
                              .hooks = {.text = words_of, .shape = shape_of}};
    fl_err why = {0};
    int r = fl_store_open(m->dir, &o, &m->store, &why);

    m->read_only = read_only;
    if (r == FL_EIO && !read_only) { /* a folder that cannot be written may still be read */
        o.read_only = m->read_only = true;
        if (fl_store_open(m->dir, &o, &m->store, NULL) == FL_OK)
            r = FL_OK;
    }
    if (r)
        return fl_fail(err, r, "%s", why.msg);
    if (fl_store_note(m->store))
        snprintf(m->note, sizeof(m->note), "%s", fl_store_note(m->store));
    return FL_OK;
}

int fl_memory_hash_corpus(const char *dir, char hash[33], fl_err *err)
{
    const char **names, *path;
    size_t n = 0;
    fl_arena a;
    fl_buf b;
    int r;

    fl_arena_init(&a);
    fl_buf_init(&b, 256u << 20);
    r = fl_file_list(dir, &a, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".yaml")))
            continue;
        path = fl_file_join(&a, dir, names[i]);
        fl_buf_addz(&b, names[i]);
        r = path ? fl_file_read(path, &b, err) : fl_fail_nomem(err);
    }
    if (!r)
        fl_hash128_hex(b.p, b.n, hash);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    return r;
}

/* Imports the shipped corpus when the store does not have it as it is now. */
static int import_corpus(struct fl_memory *m, const char *data, fl_err *err)
{
    struct fl_store_import how = {.clash = FL_CLASH_REPLACE, .corpus = true};
    fl_str have = {NULL, 0};
    char dir[4300], hash[33];
    fl_arena a;
    int r;

    snprintf(dir, sizeof(dir), "%s/corpus/incidents", data);
    if (m->read_only || !fl_file_is_dir(dir))
        return FL_OK;
    fl_arena_init(&a);
    r = fl_memory_hash_corpus(dir, hash, err);
    if (!r) {
        r = fl_store_meta_get(m->store, "corpus", &a, &have, err);
        r = r == FL_ENOTFOUND ? FL_OK : r;
    }
    if (!r && !fl_str_eqz(have, hash)) {
        r = fl_store_import(m->store, dir, &how, NULL, err);
        if (!r)
            r = fl_store_meta_set(m->store, "corpus", fl_str_c(hash), err);
    }
    fl_arena_dispose(&a);
    return r;
}

struct fl_store_model fl_memory_model(const struct fl_memory *m)
{
    return (struct fl_store_model){
        .name = fl_str_c(m->embedder.name), .dim = m->embedder.dim, .form = FL_VECTOR_INT8};
}

/* Eight bits a dimension: a scale, and whole numbers. */
static float to_int8(const float *v, uint32_t dim, int8_t *out)
{
    float most = 0;

    for (uint32_t i = 0; i < dim; i++)
        most = v[i] > most ? v[i] : -v[i] > most ? -v[i] : most;
    for (uint32_t i = 0; i < dim; i++) {
        float x = most > 0 ? v[i] / most * 127 : 0;
        out[i] = (int8_t)(x < 0 ? x - 0.5f : x + 0.5f);
    }
    return most / 127;
}

static int embed_incident(struct fl_memory *m, int64_t number, fl_err *err)
{
    struct fl_store_model model = fl_memory_model(m);
    struct fl_store_vector v[TEXTS];
    struct fl_incident inc;
    fl_str text[TEXTS];
    uint32_t n = 0, dim = model.dim;
    float *floats;
    int8_t *bytes;
    fl_arena a;
    fl_buf b;
    int r;

    fl_arena_init(&a);
    fl_buf_init(&b, 1u << 20);
    r = fl_store_get_number(m->store, number, &a, &inc, err);
    for (; !r && n < TEXTS; n++) {
        fl_buf_clear(&b);
        if (!text_of(&inc, n, &b))
            break;
        text[n] = b.n ? fl_arena_str(&a, fl_buf_str(&b)) : FL_S("");
    }
    floats = fl_arena_alloc(&a, (n + 1) * dim * sizeof(*floats));
    bytes = fl_arena_alloc(&a, (size_t)(n + 1) * dim);
    if (!r && (a.failed || b.bad))
        r = fl_fail_nomem(err);
    if (!r && n)
        r = m->embedder.embed(m->embedder.ctx, text, n, floats, err);
    for (uint32_t i = 0; !r && i < n; i++)
        v[i] = (struct fl_store_vector){
            .incident = number,
            .piece = i,
            .data = bytes + (size_t)i * dim,
            .scale = to_int8(floats + (size_t)i * dim, dim, bytes + (size_t)i * dim)};
    if (!r)
        r = fl_store_put_vectors(m->store, &model, number, v, n, err);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    return r == FL_ENOTFOUND ? FL_OK : r; /* removed meanwhile */
}

struct numbers {
    int64_t *v;
    size_t n, cap;
};

static int add_number(void *ctx, int64_t number, fl_err *err)
{
    struct numbers *x = ctx;

    if (fl_grow((void **)&x->v, &x->cap, x->n + 1, sizeof(*x->v)))
        return fl_fail_nomem(err);
    x->v[x->n++] = number;
    return 0;
}

/* What the store was like when all had vectors: while that is so no incident has to be looked at,
 * which in a large memory takes longer than a search. */
static bool embedded_before(struct fl_memory *m, char now[160])
{
    int64_t incident = 0, tombstone = 0;
    fl_str have = {NULL, 0};
    bool same = false;
    fl_arena a;

    now[0] = 0;
    if (fl_store_last(m->store, &incident, &tombstone, NULL))
        return false;
    snprintf(now, 160, "%s %lld %lld", m->embedder.name, (long long)incident, (long long)tombstone);
    fl_arena_init(&a);
    if (fl_store_meta_get(m->store, "embedded", &a, &have, NULL) == FL_OK)
        same = fl_str_eqz(have, now);
    fl_arena_dispose(&a);
    return same;
}

/* One transaction's worth. Which have none is asked inside of it: two processes that both gave an
 * incident vectors would each drop the other's, and an index that is being made would count wrong.
 */
static int embed_some(struct fl_memory *m, struct numbers *x,
                      int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                      uint64_t before, fl_err *err)
{
    int r = fl_store_begin(m->store, err);

    if (r)
        return r;
    x->n = 0;
    r = fl_store_missing(m->store, fl_str_c(m->embedder.name), EMBED_AT_ONCE, add_number, x, err);
    for (size_t i = 0; !r && i < x->n; i++) {
        r = embed_incident(m, x->v[i], err);
        if (!r && told && i % 256 == 0)
            r = told(ctx, before + i, before + x->n);
    }
    if (!r)
        return fl_store_commit(m->store, err);
    fl_store_rollback(m->store);
    return r;
}

int fl_memory_embed_missing(struct fl_memory *m, uint64_t *embedded,
                            int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                            fl_err *err)
{
    struct numbers x = {0};
    uint64_t done = 0;
    int64_t first = -1;
    char before[160];
    int r;

    if (embedded)
        *embedded = 0;
    if (embedded_before(m, before))
        return FL_OK;
    /* A look without a lock first: mostly there is nothing to do. */
    r = fl_store_missing(m->store, fl_str_c(m->embedder.name), 1, add_number, &x, err);
    while (!r && x.n && x.v[0] != first) { /* one that cannot be given any is passed over */
        first = x.v[0];
        r = embed_some(m, &x, told, ctx, done, err);
        done += r ? 0 : x.n;
    }
    if (!r && before[0])
        fl_store_meta_set(m->store, "embedded", fl_str_c(before), NULL);
    if (!r && embedded)
        *embedded = done;
    fl_free(x.v);
    return r;
}

void fl_memory_index_path(const struct fl_memory *m, uint64_t generation, char *out, size_t cap)
{
    snprintf(out, cap, "%s/index/vectors-%llu.index", m->dir, (unsigned long long)generation);
}

int64_t fl_memory_number(struct fl_memory *m, const char *key)
{
    fl_str text = {NULL, 0};
    uint64_t n = 0;
    fl_arena a;

    fl_arena_init(&a);
    if (fl_store_meta_get(m->store, key, &a, &text, NULL) || !fl_str_to_u64(text, &n) ||
        n > INT64_MAX)
        n = 0;
    fl_arena_dispose(&a);
    return (int64_t)n;
}

uint64_t fl_memory_generation(struct fl_memory *m)
{
    return (uint64_t)fl_memory_number(m, "generation");
}

struct loading {
    struct fl_memory *m;
    uint32_t dim;
};

static int add_fresh(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct loading *l = ctx;
    struct fl_vectors *f = &l->m->fresh;
    const int8_t *bytes = v->data;

    if (fl_grow((void **)&f->v, &f->cap, (f->n + 1) * l->dim, sizeof(*f->v)) ||
        fl_grow((void **)&f->id, &f->id_cap, f->n + 1, sizeof(*f->id)) ||
        fl_grow((void **)&f->doc, &f->doc_cap, f->n + 1, sizeof(*f->doc)))
        return fl_fail_nomem(err);
    f->doc[f->n] = (struct fl_doc){v->incident, v->piece};
    for (uint32_t i = 0; i < l->dim; i++)
        f->v[f->n * l->dim + i] = (float)bytes[i] * v->scale;
    f->id[f->n++] = v->number;
    return 0;
}

/* The lock keeps the file from being cleaned away. Between the look at the database and the lock a
 * reindex may have put another generation in force: then that one is opened. */
static void open_index(struct fl_memory *m)
{
    struct fl_index_head want = {.dim = m->embedder.dim};
    uint64_t generation = fl_memory_generation(m);
    char path[4300];
    fl_err why = {0};
    int r = FL_OK;

    if (m->no_index || !generation || fl_memory_number(m, "generation.vectors") < FL_INDEX_FROM)
        return;
    snprintf(want.model, sizeof(want.model), "%s", m->embedder.name);
    for (int tries = 0; tries < 3; tries++) {
        want.generation = generation;
        fl_memory_index_path(m, generation, path, sizeof(path));
        r = fl_store_lock(path, false, true, &m->index_lock, &why);
        if (!r)
            r = fl_index_open(path, &want, FL_INDEX_ANY_GENERATION, &m->index, &why);
        if (!r)
            return;
        fl_store_unlock(&m->index_lock);
        if (fl_memory_generation(m) == generation)
            break;
        generation = fl_memory_generation(m);
    }
    snprintf(m->note, sizeof(m->note),
             "the index is not used (%.300s); incidents are compared one by one until "
             "`diagnose reindex` has run",
             why.msg);
}

int fl_memory_load(struct fl_memory *m, fl_err *err)
{
    struct fl_store_model model = fl_memory_model(m);
    struct loading l = {m, model.dim};
    uint64_t damaged = 0;
    int r;

    if (m->loaded)
        return FL_OK;
    open_index(m);
    r = fl_store_vectors(m->store, &model, m->index ? fl_index_head(m->index)->last_id : 0, 0,
                         add_fresh, &l, &damaged, err);
    if (!r && damaged && !m->note[0])
        snprintf(m->note, sizeof(m->note),
                 "%llu vectors are damaged and left out; run `diagnose reindex --full`",
                 (unsigned long long)damaged);
    m->loaded = !r;
    return r;
}

void fl_memory_unload(struct fl_memory *m)
{
    fl_index_free(m->index);
    m->index = NULL;
    fl_store_unlock(&m->index_lock);
    fl_free(m->fresh.v);
    fl_free(m->fresh.id);
    fl_free(m->fresh.doc);
    m->fresh = (struct fl_vectors){0};
    m->loaded = false;
}

/* A full disk, or a writer that takes long: what is there is found all the same. */
static int unless_late(struct fl_memory *m, int r, const fl_err *why, fl_err *err)
{
    struct fl_store_counts n;

    if ((r == FL_EIO || r == FL_EBACKEND) && fl_store_count(m->store, &n, NULL) == FL_OK) {
        snprintf(m->note, sizeof(m->note), "the memory could not be brought up to date: %.400s",
                 why->msg);
        return FL_OK;
    }
    return r ? fl_fail(err, r, "%s", why->msg) : FL_OK;
}

int fl_memory_open(const fl_engine *e, const struct fl_memory_opts *opts, fl_memory **out,
                   fl_err *err)
{
    fl_memory *m = fl_calloc(1, sizeof(*m));
    char data[4096];
    fl_err why = {0};
    int r;

    if (!m)
        return fl_fail_nomem(err);
    m->engine = e;
    m->index_lock.fd = -1;
    r = fl_memory_home(opts ? opts->home : NULL, m->dir, sizeof(m->dir) - 200, err);
    if (!r)
        r = fl_data_dir(data, sizeof(data), err);
    if (!r)
        r = fl_memory_open_model(m, data, err);
    if (!r)
        r = open_store(m, opts && opts->read_only, err);
    if (!r && !(opts && opts->no_import))
        r = unless_late(m, import_corpus(m, data, &why), &why, err);
    if (!r && !m->read_only && !(opts && opts->no_embed))
        r = unless_late(m, fl_memory_embed_missing(m, NULL, NULL, NULL, &why), &why, err);
    if (r) {
        fl_memory_free(m);
        return r;
    }
    *out = m;
    return FL_OK;
}

void fl_memory_free(fl_memory *m)
{
    if (!m)
        return;
    fl_memory_unload(m);
    fl_store_close(m->store);
    fl_embedder_dispose(&m->embedder);
    fl_tokenizer_free(m->tokens);
    fl_free(m);
}

const char *fl_memory_note(const fl_memory *m)
{
    return m->note[0] ? m->note : NULL;
}

const char *fl_memory_dir(const fl_memory *m)
{
    return m->dir;
}
