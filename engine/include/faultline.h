#ifndef FAULTLINE_H
#define FAULTLINE_H
/*
 * Faultline: why did the training job die, who must act, and what should the restart do next.
 *
 * The only installed header. Rules of the whole interface:
 *   - A fallible function returns 0 on success, or a negative code of enum fl_error_code; its last
 *     parameter is `fl_err *err` (may be NULL), untouched on success. Outputs are untouched on
 *     failure.
 *   - A pointer through an `out` parameter is owned by the caller and freed with the function named
 *     beside it; a pointer returned, or inside a report, is borrowed and dies with its parent.
 *   - free functions take NULL.
 *   - The library never prints and never exits. It reads files, and writes only below
 *     fl_engine_opts.cache_dir.
 *   - An engine is immutable and may be used by several threads at once; a diagnosis belongs to
 * one.
 *   - Strings are NUL-terminated bytes. What comes from a log is not valid UTF-8 in general and may
 *     hold control bytes: use fl_printable() before showing it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FL_ERR_DEFINED
#define FL_ERR_DEFINED
typedef struct fl_err {
    int code;      /* negative, enum fl_error_code */
    char msg[600]; /* one printable sentence: the input, the cause, the next step */
} fl_err;
#endif

enum fl_error_code {
    FL_ERROR_MEMORY = -1,
    FL_ERROR_IO = -2,
    FL_ERROR_USAGE = -3,
    FL_ERROR_INPUT = -4,   /* an input cannot be read */
    FL_ERROR_RULES = -5,   /* a rule, taxonomy or policy file is wrong; the message has file:line */
    FL_ERROR_BACKEND = -6, /* a needed backend failed */
    FL_ERROR_LIMIT = -7,
    FL_ERROR_NOT_FOUND = -8,
    FL_ERROR_BUG = -9
};

const char *fl_version(void);

/* ---- engine: rules, compiled ---- */

typedef struct fl_engine fl_engine;

struct fl_engine_opts {
    const char *const *rule_dirs; /* each with failures/, and in the first taxonomy and policy */
    size_t nrule_dirs;            /* 0: the shipped rules, found by fl_data_dir() */
    const char *cache_dir;        /* for compiled patterns and read rules; NULL: nothing is kept */
    bool pcre2_only;              /* scan with PCRE2 alone: slower, the same answers */
    bool digests;                 /* fl_digest_build() will follow: open what it needs in threads
                                   * beside the rest. The same digests, sooner */
    int64_t (*clock_ms)(void *ctx); /* monotonic; NULL: the system's */
    void *clock_ctx;
};

/* FL_ERROR_RULES, FL_ERROR_INPUT, FL_ERROR_MEMORY. Free with fl_engine_free. */
int fl_engine_open(const struct fl_engine_opts *opts, fl_engine **out, fl_err *err);
void fl_engine_free(fl_engine *e);
const char *fl_engine_rules_version(const fl_engine *e); /* a hash of all rule files */
const char *fl_engine_scanner(const fl_engine *e);       /* "vectorscan 5.4.9" or "pcre2 10.42" */
const char *fl_engine_cache_note(const fl_engine *e);    /* NULL, or why the cache was not used */
/* Folder with rules/ beside the program: build tree, then installed. Writes at most `cap` bytes
 * with the NUL. FL_ERROR_NOT_FOUND when there is none. $FAULTLINE_DATA overrides. */
int fl_data_dir(char *out, size_t cap, fl_err *err);

/* ---- configuration ---- */

struct fl_config {                /* one file; what it does not say is NULL, 0 or false */
    const char *const *rule_dirs; /* `rules`: folders added to the shipped ones */
    size_t nrule_dirs;
    const char *cache_dir;           /* `cache`: a folder */
    bool no_cache;                   /* `cache: false` */
    const char *color;               /* `color`: auto, always or never */
    const struct fl_ask_config *llm; /* `llm`: for fl_diagnosis_ask(); NULL: none */
    const char *const *endpoints;    /* their URLs without user and query, in the order of asking */
    size_t nendpoints;
    const char *memory_home; /* `memory: {home: DIR}`: the folder of past incidents */
    const struct fl_embedding_config *embedding; /* `memory: {embedding: ...}`; NULL: none */
};

/* Reads one configuration file. Folders that are not absolute are taken from the file's own
 * folder. FL_ERROR_INPUT when it cannot be read or is wrong (the message has file:line),
 * FL_ERROR_MEMORY. Free with fl_config_free. */
int fl_config_load(const char *path, struct fl_config **out, fl_err *err);
void fl_config_free(struct fl_config *c);

/* ---- diagnosis ---- */

struct fl_place {     /* a line of the input */
    const char *file; /* NULL: none */
    uint64_t line;    /* 1-based */
};

