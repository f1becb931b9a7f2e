/*
 * The prefix reader: peels frames off the left of a line.
 *
 * Each frame has one function; the first byte chooses which are tried, so that a line of prose
 * costs a few compares. There are no regular expressions here: this runs for every line that a
 * rule might look at, and a prefix is told from prose by shape, which a few byte tests do well.
 *
 * What is refused: anything ambiguous that would invent a rank or a host. "12: " counts at a
 * line's start only, and the caller decides with the whole file's evidence whether the file was
 * labelled by srun at all. "[3] " is taken only at the very start. A word and a colon is a host
 * only when it looks like one and nothing else (see prefix_word.c).
 */
#include "read/prefix.h"

#include "read/prefix_parts.h"

#include "base/alloc.h"

const char *fl_peel_int(const struct fl_peel *c, const char *p, int32_t *v)
{
    int32_t n = 0;
    const char *q = p;

    while (q < c->end && fl_is_digit(*q)) {
        if (q - p >= 9)
            return NULL;
        n = n * 10 + (*q++ - '0');
    }
    if (q == p)
        return NULL;
    *v = n;
    return q;
}

const char *fl_peel_i64(const struct fl_peel *c, const char *p, int64_t *v)
{
    int64_t n = 0;
    const char *q = p;

    while (q < c->end && fl_is_digit(*q)) {
        if (q - p >= 18)
            return NULL;
        n = n * 10 + (*q++ - '0');
    }
    if (q == p)
        return NULL;
    *v = n;
    return q;
}

uint8_t fl_peel_letter_sev(char c)
{
    switch (c) {
    case 'I':
        return FL_SEV_INFO;
    case 'W':
        return FL_SEV_WARN;
    case 'E':
        return FL_SEV_ERROR;
    case 'F':
    case 'C':
        return FL_SEV_FATAL;
    case 'D':
    case 'V':
        return FL_SEV_DEBUG;
    default:
        return FL_SEV_NONE;
    }
}

const char *fl_peel_level(const struct fl_peel *c, const char *p, bool any_case, uint8_t *sev)
{
    static const struct {
        char word[10];
        uint8_t n, sev;
    } levels[] = {
        {"INFO", 4, FL_SEV_INFO},   {"WARNING", 7, FL_SEV_WARN},  {"ERROR", 5, FL_SEV_ERROR},
        {"DEBUG", 5, FL_SEV_DEBUG}, {"WARN", 4, FL_SEV_WARN},     {"CRITICAL", 8, FL_SEV_FATAL},
        {"FATAL", 5, FL_SEV_FATAL}, {"NOTICE", 6, FL_SEV_INFO},   {"SUCCESS", 7, FL_SEV_INFO},
        {"TRACE", 5, FL_SEV_DEBUG}, {"VERBOSE", 7, FL_SEV_DEBUG}, {"SEVERE", 6, FL_SEV_ERROR},
        {"ERR", 3, FL_SEV_ERROR},   {"CRIT", 4, FL_SEV_FATAL},    {"EMERG", 5, FL_SEV_FATAL},
        {"ALERT", 5, FL_SEV_FATAL}, {"PANIC", 5, FL_SEV_FATAL},   {"EVENT", 5, FL_SEV_INFO},
    };
    char up[10];
    size_t n = 0;

    while (n < 9 && p + n < c->end && fl_is_alpha(p[n])) {
        if (!any_case && !fl_is_upper(p[n]))
            return NULL;
        up[n] = (char)(p[n] & ~32);
        n++;
    }
    if (n < 3 || n > 8 || fl_is_word(fl_at(c, p + n)))
        return NULL;
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
        if (levels[i].n == n && levels[i].word[0] == up[0] && memcmp(levels[i].word, up, n) == 0) {
            *sev = levels[i].sev;
            return p + n;
        }
    }
    return NULL;
}

void fl_peel_set_time(struct fl_peel *c, const struct fl_time *t)
{
    static const unsigned char known[] = {[FL_TIME_NONE] = 0,
                                          [FL_TIME_BOOT] = 1,
                                          [FL_TIME_DAY] = 2,
                                          [FL_TIME_YEARLESS] = 3,
                                          [FL_TIME_WALL] = 4};

    if (known[t->kind] >= known[c->o->time.kind])
        c->o->time = *t;
    c->seen |= FL_SEEN_TIME;
}

const char *fl_peel_time(struct fl_peel *c, const char *p)
{
    struct fl_time t;
    size_t n = p < c->end ? fl_time_parse(fl_str_n(p, (size_t)(c->end - p)), &t) : 0;

    if (!n)
        return NULL;
    fl_peel_set_time(c, &t);
    return p + n;
}

const char *fl_peel_source(const struct fl_peel *c, const char *p)
{
    const char *q = p, *most = c->end - p > 240 ? p + 240 : c->end;
    bool dot = false;
    int32_t line;

    /* A path, then ":12", then perhaps ":func". */
    while (q < most && (fl_is_word(*q) || *q == '/' || *q == '<' || *q == '>')) {
        dot |= *q == '.';
        q++;
    }
    if (q == p || fl_at(c, q) != ':' || !(q = fl_peel_int(c, q + 1, &line)))
        return NULL;
    if (fl_at(c, q) == ':' &&
        (fl_is_alpha(fl_at(c, q + 1)) || fl_at(c, q + 1) == '_' || fl_at(c, q + 1) == '<')) {
        q++;
        while (q < most && (fl_is_word(*q) || *q == '<' || *q == '>'))
            q++;
        dot = true;
    }
    return dot ? q : NULL;
}

