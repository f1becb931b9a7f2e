/*
 * Secrets and names that a command or a sentence tells: `mysql -pX`, `wandb login X`, `password X
 * rejected`, `chown bob:staff`, `the bucket does not exist: X`.
 *
 * Here nothing stands between a name and its value but a blank, so the word alone decides less than
 * it does in assign.c. A flag of one letter counts behind the tool that has it, and one that may
 * also stand without a value (`mysql -p runs`) only where the value is glued to it. What follows
 * `password` in prose is a verb far more often than a password, so it must have both letters and
 * digits. A bucket in prose must have a hyphen or a digit and a sentence that object stores print,
 * because gradients are kept in buckets too. A line is looked back at for 200 bytes and no more.
 */
#include "redact/scan.h"

#define LOOK 256

fl_str fl_scan_head(const struct fl_scan *s, size_t at)
{
    size_t a = at;

    while (a > 0 && at - a < 200 && fl_back(s->p, a, 1) != '\n')
        a--;
    return fl_str_n(s->low + a, at - a);
}

/* The end of the word at `i`: a blank or a quote, without punctuation behind it; behind a quote its
 * other one. */
static size_t word_end(const struct fl_scan *s, size_t i)
{
    size_t e = i;

    if (fl_quote(fl_back(s->p, i, 1))) { /* to the other quote */
        while (e < s->n && e - i < LOOK && !fl_eol(s->p[e]) && s->p[e] != fl_back(s->p, i, 1))
            e++;
        if (s->p[e] == fl_back(s->p, i, 1))
            return e;
        e = i;
    }
    while (e < s->n && e - i < LOOK && !fl_space(s->p[e]) && !fl_quote(s->p[e]))
        e++;
    while (e > i && memchr(".,;:)]}\\", fl_back(s->p, e, 1), 8))
        e--;
    return e;
}

/* Has letters and digits, and is none of the words that do. */
static bool mixed(const struct fl_scan *s, size_t a, size_t b, size_t least)
{
    static const char methods[] =
        "sha1\0sha224\0sha256\0sha384\0sha512\0md5\0bcrypt2\0base64\0utf8\0utf-8\0pbkdf2\0argon2\0"
        "argon2i\0argon2id\0oauth2\0ipv4\0ipv6\0krb5\0x509\0pkcs1\0pkcs8\0pkcs12\0aes128\0aes256\0"
        "ntlmv2\0";
    size_t letters = 0, digits = 0;

    for (size_t i = a; i < b; i++) {
        letters += fl_alpha(s->p[i]);
        digits += fl_digit(s->p[i]);
        if (memchr("/\\()<>{}=|", s->p[i], 10))
            return false;
    }
    return b - a >= least && letters >= 2 && digits && !fl_word_in(s->low + a, b - a, methods);
}

/* password [is|was] X, and password for bob: X */
static void password_said(struct fl_scan *s, size_t b)
{
    size_t i = fl_blanks(s, b), e, least = 6;

    if (!fl_blank(s->p[b]))
        return;
    if (memcmp(s->low + i, "for ", i + 4 <= s->n ? 4 : 0) == 0 && i + 4 <= s->n) {
        i = fl_blanks(s, i + 4);
        if (i + 5 <= s->n && memcmp(s->low + i, "user ", 5) == 0)
            i = fl_blanks(s, i + 5);
        i += fl_quote(s->p[i]) != 0;
        e = word_end(s, i);
        if (memchr(s->p + i, '/', e - i)) /* a URL; its login is urls.c's */
            return;
        fl_user_value(s, i, e);
        e += fl_quote(s->p[e]) != 0;
        if (s->p[e] != ':')
            return;
        i = fl_blanks(s, e + 1);
        least = 4;
    } else if (i + 3 <= s->n && memcmp(s->low + i, "is ", 3) == 0) {
        i = fl_blanks(s, i + 3);
    } else if (i + 4 <= s->n && memcmp(s->low + i, "was ", 4) == 0) {
        i = fl_blanks(s, i + 4);
    }
    i += fl_quote(s->p[i]) != 0;
    e = word_end(s, i);
    if (mixed(s, i, e, least))
        fl_scan_add(s, i, e, FL_REDACT_SECRET);
}

/* wandb login [--relogin] KEY */
static void login_key(struct fl_scan *s, size_t b)
{
    size_t i = b, e;

    for (int word = 0; word < 5 && fl_blank(s->p[i]); word++, i = e) {
        i = fl_blanks(s, i);
        i += fl_quote(s->p[i]) != 0;
        e = word_end(s, i);
        if (e == i)
            return;
        if (s->p[i] == '-' || fl_str_has(fl_str_n(s->p + i, e - i), FL_S("://")))
            continue;
        if (mixed(s, i, e, 16) && !memchr(s->p + i, '.', e - i) &&
            (fl_opaque(s->p + i, e - i) || e - i >= 32))
            fl_scan_add(s, i, e, FL_REDACT_SECRET);
        return;
    }
}

