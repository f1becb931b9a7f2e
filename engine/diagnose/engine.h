#ifndef FL_DIAGNOSE_ENGINE_H
#define FL_DIAGNOSE_ENGINE_H
/*
 * The engine's inside: rules and the compiled patterns. Immutable after opening.
 */
#include "faultline.h"
#include "match/match.h"
#include "rules/rules.h"

struct fl_aside;

struct fl_engine {
    struct fl_ruleset *rules;
    fl_matcher *matcher;
    uint32_t *pattern_ids; /* of the matcher's patterns: a rule's index, or FL_SIGN_ID + sign */
    size_t npatterns;
    struct fl_rule_info *infos;
    struct fl_filter_info *filter_infos;
    struct fl_aside *aside;     /* what only digests need */
    struct fl_match_opts match; /* as the matcher was made with, for others of its kind */
    fl_arena arena;
    int64_t (*clock_ms)(void *ctx);
    void *clock_ctx;
};

static inline uint32_t fl_engine_pattern_id(const struct fl_engine *e, uint32_t pattern)
{
    return e->pattern_ids[pattern];
}

/* Calls `seen` for each rule that took a line of the log; with `lasting`, not for those that
 * training got over. For tests of rules. */
void fl_diagnosis_rules(const fl_diagnosis *d, bool lasting,
                        void (*seen)(void *ctx, const struct fl_rule *r), void *ctx);

#endif
