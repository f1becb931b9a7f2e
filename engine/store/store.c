/*
 * The rules of the memory: what is stored, what counts as the same, what belongs together.
 *
 * All of it stands above the table of parts.h, so a second database brings no second opinion on
 * what a duplicate is. One call is one transaction. The incident, its evidence and its search
 * documents are written together or not at all, which is what makes a kill at any moment harmless:
 * there is no order of steps to get right afterwards. A failure inside a transaction that the
 * caller opened poisons that transaction; committing half of an import is refused, because nobody
 * could say later which half.
 *
 * An incident that has the shape and cause of a stored one is counted and not stored: ten thousand
 * copies of one failure would fill every list of neighbours with themselves.
 */
#include "store/parts.h"

#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "base/map.h"
#include "base/alloc.h"

#define ID_TRIES 16

int fl_store_open(const char *dir, const struct fl_store_opts *o, fl_store **out, fl_err *err)
{
    static const struct fl_store_opts none = {0};
    fl_store *s = fl_calloc(1, sizeof(*s));
    fl_arena a;
    const char *path;
    int r = FL_OK;

    fl_arena_init(&a);
    o = o ? o : &none;
    path = fl_file_join(&a, dir, "incidents.db");
    if (s && path)
        s->path = fl_strdup_s(fl_str_c(path));
    if (!s || !path || !s->path)
        r = fl_fail_nomem(err);
    if (!r && !o->read_only)
        r = fl_file_mkdirs(dir, err);
    if (!r && o->read_only && !fl_file_exists(path))
        r = fl_fail(err, FL_ENOTFOUND,
                    "%s: there is no incident memory yet; 'diagnose incidents import' makes one",
                    path);
    if (!r) {
        s->hooks = o->hooks;
        s->read_only = o->read_only;
        r = fl_store_sqlite(path, o, &s->ops, &s->db, &s->note, err);
    }
    fl_arena_dispose(&a);
    if (r) {
        fl_store_close(s);
        return r;
    }
    *out = s;
    return FL_OK;
}

void fl_store_close(fl_store *s)
{
    if (!s)
        return;
    if (s->db)
        s->ops->close(s->db);
    fl_free(s->path);
    fl_free(s->note);
    fl_free(s);
}

const char *fl_store_note(const fl_store *s)
{
    return s->note;
}

const char *fl_store_path(const fl_store *s)
{
    return s->path;
}

int fl_store_enter(fl_store *s, enum fl_store_tx kind, fl_err *err)
{
    if (kind == FL_TX_WRITE && s->read_only)
        return fl_fail(err, FL_EBACKEND, "%s: was opened for reading only; open it for writing",
                       s->path);
    if (s->open && s->failed)
        return fl_fail(err, FL_EBACKEND,
                       "%s: an earlier step of this transaction failed; undo it and begin anew",
                       s->path);
    return s->open ? FL_OK : s->ops->begin(s->db, kind, err);
}

int fl_store_leave(fl_store *s, enum fl_store_tx kind, int r, fl_err *err)
{
    if (s->open) {
        if (r < 0 && kind == FL_TX_WRITE)
            s->failed = true;
        return r;
    }
    if (r >= 0) {
        int c = s->ops->commit(s->db, err);
        return c ? c : r;
    }
    s->ops->rollback(s->db);
    return r;
}

int fl_store_begin(fl_store *s, fl_err *err)
{
    int r;

    if (s->open)
        return fl_fail(err, FL_EBUG, "%s: a transaction is open already", s->path);
    r = fl_store_enter(s, FL_TX_WRITE, err);
    if (r)
        return r;
    s->open = true;
    s->failed = false;
    return FL_OK;
}

int fl_store_commit(fl_store *s, fl_err *err)
{
    if (!s->open)
        return fl_fail(err, FL_EBUG, "%s: no transaction is open", s->path);
    if (s->failed) {
        fl_store_rollback(s);
        return fl_fail(err, FL_EBACKEND,
                       "%s: a step of this transaction failed, so none of it was stored", s->path);
    }
    s->open = false;
    return s->ops->commit(s->db, err);
}

void fl_store_rollback(fl_store *s)
{
    if (s && s->open) {
        s->open = s->failed = false;
        s->ops->rollback(s->db);
    }
}

