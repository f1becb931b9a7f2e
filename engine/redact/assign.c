/*
 * Values that their names give away: `password=`, `--api-key`, `"token": "..."`, `HF_TOKEN=`, and
 * in the same pass `host=`, `user=` and `bucket=`.
 *
 * The same assignment is written in many ways: with = or : or => or a blank behind a flag, with
 * quotes of either kind, escaped once or more because a JSON text holds it, as two elements of a
 * printed argv, as a container's `name:` and `value:`. read_value() knows these and nothing about
 * what the names mean.
 *
 * How much a value must look like a secret depends on the name. Behind a password anything goes but
 * what is plainly no value (None, ${VAR}, a call). `token` and `key` are daily words of training
 * (`eos_token`, `tokens=4096`, `key: layers.0.weight`), so their values must look drawn at random,
 * or the name must be an environment variable or a flag, which are not written about tensors.
 *
 * What is refused: judging values by entropy without a name. Commits, checksums, run ids and
 * NCCL's unique ids look like keys and are needed.
 */
#include "redact/scan.h"

enum meaning { NONE, PASSWORD, TOKEN, KEY, HEADER, COOKIE, USER, HOST, MAYBE_HOST, BUCKET };

struct name {
    size_t a, b;
    enum meaning means;
    bool flag;  /* --name */
    bool upper; /* an environment variable */
    bool query; /* ?name= or &name= */
};

struct value {
    size_t a, b;
    bool quoted, spaced; /* spaced: ':' and a blank stood before it */
    bool cut;            /* it is longer */
};

struct tail {
    fl_str word;
    enum meaning means;
};
#define T(word, means)                                                                             \
    {                                                                                              \
        {"" word "", sizeof(word) - 1}, means                                                      \
    }

static const struct tail tails[] = {
    T("password", PASSWORD),
    T("passwd", PASSWORD),
    T("passphrase", PASSWORD),
    T("pwd", PASSWORD),
    T("passcode", PASSWORD),
    T("secret", PASSWORD),
    T("apikey", PASSWORD),
    T("pass", TOKEN),
    T("pw", TOKEN),
    T("creds", TOKEN),
    T("token", TOKEN),
    T("jwt", TOKEN),
    T("pat", TOKEN),
    T("auth", TOKEN),
    T("credential", TOKEN),
    T("credentials", TOKEN),
    T("sig", TOKEN),
    T("signature", TOKEN),
    T("webhook", TOKEN),
    T("keyid", TOKEN),
    T("ak", TOKEN),
    T("sk", TOKEN),
    T("bearer", TOKEN),
    T("sessionid", TOKEN),
    T("key", KEY),
    T("authorization", HEADER),
    T("cookie", COOKIE),
    T("user", USER),
    T("logname", USER),
    T("userid", USER),
    T("groupid", USER),
    T("login", USER),
    T("owner", USER),
    T("hostname", HOST),
    T("nodename", HOST),
    T("nodelist", HOST),
    T("addr", HOST),
    T("endpoint", HOST),
    T("host", MAYBE_HOST),
    T("node", MAYBE_HOST),
    T("nodes", MAYBE_HOST),
    T("server", MAYBE_HOST),
    T("hosts", MAYBE_HOST),
    T("address", MAYBE_HOST),
    T("machine", MAYBE_HOST),
    T("bucket", BUCKET),
};
#undef T

/* Words in front of `key` that make it one to a lock. */
static const char locks[] =
    "api\0access\0secret\0private\0account\0auth\0signing\0encryption\0license\0shared\0storage\0"
    "master\0service\0client\0ssh\0app\0session\0deploy\0subscription\0admin\0write\0read\0ingest\0"
    "accesskey\0secretkey\0";
/* Words in front of `token` that make it one of a text. */
static const char texts[] =
    "bos\0eos\0pad\0unk\0sep\0cls\0mask\0image\0video\0audio\0special\0next\0last\0first\0per\0max"
    "\0"
    "min\0new\0num\0stop\0start\0end\0prompt\0output\0input\0added\0each\0total\0ignore\0think\0too"
    "l\0"
    "im\0bot\0eot\0fim\0prefix\0suffix\0middle\0draft\0target\0current\0avg\0mean\0seen\0";
