/*
 * Candidates by Vectorscan, in block mode over many lines at once.
 *
 * The library reports where a match ends, never where it began, and that is all that is needed: the
 * end lies in the line. With MULTILINE '$' and word boundaries mean the line's. Not asked for:
 * SINGLEMATCH, which would report one line a block, and ALLOWEMPTY, under which an expression that
 * can be empty reports every byte.
 *
 * What the library does not take is tried as a prefilter, which may report too much, and what it
 * does not take even so is left to PCRE2, pattern by pattern. \A, \z and the like go there at once:
 * here they would mean the ends of the block. The choice for each expression is stored with the
 * database, because finding it out costs a failed compilation each.
 *
 * Vectorscan 5.4.9 loses matches on processors with AVX2 or AVX-512, and which ones depends on the
 * patterns beside. The hits of 2544 shipped patterns were varied to 3.08 million lines that PCRE2
 * finds: the AVX-512 scanner lost 523 lines of 4 patterns (1417 of 62 before oneline.c kept classes
 * such as [^'] within a line), the AVX2 scanner 15 of one, the two 16-byte scanners (SSSE3, SSE4.2)
 * none, Hyperscan 5.4.0 none. Each loss was down to two patterns of one beginning, `wandb.*` or
 * `\[\d+\]`, say, and went away with either. Two reports at VectorCamp/vectorscan fit: the search
 * for a pair of bytes misses some at the end of a stretch shorter than a vector (issue 317), and
 * the AVX-512 search for the end of a run looks at the wrong end of its last vector (pull request
 * 378). Stretches under 16 bytes are not searched this way, so vectors of 16 bytes are safe.
 *
 * Tried in vain: without MULTILINE (loses more); DOTALL, stream mode, vectored mode, 4 or 16
 * databases (each mends some, none all); ALLOWEMPTY, PREFILTER, other target platforms, no named
 * groups (nothing changes); SOM_LEFTMOST (patterns become too large). So the database is built for
 * no processor feature, which lets machines share its cache, and scanned with the 16-byte scanner,
 * which the library exports for its own choice at load time. On 100 MB that costs the whole program
 * 0.32 s against 0.30 s, on the cases nothing to be told from noise. An x86 library without that
 * function is refused where the processor has AVX2; ARM's vectors have 16 bytes anyway.
 * fl_match_verify(), the tests and `diagnose rules test` watch that nothing is lost.
 */
#include "match/engine.h"

#include <hs.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cache.h"
#include "base/map.h"
#include "base/alloc.h"

static const struct fl_cache_kind kind = {"FLMATCH\n", 2, "match-", "pattern cache"};

enum mode { PLAIN, PREFILTER, SLOW };

struct hs_state {
    hs_database_t *db; /* NULL when every expression is slow */
    uint8_t *mode;     /* enum mode of each pattern */
    uint32_t *slow;
    size_t nslow;
};

struct hs_room {
    hs_scratch_t *scratch;
};

struct scan {
    struct fl_match_scratch *s;
    int r;
};

typedef hs_error_t scanner(const hs_database_t *, const char *, unsigned, unsigned, hs_scratch_t *,
                           match_event_handler, void *);

#ifdef __x86_64__
/* In the library, but in none of its headers. It asks for no more than hs_valid_platform() does. */
extern scanner core2_hs_scan __attribute__((weak));

static scanner *narrow(void)
{
    if (core2_hs_scan)
        return core2_hs_scan;
    return __builtin_cpu_supports("avx2") ? NULL : hs_scan;
}
#else
static scanner *narrow(void)
{
    return hs_scan;
}
#endif

static const char *refused(void)
{
    if (hs_valid_platform() != HS_SUCCESS)
        return "this processor lacks what Vectorscan was built for";
    return narrow() ? NULL
                    : "this build of Vectorscan has no 16-byte scanner, and its wider ones lose "
                      "matches";
}

static void version(fl_buf *out)
{
    fl_str rest = fl_str_c(hs_version()), number = fl_str_cut(&rest, ' ');

    fl_buf_addf(out, "vectorscan %.*s", FL_FMT(number));
}

static unsigned flags_of(const struct fl_entry *e)
{
    return HS_FLAG_MULTILINE | (e->lazy.icase ? HS_FLAG_CASELESS : 0);
}

/* One database serves both kinds of scan: what it finds too much is tried again. */
static const struct fl_lazy *scanned(const struct fl_entry *e)
{
    return e->digits == FL_RELAX_SENSITIVE ? &e->alike : &e->lazy;
}

/* All that decides what the database holds. The forms of the expressions are not in it, because
 * making them for all took a third of a start; FL_MATCH_FORMS stands for how they are made. */
