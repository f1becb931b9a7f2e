/*
 * The engine: rule files and their compiled form, opened once and used by any number of diagnoses.
 *
 * The rules' patterns and the signs (signs.c) go into one matcher, so that a block is scanned once
 * for everything. Where the data is: beside the program when it runs from a build tree, else under
 * the prefix it was installed to; $FAULTLINE_DATA overrides both.
 */
#include "diagnose/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "diagnose/aside.h"
#include "diagnose/signs.h"
#include "read/prefix.h"
#include "rules/filter.h"

#ifndef FL_VERSION
#define FL_VERSION "0.0.0"
#endif
#ifndef FL_INSTALLED_DATA
#define FL_INSTALLED_DATA "/usr/local/share/faultline"
#endif

const char *fl_version(void)
{
    return FL_VERSION;
}

static int64_t system_clock(void *ctx)
{
    struct timespec ts;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool has_rules(const char *dir, char *out, size_t cap)
{
    char probe[4400];

    snprintf(probe, sizeof(probe), "%s/rules/taxonomy.yaml", dir);
    if (!fl_file_exists(probe) || strlen(dir) >= cap)
        return false;
    memcpy(out, dir, strlen(dir) + 1);
    return true;
}

int fl_data_dir(char *out, size_t cap, fl_err *err)
{
    static const char *const near[] = {".", "..", "../..", "../../..", "../share/faultline"};
    const char *named = getenv("FAULTLINE_DATA"), *self;
    char dir[4300], *real;
    fl_arena a;
    bool found = false, failed;

    if (named && *named)
        return has_rules(named, out, cap)
                   ? FL_OK
                   : fl_fail(err, FL_ENOTFOUND,
                             "%s: $FAULTLINE_DATA has no rules/taxonomy.yaml in it; "
                             "point it at Faultline's folder",
                             named);
    fl_arena_init(&a);
    self = fl_file_self(&a);
    for (size_t i = 0; self && !found && i < sizeof(near) / sizeof(*near); i++) {
        ptrdiff_t slash = fl_str_rfind_c(fl_str_c(self), '/');
        snprintf(dir, sizeof(dir), "%.*s/%s", (int)(slash > 4096 ? 4096 : slash), self, near[i]);
        real = realpath(dir, NULL);
        found = real && has_rules(real, out, cap);
        free(real);
    }
    if (!found)
        found = has_rules(FL_INSTALLED_DATA, out, cap);
    failed = a.failed;
    fl_arena_dispose(&a);
    if (!found && failed)
        return fl_fail_nomem(err);
    return found ? FL_OK
                 : fl_fail(
                       err, FL_ENOTFOUND,
                       "Faultline's rules were not found beside the program; "
                       "install it whole, or set $FAULTLINE_DATA to the folder that holds rules/");
}

static int load_rules(fl_engine *e, const struct fl_engine_opts *opts, fl_err *err)
{
    char data[4096], shipped[4120];
    const char **dirs;
    size_t n = 0;
    int r;

    dirs = fl_malloc((opts->nrule_dirs + 1) * sizeof(*dirs));
    if (!dirs)
        return fl_fail_nomem(err);
    if (opts->nrule_dirs == 0) {
        r = fl_data_dir(data, sizeof(data), err);
        if (r) {
            fl_free(dirs);
            return r;
        }
        snprintf(shipped, sizeof(shipped), "%s/rules", data);
        dirs[n++] = shipped;
    }
    for (size_t i = 0; i < opts->nrule_dirs; i++)
        dirs[n++] = opts->rule_dirs[i];
    r = fl_ruleset_load_cached(dirs, n, opts->cache_dir, &e->rules, err);
    fl_free(dirs);
    return r;
}

static int match_options(fl_engine *e, const struct fl_engine_opts *opts, fl_err *err)
{
    e->match = (struct fl_match_opts){.engine = opts->pcre2_only ? FL_MATCH_PCRE2 : FL_MATCH_AUTO,
                                      .jit = true};
    if (opts->cache_dir && !(e->match.cache_dir = fl_arena_z(&e->arena, fl_str_c(opts->cache_dir))))
        return fl_fail_nomem(err);
    return FL_OK;
}

static int build_matcher(fl_engine *e, fl_err *err)
{
    const struct fl_pattern *signs;
    size_t nsigns = fl_signs(&signs), n = e->rules->npatterns + nsigns;
    struct fl_pattern *all = fl_malloc((n + 1) * sizeof(*all));
    int r;

    e->pattern_ids = fl_malloc((n + 1) * sizeof(*e->pattern_ids));
    if (!all || !e->pattern_ids) {
        fl_free(all);
        return fl_fail_nomem(err);
    }
    if (e->rules->npatterns)
        memcpy(all, e->rules->patterns, e->rules->npatterns * sizeof(*all));
    memcpy(all + e->rules->npatterns, signs, nsigns * sizeof(*all));
    for (size_t i = 0; i < n; i++)
        e->pattern_ids[i] = all[i].id;
    e->npatterns = n;
    r = fl_matcher_new(all, n, &e->match, &e->matcher, err);
    fl_free(all);
    return r;
}

static const char **zlist(fl_arena *a, const fl_str *v, size_t n)
{
    const char **z = fl_arena_alloc(a, (n + 1) * sizeof(*z));

    for (size_t i = 0; z && i < n; i++) {
        z[i] = fl_arena_z(a, v[i]);
        if (!z[i])
            return NULL;
    }
    return z;
}

static int describe_rules(fl_engine *e, fl_err *err)
{
    const struct fl_ruleset *rs = e->rules;

    e->infos = fl_arena_alloc(&e->arena, (rs->nrules + 1) * sizeof(*e->infos));
    if (!e->infos)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < rs->nrules; i++) {
        const struct fl_rule *r = &rs->rules[i];
        const struct fl_cause *c = &rs->causes[r->cause];
        struct fl_rule_info *o = &e->infos[i];
        fl_str *p = fl_arena_alloc(&e->arena, (r->npatterns + 1) * sizeof(*p));
        if (!p)
            return fl_fail_nomem(err);
        for (uint32_t k = 0; k < r->npatterns; k++)
            p[k] = rs->patterns[r->pattern + k].regex;
        *o = (struct fl_rule_info){
            .id = r->id,
            .cause = c->id,
            .role = fl_role_word(r->role),
            .maturity = fl_maturity_word(r->maturity),
            .class_name = fl_class_word(r->class != FL_CLASS_NONE ? r->class : c->class),
            .file = r->file,
            .line = r->line,
            .summary = r->summary,
            .source = r->source,
            .title = c->title,
            .strength = r->strength,
            .npatterns = r->npatterns,
            .nhits = r->nhits,
            .nmisses = r->nmisses,
            .icase = r->npatterns && rs->patterns[r->pattern].icase};
        o->patterns = zlist(&e->arena, p, r->npatterns);
        o->hits = zlist(&e->arena, r->hits, r->nhits);
        o->misses = zlist(&e->arena, r->misses, r->nmisses);
        if (!o->patterns || !o->hits || !o->misses)
            return fl_fail_nomem(err);
    }
    return FL_OK;
}