struct fl_evidence {
    struct fl_place at;
    const char *text; /* the line as it stands, leading blanks kept, ANSI codes and CR removed */
    const char *role; /* root, symptom, confirm, progress */
    const char *cause;
    int32_t rank; /* -1: unknown */
    const char *host, *gpu,
        *time; /* NULL: unknown; time as ISO 8601, zone only if the log had one */
    uint32_t match_at, match_len; /* bytes of `text` that matched; match_len 0: unknown */
};

struct fl_follow_on {
    const char *cause;
    uint64_t count;
    uint32_t rank_count;
    struct fl_place first;
};

struct fl_alternative {
    const char *id, *why;
    double confidence;
};

struct fl_attempt {
    uint32_t number;
    struct fl_place first, last;
    const char *cause; /* what this attempt alone would be called; NULL: no failure in it */
};

struct fl_input_file {
    const char *name;
    uint64_t bytes, lines;
    const char *note; /* NULL, or what was wrong with it */
};

struct fl_matched {     /* a line of the log and the line of an incident that it is like */
    struct fl_place at; /* file NULL: no line of the log, words of its timeline */
    const char *text, *incident_text;
    double similarity; /* cosine, 0..1 */
};
struct fl_neighbour {
    const char *incident, *cause, *title, *explanation, *fix, *source, *origin;
    double score;      /* 0..1: how often such a neighbour had the right cause */
    double similarity; /* the best cosine of its lines */
    double words;      /* the best BM25 of its lines, divided by the root of one plus the words */
    uint64_t seen;     /* how often */
    const struct fl_matched *matched;
    size_t nmatched;
};

struct fl_citation {
    struct fl_place at; /* where the quote stands, or where it was said to */
    const char *quote;
    const char *text; /* that line; NULL when it was not found */
    const char *mark; /* exact, nearby (corrected), elsewhere, not_found */
    bool grounds;     /* it is there, and can carry a claim */
};
struct fl_llm_report {
    const char *endpoint, *model, *prompt; /* NULL: unknown */
    int64_t tokens_in, tokens_out;         /* -1: not told */
    double seconds, cost;                  /* cost below 0: not known */
    const char *error;                     /* NULL, or why there is no answer */
    const char *passed_over;               /* endpoints that did not answer, a line each */
    const char *disagreement;              /* of several votes */
    const char *rules_said;                /* cause id of the deterministic answer */
    bool grounded, decided;
    const char *cause, *class_name, *summary, *action; /* NULL without an answer */
    double confidence;
    const struct fl_citation *citations;
    size_t ncitations;
};

struct fl_report {
    const char *outcome; /* "diagnosed", "unknown", "healthy" */
    struct {
        const char *id, *class_name, *title;
        double confidence;      /* 0..1 */
        const char *decided_by; /* rule, timeline, neighbours, llm, none */
        const char *rule;       /* NULL when none */
        const char *summary;
    } cause;
    const struct fl_evidence *evidence; /* the decisive lines first */
    size_t nevidence;
    struct {
        const int32_t *ranks;
        size_t nranks;
        const char *const *hosts;
        size_t nhosts;
        const char *const *gpus; /* PCI addresses or UUIDs */
        size_t ngpus;
        const int32_t *gpu_indices;
        size_t ngpu_indices;
    } location;
    const struct fl_follow_on *follow_on;
    size_t nfollow_on;
    const struct fl_alternative *alternatives;
    size_t nalternatives;
    const char *const *reasons;
    size_t nreasons;
    struct {
        const char *id, *decision, *why, *advice;
        int exit_code; /* for --exit-decision */
        const char *const *exclude_hosts;
        size_t nexclude_hosts;
        int64_t resume_step; /* -1: none */
        const char *checkpoint;
        int64_t skip_from, skip_to; /* -1: none */
    } action;
    struct {
        const char *phase; /* startup, iterating, checkpoint, evaluation, shutdown; NULL: unknown */
        int64_t first_step, last_step, last_healthy_step, total_steps; /* -1: unknown */
        struct fl_place last_progress;
        const char *last_progress_time;
        const char *const *notes; /* what the numbers show, one sentence each */
        size_t nnotes;
    } timeline;
    const struct fl_attempt *attempts;
    size_t nattempts;
    const struct fl_neighbour *neighbours; /* past incidents like it, see fl_diagnosis_consult() */
    size_t nneighbours;
    const struct fl_llm_report *llm; /* NULL: no model was asked */
    struct {
        const struct fl_input_file *files;
        size_t nfiles;
        uint64_t bytes, lines;
        const char *const *skipped; /* "name: why" */
        size_t nskipped;
        int32_t ranks_seen, world_size, hosts_seen; /* -1: unknown */
        const char *const
            *left_out; /* what of the input takes no part in the answer, a clause each */
        size_t nleft_out;
        uint64_t cut_lines;
    } input;
    const char *rules_version, *version;
    int64_t elapsed_ms;
};

typedef struct fl_diagnosis fl_diagnosis;

