/*
 * Measures the vector index: index_bench FOLDER [COUNT...]
 *
 * For each number of vectors (clustered tightly, clustered loosely, uniform) one row:
 *
 *   build    seconds on the clock and of all processors, without what making the vectors cost;
 *            size of the file; memory
 *   open     in a fresh process, what a program pays that looks up one log: opening, the first
 *   first    search of ten queries, both in processor time, which others' work on the machine does
 *            not change
 *   p50      what a session pays for the next ten, on the clock and in processor time; then the
 *            memory after the first search
 *   exact    the exact scan for ten queries, in processor time
 *   recall   how many of the ten nearest by the exact scan are found, over 200 queries
 *   of flat  the same for the ten that 8-bit codes find when every list is probed
 *   in 30    how many of the exact ten are among thirty asked for, which is what a caller gets who
 *            compares those with the stored vectors
 *   update   100 vectors out and 1,000 in, with making them
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/vectors.h"
#include "embed/index_file.h"

#define DIM 256
#define K 10
#define AT_ONCE 10
#define QUERIES 200
#define MANY 30

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of this process, all threads: what a search costs on a machine that others use as well. */
static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double rss_mb(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void stop(const char *what, const fl_err *err)
{
    printf("%s: %s\n", what, err->msg);
    fflush(stdout);
    _exit(1);
}

struct row {
    double open_ms, first_ms, p50_ms, cpu_ms, rss;
    size_t found, of, flat, in_many;
    char kind[40];
};

struct state {
    struct fl_vectors v;
    struct fl_index_head head;
    char path[512];
    float *queries;
    int64_t *truth;
};

/* Runs one step in a process of its own and brings back its row. */
static void apart(void (*step)(struct state *, struct row *), struct state *s, struct row *row)
{
    int ends[2], status;
    pid_t pid;

    if (pipe(ends))
        exit(1);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        step(s, row);
        if (write(ends[1], row, sizeof(*row)) != sizeof(*row))
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], row, sizeof(*row)) != sizeof(*row))
        exit(1);
    close(ends[0]);
    waitpid(pid, &status, 0);
}

static void build(struct state *s, struct row *row)
{
    struct fl_index_source source = fl_vectors_source(&s->v);
    double from = now(), from_cpu = cpu();
    fl_err err;

    setenv("OMP_WAIT_POLICY", "passive", 0); /* as a program that rebuilds by night should */
    if (fl_index_build(&s->head, &source, NULL, NULL, s->path, &err))
        stop("build", &err);
    row->p50_ms = (now() - from) * 1e3;
    row->cpu_ms = (cpu() - from_cpu) * 1e3;
    row->rss = rss_mb();
}

/* A night's work: 1,000 new vectors, 100 old ones gone. The time includes making the new. */
static void update(struct state *s, struct row *row)
{
    struct fl_vectors fresh = s->v;
    struct fl_index_source source = fl_vectors_source(&fresh);
    struct fl_index_head next = s->head;
    int64_t removed[100];
    double from = now(), from_cpu = cpu();
    fl_err err;

    for (size_t i = 0; i < 100; i++)
        removed[i] = fl_vectors_id(&s->v, i * (s->v.count / 100));
    fresh.first_id = s->head.last_id + 1;
    fresh.count = 1000;
    next.count += 900;
    next.last_id = fl_vectors_id(&fresh, 999);
    if (fl_index_update(s->path, &s->head, &next, removed, 100, &source, NULL, NULL, s->path, &err))
        stop("update", &err);
    row->p50_ms = (now() - from) * 1e3;
    row->cpu_ms = (cpu() - from_cpu) * 1e3;
    row->rss = rss_mb();
}

/* What the source alone costs, to be taken off the build's time. */
static void source_alone(struct state *s, struct row *row)
{
    float v[DIM];
    double from = cpu();

    for (uint64_t i = 0; i < s->v.count; i += 10)
        fl_vectors_make(&s->v, i, v);
    row->cpu_ms = (cpu() - from) * 1e4;
}

static void search(struct state *s, struct row *row)
{
    double ms[QUERIES / AT_ONCE], from, from_cpu = cpu();
    int64_t ids[AT_ONCE * K];
    float scores[AT_ONCE * K];
    fl_index *ix = NULL;
    fl_err err;

    if (fl_index_open(s->path, &s->head, 0, &ix, &err))
        stop("open", &err);
    row->open_ms = (cpu() - from_cpu) * 1e3;
    snprintf(row->kind, sizeof(row->kind), "%s", fl_index_kind(ix));
    for (size_t i = 0; i < QUERIES / AT_ONCE; i++) {
        from_cpu = cpu();
        if (fl_index_search(ix, s->queries + i * AT_ONCE * DIM, AT_ONCE, K, ids, scores, &err))
            stop("search", &err);
        if (i == 0) {
            row->first_ms = (cpu() - from_cpu) * 1e3;
            row->rss = rss_mb();
        }
        for (size_t q = 0; q < AT_ONCE && s->truth; q++)
            row->found += fl_vectors_common(s->truth + (i * AT_ONCE + q) * K, ids + q * K, K);
    }
    row->of = (size_t)QUERIES * K;
    from_cpu = cpu();
    for (size_t i = 0; i < QUERIES / AT_ONCE; i++) { /* again: what was read is there */
        from = now();
        if (fl_index_search(ix, s->queries + i * AT_ONCE * DIM, AT_ONCE, K, ids, scores, &err))
            stop("search", &err);
        ms[i] = (now() - from) * 1e3;
    }
    row->cpu_ms = (cpu() - from_cpu) * 1e3 / (QUERIES / AT_ONCE);
    qsort(ms, QUERIES / AT_ONCE, sizeof(*ms), by_value);
    row->p50_ms = ms[QUERIES / AT_ONCE / 2];
    fl_index_free(ix);
}

