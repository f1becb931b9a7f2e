/*
 * `diagnose LOG...`: one job, or with --each a job an argument.
 *
 * With --each a log that cannot be read is told on stderr and the others are still diagnosed: a
 * nightly run over a thousand jobs must not end at the first broken one. The status is then the
 * highest of all. --each and --exit-decision exclude each other, as there is no one decision.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "out_text.h"
#include "progress.h"
#include "repl.h"

#define BUDGET_SECONDS 240 /* for the whole answer */

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static int print_json(const struct fl_report *r, bool indented)
{
    char *text = NULL;
    fl_err err;

    if (fl_report_json(r, indented, &text, &err))
        return cli_fail_err(&err);
    puts(text);
    fl_text_free(text);
    return CLI_OK;
}

static int status_of(const struct fl_report *r, const struct cli_args *args)
{
    if (args->exit_decision)
        return r->action.exit_code;
    return r->outcome[0] == 'd' ? CLI_OK : CLI_NONE;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What a language model says, where one is configured. `seconds`: what past incidents have left of
 * the budget. */
static void ask(const struct cli_session *s, const struct cli_args *args, fl_diagnosis *d,
                fl_memory *m, double seconds)
{
    struct fl_ask_opts o = {.config = s->config,
                            .force = args->ask,
                            .seconds = seconds,
                            .record = args->record,
                            .replay = args->replay,
                            .memory = m};
    const struct fl_report *r = fl_diagnosis_report(d);
    struct progress progress;
    fl_err err;

    progress_init(&progress, "answer", args->quiet);
    progress_say(&progress, "asking the language model");
    if (fl_diagnosis_ask(s->engine, d, &o, &err))
        cli_note(args, "the language model could not be asked: %s", err.msg);
    progress_end(&progress);
    if (r->llm && r->llm->error)
        cli_note(args,
                 r->llm->cause ? "the language model changes nothing: %s"
                               : "no answer of a language model: %s",
                 r->llm->error);
}

/* Why --record keeps nothing, or --replay is not looked at. */
static const char *unused_recording(const struct cli_session *s, const struct cli_args *args)
{
    if (!s->config || !s->config->nendpoints)
        return args->record ? "nothing is recorded: llm.endpoints of the configuration names none"
                            : "the recording is not used: llm.endpoints of the configuration must "
                              "name the endpoint that was recorded";
    if (args->offline && args->record)
        return "nothing is recorded: --offline asks nobody";
    return args->record ? "nothing is recorded: the rules are sure, so that nobody is asked; --ask "
                          "asks in any case"
                        : "the recording is not used: the rules are sure, so that nobody is asked; "
                          "--ask asks in any case";
}

/* Past incidents are asked about a job that no rule resolves, a language model about one that the
 * rules do not resolve surely. That they cannot be asked is told, and changes nothing else. */
static void consult(const struct cli_session *s, const struct cli_args *args, fl_diagnosis *d)
{
    double budget = args->seconds > 0 ? args->seconds : BUDGET_SECONDS, start = now(), left;
    bool unknown = fl_diagnosis_report(d)->outcome[0] == 'u';
    bool model = s->config && s->config->nendpoints && (!args->offline || args->replay) &&
                 fl_diagnosis_wants_model(d, s->config, args->ask);
    struct fl_memory_opts mo = {
        .seconds = args->seconds, .record = args->record, .replay = args->replay};
    struct progress progress;
    fl_memory *m = NULL;
    fl_err err;
    int r = 0;

    if (args->ask && !args->offline && !(s->config && s->config->nendpoints))
        cli_note(args,
                 "no language model was asked: llm.endpoints of the configuration names none");
    if (!model && (args->record || args->replay))
        cli_note(args, "%s", unused_recording(s, args));
    if (!model && (!unknown || args->no_memory))
        return;
    if (!args->no_memory) {
        progress_init(&progress, "incidents", args->quiet);
        progress_say(&progress, "asking the memory of past incidents");
        cli_memory_place(s, args, &mo);
        mo.offline = args->offline && !args->replay; /* a replay goes nowhere */
        r = fl_memory_open(s->engine, &mo, &m, &err);
        if (!r)
            r = fl_diagnosis_consult(d, m, &err);
        progress_end(&progress);
        if (r && (err.code != FL_ERROR_USAGE || args->verbose)) /* no home: as with the cache */
            cli_note(args, "past incidents could not be asked: %s", err.msg);
        else if (!r && fl_memory_note(m))
            cli_note(args, "%s", fl_memory_note(m));
    }
    left = budget - (now() - start);
    if (model)
        ask(s, args, d, m, left > 0 ? left : 0.001);
    fl_memory_free(m);
}

static int one(const struct cli_session *s, const struct cli_args *args, const char *const *paths,
               size_t n)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    fl_diagnosis *d = NULL;
    const struct fl_report *r;
    struct out o;
    fl_err err;
    int status;

    progress_init(&progress, "bytes", args->quiet);
    opts.paths = paths;
    opts.npaths = n;
    opts.since_us = args->since_us;
    opts.until_us = args->until_us;
    opts.threads = args->threads;
    opts.progress = on_progress;
    opts.progress_ctx = &progress;
    opts.digest = true;
    status = fl_diagnose(s->engine, &opts, &d, &err);
    progress_end(&progress);
    if (status)
        return cli_fail_err(&err);
    r = fl_diagnosis_report(d);
    consult(s, args, d);
    if (args->json) {
        status = print_json(r, !args->each && isatty(STDOUT_FILENO));
    } else {
        out_init(&o, stdout, s->color, args->width);
        out_report(&o, r, args->verbose);
    }
    if (status == CLI_OK)
        status = status_of(r, args);
    fl_diagnosis_free(d);
    return status;
}

