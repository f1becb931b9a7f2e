/*
 * What people do with incidents: list, show, add, confirm, correct, remove, import, export, check.
 *
 * The store keeps what it is given; here is decided what that is. A new incident is embedded in the
 * same call, so that the next search finds it, whatever the index was made of. When the embedding
 * cannot be stored the incident is there all the same and is embedded when the memory is next
 * opened: adding is one transaction, and the vectors are derived.
 *
 * A job that was seen before (the same shapes of lines, the same cause) is counted on the first.
 * What a person says of it is not thrown away then: what the stored one lacks is filled in, and a
 * person's word raises its origin, so that no update of the corpus takes it back. What is already
 * said is left as it is.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/ask.h"
#include "diagnose/engine.h"
#include "diagnose/memory.h"

/* ---- out ---- */

/* A text that ends at its NUL for the caller: one inside becomes U+FFFD. */
static const char *z(fl_arena *a, fl_str s)
{
    const char *plain = fl_arena_z(a, s);
    fl_buf b;

    if (!plain || !s.n || !memchr(s.p, 0, s.n))
        return plain ? plain : "";
    fl_buf_init(&b, 3 * s.n + 1);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i])
            fl_buf_addc(&b, s.p[i]);
        else
            fl_buf_addz(&b, "\xef\xbf\xbd");
    }
    plain = b.bad ? NULL : fl_arena_z(a, fl_buf_str(&b));
    a->failed |= b.bad != 0;
    fl_buf_dispose(&b);
    return plain ? plain : "";
}

static const char *const *zs(fl_arena *a, const fl_str *v, size_t n)
{
    const char **out = fl_arena_alloc(a, (n + 1) * sizeof(*out));

    for (size_t i = 0; out && i < n; i++)
        out[i] = z(a, v[i]);
    return out;
}

struct each {
    fl_past_fn fn;
    void *ctx;
};

static int give(const struct each *to, const struct fl_incident *inc, fl_err *err)
{
    struct fl_past p;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    p = (struct fl_past){.id = z(&a, inc->id),
                         .cause = z(&a, inc->cause),
                         .kind = fl_incident_kind_word(inc->kind),
                         .origin = fl_incident_origin_word(inc->origin),
                         .title = z(&a, inc->title),
                         .phase = z(&a, inc->phase),
                         .explanation = z(&a, inc->explanation),
                         .fix = z(&a, inc->fix),
                         .source = z(&a, inc->source),
                         .created = z(&a, inc->created),
                         .updated = z(&a, inc->updated),
                         .stack = zs(&a, inc->stack, inc->nstack),
                         .nstack = inc->nstack,
                         .evidence = zs(&a, inc->evidence, inc->nevidence),
                         .nevidence = inc->nevidence,
                         .seen = inc->count ? inc->count : 1};
    r = a.failed ? fl_fail_nomem(err) : to->fn(to->ctx, &p);
    fl_arena_dispose(&a);
    return r;
}

static int give_listed(void *ctx, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    (void)number;
    return give(ctx, inc, err);
}

static int filter_of(const struct fl_past_filter *f, struct fl_store_filter *out, fl_err *err)
{
    enum fl_incident_kind kind;
    enum fl_incident_origin origin;

    *out = FL_STORE_ALL;
    if (!f)
        return FL_OK;
    if (f->kind && !fl_incident_kind_of(fl_str_c(f->kind), &kind))
        return fl_fail(err, FL_EUSAGE, "'%.80s' is no kind; it is incident, follow_on or harmless",
                       f->kind);
    if (f->origin && !fl_incident_origin_of(fl_str_c(f->origin), &origin))
        return fl_fail(err, FL_EUSAGE,
                       "'%.80s' is no origin; it is user, corpus, confirmed or corrected",
                       f->origin);
    out->cause = fl_str_c(f->cause);
    out->text = fl_str_c(f->text);
    out->limit = f->limit;
    if (f->kind)
        out->kind = (int)kind;
    if (f->origin)
        out->origin = (int)origin;
    return FL_OK;
}

int fl_memory_list(fl_memory *m, const struct fl_past_filter *f, fl_past_fn each, void *ctx,
                   fl_err *err)
{
    struct each to = {each, ctx};
    struct fl_store_filter sf;
    int r = filter_of(f, &sf, err);

    return r ? r : fl_store_list(m->store, &sf, give_listed, &to, err);
}

int fl_memory_get(fl_memory *m, const char *id, fl_past_fn each, void *ctx, fl_err *err)
{
    struct each to = {each, ctx};
    struct fl_incident inc;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = fl_store_get(m->store, fl_str_c(id), &a, &inc, NULL, err);
    if (!r)
        r = give(&to, &inc, err);
    fl_arena_dispose(&a);
    return r > 0 ? FL_OK : r;
}

/* ---- in ---- */

