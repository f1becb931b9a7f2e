/*
 * One request through libcurl.
 *
 * The multi interface is used although there is never more than one transfer: curl_easy_perform
 * gives control back only from its callbacks, and a name server that is silent calls none. Here the
 * loop looks up every 50 ms, so that Ctrl-C and the deadline of the whole answer act at once.
 *
 * Refused on purpose: redirects (a POST with a key in its header goes where the configuration says
 * and nowhere else), other protocols than http and https, compressed answers (ten bytes can become
 * ten megabytes), netrc and cookies, unverified TLS. The body is capped as it arrives, and so is
 * the head.
 *
 * libcurl's memory does not come from base/alloc.h: its allocator is set for the whole process, and
 * a program that links this library and uses libcurl itself would find its own requests there.
 * libcurl keeps SIGPIPE away by itself as long as it may touch signals; it needs no signals for
 * time-outs when it resolves names in a thread, as all distributions build it, and is told to leave
 * them alone where it does not. QUICK_EXIT lets go of a name look-up that hangs.
 */
#include "http/parts.h"

#include <stdio.h>
#include <strings.h>

#include "base/alloc.h"

#define CONNECT_TIMEOUT 10.0
#define TIMEOUT 120.0
#define MAX_REPLY (4u << 20)
#define MAX_HEAD (256u << 10)
#define LOOK_MS 50

static void lower_until(char *out, size_t cap, fl_str s, char stop)
{
    size_t n = 0;

    s = fl_str_trim(fl_str_cut(&s, stop));
    for (; n < s.n && n + 1 < cap; n++)
        out[n] = s.p[n] >= 'A' && s.p[n] <= 'Z' ? (char)(s.p[n] + 32) : s.p[n];
    out[n] = 0;
}

static bool header_is(fl_str name, fl_str line, fl_str *value)
{
    if (line.n <= name.n || !fl_str_ieq(fl_str_sub(line, 0, name.n), name))
        return false;
    *value = fl_str_trim(fl_str_from(line, name.n));
    return true;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct fl_http_job *j = ctx;
    fl_str line = {p, size * n}, v;

    j->header_bytes += line.n;
    if (j->header_bytes > MAX_HEAD) {
        j->reply->end = FL_HTTP_TOO_LARGE;
        return 0;
    }
    if (fl_str_starts(line, FL_S("HTTP/"))) { /* of each answer, a 100 before the real one too */
        j->reply->content_type[0] = j->reply->retry_after[0] = j->location[0] = 0;
        return line.n;
    }
    if (header_is(FL_S("content-type:"), line, &v))
        lower_until(j->reply->content_type, sizeof(j->reply->content_type), v, ';');
    else if (header_is(FL_S("retry-after:"), line, &v))
        snprintf(j->reply->retry_after, sizeof(j->reply->retry_after), "%.*s", FL_FMT(v));
    else if (header_is(FL_S("location:"), line, &v)) {
        char whole[1024];
        snprintf(whole, sizeof(whole), "%.*s", FL_FMT(v));
        fl_http_show_url(whole, j->location, sizeof(j->location));
    }
    return line.n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct fl_http_job *j = ctx;
    struct fl_http_reply *reply = j->reply;
    fl_str bytes = {p, size * n};
    long status = 0;

    j->taken += bytes.n;
    if (j->taken > j->max) {
        reply->end = FL_HTTP_TOO_LARGE;
        return 0;
    }
    curl_easy_getinfo(j->easy, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    if (j->rq->on_bytes && status >= 200 && status < 300) {
        reply->streamed = true;
        if (j->rq->on_bytes(j->rq->ctx, reply, bytes, &j->inner) < 0) {
            reply->end = FL_HTTP_STOPPED;
            return 0;
        }
        return bytes.n;
    }
    fl_buf_add(&reply->body, bytes);
    return reply->body.bad ? 0 : bytes.n;
}

CURLcode fl_http_pump(struct fl_http_job *j, CURL *easy, enum fl_http_end *end)
{
    const struct fl_http_world *w = j->client->world;
    CURLM *m = j->client->multi;
    CURLcode code = CURLE_FAILED_INIT;
    int running = 1, left;
    CURLMsg *msg;

    *end = FL_HTTP_DONE;
    if (curl_multi_add_handle(m, easy) != CURLM_OK)
        return code;
    while (running) {
        if (curl_multi_perform(m, &running) != CURLM_OK)
            break;
        if (j->rq->cancel && *j->rq->cancel)
            *end = FL_HTTP_CANCELLED;
        else if (running && w->now(w->ctx) >= j->until)
            *end = j->deadline_first ? FL_HTTP_DEADLINE : FL_HTTP_TIMEOUT;
        if (*end != FL_HTTP_DONE)
            break;
        if (running && curl_multi_poll(m, NULL, 0, LOOK_MS, NULL) != CURLM_OK)
            break;
    }
    while ((msg = curl_multi_info_read(m, &left)) != NULL)
        if (msg->msg == CURLMSG_DONE && msg->easy_handle == easy)
            code = msg->data.result;
    curl_multi_remove_handle(m, easy);
    return code;
}

static int add_header(struct fl_http_job *j, const char *name, const char *value, fl_err *err)
{
    struct curl_slist *more;
    fl_buf b;
    int r;

    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 32 && *p != '\t')
            return fl_fail(err, FL_EUSAGE,
                           "the value of the header %s holds a line end or control byte; "
                           "write it as one line",
                           name);
    fl_buf_init(&b, 1u << 20);
    fl_buf_addf(&b, *value ? "%s: %s" : "%s:%s", name, value);
    r = fl_buf_check(&b, "a request header", err);
    if (!r) {
        more = curl_slist_append(j->headers, b.p);
        if (more)
            j->headers = more;
        else
            r = fl_fail_nomem(err);
    }
    fl_buf_dispose(&b);
    return r;
}

