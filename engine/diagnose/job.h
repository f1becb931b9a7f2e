#ifndef FL_DIAGNOSE_JOB_H
#define FL_DIAGNOSE_JOB_H
/*
 * The state of one diagnosis, and what the parts of this room hand each other.
 *
 *   fold.c       blocks -> lines -> marks (who, where, when); drives the rest
 *   place.c      hosts, ranks, GPUs and how they map to each other
 *   traceback.c  Python tracebacks, one a writer, interleaved or not
 *   event.c      rule hits -> events
 *   metrics.c    one metric line -> numbers;  timeline.c: the job's course and what it shows
 *   watchdog.c   collective time-outs: when each wait began, who never entered
 *   arbitrate.c  events -> the cause, with reasons;  locate.c: its place;  decide.c: the action
 *   report.c     all of it -> struct fl_report
 *
 * Everything lives in the job's arena unless it says otherwise.
 */
#include "base/arena.h"
#include "base/map.h"
#include "faultline.h"
#include "diagnose/place_parse.h"
#include "match/match.h"
#include "read/prefix.h"
#include "read/reader.h"
#include "rules/rules.h"

/* Limits of one job's memory. A log that needs more is still diagnosed; what is over a limit is
 * counted, not kept. */
#define FL_MAX_HITS 60000           /* rule hits kept with their place, over all events */
#define FL_MAX_EVENTS 8192          /* rules that hit, counted anew in each attempt */
#define FL_MAX_EVENT_HITS 4096      /* of one event */
#define FL_MAX_TEXTS 24             /* hits of one event that keep their line's text */
#define FL_MAX_TEXT 4096            /* bytes kept of a line */
#define FL_MAX_ALL_TEXT (16u << 20) /* of all hits' lines; then one short text an event */
#define FL_SHORT_TEXT 512
#define FL_MAX_WRITERS 65536
#define FL_MAX_RANKS 131072
#define FL_MAX_HOSTS 32768
#define FL_MAX_LEARNT 65536 /* entries of each map between places */
#define FL_MAX_WAITS 65536
#define FL_MAX_TRACEBACKS 8192
#define FL_MAX_OPEN_TRACEBACKS 32768
#define FL_DULL 4096
#define FL_TABLES 64        /* failure tables that may be printed through each other */
#define FL_RANK_TEXT 240    /* bytes kept of each rank's last line */
#define FL_MAX_POINTS 16384 /* metric points kept */

#define FL_T_NONE INT64_MIN

/* Which clock a time was read from. Times of one clock compare; others do not. */
enum fl_clock { FL_CLOCK_NONE, FL_CLOCK_LOCAL, FL_CLOCK_BOOT };

/* Where and when a line stands, and who printed it. */
struct fl_mark {
    uint64_t seq;  /* order of reading */
    uint64_t line; /* in its file */
    int64_t t;     /* us on `clock`, FL_T_NONE when unknown; taken over from the writer's last timed
                      line when the line itself has none */
    int64_t pid;   /* -1 */
    uint32_t file, writer;
    int32_t rank, local_rank, node_rank, gpu_index, task, host; /* -1 unknown; host: index */
    uint32_t progress; /* metric points of the job before this line */
    uint16_t attempt;
    uint8_t clock, severity, origin;
    bool zoned; /* the log gave a zone: t is its wall time, zone_min minutes east of UTC */
    int16_t zone_min;
    bool own_time;
};
#define FL_MARK_NOWHERE                                                                            \
    {                                                                                              \
        .t = FL_T_NONE, .pid = -1, .rank = -1, .local_rank = -1, .node_rank = -1, .gpu_index = -1, \
        .task = -1, .host = -1                                                                     \
    }

enum fl_order { FL_ORDER_BEFORE = -1, FL_ORDER_UNKNOWN = 0, FL_ORDER_AFTER = 1 };

/* ---- places ---- */

