/*
 * Secrets that show what they are by their shape.
 *
 * One table row a shape: the fixed head, which bytes follow, how many at least. A run is taken to
 * its end however long it is, for vendors lengthen their keys. Rows are grouped by their first
 * byte, so a word of a log costs a few comparisons. A row whose head could begin an ordinary word
 * asks in addition that the run look drawn at random (fl_opaque).
 *
 * Hexadecimal of 32, 40 or 64 digits alone is no secret here: it is a commit, a checksum or an
 * NCCL id far more often, and evidence. Such keys are found by the name in front (assign.c).
 *
 * Private keys are lines of base64 between two marks. One mark may be missing, because logs are cut
 * and digests drop lines; then the lines that look like the inside of a key go with the mark that
 * is there, up to the first that does not. A log's lines have a time in front and a page's lines
 * FILE:LINE: what precedes the base64 must be about as long as what precedes the mark, so that an
 * error that ends in a checksum is no line of a key. Certificates and public keys of the same make
 * are not looked for.
 */
#include "redact/scan.h"

enum set { HEX, UPPER, ALNUM, TOKEN, DOTTED, BASE64, PATHY };
enum { RANDOM = 1, KEEP = 2 /* the head stays */ };

struct shape {
    const char *head;
    unsigned char set, flags;
    unsigned short least; /* bytes behind the head */
};

