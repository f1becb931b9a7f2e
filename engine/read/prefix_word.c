/*
 * Frames that begin with a letter: levels, glog, syslog, NCCL, Slurm, libfabric, torchx, pdsh.
 *
 * This is the branch that prose takes, so it is decided by what ends the first word. The one
 * doubtful frame is pdsh's "host: ": Python exceptions, file names, devices, metrics and model
 * names have the same shape. A host must be lower case, hold a letter and a digit, and not begin
 * with one of the stems below; a wrong host would blame an innocent machine, a missed one costs a
 * detail.
 */
#include "read/prefix_parts.h"

#include "base/alloc.h"

#define YEAR_9999 253402300799 /* in seconds: what is later is no time */

/* What looks like a host and is a device, a metric, a format or a model. */
static const char *const not_hosts[] = {
    "acpi",         "adam",      "amdgpu", "ata",      "batch",   "bert",     "bf",
    "bitsandbytes", "block",     "bloom",  "bond",     "br",      "case",     "chatglm",
    "checkpoint",   "chunk",     "ckpt",   "col",      "collect", "conv",     "core",
    "cpu",          "cuda",      "cudnn",  "deepseek", "dev",     "dim",      "dm",
    "docker",       "en",        "enp",    "ens",      "epoch",   "eth",      "exp",
    "expert",       "ext",       "fc",     "float",    "fold",    "fp",       "frame",
    "gelu",         "gemma",     "glm",    "gpt",      "group",   "head",     "hip",
    "http",         "ib",        "ibp",    "ibs",      "int",     "internlm", "ipv",
    "iter",         "iteration", "job",    "layer",    "len",     "level",    "lib",
    "libcuda",      "line",      "linear", "llama",    "lo",      "local",    "loop",
    "loss",         "lr",        "md",     "mip",      "mistral", "mixtral",  "mlx",
    "model",        "module",    "mp",     "nfs",      "npu",     "nvidia",   "nvme",
    "opt",          "page",      "param",  "part",     "phase",   "phi",      "pci",
    "pcieport",     "peer",      "port",   "proc",     "process", "py",       "python",
    "qwen",         "rank",      "req",    "roce",     "round",   "row",      "run",
    "sample",       "scsi",      "sda",    "sdb",      "sdc",     "seed",     "seq",
    "sha",          "shard",     "shape",  "split",    "stage",   "step",     "stream",
    "task",         "tensor",    "test",   "thread",   "tok",     "token",    "top",
    "torch",        "try",       "tty",    "uint",     "update",  "usb",      "utf",
    "val",          "var",       "ver",    "version",  "veth",    "virtio",   "xfs",
    "zero"};

static bool file_suffix(const char *p, const char *q)
{
    static const char *const suffixes[] = {"py",  "cc", "cpp",  "c",   "h",    "cu",   "so", "log",
                                           "out", "sh", "txt",  "err", "json", "yaml", "pt", "bin",
                                           "go",  "rs", "java", "ts",  "tar",  "gz"};
    const char *dot = NULL;

    for (const char *r = p; r < q; r++) {
        if (*r == '.')
            dot = r + 1;
    }
    if (!dot)
        return false;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (fl_str_eqz(fl_str_n(dot, (size_t)(q - dot)), suffixes[i]))
            return true;
    return fl_str_has(fl_str_n(p, (size_t)(q - p)), FL_S(".so."));
}

/* "10.0.0.7" */
static bool ipv4(const char *p, const char *q)
{
    int dots = 0, v = -1;

    for (; p < q; p++) {
        if (fl_is_digit(*p))
            v = (v < 0 ? 0 : v * 10) + (*p - '0');
        else if (*p != '.' || v < 0 || ++dots > 3)
            return false;
        else
            v = -1;
        if (v > 255)
            return false;
    }
    return dots == 3 && v >= 0;
}

