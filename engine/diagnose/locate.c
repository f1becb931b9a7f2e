/*
 * Whose fault: the rank, host and GPU to name, or nobody.
 *
 * The winning cause's hits accuse places. When they accuse one, or few of many, these are named.
 * When every rank says the same, nobody is: a bad import fails on all ranks, and to cordon a node
 * for it would be wrong. In between stands the first to fail: a hit clearly before the others (in
 * time, or by the driver's own account) names its place alone.
 *
 * What a rank says of itself is completed from the maps of place.c: its host, its card. A card is
 * named only for causes that belong to a card.
 */
#include "diagnose/arbitrate.h"

#include "diagnose/timeline.h"

#define US 1000000LL
#define FEW 4

struct place {
    int32_t rank, host, gpu_index;
    fl_str gpu;
};

struct places {
    struct place v[64];
    size_t n, all; /* kept; distinct in all */
};

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* The one host of the job that the line names: by a name that is known from elsewhere, or behind
 * the word "node", as schedulers write it. */
static int32_t host_in_text(const struct fl_job *j, fl_str s)
{
    int32_t found = -1, behind = -1;
    bool node = false;

    for (size_t i = 0, n; i < s.n; i += n + 1) {
        fl_str word;
        uint32_t at;
        for (n = 0; i + n < s.n && name_char(s.p[i + n]); n++)
            ;
        word = fl_str_sub(s, i, n);
        while (word.n && (word.p[word.n - 1] == '.' || word.p[word.n - 1] == '-'))
            word.n--;
        if (word.n > 2 && fl_map_get(&j->places.host_of, word, &at)) {
            int32_t h = fl_places_real_host(&j->places, (int32_t)at);
            if (found >= 0 && h >= 0 && h != found && j->places.hosts[found].on != h + 1) {
                if (j->places.hosts[h].on != found + 1)
                    return -1;
                found = h; /* the pod, not the machine that it is on */
            } else if (found < 0) {
                found = h;
            }
            if (node)
                behind = h;
        }
        node = fl_str_ieq(word, FL_S("node")) || fl_str_ieq(word, FL_S("nodes"));
    }
    return behind >= 0 ? behind : found;
}

static struct place place_of(const struct fl_job *j, const struct fl_hit *h)
{
    struct place p = {h->rank, fl_places_real_host(&j->places, h->host), h->gpu_index, h->gpu};
    bool self = h->self;
    struct fl_mark m = FL_MARK_NOWHERE;

    if (p.rank < 0 && self)
        p.rank = fl_places_rank_of(j, &h->mark);
    if (p.host < 0 && p.rank >= 0) {
        m.rank = p.rank;
        m.file = h->mark.file;
        m.attempt = h->mark.attempt;
        m.seq = h->mark.seq;
        p.host = fl_places_host_of(j, &m);
    }
    if (p.host < 0 && h->self)
        p.host = fl_places_host_of(j, &h->mark);
    if (p.host < 0 && p.rank < 0 && h->self && h->text)
        p.host = host_in_text(j, fl_str_c(h->text));
    if (p.host < 0 && (h->self || p.gpu.n))
        p.host = fl_places_only_host(&j->places);
    if (p.rank < 0 && p.gpu.n)
        p.rank = fl_places_rank_by_gpu(&j->places, p.host, p.gpu);
    if (p.rank < 0 && h->mark.origin == FL_FROM_KERNEL)
        p.rank = fl_places_rank_by_pid(&j->places, p.host, h->mark.pid);
    if (p.gpu_index < 0)
        p.gpu_index = fl_places_gpu_index(&j->places, p.host, p.gpu);
    return p;
}

static bool same_place(const struct place *a, const struct place *b)
{
    return a->rank == b->rank && a->host == b->host && a->gpu_index == b->gpu_index &&
           fl_str_eq(a->gpu, b->gpu);
}

static void add_place(struct places *ps, struct place p)
{
    if (p.rank < 0 && p.host < 0 && p.gpu_index < 0 && !p.gpu.n)
        return;
    for (size_t i = 0; i < ps->n; i++)
        if (same_place(&ps->v[i], &p))
            return;
    ps->all++;
    if (ps->n < sizeof(ps->v) / sizeof(*ps->v))
        ps->v[ps->n++] = p;
}

