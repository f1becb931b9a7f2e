#ifndef FL_CLI_PROGRESS_H
#define FL_CLI_PROGRESS_H
/*
 * A line of progress on stderr.
 */
#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on;
    const char *what; /* "bytes" are shown as MB and a rate; another word is counted */
    int64_t start_ms, shown_ms;
};

/* Shows only when stderr is a terminal and not quiet, and only after half a second. */
void progress_init(struct progress *p, const char *what, bool quiet);
/* Shows a text at once, for work of unknown length; progress_end erases it. */
void progress_say(struct progress *p, const char *text);
/* Total 0: unknown. Cheap: prints ten times a second at most. */
void progress_step(struct progress *p, uint64_t done, uint64_t total);
/* Erases the line. */
void progress_end(struct progress *p);

#endif
