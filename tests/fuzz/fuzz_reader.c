/*
 * Any bytes as a file: the reader ends, and its lines do not depend on the block size. The bytes
 * come through the injected read(), so no file is written.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "read/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct feed {
    const uint8_t *p;
    size_t n, at;
};

static ssize_t feed_read(void *ctx, int fd, void *buf, size_t n)
{
    struct feed *f = ctx;

    (void)fd;
    if (n > f->n - f->at)
        n = f->n - f->at;
    if (n)
        memcpy(buf, f->p + f->at, n);
    f->at += n;
    return (ssize_t)n;
}

/* A hash over all lines with their numbers. */
static uint64_t digest(const uint8_t *data, size_t n, size_t block)
{
    static const char *const stdin_only[] = {"-"};
    struct feed f = {data, n, 0};
    struct fl_reader_opts o = {.block = block, .line_max = 300, .read = feed_read, .read_ctx = &f};
    struct fl_block b;
    fl_reader *r;
    fl_err err = {0};
    uint64_t hash = 7, total = 0;
    int code;

    if (fl_reader_open(stdin_only, 1, &o, &r, &err))
        abort();
    while ((code = fl_reader_next(r, &b, &err)) > 0 && total < (4u << 20)) {
        fl_str rest = {b.data, b.len};
        uint64_t lfs = 0;
        if (b.len && b.data[b.len - 1] != '\n')
            abort();
        total += b.len;
        while (rest.n) {
            uint64_t line = fl_block_line(&b, (size_t)(rest.p - b.data), lfs++);
            fl_str one = fl_str_cut(&rest, '\n');
            hash = fl_hash64(one.p, one.n, hash + line);
        }
    }
    fl_reader_free(r);
    return total < (4u << 20) ? hash : 0; /* a bomb: cut off at different places */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t small = digest(data, n, 64), large = digest(data, n, 65536);

    if (small && large && small != large)
        abort();
    return 0;
}
