/*
 * The digest of whole jobs: all of tests/cases, the samples, a made log of many ranks, and logs
 * made to be odd.
 *
 * Of each page: every line stands in the input at the number given, as the reader gives it, whole
 * or with marks for what is left out; the account's parts make all lines that were read; the tokens
 * are those of a recount and within the budget; one thread and eight over small blocks give the
 * same bytes. The folding behind it is held against a slow one: a list of all lines in order, with
 * a map from the text of a shape to its count, its first and last line and a plain set of its
 * ranks.
 *
 * A job in one file and in many has the same shapes and counts. Ranks, numbers and contexts can not
 * be the same there: a file's name may tell the rank of its lines.
 */
#include "job_fixture.h"

#include "base/text.h"
#include "compress/shape.h"
#include "diagnose/page.h"
#include "embed/tokens.h"

#define FL_BASE_INTERNAL /* strdup() */
#include "base/alloc.h"

#define SMALL_BLOCK 3000
#ifdef FL_FEWER /* under a sanitizer */
#define EACH 8  /* of so many cases one */
#else
#define EACH 1
#endif

static fl_engine *engine;
static fl_tokenizer *tokenizer;

/* ---- the slow folding ---- */

struct plain_line {
    const char *name; /* its file's */
    uint32_t file, row;
    uint64_t number;
    fl_str text;
};

struct plain_row {
    uint64_t count, bytes;
    size_t first, last; /* lines */
    uint32_t ranks;
};

struct plain {
    fl_arena arena;
    struct plain_line *lines;
    size_t n, cap;
    struct plain_row *rows;
    size_t nrows, rows_cap;
    fl_map row_of, rank_of;
};

/* The row's key is text: severity, origin and shape, one behind the other. */
static fl_str key_of(fl_str line, char key[FL_SHAPE_OUT + 20])
{
    char ones[FL_SHAPE_IN];
    size_t n = line.n < sizeof(ones) ? line.n : sizeof(ones), head;
    struct fl_prefix p;
    bool codes;

    for (size_t i = 0; i < n; i++)
        ones[i] = line.p[i] >= '0' && line.p[i] <= '9' ? '1' : line.p[i];
    fl_prefix_parse(fl_str_n(ones, n), &p);
    head = (size_t)snprintf(key, 20, "%d %d ", (int)p.severity, (int)p.origin);
    return fl_str_n(
        key, head + fl_shape(fl_str_from(line, p.message < n ? p.message : n), key + head, &codes));
}

static void plain_line(struct plain *t, const struct fl_read_file *f, uint32_t file,
                       uint64_t number, fl_str text)
{
    char key[FL_SHAPE_OUT + 20];
    struct fl_file_place place;
    struct plain_row *r;
    uint32_t row = 0, at;
    int32_t rank = -1;
    bool added;

    if (fl_map_intern(&t->row_of, key_of(text, key), (uint32_t)t->nrows, &row, &added) ||
        fl_grow((void **)&t->rows, &t->rows_cap, t->nrows + 1, sizeof(*t->rows)) ||
        fl_grow((void **)&t->lines, &t->cap, t->n + 1, sizeof(*t->lines)))
        fail_msg("out of memory");
    if (added)
        t->rows[t->nrows++] = (struct plain_row){.first = t->n};
    r = &t->rows[row];
    r->count++;
    r->bytes += text.n + 1;
    r->last = t->n;
    t->lines[t->n++] =
        (struct plain_line){fl_arena_str(&t->arena, fl_str_c(f->name)).p, file, row, number,
                            text.n ? fl_arena_str(&t->arena, text) : FL_S("")};
    if (!fl_prefix_peek_rank(text, &rank) || rank < 0) {
        fl_place_from_name(fl_str_c(f->name), &place);
        rank = place.rank;
    }
    if (rank >= 0) {
        int64_t pair[2] = {row, rank};
        fl_map_intern(&t->rank_of, fl_str_n((const char *)pair, sizeof(pair)), 0, &at, &added);
        r->ranks += added;
    }
}

