#ifndef FL_CLI_LINE_H
#define FL_CLI_LINE_H
/*
 * Lines that a person types, or that a script pipes in.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define LINE_MOST 8192 /* bytes of one line */

enum line_end { LINE_TEXT, LINE_STOPPED, LINE_OVER };

struct line {
    FILE *in;
    bool terminal, own;   /* edited with libedit; `in` was opened here */
    void *edit, *history; /* of libedit */
    char history_path[4300];
    const char *prompt;
    /* Candidate number `i` for the word that begins at `word` of the line so far; NULL: no more. */
    const char *(*candidate)(void *ctx, const char *head, size_t word, size_t i);
    void *ctx;
    volatile int stop;  /* set by Ctrl-C */
    volatile int fatal; /* while it is not 0, Ctrl-C ends the program */
    bool stopped, watching;
    int bell[2]; /* a byte for each Ctrl-C, so that waiting for a key ends */
    pthread_t watcher;
    char text[LINE_MOST];
};

/* Reads from `in`, or from the terminal when that is NULL. From now on Ctrl-C sets `stop` and kills
 * nothing, where the input is a terminal. */
void line_open(struct line *l, FILE *in, bool own);
/* Takes earlier lines from this file and keeps new ones there, readable for its owner only. */
void line_remember(struct line *l, const char *path);
/* The line without its end is in l->text. LINE_STOPPED: Ctrl-C; LINE_OVER: there are no more. */
enum line_end line_read(struct line *l, const char *prompt);
void line_close(struct line *l);

#endif
