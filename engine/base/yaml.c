/*
 * YAML trees with line numbers.
 *
 * The event interface of libyaml is used, not its documents: a document resolves aliases, and an
 * alias bomb in a user's rule folder should be an error with a line, not a hang. Scalars stay text;
 * what a text means is decided where it is read, so `no` is never a boolean by accident.
 *
 * A long list (a hundred thousand incidents) is read a row at a time. libyaml takes its input in
 * small pieces from a read function, which also counts: a row that has not ended after 16 MiB is
 * refused there, before a single endless scalar has filled the memory.
 */
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <yaml.h>

#include "base/file.h"

#define MAX_DEPTH 16
#define MAX_SIZE (16u << 20)

/* What the read function of a long list knows. */
struct feed {
    fl_str text; /* what is left of it, when fd < 0 */
    int fd, broken;
    size_t row; /* bytes read since the last row ended */
};

struct builder {
    yaml_parser_t *parser;
    fl_arena *arena;
    const char *file;
    fl_err *err;
    struct feed *feed; /* of a long list, else NULL */
};

static int parse_node(struct builder *b, yaml_event_t *ev, int depth, fl_yaml **out);

static int fail_at(struct builder *b, size_t line, const char *what)
{
    return fl_fail(b->err, FL_ERULE, "%s:%zu: %s", b->file, line + 1, what);
}

static int next_event(struct builder *b, yaml_event_t *ev)
{
    const struct feed *f = b->feed;

    if (yaml_parser_parse(b->parser, ev))
        return FL_OK;
    if (b->parser->error == YAML_MEMORY_ERROR)
        return fl_fail_nomem(b->err);
    if (f && f->broken)
        return fl_fail(b->err, FL_EINPUT, "%s: cannot be read: %s", b->file, strerror(f->broken));
    if (f && f->row > MAX_SIZE)
        return fail_at(b, b->parser->mark.line, "one row is larger than 16 MiB; split it");
    return fl_fail(b->err, FL_ERULE, "%s:%zu: not valid YAML: %s; mend the line", b->file,
                   b->parser->problem_mark.line + 1,
                   b->parser->problem ? b->parser->problem : "unreadable");
}

static fl_yaml *new_node(struct builder *b, const yaml_event_t *ev, enum fl_yaml_kind kind)
{
    fl_yaml *n = fl_arena_alloc(b->arena, sizeof(*n));

    if (n) {
        n->kind = kind;
        n->line = (unsigned)ev->start_mark.line + 1;
        n->file = b->file;
    }
    return n;
}

static int parse_children(struct builder *b, fl_yaml *parent, int depth)
{
    yaml_event_type_t end =
        parent->kind == FL_YAML_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    const fl_yaml **tail = &parent->first;
    yaml_event_t ev;
    fl_yaml *child;
    int r;

    for (;;) {
        fl_str key = {0};
        r = next_event(b, &ev);
        if (r)
            return r;
        if (ev.type == end) {
            yaml_event_delete(&ev);
            return FL_OK;
        }
        if (parent->kind == FL_YAML_MAP) {
            r = ev.type == YAML_SCALAR_EVENT
                    ? FL_OK
                    : fail_at(b, ev.start_mark.line, "a key must be a plain word");
            if (r == FL_OK)
                key = fl_arena_str(b->arena,
                                   fl_str_n((char *)ev.data.scalar.value, ev.data.scalar.length));
            if (r == FL_OK && !key.p)
                r = fl_fail_nomem(b->err);
            if (r == FL_OK && fl_yaml_get(parent, key.p))
                r = fl_fail(b->err, FL_ERULE, "%s:%zu: key '%s' stands here twice; remove one",
                            b->file, ev.start_mark.line + 1, key.p);
            yaml_event_delete(&ev);
            if (r == FL_OK)
                r = next_event(b, &ev);
            if (r)
                return r;
        }
        r = parse_node(b, &ev, depth + 1, &child);
        if (r)
            return r;
        child->key = key;
        *tail = child;
        tail = &child->next;
        parent->n++;
    }
}

