#ifndef FL_REDACT_REDACTOR_H
#define FL_REDACT_REDACTOR_H
/*
 * Inside the redact room: what a conversation remembers.
 */
#include "base/arena.h"
#include "base/map.h"
#include "match/match.h"
#include "redact/redact.h"

struct fl_original {
    fl_str text; /* in the arena */
    uint32_t number;
    uint8_t kind;
};

struct fl_redactor {
    fl_arena arena;
    fl_map ids; /* kind and text -> index of an original */
    struct fl_original *v;
    size_t n, cap;
    uint32_t *by[FL_REDACT_KINDS]; /* number - 1 -> index of an original */
    size_t count[FL_REDACT_KINDS], by_cap[FL_REDACT_KINDS];
    uint64_t lost;
    size_t bytes, max_bytes;
    /* Names in lower case and their beginnings at word ends -> FL_KNOWN_* and kind. */
    fl_map known;
    fl_regex **patterns;
    size_t npatterns;
    fl_match_scratch *scratch; /* NULL without patterns */
};

/* Values of `known`. */
enum {
    FL_KNOWN_KIND = 15, /* of a name that ends here, plus 1 */
    FL_KNOWN_MORE = 16, /* longer names begin so */
    FL_KNOWN_WEAK = 32  /* within paths only */
};
#define FL_KNOWN_MAX 262144 /* names and beginnings */

/* Adds a name, already in lower case. 0 (also when passed over) or FL_ENOMEM. */
int fl_known_add(struct fl_redactor *r, enum fl_redact_kind kind, fl_str low, bool weak);

#endif
