/*
 * Any offers: the page keeps to its budget, its lines begin with a file and a number or with '#',
 * and it is made the same way twice.
 *
 * An offer is six bytes (file, line, section with flags, value, where it matched and how much) and
 * the text up to a LF. Tokens are counted as a third of the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compress/digest.h"

#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MUST 0x80
#define SAY 0x40
#define SAME_BLOCK 0x20

static size_t count(void *ctx, fl_str text)
{
    (void)ctx;
    return text.n / 3 + 1;
}

static void offer(struct fl_digest *d, const uint8_t *h, fl_str text)
{
    static const char *const names[] = {"job.log", "a/rank_3.log", "#x", "\x1b\xff\n\t"};
    struct fl_digest_offer o = {.name = names[h[0] % 4],
                                .file = h[0] % 4,
                                .line = 1u + h[1],
                                .text = text,
                                .cut = h[5] & 1,
                                .match_at = (uint32_t)h[4] * 4,
                                .match_len = h[5],
                                .hash = h[3]};
    int section = (h[2] & 15) % (FL_SECTIONS + 1);

    if (h[2] & SAY) {
        fl_digest_say(d, section, "%.*s", FL_FMT(text));
        return;
    }
    section %= FL_SECTIONS;
    if (!(h[2] & SAME_BLOCK) || !d->nblocks)
        fl_digest_open(d, (enum fl_section)section, h[3], h[2] & MUST);
    fl_digest_add(d, &o);
}

static void build(struct fl_digest *d, const uint8_t *data, size_t n)
{
    fl_digest_init(d, FL_DIGEST_LEAST + (n ? data[0] * 16u : 0), count, NULL);
    while (n > 6) {
        const uint8_t *lf = memchr(data + 6, '\n', n - 6);
        size_t len = lf ? (size_t)(lf - data) - 6 : n - 6;
        offer(d, data, fl_str_n((const char *)data + 6, len));
        n -= len + 6 + (lf ? 1 : 0);
        data += len + 6 + (lf ? 1 : 0);
    }
    if (fl_digest_finish(d, NULL))
        abort();
}

static void check(const struct fl_digest *d)
{
    fl_str rest = fl_buf_str(&d->page);
    size_t tokens = 0, lines = 0;

    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        ptrdiff_t tab = fl_str_find_c(line, '\t');
        tokens += count(NULL, line) + 1;
        for (size_t i = 0, unit; i < line.n; i += unit)
            if (!(unit = fl_text_unit(fl_str_from(line, i))))
                abort();
        if (line.n && line.p[0] == '#')
            continue;
        lines++;
        if (tab < 3 || line.p[tab - 1] < '0' || line.p[tab - 1] > '9')
            abort();
    }
    if (tokens != d->tokens || tokens > d->budget || lines != d->nprinted)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fl_digest d, again;

    build(&d, data, n);
    build(&again, data, n);
    check(&d);
    if (!fl_str_eq(fl_buf_str(&d.page), fl_buf_str(&again.page)))
        abort();
    fl_digest_dispose(&d);
    fl_digest_dispose(&again);
    return 0;
}
