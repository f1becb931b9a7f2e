/*
 * Base64, for the few recorded bodies that are no UTF-8: an answer that broke off in the middle of
 * a character, or a server that sends anything at all. Kept apart from the recording, which would
 * otherwise have to replace such bytes and would no longer give back what came.
 */
#include "llm/base64.h"

#include "base/alloc.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void fl_base64_put(fl_str s, fl_buf *out)
{
    for (size_t i = 0; i < s.n; i += 3) {
        size_t n = s.n - i < 3 ? s.n - i : 3;
        unsigned v = (unsigned)(unsigned char)s.p[i] << 16;
        v |= n > 1 ? (unsigned)(unsigned char)s.p[i + 1] << 8 : 0;
        v |= n > 2 ? (unsigned)(unsigned char)s.p[i + 2] : 0;
        fl_buf_addc(out, digits[v >> 18]);
        fl_buf_addc(out, digits[v >> 12 & 63]);
        fl_buf_addc(out, n > 1 ? digits[v >> 6 & 63] : '=');
        fl_buf_addc(out, n > 2 ? digits[v & 63] : '=');
    }
}

bool fl_base64_get(fl_str s, fl_buf *out)
{
    if (s.n % 4)
        return false;
    for (size_t i = 0; i < s.n; i += 4) {
        bool last = i + 4 == s.n;
        unsigned v = 0, n = 3;
        for (size_t k = 0; k < 4; k++) {
            const char *at = memchr(digits, s.p[i + k], 64);
            if (!at && last && k >= 2 && s.p[i + k] == '=' && (k == 3 || s.p[i + 3] == '=')) {
                n = n == 3 && k == 3 ? 2 : 1;
                v <<= 6;
                continue;
            }
            if (!at)
                return false;
            v = v << 6 | (unsigned)(at - digits);
        }
        fl_buf_addc(out, (char)(v >> 16));
        if (n > 1)
            fl_buf_addc(out, (char)(v >> 8 & 255));
        if (n > 2)
            fl_buf_addc(out, (char)(v & 255));
    }
    return true;
}
