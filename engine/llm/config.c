/*
 * An endpoint, as people write it into the configuration.
 *
 * A key is named and not written: a configuration is copied into tickets and repositories, and what
 * stands in it is read aloud. So `api_key` is refused by name, with the two keys that are meant.
 * The values of extra headers cannot be told apart from keys (some gateways want theirs there), so
 * all of them are treated as secrets: they are in no recording and are scrubbed from messages.
 */
#include <stdlib.h>

#include "llm/chat.h"

#include "base/alloc.h"
#include "base/file.h"

static int text(const fl_yaml *map, const char *key, fl_arena *arena, const char **out, fl_err *err)
{
    const fl_yaml *n = fl_yaml_get(map, key);
    fl_str s = {NULL, 0};
    int r = fl_yaml_str(n, &s, err);

    if (r || !n)
        return r;
    *out = fl_arena_z(arena, s);
    return *out ? FL_OK : fl_fail_nomem(err);
}

/* "~/" is the home folder; what begins with no '/' lies beside the configuration. */
static int path(const fl_yaml *map, const char *key, fl_arena *arena, const char **out, fl_err *err)
{
    const char *home = getenv("HOME");
    ptrdiff_t slash = map->file ? fl_str_rfind_c(fl_str_c(map->file), '/') : -1;
    int r = text(map, key, arena, out, err);

    if (r || !*out || **out == '/')
        return r;
    if (strncmp(*out, "~/", 2) == 0 && home) {
        *out = fl_file_join(arena, home, *out + 2);
    } else if (slash >= 0) {
        const char *dir = fl_arena_z(arena, fl_str_n(map->file, (size_t)slash));
        *out = dir ? fl_file_join(arena, dir, *out) : NULL;
    }
    return *out ? FL_OK : fl_fail_nomem(err);
}

static int number(const fl_yaml *map, const char *key, double most, double *out, fl_err *err)
{
    const fl_yaml *n = fl_yaml_get(map, key);
    int r = fl_yaml_num(n, out, err);

    if (!r && n && !(*out >= 0 && *out <= most))
        r = fl_yaml_fail(n, FL_ERULE, err, "%s must be from 0 to %g", key, most);
    return r;
}

static int read_numbers(const fl_yaml *map, struct fl_llm_endpoint *e, fl_err *err)
{
    double max_tokens = 0, context = 0;
    int r = number(map, "timeout", 86400, &e->timeout, err);

    if (!r)
        r = number(map, "connect_timeout", 86400, &e->connect_timeout, err);
    if (!r)
        r = number(map, "max_tokens", 1e6, &max_tokens, err);
    if (!r)
        r = number(map, "context", 1e8, &context, err);
    if (!r)
        r = number(map, "price_in", 1e6, &e->price_in, err);
    if (!r)
        r = number(map, "price_out", 1e6, &e->price_out, err);
    e->max_tokens = (unsigned)max_tokens;
    e->context = (unsigned)context;
    return r;
}

static int read_headers(const fl_yaml *n, fl_arena *arena, struct fl_llm_endpoint *e, fl_err *err)
{
    struct fl_http_header *h;

    if (!n)
        return FL_OK;
    if (n->kind != FL_YAML_MAP || n->n > 32)
        return fl_yaml_fail(n, FL_ERULE, err,
                            "extra_headers is a map of at most 32 names and values");
    h = fl_arena_alloc(arena, (n->n + 1) * sizeof(*h));
    if (!h)
        return fl_fail_nomem(err);
    e->extra_headers = h;
    for (const fl_yaml *c = n->first; c; c = c->next) {
        fl_str value = {NULL, 0};
        int r = fl_yaml_str(c, &value, err);
        if (r)
            return r;
        h->name = fl_arena_z(arena, c->key);
        h->value = fl_arena_z(arena, value);
        h->secret = true;
        if (!h->name || !h->value)
            return fl_fail_nomem(err);
        h++;
        e->nextra_headers++;
    }
    return FL_OK;
}

static int check(const fl_yaml *map, const struct fl_llm_endpoint *e, fl_err *err)
{
    if (!e->url || (strncmp(e->url, "http://", 7) != 0 && strncmp(e->url, "https://", 8) != 0))
        return fl_yaml_fail(map, FL_ERULE, err,
                            "an endpoint needs a url such as http://127.0.0.1:8080/v1");
    if (e->api_key_file && e->api_key_env)
        return fl_yaml_fail(map, FL_ERULE, err,
                            "an endpoint has one key: api_key_file or api_key_env");
    if (e->context && e->max_tokens >= e->context)
        return fl_yaml_fail(map, FL_ERULE, err,
                            "max_tokens (%u) leaves nothing of the context (%u) for the prompt",
                            e->max_tokens, e->context);
    return FL_OK;
}

int fl_llm_endpoint_read(const fl_yaml *map, fl_arena *arena, struct fl_llm_endpoint *out,
                         fl_err *err)
{
    static const char *const known[] = {
        "name",        "url",         "model",         "api_key_file",
        "api_key_env", "api_version", "timeout",       "connect_timeout",
        "max_tokens",  "context",     "extra_headers", "ca_file",
        "proxy",       "price_in",    "price_out",     NULL};
    struct fl_llm_endpoint e = {0};
    int r;

    if (map->kind != FL_YAML_MAP)
        return fl_yaml_fail(map, FL_ERULE, err, "an endpoint is a map with a url");
    if (fl_yaml_get(map, "api_key"))
        return fl_yaml_fail(fl_yaml_get(map, "api_key"), FL_ERULE, err,
                            "a key does not stand in a configuration; put it into a file and name "
                            "that by api_key_file, or into the environment by api_key_env");
    r = fl_yaml_known(map, known, err);
    if (!r)
        r = text(map, "name", arena, &e.name, err);
    if (!r)
        r = text(map, "url", arena, &e.url, err);
    if (!r)
        r = text(map, "model", arena, &e.model, err);
    if (!r)
        r = path(map, "api_key_file", arena, &e.api_key_file, err);
    if (!r)
        r = text(map, "api_key_env", arena, &e.api_key_env, err);
    if (!r)
        r = text(map, "api_version", arena, &e.api_version, err);
    if (!r)
        r = path(map, "ca_file", arena, &e.ca_file, err);
    if (!r)
        r = text(map, "proxy", arena, &e.proxy, err);
    if (!r)
        r = read_numbers(map, &e, err);
    if (!r)
        r = read_headers(fl_yaml_get(map, "extra_headers"), arena, &e, err);
    if (!r)
        r = check(map, &e, err);
    if (!r)
        *out = e;
    return r;
}
