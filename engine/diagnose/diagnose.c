/*
 * One diagnosis from end to end: read, settle places, arbitrate, locate, decide, report.
 *
 * The order is the design: everything that needs the log happens in the one pass of fold.c, and
 * what follows works on events, so that memory and time after the pass do not depend on the log's
 * size.
 */
#include "diagnose/arbitrate.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "diagnose/engine.h"
#include "diagnose/gather.h"
#include "diagnose/page.h"
#include "diagnose/timeline.h"

void fl_diagnosis_free(fl_diagnosis *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->job.nwriters; i++)
        fl_traceback_close(&d->job, &d->job.writers[i]);
    fl_events_free(&d->job);
    fl_map_dispose(&d->job.event_of);
    fl_map_dispose(&d->job.hit_of);
    fl_map_dispose(&d->job.writer_of);
    fl_waits_dispose(&d->job.waits);
    fl_free(d->job.stacks.v);
    fl_timeline_free(d->job.timeline);
    fl_places_dispose(&d->job.places);
    fl_free(d->job.files);
    fl_free(d->job.writers);
    fl_buf_dispose(&d->job.carry);
    fl_gather_free(d->job.gather);
    fl_neighbours_free(d->neighbours);
    fl_free(d->job.touched);
    fl_free(d->job.tracebacks);
    fl_match_scratch_free(d->job.scratch);
    fl_reader_free(d->job.reader);
    fl_arena_dispose(&d->job.arena);
    fl_free(d);
}

static int open_job(fl_diagnosis *d, const fl_engine *e, const struct fl_diagnose_opts *opts,
                    fl_err *err)
{
    struct fl_reader_opts ro = {.block = opts->block};
    struct fl_job *j = &d->job;
    int r;

    fl_arena_init(&j->arena);
    fl_places_init(&j->places);
    fl_buf_init(&j->carry, 4u << 20);
    fl_map_init(&j->writer_of);
    fl_map_init(&j->event_of);
    fl_map_init(&j->hit_of);
    fl_map_init(&j->waits.index);
    j->engine = e;
    j->rules = e->rules;
    j->matcher = e->matcher;
    j->opts = opts;
    j->base_date = FL_T_NONE;
    r = fl_timeline_new(j, err);
    if (!r && opts->digest)
        r = fl_gather_new(&j->gather, err);
    if (!r)
        r = fl_match_scratch_new(e->matcher, &j->scratch, err);
    if (!r)
        r = fl_reader_open(opts->paths, opts->npaths, &ro, &j->reader, err);
    return r;
}

int fl_diagnose(const fl_engine *e, const struct fl_diagnose_opts *opts, fl_diagnosis **out,
                fl_err *err)
{
    int64_t start = e->clock_ms(e->clock_ctx);
    fl_diagnosis *d;
    int r;

    if (opts->npaths == 0)
        return fl_fail(err, FL_EUSAGE,
                       "no log was named; name files, folders or - for standard input");
    d = fl_calloc(1, sizeof(*d));
    if (!d)
        return fl_fail_nomem(err);
    r = open_job(d, e, opts, err);
    if (!r)
        r = fl_job_read(&d->job, err);
    if (!r) {
        fl_places_settle(&d->job);
        fl_timeline_settle(&d->job);
        r = fl_arbitrate(&d->job, &d->verdict, err);
    }
    if (!r) {
        fl_locate(&d->job, &d->verdict, &d->where);
        fl_decide(&d->job, &d->verdict, &d->where, &d->decision);
        r = fl_report_build(&d->job, &d->verdict, &d->where, &d->decision, &d->report, err);
    }
    if (!r && d->job.gather &&
        (d->job.gather->failed || d->job.gather->shapes.failed || d->job.gather->arena.failed))
        r = fl_fail_nomem(err);
    if (!r && (d->job.failed || d->job.places.failed || d->job.arena.failed ||
               fl_match_out_of_memory(d->job.scratch)))
        r = fl_fail_nomem(err); /* a fact is missing, so that the answer cannot be trusted */
    if (r) {
        fl_diagnosis_free(d);
        return r;
    }
    d->report.elapsed_ms = e->clock_ms(e->clock_ctx) - start;
    *out = d;
    return FL_OK;
}

const struct fl_report *fl_diagnosis_report(const fl_diagnosis *d)
{
    return &d->report;
}

void fl_diagnosis_rules(const fl_diagnosis *d, bool lasting,
                        void (*seen)(void *ctx, const struct fl_rule *r), void *ctx)
{
    for (size_t i = 0; i < d->job.nevents; i++)
        if (!lasting || !d->job.events[i]->survived)
            seen(ctx, d->job.events[i]->rule);
}
