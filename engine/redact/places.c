/*
 * Hosts that the shape of a line tells: who printed it, which node a scheduler means.
 *
 * Bare names have no shape of their own, so only places are believed where software prints a host
 * and nothing else: `HOST:pid:tid [0] NCCL`, the fourth word of a syslog line, Open MPI's
 * `[HOST:pid]`, Slurm's `error: HOST: task` and `ON HOST CANCELLED`, pdsh, what is connected to,
 * and a word that looks like a machine behind `host` or `node` or before `: connection lost`. Where
 * the name could only be a machine's (fl_hosty) it is known for the rest of the conversation;
 * `brisk` is hidden in that place alone, because elsewhere it may be a word. All other bare names
 * come from the caller, who knows the job's places better.
 */
#include "redact/scan.h"

static size_t name_end(const struct fl_scan *s, size_t i)
{
    while (i < s->n && fl_namec(s->p[i]) && !(s->p[i] == '.' && s->p[i + 1] == '.'))
        i++;
    return i;
}

static size_t name_back(const struct fl_scan *s, size_t i)
{
    size_t from = i;

    while (i > 0 && from - i < 256 && fl_namec(fl_back(s->p, i, 1)))
        i--;
    return i;
}

static size_t digits(const struct fl_scan *s, size_t i)
{
    while (fl_digit(s->p[i]))
        i++;
    return i;
}

/* [a, b) stands where a host stands. */
static void place(struct fl_scan *s, size_t a, size_t b)
{
    bool letter = false;

    for (size_t i = a; i < b; i++)
        letter |= fl_alpha(s->p[i]);
    if (!letter || b - a < 2 || !fl_alnum(s->p[a]) || !fl_alnum(fl_back(s->p, b, 1)) ||
        fl_word_in(s->low + a, b - a, "localhost\0none\0null\0unknown\0"))
        return;
    if (memchr(s->p + a, '.', b - a)) {
        if (fl_host_tld(s, a, b) || fl_hosty(s->low + a, strcspn(s->p + a, ".")))
            fl_host_fqdn(s, a, b);
        return;
    }
    fl_scan_add(s, a, b, FL_REDACT_HOST);
    if (fl_hosty(s->low + a, b - a))
        fl_scan_learn(s, a, b, FL_REDACT_HOST, false);
}

/* HOST:pid:tid [ at a colon. */
static void nccl(struct fl_scan *s, size_t colon)
{
    size_t e = digits(s, colon + 1), f;

    if (e == colon + 1 || s->p[e] != ':')
        return;
    f = digits(s, e + 1);
    if (f > e + 1 && s->p[f] == ' ' && (s->p[f + 1] == '[' || s->p[f + 1] == 'N')) {
        size_t a = name_back(s, colon);
        if (!fl_word(fl_back(s->p, a, 1)) && fl_back(s->p, a, 1) != ':')
            place(s, a, colon);
    }
}

/* [HOST:123] of Open MPI, at the colon: a file's name is no host. */
static void ompi(struct fl_scan *s, size_t colon)
{
    size_t e = digits(s, colon + 1), a = name_back(s, colon);

    if (fl_back(s->p, a, 1) == '[' && s->p[e] == ']' && e > colon + 1 &&
        fl_hosty(s->low + a, colon - a))
        place(s, a, colon);
}

/* pdsh@HOST: HOST: */
static void pdsh(struct fl_scan *s, size_t at)
{
    size_t b = name_end(s, at + 1), a;

    if (at < 4 || memcmp(s->low + at - 4, "pdsh", 4) != 0 || s->p[b] != ':')
        return;
    place(s, at + 1, b);
    a = b + 1;
    while (fl_blank(s->p[a]))
        a++;
    b = name_end(s, a);
    if (s->p[b] == ':' && b > a)
        place(s, a, b);
}

/* A clock time such as 12:03:04.123+02:00 that ends at `i`. */
static bool clock_before(const struct fl_scan *s, size_t i)
{
    size_t a = i;

    while (a > 0 && i - a < 32 && !fl_space(fl_back(s->p, a, 1)))
        a--;
    for (size_t k = a; k + 8 <= i; k++)
        if (fl_digit(s->p[k]) && fl_digit(s->p[k + 1]) && s->p[k + 2] == ':' &&
            fl_digit(s->p[k + 3]) && fl_digit(s->p[k + 4]) && s->p[k + 5] == ':' &&
            fl_digit(s->p[k + 6]) && fl_digit(s->p[k + 7]))
            return true;
    return false;
}

