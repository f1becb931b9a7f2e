/*
 * The REPL: one job, looked at and asked about until the person knows enough.
 *
 * It opens with the verdict and then takes lines. A line that begins with "/" is a command of the
 * table below, all others are questions. A command may be cut short as long as one alone begins so;
 * a slip gets the nearest one named and runs nothing. Log paths that begin with "/" are no
 * commands: where a path is asked for, nothing else is.
 *
 * The job is diagnosed once. The language model is not asked before somebody asks it (or says
 * --ask): opening a log sends nothing. When standard input is no terminal, lines are read from it
 * without prompts, so that a script can drive the same commands.
 */
#include "repl.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "out_text.h"
#include "progress.h"

static void help(struct repl *x, const char *rest);

static void quit(struct repl *x, const char *rest)
{
    (void)rest;
    x->leave = true;
}

const struct repl_command repl_commands[] = {
    {"evidence", "", "the lines that prove it, whole", repl_evidence},
    {"digest", "[TOKENS]", "the lines worth reading, as one page", repl_digest},
    {"timeline", "", "how the job went: steps, phases, attempts", repl_timeline},
    {"around", "FILE:LINE [N]", "a line of the log and N lines on both sides (10)", repl_around},
    {"grep", "REGEX", "lines that an expression matches (PCRE2)", repl_grep},
    {"rank", "N [LINES]", "the last lines of a rank (20)", repl_rank},
    {"similar", "", "past incidents that are like it", repl_similar},
    {"incident", "ID", "one past incident", repl_incident},
    {"why", "", "the reasons, the alternatives, what followed", repl_why},
    {"explain", "[RULE]", "a rule; without RULE the one that decided", repl_explain},
    {"ask", "[QUESTION]", "let the language model judge it, or answer", repl_ask},
    {"correct", "CAUSE [WHY]", "remember the job as one of this cause", repl_correct},
    {"save", "[FILE]", "keep the answer and this talk (.json: the answer)", repl_save},
    {"json", "", "the answer as JSON", repl_json},
    {"help", "", "this list", help},
    {"quit", "", "leave; Ctrl-D does too", quit},
    {NULL, NULL, NULL, NULL},
};

static void help(struct repl *x, const char *rest)
{
    (void)rest;
    for (const struct repl_command *c = repl_commands; c->name; c++) {
        int n = fprintf(x->o.f, "  /%s%s%s", c->name, *c->args ? " " : "", c->args);
        out_pad(&x->o, n < 24 ? 24 - (unsigned)n : 1);
        fprintf(x->o.f, "%s\n", c->brief);
    }
    out_wrapped(&x->o, "",
                repl_has_model(x) ? "Anything else is a question to the language model. Ctrl-C "
                                    "stops its answer."
                                  : "Anything else is looked up in the log and among past "
                                    "incidents: no language model is asked here.",
                0);
}

/* ---- commands ---- */

static const struct repl_command *find(const char *word, size_t n, size_t *hits)
{
    const struct repl_command *found = NULL;

    *hits = 0;
    for (const struct repl_command *c = repl_commands; c->name; c++) {
        if (strncmp(c->name, word, n) != 0)
            continue;
        if (!c->name[n]) {
            *hits = 1;
            return c;
        }
        found = c;
        ++*hits;
    }
    return found;
}

static void no_command(const char *word, size_t begin_so)
{
    const struct repl_command *best = NULL;
    size_t least = SIZE_MAX, n = strlen(word);
    struct out_line names = {.n = 0};

    for (const struct repl_command *c = repl_commands; n && begin_so > 1 && c->name; c++)
        if (strncmp(c->name, word, n) == 0)
            out_line_add(&names, "%s/%s", names.n ? ", " : "", c->name);
    if (names.n) {
        cli_fail(CLI_USAGE, "/%s may be %s", word, names.p);
        return;
    }

    for (const struct repl_command *c = repl_commands; c->name; c++) {
        size_t d = cli_distance(word, c->name);
        if (d < least) {
            best = c;
            least = d;
        }
    }
    cli_fail(CLI_USAGE, "no command is called /%s; the nearest is /%s, and /help lists them", word,
             best->name);
}

