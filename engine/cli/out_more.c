/*
 * The rest of a report, for -v: all evidence, the timeline's notes, attempts, files, versions.
 *
 * Evidence lines are printed whole and unwrapped, each below a line that says where it stands and
 * what it was taken for, so that they can be copied and searched for.
 */
#include "out_text.h"

#include <inttypes.h>

static void section(const struct out *o, const char *title)
{
    fputc('\n', o->f);
    out_text(o, OUT_BOLD, title);
    fputc('\n', o->f);
}

static void evidence(const struct out *o, const struct fl_evidence *e)
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
        evidence(o, &r->evidence[i]);
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
