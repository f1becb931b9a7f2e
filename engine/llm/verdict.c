/*
 * A model's answer, checked.
 *
 * A server that promises to follow a schema may not, so every answer is read as if none had been
 * sent. What decides something (cause, class, action, citations, confidence) must be exactly of the
 * schema, and each departure is a complaint of one line that says what stands there and what may:
 * the model sees them all in its one repair turn. What decides nothing is taken with a lighter
 * hand: members that nobody asked for are passed over, an alternative that is no cause is dropped,
 * a line number written as a string is a number, and the FILE:LINE that models like to leave in
 * front of a quote is taken off, since the digest has it there.
 *
 * Whether a quote stands in the log is not decided here: that is grounding, and needs the log.
 */
#include "llm/verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"

#define MAX_CITATIONS 20
#define MAX_ALTERNATIVES 8
#define MAX_SUMMARY 2000
#define MAX_QUOTE 8192
#define MAX_COMPLAINTS 12

struct reading {
    const fl_json *root;
    const struct fl_llm_terms *terms;
    fl_arena *arena;
    fl_buf *complaints;
    int n;
};

__attribute__((format(printf, 2, 3))) static void complain(struct reading *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (r->n++ >= MAX_COMPLAINTS)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fl_buf_addf(r->complaints, "- %s\n", text);
}

static const struct fl_llm_cause *find_cause(const struct fl_llm_terms *t, const char *id)
{
    for (size_t i = 0; i < t->ncauses; i++)
        if (!strcmp(t->causes[i].id, id))
            return &t->causes[i];
    return NULL;
}

/* Edits that turn a into b, both short; more than 31 bytes count as far. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[33], diagonal, n = (unsigned)strlen(b);

    if (n > 31 || strlen(a) > 31)
        return 99;
    for (unsigned i = 0; i <= n; i++)
        row[i] = i;
    for (; *a; a++) {
        diagonal = row[0]++;
        for (unsigned i = 1; i <= n; i++) {
            unsigned up = row[i], best = diagonal + (*a != b[i - 1]);
            best = up + 1 < best ? up + 1 : best;
            row[i] = row[i - 1] + 1 < best ? row[i - 1] + 1 : best;
            diagonal = up;
        }
    }
    return row[n];
}

static const char *nearest(const struct fl_llm_terms *t, const char *id)
{
    const char *best = NULL;
    unsigned least = 9;

    for (size_t i = 0; i < t->ncauses; i++) {
        unsigned d = distance(id, t->causes[i].id);
        if (d < least) {
            least = d;
            best = t->causes[i].id;
        }
    }
    return best;
}

/* A member that must be a string with something in it; NULL after a complaint. */
static const char *text_of(struct reading *r, const fl_json *o, const char *key, const char *where)
{
    const fl_json *n = fl_json_get(o, key);
    const char *z = n ? fl_json_z(n) : NULL;

    if (!n)
        complain(r, "%s\"%s\" is missing", where, key);
    else if (!z)
        complain(r, "%s\"%s\" must be a string", where, key);
    else if (!fl_str_trim(fl_str_c(z)).n)
        complain(r, "%s\"%s\" is empty", where, key);
    else
        return z;
    return NULL;
}

static const char *keep(struct reading *r, fl_str s)
{
    return fl_arena_z(r->arena, s);
}

static void read_cause(struct reading *r, struct fl_said *v)
{
    const char *z = text_of(r, r->root, "cause", ""), *near;
    const struct fl_llm_cause *c = z ? find_cause(r->terms, z) : NULL;

    if (c)
        v->cause = c->id;
    if (!z || c)
        return;
    near = nearest(r->terms, z);
    if (near)
        complain(r, "\"cause\" is \"%.60s\", which is not in the list; did you mean \"%s\"?", z,
                 near);
    else
        complain(r,
                 "\"cause\" is \"%.60s\", which is not in the list; use an id of the list, or "
                 "\"unknown\"",
                 z);
}