static void obey(struct repl *x, char *text)
{
    size_t n = strcspn(text, " \t"), hits = 0;
    const struct repl_command *c = find(text, n, &hits);
    const char *rest = text + n + strspn(text + n, " \t");

    text[n] = text[n] ? 0 : text[n];
    if (n && hits == 1)
        c->run(x, rest);
    else
        no_command(text, hits);
}

static void one_line(struct repl *x)
{
    char *text = x->line.text + strspn(x->line.text, " \t\r");
    size_t n = strlen(text);

    while (n && strchr(" \t\r", text[n - 1]))
        text[--n] = 0;
    out_init(&x->o, stdout, x->s->color, x->args->width);
    if (*text == '/')
        obey(x, text + 1);
    else if (*text)
        repl_question(x, text);
}

/* ---- completion ---- */

/* Names that the report and the engine hold, behind the command that takes them. */
static const char *argument(const struct repl *x, const char *head, size_t i)
{
    const struct fl_rule_info *r;
    size_t rules;

    if (strncmp(head, "/correct ", 9) == 0) {
        struct fl_cause_info info;
        if (i >= fl_engine_causes(x->s->engine))
            return NULL;
        fl_engine_cause(x->s->engine, i, &info);
        return info.id;
    }
    if (strncmp(head, "/explain ", 9) == 0) {
        rules = fl_engine_rules(x->s->engine);
        r = i < rules ? fl_engine_rule(x->s->engine, i) : NULL;
        if (r)
            return r->id;
        i -= rules;
        return i < fl_engine_filters(x->s->engine) ? fl_engine_filter(x->s->engine, i)->id : NULL;
    }
    if (strncmp(head, "/incident ", 10) == 0)
        return i < x->r->nneighbours ? x->r->neighbours[i].incident : NULL;
    if (strncmp(head, "/around ", 8) == 0 || *head != '/')
        return fl_log_file(x->log, i);
    return NULL;
}

static const char *candidate(void *ctx, const char *head, size_t word, size_t i)
{
    static const char *const names[] = {
        "/evidence", "/digest",  "/timeline", "/around",  "/grep", "/rank", "/similar", "/incident",
        "/why",      "/explain", "/ask",      "/correct", "/save", "/json", "/help",    "/quit"};

    if (word == 0 && *head == '/')
        return i < sizeof(names) / sizeof(*names) ? names[i] : NULL;
    return argument(ctx, head, i);
}

/* Paths on this machine, where a log is asked for. */
static const char *path_candidate(void *ctx, const char *head, size_t word, size_t i)
{
    glob_t *g = ctx;
    char pattern[LINE_MOST + 2];

    if (i == 0) {
        globfree(g);
        *g = (glob_t){.gl_pathc = 0};
        snprintf(pattern, sizeof(pattern), "%s*", head + word);
        if (glob(pattern, GLOB_MARK, NULL, g))
            g->gl_pathc = 0;
    }
    return i < g->gl_pathc ? g->gl_pathv[i] : NULL;
}

/* ---- opening ---- */

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
}

static int diagnose(struct repl *x, const char *const *paths, size_t n)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct progress progress;
    fl_err err;
    int r;

    progress_init(&progress, "bytes", x->args->quiet);
    opts.paths = paths;
    opts.npaths = n;
    opts.since_us = x->args->since_us;
    opts.until_us = x->args->until_us;
    opts.threads = x->args->threads;
    opts.progress = on_progress;
    opts.progress_ctx = &progress;
    opts.digest = true;
    x->line.fatal = 1; /* a log may be large, and nothing is there yet to be kept */
    r = fl_diagnose(x->s->engine, &opts, &x->d, &err);
    x->line.fatal = 0;
    progress_end(&progress);
    if (!r)
        r = fl_log_open(x->s->engine, x->d, &x->log, &err);
    if (r)
        return cli_fail_err(&err);
    x->r = fl_diagnosis_report(x->d);
    return CLI_OK;
}

