/*
 * Carriage returns, ANSI escapes and NULs out of the text, in place.
 *
 * Most logs have none of the three, so that is asked first, with one memchr() each over the new
 * bytes; a clean block is then only counted. Otherwise a small state machine walks the bytes and
 * closes the gaps; it keeps its state across buffers, so that the result does not depend on where
 * a buffer ends. Everything that is removed or cut is shorter than what it stood for, which is why
 * this can work in place.
 *
 * A CR that an LF follows is part of the line end. Any other CR ends a segment: a progress bar
 * that was redrawn a thousand times becomes a thousand short lines of text, which all are the same
 * line of the file; fl_marks records that. Segments without text are dropped, since most bars
 * write the CR first. An escape sequence never reaches over a line end: a log that was cut inside
 * one loses that line's rest at most.
 *
 * The cap on a segment is checked in the fast path by asking for an LF in each window of half the
 * cap: a longer segment must cover one whole window.
 */
#define _GNU_SOURCE
#include "read/clean.h"

#include <string.h>

#include "base/alloc.h"

enum { ESC_NONE, ESC_START, ESC_CSI, ESC_STRING, ESC_STRING_ESC, ESC_CHARSET };

void fl_marks_start(struct fl_marks *m, uint64_t first_line)
{
    m->first_line = first_line;
    m->lfs = 0;
    m->by = 0;
    m->n = 0;
}

void fl_marks_dispose(struct fl_marks *m)
{
    fl_free(m->v);
    *m = (struct fl_marks){0};
}

int fl_marks_line(struct fl_marks *m, size_t at, uint64_t line)
{
    int64_t by = (int64_t)(line - m->first_line - m->lfs);

    if (by == m->by)
        return FL_OK;
    if (m->n == 0 || m->v[m->n - 1].at != at) {
        if (fl_grow((void **)&m->v, &m->cap, m->n + 1, sizeof(*m->v)))
            return FL_ENOMEM;
        m->n++;
    }
    m->v[m->n - 1] = (struct fl_line_shift){(uint32_t)at, (int32_t)by};
    m->by = by;
    return FL_OK;
}

size_t fl_count_lf(const char *p, size_t n)
{
    const uint64_t lf = 0x0a0a0a0a0a0a0a0aULL, low = 0x7f7f7f7f7f7f7f7fULL;
    const uint64_t ones = 0x0101010101010101ULL, even = 0x00ff00ff00ff00ffULL;
    size_t count = 0, i = 0;

    /* Eight bytes a step: where an LF stands, a byte of x is zero, and only there the high bit of
     * ((x & low) + low) | x is clear. Each byte of `sum` counts its own column; 255 steps fit. */
    while (n - i >= 8) {
        size_t steps = (n - i) / 8 < 255 ? (n - i) / 8 : 255;
        uint64_t sum = 0, x;
        for (size_t k = 0; k < steps; k++, i += 8) {
            memcpy(&x, p + i, 8);
            x ^= lf;
            sum += (~(((x & low) + low) | x) >> 7) & ones;
        }
        sum = (sum & even) + (sum >> 8 & even);
        count += (size_t)((sum * 0x0001000100010001ULL) >> 48);
    }
    for (; i < n; i++)
        count += p[i] == '\n';
    return count;
}

static bool has(const char *p, size_t n, char c)
{
    return memchr(p, c, n) != NULL;
}

/* No segment of [from, end) can be over the cap. */
static bool segments_fit(const char *p, size_t end, size_t cap)
{
    size_t w = cap / 2;

    for (size_t at = 0; at + w <= end; at += w)
        if (!has(p + at, w, '\n'))
            return false;
    return true;
}

/* The new bytes are clean: only counts. */
static int take_clean(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m)
{
    const char *last = memrchr(b->p + b->raw, '\n', b->end - b->raw);
    size_t lfs;

    /* An LF that gave no line of text may stand before. */
    if (c->seg == 0 && b->end > b->raw && fl_marks_line(m, b->done, c->line))
        return FL_ENOMEM;
    b->done = b->end;
    if (!last) {
        c->seg += b->end - b->raw;
    } else {
        b->whole = (size_t)(last - b->p) + 1;
        lfs = fl_count_lf(b->p + b->raw, b->whole - b->raw);
        c->seg = b->end - b->whole;
        c->line += lfs;
        m->lfs += lfs;
    }
    b->raw = b->end;
    return FL_OK;
}