static void read_class(struct reading *r, struct fl_said *v)
{
    static const char *const words[] = {"infrastructure", "framework", "script", "-"};
    const char *z = text_of(r, r->root, "class", "");

    for (size_t i = 0; z && i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(z, words[i]))
            v->class_name = words[i];
    if (z && !v->class_name)
        complain(r,
                 "\"class\" is \"%.40s\"; it must be \"infrastructure\", \"framework\", \"script\" "
                 "or \"-\"",
                 z);
}

static void read_action(struct reading *r, struct fl_said *v)
{
    const char *z = text_of(r, r->root, "action", "");
    fl_buf list;

    for (size_t i = 0; z && i < r->terms->nactions; i++)
        if (!strcmp(z, r->terms->actions[i]))
            v->action = r->terms->actions[i];
    if (!z || v->action)
        return;
    fl_buf_init(&list, 300);
    for (size_t i = 0; i < r->terms->nactions; i++)
        fl_buf_addf(&list, "%s%s", i ? ", " : "", r->terms->actions[i]);
    complain(r, "\"action\" is \"%.40s\"; it must be one of: %s", z, list.p ? list.p : "");
    fl_buf_dispose(&list);
}

static void read_rest(struct reading *r, struct fl_said *v)
{
    const char *z = text_of(r, r->root, "summary", "");
    const fl_json *n = fl_json_get(r->root, "confidence");
    double x;

    if (z)
        v->summary = keep(r, fl_str_sub(fl_str_trim(fl_str_c(z)), 0, MAX_SUMMARY));
    if (!n)
        complain(r, "\"confidence\" is missing");
    else if (!fl_json_num(n, &x) || !(x >= 0 && x <= 1))
        complain(r, "\"confidence\" must be a number from 0 to 1");
    else
        v->confidence = x;
}

static bool line_number(const fl_json *n, int64_t *out)
{
    const char *z = n ? fl_json_z(n) : NULL;
    uint64_t u;
    double x;

    if (z) {
        if (!fl_str_to_u64(fl_str_trim(fl_str_c(z)), &u) || !u || u > (uint64_t)1 << 52)
            return false;
        *out = (int64_t)u;
        return true;
    }
    if (!n || !fl_json_num(n, &x) || !(x >= 1 && x <= 4503599627370496.0) ||
        x != (double)(int64_t)x)
        return false;
    *out = (int64_t)x;
    return true;
}

/* Takes ":LINE" off the file's end, and "FILE:LINE" with its TAB or blanks off the quote's start.
 */
static void tidy(fl_str *file, fl_str *quote, int64_t line)
{
    char tail[24];
    fl_str q, t;

    snprintf(tail, sizeof(tail), ":%lld", (long long)line);
    t = fl_str_c(tail);
    if (file->n > t.n && fl_str_ends(*file, t))
        file->n -= t.n;
    if (!fl_str_starts(*quote, *file))
        return;
    q = fl_str_from(*quote, file->n);
    if (!fl_str_starts(q, t))
        return;
    q = fl_str_from(q, t.n);
    if (q.n > 1 && (q.p[0] == '\t' || q.p[0] == ' '))
        *quote = fl_str_from(q, 1);
}

static void read_citation(struct reading *r, const fl_json *o, size_t at,
                          struct fl_said_citation *c)
{
    char where[40];
    const char *file, *quote;
    int had = r->n;
    fl_str f, q;

    snprintf(where, sizeof(where), "citation %zu: ", at + 1);
    if (!fl_json_is_object(o)) {
        complain(r, "%sit must be an object with file, line and quote", where);
        return;
    }
    file = text_of(r, o, "file", where);
    quote = text_of(r, o, "quote", where);
    if (!line_number(fl_json_get(o, "line"), &c->line))
        complain(r, "%s\"line\" must be the line's number, 1 or more", where);
    if (r->n != had || !file || !quote)
        return;
    f = fl_str_trim(fl_str_c(file));
    q = fl_str_c(quote);
    tidy(&f, &q, c->line);
    c->file = keep(r, f);
    c->quote = keep(r, fl_str_sub(q, 0, MAX_QUOTE));
}

