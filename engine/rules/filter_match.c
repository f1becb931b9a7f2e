/*
 * The verdict on lines: all filters at once.
 *
 * The scan names candidates, PCRE2 confirms them, as for failure rules; the filters have a matcher
 * of their own, because they are asked about the few lines of a digest and the rules about all
 * lines of a log. Putting both into one matcher was not done: each metric line would then be a
 * candidate several times over in a pass that reads gigabytes.
 *
 * Ranks share a pipe, and a write may be torn: one line then holds the end of what one rank said
 * and a routine line of another. Patterns may begin anywhere, since a line has prefixes, so a drop
 * filter looks at what stands before its match, and leaves the line when that reads as words and
 * not as a prefix.
 *
 * A line is judged in two passes over its candidates. The first sees keeps, heads and guards, which
 * are few; drop filters are tried only when no keep and no head has the line, and then in file
 * order until one takes it.
 */
#include "rules/filter.h"

#include <stdlib.h>

#include "rules/parts.h"
#include "base/alloc.h"

#define PROSE_WORDS 4

struct fl_filters {
    const struct fl_ruleset *rs;
    fl_matcher *matcher;
};

int fl_filters_new(const struct fl_ruleset *rs, const struct fl_match_opts *opts, fl_filters **out,
                   fl_err *err)
{
    fl_filters *f = fl_calloc(1, sizeof(*f));
    int r;

    if (!f)
        return fl_fail_nomem(err);
    f->rs = rs;
    r = fl_matcher_new(rs->filter_patterns, rs->nfilter_patterns, opts, &f->matcher, err);
    if (r) {
        fl_filters_free(f);
        return r;
    }
    *out = f;
    return FL_OK;
}

void fl_filters_free(fl_filters *f)
{
    if (!f)
        return;
    fl_matcher_free(f->matcher);
    fl_free(f);
}

int fl_filters_scratch_new(const fl_filters *f, fl_match_scratch **out, fl_err *err)
{
    return fl_match_scratch_new(f->matcher, out, err);
}

const char *fl_filters_cache_note(const fl_filters *f)
{
    return fl_matcher_cache_note(f->matcher);
}

const struct fl_ruleset *fl_filters_rules(const fl_filters *f)
{
    return f->rs;
}

const fl_matcher *fl_filters_matcher(const fl_filters *f)
{
    return f->matcher;
}

/* One line in work. */
struct line {
    const fl_filters *f;
    fl_match_scratch *s;
    fl_str text;
    const struct fl_candidate *c;
    size_t n;
};

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Plain words in a row, one blank between them: nobody's prefix, but another writer's text. */
static bool prose(fl_str s)
{
    unsigned words = 0;
    size_t i = 0, n;

    while (i < s.n) {
        for (n = 0; i + n < s.n && letter(s.p[i + n]); n++)
            ;
        words = n > 1 ? words + 1 : 0;
        if (words == PROSE_WORDS)
            return true;
        i += n;
        if (i < s.n && s.p[i] != ' ')
            words = 0;
        i++;
    }
    return false;
}

static bool takes(const struct line *l, const struct fl_candidate *c, const struct fl_filter *f)
{
    struct fl_caps caps;

    if (!fl_match_confirm(l->f->matcher, l->s, c->pattern, l->text, 0, &caps))
        return false;
    if (f->action == FL_FILTER_DROP &&
        prose(fl_str_sub(l->text, 0, (size_t)(caps.whole.p - l->text.p))))
        return false;
    for (size_t i = 0; i < f->nnots; i++)
        if (fl_regex_match(f->nots[i], l->s, l->text, NULL))
            return false;
    return true;
}

static bool in_use(const struct fl_filter *f)
{
    return f->maturity == FL_STABLE || f->maturity == FL_TEST;
}

