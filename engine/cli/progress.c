/*
 * Progress on stderr.
 *
 * Most diagnoses end before half a second has passed and show nothing. A longer one shows one line
 * that is overwritten in place and erased at the end, so that what stays on the screen is the
 * answer alone. Nothing is printed when stderr is no terminal: a log of progress helps nobody.
 */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "out.h"

#define DELAY_MS 500
#define EVERY_MS 100

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_init(struct progress *p, const char *what, bool quiet)
{
    const char *term = getenv("TERM");

    /* A dumb terminal cannot overwrite a line. */
    *p = (struct progress){
        .on = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0, .what = what};
    if (p->on)
        p->start_ms = now_ms();
}

void progress_say(struct progress *p, const char *text)
{
    if (!p->on)
        return;
    p->shown_ms = now_ms();
    fputs(text, stderr);
    fflush(stderr);
}

void progress_step(struct progress *p, uint64_t done, uint64_t total)
{
    struct out_line l = {.n = 0};
    bool bytes = strcmp(p->what, "bytes") == 0;
    int64_t now;

    if (!p->on)
        return;
    now = now_ms();
    if (now - p->start_ms < DELAY_MS || now - p->shown_ms < EVERY_MS)
        return;
    p->shown_ms = now;
    if (bytes)
        out_line_bytes(&l, done);
    else
        out_line_add(&l, "%" PRIu64 " %s", done, p->what);
    if (total) {
        out_line_add(&l, " of ");
        if (bytes)
            out_line_bytes(&l, total);
        else
            out_line_add(&l, "%" PRIu64, total);
        /* The total may be an estimate that the work outgrows. */
        out_line_add(&l, ", %.0f %%", done < total ? 100.0 * (double)done / (double)total : 100.0);
    }
    if (bytes) {
        out_line_add(&l, ", ");
        out_line_bytes(&l, done * 1000 / (uint64_t)(now - p->start_ms));
        out_line_add(&l, "/s");
    }
    fprintf(stderr, "\r\033[K%s", l.p);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->on && p->shown_ms) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->on = false;
}
