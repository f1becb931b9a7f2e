/*
 * Is the block engine's promise kept? Candidates may be false, never missing, and a library that
 * breaks this does so in silence: Vectorscan 5.4.9 lost lines only behind some prefixes, only when
 * a word was long, only beside certain other patterns (match_hs.c). So a line that a pattern must
 * find is put where logs put lines: behind prefixes of many lengths, between other lines, at either
 * end of a block, at any place in a vector, with a byte in it repeated. PCRE2 says what is still a
 * match; what the block engine then does not name is lost.
 *
 * The variants come from a generator with a fixed seed, so that a finding can be found again. They
 * prove nothing about other lines; they would have shown both bugs known today.
 */
#include "match/engine.h"

#include "base/alloc.h"

#define VARIANTS 50
#define LONGEST_RUN 100

struct variant {
    fl_buf text; /* bytes before the block, the block */
    size_t start, at, len;
    uint32_t random;
};

static uint32_t below(struct variant *v, uint32_t n)
{
    v->random = v->random * 1664525u + 1013904223u;
    return (v->random >> 8) % n;
}

static void add_noise(struct variant *v, size_t n)
{
    static const char bytes[] = "abcdefgh 0159[]:-x.,'/";

    while (n--)
        fl_buf_addc(&v->text, bytes[below(v, sizeof(bytes) - 1)]);
}

static void add_lines(struct variant *v, uint32_t n)
{
    while (n--) {
        add_noise(v, below(v, 150));
        fl_buf_addc(&v->text, '\n');
    }
}

/* The line, every other time with one of its bytes repeated. */
static void add_line(struct variant *v, unsigned number, fl_str line)
{
    size_t cut = line.n && number % 2 ? below(v, (uint32_t)line.n) : line.n;

    fl_buf_add(&v->text, fl_str_sub(line, 0, cut));
    for (uint32_t n = cut < line.n ? below(v, LONGEST_RUN) : 0; n; n--)
        fl_buf_addc(&v->text, line.p[cut]);
    fl_buf_add(&v->text, fl_str_from(line, cut));
}

/* Number 0 is the line alone. */
static void make_variant(struct variant *v, unsigned number, fl_str line)
{
    fl_buf_clear(&v->text);
    v->random = number * 7919u + (uint32_t)line.n;
    v->start = number ? below(v, 64) : 0;
    add_noise(v, v->start);
    if (number)
        add_lines(v, number % 4);
    v->at = v->text.n;
    if (number) {
        add_noise(v, number < 30 ? number : below(v, 200));
        fl_buf_addc(&v->text, ' ');
    }
    add_line(v, number, line);
    v->len = v->text.n - v->at;
    fl_buf_addc(&v->text, '\n');
    if (number)
        add_lines(v, number / 4 % 3);
}

/* 1, 0 or an error. Where a match begins does not matter to the engine, so `anchored` is not asked.
 */
static int matches(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str text,
                   fl_err *err)
{
    struct fl_expr *code;
    int r = fl_lazy_get(&m->entry[index].lazy, &code, err);

    return r ? r : fl_expr_search(code, &s->tools, text, 0, NULL) >= 0;
}

/* 1 when the engine names the line, 0 when it loses it, or an error. */
static int named(const fl_matcher *m, fl_match_scratch *s, uint32_t index, const struct variant *v,
                 fl_err *err)
{
    const struct fl_candidate *c;
    size_t n;
    int r = fl_match_block(m, s, fl_str_from(fl_buf_str(&v->text), v->start), &c, &n, err);

    for (size_t i = 0; r == FL_OK && i < n; i++)
        if (c[i].pattern == index && c[i].at == v->at - v->start)
            return 1;
    return r;
}

int fl_match_verify(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str line,
                    fl_buf *lost, fl_err *err)
{
    struct variant v = {0};
    int missing = 0, r = FL_OK;

    /* PCRE2 over blocks is slow, and its own reference. */
    if (m->engine == &fl_engine_pcre2)
        return 0;
    if (index >= m->n || fl_str_find_c(line, '\n') >= 0)
        return fl_fail(err, FL_EBUG, "no pattern %u, or more than one line", index);
    fl_buf_init(&v.text, line.n + 4096);
    for (unsigned i = 0; i < VARIANTS && r >= 0; i++) {
        fl_str text;
        make_variant(&v, i, line);
        r = fl_buf_check(&v.text, "a line to verify", err);
        text = fl_str_sub(fl_buf_str(&v.text), v.at, v.len);
        if (r == FL_OK)
            r = matches(m, s, index, text, err);
        if (r != 1)
            continue;
        r = named(m, s, index, &v, err);
        if (r == 0 && missing++ == 0 && lost)
            fl_buf_add(lost, text);
    }
    if (r >= 0 && s->tools.nomem)
        r = fl_fail_nomem(err);
    fl_buf_dispose(&v.text);
    return r < 0 ? r : missing;
}
