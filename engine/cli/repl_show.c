/*
 * What the REPL shows of the answer, the digest, the rules and the memory.
 *
 * These print what the report and the engine hold, whole where the first screen had to cut. The
 * words are those of the report; nothing is computed anew but the digest and the neighbours.
 */
#include "repl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out_incident.h"
#include "out_text.h"

static void head(const struct repl *x, const char *title)
{
    out_text(&x->o, OUT_BOLD, title);
    fputc('\n', x->o.f);
}

static void say(const struct repl *x, const char *label, const char *text)
{
    if (text && *text)
        out_wrapped(&x->o, label, text, 0);
}

void repl_evidence(struct repl *x, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < x->r->nevidence; i++)
        out_evidence(&x->o, &x->r->evidence[i]);
    if (!x->r->nevidence)
        fputs("There is no evidence: nothing in the log says what failed.\n", x->o.f);
}

/* Lines that are printable already, one by one: a page is longer than out_text() takes at once. */
void repl_digest(struct repl *x, const char *rest)
{
    fl_digest_page *page = NULL;
    unsigned long budget = 0;
    char *end = NULL;
    fl_err err;

    if (*rest) {
        errno = 0;
        budget = strtoul(rest, &end, 10);
        if (*end || errno || *rest == '-' || !budget || budget > 1000000) {
            cli_fail(CLI_USAGE, "/digest takes a number of tokens, such as 2000");
            return;
        }
    }
    if (fl_digest_build(x->s->engine, x->d, budget, &page, &err)) {
        cli_fail_err(&err);
        return;
    }
    fputs(fl_digest_text(page), x->o.f);
    fprintf(x->o.f, "# %zu tokens; %" PRIu64 " of %" PRIu64 " lines are shown\n",
            fl_digest_account(page)->tokens, fl_digest_account(page)->kept,
            fl_digest_account(page)->lines);
    fl_digest_free(page);
}

static void attempts(const struct repl *x)
{
    for (size_t i = 0; i < x->r->nattempts; i++) {
        const struct fl_attempt *a = &x->r->attempts[i];
        fprintf(x->o.f, "  attempt %" PRIu32 ": ", a->number);
        out_place(&x->o, &a->first, 60);
        fputs(" to ", x->o.f);
        out_place(&x->o, &a->last, 60);
        fprintf(x->o.f, "  %s\n", a->cause ? a->cause : "no failure");
    }
}

void repl_timeline(struct repl *x, const char *rest)
{
    const struct fl_report *r = x->r;

    (void)rest;
    fprintf(x->o.f, "  phase when it ended: %s\n",
            r->timeline.phase ? r->timeline.phase : "unknown");
    if (r->timeline.last_step >= 0) {
        fprintf(x->o.f, "  steps: %" PRId64 " to %" PRId64, r->timeline.first_step,
                r->timeline.last_step);
        if (r->timeline.total_steps >= 0)
            fprintf(x->o.f, " of %" PRId64, r->timeline.total_steps);
        if (r->timeline.last_healthy_step >= 0)
            fprintf(x->o.f, ", healthy until %" PRId64, r->timeline.last_healthy_step);
        fputc('\n', x->o.f);
    } else {
        fputs("  steps: none were seen\n", x->o.f);
    }
    if (r->timeline.last_progress.file) {
        fputs("  last progress: ", x->o.f);
        out_place(&x->o, &r->timeline.last_progress, 60);
        if (r->timeline.last_progress_time) {
            fputs(" at ", x->o.f);
            out_text(&x->o, OUT_PLAIN, r->timeline.last_progress_time);
        }
        fputc('\n', x->o.f);
    }
    for (size_t i = 0; i < r->timeline.nnotes; i++)
        say(x, i ? "" : "NOTES", r->timeline.notes[i]);
    attempts(x);
}

void repl_neighbours(struct repl *x, const fl_neighbours *n)
{
    for (size_t i = 0; i < fl_neighbours_count(n); i++) {
        const struct fl_neighbour *v = fl_neighbours_get(n, i);
        struct out_line l = {.n = 0};
        fputs("  ", x->o.f);
        out_text(&x->o, OUT_BOLD, v->incident);
        fputc('\n', x->o.f);
        out_line_add(&l, "%s (%.0f %%): %s", v->cause, v->score * 100, v->title);
        say(x, "", l.p);
        say(x, "", v->fix);
        if (v->nmatched && v->matched[0].at.file) {
            l = (struct out_line){.n = 0};
            out_line_add(&l, "like %s:%" PRIu64 ": %s", v->matched[0].at.file,
                         v->matched[0].at.line, v->matched[0].incident_text);
            out_wrapped(&x->o, "", l.p, 2);
        }
    }
}

void repl_similar(struct repl *x, const char *rest)
{
    fl_neighbours *n = NULL;
    fl_err err;

    (void)rest;
    if (!x->memory) {
        fputs("There is no memory of past incidents here.\n", x->o.f);
        return;
    }
    if (fl_search_job(x->memory, x->d, NULL, &n, &err)) {
        cli_fail_err(&err);
        return;
    }
    if (!fl_neighbours_count(n))
        fputs("No past incident is similar enough to tell of it.\n", x->o.f);
    repl_neighbours(x, n);
    fl_neighbours_free(n);
}

