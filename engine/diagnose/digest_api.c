/*
 * fl_digest_build(): the page, its lines and the account, as the library gives them.
 *
 * The account puts every line of the input into one place: shown, folded into a shown line of its
 * shape, dropped by a filter, left out for the budget, or of a shape that the table had no room
 * for. The sum is the number of lines read, which the tests hold it to.
 *
 * Tokens are those of the shipped SentencePiece model. When it is not there the page is still made,
 * by a count that is never too small for plain text: half a token a byte.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"
#include "diagnose/aside.h"
#include "diagnose/engine.h"
#include "diagnose/page.h"

struct fl_digest_page {
    struct fl_page page;
    struct fl_digest_account account;
    struct fl_digest_row *rows;
    fl_arena arena;
};

static size_t count_tokens(void *ctx, fl_str text)
{
    size_t n = ctx ? fl_tokenizer_count(ctx, text) : (text.n + 1) / 2;

    return n ? n : 1;
}

int fl_page_ask_filters(struct fl_page *p, const fl_engine *e, fl_err *err)
{
    const struct fl_shapes *t = &p->job->gather->shapes;
    fl_match_scratch *s = NULL;
    const fl_filters *f = NULL;
    fl_buf b;
    int r;

    p->filter = fl_calloc(t->n + 1, sizeof(*p->filter));
    p->fate = fl_calloc(t->n + 1, sizeof(*p->fate));
    if (!p->filter || !p->fate)
        return fl_fail_nomem(err);
    if (!t->n || !e->rules->nfilters)
        return FL_OK;
    fl_buf_init(&b, 256u << 20);
    for (size_t i = 0; i < t->n; i++) {
        fl_buf_add(&b, t->rows[i].text);
        fl_buf_addc(&b, '\n');
    }
    r = fl_buf_check(&b, "the lines for the filters", err);
    if (!r)
        r = fl_aside_filters(e->aside, e->rules, &e->match, &f, err);
    if (!r)
        r = fl_filters_scratch_new(f, &s, err);
    if (!r)
        r = fl_filters_block(f, s, fl_buf_str(&b), p->filter, t->n, err);
    fl_match_scratch_free(s);
    fl_buf_dispose(&b);
    return r;
}

static void add_dropped(struct fl_digest_page *d, const char *id, uint64_t lines)
{
    struct fl_digest_account *a = &d->account;
    struct fl_digest_drop *v = (struct fl_digest_drop *)(uintptr_t)a->dropped_by;

    for (size_t i = 0; i < a->ndropped_by; i++)
        if (v[i].filter == id) {
            v[i].lines += lines;
            return;
        }
    v[a->ndropped_by++] = (struct fl_digest_drop){id, lines};
}

/* How many of each row's lines are on the page. */
static int account(struct fl_digest_page *d, fl_err *err)
{
    const struct fl_page *p = &d->page;
    const struct fl_shapes *t = &p->job->gather->shapes;
    struct fl_digest_account *a = &d->account;
    uint64_t *shown = fl_calloc(t->n + 1, sizeof(*shown)), loose = 0;

    a->dropped_by =
        fl_arena_alloc(&d->arena, (p->job->rules->nfilters + 1) * sizeof(*a->dropped_by));
    if (!shown || !a->dropped_by) {
        fl_free(shown);
        return fl_fail_nomem(err);
    }
    for (size_t i = 0; i < p->digest.nlines; i++) {
        const struct fl_digest_line *l = &p->digest.lines[i];
        const struct fl_shape_row *r = l->hash ? fl_shapes_find(t, l->hash) : NULL;
        if (!l->shown)
            continue;
        a->kept++;
        if (r && shown[r - t->rows] < r->count)
            shown[r - t->rows]++;
        else
            loose++; /* of a shape without a row */
    }
    for (size_t i = 0; i < t->n; i++) {
        uint64_t rest = t->rows[i].count - shown[i];
        if (shown[i] || p->fate[i] == FL_FATE_SHOWN)
            a->folded += rest;
        else if (fl_page_drops(p, i)) {
            a->dropped += rest;
            add_dropped(d, p->job->rules->filters[p->filter[i] - 1].id, rest);
        } else
            a->left_out += rest;
        a->shapes_shown += shown[i] > 0;
    }
    fl_free(shown);
    a->lines = t->lines;
    a->bytes = t->bytes;
    a->shapes = t->n;
    a->no_room = t->lost_lines;
    /* What is shown without a row is of the lines that had no room, or was cut so that its shape is
     * not its row's any more. */
    for (uint64_t *from[] = {&a->no_room, &a->left_out, &a->folded, &a->dropped}, **f = from;
         f < from + 4; f++) {
        uint64_t n = loose < **f ? loose : **f;
        **f -= n;
        loose -= n;
    }
    a->tokens = p->digest.tokens;
    a->cut = p->digest.cut;
    a->missing = p->digest.missing;
    return FL_OK;
}

static const char *const section_names[FL_SECTIONS] = {"job",       "timeline", "evidence", "event",
                                                       "traceback", "tail",     "other"};

static int list_rows(struct fl_digest_page *d, fl_err *err)
{
    const struct fl_digest *g = &d->page.digest;
    size_t n = 0;

    d->rows = fl_arena_alloc(&d->arena, (g->nlines + 1) * sizeof(*d->rows));
    if (!d->rows)
        return fl_fail_nomem(err);
    for (; n < g->nprinted; n++) {
        const struct fl_digest_line *l = g->printed[n];
        d->rows[n] = (struct fl_digest_row){.section = section_names[l->section],
                                            .at = {l->name, l->line},
                                            .text = l->text.p,
                                            .count = l->count ? l->count : 1,
                                            .ranks = l->ranks};
    }
    d->account.rows = n;
    return FL_OK;
}

