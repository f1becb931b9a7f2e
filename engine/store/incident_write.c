/*
 * Incidents as YAML, the same bytes for the same incident.
 *
 * Written by hand and not by libyaml's emitter: an export is read by people and compared by
 * machines, so the choice between plain, quoted and block must not change with a library's version,
 * and the emitter folds long lines, which here are evidence. A text is written in the plainest form
 * that any YAML reader gives back unchanged: plain when it cannot be taken for a number, date,
 * truth value or syntax; a block when it has several harmless lines; single quotes when every
 * character can be seen; double quotes with escapes for the rest, so that an export shown on a
 * terminal moves no cursor. Bytes that are no UTF-8 have no form in YAML at all and become
 * {escaped: ...}.
 */
#include "store/incident.h"

#include <stdio.h>

#include "base/text.h"
#include "base/alloc.h"

static unsigned code_point(fl_str s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s.p;

    if (n == 1)
        return u[0];
    if (n == 2)
        return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    if (n == 3)
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

/* Seen as itself on a terminal and taken as itself by YAML readers. */
static bool visible(unsigned cp)
{
    if (cp < 0x80)
        return cp >= 0x20 && cp != 0x7F;
    return cp > 0xA0 && !(cp >= 0x200B && cp <= 0x200F) && !(cp >= 0x2028 && cp <= 0x202E) &&
           !(cp >= 0x2060 && cp <= 0x206F) && cp != 0xFEFF && cp != 0xFFFE && cp != 0xFFFF;
}

struct looks {
    bool utf8, visible; /* visible: line feeds not counted */
    bool lines;         /* holds a line feed */
    bool block;         /* could be a literal block */
};

static struct looks look(fl_str s)
{
    struct looks l = {true, true, false, true};
    bool blank_line = true;
    size_t n;

    for (fl_str rest = s; rest.n && l.utf8; rest = fl_str_from(rest, n)) {
        n = fl_text_unit(rest);
        if (n == 0) {
            l.utf8 = false;
            break;
        }
        if (rest.p[0] == '\n') {
            /* a line of blanks alone is not seen, and some readers drop it */
            if (blank_line && rest.p != s.p && rest.p[-1] != '\n')
                l.block = false;
            l.lines = true;
            blank_line = true;
            continue;
        }
        if (rest.p[0] != ' ')
            blank_line = false;
        if (!visible(code_point(rest, n)))
            l.visible = false;
    }
    if (s.n == 0 || s.p[0] == '\n' || s.p[0] == ' ' || s.p[s.n - 1] == '\n' || blank_line)
        l.block = false;
    return l;
}

/* Words that some reader of YAML takes for something else than a text. */
static bool look_alike(fl_str s)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n",  NULL};

    for (const char *const *w = words; *w; w++)
        if (fl_str_ieq(s, fl_str_c(*w)))
            return true;
    return false;
}

static bool plain(fl_str s, bool flow)
{
    if (s.n == 0 || s.p[s.n - 1] == ' ' || look_alike(s) ||
        !((s.p[0] >= 'a' && s.p[0] <= 'z') || (s.p[0] >= 'A' && s.p[0] <= 'Z')))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr(" _./()+=;-", c)) || (c == ',' && !flow)))
            return false;
    }
    return true;
}

static void write_double(fl_str s, fl_buf *out)
{
    size_t n;

    fl_buf_addc(out, '"');
    for (; s.n; s = fl_str_from(s, n)) {
        unsigned cp;
        n = fl_text_unit(s);
        cp = code_point(s, n);
        if (cp == '"' || cp == '\\')
            fl_buf_addf(out, "\\%c", (char)cp);
        else if (cp == '\n')
            fl_buf_addz(out, "\\n");
        else if (cp == '\t')
            fl_buf_addz(out, "\\t");
        else if (visible(cp))
            fl_buf_add(out, fl_str_sub(s, 0, n));
        else
            fl_buf_addf(out, cp < 0x100 ? "\\x%02x" : "\\u%04x", cp);
    }
    fl_buf_addc(out, '"');
}

static void write_single(fl_str s, fl_buf *out)
{
    fl_buf_addc(out, '\'');
    while (s.n) {
        ptrdiff_t at = fl_str_find_c(s, '\'');
        fl_buf_add(out, at < 0 ? s : fl_str_sub(s, 0, (size_t)at));
        if (at < 0)
            break;
        fl_buf_addz(out, "''");
        s = fl_str_from(s, (size_t)at + 1);
    }
    fl_buf_addc(out, '\'');
}

