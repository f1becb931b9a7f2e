/*
 * `diagnose reindex`: for cron.
 *
 * Says nothing when all went well, since cron mails what is said. Another reindex at work is no
 * fault: it does what this one would have done, so that is told with -v and the status is 0.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

static int on_embedding(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *p = ctx;

    p->what = "incidents embedded";
    progress_step(p, done, total);
    return 0;
}

static int on_index(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    static const char *const words[][2] = {{"reading", "vectors read"},
                                           {"training", "samples trained on"},
                                           {"adding", "vectors added"},
                                           {"writing", "parts written"}};
    struct progress *p = ctx;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(what, words[i][0]) == 0)
            p->what = words[i][1];
    progress_step(p, done, total);
    return 0;
}

static void summary(const struct cli_args *args, const struct fl_reindexed *n)
{
    if (n->busy && args->verbose)
        puts("another reindex is at work; nothing was done");
    if (n->damaged)
        cli_note(args,
                 "%llu vectors are damaged and left out; `diagnose reindex --full` makes "
                 "them anew",
                 (unsigned long long)n->damaged);
    if (n->busy || !args->verbose)
        return;
    printf("generation %llu: %llu vectors, ", (unsigned long long)n->generation,
           (unsigned long long)n->vectors);
    if (n->embedded)
        printf("%llu incidents embedded, ", (unsigned long long)n->embedded);
    puts(n->unchanged      ? "nothing new"
         : n->carried_over ? "carried over from the one before"
                           : "built anew");
    if (n->remote_vectors || n->remote_embedded)
        printf("embedding endpoint: %llu vectors, %llu incidents embedded\n",
               (unsigned long long)n->remote_vectors, (unsigned long long)n->remote_embedded);
    if (n->removed || n->in_use)
        printf("old index files: %zu removed, %zu still read by somebody\n", n->removed, n->in_use);
}

static int reindex(const struct cli_session *s, const struct cli_args *args)
{
    struct fl_memory_opts mo = {.no_embed = true};
    struct fl_reindex_opts o = {.full = args->full, .prune = args->prune};
    struct fl_reindexed n;
    struct progress progress;
    fl_memory *m = NULL;
    fl_err err;
    int r = cli_memory_open(s, args, &mo, &m);

    if (r)
        return r;
    progress_init(&progress, "incidents", args->quiet);
    o.progress = on_index;
    o.embedding = on_embedding;
    o.progress_ctx = &progress;
    r = fl_memory_reindex(m, &o, &n, &err);
    progress_end(&progress);
    cli_memory_note(args, m);
    if (r)
        r = cli_fail_err(&err);
    else
        summary(args, &n);
    fl_memory_free(m);
    return r == CLI_OK && n.remote_failed ? CLI_BACKEND : r;
}

int cmd_reindex(const struct cli_args *args)
{
    struct cli_session s;
    int status;

    /* Read by OpenMP when FAISS is loaded: its threads must not spin while others work. */
    setenv("OMP_WAIT_POLICY", "passive", 0);
    status = cli_session_open(&s, args);
    if (status == CLI_OK)
        status = reindex(&s, args);
    cli_session_dispose(&s);
    return status;
}
