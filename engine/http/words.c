/*
 * What of a request may be said aloud.
 *
 * Error sentences name the address, and a URL may carry a password or a key in its query; services
 * echo the key they refuse, whole or in part. So addresses are shown without user and query, and
 * text that came from outside is scrubbed of every run it shares with a secret. Eight bytes are the
 * limit: shorter runs of a key are found in ordinary words, and replacing them would tell where the
 * key has them.
 */
#include "http/http.h"

#include <stdio.h>

#include "base/alloc.h"

#define RUN 8

void fl_http_show_url(const char *url, char *out, size_t cap)
{
    fl_str s = fl_str_c(url), scheme = FL_S("");
    ptrdiff_t at = fl_str_find(s, FL_S("://"));
    size_t end;

    if (at >= 0) {
        scheme = fl_str_sub(s, 0, (size_t)at + 3);
        s = fl_str_from(s, (size_t)at + 3);
    }
    for (end = 0; end < s.n && s.p[end] != '?' && s.p[end] != '#'; end++)
        ;
    s = fl_str_sub(s, 0, end);
    for (end = 0; end < s.n && s.p[end] != '/'; end++)
        ;
    at = fl_str_rfind_c(fl_str_sub(s, 0, end), '@');
    if (at >= 0)
        s = fl_str_from(s, (size_t)at + 1);
    snprintf(out, cap, "%.*s%.*s", FL_FMT(scheme), FL_FMT(s));
}

bool fl_http_is_loopback(const char *url)
{
    char shown[300];
    fl_str host;
    ptrdiff_t at;

    fl_http_show_url(url, shown, sizeof(shown));
    host = fl_str_c(shown);
    at = fl_str_find(host, FL_S("://"));
    if (at >= 0)
        host = fl_str_from(host, (size_t)at + 3);
    host = fl_str_cut(&host, '/');
    if (fl_str_starts(host, FL_S("[")))
        return fl_str_starts(host, FL_S("[::1]"));
    host = fl_str_cut(&host, ':');
    if (fl_str_ieq(host, FL_S("localhost")))
        return true;
    if (!fl_str_starts(host, FL_S("127.")))
        return false;
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] != '.' && (host.p[i] < '0' || host.p[i] > '9'))
            return false; /* 127.example.org is a name like any other */
    return true;
}

/* The longest run at `text` that stands somewhere in the secret. */
static size_t shared(const char *text, fl_str secret)
{
    size_t best = 0;

    for (size_t k = 0; k < secret.n; k++) {
        size_t n = 0;
        while (k + n < secret.n && text[n] && text[n] == secret.p[k + n])
            n++;
        best = n > best ? n : best;
    }
    return best;
}

void fl_http_scrub(char *text, const char *secret)
{
    static const char mark[] = "[key]";
    fl_str s = fl_str_c(secret);
    size_t least = s.n < RUN ? s.n : RUN;

    if (s.n < 4) /* it would be found everywhere, and hides nothing */
        return;
    for (char *at = text; *at; at++) {
        size_t n = shared(at, s);
        size_t put = n < sizeof(mark) - 1 ? n : sizeof(mark) - 1;
        if (n < least)
            continue;
        memcpy(at, mark, put);
        memmove(at + put, at + n, strlen(at + n) + 1);
        at += put - 1;
    }
}

void fl_http_scrub_all(char *text, const struct fl_http_request *rq)
{
    for (size_t i = 0; i < rq->nheaders; i++) {
        const char *value = rq->headers[i].value;
        if (!rq->headers[i].secret || !value)
            continue;
        /* "Bearer KEY": the word before the key is no secret, and the key may be echoed alone. */
        if (!strncmp(value, "Bearer ", 7))
            value += 7;
        fl_http_scrub(text, value);
    }
}

void fl_http_reply_init(struct fl_http_reply *r)
{
    memset(r, 0, sizeof(*r));
    fl_buf_init(&r->body, 4u << 20);
}

void fl_http_reply_dispose(struct fl_http_reply *r)
{
    fl_buf_dispose(&r->body);
}

int fl_http_perform(const struct fl_http_transport *t, const struct fl_http_request *rq,
                    struct fl_http_reply *reply, fl_err *err)
{
    return t->perform(t->ctx, rq, reply, err);
}
