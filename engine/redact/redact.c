/*
 * The redactor: numbers for originals, and the way out and back.
 *
 * A text is scanned once for everything (scan.h), and only when all spans are known is anything
 * written. That order matters twice: a host that is told by the last line is hidden in the first
 * as well, and the pieces between the spans can be searched for texts that look like placeholders
 * exactly as fl_restore() will see them, which is what makes the round trip exact rather than
 * likely.
 *
 * Replaced text is kept, for it has to come back; it lives in this process only, as long as the
 * conversation. The number of originals and their bytes are bounded, because a hostile log can
 * have a new address on every line. Past the bound the text still goes, as <IP_0>, and does not
 * come back: secrecy is kept at the cost of readability and not the other way round.
 *
 * Refused: hashing names instead of numbering them. A model copies <HOST_3> faithfully and eight
 * hex digits not always, and a hash of a short host name can be looked up in a table.
 */
#include "redact/redact.h"

#include "redact/redactor.h"
#include "redact/scan.h"

#include "base/alloc.h"

#define DEFAULT_BYTES ((size_t)16 << 20)
#define TEXT_MAX ((size_t)1 << 30)

static int compile(fl_redactor *r, const struct fl_redact_opts *o, fl_err *err)
{
    int e;

    r->patterns = fl_calloc(o->npatterns, sizeof(fl_regex *));
    if (!r->patterns)
        return fl_fail_nomem(err);
    for (; r->npatterns < o->npatterns; r->npatterns++) {
        e = fl_regex_new(o->patterns[r->npatterns], false, o->where ? o->where : "pattern",
                         &r->patterns[r->npatterns], err);
        if (e)
            return e;
    }
    return fl_match_scratch_new(NULL, &r->scratch, err);
}

int fl_redactor_new(const struct fl_redact_opts *o, fl_redactor **out, fl_err *err)
{
    fl_redactor *r = fl_calloc(1, sizeof(*r));
    int e = FL_OK;

    if (!r)
        return fl_fail_nomem(err);
    fl_arena_init(&r->arena);
    fl_map_init(&r->ids);
    fl_map_init(&r->known);
    r->max_bytes = o && o->max_bytes ? o->max_bytes : DEFAULT_BYTES;
    if (o && o->npatterns)
        e = compile(r, o, err);
    if (e)
        fl_redactor_free(r);
    else
        *out = r;
    return e;
}

void fl_redactor_free(fl_redactor *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->npatterns; i++)
        fl_regex_free(r->patterns[i]);
    fl_free(r->patterns);
    fl_match_scratch_free(r->scratch);
    for (int k = 0; k < FL_REDACT_KINDS; k++)
        fl_free(r->by[k]);
    fl_free(r->v);
    fl_map_dispose(&r->known);
    fl_map_dispose(&r->ids);
    fl_arena_dispose(&r->arena);
    fl_free(r);
}

/* A new original with the next number of its kind; FL_ELIMIT where no more are kept. */
static int keep(fl_redactor *r, enum fl_redact_kind kind, fl_str key, uint32_t *index)
{
    size_t n = r->count[kind];
    fl_str text;

    if (r->n >= FL_REDACT_MAX_ENTRIES || key.n > r->max_bytes - r->bytes)
        return FL_ELIMIT;
    if (fl_grow((void **)&r->v, &r->cap, r->n + 1, sizeof(*r->v)) ||
        fl_grow((void **)&r->by[kind], &r->by_cap[kind], n + 1, sizeof(uint32_t)))
        return FL_ENOMEM;
    text = fl_arena_str(&r->arena, fl_str_from(key, 1));
    if (!text.p || fl_map_set(&r->ids, key, (uint32_t)r->n))
        return FL_ENOMEM;
    r->v[r->n] = (struct fl_original){text, (uint32_t)n + 1, (uint8_t)kind};
    r->by[kind][n] = (uint32_t)r->n;
    r->count[kind]++;
    r->bytes += key.n;
    *index = (uint32_t)r->n++;
    return FL_OK;
}

/* The placeholder of `text`; `key` is room for its map key. */
static int put(fl_redactor *r, enum fl_redact_kind kind, fl_str text, fl_buf *key, fl_buf *out)
{
    uint32_t index = 0, number = 0;
    int e = FL_OK;

    fl_buf_clear(key);
    fl_buf_addc(key, (char)('A' + kind));
    fl_buf_add(key, text);
    if (key->bad)
        return key->bad;
    if (!fl_map_get(&r->ids, fl_buf_str(key), &index))
        e = keep(r, kind, fl_buf_str(key), &index);
    if (e == FL_OK)
        number = r->v[index].number;
    else if (e == FL_ELIMIT)
        r->lost++;
    else
        return e;
    fl_buf_addf(out, "<%s_%u>", fl_redact_word(kind), (unsigned)number);
    return FL_OK;
}

