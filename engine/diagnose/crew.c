/*
 * Threads over blocks and files, joined in order.
 *
 * Order is evidence: which line came first decides what is the cause. So only what does not depend
 * on order is spread over threads, and that is most of the work: reading, inflating and searching.
 * The rest, folding lines into events, is done for one block at a time, in the order of the input,
 * by whichever worker has nothing better to do. The answer cannot depend on the number of threads.
 *
 * Each worker takes, in this order: the next block in line, when it is ready to be folded and
 * nobody folds; else it reads a block of the first input that nobody reads, and searches it. A
 * large plain file is so read by one worker at a time and searched by all, and many compressed
 * files are inflated by all. Blocks wait in a fixed number of places; inputs behind the first one
 * may only use those that it does not need, so that the first one always goes on. No more inputs
 * are open at once than there are workers.
 *
 * A log that is one block is done by the caller alone: threads are started at the second block.
 */
#include "diagnose/crew.h"

#include <pthread.h>
#include <unistd.h>

#include "base/alloc.h"

#define SMALL (2u << 20) /* bytes of small files that are not worth a thread */
#define MOST_PLACES (3 * FL_MAX_THREADS + 1)

struct place {
    struct fl_part part;
    struct fl_block_own own;
    struct fl_read_skip *skips;
    size_t skips_cap;
    uint64_t bytes;     /* read from disk for it */
    struct place *next; /* of its input, or of the free ones */
    bool ready, end;
    int code;
    fl_err err;
};

/* An input that is open. */
struct stream {
    fl_reader *branch;
    struct place *head, *tail;
    size_t skips_seen;
    uint64_t bytes_seen;
    bool busy, ended;
};

struct crew {
    const struct fl_crew_opts *o;
    int (*fold)(void *ctx, const struct fl_part *p, fl_err *err);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    unsigned workers; /* planned */
    pthread_t thread[FL_MAX_THREADS];
    unsigned started;
    struct place places[MOST_PLACES];
    struct place *free;
    size_t nfree, nplaces;
    struct stream stream[FL_MAX_THREADS]; /* input i is stream i % workers */
    size_t inputs, first;                 /* the first input that is not done */
    uint64_t done_bytes, total;
    bool folding, over;
    int code;
    fl_err *err;
};

struct worker {
    fl_match_scratch *scratch;
    fl_classes *classes;
};

static unsigned cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 8 ? 8 : (unsigned)n;
}

/* Under the lock. The first error in order is the one that is told: only the head of the line and
 * folding call this for the input's sake. */
static void fail(struct crew *c, int code, const fl_err *err)
{
    if (c->code)
        return;
    c->code = code;
    c->over = true;
    if (c->err && err)
        *c->err = *err;
    pthread_cond_broadcast(&c->turn);
}

static int worker_open(const struct crew *c, struct worker *w, fl_err *err)
{
    struct fl_classes_opts o = {
        .tag = c->o->tag, .ctx = c->o->tag_ctx, .seed = {c->o->seed[0], c->o->seed[1]}};
    int r = fl_match_scratch_new(c->o->matcher, &w->scratch, err);

    return r ? r : fl_classes_new(c->o->matcher, &o, &w->classes, err);
}

static void worker_close(struct worker *w)
{
    fl_classes_free(w->classes);
    fl_match_scratch_free(w->scratch);
}

/* ---- reading and searching: without the lock ---- */

static int note_skips(struct stream *s, struct place *p, fl_err *err)
{
    size_t n = fl_reader_skips(s->branch) - s->skips_seen;

    if (n == 0)
        return FL_OK;
    if (fl_grow((void **)&p->skips, &p->skips_cap, n, sizeof(*p->skips)))
        return fl_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        p->skips[i] = *fl_reader_skip(s->branch, s->skips_seen++);
    p->part.skips = p->skips;
    p->part.nskips = n;
    return FL_OK;
}

static int read_place(const struct crew *c, struct stream *s, size_t input, struct place *p)
{
    int r = FL_OK;

    if (!s->branch)
        r = fl_reader_branch(c->o->reader, input, &s->branch, &p->err);
    if (r == FL_OK)
        r = fl_reader_next_own(s->branch, &p->own, &p->part.block, &p->err);
    if (r < 0)
        return r;
    if (r == 0) {
        p->end = p->part.empty = true;
    } else {
        p->part.file = *fl_reader_file(s->branch, p->part.block.file);
        p->end = fl_reader_ended(s->branch);
    }
    p->bytes = fl_reader_bytes(s->branch) - s->bytes_seen;
    s->bytes_seen += p->bytes;
    return note_skips(s, p, &p->err);
}

static int search_place(struct worker *w, struct place *p)
{
    if (p->part.empty)
        return FL_OK;
    return fl_classes_block(w->classes, w->scratch, fl_str_n(p->part.block.data, p->part.block.len),
                            &p->part.lines, &p->err);
}

/* ---- the line of places: under the lock ---- */

static struct place *take_place(struct crew *c, struct stream *s)
{
    struct place *p = c->free;

    c->free = p->next;
    c->nfree--;
    p->next = NULL;
    p->ready = p->end = false;
    p->code = FL_OK;
    p->bytes = 0;
    p->part.empty = false;
    p->part.nskips = 0;
    p->part.block = (struct fl_block){0};
    if (s->tail)
        s->tail->next = p;
    else
        s->head = p;
    s->tail = p;
    return p;
}

