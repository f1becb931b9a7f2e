/*
 * Prompts out of files.
 *
 * The text that decides what a model does is edited more often than the code around it, and by
 * other people; so it is data, with the same strictness as the rules: what is written wrongly is an
 * error with its line when it is loaded, not a placeholder that a model gets to see. There are no
 * conditions and no loops in it. What is empty is said by the caller in words ("none"), which a
 * model understands better than a heading with nothing under it.
 *
 * An input's text is put in as it is and not looked at again. A log that holds {{digest}} stays a
 * log that holds {{digest}}.
 *
 * The hash is over the file's bytes and the schema's. A recording keeps it, so that an answer to
 * last month's prompt is not taken for one to today's.
 */
#include "llm/prompt.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/yaml.h"

#define MAX_PROMPT (256u << 10)
#define MAX_INPUTS 32

static bool name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next {{name}} in *rest: true with the text before it and its name, *rest behind it. */
static bool next_hole(fl_str *rest, fl_str *before, fl_str *name)
{
    size_t from = 0;

    for (;;) {
        ptrdiff_t at = fl_str_find(fl_str_from(*rest, from), FL_S("{{"));
        size_t start, end;
        if (at < 0)
            return false;
        start = end = from + (size_t)at + 2;
        while (end < rest->n && name_byte(rest->p[end]))
            end++;
        if (end > start && end + 1 < rest->n && rest->p[end] == '}' && rest->p[end + 1] == '}') {
            *before = fl_str_sub(*rest, 0, start - 2);
            *name = fl_str_sub(*rest, start, end - start);
            *rest = fl_str_from(*rest, end + 2);
            return true;
        }
        from = start;
    }
}

static size_t line_of(fl_str whole, const char *at)
{
    size_t line = 1;

    for (const char *p = whole.p; p < at; p++)
        line += *p == '\n';
    return line;
}

/* Marks the inputs that `text` uses; an unknown one is an error. */
static int check_holes(const struct fl_prompt *p, fl_str whole, fl_str text, bool *used,
                       fl_err *err)
{
    fl_str before, name;

    while (next_hole(&text, &before, &name)) {
        size_t i = 0;
        while (i < p->ninputs && !fl_str_eqz(name, p->inputs[i]))
            i++;
        if (i == p->ninputs)
            return fl_fail(err, FL_ERULE,
                           "%s:%zu: {{%.*s}} is no input of this prompt; name it under inputs or "
                           "correct it",
                           p->path, line_of(whole, name.p), FL_FMT(name));
        used[i] = true;
    }
    return FL_OK;
}

static int check_uses(const struct fl_prompt *p, fl_str whole, fl_err *err)
{
    bool used[MAX_INPUTS] = {false};
    int r = check_holes(p, whole, p->system, used, err);

    if (!r)
        r = check_holes(p, whole, p->user, used, err);
    for (size_t i = 0; !r && i < p->ninputs; i++)
        if (!used[i])
            r = fl_fail(err, FL_ERULE,
                        "%s: the input %s is not used; write {{%s}} where it belongs or take it "
                        "off inputs",
                        p->path, p->inputs[i], p->inputs[i]);
    return r;
}

/* ---- the schema ---- */

static int check_schema(const fl_json *o, const char *path, unsigned depth, fl_err *err);

static int check_members(const fl_json *o, const char *path, unsigned depth, fl_err *err)
{
    const fl_json *members = fl_json_get(o, "properties"), *needed = fl_json_get(o, "required");
    int r = FL_OK;

    if (!members || !fl_json_is_object(members))
        return fl_fail(err, FL_ERULE, "%s: the output schema has an object without properties",
                       path);
    for (const fl_json *n = fl_json_first(needed); n; n = fl_json_next(n))
        if (!fl_json_z(n) || !fl_json_get(members, fl_json_z(n)))
            return fl_fail(err, FL_ERULE,
                           "%s: the output schema requires \"%s\", which is none of its properties",
                           path, fl_json_z(n) ? fl_json_z(n) : "?");
    for (const fl_json *n = fl_json_first(members); n && !r; n = fl_json_next(n))
        r = check_schema(n, path, depth + 1, err);
    return r;
}

static int check_schema(const fl_json *o, const char *path, unsigned depth, fl_err *err)
{
    static const char *const types[] = {"object",  "array",   "string", "number",
                                        "integer", "boolean", "null"};
    const char *type = fl_json_is_object(o) ? fl_json_z(fl_json_get(o, "type")) : NULL;
    size_t i = 0;

    while (type && i < 7 && strcmp(type, types[i]) != 0)
        i++;
    if (!type || i == 7 || depth > 16)
        return fl_fail(err, FL_ERULE, "%s: the output schema has a part without a valid type",
                       path);
    if (!strcmp(type, "object"))
        return check_members(o, path, depth, err);
    if (!strcmp(type, "array"))
        return check_schema(fl_json_get(o, "items"), path, depth + 1, err);
    return FL_OK;
}

