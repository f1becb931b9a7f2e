/*
 * Rank, node and host from a file's name and its folders.
 *
 * Names are read from the innermost folder outwards and the first answer to each question counts:
 * "n12/rank3.log" is rank 3 on n12. Numbers need a keyword ("rank", "attempt") or a known layout
 * (torchrun's attempt_0/3/stderr.log, SGE's job.o123.7). A host must look like one and end in a
 * digit, after words that say what a log is ("dmesg-", "slurm-123-") are taken off; "resnet50.log"
 * shows the limit of that, so callers treat a name's host as a hint that the log's text overrides.
 */
#include "read/prefix.h"

#include "read/prefix_parts.h"

#include "base/alloc.h"

static bool alnum(char c)
{
    return fl_is_alpha(c) || fl_is_digit(c);
}

static bool one_of(fl_str s, const char *const *list)
{
    for (; *list; list++)
        if (fl_str_ieq(s, fl_str_c(*list)))
            return true;
    return false;
}

/* Takes ".log", ".gz" and the like off the end, as often as they stand there. */
static fl_str strip_suffixes(fl_str s)
{
    static const char *const suffixes[] = {"log",    "out",  "err",   "txt", "gz",  "zst",
                                           "xz",     "bz2",  "json",  "tgz", "tar", "stdout",
                                           "stderr", "logs", "dmesg", NULL};
    ptrdiff_t dot;

    while ((dot = fl_str_rfind_c(s, '.')) > 0 && one_of(fl_str_from(s, (size_t)dot + 1), suffixes))
        s.n = (size_t)dot;
    return s;
}

/* Keyword, perhaps one separator, digits, and then no letter: the number, or -1. */
static int32_t keyed(fl_str s, const char *key)
{
    size_t n = strlen(key), i, used;
    uint64_t v;

    for (i = 0; i + n < s.n; i++) {
        size_t at = i + n;
        if ((i && alnum(s.p[i - 1])) || !fl_str_ieq(fl_str_sub(s, i, n), fl_str_c(key)))
            continue;
        if (memchr("-_=.", s.p[at], 4))
            at++;
        used = fl_str_u64(fl_str_from(s, at), 999999, &v);
        if (used && (at + used == s.n || !alnum(s.p[at + used])))
            return (int32_t)v;
    }
    return -1;
}

static void set(int32_t *field, int32_t v)
{
    if (*field < 0)
        *field = v;
}

static void numbers(fl_str s, struct fl_file_place *out)
{
    static const char *const local[] = {"local_rank", "local-rank", "localrank", "gpu", NULL};
    static const char *const node[] = {"node_rank", "node-rank", "noderank", "nodeid", NULL};
    static const char *const rank[] = {"global_rank", "globalrank", "task", "proc", NULL};
    int32_t l = -1, n = -1, v;

    for (size_t i = 0; local[i]; i++)
        set(&l, keyed(s, local[i]));
    for (size_t i = 0; node[i]; i++)
        set(&n, keyed(s, node[i]));
    set(&out->local_rank, l);
    set(&out->node_rank, n);
    set(&out->attempt, keyed(s, "attempt"));
    for (size_t i = 0; rank[i]; i++)
        set(&out->rank, keyed(s, rank[i]));
    v = keyed(s, "rank");
    /* "local_rank_3" also holds "rank_3". */
    if (v >= 0 && !fl_str_has(s, FL_S("local_rank")) && !fl_str_has(s, FL_S("local-rank")) &&
        !fl_str_has(s, FL_S("node_rank")) && !fl_str_has(s, FL_S("node-rank")))
        set(&out->rank, v);
}

