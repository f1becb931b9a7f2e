/*
 * The reader: input after input, block after block.
 *
 * One buffer holds the open line of the last block and what was read since; it is cleaned in place
 * and given out up to its last LF. The layers below are flows (flow.h), chosen by the first bytes:
 * decompressor, archive member, UTF-16. A file comes into being for callers when its first block
 * is made, so that one that turns out to be binary is only ever a skip.
 *
 * Never the whole file: memory is one block, the longest line, and a decompressor's window. Never
 * mmap: see source.c. A compressed file inside a compressed archive is read; an archive inside an
 * archive is skipped, and so is anything deeper, which bounds what a small hostile file can unfold
 * to in layers, though not in bytes: a log of zeros is a log.
 */
#include "read/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/clean.h"
#include "read/flow.h"
#include "read/list.h"
#include "read/unwrap.h"

#include "base/alloc.h"

#define BLOCK_MAX (256u << 20)
#define MEMBERS_MAX (16u * FL_READ_FILES) /* of archives, the skipped ones too */

struct fl_reader {
    struct fl_reader_opts opts;
    fl_arena arena;
    struct fl_list list;
    size_t next_input;
    const struct fl_input *input;
    struct fl_read_file *files;
    size_t nfiles, file_cap;
    fl_tar *tar; /* when the input is an archive */
    size_t members;
    fl_flow *text; /* the current file, NULL between files */
    struct fl_note note;
    uint64_t disk_bytes, disk_before; /* read from inputs; the same when the file began */
    struct fl_clean clean;
    struct fl_clean_buf buf;
    struct fl_marks marks;
    struct fl_unwrap unwrap;
    bool ended_all; /* no input is left */
    bool ended;     /* the flow gave its last byte */
    bool first;     /* no block of this file yet */
    bool sniffed;   /* unwrap knows its mode */
};

static const char too_many[] = "there are too many files";

/* Bytes that no text has near its start. */
static bool binary_head(fl_str h)
{
    static const fl_str magics[] = {{"\x7f"
                                     "ELF",
                                     4},
                                    {"PK\x03\x04", 4},
                                    {"\x89PNG", 4},
                                    {"\x93NUMPY", 6},
                                    {"\x89HDF", 4},
                                    {"SQLite format 3", 15},
                                    {"%PDF-", 5},
                                    {"MMIDIDX", 7},
                                    {"\x80\x02", 2},
                                    {"\x80\x04\x95", 3}};
    size_t nul = 0, control = 0;

    for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
        if (fl_str_starts(h, magics[i]))
            return true;
    for (size_t i = 0; i < h.n; i++) {
        unsigned char c = (unsigned char)h.p[i];
        nul += c == 0;
        control += c && c < 0x20 && !(c >= 7 && c <= 13) && c != 0x1b;
    }
    /* safetensors: a length in eight bytes, then JSON */
    if (h.n > 9 && h.p[8] == '{' && h.p[7] == 0 && h.p[6] == 0)
        return true;
    /* All zeros is the hole that copytruncate leaves in a log. */
    if (nul == h.n)
        return false;
    return control * 10 > h.n || (nul && (nul * 50 > h.n || control * 50 > h.n));
}

static void close_text(fl_reader *r)
{
    fl_flow_close(r->text);
    r->text = NULL;
}

static void close_input(fl_reader *r)
{
    close_text(r);
    fl_tar_close(r->tar);
    r->tar = NULL;
    r->input = NULL;
}

static size_t room_size(const fl_reader *r)
{
    /* The open line, a block, a CR that waits, and an LF for a last line without one. */
    return r->opts.block + r->opts.line_max + 8;
}

static fl_reader *new_reader(const struct fl_reader_opts *opts)
{
    fl_reader *r = fl_calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    if (opts)
        r->opts = *opts;
    if (r->opts.block == 0)
        r->opts.block = FL_READ_BLOCK;
    if (r->opts.block > BLOCK_MAX)
        r->opts.block = BLOCK_MAX;
    if (r->opts.line_max == 0)
        r->opts.line_max = FL_READ_LINE_MAX;
    if (r->opts.line_max < 16)
        r->opts.line_max = 16;
    if (r->opts.line_max > BLOCK_MAX)
        r->opts.line_max = BLOCK_MAX;
    fl_arena_init(&r->arena);
    fl_list_init(&r->list, &r->arena);
    fl_unwrap_init(&r->unwrap, r->opts.line_max, r->opts.block + r->opts.line_max);
    return r;
}

