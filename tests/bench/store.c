/*
 * The incident memory at size: store N [FOLDER] makes N incidents with four vectors of 256 bytes
 * each, imports them, and times what a search asks of the store. Prints one number a line,
 * processor time and not wall time; nothing is asserted. Words are drawn by Zipf's law from 30,000,
 * with a head of those that every error line has, so that common terms are as common as in logs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/store.h"

static uint64_t seed = 88172645463325252u;

static uint64_t next_number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* what others run here is not ours */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Rank k with a probability of about 1/k. */
static void zipf_word(char *out, size_t cap)
{
    static const char *const head[] = {"error", "rank",   "failed", "cuda", "nccl",
                                       "the",   "in",     "of",     "at",   "process",
                                       "torch", "python", "file",   "line", "host"};
    double u = (double)(next_number() >> 11) / 9007199254740992.0;
    unsigned k = 1;

    for (double x = 10.3 * u; x > 0.69 && k < 30000; x -= 0.693)
        k *= 2;
    k += (unsigned)(next_number() % k);
    if (k <= sizeof(head) / sizeof(*head))
        snprintf(out, cap, "%s", head[k - 1]);
    else
        snprintf(out, cap, "w%c%c%u", 'a' + k % 26, 'a' + k / 26 % 26, k % 97);
}

static void text(fl_buf *b, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        char w[32];
        zipf_word(w, sizeof(w));
        fl_buf_addf(b, "%s%s", i ? " " : "", w);
    }
}

static int write_yaml(const char *path, unsigned n)
{
    FILE *f = fopen(path, "w");
    fl_buf b;

    if (!f)
        return -1;
    fl_buf_init(&b, 1u << 20);
    fputs("incidents:\n", f);
    for (unsigned i = 0; i < n; i++) {
        fl_buf_clear(&b);
        fl_buf_addf(&b, "  - id: g-%07u\n    cause: area.cause%u\n    title: ", i, i % 70);
        text(&b, 7);
        fl_buf_addz(&b, "\n    evidence:\n");
        for (int k = 0; k < 3; k++) {
            fl_buf_addz(&b, "      - ");
            text(&b, 14);
            fl_buf_addc(&b, '\n');
        }
        fl_buf_addz(&b, "    explanation: ");
        text(&b, 30);
        fl_buf_addz(&b, "\n    fix: ");
        text(&b, 12);
        fl_buf_addz(&b, "\n    source: a bench\n");
        fwrite(b.p, 1, b.n, f);
    }
    fl_buf_dispose(&b);
    return fclose(f);
}

static int count_hit(void *ctx, const struct fl_store_hit *h, fl_err *err)
{
    (void)h;
    (void)err;
    ++*(uint64_t *)ctx;
    return 0;
}

static int sum_vector(void *ctx, const struct fl_store_vector *v, fl_err *err)
{
    (void)err;
    *(uint64_t *)ctx += ((const uint8_t *)v->data)[3];
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Fifty searches of ten pieces of fifteen words. */
static int search(fl_store *s, size_t rarest, fl_err *err)
{
    double t[50];
    uint64_t hits = 0;
    int r = 0;

    for (int i = 0; !r && i < 50; i++) {
        t[i] = now();
        for (int p = 0; !r && p < 10; p++) {
            char words[15][32];
            fl_str terms[15];
            struct fl_store_query q = {.terms = terms, .n = 15, .rarest = rarest};
            if (rarest > 5)
                q.most = UINT64_MAX / 2;
            for (int k = 0; k < 15; k++) {
                zipf_word(words[k], sizeof(words[k]));
                terms[k] = fl_str_c(words[k]);
            }
            r = fl_store_search(s, &q, count_hit, &hits, err);
        }
        t[i] = now() - t[i];
        if (rarest > 5 && i == 4) {
            printf("search_all_terms_ms %.1f\n", t[2] * 1e3);
            return r;
        }
    }
    qsort(t, 50, sizeof(*t), by_value);
    printf("search_p50_ms %.1f\nsearch_p90_ms %.1f\nsearch_max_ms %.1f\nsearch_hits %llu\n",
           t[25] * 1e3, t[45] * 1e3, t[49] * 1e3, (unsigned long long)hits / 500);
    return r;
}

static int put_vectors(fl_store *s, unsigned n, const struct fl_store_model *m, fl_err *err)
{
    static int8_t data[4][256];
    struct fl_store_vector v[4];
    int r = fl_store_begin(s, err);

    for (unsigned i = 0; !r && i < n; i++) {
        for (unsigned k = 0; k < 4; k++) {
            for (unsigned d = 0; d < 256; d += 8)
                memcpy(data[k] + d, (uint64_t[]){next_number()}, 8);
            v[k] = (struct fl_store_vector){.piece = k, .scale = 0.01f, .data = data[k]};
        }
        r = fl_store_put_vectors(s, m, i + 1, v, 4, err);
    }
    return r ? r : fl_store_commit(s, err);
}

static long peak_mb(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

static int bench(const char *dir, unsigned n, fl_err *err)
{
    static const struct fl_store_model m = {FL_S("bench"), 256, FL_VECTOR_INT8};
    struct fl_store_import o = {.corpus = true};
    struct fl_store_imported done = {0};
    uint64_t sum = 0, damaged = 0;
    char yaml[300];
    fl_store *s = NULL;
    double t = now();
    int r;

    snprintf(yaml, sizeof(yaml), "%s/bench.yaml", dir);
    if (write_yaml(yaml, n))
        return fl_fail(err, FL_EIO, "%s: cannot be written", yaml);
    t = now();
    r = fl_store_open(dir, NULL, &s, err);
    printf("open_new_ms %.1f\n", (now() - t) * 1e3), t = now();
    if (!r)
        r = fl_store_import(s, yaml, &o, &done, err);
    printf("import_s %.2f (%llu)\n", now() - t, (unsigned long long)done.added), t = now();
    if (!r)
        r = fl_store_import(s, yaml, &o, &done, err);
    printf("import_same_s %.2f (%llu)\n", now() - t, (unsigned long long)done.same), t = now();
    if (!r)
        r = put_vectors(s, n, &m, err);
    printf("put_vectors_s %.2f\n", now() - t);
    fl_store_close(s);
    s = NULL;
    t = now();
    if (!r)
        r = fl_store_open(dir, &(struct fl_store_opts){.read_only = true}, &s, err);
    printf("open_ms %.1f\n", (now() - t) * 1e3), t = now();
    if (!r)
        r = search(s, 0, err);
    t = now();
    printf("search_peak_mb %ld\n", peak_mb());
    if (!r)
        r = fl_store_vectors(s, &m, 0, 0, sum_vector, &sum, &damaged, err);
    printf("read_vectors_s %.2f (%llu)\n", now() - t, (unsigned long long)sum % 1000), t = now();
    if (!r)
        r = search(s, 15, err);
    t = now();
    fl_store_close(s);
    return r;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
    char dir[] = "/tmp/fl-bench-XXXXXX";
    fl_err err = {0};
    int r;

    if (argc < 3 && !mkdtemp(dir))
        return 1;
    r = bench(argc > 2 ? argv[2] : dir, n, &err);
    if (r)
        fprintf(stderr, "%s\n", err.msg);
    if (argc < 3)
        printf("folder %s\n", dir);
    return r ? 1 : 0;
}
