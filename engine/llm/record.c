/*
 * Recording and replay, as transports.
 *
 * Both sit where libcurl sits, so that nothing above knows of them: what is replayed runs through
 * the same stream reader, the same repair turn and the same checks as what came over the wire. A
 * replay compares each request with the recorded one byte for byte and stops at the first
 * difference. To go on with an answer to another question would make a test pass that tests
 * nothing.
 *
 * The prompt is named first when it differs, since that is the usual reason and the remedy is
 * known: the recording is stale and is made anew.
 *
 * A streamed answer is recorded whole and replayed in one piece. How it was cut on the wire is not
 * kept: readers that depend on it are wrong, and the tests of the stream reader cut it everywhere.
 */
#include "llm/record.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/base64.h"

#define SCHEMA "faultline.recording/1"
#define MAX_FILE (96u << 20)

struct fl_llm_recorder {
    fl_arena arena;
    const char *dir;
    const struct fl_http_transport *inner; /* NULL: replay */
    uint64_t seed;
    unsigned calls, total;
    struct fl_http_transport self;
};

static const char *file_of(fl_llm_recorder *r, fl_arena *a, unsigned call)
{
    const char *name = fl_arena_f(a, "%04u.json", call);

    return name ? fl_file_join(a, r->dir, name) : NULL;
}

static int write_json(const char *path, fl_json *root, fl_err *err)
{
    fl_buf text;
    int r;

    if (!path)
        return fl_fail_nomem(err);
    fl_buf_init(&text, MAX_FILE);
    r = fl_json_print(root, true, &text, err);
    fl_buf_addc(&text, '\n');
    if (!r)
        r = fl_buf_check(&text, "the recording", err);
    if (!r)
        r = fl_file_write_atomic(path, fl_buf_str(&text), err);
    fl_buf_dispose(&text);
    return r;
}

static int write_meta(fl_llm_recorder *r, fl_err *err)
{
    char seed[20];
    fl_json *root = fl_json_object();
    int status;

    snprintf(seed, sizeof(seed), "%016llx", (unsigned long long)r->seed);
    fl_json_put_z(root, "schema", SCHEMA);
    fl_json_put_z(root, "seed", seed);
    fl_json_put_int(root, "calls", r->calls);
    status = write_json(fl_file_join(&r->arena, r->dir, "meta.json"), root, err);
    fl_json_free(root);
    return status;
}

static bool plain(fl_str s)
{
    while (s.n) {
        size_t n = fl_text_unit(s);
        if (!n || !s.p[0])
            return false;
        s = fl_str_from(s, n);
    }
    return true;
}

static void put_bytes(fl_json *o, fl_str bytes)
{
    fl_buf b;

    if (plain(bytes)) {
        fl_json_put_str(o, "body", bytes);
        return;
    }
    fl_buf_init(&b, MAX_FILE);
    fl_base64_put(bytes, &b);
    fl_json_put_str(o, "body_base64", fl_buf_str(&b));
    fl_buf_dispose(&b);
}

static void put_request(fl_json *root, const struct fl_http_request *rq)
{
    fl_json *o = fl_json_put_object(root, "request"), *headers;
    char shown[600];

    fl_http_show_url(rq->url, shown, sizeof(shown));
    fl_json_put_z(o, "method", rq->method);
    fl_json_put_z(o, "url", shown);
    headers = fl_json_put_object(o, "headers");
    for (size_t i = 0; i < rq->nheaders; i++)
        if (!rq->headers[i].secret)
            fl_json_put_z(headers, rq->headers[i].name, rq->headers[i].value);
    put_bytes(o, rq->body);
}

static void put_reply(fl_json *root, const struct fl_http_reply *reply, fl_str body)
{
    fl_json *o = fl_json_put_object(root, "reply");

    fl_json_put_int(o, "status", reply->status);
    fl_json_put_z(o, "content_type", reply->content_type);
    if (reply->retry_after[0])
        fl_json_put_z(o, "retry_after", reply->retry_after);
    fl_json_put_int(o, "tries", reply->tries);
    fl_json_put_num(o, "seconds", reply->seconds);
    put_bytes(o, body);
}

