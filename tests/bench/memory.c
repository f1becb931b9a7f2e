/*
 * The memory at size: bench_memory N FOLDER [SHARE] makes N incidents of four vectors in FOLDER
 * (kept: a second run with the same folder measures without making), and prints, one a line:
 *
 *   import         reading N incidents as YAML into the store, in seconds on the clock
 *   full           a full reindex, embedding left out; `embed` before it is the embedding
 *   open, first    in a fresh process: opening the memory, and its first search
 *   vectors        of a search for ten pieces, the part of the index; p50 of 60 such searches
 *   all            the whole search, with words and the reading of what was found
 *   exact          the same without an index, ten of them
 *   recall         how many of the index's ten are as near as the ten nearest by exact comparison,
 *                  and of the 32 that a search takes; then for more lists probed than its own
 *   RSS            of the process that did the first search, and of the one that did all
 *   nightly        1,000 new incidents: embedding and reindex
 *
 * A made incident is a shipped one with one word in SHARE (4) changed for ones drawn by Zipf's law,
 * so that vectors lie as those of log lines do and words are as common as in logs. The pieces that
 * are looked up are made in the same way, from other numbers. Times are on the clock and in
 * processor time, since the machine may have other work. Nothing is asserted.
 */
#include "../unit/memory_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "diagnose/memory.h"
#include "embed/index_file.h"

#define SEARCHES 60
#define PIECES 10
#define TOP 10
#define NIGHT 1000

struct lines { /* of the shipped corpus, four an incident */
    char (*v)[4][400];
    char (*cause)[64];
    size_t n, cap;
};

static struct lines base;
static uint64_t seed;
static unsigned share = 4; /* one word in so many is changed */

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

static double cpu(void)
{
    return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

static double rss(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

static int take(void *ctx, const struct fl_past *p)
{
    struct lines *b = ctx;

    if (strcmp(p->kind, "incident") != 0 || p->nevidence < 2 || b->n == b->cap)
        return 0;
    for (size_t i = 0; i < 3; i++)
        snprintf(b->v[b->n][i], sizeof(b->v[0][0]), "%s",
                 p->evidence[i < p->nevidence ? i : p->nevidence - 1]);
    snprintf(b->v[b->n][3], sizeof(b->v[0][0]), "%s", p->explanation);
    snprintf(b->cause[b->n++], sizeof(b->cause[0]), "%s", p->cause);
    return 0;
}

/* Rank k with a probability of about 1/k, of 30,000. */
static uint32_t zipf(void)
{
    double u = 10.3 * (double)(draw() >> 11) / 9007199254740992.0;
    uint32_t k = 1;

    for (; u > 0.69 && k < 30000; u -= 0.693)
        k *= 2;
    return k + (uint32_t)(draw() % k);
}

/* The line with some of its words changed. */
static void changed(const char *line, fl_buf *out)
{
    fl_str rest = fl_str_c(line);

    while (rest.n) {
        fl_str w = fl_str_cut(&rest, ' ');
        char made[16];
        if (draw() % share == 0 && w.n > 2) {
            made_word(zipf(), made);
            w = fl_str_c(made);
        }
        for (size_t i = 0; i < w.n; i++)
            if (w.p[i] >= ' ' && w.p[i] < 127 && w.p[i] != '\'')
                fl_buf_addc(out, w.p[i]);
        fl_buf_addc(out, ' ');
    }
}

static void make(fl_buf *b, uint32_t from, uint32_t to)
{
    fl_buf_addz(b, "incidents:\n");
    for (uint32_t i = from; i < to; i++) {
        seed = 88172645463325252u + i * 0x9e3779b97f4a7c15u;
        size_t k = draw() % base.n;
        fl_buf_addf(b, "  - id: made-%u\n    cause: %s\n    title: 'case %u'\n    evidence:\n", i,
                    base.cause[k], i);
        for (int l = 0; l < 3; l++) {
            fl_buf_addz(b, "      - '");
            changed(base.v[k][l], b);
            fl_buf_addz(b, ".'\n");
        }
        fl_buf_addz(b, "    explanation: '");
        changed(base.v[k][3], b);
        fl_buf_addz(b, ".'\n");
    }
}

/* A text of PIECES lines, of a job that no incident was made of. */
static void ask(uint32_t n, fl_buf *out)
{
    fl_buf_clear(out);
    seed = 1234567u + (n + 1) * 0xd1342543de82ef95u;
    for (int i = 0; i < 64; i++)
        draw();
    for (int i = 0; i < PIECES; i++) {
        changed(base.v[draw() % base.n][draw() % 3], out);
        fl_buf_addc(out, '\n');
    }
}

static void apart(void (*step)(struct home *h, uint32_t n), struct home *h, uint32_t n)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("OMP_WAIT_POLICY", "passive", 0);
        h->e = job_engine(NULL, false);
        step(h, n);
        fflush(stdout);
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0)
        ;
    if (status) {
        printf("a step ended with status %d\n", status);
        exit(1);
    }
}