/* Sorted by first byte. */
static const struct shape shapes[] = {
    {"1//0", TOKEN, RANDOM, 30},    /* Google refresh token */
    {"A3T", UPPER, RANDOM, 16},     /* AWS */
    {"AAAAB3NzaC1", BASE64, 0, 20}, /* SSH RSA, DSA */
    {"AAAAC3NzaC1lZDI1NTE5", BASE64, 0, 20},
    {"AAAAE2VjZHNh", BASE64, 0, 20},
    {"ABIA", UPPER, 0, 16},
    {"ABSK", BASE64, RANDOM, 40}, /* Bedrock */
    {"AC", HEX, 0, 32},           /* Twilio */
    {"ACCA", UPPER, 0, 16},
    {"AGE-SECRET-KEY-1", ALNUM, 0, 20},
    {"AIDA", UPPER, 0, 16},
    {"AIza", TOKEN, 0, 30},      /* Google API key */
    {"AKCp", ALNUM, RANDOM, 20}, /* Artifactory */
    {"AKIA", UPPER, 0, 12},
    {"AKID", ALNUM, RANDOM, 16}, /* Tencent */
    {"AKLT", TOKEN, RANDOM, 16}, /* Volcengine */
    {"AKTP", TOKEN, RANDOM, 16},
    {"ALTAK", ALNUM, RANDOM, 16}, /* Baidu */
    {"APKA", UPPER, 0, 16},
    {"AROA", UPPER, 0, 16},
    {"ASIA", UPPER, 0, 16},
    {"ATATT3", DOTTED, 0, 40}, /* Atlassian */
    {"ATBB", ALNUM, RANDOM, 24},
    {"ATCTT3", DOTTED, 0, 40},
    {"EAAC", ALNUM, RANDOM, 40},
    {"FQoGZXIvYXdz", BASE64, 0, 40}, /* AWS session */
    {"FwoGZXIvYXdz", BASE64, 0, 40},
    {"GOCSPX-", TOKEN, 0, 20},
    {"GR1348941", TOKEN, 0, 16},
    {"HRKU-", TOKEN, 0, 20},
    {"IQoJb3JpZ2lu", BASE64, 0, 40}, /* AWS session */
    {"JDC_", ALNUM, RANDOM, 20},
    {"KGAT_", ALNUM, 0, 20},     /* Kaggle */
    {"LTAI", ALNUM, 0, 12},      /* Aliyun */
    {"MII", BASE64, RANDOM, 57}, /* first line of a key */
    {"NRAK-", UPPER, 0, 20},
    {"PMAK-", TOKEN, 0, 30},
    {"SG.", DOTTED, RANDOM, 40}, /* SendGrid */
    {"SK", HEX, 0, 32},
    {"api.telegram.org/bot", PATHY, KEEP, 30},
    {"api_org_", ALNUM, 0, 20},
    {"as-", ALNUM, RANDOM, 20}, /* Modal */
    {"ak-", ALNUM, RANDOM, 20},
    {"cmt_", ALNUM, RANDOM, 20},
    {"csk-", ALNUM, RANDOM, 20}, /* Cerebras */
    {"dapi", HEX, 0, 30},        /* Databricks */
    {"dckr_oat_", TOKEN, 0, 20},
    {"dckr_pat_", TOKEN, 0, 20},
    {"discord.com/api/webhooks/", PATHY, KEEP, 20},
    {"discordapp.com/api/webhooks/", PATHY, KEEP, 20},
    {"doo_v1_", HEX, 0, 40},
    {"dop_v1_", HEX, 0, 40}, /* DigitalOcean */
    {"dor_v1_", HEX, 0, 40},
    {"dp.pt.", ALNUM, 0, 30},
    {"dsa_", TOKEN, RANDOM, 30},
    {"eyJ", DOTTED, RANDOM, 24}, /* JWT, and base64 of JSON: Neptune */
    {"figd_", TOKEN, 0, 30},
    {"fw_", ALNUM, RANDOM, 20}, /* Fireworks */
    {"gho_", ALNUM, 0, 30},
    {"ghp_", ALNUM, 0, 30}, /* GitHub */
    {"ghr_", ALNUM, 0, 30},
    {"ghs_", ALNUM, 0, 30},
    {"ghu_", ALNUM, 0, 30},
    {"github_pat_", TOKEN, 0, 30},
    {"glagent-", TOKEN, 0, 20},
    {"glc_", BASE64, 0, 30},
    {"glcbt-", TOKEN, 0, 16},
    {"gldt-", TOKEN, 0, 16},
    {"glft-", TOKEN, 0, 16},
    {"glimt-", TOKEN, 0, 16},
    {"glpat-", DOTTED, 0, 16}, /* GitLab */
    {"glptt-", TOKEN, 0, 16},
    {"glrt-", TOKEN, 0, 16},
    {"glsa_", TOKEN, 0, 30}, /* Grafana */
    {"glsoat-", TOKEN, 0, 16},
    {"gsk_", ALNUM, 0, 20}, /* Groq */
    {"hf_", ALNUM, 0, 20},  /* Hugging Face */
    {"hooks.slack.com/services/", PATHY, KEEP, 20},
    {"hooks.slack.com/workflows/", PATHY, KEEP, 20},
    {"hvb.", DOTTED, 0, 20}, /* Vault */
    {"hvr.", DOTTED, 0, 20},
    {"hvs.", DOTTED, 0, 20},
    {"jina_", ALNUM, RANDOM, 20},
    {"key-", HEX, 0, 32}, /* Mailgun */
    {"lin_api_", ALNUM, 0, 30},
    {"lsv2_pt_", TOKEN, 0, 30}, /* LangSmith */
    {"lsv2_sk_", TOKEN, 0, 30},
    {"nfp_", ALNUM, RANDOM, 30},
    {"npm_", ALNUM, 0, 30},
    {"nvapi-", TOKEN, 0, 30}, /* NGC, NIM */
    {"open.feishu.cn/open-apis/bot/v2/hook/", PATHY, KEEP, 20},
    {"open.larksuite.com/open-apis/bot/v2/hook/", PATHY, KEEP, 20},
    {"ops_", BASE64, RANDOM, 60},
    {"pk_live_", ALNUM, 0, 16},
    {"pk_test_", ALNUM, 0, 16},
    {"pplx-", ALNUM, 0, 20},
    {"pscale_tkn_", TOKEN, 0, 20},
    {"pypi-", TOKEN, RANDOM, 40},
    {"r8_", ALNUM, 0, 30}, /* Replicate */
    {"rk_live_", ALNUM, 0, 16},
    {"rk_test_", ALNUM, 0, 16},
    {"rnd_", ALNUM, RANDOM, 20},
    {"rpa_", ALNUM, RANDOM, 30}, /* RunPod */
    {"rubygems_", HEX, 0, 40},
    {"sbp_", HEX, 0, 30},
    {"secret_", ALNUM, RANDOM, 30},
    {"sgp_", TOKEN, RANDOM, 30},
    {"shpat_", HEX, 0, 30},
    {"shpss_", HEX, 0, 30},
    {"sk-", TOKEN, RANDOM, 20}, /* OpenAI, Anthropic, DeepSeek, OpenRouter and many more */
    {"sk_live_", ALNUM, 0, 16}, /* Stripe */
    {"sk_test_", ALNUM, 0, 16},
    {"sntrys_", BASE64, 0, 30},
    {"sntryu_", HEX, 0, 30},
    {"sq0atp-", TOKEN, 0, 20},
    {"sq0csp-", TOKEN, 0, 20},
    {"tgp_v1_", TOKEN, 0, 20}, /* Together */
    {"tskey-", TOKEN, 0, 16},
    {"vercel_", ALNUM, RANDOM, 20},
    {"wandb_v1_", TOKEN, 0, 20},
    {"whsec_", BASE64, 0, 20},
    {"xai-", ALNUM, 0, 30},
    {"xapp-", TOKEN, 0, 20}, /* Slack */
    {"xoxa-", TOKEN, 0, 16},
    {"xoxb-", TOKEN, 0, 16},
    {"xoxc-", TOKEN, 0, 16},
    {"xoxd-", PATHY, 0, 16},
    {"xoxe-", TOKEN, 0, 16},
    {"xoxe.", DOTTED, 0, 16},
    {"xoxp-", TOKEN, 0, 16},
    {"xoxr-", TOKEN, 0, 16},
    {"xoxs-", TOKEN, 0, 16},
    {"ya29.", DOTTED, 0, 20}, /* Google OAuth */
};
#define NSHAPES (sizeof(shapes) / sizeof(*shapes))

