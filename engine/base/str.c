/*
 * Slices: search, trim, numbers.
 *
 * Everything here works on bytes. Case folding is ASCII only: error texts are ASCII, and a locale
 * would make the same log give two answers on two machines. Numbers are read by hand for the same
 * reason, and because strtod() wants a NUL behind a slice that has none.
 */
#define _GNU_SOURCE
#include "base/str.h"

#include <math.h>

int fl_str_cmp(fl_str a, fl_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;

    if (c)
        return c;
    return a.n < b.n ? -1 : a.n > b.n;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool fl_str_ieq(fl_str a, fl_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

ptrdiff_t fl_str_find(fl_str s, fl_str needle)
{
    const char *hit;

    if (needle.n == 0)
        return 0;
    if (s.n < needle.n)
        return -1;
    hit = memmem(s.p, s.n, needle.p, needle.n);
    return hit ? hit - s.p : -1;
}

ptrdiff_t fl_str_find_c(fl_str s, char c)
{
    const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;

    return hit ? hit - s.p : -1;
}

ptrdiff_t fl_str_rfind_c(fl_str s, char c)
{
    const char *hit = s.n ? memrchr(s.p, c, s.n) : NULL;

    return hit ? hit - s.p : -1;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

fl_str fl_str_trim(fl_str s)
{
    while (s.n && blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

fl_str fl_str_cut(fl_str *s, char sep)
{
    ptrdiff_t at = fl_str_find_c(*s, sep);
    fl_str head = *s;

    if (at < 0) {
        *s = fl_str_from(*s, s->n);
        return head;
    }
    head.n = (size_t)at;
    *s = fl_str_from(*s, (size_t)at + 1);
    return head;
}

size_t fl_str_u64(fl_str s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9') {
        uint64_t d = (uint64_t)(s.p[i] - '0');
        if (d > max || v > (max - d) / 10)
            return 0;
        v = v * 10 + d;
        i++;
    }
    if (i == 0)
        return 0;
    *out = v;
    return i;
}

bool fl_str_to_u64(fl_str s, uint64_t *out)
{
    uint64_t v;

    if (s.n == 0 || fl_str_u64(s, UINT64_MAX, &v) != s.n)
        return false;
    *out = v;
    return true;
}

static size_t digits(fl_str s, size_t i, double *v, int *scale)
{
    size_t start = i;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9') {
        *v = *v * 10 + (s.p[i] - '0');
        if (scale)
            (*scale)--;
        i++;
    }
    return i - start;
}

static size_t word_number(fl_str s, size_t i, double sign, double *out)
{
    static const struct {
        fl_str text;
        double value;
    } words[] = {{{"infinity", 8}, INFINITY}, {{"inf", 3}, INFINITY}, {{"nan", 3}, NAN}};

    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
        fl_str t = words[w].text;
        if (fl_str_ieq(fl_str_sub(s, i, t.n), t)) {
            *out = sign * words[w].value;
            return i + t.n;
        }
    }
    return 0;
}

size_t fl_str_f64(fl_str s, double *out)
{
    size_t i = 0, n;
    double v = 0, sign = 1;
    int scale = 0;

    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
        sign = s.p[i++] == '-' ? -1 : 1;
    if (i < s.n && (lower(s.p[i]) == 'i' || lower(s.p[i]) == 'n'))
        return word_number(s, i, sign, out);
    n = digits(s, i, &v, NULL);
    i += n;
    if (i < s.n && s.p[i] == '.') {
        size_t f = digits(s, i + 1, &v, &scale);
        if (n || f)
            i += 1 + f;
        n += f;
    }
    if (n == 0)
        return 0;
    if (i + 1 < s.n && lower(s.p[i]) == 'e') {
        size_t j = i + 1;
        bool down = s.p[j] == '-';
        double e = 0;
        if (s.p[j] == '-' || s.p[j] == '+')
            j++;
        size_t k = digits(s, j, &e, NULL);
        if (k) {
            i = j + k;
            scale += (int)(e > 999 ? 999 : e) * (down ? -1 : 1);
        }
    }
    *out = sign * v * pow(10, scale);
    return i;
}
