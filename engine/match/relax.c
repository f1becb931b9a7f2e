/*
 * Expressions that see every digit alike.
 *
 * Most lines of a log differ from an earlier one in their numbers only. An expression that names no
 * particular digit (`\d+`, `[0-9a-f]`, `.`, but neither `7` nor `[1-5]`) matches two such lines
 * alike, so that what was found in the first holds for all (classes.c). Here each expression is
 * brought to that form: a digit, and a class with some of the digits, becomes one with all ten. The
 * result matches at least what the expression matches, and each further line is then tried with the
 * expression itself.
 *
 * This works on plain regular expressions, as the shipped rules are. Where more digits could mean
 * fewer matches (negative look-around, atomic groups) or digits are compared with each other
 * (back-references) nothing is rewritten: such an expression is tried on every line.
 *
 * Reads what fl_pattern_one_line() wrote. Refused: a parser of the whole syntax. What the lexer of
 * pattern.c calls dialect is left alone when it holds a digit anywhere.
 */
#include "match/code.h"

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    return digit(c)                 ? c - '0'
           : c >= 'a' && c <= 'f'   ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : -1;
}

struct item {
    size_t n;   /* bytes of the expression */
    bool digit; /* is a digit: one character, by whatever spelling */
};

/* One character or escape of a class or of the expression. */
static struct item item_at(fl_str s)
{
    int hi, lo;

    if (s.p[0] != '\\' || s.n < 2)
        return (struct item){1, digit(s.p[0])};
    if (s.p[1] != 'x' || s.n < 4)
        return (struct item){2, false};
    hi = hex_value(s.p[2]);
    lo = hex_value(s.p[3]);
    if (hi < 0 || lo < 0)
        return (struct item){2, false};
    return (struct item){4, hi == 3 && lo <= 9};
}

/* At '['. Copies the class; one that admits or excludes some of the digits admits all. */
static size_t relax_class(fl_str s, fl_buf *out, bool *changed)
{
    bool negated = s.n > 1 && s.p[1] == '^', some = false, all = false;
    size_t i = negated ? 2 : 1, start = i;

    fl_buf_add(out, fl_str_sub(s, 0, i));
    while (i < s.n && (s.p[i] != ']' || i == start)) {
        fl_str rest = fl_str_from(s, i);
        struct item a, b = {0, false};
        size_t n;
        if (fl_str_starts(rest, FL_S("[:"))) {
            ptrdiff_t end = fl_str_find(rest, FL_S(":]"));
            n = end < 0 ? 1 : (size_t)end + 2;
            fl_buf_add(out, fl_str_sub(rest, 0, n));
            i += n;
            continue;
        }
        a = item_at(rest);
        n = a.n;
        if (n + 1 < rest.n && rest.p[n] == '-' && rest.p[n + 1] != ']') {
            b = item_at(fl_str_from(rest, n + 1));
            n += 1 + b.n;
        }
        if (fl_str_starts(rest, FL_S("0-9")))
            all = true;
        else if (a.digit || b.digit)
            some = true;
        if (!negated || !(a.digit || b.digit) || fl_str_starts(rest, FL_S("0-9")))
            fl_buf_add(out, fl_str_sub(rest, 0, n));
        i += n;
    }
    if (some && !all) {
        *changed = true;
        if (!negated)
            fl_buf_addz(out, "0-9");
    }
    fl_buf_add(out, fl_str_sub(s, i, 1));
    return i + 1;
}

/* At '{': the length of a count, or 1. */
static size_t count_at(fl_str s)
{
    size_t i = 1;

    while (i < s.n && (digit(s.p[i]) || s.p[i] == ','))
        i++;
    return i > 1 && i < s.n && s.p[i] == '}' ? i + 1 : 1;
}

enum fl_relaxed fl_pattern_relax(fl_str regex, fl_buf *out)
{
    unsigned features = fl_pattern_features(regex);
    bool changed = false, digits = false;

    if (features & FL_RE_BACKREF)
        return FL_RELAX_EXACT;
    while (regex.n) {
        struct item it;
        size_t n;
        if (regex.p[0] == '[') {
            n = relax_class(regex, out, &changed);
        } else if (regex.p[0] == '{') {
            n = count_at(regex);
            fl_buf_add(out, fl_str_sub(regex, 0, n));
        } else if (fl_str_starts(regex, FL_S("(?P<"))) {
            ptrdiff_t end = fl_str_find_c(regex, '>');
            n = end < 0 ? 1 : (size_t)end + 1;
            fl_buf_add(out, fl_str_sub(regex, 0, n));
        } else {
            it = item_at(regex);
            n = it.n;
            digits |= it.digit;
            fl_buf_add(out, it.digit ? FL_S("[0-9]") : fl_str_sub(regex, 0, n));
        }
        regex = fl_str_from(regex, n);
    }
    if (!changed && !digits)
        return FL_RELAX_BLIND;
    return features & (FL_RE_LINEWISE | FL_RE_DIALECT) ? FL_RELAX_EXACT : FL_RELAX_SENSITIVE;
}
