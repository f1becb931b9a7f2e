/*
 * `diagnose search`: the nearest past incidents of a job, or of a text.
 *
 * What was not found is said in words and never filled up: the exit status is 1 then, and the JSON
 * has an empty list.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static void show_match(const struct out *o, const struct fl_matched *m)
{
    fputs("        ", o->f);
    if (m->at.file) {
        out_text(o, OUT_DIM, m->at.file);
        fprintf(o->f, ":%llu  ", (unsigned long long)m->at.line);
    }
    out_text(o, OUT_PLAIN, m->text);
    fprintf(o->f, "\n     %.2f ", m->similarity);
    out_text(o, OUT_DIM, m->incident_text);
    fputc('\n', o->f);
}

static void show(const struct out *o, const struct fl_neighbour *n, size_t number)
{
    fprintf(o->f, "%s%zu. ", number > 1 ? "\n" : "", number);
    out_text(o, OUT_BOLD, n->cause);
    fputs("  ", o->f);
    out_text(o, OUT_PLAIN, n->title);
    fprintf(o->f, "\n   %s, score %.2f, similarity %.2f", n->incident, n->score, n->similarity);
    if (n->seen > 1)
        fprintf(o->f, ", seen %llu times", (unsigned long long)n->seen);
    fputc('\n', o->f);
    if (n->fix[0]) {
        fputs("   fix: ", o->f);
        out_text(o, OUT_PLAIN, n->fix);
        fputc('\n', o->f);
    }
    for (size_t i = 0; i < n->nmatched && i < 2; i++)
        show_match(o, &n->matched[i]);
}

static int print(const struct cli_session *s, const struct cli_args *args, const fl_memory *m,
                 const fl_neighbours *n)
{
    size_t count = fl_neighbours_count(n);
    char *text = NULL;
    struct out o;
    fl_err err;

    cli_memory_note(args, m);
    if (args->json) {
        if (fl_neighbours_json(n, isatty(STDOUT_FILENO), &text, &err))
            return cli_fail_err(&err);
        puts(text);
        fl_text_free(text);
        return count ? CLI_OK : CLI_NONE;
    }
    out_init(&o, stdout, s->color, args->width);
    for (size_t i = 0; i < count; i++)
        show(&o, fl_neighbours_get(n, i), i + 1);
    if (!count)
        puts("No past incident is similar enough to tell of it.");
    return count ? CLI_OK : CLI_NONE;
}

static int search_job(const struct cli_session *s, const struct cli_args *args, fl_memory *m,
                      const struct fl_search_opts *so, fl_neighbours **n, fl_err *err)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    fl_diagnosis *d = NULL;
    int r;

    progress_init(&progress, "bytes", args->quiet);
    opts.paths = args->rest;
    opts.npaths = args->nrest;
    opts.progress = on_progress;
    opts.progress_ctx = &progress;
    opts.threads = args->threads;
    opts.digest = true;
    r = fl_diagnose(s->engine, &opts, &d, err);
    progress_end(&progress);
    if (!r)
        r = fl_search_job(m, d, so, n, err);
    fl_diagnosis_free(d);
    return r;
}

static int search(const struct cli_session *s, const struct cli_args *args)
{
    struct fl_search_opts so = {.k = args->k};
    fl_neighbours *n = NULL;
    fl_memory *m = NULL;
    fl_err err;
    int r;

    if (args->floor.set)
        so.floor = args->floor.value > 0 ? args->floor.value : -1;
    r = cli_memory_open(s, args, NULL, &m);
    if (r)
        return r;
    r = args->text ? fl_search_text(m, args->text, &so, &n, &err)
                   : search_job(s, args, m, &so, &n, &err);
    r = r ? cli_fail_err(&err) : print(s, args, m, n);
    fl_neighbours_free(n);
    fl_memory_free(m);
    return r;
}

int cmd_search(const struct cli_args *args)
{
    struct cli_session s;
    int status;

    if (!args->text == !args->nrest)
        return cli_fail(CLI_USAGE, "%s",
                        args->text ? "give either LOG or --text, not both"
                                   : "what to look up is missing: a LOG, or --text \"...\"");
    status = cli_session_open(&s, args);
    if (status == CLI_OK)
        status = search(&s, args);
    cli_session_dispose(&s);
    return status;
}