/* A piece between placeholders; what looks like one is hidden. */
static int put_gap(fl_redactor *r, fl_str gap, fl_buf *key, fl_buf *out)
{
    size_t from = 0, i = 0, n;
    struct fl_mark m;
    int e;

    while (i < gap.n) {
        if (!fl_mark_start(gap.p[i]) ||
            (n = fl_mark_at(fl_str_from(gap, i), i > from ? gap.p[i - 1] : 0, &m)) == 0) {
            i++;
            continue;
        }
        fl_buf_add(out, fl_str_sub(gap, from, i - from));
        e = put(r, FL_REDACT_TEXT, fl_str_sub(gap, i, n), key, out);
        if (e)
            return e;
        i += n;
        from = i;
    }
    fl_buf_add(out, fl_str_from(gap, from));
    return FL_OK;
}

/* A key that one line shows as such is hidden where it stands alone, too. */
static void learn_secrets(struct fl_scan *s)
{
    for (size_t i = 0; i < s->nv; i++) {
        size_t a = s->v[i].a, b = s->v[i].b;
        if (s->v[i].kind != FL_REDACT_SECRET || b - a > 256)
            continue;
        while (a < b && !fl_alnum(s->p[a]))
            a++;
        while (a < b && !fl_alnum(fl_back(s->p, b, 1)))
            b--;
        if (fl_opaque(s->p + a, b - a))
            fl_scan_learn(s, a, b, FL_REDACT_SECRET, false);
    }
}

static int find_all(struct fl_scan *s, fl_err *err)
{
    int e;

    fl_scan_secrets(s);
    fl_scan_urls(s);
    fl_scan_assign(s);
    fl_scan_commands(s);
    fl_scan_users(s);
    fl_scan_hosts(s);
    fl_scan_places(s);
    e = fl_scan_patterns(s, err);
    if (e)
        return e;
    learn_secrets(s);
    fl_scan_known(s); /* last: it knows what the others learned */
    fl_scan_settle(s);
    return s->nomem ? fl_fail_nomem(err) : FL_OK;
}

int fl_redact(fl_redactor *r, fl_str text, fl_buf *out, fl_err *err)
{
    struct fl_scan s = {0};
    size_t start = out->n, at = 0;
    fl_buf key;
    int e;

    if (text.n > TEXT_MAX)
        return fl_fail(err, FL_ELIMIT, "a text of %zu bytes is too large to redact", text.n);
    fl_buf_init(&key, text.n + 1);
    e = fl_scan_init(&s, r, text, err);
    if (!e)
        e = find_all(&s, err);
    for (size_t i = 0; !e && i < s.nv; i++) {
        e = put_gap(r, fl_str_sub(text, at, s.v[i].a - at), &key, out);
        if (!e)
            e = put(r, s.v[i].kind, fl_str_sub(text, s.v[i].a, s.v[i].b - s.v[i].a), &key, out);
        at = s.v[i].b;
        if (e)
            fl_fail_nomem(err);
    }
    if (!e && (e = put_gap(r, fl_str_from(text, at), &key, out)) != FL_OK)
        fl_fail_nomem(err);
    if (!e)
        e = fl_buf_check(out, "the redacted text", err);
    if (e) {
        fl_buf_cut(out, start);
        out->bad = 0;
    }
    fl_buf_dispose(&key);
    fl_scan_dispose(&s);
    return e;
}

int fl_restore(const fl_redactor *r, fl_str text, fl_buf *out, fl_err *err)
{
    size_t start = out->n, from = 0, i = 0, n;
    struct fl_mark m;
    int e;

    while (i < text.n) {
        if (!fl_mark_start(text.p[i]) ||
            (n = fl_mark_at(fl_str_from(text, i), i > from ? text.p[i - 1] : 0, &m)) == 0) {
            i++;
            continue;
        }
        if (m.number == 0 || m.number > r->count[m.kind]) {
            i += n; /* not one of ours */
            continue;
        }
        fl_buf_add(out, fl_str_sub(text, from, i - from));
        fl_buf_add(out, r->v[r->by[m.kind][m.number - 1]].text);
        i += n;
        from = i;
    }
    fl_buf_add(out, fl_str_from(text, from));
    e = fl_buf_check(out, "the restored text", err);
    if (e) {
        fl_buf_cut(out, start);
        out->bad = 0;
    }
    return e;
}

size_t fl_redact_count(const fl_redactor *r, enum fl_redact_kind kind)
{
    return kind < FL_REDACT_KINDS ? r->count[kind] : 0;
}

uint64_t fl_redact_lost(const fl_redactor *r)
{
    return r->lost;
}

void fl_redact_summary(const fl_redactor *r, fl_buf *out)
{
    static const char *const one[] = {"secret",         "host name", "domain",
                                      "address",        "user name", "path",
                                      "e-mail address", "bucket",    "look-alike text"};
    static const char *const many[] = {"secrets",          "host names", "domains",
                                       "addresses",        "user names", "paths",
                                       "e-mail addresses", "buckets",    "look-alike texts"};
    const char *sep = "";

    for (int k = 0; k < FL_REDACT_KINDS; k++) {
        if (r->count[k] == 0)
            continue;
        fl_buf_addf(out, "%s%zu %s", sep, r->count[k], r->count[k] == 1 ? one[k] : many[k]);
        sep = ", ";
    }
    if (!*sep)
        fl_buf_addz(out, "nothing");
}
