/*
 * Frames that begin with a digit, '(' or '<', and what stands between a bare time and the message.
 *
 * Behind a time there are four habits: fields parted by " - ", fields parted by "|", a level and a
 * source position, and syslog's host and program. A field is dropped from the message only when
 * its neighbours prove what it is; a word that could be the message stays in the message.
 */
#include "read/prefix_parts.h"

#include "base/alloc.h"

/* A run of bytes without blanks, at most 120: its end. */
static const char *token(const struct fl_peel *c, const char *p)
{
    const char *most = c->end - p > 120 ? p + 120 : c->end;

    while (p < most && *p != ' ' && *p != '\t')
        p++;
    return p;
}

static void set_level(struct fl_peel *c, uint8_t sev)
{
    c->o->severity = sev;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
    if (c->o->origin == FL_FROM_UNKNOWN || c->o->origin == FL_FROM_CONTAINER)
        c->o->origin = FL_FROM_PYTHON;
}

/* "[file.py, line 12, in func] - pid=9 : " */
static const char *intern_tail(struct fl_peel *c, const char *p)
{
    const char *q = fl_at(c, p) == '[' ? fl_word_end(c, p + 1) : NULL, *r;
    int64_t v;

    if (!q || !(q = FL_LIT(c, q, ", line ")) || !(q = fl_peel_i64(c, q, &v)))
        return NULL;
    if (!(q = FL_LIT(c, q, ", in ")))
        return NULL;
    q = token(c, q);
    if (q[-1] != ']' || !(r = FL_LIT(c, q, " - pid=")) || !(r = fl_peel_i64(c, r, &v)))
        return NULL;
    c->o->pid = v;
    return (q = FL_LIT(c, r, " : ")) ? q : r;
}

/* "file.py:12] ", "file.py:12 -- ", "file.py:12 in func -- ", "file.py:12: " */
static const char *source_tail(struct fl_peel *c, const char *p)
{
    const char *q = fl_peel_source(c, p), *r;

    if (!q)
        return NULL;
    if (fl_at(c, q) == ']' || fl_at(c, q) == ':')
        return fl_blank(c, q + 1);
    if ((r = FL_LIT(c, q, " in ")) != NULL)
        q = token(c, r);
    if ((r = FL_LIT(c, q, " --")) != NULL || (r = FL_LIT(c, q, " -")) != NULL)
        return fl_blank(c, r);
    return NULL;
}

const char *fl_peel_level_tail(struct fl_peel *c, const char *p)
{
    uint8_t sev;
    const char *q = fl_peel_level(c, p, false, &sev), *r;

    if (!q) {
        /* Slurm's daemons write "error: " behind their time. */
        q = (c->seen & FL_SEEN_TIME) ? fl_peel_level(c, p, true, &sev) : NULL;
        if (!q || fl_at(c, q) != ':' || fl_at(c, q + 1) != ' ')
            return NULL;
    }
    set_level(c, sev);
    if (fl_at(c, q) == ':') {
        if (fl_at(c, q + 1) == ' ' || q + 1 == c->end)
            return fl_blank(c, q + 1);
        r = fl_word_end(c, q + 1);
        return r > q + 1 && fl_at(c, r) == ':' ? r + 1 : q + 1;
    }
    q = fl_blanks(c, q);
    if ((r = intern_tail(c, q)) != NULL || (r = source_tail(c, q)) != NULL)
        return r;
    return (r = FL_LIT(c, q, ": ")) ? r : q;
}

/* Behind " - ": "name - LEVEL - ", "LEVEL - name - " */
static const char *dash_fields(struct fl_peel *c, const char *p)
{
    const char *q = fl_blanks(c, p), *t = token(c, q), *r, *s;
    uint8_t sev;

    if ((r = fl_peel_level(c, q, false, &sev)) != NULL) {
        if (fl_at(c, r) == ':')
            return fl_peel_level_tail(c, q);
        if (!(s = FL_LIT(c, fl_blanks(c, r), "- ")))
            return p;
        set_level(c, sev);
        t = fl_word_end(c, s);
        /* Only a dotted or dunder name is surely a logger: "ERROR - disk - full" is a message. */
        if (t == s || (*s != '_' && !memchr(s, '.', (size_t)(t - s))))
            return s;
        return (r = FL_LIT(c, t, " - ")) ? r : s;
    }
    if (!(r = FL_LIT(c, fl_blanks(c, t), "- ")))
        return p;
    if (!(s = fl_peel_level(c, fl_blanks(c, r), false, &sev)))
        return p;
    set_level(c, sev);
    if ((r = FL_LIT(c, fl_blanks(c, s), "- ")) != NULL)
        return r;
    return fl_at(c, s) == ':' ? fl_blank(c, s + 1) : fl_blanks(c, s);
}

