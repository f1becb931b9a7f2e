/*
 * Addresses, and names that carry a domain.
 *
 * An address is four numbers or hexadecimal groups, and so is much else in a log. What decides is
 * the surroundings: four numbers behind `version`, `==` or a letter are a version, unless the first
 * is that of a private network; IPv6 needs eight groups, or `::` behind a group that real networks
 * begin with, because c10:: and PCI addresses are made of the same letters. Addresses that name no
 * machine stay, for they are evidence: a job that listens on 127.0.0.1 cannot be reached, one that
 * talks over 169.254 has taken the wrong interface. MAC addresses and GUIDs of hardware stay.
 *
 * A dotted name is a module path far more often than a machine (`trainer.fit`, `logging.info` are
 * names in real top-level domains). Without context only endings are believed that no library has,
 * and those that modules share (.local, .net, .internal) only where a label has a digit or a
 * hyphen. With context (a URL, host=) more is believed; that is decided where the context is read.
 *
 * A name is replaced in two parts, <HOST_1>.<DOMAIN_1>, so that the short form elsewhere is seen to
 * be the same machine. Endings that cloud and container platforms give everybody stay, as do sites
 * that are the same for everybody.
 */
#include "redact/scan.h"

/* Their own name says nothing about the user, nor do names below them. */
static const char *const public_sites[] = {"pytorch.org",
                                           "github.com",
                                           "githubusercontent.com",
                                           "gitlab.com",
                                           "github.io",
                                           "nvidia.com",
                                           "pypi.org",
                                           "slack.com",
                                           "discord.com",
                                           "discordapp.com",
                                           "npmjs.org",
                                           "feishu.cn",
                                           "larksuite.com",
                                           "telegram.org",
                                           "googleusercontent.com",
                                           "pypa.io",
                                           "kubeflow.org",
                                           "x-k8s.io",
                                           "google.internal",
                                           "hydra.cc",
                                           "pkg.dev",

                                           "pythonhosted.org",
                                           "python.org",
                                           "readthedocs.io",
                                           "stackoverflow.com",
                                           "arxiv.org",
                                           "kernel.org",
                                           "debian.org",
                                           "ubuntu.com",
                                           "docker.com",
                                           "docker.io",
                                           "ghcr.io",
                                           "quay.io",
                                           "k8s.io",
                                           "kubernetes.io",
                                           "googleapis.com",
                                           "google.com",
                                           "tensorflow.org",
                                           "openai.com",
                                           "anthropic.com",
                                           "wandb.ai",
                                           "comet.com",
                                           "neptune.ai",
                                           "mlflow.org",
                                           "ray.io",
                                           "anaconda.com",
                                           "anaconda.org",
                                           "conda.io",
                                           "apache.org",
                                           "gnu.org",
                                           "open-mpi.org",
                                           "schedmd.com",
                                           "slurm.schedmd.com",
                                           "amd.com",
                                           "intel.com",
                                           "huawei.com",
                                           "hiascend.com",
                                           "modelscope.cn",
                                           "huggingface.co",
                                           "hf.co",
                                           "hf-mirror.com",
                                           "xethub.hf.co",
                                           "amazon.com",
                                           "microsoft.com",
                                           "aliyun.com",
                                           "tuna.tsinghua.edu.cn",
                                           "numpy.org",
                                           "scipy.org",
                                           "example.com",
                                           "example.org",
                                           "w3.org",
                                           "readthedocs.org",
                                           "deepspeed.ai",
                                           "jax.dev"};

