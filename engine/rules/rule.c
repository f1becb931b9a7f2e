/*
 * One failure rule, from YAML to fl_rule.
 *
 * Strict: an unknown key, a word out of place or a missing key is an error with file and line. A
 * rule that would silently not work is worse than one that does not load. What is only bad style
 * (no source, no near-miss) is left to lint.
 *
 * An id belongs to one rule for ever. The one exception: a later folder may name a rule of an
 * earlier one again to retire it; such a row needs nothing but the id.
 */
#include "rules/parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static int compile_inside(const struct fl_loader *l, const fl_yaml *n, struct fl_rule *rule,
                          fl_err *err)
{
    char where[300];
    fl_str text = {NULL, 0};
    int r = fl_yaml_str(n, &text, err);

    if (r || !n)
        return r;
    snprintf(where, sizeof(where), "%.250s:%u", n->file, n->line);
    return l->known ? fl_regex_new_known(text, false, where, &rule->inside, err)
                    : fl_regex_new(text, false, where, &rule->inside, err);
}

static int words(const fl_yaml *n, struct fl_rule *rule, fl_err *err)
{
    static const char *const frames[] = {"any", "user", "library", NULL};
    static const char *const blames[] = {"self", "peer", "none", NULL};
    static const int strengths[] = {80, 40, 60, 0, 0, 0};
    const fl_yaml *role;
    int v = 0, r = fl_needed(n, "role", &role, err);

    if (r || (r = fl_role_of(role, &rule->role, err)))
        return r;
    rule->strength = strengths[rule->role];
    if ((r = fl_yaml_word(fl_yaml_get(n, "frame"), frames, &v, err)))
        return r;
    rule->frame = (enum fl_frame)v;
    v = 0;
    if ((r = fl_yaml_word(fl_yaml_get(n, "blame"), blames, &v, err)))
        return r;
    rule->blame = (enum fl_blame)v;
    if ((r = fl_phase_of(fl_yaml_get(n, "phase"), &rule->phase, err)) ||
        (r = fl_class_of(fl_yaml_get(n, "class"), false, &rule->class, err)) ||
        (r = fl_action_of(fl_yaml_get(n, "action"), &rule->action, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "summary"), &rule->summary, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "source"), &rule->source, err)))
        return r;
    return fl_whole_number(fl_yaml_get(n, "strength"), 0, 100, &rule->strength, err);
}

static int body(struct fl_loader *l, const fl_yaml *n, struct fl_rule_row *row, fl_err *err)
{
    struct fl_rule *rule = &row->rule;
    const fl_yaml *cause, *match;
    unsigned *hit_lines = NULL, *miss_lines = NULL;
    fl_str *hits = NULL, *misses = NULL;
    int r, at;

    if ((r = fl_needed(n, "cause", &cause, err)) || (r = fl_needed(n, "match", &match, err)))
        return r;
    at = fl_cause_named(l->rs, cause, err);
    if (at < 0)
        return at;
    rule->cause = (uint16_t)at;
    if ((r = words(n, rule, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "icase"), &row->icase, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "anchored"), &row->anchored, err)) ||
        (r = fl_texts_of(l, match, &row->match, &row->match_lines, &row->nmatch, err)) ||
        (r = fl_texts_of(l, fl_yaml_get(n, "hits"), &hits, &hit_lines, &rule->nhits, err)) ||
        (r = fl_texts_of(l, fl_yaml_get(n, "misses"), &misses, &miss_lines, &rule->nmisses, err)))
        return r;
    if (row->nmatch == 0)
        return fl_yaml_fail(match, FL_ERULE, err, "'match' has no pattern; add one");
    rule->hits = hits;
    rule->hit_lines = hit_lines;
    rule->misses = misses;
    rule->miss_lines = miss_lines;
    if ((r = compile_inside(l, fl_yaml_get(n, "inside"), rule, err)))
        return r;
    return fl_regexes_of(l, fl_yaml_get(n, "not"), row->icase, &rule->not_text, &rule->nots,
                         &rule->nnots, err);
}

static void drop_regexes(struct fl_rule *rule)
{
    for (size_t i = 0; i < rule->nnots; i++)
        fl_regex_free(rule->nots[i]);
    rule->nnots = 0;
    fl_regex_free(rule->inside);
    rule->inside = NULL;
}

