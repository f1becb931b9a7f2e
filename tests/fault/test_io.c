/*
 * Reading goes wrong: short reads, signals, I/O errors, files that are cut, rotated or removed
 * while they are read, a cache that cannot be written, a label beside the logs.
 *
 * read(2) is replaced at link time (--wrap=read), so that the whole way from fl_diagnose() down is
 * what users run. Short reads must not change a byte of the answer. A fault in the middle of a file
 * ends that file with a note, and what came before it still counts; a named file that fails before
 * its first byte is an error.
 */
#include "../unit/job_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

static struct {
    bool on;
    size_t most;          /* bytes a read may give; 0: all */
    unsigned eintr_every; /* every so many calls; 0: never */
    long fail_after;      /* bytes after which reads fail; -1: never */
    int error;
    void (*at)(void); /* once, at the second read */
    unsigned long calls;
    long given;
} fault;

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
    ssize_t r;

    if (!fault.on)
        return __real_read(fd, buf, n);
    fault.calls++;
    if (fault.eintr_every && fault.calls % fault.eintr_every == 0) {
        errno = EINTR;
        return -1;
    }
    if (fault.fail_after >= 0 && fault.given >= fault.fail_after) {
        errno = fault.error;
        return -1;
    }
    if (fault.most && n > fault.most)
        n = fault.most;
    if (fault.fail_after >= 0 && (long)n > fault.fail_after - fault.given)
        n = (size_t)(fault.fail_after - fault.given);
    r = __real_read(fd, buf, n);
    if (r > 0)
        fault.given += r;
    if (fault.at && fault.calls == 2) {
        fault.at();
        fault.at = NULL;
    }
    return r;
}

static fl_engine *engine;
static char dir[64], path[200], other[200];

static void quiet(void)
{
    memset(&fault, 0, sizeof(fault));
    fault.fail_after = -1;
}

static int run(const char *what, fl_diagnosis **d, fl_err *err)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    int r;

    o.paths = &what;
    o.npaths = 1;
    o.threads = 1;
    *d = NULL;
    fault.on = true;
    r = fl_diagnose(engine, &o, d, err);
    fault.on = false;
    return r;
}

static char *json(const fl_diagnosis *d)
{
    struct fl_report r = *fl_diagnosis_report(d);
    char *text = NULL;

    r.elapsed_ms = 0;
    if (fl_report_json(&r, true, &text, NULL))
        fail_msg("no JSON");
    return text;
}

/* Steps, then a fault that ends the job, then `tail` bytes of chatter. */
static void make_log(size_t lines, size_t tail)
{
    fl_buf b;

    fl_buf_init(&b, 64 << 20);
    for (size_t i = 1; i <= lines; i++)
        fl_buf_addf(&b, "[rank0]: step: %zu loss: 2.3 grad_norm: 0.5 tps: 900\n", i);
    fl_buf_addz(&b, "[rank3]: OSError: Stale file handle\n");
    while (tail-- > 0)
        fl_buf_addz(&b, "[rank0]: waiting\n");
    job_write(dir, "job.log", fl_buf_str(&b));
    fl_buf_dispose(&b);
    snprintf(path, sizeof(path), "%s/job.log", dir);
}

static void short_reads_change_nothing(void **state)
{
    (void)state;
    static const size_t most[] = {1, 7, 4096};
    fl_diagnosis *d;
    char *want, *got;
    fl_err err = {0};

    make_log(2000, 100);
    quiet();
    assert_int_equal(run(path, &d, &err), 0);
    want = json(d);
    fl_diagnosis_free(d);
    for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
        quiet();
        fault.most = most[i];
        fault.eintr_every = 3;
        assert_int_equal(run(path, &d, &err), 0);
        got = json(d);
        assert_string_equal(got, want);
        fl_text_free(got);
        fl_diagnosis_free(d);
    }
    fl_text_free(want);
}

static void an_error_in_the_middle_is_a_note(void **state)
{
    (void)state;
    const struct fl_report *r;
    fl_diagnosis *d;
    fl_err err = {0};

    make_log(2000, 200000);
    quiet();
    fault.fail_after = 2 << 20;
    fault.error = EIO;
    assert_int_equal(run(path, &d, &err), 0);
    r = fl_diagnosis_report(d);
    assert_string_equal(r->cause.id, "storage.shared_fs");
    assert_non_null(r->input.files[0].note);
    if (!strstr(r->input.files[0].note, strerror(EIO)))
        fail_msg("note: %s", r->input.files[0].note);
    fl_diagnosis_free(d);
}

static void an_error_at_the_start_is_told(void **state)
{
    (void)state;
    fl_diagnosis *d;
    fl_err err = {0};

    make_log(10, 10);
    quiet();
    fault.fail_after = 0;
    fault.error = EIO;
    assert_int_equal(run(path, &d, &err), FL_ERROR_IO);
    assert_null(d);
    if (!strstr(err.msg, "job.log") || !strstr(err.msg, strerror(EIO)))
        fail_msg("message: %s", err.msg);
}