static uint16_t judge(const struct line *l)
{
    const struct fl_ruleset *rs = l->f->rs;
    uint64_t guards = 0, limited = fl_match_limited(l->s);
    uint32_t head = UINT32_MAX;

    for (size_t i = 0; i < l->n; i++) {
        uint32_t id = rs->filter_patterns[l->c[i].pattern].id;
        const struct fl_filter *f = &rs->filters[id];
        bool known = f->action == FL_FILTER_GUARD ? guards >> f->guard & 1
                                                  : f->action == FL_FILTER_HEAD && head <= id;
        if (f->action == FL_FILTER_DROP || known || !in_use(f) || !takes(l, &l->c[i], f))
            continue;
        if (f->action == FL_FILTER_KEEP)
            return (uint16_t)(id + 1);
        if (f->action == FL_FILTER_HEAD)
            head = id;
        else
            guards |= UINT64_C(1) << f->guard;
    }
    if (head != UINT32_MAX)
        return (uint16_t)(head + 1);
    for (size_t i = 0; i < l->n; i++) {
        uint32_t id = rs->filter_patterns[l->c[i].pattern].id;
        const struct fl_filter *f = &rs->filters[id];
        if (f->action == FL_FILTER_DROP && !(guards & ~f->despite) && in_use(f) &&
            takes(l, &l->c[i], f))
            return fl_match_limited(l->s) == limited ? (uint16_t)(id + 1) : 0;
    }
    return 0;
}

static size_t count_lines(const char *p, const char *end)
{
    size_t n = 0;

    for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

static int judge_block(const fl_filters *f, fl_match_scratch *s, fl_str lines, uint16_t *verdict,
                       fl_err *err)
{
    const struct fl_candidate *c = NULL;
    size_t n = 0, at = 0, line = 0;
    int r = fl_match_block(f->matcher, s, lines, &c, &n, err);

    for (size_t i = 0, k; r == FL_OK && i < n; i = k) {
        struct line l = {f, s, fl_str_n(lines.p + c[i].at, c[i].len), c + i, 0};
        for (k = i; k < n && c[k].at == c[i].at; k++)
            ;
        l.n = k - i;
        line += count_lines(lines.p + at, lines.p + c[i].at);
        at = c[i].at;
        if (l.n <= FL_FILTER_TRIES && l.text.n <= FL_FILTER_LINE_MAX)
            verdict[line] = judge(&l);
        if (fl_match_out_of_memory(s))
            r = fl_fail_nomem(err);
    }
    return r;
}

/* Where PCRE2 is the scanner, it may have given up there, and a line lacks the candidate of a keep
 * or a guard. Each line that would be dropped is scanned by itself, and stays when that is so. */
static int doubt_drops(const fl_filters *f, fl_match_scratch *s, fl_str lines, uint16_t *verdict,
                       fl_err *err)
{
    const struct fl_candidate *c;
    size_t n, at = 0;
    int r = FL_OK;

    for (size_t line = 0; r == FL_OK && at < lines.n; line++) {
        const char *lf = memchr(lines.p + at, '\n', lines.n - at);
        fl_str one = fl_str_sub(lines, at, (size_t)(lf + 1 - lines.p) - at);
        uint64_t limited = fl_match_limited(s);
        at += one.n;
        if (!verdict[line] || f->rs->filters[verdict[line] - 1].action != FL_FILTER_DROP)
            continue;
        r = fl_match_block(f->matcher, s, one, &c, &n, err);
        if (fl_match_limited(s) != limited)
            verdict[line] = 0;
    }
    return r;
}

int fl_filters_block(const fl_filters *f, fl_match_scratch *s, fl_str lines, uint16_t *verdict,
                     size_t nlines, fl_err *err)
{
    uint64_t limited = fl_match_limited(s);
    int r;

    memset(verdict, 0, nlines * sizeof(*verdict));
    if (count_lines(lines.p, lines.p + lines.n) != nlines)
        return fl_fail(err, FL_EBUG, "%zu verdicts are asked for, but there are %zu lines", nlines,
                       count_lines(lines.p, lines.p + lines.n));
    r = judge_block(f, s, lines, verdict, err);
    if (r == FL_OK && fl_match_limited(s) != limited)
        r = doubt_drops(f, s, lines, verdict, err);
    if (r)
        memset(verdict, 0, nlines * sizeof(*verdict));
    return r;
}
