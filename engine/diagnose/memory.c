/*
 * Opening the memory, and keeping it complete.
 *
 * The store is the truth. The shipped corpus is imported when the store has not seen it in this
 * form, known by a hash of its bytes; incidents without a vector of the present model are embedded
 * when the memory is opened, so that what was added at noon is found at noon. The index is a file
 * of one generation, derived from the store: an index that does not fit is not used, the vectors
 * are compared one by one instead, and that is said.
 *
 * A folder that cannot be written is opened for reading: what is there is found, and nothing is
 * imported or embedded.
 */
#include "diagnose/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "diagnose/engine.h"
#include "diagnose/remote.h"
#include "embed/normal.h"

/* For the search by words an incident is one document: a line of the log has words of several of
 * its lines. (One a line found the right cause first in 49 of 100 cases, one an incident in 59.) */
static bool words_of(void *ctx, const struct fl_incident *inc, uint32_t piece, fl_buf *out)
{
    fl_buf text;

    (void)ctx;
    fl_buf_init(&text, 1u << 20);
    for (size_t i = 0; piece == 0 && i < inc->nevidence; i++) {
        fl_normal(fl_str_sub(inc->evidence[i], 0, FL_PIECE_TEXT), &text);
        fl_buf_addc(&text, ' ');
    }
    if (piece == 0) {
        fl_normal(inc->title, &text);
        fl_buf_addc(&text, ' ');
        fl_normal(inc->explanation, &text);
    }
    if (text.n)
        fl_store_words(fl_buf_str(&text), out);
    if (text.bad)
        out->bad = text.bad;
    fl_buf_dispose(&text);
    return piece == 0;
}

/* Incidents of one shape have lines of the same shapes, in any order. */
static void shape_of(void *ctx, const struct fl_incident *inc, fl_buf *out)
{
    uint64_t sum = 0, product = 1;

    (void)ctx;
    for (size_t i = 0; i < inc->nevidence; i++) {
        struct fl_tag tag = {0, 0};
        fl_gather_tag(inc->evidence[i], false, &tag);
        sum += tag.a;
        product *= tag.a | 1;
    }
    if (inc->nevidence)
        fl_buf_addf(out, "%016llx%016llx", (unsigned long long)sum, (unsigned long long)product);
}

int fl_memory_home(const char *home, char *out, size_t cap, fl_err *err)
{
    const char *named = home ? home : getenv("FAULTLINE_HOME"), *xdg = getenv("XDG_DATA_HOME"),
               *user = getenv("HOME");
    int n = -1;

    if (named && *named)
        n = snprintf(out, cap, "%s", named);
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, cap, "%s/faultline", xdg);
    else if (user && user[0] == '/')
        n = snprintf(out, cap, "%s/.local/share/faultline", user);
    if (n < 0 || (size_t)n >= cap)
        return fl_fail(err, FL_EUSAGE,
                       "no folder for past incidents is known: set $FAULTLINE_HOME or $HOME");
    return FL_OK;
}

int fl_memory_open_model(struct fl_memory *m, const char *data, fl_err *err)
{
    char path[4300];
    int r;

    snprintf(path, sizeof(path), "%s/embed/model/tokens.model", data);
    r = fl_tokenizer_open(path, &m->tokens, err);
    if (r)
        return r;
    snprintf(path, sizeof(path), "%s/embed/model/table.bin", data);
    return fl_static_open(path, m->tokens, &m->local.embedder, err);
}

static int open_store(struct fl_memory *m, bool read_only, fl_err *err)
{
    struct fl_store_opts o = {.read_only = read_only,
                              .hooks = {.text = words_of, .shape = shape_of}};
    fl_err why = {0};
    int r = fl_store_open(m->dir, &o, &m->store, &why);

    m->read_only = read_only;
    if (r == FL_EIO && !read_only) { /* a folder that cannot be written may still be read */
        o.read_only = m->read_only = true;
        if (fl_store_open(m->dir, &o, &m->store, NULL) == FL_OK)
            r = FL_OK;
    }
    if (r)
        return fl_fail(err, r, "%s", why.msg);
    if (fl_store_note(m->store))
        fl_memory_say(m, "%s", fl_store_note(m->store));
    return FL_OK;
}

