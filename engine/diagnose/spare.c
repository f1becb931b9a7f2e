/*
 * Metric lines that may be left unread.
 *
 * In a job in which every rank prints its step those lines are most of the log and say the same. So
 * one rank is followed: the lines of others are passed over where their first bytes tell the rank,
 * and in the file of another rank all but the last ones and a sample. Of a bar that is redrawn over
 * and over in one line a sample is read, and of lines that look like metric lines and have turned
 * out to be none.
 *
 * A sample, and not nothing: lines tell the time too, and a rank that goes another way shows in it.
 * What is passed over is decided by the input alone, so that it is the same in every run.
 */
#include "diagnose/engine.h"
#include "diagnose/job.h"
#include "diagnose/signs.h"

#define IN_VAIN 8       /* times that a class was no metric line, before it is believed */
#define SAMPLE 16       /* one of so many spare lines is read */
#define TAIL_BYTES 8192 /* the end of a rank's file, which is read */
#define REDRAWS 512     /* of a bar that are read */

void fl_spare_note(struct fl_job *j, uint64_t class, bool taken)
{
    size_t at = class % FL_DULL;

    if (j->dull[at].class != class) {
        if (taken || !class)
            return;
        j->dull[at].class = class;
        j->dull[at].times = 0;
    }
    j->dull[at].times = taken ? 0 : j->dull[at].times + 1;
}

bool fl_spare_metric(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                     size_t i, uint64_t number)
{
    const struct fl_line *l = &lines->v[i];
    enum fl_peek kind = (enum fl_peek)(l->tag.b >> 32 & 0xff);
    bool other = fl_timeline_follows_other(j, (int)kind, (int32_t)(uint32_t)l->tag.b);

    for (uint32_t k = 0; k < l->ncand; k++)
        if (fl_engine_pattern_id(j->engine, lines->cand[l->cand + k]) !=
            FL_SIGN_ID + FL_SIGN_METRIC)
            return false;
    if (other)
        return true;
    if (fl_timeline_has_other_file(j, b->file) || (j->dull[l->class % FL_DULL].class == l->class &&
                                                   j->dull[l->class % FL_DULL].times > IN_VAIN))
        return number % SAMPLE != 0 && !(b->last && b->len - l->at < TAIL_BYTES);
    if (!b->nshifts || number != j->redrawn_line) {
        j->redrawn_line = number;
        j->redraws = 0;
        return false;
    }
    return ++j->redraws > REDRAWS && j->redraws % SAMPLE != 0 && i + 1 < lines->n &&
           fl_block_line(b, lines->v[i + 1].at, i + 1) == number;
}