static size_t word_at(const struct fl_scan *s, size_t i, const char *z)
{
    size_t n = strlen(z);

    return i + n <= s->n && memcmp(s->p + i, z, n) == 0 ? i + n : 0;
}

/* TIME HOST kernel: or TIME HOST daemon[12]: */
static void syslog_line(struct fl_scan *s, size_t a, size_t end)
{
    size_t i = a, b, t, pid, limit = a + 100 < end ? a + 100 : end;

    for (; i < limit && s->p[i] != ' '; i++)
        ;
    for (; i < limit; i = b) {
        while (i < limit && fl_blank(s->p[i]))
            i++;
        b = name_end(s, i);
        if (b > i && s->p[b] == ' ' && fl_blank(fl_back(s->p, i, 1)) && clock_before(s, i - 1)) {
            for (t = b + 1; fl_word(s->p[t]) || s->p[t] == '-' || s->p[t] == '.';)
                t++;
            pid = s->p[t] == '[' ? digits(s, t + 1) : 0; /* a list of nodes has brackets, too */
            if (t > b + 1 &&
                (pid ? pid > t + 1 && s->p[pid] == ']' : s->p[t] == ':' && fl_space(s->p[t + 1])) &&
                (fl_hosty(s->low + i, strcspn(s->p + i, ". ")) || pid ||
                 word_at(s, b + 1, "kernel:")))
                place(s, i, b);
            return;
        }
        while (b < limit && !fl_blank(s->p[b]))
            b++;
    }
}

/* srun: error: HOST: task, and what other Slurm programs say in that shape. */
static void slurm_line(struct fl_scan *s, size_t a, size_t end)
{
    static const char *const heads[] = {
        "srun: error: ", "srun: ", "mpirun: error: ", "slurmstepd: error: ", "scontrol: error: "};

    for (size_t i = a; i < end && i < a + 64; i++) {
        if (s->p[i] != 's' && s->p[i] != 'm')
            continue;
        for (size_t k = 0; k < sizeof(heads) / sizeof(*heads); k++) {
            size_t b = word_at(s, i, heads[k]), e;
            if (!b)
                continue;
            e = name_end(s, b);
            if (s->p[e] == ':' &&
                (fl_hosty(s->low + b, strcspn(s->p + b, ".:")) || word_at(s, e, ": task")))
                place(s, b, e);
            else if (s->p[e] == '[' && s->p[e + 1] != ' ')
                fl_host_value(s, b, e, false);
            return;
        }
    }
}

/* What follows a word that hosts follow. */
static void behind_word(struct fl_scan *s, size_t a, size_t b)
{
    static const char words[] = "host\0node\0nodes\0hostname\0machine\0server\0peer\0nodelist\0"
                                "ping\0traceroute\0ssh\0rsh\0telnet\0mtr\0";
    size_t n = b - a, i = b, e;
    bool on = n == 2 && s->p[a] == 'O' && s->p[a + 1] == 'N';

    if (s->p[b] != ' ' || !(on || fl_word_in(s->low + a, n, words)))
        return;
    while (s->p[i] == ' ' && i - b < 3)
        i++;
    if (fl_quote(s->p[i]))
        i++;
    e = name_end(s, i);
    while (e > i && !fl_alnum(fl_back(s->p, e, 1)))
        e--;
    if (e == i || fl_word(s->p[e]) || s->p[e] == '(' || s->p[e] == '=')
        return;
    while (s->p[e] == ',' && fl_alpha(s->p[e + 1])) /* n06,n07 */
        e = name_end(s, e + 1);
    if (on && (word_at(s, e, " CANCELLED") || word_at(s, e, " FAILED")))
        place(s, i, e);
    else
        fl_host_value(s, i, e, false);
}

/* "connect() to n07:29500", "connect to [n07]:29500", "TCPStore(n07, 29500)", "getaddrinfo failed
 * for n07": [a, b) is a word. Where a port follows, any name is a host's. */