static int read_citations(struct reading *r, struct fl_said *v)
{
    const fl_json *list = fl_json_get(r->root, "citations");
    struct fl_said_citation *c;
    size_t n = 0;

    if (!list || !fl_json_is_array(list)) {
        complain(r, "\"citations\" %s", list ? "must be a list" : "is missing");
        return FL_OK;
    }
    n = fl_json_size(list);
    if (!n && v->cause && strcmp(v->cause, "unknown") != 0 && strcmp(v->cause, "none") != 0)
        complain(r, "\"citations\" is empty; quote at least one line of the log that shows the "
                    "cause, or answer \"unknown\"");
    n = n < MAX_CITATIONS ? n : MAX_CITATIONS;
    c = fl_arena_alloc(r->arena, (n + 1) * sizeof(*c));
    if (!c)
        return FL_ENOMEM;
    v->citations = c;
    for (const fl_json *o = fl_json_first(list); o && v->ncitations < n; o = fl_json_next(o)) {
        read_citation(r, o, v->ncitations, c);
        c++;
        v->ncitations++;
    }
    return FL_OK;
}

static int read_alternatives(struct reading *r, struct fl_said *v)
{
    const fl_json *list = fl_json_get(r->root, "alternatives");
    struct fl_said_alternative *a;

    if (!list || !fl_json_is_array(list)) {
        complain(r, "\"alternatives\" %s",
                 list ? "must be a list" : "is missing; it may be empty: []");
        return FL_OK;
    }
    a = fl_arena_alloc(r->arena, MAX_ALTERNATIVES * sizeof(*a));
    if (!a)
        return FL_ENOMEM;
    v->alternatives = a;
    for (const fl_json *o = fl_json_first(list); o && v->nalternatives < MAX_ALTERNATIVES;
         o = fl_json_next(o)) {
        const char *id = fl_json_is_object(o) ? fl_json_z(fl_json_get(o, "id")) : NULL;
        const char *why = fl_json_is_object(o) ? fl_json_z(fl_json_get(o, "why")) : NULL;
        const struct fl_llm_cause *c = id ? find_cause(r->terms, id) : NULL;
        if (!c || (v->cause && !strcmp(c->id, v->cause)))
            continue;
        a[v->nalternatives].id = c->id;
        a[v->nalternatives].why = keep(r, fl_str_sub(fl_str_c(why ? why : ""), 0, MAX_SUMMARY));
        v->nalternatives++;
    }
    return FL_OK;
}

int fl_said_read(fl_str json, const struct fl_llm_terms *terms, fl_arena *arena,
                 struct fl_said *out, fl_buf *complaints, fl_err *err)
{
    struct reading r = {.terms = terms, .arena = arena, .complaints = complaints};
    struct fl_said v = {0};
    fl_json *root = NULL;
    int status = fl_json_parse(json, "the reply", &root, err);

    if (status)
        return status;
    r.root = root;
    if (!fl_json_is_object(root)) {
        complain(&r, "the reply must be a JSON object");
        goto out;
    }
    read_cause(&r, &v);
    read_class(&r, &v);
    read_rest(&r, &v);
    read_action(&r, &v);
    status = read_citations(&r, &v);
    if (!status)
        status = read_alternatives(&r, &v);
    if (r.n > MAX_COMPLAINTS)
        fl_buf_addf(complaints, "- and %d more\n", r.n - MAX_COMPLAINTS);
out:
    fl_json_free(root);
    if (status || arena->failed || complaints->bad == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (!r.n)
        *out = v;
    return r.n;
}
