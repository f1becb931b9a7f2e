/*
 * Docker json-file, fluent-bit, `journalctl -o json` and CRI records as plain lines.
 *
 * The first line of a file decides what the file is; a line that is no such record is passed
 * through as it stands, so that a wrapper's own messages are not lost. What is unwrapped gets a
 * prefix that the prefix reader knows: a time with "stdout F " as in CRI files, or the journal's
 * "time host ident[pid]: ". Only records with the wrappers' own keys are taken: an application
 * that logs JSON with "message" and "time" keeps its lines.
 *
 * A record's text may end in the middle of a line (Docker at 16 KiB, CRI with the mark P); it
 * waits for its rest, per stream, and then has the number of its first record. Escapes inside the
 * JSON may hold what the raw file could not: the text is cleaned once more.
 */
#include "read/unwrap.h"

#include <stdio.h>

#include "read/jsonline.h"
#include "read/prefix.h"

#include "base/alloc.h"

enum key {
    K_LOG,
    K_STREAM,
    K_TIME,
    K_DATE,
    K_P,
    K_KUBERNETES,
    K_MESSAGE,
    K_REALTIME,
    K_HOST,
    K_IDENT,
    K_COMM,
    K_PID,
    K_SPID,
    K_AT,
    KEYS
};

static const fl_str keys[KEYS] = {{"log", 3},         {"stream", 6},
                                  {"time", 4},        {"date", 4},
                                  {"_p", 2},          {"kubernetes", 10},
                                  {"MESSAGE", 7},     {"__REALTIME_TIMESTAMP", 20},
                                  {"_HOSTNAME", 9},   {"SYSLOG_IDENTIFIER", 17},
                                  {"_COMM", 5},       {"_PID", 4},
                                  {"SYSLOG_PID", 10}, {"@timestamp", 10}};

void fl_unwrap_init(struct fl_unwrap *u, size_t cap, size_t room)
{
    *u = (struct fl_unwrap){.cap = cap};
    /* A journal record with many line breaks repeats nothing, so the text stays below its record;
     * parts of earlier blocks come on top. */
    fl_buf_init(&u->out, room + 4 * cap + 65536);
    fl_buf_init(&u->text, room + cap + 4096);
    fl_buf_init(&u->scratch, 4096);
    fl_buf_init(&u->prefix, 512);
    for (int i = 0; i < 2; i++)
        fl_buf_init(&u->part[i].text, cap + 4096);
}

void fl_unwrap_dispose(struct fl_unwrap *u)
{
    fl_buf_dispose(&u->out);
    fl_buf_dispose(&u->text);
    fl_buf_dispose(&u->scratch);
    fl_buf_dispose(&u->prefix);
    for (int i = 0; i < 2; i++)
        fl_buf_dispose(&u->part[i].text);
    fl_marks_dispose(&u->marks);
}

/* "TIMEZ stderr P text": its parts. */
struct cri {
    fl_str time, text;
    int stream; /* 0 stdout, 1 stderr */
    bool partial;
};

static bool cri_record(fl_str line, struct cri *out)
{
    struct fl_time t;
    size_t n = line.n >= 29 && line.p[4] == '-' ? fl_time_parse(line, &t) : 0;
    fl_str rest = fl_str_from(line, n);
    char mark;

    if (n < 20 || !t.zoned)
        return false;
    out->time = fl_str_sub(line, 0, n);
    out->stream = fl_str_starts(rest, FL_S(" stderr "));
    if (!out->stream && !fl_str_starts(rest, FL_S(" stdout ")))
        return false;
    mark = rest.n > 8 ? rest.p[8] : 0;
    if ((mark != 'F' && mark != 'P') || (rest.n > 9 && rest.p[9] != ' '))
        return false;
    out->partial = mark == 'P';
    out->text = fl_str_from(rest, 10);
    return true;
}

static bool journal(const struct fl_jl_value *v)
{
    return v[K_REALTIME].kind == FL_JL_STRING && v[K_MESSAGE].kind != FL_JL_ABSENT;
}

