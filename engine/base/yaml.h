#ifndef FL_BASE_YAML_H
#define FL_BASE_YAML_H
/*
 * YAML files that people edit, by libyaml (included in yaml.c only).
 *
 * Only maps, lists and scalars: anchors, aliases, tags and several documents are errors, and so is
 * a key twice in a map. Every node knows its line, every message carries file and line.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum fl_yaml_kind { FL_YAML_SCALAR, FL_YAML_LIST, FL_YAML_MAP };

typedef struct fl_yaml {
    enum fl_yaml_kind kind;
    unsigned line;                      /* 1-based */
    const char *file;                   /* as given to fl_yaml_parse, for messages */
    fl_str key;                         /* when this node is a value in a map */
    fl_str text;                        /* scalar: bytes, NUL-terminated behind the end */
    bool quoted;                        /* scalar written with quotes or as a block */
    const struct fl_yaml *first, *next; /* children, in order; map children carry `key` */
    size_t n;                           /* number of children */
} fl_yaml;

/* Parses one document. The tree lives in `arena`; `file` is copied there. An empty document gives
 * an empty map. Depth at most 16, size at most 16 MiB. */
int fl_yaml_parse(fl_str text, const char *file, fl_arena *arena, const fl_yaml **out, fl_err *err);
/* Reads the file and parses it. */
int fl_yaml_load(const char *path, fl_arena *arena, const fl_yaml **out, fl_err *err);

/*
 * Long lists, a row at a time: the document is a map with the one key `key`, whose value is a list
 * (an empty document or value is a list of none). Each row's tree lives until `fn` returns, so the
 * memory needed is that of one row and not of the file. A code other than 0 from `fn` ends it: a
 * negative one is handed on, a positive one counts as success. A row may have 16 MiB, the file any
 * size. `file` is borrowed for the call.
 */
typedef int (*fl_yaml_row_fn)(void *ctx, const fl_yaml *row, fl_err *err);
int fl_yaml_rows(fl_str text, const char *file, const char *key, fl_yaml_row_fn fn, void *ctx,
                 fl_err *err);
int fl_yaml_rows_load(const char *path, const char *key, fl_yaml_row_fn fn, void *ctx, fl_err *err);

/* A tree as bytes, appended to `out`, and back. Unpacking checks every bound, so any bytes will do;
 * FL_EINPUT: they are no tree. Texts of the tree are slices of `bytes`, nodes and the copy of
 * `file` lie in the arena. */
int fl_yaml_pack(const fl_yaml *root, fl_buf *out, fl_err *err);
int fl_yaml_unpack(fl_str bytes, const char *file, fl_arena *arena, const fl_yaml **out);

/* Child of a map, or NULL. */
const fl_yaml *fl_yaml_get(const fl_yaml *map, const char *key);
/* An error at this node: "file:line: text". Returns `code`. */
__attribute__((format(printf, 4, 5))) int fl_yaml_fail(const fl_yaml *at, int code, fl_err *err,
                                                       const char *fmt, ...);
/* FL_ERULE naming the first key of `map` that is not in `known` (NULL-terminated list), with the
 * nearest known key as a hint. */
int fl_yaml_known(const fl_yaml *map, const char *const *known, fl_err *err);
/* Typed values; each fails with file and line when the node has another form. A NULL node leaves
 * *out untouched and returns 0: the default stays. */
int fl_yaml_str(const fl_yaml *n, fl_str *out, fl_err *err);
int fl_yaml_num(const fl_yaml *n, double *out, fl_err *err);
int fl_yaml_bool(const fl_yaml *n, bool *out, fl_err *err); /* true, false */
/* Index of the scalar in a NULL-terminated list of words. */
int fl_yaml_word(const fl_yaml *n, const char *const *words, int *out, fl_err *err);
/* A list of scalars, or a single scalar taken as a list of one: array in the arena. */
int fl_yaml_strs(const fl_yaml *n, fl_arena *arena, fl_str **out, size_t *count, fl_err *err);

#endif
