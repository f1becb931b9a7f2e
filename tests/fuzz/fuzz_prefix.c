/*
 * Any line: the prefix reader stays inside it, and its answer is sane. The first byte chooses
 * between a line, a time and a file's name.
 */
#include <stdint.h>
#include <stdlib.h>

#include "read/prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fl_str s = {(const char *)data, n};
    struct fl_prefix p;
    struct fl_file_place place;
    struct fl_time t;
    char text[40];
    int32_t rank;

    fl_prefix_parse(s, &p);
    if (p.message > n || (p.host.n && (p.host.p < s.p || p.host.p + p.host.n > s.p + s.n)))
        abort();
    fl_time_print(&p.time, text);
    fl_prefix_peek_rank(s, &rank);
    if (fl_time_parse(s, &t) > n)
        abort();
    fl_place_from_name(s, &place);
    return 0;
}
