/*
 * Any text as taxonomy, policy and rules: it loads or is refused with a message that names a place,
 * and what loads is whole. Lines of "%%" part the three; with fewer, the last one is the rules, and
 * an input without any meets a small taxonomy of its own. One that begins with "filters:" is
 * filters.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static fl_str part(fl_str *rest)
{
    ptrdiff_t at = fl_str_find(*rest, FL_S("\n%%\n"));
    fl_str head = at < 0 ? *rest : fl_str_sub(*rest, 0, (size_t)at + 1);

    *rest = at < 0 ? (fl_str){NULL, 0} : fl_str_from(*rest, (size_t)at + 4);
    return head;
}

static void check(const struct fl_ruleset *rs)
{
    for (size_t i = 0; i < rs->nrules; i++) {
        const struct fl_rule *r = &rs->rules[i];
        if (r->cause >= rs->ncauses || fl_ruleset_rule(rs, fl_str_c(r->id)) != r ||
            r->pattern + r->npatterns > rs->npatterns)
            abort();
        for (uint32_t k = 0; k < r->npatterns; k++)
            if (rs->patterns[r->pattern + k].id != i)
                abort();
    }
    for (size_t i = 0; i < rs->ncauses; i++) {
        const struct fl_cause *c = &rs->causes[i];
        if (!fl_action_find(c->action) || fl_cause_explains(c, (uint16_t)i) ||
            fl_ruleset_cause(rs, fl_str_c(c->id)) != (int)i)
            abort();
    }
    for (size_t i = 0; i < rs->nfilters; i++) {
        const struct fl_filter *f = &rs->filters[i];
        if (fl_filter_find(rs, fl_str_c(f->id)) != (int)i ||
            f->pattern + f->npatterns > rs->nfilter_patterns ||
            (f->despite && f->action != FL_FILTER_DROP) || f->guard >= FL_FILTER_GUARDS)
            abort();
        for (uint32_t k = 0; k < f->npatterns; k++)
            if (rs->filter_patterns[f->pattern + k].id != i)
                abort();
    }
    for (size_t i = 0; i < rs->npolicy; i++)
        if (!fl_action_find(rs->policy[i].action))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const fl_str small = FL_S("causes:\n- {id: gpu.ecc, class: infrastructure, title: t, "
                                     "action: restart}\n");
    fl_str rest = {(const char *)data, n}, first = part(&rest), second = part(&rest);
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};
    int r;

    if (rest.n)
        r = fl_ruleset_parse(first, second, rest, &rs, &err);
    else if (second.n)
        r = fl_ruleset_parse(first, FL_S(""), second, &rs, &err);
    else if (fl_str_starts(first, FL_S("filters:")))
        r = fl_ruleset_parse_filters(small, FL_S(""), first, &rs, &err);
    else
        r = fl_ruleset_parse(small, FL_S(""), first, &rs, &err);
    if (r == 0)
        check(rs);
    else if (rs || err.code != r || !err.msg[0])
        abort();
    fl_ruleset_free(rs);
    return 0;
}
