/*
 * Places: hosts, ranks, GPUs, and which belongs to which.
 *
 * A line says "rank 25", or "local rank 1" and a host, or a pid, or a PCI address; an operator
 * needs the host and the card. The maps between them are learnt from what jobs print at their start
 * (NCCL communicators, launchers' tables, DeepSpeed, Lightning, nvidia-smi) and are only applied at
 * the end, since the line that explains a number may come after it.
 *
 * A host has many names: "n12", "n12.cluster.local", an address. The first label joins the first
 * two. An address stays itself unless a line gives both. The scheduler's form of a name is kept for
 * the exclude list.
 */
#include "diagnose/job.h"

#include <stdio.h>

#include "base/alloc.h"
#include "diagnose/place_parse.h"

#define TASKS_A_LINE 4096 /* of srun, that are learnt */

void fl_places_init(struct fl_places *p)
{
    *p = (struct fl_places){
        .world_size = -1, .nodes = -1, .per_node = -1, .max_task = -1, .max_rank = -1};
    fl_map_init(&p->host_of);
    fl_map_init(&p->local_of);
    fl_map_init(&p->pid_of);
    fl_map_init(&p->gpu_of);
    fl_map_init(&p->node_of);
}

void fl_places_dispose(struct fl_places *p)
{
    if (!p)
        return;
    fl_free(p->hosts);
    fl_free(p->ranks);
    fl_map_dispose(&p->host_of);
    fl_free(p->rank_at);
    fl_map_dispose(&p->local_of);
    fl_map_dispose(&p->pid_of);
    fl_map_dispose(&p->gpu_of);
    fl_map_dispose(&p->node_of);
}

static bool is_address(fl_str s)
{
    size_t dots = 0, colons = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '.')
            dots++;
        else if (c == ':')
            colons++;
        else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
                   c == '%'))
            return false;
    }
    return (dots == 3 && colons == 0) || colons >= 2;
}

static bool host_name(fl_str s)
{
    if (s.n == 0 || s.n > 253)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              c == '-' || c == '.' || c == '_' || c == ':' || c == '%'))
            return false;
    }
    return true;
}

/* NCCL writes peers as "node29<45678>" or "10.0.0.3<45678>"; torch as "[node29]:29500". */
static fl_str bare_host(fl_str s)
{
    ptrdiff_t at = fl_str_find_c(s, '<');

    if (at > 0)
        s = fl_str_sub(s, 0, (size_t)at);
    if (s.n > 2 && s.p[0] == '[') {
        at = fl_str_find_c(s, ']');
        if (at > 1)
            s = fl_str_sub(s, 1, (size_t)at - 1);
    }
    if (fl_str_starts(s, FL_S("::ffff:")))
        s = fl_str_from(s, 7);
    while (s.n && (s.p[s.n - 1] == '.' || s.p[s.n - 1] == ':'))
        s.n--;
    return s;
}

static fl_str first_label(fl_str name)
{
    ptrdiff_t dot = fl_str_find_c(name, '.');

    return dot > 0 ? fl_str_sub(name, 0, (size_t)dot) : name;
}

int32_t fl_places_host(struct fl_places *p, fl_arena *a, fl_str name)
{
    uint32_t at = 0, other;
    bool added = false;
    fl_str label;

    name = bare_host(fl_str_trim(name));
    if (!host_name(name) || fl_str_eqz(name, "localhost") || fl_str_eqz(name, "127.0.0.1") ||
        fl_str_eqz(name, "0.0.0.0") || fl_str_eqz(name, "::1"))
        return -1;
    if (p->nhosts >= FL_MAX_HOSTS) {
        p->over = true;
        return fl_map_get(&p->host_of, name, &at) ? (int32_t)at : -1;
    }
    if (fl_map_get(&p->host_of, name, &at))
        return (int32_t)at;
    if (fl_grow((void **)&p->hosts, &p->hosts_cap, p->nhosts + 1, sizeof(*p->hosts)))
        goto nomem;
    p->hosts[p->nhosts] =
        (struct fl_host){.name = fl_arena_str(a, name), .same_as = -1, .address = is_address(name)};
    if (!p->hosts[p->nhosts].name.p || fl_map_set(&p->host_of, name, (uint32_t)p->nhosts))
        goto nomem;
    label = first_label(name);
    if (!p->hosts[p->nhosts].address && label.n < name.n) {
        if (fl_map_intern(&p->host_of, label, (uint32_t)p->nhosts, &other, &added))
            p->failed = true;
        else if (!added)
            p->hosts[p->nhosts].same_as = (int32_t)other;
    }
    return (int32_t)p->nhosts++;
nomem:
    p->failed = true;
    return -1;
}

