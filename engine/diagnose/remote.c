/*
 * Vectors from an endpoint, beside the local model's and never instead of them.
 *
 * A larger model may know that "no route to host" and "network is unreachable" are one matter; the
 * local one is always there. So the local vectors stay complete whatever is configured here, and an
 * endpoint that is down, slow or wrong costs a sentence.
 *
 * A space of vectors is in force when a reindex has given all incidents vectors of that model.
 * Until then, and after the model has been changed, searches use the local one. Whoever answers
 * under the model's name today may not be who answered last night: before anything is added, one
 * stored line is embedded again, and when its vector has turned away nothing is mixed and nothing
 * is searched.
 *
 * What is sent is hidden as for a language model and then normalised as for the local one: times,
 * numbers, ids and folders, which most of a line consists of, do not leave the machine.
 */
#include "diagnose/remote.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/engine.h"
#include "embed/normal.h"

#define SECONDS 15  /* that a search waits for it */
#define PAUSE 60    /* seconds that it is left alone after it failed */
#define TEXT 800    /* bytes of a text: within the 512 tokens of small models */
#define AT_ONCE 64  /* incidents in one transaction */
#define SAME 0.98   /* cosine of a line with itself; int8 and a GPU's order of sums cost 0.001 */
#define SAMPLE 4096 /* vectors that the scale is measured on */
#define MILLION 1000000 /* the scale is kept in millionths */

/* Cosines of unlike lines among the local model's vectors, measured as measure() does over the
 * shipped incidents: their mean and spread. */
#define LOCAL_MEAN 0.108
#define LOCAL_SPREAD 0.223

struct fl_remote {
    struct fl_space space;
    const struct fl_embedding_config *config;
    struct fl_wire wire;
    bool open;
    const char *record, *replay;
    const volatile sig_atomic_t *cancel;
    double seconds, not_before;
    double mean, spread; /* of unlike lines; spread 0: not read yet */
    char dir[4200];      /* of the recording */
    char name[300], down[400];
};

int fl_embedding_config_read(const fl_yaml *map, const struct fl_ask_config *llm, fl_arena *a,
                             struct fl_embedding_config *out, fl_err *err)
{
    struct fl_embedder e;
    int r;

    *out = (struct fl_embedding_config){.llm = llm};
    r = fl_llm_endpoint_read(map, a, &out->endpoint, err);
    if (r)
        return r;
    if (!out->endpoint.model || !out->endpoint.model[0] ||
        strlen(out->endpoint.model) + sizeof("endpoint/") > sizeof(e.name))
        return fl_yaml_fail(map, FL_ERULE, err,
                            "an embedding endpoint needs a 'model', of at most %zu bytes: the "
                            "vectors are kept under its name",
                            sizeof(e.name) - sizeof("endpoint/"));
    return FL_OK;
}

/* ---- opening ---- */

static int take_dim(void *ctx, const struct fl_store_model *model, uint64_t vectors, fl_err *err)
{
    struct fl_space *sp = ctx;

    (void)vectors;
    (void)err;
    if (fl_str_eqz(model->name, sp->embedder.name))
        sp->embedder.dim = model->dim;
    return FL_OK;
}

/* A recording of the vectors lies beside that of the language model's answers. One that has none
 * was made without an endpoint. */
static bool without_recording(struct fl_remote *x, const struct fl_memory_opts *o)
{
    char meta[4300];

    if (!o->record && !o->replay)
        return false;
    snprintf(x->dir, sizeof(x->dir), "%.4000s/embedding", o->record ? o->record : o->replay);
    snprintf(meta, sizeof(meta), "%s/meta.json", x->dir);
    x->record = o->record ? x->dir : NULL;
    x->replay = o->replay ? x->dir : NULL;
    return o->replay && !fl_file_exists(meta);
}

int fl_remote_open(struct fl_memory *m, const struct fl_memory_opts *o, struct fl_remote **out,
                   fl_err *err)
{
    const struct fl_embedding_config *c = o && o->config ? o->config->embedding : NULL;
    struct fl_remote *x;
    char shown[300];
    int r;

    *out = NULL;
    if (!c || o->offline)
        return FL_OK;
    x = fl_calloc(1, sizeof(*x));
    if (!x)
        return fl_fail_nomem(err);
    x->config = c;
    x->cancel = o->cancel;
    x->seconds = o->seconds > 0 && o->seconds < SECONDS ? o->seconds : SECONDS;
    x->space = (struct fl_space){.keys = "remote.", .files = "remote-", .index_lock = {.fd = -1}};
    snprintf(x->space.embedder.name, sizeof(x->space.embedder.name), "endpoint/%s",
             c->endpoint.model);
    snprintf(x->name, sizeof(x->name), "%s", fl_llm_endpoint_name(&c->endpoint, shown));
    r = fl_store_models(m->store, take_dim, &x->space, err);
    if (r || without_recording(x, o)) {
        fl_remote_free(x);
        return r;
    }
    *out = x;
    return FL_OK;
}

