/*
 * A chat server that misbehaves on purpose.
 *
 *   llm_server [--mode MODE] [--port N] [--answer FILE] [--key KEY] [--keep FILE] [--tls DIR]
 *              [--delay SECONDS]
 *
 * Prints "PORT N" on stdout and serves until it is killed, or until its stdin ends when that is a
 * pipe, so that it never outlives a test. The mode is the first part of the path when that is one
 * (http://127.0.0.1:N/hang/v1), else --mode, else "good". With --keep every request is appended to
 * the file: method, path, headers, body. With --tls it speaks TLS with a certificate that it makes
 * and writes to DIR/cert.pem. "good" answers with the text of --answer, as stream or as a whole,
 * as it is asked; without it with a small valid verdict that cites a.log:1.
 *
 * "refuse" cannot be served: --mode refuse prints a port on which nobody listens.
 *
 * Each connection has a thread of its own, so a mode may simply sleep. What a mode does once and
 * then not again ("429-once") is counted for each mode.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_BODY (16u << 20)

enum what {
    GOOD,
    HANG,
    DRIP,
    RESET,
    CUT,
    LIMIT,
    FAIL,
    PAGE,
    HALF,
    SCHEMA,
    UNKNOWN_CAUSE,
    INVENTED,
    HUGE_REPLY,
    REDIRECT,
    TYPE,
    EMPTY,
    NO_SCHEMA,
    CONTEXT,
    DENIED,
    MISSING,
    NO_MODEL,
    ERROR_200,
    BROKEN_STREAM,
    STREAM_ERROR,
    BAD_VECTORS,
    NAN_VECTORS,
    SLOW
};

struct mode {
    const char *name;
    enum what what;
    int status;
    const char *header, *value; /* one more header */
    unsigned times;             /* misbehaves so often and is good then; 0: always */
};

