/*
 * tar: the regular members of an archive, one after the other.
 *
 * Reads the old format, ustar, GNU long names and pax paths; sizes in octal and GNU's binary form.
 * Links, devices and sparse files are passed over: they hold no log. Nothing is written anywhere,
 * so a member's name is only a label and cannot climb out of a folder.
 */
#include "read/flow.h"

#include "base/alloc.h"
#include "base/buf.h"

#define RECORD 512

struct fl_tar {
    fl_flow *below;
    uint64_t left;  /* of the current member */
    uint64_t after; /* padding behind it */
    fl_buf name;
    fl_buf longname; /* from a GNU or pax header; for the next member */
    struct fl_note *note;
};

static uint64_t number(const char *p, size_t n)
{
    uint64_t v = 0;

    if (p[0] & 0x80) {
        for (size_t i = n > 8 ? n - 8 : 0; i < n; i++)
            v = v << 8 | (unsigned char)p[i];
        return v;
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= '0' && p[i] <= '7')
            v = v << 3 | (uint64_t)(p[i] - '0');
        else if (p[i] != ' ' || v)
            break;
    }
    return v;
}

static bool checksum_ok(const char *h)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < RECORD; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
    return sum == number(h + 148, 8);
}

bool fl_tar_knows(fl_str head)
{
    /* The checksum alone would take a block of zeros for a header. */
    return head.n >= RECORD && head.p[0] != 0 && checksum_ok(head.p);
}

int fl_tar_open(fl_flow *below, fl_tar **out, fl_err *err)
{
    fl_tar *t = fl_calloc(1, sizeof(*t));

    if (!t)
        return fl_fail_nomem(err);
    t->below = below;
    t->note = below->note;
    fl_buf_init(&t->name, 4096);
    fl_buf_init(&t->longname, 4096);
    *out = t;
    return FL_OK;
}

void fl_tar_close(fl_tar *t)
{
    if (!t)
        return;
    fl_flow_close(t->below);
    fl_buf_dispose(&t->name);
    fl_buf_dispose(&t->longname);
    fl_free(t);
}

void fl_tar_note(fl_tar *t, struct fl_note *note)
{
    t->note = note;
}

/* Reads over `n` bytes: 1, 0 when the archive ends before, <0. */
static int pass_over(fl_tar *t, uint64_t n, fl_err *err)
{
    char junk[4096];

    while (n) {
        ptrdiff_t r =
            fl_flow_read(t->below, junk, n < sizeof(junk) ? (size_t)n : sizeof(junk), err);
        if (r <= 0)
            return (int)r;
        n -= (uint64_t)r;
    }
    return 1;
}

/* The "path" of a pax header: records "LEN KEY=VALUE\n". */
static void pax_path(fl_tar *t, fl_str body)
{
    while (body.n) {
        uint64_t len;
        size_t used = fl_str_u64(body, 1u << 20, &len);
        fl_str rec;
        if (!used || len <= used + 1 || len > body.n)
            return;
        rec = fl_str_sub(body, used + 1, (size_t)len - used - 2);
        if (fl_str_starts(rec, FL_S("path="))) {
            fl_buf_clear(&t->longname);
            fl_buf_add(&t->longname, fl_str_from(rec, 5));
        }
        body = fl_str_from(body, (size_t)len);
    }
}

/* A header that describes the next member. 1, 0 (archive ends), <0. */
static int extension(fl_tar *t, char type, uint64_t size, fl_err *err)
{
    char body[8192];
    uint64_t padded = (size + RECORD - 1) / RECORD * RECORD;
    size_t n = size < sizeof(body) ? (size_t)size : sizeof(body);
    ptrdiff_t r = fl_flow_fill(t->below, body, n, err);

    if (r < 0)
        return (int)r;
    if ((size_t)r < n)
        return 0;
    if (type == 'x') {
        pax_path(t, fl_str_n(body, n));
    } else if (type == 'L') {
        fl_buf_clear(&t->longname);
        fl_buf_add(&t->longname, fl_str_n(body, strnlen(body, n)));
    }
    return pass_over(t, padded - n, err);
}

static void set_name(fl_tar *t, const char *h)
{
    fl_buf_clear(&t->name);
    if (t->longname.n) {
        fl_buf_add(&t->name, fl_buf_str(&t->longname));
        fl_buf_clear(&t->longname);
    } else {
        if (memcmp(h + 257, "ustar", 5) == 0 && h[345]) {
            fl_buf_add(&t->name, fl_str_n(h + 345, strnlen(h + 345, 155)));
            fl_buf_addc(&t->name, '/');
        }
        fl_buf_add(&t->name, fl_str_n(h, strnlen(h, 100)));
    }
}

int fl_tar_next(fl_tar *t, fl_str *name, fl_err *err)
{
    char h[RECORD];
    ptrdiff_t r;
    uint64_t size;

    r = pass_over(t, t->left + t->after, err);
    t->left = t->after = 0;
    while (r > 0) {
        r = fl_flow_fill(t->below, h, RECORD, err);
        if (r < 0 || (r == RECORD && h[0] == 0))
            return r < 0 ? (int)r : 0;
        if (r < RECORD || !checksum_ok(h)) {
            if (r)
                fl_note_set(t->note, "the archive is damaged behind this member");
            return 0;
        }
        size = number(h + 124, 12);
        if (h[156] == 'x' || h[156] == 'L' || h[156] == 'g' || h[156] == 'K') {
            r = extension(t, h[156], size, err);
            continue;
        }
        /* Links and devices have no body, whatever their size field says. */
        if (h[156] >= '1' && h[156] <= '6') {
            fl_buf_clear(&t->longname);
            continue;
        }
        set_name(t, h);
        t->left = size;
        t->after = (RECORD - size % RECORD) % RECORD;
        if (h[156] == '0' || h[156] == 0 || h[156] == '7') {
            if (t->name.bad == FL_ENOMEM)
                return fl_fail_nomem(err);
            *name = fl_buf_str(&t->name);
            return 1;
        }
        r = pass_over(t, t->left + t->after, err);
        t->left = t->after = 0;
    }
    return (int)r;
}

struct member_flow {
    fl_flow flow;
    fl_tar *tar;
};

static ptrdiff_t member_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    fl_tar *t = ((struct member_flow *)f)->tar;
    ptrdiff_t r;

    if (t->left == 0)
        return 0;
    r = fl_flow_read(t->below, dst, n < t->left ? n : (size_t)t->left, err);
    if (r < 0)
        return r;
    if (r == 0) {
        fl_note_set(f->note, "the archive ends inside this member");
        t->left = t->after = 0;
        return 0;
    }
    t->left -= (uint64_t)r;
    return r;
}

static void member_close(fl_flow *f)
{
    fl_free(f);
}

int fl_tar_member(fl_tar *t, fl_flow **out, fl_err *err)
{
    struct member_flow *m = fl_calloc(1, sizeof(*m));

    if (!m)
        return fl_fail_nomem(err);
    m->flow = (fl_flow){member_read, member_close, NULL, t->note};
    m->tar = t;
    *out = &m->flow;
    return FL_OK;
}