static int make_key(const struct fl_matcher *m, char key[33], fl_err *err)
{
    fl_buf b;
    int r;

    fl_buf_init(&b, 64u << 20);
    fl_buf_addf(&b, "%s|any cpu|%d|%zu", hs_version(), FL_MATCH_FORMS, m->n);
    for (size_t i = 0; i < m->n; i++) {
        const struct fl_entry *e = &m->entry[i];
        fl_put_le(&b, flags_of(e), 4);
        fl_put_le(&b, e->lazy.source.n, 4);
        fl_buf_add(&b, e->lazy.source);
    }
    r = fl_buf_check(&b, "the patterns' text", err);
    if (r == FL_OK)
        fl_hash128_hex(b.p, b.n, key);
    fl_buf_dispose(&b);
    return r;
}

/* PCRE2 judges the syntax, before the library that is only a filter does. */
static int check_patterns(const struct fl_matcher *m, fl_err *err)
{
    struct fl_expr *code;
    int r = FL_OK;

    for (size_t i = 0; i < m->n && r == FL_OK; i++) {
        const struct fl_lazy *l = &m->entry[i].lazy;
        code = NULL;
        r = fl_lazy_compile(l, false, &code, err);
        fl_expr_free(code);
    }
    return r;
}

struct set {
    const char **form; /* of each pattern */
    const char **text; /* of those in the set */
    unsigned *flags, *id;
    unsigned n;
};

static void fill_set(const struct fl_matcher *m, const struct hs_state *h, struct set *set)
{
    set->n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (h->mode[i] == SLOW)
            continue;
        set->text[set->n] = set->form[i];
        set->flags[set->n] =
            flags_of(&m->entry[i]) | (h->mode[i] == PREFILTER ? HS_FLAG_PREFILTER : 0);
        set->id[set->n++] = (unsigned)i;
    }
}

static int make_forms(const struct fl_matcher *m, const char **form, fl_arena *a, fl_err *err)
{
    fl_buf b;
    int r = FL_OK;

    fl_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < m->n && r == FL_OK; i++) {
        fl_buf_clear(&b);
        fl_lazy_text(scanned(&m->entry[i]), &b);
        r = fl_buf_check(&b, "the pattern", err);
        if (r == FL_OK && !(form[i] = fl_arena_z(a, fl_buf_str(&b))))
            r = fl_fail_nomem(err);
    }
    fl_buf_dispose(&b);
    return r;
}

/* One attempt; an expression that is refused is moved to its next mode. 1: try again. */
static int try_compile(struct hs_state *h, const struct set *set, fl_err *err)
{
    const hs_platform_info_t any = {.tune = HS_TUNE_FAMILY_GENERIC};
    hs_compile_error_t *e = NULL;
    hs_error_t rc =
        hs_compile_multi(set->text, set->flags, set->id, set->n, HS_MODE_BLOCK, &any, &h->db, &e);
    int r = FL_OK;

    if (rc == HS_SUCCESS)
        return FL_OK;
    if (rc == HS_NOMEM || !e)
        r = fl_fail_nomem(err);
    else if (e->expression < 0 || (unsigned)e->expression >= set->n)
        r = fl_fail(err, FL_EBACKEND, "Vectorscan cannot compile the patterns: %s", e->message);
    if (r == FL_OK) {
        h->mode[set->id[e->expression]]++;
        r = 1;
    }
    hs_free_compile_error(e);
    return r;
}

static int compile(struct fl_matcher *m, struct hs_state *h, fl_err *err)
{
    struct set set = {0};
    fl_arena a;
    int r;

    fl_arena_init(&a);
    set.form = fl_arena_alloc(&a, m->n * sizeof(*set.form));
    set.text = fl_arena_alloc(&a, m->n * sizeof(*set.text));
    set.flags = fl_arena_alloc(&a, m->n * sizeof(*set.flags));
    set.id = fl_arena_alloc(&a, m->n * sizeof(*set.id));
    r = set.form && set.text && set.flags && set.id ? fl_match_judge(m, err) : fl_fail_nomem(err);
    if (r == FL_OK)
        r = check_patterns(m, err);
    if (r == FL_OK)
        r = make_forms(m, set.form, &a, err);
    for (size_t i = 0; i < m->n; i++)
        h->mode[i] =
            m->entry[i].features & (FL_RE_ABSOLUTE | FL_RE_VERB) ? (uint8_t)SLOW : (uint8_t)PLAIN;
    while (r == FL_OK) {
        fill_set(m, h, &set);
        if (set.n == 0)
            break;
        r = try_compile(h, &set, err);
        if (r != 1)
            break;
        r = FL_OK;
    }
    fl_arena_dispose(&a);
    return r;
}

