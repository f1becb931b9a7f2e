/*
 * Choosing under a budget.
 *
 * What must be there goes in first; when that alone is too much, one length is found to which the
 * longest lines are cut in the middle, around what matched, so that none is dropped. Then blocks
 * are taken by value per token until nothing more fits. A line belongs to the first section that
 * shows it and costs nothing in a second one; from the other lines it moves to its block when that
 * is taken later, so that a traceback is in one place.
 *
 * The page is in the order of sections, and in each in the order of files and lines, so that what
 * is printed does not depend on how it was chosen. Tokens are counted by the caller's function on
 * exactly what is printed, headings and notes included: the budget is kept and not estimated.
 *
 * Greedy by value per token and not by an exact knapsack: blocks are small against the budget, and
 * a reader can see why a line is there.
 */
#include "compress/digest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

#define SHORTEST 40 /* bytes that a line may be cut to */
#define SCRAP 16    /* when even so there is too much of them */
#define NAME_MAX_BYTES 200
#define WORDS_LONG 800 /* bytes of a '#' line, when such lines take too much */
#define WORDS_ROWS 16  /* of them in a section, when they still do */

static const char *const titles[FL_SECTIONS] = {"the job",
                                                "timeline",
                                                "evidence",
                                                "events, with the lines around them",
                                                "tracebacks",
                                                "the last lines of the rank in question",
                                                "other lines, one for each shape"};

void fl_digest_init(struct fl_digest *d, size_t budget, size_t (*count)(void *ctx, fl_str text),
                    void *count_ctx)
{
    *d = (struct fl_digest){.budget = budget, .count = count, .count_ctx = count_ctx};
    fl_arena_init(&d->arena);
    fl_map_init(&d->line_of);
    for (int i = 0; i < FL_SECTIONS; i++)
        fl_buf_init(&d->heads[i], 64u << 10);
    fl_buf_init(&d->top, 64u << 10);
    fl_buf_init(&d->page, 64u << 20);
}

void fl_digest_dispose(struct fl_digest *d)
{
    fl_free(d->lines);
    fl_free(d->blocks);
    fl_free(d->printed);
    fl_free(d->order);
    fl_map_dispose(&d->line_of);
    for (int i = 0; i < FL_SECTIONS; i++)
        fl_buf_dispose(&d->heads[i]);
    fl_buf_dispose(&d->top);
    fl_buf_dispose(&d->page);
    fl_arena_dispose(&d->arena);
}

void fl_digest_say(struct fl_digest *d, int section, const char *fmt, ...)
{
    fl_buf *b = section == FL_SECTIONS ? &d->top : &d->heads[section];
    char text[700], safe[1500];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fl_text_escape(fl_str_c(text), safe, sizeof(safe));
    fl_buf_addf(b, "# %s\n", safe);
    d->failed |= b->bad == FL_ENOMEM;
}

void fl_digest_open(struct fl_digest *d, enum fl_section section, double value, bool must)
{
    if (fl_grow((void **)&d->blocks, &d->blocks_cap, d->nblocks + 1, sizeof(*d->blocks))) {
        d->failed = true;
        return;
    }
    d->blocks[d->nblocks++] = (struct fl_digest_block){
        .section = section, .value = value, .must = must, .first = d->norder};
}