int32_t fl_places_real_host(const struct fl_places *p, int32_t host)
{
    for (int i = 0; i < 4 && host >= 0 && p->hosts[host].same_as >= 0; i++)
        host = p->hosts[host].same_as;
    return host >= 0 && p->hosts[host].no_host ? -1 : host;
}

struct fl_rank *fl_places_rank(struct fl_places *p, int32_t rank, bool add)
{
    size_t had = p->rank_at_n;

    if (rank < 0 || rank > FL_MAX_RANKS)
        return NULL;
    if ((size_t)rank < had && p->rank_at[rank])
        return &p->ranks[p->rank_at[rank] - 1];
    if (!add)
        return NULL;
    if (fl_grow((void **)&p->ranks, &p->ranks_cap, p->nranks + 1, sizeof(*p->ranks)) ||
        fl_grow((void **)&p->rank_at, &p->rank_at_n, (size_t)rank + 1, sizeof(*p->rank_at))) {
        p->failed = true;
        return NULL;
    }
    if (p->rank_at_n > had)
        memset(p->rank_at + had, 0, (p->rank_at_n - had) * sizeof(*p->rank_at));
    p->rank_at[rank] = (uint32_t)p->nranks + 1;
    p->ranks[p->nranks] = (struct fl_rank){.rank = rank,
                                           .host = -1,
                                           .local_rank = -1,
                                           .gpu_index = -1,
                                           .last = {.t = FL_T_NONE, .rank = -1}};
    if (rank > p->max_rank)
        p->max_rank = rank;
    return &p->ranks[p->nranks++];
}

/* ---- GPUs ---- */

static bool hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* [dddd:]bb:dd[.f] */
static bool pci_address(fl_str s, fl_str *domain, fl_str *bus, fl_str *device)
{
    ptrdiff_t dot = fl_str_rfind_c(s, '.');
    fl_str part[3];
    size_t n = 0;

    if (dot > 0)
        s = fl_str_sub(s, 0, (size_t)dot);
    while (s.n && n < 3)
        part[n++] = fl_str_cut(&s, ':');
    if (s.n || n < 2 || part[n - 1].n != 2 || part[n - 2].n != 2)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < part[i].n; k++)
            if (!hex(part[i].p[k]))
                return false;
    *domain = n == 3 ? part[0] : FL_S("0000");
    *bus = part[n - 2];
    *device = part[n - 1];
    return true;
}

fl_str fl_gpu_normal(fl_str gpu, char out[FL_GPU_TEXT])
{
    fl_str domain, bus, device;
    int n;

    if (!pci_address(gpu, &domain, &bus, &device)) {
        gpu = fl_str_sub(gpu, 0, FL_GPU_TEXT);
        if (gpu.n)
            memcpy(out, gpu.p, gpu.n);
        return fl_str_n(out, gpu.n);
    }
    if (domain.n > 4)
        domain = fl_str_from(domain, domain.n - 4);
    n = snprintf(out, FL_GPU_TEXT, "%.*s:%.*s:%.*s", FL_FMT(domain), FL_FMT(bus), FL_FMT(device));
    for (int i = 0; i < n; i++)
        if (out[i] >= 'A' && out[i] <= 'F')
            out[i] = (char)(out[i] + 32);
    return fl_str_n(out, (size_t)n);
}

/* The rank's card. Kept in one place for ever, however often a log changes its mind. */
static void set_gpu(struct fl_job *j, struct fl_rank *r, fl_str gpu)
{
    char text[FL_GPU_TEXT], *room = (char *)(uintptr_t)r->gpu.p;
    fl_str norm = fl_gpu_normal(gpu, text);

    if (!room)
        room = fl_arena_alloc(&j->arena, FL_GPU_TEXT + 1);
    if (!room)
        return; /* the arena remembers */
    memcpy(room, norm.p, norm.n);
    room[norm.n] = 0;
    r->gpu = fl_str_n(room, norm.n);
}

static fl_str host_key(char key[48], int32_t host, fl_str what)
{
    int n = snprintf(key, 48, "%d/%.*s", host, FL_FMT(fl_str_sub(what, 0, 30)));

    return fl_str_n(key, (size_t)n);
}