/* The payload: three bytes a pattern, then the database. False when it cannot be used. */
static bool from_cache(struct fl_matcher *m, struct hs_state *h, const char *key)
{
    fl_buf file;
    fl_str b = {NULL, 0};
    hs_error_t rc = HS_SUCCESS;
    bool ok;

    fl_buf_init(&file, 256u << 20);
    ok = fl_cache_load(&kind, m->cache_dir, key, &file, &b, m->note, sizeof(m->note)) &&
         b.n >= 3 * m->n;
    for (size_t i = 0; ok && i < m->n; i++) {
        const unsigned char *at = (const unsigned char *)b.p + 3 * i;
        ok = at[0] <= SLOW && at[1] <= FL_RELAX_EXACT;
        h->mode[i] = at[0];
        m->entry[i].digits = (enum fl_relaxed)at[1];
        m->entry[i].features = at[2];
    }
    if (ok && b.n > 3 * m->n)
        rc = hs_deserialize_database(b.p + 3 * m->n, b.n - 3 * m->n, &h->db);
    if (rc != HS_SUCCESS)
        snprintf(m->note, sizeof(m->note),
                 "the pattern cache is not used: Vectorscan refuses it "
                 "(%d)",
                 rc);
    fl_buf_dispose(&file);
    return ok && rc == HS_SUCCESS;
}

static void to_cache(struct fl_matcher *m, const struct hs_state *h, const char *key)
{
    char *bytes = NULL;
    size_t n = 0;
    fl_buf b;

    fl_buf_init(&b, 256u << 20);
    for (size_t i = 0; i < m->n; i++) {
        fl_put_le(&b, h->mode[i], 1);
        fl_put_le(&b, m->entry[i].digits, 1);
        fl_put_le(&b, m->entry[i].features, 1);
    }
    if (h->db && hs_serialize_database(h->db, &bytes, &n) != HS_SUCCESS) {
        snprintf(m->note, sizeof(m->note), "the pattern cache was not written: out of memory");
    } else {
        fl_buf_add(&b, fl_str_n(bytes, n));
        if (b.bad)
            snprintf(m->note, sizeof(m->note), "the pattern cache was not written: too large");
        else
            fl_cache_store(&kind, m->cache_dir, key, fl_buf_str(&b), m->note, sizeof(m->note));
    }
    fl_free(bytes);
    fl_buf_dispose(&b);
}

static void close_engine(void *state)
{
    struct hs_state *h = state;

    if (!h)
        return;
    hs_free_database(h->db);
    fl_free(h->mode);
    fl_free(h->slow);
    fl_free(h);
}

static int open_engine(struct fl_matcher *m, void **state, fl_err *err)
{
    struct hs_state *h = fl_calloc(1, sizeof(*h));
    char key[33] = "";
    int r;

    /* Process-wide in the library; the same functions each time. */
    hs_set_allocator(fl_malloc, fl_free);
    if (!h)
        return fl_fail_nomem(err);
    h->mode = fl_calloc(m->n + 1, sizeof(*h->mode));
    h->slow = fl_calloc(m->n + 1, sizeof(*h->slow));
    r = h->mode && h->slow ? make_key(m, key, err) : fl_fail_nomem(err);
    if (r == FL_OK) {
        m->cache_hit = m->cache_dir && from_cache(m, h, key);
        if (!m->cache_hit)
            r = compile(m, h, err);
        if (r == FL_OK && m->cache_dir && !m->cache_hit)
            to_cache(m, h, key);
    }
    if (r) {
        close_engine(h);
        return r;
    }
    for (uint32_t i = 0; i < m->n; i++)
        if (h->mode[i] == SLOW)
            h->slow[h->nslow++] = i;
    *state = h;
    return FL_OK;
}

static int scratch_new(const struct fl_matcher *m, void **out, fl_err *err)
{
    const struct hs_state *h = m->state;
    struct hs_room *room = fl_calloc(1, sizeof(*room));

    if (!room)
        return fl_fail_nomem(err);
    if (h->db && hs_alloc_scratch(h->db, &room->scratch) != HS_SUCCESS) {
        fl_free(room);
        return fl_fail_nomem(err);
    }
    *out = room;
    return FL_OK;
}

static void scratch_free(void *engine_scratch)
{
    struct hs_room *room = engine_scratch;

    if (!room)
        return;
    hs_free_scratch(room->scratch);
    fl_free(room);
}

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                    void *ctx)
{
    struct scan *scan = ctx;

    (void)from;
    (void)flags;
    scan->r = fl_match_found(scan->s, id, (size_t)to);
    return scan->r;
}

static int scan(const struct fl_matcher *m, struct fl_match_scratch *s, bool alike, fl_err *err)
{
    const struct hs_state *h = m->state;
    const struct hs_room *room = s->state;
    struct scan scan = {s, FL_OK};
    hs_error_t rc = HS_SUCCESS;
    int r = FL_OK;

    if (h->db)
        rc = narrow()(h->db, s->data.p, (unsigned)s->data.n, 0, room->scratch, on_match, &scan);
    if (scan.r)
        return fl_fail_nomem(err);
    if (rc != HS_SUCCESS)
        return fl_fail(err, FL_EBUG, "Vectorscan refused a block: error %d", rc);
    for (size_t i = 0; i < h->nslow && r == FL_OK; i++)
        r = fl_match_pcre2_pattern(m, s, h->slow[i], alike, err);
    return r;
}

const struct fl_engine fl_engine_hs = {refused,     version,      open_engine, close_engine,
                                       scratch_new, scratch_free, scan};
