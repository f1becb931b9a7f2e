/*
 * Frames that begin with '['.
 *
 * Most frameworks use brackets, and so do Python lists, shapes and progress bars: each form here is
 * matched whole, to its closing bracket and what must follow, before anything is believed. A
 * bracket that holds only a word ("[titan] ", "[root]") is peeled only when a time or a level in
 * brackets comes next; a bracket that holds a source position only behind a time or a level.
 */
#include "read/prefix_parts.h"

#include "base/alloc.h"

/* Behind "]" and one blank, or NULL. */
static const char *close_blank(const struct fl_peel *c, const char *p)
{
    return fl_at(c, p) == ']' ? fl_blank(c, p + 1) : NULL;
}

/* "[rank3]: ", "[rank: 3] ", "[RANK 3] ", "[Rank 3] " */
static const char *rank(struct fl_peel *c, const char *p)
{
    const char *q;
    int32_t v;

    if ((q = FL_LIT(c, p, "[rank")) != NULL && (q = fl_peel_int(c, q, &v)) != NULL) {
        if (!(q = FL_LIT(c, q, "]:")))
            return NULL;
        c->o->rank = v;
        return fl_blank(c, q);
    }
    if ((q = FL_LIT(c, p, "[rank: ")) != NULL || (q = FL_LIT(c, p, "[RANK ")) != NULL) {
        if (!(q = fl_peel_int(c, q, &v)) || !(q = close_blank(c, q)))
            return NULL;
        c->o->rank = v;
        c->seen |= FL_SEEN_INNER;
        return q;
    }
    if (!(q = FL_LIT(c, p, "[Rank ")) || !(q = fl_peel_int(c, q, &v)) || !(q = close_blank(c, q)))
        return NULL;
    /* DeepSpeed means the global rank; c10d may mean a rank in a group. */
    if ((c->seen & FL_SEEN_TIME) && !(c->seen & FL_SEEN_C10))
        c->o->rank = v;
    else
        c->o->msg_rank = v;
    c->seen |= FL_SEEN_INNER;
    return q;
}

/* "[PG ID 2 PG GUID 0(default_pg) Rank 3] ", "[PG 2 Rank 3] " */
static const char *group_rank(struct fl_peel *c, const char *p)
{
    fl_str all = fl_str_n(p, (size_t)(c->end - p > 160 ? 160 : c->end - p));
    ptrdiff_t close = fl_str_find_c(all, ']'), at;
    const char *q;
    int32_t v;

    if (close < 0)
        return NULL;
    all.n = (size_t)close;
    at = fl_str_find(all, FL_S(" Rank "));
    if (at < 0 || !(q = fl_peel_int(c, p + at + 6, &v)) || q != p + close)
        return NULL;
    c->o->msg_rank = v;
    if (c->o->rank < 0 && fl_str_has(all, FL_S("(default_pg)")))
        c->o->rank = v;
    c->seen |= FL_SEEN_INNER | FL_SEEN_C10;
    return close_blank(c, q);
}

/* "[E605 12:34:56.789012345 File.cpp:12] ", "[E File.cpp:12] " */
static const char *c10(struct fl_peel *c, const char *p)
{
    uint8_t sev = fl_peel_letter_sev(p[1]);
    struct fl_time t;
    size_t n = 0;
    const char *q = p + 2;

    if (sev == FL_SEV_NONE)
        return NULL;
    if (fl_is_digit(fl_at(c, q))) {
        n = fl_time_parse(fl_str_n(q, (size_t)(c->end - q)), &t);
        if (!n)
            return NULL;
        q += n;
    }
    if (fl_at(c, q) != ' ' || !(q = fl_peel_source(c, q + 1)) || !(q = close_blank(c, q)))
        return NULL;
    if (n) {
        fl_peel_set_time(c, &t);
    }
    c->o->severity = sev;
    c->o->origin = FL_FROM_TORCH;
    c->seen |= FL_SEEN_C10 | FL_SEEN_INNER | FL_SEEN_SOURCE | FL_SEEN_LEVEL;
    return q;
}

