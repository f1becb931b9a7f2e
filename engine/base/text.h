#ifndef FL_BASE_TEXT_H
#define FL_BASE_TEXT_H
/*
 * Hostile text made fit to print.
 */
#include "base/buf.h"
#include "base/str.h"

/*
 * Copies `s` into `out` (capacity `cap`, always NUL-terminated when cap > 0) with control bytes
 * (C0 but TAB, DEL, C1 as UTF-8, invalid UTF-8, bidirectional overrides) written as \xNN or \uNNNN.
 * Stops before a unit that does not fit. Returns the number of bytes of `s` used.
 */
size_t fl_text_escape(fl_str s, char *out, size_t cap);
/* The same, appended to a buffer; TAB stays. */
void fl_text_escape_buf(fl_str s, fl_buf *out);
/* Appends `s` as valid UTF-8: each invalid byte becomes U+FFFD. For JSON. */
void fl_text_utf8(fl_str s, fl_buf *out);
/* Length in bytes of the valid UTF-8 unit at the start of `s`, 0 if there is none. */
size_t fl_text_unit(fl_str s);

#endif