void fl_remote_free(struct fl_remote *x)
{
    if (!x)
        return;
    fl_space_unload(&x->space);
    if (x->open)
        fl_wire_close(&x->wire);
    fl_free(x);
}

struct fl_space *fl_remote_space(struct fl_remote *x)
{
    return &x->space;
}

const char *fl_remote_name(const struct fl_remote *x)
{
    return x->name;
}

bool fl_remote_ready(struct fl_memory *m)
{
    struct fl_remote *x = m->remote;
    fl_str name = {NULL, 0};
    bool ready = false;
    fl_arena a;

    fl_arena_init(&a);
    if (x && x->space.embedder.dim &&
        fl_store_meta_get(m->store, "remote.model", &a, &name, NULL) == FL_OK)
        ready = fl_str_eqz(name, x->space.embedder.name);
    fl_arena_dispose(&a);
    return ready;
}

static int set_ready(struct fl_memory *m, bool ready, fl_err *err)
{
    return fl_store_meta_set(m->store, "remote.model",
                             ready ? fl_str_c(m->remote->space.embedder.name) : FL_S(""), err);
}

/* ---- asking ---- */

/* Vectors of texts as they may be sent, none empty. `dim` 0: whatever comes. */
static int ask(struct fl_remote *x, const fl_str *texts, size_t n, double seconds, unsigned *dim,
               float **out, fl_err *err)
{
    const struct fl_http_world *world = fl_http_world();
    struct fl_llm_embed_opts o = {.endpoint = &x->config->endpoint,
                                  .cancel = x->cancel,
                                  .deadline = seconds > 0 ? world->now(world->ctx) + seconds : 0,
                                  .dimensions = *dim};
    int r = FL_OK;

    if (!x->open) {
        r = fl_wire_open(&x->wire, x->record, x->replay, err);
        x->open = true;
    }
    if (r)
        return r;
    o.transport = x->wire.transport;
    return fl_llm_embed(&o, texts, n, out, dim, err);
}

/* Hides and normalises texts that belong together, in place; "" where nothing is left. */
static int prepare(struct fl_remote *x, const struct fl_job *job, fl_str *texts, size_t n,
                   fl_arena *a, fl_err *err)
{
    fl_redactor *hider = NULL;
    fl_buf b, normal;
    fl_str rest;
    int r = fl_hide_open(x->config->llm, &x->config->endpoint, 1, job, &hider, err);

    fl_buf_init(&b, 64u << 20);
    fl_buf_init(&normal, 1u << 20);
    for (size_t i = 0; i < n; i++) {
        fl_buf_add(&b, texts[i]);
        fl_buf_addz(&b, FL_HIDE_PART);
    }
    if (!r)
        r = fl_buf_check(&b, "what an embedding endpoint is asked", err);
    if (!r)
        r = fl_hide(hider, job, &b, err);
    rest = fl_buf_str(&b);
    for (size_t i = 0; !r && i < n; i++) {
        fl_buf_clear(&normal);
        fl_normal(fl_hide_next(&rest), &normal);
        texts[i] = normal.n ? fl_arena_str(a, fl_str_sub(fl_buf_str(&normal), 0, TEXT)) : FL_S("");
    }
    if (!r && (a->failed || normal.bad))
        r = fl_fail_nomem(err);
    fl_buf_dispose(&b);
    fl_buf_dispose(&normal);
    fl_redactor_free(hider);
    return r;
}

/* Moves those that have a text to the front; their places in `at`. */
static size_t with_text(fl_str *texts, size_t n, uint32_t *at)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (texts[i].n) {
            texts[kept] = texts[i];
            at[kept++] = (uint32_t)i;
        }
    return kept;
}

