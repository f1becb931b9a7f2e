#ifndef FL_DIAGNOSE_PAGE_H
#define FL_DIAGNOSE_PAGE_H
/*
 * The digest of a diagnosed job: what is offered to compress/digest.c, and the account.
 */
#include "compress/digest.h"
#include "diagnose/arbitrate.h"
#include "diagnose/gather.h"
#include "rules/filter.h"

#define FL_PAGE_HEALTHY 560 /* tokens that a healthy job's page has at most */

/* What becomes of a shape's lines. */
enum fl_fate { FL_FATE_LEFT, FL_FATE_SHOWN, FL_FATE_DROPPED };

struct fl_page {
    struct fl_job *job;
    const struct fl_report *report;
    const struct fl_verdict *verdict;
    const struct fl_location *where;
    struct fl_digest digest;
    uint16_t *filter;   /* of each row of shapes: index + 1, 0 none */
    uint8_t *fate;      /* enum fl_fate of each row */
    uint64_t fault_seq; /* where trouble began; UINT64_MAX: nowhere */
    bool healthy;
};

/* digest_api.c: fills filter and fate, by the rows of shapes; the caller frees both. */
int fl_page_ask_filters(struct fl_page *p, const fl_engine *e, fl_err *err);
/* page.c: all but the folded rest. */
void fl_page_offer(struct fl_page *p);
/* page_rest.c: the other lines, one for each shape; the job's head; what stands for how many. */
void fl_page_offer_rest(struct fl_page *p);
void fl_page_note_counts(struct fl_page *p);
/* A line that must be there has this shape. */
bool fl_page_represents(const struct fl_page *p, uint64_t hash);
bool fl_page_drops(const struct fl_page *p, size_t row);
void fl_page_offer_kept(struct fl_page *p, const struct fl_kept *k);

/* The diagnosis as this room sees it; what fl_digest_build() needs of it. */
struct fl_diagnosis {
    struct fl_job job;
    struct fl_verdict verdict;
    struct fl_location where;
    struct fl_decision decision;
    struct fl_report report;
    fl_neighbours *neighbours;
};

#endif