static const struct mode modes[] = {
    {"good", GOOD, 200, NULL, NULL, 0},
    {"hang", HANG, 200, NULL, NULL, 0},
    {"drip", DRIP, 200, NULL, NULL, 0},
    {"reset", RESET, 200, NULL, NULL, 0},
    {"reset-once", RESET, 200, NULL, NULL, 1},
    {"slow", SLOW, 200, NULL, NULL, 0},
    {"cut", CUT, 200, NULL, NULL, 0},
    {"429", LIMIT, 429, NULL, NULL, 0},
    {"429-once", LIMIT, 429, NULL, NULL, 1},
    {"429-after", LIMIT, 429, "Retry-After", "1", 1},
    {"429-long", LIMIT, 429, "Retry-After", "86400", 0},
    {"429-date", LIMIT, 429, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT", 1},
    {"500", FAIL, 500, NULL, NULL, 0},
    {"500-once", FAIL, 500, NULL, NULL, 1},
    {"503", FAIL, 503, NULL, NULL, 0},
    {"html", PAGE, 200, NULL, NULL, 0},
    {"half", HALF, 200, NULL, NULL, 0},
    {"schema", SCHEMA, 200, NULL, NULL, 0},
    {"schema-once", SCHEMA, 200, NULL, NULL, 1},
    {"cause", UNKNOWN_CAUSE, 200, NULL, NULL, 0},
    {"invented", INVENTED, 200, NULL, NULL, 0},
    {"huge", HUGE_REPLY, 200, NULL, NULL, 0},
    {"redirect", REDIRECT, 307, "Location", "http://127.0.0.1:9/elsewhere?key=secret", 0},
    {"type", TYPE, 200, NULL, NULL, 0},
    {"empty", EMPTY, 200, NULL, NULL, 0},
    {"no-schema", NO_SCHEMA, 400, NULL, NULL, 0},
    {"context", CONTEXT, 400, NULL, NULL, 0},
    {"401", DENIED, 401, NULL, NULL, 0},
    {"403", DENIED, 403, NULL, NULL, 0},
    {"404", MISSING, 404, NULL, NULL, 0},
    {"no-model", NO_MODEL, 404, NULL, NULL, 0}, /* as 404, but it lists what it has */
    {"error-200", ERROR_200, 200, NULL, NULL, 0},
    {"broken-stream", BROKEN_STREAM, 200, NULL, NULL, 0},
    {"stream-error", STREAM_ERROR, 200, NULL, NULL, 0},
    {"vectors", BAD_VECTORS, 200, NULL, NULL, 0},
    {"nan", NAN_VECTORS, 200, NULL, NULL, 0},
};
#define NMODES (sizeof(modes) / sizeof(*modes))

struct server {
    const struct mode *mode;
    const char *key, *keep;
    char *answer;
    double delay;
    pthread_mutex_t lock;
    unsigned count[NMODES];
};

/* One request while its body comes. */
struct visit {
    char *body;
    size_t n;
};

/* A body that is sent piece by piece. */
struct piecemeal {
    char *text;
    size_t n, at, most; /* bytes a piece; 0: as many as fit */
    double pause;       /* before each piece */
    size_t break_at;    /* the connection is reset there; SIZE_MAX: never */
    int fd;
};

static void rest(double seconds)
{
    struct timespec t;

    t.tv_sec = (time_t)seconds;
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

/* ---- text ---- */

struct text {
    char *p;
    size_t n, cap;
};

static void put(struct text *t, const char *s, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        t->cap = (t->n + n + 1) * 2;
        t->p = realloc(t->p, t->cap);
        if (!t->p)
            exit(3);
    }
    memcpy(t->p + t->n, s, n);
    t->n += n;
    t->p[t->n] = 0;
}

static void putz(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

/* As a JSON string, with its quotation marks. */
static void put_string(struct text *t, const char *s, size_t n)
{
    putz(t, "\"");
    for (size_t i = 0; i < n; i++) {
        char hex[8];
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\') {
            put(t, "\\", 1);
            put(t, s + i, 1);
        } else if (c < 32) {
            snprintf(hex, sizeof(hex), "\\u%04x", c);
            putz(t, hex);
        } else {
            put(t, s + i, 1);
        }
    }
    putz(t, "\"");
}

static void whole_reply(struct text *t, const char *content)
{
    putz(t, "{\"id\":\"c1\",\"object\":\"chat.completion\",\"model\":\"fake-1\",\"choices\":[{"
            "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    put_string(t, content, strlen(content));
    putz(t, "},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,"
            "\"completion_tokens\":20,\"total_tokens\":120}}");
}

static void event(struct text *t, const char *content, size_t n)
{
    putz(t, "data: {\"model\":\"fake-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":");
    put_string(t, content, n);
    putz(t, "},\"finish_reason\":null}]}\n\n");
}

/* As llama.cpp and OpenAI do it: a first delta with null, comments, a usage chunk, [DONE]. */
static void stream_reply(struct text *t, const char *content, bool broken, bool error)
{
    size_t n = strlen(content), half = broken || error ? n / 2 : n;

    putz(t, "data: {\"model\":\"fake-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":"
            "\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n: still here\n\n");
    for (size_t at = 0; at < half;) {
        size_t k = half - at < 7 ? half - at : 7;
        while (at + k < half && ((unsigned char)content[at + k] & 0xc0) == 0x80)
            k++; /* characters stay whole */
        event(t, content + at, k);
        at += k;
    }
    if (error)
        putz(t, "data: {\"error\":{\"code\":500,\"message\":\"the model crashed\"}}\n\n");
    if (broken || error)
        return;
    putz(t, "data: {\"model\":\"fake-1\",\"choices\":[{\"index\":0,\"delta\":{},"
            "\"finish_reason\":\"stop\"}]}\r\n\r\n"
            "data: {\"model\":\"fake-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,"
            "\"completion_tokens\":20}}\n\ndata: [DONE]\n\n");
}

static const char good_answer[] =
    "{\"citations\":[{\"file\":\"a.log\",\"line\":1,\"quote\":\"GPU has fallen off the bus\"}],"
    "\"cause\":\"gpu.off_bus\",\"class\":\"infrastructure\",\"summary\":\"A GPU was lost.\","
    "\"alternatives\":[],\"action\":\"cordon_and_restart\",\"confidence\":0.9}";

static const char *content_of(const struct server *s, enum what what)
{
    switch (what) {
    case SCHEMA:
        return "{\"cause\":\"gpu.off_bus\",\"class\":\"hardware\",\"citations\":\"line 1\","
               "\"confidence\":\"high\"}";
    case UNKNOWN_CAUSE:
        return "{\"citations\":[{\"file\":\"a.log\",\"line\":1,\"quote\":\"x\"}],\"cause\":"
               "\"gpu.of_bus\",\"class\":\"infrastructure\",\"summary\":\"s\",\"alternatives\":[],"
               "\"action\":\"restart\",\"confidence\":0.5}";
    case INVENTED:
        return "{\"citations\":[{\"file\":\"a.log\",\"line\":999999,\"quote\":\"this line was "
               "never "
               "printed by anybody\"}],\"cause\":\"node.disk_full\",\"class\":\"infrastructure\","
               "\"summary\":\"The disk is full.\",\"alternatives\":[],\"action\":\"free_space\","
               "\"confidence\":0.99}";
    case TYPE:
    case DRIP:
    case RESET:
    case CUT:
    default:
        return s->answer ? s->answer : good_answer;
    }
}

static void vectors(struct text *t, const char *body, enum what what)
{
    const char *input = strstr(body, "\"input\":[");
    unsigned n = 0;

    /* One for each string of the list: counted by its quotation marks, escapes passed over. */
    for (const char *p = input ? input + 9 : ""; *p && *p != ']'; p++) {
        if (*p != '"')
            continue;
        n++;
        for (p++; *p && *p != '"'; p++)
            p += *p == '\\' && p[1];
        if (!*p)
            break;
    }
    putz(t, "{\"object\":\"list\",\"data\":[");
    for (unsigned i = n; i-- > 0;) { /* backwards: the index is what counts */
        char row[160];
        const char *tail = what == NAN_VECTORS ? "NaN" : "2";
        if (what == BAD_VECTORS && i == 0)
            snprintf(row, sizeof(row), "{\"index\":0,\"embedding\":[1,2]}");
        else
            snprintf(row, sizeof(row), "{\"index\":%u,\"embedding\":[%u,0.5,-1,%s]}%s", i, i, tail,
                     i ? "," : "");
        putz(t, row);
    }
    putz(t, "],\"usage\":{\"prompt_tokens\":3}}");
}

/* ---- sending ---- */

static ssize_t read_piece(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct piecemeal *p = cls;
    size_t n = p->n - p->at;

    (void)pos;
    if (p->at >= p->break_at) {
        struct linger now = {1, 0}; /* RST instead of FIN */
        setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (!n)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (p->pause > 0)
        rest(p->pause);
    n = p->most && n > p->most ? p->most : n;
    n = n > max ? max : n;
    if (p->break_at != SIZE_MAX && n > p->break_at - p->at)
        n = p->break_at - p->at;
    memcpy(buf, p->text + p->at, n);
    p->at += n;
    return (ssize_t)n;
}

static void free_piece(void *cls)
{
    struct piecemeal *p = cls;

    free(p->text);
    free(p);
}

static int fd_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

    return i ? i->connect_fd : -1;
}

/* Takes the text. */
static enum MHD_Result send_text(struct MHD_Connection *c, const struct mode *m, int status,
                                 struct text *t, const char *type)
{
    struct MHD_Response *r;
    enum MHD_Result done;
    struct piecemeal *p = calloc(1, sizeof(*p));

    if (!p)
        exit(3);
    p->text = t->p;
    p->n = t->n;
    p->fd = fd_of(c);
    p->break_at = SIZE_MAX;
    if (m->what == DRIP) {
        p->most = 1;
        p->pause = 1;
    } else if (m->what == SLOW) { /* as a model writes */
        p->most = 120;
        p->pause = 0.2;
    } else if (m->what == RESET) {
        p->break_at = p->n / 2;
    }
    /* "cut" promises more than it sends and closes. */
    r = MHD_create_response_from_callback(m->what == CUT ? p->n + 1000 : MHD_SIZE_UNKNOWN, 4096,
                                          read_piece, p, free_piece);
    MHD_add_response_header(r, "Content-Type", type);
    if (m->header && status != 200 && status == m->status)
        MHD_add_response_header(r, m->header, m->value);
    done = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result send_z(struct MHD_Connection *c, const struct mode *m, int status,
                              const char *z, const char *type)
{
    struct text t = {0};

    putz(&t, z);
    return send_text(c, m, status, &t, type);
}

static enum MHD_Result send_huge(struct MHD_Connection *c, const struct mode *m, bool stream)
{
    struct text t = {0};
    static const char piece[] = "0123456789abcdef0123456789abcdef";

    putz(&t, stream ? "data: {\"choices\":[{\"delta\":{\"content\":\""
                    : "{\"choices\":[{\"message\":{\"content\":\"");
    while (t.n < 10u << 20)
        put(&t, piece, sizeof(piece) - 1);
    putz(&t, stream ? "\"}}]}\n\ndata: [DONE]\n\n" : "\"},\"finish_reason\":\"stop\"}]}");
    return send_text(c, m, 200, &t, stream ? "text/event-stream" : "application/json");
}

static enum MHD_Result answer_chat(struct MHD_Connection *c, struct server *s, const struct mode *m,
                                   const char *body)
{
    bool stream = strstr(body, "\"stream\":true") != NULL;
    const char *content = content_of(s, m->what);
    struct text t = {0};

    if (stream)
        stream_reply(&t, content, m->what == BROKEN_STREAM, m->what == STREAM_ERROR);
    else
        whole_reply(&t, content);
    if (m->what == HALF || (m->what == BROKEN_STREAM && !stream))
        t.p[t.n /= 2] = 0;
    return send_text(c, m, 200, &t,
                     m->what == TYPE ? "text/plain"
                     : stream        ? "text/event-stream"
                                     : "application/json");
}

static enum MHD_Result misbehave(struct MHD_Connection *c, struct server *s, const struct mode *m,
                                 const char *body)
{
    static const char json[] = "application/json";

    switch (m->what) {
    case HANG:
        rest(600);
        return MHD_NO;
    case LIMIT:
        return send_z(c, m, m->status, "{\"error\":{\"message\":\"Rate limit reached\"}}", json);
    case FAIL:
        return send_z(c, m, m->status, "{\"error\":{\"message\":\"out of order\"}}", json);
    case PAGE:
        return send_z(c, m, 200, "<!doctype html><title>Welcome</title><h1>It works</h1>",
                      "text/html; charset=utf-8");
    case HUGE_REPLY:
        return send_huge(c, m, strstr(body, "\"stream\":true") != NULL);
    case REDIRECT:
        return send_z(c, m, m->status, "moved", "text/plain");
    case TYPE:
        return send_z(c, m, 200, "I am fine, thank you.", "text/plain");
    case EMPTY:
        return send_z(c, m, 200, "", json);
    case CONTEXT:
        return send_z(
            c, m, 400,
            "{\"error\":{\"message\":\"This model's maximum context length is 2048 tokens. "
            "However, your messages resulted in 6000 tokens.\",\"code\":"
            "\"context_length_exceeded\"}}",
            json);
    case DENIED:
        return send_z(c, m, m->status, "{\"error\":{\"message\":\"Invalid API Key\"}}", json);
    case MISSING:
    case NO_MODEL:
        return send_z(c, m, 404, "{\"error\":{\"message\":\"The model `m` does not exist\"}}",
                      json);
    case ERROR_200:
        return send_z(c, m, 200, "{\"error\":\"the backend is gone\"}", json);
    default:
        return answer_chat(c, s, m, body);
    }
}

/* ---- requests ---- */

static const struct mode *find_mode(const char *name, size_t n)
{
    for (size_t i = 0; i < NMODES; i++)
        if (strlen(modes[i].name) == n && !memcmp(modes[i].name, name, n))
            return &modes[i];
    return NULL;
}

/* The mode of this path, and the path behind it. */
static const struct mode *mode_of(struct server *s, const char **path)
{
    const char *slash = **path ? strchr(*path + 1, '/') : NULL;
    const struct mode *m = NULL;
    bool worn = false;

    if (slash)
        m = find_mode(*path + 1, (size_t)(slash - *path - 1));
    if (m)
        *path = slash;
    else
        m = s->mode;
    if (!m->times)
        return m;
    pthread_mutex_lock(&s->lock);
    worn = s->count[m - modes]++ >= m->times;
    pthread_mutex_unlock(&s->lock);
    return worn ? &modes[0] : m;
}

static enum MHD_Result print_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    (void)kind;
    fprintf(cls, "%s: %s\n", key, value ? value : "");
    return MHD_YES;
}

static void keep(struct server *s, struct MHD_Connection *c, const char *method, const char *url,
                 const struct visit *v)
{
    FILE *f;

    if (!s->keep)
        return;
    pthread_mutex_lock(&s->lock);
    f = fopen(s->keep, "a");
    if (f) {
        fprintf(f, "%s %s\n", method, url);
        MHD_get_connection_values(c, MHD_HEADER_KIND, print_header, f);
        fprintf(f, "\n");
        fwrite(v->body ? v->body : "", 1, v->n, f);
        fprintf(f, "\n\n");
        fclose(f);
    }
    pthread_mutex_unlock(&s->lock);
}

static bool key_fits(const struct server *s, struct MHD_Connection *c)
{
    const char *a = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    const char *b = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "api-key");

    if (!s->key)
        return true;
    if (a && !strncmp(a, "Bearer ", 7) && !strcmp(a + 7, s->key))
        return true;
    return b && !strcmp(b, s->key);
}

static enum MHD_Result answer(struct server *s, struct MHD_Connection *c, const char *method,
                              const char *url, const struct visit *v)
{
    const char *path = url, *body = v->body ? v->body : "";
    const struct mode *m = mode_of(s, &path);

    keep(s, c, method, url, v);
    if (s->delay > 0)
        rest(s->delay);
    if (!key_fits(s, c))
        return send_z(c, &modes[0], 401,
                      "{\"error\":{\"message\":\"Incorrect API key provided: you sent the wrong "
                      "one\"}}",
                      "application/json");
    if (m->what == NO_SCHEMA)
        m = strstr(body, "\"json_schema\"") ? m : &modes[0];
    if (m->what == NO_SCHEMA)
        return send_z(c, m, 400,
                      "{\"error\":{\"message\":\"response_format json_schema is not supported\"}}",
                      "application/json");
    if (strstr(path, "/models") && (m->what == GOOD || m->what == CONTEXT || m->what == NO_MODEL))
        return send_z(c, m, 200,
                      "{\"object\":\"list\",\"data\":[{\"id\":\"fake-1\",\"max_model_len\":32768},"
                      "{\"id\":\"fake-small\",\"max_model_len\":2048}]}",
                      "application/json");
    if (strstr(path, "/embeddings") &&
        (m->what == GOOD || m->what == BAD_VECTORS || m->what == NAN_VECTORS)) {
        struct text t = {0};
        vectors(&t, body, m->what);
        return send_text(c, m, 200, &t, "application/json");
    }
    if (m->what == GOOD && !strstr(path, "/chat/completions"))
        return send_z(c, m, 404, "{\"error\":{\"message\":\"File Not Found\"}}",
                      "application/json");
    return misbehave(c, s, m, body);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    struct server *s = cls;
    struct visit *v = *state;

    (void)version;
    if (!v) {
        *state = calloc(1, sizeof(*v));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*n) {
        char *more = v->n + *n < MAX_BODY ? realloc(v->body, v->n + *n + 1) : NULL;
        if (!more)
            return MHD_NO;
        v->body = more;
        memcpy(v->body + v->n, data, *n);
        v->n += *n;
        v->body[v->n] = 0;
        *n = 0;
        return MHD_YES;
    }
    return answer(s, c, method, url, v);
}

static void on_end(void *cls, struct MHD_Connection *c, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct visit *v = *state;

    (void)cls, (void)c, (void)why;
    if (v)
        free(v->body);
    free(v);
    *state = NULL;
}

/* ---- start ---- */

__attribute__((noreturn, format(printf, 1, 2))) static void stop(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "llm_server: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    exit(2);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct text t = {0};
    char piece[65536];
    size_t n;

    if (!f)
        stop("%s: %s", path, strerror(errno));
    putz(&t, "");
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        put(&t, piece, n);
    fclose(f);
    while (t.n && t.p[t.n - 1] == '\n')
        t.p[--t.n] = 0;
    return t.p;
}

/* A certificate of its own for 127.0.0.1 and localhost, good for a day. */
static void make_certificate(const char *dir, gnutls_datum_t *cert, gnutls_datum_t *key)
{
    static const unsigned char address[4] = {127, 0, 0, 1};
    gnutls_x509_privkey_t k;
    gnutls_x509_crt_t c;
    time_t now = time(NULL);
    unsigned char serial = 1;
    char path[4096];
    FILE *f;

    gnutls_x509_privkey_init(&k);
    gnutls_x509_privkey_generate(k, GNUTLS_PK_ECDSA,
                                 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    gnutls_x509_crt_init(&c);
    gnutls_x509_crt_set_version(c, 3);
    gnutls_x509_crt_set_serial(c, &serial, 1);
    gnutls_x509_crt_set_activation_time(c, now - 3600);
    gnutls_x509_crt_set_expiration_time(c, now + 86400);
    gnutls_x509_crt_set_dn(c, "CN=faultline test server", NULL);
    gnutls_x509_crt_set_basic_constraints(c, 1, -1);
    gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_SET);
    gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_DNSNAME, "localhost", 9, GNUTLS_FSAN_APPEND);
    gnutls_x509_crt_set_key(c, k);
    if (gnutls_x509_crt_sign2(c, c, k, GNUTLS_DIG_SHA256, 0) < 0 ||
        gnutls_x509_crt_export2(c, GNUTLS_X509_FMT_PEM, cert) < 0 ||
        gnutls_x509_privkey_export2(k, GNUTLS_X509_FMT_PEM, key) < 0)
        stop("no certificate could be made");
    gnutls_x509_crt_deinit(c);
    gnutls_x509_privkey_deinit(k);
    snprintf(path, sizeof(path), "%s/cert.pem", dir);
    f = fopen(path, "w");
    if (!f || fwrite(cert->data, 1, cert->size, f) != cert->size || fclose(f))
        stop("%s: %s", path, strerror(errno));
}

/* A port that nobody listens on. */
static int dead_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
        getsockname(fd, (struct sockaddr *)&a, &n))
        stop("no port: %s", strerror(errno));
    return ntohs(a.sin_port); /* bound and not listening, as long as this process lives */
}

