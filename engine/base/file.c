/*
 * Files that are small and ours: rules, policy, caches.
 *
 * A write is never seen half-done: temporary file, fsync, rename. Two processes that write the same
 * cache at once both succeed, and the last rename wins with a whole file.
 */
#define _GNU_SOURCE
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define PIECE 65536

/* A regular file and the byte that shows its end in one piece, else what a pipe may hold. */
static size_t first_read(int fd)
{
    struct stat st;

    return fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 0 ? PIECE
                                                                    : (size_t)st.st_size + 1;
}

int fl_file_read(const char *path, fl_buf *out, fl_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r = FL_OK;
    size_t piece;
    ssize_t n;

    if (fd < 0)
        return fl_fail(err, FL_EINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    for (piece = first_read(fd);; piece = out->cap > out->n + 1 ? out->cap - out->n - 1 : PIECE) {
        char *at = fl_buf_room(out, out->max - out->n < piece ? out->max - out->n : piece);
        if (!at || out->max == out->n) {
            r = out->bad == FL_ENOMEM
                    ? fl_fail_nomem(err)
                    : fl_fail(err, FL_ELIMIT, "%s: larger than %zu bytes", path, out->max);
            break;
        }
        n = read(fd, at, out->max - out->n < piece ? out->max - out->n : piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r = fl_fail(err, FL_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
            break;
        }
        if (n == 0)
            break;
        out->n += (size_t)n;
        out->p[out->n] = 0;
    }
    close(fd);
    return r;
}

static int write_all(int fd, fl_str s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        s = fl_str_from(s, (size_t)n);
    }
    return 0;
}

int fl_file_write_atomic(const char *path, fl_str bytes, fl_err *err)
{
    size_t n = strlen(path) + 8;
    char *tmp = fl_malloc(n);
    int fd, e;

    if (!tmp)
        return fl_fail_nomem(err);
    snprintf(tmp, n, "%s.XXXXXX", path);
    fd = mkostemp(tmp, O_CLOEXEC);
    e = fd < 0 ? errno : write_all(fd, bytes);
    if (fd >= 0 && !e && fsync(fd))
        e = errno;
    if (fd >= 0 && close(fd) && !e)
        e = errno;
    if (!e && rename(tmp, path))
        e = errno;
    if (e && fd >= 0)
        unlink(tmp);
    fl_free(tmp);
    return e ? fl_fail(err, FL_EIO, "%s: cannot be written: %s", path, strerror(e)) : FL_OK;
}

int fl_file_mkdirs(const char *path, fl_err *err)
{
    char *z = fl_strdup_s(fl_str_c(path));
    int r = FL_OK;

    if (!z)
        return fl_fail_nomem(err);
    for (char *p = z + 1;; p++) {
        char c = *p;
        if (c != '/' && c != 0)
            continue;
        *p = 0;
        if (mkdir(z, 0700) && errno != EEXIST) {
            r = fl_fail(err, FL_EIO, "%s: the folder cannot be made: %s", z, strerror(errno));
            break;
        }
        *p = c;
        if (!c)
            break;
    }
    fl_free(z);
    return r;
}

bool fl_file_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool fl_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *fl_file_join(fl_arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir);

    if (name[0] == '/')
        return fl_arena_z(a, fl_str_c(name));
    return fl_arena_f(a, n && dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int fl_file_list(const char *dir, fl_arena *a, const char ***names, size_t *n, fl_err *err)
{
    DIR *d = opendir(dir);
    const char **v = NULL, **copy;
    size_t cap = 0, count = 0;
    struct dirent *e;
    int r = FL_OK;

    if (!d)
        return fl_fail(err, FL_EINPUT, "%s: the folder cannot be read: %s", dir, strerror(errno));
    while ((e = readdir(d))) {
        const char *z;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        z = fl_arena_z(a, fl_str_c(e->d_name));
        if (!z || fl_grow((void **)&v, &cap, count + 1, sizeof(*v))) {
            r = fl_fail_nomem(err);
            break;
        }
        v[count++] = z;
    }
    closedir(d);
    copy = r ? NULL : fl_arena_alloc(a, (count + 1) * sizeof(*copy));
    if (!r && !copy)
        r = fl_fail_nomem(err);
    if (!r) {
        if (count) {
            qsort(v, count, sizeof(*v), by_bytes);
            memcpy(copy, v, count * sizeof(*v));
        }
        *names = copy;
        *n = count;
    }
    fl_free(v);
    return r;
}

const char *fl_file_self(fl_arena *a)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

    return n > 0 && (size_t)n < sizeof(path) ? fl_arena_z(a, fl_str_n(path, (size_t)n)) : NULL;
}