struct fl_diagnose_opts {
    const char *const *paths; /* files, folders, "-"; together one job */
    size_t npaths;
    int64_t since_us, until_us; /* lines outside are left out where they carry a full time; wall
                                   time as the log prints it, us since 1970; INT64_MIN, INT64_MAX:
                                   no bound */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* bytes; total 0: unknown */
    void *progress_ctx;
    unsigned threads; /* that read and search, at most 16; 0: one a core, at most 8. The answer is
                         the same for any number. `progress` is called from any of them, never from
                         two at once. */
    bool digest;      /* keep what fl_digest_build() needs */
    size_t block;     /* bytes read at once; 0: 1 MiB */
};
#define FL_DIAGNOSE_OPTS_INIT                                                                      \
    {                                                                                              \
        .since_us = INT64_MIN, .until_us = INT64_MAX                                               \
    }

/* FL_ERROR_INPUT when a named input cannot be opened, FL_ERROR_IO when its first read fails; later
 * faults end that input with a note. Memory does not grow with the input. */
int fl_diagnose(const fl_engine *e, const struct fl_diagnose_opts *opts, fl_diagnosis **out,
                fl_err *err);
void fl_diagnosis_free(fl_diagnosis *d);
const struct fl_report *fl_diagnosis_report(const fl_diagnosis *d);
/* The report as one JSON object of schema faultline.diagnosis/1 (share/faultline/schema). The text
 * is owned by the caller: fl_text_free. */
int fl_report_json(const struct fl_report *r, bool indented, char **out, fl_err *err);
void fl_text_free(char *text);
/* Escapes control bytes, invalid UTF-8 and bidirectional marks; at most cap bytes with the NUL.
 * Returns the bytes of `text` used. */
size_t fl_printable(const char *text, char *out, size_t cap);

/* Reads a point in time such as 2026-03-01T02:03:04 or 2026-03-01, in us of what a clock on the
 * wall shows: logs are compared by that, and a zone in the text is dropped. False when it is none.
 */
bool fl_time_from_text(const char *text, int64_t *us);

/* ---- digest: the lines of a job that are worth reading ---- */

#define FL_DIGEST_BUDGET 4000 /* tokens, when none is named */

struct fl_digest_row {   /* a shown line */
    const char *section; /* job, timeline, evidence, event, traceback, tail, other */
    struct fl_place at;
    const char *text; /* printable; a long line is cut with "[...]" */
    uint64_t count;   /* lines like it, this one included */
    uint32_t ranks;   /* that printed them; 0 unknown */
};

struct fl_digest_drop {
    const char *filter; /* id */
    uint64_t lines;
};

/* Where every line went: lines = kept + folded + dropped + left_out + no_room. */
struct fl_digest_account {
    uint64_t lines, bytes; /* read, after decompression and cleaning */
    uint64_t kept;         /* on the page */
    uint64_t folded;       /* of the shape of one on the page, or of one that it stands for */
    uint64_t dropped;      /* by filters */
    uint64_t left_out;     /* for the budget */
    uint64_t no_room;      /* of more different shapes than are remembered */
    uint64_t shapes, shapes_shown;
    const struct fl_digest_drop *dropped_by;
    size_t ndropped_by;
    size_t budget, tokens, rows;
    size_t cut, missing;   /* lines of evidence shortened for the budget, and left out even so */
    const char *tokenizer; /* "sentencepiece", or "estimated" when its model was not found */
};

typedef struct fl_digest_page fl_digest_page;
/*
 * The digest of a diagnosis made with fl_diagnose_opts.digest, in at most `budget` tokens (0:
 * FL_DIGEST_BUDGET; under 500 is FL_ERROR_USAGE). It does not change the diagnosis, which must
 * outlive it. The same bytes of log give the same bytes. Free with fl_digest_free.
 */
int fl_digest_build(const fl_engine *e, const fl_diagnosis *d, size_t budget, fl_digest_page **out,
                    fl_err *err);
void fl_digest_free(fl_digest_page *d);
/* The page: lines "FILE:LINE<TAB>text" as they stand in the log, between lines that begin with '#'.
 * Printable; ends with a newline. */
const char *fl_digest_text(const fl_digest_page *d);
const struct fl_digest_account *fl_digest_account(const fl_digest_page *d);
const struct fl_digest_row *fl_digest_rows(const fl_digest_page *d); /* account->rows of them */
/* One JSON object of schema faultline.digest/1. Owned by the caller: fl_text_free. */
int fl_digest_json(const fl_digest_page *d, bool indented, char **out, fl_err *err);

/* ---- memory: past incidents ---- */

typedef struct fl_memory fl_memory; /* belongs to one thread */

