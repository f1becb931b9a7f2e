/*
 * gzip, zstd and xz as flows.
 *
 * The three libraries stand behind one small table: open, step, restart, close. What is common is
 * here once: refilling the input, several members in one file (log rotation makes them), zero
 * padding between them, bytes behind the last one, and broken tails. What came before a fault is
 * handed out; the fault becomes a note.
 *
 * Memory is bounded by the format's window: zstd frames above 128 MiB of window and xz streams that
 * want more than 256 MiB are refused with a note. zlib and liblzma use our allocator; zstd takes
 * one only through its unstable interface, so it keeps its own.
 */
#include "read/flow.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"

#define INPUT (64u << 10)

enum step { STEP_MORE, STEP_END, STEP_BAD, STEP_NOMEM };

struct io {
    const char *in;
    size_t in_n;
    char *out;
    size_t out_n;
};

struct codec {
    const char *name;
    bool (*knows)(fl_str head);
    void *(*open)(void);
    enum step (*step)(void *state, struct io *io);
    bool (*restart)(void *state);
    void (*close)(void *state);
};

/* zlib */

static void *gz_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return fl_calloc(n, size);
}

static void gz_free(void *ctx, void *p)
{
    (void)ctx;
    fl_free(p);
}

static bool gz_knows(fl_str h)
{
    return h.n >= 3 && memcmp(h.p, "\x1f\x8b\x08", 3) == 0;
}

static void *gz_open(void)
{
    z_stream *z = fl_calloc(1, sizeof(*z));

    if (!z)
        return NULL;
    z->zalloc = gz_alloc;
    z->zfree = gz_free;
    if (inflateInit2(z, 15 + 16) != Z_OK) {
        fl_free(z);
        return NULL;
    }
    return z;
}

static enum step gz_step(void *state, struct io *io)
{
    z_stream *z = state;
    uInt in = (uInt)io->in_n, out = io->out_n > (1u << 30) ? 1u << 30 : (uInt)io->out_n;
    int r;

    z->next_in = (Bytef *)(uintptr_t)io->in;
    z->avail_in = in;
    z->next_out = (Bytef *)io->out;
    z->avail_out = out;
    r = inflate(z, Z_NO_FLUSH);
    io->in += in - z->avail_in;
    io->in_n -= in - z->avail_in;
    io->out += out - z->avail_out;
    io->out_n -= out - z->avail_out;
    if (r == Z_STREAM_END)
        return STEP_END;
    if (r == Z_MEM_ERROR)
        return STEP_NOMEM;
    return r == Z_OK || r == Z_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

static bool gz_restart(void *state)
{
    return inflateReset((z_stream *)state) == Z_OK;
}

static void gz_close(void *state)
{
    inflateEnd((z_stream *)state);
    fl_free(state);
}

/* zstd */

static bool zst_knows(fl_str h)
{
    /* The second form is a skippable frame, which may come first. */
    return h.n >= 4 && (memcmp(h.p, "\x28\xb5\x2f\xfd", 4) == 0 ||
                        ((h.p[0] & 0xf0) == 0x50 && memcmp(h.p + 1, "\x2a\x4d\x18", 3) == 0));
}

/* On an error zstd forgets what the same call had written. So it is given no more input a call than
 * it asks for, one block without the header of the next, and none while there may be output left: a
 * broken tail then costs the broken block, whatever the sizes of our buffers. */
#define HEADER 3 /* bytes of a block's header, which zstd asks for with the block before it */

struct zst {
    ZSTD_DStream *z;
    size_t wants;
    bool full; /* the output had no room left */
};

static void *zst_open(void)
{
    struct zst *s = fl_calloc(1, sizeof(*s));

    if (s && !(s->z = ZSTD_createDStream())) {
        fl_free(s);
        return NULL;
    }
    if (s)
        s->wants = ZSTD_initDStream(s->z);
    return s;
}

static enum step zst_step(void *state, struct io *io)
{
    struct zst *s = state;
    size_t most = s->wants > HEADER ? s->wants - HEADER : s->wants;
    ZSTD_inBuffer in = {io->in, s->full ? 0 : io->in_n < most ? io->in_n : most, 0};
    ZSTD_outBuffer out = {io->out, io->out_n, 0};
    size_t r = ZSTD_decompressStream(s->z, &out, &in);

    io->in += in.pos;
    io->in_n -= in.pos;
    s->full = io->out_n && out.pos == io->out_n;
    io->out += out.pos;
    io->out_n -= out.pos;
    if (ZSTD_isError(r))
        return STEP_BAD;
    s->wants = r ? r : 1;
    return r == 0 ? STEP_END : STEP_MORE;
}

static bool zst_restart(void *state)
{
    struct zst *s = state;

    s->full = false;
    s->wants = ZSTD_initDStream(s->z);
    return !ZSTD_isError(s->wants);
}

static void zst_close(void *state)
{
    ZSTD_freeDStream(((struct zst *)state)->z);
    fl_free(state);
}

/* liblzma */

struct xz {
    lzma_stream s;
    lzma_allocator a;
};

static void *xz_alloc(void *ctx, size_t n, size_t size)
{
    (void)ctx;
    return fl_calloc(n, size);
}

static bool xz_knows(fl_str h)
{
    return h.n >= 6 && memcmp(h.p,
                              "\xfd"
                              "7zXZ",
                              6) == 0;
}

static bool xz_restart(void *state)
{
    struct xz *x = state;

    return lzma_stream_decoder(&x->s, 256u << 20, 0) == LZMA_OK;
}

static void xz_close(void *state)
{
    lzma_end(&((struct xz *)state)->s);
    fl_free(state);
}

static void *xz_open(void)
{
    struct xz *x = fl_calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->s = (lzma_stream)LZMA_STREAM_INIT;
    x->a = (lzma_allocator){xz_alloc, gz_free, NULL};
    x->s.allocator = &x->a;
    if (xz_restart(x))
        return x;
    xz_close(x);
    return NULL;
}

static enum step xz_step(void *state, struct io *io)
{
    lzma_stream *s = &((struct xz *)state)->s;
    lzma_ret r;

