#ifndef FL_TEST_READ_FIXTURE_H
#define FL_TEST_READ_FIXTURE_H
/*
 * What the tests of the reader share: a temporary folder, and a reading of inputs as
 * "NUMBER:text" lines with their files, skips, counts and first note. Each test program has its
 * own copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "read/reader.h"

struct fix {
    char dir[64];
    fl_buf got, want, raw;
    char files[400], skips[1000], note[300];
    uint64_t lines, cut_lines, cut_bytes, bytes;
    fl_err err;
};

static inline int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "/tmp/fl-read-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    fl_buf_init(&f->got, 64 << 20);
    fl_buf_init(&f->want, 64 << 20);
    fl_buf_init(&f->raw, 64 << 20);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fix *f = *state;
    char cmd[200];

    snprintf(cmd, sizeof(cmd), "chmod -R u+rwx %s; rm -rf %s", f->dir, f->dir);
    if (system(cmd))
        return -1;
    fl_buf_dispose(&f->got);
    fl_buf_dispose(&f->want);
    fl_buf_dispose(&f->raw);
    free(f);
    return 0;
}

static inline const char *path_of(struct fix *f, const char *name)
{
    static char path[4][300];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", f->dir, name);
    return path[turn];
}

static inline const char *put_file(struct fix *f, const char *name, const char *p, size_t n)
{
    const char *path = path_of(f, name);
    FILE *o;
    char dir[300], *slash;

    snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    *slash = 0;
    mkdir(dir, 0700);
    o = fopen(path, "wb");
    assert_non_null(o);
    assert_int_equal(fwrite(p, 1, n, o), n);
    assert_int_equal(fclose(o), 0);
    return path;
}

static inline void add_line(fl_buf *b, uint64_t line, fl_str text)
{
    fl_buf_addf(b, "%llu:", (unsigned long long)line);
    fl_buf_add(b, text);
    fl_buf_addc(b, '\n');
}

static inline void join_name(char *out, size_t cap, const char *name)
{
    size_t n = strlen(out);

    snprintf(out + n, cap - n, "%s%s", n ? "," : "", name);
}

static inline void read_block(struct fix *f, const struct fl_block *b)
{
    fl_str rest = {b->data, b->len};
    uint64_t lfs = 0;

    if (b->len)
        assert_true(b->data[b->len - 1] == '\n');
    while (rest.n) {
        size_t at = (size_t)(rest.p - b->data);
        uint64_t line = fl_block_line(b, at, lfs++);
        add_line(&f->got, line, fl_str_cut(&rest, '\n'));
    }
}

/* Reads all; 0 or the error. */
static inline int read_all(struct fix *f, const char *const *paths, size_t n,
                           const struct fl_reader_opts *o)
{
    fl_reader *r;
    struct fl_block b;
    int code = fl_reader_open(paths, n, o, &r, &f->err);
    bool open = false;
    uint32_t file = UINT32_MAX;

    fl_buf_clear(&f->got);
    f->files[0] = f->skips[0] = f->note[0] = 0;
    f->lines = f->cut_lines = f->cut_bytes = f->bytes = 0;
    if (code)
        return code;
    while ((code = fl_reader_next(r, &b, &f->err)) > 0) {
        assert_true(b.first == !open);
        if (b.first)
            assert_int_equal(b.file, ++file);
        assert_int_equal(b.file, file);
        open = !b.last;
        read_block(f, &b);
    }
    for (size_t i = 0; !code && i < fl_reader_files(r); i++) {
        const struct fl_read_file *x = fl_reader_file(r, i);
        join_name(f->files, sizeof(f->files), x->name);
        f->lines += x->lines;
        f->cut_lines += x->cut_lines;
        f->cut_bytes += x->cut_bytes;
        f->bytes += x->bytes;
        if (x->note && !f->note[0])
            snprintf(f->note, sizeof(f->note), "%s", x->note);
    }
    for (size_t i = 0; !code && i < fl_reader_skips(r); i++) {
        const struct fl_read_skip *s = fl_reader_skip(r, i);
        char text[300];
        snprintf(text, sizeof(text), "%s (%s)", s->name, s->why);
        join_name(f->skips, sizeof(f->skips), text);
    }
    fl_reader_free(r);
    return code;
}

static inline int read_one(struct fix *f, const char *path)
{
    return read_all(f, &path, 1, NULL);
}

static inline void expect(struct fix *f, const char *want)
{
    if (!f->got.p || strcmp(f->got.p, want) != 0)
        fail_msg("want:\n%sgot:\n%s", want, f->got.p ? f->got.p : "(nothing)");
}

static inline uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005ULL + 1442695040888963407ULL;
    return *s >> 33;
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif
