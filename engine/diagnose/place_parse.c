/*
 * Reading places out of one line.
 *
 * Each form is known from the program that prints it (NCCL init.cc, torch elastic's failure table,
 * DeepSpeed's launcher, Lightning, InternEvo, nvidia-smi, Slurm's environment). Words are looked
 * for by name and numbers read behind them; nothing is inferred from position alone.
 */
#include "diagnose/place_parse.h"

#include <stdio.h>

struct teller {
    void (*tell)(void *ctx, const struct fl_fact *fact);
    void *ctx;
    size_t told, *listed;
};

static const struct fl_fact nothing = {
    .rank = -1, .local_rank = -1, .gpu_index = -1, .pid = -1, .n = -1, .exit_code = INT32_MIN};

static void tell(struct teller *t, const struct fl_fact *f)
{
    if (t->told++ < FL_FACTS_A_LINE)
        t->tell(t->ctx, f);
}

static bool ident(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The number behind `name` and any of " :=.'\"" ; the name must not be the end of a longer word. */
static bool number_after(fl_str s, const char *name, int64_t *out)
{
    fl_str key = fl_str_c(name);
    size_t from = 0;
    ptrdiff_t at;

    while ((at = fl_str_find(fl_str_from(s, from), key)) >= 0) {
        size_t p = from + (size_t)at, q = p + key.n;
        uint64_t v;
        from = q;
        if (p > 0 && ident(s.p[p - 1]))
            continue;
        while (q < s.n && (strchr(" :='\"", s.p[q]) || (s.p[q] == '.' && q + 1 < s.n &&
                                                        (s.p[q + 1] == '.' || s.p[q + 1] == ' '))))
            q++;
        if (q > p + key.n && fl_str_u64(fl_str_from(s, q), 1u << 30, &v)) {
            *out = (int64_t)v;
            return true;
        }
    }
    return false;
}

/* The word behind `name` and any of " :='\"". */
static fl_str word_after(fl_str s, const char *name)
{
    ptrdiff_t at = fl_str_find(s, fl_str_c(name));
    size_t q, n = 0;

    if (at < 0)
        return FL_S("");
    q = (size_t)at + strlen(name);
    while (q < s.n && strchr(" :='\"", s.p[q]))
        q++;
    while (q + n < s.n && !strchr(" ,;'\")(|", s.p[q + n]))
        n++;
    return fl_str_sub(s, q, n);
}

/* NCCL: comm 0x.. rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 commId 0x.. - Init COMPLETE */
static void nccl_comm(fl_str s, struct teller *t)
{
    struct fl_fact f = nothing, w = nothing;
    fl_str bus = word_after(s, "busId ");
    char pci[16];

    if (!number_after(s, "rank", &f.rank) || !number_after(s, "nranks", &w.n))
        return;
    f.kind = FL_FACT_RANK;
    number_after(s, "cudaDev", &f.local_rank);
    number_after(s, "nvmlDev", &f.gpu_index);
    if (f.gpu_index < 0)
        f.gpu_index = f.local_rank;
    if (bus.n >= 3 && bus.n <= 6) { /* 5d000: bus 5d, device 00, function 0 */
        fl_str b = fl_str_sub(bus, 0, bus.n - 3);
        snprintf(pci, sizeof(pci), "0000:%s%.*s:00", b.n < 2 ? "0" : "",
                 FL_FMT(b.n > 2 ? fl_str_from(b, b.n - 2) : b));
        f.gpu = fl_str_c(pci);
    }
    w.kind = FL_FACT_WORLD;
    w.sure = true;
    f.sure = w.n > 1;
    tell(t, &w);
    f.n = w.n;
    tell(t, &f);
}

/* {'n1': [0, 1, 2], 'n2': [3, 4, 5]} */
static void deepspeed_mapping(fl_str s, struct teller *t)
{
    ptrdiff_t at = fl_str_find(s, FL_S("global_rank_mapping"));
    fl_str rest = fl_str_from(s, (size_t)at);

    while ((at = fl_str_find_c(rest, '\'')) >= 0) {
        fl_str host, list;
        struct fl_fact f = nothing;
        ptrdiff_t open;
        rest = fl_str_from(rest, (size_t)at + 1);
        host = fl_str_cut(&rest, '\'');
        open = fl_str_find_c(fl_str_sub(rest, 0, 4), '[');
        if (open < 0)
            continue;
        rest = fl_str_from(rest, (size_t)open + 1);
        list = fl_str_cut(&rest, ']');
        f.kind = FL_FACT_RANK;
        f.host = host;
        for (f.local_rank = 0; list.n; f.local_rank++) {
            uint64_t v;
            if (!fl_str_to_u64(fl_str_trim(fl_str_cut(&list, ',')), &v))
                break;
            f.rank = (int64_t)v;
            tell(t, &f);
        }
    }
}

/* "  host      : n1", whatever stands before it. */
static bool table_line(fl_str s, fl_str *body)
{
    static const char *const keys[] = {"  host      : ", "  rank      : ", "  exitcode  : "};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        ptrdiff_t at = fl_str_find(s, fl_str_c(keys[i]));
        if (at >= 0) {
            *body = fl_str_from(s, (size_t)at);
            return true;
        }
    }
    return false;
}