static int now_text(const fl_store *s, fl_arena *a, fl_str *out)
{
    time_t t = s->hooks.now ? (time_t)s->hooks.now(s->hooks.ctx) : time(NULL);
    struct tm tm;
    char text[32];

    if (!gmtime_r(&t, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
        memcpy(text, "1970-01-01T00:00:00Z", 21);
    *out = fl_arena_str(a, fl_str_c(text));
    return out->p ? FL_OK : FL_ENOMEM;
}

/* What the shape hook says; empty when there is none or it says nothing. */
static int shape_of(const fl_store *s, const struct fl_incident *inc, fl_arena *a, fl_str *out,
                    fl_err *err)
{
    fl_buf b;
    int r;

    fl_buf_init(&b, FL_INCIDENT_MAX_WORD);
    s->hooks.shape(s->hooks.ctx, inc, &b);
    r = fl_buf_check(&b, "a shape key", err);
    if (!r) {
        *out = fl_arena_str(a, fl_buf_str(&b));
        r = out->p ? FL_OK : fl_fail_nomem(err);
    }
    fl_buf_dispose(&b);
    return r;
}

/* An id out of what the incident says, so that the same words give the same id on each machine. */
static int make_id(fl_store *s, struct fl_incident *inc, fl_arena *a, fl_err *err)
{
    for (unsigned i = 0; i < ID_TRIES; i++) {
        char hex[33];
        int64_t number;
        fl_buf b;
        int r;

        fl_buf_init(&b, 2 * FL_INCIDENT_MAX_BYTES);
        fl_buf_addf(&b, "%u %.*s %.*s\n", i, FL_FMT(inc->cause), FL_FMT(inc->created));
        for (size_t k = 0; k < inc->nevidence; k++) {
            fl_buf_add(&b, inc->evidence[k]);
            fl_buf_addc(&b, '\n');
        }
        r = fl_buf_check(&b, "an incident", err);
        fl_hash128_hex(b.p ? b.p : "", b.n, hex);
        fl_buf_dispose(&b);
        if (r)
            return r;
        inc->id = fl_str_c(fl_arena_f(a, "inc-%.12s", hex));
        if (!inc->id.p)
            return fl_fail_nomem(err);
        r = s->ops->find(s->db, inc->id, &number, err);
        if (r <= 0)
            return r;
    }
    return fl_fail(err, FL_EBUG, "%s: found no free id; give the incident one", s->path);
}

int fl_store_complete(fl_store *s, struct fl_incident *inc, fl_arena *a, fl_err *err)
{
    fl_str now;
    int r = FL_OK;

    if (now_text(s, a, &now))
        return fl_fail_nomem(err);
    if (inc->created.n == 0)
        inc->created = now;
    if (inc->updated.n == 0)
        inc->updated = now;
    if (inc->count == 0)
        inc->count = 1;
    if (inc->shape.n == 0 && s->hooks.shape)
        r = shape_of(s, inc, a, &inc->shape, err);
    if (!r && inc->id.n == 0)
        r = make_id(s, inc, a, err);
    if (!r)
        r = fl_incident_check(inc, true, err);
    return r;
}

/* The default of hooks.text. */
static bool default_text(const struct fl_incident *inc, uint32_t piece, fl_buf *out)
{
    if (piece > inc->nevidence)
        return false;
    if (piece < inc->nevidence) {
        fl_store_words(inc->evidence[piece], out);
    } else {
        fl_store_words(inc->title, out);
        fl_buf_addc(out, ' ');
        fl_store_words(inc->explanation, out);
    }
    return true;
}

int fl_store_docs_in(fl_store *s, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    fl_buf b;
    int r = FL_OK;

    fl_buf_init(&b, 8 * FL_INCIDENT_MAX_BYTES);
    for (uint32_t piece = 0; !r; piece++) {
        fl_buf_clear(&b);
        if (!(s->hooks.text ? s->hooks.text(s->hooks.ctx, inc, piece, &b)
                            : default_text(inc, piece, &b)))
            break;
        r = fl_buf_check(&b, "a search document", err);
        if (!r && b.n)
            r = s->ops->add_doc(s->db, number, piece, fl_buf_str(&b), err);
    }
    fl_buf_dispose(&b);
    return r;
}

static void tell(struct fl_store_added *out, int64_t number, fl_str id, bool duplicate)
{
    if (!out)
        return;
    out->number = number;
    out->duplicate = duplicate;
    snprintf(out->id, sizeof(out->id), "%.*s", FL_FMT(id));
}

/* Counts `inc` on the incident `number`. */
static int count_in(fl_store *s, int64_t number, const struct fl_incident *inc,
                    struct fl_store_added *out, fl_err *err)
{
    struct fl_incident first = {0};
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = s->ops->read(s->db, number, &a, &first, err);
    if (!r)
        r = s->ops->count_on(s->db, number, inc->count ? inc->count : 1, inc->updated, err);
    if (!r)
        tell(out, number, first.id, true);
    fl_arena_dispose(&a);
    return r;
}

int fl_store_insert_in(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                       fl_err *err)
{
    int64_t number = 0;
    int r = inc->shape.n ? s->ops->same(s->db, inc->shape, inc->cause, &number, err) : 0;

    if (r < 0)
        return r;
    if (r > 0)
        return count_in(s, number, inc, out, err);
    r = s->ops->find(s->db, inc->id, &number, err);
    if (r < 0)
        return r;
    if (r > 0)
        return fl_fail(err, FL_EUSAGE, "incident '%.*s' is there already; choose another id",
                       FL_FMT(inc->id));
    r = s->ops->insert(s->db, inc, &number, err);
    if (!r)
        r = fl_store_docs_in(s, number, inc, err);
    if (!r)
        tell(out, number, inc->id, false);
    return r;
}

int fl_store_remove_in(fl_store *s, int64_t number, fl_err *err)
{
    int r = s->ops->drop_docs(s->db, number, err);

    return r ? r : s->ops->remove(s->db, number, err);
}

/* Whether what is searched and embedded is the same. */
static bool same_text(const struct fl_incident *a, const struct fl_incident *b)
{
    bool same = fl_str_eq(a->title, b->title) && fl_str_eq(a->explanation, b->explanation) &&
                a->nevidence == b->nevidence && a->kind == b->kind;

    for (size_t i = 0; same && i < a->nevidence; i++)
        same = fl_str_eq(a->evidence[i], b->evidence[i]);
    return same;
}

int fl_store_replace_in(fl_store *s, int64_t number, const struct fl_incident *inc,
                        struct fl_store_added *out, fl_err *err)
{
    struct fl_incident old = {0}, next = *inc;
    int64_t other = 0;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = s->ops->read(s->db, number, &a, &old, err);
    if (r)
        goto out;
    next.created = old.created;
    if (next.count == 0)
        next.count = old.count;
    r = next.shape.n ? s->ops->same(s->db, next.shape, next.cause, &other, err) : 0;
    if (r < 0)
        goto out;
    if (r > 0 && other != number) {
        r = fl_store_remove_in(s, number, err);
        if (!r)
            r = count_in(s, other, &next, out, err);
        goto out;
    }
    r = s->ops->replace(s->db, number, &next, err);
    if (!r)
        r = s->ops->drop_docs(s->db, number, err);
    if (!r)
        r = fl_store_docs_in(s, number, &next, err);
    if (!r && !same_text(&old, &next))
        r = s->ops->drop_vectors(s->db, 0, number, err);
    if (!r)
        tell(out, number, next.id, false);
out:
    fl_arena_dispose(&a);
    return r;
}

int fl_store_add(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                 fl_err *err)
{
    struct fl_incident next = *inc;
    fl_arena a;
    int r = fl_incident_check(inc, false, err);

    if (r)
        return r;
    r = fl_store_enter(s, FL_TX_WRITE, err);
    if (r)
        return r;
    fl_arena_init(&a);
    r = fl_store_complete(s, &next, &a, err);
    if (!r)
        r = fl_store_insert_in(s, &next, out, err);
    fl_arena_dispose(&a);
    return fl_store_leave(s, FL_TX_WRITE, r, err);
}

static int not_there(const fl_store *s, fl_str id, fl_err *err)
{
    return fl_fail(err, FL_ENOTFOUND,
                   "%s: there is no incident '%.*s'; 'diagnose incidents list' names them", s->path,
                   FL_FMT(fl_str_sub(id, 0, 128)));
}

static int number_of(fl_store *s, fl_str id, int64_t *number, fl_err *err)
{
    int r = s->ops->find(s->db, id, number, err);

    return r == 0 ? not_there(s, id, err) : r > 0 ? FL_OK : r;
}

int fl_store_update(fl_store *s, const struct fl_incident *inc, struct fl_store_added *out,
                    fl_err *err)
{
    struct fl_incident next = *inc;
    int64_t number = 0;
    fl_arena a;
    int r = fl_incident_check(inc, true, err);

    if (!r)
        r = fl_store_enter(s, FL_TX_WRITE, err);
    if (r)
        return r;
    fl_arena_init(&a);
    if (s->hooks.shape)
        next.shape = FL_S("");
    next.updated = FL_S("");
    r = number_of(s, inc->id, &number, err);
    if (!r)
        r = fl_store_complete(s, &next, &a, err);
    next.count = inc->count;
    if (!r)
        r = fl_store_replace_in(s, number, &next, out, err);
    fl_arena_dispose(&a);
    return fl_store_leave(s, FL_TX_WRITE, r, err);
}

int fl_store_remove(fl_store *s, fl_str id, fl_err *err)
{
    int64_t number = 0;
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    r = number_of(s, id, &number, err);
    if (!r)
        r = fl_store_remove_in(s, number, err);
    return fl_store_leave(s, FL_TX_WRITE, r, err);
}

int fl_store_get(fl_store *s, fl_str id, fl_arena *a, struct fl_incident *out, int64_t *number,
                 fl_err *err)
{
    struct fl_incident found = {0};
    int64_t at = 0;
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = number_of(s, id, &at, err);
    if (!r)
        r = s->ops->read(s->db, at, a, &found, err);
    r = fl_store_leave(s, FL_TX_READ, r, err);
    if (!r) {
        *out = found;
        if (number)
            *number = at;
    }
    return r;
}

int fl_store_get_number(fl_store *s, int64_t number, fl_arena *a, struct fl_incident *out,
                        fl_err *err)
{
    struct fl_incident found = {0};
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = s->ops->read(s->db, number, a, &found, err);
    r = fl_store_leave(s, FL_TX_READ, r, err);
    if (!r)
        *out = found;
    return r;
}

struct listing {
    fl_store *s;
    const struct fl_store_filter *f;
    fl_store_list_fn fn;
    void *ctx;
    size_t n;
};

static bool has_text(fl_str s, fl_str want)
{
    for (size_t i = 0; i + want.n <= s.n; i++)
        if (fl_str_ieq(fl_str_sub(s, i, want.n), want))
            return true;
    return false;
}

static bool passes(const struct fl_incident *inc, fl_str want)
{
    if (want.n == 0 || has_text(inc->id, want) || has_text(inc->title, want) ||
        has_text(inc->explanation, want) || has_text(inc->fix, want) || has_text(inc->source, want))
        return true;
    for (size_t i = 0; i < inc->nevidence; i++)
        if (has_text(inc->evidence[i], want))
            return true;
    return false;
}

static int list_one(void *ctx, int64_t number, fl_err *err)
{
    struct listing *l = ctx;
    struct fl_incident inc = {0};
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = l->s->ops->read(l->s->db, number, &a, &inc, err);
    if (!r && passes(&inc, l->f->text)) {
        l->n++;
        r = l->fn(l->ctx, number, &inc, err);
        if (!r && l->f->limit && l->n >= l->f->limit)
            r = 1;
    }
    fl_arena_dispose(&a);
    return r;
}

int fl_store_list(fl_store *s, const struct fl_store_filter *f, fl_store_list_fn fn, void *ctx,
                  fl_err *err)
{
    struct listing l = {s, f, fn, ctx, 0};
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = fl_store_leave(s, FL_TX_READ, s->ops->list(s->db, f, list_one, &l, err), err);
    return r > 0 ? FL_OK : r;
}

int fl_store_count(fl_store *s, struct fl_store_counts *out, fl_err *err)
{
    struct fl_store_counts c = {0};
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = fl_store_leave(s, FL_TX_READ, s->ops->counts(s->db, &c, err), err);
    if (!r)
        *out = c;
    return r;
}

int fl_store_meta_get(fl_store *s, const char *key, fl_arena *a, fl_str *out, fl_err *err)
{
    int r = fl_store_enter(s, FL_TX_READ, err);

    if (r)
        return r;
    r = fl_store_leave(s, FL_TX_READ, s->ops->meta_get(s->db, key, a, out, err), err);
    if (r == 0)
        return fl_fail(err, FL_ENOTFOUND, "%s: holds no fact '%s'", s->path, key);
    return r > 0 ? FL_OK : r;
}

int fl_store_meta_set(fl_store *s, const char *key, fl_str value, fl_err *err)
{
    int r = fl_store_enter(s, FL_TX_WRITE, err);

    if (r)
        return r;
    return fl_store_leave(s, FL_TX_WRITE, s->ops->meta_set(s->db, key, value, err), err);
}

int fl_store_verify(fl_store *s, fl_store_say_fn say, void *ctx, fl_err *err)
{
    return s->ops->verify(s->db, say, ctx, err);
}
