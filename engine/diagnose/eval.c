/*
 * Evaluation: diagnose every labelled case of a folder and compare.
 *
 * A case is a folder with its logs and a label.json (never read as a log). Right is: the cause, or
 * one of also_acceptable; the class of the label, or the class that goes with an accepted cause;
 * the action, or one of also_acceptable_actions; all places that the label names and at most two
 * more; one decisive line among the first ten of the evidence. A false alarm is a failure claimed
 * for a case labelled `none`.
 *
 * Claimed confidence is held against what was right, in bands, so that "90 %" can be checked.
 */
#include "diagnose/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#define EVIDENCE_SEEN 10
#define PLACES_MORE 2
#define BANDS 5

struct fl_eval {
    fl_arena arena;
    fl_match_scratch *scratch; /* for the labels' expressions */
    struct fl_case_result *cases;
    size_t n, cap;
    struct fl_calibration_row rows[BANDS];
};

static bool listed(const fl_json *list, const char *word)
{
    if (!fl_json_is_array(list))
        return false;
    for (const fl_json *i = fl_json_first(list); i; i = fl_json_next(i))
        if (fl_json_z(i) && word && strcmp(fl_json_z(i), word) == 0)
            return true;
    return false;
}

/* "n12" and "n12.cluster" are one host. */
static bool same_host(const char *a, const char *b)
{
    size_t na = strcspn(a, "."), nb = strcspn(b, ".");

    return strcmp(a, b) == 0 || (na == nb && strncmp(a, b, na) == 0 && (a[0] < '0' || a[0] > '9'));
}

static bool has_number(const int32_t *v, size_t n, double x)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == (int32_t)x)
            return true;
    return false;
}

static bool place_named(const struct fl_report *r, const char *key, const fl_json *value)
{
    double number = 0;
    bool numeric = fl_json_num(value, &number);
    const char *z = fl_json_z(value);

    if (strcmp(key, "rank") == 0)
        return numeric && has_number(r->location.ranks, r->location.nranks, number);
    if (strcmp(key, "gpu") == 0 && numeric)
        return has_number(r->location.gpu_indices, r->location.ngpu_indices, number);
    if (strcmp(key, "gpu") == 0) {
        for (size_t i = 0; z && i < r->location.ngpus; i++)
            if (strstr(r->location.gpus[i], z) || strstr(z, r->location.gpus[i]))
                return true;
        return false;
    }
    for (size_t i = 0; z && i < r->location.nhosts; i++)
        if (same_host(r->location.hosts[i], z))
            return true;
    return false;
}

static int judge_place(const struct fl_report *r, const fl_json *label)
{
    const fl_json *where = fl_json_get(label, "fault_location"), *p, *v;
    size_t named = 0, wanted = 0,
           ngpu = r->location.ngpus > r->location.ngpu_indices ? r->location.ngpus
                                                               : r->location.ngpu_indices;

    for (p = where ? fl_json_first(where) : NULL; p; p = fl_json_next(p)) {
        const char *key = fl_json_key(p);
        if (!strcmp(key, "rank") || !strcmp(key, "host") || !strcmp(key, "gpu")) {
            bool list = fl_json_is_array(p);
            for (v = list ? fl_json_first(p) : p; v; v = list ? fl_json_next(v) : NULL) {
                wanted++;
                named += place_named(r, key, v);
            }
        }
    }
    if (!wanted)
        return -1;
    return named == wanted &&
           r->location.nranks + r->location.nhosts + ngpu <= wanted + PLACES_MORE;
}

static int judge_evidence(const struct fl_report *r, const fl_json *label,
                          fl_match_scratch *scratch)
{
    const fl_json *lines = fl_json_get(label, "decisive_lines"), *l;
    bool found = false;

    if (fl_json_size(lines) == 0)
        return -1;
    for (l = fl_json_first(lines); l && !found; l = fl_json_next(l)) {
        fl_regex *re = NULL;
        if (!fl_json_z(l) || fl_regex_new(fl_str_c(fl_json_z(l)), false, "label.json", &re, NULL))
            continue;
        for (size_t i = 0; i < r->nevidence && i < EVIDENCE_SEEN && !found; i++)
            found = fl_regex_match(re, scratch, fl_str_c(r->evidence[i].text), NULL);
        fl_regex_free(re);
    }
    return found;
}

static const char *copy(fl_arena *a, const char *z)
{
    const char *c = fl_arena_z(a, fl_str_c(z ? z : ""));

    return c ? c : "";
}

static void judge(fl_eval *ev, const struct fl_report *r, const fl_json *label,
                  struct fl_case_result *c)
{
    fl_arena *a = &ev->arena;
    bool exact;

