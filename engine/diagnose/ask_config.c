/*
 * The section `llm` of the configuration.
 *
 *   llm:
 *     endpoints: [{url, model, api_key_file | api_key_env, timeout, ...}]   in the order of asking
 *     ask_below: 0.8        answers of the rules at or above it never leave the machine
 *     votes: 1              so many answers are asked for, and compared
 *     redact: true          false: only for endpoints on this machine, and those of plain_to
 *     plain_to: [URL]
 *     redact_patterns: [regex]
 */
#include "diagnose/ask.h"
#include "match/match.h"

static int read_endpoints(const fl_yaml *list, fl_arena *a, struct fl_ask_config *out, fl_err *err)
{
    int r = FL_OK;

    if (!list)
        return FL_OK;
    if (list->kind != FL_YAML_LIST)
        return fl_yaml_fail(list, FL_ERULE, err, "'endpoints' must be a list");
    for (const fl_yaml *i = list->first; i; i = i->next)
        out->n++;
    out->endpoints = fl_arena_alloc(a, (out->n + 1) * sizeof(*out->endpoints));
    if (!out->endpoints)
        return fl_fail_nomem(err);
    out->n = 0;
    for (const fl_yaml *i = list->first; i && !r; i = i->next)
        r = fl_llm_endpoint_read(i, a, &out->endpoints[out->n++], err);
    return r;
}

static int read_share(const fl_yaml *y, double *out, fl_err *err)
{
    double v;

    if (!y)
        return FL_OK;
    if (y->kind != FL_YAML_SCALAR || fl_str_f64(y->text, &v) != y->text.n || !(v >= 0 && v <= 1))
        return fl_yaml_fail(y, FL_ERULE, err, "'ask_below' must be a number from 0 to 1");
    *out = v;
    return FL_OK;
}

static int read_list(const fl_yaml *y, fl_arena *a, const fl_str **out, size_t *n, fl_err *err)
{
    fl_str *v = NULL;
    int r = fl_yaml_strs(y, a, &v, n, err);

    if (!r)
        *out = v;
    return r;
}

/* A wrong expression is told where it stands, and not when the first log is to be sent. */
static int check_patterns(const fl_yaml *y, fl_err *err)
{
    int r = FL_OK;

    for (const fl_yaml *i = y ? y->first : NULL; i && !r; i = i->next) {
        fl_regex *re = NULL;
        fl_err why = {0};
        r = fl_regex_new(i->text, false, "redact_patterns", &re, &why);
        fl_regex_free(re);
        if (r)
            r = fl_yaml_fail(i, r == FL_ENOMEM ? r : FL_ERULE, err, "%s", why.msg);
    }
    return r;
}

int fl_ask_config_read(const fl_yaml *llm, fl_arena *a, struct fl_ask_config *out, fl_err *err)
{
    static const char *const known[] = {"endpoints", "ask_below",       "votes", "redact",
                                        "plain_to",  "redact_patterns", NULL};
    static const char *const yes[] = {"false", "true", NULL};
    const fl_yaml *votes = fl_yaml_get(llm, "votes");
    int r, redact = -1;
    uint64_t n;

    *out = (struct fl_ask_config){.ask_below = 0.8, .votes = 1, .redact = true};
    if (!llm)
        return FL_OK;
    r = fl_yaml_known(llm, known, err);
    if (!r)
        r = read_endpoints(fl_yaml_get(llm, "endpoints"), a, out, err);
    if (!r)
        r = read_share(fl_yaml_get(llm, "ask_below"), &out->ask_below, err);
    if (!r)
        r = fl_yaml_word(fl_yaml_get(llm, "redact"), yes, &redact, err);
    if (!r && redact >= 0)
        out->redact = redact;
    if (!r && votes) {
        if (!fl_str_to_u64(votes->text, &n) || n < 1 || n > 9)
            return fl_yaml_fail(votes, FL_ERULE, err, "'votes' must be a number from 1 to 9");
        out->votes = (unsigned)n;
    }
    if (!r)
        r = read_list(fl_yaml_get(llm, "plain_to"), a, &out->plain_to, &out->nplain_to, err);
    if (!r)
        r = read_list(fl_yaml_get(llm, "redact_patterns"), a, &out->patterns, &out->npatterns, err);
    if (!r)
        r = check_patterns(fl_yaml_get(llm, "redact_patterns"), err);
    return r;
}

bool fl_ask_plain(const struct fl_ask_config *c, const struct fl_llm_endpoint *e)
{
    if (c->redact)
        return false;
    if (fl_http_is_loopback(e->url) && (!e->proxy || !*e->proxy || fl_http_is_loopback(e->proxy)))
        return true;
    for (size_t i = 0; i < c->nplain_to; i++)
        if (fl_str_eqz(c->plain_to[i], e->url))
            return true;
    return false;
}
