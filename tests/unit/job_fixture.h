#ifndef FL_TEST_JOB_FIXTURE_H
#define FL_TEST_JOB_FIXTURE_H
/*
 * What the tests of whole diagnoses share: a temporary folder, an engine, a run over files, and a
 * report as named texts, so that data files can say what they expect of it.
 *
 * Made texts are one printf line each; a list is joined with ", ", what has lines of its own
 * (evidence, reasons, alternatives ...) with newlines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "faultline.h"

/* A new folder below /tmp, its name in `dir`. */
static inline void job_dir_make(char dir[64])
{
    snprintf(dir, 64, "/tmp/fl-job-XXXXXX");
    if (!mkdtemp(dir))
        fail_msg("mkdtemp %s", dir);
}

static inline void job_dir_remove(const char *dir)
{
    char cmd[200];

    snprintf(cmd, sizeof(cmd), "chmod -R u+rwX %s; rm -rf %s", dir, dir);
    if (system(cmd))
        fail_msg("%s", cmd);
}

static inline void job_write(const char *dir, const char *name, fl_str text)
{
    char path[400];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    f = fopen(path, "wb");
    if (!f || (text.n && fwrite(text.p, 1, text.n, f) != text.n) || fclose(f))
        fail_msg("%s cannot be written", path);
}

/* The shipped rules when `rules` is NULL; their compiled form is kept in FL_TEST_CACHE. */
static inline fl_engine *job_engine(const char *rules, bool pcre2_only)
{
    struct fl_engine_opts o = {.rule_dirs = &rules, .nrule_dirs = 1, .pcre2_only = pcre2_only};
    fl_engine *e = NULL;
    fl_err err = {0};

    if (!rules) {
        rules = FL_SOURCE_DIR "/rules";
        o.cache_dir = FL_TEST_CACHE;
    }
    if (fl_engine_open(&o, &e, &err))
        fail_msg("fl_engine_open %s: %s", rules, err.msg);
    return e;
}

static inline fl_diagnosis *job_run_files(const fl_engine *e, const char *const *paths, size_t n)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    fl_err err = {0};

    o.paths = paths;
    o.npaths = n;
    o.threads = 1; /* the tests' allocator hooks count without a lock */
    if (fl_diagnose(e, &o, &d, &err))
        fail_msg("fl_diagnose %s: %s", paths[0], err.msg);
    return d;
}

static inline fl_diagnosis *job_run(const fl_engine *e, const char *path)
{
    return job_run_files(e, &path, 1);
}

static inline void job_number(fl_buf *b, long long v)
{
    if (v >= 0)
        fl_buf_addf(b, "%lld", v);
}

static inline void job_strings(fl_buf *b, const char *const *v, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++)
        fl_buf_addf(b, "%s%s", i ? between : "", v[i]);
}

static inline void job_numbers(fl_buf *b, const int32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fl_buf_addf(b, "%s%d", i ? ", " : "", v[i]);
}

static inline void job_put_evidence(const struct fl_report *r, fl_buf *b)
{
    for (size_t i = 0; i < r->nevidence; i++)
        fl_buf_addf(b, "%s:%llu: %s %s: %s\n", r->evidence[i].at.file,
                    (unsigned long long)r->evidence[i].at.line, r->evidence[i].role,
                    r->evidence[i].cause, r->evidence[i].text);
}

static inline void job_put_action(const struct fl_report *r, const char *key, fl_buf *b)
{
    if (!strcmp(key, "action"))
        fl_buf_addz(b, r->action.id);
    else if (!strcmp(key, "decision"))
        fl_buf_addz(b, r->action.decision);
    else if (!strcmp(key, "advice"))
        fl_buf_addz(b, r->action.advice ? r->action.advice : "");
    else if (!strcmp(key, "exclude"))
        job_strings(b, r->action.exclude_hosts, r->action.nexclude_hosts, ", ");
    else if (!strcmp(key, "resume"))
        job_number(b, r->action.resume_step);
    else if (!strcmp(key, "checkpoint"))
        fl_buf_addz(b, r->action.checkpoint ? r->action.checkpoint : "");
    else if (!strcmp(key, "skip") && r->action.skip_from >= 0)
        fl_buf_addf(b, "%lld-%lld", (long long)r->action.skip_from, (long long)r->action.skip_to);
}

