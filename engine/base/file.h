#ifndef FL_BASE_FILE_H
#define FL_BASE_FILE_H
/*
 * Small files and folders. Logs are not read with these: see read/.
 */
#include "base/arena.h"
#include "base/buf.h"

/* Appends the whole file to `out`, whose maximum is the limit. */
int fl_file_read(const char *path, fl_buf *out, fl_err *err);
/* Writes beside the target, syncs, renames over it: readers see the old file or the new one. The
 * temporary file has a unique name and is removed on failure. Mode 0600. */
int fl_file_write_atomic(const char *path, fl_str bytes, fl_err *err);
/* Creates the folder and its parents, mode 0700. Existing is fine. */
int fl_file_mkdirs(const char *path, fl_err *err);
bool fl_file_is_dir(const char *path);
bool fl_file_exists(const char *path);
/* "dir/name" in the arena; NULL when memory runs out. An absolute `name` stands alone. */
const char *fl_file_join(fl_arena *a, const char *dir, const char *name);
/* The names in a folder, without . and .., sorted by bytes; array and names in the arena. */
int fl_file_list(const char *dir, fl_arena *a, const char ***names, size_t *n, fl_err *err);
/* The running program's own path (/proc/self/exe), without resolving further; NULL if unknown. */
const char *fl_file_self(fl_arena *a);

#endif