/* "[1,3]<stderr>:", "[prterun-host-1@1,3]<stdout>: " */
static const char *mpirun(struct fl_peel *c, const char *p)
{
    const char *q = p + 1, *word;
    bool prte = false;
    int32_t job, v;

    word = fl_word_end(c, q);
    if (fl_at(c, word) == '@') {
        prte = true;
        q = word + 1;
    }
    if (!(q = fl_peel_int(c, q, &job)) || fl_at(c, q) != ',' || !(q = fl_peel_int(c, q + 1, &v)))
        return NULL;
    if (!(q = FL_LIT(c, q, "]<std")))
        return NULL;
    q = fl_word_end(c, q);
    if (!(q = FL_LIT(c, q, ">:")))
        return NULL;
    c->o->rank = v;
    return prte ? fl_blank(c, q) : q;
}

/* "[default3]:" of torchrun --tee: the line follows without a blank. */
static const char *role(struct fl_peel *c, const char *p)
{
    static const fl_str roles[] = {{"default", 7}, {"trainer", 7}, {"worker", 6}, {"train", 5},
                                   {"main", 4},    {"agent", 5},   {"actor", 5}};
    const char *q = p + 1;
    int32_t v;

    while (q < c->end && fl_is_alpha(*q))
        q++;
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        if (!fl_str_eq(fl_str_n(p + 1, (size_t)(q - p - 1)), roles[i]))
            continue;
        if (!(q = fl_peel_int(c, q, &v)) || !(q = FL_LIT(c, q, "]:")))
            return NULL;
        c->o->local_rank = v;
        return q;
    }
    return NULL;
}

/* "file.c:12 UCX  ERROR " behind UCX's "[time] [host:pid:n]  ". */
static const char *ucx_tail(struct fl_peel *c, const char *p)
{
    const char *q = fl_peel_source(c, fl_blanks(c, p)), *r;
    uint8_t sev;

    if (!q || !(q = FL_LIT(c, fl_blanks(c, q), "UCX ")))
        return p;
    q = fl_blanks(c, q);
    r = fl_peel_level(c, q, false, &sev);
    if (!r)
        return q;
    c->o->severity = sev;
    c->seen |= FL_SEEN_LEVEL;
    return fl_blank(c, r);
}

/* "[[6124,0],3] " behind Open MPI's "[host:pid] ". */
static const char *ompi_name(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, "[[");
    int32_t job, n, v;

    if (!q || !(q = fl_peel_int(c, q, &job)) || fl_at(c, q) != ',')
        return p;
    if (!(q = fl_peel_int(c, q + 1, &n)) || !(q = FL_LIT(c, q, "],")))
        return p;
    if (!(q = fl_peel_int(c, q, &v)) || !(q = close_blank(c, q)))
        return p;
    /* Family member 0 is the daemons; their number is a node, not a rank. */
    if (n != 0)
        c->o->rank = v;
    return q;
}

/* "[host:pid] " of Open MPI, "[host:3]:" of torchrun's log prefixes, "[host:pid:n] " of UCX. */
static const char *host_number(struct fl_peel *c, const char *p)
{
    const char *h = p + 1, *q = fl_word_end(c, h), *n;
    int64_t v;
    int32_t extra;

    if (fl_at(c, q) != ':' || !(n = fl_peel_i64(c, q + 1, &v)))
        return NULL;
    if (!fl_peel_hostlike(h, q) && !fl_str_eqz(fl_str_n(h, (size_t)(q - h)), "localhost") &&
        !((c->seen & FL_SEEN_TIME) && fl_at(c, n) == ':'))
        return NULL;
    if (fl_at(c, n) == ':' && (n = fl_peel_int(c, n + 1, &extra)) != NULL) {
        if (!(n = close_blank(c, n)))
            return NULL;
        c->o->pid = v;
        fl_peel_host(c, h, q);
        return ucx_tail(c, n);
    }
    if (!n || fl_at(c, n) != ']')
        return NULL;
    if (fl_at(c, n + 1) == ':' && v < 64) {
        c->o->local_rank = (int32_t)v;
        fl_peel_host(c, h, q);
        return n + 2;
    }
    if (fl_at(c, n + 1) != ' ' || v < 10)
        return NULL;
    c->o->pid = v;
    c->o->origin = FL_FROM_LAUNCHER;
    fl_peel_host(c, h, q);
    return ompi_name(c, n + 2);
}