static void write_block(fl_str s, int indent, fl_buf *out)
{
    fl_buf_addz(out, "|-");
    while (s.n) {
        fl_str line = fl_str_cut(&s, '\n');
        fl_buf_addc(out, '\n');
        if (line.n)
            fl_buf_addf(out, "%*s", indent, "");
        fl_buf_add(out, line);
    }
}

static void write_escaped(fl_str s, fl_buf *out)
{
    fl_buf text;

    fl_buf_init(&text, (size_t)-1 / 2);
    while (s.n) {
        size_t n = fl_text_unit(s);
        if (n == 0)
            fl_buf_addf(&text, "\\x%02x", (unsigned char)s.p[0]);
        else if (s.p[0] == '\\')
            fl_buf_addz(&text, "\\\\");
        else
            fl_buf_add(&text, fl_str_sub(s, 0, n));
        s = fl_str_from(s, n ? n : 1);
    }
    if (text.bad)
        out->bad = text.bad;
    fl_buf_addz(out, "{escaped: ");
    if (look(fl_buf_str(&text)).visible && !look(fl_buf_str(&text)).lines)
        write_single(fl_buf_str(&text), out);
    else
        write_double(fl_buf_str(&text), out);
    fl_buf_addc(out, '}');
    fl_buf_dispose(&text);
}

/* `indent`: of a block's lines; 0: in a flow list, where there is no block. */
static void write_text(fl_str s, int indent, fl_buf *out)
{
    struct looks l = look(s);

    if (!l.utf8)
        write_escaped(s, out);
    else if (plain(s, indent == 0))
        fl_buf_add(out, s);
    else if (l.visible && !l.lines)
        write_single(s, out);
    else if (l.visible && l.block && indent)
        write_block(s, indent, out);
    else
        write_double(s, out);
}

struct writing {
    fl_incident_map_fn map;
    void *ctx;
    fl_buf *out, tmp;
};

static void mapped(struct writing *w, fl_str s, int indent)
{
    if (!w->map) {
        write_text(s, indent, w->out);
        return;
    }
    fl_buf_clear(&w->tmp);
    w->map(w->ctx, s, &w->tmp);
    if (w->tmp.bad)
        w->out->bad = w->tmp.bad;
    write_text(fl_buf_str(&w->tmp), indent, w->out);
}

static void key(struct writing *w, const char *name, fl_str s, bool map)
{
    if (s.n == 0)
        return;
    fl_buf_addf(w->out, "    %s: ", name);
    if (map)
        mapped(w, s, 6);
    else
        write_text(s, 6, w->out);
    fl_buf_addc(w->out, '\n');
}

void fl_incident_write(const struct fl_incident *inc, fl_incident_map_fn map, void *ctx,
                       fl_buf *out)
{
    struct writing w = {.map = map, .ctx = ctx, .out = out};

    fl_buf_init(&w.tmp, 8 * FL_INCIDENT_MAX_BYTES);
    fl_buf_addz(out, "  - id: ");
    write_text(inc->id, 6, out);
    fl_buf_addc(out, '\n');
    if (inc->kind != FL_KIND_INCIDENT)
        fl_buf_addf(out, "    kind: %s\n", fl_incident_kind_word(inc->kind));
    key(&w, "cause", inc->cause, false);
    key(&w, "title", inc->title, true);
    for (size_t i = 0; i < inc->nstack; i++) {
        fl_buf_addz(out, i ? ", " : "    stack: [");
        write_text(inc->stack[i], 0, out);
    }
    if (inc->nstack)
        fl_buf_addz(out, "]\n");
    key(&w, "phase", inc->phase, false);
    if (inc->nevidence)
        fl_buf_addz(out, "    evidence:\n");
    for (size_t i = 0; i < inc->nevidence; i++) {
        fl_buf_addz(out, "      - ");
        mapped(&w, inc->evidence[i], 8);
        fl_buf_addc(out, '\n');
    }
    key(&w, "explanation", inc->explanation, true);
    key(&w, "fix", inc->fix, true);
    key(&w, "source", inc->source, true);
    fl_buf_addf(out, "    origin: %s\n", fl_incident_origin_word(inc->origin));
    if (inc->origin != FL_ORIGIN_CORPUS) { /* a shipped one's is the moment of its import */
        key(&w, "created", inc->created, false);
        key(&w, "updated", inc->updated, false);
    }
    fl_buf_addf(out, "    count: %llu\n", (unsigned long long)inc->count);
    key(&w, "shape", inc->shape, false);
    fl_buf_dispose(&w.tmp);
}
