/*
 * One JSON object on one line, without a tree.
 *
 * A container's log is one such object a line, millions of them; building a tree for each would
 * cost more than the diagnosis. This finds where the wanted values begin and end and nothing else.
 * It is lenient about what it passes over and strict about what it returns.
 */
#include "read/jsonline.h"

#include "base/alloc.h"

static size_t blanks(fl_str s, size_t i)
{
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'))
        i++;
    return i;
}

/* `i` is behind the opening quote: position of the closing one, or s.n. */
static size_t string_end(fl_str s, size_t i)
{
    while (i < s.n) {
        const char *q = memchr(s.p + i, '"', s.n - i);
        size_t back = 0, at;
        if (!q)
            return s.n;
        at = (size_t)(q - s.p);
        while (at - back > i && s.p[at - back - 1] == '\\')
            back++;
        if (back % 2 == 0)
            return at;
        i = at + 1;
        /* The backslash run ended in an escaped quote: nothing before `i` matters any more. */
    }
    return s.n;
}

/* Behind the value at `i`, or 0. */
static size_t value_end(fl_str s, size_t i)
{
    size_t depth = 0;

    while (i < s.n) {
        char c = s.p[i];
        if (c == '"') {
            i = string_end(s, i + 1);
            if (i == s.n)
                return 0;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return i;
            depth--;
        } else if (c == ',' && depth == 0) {
            return i;
        }
        i++;
    }
    return 0;
}

bool fl_jl_scan(fl_str s, const fl_str *keys, struct fl_jl_value *values, size_t n)
{
    size_t i = blanks(s, 0), end, v;

    for (size_t k = 0; k < n; k++)
        values[k] = (struct fl_jl_value){FL_JL_ABSENT, {NULL, 0}};
    if (i >= s.n || s.p[i] != '{')
        return false;
    i = blanks(s, i + 1);
    while (i < s.n && s.p[i] == '"') {
        fl_str key;
        end = string_end(s, i + 1);
        key = fl_str_sub(s, i + 1, end - i - 1);
        v = blanks(s, end + 1);
        if (v >= s.n || s.p[v] != ':')
            return false;
        v = blanks(s, v + 1);
        end = value_end(s, v);
        if (end <= v)
            return false;
        for (size_t k = 0; k < n; k++) {
            if (!fl_str_eq(key, keys[k]))
                continue;
            values[k].raw = fl_str_trim(fl_str_sub(s, v, end - v));
            values[k].kind = FL_JL_OTHER;
            if (s.p[v] == '"' && values[k].raw.n >= 2) {
                values[k].kind = FL_JL_STRING;
                values[k].raw = fl_str_sub(values[k].raw, 1, values[k].raw.n - 2);
            }
        }
        if (s.p[end] == '}')
            return blanks(s, end + 1) == s.n;
        if (s.p[end] != ',')
            return false;
        i = blanks(s, end + 1);
    }
    return i < s.n && s.p[i] == '}' && blanks(s, i + 1) == s.n;
}

static int hex4(fl_str s, size_t i)
{
    int v = 0;

    if (i + 4 > s.n)
        return -1;
    for (size_t k = i; k < i + 4; k++) {
        char c = s.p[k];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static void put_code(uint32_t c, fl_buf *out)
{
    char o[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        o[i] = (char)(0x80 | (c & 0x3f));
    o[0] = (char)(lead[n] | c);
    fl_buf_add(out, fl_str_n(o, n));
}

/* `i` at the 'u' of an escape: position behind it. */
static size_t unicode(fl_str s, size_t i, fl_buf *out)
{
    int a = hex4(s, i + 1), b;

    if (a < 0) {
        fl_buf_addc(out, 'u');
        return i + 1;
    }
    i += 5;
    if (a >= 0xd800 && a < 0xdc00 && i + 1 < s.n && s.p[i] == '\\' && s.p[i + 1] == 'u') {
        b = hex4(s, i + 2);
        if (b >= 0xdc00 && b < 0xe000) {
            put_code(0x10000u + (((uint32_t)a - 0xd800u) << 10) + ((uint32_t)b - 0xdc00u), out);
            return i + 6;
        }
    }
    put_code(a >= 0xd800 && a < 0xe000 ? 0xfffdu : (uint32_t)a, out);
    return i;
}

void fl_jl_text(fl_str raw, fl_buf *out)
{
    static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
    size_t i = 0;

    while (i < raw.n) {
        const char *b = memchr(raw.p + i, '\\', raw.n - i), *f;
        size_t run = b ? (size_t)(b - raw.p) - i : raw.n - i;
        fl_buf_add(out, fl_str_sub(raw, i, run));
        i += run;
        if (!b)
            return;
        if (++i == raw.n)
            return;
        if (raw.p[i] == 'u') {
            i = unicode(raw, i, out);
            continue;
        }
        f = raw.p[i] ? strchr(from, raw.p[i]) : NULL;
        fl_buf_addc(out, f ? to[f - from] : raw.p[i]);
        i++;
    }
}
