/*
 * How well past incidents are found: each labelled case of a folder is looked up, four ways.
 *
 * Right is a cause that the label accepts, counted among distinct causes: first, in the first
 * three, in the first five. The ways stand side by side (both lists joined, words alone, vectors
 * alone, the whole text as one vector), so that each part shows what it earns. A healthy case is
 * right when nothing is above the floor. No incident may come from the source of a case
 * (tests/corpus_sources.py holds that).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "diagnose/memory.h"
#include "diagnose/remote.h"

#define ASKED 60 /* neighbours, among them five distinct causes */

struct fl_search_eval {
    struct fl_search_totals totals;
    struct fl_search_case *cases;
    size_t n, cap;
    fl_arena arena;
};

static bool accepts(const fl_json *label, const char *cause)
{
    const fl_json *more = fl_json_get(label, "also_acceptable");
    const char *want = fl_json_z(fl_json_get(label, "cause"));

    if (want && strcmp(want, cause) == 0)
        return true;
    for (const fl_json *i = fl_json_first(more); i; i = fl_json_next(i))
        if (fl_json_z(i) && strcmp(fl_json_z(i), cause) == 0)
            return true;
    return false;
}

/* The place of the right cause among distinct ones, from 1; 0: not there. */
static size_t place_of(const fl_neighbours *n, const fl_json *label)
{
    const char *seen[ASKED];
    size_t distinct = 0;

    for (size_t i = 0; i < fl_neighbours_count(n); i++) {
        const char *cause = fl_neighbours_get(n, i)->cause;
        bool again = false;
        for (size_t k = 0; k < distinct; k++)
            again |= strcmp(seen[k], cause) == 0;
        if (again)
            continue;
        seen[distinct++] = cause;
        if (accepts(label, cause))
            return distinct;
    }
    return 0;
}

static void count(struct fl_search_eval *ev, int way, size_t place)
{
    ev->totals.way[way].first += place == 1;
    ev->totals.way[way].three += place && place <= 3;
    ev->totals.way[way].five += place && place <= 5;
}

static int healthy_case(struct fl_search_eval *ev, fl_memory *m, const fl_diagnosis *d, fl_err *err)
{
    fl_neighbours *n = NULL;
    int r = fl_search_job(m, d, NULL, &n, err);

    if (r)
        return r;
    ev->totals.healthy++;
    ev->totals.silent += fl_neighbours_count(n) == 0;
    fl_neighbours_free(n);
    return FL_OK;
}

static int failed_case(struct fl_search_eval *ev, fl_memory *m, const fl_diagnosis *d,
                       const fl_json *label, const char *id, fl_err *err)
{
    struct fl_search_case c = {.id = fl_arena_z(&ev->arena, fl_str_c(id))};
    int r = FL_OK;

    ev->totals.cases++;
    ev->totals.endpoint = m->remote && fl_remote_ready(m);
    c.expected = fl_arena_z(&ev->arena, fl_str_c(fl_json_z(fl_json_get(label, "cause"))));
    for (int way = 0; !r && way <= FL_BY_ENDPOINT; way++) {
        struct fl_search_opts o = {.k = ASKED, .floor = -1, .by = (enum fl_search_by)way};
        fl_neighbours *n = NULL;
        size_t place;
        r = fl_search_job(m, d, &o, &n, err);
        if (r)
            break;
        place = place_of(n, label);
        count(ev, way, place);
        if (way == 0) {
            c.place = place;
            if (fl_neighbours_count(n)) {
                const struct fl_neighbour *x = fl_neighbours_get(n, 0);
                c.got = fl_arena_z(&ev->arena, fl_str_c(x->cause));
                c.incident = fl_arena_z(&ev->arena, fl_str_c(x->incident));
                c.score = x->score;
                c.similarity = x->similarity;
                c.words = x->words;
            }
        }
        fl_neighbours_free(n);
    }
    if (!r && fl_grow((void **)&ev->cases, &ev->cap, ev->n + 1, sizeof(*ev->cases)))
        r = fl_fail_nomem(err);
    if (!r)
        ev->cases[ev->n++] = c;
    return r;
}

static int one_case(struct fl_search_eval *ev, fl_memory *m, const char *dir, const char *id,
                    fl_err *err)
{
    const char *path = fl_file_join(&ev->arena, dir, id), *label_path;
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    fl_json *label = NULL;
    fl_buf text;
    int r;

    label_path = path ? fl_file_join(&ev->arena, path, "label.json") : NULL;
    if (!label_path)
        return fl_fail_nomem(err);
    if (!fl_file_exists(label_path))
        return FL_OK;
    fl_buf_init(&text, 1u << 20);
    r = fl_file_read(label_path, &text, err);
    if (!r)
        r = fl_json_parse(fl_buf_str(&text), label_path, &label, err);
    o.paths = &path;
    o.npaths = 1;
    o.digest = true;
    if (!r)
        r = fl_diagnose(m->engine, &o, &d, err);
    if (!r) {
        const char *cause = fl_json_z(fl_json_get(label, "cause"));
        if (cause && strcmp(cause, "none") == 0)
            r = healthy_case(ev, m, d, err);
        else if (cause && strcmp(cause, "unknown") != 0)
            r = failed_case(ev, m, d, label, id, err);
    }
    fl_diagnosis_free(d);
    fl_json_free(label);
    fl_buf_dispose(&text);
    return r;
}

int fl_search_eval_run(fl_memory *m, const char *dir,
                       void (*progress)(void *ctx, size_t done, size_t total), void *ctx,
                       struct fl_search_eval **out, fl_err *err)
{
    struct fl_search_eval *ev = fl_calloc(1, sizeof(*ev));
    const char **names;
    size_t n = 0;
    int r;

    if (!ev)
        return fl_fail_nomem(err);
    fl_arena_init(&ev->arena);
    r = fl_file_list(dir, &ev->arena, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        r = one_case(ev, m, dir, names[i], err);
        if (progress)
            progress(ctx, i + 1, n);
    }
    if (!r && !ev->totals.cases && !ev->totals.healthy)
        r = fl_fail(err, FL_EINPUT, "%s: no case in it: a folder with its logs and a label.json",
                    dir);
    if (r) {
        fl_search_eval_free(ev);
        return r;
    }
    *out = ev;
    return FL_OK;
}

void fl_search_eval_free(struct fl_search_eval *ev)
{
    if (!ev)
        return;
    fl_free(ev->cases);
    fl_arena_dispose(&ev->arena);
    fl_free(ev);
}

const struct fl_search_totals *fl_search_eval_totals(const struct fl_search_eval *ev)
{
    return &ev->totals;
}

const struct fl_search_case *fl_search_eval_cases(const struct fl_search_eval *ev, size_t *n)
{
    *n = ev->n;
    return ev->cases;
}
