/*
 * Vectors from an endpoint.
 *
 * Texts go out in batches and come back with an index each, in any order. What comes is checked
 * before it is believed, because a wrong vector is silent: it finds other incidents, and nobody
 * knows why. Every text must have exactly one vector, all of one dimension and of the one that the
 * memory was built with, of finite numbers that are not all zero. One fault voids the whole result,
 * so that the caller never mixes vectors of two models.
 *
 * Vectors are brought to length 1 here, which some servers do and others do not.
 */
#include <math.h>
#include <stdio.h>

#include "llm/parts.h"

#include "base/alloc.h"

#define BATCH 32
#define MAX_DIMENSIONS 16384
#define MAX_REPLY (64u << 20)

struct result {
    float *v;
    unsigned dimensions;
    size_t n;
    const char *name;
};

static int put_body(const struct fl_llm_embed_opts *o, const fl_str *texts, size_t n, fl_buf *out,
                    fl_err *err)
{
    fl_json *root = fl_json_object(), *input;
    int r;

    if (o->endpoint->model && *o->endpoint->model)
        fl_json_put_z(root, "model", o->endpoint->model);
    fl_json_put_z(root, "encoding_format", "float");
    input = fl_json_put_array(root, "input");
    for (size_t i = 0; i < n; i++)
        fl_json_add_str(input, texts[i]);
    r = fl_json_print(root, false, out, err);
    fl_json_free(root);
    return r;
}

/* The first vector decides the dimension when nobody else has. */
static int set_dimensions(struct result *res, size_t size, fl_err *err)
{
    if (!res->dimensions && size >= 1 && size <= MAX_DIMENSIONS) {
        res->v = fl_calloc(res->n, size * sizeof(*res->v));
        if (!res->v)
            return fl_fail_nomem(err);
        res->dimensions = (unsigned)size;
    }
    if (size && size == res->dimensions)
        return FL_OK;
    return fl_fail(err, FL_EBACKEND,
                   "%s: a vector of %zu numbers came where %u are needed; the index was made with "
                   "another model: correct model, or rebuild the index",
                   res->name, size, res->dimensions ? res->dimensions : 1);
}

static int put_vector(struct result *res, size_t at, const fl_json *list, fl_err *err)
{
    float *v;
    double sum = 0, x = 0;
    size_t i = 0;
    int r = set_dimensions(res, fl_json_size(list), err);

    if (r)
        return r;
    v = res->v + at * res->dimensions;
    for (const fl_json *n = fl_json_first(list); n; n = fl_json_next(n)) {
        if (!fl_json_num(n, &x) || !isfinite(x) || fabs(x) > 1e15)
            return fl_fail(
                err, FL_EBACKEND,
                "%s: a vector holds something that is no finite number; see the server's "
                "log",
                res->name);
        v[i++] = (float)x;
        sum += x * x;
    }
    if (!(sum > 0))
        return fl_fail(err, FL_EBACKEND, "%s: a vector is all zero; is this an embedding model?",
                       res->name);
    sum = 1 / sqrt(sum);
    for (i = 0; i < res->dimensions; i++)
        v[i] = (float)(v[i] * sum);
    return FL_OK;
}

/* Puts the vectors of one batch, texts first to first + n, in their places. */
static int take_batch(struct result *res, const fl_json *root, size_t first, size_t n, fl_err *err)
{
    const fl_json *data = fl_json_get(root, "data");
    bool *seen = fl_calloc(n, sizeof(*seen));
    size_t count = 0, place = 0;
    int r = FL_OK;

    if (!seen)
        return fl_fail_nomem(err);
    for (const fl_json *d = data && fl_json_is_array(data) ? fl_json_first(data) : NULL; d && !r;
         d = fl_json_next(d), place++) {
        const fl_json *v = fl_json_is_object(d) ? fl_json_get(d, "embedding") : NULL;
        const fl_json *index = fl_json_is_object(d) ? fl_json_get(d, "index") : NULL;
        double at = (double)place;
        if (!v || !fl_json_is_array(v))
            continue;
        if (index && !fl_json_num(index, &at))
            at = -1;
        if (!(at >= 0 && at < (double)n) || at != floor(at) || seen[(size_t)at]) {
            r = fl_fail(err, FL_EBACKEND, "%s: vectors came for texts that were not sent",
                        res->name);
            break;
        }
        seen[(size_t)at] = true;
        count++;
        r = put_vector(res, first + (size_t)at, v, err);
    }
    if (!r && count != n)
        r = fl_fail(err, FL_EBACKEND, "%s: %zu vectors came for %zu texts", res->name, count, n);
    fl_free(seen);
    return r;
}

static int ask_batch(const struct fl_llm_embed_opts *o, const fl_str *texts, size_t first, size_t n,
                     struct result *res, fl_err *err)
{
    struct fl_llm_call call;
    struct fl_http_reply reply;
    fl_json *root = NULL;
    int r;

    fl_http_reply_init(&reply);
    r = fl_llm_call_init(&call, o->endpoint, "/embeddings", err);
    if (!r)
        r = put_body(o, texts + first, n, &call.body, err);
    if (!r) {
        call.rq.method = "POST";
        call.rq.body = fl_buf_str(&call.body);
        call.rq.deadline = o->deadline;
        call.rq.cancel = o->cancel;
        call.rq.max_reply = MAX_REPLY;
        call.rq.note = "embeddings";
        r = fl_http_perform(o->transport, &call.rq, &reply, err);
    }
    if (!r && (reply.status < 200 || reply.status >= 300 ||
               !fl_str_starts(fl_str_trim(fl_buf_str(&reply.body)), FL_S("{"))))
        r = fl_llm_refusal(o->endpoint, &call, &reply, err);
    if (!r && fl_json_parse(fl_buf_str(&reply.body), res->name, &root, NULL))
        r = fl_fail(err, FL_EBACKEND, "%s: the answer is not valid JSON, or was cut short",
                    res->name);
    if (!r)
        r = take_batch(res, root, first, n, err);
    fl_json_free(root);
    fl_http_reply_dispose(&reply);
    fl_llm_call_dispose(&call);
    return r;
}

int fl_llm_embed(const struct fl_llm_embed_opts *o, const fl_str *texts, size_t n, float **out,
                 unsigned *dimensions, fl_err *err)
{
    size_t batch = o->batch ? o->batch : BATCH;
    struct result res = {.dimensions = o->dimensions, .n = n};
    char shown[300];
    int r = FL_OK;

    res.name = fl_llm_endpoint_name(o->endpoint, shown);
    for (size_t i = 0; i < n; i++)
        if (!fl_str_trim(texts[i]).n)
            return fl_fail(err, FL_EUSAGE, "text %zu of %zu is empty and has no vector", i + 1, n);
    if (o->dimensions && n) {
        if (o->dimensions > MAX_DIMENSIONS)
            return fl_fail(err, FL_EUSAGE, "%u dimensions are more than %d", o->dimensions,
                           MAX_DIMENSIONS);
        res.v = fl_calloc(n, o->dimensions * sizeof(*res.v));
        if (!res.v)
            return fl_fail_nomem(err);
    }
    for (size_t at = 0; at < n && !r; at += batch)
        r = ask_batch(o, texts, at, n - at < batch ? n - at : batch, &res, err);
    if (r) {
        fl_free(res.v);
        return r;
    }
    *out = res.v;
    *dimensions = res.dimensions;
    return FL_OK;
}