int fl_remote_pieces(struct fl_memory *m, const struct fl_pieces *p, fl_arena *a, float **out,
                     fl_err *err)
{
    struct fl_remote *x = m->remote;
    const struct fl_http_world *world = fl_http_world();
    unsigned dim = x->space.embedder.dim;
    float *v = fl_arena_alloc(a, p->n * dim * sizeof(*v)), *got = NULL;
    fl_str texts[FL_PIECES];
    uint32_t at[FL_PIECES];
    size_t n;
    int r;

    if (!v)
        return fl_fail_nomem(err);
    if (world->now(world->ctx) < x->not_before)
        return fl_fail(err, FL_EBACKEND, "%s", x->down);
    for (size_t i = 0; i < p->n; i++)
        texts[i] = p->v[i].raw;
    r = prepare(x, p->job, texts, p->n, a, err);
    n = r ? 0 : with_text(texts, p->n, at);
    if (!r && n) {
        fl_err why = {0};
        r = ask(x, texts, n, x->seconds, &dim, &got, &why);
        if (r) {
            snprintf(x->down, sizeof(x->down), "%.390s", why.msg);
            x->not_before = world->now(world->ctx) + PAUSE;
            fl_fail(err, r, "%s", why.msg);
        }
    }
    for (size_t i = 0; !r && i < n; i++)
        memcpy(v + at[i] * (size_t)dim, got + i * (size_t)dim, dim * sizeof(*v));
    fl_free(got);
    *out = v;
    return r;
}

/* ---- keeping the space complete ---- */

/* The texts of one incident as they may be sent, and which pieces they are. */
struct sendable {
    int64_t number;
    uint64_t hash; /* of the texts as they are stored */
    fl_str text[FL_INCIDENT_TEXTS];
    uint32_t at[FL_INCIDENT_TEXTS];
    size_t n;
};

static uint64_t hash_of(const fl_str *texts, size_t n)
{
    uint64_t hash = n;

    for (size_t i = 0; i < n; i++)
        hash = fl_hash64(texts[i].p, texts[i].n, hash);
    return hash;
}

static int sendable(struct fl_memory *m, int64_t number, fl_arena *a, struct sendable *out,
                    fl_err *err)
{
    struct fl_incident inc;
    size_t n;
    int r = fl_store_get_number(m->store, number, a, &inc, err);

    *out = (struct sendable){.number = number};
    if (r == FL_ENOTFOUND) /* removed meanwhile */
        return FL_OK;
    if (r)
        return r;
    n = fl_incident_texts(&inc, a, out->text);
    out->hash = hash_of(out->text, n);
    r = prepare(m->remote, NULL, out->text, n, a, err);
    out->n = r ? 0 : with_text(out->text, n, out->at);
    return r;
}

/* Stores the vectors of an incident, unless it has become another while they were made: then it is
 * still without, and has its turn the next time. */
static int put(struct fl_memory *m, const struct sendable *s, const float *floats, fl_arena *a,
               fl_err *err)
{
    struct fl_store_model model = fl_space_model(&m->remote->space);
    struct fl_store_vector v[FL_INCIDENT_TEXTS];
    int8_t *bytes = fl_arena_alloc(a, (s->n + 1) * model.dim);
    fl_str now[FL_INCIDENT_TEXTS];
    struct fl_incident inc;
    int r;

    if (!bytes)
        return fl_fail_nomem(err);
    r = fl_store_get_number(m->store, s->number, a, &inc, err);
    if (r)
        return r == FL_ENOTFOUND ? FL_OK : r; /* removed meanwhile */
    if (hash_of(now, fl_incident_texts(&inc, a, now)) != s->hash)
        return FL_OK;
    fl_space_rows(model.dim, s->number, floats, s->n, bytes, v);
    for (size_t i = 0; i < s->n; i++)
        v[i].piece = s->at[i];
    r = fl_store_put_vectors(m->store, &model, s->number, v, s->n, err);
    return r == FL_ENOTFOUND ? FL_OK : r;
}

/* Asks for some incidents at once and stores what comes: nobody who writes waits for the network.
 */
