/*
 * What an expression is made of, and how badly it can backtrack.
 *
 * The features come from a small lexer over the expression's text. It does not check syntax (PCRE2
 * does); it only has to see what other engines would read differently. What it does not know it
 * calls dialect: the rules keep to the common part of PCRE2, Vectorscan and ripgrep, and a rule
 * that is refused by mistake is written another way, while one that is accepted by mistake would
 * match differently in another tool.
 *
 * The probe runs the interpreter with a step limit over lines made to hurt: heads of the pattern's
 * own hits followed by a long run of one byte and then a byte that nothing expects. Analysing the
 * expression itself was the other way; it needs a full parser, and finds fewer of the real cases.
 */
#include "match/code.h"

#include "base/buf.h"
#include "base/alloc.h"

#define PROBE_RUN 160
#define PROBE_CUTS 12
#define PROBE_FIRST 1024

struct lexer {
    fl_str s;
    size_t at;
    unsigned found;
};

static int peek(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->s.n ? (unsigned char)l->s.p[l->at + ahead] : -1;
}

static bool one_of(int c, const char *set)
{
    return c > 0 && strchr(set, c);
}

static bool is_hex(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* At a backslash. Leaves the lexer behind the escape. */
static void escape(struct lexer *l, bool in_class)
{
    int c = peek(l, 1);

    l->at += 2;
    if (one_of(c, "\\.+*?()|[]{}^$#&-~") || one_of(c, "dDsSwWtrfav"))
        return;
    if (c == 'x' && is_hex(peek(l, 0)) && is_hex(peek(l, 1))) {
        l->at += 2;
        return;
    }
    if (!in_class && one_of(c, "bB"))
        return;
    l->found |= FL_RE_DIALECT;
    if (in_class)
        return;
    if (one_of(c, "AzZG"))
        l->found |= FL_RE_ABSOLUTE;
    else if (one_of(c, "123456789gk"))
        l->found |= FL_RE_BACKREF;
    else if (c == 'K')
        l->found |= FL_RE_LOOK;
    else if (one_of(c, "RX"))
        l->found |= FL_RE_ATOMIC;
    else if (c == 'Q')
        while (l->at < l->s.n && !(peek(l, 0) == '\\' && peek(l, 1) == 'E'))
            l->at++;
}

/* At '['. Leaves the lexer behind the class. */
static void char_class(struct lexer *l)
{
    bool negated;
    int c;

    l->at++;
    negated = peek(l, 0) == '^';
    if (negated)
        l->at++;
    if (peek(l, 0) == ']')
        l->at++;
    while ((c = peek(l, 0)) != ']' && c >= 0) {
        if (c == '\\' && peek(l, 1) == 'n' && negated) {
            l->at += 2; /* "anything but LF", which in a line is anything */
        } else if (c == '\\') {
            escape(l, true);
        } else if (c == '[' && peek(l, 1) == ':') {
            ptrdiff_t end = fl_str_find(fl_str_from(l->s, l->at), FL_S(":]"));
            l->at += end < 0 ? 1 : (size_t)end + 2;
        } else {
            /* A bare '[' nests, and && -- ~~ are set operations, in ripgrep's engine. */
            if (c == '[' || (one_of(c, "&-~") && peek(l, 1) == c))
                l->found |= FL_RE_DIALECT;
            l->at++;
        }
    }
    l->at++;
}

/* At '('. Leaves the lexer behind what opens the group. */
static void group(struct lexer *l)
{
    int c = peek(l, 2), d = peek(l, 3);

    l->at++;
    if (peek(l, 0) == '*') {
        l->found |= FL_RE_VERB | FL_RE_DIALECT;
        return;
    }
    if (peek(l, 0) != '?')
        return;
    l->at++;
    if (c == 'P' && d == '<') {
        l->at += 2;
    } else if (c == ':') {
        l->at++;
    } else if (c == '=' || c == '!' || (c == '<' && one_of(d, "=!*"))) {
        l->found |= FL_RE_LOOK | FL_RE_DIALECT;
    } else if (c == '>') {
        l->found |= FL_RE_ATOMIC | FL_RE_DIALECT;
    } else if (one_of(c, "imsx-")) {
        while (one_of(peek(l, 0), "imsx-"))
            l->at++;
        if (!one_of(peek(l, 0), ":)"))
            l->found |= FL_RE_DIALECT;
    } else if (one_of(c, "<'")) {
        l->found |= FL_RE_DIALECT;
    } else {
        l->found |= FL_RE_BACKREF | FL_RE_DIALECT;
    }
}

/* At '{': a count such as {3}, {3,} or {3,5}? */
static size_t count_length(const struct lexer *l)
{
    size_t i = 1;
    bool digits = false;

    for (; peek(l, i) >= '0' && peek(l, i) <= '9'; i++)
        digits = true;
    if (peek(l, i) == ',')
        for (i++; peek(l, i) >= '0' && peek(l, i) <= '9';)
            i++;
    return digits && peek(l, i) == '}' ? i + 1 : 0;
}

/* At a quantifier or a brace. */
static void quantifier(struct lexer *l)
{
    size_t n = peek(l, 0) == '{' ? count_length(l) : 1;

    if (n == 0) {
        l->found |= FL_RE_DIALECT;
        l->at++;
        return;
    }
    l->at += n;
    if (peek(l, 0) == '+') {
        l->found |= FL_RE_ATOMIC | FL_RE_DIALECT;
        l->at++;
    } else if (peek(l, 0) == '?') {
        l->at++;
    }
}

unsigned fl_pattern_features(fl_str regex)
{
    struct lexer l = {regex, 0, 0};
    int c;

    while ((c = peek(&l, 0)) >= 0) {
        if (c == '\\')
            escape(&l, false);
        else if (c == '[')
            char_class(&l);
        else if (c == '(')
            group(&l);
        else if (one_of(c, "*+?{"))
            quantifier(&l);
        else {
            if (c == '^')
                l.found |= FL_RE_CARET;
            if (c == '\n' || c == 0)
                l.found |= FL_RE_DIALECT;
            l.at++;
        }
    }
    return l.found;
}

bool fl_pattern_is_regular(fl_str regex)
{
    return !(fl_pattern_features(regex) & ~(unsigned)FL_RE_CARET);
}

bool fl_pattern_has_caret(fl_str regex)
{
    return fl_pattern_features(regex) & FL_RE_CARET;
}

bool fl_pattern_has_group(const struct fl_pattern *p, fl_str name)
{
    struct fl_expr *code = NULL;
    bool found = false;

    if (fl_expr_new(p->regex, p->icase, false, p->where, &code, NULL))
        return false;
    for (unsigned i = 0; i < code->ngroups && !found; i++)
        found = fl_str_eqz(name, code->group[i].name);
    fl_expr_free(code);
    return found;
}

struct probe {
    struct fl_expr *code;
    struct fl_tools tools;
    fl_buf line;
    fl_str hit;
    uint32_t steps, limit; /* enough for all lines so far; what may not be passed */
};

/* Raises p->steps until the line is decided within it. */
static int probe_line(struct probe *p, fl_err *err)
{
    fl_str s = fl_buf_str(&p->line);
    int rc;

    if (fl_buf_check(&p->line, "a probe line", err))
        return p->line.bad;
    for (;;) {
        pcre2_set_match_limit(p->tools.context, p->steps);
        rc = pcre2_match(p->code->re, (PCRE2_SPTR)s.p, s.n, 0, PCRE2_NO_JIT, p->tools.data,
                         p->tools.context);
        if (rc != PCRE2_ERROR_MATCHLIMIT && rc != PCRE2_ERROR_HEAPLIMIT)
            return rc == PCRE2_ERROR_NOMEMORY ? fl_fail_nomem(err) : FL_OK;
        if (rc == PCRE2_ERROR_HEAPLIMIT || p->steps >= p->limit)
            return FL_ELIMIT;
        p->steps = p->steps > p->limit / 4 ? p->limit : p->steps * 4;
    }
}

/* The hit stands behind the run as well, so that no literal which must come later is missing: PCRE2
 * would give up at once. */
static int probe_run(struct probe *p, fl_str head, fl_str unit, fl_err *err)
{
    if (unit.n == 0)
        return FL_OK;
    fl_buf_clear(&p->line);
    fl_buf_add(&p->line, head);
    while (p->line.n < head.n + PROBE_RUN && !p->line.bad)
        fl_buf_add(&p->line, unit);
    fl_buf_addc(&p->line, '\x01');
    fl_buf_add(&p->line, p->hit);
    return probe_line(p, err);
}

/* Runs behind one head of a hit: of its last byte, of its last bytes, of what classes take. */
static int probe_head(struct probe *p, fl_str hit, size_t cut, fl_err *err)
{
    const fl_str head = fl_str_sub(hit, 0, cut);
    const fl_str units[] = {fl_str_sub(hit, cut - 1, 1),
                            fl_str_sub(hit, cut > 6 ? cut - 6 : 0, 6),
                            fl_str_sub(hit, cut, 12),
                            FL_S("a"),
                            FL_S("0"),
                            FL_S(" ")};
    int r = FL_OK;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units) && r == FL_OK; i++)
        r = probe_run(p, head, units[i], err);
    return r;
}

