/*
 * `diagnose incidents add|confirm|correct`: what a person knows becomes an incident.
 *
 * The log is diagnosed as always, and what was found, or what the person says, is stored with the
 * lines that show it; these are printed, so that the person sees by what the incident will be
 * known. A stored incident is confirmed or corrected by its id. A name that is both is taken for
 * the file.
 */
#include "out_incident.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

enum deed { ADD, CONFIRM, CORRECT };

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

struct result {
    const struct cli_args *args;
    const struct fl_past_added *added;
    struct out o;
};

static int print_json(void *ctx, const struct fl_past *p)
{
    const struct fl_past_added *a = ((struct result *)ctx)->added;

    fputs("{\"schema\":\"faultline.incidents/1\",\"stored\":{\"id\":", stdout);
    out_json_text(stdout, a->id);
    printf(",\"duplicate\":%s,\"filled\":%s,\"seen\":%llu,\"lines_from\":\"%s\"},\"incidents\":[",
           a->duplicate ? "true" : "false", a->filled ? "true" : "false",
           (unsigned long long)a->seen, a->lines_from);
    out_incident_json(stdout, p);
    fputs("]}\n", stdout);
    return 0;
}

static int print_text(void *ctx, const struct fl_past *p)
{
    const struct result *r = ctx;
    const struct fl_past_added *a = r->added;

    if (a->duplicate)
        printf("counted on %s, seen %llu times", a->id, (unsigned long long)a->seen);
    else
        printf("stored as %s", a->id);
    fputs(": ", stdout);
    out_text(&r->o, OUT_BOLD, p->cause);
    fputs("  ", stdout);
    out_text(&r->o, OUT_PLAIN, p->title);
    fputs(", known by\n", stdout);
    for (size_t i = 0; i < p->nevidence; i++) {
        fputs("  ", stdout);
        out_cut(&r->o, p->evidence[i], r->o.width - 2);
        fputc('\n', stdout);
    }
    return 0;
}

/* What a person should know about what was stored. */
static void tell(const struct cli_args *args, const struct fl_past_added *a)
{
    if (strcmp(a->lines_from, "pieces") == 0)
        cli_note(args, "the diagnosis has no evidence for that cause; the lines that sound most "
                       "like trouble stand for it");
    else if (strcmp(a->lines_from, "last") == 0)
        cli_note(args, "no line of the log sounds like trouble; its last ones stand for it");
    if (a->duplicate && a->filled)
        cli_note(args, "%s took over what it did not say yet", a->id);
    else if (a->duplicate && (args->fix || args->title || args->explanation))
        cli_note(args,
                 "%s has its own words, and they stay; `diagnose incidents confirm %s` with "
                 "the same options replaces them",
                 a->id, a->id);
}

static int print(const struct cli_session *s, const struct cli_args *args, fl_memory *m,
                 const struct fl_past_added *a)
{
    struct result r = {args, a, {.f = stdout}};
    fl_err err;

    out_init(&r.o, stdout, s->color, args->width);
    tell(args, a);
    if (args->quiet && !args->json)
        return CLI_OK;
    if (fl_memory_get(m, a->id, args->json ? print_json : print_text, &r, &err))
        return cli_fail_err(&err);
    return CLI_OK;
}

static int diagnose_log(const struct cli_session *s, const struct cli_args *args, fl_diagnosis **d)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    fl_err err;
    int r;

    progress_init(&progress, "bytes", args->quiet);
    opts.paths = args->rest;
    opts.npaths = args->nrest;
    opts.progress = on_progress;
    opts.progress_ctx = &progress;
    opts.threads = args->threads;
    opts.digest = true;
    r = fl_diagnose(s->engine, &opts, d, &err);
    progress_end(&progress);
    return r ? cli_fail_err(&err) : CLI_OK;
}

static int learn(const struct cli_session *s, const struct cli_args *args, fl_memory *m,
                 enum deed deed)
{
    static const enum fl_past_origin origins[] = {FL_PAST_USER, FL_PAST_CONFIRMED,
                                                  FL_PAST_CORRECTED};
    struct fl_past_said said = {args->cause, args->title, args->explanation, args->fix,
                                args->source};
    const char *name = args->rest[0];
    bool file = args->nrest > 1 || strcmp(name, "-") == 0 || access(name, F_OK) == 0;
    struct fl_past_added added;
    fl_diagnosis *d = NULL;
    fl_err err;
    int r;

    if (!file && deed != ADD && !strchr(name, '/')) {
        r = fl_memory_judge(m, name, &said, &added, &err);
        if (r == FL_ERROR_NOT_FOUND)
            return cli_fail(CLI_INPUT,
                            "'%.200s' is neither a file nor an incident; `diagnose "
                            "incidents list` lists these",
                            name);
        return r ? cli_fail_err(&err) : print(s, args, m, &added);
    }
    r = diagnose_log(s, args, &d);
    if (r)
        return r;
    r = fl_memory_add_job(m, d, origins[deed], &said, &added, &err);
    fl_diagnosis_free(d);
    if (r == FL_ERROR_NOT_FOUND)
        return cli_fail(CLI_NONE, "%s: `diagnose incidents correct LOG --cause ID`", err.msg);
    return r ? cli_fail_err(&err) : print(s, args, m, &added);
}

static int run(const struct cli_args *args, enum deed deed)
{
    struct cli_session s;
    fl_memory *m = NULL;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK)
        status = cli_check_cause(s.engine, args->cause);
    if (status == CLI_OK)
        status = cli_memory_open(&s, args, NULL, &m);
    if (status == CLI_OK) {
        status = learn(&s, args, m, deed);
        cli_memory_note(args, m);
    }
    fl_memory_free(m);
    cli_session_dispose(&s);
    return status;
}

int cmd_incidents_add(const struct cli_args *args)
{
    if (args->from && (args->nrest || args->cause || args->fix || args->title || args->explanation))
        return cli_fail(CLI_USAGE, "--from takes all from the file; give either that or a LOG");
    if (args->from)
        return cmd_incidents_import(args);
    if (!args->nrest)
        return cli_fail(CLI_USAGE, "what to add is missing: a LOG with --cause ID, or --from FILE");
    if (!args->cause)
        return cli_fail(CLI_USAGE, "the cause is missing: --cause ID; to store what the diagnosis "
                                   "says, `diagnose incidents confirm LOG`");
    return run(args, ADD);
}

int cmd_incidents_confirm(const struct cli_args *args)
{
    return run(args, CONFIRM);
}

int cmd_incidents_correct(const struct cli_args *args)
{
    if (!args->cause)
        return cli_fail(CLI_USAGE, "the right cause is missing: --cause ID");
    return run(args, CORRECT);
}
