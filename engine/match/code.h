#ifndef FL_MATCH_CODE_H
#define FL_MATCH_CODE_H
/*
 * Inside the match room: one expression compiled by PCRE2, at once or at its first use.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "match/match.h"

struct fl_expr {
    pcre2_code *re;
    struct {
        unsigned number;
        const char *name; /* in the code's own table */
    } group[FL_MATCH_CAPS];
    unsigned ngroups;
};

enum fl_form {
    FL_FORM_SOURCE,
    FL_FORM_ONE_LINE, /* fl_pattern_one_line() */
    FL_FORM_ALIKE     /* fl_pattern_relax() of that */
};

/* An expression that is compiled when first asked for. Safe under threads: the first finished
 * compilation is kept, a second one made meanwhile is dropped. */
struct fl_lazy {
    fl_str source; /* as it was written */
    const char *where;
    enum fl_form form; /* of it, which is made and compiled */
    bool icase, jit;
    _Atomic(struct fl_expr *) code;
};

/* What one thread needs to run expressions. */
struct fl_tools {
    pcre2_general_context *general;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
    uint64_t limited;
    bool nomem;
};

int fl_expr_new(fl_str regex, bool icase, bool jit, const char *where, struct fl_expr **out,
                fl_err *err);
void fl_expr_free(struct fl_expr *c);
/* Appends the form that is compiled. */
void fl_lazy_text(const struct fl_lazy *l, fl_buf *out);
/* Compiles now, for the caller; a wrong expression is told as it was written. */
int fl_lazy_compile(const struct fl_lazy *l, bool jit, struct fl_expr **out, fl_err *err);
int fl_lazy_get(struct fl_lazy *l, struct fl_expr **out, fl_err *err);
void fl_lazy_dispose(struct fl_lazy *l);

int fl_tools_init(struct fl_tools *t, fl_err *err);
void fl_tools_dispose(struct fl_tools *t);
/* First match at or after `from`: its start, or -1 for none, -2 when a limit stopped the search
 * (counted). *end is where the match ends. */
ptrdiff_t fl_expr_search(const struct fl_expr *c, struct fl_tools *t, fl_str text, size_t from,
                         size_t *end);
/* The groups of the last successful search. */
void fl_expr_caps(const struct fl_expr *c, const struct fl_tools *t, fl_str text,
                  struct fl_caps *caps);

/* What an expression uses beyond plain regular syntax. */
enum {
    FL_RE_LOOK = 1,                     /* look-around, \K */
    FL_RE_BACKREF = 2,                  /* back-references, recursion, conditions */
    FL_RE_ATOMIC = 4,                   /* atomic groups, possessive quantifiers */
    FL_RE_VERB = 8,                     /* (*VERB) */
    FL_RE_ABSOLUTE = 16,                /* \A \Z \z \G: ends of the subject, not of the line */
    FL_RE_CARET = 32,                   /* '^' outside a class */
    FL_RE_DIALECT = 64,                 /* spelling that ripgrep's engine does not know */
    FL_RE_LINEWISE = 1 | 2 | 4 | 8 | 16 /* may need a line by itself to be found */
};
unsigned fl_pattern_features(fl_str regex);
/* Appends the expression so that a match of it does not run into the next line. */
void fl_pattern_one_line(fl_str regex, fl_buf *out);

/* Whether two lines that differ in digits alone can differ for an expression. */
enum fl_relaxed {
    FL_RELAX_BLIND,     /* never */
    FL_RELAX_SENSITIVE, /* they can; what was appended never does, and matches at least as much */
    FL_RELAX_EXACT      /* they can, and there is no such form */
};
enum fl_relaxed fl_pattern_relax(fl_str regex, fl_buf *out);

#endif
