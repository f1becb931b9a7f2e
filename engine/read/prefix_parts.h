#ifndef FL_READ_PREFIX_PARTS_H
#define FL_READ_PREFIX_PARTS_H
/*
 * Shared by the prefix_*.c files; not for other rooms.
 *
 * A frame function looks at `p` and returns the position behind its frame, or NULL with nothing
 * set. It never reads at or behind c->end.
 */
#include "read/prefix.h"

/* What has been seen so far; some frames are only believed behind others. */
enum {
    FL_SEEN_TIME = 1,  /* a time */
    FL_SEEN_LEVEL = 2, /* a severity word */
    FL_SEEN_INNER = 4, /* something that a program prints itself: no launcher's label follows */
    FL_SEEN_C10 = 8,   /* "[Rank 3]" is then a rank in a group */
    FL_SEEN_SOURCE = 16
};

struct fl_peel {
    const char *start, *end;
    struct fl_prefix *o;
    unsigned seen;
};

static inline bool fl_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}
static inline bool fl_is_upper(char c)
{
    return (unsigned char)(c - 'A') < 26;
}
static inline bool fl_is_alpha(char c)
{
    return (unsigned char)((c | 32) - 'a') < 26;
}
static inline char fl_at(const struct fl_peel *c, const char *p)
{
    return p < c->end ? *p : 0;
}
/* Letters, digits, '-', '_', '.': hosts, pods, logger names. */
static inline bool fl_is_word(char c)
{
    return fl_is_alpha(c) || fl_is_digit(c) || c == '-' || c == '_' || c == '.';
}
static inline const char *fl_blank(const struct fl_peel *c, const char *p)
{
    return p < c->end && *p == ' ' ? p + 1 : p;
}
static inline const char *fl_blanks(const struct fl_peel *c, const char *p)
{
    while (p < c->end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}
static inline const char *fl_word_end(const struct fl_peel *c, const char *p)
{
    while (p < c->end && fl_is_word(*p))
        p++;
    return p;
}
/* Behind the literal `z` of `n` bytes at p, or NULL. */
static inline const char *fl_lit(const struct fl_peel *c, const char *p, const char *z, size_t n)
{
    return (size_t)(c->end - p) >= n && memcmp(p, z, n) == 0 ? p + n : NULL;
}
#define FL_LIT(c, p, z) fl_lit(c, p, z, sizeof(z) - 1)

/* A decimal number of at most 9 digits: position behind it, or NULL. */
const char *fl_peel_int(const struct fl_peel *c, const char *p, int32_t *v);
/* Up to 18 digits. */
const char *fl_peel_i64(const struct fl_peel *c, const char *p, int64_t *v);
/* A severity word in capitals (or, when `any_case`, in any) that ends where a word ends. */
const char *fl_peel_level(const struct fl_peel *c, const char *p, bool any_case, uint8_t *sev);
uint8_t fl_peel_letter_sev(char c); /* I W E F D V C; NONE for others */
/* Sets o->time, unless a time that says more stands there already (a kernel's seconds since boot
 * behind syslog's date). */
const char *fl_peel_time(struct fl_peel *c, const char *p);
void fl_peel_set_time(struct fl_peel *c, const struct fl_time *t);
const char *fl_peel_source(const struct fl_peel *c, const char *p); /* "file.ext:12[:func]" */
void fl_peel_host(struct fl_peel *c, const char *p, const char *q);

/* Frames by their first byte. */
const char *fl_peel_bracket(struct fl_peel *c, const char *p);
const char *fl_peel_digit(struct fl_peel *c, const char *p);
const char *fl_peel_word(struct fl_peel *c, const char *p);
const char *fl_peel_paren(struct fl_peel *c, const char *p);
const char *fl_peel_angle(struct fl_peel *c, const char *p); /* "<4>" */
/* What stands between a bare time and the message: logger, level, source, CRI stream, host. */
const char *fl_peel_after_time(struct fl_peel *c, const char *p);
bool fl_peel_hostlike(const char *p, const char *q);
/* "host:pid:tid [dev] NCCL LEVEL ". */
const char *fl_peel_nccl(struct fl_peel *c, const char *p);
/* "host prog[pid]: " or "host kernel: " behind a syslog time. */
const char *fl_peel_syslog(struct fl_peel *c, const char *p);
/* "LEVEL file.py:12] ", "LEVEL name: " and the like: from the level on. */
const char *fl_peel_level_tail(struct fl_peel *c, const char *p);
/* " 12: " of srun --label. */
const char *fl_peel_task(const char *p, const char *end, int32_t *task);

#endif
