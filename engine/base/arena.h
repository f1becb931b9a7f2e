#ifndef FL_BASE_ARENA_H
#define FL_BASE_ARENA_H
/*
 * fl_arena: allocations that live and die together.
 *
 * A diagnosis, a rule set, a YAML tree each own one. Nothing is freed singly. What must outlive
 * its arena is copied by a function called _dup.
 */
#include "base/err.h"
#include "base/str.h"

typedef struct fl_arena {
    struct fl_arena_page *page;
    size_t used, cap; /* of the newest page */
    size_t total;     /* bytes asked for so far */
    bool failed;      /* an allocation was refused; stays so until the arena is disposed of */
} fl_arena;

void fl_arena_init(fl_arena *a);
void fl_arena_dispose(fl_arena *a);
/* `n` zeroed bytes aligned for any type, or NULL. */
void *fl_arena_alloc(fl_arena *a, size_t n);
/* A copy of `s`, NUL-terminated behind its end. On failure a slice with p == NULL. */
fl_str fl_arena_str(fl_arena *a, fl_str s);
const char *fl_arena_z(fl_arena *a, fl_str s); /* the same as a C string, or NULL */
__attribute__((format(printf, 2, 3))) const char *fl_arena_f(fl_arena *a, const char *fmt, ...);

#endif
