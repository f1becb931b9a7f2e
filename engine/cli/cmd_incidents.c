/*
 * `diagnose incidents list|show|remove|import|export|lint`: the memory as it stands.
 *
 * A list is printed while it is read, so that a memory of a hundred thousand costs the room of one.
 * What goes to stdout is the incidents and nothing else; what was done is told there too, and what
 * a person should know besides on stderr.
 */
#include "out_incident.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"

typedef int (*with_fn)(const struct cli_session *s, const struct cli_args *args, fl_memory *m);

/* Runs `fn` with session and memory. */
static int with_memory(const struct cli_args *args, const struct fl_memory_opts *opts, with_fn fn)
{
    struct cli_session s;
    fl_memory *m = NULL;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK)
        status = cli_memory_open(&s, args, opts, &m);
    if (status == CLI_OK) {
        status = fn(&s, args, m);
        cli_memory_note(args, m);
    }
    fl_memory_free(m);
    cli_session_dispose(&s);
    return status;
}

static struct fl_past_filter filter_of(const struct cli_args *args)
{
    return (struct fl_past_filter){.cause = args->cause,
                                   .kind = args->kind,
                                   .origin = args->origin,
                                   .text = args->text,
                                   .limit = args->limit};
}

struct listing {
    struct out o;
    bool json, verbose;
    int id, cause;
    size_t n;
};

static int measure(void *ctx, const struct fl_past *p)
{
    struct listing *l = ctx;

    l->id = (int)strlen(p->id) > l->id ? (int)strlen(p->id) : l->id;
    l->cause = (int)strlen(p->cause) > l->cause ? (int)strlen(p->cause) : l->cause;
    return 0;
}

static int list_one(void *ctx, const struct fl_past *p)
{
    struct listing *l = ctx;

    l->n++;
    if (l->json) {
        fputs(l->n > 1 ? ",\n" : "\n", stdout);
        out_incident_json(stdout, p);
        return 0;
    }
    printf("%-*s  %-*s  %-9s %4llu  ", l->id, p->id, l->cause, p->cause, p->origin,
           (unsigned long long)p->seen);
    if (strcmp(p->kind, "incident") != 0)
        printf("(%s) ", p->kind);
    out_text(&l->o, OUT_PLAIN, p->title);
    fputc('\n', stdout);
    for (size_t i = 0; l->verbose && i < p->nevidence; i++) {
        fputs("    ", stdout);
        out_text(&l->o, OUT_DIM, p->evidence[i]);
        fputc('\n', stdout);
    }
    return ferror(stdout) != 0; /* nobody reads any more */
}

static int list(const struct cli_session *s, const struct cli_args *args, fl_memory *m)
{
    struct fl_past_filter f = filter_of(args);
    struct listing l = {.json = args->json, .verbose = args->verbose};
    fl_err err;
    int r = 0;

    out_init(&l.o, stdout, s->color, args->width);
    if (l.json)
        fputs("{\"schema\":\"faultline.incidents/1\",\"incidents\":[", stdout);
    else
        r = fl_memory_list(m, &f, measure, &l, &err);
    if (!r)
        r = fl_memory_list(m, &f, list_one, &l, &err);
    if (r < 0)
        return cli_fail_err(&err);
    if (l.json)
        fputs("\n]}\n", stdout);
    else if (!l.n)
        puts("No incident is like that.");
    return l.n ? CLI_OK : CLI_NONE;
}

int cmd_incidents_list(const struct cli_args *args)
{
    return with_memory(args, NULL, list);
}

static int show_one(void *ctx, const struct fl_past *p)
{
    const struct listing *l = ctx;

    if (!l->json) {
        out_incident(&l->o, p);
        return 0;
    }
    fputs("{\"schema\":\"faultline.incidents/1\",\"incidents\":[\n", stdout);
    out_incident_json(stdout, p);
    fputs("\n]}\n", stdout);
    return 0;
}

static int show(const struct cli_session *s, const struct cli_args *args, fl_memory *m)
{
    struct listing l = {.json = args->json};
    fl_err err;
    int r;

    out_init(&l.o, stdout, s->color, args->width);
    r = fl_memory_get(m, args->rest[0], show_one, &l, &err);
    if (r == FL_ERROR_NOT_FOUND)
        return cli_no_incident(m, args->rest[0]);
    return r ? cli_fail_err(&err) : CLI_OK;
}

int cmd_incidents_show(const struct cli_args *args)
{
    return with_memory(args, NULL, show);
}