static void *work(void *arg);

static void start_workers(struct crew *c)
{
    while (c->started + 1 < c->workers &&
           pthread_create(&c->thread[c->started], NULL, work, c) == 0)
        c->started++;
    c->workers = c->started + 1;
}

/* The first input that may be read now, or `inputs`. */
static size_t readable(const struct crew *c)
{
    for (size_t i = c->first; i < c->inputs && i < c->first + c->workers; i++) {
        const struct stream *s = &c->stream[i % FL_MAX_THREADS];
        if (!s->busy && !s->ended && c->nfree > (i == c->first ? 0 : c->workers + 1))
            return i;
    }
    return c->inputs;
}

static void read_and_search(struct crew *c, struct worker *w, size_t input)
{
    struct stream *s = &c->stream[input % FL_MAX_THREADS];
    struct place *p = take_place(c, s);
    bool more;
    int r;

    s->busy = true;
    pthread_mutex_unlock(&c->lock);
    r = read_place(c, s, input, p);
    pthread_mutex_lock(&c->lock);
    s->busy = false;
    s->ended = r != FL_OK || p->end;
    more = !s->ended || input + 1 < c->inputs;
    if (more && c->started + 1 < c->workers && (!s->ended || c->total > SMALL))
        start_workers(c);
    pthread_cond_broadcast(&c->turn);
    if (r == FL_OK) {
        pthread_mutex_unlock(&c->lock);
        r = search_place(w, p);
        pthread_mutex_lock(&c->lock);
    }
    p->code = r;
    p->ready = true;
    pthread_cond_broadcast(&c->turn);
}

static void next_input(struct crew *c)
{
    struct stream *s = &c->stream[c->first % FL_MAX_THREADS];

    fl_reader_free(s->branch);
    *s = (struct stream){0};
    c->first++;
    c->over = c->over || c->first == c->inputs;
}

static void fold_head(struct crew *c)
{
    struct stream *s = &c->stream[c->first % FL_MAX_THREADS];
    struct place *p = s->head;
    fl_err err = {0};
    int r = p->code;

    if (r) {
        fail(c, r, &p->err);
        return;
    }
    c->folding = true;
    pthread_mutex_unlock(&c->lock);
    r = c->fold(c->ctx, &p->part, &err);
    c->done_bytes += p->bytes;
    if (r == FL_OK && c->o->progress)
        c->o->progress(c->o->progress_ctx, c->done_bytes, c->total);
    pthread_mutex_lock(&c->lock);
    c->folding = false;
    if (r)
        fail(c, r, &err);
    s->head = p->next;
    if (!s->head)
        s->tail = NULL;
    p->next = c->free;
    c->free = p;
    c->nfree++;
    if (p->end && !r)
        next_input(c);
    pthread_cond_broadcast(&c->turn);
}

static void run(struct crew *c, struct worker *w)
{
    pthread_mutex_lock(&c->lock);
    while (!c->over) {
        const struct place *head = c->stream[c->first % FL_MAX_THREADS].head;
        size_t input;
        if (!c->folding && head && head->ready) {
            fold_head(c);
        } else if ((input = readable(c)) < c->inputs) {
            read_and_search(c, w, input);
        } else {
            pthread_cond_wait(&c->turn, &c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *arg)
{
    struct crew *c = arg;
    struct worker w = {0};
    fl_err err = {0};
    int r = worker_open(c, &w, &err);

    if (r == FL_OK)
        run(c, &w);
    /* A worker that cannot start is missed by nobody: the others do its part. */
    worker_close(&w);
    return NULL;
}

static void set_up(struct crew *c)
{
    c->workers = c->o->threads ? c->o->threads : cores();
    if (c->workers > FL_MAX_THREADS)
        c->workers = FL_MAX_THREADS;
    c->nplaces = c->nfree = 3 * c->workers + 1;
    for (size_t i = 0; i < c->nplaces; i++) {
        c->places[i].next = c->free;
        c->free = &c->places[i];
    }
    c->inputs = fl_reader_inputs(c->o->reader);
    c->total = fl_reader_total(c->o->reader);
    c->over = c->inputs == 0;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->turn, NULL);
}

static void tear_down(struct crew *c)
{
    for (unsigned i = 0; i < c->started; i++)
        pthread_join(c->thread[i], NULL);
    for (size_t i = 0; i < FL_MAX_THREADS; i++)
        fl_reader_free(c->stream[i].branch);
    for (size_t i = 0; i < c->nplaces; i++) {
        fl_block_own_dispose(&c->places[i].own);
        fl_lines_dispose(&c->places[i].part.lines);
        fl_free(c->places[i].skips);
    }
    pthread_cond_destroy(&c->turn);
    pthread_mutex_destroy(&c->lock);
}

int fl_crew_run(const struct fl_crew_opts *o,
                int (*fold)(void *ctx, const struct fl_part *p, fl_err *err), void *ctx,
                fl_err *err)
{
    struct crew *c = fl_calloc(1, sizeof(*c));
    struct worker w = {0};
    int r;

    if (!c)
        return fl_fail_nomem(err);
    c->o = o;
    c->fold = fold;
    c->ctx = ctx;
    c->err = err;
    set_up(c);
    r = worker_open(c, &w, err);
    if (r == FL_OK) {
        run(c, &w);
        r = c->code;
    }
    tear_down(c);
    worker_close(&w);
    fl_free(c);
    return r;
}
