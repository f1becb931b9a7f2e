/*
 * reader: every promise of reader.h, and the same lines through any block size.
 *
 * A test writes files below one temporary folder, reads them and compares "NUMBER:text" lines. The
 * slow reference (reference()) works on the whole file at once and shares no code with the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/prefix.h"

#include "read_fixture.h"

#define READ_TEXT(f, bytes)                                                                        \
    do {                                                                                           \
        assert_int_equal(read_one(f, put_file(f, "t.log", bytes, sizeof(bytes) - 1)), 0);          \
    } while (0)

static void line_ends(void **state)
{
    struct fix *f = *state;

    READ_TEXT(f, "a\r\nb\n\nc");
    expect(f, "1:a\n2:b\n3:\n4:c\n");
    assert_int_equal(f->lines, 4);
    READ_TEXT(f, "x\n\r  1%\r  2%\r 99%\ny\n");
    expect(f, "1:x\n2:  1%\n2:  2%\n2: 99%\n3:y\n");
    assert_int_equal(f->lines, 3);
    READ_TEXT(f, "bar 1\rbar 2\r\nnext\n");
    expect(f, "1:bar 1\n1:bar 2\n2:next\n");
    READ_TEXT(f, "bar 1\rbar 2\r\x1b[K\nnext\r");
    expect(f, "1:bar 1\n1:bar 2\n2:next\n");
    assert_int_equal(f->lines, 2);
    READ_TEXT(f, "\r\n\r\r\nz\n");
    expect(f, "1:\n2:\n3:z\n");
}

static void removed_bytes(void **state)
{
    struct fix *f = *state;

    READ_TEXT(f, "\x1b[31mred\x1b[0m \x1b]0;title\x07on\x1b(B\x1b[1;32;40mgo\x1b[K\n");
    expect(f, "1:red ongo\n");
    READ_TEXT(f, "a\0\0b\n\0\0\0\n\0c\n");
    expect(f, "1:ab\n2:\n3:c\n");
    READ_TEXT(f, "cut \x1b[31\nnext \x1b]0;never ended\nlast\n");
    expect(f, "1:cut \n2:next \n3:last\n");
    READ_TEXT(f, "\xef\xbb\xbf"
                 "bom\n\xff\xfe bytes\n");
    expect(f, "1:bom\n2:\xff\xfe bytes\n");
}

static void empty_files(void **state)
{
    struct fix *f = *state;

    READ_TEXT(f, "");
    assert_int_equal(f->got.n, 0);
    assert_int_equal(f->lines, 0);
    assert_non_null(strstr(f->files, "t.log"));
    READ_TEXT(f, "\n");
    expect(f, "1:\n");
}

static void utf16(void **state)
{
    struct fix *f = *state;

    READ_TEXT(f, "\xff\xfe"
                 "a\0\r\0\n\0\xe9\0\xac\x20\x3d\xd8\x00\xde\n\0\x3d\xd8!\0");
    expect(f, "1:a\n2:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n3:\xef\xbf\xbd!\n");
    READ_TEXT(f, "\xfe\xff\0h\0i\0\n\0x");
    expect(f, "1:hi\n2:x\n");
}

static void long_lines(void **state)
{
    struct fix *f = *state;
    struct fl_reader_opts o = {.line_max = 100};
    const char *path;

    for (int i = 0; i < 250; i++)
        fl_buf_addc(&f->raw, (char)('a' + i % 26));
    fl_buf_addz(&f->raw, "\nshort\n");
    path = put_file(f, "t.log", f->raw.p, f->raw.n);
    assert_int_equal(read_all(f, &path, 1, &o), 0);
    assert_int_equal(f->cut_lines, 1);
    assert_int_equal(f->cut_bytes, 150);
    assert_int_equal(f->lines, 2);
    assert_int_equal(f->got.n, 2 + 100 + 1 + 8);
    assert_non_null(strstr(f->got.p, "\n2:short\n"));
    fl_buf_clear(&f->raw);
}

/* The slow reference */