static bool container(const struct fl_jl_value *v)
{
    return v[K_LOG].kind == FL_JL_STRING && (v[K_STREAM].kind || v[K_TIME].kind || v[K_DATE].kind ||
                                             v[K_KUBERNETES].kind || v[K_AT].kind);
}

void fl_unwrap_start(struct fl_unwrap *u, fl_str first_line)
{
    struct fl_jl_value v[KEYS];
    struct cri c;

    u->mode = FL_UNWRAP_NONE;
    u->part[0].open = u->part[1].open = false;
    u->cut_lines = u->cut_bytes = 0;
    if (first_line.n > 2 && first_line.p[0] == '{' && fl_jl_scan(first_line, keys, v, KEYS) &&
        (journal(v) || container(v)))
        u->mode = FL_UNWRAP_JSON;
    else if (first_line.n >= 29 && first_line.p[0] >= '1' && first_line.p[0] <= '2' &&
             cri_record(first_line, &c))
        u->mode = FL_UNWRAP_CRI;
}

/* One finished line (LFs inside make it several) with its number. */
static int put_line(struct fl_unwrap *u, fl_str text, uint64_t line)
{
    size_t lfs = fl_count_lf(text.p, text.n);

    if (!u->started) {
        fl_marks_start(&u->marks, line);
        u->started = true;
    }
    do {
        fl_str one = fl_str_cut(&text, '\n');
        if (fl_marks_line(&u->marks, u->out.n, line))
            return FL_ENOMEM;
        fl_buf_add(&u->out, one);
        fl_buf_addc(&u->out, '\n');
        u->marks.lfs++;
    } while (lfs-- > 0);
    return u->out.bad;
}

static void part_add(struct fl_unwrap *u, struct fl_unwrap_part *p, fl_str text)
{
    size_t room = u->cap > p->text.n ? u->cap - p->text.n : 0;

    if (text.n > room) {
        u->cut_lines++;
        u->cut_bytes += text.n - room;
        text.n = room;
    }
    fl_buf_add(&p->text, text);
}

/* The text of one record; `prefix` goes before the first record of a line only. */
static int put_record(struct fl_unwrap *u, int stream, fl_str prefix, fl_str text, bool partial,
                      uint64_t line)
{
    struct fl_unwrap_part *p = &u->part[stream];
    int r;

    if (!p->open && !partial) {
        fl_buf_clear(&u->scratch);
        fl_buf_add(&u->scratch, prefix);
        if (prefix.n + text.n > 4000) {
            fl_buf_clear(&p->text);
            fl_buf_add(&p->text, prefix);
            part_add(u, p, text);
            return put_line(u, fl_buf_str(&p->text), line);
        }
        fl_buf_add(&u->scratch, text);
        return u->scratch.bad ? u->scratch.bad : put_line(u, fl_buf_str(&u->scratch), line);
    }
    if (!p->open) {
        fl_buf_clear(&p->text);
        fl_buf_add(&p->text, prefix);
        p->line = line;
        p->open = true;
    }
    part_add(u, p, text);
    if (partial)
        return p->text.bad;
    p->open = false;
    r = put_line(u, fl_buf_str(&p->text), p->line);
    return p->text.bad ? p->text.bad : r;
}

/* Cleans what the JSON escapes brought in, in u->text. */
static int clean_text(struct fl_unwrap *u)
{
    struct fl_clean c = {.cap = u->cap, .line = 1};
    struct fl_clean_buf b = {0};
    struct fl_marks m = {0};
    int r;

    if (!fl_buf_room(&u->text, 1))
        return u->text.bad;
    b.p = u->text.p;
    b.end = u->text.n;
    fl_marks_start(&m, 1);
    r = fl_clean_run(&c, &b, &m, true);
    u->text.n = b.whole;
    u->cut_lines += c.cut_lines;
    u->cut_bytes += c.cut_bytes;
    fl_marks_dispose(&m);
    return r;
}

/* "1772330584.123" or a quoted RFC 3339 text as a time in front, with a blank. */
static void put_time(const struct fl_jl_value *v, fl_buf *out)
{
    struct fl_time t;
    char text[40];

    if (v->kind == FL_JL_STRING) {
        fl_buf_add(out, v->raw);
        fl_buf_addc(out, ' ');
    } else if (v->kind == FL_JL_OTHER && fl_time_parse(v->raw, &t)) {
        fl_time_print(&t, text);
        fl_buf_addz(out, text);
        fl_buf_addc(out, ' ');
    }
}

