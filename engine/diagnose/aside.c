/*
 * The tokenizer and the filters, beside the rest.
 *
 * A digest needs both, a diagnosis neither. SentencePiece builds its table of pieces at each start,
 * for 40 of the 152 million instructions of a digest of a small log; the filters' database takes 12
 * more when it is on disk, and seconds when it has to be compiled. Neither needs what the other
 * makes, nor the matcher of the rules, so on a machine with two cores they cost nearly no time when
 * each gets a thread. The threads end when they have opened what they were made for.
 *
 * Nothing of this is in the answer: what a thread could not do, or not begin, the first who asks
 * does himself, under a lock. A failure is not kept, because memory may be free again; but a
 * tokenizer that cannot be used stays so, since each page would try it anew.
 *
 * Refused: a shorter way to load the model. It would be a second implementation of SentencePiece's
 * file, and the count that a budget is kept by would be ours and no longer its own.
 */
#include "diagnose/aside.h"

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "faultline.h"

struct job {
    pthread_t thread;
    bool running; /* to be joined */
    bool done;
};

struct fl_aside {
    pthread_mutex_t lock;
    struct job tokens_job, filters_job;
    fl_tokenizer *tokens;
    fl_filters *filters;
    const struct fl_ruleset *rules;
    const struct fl_match_opts *match;
};

int fl_aside_new(struct fl_aside **out, fl_err *err)
{
    struct fl_aside *a = fl_calloc(1, sizeof(*a));

    if (!a || pthread_mutex_init(&a->lock, NULL)) {
        fl_free(a);
        return fl_fail_nomem(err);
    }
    *out = a;
    return FL_OK;
}

static void await(struct job *j)
{
    if (j->running)
        pthread_join(j->thread, NULL);
    j->running = false;
}

void fl_aside_free(struct fl_aside *a)
{
    if (!a)
        return;
    await(&a->tokens_job);
    await(&a->filters_job);
    fl_tokenizer_free(a->tokens);
    fl_filters_free(a->filters);
    pthread_mutex_destroy(&a->lock);
    fl_free(a);
}

static void open_tokens(struct fl_aside *a)
{
    char dir[4096], path[4200];

    a->tokens_job.done = true;
    if (fl_data_dir(dir, sizeof(dir), NULL))
        return;
    snprintf(path, sizeof(path), "%s/embed/model/tokens.model", dir);
    fl_tokenizer_open(path, &a->tokens, NULL);
}

static void *tokens_thread(void *ctx)
{
    open_tokens(ctx);
    return NULL;
}

static int open_filters(struct fl_aside *a, fl_err *err)
{
    int r = fl_filters_new(a->rules, a->match, &a->filters, err);

    a->filters_job.done = r == FL_OK;
    return r;
}

static void *filters_thread(void *ctx)
{
    open_filters(ctx, NULL);
    return NULL;
}

void fl_aside_begin_tokens(struct fl_aside *a)
{
    a->tokens_job.running = pthread_create(&a->tokens_job.thread, NULL, tokens_thread, a) == 0;
}

void fl_aside_begin_filters(struct fl_aside *a, const struct fl_ruleset *rules,
                            const struct fl_match_opts *match)
{
    a->rules = rules;
    a->match = match;
    a->filters_job.running = pthread_create(&a->filters_job.thread, NULL, filters_thread, a) == 0;
}

const fl_tokenizer *fl_aside_tokens(struct fl_aside *a)
{
    pthread_mutex_lock(&a->lock);
    await(&a->tokens_job);
    if (!a->tokens_job.done)
        open_tokens(a);
    pthread_mutex_unlock(&a->lock);
    return a->tokens;
}

int fl_aside_filters(struct fl_aside *a, const struct fl_ruleset *rules,
                     const struct fl_match_opts *match, const fl_filters **out, fl_err *err)
{
    int r = FL_OK;

    pthread_mutex_lock(&a->lock);
    await(&a->filters_job);
    if (!a->filters_job.done) {
        a->rules = rules;
        a->match = match;
        r = open_filters(a, err);
    }
    pthread_mutex_unlock(&a->lock);
    if (r == FL_OK)
        *out = a->filters;
    return r;
}
