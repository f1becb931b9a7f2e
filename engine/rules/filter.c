/*
 * Filters, from YAML to a verdict on lines.
 *
 * A filter looks at one line as it stands in the log. It knows nothing of what the line's
 * neighbours say, of the rank that wrote it or of the phase: whoever makes a digest folds lines by
 * shape and asks once for a shape, and an answer that depended on more than the line would be wrong
 * for the others of that shape.
 *
 * What is dropped is lost to the reader, so everything here leans to the side of not dropping. Keep
 * and head beat drop. Guards are words that no routine line should hold ("error", "timed out",
 * "loss: nan"); they stand in a file like all else, and a drop filter has no say over a line with
 * one of them unless it names that guard: so a pattern that is a little too wide, or a framework
 * that appends its trouble to a routine line, costs a line of the digest and not the cause of the
 * failure. Guards were chosen over negative lists in every filter because the hundredth list would
 * have been forgotten. A line that is too long, that too many patterns may match, or where PCRE2
 * gave up is not judged.
 *
 * `anchored` as failure rules have it is refused: where a message begins is known to the
 * room that reads prefixes, which this one does not see. Patterns hold on to the fixed text of a
 * line instead, and where they can to its end.
 */
#include "rules/filter.h"

#include <stdlib.h>

#include "rules/parts.h"
#include "base/alloc.h"

#define MAX_FILTERS 65534

static const char *const action_words[] = {"drop", "keep", "head", "guard", NULL};

const char *fl_filter_word(enum fl_filter_action a)
{
    return action_words[a];
}

int fl_filter_find(const struct fl_ruleset *rs, fl_str id)
{
    for (size_t i = 0; i < rs->nfilters; i++)
        if (fl_str_eqz(id, rs->filters[i].id))
            return (int)i;
    return -1;
}

/* Examples stand under the word that says what happens to them: `drops`, or `keeps` for all others.
 */
static int examples(struct fl_loader *l, const fl_yaml *n, struct fl_filter *f, fl_err *err)
{
    bool drop = f->action == FL_FILTER_DROP;
    const fl_yaml *wrong = fl_yaml_get(n, drop ? "keeps" : "drops");
    unsigned *take_lines = NULL, *miss_lines = NULL;
    fl_str *takes = NULL, *misses = NULL;
    int r;

    if (wrong)
        return fl_yaml_fail(wrong, FL_ERULE, err,
                            "a filter with action %s has its lines under '%s'",
                            action_words[f->action], drop ? "drops" : "keeps");
    if ((r = fl_texts_of(l, fl_yaml_get(n, drop ? "drops" : "keeps"), &takes, &take_lines,
                         &f->ntakes, err)) ||
        (r = fl_texts_of(l, fl_yaml_get(n, "misses"), &misses, &miss_lines, &f->nmisses, err)))
        return r;
    f->takes = takes;
    f->take_lines = take_lines;
    f->misses = misses;
    f->miss_lines = miss_lines;
    return FL_OK;
}

static int body(struct fl_loader *l, const fl_yaml *n, struct fl_filter_row *row, fl_err *err)
{
    struct fl_filter *f = &row->filter;
    const fl_yaml *match, *action, *metric = fl_yaml_get(n, "metric");
    int r, word = 0;

    if ((r = fl_needed(n, "action", &action, err)) || (r = fl_needed(n, "match", &match, err)) ||
        (r = fl_yaml_word(action, action_words, &word, err)))
        return r;
    f->action = (enum fl_filter_action)word;
    row->despite = fl_yaml_get(n, "despite");
    if (f->action != FL_FILTER_DROP && (row->despite || metric))
        return fl_yaml_fail(row->despite ? row->despite : metric, FL_ERULE, err,
                            "'%s' is for filters with action drop",
                            row->despite ? "despite" : "metric");
    if ((r = fl_yaml_bool(metric, &f->metric, err)) ||
        (r = fl_yaml_bool(fl_yaml_get(n, "icase"), &row->icase, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "why"), &f->why, err)) ||
        (r = fl_text_of(fl_yaml_get(n, "source"), &f->source, err)) ||
        (r = fl_texts_of(l, match, &row->match, &row->match_lines, &row->nmatch, err)) ||
        (r = examples(l, n, f, err)))
        return r;
    if (row->nmatch == 0)
        return fl_yaml_fail(match, FL_ERULE, err, "'match' has no pattern; add one");
    return fl_regexes_of(l, fl_yaml_get(n, "not"), row->icase, &f->not_text, &f->nots, &f->nnots,
                         err);
}

static void drop_regexes(struct fl_filter *f)
{
    for (size_t i = 0; i < f->nnots; i++)
        fl_regex_free(f->nots[i]);
    f->nnots = 0;
}

void fl_filter_rows_dispose(struct fl_loader *l)
{
    for (size_t i = 0; i < l->nfilters; i++)
        drop_regexes(&l->filters[i].filter);
}

/* As with rules: an id that is there already may only be retired, by a later folder. */
static int again(struct fl_loader *l, const fl_yaml *n, uint32_t at, enum fl_maturity maturity,
                 fl_err *err)
{
    struct fl_filter_row *old = &l->filters[at];

    if (old->folder == l->folder)
        return fl_yaml_fail(n, FL_ERULE, err, "filter '%s' stands already in %s:%u; ids are unique",
                            old->filter.id, old->filter.file, old->filter.line);
    if (maturity != FL_RETIRED)
        return fl_yaml_fail(n, FL_ERULE, err,
                            "filter '%s' belongs to %s:%u; retire it here (maturity: retired) and "
                            "give the new filter another id",
                            old->filter.id, old->filter.file, old->filter.line);
    old->filter.maturity = FL_RETIRED;
    return FL_OK;
}

