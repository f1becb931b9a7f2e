/*
 * From blocks to marks: the one pass over the log.
 *
 * Most lines of a healthy log interest nobody. For them one memchr() and a look at the first bytes
 * (which rank?) is all that is done. A line that the matcher names a candidate, or that stands
 * behind an open traceback, is read in full: prefix, time, writer, then the rules.
 *
 * A writer is one printing process as far as the line tells (file, rank or task, host, pid). Lines
 * without a time take over the last time of their writer, or else of their file: a lower bound, and
 * within one writer the order of lines is the order of events.
 *
 * Years are missing in many prefixes, and dates in some. A missing year is the one of the first
 * full date of the job, a missing date the latest full date of its file. When there is none at all
 * the times still compare among themselves.
 */
#include "diagnose/job.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "diagnose/crew.h"
#include "diagnose/engine.h"
#include "diagnose/gather.h"
#include "diagnose/signs.h"
#include "diagnose/stacks.h"
#include "diagnose/watchdog.h"

#define US 1000000LL
#define DAY (86400 * US)
/* Bytes that the rules may be tried on in one line, and the tries that it has in any case. A line
 * of 200 bytes on which every shipped pattern is tried needs half a million. */
#define TRY_BYTES (4u << 20)
#define TRIES 24
#define CARRY (16u << 10) /* bytes kept of the block before */
#define QUIET_LINES 64    /* looked back from the line that ends the job */

static struct fl_file_state *file_state(struct fl_job *j, uint32_t file)
{
    const struct fl_read_file *f;
    struct fl_file_state *s;

    if (fl_grow((void **)&j->files, &j->files_cap, (size_t)file + 1, sizeof(*j->files)))
        return NULL;
    while (j->nfiles <= file) {
        f = fl_reader_file(j->reader, j->nfiles);
        s = &j->files[j->nfiles++];
        *s = (struct fl_file_state){.t = FL_T_NONE, .host = -1, .frame_host = -1};
        fl_place_from_name(fl_str_c(f->name), &s->place);
        s->kernel = s->place.kernel;
        if (s->place.host.n)
            s->host = fl_places_host(&j->places, &j->arena, s->place.host);
    }
    return &j->files[file];
}

/* The year and date that a short time leaves out. */
static void complete_time(struct fl_job *j, const struct fl_file_state *f, const struct fl_time *t,
                          struct fl_mark *m)
{
    int64_t year_start;

    switch (t->kind) {
    case FL_TIME_WALL:
        /* What the wall clock showed: logs without a zone beside it show the same one. */
        m->t = fl_time_wall(t);
        m->clock = FL_CLOCK_LOCAL;
        m->zoned = t->zoned;
        m->zone_min = t->zone_min;
        j->base_date = m->t - ((m->t % DAY) + DAY) % DAY;
        if (!j->year) {
            int64_t days = t->us / DAY;
            int y = 1970 + (int)(days / 366);
            while (fl_days_from_civil(y + 1, 1, 1) <= days)
                y++;
            j->year = y;
            fl_job_rebase(j);
        }
        break;
    case FL_TIME_YEARLESS:
        /* us since January 1 with February 29 kept: day 60 and later are one less in other years */
        year_start = fl_days_from_civil(j->year ? j->year : FL_NO_YEAR, 1, 1);
        m->t = year_start * DAY + t->us;
        if (t->us / DAY >= 60 &&
            fl_days_from_civil(j->year ? j->year : FL_NO_YEAR, 3, 1) - year_start == 59)
            m->t -= DAY;
        m->clock = FL_CLOCK_LOCAL;
        break;
    case FL_TIME_DAY:
        if (f->t != FL_T_NONE && f->clock == FL_CLOCK_LOCAL) {
            m->t = f->t - f->t % DAY + t->us;
            if (m->t < f->t - DAY / 2)
                m->t += DAY; /* past midnight */
        } else {
            m->t = (j->base_date == FL_T_NONE ? 0 : j->base_date) + t->us;
        }
        m->clock = FL_CLOCK_LOCAL;
        break;
    case FL_TIME_BOOT:
        m->t = t->us;
        m->clock = FL_CLOCK_BOOT;
        break;
    default:
        return;
    }
    m->own_time = true;
}