static int check_cause(const fl_memory *m, const char *cause, fl_err *err)
{
    const struct fl_ruleset *rs = m->engine->rules;
    int i = fl_ruleset_cause(rs, fl_str_c(cause));

    if (i < 0)
        return fl_fail(err, FL_EUSAGE, "no cause '%.80s' in the taxonomy", cause);
    if (i == rs->unknown || i == rs->none)
        return fl_fail(err, FL_EUSAGE, "'%.80s' says that there is no cause; name one", cause);
    return FL_OK;
}

static void fill(fl_str *to, const char *said, bool over)
{
    if (said && (over || !to->n))
        *to = fl_str_c(said);
}

static void say(struct fl_incident *inc, const struct fl_past_said *said, bool over)
{
    if (!said)
        return;
    fill(&inc->title, said->title, over);
    fill(&inc->explanation, said->explanation, over);
    fill(&inc->fix, said->fix, over);
    fill(&inc->source, said->source, over);
}

/* Counted on a stored one: what it lacks is filled in, and a person's word counts for more. */
static int settle(fl_memory *m, const struct fl_incident *inc, struct fl_past_added *out,
                  fl_err *err)
{
    struct fl_incident have;
    struct fl_store_added again;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = fl_store_get(m->store, fl_str_c(out->id), &a, &have, NULL, err);
    if (!r && out->duplicate) {
        bool raise = inc->origin > FL_ORIGIN_CORPUS && have.origin <= FL_ORIGIN_CORPUS;
        out->filled = (inc->fix.n && !have.fix.n) || (inc->explanation.n && !have.explanation.n) ||
                      (inc->title.n && !have.title.n) || (inc->source.n && !have.source.n);
        if (!have.title.n)
            have.title = inc->title;
        if (!have.explanation.n)
            have.explanation = inc->explanation;
        if (!have.fix.n)
            have.fix = inc->fix;
        if (!have.source.n)
            have.source = inc->source;
        if (raise)
            have.origin = inc->origin;
        if (raise || out->filled)
            r = fl_store_update(m->store, &have, &again, err);
    }
    out->seen = r ? 0 : have.count ? have.count : 1;
    fl_arena_dispose(&a);
    return r;
}

/* The incident is stored; without its vectors it is found by its words until the next opening. */
static int embed_now(fl_memory *m)
{
    fl_err why = {0};

    fl_memory_unload(m);
    if (fl_memory_embed_missing(m, NULL, NULL, NULL, &why))
        fl_memory_say(
            m,
            "it is stored, but could not be embedded yet (%.400s); until `diagnose reindex` "
            "has run it is found by its words alone",
            why.msg);
    return FL_OK;
}

static int store_new(fl_memory *m, const struct fl_incident *inc, struct fl_past_added *out,
                     fl_err *err)
{
    struct fl_store_added added;
    int r = fl_store_begin(m->store, err);

    if (r)
        return r;
    r = fl_store_add(m->store, inc, &added, err);
    if (!r) {
        snprintf(out->id, sizeof(out->id), "%s", added.id);
        out->duplicate = added.duplicate;
        r = settle(m, inc, out, err);
    }
    if (!r)
        return fl_store_commit(m->store, err);
    fl_store_rollback(m->store);
    return r;
}

/* What the diagnosis says where the person said nothing. */
static void describe(fl_memory *m, const struct fl_report *r, fl_arena *a, struct fl_incident *inc)
{
    const struct fl_cause *c =
        &m->engine->rules->causes[fl_ruleset_cause(m->engine->rules, inc->cause)];
    bool same = fl_str_eqz(inc->cause, r->cause.id);
    const char *name = r->input.nfiles ? r->input.files[0].name : NULL;
    const char *slash = name ? strrchr(name, '/') : NULL;

    if (!inc->title.n)
        inc->title = fl_str_c(c->title);
    if (!inc->explanation.n && same)
        inc->explanation = fl_str_c(r->cause.summary);
    if (!inc->source.n && name && r->input.nfiles > 1)
        inc->source = fl_str_c(
            fl_arena_f(a, "%s and %zu more", slash ? slash + 1 : name, r->input.nfiles - 1));
    else if (!inc->source.n && name)
        inc->source = fl_arena_str(a, fl_str_c(slash ? slash + 1 : name));
    inc->phase = fl_str_c(r->timeline.phase);
}