/* "train.log.r17", "job.o123.7" */
static void tail_rank(fl_str base, struct fl_file_place *out)
{
    ptrdiff_t dot = fl_str_rfind_c(base, '.'), before;
    fl_str tail = fl_str_from(base, (size_t)(dot + 1)), mid;
    uint64_t v;

    if (dot <= 0 || tail.n == 0)
        return;
    if (tail.p[0] == 'r' && tail.n <= 7 && fl_str_to_u64(fl_str_from(tail, 1), &v)) {
        set(&out->rank, (int32_t)v);
        return;
    }
    before = fl_str_rfind_c(fl_str_sub(base, 0, (size_t)dot), '.');
    if (before <= 0 || tail.n > 6 || !fl_str_to_u64(tail, &v))
        return;
    mid = fl_str_sub(base, (size_t)before + 1, (size_t)(dot - before - 1));
    if (mid.n > 1 && (mid.p[0] == 'o' || mid.p[0] == 'e')) {
        uint64_t job;
        if (fl_str_to_u64(fl_str_from(mid, 1), &job))
            set(&out->rank, (int32_t)v);
    }
}

static bool hex_tail(fl_str s, size_t n)
{
    if (s.n < n)
        return false;
    for (size_t i = s.n - n; i < s.n; i++)
        if (!fl_is_digit(s.p[i]) && !(s.p[i] >= 'a' && s.p[i] <= 'f') && s.p[i] != '-')
            return false;
    return true;
}

/* "job-worker-3": Kubeflow counts the master as node 0. */
static void pod_node(fl_str pod, struct fl_file_place *out)
{
    ptrdiff_t at = fl_str_find(pod, FL_S("-worker-"));
    uint64_t v;

    if (fl_str_ends(pod, FL_S("-master-0")))
        set(&out->node_rank, 0);
    else if (at > 0 && fl_str_u64(fl_str_from(pod, (size_t)at + 8), 99999, &v))
        set(&out->node_rank, (int32_t)v + 1);
}

/* Kubernetes' own names, and pods of the training operators */
static bool pod(fl_str s, struct fl_file_place *out)
{
    ptrdiff_t one = fl_str_find_c(s, '_'), two;
    fl_str name = s;

    if (one > 0) {
        two = fl_str_find_c(fl_str_from(s, (size_t)one + 1), '_');
        two += one + 1;
        if (two > one && hex_tail(s, 36) && !hex_tail(s, 64))
            name = fl_str_sub(s, (size_t)one + 1, (size_t)(two - one - 1));
        else if (two > one && hex_tail(s, 64))
            name = fl_str_sub(s, 0, (size_t)one);
        else if (!fl_str_has(s, FL_S("-master-0")) && !fl_str_has(s, FL_S("-worker-")))
            return false;
        else
            name = fl_str_sub(s, 0, (size_t)one);
    } else if (!fl_str_ends(s, FL_S("-master-0")) && fl_str_find(s, FL_S("-worker-")) <= 0) {
        return false;
    }
    if (name.n == 0)
        return false;
    if (!out->host.n)
        out->host = name;
    pod_node(name, out);
    return true;
}

/* Words that say what a log is. */
static const char *const log_words[] = {
    "dmesg",      "kern",    "kernel",   "syslog", "journal",  "messages", "slurm",    "log",
    "logs",       "train",   "training", "stderr", "stdout",   "job",      "out",      "err",
    "main",       "console", "pyspy",    "py",     "nvidia",   "smi",      "ibstat",   "dcgm",
    "nccl",       "rank",    "host",     "debug",  "messages", "spy",      "run",      "output",
    "journalctl", "task",    "attempt",  "nvlink", "check",    "launch",   "launcher", NULL};

/* Takes words that say what a log is, and numbers behind them, off the left of "a-b-c". */
static fl_str strip_words(fl_str s)
{
    bool stripped = false;
    uint64_t v;

    for (;;) {
        ptrdiff_t dash = fl_str_find_c(s, '-');
        fl_str head = dash < 0 ? s : fl_str_sub(s, 0, (size_t)dash);
        if (!one_of(head, log_words) && !(stripped && fl_str_to_u64(head, &v)))
            return s;
        stripped = true;
        s = dash < 0 ? fl_str_from(s, s.n) : fl_str_from(s, (size_t)dash + 1);
        if (s.n == 0)
            return s;
    }
}

