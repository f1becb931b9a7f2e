/*
 * Events: all hits of one rule in one attempt of the job.
 *
 * A cascade prints the same message from thousands of ranks. Counted are all of them, kept is one
 * hit a distinct (rank, host, GPU), and the text only of the first few: enough to say who, when and
 * what, in memory that a hostile log cannot grow.
 *
 * Whom a hit accuses is said by the rule: the printer or the place in its groups (`self`), the
 * other side (`peer`), or nobody. When it began is the line's time less the wait that the line
 * tells of.
 */
#include "diagnose/job.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"

static fl_str group(const struct fl_caps *c, const char *name)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->cap[i].text.p && c->cap[i].name && strcmp(c->cap[i].name, name) == 0)
            return c->cap[i].text;
    return (fl_str){NULL, 0};
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool group_number(const struct fl_caps *c, const char *name, uint64_t max, uint64_t *out)
{
    fl_str s = group(c, name);

    return s.p && fl_str_u64(s, max, out) > 0;
}

/* The rule's sentence with {groups} filled in; a group that took no part becomes "?". */
static const char *expand(struct fl_job *j, const char *summary, const struct fl_caps *caps)
{
    fl_str s = fl_str_c(summary);
    fl_buf b;
    const char *z;

    fl_buf_init(&b, 2000);
    while (s.n) {
        ptrdiff_t open = fl_str_find_c(s, '{'), close;
        fl_str rest;
        char name[32];
        fl_buf_add(&b, fl_str_sub(s, 0, open < 0 ? s.n : (size_t)open));
        if (open < 0)
            break;
        rest = fl_str_from(s, (size_t)open + 1);
        close = fl_str_find_c(rest, '}');
        if (close < 0 || (size_t)close >= sizeof(name)) {
            fl_buf_addc(&b, '{');
            s = rest;
            continue;
        }
        memcpy(name, rest.p, (size_t)close);
        name[close] = 0;
        s = fl_str_from(rest, (size_t)close + 1);
        if (group(caps, name).p)
            fl_text_escape_buf(fl_str_sub(fl_str_trim(group(caps, name)), 0, 300), &b);
        else if (b.n > 1 && b.p[b.n - 1] == '(' && s.n && s.p[0] == ')')
            fl_buf_cut(&b, b.n - 2), s = fl_str_from(s, 1); /* " (...)" goes with its content */
        else
            fl_buf_addc(&b, '?');
    }
    z = b.bad ? summary : fl_arena_z(&j->arena, fl_buf_str(&b));
    fl_buf_dispose(&b);
    return z;
}