    c->expected = copy(a, fl_json_z(fl_json_get(label, "cause")));
    c->class_expected = copy(a, fl_json_z(fl_json_get(label, "class")));
    c->action_expected = copy(a, fl_json_z(fl_json_get(label, "action")));
    c->got = copy(a, r->cause.id);
    c->class_got = copy(a, r->cause.class_name);
    c->action_got = copy(a, r->action.id);
    c->confidence = r->cause.confidence;
    c->elapsed_ms = r->elapsed_ms;
    exact = strcmp(c->got, c->expected) == 0;
    c->cause_ok = exact || listed(fl_json_get(label, "also_acceptable"), c->got);
    c->class_ok = strcmp(c->class_got, c->class_expected) == 0 || (c->cause_ok && !exact);
    c->action_ok = strcmp(c->action_got, c->action_expected) == 0 ||
                   listed(fl_json_get(label, "also_acceptable_actions"), c->action_got);
    c->place_ok = judge_place(r, label);
    c->evidence_ok = judge_evidence(r, label, ev->scratch);
    c->false_alarm = strcmp(c->expected, "none") == 0 && !c->cause_ok;
}

static int run_case(const fl_engine *e, fl_eval *ev, const char *dir, const char *id, fl_err *err)
{
    const char *label_path = fl_file_join(&ev->arena, dir, "label.json");
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct fl_case_result c = {.id = copy(&ev->arena, id),
                               .place_ok = -1,
                               .evidence_ok = -1,
                               .expected = "",
                               .got = "",
                               .class_expected = "",
                               .class_got = "",
                               .action_expected = "",
                               .action_got = ""};
    fl_diagnosis *d = NULL;
    fl_json *label = NULL;
    fl_err local = {0};
    fl_buf text;
    int r;

    fl_buf_init(&text, 4u << 20);
    r = label_path ? fl_file_read(label_path, &text, &local) : fl_fail_nomem(&local);
    if (!r)
        r = fl_json_parse(fl_buf_str(&text), label_path, &label, &local);
    opts.paths = &dir;
    opts.npaths = 1;
    if (!r)
        r = fl_diagnose(e, &opts, &d, &local);
    if (!r)
        judge(ev, fl_diagnosis_report(d), label, &c);
    else
        c.error = copy(&ev->arena, local.msg);
    fl_diagnosis_free(d);
    fl_json_free(label);
    fl_buf_dispose(&text);
    if (fl_grow((void **)&ev->cases, &ev->cap, ev->n + 1, sizeof(*ev->cases)))
        return fl_fail_nomem(err);
    ev->cases[ev->n++] = c;
    return FL_OK;
}

static void calibrate(fl_eval *ev)
{
    static const double edges[BANDS + 1] = {0, 0.5, 0.7, 0.85, 0.95, 1.0001};

    for (size_t b = 0; b < BANDS; b++) {
        struct fl_calibration_row *row = &ev->rows[b];
        *row = (struct fl_calibration_row){.from = edges[b],
                                           .to = edges[b + 1] > 1 ? 1 : edges[b + 1]};
        for (size_t i = 0; i < ev->n; i++) {
            const struct fl_case_result *c = &ev->cases[i];
            if (c->error || c->confidence < edges[b] || c->confidence >= edges[b + 1])
                continue;
            row->claimed += c->confidence;
            row->cases++;
            row->right += c->cause_ok;
        }
        if (row->cases)
            row->claimed /= (double)row->cases;
    }
}

static bool is_case(fl_arena *a, const char *dir)
{
    const char *label = fl_file_join(a, dir, "label.json");

    return label && fl_file_exists(label);
}

int fl_eval_run(const fl_engine *e, const char *dir,
                void (*progress)(void *ctx, size_t done, size_t total), void *ctx, fl_eval **out,
                fl_err *err)
{
    fl_eval *ev = fl_calloc(1, sizeof(*ev));
    const char **names = NULL;
    size_t n = 0;
    int r;

    if (!ev)
        return fl_fail_nomem(err);
    fl_arena_init(&ev->arena);
    r = fl_match_scratch_new(e->matcher, &ev->scratch, err);
    if (!r)
        r = fl_file_list(dir, &ev->arena, &names, &n, err);
    if (!r && is_case(&ev->arena, dir))
        r = run_case(e, ev, dir, dir, err);
    for (size_t i = 0; !r && i < n; i++) {
        const char *sub = fl_file_join(&ev->arena, dir, names[i]);
        if (progress)
            progress(ctx, i, n);
        if (sub && fl_file_is_dir(sub) && is_case(&ev->arena, sub))
            r = run_case(e, ev, sub, names[i], err);
    }
    if (!r && ev->n == 0)
        r = fl_fail(err, FL_EINPUT,
                    "%s: no labelled case there; a case is a folder with logs and a "
                    "label.json",
                    dir);
    if (r) {
        fl_eval_free(ev);
        return r;
    }
    calibrate(ev);
    *out = ev;
    return FL_OK;
}

