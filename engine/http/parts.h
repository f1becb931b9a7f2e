#ifndef FL_HTTP_PARTS_H
#define FL_HTTP_PARTS_H
/*
 * Shared by the files of this room that see libcurl: one request on its way.
 */
#include <curl/curl.h>

#include "http/http.h"

struct fl_http_client {
    CURLM *multi;
    const struct fl_http_world *world;
    struct fl_http_transport transport;
};

struct fl_http_job {
    struct fl_http_client *client;
    const struct fl_http_request *rq;
    struct fl_http_reply *reply;
    CURL *easy;
    struct curl_slist *headers;
    char shown[300];    /* the URL, for messages */
    char location[300]; /* where a redirect points to, for messages */
    char why[CURL_ERROR_SIZE];
    size_t max, taken, header_bytes;
    double until; /* on the world's clock: the nearer of time-out and deadline */
    bool deadline_first;
    fl_err inner; /* what on_bytes said */
};

/* Runs `easy` to its end or until cancel, time-out or deadline, which are set in *end. */
CURLcode fl_http_pump(struct fl_http_job *j, CURL *easy, enum fl_http_end *end);
/* Sets reply->end and the sentence for what came of it; returns the code for the caller. */
int fl_http_conclude(struct fl_http_job *j, CURLcode code, enum fl_http_end end, fl_err *err);

#endif