static int embed_some(struct fl_memory *m, const int64_t *numbers, size_t n, fl_err *err)
{
    struct fl_space *sp = &m->remote->space;
    struct sendable *s;
    unsigned dim = sp->embedder.dim;
    size_t ntexts = 0, at = 0;
    float *floats = NULL;
    fl_str *texts;
    fl_arena a;
    int r = FL_OK;

    fl_arena_init(&a);
    s = fl_arena_alloc(&a, n * sizeof(*s));
    texts = fl_arena_alloc(&a, n * FL_INCIDENT_TEXTS * sizeof(*texts));
    if (!s || !texts)
        r = fl_fail_nomem(err);
    for (size_t i = 0; !r && i < n; i++) {
        r = sendable(m, numbers[i], &a, &s[i], err);
        for (size_t k = 0; !r && k < s[i].n; k++)
            texts[ntexts++] = s[i].text[k];
    }
    if (!r && ntexts)
        r = ask(m->remote, texts, ntexts, 0, &dim, &floats, err);
    if (!r && ntexts) {
        sp->embedder.dim = dim;
        r = fl_store_begin(m->store, err);
        for (size_t i = 0; !r && i < n; at += s[i++].n)
            r = s[i].n ? put(m, &s[i], floats + at * dim, &a, err) : FL_OK;
        if (!r)
            r = fl_store_commit(m->store, err);
        else
            fl_store_rollback(m->store);
    }
    fl_free(floats);
    fl_arena_dispose(&a);
    return r;
}

struct first {
    int64_t incident;
    uint32_t piece, dim;
    float *v;
};

static int take_first(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct first *f = ctx;

    (void)err;
    f->incident = v->incident;
    f->piece = v->piece;
    for (uint32_t i = 0; i < f->dim; i++)
        f->v[i] = (float)((const int8_t *)v->data)[i] * v->scale;
    return 1;
}

/* The cosine of one stored vector with what the endpoint makes of its text today, when that has as
 * many dimensions. 1 when there is none. */
static int again(struct fl_memory *m, fl_arena *a, double seconds, unsigned *got, double *cosine,
                 fl_err *err)
{
    struct fl_store_model model = fl_space_model(&m->remote->space);
    struct first f = {.dim = model.dim, .v = fl_arena_alloc(a, (model.dim + 1) * sizeof(*f.v))};
    struct sendable *s = fl_arena_alloc(a, sizeof(*s));
    double inner = 0, length = 0;
    float *v = NULL;
    size_t i = 0;
    int r;

    if (!s || !f.v)
        return fl_fail_nomem(err);
    r = model.dim ? fl_store_vectors(m->store, &model, 0, 0, take_first, &f, NULL, err) : FL_OK;
    if (r < 0 || !f.incident)
        return r < 0 ? r : 1;
    r = sendable(m, f.incident, a, s, err);
    while (i < s->n && s->at[i] != f.piece)
        i++;
    if (r || i == s->n)
        return r ? r : 1;
    *got = 0;
    r = ask(m->remote, &s->text[i], 1, seconds, got, &v, err);
    for (uint32_t k = 0; !r && *got == f.dim && k < f.dim; k++) {
        inner += (double)v[k] * (double)f.v[k];
        length += (double)f.v[k] * (double)f.v[k];
    }
    *cosine = length > 0 ? inner / sqrt(length) : 0;
    fl_free(v);
    return r;
}

static int turned(const struct fl_remote *x, unsigned got, double cosine, fl_err *err)
{
    char how[80];

    if (got != x->space.embedder.dim)
        snprintf(how, sizeof(how), "%u dimensions, once %u", got, x->space.embedder.dim);
    else
        snprintf(how, sizeof(how), "a line has cosine %.2f with itself", cosine);
    return fl_fail(err, FL_EBACKEND,
                   "%s answers under the name %s with other vectors than before (%s); run "
                   "`diagnose reindex --full` to make all anew",
                   x->name, x->config->endpoint.model, how);
}

int fl_remote_probe(struct fl_memory *m, unsigned *dim, double *seconds, fl_err *err)
{
    const struct fl_http_world *world = fl_http_world();
    const fl_str line = FL_S("error nccl watchdog timeout");
    double start = world->now(world->ctx), cosine = 1;
    float *v = NULL;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    *dim = 0;
    r = again(m, &a, SECONDS, dim, &cosine, err);
    if (r == 1) { /* nothing to compare with */
        r = ask(m->remote, &line, 1, SECONDS, dim, &v, err);
        fl_free(v);
    } else if (!r && (*dim != m->remote->space.embedder.dim || cosine < SAME)) {
        r = turned(m->remote, *dim, cosine, err);
    }
    *seconds = world->now(world->ctx) - start;
    fl_arena_dispose(&a);
    return r;
}

