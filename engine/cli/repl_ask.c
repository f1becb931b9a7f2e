/*
 * Questions in plain words, the model's verdict, what a person knows better, and the record of it.
 *
 * With a configured endpoint a question is sent, and the answer is printed as it comes, wrapped at
 * words and escaped like a log: a model may repeat what a log told it to print. Without one, or
 * with --offline, the answer is what the log and past incidents hold of the question's words, and
 * that is said first, since it is a search and no answer.
 *
 * What was asked and answered is kept in an unnamed temporary file for /save, which never writes
 * over a file.
 */
#include "repl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "out_incident.h"
#include "out_text.h"

#define NEIGHBOURS 3
#define WIDTH_SAVED 100

bool repl_has_model(const struct repl *x)
{
    return x->s->config && x->s->config->nendpoints && (!x->args->offline || x->args->replay);
}

/* ---- printing an answer as it comes ---- */

struct flow {
    struct repl *x;
    unsigned column;
};

static void put_word(struct flow *f, const char *text, size_t n)
{
    struct out kept = {.f = f->x->talked};
    char word[512];
    unsigned columns;

    while (n) {
        size_t k = n < sizeof(word) - 1 ? n : sizeof(word) - 1;
        memcpy(word, text, k);
        word[k] = 0;
        columns = (unsigned)out_columns(word);
        if (f->column && f->column + columns > f->x->o.width && word[0] != ' ') {
            fputc('\n', f->x->o.f);
            f->column = 0;
        }
        out_text(&f->x->o, OUT_PLAIN, word);
        if (kept.f)
            out_text(&kept, OUT_PLAIN, word);
        f->column += columns;
        text += k;
        n -= k;
    }
}

static int on_text(void *ctx, const char *text)
{
    struct flow *f = ctx;

    while (*text) {
        size_t n = strcspn(text, " \n");
        if (n) {
            put_word(f, text, n);
        } else if (*text == '\n') {
            n = 1;
            fputc('\n', f->x->o.f);
            if (f->x->talked)
                fputc('\n', f->x->talked);
            f->column = 0;
        } else {
            n = 1;
            if (f->column < f->x->o.width)
                put_word(f, " ", 1);
        }
        text += n;
    }
    fflush(f->x->o.f);
    return ferror(f->x->o.f);
}

static void tell_figures(struct repl *x, const struct fl_talk_answer *a)
{
    struct out_line l = {.n = 0};

    out_line_add(&l, "(%s%s", a->stopped ? "stopped; " : "",
                 a->model[0] ? a->model : x->s->config->endpoints[0]);
    if (a->tokens_in >= 0)
        out_line_add(&l, ", %" PRId64 " tokens in, %" PRId64 " out", a->tokens_in, a->tokens_out);
    if (!a->stopped)
        out_line_add(&l, ", %.1f s", a->seconds);
    if (a->cost >= 0)
        out_line_add(&l, ", cost %.4f", a->cost);
    if (a->left_out)
        out_line_add(&l, "; the first %zu of %zu turns no longer fit", a->left_out, a->turns);
    out_line_add(&l, ")");
    out_text(&x->o, OUT_DIM, l.p);
    fputc('\n', x->o.f);
}

/* Each conversation of a session has a folder of its own in that of the recording. */
static int open_talk(struct repl *x, fl_err *err)
{
    const char *folder = x->args->record ? x->args->record : x->args->replay;
    struct fl_talk_opts o = {.config = x->s->config,
                             .memory = x->memory,
                             .seconds = x->args->seconds,
                             .cancel = &x->line.stop};
    char path[4200];
    int r;

    if (x->talk)
        return 0;
    snprintf(path, sizeof(path), "%.4000s/talk-%u", folder ? folder : "", x->talks + 1);
    o.record = x->args->record ? path : NULL;
    o.replay = x->args->replay ? path : NULL;
    r = fl_talk_open(x->s->engine, x->d, &o, &x->talk, err);
    x->talks += r == 0;
    return r;
}

static int ask_model(struct repl *x, const char *text)
{
    struct fl_talk_answer a;
    struct flow f = {x, 0};
    fl_err err;
    int r = open_talk(x, &err);

    if (!r)
        r = fl_talk_ask(x->talk, text, on_text, &f, &a, &err);
    if (f.column)
        fputc('\n', x->o.f);
    if (r)
        cli_fail_err(&err);
    else
        tell_figures(x, &a);
    if (x->talked && r) {
        fputs("\n(no answer: ", x->talked);
        out_text(&(struct out){.f = x->talked}, OUT_PLAIN, err.msg);
        fputs(")\n", x->talked);
    } else if (x->talked) {
        fputs(a.stopped ? " (stopped)\n" : "\n", x->talked);
    }
    return r;
}

/* ---- without a model ---- */

static void print_neighbours(struct repl *x, const fl_neighbours *n, bool lines)
{
    if (n && fl_neighbours_count(n)) {
        fputs("Past incidents with such words:\n", x->o.f);
        repl_neighbours(x, n);
    } else if (!lines) {
        fputs("Neither the log nor the past incidents hold anything of it.\n", x->o.f);
    }
}

/* Searched once, printed on the screen and, without colours, into what is kept. */
static void search_answer(struct repl *x, const char *text)
{
    struct fl_search_opts so = {.k = NEIGHBOURS};
    struct out screen = x->o;
    fl_neighbours *n = NULL;
    bool lines;
    fl_err err;

    x->copy = (struct out){.f = x->talked, .width = WIDTH_SAVED};
    lines = repl_look_words(x, text) > 0;
    if (x->memory && fl_search_text(x->memory, text, &so, &n, &err))
        cli_fail_err(&err);
    print_neighbours(x, n, lines);
    if (x->talked) {
        x->o = x->copy;
        print_neighbours(x, n, lines);
        x->o = screen;
    }
    x->copy.f = NULL;
    fl_neighbours_free(n);
}