static bool timed_alike(const struct fl_hit *a, const struct fl_hit *b)
{
    return a->begin != FL_T_NONE && b->begin != FL_T_NONE && a->mark.clock == b->mark.clock &&
           (a->mark.clock != FL_CLOCK_BOOT || a->mark.file == b->mark.file);
}

static bool earlier(const struct fl_hit *a, const struct fl_hit *b)
{
    if (a->mark.file == b->mark.file && (!timed_alike(a, b) || a->begin == b->begin))
        return a->mark.line < b->mark.line;
    return timed_alike(a, b) && a->begin < b->begin;
}

/* `b` began later than `a` beyond doubt: by its time, or by its line where one program writes the
 * file in order (a kernel), or where so few say it that a chance order is unlikely. */
static bool clearly_later(const struct fl_job *j, const struct fl_hit *a, const struct fl_hit *b,
                          bool few)
{
    bool same_file = a->mark.file == b->mark.file && b->mark.line > a->mark.line;

    if (same_file && (few || j->files[a->mark.file].kernel))
        return true;
    return timed_alike(a, b) && b->begin > a->begin + US / 5;
}

/* An earlier event of the same kind that training got over is not this failure's. */
static bool of_this_failure(const struct fl_job *j, const struct fl_event *e,
                            const struct fl_hit *h)
{
    return e->survived || !fl_survived_at(j, &h->mark) || fl_survived_at(j, &e->last);
}

/* A kernel's line that names a card or stands in one host's log: where one is, it says where the
 * fault is, whatever the ranks print of it. */
static bool by_kernel(const struct fl_job *j, const struct fl_hit *h)
{
    return h->mark.origin == FL_FROM_KERNEL &&
           (h->gpu.n > 0 || fl_places_real_host(&j->places, h->host) >= 0);
}

/* The hit that is clearly first among all of the cause's, or NULL. */
static const struct fl_hit *first_hit(const struct fl_job *j, const struct fl_candidate_cause *c,
                                      size_t places, bool kernel)
{
    const struct fl_hit *first = NULL;
    bool few = places <= 3 && places * 4 <= j->places.nranks;

    for (size_t e = 0; e < c->nevents; e++) {
        if (c->events[e]->rule->role != c->best->rule->role)
            continue;
        for (size_t i = 0; i < c->events[e]->nhits; i++)
            if ((!kernel || by_kernel(j, &c->events[e]->hits[i])) &&
                of_this_failure(j, c->events[e], &c->events[e]->hits[i]) &&
                (!first || earlier(&c->events[e]->hits[i], first)))
                first = &c->events[e]->hits[i];
    }
    for (size_t e = 0; e < c->nevents && first; e++) {
        if (c->events[e]->rule->role != c->best->rule->role)
            continue;
        for (size_t i = 0; i < c->events[e]->nhits; i++) {
            const struct fl_hit *h = &c->events[e]->hits[i];
            struct place p = place_of(j, h), q = place_of(j, first);
            bool kin = p.host == q.host && (p.rank < 0 || q.rank < 0 || p.rank == q.rank) &&
                       (!p.gpu.n || !q.gpu.n);
            if ((kernel && !by_kernel(j, h)) || !of_this_failure(j, c->events[e], h))
                continue;
            if (h != first && !same_place(&p, &q) && !kin && !clearly_later(j, first, h, few))
                return NULL;
        }
    }
    return first;
}

static void put_number(int32_t *v, size_t *n, int32_t x)
{
    if (x < 0)
        return;
    for (size_t i = 0; i < *n; i++)
        if (v[i] == x)
            return;
    if (*n < FL_PLACES)
        v[(*n)++] = x;
}

/* What a cause's place is: whatever printed (a pod, say), the machine below it, a card in that. */
enum named { PRINTER, MACHINE, CARD };

static enum named named_for(const char *cause)
{
    static const char *const machines[] = {"net.ib_link", "net.dns",   "node.failure",
                                           "node.memory", "node.disk", "node.pcie"};