struct fl_host {
    fl_str name;     /* as first seen */
    int32_t same_as; /* -1, or the host this is another name of */
    bool scheduler;  /* the scheduler uses this name */
    bool address;    /* an IP address */
    uint64_t lines;  /* whose frame names it */
    bool no_host;    /* a file's name looked like one and is none */
    bool machine;    /* a kernel or system log speaks from it */
    bool pod;        /* the name of a container or pod */
    int32_t on;      /* the machine that it is on, number + 1; 0 unknown */
    uint32_t ranks;
};

/* Where a rank was during one attempt: a restarted job may have other nodes. */
struct fl_stay {
    uint32_t file;
    int32_t host;
    uint16_t attempt;
};

#define FL_STAYS 3 /* remembered a rank, the latest */

struct fl_rank {
    int32_t rank, host, local_rank, gpu_index; /* -1 unknown */
    fl_str gpu;                                /* PCI address, empty unknown */
    int32_t exit_code;
    bool exited;
    int64_t pid; /* 0 unknown */
    uint64_t lines;
    struct fl_mark last;      /* its last line */
    struct fl_mark told;      /* the last line that stands in `text`: not `last`, where a task has
                                 become a rank at the end */
    char text[FL_RANK_TEXT];  /* its beginning, NUL-terminated */
    uint32_t last_at, last_n; /* where it stands in the block that is being read */
    bool touched;             /* by that block */
    struct fl_stay stays[FL_STAYS];
    uint8_t nstays;
};

struct fl_places {
    struct fl_host *hosts;
    size_t nhosts, hosts_cap;
    fl_map host_of; /* name -> host */
    struct fl_rank *ranks;
    size_t nranks, ranks_cap;
    uint32_t *rank_at; /* by its number: index in ranks + 1, 0 none; owned */
    size_t rank_at_n;
    fl_map local_of; /* host, local rank -> rank number */
    fl_map pid_of;   /* host or file, pid -> rank number */
    fl_map node_of;  /* file, node number or task -> host, while one host alone was seen for it */
    fl_map gpu_of;   /* host, bus:device -> GPU index */
    int32_t world_size, nodes, per_node, max_task, max_rank;
    int32_t block_host[1024]; /* host of each block of per_node ranks, -1 unknown */
    bool tasks_are_ranks;
    bool over;   /* a limit was reached */
    bool failed; /* out of memory: a place is missing, and the answer with it */
};

void fl_places_init(struct fl_places *p);
void fl_places_dispose(struct fl_places *p);
/* Index of a host by any of its names, added when new; -1 for nonsense or when full. */
int32_t fl_places_host(struct fl_places *p, fl_arena *a, fl_str name);
int32_t fl_places_real_host(const struct fl_places *p, int32_t host); /* follows same_as */
struct fl_rank *fl_places_rank(struct fl_places *p, int32_t rank, bool add);
/* Learns from one line that a topology sign matched. */
struct fl_job;
void fl_places_learn(struct fl_job *j, const struct fl_mark *m, fl_str message);
/* Lines of this node number (or task) come from `host`. */
void fl_places_node_host(struct fl_job *j, const struct fl_mark *m, int32_t host);
int32_t fl_places_host_of_node(const struct fl_places *p, const struct fl_mark *m);
/* A frame inside `file` names `host`. */
void fl_places_file_host(struct fl_job *j, uint32_t file, int32_t host);
/* At the end: decides what task numbers mean, joins hosts that are one, fills ranks' hosts. */
void fl_places_settle(struct fl_job *j);
/* The machine to act on: of a pod, the job's one machine, where there is one only. */
int32_t fl_places_machine(const struct fl_places *p, int32_t host);
/* The job's one host, or -1 when there are more or none. */
int32_t fl_places_only_host(const struct fl_places *p);
/* The one rank with this pid (on `host` when both are known), or -1. */
int32_t fl_places_rank_by_pid(const struct fl_places *p, int32_t host, int64_t pid);
/* The one rank that uses this card, or -1. */
int32_t fl_places_rank_by_gpu(const struct fl_places *p, int32_t host, fl_str gpu);
/* Rank of a mark, after fl_places_settle: its own, or by task, local rank and host, or pid. */
int32_t fl_places_rank_of(const struct fl_job *j, const struct fl_mark *m);
int32_t fl_places_host_of(const struct fl_job *j, const struct fl_mark *m);
/* "0000:3b:00.0", "00000000:3B:00.0", "3b:00" -> "0000:3b:00"; as given when it is no PCI address,
 * but no longer than fits. The text is in `out`. */