static int serve(struct server *s, int port, const char *tls)
{
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD;
    struct sockaddr_in a = {.sin_family = AF_INET};
    gnutls_datum_t cert = {NULL, 0}, key = {NULL, 0};
    struct MHD_Daemon *d;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)port);
    if (tls) {
        make_certificate(tls, &cert, &key);
        d = MHD_start_daemon(flags | MHD_USE_TLS, 0, NULL, NULL, on_request, s,
                             MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
                             MHD_OPTION_HTTPS_MEM_KEY, (char *)key.data, MHD_OPTION_HTTPS_MEM_CERT,
                             (char *)cert.data, MHD_OPTION_END);
    } else {
        d = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &a,
                             MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
    }
    if (!d)
        stop("no server on port %d", port);
    return MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
}

static const char *value(int argc, char **argv, int *i)
{
    if (++*i >= argc)
        stop("%s needs a value", argv[*i - 1]);
    return argv[*i];
}

int main(int argc, char **argv)
{
    struct server s = {.mode = &modes[0], .lock = PTHREAD_MUTEX_INITIALIZER};
    const char *tls = NULL;
    bool refuse = false;
    int port = 0;
    char c;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--mode")) {
            const char *name = value(argc, argv, &i);
            refuse = !strcmp(name, "refuse");
            s.mode = refuse ? s.mode : find_mode(name, strlen(name));
            if (!s.mode)
                stop("there is no mode %s", name);
        } else if (!strcmp(argv[i], "--port"))
            port = atoi(value(argc, argv, &i));
        else if (!strcmp(argv[i], "--answer"))
            s.answer = slurp(value(argc, argv, &i));
        else if (!strcmp(argv[i], "--key"))
            s.key = value(argc, argv, &i);
        else if (!strcmp(argv[i], "--keep"))
            s.keep = value(argc, argv, &i);
        else if (!strcmp(argv[i], "--tls"))
            tls = value(argc, argv, &i);
        else if (!strcmp(argv[i], "--delay"))
            s.delay = atof(value(argc, argv, &i));
        else
            stop("what is %s? See the head of tests/fakes/llm_server.c", argv[i]);
    }
    signal(SIGPIPE, SIG_IGN);
    printf("PORT %d\n", refuse ? dead_port() : serve(&s, port, tls));
    fflush(stdout);
    for (;;) {
        struct pollfd in = {0, POLLIN, 0};
        if (poll(&in, 1, -1) > 0 && read(0, &c, 1) <= 0) {
            /* A terminal or /dev/null says nothing about the parent; a pipe that ends does. */
            if (in.revents & POLLHUP)
                _exit(0);
            pause();
        }
    }
}