/* A log can name a new place on every line: what is over the limit is not learnt. */
static void learn(struct fl_job *j, fl_map *map, fl_str key, uint32_t value)
{
    uint32_t was;

    if (map->n >= FL_MAX_LEARNT && !fl_map_get(map, key, &was))
        j->places.over = true;
    else if (fl_map_set(map, key, value))
        j->failed = FL_ENOMEM;
}

static void learn_gpu(struct fl_job *j, int32_t host, fl_str gpu, int32_t index)
{
    char key[48], text[FL_GPU_TEXT];
    fl_str norm = fl_gpu_normal(gpu, text);

    learn(j, &j->places.gpu_of, host_key(key, host, norm), (uint32_t)index);
    learn(j, &j->places.gpu_of, host_key(key, -1, norm), (uint32_t)index);
}

int32_t fl_places_gpu_index(const struct fl_places *p, int32_t host, fl_str gpu)
{
    char key[48];
    uint32_t at;

    if (!gpu.n)
        return -1;
    if (host >= 0 && fl_map_get(&p->gpu_of, host_key(key, host, gpu), &at))
        return (int32_t)at;
    return fl_map_get(&p->gpu_of, host_key(key, -1, gpu), &at) ? (int32_t)at : -1;
}

/* ---- learning ---- */

static fl_str node_key(char key[48], const struct fl_mark *m)
{
    int n = snprintf(key, 48, "%u/%d/%d", m->file, m->node_rank, m->node_rank < 0 ? m->task : -1);

    return fl_str_n(key, (size_t)n);
}

void fl_places_node_host(struct fl_job *j, const struct fl_mark *m, int32_t host)
{
    char key[48];
    uint32_t at;
    fl_str k = node_key(key, m);

    if (host < 0 || (m->node_rank < 0 && m->task < 0))
        return;
    if (!fl_map_get(&j->places.node_of, k, &at))
        learn(j, &j->places.node_of, k, (uint32_t)host);
    else if (at != UINT32_MAX &&
             fl_places_real_host(&j->places, (int32_t)at) != fl_places_real_host(&j->places, host))
        learn(j, &j->places.node_of, k, UINT32_MAX);
}

int32_t fl_places_host_of_node(const struct fl_places *p, const struct fl_mark *m)
{
    char key[48];
    uint32_t at;

    if (!m->line || (m->node_rank < 0 && m->task < 0) ||
        !fl_map_get(&p->node_of, node_key(key, m), &at) || at == UINT32_MAX)
        return -1;
    return fl_places_real_host(p, (int32_t)at);
}

static void learn_local(struct fl_job *j, int32_t host, int64_t local, int32_t rank)
{
    char key[48], number[24];
    int n = snprintf(number, sizeof(number), "%lld", (long long)local);

    learn(j, &j->places.local_of, host_key(key, host, fl_str_n(number, (size_t)n)), (uint32_t)rank);
}

static void learn_pid(struct fl_job *j, const struct fl_mark *m, int64_t pid, int32_t rank)
{
    char key[48], number[24];
    int n = snprintf(number, sizeof(number), "%lld", (long long)pid);

    if (pid > 0)
        learn(j, &j->places.pid_of,
              host_key(key, m->host >= 0 ? m->host : -2 - (int32_t)m->file,
                       fl_str_n(number, (size_t)n)),
              (uint32_t)rank);
}

static void learn_world(struct fl_job *j, int64_t n, bool sure)
{
    if (n < 1 || n > FL_MAX_RANKS)
        return;
    if (j->places.world_size < 0 || (sure && n > j->places.world_size))
        j->places.world_size = (int32_t)n;
}

static void learn_stay(struct fl_rank *r, const struct fl_mark *m, int32_t host)
{
    struct fl_stay *last = r->nstays ? &r->stays[r->nstays - 1] : NULL;

    r->host = host;
    if (last && last->file == m->file && last->attempt == m->attempt) {
        last->host = host;
        return;
    }
    if (r->nstays == FL_STAYS) {
        memmove(r->stays, r->stays + 1, sizeof(r->stays) - sizeof(r->stays[0]));
        r->nstays--;
    }
    r->stays[r->nstays++] = (struct fl_stay){m->file, host, m->attempt};
}

/* The rank's host at the time of the mark: of its file and attempt, else of its file, else of
 * its attempt; -1 when nothing tells them apart. */
