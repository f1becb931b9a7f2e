/*
 * The incident memory: search by words, and vectors with what is left of them.
 */
#include "store_fixture.h"

/* --- words --- */

static void words_of_texts(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"Xid (PCI:0000:3b:00): 79, pid=4711", "xid pci 0000 3b 00 79 pid 4711"},
        {"pid=123456 at 0x7ffdeadbeef0 0x1f", "pid at 0x1f"},
        {"CUDNN_STATUS_BAD_PARAM", "cudnn_status_bad_param cudnn status bad param"},
        {"torch.cuda.OutOfMemoryError", "torch cuda outofmemoryerror out of memory error"},
        {"NCCLError HTTPError", "ncclerror nccl error httperror http error"},
        {"__init__", "__init__ init"},
        {"a_b", "a_b"},
        {"\xc3\xbc"
         "ber \xff",
         "\xc3\xbc"
         "ber \xff"},
        {"\"a\" OR b*", "a or b"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_buf b;
        fl_buf_init(&b, 65536);
        fl_store_words(fl_str_c(rows[i].text), &b);
        if (strcmp(b.p ? b.p : "", rows[i].want) != 0)
            fail_msg("\"%s\" gives \"%s\" instead of \"%s\"", rows[i].text, b.p, rows[i].want);
        fl_buf_dispose(&b);
    }
}

struct hits {
    struct fl_store_hit v[64];
    size_t n;
};

static int keep_hit(void *ctx, const struct fl_store_hit *h, fl_err *err)
{
    struct hits *hits = ctx;

    (void)err;
    if (hits->n < COUNT(hits->v))
        hits->v[hits->n++] = *h;
    return 0;
}

static struct hits search(struct fixture *x, struct fl_store_query q)
{
    struct hits hits = {.n = 0};
    fl_err err = {0};

    must(fl_store_search(x->s, &q, keep_hit, &hits, &err));
    return hits;
}

static void searches_find_the_rare(void **state)
{
    struct fixture *x = *state;
    fl_str terms[] = {FL_S("error"), FL_S("rank"), FL_S("Quench"), FL_S("failed"), FL_S("nowhere")};
    struct fl_store_query q = {.terms = terms, .n = 5, .rarest = 1};
    struct fl_store_added rare;
    struct hits hits;
    uint64_t n = 0;
    fl_err err = {0};

    for (int i = 0; i < 40; i++) {
        char id[20], line[60];
        snprintf(id, sizeof(id), "common-%c%c", 'a' + i / 10, 'a' + i % 10);
        snprintf(line, sizeof(line), "error of rank failed %c%c", 'a' + i / 10, 'a' + i % 10);
        add(x, id, "fw.hang", line);
    }
    rare = add(x, "rare", "gpu.ecc", "error quench in a long line of many other words");
    hits = search(x, q);
    assert_int_equal(hits.n, 1);
    assert_int_equal(hits.v[0].incident, rare.number);
    assert_int_equal(hits.v[0].piece, 0);
    assert_true(hits.v[0].bm25 > 1);
    q.rarest = 0;
    hits = search(x, q);
    assert_int_equal(hits.n, 41);
    assert_int_equal(hits.v[0].incident, rare.number);
    for (size_t i = 2; i < hits.n; i++) /* equal ones in the order stored */
        assert_true(hits.v[i].bm25 < hits.v[i - 1].bm25 ||
                    hits.v[i].incident > hits.v[i - 1].incident);
    q.k = 3;
    assert_int_equal(search(x, q).n, 3);
    q.most = 20;
    q.k = 0;
    assert_int_equal(search(x, q).n, 1);
    must(fl_store_frequency(x->s, FL_S("ERROR"), 1000, &n, &err));
    assert_int_equal(n, 41);
    must(fl_store_frequency(x->s, FL_S("error"), 7, &n, &err));
    assert_int_equal(n, 7);
}

static void hostile_queries_find_nothing(void **state)
{
    struct fixture *x = *state;
    uint64_t n = 9;
    fl_err err = {0};

    add(x, "one", "gpu.ecc", "error text drop near or and");
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct fl_store_query q = {.terms = &hostile[i], .n = 1};
        struct hits hits = search(x, q);
        if (hits.n)
            fail_msg("hostile text %zu found something", i);
        must(fl_store_frequency(x->s, hostile[i], 10, &n, &err));
        assert_int_equal(n, 0);
    }
    {
        struct fl_store_query q = {.terms = hostile, .n = COUNT(hostile)};
        assert_int_equal(search(x, q).n, 0);
        q.n = 0;
        assert_int_equal(search(x, q).n, 0);
    }
    /* FTS5's own words are words */
    for (const char *const *w = (const char *const[]){"OR", "near", "AND", NULL}; *w; w++) {
        fl_str term = fl_str_c(*w);
        struct fl_store_query q = {.terms = &term, .n = 1};
        assert_int_equal(search(x, q).n, 1);
    }
}

