#ifndef FL_TEST_INDEX_FIXTURE_H
#define FL_TEST_INDEX_FIXTURE_H
/*
 * For the tests of the index: a folder with an inverted file in it, its vectors, and what the exact
 * scan finds for fifty queries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "vectors.h"
#include "embed/index_file.h"

#define K 10
#define QUERIES 50

struct world {
    char dir[64], path[128];
    struct fl_vectors v; /* an inverted file's worth */
    struct fl_index_head head;
    float *queries;
    float *all;
    int64_t *ids, *truth;
    float *scores;
};

static inline void *need(size_t n)
{
    void *p = malloc(n);

    assert_non_null(p);
    return p;
}

static inline void ok(int r, const fl_err *err)
{
    if (r)
        fail_msg("code %d: %s", r, err->msg);
}

static inline void fill(const struct fl_vectors *v, float *all, int64_t *ids)
{
    for (uint64_t i = 0; i < v->count; i++) {
        fl_vectors_make(v, i, all + i * v->dim);
        ids[i] = fl_vectors_id(v, i);
    }
}

static inline void build(struct fl_vectors *v, const struct fl_index_head *head, const char *path)
{
    struct fl_index_source source = fl_vectors_source(v);
    fl_err err = {0};

    ok(fl_index_build(head, &source, NULL, NULL, path, &err), &err);
}

static inline void no_debris(const char *dir, size_t files)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && ++n > files)
            fail_msg("%s is left behind", e->d_name);
    closedir(d);
}

static inline char *bytes_of(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    char *p;

    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *n = (size_t)st.st_size;
    p = need(*n);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

static inline void write_bytes(const char *path, const char *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static inline int open_world(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    fl_err err = {0};

    assert_non_null(w);
    *state = w;
    snprintf(w->dir, sizeof(w->dir), "/tmp/fl-index-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->path, sizeof(w->path), "%s/one", w->dir);
    w->v = (struct fl_vectors){.seed = 5, .count = 24000, .dim = 48, .centres = 400};
    w->v.noise = 0.7f;
    w->v.first_id = 100;
    w->v.id_step = 3;
    w->head = fl_vectors_head(&w->v, 7);
    build(&w->v, &w->head, w->path);
    w->queries = need(QUERIES * w->v.dim * sizeof(float));
    w->all = need(w->v.count * w->v.dim * sizeof(float));
    w->ids = need(w->v.count * sizeof(int64_t));
    w->truth = need(QUERIES * K * sizeof(int64_t));
    w->scores = need(QUERIES * K * sizeof(float));
    fill(&w->v, w->all, w->ids);
    for (uint64_t i = 0; i < QUERIES; i++)
        fl_vectors_query(&w->v, i * 480, w->queries + i * w->v.dim);
    ok(fl_exact_search(w->all, w->ids, w->v.count, w->v.dim, w->queries, QUERIES, K, w->truth,
                       w->scores, &err),
       &err);
    return 0;
}

static inline int close_world(void **state)
{
    struct world *w = *state;

    unlink(w->path);
    rmdir(w->dir);
    free(w->queries);
    free(w->all);
    free(w->ids);
    free(w->truth);
    free(w->scores);
    free(w);
    return 0;
}

static inline fl_index *opened(const struct world *w)
{
    fl_index *ix = NULL;
    fl_err err = {0};

    ok(fl_index_open(w->path, &w->head, 0, &ix, &err), &err);
    return ix;
}

#endif