#define FL_GPU_TEXT 64
fl_str fl_gpu_normal(fl_str gpu, char out[FL_GPU_TEXT]);
int32_t fl_places_gpu_index(const struct fl_places *p, int32_t host, fl_str gpu);

/* ---- tracebacks ---- */

struct fl_traceback {
    struct fl_mark first, last;
    uint32_t chain;    /* number of the chain it belongs to, equal for chained blocks */
    uint16_t position; /* in its chain, 0 first */
    bool user;         /* innermost frame outside Python's own library is the user's code */
    bool wrapped;      /* inside a "Caught ... in DataLoader worker" */
    int32_t process;   /* of torch.multiprocessing.spawn: its number, the local rank; -1 */
    bool torchrun;     /* the launcher's own: ChildFailedError and the like */
    fl_str type, message, file, function; /* of the exception and the innermost frame */
    char *room;                           /* where these stand */
    uint64_t file_line;                   /* of the innermost frame */
};

/* What a writer's open traceback made of a line. */
enum fl_tb_part { FL_TB_NONE, FL_TB_INSIDE, FL_TB_END };

/* ---- writers: who prints, line by line ---- */

struct fl_writer {
    struct fl_mark last;
    int64_t t;
    uint8_t clock;
    struct fl_tb_open *tb; /* open traceback, NULL none; owned */
    uint32_t tb_done;      /* number + 1 of the traceback that ended on the last line, 0 none */
    uint32_t chain;        /* of its latest traceback, 0 none */
    uint16_t position;
    bool connector;  /* a line has said that the next traceback belongs to that chain */
    bool inner;      /* and that it is the origin of the one before */
    bool ignored;    /* and that Python ignored its exception */
    int32_t process; /* spawned process whose error comes next, -1 */
    uint64_t lines;
};

/* ---- events ---- */

struct fl_hit {
    struct fl_mark mark, latest;  /* and of the last line of the same place */
    int64_t begin;                /* when it began: mark.t, less a wait that the line tells of */
    const char *text;             /* the line, NULL when over the limit */
    uint32_t match_at, match_len; /* what matched, in `text` */
    int32_t rank, host;           /* the accused, -1 nobody in particular */
    int32_t gpu_index;
    fl_str gpu;
    uint32_t traceback; /* number + 1, 0 none; its last.seq is mark.seq unless it was let go */
    int32_t exit_code;  /* INT32_MIN unknown */
    bool self;          /* the accused is the printer, or a place that the line itself names */
    bool waited;        /* the line ends a wait: it began before it was printed */
};

struct fl_event {
    const struct fl_rule *rule;
    uint16_t cause, attempt;
    uint32_t number; /* its place among the job's events */
    uint64_t count;
    struct fl_hit *hits; /* one a distinct (rank, host, GPU), in order of reading; owned */
    size_t nhits, cap;
    struct fl_mark last;
    const char *summary;
    size_t texts;
    bool survived, stale; /* arbitration: it takes no part */
};

/* ---- collective time-outs: watchdog.h ---- */

struct fl_wait {
    int32_t rank;
    uint64_t group;               /* 0: the default group */
    int64_t seq, numel, enqueued; /* -1, or -2 where not told */
    int64_t begin;
    char op[32];
    bool timed_out;
    struct fl_mark mark;
    const char *text; /* its line, for the first few */
};

struct fl_waits {
    struct fl_wait *v; /* owned */
    size_t n, cap, texts, odd_texts;
    fl_map index;
};

/* ---- stack dumps: stacks.h ---- */