struct fl_memory_opts {
    const char *home; /* folder of the data; NULL: $FAULTLINE_HOME, else $XDG_DATA_HOME/faultline,
                         else ~/.local/share/faultline */
    bool read_only, no_import;
    bool no_embed; /* leave what has no vector yet without one: found by its words alone */
    /* Its `embedding` endpoint makes vectors beside the local model's: asked by a reindex and by a
     * search, never by opening. NULL or without one, or `offline`: the local model alone. */
    const struct fl_config *config;
    bool offline;
    double seconds;             /* that a search waits for the endpoint at most; 0: 15 */
    const char *record;         /* folder to keep its requests and replies in; NULL: none */
    const char *replay;         /* folder to take its replies from, without a network */
    const volatile int *cancel; /* sig_atomic_t; may be NULL */
};
/* Opens the memory; the first time it is made and the shipped corpus imported (under a second).
 * A folder that cannot be written is opened for reading; what cannot be brought up to date (a full
 * disk, another writer that takes long) is told by fl_memory_note() and costs no answer. `opts` may
 * be NULL. Free with fl_memory_free, before the engine. */
int fl_memory_open(const fl_engine *e, const struct fl_memory_opts *opts, fl_memory **out,
                   fl_err *err);
void fl_memory_free(fl_memory *m);
const char *fl_memory_note(const fl_memory *m); /* NULL, or what a person should know */
const char *fl_memory_dir(const fl_memory *m);

enum fl_search_by {
    FL_BY_ALL,     /* words, vectors, and the endpoint's vectors where one is configured */
    FL_BY_BOTH,    /* words and vectors */
    FL_BY_WORDS,   /* the others are there to compare */
    FL_BY_VECTORS, /* of the local model */
    FL_BY_WHOLE,   /* all as one vector */
    FL_BY_ENDPOINT /* its vectors alone */
};

struct fl_search_opts {
    size_t k;     /* at most so many; 0: 5 */
    double floor; /* leave out what scores less; 0: the calibrated floor; negative: none */
    enum fl_search_by by;
};
typedef struct fl_neighbours fl_neighbours;
/* The nearest incidents of a diagnosed job (made with fl_diagnose_opts.digest), or of a text.
 * Entries of follow-on errors and harmless lines are never returned. `opts` may be NULL. */
int fl_search_job(fl_memory *m, const fl_diagnosis *d, const struct fl_search_opts *opts,
                  fl_neighbours **out, fl_err *err);
int fl_search_text(fl_memory *m, const char *text, const struct fl_search_opts *opts,
                   fl_neighbours **out, fl_err *err);
void fl_neighbours_free(fl_neighbours *n);
/* One JSON object of schema faultline.neighbours/1. Owned by the caller: fl_text_free. */
int fl_neighbours_json(const fl_neighbours *n, bool indented, char **out, fl_err *err);
size_t fl_neighbours_count(const fl_neighbours *n);
const struct fl_neighbour *fl_neighbours_get(const fl_neighbours *n, size_t i);

struct fl_reindex_opts {
    bool full;  /* train anew, whatever has changed */
    bool prune; /* forget the vectors of other models */
    /* Told now and then, may be NULL; anything but 0 stops. `what`: reading, training, adding,
     * writing. */
    int (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total);
    int (*embedding)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
};
struct fl_reindexed {
    bool busy;      /* another reindex is at work: nothing was done */
    bool unchanged; /* the index in force has everything */
    bool carried_over;
    uint64_t generation, vectors, embedded, damaged;
    size_t removed, in_use; /* old index files */
    /* Of the embedding endpoint; that it failed is told by fl_memory_note and takes nothing back.
     */
    uint64_t remote_embedded, remote_vectors;
    bool remote_failed;
};
/* Makes a new generation of the index, safe beside any number of readers and writers. */
int fl_memory_reindex(fl_memory *m, const struct fl_reindex_opts *opts, struct fl_reindexed *out,
                      fl_err *err);

/* Asks the memory about a job that no rule resolves (others are left as they are): its neighbours
 * stand in the report then, and decide where they are alike enough and agree: the first with a
 * score of at least 0.9, and two of the first three of one cause (`decided_by` neighbours). The
 * diagnosis must have been made with fl_diagnose_opts.digest. */
int fl_diagnosis_consult(fl_diagnosis *d, fl_memory *m, fl_err *err);

struct fl_ask_opts {
    const struct fl_config *config; /* its `llm` */
    bool force;         /* ask whatever the rules said; a confident answer of theirs stands */
    double seconds;     /* the whole answer; 0: 240 */
    const char *record; /* folder to keep requests and replies in; NULL: none */
    const char *replay; /* folder to take the replies from, without a network */
    fl_memory *memory;  /* its neighbours are sent along; may be NULL */
    const volatile int *cancel; /* sig_atomic_t; may be NULL */
};
/* Asks the configured endpoints about a job that the rules do not resolve, or resolve under
 * `ask_below`, and checks the answer against the log. Never fails for an endpoint: what went wrong
 * stands in the report's `llm.error` and the deterministic answer stands. The diagnosis must have
 * been made with fl_diagnose_opts.digest. */