static struct fl_writer *writer_of(struct fl_job *j, const struct fl_prefix *p, uint32_t file,
                                   uint32_t *index)
{
    struct {
        int32_t rank, local, task, node;
        int64_t pid;
        uint32_t file;
        uint32_t host;
    } key = {p->rank, p->local_rank, p->task, p->node_rank, -1, file, 0};
    uint32_t at = 0;
    bool added = false;

    if (p->rank < 0 && p->local_rank < 0 && p->task < 0)
        key.pid = p->pid;
    if (p->rank < 0)
        key.host = p->host.n ? (uint32_t)fl_hash64(p->host.p, p->host.n, 1) : 0;
    if (j->nwriters >= FL_MAX_WRITERS) { /* those that came too late are all the first one */
        fl_map_get(&j->writer_of, fl_str_n((const char *)&key, sizeof(key)), &at);
        *index = at;
        return &j->writers[at];
    }
    if (fl_map_intern(&j->writer_of, fl_str_n((const char *)&key, sizeof(key)),
                      (uint32_t)j->nwriters, &at, &added) ||
        (added &&
         fl_grow((void **)&j->writers, &j->writers_cap, j->nwriters + 1, sizeof(*j->writers)))) {
        j->failed = FL_ENOMEM;
        return NULL;
    }
    if (added)
        j->writers[j->nwriters++] = (struct fl_writer){.t = FL_T_NONE, .process = -1};
    *index = at;
    return &j->writers[at];
}

static bool outside(const struct fl_job *j, const struct fl_mark *m)
{
    if (m->t == FL_T_NONE || m->clock == FL_CLOCK_BOOT)
        return false;
    return m->t < j->opts->since_us || m->t > j->opts->until_us;
}

/* Who printed the line, where and when. NULL: memory ran out. */
static struct fl_writer *mark_line(struct fl_job *j, const struct fl_block *b,
                                   const struct fl_prefix *p, uint64_t line, struct fl_mark *m)
{
    struct fl_file_state *f = &j->files[b->file];
    struct fl_writer *w;

    *m = (struct fl_mark){.seq = j->seq,
                          .line = line,
                          .file = b->file,
                          .t = FL_T_NONE,
                          .pid = p->pid,
                          .rank = p->rank,
                          .local_rank = p->local_rank,
                          .node_rank = p->node_rank,
                          .gpu_index = p->gpu_index,
                          .task = p->task,
                          .host = -1,
                          .severity = p->severity,
                          .origin = p->origin,
                          .progress = j->progress,
                          .attempt = j->attempt};
    w = writer_of(j, p, b->file, &m->writer);
    if (!w)
        return NULL;
    if (p->host.n)
        m->host = fl_places_host(&j->places, &j->arena, p->host);
    if (m->host >= 0 && p->host.n) {
        j->places.hosts[m->host].lines++;
        j->places.hosts[m->host].machine |= p->syslog || p->origin == FL_FROM_KERNEL;
        j->places.hosts[m->host].pod |= p->origin == FL_FROM_CONTAINER;
        if (p->origin == FL_FROM_NCCL) {
            fl_places_file_host(j, b->file, m->host);
            fl_places_node_host(j, m, m->host);
        }
    } else
        m->host = f->host;
    if (m->rank < 0 && p->task < 0)
        m->rank = f->place.rank;
    if (m->local_rank < 0)
        m->local_rank = f->place.local_rank;
    if (m->node_rank < 0)
        m->node_rank = f->place.node_rank;
    complete_time(j, f, &p->time, m);
    if (m->own_time) {
        w->t = f->t = m->t;
        w->clock = f->clock = m->clock;
    } else if (w->t != FL_T_NONE) {
        m->t = w->t;
        m->clock = w->clock;
    } else if (f->t != FL_T_NONE) {
        m->t = f->t;
        m->clock = f->clock;
    }
    if (m->own_time && m->clock != FL_CLOCK_BOOT && !f->kernel && !outside(j, m) &&
        (!j->latest.line || (m->clock == j->latest.clock && m->t > j->latest.t)))
        j->latest = *m;
    w->last = *m;
    w->lines++;
    return w;
}

