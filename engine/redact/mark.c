/*
 * What counts as a placeholder.
 *
 * One reader serves both ways. On the way home it finds placeholders in whatever shape a model left
 * them; on the way out it finds the same shapes in the text itself, which are then hidden behind a
 * <TEXT_n> of their own. So whatever this reader is lenient about, a text that merely looks like a
 * placeholder can never come home as somebody's host name: leniency costs at worst that a word such
 * as `user_1` in a log reaches the model as <TEXT_1>.
 *
 * Without brackets only KIND_3 with its underscore (or a Markdown `\_`) is taken, as a word of its
 * own; `host-10` and `user 127` are ordinary log text. A bracket of which the other half is missing
 * counts as none, except that it is swallowed with the rest when it is '<'.
 *
 * A placeholder as fl_redact() writes it is read to its '>' and never beyond, and none begins with
 * what can stand before one, so text next to placeholders cannot change how they are read.
 */
#include "redact/scan.h"

#define ALL_DIGITS 6 /* more are no number that was ever given out */

static const char *const words[FL_REDACT_KINDS] = {"SECRET", "HOST",  "DOMAIN", "IP",  "USER",
                                                   "PATH",   "EMAIL", "BUCKET", "TEXT"};

const char *fl_redact_word(enum fl_redact_kind kind)
{
    return kind < FL_REDACT_KINDS ? words[kind] : "TEXT";
}

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
}

static size_t word_at(fl_str s, enum fl_redact_kind *kind)
{
    for (int k = 0; k < FL_REDACT_KINDS; k++) {
        size_t n = strlen(words[k]), i = 0;
        while (i < n && i < s.n && upper(s.p[i]) == words[k][i])
            i++;
        if (i == n) {
            *kind = (enum fl_redact_kind)k;
            return n;
        }
    }
    return 0;
}

static size_t blanks(fl_str s, size_t i)
{
    while (i < s.n && s.p[i] == ' ')
        i++;
    return i;
}

/* KIND, a separator and a number: length or 0. `strict`: the separator is an underscore. */
static size_t body_at(fl_str s, bool strict, struct fl_mark *out)
{
    struct fl_mark m = {FL_REDACT_SECRET, 0};
    size_t i = word_at(s, &m.kind), digits = 0;

    if (i == 0)
        return 0;
    if (i + 1 < s.n && s.p[i] == '\\' && s.p[i + 1] == '_')
        i += 2;
    else if (i < s.n && (s.p[i] == '_' || (!strict && (s.p[i] == '-' || s.p[i] == ' '))))
        i++;
    else if (strict || i >= s.n)
        return 0;
    for (; i < s.n && fl_digit(s.p[i]); i++) {
        if (++digits > ALL_DIGITS)
            m.number = UINT32_MAX;
        else
            m.number = m.number * 10 + (uint32_t)(s.p[i] - '0');
    }
    if (digits == 0)
        return 0;
    *out = m;
    return i;
}

struct pair {
    const char *open, *close;
};

/* With both brackets; blanks inside are fine. */
static size_t bracketed(fl_str s, struct fl_mark *out)
{
    static const struct pair pairs[] = {
        {"<", ">"},     {"&lt;", "&gt;"}, {"\\u003c", "\\u003e"}, {"\\u003C", "\\u003E"},
        {"\\<", "\\>"}, {"%3C", "%3E"},   {"%3c", "%3e"},
    };

    for (size_t k = 0; k < sizeof(pairs) / sizeof(*pairs); k++) {
        fl_str open = fl_str_c(pairs[k].open), close = fl_str_c(pairs[k].close);
        struct fl_mark m;
        size_t i, n;
        if (!fl_str_starts(s, open))
            continue;
        i = blanks(s, open.n);
        n = body_at(fl_str_from(s, i), false, &m);
        if (n == 0)
            continue;
        i = blanks(s, i + n);
        if (!fl_str_starts(fl_str_from(s, i), close))
            continue;
        *out = m;
        return i + close.n;
    }
    return 0;
}

size_t fl_mark_at(fl_str s, char before, struct fl_mark *out)
{
    struct fl_mark m;
    size_t n = s.n && fl_alpha(s.p[0]) ? 0 : bracketed(s, out), skip = s.n && s.p[0] == '<';

    if (n)
        return n;
    if (!skip && fl_word(before))
        return 0;
    n = body_at(fl_str_from(s, skip), true, &m);
    if (n == 0 || (n + skip < s.n && fl_word(s.p[n + skip])))
        return 0;
    n += skip;
    if (!skip && n < s.n && s.p[n] == '>') /* HOST_1> */
        n++;
    *out = m;
    return n;
}

bool fl_mark_start(char c)
{
    switch (upper(c)) {
    case '<':
    case '&':
    case '\\':
    case '%':
    case 'S':
    case 'H':
    case 'D':
    case 'I':
    case 'U':
    case 'P':
    case 'E':
    case 'B':
    case 'T':
        return true;
    default:
        return false;
    }
}