static int drop(const struct cli_session *s, const struct cli_args *args, fl_memory *m)
{
    fl_err err;

    (void)s;
    for (size_t i = 0; i < args->nrest; i++) {
        int r = fl_memory_remove(m, args->rest[i], &err);

        if (r == FL_ERROR_NOT_FOUND)
            return cli_no_incident(m, args->rest[i]);
        if (r)
            return cli_fail_err(&err);
        if (!args->quiet)
            printf("%s removed\n", args->rest[i]);
    }
    return CLI_OK;
}

int cmd_incidents_remove(const struct cli_args *args)
{
    return with_memory(args, NULL, drop);
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static int import_from(const struct cli_args *args, fl_memory *m, const char *path)
{
    struct fl_past_import how = {.clash = FL_PAST_FAIL, .known_causes = args->from != NULL};
    struct fl_past_imported n;
    struct progress progress;
    fl_err err;
    int r;

    if (args->clash && strcmp(args->clash, "fail") != 0)
        how.clash = args->clash[0] == 'k' ? FL_PAST_KEEP : FL_PAST_REPLACE;
    progress_init(&progress, "incidents", args->quiet);
    how.progress = on_progress;
    how.progress_ctx = &progress;
    r = fl_memory_import(m, path, &how, &n, &err);
    progress_end(&progress);
    if (r)
        return cli_fail_err(&err);
    if (!args->quiet)
        printf("%llu read: %llu added, %llu counted on others, %llu there already, %llu "
               "replaced, %llu kept as they were\n",
               (unsigned long long)n.read, (unsigned long long)n.added,
               (unsigned long long)n.duplicates, (unsigned long long)n.same,
               (unsigned long long)n.replaced, (unsigned long long)n.kept);
    if (n.unknown_causes)
        cli_note(args,
                 "%llu of them have a cause that no taxonomy knows; they are found, and can "
                 "decide nothing",
                 (unsigned long long)n.unknown_causes);
    return CLI_OK;
}

static int import(const struct cli_session *s, const struct cli_args *args, fl_memory *m)
{
    (void)s;
    return import_from(args, m, args->from ? args->from : args->rest[0]);
}

int cmd_incidents_import(const struct cli_args *args)
{
    struct fl_memory_opts o = {.no_embed = true};

    return with_memory(args, &o, import);
}

static int put(void *ctx, const char *bytes, size_t n)
{
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n ? 0 : -1;
}

/* What stdout did not take is told once, at the end of the program. */
static int written(int r, const fl_err *err)
{
    return r && !ferror(stdout) ? cli_fail_err(err) : CLI_OK;
}

static int export_all(const struct cli_session *s, const struct cli_args *args, fl_memory *m)
{
    struct fl_past_filter f = filter_of(args);
    uint64_t saved = 0, lost = 0;
    fl_err err;
    int r;

    if (!args->salvage) {
        r = args->redact ? fl_memory_export_redacted(m, &f, s->config, put, NULL, &err)
                         : fl_memory_export(m, &f, put, NULL, &err);
        return written(r, &err);
    }
    r = fl_memory_salvage(m, put, NULL, &saved, &lost, &err);
    if (r)
        return written(r, &err);
    cli_note(args, "%llu incidents could be read, %llu could not", (unsigned long long)saved,
             (unsigned long long)lost);
    return lost ? CLI_NONE : CLI_OK;
}

int cmd_incidents_export(const struct cli_args *args)
{
    struct fl_memory_opts o = {
        .read_only = args->salvage, .no_import = args->salvage, .no_embed = true};

    if (args->salvage && (args->cause || args->kind || args->origin || args->text))
        return cli_fail(CLI_USAGE, "--salvage writes all that can be read; leave the filters out");
    if (args->salvage && args->redact)
        return cli_fail(CLI_USAGE, "--salvage writes what can be read as it is; import it, then "
                                   "export with --redact");
    return with_memory(args, &o, export_all);
}

static void tell(void *ctx, const char *text)
{
    out_text(ctx, OUT_PLAIN, text);
    fputc('\n', ((struct out *)ctx)->f);
}

int cmd_incidents_lint(const struct cli_args *args)
{
    struct cli_session s;
    struct out o;
    fl_err err;
    int status = cli_session_open(&s, args), n;

    if (status == CLI_OK) {
        out_init(&o, stdout, s.color, args->width);
        n = fl_incidents_check(s.engine, args->nrest ? args->rest[0] : NULL, tell, &o, &err);
        if (n >= 0 && !args->quiet)
            printf("%d finding%s\n", n, n == 1 ? "" : "s");
        status = n < 0 ? cli_fail_err(&err) : n ? CLI_INPUT : CLI_OK;
    }
    cli_session_dispose(&s);
    return status;
}
