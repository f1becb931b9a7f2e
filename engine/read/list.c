/*
 * What is to be read: files, folders walked down and sorted, stdin, FIFOs.
 *
 * A file that is named by hand must be readable, or the whole call fails: the user meant it. What
 * lies in a folder is taken as found: what cannot be read is skipped and told. A folder reached
 * through a symbolic link inside a folder is not entered, which keeps loops out; a link to a file
 * is followed, as Kubernetes' log folders consist of them. The same file is read once, however
 * often it is reached.
 */
#include "read/list.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#include "base/alloc.h"

#define DEPTH_MAX 32

void fl_list_init(struct fl_list *l, fl_arena *arena)
{
    *l = (struct fl_list){.arena = arena};
    fl_map_init(&l->known);
}

void fl_list_dispose(struct fl_list *l)
{
    fl_free(l->v);
    fl_free(l->skips);
    fl_map_dispose(&l->known);
    l->v = NULL;
    l->skips = NULL;
    l->n = l->nskips = 0;
}

int fl_list_skip(struct fl_list *l, const char *name, const char *why, fl_err *err)
{
    if (!name || !why ||
        fl_grow((void **)&l->skips, &l->skip_cap, l->nskips + 1, sizeof(*l->skips)))
        return fl_fail_nomem(err);
    if (l->nskips == FL_READ_SKIPS - 1)
        name = "...", why = "more were skipped than are named here";
    if (!fl_list_skips_full(l))
        l->skips[l->nskips++] = (struct fl_read_skip){name, why};
    return FL_OK;
}

const char *fl_list_refuses(fl_str base)
{
    if (fl_str_eqz(base, "label.json"))
        return "";
    return base.n && base.p[0] == '.' ? "hidden file" : NULL;
}

/* Notes a file. 1 when it was noted before, 0, or FL_ENOMEM. */
static int known(struct fl_list *l, const struct stat *st, fl_err *err)
{
    const uint64_t key[2] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    uint32_t value;
    bool added = false;

    if (fl_map_intern(&l->known, fl_str_n((const char *)key, sizeof(key)), 0, &value, &added))
        return fl_fail_nomem(err);
    return !added;
}

static int add(struct fl_list *l, const char *path, const char *name, const struct stat *st,
               bool named, fl_err *err)
{
    struct fl_input in = {.named = named, .size = -1};

    in.name = fl_arena_z(l->arena, fl_str_c(name));
    in.path = path ? fl_arena_z(l->arena, fl_str_c(path)) : NULL;
    if (!in.name || (path && !in.path) || fl_grow((void **)&l->v, &l->cap, l->n + 1, sizeof(*l->v)))
        return fl_fail_nomem(err);
    if (st && S_ISREG(st->st_mode))
        in.size = st->st_size;
    if (in.size < 0)
        l->unknown = true;
    else
        l->total += (uint64_t)in.size;
    l->v[l->n++] = in;
    return FL_OK;
}

static int walk(struct fl_list *l, const char *dir, const char *below, int depth, fl_err *err);

static const char *why_errno(struct fl_list *l, const char *what)
{
    return fl_arena_f(l->arena, "%s: %s", what, strerror(errno));
}

/* One name of a folder. */
static int entry(struct fl_list *l, const char *dir, const char *below, const char *base, int depth,
                 fl_err *err)
{
    const char *path = fl_file_join(l->arena, dir, base), *why = fl_list_refuses(fl_str_c(base));
    const char *name = *below ? fl_file_join(l->arena, below, base) : base;
    struct stat st, link;
    int again;

    if (!path || !name)
        return fl_fail_nomem(err);
    if (why)
        return *why ? fl_list_skip(l, name, why, err) : FL_OK;
    if (lstat(path, &link) || stat(path, &st))
        return fl_list_skip(l, name, why_errno(l, "cannot be opened"), err);
    if (S_ISDIR(st.st_mode)) {
        if (S_ISLNK(link.st_mode))
            return fl_list_skip(l, name, "symbolic link to a folder", err);
        if (depth >= DEPTH_MAX)
            return fl_list_skip(l, name, "too many folders deep", err);
        return walk(l, path, name, depth + 1, err);
    }
    if (!S_ISREG(st.st_mode))
        return fl_list_skip(l, name, "not a regular file", err);
    if (access(path, R_OK))
        return fl_list_skip(l, name, why_errno(l, "cannot be opened"), err);
    again = known(l, &st, err);
    if (again > 0)
        return fl_list_skip(l, name, "the same file as another input", err);
    return again ? again : add(l, path, name, &st, false, err);
}

static int walk(struct fl_list *l, const char *dir, const char *below, int depth, fl_err *err)
{
    const char **names;
    size_t n;
    fl_err why = {0};
    int r = fl_file_list(dir, l->arena, &names, &n, &why);

    if (r == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (r && depth == 0)
        return fl_fail(err, FL_EINPUT, "%s", why.msg);
    if (r)
        return fl_list_skip(l, below, "the folder cannot be read", err);
    for (size_t i = 0; i < n && !r; i++)
        r = entry(l, dir, below, names[i], depth, err);
    return r;
}

static fl_str base_name(const char *path)
{
    fl_str s = fl_str_c(path);
    ptrdiff_t slash = fl_str_rfind_c(s, '/');

    return fl_str_from(s, (size_t)(slash + 1));
}

static int named(struct fl_list *l, const char *path, fl_err *err)
{
    struct stat st;
    int again;

    if (strcmp(path, "-") == 0) {
        for (size_t i = 0; i < l->n; i++)
            if (!l->v[i].path)
                return fl_fail(err, FL_EUSAGE, "stdin (-) is named twice; name it once");
        return add(l, NULL, "-", NULL, true, err);
    }
    if (stat(path, &st))
        return fl_fail(err, FL_EINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return walk(l, path, "", 0, err);
    if (fl_str_eqz(base_name(path), "label.json"))
        return fl_list_skip(l, fl_arena_z(l->arena, fl_str_c(path)), "label.json is never input",
                            err);
    if (access(path, R_OK))
        return fl_fail(err, FL_EINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    again = known(l, &st, err);
    if (again > 0)
        return fl_list_skip(l, fl_arena_z(l->arena, fl_str_c(path)),
                            "the same file as another input", err);
    return again ? again : add(l, path, path, &st, true, err);
}

int fl_list_build(struct fl_list *l, const char *const *paths, size_t n, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < n && !r; i++)
        r = named(l, paths[i], err);
    if (l->unknown)
        l->total = 0;
    return r;
}
