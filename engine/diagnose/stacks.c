/*
 * Stack dumps of a job that hangs: who is not where the others are.
 *
 * When a job stands still people dump the Python stacks of its processes (py-spy dump). Nearly all
 * stand in a collective; the one that does not is why the others wait. So each process's main
 * thread is noted with its top frame, and when a few of many are outside of collectives they are
 * named: by their file's host, and by their place among the processes of that file, which is the
 * local rank where one file holds a node.
 *
 * When all wait the fault is below Python or between the collectives, and the job hangs all the
 * same; no place is named. Nothing is said when many are busy (nothing hangs).
 * Form: py-spy's text output, `Thread 4711 (idle): "MainThread"` and frames "    f (file.py:12)".
 */
#include "diagnose/stacks.h"

#include "base/alloc.h"

#define MAX_DUMPS 8192

static bool collective(fl_str frame)
{
    static const char *const words[] = {
        "broadcast",        "all_reduce",     "allreduce",         "barrier",
        "all_gather",       "allgather",      "reduce_scatter",    "all_to_all",
        "distributed_c10d", "_bcast",         "wait (torch/",      "synchronize",
        "gather_object",    "scatter_object", "p2p_communication", "batch_isend_irecv"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (fl_str_has(frame, fl_str_c(words[i])))
            return true;
    return false;
}

/* A frame of a package, not of Python's own library: "f (torch/utils/data/dataloader.py:1)". */
static bool packaged(fl_str frame)
{
    return fl_str_has(frame, FL_S("/")) && !fl_str_has(frame, FL_S("multiprocessing/"));
}

static struct fl_stack *add_stack(struct fl_job *j)
{
    struct fl_stacks *s = &j->stacks;

    if (s->n >= MAX_DUMPS)
        return NULL;
    if (fl_grow((void **)&s->v, &s->cap, s->n + 1, sizeof(*s->v))) {
        j->failed = FL_ENOMEM;
        return NULL;
    }
    return &s->v[s->n++];
}

void fl_stacks_line(struct fl_job *j, fl_str message, fl_str line, const struct fl_mark *m)
{
    struct fl_stacks *s = &j->stacks;
    fl_str t = fl_str_trim(message);
    struct fl_stack *x;

    if (fl_str_starts(t, FL_S("Process "))) {
        s->ordinal = s->file == m->file && s->any ? s->ordinal + 1 : 0;
        s->file = m->file;
        s->any = true;
        s->pending = false;
        return;
    }
    if (fl_str_starts(t, FL_S("Thread "))) {
        s->pending = false;
        if (!fl_str_has(t, FL_S("MainThread")) || !(x = add_stack(j)))
            return;
        *x = (struct fl_stack){.at = *m,
                               .ordinal = s->file == m->file ? s->ordinal : -1,
                               .text = fl_arena_z(&j->arena, fl_str_sub(line, 0, 400))};
        s->pending = x->text != NULL;
        return;
    }
    if (!s->pending || s->n == 0)
        return;
    x = &s->v[s->n - 1];
    if (!x->frame || (!packaged(fl_str_c(x->frame)) && packaged(t))) {
        x->frame = fl_arena_z(&j->arena, fl_str_sub(line, 0, 400));
        x->frame_at = *m;
    }
    /* the wait itself may stand a few frames below the top */
    x->collective |= collective(t);
    if (++x->frames >= 8)
        s->pending = false;
}

static const struct fl_point *proof(struct fl_job *j, const struct fl_mark *m, const char *text,
                                    int32_t local_rank)
{
    struct fl_point *p = fl_arena_alloc(&j->arena, sizeof(*p));

    if (p) {
        p->at = *m;
        if (p->at.local_rank < 0)
            p->at.local_rank = local_rank;
        p->text = text;
    }
    return p;
}

bool fl_stacks_finding(struct fl_job *j, struct fl_finding *out)
{
    const struct fl_stacks *s = &j->stacks;
    const struct fl_stack *odd = NULL;
    size_t n = 0, others = 0;
    struct fl_finding f = {.cause = "fw.hang",
                           .strength = 74,
                           .first_bad_step = -1,
                           .last_good_step = -1,
                           .located = true};

    for (size_t i = 0; i < s->n; i++) {
        if (!s->v[i].frame)
            continue;
        n++;
        if (s->v[i].collective)
            continue;
        others++;
        if (!odd)
            odd = &s->v[i];
    }
    if (!odd && n >= 4) {
        f.located = false;
        f.strength = 66;
        f.proof[0] = proof(j, &s->v[0].at, s->v[0].text, -1);
        f.proof[1] = proof(j, &s->v[0].frame_at, s->v[0].frame, -1);
        f.why = fl_arena_f(&j->arena, "all %zu dumped processes wait in a collective", n);
        goto out;
    }
    if (!odd || n < 3 || others * 3 > n)
        return false;
    f.proof[0] = proof(j, &odd->at, odd->text, odd->ordinal);
    f.proof[1] = proof(j, &odd->frame_at, odd->frame, odd->ordinal);
    f.why = fl_arena_f(&j->arena,
                       "%zu of %zu dumped processes wait in a collective; this one does not: %s",
                       n - others, n, odd->frame);
out:
    if (!f.proof[0] || !f.proof[1] || !f.why)
        return false;
    *out = f;
    return true;
}
