#ifndef FL_CLI_H
#define FL_CLI_H
/*
 * What the commands share: messages, the configuration in force, the engine.
 */
#include <stdbool.h>
#include <stddef.h>

#include "faultline.h"
#include "opt.h"
#include "out.h"

/* "diagnose: TEXT" on stderr, control bytes escaped. Returns `status`. */
__attribute__((format(printf, 2, 3))) int cli_fail(int status, const char *fmt, ...);
/* The same, for what is worth knowing but no failure; silent with --quiet. */
__attribute__((format(printf, 2, 3))) void cli_note(const struct cli_args *args, const char *fmt,
                                                    ...);
/* Tells an error of the library; returns the exit status that belongs to it. */
int cli_fail_err(const fl_err *err);
/* Flushes stdout. CLI_OK, or CLI_INPUT with a sentence on stderr when the result could not be
 * written (closed pipe, full disk). */
int cli_out_end(void);

/* An engine with everything that configuration and options say about it. */
struct cli_session {
    fl_engine *engine;
    struct fl_config *config;
    char data_dir[1024], cache_dir[1024];
    char rules_dir[1100];
    const char *color;       /* auto, always, never */
    const char *config_path; /* the file that was read; NULL: none */
    const char *cache;       /* folder of compiled patterns; NULL: none are kept */
    char config_found[1024];
};
/* Loads the configuration and opens the engine. CLI_OK, or the exit status with the reason told on
 * stderr. Dispose in both cases. */
int cli_session_open(struct cli_session *s, const struct cli_args *args);
int cli_session_open_for_digests(struct cli_session *s, const struct cli_args *args);
void cli_session_dispose(struct cli_session *s);
/* The same without telling: 0, or the library's code with the reason. s->engine stays NULL when the
 * rules are at fault, and *in_config says when the configuration is. */
int cli_session_try(struct cli_session *s, const struct cli_args *args, bool *in_config,
                    fl_err *err);
/* The folder of past incidents as configured, for fl_memory_opts.home; NULL: the library's choice.
 * $FAULTLINE_HOME beats the configuration. */
const char *cli_home(const struct cli_session *s);
/* Where the memory is and whom it may ask, as configured. */
void cli_memory_place(const struct cli_session *s, const struct cli_args *args,
                      struct fl_memory_opts *o);
/* Opens the memory with a word of progress. CLI_OK, or the exit status with the reason told. */
int cli_memory_open(const struct cli_session *s, const struct cli_args *args,
                    const struct fl_memory_opts *opts, fl_memory **out);
/* What the memory has to say of itself goes to stderr. */
void cli_memory_note(const struct cli_args *args, const fl_memory *m);

/* The first command whose name is the first words of argv; *used is their number. NULL: none. */
const struct cli_command *cli_command_find(size_t argc, const char *const *argv, size_t *used);
/* The help of one command, for -h and `help`. */
void cli_help_command(const struct out *o, const struct cli_command *cmd);
void cli_help_all(const struct out *o);

int cmd_diagnose(const struct cli_args *args);
int cmd_compress(const struct cli_args *args);
int cmd_prompt(const struct cli_args *args);
int cmd_search(const struct cli_args *args);
int cmd_reindex(const struct cli_args *args);
int cmd_doctor(const struct cli_args *args);
int cmd_incidents_list(const struct cli_args *args);
int cmd_incidents_show(const struct cli_args *args);
int cmd_incidents_add(const struct cli_args *args);
int cmd_incidents_confirm(const struct cli_args *args);
int cmd_incidents_correct(const struct cli_args *args);
int cmd_incidents_remove(const struct cli_args *args);
int cmd_incidents_import(const struct cli_args *args);
int cmd_incidents_export(const struct cli_args *args);
int cmd_incidents_lint(const struct cli_args *args);
int cmd_rules_list(const struct cli_args *args);
int cmd_rules_show(const struct cli_args *args);
int cmd_rules_test(const struct cli_args *args);
int cmd_eval(const struct cli_args *args);
/* `eval --ask`. */
int cli_eval_ask(const struct cli_session *s, const struct cli_args *args);
int cmd_version(const struct cli_args *args);
int cmd_help(const struct cli_args *args);

#endif