/* No values, or ones that tell nothing. */
static const char blank_values[] =
    "none\0null\0nil\0true\0false\0yes\0no\0undefined\0redacted\0hidden\0masked\0required\0missing"
    "\0"
    "not\0invalid\0expired\0str\0string\0optional\0set\0unset\0empty\0n/"
    "a\0default\0is\0was\0and\0or\0"
    "for\0in\0of\0to\0the\0a\0could\0cannot\0failed\0error\0env\0file\0***\0";

static bool hump(const struct fl_scan *s, size_t a, size_t at)
{
    char before = fl_back(s->p, at, 1), c = s->p[at];

    return at == a || !fl_alpha(before) || (c != s->low[at] && before >= 'a' && before <= 'z');
}

/* The word that ends before `at`, within [a, at). */
static fl_str word_before(const struct fl_scan *s, size_t a, size_t at)
{
    size_t i;

    while (at > a && !fl_alpha(fl_back(s->p, at, 1)))
        at--;
    for (i = at; i > a && fl_alpha(fl_back(s->p, i, 1));) {
        i--;
        if (s->p[i] != s->low[i] && i > a && fl_back(s->p, i, 1) == fl_back(s->low, i, 1))
            break; /* accessKey: from the capital */
    }
    return fl_str_n(s->low + i, at - i);
}

/* access_key_id is the key's, bucket_name the bucket's. */
static size_t without_suffix(const struct fl_scan *s, size_t a, size_t b)
{
    static const fl_str ends[] = {{"name", 4},   {"id", 2},  {"value", 5},
                                  {"base64", 6}, {"b64", 3}, {"data", 4}};

    for (size_t k = 0; k < sizeof(ends) / sizeof(*ends); k++) {
        size_t n = ends[k].n, at;
        if (fl_back(s->low, b, 1) != ends[k].p[n - 1] || b - a <= n ||
            memcmp(s->low + b - n, ends[k].p, n) != 0 || !hump(s, a, b - n))
            continue;
        at = b - n;
        while (at > a && !fl_alnum(fl_back(s->p, at, 1)))
            at--;
        if ((k == 1 || k == 5) && !(at - a >= 3 && memcmp(s->low + at - 3, "key", 3) == 0))
            return b; /* token_id, user_id, node_id are numbers */
        return at;
    }
    return b;
}

/* accesskey in one word, at the end of the name. */
static bool joined(const struct fl_scan *s, size_t a, size_t b)
{
    static const char *const words[] = {"accesskey",  "secretkey", "accountkey",
                                        "privatekey", "authkey",   "sharedkey"};

    for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++) {
        size_t n = strlen(words[k]);
        if (b - a >= n && memcmp(s->low + b - n, words[k], n) == 0 && hump(s, a, b - n))
            return true;
    }
    return false;
}

static enum meaning classify(const struct fl_scan *s, struct name *n)
{
    size_t a = n->a, b = without_suffix(s, n->a, n->b), at;
    bool id = b != n->b;
    fl_str before;

    for (size_t k = 0; k < sizeof(tails) / sizeof(*tails); k++) {
        size_t len = tails[k].word.n;
        if (fl_back(s->low, b, 1) != tails[k].word.p[len - 1] || b - a < len ||
            memcmp(s->low + b - len, tails[k].word.p, len) != 0)
            continue;
        at = b - len;
        before = word_before(s, a, at);
        if (tails[k].means == KEY) {
            if (!hump(s, a, at) && !joined(s, a, b))
                continue;
            if (id)
                return TOKEN;
            return !hump(s, a, at) || fl_word_in(before.p, before.n, locks) ? PASSWORD : KEY;
        }
        if (!hump(s, a, at) && !(len > 5 && tails[k].means == PASSWORD))
            continue;
        if (len == 3 && tails[k].means == PASSWORD && (a == at || fl_str_eqz(before, "old")))
            return NONE; /* PWD, OLDPWD */
        if (tails[k].means == TOKEN && fl_word_in(before.p, before.n, texts))
            return NONE;
        if (tails[k].means == MAYBE_HOST && id)
            return HOST;
        return tails[k].means;
    }
    return NONE;
}