int fl_memory_add_job(fl_memory *m, const fl_diagnosis *d, enum fl_past_origin origin,
                      const struct fl_past_said *said, struct fl_past_added *out, fl_err *err)
{
    static const enum fl_incident_origin origins[] = {FL_ORIGIN_USER, FL_ORIGIN_CONFIRMED,
                                                      FL_ORIGIN_CORRECTED};
    const char *cause = said && said->cause ? said->cause : d->report.cause.id;
    struct fl_incident inc = {.cause = fl_str_c(cause), .origin = origins[origin], .count = 1};
    struct fl_past_added done = {.lines = 0};
    fl_arena a;
    int r;

    if (!d->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what an incident needs; "
                       "set fl_diagnose_opts.digest");
    if (!(said && said->cause) && d->report.outcome[0] != 'd')
        return fl_fail(err, FL_ENOTFOUND, "%s; name a cause to store it as an incident",
                       d->report.outcome[0] == 'h' ? "no failure was found in this log"
                                                   : "no cause was found in this log");
    r = check_cause(m, cause, err);
    if (r)
        return r;
    fl_arena_init(&a);
    /* The diagnosis is read, not changed. */
    r = fl_evidence_of(m->engine, (struct fl_diagnosis *)(uintptr_t)d, cause, &a, &inc.evidence,
                       &inc.nevidence, &done.lines_from, err);
    if (!r && !inc.nevidence)
        r = fl_fail(err, FL_EINPUT,
                    "this log has no line that it could be found by; give one that says something");
    if (!r) {
        say(&inc, said, true);
        describe(m, &d->report, &a, &inc);
        done.lines = inc.nevidence;
        r = a.failed ? fl_fail_nomem(err) : store_new(m, &inc, &done, err);
    }
    if (!r)
        r = embed_now(m);
    fl_arena_dispose(&a);
    if (!r)
        *out = done;
    return r;
}

/* Where the title is the old cause's, the words are the diagnosis's own, and wrong with it. */
static void give_cause(const fl_memory *m, struct fl_incident *inc, const char *cause)
{
    const struct fl_ruleset *rs = m->engine->rules;
    int old = fl_ruleset_cause(rs, inc->cause), now = fl_ruleset_cause(rs, fl_str_c(cause));

    inc->cause = fl_str_c(cause);
    if (old < 0 || now < 0 || old == now || !fl_str_eqz(inc->title, rs->causes[old].title))
        return;
    inc->title = fl_str_c(rs->causes[now].title);
    inc->explanation = FL_S("");
}

int fl_memory_judge(fl_memory *m, const char *id, const struct fl_past_said *said,
                    struct fl_past_added *out, fl_err *err)
{
    struct fl_past_added done = {.lines_from = "evidence"};
    struct fl_store_added added = {0};
    struct fl_incident inc;
    fl_arena a;
    int r = said && said->cause ? check_cause(m, said->cause, err) : FL_OK;

    if (!r)
        r = fl_store_begin(m->store, err);
    if (r)
        return r;
    fl_arena_init(&a);
    r = fl_store_get(m->store, fl_str_c(id), &a, &inc, NULL, err);
    if (!r) {
        inc.origin = said && said->cause ? FL_ORIGIN_CORRECTED : FL_ORIGIN_CONFIRMED;
        if (said && said->cause)
            give_cause(m, &inc, said->cause);
        say(&inc, said, true);
        done.lines = inc.nevidence;
        r = fl_store_update(m->store, &inc, &added, err);
    }
    if (!r) {
        snprintf(done.id, sizeof(done.id), "%s", added.id);
        done.duplicate = added.duplicate;
        r = settle(m, &inc, &done, err);
    }
    if (!r)
        r = fl_store_commit(m->store, err);
    else
        fl_store_rollback(m->store);
    if (!r)
        r = embed_now(m);
    fl_arena_dispose(&a);
    if (!r)
        *out = done;
    return r;
}

int fl_memory_remove(fl_memory *m, const char *id, fl_err *err)
{
    fl_memory_unload(m);
    return fl_store_remove(m->store, fl_str_c(id), err);
}

/* ---- many ---- */

struct causes {
    const fl_engine *e;
    bool strict;
    uint64_t unknown;
};

static int look_at_cause(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    struct causes *c = ctx;

    if (fl_ruleset_cause(c->e->rules, inc->cause) >= 0)
        return FL_OK;
    c->unknown++;
    if (!c->strict)
        return FL_OK;
    return fl_fail(err, FL_ERULE,
                   "%.300s:%u: incident '%.*s': cause '%.*s' is not in the taxonomy; choose one "
                   "that is",
                   inc->file, inc->line, FL_FMT(inc->id), FL_FMT(inc->cause));
}

struct telling {
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

static int tell_embedding(void *ctx, uint64_t done, uint64_t total)
{
    const struct telling *t = ctx;

    if (t->progress)
        t->progress(t->ctx, done, total);
    return 0;
}

int fl_memory_import(fl_memory *m, const char *path, const struct fl_past_import *opts,
                     struct fl_past_imported *out, fl_err *err)
{
    static const enum fl_store_clash clash[] = {FL_CLASH_FAIL, FL_CLASH_KEEP, FL_CLASH_REPLACE};
    struct fl_store_import how = {.clash = clash[opts ? opts->clash : FL_PAST_FAIL]};
    struct telling t = {opts ? opts->progress : NULL, opts ? opts->progress_ctx : NULL};
    struct causes c = {m->engine, opts && opts->known_causes, 0};
    struct fl_store_imported n = {0};
    int r = fl_incidents_load(path, look_at_cause, &c, err);

