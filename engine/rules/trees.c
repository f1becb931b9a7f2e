/*
 * The trees of the rule files, kept from one start to the next.
 *
 * Each file is still read, because the hash of its bytes decides which tree is its own; what is
 * spared is parsing it. The file in the cache is named after the folders, and inside every tree
 * stands under its file's hash, so an edited rule file costs its own parsing and no other's, and
 * rule folders that are worked on do not fill the cache. All checks of rules run on the trees as
 * they do on fresh ones, with one exception: the `not` expressions of a tree that is kept were
 * compiled once, and compile. That holds for the PCRE2 that compiled them, whose version is
 * therefore part of the name.
 *
 * Trees are kept after all files were taken without an error, never before.
 *
 * Refused: keeping the finished rule set. It would save another 20 million instructions, and each
 * field of each struct would be one that a damaged file could set to something no check has seen.
 *
 * The payload: number of entries; for each 32 digits hash of the file's bytes, their number, the
 * packed tree's length, the packed tree. Numbers are little-endian, of 8 bytes.
 */
#include "rules/trees.h"

#include <stdio.h>

#include "base/cache.h"
#include "base/map.h"
#include "match/match.h"
#include "base/alloc.h"

#define MAX_IMAGE (256u << 20)
#define HEAD 8
#define ENTRY (32 + 8 + 8)

static const struct fl_cache_kind kind = {"FLTREES\n", 1, "rules-", "rule cache"};

static int make_key(struct fl_trees *t, const char *const *dirs, size_t n)
{
    fl_buf b;
    int r;

    fl_buf_init(&b, 1u << 20);
    fl_regex_version(&b);
    for (size_t i = 0; i < n; i++) {
        fl_buf_addc(&b, 0);
        fl_buf_addz(&b, dirs[i]);
    }
    r = b.bad;
    if (!r)
        fl_hash128_hex(b.p, b.n, t->key);
    fl_buf_dispose(&b);
    return r;
}

/* Finds the entries in the payload. False when it is none of ours. */
static bool index_entries(struct fl_trees *t, fl_str payload)
{
    uint64_t n = payload.n < HEAD ? UINT64_MAX : fl_get_le(payload.p, HEAD);
    fl_str rest = fl_str_from(payload, HEAD);

    if (n > payload.n / ENTRY)
        return false;
    t->v = fl_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof(*t->v));
    for (size_t i = 0; t->v && i < n; i++) {
        uint64_t size = rest.n < ENTRY ? UINT64_MAX : fl_get_le(rest.p + 40, 8);
        if (size > rest.n - ENTRY)
            return false;
        memcpy(t->v[i].hash, rest.p, 32);
        t->v[i].size = fl_get_le(rest.p + 32, 8);
        t->v[i].packed = fl_str_sub(rest, ENTRY, (size_t)size);
        rest = fl_str_from(rest, ENTRY + (size_t)size);
    }
    t->n = t->v ? (size_t)n : 0;
    return t->v && rest.n == 0;
}

void fl_trees_open(struct fl_trees *t, const char *cache_dir, const char *const *dirs, size_t n)
{
    fl_str payload = {NULL, 0};

    *t = (struct fl_trees){0};
    fl_arena_init(&t->arena);
    fl_buf_init(&t->image, MAX_IMAGE);
    if (!cache_dir || !*cache_dir || make_key(t, dirs, n))
        return;
    t->dir = cache_dir;
    if (!fl_cache_load(&kind, t->dir, t->key, &t->image, &payload, t->note, sizeof(t->note)))
        return;
    if (!index_entries(t, payload)) {
        t->n = 0;
        snprintf(t->note, sizeof(t->note), "the rule cache is not used: its entries are damaged");
    }
}

/* Files come in the same order each time, so the search ends at once. */
static const struct fl_tree_entry *find(struct fl_trees *t, size_t size, const char *hash)
{
    for (size_t i = 0; i < t->n; i++) {
        size_t at = (t->next + i) % t->n;
        if (t->v[at].size == size && memcmp(t->v[at].hash, hash, 32) == 0) {
            t->stale |= i > 0;
            t->next = at + 1;
            return &t->v[at];
        }
    }
    return NULL;
}

/* What does not fit into memory is not kept, which is no error. */
static void note_used(struct fl_trees *t, size_t size, const char *hash, const fl_yaml *tree)
{
    struct fl_tree_entry *e;

    if (!t->dir || fl_grow((void **)&t->used, &t->used_cap, t->nused + 1, sizeof(*t->used))) {
        t->dir = NULL;
        return;
    }
    e = &t->used[t->nused++];
    *e = (struct fl_tree_entry){.size = size, .tree = tree};
    memcpy(e->hash, hash, sizeof(e->hash));
}

int fl_trees_get(struct fl_trees *t, fl_str text, const char hash[33], const char *file,
                 fl_arena *arena, const fl_yaml **out, bool *known, fl_err *err)
{
    const struct fl_tree_entry *e = t->dir ? find(t, text.n, hash) : NULL;
    int r = e ? fl_yaml_unpack(e->packed, file, arena, out) : FL_EINPUT;

    if (r == FL_ENOMEM)
        return fl_fail_nomem(err);
    *known = r == FL_OK;
    t->stale |= !*known;
    if (r)
        r = fl_yaml_parse(text, file, arena, out, err);
    if (r == FL_OK)
        note_used(t, text.n, hash, *out);
    return r;
}

void fl_trees_keep(struct fl_trees *t)
{
    fl_buf b, packed;
    int r = FL_OK;

    if (!t->dir || (!t->stale && t->nused == t->n))
        return;
    fl_buf_init(&b, MAX_IMAGE);
    fl_buf_init(&packed, MAX_IMAGE);
    fl_put_le(&b, t->nused, HEAD);
    for (size_t i = 0; i < t->nused && r == FL_OK; i++) {
        fl_buf_clear(&packed);
        r = fl_yaml_pack(t->used[i].tree, &packed, NULL);
        fl_buf_add(&b, fl_str_n(t->used[i].hash, sizeof(t->used[i].hash)));
        fl_put_le(&b, t->used[i].size, 8);
        fl_put_le(&b, packed.n, 8);
        fl_buf_add(&b, fl_buf_str(&packed));
    }
    if (r || b.bad)
        snprintf(t->note, sizeof(t->note), "the rule cache was not written: too large");
    else
        fl_cache_store(&kind, t->dir, t->key, fl_buf_str(&b), t->note, sizeof(t->note));
    fl_buf_dispose(&b);
    fl_buf_dispose(&packed);
}

void fl_trees_dispose(struct fl_trees *t)
{
    fl_free(t->used);
    fl_buf_dispose(&t->image);
    fl_arena_dispose(&t->arena);
}
