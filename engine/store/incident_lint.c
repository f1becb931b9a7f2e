/*
 * What loads but should not ship.
 *
 * The store takes an incident that says little, because a person in a hurry may confirm an answer
 * with one line. A corpus is held to more: it must say why it happened and what helped, where it is
 * known from, and its lines must be lines and not pages, since a long line is dear to embed and
 * likes everything. Every finding is reported before the count is returned, so a file is mended in
 * one go; only a file that is no YAML ends at its first fault, which is then one finding.
 */
#include "store/incident.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/map.h"
#include "base/alloc.h"

#define MAX_LINE 400

struct lint {
    const struct fl_incident_lint *l;
    struct place {
        const char *file; /* in the arena */
        unsigned line;
    } * places; /* of the ids, by the value in `ids` */
    size_t nplaces, cap;
    fl_map ids;
    fl_arena arena;
    int found;
};

__attribute__((format(printf, 3, 4))) static void say(struct lint *l, const struct fl_incident *inc,
                                                      const char *fmt, ...)
{
    char text[1024];
    size_t n;
    va_list ap;

    n = (size_t)snprintf(text, sizeof(text), "%.300s:%u: incident '%.*s': ", inc->file, inc->line,
                         FL_FMT(inc->id));
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - n, fmt, ap);
    va_end(ap);
    l->l->report(l->l->ctx, text);
    l->found++;
}

static int lint_id(struct lint *l, const struct fl_incident *inc, fl_err *err)
{
    uint32_t at = 0;
    bool fresh = false;

    if (fl_grow((void **)&l->places, &l->cap, l->nplaces + 1, sizeof(*l->places)) ||
        fl_map_intern(&l->ids, inc->id, (uint32_t)l->nplaces, &at, &fresh))
        return fl_fail_nomem(err);
    if (!fresh) {
        say(l, inc, "the id is taken at %.200s:%u; choose another", l->places[at].file,
            l->places[at].line);
        return FL_OK;
    }
    if (l->nplaces && !strcmp(l->places[l->nplaces - 1].file, inc->file))
        l->places[l->nplaces].file = l->places[l->nplaces - 1].file;
    else
        l->places[l->nplaces].file = fl_arena_z(&l->arena, fl_str_c(inc->file));
    if (!l->places[l->nplaces].file)
        return fl_fail_nomem(err);
    l->places[l->nplaces++].line = inc->line;
    return FL_OK;
}

static void lint_evidence(struct lint *l, const struct fl_incident *inc)
{
    if (inc->nevidence == 0)
        say(l, inc, "has no evidence; quote the decisive lines");
    for (size_t i = 0; i < inc->nevidence; i++) {
        fl_str rest = inc->evidence[i];
        if (fl_str_trim(rest).n == 0)
            say(l, inc, "evidence line %zu is blank; remove it", i + 1);
        for (size_t k = 0; k < i; k++)
            if (fl_str_eq(inc->evidence[k], inc->evidence[i]))
                say(l, inc, "evidence lines %zu and %zu are the same; remove one", k + 1, i + 1);
        while (rest.n) {
            fl_str line = fl_str_cut(&rest, '\n');
            if (line.n > MAX_LINE)
                say(l, inc, "evidence line %zu has %zu bytes, at most %d; keep what decides", i + 1,
                    line.n, MAX_LINE);
        }
    }
}

static int lint_one(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    struct lint *l = ctx;

    lint_evidence(l, inc);
    if (l->l->cause && !l->l->cause(l->l->ctx, inc->cause))
        say(l, inc, "cause '%.*s' is not in taxonomy.yaml; choose one that is", FL_FMT(inc->cause));
    if (fl_str_trim(inc->title).n == 0)
        say(l, inc, "has no title; say in a few words what happened");
    if (inc->kind == FL_KIND_INCIDENT && fl_str_trim(inc->explanation).n == 0)
        say(l, inc, "has no explanation; say why it happened");
    if (inc->kind == FL_KIND_INCIDENT && fl_str_trim(inc->fix).n == 0)
        say(l, inc, "has no fix; say what helped");
    if (fl_str_trim(inc->source).n == 0)
        say(l, inc, "has no source; say where it is known from");
    return lint_id(l, inc, err);
}

static int lint_file(struct lint *l, const char *path, fl_err *err)
{
    fl_err why = {0};
    int r = fl_incidents_load(path, lint_one, l, &why);

    if (r == FL_ERULE) {
        l->l->report(l->l->ctx, why.msg);
        l->found++;
        return FL_OK;
    }
    return r ? fl_fail(err, r, "%s", why.msg) : FL_OK;
}

int fl_incidents_lint(const char *path, const struct fl_incident_lint *opts, fl_err *err)
{
    struct lint l = {.l = opts};
    const char **names = NULL;
    size_t n = 0, files = 0;
    int r = FL_OK;

    fl_arena_init(&l.arena);
    fl_map_init(&l.ids);
    if (!fl_file_is_dir(path)) {
        r = lint_file(&l, path, err);
        goto out;
    }
    r = fl_file_list(path, &l.arena, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        const char *file = fl_file_join(&l.arena, path, names[i]);
        if (names[i][0] == '.' || !fl_str_ends(fl_str_c(names[i]), FL_S(".yaml")))
            continue;
        r = file ? lint_file(&l, file, err) : fl_fail_nomem(err);
        files++;
    }
    if (!r && !files)
        r = fl_fail(err, FL_EINPUT, "%s: holds no .yaml file; name another folder", path);
out:
    fl_free(l.places);
    fl_map_dispose(&l.ids);
    fl_arena_dispose(&l.arena);
    return r ? r : l.found;
}