static bool in_set(enum set set, char c)
{
    switch (set) {
    case HEX:
        return fl_hexdigit(c);
    case UPPER:
        return fl_digit(c) || (c >= 'A' && c <= 'Z');
    case ALNUM:
        return fl_alnum(c);
    case TOKEN:
        return fl_word(c) || c == '-';
    case DOTTED:
        return fl_word(c) || c == '-' || c == '.' || c == '=' || c == '+';
    case BASE64:
        return fl_word(c) || c == '+' || c == '/' || c == '=' || c == '-';
    case PATHY:
        return fl_word(c) || c == '-' || c == '/' || c == ':' || c == '%' || c == '.' || c == '+';
    }
    return false;
}

/* Bytes of a run that are judged. A text of nothing but heads costs this much a head. */
#define LOOK 512

/* The shape at `i`, added; its end, or `i`. */
static size_t shape_at(struct fl_scan *s, size_t i, const struct shape *row)
{
    size_t head = strlen(row->head), b = i + head, far = b + LOOK;

    if (b > s->n || memcmp(s->p + i, row->head, head) != 0)
        return i;
    while (b < s->n && b < far && in_set(row->set, s->p[b]))
        b++;
    while (b > i && (fl_back(s->p, b, 1) == '.' || fl_back(s->p, b, 1) == '-'))
        b--;
    if (b < i + head + row->least)
        return i;
    if ((row->flags & RANDOM) && !fl_opaque(s->p + i + head, b - i - head))
        return i;
    /* a hexadecimal run that goes on with other letters is some other word */
    if (row->set == HEX && fl_word(s->p[b]))
        return i;
    while (b + 1 >= far && b < s->n && in_set(row->set, s->p[b])) /* a key, so to its end */
        b++;
    fl_scan_add(s, row->flags & KEEP ? i + head : i, b, FL_REDACT_SECRET);
    return b;
}

static void index_shapes(unsigned char first[256])
{
    memset(first, 255, 256);
    for (size_t k = NSHAPES; k-- > 0;)
        first[(unsigned char)shapes[k].head[0]] = (unsigned char)k;
}

static void scan_shapes(struct fl_scan *s)
{
    unsigned char first[256];
    size_t i = 0;

    index_shapes(first);
    while (i < s->n) {
        char c = s->p[i];
        size_t k = first[(unsigned char)c], end = i;
        if (k != 255 && !fl_alnum(fl_back(s->p, i, 1)))
            for (; end == i && k < NSHAPES && shapes[k].head[0] == c; k++)
                end = shape_at(s, i, &shapes[k]);
        i = end > i ? end : i + 1;
    }
}