static fl_str host_group(const struct fl_caps *c)
{
    static const char *const names[] = {"host", "node", "pod"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (group(c, names[i]).n)
            return group(c, names[i]);
    return FL_S("");
}

static void accuse_self(struct fl_job *j, const struct fl_caps *c, const struct fl_mark *m,
                        char gpu_text[FL_GPU_TEXT], struct fl_hit *h)
{
    fl_str host = host_group(c), gpu = group(c, "gpu");
    uint64_t v;

    h->rank = group_number(c, "rank", FL_MAX_RANKS, &v) ? (int32_t)v : m->rank;
    h->host = host.n ? fl_places_host(&j->places, &j->arena, host) : m->host;
    if (host.n && h->host != m->host && !group(c, "rank").p && !group(c, "local_rank").p)
        h->rank = h->mark.rank = h->mark.local_rank = -1; /* another's line */
    if (gpu.n) {
        h->gpu = fl_gpu_normal(gpu, gpu_text);
        if (gpu.n <= 3 && fl_str_to_u64(gpu, &v))
            h->gpu_index = (int32_t)v, h->gpu = FL_S("");
    }
}

static void accuse(struct fl_job *j, const struct fl_rule *r, const struct fl_caps *c,
                   const struct fl_mark *m, char gpu[FL_GPU_TEXT], struct fl_hit *h)
{
    fl_str host;
    uint64_t v;

    h->rank = h->host = h->gpu_index = -1;
    h->gpu = FL_S("");
    h->self = r->blame == FL_BLAME_SELF;
    if (h->self) {
        accuse_self(j, c, m, gpu, h);
    } else if (r->blame == FL_BLAME_PEER) {
        host = group(c, "peer_host");
        if (host.n)
            h->host = fl_places_host(&j->places, &j->arena, host);
        if (group_number(c, "peer_rank", FL_MAX_RANKS, &v))
            h->rank = (int32_t)v;
    }
}

/* A launcher quotes the command that failed, with "--local_rank=6" in it; -1 when there is none. */
static int32_t local_rank_in(fl_str line)
{
    ptrdiff_t at = fl_str_find(line, FL_S("--local_rank="));
    uint64_t v;

    if (at < 0)
        at = fl_str_find(line, FL_S("--local-rank="));
    return at >= 0 && fl_str_u64(fl_str_from(line, (size_t)at + 13), 4096, &v) ? (int32_t)v : -1;
}

/* "pid=4711" in a kernel's line, -1 when there is none. */
static int64_t pid_in(fl_str line)
{
    ptrdiff_t at = fl_str_find(line, FL_S("pid="));
    uint64_t v;

    return at >= 0 && fl_str_u64(fl_str_from(line, (size_t)at + 4), INT64_MAX, &v) ? (int64_t)v
                                                                                   : -1;
}

/* The time that a line tells in its middle, as tables of clouds do: in UTC, as containers' logs. */
static void time_said(fl_str s, struct fl_hit *h)
{
    struct fl_time t;

    if (!fl_time_parse(s, &t) || t.kind != FL_TIME_WALL)
        return;
    h->mark.t = h->begin = t.us;
    h->mark.clock = FL_CLOCK_LOCAL;
    h->mark.own_time = true;
    h->mark.zoned = t.zoned;
    h->mark.zone_min = 0;
}

/* h->gpu may point into `gpu`. */
static void fill_hit(struct fl_job *j, const struct fl_rule *r, const struct fl_caps *c,
                     const struct fl_mark *m, uint32_t traceback, fl_str line,
                     char gpu[FL_GPU_TEXT], struct fl_hit *h)
{
    fl_str code = group(c, "exit_code");
    uint64_t v;
    double sec;

    *h = (struct fl_hit){.mark = *m,
                         .begin = m->own_time ? m->t : FL_T_NONE,
                         .traceback = traceback,
                         .exit_code = INT32_MIN};
    if (h->mark.local_rank < 0 && group_number(c, "local_rank", 4096, &v))
        h->mark.local_rank = (int32_t)v;
    if (h->mark.task < 0 && group_number(c, "task", FL_MAX_RANKS, &v))
        h->mark.task = (int32_t)v;
    if (h->mark.task > j->places.max_task)
        j->places.max_task = h->mark.task;
    if (group_number(c, "pid", INT64_MAX, &v))
        h->mark.pid = (int64_t)v;
    h->waited = group(c, "ms").p || group(c, "seconds").p;
    accuse(j, r, c, m, gpu, h);
    if (h->mark.local_rank < 0 && h->mark.rank < 0)
        h->mark.local_rank = local_rank_in(line);
    if (traceback && h->mark.rank < 0 && j->tracebacks[traceback - 1].process >= 0)
        h->mark.local_rank = j->tracebacks[traceback - 1].process;
    if (h->mark.pid < 0 && m->origin == FL_FROM_KERNEL)
        h->mark.pid = pid_in(line);
    if (group(c, "time").p)
        time_said(group(c, "time"), h);
    else if (h->begin != FL_T_NONE) {
        if (group_number(c, "ms", INT64_MAX / 2000, &v))
            h->begin = m->t - (int64_t)v * 1000;
        else if (group(c, "seconds").p && fl_str_f64(group(c, "seconds"), &sec) && sec > 0 &&
                 sec < 1e9)
            h->begin = m->t - (int64_t)(sec * 1e6);
    }
    if (code.n) {
        bool minus = code.p[0] == '-';
        if (fl_str_u64(fl_str_from(code, minus), 1000000, &v))
            h->exit_code = minus ? -(int32_t)v : (int32_t)v;
    }
}

/* *out is the event, or NULL when it is new and there are too many. 0 or FL_ENOMEM. */
static int event_of(struct fl_job *j, const struct fl_rule *r, uint16_t attempt,
                    struct fl_event **out)
{
    struct {
        uint32_t rule, attempt;
    } key = {(uint32_t)(r - j->rules->rules), attempt};
    fl_str k = fl_str_n((const char *)&key, sizeof(key));
    uint32_t at;
    struct fl_event *e;

    *out = NULL;
    if (fl_map_get(&j->event_of, k, &at)) {
        *out = j->events[at];
        return FL_OK;
    }
    if (j->nevents >= FL_MAX_EVENTS)
        return FL_OK;
    e = fl_arena_alloc(&j->arena, sizeof(*e));
    if (!e || fl_grow((void **)&j->events, &j->events_cap, j->nevents + 1, sizeof(*j->events)) ||
        fl_map_set(&j->event_of, k, (uint32_t)j->nevents))
        return FL_ENOMEM;
    e->number = (uint32_t)j->nevents;
    e->rule = r;
    e->cause = r->cause;
    e->attempt = attempt;
    j->events[j->nevents++] = e;
    *out = e;
    return FL_OK;
}

/* At most `most` bytes of the line: a longer one is cut around what matched, with marks. */
static const char *keep_text(struct fl_job *j, fl_str line, const struct fl_caps *c, size_t most,
                             struct fl_hit *h)
{
    size_t at, from;

    at = c->whole.p >= line.p && c->whole.p <= line.p + line.n ? (size_t)(c->whole.p - line.p) : 0;
    h->match_at = (uint32_t)at;
    h->match_len = (uint32_t)c->whole.n;
    if (line.n <= most)
        return fl_arena_z(&j->arena, line);
    from = at > most / 4 ? at - most / 4 : 0;
    h->match_at = (uint32_t)(at - from + (from ? 5 : 0));
    if (h->match_len > most / 2)
        h->match_len = (uint32_t)(most / 2);
    return fl_arena_f(&j->arena, "%s%.*s%s", from ? "[...]" : "",
                      FL_FMT(fl_str_sub(line, from, most - 10)),
                      from + most - 10 < line.n ? "[...]" : "");
}

static int add_hit(struct fl_job *j, struct fl_event *e, const struct fl_hit *h, fl_str line,
                   const struct fl_caps *caps)
{
    struct {
        uint32_t event;
        int32_t rank, host, gpu, by_rank, by_host;
        uint64_t gpu_name;
    } key = {e->number,
             h->rank,
             h->host,
             h->gpu_index,
             h->mark.rank >= 0 ? h->mark.rank : h->mark.task,
             h->self ? -1 : h->mark.host,
             h->gpu.n ? fl_hash64(h->gpu.p, h->gpu.n, 2) : 0};
    fl_str k = fl_str_n((const char *)&key, sizeof(key));
    bool full = j->text_bytes >= FL_MAX_ALL_TEXT, added = false;
    uint32_t at;
    struct fl_hit *slot;

    /* Not through the map, which would grow with each line of a log that names ever new places. */
    if (e->nhits >= FL_MAX_EVENT_HITS || j->nhits >= FL_MAX_HITS) {
        if (fl_map_get(&j->hit_of, k, &at) && at < e->nhits)
            e->hits[at].latest = h->mark;
        return FL_OK;
    }
    if (fl_map_intern(&j->hit_of, k, (uint32_t)e->nhits, &at, &added))
        return FL_ENOMEM;
    if (!added && at < e->nhits)
        e->hits[at].latest = h->mark;
    if (!added && (e->texts >= 4 || full))
        return FL_OK;
    if (fl_grow((void **)&e->hits, &e->cap, e->nhits + 1, sizeof(*e->hits)))
        return FL_ENOMEM;
    slot = &e->hits[e->nhits++];
    *slot = *h;
    slot->latest = h->mark;
    slot->gpu = h->gpu.n ? fl_arena_str(&j->arena, h->gpu) : FL_S("");
    j->nhits++;
    if (e->texts < (full ? 1 : FL_MAX_TEXTS)) {
        slot->text = keep_text(j, line, caps, full ? FL_SHORT_TEXT : FL_MAX_TEXT, slot);
        j->text_bytes += line.n < FL_MAX_TEXT ? line.n : FL_MAX_TEXT;
        e->texts++;
    }
    return FL_OK;
}

/* A line may name several ranks: "tasks 3,5-6", "ranks [1, 4]". Up to four are hits of their own; a
 * longer list accuses nobody in particular. */
static int add_hits(struct fl_job *j, struct fl_event *e, struct fl_hit *h, fl_str line,
                    const struct fl_caps *caps)
{
    fl_str list = group(caps, "ranks");
    bool tasks = h->mark.origin == FL_FROM_SCHEDULER || h->mark.origin == FL_FROM_LAUNCHER;
    uint64_t v[5], n = 0;

    while (list.n && n < 5) {
        size_t used = fl_str_u64(list, FL_MAX_RANKS, &v[n]);
        uint64_t to;
        if (!used) { /* no digit, or a number that is no rank: not its last digits either */
            while (list.n > 1 && digit(list.p[0]) && digit(list.p[1]))
                list = fl_str_from(list, 1);
            list = fl_str_from(list, 1);
            continue;
        }
        list = fl_str_from(list, used);
        n++;
        if (list.n > 1 && list.p[0] == '-' && fl_str_u64(fl_str_from(list, 1), FL_MAX_RANKS, &to)) {
            if (tasks && (int32_t)to > j->places.max_task)
                j->places.max_task = (int32_t)to;
            n = 5; /* a range */
        }
    }
    if (n == 0 || n > 4 || h->rank >= 0)
        return add_hit(j, e, h, line, caps);
    for (uint64_t i = 0; i < n; i++) {
        int r;
        if (tasks)
            h->mark.task = (int32_t)v[i];
        else
            h->rank = (int32_t)v[i];
        if (tasks && h->mark.task > j->places.max_task)
            j->places.max_task = h->mark.task;
        r = add_hit(j, e, h, line, caps);
        if (r)
            return r;
    }
    return FL_OK;
}

void fl_event_add(struct fl_job *j, const struct fl_rule *r, fl_str line,
                  const struct fl_caps *caps, const struct fl_mark *m, uint32_t traceback)
{
    char gpu[FL_GPU_TEXT];
    struct fl_event *e;
    struct fl_hit h;

    if (event_of(j, r, m->attempt, &e)) {
        j->failed = FL_ENOMEM;
        return;
    }
    if (!e)
        return;
    fill_hit(j, r, caps, m, traceback, line, gpu, &h);
    if (add_hits(j, e, &h, line, caps))
        j->failed = FL_ENOMEM;
    if (!e->count++)
        e->summary = expand(j, r->summary ? r->summary : j->rules->causes[r->cause].title, caps);
    e->last = *m;
}

void fl_events_free(struct fl_job *j)
{
    for (size_t i = 0; i < j->nevents; i++)
        fl_free(j->events[i]->hits);
    fl_free(j->events);
    j->events = NULL;
    j->nevents = j->events_cap = 0;
}