/* Backslashes and a quote: behind it, or `i`. *q is 0 or the quote. */
static size_t quote(const struct fl_scan *s, size_t i, char *q, size_t *slashes)
{
    size_t k = i;

    while (s->p[k] == '\\')
        k++;
    *q = fl_quote(s->p[k]) ? s->p[k] : 0;
    *slashes = k - i;
    return *q ? k + 1 : i;
}

/* Bytes of a value that are judged; one that is a secret goes on to its end. Without a bound a line
 * of a million assignments without blanks would be read once for each of them. */
#define LOOK 1024

/* Behind the quote that closes at or after `i`: what matches in kind and escaping, in this line. */
static size_t closing(const struct fl_scan *s, size_t i, char q, size_t slashes)
{
    for (size_t run = 0, from = i; i < s->n && s->p[i] != '\n' && i - from < 2 * LOOK; i++) {
        if (s->p[i] == q && run <= slashes)
            return i - run;
        run = s->p[i] == '\\' ? run + 1 : 0;
    }
    return 0;
}

/* Does an unquoted value end at the separator `i`? */
static bool separates(const struct fl_scan *s, size_t i)
{
    size_t k = i + 1;

    if (fl_space(s->p[k]) || fl_quote(s->p[k]) || s->p[k] == ')' || s->p[k] == '}' ||
        s->p[k] == ']')
        return true;
    while (k - i < 40 && (fl_word(s->p[k]) || s->p[k] == '-' || s->p[k] == '.'))
        k++;
    return k > i + 1 && (s->p[k] == '=' || s->p[k] == ':');
}

static size_t bare_end(const struct fl_scan *s, size_t i, bool query, size_t most)
{
    size_t a = i;

    for (; i < s->n && i - a < most && !fl_space(s->p[i]) && s->p[i] != '"' && s->p[i] != '\'' &&
           s->p[i] != '`';
         i++) {
        if ((s->p[i] == ',' || s->p[i] == ';') && separates(s, i))
            break;
        if (s->p[i] == '&' && (query || separates(s, i)))
            break;
        if ((s->p[i] == '\\' && fl_quote(s->p[i + 1])) || (s->p[i] == '<' && s->p[i + 1] == '/'))
            break;
        if (query && (s->p[i] == '#' || s->p[i] == '>' || s->p[i] == ')'))
            break;
    }
    while (i > a && strchr(")]},;", fl_back(s->p, i, 1)))
        i--;
    return i;
}

static size_t sign(const struct fl_scan *s, size_t i, bool *colon)
{
    const char *p = s->p + i;

    *colon = p[0] == ':' && p[1] != '=';
    if ((p[0] == ':' && p[1] == '=') || (p[0] == '=' && p[1] == '>'))
        return 2;
    if (p[0] == '=' && p[1] == '=') /* a comparison or a version */
        return 0;
    if (p[0] == '%' && p[1] == '3' && (p[2] == 'D' || p[2] == 'd' || p[2] == 'A' || p[2] == 'a'))
        return 3;
    return p[0] == '=' || p[0] == ':';
}

/* `, "value": ` and a line end with `value: `, behind the name of a container's variable. */
static size_t value_word(const struct fl_scan *s, size_t i)
{
    size_t k = i, n;
    char q;

    while (k - i < 60 && (fl_space(s->p[k]) || s->p[k] == ',') && k < s->n)
        k++;
    k = quote(s, k, &q, &n);
    if (k + 5 >= s->n || memcmp(s->low + k, "value", 5) != 0)
        return 0;
    k = quote(s, k + 5, &q, &n);
    k = fl_blanks(s, k);
    return s->p[k] == ':' || s->p[k] == '=' ? k + 1 : 0;
}

/* | key | x | */
static size_t table_cell(const struct fl_scan *s, const struct name *n)
{
    size_t a = n->a, k = fl_blanks(s, n->b);

    while (fl_blank(fl_back(s->p, a, 1)))
        a--;
    return fl_back(s->p, a, 1) == '|' && s->p[k] == '|' && fl_blank(s->p[k + 1]) ? k + 1 : 0;
}

/* <name>key</name> <value>x</value> */
static size_t xml_value(const struct fl_scan *s, size_t i)
{
    static const fl_str close = {"</name>", 7}, open = {"<value>", 7};
    size_t k = i + close.n;

    if (!fl_str_starts(fl_str_n(s->low + i, s->n - i), close))
        return 0;
    while (k < s->n && k - i < 60 && fl_space(s->p[k]))
        k++;
    return fl_str_starts(fl_str_n(s->low + k, s->n - k), open) ? k + open.n : 0;
}