static size_t run_back(const struct fl_scan *s, size_t i, enum set set)
{
    while (i > 0 && in_set(set, fl_back(s->p, i, 1)))
        i--;
    return i;
}

static size_t run_on(const struct fl_scan *s, size_t i, enum set set)
{
    while (i < s->n && in_set(set, s->p[i]))
        i++;
    return i;
}

/* Azure client secret: three bytes, a digit, "Q~", 31 or more. */
static void azure_secret(struct fl_scan *s, size_t tilde)
{
    size_t b = tilde + 1, a = tilde;

    while (b < s->n && b - tilde < 64 && (in_set(DOTTED, s->p[b]) || s->p[b] == '~'))
        b++;
    while (a > 0 && tilde - a < 5 &&
           (in_set(DOTTED, fl_back(s->p, a, 1)) || fl_back(s->p, a, 1) == '~') &&
           fl_back(s->p, a, 1) != '=')
        a--;
    if (tilde - a >= 5 && fl_back(s->p, tilde, 1) == 'Q' && fl_digit(fl_back(s->p, tilde, 2)) &&
        b - tilde > 30)
        fl_scan_add(s, a, b, FL_REDACT_SECRET);
}

/* Discord bot token: three parts of about 24, 6 and 27 bytes and more. */
static void discord(struct fl_scan *s, size_t dot)
{
    size_t a = run_back(s, dot, TOKEN), m = run_on(s, dot + 1, TOKEN), b;

    if (dot - a < 23 || dot - a > 28 || m - dot - 1 != 6 || s->p[m] != '.')
        return;
    b = run_on(s, m + 1, TOKEN);
    if (b - m - 1 >= 27 && fl_opaque(s->p + a, b - a))
        fl_scan_add(s, a, b, FL_REDACT_SECRET);
}

/* Telegram: eight digits or more, ":AA" and 32 more. */
static void telegram(struct fl_scan *s, size_t colon)
{
    size_t a = colon, b = run_on(s, colon + 1, TOKEN);

    while (a > 0 && fl_digit(fl_back(s->p, a, 1)))
        a--;
    if (colon - a >= 8 && s->p[colon + 1] == 'A' && s->p[colon + 2] == 'A' && b - colon > 32)
        fl_scan_add(s, a, b, FL_REDACT_SECRET);
}

/* 64 bytes of key in base64 (Azure storage, and others): 86 bytes and "==". */
static void base64_key(struct fl_scan *s, size_t eq)
{
    size_t a = eq;

    while (a > 0 && (fl_alnum(fl_back(s->p, a, 1)) || fl_back(s->p, a, 1) == '+' ||
                     fl_back(s->p, a, 1) == '/'))
        a--;
    if (s->p[eq + 1] == '=' && eq - a == 86)
        fl_scan_add(s, a, eq + 2, FL_REDACT_SECRET);
}

/* Mailchimp: 32 hex digits and a data centre. */
static void mailchimp(struct fl_scan *s, size_t dash)
{
    size_t a = run_back(s, dash, HEX);

    if (dash - a == 32 && s->p[dash + 1] == 'u' && s->p[dash + 2] == 's' &&
        fl_digit(s->p[dash + 3]))
        fl_scan_add(s, a, run_on(s, dash, TOKEN), FL_REDACT_SECRET);
}

static void scan_middles(struct fl_scan *s)
{
    size_t word = 0; /* where the present run began: short ones need no look */

    for (size_t i = 0; i < s->n; i++) {
        char c = s->p[i];
        if (c == ':' && i - word >= 8)
            telegram(s, i);
        else if (c == '~')
            azure_secret(s, i);
        else if (c == '.' && i - word >= 23)
            discord(s, i);
        else if (c == '=' && i - word >= 86 && fl_back(s->p, i, 1) != '=')
            base64_key(s, i);
        else if (c == '-' && i - word >= 32)
            mailchimp(s, i);
        if (!in_set(BASE64, c))
            word = i + 1;
    }
}

#define PEM_MAX 16384 /* bytes from one mark to the other, or of lines that go with one */