enum takes { SPACED = 1, GLUED = 2, NAME = 4, LOGIN = 8, MACHINE = 16 };
struct flag {
    const char *tool;
    char letter;
    unsigned char takes;
};

/* -p X, -pX, -u bob, -u bob:X behind a tool's name; at the letter. */
static void tool_flag(struct fl_scan *s, size_t a)
{
    static const struct flag flags[] = {
        {"mysql", 'p', GLUED},
        {"mariadb", 'p', GLUED},
        {"sshpass", 'p', GLUED},
        {"redis-cli", 'a', SPACED},
        {"ldap", 'w', SPACED},
        {"mongo", 'p', SPACED},
        {"zip", 'P', SPACED},
        {"sqlcmd", 'P', SPACED},
        {"rabbitmq", 'p', SPACED},
        {"mysql", 'u', SPACED | GLUED | NAME},
        {"mariadb", 'u', SPACED | GLUED | NAME},
        {"sudo", 'u', SPACED | NAME},
        {"squeue", 'u', SPACED | NAME},
        {"sacct", 'u', SPACED | NAME},
        {"scancel", 'u', SPACED | NAME},
        {"qstat", 'u', SPACED | NAME},
        {"ssh", 'l', SPACED | NAME},
        {"psql", 'U', SPACED | NAME},
        {"login", 'u', SPACED | NAME},
        {"psql", 'h', SPACED | MACHINE},
        {"mysql", 'h', SPACED | MACHINE},
        {"redis-cli", 'h', SPACED | MACHINE},
        {"curl", 'u', SPACED | GLUED | LOGIN},
    };
    bool glued = !fl_blank(s->p[a + 1]);
    size_t i = fl_blanks(s, a + 1), e;
    fl_str head = fl_scan_head(s, a - 1);

    i += fl_quote(s->p[i]) != 0;
    e = word_end(s, i);
    if (e < i + 2 || s->p[i] == '-' || s->p[i] == '$' ||
        fl_word_in(s->low + i, e - i, "ort\0rotocol\0assword\0ser\0rl\0"))
        return;
    for (size_t k = 0; k < sizeof(flags) / sizeof(*flags); k++) {
        const char *colon = memchr(s->p + i, ':', e - i);
        if (flags[k].letter != s->p[a] || !(flags[k].takes & (glued ? GLUED : SPACED)) ||
            !fl_str_has(head, fl_str_c(flags[k].tool)))
            continue;
        if (flags[k].takes & LOGIN) {
            if (colon) {
                fl_user_value(s, i, (size_t)(colon - s->p));
                fl_scan_add(s, (size_t)(colon - s->p) + 1, e, FL_REDACT_SECRET);
            }
        } else if (flags[k].takes & NAME) {
            fl_user_value(s, i, e);
        } else if (flags[k].takes & MACHINE) {
            fl_host_value(s, i, e, true);
        } else {
            fl_scan_add(s, i, e, FL_REDACT_SECRET);
        }
        return;
    }
}

/* curl --user bob:X */
static void user_flag(struct fl_scan *s, size_t b)
{
    size_t i = b + 1, e;
    const char *colon;

    i += fl_quote(s->p[i]) != 0;
    e = word_end(s, i);
    colon = memchr(s->p + i, ':', e - i);
    if ((s->p[b] == ' ' || s->p[b] == '=') && colon && s->p[i] != '$')
        fl_scan_add(s, (size_t)(colon - s->p) + 1, e, FL_REDACT_SECRET);
}

/* chown [-R] bob:staff PATH */
static void owners(struct fl_scan *s, size_t b)
{
    size_t i = b, e, c;

    do {
        if (!fl_blank(s->p[i]))
            return;
        i = fl_blanks(s, i);
        e = word_end(s, i);
    } while (s->p[i] == '-' && e > i && (i = e) != 0);
    for (c = i; c < e && s->p[c] != ':';)
        c++;
    if (c == e && !(fl_blank(s->p[e]) && memchr("/.~$", s->p[fl_blanks(s, e)], 4)))
        return;
    fl_user_value(s, i, c);
    if (c < e && !fl_ordinary(s->low + c + 1, e - c - 1))
        fl_user_value(s, c + 1, e);
}

