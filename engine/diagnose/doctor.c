/*
 * What is there, what fits together, and what to run.
 *
 * Each part is looked at by itself and as the program would use it: the model is opened, the
 * database is read from end to end, the index is held against its checksums. Nothing is changed,
 * made or mended: who asks a doctor does not want an operation, and a damaged file must stay as it
 * is until somebody has saved what is in it.
 *
 * What makes the answers worse but leaves them is told as that. The index is never needed (the
 * vectors are compared one by one without it), nor is FAISS, nor a folder that can be written; the
 * model and a database that can be read are.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/memory.h"
#include "diagnose/remote.h"

#define ROOM (1u << 20) /* bytes that an added incident may need at worst */
#define FINDINGS 3      /* of the database that are quoted */

struct doctor {
    void (*tell)(void *ctx, const struct fl_checkup *c);
    void *ctx;
    int worst;
    fl_memory m; /* as far as it could be opened */
    char data[4096], corpus[4300];
    bool have_data, have_model;
};

__attribute__((format(printf, 5, 6))) static void say(struct doctor *d, const char *name,
                                                      enum fl_health health, const char *run,
                                                      const char *fmt, ...)
{
    struct fl_checkup c = {.name = name, .health = health, .run = run};
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    c.text = text;
    d->worst = (int)health > d->worst ? (int)health : d->worst;
    d->tell(d->ctx, &c);
}

static void look_at_folder(struct doctor *d)
{
    const char *dir = d->m.dir;
    struct statvfs fs;

    if (!fl_file_exists(dir))
        say(d, "data", FL_HEALTH_OK, NULL, "%s: not made yet; the first search makes it", dir);
    else if (!fl_file_is_dir(dir))
        say(d, "data", FL_HEALTH_BROKEN, "name a folder in $FAULTLINE_HOME or `memory: home`",
            "%s: is no folder", dir);
    else if (access(dir, R_OK | X_OK) != 0)
        say(d, "data", FL_HEALTH_BROKEN, "give this user access to the folder, or name another",
            "%s: cannot be read: %s", dir, strerror(errno));
    else if (access(dir, W_OK) != 0)
        say(d, "data", FL_HEALTH_WORSE, "let the user who runs `diagnose reindex` own the folder",
            "%s: cannot be written; searches work, nothing can be added", dir);
    else if (statvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < ROOM)
        say(d, "data", FL_HEALTH_WORSE, "free space, or name another folder",
            "%s: its disk is full; searches work, nothing can be added", dir);
    else
        say(d, "data", FL_HEALTH_OK, NULL, "%s", dir);
}

static void look_at_model(struct doctor *d)
{
    fl_err err = {0};

    d->have_data = fl_data_dir(d->data, sizeof(d->data), &err) == FL_OK;
    if (d->have_data && fl_memory_open_model(&d->m, d->data, &err) == FL_OK) {
        d->have_model = true;
        say(d, "model", FL_HEALTH_OK, NULL, "%s, %u dimensions", d->m.local.embedder.name,
            d->m.local.embedder.dim);
        return;
    }
    say(d, "model", FL_HEALTH_BROKEN,
        "install Faultline again, or set $FAULTLINE_DATA to the folder that holds embed/", "%s",
        err.msg);
}

/* What a language model is sent with. Rules need none of them. */
static void look_at_prompts(struct doctor *d)
{
    static const char *const names[] = {"diagnose", "repair", "chat", "probe"};
    char versions[200], path[4300];
    size_t n = 0;
    fl_err err = {0};
    fl_arena a;
    int r = FL_OK;

    if (!d->have_data)
        return;
    fl_arena_init(&a);
    for (size_t i = 0; !r && i < sizeof(names) / sizeof(*names); i++) {
        struct fl_prompt p;
        snprintf(path, sizeof(path), "%s/prompts/%s.md", d->data, names[i]);
        r = fl_prompt_load(path, &a, &p, &err);
        if (!r)
            n += (size_t)snprintf(versions + n, sizeof(versions) - n, "%s%s %u", i ? ", " : "",
                                  names[i], p.version);
    }
    fl_arena_dispose(&a);
    if (r)
        say(d, "prompts", FL_HEALTH_WORSE, "install Faultline again, or mend the file",
            "%s; no language model can be asked", err.msg);
    else
        say(d, "prompts", FL_HEALTH_OK, NULL, "%s", versions);
}

