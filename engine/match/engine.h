#ifndef FL_MATCH_ENGINE_H
#define FL_MATCH_ENGINE_H
/*
 * Inside the match room: the matcher's parts and the table that a block engine fills.
 *
 * An engine finds candidates in a block and reports each with fl_match_found(). Its compiled object
 * is immutable after open(); what changes while scanning lives in its own scratch.
 */
#include "base/buf.h"
#include "match/code.h"
#include "match/match.h"

struct fl_engine {
    /* NULL when the machine can run it, else why not. */
    const char *(*refused)(void);
    void (*version)(fl_buf *out);
    /* Reads m->entry, whose `digits` and `features` it sets, from the cache or by
     * fl_match_judge(); may set m->note. */
    int (*open)(struct fl_matcher *m, void **state, fl_err *err);
    void (*close)(void *state);
    int (*scratch_new)(const struct fl_matcher *m, void **out, fl_err *err);
    void (*scratch_free)(void *engine_scratch);
    /* `alike`: what holds for a line must hold for each that differs from it in digits alone, so
     * that sensitive patterns are searched in their relaxed form. Finding too much is fine. */
    int (*scan)(const struct fl_matcher *m, struct fl_match_scratch *s, bool alike, fl_err *err);
};
extern const struct fl_engine fl_engine_pcre2;
#ifdef FL_HAVE_VECTORSCAN
extern const struct fl_engine fl_engine_hs;
#endif

struct fl_entry {
    struct fl_lazy lazy;
    struct fl_lazy alike; /* the form that sees every digit alike, of a sensitive pattern */
    enum fl_relaxed digits;
    unsigned features; /* fl_pattern_features */
    bool anchored;
};

struct fl_matcher {
    fl_arena arena;
    const struct fl_engine *engine;
    void *state;
    struct fl_entry *entry;
    size_t n;
    uint32_t *exact; /* patterns without a relaxed form */
    size_t nexact;
    const char *cache_dir; /* NULL: none */
    bool cache_hit;
    char name[64];
    char note[700];
};

/* Where a pattern was last found, so that its further hits in that line cost nothing. */
struct fl_last {
    uint32_t at, end;
};

struct fl_match_scratch {
    struct fl_tools tools;
    const struct fl_engine *engine;
    void *state;
    fl_str data; /* the block in work */
    struct fl_candidate *found;
    size_t nfound, cap;
    struct fl_last *last;
    size_t nlast;
    struct fl_last line; /* the line found last */
};

/* Raised whenever the same expression may come to have other features, or another form: what was
 * kept of it is then void. test_forms tells when. */
#define FL_MATCH_FORMS 1

/* Sets what each pattern is made of. */
int fl_match_judge(struct fl_matcher *m, fl_err *err);

/* What a scan puts into s->found and sorts. */
int fl_match_scan(const struct fl_matcher *m, struct fl_match_scratch *s, fl_str data, bool alike,
                  fl_err *err);
/* Is there a match anywhere in the line? */
bool fl_match_anywhere(const struct fl_matcher *m, struct fl_match_scratch *s, uint32_t index,
                       fl_str line);
/* A match of `pattern` ends at offset `to`: notes its line once. 0 or FL_ENOMEM. */
int fl_match_found(struct fl_match_scratch *s, uint32_t pattern, size_t to);
/* Searches the block for one pattern with PCRE2. */
int fl_match_pcre2_pattern(const struct fl_matcher *m, struct fl_match_scratch *s, uint32_t pattern,
                           bool alike, fl_err *err);

#endif