/* What stands in front of these names an account, a bucket or a machine; they stay. */
struct ending {
    const char *text;
    enum fl_redact_kind kind;
};
static const struct ending endings[] = {
    {"blob.core.windows.net", FL_REDACT_BUCKET},
    {"dfs.core.windows.net", FL_REDACT_BUCKET},
    {"file.core.windows.net", FL_REDACT_BUCKET},
    {"queue.core.windows.net", FL_REDACT_BUCKET},
    {"table.core.windows.net", FL_REDACT_BUCKET},
    {"r2.cloudflarestorage.com", FL_REDACT_BUCKET},
    {"digitaloceanspaces.com", FL_REDACT_BUCKET},
    {"storage.googleapis.com", FL_REDACT_BUCKET},
    {"amazonaws.com", FL_REDACT_BUCKET},
    {"amazonaws.com.cn", FL_REDACT_BUCKET},
    {"aliyuncs.com", FL_REDACT_BUCKET},
    {"myqcloud.com", FL_REDACT_BUCKET},
    {"myhuaweicloud.com", FL_REDACT_BUCKET},
    {"volces.com", FL_REDACT_BUCKET},
    {"bcebos.com", FL_REDACT_BUCKET},
    {"azurecr.io", FL_REDACT_HOST},
    {"core.windows.net", FL_REDACT_BUCKET},
    {"azure.com", FL_REDACT_HOST},
    {"windows.net", FL_REDACT_HOST},
    {"compute.internal", FL_REDACT_HOST},
    {"ec2.internal", FL_REDACT_HOST},
    {"svc.cluster.local", FL_REDACT_HOST},
    {"pod.cluster.local", FL_REDACT_HOST},
    {"svc", FL_REDACT_HOST},
    {"cluster.local", FL_REDACT_HOST},
};

static const char firm[] = "com\0org\0edu\0gov\0mil\0lan\0localdomain\0intranet\0corp\0arpa\0";
static const char shared[] =
    "net\0local\0internal\0cluster\0private\0priv\0svc\0io\0ai\0cloud\0dev\0tech\0int\0home\0hpc\0"
    "site\0info\0app\0xyz\0ib\0localnet\0test\0co\0";
static const char countries[] =
    "cn\0de\0uk\0fr\0jp\0eu\0ch\0us\0kr\0nl\0se\0fi\0dk\0es\0pl\0cz\0sg\0"
    "au\0ca\0br\0tw\0hk\0il\0be\0ie\0nz\0";
/* First labels of module paths. */
static const char modules[] =
    "torch\0tensorflow\0google\0numpy\0np\0scipy\0sklearn\0self\0cls\0os\0sys\0ray\0jax\0threading"
    "\0"
    "transformers\0datasets\0accelerate\0megatron\0deepspeed\0apex\0triton\0pandas\0pd\0logging\0"
    "concurrent\0multiprocessing\0asyncio\0model\0trainer\0args\0cfg\0config\0dist\0nn\0pl\0"
    "lightning\0pytorch_lightning\0wandb\0mlflow\0java\0org\0com\0io\0net\0scala\0apache\0";

static bool below(fl_str name, const char *site)
{
    fl_str z = fl_str_c(site);

    return fl_str_ends(name, z) && (name.n == z.n || name.p[name.n - z.n - 1] == '.');
}

static fl_str last_label(fl_str low)
{
    ptrdiff_t dot = fl_str_rfind_c(low, '.');

    return fl_str_from(low, (size_t)(dot + 1));
}

/* Shapes that any dotted host name has: labels of letters, digits and inner hyphens. */
static bool labels_ok(fl_str low)
{
    size_t start = 0;

    for (size_t i = 0; i <= low.n; i++) {
        if (i < low.n && low.p[i] != '.')
            continue;
        if (i == start || i - start > 63 || low.p[start] == '-' || low.p[i - 1] == '-')
            return false;
        start = i + 1;
    }
    return true;
}

bool fl_host_tld(const struct fl_scan *s, size_t a, size_t b)
{
    fl_str low = {s->low + a, b - a}, tld = last_label(low);
    ptrdiff_t dot = fl_str_find_c(low, '.');
    size_t dots = 0, odd = 0, capital = 0;

    if (dot <= 0 || !labels_ok(low) || fl_word_in(low.p, (size_t)dot, modules))
        return false;
    for (size_t i = 0; i < low.n; i++) {
        dots += low.p[i] == '.';
        odd += fl_digit(low.p[i]) || low.p[i] == '-';
        capital += s->p[a + i] != low.p[i];
    }
    if (capital && capital + dots + odd < low.n) /* CamelCase is a class */
        return false;
    if (fl_word_in(tld.p, tld.n, firm))
        return true;
    if (fl_word_in(tld.p, tld.n, shared))
        return odd > 0 || (dots >= 2 && (fl_str_eqz(tld, "net") || fl_str_eqz(tld, "internal") ||
                                         fl_str_eqz(tld, "local") || fl_str_eqz(tld, "io") ||
                                         fl_str_eqz(tld, "cloud")));
    return fl_word_in(tld.p, tld.n, countries) && (dots >= 2 || odd > 0 || low.n >= 8);
}

