/*
 * Shapes, in one pass and without a table of formats.
 *
 * A word with digits in it is a number, an id or a name with a number. Digits become '#', a word
 * that mixes letters and digits as only ids do becomes '#' as a whole, and runs such as 12:30:05,
 * 3/100, 10.0.0.7 or [1, 2, 3] become one '#', so that a list of any length has one shape. A path
 * keeps its last part: /a/b/c.py and /x/c.py are one file. Blanks in a row are one.
 *
 * Decisions depend on which bytes are digits and never on their values, but for the numbers that
 * are kept; the callers rely on it (match/classes.c finds lines that differ in digits alone).
 *
 * Refused: templates that are learnt, as Drain does. They depend on the order of lines and on what
 * else was in the log; a shape depends on its line alone.
 */
#include "compress/shape.h"

struct masker {
    fl_str in;
    size_t at;
    char *out;
    size_t n;
    bool codes;
    unsigned keep;  /* numbers to keep because of the word before */
    size_t keep_at; /* the number of an Xid line stands behind its device */
    bool path;      /* inside a path whose folders have been dropped */
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool word_byte(char c)
{
    return digit(c) || letter(c);
}

static bool hex_letter(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static void put(struct masker *m, char c)
{
    if (m->n < FL_SHAPE_OUT)
        m->out[m->n++] = c;
}

static bool separates(char c)
{
    return c == ' ' || c == ',' || c == ':' || c == '.' || c == '-' || c == '/' || c == '+' ||
           c == ';' || c == '_' || c == 'T' || c == 'x';
}

/* A masked number; a run of them is one. */
static void put_mask(struct masker *m)
{
    size_t n = m->n, steps = 0;

    while (n && steps < 2 && separates(m->out[n - 1]))
        n--, steps++;
    if (n && m->out[n - 1] == '#')
        m->n = n;
    else
        put(m, '#');
}

/* The words before a number that is kept, and how many numbers each keeps. */
static unsigned keeps(fl_str word)
{
    static const struct {
        fl_str word;
        unsigned numbers;
    } table[] = {{{"xid", 3}, 1},         {{"sxid", 4}, 1},      {{"code", 4}, 1},
                 {{"exitcode", 8}, 1},    {{"errorcode", 9}, 1}, {{"errno", 5}, 1},
                 {{"error", 5}, 1},       {{"err", 3}, 1},       {{"status", 6}, 1},
                 {{"signal", 6}, 1},      {{"sig", 3}, 1},       {{"rc", 2}, 1},
                 {{"ret", 3}, 1},         {{"retcode", 7}, 1},   {{"exit", 4}, 1},
                 {{"returned", 8}, 1},    {{"result", 6}, 1},    {{"http", 4}, 3},
                 {{"cudaerror", 9}, 1},   {{"cuda", 4}, 1},      {{"ncclresult", 10}, 1},
                 {{"statuscode", 10}, 1}, {{"retval", 6}, 1},    {{"returncode", 10}, 1},
                 {{"errcode", 7}, 1},     {{"failure", 7}, 1},   {{"httperror", 9}, 1},
                 {{"curesult", 8}, 1},    {{"aclerror", 8}, 1},  {{"hcclresult", 10}, 1},
                 {{"cudastatus", 10}, 1}};
    char text[12];

    if (word.n < 2 || word.n > 10)
        return 0;
    for (size_t i = 0; i < word.n; i++)
        text[i] = lower(word.p[i]);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].word.p[0] == text[0] && fl_str_eq(fl_str_n(text, word.n), table[i].word))
            return table[i].numbers;
    return 0;
}

/* Words between such a word and its number: "error code is 507011". */
static bool joins(fl_str word)
{
    return fl_str_ieq(word, FL_S("is")) || fl_str_ieq(word, FL_S("was")) ||
           fl_str_ieq(word, FL_S("number"));
}

/* "Xid (PCI:0000:3b:00): 79", "SXid (PCI:0000:84:00.0): 22013", and without PCI as older drivers
 * have it: the place of the number. */