static int read_schema(const fl_yaml *n, const char *path, fl_arena *arena, struct fl_prompt *p,
                       fl_err *err)
{
    fl_str text = {NULL, 0};
    fl_json *root = NULL;
    fl_buf file;
    int r = fl_yaml_str(n, &text, err);

    fl_buf_init(&file, MAX_PROMPT);
    if (!r && !fl_str_starts(fl_str_trim(text), FL_S("{"))) {
        ptrdiff_t slash = fl_str_rfind_c(fl_str_c(path), '/');
        const char *dir = slash < 0 ? "." : fl_arena_z(arena, fl_str_n(path, (size_t)slash));
        const char *name = fl_arena_z(arena, text);
        const char *full = dir && name ? fl_file_join(arena, dir, name) : NULL;
        r = full ? fl_file_read(full, &file, err) : fl_fail_nomem(err);
        text = fl_buf_str(&file);
    }
    if (!r)
        r = fl_json_parse(text, path, &root, err);
    if (!r)
        r = check_schema(root, path, 0, err);
    if (!r) {
        p->schema = fl_arena_str(arena, fl_str_trim(text));
        if (!p->schema.p)
            r = fl_fail_nomem(err);
    }
    fl_json_free(root);
    fl_buf_dispose(&file);
    return r;
}

/* ---- loading ---- */

/* Parts "---\n head ---\n body"; CR before LF is a blank of the text and does no harm. */
static int split(fl_str text, const char *path, fl_str *head, fl_str *body, fl_err *err)
{
    fl_str rest = text, line = fl_str_cut(&rest, '\n');
    const char *start = rest.p;

    if (!fl_str_eqz(fl_str_trim(line), "---"))
        return fl_fail(err, FL_ERULE,
                       "%s:1: a prompt begins with a line of ---, its front matter "
                       "and another ---",
                       path);
    while (rest.n) {
        line = fl_str_cut(&rest, '\n');
        if (!fl_str_eqz(fl_str_trim(line), "---"))
            continue;
        *head = fl_str_n(start, (size_t)(line.p - start));
        *body = rest;
        return FL_OK;
    }
    return fl_fail(err, FL_ERULE, "%s: the front matter does not end; close it with ---", path);
}

static int split_parts(struct fl_prompt *p, fl_str body, fl_err *err)
{
    fl_str rest = body, *part = NULL;
    const char *start = body.p;

    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n'), word = fl_str_trim(line);
        bool system = fl_str_eqz(word, "[system]"), user = fl_str_eqz(word, "[user]");
        if (!system && !user) {
            if (!part && word.n)
                return fl_fail(err, FL_ERULE, "%s: text before [system] or [user]", p->path);
            continue;
        }
        if (part)
            *part = fl_str_trim(fl_str_n(start, (size_t)(line.p - start)));
        part = system ? &p->system : &p->user;
        if (part->p)
            return fl_fail(err, FL_ERULE, "%s: %.*s stands there twice", p->path, FL_FMT(word));
        start = rest.n ? rest.p : body.p + body.n;
        *part = fl_str_n(start, 0);
    }
    if (part)
        *part = fl_str_trim(fl_str_n(start, (size_t)(body.p + body.n - start)));
    if (!p->user.n)
        return fl_fail(err, FL_ERULE, "%s: the prompt has no [user] part", p->path);
    return FL_OK;
}

static int read_inputs(const fl_yaml *map, fl_arena *arena, struct fl_prompt *p, fl_err *err)
{
    const fl_yaml *node = fl_yaml_get(map, "inputs");
    const char **names;
    fl_str *list = NULL;
    size_t n = 0;
    int r = node ? fl_yaml_strs(node, arena, &list, &n, err) : FL_OK;

    if (r)
        return r;
    if (n > MAX_INPUTS)
        return fl_yaml_fail(node, FL_ERULE, err, "more than %d inputs", MAX_INPUTS);
    names = fl_arena_alloc(arena, (n + 1) * sizeof(*names));
    if (!names)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        names[i] = fl_arena_z(arena, list[i]);
        if (!names[i])
            return fl_fail_nomem(err);
        for (size_t k = 0; k < list[i].n; k++)
            if (!name_byte(list[i].p[k]))
                return fl_yaml_fail(node, FL_ERULE, err,
                                    "the input '%s' has other bytes than a-z, 0-9 and _", names[i]);
    }
    p->inputs = names;
    p->ninputs = n;
    return FL_OK;
}

