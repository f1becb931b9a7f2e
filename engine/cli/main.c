/*
 * The program `diagnose`: find the command, read its options, run it.
 *
 * The first word is a command when a row of the table has that name; otherwise all words belong to
 * the default command, so `diagnose job.log` and `diagnose --json job.log` need no verb. A log
 * whose name is a command's is given as ./NAME.
 *
 * Two things are settled before anything is opened. A closed stdin, stdout or stderr is filled with
 * /dev/null opened the wrong way round, so that no log or cache file takes its number and a write
 * to it still fails. And SIGPIPE is ignored: a reader that went away shows as a failed write, which
 * ends in one sentence and a status instead of a silent death by signal.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool fill_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY) != fd)
            return false;
    }
    return true;
}

static int run(const struct cli_command *cmd, const struct cli_args *args)
{
    struct out o;

    if (args->help) {
        out_init(&o, stdout, args->color, args->width);
        cli_help_command(&o, cmd);
        return CLI_OK;
    }
    if (args->version) {
        printf("diagnose %s\n", fl_version());
        return CLI_OK;
    }
    return cmd->run(args);
}

/* "rules" alone, or "rules lsit": a group's name without one of its commands. */
static const char *group_of(const char *word)
{
    size_t n = strlen(word);

    for (const struct cli_command *c = cli_commands; c->name; c++) {
        if (strncmp(c->name, word, n) == 0 && c->name[n] == ' ')
            return c->name;
    }
    return NULL;
}

static int group_usage(const char *group, const char *word)
{
    const char *nearest = NULL;
    size_t n = strlen(group), least = SIZE_MAX, d;
    struct out_line names = {.n = 0};

    for (const struct cli_command *c = cli_commands; c->name; c++) {
        if (strncmp(c->name, group, n) != 0 || c->name[n] != ' ')
            continue;
        out_line_add(&names, "%s%s", names.n ? ", " : "", c->name + n + 1);
        if (word && cli_near(word, c->name + n + 1, &d) && d < least) {
            nearest = c->name;
            least = d;
        }
    }
    if (!word || word[0] == '-')
        return cli_fail(CLI_USAGE, "`%s` needs one of: %s", group, names.p);
    if (nearest)
        return cli_fail(CLI_USAGE, "unknown command `%s %s`; the nearest is `%s`", group, word,
                        nearest);
    return cli_fail(CLI_USAGE, "unknown command `%s %s`; there are: %s", group, word, names.p);
}

/* `rules -h` shows the whole group. */
static bool asks_group_help(int argc, const char **argv)
{
    return argc == 3 && (strcmp(argv[2], "-h") == 0 || strcmp(argv[2], "--help") == 0);
}

/* How many words a common option takes at argv[0]: itself, and its value behind it. 0: it is none.
 */
static int common_option(int argc, const char **argv)
{
    const char *word = argv[0], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);

    for (const struct cli_opt *o = cli_commands[0].common; o && o->name; o++) {
        bool by_name = n > 2 && strncmp(word, "--", 2) == 0 && strlen(o->name) == n - 2 &&
                       memcmp(o->name, word + 2, n - 2) == 0;
        bool by_letter = o->letter && word[0] == '-' && word[1] == o->letter && !word[2];

        if (by_name || by_letter)
            return o->arg && !equals && argc > 1 ? 2 : 1;
    }
    return 0;
}

static void reverse(const char **v, int n)
{
    for (int i = 0; i < n / 2; i++) {
        const char *w = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = w;
    }
}

/* `diagnose --config c.yaml incidents export` is meant as `diagnose incidents export --config
 * c.yaml`: the command moves in front of the common options before it. */
static void command_first(int argc, const char **argv)
{
    size_t used = 0;
    int at = 0, n;

    while (at < argc && (n = common_option(argc - at, argv + at)) > 0)
        at += n;
    if (at == 0 || at >= argc || !cli_command_find((size_t)(argc - at), argv + at, &used))
        return;
    reverse(argv, at);
    reverse(argv + at, (int)used);
    reverse(argv, at + (int)used);
}

static int dispatch(int argc, const char **argv)
{
    const struct cli_command *cmd;
    struct cli_args args = {.rest = argv};
    size_t used = 0;
    int status;

    if (argc > 1)
        command_first(argc - 1, argv + 1);
    cmd = argc > 1 ? cli_command_find((size_t)argc - 1, argv + 1, &used) : cli_commands;
    if (!cmd && argc > 1 && group_of(argv[1])) {
        if (!asks_group_help(argc, argv))
            return group_usage(argv[1], argc > 2 ? argv[2] : NULL);
        args.rest = argv + 1;
        args.nrest = 1;
        return cmd_help(&args);
    }
    if (!cmd)
        cmd = cli_commands;
    if (argc < 2 && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
        return cli_fail(CLI_USAGE, "no log given; try `diagnose job.log` or `diagnose --help`");
    if (argc < 2) {
        static const char *interactive[] = {"-i"};
        status = cli_opt_parse(cmd, 1, interactive, &args);
    } else {
        status = cli_opt_parse(cmd, argc - 1 - (int)used, argv + 1 + used, &args);
    }
    return status ? status : run(cmd, &args);
}

int main(int argc, char **argv)
{
    int status, written;

    if (!fill_standard_files())
        return CLI_INPUT;
    signal(SIGPIPE, SIG_IGN);
    status = dispatch(argc, (const char **)argv);
    written = cli_out_end();
    return written ? written : status;
}
