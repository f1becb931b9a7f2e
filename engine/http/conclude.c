/*
 * What came of a request, in one sentence that says what to do.
 *
 * libcurl has a hundred codes and a text for each that is meant for programmers. Those that people
 * meet (nobody listens, unknown name, certificate, time, size, a connection that broke) get words
 * of their own with the address in them; the rest get libcurl's.
 *
 * A certificate that is not trusted is asked for once more, by a connection that sends nothing:
 * libcurl tells whose certificate it was only when it accepts it, and "self-signed certificate"
 * alone does not tell a proxy that opens TLS from a server with a private CA.
 */
#include "http/parts.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/alloc.h"

static int refused(struct fl_http_job *j, fl_err *err)
{
    long no = 0;

    j->reply->end = FL_HTTP_REFUSED;
    curl_easy_getinfo(j->easy, CURLINFO_OS_ERRNO, &no);
    if (no == ECONNREFUSED)
        return fl_fail(err, FL_EBACKEND,
                       "%s: the connection was refused; is the server running, and is the port "
                       "right?",
                       j->shown);
    if (no == ETIMEDOUT) {
        j->reply->end = FL_HTTP_TIMEOUT;
        return fl_fail(err, FL_EBACKEND,
                       "%s: no connection in time; check the address and the firewall", j->shown);
    }
    return fl_fail(err, FL_EBACKEND,
                   "%s: cannot be reached (%s); check the address and the network", j->shown,
                   no ? strerror((int)no) : "no connection");
}

static void add_field(const struct curl_slist *s, const char *field, const char *lead, fl_buf *out)
{
    size_t n = strlen(field);

    for (; s; s = s->next)
        if (!strncasecmp(s->data, field, n) && s->data[n] == ':') {
            fl_buf_addf(out, "%s%.120s", lead, s->data + n + 1);
            return;
        }
}

