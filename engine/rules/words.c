/*
 * The fixed words of rule, taxonomy and policy files, and the small checks that all three share.
 *
 * Actions stand here and not in a file: the restart pipeline is programmed against them.
 */
#include "rules/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static const char *const class_words[] = {"-", "infrastructure", "framework", "script", NULL};
static const char *const role_words[] = {"root",   "symptom", "confirm", "recovery",
                                         "advice", "benign",  NULL};
static const char *const maturity_words[] = {"draft", "test", "stable", "retired", NULL};
static const char *const phase_words[] = {"any", "startup", "running", NULL};

const char *fl_class_word(enum fl_class c)
{
    return class_words[c];
}

const char *fl_role_word(enum fl_role r)
{
    return role_words[r];
}

const char *fl_maturity_word(enum fl_maturity m)
{
    return maturity_words[m];
}

static const struct fl_action actions[] = {
    {"restart", "restart", 0},
    {"wait_and_retry", "restart", 0},
    {"cordon_and_restart", "restart_elsewhere", 10},
    {"reset_gpu", "test_first", 11},
    {"rollback_and_skip", "roll_back", 12},
    {"investigate", "ask", 20},
    {"fix_code", "stop", 93},
    {"fix_config", "stop", 93},
    {"free_space", "stop", 93},
    {"raise_limit", "stop", 93},
    {"none", "none", 94},
};
#define NACTIONS (sizeof(actions) / sizeof(*actions))

const struct fl_action *fl_action_find(const char *id)
{
    for (size_t i = 0; id && i < NACTIONS; i++)
        if (!strcmp(actions[i].id, id))
            return &actions[i];
    return NULL;
}

int fl_action_of(const fl_yaml *n, const char **out, fl_err *err)
{
    const char *words[NACTIONS + 1] = {NULL};
    int at = 0, r;

    if (!n)
        return FL_OK;
    for (size_t i = 0; i < NACTIONS; i++)
        words[i] = actions[i].id;
    r = fl_yaml_word(n, words, &at, err);
    if (r == FL_OK)
        *out = actions[at].id;
    return r;
}

int fl_class_of(const fl_yaml *n, bool dash, enum fl_class *out, fl_err *err)
{
    int at = 0, r;

    if (!n)
        return FL_OK;
    r = fl_yaml_word(n, dash ? class_words : class_words + 1, &at, err);
    if (r == FL_OK)
        *out = (enum fl_class)(dash ? at : at + 1);
    return r;
}

int fl_role_of(const fl_yaml *n, enum fl_role *out, fl_err *err)
{
    int at = 0, r = fl_yaml_word(n, role_words, &at, err);

    if (r == FL_OK)
        *out = (enum fl_role)at;
    return r;
}

int fl_maturity_of(const fl_yaml *n, enum fl_maturity *out, fl_err *err)
{
    int at = 0, r = fl_yaml_word(n, maturity_words, &at, err);

    if (r == FL_OK)
        *out = (enum fl_maturity)at;
    return r;
}

int fl_phase_of(const fl_yaml *n, enum fl_phase_when *out, fl_err *err)
{
    int at = 0, r;

    if (!n)
        return FL_OK;
    r = fl_yaml_word(n, phase_words, &at, err);
    if (r == FL_OK)
        *out = (enum fl_phase_when)at;
    return r;
}

/* Scalars are NUL-terminated behind their end; one that holds a NUL itself would be cut. */
int fl_text_of(const fl_yaml *n, const char **out, fl_err *err)
{
    fl_str s = {0};
    int r = fl_yaml_str(n, &s, err);

    if (!n || r)
        return r;
    if (s.n == 0 || memchr(s.p, 0, s.n))
        return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' is empty or holds a NUL byte; write a text",
                            FL_FMT(n->key));
    *out = s.p;
    return FL_OK;
}

bool fl_id_is_good(fl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool dash = c == '-' && i && i + 1 < s.n && s.p[i - 1] != '-';
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || dash))
            return false;
    }
    return s.n && s.n < 100;
}

int fl_texts_of(struct fl_loader *l, const fl_yaml *n, fl_str **out, unsigned **lines,
                size_t *count, fl_err *err)
{
    fl_str *v;
    unsigned *at;
    size_t i = 0;

    if (!n)
        return FL_OK;
    if (n->kind == FL_YAML_MAP)
        return fl_yaml_fail(n, FL_ERULE, err,
                            "'%.*s' must be a list of texts; quote what holds "
                            "': '",
                            FL_FMT(n->key));
    v = fl_arena_alloc(&l->rs->arena, (n->n + 1) * sizeof(*v));
    at = fl_arena_alloc(&l->rs->arena, (n->n + 1) * sizeof(*at));
    if (!v || !at)
        return fl_fail_nomem(err);
    if (n->kind == FL_YAML_SCALAR) {
        v[i] = n->text;
        at[i++] = n->line;
    }
    for (const fl_yaml *c = n->first; c; c = c->next) {
        if (c->kind != FL_YAML_SCALAR)
            return fl_yaml_fail(c, FL_ERULE, err, "'%.*s' must hold texts; quote what holds ': '",
                                FL_FMT(n->key));
        v[i] = c->text;
        at[i++] = c->line;
    }
    for (size_t k = 0; k < i; k++)
        if (v[k].n == 0)
            return fl_fail(err, FL_ERULE, "%s:%u: an empty text in '%.*s'; remove it", n->file,
                           at[k], FL_FMT(n->key));
    *out = v;
    *lines = at;
    *count = i;
    return FL_OK;
}