static size_t line_end(const struct fl_scan *s, size_t i, size_t limit)
{
    while (i < limit && s->p[i] != '\n')
        i++;
    return i;
}

static bool base64(char c)
{
    return fl_alnum(c) || c == '+' || c == '/' || c == '=';
}

/* Behind FILE:LINE and a TAB, which a page puts in front of the line [a, b), or `a`. */
static size_t page_head(const struct fl_scan *s, size_t a, size_t b)
{
    const char *tab = memchr(s->p + a, '\t', b - a < 512 ? b - a : 512);
    size_t i = tab ? (size_t)(tab - s->p) : a, e = i;

    while (e > a && fl_digit(fl_back(s->p, e, 1)))
        e--;
    return e < i && e > a + 1 && fl_back(s->p, e, 1) == ':' ? i + 1 : a;
}

/* What a log puts in front of a mark, such as a time and a rank. */
static fl_str prefix_of(const struct fl_scan *s, size_t mark)
{
    size_t a = mark;

    while (a > 0 && mark - a < 512 && fl_back(s->p, a, 1) != '\n')
        a--;
    a = page_head(s, a, mark);
    return fl_str_n(s->p + a, mark - a);
}

/* May a line of the same log have `n` bytes in front? Ranks and numbers of lines differ in length.
 */
static bool like_prefix(fl_str prefix, size_t n)
{
    return prefix.n ? n <= prefix.n + 8 && n + 8 >= prefix.n : n == 0;
}

/* Does the line [a, b) end in base64, as the inside of a key does? It goes from *from to *to. The
 * last line of a key is short. */
static bool key_line(const struct fl_scan *s, size_t a, size_t b, fl_str prefix, bool last,
                     struct fl_span *out)
{
    size_t e = b, i;

    a = page_head(s, a, b);
    while (e > a && (fl_space(fl_back(s->p, e, 1)) || fl_quote(fl_back(s->p, e, 1)) ||
                     fl_back(s->p, e, 1) == ','))
        e--;
    for (i = e; i > a && e - i <= 128 && base64(fl_back(s->p, i, 1));)
        i--;
    *out = (struct fl_span){.a = (uint32_t)i, .b = (uint32_t)e};
    if (e - i > 128 || (!like_prefix(prefix, i - a) && fl_str_trim(fl_str_n(s->p + a, i - a)).n))
        return false;
    if (last && e > i && ((e - i) % 4 == 0 || fl_back(s->p, e, 1) == '='))
        return true;
    return e - i >= 24 && (e - i >= 60 || fl_opaque(s->p + i, e - i));
}

/* Headers and empty lines of a key, which stand between its mark and its lines. */
static bool key_header(const struct fl_scan *s, size_t a, size_t b, fl_str prefix)
{
    static const fl_str heads[] = {{"Proc-Type:", 10}, {"DEK-Info:", 9}, {"Comment:", 8}};
    fl_str line, end = fl_str_trim(prefix);

    a = page_head(s, a, b);
    line = fl_str_trim(fl_str_n(s->p + a, b - a));
    if (line.n == 0)
        return true;
    for (size_t k = 0; k < sizeof(heads) / sizeof(*heads); k++) {
        ptrdiff_t at = fl_str_find(line, heads[k]);
        if (at == 0 || (at > 0 && like_prefix(prefix, (size_t)at)))
            return true;
    }
    if (end.n > 4)
        end = fl_str_from(end, end.n - 4);
    return end.n && like_prefix(prefix, line.n) && fl_str_ends(line, end);
}

/* Base64 in the very line of a mark, whose line ends became blanks: from `i` on. */
static void key_behind(struct fl_scan *s, size_t i)
{
    size_t e;

    for (;; i = e) {
        while (fl_blank(s->p[i]))
            i++;
        for (e = i; e < s->n && base64(s->p[e]);)
            e++;
        if (e - i < 24 || !(e - i >= 60 || fl_opaque(s->p + i, e - i)))
            return;
        fl_scan_add(s, i, e, FL_REDACT_SECRET);
    }
}