static size_t xid_number(fl_str rest)
{
    ptrdiff_t at;

    if (!fl_str_starts(rest, FL_S(" (")))
        return 0;
    at = fl_str_find(fl_str_sub(rest, 0, 40), FL_S("): "));
    return at < 0 ? 0 : (size_t)at + 3;
}

/* Behind "#-", as the second and later parts of a UUID. */
static bool in_uuid(const struct masker *m)
{
    return m->n >= 2 && m->out[m->n - 1] == '-' && m->out[m->n - 2] == '#';
}

static void letters(struct masker *m, fl_str word)
{
    bool xid = fl_str_ieq(word, FL_S("xid")) || fl_str_ieq(word, FL_S("sxid"));
    size_t number = xid ? xid_number(fl_str_from(m->in, m->at)) : 0;
    bool hex = word.n >= 4 && in_uuid(m);

    for (size_t i = 0; hex && i < word.n; i++)
        hex = hex_letter(word.p[i]);
    if (hex) { /* the part of a UUID without a digit in it */
        put_mask(m);
        return;
    }
    if (!m->keep || !joins(word))
        m->keep = keeps(word);
    if (number) {
        m->keep_at = m->at + number;
        m->keep = 0;
    }
    for (size_t i = 0; i < word.n; i++)
        put(m, word.p[i]);
}

/* The end of a number that begins at `at`: fraction and exponent. */
static size_t number_end(const struct masker *m, size_t at)
{
    const char *p = m->in.p;
    size_t n = m->in.n;

    if (at + 1 < n && p[at] == '.' && digit(p[at + 1]))
        for (at++; at < n && digit(p[at]);)
            at++;
    if (at + 1 < n && (p[at] == 'e' || p[at] == 'E')) {
        size_t i = at + 1;
        if (p[i] == '-' || p[i] == '+')
            i++;
        if (i < n && digit(p[i])) {
            for (at = i; at < n && digit(p[at]);)
                at++;
        }
    }
    return at;
}

static void put_kept(struct masker *m, fl_str word)
{
    m->codes = true;
    for (size_t i = 0; i < word.n; i++)
        put(m, word.p[i]);
}

static void number(struct masker *m, size_t start)
{
    size_t end = m->at, after = number_end(m, end);
    bool kept = (m->keep || start == m->keep_at) && end - start <= 6 && after == end;

    if (m->keep)
        m->keep--;
    m->at = after;
    if (!kept) {
        put_mask(m);
        return;
    }
    put_kept(m, fl_str_sub(m->in, start, end - start));
}

/* EI0002, EZ9999, ERR02200: how CANN and its PyTorch number their errors. */
static bool error_id(fl_str word)
{
    size_t head = 0, n;

    while (head < word.n && word.p[head] >= 'A' && word.p[head] <= 'Z')
        head++;
    for (n = head; n < word.n && digit(word.p[n]); n++)
        ;
    return n == word.n && word.p[0] == 'E' && head >= 2 && head <= 3 && n - head >= 4 &&
           n - head <= 5;
}

/* 0x1f. That the first digit is a 0 is not asked for: no digit's value may count. */
static bool hex_number(fl_str word)
{
    bool hex = word.n > 2 && digit(word.p[0]) && lower(word.p[1]) == 'x';

    for (size_t i = 2; hex && i < word.n; i++)
        hex = digit(word.p[i]) || hex_letter(word.p[i]);
    return hex;
}