static int32_t host_of_stay(const struct fl_rank *r, const struct fl_mark *m)
{
    int32_t by_attempt = -1, by_file = -1;

    for (size_t i = 0; m->seq && i < r->nstays; i++) {
        const struct fl_stay *s = &r->stays[i];
        if (s->file == m->file && s->attempt == m->attempt)
            return s->host;
        if (s->attempt == m->attempt)
            by_attempt = s->host;
        if (s->file == m->file)
            by_file = s->host;
    }
    return by_file >= 0 ? by_file : by_attempt;
}

static void learn_rank(struct fl_job *j, const struct fl_fact *f, const struct fl_mark *m)
{
    struct fl_rank *r = fl_places_rank(&j->places, (int32_t)f->rank, true);
    int32_t host = f->host.n ? fl_places_host(&j->places, &j->arena, f->host) : m->host;

    if (!r)
        return;
    if (host >= 0)
        learn_stay(r, m, host);
    if (f->host.n && host >= 0 && f->exit_code != INT32_MIN)
        fl_places_file_host(j, m->file, host); /* an agent's table covers its own node */
    if (f->local_rank >= 0) {
        r->local_rank = (int32_t)f->local_rank;
        if (host >= 0)
            learn_local(j, host, f->local_rank, r->rank);
        learn_local(j, -2 - (int32_t)m->file, f->local_rank, r->rank);
    }
    if (f->pid > 0 || m->pid > 0)
        r->pid = f->pid > 0 ? f->pid : m->pid;
    if (f->gpu_index >= 0)
        r->gpu_index = (int32_t)f->gpu_index;
    if (f->gpu.n) {
        set_gpu(j, r, f->gpu);
        if (f->gpu_index >= 0)
            learn_gpu(j, host, f->gpu, (int32_t)f->gpu_index);
    }
    learn_pid(j, m, f->pid >= 0 ? f->pid : m->pid, r->rank);
    if (f->host.n && host >= 0 && f->exit_code != INT32_MIN)
        fl_places_node_host(j, m, host);
    if (f->exit_code != INT32_MIN) {
        r->exited = true;
        r->exit_code = f->exit_code;
    }
}

/* The scheduler's spelling is a name of its own when the host is known by a longer one. */
static void learn_scheduler_host(struct fl_job *j, fl_str name)
{
    struct fl_places *p = &j->places;
    int32_t host = fl_places_host(p, &j->arena, name);

    if (host < 0)
        return;
    if (!fl_str_eq(p->hosts[host].name, name) && p->nhosts < FL_MAX_HOSTS) {
        fl_str copy = fl_arena_str(&j->arena, name);
        if (!copy.p ||
            fl_grow((void **)&p->hosts, &p->hosts_cap, p->nhosts + 1, sizeof(*p->hosts)) ||
            fl_map_set(&p->host_of, name, (uint32_t)p->nhosts)) {
            j->failed = FL_ENOMEM;
            return;
        }
        p->hosts[p->nhosts] = (struct fl_host){.name = copy, .same_as = host};
        host = (int32_t)p->nhosts++;
    }
    p->hosts[host].scheduler = true;
}

struct learner {
    struct fl_job *j;
    const struct fl_mark *m;
};

/* `name` is another name of `host`. An address that two hosts claim (a container bridge's) names
 * none of them. */
static void learn_same(struct fl_job *j, int32_t host, fl_str name)
{
    int32_t other = host >= 0 ? fl_places_host(&j->places, &j->arena, name) : -1;
    struct fl_host *h = other >= 0 ? &j->places.hosts[other] : NULL;

    if (!h || fl_places_real_host(&j->places, other) == fl_places_real_host(&j->places, host))
        return;
    if (h->address && h->same_as >= 0)
        h->no_host = true;
    h->same_as = h->no_host ? -1 : host;
}

static void learn_pod(struct fl_job *j, int32_t machine, int32_t pod)
{
    if (machine < 0 || pod < 0 || machine == pod)
        return;
    j->places.hosts[pod].pod = true;
    j->places.hosts[pod].on = machine + 1;
}