static void put_pod(fl_str object, fl_buf *out)
{
    static const fl_str names[2] = {{"pod_name", 8}, {"container_name", 14}};
    struct fl_jl_value v[2];

    if (!fl_jl_scan(object, names, v, 2) || v[0].kind != FL_JL_STRING)
        return;
    fl_buf_addz(out, "[pod/");
    fl_buf_add(out, v[0].raw);
    fl_buf_addc(out, '/');
    fl_buf_add(out, v[1].raw);
    fl_buf_addz(out, "] ");
}

static int container_line(struct fl_unwrap *u, const struct fl_jl_value *v, uint64_t line)
{
    fl_buf *prefix = &u->prefix;
    fl_str text;
    struct cri c;
    int stream = fl_str_eqz(v[K_STREAM].raw, "stderr"), r;
    bool partial;

    fl_buf_clear(&u->text);
    fl_jl_text(v[K_LOG].raw, &u->text);
    if (u->text.bad)
        return u->text.bad;
    text = fl_buf_str(&u->text);
    /* Docker ends a whole line with LF; fluent-bit's parsers say it in "_p" and drop the LF. */
    partial = v[K_P].kind == FL_JL_STRING ? fl_str_eqz(v[K_P].raw, "P")
              : v[K_STREAM].kind && v[K_TIME].kind && !v[K_DATE].kind && !v[K_AT].kind
                  ? !fl_str_ends(text, FL_S("\n"))
                  : false;
    fl_buf_clear(prefix);
    if (cri_record(text, &c)) { /* fluent-bit without a parser: CRI inside */
        fl_buf_add(prefix, fl_str_sub(text, 0, (size_t)(c.text.p - text.p)));
        if (c.partial && !prefix->bad && prefix->n > 2)
            prefix->p[prefix->n - 2] = 'F'; /* the line is given out whole */
        partial = c.partial;
        stream = c.stream;
        memmove(u->text.p, c.text.p, c.text.n);
        u->text.n = c.text.n;
    } else {
        put_time(v[K_TIME].kind ? &v[K_TIME] : v[K_AT].kind ? &v[K_AT] : &v[K_DATE], prefix);
        if (prefix->n && v[K_STREAM].kind == FL_JL_STRING)
            fl_buf_addz(prefix, stream ? "stderr F " : "stdout F ");
    }
    if (v[K_KUBERNETES].kind == FL_JL_OTHER)
        put_pod(v[K_KUBERNETES].raw, prefix);
    if (prefix->bad == FL_ELIMIT)
        fl_buf_clear(prefix);
    r = prefix->bad ? prefix->bad : clean_text(u);
    text = fl_buf_str(&u->text);
    if (!r) {
        if (text.n && text.p[text.n - 1] == '\n')
            text.n--;
        r = put_record(u, stream, fl_buf_str(prefix), text, partial, line);
    }
    return r;
}

/* A MESSAGE that is not UTF-8 is an array of numbers. */
static void byte_array(fl_str raw, fl_buf *out)
{
    uint64_t v;
    size_t i = 0;

    while (i < raw.n) {
        size_t used = fl_str_u64(fl_str_from(raw, i), 255, &v);
        if (used)
            fl_buf_addc(out, (char)v);
        i += used ? used : 1;
    }
}

