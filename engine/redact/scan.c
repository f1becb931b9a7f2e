/*
 * The text under scan and the spans found in it.
 *
 * The scanners get a copy without ANSI codes: a terminal shows `hf_abc` whatever colours change in
 * its middle, so a model reads it too, and a scanner must. Offsets of the copy are kept only when
 * there was a code. A second copy in lower case spares each scanner its own case folding. Both end
 * in a byte that belongs to no token, so that a look past either end is a look at nothing.
 *
 * Spans overlap when two scanners see the same thing: a password inside a URL, a host inside an
 * e-mail address. The union is taken, and a secret makes the whole union a secret: of two opinions
 * on where a key ends, the longer one leaks less. What was tried and dropped is an order of
 * scanners in which the first one wins: it needed an exception for each pair of them.
 */
#include "redact/scan.h"

#include <stdlib.h>

#include "redact/redactor.h"

#include "base/alloc.h"

/* Length of the escape sequence at `i`, or 0: CSI, OSC and two-byte codes. */
static size_t ansi(fl_str t, size_t i)
{
    size_t k = i + 2;

    if (t.p[i] != 27 || i + 1 >= t.n)
        return t.p[i] == 27;
    if (t.p[i + 1] == '[') {
        while (k < t.n && t.p[k] >= 0x20 && t.p[k] < 0x40)
            k++;
        return k < t.n && t.p[k] >= 0x40 && t.p[k] < 0x7f ? k + 1 - i : k - i;
    }
    if (t.p[i + 1] == ']') {
        while (k < t.n && t.p[k] != 7 && t.p[k] != 27 && t.p[k] != '\n')
            k++;
        if (k < t.n && t.p[k] == 7)
            return k + 1 - i;
        return k + 1 < t.n && t.p[k] == 27 && t.p[k + 1] == '\\' ? k + 2 - i : k - i;
    }
    return t.p[i + 1] > 0x20 && t.p[i + 1] < 0x7f ? 2 : 1;
}

static void copy_lower(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] + 32 : from[i]);
}

int fl_scan_init(struct fl_scan *s, struct fl_redactor *r, fl_str text, fl_err *err)
{
    bool codes = text.n && memchr(text.p, 27, text.n);
    char *p = fl_malloc(2 * (text.n + 2));
    size_t n = 0, skip;

    *s = (struct fl_scan){.r = r};
    if (codes)
        s->at = fl_malloc((text.n + 1) * sizeof(*s->at));
    if (!p || (codes && !s->at)) {
        fl_free(p);
        return fl_fail_nomem(err);
    }
    p[0] = '\n';
    if (!codes) {
        if (text.n)
            memcpy(p + 1, text.p, text.n);
        n = text.n;
    }
    for (size_t i = 0; codes && i < text.n;) {
        skip = ansi(text, i);
        if (skip) {
            i += skip;
            continue;
        }
        s->at[n] = (uint32_t)i;
        p[1 + n++] = text.p[i++];
    }
    if (codes)
        s->at[n] = (uint32_t)text.n;
    p[1 + n] = 0;
    for (size_t i = 1; i < n; i++) /* a line end written as an escape, in JSON or a repr, is one */
        if (p[i] == '\\' && (p[i + 1] == 'n' || p[i + 1] == 'r' || p[i + 1] == 't'))
            p[i] = p[i + 1] = '\n';
    copy_lower(p + n + 2, p, n + 2);
    s->p = p + 1;
    s->low = p + n + 3;
    s->n = n;
    return FL_OK;
}

void fl_scan_dispose(struct fl_scan *s)
{
    if (s->p)
        fl_free((char *)(uintptr_t)(s->p - 1));
    fl_free(s->at);
    fl_free(s->v);
    *s = (struct fl_scan){0};
}

void fl_scan_add(struct fl_scan *s, size_t a, size_t b, enum fl_redact_kind kind)
{
    if (a >= b || b > s->n)
        return;
    if (fl_grow((void **)&s->v, &s->cap, s->nv + 1, sizeof(*s->v))) {
        s->nomem = true;
        return;
    }
    s->v[s->nv++] = (struct fl_span){(uint32_t)a, (uint32_t)b, (uint8_t)kind};
}