struct findings {
    char text[FINDINGS][300];
    size_t n;
};

static void take_finding(void *ctx, const char *text)
{
    struct findings *f = ctx;

    if (f->n < FINDINGS)
        snprintf(f->text[f->n], sizeof(f->text[0]), "%s", text);
    f->n++;
}

static const char rescue[] =
    "diagnose incidents export --salvage >saved.yaml, move incidents.db away, "
    "diagnose incidents import saved.yaml";

static bool look_at_database(struct doctor *d)
{
    struct fl_store_opts o = {.read_only = true};
    struct fl_store_counts n;
    struct findings f = {.n = 0};
    fl_err err = {0};
    int r = fl_store_open(d->m.dir, &o, &d->m.store, &err);

    if (r == FL_ENOTFOUND) {
        say(d, "database", FL_HEALTH_OK, NULL, "not made yet; the first search makes it");
        return false;
    }
    if (r) {
        say(d, "database", FL_HEALTH_BROKEN,
            strstr(err.msg, "newer") ? "install the newer Faultline that made it" : rescue, "%s",
            err.msg);
        return false;
    }
    r = fl_store_verify(d->m.store, take_finding, &f, &err);
    if (r) {
        say(d, "database", FL_HEALTH_BROKEN, rescue, "%s: is damaged: %s%s%s%s",
            fl_store_path(d->m.store), r < 0 ? err.msg : f.text[0], f.n > 1 ? "; " : "",
            f.n > 1 ? f.text[1] : "", f.n > 2 ? "; and more" : "");
        return fl_store_count(d->m.store, &n, NULL) == FL_OK;
    }
    if (fl_store_count(d->m.store, &n, &err)) {
        say(d, "database", FL_HEALTH_BROKEN, rescue, "%s", err.msg);
        return false;
    }
    say(d, "database", fl_store_note(d->m.store) ? FL_HEALTH_NOTE : FL_HEALTH_OK, NULL,
        "%llu incidents (%llu shipped, %llu confirmed or corrected, %llu added), whole%s%s",
        (unsigned long long)n.incidents, (unsigned long long)n.origins[FL_ORIGIN_CORPUS],
        (unsigned long long)(n.origins[FL_ORIGIN_CONFIRMED] + n.origins[FL_ORIGIN_CORRECTED]),
        (unsigned long long)n.origins[FL_ORIGIN_USER], fl_store_note(d->m.store) ? "; " : "",
        fl_store_note(d->m.store) ? fl_store_note(d->m.store) : "");
    return true;
}

static void look_at_corpus(struct doctor *d, bool database)
{
    fl_str have = {NULL, 0};
    char hash[33] = "";
    fl_arena a;

    if (!d->have_data)
        return;
    snprintf(d->corpus, sizeof(d->corpus), "%s/corpus/incidents", d->data);
    if (!fl_file_is_dir(d->corpus) || fl_memory_hash_corpus(d->corpus, hash, NULL)) {
        say(d, "corpus", FL_HEALTH_WORSE, "install Faultline again",
            "%s: the incidents that come with the program are not there", d->corpus);
        return;
    }
    if (!database) {
        say(d, "corpus", FL_HEALTH_OK, NULL, "there; imported by the first search");
        return;
    }
    fl_arena_init(&a);
    if (fl_store_meta_get(d->m.store, "corpus", &a, &have, NULL) || !fl_str_eqz(have, hash))
        say(d, "corpus", FL_HEALTH_WORSE, "diagnose reindex",
            "the memory does not hold the incidents of this version of the program");
    else
        say(d, "corpus", FL_HEALTH_OK, NULL, "imported");
    fl_arena_dispose(&a);
}