/* "[NeMo W 2026-03-01 02:03:04 file:12] ", perhaps with "rank:3" inside */
static const char *nemo(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, "[NeMo "), *t;
    fl_str in;
    ptrdiff_t close, at;
    uint8_t sev;
    int32_t v;

    if (!q || !(sev = fl_peel_letter_sev(fl_at(c, q))) || fl_at(c, q + 1) != ' ')
        return NULL;
    in = fl_str_n(q, (size_t)(c->end - q > 300 ? 300 : c->end - q));
    close = fl_str_find_c(in, ']');
    if (close < 0 || !(t = fl_peel_time(c, q + 2)))
        return NULL;
    in.n = (size_t)close;
    at = fl_str_find(in, FL_S("rank:"));
    if (at >= 0 && fl_peel_int(c, in.p + at + 5, &v))
        c->o->rank = v;
    c->o->severity = sev;
    c->o->origin = FL_FROM_PYTHON;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
    return close_blank(c, q + close);
}

/* "HCCL(123,python):2026-03-01-02:03:04.123.456 [file.cc:12] [tid][Stage]" behind "[ERROR] " */
static const char *cann_tail(struct fl_peel *c, const char *p)
{
    const char *q = p, *t, *s;
    int64_t pid;

    while (q < c->end && fl_is_upper(*q))
        q++;
    if (q == p || fl_at(c, q) != '(' || !(q = fl_peel_i64(c, q + 1, &pid)) || fl_at(c, q) != ',')
        return p;
    q = fl_word_end(c, q + 1);
    if (!(q = FL_LIT(c, q, "):")) || !(t = fl_peel_time(c, q)))
        return p;
    c->o->pid = pid;
    c->o->origin = FL_FROM_NCCL;
    c->seen |= FL_SEEN_INNER;
    t = fl_blank(c, t);
    if (fl_at(c, t) == '[' && (s = fl_peel_source(c, t + 1)) != NULL && fl_at(c, s) == ']')
        t = fl_blank(c, s + 1);
    return t;
}

/* "[INFO] ", "[INFO|time] mod:12 >> ", "[INFO|file.py:12] time >> ", "[ INFO : time ] - " */
static const char *level(struct fl_peel *c, const char *p)
{
    const char *q = fl_blanks(c, p + 1), *r, *s;
    uint8_t sev;

    if (!(q = fl_peel_level(c, q, true, &sev)))
        return NULL;
    q = fl_blanks(c, q);
    if (fl_at(c, q) == ']') {
        q = fl_blank(c, q + 1);
    } else if (fl_at(c, q) == '|') {
        if ((r = fl_peel_time(c, q + 1)) != NULL && (r = close_blank(c, r)) != NULL) {
            s = fl_peel_source(c, r);
            q = s ? fl_blanks(c, s) : r;
        } else if ((r = fl_peel_source(c, q + 1)) != NULL && (r = close_blank(c, r)) != NULL) {
            s = fl_peel_time(c, r);
            q = s ? fl_blanks(c, s) : r;
        } else {
            return NULL;
        }
        if ((r = FL_LIT(c, q, ">>")) != NULL)
            q = fl_blank(c, r);
    } else {
        r = fl_at(c, q) == ':' ? fl_blanks(c, q + 1) : q;
        if (!(r = fl_peel_time(c, r)) || !(q = close_blank(c, fl_blanks(c, r))))
            return NULL;
    }
    c->o->severity = sev;
    if (c->o->origin == FL_FROM_UNKNOWN)
        c->o->origin = FL_FROM_PYTHON;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
    return cann_tail(c, q);
}

