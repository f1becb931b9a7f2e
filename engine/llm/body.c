/*
 * What is asked for, in the words that this server understands.
 *
 * Everybody speaks "OpenAI's protocol", and no two speak the same. Rather than a table of vendors,
 * which is wrong the day after it is written, the fullest request is sent first, and what a server
 * objects to is left out the next time: json_schema becomes json_object and then plain text,
 * max_tokens becomes max_completion_tokens (newer models of OpenAI's take only that), a temperature
 * or stream_options disappear. Each step removes something for good, so there are at most six.
 *
 * A refusal without a reason that one knows is blamed on the schema, as the newest and most often
 * missing of these. The exception is a prompt that is too long: nothing that is left out here makes
 * it shorter.
 */
#include "llm/parts.h"

#include "base/alloc.h"

#define MAX_TOKENS 2000

const char *fl_llm_format_word(enum fl_llm_format f)
{
    return f == FL_LLM_JSON_SCHEMA   ? "json_schema"
           : f == FL_LLM_JSON_OBJECT ? "json_object"
                                     : "text";
}

static void put_format(fl_json *root, const struct fl_llm_habits *h, const struct fl_llm_ask *ask)
{
    fl_json *format, *schema;

    if (!ask->schema.n || h->format == FL_LLM_PLAIN)
        return;
    format = fl_json_put_object(root, "response_format");
    fl_json_put_z(format, "type", fl_llm_format_word(h->format));
    if (h->format == FL_LLM_JSON_OBJECT)
        return;
    schema = fl_json_put_object(format, "json_schema");
    fl_json_put_z(schema, "name", ask->schema_name ? ask->schema_name : "answer");
    fl_json_put_bool(schema, "strict", true);
    fl_json_put_raw(schema, "schema", ask->schema);
}

int fl_llm_body(const struct fl_llm_endpoint *e, const struct fl_llm_habits *h,
                const struct fl_llm_ask *ask, fl_buf *out, fl_err *err)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    unsigned max = ask->max_tokens ? ask->max_tokens : e->max_tokens ? e->max_tokens : MAX_TOKENS;
    fl_json *root = fl_json_object(), *messages;
    int r;

    if (e->model && *e->model)
        fl_json_put_z(root, "model", e->model);
    messages = fl_json_put_array(root, "messages");
    for (size_t i = 0; i < ask->nmessages; i++) {
        fl_json *m = fl_json_add_object(messages);
        fl_json_put_z(m, "role", roles[ask->messages[i].role]);
        fl_json_put_str(m, "content", ask->messages[i].text);
    }
    fl_json_put_int(root, h->completion_tokens ? "max_completion_tokens" : "max_tokens", max);
    if (ask->temperature >= 0 && !h->no_temperature)
        fl_json_put_num(root, "temperature", ask->temperature);
    put_format(root, h, ask);
    if (ask->on_text) {
        fl_json_put_bool(root, "stream", true);
        if (!h->no_stream_options)
            fl_json_put_bool(fl_json_put_object(root, "stream_options"), "include_usage", true);
    }
    r = fl_json_print(root, false, out, err);
    fl_json_free(root);
    return r;
}

static bool has_any(fl_str words, const char *const *list)
{
    for (; *list; list++)
        if (fl_str_has(words, fl_str_c(*list)))
            return true;
    return false;
}

bool fl_llm_is_context_error(fl_str words)
{
    static const char *const list[] = {"context length",
                                       "context size",
                                       "context window",
                                       "maximum context",
                                       "context_length",
                                       "exceed_context_size",
                                       "prompt is too long",
                                       "too many tokens",
                                       "available context",
                                       "input is too long",
                                       NULL};

    return has_any(words, list);
}

bool fl_llm_adapt(struct fl_llm_habits *h, const struct fl_llm_ask *ask, int status, fl_str words)
{
    static const char *const format[] = {"response_format", "json_schema", "json_object", "grammar",
                                         "schema",          "structured",  "guided",      NULL};
    bool refused = status == 400 || status == 422 || status == 501;

    if (!refused && status != 500)
        return false;
    if (fl_llm_is_context_error(words))
        return false;
    if (fl_str_has(words, FL_S("max_completion_tokens")) && !h->completion_tokens)
        return h->completion_tokens = true;
    if (fl_str_has(words, FL_S("stream_options")) && ask->on_text && !h->no_stream_options)
        return h->no_stream_options = true;
    if (fl_str_has(words, FL_S("temperature")) && ask->temperature >= 0 && !h->no_temperature)
        return h->no_temperature = true;
    if (!ask->schema.n || h->format == FL_LLM_PLAIN)
        return false;
    if (!refused && !has_any(words, format))
        return false;
    if (fl_str_has(words, FL_S("model")) && !has_any(words, format))
        return false; /* the model's name is wrong, or it does not chat */
    h->format++;
    return true;
}