int fl_diagnosis_ask(const fl_engine *e, fl_diagnosis *d, const struct fl_ask_opts *opts,
                     fl_err *err);
/* Whether fl_diagnosis_ask() would ask. */
bool fl_diagnosis_wants_model(const fl_diagnosis *d, const struct fl_config *c, bool force);
/* What would be sent, redacted. `m` and `c` may be NULL. Owned by the caller: fl_text_free. */
int fl_diagnosis_prompt(const fl_engine *e, fl_diagnosis *d, const struct fl_config *c,
                        fl_memory *m, char **out, size_t *tokens, fl_err *err);

/* What the memory holds. Texts are borrowed for the call and "" when there is none. */
struct fl_past {
    const char *id, *cause, *kind; /* incident, follow_on, harmless */
    const char *origin;            /* user, corpus, confirmed, corrected */
    const char *title, *phase, *explanation, *fix, *source, *created, *updated;
    const char *const *stack;
    size_t nstack;
    const char *const *evidence;
    size_t nevidence;
    uint64_t seen; /* how often */
};
/* 0: go on; negative: fail with this code; positive: enough. It must not use the memory. */
typedef int (*fl_past_fn)(void *ctx, const struct fl_past *p);
struct fl_past_filter { /* NULL: any */
    const char *cause;  /* an id, or "area.*" */
    const char *kind, *origin;
    const char *text; /* somewhere in it, letter case ignored */
    size_t limit;     /* 0: none */
};
/* In the order of ids, as of one moment. FL_ERROR_USAGE for a kind or origin that is none. */
int fl_memory_list(fl_memory *m, const struct fl_past_filter *f, fl_past_fn each, void *ctx,
                   fl_err *err);
int fl_memory_get(fl_memory *m, const char *id, fl_past_fn each, void *ctx,
                  fl_err *err); /* FL_ERROR_NOT_FOUND */

struct fl_past_said { /* what a person says of an incident; NULL: nothing */
    const char *cause;
    const char *title, *explanation, *fix, *source;
};
struct fl_past_added {
    char id[136];
    bool duplicate; /* lines and cause were there already: counted on this one */
    bool filled;    /* and it took over what was said and it did not have */
    uint64_t seen;
    size_t lines;
    const char *lines_from; /* "evidence" of the diagnosis for that cause, "pieces" that mattered
                               most, or the "last" lines of the log */
};
enum fl_past_origin { FL_PAST_USER, FL_PAST_CONFIRMED, FL_PAST_CORRECTED };
/* Stores a diagnosed job (made with fl_diagnose_opts.digest) as an incident; without said->cause
 * with the cause of the diagnosis, FL_ERROR_NOT_FOUND when it has none. It is found at once.
 * FL_ERROR_USAGE: no such cause; FL_ERROR_INPUT: no line to know it by. */
int fl_memory_add_job(fl_memory *m, const fl_diagnosis *d, enum fl_past_origin origin,
                      const struct fl_past_said *said, struct fl_past_added *out, fl_err *err);
/* A person's word on a stored one: right as it is (said->cause NULL), or of another cause. When the
 * memory has another one of that cause and shape the two become one, named in `out`. */
int fl_memory_judge(fl_memory *m, const char *id, const struct fl_past_said *said,
                    struct fl_past_added *out, fl_err *err);
int fl_memory_remove(fl_memory *m, const char *id, fl_err *err); /* FL_ERROR_NOT_FOUND */

enum fl_past_clash {                 /* an id that is there with another text */
                     FL_PAST_FAIL,   /* an error with file and line: nothing is imported */
                     FL_PAST_KEEP,   /* the stored one stays */
                     FL_PAST_REPLACE /* the read one wins */
};
struct fl_past_import {
    enum fl_past_clash clash;
    bool known_causes; /* a cause that is not of the taxonomy is an error with file and line */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* while embedding; may be NULL */
    void *progress_ctx;
};
struct fl_past_imported {
    uint64_t read, added, replaced, kept, same, duplicates;
    uint64_t unknown_causes; /* of those read */
};
/* Reads a YAML file, or each of a folder, all or nothing. `opts` may be NULL. */
int fl_memory_import(fl_memory *m, const char *path, const struct fl_past_import *opts,
                     struct fl_past_imported *out, fl_err *err);
typedef int (*fl_past_write_fn)(void *ctx, const char *bytes, size_t n); /* negative: fail */
/* YAML, in the order of ids; importing it into an empty memory and exporting gives the same. */
int fl_memory_export(fl_memory *m, const struct fl_past_filter *f, fl_past_write_fn write,
                     void *ctx, fl_err *err);
/* The same with hosts, users, addresses, paths and secrets in its texts replaced by <HOST_1> and
 * the like, as for a language model: one name is one placeholder all through. Ids stay. `c` for its
 * `llm.redact_patterns`, may be NULL. */
int fl_memory_export_redacted(fl_memory *m, const struct fl_past_filter *f,
                              const struct fl_config *c, fl_past_write_fn write, void *ctx,
                              fl_err *err);