struct models {
    const char *ours, *remote;
    uint64_t others, other_vectors;
};

static int count_model(void *ctx, const struct fl_store_model *model, uint64_t vectors, fl_err *err)
{
    struct models *x = ctx;

    (void)err;
    if (!fl_str_eqz(model->name, x->ours) && !(x->remote && fl_str_eqz(model->name, x->remote))) {
        x->others++;
        x->other_vectors += vectors;
    }
    return 0;
}

static int count_number(void *ctx, int64_t number, fl_err *err)
{
    (void)number;
    (void)err;
    ++*(uint64_t *)ctx;
    return 0;
}

/* The vectors of the model in use: their number, or 0. */
static uint64_t look_at_vectors(struct doctor *d)
{
    struct models x = {.ours = d->m.local.embedder.name};
    struct fl_store_mark mark = {0};
    uint64_t missing = 0;
    fl_err err = {0};
    int r = fl_store_mark(d->m.store, fl_str_c(d->m.local.embedder.name), &mark, &err);
    if (d->m.remote)
        x.remote = fl_remote_space(d->m.remote)->embedder.name;

    if (!r)
        r = fl_store_missing(d->m.store, fl_str_c(d->m.local.embedder.name), 0, count_number,
                             &missing, &err);
    if (!r)
        r = fl_store_models(d->m.store, count_model, &x, &err);
    if (r)
        say(d, "vectors", FL_HEALTH_WORSE, "diagnose reindex --full", "%s", err.msg);
    else if (missing)
        say(d, "vectors", FL_HEALTH_WORSE, "diagnose reindex",
            "%llu, and %llu incidents have none of this model: they are found by words alone",
            (unsigned long long)mark.vectors, (unsigned long long)missing);
    else if (x.others)
        say(d, "vectors", FL_HEALTH_NOTE, "diagnose reindex --prune frees them",
            "%llu; %llu more of %llu other models", (unsigned long long)mark.vectors,
            (unsigned long long)x.other_vectors, (unsigned long long)x.others);
    else
        say(d, "vectors", FL_HEALTH_OK, NULL, "%llu", (unsigned long long)mark.vectors);
    return mark.vectors;
}

static bool look_at_faiss(struct doctor *d, uint64_t vectors)
{
    fl_err err = {0};

    if (fl_index_available(&err) == FL_OK) {
        say(d, "faiss", FL_HEALTH_OK, NULL, "there");
        return true;
    }
    say(d, "faiss", vectors < FL_INDEX_FROM ? FL_HEALTH_NOTE : FL_HEALTH_WORSE,
        vectors < FL_INDEX_FROM ? NULL : "build Faultline with FAISS: .ci/faiss.sh, then anew",
        "%s", err.msg);
    return false;
}

static void look_at_index(struct doctor *d, uint64_t vectors)
{
    enum fl_health bad = vectors < FL_INDEX_FROM ? FL_HEALTH_NOTE : FL_HEALTH_WORSE;
    uint64_t generation = fl_space_generation(&d->m, &d->m.local);
    struct fl_index_head want = {.dim = d->m.local.embedder.dim, .generation = generation};
    fl_index *ix = NULL;
    char path[4300];
    fl_err err = {0};
    int r;

    if (!generation) {
        say(d, "index", vectors < FL_INDEX_FROM ? FL_HEALTH_OK : bad,
            vectors < FL_INDEX_FROM ? NULL : "diagnose reindex", "none yet%s",
            vectors < FL_INDEX_FROM ? "; so few vectors are compared one by one as fast"
                                    : "; the vectors are compared one by one");
        return;
    }
    snprintf(want.model, sizeof(want.model), "%s", d->m.local.embedder.name);
    fl_space_index_path(&d->m, &d->m.local, generation, path, sizeof(path));
    r = fl_index_open(path, &want, FL_INDEX_ANY_GENERATION, &ix, &err);
    if (!r)
        r = fl_index_verify(ix, &err);
    if (r)
        say(d, "index", bad, "diagnose reindex", "generation %llu is not used: %s",
            (unsigned long long)generation, err.msg);
    else
        say(d, "index", FL_HEALTH_OK, NULL, "generation %llu, %s, %llu vectors%s",
            (unsigned long long)generation, fl_index_kind(ix),
            (unsigned long long)fl_index_head(ix)->count,
            vectors < FL_INDEX_FROM ? "; with so few it is not asked" : "");
    fl_index_free(ix);
}

