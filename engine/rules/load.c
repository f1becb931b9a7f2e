/*
 * Rule folders, read in the order given.
 *
 * All taxonomies first, then all rules, then all policies: a rule of one folder may name a cause of
 * another, and a message about an unknown cause is then true. Files are read in the order of their
 * names, so that the version hash and every index come out the same on each machine.
 */
#include "rules/parts.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/alloc.h"

#define MAX_FOLDERS 64
#define MAX_DEPTH 4
#define MAX_FILE (16u << 20)

typedef int (*rows_fn)(struct fl_loader *l, const fl_yaml *root, fl_err *err);

static int take_text(struct fl_loader *l, fl_str text, const char *name, rows_fn rows, fl_err *err)
{
    const fl_yaml *root;
    char hash[33];
    int r;

    fl_hash128_hex(text.p ? text.p : "", text.n, hash);
    r = fl_trees_get(&l->trees, text, hash, name, &l->rs->arena, &root, &l->known, err);
    if (r)
        return r;
    fl_buf_addz(&l->hashes, hash);
    return rows(l, root, err);
}

static int take_file(struct fl_loader *l, const char *path, rows_fn rows, fl_err *err)
{
    fl_buf text;
    int r;

    fl_buf_init(&text, MAX_FILE);
    r = fl_file_read(path, &text, err);
    if (r == FL_OK)
        r = take_text(l, fl_buf_str(&text), path, rows, err);
    fl_buf_dispose(&text);
    return r;
}

static int take_tree(struct fl_loader *l, const char *dir, int depth, rows_fn rows, fl_err *err)
{
    const char **names;
    size_t n;
    int r = fl_file_list(dir, &l->rs->arena, &names, &n, err);

    for (size_t i = 0; r == FL_OK && i < n; i++) {
        const char *path = fl_file_join(&l->rs->arena, dir, names[i]);
        if (!path)
            return fl_fail_nomem(err);
        if (names[i][0] == '.') /* editors' and version control's own */
            continue;
        if (fl_file_is_dir(path)) {
            if (depth >= MAX_DEPTH)
                r = fl_fail(err, FL_ERULE, "%s: folders are nested too deeply", path);
            else
                r = take_tree(l, path, depth + 1, rows, err);
        } else if (fl_str_ends(fl_str_c(names[i]), FL_S(".yaml"))) {
            r = take_file(l, path, rows, err);
        }
    }
    return r;
}

static int take_if_there(struct fl_loader *l, const char *dir, const char *name, rows_fn rows,
                         fl_err *err)
{
    const char *path = fl_file_join(&l->rs->arena, dir, name);

    if (!path)
        return fl_fail_nomem(err);
    if (!fl_file_exists(path))
        return FL_OK;
    return fl_file_is_dir(path) ? take_tree(l, path, 0, rows, err) : take_file(l, path, rows, err);
}

static int loader_init(struct fl_loader *l, const char *cache_dir, const char *const *dirs,
                       size_t n, fl_err *err)
{
    *l = (struct fl_loader){0};
    l->rs = fl_calloc(1, sizeof(*l->rs));
    if (!l->rs)
        return fl_fail_nomem(err);
    fl_arena_init(&l->rs->arena);
    fl_map_init(&l->rule_ids);
    fl_map_init(&l->filter_ids);
    fl_buf_init(&l->hashes, MAX_FILE);
    fl_trees_open(&l->trees, cache_dir, dirs, n);
    return FL_OK;
}

/* What the loader made before it failed is freed with it; on success only its own arrays are. */
static void loader_dispose(struct fl_loader *l)
{
    for (size_t i = 0; i < l->nrules; i++) {
        for (size_t k = 0; k < l->rules[i].rule.nnots; k++)
            fl_regex_free(l->rules[i].rule.nots[k]);
        fl_regex_free(l->rules[i].rule.inside);
    }
    fl_filter_rows_dispose(l);
    fl_free(l->causes);
    fl_free(l->groups);
    fl_free(l->rules);
    fl_free(l->policy);
    fl_free(l->filters);
    fl_map_dispose(&l->rule_ids);
    fl_map_dispose(&l->filter_ids);
    fl_buf_dispose(&l->hashes);
    fl_trees_dispose(&l->trees);
    fl_ruleset_free(l->rs);
}

static int finish(struct fl_loader *l, fl_err *err)
{
    int r = fl_rules_finish(l, err);

    if (r == FL_OK)
        r = fl_filters_finish(l, err);
    if (r == FL_OK)
        r = fl_policy_finish(l, err);
    if (r == FL_OK)
        r = fl_buf_check(&l->hashes, "the list of rule files", err);
    if (r == FL_OK)
        fl_hash128_hex(l->hashes.p ? l->hashes.p : "", l->hashes.n, l->rs->version);
    return r;
}

