/*
 * `diagnose prompt LOG...`: exactly what would be sent to a language model; nothing is sent.
 *
 * For those who must say what leaves their machines. The marks around the log are random, so two
 * runs differ in them.
 */
#include "cli.h"

#include <stdio.h>

#include "progress.h"

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static int show(const struct cli_session *s, const struct cli_args *args, fl_diagnosis *d)
{
    fl_memory *m = NULL;
    char *text = NULL;
    size_t tokens = 0;
    fl_err err;
    int r;

    if (!args->no_memory &&
        fl_memory_open(s->engine, &(struct fl_memory_opts){.home = cli_home(s)}, &m, &err))
        cli_note(args, "past incidents are not in it: %s", err.msg);
    r = fl_diagnosis_prompt(s->engine, d, s->config, m, &text, &tokens, &err);
    if (r) {
        r = cli_fail_err(&err);
    } else {
        fputs(text, stdout);
        cli_note(args, "%zu tokens; nothing was sent", tokens);
    }
    fl_text_free(text);
    fl_memory_free(m);
    return r;
}

int cmd_prompt(const struct cli_args *args)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    struct cli_session s;
    fl_diagnosis *d = NULL;
    fl_err err;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK) {
        progress_init(&progress, "bytes", args->quiet);
        opts.paths = args->rest;
        opts.npaths = args->nrest;
        opts.progress = on_progress;
        opts.progress_ctx = &progress;
        opts.threads = args->threads;
        opts.digest = true;
        status = fl_diagnose(s.engine, &opts, &d, &err);
        progress_end(&progress);
        status = status ? cli_fail_err(&err) : show(&s, args, d);
    }
    fl_diagnosis_free(d);
    cli_session_dispose(&s);
    return status;
}