static void failure_table(fl_str s, struct fl_table_row *row, struct teller *t)
{
    struct fl_fact f = nothing;
    fl_str body = fl_str_trim(s), value = body;
    fl_str key = fl_str_trim(fl_str_cut(&value, ':'));
    size_t n;

    value = fl_str_trim(value);
    if (fl_str_eqz(key, "host")) {
        n = value.n < sizeof(row->host) - 1 ? value.n : sizeof(row->host) - 1;
        memcpy(row->host, value.p, n);
        row->host[n] = 0;
        row->rank = row->local_rank = -1;
    } else if (fl_str_eqz(key, "rank")) {
        number_after(body, "rank", &row->rank);
        number_after(body, "local_rank", &row->local_rank);
    } else if (fl_str_eqz(key, "exitcode") && row->rank >= 0) {
        uint64_t v = 0;
        bool minus = value.n && value.p[0] == '-';
        f.kind = FL_FACT_RANK;
        f.rank = row->rank;
        f.local_rank = row->local_rank;
        f.host = fl_str_c(row->host);
        number_after(body, "pid", &f.pid);
        if (fl_str_u64(fl_str_from(value, minus), 100000, &v))
            f.exit_code = minus ? -(int32_t)v : (int32_t)v;
        tell(t, &f);
    }
}

/* One bracket of a host list: n[1-3,07]x -> n1x n2x n3x n07x */
static void bracket(fl_str head, fl_str list, fl_str tail, void (*each)(void *, fl_str), void *ctx,
                    size_t *left)
{
    while (list.n && *left) {
        fl_str item = fl_str_cut(&list, ','), from = item, to;
        uint64_t a, b;
        size_t width;
        from = fl_str_cut(&item, '-');
        to = item.n ? item : from;
        if (!fl_str_to_u64(from, &a) || !fl_str_to_u64(to, &b))
            return;
        width = from.n;
        for (; a <= b && *left; a++, (*left)--) {
            char name[256];
            int n = snprintf(name, sizeof(name), "%.*s%0*llu%.*s", FL_FMT(head),
                             (int)(width < 12 ? width : 12), (unsigned long long)a, FL_FMT(tail));
            if (n > 0 && (size_t)n < sizeof(name))
                each(ctx, fl_str_n(name, (size_t)n));
        }
    }
}

void fl_hostlist_each(fl_str list, void (*each)(void *ctx, fl_str host), void *ctx)
{
    size_t left = 4096;

    while (list.n && left) {
        size_t n = 0;
        bool in = false;
        fl_str item, head, inner;
        while (n < list.n && (in || list.p[n] != ',')) {
            in = list.p[n] == '[' || (in && list.p[n] != ']');
            n++;
        }
        item = fl_str_trim(fl_str_sub(list, 0, n));
        list = fl_str_from(list, n + 1);
        if (fl_str_find_c(item, '[') < 0) {
            if (item.n) {
                each(ctx, item);
                left--;
            }
            continue;
        }
        head = fl_str_cut(&item, '[');
        inner = fl_str_cut(&item, ']');
        bracket(head, inner, item, each, ctx, &left);
    }
}