/* One more line of a rank. Its text is copied when the block is done, and only the last one's. */
static void count_rank(struct fl_job *j, int32_t rank, uint32_t file, uint64_t number, size_t at,
                       size_t len, const struct fl_mark *m)
{
    struct fl_rank *r = fl_places_rank(&j->places, rank, true);

    if (!r)
        return;
    r->lines++;
    if (m)
        r->last = *m;
    r->last.seq = j->seq;
    r->last.file = file;
    r->last.line = number;
    r->last_at = (uint32_t)at;
    r->last_n = (uint32_t)len;
    if (!r->touched) {
        if (fl_grow((void **)&j->touched, &j->touched_cap, j->ntouched + 1, sizeof(*j->touched))) {
            j->failed = FL_ENOMEM;
            return;
        }
        r->touched = true;
        j->touched[j->ntouched++] = (uint32_t)(r - j->places.ranks);
    }
    if (r->host < 0 && m && m->host >= 0)
        r->host = m->host;
    if (r->local_rank < 0 && m && m->local_rank >= 0)
        r->local_rank = m->local_rank;
}

/* The last line of each rank in this block: its text, and its time when it was not read in full. */
static void keep_last_lines(struct fl_job *j, const struct fl_block *b)
{
    for (size_t i = 0; i < j->ntouched; i++) {
        struct fl_rank *r = &j->places.ranks[j->touched[i]];
        size_t n = r->last_n < FL_RANK_TEXT - 1 ? r->last_n : FL_RANK_TEXT - 1;
        struct fl_prefix p;
        struct fl_mark m;
        memcpy(r->text, b->data + r->last_at, n);
        r->text[n] = 0;
        r->touched = false;
        fl_prefix_parse(fl_str_n(b->data + r->last_at, r->last_n), &p);
        if (p.time.kind != FL_TIME_NONE) {
            m = r->last;
            complete_time(j, &j->files[b->file], &p.time, &m);
            r->last.t = m.t;
            r->last.clock = m.clock;
            r->last.own_time = m.own_time;
        }
        r->told = r->last;
    }
    j->ntouched = 0;
}

static bool inside_fits(const struct fl_job *j, const struct fl_rule *r,
                        const struct fl_traceback *tb)
{
    char text[700];
    int n = snprintf(text, sizeof(text), "%.*s %.*s", FL_FMT(tb->file), FL_FMT(tb->function));

    return n > 0 &&
           fl_regex_match(r->inside, j->scratch,
                          fl_str_n(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1),
                          NULL);
}

static bool frame_fits(const struct fl_job *j, const struct fl_rule *r, const struct fl_writer *w)
{
    if (r->phase == FL_WHEN_STARTUP && j->progress)
        return false;
    if (r->phase == FL_WHEN_RUNNING && !j->progress)
        return false;
    if (r->frame == FL_FRAME_ANY && !r->inside)
        return true;
    if (!w->tb_done)
        return false;
    if (r->inside && !inside_fits(j, r, &j->tracebacks[w->tb_done - 1]))
        return false;
    if (r->frame == FL_FRAME_ANY)
        return true;
    return j->tracebacks[w->tb_done - 1].user == (r->frame == FL_FRAME_USER);
}

