/*
 * Rules tested by the program itself, on their own examples.
 *
 * A hit is written to a temporary file and diagnosed like any log, so what is tested is what users
 * get: prefixes, tracebacks, arbitration between rules on one line. A hit passes when its rule took
 * a line of it; a near-miss passes when its rule took none. Advice and benign rules take no line,
 * they refuse it to others: their hits pass when no root or symptom rule takes it.
 *
 * Each pattern is also looked for where the block scan might lose it (fl_match_verify()): a rule
 * that works alone must not be lost beside others.
 *
 * Stable rules must be silent on the healthy logs: there a root rule at `stable` that takes a line
 * which training did not get over is a failure.
 */
#define _GNU_SOURCE
#include "diagnose/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "rules/filter.h"

struct tester {
    const fl_engine *e;
    void (*tell)(void *ctx, const char *text);
    void *ctx;
    struct fl_rules_result *out;
    char path[64];
};

struct seen {
    const struct fl_rule *wanted;
    bool found;
    const struct fl_rule *other; /* another root or symptom rule */
};

static void note_rule(void *ctx, const struct fl_rule *r)
{
    struct seen *s = ctx;

    if (r == s->wanted)
        s->found = true;
    else if (r->role == FL_ROLE_ROOT || r->role == FL_ROLE_SYMPTOM)
        s->other = r;
}

__attribute__((format(printf, 2, 3))) static void tell(struct tester *t, const char *fmt, ...)
{
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    t->out->failures++;
    t->tell(t->ctx, text);
}

static int write_example(struct tester *t, fl_str text, fl_err *err)
{
    int fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;

    while (ok && text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        ok = n > 0;
        text = fl_str_from(text, ok ? (size_t)n : 0);
    }
    ok = ok && write(fd, "\n", 1) == 1;
    if (fd >= 0)
        close(fd);
    return ok ? FL_OK
              : fl_fail(err, FL_EIO, "%s: the example cannot be written: %s", t->path,
                        strerror(errno));
}

static int run_example(struct tester *t, fl_str text, struct seen *s, fl_err *err)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    const char *path = t->path;
    fl_diagnosis *d = NULL;
    int r = write_example(t, text, err);

    opts.paths = &path;
    opts.npaths = 1;
    if (!r)
        r = fl_diagnose(t->e, &opts, &d, err);
    if (!r)
        fl_diagnosis_rules(d, false, note_rule, s);
    fl_diagnosis_free(d);
    return r;
}

/* A rule for the running phase needs a step before its line. */
static int run_in_phase(struct tester *t, const struct fl_rule *r, fl_str text, struct seen *s,
                        fl_err *err)
{
    fl_buf b;
    int rc;

    if (r->phase != FL_WHEN_RUNNING)
        return run_example(t, text, s, err);
    fl_buf_init(&b, text.n + 200);
    fl_buf_addz(&b, "step: 10 loss: 2.31 grad_norm: 0.5 tps: 900\n");
    fl_buf_add(&b, text);
    rc = fl_buf_check(&b, "the example", err);
    if (!rc)
        rc = run_example(t, fl_buf_str(&b), s, err);
    fl_buf_dispose(&b);
    return rc;
}

static int test_rule(struct tester *t, const struct fl_rule *r, fl_err *err)
{
    bool quiet = r->role == FL_ROLE_ADVICE || r->role == FL_ROLE_BENIGN;
    int rc;

    t->out->rules++;
    for (size_t i = 0; i < r->nhits; i++) {
        struct seen s = {.wanted = r};
        rc = run_in_phase(t, r, r->hits[i], &s, err);
        if (rc)
            return rc;
        t->out->hits++;
        if (quiet ? s.other != NULL : !s.found)
            tell(t, "%s:%u: '%s': hit %zu is taken by %s", r->file,
                 r->hit_lines ? r->hit_lines[i] : r->line, r->id, i + 1,
                 s.other ? s.other->id : "no rule");
    }
    for (size_t i = 0; i < r->nmisses; i++) {
        struct seen s = {.wanted = r};
        rc = run_in_phase(t, r, r->misses[i], &s, err);
        if (rc)
            return rc;
        t->out->misses++;
        if (!quiet && s.found)
            tell(t, "%s:%u: '%s': near-miss %zu is taken by the rule", r->file,
                 r->miss_lines ? r->miss_lines[i] : r->line, r->id, i + 1);
    }
    return FL_OK;
}

/* Does the scan find the rule's patterns on its hits, wherever PCRE2 does? */
static int test_scan(struct tester *t, const struct fl_rule *r, fl_match_scratch *s, fl_err *err)
{
    fl_buf lost;
    int rc = 0;

    fl_buf_init(&lost, 1 << 20);
    for (uint32_t k = 0; rc >= 0 && k < r->npatterns; k++) {
        int missing = 0;
        fl_buf_clear(&lost);
        for (size_t i = 0; rc >= 0 && i < r->nhits; i++) {
            fl_str rest = r->hits[i];
            for (; rc >= 0 && rest.n; missing += rc > 0 ? rc : 0)
                rc = fl_match_verify(t->e->matcher, s, r->pattern + k, fl_str_cut(&rest, '\n'),
                                     missing ? NULL : &lost, err);
        }
        if (missing)
            tell(t, "%s: '%s': %s loses this pattern where PCRE2 finds it, as in: %.*s",
                 t->e->rules->patterns[r->pattern + k].where, r->id,
                 fl_matcher_engine(t->e->matcher), FL_FMT(fl_str_sub(fl_buf_str(&lost), 0, 400)));
    }
    fl_buf_dispose(&lost);
    return rc < 0 ? rc : FL_OK;
}