int fl_reader_open(const char *const *paths, size_t n, const struct fl_reader_opts *opts,
                   fl_reader **out, fl_err *err)
{
    fl_reader *r = new_reader(opts);
    int code;

    if (!r)
        return fl_fail_nomem(err);
    code = fl_list_build(&r->list, paths, n, err);
    if (code) {
        fl_reader_free(r);
        return code;
    }
    *out = r;
    return FL_OK;
}

int fl_reader_branch(const fl_reader *r, size_t input, fl_reader **out, fl_err *err)
{
    fl_reader *b = new_reader(&r->opts);

    if (!b)
        return fl_fail_nomem(err);
    b->opts.progress = NULL;
    if (fl_grow((void **)&b->list.v, &b->list.cap, 1, sizeof(*b->list.v))) {
        fl_reader_free(b);
        return fl_fail_nomem(err);
    }
    b->list.v[b->list.n++] = r->list.v[input];
    *out = b;
    return FL_OK;
}

void fl_reader_free(fl_reader *r)
{
    if (!r)
        return;
    close_input(r);
    fl_list_dispose(&r->list);
    fl_free(r->files);
    fl_free(r->buf.p);
    fl_marks_dispose(&r->marks);
    fl_unwrap_dispose(&r->unwrap);
    fl_arena_dispose(&r->arena);
    fl_free(r);
}

static int open_fd(fl_reader *r, const struct fl_input *in, fl_flow **out, fl_err *err)
{
    struct fl_fd_opts o = {.own = in->path != NULL,
                           .size = -1,
                           .total = &r->disk_bytes,
                           .read = r->opts.read,
                           .read_ctx = r->opts.read_ctx};
    struct stat st;
    int code;

    if (in->path) {
        do {
            o.fd = open(in->path, O_RDONLY | O_CLOEXEC);
        } while (o.fd < 0 && errno == EINTR);
        if (o.fd < 0)
            return fl_fail(err, FL_EINPUT, "cannot be opened: %s", strerror(errno));
        if (fstat(o.fd, &st) == 0 && S_ISREG(st.st_mode))
            o.size = st.st_size;
    }
    code = fl_flow_fd(&o, &r->note, out, err);
    if (code && o.own)
        close(o.fd);
    return code;
}

/* Puts a peek on *top and looks. */
static int look(fl_flow **top, fl_str *head, fl_err *err)
{
    int code = fl_flow_peek(*top, top, err);

    return code ? code : fl_flow_head(*top, head, err);
}

/* Puts a decompressor on top when the first bytes ask for one; *head is the text's then. */
static int decompress(fl_flow **top, fl_str *head, fl_err *err)
{
    int code;

    if (!fl_inflate_knows(*head))
        return FL_OK;
    code = fl_flow_inflate(*top, *head, top, err);
    return code ? code : look(top, head, err);
}

/* Byte order marks. */
static int decode(fl_flow **top, fl_str head, fl_err *err)
{
    bool big = fl_str_starts(head, FL_S("\xfe\xff"));

    if (fl_str_starts(head, FL_S("\xef\xbb\xbf")))
        fl_flow_skip(*top, 3);
    if (!big && !fl_str_starts(head, FL_S("\xff\xfe")))
        return FL_OK;
    fl_flow_skip(*top, 2);
    return fl_flow_utf16(*top, big, top, err);
}

static bool utf16_mark(fl_str h)
{
    return fl_str_starts(h, FL_S("\xfe\xff")) || fl_str_starts(h, FL_S("\xff\xfe"));
}

/* A file for the callers; the flow is r->text. */
static int begin_file(fl_reader *r, const char *name, const char *path, fl_err *err)
{
    if (!name || fl_grow((void **)&r->files, &r->file_cap, r->nfiles + 1, sizeof(*r->files)))
        return fl_fail_nomem(err);
    r->files[r->nfiles++] = (struct fl_read_file){.name = name, .path = path};
    r->clean = (struct fl_clean){.cap = r->opts.line_max, .line = 1};
    r->buf.done = r->buf.raw = r->buf.end = r->buf.whole = 0;
    r->ended = r->sniffed = false;
    r->first = true;
    return FL_OK;
}