    if (strncmp(cause, "gpu.", 4) == 0 || strcmp(cause, "fw.cuda_oom") == 0 ||
        strcmp(cause, "fw.hang") == 0)
        return CARD;
    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
        if (strcmp(cause, machines[i]) == 0)
            return MACHINE;
    return PRINTER;
}

/* The card that a rank runs on, as far as launchers told. */
static void put_index(const struct fl_job *j, int32_t rank, struct fl_location *out)
{
    struct fl_rank *r =
        rank >= 0 ? fl_places_rank((struct fl_places *)(uintptr_t)&j->places, rank, false) : NULL;

    if (r && r->gpu_index >= 0)
        put_number(out->gpu_indices, &out->ngpu_indices, r->gpu_index);
    else if (r && r->local_rank >= 0)
        put_number(out->gpu_indices, &out->ngpu_indices, r->local_rank);
    else if (rank >= 0 && j->places.per_node > 1)
        put_number(out->gpu_indices, &out->ngpu_indices, rank % j->places.per_node);
}

static void put_place(const struct fl_job *j, const struct place *p, enum named named,
                      struct fl_location *out)
{
    struct fl_rank *r;

    put_number(out->ranks, &out->nranks, p->rank);
    put_number(out->hosts, &out->nhosts,
               named >= MACHINE ? fl_places_machine(&j->places, p->host) : p->host);
    if (p->host >= 0 && j->places.hosts[p->host].on) /* the pod, and where it is */
        put_number(out->hosts, &out->nhosts, fl_places_machine(&j->places, p->host));
    if (named < CARD) {
        put_index(j, p->rank, out);
        return;
    }
    if (p->gpu.n) {
        size_t i = 0;
        while (i < out->ngpus && !fl_str_eq(out->gpus[i], p->gpu))
            i++;
        if (i == out->ngpus && i < FL_PLACES)
            out->gpus[out->ngpus++] = p->gpu;
    }
    r = p->rank >= 0 ? fl_places_rank((struct fl_places *)(uintptr_t)&j->places, p->rank, false)
                     : NULL;
    if (p->gpu_index >= 0)
        put_number(out->gpu_indices, &out->ngpu_indices, p->gpu_index);
    else
        put_index(j, p->rank, out);
    if (!p->gpu.n && r && r->gpu.n && out->ngpus < FL_PLACES)
        out->gpus[out->ngpus++] = r->gpu;
}

static int32_t host_of_rank(const struct fl_job *j, int32_t rank)
{
    struct fl_mark m = FL_MARK_NOWHERE;

    m.rank = rank;
    return fl_places_host_of(j, &m);
}

/* The missing ranks; of several, those on the host where work was seen to go on. */
static void suspects(struct fl_job *j, const struct fl_verdict *v, struct fl_location *out)
{
    const struct fl_timeline *t = j->timeline;
    const struct fl_mark *busy = &t->sign[FL_SIGN_BUSY];
    int32_t at = busy->line && busy->seq > t->last_progress.seq ? fl_places_host_of(j, busy) : -1;
    size_t there = 0;

    for (size_t i = 0; i < v->waits.nsuspects && i < FEW; i++)
        there += at >= 0 && host_of_rank(j, v->waits.suspects[i]) == at;
    for (size_t i = 0; i < v->waits.nsuspects && i < FEW; i++) {
        int32_t rank = v->waits.suspects[i], host = host_of_rank(j, rank);
        if (there && host != at)
            continue;
        put_number(out->ranks, &out->nranks, rank);
        put_number(out->hosts, &out->nhosts, host);
        put_index(j, rank, out);
    }
}

/* Causes that a missing rank can explain, so that the watchdog arithmetic may name the place. */
static bool missing_rank_cause(const char *id)
{
    return !strcmp(id, "fw.late_rank") || !strcmp(id, "net.nccl_timeout") ||
           !strcmp(id, "fw.hang") || !strcmp(id, "fw.desync");
}

