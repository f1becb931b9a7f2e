/*
 * The front of the matcher: patterns in, candidates out, confirmation by PCRE2.
 *
 * Every engine only has to say "pattern P may match, and ends near here"; the line is found, noted
 * once and sorted here, so that engines cannot differ in what a line is. One confirmation a line
 * and pattern decides. Asking Vectorscan for the start of a match (SOM) was not done: it rules out
 * many patterns and slows the rest, and PCRE2 has to run anyway for the groups.
 */
#define _GNU_SOURCE
#include "match/match.h"

#include <stdio.h>
#include <stdlib.h>

#include "match/engine.h"
#include "base/alloc.h"

#define MAX_PATTERNS (1u << 20)

static int copy_pattern(fl_matcher *m, const struct fl_pattern *p, bool jit, struct fl_entry *e,
                        fl_err *err)
{
    const char *where = fl_arena_z(&m->arena, fl_str_c(p->where ? p->where : "a pattern"));

    if (!where)
        return fl_fail_nomem(err);
    if (p->regex.n == 0 || memchr(p->regex.p, 0, p->regex.n))
        return fl_fail(err, FL_ERULE, "%s: the pattern is empty or holds a NUL byte", where);
    e->anchored = p->anchored;
    e->lazy.source = fl_arena_str(&m->arena, p->regex);
    e->lazy.where = where;
    e->lazy.form = FL_FORM_ONE_LINE;
    e->lazy.icase = p->icase;
    e->lazy.jit = jit;
    e->alike.source = e->lazy.source;
    e->alike.where = where;
    e->alike.form = FL_FORM_ALIKE;
    e->alike.icase = p->icase;
    e->alike.jit = jit;
    return e->lazy.source.p ? FL_OK : fl_fail_nomem(err);
}

static int copy_patterns(fl_matcher *m, const struct fl_pattern *p, size_t n, bool jit, fl_err *err)
{
    int r = FL_OK;

    m->entry = fl_arena_alloc(&m->arena, (n + 1) * sizeof(*m->entry));
    m->exact = fl_arena_alloc(&m->arena, (n + 1) * sizeof(*m->exact));
    if (!m->entry || !m->exact)
        return fl_fail_nomem(err);
    for (size_t i = 0; r == FL_OK && i < n; i++) {
        atomic_init(&m->entry[i].lazy.code, NULL);
        atomic_init(&m->entry[i].alike.code, NULL);
        r = copy_pattern(m, &p[i], jit, &m->entry[i], err);
        m->n = i + 1;
    }
    return r;
}

int fl_match_judge(fl_matcher *m, fl_err *err)
{
    fl_buf line, alike;
    int r = FL_OK;

    fl_buf_init(&line, 1 << 20);
    fl_buf_init(&alike, 1 << 20);
    for (size_t i = 0; r == FL_OK && i < m->n; i++) {
        struct fl_entry *e = &m->entry[i];
        fl_buf_clear(&line);
        fl_buf_clear(&alike);
        fl_lazy_text(&e->lazy, &line);
        e->features = fl_pattern_features(e->lazy.source);
        e->digits = fl_pattern_relax(fl_buf_str(&line), &alike);
        r = fl_buf_check(&line, "the pattern", err);
        if (r == FL_OK)
            r = fl_buf_check(&alike, "the pattern", err);
    }
    fl_buf_dispose(&line);
    fl_buf_dispose(&alike);
    return r;
}

static const struct fl_engine *preferred(enum fl_match_engine want, const char **why)
{
#ifdef FL_HAVE_VECTORSCAN
    if (want == FL_MATCH_PCRE2)
        return &fl_engine_pcre2;
    *why = fl_engine_hs.refused();
    return *why && want == FL_MATCH_AUTO ? &fl_engine_pcre2 : &fl_engine_hs;
#else
    if (want == FL_MATCH_VECTORSCAN)
        *why = "this build has no Vectorscan";
    return &fl_engine_pcre2;
#endif
}

