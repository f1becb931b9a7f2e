/*
 * Help in its three forms, from the table of commands: text, manual page, bash completion.
 *
 * The manual page and the completion are committed under engine/doc and a test compares them with
 * what is printed here, so that packages need not run the program to be built.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS 26

const struct cli_command *cli_command_find(size_t argc, const char *const *argv, size_t *used)
{
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        const char *blank = strchr(c->name, ' ');
        size_t n = blank ? (size_t)(blank - c->name) : strlen(c->name);

        if (strlen(argv[0]) != n || memcmp(argv[0], c->name, n) != 0)
            continue;
        if (blank && (argc < 2 || strcmp(argv[1], blank + 1) != 0))
            continue;
        *used = blank ? 2 : 1;
        return c;
    }
    return NULL;
}

/* A line "NAME\tTEXT" of a list; *text moves behind it. False at the end. */
static bool next_row(const char **text, char *name, size_t cap, char *meaning, size_t mcap)
{
    size_t n = strcspn(*text, "\n"), tab = strcspn(*text, "\t\n");

    if (!**text)
        return false;
    snprintf(name, cap, "%.*s", (int)tab, *text);
    snprintf(meaning, mcap, "%.*s", tab < n ? (int)(n - tab - 1) : 0, *text + tab + (tab < n));
    *text += n + ((*text)[n] == '\n');
    return true;
}

/* One paragraph, wrapped from column `indent`; the first line begins at column `used`. Never wider
 * than 80: long lines of help are hard to read. */
static void paragraph(const struct out *o, const char *text, unsigned indent, unsigned used)
{
    unsigned width = o->width < 80 ? o->width : 80, at = used;
    bool first = true;

    while (*text && *text != '\n') {
        size_t n = strcspn(text, " \n");

        if (!first && at + 1 + n > width) {
            fputc('\n', o->f);
            at = 0;
            first = true;
        }
        if (first && at < indent) {
            out_pad(o, indent - at);
            at = indent;
        }
        fprintf(o->f, "%s%.*s", first ? "" : " ", (int)n, text);
        at += (unsigned)n + !first;
        first = false;
        text += n;
        text += *text == ' ';
    }
    fputc('\n', o->f);
}

static void row(const struct out *o, const char *name, const char *meaning)
{
    unsigned n = 2 + (unsigned)strlen(name);

    fprintf(o->f, "  %s", name);
    if (n + 2 > NAME_COLUMNS) {
        fputc('\n', o->f);
        n = 0;
    }
    paragraph(o, meaning, NAME_COLUMNS, n);
}

static void rows(const struct out *o, const char *text)
{
    char name[200], meaning[600];

    while (next_row(&text, name, sizeof(name), meaning, sizeof(meaning)))
        row(o, name, meaning);
}

static void option_name(const struct cli_opt *opt, char *out, size_t cap)
{
    char letter[5] = "    ";

    if (opt->letter)
        snprintf(letter, sizeof(letter), "-%c, ", opt->letter);
    snprintf(out, cap, "%s--%s%s%s", letter, opt->name, opt->arg ? "=" : "",
             opt->arg ? opt->arg : "");
}

static void options(const struct out *o, const struct cli_opt *opt)
{
    char name[200];

    for (; opt && opt->name; opt++) {
        option_name(opt, name, sizeof(name));
        row(o, name, opt->help);
    }
}

static void heading(const struct out *o, const char *text)
{
    fputc('\n', o->f);
    out_text(o, OUT_BOLD, text);
    fputc('\n', o->f);
}

void cli_help_command(const struct out *o, const struct cli_command *cmd)
{
    const char *program = cmd == cli_commands ? "" : "diagnose ";
    char name[200], meaning[600];
    const char *text = cmd->about;

    fprintf(o->f, "usage: %s%s%s%s [options]\n\n", program, cmd->name, *cmd->args ? " " : "",
            cmd->args);
    while (*text) {
        size_t n = strcspn(text, "\n");

        paragraph(o, text, 0, 0);
        text += n + (text[n] == '\n');
    }
    heading(o, "Options");
    options(o, cmd->own);
    options(o, cmd->common);
    heading(o, "Examples");
    for (text = cmd->examples; next_row(&text, name, sizeof(name), meaning, sizeof(meaning));)
        fprintf(o->f, *meaning ? "  %s\n      %s\n" : "  %s\n", name, meaning);
    heading(o, "Exit status");
    rows(o, cli_exit_text);
}

static void command_row(const struct out *o, const struct cli_command *c)
{
    struct out_line l = {.n = 0};

    out_line_add(&l, "%s%s%s", c->name, *c->args ? " " : "", c->args);
    row(o, l.p, c->brief);
}

