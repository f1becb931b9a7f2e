#ifndef FL_RULES_FILTER_H
#define FL_RULES_FILTER_H
/*
 * Filters: which lines are routine, which tell what the job is, and which must never go (format:
 * rules/README.md). They are part of the rule set and as immutable as it is.
 */
#include "rules/rules.h"

enum fl_filter_action {
    FL_FILTER_DROP, /* routine: may be left out of a digest, and is counted under the filter's id */
    FL_FILTER_KEEP, /* must never be left out, whatever else matches */
    FL_FILTER_HEAD, /* tells what the job is */
    FL_FILTER_GUARD, /* no verdict by itself: takes a line from the drop filters */
};
const char *fl_filter_word(enum fl_filter_action a);

/* At most so many guards in all folders together. */
#define FL_FILTER_GUARDS 64
/* A longer line, or one that more patterns may match, is not tried at all: its verdict is 0. */
#define FL_FILTER_LINE_MAX (64u << 10)
#define FL_FILTER_TRIES 48

struct fl_filter {
    const char *id, *file, *why, *source;
    unsigned line;
    enum fl_filter_action action;
    enum fl_maturity maturity;   /* draft and retired ones give no verdict */
    bool metric;                 /* of a drop filter: the lines are the job's numbers */
    unsigned guard;              /* of a guard: its bit */
    uint64_t despite;            /* of a drop filter: bits of the guards that do not bind it */
    uint32_t pattern, npatterns; /* its patterns in fl_ruleset.filter_patterns */
    fl_str *not_text;
    fl_regex **nots;
    size_t nnots;
    const fl_str *takes, *misses; /* lines it must take (`drops` or `keeps`), and must not */
    const unsigned *take_lines, *miss_lines;
    size_t ntakes, nmisses;
};

/* Index of the filter with this id, or -1. */
int fl_filter_find(const struct fl_ruleset *rs, fl_str id);

/* The filters compiled: immutable, shared by threads. Borrows the rule set. */
typedef struct fl_filters fl_filters;

/* Errors as of fl_matcher_new(); cheap when the database is in the cache. */
int fl_filters_new(const struct fl_ruleset *rs, const struct fl_match_opts *opts, fl_filters **out,
                   fl_err *err);
void fl_filters_free(fl_filters *f);
/* A scratch for fl_filters_block(); free with fl_match_scratch_free(), before the filters. */
int fl_filters_scratch_new(const fl_filters *f, fl_match_scratch **out, fl_err *err);
const char *fl_filters_cache_note(const fl_filters *f); /* as fl_matcher_cache_note() */

/*
 * The verdict on each of `nlines` whole lines (each ended by LF): index of the deciding filter in
 * fl_ruleset.filters plus 1, or 0 when none has a say. Keep beats head beats drop; among equals the
 * first in file order decides. A drop filter has no say on a line that a guard matches, unless it
 * names that guard in `despite`, nor on one with prose before the match (four plain words in a row:
 * two writers' texts in one line), nor on a line where PCRE2 gave up a match at its limits: there
 * it cannot be known what the line holds. On failure all verdicts are 0.
 *
 * Lines are taken as they stand, with their prefixes. Up to 2^31 bytes.
 */
int fl_filters_block(const fl_filters *f, fl_match_scratch *s, fl_str lines, uint16_t *verdict,
                     size_t nlines, fl_err *err);

/*
 * Tests the filters on their own examples and against the failure rules, with what lint can see.
 * Each line of `takes` gets its own filter's verdict, and the block scan finds it wherever PCRE2
 * does; no near-miss is taken by its filter, nor by any drop filter; no drop filter takes a line of
 * a hit of a failure rule of role root, symptom, confirm or recovery. `only` (NULL: all) restricts
 * it to one filter. Findings are reported as "file:line: ..."; returns their number or a negative
 * error.
 */
struct fl_filters_tally {
    size_t filters, takes, misses, hit_lines;
};
int fl_filters_test(const fl_filters *f, const struct fl_filter *only, fl_lint_fn report, void *ctx,
                    struct fl_filters_tally *tally, fl_err *err);

#endif
