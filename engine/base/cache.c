/*
 * What was computed once, on disk.
 *
 * Building the pattern database takes seconds, reading it takes milliseconds, and a job that has
 * failed is diagnosed by a fresh process each time. The key is a hash of all that went in, so an
 * upgraded library or an edited rule simply asks for another file. The file is believed only as far
 * as its checksum: magic, format, key, length and a 128-bit hash of the payload stand in front, all
 * are checked, and a file that other users could have written is not read at all, because those who
 * use it trust the bytes.
 *
 * Nothing here is an error. What went wrong becomes a note, and the caller does the work anew.
 * Writers rename a finished file into place, so two at once leave one whole file. Files of former
 * keys are removed when a new one is written, all but the newest few of a kind.
 *
 * The file: 8 bytes magic, 4 bytes format (little-endian), 32 digits key, 8 bytes payload length
 * (little-endian), 32 digits hash of the payload, payload.
 */
#include "base/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/alloc.h"

#define HEADER (8 + 4 + 32 + 8 + 32)
#define MAX_FILE (256u << 20)
#define KEPT_FILES 4
#define SUFFIX ".db"

static const char *file_path(const struct fl_cache_kind *kind, fl_arena *a, const char *dir,
                             const char *key)
{
    const char *name = fl_arena_f(a, "%s%s" SUFFIX, kind->prefix, key);

    return name ? fl_file_join(a, dir, name) : NULL;
}

/* NULL when the file is what we wrote, else what is wrong. */
static const char *wrong(const struct fl_cache_kind *kind, fl_str file, const char *key)
{
    char hash[33];

    if (file.n < HEADER)
        return "it is too short";
    if (memcmp(file.p, kind->magic, 8) != 0)
        return "it does not begin as such a file does";
    if (fl_get_le(file.p + 8, 4) != kind->format)
        return "it has another format version";
    if (memcmp(file.p + 12, key, 32) != 0)
        return "it was made from something else";
    if (fl_get_le(file.p + 44, 8) != file.n - HEADER)
        return "its length is wrong";
    fl_hash128_hex(file.p + HEADER, file.n - HEADER, hash);
    if (memcmp(file.p + 52, hash, 32) != 0)
        return "its checksum is wrong";
    return NULL;
}

static bool others_may_write(const char *path)
{
    struct stat st;

    return stat(path, &st) || (st.st_uid != geteuid() && st.st_uid != 0) ||
           (st.st_mode & (S_IWGRP | S_IWOTH));
}

bool fl_cache_load(const struct fl_cache_kind *kind, const char *dir, const char *key, fl_buf *file,
                   fl_str *payload, char *note, size_t cap)
{
    const char *path, *why = NULL;
    fl_err err = {0};
    fl_arena a;
    bool ok = false;

    fl_arena_init(&a);
    path = file_path(kind, &a, dir, key);
    if (!path || !fl_file_exists(path))
        goto done;
    if (others_may_write(path))
        why = "other users may have written it";
    else if (fl_file_read(path, file, &err))
        why = err.msg;
    else
        why = wrong(kind, fl_buf_str(file), key);
    if (why) {
        snprintf(note, cap, "%s is not used: %s", path, why);
        goto done;
    }
    *payload = fl_str_from(fl_buf_str(file), HEADER);
    ok = true;
done:
    fl_arena_dispose(&a);
    return ok;
}

struct old_file {
    const char *path;
    int64_t age; /* modification time */
};

static int newest_first(const void *a, const void *b)
{
    const struct old_file *x = a, *y = b;

    return x->age > y->age ? -1 : x->age < y->age;
}

static void drop_old_files(const struct fl_cache_kind *kind, const char *dir, fl_arena *a)
{
    const char **names;
    struct old_file *v;
    size_t n, found = 0;
    struct stat st;

    if (fl_file_list(dir, a, &names, &n, NULL))
        return;
    v = fl_arena_alloc(a, (n + 1) * sizeof(*v));
    for (size_t i = 0; v && i < n; i++) {
        fl_str name = fl_str_c(names[i]);
        if (!fl_str_starts(name, fl_str_c(kind->prefix)) || !fl_str_ends(name, FL_S(SUFFIX)))
            continue;
        v[found].path = fl_file_join(a, dir, names[i]);
        if (!v[found].path || stat(v[found].path, &st))
            continue;
        v[found++].age = (int64_t)st.st_mtime;
    }
    if (found <= KEPT_FILES)
        return;
    qsort(v, found, sizeof(*v), newest_first);
    for (size_t i = KEPT_FILES; i < found; i++)
        unlink(v[i].path);
}

void fl_cache_store(const struct fl_cache_kind *kind, const char *dir, const char *key,
                    fl_str payload, char *note, size_t cap)
{
    char hash[33];
    const char *path;
    fl_err err = {0};
    fl_arena a;
    fl_buf file;
    int r;

    fl_arena_init(&a);
    fl_buf_init(&file, MAX_FILE);
    path = file_path(kind, &a, dir, key);
    fl_hash128_hex(payload.p, payload.n, hash);
    fl_buf_addz(&file, kind->magic);
    fl_put_le(&file, kind->format, 4);
    fl_buf_addz(&file, key);
    fl_put_le(&file, payload.n, 8);
    fl_buf_addz(&file, hash);
    fl_buf_add(&file, payload);
    r = path ? fl_buf_check(&file, kind->what, &err) : fl_fail_nomem(&err);
    if (r == FL_OK)
        r = fl_file_mkdirs(dir, &err);
    if (r == FL_OK)
        r = fl_file_write_atomic(path, fl_buf_str(&file), &err);
    if (r == FL_OK)
        drop_old_files(kind, dir, &a);
    else
        snprintf(note, cap, "the %s was not written: %s", kind->what, err.msg);
    fl_buf_dispose(&file);
    fl_arena_dispose(&a);
}