static int each(const struct cli_session *s, const struct cli_args *args)
{
    int worst = CLI_OK;

    for (size_t i = 0; i < args->nrest; i++) {
        int status;

        if (!args->json) {
            printf("%s==> ", i ? "\n" : "");
            out_text(&(struct out){.f = stdout}, OUT_PLAIN, args->rest[i]);
            printf(" <==\n");
            fflush(stdout);
        }
        status = one(s, args, args->rest + i, 1);
        if (status > worst)
            worst = status;
        /* Nobody reads any more: the rest would be work for nothing. main() tells. */
        if (fflush(stdout) || ferror(stdout))
            break;
    }
    return worst;
}

/* A word that is neither a file nor a command may be a slip: `diagnose rulse list`. */
static void hint(const struct cli_args *args)
{
    const char *word = args->rest[0], *nearest = NULL;
    size_t least = SIZE_MAX, d;

    if (access(word, F_OK) == 0)
        return;
    for (const struct cli_command *c = cli_commands + 1; c->name; c++) {
        struct out_line first = {.n = 0};

        out_line_add(&first, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (cli_near(word, first.p, &d) && d < least) {
            nearest = c->name;
            least = d;
        }
    }
    if (nearest)
        cli_note(args, "'%s' was taken for a log; the nearest command is `%.*s`", word,
                 (int)strcspn(nearest, " "), nearest);
}

int cmd_diagnose(const struct cli_args *args)
{
    struct cli_session s;
    int status;

    if (args->each && args->exit_decision)
        return cli_fail(CLI_USAGE, "--each and --exit-decision exclude each other: several jobs "
                                   "have no one decision");
    if (args->record && args->replay)
        return cli_fail(CLI_USAGE, "--record and --replay exclude each other: what is replayed is "
                                   "recorded already");
    if (args->each && (args->record || args->replay))
        return cli_fail(CLI_USAGE, "a recording is of one job; leave out --each");
    if (args->interactive && (args->each || args->json || args->exit_decision))
        return cli_fail(CLI_USAGE, "-i is for a person: it excludes --each, --json and "
                                   "--exit-decision");
    status =
        args->interactive ? cli_session_open_for_digests(&s, args) : cli_session_open(&s, args);
    if (status == CLI_OK && args->interactive) {
        status = repl_run(&s, args);
        cli_session_dispose(&s);
        return status;
    }
    if (status == CLI_OK)
        status = args->each ? each(&s, args) : one(&s, args, args->rest, args->nrest);
    if (status == CLI_INPUT)
        hint(args);
    cli_session_dispose(&s);
    return status;
}