/* "KeyError: Caught KeyError in DataLoader worker process 3." wraps what is printed next. */
static bool worker_wrapper(const struct fl_job *j, const struct fl_writer *w)
{
    return w->tb_done && fl_str_starts(j->tracebacks[w->tb_done - 1].message, FL_S("Caught ")) &&
           fl_str_has(j->tracebacks[w->tb_done - 1].message, FL_S("in DataLoader worker process"));
}

static bool refused(struct fl_job *j, const struct fl_rule *r, fl_str line)
{
    for (size_t i = 0; i < r->nnots; i++)
        if (fl_regex_match(r->nots[i], j->scratch, line, NULL))
            return true;
    return false;
}

static bool beats(const struct fl_job *j, const struct fl_rule *a, const struct fl_rule *b)
{
    if (a->strength != b->strength)
        return a->strength > b->strength;
    if (a->role != b->role)
        return a->role < b->role;
    return j->rules->causes[a->cause].precedence > j->rules->causes[b->cause].precedence;
}

/* Exception groups draw a frame on the left; an anchored rule means what stands behind it. */
static size_t behind_border(fl_str line, size_t message)
{
    while (message < line.n && (line.p[message] == ' ' || line.p[message] == '|'))
        message++;
    return message;
}

struct line_hits {
    const struct fl_rule *best, *confirm;
    struct fl_caps best_caps, confirm_caps;
    uint32_t signs;
    bool owned; /* by an advice or benign rule */
};

static void match_line(struct fl_job *j, const uint32_t *c, size_t n, fl_str line, size_t message,
                       const struct fl_writer *w, struct line_hits *out)
{
    struct fl_caps caps;
    size_t tries = 0;

    *out = (struct line_hits){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t id = fl_engine_pattern_id(j->engine, c[i]);
        const struct fl_rule *r;
        if (id >= FL_SIGN_ID) {
            out->signs |= 1u << (id - FL_SIGN_ID);
            continue;
        }
        r = &j->rules->rules[id];
        if (r == out->best || r == out->confirm || r->maturity == FL_DRAFT ||
            !frame_fits(j, r, w) || (++tries > TRIES && tries > TRY_BYTES / (line.n + 1)) ||
            !fl_match_confirm(j->matcher, j->scratch, c[i], line, message, &caps) ||
            (r->nnots && refused(j, r, line)))
            continue;
        if (r->role == FL_ROLE_ADVICE || r->role == FL_ROLE_BENIGN) {
            out->owned = true;
        } else if (r->role == FL_ROLE_CONFIRM || r->role == FL_ROLE_RECOVERY) {
            if (!out->confirm || beats(j, r, out->confirm))
                out->confirm = r, out->confirm_caps = caps;
        } else if (!out->best || beats(j, r, out->best)) {
            out->best = r, out->best_caps = caps;
        }
    }
}

static void follow_signs(struct fl_job *j, uint32_t signs, fl_str line, fl_str message,
                         const struct fl_mark *m, uint64_t class, bool failure)
{
    if (signs & 1u << FL_SIGN_PLACE)
        fl_places_learn(j, m, message);
    if (signs & 1u << FL_SIGN_METRIC && !failure)
        fl_spare_note(j, class, fl_timeline_metric(j, message, line, m));
    if (signs & 1u << FL_SIGN_STACK)
        fl_stacks_line(j, message, line, m);
    if (signs & 1u << FL_SIGN_WAIT)
        fl_watchdog_line(j, message, line, m);
    if (signs & 1u << FL_SIGN_TEARDOWN && !j->teardown[m->attempt].line)
        j->teardown[m->attempt] = *m;
    for (int k = FL_SIGN_CHECKPOINT; k <= FL_SIGN_BUSY; k++)
        if (signs & 1u << k)
            fl_timeline_sign(j, k, message, line, m);
}

/* Slurm puts no time in front of its last word but inside: "CANCELLED AT 2025-01-11T11:04:25 DUE
 * TO". */