/* The endpoint that makes vectors beside the local model's. Without it all goes on. */
static void look_at_endpoint(struct doctor *d, const struct fl_memory_opts *o)
{
    const struct fl_embedding_config *c = o && o->config ? o->config->embedding : NULL;
    unsigned dim = 0;
    double seconds = 0;
    char shown[300];
    fl_err err = {0};

    if (!c)
        return;
    if (o->offline) {
        say(d, "embedding", FL_HEALTH_NOTE, NULL, "%s: not asked, as --offline says",
            fl_llm_endpoint_name(&c->endpoint, shown));
        return;
    }
    if (!d->m.remote) {
        say(d, "embedding", FL_HEALTH_NOTE, "diagnose reindex",
            "%s: there is no memory yet that it could have made vectors of",
            fl_llm_endpoint_name(&c->endpoint, shown));
        return;
    }
    if (fl_remote_probe(&d->m, &dim, &seconds, &err))
        say(d, "embedding", FL_HEALTH_WORSE,
            strstr(err.msg, "reindex --full") ? "diagnose reindex --full" : NULL,
            "%s; the local model's vectors are searched alone", err.msg);
    else if (!fl_remote_ready(&d->m))
        say(d, "embedding", FL_HEALTH_WORSE, "diagnose reindex",
            "%s answers (%u dimensions, %.2f s) and has not made the vectors of the incidents yet",
            fl_remote_name(d->m.remote), dim, seconds);
    else
        say(d, "embedding", FL_HEALTH_OK, NULL, "%s, %s, %u dimensions, %.2f s",
            fl_remote_name(d->m.remote), c->endpoint.model, dim, seconds);
}

int fl_doctor(const struct fl_memory_opts *opts,
              void (*tell)(void *ctx, const struct fl_checkup *c), void *ctx, fl_err *err)
{
    struct doctor *d = fl_calloc(1, sizeof(*d));
    uint64_t vectors = 0;
    bool database;
    int r;

    if (!d)
        return fl_fail_nomem(err);
    d->tell = tell;
    d->ctx = ctx;
    d->m.local = (struct fl_space){.keys = "", .files = "vectors-", .index_lock = {.fd = -1}};
    r = fl_memory_home(opts ? opts->home : NULL, d->m.dir, sizeof(d->m.dir) - 200, err);
    if (!r) {
        look_at_folder(d);
        look_at_model(d);
        look_at_prompts(d);
        database = look_at_database(d);
        look_at_corpus(d, database);
        if (database && fl_remote_open(&d->m, opts, &d->m.remote, err))
            database = false;
        if (database && d->have_model)
            vectors = look_at_vectors(d);
        if (look_at_faiss(d, vectors) && database && d->have_model)
            look_at_index(d, vectors);
        look_at_endpoint(d, opts);
        r = d->worst;
    }
    fl_remote_free(d->m.remote);
    fl_store_close(d->m.store);
    fl_embedder_dispose(&d->m.local.embedder);
    fl_tokenizer_free(d->m.tokens);
    fl_free(d);
    return r;
}