static void reference_segment(fl_str s, size_t cap, fl_buf *out, uint64_t line, size_t *count)
{
    char *kept = malloc(s.n + 1);
    size_t n = 0, i = 0;

    while (i < s.n) {
        if (s.p[i] != 0x1b) {
            kept[n++] = s.p[i++];
            continue;
        }
        i++; /* only the escapes that random_text() makes */
        if (i < s.n && s.p[i] == '[') {
            for (i++; i < s.n && (unsigned char)s.p[i] >= 0x20 && (unsigned char)s.p[i] < 0x40; i++)
                ;
            i += i < s.n;
        } else if (i < s.n && s.p[i] == ']') {
            while (i < s.n && s.p[i] != 7)
                i++;
            i += i < s.n;
        } else {
            i += i < s.n;
        }
    }
    if (n) {
        add_line(out, line, fl_str_n(kept, n < cap ? n : cap));
        ++*count;
    }
    free(kept);
}

static void reference(fl_str all, size_t cap, fl_buf *out)
{
    uint64_t line = 1;
    char *flat = malloc(all.n + 1);
    size_t n = 0;
    fl_str rest;

    for (size_t i = 0; i < all.n; i++)
        if (all.p[i])
            flat[n++] = all.p[i];
    rest = fl_str_n(flat, n);
    while (rest.n) {
        bool whole = memchr(rest.p, '\n', rest.n) != NULL;
        fl_str one = fl_str_cut(&rest, '\n');
        size_t count = 0;
        while (one.n)
            reference_segment(fl_str_cut(&one, '\r'), cap, out, line, &count);
        if (count == 0 && whole)
            add_line(out, line, fl_str_n("", 0));
        line++;
    }
    free(flat);
}

static void random_text(uint64_t seed, size_t n, fl_buf *out)
{
    static const char *const parts[] = {"word ",     "\n",         "\n",      "\r",
                                        "\r\n",      "\x1b[31m",   "\x1b[0m", "\x1b]0;t\x07",
                                        "\x1b[1;3m", "[rank3]: x", "\t",      "100%|##|"};
    uint64_t kinds = next_random(&seed) % 4, r;

    while (out->n < n) {
        r = next_random(&seed);
        if (kinds && r % 40 == 0)
            for (uint64_t i = next_random(&seed) % 300; i; i--)
                fl_buf_addc(out, 'y');
        else if (kinds > 1 && r % 17 == 0)
            fl_buf_addc(out, 0);
        else if (kinds > 2 || r % 12 < 3 || r % 12 > 8)
            fl_buf_addz(out, parts[r % 12]);
        else
            fl_buf_addz(out, "plain text ");
    }
}

static void any_block_size(void **state)
{
    struct fix *f = *state;
    static const size_t blocks[] = {1, 64, 65, 100, 256, 1000, 4096, 1 << 20};
    static const size_t caps[] = {50, 151, 100000};
    const char *path;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        size_t cap = caps[seed % 3];
        fl_buf_clear(&f->raw);
        fl_buf_clear(&f->want);
        random_text(seed, 100 + seed * 150, &f->raw);
        reference(fl_buf_str(&f->raw), cap, &f->want);
        path = put_file(f, "t.log", f->raw.p, f->raw.n);
        for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
            struct fl_reader_opts o = {.block = blocks[i], .line_max = cap};
            assert_int_equal(read_all(f, &path, 1, &o), 0);
            if (!fl_str_eq(fl_buf_str(&f->got), fl_buf_str(&f->want)))
                fail_msg("seed %llu, block %zu, cap %zu: want\n%s\ngot\n%s",
                         (unsigned long long)seed, blocks[i], cap, f->want.p, f->got.p);
        }
    }
    fl_buf_clear(&f->raw);
}

/* Injected reads */

struct trouble {
    int calls;
    size_t at, fail_at; /* bytes given; EIO when so many were */
};

static ssize_t troubled_read(void *ctx, int fd, void *buf, size_t n)
{
    struct trouble *t = ctx;
    ssize_t r;

    t->calls++;
    if (t->calls % 3 == 1) {
        errno = EINTR;
        return -1;
    }
    if (t->at >= t->fail_at) {
        errno = EIO;
        return -1;
    }
    r = read(fd, buf, n < 5 ? n : 5);
    t->at += r > 0 ? (size_t)r : 0;
    return r;
}

