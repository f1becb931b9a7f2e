#ifndef FL_BASE_STR_H
#define FL_BASE_STR_H
/*
 * fl_str: a slice of bytes, passed by value.
 *
 * Log bytes are never assumed to be UTF-8 nor NUL-terminated. A slice owns nothing; it lives as
 * long as what it points into. The empty slice may have p == NULL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct fl_str {
    const char *p;
    size_t n;
} fl_str;

#define FL_S(lit) ((fl_str){"" lit "", sizeof(lit) - 1})
/* For printf's "%.*s". Log lines are capped far below INT_MAX. */
#define FL_FMT(s) (int)(s).n, (s).p ? (s).p : ""

static inline fl_str fl_str_c(const char *z)
{
    return (fl_str){z, z ? strlen(z) : 0};
}
static inline fl_str fl_str_n(const char *p, size_t n)
{
    return (fl_str){p, n};
}
/* The part from `at`, at most `n` bytes; positions behind the end give the empty slice. */
static inline fl_str fl_str_sub(fl_str s, size_t at, size_t n)
{
    if (at >= s.n)
        return (fl_str){s.p ? s.p + s.n : NULL, 0};
    return (fl_str){s.p + at, n < s.n - at ? n : s.n - at};
}
static inline fl_str fl_str_from(fl_str s, size_t at)
{
    return fl_str_sub(s, at, SIZE_MAX);
}
static inline bool fl_str_eq(fl_str a, fl_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool fl_str_eqz(fl_str a, const char *z)
{
    return fl_str_eq(a, fl_str_c(z));
}
static inline bool fl_str_starts(fl_str s, fl_str head)
{
    return s.n >= head.n && (head.n == 0 || memcmp(s.p, head.p, head.n) == 0);
}
static inline bool fl_str_ends(fl_str s, fl_str tail)
{
    return s.n >= tail.n && (tail.n == 0 || memcmp(s.p + s.n - tail.n, tail.p, tail.n) == 0);
}
/* Byte-wise order; a shorter slice sorts before a longer one it begins. */
int fl_str_cmp(fl_str a, fl_str b);
/* ASCII case is ignored. */
bool fl_str_ieq(fl_str a, fl_str b);
/* Position of the first occurrence, or -1. O(n) on average (memmem). */
ptrdiff_t fl_str_find(fl_str s, fl_str needle);
ptrdiff_t fl_str_find_c(fl_str s, char c);
ptrdiff_t fl_str_rfind_c(fl_str s, char c);
static inline bool fl_str_has(fl_str s, fl_str needle)
{
    return fl_str_find(s, needle) >= 0;
}
/* Blanks and tabs (and CR, LF) off both ends. */
fl_str fl_str_trim(fl_str s);
/* Cuts `*s` at the first `sep`: returns what stands before it, `*s` becomes what stands behind.
 * With no `sep` returns all of it and leaves `*s` empty. */
fl_str fl_str_cut(fl_str *s, char sep);
/* Decimal number at the very start of `s`, at most `max`: digits read, or 0 when there is none or
 * it is larger. `*out` is untouched then. */
size_t fl_str_u64(fl_str s, uint64_t max, uint64_t *out);
/* A whole slice as an unsigned number, decimal. */
bool fl_str_to_u64(fl_str s, uint64_t *out);
/* A floating number at the start of `s` (sign, digits, point, exponent, nan, inf; no locale, no
 * hex): bytes read, or 0. */
size_t fl_str_f64(fl_str s, double *out);

#endif
