/*
 * The option parser.
 *
 * Long options (--name, --name=value, --name value), single letters (-v, -vq), `--` ends options,
 * `-` alone is an argument. Options and arguments may be mixed. A long option must be written out:
 * an abbreviation that works today breaks a script when a second option with that beginning comes.
 * getopt_long() was not taken because it abbreviates, prints its own messages, keeps its state in
 * globals and would need a second table beside ours.
 *
 * An error names the one option at fault and the nearest one that exists, never the whole help.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 63

size_t cli_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);
    size_t rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t d = up[j - 1] + (a[i - 1] != b[j - 1]);

            if (up[j] + 1 < d)
                d = up[j] + 1;
            if (row[j - 1] + 1 < d)
                d = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < d)
                d = up2[j - 2] + 1;
            row[j] = d;
        }
    }
    return rows[n % 3][m];
}

bool cli_near(const char *got, const char *known, size_t *distance)
{
    size_t n = strlen(got), d = cli_distance(got, known);

    *distance = d;
    if (n >= 2 && strncmp(got, known, n) == 0)
        return true;
    return d <= 1 + n / 4 && d < n;
}

/* The tables of a command, one row after the other; *i counts from 0. */
static const struct cli_opt *option(const struct cli_command *cmd, size_t i)
{
    const struct cli_opt *tables[2] = {cmd->own, cmd->common};

    for (size_t t = 0; t < 2; t++) {
        for (const struct cli_opt *o = tables[t]; o && o->name; o++) {
            if (i-- == 0)
                return o;
        }
    }
    return NULL;
}

static const struct cli_opt *by_name(const struct cli_command *cmd, const char *name, size_t n)
{
    const struct cli_opt *o;

    for (size_t i = 0; (o = option(cmd, i)); i++) {
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    }
    return NULL;
}

static const struct cli_opt *by_letter(const struct cli_command *cmd, char c)
{
    const struct cli_opt *o;

    for (size_t i = 0; (o = option(cmd, i)); i++) {
        if (o->letter == c)
            return o;
    }
    return NULL;
}

static int unknown(const struct cli_command *cmd, const char *name, size_t n)
{
    const struct cli_opt *o, *best = NULL;
    size_t least = SIZE_MAX, d;
    char got[WORD_MAX + 1];

    if (n > WORD_MAX)
        n = WORD_MAX;
    memcpy(got, name, n);
    got[n] = 0;
    for (size_t i = 0; (o = option(cmd, i)); i++) {
        if (cli_near(got, o->name, &d) && d < least) {
            best = o;
            least = d;
        }
    }
    if (best)
        return cli_fail(CLI_USAGE, "unknown option --%s; the nearest is --%s", got, best->name);
    return cli_fail(CLI_USAGE, "unknown option --%s; `diagnose help %s` lists them", got,
                    cmd->name);
}

static bool in_words(const char *words, const char *value)
{
    size_t n = strlen(value);

    for (const char *w = words; *w;) {
        size_t len = strcspn(w, "|");

        if (len == n && memcmp(w, value, n) == 0)
            return true;
        w += len + (w[len] == '|');
    }
    return false;
}

static int set_number(const struct cli_opt *o, const char *value, uint32_t *slot)
{
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno || v < o->min || v > o->max)
        return cli_fail(CLI_USAGE, "--%s takes a number from %u to %u, not '%s'", o->name, o->min,
                        o->max, value);
    *slot = (uint32_t)v;
    return CLI_OK;
}

static int set_share(const struct cli_opt *o, const char *value, struct cli_share *slot)
{
    char *end;
    double v = strtod(value, &end);

    if (!*value || *end || !(v >= 0 && v <= 1))
        return cli_fail(CLI_USAGE, "--%s takes a number from 0 to 1 such as 0.5, not '%s'", o->name,
                        value);
    *slot = (struct cli_share){v, true};
    return CLI_OK;
}

