#ifndef FL_READ_PREFIX_H
#define FL_READ_PREFIX_H
/*
 * What frameworks, launchers and kernels put in front of a message.
 *
 * Prefixes nest (launcher outside, framework inside); they are peeled from the left and every field
 * found is kept. Inner values win over outer ones for rank and time, except that a rank inside a
 * c10d message ("[Rank 3]", "[PG 2 Rank 3]") is kept apart: it may be a group rank.
 */
#include "base/str.h"

enum fl_severity {
    FL_SEV_NONE,
    FL_SEV_DEBUG,
    FL_SEV_INFO,
    FL_SEV_WARN,
    FL_SEV_ERROR,
    FL_SEV_FATAL
};

/* How much of a time is known. */
enum fl_time_kind {
    FL_TIME_NONE,
    FL_TIME_WALL,     /* full date; us since 1970 in the log's own local time */
    FL_TIME_YEARLESS, /* month and day, no year: us since January 1 of a year of 366 days, so that
                         February 29 keeps its place */
    FL_TIME_DAY,      /* time of day only: us since midnight */
    FL_TIME_BOOT      /* us since boot (kernel) */
};

struct fl_time {
    int64_t us;
    uint8_t kind;     /* enum fl_time_kind */
    bool zoned;       /* the log gave a zone: us is then UTC */
    int16_t zone_min; /* minutes east of UTC when zoned */
};

/* What the clock on the wall showed: us with the zone, where there is one, put back in. */
static inline int64_t fl_time_wall(const struct fl_time *t)
{
    return t->us + (t->zoned ? t->zone_min * INT64_C(60000000) : 0);
}

/* Which kind of program printed the line, as far as its frame tells. */
enum fl_origin {
    FL_FROM_UNKNOWN,
    FL_FROM_PYTHON, /* logging, loguru, absl, plain */
    FL_FROM_TORCH,  /* c10 logging */
    FL_FROM_NCCL,   /* host:pid:tid [dev] */
    FL_FROM_KERNEL,
    FL_FROM_SYSLOG,
    FL_FROM_LAUNCHER,  /* torchrun agent, mpirun, deepspeed launcher */
    FL_FROM_SCHEDULER, /* srun:, slurmstepd:, slurmctld */
    FL_FROM_CONTAINER
};

struct fl_prefix {
    int32_t rank, local_rank, node_rank, gpu_index, msg_rank; /* -1: not said */
    int32_t task; /* srun -l "12: ", Hydra "[12] ", "srun: error: n4: task 12: ": global rank or
                     node index, decided later. -1 */
    int64_t pid;  /* -1 */
    fl_str host;  /* as written; empty when not said. May be an IP address or a pod */
    struct fl_time time;
    uint8_t severity; /* enum fl_severity */
    uint8_t origin;   /* enum fl_origin, of the innermost frame */
    bool syslog;      /* a syslog frame, whatever stands inside: the host is a machine's */
    uint32_t message; /* offset of the message in the line */
};

/* Never fails: a line without a known prefix has everything unknown and message 0 (behind leading
 * blanks nothing is skipped). O(prefix length). */
void fl_prefix_parse(fl_str line, struct fl_prefix *out);

/* What a peeked number is. */
enum fl_peek { FL_PEEK_NONE, FL_PEEK_RANK, FL_PEEK_LOCAL, FL_PEEK_TASK };

/* A cheap look at a line's outermost rank, local rank or task ("[rank3]:", "12: ", "[default3]:",
 * "[1,3]<stderr>:"): what it is, and *rank set unless it is FL_PEEK_NONE (0). "[rank3]:" directly
 * behind a task or role wins over it: it says more. At most the first 48 bytes are read. For
 * counting ranks on lines that nothing else looks at. */
int fl_prefix_peek_rank(fl_str line, int32_t *rank);

/* Rank, local rank, node rank, host from a file's name or its folders: rank-0007.log, rank_3/
 * stderr.log, worker-12.out, node11.log, n12/dmesg.log, attempt_0/3/stderr.log, dmesg-n12.txt,
 * slurm-123-n4.out, train.log.r17, job.o123.7, pod names. -1 / empty where unknown. */
struct fl_file_place {
    int32_t rank, local_rank, node_rank, attempt;
    fl_str host; /* slice of `name` */
    bool kernel; /* the name says dmesg, kern, syslog, journal */
};
void fl_place_from_name(fl_str name, struct fl_file_place *out);

/* Reads a time at the very start of `s` in any of the known forms; bytes used, or 0. */
size_t fl_time_parse(fl_str s, struct fl_time *out);
/* ISO 8601 text of a time, "" for none; zone only if zoned. What is unknown is left out:
 * "--03-01T02:03:04" without a year, "02:03:04" without a date, "PT12.5S" since boot. */
void fl_time_print(const struct fl_time *t, char out[40]);
/* Days from 1970-01-01 of a proleptic Gregorian date. */
int64_t fl_days_from_civil(int y, unsigned m, unsigned d);

#endif
