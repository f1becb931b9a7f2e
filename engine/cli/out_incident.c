/*
 * An incident for a person, and the same for a program.
 *
 * Its lines are log lines and its texts are people's: all of it is escaped. A line of evidence that
 * holds several (an exception with its frames) is shown as several, since a screen full of \x0a
 * helps nobody.
 */
#include "out_incident.h"

#include <stdio.h>
#include <string.h>

static void labelled(const struct out *o, const char *label, const char *text)
{
    if (*text)
        out_wrapped(o, label, text, 0);
}

static void line_of(const struct out *o, const char *text)
{
    while (*text) {
        char part[1024];
        size_t n = strcspn(text, "\n"), m = n < sizeof(part) ? n : sizeof(part) - 1;

        memcpy(part, text, m);
        part[m] = 0;
        fputs("  ", o->f);
        out_text(o, OUT_PLAIN, part);
        fputc('\n', o->f);
        text += m == n ? n + (text[n] == '\n') : m;
    }
}

void out_incident(const struct out *o, const struct fl_past *p)
{
    struct out_line l = {.n = 0};

    out_text(o, OUT_BOLD, p->id);
    fputc('\n', o->f);
    labelled(o, "cause", p->cause);
    labelled(o, "title", p->title);
    if (strcmp(p->kind, "incident") != 0)
        labelled(o, "kind",
                 strcmp(p->kind, "harmless") == 0
                     ? "harmless: takes noise up and is never returned"
                     : "follow_on: takes noise up and is never returned");
    out_line_add(&l, "%s, seen %llu time%s, since %s", p->origin, (unsigned long long)p->seen,
                 p->seen == 1 ? "" : "s", p->created);
    labelled(o, "origin", l.p);
    l = (struct out_line){.n = 0};
    out_line_names(&l, p->stack, p->nstack, 20);
    l.p[l.n] = 0;
    labelled(o, "stack", l.p);
    labelled(o, "phase", p->phase);
    labelled(o, "why", p->explanation);
    labelled(o, "fix", p->fix);
    labelled(o, "source", p->source);
    if (p->nevidence) {
        fputc('\n', o->f);
        out_text(o, OUT_BOLD, "Lines");
        fputc('\n', o->f);
    }
    for (size_t i = 0; i < p->nevidence; i++)
        line_of(o, p->evidence[i]);
}

static void field(FILE *f, const char *name, const char *text)
{
    if (!*text)
        return;
    fprintf(f, ",\"%s\":", name);
    out_json_text(f, text);
}

static void list(FILE *f, const char *name, const char *const *v, size_t n)
{
    fprintf(f, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "," : "", f);
        out_json_text(f, v[i]);
    }
    fputc(']', f);
}

void out_incident_json(FILE *f, const struct fl_past *p)
{
    fputs("{\"id\":", f);
    out_json_text(f, p->id);
    field(f, "cause", p->cause);
    field(f, "kind", p->kind);
    field(f, "origin", p->origin);
    field(f, "title", p->title);
    field(f, "phase", p->phase);
    list(f, "stack", p->stack, p->nstack);
    list(f, "evidence", p->evidence, p->nevidence);
    field(f, "explanation", p->explanation);
    field(f, "fix", p->fix);
    field(f, "source", p->source);
    field(f, "created", p->created);
    field(f, "updated", p->updated);
    fprintf(f, ",\"seen\":%llu}", (unsigned long long)p->seen);
}

struct nearest {
    const char *got;
    char id[136];
    size_t least;
};

static int look(void *ctx, const struct fl_past *p)
{
    struct nearest *n = ctx;
    size_t d;

    if (cli_near(n->got, p->id, &d) && d < n->least) {
        n->least = d;
        snprintf(n->id, sizeof(n->id), "%s", p->id);
    }
    return 0;
}

int cli_no_incident(fl_memory *m, const char *id)
{
    struct nearest n = {.got = id, .least = SIZE_MAX};

    if (fl_memory_list(m, NULL, look, &n, NULL) == 0 && n.id[0])
        return cli_fail(CLI_USAGE, "no incident '%.200s'; the nearest is %s", id, n.id);
    return cli_fail(CLI_USAGE, "no incident '%.200s'; `diagnose incidents list` lists them", id);
}

int cli_check_cause(const fl_engine *e, const char *cause)
{
    struct fl_cause_info c = {NULL, NULL, NULL};
    const char *nearest = NULL;
    size_t least = SIZE_MAX, d;

    for (size_t i = 0; cause && i < fl_engine_causes(e); i++) {
        fl_engine_cause(e, i, &c);
        if (strcmp(c.id, cause) == 0)
            return CLI_OK;
        if (cli_near(cause, c.id, &d) && d < least) {
            least = d;
            nearest = c.id;
        }
    }
    if (!cause)
        return CLI_OK;
    if (nearest)
        return cli_fail(CLI_USAGE, "no cause '%.200s'; the nearest is %s", cause, nearest);
    return cli_fail(CLI_USAGE, "no cause '%.200s'; rules/taxonomy.yaml has them all", cause);
}