/* An address beside names is most likely one of them. */
static void drop_addresses(const struct fl_job *j, struct places *ps)
{
    size_t to = 0, named = 0;

    for (size_t i = 0; i < ps->n; i++)
        named += ps->v[i].host >= 0 && !j->places.hosts[ps->v[i].host].address;
    if (!named || named == ps->n)
        return;
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].host < 0 || !j->places.hosts[ps->v[i].host].address)
            ps->v[to++] = ps->v[i];
    ps->all -= ps->n - to;
    ps->n = to;
}

struct spread {
    int32_t ranks[FL_PLACES], hosts[FL_PLACES];
    size_t nranks, nhosts;
    bool many, many_hosts; /* more than fit */
};

static struct spread spread_of(const struct places *ps)
{
    struct spread s = {.many = ps->all > ps->n};

    for (size_t i = 0; i < ps->n; i++) {
        size_t r = s.nranks, h = s.nhosts;
        put_number(s.ranks, &s.nranks, ps->v[i].rank);
        put_number(s.hosts, &s.nhosts, ps->v[i].host);
        s.many |= r == FL_PLACES || h == FL_PLACES;
        s.many_hosts |= h == FL_PLACES;
    }
    return s;
}

/* What other lines of the cause add to the first place: its card, its rank, its host. */
static void complete(const struct places *ps, struct place *p)
{
    int32_t rank = -1;
    size_t ranks = 0;

    for (size_t i = 0; i < ps->n; i++) {
        const struct place *q = &ps->v[i];
        bool same_rank = p->rank >= 0 && q->rank == p->rank;
        bool same_host = p->host >= 0 && q->host == p->host;
        if (!same_rank && !same_host)
            continue;
        if (same_rank && p->host < 0)
            p->host = q->host;
        if ((same_rank || q->rank < 0 || p->rank < 0) && !p->gpu.n && q->gpu.n) {
            p->gpu = q->gpu;
            if (p->gpu_index < 0)
                p->gpu_index = q->gpu_index;
        }
        if (q->rank >= 0 && q->rank != rank) {
            rank = q->rank;
            ranks++;
        }
    }
    if (p->rank < 0 && ranks == 1)
        p->rank = rank;
}

/* The process that any kernel line names beside this card (an Xid 45 at its teardown, say). */
static void rank_of_card(const struct fl_job *j, struct place *p)
{
    for (size_t e = 0; e < j->nevents && p->rank < 0 && p->gpu.n; e++)
        for (size_t i = 0; i < j->events[e]->nhits && p->rank < 0; i++) {
            const struct fl_hit *h = &j->events[e]->hits[i];
            if (h->mark.pid > 0 && fl_str_eq(h->gpu, p->gpu))
                p->rank = fl_places_rank_by_pid(&j->places, p->host, h->mark.pid);
        }
}

/* Everybody says it: no place, unless all are on one host of several. */
static void one_host(const struct fl_job *j, const struct spread *s, struct fl_location *out)
{
    if (s->nhosts == 1 && !s->many_hosts && j->places.nhosts > 1 && s->nranks > 0) {
        out->hosts[0] = s->hosts[0];
        out->nhosts = 1;
    }
}

static void gather(const struct fl_job *j, const struct fl_candidate_cause *c, bool kernel,
                   struct places *ps)
{
    for (size_t e = 0; e < c->nevents; e++) {
        const struct fl_event *ev = c->events[e];
        bool peer = ev->rule->role == c->best->rule->role || ps->n == 0;
        if (!peer || ev->survived || ev->stale ||
            (ps->n && ev->rule->strength + 25 < c->best->rule->strength))
            continue;
        for (size_t i = 0; i < ev->nhits; i++)
            if ((!kernel || by_kernel(j, &ev->hits[i])) && of_this_failure(j, ev, &ev->hits[i]))
                add_place(ps, place_of(j, &ev->hits[i]));
    }
}

/* The places whose first line training got over, but not their last. */
static void gather_repeated(const struct fl_job *j, const struct fl_candidate_cause *c,
                            struct places *ps)
{
    for (size_t e = 0; e < c->nevents; e++) {
        const struct fl_event *ev = c->events[e];
        for (size_t i = 0; ev->rule == c->best->rule && i < ev->nhits; i++)
            if (!fl_survived_at(j, &ev->hits[i].latest))
                add_place(ps, place_of(j, &ev->hits[i]));
    }
}

