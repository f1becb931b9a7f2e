/*
 * At the end of the log: what the collected names, numbers and maps come to.
 *
 * Until then every line could still explain an earlier one. Now hosts under two names become one,
 * names of files that are no hosts are dropped, task numbers are ranks or they are not, and ranks
 * that printed nothing get the host of their block where those that did agree with it.
 *
 * Refused on purpose: a guess where two lines disagree; an unknown place stays unknown.
 */
#include <string.h>

#include "diagnose/job.h"

/* "llama-pt-worker-1", "job-master-0": a replica of a job on Kubernetes */
static bool replica(fl_str name)
{
    static const char *const roles[] = {"-worker", "-master", "-launcher", "-head", "-node"};
    ptrdiff_t dash = fl_str_rfind_c(name, '-');
    uint64_t v;

    if (dash <= 0 || !fl_str_to_u64(fl_str_from(name, (size_t)dash + 1), &v))
        return false;
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
        if (fl_str_ends(fl_str_sub(name, 0, (size_t)dash), fl_str_c(roles[i])))
            return true;
    return false;
}

/* A file's name that speaks of a machine. Other names ("neox14.log", "train-8812.log") are hosts
 * only when the lines inside bear it out, or when several files are named alike. */
static bool names_machine(fl_str name)
{
    static const char *const heads[] = {"node", "host", "worker", "gpu",     "nid",    "cn",
                                        "ip-",  "dgx",  "hgx",    "compute", "server", "pod"};

    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
        if (fl_str_ieq(fl_str_sub(name, 0, strlen(heads[i])), fl_str_c(heads[i])))
            return true;
    return replica(name);
}

static size_t letters(fl_str s)
{
    size_t n = 0;

    while (n < s.n && !(s.p[n] >= '0' && s.p[n] <= '9'))
        n++;
    return n;
}

/* Other files named after hosts of the same make: "cn-214", "cn-215". */
static bool named_alike(const struct fl_job *j, int32_t host)
{
    fl_str name = j->places.hosts[host].name;

    for (size_t i = 0; i < j->nfiles; i++) {
        int32_t h = j->files[i].host;
        fl_str other = h >= 0 ? j->places.hosts[h].name : FL_S("");
        if (h >= 0 && h != host && letters(other) == letters(name) &&
            memcmp(other.p, name.p, letters(name)) == 0)
            return true;
    }
    return false;
}

/* "node-gpu-22.dmesg" where a host is known as gpu-22 */
static int32_t known_tail(const struct fl_places *p, int32_t host)
{
    fl_str name = p->hosts[host].name;
    uint32_t at;

    for (size_t i = 1; i + 3 < name.n; i++)
        if ((name.p[i] == '-' || name.p[i] == '_' || name.p[i] == '.') &&
            fl_map_get(&p->host_of, fl_str_from(name, i + 1), &at) && (int32_t)at != host &&
            fl_places_real_host(p, (int32_t)at) != host)
            return (int32_t)at;
    return -1;
}

/* "node-07.log" whose lines all come from ml-h100-0150: one host under two names. A name that
 * stands for a file with several hosts ("train-8812.log") is no host at all. */
static void settle_file_hosts(struct fl_job *j)
{
    struct fl_places *p = &j->places;
    int32_t known;

    for (size_t i = 0; i < j->nfiles; i++) {
        const struct fl_file_state *f = &j->files[i];
        if (f->host < 0 || p->hosts[f->host].lines || p->hosts[f->host].same_as >= 0)
            continue;
        if (f->frame_host == -1 && (known = known_tail(p, f->host)) >= 0) {
            p->hosts[f->host].same_as = known;
            continue;
        }
        if (f->frame_host == -2 || (f->frame_host == -1 && !f->kernel && !named_alike(j, f->host) &&
                                    !names_machine(p->hosts[f->host].name)))
            p->hosts[f->host].no_host = true;
        else if (f->frame_host >= 0 && fl_places_real_host(p, f->frame_host) != f->host)
            p->hosts[f->host].same_as = fl_places_real_host(p, f->frame_host);
    }
}

/* A rank whose writer has a node number is on that node's host. */
static void settle_nodes(struct fl_job *j)
{
    struct fl_places *p = &j->places;

    for (size_t i = 0; i < j->nwriters; i++) {
        const struct fl_mark *m = &j->writers[i].last;
        struct fl_rank *r = m->rank >= 0 ? fl_places_rank(p, m->rank, false) : NULL;
        int32_t host = r && fl_places_real_host(p, r->host) < 0 ? fl_places_host_of_node(p, m) : -1;
        if (host >= 0) {
            r->host = host;
            p->hosts[host].ranks++;
        }
    }
}

/* Ranks are dealt to hosts in blocks. Where the ranks that are known agree with that, a rank that
 * printed nothing is on the host of its block. */
static void settle_blocks(struct fl_places *p)
{
    int32_t hosts = 0, per, block_host[1024];

    for (size_t i = 0; i < p->nhosts; i++)
        hosts += p->hosts[i].ranks > 0;
    if (hosts < 2 || hosts > 1024 || p->world_size < hosts || p->world_size % hosts)
        return;
    per = p->world_size / hosts;
    memset(block_host, -1, sizeof(block_host));
    for (size_t i = 0; i < p->nranks; i++) {
        int32_t b = p->ranks[i].rank / per, h = fl_places_real_host(p, p->ranks[i].host);
        if (h < 0 || b >= 1024)
            continue;
        if (block_host[b] >= 0 && block_host[b] != h)
            return; /* dealt in another way */
        block_host[b] = h;
    }
    for (int32_t r = 0; r < p->world_size; r++) {
        struct fl_rank *x = block_host[r / per] >= 0 ? fl_places_rank(p, r, false) : NULL;
        if (x && x->host < 0)
            x->host = block_host[r / per];
    }
    p->per_node = per;
    for (int32_t b = 0; b < 1024 && b * per < p->world_size; b++)
        p->block_host[b] = block_host[b];
}

void fl_places_settle(struct fl_job *j)
{
    struct fl_places *p = &j->places;
    int32_t tasks = p->max_task + 1;

    settle_file_hosts(j);
    for (size_t i = 0; i < p->nhosts; i++) { /* what was said under another name */
        int32_t real = fl_places_real_host(p, (int32_t)i);
        if (real >= 0 && real != (int32_t)i)
            p->hosts[real].lines += p->hosts[i].lines;
    }

    /* srun -l numbers tasks; they are ranks when there is one a rank, or when nothing else is
     * known to be a rank. */
    p->tasks_are_ranks = tasks > 0 &&
                         !(p->nodes > 0 && tasks <= p->nodes && p->world_size > tasks) &&
                         (p->world_size < 2 * tasks || p->nodes < 0) && p->max_rank < 2 * tasks;
    if (p->tasks_are_ranks) {
        for (size_t i = 0; i < j->nwriters; i++) {
            const struct fl_mark *m = &j->writers[i].last;
            struct fl_rank *r =
                m->rank < 0 && m->task >= 0 ? fl_places_rank(p, m->task, true) : NULL;
            if (r && r->last.seq <= m->seq) {
                r->last = *m;
                r->lines += j->writers[i].lines;
                if (r->host < 0)
                    r->host = m->host;
            }
        }
    }
    for (size_t i = 0; i < p->nranks; i++)
        if (fl_places_real_host(p, p->ranks[i].host) >= 0)
            p->hosts[fl_places_real_host(p, p->ranks[i].host)].ranks++;
    settle_nodes(j);
    settle_blocks(p);
}