/* The word that ends before `a`, behind blanks. */
static fl_str word_in_front(const struct fl_scan *s, size_t a)
{
    size_t b;

    while (a > 0 && fl_blank(fl_back(s->p, a, 1)))
        a--;
    for (b = a; a > 0 && b - a < LOOK && !fl_space(fl_back(s->p, a, 1));)
        a--;
    return fl_str_n(s->low + a, b - a);
}

/* Behind `export`, alone or after other assignments, somebody sets it, whatever it looks like. */
static bool exported(const struct fl_scan *s, size_t a)
{
    static const char setters[] = "export\0setenv\0env\0declare\0typeset\0-x\0-gx\0-e\0--env\0";

    for (int k = 0; k < 8; k++) {
        fl_str w = word_in_front(s, a);
        if (w.n == 0)
            return false;
        if (fl_word_in(w.p, w.n, setters))
            return true;
        if (fl_str_find_c(w, '=') < 0)
            return false;
        a = (size_t)(w.p - s->low);
    }
    return false;
}

/* `setenv NAME X` of csh, `set -x NAME X` of fish, `ENV NAME X`: no sign stands between them. */
static bool set_by_word(const struct fl_scan *s, const struct name *n)
{
    fl_str w = word_in_front(s, n->a);

    return fl_blank(s->p[n->b]) && fl_word_in(w.p, w.n, "setenv\0-x\0-gx\0env\0");
}

/* Where the value of `n` begins, or 0. */
static size_t value_start(const struct fl_scan *s, const struct name *n, struct value *v)
{
    size_t slashes, k, len;
    bool colon;
    char q;

    if (s->p[n->b] == '>' && fl_back(s->p, n->a, 1) == '<') /* <password>x</password> */
        return n->b + 1;
    if ((len = xml_value(s, n->b)) != 0)
        return len;
    if ((len = table_cell(s, n)) != 0)
        return len;
    k = quote(s, n->b, &q, &slashes);
    k += k > n->b && s->p[k] == ']'; /* os.environ["TOKEN"] = "x" */
    len = sign(s, fl_blanks(s, k), &colon);
    if (len) {
        size_t at = fl_blanks(s, k) + len;
        v->spaced = colon && fl_blank(s->p[at]);
        /* JSON laid out over lines keeps key and value together; so does YAML but for blocks */
        return fl_blanks(s, at);
    }
    if ((n->upper || n->means == PASSWORD) && (len = value_word(s, k)) != 0)
        return len;
    if (q && s->p[fl_blanks(s, k)] == ',') { /* ['--token', 'x'], ('TOKEN', 'x') */
        size_t at = fl_blanks(s, fl_blanks(s, k) + 1), behind = quote(s, at, &q, &slashes);
        if (behind != at && (n->flag || n->upper))
            return at;
    }
    if ((n->flag && fl_blank(s->p[n->b])) ||
        (n->upper && n->means <= KEY && n->means != NONE && set_by_word(s, n)))
        return fl_blanks(s, n->b);
    return 0;
}

static bool read_value(const struct fl_scan *s, const struct name *n, struct value *v)
{
    size_t i = value_start(s, n, v), slashes, end, k;
    char q;

    if (i == 0)
        return false;
    i = fl_blanks(s, i);
    if ((s->low[i] == 'b' || s->low[i] == 'r' || s->low[i] == 'u' || s->low[i] == 'f') &&
        fl_quote(s->p[i + 1]))
        i++;
    k = quote(s, i, &q, &slashes);
    v->quoted = q != 0;
    v->a = k;
    end = q ? closing(s, k, q, slashes) : 0;
    v->b = end ? end : bare_end(s, k, n->query, LOOK);
    v->cut = !end && v->b - v->a >= LOOK - 1;
    return v->b > v->a;
}

static bool number_like(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fl_digit(p[i]) && !strchr("+-.,:eE%/x", p[i]))
            return false;
    return true;
}

static bool one_letter(const char *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (p[i] != p[0])
            return false;
    return strchr("*xX.-_#?", p[0]) != NULL;
}

