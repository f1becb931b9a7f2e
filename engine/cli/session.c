/*
 * The configuration in force, and the engine made with it.
 *
 * A flag beats the configuration file, the file beats the default. Exactly one file is read: the
 * one of --config, else $FAULTLINE_CONFIG, else the first that exists of
 * $XDG_CONFIG_HOME/faultline/config.yaml (by default ~/.config) and /etc/faultline/config.yaml. A
 * file that was named must be there; one that was only looked for need not.
 *
 * Compiled patterns are kept below $XDG_CACHE_HOME/faultline (by default ~/.cache). Without a home
 * nothing is kept: a shared folder such as /tmp would let another user plant a database.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

static bool join(char *out, size_t cap, const char *dir, const char *name)
{
    int n = snprintf(out, cap, "%s/%s", dir, name);

    return n > 0 && (size_t)n < cap;
}

/* $XDG_name/faultline/tail or ~/dot/faultline/tail. False without either. An XDG path that is not
 * absolute is to be ignored, says its specification. */
static bool home_path(const char *xdg, const char *dot, const char *tail, char *out, size_t cap)
{
    const char *base = getenv(xdg), *home = getenv("HOME");
    int n;

    if (base && base[0] == '/')
        n = snprintf(out, cap, "%s/faultline%s", base, tail);
    else if (home && home[0] == '/')
        n = snprintf(out, cap, "%s/%s/faultline%s", home, dot, tail);
    else
        return false;
    return n > 0 && (size_t)n < cap;
}

static const char *config_path(const struct cli_args *args, char *buf, size_t cap)
{
    static const char system_file[] = "/etc/faultline/config.yaml";
    const char *named = args->config ? args->config : getenv("FAULTLINE_CONFIG");

    if (named && *named)
        return named;
    if (home_path("XDG_CONFIG_HOME", ".config", "/config.yaml", buf, cap) && access(buf, F_OK) == 0)
        return buf;
    return access(system_file, F_OK) == 0 ? system_file : NULL;
}

static const char *cache_dir(struct cli_session *s, const struct cli_args *args)
{
    if (args->no_cache || (s->config && s->config->no_cache))
        return NULL;
    if (s->config && s->config->cache_dir)
        return s->config->cache_dir;
    if (!home_path("XDG_CACHE_HOME", ".cache", "", s->cache_dir, sizeof(s->cache_dir)))
        return NULL;
    return s->cache_dir;
}

/* The shipped rules first: the taxonomy and the policy come from there. */
static int rule_dirs(struct cli_session *s, const struct cli_args *args, const char **dirs,
                     size_t *n, fl_err *err)
{
    int code = fl_data_dir(s->data_dir, sizeof(s->data_dir), err);

    if (code)
        return code;
    if (!join(s->rules_dir, sizeof(s->rules_dir), s->data_dir, "rules")) {
        *err = (fl_err){.code = FL_ERROR_LIMIT, .msg = "the rules' folder has too long a name"};
        return FL_ERROR_LIMIT;
    }
    if (s->config && s->config->nrule_dirs > CLI_MAX_RULE_DIRS) {
        *err = (fl_err){.code = FL_ERROR_LIMIT};
        snprintf(err->msg, sizeof(err->msg),
                 "the configuration names %zu rule folders; at most %d "
                 "are taken",
                 s->config->nrule_dirs, CLI_MAX_RULE_DIRS);
        return FL_ERROR_LIMIT;
    }
    dirs[(*n)++] = s->rules_dir;
    for (size_t i = 0; s->config && i < s->config->nrule_dirs; i++)
        dirs[(*n)++] = s->config->rule_dirs[i];
    for (size_t i = 0; i < args->nrule_dirs; i++)
        dirs[(*n)++] = args->rule_dirs[i];
    return 0;
}

static int try_open(struct cli_session *s, const struct cli_args *args, bool digests,
                    bool *in_config, fl_err *err)
{
    const char *dirs[1 + 2 * CLI_MAX_RULE_DIRS];
    struct fl_engine_opts opts = {.rule_dirs = dirs, .digests = digests};
    struct progress progress;
    int rc;

    *s = (struct cli_session){.color = args->color};
    s->config_path = config_path(args, s->config_found, sizeof(s->config_found));
    *in_config = true;
    rc = s->config_path ? fl_config_load(s->config_path, &s->config, err) : 0;
    if (rc)
        return rc;
    *in_config = false;
    if (!s->color && s->config)
        s->color = s->config->color;
    rc = rule_dirs(s, args, dirs, &opts.nrule_dirs, err);
    if (rc)
        return rc;
    opts.cache_dir = s->cache = cache_dir(s, args);
    opts.pcre2_only = args->engine && strcmp(args->engine, "pcre2") == 0;
    /* Seconds the first time, when the patterns are compiled; a blink afterwards. */
    progress_init(&progress, "rules", args->quiet);
    progress_say(&progress, "reading the rules");
    rc = fl_engine_open(&opts, &s->engine, err);
    progress_end(&progress);
    return rc;
}

int cli_session_try(struct cli_session *s, const struct cli_args *args, bool *in_config,
                    fl_err *err)
{
    return try_open(s, args, false, in_config, err);
}

static int open_session(struct cli_session *s, const struct cli_args *args, bool digests)
{
    const char *note;
    bool in_config;
    fl_err err;

    if (try_open(s, args, digests, &in_config, &err))
        return cli_fail_err(&err);
    note = fl_engine_cache_note(s->engine);
    if (note && args->verbose)
        cli_note(args, "%s", note);
    return CLI_OK;
}

int cli_session_open(struct cli_session *s, const struct cli_args *args)
{
    return open_session(s, args, false);
}

int cli_session_open_for_digests(struct cli_session *s, const struct cli_args *args)
{
    return open_session(s, args, true);
}

const char *cli_home(const struct cli_session *s)
{
    const char *named = getenv("FAULTLINE_HOME");

    return !(named && *named) && s->config ? s->config->memory_home : NULL;
}

void cli_memory_place(const struct cli_session *s, const struct cli_args *args,
                      struct fl_memory_opts *o)
{
    o->home = cli_home(s);
    o->config = s->config;
    o->offline = args->offline;
}

int cli_memory_open(const struct cli_session *s, const struct cli_args *args,
                    const struct fl_memory_opts *opts, fl_memory **out)
{
    struct fl_memory_opts o = opts ? *opts : (struct fl_memory_opts){.home = NULL};
    struct progress progress;
    fl_err err;
    int r;

    cli_memory_place(s, args, &o);
    progress_init(&progress, "incidents", args->quiet);
    progress_say(&progress, "opening the memory of past incidents");
    r = fl_memory_open(s->engine, &o, out, &err);
    progress_end(&progress);
    return r ? cli_fail_err(&err) : CLI_OK;
}

void cli_memory_note(const struct cli_args *args, const fl_memory *m)
{
    if (fl_memory_note(m))
        cli_note(args, "%s", fl_memory_note(m));
}

void cli_session_dispose(struct cli_session *s)
{
    fl_engine_free(s->engine);
    fl_config_free(s->config);
    s->engine = NULL;
    s->config = NULL;
}