static void short_reads_and_faults(void **state)
{
    struct fix *f = *state;
    struct trouble t = {0, 0, SIZE_MAX};
    struct fl_reader_opts o = {.read = troubled_read, .read_ctx = &t};
    const char *path = put_file(f, "t.log", "one\ntwo\nthree\nfour\n", 19);

    assert_int_equal(read_all(f, &path, 1, &o), 0);
    expect(f, "1:one\n2:two\n3:three\n4:four\n");
    assert_string_equal(f->note, "");
    t = (struct trouble){0, 0, 10};
    assert_int_equal(read_all(f, &path, 1, &o), 0);
    expect(f, "1:one\n2:two\n3:th\n");
    assert_string_equal(f->note, "reading stopped after 10 bytes: Input/output error");
    t = (struct trouble){0, 0, 0};
    assert_int_equal(read_all(f, &path, 1, &o), FL_EIO);
    assert_non_null(strstr(f->err.msg, "t.log: Input/output error"));
    path = f->dir;
    t = (struct trouble){0, 0, 0};
    assert_int_equal(read_all(f, &path, 1, &o), 0);
    assert_string_equal(f->skips, "t.log (Input/output error)");
}

struct changer {
    const char *path;
    int calls;
    bool grow;
};

static ssize_t changing_read(void *ctx, int fd, void *buf, size_t n)
{
    struct changer *c = ctx;

    if (c->calls++ == 1 && c->grow) {
        int o = open(c->path, O_WRONLY | O_APPEND);
        assert_int_equal(write(o, "more\n", 5), 5);
        close(o);
    } else if (c->calls == 2) {
        assert_int_equal(truncate(c->path, 2), 0);
    }
    return read(fd, buf, n < 4 ? n : 4);
}

static void growing_and_truncated(void **state)
{
    struct fix *f = *state;
    const char *path = put_file(f, "t.log", "one\ntwo\n", 8);
    struct changer c = {path, 0, true};
    struct fl_reader_opts o = {.read = changing_read, .read_ctx = &c};

    assert_int_equal(read_all(f, &path, 1, &o), 0);
    expect(f, "1:one\n2:two\n3:more\n");
    assert_string_equal(f->note, "it grew while it was read: 13 bytes, 8 at the start");
    path = put_file(f, "t.log", "one\ntwo\n", 8);
    c = (struct changer){path, 0, false};
    assert_int_equal(read_all(f, &path, 1, &o), 0);
    expect(f, "1:one\n");
    assert_string_equal(f->note, "it was truncated while it was read: 4 of 8 bytes");
}

static void fifo(void **state)
{
    struct fix *f = *state;
    const char *path = path_of(f, "pipe");
    pid_t child;

    assert_int_equal(mkfifo(path, 0600), 0);
    child = fork();
    if (child == 0) {
        int o = open(path, O_WRONLY);
        if (write(o, "from\na", 6) == 6 && write(o, " pipe\n", 6) == 6)
            _exit(0);
        _exit(1);
    }
    assert_int_equal(read_one(f, path), 0);
    expect(f, "1:from\n2:a pipe\n");
    waitpid(child, NULL, 0);
}