static bool letters_only(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fl_alpha(p[i]))
            return false;
    return true;
}

static bool letters_and_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fl_alnum(p[i]))
            return false;
    return true;
}

/* A variable, a template, a call, a placeholder: not the value itself. */
static bool stands_for(const struct fl_scan *s, const struct value *v)
{
    const char *p = s->p + v->a;
    size_t n = v->b - v->a, i = 0;

    if (p[0] == '$' || (p[0] == '{' && !v->quoted) ||
        (p[0] == '%' && (p[1] == '(' || p[1] == 's')) || (p[0] == '<' && p[n - 1] == '>') ||
        p[0] == '(' || (p[0] == '[' && !v->quoted))
        return true;
    if (p[0] == '{' && p[n - 1] == '}')
        return true;
    while (i < n && (fl_word(p[i]) || p[i] == '.'))
        i++;
    return !v->quoted && i > 0 && fl_alpha(p[0]) &&
           ((i < n && (p[i] == '(' || p[i] == '[')) || (i == n && (p[n] == '(' || p[n] == '[')));
}

static bool uuid(const char *p, size_t n)
{
    if (n != 36)
        return false;
    for (size_t i = 0; i < n; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? p[i] != '-' : !fl_hexdigit(p[i]))
            return false;
    return true;
}

/* Would a key look so? */
static bool strong(const char *p, size_t n)
{
    size_t words = 0, letters = 0, digits = 0;

    if (n < 8 || p[0] == '/' || p[0] == '.' || number_like(p, n))
        return false;
    if (uuid(p, n))
        return true;
    for (size_t i = 0; i < n; i++) {
        words += p[i] == '.' || p[i] == '/' || p[i] == '[' || p[i] == '(' || p[i] == '|';
        letters += fl_alpha(p[i]);
        digits += fl_digit(p[i]);
    }
    if (words * 6 > n) /* a path or a dotted name */
        return false;
    return fl_opaque(p, n) ||
           (n >= 10 && digits >= 3 && letters >= 3 && words == 0 && !memchr(p, '-', n) &&
            !memchr(p, '_', n)) ||
           (n >= 32 && words == 0 && letters + digits == n);
}

/* Is the name the first thing of its line but for blanks, a list's dash and what a page or a logger
 * puts there: FILE:LINE and a TAB, ERROR? */
static bool first_of_line(const struct fl_scan *s, size_t a, bool level)
{
    static const char levels[] = "error\0err\0fatal\0critical\0warning\0warn\0info\0debug\0";
    size_t b;

    while (a > 0 && (fl_blank(fl_back(s->p, a, 1)) || fl_back(s->p, a, 1) == '-' ||
                     fl_quote(fl_back(s->p, a, 1))))
        a--;
    for (b = a; a > 0 && fl_alpha(fl_back(s->p, a, 1)) && b - a < 9;)
        a--;
    if (b > a)
        return level && fl_word_in(s->low + a, b - a, levels) && !fl_word(fl_back(s->p, a, 1)) &&
               fl_blank(s->p[b]);
    return a == 0 || fl_back(s->p, a, 1) == '\n' ||
           (s->p[a] == '\t' && fl_digit(fl_back(s->p, a, 1)));
}

/* Decides whether the value goes; may make it longer. */
static bool is_secret(const struct fl_scan *s, const struct name *n, struct value *v)
{
    const char *p = s->p + v->a;
    size_t len = v->b - v->a;

    if (fl_word_in(s->low + v->a, len, blank_values) || one_letter(p, len) || stands_for(s, v))
        return false;
    if (n->means == PASSWORD) {
        bool prose = v->spaced && !v->quoted && letters_only(p, len) && fl_blank(s->p[v->b]) &&
                     fl_alpha(s->p[v->b + 1]);
        bool line = v->spaced && !v->quoted && first_of_line(s, n->a, false);
        if (!line && prose)
            return false;
        while (line && v->b < s->n && !fl_eol(s->p[v->b]) &&
               !(s->p[v->b] == ' ' && s->p[v->b + 1] == '#'))
            v->b++;
        return v->quoted || n->flag || n->upper || !number_like(p, len) || len > 3;
    }
    if (strong(p, len))
        return true;
    if (number_like(p, len) || p[0] == '/' || p[0] == '.')
        return false;
    if (len >= 4 && p[0] != '~' && !n->flag && exported(s, n->a))
        return true;
    if (!(n->upper || n->flag))
        return false;
    if (n->means == KEY)
        return n->upper && len >= 8 && !memchr(p, '/', len) && !memchr(p, '.', len) &&
               !letters_only(p, len) && (len >= 12 || letters_and_digits(p, len));
    return len >= 6 && !memchr(p, '|', len) && !(n->flag && n->means == TOKEN && p[0] == '<');
}