/* Of a damaged memory what can still be read; `lost` counts what cannot. */
int fl_memory_salvage(fl_memory *m, fl_past_write_fn write, void *ctx, uint64_t *saved,
                      uint64_t *lost, fl_err *err);
/* Checks incident files against what a corpus is held to, causes against the taxonomy. `path` NULL:
 * the shipped corpus. Number of findings, each told as "file:line: what", or a negative code. */
int fl_incidents_check(const fl_engine *e, const char *path,
                       void (*tell)(void *ctx, const char *text), void *ctx, fl_err *err);

/* ---- doctor: what is there, what fits together, what to run ---- */

enum fl_health {
    FL_HEALTH_OK,
    FL_HEALTH_NOTE,  /* worth knowing; all works */
    FL_HEALTH_WORSE, /* works less well than it could */
    FL_HEALTH_BROKEN /* something that is needed does not work */
};
struct fl_checkup {
    const char *name; /* data, model, prompts, database, corpus, vectors, index, faiss,
                         embedding, endpoint */
    enum fl_health health;
    const char *text; /* one clause or more, no full stop */
    const char *run;  /* what to do about it; NULL: nothing */
};
/* Looks at the memory of `opts` (its home and endpoint; NULL: the defaults) and changes nothing.
 * `tell` gets each finding; its texts are borrowed. Returns the worst enum fl_health, or a negative
 * code. */
int fl_doctor(const struct fl_memory_opts *opts,
              void (*tell)(void *ctx, const struct fl_checkup *c), void *ctx, fl_err *err);
struct fl_doctor_ask {
    const struct fl_config *config;                  /* its `llm`; NULL: none */
    double seconds;                                  /* for each endpoint; 0: 30 */
    const volatile int *cancel;                      /* sig_atomic_t; may be NULL */
    void (*asking)(void *ctx, const char *endpoint); /* before each endpoint; may be NULL */
    void (*tell)(void *ctx, const struct fl_checkup *c);
    void *ctx;
};
/* Asks each endpoint for its models and sends it one tiny request with a schema. One checkup for
 * each thing that is wrong, and one for what is right of an endpoint that answers; texts hold what
 * the server said and are hostile, keys are taken out. Never worse than FL_HEALTH_WORSE: without a
 * model there are answers still. Returns the worst enum fl_health, or a negative code. */
int fl_doctor_endpoints(const struct fl_doctor_ask *o, fl_err *err);

/* Over labelled cases: the rules alone, and with a language model. */
struct fl_ask_case {
    const char *id, *expected;
    const char *rules, *rules_action;     /* the deterministic answer, before past incidents */
    const char *with_model, *with_action; /* the answer in the end */
    const char *said;                     /* by the model; NULL: not asked, or no answer */
    const char *error; /* why there is no answer; NULL: there is, or none needed */
    bool asked, grounded, decided;
    bool kept; /* the answer is of an earlier run */
    bool rules_ok, with_ok, said_ok, rules_action_ok, with_action_ok;
    int64_t tokens_in, tokens_out;
    double seconds, cost;
};
struct fl_ask_totals {
    size_t cases, asked, answered, kept, grounded, decided;
    size_t rules, with_model, rules_action, with_action; /* right, of all cases */
    size_t said, rules_answered; /* right, of the answered: the model by itself, the rules */
    size_t mended, spoilt;       /* wrong by the rules and right in the end; the other way round */
    int64_t tokens_in, tokens_out;
    double seconds, cost;
};
typedef struct fl_ask_eval fl_ask_eval;
/*
 * Asks about each case that `diagnose` would ask about, with ask->force about all. Answers are kept
 * in the file `resume` after each, and taken from there by the next run; one that holds results of
 * another prompt, model or rules is refused. An endpoint that fails is told in the case.
 */
int fl_ask_eval_run(const fl_engine *e, const char *dir, const struct fl_ask_opts *ask,
                    const char *resume, void (*progress)(void *ctx, size_t done, size_t total),
                    void *ctx, fl_ask_eval **out, fl_err *err);
void fl_ask_eval_free(fl_ask_eval *ev);
const struct fl_ask_case *fl_ask_eval_cases(const fl_ask_eval *ev, size_t *n);
void fl_ask_eval_totals(const fl_ask_eval *ev, struct fl_ask_totals *out);
/* One JSON object of schema faultline.ask_eval/1. Owned by the caller: fl_text_free. */
int fl_ask_eval_json(const fl_ask_eval *ev, char **out, fl_err *err);

/* ---- looking around in a diagnosed job, for a person ---- */

/*
 * Reads the job's log again. Files are remembered by size and time of change when this is opened;
 * what cannot be read again (standard input, a file that has changed since) is answered from what
 * the digest kept of it, and the result says so. Belongs to one thread; the diagnosis must outlive
 * it and have been made with fl_diagnose_opts.digest.
 */
