/*
 * Printing for people.
 *
 * Log text is hostile to a terminal, so no byte of it reaches stdout but through fl_printable().
 * A column is counted for each code point; wide characters are not looked up, so a line of them may
 * overhang: a width table would be the largest thing in this room and logs are mostly ASCII.
 * Only ASCII is printed by ourselves: the screen may be a serial console in the C locale.
 */
#include "out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "faultline.h"

#define WIDTH_MIN 40
#define WIDTH_MAX 500
#define CHUNK 4096

static const char *const style_codes[] = {
    [OUT_PLAIN] = NULL,       [OUT_BOLD] = "\033[1m",      [OUT_RED] = "\033[1;31m",
    [OUT_GREEN] = "\033[32m", [OUT_YELLOW] = "\033[1;33m", [OUT_DIM] = "\033[2m"};

static bool wants_color(FILE *f, const char *color)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (color && strcmp(color, "always") == 0)
        return true;
    if (color && strcmp(color, "never") == 0)
        return false;
    return isatty(fileno(f)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

void out_init(struct out *o, FILE *f, const char *color, unsigned width)
{
    struct winsize size;

    *o = (struct out){.f = f, .width = width ? width : 80, .color = wants_color(f, color)};
    if (!width && isatty(fileno(f)) && ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col)
        o->width = size.ws_col;
    if (o->width < WIDTH_MIN)
        o->width = WIDTH_MIN;
    if (o->width > WIDTH_MAX)
        o->width = WIDTH_MAX;
}

size_t out_columns(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* Escapes the start of `text`; tabs become blanks so that columns can be counted. */
static size_t printable(const char *text, char *to, size_t cap)
{
    size_t used = fl_printable(text, to, cap);

    for (char *c = to; *c; c++) {
        if (*c == '\t')
            *c = ' ';
    }
    return used;
}

void out_text(const struct out *o, enum out_style style, const char *text)
{
    const char *code = o->color ? style_codes[style] : NULL;
    char chunk[CHUNK];

    if (code)
        fputs(code, o->f);
    while (*text) {
        size_t used = printable(text, chunk, sizeof(chunk));

        if (!used)
            break;
        fputs(chunk, o->f);
        text += used;
    }
    if (code)
        fputs("\033[0m", o->f);
}

void out_pad(const struct out *o, unsigned columns)
{
    fprintf(o->f, "%*s", (int)columns, "");
}

void out_label(const struct out *o, const char *label)
{
    size_t n = strlen(label);

    if (n)
        out_text(o, OUT_BOLD, label);
    out_pad(o, n < OUT_GUTTER ? (unsigned)(OUT_GUTTER - n) : 1);
}

/* Bytes of `text` that fit into `columns`. */
static size_t fit(const char *text, size_t columns)
{
    size_t n = 0;

    while (text[n]) {
        if (((unsigned char)text[n] & 0xC0) != 0x80 && columns-- == 0)
            break;
        n++;
    }
    return n;
}

/* The bytes of one line out of `text`, broken at a blank where there is one. */
static size_t line_break(const char *text, size_t columns)
{
    size_t n = fit(text, columns), at = n;

    if (!text[n])
        return n;
    while (at > 0 && text[at] != ' ')
        at--;
    return at > columns / 3 ? at : n;
}

unsigned out_wrapped(const struct out *o, const char *label, const char *text, unsigned max_lines)
{
    size_t columns = o->width - OUT_GUTTER;
    char all[CHUNK * 2];
    unsigned lines = 0;
    const char *p = all;
    bool rest = text[printable(text, all, sizeof(all))] != 0;

    while (*p || !lines) {
        bool last = max_lines && lines + 1 == max_lines;
        size_t n = line_break(p, columns);

        out_label(o, lines ? "" : label);
        if (last && (p[n] || rest)) {
            n = line_break(p, columns - 3);
            fprintf(o->f, "%.*s...\n", (int)n, p);
            return lines + 1;
        }
        fprintf(o->f, "%.*s\n", (int)n, p);
        lines++;
        p += n;
        while (*p == ' ')
            p++;
    }
    return lines;
}

/* Where to look when the report does not say which bytes matched. */
static size_t notable(const char *text)
{
    static const char *const words[] = {"Xid",      "rror",     "ailed",  "FAIL",     "atal",
                                        "FATAL",    "xception", "imeout", "imed out", "illed",
                                        "No space", "denied",   "WARN"};
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        const char *hit = strstr(text, words[i]);

        if (hit && (size_t)(hit - text) < best)
            best = (size_t)(hit - text);
    }
    return best == SIZE_MAX ? 0 : best;
}

/* The part of `text` to show in `columns`, escaped, with "..." for what is cut off. */
static void excerpt(const char *text, size_t at, size_t len, unsigned columns, char *to, size_t cap)
{
    size_t n = strlen(text), start = 0, back = columns / 4, used = 0;

    if (!len || at >= n)
        at = notable(text);
    if (n > columns && at + (len ? len : 20) > columns - 3) {
        start = at > back ? at - back : 0;
        /* What can be shown in full to the end is better than blanks there. */
        if (n - start < columns - 3)
            start = n - (columns - 3);
        while (start < n && ((unsigned char)text[start] & 0xC0) == 0x80)
            start++;
    }
    if (start) {
        memcpy(to, "...", 4);
        used = 3;
    }
    start += printable(text + start, to + used, cap - used - 3);
    if (!text[start] && out_columns(to) <= columns)
        return;
    memcpy(to + fit(to, columns - 3), "...", 4);
}

unsigned out_quote(const struct out *o, const char *text, size_t at, size_t len, unsigned first,
                   unsigned max_lines)
{
    unsigned wide = o->width - OUT_GUTTER, room = first, lines = 1;
    char shown[CHUNK];
    const char *p = shown;

    excerpt(text, at, len, first + (max_lines - 1) * wide, shown, sizeof(shown));
    for (;; lines++) {
        size_t n = line_break(p, room);
        bool cut = p[n] && lines == max_lines;

        /* Breaking at words takes room that the excerpt had counted on. */
        if (cut)
            n = fit(p, room - 3);
        fprintf(o->f, "%.*s%s\n", (int)n, p, cut ? "..." : "");
        p += n + (p[n] == ' ');
        if (!*p || cut)
            return lines;
        out_pad(o, OUT_GUTTER);
        room = wide;
    }
}

void out_cut(const struct out *o, const char *text, unsigned columns)
{
    char shown[CHUNK];

    excerpt(text, 0, 1, columns, shown, sizeof(shown));
    fputs(shown, o->f);
}

unsigned out_name(const struct out *o, const char *name, unsigned columns)
{
    char shown[CHUNK];
    const char *p = shown;
    size_t have, drop;

    printable(name, shown, sizeof(shown));
    have = out_columns(shown);
    if (have <= columns) {
        fputs(shown, o->f);
        return (unsigned)have;
    }
    drop = have - (columns - 3);
    p += fit(shown, drop);
    fprintf(o->f, "...%s", p);
    return columns;
}

/* Length of the valid UTF-8 unit at p, or 0. */
static size_t utf8_unit(const unsigned char *p)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;

    if (p[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

void out_json_text(FILE *f, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    if (!text) {
        fputs("null", f);
        return;
    }
    fputc('"', f);
    while (*p) {
        size_t n = utf8_unit(p);

        if (!n)
            fputs("\\ufffd", f);
        else if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(f, "\\u%04x", *p);
        else
            fwrite(p, 1, n, f);
        p += n ? n : 1;
    }
    fputc('"', f);
}

void out_line_add(struct out_line *l, const char *fmt, ...)
{
    size_t room = sizeof(l->p) - l->n;
    va_list ap;
    int n;

    if (l->full)
        return;
    va_start(ap, fmt);
    n = vsnprintf(l->p + l->n, room, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < room) {
        l->n += (size_t)n;
        return;
    }
    l->full = true;
    l->n = sizeof(l->p) - 1;
    memcpy(l->p + l->n - 3, "...", 4);
}

void out_line_ranges(struct out_line *l, const int32_t *v, size_t n, size_t max)
{
    size_t i = 0, shown = 0;

    while (i < n && shown < max) {
        size_t last = i;

        while (last + 1 < n && v[last + 1] == v[last] + 1)
            last++;
        out_line_add(l, "%s%d", shown++ ? "," : "", (int)v[i]);
        if (last > i)
            out_line_add(l, "-%d", (int)v[last]);
        i = last + 1;
    }
    if (i < n)
        out_line_add(l, " and %zu more", n - i);
}

void out_line_names(struct out_line *l, const char *const *v, size_t n, size_t max)
{
    for (size_t i = 0; i < n && i < max; i++)
        out_line_add(l, "%s%s", i ? ", " : "", v[i]);
    if (n > max)
        out_line_add(l, " and %zu more", n - max);
}

void out_line_bytes(struct out_line *l, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    double v = (double)bytes;
    size_t u = 0;

    while (v >= 999.5 && u + 1 < sizeof(units) / sizeof(*units)) {
        v /= 1000;
        u++;
    }
    out_line_add(l, u == 0 || v >= 9.95 ? "%.0f %s" : "%.1f %s", v, units[u]);
}