static uint8_t esc_next(uint8_t esc, unsigned char ch, bool *keep)
{
    *keep = false;
    switch (esc) {
    case ESC_START:
        if (ch == '[')
            return ESC_CSI;
        if (ch == ']' || ch == 'P' || ch == 'X' || ch == '^' || ch == '_')
            return ESC_STRING;
        if (ch == '(' || ch == ')' || ch == '*' || ch == '+' || ch == '#' || ch == '%' || ch == ' ')
            return ESC_CHARSET;
        *keep = ch < 0x30 || ch > 0x7e;
        return ESC_NONE;
    case ESC_CSI:
        if (ch >= 0x20 && ch <= 0x3f)
            return ESC_CSI;
        *keep = ch < 0x40 || ch > 0x7e;
        return ESC_NONE;
    case ESC_STRING:
        return ch == 0x07 ? ESC_NONE : ch == 0x1b ? ESC_STRING_ESC : ESC_STRING;
    case ESC_STRING_ESC:
        return ch == '\\' ? ESC_NONE : ESC_STRING;
    default:
        return ESC_NONE;
    }
}

/* Appends text to the open segment, up to the cap. */
static int add_text(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m, const char *p,
                    size_t n)
{
    size_t room = c->cap - c->seg;

    if (c->seg == 0 && fl_marks_line(m, b->done, c->line))
        return FL_ENOMEM;
    if (n > room) {
        c->cut_lines += !c->cut;
        c->cut_bytes += n - room;
        c->cut = true;
        n = room;
    }
    memmove(b->p + b->done, p, n);
    b->done += n;
    c->seg += n;
    return FL_OK;
}

static void end_segment(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m)
{
    b->p[b->done++] = '\n';
    b->whole = b->done;
    m->lfs++;
    c->seg = 0;
    c->cut = false;
}

/* An LF of the file, the CR before it already gone. */
static int end_line(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m)
{
    c->esc = ESC_NONE;
    if (c->seg || !c->segments) {
        if (c->seg == 0 && fl_marks_line(m, b->done, c->line))
            return FL_ENOMEM;
        end_segment(c, b, m);
    }
    c->segments = false;
    c->line++;
    return FL_OK;
}

static void lone_cr(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m)
{
    c->esc = ESC_NONE;
    if (c->seg) {
        end_segment(c, b, m);
        c->segments = true;
    }
}

/* Length of the run of plain bytes at p. */
static size_t plain_run(const char *p, size_t n)
{
    size_t i = 0;

    while (i < n) {
        unsigned char ch = (unsigned char)p[i];
        if (ch < 0x20 && (ch == '\n' || ch == '\r' || ch == 0 || ch == 0x1b))
            break;
        i++;
    }
    return i;
}

/* One special byte or one byte of an escape. */
static int one_byte(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m)
{
    const char *p = b->p + b->raw;
    bool keep;

    if (*p == '\n') {
        b->raw++;
        return end_line(c, b, m);
    }
    if (*p == '\r') {
        b->raw++;
        if (b->raw < b->end && b->p[b->raw] == '\n') {
            b->raw++;
            return end_line(c, b, m);
        }
        lone_cr(c, b, m);
        return FL_OK;
    }
    b->raw++;
    if (*p == 0)
        return FL_OK;
    if (c->esc == ESC_NONE || (*p == 0x1b && c->esc != ESC_STRING)) {
        c->esc = ESC_START;
        return FL_OK;
    }
    c->esc = esc_next(c->esc, (unsigned char)*p, &keep);
    return keep ? add_text(c, b, m, p, 1) : FL_OK;
}

static int clean_slow(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m, bool final)
{
    int r = FL_OK;

    while (!r && b->raw < b->end) {
        const char *p = b->p + b->raw;
        size_t run = c->esc == ESC_NONE ? plain_run(p, b->end - b->raw) : 0;
        if (run) {
            b->raw += run;
            r = add_text(c, b, m, p, run);
        } else if (*p == '\r' && b->raw + 1 == b->end && !final) {
            break;
        } else {
            r = one_byte(c, b, m);
        }
    }
    return r;
}

int fl_clean_run(struct fl_clean *c, struct fl_clean_buf *b, struct fl_marks *m, bool final)
{
    const char *p = b->p + b->raw;
    size_t n = b->end - b->raw;
    int r = FL_OK;

    if (b->done == b->raw && c->esc == ESC_NONE && !c->cut && !c->segments && !has(p, n, '\r') &&
        !has(p, n, 0x1b) && !has(p, n, 0) && segments_fit(b->p, b->end, c->cap))
        r = take_clean(c, b, m);
    else
        r = clean_slow(c, b, m, final);
    if (!r && final && (c->seg || c->segments)) {
        /* The last line has no LF. */
        r = end_line(c, b, m);
    }
    return r;
}