/* Lines of a key behind `i`, in the line of a BEGIN that has no END. */
static void key_after(struct fl_scan *s, size_t i, fl_str prefix)
{
    size_t b, limit = i + PEM_MAX < s->n ? i + PEM_MAX : s->n;
    struct fl_span at;

    while (i < limit && s->p[i] == '-')
        i++;
    key_behind(s, i);
    for (i = line_end(s, i, limit); i < limit; i = b) {
        b = line_end(s, i + 1, limit);
        if (key_line(s, i + 1, b, prefix, false, &at))
            fl_scan_add(s, at.a, at.b, FL_REDACT_SECRET);
        else if (!key_header(s, i + 1, b, prefix))
            break;
    }
}

/* Lines of a key before the dashes of an END at `i`. */
static void key_before(struct fl_scan *s, size_t i)
{
    fl_str prefix = prefix_of(s, i);
    size_t a, b = i, limit = i > PEM_MAX ? i - PEM_MAX : 0;
    struct fl_span at;
    bool last = true;

    while (b > limit && fl_back(s->p, b, 1) != '\n')
        b--;
    for (; b > limit; b = a) {
        for (a = b - 1; a > limit && fl_back(s->p, a, 1) != '\n';)
            a--;
        if (key_line(s, a, b - 1, prefix, last, &at))
            fl_scan_add(s, at.a, at.b, FL_REDACT_SECRET);
        else if (!key_header(s, a, b - 1, prefix))
            break;
        last &= b - a <= 1;
    }
}

/* Whether the lines from behind `i`, in the line of a BEGIN, up to `end`, in that of an END, are
 * the inside of a key. On a page the two may stand far from each other, with evidence between them.
 */
static bool key_whole(const struct fl_scan *s, size_t i, size_t end, fl_str prefix)
{
    struct fl_span at;
    size_t b, next;

    for (i = line_end(s, i, end); i < end; i = b) {
        b = line_end(s, i + 1, end);
        if (b == end)
            return true;
        for (next = b; next < end && s->p[next] == '\n';) /* an escaped line end is two */
            next++;
        if (!key_line(s, i + 1, b, prefix, line_end(s, next, end) == end, &at) &&
            !key_header(s, i + 1, b, prefix))
            return false;
    }
    return true;
}

static ptrdiff_t find(const struct fl_scan *s, size_t from, size_t to, fl_str what)
{
    ptrdiff_t i = from < to ? fl_str_find(fl_str_n(s->p + from, to - from), what) : -1;

    return i < 0 ? -1 : i + (ptrdiff_t)from;
}

static void scan_pem(struct fl_scan *s)
{
    static const fl_str dashes = {"-----", 5}, priv = {"PRIVATE KEY", 11};
    size_t i = 0, done = 0;
    ptrdiff_t at;

    while ((at = find(s, i, s->n, dashes)) >= 0) {
        size_t a = (size_t)at, head = a + 5, stop = head + 60 < s->n ? head + 60 : s->n, limit;
        bool begin = head + 6 < s->n && memcmp(s->p + head, "BEGIN ", 6) == 0;
        bool end = head + 4 < s->n && memcmp(s->p + head, "END ", 4) == 0;
        ptrdiff_t key = begin || end ? find(s, head, stop, priv) : -1, tail;
        fl_str prefix;
        i = head;
        if (key < 0)
            continue;
        if (end) {
            if (a >= done)
                key_before(s, a);
            continue;
        }
        limit = a + PEM_MAX < s->n ? a + PEM_MAX : s->n;
        tail = find(s, (size_t)key, limit, FL_S("-----END "));
        prefix = prefix_of(s, a);
        if (tail < 0 || !key_whole(s, (size_t)key, (size_t)tail, prefix)) {
            key_after(s, (size_t)key + priv.n, prefix);
            continue;
        }
        stop = (size_t)tail + 60 < s->n ? (size_t)tail + 60 : s->n;
        tail = find(s, (size_t)tail + 9, stop, dashes);
        done = tail < 0 ? stop : (size_t)tail + 5;
        fl_scan_add(s, a, done, FL_REDACT_SECRET);
        i = done;
    }
}

void fl_scan_secrets(struct fl_scan *s)
{
    scan_shapes(s);
    scan_middles(s);
    scan_pem(s);
}