static void split(struct fl_scan *s, size_t a, size_t b)
{
    const char *dot = memchr(s->p + a, '.', b - a);
    size_t m = dot ? (size_t)(dot - s->p) : b;
    bool two = dot && (memchr(dot + 1, '.', b - m - 1) || fl_hosty(s->low + a, m - a));

    if (dot && !two) {
        fl_scan_add(s, a, b, FL_REDACT_DOMAIN);
        return;
    }
    fl_scan_add(s, a, m, FL_REDACT_HOST);
    if (fl_hosty(s->low + a, m - a))
        fl_scan_learn(s, a, m, FL_REDACT_HOST, false);
    if (dot)
        fl_scan_add(s, m + 1, b, FL_REDACT_DOMAIN);
}

/* What stands in front of a platform's ending. */
static void front_of(struct fl_scan *s, size_t a, size_t b, const struct ending *e)
{
    const char *dot = memchr(s->p + a, '.', b - a);
    size_t m = dot ? (size_t)(dot - s->p) : b;

    if (e->kind == FL_REDACT_HOST) {
        split(s, a, b);
        return;
    }
    /* s3, s3.eu-west-1, oss-cn-x, sts are the service; before them stands the bucket */
    for (size_t i = a; i < b; i = m + 1) {
        fl_str label;
        dot = memchr(s->p + i, '.', b - i);
        m = dot ? (size_t)(dot - s->p) : b;
        label = fl_str_n(s->low + i, m - i);
        if (fl_str_starts(label, FL_S("s3")) || fl_str_starts(label, FL_S("oss-")) ||
            fl_str_starts(label, FL_S("tos-")) || fl_str_starts(label, FL_S("ec2")) ||
            fl_word_in(label.p, label.n, "cos\0obs\0sts\0ecr\0dkr\0fsx\0api\0compute\0bj\0") ||
            fl_str_starts(label, FL_S("compute-"))) {
            b = i > a ? i - 1 : a;
            break;
        }
    }
    if (b > a && (fl_str_starts(fl_str_n(s->low + a, b - a), FL_S("ec2-"))))
        fl_scan_add(s, a, b, FL_REDACT_HOST);
    else
        fl_scan_add(s, a, b, FL_REDACT_BUCKET);
}

void fl_host_fqdn(struct fl_scan *s, size_t a, size_t b)
{
    fl_str low;

    while (b > a && (fl_back(s->p, b, 1) == '.' || fl_back(s->p, b, 1) == '-'))
        b--;
    low = fl_str_n(s->low + a, b - a);
    if (b <= a || fl_word_in(low.p, low.n, "localhost\0localhost.localdomain\0"))
        return;
    for (size_t k = 0; k < sizeof(endings) / sizeof(*endings); k++) {
        size_t n = strlen(endings[k].text);
        if (!below(low, endings[k].text))
            continue;
        if (low.n > n)
            front_of(s, a, b - n - 1, &endings[k]);
        return;
    }
    for (size_t k = 0; k < sizeof(public_sites) / sizeof(*public_sites); k++)
        if (below(low, public_sites[k]))
            return;
    split(s, a, b);
}

/* n[07-12,15] at the bracket: behind it, or 0. */
static size_t range_end(const struct fl_scan *s, size_t i)
{
    size_t e = i + 1;

    if (s->p[i] != '[' || !fl_digit(s->p[e]))
        return 0;
    while (fl_digit(s->p[e]) || s->p[e] == '-' || s->p[e] == ',')
        e++;
    return s->p[e] == ']' ? e + 1 : 0;
}

