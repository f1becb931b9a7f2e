#ifndef FL_BASE_MAP_H
#define FL_BASE_MAP_H
/*
 * fl_map: byte strings to uint32_t, open addressing, XXH3. Keys are copied and never removed.
 */
#include "base/arena.h"

typedef struct fl_map {
    struct fl_map_slot *slots;
    size_t cap, n;
    fl_arena keys;
} fl_map;

void fl_map_init(fl_map *m);
void fl_map_dispose(fl_map *m);
/* True and *out set when `key` is there. O(1) on average. */
bool fl_map_get(const fl_map *m, fl_str key, uint32_t *out);
/* Sets or replaces. 0 or FL_ENOMEM with the map unchanged. */
int fl_map_set(fl_map *m, fl_str key, uint32_t value);
/* The value of `key`; when it is not there, it is added with `fresh` first. *out is set in both
 * cases, *added tells which (may be NULL). */
int fl_map_intern(fl_map *m, fl_str key, uint32_t fresh, uint32_t *out, bool *added);

uint64_t fl_hash64(const void *p, size_t n, uint64_t seed);
/* 128 bits as 32 hex digits and a NUL; for content hashes. */
void fl_hash128_hex(const void *p, size_t n, char out[33]);

#endif
