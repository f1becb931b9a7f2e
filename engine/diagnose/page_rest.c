/*
 * The rest of the log: one line for each shape, by what it may be worth.
 *
 * Rare beats frequent, one rank's own beats what all print, and what appears only when the trouble
 * had begun beats what was there while all was well. Words of trouble count, and less than one
 * would think: in published studies almost half of the decisive lines were not at error level.
 *
 * When the budget is short of what there is, shapes that differ in one word are one: the line that
 * is worth most stands for them, and says so.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/page.h"

#define HEADS 14       /* lines that tell what the job is */
#define MOST_ROWS 3000 /* rows that are offered, the best */
#define JOIN_ROWS 1500 /* of them looked at for joining */
#define JOIN_WORDS 40
#define LATE_LINES 40   /* of those without a row, of each sort */
#define BYTES_A_TOKEN 4 /* a guess that only decides whether rows are joined */

bool fl_page_drops(const struct fl_page *p, size_t row)
{
    const struct fl_shape_row *r = &p->job->gather->shapes.rows[row];
    const struct fl_ruleset *rs = p->job->rules;

    return p->filter[row] && rs->filters[p->filter[row] - 1].action == FL_FILTER_DROP &&
           !(r->owner & (FL_OWN_EVENT | FL_OWN_TRACEBACK));
}

static enum fl_filter_action action_of(const struct fl_page *p, size_t row)
{
    return p->filter[row] ? p->job->rules->filters[p->filter[row] - 1].action : FL_FILTER_GUARD;
}

static bool has_letters(fl_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z')
            return true;
    return false;
}

static double value_of(const struct fl_page *p, size_t row)
{
    const struct fl_shape_row *r = &p->job->gather->shapes.rows[row];
    static const double bad[] = {0.8, 1.6, 4, 6};
    size_t ranks = p->job->places.nranks;
    double v = bad[r->badness];

    if (!has_letters(fl_str_from(r->text, r->body)))
        return 0.05; /* rulers and empty lines */
    if (r->owner & FL_OWN_EVENT)
        v += 3;
    if (r->owner & FL_OWN_NOISE)
        v *= 0.2;
    if (r->ranks == 1 && ranks > 4)
        v *= 2;
    else if (r->ranks && r->ranks <= 3 && ranks > 8)
        v *= 1.5;
    v *= r->count == 1 ? 1.5 : r->count <= 4 ? 1.2 : r->count > 1000 ? 0.5 : 1;
    if (p->fault_seq != UINT64_MAX)
        v *= r->first.seq + 2 >= p->fault_seq ? 2 : r->badness >= 2 ? 0.7 : 0.4;
    if (r->last.seq + 30 >= p->job->seq)
        v *= 1.3;
    if (action_of(p, row) == FL_FILTER_KEEP)
        v = v < 6 ? 6 : v;
    return p->healthy ? v * 0.5 : v;
}

struct ranked {
    size_t row;
    double value;
    size_t joined; /* rows that it stands for besides */
    uint64_t more; /* and their lines */
    bool out;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The hashes of the row's words but one, for each of them. */
static size_t without_a_word(const struct fl_shape_row *r, uint64_t out[JOIN_WORDS])
{
    fl_str rest = fl_str_from(r->text, r->body), word;
    uint64_t h[JOIN_WORDS], all = 0;
    size_t n = 0;

    while (rest.n && n < JOIN_WORDS) {
        word = fl_str_cut(&rest, ' ');
        for (size_t i = 0; i < word.n; i++) /* numbers are alike */
            if (word.p[i] >= '0' && word.p[i] <= '9') {
                word = FL_S("#");
                break;
            }
        if (word.n)
            h[n++] = fl_hash64(word.p, word.n, 0);
    }
    for (size_t i = 0; i < n; i++)
        all += h[i] * (2 * i + 3);
    for (size_t i = 0; i < n; i++)
        out[i] = fl_hash64(&(uint64_t[2]){all - h[i] * (2 * i + 3), i * 64 + n}, 16, 1);
    return n < 4 ? 0 : n;
}

/* Each row goes to the first, better one that differs in one word. Rows with something of their
 * own (an event's, bad words that the other has not) stay. */
static void join_rows(struct fl_page *p, struct ranked *v, size_t n)
{
    const struct fl_shape_row *rows = p->job->gather->shapes.rows;
    uint64_t keys[JOIN_WORDS];
    fl_map first;

    fl_map_init(&first);
    for (size_t i = 0; i < n && i < JOIN_ROWS; i++) {
        const struct fl_shape_row *r = &rows[v[i].row];
        size_t k = r->owner & FL_OWN_EVENT ? 0 : without_a_word(r, keys);
        uint32_t at;
        for (size_t w = 0; w < k && !v[i].out; w++)
            if (fl_map_get(&first, fl_str_n((const char *)&keys[w], 8), &at) &&
                rows[v[at].row].badness >= r->badness) {
                v[i].out = true;
                v[at].joined += 1;
                v[at].more += r->count;
                p->fate[v[i].row] = FL_FATE_SHOWN;
            }
        for (size_t w = 0; w < k && !v[i].out; w++)
            if (!fl_map_get(&first, fl_str_n((const char *)&keys[w], 8), &at) &&
                fl_map_set(&first, fl_str_n((const char *)&keys[w], 8), (uint32_t)i))
                p->digest.failed = true;
    }
    fl_map_dispose(&first);
}

static size_t offer_row(struct fl_page *p, size_t row)
{
    const struct fl_shape_row *r = &p->job->gather->shapes.rows[row];
    struct fl_kept k = {r->first, r->hash, r->text, r->cut};

    fl_page_offer_kept(p, &k);
    return p->digest.norder ? p->digest.order[p->digest.norder - 1] : 0;
}

static void count_row(const struct fl_page *p, const struct fl_shape_row *r,
                      struct fl_digest_line *l)
{
    l->count = l->count > r->count ? l->count : r->count;
    l->last_line = r->last.line;
    l->last_name = fl_reader_file(p->job->reader, r->last.file)->name;
    l->ranks = r->ranks;
    l->ranks_over = r->ranks_over;
}

bool fl_page_represents(const struct fl_page *p, uint64_t hash)
{
    const struct fl_digest *d = &p->digest;

    for (size_t b = 0; b < d->nblocks; b++)
        for (size_t i = 0; d->blocks[b].must && i < d->blocks[b].n; i++)
            if (d->lines[d->order[d->blocks[b].first + i]].hash == hash)
                return true;
    return false;
}

/* Lines that tell what the job is: the earliest of each kind. */
static void heads(struct fl_page *p)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    size_t told = 0;

