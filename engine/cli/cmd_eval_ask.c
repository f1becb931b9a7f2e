/*
 * `diagnose eval --ask DIR`: labelled cases by the rules alone, and with the language model.
 *
 * A line for each case that the model was asked about or whose answer changed, then both columns.
 * The model by itself is set against the rules on the same cases, those that it answered: it is
 * asked about the hard ones, and a share of all cases would flatter it.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "progress.h"

#define RESULTS "faultline-eval-ask.json"

static void on_progress(void *ctx, size_t done, size_t total)
{
    progress_step(ctx, done, total);
}

static const char *what(const struct fl_ask_case *c)
{
    if (c->with_ok != c->rules_ok)
        return c->with_ok ? "mended" : "spoilt";
    if (strcmp(c->with_model, c->rules) != 0)
        return "changed, no better";
    if (c->error)
        return "no answer";
    return !c->said ? "" : c->decided ? "the same" : c->grounded ? "not taken" : "an opinion";
}

static void rows(const struct out *o, const struct fl_ask_case *v, size_t n)
{
    fprintf(o->f, "%-10s %-24s %-24s   %-24s   %-24s\n", "case", "expected", "rules alone",
            "with the model", "it said");
    for (size_t i = 0; i < n; i++) {
        const struct fl_ask_case *c = &v[i];
        if (!c->asked && strcmp(c->with_model, c->rules) == 0)
            continue;
        fprintf(o->f, "%-10s %-24s %-24s %c %-24s %c %-24s %c %s", c->id,
                c->expected ? c->expected : "?", c->rules, c->rules_ok ? '+' : 'X', c->with_model,
                c->with_ok ? '+' : 'X', c->said ? c->said : "-",
                !c->said     ? '-'
                : c->said_ok ? '+'
                             : 'X',
                what(c));
        if (c->error) {
            fputs(": ", o->f);
            out_text(o, OUT_PLAIN, c->error);
        }
        fputc('\n', o->f);
    }
}

static void both(const struct out *o, const char *name, size_t rules, size_t with, size_t of)
{
    double n = of ? (double)of : 1;

    fprintf(o->f, "%-24s %5zu %5.1f %%   %5zu %5.1f %%   of %zu\n", name, rules,
            100.0 * (double)rules / n, with, 100.0 * (double)with / n, of);
}

static void totals(const struct out *o, const struct fl_ask_totals *t)
{
    fputs("\n                         rules alone     with the model\n", o->f);
    both(o, "cause", t->rules, t->with_model, t->cases);
    both(o, "action", t->rules_action, t->with_action, t->cases);
    if (t->answered)
        both(o, "cause, the model's word", t->rules_answered, t->said, t->answered);
    fprintf(o->f,
            "\n%zu asked, %zu answered (%zu in an earlier run), %zu with proof, %zu decided; %zu "
            "mended, %zu spoilt\n",
            t->asked, t->answered, t->kept, t->grounded, t->decided, t->mended, t->spoilt);
    fprintf(o->f, "%lld tokens in, %lld out, %.1f s", (long long)t->tokens_in,
            (long long)t->tokens_out, t->seconds);
    if (t->cost > 0)
        fprintf(o->f, ", cost %.4f", t->cost);
    fputc('\n', o->f);
}

static int print(const struct cli_session *s, const struct cli_args *args, const fl_ask_eval *ev)
{
    struct fl_ask_totals t;
    char *text = NULL;
    struct out o;
    size_t n;
    const struct fl_ask_case *v = fl_ask_eval_cases(ev, &n);
    fl_err err;

    fl_ask_eval_totals(ev, &t);
    if (args->json) {
        if (fl_ask_eval_json(ev, &text, &err))
            return cli_fail_err(&err);
        puts(text);
        fl_text_free(text);
    } else {
        out_init(&o, stdout, s->color, args->width);
        rows(&o, v, n);
        totals(&o, &t);
    }
    if (t.asked == t.answered)
        return CLI_OK;
    return cli_fail(CLI_BACKEND, "%zu of %zu cases got no answer; the same command asks them again",
                    t.asked - t.answered, t.asked);
}

int cli_eval_ask(const struct cli_session *s, const struct cli_args *args)
{
    struct fl_ask_opts o = {.config = s->config, .force = args->all, .seconds = args->seconds};
    struct progress progress;
    struct fl_memory_opts mo = {.seconds = args->seconds};
    fl_ask_eval *ev = NULL;
    fl_memory *m = NULL;
    fl_err err;
    int r = 0;

    cli_memory_place(s, args, &mo);
    if (!args->no_memory)
        r = fl_memory_open(s->engine, &mo, &m, &err);

    progress_init(&progress, "cases", args->quiet);
    o.memory = m;
    if (!r)
        r = fl_ask_eval_run(s->engine, args->rest[0], &o, args->resume ? args->resume : RESULTS,
                            on_progress, &progress, &ev, &err);
    progress_end(&progress);
    r = r ? cli_fail_err(&err) : print(s, args, ev);
    fl_ask_eval_free(ev);
    fl_memory_free(m);
    return r;
}
