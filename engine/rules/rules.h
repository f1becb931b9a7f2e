#ifndef FL_RULES_RULES_H
#define FL_RULES_RULES_H
/*
 * Rules, taxonomy and policy: what people write in rules/ (format: rules/README.md), loaded and
 * checked. Everything lives in the rule set's arena and is immutable after loading.
 */
#include "base/arena.h"
#include "base/err.h"
#include "match/match.h"

enum fl_class { FL_CLASS_NONE, FL_CLASS_INFRASTRUCTURE, FL_CLASS_FRAMEWORK, FL_CLASS_SCRIPT };
enum fl_role {
    FL_ROLE_ROOT,
    FL_ROLE_SYMPTOM,
    FL_ROLE_CONFIRM,
    FL_ROLE_RECOVERY,
    FL_ROLE_ADVICE,
    FL_ROLE_BENIGN
};
enum fl_maturity { FL_DRAFT, FL_TEST, FL_STABLE, FL_RETIRED };
enum fl_frame { FL_FRAME_ANY, FL_FRAME_USER, FL_FRAME_LIBRARY };
enum fl_phase_when { FL_WHEN_ANY, FL_WHEN_STARTUP, FL_WHEN_RUNNING };
enum fl_blame { FL_BLAME_SELF, FL_BLAME_PEER, FL_BLAME_NONE };

const char *fl_class_word(enum fl_class c); /* "infrastructure", "framework", "script", "-" */
const char *fl_role_word(enum fl_role r);
const char *fl_maturity_word(enum fl_maturity m);

/* One row of rules/taxonomy.yaml. */
struct fl_cause {
    const char *id, *title, *advice;
    enum fl_class class;
    int precedence;     /* 0..100: breaks ties inside one burst, higher is nearer to the root */
    bool last_resort;   /* any other evidence wins */
    bool gives_way;     /* gives way to a more specific cause */
    bool bystander;     /* an operator's or scheduler's act: before the first fault it overrides */
    bool timeline;      /* the timeline or the ranks' arithmetic finds it: no rule is needed */
    const char *action; /* default action id */
    /* Cause indices, sorted; areas ("net.*") and groups are expanded. Says only what can follow
     * from this cause; that it began first is the pipeline's to see. */
    const uint16_t *explains;
    size_t nexplains;
    const char *file;
    unsigned line;
};

/* A pattern's index in fl_ruleset.patterns is its index in the matcher. */
struct fl_rule {
    const char *id, *file;
    unsigned line;
    uint16_t cause;
    enum fl_role role;
    enum fl_maturity maturity;
    enum fl_class class; /* FL_CLASS_NONE: the cause's */
    enum fl_frame frame;
    enum fl_phase_when phase;
    enum fl_blame blame;
    int strength;        /* 0..100; default by role: root 80, symptom 40, confirm 60 */
    const char *action;  /* NULL: policy decides */
    const char *summary; /* with {named groups}; NULL: the cause's title */
    const char *source;
    uint32_t pattern, npatterns; /* its patterns in fl_ruleset.patterns */
    fl_str *not_text;
    fl_regex *inside; /* must match "FILE FUNCTION" of the traceback's innermost frame; NULL any */
    fl_regex **nots;  /* compiled `not` expressions */
    size_t nnots;
    const fl_str *hits, *misses;
    const unsigned *hit_lines, *miss_lines; /* line numbers in the file, for messages */
    size_t nhits, nmisses;
};

/* One row of rules/policy.yaml; the first that fits decides. */
struct fl_policy_row {
    const char *file;
    unsigned line;
    const uint16_t *causes; /* NULL: any */
    size_t ncauses;
    enum fl_class class; /* FL_CLASS_NONE: any */
    enum fl_phase_when phase;
    int hosts_min, hosts_max; /* number of hosts that the evidence names; max -1: no limit */
    int repeats_min; /* how often the same failure has come before in this log's attempts */
    const char *action, *advice;
};

struct fl_filter;

struct fl_ruleset {
    fl_arena arena;
    struct fl_cause *causes;
    size_t ncauses;
    /* Sorted by id. Retired ones have no patterns; drafts have, so that they can be tested, and
     * whoever diagnoses must pass over them. */
    struct fl_rule *rules;
    size_t nrules;
    struct fl_pattern *patterns; /* id = index of the rule */
    size_t npatterns;
    struct fl_policy_row *policy; /* later folders' rows first */
    size_t npolicy;
    struct fl_filter *filters; /* in file order: see rules/filter.h */
    size_t nfilters;
    struct fl_pattern *filter_patterns; /* id = index of the filter */
    size_t nfilter_patterns;
    char *packed;           /* what texts from the cache are slices of */
    const char *cache_note; /* NULL, or why the cache was not used or not written */
    char version[33];       /* hash of all files' bytes */
    uint16_t unknown, none; /* indices of these causes */
};

/*
 * Loads DIR/taxonomy.yaml, DIR/policy.yaml and every .yaml below DIR/failures and DIR/filters (when
 * they are there), for each folder in turn. Later folders add causes, rules and filters; they may
 * name a rule or filter of an earlier folder only to retire it (id and `maturity: retired`).
 * FL_ERULE carries file and line; FL_EINPUT: a folder or file that cannot be read. Patterns are not
 * compiled here: see fl_matcher_new().
 */
int fl_ruleset_load(const char *const *dirs, size_t n, struct fl_ruleset **out, fl_err *err);
/* The same, sparing the parsing of files whose trees are in the cache folder (NULL: none). The rule
 * set is the same either way. */
int fl_ruleset_load_cached(const char *const *dirs, size_t n, const char *cache_dir,
                           struct fl_ruleset **out, fl_err *err);
/* The same from one text each, for tests; any may be empty. */
int fl_ruleset_parse(fl_str taxonomy, fl_str policy, fl_str rules, struct fl_ruleset **out,
                     fl_err *err);
/* With filters as well. */
int fl_ruleset_parse_filters(fl_str taxonomy, fl_str rules, fl_str filters, struct fl_ruleset **out,
                             fl_err *err);
void fl_ruleset_free(struct fl_ruleset *rs);

int fl_ruleset_cause(const struct fl_ruleset *rs, fl_str id); /* index or -1 */
const struct fl_rule *fl_ruleset_rule(const struct fl_ruleset *rs, fl_str id);
bool fl_cause_explains(const struct fl_cause *a, uint16_t other);
/* The taxonomy's known actions and their decision word and exit code; NULL when unknown. */
struct fl_action {
    const char *id, *decision;
    int exit_code;
};
const struct fl_action *fl_action_find(const char *id);

/*
 * Static lint over a loaded set. Calls `report` for each finding with "file:line: ..." and goes on;
 * returns the number of findings or a negative error. Finds: a rule without hit, near-miss or
 * source; a pattern that is not regular; a pattern with '^'; one that matches the empty line; one
 * that backtracks (fl_pattern_probe); causes of the taxonomy that no root or symptom rule
 * covers and no timeline finds;
 * a summary that names a group its patterns do not have.
 */
typedef void (*fl_lint_fn)(void *ctx, const char *text);
int fl_ruleset_lint(const struct fl_ruleset *rs, fl_lint_fn report, void *ctx, fl_err *err);

#endif