/* ---- recording ---- */

struct tee {
    const struct fl_http_request *rq;
    fl_buf body;
};

static int on_bytes(void *ctx, const struct fl_http_reply *so_far, fl_str bytes, fl_err *err)
{
    struct tee *t = ctx;

    fl_buf_add(&t->body, bytes);
    return t->rq->on_bytes(t->rq->ctx, so_far, bytes, err);
}

static int keep_call(fl_llm_recorder *r, const struct fl_http_request *rq,
                     const struct fl_http_reply *reply, fl_str body, int code, const fl_err *said,
                     fl_err *err)
{
    fl_json *root = fl_json_object();
    fl_arena a;
    int status;

    fl_arena_init(&a);
    r->calls++;
    fl_json_put_z(root, "schema", SCHEMA);
    fl_json_put_int(root, "call", r->calls);
    fl_json_put_z(root, "prompt", rq->note ? rq->note : "");
    put_request(root, rq);
    if (code) {
        fl_json *o = fl_json_put_object(root, "failure");
        fl_json_put_int(o, "end", (int)reply->end);
        fl_json_put_int(o, "code", code);
        fl_json_put_z(o, "message", said->msg);
        fl_json_put_num(o, "seconds", reply->seconds);
    }
    if (!code || body.n)
        put_reply(root, reply, body);
    status = write_json(file_of(r, &a, r->calls), root, err);
    if (!status)
        status = write_meta(r, err);
    fl_json_free(root);
    fl_arena_dispose(&a);
    return status;
}

static int record(void *ctx, const struct fl_http_request *rq, struct fl_http_reply *reply,
                  fl_err *err)
{
    fl_llm_recorder *r = ctx;
    struct fl_http_request copy = *rq;
    struct tee tee = {.rq = rq};
    fl_err said = {0};
    int code, kept;

    fl_buf_init(&tee.body, MAX_FILE);
    if (rq->on_bytes) {
        copy.on_bytes = on_bytes;
        copy.ctx = &tee;
    }
    code = fl_http_perform(r->inner, &copy, reply, &said);
    kept =
        keep_call(r, rq, reply, reply->streamed ? fl_buf_str(&tee.body) : fl_buf_str(&reply->body),
                  code, &said, err);
    fl_buf_dispose(&tee.body);
    if (!code && kept)
        return kept; /* a recording that is not complete is none */
    if (code && err)
        *err = said;
    return code;
}

int fl_llm_record(const char *dir, uint64_t seed, const struct fl_http_transport *inner,
                  fl_llm_recorder **out, fl_err *err)
{
    fl_llm_recorder *r = fl_calloc(1, sizeof(*r));
    const char *meta;
    int status;

    if (!r)
        return fl_fail_nomem(err);
    fl_arena_init(&r->arena);
    r->dir = fl_arena_z(&r->arena, fl_str_c(dir));
    r->inner = inner;
    r->seed = seed;
    r->self.perform = record;
    r->self.ctx = r;
    meta = r->dir ? fl_file_join(&r->arena, r->dir, "meta.json") : NULL;
    if (!meta)
        status = fl_fail_nomem(err);
    else if (fl_file_exists(meta))
        status = fl_fail(err, FL_EUSAGE, "%s holds a recording already; name another folder", dir);
    else
        status = fl_file_mkdirs(dir, err);
    if (!status)
        status = write_meta(r, err);
    if (status) {
        fl_llm_recorder_free(r);
        return status;
    }
    *out = r;
    return FL_OK;
}

const struct fl_http_transport *fl_llm_recorder_transport(const fl_llm_recorder *r)
{
    return &r->self;
}

unsigned fl_llm_recorder_left(const fl_llm_recorder *r)
{
    return r->total > r->calls ? r->total - r->calls : 0;
}

