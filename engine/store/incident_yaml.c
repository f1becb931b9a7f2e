/*
 * Incidents out of YAML.
 *
 * Read a row at a time, so a file of a hundred thousand costs the memory of one. Every key is known
 * or an error, because a misspelt `evidnce:` would store an incident that nothing finds. YAML knows
 * only Unicode, and log lines are bytes: what is not UTF-8 comes as {escaped: '...'}, which a
 * person can read and an editor does not spoil. A !!binary tag would have been the YAML way, and
 * base64 is not something to review in a corpus.
 */
#include "store/incident.h"

#include "base/file.h"
#include "base/yaml.h"
#include "base/alloc.h"

struct reading {
    fl_incident_fn fn;
    void *ctx;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int unescape(const fl_yaml *n, fl_arena *a, fl_str *out, fl_err *err)
{
    fl_str s = n->text;
    char *to = fl_arena_alloc(a, s.n + 1);
    size_t at = 0;

    if (!to)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '\\') {
            to[at++] = s.p[i];
        } else if (i + 1 < s.n && s.p[i + 1] == '\\') {
            to[at++] = '\\';
            i++;
        } else if (i + 3 < s.n && s.p[i + 1] == 'x' && hex_digit(s.p[i + 2]) >= 0 &&
                   hex_digit(s.p[i + 3]) >= 0) {
            to[at++] = (char)(hex_digit(s.p[i + 2]) * 16 + hex_digit(s.p[i + 3]));
            i += 3;
        } else {
            return fl_yaml_fail(
                n, FL_ERULE, err,
                "an escaped text has '\\\\' or '\\xNN' behind a backslash; mend it");
        }
    }
    *out = fl_str_n(to, at);
    return FL_OK;
}

/* A scalar, or a map {escaped: scalar}. */
static int text_of(const fl_yaml *n, fl_arena *a, fl_str *out, fl_err *err)
{
    static const char *const known[] = {"escaped", NULL};
    int r;

    if (!n || n->kind != FL_YAML_MAP)
        return fl_yaml_str(n, out, err);
    r = fl_yaml_known(n, known, err);
    if (r)
        return r;
    if (n->n == 0 || n->first->kind != FL_YAML_SCALAR)
        return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' must be a text", FL_FMT(n->key));
    return unescape(n->first, a, out, err);
}

static int texts_of(const fl_yaml *n, fl_arena *a, const fl_str **out, size_t *count, fl_err *err)
{
    fl_str *v;
    size_t i = 0;
    int r = FL_OK;

    if (!n)
        return FL_OK;
    v = fl_arena_alloc(a, (n->n + 1) * sizeof(*v));
    if (!v)
        return fl_fail_nomem(err);
    if (n->kind == FL_YAML_LIST) {
        for (const fl_yaml *c = n->first; c && !r; c = c->next)
            r = text_of(c, a, &v[i++], err);
    } else {
        r = text_of(n, a, &v[i++], err);
    }
    if (r)
        return r;
    *out = v;
    *count = i;
    return FL_OK;
}

static int words_of(const fl_yaml *row, struct fl_incident *inc, fl_err *err)
{
    static const char *const kinds[] = {"incident", "follow_on", "harmless", NULL};
    static const char *const origins[] = {"user", "corpus", "confirmed", "corrected", NULL};
    const fl_yaml *count = fl_yaml_get(row, "count");
    int kind = 0, origin = 0;
    int r = fl_yaml_word(fl_yaml_get(row, "kind"), kinds, &kind, err);

    if (!r)
        r = fl_yaml_word(fl_yaml_get(row, "origin"), origins, &origin, err);
    if (r)
        return r;
    if (count && (count->kind != FL_YAML_SCALAR || !fl_str_to_u64(count->text, &inc->count) ||
                  inc->count == 0 || inc->count > INT64_MAX / 2))
        return fl_yaml_fail(count, FL_ERULE, err, "'count' must be a whole number from 1");
    inc->kind = (enum fl_incident_kind)kind;
    inc->origin = (enum fl_incident_origin)origin;
    return FL_OK;
}

static int incident_of(const fl_yaml *row, fl_arena *a, struct fl_incident *inc, fl_err *err)
{
    static const char *const known[] = {
        "id",     "kind",   "cause",    "title",   "stack",   "phase", "explanation", "fix",
        "source", "origin", "evidence", "created", "updated", "count", "shape",       NULL};
    struct {
        const char *key;
        fl_str *to;
    } texts[] = {{"id", &inc->id},           {"cause", &inc->cause},
                 {"title", &inc->title},     {"phase", &inc->phase},
                 {"fix", &inc->fix},         {"explanation", &inc->explanation},
                 {"source", &inc->source},   {"created", &inc->created},
                 {"updated", &inc->updated}, {"shape", &inc->shape}};
    int r = fl_yaml_known(row, known, err);

    for (size_t i = 0; !r && i < sizeof(texts) / sizeof(*texts); i++)
        r = text_of(fl_yaml_get(row, texts[i].key), a, texts[i].to, err);
    if (!r)
        r = texts_of(fl_yaml_get(row, "stack"), a, &inc->stack, &inc->nstack, err);
    if (!r)
        r = texts_of(fl_yaml_get(row, "evidence"), a, &inc->evidence, &inc->nevidence, err);
    if (!r)
        r = words_of(row, inc, err);
    return r;
}

static int read_row(void *ctx, const fl_yaml *row, fl_err *err)
{
    struct reading *rd = ctx;
    struct fl_incident inc = {.count = 1, .file = row->file, .line = row->line};
    fl_err why;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = incident_of(row, &a, &inc, err);
    if (!r && fl_incident_check(&inc, true, &why))
        r = fl_yaml_fail(row, FL_ERULE, err, "%s", why.msg);
    if (!r)
        r = rd->fn(rd->ctx, &inc, err);
    fl_arena_dispose(&a);
    return r;
}

int fl_incidents_parse(fl_str text, const char *file, fl_incident_fn fn, void *ctx, fl_err *err)
{
    struct reading rd = {fn, ctx};

    return fl_yaml_rows(text, file, "incidents", read_row, &rd, err);
}

/* A positive answer of `fn` must end the folder too, which success alone does not tell. */
struct ending {
    struct reading rd;
    bool ended;
};

static int read_until(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    struct ending *e = ctx;
    int r = e->rd.fn(e->rd.ctx, inc, err);

    e->ended = r > 0;
    return r;
}

static int load_folder(const char *path, struct ending *e, fl_err *err)
{
    struct reading rd = {read_until, e};
    const char **names = NULL;
    size_t n = 0, found = 0;
    fl_arena a;
    int r;

    fl_arena_init(&a);
    r = fl_file_list(path, &a, &names, &n, err);
    for (size_t i = 0; !r && !e->ended && i < n; i++) {
        const char *file = fl_file_join(&a, path, names[i]);
        if (!file)
            r = fl_fail_nomem(err);
        else if (fl_str_ends(fl_str_c(names[i]), FL_S(".yaml")) && names[i][0] != '.') {
            r = fl_yaml_rows_load(file, "incidents", read_row, &rd, err);
            found++;
        }
    }
    if (!r && !found)
        r = fl_fail(err, FL_EINPUT, "%s: holds no .yaml file; name another folder", path);
    fl_arena_dispose(&a);
    return r;
}

int fl_incidents_load(const char *path, fl_incident_fn fn, void *ctx, fl_err *err)
{
    struct ending e = {{fn, ctx}, false};

    if (fl_file_is_dir(path))
        return load_folder(path, &e, err);
    return fl_yaml_rows_load(path, "incidents", read_row, &e.rd, err);
}
