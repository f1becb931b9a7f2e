/*
 * Making hostile bytes printable.
 *
 * A log can hold escape sequences that move the cursor, set the window's title or answer back to
 * the shell, and bidirectional overrides that show a line in another order than it has. All of
 * them become visible escapes. Valid UTF-8 letters pass: user names and paths are not all ASCII.
 */
#include "base/text.h"

#include <stdio.h>

size_t fl_text_unit(fl_str s)
{
    const unsigned char *u = (const unsigned char *)s.p;
    size_t n;
    unsigned min;
    unsigned cp;

    if (s.n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    if (u[0] >= 0xC2 && u[0] <= 0xDF)
        n = 2, min = 0x80, cp = u[0] & 0x1Fu;
    else if ((u[0] & 0xF0) == 0xE0)
        n = 3, min = 0x800, cp = u[0] & 0x0Fu;
    else if (u[0] >= 0xF0 && u[0] <= 0xF4)
        n = 4, min = 0x10000, cp = u[0] & 0x07u;
    else
        return 0;
    if (s.n < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xC0) != 0x80)
            return 0;
        cp = cp << 6 | (u[i] & 0x3Fu);
    }
    if (cp < min || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
        return 0;
    return n;
}

static unsigned code_point(fl_str s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s.p;

    if (n == 2)
        return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    if (n == 3)
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    return n == 1 ? u[0] : 0x10000;
}

/* C1 controls, line and paragraph separators, bidirectional marks, byte order mark. */
static bool harmful(unsigned cp)
{
    return (cp >= 0x80 && cp <= 0x9F) || cp == 0x200E || cp == 0x200F ||
           (cp >= 0x2028 && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0xFEFF;
}

/* One printable unit from the start of `s` into `unit` (at most 8 bytes); bytes of `s` used. */
static size_t escape_unit(fl_str s, char unit[12], size_t *len)
{
    size_t n = fl_text_unit(s);
    unsigned char c = (unsigned char)s.p[0];

    if (n == 0 || (n == 1 && ((c < 0x20 && c != '\t') || c == 0x7F))) {
        *len = (size_t)snprintf(unit, 12, "\\x%02x", c);
        return 1;
    }
    if (n > 1 && harmful(code_point(s, n))) {
        *len = (size_t)snprintf(unit, 12, "\\u%04x", code_point(s, n));
        return n;
    }
    memcpy(unit, s.p, n);
    *len = n;
    return n;
}

size_t fl_text_escape(fl_str s, char *out, size_t cap)
{
    size_t used = 0, at = 0;

    if (cap == 0)
        return 0;
    while (used < s.n) {
        char unit[12];
        size_t len, n = escape_unit(fl_str_from(s, used), unit, &len);
        if (at + len + 1 > cap)
            break;
        memcpy(out + at, unit, len);
        at += len;
        used += n;
    }
    out[at] = 0;
    return used;
}

void fl_text_escape_buf(fl_str s, fl_buf *out)
{
    while (s.n) {
        char unit[12];
        size_t len, n = escape_unit(s, unit, &len);
        fl_buf_add(out, fl_str_n(unit, len));
        s = fl_str_from(s, n);
    }
}

void fl_text_utf8(fl_str s, fl_buf *out)
{
    while (s.n) {
        size_t run = 0, n;
        while (run < s.n && (n = fl_text_unit(fl_str_from(s, run))) > 0)
            run += n;
        fl_buf_add(out, fl_str_sub(s, 0, run));
        if (run < s.n) {
            fl_buf_addz(out, "\xEF\xBF\xBD");
            run++;
        }
        s = fl_str_from(s, run);
    }
}