static void connected(struct fl_scan *s, size_t a, size_t b)
{
    static const char words[] = "to\0with\0for\0from\0at\0by\0";
    bool store = s->p[b] == '(' && b - a >= 5 && memcmp(s->low + b - 5, "store", 5) == 0;
    size_t i = b + 1, e, port;
    bool after = s->p[b] == ':' && s->p[b + 1] == ' ' && /* "Name or service not known: 'n07'" */
                 fl_word_in(s->low + a, b - a, "known\0resolution\0");
    fl_str head;

    if (!store && !after && !(s->p[b] == ' ' && fl_word_in(s->low + a, b - a, words)))
        return;
    head = fl_scan_head(s, a);
    i += after;
    if (!store && !(after && fl_str_has(head, FL_S("name"))) &&
        !fl_str_has(head, FL_S("connect")) && !fl_str_has(head, FL_S("getaddrinfo")) &&
        !fl_str_has(head, FL_S("resolve")) && !fl_str_has(head, FL_S("lookup")))
        return;
    i += s->p[i] == '[' || fl_quote(s->p[i]);
    e = name_end(s, i);
    while (e > i && !fl_alnum(fl_back(s->p, e, 1)))
        e--;
    if (e == i || fl_word(s->p[e]) || s->p[e] == '(' || s->p[e] == '=')
        return;
    port = e + (s->p[e] == ']' || fl_quote(s->p[e]));
    port = s->p[port] == ':' ? port + 1 : store && s->p[port] == ',' ? port + 2 : 0;
    if (port)
        port = digits(s, port) - port;
    fl_host_value(s, i, e, port >= 4 && port <= 5 && !memchr(s->p + i, '.', e - i));
}

/* "dgx-042: connection lost", at the colon: a machine's name at a blank, and what is said of one.
 */
static void reported(struct fl_scan *s, size_t colon)
{
    static const char said[] =
        "connection\0kernel\0ssh\0unreachable\0rebooted\0rebooting\0down\0lost\0host\0node\0"
        "heartbeat\0panic\0mce\0nvrm\0xid\0power\0ipmi\0drained\0draining\0slurmd\0daemon\0"
        "task\0tasks\0terminate\0bash\0permission\0unresponsive\0crashed\0died\0offline\0";
    size_t a = name_back(s, colon), b = colon + 2, e = colon, l, w;
    fl_str rest = fl_str_n(s->low + b, b < s->n ? s->n - b : 0);

    while (e > a && fl_digit(fl_back(s->p, e, 1)))
        e--;
    for (l = e; l > a && fl_alpha(fl_back(s->p, l, 1));)
        l--;
    w = e - (e > a && fl_back(s->p, e, 1) == '-');
    if (colon - a < 4 || e == colon || !fl_space(fl_back(s->p, a, 1)) ||
        (l > a && fl_back(s->p, l, 1) != '-') || !fl_hosty(s->low + a, colon - a) ||
        fl_word_in(s->low + l, e - l, "ost\0mdt\0mgs\0") ||
        (fl_ordinary(s->low + a, w - a) && !fl_word_in(s->low + a, w - a, "node\0server\0")))
        return; /* phase2, worker-3; a target or a client of Lustre */
    while (fl_alpha(s->p[b]))
        b++;
    if (fl_word_in(s->low + colon + 2, b - colon - 2, said) ||
        fl_str_starts(rest, FL_S("not respon")) || fl_str_starts(rest, FL_S("no route")) ||
        fl_str_starts(rest, FL_S("timed out")))
        place(s, a, colon);
}

/* nas3:/export, at the colon. */
static void exporting(struct fl_scan *s, size_t colon)
{
    size_t a = name_back(s, colon);

    if ((fl_space(fl_back(s->p, a, 1)) || fl_quote(fl_back(s->p, a, 1))) &&
        fl_alnum(s->p[colon + 2]) && fl_hosty(s->low + a, strcspn(s->p + a, ".:")))
        place(s, a, colon);
}

void fl_scan_places(struct fl_scan *s)
{
    for (size_t a = 0, end; a < s->n; a = end + 1) {
        const char *lf = memchr(s->p + a, '\n', s->n - a);
        end = lf ? (size_t)(lf - s->p) : s->n;
        syslog_line(s, a, end);
        slurm_line(s, a, end);
        for (size_t i = a; i < end; i++) {
            if (s->p[i] == ':' && s->p[i + 1] == ' ') {
                reported(s, i);
            } else if (s->p[i] == ':' && s->p[i + 1] == '/' && s->p[i + 2] != '/') {
                exporting(s, i);
            } else if (s->p[i] == ':' && fl_digit(s->p[i + 1])) {
                nccl(s, i);
                ompi(s, i);
            } else if (s->p[i] == '@') {
                pdsh(s, i);
            } else if (fl_alpha(s->p[i]) && !fl_word(fl_back(s->p, i, 1))) {
                size_t b = i;
                while (fl_alpha(s->p[b]))
                    b++;
                behind_word(s, i, b);
                connected(s, i, b);
                i = b - 1;
            }
        }
    }
}
