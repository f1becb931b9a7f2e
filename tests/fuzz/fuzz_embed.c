/*
 * Any text: the normaliser keeps to its bytes and its alphabet, and a seal fits what it seals.
 */
#include <stdint.h>
#include <stdlib.h>

#include "embed/normal.h"
#include "embed/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fl_str s = {(const char *)data, n};
    uint64_t hash;
    fl_buf out;
    fl_buf_init(&out, 1 << 20);
    fl_normal(s, &out);
    if (out.bad || out.n > 2 * n)
        abort();
    for (size_t i = 0; i < out.n; i++) {
        unsigned char b = (unsigned char)out.p[i];
        if (b < 0x80 && b != ' ' && !(b >= 'a' && b <= 'z') && !(b >= '0' && b <= '9'))
            abort();
        if (b == ' ' && (i == 0 || i + 1 == out.n || out.p[i - 1] == ' '))
            abort();
    }
    fl_seal_check(s, &hash);
    /* What is sealed has one hash, and its seal is the right one. */
    fl_buf_clear(&out);
    fl_buf_add(&out, s);
    fl_seal_add(&out);
    if (fl_seal_check(fl_buf_str(&out), &hash))
        abort();
    fl_buf_dispose(&out);
    return 0;
}
