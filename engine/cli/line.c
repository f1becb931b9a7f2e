/*
 * Reading lines: with libedit on a terminal, plainly from a pipe.
 *
 * Ctrl-C must stop an answer and not the program, and a handler could tell nobody but a global
 * variable. So the signal is blocked in every thread, and one thread waits for it: it sets the flag
 * that searches and requests look at, and rings a pipe, which ends the wait for a key. Reading keys
 * is therefore ours (poll on both) and not libedit's own. SIGTSTP, SIGCONT and SIGWINCH are left to
 * libedit, which knows how to give the terminal back and take it again.
 *
 * A pipe has no prompts, no echo and no history, and Ctrl-C ends the program as everywhere.
 * ~/.editrc is not read: what it binds may hide the keys that the help names.
 */
#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "faultline.h"

#define REMEMBERED 500
#define SHOWN 60 /* candidates listed at once */

static void *watch(void *ctx)
{
    struct line *l = ctx;
    sigset_t set;
    int signal_number;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    while (sigwait(&set, &signal_number) == 0) {
        ssize_t n;
        if (l->fatal) { /* as if nothing had been done about it */
            pthread_sigmask(SIG_UNBLOCK, &set, NULL);
            raise(SIGINT);
        }
        l->stop = 1;
        n = write(l->bell[1], "", 1);
        (void)n;
    }
    return NULL;
}

static bool start_watching(struct line *l)
{
    sigset_t set;

    if (pipe(l->bell))
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(l->bell[i], F_SETFL, O_NONBLOCK);
        fcntl(l->bell[i], F_SETFD, FD_CLOEXEC);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return pthread_create(&l->watcher, NULL, watch, l) == 0;
}

static void drain(struct line *l)
{
    char c[64];

    while (read(l->bell[0], c, sizeof(c)) > 0)
        continue;
}

/* One byte: 1, 0 at the end, -1 for Ctrl-C. */
static int read_byte(struct line *l, char *out)
{
    for (;;) {
        struct pollfd p[2] = {{fileno(l->in), POLLIN, 0}, {l->bell[0], POLLIN, 0}};
        int n = poll(p, 2, -1);
        ssize_t got;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return 0;
        if (p[1].revents & POLLIN) {
            drain(l);
            l->stopped = true;
            return -1;
        }
        got = read(fileno(l->in), out, 1);
        if (got == 1)
            return 1;
        if (got < 0 && errno == EINTR)
            continue;
        return 0;
    }
}

static int read_key(EditLine *el, wchar_t *out)
{
    struct line *l = NULL;
    mbstate_t state;
    char c;

    el_get(el, EL_CLIENTDATA, &l);
    memset(&state, 0, sizeof(state));
    for (;;) {
        int r = read_byte(l, &c);
        size_t n;

        if (r <= 0)
            return r;
        if (!c) /* a Ctrl-D that was typed while a command ran: the system made it one */
            c = 4;
        n = mbrtowc(out, &c, 1, &state);
        if (n == (size_t)-1) /* no character: dropped */
            memset(&state, 0, sizeof(state));
        else if (n != (size_t)-2)
            return 1;
    }
}

static char *prompt_of(EditLine *el)
{
    struct line *l = NULL;

    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt;
}

/* ---- completion ---- */

/* What cannot be typed is not offered. */
static bool can_be_typed(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f || (unsigned char)*text >= 0x80)
            return false;
    return true;
}

struct choice {
    char common[1024];
    size_t n, count;
};

static void choose(struct line *l, const char *head, size_t word, struct choice *c)
{
    size_t n = strlen(head + word);
    const char *name;

    *c = (struct choice){.n = 0};
    for (size_t i = 0; (name = l->candidate(l->ctx, head, word, i)); i++) {
        size_t k = 0;
        if (strncmp(name, head + word, n) != 0 || !can_be_typed(name))
            continue;
        if (!c->count++) {
            c->n = strnlen(name, sizeof(c->common) - 1);
            memcpy(c->common, name, c->n);
        }
        while (k < c->n && name[k] == c->common[k])
            k++;
        c->n = k;
        c->common[k] = 0;
    }
}

static void list(struct line *l, const char *head, size_t word, size_t count)
{
    size_t n = strlen(head + word), shown = 0;
    const char *name;

    fputc('\n', stdout);
    for (size_t i = 0; shown < SHOWN && (name = l->candidate(l->ctx, head, word, i)); i++)
        if (strncmp(name, head + word, n) == 0 && can_be_typed(name) && ++shown)
            printf("  %s\n", name);
    if (count > shown)
        printf("  and %zu more\n", count - shown);
    fflush(stdout);
}

