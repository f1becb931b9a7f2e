/*
 * `diagnose eval DIR`: the score on labelled cases, as a table or as JSON.
 *
 * The library compares and counts; here the results are shown. A share is given with its counts,
 * because 95 % of 20 and 95 % of 2000 are different news.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "progress.h"

static void on_progress(void *ctx, size_t done, size_t total)
{
    progress_step(ctx, done, total);
}

static const char *mark(int right)
{
    return right < 0 ? "-" : right ? "+" : "X";
}

static void case_row(const struct out *o, const struct fl_case_result *c, int id, int cause)
{
    fprintf(o->f, "%-*s  ", id, c->id);
    if (c->error) {
        fputs("not run: ", o->f);
        out_text(o, OUT_PLAIN, c->error);
        fputc('\n', o->f);
        return;
    }
    fprintf(o->f, "%-*s  %-*s  %s %s %s %s %s  %3.0f %%%6lld", cause,
            c->expected ? c->expected : "?", cause, c->got ? c->got : "?", mark(c->cause_ok),
            mark(c->class_ok), mark(c->action_ok), mark(c->place_ok), mark(c->evidence_ok),
            c->confidence * 100, (long long)c->elapsed_ms);
    if (c->false_alarm)
        fputs("  false alarm", o->f);
    if (!c->action_ok)
        fprintf(o->f, "  action %s, not %s", c->action_got ? c->action_got : "?",
                c->action_expected ? c->action_expected : "?");
    fputc('\n', o->f);
}

static void cases(const struct out *o, const fl_eval *ev)
{
    int id = 4, cause = 8;

    for (size_t i = 0; i < fl_eval_cases(ev); i++) {
        const struct fl_case_result *c = fl_eval_case(ev, i);
        const char *texts[2] = {c->expected, c->got};

        id = (int)strlen(c->id) > id ? (int)strlen(c->id) : id;
        for (int k = 0; k < 2; k++) {
            if (texts[k] && (int)strlen(texts[k]) > cause)
                cause = (int)strlen(texts[k]);
        }
    }
    fprintf(o->f, "%-*s  %-*s  %-*s  c k a p e   sure    ms\n", id, "case", cause, "expected",
            cause, "got");
    for (size_t i = 0; i < fl_eval_cases(ev); i++)
        case_row(o, fl_eval_case(ev, i), id, cause);
    fputs("\nc cause, k class, a action, p place, e evidence: + right, X wrong, - not labelled\n\n",
          o->f);
}

static void share(const struct out *o, const char *name, size_t right, size_t of)
{
    fprintf(o->f, "%-13s %4zu of %4zu", name, right, of);
    if (of)
        fprintf(o->f, "  %5.1f %%", 100.0 * (double)right / (double)of);
    fputc('\n', o->f);
}

static void totals(const struct out *o, const fl_eval *ev)
{
    struct fl_eval_totals t;
    size_t run;

    fl_eval_totals(ev, &t);
    run = t.cases - t.errors;
    share(o, "cause", t.cause, run);
    share(o, "class", t.class_right, run);
    share(o, "action", t.action, run);
    share(o, "place", t.place, t.place_of);
    share(o, "evidence", t.evidence, t.evidence_of);
    fprintf(o->f, "%-13s %4zu on %4zu healthy\n", "false alarms", t.false_alarms, t.healthy);
    if (t.errors)
        fprintf(o->f, "%-13s %4zu\n", "not run", t.errors);
}

static void calibration(const struct out *o, const fl_eval *ev)
{
    const struct fl_calibration_row *row;
    size_t n = fl_eval_calibration(ev, &row);

    if (!n)
        return;
    fputs("\nconfidence   claimed  observed  cases\n", o->f);
    for (size_t i = 0; i < n; i++) {
        if (!row[i].cases)
            continue;
        fprintf(o->f, "%.2f - %.2f  %6.1f %%  %6.1f %%  %5zu\n", row[i].from, row[i].to,
                row[i].claimed * 100, 100.0 * (double)row[i].right / (double)row[i].cases,
                row[i].cases);
    }
}

static int status_of(const fl_eval *ev)
{
    for (size_t i = 0; i < fl_eval_cases(ev); i++) {
        if (fl_eval_case(ev, i)->error)
            return cli_fail(CLI_INPUT, "case %s could not be run: %s", fl_eval_case(ev, i)->id,
                            fl_eval_case(ev, i)->error);
    }
    return CLI_OK;
}

static int print_json(const fl_eval *ev)
{
    char *text = NULL;
    fl_err err;

    if (fl_eval_json(ev, &text, &err))
        return cli_fail_err(&err);
    puts(text);
    fl_text_free(text);
    return status_of(ev);
}

static void way(const struct out *o, const char *name, const struct fl_search_totals *t, int i)
{
    double n = t->cases ? (double)t->cases : 1;

    fprintf(o->f, "%-24s %5zu %5.1f %%  %5zu %5.1f %%  %5zu %5.1f %%\n", name, t->way[i].first,
            100.0 * (double)t->way[i].first / n, t->way[i].three,
            100.0 * (double)t->way[i].three / n, t->way[i].five,
            100.0 * (double)t->way[i].five / n);
}

static void search_table(const struct out *o, const struct cli_args *args, const fl_search_eval *ev)
{
    const struct fl_search_totals *t = fl_search_eval_totals(ev);
    size_t n;
    const struct fl_search_case *c = fl_search_eval_cases(ev, &n);

    for (size_t i = 0; args->verbose && i < n; i++)
        fprintf(o->f, "%-10s %-22s %-22s %2zu  %.2f  %.3f %6.2f  %s\n", c[i].id, c[i].expected,
                c[i].got ? c[i].got : "-", c[i].place, c[i].score, c[i].similarity, c[i].words,
                c[i].incident ? c[i].incident : "-");
    fprintf(o->f, "%zu cases               first           in three         in five\n", t->cases);
    if (t->endpoint) {
        way(o, "with the endpoint", t, FL_BY_ALL);
        way(o, "endpoint's vectors alone", t, FL_BY_ENDPOINT);
    }
    way(o, "both, by rank", t, FL_BY_BOTH);
    way(o, "words (BM25) alone", t, FL_BY_WORDS);
    way(o, "vectors alone", t, FL_BY_VECTORS);
    way(o, "all as one vector", t, FL_BY_WHOLE);
    fprintf(o->f, "healthy and silent       %5zu of %zu\n", t->silent, t->healthy);
}

static int eval_search(const struct cli_session *s, const struct cli_args *args)
{
    struct progress progress;
    fl_search_eval *ev = NULL;
    fl_memory *m = NULL;
    struct out o;
    fl_err err;
    int r = cli_memory_open(s, args, NULL, &m);

    if (r)
        return r;
    cli_memory_note(args, m);
    progress_init(&progress, "cases", args->quiet);
    r = fl_search_eval_run(m, args->rest[0], on_progress, &progress, &ev, &err);
    progress_end(&progress);
    if (r) {
        r = cli_fail_err(&err);
    } else {
        out_init(&o, stdout, s->color, args->width);
        search_table(&o, args, ev);
    }
    fl_search_eval_free(ev);
    fl_memory_free(m);
    return r;
}

int cmd_eval(const struct cli_args *args)
{
    struct cli_session s;
    struct progress progress;
    struct out o;
    fl_eval *ev = NULL;
    fl_err err;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK && args->ask) {
        status = cli_eval_ask(&s, args);
    } else if (status == CLI_OK && args->search) {
        status = eval_search(&s, args);
    } else if (status == CLI_OK) {
        progress_init(&progress, "cases", args->quiet);
        if (fl_eval_run(s.engine, args->rest[0], on_progress, &progress, &ev, &err)) {
            progress_end(&progress);
            status = cli_fail_err(&err);
        }
    }
    if (ev) {
        progress_end(&progress);
        out_init(&o, stdout, s.color, args->width);
        if (args->json) {
            status = print_json(ev);
        } else {
            cases(&o, ev);
            totals(&o, ev);
            calibration(&o, ev);
            status = status_of(ev);
        }
    }
    fl_eval_free(ev);
    cli_session_dispose(&s);
    return status;
}