/* One name of a list; where it ends. */
static size_t one_host(struct fl_scan *s, size_t a, size_t b, bool sure)
{
    static const char words[] = "localhost\0none\0null\0true\0false\0str\0int\0self\0host\0"
                                "hostname\0default\0auto\0any\0all\0os\0socket\0args\0unknown\0"
                                "file\0static\0c10d\0etcd\0env\0tcp\0";
    size_t e = a, letters = 0, range;
    bool dot = false;

    for (; e < b && (fl_namec(s->p[e]) || (sure && s->p[e] == '_')); e++) {
        if (s->p[e] == '.' && s->p[e + 1] == '.') /* n01..n08 */
            break;
        letters += fl_alpha(s->p[e]);
        dot |= s->p[e] == '.';
    }
    range = letters ? range_end(s, e) : 0;
    if (range) {
        fl_scan_add(s, a, range, FL_REDACT_HOST);
        return range;
    }
    while (e > a && !fl_alnum(fl_back(s->p, e, 1)))
        e--;
    if (letters == 0 || e - a < 2 || s->p[e] == '(' || s->p[e] == '[' || s->p[e] == '%' ||
        s->p[e] == '=' || !fl_alnum(s->p[a]) || fl_word_in(s->low + a, e - a, words))
        return e;
    if (dot) {
        size_t first = strcspn(s->p + a, ".");
        if (fl_host_tld(s, a, e) || (first < e - a && fl_hosty(s->low + a, first)) ||
            (sure && labels_ok(fl_str_n(s->low + a, e - a)) &&
             !fl_word_in(s->low + a, first, modules)))
            fl_host_fqdn(s, a, e);
    } else if (sure || fl_hosty(s->low + a, e - a)) {
        fl_scan_add(s, a, e, FL_REDACT_HOST);
        if (fl_hosty(s->low + a, e - a))
            fl_scan_learn(s, a, e, FL_REDACT_HOST, false);
    }
    return e;
}

void fl_host_value(struct fl_scan *s, size_t a, size_t b, bool sure)
{
    for (;;) {
        size_t e = one_host(s, a, b, sure);
        if (e <= a || e + 1 >= b || s->p[e] != ',' || !fl_alpha(s->p[e + 1]))
            return;
        a = e + 1;
    }
}

/* Four numbers up to 255 with `sep` between them, at `i`: where they end, or 0. */
static size_t quad(const struct fl_scan *s, size_t i, char sep, unsigned char v[4])
{
    for (int k = 0; k < 4; k++) {
        unsigned x = 0;
        size_t n = 0;
        if (k && s->p[i++] != sep)
            return 0;
        for (; n < 4 && fl_digit(s->p[i]); n++)
            x = x * 10 + (unsigned)(s->p[i++] - '0');
        if (n == 0 || n > 3 || x > 255)
            return 0;
        v[k] = (unsigned char)x;
    }
    return fl_digit(s->p[i]) ? 0 : i;
}

static bool is_private(const unsigned char v[4])
{
    return v[0] == 10 || (v[0] == 172 && v[1] >= 16 && v[1] < 32) || (v[0] == 192 && v[1] == 168) ||
           (v[0] == 100 && v[1] >= 64 && v[1] < 128);
}

/* Is the word in front of `a` one that versions follow? */
static bool version_before(const struct fl_scan *s, size_t a)
{
    size_t e = a, i;

    while (e > 0 && a - e < 4 &&
           (fl_blank(fl_back(s->p, e, 1)) || strchr(":=<>~('\"", fl_back(s->p, e, 1))))
        e--;
    if (e < a && (s->p[e] == '=' || s->p[e] == '>' || s->p[e] == '<') && s->p[e + 1] == '=')
        return true;
    for (i = e; i > 0 && fl_alpha(fl_back(s->p, i, 1)) && e - i < 16;)
        i--;
    return fl_word_in(
        s->low + i, e - i,
        "version\0ver\0driver\0release\0firmware\0fw\0build\0cudnn\0cuda\0nccl\0rccl\0"
        "hccl\0cann\0revision\0v\0rel\0section\0sec\0vbios\0bios\0");
}