static void plain_read(struct plain *t, const char *const *paths, size_t n)
{
    struct fl_block b;
    fl_reader *r = NULL;
    fl_err err = {0};
    int more;

    *t = (struct plain){.n = 0};
    fl_arena_init(&t->arena);
    fl_map_init(&t->row_of);
    fl_map_init(&t->rank_of);
    if (fl_reader_open(paths, n, NULL, &r, &err))
        fail_msg("%s", err.msg);
    while ((more = fl_reader_next(r, &b, &err)) > 0) {
        uint64_t k = 0;
        for (size_t at = 0; at < b.len; k++) {
            size_t len =
                (size_t)((const char *)memchr(b.data + at, '\n', b.len - at) - b.data) - at;
            plain_line(t, fl_reader_file(r, b.file), b.file, fl_block_line(&b, at, k),
                       fl_str_n(b.data + at, len));
            at += len + 1;
        }
    }
    if (more < 0)
        fail_msg("%s", err.msg);
    fl_reader_free(r);
}

static void plain_free(struct plain *t)
{
    fl_free(t->lines);
    fl_free(t->rows);
    fl_map_dispose(&t->row_of);
    fl_map_dispose(&t->rank_of);
    fl_arena_dispose(&t->arena);
}

/* ---- a job both ways ---- */

static fl_diagnosis *diagnose(const char *const *paths, size_t n, unsigned threads, size_t block)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    fl_err err = {0};

    o.paths = paths;
    o.npaths = n;
    o.threads = threads;
    o.block = block;
    o.digest = true;
    if (fl_diagnose(engine, &o, &d, &err))
        fail_msg("%s: %s", paths[0], err.msg);
    return d;
}

static bool at_line(const struct plain_line *l, const struct fl_at *at)
{
    return l->file == at->file && l->number == at->line;
}

/* Each row of the table is the row of the slow one that begins with the same line. */
static bool folds_alike(const char *name, const struct plain *t, const fl_diagnosis *d)
{
    const struct fl_shapes *s = &d->job.gather->shapes;
    size_t k = 0, wrong = 0;

    if (s->n != t->nrows || s->lines != t->n) {
        print_error("%s: %zu shapes of %llu lines, not %zu of %zu\n", name, s->n,
                    (unsigned long long)s->lines, t->nrows, t->n);
        return false;
    }
    for (; k < s->n && wrong < 3; k++) { /* both in order of first lines */
        const struct fl_shape_row *r = &s->rows[k];
        const struct plain_row *p = &t->rows[k];
        if (at_line(&t->lines[p->first], &r->first) && at_line(&t->lines[p->last], &r->last) &&
            r->first.seq == p->first + 1 && r->last.seq == p->last + 1 && r->count == p->count &&
            r->bytes == p->bytes && r->ranks == p->ranks && !r->ranks_over)
            continue;
        print_error("%s: %llu lines, %u ranks, line %llu to %llu, not %llu, %u, %llu to %llu: "
                    "%.*s\n",
                    name, (unsigned long long)r->count, r->ranks, (unsigned long long)r->first.line,
                    (unsigned long long)r->last.line, (unsigned long long)p->count, p->ranks,
                    (unsigned long long)t->lines[p->first].number,
                    (unsigned long long)t->lines[p->last].number, FL_FMT(r->text));
        wrong++;
    }
    return wrong == 0;
}

/* Is `shown` the line, or what is left of it around its marks? */
static bool stands_for(fl_str shown, fl_str line)
{
    const fl_str mark = FL_S(FL_CUT_MARK);
    bool good = true;
    fl_str left;
    fl_buf b;

    fl_buf_init(&b, 8 << 20);
    fl_text_escape_buf(line, &b);
    left = fl_buf_str(&b);
    if (!fl_str_eq(shown, left))
        good = fl_str_has(shown, mark);
    while (good && !fl_str_eq(shown, left) && shown.n) {
        ptrdiff_t at = fl_str_find(shown, mark), in;
        fl_str part = at < 0 ? shown : fl_str_sub(shown, 0, (size_t)at);
        shown = at < 0 ? FL_S("") : fl_str_from(shown, (size_t)at + mark.n);
        in = fl_str_find(left, part);
        good = part.n == 0 || in >= 0;
        left = good && part.n ? fl_str_from(left, (size_t)in + part.n) : left;
    }
    fl_buf_dispose(&b);
    return good;
}

/* "FILE:LINE<TAB>text": some line of that number, for a line redrawn by CR is several. */
static bool is_of_input(const struct plain *t, fl_str line)
{
    ptrdiff_t tab = fl_str_find_c(line, '\t'), colon;
    uint64_t number = 0;
    fl_str head;

    if (tab < 0)
        return false;
    head = fl_str_sub(line, 0, (size_t)tab);
    colon = fl_str_rfind_c(head, ':');
    if (colon < 0 || !fl_str_to_u64(fl_str_from(head, (size_t)colon + 1), &number))
        return false;
    head = fl_str_sub(head, 0, (size_t)colon);
    for (size_t i = 0; i < t->n; i++)
        if (t->lines[i].number == number && fl_str_eqz(head, t->lines[i].name) &&
            stands_for(fl_str_from(line, (size_t)tab + 1), t->lines[i].text))
            return true;
    return false;
}

