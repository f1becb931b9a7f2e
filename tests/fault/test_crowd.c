/*
 * Ten readers and two writers in one home, each a process, and a reindex again and again: no reader
 * fails or misses what was there before it began, no writer is kept out, and nothing that was
 * stored is lost.
 */
#include "../unit/memory_fixture.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

#define READERS 10
#define WRITERS 2
#define SECONDS 6
#define BEFORE 1000
#define EACH 10 /* incidents a writer adds at once */
#define FIRST(writer) (100000u * ((writer) + 1))

struct told { /* by a child, through its pipe */
    uint32_t done;
    char why[600];
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_home(struct home *h, fl_err *err)
{
    struct fl_memory_opts o = {.home = h->data, .no_import = true};

    h->m = NULL;
    return fl_memory_open(h->e, &o, &h->m, err);
}

static void reader(struct home *h, uint32_t n, double until, struct told *t)
{
    while (now() < until) {
        uint32_t i = (n * 7919 + t->done * 31) % BEFORE;
        struct fl_search_opts so = {.k = 1, .floor = -1};
        fl_neighbours *found = NULL;
        fl_err err = {0};
        char line[80], id[32];
        snprintf(id, sizeof(id), "gen-%u", i);
        if (open_home(h, &err) || fl_search_text(h->m, made_line(i, line), &so, &found, &err)) {
            snprintf(t->why, sizeof(t->why), "%s", err.msg);
            return;
        }
        if (!fl_neighbours_count(found) || strcmp(fl_neighbours_get(found, 0)->incident, id))
            snprintf(t->why, sizeof(t->why), "%s is not found", id);
        fl_neighbours_free(found);
        fl_memory_free(h->m);
        if (t->why[0])
            return;
        t->done++;
    }
}

static void writer(struct home *h, uint32_t n, double until, struct told *t)
{
    char name[40], path[120];
    fl_err err = {0};

    if (open_home(h, &err))
        snprintf(t->why, sizeof(t->why), "%s", err.msg);
    snprintf(name, sizeof(name), "w%u.yaml", n);
    snprintf(path, sizeof(path), "%s/%s", h->dir, name);
    while (!t->why[0] && now() < until) {
        struct fl_past_imported added;
        uint32_t from = FIRST(n) + t->done * EACH;
        fl_buf b;
        fl_buf_init(&b, 1u << 20);
        made_incidents(&b, from, from + EACH);
        job_write(h->dir, name, fl_buf_str(&b));
        fl_buf_dispose(&b);
        if (fl_memory_import(h->m, path, NULL, &added, &err))
            snprintf(t->why, sizeof(t->why), "%s", err.msg);
        else if (added.added != EACH)
            snprintf(t->why, sizeof(t->why), "%u of %u added", (unsigned)added.added, EACH);
        else
            t->done++;
    }
    fl_memory_free(h->m);
}

static void indexer(struct home *h, double until, struct told *t)
{
    fl_err err = {0};

    while (!t->why[0] && now() < until) {
        struct fl_reindexed n;
        struct fl_reindex_opts o = {.full = t->done % 3 == 2};
        if (open_home(h, &err) || fl_memory_reindex(h->m, &o, &n, &err))
            snprintf(t->why, sizeof(t->why), "%s", err.msg);
        fl_memory_free(h->m);
        t->done++;
    }
}

static int child(struct home *h, uint32_t n, double until)
{
    struct told t = {.done = 0};
    int fd[2];

    if (pipe(fd))
        fail_msg("no pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail_msg("no process");
    if (pid) {
        close(fd[1]);
        return fd[0];
    }
    h->e = job_engine(NULL, false);
    if (n < READERS)
        reader(h, n, until, &t);
    else if (n < READERS + WRITERS)
        writer(h, n - READERS, until, &t);
    else
        indexer(h, until, &t);
    _exit(write(fd[1], &t, sizeof(t)) != sizeof(t));
}

static void all_there(struct home *h, const struct told *writers)
{
    fl_err err = {0};

    h->e = job_engine(NULL, false);
    must(open_home(h, &err));
    for (uint32_t w = 0; w < WRITERS; w++)
        for (uint32_t i = 0; i < writers[w].done * EACH; i += 7) {
            char line[80], id[32];
            snprintf(id, sizeof(id), "gen-%u", FIRST(w) + i);
            if (home_place(h, made_line(FIRST(w) + i, line), id) != 1)
                fail_msg("%s was stored and is not found", id);
        }
}

static void a_crowd_in_one_home(void **state)
{
    struct told told[READERS + WRITERS + 1];
    int fd[READERS + WRITERS + 1], status;
    uint32_t searches = 0, n = READERS + WRITERS;
    struct home h;
    double until;

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, BEFORE);
    fl_memory_free(h.m);
    fl_engine_free(h.e);
#ifdef FL_HAVE_FAISS
    n++;
#endif
    until = now() + SECONDS;
    for (uint32_t i = 0; i < n; i++)
        fd[i] = child(&h, i, until);
    for (uint32_t i = 0; i < n; i++) {
        told[i] = (struct told){.why = "died"};
        if (read(fd[i], &told[i], sizeof(told[i])) != sizeof(told[i]))
            snprintf(told[i].why, sizeof(told[i].why), "died");
        close(fd[i]);
        searches += i < READERS ? told[i].done : 0;
    }
    while (wait(&status) > 0 || errno == EINTR)
        ;
    print_message("%u searches, %u and %u incidents added, %u reindexes\n", searches,
                  told[READERS].done * EACH, told[READERS + 1].done * EACH,
                  n > READERS + WRITERS ? told[READERS + WRITERS].done : 0);
    for (uint32_t i = 0; i < n; i++)
        if (told[i].why[0])
            fail_msg("%s %u: %s",
                     i < READERS             ? "reader"
                     : i < READERS + WRITERS ? "writer"
                                             : "reindex",
                     i, told[i].why);
        else if (!told[i].done)
            fail_msg("process %u did nothing in %d seconds", i, SECONDS);
    all_there(&h, told + READERS);
    home_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_crowd_in_one_home)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
