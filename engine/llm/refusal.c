/*
 * An answer that is none, in one sentence.
 *
 * What a status means for this program is said first, then the server's own words, cut and
 * scrubbed: services echo the key they refuse. The words are not trusted further than that; a
 * message escapes what could move a terminal's cursor (base/err.c).
 */
#include <stdio.h>

#include "llm/parts.h"

#include "base/alloc.h"

static const char *advice(int status, bool has_key)
{
    switch (status) {
    case 401:
        return has_key ? "the key was refused; check what api_key_file or api_key_env holds"
                       : "the server wants a key; name one by api_key_file or api_key_env";
    case 402:
        return "the account has no credit left";
    case 403:
        return "access is refused; this key may not use the model, or the network may not";
    case 404:
        return "there is no such address or model; check url (it mostly ends in /v1) and model";
    case 408:
        return "the server gave up waiting";
    case 413:
        return "the request is too large for the server";
    case 501:
        return "the server cannot do this as it was started";
    case 429:
        return "the service is crowded, or the quota is used up";
    default:
        break;
    }
    return status >= 500   ? "the server failed; see its log"
           : status >= 400 ? "the request was refused"
                           : "an answer that is not understood";
}

static bool is_page(const struct fl_http_reply *reply)
{
    fl_str body = fl_str_trim(fl_buf_str(&reply->body));

    return !strcmp(reply->content_type, "text/html") || fl_str_starts(body, FL_S("<"));
}

int fl_llm_refusal(const struct fl_llm_endpoint *e, const struct fl_llm_call *call,
                   const struct fl_http_reply *reply, fl_err *err)
{
    char room[300], tries[40] = "";
    const char *shown = fl_llm_endpoint_name(e, room);
    fl_buf words;
    fl_err said = {0};
    int r;

    fl_buf_init(&words, 4096);
    fl_llm_error_words(fl_buf_str(&reply->body), &words);
    if (reply->tries > 1)
        snprintf(tries, sizeof(tries), ", %u tries", reply->tries);
    if (reply->status >= 200 && reply->status < 300)
        r = fl_fail(&said, FL_EBACKEND,
                    "%s: the answer is %s%.60s and not JSON; is the url right? It mostly ends in "
                    "/v1",
                    shown, is_page(reply) ? "a web page, " : "",
                    reply->content_type[0] ? reply->content_type : "of no type");
    else if (words.n && fl_llm_is_context_error(fl_buf_str(&words)))
        r = fl_fail(&said, FL_ELIMIT,
                    "%s: the prompt is too long for the model (%.200s); give the server a larger "
                    "context or make the digest smaller",
                    shown, words.p);
    else
        r = fl_fail(&said, FL_EBACKEND, "%s: %s (status %d%s)%s%.250s", shown,
                    advice(reply->status, call->has_key), reply->status, tries, words.n ? ": " : "",
                    words.n ? words.p : "");
    fl_http_scrub_all(said.msg, &call->rq);
    if (err)
        *err = said;
    fl_buf_dispose(&words);
    return r;
}