/* Where the deciding lines accuse nobody, those that confirm them may. */
static void gather_confirming(const struct fl_job *j, const struct fl_candidate_cause *c,
                              struct places *ps)
{
    for (size_t e = 0; e < j->nevents; e++) {
        const struct fl_event *ev = j->events[e];
        if (ev->rule->role != FL_ROLE_CONFIRM || ev->cause != c->cause || ev->survived || ev->stale)
            continue;
        for (size_t i = 0; i < ev->nhits; i++)
            add_place(ps, place_of(j, &ev->hits[i]));
    }
}

/* The one rank that another error of the same failure names on this host. */
static void rank_of_follower(const struct fl_job *j, const struct fl_verdict *v, struct place *p)
{
    int32_t found = -1;

    if (p->rank >= 0 || p->host < 0)
        return;
    for (size_t i = 0; i < v->nranking; i++) {
        const struct fl_candidate_cause *c = v->ranking[i];
        if (c == v->winner || !c->best || c->by != v->winner || c->best->nhits > 16)
            continue;
        for (size_t h = 0; h < c->best->nhits; h++) {
            struct place q = place_of(j, &c->best->hits[h]);
            if (q.host != p->host || q.rank < 0 || q.rank == found)
                continue;
            if (found >= 0)
                return;
            found = q.rank;
        }
    }
    p->rank = found;
}

/* The one rank that ended by itself while the launcher ended the others. */
static void rank_of_launcher(const struct fl_job *j, struct place *p)
{
    int32_t found = -1;
    size_t told = 0;

    for (size_t i = 0; i < j->places.nranks; i++) {
        const struct fl_rank *r = &j->places.ranks[i];
        if (!r->exited)
            continue;
        told++;
        if (r->exit_code == 0 || r->exit_code == -15 || r->exit_code == 143 || r->exit_code == -9 ||
            r->exit_code == 137)
            continue;
        if (found >= 0)
            return;
        found = r->rank;
    }
    if (p->rank < 0 && found >= 0 && told)
        p->rank = found;
}

/* One end of a broken connection, or one side of a disagreement: the accused, or who printed it. */
static int32_t end_of(const struct fl_job *j, const struct fl_hit *h, bool rank, bool accused)
{
    if (accused)
        return rank ? place_of(j, h).rank : place_of(j, h).host;
    return rank ? fl_places_rank_of(j, &h->mark) : fl_places_host_of(j, &h->mark);
}

/* The one host (or rank) at an end of nearly all of them; -1 when there is none, and when it is
 * always the same two: either may be at fault. */
static int32_t common_end(const struct fl_job *j, const struct fl_event *e, bool rank)
{
    if (e->rule->blame != FL_BLAME_PEER || e->nhits < 4)
        return -1;
    for (size_t i = 0; i < 6; i++) {
        int32_t end = end_of(j, &e->hits[i / 2], rank, i % 2 == 0), other = -1;
        size_t with = 0;
        bool pair = true;
        for (size_t k = 0; k < e->nhits && end >= 0; k++) {
            int32_t to = end_of(j, &e->hits[k], rank, true);
            int32_t by = end_of(j, &e->hits[k], rank, false), far = to == end ? by : to;
            with += to == end || by == end;
            pair &= other < 0 || far == other;
            other = far;
        }
        if (end >= 0 && !pair && with * 10 >= e->nhits * 9)
            return end;
    }
    return -1;
}

/* The one rank on this host that printed any of them. */
static int32_t printer_on(const struct fl_job *j, const struct fl_event *e, int32_t host)
{
    int32_t found = -1;

    for (size_t i = 0; i < e->nhits; i++) {
        int32_t rank = fl_places_rank_of(j, &e->hits[i].mark);
        if (rank < 0 || fl_places_host_of(j, &e->hits[i].mark) != host || rank == found)
            continue;
        if (found >= 0)
            return -1;
        found = rank;
    }
    return found;
}

