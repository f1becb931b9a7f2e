#ifndef FL_LLM_BASE64_H
#define FL_LLM_BASE64_H
/*
 * Bytes that JSON cannot hold, as text.
 */
#include "base/buf.h"

void fl_base64_put(fl_str bytes, fl_buf *out);
bool fl_base64_get(fl_str text, fl_buf *out); /* false when the text is not of this form */

#endif