bool fl_peel_hostlike(const char *p, const char *q)
{
    size_t n = (size_t)(q - p), stem = 0, digits = 0;

    if (n < 2 || n > 100 || q[-1] == '.' || q[-1] == '-')
        return false;
    if (fl_is_digit(*p))
        return ipv4(p, q);
    for (const char *r = p; r < q; r++) {
        if (fl_is_upper(*r) || *r == '_')
            return false;
        digits += fl_is_digit(*r);
    }
    while (stem < n && fl_is_alpha(p[stem]))
        stem++;
    if (digits == 0 || file_suffix(p, q))
        return false;
    /* "h100", "v2", "t5" are no hosts; "n12" is. */
    if (stem == 1 && *p != 'n' && digits < 4)
        return false;
    if (stem == 3 && n == 4 && memcmp(p, "gpu", 3) == 0)
        return false;
    for (size_t i = 0; i < sizeof(not_hosts) / sizeof(*not_hosts); i++)
        if (not_hosts[i][0] == *p && fl_str_eqz(fl_str_n(p, stem), not_hosts[i]))
            return false;
    return true;
}

/* "12:34 [0] file.cc:12 NCCL WARN " behind the host */
const char *fl_peel_nccl(struct fl_peel *c, const char *p)
{
    const char *h = p, *q = fl_word_end(c, p), *r, *most;
    int64_t pid, tid;
    int32_t dev = -1;
    ptrdiff_t at;
    uint8_t sev = FL_SEV_NONE;

    if (q == p || fl_at(c, q) != ':' || !(r = fl_peel_i64(c, q + 1, &pid)) || fl_at(c, r) != ':')
        return NULL;
    if (!(r = fl_peel_i64(c, r + 1, &tid)) || fl_at(c, r) != ' ')
        return NULL;
    r++;
    if (fl_at(c, r) == '[') {
        const char *n = fl_at(c, r + 1) == '-' ? r + 2 : r + 1;
        const char *e = fl_peel_int(c, n, &dev);
        if (!e || !(r = FL_LIT(c, e, "] ")))
            return NULL;
        if (n != e && n[-1] == '-')
            dev = -1;
    } else if (!FL_LIT(c, r, "NCCL ")) {
        return NULL;
    }
    most = c->end - r > 400 ? r + 400 : c->end;
    if (FL_LIT(c, r, "NCCL "))
        at = 0;
    else if ((at = fl_str_find(fl_str_n(r, (size_t)(most - r)), FL_S(" NCCL WARN "))) >= 0)
        at++;
    if (at >= 0) {
        q = fl_peel_level(c, r + at + 5, false, &sev);
        r = q ? fl_blank(c, q) : r + at + 5;
    }
    c->o->host = fl_str_n(h, (size_t)(fl_word_end(c, h) - h));
    c->o->pid = pid;
    c->o->gpu_index = dev;
    c->o->severity = sev;
    c->o->origin = FL_FROM_NCCL;
    c->seen |= FL_SEEN_INNER | FL_SEEN_LEVEL;
    return r;
}

/* "ON n12 CANCELLED AT 2026-03-01T02:03:04" in a step's last words */
static void step_end(struct fl_peel *c, const char *p)
{
    fl_str s = fl_str_n(p, (size_t)(c->end - p > 200 ? 200 : c->end - p));
    ptrdiff_t on = fl_str_find(s, FL_S(" ON ")), at = fl_str_find(s, FL_S(" AT "));

    /* "n[12-14]" names several. */
    if (on >= 0 && fl_at(c, fl_word_end(c, p + on + 4)) == ' ')
        fl_peel_host(c, p + on + 4, fl_word_end(c, p + on + 4));
    if (at >= 0)
        fl_peel_time(c, p + at + 4);
}