void repl_question(struct repl *x, const char *text)
{
    struct out kept = {.f = x->talked};

    if (x->talked) {
        fputs("\nQ: ", x->talked);
        out_text(&kept, OUT_PLAIN, text);
        fputs("\nA: ", x->talked);
    }
    if (repl_has_model(x)) {
        if (!ask_model(x, text))
            return;
        if (x->line.stop)
            return;
        fputs("What a search for the question's words finds instead:\n", x->o.f);
    } else {
        out_wrapped(&x->o, "",
                    x->args->offline ? "With --offline no language model is asked; this is what a "
                                       "search for the words finds:"
                                     : "No language model is configured (llm.endpoints); this is "
                                       "what a search for the words finds:",
                    0);
    }
    if (x->talked)
        fputs("(answered by a search)\n", x->talked);
    search_answer(x, text);
}

/* ---- the model's verdict ---- */

void repl_ask(struct repl *x, const char *rest)
{
    struct fl_ask_opts o = {.config = x->s->config,
                            .force = true,
                            .seconds = x->args->seconds,
                            .record = x->args->record,
                            .replay = x->args->replay,
                            .memory = x->memory,
                            .cancel = &x->line.stop};
    const char *before = x->r->cause.id;
    fl_err err;

    if (*rest) {
        repl_question(x, rest);
        return;
    }
    if (!repl_has_model(x)) {
        fputs(x->args->offline ? "With --offline no language model is asked.\n"
                               : "No language model is configured; name one under llm.endpoints.\n",
              x->o.f);
        return;
    }
    if (!x->r->llm && fl_diagnosis_ask(x->s->engine, x->d, &o, &err)) {
        cli_fail_err(&err);
        return;
    }
    x->r = fl_diagnosis_report(x->d);
    out_model(&x->o, x->r, true);
    if (strcmp(before, x->r->cause.id) == 0)
        return;
    fputs("The answer is now:\n", x->o.f);
    out_report(&x->o, x->r, false);
    fl_talk_free(x->talk); /* it began with another verdict */
    x->talk = NULL;
}

/* ---- what a person knows ---- */

void repl_correct(struct repl *x, const char *rest)
{
    size_t n = strcspn(rest, " ");
    const char *why = rest + n + strspn(rest + n, " ");
    struct fl_past_added added;
    char cause[128];
    struct fl_past_said said = {.cause = cause, .explanation = *why ? why : NULL};
    bool same;
    fl_err err;

    snprintf(cause, sizeof(cause), "%.*s", (int)(n < 127 ? n : 127), rest);
    if (!*cause) {
        cli_fail(CLI_USAGE, "/correct takes the id of a cause, which a TAB lists, and why in your "
                            "own words");
        return;
    }
    if (cli_check_cause(x->s->engine, cause))
        return;
    if (!x->memory) {
        fputs("There is no memory of past incidents here, so nothing can be stored.\n", x->o.f);
        return;
    }
    same = strcmp(cause, x->r->cause.id) == 0;
    if (fl_memory_add_job(x->memory, x->d, same ? FL_PAST_CONFIRMED : FL_PAST_CORRECTED, &said,
                          &added, &err)) {
        cli_fail_err(&err);
        return;
    }
    fprintf(x->o.f,
            added.duplicate ? "Counted once more: %s says so of such a job already.\n"
                            : "Stored as %s: jobs like it will find it.\n",
            added.id);
}

/* ---- /save ---- */

static FILE *create(const struct repl *x, const char *rest, char *name, size_t cap)
{
    int fd = -1;

    if (*rest)
        snprintf(name, cap, "%s", rest);
    for (int i = 1; fd < 0 && i < 100; i++) {
        if (!*rest && i == 1)
            snprintf(name, cap, "diagnosis-%s.txt", x->r->cause.id);
        else if (!*rest)
            snprintf(name, cap, "diagnosis-%s-%d.txt", x->r->cause.id, i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && (*rest || errno != EEXIST))
            break;
    }
    if (fd >= 0)
        return fdopen(fd, "w");
    cli_fail(CLI_INPUT, "%s could not be made: %s", name,
             errno == EEXIST ? "there is such a file, and it is not written over"
                             : strerror(errno));
    return NULL;
}

static void copy_talk(struct repl *x, FILE *to)
{
    char piece[4096];
    size_t n;

    if (!x->talked)
        return;
    rewind(x->talked);
    while ((n = fread(piece, 1, sizeof(piece), x->talked)) > 0)
        fwrite(piece, 1, n, to);
    fseek(x->talked, 0, SEEK_END);
}

void repl_save(struct repl *x, const char *rest)
{
    size_t n = strlen(rest);
    char name[4096] = "";
    char *text = NULL;
    struct out o;
    fl_err err;
    FILE *f = create(x, rest, name, sizeof(name));
    bool bad;

    if (!f)
        return;
    if (n > 5 && strcmp(rest + n - 5, ".json") == 0) {
        if (fl_report_json(x->r, true, &text, &err))
            cli_fail_err(&err);
        else
            fprintf(f, "%s\n", text);
        fl_text_free(text);
    } else {
        out_init(&o, f, "never", WIDTH_SAVED);
        out_report(&o, x->r, true);
        copy_talk(x, f);
    }
    bad = ferror(f);
    if (fclose(f) || bad) {
        cli_fail(CLI_INPUT, "%s could not be written: %s", name, strerror(errno));
        return;
    }
    fputs("Saved as ", x->o.f);
    out_text(&x->o, OUT_PLAIN, name);
    fputs(".\n", x->o.f);
}
