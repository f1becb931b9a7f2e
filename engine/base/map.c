/*
 * The string map, and the hashes (xxhash is included here only).
 *
 * Linear probing at a load of at most 3/4. There is no removal, so there are no tombstones.
 */
#include "base/map.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"

struct fl_map_slot {
    fl_str key; /* p == NULL: free */
    uint64_t hash;
    uint32_t value;
};

uint64_t fl_hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(p, n, seed);
}

void fl_hash128_hex(const void *p, size_t n, char out[33])
{
    XXH128_hash_t h = XXH3_128bits(p, n);

    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void fl_map_init(fl_map *m)
{
    *m = (fl_map){0};
    fl_arena_init(&m->keys);
}

void fl_map_dispose(fl_map *m)
{
    if (!m)
        return;
    fl_free(m->slots);
    fl_arena_dispose(&m->keys);
    *m = (fl_map){0};
}

static struct fl_map_slot *slot_of(const fl_map *m, fl_str key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    while (m->slots[i].key.p && !(m->slots[i].hash == hash && fl_str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

bool fl_map_get(const fl_map *m, fl_str key, uint32_t *out)
{
    struct fl_map_slot *s;

    if (m->n == 0)
        return false;
    s = slot_of(m, key, fl_hash64(key.p, key.n, 0));
    if (!s->key.p)
        return false;
    *out = s->value;
    return true;
}

static int grow(fl_map *m)
{
    fl_map next = *m;

    next.cap = m->cap ? m->cap * 2 : 32;
    next.slots = fl_calloc(next.cap, sizeof(*next.slots));
    if (!next.slots)
        return FL_ENOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key.p)
            *slot_of(&next, m->slots[i].key, m->slots[i].hash) = m->slots[i];
    fl_free(m->slots);
    m->slots = next.slots;
    m->cap = next.cap;
    return FL_OK;
}

int fl_map_intern(fl_map *m, fl_str key, uint32_t fresh, uint32_t *out, bool *added)
{
    uint64_t hash = fl_hash64(key.p, key.n, 0);
    struct fl_map_slot *s;
    fl_str copy;

    if ((m->n + 1) * 4 > m->cap * 3 && grow(m))
        return FL_ENOMEM;
    s = slot_of(m, key, hash);
    if (added)
        *added = !s->key.p;
    if (!s->key.p) {
        copy = fl_arena_str(&m->keys, key);
        if (!copy.p)
            return FL_ENOMEM;
        *s = (struct fl_map_slot){.key = copy, .hash = hash, .value = fresh};
        m->n++;
    }
    *out = s->value;
    return FL_OK;
}

int fl_map_set(fl_map *m, fl_str key, uint32_t value)
{
    uint32_t was;
    int r = fl_map_intern(m, key, value, &was, NULL);

    if (r == FL_OK && was != value)
        slot_of(m, key, fl_hash64(key.p, key.n, 0))->value = value;
    return r;
}
