#ifndef FL_DIAGNOSE_ASIDE_H
#define FL_DIAGNOSE_ASIDE_H
/*
 * Inside the diagnose room: what only a digest needs, the tokenizer and the filters, opened once an
 * engine, in a thread of their own when digests were announced and else when first asked for.
 */
#include "embed/tokens.h"
#include "match/match.h"
#include "rules/filter.h"

struct fl_aside;

int fl_aside_new(struct fl_aside **out, fl_err *err);
/* Waits for what is being opened. */
void fl_aside_free(struct fl_aside *a);
/* Begin to open. Nothing is promised: what could not be begun is done when asked for. Not to be
 * called from two threads at once. `rules` and `match` are borrowed for good. */
void fl_aside_begin_tokens(struct fl_aside *a);
void fl_aside_begin_filters(struct fl_aside *a, const struct fl_ruleset *rules,
                            const struct fl_match_opts *match);
/* Any thread may ask. NULL: there is no tokenizer that could be used. */
const fl_tokenizer *fl_aside_tokens(struct fl_aside *a);
/* Errors as of fl_filters_new(); asking again tries again. */
int fl_aside_filters(struct fl_aside *a, const struct fl_ruleset *rules,
                     const struct fl_match_opts *match, const fl_filters **out, fl_err *err);

#endif
