/*
 * A new generation of the index, beside the old one.
 *
 * One reindex at a time: a lock on a file beside the database; who comes second leaves politely.
 * The steps: embed what has no vector, take a mark of the store, write the index of the vectors up
 * to that mark under a name of its own, sync it, and then say in the database, in one transaction,
 * that it is in force. Until that moment readers use the old one; a process that is killed anywhere
 * before leaves a file that nothing names. Files that no longer are in force go when no reader has
 * them open: a reader holds a shared lock as long as it reads.
 *
 * An endpoint's vectors, where one is configured, are a space of their own and have a generation of
 * their own, made after the local one is in force.
 *
 * When only little has changed the old index is carried over and nothing is trained anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/memory.h"
#include "diagnose/remote.h"

#define CHANGED_SHARE                                                                              \
    4 /* one vector in so many may be new or gone, to carry the old index over                     \
       */

#define TRIES 5

struct source {
    fl_memory *m;
    struct fl_space *sp;
    int64_t after, first, upto; /* vectors in (after, upto]; `first`: where it starts over */
    int64_t *ids;
    float *vectors;
    size_t cap, n;
    uint32_t dim;
};

static int take_vector(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct source *s = ctx;
    const int8_t *bytes = v->data;

    (void)err;
    for (uint32_t i = 0; i < s->dim; i++)
        s->vectors[s->n * s->dim + i] = (float)bytes[i] * v->scale;
    s->ids[s->n++] = v->number;
    s->after = v->number;
    return s->n == s->cap; /* 1: enough */
}

static int next_batch(void *ctx, int64_t *ids, float *vectors, size_t cap, size_t *n, fl_err *err)
{
    struct source *s = ctx;
    struct fl_store_model model = fl_space_model(s->sp);
    int r = FL_OK;

    s->ids = ids;
    s->vectors = vectors;
    s->cap = cap;
    s->n = 0;
    if (s->after < s->upto)
        r = fl_store_vectors(s->m->store, &model, s->after, s->upto, take_vector, s, NULL, err);
    *n = s->n;
    return r < 0 ? r : FL_OK;
}

static int rewind_source(void *ctx, fl_err *err)
{
    struct source *s = ctx;

    (void)err;
    s->after = s->first;
    return FL_OK;
}

/* The numbers up to the mark, counted: what a new index will hold. */
struct counting {
    uint64_t n;
};

static int count_one(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    (void)v;
    (void)err;
    ((struct counting *)ctx)->n++;
    return FL_OK;
}

/* Carries the old index over when that is little work. 1: not possible. */
static int update(fl_memory *m, struct fl_space *sp, const struct fl_index_head *head, uint64_t old,
                  const struct fl_reindex_opts *o, const char *path, fl_err *err)
{
    struct fl_index_head want = *head;
    struct source s = {.m = m, .sp = sp, .upto = head->last_id, .dim = head->dim};
    struct fl_index_source source = {next_batch, rewind_source, &s};
    struct fl_numbers gone = {0};
    fl_index *ix = NULL;
    char from[4300];
    fl_err why = {0};
    int r;

    if (!old || (o && o->full))
        return 1;
    fl_space_index_path(m, sp, old, from, sizeof(from));
    want.generation = old;
    if (fl_index_open(from, &want, FL_INDEX_ANY_GENERATION, &ix, &why))
        return 1;
    want = *fl_index_head(ix);
    fl_index_free(ix);
    s.after = s.first = want.last_id;
    r = fl_store_tombstones(m->store, head->model[0] ? fl_str_c(head->model) : FL_S(""),
                            fl_space_number(m, sp, "generation.tombstone"), fl_numbers_add, &gone,
                            err);
    if (!r && head->count + gone.n > want.count &&
        (head->count + gone.n - want.count) * CHANGED_SHARE > want.count)
        r = 1;
    if (!r) {
        size_t kept = 0; /* only those that the old one holds */
        for (size_t i = 0; i < gone.n; i++)
            if (gone.v[i] <= want.last_id)
                gone.v[kept++] = gone.v[i];
        r = fl_index_update(from, &want, head, gone.v, kept, &source, o ? o->progress : NULL,
                            o ? o->progress_ctx : NULL, path, &why);
        r = r ? 1 : FL_OK;
    }
    fl_free(gone.v);
    return r;
}

static int write_index(fl_memory *m, struct fl_space *sp, const struct fl_index_head *head,
                       uint64_t old, const struct fl_reindex_opts *o, struct fl_reindexed *out,
                       fl_err *err)
{
    struct source s = {.m = m, .sp = sp, .upto = head->last_id, .dim = head->dim};
    struct fl_index_source source = {next_batch, rewind_source, &s};
    char path[4300];
    int r;

    fl_space_index_path(m, sp, head->generation, path, sizeof(path));
    r = update(m, sp, head, old, o, path, err);
    out->carried_over = r == FL_OK;
    if (r == 1)
        r = fl_index_build(head, &source, o ? o->progress : NULL, o ? o->progress_ctx : NULL, path,
                           err);
    return r;
}