/* Takes over `ev`. */
static int parse_node(struct builder *b, yaml_event_t *ev, int depth, fl_yaml **out)
{
    fl_yaml *n = NULL;
    int r = FL_OK;

    if (depth > MAX_DEPTH) {
        r = fail_at(b, ev->start_mark.line, "nested too deeply");
    } else if (ev->type == YAML_SCALAR_EVENT) {
        n = new_node(b, ev, FL_YAML_SCALAR);
        if (n) {
            n->text = fl_arena_str(b->arena,
                                   fl_str_n((char *)ev->data.scalar.value, ev->data.scalar.length));
            n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        }
        if (!n || !n->text.p)
            r = fl_fail_nomem(b->err);
    } else if (ev->type == YAML_SEQUENCE_START_EVENT || ev->type == YAML_MAPPING_START_EVENT) {
        n = new_node(b, ev, ev->type == YAML_MAPPING_START_EVENT ? FL_YAML_MAP : FL_YAML_LIST);
        r = n ? parse_children(b, n, depth) : fl_fail_nomem(b->err);
    } else {
        r = fail_at(b, ev->start_mark.line, "aliases are not used here; write the value out");
    }
    yaml_event_delete(ev);
    if (r == FL_OK)
        *out = n;
    return r;
}

static int parse_document(struct builder *b, fl_yaml **out)
{
    yaml_event_t ev;
    bool seen = false;
    int r;

    for (;;) {
        r = next_event(b, &ev);
        if (r)
            return r;
        switch (ev.type) {
        case YAML_STREAM_END_EVENT:
            yaml_event_delete(&ev);
            return FL_OK;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            yaml_event_delete(&ev);
            break;
        default:
            if (seen) {
                r = fail_at(b, ev.start_mark.line, "only one document a file");
                yaml_event_delete(&ev);
                return r;
            }
            seen = true;
            r = parse_node(b, &ev, 0, out);
            if (r)
                return r;
        }
    }
}

