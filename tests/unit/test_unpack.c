/*
 * reader: gzip, zstd, xz and tar, whole, in several members, broken, and under a failing allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "read_fixture.h"

void fl_alloc_hook(void *(*fn)(void *ctx, void *p, size_t n), void *ctx);

/* Compressed input, made with the libraries */

static size_t gz(const char *text, size_t n, char *out, size_t cap)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

static size_t zst(const char *text, size_t n, char *out, size_t cap)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    size_t r;

    assert_non_null(c);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1); /* without it damage may go unseen */
    r = ZSTD_compress2(c, out, cap, text, n);
    ZSTD_freeCCtx(c);
    assert_false(ZSTD_isError(r));
    return r;
}

static size_t xz(const char *text, size_t n, char *out, size_t cap)
{
    size_t at = 0;

    assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, n,
                                             (uint8_t *)out, &at, cap),
                     LZMA_OK);
    return at;
}

typedef size_t (*pack_fn)(const char *, size_t, char *, size_t);

static void compressed(void **state)
{
    struct fix *f = *state;
    static const pack_fn packs[] = {gz, zst, xz};
    static const char *const names[] = {"gzip", "zstd", "xz"};
    char out[4000], text[100];

    for (int i = 0; i < 3; i++) {
        size_t a = packs[i]("one\ntwo", 7, out, sizeof(out)), b;
        assert_int_equal(read_one(f, put_file(f, "any.name", out, a)), 0);
        expect(f, "1:one\n2:two\n");
        assert_int_equal(f->bytes, a);
        assert_string_equal(f->note, "");
        b = packs[i](" more\nlast\n", 11, out + a, sizeof(out) - a);
        assert_int_equal(read_one(f, put_file(f, "two.members", out, a + b)), 0);
        expect(f, "1:one\n2:two more\n3:last\n");
        assert_string_equal(f->note, "");
        memset(out + a + b, 0, 512);
        assert_int_equal(read_one(f, put_file(f, "padded", out, a + b + 512)), 0);
        assert_string_equal(f->note, "");
        memcpy(out + a + b, "garbage!", 8);
        assert_int_equal(read_one(f, put_file(f, "garbage", out, a + b + 8)), 0);
        expect(f, "1:one\n2:two more\n3:last\n");
        snprintf(text, sizeof(text), "bytes behind the %s data were ignored", names[i]);
        assert_string_equal(f->note, text);
    }
}

static void broken_tails(void **state)
{
    struct fix *f = *state;
    static const pack_fn packs[] = {gz, zst, xz};
    char *out = malloc(1 << 20);
    size_t n;
    uint64_t seed = 5;

    for (int i = 0; i < 30000; i++)
        fl_buf_addf(&f->raw, "line %d %llx\n", i, (unsigned long long)next_random(&seed));
    for (int i = 0; i < 3; i++) {
        n = packs[i](f->raw.p, f->raw.n, out, 1 << 20);
        assert_int_equal(read_one(f, put_file(f, "whole", out, n)), 0);
        assert_int_equal(f->lines, 30000);
        assert_int_equal(read_one(f, put_file(f, "cut", out, n * 9 / 10)), 0);
        assert_non_null(strstr(f->note, "ends too early"));
        assert_true(f->lines > 100 && f->lines < 30000);
        assert_true(fl_str_starts(fl_buf_str(&f->got), FL_S("1:line 0 ")));
        memset(out + n * 3 / 4, 0x5a, 64);
        assert_int_equal(read_one(f, put_file(f, "bad", out, n)), 0);
        assert_non_null(strstr(f->note, "is damaged"));
        assert_int_equal(read_one(f, put_file(f, "head", out, 20)), 0);
        assert_non_null(strstr(f->note, "ends too early"));
    }
    fl_buf_clear(&f->raw);
    free(out);
}

/* One ustar member at out; its size. */
static size_t tar_member(char *out, const char *name, char type, const char *body, size_t n)
{
    unsigned sum = 0;

    memset(out, 0, 512 + (n + 511) / 512 * 512);
    snprintf(out, 100, "%s", name);
    memcpy(out + 100, "0000644", 8);
    snprintf(out + 124, 12, "%011o", (unsigned)n);
    memset(out + 148, ' ', 8);
    out[156] = type;
    memcpy(out + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)out[i];
    snprintf(out + 148, 8, "%06o", sum);
    memcpy(out + 512, body, n);
    return 512 + (n + 511) / 512 * 512;
}

