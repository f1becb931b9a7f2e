#ifndef FL_READ_LIST_H
#define FL_READ_LIST_H
/*
 * The inputs of one job as a flat list. Not for other rooms.
 */
#include "base/map.h"
#include "read/reader.h"

struct fl_input {
    const char *name; /* for people */
    const char *path; /* NULL: stdin */
    bool named;       /* given by hand: a fault is an error, not a skip */
    int64_t size;     /* -1: not a regular file */
};

struct fl_list {
    fl_arena *arena; /* holds all names */
    struct fl_input *v;
    size_t n, cap;
    struct fl_read_skip *skips;
    size_t nskips, skip_cap;
    uint64_t total; /* bytes of all, 0 when one is not a regular file */
    bool unknown;
    fl_map known; /* device and inode of each */
};

void fl_list_init(struct fl_list *l, fl_arena *arena);

int fl_list_build(struct fl_list *l, const char *const *paths, size_t n, fl_err *err);
/* `name` and `why` are kept, not copied. From FL_READ_SKIPS on nothing is: the last entry says so.
 */
int fl_list_skip(struct fl_list *l, const char *name, const char *why, fl_err *err);
static inline bool fl_list_skips_full(const struct fl_list *l)
{
    return l->nskips >= FL_READ_SKIPS;
}
void fl_list_dispose(struct fl_list *l);
/* Whether this name inside a folder or archive is passed over: NULL, or why; "" when silently. */
const char *fl_list_refuses(fl_str base);

#endif