void fl_eval_free(fl_eval *ev)
{
    if (!ev)
        return;
    fl_free(ev->cases);
    fl_match_scratch_free(ev->scratch);
    fl_arena_dispose(&ev->arena);
    fl_free(ev);
}

size_t fl_eval_cases(const fl_eval *ev)
{
    return ev->n;
}

const struct fl_case_result *fl_eval_case(const fl_eval *ev, size_t i)
{
    return &ev->cases[i];
}

size_t fl_eval_calibration(const fl_eval *ev, const struct fl_calibration_row **out)
{
    *out = ev->rows;
    return BANDS;
}

static void put_case(fl_json *cases, const struct fl_case_result *c)
{
    fl_json *o = fl_json_add_object(cases);

    fl_json_put_z(o, "id", c->id);
    if (c->error) {
        fl_json_put_z(o, "error", c->error);
        return;
    }
    fl_json_put_z(o, "expected", c->expected);
    fl_json_put_z(o, "got", c->got);
    fl_json_put_num(o, "confidence", c->confidence);
    fl_json_put_bool(o, "cause_ok", c->cause_ok);
    fl_json_put_bool(o, "class_ok", c->class_ok);
    fl_json_put_bool(o, "action_ok", c->action_ok);
    fl_json_put_z(o, "action_expected", c->action_expected);
    fl_json_put_z(o, "action_got", c->action_got);
    if (c->place_ok >= 0)
        fl_json_put_bool(o, "place_ok", c->place_ok == 1);
    if (c->evidence_ok >= 0)
        fl_json_put_bool(o, "evidence_ok", c->evidence_ok == 1);
    fl_json_put_bool(o, "false_alarm", c->false_alarm);
    fl_json_put_int(o, "elapsed_ms", c->elapsed_ms);
}

void fl_eval_totals(const fl_eval *ev, struct fl_eval_totals *out)
{
    struct fl_eval_totals t = {.cases = ev->n};

    for (size_t i = 0; i < ev->n; i++) {
        const struct fl_case_result *c = &ev->cases[i];
        if (c->error) {
            t.errors++;
            continue;
        }
        t.cause += c->cause_ok;
        t.class_right += c->class_ok;
        t.action += c->action_ok;
        t.place += c->place_ok == 1;
        t.place_of += c->place_ok >= 0;
        t.evidence += c->evidence_ok == 1;
        t.evidence_of += c->evidence_ok >= 0;
        t.healthy += strcmp(c->expected, "none") == 0;
        t.false_alarms += c->false_alarm;
    }
    *out = t;
}

static void put_totals(fl_json *root, const fl_eval *ev)
{
    fl_json *o = fl_json_put_object(root, "totals"), *a;
    struct fl_eval_totals t;

    fl_eval_totals(ev, &t);
    fl_json_put_int(o, "cases", (int64_t)t.cases);
    fl_json_put_int(o, "errors", (int64_t)t.errors);
    fl_json_put_int(o, "cause", (int64_t)t.cause);
    fl_json_put_int(o, "class", (int64_t)t.class_right);
    fl_json_put_int(o, "action", (int64_t)t.action);
    fl_json_put_int(o, "place", (int64_t)t.place);
    fl_json_put_int(o, "place_of", (int64_t)t.place_of);
    fl_json_put_int(o, "evidence", (int64_t)t.evidence);
    fl_json_put_int(o, "evidence_of", (int64_t)t.evidence_of);
    fl_json_put_int(o, "false_alarms", (int64_t)t.false_alarms);
    a = fl_json_put_array(root, "calibration");
    for (size_t b = 0; b < BANDS; b++) {
        o = fl_json_add_object(a);
        fl_json_put_num(o, "from", ev->rows[b].from);
        fl_json_put_num(o, "to", ev->rows[b].to);
        fl_json_put_num(o, "claimed", ev->rows[b].claimed);
        fl_json_put_int(o, "cases", (int64_t)ev->rows[b].cases);
        fl_json_put_int(o, "right", (int64_t)ev->rows[b].right);
    }
}

int fl_eval_json(const fl_eval *ev, char **out, fl_err *err)
{
    fl_json *root = fl_json_object(), *cases;
    fl_buf b;
    char *text = NULL;
    int r;

    fl_buf_init(&b, 256u << 20);
    fl_json_put_z(root, "schema", "faultline.eval/1");
    cases = fl_json_put_array(root, "cases");
    for (size_t i = 0; i < ev->n; i++)
        put_case(cases, &ev->cases[i]);
    put_totals(root, ev);
    r = fl_json_print(root, true, &b, err);
    fl_json_free(root);
    if (!r && !(text = fl_buf_take(&b)))
        r = fl_fail_nomem(err);
    fl_buf_dispose(&b);
    if (!r)
        *out = text;
    return r;
}