static void topic(const struct out *o, const struct cli_topic *t)
{
    char name[200], meaning[600];

    for (const char *text = t->text; *text;) {
        const char *line = text;
        size_t n = strcspn(line, "\n");

        if (memchr(line, '\t', n)) {
            next_row(&text, name, sizeof(name), meaning, sizeof(meaning));
            row(o, name, meaning);
            continue;
        }
        if (line[0] == ' ')
            fprintf(o->f, "%.*s\n", (int)n, line);
        else
            paragraph(o, line, 0, 0);
        text += n + (text[n] == '\n');
    }
}

void cli_help_all(const struct out *o)
{
    fputs("usage: diagnose LOG... [options]\n"
          "       diagnose COMMAND [arguments] [options]\n\n",
          o->f);
    paragraph(o, "Faultline reads the logs of a failed training job and names the root cause.", 0,
              0);
    heading(o, "Commands");
    for (const struct cli_command *c = cli_commands; c->name; c++)
        command_row(o, c);
    heading(o, "Topics");
    for (const struct cli_topic *t = cli_topics; t->name; t++) {
        struct out_line l = {.n = 0};

        out_line_add(&l, "help %s", t->name);
        row(o, l.p, t->brief);
    }
    heading(o, "Options of `diagnose LOG...`");
    options(o, cli_commands[0].own);
    options(o, cli_commands[0].common);
    heading(o, "Exit status");
    rows(o, cli_exit_text);
    heading(o, "Environment");
    rows(o, cli_environment_text);
    fputs("\n`diagnose help COMMAND` tells more and has examples.\n", o->f);
}

/* Text for roff: a hyphen that is to be copied, a backslash, a dot or quote at a line's start. */
static void roff(FILE *f, const char *text, size_t n)
{
    if (n && (*text == '.' || *text == '\''))
        fputs("\\&", f);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '-')
            fputs("\\-", f);
        else if (text[i] == '\\')
            fputs("\\e", f);
        else if (text[i] == '~')
            fputs("\\(ti", f);
        else if (text[i] == '`')
            fputs("\\(aq", f);
        else
            fputc(text[i], f);
    }
}

static void man_rows(FILE *f, const char *text)
{
    char name[200], meaning[600];

    while (next_row(&text, name, sizeof(name), meaning, sizeof(meaning))) {
        fputs(".TP\n.B ", f);
        roff(f, name, strlen(name));
        fputc('\n', f);
        roff(f, meaning, strlen(meaning));
        fputc('\n', f);
    }
}

static void man_options(FILE *f, const struct cli_opt *opt)
{
    char name[200];

    for (; opt && opt->name; opt++) {
        const char *p = name;

        option_name(opt, name, sizeof(name));
        while (*p == ' ')
            p++;
        fputs(".TP\n.B ", f);
        roff(f, p, strlen(p));
        fputc('\n', f);
        roff(f, opt->help, strlen(opt->help));
        fputc('\n', f);
    }
}

static void man_command(FILE *f, const struct cli_command *c)
{
    char name[200], meaning[600];
    const char *text = c->about;

    fputs(".SS ", f);
    roff(f, c->name, strlen(c->name));
    if (*c->args) {
        fputc(' ', f);
        roff(f, c->args, strlen(c->args));
    }
    fputc('\n', f);
    while (*text) {
        size_t n = strcspn(text, "\n");

        if (n)
            roff(f, text, n);
        fputs(n ? "\n" : ".PP\n", f);
        text += n + (text[n] == '\n');
    }
    man_options(f, c->own);
    if (*c->examples)
        fputs(".PP\n", f);
    for (text = c->examples; next_row(&text, name, sizeof(name), meaning, sizeof(meaning));) {
        fputs(".br\n.B ", f);
        roff(f, name, strlen(name));
        fputc('\n', f);
    }
}

static void man_topic(FILE *f, const struct cli_topic *t)
{
    char name[200], meaning[600];

    fputs(".SS ", f);
    roff(f, t->brief, strlen(t->brief));
    fputc('\n', f);
    for (const char *text = t->text; *text;) {
        const char *line = text;
        size_t n = strcspn(line, "\n");

        if (memchr(line, '\t', n)) {
            next_row(&text, name, sizeof(name), meaning, sizeof(meaning));
            fputs(".TP\n.B ", f);
            roff(f, name, strlen(name));
            fputc('\n', f);
            roff(f, meaning, strlen(meaning));
            fputc('\n', f);
            continue;
        }
        fputs(n && line[0] != ' ' ? ".PP\n" : "", f);
        fputs(line[0] == ' ' ? ".br\n\\&" : "", f);
        roff(f, line, n);
        fputs(n ? "\n" : "", f);
        text += n + (text[n] == '\n');
    }
}

