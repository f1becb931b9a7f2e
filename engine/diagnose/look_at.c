/*
 * Three looks: around a line, by an expression, by a rank.
 *
 * An expression is PCRE2's, tried on each line by itself under the match limit that rules have, so
 * that one which backtracks without end costs its line and not the session. The search ends with
 * the first hit beyond the limit: to count the rest would read all of a log that may be large, and
 * a person who has forty hits writes a better expression.
 *
 * A rank's lines are those whose prefix, or whose file's name, names it, by the same settled places
 * that the diagnosis used (a task that is a rank, a local rank on a known host). A line without any
 * prefix in a file that several ranks write has no known writer and is left out.
 */
#include "diagnose/look.h"

#include "base/alloc.h"

#define RANK_LINE 4096 /* bytes kept of each of a rank's last lines */

/* ---- around a line ---- */

struct around {
    fl_log *l;
    const struct fl_log_look *look;
    struct fl_log_seen *seen;
    uint64_t line, from, to;
    bool found;
};

static int on_around(void *ctx, uint32_t file, uint64_t line, fl_str text, fl_err *err)
{
    struct around *a = ctx;

    (void)err;
    if (line > a->to)
        return 1;
    if (line < a->from)
        return 0;
    if (a->seen->lines >= fl_log_limit(a->look)) {
        a->seen->more = true;
        return 1;
    }
    a->found |= line == a->line;
    return fl_log_give(a->l, a->look, a->seen, file, line, text, FL_S(""), line == a->line);
}

static bool ends_with_file(const char *name, const char *tail)
{
    size_t n = strlen(name), k = strlen(tail);

    return n > k && strcmp(name + n - k, tail) == 0 && name[n - k - 1] == '/';
}

static int find_file(const fl_log *l, const char *file, uint32_t *out, fl_err *err)
{
    size_t n = fl_reader_files(l->reader), hits = 0;

    if (!file && n == 1) {
        *out = 0;
        return FL_OK;
    }
    if (!file)
        return fl_fail(err, FL_EUSAGE, "the job has %zu files: say which, as FILE:LINE", n);
    if (fl_map_get(&l->file_of, fl_str_c(file), out))
        return FL_OK;
    for (size_t i = 0; i < n; i++)
        if (ends_with_file(fl_log_file(l, i), file) && !hits++)
            *out = (uint32_t)i;
    if (hits == 1)
        return FL_OK;
    if (hits)
        return fl_fail(err, FL_EUSAGE, "%zu files of the job end in '%s': write more of the path",
                       hits, file);
    return fl_fail(err, FL_EUSAGE, "no file of the job is called '%s'; the first is %s", file,
                   n ? fl_log_file(l, 0) : "missing");
}

int fl_log_around(fl_log *l, const char *file, uint64_t line, unsigned n,
                  const struct fl_log_look *look, struct fl_log_seen *seen, fl_err *err)
{
    struct around a = {.l = l, .look = look, .seen = seen, .line = line};
    struct fl_log_look wide = *look;
    uint32_t at = 0;
    int r = find_file(l, file, &at, err);

    *seen = (struct fl_log_seen){.lines = 0};
    if (r)
        return r;
    wide.limit = look->limit ? look->limit : 4 * (size_t)n + 200; /* a progress bar is one line */
    a.look = &wide;
    a.from = line > n ? line - n : 1;
    a.to = line + n;
    r = fl_log_walk(l, at, &wide, seen, on_around, &a, err);
    if (!r && !seen->lines && !seen->stopped)
        return fl_fail(err, FL_ENOTFOUND, "%s has no line %llu%s", fl_log_file(l, at),
                       (unsigned long long)line, seen->note[0] ? " that was kept" : "");
    return r;
}

/* ---- by an expression ---- */

struct grep {
    fl_log *l;
    const struct fl_log_look *look;
    struct fl_log_seen *seen;
    fl_regex *re;
};