/* Authorization: [scheme] credentials; Cookie: pairs up to the line's or the quote's end. */
static void header(struct fl_scan *s, const struct name *n, struct value *v)
{
    static const char schemes[] = "bearer\0basic\0token\0apikey\0key\0digest\0negotiate\0bot\0"
                                  "aws4-hmac-sha256\0tc3-hmac-sha256\0glpat\0";
    char outer = fl_quote(fl_back(s->p, n->a, 1)) ? fl_back(s->p, n->a, 1) : 0;
    size_t a = v->a, e, end = v->b;
    bool scheme;

    if (!v->quoted)
        for (end = a; end < s->n && end - a < 4 * LOOK && !fl_eol(s->p[end]) &&
                      s->p[end] != outer && !(outer == 0 && fl_quote(s->p[end]));)
            end++;
    for (e = a; e < end && (fl_alnum(s->p[e]) || s->p[e] == '-'); e++)
        ;
    scheme = e > a && fl_word_in(s->low + a, e - a, schemes) && s->p[e] == ' ';
    if (n->means == COOKIE) {
        if (memchr(s->p + a, '=', end - a))
            fl_scan_add(s, a, end, FL_REDACT_SECRET);
        return;
    }
    if (scheme)
        a = fl_blanks(s, e);
    if (a >= end) /* "Bearer " and no more */
        return;
    /* schemes with parameters run on, a lone token ends at a blank */
    if (!(scheme && memchr(s->p + a, '=', end - a) && memchr(s->p + a, ',', end - a))) {
        for (e = a; e < end && !fl_space(s->p[e]);)
            e++;
        end = e;
    }
    while (end > a && strchr(",;})]\\", fl_back(s->p, end, 1)))
        end--;
    if (end - a >= 6 && (scheme || strong(s->p + a, end - a)) &&
        !fl_word_in(s->low + a, end - a, blank_values))
        fl_scan_add(s, a, end, FL_REDACT_SECRET);
}

/* "the API key is 0123...": the first key-like word of the next five. */
static void in_prose(struct fl_scan *s, const struct name *n)
{
    size_t i = n->b, e;

    for (int word = 0; word < 6 && i - n->b < 80; word++) {
        while (fl_blank(s->p[i]) || fl_quote(s->p[i]) || s->p[i] == ':' || s->p[i] == '=' ||
               s->p[i] == ',' || s->p[i] == '(' || s->p[i] == '>' || s->p[i] == '\\')
            i++;
        for (e = i; e < s->n && e - i < LOOK && !fl_space(s->p[e]) && !fl_quote(s->p[e]) &&
                    s->p[e] != ')' && s->p[e] != ',' && s->p[e] != '\\';)
            e++;
        if (e == i)
            return;
        if (e - i >= 16 && strong(s->p + i, e - i) &&
            (fl_opaque(s->p + i, e - i) || (e - i >= 32 && letters_and_digits(s->p + i, e - i))) &&
            !memchr(s->p + i, '.', e - i) && !memchr(s->p + i, '/', e - i)) {
            fl_scan_add(s, i, e, FL_REDACT_SECRET);
            return;
        }
        i = e;
    }
}

/* .netrc: login bob password x; sshpass -p x, docker login -p x */
static void short_forms(struct fl_scan *s, const struct name *n)
{
    bool word = n->b - n->a == 8 && memcmp(s->low + n->a, "password", 8) == 0;
    bool flag = n->b - n->a == 1 && s->low[n->a] == 'p' && n->flag;
    fl_str head;
    size_t i;

    if (s->p[n->b] != ' ' || !(word || flag))
        return;
    head = fl_scan_head(s, n->a);
    i = fl_blanks(s, n->b);
    i += fl_quote(s->p[i]) != 0;
    if (fl_str_has(head, FL_S("login ")) || (flag && fl_str_has(head, FL_S("sshpass"))))
        fl_scan_add(s, i, bare_end(s, i, false, LOOK), FL_REDACT_SECRET);
}

