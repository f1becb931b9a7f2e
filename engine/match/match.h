#ifndef FL_MATCH_MATCH_H
#define FL_MATCH_MATCH_H
/*
 * Many regular expressions at once over blocks of lines.
 *
 * PCRE2 is the truth: a pattern matches a line when PCRE2 says so, within that one line. The block
 * engine only finds candidates: Vectorscan over the whole block, or, in the fallback build, PCRE2
 * itself pattern by pattern. Candidates may be false, never missing; fl_match_confirm() decides and
 * captures. The compiled database is immutable and shared by threads, a scratch belongs to one.
 *
 * Limits that make hostile lines harmless: PCRE2 match limit and heap limit are fixed in match.c; a
 * pattern that exceeds them on a line counts as not matching there and is counted in
 * fl_match_limited().
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct fl_pattern {
    fl_str regex; /* PCRE2 syntax, bytes, no UTF mode, no '^' (see `anchored`) */
    uint32_t id;  /* the caller's, < 2^31; several patterns may share one id */
    bool icase;
    bool anchored;     /* must begin at the message's start, behind the line's prefix */
    const char *where; /* "file:line" for messages */
};

enum fl_match_engine { FL_MATCH_AUTO, FL_MATCH_VECTORSCAN, FL_MATCH_PCRE2 };

typedef struct fl_matcher fl_matcher;
typedef struct fl_match_scratch fl_match_scratch;

struct fl_match_opts {
    enum fl_match_engine engine; /* AUTO: Vectorscan where built in */
    const char *cache_dir;       /* for the compiled database; NULL: no cache */
    bool jit;                    /* PCRE2 JIT */
};

/*
 * Patterns are copied. FL_ERULE names the bad one and the position; with a database from the cache
 * the patterns are known to be good and are compiled one by one at their first confirmation.
 * FL_EBACKEND: Vectorscan was asked for and cannot be used; with AUTO, PCRE2 takes its place and
 * the note says why. A NULL `opts` means AUTO, no cache, JIT.
 */
int fl_matcher_new(const struct fl_pattern *p, size_t n, const struct fl_match_opts *opts,
                   fl_matcher **out, fl_err *err);
void fl_matcher_free(fl_matcher *m);
const char *fl_matcher_engine(const fl_matcher *m); /* "vectorscan 5.4.9" or "pcre2 10.42" */
/* NULL, or why the cache could not be used or written. A first run that finds no file is no reason.
 */
const char *fl_matcher_cache_note(const fl_matcher *m);
bool fl_matcher_cache_hit(const fl_matcher *m); /* the database came from the cache */

/* `m` may be NULL: a scratch for fl_regex_match() alone. A scratch must not outlive its matcher. */
int fl_match_scratch_new(const fl_matcher *m, fl_match_scratch **out, fl_err *err);
void fl_match_scratch_free(fl_match_scratch *s);

/* A line that may match a pattern: offsets in the block, without the LF. */
struct fl_candidate {
    uint32_t at, len;
    uint32_t pattern; /* index into the array given to fl_matcher_new */
};
/*
 * All candidates of a block of whole lines, sorted by (at, pattern), each pair once; the array is
 * borrowed from the scratch until its next call. `data` ends with LF. Blocks up to 2^31 bytes.
 */
int fl_match_block(const fl_matcher *m, fl_match_scratch *s, fl_str data,
                   const struct fl_candidate **out, size_t *n, fl_err *err);

/* What the caller wants to know of each line besides; 16 bytes of its own making. */
struct fl_tag {
    uint64_t a, b;
};
struct fl_line {
    uint32_t at, len;     /* in the block, without the LF */
    uint32_t cand, ncand; /* its candidates: in fl_lines.cand */
    uint64_t class;       /* equal for lines that differ in digits alone; 0: it has none */
    struct fl_tag tag;
};
/* Of one block; owned by the caller, who may hand in the same one again and again. */
struct fl_lines {
    struct fl_line *v;
    uint32_t *cand; /* indices of patterns */
    size_t n, ncand, cap, cand_cap;
};
void fl_lines_dispose(struct fl_lines *l);

/*
 * A block as lines with their candidates, like fl_match_block(), and quicker the more its lines are
 * alike: those that differ in digits alone are searched once. Belongs to one thread; remembers
 * lines from block to block in a few MiB.
 */
