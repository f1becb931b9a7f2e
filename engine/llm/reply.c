/*
 * What a server answered.
 *
 * The useful part is small (the text, why it ended, how many tokens), and stands in slightly
 * different places: `content` may be null, a string, or a list of parts; a model may refuse in a
 * member of its own; a stream sends deltas that hold nothing, and its token counts in a last chunk
 * without choices. Errors come as {"error": {"message"}}, {"error": "text"}, {"message"},
 * {"detail"} or {"detail": [{"msg"}]}, with status 200 too, and in the middle of a stream.
 * Reasoning that the server keeps apart (reasoning_content) is not the answer and is passed over.
 */
#include "llm/parts.h"

#include <stdio.h>

#include "base/alloc.h"

static void copy(char *out, size_t cap, const char *z)
{
    if (z && *z)
        snprintf(out, cap, "%s", z);
}

static int show(struct fl_llm_reading *r, fl_str s)
{
    fl_buf_add(r->text, s);
    return r->showing && s.n ? fl_llm_unthink_feed(&r->show, s) : 0;
}

/* A string, or a list of parts whose texts belong together. */
static int take_content(struct fl_llm_reading *r, const fl_json *content)
{
    int status = 0;

    if (!content)
        return 0;
    if (fl_json_z(content))
        return show(r, fl_str_c(fl_json_z(content)));
    if (!fl_json_is_array(content))
        return 0;
    for (const fl_json *p = fl_json_first(content); p && status >= 0; p = fl_json_next(p)) {
        const fl_json *text;
        if (fl_json_z(p)) {
            status = show(r, fl_str_c(fl_json_z(p)));
            continue;
        }
        if (!fl_json_is_object(p))
            continue;
        text = fl_json_get(p, "text");
        if (text && fl_json_is_object(text))
            text = fl_json_get(text, "value");
        if (text && fl_json_z(text))
            status = show(r, fl_str_c(fl_json_z(text)));
        if (fl_json_get(p, "refusal"))
            r->refused = true;
    }
    return status;
}

static void take_usage(struct fl_llm_reading *r, const fl_json *root)
{
    const fl_json *u = fl_json_get(root, "usage"), *n;
    double x;

    if (!u || !fl_json_is_object(u))
        return;
    if ((n = fl_json_get(u, "prompt_tokens")) && fl_json_num(n, &x) && x >= 0 && x < 1e12)
        r->tokens_in = (int64_t)x;
    if ((n = fl_json_get(u, "completion_tokens")) && fl_json_num(n, &x) && x >= 0 && x < 1e12)
        r->tokens_out = (int64_t)x;
}

static const char *member(const fl_json *o, const char *key)
{
    const fl_json *n = o && fl_json_is_object(o) ? fl_json_get(o, key) : NULL;

    return n ? fl_json_z(n) : NULL;
}

void fl_llm_error_words(fl_str body, fl_buf *out)
{
    fl_json *root = NULL;
    const fl_json *e, *d;
    const char *z = NULL;

    if (fl_json_parse(body, "the reply", &root, NULL))
        return;
    e = fl_json_get(root, "error");
    d = fl_json_get(root, "detail");
    if (e)
        z = fl_json_z(e) ? fl_json_z(e) : member(e, "message");
    if (!z)
        z = member(root, "message");
    if (!z && d)
        z = fl_json_z(d) ? fl_json_z(d)
                         : member(fl_json_is_array(d) ? fl_json_first(d) : NULL, "msg");
    if (z)
        fl_buf_add(out, fl_str_c(z));
    /* What is wrong is sometimes only in these. */
    z = member(e, "param");
    if (z)
        fl_buf_addf(out, " (%s)", z);
    z = member(e, "code");
    if (z)
        fl_buf_addf(out, " [%s]", z);
    fl_json_free(root);
}

static int failed_reply(fl_str body, const char *shown, fl_err *err)
{
    fl_buf words;
    int r;

    fl_buf_init(&words, 4096);
    fl_llm_error_words(body, &words);
    if (words.n && fl_llm_is_context_error(fl_buf_str(&words)))
        r = fl_fail(err, FL_ELIMIT,
                    "%s: the prompt is too long for the model (%.160s); give the server a larger "
                    "context or make the digest smaller",
                    shown, words.p);
    else
        r = fl_fail(err, FL_EBACKEND, "%s: the server reported an error: %.250s", shown,
                    words.n ? words.p : "without a word about it");
    fl_buf_dispose(&words);
    return r;
}

static int take_choice(struct fl_llm_reading *r, const fl_json *root, const char *part)
{
    const fl_json *choices = fl_json_get(root, "choices"), *c, *m, *refusal;
    int status;

    if (!choices || !fl_json_is_array(choices) || !(c = fl_json_first(choices)))
        return 0;
    if (member(c, "finish_reason")) {
        copy(r->finish, sizeof(r->finish), member(c, "finish_reason"));
        r->done = true;
    }
    m = fl_json_is_object(c) ? fl_json_get(c, part) : NULL;
    if (!m || !fl_json_is_object(m))
        return 0;
    status = take_content(r, fl_json_get(m, "content"));
    refusal = fl_json_get(m, "refusal");
    if (status >= 0 && refusal && fl_json_z(refusal) && *fl_json_z(refusal)) {
        r->refused = true;
        status = show(r, fl_str_c(fl_json_z(refusal)));
    }
    return status < 0 ? status : 1;
}

int fl_llm_read_reply(struct fl_llm_reading *r, fl_str body, const char *shown, fl_err *err)
{
    fl_json *root = NULL;
    int status = FL_OK;

    if (fl_json_parse(body, "the reply", &root, NULL))
        return fl_fail(err, FL_EBACKEND, "%s: the answer is %s; see the server's log", shown,
                       fl_str_trim(body).n ? "not valid JSON, or was cut short" : "empty");
    if (fl_json_get(root, "error") &&
        (fl_json_is_object(fl_json_get(root, "error")) || fl_json_z(fl_json_get(root, "error")))) {
        status = failed_reply(body, shown, err);
        goto out;
    }
    copy(r->model, sizeof(r->model), member(root, "model"));
    take_usage(r, root);
    status = take_choice(r, root, "message");
    if (status == 0)
        status = fl_fail(err, FL_EBACKEND,
                         "%s: the answer has no choices with a message; is this a chat completions "
                         "server?",
                         shown);
    else if (status < 0)
        status = fl_fail(err, FL_EBACKEND, "the answer was stopped");
    else
        status = FL_OK;
    r->done = true;
out:
    fl_json_free(root);
    return status;
}

int fl_llm_read_event(struct fl_llm_reading *r, bool failed, fl_str data, const char *shown,
                      fl_err *err)
{
    fl_json *root = NULL;
    const fl_json *e;
    int status;

    data = fl_str_trim(data);
    if (fl_str_eqz(data, "[DONE]")) {
        r->done = true;
        return FL_OK;
    }
    if (failed)
        return failed_reply(data, shown, err);
    if (fl_json_parse(data, "the stream", &root, NULL))
        return fl_fail(err, FL_EBACKEND, "%s: the stream holds an event that is not valid JSON",
                       shown);
    e = fl_json_get(root, "error");
    if (e && (fl_json_is_object(e) || fl_json_z(e))) {
        status = failed_reply(data, shown, err);
        goto out;
    }
    copy(r->model, sizeof(r->model), member(root, "model"));
    take_usage(r, root);
    status = take_choice(r, root, "delta");
    status = status < 0 ? fl_fail(err, FL_EBACKEND, "the answer was stopped") : FL_OK;
out:
    fl_json_free(root);
    return status;
}