static void say(const char *what, const fl_err *err)
{
    printf("%s: %s\n", what, err->msg);
    fflush(stdout);
    _exit(1);
}

static void open_memory(struct home *h, bool embed)
{
    struct fl_memory_opts o = {.home = h->data, .no_import = true, .no_embed = !embed};
    fl_err err = {0};

    if (fl_memory_open(h->e, &o, &h->m, &err))
        say("open", &err);
}

static void import(struct home *h, uint32_t from, uint32_t to)
{
    struct fl_store_import how = {.clash = FL_CLASH_KEEP};
    struct fl_store_imported n;
    fl_err err = {0};
    double begin, spent = 0;
    fl_buf b;

    open_memory(h, false);
    fl_buf_init(&b, 1u << 30);
    for (uint32_t at = from; at < to; at += 100000) {
        fl_buf_clear(&b);
        make(&b, at, to - at > 100000 ? at + 100000 : to);
        begin = now();
        if (fl_store_import_text(h->m->store, fl_buf_str(&b), "made", &how, &n, &err))
            say("import", &err);
        spent += now() - begin;
    }
    fl_buf_dispose(&b);
    printf("%-10s %8.1f s for %u incidents\n", "import", spent, to - from);
    fl_memory_free(h->m);
}

static void fill(struct home *h, uint32_t n)
{
    import(h, 0, n);
}

static void reindex(struct home *h, const char *name, bool full)
{
    struct fl_reindex_opts o = {.full = full};
    struct fl_reindexed n;
    uint64_t embedded = 0;
    fl_err err = {0};
    double begin = now(), used = cpu();

    open_memory(h, false);
    if (fl_memory_embed_missing(h->m, &embedded, NULL, NULL, &err))
        say("embed", &err);
    printf("%-10s %8.2f s embed (%.2f s cpu) of %llu incidents\n", name, now() - begin,
           cpu() - used, (unsigned long long)embedded);
    begin = now();
    used = cpu();
    if (fl_memory_reindex(h->m, &o, &n, &err))
        say("reindex", &err);
    printf("%-10s %8.2f s index (%.2f s cpu), %llu vectors, %s, RSS %.0f MB\n", name, now() - begin,
           cpu() - used, (unsigned long long)n.vectors,
           n.unchanged      ? "unchanged"
           : n.carried_over ? "carried over"
                            : "built anew",
           rss());
    fl_memory_free(h->m);
}

static void full(struct home *h, uint32_t n)
{
    (void)n;
    reindex(h, "full", true);
}

static void nightly(struct home *h, uint32_t n)
{
    int64_t last = 0, gone;
    fl_err err = {0};

    open_memory(h, false);
    if (fl_store_last(h->m->store, &last, &gone, &err))
        say("last", &err);
    fl_memory_free(h->m);
    import(h, n + (uint32_t)last, n + (uint32_t)last + NIGHT);
    reindex(h, "nightly", false);
}

