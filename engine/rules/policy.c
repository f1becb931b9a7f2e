/*
 * The policy: from cause, class, phase, place and history to an action.
 *
 * A list of rows read from the top, the first that fits decides. Ranking rows by how specific they
 * are was not done: people could not foretell which row wins. Rows of later folders stand before
 * those of earlier ones, so that a site's own policy overrides the shipped one without editing it.
 */
#include "rules/parts.h"

#include "base/alloc.h"

static int hosts_of(const fl_yaml *n, struct fl_policy_row *row, fl_err *err)
{
    static const char *const words[] = {"none", "one", "some", "many", NULL};
    static const struct {
        int min, max;
    } range[] = {{0, 0}, {1, 1}, {1, -1}, {2, -1}};
    int at = 0, r = fl_yaml_word(n, words, &at, err);

    if (!n || r)
        return r;
    row->hosts_min = range[at].min;
    row->hosts_max = range[at].max;
    return FL_OK;
}

static int one_row(struct fl_loader *l, const fl_yaml *n, fl_err *err)
{
    static const char *const known[] = {"cause",   "class",  "phase",  "hosts",
                                        "repeats", "action", "advice", NULL};
    struct fl_policy_raw raw = {.row = {.file = n->file, .line = n->line, .hosts_max = -1},
                                .cause = fl_yaml_get(n, "cause"),
                                .folder = l->folder};
    struct fl_policy_row *row = &raw.row;
    const fl_yaml *action;
    int r;

    if ((r = fl_yaml_known(n, known, err)) || (r = fl_needed(n, "action", &action, err)) ||
        (r = fl_action_of(action, &row->action, err)) ||
        (r = fl_class_of(fl_yaml_get(n, "class"), false, &row->class, err)) ||
        (r = fl_phase_of(fl_yaml_get(n, "phase"), &row->phase, err)) ||
        (r = hosts_of(fl_yaml_get(n, "hosts"), row, err)) ||
        (r = fl_whole_number(fl_yaml_get(n, "repeats"), 0, 1000, &row->repeats_min, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "advice"), &row->advice, err)))
        return r;
    if (fl_grow((void **)&l->policy, &l->policy_cap, l->npolicy + 1, sizeof(*l->policy)))
        return fl_fail_nomem(err);
    l->policy[l->npolicy++] = raw;
    return FL_OK;
}

int fl_policy_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err)
{
    static const char *const known[] = {"policy", NULL};
    int r = fl_yaml_known(root, known, err);

    return r ? r : fl_each_row(l, root, "policy", one_row, err);
}

int fl_policy_finish(struct fl_loader *l, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    size_t at = 0;
    int r = FL_OK;

    rs->policy = fl_arena_alloc(&rs->arena, (l->npolicy + 1) * sizeof(*rs->policy));
    if (!rs->policy)
        return fl_fail_nomem(err);
    for (unsigned f = l->folder + 1; f-- > 0;)
        for (size_t i = 0; i < l->npolicy && r == FL_OK; i++) {
            if (l->policy[i].folder != f)
                continue;
            rs->policy[at] = l->policy[i].row;
            r = fl_cause_list(l, l->policy[i].cause, -1, &rs->policy[at].causes,
                              &rs->policy[at].ncauses, err);
            at++;
        }
    rs->npolicy = at;
    return r;
}