/* What must hold of any page. */
static bool page_holds(const char *name, const struct plain *t, const fl_digest_page *p,
                       size_t budget)
{
    const struct fl_digest_account *a = fl_digest_account(p);
    fl_str rest = fl_str_c(fl_digest_text(p));
    size_t tokens = 0, shown = 0, wrong = 0;
    uint64_t dropped = 0;

    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        size_t n = fl_tokenizer_count(tokenizer, line);
        tokens += (n ? n : 1) + 1;
        if (line.n && line.p[0] == '#')
            continue;
        shown++;
        if (!is_of_input(t, line) && wrong++ < 3)
            print_error("%s: not of the input: %.*s\n", name, FL_FMT(line));
    }
    for (size_t i = 0; i < a->ndropped_by; i++)
        dropped += a->dropped_by[i].lines;
    if (tokens != a->tokens || tokens > budget || a->budget != budget)
        print_error("%s: %zu tokens, said to be %zu, for a budget of %zu\n", name, tokens,
                    a->tokens, budget);
    if (a->lines != t->n || a->kept + a->folded + a->dropped + a->left_out + a->no_room != a->lines)
        print_error("%s: %zu lines: %llu + %llu + %llu + %llu + %llu\n", name, t->n,
                    (unsigned long long)a->kept, (unsigned long long)a->folded,
                    (unsigned long long)a->dropped, (unsigned long long)a->left_out,
                    (unsigned long long)a->no_room);
    if (shown != a->kept || shown != a->rows || a->missing || dropped < a->dropped)
        print_error("%s: %zu lines shown, %llu kept, %zu rows, %zu missing, %llu by filters\n",
                    name, shown, (unsigned long long)a->kept, a->rows, a->missing,
                    (unsigned long long)dropped);
    return !wrong && tokens == a->tokens && tokens <= budget && a->lines == t->n &&
           a->kept + a->folded + a->dropped + a->left_out + a->no_room == a->lines &&
           shown == a->kept && shown == a->rows && !a->missing;
}

static fl_digest_page *page_of(const fl_diagnosis *d, size_t budget)
{
    fl_digest_page *p = NULL;
    fl_err err = {0};

    if (fl_digest_build(engine, d, budget, &p, &err))
        fail_msg("%s", err.msg);
    return p;
}

/* Prints the first line that differs. */
static bool same_text(const char *name, const char *a, const char *b)
{
    fl_str x = fl_str_c(a), y = fl_str_c(b);

    if (fl_str_eq(x, y))
        return true;
    while (x.n || y.n) {
        fl_str p = fl_str_cut(&x, '\n'), q = fl_str_cut(&y, '\n');
        if (!fl_str_eq(p, q)) {
            print_error("%s:\n- %.*s\n+ %.*s\n", name, FL_FMT(p), FL_FMT(q));
            break;
        }
    }
    return false;
}

/* The page and its JSON of both are the same bytes. */
static bool same_pages(const char *name, const fl_diagnosis *x, const fl_diagnosis *y,
                       size_t budget)
{
    fl_digest_page *p = page_of(x, budget), *q = page_of(y, budget);
    char *a = NULL, *b = NULL;
    fl_err err = {0};
    bool same;

    if (fl_digest_json(p, true, &a, &err) || fl_digest_json(q, true, &b, &err))
        fail_msg("%s", err.msg);
    same = same_text(name, fl_digest_text(p), fl_digest_text(q)) && same_text(name, a, b);
    fl_text_free(a);
    fl_text_free(b);
    fl_digest_free(p);
    fl_digest_free(q);
    return same;
}

/* All of it for one job; how many properties failed. */
static unsigned job_holds(const char *name, const char *const *paths, size_t n)
{
    static const size_t budgets[] = {500, 1500, 4000};
    fl_diagnosis *one = diagnose(paths, n, 1, 0), *many = diagnose(paths, n, 8, SMALL_BLOCK);
    struct plain t;
    unsigned wrong = 0;

    plain_read(&t, paths, n);
    wrong += !folds_alike(name, &t, one);
    wrong += !folds_alike(name, &t, many);
    for (size_t i = 0; i < 3; i++) {
        fl_digest_page *p = page_of(one, budgets[i]);
        wrong += !page_holds(name, &t, p, budgets[i]);
        fl_digest_free(p);
    }
    wrong += !same_pages(name, one, many, 1500);
    plain_free(&t);
    fl_diagnosis_free(one);
    fl_diagnosis_free(many);
    return wrong;
}