static unsigned char complete(EditLine *el, int key)
{
    const LineInfo *info = el_line(el);
    size_t n = (size_t)(info->cursor - info->buffer), word;
    struct line *l = NULL;
    char head[LINE_MOST];
    struct choice c;

    (void)key;
    el_get(el, EL_CLIENTDATA, &l);
    if (n >= sizeof(head) || !l->candidate)
        return CC_ERROR;
    memcpy(head, info->buffer, n);
    head[n] = 0;
    for (word = n; word > 0 && head[word - 1] != ' ';)
        word--;
    choose(l, head, word, &c);
    if (!c.count)
        return CC_REFRESH_BEEP;
    if (c.count == 1 && c.n + 1 < sizeof(c.common) && c.n && !strchr(":/", c.common[c.n - 1]))
        memcpy(c.common + c.n++, " ", 2);
    if (c.n > n - word) {
        el_insertstr(el, c.common + (n - word));
        return CC_REFRESH;
    }
    if (c.count > 1)
        list(l, head, word, c.count);
    return CC_REDISPLAY;
}

/* ---- opening, reading ---- */

static void start_editing(struct line *l)
{
    EditLine *el;

    /* Characters as the terminal sends them; numbers and messages stay as they are. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    el = el_init("diagnose", l->in, stdout, stderr);
    if (!el)
        return;
    l->edit = el;
    el_set(el, EL_CLIENTDATA, l);
    el_set(el, EL_PROMPT, prompt_of);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_SIGNAL, 1);
    el_set(el, EL_GETCFN, read_key);
    /* In wide characters: el_set() would copy the two names and never free them. */
    el_wset(el, EL_ADDFN, L"complete", L"Complete the word", complete);
    el_set(el, EL_BIND, "^I", "complete", NULL);
    el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

void line_open(struct line *l, FILE *in, bool own)
{
    memset(l, 0, sizeof(*l));
    l->bell[0] = l->bell[1] = -1;
    l->in = in;
    l->own = own;
    l->terminal = isatty(fileno(in)) && isatty(STDOUT_FILENO);
    if (!l->terminal)
        return;
    l->watching = start_watching(l);
    start_editing(l);
}

void line_remember(struct line *l, const char *path)
{
    HistEvent ev;
    History *h;

    if (!l->edit || strlen(path) >= sizeof(l->history_path))
        return;
    h = history_init();
    if (!h)
        return;
    l->history = h;
    memcpy(l->history_path, path, strlen(path) + 1);
    history(h, &ev, H_SETSIZE, REMEMBERED);
    history(h, &ev, H_SETUNIQUE, 1);
    history(h, &ev, H_LOAD, path);
    el_set(l->edit, EL_HIST, history, h);
}

static enum line_end read_plain(struct line *l)
{
    size_t n;

    if (!fgets(l->text, sizeof(l->text), l->in))
        return LINE_OVER;
    n = strcspn(l->text, "\n");
    if (!l->text[n] && !feof(l->in)) /* longer than a line may be: the rest goes */
        for (int c = fgetc(l->in); c != EOF && c != '\n';)
            c = fgetc(l->in);
    l->text[n] = 0;
    return LINE_TEXT;
}

/* Each line is kept as it comes: a connection may break. libedit makes the file 0600. */
static void remember(struct line *l)
{
    HistEvent ev;
    int fd;

    if (!l->history || !l->text[strspn(l->text, " \t")])
        return;
    history(l->history, &ev, H_ENTER, l->text);
    fd = open(l->history_path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    history(l->history, &ev, H_SAVE, l->history_path);
}

enum line_end line_read(struct line *l, const char *prompt)
{
    const char *got;
    int n = 0;

    fflush(stdout);
    l->stop = 0;
    l->stopped = false;
    if (!l->edit)
        return read_plain(l);
    drain(l);
    l->prompt = prompt;
    el_resize(l->edit);
    el_set(l->edit, EL_PREP_TERM, 1); /* before the prompt, or keys get lost behind it */
    got = el_gets(l->edit, &n);
    if (l->stopped) {
        l->stop = 0;
        el_reset(l->edit);
        fputs("^C\n", stdout);
        return LINE_STOPPED;
    }
    if (!got || n <= 0) {
        fputc('\n', stdout);
        return LINE_OVER;
    }
    snprintf(l->text, sizeof(l->text), "%.*s", (int)strcspn(got, "\r\n"), got);
    remember(l);
    return LINE_TEXT;
}

void line_close(struct line *l)
{
    if (l->edit)
        el_end(l->edit);
    if (l->history)
        history_end(l->history);
    if (l->watching) {
        pthread_cancel(l->watcher);
        pthread_join(l->watcher, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (l->bell[i] >= 0)
            close(l->bell[i]);
    if (l->own)
        fclose(l->in);
    memset(l, 0, sizeof(*l));
}
