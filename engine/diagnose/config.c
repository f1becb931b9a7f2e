/*
 * The configuration file: YAML, every key optional, unknown keys refused with file and line.
 *
 * It is read here because YAML belongs to the library; where the file is looked for belongs to the
 * program. Relative folders are meant from where the file stands, so that a configuration can be
 * moved together with its rules.
 */
#include "faultline.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/yaml.h"
#include "diagnose/ask.h"
#include "diagnose/remote.h"

struct owned {
    struct fl_config config; /* first: the public pointer is this one */
    fl_arena arena;
};

static const char *beside(fl_arena *a, const char *file, fl_str name)
{
    ptrdiff_t slash = fl_str_rfind_c(fl_str_c(file), '/');
    const char *z = fl_arena_z(a, name), *home = getenv("HOME"), *dir;

    if (z && z[0] == '~' && z[1] == '/' && home)
        return fl_file_join(a, home, z + 2);
    if (!z || z[0] == '/' || slash < 0)
        return z;
    dir = fl_arena_z(a, fl_str_n(file, (size_t)slash));
    return dir ? fl_file_join(a, dir, z) : NULL;
}

static int read_rules(struct owned *o, const fl_yaml *root, const char *path, fl_err *err)
{
    const char **dirs;
    fl_str *names = NULL;
    size_t n = 0;
    int r = fl_yaml_strs(fl_yaml_get(root, "rules"), &o->arena, &names, &n, err);

    if (r || !n)
        return r;
    dirs = fl_arena_alloc(&o->arena, n * sizeof(*dirs));
    for (size_t i = 0; dirs && i < n; i++)
        if (!(dirs[i] = beside(&o->arena, path, names[i])))
            return fl_fail_nomem(err);
    if (!dirs)
        return fl_fail_nomem(err);
    o->config.rule_dirs = dirs;
    o->config.nrule_dirs = n;
    return FL_OK;
}

static int read_llm(struct owned *o, const fl_yaml *root, fl_err *err)
{
    struct fl_ask_config *c = fl_arena_alloc(&o->arena, sizeof(*c));
    const char **urls;
    char shown[300];
    int r;

    if (!c)
        return fl_fail_nomem(err);
    r = fl_ask_config_read(fl_yaml_get(root, "llm"), &o->arena, c, err);
    if (r)
        return r;
    urls = fl_arena_alloc(&o->arena, (c->n + 1) * sizeof(*urls));
    if (!urls)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < c->n; i++) {
        fl_http_show_url(c->endpoints[i].url, shown, sizeof(shown));
        urls[i] = fl_arena_z(&o->arena, fl_str_c(shown));
        if (!urls[i])
            return fl_fail_nomem(err);
    }
    o->config.llm = c;
    o->config.endpoints = urls;
    o->config.nendpoints = c->n;
    return FL_OK;
}

static int read_memory(struct owned *o, const fl_yaml *root, const char *path, fl_err *err)
{
    static const char *const known[] = {"home", "embedding", NULL};
    const fl_yaml *memory = fl_yaml_get(root, "memory"), *embedding;
    struct fl_embedding_config *c;
    fl_str home = {NULL, 0};
    int r = memory ? fl_yaml_known(memory, known, err) : FL_OK;

    if (!r && memory)
        r = fl_yaml_str(fl_yaml_get(memory, "home"), &home, err);
    if (!r && home.n && !(o->config.memory_home = beside(&o->arena, path, home)))
        r = fl_fail_nomem(err);
    embedding = memory ? fl_yaml_get(memory, "embedding") : NULL;
    if (r || !embedding)
        return r;
    c = fl_arena_alloc(&o->arena, sizeof(*c));
    if (!c)
        return fl_fail_nomem(err);
    o->config.embedding = c;
    return fl_embedding_config_read(embedding, o->config.llm, &o->arena, c, err);
}

static int read_keys(struct owned *o, const fl_yaml *root, const char *path, fl_err *err)
{
    static const char *const known[] = {"rules", "cache", "color", "llm", "memory", NULL};
    static const char *const colors[] = {"auto", "always", "never", NULL};
    const fl_yaml *cache = fl_yaml_get(root, "cache");
    int r = fl_yaml_known(root, known, err), color = -1;

    if (!r)
        r = read_rules(o, root, path, err);
    if (!r)
        r = fl_yaml_word(fl_yaml_get(root, "color"), colors, &color, err);
    if (r)
        return r;
    if (color >= 0)
        o->config.color = colors[color];
    r = read_llm(o, root, err);
    if (!r)
        r = read_memory(o, root, path, err);
    if (r)
        return r;
    if (!cache)
        return FL_OK;
    if (cache->kind != FL_YAML_SCALAR)
        return fl_yaml_fail(cache, FL_ERULE, err, "'cache' must be a folder, or false");
    if (!cache->quoted && fl_str_eqz(cache->text, "false")) {
        o->config.no_cache = true;
        return FL_OK;
    }
    o->config.cache_dir = beside(&o->arena, path, cache->text);
    return o->config.cache_dir ? FL_OK : fl_fail_nomem(err);
}

int fl_config_load(const char *path, struct fl_config **out, fl_err *err)
{
    struct owned *o = fl_calloc(1, sizeof(*o));
    const fl_yaml *root;
    int r;

    if (!o)
        return fl_fail_nomem(err);
    fl_arena_init(&o->arena);
    r = fl_yaml_load(path, &o->arena, &root, err);
    if (!r)
        r = read_keys(o, root, path, err);
    if (r) {
        fl_config_free(&o->config);
        return r;
    }
    *out = &o->config;
    return FL_OK;
}

void fl_config_free(struct fl_config *c)
{
    struct owned *o = (struct owned *)c;

    if (!o)
        return;
    fl_arena_dispose(&o->arena);
    fl_free(o);
}
