/*
 * Any message: its shape stays in its room, holds no byte twice over, and is the same for any other
 * digits unless a number was kept; and so is whether one was. Words of trouble are 0 to 3.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void other_digits(fl_str s, char *out, char digit)
{
    for (size_t i = 0; i < s.n; i++)
        out[i] = s.p[i] < '0' || s.p[i] > '9' ? s.p[i]
                 : digit                      ? digit
                                              : (char)('0' + (s.p[i] * 7 + (int)i) % 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fl_str s = {(const char *)data, n};
    char x[FL_SHAPE_OUT], y[FL_SHAPE_OUT], other[FL_SHAPE_IN];
    static const char digits[] = {'0', '9', '1', 0};
    bool codes, codes_b;
    size_t a = fl_shape(s, x, &codes), b;
    int bad = fl_badness(s);

    if (a > FL_SHAPE_OUT || a > n || bad < 0 || bad > 3)
        abort();
    s = fl_str_sub(s, 0, sizeof(other));
    for (size_t i = 0; i < sizeof(digits); i++) {
        other_digits(s, other, digits[i]);
        b = fl_shape(fl_str_n(other, s.n), y, &codes_b);
        if (codes != codes_b || (!codes && (a != b || memcmp(x, y, a) != 0)))
            abort();
    }
    return 0;
}