/* Whether who answers is who answered before. With `full` the old vectors go when not. */
static int check_model(struct fl_memory *m, bool full, fl_err *err)
{
    struct fl_space *sp = &m->remote->space;
    unsigned got = 0;
    double cosine = 0;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = again(m, &a, 0, &got, &cosine, err);
    fl_arena_dispose(&a);
    if (r || (got == sp->embedder.dim && cosine >= SAME))
        return r < 0 ? r : FL_OK;
    r = set_ready(m, false, err);
    if (!r && !full)
        return turned(m->remote, got, cosine, err);
    if (!r)
        r = fl_store_drop_model(m->store, fl_str_c(sp->embedder.name), err);
    sp->embedder.dim = 0;
    return r;
}

/* ---- what its cosines are worth ---- */

struct sample {
    float *v;
    int64_t incident[SAMPLE];
    size_t n;
    uint32_t dim;
};

static int take_sample(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct sample *s = ctx;

    (void)err;
    for (uint32_t i = 0; i < s->dim; i++)
        s->v[s->n * s->dim + i] = (float)((const int8_t *)v->data)[i] * v->scale;
    s->incident[s->n++] = v->incident;
    return s->n == SAMPLE;
}

/* Mean and spread of the cosines of lines of different incidents. */
static int measure(struct fl_memory *m, struct fl_space *sp, double *mean, double *spread,
                   fl_err *err)
{
    struct fl_store_model model = fl_space_model(sp);
    struct sample *s = fl_calloc(1, sizeof(*s));
    double sum = 0, squares = 0;
    size_t n = 0;
    int r;

    if (s)
        s->v = fl_malloc((size_t)SAMPLE * model.dim * sizeof(*s->v));
    if (!s || !s->v) {
        fl_free(s);
        return fl_fail_nomem(err);
    }
    s->dim = model.dim;
    r = fl_store_vectors(m->store, &model, 0, 0, take_sample, s, NULL, err);
    for (size_t i = 0; r >= 0 && i < s->n; i++) {
        for (size_t step = 1; step < s->n && step <= 4096; step *= 4) {
            size_t k = (i + step * 7) % s->n;
            double x = 0;
            if (s->incident[i] == s->incident[k])
                continue;
            for (uint32_t d = 0; d < s->dim; d++)
                x += (double)s->v[i * s->dim + d] * (double)s->v[k * s->dim + d];
            sum += x;
            squares += x * x;
            n++;
        }
    }
    *mean = n ? sum / (double)n : 0;
    *spread = n ? sqrt(fmax(squares / (double)n - *mean * *mean, 1e-6)) : 1;
    fl_free(s->v);
    fl_free(s);
    return r < 0 ? r : FL_OK;
}

static int keep_scale(struct fl_memory *m, fl_err *err)
{
    struct fl_remote *x = m->remote;
    int r = measure(m, &x->space, &x->mean, &x->spread, err);

    if (!r)
        r = fl_space_set_number(m, &x->space, "mean", (int64_t)((x->mean + 1) * MILLION), err);
    if (!r)
        r = fl_space_set_number(m, &x->space, "spread", (int64_t)(x->spread * MILLION) + 1, err);
    return r;
}

double fl_remote_cosine(struct fl_memory *m, double cosine)
{
    struct fl_remote *x = m->remote;

    if (!(x->spread > 0)) {
        x->mean = (double)fl_space_number(m, &x->space, "mean") / MILLION - 1;
        x->spread = (double)fl_space_number(m, &x->space, "spread") / MILLION;
        x->spread = x->spread > 0 ? x->spread : 1;
    }
    return fmin(1, LOCAL_MEAN + LOCAL_SPREAD * (cosine - x->mean) / x->spread);
}

/* ---- a reindex ---- */

int fl_remote_refresh(struct fl_memory *m, bool full, uint64_t *embedded,
                      int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx, fl_err *err)
{
    struct fl_numbers x = {NULL, 0, 0};
    int r = check_model(m, full, err);

    *embedded = 0;
    if (!r)
        r = fl_store_missing(m->store, fl_str_c(m->remote->space.embedder.name), 0, fl_numbers_add,
                             &x, err);
    for (size_t at = 0; !r && at < x.n; at += AT_ONCE) {
        size_t n = x.n - at < AT_ONCE ? x.n - at : AT_ONCE;
        if (told)
            r = told(ctx, at, x.n);
        if (!r)
            r = embed_some(m, x.v + at, n, err);
        *embedded += r ? 0 : n;
    }
    if (!r && m->remote->space.embedder.dim && (*embedded || !fl_remote_ready(m)))
        r = keep_scale(m, err);
    if (!r && m->remote->space.embedder.dim)
        r = set_ready(m, true, err);
    fl_free(x.v);
    return r;
}
