/*
 * The tokenizer: any bytes, long lines in parts, threads, and damaged models.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "embed/seal.h"
#include "embed/tokens.h"

#include "base/alloc.h"

#define MODEL FL_SOURCE_DIR "/embed/model/tokens.model"
#define LINE                                                                                       \
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/"       \
    "c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error"

static int open_model(void **state)
{
    fl_err err;
    fl_tokenizer *t;
    if (fl_tokenizer_open(MODEL, &t, &err)) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = t;
    return 0;
}

static int close_model(void **state)
{
    fl_tokenizer_free(*state);
    return 0;
}

static void any_bytes_are_counted(void **state)
{
    static const struct {
        const char *what;
        fl_str text;
        size_t least, most;
    } rows[] = {
        {"nothing", {"", 0}, 0, 0},
        {"a null slice", {NULL, 0}, 0, 0},
        {"a blank", {" ", 1}, 1, 2},
        {"NUL bytes", {"\0\0\0", 3}, 1, 10},
        {"invalid UTF-8", {"\xff\xfe\x80 loss", 8}, 2, 16},
        {"half a character", {"ab\xe4\xbd", 4}, 2, 10},
        {"four bytes", {"\xf0\x9f\x94\xa5", 4}, 1, 5},
        {"control bytes", {"\x1b[31m\r\n\t\x7f", 9}, 3, 12},
        {"names of byte pieces", {"<0x0A><unk></s>", 15}, 6, 15},
        {"digits go in pairs", {"1234567890", 10}, 5, 6},
        {"a log line", {LINE, sizeof(LINE) - 1}, 35, 70},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = fl_tokenizer_count(*state, rows[i].text);
        uint32_t ids[128];
        size_t got = 999;
        fl_err err;
        if (fl_tokenizer_pieces(*state, rows[i].text, ids, 128, &got, &err) || got != n) {
            print_error("%s: count says %zu, pieces %zu\n", rows[i].what, n, got);
            wrong++;
        }
        for (size_t k = 0; k < got && k < 128; k++)
            if (ids[k] >= fl_tokenizer_size(*state)) {
                print_error("%s: id %u of %zu\n", rows[i].what, ids[k], fl_tokenizer_size(*state));
                wrong++;
            }
        if (n < rows[i].least || n > rows[i].most) {
            print_error("%s: %zu pieces, wanted %zu to %zu\n", rows[i].what, n, rows[i].least,
                        rows[i].most);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* A line of words that is cut into many parts has as many pieces as its parts would have. */
static void long_lines_are_counted_in_parts(void **state)
{
    fl_buf b;
    size_t one = fl_tokenizer_count(*state, FL_S("NCCL watchdog timeout")), n;
    enum { TIMES = 50000 };
    fl_buf_init(&b, 8 << 20);
    for (int i = 0; i < TIMES; i++)
        fl_buf_addz(&b, i ? " NCCL watchdog timeout" : "NCCL watchdog timeout");
    n = fl_tokenizer_count(*state, fl_buf_str(&b));
    if (n != one * TIMES)
        print_error("%zu bytes: %zu pieces, wanted %d times %zu\n", b.n, n, TIMES, one);
    assert_int_equal(n, one * TIMES);

    /* One word of a megabyte: nowhere to cut, so a piece more a part is allowed. */
    fl_buf_clear(&b);
    for (int i = 0; i < 1 << 20; i++)
        fl_buf_addc(&b, (char)('a' + i % 7));
    n = fl_tokenizer_count(*state, fl_buf_str(&b));
    if (n < b.n / 16 || n > b.n + 300)
        print_error("a word of %zu bytes: %zu pieces\n", b.n, n);
    assert_true(n >= b.n / 16 && n <= b.n + 300);

    /* The same from characters of three bytes: none may be cut in two. */
    fl_buf_clear(&b);
    for (int i = 0; i < 4096; i++)
        fl_buf_addz(&b, "\xe6\x97\xa5");
    n = fl_tokenizer_count(*state, fl_buf_str(&b));
    one = fl_tokenizer_count(*state, FL_S("\xe6\x97\xa5\xe6\x97\xa5")) -
          fl_tokenizer_count(*state, FL_S("\xe6\x97\xa5"));
    if (n > one * 4096 + 8 || n < one * 4096)
        print_error("4096 characters: %zu pieces, one has %zu\n", n, one);
    assert_true(n <= one * 4096 + 8 && n >= one * 4096);
    fl_buf_dispose(&b);
}