static bool ip_address(const char *p, const char *q)
{
    for (; p < q; p++)
        if (!fl_is_digit(*p) && *p != '.')
            return false;
    return true;
}

void fl_peel_host(struct fl_peel *c, const char *p, const char *q)
{
    /* A name tells more than an address: Ray's ip= does not replace what pdsh said. */
    if (q > p && (c->o->host.n == 0 || !ip_address(p, q)))
        c->o->host = fl_str_n(p, (size_t)(q - p));
}

const char *fl_peel_task(const char *p, const char *end, int32_t *task)
{
    const char *start = p, *most = end - p > 12 ? p + 12 : end, *q;
    int32_t v = 0;

    while (p < most && *p == ' ')
        p++;
    if (p >= most || !fl_is_digit(*p) || p - start > 6)
        return NULL;
    q = p;
    while (p < most && fl_is_digit(*p) && p - q < 8)
        v = v * 10 + (*p++ - '0');
    if (p - q > 6 || end - p < 2 || p[0] != ':' || p[1] != ' ')
        return NULL;
    /* "  3: std::rt::lang_start" is a Rust stack frame, "2: eth0: <UP>" is `ip addr`. */
    most = end - p > 40 ? p + 40 : end;
    for (q = p + 2; q < most && *q != ' '; q++)
        if (*q == ':' && ((q + 1 < most && q[1] == ':') || (q + 2 < most && q[2] == '<')))
            return NULL;
    *task = v;
    return p + 2;
}

static const char *frame(struct fl_peel *c, const char *p)
{
    switch (*p) {
    case '[':
        return fl_peel_bracket(c, p);
    case '(':
        return fl_peel_paren(c, p);
    case '<':
        return fl_peel_angle(c, p);
    case '-': /* "[time][root][INFO] - message" */
        return (c->seen & FL_SEEN_LEVEL) && p > c->start && p[-1] == ' ' && fl_at(c, p + 1) == ' '
                   ? p + 2
                   : NULL;
    default:
        if (fl_is_digit(*p))
            return fl_peel_digit(c, p);
        return fl_is_alpha(*p) ? fl_peel_word(c, p) : NULL;
    }
}

void fl_prefix_parse(fl_str line, struct fl_prefix *out)
{
    struct fl_peel c = {line.p, line.p + line.n, out, 0};
    const char *p = line.p, *q, *next;

    *out = (struct fl_prefix){.rank = -1,
                              .local_rank = -1,
                              .node_rank = -1,
                              .gpu_index = -1,
                              .msg_rank = -1,
                              .task = -1,
                              .pid = -1};
    /* More than twelve frames on one line have not been seen; the bound keeps hostile text cheap.
     */
    for (int i = 0; i < 12 && p < c.end; i++) {
        for (q = p; q < c.end && *q == ' ' && q - p < 8; q++)
            ;
        if (q == c.end)
            break;
        /* Indented text is code or prose: only brackets and srun's right-aligned ids count there.
         */
        if (q != p && *q != '[' && *q != '-') {
            next = p == c.start ? fl_peel_task(p, c.end, &out->task) : NULL;
            if (next) {
                p = next;
                continue;
            }
            if (!(c.seen & FL_SEEN_TIME) && (q > p + 1 || !fl_is_digit(*q)))
                break;
        }
        next = frame(&c, q);
        if (!next)
            break;
        p = next;
    }
    out->message = (uint32_t)(p - line.p);
}

/* Digits at p, then `close`: position behind, or NULL. */
static const char *id_then(const char *p, const char *end, const char *close, size_t n, int32_t *v)
{
    int32_t id = 0;
    const char *q = p;

    while (q < end && q - p < 8 && fl_is_digit(*q))
        id = id * 10 + (*q++ - '0');
    if (q == p || (size_t)(end - q) < n || memcmp(q, close, n) != 0)
        return NULL;
    *v = id;
    return q + n;
}

static enum fl_peek peek_bracket(const char *p, const char *end, int32_t *rank)
{
    const char *q;
    int32_t v;

    if (end - p > 7 && memcmp(p, "[rank", 5) == 0)
        return id_then(p + 5, end, "]:", 2, rank) ? FL_PEEK_RANK : FL_PEEK_NONE;
    if (end - p > 10 && memcmp(p, "[default", 8) == 0) {
        q = id_then(p + 8, end, "]:", 2, &v);
        if (!q)
            return FL_PEEK_NONE;
        if (end - q > 7 && memcmp(q, "[rank", 5) == 0 && id_then(q + 5, end, "]:", 2, rank))
            return FL_PEEK_RANK;
        *rank = v;
        return FL_PEEK_LOCAL;
    }
    if (end - p > 5 && fl_is_digit(p[1]) && (q = id_then(p + 1, end, ",", 1, &v)))
        return id_then(q, end, "]<std", 5, rank) ? FL_PEEK_RANK : FL_PEEK_NONE;
    return FL_PEEK_NONE;
}

int fl_prefix_peek_rank(fl_str line, int32_t *rank)
{
    const char *p = line.p, *end = line.p + (line.n < 48 ? line.n : 48);
    int32_t task, inner;

    if (p == end)
        return FL_PEEK_NONE;
    if (*p == '[')
        return peek_bracket(p, end, rank);
    if (*p != ' ' && !fl_is_digit(*p))
        return FL_PEEK_NONE;
    p = fl_peel_task(p, end, &task);
    if (!p)
        return FL_PEEK_NONE;
    if (p < end && *p == '[' && peek_bracket(p, end, &inner) == FL_PEEK_RANK) {
        *rank = inner;
        return FL_PEEK_RANK;
    }
    *rank = task;
    return FL_PEEK_TASK;
}
