/*
 * The causes.
 *
 * `explains` is what arbitration stands on, so it is resolved to indices here, once, with areas
 * (net.*) and named groups written out; a cause never explains itself, or a repeated error would
 * explain itself away. Two causes may explain each other: which of them did is a question of time.
 * The two ids that the program itself needs, `unknown` and `none`, are added when a file does not
 * have them.
 */
#include "rules/parts.h"

#include <stdlib.h>

#include "base/alloc.h"

#define MAX_CAUSES 4096

static bool good_id(fl_str s)
{
    size_t dots = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        dots += c == '.';
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
            return false;
    }
    return s.n && s.n < 64 && dots <= 1 && s.p[0] != '.' && s.p[s.n - 1] != '.';
}

static const struct fl_cause_row *find_row(const struct fl_loader *l, fl_str id)
{
    for (size_t i = 0; i < l->ncauses; i++)
        if (fl_str_eqz(id, l->causes[i].cause.id))
            return &l->causes[i];
    return NULL;
}

static int add_row(struct fl_loader *l, const struct fl_cause_row *row, fl_err *err)
{
    if (l->ncauses >= MAX_CAUSES)
        return fl_fail(err, FL_ELIMIT, "%s: more than %d causes", row->cause.file, MAX_CAUSES);
    if (fl_grow((void **)&l->causes, &l->causes_cap, l->ncauses + 1, sizeof(*l->causes)))
        return fl_fail_nomem(err);
    l->causes[l->ncauses++] = *row;
    return FL_OK;
}

static int one_cause(struct fl_loader *l, const fl_yaml *n, fl_err *err)
{
    static const char *const known[] = {"id",          "class",     "title",     "precedence",
                                        "last_resort", "gives_way", "bystander", "explains",
                                        "timeline",    "action",    "advice",    NULL};
    struct fl_cause_row row = {.cause = {.file = n->file, .line = n->line}};
    struct fl_cause *c = &row.cause;
    const struct fl_cause_row *other;
    const fl_yaml *id, *class, *title, *action;
    int r;

    if ((r = fl_yaml_known(n, known, err)) || (r = fl_needed(n, "id", &id, err)) ||
        (r = fl_needed(n, "class", &class, err)) || (r = fl_needed(n, "title", &title, err)) ||
        (r = fl_needed(n, "action", &action, err)) || (r = fl_text_of(id, &c->id, err)) ||
        (r = fl_class_of(class, true, &c->class, err)) || (r = fl_text_of(title, &c->title, err)) ||
        (r = fl_action_of(action, &c->action, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "advice"), &c->advice, err)) ||
        (r = fl_whole_number(fl_yaml_get(n, "precedence"), 0, 100, &c->precedence, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "last_resort"), &c->last_resort, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "gives_way"), &c->gives_way, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "bystander"), &c->bystander, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "timeline"), &c->timeline, err)))
        return r;
    if (!good_id(id->text))
        return fl_yaml_fail(id, FL_ERULE, err, "cause id '%s' must look like area.cause", c->id);
    other = find_row(l, id->text);
    if (other)
        return fl_yaml_fail(id, FL_ERULE, err, "cause '%s' stands already in %s:%u", c->id,
                            other->cause.file, other->cause.line);
    row.explains = fl_yaml_get(n, "explains");
    return add_row(l, &row, err);
}

/* Groups are resolved when they are used, since they may name causes of later files. */
static int take_groups(struct fl_loader *l, const fl_yaml *groups, fl_err *err)
{
    if (groups && groups->kind != FL_YAML_MAP)
        return fl_yaml_fail(groups, FL_ERULE, err, "'groups' must be a map: name: [causes]");
    for (const fl_yaml *g = groups ? groups->first : NULL; g; g = g->next) {
        for (size_t i = 0; i < l->ngroups; i++)
            if (fl_str_eq(l->groups[i]->key, g->key))
                return fl_yaml_fail(g, FL_ERULE, err, "group '%.*s' stands already in %s:%u",
                                    FL_FMT(g->key), l->groups[i]->file, l->groups[i]->line);
        if (fl_grow((void **)&l->groups, &l->groups_cap, l->ngroups + 1, sizeof(*l->groups)))
            return fl_fail_nomem(err);
        l->groups[l->ngroups++] = g;
    }
    return FL_OK;
}

int fl_taxonomy_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err)
{
    static const char *const known[] = {"groups", "causes", NULL};
    int r = fl_yaml_known(root, known, err);

    if (r == FL_OK)
        r = take_groups(l, fl_yaml_get(root, "groups"), err);
    return r ? r : fl_each_row(l, root, "causes", one_cause, err);
}

static int add_built_in(struct fl_loader *l, const char *id, const char *title, const char *action,
                        fl_err *err)
{
    struct fl_cause_row row = {
        .cause = {.id = id, .title = title, .action = action, .file = "built in", .line = 1}};

    return find_row(l, fl_str_c(id)) ? FL_OK : add_row(l, &row, err);
}

int fl_taxonomy_finish(struct fl_loader *l, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    int r = add_built_in(l, "unknown", "No cause found", "investigate", err);

    if (r == FL_OK)
        r = add_built_in(l, "none", "No failure", "none", err);
    if (r)
        return r;
    rs->causes = fl_arena_alloc(&rs->arena, l->ncauses * sizeof(*rs->causes));
    if (!rs->causes)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < l->ncauses; i++)
        rs->causes[i] = l->causes[i].cause;
    rs->ncauses = l->ncauses;
    for (size_t i = 0; i < l->ncauses && r == FL_OK; i++)
        r = fl_cause_list(l, l->causes[i].explains, (int)i, &rs->causes[i].explains,
                          &rs->causes[i].nexplains, err);
    rs->unknown = (uint16_t)fl_ruleset_cause(rs, FL_S("unknown"));
    rs->none = (uint16_t)fl_ruleset_cause(rs, FL_S("none"));
    return r;
}

int fl_ruleset_cause(const struct fl_ruleset *rs, fl_str id)
{
    for (size_t i = 0; i < rs->ncauses; i++)
        if (fl_str_eqz(id, rs->causes[i].id))
            return (int)i;
    return -1;
}

bool fl_cause_explains(const struct fl_cause *a, uint16_t other)
{
    size_t low = 0, high = a->nexplains;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (a->explains[mid] == other)
            return true;
        if (a->explains[mid] < other)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}
