/*
 * The FAISS engine: the only file that includes FAISS, and a shared object of its own.
 *
 * A shared object and not part of the program because of what comes with it. Linked in, FAISS and
 * its linear algebra cost each start of the program 3.4 ms of processor time (5.5 for 2.1) and
 * 4.5 MB, and most starts never look anything up: a failure that a rule names needs no neighbours.
 * So index.c loads this object when an index is opened.
 *
 * Kinds of index. Few vectors are kept flat as floats: the library of the distribution is compiled
 * for the oldest processor of its kind, where FAISS compares 40,000 8-bit codes with ten queries in
 * 90 ms of processor time, floats in 50, and our own exact scan, which takes all queries in one
 * pass, in 20. So flat 8-bit codes would be slower and less exact and only smaller; and a flat
 * index is held by FAISS but compared by our own scan, whose answers are the exact ones to the bit.
 * Many vectors are an inverted file (IVF) with 8 bits a dimension. What a code holds is the vector
 * and not its difference from the centroid: the measured recall was the same and the code is
 * simpler. Graphs (HNSW) answer faster still and take minutes to build: refused.
 *
 * Queries are handed over one at a time. Given several, FAISS starts a team of threads that wait
 * for each other spinning; on a machine that has other work a search of 2 ms then takes 8 or 16.
 *
 * Errors: the C functions catch every exception and return not 0, with the text in
 * faiss_get_last_error(). FAISS says where in its source a check failed; the message keeps the end
 * of the text, where it says what.
 *
 * What is written is FAISS's own format, and this file knows one thing about it: the inverted lists
 * come last, behind "ilar", their number, the size of a code and their sizes, either all of them
 * ("full") or as pairs ("sprs"). That has been so since the format has had these names, and index.c
 * compares what FAISS wrote with what this file expects before it believes an index that it made.
 */
#include "embed/index_engine.h"

#include <stdbool.h>
#include <string.h>

#include <faiss/c_api/IndexFlat_c.h>
#include <faiss/c_api/IndexIVF_c.h>
#include <faiss/c_api/IndexScalarQuantizer_c.h>
#include <faiss/c_api/Index_c.h>
#include <faiss/c_api/MetaIndexes_c.h>
#include <faiss/c_api/Clustering_c.h>
#include <faiss/c_api/error_c.h>
#include <faiss/c_api/impl/AuxIndexStructures_c.h>
#include <faiss/c_api/index_factory_c.h>
#include <faiss/c_api/index_io_c.h>

#define SEED 20240229
#define ITERATIONS 8

static int failed(int r, char *why)
{
    const char *text;
    size_t n;

    if (r == 0)
        return 0;
    text = faiss_get_last_error();
    if (!text || !*text)
        text = "no reason given";
    n = strlen(text);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (n >= FL_ENGINE_WHY) {
        text += n - (FL_ENGINE_WHY - 1);
        n = FL_ENGINE_WHY - 1;
    }
    memcpy(why, text, n);
    why[n] = 0;
    return -1;
}

static int make_ivf(uint32_t dim, uint32_t nlist, uint32_t nprobe, void **ix, char *why)
{
    FaissIndexFlatIP *centroids = NULL;
    FaissIndexIVFScalarQuantizer *ivf = NULL;
    int r = faiss_IndexFlatIP_new_with(&centroids, dim);

    if (r == 0)
        r = faiss_IndexIVFScalarQuantizer_new_with_metric(&ivf, centroids, dim, nlist, QT_8bit,
                                                          METRIC_INNER_PRODUCT, 0);
    if (failed(r, why)) {
        if (centroids)
            faiss_Index_free(centroids);
        return -1;
    }
    faiss_IndexIVFScalarQuantizer_set_own_fields(ivf, 1);
    faiss_IndexIVFScalarQuantizer_set_nprobe(ivf, nprobe);
    *ix = ivf;
    return 0;
}

static int make(uint32_t dim, uint32_t nlist, uint32_t nprobe, void **ix, char *why)
{
    FaissIndex *flat = NULL;

    if (nlist)
        return make_ivf(dim, nlist, nprobe, ix, why);
    if (failed(faiss_index_factory(&flat, (int)dim, "IDMap,Flat", METRIC_INNER_PRODUCT), why))
        return -1;
    *ix = flat;
    return 0;
}

static void release(void *ix)
{
    if (ix)
        faiss_Index_free(ix);
}

/* k-means for the centroids with our own bounds (FAISS's default would go on for longer and print
 * what it thinks of the sample), then the ranges of the codes. */
static int train(void *ix, const float *x, size_t n, char *why)
{
    FaissIndexIVF *ivf = faiss_IndexIVF_cast(ix);
    FaissClusteringParameters p;
    FaissClustering *k = NULL;
    int r;

    if (!ivf)
        return 0;
    faiss_ClusteringParameters_init(&p);
    p.niter = ITERATIONS;
    p.spherical = 1;
    p.seed = SEED;
    p.min_points_per_centroid = 1;
    p.max_points_per_centroid = 1 << 20;
    r = faiss_Clustering_new_with_params(&k, faiss_Index_d(ix), (int)faiss_IndexIVF_nlist(ivf), &p);
    if (r == 0)
        r = faiss_Clustering_train(k, (idx_t)n, x, faiss_IndexIVF_quantizer(ivf));
    if (r == 0)
        r = faiss_Index_train(ix, (idx_t)n, x);
    r = failed(r, why);
    if (k)
        faiss_Clustering_free(k);
    return r;
}

