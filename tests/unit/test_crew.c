/*
 * The crew of threads: blocks come in order and one at a time whatever happens around them, and the
 * page of a job is the same for any number of threads when reads fail in the middle, files are cut
 * or moved away while they are read, threads cannot be made, memory runs out; of two thousand
 * files, half of them packed, few are open at once.
 *
 * read(2) and pthread_create(3) are replaced at link time. Run under the thread sanitizer (preset
 * tsan), this is the test that finds races.
 */
#include "job_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <zlib.h>

#include "diagnose/crew.h"
#include "diagnose/page.h"

#define FL_BASE_INTERNAL /* the hook itself calls libc */
#include "base/alloc.h"

#define SMALL_BLOCK 4000
#define MOST_OPEN 64
#ifdef FL_FEWER /* under the thread sanitizer, which takes ten times as long */
#define RANKS 600
#define TRIES 20
#else
#define RANKS 2048
#define TRIES 60
#endif

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);

static fl_engine *engine;
static char dir[64];

/* ---- what goes wrong ---- */

static struct {
    atomic_bool on, count_open;
    atomic_int most_open, made, make_most; /* threads; make_most < 0: all */
    atomic_long acts;                      /* reads until `act` is called, once; 0: never */
    void (*act)(void);
    long fail_at; /* offset in files named *bad* from which reads fail; -1: never */
} fault = {.make_most = -1, .fail_at = -1};

static void quiet(void)
{
    fault.on = fault.count_open = false;
    fault.most_open = fault.made = 0;
    fault.make_most = -1;
    fault.acts = 0;
    fault.act = NULL;
    fault.fail_at = -1;
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = -4; /* . and .. and the folder's own and stdin */

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool is_bad(int fd)
{
    char link[40], name[300];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof(name) - 1);
    name[n > 0 ? n : 0] = 0;
    return strstr(name, "bad") != NULL;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
    int open_now, most;

    if (!fault.on)
        return __real_read(fd, buf, n);
    if (fault.count_open) {
        open_now = open_files();
        most = fault.most_open;
        while (open_now > most && !atomic_compare_exchange_weak(&fault.most_open, &most, open_now))
            ;
    }
    if (fault.acts && atomic_fetch_sub(&fault.acts, 1) == 1)
        fault.act();
    if (fault.fail_at >= 0 && is_bad(fd)) {
        off_t at = lseek(fd, 0, SEEK_CUR);
        if (at >= fault.fail_at) {
            errno = EIO;
            return -1;
        }
        if ((off_t)n > fault.fail_at - at)
            n = (size_t)(fault.fail_at - at);
    }
    return __real_read(fd, buf, n);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    if (fault.make_most >= 0 && atomic_fetch_add(&fault.made, 1) >= fault.make_most)
        return EAGAIN;
    return __real_pthread_create(t, a, f, arg);
}

/* ---- a job, and its page ---- */

static void add_lines(fl_buf *b, unsigned rank, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        fl_buf_addf(b,
                    "2026-03-01 10:00:%02u [rank%u]: step: %u loss: 2.3 grad_norm: 0.5 tps: 900\n",
                    i % 60, rank, i);
        if (i % 13 == rank % 13)
            fl_buf_addf(b, "[rank%u]: WARNING slow link to peer %u, sort %c\n", rank, i,
                        'a' + (int)(i % 26));
    }
}

/* Files of many sizes; rank 5 has the fault. */
static void make_job(const char *folder, unsigned files, unsigned lines)
{
    fl_buf b;
    char name[200];

    fl_buf_init(&b, 64 << 20);
    for (unsigned i = 0; i < files; i++) {
        fl_buf_clear(&b);
        add_lines(&b, i, lines * (1 + i % 4) / 2);
        if (i == 5)
            fl_buf_addz(&b, "[rank5]: RuntimeError: CUDA error: uncorrectable ECC error "
                            "encountered\n");
        snprintf(name, sizeof(name), "%s/%srank-%04u.log", folder, i % 7 == 3 ? "bad-" : "", i);
        job_write(dir, name, fl_buf_str(&b));
    }
    fl_buf_dispose(&b);
}

static int run(const char *folder, unsigned threads, size_t block, fl_diagnosis **d, fl_err *err)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    char path[300];
    const char *const paths[] = {path};
    int r;

    snprintf(path, sizeof(path), "%s/%s", dir, folder);
    o.paths = paths;
    o.npaths = 1;
    o.threads = threads;
    o.block = block;
    o.digest = true;
    fault.on = true;
    r = fl_diagnose(engine, &o, d, err);
    fault.on = false;
    return r;
}