static int one_filter(struct fl_loader *l, const fl_yaml *n, fl_err *err)
{
    static const char *const known[] = {"id",    "action", "maturity", "match", "not",
                                        "icase", "metric", "despite",  "why",   "source",
                                        "drops", "keeps",  "misses",   NULL};
    struct fl_filter_row row = {.filter = {.file = n->file, .line = n->line, .maturity = FL_STABLE},
                                .folder = l->folder};
    const fl_yaml *id, *maturity = fl_yaml_get(n, "maturity");
    uint32_t at;
    int r;

    if ((r = fl_yaml_known(n, known, err)) || (r = fl_needed(n, "id", &id, err)) ||
        (r = fl_text_of(id, &row.filter.id, err)) ||
        (maturity && (r = fl_maturity_of(maturity, &row.filter.maturity, err))))
        return r;
    if (!fl_id_is_good(id->text))
        return fl_yaml_fail(id, FL_ERULE, err,
                            "filter id '%s' must be lower-case words joined by '-'", row.filter.id);
    if (fl_map_get(&l->rule_ids, id->text, &at))
        return fl_yaml_fail(id, FL_ERULE, err, "'%s' is a failure rule's id already",
                            row.filter.id);
    if (fl_map_get(&l->filter_ids, id->text, &at))
        return again(l, n, at, row.filter.maturity, err);
    if (l->nfilters >= MAX_FILTERS)
        return fl_yaml_fail(n, FL_ELIMIT, err, "more than %d filters", MAX_FILTERS);
    if (fl_grow((void **)&l->filters, &l->filters_cap, l->nfilters + 1, sizeof(*l->filters)))
        return fl_fail_nomem(err);
    if (row.filter.maturity != FL_RETIRED || fl_yaml_get(n, "match"))
        r = body(l, n, &row, err);
    if (r == FL_OK && fl_map_set(&l->filter_ids, id->text, (uint32_t)l->nfilters))
        r = fl_fail_nomem(err);
    if (r) {
        drop_regexes(&row.filter);
        return r;
    }
    l->filters[l->nfilters++] = row;
    return FL_OK;
}

int fl_filter_rows(struct fl_loader *l, const fl_yaml *root, fl_err *err)
{
    static const char *const known[] = {"filters", NULL};
    int r = fl_yaml_known(root, known, err);

    return r ? r : fl_each_row(l, root, "filters", one_filter, err);
}

static int number_guards(struct fl_loader *l, fl_err *err)
{
    unsigned n = 0;

    for (size_t i = 0; i < l->nfilters; i++) {
        struct fl_filter *f = &l->filters[i].filter;
        if (f->action != FL_FILTER_GUARD)
            continue;
        if (n == FL_FILTER_GUARDS)
            return fl_fail(err, FL_ELIMIT, "%s:%u: more than %d guards", f->file, f->line,
                           FL_FILTER_GUARDS);
        f->guard = n++;
    }
    return FL_OK;
}

/* A guard may stand in a later file than the filter that names it. */
static int resolve_despite(struct fl_loader *l, struct fl_filter_row *row, fl_err *err)
{
    fl_str *names = NULL;
    unsigned *lines = NULL;
    size_t n = 0;
    uint32_t at;
    int r = fl_texts_of(l, row->despite, &names, &lines, &n, err);

    for (size_t i = 0; r == FL_OK && i < n; i++) {
        if (!fl_map_get(&l->filter_ids, names[i], &at) ||
            l->filters[at].filter.action != FL_FILTER_GUARD)
            return fl_fail(err, FL_ERULE, "%s:%u: '%.*s' is not a filter with action guard",
                           row->filter.file, lines[i], FL_FMT(fl_str_sub(names[i], 0, 80)));
        row->filter.despite |= UINT64_C(1) << l->filters[at].filter.guard;
    }
    return r;
}

static int lay_patterns(struct fl_ruleset *rs, const struct fl_filter_row *row, uint32_t id,
                        fl_err *err)
{
    struct fl_filter *f = &rs->filters[id];

    f->pattern = (uint32_t)rs->nfilter_patterns;
    if (f->maturity == FL_RETIRED)
        return FL_OK;
    for (size_t i = 0; i < row->nmatch; i++) {
        const char *where = fl_arena_f(&rs->arena, "%s:%u", f->file, row->match_lines[i]);
        if (!where)
            return fl_fail_nomem(err);
        rs->filter_patterns[rs->nfilter_patterns++] =
            (struct fl_pattern){row->match[i], id, row->icase, false, where};
        f->npatterns++;
    }
    return FL_OK;
}

int fl_filters_finish(struct fl_loader *l, fl_err *err)
{
    struct fl_ruleset *rs = l->rs;
    size_t n = 0, count = l->nfilters;
    int r = number_guards(l, err);

    for (size_t i = 0; i < count && r == FL_OK; i++) {
        r = resolve_despite(l, &l->filters[i], err);
        n += l->filters[i].nmatch;
    }
    if (r)
        return r;
    rs->filters = fl_arena_alloc(&rs->arena, (count + 1) * sizeof(*rs->filters));
    rs->filter_patterns = fl_arena_alloc(&rs->arena, (n + 1) * sizeof(*rs->filter_patterns));
    if (!rs->filters || !rs->filter_patterns)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        rs->filters[i] = l->filters[i].filter;
    rs->nfilters = count;
    l->nfilters = 0; /* the compiled `not` expressions belong to the rule set now */
    for (uint32_t i = 0; i < count && r == FL_OK; i++)
        r = lay_patterns(rs, &l->filters[i], i, err);
    return r;
}