static void archives(void **state)
{
    struct fix *f = *state;
    static const char longname[] = "d/a-very-long-name.log", pax[] = "21 path=pax/name.txt\n";
    char tar[20000] = {0}, out[20000], inner[500];
    size_t n = 0, g, inner_n = gz("packed\n", 7, inner, sizeof(inner));

    n += tar_member(tar + n, "d/", '5', "", 0);
    n += tar_member(tar + n, "./d/rank1.log", '0', "one\ntwo", 7);
    n += tar_member(tar + n, "d/link", '2', "", 0);
    n += tar_member(tar + n, "d/.hidden", '0', "x", 1);
    n += tar_member(tar + n, "d/label.json", '0', "{}", 2);
    n += tar_member(tar + n, "d/core", '0',
                    "\x7f"
                    "ELF\0\0",
                    6);
    n += tar_member(tar + n, "L", 'L', longname, sizeof(longname));
    n += tar_member(tar + n, "short", '0', "long\n", 5);
    n += tar_member(tar + n, "x", 'x', pax, 21);
    n += tar_member(tar + n, "short", '0', inner, inner_n);
    n += tar_member(tar + n, "empty.log", '0', "", 0);
    n += 1024;
    g = gz(tar, n, out, sizeof(out));
    assert_int_equal(read_one(f, put_file(f, "a.tgz", out, g)), 0);
    expect(f, "1:one\n2:two\n1:long\n1:packed\n");
    assert_non_null(strstr(f->files, "a.tgz/d/rank1.log,"));
    assert_non_null(strstr(f->files, "a.tgz/d/a-very-long-name.log,"));
    assert_non_null(strstr(f->files, "a.tgz/pax/name.txt,"));
    assert_non_null(strstr(f->files, "a.tgz/empty.log"));
    assert_non_null(strstr(f->skips, "d/.hidden (hidden file)"));
    assert_non_null(strstr(f->skips, "d/core (binary file)"));
    assert_null(strstr(f->skips, "label"));
    assert_int_equal(read_one(f, put_file(f, "cut.tgz", out, g / 3)), 0);
    n = tar_member(tar, "big.log", '0', "0123456789\n", 11);
    assert_int_equal(read_one(f, put_file(f, "plain.tar", tar, 512 + 8)), 0);
    expect(f, "1:01234567\n");
    assert_string_equal(f->note, "the archive ends inside this member");
}

/* A small archive can hold any number of members; only so many become files, or named skips. */
static void members_have_a_limit(void **state)
{
    struct fix *f = *state;
    const size_t hidden = FL_READ_SKIPS + 100, n = FL_READ_FILES + 100;
    char *tar = calloc(hidden + n + 2, 512);
    const char *path;
    fl_reader *r = NULL;
    struct fl_block b;
    size_t at = 0;
    int code;

    assert_non_null(tar);
    for (size_t i = 0; i < hidden; i++)
        at += tar_member(tar + at, ".hidden", '0', "", 0);
    for (size_t i = 0; i < n; i++)
        at += tar_member(tar + at, "log", '0', "", 0);
    path = put_file(f, "many.tar", tar, at + 1024);
    free(tar);
    assert_int_equal(fl_reader_open(&path, 1, NULL, &r, &f->err), 0);
    while ((code = fl_reader_next(r, &b, &f->err)) == 1)
        ;
    assert_int_equal(code, 0);
    assert_int_equal(fl_reader_files(r), FL_READ_FILES);
    assert_int_equal(fl_reader_skips(r), FL_READ_SKIPS);
    assert_string_equal(fl_reader_skip(r, FL_READ_SKIPS - 1)->why,
                        "more were skipped than are named here");
    fl_reader_free(r);
}

/* Each allocation in turn fails: an error or all lines, never a crash or a leak (under ASan). */

static void *failing(void *ctx, void *p, size_t n)
{
    int *left = ctx;

    if (n == 0) {
        free(p);
        return NULL;
    }
    return --*left == 0 ? NULL : realloc(p, n);
}

static void failed_allocations(void **state)
{
    struct fix *f = *state;
    static const char docker[] =
        "{\"log\":\"half \",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:05Z\"}\n"
        "{\"log\":\"1%\\rwhole\\n\",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:07Z\"}\n";
    const char *dir = f->dir;
    char tar[4096] = {0}, out[4096];
    size_t n = tar_member(tar, "d.log", '0', docker, sizeof(docker) - 1);
    int left, code, failures = 0;

    n += tar_member(tar + n, ".hidden", '0', "x", 1) + 1024;
    put_file(f, "a.tgz", out, gz(tar, n, out, sizeof(out)));
    put_file(f, "b.xz", out,
             xz("\xff\xfe"
                "a\0\n\0",
                6, out, sizeof(out)));
    for (int nth = 1; nth < 500; nth++) {
        fl_reader *r = NULL;
        struct fl_block b;
        left = nth;
        fl_alloc_hook(failing, &left);
        code = fl_reader_open(&dir, 1, NULL, &r, &f->err);
        while (!code && (code = fl_reader_next(r, &b, &f->err)) == 1)
            code = 0;
        fl_reader_free(r);
        fl_alloc_hook(NULL, NULL);
        if (left > 0)
            break;
        assert_true(code == FL_ENOMEM || code == 0);
        failures += code == FL_ENOMEM;
    }
    assert_true(failures > 20);
    assert_true(left > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(compressed), T(broken_tails), T(archives),
                                       T(members_have_a_limit), T(failed_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