static void learn_fact(void *ctx, const struct fl_fact *f)
{
    struct fl_job *j = ((struct learner *)ctx)->j;
    const struct fl_mark *m = ((struct learner *)ctx)->m;
    int32_t host;

    switch (f->kind) {
    case FL_FACT_RANK:
        learn_rank(j, f, m);
        break;
    case FL_FACT_WORLD:
        learn_world(j, f->n, f->sure);
        break;
    case FL_FACT_GPU:
        learn_gpu(j, m->host, f->gpu, (int32_t)f->gpu_index);
        break;
    case FL_FACT_NODES:
        j->places.nodes = (int32_t)f->n;
        break;
    case FL_FACT_SCHEDULER_HOST:
        learn_scheduler_host(j, f->host);
        break;
    case FL_FACT_HERE:
        host = fl_places_host(&j->places, &j->arena, f->host);
        if (host >= 0) {
            j->places.hosts[host].lines++;
            fl_places_file_host(j, m->file, host);
        }
        break;
    case FL_FACT_SAME_HOST:
        learn_same(j, fl_places_host(&j->places, &j->arena, f->host), f->address);
        break;
    case FL_FACT_POD:
        host = fl_places_host(&j->places, &j->arena, f->host);
        learn_pod(j, host, fl_places_host(&j->places, &j->arena, f->address));
        break;
    case FL_FACT_OWN_ADDRESS:
        learn_same(j, m->host, f->address);
        break;
    }
}

/* "srun: error: n12: tasks 8-11,14: Exited": those tasks were on n12. */
static void learn_tasks(struct fl_job *j, const struct fl_mark *m, fl_str message)
{
    fl_str list = fl_str_trim(message);
    struct fl_mark t = *m;
    unsigned left = TASKS_A_LINE;

    if (m->origin != FL_FROM_SCHEDULER || m->host < 0 || !fl_str_starts(list, FL_S("task")))
        return;
    list = fl_str_from(list, fl_str_starts(list, FL_S("tasks ")) ? 6 : 5);
    while (left) {
        uint64_t a, b;
        size_t n = fl_str_u64(list, FL_MAX_RANKS - 1, &a);
        if (!n)
            return;
        list = fl_str_from(list, n);
        b = a;
        if (list.n && list.p[0] == '-' &&
            (n = fl_str_u64(fl_str_from(list, 1), FL_MAX_RANKS - 1, &b)))
            list = fl_str_from(list, n + 1);
        for (t.node_rank = -1; a <= b && left; a++, left--) {
            t.task = (int32_t)a;
            fl_places_node_host(j, &t, m->host);
        }
        if (!list.n || list.p[0] != ',')
            return;
        list = fl_str_from(list, 1);
    }
}

void fl_places_learn(struct fl_job *j, const struct fl_mark *m, fl_str message)
{
    struct learner l = {j, m};
    size_t i = m->writer % FL_TABLES;

    if (j->tables[i].writer != m->writer + 1) {
        j->tables[i].writer = m->writer + 1;
        j->tables[i].row = (struct fl_table_row){.rank = -1, .local_rank = -1};
    }
    learn_tasks(j, m, message);
    fl_facts_parse(message, &j->tables[i].row, &j->listed, learn_fact, &l);
}

void fl_places_file_host(struct fl_job *j, uint32_t file, int32_t host)
{
    struct fl_file_state *f = &j->files[file];

    if (host == f->host)
        return;
    if (f->frame_host == -1)
        f->frame_host = host;
    else if (f->frame_host >= 0 && fl_places_real_host(&j->places, f->frame_host) !=
                                       fl_places_real_host(&j->places, host))
        f->frame_host = -2;
}

/* ---- answers ---- */

static size_t real_hosts(const struct fl_places *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->nhosts; i++)
        n += p->hosts[i].same_as < 0 && !p->hosts[i].no_host && !p->hosts[i].address;
    return n;
}

int32_t fl_places_machine(const struct fl_places *p, int32_t host)
{
    int32_t only = -1;

    if (host >= 0 && p->hosts[host].on)
        return fl_places_real_host(p, p->hosts[host].on - 1);
    if (host < 0 || p->hosts[host].machine ||
        !(p->hosts[host].pod || fl_pod_name(p->hosts[host].name)))
        return host;
    for (size_t i = 0; i < p->nhosts; i++) {
        if (!p->hosts[i].machine || p->hosts[i].same_as >= 0 || p->hosts[i].no_host)
            continue;
        if (only >= 0)
            return host;
        only = (int32_t)i;
    }
    return only >= 0 ? only : host;
}

int32_t fl_places_only_host(const struct fl_places *p)
{
    int32_t only = -1;

    for (size_t i = 0; i < p->nhosts; i++) {
        const struct fl_host *h = &p->hosts[i];
        if (h->same_as >= 0 || h->no_host || h->address || !(h->lines || h->ranks))
            continue;
        if (only >= 0)
            return -1;
        only = (int32_t)i;
    }
    return p->nodes > 1 ? -1 : only;
}

