/*
 * What goes wrong around the index: a full disk, a limit on file size, a builder killed at any
 * moment while others read. What was there is there afterwards, no reader ever fails, and what a
 * killed builder left is gone after the next build.
 *
 * FL_KILLS sets how many builders are killed.
 */
#define _GNU_SOURCE
#include "../unit/index_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

struct setting {
    char dir[64], path[128];
    struct fl_vectors v;
    struct fl_index_head head;
    float query[256];
};

static int open_setting(void **state)
{
    struct setting *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    *state = s;
    snprintf(s->dir, sizeof(s->dir), "/tmp/fl-fault-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/x", s->dir);
    s->v = (struct fl_vectors){.seed = 3, .count = 6000, .dim = 256, .id_step = 1};
    s->head = fl_vectors_head(&s->v, 1);
    fl_vectors_make(&s->v, 17, s->query);
    build(&s->v, &s->head, s->path);
    return 0;
}

static int close_setting(void **state)
{
    struct setting *s = *state;

    unlink(s->path);
    rmdir(s->dir);
    free(s);
    return 0;
}

/* 0 when the index at `path` is whole and finds vector 17; else told on stdout. */
static int whole(const struct setting *s, const char *path)
{
    int64_t id = -1;
    float score;
    fl_index *ix = NULL;
    fl_err err = {0};
    int r = fl_index_open(path, &s->head, FL_INDEX_ANY_GENERATION, &ix, &err);

    if (r == FL_OK)
        r = fl_index_verify(ix, &err);
    if (r == FL_OK)
        r = fl_index_search(ix, s->query, 1, 1, &id, &score, &err);
    fl_index_free(ix);
    if (r || id != 17)
        printf("reader: code %d '%s', found %lld\n", r, err.msg, (long long)id);
    return r || id != 17;
}

/* In the child: builds, and exits with 0 when the code and the sentence are as told. */
static void build_and_exit(struct setting *s, const char *path, int code, const char *says)
{
    struct fl_index_source source = fl_vectors_source(&s->v);
    fl_err err = {0};
    int r = fl_index_build(&s->head, &source, NULL, NULL, path, &err);

    if (r != code || (says && !strstr(err.msg, says))) {
        printf("code %d, expected %d: '%s'\n", r, code, err.msg);
        fflush(stdout);
        _exit(1);
    }
    _exit(0);
}

static void joined(pid_t pid, const char *what)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s: status %#x", what, (unsigned)status);
}

static void file_size_limit(void **state)
{
    struct setting *s = *state;
    static const rlim_t most[] = {0, 1, 255, 256, 257, 4096, 100000, 3000000, 6000000};

    for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
        struct rlimit limit = {most[i], most[i]};
        char what[64];
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &limit);
            build_and_exit(s, s->path, FL_EIO, "the index cannot be written: File too large");
        }
        snprintf(what, sizeof(what), "a limit of %llu bytes", (unsigned long long)most[i]);
        joined(pid, what);
        no_debris(s->dir, 1);
        assert_int_equal(whole(s, s->path), 0);
    }
}

/* A file system of its own, in a name space of its own: needs root, and is left out without. */
static void fill_disk_and_exit(struct setting *s)
{
    static const char *const sizes[] = {"size=16k", "size=1m", "size=5m"};
    char where[80], path[128];

    snprintf(where, sizeof(where), "%s/disk", s->dir);
    snprintf(path, sizeof(path), "%s/x", where);
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        _exit(77);
    for (size_t i = 0; i < 3; i++) {
        struct fl_index_source source = fl_vectors_source(&s->v);
        fl_err err = {0};
        int r;

        if (mount("none", where, "tmpfs", 0, sizes[i]))
            _exit(77);
        r = fl_index_build(&s->head, &source, NULL, NULL, path, &err);
        if (r != FL_EIO || !strstr(err.msg, "the disk is full; what was there is unchanged")) {
            printf("%s: code %d '%s'\n", sizes[i], r, err.msg);
            fflush(stdout);
            _exit(1);
        }
        no_debris(where, 0);
        umount(where);
    }
    if (mount("none", where, "tmpfs", 0, "size=8m"))
        _exit(77);
    build_and_exit(s, path, FL_OK, NULL); /* and room enough is enough */
}

