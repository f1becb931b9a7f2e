/*
 * The log, read once more for a person who looks around in it.
 *
 * Nothing but the digest's lines is kept in memory, so a look reads the files again, from the
 * start: a file of some hundred megabytes takes under a second, and an index of its lines would
 * cost memory for every diagnosis, of which few are looked at. A file is read again only while its
 * size and time of change are those of the moment when the look was opened: line numbers of
 * another file would be false. For such a file, and for standard input and pipes, which are gone,
 * the answer comes out of what the digest kept (the lines around events, tracebacks, the first line
 * of each shape, the ends of files), and it is said that this is not all.
 */
#include "diagnose/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"

#define TEXT_MOST 65536

static void look_at_input(const fl_reader *r, size_t i, struct fl_log_input *out)
{
    const char *path;
    struct stat st;

    fl_reader_input(r, i, &path);
    *out = (struct fl_log_input){.size = -1};
    if (!path || stat(path, &st))
        return;
    out->regular = S_ISREG(st.st_mode);
    out->size = st.st_size;
    out->sec = st.st_mtim.tv_sec;
    out->nsec = st.st_mtim.tv_nsec;
}

/* The input that a file came from: its own, or the archive that it stands in. */
static uint32_t input_of(const fl_reader *r, const char *file)
{
    size_t n = fl_reader_inputs(r);
    uint32_t best = 0;
    size_t length = 0;

    for (size_t i = 0; i < n; i++) {
        const char *path, *name = fl_reader_input(r, i, &path);
        size_t k = strlen(name);
        if (k >= length && strncmp(file, name, k) == 0 && (!file[k] || file[k] == '/')) {
            best = (uint32_t)i;
            length = k;
        }
    }
    return best;
}

static int fill(fl_log *l, fl_err *err)
{
    size_t inputs = fl_reader_inputs(l->reader), files = fl_reader_files(l->reader);

    l->inputs = fl_calloc(inputs + 1, sizeof(*l->inputs));
    l->input_of = fl_calloc(files + 1, sizeof(*l->input_of));
    if (!l->inputs || !l->input_of)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < inputs; i++)
        look_at_input(l->reader, i, &l->inputs[i]);
    for (size_t i = 0; i < files; i++) {
        const struct fl_read_file *f = fl_reader_file(l->reader, i);
        struct fl_log_input *in = &l->inputs[l->input_of[i] = input_of(l->reader, f->name)];
        if (fl_map_set(&l->file_of, fl_str_c(f->name), (uint32_t)i))
            return fl_fail_nomem(err);
        /* It had another length when it was diagnosed. */
        if (f->path && !f->note && in->size >= 0 && (uint64_t)in->size != f->bytes)
            in->size = -1;
    }
    return fl_match_scratch_new(l->engine->matcher, &l->scratch, err);
}

int fl_log_open(const fl_engine *e, const fl_diagnosis *d, fl_log **out, fl_err *err)
{
    fl_log *l;
    int r;

    if (!d->job.gather)
        return fl_fail(err, FL_EUSAGE,
                       "this log was read without keeping what a second look needs; "
                       "set fl_diagnose_opts.digest");
    l = fl_calloc(1, sizeof(*l));
    if (!l)
        return fl_fail_nomem(err);
    l->engine = e;
    l->d = d;
    l->reader = d->job.reader;
    fl_map_init(&l->file_of);
    fl_buf_init(&l->text, TEXT_MOST + 16);
    r = fill(l, err);
    if (r) {
        fl_log_free(l);
        return r;
    }
    *out = l;
    return FL_OK;
}

void fl_log_free(fl_log *l)
{
    if (!l)
        return;
    fl_match_scratch_free(l->scratch);
    fl_map_dispose(&l->file_of);
    fl_buf_dispose(&l->text);
    fl_free(l->inputs);
    fl_free(l->input_of);
    fl_free(l->kept);
    fl_free(l);
}

const char *fl_log_file(const fl_log *l, size_t i)
{
    return i < fl_reader_files(l->reader) ? fl_reader_file(l->reader, i)->name : NULL;
}