int fl_regexes_of(struct fl_loader *l, const fl_yaml *node, bool icase, fl_str **text,
                  fl_regex ***out, size_t *n, fl_err *err)
{
    unsigned *lines = NULL;
    size_t count = 0;
    int r = fl_texts_of(l, node, text, &lines, &count, err);

    *n = 0;
    if (r || count == 0)
        return r;
    *out = fl_arena_alloc(&l->rs->arena, count * sizeof(**out));
    if (!*out)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < count && r == FL_OK; i++) {
        char where[300];
        snprintf(where, sizeof(where), "%.250s:%u", node->file, lines[i]);
        r = l->known ? fl_regex_new_known((*text)[i], icase, where, &(*out)[i], err)
                     : fl_regex_new((*text)[i], icase, where, &(*out)[i], err);
        if (r == FL_OK)
            ++*n;
    }
    return r;
}

int fl_whole_number(const fl_yaml *n, int low, int high, int *out, fl_err *err)
{
    double v = 0;
    int r = fl_yaml_num(n, &v, err);

    if (!n || r)
        return r;
    if (!(v >= low && v <= high) || v != floor(v))
        return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' must be a whole number from %d to %d",
                            FL_FMT(n->key), low, high);
    *out = (int)v;
    return FL_OK;
}

int fl_needed(const fl_yaml *row, const char *key, const fl_yaml **out, fl_err *err)
{
    *out = fl_yaml_get(row, key);
    return *out ? FL_OK : fl_yaml_fail(row, FL_ERULE, err, "'%s:' is missing here; add it", key);
}

int fl_each_row(struct fl_loader *l, const fl_yaml *root, const char *key,
                int (*one)(struct fl_loader *l, const fl_yaml *row, fl_err *err), fl_err *err)
{
    const fl_yaml *found = fl_yaml_get(root, key);
    int r = FL_OK;

    /* "rules:" with nothing behind it is an empty list. */
    if (found && found->kind == FL_YAML_SCALAR && !found->quoted && found->text.n == 0)
        found = NULL;
    if (found && found->kind != FL_YAML_LIST)
        return fl_yaml_fail(found, FL_ERULE, err, "'%s' must be a list; begin each row with '- '",
                            key);
    for (const fl_yaml *n = found ? found->first : NULL; n && r == FL_OK; n = n->next)
        r = one(l, n, err);
    return r;
}

static size_t distance(fl_str a, fl_str b)
{
    size_t n = a.n < b.n ? a.n : b.n, d = a.n > b.n ? a.n - b.n : b.n - a.n;

    for (size_t i = 0; i < n; i++)
        d += a.p[i] != b.p[i];
    return d;
}

static int unknown_cause(const struct fl_ruleset *rs, const fl_yaml *node, fl_err *err)
{
    const char *best = "none";
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < rs->ncauses; i++) {
        size_t d = distance(node->text, fl_str_c(rs->causes[i].id));
        if (d < least)
            least = d, best = rs->causes[i].id;
    }
    return fl_yaml_fail(node, FL_ERULE, err,
                        "cause '%.*s' is not in taxonomy.yaml; did you mean '%s'?",
                        FL_FMT(fl_str_sub(node->text, 0, 80)), best);
}

int fl_cause_named(const struct fl_ruleset *rs, const fl_yaml *node, fl_err *err)
{
    int at;

    if (node->kind != FL_YAML_SCALAR)
        return fl_yaml_fail(node, FL_ERULE, err, "one cause id is expected here");
    at = fl_ruleset_cause(rs, node->text);
    return at >= 0 ? at : unknown_cause(rs, node, err);
}

static const fl_yaml *group_named(const struct fl_loader *l, fl_str name)
{
    for (size_t i = 0; i < l->ngroups; i++)
        if (fl_str_eq(l->groups[i]->key, name))
            return l->groups[i];
    return NULL;
}

/* Marks what one word or list names in `take`, a byte a cause. A group may hold groups. */
static int mark(const struct fl_loader *l, const fl_yaml *node, int depth, char *take, fl_err *err)
{
    const struct fl_ruleset *rs = l->rs;
    const fl_yaml *group;
    fl_str head;
    bool any = false;
    int at, r = FL_OK;

    if (node->kind == FL_YAML_MAP || depth > 4)
        return fl_yaml_fail(node, FL_ERULE, err,
                            "a cause id, 'area.*' or a group is expected here");
    if (node->kind == FL_YAML_LIST) {
        for (const fl_yaml *c = node->first; c && r == FL_OK; c = c->next)
            r = mark(l, c, depth + 1, take, err);
        return r;
    }
    group = group_named(l, node->text);
    if (group)
        return mark(l, group, depth + 1, take, err);
    if (!fl_str_ends(node->text, FL_S(".*"))) {
        at = fl_cause_named(rs, node, err);
        if (at < 0)
            return at;
        take[at] = 1;
        return FL_OK;
    }
    head = fl_str_sub(node->text, 0, node->text.n - 1);
    for (size_t i = 0; i < rs->ncauses; i++)
        if (fl_str_starts(fl_str_c(rs->causes[i].id), head))
            take[i] = 1, any = true;
    return any ? FL_OK : unknown_cause(rs, node, err);
}

int fl_cause_list(struct fl_loader *l, const fl_yaml *node, int but, const uint16_t **out,
                  size_t *n, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    char *take;
    uint16_t *v;
    size_t count = 0;
    int r;

    if (!node)
        return FL_OK;
    take = fl_arena_alloc(&rs->arena, rs->ncauses + 1);
    v = fl_arena_alloc(&rs->arena, (rs->ncauses + 1) * sizeof(*v));
    if (!take || !v)
        return fl_fail_nomem(err);
    r = mark(l, node, 0, take, err);
    if (r)
        return r;
    for (size_t i = 0; i < rs->ncauses; i++)
        if (take[i] && (int)i != but)
            v[count++] = (uint16_t)i;
    *out = v;
    *n = count;
    return FL_OK;
}
