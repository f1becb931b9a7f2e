/*
 * The static table: the shipped one's vectors bit by bit, vector code against plain code, damaged
 * and foreign files, failing memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/map.h"
#include "embed/embed.h"
#include "embed/seal.h"
#include "embed/static.h"

#include "base/alloc.h"

#define TOKENS FL_SOURCE_DIR "/embed/model/tokens.model"
#define TABLE FL_SOURCE_DIR "/embed/model/table.bin"
#define GOLDEN FL_TEST_DATA "/vectors.tsv"

enum { DIM = 256 };

struct opened {
    fl_tokenizer *tokens;
    struct fl_embedder e;
};

static int open_all(void **state)
{
    static struct opened o;
    fl_err err;
    if (fl_tokenizer_open(TOKENS, &o.tokens, &err) || fl_static_open(TABLE, o.tokens, &o.e, &err)) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = &o;
    return 0;
}

static int close_all(void **state)
{
    struct opened *o = *state;
    fl_embedder_dispose(&o->e);
    fl_tokenizer_free(o->tokens);
    return 0;
}

/* A small sealed table of random rows for a tokenizer with hash 7; dim and pieces may lie. */
static void make_table(fl_buf *b, uint32_t version, uint32_t pieces, uint32_t dim, uint32_t said)
{
    uint32_t seed = 5, head[4] = {version, said, dim, 0};
    fl_buf_clear(b);
    fl_buf_add(b, FL_S("FLROWS\r\n"));
    for (int i = 0; i < 16; i++)
        fl_buf_addc(b, (char)(head[i / 4] >> (8 * (i % 4))));
    for (int i = 0; i < 8; i++)
        fl_buf_addc(b, i ? 0 : 7);
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t scale = i == 0 ? 32767 : (i * 977) % 32768; /* the largest, and zero is allowed */
        fl_buf_addc(b, (char)scale);
        fl_buf_addc(b, (char)(scale >> 8));
    }
    for (uint32_t i = 0; i < pieces * dim; i++) {
        seed = seed * 1664525u + 1013904223u;
        fl_buf_addc(b,
                    i < dim ? (char)(i % 2 ? 127 : -127) : (char)((int)(seed >> 24) % 255 - 127));
    }
    fl_seal_add(b);
}

static int load_bytes(fl_str bytes, size_t pieces, fl_static **out, fl_err *err)
{
    char path[] = "/tmp/fl-table-XXXXXX";
    int fd = mkstemp(path), rc;
    assert_true(fd >= 0);
    close(fd);
    err->msg[0] = 0;
    assert_int_equal(fl_file_write_atomic(path, bytes, err), 0);
    rc = fl_static_load(path, 7, pieces, out, err);
    unlink(path);
    return rc;
}

/* Hash of a vector's bits, the same whatever the byte order. */
static uint64_t bits_of(const float *v)
{
    unsigned char bytes[DIM * 4];
    for (int d = 0; d < DIM; d++) {
        uint32_t u;
        memcpy(&u, v + d, 4);
        for (int i = 0; i < 4; i++)
            bytes[4 * d + i] = (unsigned char)(u >> (8 * i));
    }
    return fl_hash64(bytes, sizeof(bytes), 0);
}

/* tests/data/vectors.tsv: the model's name on the first line, then text TAB hash of its vector. */
static void shipped_vectors_have_the_same_bits_everywhere(void **state)
{
    struct opened *o = *state;
    fl_buf file;
    fl_str rest, name;
    fl_err err;
    int rows = 0, wrong = 0;
    fl_buf_init(&file, 1 << 16);
    assert_int_equal(fl_file_read(GOLDEN, &file, &err), 0);
    rest = fl_buf_str(&file);
    fl_str_cut(&rest, '\n'); /* what the file is */
    name = fl_str_cut(&rest, '\n');
    if (!fl_str_eqz(name, o->e.name)) {
        print_error("vectors.tsv is of model %.*s, and the table is %s: run embed/train/run, or "
                    "restore both\n",
                    FL_FMT(name), o->e.name);
        fail();
    }
    while (rest.n) {
        fl_str row = fl_str_cut(&rest, '\n'), text = fl_str_cut(&row, '\t');
        float v[DIM];
        char got[17];
        assert_int_equal(o->e.embed(o->e.ctx, &text, 1, v, &err), 0);
        snprintf(got, sizeof(got), "%016" PRIx64, bits_of(v));
        rows++;
        if (!fl_str_eqz(row, got)) {
            print_error("%.*s: wanted %.*s, got %s\n", FL_FMT(text), FL_FMT(row), got);
            wrong++;
        }
    }
    assert_true(rows >= 10);
    assert_int_equal(wrong, 0);
    fl_buf_dispose(&file);
}

static double likeness(struct opened *o, const char *a, const char *b)
{
    fl_str texts[2] = {fl_str_c(a), fl_str_c(b)};
    float v[2 * DIM];
    double dot = 0;
    fl_err err;
    assert_int_equal(o->e.embed(o->e.ctx, texts, 2, v, &err), 0);
    for (int d = 0; d < DIM; d++)
        dot += (double)v[d] * (double)v[DIM + d];
    return dot;
}

