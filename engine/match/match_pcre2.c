/*
 * The slow truth: PCRE2, pattern by pattern over the block.
 *
 * It is the reference that Vectorscan is tested against, the engine of builds without it, and the
 * way for the few expressions that Vectorscan does not take. A plain expression is searched in the
 * whole block: a match that begins in a line makes that line a candidate, and the search goes on
 * with the next line. An expression whose match inside a line could be hidden by the text around it
 * (look-around, atomic groups, \A) is tried on each line by itself, and so is one that met a limit.
 */
#include "match/engine.h"

#include <stdio.h>

#include "base/alloc.h"

static const char *refused(void)
{
    return NULL;
}

static void version(fl_buf *out)
{
    char text[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, text);
    fl_buf_addf(out, "pcre2 %.*s", FL_FMT(fl_str_sub(fl_str_c(text), 0, strcspn(text, " "))));
}

/* There is no database whose making would show a wrong pattern, so all are compiled now. */
static int open_engine(struct fl_matcher *m, void **state, fl_err *err)
{
    struct fl_expr *code;
    int r = fl_match_judge(m, err);

    for (size_t i = 0; i < m->n && r == FL_OK; i++)
        r = fl_lazy_get(&m->entry[i].lazy, &code, err);
    if (r == FL_OK)
        *state = NULL;
    return r;
}

static void close_engine(void *state)
{
    (void)state;
}

static int scratch_new(const struct fl_matcher *m, void **out, fl_err *err)
{
    (void)m;
    (void)err;
    *out = NULL;
    return FL_OK;
}

static void scratch_free(void *scratch)
{
    (void)scratch;
}

static int each_line(const struct fl_expr *code, struct fl_match_scratch *s, uint32_t pattern,
                     size_t at)
{
    fl_str rest = fl_str_from(s->data, at);
    int r = FL_OK;

    while (rest.n && r == FL_OK) {
        fl_str line = fl_str_cut(&rest, '\n');
        if (fl_expr_search(code, &s->tools, line, 0, NULL) >= 0)
            r = fl_match_found(s, pattern, (size_t)(line.p - s->data.p));
    }
    return r;
}

static int whole_block(const struct fl_expr *code, struct fl_match_scratch *s, uint32_t pattern)
{
    size_t at = 0;
    const char *lf;
    ptrdiff_t found;
    int r;

    while (at < s->data.n) {
        uint64_t limited = s->tools.limited;
        found = fl_expr_search(code, &s->tools, s->data, at, NULL);
        if (found == -2) {
            s->tools.limited = limited;
            return each_line(code, s, pattern, at);
        }
        if (found < 0)
            break;
        r = fl_match_found(s, pattern, (size_t)found);
        if (r)
            return r;
        lf = memchr(s->data.p + found, '\n', s->data.n - (size_t)found);
        if (!lf)
            break;
        at = (size_t)(lf + 1 - s->data.p);
    }
    return FL_OK;
}

int fl_match_pcre2_pattern(const struct fl_matcher *m, struct fl_match_scratch *s, uint32_t pattern,
                           bool alike, fl_err *err)
{
    struct fl_entry *e = &m->entry[pattern];
    bool relaxed = alike && e->digits == FL_RELAX_SENSITIVE;
    struct fl_expr *code;
    int r = fl_lazy_get(relaxed ? &e->alike : &e->lazy, &code, err);

    if (r)
        return r;
    r = e->features & FL_RE_LINEWISE ? each_line(code, s, pattern, 0)
                                     : whole_block(code, s, pattern);
    return r ? fl_fail_nomem(err) : FL_OK;
}

static int scan(const struct fl_matcher *m, struct fl_match_scratch *s, bool alike, fl_err *err)
{
    int r = FL_OK;

    for (uint32_t i = 0; i < m->n && r == FL_OK; i++)
        r = fl_match_pcre2_pattern(m, s, i, alike, err);
    return r;
}

const struct fl_engine fl_engine_pcre2 = {refused,     version,      open_engine, close_engine,
                                          scratch_new, scratch_free, scan};