struct fl_stack { /* the main thread of one process */
    struct fl_mark at, frame_at;
    const char *text, *frame; /* its heading; its top frame, NULL when none was seen */
    int32_t ordinal;          /* place of the process in its file, -1 unknown */
    unsigned frames;
    bool collective;
};

struct fl_stacks {
    struct fl_stack *v; /* owned */
    size_t n, cap;
    uint32_t file;
    int32_t ordinal;
    bool any, pending;
};

/* ---- timeline ---- */

struct fl_metric {
    int64_t step, total;                   /* -1 unknown */
    double loss, grad_norm, step_ms, rate; /* NAN unknown; rate: per second, higher is faster */
    int64_t skipped, nans;                 /* -1 unknown */
    double loss_scale;
    bool eval, bar;          /* an evaluation's; a progress bar's */
    bool loss_nan, grad_nan; /* said to be NaN or infinite */
    bool loss_absent;        /* a training line of a kind that always carries a loss, without it */
};

/* Numbers of a metric line's message; false when it is none. O(length). */
#define FL_METRIC_NAMES 128 /* at most */
struct fl_metric_names {    /* the names that are looked for, chained by their first letters */
    uint8_t first[128], next[FL_METRIC_NAMES];
};
void fl_metric_names_init(struct fl_metric_names *c);
bool fl_metric_parse(fl_str message, const struct fl_metric_names *names, struct fl_metric *out);

struct fl_point {
    struct fl_metric m;
    struct fl_mark at;
    const char *text; /* the line */
    uint16_t segment; /* grows when the step falls back */
};

enum fl_phase {
    FL_PHASE_UNKNOWN,
    FL_PHASE_STARTUP,
    FL_PHASE_ITERATING,
    FL_PHASE_CHECKPOINT,
    FL_PHASE_EVALUATION,
    FL_PHASE_SHUTDOWN
};

struct fl_timeline; /* timeline.c */
int fl_timeline_new(struct fl_job *j, fl_err *err);
void fl_timeline_free(struct fl_timeline *t);
/* A metric line. Counts the job's progress. False: it is none. */
bool fl_timeline_metric(struct fl_job *j, fl_str message, fl_str line, const struct fl_mark *m);
/* A line has a time of its own: the bound for a progress line before it that had none. */
void fl_timeline_saw_time(struct fl_job *j, const struct fl_mark *m);
/* True when the timeline follows another rank than this, which may be left unread: that rank is
 * alive and has told of many steps. `kind` is enum fl_peek. */
bool fl_timeline_follows_other(const struct fl_job *j, int kind, int32_t rank);
/* The timeline has the file of one rank, and this is another's. */
bool fl_timeline_has_other_file(const struct fl_job *j, uint32_t file);
/* A line that a phase sign matched (checkpoint, evaluation, end ...): kind is enum fl_sign. */
void fl_timeline_sign(struct fl_job *j, int kind, fl_str message, fl_str line,
                      const struct fl_mark *m);

/* What the timeline says when asked at the end. */
/* The silence before an attempt was ended. */
struct fl_quiet {
    int64_t us;            /* how long, 0 unknown */
    struct fl_point point; /* the last line before it */
    uint16_t attempt;
};

struct fl_finding {
    const char *cause;                /* cause id; NULL: none */
    double strength;                  /* 0..100 as a rule's */
    const char *why;                  /* one sentence */
    const struct fl_point *proof[10]; /* lines that show it, most telling first; NULL-terminated */
    int64_t first_bad_step, last_good_step;
    bool located; /* proof[0] stands where the fault is */
};
void fl_timeline_findings(struct fl_job *j, struct fl_finding *out, size_t max, size_t *n);

/* ---- the job ---- */

struct fl_file_state {
    struct fl_file_place place;
    int32_t host;
    int64_t t; /* last time seen in the file, on `clock` */
    uint8_t clock;
    bool kernel;
    bool outer_is_local; /* "[rank5]:[rank77]:": the outer number is a local rank */
    int32_t frame_host;  /* the one host that frames inside the file name: -1 none, -2 several */
};