static void tell_scheduler_host(void *ctx, fl_str host)
{
    struct fl_fact f = nothing;

    f.kind = FL_FACT_SCHEDULER_HOST;
    f.host = host;
    tell(ctx, &f);
    ++*((struct teller *)ctx)->listed;
}

static void node_list(fl_str s, struct teller *t)
{
    static const char *const names[] = {
        "NODELIST=", "NODELIST: ", "NODELIST = ", "NodeList=",   "nodelist=", "Nodelist: ",
        "Nodelist=", "nodelist: ", "node list: ", "Node list: ", "NodeList: "};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && *t->listed < FL_LISTED_NAMES; i++) {
        ptrdiff_t at = fl_str_find(s, fl_str_c(names[i]));
        size_t n = 0;
        bool in = false;
        fl_str rest;
        if (at < 0)
            continue;
        rest = fl_str_trim(fl_str_from(s, (size_t)at + strlen(names[i])));
        while (n < rest.n && (in || (rest.p[n] != ' ' && rest.p[n] != '"' && rest.p[n] != '\''))) {
            in = rest.p[n] == '[' || (in && rest.p[n] != ']');
            n++;
        }
        fl_hostlist_each(fl_str_sub(rest, 0, n), tell_scheduler_host, t);
        return;
    }
}

/* nvidia-smi's table: "|   3  NVIDIA H100 ...  Off | 00000000:5D:00.0 Off |" and
 * "GPU 00000000:3B:00.0" lists do not carry the index; the table does. */
static void smi_row(fl_str s, struct teller *t)
{
    struct fl_fact f = nothing;
    fl_str rest = fl_str_trim(s);
    size_t i;
    uint64_t v;

    if (!rest.n || rest.p[0] != '|')
        return;
    rest = fl_str_trim(fl_str_from(rest, 1));
    if (!fl_str_u64(rest, 63, &v))
        return;
    for (i = 0; i + 16 <= rest.n; i++)
        if (rest.p[i + 8] == ':' && rest.p[i + 11] == ':' && rest.p[i + 14] == '.')
            break;
    if (i + 16 > rest.n)
        return;
    f.kind = FL_FACT_GPU;
    f.gpu_index = (int64_t)v;
    f.gpu = fl_str_sub(rest, i, 16);
    tell(t, &f);
}

static void world(fl_str s, struct teller *t)
{
    static const struct {
        const char *name;
        bool sure;
    } names[] = {
        {"world_size", true},    {"world size", true},     {"WORLD_SIZE", true},
        {"world-size", true},    {"World size", true},     {"World Size", true},
        {"nranks", false},       {"Starting with", false}, {"distributed_world_size", true},
        {"SLURM_NTASKS", false}, {"worldsize", true}};
    struct fl_fact f = nothing;

    f.kind = FL_FACT_WORLD;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (number_after(s, names[i].name, &f.n) && f.n > 0) {
            f.sure = names[i].sure;
            tell(t, &f);
            break;
        }
    }
    f = nothing;
    f.kind = FL_FACT_NODES;
    if (number_after(s, "--nnodes", &f.n) || number_after(s, "SLURM_NNODES", &f.n) ||
        number_after(s, "--nodes", &f.n) || number_after(s, "num_nodes", &f.n))
        tell(t, &f);
}

/* "rank 3/8 on n12 gpu 3": the name, which a device's or a plain word is not */
static fl_str word_on(fl_str s)
{
    ptrdiff_t at = fl_str_find(s, FL_S(" on "));
    fl_str rest = fl_str_from(s, at < 0 ? s.n : (size_t)at + 4), name;
    bool digit = false;
    size_t n = 0;

    while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != ',' && rest.p[n] != ')') {
        digit |= rest.p[n] >= '0' && rest.p[n] <= '9';
        n++;
    }
    name = fl_str_sub(rest, 0, n);
    if (!digit || fl_str_starts(name, FL_S("cuda")) || fl_str_starts(name, FL_S("gpu:")) ||
        fl_str_starts(name, FL_S("npu:")) || (name.p[0] >= '0' && name.p[0] <= '9'))
        return FL_S("");
    return name;
}

