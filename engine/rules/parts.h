#ifndef FL_RULES_PARTS_H
#define FL_RULES_PARTS_H
/*
 * Inside the rules room: what loading gathers before it becomes a rule set.
 *
 * Rows are gathered in growing arrays, because later folders add to earlier ones, and are laid out
 * in the rule set's arena at the end. YAML trees stay in that arena too: texts are slices of them.
 */
#include "base/buf.h"
#include "base/map.h"
#include "base/yaml.h"
#include "rules/filter.h"
#include "rules/rules.h"
#include "rules/trees.h"

struct fl_rule_row {
    struct fl_rule rule;
    fl_str *match;
    unsigned *match_lines;
    size_t nmatch;
    bool icase, anchored;
    unsigned folder; /* which of the folders it stands in */
};

struct fl_filter_row {
    struct fl_filter filter;
    fl_str *match;
    unsigned *match_lines;
    size_t nmatch;
    bool icase;
    const fl_yaml *despite;
    unsigned folder;
};

struct fl_cause_row {
    struct fl_cause cause;
    const fl_yaml *explains;
};

struct fl_policy_raw {
    struct fl_policy_row row;
    const fl_yaml *cause;
    unsigned folder;
};

struct fl_loader {
    struct fl_ruleset *rs;
    struct fl_trees trees;
    bool known; /* the file in work was taken by an earlier start */
    unsigned folder;
    struct fl_cause_row *causes;
    size_t ncauses, causes_cap;
    const fl_yaml **groups; /* lists of causes that have a name; node->key is the name */
    size_t ngroups, groups_cap;
    struct fl_rule_row *rules;
    size_t nrules, rules_cap;
    fl_map rule_ids; /* id to index in rules */
    struct fl_policy_raw *policy;
    size_t npolicy, policy_cap;
    struct fl_filter_row *filters;
    size_t nfilters, filters_cap;
    fl_map filter_ids; /* id to index in filters */
    fl_buf hashes;     /* one a file */
};

/* Each takes one file's tree. */
int fl_taxonomy_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err);
int fl_rule_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err);
int fl_policy_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err);
int fl_filter_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err);

/* What compiled filters are made of, for their tests. */
const struct fl_ruleset *fl_filters_rules(const fl_filters *f);
const fl_matcher *fl_filters_matcher(const fl_filters *f);

/* Lay out in the rule set, in this order. */
int fl_taxonomy_finish(struct fl_loader *l, fl_err *err);
int fl_rules_finish(struct fl_loader *l, fl_err *err);
int fl_policy_finish(struct fl_loader *l, fl_err *err);
int fl_filters_finish(struct fl_loader *l, fl_err *err);
/* For a loader that failed: the rows' own expressions. */
void fl_filter_rows_dispose(struct fl_loader *l);

/* A list of causes as people write it: an id, "area.*", the name of a group, or a list of them.
 * Sorted, each once, in the arena; `but` (an index, or -1) is left out. NULL node: *out untouched.
 */
int fl_cause_list(struct fl_loader *l, const fl_yaml *node, int but, const uint16_t **out,
                  size_t *n, fl_err *err);
/* Index of the cause that a scalar names, or a negative error with a hint. */
int fl_cause_named(const struct fl_ruleset *rs, const fl_yaml *node, fl_err *err);
/* Calls `one` for each row of the list under `key`, when there is one, until one fails. */
int fl_each_row(struct fl_loader *l, const fl_yaml *root, const char *key,
                int (*one)(struct fl_loader *l, const fl_yaml *row, fl_err *err), fl_err *err);
/* The value of a key that must be there. */
int fl_needed(const fl_yaml *row, const char *key, const fl_yaml **out, fl_err *err);
int fl_whole_number(const fl_yaml *n, int low, int high, int *out, fl_err *err);
/* An action's id, checked. A NULL node leaves *out untouched. */
int fl_action_of(const fl_yaml *n, const char **out, fl_err *err);
int fl_class_of(const fl_yaml *n, bool dash, enum fl_class *out, fl_err *err);
int fl_role_of(const fl_yaml *n, enum fl_role *out, fl_err *err);
int fl_maturity_of(const fl_yaml *n, enum fl_maturity *out, fl_err *err);
int fl_phase_of(const fl_yaml *n, enum fl_phase_when *out, fl_err *err);
int fl_text_of(const fl_yaml *n, const char **out, fl_err *err);
/* A list of texts with their lines; a single text is a list of one. A NULL node leaves all
 * untouched.
 */
int fl_texts_of(struct fl_loader *l, const fl_yaml *n, fl_str **out, unsigned **lines,
                size_t *count, fl_err *err);
/* The same, each compiled as an expression. *n counts what is compiled, on failure too. */
int fl_regexes_of(struct fl_loader *l, const fl_yaml *node, bool icase, fl_str **text,
                  fl_regex ***out, size_t *n, fl_err *err);
/* The id of a rule or filter: lower-case words joined by '-'. */
bool fl_id_is_good(fl_str s);

/* What a check of rules or filters has found, told as it goes. */
struct fl_findings {
    fl_lint_fn report;
    void *ctx;
    int n;
};
void fl_found(struct fl_findings *f, const char *text);
/* "file:line: what" */
__attribute__((format(printf, 4, 5))) void fl_found_at(struct fl_findings *f, const char *file,
                                                       unsigned line, const char *fmt, ...);

#endif
