#ifndef FL_RULES_TREES_H
#define FL_RULES_TREES_H
/*
 * Inside the rules room: the YAML trees of the rule files as an earlier start left them on disk.
 */
#include "base/buf.h"
#include "base/yaml.h"

struct fl_tree_entry {
    char hash[32];       /* of the file's bytes */
    uint64_t size;       /* their number */
    fl_str packed;       /* of one that was read */
    const fl_yaml *tree; /* of one that was used */
};

struct fl_trees {
    const char *dir; /* NULL: nothing is kept */
    char key[33];
    fl_buf image; /* what the entries point into */
    fl_arena arena;
    struct fl_tree_entry *v;
    size_t n, next;
    struct fl_tree_entry *used; /* what this start took, in order */
    size_t nused, used_cap;
    bool stale; /* that is not what was read */
    char note[400];
};

/* Reads what is kept for these folders. No error: without it all files are parsed. */
void fl_trees_open(struct fl_trees *t, const char *cache_dir, const char *const *dirs, size_t n);
/* The tree of a file's text; `hash` is of its bytes. *known: the tree was kept by a start that
 * took it without complaint. Texts of such a tree are slices of t->image. */
int fl_trees_get(struct fl_trees *t, fl_str text, const char hash[33], const char *file,
                 fl_arena *arena, const fl_yaml **out, bool *known, fl_err *err);
/* All files were taken, and their trees are still there: keeps them when they are not what was
 * read. */
void fl_trees_keep(struct fl_trees *t);
void fl_trees_dispose(struct fl_trees *t);

#endif