static int read_head(const fl_yaml *map, fl_arena *arena, struct fl_prompt *p, fl_err *err)
{
    static const char *const known[] = {"id",           "version", "inputs", "output_schema",
                                        "token_budget", NULL};
    fl_str id = {NULL, 0};
    double version = 0, budget = 0;
    int r = fl_yaml_known(map, known, err);

    if (!r)
        r = fl_yaml_str(fl_yaml_get(map, "id"), &id, err);
    if (!r)
        r = fl_yaml_num(fl_yaml_get(map, "version"), &version, err);
    if (!r)
        r = fl_yaml_num(fl_yaml_get(map, "token_budget"), &budget, err);
    if (!r && !id.n)
        r = fl_yaml_fail(map, FL_ERULE, err, "a prompt needs an id");
    if (!r && !(version >= 1 && version < 1e6))
        r = fl_yaml_fail(map, FL_ERULE, err, "a prompt needs a version, 1 or more");
    if (!r && !(budget >= 1 && budget < 1e7))
        r = fl_yaml_fail(map, FL_ERULE, err, "a prompt needs a token_budget, 1 or more");
    if (!r)
        r = read_inputs(map, arena, p, err);
    if (!r && fl_yaml_get(map, "output_schema"))
        r = read_schema(fl_yaml_get(map, "output_schema"), p->path, arena, p, err);
    if (r)
        return r;
    p->id = fl_arena_z(arena, id);
    p->version = (unsigned)version;
    p->token_budget = (unsigned)budget;
    return p->id ? FL_OK : fl_fail_nomem(err);
}

static int check_name(const struct fl_prompt *p, fl_err *err)
{
    fl_str name = fl_str_c(p->path);
    ptrdiff_t slash = fl_str_rfind_c(name, '/');

    if (slash >= 0)
        name = fl_str_from(name, (size_t)slash + 1);
    if (fl_str_ends(name, FL_S(".md")))
        name.n -= 3;
    return fl_str_eqz(name, p->id)
               ? FL_OK
               : fl_fail(err, FL_ERULE, "%s: its id is %s; give file and id the same name", p->path,
                         p->id);
}

static void set_hash(struct fl_prompt *p, fl_str text)
{
    uint64_t parts[2] = {fl_hash64(text.p, text.n, 1), fl_hash64(p->schema.p, p->schema.n, 2)};

    fl_hash128_hex(parts, sizeof(parts), p->hash);
}

int fl_prompt_load(const char *path, fl_arena *arena, struct fl_prompt *out, fl_err *err)
{
    struct fl_prompt p = {0};
    const fl_yaml *map = NULL;
    fl_str text, head = {NULL, 0}, body = {NULL, 0};
    fl_buf file;
    int r;

    fl_buf_init(&file, MAX_PROMPT);
    r = fl_file_read(path, &file, err);
    if (r)
        goto out;
    text = fl_arena_str(arena, fl_buf_str(&file));
    p.path = fl_arena_z(arena, fl_str_c(path));
    if (!text.p || !p.path) {
        r = fl_fail_nomem(err);
        goto out;
    }
    r = split(text, path, &head, &body, err);
    if (!r)
        r = fl_yaml_parse(head, path, arena, &map, err);
    if (!r)
        r = read_head(map, arena, &p, err);
    if (!r)
        r = split_parts(&p, body, err);
    if (!r)
        r = check_uses(&p, text, err);
    if (!r)
        r = check_name(&p, err);
    if (!r) {
        set_hash(&p, text);
        *out = p;
    }
out:
    fl_buf_dispose(&file);
    return r;
}

int fl_prompt_lint(const char *dir, fl_buf *report, size_t *n, size_t *faults, fl_err *err)
{
    const char **names = NULL;
    struct fl_prompt p;
    size_t count = 0;
    fl_arena arena;
    int r;

    *n = *faults = 0;
    fl_arena_init(&arena);
    r = fl_file_list(dir, &arena, &names, &count, err);
    for (size_t i = 0; !r && i < count; i++) {
        fl_err said = {0};
        const char *path;
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".md")) || !strcmp(names[i], "README.md"))
            continue;
        path = fl_file_join(&arena, dir, names[i]);
        ++*n;
        if (path && !fl_prompt_load(path, &arena, &p, &said))
            continue;
        if (!path || said.code == FL_ENOMEM)
            r = fl_fail_nomem(err);
        fl_buf_addf(report, "%s\n", said.msg);
        ++*faults;
    }
    if (!r)
        r = fl_buf_check(report, "the report on the prompts", err);
    fl_arena_dispose(&arena);
    return r;
}
