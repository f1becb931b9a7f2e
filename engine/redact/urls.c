/*
 * URLs: who logs in, at which host, in which bucket.
 *
 * A URL says by its scheme what its authority is. `user:password@` goes in both parts, a bucket or
 * a container by the object stores' schemes and by their hosts' names, everything else is a host,
 * dotted or not. The path stays, for it says what was fetched, except for the bucket where that is
 * the path's first part. Keys in the query are found by their names (assign.c).
 */
#include "redact/scan.h"

static bool ends_authority(char c)
{
    return fl_space(c) || fl_quote(c) || c == '/' || c == '?' || c == '#' || c == '<' || c == '>' ||
           c == ')' || c == '(' || c == ',' || c == ';' || c == '|' || c == ']' || c == '}' ||
           c == '{' || c == '\\';
}

static size_t component(const struct fl_scan *s, size_t i)
{
    while (i < s->n && !ends_authority(s->p[i]) && s->p[i] != ':')
        i++;
    while (i > 0 && fl_back(s->p, i, 1) == '.')
        i--;
    return i;
}

/* Hosts whose first path component is a bucket. */
static bool path_style(fl_str host)
{
    if (fl_str_eq(host, FL_S("storage.googleapis.com")) ||
        fl_str_eq(host, FL_S("storage.cloud.google.com")))
        return true;
    return (fl_str_starts(host, FL_S("s3.")) || fl_str_starts(host, FL_S("s3-"))) &&
           fl_str_has(host, FL_S("amazonaws.com"));
}

static void bucket(struct fl_scan *s, size_t a, size_t b)
{
    if (b > a && s->p[a] != '{' && s->p[a] != '$' && s->p[a] != '%')
        fl_scan_add(s, a, b, FL_REDACT_BUCKET);
}

/* user:password@ or token@ in [a, at). */
static void login(struct fl_scan *s, size_t a, size_t at)
{
    const char *colon = memchr(s->p + a, ':', at - a);
    size_t m = colon ? (size_t)(colon - s->p) : at;

    if (colon) {
        fl_scan_add(s, m + 1, at, FL_REDACT_SECRET);
        if (!fl_word_in(s->low + a, m - a, "git\0oauth2\0x-access-token\0root\0token\0"))
            fl_scan_add(s, a, m, at - a > 40 && m - a > 20 ? FL_REDACT_SECRET : FL_REDACT_USER);
    } else if (fl_opaque(s->p + a, m - a) || m - a >= 20) {
        fl_scan_add(s, a, m, FL_REDACT_SECRET);
    } else if (!fl_word_in(s->low + a, m - a, "git\0root\0")) {
        fl_scan_add(s, a, m, FL_REDACT_USER);
    }
}

/* The '@' that ends a login: the last one before the authority ends, for passwords hold anything.
 */
static size_t login_end(const struct fl_scan *s, size_t a, size_t *stop)
{
    size_t i = a, at = 0;

    while (i < s->n && i - a < 1024 && !fl_space(s->p[i]) && s->p[i] != '"' && s->p[i] != '\'' &&
           s->p[i] != '<' && s->p[i] != '>') {
        if (s->p[i] == '@') {
            at = i;
        } else if (s->p[i] == '/' || s->p[i] == '?' || s->p[i] == '#') {
            /* an unescaped one inside a password is followed by another '@' and a host */
            const char *more = memchr(s->p + a, ':', i - a);
            if (at || !more || fl_digit(more[1]))
                break;
        }
        i++;
    }
    *stop = i;
    return at;
}

static void store(struct fl_scan *s, size_t a, size_t at, size_t e)
{
    if (at) { /* container@account.host */
        bucket(s, a, at);
        fl_host_fqdn(s, at + 1, e);
    } else {
        bucket(s, a, e);
    }
}

/* The bucket in a path: first, or behind /b/ of the JSON interface. */
static void path_bucket(struct fl_scan *s, size_t a)
{
    size_t e = component(s, a), k;

    if (!fl_word_in(s->low + a, e - a, "upload\0storage\0download\0batch\0resumable\0")) {
        bucket(s, a, e);
        return;
    }
    for (k = e; k < e + 40 && k + 3 < s->n && !fl_space(s->p[k]); k++) {
        if (memcmp(s->p + k, "/b/", 3) == 0) {
            bucket(s, k + 3, component(s, k + 3));
            return;
        }
    }
}