void fl_llm_recorder_free(fl_llm_recorder *r)
{
    if (!r)
        return;
    fl_arena_dispose(&r->arena);
    fl_free(r);
}

/* ---- replay ---- */

static int load(const char *path, fl_json **out, fl_err *err)
{
    const char *schema;
    fl_json *root = NULL;
    fl_buf text;
    int r;

    if (!path)
        return fl_fail_nomem(err);
    fl_buf_init(&text, MAX_FILE);
    r = fl_file_read(path, &text, err);
    if (!r)
        r = fl_json_parse(fl_buf_str(&text), path, &root, err);
    fl_buf_dispose(&text);
    if (r)
        return r;
    schema = fl_json_z(fl_json_get(root, "schema"));
    if (!schema || strcmp(schema, SCHEMA) != 0) {
        fl_json_free(root);
        return fl_fail(err, FL_EINPUT,
                       "%s: not a recording of this version; record again with "
                       "--record",
                       path);
    }
    *out = root;
    return FL_OK;
}

static int get_bytes(const fl_json *o, fl_buf *out, fl_err *err)
{
    const char *z = fl_json_z(fl_json_get(o, "body"));
    const char *coded = fl_json_z(fl_json_get(o, "body_base64"));

    if (z)
        fl_buf_addz(out, z);
    else if (!coded || !fl_base64_get(fl_str_c(coded), out))
        return fl_fail(err, FL_EINPUT, "a recorded body is damaged; record again with --record");
    return fl_buf_check(out, "the recorded body", err);
}

static const char *text_of(const fl_json *o, const char *key)
{
    const char *z = fl_json_z(fl_json_get(o, key));

    return z ? z : "";
}

/* Whether this is the request that was recorded; the error says what differs. */
static int compare(const fl_json *root, const char *path, const struct fl_http_request *rq,
                   fl_err *err)
{
    const fl_json *o = fl_json_get(root, "request");
    const char *was = text_of(root, "prompt"), *is = rq->note ? rq->note : "";
    char shown[600];
    fl_buf body;
    int r = FL_OK;

    if (strcmp(was, is) != 0)
        return fl_fail(err, FL_EINPUT,
                       "%s is stale: it was recorded with the prompt %s, which is now %s; record "
                       "again with --record",
                       path, was, is);
    fl_http_show_url(rq->url, shown, sizeof(shown));
    if (strcmp(text_of(o, "url"), shown) != 0 || strcmp(text_of(o, "method"), rq->method) != 0)
        return fl_fail(
            err, FL_EINPUT,
            "%s is stale: it was recorded at %s %s, and %s %s is asked now; record again "
            "with --record",
            path, text_of(o, "method"), text_of(o, "url"), rq->method, shown);
    fl_buf_init(&body, MAX_FILE);
    r = get_bytes(o, &body, err);
    if (!r && !fl_str_eq(fl_buf_str(&body), rq->body)) {
        size_t at = 0;
        while (at < body.n && at < rq->body.n && body.p[at] == rq->body.p[at])
            at++;
        r = fl_fail(err, FL_EINPUT,
                    "%s is stale: the request differs from byte %zu on, so the log, the rules or "
                    "the program changed; record again with --record",
                    path, at);
    }
    fl_buf_dispose(&body);
    return r;
}

static int number(const fl_json *o, const char *key)
{
    const fl_json *n = fl_json_get(o, key);
    double x = 0;

    return n && fl_json_num(n, &x) && x > -1e9 && x < 1e9 ? (int)x : 0;
}