/* A word of letters and digits. */
static void mixed(struct masker *m, fl_str word)
{
    size_t head = 0, tail = 0;
    bool hex = word.n >= 6 || (word.n == 2 && m->n && m->out[m->n - 1] == ':') ||
               (word.n == 4 && in_uuid(m));

    if (hex_number(word)) {
        bool kept = m->keep && word.n <= 2 + 8; /* longer ones are addresses */
        m->keep = 0;
        if (kept)
            put_kept(m, word);
        else
            put_mask(m);
        return;
    }
    m->keep = 0;
    if (error_id(word)) {
        put_kept(m, word);
        return;
    }
    for (size_t i = 0; hex && i < word.n; i++)
        hex = digit(word.p[i]) || hex_letter(word.p[i]);
    while (head < word.n && letter(word.p[head]))
        head++;
    while (tail < word.n - head && letter(word.p[word.n - 1 - tail]))
        tail++;
    /* 10ms and node12 keep their letters; x7k2p is an id. */
    if (hex || (head && tail)) {
        put_mask(m);
        return;
    }
    for (size_t i = head; i < word.n - tail; i++)
        if (letter(word.p[i])) {
            put_mask(m);
            return;
        }
    for (size_t i = 0; i < head; i++)
        put(m, word.p[i]);
    if (head)
        put(m, '#');
    else
        put_mask(m);
    for (size_t i = word.n - tail; i < word.n; i++)
        put(m, word.p[i]);
}

static void word(struct masker *m)
{
    size_t start = m->at;
    bool digits = false, others = false;
    const char *p = m->in.p;

    for (; m->at < m->in.n && word_byte(p[m->at]); m->at++) {
        size_t end = digits && !others && lower(p[m->at]) == 'e' ? number_end(m, m->at) : 0;
        if (end > m->at && (end == m->in.n || !word_byte(p[end]))) {
            m->at = end; /* 2E-04: the letter is the number's */
            put_mask(m);
            return;
        }
        digits |= digit(p[m->at]);
        others |= !digit(p[m->at]);
    }
    if (!digits)
        letters(m, fl_str_n(p + start, m->at - start));
    else if (!others)
        number(m, start);
    else
        mixed(m, fl_str_n(p + start, m->at - start));
}