/* The word before `a`, behind a blank or a sign. */
static fl_str sign_and_word(const struct fl_scan *s, size_t a)
{
    size_t e = a, i;

    while (e > 0 && a - e < 3 && strchr(" :=['\"", fl_back(s->p, e, 1)))
        e--;
    for (i = e; i > 0 && fl_alpha(fl_back(s->p, i, 1)) && e - i < 16;)
        i--;
    return fl_str_n(s->low + i, e < a ? e - i : 0);
}

static bool way(fl_str word)
{
    return fl_word_in(word.p, word.n, "to\0from\0by\0at\0");
}

/* "upgraded NCCL from 2.18.5.1 to": are the ends of that way versions? */
static bool release_before(const struct fl_scan *s, size_t a)
{
    static const char *const words[] = {"version", "upgrad", "updat", "driver", "release", "bump"};
    fl_str word = sign_and_word(s, a), head;

    if (!way(word))
        return false;
    head = fl_scan_head(s, (size_t)(word.p - s->low));
    for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
        if (fl_str_has(head, fl_str_c(words[k])) && !fl_str_has(head, FL_S("connect")))
            return true;
    return false;
}

/* Is it one that addresses follow? */
static bool address_before(const struct fl_scan *s, size_t a)
{
    fl_str word = sign_and_word(s, a);

    return way(word) ||
           fl_word_in(
               word.p, word.n,
               "telnet\0nc\0host\0hosts\0peer\0peers\0addr\0address\0addresses\0ip\0via\0gateway\0"
               "server\0endpoint\0remote\0client\0ping\0traceroute\0nameserver\0dns\0"
               "route\0connect\0connected\0connecting\0ssh\0src\0dst\0");
}

/* "10.1.2.3 (n07)", and the next column of a table of pods: the name of the address. */
static void beside(struct fl_scan *s, size_t e)
{
    size_t a = e, b;

    while (fl_blank(s->p[a]))
        a++;
    a += a > e && s->p[a] == '(';
    for (b = a; fl_namec(s->p[b]);)
        b++;
    if (a > e && fl_hosty(s->low + a, b - a) && !fl_word(s->p[b]))
        fl_host_value(s, a, b, false);
}

/* An address at `i`; where it ends, or `i`. */
static size_t ipv4(struct fl_scan *s, size_t i)
{
    unsigned char v[4];
    size_t e = quad(s, i, '.', v);
    char before = fl_back(s->p, i, 1);

    if (e == 0 || fl_word(s->p[e]) || (s->p[e] == '.' && fl_digit(s->p[e + 1])) ||
        fl_word(before) || (before == '.' && i > 1 && fl_word(fl_back(s->p, i, 2))))
        return i;
    if (v[0] == 0 || v[0] == 127 || v[0] == 255 || (v[0] == 169 && v[1] == 254))
        return e;
    if (!is_private(v)) {
        if (before == '-' || (s->p[e] == '-' && fl_alnum(s->p[e + 1])) || version_before(s, i) ||
            release_before(s, i))
            return e;
        if (!address_before(s, i) && v[1] < 10 && v[2] < 10 && v[3] < 10 && v[0] < 30 &&
            s->p[e] != ':' && before != '@')
            return e; /* 7.2.0.0, 12.4.0.1: a version, more likely */
    }
    fl_scan_add(s, i, e, FL_REDACT_IP);
    beside(s, e);
    return e;
}

/* ip-10-1-2-3, and 10-1-2-3 as a pod's first label. */
static size_t dashed(struct fl_scan *s, size_t i)
{
    unsigned char v[4];
    size_t head = 0, e;

    if (s->low[i] == 'i' && s->low[i + 1] == 'p' && s->p[i + 2] == '-')
        head = 3;
    else if (memcmp(s->low + i, "ec2-", s->n - i < 4 ? s->n - i : 4) == 0 && s->n - i > 4)
        head = 4;
    else if (memcmp(s->low + i, "host-", s->n - i < 5 ? s->n - i : 5) == 0 && s->n - i > 5)
        head = 5;
    e = quad(s, i + head, '-', v);
    if (e == 0 || fl_word(s->p[e]) || fl_word(fl_back(s->p, i, 1)) || fl_back(s->p, i, 1) == '-')
        return i;
    if (!head && !(is_private(v) && s->p[e] == '.' && fl_alpha(s->p[e + 1])))
        return i;
    fl_scan_add(s, i, e, FL_REDACT_HOST);
    fl_scan_learn(s, i, e, FL_REDACT_HOST, false);
    return e;
}