typedef struct fl_log fl_log;
int fl_log_open(const fl_engine *e, const fl_diagnosis *d, fl_log **out, fl_err *err);
void fl_log_free(fl_log *l);

struct fl_log_line {
    struct fl_place at;
    const char *text;             /* hostile; cut at 64 KiB; NULs shown as blanks */
    uint32_t match_at, match_len; /* bytes of `text` that matched; match_len 0: none */
    bool asked;                   /* the line that was asked for, among its neighbours */
};
/* Anything but 0 ends the look. The line dies with the call. */
typedef int (*fl_log_fn)(void *ctx, const struct fl_log_line *l);
struct fl_log_look {
    size_t limit;               /* lines or hits at most; 0: 40 */
    const volatile int *cancel; /* sig_atomic_t; may be NULL */
    fl_log_fn fn;
    void *ctx;
};
struct fl_log_seen {
    size_t lines;   /* handed to `fn` */
    bool more;      /* there are more than the limit */
    bool stopped;   /* by `cancel` or by `fn` */
    char note[400]; /* "", or what could not be read again and why */
};
/* The line and `n` lines before and behind it. `file` as in the report, or an end of it that only
 * one file has, or NULL where there is one file only. FL_ERROR_USAGE: no such file;
 * FL_ERROR_NOT_FOUND: it has no such line. */
int fl_log_around(fl_log *l, const char *file, uint64_t line, unsigned n,
                  const struct fl_log_look *look, struct fl_log_seen *seen, fl_err *err);
/* Lines that a regular expression matches (PCRE2, bytes, each line by itself), in reading order.
 * FL_ERROR_USAGE: it is no expression. */
int fl_log_grep(fl_log *l, const char *regex, const struct fl_log_look *look,
                struct fl_log_seen *seen, fl_err *err);
/* The last lines of a rank. FL_ERROR_NOT_FOUND: it printed nothing, as far as the log tells. */
int fl_log_rank(fl_log *l, int32_t rank, const struct fl_log_look *look, struct fl_log_seen *seen,
                fl_err *err);
/* Lines that hold the rarer words of a question, the best first: what can be said without a
 * language model. */
int fl_log_words(fl_log *l, const char *question, const struct fl_log_look *look,
                 struct fl_log_seen *seen, fl_err *err);
/* Names of the job's files, borrowed; NULL behind the last. */
const char *fl_log_file(const fl_log *l, size_t i);

/* ---- a conversation with a language model about a diagnosed job ---- */

typedef struct fl_talk fl_talk;
struct fl_talk_opts {
    const struct fl_config *config; /* its `llm`, with at least one endpoint */
    fl_memory *memory;              /* its neighbours are told; may be NULL */
    double seconds;                 /* for an answer; 0: 240 */
    const char *record;             /* folder to keep requests and replies in; NULL: none */
    const char *replay;             /* folder to take the replies from, without a network */
    const volatile int *cancel;     /* sig_atomic_t; stops an answer; may be NULL */
};
/* Makes what every question is sent with: the digest, the neighbours and the verdict, redacted.
 * Nothing is sent yet. FL_ERROR_USAGE without an endpoint. The diagnosis must outlive it and have
 * been made with fl_diagnose_opts.digest. */
int fl_talk_open(const fl_engine *e, fl_diagnosis *d, const struct fl_talk_opts *o, fl_talk **out,
                 fl_err *err);
void fl_talk_free(fl_talk *t);
struct fl_talk_answer {
    char model[128], endpoint[300];
    int64_t tokens_in, tokens_out; /* -1: not told */
    double seconds, cost;          /* cost below 0: not known */
    bool stopped;                  /* by `cancel` or `on_text` */
    size_t turns, left_out;        /* of the conversation so far; left out for the context */
};
/* Asks one question, redacted like the rest. `on_text` gets the answer as it comes, names put back,
 * hostile like a log; anything but 0 stops the answer. A stopped answer is no failure.
 * FL_ERROR_BACKEND, FL_ERROR_LIMIT; what had come by then has been handed out. */
int fl_talk_ask(fl_talk *t, const char *question, int (*on_text)(void *ctx, const char *text),
                void *ctx, struct fl_talk_answer *out, fl_err *err);

/* Over labelled cases: how often the right cause is among the first distinct ones that a search
 * finds, by each way of enum fl_search_by. */
struct fl_search_totals {
    size_t cases, healthy, silent; /* silent: healthy ones that found nothing above the floor */
    struct {
        size_t first, three, five;
    } way[FL_BY_ENDPOINT + 1];
    /* Its vectors were searched; otherwise ALL is BOTH, and ENDPOINT finds nothing. */
    bool endpoint;
};
struct fl_search_case {
    const char *id, *expected, *got, *incident; /* got NULL: nothing found */
    size_t place;                               /* of the right cause, from 1; 0: not found */
    double score, similarity, words;            /* of the first neighbour */
};
typedef struct fl_search_eval fl_search_eval;
int fl_search_eval_run(fl_memory *m, const char *dir,
                       void (*progress)(void *ctx, size_t done, size_t total), void *ctx,
                       fl_search_eval **out, fl_err *err);