static void time_inside(fl_str line, struct fl_time *out)
{
    ptrdiff_t at = fl_str_find(line, FL_S(" CANCELLED AT "));
    struct fl_time t;

    if (at >= 0 && fl_time_parse(fl_str_from(line, (size_t)at + 14), &t) && t.kind == FL_TIME_WALL)
        *out = t;
}

/* torchrun's --tee writes "[rank5]:" for the local rank when the role is called rank; the program's
 * own "[rank77]:" behind it gives that away, for the whole file. */
static void sort_out_ranks(struct fl_job *j, uint32_t file, fl_str line, struct fl_prefix *p)
{
    struct fl_file_state *f = &j->files[file];
    int32_t outer;

    if (p->rank < 0 || line.n == 0 || line.p[0] != '[' ||
        fl_prefix_peek_rank(line, &outer) != FL_PEEK_RANK)
        return;
    if (outer != p->rank) {
        f->outer_is_local = true;
        if (p->local_rank < 0)
            p->local_rank = outer;
    } else if (f->outer_is_local && !fl_str_has(fl_str_sub(line, 1, 40), FL_S("]:[rank"))) {
        p->local_rank = p->rank;
        p->rank = -1;
    }
}

/* A scheduler's last word on an attempt may stand behind the line that announces the next. */
static void back_to_attempt(const struct fl_job *j, uint32_t signs, struct fl_mark *m)
{
    if (m->attempt && signs & 1u << FL_SIGN_TEARDOWN && m->progress == j->attempt_progress &&
        m->seq - j->attempt_first[m->attempt].seq < 200)
        m->attempt--;
}

/* The first lines that say that the attempt is ended; the very first may have no time. */
static bool being_ended(const struct fl_job *j, const struct fl_mark *m)
{
    const struct fl_mark *first = &j->teardown[m->attempt];

    return !first->line || (first->file == m->file && m->line - first->line < QUIET_LINES &&
                            !first->own_time && !(j->quiet.us && j->quiet.attempt == m->attempt));
}

/* Steps back to the line before *p: in the block, then in what was kept of the block before. */
static bool line_before(const struct fl_job *j, const struct fl_block *b, const char **p,
                        fl_str *line)
{
    const char *start = b->data, *end, *at = *p;

    if (at == start || at < start || at > start + b->len) {
        start = j->carry.p;
        if (!start)
            return false;
        if (at == b->data)
            at = start + j->carry.n;
        if (at == start)
            return false;
    }
    end = at - 1;
    for (at = end; at > start && at[-1] != '\n'; at--)
        ;
    *line = fl_str_n(at, (size_t)(end - at));
    *p = at;
    return true;
}

/* How long nothing had been printed when the job was ended: from the last line before that has a
 * time, within QUIET_LINES. */
static void note_quiet(struct fl_job *j, const struct fl_block *b, fl_str line,
                       const struct fl_mark *m)
{
    const char *p = line.p;
    uint64_t number = m->line;
    fl_str before;

    for (int i = 0; i < QUIET_LINES && line_before(j, b, &p, &before); i++) {
        struct fl_mark at = FL_MARK_NOWHERE;
        struct fl_prefix x;
        at.file = m->file;
        at.line = --number;
        fl_prefix_parse(before, &x);
        if (x.time.kind == FL_TIME_NONE)
            continue;
        complete_time(j, &j->files[m->file], &x.time, &at);
        j->quiet = (struct fl_quiet){.us = at.clock == m->clock ? m->t - at.t : 0,
                                     .attempt = m->attempt,
                                     .point = {.at = at}};
        if (j->quiet.us > 0)
            j->quiet.point.text = fl_arena_z(&j->arena, fl_str_sub(before, 0, FL_MAX_TEXT));
        if (!j->quiet.point.text)
            j->quiet.us = 0;
        return;
    }
}