/* wandb.ai/PERSON/project: also a person's name, where it is not one of the site's own pages. */
static void person(struct fl_scan *s, fl_str host, size_t a)
{
    size_t e = component(s, a);

    if (fl_str_eq(host, FL_S("wandb.ai")) &&
        !fl_word_in(s->low + a, e - a, "authorize\0site\0settings\0docs\0home\0login\0signup\0"))
        fl_user_value(s, a, e);
}

static void authority(struct fl_scan *s, size_t scheme, size_t colon)
{
    static const char stores[] = "s3\0s3a\0s3n\0gs\0gcs\0az\0azure\0abfs\0abfss\0wasb\0wasbs\0oss\0"
                                 "cos\0cosn\0obs\0tos\0bos\0r2\0b2\0swift\0minio\0dbfs\0jfs\0adl\0";
    /* behind these stands a host; behind others (containerd, local) it must look like one */
    static const char hosted[] =
        "http\0https\0tcp\0udp\0grpc\0grpcs\0ssh\0sftp\0ftp\0ftps\0redis\0rediss\0postgres\0"
        "postgresql\0mysql\0mariadb\0mongodb\0amqp\0amqps\0hdfs\0viewfs\0nfs\0smb\0ws\0wss\0etcd\0"
        "nats\0kafka\0ldap\0ldaps\0clickhouse\0git\0mqtt\0rdma\0ray\0socks5\0socks5h\0oracle\0"
        "sqlserver\0mssql\0cassandra\0elasticsearch\0spark\0dask\0jdbc\0lustre\0beegfs\0";
    size_t a = colon + 3, stop, at = login_end(s, a, &stop), e;
    const char *low = s->low + scheme;
    fl_str host;

    if (fl_word_in(low, colon - scheme, "file\0containerd\0docker\0pullable\0"))
        return;
    e = component(s, at ? at + 1 : a);
    if (fl_word_in(low, colon - scheme, stores)) {
        store(s, a, at && at < e ? at : 0, e);
        return;
    }
    if (at)
        login(s, a, at);
    a = at ? at + 1 : a;
    host = fl_str_n(s->low + a, e > a ? e - a : 0);
    if (host.n == 0)
        return;
    fl_host_value(s, a, e,
                  fl_word_in(low, colon - scheme, hosted) || memchr(low, '+', colon - scheme));
    if (s->p[e] != '/')
        return;
    if (path_style(host))
        path_bucket(s, e + 1);
    person(s, host, e + 1);
}

static void arn(struct fl_scan *s, size_t i)
{
    static const fl_str head = {"arn:aws", 7};
    size_t a = i, e = i, colons = 0;

    if (!fl_str_starts(fl_str_n(s->low + i, s->n - i), head))
        return;
    for (; e < s->n && colons < 5 && !fl_space(s->p[e]) && !fl_quote(s->p[e]); e++) {
        if (s->p[e] != ':')
            continue;
        if (++colons == 5 && e - a == 13) /* the account's twelve digits */
            fl_scan_add(s, a + 1, e, FL_REDACT_SECRET);
        a = e;
    }
    if (colons == 5 && fl_str_has(fl_str_n(s->low + i, e - i), FL_S(":s3:")))
        bucket(s, e, component(s, e));
}

void fl_scan_urls(struct fl_scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *colon = memchr(s->p + i, ':', s->n - i);
        size_t a;
        if (!colon)
            break;
        i = (size_t)(colon - s->p);
        for (a = i;
             a > 0 && i - a < 24 && (fl_alnum(fl_back(s->p, a, 1)) || fl_back(s->p, a, 1) == '+');)
            a--;
        if (i > a && s->p[i + 1] == '/' && s->p[i + 2] == '/')
            authority(s, a, i);
        else if (i - a == 3 && s->low[a] == 'a')
            arn(s, a);
    }
}