static unsigned folder_holds(const char *dir, size_t *jobs)
{
    const char **names;
    unsigned wrong = 0;
    size_t n = 0;
    fl_err err = {0};
    fl_arena a;

    fl_arena_init(&a);
    if (fl_file_list(dir, &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i += EACH) {
        const char *path = fl_file_join(&a, dir, names[i]);
        if (!fl_file_is_dir(path))
            continue;
        wrong += job_holds(names[i], &path, 1);
        ++*jobs;
    }
    fl_arena_dispose(&a);
    return wrong;
}

static void pages_of_the_cases(void **state)
{
    size_t jobs = 0;
    unsigned wrong;

    (void)state;
    wrong = folder_holds(FL_SOURCE_DIR "/tests/cases", &jobs);
    wrong += folder_holds(FL_SOURCE_DIR "/samples", &jobs);
    print_message("%zu jobs\n", jobs);
    assert_true(jobs > 200 / EACH);
    assert_int_equal(wrong, 0);
}

/* ---- made logs ---- */

static char dir[64], path[200];

static unsigned made_holds(const char *name)
{
    const char *const paths[] = {path};

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return job_holds(name, paths, 1);
}

static void pages_of_a_made_job(void **state)
{
    char cmd[400];

    (void)state;
    snprintf(cmd, sizeof(cmd),
             "python3 " FL_SOURCE_DIR "/tests/bench/gen.py --mb 2 --ranks 96 %s/made.log", dir);
    if (system(cmd))
        fail_msg("%s", cmd);
    assert_int_equal(made_holds("made.log"), 0);
}

static void add_odd_line(fl_buf *b, unsigned i)
{
    fl_buf_addf(b, "[rank%u]: step: %u loss: 2.3 grad_norm: 0.5 tps: 900\n", i % 9, i);
    if (i % 5 == 0)
        fl_buf_addf(b, "\r%u%%|#  |\r%u%%|## |\r%u%%|###| 12/12 [00:01]\n", i, i + 1, i + 2);
    if (i % 7 == 0)
        fl_buf_addf(b, "\x1b[31merror %u\x1b[0m in \xff\xfe part %u \x01\r\n", i % 4, i);
    if (i % 11 == 0)
        fl_buf_addf(b, "\n   \n\t\n%06d: \xc3\xa4\xe2\x96\x88 warning\n", i * 977);
    if (i % 97 == 0) {
        fl_buf_addz(b, "fatal: ");
        for (unsigned k = 0; k < i * 9; k++)
            fl_buf_addf(b, "%c\xe2\x96\x88", 'a' + (int)(k % 26));
        fl_buf_addc(b, '\n');
    }
    if (i % 61 == 0)
        fl_buf_addf(b,
                    "[rank%u]: Traceback (most recent call last):\n"
                    "[rank%u]:   File \"/w/t_%u.py\", line %u, in f\n[rank%u]: ValueError: %u\n",
                    i % 9, i % 9, i % 3, i, i % 9, i);
}

/* Redrawn bars, colours, bytes that are no text, long lines, empty ones; no LF at the end. */
static void pages_of_odd_logs(void **state)
{
    fl_buf b;

    (void)state;
    fl_buf_init(&b, 64 << 20);
    for (unsigned i = 1; i < 1500; i++)
        add_odd_line(&b, i);
    fl_buf_addz(&b, "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered");
    job_write(dir, "odd.log", fl_buf_str(&b));
    assert_int_equal(made_holds("odd.log"), 0);
    job_write(dir, "empty.log", FL_S(""));
    assert_int_equal(made_holds("empty.log"), 0);
    job_write(dir, "only-cr.log", FL_S("\r10%\r20%\r30% error 7\r"));
    assert_int_equal(made_holds("only-cr.log"), 0);
    job_write(dir, "#a\x1b[2Jb c.log", FL_S("[rank0]: RuntimeError: CUDA error: out of memory\n"));
    {
        const char *const paths[] = {path};
        fl_diagnosis *d;
        fl_digest_page *p;
        snprintf(path, sizeof(path), "%s/#a\x1b[2Jb c.log", dir);
        d = diagnose(paths, 1, 1, 0);
        p = page_of(d, 500);
        assert_null(strchr(fl_digest_text(p), 0x1b));
        fl_digest_free(p);
        fl_diagnosis_free(d);
    }
    fl_buf_dispose(&b);
}

/* The end of a file and the lines around an event are the same wherever a block begins. */
static void blocks_begin_anywhere(void **state)
{
    static const size_t blocks[] = {600, 3000, 70000, 0};
    const char *const paths[] = {path};
    unsigned wrong = 0;
    fl_diagnosis *want = NULL;
    fl_buf b;

    (void)state;
    fl_buf_init(&b, 64 << 20);
    for (unsigned i = 0; i < 3 * FL_BACK_LINES; i++) {
        fl_buf_addf(&b, "[rank%u]: chatter %u of %c%c%c\n", i % 50, i, 'a' + (int)(i % 23),
                    'a' + (int)(i / 23 % 23), 'a' + (int)(i / 529 % 23));
        if (i % 5000 == 4999)
            fl_buf_addf(&b, "[rank7]: fatal error of sort %c\n", 'a' + (int)(i / 5000));
    }
    job_write(dir, "blocks.log", fl_buf_str(&b));
    snprintf(path, sizeof(path), "%s/blocks.log", dir);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
        fl_diagnosis *d = diagnose(paths, 1, 1 + (unsigned)i, blocks[i]);
        if (want)
            wrong += !same_pages("blocks", want, d, 4000);
        else
            want = d;
        if (want != d)
            fl_diagnosis_free(d);
    }
    fl_diagnosis_free(want);
    fl_buf_dispose(&b);
    assert_int_equal(wrong, 0);
}

