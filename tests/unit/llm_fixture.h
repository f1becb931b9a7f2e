#ifndef FL_TESTS_LLM_FIXTURE_H
#define FL_TESTS_LLM_FIXTURE_H
/*
 * For tests of the LLM client: the causes of rules/taxonomy.yaml as terms, a transport that plays
 * a script, a world whose time passes only when somebody waits, and the server of tests/fakes.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/yaml.h"
#include "http/http.h"
#include "llm/chat.h"

static const char *const fx_actions[] = {
    "restart",     "wait_and_retry", "cordon_and_restart", "reset_gpu",  "rollback_and_skip",
    "investigate", "fix_code",       "fix_config",         "free_space", "raise_limit",
    "none"};

static inline struct fl_llm_terms fx_terms(fl_arena *arena)
{
    struct fl_llm_terms t = {NULL, 0, fx_actions, sizeof(fx_actions) / sizeof(*fx_actions)};
    const fl_yaml *root = NULL, *list;
    struct fl_llm_cause *causes;
    fl_err err = {0};

    if (fl_yaml_load(FL_SOURCE_DIR "/rules/taxonomy.yaml", arena, &root, &err))
        fail_msg("%s", err.msg);
    list = fl_yaml_get(root, "causes");
    causes = fl_arena_alloc(arena, list->n * sizeof(*causes));
    for (const fl_yaml *c = list->first; c; c = c->next) {
        causes[t.ncauses].id = fl_arena_z(arena, fl_yaml_get(c, "id")->text);
        causes[t.ncauses].class_name = fl_arena_z(arena, fl_yaml_get(c, "class")->text);
        causes[t.ncauses].title = fl_arena_z(arena, fl_yaml_get(c, "title")->text);
        t.ncauses++;
    }
    t.causes = causes;
    return t;
}

/* ---- a world in which time passes when somebody waits ---- */

struct fx_world {
    struct fl_http_world w;
    double now, wall, chance, slept;
    unsigned pauses;
    double pause[32];
};

static inline double fx_now(void *ctx)
{
    return ((struct fx_world *)ctx)->now;
}
static inline double fx_wall(void *ctx)
{
    return ((struct fx_world *)ctx)->wall;
}
static inline void fx_pause(void *ctx, double seconds, const volatile sig_atomic_t *cancel)
{
    struct fx_world *f = ctx;

    (void)cancel;
    f->now += seconds;
    f->wall += seconds;
    f->slept += seconds;
    if (f->pauses < 32)
        f->pause[f->pauses] = seconds;
    f->pauses++;
}
static inline double fx_chance(void *ctx)
{
    return ((struct fx_world *)ctx)->chance;
}
static inline void fx_world_init(struct fx_world *f)
{
    memset(f, 0, sizeof(*f));
    f->w = (struct fl_http_world){fx_now, fx_wall, fx_pause, fx_chance, f};
    f->now = 1000;
    f->wall = 1445412480; /* Wed, 21 Oct 2015 07:28:00 GMT */
}

/* ---- a transport that plays a script ---- */

struct fx_step {
    enum fl_http_end end;
    int status;
    const char *type, *retry_after, *body;
    size_t piece; /* bytes given to on_bytes at once; 0: all */
};
struct fx_script {
    const struct fx_step *steps;
    size_t n, at;
    char sent[8][16384]; /* the bodies that came */
    char url[8][400], auth[8][200];
    double deadline;
    struct fl_http_transport t;
};

static inline void fx_note_request(struct fx_script *s, const struct fl_http_request *rq)
{
    size_t k = s->at < 8 ? s->at : 7;

    snprintf(s->sent[k], sizeof(s->sent[k]), "%.*s", FL_FMT(rq->body));
    snprintf(s->url[k], sizeof(s->url[k]), "%s", rq->url);
    s->auth[k][0] = 0;
    for (size_t i = 0; i < rq->nheaders; i++)
        if (rq->headers[i].secret)
            snprintf(s->auth[k], sizeof(s->auth[k]), "%s: %s", rq->headers[i].name,
                     rq->headers[i].value);
    s->deadline = rq->deadline;
}

static inline int fx_perform(void *ctx, const struct fl_http_request *rq,
                             struct fl_http_reply *reply, fl_err *err)
{
    struct fx_script *s = ctx;
    const struct fx_step *step;
    fl_str body;

    fx_note_request(s, rq);
    if (s->at >= s->n)
        fail_msg("request %zu, and the script has %zu", s->at + 1, s->n);
    step = &s->steps[s->at++];
    reply->end = step->end;
    reply->status = step->status;
    reply->tries = 1;
    snprintf(reply->content_type, sizeof(reply->content_type), "%s",
             step->type ? step->type : "application/json");
    snprintf(reply->retry_after, sizeof(reply->retry_after), "%s",
             step->retry_after ? step->retry_after : "");
    body = fl_str_c(step->body);
    if (rq->on_bytes && step->status >= 200 && step->status < 300)
        for (size_t at = 0; at < body.n; at += step->piece ? step->piece : body.n) {
            int r = rq->on_bytes(rq->ctx, reply,
                                 fl_str_sub(body, at, step->piece ? step->piece : body.n), err);
            reply->streamed = true;
            if (r < 0) {
                reply->end = FL_HTTP_STOPPED;
                return r;
            }
        }
    else
        fl_buf_add(&reply->body, body);
    if (step->end != FL_HTTP_DONE)
        return fl_fail(err, FL_EBACKEND, "http://s/v1: step %zu failed", s->at);
    return FL_OK;
}

static inline const struct fl_http_transport *fx_play(struct fx_script *s,
                                                      const struct fx_step *steps, size_t n)
{
    memset(s, 0, sizeof(*s));
    s->steps = steps;
    s->n = n;
    s->t = (struct fl_http_transport){fx_perform, s};
    return &s->t;
}

/* ---- the server of tests/fakes ---- */

struct fx_server {
    pid_t pid;
    int port, in;
};

static inline struct fx_server fx_serve(const char *const *args)
{
    const char *argv[24] = {FL_LLM_SERVER};
    struct fx_server s = {-1, 0, -1};
    int out[2], in[2];
    char line[64] = "";
    struct pollfd wait;

    for (int i = 0; args && args[i] && i < 22; i++)
        argv[i + 1] = args[i];
    if (pipe(out) || pipe(in))
        fail_msg("no pipe");
    s.pid = fork();
    if (s.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(out[1]);
    close(in[0]);
    s.in = in[1];
    wait = (struct pollfd){out[0], POLLIN, 0};
    if (poll(&wait, 1, 20000) < 1 || read(out[0], line, sizeof(line) - 1) < 1 ||
        sscanf(line, "PORT %d", &s.port) != 1)
        fail_msg("%s does not start: '%s'", argv[0], line);
    close(out[0]);
    return s;
}

static inline void fx_stop(struct fx_server *s)
{
    close(s->in);
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
}

#endif