static int by_place(const void *x, const void *y)
{
    const struct fl_span *a = x, *b = y;

    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    if (a->b != b->b)
        return a->b > b->b ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

void fl_scan_settle(struct fl_scan *s)
{
    size_t n = 0;

    if (s->nv)
        qsort(s->v, s->nv, sizeof(*s->v), by_place);
    for (size_t i = 0; i < s->nv; i++) {
        struct fl_span x = s->v[i], *last = n ? &s->v[n - 1] : NULL;
        if (!last || x.a >= last->b) {
            s->v[n++] = x;
            continue;
        }
        if (x.kind == FL_REDACT_SECRET)
            last->kind = x.kind;
        if (x.b > last->b)
            last->b = x.b;
    }
    s->nv = n;
    for (size_t i = 0; s->at && i < n; i++) {
        /* up to the last byte itself, so that codes behind the span stay where they are */
        s->v[i].b = s->at[s->v[i].b - 1] + 1;
        s->v[i].a = s->at[s->v[i].a];
    }
}

bool fl_word_in(const char *p, size_t n, const char *z)
{
    for (; *z; z += strlen(z) + 1)
        if (strlen(z) == n && memcmp(z, p, n) == 0)
            return true;
    return false;
}

static int class_of(char c)
{
    if (fl_digit(c))
        return 1;
    if (c >= 'a' && c <= 'z')
        return 2;
    return c >= 'A' && c <= 'Z' ? 3 : 0;
}

/* Drawn from letters of both cases and digits, six neighbours of ten differ in class; in CamelCase
 * one of three does. Without capitals (hexadecimal, base32) it is four to five of ten, and words
 * with numbers such as checkpoint-1000-rank0 have three changes in all. */
bool fl_opaque(const char *p, size_t n)
{
    size_t changes = 0, count[4] = {0};
    int last = 0, c;

    for (size_t i = 0; i < n; i++) {
        c = class_of(p[i]);
        count[c]++;
        if (c && last && c != last)
            changes++;
        if (c)
            last = c;
    }
    if (n < 12 || changes < 4 || count[2] + count[3] < 2)
        return false;
    return count[2] && count[3] ? changes * 5 >= n * 2 : count[1] >= 2 && changes * 8 >= n;
}

/* Words that number parts of a job or a machine, not machines. */
static const char parts[] =
    "rank\0local_rank\0local-rank\0gpu\0cuda\0npu\0hpu\0xpu\0dev\0device\0"
    "mlx\0eth\0ib\0ibs\0ibp\0bond\0lo\0eno\0ens\0enp\0nvme\0sda\0step\0"
    "epoch\0default\0layer\0block\0stage\0expert\0pp\0tp\0dp\0ep\0cp\0"
    "sm\0sm_\0h\0a\0v\0b\0l\0mi\0gb\0x\0py\0cp\0cu\0cuda\0python\0python-\0"
    "fp\0bf\0int\0uint\0float\0bfloat\0utf\0utf-\0sha\0md\0ipv\0s\0v\0"
    "task\0local\0attempt\0iteration\0iter\0batch\0shard\0part\0checkpoint\0"
    "checkpoint-\0step-\0epoch-\0rank-\0layer-\0shard-\0part-\0iter-\0"
    "global_step\0stage-\0xid\0numa\0cpu\0socket\0pci\0port\0job\0pid\0";

bool fl_hosty(const char *low, size_t n)
{
    size_t head = 0, digits = 0;

    if (n < 3 || n > 63 || !fl_alpha(low[0]) || !fl_alnum(low[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!fl_alnum(low[i]) && low[i] != '-')
            return false;
        digits += fl_digit(low[i]) != 0;
    }
    while (head < n && !fl_digit(low[head]))
        head++;
    for (size_t i = head; i < n; i++)
        if (!fl_digit(low[i]))
            return digits > 0;
    if (n - head >= 3 && low[head] == '0' && fl_word_in(low, head, "gpu\0cpu\0")) /* gpu0417 */
        return true;
    return digits > 0 && !fl_word_in(low, head, parts);
}

void fl_scan_learn(struct fl_scan *s, size_t a, size_t b, enum fl_redact_kind kind, bool weak)
{
    if (a < b && fl_known_add(s->r, kind, fl_str_n(s->low + a, b - a), weak))
        s->nomem = true;
}