static inline void job_put_list(const struct fl_report *r, const char *key, fl_buf *b)
{
    if (!strcmp(key, "ranks"))
        job_numbers(b, r->location.ranks, r->location.nranks);
    else if (!strcmp(key, "hosts"))
        job_strings(b, r->location.hosts, r->location.nhosts, ", ");
    else if (!strcmp(key, "gpus"))
        job_strings(b, r->location.gpus, r->location.ngpus, ", ");
    else if (!strcmp(key, "gpu_indices"))
        job_numbers(b, r->location.gpu_indices, r->location.ngpu_indices);
    else if (!strcmp(key, "reasons"))
        job_strings(b, r->reasons, r->nreasons, "\n");
    else if (!strcmp(key, "notes"))
        job_strings(b, r->timeline.notes, r->timeline.nnotes, "\n");
    else if (!strcmp(key, "skipped"))
        job_strings(b, r->input.skipped, r->input.nskipped, "\n");
    else if (!strcmp(key, "evidence"))
        job_put_evidence(r, b);
    for (size_t i = 0; i < r->nalternatives && !strcmp(key, "alternatives"); i++)
        fl_buf_addf(b, "%s: %s\n", r->alternatives[i].id, r->alternatives[i].why);
    for (size_t i = 0; i < r->nfollow_on && !strcmp(key, "follow_on"); i++)
        fl_buf_addf(b, "%s: %llu lines, %u ranks\n", r->follow_on[i].cause,
                    (unsigned long long)r->follow_on[i].count, r->follow_on[i].rank_count);
    for (size_t i = 0; i < r->nattempts && !strcmp(key, "attempts"); i++)
        fl_buf_addf(b, "%s%s", i ? ", " : "", r->attempts[i].cause ? r->attempts[i].cause : "-");
}

static inline void job_put_cause(const struct fl_report *r, const char *key, fl_buf *b)
{
    const char *const z[][2] = {{"outcome", r->outcome},        {"cause", r->cause.id},
                                {"class", r->cause.class_name}, {"decided_by", r->cause.decided_by},
                                {"rule", r->cause.rule},        {"summary", r->cause.summary},
                                {"phase", r->timeline.phase}};

    for (size_t i = 0; i < sizeof(z) / sizeof(*z); i++)
        if (!strcmp(key, z[i][0]) && z[i][1])
            fl_buf_addz(b, z[i][1]);
    if (!strcmp(key, "last_step"))
        job_number(b, r->timeline.last_step);
    if (!strcmp(key, "last_healthy_step"))
        job_number(b, r->timeline.last_healthy_step);
    if (!strcmp(key, "ranks_seen"))
        job_number(b, r->input.ranks_seen);
    if (!strcmp(key, "world_size"))
        job_number(b, r->input.world_size);
    if (!strcmp(key, "hosts_seen"))
        job_number(b, r->input.hosts_seen);
}

/* The part of the report that `key` names, as text. False: there is no such key. */
static inline bool job_put(const struct fl_report *r, const char *key, fl_buf *b)
{
    static const char *const keys[] = {"outcome",      "cause",       "class",
                                       "decided_by",   "rule",        "summary",
                                       "phase",        "ranks",       "hosts",
                                       "gpus",         "gpu_indices", "reasons",
                                       "notes",        "skipped",     "evidence",
                                       "alternatives", "follow_on",   "attempts",
                                       "action",       "decision",    "advice",
                                       "exclude",      "resume",      "checkpoint",
                                       "skip",         "last_step",   "last_healthy_step",
                                       "ranks_seen",   "world_size",  "hosts_seen"};

    fl_buf_clear(b);
    job_put_cause(r, key, b);
    job_put_list(r, key, b);
    job_put_action(r, key, b);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!strcmp(key, keys[i]))
            return true;
    return false;
}

#endif
