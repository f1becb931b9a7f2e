#ifndef FL_TEST_MEMORY_FIXTURE_H
#define FL_TEST_MEMORY_FIXTURE_H
/*
 * What the tests of the memory share: a home of their own, generated incidents, searches.
 */
#include "job_fixture.h"

#include "base/str.h"

struct home {
    fl_engine *e;
    fl_memory *m;
    char dir[64], data[80];
};

#define must(call) must_at((call), &err, #call, __FILE__, __LINE__)
static inline void must_at(int r, const fl_err *err, const char *what, const char *file, int line)
{
    if (r < 0)
        fail_msg("%s:%d: %s: %d: %s", file, line, what, r, err->msg);
}

/* The call fails with this code and says this. */
#define must_fail(call, code, words) must_fail_at((call), (code), (words), &err, __FILE__, __LINE__)
static inline void must_fail_at(int r, int code, const char *words, const fl_err *err,
                                const char *file, int line)
{
    if (r != code || !strstr(err->msg, words))
        fail_msg("%s:%d: %d instead of %d, \"%s\" instead of something with \"%s\"", file, line, r,
                 code, err->msg, words);
}

/* Opens the memory again, as another process would. */
static inline void home_open(struct home *h, bool corpus)
{
    struct fl_memory_opts o = {.home = h->data, .no_import = !corpus};
    fl_err err = {0};

    fl_memory_free(h->m);
    h->m = NULL;
    must(fl_memory_open(h->e, &o, &h->m, &err));
}

static inline void home_make(struct home *h, bool corpus)
{
    *h = (struct home){.e = job_engine(NULL, false)};
    job_dir_make(h->dir);
    snprintf(h->data, sizeof(h->data), "%s/home", h->dir);
    home_open(h, corpus);
}

static inline void home_drop(struct home *h)
{
    fl_memory_free(h->m);
    fl_engine_free(h->e);
    job_dir_remove(h->dir);
}

static inline fl_diagnosis *home_diagnose(const struct home *h, const char *path)
{
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    fl_diagnosis *d = NULL;
    fl_err err = {0};

    o.paths = &path;
    o.npaths = 1;
    o.threads = 1;
    o.digest = true;
    must(fl_diagnose(h->e, &o, &d, &err));
    return d;
}

/* A log of this text, diagnosed. */
static inline fl_diagnosis *home_log(const struct home *h, const char *text)
{
    char path[100];

    job_write(h->dir, "job.log", fl_str_c(text));
    snprintf(path, sizeof(path), "%s/job.log", h->dir);
    return home_diagnose(h, path);
}

/* The place of incident `id` in a search for a text, from 1; 0: not found. */
static inline size_t home_place(struct home *h, const char *text, const char *id)
{
    struct fl_search_opts o = {.k = 20, .floor = -1};
    fl_neighbours *n = NULL;
    fl_err err = {0};
    size_t place = 0;

    must(fl_search_text(h->m, text, &o, &n, &err));
    for (size_t i = 0; !place && i < fl_neighbours_count(n); i++)
        if (!strcmp(fl_neighbours_get(n, i)->incident, id))
            place = i + 1;
    fl_neighbours_free(n);
    return place;
}

/* A made word for a number: the same for the same, and different ones share no letters' run. */
static inline void made_word(uint32_t n, char out[16])
{
    static const char *const part[] = {"ba", "ke", "li", "mo", "nu", "ra", "se", "ti",
                                       "vo", "xu", "da", "fe", "gi", "ho", "ju", "pa"};
    char *at = out;

    n = n * 2654435761u >> 8;
    for (int i = 0; i < 5; i++, n >>= 4)
        at += snprintf(at, 3, "%s", part[n & 15]);
}

/* YAML of incidents gen-FROM to before gen-TO, three lines each, whose words nothing else has. */
static inline void made_incidents(fl_buf *b, uint32_t from, uint32_t to)
{
    static const char *const causes[] = {"gpu.ecc", "net.config", "node.disk_full", "fw.hang"};

    fl_buf_addz(b, "incidents:\n");
    for (uint32_t i = from; i < to; i++) {
        fl_buf_addf(b, "  - id: gen-%u\n    cause: %s\n    title: 'case", i, causes[i % 4]);
        for (uint32_t k = 0; k < 10; k++) {
            char w[16];
            made_word(i * 16 + k, w);
            if (k % 3 == 1)
                fl_buf_addf(b, "'\n    %s'%s", k == 1 ? "evidence:\n      - " : "  - ", "error:");
            fl_buf_addf(b, " %s", w);
        }
        fl_buf_addz(b, "'\n    explanation: made for a test\n");
    }
}

static inline void home_generate(struct home *h, uint32_t from, uint32_t to)
{
    struct fl_past_imported n;
    char path[100];
    fl_err err = {0};
    fl_buf b;

    fl_buf_init(&b, 512u << 20);
    made_incidents(&b, from, to);
    job_write(h->dir, "made.yaml", fl_buf_str(&b));
    fl_buf_dispose(&b);
    snprintf(path, sizeof(path), "%s/made.yaml", h->dir);
    must(fl_memory_import(h->m, path, NULL, &n, &err));
    if (n.added != to - from)
        fail_msg("%llu of %u generated incidents were added", (unsigned long long)n.added,
                 to - from);
}

/* The second line of a generated incident, without its head. */
static inline const char *made_line(uint32_t i, char out[80])
{
    char w[3][16];

    for (uint32_t k = 0; k < 3; k++)
        made_word(i * 16 + 4 + k, w[k]);
    snprintf(out, 80, "error: %s %s %s", w[0], w[1], w[2]);
    return out;
}

#endif
