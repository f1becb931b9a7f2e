#ifndef FL_REDACT_REDACT_H
#define FL_REDACT_REDACT_H
/*
 * Secrets and names to placeholders and back, before a text leaves the machine.
 *
 * A redactor belongs to one conversation and one thread. The same text gets the same placeholder
 * for as long as it lives, so a model can follow <HOST_3> through a log, and fl_restore() puts the
 * originals back into what comes home: fl_restore(fl_redact(x)) == x, byte for byte, also where x
 * holds texts that look like placeholders (they are replaced by <TEXT_n> on the way out).
 *
 * What is replaced: keys and tokens, passwords, private keys, e-mail, addresses, host names, user
 * names, bucket names, what the caller makes known and what the user's own patterns match. What
 * says why a job died stays: exit codes, Xids, PCI addresses, ranks, versions, error texts, paths
 * but for the user in them, places in code, times, and addresses that name no machine (127.0.0.1,
 * 0.0.0.0, link-local IPv4, netmasks). Public sites such as huggingface.co stay as well.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum fl_redact_kind {
    FL_REDACT_SECRET,
    FL_REDACT_HOST,   /* a machine's name, or the first label of a longer one */
    FL_REDACT_DOMAIN, /* what stands behind the first label */
    FL_REDACT_IP,
    FL_REDACT_USER,
    FL_REDACT_PATH, /* made known by the caller only */
    FL_REDACT_EMAIL,
    FL_REDACT_BUCKET,
    FL_REDACT_TEXT, /* looked like a placeholder before */
    FL_REDACT_KINDS
};
/* The word in a placeholder, such as "HOST". */
const char *fl_redact_word(enum fl_redact_kind kind);

typedef struct fl_redactor fl_redactor;

struct fl_redact_opts {
    /* The user's own, in the syntax of rules (PCRE2, one line at a time). A named group secret,
     * host, domain, ip, user, path, email or bucket is replaced as that; without one the whole
     * match is a secret. On a line on which a pattern gives up at the match limit, all is. */
    const fl_str *patterns;
    size_t npatterns;
    const char *where; /* for messages about them: "config.yaml"; NULL: "pattern" */
    size_t max_bytes;  /* of originals kept; 0: 16 MiB */
};
#define FL_REDACT_MAX_ENTRIES 65536 /* originals kept */
#define FL_REDACT_MAX_NAME 1024     /* longest name that can be made known */

/* `o` may be NULL. FL_ERULE: one of the patterns is wrong. */
int fl_redactor_new(const struct fl_redact_opts *o, fl_redactor **out, fl_err *err);
void fl_redactor_free(fl_redactor *r);

/*
 * Makes a name known: from now on it is replaced wherever it stands as a word of its own, whatever
 * its case. Names that would take evidence with them are passed over without an error: one byte,
 * digits alone, `localhost`, `rank0`, `gpu0` and the like, longer than FL_REDACT_MAX_NAME. A PATH
 * is replaced as the head of longer paths. FL_ENOMEM; beyond the limits names are passed over too.
 */
int fl_redact_know(fl_redactor *r, enum fl_redact_kind kind, fl_str text, fl_err *err);

/*
 * Appends `text` with placeholders to `out`, which is as before on failure. The text is seen as a
 * whole: what one line tells about a name holds for all lines, earlier ones too, so hand in a
 * prompt at once rather than line by line. Any bytes; ANSI codes inside a secret do not hide it.
 * When the limits are reached further originals become <HOST_0>, which cannot be restored, and are
 * counted in fl_redact_lost(). Time and memory grow linearly with the text. FL_ENOMEM, FL_ELIMIT
 * (text of 1 GiB, or `out` is full).
 */
int fl_redact(fl_redactor *r, fl_str text, fl_buf *out, fl_err *err);

/*
 * Appends `text` with the originals put back to `out`, which is as before on failure. Takes what
 * models make of placeholders: any case, `_` `-` or blank before the number, blanks inside, other
 * brackets, HTML and JSON escapes, one bracket or none. One that was never given out stays.
 */
int fl_restore(const fl_redactor *r, fl_str text, fl_buf *out, fl_err *err);

/* Distinct originals by kind so far. */
size_t fl_redact_count(const fl_redactor *r, enum fl_redact_kind kind);
uint64_t fl_redact_lost(const fl_redactor *r);
/* "12 host names, 3 addresses, 1 secret", or "nothing". */
void fl_redact_summary(const fl_redactor *r, fl_buf *out);

#endif