typedef struct fl_classes fl_classes;
struct fl_classes_opts {
    /* Fills *out for a line. True when the same holds for all lines that differ from it in digits
     * alone; else it is called for each of them with `again`, and *out holds the first one's. */
    bool (*tag)(void *ctx, fl_str line, bool again, struct fl_tag *out);
    void *ctx;
    size_t max;       /* classes remembered; 0: 65536 */
    uint64_t seed[2]; /* secret, so that a hostile log cannot make two classes collide */
};
int fl_classes_new(const fl_matcher *m, const struct fl_classes_opts *opts, fl_classes **out,
                   fl_err *err);
void fl_classes_free(fl_classes *c);
/* `s` is a scratch of the same matcher, whose own candidates are overwritten. What *out held is
 * replaced. Errors as of fl_match_block(). */
int fl_classes_block(fl_classes *c, fl_match_scratch *s, fl_str data, struct fl_lines *out,
                     fl_err *err);

#define FL_MATCH_CAPS 12
struct fl_caps {
    fl_str whole;
    struct {
        const char *name; /* of a named group; borrowed from the matcher */
        fl_str text;      /* slice of the line; p == NULL when the group took no part */
    } cap[FL_MATCH_CAPS];
    unsigned n;
};
/* Does pattern `index` match in `line`? `message` is where the message begins (for anchored ones).
 * `caps` may be NULL; it gets the whole match and the first FL_MATCH_CAPS named groups, in the
 * order of their numbers. Patterns that fl_match_block() reported are compiled already. */
bool fl_match_confirm(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str line,
                      size_t message, struct fl_caps *caps);
uint64_t fl_match_limited(const fl_match_scratch *s); /* matches given up at a limit */
/* Memory ran out inside a confirmation, which then said "no match": the answers of this scratch are
 * not to be relied on. The next fl_match_block() fails with FL_ENOMEM. */
bool fl_match_out_of_memory(const fl_match_scratch *s);

/*
 * Tests the promise that candidates are never missing: puts `line` (one line) behind fifty
 * prefixes, between other lines and with stretched words, and returns how many of those that
 * pattern `index` matches, by PCRE2 and wherever the match begins, fl_match_block() does not name.
 * The first of them is appended to `lost`, which may be NULL. 0 also when `line` does not match at
 * all, and always where PCRE2 is the block engine. Errors as of fl_match_block(), whose candidates
 * are overwritten.
 */
int fl_match_verify(const fl_matcher *m, fl_match_scratch *s, uint32_t index, fl_str line,
                    fl_buf *lost, fl_err *err);

/* One expression by itself (rule conditions, tests, user's grep). */
typedef struct fl_regex fl_regex;
int fl_regex_new(fl_str pattern, bool icase, const char *where, fl_regex **out, fl_err *err);
/* For an expression that compiled before, under the same fl_regex_version(): it is compiled when it
 * is first used. */
int fl_regex_new_known(fl_str pattern, bool icase, const char *where, fl_regex **out, fl_err *err);
void fl_regex_version(fl_buf *out); /* appends what tells the library from other versions of it */
bool fl_regex_match(const fl_regex *re, fl_match_scratch *s, fl_str subject, struct fl_caps *caps);
void fl_regex_free(fl_regex *re);

/* Lint: true when ripgrep's default engine takes the expression and reads it as PCRE2 does (no
 * look-around, back-references, possessive or atomic groups, no escapes that only PCRE2 knows). The
 * syntax itself is PCRE2's to judge. */
bool fl_pattern_is_regular(fl_str regex);
/* The expression has a '^' that is an assertion. */
bool fl_pattern_has_caret(fl_str regex);
/*
 * Lint: searches lines made to hurt (heads of `lines`, the pattern's own hits, with long runs
 * behind them; about 200 bytes each) with the interpreter under a rising step limit. Returns a
 * number of steps that was enough for all of them, within a factor of four, or FL_ELIMIT past
 * `limit`. Linear patterns stay near a thousand, quadratic ones under 100 000.
 */
int fl_pattern_probe(const struct fl_pattern *p, const fl_str *lines, size_t n, uint32_t limit,
                     fl_err *err);
/* The expression has a named group `name`; one that does not compile has none. */
bool fl_pattern_has_group(const struct fl_pattern *p, fl_str name);

#endif