static int add(void *ix, const float *x, const int64_t *ids, size_t n, char *why)
{
    return failed(faiss_Index_add_with_ids(ix, (idx_t)n, x, ids), why);
}

static int remove_ids(void *ix, const int64_t *ids, size_t n, char *why)
{
    FaissIDSelectorBatch *which = NULL;
    size_t removed;
    int r = failed(faiss_IDSelectorBatch_new(&which, n, ids), why);

    if (r == 0)
        r = failed(faiss_Index_remove_ids(ix, (const FaissIDSelector *)which, &removed), why);
    if (which)
        faiss_IDSelector_free((FaissIDSelector *)which);
    return r;
}

static uint64_t count(const void *ix)
{
    return (uint64_t)faiss_Index_ntotal(ix);
}

/* FAISS's casts take no const; they change nothing. */
static FaissIndex *mutable(const void *ix)
{
    union {
        const void *from;
        FaissIndex *to;
    } u = {ix};

    return u.to;
}

static const FaissIndexIVF *as_ivf(const void *ix)
{
    return faiss_IndexIVF_cast(mutable(ix));
}

static uint64_t list_size(const void *ix, uint32_t list)
{
    return faiss_IndexIVF_get_list_size(as_ivf(ix), list);
}

static int entry_size(const void *ix, uint32_t *bytes, char *why)
{
    size_t code = 0;

    if (!as_ivf(ix)) {
        *bytes = 0;
        return 0;
    }
    /* One byte a dimension; what FAISS's own encoder gives would add the list's number. */
    code = (size_t)faiss_Index_d(ix);
    *bytes = (uint32_t)(code + sizeof(idx_t));
    (void)why;
    return 0;
}

static int write_index(const void *ix, FILE *to, char *why)
{
    return failed(faiss_write_index(ix, to), why);
}

static int read_index(FILE *from, void **ix, char *why)
{
    FaissIndex *p = NULL;
    int r = failed(faiss_read_index(from, 0, &p), why);

    if (r == 0)
        *ix = p;
    return r;
}

struct bytes {
    unsigned char *p;
    size_t n, cap;
};

static void put(struct bytes *b, const void *p, size_t n)
{
    if (b->n + n <= b->cap)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void put_size(struct bytes *b, uint64_t v)
{
    size_t s = v;

    put(b, &s, sizeof(s));
}

static size_t lists_head(uint32_t nlist, uint32_t entry, const uint32_t *lists,
                         const uint64_t *sizes, size_t n, int sparse, void *out, size_t cap)
{
    struct bytes b = {out, 0, cap};
    size_t at = 0;

    put(&b, "ilar", 4);
    put_size(&b, nlist);
    put_size(&b, entry - sizeof(idx_t));
    put(&b, sparse ? "sprs" : "full", 4);
    put_size(&b, sparse ? 2 * n : nlist);
    for (uint32_t i = 0; !sparse && i < nlist; i++) {
        bool here = at < n && lists[at] == i;
        put_size(&b, here ? sizes[at] : 0);
        at += here;
    }
    for (size_t i = 0; sparse && i < n; i++) {
        put_size(&b, lists[i]);
        put_size(&b, sizes[i]);
    }
    return b.n;
}

static void set_nprobe(void *ix, uint32_t nprobe)
{
    faiss_IndexIVF_set_nprobe(faiss_IndexIVF_cast(ix), nprobe);
}

static int assign(const void *ix, const float *x, size_t nprobe, int64_t *lists, float *near,
                  char *why)
{
    const FaissIndex *centroids = faiss_IndexIVF_quantizer(as_ivf(ix));

    return failed(faiss_Index_search(centroids, 1, x, (idx_t)nprobe, near, lists), why);
}

static int flat(const void *ix, const float **x, const int64_t **ids, size_t *n, char *why)
{
    FaissIndexIDMap *map = faiss_IndexIDMap_cast(mutable(ix));
    FaissIndexFlat *inner = map ? faiss_IndexFlat_cast(faiss_IndexIDMap_sub_index(map)) : NULL;
    float *xb = NULL;
    idx_t *id_of = NULL;
    size_t floats = 0, of_ids = 0;

    if (!inner) {
        memcpy(why, "it is not flat", 15);
        return -1;
    }
    faiss_IndexFlat_xb(inner, &xb, &floats);
    faiss_IndexIDMap_id_map(map, &id_of, &of_ids);
    if (floats != of_ids * (size_t)faiss_Index_d(inner)) {
        memcpy(why, "vectors and ids differ in number", 33);
        return -1;
    }
    *x = xb;
    *ids = id_of;
    *n = of_ids;
    return 0;
}

static int search(const void *ix, const float *x, size_t k, const int64_t *lists, const float *near,
                  float *scores, int64_t *ids, char *why)
{
    return failed(
        faiss_IndexIVF_search_preassigned(as_ivf(ix), 1, x, (idx_t)k, lists, near, scores, ids, 0),
        why);
}

__attribute__((visibility("default"))) extern const struct fl_index_engine fl_index_engine_1;
const struct fl_index_engine fl_index_engine_1 = {
    .abi = FL_ENGINE_ABI,
    .make = make,
    .free = release,
    .train = train,
    .add = add,
    .remove = remove_ids,
    .count = count,
    .list_size = list_size,
    .entry_size = entry_size,
    .write = write_index,
    .read = read_index,
    .lists_head = lists_head,
    .flat = flat,
    .set_nprobe = set_nprobe,
    .assign = assign,
    .search = search,
};
