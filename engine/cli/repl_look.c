/*
 * Looking into the log from the REPL: around a line, by an expression, by a rank, by words.
 *
 * A line is shown with its place in front and takes at most three lines of the screen, cut around
 * what matched. Every byte of it goes through the escaping of out.c, so that a log can neither move
 * the cursor nor set the window's title.
 */
#include "repl.h"

#include <stdlib.h>
#include <string.h>

#include "out_text.h"

#define AROUND 10
#define HITS 40
#define RANK_LINES 20
#define ANSWER_LINES 6

static void print_line(const struct out *o, const struct fl_log_line *l)
{
    unsigned room = o->width - 2, used;

    fputs(l->asked && !l->match_len ? "> " : "  ", o->f);
    used = out_place(o, &l->at, room / 2) + 2;
    fputs("  ", o->f);
    out_quote(o, l->text, l->match_at, l->match_len, room > used + 20 ? room - used : 20, 3);
}

static int show_line(void *ctx, const struct fl_log_line *l)
{
    struct repl *x = ctx;

    print_line(&x->o, l);
    if (x->copy.f)
        print_line(&x->copy, l);
    return ferror(x->o.f);
}

static struct fl_log_look look(struct repl *x, size_t limit)
{
    return (struct fl_log_look){.limit = limit, .cancel = &x->line.stop, .fn = show_line, .ctx = x};
}

static void print_seen(const struct out *o, const struct fl_log_seen *seen, const char *more)
{
    if (seen->note[0])
        out_wrapped(o, "NOTE", seen->note, 0);
    if (seen->stopped)
        fputs("(stopped)\n", o->f);
    else if (seen->more)
        fprintf(o->f, "%s\n", more);
}

static void tell_seen(struct repl *x, const struct fl_log_seen *seen, const char *more)
{
    print_seen(&x->o, seen, more);
    if (x->copy.f)
        print_seen(&x->copy, seen, more);
}

static bool is_number(const char *text)
{
    return *text && strlen(text) < 18 && !text[strspn(text, "0123456789")];
}

/* A number of digits alone, or 0. */
static unsigned long long number(const char *text)
{
    return is_number(text) ? strtoull(text, NULL, 10) : 0;
}

/* FILE:LINE [N], or LINE [N] where there is one file. */
static bool read_place(const char *rest, char *file, size_t cap, unsigned long long *line,
                       unsigned *n)
{
    const char *blank, *colon;

    snprintf(file, cap, "%s", rest);
    blank = strrchr(file, ' ');
    if (blank && is_number(blank + 1) && number(blank + 1) <= 1000) {
        *n = (unsigned)number(blank + 1);
        file[blank - file] = 0;
        while (file[0] && file[strlen(file) - 1] == ' ')
            file[strlen(file) - 1] = 0;
    }
    colon = strrchr(file, ':');
    *line = number(colon ? colon + 1 : file);
    file[colon ? colon - file : 0] = 0;
    return *line > 0;
}

void repl_around(struct repl *x, const char *rest)
{
    struct fl_log_look l = look(x, 0);
    struct fl_log_seen seen;
    unsigned long long line;
    unsigned n = AROUND;
    char file[4096];
    fl_err err;

    if (!read_place(rest, file, sizeof(file), &line, &n)) {
        cli_fail(CLI_USAGE, "/around takes a place such as FILE:LINE, and how many lines before "
                            "and behind it");
        return;
    }
    if (fl_log_around(x->log, *file ? file : NULL, line, n, &l, &seen, &err))
        cli_fail_err(&err);
    else
        tell_seen(x, &seen, "There is more of it.");
}

void repl_grep(struct repl *x, const char *rest)
{
    struct fl_log_look l = look(x, HITS);
    struct fl_log_seen seen;
    fl_err err;

    if (!*rest) {
        cli_fail(CLI_USAGE, "/grep takes a regular expression, such as (?i)out of memory");
        return;
    }
    if (fl_log_grep(x->log, rest, &l, &seen, &err)) {
        cli_fail_err(&err);
        return;
    }
    if (!seen.lines && !seen.stopped)
        fputs("No line matches.\n", x->o.f);
    tell_seen(x, &seen, "These are the first 40; there are more.");
}

void repl_rank(struct repl *x, const char *rest)
{
    struct fl_log_look l = look(x, RANK_LINES);
    const char *blank = strchr(rest, ' ');
    struct fl_log_seen seen;
    unsigned long long rank, n = blank ? number(blank + strspn(blank, " ")) : 0;
    char first[24];
    fl_err err;

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(rest, " "), rest);
    rank = number(first);
    if (!is_number(first) || rank > INT32_MAX || (blank && (!n || n > 10000))) {
        cli_fail(CLI_USAGE, "/rank takes the number of a rank, and how many of its last lines");
        return;
    }
    if (n)
        l.limit = (size_t)n;
    if (fl_log_rank(x->log, (int32_t)rank, &l, &seen, &err))
        cli_fail_err(&err);
    else
        tell_seen(x, &seen, "These are its last lines; there are earlier ones.");
}

size_t repl_look_words(struct repl *x, const char *question)
{
    struct fl_log_look l = look(x, ANSWER_LINES);
    struct fl_log_seen seen;
    fl_err err;

    if (fl_log_words(x->log, question, &l, &seen, &err)) {
        cli_fail_err(&err);
        return 0;
    }
    tell_seen(x, &seen, "There are more.");
    return seen.lines;
}