/* Not wit, but that a table of noise would not pass for one. */
static void like_is_liker_than_unlike(void **state)
{
    static const struct {
        const char *text, *like, *unlike;
    } rows[] = {
        {"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
         "the GPU's memory was not enough for the allocation",
         "No space left on device while the checkpoint was written"},
        {"OSError: [Errno 28] No space left on device", "the disk is full",
         "NCCL watchdog timeout in a collective operation"},
        {"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
         "The GPU fell off the bus (Xid 79)", "ModuleNotFoundError: No module named 'flash_attn'"},
        {"slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-03-01T02:03:04 DUE TO TIME LIMIT",
         "the job reached the scheduler's time limit", "loss became NaN at this step"},
        {"[rank0]: KeyError: 'input_ids'", "KeyError: 'labels'",
         "mlx5_0 port 1 went down, IB link failed"},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double like = likeness(*state, rows[i].text, rows[i].like);
        double unlike = likeness(*state, rows[i].text, rows[i].unlike);
        if (like < unlike + 0.05) {
            print_error("%s\n  %.3f %s\n  %.3f %s\n", rows[i].text, like, rows[i].like, unlike,
                        rows[i].unlike);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void what_varies_between_jobs_changes_nothing(void **state)
{
    double same =
        likeness(*state, "2026-03-01 02:03:04 [rank3]: File \"/a/b/train.py\", line 7, step 9",
                 "2025-11-30T23:59:59Z [rank12]: File \"/x/train.py\", line 812, step 1");
    if (same < 0.999)
        print_error("likeness %.4f\n", same);
    assert_true(same >= 0.999);
}

static void any_text_has_length_one_or_nothing(void **state)
{
    struct opened *o = *state;
    static const fl_str texts[] = {{NULL, 0},         {"", 0},     {"12:34 0x7f", 10},
                                   {"\0\xff\xfe", 3}, {"loss", 4}, {"Xid 79", 6}};
    static const bool empty[] = {true, true, true, true, false, false};
    enum { N = sizeof(texts) / sizeof(texts[0]) };
    float v[N * DIM];
    fl_err err;
    assert_int_equal(o->e.embed(o->e.ctx, texts, N, v, &err), 0);
    for (int i = 0; i < N; i++) {
        double length = 0;
        for (int d = 0; d < DIM; d++)
            length += (double)v[i * DIM + d] * (double)v[i * DIM + d];
        if (fabs(length - !empty[i]) > 1e-5)
            print_error("text %d: squared length %.7f\n", i, length);
        assert_true(fabs(length - !empty[i]) <= 1e-5);
    }
}

/* A megabyte is embedded by its head, in the same time as its head. */
static void long_texts_are_their_heads(void **state)
{
    struct opened *o = *state;
    fl_buf b;
    fl_str texts[2];
    float v[2 * DIM];
    fl_err err;
    fl_buf_init(&b, 4 << 20);
    while (b.n < 1 << 20)
        fl_buf_addz(&b, "ConnectionRefused while the store was waiting for rank 7; ");
    texts[0] = fl_buf_str(&b);
    texts[1] = fl_str_sub(texts[0], 0, 8192);
    assert_int_equal(o->e.embed(o->e.ctx, texts, 2, v, &err), 0);
    assert_memory_equal(v, v + DIM, DIM * sizeof(float));
    fl_buf_dispose(&b);
}

static void vector_code_equals_plain_code(void **state)
{
    enum { PIECES = 300 };
    fl_buf b;
    fl_static *t = NULL;
    fl_err err;
    uint32_t seed = 9, ids[FL_STATIC_PIECES_MAX + 50];
    (void)state;
    fl_buf_init(&b, 1 << 20);
    make_table(&b, 1, PIECES, DIM, PIECES);
    if (load_bytes(fl_buf_str(&b), PIECES, &t, &err)) {
        print_error("%s\n", err.msg);
        fail();
    }
    for (size_t round = 0; round < 1000; round++) {
        int32_t fast[DIM], plain[DIM];
        size_t n = round % (sizeof(ids) / sizeof(ids[0]));
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            /* Some ids are none; the last rounds are all the row that reaches furthest. */
            ids[i] = round > 990 ? 0 : (seed >> 8) % (PIECES + 20);
        }
        fl_static_sum(t, ids, n, fast);
        fl_static_sum_plain(t, ids, n, plain);
        for (int d = 0; d < DIM; d++)
            if (fast[d] != plain[d]) {
                print_error("%zu pieces, dimension %d: %d, plain %d\n", n, d, fast[d], plain[d]);
                fail();
            }
    }
    for (size_t i = 0; i < FL_STATIC_PIECES_MAX; i++)
        ids[i] = 0;
    {
        int32_t sum[DIM];
        float v[DIM];
        fl_static_sum(t, ids, FL_STATIC_PIECES_MAX, sum);
        fl_static_unit(sum, DIM, v);
        assert_int_equal(sum[0], -127 * 32767 * FL_STATIC_PIECES_MAX);
        assert_true(v[0] == -0.0625f && v[1] == 0.0625f);
    }
    fl_static_free(t);
    fl_buf_dispose(&b);
}

static void damaged_and_foreign_tables_are_refused(void **state)
{
    static const struct {
        const char *what;
        uint32_t version, pieces, dim, said;
        size_t cut, flip; /* 0: none; a position else */
        const char *sentence;
    } rows[] = {
        {"another version", 2, 10, 64, 10, 0, 0, "version 2"},
        {"half a block", 1, 10, 32, 10, 0, 0, "do not fit"},
        {"too many dimensions", 1, 10, 2048, 10, 0, 0, "do not fit"},
        {"no dimension", 1, 10, 0, 10, 0, 0, "do not fit"},
        {"more rows said than there", 1, 10, 64, 11, 0, 0, "do not fit"},
        {"rows beyond any size", 1, 10, 64, 0xffffffff, 0, 0, "do not fit"},
        {"another tokenizer's size", 1, 9, 64, 9, 0, 0, "another tokenizer"},
        {"nothing", 1, 10, 64, 10, 1, 0, "no embedding table"},
        {"the head alone", 1, 10, 64, 10, 32, 0, "no embedding table"},
        {"cut in the scales", 1, 10, 64, 10, 45, 0, "damaged"},
        {"cut in the rows", 1, 10, 64, 10, 500, 0, "damaged"},
        {"a byte short", 1, 10, 64, 10, 32 + 20 + 640 + 9, 0, "damaged"},
        {"a bit in the magic", 1, 10, 64, 10, 0, 3, "no embedding table"},
        {"a bit in the hash of the tokenizer", 1, 10, 64, 10, 0, 25, "damaged"},
        {"a bit in a scale", 1, 10, 64, 10, 0, 40, "damaged"},
        {"a bit in a row", 1, 10, 64, 10, 0, 300, "damaged"},
        {"a bit in the seal", 1, 10, 64, 10, 0, 32 + 20 + 640 + 5, "damaged"},
    };
    fl_buf b;
    fl_err err;
    int wrong = 0;
    (void)state;
    fl_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fl_static *t = NULL;
        int rc;
        make_table(&b, rows[i].version, rows[i].pieces, rows[i].dim, rows[i].said);
        if (rows[i].flip)
            b.p[rows[i].flip] ^= 16;
        rc = load_bytes(fl_str_sub(fl_buf_str(&b), 0, rows[i].cut ? rows[i].cut - 1 : b.n), 10, &t,
                        &err);
        if (rc != FL_EINPUT || t || !strstr(err.msg, rows[i].sentence)) {
            print_error("%s: %d '%s', wanted '%s'\n", rows[i].what, rc, err.msg, rows[i].sentence);
            wrong++;
        }
        fl_static_free(t);
    }
    assert_int_equal(wrong, 0);
    fl_buf_dispose(&b);
}

static void another_tokenizer_or_no_file_is_told(void **state)
{
    struct opened *o = *state;
    struct fl_embedder e = {0};
    fl_static *t = NULL;
    fl_err err;
    assert_int_equal(fl_static_load(TABLE, fl_tokenizer_hash(o->tokens) ^ 1,
                                    fl_tokenizer_size(o->tokens), &t, &err),
                     FL_EINPUT);
    assert_non_null(strstr(err.msg, "another tokenizer"));
    assert_true(fl_static_open("/nowhere/table.bin", o->tokens, &e, &err) < 0);
    assert_non_null(strstr(err.msg, "/nowhere/table.bin"));
    assert_null(e.embed);
    fl_embedder_dispose(&e);
}

static void *embed_many(void *state)
{
    struct opened *o = state;
    float v[DIM];
    uint64_t all = 0;
    fl_err err;
    for (size_t i = 0; i < 500; i++) {
        fl_str text =
            fl_str_from(FL_S("CUDA error: an illegal memory access was encountered"), i % 40);
        if (o->e.embed(o->e.ctx, &text, 1, v, &err))
            return NULL;
        all = all * 31 + bits_of(v);
    }
    return (void *)(uintptr_t)(all | 1);
}

static void threads_may_share_it(void **state)
{
    pthread_t threads[4];
    void *alone = embed_many(*state);
    assert_non_null(alone);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, embed_many, *state), 0);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        if (got != alone)
            print_error("thread %d has other vectors than one alone\n", i);
        assert_ptr_equal(got, alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_vectors_have_the_same_bits_everywhere),
        cmocka_unit_test(like_is_liker_than_unlike),
        cmocka_unit_test(what_varies_between_jobs_changes_nothing),
        cmocka_unit_test(any_text_has_length_one_or_nothing),
        cmocka_unit_test(long_texts_are_their_heads),
        cmocka_unit_test(vector_code_equals_plain_code),
        cmocka_unit_test(damaged_and_foreign_tables_are_refused),
        cmocka_unit_test(another_tokenizer_or_no_file_is_told),
        cmocka_unit_test(threads_may_share_it),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