int32_t fl_places_rank_by_pid(const struct fl_places *p, int32_t host, int64_t pid)
{
    int32_t found = -1;

    for (size_t i = 0; i < p->nranks && pid > 0; i++) {
        const struct fl_rank *r = &p->ranks[i];
        if (r->pid != pid || (host >= 0 && r->host >= 0 && fl_places_real_host(p, r->host) != host))
            continue;
        if (found >= 0)
            return -1;
        found = r->rank;
    }
    return found;
}

int32_t fl_places_rank_by_gpu(const struct fl_places *p, int32_t host, fl_str gpu)
{
    int32_t found = -1;

    for (size_t i = 0; i < p->nranks; i++) {
        const struct fl_rank *r = &p->ranks[i];
        if (!fl_str_eq(r->gpu, gpu) ||
            (host >= 0 && r->host >= 0 && fl_places_real_host(p, r->host) != host &&
             fl_places_machine(p, fl_places_real_host(p, r->host)) != host))
            continue;
        if (found >= 0)
            return -1;
        found = r->rank;
    }
    return found;
}

/* Its own, or by the name of its pod ("job-worker-2"). */
static int32_t node_rank_of(const struct fl_places *p, const struct fl_mark *m)
{
    struct fl_file_place place;

    if (m->node_rank >= 0 || m->host < 0)
        return m->node_rank;
    fl_place_from_name(p->hosts[m->host].name, &place);
    return place.node_rank;
}

int32_t fl_places_rank_of(const struct fl_job *j, const struct fl_mark *m)
{
    const struct fl_places *p = &j->places;
    char key[48], number[24];
    uint32_t at;
    int n;

    if (m->rank >= 0)
        return m->rank;
    if (m->task >= 0 && p->tasks_are_ranks)
        return m->task;
    if (m->local_rank >= 0) {
        n = snprintf(number, sizeof(number), "%d", m->local_rank);
        if (m->host >= 0 &&
            fl_map_get(&p->local_of, host_key(key, m->host, fl_str_n(number, (size_t)n)), &at))
            return (int32_t)at;
        if (fl_map_get(&p->local_of,
                       host_key(key, -2 - (int32_t)m->file, fl_str_n(number, (size_t)n)), &at))
            return (int32_t)at;
    }
    if (m->local_rank >= 0 && p->nodes <= 1 && real_hosts(p) <= 1 && m->local_rank <= p->max_rank)
        return m->local_rank; /* one node: local is global */
    n = node_rank_of(p, m);
    if (n >= 0 && p->world_size > 0 && (size_t)p->world_size == real_hosts(p))
        return n; /* one rank a node */
    if (m->pid > 0) {
        n = snprintf(number, sizeof(number), "%lld", (long long)m->pid);
        if (fl_map_get(&p->pid_of,
                       host_key(key, m->host >= 0 ? m->host : -2 - (int32_t)m->file,
                                fl_str_n(number, (size_t)n)),
                       &at))
            return (int32_t)at;
    }
    return -1;
}

int32_t fl_places_host_of(const struct fl_job *j, const struct fl_mark *m)
{
    int32_t rank;
    struct fl_rank *r;

    if (m->host >= 0 && fl_places_real_host(&j->places, m->host) >= 0)
        return fl_places_real_host(&j->places, m->host);
    rank = fl_places_rank_of(j, m);
    r = rank >= 0 ? fl_places_rank((struct fl_places *)(uintptr_t)&j->places, rank, false) : NULL;
    if (r && host_of_stay(r, m) >= 0 && fl_places_real_host(&j->places, host_of_stay(r, m)) >= 0)
        return fl_places_real_host(&j->places, host_of_stay(r, m));
    if (r && fl_places_real_host(&j->places, r->host) >= 0)
        return fl_places_real_host(&j->places, r->host);
    if (fl_places_host_of_node(&j->places, m) >= 0)
        return fl_places_host_of_node(&j->places, m);
    if (rank >= 0 && j->places.tasks_are_ranks) {
        struct fl_mark task = {.line = 1, .file = m->file, .task = rank, .node_rank = -1};
        if (fl_places_host_of_node(&j->places, &task) >= 0)
            return fl_places_host_of_node(&j->places, &task);
    }
    if (rank >= 0 && j->places.per_node > 0 && rank / j->places.per_node < 1024 &&
        j->places.block_host[rank / j->places.per_node] >= 0)
        return j->places.block_host[rank / j->places.per_node];
    if (m->line && m->file < j->nfiles && j->files[m->file].frame_host >= 0)
        return fl_places_real_host(&j->places, j->files[m->file].frame_host);
    return -1;
}