static void pieces_stop_at_the_capacity(void **state)
{
    uint32_t ids[8] = {0};
    size_t n = 0;
    fl_err err;
    ids[5] = 77;
    assert_int_equal(fl_tokenizer_pieces(*state, FL_S(LINE), ids, 5, &n, &err), 0);
    assert_int_equal(n, 5);
    assert_int_equal(ids[5], 77);
}

static void *count_many(void *t)
{
    size_t sum = 0;
    for (int i = 0; i < 2000; i++)
        sum += fl_tokenizer_count(t, fl_str_sub(FL_S(LINE), (size_t)i % 60, 80));
    return (void *)(uintptr_t)sum;
}

static void threads_may_share_it(void **state)
{
    pthread_t threads[4];
    void *alone = count_many(*state);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, *state), 0);
    for (int i = 0; i < 4; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        if (sum != alone)
            print_error("thread %d counts %zu, alone %zu\n", i, (size_t)(uintptr_t)sum,
                        (size_t)(uintptr_t)alone);
        assert_ptr_equal(sum, alone);
    }
}

/* Opens what `bytes` holds as a model; the code and, through err, what was said. */
static int open_bytes(fl_str bytes, fl_err *err)
{
    char path[] = "/tmp/fl-tokens-XXXXXX";
    int fd = mkstemp(path);
    fl_tokenizer *t = NULL;
    int rc;
    assert_true(fd >= 0);
    close(fd);
    err->msg[0] = 0;
    assert_int_equal(fl_file_write_atomic(path, bytes, err), 0);
    rc = fl_tokenizer_open(path, &t, err);
    if (!rc)
        fl_tokenizer_free(t);
    unlink(path);
    return rc;
}

static void damaged_models_are_refused(void **state)
{
    fl_buf model, other;
    fl_err err;
    int wrong = 0;
    (void)state;
    fl_buf_init(&model, 8 << 20);
    fl_buf_init(&other, 8 << 20);
    assert_int_equal(fl_file_read(MODEL, &model, &err), 0);
    assert_int_equal(open_bytes(fl_buf_str(&model), &err), 0);

    for (size_t cut = 0; cut < model.n; cut += cut < 16 ? 1 : model.n / 7)
        if (open_bytes(fl_str_sub(fl_buf_str(&model), 0, cut), &err) != FL_EINPUT) {
            print_error("cut at %zu of %zu: '%s'\n", cut, model.n, err.msg);
            wrong++;
        }
    for (size_t at = 1; at < model.n; at += model.n / 40) {
        model.p[at] ^= 4;
        if (open_bytes(fl_buf_str(&model), &err) != FL_EINPUT || !strstr(err.msg, "damaged")) {
            print_error("a flipped bit in byte %zu: '%s'\n", at, err.msg);
            wrong++;
        }
        model.p[at] ^= 4;
    }
    /* Sealed, but no model: SentencePiece itself must refuse it, without a word on stderr. */
    fl_buf_addz(&other, "this is not a model");
    fl_seal_add(&other);
    if (open_bytes(fl_buf_str(&other), &err) != FL_EINPUT || !strstr(err.msg, "SentencePiece")) {
        print_error("sealed text: '%s'\n", err.msg);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    fl_buf_dispose(&model);
    fl_buf_dispose(&other);
}

static void a_missing_model_is_named(void **state)
{
    fl_tokenizer *t = NULL;
    fl_err err;
    (void)state;
    assert_true(fl_tokenizer_open("/nowhere/tokens.model", &t, &err) < 0);
    assert_null(t);
    assert_non_null(strstr(err.msg, "/nowhere/tokens.model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_are_counted),
        cmocka_unit_test(long_lines_are_counted_in_parts),
        cmocka_unit_test(pieces_stop_at_the_capacity),
        cmocka_unit_test(threads_may_share_it),
        cmocka_unit_test(damaged_models_are_refused),
        cmocka_unit_test(a_missing_model_is_named),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