/* Behind "|": "LEVEL    | mod:func:12 - ", "LEVEL | name | " */
static const char *pipe_fields(struct fl_peel *c, const char *p)
{
    const char *q = fl_blanks(c, p), *r, *t, *s;
    uint8_t sev;

    if (!(r = fl_peel_level(c, q, false, &sev)))
        return p;
    r = fl_blanks(c, r);
    if (fl_at(c, r) != '|')
        return p;
    set_level(c, sev);
    q = fl_blank(c, r + 1);
    t = token(c, fl_blanks(c, q));
    if ((s = FL_LIT(c, t, " - ")) != NULL || (s = FL_LIT(c, fl_blanks(c, t), "| ")) != NULL)
        return s;
    return q;
}

const char *fl_peel_syslog(struct fl_peel *c, const char *p)
{
    const char *h = fl_blanks(c, p), *q = fl_word_end(c, h), *prog, *r;
    int64_t pid = -1;

    if (q == h || fl_at(c, q) != ' ')
        return NULL;
    prog = r = q + 1;
    while (r < c->end && r - prog < 64 &&
           (fl_is_word(*r) || *r == '/' || *r == '(' || *r == ')' || *r == '@'))
        r++;
    if (r == prog)
        return NULL;
    if (fl_at(c, r) == '[') {
        if (!fl_peel_i64(c, r + 1, &pid))
            return NULL;
        r = fl_peel_i64(c, r + 1, &pid);
        if (fl_at(c, r) != ']')
            return NULL;
        r++;
    }
    if (fl_at(c, r) != ':' || (r + 1 < c->end && r[1] != ' '))
        return NULL;
    /* "2026-03-01T02:03:04Z Epoch 3: loss" has the same shape. */
    if (!fl_is_alpha(*prog) && *prog != '(' && *prog != '/')
        return NULL;
    if (pid < 0 && !FL_LIT(c, prog, "kernel:") && c->o->time.kind != FL_TIME_YEARLESS &&
        !fl_peel_hostlike(h, q))
        return NULL;
    fl_peel_host(c, h, q);
    if (pid >= 0)
        c->o->pid = pid;
    c->o->origin = FL_LIT(c, prog, "kernel") ? FL_FROM_KERNEL : FL_FROM_SYSLOG;
    c->o->syslog = true;
    return fl_blank(c, r + 1);
}

/* ": E file.cc:12] " of TensorFlow and XLA */
static const char *xla_tail(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, ": "), *r;
    uint8_t sev = q ? fl_peel_letter_sev(fl_at(c, q)) : FL_SEV_NONE;

    if (!sev || fl_at(c, q + 1) != ' ' || !(r = fl_peel_source(c, q + 2)) || fl_at(c, r) != ']')
        return NULL;
    set_level(c, sev);
    return fl_blank(c, r + 1);
}

/* "stdout F " of container runtimes */
static const char *cri_tail(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, "stdout ");

    if (!q)
        q = FL_LIT(c, p, "stderr ");
    if (!q || (fl_at(c, q) != 'F' && fl_at(c, q) != 'P'))
        return NULL;
    if (q + 1 < c->end && q[1] != ' ' && q[1] != ':')
        return NULL;
    c->o->origin = FL_FROM_CONTAINER;
    c->seen &= ~(unsigned)FL_SEEN_TIME; /* what the program printed begins here */
    if (fl_at(c, q + 1) == ':') {       /* "F:tag " */
        q = token(c, q) - 1;
    }
    return fl_blank(c, q + 1);
}

const char *fl_peel_after_time(struct fl_peel *c, const char *p)
{
    const char *one, *q, *r;
    uint8_t sev;

    if ((r = xla_tail(c, p)) != NULL)
        return r;
    if (fl_at(c, p) == ':' && fl_at(c, p + 1) == ' ')
        p++;
    one = p < c->end && (*p == ' ' || *p == '\t') ? p + 1 : p;
    q = fl_blanks(c, p);
    if (q == c->end)
        return one;
    switch (*q) {
    case '-':
        return fl_at(c, q + 1) == ' ' ? dash_fields(c, q + 2) : one;
    case '|':
        return pipe_fields(c, q + 1);
    case '>':
        return (r = FL_LIT(c, q, ">> ")) ? r : one;
    case 's':
        if ((r = cri_tail(c, q)) != NULL)
            return r;
        break;
    default:
        break;
    }
    if (!fl_is_alpha(*q) && !fl_is_digit(*q))
        return one;
    if ((r = fl_peel_level_tail(c, q)) != NULL)
        return r;
    if ((c->o->time.kind == FL_TIME_YEARLESS || c->o->time.zoned) &&
        (r = fl_peel_syslog(c, p)) != NULL)
        return r;
    /* "torch.distributed.elastic.agent.server.api: [ERROR] " */
    r = fl_word_end(c, q);
    if (fl_at(c, r) == ':' && fl_at(c, r + 1) == ' ' && fl_at(c, r + 2) == '[' &&
        (r = fl_peel_level(c, r + 3, false, &sev)) != NULL && fl_at(c, r) == ']') {
        set_level(c, sev);
        return fl_blank(c, r + 1);
    }
    return one;
}

