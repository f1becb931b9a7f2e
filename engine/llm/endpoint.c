/*
 * Where a request goes, and with which key.
 *
 * A URL is written as the server's manual writes it: up to /v1, with or without the slash behind
 * it, some with /chat/completions already at the end; only a host gets /v1. Azure's older form has
 * the deployment in the path and the version in the query, and takes the key in a header of its
 * own; hosts of azure.com get that header in the newer form too.
 *
 * A key is read when it is needed and from where it is kept, a file or the environment, so that it
 * stands in no configuration and no argument. One that was promised and is not there is an error of
 * that endpoint: sending the request without it would get a 401 that says less.
 */
#include <stdio.h>
#include <stdlib.h>

#include "llm/parts.h"

#include "base/alloc.h"
#include "base/file.h"

#define AZURE_VERSION "2024-10-21"

const char *fl_llm_endpoint_name(const struct fl_llm_endpoint *e, char out[300])
{
    if (e->name && *e->name)
        return e->name;
    fl_http_show_url(e->url ? e->url : "", out, 300);
    return out;
}

static void drop_tail(fl_str *s, const char *tail)
{
    while (s->n && s->p[s->n - 1] == '/')
        s->n--;
    if (fl_str_ends(*s, fl_str_c(tail)))
        s->n -= strlen(tail);
    while (s->n && s->p[s->n - 1] == '/')
        s->n--;
}

static bool has_path(fl_str base)
{
    ptrdiff_t at = fl_str_find(base, FL_S("://"));

    return at >= 0 && fl_str_has(fl_str_from(base, (size_t)at + 3), FL_S("/"));
}

static bool is_azure(fl_str base)
{
    ptrdiff_t at = fl_str_find(base, FL_S("://"));
    fl_str host = fl_str_from(base, at < 0 ? 0 : (size_t)at + 3);

    host = fl_str_cut(&host, '/');
    host = fl_str_cut(&host, ':');
    return fl_str_ends(host, FL_S(".azure.com")) || fl_str_has(base, FL_S("/openai/deployments/"));
}

static void make_url(const struct fl_llm_endpoint *e, const char *path, fl_buf *out)
{
    fl_str query = fl_str_c(e->url), base = fl_str_cut(&query, '?');
    bool deployment = fl_str_has(base, FL_S("/openai/deployments/"));
    const char *mark = "?";

    drop_tail(&base, "/chat/completions");
    drop_tail(&base, "/embeddings");
    if (deployment && !strcmp(path, "/models")) { /* Azure lists them above the deployment */
        ptrdiff_t at = fl_str_find(base, FL_S("/deployments/"));
        base = fl_str_sub(base, 0, (size_t)at);
    }
    fl_buf_add(out, base);
    if (!has_path(base))
        fl_buf_addz(out, "/v1");
    fl_buf_addz(out, path);
    if (query.n) {
        fl_buf_addf(out, "?%.*s", FL_FMT(query));
        mark = "&";
    }
    if (deployment && !fl_str_has(query, FL_S("api-version=")))
        fl_buf_addf(out, "%sapi-version=%s", mark, e->api_version ? e->api_version : AZURE_VERSION);
}

static int take_key(const struct fl_llm_endpoint *e, fl_buf *out, fl_err *err)
{
    char room[300];
    const char *shown = fl_llm_endpoint_name(e, room);
    fl_err why = {0};
    fl_str key;
    fl_buf file;
    int r = FL_OK;

    if (e->api_key_env && *e->api_key_env) {
        const char *z = getenv(e->api_key_env);
        if (!z || !*z)
            return fl_fail(err, FL_EUSAGE,
                           "%s: the environment variable %s, which holds its key, is not set",
                           shown, e->api_key_env);
        fl_buf_add(out, fl_str_trim(fl_str_c(z)));
        return fl_buf_check(out, "the key", err);
    }
    if (!e->api_key_file || !*e->api_key_file)
        return FL_OK;
    fl_buf_init(&file, 65536);
    r = fl_file_read(e->api_key_file, &file, &why);
    if (r)
        fl_fail(err, r, "%s: its key cannot be read: %s", shown, why.msg);
    key = fl_str_trim(fl_buf_str(&file));
    if (!r && (!key.n || fl_str_find_c(key, '\n') >= 0))
        r = fl_fail(err, FL_EUSAGE, "%s: %s: %s; it must hold the key in one line and nothing else",
                    shown, e->api_key_file, key.n ? "more than one line" : "empty");
    if (!r) {
        fl_buf_add(out, key);
        r = fl_buf_check(out, "the key", err);
    }
    fl_buf_dispose(&file);
    return r;
}

static void add(struct fl_llm_call *call, const char *name, const char *value, bool secret)
{
    call->headers[call->rq.nheaders++] = (struct fl_http_header){name, value, secret};
}

static int add_headers(struct fl_llm_call *call, const struct fl_llm_endpoint *e, bool azure,
                       fl_err *err)
{
    char room[300];

    if (e->nextra_headers > 32)
        return fl_fail(err, FL_EUSAGE, "%s: more than 32 extra_headers",
                       fl_llm_endpoint_name(e, room));
    add(call, "Content-Type", "application/json", false);
    add(call, "Accept", "application/json, text/event-stream", false);
    if (call->has_key) {
        if (azure)
            add(call, "api-key", call->key.p, true);
        else
            add(call, "Authorization", call->key.p, true);
    }
    for (size_t i = 0; i < e->nextra_headers; i++)
        call->headers[call->rq.nheaders++] = e->extra_headers[i];
    return FL_OK;
}

int fl_llm_call_init(struct fl_llm_call *call, const struct fl_llm_endpoint *e, const char *path,
                     fl_err *err)
{
    fl_buf key;
    bool azure;
    int r;

    memset(call, 0, sizeof(*call));
    fl_buf_init(&call->url, 8192);
    fl_buf_init(&call->key, 65536);
    fl_buf_init(&call->note, 256);
    fl_buf_init(&call->body, 64u << 20);
    fl_buf_init(&key, 65536);
    if (!e->url || !*e->url)
        return fl_fail(err, FL_EUSAGE,
                       "an endpoint has no url; write one such as "
                       "http://127.0.0.1:8080/v1");
    azure = is_azure(fl_str_c(e->url));
    make_url(e, path, &call->url);
    r = fl_buf_check(&call->url, "an endpoint's url", err);
    if (!r)
        r = take_key(e, &key, err);
    call->has_key = key.n > 0;
    if (!r && call->has_key) {
        fl_buf_addf(&call->key, "%s%s", azure ? "" : "Bearer ", key.p);
        r = fl_buf_check(&call->key, "the key", err);
    }
    if (!r)
        r = add_headers(call, e, azure, err);
    call->rq.url = call->url.p;
    call->rq.headers = call->headers;
    call->rq.ca_file = e->ca_file;
    call->rq.proxy = e->proxy;
    call->rq.connect_timeout = e->connect_timeout;
    call->rq.timeout = e->timeout;
    fl_buf_dispose(&key);
    return r;
}

void fl_llm_call_dispose(struct fl_llm_call *call)
{
    fl_buf_dispose(&call->url);
    fl_buf_dispose(&call->key);
    fl_buf_dispose(&call->note);
    fl_buf_dispose(&call->body);
}