/* Removes index files that are not in force and that nobody reads. */
static void clean_up(fl_memory *m, const struct fl_space *sp, uint64_t keep,
                     struct fl_reindexed *out)
{
    char dir[4300], path[4600];
    fl_str head = fl_str_c(sp->files);
    const char **names;
    size_t n = 0;
    fl_arena a;

    snprintf(dir, sizeof(dir), "%s/index", m->dir);
    fl_arena_init(&a);
    if (fl_file_list(dir, &a, &names, &n, NULL))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        struct fl_store_lock l = {.fd = -1};
        fl_str name = fl_str_c(names[i]);
        uint64_t g;
        if (!fl_str_starts(name, head) || !fl_str_ends(name, FL_S(".index")) ||
            !fl_str_to_u64(fl_str_sub(name, head.n, name.n - head.n - 6), &g) || g == keep)
            continue;
        snprintf(path, sizeof(path), "%s/%.200s", dir, names[i]);
        if (fl_store_lock(path, true, false, &l, NULL)) {
            out->in_use++;
            continue;
        }
        if (unlink(path) == 0)
            out->removed++;
        fl_store_unlock(&l);
    }
    fl_arena_dispose(&a);
}

static int put_in_force(fl_memory *m, struct fl_space *sp, const struct fl_index_head *head,
                        int64_t tombstone, fl_err *err)
{
    int r = fl_store_begin(m->store, err);

    if (r)
        return r;
    r = fl_space_set_number(m, sp, "generation", (int64_t)head->generation, err);
    if (!r)
        r = fl_space_set_number(m, sp, "generation.tombstone", tombstone, err);
    if (!r)
        r = fl_space_set_number(m, sp, "generation.vectors", (int64_t)head->count, err);
    if (!r)
        return fl_store_commit(m->store, err);
    fl_store_rollback(m->store);
    return r;
}

struct others {
    fl_memory *m;
    char name[200]; /* of a model that nobody uses; "": none */
};

static int find_other(void *ctx, const struct fl_store_model *model, uint64_t vectors, fl_err *err)
{
    struct others *x = ctx;
    const struct fl_remote *remote = x->m->remote;

    (void)vectors;
    (void)err;
    if (!fl_str_eqz(model->name, x->m->local.embedder.name) &&
        !(remote && fl_str_eqz(model->name, fl_remote_space(x->m->remote)->embedder.name)))
        snprintf(x->name, sizeof(x->name), "%.*s", FL_FMT(fl_str_sub(model->name, 0, 190)));
    return FL_OK;
}

static int prune(fl_memory *m, fl_err *err)
{
    int r = FL_OK;

    for (int i = 0; !r && i < 64; i++) {
        struct others x = {m, ""};
        r = fl_store_models(m->store, find_other, &x, err);
        if (r || !x.name[0])
            break;
        r = fl_store_drop_model(m->store, fl_str_c(x.name), err);
    }
    return r;
}

/* Gives vectors to what has none of this space. */
static int complete(fl_memory *m, const struct fl_space *sp, const struct fl_reindex_opts *o,
                    struct fl_reindexed *out, fl_err *err)
{
    int (*told)(void *, uint64_t, uint64_t) = o ? o->embedding : NULL;
    void *ctx = o ? o->progress_ctx : NULL;

    if (sp == &m->local)
        return fl_memory_embed_missing(m, &out->embedded, told, ctx, err);
    return fl_remote_refresh(m, o && o->full, &out->embedded, told, ctx, err);
}

/* Vectors up to the mark. In full, damaged ones are dropped with all others and made anew: which
 * incidents they were of is not known. */
static int count_vectors(fl_memory *m, struct fl_space *sp, const struct fl_reindex_opts *o,
                         struct fl_store_mark *mark, struct fl_reindexed *out, uint64_t *n,
                         fl_err *err)
{
    struct fl_store_model model = fl_space_model(sp);
    int r = FL_OK;

    for (int tries = 0; !r && tries < 2; tries++) {
        struct counting count = {0};
        uint64_t damaged = 0;
        r = fl_store_mark(m->store, model.name, mark, err);
        if (!r)
            r = fl_store_vectors(m->store, &model, 0, mark->last, count_one, &count, &damaged, err);
        *n = count.n;
        out->damaged = damaged;
        if (r || !damaged || !(o && o->full) || tries)
            break;
        r = fl_store_drop_model(m->store, model.name, err);
        if (!r)
            r = complete(m, sp, o, out, err);
    }
    return r;
}

/* The index in force holds all there is, and every byte of it is right. */
static bool nothing_new(fl_memory *m, struct fl_space *sp, uint64_t old,
                        const struct fl_store_mark *mark, struct fl_reindexed *out)
{
    struct fl_index_head want = {.dim = sp->embedder.dim, .generation = old};
    fl_index *ix = NULL;
    char path[4300];
    bool whole;

    /* As many as then and none removed since: numbers may have gone to another space's vectors. */
    if (!old || (uint64_t)fl_space_number(m, sp, "generation.vectors") != mark->vectors ||
        fl_space_number(m, sp, "generation.tombstone") != mark->tombstone)
        return false;
    snprintf(want.model, sizeof(want.model), "%s", sp->embedder.name);
    fl_space_index_path(m, sp, old, path, sizeof(path));
    if (fl_index_open(path, &want, FL_INDEX_ANY_GENERATION, &ix, NULL))
        return false;
    whole = fl_index_verify(ix, NULL) == FL_OK;
    if (whole) {
        out->vectors = fl_index_head(ix)->count;
        out->generation = old;
        out->unchanged = true;
    }
    fl_index_free(ix);
    return whole;
}