/* -rw-r--r-- 1 bob staff 4096, at the "rw". */
static void listed(struct fl_scan *s, size_t a)
{
    size_t i = a, e;

    while (i < s->n && i - a < 10 && memchr("rwxsStTd-", s->p[i], 9))
        i++;
    if (i - a < 9 || !memchr("-dls", fl_back(s->p, i, 10), 4))
        return;
    i += s->p[i] == '+' || s->p[i] == '.' || s->p[i] == '@';
    if (!fl_blank(s->p[i]) || !fl_digit(s->p[fl_blanks(s, i)]))
        return;
    for (i = fl_blanks(s, i); fl_digit(s->p[i]);)
        i++;
    if (!fl_blank(s->p[i]))
        return;
    i = fl_blanks(s, i);
    e = word_end(s, i);
    fl_user_value(s, i, e);
    if (fl_blank(s->p[e]) && fl_alpha(s->p[fl_blanks(s, e)])) {
        i = fl_blanks(s, e);
        fl_user_value(s, i, word_end(s, i));
    }
}

/* A name that a bucket has and no word of a sentence. */
static bool bucket_name(const struct fl_scan *s, size_t a, size_t b)
{
    size_t letters = 0, marks = 0;

    for (size_t i = a; i < b; i++) {
        if (!(fl_namec(s->p[i]) || s->p[i] == '_') || s->p[i] != s->low[i])
            return false;
        letters += fl_alpha(s->p[i]);
        marks += fl_digit(s->p[i]) || s->p[i] == '-';
    }
    return b - a >= 3 && b - a <= 63 && letters && marks && fl_alnum(s->p[a]);
}

/* "The specified bucket does not exist: X", "bucket X does not exist": behind the word. */
static void bucket_said(struct fl_scan *s, size_t b)
{
    static const char *const ends[] = {" does not exist", " not found", " doesn't exist",
                                       " is not accessible", " already exists"};
    size_t i = b, e = b, word;

    for (word = 0; word < 8 && s->p[i] == ' '; word++, i = e) {
        i++;
        for (e = i; fl_alpha(s->p[e]) || s->p[e] == '\'';)
            e++;
        if (s->p[e] == ':' && s->p[e + 1] == ' ' && word > 0) {
            i = e + 2 + (fl_quote(s->p[e + 2]) != 0);
            e = word_end(s, i);
            if (bucket_name(s, i, e))
                fl_scan_add(s, i, e, FL_REDACT_BUCKET);
            return;
        }
        if (s->p[e] != ' ' || fl_word_in(s->low + i, e - i, "named\0name\0called\0"))
            break;
    }
    if (s->p[e] == ' ' && word < 8 && e > b)
        i = e + 1;
    else if (word > 0)
        return;
    e = word_end(s, i);
    for (size_t k = 0; k < sizeof(ends) / sizeof(*ends) && bucket_name(s, i, e); k++)
        if (fl_str_starts(fl_str_n(s->low + e, s->n - e), fl_str_c(ends[k])))
            fl_scan_add(s, i, e, FL_REDACT_BUCKET);
}

/* submitted by bob, owned by: bob */
static void by_whom(struct fl_scan *s, size_t b)
{
    size_t i = b + 4, e;

    if (b + 4 >= s->n || memcmp(s->low + b, " by", 3) != 0 ||
        !(s->p[b + 3] == ' ' || (s->p[b + 3] == ':' && s->p[b + 4] == ' ')))
        return;
    i = fl_blanks(s, i);
    i += fl_quote(s->p[i]) != 0;
    e = word_end(s, i);
    if (!fl_ordinary(s->low + i, e - i))
        fl_user_value(s, i, e);
}

void fl_scan_commands(struct fl_scan *s)
{
    for (size_t i = 0, b; i<s->n; i = b> i ? b : i + 1) {
        const char *low = s->low + i;
        bool flag;
        b = i;
        if (!fl_alpha(s->p[i]) || fl_word(fl_back(s->p, i, 1)))
            continue;
        while (fl_word(s->p[b]))
            b++;
        flag = fl_back(s->p, i, 1) == '-';
        if (flag && i > 1 && fl_space(fl_back(s->p, i, 2)))
            tool_flag(s, i);
        else if (flag && b - i == 4 && memcmp(low, "user", 4) == 0)
            user_flag(s, b);
        if (fl_word_in(low, b - i, "password\0passwd\0passphrase\0passcode\0pwd\0"))
            password_said(s, b);
        else if (fl_word_in(low, b - i, "login\0"))
            login_key(s, b);
        else if (fl_word_in(low, b - i, "chown\0chgrp\0"))
            owners(s, b);
        else if (fl_word_in(low, b - i, "submitted\0owned\0"))
            by_whom(s, b);
        else if (b - i >= 6 && memcmp(s->low + b - 6, "bucket", 6) == 0)
            bucket_said(s, b);
        else if (flag || memchr("dls", low[0], 3))
            listed(s, flag ? i : i + 1);
    }
}
