/*
 * An expression that stays in its line.
 *
 * Blocks of lines are scanned whole, and `"[^"]*"` or `a\s+b` may then match from one line into the
 * next. Such a match is none, but the engines tell of it differently: PCRE2 names the line in which
 * it begins, Vectorscan each line in which one ends. Lines that are looked at for nothing cost
 * time, and told apart two engines that must not differ (found by test_engines on random lines). So
 * an expression is rewritten before any engine sees it: what a class admits without being asked for
 * it no longer includes LF. Within a line that changes nothing, as a line holds none.
 *
 * Refused: a full parser. What this does not know (\Q, an LF that is written out) is left as it is;
 * the confirmation in the line still decides.
 */
#include "match/code.h"

/* At '[' of a class that is not negated: \s gives up its LF. Returns what was read. */
static size_t plain_class(fl_str s, fl_buf *out)
{
    size_t i = 1;

    fl_buf_addc(out, '[');
    if (i < s.n && s.p[i] == ']')
        fl_buf_addc(out, s.p[i++]);
    while (i < s.n && s.p[i] != ']') {
        ptrdiff_t named = s.p[i] == '[' && i + 1 < s.n && s.p[i + 1] == ':'
                              ? fl_str_find(fl_str_from(s, i), FL_S(":]"))
                              : -1;
        if (named >= 0) {
            fl_buf_add(out, fl_str_sub(s, i, (size_t)named + 2));
            i += (size_t)named + 2;
        } else if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 's') {
            fl_buf_addz(out, " \\t\\r\\f\\x0b");
            i += 2;
            if (i + 1 < s.n && s.p[i] == '-' && s.p[i + 1] != ']')
                fl_buf_addc(out, '\\'); /* a '-' behind \s is itself */
        } else {
            size_t n = s.p[i] == '\\' ? 2 : 1;
            fl_buf_add(out, fl_str_sub(s, i, n));
            i += n;
        }
    }
    return i;
}

/* At "[^": the class excludes LF too. */
static size_t negated_class(fl_str s, fl_buf *out)
{
    size_t i = 2;

    fl_buf_addz(out, "[^\\n");
    if (i < s.n && (s.p[i] == ']' || s.p[i] == '-')) {
        fl_buf_addc(out, '\\');
        fl_buf_addc(out, s.p[i++]);
    }
    while (i < s.n && s.p[i] != ']') {
        ptrdiff_t named = s.p[i] == '[' && i + 1 < s.n && s.p[i + 1] == ':'
                              ? fl_str_find(fl_str_from(s, i), FL_S(":]"))
                              : -1;
        size_t n = named >= 0 ? (size_t)named + 2 : s.p[i] == '\\' ? 2 : 1;
        fl_buf_add(out, fl_str_sub(s, i, n));
        i += n;
    }
    return i;
}

static size_t escaped(fl_str s, fl_buf *out)
{
    char c = s.n > 1 ? s.p[1] : 0;

    if (c == 's')
        fl_buf_addz(out, "[^\\n\\S]");
    else if (c == 'D')
        fl_buf_addz(out, "[^\\n0-9]");
    else if (c == 'W')
        fl_buf_addz(out, "[^\\n\\w]");
    else
        fl_buf_add(out, fl_str_sub(s, 0, 2));
    return 2;
}

void fl_pattern_one_line(fl_str regex, fl_buf *out)
{
    if (fl_str_has(regex, FL_S("\\Q"))) {
        fl_buf_add(out, regex);
        return;
    }
    while (regex.n) {
        size_t n = 1;
        if (regex.p[0] == '\\')
            n = escaped(regex, out);
        else if (regex.p[0] == '[' && regex.n > 1 && regex.p[1] == '^')
            n = negated_class(regex, out);
        else if (regex.p[0] == '[')
            n = plain_class(regex, out);
        else
            fl_buf_addc(out, regex.p[0]);
        regex = fl_str_from(regex, n);
    }
}