/* " E 123 456] core.cc:77: " behind "[time" of Ray's C++ side */
static const char *ray_core(struct fl_peel *c, const char *p)
{
    uint8_t sev = fl_at(c, p) == ' ' ? fl_peel_letter_sev(fl_at(c, p + 1)) : FL_SEV_NONE;
    const char *q = p + 2, *s;
    int64_t pid, tid;

    if (!sev || fl_at(c, q) != ' ' || !(q = fl_peel_i64(c, q + 1, &pid)) || fl_at(c, q) != ' ')
        return NULL;
    if (!(q = fl_peel_i64(c, q + 1, &tid)) || !(q = close_blank(c, q)))
        return NULL;
    c->o->severity = sev;
    c->o->pid = pid;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
    s = fl_peel_source(c, q);
    return s && fl_at(c, s) == ':' ? fl_blank(c, s + 1) : q;
}

/* "[ T1946] " behind the kernel's seconds */
static const char *kernel_tail(struct fl_peel *c, const char *p)
{
    const char *q = p, *r;
    int32_t v;

    if (fl_at(c, q) == '[') {
        r = fl_blanks(c, q + 1);
        if ((fl_at(c, r) == 'T' || fl_at(c, r) == 'C') && (r = fl_peel_int(c, r + 1, &v)) != NULL &&
            fl_at(c, r) == ']')
            q = r + 1;
    }
    return fl_blank(c, q);
}

/* "[time] " and what may stand between the time and the bracket */
static const char *time(struct fl_peel *c, const char *p)
{
    struct fl_time was = c->o->time, t;
    const char *in = p + 1, *q, *r;
    unsigned seen = c->seen;
    size_t n;
    uint8_t sev;

    while (fl_at(c, in) == ' ' && in - p < 12)
        in++;
    n = fl_time_parse(fl_str_n(in, (size_t)(c->end - in)), &t);
    if (!n)
        return NULL;
    q = in + n;
    fl_peel_set_time(c, &t);
    r = q;
    if (t.kind == FL_TIME_BOOT) {
        if (fl_at(c, q) != ']')
            goto none;
        c->o->origin = FL_FROM_KERNEL;
        return kernel_tail(c, q + 1);
    }
    if (in != p + 1 && fl_is_digit(*in) && fl_at(c, r) != ' ' && fl_at(c, r) != ']')
        goto none;
    if ((r = ray_core(c, q)) != NULL)
        return r;
    r = q;
    while (r < c->end && (*r == ' ' || *r == ',' || *r == '|' || *r == '-' || *r == ':'))
        r++;
    if (r != q && (r = fl_peel_level(c, r, true, &sev)) != NULL && fl_at(c, r) == ']') {
        c->o->severity = sev;
        c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
        return fl_blank(c, r + 1);
    }
    q = fl_blanks(c, q);
    if (fl_at(c, q) != ']')
        goto none;
    if (fl_is_alpha(*in) && t.kind == FL_TIME_WALL) { /* dmesg -T */
        c->o->origin = FL_FROM_KERNEL;
        return kernel_tail(c, q + 1);
    }
    return fl_peel_after_time(c, fl_at(c, q + 1) == ' ' ? q + 2 : q + 1);
none:
    c->o->time = was;
    c->seen = seen;
    return NULL;
}

