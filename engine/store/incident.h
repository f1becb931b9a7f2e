#ifndef FL_STORE_INCIDENT_H
#define FL_STORE_INCIDENT_H
/*
 * A past incident, and incidents as YAML.
 *
 *   incidents:
 *     - id: inc-gpu-ecc-94
 *       kind: incident              # incident (default), follow_on or harmless
 *       cause: gpu.ecc
 *       title: Contained memory error
 *       stack: [h100, megatron-lm]
 *       phase: iterating
 *       evidence:
 *         - 'NVRM: Xid (PCI:0000:5d:00): 94, pid=331876, name=pt_main_thread, Contained'
 *       explanation: ...
 *       fix: ...
 *       source: ...
 *
 * An export has five keys more: origin, created, updated, count, shape. A text that is not valid
 * UTF-8 is written as a map, {escaped: 'caf\xe9'}: a backslash stands for itself when doubled, and
 * \xNN for one byte.
 */
#include "base/arena.h"
#include "base/buf.h"

enum fl_incident_kind { FL_KIND_INCIDENT, FL_KIND_FOLLOW_ON, FL_KIND_HARMLESS };
/* Where it is from: added by a person, shipped, an answer that a person confirmed or corrected. */
enum fl_incident_origin {
    FL_ORIGIN_USER,
    FL_ORIGIN_CORPUS,
    FL_ORIGIN_CONFIRMED,
    FL_ORIGIN_CORRECTED
};

/* All texts are borrowed. Those that hold what logs and people wrote (title, evidence, explanation,
 * fix, source) may have any bytes. */
struct fl_incident {
    fl_str id, cause, title, phase, explanation, fix, source;
    fl_str created, updated; /* YYYY-MM-DDThh:mm:ssZ */
    fl_str shape;            /* hex digits: what makes two incidents the same; empty: unknown */
    enum fl_incident_kind kind;
    enum fl_incident_origin origin;
    const fl_str *stack, *evidence;
    size_t nstack, nevidence;
    uint64_t count;   /* how often it was seen */
    const char *file; /* where it was read from, for messages, or NULL */
    unsigned line;
};

#define FL_INCIDENT_MAX_WORD 128         /* bytes of id, cause, phase, shape, a stack's word */
#define FL_INCIDENT_MAX_EVIDENCE 1000    /* lines */
#define FL_INCIDENT_MAX_BYTES (2u << 20) /* of all its texts together */

const char *fl_incident_kind_word(enum fl_incident_kind k);
const char *fl_incident_origin_word(enum fl_incident_origin o);
/* Of these words, or false. */
bool fl_incident_kind_of(fl_str word, enum fl_incident_kind *out);
bool fl_incident_origin_of(fl_str word, enum fl_incident_origin *out);
/* FL_EUSAGE with the reason when it cannot be stored: no id or cause, words of other bytes than
 * letters, digits and "._+:/-" in id and cause, control bytes in phase and stack, an empty evidence
 * line, a time of another form, too much text. `need_id` false: the store will make the id. */
int fl_incident_check(const struct fl_incident *inc, bool need_id, fl_err *err);
/* A copy whose texts live in the arena; FL_ENOMEM. */
int fl_incident_dup(const struct fl_incident *inc, fl_arena *a, struct fl_incident *out);

/* Borrowed for the call. A negative code ends the reading and is handed on, a positive one ends it
 * well. */
typedef int (*fl_incident_fn)(void *ctx, const struct fl_incident *inc, fl_err *err);

/* Reads one at a time, in the order of the file. Unknown keys, other forms and incidents that
 * fl_incident_check refuses are errors with file and line. */
int fl_incidents_parse(fl_str text, const char *file, fl_incident_fn fn, void *ctx, fl_err *err);
/* A file, or each *.yaml of a folder in the order of their names. */
int fl_incidents_load(const char *path, fl_incident_fn fn, void *ctx, fl_err *err);

/* What loads but should not ship. `cause` may be NULL: any cause is known. */
struct fl_incident_lint {
    bool (*cause)(void *ctx, fl_str id);
    void (*report)(void *ctx, const char *text); /* "file:line: what" */
    void *ctx;
};
/* Number of findings, or a negative code. A file that does not load is a finding. */
int fl_incidents_lint(const char *path, const struct fl_incident_lint *l, fl_err *err);

/* Maps a text on its way out (redaction): appends what is to be written instead. */
typedef void (*fl_incident_map_fn)(void *ctx, fl_str text, fl_buf *out);
#define FL_INCIDENTS_HEAD "incidents:\n"
/* Appends one row of the list as YAML, the same bytes for the same incident. `map` may be NULL; it
 * is applied to title, evidence, explanation, fix and source. */
void fl_incident_write(const struct fl_incident *inc, fl_incident_map_fn map, void *ctx,
                       fl_buf *out);

#endif