/* "error: n12: task 3: " behind "srun: " */
static const char *slurm_tail(struct fl_peel *c, const char *p)
{
    uint8_t sev;
    const char *q = fl_peel_level(c, p, true, &sev), *h, *t;

    c->o->origin = FL_FROM_SCHEDULER;
    c->seen |= FL_SEEN_INNER;
    if (q && fl_at(c, q) == ':') {
        c->o->severity = sev;
        c->seen |= FL_SEEN_LEVEL;
        p = fl_blank(c, q + 1);
    }
    if (FL_LIT(c, p, "*** ")) {
        step_end(c, p);
        return p;
    }
    h = fl_word_end(c, p);
    if (h == p || !(t = FL_LIT(c, h, ": task")))
        return p;
    fl_peel_host(c, p, h);
    if (fl_at(c, t) == ' ' && (q = fl_peel_int(c, t + 1, &c->o->task)) != NULL && *t)
        c->seen |= FL_SEEN_INNER;
    return h + 2;
}

static const char *slurm(struct fl_peel *c, const char *p, const char *q)
{
    static const fl_str names[] = {{"srun", 4},     {"slurmstepd", 10}, {"slurmctld", 9},
                                   {"slurmd", 6},   {"salloc", 6},      {"sbatch", 6},
                                   {"slurmdbd", 8}, {"scancel", 7}};
    fl_str word = fl_str_n(p, (size_t)(q - p));

    if (word.p[0] != 's' || fl_at(c, q + 1) != ' ')
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (fl_str_eq(word, names[i]))
            return slurm_tail(c, q + 2);
    return NULL;
}

/* "libfabric:123:1717589999:core:efa:ep:func():12<warn> " */
static const char *libfabric(struct fl_peel *c, const char *p)
{
    const char *q = FL_LIT(c, p, "libfabric:"), *r, *lt;
    int64_t pid, s;
    uint8_t sev;

    if (!q || !(q = fl_peel_i64(c, q, &pid)) || fl_at(c, q) != ':')
        return NULL;
    if (!(r = fl_peel_i64(c, q + 1, &s)) || fl_at(c, r) != ':' || s > YEAR_9999)
        return NULL;
    lt = memchr(r, '<', (size_t)(c->end - r > 240 ? 240 : c->end - r));
    if (!lt || !(q = fl_peel_level(c, lt + 1, true, &sev)) || fl_at(c, q) != '>')
        return NULL;
    c->o->pid = pid;
    c->o->time = (struct fl_time){.us = s * 1000000, .kind = FL_TIME_WALL, .zoned = true};
    c->o->severity = sev;
    c->seen |= FL_SEEN_TIME | FL_SEEN_LEVEL | FL_SEEN_INNER;
    return fl_blank(c, q + 1);
}

/* "trainer/0 ", when a frame follows or the role is a known one */
static const char *torchx(struct fl_peel *c, const char *p, const char *slash)
{
    static const fl_str roles[] = {{"trainer", 7}, {"worker", 6}, {"default", 7}, {"node", 4}};
    struct fl_prefix trial = {.host = {NULL, 0}};
    struct fl_peel in = {c->start, c->end, &trial, 0};
    const char *q;
    int32_t v;
    bool known = false;

    if (p != c->start || !(q = fl_peel_int(c, slash + 1, &v)) || fl_at(c, q) != ' ')
        return NULL;
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
        known |= fl_str_eq(fl_str_n(p, (size_t)(slash - p)), roles[i]);
    q++;
    if (!known && !(fl_at(c, q) == '[' && fl_peel_bracket(&in, q)) &&
        !(fl_is_alpha(fl_at(c, q)) && fl_peel_word(&in, q)))
        return NULL;
    c->o->node_rank = v;
    return q;
}

