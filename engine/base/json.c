/*
 * JSON through cJSON, which is included here only.
 *
 * cJSON reports a failed allocation by NULL at each call. Checking forty calls a report would bury
 * the report, so each tree's root carries the failure instead: a node that could not be added sets
 * a thread-local mark that the next print turns into FL_ENOMEM. Non-finite numbers have no JSON
 * form; they are written as null.
 */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "base/alloc.h"
#include "base/text.h"

static _Thread_local bool lost; /* a node since the last print could not be allocated */

static cJSON *raw(const fl_json *n)
{
    return (cJSON *)(uintptr_t)n;
}

static void hooks(void)
{
    static cJSON_Hooks h = {fl_malloc, fl_free};

    cJSON_InitHooks(&h);
}

static fl_json *keep(cJSON *n)
{
    if (!n)
        lost = true;
    return (fl_json *)n;
}

fl_json *fl_json_object(void)
{
    hooks();
    lost = false;
    return keep(cJSON_CreateObject());
}

void fl_json_free(fl_json *root)
{
    cJSON_Delete(raw(root));
}

static fl_json *attach(fl_json *parent, const char *key, cJSON *child)
{
    bool ok = child && parent;

    if (ok)
        ok = key ? cJSON_AddItemToObject(raw(parent), key, child)
                 : cJSON_AddItemToArray(raw(parent), child);
    if (!ok) {
        cJSON_Delete(child);
        lost = true;
        return NULL;
    }
    return (fl_json *)child;
}

static cJSON *string(fl_str s)
{
    fl_buf b;
    cJSON *n;

    fl_buf_init(&b, SIZE_MAX / 4);
    fl_text_utf8(s, &b);
    n = b.bad ? NULL : cJSON_CreateString(b.p ? b.p : "");
    fl_buf_dispose(&b);
    return n;
}

void fl_json_put_str(fl_json *o, const char *key, fl_str value)
{
    attach(o, key, string(value));
}

void fl_json_put_z(fl_json *o, const char *key, const char *value)
{
    if (value)
        attach(o, key, string(fl_str_c(value)));
}

void fl_json_put_num(fl_json *o, const char *key, double value)
{
    attach(o, key, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

void fl_json_put_int(fl_json *o, const char *key, int64_t value)
{
    attach(o, key, cJSON_CreateNumber((double)value));
}

void fl_json_put_bool(fl_json *o, const char *key, bool value)
{
    attach(o, key, cJSON_CreateBool(value));
}

void fl_json_put_null(fl_json *o, const char *key)
{
    attach(o, key, cJSON_CreateNull());
}

void fl_json_put_raw(fl_json *o, const char *key, fl_str json)
{
    char *z = fl_strdup_s(json);

    attach(o, key, z ? cJSON_CreateRaw(z) : NULL);
    fl_free(z);
}

fl_json *fl_json_put_object(fl_json *o, const char *key)
{
    return attach(o, key, cJSON_CreateObject());
}

fl_json *fl_json_put_array(fl_json *o, const char *key)
{
    return attach(o, key, cJSON_CreateArray());
}

void fl_json_add_str(fl_json *array, fl_str value)
{
    attach(array, NULL, string(value));
}

void fl_json_add_int(fl_json *array, int64_t value)
{
    attach(array, NULL, cJSON_CreateNumber((double)value));
}

fl_json *fl_json_add_object(fl_json *array)
{
    return attach(array, NULL, cJSON_CreateObject());
}

int fl_json_print(const fl_json *root, bool indented, fl_buf *out, fl_err *err)
{
    char *text;

    if (lost || !root)
        return fl_fail_nomem(err);
    text = indented ? cJSON_Print(raw(root)) : cJSON_PrintUnformatted(raw(root));
    if (!text)
        return fl_fail_nomem(err);
    fl_buf_addz(out, text);
    cJSON_free(text);
    return fl_buf_check(out, "the JSON text", err);
}

int fl_json_parse(fl_str text, const char *name, fl_json **out, fl_err *err)
{
    const char *end = NULL;
    cJSON *root;

    hooks();
    root = cJSON_ParseWithLengthOpts(text.p ? text.p : "", text.n, &end, false);
    if (!root) {
        size_t at = end && text.p && end >= text.p ? (size_t)(end - text.p) : 0, line = 1;
        for (size_t i = 0; i < at && i < text.n; i++)
            line += text.p[i] == '\n';
        return fl_fail(err, FL_EINPUT, "%s:%zu: not valid JSON; check it with a JSON tool", name,
                       line);
    }
    *out = (fl_json *)root;
    return FL_OK;
}

const fl_json *fl_json_get(const fl_json *o, const char *key)
{
    return (const fl_json *)cJSON_GetObjectItemCaseSensitive(raw(o), key);
}

size_t fl_json_size(const fl_json *a)
{
    return a && (fl_json_is_array(a) || fl_json_is_object(a)) ? (size_t)cJSON_GetArraySize(raw(a))
                                                              : 0;
}

const fl_json *fl_json_first(const fl_json *a)
{
    return a ? (const fl_json *)raw(a)->child : NULL;
}

const fl_json *fl_json_next(const fl_json *node)
{
    return (const fl_json *)raw(node)->next;
}

const char *fl_json_key(const fl_json *node)
{
    return raw(node)->string;
}

bool fl_json_is_object(const fl_json *node)
{
    return cJSON_IsObject(raw(node));
}

bool fl_json_is_array(const fl_json *node)
{
    return cJSON_IsArray(raw(node));
}

const char *fl_json_z(const fl_json *node)
{
    return cJSON_GetStringValue(raw(node));
}

bool fl_json_bool(const fl_json *node, bool *out)
{
    if (!cJSON_IsBool(raw(node)))
        return false;
    *out = cJSON_IsTrue(raw(node));
    return true;
}

bool fl_json_num(const fl_json *node, double *out)
{
    if (!cJSON_IsNumber(raw(node)))
        return false;
    *out = raw(node)->valuedouble;
    return true;
}