/* "[pod/NAME/CONTAINER] " */
static const char *pod(struct fl_peel *c, const char *p)
{
    const char *name = FL_LIT(c, p, "[pod/"), *q, *r;

    if (!name)
        return NULL;
    q = fl_word_end(c, name);
    if (q == name || fl_at(c, q) != '/')
        return NULL;
    r = fl_word_end(c, q + 1);
    if (!(r = close_blank(c, r)))
        return NULL;
    fl_peel_host(c, name, q);
    c->o->origin = FL_FROM_CONTAINER;
    return r;
}

/* "[PID: 123] " of CANN on a screen */
static const char *cann_pid(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, "[PID: ");
    int64_t v;

    if (!q || !(q = fl_peel_i64(c, q, &v)) || !(q = close_blank(c, q)))
        return NULL;
    c->o->pid = v;
    return q;
}

/* A source position, dynamo's "[0/1]", or a word that a time or "[LEVEL]" follows. */
static const char *filler(struct fl_peel *c, const char *p)
{
    const char *q = p + 1, *r;
    struct fl_time t;
    uint8_t sev;
    bool context = c->seen & (FL_SEEN_TIME | FL_SEEN_LEVEL | FL_SEEN_INNER);

    if (context && (r = fl_peel_source(c, q)) != NULL && fl_at(c, r) == ']') {
        c->seen |= FL_SEEN_SOURCE | FL_SEEN_INNER;
        return fl_blank(c, r + 1);
    }
    r = q;
    while (r < c->end && (fl_is_word(*r) || *r == '/'))
        r++;
    if (r == q || fl_at(c, r) != ']')
        return NULL;
    if (fl_is_digit(*q))
        return (c->seen & FL_SEEN_SOURCE) && memchr(q, '/', (size_t)(r - q)) ? fl_blank(c, r + 1)
                                                                             : NULL;
    q = fl_blank(c, r + 1);
    if (fl_is_digit(fl_at(c, q)) && fl_time_parse(fl_str_n(q, (size_t)(c->end - q)), &t))
        return q;
    if (context && fl_at(c, q) == '[' && (r = fl_peel_level(c, q + 1, true, &sev)) != NULL &&
        fl_at(c, r) == ']')
        return q;
    return NULL;
}

/* "[3] " of Hydra's process manager, at the very start only */
static const char *hydra(struct fl_peel *c, const char *p)
{
    const char *q;
    int32_t v;

    if (p != c->start || !(q = fl_peel_int(c, p + 1, &v)) || q - p > 7 || !FL_LIT(c, q, "] "))
        return NULL;
    c->o->task = v;
    return q + 2;
}

static const char *letter(struct fl_peel *c, const char *p)
{
    const char *q = NULL;

    switch (p[1]) {
    case 'r':
    case 'R':
        q = rank(c, p);
        break;
    case 'P':
        q = group_rank(c, p);
        if (!q)
            q = cann_pid(c, p);
        break;
    case 'N':
        q = nemo(c, p);
        break;
    case 'p':
        q = pod(c, p);
        if (!q)
            q = mpirun(c, p);
        break;
    default:
        break;
    }
    if (!q)
        q = c10(c, p);
    if (!q)
        q = fl_is_upper(p[1]) ? level(c, p) : role(c, p);
    if (!q && !fl_is_upper(p[1]))
        q = level(c, p);
    if (!q)
        q = time(c, p);
    if (!q)
        q = host_number(c, p);
    return q ? q : filler(c, p);
}

const char *fl_peel_bracket(struct fl_peel *c, const char *p)
{
    const char *q;

    if (c->end - p < 3)
        return NULL;
    if (fl_is_alpha(p[1]))
        return letter(c, p);
    if (p[1] == ' ') {
        q = time(c, p);
        return q ? q : level(c, p);
    }
    if (!fl_is_digit(p[1]))
        return NULL;
    q = time(c, p);
    if (!q)
        q = mpirun(c, p);
    if (!q)
        q = hydra(c, p);
    if (!q)
        q = host_number(c, p);
    return q ? q : filler(c, p);
}
