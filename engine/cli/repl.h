#ifndef FL_CLI_REPL_H
#define FL_CLI_REPL_H
/*
 * The REPL over one job.
 *
 *   repl.c        opening, the loop, the table of commands, completion
 *   repl_show.c   commands that show what the answer and the memory hold
 *   repl_look.c   commands that look into the log
 *   repl_ask.c    questions, with a language model and without; correcting, saving
 *   line.c        reading lines
 */
#include "cli.h"
#include "line.h"

struct repl {
    const struct cli_args *args;
    struct cli_session *s;
    struct out o;
    fl_diagnosis *d;
    const struct fl_report *r;
    fl_memory *memory; /* NULL: none, or not wanted */
    fl_log *log;
    unsigned talks;  /* begun so far */
    fl_talk *talk;   /* NULL until a question is asked */
    FILE *talked;    /* what was asked and answered, for /save; NULL: could not be kept */
    struct out copy; /* of `talked`, while what a search prints is kept too; else without a file */
    struct line line;
    bool leave;
};

struct repl_command {
    const char *name, *args, *brief;
    void (*run)(struct repl *x, const char *rest); /* `rest` without blanks at its ends */
};
extern const struct repl_command repl_commands[]; /* the last one has no name */

int repl_run(struct cli_session *s, const struct cli_args *args);
bool repl_has_model(const struct repl *x);

void repl_evidence(struct repl *x, const char *rest);
void repl_digest(struct repl *x, const char *rest);
void repl_timeline(struct repl *x, const char *rest);
void repl_similar(struct repl *x, const char *rest);
void repl_incident(struct repl *x, const char *rest);
void repl_why(struct repl *x, const char *rest);
void repl_explain(struct repl *x, const char *rest);
void repl_json(struct repl *x, const char *rest);
void repl_neighbours(struct repl *x, const fl_neighbours *n);

void repl_around(struct repl *x, const char *rest);
void repl_grep(struct repl *x, const char *rest);
void repl_rank(struct repl *x, const char *rest);
/* Lines of the log to a question. Returns how many. */
size_t repl_look_words(struct repl *x, const char *question);

void repl_question(struct repl *x, const char *text);
void repl_ask(struct repl *x, const char *rest);
void repl_correct(struct repl *x, const char *rest);
void repl_save(struct repl *x, const char *rest);

#endif