/* A time that is not in brackets, with what follows it */
static const char *bare_time(struct fl_peel *c, const char *p)
{
    struct fl_time t;
    size_t n = fl_time_parse(fl_str_n(p, (size_t)(c->end - p)), &t);
    char next;

    /* Bare seconds are numbers, and glog's packed date wants its letter in front. */
    if (!n || t.kind == FL_TIME_BOOT || p[3] == ' ' || p[4] == ' ')
        return NULL;
    next = fl_at(c, p + n);
    if (p + n < c->end && next != ' ' && next != '\t' && next != ':' && next != '|' && next != '[')
        return NULL;
    if (t.kind == FL_TIME_DAY && (c->seen & FL_SEEN_TIME) && next != ' ')
        return NULL;
    fl_peel_set_time(c, &t);
    return fl_peel_after_time(c, p + n);
}

const char *fl_peel_digit(struct fl_peel *c, const char *p)
{
    const char *q, *r;
    int32_t task = -1;

    if (c->end - p < 3)
        return NULL;
    if (!(c->seen & (FL_SEEN_INNER | FL_SEEN_TIME)) && c->o->task < 0 && c->o->rank < 0 &&
        c->o->local_rank < 0 && (q = fl_peel_task(p, c->end, &task)) != NULL) {
        c->o->task = task;
        return q;
    }
    if (c->end - p >= 8 && (q = bare_time(c, p)) != NULL)
        return q;
    if ((q = fl_peel_nccl(c, p)) != NULL)
        return q;
    q = fl_word_end(c, p);
    /* pdsh with addresses: "10.0.0.7: " */
    if (p == c->start && q - p >= 7 && FL_LIT(c, q, ": ") && fl_peel_hostlike(p, q)) {
        fl_peel_host(c, p, q);
        return q + 2;
    }
    /* DeepSpeed's launcher: "3 NCCL_IB_HCA=mlx5" */
    if (p != c->start || !(q = fl_peel_int(c, p, &task)) || fl_at(c, q) != ' ')
        return NULL;
    r = ++q;
    while (r < c->end && (fl_is_upper(*r) || *r == '_' || fl_is_digit(*r)))
        r++;
    if (r - q < 3 || fl_at(c, r) != '=')
        return NULL;
    c->o->node_rank = task;
    return q;
}

static void paren_number(struct fl_peel *c, fl_str in, fl_str key, int32_t *v)
{
    ptrdiff_t at = fl_str_find(in, key);

    if (at >= 0)
        fl_peel_int(c, in.p + at + key.n, v);
}

const char *fl_peel_paren(struct fl_peel *c, const char *p)
{
    fl_str in = fl_str_n(p, (size_t)(c->end - p > 240 ? 240 : c->end - p));
    ptrdiff_t close = fl_str_find(in, FL_S(") ")), at, ip;
    const char *q;

    if (close < 0 && in.n && in.p[in.n - 1] == ')')
        close = (ptrdiff_t)in.n - 1;
    if (close < 0)
        return NULL;
    in.n = (size_t)close;
    at = fl_str_find(in, FL_S(" pid="));
    ip = fl_str_find(in, FL_S(", ip="));
    if (at >= 0) {
        if (!fl_peel_i64(c, in.p + at + 5, &c->o->pid))
            return NULL;
        paren_number(c, in, FL_S(" rank="), &c->o->msg_rank);
    } else if (fl_str_starts(in, FL_S("(PID:"))) {
        if (!fl_peel_i64(c, in.p + 5, &c->o->pid))
            return NULL;
        paren_number(c, in, FL_S(" Device:"), &c->o->gpu_index);
        paren_number(c, in, FL_S(" RankID:"), &c->o->rank);
        return fl_blank(c, p + close + 1);
    } else if (!fl_str_starts(in, FL_S("(raylet")) && !fl_str_starts(in, FL_S("(autoscaler")) &&
               !fl_str_starts(in, FL_S("(gcs_server"))) {
        return NULL;
    }
    if (ip >= 0) {
        q = fl_word_end(c, in.p + ip + 5);
        fl_peel_host(c, in.p + ip + 5, q);
    }
    c->o->origin = FL_FROM_LAUNCHER;
    return fl_blank(c, p + close + 1);
}

const char *fl_peel_angle(struct fl_peel *c, const char *p)
{
    static const uint8_t sev[] = {FL_SEV_FATAL, FL_SEV_FATAL, FL_SEV_FATAL, FL_SEV_ERROR,
                                  FL_SEV_WARN,  FL_SEV_INFO,  FL_SEV_INFO,  FL_SEV_DEBUG};
    const char *q;
    int32_t v;

    if (p != c->start || !(q = fl_peel_int(c, p + 1, &v)) || q - p > 4 || fl_at(c, q) != '>')
        return NULL;
    if (fl_at(c, q + 1) != '[' && !fl_is_upper(fl_at(c, q + 1)))
        return NULL;
    c->o->severity = sev[v & 7];
    return q + 1;
}