/* A rule whose id is there already: only retiring one of an earlier folder is allowed. */
static int again(struct fl_loader *l, const fl_yaml *n, uint32_t at, enum fl_maturity maturity,
                 fl_err *err)
{
    struct fl_rule_row *old = &l->rules[at];

    if (old->folder == l->folder)
        return fl_yaml_fail(n, FL_ERULE, err, "rule '%s' stands already in %s:%u; ids are unique",
                            old->rule.id, old->rule.file, old->rule.line);
    if (maturity != FL_RETIRED)
        return fl_yaml_fail(n, FL_ERULE, err,
                            "rule '%s' belongs to %s:%u; retire it here (maturity: retired) and "
                            "give the new rule another id",
                            old->rule.id, old->rule.file, old->rule.line);
    old->rule.maturity = FL_RETIRED;
    return FL_OK;
}

static int one_rule(struct fl_loader *l, const fl_yaml *n, fl_err *err)
{
    static const char *const known[] = {"id",     "cause",    "role",   "maturity", "match",
                                        "not",    "anchored", "icase",  "strength", "frame",
                                        "phase",  "blame",    "class",  "action",   "summary",
                                        "source", "hits",     "misses", "inside",   NULL};
    struct fl_rule_row row = {.rule = {.file = n->file, .line = n->line}, .folder = l->folder};
    const fl_yaml *id, *maturity;
    uint32_t at;
    int r;

    if ((r = fl_yaml_known(n, known, err)) || (r = fl_needed(n, "id", &id, err)) ||
        (r = fl_text_of(id, &row.rule.id, err)) || (r = fl_needed(n, "maturity", &maturity, err)) ||
        (r = fl_maturity_of(maturity, &row.rule.maturity, err)))
        return r;
    if (!fl_id_is_good(id->text))
        return fl_yaml_fail(id, FL_ERULE, err,
                            "rule id '%s' must be lower-case words joined by '-'", row.rule.id);
    if (fl_map_get(&l->rule_ids, id->text, &at))
        return again(l, n, at, row.rule.maturity, err);
    if (fl_grow((void **)&l->rules, &l->rules_cap, l->nrules + 1, sizeof(*l->rules)))
        return fl_fail_nomem(err);
    /* A retired rule may be a mere id; its cause is then `unknown`. */
    row.rule.cause = l->rs->unknown;
    if (row.rule.maturity != FL_RETIRED || fl_yaml_get(n, "match"))
        r = body(l, n, &row, err);
    if (r == FL_OK && fl_map_set(&l->rule_ids, id->text, (uint32_t)l->nrules))
        r = fl_fail_nomem(err);
    if (r) {
        drop_regexes(&row.rule);
        return r;
    }
    l->rules[l->nrules++] = row;
    return FL_OK;
}

int fl_rule_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err)
{
    static const char *const known[] = {"rules", NULL};
    int r = fl_yaml_known(root, known, err);

    return r ? r : fl_each_row(l, root, "rules", one_rule, err);
}

static int by_id(const void *a, const void *b)
{
    const struct fl_rule_row *x = a, *y = b;

    return strcmp(x->rule.id, y->rule.id);
}

static int lay_patterns(struct fl_ruleset *rs, const struct fl_rule_row *row, uint32_t id,
                        fl_err *err)
{
    struct fl_rule *rule = &rs->rules[id];

    rule->pattern = (uint32_t)rs->npatterns;
    if (rule->maturity == FL_RETIRED)
        return FL_OK;
    for (size_t i = 0; i < row->nmatch; i++) {
        const char *where = fl_arena_f(&rs->arena, "%s:%u", rule->file, row->match_lines[i]);
        if (!where)
            return fl_fail_nomem(err);
        rs->patterns[rs->npatterns++] =
            (struct fl_pattern){row->match[i], id, row->icase, row->anchored, where};
        rule->npatterns++;
    }
    return FL_OK;
}

int fl_rules_finish(struct fl_loader *l, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    size_t n = 0;
    int r = FL_OK;

    if (l->nrules)
        qsort(l->rules, l->nrules, sizeof(*l->rules), by_id);
    for (size_t i = 0; i < l->nrules; i++)
        n += l->rules[i].nmatch;
    rs->rules = fl_arena_alloc(&rs->arena, (l->nrules + 1) * sizeof(*rs->rules));
    rs->patterns = fl_arena_alloc(&rs->arena, (n + 1) * sizeof(*rs->patterns));
    if (!rs->rules || !rs->patterns)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < l->nrules; i++)
        rs->rules[i] = l->rules[i].rule;
    rs->nrules = l->nrules;
    l->nrules = 0; /* the compiled `not` expressions belong to the rule set now */
    for (uint32_t i = 0; i < rs->nrules && r == FL_OK; i++)
        r = lay_patterns(rs, &l->rules[i], i, err);
    return r;
}