static int describe_filters(fl_engine *e, fl_err *err)
{
    const struct fl_ruleset *rs = e->rules;

    e->filter_infos = fl_arena_alloc(&e->arena, (rs->nfilters + 1) * sizeof(*e->filter_infos));
    if (!e->filter_infos)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < rs->nfilters; i++) {
        const struct fl_filter *f = &rs->filters[i];
        const struct fl_pattern *p = rs->filter_patterns + f->pattern;
        struct fl_filter_info *o = &e->filter_infos[i];
        const char **z = fl_arena_alloc(&e->arena, (f->npatterns + 1) * sizeof(*z));
        if (!z)
            return fl_fail_nomem(err);
        for (uint32_t k = 0; k < f->npatterns; k++)
            if (!(z[k] = fl_arena_z(&e->arena, p[k].regex)))
                return fl_fail_nomem(err);
        *o = (struct fl_filter_info){.id = f->id,
                                     .action = fl_filter_word(f->action),
                                     .maturity = fl_maturity_word(f->maturity),
                                     .why = f->why,
                                     .source = f->source,
                                     .file = f->file,
                                     .line = f->line,
                                     .metric = f->metric,
                                     .icase = f->npatterns && p->icase,
                                     .patterns = z,
                                     .npatterns = f->npatterns,
                                     .takes = zlist(&e->arena, f->takes, f->ntakes),
                                     .ntakes = f->ntakes,
                                     .misses = zlist(&e->arena, f->misses, f->nmisses),
                                     .nmisses = f->nmisses};
        if (!o->takes || !o->misses)
            return fl_fail_nomem(err);
    }
    return FL_OK;
}