/* "rank 3 ... host n12", "process rank 3 is bound to host:n12 device: 3", "rank 3/8 on n12" */
static void rank_and_host(fl_str s, struct teller *t)
{
    struct fl_fact f = nothing;
    fl_str host;

    f.kind = FL_FACT_RANK;
    if (!number_after(s, "rank", &f.rank) && !number_after(s, "Rank", &f.rank) &&
        !number_after(s, "RANK", &f.rank) && !number_after(s, "global_rank", &f.rank))
        return;
    host = word_after(s, "hostname");
    if (!host.n)
        host = word_after(s, "host");
    if (!host.n)
        host = word_on(s);
    if (!host.n || host.p[0] == '-' || fl_str_has(host, FL_S("/")))
        return;
    f.host = host;
    if (!number_after(s, "local_rank", &f.local_rank) &&
        !number_after(s, "local rank", &f.local_rank))
        number_after(s, "device", &f.local_rank);
    number_after(s, "pid", &f.pid);
    tell(t, &f);
}

/* Composer: "Global rank 1 (PID 4121) exited with code -15", "Rank 0 crashed with exit code 1." */
static void rank_exit(fl_str s, struct teller *t)
{
    struct fl_fact f = nothing;
    ptrdiff_t at = fl_str_find(s, FL_S("exited with code "));
    size_t skip = 17;
    fl_str code;
    bool minus;
    uint64_t v;

    if (at < 0) {
        at = fl_str_find(s, FL_S("crashed with exit code "));
        skip = 23;
    }
    if (at < 0 || (!number_after(s, "rank", &f.rank) && !number_after(s, "Rank", &f.rank)))
        return;
    code = fl_str_from(s, (size_t)at + skip);
    minus = code.n && code.p[0] == '-';
    if (!fl_str_u64(fl_str_from(code, minus), 100000, &v))
        return;
    f.kind = FL_FACT_RANK;
    f.exit_code = minus ? -(int32_t)v : (int32_t)v;
    number_after(s, "PID", &f.pid);
    tell(t, &f);
}

/* NCCL: "NET/IB : Using [0]mlx5_0:1/RoCE ...; OOB bond0:10.7.3.29<0>", "Bootstrap : Using eth0:..."
 * Each address with port 0 is the printer's own. */
static void own_addresses(fl_str s, struct teller *t)
{
    ptrdiff_t at = fl_str_find(s, FL_S("Using "));
    struct fl_fact f = nothing;

    if (at < 0 || !(fl_str_has(s, FL_S("NET/")) || fl_str_has(s, FL_S("Bootstrap"))))
        return;
    f.kind = FL_FACT_OWN_ADDRESS;
    for (s = fl_str_from(s, (size_t)at); (at = fl_str_find(s, FL_S("<0>"))) > 0;
         s = fl_str_from(s, (size_t)at + 3)) {
        size_t from = (size_t)at;
        while (from && s.p[from - 1] != ':' && s.p[from - 1] != ' ')
            from--;
        f.address = fl_str_sub(s, from, (size_t)at - from);
        if (f.address.n >= 7)
            tell(t, &f);
    }
}

static bool dotted_quad(fl_str s)
{
    size_t dots = 0;

    for (size_t i = 0; i < s.n; i++) {
        dots += s.p[i] == '.';
        if (s.p[i] != '.' && (s.p[i] < '0' || s.p[i] > '9'))
            return false;
    }
    return dots == 3;
}

/* "trainer-0   0/1   Error   0   97m   10.12.5.9   gpu-22   <none>   <none>": kubectl get pods -o
 * wide
 */
static void pod_row(fl_str s, struct teller *t)
{
    fl_str word[12], rest = fl_str_trim(s);
    struct fl_fact f = nothing;
    size_t n = 0, slash;

    for (; n < 12 && rest.n; rest = fl_str_trim(rest))
        word[n++] = fl_str_cut(&rest, ' ');
    slash = n > 1 ? (size_t)fl_str_find_c(word[1], '/') : 0;
    if (n < 7 || slash == 0 || slash >= word[1].n || word[1].p[0] < '0' || word[1].p[0] > '9')
        return;
    for (size_t i = 4; i + 1 < n; i++) {
        if (!dotted_quad(word[i]) || fl_str_eqz(word[i + 1], "<none>"))
            continue;
        f.kind = FL_FACT_POD;
        f.host = word[i + 1];
        f.address = word[0];
        tell(t, &f);
        return;
    }
}