static void lint_line(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
}

struct quiet {
    struct tester *t;
    const char *log;
};

static void quiet_rule(void *ctx, const struct fl_rule *r)
{
    struct quiet *q = ctx;

    if (r->role == FL_ROLE_ROOT && r->maturity == FL_STABLE && r->strength >= 80)
        tell(q->t, "%s:%u: '%s' is stable and fires on the healthy log %s", r->file, r->line, r->id,
             q->log);
}

static int test_quiet(struct tester *t, const char *dir, fl_err *err)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    const char **names;
    fl_arena a;
    size_t n = 0;
    int r;

    fl_arena_init(&a);
    r = fl_file_list(dir, &a, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        const char *path = fl_file_join(&a, dir, names[i]);
        struct quiet q = {t, names[i]};
        fl_diagnosis *d = NULL;
        if (!path)
            r = fl_fail_nomem(err);
        opts.paths = &path;
        opts.npaths = 1;
        if (!r)
            r = fl_diagnose(t->e, &opts, &d, err);
        if (!r) {
            const struct fl_report *rep = fl_diagnosis_report(d);
            t->out->quiet_logs++;
            fl_diagnosis_rules(d, true, quiet_rule, &q);
            if (strcmp(rep->outcome, "healthy") != 0)
                tell(t, "%s/%s: a healthy log is called %s", dir, names[i], rep->cause.id);
        }
        fl_diagnosis_free(d);
    }
    fl_arena_dispose(&a);
    return r;
}

static int test_filters(struct tester *t, const struct fl_filter *only, fl_err *err)
{
    struct fl_filters_tally tally = {0};
    fl_filters *f = NULL;
    int r;

    if (!t->e->rules->nfilters)
        return FL_OK;
    r = fl_filters_new(t->e->rules, &t->e->match, &f, err);
    if (!r)
        r = fl_filters_test(f, only, lint_line, t, &tally, err);
    fl_filters_free(f);
    t->out->filters = tally.filters;
    t->out->filter_lines = tally.takes + tally.misses;
    return r < 0 ? r : FL_OK;
}

static int test_all_rules(struct tester *t, const struct fl_rule *one, fl_err *err)
{
    fl_match_scratch *scratch = NULL;
    int r = fl_match_scratch_new(t->e->matcher, &scratch, err);

    for (size_t i = 0; !r && i < t->e->rules->nrules; i++) {
        const struct fl_rule *rule = &t->e->rules->rules[i];
        if (rule->maturity != FL_RETIRED && rule->maturity != FL_DRAFT && (!one || rule == one))
            r = test_rule(t, rule, err);
        if (!r && (!one || rule == one))
            r = test_scan(t, rule, scratch, err);
    }
    fl_match_scratch_free(scratch);
    return r;
}

int fl_rules_test(const fl_engine *e, const char *id, const char *quiet_dir,
                  void (*tell_fn)(void *ctx, const char *text), void *ctx,
                  struct fl_rules_result *out, fl_err *err)
{
    struct fl_rules_result result = {0};
    struct tester t = {.e = e, .tell = tell_fn, .ctx = ctx, .out = &result};
    const struct fl_rule *one = id ? fl_ruleset_rule(e->rules, fl_str_c(id)) : NULL;
    int r = FL_OK, fd, at = id && !one ? fl_filter_find(e->rules, fl_str_c(id)) : -1;

    if (id && !one && at < 0)
        return fl_fail(err, FL_ENOTFOUND, "there is no rule '%s'; see diagnose rules list", id);
    if (at >= 0) {
        r = test_filters(&t, &e->rules->filters[at], err);
        if (!r)
            *out = result;
        return r;
    }
    snprintf(t.path, sizeof(t.path), "/tmp/faultline-rule-XXXXXX");
    fd = mkostemp(t.path, O_CLOEXEC);
    if (fd < 0)
        return fl_fail(err, FL_EIO, "%s: cannot be made: %s", t.path, strerror(errno));
    close(fd);
    if (!one) {
        r = fl_ruleset_lint(e->rules, lint_line, &t, err);
        r = r > 0 ? FL_OK : r;
    }
    if (!r)
        r = test_all_rules(&t, one, err);
    if (!r && !one)
        r = test_filters(&t, NULL, err);
    if (!r && !one && quiet_dir)
        r = test_quiet(&t, quiet_dir, err);
    unlink(t.path);
    if (!r)
        *out = result;
    return r;
}