/* What a digest wants to know of a line. */
static uint8_t owner_of(const struct line_hits *h, enum fl_tb_part part)
{
    uint8_t o = part == FL_TB_NONE ? 0 : FL_OWN_TRACEBACK;

    if (h->owned)
        o |= FL_OWN_NOISE;
    else if (h->best || h->confirm)
        o |= FL_OWN_EVENT;
    if (h->signs & 1u << FL_SIGN_METRIC && !h->best)
        o |= FL_OWN_METRIC;
    return o;
}

/* One line that is read in full; the mask is of FL_OWN_*. */
static uint8_t read_line(struct fl_job *j, const struct fl_block *b, const struct fl_line *l,
                         const uint32_t *c, fl_str line, uint64_t number)
{
    struct fl_prefix p;
    struct line_hits hits;
    struct fl_mark m;
    struct fl_writer *w;
    fl_str message;
    enum fl_tb_part part;
    uint32_t tb = 0;

    fl_prefix_parse(line, &p);
    if (p.time.kind == FL_TIME_NONE)
        time_inside(line, &p.time);
    sort_out_ranks(j, b->file, line, &p);
    message = fl_str_from(line, p.message);
    w = mark_line(j, b, &p, number, &m);
    if (!w)
        return 0;
    if (outside(j, &m)) {
        j->left_out++;
        return 0;
    }
    if (m.rank >= 0)
        count_rank(j, m.rank, b->file, number, (size_t)(line.p - b->data), line.n, &m);
    else if (m.task >= 0 && m.task > j->places.max_task)
        j->places.max_task = m.task;
    w->tb_done = 0;
    part = fl_traceback_line(j, w, message, &m);
    w = &j->writers[m.writer];
    if (j->gather && part != FL_TB_NONE)
        fl_gather_traceback(j, m.writer, part, line, &m, l->tag.a);
    match_line(j, c, l->ncand, line, part == FL_TB_END ? behind_border(line, p.message) : p.message,
               w, &hits);
    tb = w->tb_done;
    back_to_attempt(j, hits.signs, &m);
    if (worker_wrapper(j, w))
        hits.best = NULL;
    if (!hits.owned && hits.best)
        fl_event_add(j, hits.best, line, &hits.best_caps, &m, tb);
    if (!hits.owned && hits.confirm)
        fl_event_add(j, hits.confirm, line, &hits.confirm_caps, &m, tb);
    if (hits.signs & 1u << FL_SIGN_TEARDOWN && m.own_time && being_ended(j, &m))
        note_quiet(j, b, line, &m);
    if (hits.signs && part != FL_TB_INSIDE)
        follow_signs(j, hits.signs, line, message, &m, l->class, hits.best != NULL);
    fl_timeline_saw_time(j, &m);
    if (!j->last_line.line || m.seq >= j->last_line.seq)
        j->last_line = m;
    if (!j->first_line.line)
        j->first_line = m;
    return owner_of(&hits, part);
}

/* Which rank's line it is, as far as its first bytes tell; in any thread. */
static bool tag_line(void *ctx, fl_str line, bool again, struct fl_tag *out)
{
    const struct fl_job *j = ctx;
    int32_t rank = -1;
    enum fl_peek kind;

    if (j->gather)
        return fl_gather_tag(line, again, out);
    kind = (enum fl_peek)fl_prefix_peek_rank(line, &rank);
    out->b = (uint64_t)kind << 32 | (uint32_t)rank;
    return kind == FL_PEEK_NONE;
}