static int on_grep(void *ctx, uint32_t file, uint64_t line, fl_str text, fl_err *err)
{
    struct grep *g = ctx;
    struct fl_caps caps;

    if (!fl_regex_match(g->re, g->l->scratch, text, &caps)) {
        if (fl_match_out_of_memory(g->l->scratch))
            return fl_fail_nomem(err);
        return 0;
    }
    if (g->seen->lines >= fl_log_limit(g->look)) {
        g->seen->more = true;
        return 1;
    }
    return fl_log_give(g->l, g->look, g->seen, file, line, text, caps.whole, true);
}

int fl_log_grep(fl_log *l, const char *regex, const struct fl_log_look *look,
                struct fl_log_seen *seen, fl_err *err)
{
    struct grep g = {.l = l, .look = look, .seen = seen};
    int r;

    *seen = (struct fl_log_seen){.lines = 0};
    r = fl_regex_new(fl_str_c(regex), false, "the expression", &g.re, err);
    if (r == FL_ENOMEM)
        return r;
    if (r) {
        if (err)
            err->code = FL_EUSAGE;
        return FL_EUSAGE;
    }
    r = fl_log_walk(l, UINT32_MAX, look, seen, on_grep, &g, err);
    fl_regex_free(g.re);
    return r;
}

/* ---- by a rank ---- */

struct last_line {
    uint32_t file;
    uint64_t line;
    fl_buf text;
};

struct ranked {
    fl_log *l;
    int32_t rank;
    struct last_line *ring;
    size_t n, max;
};

static int32_t rank_of(const fl_log *l, uint32_t file, fl_str text)
{
    const struct fl_job *j = &l->d->job;
    const struct fl_file_state *f = file < j->nfiles ? &j->files[file] : NULL;
    struct fl_mark m = FL_MARK_NOWHERE;
    struct fl_prefix p;
    uint32_t host;

    fl_prefix_parse(text, &p);
    m.file = file;
    m.pid = p.pid;
    m.rank = p.rank;
    m.local_rank = p.local_rank;
    m.node_rank = p.node_rank;
    m.task = p.task;
    m.host = f ? f->host : -1;
    if (p.host.n && fl_map_get(&j->places.host_of, p.host, &host))
        m.host = (int32_t)host;
    if (f && m.rank < 0 && p.task < 0)
        m.rank = f->place.rank;
    if (f && m.local_rank < 0)
        m.local_rank = f->place.local_rank;
    if (f && m.node_rank < 0)
        m.node_rank = f->place.node_rank;
    return fl_places_rank_of(j, &m);
}

static int on_ranked(void *ctx, uint32_t file, uint64_t line, fl_str text, fl_err *err)
{
    struct ranked *x = ctx;
    struct last_line *last = &x->ring[x->n % x->max];

    if (rank_of(x->l, file, text) != x->rank)
        return 0;
    fl_buf_clear(&last->text);
    fl_buf_add(&last->text, fl_str_sub(text, 0, RANK_LINE));
    if (last->text.bad)
        return fl_fail_nomem(err);
    last->file = file;
    last->line = line;
    x->n++;
    return 0;
}

int fl_log_rank(fl_log *l, int32_t rank, const struct fl_log_look *look, struct fl_log_seen *seen,
                fl_err *err)
{
    struct ranked x = {.l = l, .rank = rank, .max = fl_log_limit(look)};
    int r, ended = 0;

    *seen = (struct fl_log_seen){.lines = 0};
    x.ring = fl_calloc(x.max, sizeof(*x.ring));
    if (!x.ring)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < x.max; i++)
        fl_buf_init(&x.ring[i].text, RANK_LINE + 16);
    r = fl_log_walk(l, UINT32_MAX, look, seen, on_ranked, &x, err);
    for (size_t i = x.n > x.max ? x.n - x.max : 0; !r && !ended && i < x.n; i++) {
        const struct last_line *k = &x.ring[i % x.max];
        ended = fl_log_give(l, look, seen, k->file, k->line, fl_buf_str(&k->text), FL_S(""), false);
    }
    seen->more = x.n > x.max;
    if (!r && !x.n && !seen->stopped)
        r = fl_fail(err, FL_ENOTFOUND, "no line of the log names rank %d as its writer", rank);
    for (size_t i = 0; i < x.max; i++)
        fl_buf_dispose(&x.ring[i].text);
    fl_free(x.ring);
    return r;
}