void fl_search_eval_free(fl_search_eval *ev);
const struct fl_search_totals *fl_search_eval_totals(const fl_search_eval *ev);
const struct fl_search_case *fl_search_eval_cases(const fl_search_eval *ev, size_t *n);

/* ---- rules, as people see them ---- */

struct fl_cause_info {
    const char *id, *title, *class_name;
};
size_t fl_engine_causes(const fl_engine *e);
void fl_engine_cause(const fl_engine *e, size_t i, struct fl_cause_info *out); /* borrowed texts */

struct fl_rule_info {
    const char *id, *cause, *role, *maturity, *class_name, *file, *summary, *source, *title;
    unsigned line;
    int strength;
    const char *const *patterns;
    size_t npatterns;
    const char *const *hits;
    size_t nhits;
    const char *const *misses;
    size_t nmisses;
    bool icase;
};

size_t fl_engine_rules(const fl_engine *e);
/* Borrowed from the engine; i < fl_engine_rules(). */
const struct fl_rule_info *fl_engine_rule(const fl_engine *e, size_t i);
const struct fl_rule_info *fl_engine_rule_by_id(const fl_engine *e, const char *id);
/* A filter rule: which lines are routine (drop), which say what the job is (head), which must stay
 * (keep), and which words take a line from the drop filters (guard). */
struct fl_filter_info {
    const char *id, *action, *maturity, *why, *source, *file;
    unsigned line;
    bool metric; /* of drop: the lines are the job's numbers */
    bool icase;
    const char *const *patterns;
    size_t npatterns;
    const char *const *takes; /* lines it must take */
    size_t ntakes;
    const char *const *misses;
    size_t nmisses;
};

size_t fl_engine_filters(const fl_engine *e);
/* Borrowed from the engine; i < fl_engine_filters(). In file order. */
const struct fl_filter_info *fl_engine_filter(const fl_engine *e, size_t i);
const struct fl_filter_info *fl_engine_filter_by_id(const fl_engine *e, const char *id);
/* True when ripgrep's default engine takes the pattern. */
bool fl_pattern_portable(const char *regex);

struct fl_rules_result {
    size_t rules, hits, misses, quiet_logs, failures;
    size_t filters, filter_lines; /* lines that filters must take, and near-misses */
};
/*
 * Tests all rules and filters, or the one with `id`: each hit is taken by its own rule through the
 * whole pipeline, no near-miss is, the lint finds nothing, stable rules are silent on the healthy
 * logs in `quiet_dir` (NULL: not tried); each filter takes its lines and no near-miss, and no drop
 * filter takes a line of a failure rule's hit. `tell` gets each failure as "file:line: ...".
 */
int fl_rules_test(const fl_engine *e, const char *id, const char *quiet_dir,
                  void (*tell)(void *ctx, const char *text), void *ctx, struct fl_rules_result *out,
                  fl_err *err);

/* ---- evaluation over labelled cases ---- */

struct fl_case_result {
    const char *id, *expected, *got, *class_expected, *class_got, *action_expected, *action_got;
    double confidence;
    bool cause_ok, class_ok, action_ok;
    int place_ok, evidence_ok; /* 1 right, 0 wrong, -1 the label names none */
    bool false_alarm;          /* healthy log, failure claimed */
    int64_t elapsed_ms;
    const char *error; /* NULL, or why the case could not be run */
};

typedef struct fl_eval fl_eval;
/* Runs each folder with a label.json below `dir`. Free with fl_eval_free. */
int fl_eval_run(const fl_engine *e, const char *dir,
                void (*progress)(void *ctx, size_t done, size_t total), void *ctx, fl_eval **out,
                fl_err *err);
void fl_eval_free(fl_eval *ev);
size_t fl_eval_cases(const fl_eval *ev);
const struct fl_case_result *fl_eval_case(const fl_eval *ev, size_t i);
/* One JSON object: cases, totals, calibration. Owned by the caller: fl_text_free. */
int fl_eval_json(const fl_eval *ev, char **out, fl_err *err);
struct fl_eval_totals {
    size_t cases, errors; /* all; those that could not be run, which count nowhere else */
    size_t cause, class_right, action, place, evidence; /* right */
    size_t place_of, evidence_of;                       /* cases whose label names any */
    size_t healthy, false_alarms;
};
void fl_eval_totals(const fl_eval *ev, struct fl_eval_totals *out);
struct fl_calibration_row {
    double from, to; /* claimed confidence */
    double claimed;  /* its mean */
    size_t cases, right;
};
size_t fl_eval_calibration(const fl_eval *ev, const struct fl_calibration_row **out);

#ifdef __cplusplus
}
#endif
#endif