static int set_value(const struct cli_opt *o, const char *value, struct cli_args *args)
{
    void *slot = (char *)args + o->at;

    switch (o->kind) {
    case CLI_OPT_FLAG:
        *(bool *)slot = true;
        return CLI_OK;
    case CLI_OPT_NUM:
        return set_number(o, value, slot);
    case CLI_OPT_SHARE:
        return set_share(o, value, slot);
    case CLI_OPT_TIME:
        if (!fl_time_from_text(value, slot))
            return cli_fail(CLI_USAGE, "--%s takes a time such as 2026-03-01T02:03:04, not '%s'",
                            o->name, value);
        return CLI_OK;
    case CLI_OPT_WORD:
        if (!in_words(o->words, value))
            return cli_fail(CLI_USAGE, "--%s takes %s, not '%s'", o->name, o->words, value);
        break;
    case CLI_OPT_DIRS:
        if (args->nrule_dirs == CLI_MAX_RULE_DIRS)
            return cli_fail(CLI_USAGE, "--%s may be given %d times at most", o->name,
                            CLI_MAX_RULE_DIRS);
        args->rule_dirs[args->nrule_dirs++] = value;
        return CLI_OK;
    case CLI_OPT_TEXT:
        break;
    }
    if (!*value)
        return cli_fail(CLI_USAGE, "--%s needs a value: %s", o->name, o->arg);
    *(const char **)slot = value;
    return CLI_OK;
}

static int parse_long(const struct cli_command *cmd, const char *word, const char *next, int *taken,
                      struct cli_args *args)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_opt *o = by_name(cmd, name, n);

    if (!o)
        return unknown(cmd, name, n);
    if (!o->arg && equals)
        return cli_fail(CLI_USAGE, "--%s takes no value", o->name);
    if (o->arg && !equals && !next)
        return cli_fail(CLI_USAGE, "--%s needs a value: %s", o->name, o->arg);
    *taken = o->arg && !equals;
    return set_value(o, equals ? equals + 1 : next, args);
}

static int parse_letters(const struct cli_command *cmd, const char *word, const char *next,
                         int *taken, struct cli_args *args)
{
    int status = CLI_OK;

    for (const char *c = word + 1; *c && status == CLI_OK; c++) {
        const struct cli_opt *o = by_letter(cmd, *c);

        if (!o)
            return cli_fail(CLI_USAGE, "unknown option -%.*s; `diagnose help %s` lists them",
                            (unsigned char)*c < 0x80 ? 1 : 4, c, cmd->name);
        if (!o->arg) {
            status = set_value(o, NULL, args);
            continue;
        }
        if (!c[1] && !next)
            return cli_fail(CLI_USAGE, "-%c needs a value: %s", *c, o->arg);
        *taken = !c[1];
        return set_value(o, c[1] ? c + 1 : next, args);
    }
    return status;
}

static int check_args(const struct cli_command *cmd, const struct cli_args *args)
{
    if (args->help || args->version)
        return CLI_OK;
    if (args->nrest < cmd->min_args && !args->interactive)
        return cli_fail(CLI_USAGE, "`%s` needs an argument: %s", cmd->name, cmd->args);
    if (args->nrest > cmd->max_args && cmd->max_args == 0)
        return cli_fail(CLI_USAGE, "`%s` takes no arguments, and '%s' is one", cmd->name,
                        args->rest[0]);
    if (args->nrest > cmd->max_args)
        return cli_fail(CLI_USAGE, "'%s' is one argument too many for `%s`",
                        args->rest[cmd->max_args], cmd->name);
    if (args->since_us > args->until_us)
        return cli_fail(CLI_USAGE, "--since is later than --until; exchange them");
    return CLI_OK;
}

int cli_opt_parse(const struct cli_command *cmd, int argc, const char **argv, struct cli_args *args)
{
    int status = CLI_OK;
    bool options = true;
    size_t n = 0;

    *args = (struct cli_args){.since_us = INT64_MIN, .until_us = INT64_MAX, .rest = argv};
    for (int i = 0; i < argc && status == CLI_OK; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        int taken = 0;

        if (!options || word[0] != '-' || !word[1])
            argv[n++] = word;
        else if (strcmp(word, "--") == 0)
            options = false;
        else if (word[1] == '-')
            status = parse_long(cmd, word, next, &taken, args);
        else
            status = parse_letters(cmd, word, next, &taken, args);
        i += taken;
    }
    args->nrest = n;
    return status ? status : check_args(cmd, args);
}