static int open_engine(fl_matcher *m, enum fl_match_engine want, fl_err *err)
{
    const char *why = NULL;
    fl_err problem = {0};
    int r;

    m->engine = preferred(want, &why);
    if (why && want == FL_MATCH_VECTORSCAN)
        return fl_fail(err, FL_EBACKEND, "the Vectorscan engine cannot be used: %s", why);
    r = m->engine->open(m, &m->state, &problem);
    if (r == FL_EBACKEND && want == FL_MATCH_AUTO) {
        why = problem.msg;
        m->engine = &fl_engine_pcre2;
        r = m->engine->open(m, &m->state, &problem);
    }
    if (r)
        return fl_fail(err, r, "%s", problem.msg);
    if (why)
        snprintf(m->note, sizeof(m->note), "PCRE2 is used: %s", why);
    for (uint32_t i = 0; i < m->n; i++)
        if (m->entry[i].digits == FL_RELAX_EXACT)
            m->exact[m->nexact++] = i;
    return FL_OK;
}

int fl_matcher_new(const struct fl_pattern *p, size_t n, const struct fl_match_opts *opts,
                   fl_matcher **out, fl_err *err)
{
    static const struct fl_match_opts plain = {.engine = FL_MATCH_AUTO, .jit = true};
    fl_matcher *m;
    fl_buf name;
    int r;

    if (!opts)
        opts = &plain;
    if (n > MAX_PATTERNS)
        return fl_fail(err, FL_ELIMIT, "%zu patterns; at most %u are taken", n, MAX_PATTERNS);
    m = fl_calloc(1, sizeof(*m));
    if (!m)
        return fl_fail_nomem(err);
    fl_arena_init(&m->arena);
    fl_buf_init(&name, sizeof(m->name) - 1);
    r = copy_patterns(m, p, n, opts->jit, err);
    if (r == FL_OK && opts->cache_dir && *opts->cache_dir) {
        m->cache_dir = fl_arena_z(&m->arena, fl_str_c(opts->cache_dir));
        if (!m->cache_dir)
            r = fl_fail_nomem(err);
    }
    if (r == FL_OK)
        r = open_engine(m, opts->engine, err);
    if (r == FL_OK) {
        m->engine->version(&name);
        snprintf(m->name, sizeof(m->name), "%s", name.p ? name.p : "");
        *out = m;
        m = NULL;
    }
    fl_buf_dispose(&name);
    fl_matcher_free(m);
    return r;
}

void fl_matcher_free(fl_matcher *m)
{
    if (!m)
        return;
    if (m->state)
        m->engine->close(m->state);
    for (size_t i = 0; i < m->n; i++) {
        fl_lazy_dispose(&m->entry[i].lazy);
        fl_lazy_dispose(&m->entry[i].alike);
    }
    fl_arena_dispose(&m->arena);
    fl_free(m);
}

const char *fl_matcher_engine(const fl_matcher *m)
{
    return m->name;
}

const char *fl_matcher_cache_note(const fl_matcher *m)
{
    return m->note[0] ? m->note : NULL;
}

bool fl_matcher_cache_hit(const fl_matcher *m)
{
    return m->cache_hit;
}

int fl_match_scratch_new(const fl_matcher *m, fl_match_scratch **out, fl_err *err)
{
    fl_match_scratch *s = fl_calloc(1, sizeof(*s));
    int r;

    if (!s)
        return fl_fail_nomem(err);
    r = fl_tools_init(&s->tools, err);
    if (r == FL_OK && m) {
        s->engine = m->engine;
        s->nlast = m->n;
        s->last = fl_calloc(m->n + 1, sizeof(*s->last));
        r = s->last ? m->engine->scratch_new(m, &s->state, err) : fl_fail_nomem(err);
    }
    if (r) {
        fl_match_scratch_free(s);
        return r;
    }
    *out = s;
    return FL_OK;
}