static bool one_document(void *ctx, const struct fl_incident *inc, uint32_t piece, fl_buf *out)
{
    (void)ctx;
    if (piece)
        return false;
    fl_buf_addz(out, "whole ");
    fl_store_words(inc->evidence[0], out);
    return true;
}

static void documents_are_the_callers(void **state)
{
    struct fixture *x = *state;
    struct fl_store_opts o = {.hooks = {.text = one_document}};
    fl_str term = FL_S("whole");
    uint64_t n = 0;
    struct fl_store_counts c = {0};
    fl_err err = {0};

    add(x, "one", "gpu.ecc", "a line");
    add(x, "two", "gpu.ecc", "another line");
    fl_store_close(x->s);
    x->s = NULL;
    must(fl_store_open(x->f.dir, &o, &x->s, &err));
    must(fl_store_frequency(x->s, term, 10, &n, &err));
    assert_int_equal(n, 0);
    must(fl_store_rebuild_words(x->s, &err));
    must(fl_store_frequency(x->s, term, 10, &n, &err));
    assert_int_equal(n, 2);
    must(fl_store_count(x->s, &c, &err));
    assert_int_equal(c.docs, 2);
}

/* --- vectors --- */

struct vectors {
    int64_t number[16384];
    int8_t first[16384];
    size_t n;
};

static int keep_vector(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    struct vectors *all = ctx;

    (void)err;
    assert_true(all->n < COUNT(all->number));
    all->number[all->n] = v->number;
    all->first[all->n++] = ((const int8_t *)v->data)[0];
    return 0;
}

static int keep_number(void *ctx, int64_t number, fl_err *err)
{
    struct vectors *all = ctx;

    (void)err;
    all->number[all->n++] = number;
    return 0;
}

static const struct fl_store_model small = {FL_S("small-1"), 4, FL_VECTOR_INT8};

static void put(struct fixture *x, int64_t incident, size_t n)
{
    int8_t data[8][4];
    struct fl_store_vector v[8];
    fl_err err = {0};

    for (size_t i = 0; i < n; i++) {
        memset(data[i], (int)(incident * 10 + (int64_t)i), 4);
        v[i] = (struct fl_store_vector){.piece = (uint32_t)i, .scale = 0.5f, .data = data[i]};
    }
    must(fl_store_put_vectors(x->s, &small, incident, v, n, &err));
}

static void vectors_come_back(void **state)
{
    struct fixture *x = *state;
    struct vectors *all = calloc(1, sizeof(*all));
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a"), two = add(x, "two", "gpu.ecc", "b");
    struct fl_store_mark m = {0};
    int64_t incident = 0;
    uint32_t piece = 9;
    fl_err err = {0};

    must(fl_store_missing(x->s, small.name, 0, keep_number, all, &err));
    assert_int_equal(all->n, 2);
    all->n = 0;
    put(x, one.number, 2);
    must(fl_store_missing(x->s, small.name, 0, keep_number, all, &err));
    assert_int_equal(all->n, 1);
    assert_int_equal(all->number[0], two.number);
    put(x, two.number, 3);
    all->n = 0;
    must(fl_store_vectors(x->s, &small, 0, 0, keep_vector, all, NULL, &err));
    assert_int_equal(all->n, 5);
    assert_int_equal(all->first[0], one.number * 10);
    assert_int_equal(all->first[4], two.number * 10 + 2);
    must(fl_store_vector_of(x->s, all->number[4], &incident, &piece, &err));
    assert_int_equal(incident, two.number);
    assert_int_equal(piece, 2);
    must(fl_store_mark(x->s, small.name, &m, &err));
    assert_int_equal(m.last, all->number[4]);
    assert_int_equal(m.tombstone, 0);
    assert_int_equal(m.vectors, 5);
    incident = all->number[1];
    all->n = 0;
    must(fl_store_vectors(x->s, &small, incident, incident + 2, keep_vector, all, NULL, &err));
    assert_int_equal(all->n, 2);
    free(all);
}

