#ifndef FL_REDACT_SCAN_H
#define FL_REDACT_SCAN_H
/*
 * Inside the redact room: the text under scan, what was found in it, and the scanners.
 *
 * Scanners work on a copy of the text without ANSI codes, with a line end before its first byte and
 * a NUL behind its last, so that they may look one byte past either end. They add spans in any
 * order and with overlaps; fl_scan_settle() makes them disjoint.
 */
#include "redact/redact.h"

struct fl_span {
    uint32_t a, b;
    uint8_t kind;
};

struct fl_scan {
    struct fl_redactor *r;
    const char *p;   /* p[-1] == '\n', p[n] == 0 */
    const char *low; /* the same in lower case, with the same ends */
    size_t n;
    uint32_t *at; /* offsets in the original text of p[0..n]; NULL: the same */
    struct fl_span *v;
    size_t nv, cap;
    bool nomem;
};

int fl_scan_init(struct fl_scan *s, struct fl_redactor *r, fl_str text, fl_err *err);
void fl_scan_dispose(struct fl_scan *s);
void fl_scan_add(struct fl_scan *s, size_t a, size_t b, enum fl_redact_kind kind);
/* Makes the spans sorted, disjoint, and offsets of the original text. */
void fl_scan_settle(struct fl_scan *s);

void fl_scan_secrets(struct fl_scan *s);  /* shapes of keys, PEM blocks */
void fl_scan_assign(struct fl_scan *s);   /* values behind names: password=, --token, host= */
void fl_scan_commands(struct fl_scan *s); /* values behind commands and in sentences */
void fl_scan_hosts(struct fl_scan *s);    /* addresses, names with a domain */
void fl_scan_urls(struct fl_scan *s);     /* authorities of URLs, buckets */
void fl_scan_places(struct fl_scan *s);   /* hosts told by the shape of a line's head */
void fl_scan_users(struct fl_scan *s);    /* home folders, uid=1(x), e-mail */
int fl_scan_patterns(struct fl_scan *s, fl_err *err);
void fl_scan_known(struct fl_scan *s);

/* In lower case; `z` is followed by one 0 after each word and ends with an empty word. */
bool fl_word_in(const char *p, size_t n, const char *z);
/* Looks like a key: mixes digits and letters as no word or identifier does. */
bool fl_opaque(const char *p, size_t n);
/* A word that logs are made of, of four letters and more. In lower case. */
bool fl_ordinary(const char *low, size_t n);
/* What stands before `at` in its line, in lower case: 200 bytes of it at most. */
fl_str fl_scan_head(const struct fl_scan *s, size_t at);
/* A name that can only be a machine's: letter and digit, and no rank0, gpu0, x86. Lower case. */
bool fl_hosty(const char *low, size_t n);

/* Hosts with context: [a, b) is said to be a host, perhaps with a port that is not in the span. */
void fl_host_value(struct fl_scan *s, size_t a, size_t b, bool sure);
/* A name with a domain: [a, b) of letters, digits, '-' and '.'. Adds its parts unless public. */
void fl_host_fqdn(struct fl_scan *s, size_t a, size_t b);
bool fl_host_tld(const struct fl_scan *s, size_t a, size_t b);
void fl_user_value(struct fl_scan *s, size_t a, size_t b);

/* Makes [a, b) known for the whole conversation; `weak`: in paths only. */
void fl_scan_learn(struct fl_scan *s, size_t a, size_t b, enum fl_redact_kind kind, bool weak);

/* The placeholder at the start of `s`, preceded by `before` (0: nothing): its length, or 0. */
struct fl_mark {
    enum fl_redact_kind kind;
    uint32_t number; /* UINT32_MAX: too large */
};
size_t fl_mark_at(fl_str s, char before, struct fl_mark *out);
/* May a placeholder begin with this byte? */
bool fl_mark_start(char c);

/* The byte n before p[i], which may be p[-1]. */
static inline char fl_back(const char *p, size_t i, int n)
{
    return (p + i)[-n];
}
static inline bool fl_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool fl_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool fl_alnum(char c)
{
    return fl_digit(c) || fl_alpha(c);
}
static inline bool fl_hexdigit(char c)
{
    return fl_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
static inline bool fl_word(char c)
{
    return fl_alnum(c) || c == '_';
}
static inline bool fl_namec(char c) /* of a host name with its domain */
{
    return fl_alnum(c) || c == '-' || c == '.';
}
static inline bool fl_blank(char c)
{
    return c == ' ' || c == '\t';
}
/* Behind the blanks at `i`. */
static inline size_t fl_blanks(const struct fl_scan *s, size_t i)
{
    while (fl_blank(s->p[i]))
        i++;
    return i;
}
static inline bool fl_eol(char c)
{
    return c == '\n' || c == '\r' || c == 0;
}
static inline bool fl_space(char c)
{
    return fl_blank(c) || fl_eol(c);
}
static inline bool fl_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

#endif