static void open_memory(struct repl *x)
{
    struct fl_memory_opts o = {.seconds = x->args->seconds,
                               .record = x->args->record,
                               .replay = x->args->replay,
                               .cancel = &x->line.stop};
    char path[4300];
    fl_err err;

    if (x->args->no_memory)
        return;
    cli_memory_place(x->s, x->args, &o);
    o.offline = o.offline && !o.replay; /* a replay goes nowhere */
    if (fl_memory_open(x->s->engine, &o, &x->memory, &err)) {
        cli_note(x->args, "past incidents cannot be asked: %s", err.msg);
        return;
    }
    if (fl_memory_note(x->memory))
        cli_note(x->args, "%s", fl_memory_note(x->memory));
    snprintf(path, sizeof(path), "%s/history", fl_memory_dir(x->memory));
    line_remember(&x->line, path);
    if (fl_diagnosis_consult(x->d, x->memory, &err))
        cli_note(x->args, "past incidents could not be asked: %s", err.msg);
}

/* Asks for a path until one can be read. CLI_NONE: none was wanted. */
static int ask_for_log(struct repl *x)
{
    glob_t g = {.gl_pathc = 0};
    int status = CLI_INPUT;

    fputs("Faultline names why a training job died. Which log is it: a file, or a folder of one "
          "job?\n(TAB completes, Ctrl-D leaves; `diagnose --help` tells of everything else.)\n",
          stdout);
    x->line.candidate = path_candidate;
    x->line.ctx = &g;
    while (status != CLI_OK) {
        enum line_end end = line_read(&x->line, "log: ");
        const char *path = x->line.text + strspn(x->line.text, " \t");
        char name[LINE_MOST];
        size_t n;

        if (end == LINE_OVER) {
            status = CLI_NONE;
            break;
        }
        snprintf(name, sizeof(name), "%s", path);
        for (n = strlen(name); n && name[n - 1] == ' ';)
            name[--n] = 0;
        path = name;
        if (end == LINE_TEXT && n)
            status = diagnose(x, &path, 1);
    }
    globfree(&g);
    return status;
}

static void loop(struct repl *x)
{
    x->line.candidate = candidate;
    x->line.ctx = x;
    while (!x->leave && !ferror(stdout)) {
        enum line_end end = line_read(&x->line, "diagnose> ");
        if (end == LINE_OVER)
            break;
        if (end == LINE_TEXT)
            one_line(x);
    }
}

/* The log came through standard input: then a person types on the terminal itself. */
static FILE *input(const struct cli_args *args, bool *own)
{
    FILE *f = NULL;

    for (size_t i = 0; i < args->nrest && !f; i++)
        if (strcmp(args->rest[i], "-") == 0)
            f = fopen("/dev/tty", "re");
    *own = f != NULL;
    return f ? f : stdin;
}

static int converse(struct repl *x)
{
    int status = x->args->nrest ? diagnose(x, x->args->rest, x->args->nrest) : ask_for_log(x);

    if (status == CLI_NONE)
        return CLI_OK;
    if (status)
        return status;
    open_memory(x);
    x->talked = tmpfile();
    out_init(&x->o, stdout, x->s->color, x->args->width);
    out_report(&x->o, x->r, x->args->verbose);
    if (x->args->ask && repl_has_model(x))
        repl_ask(x, "");
    if (x->line.terminal)
        fputs(repl_has_model(x) ? "\nAsk in plain words, or /help.\n"
                                : "\n/help lists what you can look at; words are searched for.\n",
              stdout);
    loop(x);
    return CLI_OK;
}

int repl_run(struct cli_session *s, const struct cli_args *args)
{
    struct repl x = {.args = args, .s = s};
    bool own;
    FILE *in = input(args, &own);
    int status;

    line_open(&x.line, in, own);
    if (!args->nrest && !x.line.terminal)
        status = cli_fail(CLI_USAGE, "-i needs a LOG when standard input is no terminal");
    else
        status = converse(&x);
    fl_talk_free(x.talk);
    fl_log_free(x.log);
    fl_diagnosis_free(x.d);
    fl_memory_free(x.memory);
    if (x.talked)
        fclose(x.talked);
    line_close(&x.line);
    return status;
}