/* The same at the right: "n12-console". */
static fl_str strip_tail(fl_str s)
{
    ptrdiff_t dash;

    while ((dash = fl_str_rfind_c(s, '-')) > 0 &&
           one_of(fl_str_from(s, (size_t)dash + 1), log_words))
        s = fl_str_sub(s, 0, (size_t)dash);
    return s;
}

static bool host_part(fl_str s)
{
    static const char *const models[] = {"resnet", "vit",      "mnist", "cifar",  "imagenet", "sft",
                                         "v",      "unet",     "yolov", "swin",   "clip",     "day",
                                         "date",   "wikitext", "try",   "config", "cfg",      "id",
                                         "local",  "restart",  NULL};
    size_t stem = 0;
    ptrdiff_t dash = fl_str_rfind_c(s, '-');
    fl_str last = dash < 0 ? s : fl_str_from(s, (size_t)dash + 1);

    if (s.n < 2 || !fl_is_digit(s.p[s.n - 1]) || !fl_peel_hostlike(s.p, s.p + s.n))
        return false;
    while (stem < s.n && fl_is_alpha(s.p[stem]))
        stem++;
    return !one_of(fl_str_sub(s, 0, stem), models) &&
           !(last.n >= 2 && last.p[0] == 'v' && fl_is_digit(last.p[1]));
}

static void host(fl_str s, struct fl_file_place *out)
{
    fl_str rest = s, part;
    uint64_t v;

    if (out->host.n || pod(s, out))
        return;
    if (fl_peel_hostlike(s.p, s.p + s.n) && fl_is_digit(s.p[0])) { /* an address */
        out->host = s;
        return;
    }
    while (rest.n) {
        size_t n = 0;
        while (n < rest.n && rest.p[n] != '.' && rest.p[n] != '_')
            n++;
        part = strip_tail(strip_words(fl_str_sub(rest, 0, n)));
        rest = fl_str_from(rest, n + 1);
        if (!host_part(part))
            continue;
        out->host = part;
        if (fl_str_starts(part, FL_S("worker-")) && fl_str_to_u64(fl_str_from(part, 7), &v))
            set(&out->node_rank, (int32_t)v);
        return;
    }
}

static bool kernel_name(fl_str s)
{
    static const char *const words[] = {"dmesg",   "kern",     "kernel",     "syslog",
                                        "journal", "messages", "journalctl", NULL};
    size_t i = 0, n;

    while (i < s.n) {
        for (n = 0; i + n < s.n && fl_is_alpha(s.p[i + n]); n++)
            ;
        if (n && one_of(fl_str_sub(s, i, n), words))
            return true;
        i += n + 1;
    }
    return false;
}

void fl_place_from_name(fl_str name, struct fl_file_place *out)
{
    fl_str rest = name, inner = {NULL, 0};
    bool base = true;
    uint64_t v;

    *out = (struct fl_file_place){-1, -1, -1, -1, {NULL, 0}, false};
    while (rest.n) {
        ptrdiff_t slash = fl_str_rfind_c(rest, '/');
        fl_str comp = fl_str_from(rest, (size_t)(slash + 1)), stem, outer;
        rest = slash < 0 ? fl_str_sub(rest, 0, 0) : fl_str_sub(rest, 0, (size_t)slash);
        outer = fl_str_from(rest, (size_t)(fl_str_rfind_c(rest, '/') + 1));
        stem = strip_suffixes(comp);
        if (comp.n == 0 || comp.p[0] == '.')
            continue;
        if (base)
            tail_rank(comp, out);
        if (stem.n <= 6 && fl_str_to_u64(stem, &v) &&
            (fl_str_starts(inner, FL_S("std")) || fl_str_starts(outer, FL_S("attempt"))))
            set(&out->local_rank, (int32_t)v);
        numbers(stem, out);
        if (!fl_str_starts(inner, FL_S("attempt"))) /* torchrun's "<run id>_<random>" */
            host(stem, out);
        out->kernel |= kernel_name(comp);
        inner = comp;
        base = false;
    }
}