static void in_a_folder_others_are_read(void **state)
{
    (void)state;
    fl_diagnosis *d;
    fl_err err = {0};

    make_log(10, 10);
    job_write(dir, "a-dangling.log", FL_S(""));
    snprintf(other, sizeof(other), "%s/a-dangling.log", dir);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(symlink("/nonexistent/x", other), 0);
    quiet();
    assert_int_equal(run(dir, &d, &err), 0);
    assert_string_equal(fl_diagnosis_report(d)->cause.id, "storage.shared_fs");
    assert_true(fl_diagnosis_report(d)->input.nskipped > 0);
    unlink(other);
    fl_diagnosis_free(d);
}

static void cut(void)
{
    if (truncate(path, 100))
        fail_msg("truncate");
}

static void rotate(void)
{
    snprintf(other, sizeof(other), "%s/job.log.1", dir);
    if (rename(path, other))
        fail_msg("rename");
    job_write(dir, "job.log", FL_S("a new log\n"));
}

static void take_away(void)
{
    unlink(path);
}

static void grow(void)
{
    FILE *f = fopen(path, "ab");

    if (!f || fputs("[rank0]: one more line\n", f) < 0 || fclose(f))
        fail_msg("append");
}

/* Whatever happens to the file, what was read of it counts. */
static void files_may_change_while_read(void **state)
{
    (void)state;
    static void (*const acts[])(void) = {cut, rotate, take_away, grow};

    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
        fl_diagnosis *d;
        fl_err err = {0};
        make_log(10, 400000);
        quiet();
        fault.at = acts[i];
        if (run(path, &d, &err))
            fail_msg("act %zu: %s", i, err.msg);
        assert_null(fault.at);
        if (strcmp(fl_diagnosis_report(d)->cause.id, "storage.shared_fs") != 0)
            fail_msg("act %zu: %s", i, fl_diagnosis_report(d)->cause.id);
        fl_diagnosis_free(d);
    }
    snprintf(other, sizeof(other), "%s/job.log.1", dir);
    unlink(other);
}

static void a_label_is_never_input(void **state)
{
    (void)state;
    const struct fl_report *r;
    fl_diagnosis *d;
    fl_err err = {0};

    make_log(10, 10);
    job_write(dir, "label.json", FL_S("{\"cause\": \"gpu.ecc\"}\nCUDA out of memory\n"));
    quiet();
    assert_int_equal(run(dir, &d, &err), 0);
    r = fl_diagnosis_report(d);
    assert_string_equal(r->cause.id, "storage.shared_fs");
    for (size_t i = 0; i < r->input.nfiles; i++)
        assert_null(strstr(r->input.files[i].name, "label.json"));
    fl_diagnosis_free(d);
    snprintf(other, sizeof(other), "%s/label.json", dir);
    unlink(other);
}

/* An engine whose cache is here must open, whatever the folder is. */
static void open_with_cache(const char *cache, bool note)
{
    const char *rules = FL_TEST_DATA "/principles/rules";
    struct fl_engine_opts o = {.rule_dirs = &rules, .nrule_dirs = 1, .cache_dir = cache};
    fl_engine *e = NULL;
    fl_err err = {0};

    if (fl_engine_open(&o, &e, &err))
        fail_msg("%s: %s", cache, err.msg);
    if (note && strncmp(fl_engine_scanner(e), "pcre2", 5) != 0 && !fl_engine_cache_note(e))
        fail_msg("%s: no word about the cache", cache);
    fl_engine_free(e);
}

static void a_cache_that_cannot_be_is_a_note(void **state)
{
    (void)state;

    open_with_cache("/dev/full", true);
    open_with_cache("/proc/none/here", true);
    open_with_cache("/dev/null/x", true);
}

/* A disk that is full: a process whose files may not grow gets a short write or an error. */
static void a_full_disk_leaves_no_half_cache(void **state)
{
    (void)state;
    char cache[100];
    const char **names;
    size_t n = 0;
    int status = 0;
    fl_arena a;
    pid_t child;

    snprintf(cache, sizeof(cache), "%s/cache", dir);
    assert_int_equal(mkdir(cache, 0700), 0);
    child = fork();
    if (child == 0) {
        struct rlimit small = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &small))
            _exit(3);
        open_with_cache(cache, true);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fl_arena_init(&a);
    assert_int_equal(fl_file_list(cache, &a, &names, &n, NULL), 0);
    assert_int_equal(n, 0);
    fl_arena_dispose(&a);
}

static int open_all(void **state)
{
    (void)state;
    job_dir_make(dir);
    quiet();
    engine = job_engine(FL_TEST_DATA "/principles/rules", false);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_reads_change_nothing),
                                       cmocka_unit_test(an_error_in_the_middle_is_a_note),
                                       cmocka_unit_test(an_error_at_the_start_is_told),
                                       cmocka_unit_test(in_a_folder_others_are_read),
                                       cmocka_unit_test(files_may_change_while_read),
                                       cmocka_unit_test(a_label_is_never_input),
                                       cmocka_unit_test(a_cache_that_cannot_be_is_a_note),
                                       cmocka_unit_test(a_full_disk_leaves_no_half_cache)};

    return cmocka_run_group_tests(tests, open_all, close_all);
}