    if (!r)
        r = fl_store_import(m->store, path, &how, &n, err);
    if (r)
        return r;
    fl_memory_unload(m);
    if (fl_memory_embed_missing(m, NULL, tell_embedding, &t, NULL))
        embed_now(m); /* says why */
    *out = (struct fl_past_imported){.read = n.read,
                                     .added = n.added,
                                     .replaced = n.replaced,
                                     .kept = n.kept,
                                     .same = n.same,
                                     .duplicates = n.duplicates,
                                     .unknown_causes = c.unknown};
    return FL_OK;
}

struct writing {
    fl_past_write_fn write;
    void *ctx;
};

static int write_bytes(void *ctx, fl_str bytes, fl_err *err)
{
    const struct writing *w = ctx;

    if (w->write(w->ctx, bytes.p, bytes.n) >= 0)
        return FL_OK;
    return fl_fail(err, FL_EIO, "the incidents could not be written");
}

int fl_memory_export(fl_memory *m, const struct fl_past_filter *f, fl_past_write_fn write,
                     void *ctx, fl_err *err)
{
    struct writing w = {write, ctx};
    struct fl_store_filter sf;
    int r = filter_of(f, &sf, err);

    return r ? r : fl_store_export(m->store, &sf, NULL, NULL, write_bytes, &w, err);
}

struct hiding {
    fl_redactor *r;
    int code; /* of the first text that could not be hidden */
    fl_err why;
};

static void hide(void *ctx, fl_str text, fl_buf *out)
{
    struct hiding *h = ctx;
    int r = fl_redact(h->r, text, out, h->code ? NULL : &h->why);

    if (!r)
        return;
    if (!h->code)
        h->code = r;
    fl_buf_addz(out, "<TEXT_0>"); /* never the text itself */
}

static int write_nothing(void *ctx, fl_str bytes, fl_err *err)
{
    (void)ctx;
    (void)bytes;
    (void)err;
    return FL_OK;
}

/* Twice over: a name that one text gives away is hidden in those before it too. */
int fl_memory_export_redacted(fl_memory *m, const struct fl_past_filter *f,
                              const struct fl_config *c, fl_past_write_fn write, void *ctx,
                              fl_err *err)
{
    struct fl_redact_opts o = {.where = "llm.redact_patterns"};
    struct writing w = {write, ctx};
    struct hiding h = {0};
    struct fl_store_filter sf;
    int r = filter_of(f, &sf, err);

    if (r)
        return r;
    if (c && c->llm) {
        o.patterns = c->llm->patterns;
        o.npatterns = c->llm->npatterns;
    }
    r = fl_redactor_new(&o, &h.r, err);
    if (!r)
        r = fl_store_export(m->store, &sf, hide, &h, write_nothing, NULL, err);
    if (!r && !h.code)
        r = fl_store_export(m->store, &sf, hide, &h, write_bytes, &w, err);
    if (!r && h.code)
        r = fl_fail(err, h.code, "%s", h.why.msg);
    fl_redactor_free(h.r);
    return r;
}

int fl_memory_salvage(fl_memory *m, fl_past_write_fn write, void *ctx, uint64_t *saved,
                      uint64_t *lost, fl_err *err)
{
    struct writing w = {write, ctx};
    struct fl_store_salvaged n = {0};
    int r = fl_store_salvage(m->store, write_bytes, &w, &n, err);

    if (r)
        return r;
    *saved = n.saved;
    *lost = n.lost;
    return FL_OK;
}

struct checking {
    const fl_engine *e;
    void (*tell)(void *ctx, const char *text);
    void *ctx;
};

static bool known_cause(void *ctx, fl_str id)
{
    return fl_ruleset_cause(((struct checking *)ctx)->e->rules, id) >= 0;
}

static void tell_finding(void *ctx, const char *text)
{
    struct checking *c = ctx;

    c->tell(c->ctx, text);
}

int fl_incidents_check(const fl_engine *e, const char *path,
                       void (*tell)(void *ctx, const char *text), void *ctx, fl_err *err)
{
    struct checking c = {e, tell, ctx};
    struct fl_incident_lint lint = {known_cause, tell_finding, &c};
    char data[4096], shipped[4200];

    if (!path) {
        int r = fl_data_dir(data, sizeof(data), err);
        if (r)
            return r;
        snprintf(shipped, sizeof(shipped), "%s/corpus/incidents", data);
        path = shipped;
    }
    return fl_incidents_lint(path, &lint, err);
}
