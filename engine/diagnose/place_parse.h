#ifndef FL_DIAGNOSE_PLACE_PARSE_H
#define FL_DIAGNOSE_PLACE_PARSE_H
/*
 * Facts about places in one line: pure parsing, no state but the failure table's current row.
 */
#include "base/str.h"

#define FL_FACTS_A_LINE 4096 /* most facts told of one line: a DeepSpeed mapping names many */

enum fl_fact_kind {
    FL_FACT_RANK,           /* rank, with what is known of it */
    FL_FACT_WORLD,          /* n ranks in all */
    FL_FACT_NODES,          /* n nodes */
    FL_FACT_GPU,            /* GPU index and PCI address on the line's host */
    FL_FACT_SCHEDULER_HOST, /* a host as the scheduler names it */
    FL_FACT_HERE,           /* the file's lines come from this host */
    FL_FACT_SAME_HOST,      /* host and address are one */
    FL_FACT_POD,            /* the pod `address` is on the machine `host` */
    FL_FACT_OWN_ADDRESS     /* the line's writer is on the host with this address */
};

struct fl_fact {
    enum fl_fact_kind kind;
    int64_t rank, local_rank, gpu_index, pid, n; /* -1: not said */
    int32_t exit_code;                           /* INT32_MIN: not said */
    fl_str host, gpu, address;
    bool sure;
};

/* torchrun's failure table spreads one row over several lines. */
struct fl_table_row {
    char host[256];
    int64_t rank, local_rank;
};

#define FL_LISTED_NAMES 4000000 /* most names that a job's host lists are expanded to */

/* Tells each fact in the message. Slices point into the message, `row`, or a buffer that is gone
 * after the call of `tell`. `listed` counts the names of host lists over all calls: twenty bytes of
 * log can ask for 4096 of them, so that from FL_LISTED_NAMES on lists are passed over. */
void fl_facts_parse(fl_str message, struct fl_table_row *row, size_t *listed,
                    void (*tell)(void *ctx, const struct fl_fact *fact), void *ctx);
/* Expands a Slurm host list such as "n[1-3,7],gpu12": calls `each` for every name, at most 4096. */
void fl_hostlist_each(fl_str list, void (*each)(void *ctx, fl_str host), void *ctx);

/* A name with the five random letters that Kubernetes puts behind those of its pods, of an alphabet
 * without vowels (apimachinery, util/rand: SafeEncodeString). */
bool fl_pod_name(fl_str name);

#endif
