#ifndef FL_EMBED_NORMAL_H
#define FL_EMBED_NORMAL_H
/*
 * What of a log line says which failure it is: words in lower case, and the few numbers that are
 * names of errors.
 */
#include "base/buf.h"
#include "base/str.h"

/*
 * Appends the normalised text: words in lower case, a single blank between them. Times, addresses,
 * hex numbers, hashes and most numbers are left out, of a path the last name is kept, CamelCase and
 * snake_case become words. Any bytes; what is no UTF-8 counts as a blank. At most 2 n + 1 bytes;
 * O(n), one pass. Errors stay in the buffer.
 */
void fl_normal(fl_str text, fl_buf *out);

#endif
