/*
 * Memory runs out while an embedding endpoint is asked: by a reindex, and by a search. What comes
 * is an error, or the result as it is with the endpoint or without it; nothing stays behind, and a
 * reindex afterwards makes all good.
 */
#include "llm_fixture.h"
#include "memory_fixture.h"

#include "alloc_fixture.h"

#include "embed/index.h"

#define TRIES 120

struct lab {
    struct home h;
    struct fx_server server;
    struct fl_config *config;
};

static void open_lab(struct lab *l)
{
    char text[200], path[120];
    fl_err err = {0};

    home_make(&l->h, false);
    home_generate(&l->h, 0, 6);
    fl_memory_free(l->h.m);
    l->h.m = NULL;
    l->server = fx_serve(NULL);
    snprintf(text, sizeof(text),
             "memory: {embedding: {url: 'http://127.0.0.1:%d/v1', model: m, timeout: 5}}\n",
             l->server.port);
    job_write(l->h.dir, "config.yaml", fl_str_c(text));
    snprintf(path, sizeof(path), "%s/config.yaml", l->h.dir);
    must(fl_config_load(path, &l->config, &err));
}

static int opened(const struct lab *l, fl_memory **m, fl_err *err)
{
    struct fl_memory_opts o = {.home = l->h.data, .no_import = true, .config = l->config};

    return fl_memory_open(l->h.e, &o, m, err);
}

static int reindex(const struct lab *l, struct fl_reindexed *n, fl_err *err)
{
    struct fl_reindex_opts o = {.full = true, .prune = true};
    fl_memory *m = NULL;
    int r = opened(l, &m, err);

    *n = (struct fl_reindexed){.generation = 0};
    if (!r)
        r = fl_memory_reindex(m, &o, n, err);
    fl_memory_free(m);
    return r;
}

static int search(const struct lab *l, size_t *found, fl_err *err)
{
    struct fl_search_opts o = {.k = 20, .floor = -1};
    fl_neighbours *n = NULL;
    fl_memory *m = NULL;
    char line[80];
    int r = opened(l, &m, err);

    *found = 0;
    if (!r)
        r = fl_search_text(m, made_line(3, line), &o, &n, err);
    if (!r) {
        *found = fl_neighbours_count(n);
        if (strcmp(fl_neighbours_get(n, 0)->incident, "gen-3"))
            fail_msg("%s is found first", fl_neighbours_get(n, 0)->incident);
        fl_neighbours_free(n);
    }
    fl_memory_free(m);
    return r;
}

/* One run; how many allocations it took. */
static unsigned long run(const struct lab *l, bool searching, unsigned long fail_at, bool for_good)
{
    struct hook h = {.fail_at = fail_at, .for_good = for_good};
    struct fl_reindexed n = {.generation = 0};
    int no_index = fl_index_available(NULL), r;
    fl_err err = {0};
    size_t found = 0;

    fl_alloc_hook(counted, &h);
    r = searching ? search(l, &found, &err) : reindex(l, &n, &err);
    fl_alloc_hook(NULL, NULL);
    if (h.live)
        fail_msg("allocation %lu: %ld pieces stay behind", fail_at, h.live);
    if (r && (r != FL_ENOMEM || !err.msg[0]) && r != FL_EIO && r != FL_EBACKEND)
        fail_msg("allocation %lu: code %d, '%s'", fail_at, r, err.msg);
    if (!searching && r == no_index) /* without FAISS the vectors are made and no index */
        r = FL_OK;
    if (!fail_at && (r || (searching ? !found : n.remote_failed || !n.remote_vectors)))
        fail_msg("code %d, '%s', %zu found", r, err.msg, found);
    return h.n;
}

static void every_allocation(const struct lab *l, bool searching)
{
    unsigned long all = run(l, searching, 0, false);

    for (int good = 0; good < 2; good++)
        for (unsigned long i = 1; i <= all; i += i < 20 ? 1 : all / TRIES + 1)
            run(l, searching, i, good);
    print_message("%lu allocations\n", all);
    run(l, searching, 0, false);
}

static void memory_runs_out(void **state)
{
    struct lab l = {.config = NULL};

    (void)state;
    open_lab(&l);
    every_allocation(&l, false);
    every_allocation(&l, true);
    fx_stop(&l.server);
    fl_config_free(l.config);
    home_drop(&l.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_runs_out)};

    return cmocka_run_group_tests_name("remote_alloc", tests, NULL, NULL);
}