static void folders(void **state)
{
    struct fix *f = *state;
    const char *dir = f->dir, *two[2];
    bool root = geteuid() == 0;

    put_file(f, "b.log", "bee\n", 4);
    put_file(f, "a/2.log", "two\n", 4);
    put_file(f, "a/10.log", "ten\n", 4);
    put_file(f, "label.json", "{}\n", 3);
    put_file(f, ".hidden", "x\n", 2);
    put_file(f, "core", "\x01\x02\0\0\0\x03", 6);
    put_file(f, "hole.log", "\0\0\0\0\0\0\0\0", 8);
    put_file(f, "no.log", "x\n", 2);
    put_file(f, "shut/x.log", "x\n", 2);
    assert_int_equal(symlink(f->dir, path_of(f, "loop")), 0);
    assert_int_equal(symlink("b.log", path_of(f, "z.log")), 0);
    chmod(path_of(f, "no.log"), 0);
    chmod(path_of(f, "shut"), 0);
    assert_int_equal(read_one(f, dir), 0);
    if (!root) {
        assert_string_equal(f->files, "a/10.log,a/2.log,b.log,hole.log");
        expect(f, "1:ten\n1:two\n1:bee\n");
        assert_non_null(strstr(f->skips, "no.log (cannot be opened: Permission denied)"));
        assert_non_null(strstr(f->skips, "shut (the folder cannot be read)"));
    }
    assert_non_null(strstr(f->skips, ".hidden (hidden file)"));
    assert_non_null(strstr(f->skips, "core (binary file)"));
    assert_non_null(strstr(f->skips, "loop (symbolic link to a folder)"));
    assert_non_null(strstr(f->skips, "z.log (the same file as another input)"));
    assert_null(strstr(f->skips, "label"));
    two[0] = path_of(f, "core");
    assert_int_equal(read_all(f, two, 1, NULL), 0);
    expect(f, "1:\x01\x02\x03\n");
    two[0] = path_of(f, "b.log");
    two[1] = path_of(f, "label.json");
    assert_int_equal(read_all(f, two, 2, NULL), 0);
    expect(f, "1:bee\n");
    assert_non_null(strstr(f->skips, "label.json is never input"));
    two[1] = path_of(f, "missing.log");
    assert_int_equal(read_all(f, two, 2, NULL), FL_EINPUT);
    assert_non_null(strstr(f->err.msg, "missing.log: cannot be opened: No such file"));
    if (!root) {
        two[1] = path_of(f, "shut");
        assert_int_equal(read_all(f, two, 2, NULL), FL_EINPUT);
    }
}

static void containers(void **state)
{
    struct fix *f = *state;

    READ_TEXT(f,
              "{\"log\":\"one \\u001b[31mred\\u001b[0m\\n\",\"stream\":\"stderr\","
              "\"time\":\"2026-03-01T02:03:04.5Z\"}\n"
              "not json\n"
              "{\"log\":\"half \",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:05Z\"}\n"
              "{\"log\":\"between\\n\",\"stream\":\"stderr\",\"time\":\"2026-03-01T02:03:06Z\"}\n"
              "{\"log\":\"whole\\n\",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:07Z\"}\n"
              "{\"log\":\"1%\\r2%\\n\",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:08Z\"}\n"
              "{\"log\":\"open\",\"stream\":\"stdout\",\"time\":\"2026-03-01T02:03:09Z\"}");
    expect(f, "1:2026-03-01T02:03:04.5Z stderr F one red\n"
              "2:not json\n"
              "4:2026-03-01T02:03:06Z stderr F between\n"
              "3:2026-03-01T02:03:05Z stdout F half whole\n"
              "6:2026-03-01T02:03:08Z stdout F 1%\n6:2%\n"
              "7:2026-03-01T02:03:09Z stdout F open\n");
    assert_int_equal(f->lines, 7);
    READ_TEXT(f, "2026-03-01T02:03:04.000000001Z stdout P one \n"
                 "2026-03-01T02:03:05.000000001Z stderr F err\n"
                 "2026-03-01T02:03:06.000000001Z stdout P and \n"
                 "2026-03-01T02:03:07.000000001Z stdout F two\n"
                 "2026-03-01T02:03:08.000000001Z stdout F three\n");
    expect(f, "2:2026-03-01T02:03:05.000000001Z stderr F err\n"
              "1:2026-03-01T02:03:04.000000001Z stdout F one and two\n"
              "5:2026-03-01T02:03:08.000000001Z stdout F three\n");
    READ_TEXT(f,
              "{\"date\":1772330584.123,\"log\":\"plain\",\"kubernetes\":{\"pod_name\":\"llm-0\","
              "\"container_name\":\"main\"}}\n"
              "{\"date\":1772330584.123,\"log\":\"2026-03-01T02:03:04.1Z stderr P in\"}\n"
              "{\"date\":1772330584.123,\"log\":\"2026-03-01T02:03:04.2Z stderr F ner\"}\n"
              "{\"date\":1772330584.5,\"stream\":\"stdout\",\"_p\":\"P\",\"log\":\"a\"}\n"
              "{\"date\":1772330584.5,\"stream\":\"stdout\",\"_p\":\"F\",\"log\":\"b\"}\n");
    expect(f, "1:2026-03-01T02:03:04.123Z [pod/llm-0/main] plain\n"
              "2:2026-03-01T02:03:04.1Z stderr F inner\n"
              "4:2026-03-01T02:03:04.500Z stdout F ab\n");
    READ_TEXT(f, "{\"message\":\"mine\",\"time\":\"2026-03-01T02:03:04Z\",\"level\":\"INFO\"}\n");
    expect(f, "1:{\"message\":\"mine\",\"time\":\"2026-03-01T02:03:04Z\",\"level\":\"INFO\"}\n");
}