int fl_digest_build(const fl_engine *e, const fl_diagnosis *diagnosis, size_t budget,
                    fl_digest_page **out, fl_err *err)
{
    /* The job's places are looked up, never changed. */
    struct fl_diagnosis *x = (struct fl_diagnosis *)(uintptr_t)diagnosis;
    const fl_tokenizer *tokens;
    fl_digest_page *d;
    int r;

    if (budget == 0)
        budget = FL_DIGEST_BUDGET;
    if (budget < FL_DIGEST_LEAST)
        return fl_fail(err, FL_EUSAGE, "a budget of %zu tokens holds no digest; give at least %d",
                       budget, FL_DIGEST_LEAST);
    if (!x->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what a digest needs; "
                       "set fl_diagnose_opts.digest");
    d = fl_calloc(1, sizeof(*d));
    if (!d)
        return fl_fail_nomem(err);
    fl_arena_init(&d->arena);
    d->page.job = &x->job;
    d->page.report = &x->report;
    d->page.verdict = &x->verdict;
    d->page.where = &x->where;
    d->page.healthy = x->verdict.outcome == FL_OUTCOME_HEALTHY;
    d->account.budget = budget;
    tokens = fl_aside_tokens(e->aside);
    d->account.tokenizer = tokens ? "sentencepiece" : "estimated";
    if (d->page.healthy && budget > FL_PAGE_HEALTHY)
        budget = FL_PAGE_HEALTHY;
    fl_digest_init(&d->page.digest, budget, count_tokens, (void *)(uintptr_t)tokens);
    r = fl_page_ask_filters(&d->page, e, err);
    if (!r) {
        fl_page_offer(&d->page);
        fl_page_note_counts(&d->page);
        r = fl_digest_finish(&d->page.digest, err);
    }
    if (!r)
        r = account(d, err);
    if (!r)
        r = list_rows(d, err);
    if (r) {
        fl_digest_free(d);
        return r;
    }
    *out = d;
    return FL_OK;
}

void fl_digest_free(fl_digest_page *d)
{
    if (!d)
        return;
    fl_digest_dispose(&d->page.digest);
    fl_free(d->page.filter);
    fl_free(d->page.fate);
    fl_arena_dispose(&d->arena);
    fl_free(d);
}

static void put_account(fl_json *root, const struct fl_digest_account *a)
{
    fl_json *o = fl_json_put_object(root, "account"), *v;

    fl_json_put_int(o, "lines", (int64_t)a->lines);
    fl_json_put_int(o, "bytes", (int64_t)a->bytes);
    fl_json_put_int(o, "kept", (int64_t)a->kept);
    fl_json_put_int(o, "folded", (int64_t)a->folded);
    fl_json_put_int(o, "dropped", (int64_t)a->dropped);
    fl_json_put_int(o, "left_out", (int64_t)a->left_out);
    fl_json_put_int(o, "no_room", (int64_t)a->no_room);
    fl_json_put_int(o, "shapes", (int64_t)a->shapes);
    fl_json_put_int(o, "shapes_shown", (int64_t)a->shapes_shown);
    fl_json_put_int(o, "cut", (int64_t)a->cut);
    fl_json_put_int(o, "missing", (int64_t)a->missing);
    v = fl_json_put_array(o, "dropped_by");
    for (size_t i = 0; i < a->ndropped_by; i++) {
        fl_json *e = fl_json_add_object(v);
        fl_json_put_z(e, "filter", a->dropped_by[i].filter);
        fl_json_put_int(e, "lines", (int64_t)a->dropped_by[i].lines);
    }
}

int fl_digest_json(const fl_digest_page *d, bool indented, char **out, fl_err *err)
{
    const struct fl_digest_account *a = &d->account;
    fl_json *root = fl_json_object(), *v;
    char *text;
    fl_buf b;
    int r;

    fl_buf_init(&b, 256u << 20);
    fl_json_put_z(root, "schema", "faultline.digest/1");
    fl_json_put_z(root, "outcome", d->page.report->outcome);
    fl_json_put_z(root, "cause", d->page.report->cause.id);
    fl_json_put_int(root, "budget", (int64_t)a->budget);
    fl_json_put_int(root, "tokens", (int64_t)a->tokens);
    fl_json_put_z(root, "tokenizer", a->tokenizer);
    v = fl_json_put_array(root, "lines");
    for (size_t i = 0; i < a->rows; i++) {
        const struct fl_digest_row *row = &d->rows[i];
        fl_json *o = fl_json_add_object(v);
        fl_json_put_z(o, "section", row->section);
        fl_json_put_z(o, "file", row->at.file);
        fl_json_put_int(o, "line", (int64_t)row->at.line);
        fl_json_put_z(o, "text", row->text);
        fl_json_put_int(o, "count", (int64_t)row->count);
        if (row->ranks)
            fl_json_put_int(o, "ranks", row->ranks);
    }
    fl_json_put_z(root, "text", fl_digest_text(d));
    put_account(root, a);
    fl_json_put_z(root, "version", fl_version());
    r = fl_json_print(root, indented, &b, err);
    fl_json_free(root);
    text = r ? NULL : fl_buf_take(&b);
    fl_buf_dispose(&b);
    if (!r && !text)
        r = fl_fail_nomem(err);
    if (!r)
        *out = text;
    return r;
}

const char *fl_digest_text(const fl_digest_page *d)
{
    return d->page.digest.page.p ? d->page.digest.page.p : "";
}

const struct fl_digest_account *fl_digest_account(const fl_digest_page *d)
{
    return &d->account;
}

const struct fl_digest_row *fl_digest_rows(const fl_digest_page *d)
{
    return d->rows;
}