static int keep(fl_log *l, uint32_t file, uint64_t line, fl_str text, fl_err *err)
{
    if (!line || file >= fl_reader_files(l->reader))
        return FL_OK;
    if (fl_grow((void **)&l->kept, &l->kept_cap, l->nkept + 1, sizeof(*l->kept)))
        return fl_fail_nomem(err);
    l->kept[l->nkept++] = (struct fl_kept_line){file, line, text};
    return FL_OK;
}

/* By file and line; of one line the longest text first. */
static int by_place(const void *x, const void *y)
{
    const struct fl_kept_line *a = x, *b = y;

    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->text.n == b->text.n ? 0 : a->text.n > b->text.n ? -1 : 1;
}

static int keep_lines(fl_log *l, const struct fl_kept *v, size_t n, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; !r && i < n; i++)
        r = keep(l, v[i].at.file, v[i].at.line, v[i].text, err);
    return r;
}

static int keep_evidence(fl_log *l, fl_err *err)
{
    const struct fl_report *rep = &l->d->report;
    uint32_t file;
    int r = FL_OK;

    for (size_t i = 0; !r && i < rep->nevidence; i++)
        if (rep->evidence[i].at.file && rep->evidence[i].text &&
            fl_map_get(&l->file_of, fl_str_c(rep->evidence[i].at.file), &file))
            r = keep(l, file, rep->evidence[i].at.line, fl_str_c(rep->evidence[i].text), err);
    return r;
}

int fl_log_keep(fl_log *l, fl_err *err)
{
    const struct fl_gather *g = l->d->job.gather;
    size_t n = 0;
    int r = FL_OK;

    if (l->sorted)
        return FL_OK;
    l->nkept = 0;
    for (size_t i = 0; !r && i < g->ncontexts; i++)
        r = keep_lines(l, g->contexts[i].line, g->contexts[i].n, err);
    for (size_t i = 0; !r && i < g->nwholes; i++)
        r = keep_lines(l, g->wholes[i].line, g->wholes[i].n, err);
    for (size_t i = 0; !r && i < g->nendings; i++)
        r = keep_lines(l, g->endings[i].line, g->endings[i].n, err);
    for (size_t i = 0; !r && i < g->shapes.n; i++)
        r = keep(l, g->shapes.rows[i].first.file, g->shapes.rows[i].first.line,
                 g->shapes.rows[i].text, err);
    if (!r)
        r = keep_evidence(l, err);
    if (r)
        return r;
    if (l->nkept)
        qsort(l->kept, l->nkept, sizeof(*l->kept), by_place);
    for (size_t i = 0; i < l->nkept; i++)
        if (!n || l->kept[n - 1].file != l->kept[i].file || l->kept[n - 1].line != l->kept[i].line)
            l->kept[n++] = l->kept[i];
    l->nkept = n;
    l->sorted = true;
    return FL_OK;
}

static bool cancelled(const struct fl_log_look *look, struct fl_log_seen *seen)
{
    if (!look->cancel || !*look->cancel)
        return false;
    seen->stopped = true;
    return true;
}

/* A file of a branch under the number that it had when it was diagnosed. */
static uint32_t number_of(const fl_log *l, const fl_reader *branch, uint32_t file)
{
    uint32_t at;

    if (!fl_map_get(&l->file_of, fl_str_c(fl_reader_file(branch, file)->name), &at))
        return UINT32_MAX;
    return at;
}

static int walk_block(fl_log *l, uint32_t file, const struct fl_block *b,
                      const struct fl_log_look *look, struct fl_log_seen *seen, fl_walk_fn fn,
                      void *ctx, fl_err *err)
{
    fl_str rest = fl_str_n(b->data, b->len);
    uint64_t lfs = 0;
    int r = 0;

    (void)l;
    while (rest.n && !r) {
        size_t at = b->len - rest.n;
        fl_str text = fl_str_cut(&rest, '\n');
        uint64_t number = fl_block_line(b, at, lfs++);
        r = fn(ctx, file, number, text, err);
        if (!r && lfs % 1024 == 0 && cancelled(look, seen))
            return 1;
    }
    return r;
}

