#ifndef FL_BASE_JSON_H
#define FL_BASE_JSON_H
/*
 * JSON, by cJSON (included in json.c only).
 *
 * Writing: build a tree with fl_json_object() and the fl_json_put functions, print it, free it.
 * A failed allocation is sticky in the tree's printer: fl_json_print() then fails. Strings are made
 * valid UTF-8 on the way in.
 * Reading: fl_json_parse() gives a tree; lookups return borrowed nodes that die with it.
 */
#include "base/buf.h"

typedef struct fl_json fl_json; /* a node; owned by its root */

fl_json *fl_json_object(void);
void fl_json_free(fl_json *root);

/* Each adds `value` under `key`. NULL `o` is ignored. The child functions return the new node
 * (borrowed) or NULL when memory ran out, which marks the process's next print as failed. */
void fl_json_put_str(fl_json *o, const char *key, fl_str value);
void fl_json_put_z(fl_json *o, const char *key, const char *value); /* NULL: nothing is added */
void fl_json_put_num(fl_json *o, const char *key, double value);
void fl_json_put_int(fl_json *o, const char *key, int64_t value); /* exact up to 2^53 */
void fl_json_put_bool(fl_json *o, const char *key, bool value);
void fl_json_put_null(fl_json *o, const char *key);
/* Text that is JSON already, printed as it is: the caller vouches for it. */
void fl_json_put_raw(fl_json *o, const char *key, fl_str json);
fl_json *fl_json_put_object(fl_json *o, const char *key);
fl_json *fl_json_put_array(fl_json *o, const char *key);
void fl_json_add_str(fl_json *array, fl_str value);
void fl_json_add_int(fl_json *array, int64_t value);
fl_json *fl_json_add_object(fl_json *array);
/* Appends the text, indented or in one line, without a newline at its end. */
int fl_json_print(const fl_json *root, bool indented, fl_buf *out, fl_err *err);

/* `name` is for messages. Depth is limited by cJSON (1000), size by the caller. */
int fl_json_parse(fl_str text, const char *name, fl_json **out, fl_err *err);
const fl_json *fl_json_get(const fl_json *o,
                           const char *key);    /* NULL when absent or not an object */
size_t fl_json_size(const fl_json *a);          /* of an array or object, else 0 */
const fl_json *fl_json_first(const fl_json *a); /* first member, then fl_json_next */
const fl_json *fl_json_next(const fl_json *node);
const char *fl_json_key(const fl_json *node); /* of an object's member */
bool fl_json_is_object(const fl_json *node);
bool fl_json_is_array(const fl_json *node);
const char *fl_json_z(const fl_json *node);         /* text of a string node, else NULL */
bool fl_json_num(const fl_json *node, double *out); /* a number node */
bool fl_json_bool(const fl_json *node, bool *out);  /* true or false */

#endif