struct fl_job {
    fl_arena arena;
    const struct fl_engine *engine;
    const struct fl_ruleset *rules;
    const struct fl_matcher *matcher;
    fl_match_scratch *scratch;
    fl_reader *reader;
    const struct fl_diagnose_opts *opts;

    struct fl_file_state *files;
    size_t nfiles, files_cap;
    struct fl_writer *writers;
    size_t nwriters, writers_cap;
    fl_map writer_of;
    size_t open_tracebacks;

    struct fl_places places;
    uint32_t *touched; /* ranks of the block that is being read; owned */
    size_t ntouched, touched_cap;
    struct { /* torchrun's failure tables: the rows being read, of the latest writers */
        uint32_t writer;
        struct fl_table_row row;
    } tables[FL_TABLES];
    size_t listed; /* names of host lists so far */
    struct fl_traceback *tracebacks;
    size_t ntracebacks, tracebacks_cap;
    uint64_t ended_tracebacks; /* in all; of the later ones only the latest are kept */
    uint32_t chains;

    struct fl_event **events;
    size_t nevents, events_cap;
    fl_map event_of;
    fl_map hit_of;     /* event, rank, host, GPU of each kept hit */
    size_t nhits;      /* kept, over all events */
    size_t text_bytes; /* of their lines */

    struct fl_waits waits;
    struct fl_stacks stacks;
    struct fl_quiet quiet;
    struct fl_mark teardown[64]; /* first sign of it in each attempt; line 0: none */

    struct fl_timeline *timeline;
    uint32_t progress; /* metric points so far */
    uint16_t attempt;
    struct fl_mark attempt_first[64];
    uint32_t attempt_progress;      /* metric points before the current attempt */
    struct fl_gather *gather;       /* what a digest needs, NULL when none is wanted */
    fl_buf carry;                   /* the last lines of the block before, of the same file */
    uint64_t redrawn_line, redraws; /* of a progress bar */
    struct { /* classes of lines that looked like metric lines and were not */
        uint64_t class;
        uint32_t times;
    } dull[FL_DULL];
    uint64_t carry_line; /* number of the last of them */
    struct fl_mark first_line, last_line;
    struct fl_mark latest; /* the line with the latest time of its own */

    int32_t year;      /* of the first full date, 0 none */
    int64_t base_date; /* us of midnight of the latest full date, FL_T_NONE */
    uint64_t seq;
    uint64_t left_out; /* lines outside --since/--until */
    bool no_room;      /* for the file that is being read: there are too many */
    int failed;        /* sticky FL_ENOMEM from a place that cannot report */
};

/* year.c: the year that dates without one were read in until the log tells it (a leap year), and
 * what brings everything that was kept to the year that has become known. */
#define FL_NO_YEAR 1972
void fl_job_rebase(struct fl_job *j);

/* fold.c */
int fl_job_read(struct fl_job *j, fl_err *err);
enum fl_order fl_mark_order(const struct fl_mark *a, const struct fl_mark *b);
/* Both have times that can be compared: one clock, and a kernel's own only within its file. */
bool fl_mark_timed_alike(const struct fl_mark *a, const struct fl_mark *b);

/* spare.c: is line `i` of the block a metric line that may be left unread? */
bool fl_spare_metric(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                     size_t i, uint64_t number);
/* A line of this class was taken for a metric line, or turned out to be none. */
void fl_spare_note(struct fl_job *j, uint64_t class, bool taken);

/* traceback.c: feeds one line of a writer. Starts, goes on or ends its open traceback. */
enum fl_tb_part fl_traceback_line(struct fl_job *j, struct fl_writer *w, fl_str message,
                                  const struct fl_mark *m);
void fl_traceback_close(struct fl_job *j, struct fl_writer *w);

/* event.c: a confirmed hit that owns its line. */
void fl_event_add(struct fl_job *j, const struct fl_rule *r, fl_str line,
                  const struct fl_caps *caps, const struct fl_mark *m, uint32_t traceback);
void fl_events_free(struct fl_job *j);

#endif