    for (size_t i = 0; i < t->n && told < HEADS; i++) {
        if (action_of(p, i) != FL_FILTER_HEAD)
            continue;
        fl_digest_open(&p->digest, FL_SECTION_JOB, told < 6 ? 4 : 2, false);
        offer_row(p, i);
        told++;
    }
}

static void late_lines(struct fl_page *p, int sort)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    uint64_t n = t->nlatest[sort], most = n < LATE_LINES ? n : LATE_LINES;

    for (uint64_t i = n - most; i < n; i++) {
        const struct fl_late_line *l = &t->latest[sort][i % FL_LATEST];
        struct fl_kept k = {l->at, 0, fl_str_n(l->text, l->n), l->n == sizeof(l->text)};
        fl_digest_open(&p->digest, FL_SECTION_REST, sort ? 4 : 1, false);
        fl_page_offer_kept(p, &k);
    }
}

void fl_page_offer_rest(struct fl_page *p)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    struct ranked *v = fl_malloc((t->n + 1) * sizeof(*v));
    size_t n = 0, bytes = 0;

    if (!v) {
        p->digest.failed = true;
        return;
    }
    heads(p);
    for (size_t i = 0; i < t->n; i++) {
        if (fl_page_drops(p, i) || action_of(p, i) == FL_FILTER_HEAD ||
            fl_page_represents(p, t->rows[i].hash))
            continue;
        v[n++] = (struct ranked){.row = i, .value = value_of(p, i)};
    }
    qsort(v, n, sizeof(*v), by_value);
    n = n < MOST_ROWS ? n : MOST_ROWS;
    for (size_t i = 0; i < n; i++)
        bytes += t->rows[v[i].row].text.n + 40;
    if (bytes / BYTES_A_TOKEN > p->digest.budget)
        join_rows(p, v, n);
    for (size_t i = 0; i < n; i++) {
        size_t line;
        if (v[i].out)
            continue;
        fl_digest_open(&p->digest, FL_SECTION_REST, v[i].value, false);
        line = offer_row(p, v[i].row);
        if (v[i].joined && !p->digest.failed) {
            struct fl_digest_line *l = &p->digest.lines[line];
            l->joined = v[i].joined;
            count_row(p, &t->rows[v[i].row], l);
            l->count += v[i].more;
        }
    }
    late_lines(p, 1);
    late_lines(p, 0);
    fl_free(v);
}

/* Each shape's count stands behind the first of its lines that is offered. */
void fl_page_note_counts(struct fl_page *p)
{
    struct fl_digest *d = &p->digest;
    const struct fl_shapes *t = &p->job->gather->shapes;
    uint8_t *noted = fl_calloc(t->n + 1, 1);

    if (!noted) {
        d->failed = true;
        return;
    }
    for (size_t i = 0; i < d->nlines; i++) {
        struct fl_digest_line *l = &d->lines[i];
        const struct fl_shape_row *r = l->hash ? fl_shapes_find(t, l->hash) : NULL;
        if (!r || noted[r - t->rows])
            continue;
        noted[r - t->rows] = 1;
        count_row(p, r, l);
    }
    fl_free(noted);
}
