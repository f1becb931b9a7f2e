/*
 * The report as JSON: schema faultline.diagnosis/1 (engine/doc/diagnosis.schema.json).
 *
 * Unknown facts are absent, not null and not empty guesses. Names are fixed; fields may be added.
 */
#include "faultline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "diagnose/memory.h"
#include "base/text.h"

static void put_place(fl_json *o, const struct fl_place *p)
{
    fl_json_put_z(o, "file", p->file);
    fl_json_put_int(o, "line", (int64_t)p->line);
}

static void put_step(fl_json *o, const char *key, int64_t v)
{
    if (v >= 0)
        fl_json_put_int(o, key, v);
}

static void put_strings(fl_json *o, const char *key, const char *const *v, size_t n)
{
    fl_json *a = fl_json_put_array(o, key);

    for (size_t i = 0; i < n; i++)
        fl_json_add_str(a, fl_str_c(v[i]));
}

static void put_numbers(fl_json *o, const char *key, const int32_t *v, size_t n)
{
    fl_json *a = fl_json_put_array(o, key);

    for (size_t i = 0; i < n; i++)
        fl_json_add_int(a, v[i]);
}

static void put_cause(fl_json *root, const struct fl_report *r)
{
    fl_json *o = fl_json_put_object(root, "cause");

    fl_json_put_z(o, "id", r->cause.id);
    fl_json_put_z(o, "class", r->cause.class_name);
    fl_json_put_z(o, "title", r->cause.title);
    fl_json_put_num(o, "confidence", r->cause.confidence);
    fl_json_put_z(o, "decided_by", r->cause.decided_by);
    fl_json_put_z(o, "rule", r->cause.rule);
    fl_json_put_z(o, "summary", r->cause.summary);
}

static void put_evidence(fl_json *root, const struct fl_report *r)
{
    fl_json *a = fl_json_put_array(root, "evidence");

    for (size_t i = 0; i < r->nevidence; i++) {
        const struct fl_evidence *e = &r->evidence[i];
        fl_json *o = fl_json_add_object(a);
        put_place(o, &e->at);
        fl_json_put_z(o, "text", e->text);
        fl_json_put_z(o, "role", e->role);
        fl_json_put_z(o, "cause", e->cause);
        put_step(o, "rank", e->rank);
        fl_json_put_z(o, "host", e->host);
        fl_json_put_z(o, "gpu", e->gpu);
        fl_json_put_z(o, "time", e->time);
    }
}

static void put_location(fl_json *root, const struct fl_report *r)
{
    fl_json *o = fl_json_put_object(root, "location");

    put_numbers(o, "ranks", r->location.ranks, r->location.nranks);
    put_strings(o, "hosts", r->location.hosts, r->location.nhosts);
    put_strings(o, "gpus", r->location.gpus, r->location.ngpus);
    put_numbers(o, "gpu_indices", r->location.gpu_indices, r->location.ngpu_indices);
}

static void put_others(fl_json *root, const struct fl_report *r)
{
    fl_json *a = fl_json_put_array(root, "follow_on");

    for (size_t i = 0; i < r->nfollow_on; i++) {
        fl_json *o = fl_json_add_object(a);
        fl_json_put_z(o, "cause", r->follow_on[i].cause);
        fl_json_put_int(o, "count", (int64_t)r->follow_on[i].count);
        fl_json_put_int(o, "rank_count", r->follow_on[i].rank_count);
        put_place(fl_json_put_object(o, "first"), &r->follow_on[i].first);
    }
    a = fl_json_put_array(root, "alternatives");
    for (size_t i = 0; i < r->nalternatives; i++) {
        fl_json *o = fl_json_add_object(a);
        fl_json_put_z(o, "id", r->alternatives[i].id);
        fl_json_put_num(o, "confidence", (double)(int)(r->alternatives[i].confidence * 100) / 100);
        fl_json_put_z(o, "why", r->alternatives[i].why);
    }
    put_strings(root, "reasons", r->reasons, r->nreasons);
}

static void put_action(fl_json *root, const struct fl_report *r)
{
    fl_json *o = fl_json_put_object(root, "action"), *resume, *skip;

    fl_json_put_z(o, "id", r->action.id);
    fl_json_put_z(o, "decision", r->action.decision);
    put_strings(o, "exclude_hosts", r->action.exclude_hosts, r->action.nexclude_hosts);
    fl_json_put_z(o, "why", r->action.why);
    fl_json_put_z(o, "advice", r->action.advice);
    if (r->action.resume_step < 0 && r->action.skip_from < 0 && !r->action.checkpoint)
        return;
    resume = fl_json_put_object(o, "resume");
    put_step(resume, "step", r->action.resume_step);
    fl_json_put_z(resume, "checkpoint", r->action.checkpoint);
    if (r->action.skip_from >= 0) {
        skip = fl_json_put_object(resume, "skip_steps");
        fl_json_put_int(skip, "from", r->action.skip_from);
        fl_json_put_int(skip, "to", r->action.skip_to);
    }
}

