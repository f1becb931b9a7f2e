/*
 * The rest of a report, for -v: all evidence, the timeline's notes, attempts, files, versions.
 *
 * Evidence lines are printed whole and unwrapped, each below a line that says where it stands and
 * what it was taken for, so that they can be copied and searched for.
 */
#include "out_text.h"

#include <inttypes.h>
#include <string.h>

static void section(const struct out *o, const char *title)
{
    fputc('\n', o->f);
    out_text(o, OUT_BOLD, title);
    fputc('\n', o->f);
}

void out_evidence(const struct out *o, const struct fl_evidence *e)
{
    fputs("  ", o->f);
    out_place(o, &e->at, 400);
    fprintf(o->f, "  %s", e->role);
    if (e->cause)
        fprintf(o->f, " %s", e->cause);
    if (e->rank >= 0)
        fprintf(o->f, ", rank %" PRId32, e->rank);
    for (int i = 0; i < 3; i++) {
        const char *text = i == 0 ? e->host : i == 1 ? e->gpu : e->time;

        if (text) {
            fputs(", ", o->f);
            out_text(o, OUT_PLAIN, text);
        }
    }
    fputs("\n    ", o->f);
    out_text(o, OUT_PLAIN, e->text ? e->text : "");
    fputc('\n', o->f);
}

static void attempts(const struct out *o, const struct fl_report *r)
{
    for (size_t i = 0; i < r->nattempts; i++) {
        const struct fl_attempt *a = &r->attempts[i];

        fprintf(o->f, "  %" PRIu32 "  ", a->number);
        out_place(o, &a->first, 400);
        fputs(" to ", o->f);
        out_place(o, &a->last, 400);
        fprintf(o->f, "  %s\n", a->cause ? a->cause : "no failure");
    }
}

static void files(const struct out *o, const struct fl_report *r)
{
    for (size_t i = 0; i < r->input.nfiles; i++) {
        const struct fl_input_file *f = &r->input.files[i];

        fprintf(o->f, "  %" PRIu64 " lines, %" PRIu64 " bytes  ", f->lines, f->bytes);
        out_text(o, OUT_PLAIN, f->name);
        if (f->note) {
            fputs(": ", o->f);
            out_text(o, OUT_PLAIN, f->note);
        }
        fputc('\n', o->f);
    }
    for (size_t i = 0; i < r->input.nskipped; i++) {
        fputs("  skipped  ", o->f);
        out_text(o, OUT_PLAIN, r->input.skipped[i]);
        fputc('\n', o->f);
    }
}

void out_report_more(const struct out *o, const struct fl_report *r)
{
    section(o, "Evidence");
    for (size_t i = 0; i < r->nevidence; i++)
        out_evidence(o, &r->evidence[i]);
    if (r->timeline.nnotes)
        section(o, "Course of the job");
    for (size_t i = 0; i < r->timeline.nnotes; i++) {
        fputs("  ", o->f);
        out_text(o, OUT_PLAIN, r->timeline.notes[i]);
        fputc('\n', o->f);
    }
    if (r->nattempts) {
        section(o, "Attempts");
        attempts(o, r);
    }
    section(o, "Files");
    files(o, r);
    fprintf(o->f, "\nDecided by %s%s%s. Faultline %s, rules %s, %" PRId64 " ms.\n",
            r->cause.decided_by ? r->cause.decided_by : "none", r->cause.rule ? ", rule " : "",
            r->cause.rule ? r->cause.rule : "", r->version ? r->version : fl_version(),
            r->rules_version ? r->rules_version : "?", r->elapsed_ms);
}

unsigned out_neighbours(const struct out *o, const struct fl_report *r, size_t most)
{
    unsigned lines = 0;

    for (size_t i = 0; i < r->nneighbours && i < most; i++) {
        const struct fl_neighbour *n = &r->neighbours[i];
        struct out_line l = {.n = 0};
        out_line_add(&l, "%s (%.0f %%): %s", n->cause, n->score * 100, n->title);
        lines += out_wrapped(o, i ? "" : "LIKE", l.p, 2);
        if (i == 0 && n->fix[0]) {
            l.n = 0;
            out_line_add(&l, "what fixed %s: %s", n->incident, n->fix);
            lines += out_wrapped(o, "", l.p, 3);
        }
    }
    return lines;
}

static const char *mark_words(const struct fl_citation *c)
{
    if (strcmp(c->mark, "exact") == 0)
        return c->grounds ? "as cited" : "there, but it proves nothing";
    if (strcmp(c->mark, "nearby") == 0)
        return c->grounds ? "found nearby" : "found nearby, but it proves nothing";
    return strcmp(c->mark, "elsewhere") == 0 ? "stands elsewhere" : "not in the log";
}

/* Where the answer comes from and what it took, whole: it is what one answers for. */
static unsigned model_source(const struct out *o, const struct fl_llm_report *l)
{
    struct out_line t = {.n = 0};
    unsigned lines = 0;

    out_line_add(&t, "the rules alone said %s; %s", l->rules_said, l->endpoint);
    if (l->tokens_in >= 0)
        out_line_add(&t, ", %lld tokens in, %lld out", (long long)l->tokens_in,
                     (long long)l->tokens_out);
    out_line_add(&t, ", %.1f s", l->seconds);
    if (l->cost >= 0)
        out_line_add(&t, ", cost %.4f", l->cost);
    lines += out_wrapped(o, "", t.p, 4);
    if (!l->passed_over)
        return lines;
    t = (struct out_line){.n = 0};
    out_line_add(&t, "before it there was no answer: %s", l->passed_over);
    return lines + out_wrapped(o, "", t.p, 4);
}

unsigned out_model(const struct out *o, const struct fl_report *r, bool verbose)
{
    const struct fl_llm_report *l = r->llm;
    struct out_line t = {.n = 0};
    unsigned lines = 0;

    if (!l)
        return 0;
    if (!l->cause) {
        out_line_add(&t, "no answer: %s", l->error ? l->error : "nothing usable came");
        return out_wrapped(o, "MODEL", t.p, verbose ? 0 : 2);
    }
    out_line_add(&t, "%s says %s%s", l->model && *l->model ? l->model : l->endpoint, l->cause,
                 l->decided                             ? ", and its lines are in the log"
                 : strcmp(l->cause, l->rules_said) == 0 ? ", as the rules do"
                                                        : " (an opinion: it decides nothing)");
    if (l->disagreement)
        out_line_add(&t, "; they disagree: %s", l->disagreement);
    lines += out_wrapped(o, "MODEL", t.p, 2);
    if (l->summary && r->cause.summary != l->summary)
        lines += out_wrapped(o, "", l->summary, verbose ? 0 : 3);
    for (size_t i = 0; i < l->ncitations && (verbose || i < 2); i++) {
        const struct fl_citation *c = &l->citations[i];
        t = (struct out_line){.n = 0};
        out_line_add(&t, "%s:%llu (%s): %s", c->at.file ? c->at.file : "?",
                     (unsigned long long)c->at.line, mark_words(c), c->quote ? c->quote : "");
        lines += out_wrapped(o, "", t.p, verbose ? 0 : 2);
    }
    return lines + model_source(o, l);
}