static int load_all(struct fl_loader *l, const char *const *dirs, size_t n, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < n && r == FL_OK; i++)
        r = fl_file_is_dir(dirs[i])
                ? take_if_there(l, dirs[i], "taxonomy.yaml", fl_taxonomy_rows, err)
                : fl_fail(err, FL_EINPUT, "%s: the rule folder is not there", dirs[i]);
    if (r == FL_OK && l->ncauses == 0)
        r = fl_fail(err, FL_ERULE, "%s: no taxonomy.yaml with causes in any rule folder",
                    n ? dirs[0] : "rules");
    if (r == FL_OK)
        r = fl_taxonomy_finish(l, err);
    for (size_t i = 0; i < n && r == FL_OK; i++) {
        l->folder = (unsigned)i;
        r = take_if_there(l, dirs[i], "failures", fl_rule_rows, err);
        if (r == FL_OK)
            r = take_if_there(l, dirs[i], "filters", fl_filter_rows, err);
        if (r == FL_OK)
            r = take_if_there(l, dirs[i], "policy.yaml", fl_policy_rows, err);
    }
    return r == FL_OK ? finish(l, err) : r;
}

/* The trees may point into what was read from the cache: it goes with the rule set. */
static int settle_trees(struct fl_loader *l, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    const char *note = NULL;

    fl_trees_keep(&l->trees);
    if (l->trees.note[0] && !(note = fl_arena_z(&rs->arena, fl_str_c(l->trees.note))))
        return fl_fail_nomem(err);
    rs->cache_note = note;
    rs->packed = l->trees.image.p;
    l->trees.image.p = NULL;
    return FL_OK;
}

int fl_ruleset_load_cached(const char *const *dirs, size_t n, const char *cache_dir,
                           struct fl_ruleset **out, fl_err *err)
{
    struct fl_loader l;
    int r;

    if (n > MAX_FOLDERS)
        return fl_fail(err, FL_ELIMIT, "%zu rule folders; at most %d are taken", n, MAX_FOLDERS);
    r = loader_init(&l, cache_dir, dirs, n, err);
    if (r)
        return r;
    r = load_all(&l, dirs, n, err);
    if (r == FL_OK)
        r = settle_trees(&l, err);
    if (r == FL_OK) {
        *out = l.rs;
        l.rs = NULL;
    }
    loader_dispose(&l);
    return r;
}

int fl_ruleset_load(const char *const *dirs, size_t n, struct fl_ruleset **out, fl_err *err)
{
    return fl_ruleset_load_cached(dirs, n, NULL, out, err);
}

static int parse_all(fl_str taxonomy, fl_str policy, fl_str rules, fl_str filters,
                     struct fl_ruleset **out, fl_err *err)
{
    struct fl_loader l;
    int r = loader_init(&l, NULL, NULL, 0, err);

    if (r)
        return r;
    if ((r = take_text(&l, taxonomy, "taxonomy.yaml", fl_taxonomy_rows, err)) == FL_OK &&
        (r = fl_taxonomy_finish(&l, err)) == FL_OK &&
        (r = take_text(&l, rules, "rules.yaml", fl_rule_rows, err)) == FL_OK &&
        (r = take_text(&l, filters, "filters.yaml", fl_filter_rows, err)) == FL_OK &&
        (r = take_text(&l, policy, "policy.yaml", fl_policy_rows, err)) == FL_OK)
        r = finish(&l, err);
    if (r == FL_OK) {
        *out = l.rs;
        l.rs = NULL;
    }
    loader_dispose(&l);
    return r;
}

int fl_ruleset_parse(fl_str taxonomy, fl_str policy, fl_str rules, struct fl_ruleset **out,
                     fl_err *err)
{
    return parse_all(taxonomy, policy, rules, FL_S(""), out, err);
}

int fl_ruleset_parse_filters(fl_str taxonomy, fl_str rules, fl_str filters, struct fl_ruleset **out,
                             fl_err *err)
{
    return parse_all(taxonomy, FL_S(""), rules, filters, out, err);
}

void fl_ruleset_free(struct fl_ruleset *rs)
{
    if (!rs)
        return;
    for (size_t i = 0; i < rs->nrules; i++) {
        for (size_t k = 0; k < rs->rules[i].nnots; k++)
            fl_regex_free(rs->rules[i].nots[k]);
        fl_regex_free(rs->rules[i].inside);
    }
    for (size_t i = 0; i < rs->nfilters; i++)
        for (size_t k = 0; k < rs->filters[i].nnots; k++)
            fl_regex_free(rs->filters[i].nots[k]);
    fl_arena_dispose(&rs->arena);
    fl_free(rs->packed);
    fl_free(rs);
}

const struct fl_rule *fl_ruleset_rule(const struct fl_ruleset *rs, fl_str id)
{
    size_t low = 0, high = rs->nrules;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = fl_str_cmp(fl_str_c(rs->rules[mid].id), id);
        if (order == 0)
            return &rs->rules[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
