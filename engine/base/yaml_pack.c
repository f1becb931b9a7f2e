/*
 * YAML trees as bytes.
 *
 * Parsing a megabyte of rules took libyaml 137 of the 389 million instructions of a digest of a
 * small log; laying out the packed trees takes 5 million. Texts are not copied: they are slices of
 * the packed bytes, each with its NUL behind it. Nodes stand in the order in which they stand in
 * the file, with the number of their children, so that no place in the bytes points to another but
 * to the texts.
 *
 * Bytes from a disk can be anything. Every number is checked before it is used, depth and number of
 * nodes are bounded, and what does not fit is refused as a whole: the caller has the text and
 * parses it. What is not checked is the meaning, such as a key that stands in a map twice. That is
 * left to whoever vouches for the bytes.
 *
 * Refused: the tree's own structs with pointers mended after reading. They would be quicker by
 * little and would trust the bytes.
 *
 * The bytes, all numbers little-endian and of 4 bytes: number of nodes, size of the texts; for each
 * node kind and quotes, line, place and length of key and of text, number of children; the texts. A
 * place of 0xffffffff stands for none.
 */
#include "base/yaml.h"

#include "base/cache.h"
#include "base/alloc.h"

#define HEAD 8
#define NODE 28
#define NONE UINT32_MAX
#define MAX_DEPTH 16 /* as yaml.c has it */

struct packer {
    fl_buf *nodes, texts;
    uint32_t n;
};

static void put_text(struct packer *p, fl_str s)
{
    fl_put_le(p->nodes, s.p ? p->texts.n : NONE, 4);
    fl_put_le(p->nodes, s.n, 4);
    if (s.p) {
        fl_buf_add(&p->texts, s);
        fl_buf_addc(&p->texts, 0);
    }
}

static void put_node(struct packer *p, const fl_yaml *y)
{
    p->n++;
    fl_put_le(p->nodes, (unsigned)y->kind | (y->quoted ? 0x100u : 0), 4);
    fl_put_le(p->nodes, y->line, 4);
    put_text(p, y->key);
    put_text(p, y->text);
    fl_put_le(p->nodes, y->n, 4);
    for (const fl_yaml *c = y->first; c; c = c->next)
        put_node(p, c);
}

int fl_yaml_pack(const fl_yaml *root, fl_buf *out, fl_err *err)
{
    size_t head = out->n;
    struct packer p = {.nodes = out};
    int r;

    fl_buf_init(&p.texts, out->max);
    fl_put_le(out, 0, HEAD);
    put_node(&p, root);
    r = fl_buf_check(&p.texts, "a packed YAML tree", err);
    if (r == FL_OK) {
        fl_buf_add(out, fl_buf_str(&p.texts));
        r = fl_buf_check(out, "a packed YAML tree", err);
    }
    if (r == FL_OK)
        for (unsigned i = 0; i < 4; i++) {
            out->p[head + i] = (char)(p.n >> (8 * i) & 0xff);
            out->p[head + 4 + i] = (char)((uint32_t)p.texts.n >> (8 * i) & 0xff);
        }
    fl_buf_dispose(&p.texts);
    return r;
}

struct unpacker {
    const char *node; /* the next one */
    fl_str texts;
    fl_yaml *v, *end;
    const char *file;
};

static bool get_text(const struct unpacker *u, const char *at, fl_str *out)
{
    uint32_t place = (uint32_t)fl_get_le(at, 4), n = (uint32_t)fl_get_le(at + 4, 4);

    if (place == NONE)
        return n == 0;
    if (place >= u->texts.n || n >= u->texts.n - place || u->texts.p[place + n] != 0)
        return false;
    *out = fl_str_n(u->texts.p + place, n);
    return true;
}

/* The next node with all below it, or NULL. */
static fl_yaml *get_node(struct unpacker *u, int depth, bool in_map)
{
    fl_yaml *y = u->v, *child;
    const fl_yaml **tail;
    uint32_t word, n;

    if (y == u->end || depth > MAX_DEPTH)
        return NULL;
    u->v++;
    word = (uint32_t)fl_get_le(u->node, 4);
    n = (uint32_t)fl_get_le(u->node + 24, 4);
    y->kind = word & 0xff;
    y->quoted = word & 0x100;
    y->line = (unsigned)fl_get_le(u->node + 4, 4);
    y->file = u->file;
    y->n = n;
    if (word & ~0x1ffu || (word & 0xff) > FL_YAML_MAP || !get_text(u, u->node + 8, &y->key) ||
        !get_text(u, u->node + 16, &y->text) || in_map != (y->key.p != NULL) ||
        (y->kind == FL_YAML_SCALAR) != (y->text.p != NULL) || (y->kind == FL_YAML_SCALAR && n))
        return NULL;
    u->node += NODE;
    tail = &y->first;
    for (uint32_t i = 0; i < n; i++) {
        child = get_node(u, depth + 1, y->kind == FL_YAML_MAP);
        if (!child)
            return NULL;
        *tail = child;
        tail = &child->next;
    }
    return y;
}

int fl_yaml_unpack(fl_str bytes, const char *file, fl_arena *arena, const fl_yaml **out)
{
    struct unpacker u;
    size_t n, size;
    fl_yaml *root;

    if (bytes.n < HEAD)
        return FL_EINPUT;
    n = fl_get_le(bytes.p, 4);
    size = fl_get_le(bytes.p + 4, 4);
    if (n == 0 || n > (bytes.n - HEAD) / NODE || bytes.n - HEAD - n * NODE != size)
        return FL_EINPUT;
    u.node = bytes.p + HEAD;
    u.texts = fl_str_n(u.node + n * NODE, size);
    u.file = fl_arena_z(arena, fl_str_c(file));
    u.v = fl_arena_alloc(arena, n * sizeof(*u.v));
    if (!u.file || !u.v)
        return FL_ENOMEM;
    u.end = u.v + n;
    root = get_node(&u, 0, false);
    if (!root || u.v != u.end)
        return FL_EINPUT;
    *out = root;
    return FL_OK;
}
