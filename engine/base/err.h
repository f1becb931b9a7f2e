#ifndef FL_BASE_ERR_H
#define FL_BASE_ERR_H
/*
 * The one error channel.
 *
 * A fallible function returns 0 (or a count) on success and a negative code of this table on
 * failure; its last parameter is `fl_err *err`. It is untouched on success. Outputs are untouched
 * on failure. `err` may be NULL where the caller needs only the code.
 *
 * A message is one sentence for a person: it names the input, the cause and the next step.
 */
#include "base/str.h"

enum fl_code {
    FL_OK = 0,
    FL_ENOMEM = -1,    /* out of memory */
    FL_EIO = -2,       /* input or output failed */
    FL_EUSAGE = -3,    /* the call or the command line is wrong */
    FL_EINPUT = -4,    /* an input cannot be read */
    FL_ERULE = -5,     /* a rule, taxonomy or policy file is wrong */
    FL_EBACKEND = -6,  /* a needed backend failed */
    FL_ELIMIT = -7,    /* a limit was reached */
    FL_ENOTFOUND = -8, /* not found */
    FL_EBUG = -9       /* an invariant is broken: please report it */
};

#ifndef FL_ERR_DEFINED /* the public header has the same, for programs that see only that one */
#define FL_ERR_DEFINED
typedef struct fl_err {
    int code;      /* one of enum fl_code */
    char msg[600]; /* NUL-terminated, printable, one line */
} fl_err;
#endif

/* Sets err (if not NULL) and returns `code`. Control bytes in the text are escaped: messages may
 * quote log text and file names. A longer text is cut with a mark. */
__attribute__((format(printf, 3, 4))) int fl_fail(fl_err *err, int code, const char *fmt, ...);
/* FL_ENOMEM with a fixed text; never allocates. */
int fl_fail_nomem(fl_err *err);

#endif