static int skip(fl_reader *r, const char *name, const char *why, fl_err *err)
{
    close_text(r);
    return fl_list_skip(&r->list, name, why, err);
}

/* Opens the next input. 1: r->text is a file, r->tar an archive, or it was skipped; 0: no more. */
static int open_input(fl_reader *r, fl_err *err)
{
    const struct fl_input *in;
    fl_err why = {0};
    fl_str head = {NULL, 0};
    int code;

    if (r->next_input == r->list.n) {
        r->ended_all = true;
        return 0;
    }
    in = r->input = &r->list.v[r->next_input++];
    if (r->nfiles >= FL_READ_FILES) {
        code = fl_list_skip(&r->list, in->name, too_many, err);
        return code ? code : 1;
    }
    r->note.text[0] = 0;
    r->disk_before = r->disk_bytes;
    code = open_fd(r, in, &r->text, &why);
    if (!code)
        code = look(&r->text, &head, &why);
    if (!code)
        code = decompress(&r->text, &head, &why);
    if (!code && fl_tar_knows(head)) {
        code = fl_tar_open(r->text, &r->tar, &why);
        if (!code)
            r->text = NULL;
        return code ? fl_fail(err, code, "%s", why.msg) : 1;
    }
    if (!code && !in->named && !utf16_mark(head) && binary_head(head)) {
        code = skip(r, in->name, "binary file", err);
        return code ? code : 1;
    }
    if (!code)
        code = decode(&r->text, head, &why);
    if (code == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (code && in->named)
        return fl_fail(err, code, "%s: %s", in->name, why.msg);
    if (code)
        code = skip(r, in->name, fl_arena_z(&r->arena, fl_str_c(why.msg)), err);
    else
        code = begin_file(r, in->name, in->path, err);
    return code ? code : 1;
}

static fl_str base_of(fl_str path)
{
    return fl_str_from(path, (size_t)(fl_str_rfind_c(path, '/') + 1));
}

/* The next member of the archive: 1 as above, 0 at its end. */
static int open_member(fl_reader *r, fl_err *err)
{
    fl_str member, head = {NULL, 0};
    const char *name, *why;
    int code;

    if (r->nfiles >= FL_READ_FILES || r->members++ >= MEMBERS_MAX) {
        code = fl_list_skip(&r->list, r->input->name, too_many, err);
        close_input(r);
        return code ? code : 1;
    }
    fl_tar_note(r->tar, &r->note);
    code = fl_tar_next(r->tar, &member, err);
    if (code <= 0) {
        close_input(r);
        return code;
    }
    why = fl_list_refuses(base_of(member));
    if (why && (!*why || fl_list_skips_full(&r->list)))
        return 1; /* an archive can hold any number of these */
    if (fl_str_starts(member, FL_S("./")))
        member = fl_str_from(member, 2);
    name = fl_arena_f(&r->arena, "%s/%.*s", r->input->name, FL_FMT(member));
    if (!name)
        return fl_fail_nomem(err);
    if (why) {
        code = fl_list_skip(&r->list, name, why, err);
        return code ? code : 1;
    }
    r->note.text[0] = 0;
    r->disk_before = r->disk_bytes;
    code = fl_tar_member(r->tar, &r->text, err);
    if (!code)
        code = look(&r->text, &head, err);
    if (!code)
        code = decompress(&r->text, &head, err);
    if (!code && (fl_tar_knows(head) || fl_inflate_knows(head)))
        code = skip(r, name, "an archive inside an archive", err);
    else if (!code && !utf16_mark(head) && binary_head(head))
        code = skip(r, name, "binary file", err);
    else if (!code && !(code = decode(&r->text, head, err)))
        code = begin_file(r, name, NULL, err);
    return code ? code : 1;
}

/* Reads one buffer's worth behind the open line. */
static int fill(fl_reader *r, fl_err *err)
{
    struct fl_clean_buf *b = &r->buf;
    size_t got = 0;

    /* Cleaning left a gap, and perhaps a CR behind it. */
    memmove(b->p + b->done, b->p + b->raw, b->end - b->raw);
    b->end = b->done + (b->end - b->raw);
    b->raw = b->done;
    while (got < r->opts.block && !r->ended) {
        ptrdiff_t n = fl_flow_read(r->text, b->p + b->end, r->opts.block - got, err);
        if (n < 0)
            return (int)n;
        r->ended = n == 0;
        b->end += (size_t)n;
        got += (size_t)n;
    }
    r->files[r->nfiles - 1].text_bytes += got;
    if (r->opts.progress)
        r->opts.progress(r->opts.progress_ctx, r->disk_bytes, r->list.total);
    return fl_clean_run(&r->clean, b, &r->marks, r->ended) ? fl_fail_nomem(err) : FL_OK;
}

/* Moves what is not yet given out to the front. */
static void compact(fl_reader *r, char *to)
{
    struct fl_clean_buf *b = &r->buf;
    size_t open = b->done - b->whole, raw = b->end - b->raw;

    memmove(to, b->p + b->whole, open);
    memmove(to + open, b->p + b->raw, raw);
    b->p = to;
    b->done = b->raw = open;
    b->end = open + raw;
    b->whole = 0;
    fl_marks_start(&r->marks, r->clean.line);
}

static int end_file(fl_reader *r, fl_err *err)
{
    struct fl_read_file *f = &r->files[r->nfiles - 1];

    f->bytes = r->disk_bytes - r->disk_before;
    f->lines = r->clean.line - 1;
    f->cut_lines = r->clean.cut_lines + r->unwrap.cut_lines;
    f->cut_bytes = r->clean.cut_bytes + r->unwrap.cut_bytes;
    if (r->note.text[0]) {
        f->note = fl_arena_z(&r->arena, fl_str_c(r->note.text));
        if (!f->note)
            return fl_fail_nomem(err);
    }
    close_text(r);
    if (!r->tar)
        close_input(r);
    return FL_OK;
}

/* The next block of the current file; 0 bytes only when it is the last or all of it waits for its
 * rest. */
static int make_block(fl_reader *r, struct fl_block *out, fl_err *err)
{
    struct fl_block b = {.file = (uint32_t)(r->nfiles - 1)};
    size_t n;
    int code = FL_OK;

    if (!r->buf.p && !(r->buf.p = fl_malloc(room_size(r))))
        return fl_fail_nomem(err);
    compact(r, r->buf.p);
    do {
        code = fill(r, err);
    } while (!code && !r->ended && r->buf.whole == 0);
    if (code)
        return code;
    while (r->marks.n && r->marks.v[r->marks.n - 1].at >= r->buf.whole)
        r->marks.n--;
    b.data = r->buf.p;
    b.len = r->buf.whole;
    b.first_line = r->marks.first_line;
    b.shifts = r->marks.v;
    b.nshifts = r->marks.n;
    b.last = r->ended;
    if (!r->sniffed && b.len) {
        n = (size_t)((const char *)memchr(b.data, '\n', b.len) - b.data);
        fl_unwrap_start(&r->unwrap, fl_str_n(b.data, n));
        r->sniffed = true;
    }
    if (r->sniffed)
        code = fl_unwrap_run(&r->unwrap, &b, b.last, err);
    if (!code)
        *out = b;
    return code;
}

int fl_reader_next(fl_reader *r, struct fl_block *block, fl_err *err)
{
    struct fl_block b = {0};
    int code;

    for (;;) {
        if (!r->text) {
            code = r->tar ? open_member(r, err) : open_input(r, err);
            if (code < 0)
                close_input(r);
            if (code < 0 || (code == 0 && r->ended_all))
                return code;
            continue;
        }
        code = make_block(r, &b, err);
        if (code)
            return code;
        if (b.len == 0 && !b.last)
            continue;
        b.first = r->first;
        r->first = false;
        code = b.last ? end_file(r, err) : FL_OK;
        if (code)
            return code;
        *block = b;
        return 1;
    }
}

static int copy_text(struct fl_block_own *own, struct fl_block *b, fl_err *err)
{
    if (b->len > own->text_cap) {
        char *p = fl_realloc(own->text, b->len);
        if (!p)
            return fl_fail_nomem(err);
        own->text = p;
        own->text_cap = b->len;
    }
    memcpy(own->text, b->data, b->len);
    b->data = own->text;
    return FL_OK;
}

/* A block that stands in the reader's buffer is given away with it: what is not yet a line moves
 * into the buffer that the caller had before. */
static int give(fl_reader *r, struct fl_block_own *own, struct fl_block *b, fl_err *err)
{
    char *other;

    if (!b->len)
        return FL_OK;
    if (b->data != r->buf.p)
        return copy_text(own, b, err);
    if (own->room_n < room_size(r)) {
        other = fl_realloc(own->room, room_size(r));
        if (!other)
            return fl_fail_nomem(err);
        own->room = other;
        own->room_n = room_size(r);
    }
    other = own->room;
    own->room = r->buf.p;
    compact(r, other);
    return FL_OK;
}

int fl_reader_next_own(fl_reader *r, struct fl_block_own *own, struct fl_block *block, fl_err *err)
{
    struct fl_block b;
    int code = fl_reader_next(r, &b, err);

    if (code <= 0)
        return code;
    if (fl_grow((void **)&own->shifts, &own->shifts_cap, b.nshifts + 1, sizeof(*own->shifts)))
        return fl_fail_nomem(err);
    if (b.nshifts)
        memcpy(own->shifts, b.shifts, b.nshifts * sizeof(*b.shifts));
    b.shifts = own->shifts;
    code = give(r, own, &b, err);
    if (code)
        return code;
    *block = b;
    return 1;
}

void fl_block_own_dispose(struct fl_block_own *own)
{
    fl_free(own->room);
    fl_free(own->text);
    fl_free(own->shifts);
    *own = (struct fl_block_own){0};
}

bool fl_reader_ended(const fl_reader *r)
{
    return !r->text && !r->tar && r->next_input == r->list.n;
}

uint64_t fl_reader_bytes(const fl_reader *r)
{
    return r->disk_bytes;
}

size_t fl_reader_inputs(const fl_reader *r)
{
    return r->list.n;
}

const char *fl_reader_input(const fl_reader *r, size_t input, const char **path)
{
    *path = r->list.v[input].path;
    return r->list.v[input].name;
}

uint64_t fl_reader_total(const fl_reader *r)
{
    return r->list.total;
}

int fl_reader_record_skip(fl_reader *r, const struct fl_read_skip *s, fl_err *err)
{
    return fl_list_skip(&r->list, fl_arena_z(&r->arena, fl_str_c(s->name)),
                        fl_arena_z(&r->arena, fl_str_c(s->why)), err);
}

int fl_reader_record(fl_reader *r, const struct fl_read_file *f, bool again, fl_err *err)
{
    struct fl_read_file *to;
    const char *note = f->note ? fl_arena_z(&r->arena, fl_str_c(f->note)) : NULL;
    int code;

    if (!again && r->nfiles >= FL_READ_FILES) {
        code = fl_reader_record_skip(r, &(struct fl_read_skip){f->name, too_many}, err);
        return code ? code : fl_fail(err, FL_ELIMIT, "%s", too_many);
    }
    if (!again && fl_grow((void **)&r->files, &r->file_cap, r->nfiles + 1, sizeof(*r->files)))
        return fl_fail_nomem(err);
    if (!again) {
        r->files[r->nfiles] = *f;
        r->files[r->nfiles].name = fl_arena_z(&r->arena, fl_str_c(f->name));
        r->files[r->nfiles].path = f->path ? fl_arena_z(&r->arena, fl_str_c(f->path)) : NULL;
        r->nfiles++;
    }
    to = &r->files[r->nfiles - 1];
    to->bytes = f->bytes;
    to->text_bytes = f->text_bytes;
    to->lines = f->lines;
    to->cut_lines = f->cut_lines;
    to->cut_bytes = f->cut_bytes;
    to->note = note;
    return r->arena.failed ? fl_fail_nomem(err) : FL_OK;
}

size_t fl_reader_files(const fl_reader *r)
{
    return r->nfiles;
}

const struct fl_read_file *fl_reader_file(const fl_reader *r, size_t i)
{
    return &r->files[i];
}

size_t fl_reader_skips(const fl_reader *r)
{
    return r->list.nskips;
}

const struct fl_read_skip *fl_reader_skip(const fl_reader *r, size_t i)
{
    return &r->list.skips[i];
}

uint64_t fl_block_line(const struct fl_block *b, size_t at, uint64_t lfs_before)
{
    size_t lo = 0, hi = b->nshifts;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (b->shifts[mid].at <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return b->first_line + lfs_before + (uint64_t)(int64_t)(lo ? b->shifts[lo - 1].by : 0);
}
