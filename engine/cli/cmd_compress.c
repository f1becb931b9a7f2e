/*
 * `diagnose compress LOG...`: the digest on stdout, the account on stderr.
 *
 * The page is what a person or a language model reads instead of the log. Its lines are the log's,
 * with file and number, so that each can be looked up and cited. The exit status is 0 whatever the
 * log says: that the job failed is no failure of this command.
 */
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

#include "progress.h"

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static void tell_account(const struct cli_args *args, const struct fl_digest_account *a)
{
    cli_note(args,
             "%llu lines read: %llu shown, %llu folded into them, %llu routine, %llu left "
             "out for the budget%s",
             (unsigned long long)a->lines, (unsigned long long)a->kept,
             (unsigned long long)a->folded, (unsigned long long)a->dropped,
             (unsigned long long)a->left_out, a->no_room ? "" : ".");
    if (a->no_room)
        cli_note(args,
                 "%llu lines were of more different shapes than are remembered; the last of "
                 "them were looked at",
                 (unsigned long long)a->no_room);
    cli_note(args, "%zu of %zu tokens%s; %llu of %llu shapes of lines", a->tokens, a->budget,
             a->tokenizer[0] == 'e' ? " (estimated: the tokenizer's model was not found)" : "",
             (unsigned long long)a->shapes_shown, (unsigned long long)a->shapes);
    if (a->cut || a->missing)
        cli_note(args,
                 "%zu lines of evidence were cut for the budget, %zu did not fit; a larger "
                 "--budget shows them",
                 a->cut, a->missing);
    for (size_t i = 0; args->verbose && i < a->ndropped_by; i++)
        cli_note(args, "routine by %s: %llu lines", a->dropped_by[i].filter,
                 (unsigned long long)a->dropped_by[i].lines);
}

static int print_page(const struct cli_args *args, const fl_digest_page *page)
{
    char *text = NULL;
    fl_err err;

    if (!args->json) {
        fputs(fl_digest_text(page), stdout);
        tell_account(args, fl_digest_account(page));
        return CLI_OK;
    }
    if (fl_digest_json(page, isatty(STDOUT_FILENO), &text, &err))
        return cli_fail_err(&err);
    puts(text);
    fl_text_free(text);
    return CLI_OK;
}

static int compress(const struct cli_session *s, const struct cli_args *args)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    fl_digest_page *page = NULL;
    fl_diagnosis *d = NULL;
    fl_err err;
    int status;

    progress_init(&progress, "bytes", args->quiet);
    opts.paths = args->rest;
    opts.npaths = args->nrest;
    opts.since_us = args->since_us;
    opts.until_us = args->until_us;
    opts.progress = on_progress;
    opts.progress_ctx = &progress;
    opts.threads = args->threads;
    opts.digest = true;
    status = fl_diagnose(s->engine, &opts, &d, &err);
    progress_end(&progress);
    if (!status)
        status = fl_digest_build(s->engine, d, args->budget, &page, &err);
    status = status ? cli_fail_err(&err) : print_page(args, page);
    fl_digest_free(page);
    fl_diagnosis_free(d);
    return status;
}

int cmd_compress(const struct cli_args *args)
{
    struct cli_session s;
    int status = cli_session_open_for_digests(&s, args);

    if (status == CLI_OK)
        status = compress(&s, args);
    cli_session_dispose(&s);
    return status;
}