/* The first group of addresses that are given out: global, unique local, link-local, NAT64. */
static bool real_first(const char *p, size_t n)
{
    if (n == 4)
        return p[0] == '2' || p[0] == '3' ||
               (p[0] == 'f' && (p[1] == 'c' || p[1] == 'd' || p[1] == 'e'));
    return n == 2 && p[0] == '6' && p[1] == '4';
}

/* Hexadecimal groups at `i`; where they end, or `i`. */
static size_t ipv6(struct fl_scan *s, size_t i)
{
    size_t e = i, groups = 0, first = 0, longest = 0, gaps = 0, n;

    for (;;) {
        for (n = 0; n < 5 && fl_hexdigit(s->p[e + n]);)
            n++;
        if (n > 4)
            return i;
        first = groups ? first : n;
        longest = n > longest ? n : longest;
        groups += n > 0;
        e += n;
        if (s->p[e] != ':' || (n == 0 && fl_back(s->p, e, 1) == ':' && gaps == 0))
            break;
        if (s->p[e + 1] == ':') {
            if (gaps++)
                return i;
            e += 2;
            if (!fl_hexdigit(s->p[e]))
                break;
        } else if (fl_hexdigit(s->p[e + 1])) {
            e++;
        } else {
            break;
        }
        if (groups > 8)
            return i;
    }
    if (fl_word(s->p[e]) || (s->p[e] == ':' && fl_word(s->p[e + 1])))
        return i;
    if (gaps ? !real_first(s->low + i, first) : groups != 8 || longest < 3)
        return i;
    fl_scan_add(s, i, e, FL_REDACT_IP);
    return e;
}

/* NCCL glues "remoteGids" and what follows. */
static size_t glued_gid(struct fl_scan *s, size_t i)
{
    static const fl_str heads[] = {{"remotegids", 10}, {"localgids", 9}};
    size_t e;

    for (size_t k = 0; k < 2; k++) {
        if (!fl_str_starts(fl_str_n(s->low + i, s->n - i), heads[k]))
            continue;
        e = ipv6(s, i + heads[k].n);
        return e > i + heads[k].n ? e : i;
    }
    return i;
}

/* A dotted name at `i`; where the run ends. */
static size_t dotted(struct fl_scan *s, size_t i, bool dot)
{
    size_t e = i, b;
    char before = fl_back(s->p, i, 1);

    while (e < s->n && fl_namec(s->p[e]))
        e++;
    for (b = e; b > i && !fl_alnum(fl_back(s->p, b, 1));)
        b--;
    if (!dot && !memchr(s->p + i, '.', b - i))
        return e;
    if (fl_word(s->p[e]) || s->p[e] == '(' || s->p[e] == '[' || s->p[e] == '@' || before == '_' ||
        before == '-' || before == '.' || before == '$' || before == '%' ||
        (before == '/' && fl_back(s->p, i, 2) != '/'))
        return e;
    if (fl_host_tld(s, i, b))
        fl_host_fqdn(s, i, b);
    return e;
}

void fl_scan_hosts(struct fl_scan *s)
{
    for (size_t i = 0; i < s->n;) {
        char c = s->p[i];
        size_t e = i;
        if (!fl_alnum(c) || fl_alnum(fl_back(s->p, i, 1))) {
            i++;
            continue;
        }
        if (fl_digit(c))
            e = ipv4(s, i);
        if (e == i && fl_hexdigit(c) && fl_back(s->p, i, 1) != ':' && fl_back(s->p, i, 1) != '.')
            e = ipv6(s, i);
        if (e == i && (fl_digit(c) || s->low[i] == 'i' || s->low[i] == 'e' || s->low[i] == 'h'))
            dashed(s, i);
        if (s->low[i] == 'r' || s->low[i] == 'l')
            e = glued_gid(s, i);
        if (e == i)
            e = dotted(s, i, false);
        i = e > i ? e : i + 1;
    }
}