/* "E0301 02:03:04.123456 123 file.cc:12] "; "E0000 00:00:1717589999.123456 123 f.cc:12] " */
static const char *glog(struct fl_peel *c, const char *p, const char *q)
{
    size_t digits = (size_t)(q - p) - 1;
    uint8_t sev = fl_peel_letter_sev(*p);
    struct fl_time t;
    const char *r;
    size_t n;
    int64_t pid;

    if (!sev || (digits != 3 && digits != 4 && digits != 8))
        return NULL;
    for (r = p + 1; r < q; r++)
        if (!fl_is_digit(*r))
            return NULL;
    r = FL_LIT(c, p + 1, "0000 00:00:");
    if (!r)
        r = p + 1;
    n = fl_time_parse(fl_str_n(r, (size_t)(c->end - r)), &t);
    if (!n || fl_at(c, r + n) != ' ')
        return NULL;
    q = fl_blanks(c, r + n);
    if ((q = fl_peel_i64(c, q, &pid)) == NULL || fl_at(c, q) != ' ')
        return NULL;
    q = fl_peel_source(c, fl_blanks(c, q));
    if (!q || fl_at(c, q) != ']')
        return NULL;
    fl_peel_set_time(c, &t);
    /* Big numbers are thread handles, not process ids. */
    if (pid < (1 << 22))
        c->o->pid = pid;
    c->o->severity = sev;
    c->o->origin = FL_FROM_PYTHON;
    if (fl_str_has(fl_str_n(r, (size_t)(q - r)), FL_S("torch/distributed/")))
        c->o->origin = FL_FROM_LAUNCHER;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER | FL_SEEN_SOURCE;
    return fl_blank(c, q + 1);
}

/* "INFO 03-01 02:03:04 [file.py:12] " */
static const char *level_time(struct fl_peel *c, const char *p)
{
    uint8_t sev;
    const char *q = fl_peel_level(c, p, false, &sev), *r;

    if (!q)
        return NULL;
    r = fl_blanks(c, q);
    if (!fl_is_digit(fl_at(c, r)) || !(r = fl_peel_time(c, r)))
        return NULL;
    c->o->severity = sev;
    if (c->o->origin != FL_FROM_LAUNCHER)
        c->o->origin = FL_FROM_PYTHON;
    c->seen |= FL_SEEN_LEVEL | FL_SEEN_INNER;
    q = fl_blank(c, r);
    r = fl_peel_source(c, q);
    if (r && fl_at(c, r) == ']')
        return fl_blank(c, r + 1);
    return fl_peel_after_time(c, r && fl_at(c, r) == ':' ? r : q);
}

static const char *colon(struct fl_peel *c, const char *p, const char *q)
{
    const char *r;

    if (fl_is_upper(*p) && (r = fl_peel_level_tail(c, p)) != NULL)
        return r;
    if (fl_is_digit(fl_at(c, q + 1)))
        return *p == 'l' && (r = libfabric(c, p)) != NULL ? r : fl_peel_nccl(c, p);
    if ((r = slurm(c, p, q)) != NULL)
        return r;
    if (fl_at(c, q + 1) != ' ')
        return NULL;
    if (q - p == 6 && memcmp(p, "kernel", 6) == 0) {
        c->o->origin = FL_FROM_KERNEL;
        return q + 2;
    }
    if ((c->seen & FL_SEEN_INNER) || c->o->rank >= 0 || c->o->host.n || c->o->local_rank >= 0 ||
        !fl_peel_hostlike(p, q))
        return NULL;
    fl_peel_host(c, p, q);
    return q + 2;
}

const char *fl_peel_word(struct fl_peel *c, const char *p)
{
    const char *q = fl_word_end(c, p), *r;

    switch (fl_at(c, q)) {
    case ':':
        return colon(c, p, q);
    case '/':
        return torchx(c, p, q);
    case '@': /* "pdsh@head: n12: " */
        if (!FL_LIT(c, p, "pdsh@"))
            return NULL;
        r = fl_word_end(c, q + 1);
        if (!(r = FL_LIT(c, r, ": ")))
            return NULL;
        c->o->origin = FL_FROM_LAUNCHER;
        c->seen |= FL_SEEN_INNER;
        q = fl_word_end(c, r);
        if (fl_at(c, q) != ':' || fl_at(c, q + 1) != ' ')
            return r;
        fl_peel_host(c, r, q);
        return q + 2;
    case ' ':
    case '\t':
        if (!fl_is_upper(*p))
            return NULL;
        if (fl_is_digit(p[1]))
            return glog(c, p, q);
        if (q - p == 3 && (r = fl_peel_time(c, p)) != NULL)
            return fl_peel_after_time(c, r);
        return q - p >= 3 && q - p <= 8 ? level_time(c, p) : NULL;
    default:
        return NULL;
    }
}