/* The share of the truth among the first MANY, and of what probing all lists finds. */
static void recall(struct state *s, struct row *row)
{
    int64_t *few = malloc((size_t)QUERIES * K * sizeof(*few)), many[MANY];
    int64_t *all = malloc((size_t)QUERIES * K * sizeof(*all));
    float *scores = malloc((size_t)QUERIES * MANY * sizeof(*scores));
    fl_index *ix = NULL;
    fl_err err;

    if (!few || !all || !scores)
        _exit(1);
    if (fl_index_open(s->path, &s->head, 0, &ix, &err) ||
        fl_index_search(ix, s->queries, QUERIES, K, few, scores, &err))
        stop("search", &err);
    for (size_t q = 0; q < QUERIES && s->truth; q++) {
        if (fl_index_search(ix, s->queries + q * DIM, 1, MANY, many, scores, &err))
            stop("search", &err);
        for (size_t i = 0; i < K; i++)
            for (size_t j = 0; j < MANY; j++)
                row->in_many += s->truth[q * K + i] == many[j];
    }
    fl_index_probe(ix, UINT32_MAX);
    if (fl_index_search(ix, s->queries, QUERIES, K, all, scores, &err))
        stop("search", &err);
    for (size_t q = 0; q < QUERIES; q++)
        row->flat += fl_vectors_common(all + q * K, few + q * K, K);
    row->of = (size_t)QUERIES * K;
    fl_index_free(ix);
    free(few);
    free(all);
    free(scores);
}

static void exact(struct state *s, double *ms)
{
    float *all = malloc(s->v.count * DIM * sizeof(*all)), *scores;
    double from;
    fl_err err;

    scores = malloc((size_t)QUERIES * K * sizeof(*scores));
    s->truth = malloc((size_t)QUERIES * K * sizeof(*s->truth));
    if (!all || !scores || !s->truth)
        exit(1);
    for (uint64_t i = 0; i < s->v.count; i++)
        fl_vectors_make(&s->v, i, all + i * DIM);
    if (fl_exact_search(all, NULL, s->v.count, DIM, s->queries, QUERIES, K, s->truth, scores, &err))
        stop("exact", &err);
    from = cpu();
    if (fl_exact_search(all, NULL, s->v.count, DIM, s->queries, AT_ONCE, K, s->truth, scores, &err))
        stop("exact", &err);
    *ms = (cpu() - from) * 1e3;
    free(scores);
    free(all);
}

static void measure(const char *folder, uint64_t count, uint32_t centres, float noise)
{
    struct state s = {.v = {.seed = 1, .count = count, .dim = DIM, .centres = centres}};
    struct row made = {0}, source = {0}, found = {0}, compared = {0}, updated = {0};
    double exact_ms = 0;
    double own;
    struct stat st;

    s.v.noise = noise;
    s.v.id_step = 1;
    s.head = fl_vectors_head(&s.v, 1);
    snprintf(s.path, sizeof(s.path), "%s/bench.idx", folder);
    s.queries = malloc((size_t)QUERIES * DIM * sizeof(float));
    if (!s.queries)
        exit(1);
    for (uint64_t i = 0; i < QUERIES; i++)
        fl_vectors_query(&s.v, i * (count / QUERIES), s.queries + i * DIM);
    apart(build, &s, &made);
    apart(source_alone, &s, &source);
    if (count * DIM * sizeof(float) < 2000u << 20)
        exact(&s, &exact_ms);
    apart(search, &s, &found);
    apart(recall, &s, &compared);
    if (stat(s.path, &st))
        exit(1);
    apart(update, &s, &updated);
    own = source.cpu_ms * (strcmp(found.kind, "flat") ? 2 : 1);
    printf("%9llu %-9s %-12s %7.1f %7.1f %7.1f %6.0f %7.1f %7.1f %7.1f %7.1f %6.0f %8.1f  %.4f "
           "%.4f %.4f %7.2f %6.2f\n",
           (unsigned long long)count, centres ? "clustered" : "uniform", found.kind,
           (made.p50_ms - own) / 1e3, (made.cpu_ms - own) / 1e3, (double)st.st_size / 1048576,
           made.rss, found.open_ms, found.first_ms, found.p50_ms, found.cpu_ms, found.rss, exact_ms,
           (double)found.found / (double)found.of, (double)compared.flat / (double)found.of,
           (double)compared.in_many / (double)found.of, updated.p50_ms / 1e3, updated.cpu_ms / 1e3);
    fflush(stdout);
    unlink(s.path);
    free(s.queries);
    free(s.truth);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"10000", "100000", "400000", "1000000"};
    int n = argc > 2 ? argc - 2 : 4;

    if (argc < 2) {
        fprintf(stderr, "index_bench FOLDER [COUNT...]\n");
        return 2;
    }
    printf("  vectors                        build   (cpu)    file    RSS    open   first     p50"
           "   (cpu)    RSS    exact  recall of flat in 30  update   (cpu)\n"
           "          kind      index            s       s      MB     MB      ms      ms      ms"
           "      ms     MB      ms\n");
    for (int i = 0; i < n; i++) {
        uint64_t count = strtoull(argc > 2 ? argv[i + 2] : usual[i], NULL, 10);
        measure(argv[1], count, 2000, 0.5f);
        measure(argv[1], count, 2000, 1.0f);
        measure(argv[1], count, 0, 1.0f);
    }
    return 0;
}