static void bucket(struct fl_scan *s, const struct value *v)
{
    size_t e = v->a, letters = 0, marks = 0; /* what words have none of */

    for (; e < v->b && (fl_namec(s->p[e]) || s->p[e] == '_'); e++) {
        letters += s->p[e] >= 'a' && s->p[e] <= 'z';
        marks += s->p[e] == '-' || fl_digit(s->p[e]);
    }
    if (letters && e - v->a >= 3 && (v->quoted || !v->spaced || marks) && s->p[e] != '(' &&
        s->p[e] != '[' && !stands_for(s, v) && !fl_word_in(s->low + v->a, e - v->a, blank_values))
        fl_scan_add(s, v->a, e, FL_REDACT_BUCKET);
}

/* `login: bob` at the end of a line or a clause. */
static bool lone(const struct fl_scan *s, const struct value *v)
{
    for (size_t i = v->a; i < v->b; i++)
        if (s->p[i] != s->low[i] || !(fl_namec(s->p[i]) || s->p[i] == '_'))
            return false;
    return v->b - v->a >= 3 && (fl_eol(s->p[v->b]) || memchr(",;)", s->p[v->b], 3));
}

/* Acts on a name that is of a class; where the scan goes on. */
static size_t act(struct fl_scan *s, const struct name *n)
{
    struct value v = {0};

    if (!read_value(s, n, &v)) {
        if (n->means == TOKEN || n->means == PASSWORD || n->means == KEY)
            in_prose(s, n);
        if (n->means == BUCKET && s->p[n->b] == ' ' && fl_quote(s->p[n->b + 1])) {
            v = (struct value){.a = n->b + 2, .b = n->b + 2 + LOOK, .quoted = true};
            v.b = v.b < s->n ? v.b : s->n;
            bucket(s, &v);
        }
        return n->b;
    }
    switch (n->means) {
    case HEADER:
    case COOKIE:
        header(s, n, &v);
        break;
    case USER:
        if (n->upper || !v.spaced || v.quoted ||
            (!fl_ordinary(s->low + v.a, v.b - v.a) &&
             (first_of_line(s, n->a, true) || lone(s, &v))))
            fl_user_value(s, v.a, v.b);
        break;
    case HOST:
        fl_host_value(s, v.a, v.b, !v.spaced || v.quoted || n->upper);
        break;
    case MAYBE_HOST:
        fl_host_value(s, v.a, v.b, false);
        break;
    case BUCKET:
        bucket(s, &v);
        break;
    default:
        if (is_secret(s, n, &v)) {
            if (v.cut)
                v.b = bare_end(s, v.a, n->query, s->n);
            fl_scan_add(s, v.a, v.b, FL_REDACT_SECRET);
            return v.b;
        }
        in_prose(s, n);
    }
    return n->b;
}

void fl_scan_assign(struct fl_scan *s)
{
    for (size_t i = 0; i < s->n;) {
        struct name n = {.a = i, .b = i, .upper = true};
        if (!fl_word(s->p[i]) || fl_word(fl_back(s->p, i, 1))) {
            i++;
            continue;
        }
        while (n.b < s->n && (fl_word(s->p[n.b]) || s->p[n.b] == '-' || s->p[n.b] == '.')) {
            n.upper &=
                s->p[n.b] == '_' || fl_digit(s->p[n.b]) || (s->p[n.b] >= 'A' && s->p[n.b] <= 'Z');
            n.b++;
        }
        i = n.b;
        while (n.b > n.a + 1 && !fl_alnum(fl_back(s->p, n.b, 1)))
            n.b--;
        n.flag = fl_back(s->p, n.a, 1) == '-' && (n.a < 2 || !fl_word(fl_back(s->p, n.a, 2)));
        n.query = fl_back(s->p, n.a, 1) == '?' || fl_back(s->p, n.a, 1) == '&';
        n.means = classify(s, &n);
        if (n.b - n.a == 8 || n.b - n.a == 1)
            short_forms(s, &n);
        if (n.means != NONE) {
            size_t next = act(s, &n);
            i = next > i ? next : i;
        }
    }
}