/* ---- tags ---- */

static uint64_t seed = 31;

static char other_digit(char c)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return c < '0' || c > '9' ? c : (char)('0' + (seed >> 33) % 10);
}

/* A tag that is said to hold for all lines that differ in digits alone does; one that is each
 * line's own comes out the same whether it is made anew or from the first one's. */
static bool tag_holds(fl_str line)
{
    char other[2000];
    struct fl_tag first = {0, 0}, own = {0, 0}, again;
    bool all = fl_gather_tag(line, false, &first);
    size_t n = line.n < sizeof(other) ? line.n : sizeof(other);

    for (size_t i = 0; i < n; i++)
        other[i] = other_digit(line.p[i]);
    again = first;
    fl_gather_tag(fl_str_n(other, n), false, &own);
    if (!all)
        fl_gather_tag(fl_str_n(other, n), true, &again);
    if (again.a == own.a && again.b == own.b)
        return true;
    print_error("%s\n%.*s\n%.*s\n  %llx %llx, not %llx %llx\n",
                all ? "all:" : "again:", FL_FMT(line), (int)n, other, (unsigned long long)again.a,
                (unsigned long long)again.b, (unsigned long long)own.a, (unsigned long long)own.b);
    return false;
}

static void tags_hold_for_their_classes(void **state)
{
    static const char *const heads[] = {"[rank9999999]: x",
                                        "9999999: x",
                                        " 131072: x",
                                        "[default99999999]:x",
                                        "[9999999,8]<stderr>:x",
                                        "999999999999: [rank3]: x",
                                        "[rank 3]: x"};
    size_t lines = 0, wrong = 0;
    fl_err err = {0};
    fl_str rest;
    fl_buf b;

    (void)state;
    fl_buf_init(&b, 1 << 20);
    if (fl_file_read(FL_TEST_DATA "/prefix.tsv", &b, &err) ||
        fl_file_read(FL_TEST_DATA "/shapes.tsv", &b, &err))
        fail_msg("%s", err.msg);
    for (int round = 0; round < 30 && wrong < 5; round++) {
        for (rest = fl_buf_str(&b); rest.n; lines++) {
            fl_str row = fl_str_cut(&rest, '\n');
            wrong += !tag_holds(fl_str_cut(&row, '\t')) + !tag_holds(row);
        }
        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
            wrong += !tag_holds(fl_str_c(heads[i]));
    }
    fl_buf_dispose(&b);
    assert_true(lines > 5000);
    assert_int_equal(wrong, 0);
}

/* ---- one file or many ---- */

/* All logs of a case as one, in order, as `cat` would; false when there is but one, or one is
 * packed. */