/* Where a character begins, at or before `at`, and at or behind it. */
static size_t unit_before(fl_str s, size_t at)
{
    while (at && at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static size_t unit_behind(fl_str s, size_t at)
{
    while (at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80)
        at++;
    return at;
}

/* The text as it is printed: escaped, and with what does not fit cut off around the match. */
static void show_text(const struct fl_digest_line *l, size_t most, fl_buf *out)
{
    const size_t mark = sizeof(FL_CUT_MARK) - 1;
    size_t from, to, tail, head;

    if (l->text.n <= most) {
        fl_buf_add(out, l->text);
        return;
    }
    if (l->match_len && l->match_at + l->match_len > most / 2) {
        from = l->match_at > most / 4 ? l->match_at - most / 4 : 0;
        if (from + most > l->text.n)
            from = l->text.n - most;
        to = from + most;
        fl_buf_addz(out, from ? FL_CUT_MARK : "");
        from = unit_behind(l->text, from ? from + mark : 0);
        to = to < l->text.n ? unit_before(l->text, to - mark) : l->text.n;
        fl_buf_add(out, fl_str_sub(l->text, from, to > from ? to - from : 0));
        fl_buf_addz(out, to < l->text.n ? FL_CUT_MARK : "");
        return;
    }
    tail = most / 4;
    head = unit_before(l->text, most - tail - mark);
    fl_buf_add(out, fl_str_sub(l->text, 0, head));
    fl_buf_addz(out, FL_CUT_MARK);
    fl_buf_add(out, fl_str_from(l->text, unit_behind(l->text, l->text.n - tail)));
}

/* A file's name may hold anything; what is printed is one word of one line and no comment. */
static void show_name(const char *name, fl_buf *out)
{
    char safe[NAME_MAX_BYTES + 1];

    fl_text_escape(fl_str_c(name), safe, sizeof(safe));
    for (char *p = safe; *p; p++)
        if (*p == '\t')
            *p = ' ';
    fl_buf_addz(out, safe[0] == '#' ? "./" : "");
    fl_buf_addz(out, safe);
}

static void show_line(const struct fl_digest_line *l, size_t most, fl_buf *out)
{
    show_name(l->name, out);
    fl_buf_addf(out, ":%llu\t", (unsigned long long)l->line);
    show_text(l, most, out);
}

/* "#   2040 lines like it, up to job.log:48977, by 2040 ranks" */
static void show_note(const struct fl_digest_line *l, fl_buf *out)
{
    if (l->count < 2 && !l->joined)
        return;
    fl_buf_addf(out, "#   %llu such lines", (unsigned long long)l->count);
    if (l->count > 1 && l->last_name) {
        fl_buf_addz(out, ", the last ");
        if (strcmp(l->last_name, l->name) != 0) {
            show_name(l->last_name, out);
            fl_buf_addc(out, ':');
        }
        fl_buf_addf(out, "%llu", (unsigned long long)l->last_line);
    }
    if (l->ranks)
        fl_buf_addf(out, ", by %s%u rank%s", l->ranks_over ? "at least " : "", l->ranks,
                    l->ranks == 1 ? "" : "s");
    if (l->joined)
        fl_buf_addf(out, ", %zu of them with another word in it", l->joined);
    fl_buf_addc(out, '\n');
}

static size_t tokens_of(const struct fl_digest *d, fl_str text)
{
    size_t n = 0;

    while (text.n) {
        fl_str line = fl_str_cut(&text, '\n');
        n += d->count(d->count_ctx, line) + 1; /* and its LF */
    }
    return n;
}

static size_t line_tokens(struct fl_digest *d, const struct fl_digest_line *l, size_t most)
{
    fl_buf b;
    size_t n;

    fl_buf_init(&b, 1u << 20);
    show_line(l, most, &b);
    fl_buf_addc(&b, '\n');
    show_note(l, &b);
    n = tokens_of(d, fl_buf_str(&b));
    d->failed |= b.bad != 0;
    fl_buf_dispose(&b);
    return n;
}

/* The text of an offer, printable, and marked where it is not all of the line. */
static fl_str printable(struct fl_digest *d, const struct fl_digest_offer *o)
{
    fl_str text = {NULL, 0};
    fl_buf b;

    fl_buf_init(&b, 1u << 20);
    fl_text_escape_buf(fl_str_sub(o->text, 0, FL_DIGEST_PROOF * 2), &b);
    if (o->cut || o->text.n > FL_DIGEST_PROOF * 2)
        fl_buf_addz(&b, FL_CUT_MARK);
    text = b.n ? fl_arena_str(&d->arena, fl_buf_str(&b)) : FL_S("");
    d->failed |= b.bad || !text.p;
    fl_buf_dispose(&b);
    return text;
}

/* The match as it stands in the printable text. */
static void mark_match(struct fl_digest *d, struct fl_digest_line *l,
                       const struct fl_digest_offer *o)
{
    fl_buf b;

    if (l->match_len || !o->match_len || o->match_at >= o->text.n)
        return;
    fl_buf_init(&b, 1u << 20);
    fl_text_escape_buf(fl_str_sub(o->text, 0, o->match_at), &b);
    l->match_at = (uint32_t)b.n;
    fl_text_escape_buf(fl_str_sub(o->text, o->match_at, o->match_len), &b);
    l->match_len = (uint32_t)b.n - l->match_at;
    d->failed |= b.bad != 0;
    fl_buf_dispose(&b);
}

static uint32_t new_line(struct fl_digest *d, const struct fl_digest_offer *o)
{
    struct {
        uint64_t file, line;
    } key = {o->file, o->line};
    uint32_t at = 0;
    bool added = false;

    if (fl_map_intern(&d->line_of, fl_str_n((const char *)&key, sizeof(key)), (uint32_t)d->nlines,
                      &at, &added)) {
        d->failed = true;
        return 0;
    }
    if (!added) {
        struct fl_digest_line *l = &d->lines[at];
        if (o->text.n > l->raw) {
            l->text = printable(d, o);
            l->raw = o->text.n;
            l->tokens = 0;
        }
        mark_match(d, l, o);
        if (!l->hash)
            l->hash = o->hash;
        return at;
    }
    if (fl_grow((void **)&d->lines, &d->lines_cap, d->nlines + 1, sizeof(*d->lines))) {
        d->failed = true;
        return 0;
    }
    d->lines[d->nlines++] = (struct fl_digest_line){.name = o->name,
                                                    .file = o->file,
                                                    .line = o->line,
                                                    .text = printable(d, o),
                                                    .raw = o->text.n,
                                                    .hash = o->hash};
    mark_match(d, &d->lines[at], o);
    return at;
}

size_t fl_digest_add(struct fl_digest *d, const struct fl_digest_offer *o)
{
    uint32_t at;

    if (d->failed || !d->nblocks)
        return 0;
    at = new_line(d, o);
    if (d->failed || fl_grow((void **)&d->order, &d->order_cap, d->norder + 1, sizeof(*d->order))) {
        d->failed = true;
        return 0;
    }
    d->order[d->norder++] = at;
    d->blocks[d->nblocks - 1].n++;
    return at;
}

static size_t most_of(enum fl_section section)
{
    return section == FL_SECTION_EVIDENCE ? FL_DIGEST_PROOF : FL_DIGEST_LINE;
}

/* Counts the line as it is printed with at most so many bytes of text. */
static void count_line(struct fl_digest *d, struct fl_digest_line *l, size_t most)
{
    bool same = l->text.n <= most && l->text.n <= l->counted;

    if (!l->tokens || (l->counted != most && !same))
        l->tokens = (uint32_t)line_tokens(d, l, most);
    l->counted = (uint32_t)most;
}

/* Tokens that a block adds to the page. */
static size_t block_tokens(struct fl_digest *d, const struct fl_digest_block *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++) {
        struct fl_digest_line *l = &d->lines[d->order[b->first + i]];
        bool twice = false;
        for (size_t k = 0; k < i && !twice; k++)
            twice = d->order[b->first + k] == d->order[b->first + i];
        if (l->shown || twice)
            continue;
        count_line(d, l, most_of(b->section));
        n += l->tokens;
    }
    return n;
}

static void take(struct fl_digest *d, struct fl_digest_block *b)
{
    b->taken = true;
    for (size_t i = 0; i < b->n; i++) {
        struct fl_digest_line *l = &d->lines[d->order[b->first + i]];
        /* What stood alone among the other lines goes to those that it belongs to. */
        if (!l->shown ||
            (l->section == FL_SECTION_REST && most_of(b->section) == most_of(FL_SECTION_REST)))
            l->section = b->section;
        l->shown = true;
    }
}

static size_t title_tokens(const struct fl_digest *d, int section)
{
    char text[100];

    snprintf(text, sizeof(text), "# -- %s", titles[section]);
    return tokens_of(d, fl_str_c(text));
}

/* From here on the line's text is what is printed of it. */
static void cut_line(struct fl_digest *d, struct fl_digest_line *l, size_t most)
{
    fl_buf b;

    if (l->text.n <= most)
        return;
    fl_buf_init(&b, 1u << 20);
    show_text(l, most, &b);
    l->text = fl_arena_str(&d->arena, fl_buf_str(&b));
    d->failed |= b.bad || !l->text.p;
    fl_buf_dispose(&b);
}

static size_t proof_tokens(struct fl_digest *d, size_t most)
{
    size_t total = 0;

    for (size_t i = 0; i < d->nlines; i++) {
        struct fl_digest_line *l = &d->lines[i];
        if (!l->shown)
            continue;
        count_line(d, l, most < most_of(l->section) ? most : most_of(l->section));
        total += l->tokens;
    }
    return total;
}

/* Cuts what must be there until it fits; what does not even so is left out from its end, and
 * counted. */
static void take_proof(struct fl_digest *d, size_t *left)
{
    size_t most = FL_DIGEST_PROOF, total;

    for (size_t i = 0; i < d->nblocks; i++)
        if (d->blocks[i].must)
            take(d, &d->blocks[i]);
    while ((total = proof_tokens(d, most)) > *left && most > SHORTEST)
        most = most * 3 / 4 > SHORTEST ? most * 3 / 4 : SHORTEST;
    if (total > *left) { /* rather a line without its note than none */
        for (size_t i = 0; i < d->nlines; i++) {
            d->lines[i].count = 0;
            d->lines[i].joined = 0;
            d->lines[i].tokens = 0;
        }
        while ((total = proof_tokens(d, most)) > *left && most > SCRAP)
            most -= 4;
    }
    for (size_t i = d->nlines; i-- > 0 && total > *left;)
        if (d->lines[i].shown) {
            d->lines[i].shown = false;
            total -= d->lines[i].tokens;
            d->missing++;
        }
    for (size_t i = 0; i < d->nlines; i++)
        if (d->lines[i].shown && d->lines[i].text.n > most) {
            cut_line(d, &d->lines[i], most);
            d->cut++;
        }
    *left -= total;
}

struct choice {
    size_t block;
    double worth; /* value per token */
};

static int by_worth(const void *p, const void *q)
{
    const struct choice *a = p, *b = q;

    if (a->worth != b->worth)
        return a->worth > b->worth ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static void choose(struct fl_digest *d, size_t left)
{
    struct choice *c = fl_malloc((d->nblocks + 1) * sizeof(*c));
    bool open[FL_SECTIONS] = {false};
    size_t n = 0;

    if (!c) {
        d->failed = true;
        return;
    }
    for (size_t i = 0; i < d->nblocks; i++)
        open[d->blocks[i].section] |= d->blocks[i].must;
    for (size_t i = 0; i < d->nblocks; i++) {
        size_t cost = d->blocks[i].must ? 0 : block_tokens(d, &d->blocks[i]);
        if (!d->blocks[i].must)
            c[n++] = (struct choice){i, d->blocks[i].value / (double)(cost + 4)};
    }
    qsort(c, n, sizeof(*c), by_worth);
    for (size_t i = 0; i < n && left > 8; i++) {
        struct fl_digest_block *b = &d->blocks[c[i].block];
        size_t cost = block_tokens(d, b), title = 0;
        if (!open[b->section])
            title = title_tokens(d, b->section);
        if (cost == 0 || cost + title > left)
            continue;
        open[b->section] = true;
        take(d, b);
        left -= cost + title;
    }
    fl_free(c);
}

static int by_place(const void *p, const void *q)
{
    const struct fl_digest_line *a = *(struct fl_digest_line *const *)p,
                                *b = *(struct fl_digest_line *const *)q;

    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static void write_section(struct fl_digest *d, int section)
{
    struct fl_digest_line **v = d->printed + d->nprinted;
    size_t n = 0;

    for (size_t i = 0; i < d->nlines; i++)
        if (d->lines[i].shown && (int)d->lines[i].section == section)
            v[n++] = &d->lines[i];
    if (!n && !d->heads[section].n)
        return;
    qsort(v, n, sizeof(*v), by_place);
    fl_buf_addf(&d->page, "# -- %s\n", titles[section]);
    fl_buf_add(&d->page, fl_buf_str(&d->heads[section]));
    for (size_t i = 0; i < n; i++) {
        cut_line(d, v[i], most_of((enum fl_section)section));
        show_line(v[i], v[i]->text.n, &d->page);
        fl_buf_addc(&d->page, '\n');
        show_note(v[i], &d->page);
    }
    d->nprinted += n;
}

/* What the page's own words take, with the titles of the sections that will be there. */
static size_t words_tokens(const struct fl_digest *d)
{
    size_t n = tokens_of(d, fl_buf_str(&d->top));

    for (int i = 0; i < FL_SECTIONS; i++) {
        bool must = d->heads[i].n != 0;
        for (size_t k = 0; k < d->nblocks && !must; k++)
            must = d->blocks[k].must && (int)d->blocks[k].section == i;
        n += must ? title_tokens(d, i) + tokens_of(d, fl_buf_str(&d->heads[i])) : 0;
    }
    return n;
}

/* Cuts each line of `b` to `most` bytes, and keeps `rows` of them. */
static void shorten(struct fl_digest *d, fl_buf *b, size_t most, size_t rows)
{
    fl_str rest = fl_buf_str(b);
    fl_buf out;

    fl_buf_init(&out, 64u << 10);
    for (size_t i = 0; rest.n && i < rows; i++) {
        struct fl_digest_line l = {.text = fl_str_cut(&rest, '\n')};
        show_text(&l, most, &out);
        fl_buf_addc(&out, '\n');
    }
    d->failed |= out.bad != 0;
    fl_buf_dispose(b);
    *b = out;
}

/* The page's own words may hold what a log says. They leave half of the budget to the lines. */
static void fit_words(struct fl_digest *d)
{
    for (size_t most = WORDS_LONG; most >= SHORTEST && words_tokens(d) > d->budget / 2;
         most = most * 3 / 4)
        for (int i = 0; i <= FL_SECTIONS; i++)
            shorten(d, i == FL_SECTIONS ? &d->top : &d->heads[i], most, SIZE_MAX);
    for (size_t rows = WORDS_ROWS; rows-- > 0 && words_tokens(d) > d->budget / 2;)
        for (int i = 0; i <= FL_SECTIONS; i++)
            shorten(d, i == FL_SECTIONS ? &d->top : &d->heads[i], SHORTEST, rows);
}

int fl_digest_finish(struct fl_digest *d, fl_err *err)
{
    size_t left = d->budget, used;

    fit_words(d);
    used = words_tokens(d);
    left = left > used ? left - used : 0;
    take_proof(d, &left);
    choose(d, left);
    d->printed = fl_malloc((d->nlines + 1) * sizeof(struct fl_digest_line *));
    if (!d->printed || d->failed)
        return fl_fail_nomem(err);
    fl_buf_add(&d->page, fl_buf_str(&d->top));
    for (int i = 0; i < FL_SECTIONS; i++)
        write_section(d, i);
    if (d->failed || d->page.bad)
        return fl_fail_nomem(err);
    d->tokens = tokens_of(d, fl_buf_str(&d->page));
    return FL_OK;
}
