#ifndef FL_HTTP_HTTP_H
#define FL_HTTP_HTTP_H
/*
 * HTTP requests to a service that may be slow, broken or hostile.
 *
 * A transport is a function that performs one request. The real one is libcurl's
 * (fl_http_client_transport); fl_http_retry_transport puts retries around another one; tests and
 * recordings have their own. All take the same request and give the same reply, so they nest.
 */
#include <signal.h>

#include "base/buf.h"
#include "base/err.h"

/* What came of a request, for those who decide what to do next. */
enum fl_http_end {
    FL_HTTP_DONE,      /* an answer came, of whatever status */
    FL_HTTP_BAD,       /* the request itself cannot be sent: URL, CA file */
    FL_HTTP_DNS,       /* the name does not resolve */
    FL_HTTP_REFUSED,   /* nobody listens there, or there is no way there */
    FL_HTTP_TLS,       /* no trusted connection */
    FL_HTTP_TIMEOUT,   /* the request's own time was up */
    FL_HTTP_DEADLINE,  /* the time of the whole answer was up */
    FL_HTTP_RESET,     /* the connection broke */
    FL_HTTP_TOO_LARGE, /* more than max_reply */
    FL_HTTP_REDIRECT,  /* an answer, but one that points elsewhere; it is not followed */
    FL_HTTP_CANCELLED, /* *cancel was set */
    FL_HTTP_STOPPED,   /* on_bytes said so; its error stands in err */
    FL_HTTP_OTHER
};

struct fl_http_header {
    const char *name, *value;
    bool secret; /* appears in no message and no recording */
};

struct fl_http_reply {
    enum fl_http_end end;
    int status;             /* 0: none came */
    char content_type[128]; /* lower case, without parameters; "" when absent */
    char retry_after[64];   /* the header's text */
    fl_buf body;            /* what on_bytes did not take; its maximum is the request's max_reply */
    bool streamed;          /* on_bytes was called */
    unsigned tries;         /* requests that were sent for this reply */
    double seconds;         /* all tries and the pauses between them */
};
void fl_http_reply_init(struct fl_http_reply *r);
void fl_http_reply_dispose(struct fl_http_reply *r);

struct fl_http_request {
    const char *method; /* "GET", "POST" */
    const char *url;    /* http or https */
    const struct fl_http_header *headers;
    size_t nheaders;
    fl_str body;
    const char *ca_file;             /* PEM; NULL: the system's */
    const char *proxy;               /* NULL: the environment's, and none for loopback; "": none */
    double connect_timeout, timeout; /* seconds; 0: 10 and 120 */
    double deadline;                 /* on the world's clock; 0: none */
    size_t max_reply;                /* bytes; 0: 4 MiB */
    const volatile sig_atomic_t *cancel; /* may be NULL; looked at every 50 ms */
    /* Takes the body of a 2xx answer as it comes; other answers go to reply->body. `so_far` has
     * status and content type. A negative code ends the request with FL_HTTP_STOPPED. */
    int (*on_bytes)(void *ctx, const struct fl_http_reply *so_far, fl_str bytes, fl_err *err);
    void *ctx;
    const char *note; /* for recordings: what the request is, such as a prompt's id and hash */
};

/*
 * Performs the request into an initialised reply. 0 with reply->end FL_HTTP_DONE when an answer
 * came, whatever its status; else a negative code with reply->end set and one sentence in err,
 * which names the address without user, password and query, and never a secret header's value.
 */
struct fl_http_transport {
    int (*perform)(void *ctx, const struct fl_http_request *rq, struct fl_http_reply *reply,
                   fl_err *err);
    void *ctx;
};
int fl_http_perform(const struct fl_http_transport *t, const struct fl_http_request *rq,
                    struct fl_http_reply *reply, fl_err *err);

/* Clock, pause and chance, so that tests and replays have their own. */
struct fl_http_world {
    double (*now)(void *ctx);  /* seconds, never goes back */
    double (*wall)(void *ctx); /* seconds since 1970 */
    /* Waits, in steps short enough that *cancel (may be NULL) acts within 50 ms. */
    void (*pause)(void *ctx, double seconds, const volatile sig_atomic_t *cancel);
    double (*chance)(void *ctx); /* 0 <= x < 1 */
    void *ctx;
};
const struct fl_http_world *fl_http_world(void); /* the real one */

/* ---- libcurl ---- */

typedef struct fl_http_client fl_http_client;
/* One at a time may use a client; connections stay open between its requests. `world` must outlive
 * it. */
int fl_http_client_new(const struct fl_http_world *world, fl_http_client **out, fl_err *err);
void fl_http_client_free(fl_http_client *c);
/* Borrowed from the client. Cancel and deadline act within 100 ms; redirects are not followed. */
const struct fl_http_transport *fl_http_client_transport(const fl_http_client *c);

/* ---- retries ---- */

struct fl_http_retry {
    const struct fl_http_transport *inner;
    const struct fl_http_world *world;
    unsigned tries;     /* in all; 0: 4 */
    double first, most; /* pause before the second try, and the longest one; 0: 1 and 30 seconds */
    struct fl_http_transport self;
};
/*
 * Tries again after 408, 429, 5xx and a broken connection, with pauses that double and of which
 * chance takes up to half, or what Retry-After says (seconds or a date). Never after other statuses
 * and ends, never when on_bytes has been called, and not when the pause would pass the deadline:
 * then the last answer stands. `r` must stay where it is while the transport is used.
 */
const struct fl_http_transport *fl_http_retry_transport(struct fl_http_retry *r);
bool fl_http_retriable(int status);
/* What a Retry-After header asks for in seconds, or -1 when it cannot be read. `wall` is now. */
double fl_http_retry_after(const char *text, double wall);

/* ---- words ---- */

/* The URL without user, password, query and fragment, for messages. */
void fl_http_show_url(const char *url, char *out, size_t cap);
bool fl_http_is_loopback(const char *url);
/* Replaces each run of eight or more bytes that text shares with a secret by "[key]", in place. A
 * secret shorter than that is replaced where it stands whole. */
void fl_http_scrub(char *text, const char *secret);
void fl_http_scrub_all(char *text, const struct fl_http_request *rq);

#endif