static int show_past(void *ctx, const struct fl_past *p)
{
    out_incident(ctx, p);
    return 0;
}

void repl_incident(struct repl *x, const char *rest)
{
    fl_err err;
    int r;

    if (!x->memory || !*rest) {
        fputs(x->memory ? "/incident takes an id, such as /similar prints.\n"
                        : "There is no memory of past incidents here.\n",
              x->o.f);
        return;
    }
    r = fl_memory_get(x->memory, rest, show_past, &x->o, &err);
    if (r == FL_ERROR_NOT_FOUND)
        cli_no_incident(x->memory, rest);
    else if (r)
        cli_fail_err(&err);
}

void repl_why(struct repl *x, const char *rest)
{
    const struct fl_report *r = x->r;
    struct out_line l = {.n = 0};

    (void)rest;
    out_line_add(&l, "decided by %s%s%s", r->cause.decided_by ? r->cause.decided_by : "none",
                 r->cause.rule ? ", rule " : "", r->cause.rule ? r->cause.rule : "");
    say(x, "HOW", l.p);
    for (size_t i = 0; i < r->nreasons; i++)
        say(x, i ? "" : "WHY", r->reasons[i]);
    for (size_t i = 0; i < r->nalternatives; i++) {
        const struct fl_alternative *a = &r->alternatives[i];
        l = (struct out_line){.n = 0};
        out_line_add(&l, "%s (%.0f %%): %s", a->id, a->confidence * 100, a->why ? a->why : "");
        say(x, i ? "" : "OR", l.p);
    }
    for (size_t i = 0; i < r->nfollow_on; i++) {
        const struct fl_follow_on *f = &r->follow_on[i];
        l = (struct out_line){.n = 0};
        out_line_add(&l, "%s, %" PRIu64 " time%s", f->cause, f->count, f->count == 1 ? "" : "s");
        if (f->first.file)
            out_line_add(&l, ", first at %s:%" PRIu64, f->first.file, f->first.line);
        say(x, i ? "" : "THEN", l.p);
    }
    say(x, "ACTION", r->action.why);
}

static void explain_filter(struct repl *x, const struct fl_filter_info *f)
{
    struct out_line l = {.n = 0};

    head(x, f->id);
    out_line_add(&l, "a filter: %s", f->action);
    say(x, "WHAT", l.p);
    say(x, "WHY", f->why);
    for (size_t i = 0; i < f->npatterns; i++)
        say(x, i ? "" : "MATCH", f->patterns[i]);
    say(x, "SOURCE", f->source);
}

void repl_explain(struct repl *x, const char *rest)
{
    const char *id = *rest ? rest : x->r->cause.rule;
    const struct fl_rule_info *r = id ? fl_engine_rule_by_id(x->s->engine, id) : NULL;
    const struct fl_filter_info *f = id && !r ? fl_engine_filter_by_id(x->s->engine, id) : NULL;
    struct out_line l = {.n = 0};

    if (f) {
        explain_filter(x, f);
        return;
    }
    if (!r) {
        if (id)
            cli_fail(CLI_USAGE, "no rule is called '%s'; a TAB behind /explain lists them", id);
        else
            fputs("No rule decided it; /explain RULE explains one.\n", x->o.f);
        return;
    }
    head(x, r->id);
    out_line_add(&l, "%s: %s", r->cause ? r->cause : "-", r->title ? r->title : "");
    say(x, "CAUSE", l.p);
    l = (struct out_line){.n = 0};
    out_line_add(&l, "%s, strength %d, %s", r->role, r->strength, r->maturity);
    say(x, "ROLE", l.p);
    say(x, "SAYS", r->summary);
    for (size_t i = 0; i < r->npatterns; i++)
        say(x, i ? "" : "MATCH", r->patterns[i]);
    for (size_t i = 0; i < r->nhits && i < 2; i++)
        say(x, i ? "" : "TAKES", r->hits[i]);
    for (size_t i = 0; i < r->nmisses && i < 2; i++)
        say(x, i ? "" : "NOT", r->misses[i]);
    say(x, "SOURCE", r->source);
}

/* JSON takes any character in a text; a terminal takes some of them for commands. These are written
 * as JSON escapes them, so that what is printed means the same. */
static void put_json(FILE *f, const char *text)
{
    while (*text) {
        const unsigned char *p = (const unsigned char *)text;
        size_t n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        char unit[5] = "", shown[32];
        unsigned code;

        n = strnlen(text, n);
        memcpy(unit, text, n);
        fl_printable(unit, shown, sizeof(shown));
        if (*unit == '\n' || *unit == '\t' || strcmp(unit, shown) == 0) {
            fputs(unit, f);
        } else {
            code = n == 1   ? *p
                   : n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                            : (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
            fprintf(f, "\\u%04x", n == 4 ? 0xfffdu : code);
        }
        text += n;
    }
    fputc('\n', f);
}

void repl_json(struct repl *x, const char *rest)
{
    char *text = NULL;
    fl_err err;

    (void)rest;
    if (fl_report_json(x->r, true, &text, &err)) {
        cli_fail_err(&err);
        return;
    }
    put_json(x->o.f, text);
    fl_text_free(text);
}