/* Report and page as one text of libc's, NULL with the code when there is none. */
static char *text_of(const char *folder, unsigned threads, size_t block, int *code)
{
    fl_digest_page *p = NULL;
    fl_diagnosis *d = NULL;
    char *json = NULL, *out = NULL;
    fl_err err = {0};

    *code = run(folder, threads, block, &d, &err);
    if (!*code)
        *code = fl_digest_build(engine, d, 1500, &p, &err);
    if (!*code) {
        struct fl_report r = *fl_diagnosis_report(d);
        r.elapsed_ms = 0;
        *code = fl_report_json(&r, true, &json, &err);
    }
    if (!*code) {
        size_t n = strlen(json) + strlen(fl_digest_text(p)) + 2;
        out = malloc(n);
        snprintf(out, n, "%s\n%s", json, fl_digest_text(p));
    }
    fl_text_free(json);
    fl_digest_free(p);
    fl_diagnosis_free(d);
    return out;
}

/* Prints the first line that differs. */
static void same_text(const char *what, const char *a, const char *b)
{
    fl_str x = fl_str_c(a), y = fl_str_c(b);

    while (x.n || y.n) {
        fl_str p = fl_str_cut(&x, '\n'), q = fl_str_cut(&y, '\n');
        if (!fl_str_eq(p, q))
            fail_msg("%s:\n- %.*s\n+ %.*s", what, FL_FMT(p), FL_FMT(q));
    }
}

static void same_for_all(const char *what, const char *folder, size_t block)
{
    static const unsigned threads[] = {1, 2, 8, 16};
    char *want = NULL;

    for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
        int code;
        char *got = text_of(folder, threads[i], block, &code);
        fault.made = 0;
        if (!got)
            fail_msg("%s: %u threads: %d", what, threads[i], code);
        if (!want) {
            want = got;
            continue;
        }
        same_text(what, want, got);
        free(got);
    }
    free(want);
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    quiet();
    make_job("many", 40, 60);
    same_for_all("many files", "many", 0);
    same_for_all("many files and blocks", "many", SMALL_BLOCK);
}

static void reads_may_fail_in_the_middle(void **state)
{
    (void)state;
    static const long at[] = {1, 2000, 4096, 6001};

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        quiet();
        fault.fail_at = at[i];
        same_for_all("failing reads", "many", SMALL_BLOCK);
    }
    quiet();
}

/* Named files that fail at their first byte: the first of them is the error, however many read. */
static void the_first_error_in_order_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"many/rank-0000.log", "many/rank-0001.log",
                                        "many/bad-rank-0010.log", "many/bad-rank-0003.log",
                                        "many/rank-0002.log"};
    char text[5][300];
    const char *paths[5];

    for (int i = 0; i < 5; i++) {
        snprintf(text[i], sizeof(text[i]), "%s/%s", dir, names[i]);
        paths[i] = text[i];
    }
    for (unsigned threads = 1; threads <= 16; threads *= 2) {
        struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
        fl_diagnosis *d = NULL;
        fl_err err = {0};
        o.paths = paths;
        o.npaths = 5;
        o.threads = threads;
        o.block = SMALL_BLOCK;
        quiet();
        fault.fail_at = 0;
        fault.on = true;
        assert_int_equal(fl_diagnose(engine, &o, &d, &err), FL_ERROR_IO);
        quiet();
        if (!strstr(err.msg, "bad-rank-0010.log"))
            fail_msg("%u threads: %s", threads, err.msg);
        assert_null(d);
    }
}

static void threads_may_not_be_made(void **state)
{
    (void)state;
    for (int most = 0; most < 4; most++) {
        quiet();
        fault.make_most = most;
        same_for_all("no threads", "many", SMALL_BLOCK);
    }
    quiet();
}

/* ---- files that change ---- */

static void one_file(const char *name, unsigned lines)
{
    fl_buf b;

    fl_buf_init(&b, 64 << 20);
    fl_buf_addz(&b, "[rank5]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n");
    for (unsigned i = 0; i < lines; i++)
        fl_buf_addf(&b, "[rank%u]: chatter number %u that says nothing of anything\n", i % 8, i);
    job_write(dir, name, fl_buf_str(&b));
    fl_buf_dispose(&b);
}

static char changing[300], moved[300];

static void cut(void)
{
    if (truncate(changing, 90))
        abort();
}

static void rotate(void)
{
    FILE *f;

    if (rename(changing, moved) || !(f = fopen(changing, "w")) || fclose(f))
        abort();
}

