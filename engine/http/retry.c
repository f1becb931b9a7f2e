/*
 * Trying again.
 *
 * A service that is restarting or crowded answers a little later; one that refuses a key or a
 * request never will. So 408, 429, 5xx and broken connections are tried again, and nothing else:
 * a refused connection, an unknown name and a time-out are left to the caller, who may have another
 * endpoint, since they cost as much the second time. 501 and 505 say that the server cannot do it
 * at all and are not retried, although they begin with a 5.
 *
 * The pause doubles, and between half and all of it is waited, by chance: a thousand jobs that fail
 * in the same second should not come back in the same second. A Retry-After is taken as it is, up
 * to the longest pause; when it asks for more than that, or the deadline is nearer, there is no
 * point in waiting and the last answer stands.
 *
 * Dates are read by hand: strptime depends on the locale and on what time zone the C library likes.
 */
#include "http/http.h"

#include <ctype.h>

#include "base/alloc.h"

#define TRIES 4
#define FIRST 1.0
#define MOST 30.0

bool fl_http_retriable(int status)
{
    return status == 408 || status == 429 ||
           (status >= 500 && status < 600 && status != 501 && status != 505);
}

/* Days from 1970-01-01 in the Gregorian calendar. */
static double days(int y, int m, int d)
{
    int era, yoe, doy;

    y -= m <= 2;
    era = y / 400;
    yoe = y - era * 400;
    doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097.0 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468.0;
}

/* "Wed, 21 Oct 2015 07:28:00 GMT"; the older two forms of dates have long died out. */
static bool http_date(fl_str s, double *out)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t d, y, h, mi, sec;
    ptrdiff_t comma = fl_str_find_c(s, ','), month = -1;

    if (comma < 0)
        return false;
    s = fl_str_trim(fl_str_from(s, (size_t)comma + 1));
    if (s.n < 20 || !fl_str_u64(fl_str_sub(s, 0, 2), 31, &d) || s.p[2] != ' ' || s.p[6] != ' ' ||
        !fl_str_u64(fl_str_sub(s, 7, 4), 9999, &y) || y < 1970 ||
        !fl_str_u64(fl_str_sub(s, 12, 2), 23, &h) || s.p[14] != ':' ||
        !fl_str_u64(fl_str_sub(s, 15, 2), 59, &mi) || s.p[17] != ':' ||
        !fl_str_u64(fl_str_sub(s, 18, 2), 60, &sec))
        return false;
    for (int i = 0; i < 12; i++)
        if (!memcmp(s.p + 3, months + 3 * i, 3))
            month = i + 1;
    if (month < 0)
        return false;
    *out = days((int)y, (int)month, (int)d) * 86400 + (double)(h * 3600 + mi * 60 + sec);
    return true;
}

double fl_http_retry_after(const char *text, double wall)
{
    fl_str s = fl_str_trim(fl_str_c(text));
    double v;
    size_t n;

    if (!s.n)
        return -1;
    if (isdigit((unsigned char)s.p[0])) {
        n = fl_str_f64(s, &v);
        return n == s.n && v >= 0 && v < 1e9 ? v : -1;
    }
    if (!http_date(s, &v))
        return -1;
    return v > wall ? v - wall : 0;
}

/* The pause before try number `done` + 1, or -1: it is not worth waiting. */
static double pause_before(const struct fl_http_retry *r, const struct fl_http_request *rq,
                           const struct fl_http_reply *reply, unsigned done)
{
    const struct fl_http_world *w = r->world;
    double most = r->most > 0 ? r->most : MOST, wait = r->first > 0 ? r->first : FIRST;
    double asked = -1;

    for (unsigned i = 1; i < done && wait < most; i++)
        wait *= 2;
    wait = wait < most ? wait : most;
    wait *= 0.5 + 0.5 * w->chance(w->ctx);
    if (reply->retry_after[0])
        asked = fl_http_retry_after(reply->retry_after, w->wall(w->ctx));
    if (asked > most)
        return -1;
    /* Never sooner than asked, and a little later by chance, as everybody was told the same. */
    wait = asked >= 0 ? asked + 0.1 * wait : wait;
    if (rq->deadline > 0 && w->now(w->ctx) + wait >= rq->deadline)
        return -1;
    return wait;
}

static bool again(const struct fl_http_reply *reply)
{
    if (reply->streamed)
        return false;
    return reply->end == FL_HTTP_RESET ||
           (reply->end == FL_HTTP_DONE && fl_http_retriable(reply->status));
}

static void forget(struct fl_http_reply *reply)
{
    fl_buf body = reply->body;

    fl_buf_clear(&body);
    memset(reply, 0, sizeof(*reply));
    reply->body = body;
}

static int perform(void *ctx, const struct fl_http_request *rq, struct fl_http_reply *reply,
                   fl_err *err)
{
    struct fl_http_retry *r = ctx;
    const struct fl_http_world *w = r->world;
    double start = w->now(w->ctx);
    unsigned tries = r->tries ? r->tries : TRIES, done = 0;
    fl_err last = {0};
    int status;

    for (;;) {
        double wait;
        status = fl_http_perform(r->inner, rq, reply, &last);
        done++;
        if (done >= tries || !again(reply))
            break;
        wait = pause_before(r, rq, reply, done);
        if (wait < 0)
            break;
        w->pause(w->ctx, wait, rq->cancel);
        if (rq->cancel && *rq->cancel) {
            reply->end = FL_HTTP_CANCELLED;
            status = fl_fail(&last, FL_EBACKEND, "the request was stopped");
            break;
        }
        forget(reply);
    }
    reply->tries = done;
    reply->seconds = w->now(w->ctx) - start;
    if (status && err)
        *err = last;
    return status;
}

const struct fl_http_transport *fl_http_retry_transport(struct fl_http_retry *r)
{
    r->self.perform = perform;
    r->self.ctx = r;
    return &r->self;
}