static void journals(void **state)
{
    struct fix *f = *state;
    struct fl_prefix p;

    READ_TEXT(f, "{\"__REALTIME_TIMESTAMP\":\"1772330584123456\",\"_HOSTNAME\":\"n12\","
                 "\"SYSLOG_IDENTIFIER\":\"kernel\",\"MESSAGE\":\"NVRM: Xid\",\"PRIORITY\":\"3\"}\n"
                 "{\"_PID\":\"77\",\"_COMM\":\"slurmd\",\"MESSAGE\":[104,105,10,33],"
                 "\"_HOSTNAME\":\"n12\",\"__REALTIME_TIMESTAMP\":\"1772330584000000\"}\n"
                 "{\"__REALTIME_TIMESTAMP\":\"1772330585000000\",\"MESSAGE\":\"q \\\" \\u00e9 "
                 "\\ud83d\\ude00\",\"_HOSTNAME\":\"n13\",\"_COMM\":\"x\"}\n");
    expect(f, "1:2026-03-01T02:03:04.123456Z n12 kernel: NVRM: Xid\n"
              "2:2026-03-01T02:03:04Z n12 slurmd[77]: hi\n2:!\n"
              "3:2026-03-01T02:03:05Z n13 x: q \" \xc3\xa9 \xf0\x9f\x98\x80\n");
    fl_prefix_parse(FL_S("2026-03-01T02:03:04.123456Z n12 kernel: NVRM: Xid"), &p);
    assert_int_equal(p.origin, FL_FROM_KERNEL);
    assert_true(fl_str_eqz(p.host, "n12"));
}

/* The same container log through any block size. */
static void containers_in_any_block(void **state)
{
    struct fix *f = *state;
    static const size_t blocks[] = {64, 100, 333, 4096};
    const char *path;
    uint64_t seed = 3;

    for (int i = 0; i < 300; i++) {
        uint64_t r = next_random(&seed);
        fl_buf_addf(
            &f->raw, "2026-03-01T02:03:04.%09dZ %s %s text %d%.*s\n", i,
            r & 1 ? "stdout" : "stderr", r % 5 == 0 ? "P" : "F", i, (int)(r % 90),
            "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
            "yyyyyyyyyy");
    }
    path = put_file(f, "t.log", f->raw.p, f->raw.n);
    assert_int_equal(read_one(f, path), 0);
    fl_buf_clear(&f->want);
    fl_buf_add(&f->want, fl_buf_str(&f->got));
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
        struct fl_reader_opts o = {.block = blocks[i]};
        assert_int_equal(read_all(f, &path, 1, &o), 0);
        expect(f, f->want.p);
    }
    fl_buf_clear(&f->raw);
}

struct seen {
    uint64_t done, total;
};

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    *(struct seen *)ctx = (struct seen){done, total};
}

static void progress_is_told(void **state)
{
    struct fix *f = *state;
    struct seen seen = {0, 0};
    struct fl_reader_opts o = {.progress = on_progress, .progress_ctx = &seen};
    const char *path = put_file(f, "t.log", "one\ntwo\n", 8);

    assert_int_equal(read_all(f, &path, 1, &o), 0);
    assert_int_equal(seen.done, 8);
    assert_int_equal(seen.total, 8);
    assert_int_equal(read_all(f, NULL, 0, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(line_ends),
        T(removed_bytes),
        T(empty_files),
        T(utf16),
        T(long_lines),
        T(any_block_size),
        T(fifo),
        T(short_reads_and_faults),
        T(growing_and_truncated),
        T(folders),
        T(containers),
        T(journals),
        T(progress_is_told),
        T(containers_in_any_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