/* Whoever removes an incident meanwhile makes the count wrong, and the work is done again. */
static int write_counted(fl_memory *m, struct fl_space *sp, struct fl_index_head *head,
                         uint64_t old, const struct fl_reindex_opts *o, struct fl_store_mark *mark,
                         struct fl_reindexed *out, fl_err *err)
{
    struct fl_store_model model = fl_space_model(sp);
    fl_err why = {0};
    int r = FL_OK;

    for (int tries = 0; tries < TRIES; tries++) {
        struct fl_store_mark now = {0};
        r = count_vectors(m, sp, o, mark, out, &head->count, &why);
        head->last_id = mark->last;
        if (!r && head->count)
            r = write_index(m, sp, head, old, o, out, &why);
        if (!r || fl_store_mark(m->store, model.name, &now, NULL) ||
            now.tombstone == mark->tombstone)
            break;
    }
    return r ? fl_fail(err, r, "%s", why.msg) : FL_OK;
}

static int generation(fl_memory *m, struct fl_space *sp, const struct fl_reindex_opts *o,
                      struct fl_reindexed *out, fl_err *err)
{
    uint64_t old = fl_space_generation(m, sp);
    struct fl_index_head head = {.generation = old + 1};
    struct fl_store_mark mark = {0};
    char dir[4300];
    int r = complete(m, sp, o, out, err);

    head.dim = sp->embedder.dim; /* an endpoint's is known only now */
    snprintf(head.model, sizeof(head.model), "%s", sp->embedder.name);
    if (!r && !head.dim)
        return FL_OK;
    if (!r && sp != &m->local && fl_index_available(NULL)) { /* they are compared one by one */
        r = fl_store_mark(m->store, fl_str_c(head.model), &mark, err);
        out->vectors = mark.vectors;
        return r;
    }
    if (!r)
        r = fl_store_mark(m->store, fl_str_c(head.model), &mark, err);
    if (!r && !(o && o->full) && nothing_new(m, sp, old, &mark, out)) {
        clean_up(m, sp, old, out);
        return FL_OK;
    }
    snprintf(dir, sizeof(dir), "%s/index", m->dir);
    if (!r)
        r = fl_file_mkdirs(dir, err);
    if (!r)
        r = write_counted(m, sp, &head, old, o, &mark, out, err);
    if (!r)
        r = put_in_force(m, sp, &head, mark.tombstone, err);
    if (!r) {
        fl_store_forget(m->store, fl_str_c(head.model), mark.tombstone, NULL);
        out->vectors = head.count;
        out->generation = head.generation;
        clean_up(m, sp, head.generation, out);
    }
    return r;
}

/* The endpoint's vectors come after the local ones are in force: what goes wrong with them is told
 * and takes nothing back. */
static void remote_generation(fl_memory *m, const struct fl_reindex_opts *o,
                              struct fl_reindexed *out)
{
    struct fl_reindexed x = {0};
    fl_err why = {0};
    int r;

    if (!m->remote)
        return;
    r = generation(m, fl_remote_space(m->remote), o, &x, &why);
    out->remote_failed = r != FL_OK;
    out->remote_embedded = x.embedded;
    out->remote_vectors = x.vectors;
    out->damaged += x.damaged;
    out->removed += x.removed;
    out->in_use += x.in_use;
    if (r)
        fl_memory_say(
            m,
            "the vectors of the embedding endpoint are not up to date (%.500s); the local "
            "model's are, and the next `diagnose reindex` goes on",
            why.msg);
}

int fl_memory_reindex(fl_memory *m, const struct fl_reindex_opts *opts, struct fl_reindexed *out,
                      fl_err *err)
{
    struct fl_store_lock lock = {.fd = -1};
    char path[4300];
    int r;

    *out = (struct fl_reindexed){0};
    if (m->read_only)
        return fl_fail(err, FL_EIO, "%s cannot be written, so no index can be made in it", m->dir);
    snprintf(path, sizeof(path), "%s/reindex.lock", m->dir);
    r = fl_store_lock(path, true, false, &lock, err);
    if (r == FL_EBACKEND) {
        out->busy = true;
        return FL_OK;
    }
    if (r)
        return r;
    fl_memory_unload(m);
    r = opts && opts->prune ? prune(m, err) : FL_OK;
    if (!r)
        r = generation(m, &m->local, opts, out, err);
    if (!r ||
        fl_index_available(NULL)) /* without FAISS there is no index, and vectors all the same */
        remote_generation(m, opts, out);
    fl_store_unlock(&lock);
    m->local.no_index = false;
    return r;
}