static void man(FILE *f)
{
    fprintf(f,
            ".TH DIAGNOSE 1 \"\" \"Faultline %s\"\n"
            ".SH NAME\ndiagnose \\- %s\n"
            ".SH SYNOPSIS\n.B diagnose\n.RI [ options ] \\ LOG ...\n.br\n"
            ".B diagnose\n.I command\n.RI [ arguments ]\\ [ options ]\n"
            ".SH COMMANDS\n",
            fl_version(), cli_commands[0].brief);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        man_command(f, c);
    fputs(".SH COMMON OPTIONS\nThese are options of all commands but \\(aqhelp\\(aq.\n", f);
    man_options(f, cli_commands[0].common);
    fputs(".SH TOPICS\n", f);
    for (const struct cli_topic *t = cli_topics; t->name; t++)
        man_topic(f, t);
    fputs(".SH EXIT STATUS\n", f);
    man_rows(f, cli_exit_text);
    fputs(".SH ENVIRONMENT\n", f);
    man_rows(f, cli_environment_text);
}

/* The words of a command's options; values of words are offered after `--name=`. */
static void completion_words(FILE *f, const struct cli_opt *opt)
{
    for (; opt && opt->name; opt++) {
        const char *w = opt->words;

        if (!opt->arg || !w)
            fprintf(f, " --%s%s", opt->name, opt->arg ? "=" : "");
        while (w && *w) {
            size_t n = strcspn(w, "|");

            fprintf(f, " --%s=%.*s", opt->name, (int)n, w);
            w += n + (w[n] == '|');
        }
    }
}

static void completion(FILE *f)
{
    fputs("# Completion of `diagnose` for bash; made by `diagnose help --completion`.\n"
          "_diagnose()\n{\n"
          "    local line=${COMP_LINE:0:COMP_POINT} word words\n"
          "    word=${line##*[[:space:]]}\n"
          "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n",
          f);
    for (const struct cli_command *c = cli_commands + 1; c->name; c++) {
        fprintf(f, "    \"%s\"*) words=\"", c->name);
        completion_words(f, c->own);
        completion_words(f, c->common);
        fputs("\" ;;\n", f);
    }
    fputs("    *) words=\"", f);
    completion_words(f, cli_commands[0].own);
    completion_words(f, cli_commands[0].common);
    fputs("\" ;;\n    esac\n    if [[ $word != -* ]]; then\n        words=\n"
          "        [[ $COMP_CWORD -eq 1 ]] && words=\"",
          f);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        const char *blank = strchr(c->name, ' ');
        size_t n = blank ? (size_t)(blank - c->name) : strlen(c->name);

        if (c == cli_commands || strncmp(c[-1].name, c->name, n + 1) != 0)
            fprintf(f, " %.*s", (int)n, c->name);
    }
    fputs("\"\n", f);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        const char *blank = strchr(c->name, ' ');

        if (blank)
            fprintf(f,
                    "        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == %.*s ]] && "
                    "words+=\" %s\"\n",
                    (int)(blank - c->name), c->name, blank + 1);
    }
    fputs("        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == help ]] && words+=\"", f);
    for (const struct cli_topic *t = cli_topics; t->name; t++)
        fprintf(f, " %s", t->name);
    fputs("\"\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    [[ $word == --*=* ]] && COMPREPLY=(\"${COMPREPLY[@]#*=}\")\n"
          "}\n"
          "complete -o default -o nosort -F _diagnose diagnose\n",
          f);
}

static int help_on(const struct out *o, const struct cli_args *args)
{
    size_t used, shown = 0, n = strlen(args->rest[0]);
    const struct cli_command *cmd = cli_command_find(args->nrest, args->rest, &used);

    if (cmd && used == args->nrest) {
        cli_help_command(o, cmd);
        return CLI_OK;
    }
    if (args->nrest == 1 && cli_topic_find(args->rest[0])) {
        topic(o, cli_topic_find(args->rest[0]));
        return CLI_OK;
    }
    for (const struct cli_command *c = cli_commands; c->name && args->nrest == 1; c++) {
        if (strncmp(c->name, args->rest[0], n) != 0 || c->name[n] != ' ')
            continue;
        if (!shown++)
            fputs("Commands\n", o->f);
        command_row(o, c);
    }
    if (!shown)
        return cli_fail(CLI_USAGE, "no command `%s%s%s`; `diagnose help` lists them", args->rest[0],
                        args->nrest > 1 ? " " : "", args->nrest > 1 ? args->rest[1] : "");
    fputs("\n`diagnose help COMMAND` tells more and has examples.\n", o->f);
    return CLI_OK;
}

int cmd_help(const struct cli_args *args)
{
    struct out o;

    out_init(&o, stdout, args->color, args->width);
    if (args->man) {
        man(stdout);
        return CLI_OK;
    }
    if (args->completion) {
        completion(stdout);
        return CLI_OK;
    }
    if (args->nrest)
        return help_on(&o, args);
    cli_help_all(&o);
    return CLI_OK;
}