static void disk_full(void **state)
{
    struct setting *s = *state;
    char where[80];
    int status;
    pid_t pid;

    snprintf(where, sizeof(where), "%s/disk", s->dir);
    assert_int_equal(mkdir(where, 0700), 0);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        fill_disk_and_exit(s);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rmdir(where);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void no_such_folder(void **state)
{
    struct setting *s = *state;
    struct fl_index_source source = fl_vectors_source(&s->v);
    fl_err err = {0};

    assert_int_equal(fl_index_build(&s->head, &source, NULL, NULL, "/nonexistent/folder/x", &err),
                     FL_EIO);
    assert_non_null(strstr(err.msg, "No such file or directory"));
}

static void wait_us(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

    nanosleep(&t, NULL);
}

static pid_t start_reader(struct setting *s)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        for (;;)
            if (whole(s, s->path)) {
                fflush(stdout);
                _exit(1);
            }
    }
    return pid;
}

static void killed_while_others_read(void **state)
{
    struct setting *s = *state;
    const char *many = getenv("FL_KILLS");
    int kills = many ? atoi(many) : 40, died = 0, status;
    pid_t readers[2] = {start_reader(s), start_reader(s)}, pid;
    uint64_t seed = 11;
    struct timespec from, to;
    unsigned whole_us;

    clock_gettime(CLOCK_MONOTONIC, &from);
    pid = fork();
    if (pid == 0)
        build_and_exit(s, s->path, FL_OK, NULL);
    joined(pid, "a build");
    clock_gettime(CLOCK_MONOTONIC, &to);
    whole_us = (unsigned)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
    for (int i = 0; i < kills; i++) {
        s->head.generation = 2 + (uint64_t)i;
        pid = fork();
        if (pid == 0)
            build_and_exit(s, s->path, FL_OK, NULL);
        wait_us((unsigned)(fl_vectors_draw(&seed) % (whole_us + whole_us / 8)));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        died += WIFSIGNALED(status);
        assert_int_equal(whole(s, s->path), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        if (waitpid(readers[i], &status, WNOHANG) != 0)
            fail_msg("a reader ended by itself: status %#x", (unsigned)status);
        kill(readers[i], SIGKILL);
        waitpid(readers[i], &status, 0);
    }
    print_message("%d of %d builders were killed before they were done\n", died, kills);
    build(&s->v, &s->head, s->path);
    no_debris(s->dir, 1);
}

/* Another builder's file is locked and stays; a dead one's goes. */
static void only_debris_is_removed(void **state)
{
    struct setting *s = *state;
    char mine[160], dead[160], near[160];
    int fd;

    snprintf(mine, sizeof(mine), "%s.tmp-AAAAAA", s->path);
    snprintf(dead, sizeof(dead), "%s.tmp-BBBBBB", s->path);
    snprintf(near, sizeof(near), "%s.tmpfile", s->path);
    fd = open(mine, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    write_bytes(dead, "x", 1);
    write_bytes(near, "x", 1);
    build(&s->v, &s->head, s->path);
    assert_int_equal(access(mine, F_OK), 0);
    assert_int_equal(access(near, F_OK), 0);
    assert_int_not_equal(access(dead, F_OK), 0);
    close(fd);
    unlink(mine);
    unlink(near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_size_limit),          cmocka_unit_test(disk_full),
        cmocka_unit_test(no_such_folder),           cmocka_unit_test(only_debris_is_removed),
        cmocka_unit_test(killed_while_others_read),
    };

    return cmocka_run_group_tests(tests, open_setting, close_setting);
}