int fl_yaml_parse(fl_str text, const char *file, fl_arena *arena, const fl_yaml **out, fl_err *err)
{
    yaml_parser_t parser;
    struct builder b = {&parser, arena, NULL, err, NULL};
    fl_yaml *root = NULL;
    int r;

    if (text.n > MAX_SIZE)
        return fl_fail(err, FL_ERULE, "%s: larger than 16 MiB; split it", file);
    b.file = fl_arena_z(arena, fl_str_c(file));
    if (!b.file || !yaml_parser_initialize(&parser))
        return fl_fail_nomem(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    r = parse_document(&b, &root);
    yaml_parser_delete(&parser);
    if (r)
        return r;
    if (!root) {
        root = fl_arena_alloc(arena, sizeof(*root));
        if (!root)
            return fl_fail_nomem(err);
        *root = (fl_yaml){.kind = FL_YAML_MAP, .line = 1, .file = b.file};
    }
    *out = root;
    return FL_OK;
}

int fl_yaml_load(const char *path, fl_arena *arena, const fl_yaml **out, fl_err *err)
{
    fl_buf text;
    int r;

    fl_buf_init(&text, MAX_SIZE);
    r = fl_file_read(path, &text, err);
    if (r == FL_OK)
        r = fl_yaml_parse(fl_buf_str(&text), path, arena, out, err);
    fl_buf_dispose(&text);
    return r;
}

static int feed_read(void *ctx, unsigned char *to, size_t size, size_t *got)
{
    struct feed *f = ctx;
    ssize_t n;

    *got = 0;
    if (f->row > MAX_SIZE)
        return 0;
    if (f->fd < 0) {
        n = (ssize_t)(size < f->text.n ? size : f->text.n);
        if (n)
            memcpy(to, f->text.p, (size_t)n);
        f->text = fl_str_from(f->text, (size_t)n);
    } else {
        do
            n = read(f->fd, to, size);
        while (n < 0 && errno == EINTR);
    }
    if (n < 0) {
        f->broken = errno;
        return 0;
    }
    f->row += (size_t)n;
    *got = (size_t)n;
    return 1;
}

struct rows {
    const char *key;
    fl_yaml_row_fn fn;
    void *ctx;
};

/* The rows of the list up to its end. */
static int each_row(struct builder *b, const struct rows *rows)
{
    fl_arena arena;
    yaml_event_t ev;
    fl_yaml *row = NULL;
    int r = next_event(b, &ev);

    while (r == FL_OK && ev.type != YAML_SEQUENCE_END_EVENT) {
        fl_arena_init(&arena);
        b->arena = &arena;
        r = parse_node(b, &ev, 2, &row);
        b->feed->row = 0;
        if (r == FL_OK)
            r = rows->fn(rows->ctx, row, b->err);
        fl_arena_dispose(&arena);
        if (r == FL_OK)
            r = next_event(b, &ev);
    }
    return r; /* the end of a list holds no memory */
}

/* The key of the document's map, then its list. */
static int list_of(struct builder *b, const struct rows *rows)
{
    yaml_event_t ev;
    size_t line;
    bool right, list, none;
    int r = next_event(b, &ev);

    if (r)
        return r;
    line = ev.start_mark.line + 1;
    right = ev.type == YAML_SCALAR_EVENT &&
            fl_str_eqz(fl_str_n((char *)ev.data.scalar.value, ev.data.scalar.length), rows->key);
    none = ev.type == YAML_MAPPING_END_EVENT;
    yaml_event_delete(&ev);
    if (none)
        return FL_OK;
    if (!right)
        return fl_fail(b->err, FL_ERULE, "%s:%zu: unknown key; a file holds only '%s:'", b->file,
                       line, rows->key);
    r = next_event(b, &ev);
    if (r)
        return r;
    list = ev.type == YAML_SEQUENCE_START_EVENT;
    none = ev.type == YAML_SCALAR_EVENT && ev.data.scalar.length == 0;
    line = ev.start_mark.line + 1;
    yaml_event_delete(&ev);
    if (!list && !none)
        return fl_fail(b->err, FL_ERULE, "%s:%zu: '%s' must be a list; begin each row with '- '",
                       b->file, line, rows->key);
    r = list ? each_row(b, rows) : FL_OK;
    if (r)
        return r;
    r = next_event(b, &ev);
    if (r)
        return r;
    none = ev.type == YAML_MAPPING_END_EVENT;
    line = ev.start_mark.line + 1;
    yaml_event_delete(&ev);
    return none ? FL_OK
                : fl_fail(b->err, FL_ERULE, "%s:%zu: unknown key; a file holds only '%s:'", b->file,
                          line, rows->key);
}

static int rows_document(struct builder *b, const struct rows *rows)
{
    yaml_event_t ev;
    bool seen = false;
    int r;

    for (;;) {
        r = next_event(b, &ev);
        if (r)
            return r;
        if (ev.type == YAML_STREAM_END_EVENT)
            return FL_OK;
        if (ev.type == YAML_STREAM_START_EVENT || ev.type == YAML_DOCUMENT_START_EVENT ||
            ev.type == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(&ev);
            continue;
        }
        if (seen)
            r = fail_at(b, ev.start_mark.line, "only one document a file");
        else if (ev.type == YAML_SCALAR_EVENT && ev.data.scalar.length == 0)
            r = FL_OK;
        else if (ev.type != YAML_MAPPING_START_EVENT)
            r = fl_fail(b->err, FL_ERULE, "%s:%zu: begin the file with '%s:'", b->file,
                        ev.start_mark.line + 1, rows->key);
        else
            r = list_of(b, rows);
        yaml_event_delete(&ev);
        seen = true;
        if (r)
            return r;
    }
}

static int feed_rows(struct feed *f, const char *file, const struct rows *rows, fl_err *err)
{
    yaml_parser_t parser;
    struct builder b = {&parser, NULL, file, err, f};
    int r;

    if (!yaml_parser_initialize(&parser))
        return fl_fail_nomem(err);
    yaml_parser_set_input(&parser, feed_read, f);
    r = rows_document(&b, rows);
    yaml_parser_delete(&parser);
    return r > 0 ? FL_OK : r;
}

int fl_yaml_rows(fl_str text, const char *file, const char *key, fl_yaml_row_fn fn, void *ctx,
                 fl_err *err)
{
    struct feed f = {.text = text, .fd = -1};
    struct rows rows = {key, fn, ctx};

    return feed_rows(&f, file, &rows, err);
}

int fl_yaml_rows_load(const char *path, const char *key, fl_yaml_row_fn fn, void *ctx, fl_err *err)
{
    struct feed f = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct rows rows = {key, fn, ctx};
    int r;

    if (f.fd < 0)
        return fl_fail(err, FL_EINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    r = feed_rows(&f, path, &rows, err);
    close(f.fd);
    return r;
}

const fl_yaml *fl_yaml_get(const fl_yaml *map, const char *key)
{
    if (!map || map->kind != FL_YAML_MAP)
        return NULL;
    for (const fl_yaml *c = map->first; c; c = c->next)
        if (fl_str_eqz(c->key, key))
            return c;
    return NULL;
}

int fl_yaml_fail(const fl_yaml *at, int code, fl_err *err, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fl_fail(err, code, "%s:%u: %s", at->file, at->line, text);
}

/* Number of positions in which the words differ plus the difference of their lengths. */
static size_t distance(fl_str a, fl_str b)
{
    size_t n = a.n < b.n ? a.n : b.n, d = a.n > b.n ? a.n - b.n : b.n - a.n;

    for (size_t i = 0; i < n; i++)
        d += a.p[i] != b.p[i];
    return d;
}

static bool is_one_of(fl_str key, const char *const *known)
{
    for (; *known; known++)
        if (key.n && key.p[0] == (*known)[0] && fl_str_eqz(key, *known))
            return true;
    return false;
}

int fl_yaml_known(const fl_yaml *map, const char *const *known, fl_err *err)
{
    if (map->kind != FL_YAML_MAP)
        return fl_yaml_fail(map, FL_ERULE, err, "a map (key: value) is expected here");
    for (const fl_yaml *c = map->first; c; c = c->next) {
        const char *best = NULL;
        size_t least = SIZE_MAX;
        if (is_one_of(c->key, known))
            continue;
        for (const char *const *k = known; *k; k++) {
            size_t d = distance(c->key, fl_str_c(*k));
            if (d < least)
                least = d, best = *k;
        }
        return fl_yaml_fail(c, FL_ERULE, err, "unknown key '%.*s'; did you mean '%s'?",
                            FL_FMT(c->key), best ? best : "(none)");
    }
    return FL_OK;
}

static int scalar(const fl_yaml *n, const char *what, fl_err *err)
{
    if (n->kind == FL_YAML_SCALAR)
        return FL_OK;
    return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' must be %s", FL_FMT(n->key), what);
}

int fl_yaml_str(const fl_yaml *n, fl_str *out, fl_err *err)
{
    int r = n ? scalar(n, "a text", err) : FL_OK;

    if (n && r == FL_OK)
        *out = n->text;
    return r;
}

int fl_yaml_num(const fl_yaml *n, double *out, fl_err *err)
{
    int r = n ? scalar(n, "a number", err) : FL_OK;
    double v;

    if (!n || r)
        return r;
    if (n->text.n == 0 || fl_str_f64(n->text, &v) != n->text.n)
        return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' must be a number, not '%.*s'", FL_FMT(n->key),
                            FL_FMT(n->text));
    *out = v;
    return FL_OK;
}

int fl_yaml_bool(const fl_yaml *n, bool *out, fl_err *err)
{
    static const char *const words[] = {"false", "true", NULL};
    int v = 0, r = n ? fl_yaml_word(n, words, &v, err) : FL_OK;

    if (n && r == FL_OK)
        *out = v == 1;
    return r;
}

int fl_yaml_word(const fl_yaml *n, const char *const *words, int *out, fl_err *err)
{
    char list[300] = "";
    int r = n ? scalar(n, "one word", err) : FL_OK;

    if (!n || r)
        return r;
    for (int i = 0; words[i]; i++) {
        size_t at = strlen(list);
        if (fl_str_eqz(n->text, words[i])) {
            *out = i;
            return FL_OK;
        }
        snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", words[i]);
    }
    return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' is '%.*s' but must be one of: %s", FL_FMT(n->key),
                        FL_FMT(n->text), list);
}

int fl_yaml_strs(const fl_yaml *n, fl_arena *arena, fl_str **out, size_t *count, fl_err *err)
{
    const fl_yaml *c;
    fl_str *v;
    size_t i = 0;
    int r;

    if (!n)
        return FL_OK;
    if (n->kind == FL_YAML_MAP)
        return fl_yaml_fail(n, FL_ERULE, err, "'%.*s' must be a list of texts", FL_FMT(n->key));
    v = fl_arena_alloc(arena, (n->n + 1) * sizeof(*v));
    if (!v)
        return fl_fail_nomem(err);
    if (n->kind == FL_YAML_SCALAR) {
        v[i++] = n->text;
    } else {
        for (c = n->first; c; c = c->next) {
            r = scalar(c, "a list of texts", err);
            if (r)
                return r;
            v[i++] = c->text;
        }
    }
    *out = v;
    *count = i;
    return FL_OK;
}