void fl_match_scratch_free(fl_match_scratch *s)
{
    if (!s)
        return;
    if (s->state)
        s->engine->scratch_free(s->state);
    fl_tools_dispose(&s->tools);
    fl_free(s->found);
    fl_free(s->last);
    fl_free(s);
}

/* The line in which a match that ends at `to` lies. A match that ends behind an LF either spans
 * lines, and is none, or is an empty one at the start of the next line. */
static struct fl_last line_of(const struct fl_match_scratch *s, size_t to)
{
    const char *p = s->data.p, *lf;
    struct fl_last line;

    lf = to ? memrchr(p, '\n', to) : NULL;
    line.at = lf ? (uint32_t)(lf + 1 - p) : 0;
    lf = memchr(p + to, '\n', s->data.n - to);
    line.end = lf ? (uint32_t)(lf - p) : (uint32_t)s->data.n;
    return line;
}

int fl_match_found(struct fl_match_scratch *s, uint32_t pattern, size_t to)
{
    struct fl_last *last = &s->last[pattern];

    if (to >= s->data.n || (to >= last->at && to <= last->end))
        return FL_OK;
    if (to < s->line.at || to > s->line.end)
        s->line = line_of(s, to);
    if (fl_grow((void **)&s->found, &s->cap, s->nfound + 1, sizeof(*s->found)))
        return FL_ENOMEM;
    *last = s->line;
    s->found[s->nfound++] = (struct fl_candidate){s->line.at, s->line.end - s->line.at, pattern};
    return FL_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct fl_candidate *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->pattern < y->pattern ? -1 : x->pattern > y->pattern;
}

/* Engines report nearly in order, so most blocks need no sort at all. */
static void sort_candidates(struct fl_match_scratch *s)
{
    size_t kept = 0;
    bool sorted = true;

    for (size_t i = 1; i < s->nfound && sorted; i++)
        sorted = by_place(&s->found[i - 1], &s->found[i]) < 0;
    if (sorted)
        return;
    qsort(s->found, s->nfound, sizeof(*s->found), by_place);
    for (size_t i = 1; i < s->nfound; i++)
        if (by_place(&s->found[kept], &s->found[i]))
            s->found[++kept] = s->found[i];
    s->nfound = kept + 1;
}

/* Compiles what is about to be confirmed, here where running out of memory can be told. */
static int prepare(const fl_matcher *m, const fl_match_scratch *s, fl_err *err)
{
    struct fl_expr *code;
    int r = FL_OK;

    for (size_t i = 0; i < s->nfound && r == FL_OK; i++)
        r = fl_lazy_get(&m->entry[s->found[i].pattern].lazy, &code, err);
    return r;
}

int fl_match_scan(const fl_matcher *m, fl_match_scratch *s, fl_str data, bool alike, fl_err *err)
{
    static const struct fl_last nowhere = {UINT32_MAX, 0};
    int r;

    if (data.n > INT32_MAX || (data.n && data.p[data.n - 1] != '\n'))
        return fl_fail(err, FL_EBUG, "a block of %zu bytes must end with a newline", data.n);
    s->data = data;
    s->nfound = 0;
    s->line = nowhere;
    for (size_t i = 0; i < s->nlast; i++)
        s->last[i] = nowhere;
    r = data.n && m->n ? m->engine->scan(m, s, alike, err) : FL_OK;
    if (r == FL_OK && s->tools.nomem)
        r = fl_fail_nomem(err);
    if (r == FL_OK) {
        sort_candidates(s);
        r = prepare(m, s, err);
    }
    return r;
}

/* Drops what only the relaxed form of a pattern found. */
static int drop_false(const fl_matcher *m, fl_match_scratch *s, fl_err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->nfound; i++) {
        const struct fl_candidate *c = &s->found[i];
        if (m->entry[c->pattern].digits != FL_RELAX_SENSITIVE ||
            fl_match_anywhere(m, s, c->pattern, fl_str_n(s->data.p + c->at, c->len)))
            s->found[kept++] = *c;
    }
    s->nfound = kept;
    return s->tools.nomem ? fl_fail_nomem(err) : FL_OK;
}