static void take_away(void)
{
    unlink(changing);
}

static void files_may_change_while_read(void **state)
{
    (void)state;
    static void (*const acts[])(void) = {cut, rotate, take_away};

    snprintf(changing, sizeof(changing), "%s/changing/a.log", dir);
    snprintf(moved, sizeof(moved), "%s/moved.log", dir);
    for (size_t i = 0; i < 9; i++) {
        fl_diagnosis *d = NULL;
        fl_err err = {0};
        one_file("changing/a.log", 4000);
        quiet();
        fault.acts = 2 + (long)i;
        fault.act = acts[i % 3];
        if (run("changing", 4, SMALL_BLOCK, &d, &err))
            fail_msg("act %zu: %s", i, err.msg);
        if (strcmp(fl_diagnosis_report(d)->cause.id, "gpu.ecc") != 0)
            fail_msg("act %zu: %s", i, fl_diagnosis_report(d)->cause.id);
        fl_diagnosis_free(d);
    }
    quiet();
}

/* ---- two thousand files ---- */

static void write_gz(const char *name, fl_str text)
{
    char path[300];
    gzFile f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = gzopen(path, "wb1");
    if (!f || gzwrite(f, text.p, (unsigned)text.n) != (int)text.n || gzclose(f) != Z_OK)
        fail_msg("%s cannot be written", path);
}

static void few_files_are_open_at_once(void **state)
{
    (void)state;
    char name[100], *one, *many;
    int code;
    fl_buf b;

    fl_buf_init(&b, 1 << 20);
    job_write(dir, "ranks/readme", FL_S("the ranks' logs\n"));
    for (unsigned i = 0; i < RANKS; i++) {
        fl_buf_clear(&b);
        add_lines(&b, i, 36 * 2048 / RANKS);
        if (i == RANKS - 99)
            fl_buf_addz(&b, "RuntimeError: CUDA error: uncorrectable ECC error encountered\n");
        snprintf(name, sizeof(name), "ranks/rank_%04u.log%s", i, i % 2 ? ".gz" : "");
        if (i % 2)
            write_gz(name, fl_buf_str(&b));
        else
            job_write(dir, name, fl_buf_str(&b));
    }
    fl_buf_dispose(&b);
    quiet();
    fault.count_open = true;
    one = text_of("ranks", 1, 0, &code);
    assert_non_null(one);
    many = text_of("ranks", 16, 0, &code);
    assert_non_null(many);
    print_message("at most %d files open\n", fault.most_open);
    assert_true(fault.most_open > 1);
    assert_true(fault.most_open <= MOST_OPEN);
    same_text("two thousand files", one, many);
    snprintf(name, sizeof(name), "rank %d", RANKS - 99);
    assert_non_null(strstr(one, name));
    free(one);
    free(many);
    quiet();
}

/* ---- the crew by itself ---- */

struct order {
    atomic_int inside;
    char last[300];
    uint64_t next_line;
    size_t parts, fail_at;
    uint64_t lines;
};

static int see_part(void *ctx, const struct fl_part *p, fl_err *err)
{
    struct order *o = ctx;

    if (atomic_fetch_add(&o->inside, 1))
        return fl_fail(err, FL_EBUG, "two at once");
    if (o->parts++ == o->fail_at)
        return fl_fail(err, FL_ELIMIT, "enough");
    if (!p->empty) {
        int cmp = strcmp(o->last, p->file.name);
        if (cmp > 0 || (cmp == 0 && !p->block.first && p->block.first_line != o->next_line))
            return fl_fail(err, FL_EBUG, "%s:%llu came behind %s:%llu", p->file.name,
                           (unsigned long long)p->block.first_line, o->last,
                           (unsigned long long)o->next_line);
        snprintf(o->last, sizeof(o->last), "%s", p->file.name);
        o->next_line = p->block.first_line + p->lines.n;
        o->lines += p->lines.n;
    }
    atomic_fetch_sub(&o->inside, 1);
    return FL_OK;
}

static bool no_tag(void *ctx, fl_str line, bool again, struct fl_tag *out)
{
    (void)ctx, (void)line, (void)again;
    *out = (struct fl_tag){0, 0};
    return true;
}