int fl_engine_open(const struct fl_engine_opts *opts, fl_engine **out, fl_err *err)
{
    fl_engine *e = fl_calloc(1, sizeof(*e));
    int r;

    if (!e)
        return fl_fail_nomem(err);
    fl_arena_init(&e->arena);
    e->clock_ms = opts->clock_ms ? opts->clock_ms : system_clock;
    e->clock_ctx = opts->clock_ctx;
    r = match_options(e, opts, err);
    if (!r)
        r = fl_aside_new(&e->aside, err);
    if (!r && opts->digests)
        fl_aside_begin_tokens(e->aside);
    if (!r)
        r = load_rules(e, opts, err);
    if (!r && opts->digests)
        fl_aside_begin_filters(e->aside, e->rules, &e->match);
    if (!r)
        r = build_matcher(e, err);
    if (!r)
        r = describe_rules(e, err);
    if (!r)
        r = describe_filters(e, err);
    if (r) {
        fl_engine_free(e);
        return r;
    }
    *out = e;
    return FL_OK;
}

void fl_engine_free(fl_engine *e)
{
    if (!e)
        return;
    fl_aside_free(e->aside);
    fl_matcher_free(e->matcher);
    fl_ruleset_free(e->rules);
    fl_free(e->pattern_ids);
    fl_arena_dispose(&e->arena);
    fl_free(e);
}

const char *fl_engine_rules_version(const fl_engine *e)
{
    return e->rules->version;
}

const char *fl_engine_scanner(const fl_engine *e)
{
    return fl_matcher_engine(e->matcher);
}

const char *fl_engine_cache_note(const fl_engine *e)
{
    const char *note = fl_matcher_cache_note(e->matcher);

    return note ? note : e->rules->cache_note;
}

size_t fl_engine_rules(const fl_engine *e)
{
    return e->rules->nrules;
}

const struct fl_rule_info *fl_engine_rule(const fl_engine *e, size_t i)
{
    return &e->infos[i];
}

const struct fl_rule_info *fl_engine_rule_by_id(const fl_engine *e, const char *id)
{
    const struct fl_rule *r = fl_ruleset_rule(e->rules, fl_str_c(id));

    return r ? &e->infos[r - e->rules->rules] : NULL;
}

size_t fl_engine_causes(const fl_engine *e)
{
    return e->rules->ncauses;
}

void fl_engine_cause(const fl_engine *e, size_t i, struct fl_cause_info *out)
{
    const struct fl_cause *c = &e->rules->causes[i];

    *out = (struct fl_cause_info){c->id, c->title, fl_class_word(c->class)};
}

size_t fl_engine_filters(const fl_engine *e)
{
    return e->rules->nfilters;
}

const struct fl_filter_info *fl_engine_filter(const fl_engine *e, size_t i)
{
    return &e->filter_infos[i];
}

const struct fl_filter_info *fl_engine_filter_by_id(const fl_engine *e, const char *id)
{
    int at = fl_filter_find(e->rules, fl_str_c(id));

    return at < 0 ? NULL : &e->filter_infos[at];
}

bool fl_pattern_portable(const char *regex)
{
    return fl_pattern_is_regular(fl_str_c(regex));
}

size_t fl_printable(const char *text, char *out, size_t cap)
{
    return fl_text_escape(fl_str_c(text), out, cap);
}

bool fl_time_from_text(const char *text, int64_t *us)
{
    struct fl_time t;
    fl_str s = fl_str_c(text);
    unsigned y, m, d;
    char tail;

    if (sscanf(text, "%4u-%2u-%2u%c", &y, &m, &d, &tail) == 3 && y >= 1970 && m >= 1 && m <= 12 &&
        d >= 1 && d <= 31) {
        *us = fl_days_from_civil((int)y, m, d) * 86400000000LL;
        return true;
    }
    if (fl_time_parse(s, &t) != s.n || t.kind != FL_TIME_WALL)
        return false;
    *us = fl_time_wall(&t);
    return true;
}