static int read_block(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines,
                      fl_err *err)
{
    size_t shift = 0;
    int64_t by = 0;

    for (size_t i = 0; i < lines->n; i++) {
        const struct fl_line *l = &lines->v[i];
        const uint32_t *c = l->ncand ? lines->cand + l->cand : NULL;
        fl_str line = fl_str_n(b->data + l->at, l->len);
        enum fl_peek kind = (enum fl_peek)(l->tag.b >> 32 & 0xff);
        int32_t rank = (int32_t)(uint32_t)l->tag.b;
        uint8_t owner = 0;
        uint64_t number;
        for (; shift < b->nshifts && b->shifts[shift].at <= l->at; shift++)
            by = b->shifts[shift].by;
        number = b->first_line + i + (uint64_t)by;
        j->seq++;
        if (j->open_tracebacks || (l->ncand && !fl_spare_metric(j, b, lines, i, number))) {
            owner = read_line(j, b, l, c, line, number);
        } else if (kind == FL_PEEK_TASK) {
            if (rank > j->places.max_task)
                j->places.max_task = rank;
        } else if (kind == FL_PEEK_RANK && !j->files[b->file].outer_is_local) {
            count_rank(j, rank, b->file, number, l->at, line.n, NULL);
        }
        if (j->gather)
            fl_gather_line(j, b, lines, i, number, owner);
        if (j->failed)
            return fl_fail_nomem(err);
    }
    keep_last_lines(j, b);
    return FL_OK;
}

static void first_line_of(struct fl_job *j, const struct fl_block *b)
{
    struct fl_prefix p;
    struct fl_mark m;
    const char *lf = b->len ? memchr(b->data, '\n', b->len) : NULL;

    if (!lf)
        return;
    fl_prefix_parse(fl_str_n(b->data, (size_t)(lf - b->data)), &p);
    mark_line(j, b, &p, b->first_line, &m);
    if (p.origin == FL_FROM_KERNEL)
        j->files[b->file].kernel = true;
    if (j->files[b->file].place.rank >= 0)
        count_rank(j, j->files[b->file].place.rank, b->file, b->first_line, 0,
                   (size_t)(lf - b->data), &m);
}

/* Keeps the end of the block for those who look back from the next one. */
static void carry(struct fl_job *j, const struct fl_block *b, const struct fl_lines *lines)
{
    const struct fl_line *last = lines->n ? &lines->v[lines->n - 1] : NULL;
    size_t n = b->len < CARRY ? b->len : CARRY, over;
    const char *lf;

    if (!last)
        return;
    j->carry_line = fl_block_line(b, last->at, lines->n - 1);
    over = j->carry.n + n > 2 * CARRY ? j->carry.n + n - 2 * CARRY : 0;
    if (over > j->carry.n || n == CARRY)
        over = j->carry.n;
    if (over) {
        memmove(j->carry.p, j->carry.p + over, j->carry.n - over);
        fl_buf_cut(&j->carry, j->carry.n - over);
    }
    fl_buf_add(&j->carry, fl_str_n(b->data + b->len - n, n));
    /* Whole lines only. */
    lf = over || n < b->len ? memchr(j->carry.p, '\n', j->carry.n) : NULL;
    if (lf && lf + 1 < j->carry.p + j->carry.n) {
        over = (size_t)(lf + 1 - j->carry.p);
        memmove(j->carry.p, lf + 1, j->carry.n - over);
        fl_buf_cut(&j->carry, j->carry.n - over);
    }
    if (j->carry.bad)
        j->failed = FL_ENOMEM;
}

/* The last line of a file is always read, so that the end of a log has a time. */
static void last_line_of(struct fl_job *j, const struct fl_block *b)
{
    const char *end, *start;
    struct fl_prefix p;
    struct fl_mark m;

    if (j->carry.n < 2)
        return;
    end = j->carry.p + j->carry.n - 1;
    for (start = end; start > j->carry.p && start[-1] != '\n'; start--)
        ;
    fl_prefix_parse(fl_str_n(start, (size_t)(end - start)), &p);
    if (!mark_line(j, b, &p, j->carry_line, &m))
        return;
    if (!outside(j, &m) && m.seq >= j->last_line.seq)
        j->last_line = m;
}

/* Puts the part's file and skips on the record. FL_ELIMIT: no room for the file. */
static int record_part(struct fl_job *j, const struct fl_part *p, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; i < p->nskips && r == FL_OK; i++)
        r = fl_reader_record_skip(j->reader, &p->skips[i], err);
    if (r || p->empty)
        return r;
    if (p->block.first)
        j->no_room = false;
    return j->no_room ? FL_ELIMIT : fl_reader_record(j->reader, &p->file, !p->block.first, err);
}