static bool joined(const struct plain *t, fl_buf *b)
{
    bool several = false;

    fl_buf_clear(b);
    for (size_t i = 0; i < t->n; i++) {
        several |= t->lines[i].file != t->lines[0].file;
        fl_buf_add(b, t->lines[i].text);
        fl_buf_addc(b, '\n');
    }
    return several;
}

static size_t differing_shapes(const fl_diagnosis *x, const fl_diagnosis *y)
{
    const struct fl_shapes *s = &x->job.gather->shapes, *o = &y->job.gather->shapes;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct fl_shape_row *r = fl_shapes_find(o, s->rows[i].hash);
        if (!r || r->count != s->rows[i].count || r->bytes != s->rows[i].bytes) {
            if (n++ < 3)
                print_error("%llu lines, not %llu: %.*s\n", r ? (unsigned long long)r->count : 0,
                            (unsigned long long)s->rows[i].count, FL_FMT(s->rows[i].text));
        }
    }
    return n + (s->n != o->n);
}

static void one_file_or_many_fold_alike(void **state)
{
    const char **names;
    size_t n = 0, of = 0, wrong = 0;
    fl_err err = {0};
    fl_arena a;
    fl_buf b;

    (void)state;
    fl_arena_init(&a);
    fl_buf_init(&b, 256 << 20);
    if (fl_file_list(FL_SOURCE_DIR "/tests/cases", &a, &names, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i += EACH) {
        const char *many = fl_file_join(&a, FL_SOURCE_DIR "/tests/cases", names[i]);
        const char *const paths[] = {path};
        fl_diagnosis *x, *y;
        struct plain t;
        if (!fl_file_is_dir(many))
            continue;
        plain_read(&t, &many, 1);
        if (joined(&t, &b)) {
            job_write(dir, "joined.log", fl_buf_str(&b));
            snprintf(path, sizeof(path), "%s/joined.log", dir);
            x = diagnose(&many, 1, 1, 0);
            y = diagnose(paths, 1, 1, 0);
            of++;
            if (differing_shapes(x, y) && ++wrong)
                print_error("in %s\n", names[i]);
            fl_diagnosis_free(x);
            fl_diagnosis_free(y);
        }
        plain_free(&t);
    }
    print_message("%zu jobs of several files\n", of);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    assert_true(of >= 10);
    assert_int_equal(wrong, 0);
}

/* A folder's files are found in any order and read in one. */
static void files_are_found_in_any_order(void **state)
{
    static const char *const order[2][4] = {{"d.log", "b/c.log", "a.log", "b/a.log"},
                                            {"a.log", "b/a.log", "b/c.log", "d.log"}};
    char *page[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        char folder[200];
        const char *const paths[] = {folder};
        fl_digest_page *p;
        fl_diagnosis *d;
        char cmd[300];
        snprintf(folder, sizeof(folder), "%s/found", dir);
        snprintf(cmd, sizeof(cmd), "rm -rf %s", folder);
        assert_int_equal(system(cmd), 0);
        for (int i = 0; i < 4; i++) {
            char text[200], name[100];
            snprintf(name, sizeof(name), "found/%s", order[k][i]);
            snprintf(text, sizeof(text), "file %c%c says error\n[rank3]: OSError: %s\n",
                     order[k][i][0], order[k][i][2], order[k][i]);
            job_write(dir, name, fl_str_c(text));
        }
        d = diagnose(paths, 1, 3, 0);
        p = page_of(d, 4000);
        page[k] = strdup(fl_digest_text(p));
        fl_digest_free(p);
        fl_diagnosis_free(d);
    }
    assert_true(same_text("order", page[0], page[1]));
    free(page[0]);
    free(page[1]);
}

static int open_all(void **state)
{
    fl_err err = {0};

    (void)state;
    job_dir_make(dir);
    engine = job_engine(NULL, false);
    if (fl_tokenizer_open(FL_SOURCE_DIR "/embed/model/tokens.model", &tokenizer, &err)) {
        print_error("%s\n", err.msg);
        return -1;
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fl_tokenizer_free(tokenizer);
    fl_engine_free(engine);
    job_dir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tags_hold_for_their_classes),
                                       cmocka_unit_test(pages_of_the_cases),
                                       cmocka_unit_test(pages_of_a_made_job),
                                       cmocka_unit_test(pages_of_odd_logs),
                                       cmocka_unit_test(blocks_begin_anywhere),
                                       cmocka_unit_test(one_file_or_many_fold_alike),
                                       cmocka_unit_test(files_are_found_in_any_order)};

    return cmocka_run_group_tests_name("page", tests, open_all, close_all);
}