/* "n12 -> 10.1.2.3" and "n12 (10.1.2.3)": one host, two names */
static void host_and_address(fl_str s, struct teller *t)
{
    ptrdiff_t at = fl_str_find(s, FL_S(" -> "));
    struct fl_fact f = nothing;
    fl_str left, right;
    size_t n = 0;

    if (at <= 0)
        return;
    left = fl_str_trim(fl_str_sub(s, 0, (size_t)at));
    right = fl_str_from(s, (size_t)at + 4);
    while (n < right.n && ((right.p[n] >= '0' && right.p[n] <= '9') || right.p[n] == '.'))
        n++;
    at = fl_str_rfind_c(left, ' ');
    f.kind = FL_FACT_SAME_HOST;
    f.host = fl_str_from(left, at < 0 ? 0 : (size_t)at + 1);
    f.address = fl_str_sub(right, 0, n);
    if (f.host.n && n >= 7)
        tell(t, &f);
}

/* "Hostname: gw-317": a script's own banner */
static void here(fl_str s, struct teller *t)
{
    fl_str body = fl_str_trim(s);
    struct fl_fact f = nothing;

    f.host = word_after(s, "Hostname");
    if (!f.host.n && fl_str_starts(body, FL_S("hostname")))
        f.host = word_after(s, "hostname");
    f.kind = FL_FACT_HERE;
    if (f.host.n > 1 && f.host.n < 100)
        tell(t, &f);
}

void fl_facts_parse(fl_str s, struct fl_table_row *row, size_t *listed,
                    void (*tell_fn)(void *ctx, const struct fl_fact *fact), void *ctx)
{
    struct teller t = {tell_fn, ctx, 0, listed};
    fl_str body = fl_str_trim(s);
    struct fl_fact f = nothing;

    if (fl_str_has(s, FL_S("busId")) || fl_str_has(s, FL_S("nranks ")))
        nccl_comm(s, &t);
    else if (fl_str_has(s, FL_S("global_rank_mapping")))
        deepspeed_mapping(s, &t);
    else if (table_line(s, &body))
        failure_table(body, row, &t);
    else if (fl_str_starts(body, FL_S("|")))
        smi_row(body, &t);
    else
        world(s, &t);
    if (number_after(s, "GLOBAL_RANK", &f.rank)) {
        f.kind = FL_FACT_RANK;
        number_after(s, "LOCAL_RANK", &f.local_rank);
        tell(&t, &f);
        if ((body = word_after(s, "MEMBER")).n) {
            fl_str total = body;
            f = nothing;
            f.kind = FL_FACT_WORLD;
            f.sure = true;
            fl_str_cut(&total, '/');
            if (fl_str_u64(total, 1u << 20, (uint64_t *)&f.n))
                tell(&t, &f);
        }
    } else if ((fl_str_has(s, FL_S("host")) || fl_str_has(s, FL_S(" on "))) &&
               fl_str_find_c(s, '|') < 0) {
        rank_and_host(s, &t);
    }
    here(s, &t);
    rank_exit(s, &t);
    node_list(s, &t);
    host_and_address(s, &t);
    own_addresses(s, &t);
    pod_row(s, &t);
}

bool fl_pod_name(fl_str name)
{
    fl_str tail = fl_str_from(name, name.n < 6 ? name.n : name.n - 6);
    bool digit = false;

    if (tail.n != 6 || name.n < 8 || tail.p[0] != '-')
        return false;
    for (size_t i = 1; i < tail.n; i++) {
        if (!strchr("bcdfghjklmnpqrstvwxz2456789", tail.p[i]))
            return false;
        digit |= tail.p[i] >= '2' && tail.p[i] <= '9';
    }
    return digit;
}
