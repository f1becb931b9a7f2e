/*
 * The vectors of one model: making those that are missing, and having them all for a search.
 *
 * Vectors are rows of the store, eight bits a dimension. The index is a file of one generation,
 * derived from them: one that does not fit is not used, the vectors are compared one by one
 * instead, and that is said. What is newer than the index is always compared one by one.
 *
 * A memory has the local model's vectors, complete whenever it is opened, and may have an
 * endpoint's beside them (remote.c). The two live in spaces of their own, with their own index and
 * their own small facts; a vector is never compared with one of another space.
 */
#include "diagnose/memory.h"

#include <stdio.h>

#include "base/alloc.h"
#include "diagnose/remote.h"
#include "embed/normal.h"

#define EMBED_AT_ONCE 4096 /* incidents in one transaction: others want to write too */

struct fl_store_model fl_space_model(const struct fl_space *sp)
{
    return (struct fl_store_model){
        .name = fl_str_c(sp->embedder.name), .dim = sp->embedder.dim, .form = FL_VECTOR_INT8};
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

void fl_space_rows(uint32_t dim, int64_t incident, const float *floats, size_t n, int8_t *bytes,
                   struct fl_store_vector *v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (struct fl_store_vector){.incident = incident,
                                        .piece = (uint32_t)i,
                                        .data = bytes + i * dim,
                                        .scale = to_int8(floats + i * dim, dim, bytes + i * dim)};
}

size_t fl_incident_texts(const struct fl_incident *inc, fl_arena *a, fl_str *out)
{
    size_t n = 0;

    for (; n < inc->nevidence && n < FL_INCIDENT_TEXTS; n++)
        out[n] = fl_str_sub(inc->evidence[n], 0, FL_PIECE_TEXT);
    if (n < FL_INCIDENT_TEXTS && (inc->title.n || inc->explanation.n)) {
        const char *z = fl_arena_f(a, "%.*s %.*s", FL_FMT(inc->title), FL_FMT(inc->explanation));
        out[n++] = z ? fl_str_c(z) : FL_S("");
    }
    return n;
}

static int embed_incident(struct fl_memory *m, int64_t number, fl_err *err)
{
    struct fl_store_model model = fl_space_model(&m->local);
    struct fl_store_vector v[FL_INCIDENT_TEXTS];
    fl_str text[FL_INCIDENT_TEXTS];
    struct fl_incident inc;
    size_t n = 0;
    float *floats;
    int8_t *bytes;
    fl_arena a;
    fl_buf b;
    int r;

    fl_arena_init(&a);
    fl_buf_init(&b, 1u << 20);
    r = fl_store_get_number(m->store, number, &a, &inc, err);
    if (!r)
        n = fl_incident_texts(&inc, &a, text);
    for (size_t i = 0; i < n; i++) {
        fl_buf_clear(&b);
        fl_normal(text[i], &b);
        text[i] = b.n ? fl_arena_str(&a, fl_buf_str(&b)) : FL_S("");
    }
    floats = fl_arena_alloc(&a, (n + 1) * model.dim * sizeof(*floats));
    bytes = fl_arena_alloc(&a, (n + 1) * model.dim);
    if (!r && (a.failed || b.bad))
        r = fl_fail_nomem(err);
    if (!r && n)
        r = m->local.embedder.embed(m->local.embedder.ctx, text, n, floats, err);
    if (!r) {
        fl_space_rows(model.dim, number, floats, n, bytes, v);
        r = fl_store_put_vectors(m->store, &model, number, v, n, err);
    }
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    return r == FL_ENOTFOUND ? FL_OK : r; /* removed meanwhile */
}

int fl_numbers_add(void *numbers, int64_t number, fl_err *err)
{
    struct fl_numbers *x = numbers;

    if (fl_grow((void **)&x->v, &x->cap, x->n + 1, sizeof(*x->v)))
        return fl_fail_nomem(err);
    x->v[x->n++] = number;
    return FL_OK;
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
    snprintf(now, 160, "%s %lld %lld", m->local.embedder.name, (long long)incident,
             (long long)tombstone);
    fl_arena_init(&a);
    if (fl_store_meta_get(m->store, "embedded", &a, &have, NULL) == FL_OK)
        same = fl_str_eqz(have, now);
    fl_arena_dispose(&a);
    return same;
}

/* One transaction's worth. Which have none is asked inside of it: two processes that both gave an
 * incident vectors would each drop the other's, and an index that is being made would count wrong.
 */
static int embed_some(struct fl_memory *m, struct fl_numbers *x,
                      int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                      uint64_t before, fl_err *err)
{
    int r = fl_store_begin(m->store, err);

    if (r)
        return r;
    x->n = 0;
    r = fl_store_missing(m->store, fl_str_c(m->local.embedder.name), EMBED_AT_ONCE, fl_numbers_add,
                         x, err);
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
    struct fl_numbers x = {0};
    uint64_t done = 0;
    int64_t first = -1;
    char before[160];
    int r;

    if (embedded)
        *embedded = 0;
    if (embedded_before(m, before))
        return FL_OK;
    /* A look without a lock first: mostly there is nothing to do. */
    r = fl_store_missing(m->store, fl_str_c(m->local.embedder.name), 1, fl_numbers_add, &x, err);
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

void fl_space_index_path(const struct fl_memory *m, const struct fl_space *sp, uint64_t generation,
                         char *out, size_t cap)
{
    snprintf(out, cap, "%s/index/%s%llu.index", m->dir, sp->files, (unsigned long long)generation);
}

static void name_of(const struct fl_space *sp, const char *key, char out[64])
{
    snprintf(out, 64, "%s%s", sp->keys, key);
}

int64_t fl_space_number(struct fl_memory *m, const struct fl_space *sp, const char *key)
{
    fl_str text = {NULL, 0};
    uint64_t n = 0;
    char name[64];
    fl_arena a;

    name_of(sp, key, name);
    fl_arena_init(&a);
    if (fl_store_meta_get(m->store, name, &a, &text, NULL) || !fl_str_to_u64(text, &n) ||
        n > INT64_MAX)
        n = 0;
    fl_arena_dispose(&a);
    return (int64_t)n;
}

int fl_space_set_number(struct fl_memory *m, const struct fl_space *sp, const char *key, int64_t n,
                        fl_err *err)
{
    char text[24], name[64];

    name_of(sp, key, name);
    snprintf(text, sizeof(text), "%lld", (long long)n);
    return fl_store_meta_set(m->store, name, fl_str_c(text), err);
}

uint64_t fl_space_generation(struct fl_memory *m, const struct fl_space *sp)
{
    return (uint64_t)fl_space_number(m, sp, "generation");
}

struct loading {
    struct fl_space *sp;
    uint32_t dim;
};

static int add_fresh(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct loading *l = ctx;
    struct fl_vectors *f = &l->sp->fresh;
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
static void open_index(struct fl_memory *m, struct fl_space *sp)
{
    struct fl_index_head want = {.dim = sp->embedder.dim};
    uint64_t generation = fl_space_generation(m, sp);
    char path[4300];
    fl_err why = {0};
    int r = FL_OK;

    if (sp->no_index || !generation || fl_space_number(m, sp, "generation.vectors") < FL_INDEX_FROM)
        return;
    snprintf(want.model, sizeof(want.model), "%s", sp->embedder.name);
    for (int tries = 0; tries < 3; tries++) {
        want.generation = generation;
        fl_space_index_path(m, sp, generation, path, sizeof(path));
        r = fl_store_lock(path, false, true, &sp->index_lock, &why);
        if (!r)
            r = fl_index_open(path, &want, FL_INDEX_ANY_GENERATION, &sp->index, &why);
        if (!r)
            return;
        fl_store_unlock(&sp->index_lock);
        if (fl_space_generation(m, sp) == generation)
            break;
        generation = fl_space_generation(m, sp);
    }
    fl_memory_say(m,
                  "the index is not used (%.300s); incidents are compared one by one until "
                  "`diagnose reindex` has run",
                  why.msg);
}

int fl_space_load(struct fl_memory *m, struct fl_space *sp, fl_err *err)
{
    struct fl_store_model model = fl_space_model(sp);
    struct loading l = {sp, model.dim};
    uint64_t damaged = 0;
    int r;

    if (sp->loaded)
        return FL_OK;
    open_index(m, sp);
    r = fl_store_vectors(m->store, &model, sp->index ? fl_index_head(sp->index)->last_id : 0, 0,
                         add_fresh, &l, &damaged, err);
    if (!r && damaged)
        fl_memory_say(m, "%llu vectors are damaged and left out; run `diagnose reindex --full`",
                      (unsigned long long)damaged);
    sp->loaded = !r;
    return r;
}

void fl_space_unload(struct fl_space *sp)
{
    fl_index_free(sp->index);
    sp->index = NULL;
    fl_store_unlock(&sp->index_lock);
    fl_free(sp->fresh.v);
    fl_free(sp->fresh.id);
    fl_free(sp->fresh.doc);
    sp->fresh = (struct fl_vectors){0};
    sp->loaded = false;
}

void fl_memory_unload(struct fl_memory *m)
{
    fl_space_unload(&m->local);
    if (m->remote)
        fl_space_unload(fl_remote_space(m->remote));
}