static void first(struct home *h, uint32_t n)
{
    fl_neighbours *found = NULL;
    double begin = now(), used = cpu(), opened;
    fl_err err = {0};
    fl_buf b;

    (void)n;
    fl_buf_init(&b, 1u << 20);
    ask(0, &b);
    open_memory(h, true);
    opened = now() - begin;
    if (fl_search_text(h->m, b.p, NULL, &found, &err))
        say("search", &err);
    printf("%-10s %8.1f ms open, %.1f ms first search (%.1f ms cpu in all), RSS %.0f MB, %s\n",
           "first", opened * 1e3, (now() - begin - opened) * 1e3, (cpu() - used) * 1e3, rss(),
           h->m->index ? fl_index_kind(h->m->index) : "no index");
    fl_neighbours_free(found);
    fl_buf_dispose(&b);
    fl_memory_free(h->m);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void p50(const char *name, double *clock, double *used, size_t n, const char *more)
{
    qsort(clock, n, sizeof(*clock), by_value);
    qsort(used, n, sizeof(*used), by_value);
    printf("%-10s %8.2f ms p50, %.2f p90 (cpu %.2f p50) %s\n", name, clock[n / 2] * 1e3,
           clock[n * 9 / 10] * 1e3, used[n / 2] * 1e3, more);
}

/* The vectors of a text's lines. */
static size_t vectors_of(struct home *h, fl_str text, float *q)
{
    struct fl_pieces p;
    fl_str texts[FL_PIECES];
    fl_err err = {0};
    size_t n;

    if (fl_pieces_of_text(text, &p, &err))
        say("pieces", &err);
    for (n = 0; n < p.n; n++)
        texts[n] = p.v[n].text;
    if (h->m->embedder.embed(h->m->embedder.ctx, texts, n, q, &err))
        say("embed", &err);
    fl_pieces_dispose(&p);
    return n;
}

static void searches(struct home *h, uint32_t n)
{
    static double all[SEARCHES], all_cpu[SEARCHES], part[SEARCHES], part_cpu[SEARCHES];
    static float q[FL_PIECES * FL_INDEX_MAX_DIM], scores[FL_PIECES * 32];
    static int64_t ids[FL_PIECES * 32];
    fl_err err = {0};
    fl_buf b;
    char more[60];

    (void)n;
    fl_buf_init(&b, 1u << 20);
    open_memory(h, true);
    if (fl_memory_load(h->m, &err))
        say("load", &err);
    for (uint32_t i = 0; i < SEARCHES; i++) {
        fl_neighbours *found = NULL;
        size_t k;
        ask(i, &b);
        all[i] = now();
        all_cpu[i] = cpu();
        if (fl_search_text(h->m, b.p, NULL, &found, &err))
            say("search", &err);
        all[i] = now() - all[i];
        all_cpu[i] = cpu() - all_cpu[i];
        fl_neighbours_free(found);
        part[i] = now();
        part_cpu[i] = cpu();
        k = vectors_of(h, fl_buf_str(&b), q);
        if (h->m->index && fl_index_search(h->m->index, q, k, 32, ids, scores, &err))
            say("index", &err);
        part[i] = now() - part[i];
        part_cpu[i] = cpu() - part_cpu[i];
    }
    p50("vectors", part, part_cpu, SEARCHES, "ten pieces, 32 each, embedding included");
    snprintf(more, sizeof(more), "RSS %.0f MB", rss());
    p50("all", all, all_cpu, SEARCHES, more);
    fl_buf_dispose(&b);
    fl_memory_free(h->m);
}

/* The true likeness of vector `id`, by its place in the numbers, which grow. */
static float likeness(const struct fl_vectors *all, int64_t id, const float *q, uint32_t dim)
{
    size_t low = 0, high = all->n;
    float sum = 0;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (all->id[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t i = 0; low < all->n && all->id[low] == id && i < dim; i++)
        sum += all->v[low * dim + i] * q[i];
    return sum;
}

/* Many lines are the same, so what counts is to be as near as the tenth, and not to be one of ten
 * that equal thirty others. */
static size_t as_near(const struct fl_vectors *all, const int64_t *got, size_t n, const float *q,
                      uint32_t dim, float tenth)
{
    size_t hits = 0;

    for (size_t i = 0; i < n; i++)
        hits += got[i] >= 0 && likeness(all, got[i], q, dim) >= tenth - 1e-5f;
    return hits < TOP ? hits : TOP;
}

static void recall(struct home *h, uint32_t probes)
{
    static float q[FL_PIECES * FL_INDEX_MAX_DIM], scores[FL_PIECES * 32], best[FL_PIECES * TOP];
    static int64_t got[FL_PIECES * 32], want[FL_PIECES * TOP];
    size_t hits[2] = {0, 0}, of = 0;
    double clock[20], used[20], lists[20];
    struct home flat = *h;
    const uint32_t dim = 256;
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 1u << 20);
    open_memory(h, true);
    open_memory(&flat, false);
    flat.m->no_index = true;
    if (fl_memory_load(h->m, &err) || fl_memory_load(flat.m, &err))
        say("load", &err);
    if (probes && h->m->index)
        fl_index_probe(h->m->index, probes);
    for (uint32_t i = 0; i < 20; i++) {
        const struct fl_vectors *all = &flat.m->fresh;
        ask(1000 + i, &b);
        size_t k = vectors_of(h, fl_buf_str(&b), q);
        clock[i] = now();
        used[i] = cpu();
        if (fl_exact_search(all->v, all->id, all->n, dim, q, k, TOP, want, best, &err))
            say("exact", &err);
        clock[i] = now() - clock[i];
        used[i] = cpu() - used[i];
        for (int way = 0; way < 2 && h->m->index; way++) {
            size_t wide = way ? 32 : TOP;
            lists[i] = way ? lists[i] : now();
            if (fl_index_search(h->m->index, q, k, wide, got, scores, &err))
                say("index", &err);
            lists[i] = way ? lists[i] : now() - lists[i];
            for (size_t a = 0; a < k; a++)
                hits[way] +=
                    as_near(all, got + a * wide, wide, q + a * dim, dim, best[a * TOP + TOP - 1]);
        }
        of += k * TOP;
    }
    if (!probes)
        p50("exact", clock, used, 20, "without an index, ten pieces");
    qsort(lists, 20, sizeof(*lists), by_value);
    printf("%-10s %8.4f of the ten nearest in ten, %.4f in the 32 that a search takes; ", "recall",
           (double)hits[0] / (double)of, (double)hits[1] / (double)of);
    printf("%.1f ms with %u probes (0: its own)\n", lists[10] * 1e3, probes);
    fl_buf_dispose(&b);
    fl_memory_free(h->m);
    fl_memory_free(flat.m);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    struct home h = {.e = NULL}, corpus;
    fl_err err = {0};
    char db[120];

    if ((argc != 3 && argc != 4) || !n || strlen(argv[2]) > 60) {
        fprintf(stderr, "usage: bench_memory N FOLDER [SHARE]\n");
        return 2;
    }
    if (argc == 4)
        share = (unsigned)strtoul(argv[3], NULL, 10);
    if (!share)
        share = 1;
    base = (struct lines){.v = malloc(4000 * sizeof(*base.v)),
                          .cause = malloc(4000 * sizeof(*base.cause)),
                          .cap = 4000};
    home_make(&corpus, true);
    if (fl_memory_list(corpus.m, NULL, take, &base, &err))
        say("corpus", &err);
    home_drop(&corpus);
    snprintf(h.data, sizeof(h.data), "%s", argv[2]);
    snprintf(db, sizeof(db), "%s/incidents.db", h.data);
    if (!fl_file_exists(db))
        apart(fill, &h, n);
    apart(full, &h, n);
    apart(first, &h, n);
    apart(first, &h, n);
    apart(searches, &h, n);
    apart(recall, &h, 0);
    for (uint32_t probes = 8; probes <= 512; probes *= 2)
        apart(recall, &h, probes);
    apart(nightly, &h, n);
    apart(searches, &h, n);
    free(base.v);
    free(base.cause);
    return 0;
}