/* Folds one part of the input; parts come in order. */
static int fold_part(void *ctx, const struct fl_part *p, fl_err *err)
{
    struct fl_job *j = ctx;
    struct fl_block b = p->block;
    int r = record_part(j, p, err);

    j->no_room = r == FL_ELIMIT;
    if (j->no_room)
        return FL_OK;
    if (r || p->empty)
        return r;
    b.file = (uint32_t)(fl_reader_files(j->reader) - 1);
    if (!file_state(j, b.file))
        return fl_fail_nomem(err);
    if (b.first) {
        fl_buf_clear(&j->carry);
        first_line_of(j, &b);
    }
    r = read_block(j, &b, &p->lines, err);
    if (r)
        return r;
    carry(j, &b, &p->lines);
    if (b.last)
        last_line_of(j, &b);
    if (j->gather)
        fl_gather_block(j, &b, &p->lines);
    return j->failed ? fl_fail_nomem(err) : FL_OK;
}

int fl_job_read(struct fl_job *j, fl_err *err)
{
    struct fl_crew_opts o = {.reader = j->reader,
                             .matcher = j->matcher,
                             .threads = j->opts->threads,
                             .tag = tag_line,
                             .tag_ctx = j,
                             .progress = j->opts->progress,
                             .progress_ctx = j->opts->progress_ctx};
    int r;

    /* Without it the seed is known, and a log made for that could hide a line. */
    if (getentropy(o.seed, sizeof(o.seed)))
        o.seed[0] = (uint64_t)(uintptr_t)j;
    o.seed[1] |= 1;
    r = fl_crew_run(&o, fold_part, j, err);
    if (r)
        return r;
    for (size_t i = 0; i < j->nwriters; i++)
        fl_traceback_close(j, &j->writers[i]);
    return j->failed ? fl_fail_nomem(err) : FL_OK;
}

bool fl_mark_timed_alike(const struct fl_mark *a, const struct fl_mark *b)
{
    return a->t != FL_T_NONE && b->t != FL_T_NONE && a->clock == b->clock &&
           (a->clock != FL_CLOCK_BOOT || a->file == b->file);
}

/* us from b to a; where both tell their zone, in one zone. */
static int64_t gap(const struct fl_mark *a, const struct fl_mark *b)
{
    int64_t zones = a->zoned && b->zoned ? (int64_t)(a->zone_min - b->zone_min) * 60 * US : 0;

    return a->t - b->t - zones;
}

static enum fl_order by_line(const struct fl_mark *a, const struct fl_mark *b)
{
    return a->line < b->line   ? FL_ORDER_BEFORE
           : a->line > b->line ? FL_ORDER_AFTER
                               : FL_ORDER_UNKNOWN;
}

enum fl_order fl_mark_order(const struct fl_mark *a, const struct fl_mark *b)
{
    int64_t slack = 5 * US, d;

    /* What one writer prints is in order, but for tables whose rows tell times of their own. */
    d = a->own_time && b->own_time && a->clock == b->clock ? gap(a, b) : 0;
    if (a->file == b->file && a->writer == b->writer && d >= -slack && d <= slack)
        return by_line(a, b);
    if (fl_mark_timed_alike(a, b)) {
        if (a->host >= 0 && a->host == b->host && a->own_time && b->own_time)
            slack = US / 2;
        d = gap(a, b);
        /* A time that was taken over is only the least that it can be. */
        if (d < -slack && a->own_time)
            return FL_ORDER_BEFORE;
        if (d > slack && b->own_time)
            return FL_ORDER_AFTER;
    }
    if (a->file == b->file)
        return by_line(a, b);
    return FL_ORDER_UNKNOWN;
}