static int set_headers(struct fl_http_job *j, fl_err *err)
{
    int r = add_header(j, "Expect", "", err); /* no waiting for 100 Continue */

    for (size_t i = 0; !r && i < j->rq->nheaders; i++)
        r = add_header(j, j->rq->headers[i].name, j->rq->headers[i].value, err);
    if (!r)
        curl_easy_setopt(j->easy, CURLOPT_HTTPHEADER, j->headers);
    return r;
}

static void set_protocols(CURL *e)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (!(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS))
        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
}

static int set_up(struct fl_http_job *j, fl_err *err)
{
    const struct fl_http_request *rq = j->rq;
    double connect = rq->connect_timeout > 0 ? rq->connect_timeout : CONNECT_TIMEOUT;
    CURL *e = j->easy;

    set_protocols(e);
    curl_easy_setopt(e, CURLOPT_URL, rq->url);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "faultline");
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, j->why);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect * 1000) + 1);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, j);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, j);
    if (rq->ca_file && *rq->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, rq->ca_file);
    if (rq->proxy)
        curl_easy_setopt(e, CURLOPT_PROXY, rq->proxy);
    else if (fl_http_is_loopback(rq->url))
        curl_easy_setopt(e, CURLOPT_PROXY, "");
    if (rq->method && strcasecmp(rq->method, "GET") != 0) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, rq->method);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, rq->body.p ? rq->body.p : "");
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.n);
    }
    return set_headers(j, err);
}

/* When this request must be over, and by which of the two limits. */
static void set_until(struct fl_http_job *j)
{
    const struct fl_http_world *w = j->client->world;
    double timeout = j->rq->timeout > 0 ? j->rq->timeout : TIMEOUT;

    j->until = w->now(w->ctx) + timeout;
    j->deadline_first = j->rq->deadline > 0 && j->rq->deadline < j->until;
    if (j->deadline_first)
        j->until = j->rq->deadline;
}

static int perform(void *ctx, const struct fl_http_request *rq, struct fl_http_reply *reply,
                   fl_err *err)
{
    struct fl_http_client *c = ctx;
    struct fl_http_job j = {.client = c, .rq = rq, .reply = reply};
    enum fl_http_end end = FL_HTTP_OTHER;
    double start = c->world->now(c->world->ctx);
    CURLcode code;
    long status = 0;
    int r;

    fl_http_show_url(rq->url, j.shown, sizeof(j.shown));
    j.max = rq->max_reply ? rq->max_reply : MAX_REPLY;
    reply->body.max = j.max;
    reply->end = FL_HTTP_DONE;
    reply->tries = 1;
    set_until(&j);
    j.easy = curl_easy_init();
    if (!j.easy) {
        reply->end = FL_HTTP_OTHER;
        return fl_fail_nomem(err);
    }
    r = set_up(&j, err);
    if (r) {
        reply->end = FL_HTTP_BAD;
        goto out;
    }
    code = fl_http_pump(&j, j.easy, &end);
    curl_easy_getinfo(j.easy, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    r = fl_http_conclude(&j, code, end, err);
    reply->seconds = c->world->now(c->world->ctx) - start;
out:
    curl_easy_cleanup(j.easy);
    curl_slist_free_all(j.headers);
    return r;
}

int fl_http_client_new(const struct fl_http_world *world, fl_http_client **out, fl_err *err)
{
    fl_http_client *c;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fl_fail(err, FL_EBACKEND, "libcurl cannot be started; check its installation");
    c = fl_calloc(1, sizeof(*c));
    if (!c) {
        curl_global_cleanup();
        return fl_fail_nomem(err);
    }
    c->world = world ? world : fl_http_world();
    c->transport.perform = perform;
    c->transport.ctx = c;
    c->multi = curl_multi_init();
    if (!c->multi) {
        fl_http_client_free(c);
        return fl_fail_nomem(err);
    }
    *out = c;
    return FL_OK;
}

void fl_http_client_free(fl_http_client *c)
{
    if (!c)
        return;
    if (c->multi)
        curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    fl_free(c);
}

const struct fl_http_transport *fl_http_client_transport(const fl_http_client *c)
{
    return &c->transport;
}