static void put_timeline(fl_json *root, const struct fl_report *r)
{
    fl_json *o = fl_json_put_object(root, "timeline"), *p, *a;

    fl_json_put_z(o, "phase", r->timeline.phase);
    put_step(o, "first_step", r->timeline.first_step);
    put_step(o, "last_step", r->timeline.last_step);
    put_step(o, "last_healthy_step", r->timeline.last_healthy_step);
    put_step(o, "total_steps", r->timeline.total_steps);
    if (r->timeline.last_progress.file) {
        p = fl_json_put_object(o, "last_progress");
        put_place(p, &r->timeline.last_progress);
        fl_json_put_z(p, "time", r->timeline.last_progress_time);
    }
    put_strings(o, "notes", r->timeline.notes, r->timeline.nnotes);
    a = fl_json_put_array(root, "attempts");
    for (size_t i = 0; i < r->nattempts; i++) {
        o = fl_json_add_object(a);
        fl_json_put_int(o, "number", r->attempts[i].number);
        fl_json_put_int(o, "first_line", (int64_t)r->attempts[i].first.line);
        fl_json_put_int(o, "last_line", (int64_t)r->attempts[i].last.line);
        fl_json_put_z(o, "cause", r->attempts[i].cause);
    }
}

static void put_llm(fl_json *root, const struct fl_llm_report *l)
{
    fl_json *o, *a;

    if (!l) {
        fl_json_put_null(root, "llm");
        return;
    }
    o = fl_json_put_object(root, "llm");
    fl_json_put_z(o, "endpoint", l->endpoint);
    fl_json_put_z(o, "model", l->model);
    fl_json_put_z(o, "prompt", l->prompt);
    if (l->tokens_in >= 0)
        fl_json_put_int(o, "tokens_in", l->tokens_in);
    if (l->tokens_out >= 0)
        fl_json_put_int(o, "tokens_out", l->tokens_out);
    fl_json_put_num(o, "seconds", l->seconds);
    if (l->cost >= 0)
        fl_json_put_num(o, "cost", l->cost);
    if (l->error)
        fl_json_put_z(o, "error", l->error);
    else
        fl_json_put_null(o, "error");
    fl_json_put_z(o, "passed_over", l->passed_over);
    fl_json_put_z(o, "disagreement", l->disagreement);
    fl_json_put_bool(o, "grounded", l->grounded);
    fl_json_put_bool(o, "decided", l->decided);
    fl_json_put_z(o, "rules_said", l->rules_said);
    fl_json_put_z(o, "cause", l->cause);
    fl_json_put_z(o, "class", l->class_name);
    fl_json_put_z(o, "summary", l->summary);
    fl_json_put_z(o, "action", l->action);
    if (l->cause)
        fl_json_put_num(o, "confidence", l->confidence);
    a = fl_json_put_array(o, "citations");
    for (size_t i = 0; i < l->ncitations; i++) {
        fl_json *c = fl_json_add_object(a);
        put_place(c, &l->citations[i].at);
        fl_json_put_z(c, "quote", l->citations[i].quote);
        fl_json_put_z(c, "mark", l->citations[i].mark);
        fl_json_put_bool(c, "grounds", l->citations[i].grounds);
    }
}

static void put_input(fl_json *root, const struct fl_report *r)
{
    fl_json *in = fl_json_put_object(root, "input"), *a = fl_json_put_array(in, "files");

    for (size_t i = 0; i < r->input.nfiles; i++) {
        fl_json *o = fl_json_add_object(a);
        fl_json_put_z(o, "name", r->input.files[i].name);
        fl_json_put_int(o, "bytes", (int64_t)r->input.files[i].bytes);
        fl_json_put_int(o, "lines", (int64_t)r->input.files[i].lines);
        fl_json_put_z(o, "note", r->input.files[i].note);
    }
    fl_json_put_int(in, "bytes", (int64_t)r->input.bytes);
    fl_json_put_int(in, "lines", (int64_t)r->input.lines);
    put_strings(in, "skipped", r->input.skipped, r->input.nskipped);
    put_step(in, "ranks_seen", r->input.ranks_seen);
    put_step(in, "world_size", r->input.world_size);
    put_step(in, "hosts_seen", r->input.hosts_seen);
    if (r->input.nleft_out)
        put_strings(in, "left_out", r->input.left_out, r->input.nleft_out);
    if (r->input.cut_lines)
        fl_json_put_int(in, "cut_lines", (int64_t)r->input.cut_lines);
}

int fl_report_json(const struct fl_report *r, bool indented, char **out, fl_err *err)
{
    fl_json *root = fl_json_object();
    fl_buf b;
    char *text;
    int rc;

    fl_buf_init(&b, 256u << 20);
    fl_json_put_z(root, "schema", "faultline.diagnosis/1");
    fl_json_put_z(root, "outcome", r->outcome);
    put_cause(root, r);
    put_evidence(root, r);
    put_location(root, r);
    put_others(root, r);
    put_action(root, r);
    put_timeline(root, r);
    fl_neighbours_put(root, r->neighbours, r->nneighbours);
    put_llm(root, r->llm);
    put_input(root, r);
    fl_json_put_z(root, "rules_version", r->rules_version);
    fl_json_put_z(root, "version", r->version);
    fl_json_put_int(root, "elapsed_ms", r->elapsed_ms);
    rc = fl_json_print(root, indented, &b, err);
    fl_json_free(root);
    text = rc ? NULL : fl_buf_take(&b);
    fl_buf_dispose(&b);
    if (!rc && !text)
        rc = fl_fail_nomem(err);
    if (!rc)
        *out = text;
    return rc;
}

void fl_text_free(char *text)
{
    fl_free(text);
}