    s->next_in = (const uint8_t *)io->in;
    s->avail_in = io->in_n;
    s->next_out = (uint8_t *)io->out;
    s->avail_out = io->out_n;
    r = lzma_code(s, LZMA_RUN);
    io->in += io->in_n - s->avail_in;
    io->in_n = s->avail_in;
    io->out += io->out_n - s->avail_out;
    io->out_n = s->avail_out;
    if (r == LZMA_STREAM_END)
        return STEP_END;
    if (r == LZMA_MEM_ERROR)
        return STEP_NOMEM;
    return r == LZMA_OK || r == LZMA_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

static const struct codec codecs[] = {
    {"gzip", gz_knows, gz_open, gz_step, gz_restart, gz_close},
    {"zstd", zst_knows, zst_open, zst_step, zst_restart, zst_close},
    {"xz", xz_knows, xz_open, xz_step, xz_restart, xz_close},
};

/* What all three share */

struct inflate_flow {
    fl_flow flow;
    const struct codec *codec;
    void *state;
    size_t at, n; /* unread input */
    uint64_t made;
    bool between; /* a member ended */
    bool in_end, ended;
    char in[INPUT];
};

static const struct codec *find(fl_str head)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
        if (codecs[i].knows(head))
            return &codecs[i];
    return NULL;
}

bool fl_inflate_knows(fl_str head)
{
    return find(head) != NULL;
}

/* Makes at least `want` bytes of input stand there, unless it ends. */
static int need(struct inflate_flow *z, size_t want, fl_err *err)
{
    ptrdiff_t r;

    if (z->n - z->at >= want || z->in_end)
        return FL_OK;
    memmove(z->in, z->in + z->at, z->n - z->at);
    z->n -= z->at;
    z->at = 0;
    while (z->n < want && !z->in_end) {
        r = fl_flow_read(z->flow.below, z->in + z->n, INPUT - z->n, err);
        if (r < 0)
            return (int)r;
        z->in_end = r == 0;
        z->n += (size_t)r;
    }
    return FL_OK;
}

/* Behind a member: zeros, another member, the end, or something else. */
static int next_member(struct inflate_flow *z, fl_err *err)
{
    int r;

    do {
        while (z->at < z->n && z->in[z->at] == 0)
            z->at++;
        r = need(z, 6, err);
        if (r)
            return r;
    } while (z->at < z->n && z->in[z->at] == 0);
    if (z->at == z->n) {
        z->ended = true;
    } else if (!z->codec->knows(fl_str_n(z->in + z->at, z->n - z->at))) {
        fl_note_set(z->flow.note, "bytes behind the %s data were ignored", z->codec->name);
        z->ended = true;
    } else if (!z->codec->restart(z->state)) {
        return fl_fail_nomem(err);
    }
    z->between = false;
    return FL_OK;
}

static ptrdiff_t inflate_read(fl_flow *f, char *dst, size_t n, fl_err *err)
{
    struct inflate_flow *z = (struct inflate_flow *)f;
    struct io io;
    enum step step;
    int r;

    while (!z->ended) {
        r = z->between ? next_member(z, err) : need(z, 1, err);
        if (r)
            return r;
        if (z->ended)
            break;
        io = (struct io){z->in + z->at, z->n - z->at, dst, n};
        step = z->codec->step(z->state, &io);
        z->at = z->n - io.in_n;
        z->made += n - io.out_n;
        if (step == STEP_NOMEM)
            return fl_fail_nomem(err);
        if (step == STEP_BAD) {
            fl_note_set(f->note, "the %s data is damaged: the %llu bytes before it were read",
                        z->codec->name, (unsigned long long)z->made);
            z->ended = true;
        }
        z->between = step == STEP_END;
        if (io.out_n < n)
            return (ptrdiff_t)(n - io.out_n);
        if (step == STEP_MORE && z->in_end && z->at == z->n) {
            fl_note_set(f->note, "the %s data ends too early: the %llu bytes before were read",
                        z->codec->name, (unsigned long long)z->made);
            z->ended = true;
        }
    }
    return 0;
}

static void inflate_close(fl_flow *f)
{
    struct inflate_flow *z = (struct inflate_flow *)f;

    z->codec->close(z->state);
    fl_free(z);
}

int fl_flow_inflate(fl_flow *below, fl_str head, fl_flow **out, fl_err *err)
{
    struct inflate_flow *z = fl_calloc(1, sizeof(*z));

    if (!z)
        return fl_fail_nomem(err);
    z->flow = (fl_flow){inflate_read, inflate_close, below, below->note};
    z->codec = find(head);
    z->state = z->codec ? z->codec->open() : NULL;
    if (!z->state) {
        fl_free(z);
        return fl_fail_nomem(err);
    }
    *out = &z->flow;
    return FL_OK;
}
