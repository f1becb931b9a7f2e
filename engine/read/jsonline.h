#ifndef FL_READ_JSONLINE_H
#define FL_READ_JSONLINE_H
/*
 * The few fields of one JSON object on one line that log wrappers use. Not for other rooms.
 */
#include "base/buf.h"

enum fl_jl_kind { FL_JL_ABSENT, FL_JL_STRING, FL_JL_OTHER };

struct fl_jl_value {
    enum fl_jl_kind kind;
    fl_str raw; /* a string's inside, still escaped; else the value's text */
};

/* Looks for `keys` (n of them) at the top level of the object `s`; values[i] is set for each. When
 * a key stands twice, the last one counts. False when `s` is no whole object. One pass. */
bool fl_jl_scan(fl_str s, const fl_str *keys, struct fl_jl_value *values, size_t n);
/* Appends the string's text with its escapes resolved. */
void fl_jl_text(fl_str raw, fl_buf *out);

#endif