/* Fills the reply from the recording and hands its body to whom it is for. */
static int give(const fl_json *root, const struct fl_http_request *rq, struct fl_http_reply *reply,
                fl_err *err)
{
    const fl_json *o = fl_json_get(root, "reply"), *failure = fl_json_get(root, "failure"), *timing;
    double seconds = 0;
    fl_buf body;
    int r = FL_OK;

    fl_buf_init(&body, MAX_FILE);
    if (o) {
        r = get_bytes(o, &body, err);
        reply->status = number(o, "status");
        reply->tries = (unsigned)number(o, "tries");
        snprintf(reply->content_type, sizeof(reply->content_type), "%s",
                 text_of(o, "content_type"));
        snprintf(reply->retry_after, sizeof(reply->retry_after), "%s", text_of(o, "retry_after"));
    }
    timing = fl_json_get(o ? o : failure, "seconds");
    if (timing && fl_json_num(timing, &seconds))
        reply->seconds = seconds;
    if (!r && body.n && rq->on_bytes && reply->status >= 200 && reply->status < 300) {
        reply->streamed = true;
        r = rq->on_bytes(rq->ctx, reply, fl_buf_str(&body), err);
        reply->end = r < 0 ? FL_HTTP_STOPPED : FL_HTTP_DONE;
        r = r < 0 ? r : FL_OK;
    } else if (!r) {
        reply->body.max = MAX_FILE;
        fl_buf_add(&reply->body, fl_buf_str(&body));
        r = fl_buf_check(&reply->body, "the recorded body", err);
    }
    if (!r && failure) {
        reply->end = (enum fl_http_end)number(failure, "end");
        r = fl_fail(err, number(failure, "code") < 0 ? number(failure, "code") : FL_EBACKEND, "%s",
                    text_of(failure, "message"));
    }
    fl_buf_dispose(&body);
    return r;
}

static int replay(void *ctx, const struct fl_http_request *rq, struct fl_http_reply *reply,
                  fl_err *err)
{
    fl_llm_recorder *r = ctx;
    fl_json *root = NULL;
    const char *path;
    fl_arena a;
    int status;

    fl_arena_init(&a);
    path = file_of(r, &a, r->calls + 1);
    reply->end = FL_HTTP_OTHER;
    if (r->calls >= r->total)
        status = fl_fail(err, FL_EINPUT,
                         "%s holds %u answers, and one more is asked for; record again with "
                         "--record",
                         r->dir, r->total);
    else
        status = load(path, &root, err);
    if (!status)
        status = compare(root, path, rq, err);
    if (!status) {
        r->calls++;
        reply->end = FL_HTTP_DONE;
        status = give(root, rq, reply, err);
    }
    fl_json_free(root);
    fl_arena_dispose(&a);
    return status;
}

static bool read_seed(const char *z, uint64_t *out)
{
    uint64_t v = 0;

    if (!z || strlen(z) != 16)
        return false;
    for (; *z; z++) {
        int digit = *z >= '0' && *z <= '9' ? *z - '0' : *z >= 'a' && *z <= 'f' ? *z - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        v = v << 4 | (uint64_t)digit;
    }
    *out = v;
    return true;
}

int fl_llm_replay(const char *dir, fl_llm_recorder **out, uint64_t *seed, fl_err *err)
{
    fl_llm_recorder *r = fl_calloc(1, sizeof(*r));
    fl_json *root = NULL;
    int status;

    if (!r)
        return fl_fail_nomem(err);
    fl_arena_init(&r->arena);
    r->self.perform = replay;
    r->self.ctx = r;
    r->dir = fl_arena_z(&r->arena, fl_str_c(dir));
    status = r->dir ? load(fl_file_join(&r->arena, r->dir, "meta.json"), &root, err)
                    : fl_fail_nomem(err);
    if (!status && !read_seed(fl_json_z(fl_json_get(root, "seed")), &r->seed))
        status = fl_fail(err, FL_EINPUT, "%s/meta.json: the seed is damaged; record again", dir);
    if (!status)
        r->total = (unsigned)number(root, "calls");
    fl_json_free(root);
    if (status) {
        fl_llm_recorder_free(r);
        return status;
    }
    *seed = r->seed;
    *out = r;
    return FL_OK;
}