/* "; it is the one of CN = a, issued by CN = b, valid until ..." when the server shows it again. */
static void describe_certificate(struct fl_http_job *j, fl_buf *out)
{
    struct curl_certinfo *certs = NULL;
    enum fl_http_end end;
    CURL *e = curl_easy_init();
    double soon;

    if (!e)
        return;
    curl_easy_setopt(e, CURLOPT_URL, j->rq->url);
    curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(e, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
    if (j->rq->proxy)
        curl_easy_setopt(e, CURLOPT_PROXY, j->rq->proxy);
    else if (fl_http_is_loopback(j->rq->url))
        curl_easy_setopt(e, CURLOPT_PROXY, "");
    soon = j->client->world->now(j->client->world->ctx) + 3;
    j->until = soon < j->until ? soon : j->until;
    if (fl_http_pump(j, e, &end) == CURLE_OK &&
        curl_easy_getinfo(e, CURLINFO_CERTINFO, &certs) == CURLE_OK && certs &&
        certs->num_of_certs > 0) {
        add_field(certs->certinfo[0], "Subject", "; it is the certificate of ", out);
        add_field(certs->certinfo[0], "Issuer", ", issued by ", out);
        add_field(certs->certinfo[0], "Expire date", ", valid until ", out);
    }
    curl_easy_cleanup(e);
}

static int tls(struct fl_http_job *j, CURLcode code, fl_err *err)
{
    const char *why = j->why[0] ? j->why : curl_easy_strerror(code);
    fl_buf cert;
    int r;

    j->reply->end = FL_HTTP_TLS;
    if (code == CURLE_SSL_CACERT_BADFILE)
        return fl_fail(err, FL_EBACKEND,
                       "%s: the CA file %s cannot be read as PEM; correct ca_file", j->shown,
                       j->rq->ca_file ? j->rq->ca_file : "of the system");
    if (strstr(why, "wrong version number") || strstr(why, "packet length too long"))
        return fl_fail(err, FL_EBACKEND,
                       "%s: the server does not speak TLS there; is its address http://, or its "
                       "port another one?",
                       j->shown);
    if (code != CURLE_PEER_FAILED_VERIFICATION)
        return fl_fail(err, FL_EBACKEND, "%s: no TLS connection (%.160s)", j->shown, why);
    fl_buf_init(&cert, 400);
    describe_certificate(j, &cert);
    r = fl_fail(err, FL_EBACKEND,
                "%s: the server's certificate is not trusted (%.120s)%s; if it is yours, name the "
                "CA in ca_file",
                j->shown, why, cert.p && !cert.bad ? cert.p : "");
    fl_buf_dispose(&cert);
    return r;
}

static int broke(struct fl_http_job *j, CURLcode code, fl_err *err)
{
    j->reply->end = FL_HTTP_RESET;
    if (code == CURLE_GOT_NOTHING)
        return fl_fail(err, FL_EBACKEND,
                       "%s: the server closed the connection without an answer; see its log",
                       j->shown);
    return fl_fail(err, FL_EBACKEND, "%s: the connection broke %s; see the server's log", j->shown,
                   j->taken ? "in the middle of the answer" : "before an answer came");
}

static int late(struct fl_http_job *j, enum fl_http_end end, fl_err *err)
{
    double seconds = j->rq->timeout > 0 ? j->rq->timeout : 120;

    j->reply->end = end;
    if (end == FL_HTTP_CANCELLED)
        return fl_fail(err, FL_EBACKEND, "the request was stopped");
    if (end == FL_HTTP_DEADLINE)
        return fl_fail(err, FL_EBACKEND,
                       "%s: no complete answer within the time that was left; raise the budget or "
                       "use a faster model",
                       j->shown);
    return fl_fail(
        err, FL_EBACKEND,
        "%s: no complete answer within %g seconds%s; raise the endpoint's timeout or see "
        "why the server is slow",
        j->shown, seconds, j->taken ? ", though it had begun" : "");
}

static int failed(struct fl_http_job *j, CURLcode code, fl_err *err)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        j->reply->end = FL_HTTP_DNS;
        return fl_fail(err, FL_EBACKEND, "%s: the host name does not resolve; check the address",
                       j->shown);
    case CURLE_COULDNT_RESOLVE_PROXY:
        j->reply->end = FL_HTTP_DNS;
        return fl_fail(err, FL_EBACKEND, "%s: the proxy's name does not resolve; check proxy",
                       j->shown);
    case CURLE_COULDNT_CONNECT:
        return refused(j, err);
    case CURLE_OPERATION_TIMEDOUT:
        j->reply->end = FL_HTTP_TIMEOUT;
        return fl_fail(err, FL_EBACKEND,
                       "%s: no connection in time; check the address and the firewall", j->shown);
    case CURLE_URL_MALFORMAT:
        j->reply->end = FL_HTTP_BAD;
        return fl_fail(err, FL_EUSAGE, "%s: not a URL; it looks like http://127.0.0.1:8080/v1",
                       j->shown);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (fl_str_starts(fl_str_c(j->rq->url), FL_S("http")))
            break;
        j->reply->end = FL_HTTP_BAD;
        return fl_fail(err, FL_EUSAGE, "%s: only http and https are spoken; correct the address",
                       j->shown);
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return broke(j, code, err);
    case CURLE_OUT_OF_MEMORY:
        j->reply->end = FL_HTTP_OTHER;
        return fl_fail_nomem(err);
    default:
        break;
    }
    j->reply->end = FL_HTTP_OTHER;
    return fl_fail(err, FL_EBACKEND, "%s: %.200s", j->shown,
                   j->why[0] ? j->why : curl_easy_strerror(code));
}

static bool is_tls(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CIPHER ||
           code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR ||
           code == CURLE_USE_SSL_FAILED || code == CURLE_SSL_INVALIDCERTSTATUS;
}

static int own_end(struct fl_http_job *j, fl_err *err)
{
    if (j->reply->end == FL_HTTP_STOPPED) {
        if (err)
            *err = j->inner;
        return j->inner.code ? j->inner.code : FL_EBACKEND;
    }
    return fl_fail(err, FL_ELIMIT,
                   "%s: the answer is larger than %zu bytes; is this a chat server?", j->shown,
                   j->max);
}

int fl_http_conclude(struct fl_http_job *j, CURLcode code, enum fl_http_end end, fl_err *err)
{
    fl_err said = {0};
    int r;

    if (end != FL_HTTP_DONE)
        r = late(j, end, &said);
    else if (j->reply->end != FL_HTTP_DONE)
        r = own_end(j, &said);
    else if (j->reply->body.bad == FL_ENOMEM)
        r = failed(j, CURLE_OUT_OF_MEMORY, &said);
    else if (code != CURLE_OK)
        r = is_tls(code) ? tls(j, code, &said) : failed(j, code, &said);
    else if (j->reply->status >= 300 && j->reply->status < 400) {
        j->reply->end = FL_HTTP_REDIRECT;
        r = fl_fail(
            &said, FL_EBACKEND,
            "%s: the server points elsewhere (%d%s%s), which is not followed; put the right "
            "address into the configuration",
            j->shown, j->reply->status, j->location[0] ? ", to " : "", j->location);
    } else
        return FL_OK;
    fl_http_scrub_all(said.msg, j->rq);
    if (err)
        *err = said;
    return r;
}