static int journal_line(struct fl_unwrap *u, const struct fl_jl_value *v, uint64_t line)
{
    struct fl_time t = {.kind = FL_TIME_WALL, .zoned = true};
    const struct fl_jl_value *ident = v[K_IDENT].kind == FL_JL_STRING ? &v[K_IDENT] : &v[K_COMM];
    const struct fl_jl_value *pid = v[K_PID].kind == FL_JL_STRING ? &v[K_PID] : &v[K_SPID];
    char when[40];
    fl_buf *prefix = &u->prefix;
    fl_str text;
    uint64_t us;
    int r;

    fl_buf_clear(&u->text);
    if (v[K_MESSAGE].kind == FL_JL_STRING)
        fl_jl_text(v[K_MESSAGE].raw, &u->text);
    else
        byte_array(v[K_MESSAGE].raw, &u->text);
    r = u->text.bad ? u->text.bad : clean_text(u);
    if (r)
        return r;
    fl_buf_clear(prefix);
    if (fl_str_to_u64(v[K_REALTIME].raw, &us) && us < (1ULL << 62)) {
        t.us = (int64_t)us;
        fl_time_print(&t, when);
        fl_buf_addf(prefix, "%s %.*s %.*s", when, FL_FMT(v[K_HOST].raw), FL_FMT(ident->raw));
        if (pid->kind == FL_JL_STRING)
            fl_buf_addf(prefix, "[%.*s]", FL_FMT(pid->raw));
        fl_buf_addz(prefix, ": ");
    }
    if (prefix->bad == FL_ELIMIT)
        fl_buf_clear(prefix);
    text = fl_buf_str(&u->text);
    if (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    r = prefix->bad ? prefix->bad : put_record(u, 0, fl_buf_str(prefix), text, false, line);
    return r;
}

static int json_line(struct fl_unwrap *u, fl_str s, uint64_t line)
{
    struct fl_jl_value v[KEYS];

    if (s.n && s.p[0] == '{' && fl_jl_scan(s, keys, v, KEYS)) {
        if (container(v))
            return container_line(u, v, line);
        if (journal(v))
            return journal_line(u, v, line);
    }
    return put_line(u, s, line);
}

static int cri_line(struct fl_unwrap *u, fl_str s, uint64_t line)
{
    struct cri c;
    char prefix[80];
    int n;

    if (!cri_record(s, &c) || (!c.partial && !u->part[c.stream].open))
        return put_line(u, s, line);
    n = snprintf(prefix, sizeof(prefix), "%.*s %s F ", FL_FMT(c.time),
                 c.stream ? "stderr" : "stdout");
    if (n < 0 || (size_t)n >= sizeof(prefix))
        n = 0;
    return put_record(u, c.stream, fl_str_n(prefix, (size_t)n), c.text, c.partial, line);
}

static int flush_part(struct fl_unwrap *u, struct fl_unwrap_part *p)
{
    if (!p->open)
        return FL_OK;
    p->open = false;
    return put_line(u, fl_buf_str(&p->text), p->line);
}

/* CRI lines without a partial one among them are fine as they are. */
static bool nothing_to_join(const struct fl_unwrap *u, fl_str all)
{
    return u->mode == FL_UNWRAP_CRI && !u->part[0].open && !u->part[1].open &&
           !fl_str_has(all, FL_S(" stdout P")) && !fl_str_has(all, FL_S(" stderr P"));
}

int fl_unwrap_run(struct fl_unwrap *u, struct fl_block *block, bool last, fl_err *err)
{
    fl_str rest = fl_str_n(block->data, block->len), s;
    uint64_t lfs = 0, line;
    int r = FL_OK;

    if (u->mode == FL_UNWRAP_NONE || nothing_to_join(u, rest))
        return FL_OK;
    fl_buf_clear(&u->out);
    u->started = false;
    fl_marks_start(&u->marks, block->first_line);
    while (!r && rest.n) {
        line = fl_block_line(block, (size_t)(rest.p - block->data), lfs++);
        s = fl_str_cut(&rest, '\n');
        r = u->mode == FL_UNWRAP_JSON ? json_line(u, s, line) : cri_line(u, s, line);
    }
    if (!r && last) {
        /* The part that began first goes first. */
        int one = u->part[0].open && u->part[1].open && u->part[1].line < u->part[0].line;
        r = flush_part(u, &u->part[one]);
        if (!r)
            r = flush_part(u, &u->part[!one]);
    }
    if (r == FL_ELIMIT)
        return fl_fail(err, FL_ELIMIT, "a container log's record is larger than %zu bytes",
                       u->out.max);
    if (r)
        return fl_fail_nomem(err);
    block->data = u->out.p;
    block->len = u->out.n;
    block->first_line = u->marks.first_line;
    block->shifts = u->marks.v;
    block->nshifts = u->marks.n;
    return FL_OK;
}