static int probe_hit(struct probe *p, fl_str hit, fl_err *err)
{
    size_t step = hit.n / PROBE_CUTS + 1;
    int r = FL_OK;

    p->hit = hit;
    if (hit.n)
        r = probe_run(p, FL_S(""), fl_str_sub(hit, 0, hit.n - 1), err);
    for (size_t cut = 1; cut <= hit.n && r == FL_OK; cut += step)
        r = probe_head(p, hit, cut, err);
    return r;
}

int fl_pattern_probe(const struct fl_pattern *pattern, const fl_str *lines, size_t n,
                     uint32_t limit, fl_err *err)
{
    struct probe p = {.steps = PROBE_FIRST < limit ? PROBE_FIRST : limit, .limit = limit};
    int r = fl_tools_init(&p.tools, err);

    fl_buf_init(&p.line, 1 << 20);
    if (r == FL_OK)
        r = fl_expr_new(pattern->regex, pattern->icase, false, pattern->where, &p.code, err);
    for (size_t i = 0; i < n && r == FL_OK; i++)
        r = probe_hit(&p, fl_str_sub(lines[i], 0, 400), err);
    if (r == FL_OK)
        r = probe_hit(&p, FL_S("x"), err);
    if (r == FL_ELIMIT)
        r = fl_fail(err, FL_ELIMIT,
                    "%s: the pattern backtracks: more than %u steps on a line of %zu bytes; let "
                    "neighbouring repetitions accept different bytes: %.*s",
                    pattern->where, limit, p.line.n, FL_FMT(fl_str_sub(pattern->regex, 0, 200)));
    if (r == FL_OK)
        r = (int)(p.steps > INT32_MAX ? INT32_MAX : p.steps);
    fl_expr_free(p.code);
    fl_buf_dispose(&p.line);
    fl_tools_dispose(&p.tools);
    return r;
}