/* What other lines add to the place: its card, its rank. */
static void fill_in(const struct fl_job *j, const struct fl_verdict *v, const struct places *all,
                    bool kernel, struct place *p)
{
    complete(all, p);
    rank_of_card(j, p);
    rank_of_follower(j, v, p);
    if (!kernel)
        rank_of_launcher(j, p);
}

static struct place common_place(const struct fl_job *j, const struct fl_event *e)
{
    struct place p = {common_end(j, e, true), common_end(j, e, false), -1, {NULL, 0}};

    if (p.rank >= 0)
        p.host = host_of_rank(j, p.rank);
    else if (p.host >= 0)
        p.rank = printer_on(j, e, p.host);
    return p;
}

static void name_places(const struct fl_job *j, const struct fl_verdict *v,
                        const struct fl_candidate_cause *c, struct fl_location *out)
{
    enum named named = named_for(j->rules->causes[c->cause].id);
    const struct fl_hit *first;
    struct places ps = {.n = 0}, all = {.n = 0};
    struct place p = {-1, -1, -1, {NULL, 0}};
    struct spread s;
    bool kernel;

    gather(j, c, false, &all);
    if (!all.n)
        gather_repeated(j, c, &all);
    if (!all.n)
        gather_confirming(j, c, &all);
    drop_addresses(j, &all);
    gather(j, c, true, &ps);
    kernel = ps.n > 0;
    if (!kernel)
        ps = all;
    if (ps.n == 0) {
        rank_of_launcher(j, &p);
        if (p.rank >= 0)
            put_place(j, &p, named, out);
        return;
    }
    if (!kernel) {
        p = common_place(j, c->best);
        if (p.rank >= 0 || p.host >= 0) {
            put_place(j, &p, named, out);
            return;
        }
    }
    s = spread_of(&ps);
    if (!s.many && s.nranks <= 1 && s.nhosts <= 1) {
        p = ps.v[0];
        fill_in(j, v, &all, kernel, &p);
        put_place(j, &p, named, out);
        for (size_t i = 1; i < ps.n && ps.n <= 2; i++)
            put_place(j, &ps.v[i], named, out);
    } else if ((first = first_hit(j, c, ps.all, kernel))) {
        p = place_of(j, first);
        fill_in(j, v, &all, kernel, &p);
        put_place(j, &p, named, out);
    } else if (!s.many && s.nranks <= 2 && s.nhosts <= 2 &&
               (s.nranks < j->places.nranks || s.nranks < 2)) {
        for (size_t i = 0; i < ps.n; i++)
            put_place(j, &ps.v[i], named == CARD && ps.n > 2 ? MACHINE : named, out);
    } else {
        one_host(j, &s, out);
    }
}

static void place_of_proof(const struct fl_job *j, const struct fl_point *p,
                           struct fl_location *out)
{
    put_number(out->ranks, &out->nranks, fl_places_rank_of(j, &p->at));
    put_number(out->hosts, &out->nhosts, fl_places_host_of(j, &p->at));
    put_number(out->gpu_indices, &out->ngpu_indices, p->at.local_rank);
}

void fl_locate(struct fl_job *j, const struct fl_verdict *v, struct fl_location *out)
{
    const struct fl_candidate_cause *w = v->winner;

    *out = (struct fl_location){0};
    if (v->outcome == FL_OUTCOME_HEALTHY)
        return;
    if (w && missing_rank_cause(j->rules->causes[w->cause].id) && v->waits.nsuspects &&
        v->waits.nsuspects <= FEW) {
        suspects(j, v, out);
        return;
    }
    if (w && w->finding && w->finding->located) {
        place_of_proof(j, w->finding->proof[0], out);
        return;
    }
    if (w) {
        if (w->best)
            name_places(j, v, w, out);
        return;
    }
    /* no cause, but perhaps one rank that died */
    for (size_t i = 0; i < v->nranking && !out->nranks && !out->nhosts; i++)
        if (v->ranking[i]->best && !v->ranking[i]->best->survived && !v->ranking[i]->best->stale)
            name_places(j, v, v->ranking[i], out);
}