static bool path_byte(char c)
{
    return word_byte(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '@' ||
           c == '%' || c == '=' || c == '~';
}

/* At '/': where a path's last part begins, or 0 when this is no path. */
static size_t last_part(const struct masker *m)
{
    size_t at = m->at, last = m->at;
    char before = at ? m->in.p[at - 1] : ' ';

    if (word_byte(before) || before == '_' || before == ')' || before == ']')
        return 0;
    if (at + 1 >= m->in.n || !(path_byte(m->in.p[at + 1])))
        return 0;
    for (; at < m->in.n && path_byte(m->in.p[at]); at++)
        if (m->in.p[at] == '/' && at + 1 < m->in.n && path_byte(m->in.p[at + 1]))
            last = at;
    return last + 1;
}

size_t fl_shape(fl_str message, char out[FL_SHAPE_OUT], bool *codes)
{
    struct masker m = {.in = fl_str_sub(message, 0, FL_SHAPE_IN), .out = out, .keep_at = SIZE_MAX};

    while (m.at < m.in.n) {
        char c = m.in.p[m.at];
        size_t part;
        if (word_byte(c)) {
            word(&m);
            continue;
        }
        if (c == '/' && (part = last_part(&m))) {
            put(&m, '/');
            m.at = part;
            continue;
        }
        m.at++;
        if (c == '\t')
            c = ' ';
        if (c != ' ' || m.n == 0 || out[m.n - 1] != ' ')
            put(&m, c);
    }
    while (m.n && out[m.n - 1] == ' ')
        m.n--;
    *codes = m.codes;
    return m.n;
}

/* Beginnings of words, up to eight letters, sorted by the first. */
static const struct {
    char word[8];
    uint8_t badness;
} words[] = {
    {"abort", 3},    {"anomal", 2},   {"assert", 3},   {"bad", 2},      {"broken", 2},
    {"cancel", 2},   {"cannot", 2},   {"closed", 1},   {"collide", 2},  {"conflict", 2},
    {"corrupt", 3},  {"crash", 3},    {"critical", 3}, {"dead", 2},     {"denied", 3},
    {"died", 3},     {"diverg", 2},   {"down", 1},     {"drain", 2},    {"dump", 1},
    {"duplicat", 1}, {"enospc", 3},   {"errno", 2},    {"error", 2},    {"evict", 3},
    {"exceed", 2},   {"exceptio", 3}, {"exhaust", 3},  {"exit", 1},     {"exitcode", 1},
    {"expire", 2},   {"fail", 2},     {"fallen", 3},   {"fatal", 3},    {"fault", 2},
    {"full", 1},     {"halt", 3},     {"hang", 2},     {"hung", 3},     {"illegal", 3},
    {"incompat", 2}, {"inconsis", 2}, {"inf", 1},      {"insuffic", 2}, {"interrup", 2},
    {"invalid", 2},  {"kill", 3},     {"leak", 1},     {"limit", 1},    {"lost", 2},
    {"mismatch", 2}, {"missing", 2},  {"nan", 2},      {"nonzero", 1},  {"oom", 3},
    {"overflow", 2}, {"overheat", 3}, {"panic", 3},    {"preempt", 3},  {"quota", 2},
    {"reboot", 3},   {"reclaim", 2},  {"refuse", 2},   {"reject", 2},   {"remov", 1},
    {"reset", 1},    {"retries", 1},  {"retry", 1},    {"revok", 2},    {"rollback", 1},
    {"segfault", 3}, {"sigabrt", 3},  {"sigbus", 3},   {"sigkill", 3},  {"sigsegv", 3},
    {"sigterm", 2},  {"skip", 1},     {"slow", 1},     {"spike", 2},    {"stale", 2},
    {"stall", 2},    {"stopped", 1},  {"straggl", 2},  {"stuck", 2},    {"suspend", 1},
    {"sxid", 3},     {"terminat", 2}, {"throttl", 2},  {"timed", 2},    {"timeout", 2},
    {"tracebac", 3}, {"truncat", 2},  {"unable", 2},   {"unavail", 2},  {"uncorrec", 3},
    {"undefine", 2}, {"unexpect", 2}, {"unhandle", 3}, {"unhealth", 3}, {"unknown", 1},
    {"unreach", 2},  {"unrecogn", 2}, {"unrespon", 3}, {"unsuppor", 2}, {"violat", 2},
    {"warn", 1},     {"wrong", 2},    {"xid", 3},
};

/* Where the words of each letter begin. */
static const uint8_t first_word[27] = {0,  3,  5,  13, 21, 31, 36, 36,  39,  46,  46,  47,  50, 52,
                                       54, 57, 59, 60, 70, 86, 92, 104, 105, 107, 108, 108, 108};

static uint64_t load8(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Of one word in lower case, padded with NULs to eight bytes. */
static int word_badness(const char w[8])
{
    unsigned letter_at = (unsigned)(w[0] - 'a');
    uint64_t v = load8(w);
    int worst = 0;

    for (size_t i = first_word[letter_at]; i < first_word[letter_at + 1]; i++) {
        uint64_t x = load8(words[i].word), mask = (x >> 6 & 0x0101010101010101ull) * 255;
        if ((v & mask) == x && words[i].badness > worst)
            worst = words[i].badness;
    }
    return worst;
}

/* The parts of CamelCase are words of their own: RuntimeError and ncclSystemError are errors. */
int fl_badness(fl_str text)
{
    char w[8] = {0};
    size_t n = 0;
    int worst = 0;

    text = fl_str_sub(text, 0, FL_SHAPE_IN);
    for (size_t i = 0; i <= text.n && worst < 3; i++) {
        char c = i < text.n ? text.p[i] : ' ';
        bool starts = i && c >= 'A' && c <= 'Z' && text.p[i - 1] >= 'a' && text.p[i - 1] <= 'z';
        if ((!letter(c) || starts) && n) {
            int b = n >= 3 ? word_badness(w) : 0;
            worst = b > worst ? b : worst;
            memset(w, 0, sizeof(w));
            n = 0;
        }
        if (letter(c) && n < sizeof(w))
            w[n++] = lower(c);
    }
    return worst;
}
