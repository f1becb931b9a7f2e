/*
 * `diagnose doctor`: what is there, what fits together, what to run.
 *
 * One line for each part, and under it what to do about it. Nothing is changed. The status is 4
 * when something is broken that an answer needs, and 0 when all works, even if less well than it
 * could. The language models come last: what needs no network is on the screen before one is
 * waited for.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

struct sheet {
    struct out o;
    struct progress progress; /* while an endpoint is asked */
    bool json, quiet;
    size_t n;
    enum fl_health worst;
};

static const char *const words[] = {"ok", "note", "worse", "broken"};

static void row(void *ctx, const struct fl_checkup *c)
{
    static const enum out_style styles[] = {OUT_GREEN, OUT_PLAIN, OUT_YELLOW, OUT_RED};
    struct sheet *s = ctx;

    progress_end(&s->progress);
    s->worst = c->health > s->worst ? c->health : s->worst;
    if (s->json) {
        printf("%s\n{\"name\":\"%s\",\"health\":\"%s\",\"text\":", s->n++ ? "," : "", c->name,
               words[c->health]);
        out_json_text(stdout, c->text);
        if (c->run) {
            fputs(",\"run\":", stdout);
            out_json_text(stdout, c->run);
        }
        fputs("}", stdout);
        return;
    }
    printf("%-9s ", c->name);
    out_text(&s->o, styles[c->health], words[c->health]);
    out_pad(&s->o, (unsigned)(7 - strlen(words[c->health])));
    out_text(&s->o, OUT_PLAIN, c->text);
    if (c->run) {
        fputs("\n                 run: ", stdout);
        out_text(&s->o, OUT_BOLD, c->run);
    }
    fputc('\n', stdout);
}

__attribute__((format(printf, 5, 6))) static void
say(struct sheet *s, const char *name, enum fl_health health, const char *run, const char *fmt, ...)
{
    struct fl_checkup c = {.name = name, .health = health, .run = run};
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    c.text = text;
    row(s, &c);
}

static void look_at_cache(struct sheet *s, const struct cli_session *session)
{
    const char *note = session->engine ? fl_engine_cache_note(session->engine) : NULL;

    if (!session->cache)
        say(s, "cache", FL_HEALTH_NOTE, NULL, "compiled patterns are not kept");
    else if (access(session->cache, F_OK) == 0 && access(session->cache, W_OK | X_OK) != 0)
        say(s, "cache", FL_HEALTH_WORSE, "name a folder of your own with `cache: DIR`",
            "%s: cannot be written; patterns are compiled anew each time", session->cache);
    else if (note)
        say(s, "cache", FL_HEALTH_NOTE, NULL, "%s: %s", session->cache, note);
    else
        say(s, "cache", FL_HEALTH_OK, NULL, "%s", session->cache);
}

static void asking(void *ctx, const char *endpoint)
{
    struct sheet *s = ctx;
    char name[60]; /* what is longer than the screen could not be erased */
    struct out_line l = {.n = 0};

    fl_printable(endpoint, name, sizeof(name));
    out_line_add(&l, "asking %s", name);
    fflush(stdout);
    progress_end(&s->progress);
    progress_init(&s->progress, "answer", s->quiet);
    progress_say(&s->progress, l.p);
}

static void look_at_endpoints(struct sheet *s, const struct cli_args *args,
                              const struct fl_config *c)
{
    struct fl_doctor_ask o = {
        .config = c, .seconds = args->seconds, .asking = asking, .tell = row, .ctx = s};
    size_t n = c ? c->nendpoints : 0;
    fl_err err;

    if (n && args->offline)
        say(s, "endpoint", FL_HEALTH_NOTE, NULL, "%zu configured, not asked: --offline", n);
    else if (fl_doctor_endpoints(&o, &err) < 0)
        say(s, "endpoint", FL_HEALTH_WORSE, NULL, "%s", err.msg);
    progress_end(&s->progress);
}

static int examine(struct sheet *s, const struct cli_args *args)
{
    struct fl_memory_opts mo = {.home = NULL};
    struct cli_session session;
    bool in_config, wrong;
    fl_err err;
    int r = cli_session_try(&session, args, &in_config, &err);

    out_init(&s->o, stdout, session.color, args->width);
    if (s->json)
        fputs("{\"schema\":\"faultline.doctor/1\",\"checks\":[", stdout);
    wrong = r && in_config;
    if (wrong)
        say(s, "config", FL_HEALTH_BROKEN, "mend the file, or name another with --config", "%s",
            err.msg);
    else
        say(s, "config", FL_HEALTH_OK, NULL, "%s",
            session.config_path ? session.config_path : "no file; the defaults hold");
    if (r && !in_config)
        say(s, "rules", FL_HEALTH_BROKEN, "diagnose rules test", "%s", err.msg);
    else if (!r)
        say(s, "rules", FL_HEALTH_OK, NULL, "%zu rules, version %s, %s",
            fl_engine_rules(session.engine), fl_engine_rules_version(session.engine),
            fl_engine_scanner(session.engine));
    if (!r)
        look_at_cache(s, &session);
    cli_memory_place(&session, args, &mo);
    r = fl_doctor(&mo, row, s, &err);
    if (r < 0)
        say(s, "data", FL_HEALTH_BROKEN, NULL, "%s", err.msg);
    if (!wrong)
        look_at_endpoints(s, args, session.config);
    cli_session_dispose(&session);
    if (s->json)
        printf("\n],\"usable\":%s,\"version\":\"%s\"}\n",
               s->worst < FL_HEALTH_BROKEN ? "true" : "false", fl_version());
    return s->worst < FL_HEALTH_BROKEN ? CLI_OK : CLI_BACKEND;
}

int cmd_doctor(const struct cli_args *args)
{
    struct sheet s = {.json = args->json, .quiet = args->quiet};

    return examine(&s, args);
}