int fl_memory_hash_corpus(const char *dir, char hash[33], fl_err *err)
{
    const char **names, *path;
    size_t n = 0;
    fl_arena a;
    fl_buf b;
    int r;

    fl_arena_init(&a);
    fl_buf_init(&b, 256u << 20);
    r = fl_file_list(dir, &a, &names, &n, err);
    for (size_t i = 0; !r && i < n; i++) {
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".yaml")))
            continue;
        path = fl_file_join(&a, dir, names[i]);
        fl_buf_addz(&b, names[i]);
        r = path ? fl_file_read(path, &b, err) : fl_fail_nomem(err);
    }
    if (!r)
        fl_hash128_hex(b.p, b.n, hash);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    return r;
}

void fl_memory_say(struct fl_memory *m, const char *fmt, ...)
{
    size_t n = strlen(m->note);
    char text[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!strstr(m->note, text)) /* the next search finds the same */
        snprintf(m->note + n, sizeof(m->note) - n, "%s%s", n ? "; " : "", text);
}

/* Imports the shipped corpus when the store does not have it as it is now. */
static int import_corpus(struct fl_memory *m, const char *data, fl_err *err)
{
    struct fl_store_import how = {.clash = FL_CLASH_REPLACE, .corpus = true};
    fl_str have = {NULL, 0};
    char dir[4300], hash[33];
    fl_arena a;
    int r;

    snprintf(dir, sizeof(dir), "%s/corpus/incidents", data);
    if (m->read_only || !fl_file_is_dir(dir))
        return FL_OK;
    fl_arena_init(&a);
    r = fl_memory_hash_corpus(dir, hash, err);
    if (!r) {
        r = fl_store_meta_get(m->store, "corpus", &a, &have, err);
        r = r == FL_ENOTFOUND ? FL_OK : r;
    }
    if (!r && !fl_str_eqz(have, hash)) {
        r = fl_store_import(m->store, dir, &how, NULL, err);
        if (!r)
            r = fl_store_meta_set(m->store, "corpus", fl_str_c(hash), err);
    }
    fl_arena_dispose(&a);
    return r;
}

/* A full disk, or a writer that takes long: what is there is found all the same. */
static int unless_late(struct fl_memory *m, int r, const fl_err *why, fl_err *err)
{
    struct fl_store_counts n;

    if ((r == FL_EIO || r == FL_EBACKEND) && fl_store_count(m->store, &n, NULL) == FL_OK) {
        fl_memory_say(m, "the memory could not be brought up to date: %.400s", why->msg);
        return FL_OK;
    }
    return r ? fl_fail(err, r, "%s", why->msg) : FL_OK;
}

int fl_memory_open(const fl_engine *e, const struct fl_memory_opts *opts, fl_memory **out,
                   fl_err *err)
{
    fl_memory *m = fl_calloc(1, sizeof(*m));
    char data[4096];
    fl_err why = {0};
    int r;

    if (!m)
        return fl_fail_nomem(err);
    m->engine = e;
    m->local = (struct fl_space){.keys = "", .files = "vectors-", .index_lock = {.fd = -1}};
    r = fl_memory_home(opts ? opts->home : NULL, m->dir, sizeof(m->dir) - 200, err);
    if (!r)
        r = fl_data_dir(data, sizeof(data), err);
    if (!r)
        r = fl_memory_open_model(m, data, err);
    if (!r)
        r = open_store(m, opts && opts->read_only, err);
    if (!r && !(opts && opts->no_import))
        r = unless_late(m, import_corpus(m, data, &why), &why, err);
    if (!r && !m->read_only && !(opts && opts->no_embed))
        r = unless_late(m, fl_memory_embed_missing(m, NULL, NULL, NULL, &why), &why, err);
    if (!r)
        r = fl_remote_open(m, opts, &m->remote, err);
    if (r) {
        fl_memory_free(m);
        return r;
    }
    *out = m;
    return FL_OK;
}

void fl_memory_free(fl_memory *m)
{
    if (!m)
        return;
    fl_memory_unload(m);
    fl_remote_free(m->remote);
    fl_store_close(m->store);
    fl_embedder_dispose(&m->local.embedder);
    fl_tokenizer_free(m->tokens);
    fl_free(m);
}

const char *fl_memory_note(const fl_memory *m)
{
    return m->note[0] ? m->note : NULL;
}

const char *fl_memory_dir(const fl_memory *m)
{
    return m->dir;
}