static int crew(unsigned threads, struct order *o, fl_err *err)
{
    struct fl_pattern p = {.regex = FL_S("never seen"), .where = "test"};
    struct fl_reader_opts ro = {.block = SMALL_BLOCK};
    struct fl_crew_opts co = {.threads = threads, .tag = no_tag, .seed = {3, 5}};
    char path[300];
    const char *const paths[] = {path};
    fl_matcher *m = NULL;
    fl_reader *r = NULL;
    int code;

    snprintf(path, sizeof(path), "%s/many", dir);
    if (fl_matcher_new(&p, 1, NULL, &m, err) || fl_reader_open(paths, 1, &ro, &r, err))
        fail_msg("%s", err->msg);
    co.reader = r;
    co.matcher = m;
    code = fl_crew_run(&co, see_part, o, err);
    fl_reader_free(r);
    fl_matcher_free(m);
    return code;
}

static void blocks_come_in_order(void **state)
{
    (void)state;
    uint64_t lines = 0;
    size_t parts = 0;

    for (unsigned threads = 1; threads <= 16; threads++) {
        struct order o = {.fail_at = SIZE_MAX};
        fl_err err = {0};
        if (crew(threads, &o, &err))
            fail_msg("%u threads: %s", threads, err.msg);
        lines = lines ? lines : o.lines;
        parts = parts ? parts : o.parts;
        assert_int_equal(o.lines, lines);
        assert_int_equal(o.parts, parts);
    }
    print_message("%zu parts, %llu lines\n", parts, (unsigned long long)lines);
    assert_true(parts > 60);
    for (size_t at = 0; at < parts; at += 1 + parts / 40) {
        struct order o = {.fail_at = at};
        fl_err err = {0};
        assert_int_equal(crew(1 + (unsigned)at % 16, &o, &err), FL_ELIMIT);
        assert_string_equal(err.msg, "enough");
        assert_int_equal(o.parts, at + 1);
    }
}

/* ---- memory ---- */

static struct {
    atomic_long n, fail_at, live;
} memory;

static void *counted(void *ctx, void *p, size_t n)
{
    (void)ctx;
    if (n == 0) {
        memory.live -= p != NULL;
        free(p);
        return NULL;
    }
    if (atomic_fetch_add(&memory.n, 1) + 1 == memory.fail_at)
        return NULL;
    memory.live += p == NULL;
    return realloc(p, n);
}

/* Runs a job of several small files with one allocation after the other failing, `step` apart (0:
 * so far that there are TRIES): the same answer, or no memory. Times there was none; *runs of how
 * many.
 */
static unsigned without_memory(unsigned threads, long step, unsigned *runs)
{
    unsigned out = 0;
    char *want, *got;
    long total;
    int code;

    quiet();
    make_job("few", 6, 30);
    want = text_of("few", threads, SMALL_BLOCK, &code);
    assert_non_null(want);
    fl_alloc_hook(counted, NULL);
    memory.n = 0;
    free(text_of("few", threads, SMALL_BLOCK, &code));
    total = memory.n;
    step = step ? step : 1 + total / TRIES;
    *runs = 0;
    for (long at = 1; at <= total; at += step, ++*runs) {
        memory.n = 0;
        memory.fail_at = at;
        got = text_of("few", threads, SMALL_BLOCK, &code);
        memory.fail_at = 0;
        if (!got && code != FL_ERROR_MEMORY)
            fail_msg("allocation %ld: %d", at, code);
        if (got)
            same_text("out of memory", want, got);
        out += got == NULL;
        free(got);
    }
    fl_alloc_hook(NULL, NULL);
    free(want);
    print_message("%u of %u times no memory\n", out, *runs);
    return out;
}

/* Where what was read before is kept for what comes after it. */
static void memory_may_run_out_between_blocks(void **state)
{
    unsigned runs, out = without_memory(1, 1, &runs);

    (void)state;
    assert_true(out > runs / 2);
}

static void memory_may_run_out_in_a_thread(void **state)
{
    unsigned runs, out = without_memory(4, 0, &runs);

    (void)state;
    assert_true(out > TRIES / 6);
}

static int open_all(void **state)
{
    (void)state;
    job_dir_make(dir);
    quiet();
    engine = job_engine(NULL, false);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fl_engine_free(engine);
    job_dir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_make_no_difference),
                                       cmocka_unit_test(blocks_come_in_order),
                                       cmocka_unit_test(reads_may_fail_in_the_middle),
                                       cmocka_unit_test(the_first_error_in_order_is_told),
                                       cmocka_unit_test(threads_may_not_be_made),
                                       cmocka_unit_test(files_may_change_while_read),
                                       cmocka_unit_test(few_files_are_open_at_once),
                                       cmocka_unit_test(memory_may_run_out_between_blocks),
                                       cmocka_unit_test(memory_may_run_out_in_a_thread)};

    return cmocka_run_group_tests_name("crew", tests, open_all, close_all);
}
