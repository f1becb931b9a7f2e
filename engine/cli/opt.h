#ifndef FL_CLI_OPT_H
#define FL_CLI_OPT_H
/*
 * Options and commands as tables.
 *
 * Each command is a row; its options are rows too. The parser, `help`, usage errors, the man page
 * and the completion all read these rows, so they cannot disagree.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. CLI_NONE is no error: healthy, or no cause found. */
enum cli_status { CLI_OK = 0, CLI_NONE = 1, CLI_USAGE = 2, CLI_INPUT = 3, CLI_BACKEND = 4 };

#define CLI_MAX_RULE_DIRS 32

struct cli_share {
    double value;
    bool set;
};

/* What a command line says; one struct for all commands, each uses its part. Texts are borrowed
 * from argv. */
struct cli_args {
    bool help, version, json, each, offline, exit_decision, no_cache, verbose, quiet, patterns;
    bool man, completion;
    const char *config, *engine, *color, *id, *quiet_logs;
    const char *rule_dirs[CLI_MAX_RULE_DIRS];
    size_t nrule_dirs;
    int64_t since_us, until_us; /* INT64_MIN, INT64_MAX: no bound */
    uint32_t width;             /* 0: from the terminal */
    uint32_t threads;           /* 0: one a core */
    uint32_t budget;            /* tokens; 0: the default */
    uint32_t k;                 /* neighbours; 0: the default */
    struct cli_share floor;
    const char *text; /* to look up, or to look for */
    bool search, no_memory, ask, interactive;
    uint32_t seconds; /* of the whole answer; 0: the default */
    const char *record, *replay;
    bool salvage, redact, full, prune;
    const char *cause, *kind, *origin, *title, *explanation, *fix, *source, *from, *clash;
    uint32_t limit;     /* 0: all */
    const char *resume; /* file of results */
    bool all;           /* ask about every case */
    const char **rest;  /* the arguments that are no options */
    size_t nrest;
};

enum cli_opt_kind {
    CLI_OPT_FLAG, /* bool */
    CLI_OPT_TEXT, /* const char *; the last one counts */
    CLI_OPT_WORD, /* const char *; one of `words` */
    CLI_OPT_DIRS, /* rule_dirs; each adds one */
    CLI_OPT_TIME, /* int64_t, microseconds */
    CLI_OPT_NUM,  /* uint32_t from min to max */
    CLI_OPT_SHARE /* struct cli_share, from 0 to 1 */
};

struct cli_opt {
    char letter;      /* 0: none */
    const char *name; /* NULL ends a table */
    const char *arg;  /* name of the value in help; NULL for flags */
    enum cli_opt_kind kind;
    size_t at;         /* offset in struct cli_args */
    const char *words; /* "auto|always|never" */
    uint32_t min, max;
    const char *help;
};

struct cli_command {
    const char *name;                   /* "rules list"; NULL ends the table */
    const char *args;                   /* "LOG...", or "" */
    const char *brief;                  /* one line, no full stop */
    const char *about;                  /* paragraphs, each one line; an empty line between */
    const char *examples;               /* lines "command\tmeaning" */
    const struct cli_opt *own, *common; /* tables; may be NULL */
    size_t min_args, max_args;
    int (*run)(const struct cli_args *args); /* returns the exit status */
};

extern const struct cli_command cli_commands[]; /* the first row is the default command */
extern const char cli_exit_text[];              /* what the exit statuses mean, for help and man */
/* What is larger than a command; see topic.c for the form of the text. */
struct cli_topic {
    const char *name, *brief, *text;
};
extern const struct cli_topic cli_topics[];               /* ends with a name of NULL */
const struct cli_topic *cli_topic_find(const char *name); /* NULL: none */
extern const char cli_environment_text[];                 /* lines "NAME\tmeaning" */

/* Fills *args (set to the defaults first) from argv[0..argc), the words after the command's name.
 * The array is reordered: rest points into it. On failure says why on stderr, naming the option at
 * fault and the nearest known one, and returns CLI_USAGE. */
int cli_opt_parse(const struct cli_command *cmd, int argc, const char **argv,
                  struct cli_args *args);

/* Edits (insert, delete, replace, swap) that turn one word into the other; at most 63 bytes of each
 * are looked at. */
size_t cli_distance(const char *a, const char *b);
/* True when `got` is near enough to `known` to be a slip of the finger. */
bool cli_near(const char *got, const char *known, size_t *distance);

#endif