int fl_match_block(const fl_matcher *m, fl_match_scratch *s, fl_str data,
                   const struct fl_candidate **out, size_t *n, fl_err *err)
{
    int r = fl_match_scan(m, s, data, false, err);

    if (r == FL_OK)
        r = drop_false(m, s, err);
    if (r)
        return r;
    *out = s->found;
    *n = s->nfound;
    return FL_OK;
}

static bool confirm(struct fl_lazy *lazy, struct fl_match_scratch *s, fl_str text, size_t from,
                    bool anchored, struct fl_caps *caps)
{
    struct fl_expr *code;
    ptrdiff_t at;

    if (fl_lazy_get(lazy, &code, NULL)) {
        s->tools.limited++;
        s->tools.nomem = true;
        return false;
    }
    /* The leftmost match is sought even for an anchored pattern: the JIT has no anchored mode, and
     * if a match begins at `from` it is the leftmost. */
    at = fl_expr_search(code, &s->tools, text, from, NULL);
    if (at < 0 || (anchored && (size_t)at != from))
        return false;
    if (caps)
        fl_expr_caps(code, &s->tools, text, caps);
    return true;
}

bool fl_match_anywhere(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str line)
{
    uint64_t limited = s->tools.limited;

    if (confirm(&m->entry[index].lazy, s, line, 0, false, NULL))
        return true;
    /* Given up at a limit: still a candidate, to be counted where it is confirmed. */
    if (s->tools.limited == limited)
        return false;
    s->tools.limited = limited;
    return true;
}

bool fl_match_confirm(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str line,
                      size_t message, struct fl_caps *caps)
{
    struct fl_entry *e;

    if (index >= m->n)
        return false;
    e = &m->entry[index];
    return confirm(&e->lazy, s, line, e->anchored ? message : 0, e->anchored, caps);
}

uint64_t fl_match_limited(const fl_match_scratch *s)
{
    return s->tools.limited;
}

bool fl_match_out_of_memory(const fl_match_scratch *s)
{
    return s->tools.nomem;
}

struct fl_regex {
    struct fl_lazy lazy;
    char text[]; /* the expression, NUL, where, NUL */
};

int fl_regex_new_known(fl_str pattern, bool icase, const char *where, fl_regex **out, fl_err *err)
{
    size_t nwhere;
    fl_regex *re;

    if (!where)
        where = "an expression";
    nwhere = strlen(where);
    re = fl_calloc(1, sizeof(*re) + pattern.n + nwhere + 2);
    if (!re)
        return fl_fail_nomem(err);
    if (pattern.n)
        memcpy(re->text, pattern.p, pattern.n);
    memcpy(re->text + pattern.n + 1, where, nwhere);
    re->lazy.source = fl_str_n(re->text, pattern.n);
    re->lazy.where = re->text + pattern.n + 1;
    re->lazy.icase = icase;
    re->lazy.jit = true;
    atomic_init(&re->lazy.code, NULL);
    *out = re;
    return FL_OK;
}

int fl_regex_new(fl_str pattern, bool icase, const char *where, fl_regex **out, fl_err *err)
{
    struct fl_expr *code = NULL;
    int r;

    /* Compiled once for its errors; with JIT only if it is ever used. */
    r = fl_expr_new(pattern, icase, false, where ? where : "an expression", &code, err);
    fl_expr_free(code);
    return r ? r : fl_regex_new_known(pattern, icase, where, out, err);
}

bool fl_regex_match(const fl_regex *re, fl_match_scratch *s, fl_str subject, struct fl_caps *caps)
{
    /* The one field that changes is the compiled code, which is atomic. */
    return confirm(&((fl_regex *)(uintptr_t)re)->lazy, s, subject, 0, false, caps);
}

void fl_regex_free(fl_regex *re)
{
    if (!re)
        return;
    fl_lazy_dispose(&re->lazy);
    fl_free(re);
}