static void removed_vectors_leave_a_mark(void **state)
{
    struct fixture *x = *state;
    struct vectors *all = calloc(1, sizeof(*all));
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a"), two = add(x, "two", "gpu.ecc", "b");
    struct fl_incident inc;
    struct fl_store_mark m = {0}, later = {0};
    int64_t incident;
    uint32_t piece;
    fl_err err = {0};

    put(x, one.number, 2);
    put(x, two.number, 2);
    must(fl_store_mark(x->s, small.name, &m, &err));
    inc = get(x, "one"); /* a new cause keeps the vectors, new lines do not */
    inc.cause = FL_S("gpu.off_bus");
    must(fl_store_update(x->s, &inc, NULL, &err));
    must(fl_store_tombstones(x->s, small.name, m.tombstone, keep_number, all, &err));
    assert_int_equal(all->n, 0);
    inc.explanation = FL_S("other words");
    must(fl_store_update(x->s, &inc, NULL, &err));
    must(fl_store_tombstones(x->s, small.name, m.tombstone, keep_number, all, &err));
    assert_int_equal(all->n, 2);
    must_fail(fl_store_vector_of(x->s, all->number[0], &incident, &piece, &err), FL_ENOTFOUND,
              "is not there");
    must(fl_store_mark(x->s, small.name, &later, &err));
    must(fl_store_remove(x->s, FL_S("two"), &err));
    all->n = 0;
    must(fl_store_tombstones(x->s, small.name, later.tombstone, keep_number, all, &err));
    assert_int_equal(all->n, 2);
    assert_int_equal(all->number[0], 3);
    must(fl_store_forget(x->s, small.name, later.tombstone, &err));
    all->n = 0;
    must(fl_store_tombstones(x->s, small.name, 0, keep_number, all, &err));
    assert_int_equal(all->n, 2);
    put(x, one.number, 1); /* numbers go on */
    all->n = 0;
    must(fl_store_vectors(x->s, &small, 0, 0, keep_vector, all, NULL, &err));
    assert_int_equal(all->n, 1);
    assert_int_equal(all->number[0], 5);
    free(all);
}

static int keep_model(void *ctx, const struct fl_store_model *m, uint64_t n, fl_err *err)
{
    (void)err;
    fl_buf_addf(ctx, "%.*s %u %d %u;", FL_FMT(m->name), m->dim, m->form, (unsigned)n);
    return 0;
}

static void models_are_never_mixed(void **state)
{
    struct fixture *x = *state;
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a");
    struct fl_store_model wide = small, real = {FL_S("real"), 2, FL_VECTOR_FLOAT}, none = real;
    float f[2] = {0.25f, -1};
    struct fl_store_vector v = {.data = f, .scale = 1};
    struct vectors *all = calloc(1, sizeof(*all));
    fl_buf b;
    fl_err err = {0};

    fl_buf_init(&b, 65536);
    put(x, one.number, 2);
    wide.dim = 8;
    none.name = FL_S("none");
    must_fail(fl_store_put_vectors(x->s, &wide, one.number, &v, 1, &err), FL_EUSAGE,
              "stored vectors of 4 bytes, not of 8 bytes");
    must_fail(fl_store_vectors(x->s, &wide, 0, 0, keep_vector, all, NULL, &err), FL_EUSAGE,
              "'diagnose reindex --full'");
    must_fail(fl_store_put_vectors(x->s, &real, 999, &v, 1, &err), FL_ENOTFOUND, "number 999");
    must(fl_store_put_vectors(x->s, &real, one.number, &v, 1, &err));
    must(fl_store_vectors(x->s, &none, 0, 0, keep_vector, all, NULL, &err));
    assert_int_equal(all->n, 0);
    must(fl_store_models(x->s, keep_model, &b, &err));
    assert_string_equal(b.p, "real 2 1 1;small-1 4 0 2;");
    must(fl_store_drop_model(x->s, small.name, &err));
    must(fl_store_drop_model(x->s, small.name, &err));
    fl_buf_clear(&b);
    must(fl_store_models(x->s, keep_model, &b, &err));
    assert_string_equal(b.p, "real 2 1 1;");
    fl_buf_dispose(&b);
    free(all);
}

static void many_vectors_come_in_batches(void **state)
{
    struct fixture *x = *state;
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a");
    int8_t data[4] = {1, 2, 3, 4};
    size_t n = 9000;
    struct fl_store_vector *v = calloc(n, sizeof(*v));
    struct vectors *all = calloc(1, sizeof(*all));
    fl_err err = {0};

    for (size_t i = 0; i < n; i++)
        v[i] = (struct fl_store_vector){.piece = (uint32_t)i, .data = data};
    must(fl_store_put_vectors(x->s, &small, one.number, v, n, &err));
    must(fl_store_vectors(x->s, &small, 0, 0, keep_vector, all, NULL, &err));
    assert_int_equal(all->n, n);
    for (size_t i = 1; i < n; i++)
        assert_true(all->number[i] > all->number[i - 1]);
    free(v);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_texts),
        each(searches_find_the_rare),
        each(hostile_queries_find_nothing),
        each(documents_are_the_callers),
        each(vectors_come_back),
        each(removed_vectors_leave_a_mark),
        each(models_are_never_mixed),
        each(many_vectors_come_in_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