static int walk_input(fl_log *l, size_t input, uint32_t only, const struct fl_log_look *look,
                      struct fl_log_seen *seen, fl_walk_fn fn, void *ctx, fl_err *err)
{
    fl_reader *branch = NULL;
    struct fl_block b;
    fl_err why = {0};
    int r = fl_reader_branch(l->reader, input, &branch, &why), code = 0;

    while (!r && !code && (r = fl_reader_next(branch, &b, &why)) > 0) {
        uint32_t file = number_of(l, branch, b.file);
        r = 0;
        if (file != UINT32_MAX && (only == UINT32_MAX || only == file))
            code = walk_block(l, file, &b, look, seen, fn, ctx, err);
        if (!code && cancelled(look, seen))
            code = 1;
    }
    fl_reader_free(branch);
    if (r < 0)
        return fl_fail(err, r, "%s", why.msg);
    return code;
}

static int walk_kept(fl_log *l, size_t input, uint32_t only, const struct fl_log_look *look,
                     struct fl_log_seen *seen, fl_walk_fn fn, void *ctx, fl_err *err)
{
    int r = fl_log_keep(l, err);

    for (size_t i = 0; !r && i < l->nkept; i++) {
        const struct fl_kept_line *k = &l->kept[i];
        if (l->input_of[k->file] != input || (only != UINT32_MAX && only != k->file))
            continue;
        r = fn(ctx, k->file, k->line, k->text, err);
        if (!r && cancelled(look, seen))
            return 1;
    }
    return r;
}

static bool can_read_again(const fl_log *l, size_t input, const char **why)
{
    const struct fl_log_input *was = &l->inputs[input];
    struct fl_log_input is;

    look_at_input(l->reader, input, &is);
    *why = "cannot be read twice";
    if (!was->regular)
        return false;
    *why = "has changed since it was read";
    return is.regular && is.size == was->size && is.sec == was->sec && is.nsec == was->nsec;
}

int fl_log_walk(fl_log *l, uint32_t only, const struct fl_log_look *look, struct fl_log_seen *seen,
                fl_walk_fn fn, void *ctx, fl_err *err)
{
    size_t n = fl_reader_inputs(l->reader), lost = 0;
    int r = 0;

    for (size_t i = 0; !r && i < n; i++) {
        const char *why, *path, *name = fl_reader_input(l->reader, i, &path);
        if (only != UINT32_MAX && l->input_of[only] != i)
            continue;
        if (can_read_again(l, i, &why)) {
            r = walk_input(l, i, only, look, seen, fn, ctx, err);
            continue;
        }
        if (!lost++)
            snprintf(seen->note, sizeof(seen->note),
                     "%.200s %s: only the lines that the digest kept of it were looked at",
                     path ? name : "standard input", why);
        r = walk_kept(l, i, only, look, seen, fn, ctx, err);
    }
    if (lost > 1)
        snprintf(seen->note, sizeof(seen->note),
                 "%zu files have changed or cannot be read twice: of them only the lines that the "
                 "digest kept were looked at",
                 lost);
    return r < 0 ? r : FL_OK;
}

int fl_log_give(fl_log *l, const struct fl_log_look *look, struct fl_log_seen *seen, uint32_t file,
                uint64_t line, fl_str text, fl_str match, bool asked)
{
    struct fl_log_line out = {.at = {fl_log_file(l, file), line}, .asked = asked};

    fl_buf_clear(&l->text);
    fl_buf_add(&l->text, fl_str_sub(text, 0, TEXT_MOST));
    if (text.n > TEXT_MOST)
        fl_buf_addz(&l->text, "[...]");
    for (size_t i = 0; i < l->text.n; i++)
        if (!l->text.p[i])
            l->text.p[i] = ' ';
    out.text = l->text.p ? l->text.p : "";
    if (match.n && match.p >= text.p && (size_t)(match.p - text.p) + match.n <= TEXT_MOST) {
        out.match_at = (uint32_t)(match.p - text.p);
        out.match_len = (uint32_t)match.n;
    }
    seen->lines++;
    if (!look->fn(look->ctx, &out))
        return 0;
    seen->stopped = true;
    return 1;
}
