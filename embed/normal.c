/*
 * The normaliser in front of the tokenizer, for embedding and for nothing else.
 *
 * Two lines that tell of one failure differ in times, ranks, hosts, addresses and sizes, and those
 * are most of their bytes. A vector that averages over pieces must not see them. What is left out
 * is left out without a placeholder: "<num>" in most lines would be one more frequent piece that
 * says nothing, and an explanation written by a person has none.
 *
 * Kept are the numbers that name an error: short ones behind `xid`, `status`, `error`, `errno`,
 * `code`, `signal`, `exit`, `result`, `cuda` and their kin, with nothing but words such as `is` and
 * `with` between. Between `Xid` and its number stands a PCI address, which is passed over. A digit
 * at the end of a word goes with it where the pair is a name (`mlx5`, `bf16`, `h100`, `s3`,
 * `EI0006`) and is left out where it counts things (`rank3`, `node07`); a digit inside a word stays
 * (`c10d`, `p2p`).
 *
 * What it refuses: to know grammar, and to be exact. `I/O` and `tokens/s` are told from paths by
 * shape alone, months from words by the clock behind them. A mistake costs one word of a mean.
 *
 * It is written by hand over bytes, in one pass with the room reserved in advance, because it runs
 * on each piece of each query; tests/data/normal.tsv says what it must do, line by line.
 */
#include "embed/normal.h"

#include "base/text.h"

#include "base/alloc.h"

enum { NUMBER_MAX = 6, BLOB = 32 };

struct scan {
    fl_str s;
    size_t at;        /* the next byte */
    size_t chunk_end; /* up to here it is settled what is a path */
    char *out;
    size_t n;
    bool gap;   /* a blank is due before the next word */
    bool armed; /* a number here would name an error */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static bool is_alnum(char c)
{
    return is_digit(c) || is_upper(c) || is_lower(c);
}
static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
static char peek(fl_str s, size_t i)
{
    return i < s.n ? s.p[i] : 0;
}

static bool one_of(fl_str word, const char *const *list)
{
    for (; *list; list++)
        if (fl_str_ieq(word, fl_str_c(*list)))
            return true;
    return false;
}

static void put(struct scan *c, char byte)
{
    if (c->gap && c->n)
        c->out[c->n++] = ' ';
    c->gap = false;
    c->out[c->n++] = is_upper(byte) ? (char)(byte + 32) : byte;
}

/*
 * Whether a new word begins at w[i]: fooBar, FOOBar. A lone last letter stays with the rest, and so
 * does a plural: NaN, MiB, GPUs.
 */
static bool hump(fl_str w, size_t i)
{
    if (i + 1 >= w.n || !is_upper(w.p[i]) || (i == 1 && w.n == 4)) /* SXid, sXid */
        return false;
    if (is_lower(w.p[i - 1]) || is_digit(w.p[i - 1]))
        return true;
    if (!is_upper(w.p[i - 1]) || !is_lower(w.p[i + 1]))
        return false;
    return !(w.p[i + 1] == 's' && i + 2 == w.n);
}

static void put_word(struct scan *c, fl_str w)
{
    for (size_t i = 0; i < w.n; i++) {
        if (i && hump(w, i))
            c->gap = true;
        put(c, w.p[i]);
    }
    c->gap = true;
}

/* Letters whose digits at the end belong to the name. */
static bool named_by_number(fl_str stem, size_t digits)
{
    static const char *const stems[] = {"a",     "aarch", "amd", "b", "bf",  "bfloat", "cxx", "ext",
                                        "float", "fp",    "gfx", "h", "int", "ipv",    "l",   "md",
                                        "mi",    "mlx",   "nf",  "s", "sha", "sm",     "tf",  "tls",
                                        "uint",  "utf",   "v",   "x", NULL};
    if (stem.n == 2 && digits == 4 && stem.p[0] == 'E' && is_upper(stem.p[1]))
        return true; /* HCCL and CANN number their errors this way */
    return stem.n <= 6 && digits <= 3 && one_of(stem, stems);
}

static bool arms(fl_str w)
{
    static const char *const keys[] = {"cuda",   "code",   "err",    "errno",    "error",  "exit",
                                       "exited", "http",   "rc",     "exitcode", "sxid",   "xid",
                                       "ret",    "result", "signal", "returned", "status", NULL};
    return w.n >= 2 && w.n <= 8 && one_of(w, keys);
}

/* What may stand between such a word and its number. */
static bool passes(fl_str w)
{
    static const char *const fillers[] = {"failure", "is",  "no",    "number", "of",
                                          "pci",     "was", "value", "with",   NULL};
    return w.n >= 2 && w.n <= 7 && one_of(w, fillers);
}

/* "Mar  1 02:03": a month that is part of a time. */
static bool month_of_time(fl_str s, size_t end, fl_str w)
{
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                         "aug", "sep", "oct", "nov", "dec", NULL};
    size_t i = end, d;
    if (w.n != 3 || !one_of(w, months))
        return false;
    while (peek(s, i) == ' ')
        i++;
    for (d = i; is_digit(peek(s, i));)
        i++;
    return i > d && i - d <= 2 && peek(s, i) == ' ' && is_digit(peek(s, i + 1)) &&
           is_digit(peek(s, i + 2)) && peek(s, i + 3) == ':';
}

/* A hash, an id, a key: hex with a digit in it, or a long word with digits. */
static bool is_blob(fl_str w)
{
    size_t digits = 0, hex = 0;
    for (size_t i = 0; i < w.n; i++) {
        digits += is_digit(w.p[i]);
        hex += is_hex(w.p[i]);
    }
    return digits && ((hex == w.n && w.n >= 4) || w.n > BLOB);
}

/* A word that begins with a letter. */
static void word(struct scan *c)
{
    size_t end = c->at, digits = 0;
    fl_str w;
    while (end < c->s.n && is_alnum(c->s.p[end]))
        end++;
    w = fl_str_sub(c->s, c->at, end - c->at);
    while (digits < w.n && is_digit(w.p[w.n - 1 - digits]))
        digits++;
    c->at = end;
    if (digits && named_by_number(fl_str_sub(w, 0, w.n - digits), digits)) {
        put_word(c, w);
        return;
    }
    if ((is_blob(w) && !fl_str_eqz(w, "c10d")) || month_of_time(c->s, end, w)) {
        c->gap = true;
        return;
    }
    w.n -= digits;
    put_word(c, w);
    c->gap = end >= c->s.n || (unsigned char)c->s.p[end] < 0x80;
    c->armed = arms(w) || (c->armed && passes(w));
}

/* Bytes of a PCI address at `i` (0000:3b:00.0, the function may be missing), 0 if there is none. */
static size_t pci_address(fl_str s, size_t i)
{
    size_t start = i;
    while (is_hex(peek(s, i)))
        i++;
    if (i - start < 4 || i - start > 8)
        return 0;
    for (int part = 0; part < 2; part++, i += 3)
        if (peek(s, i) != ':' || !is_hex(peek(s, i + 1)) || !is_hex(peek(s, i + 2)))
            return 0;
    if (is_alnum(peek(s, i)))
        return 0;
    if (peek(s, i) == '.' && is_digit(peek(s, i + 1)))
        i += 2;
    return i - start;
}

/* True for a number that a point, colon, slash or dash ties to another: a time, a version. */
static bool tied(fl_str s, size_t from, size_t end)
{
    char after = peek(s, end), before = from ? s.p[from - 1] : 0;
    if ((after == '.' || after == ':' || after == '/' || after == '-') &&
        is_digit(peek(s, end + 1)))
        return true;
    if ((before == '.' || before == ':' || before == '/' || before == '-') && from >= 2 &&
        is_digit(s.p[from - 2]))
        return true;
    return before == ':' && from >= 2 && is_alnum(s.p[from - 2]) && from >= 5 &&
           fl_str_ieq(fl_str_sub(s, from - 5, 4), FL_S("cuda")); /* cuda:3 is a card */
}

/* What begins with a digit: kept where it names an error, or as the unit behind the number. */
static void number(struct scan *c)
{
    size_t from = c->at, end, unit, pci = pci_address(c->s, from);
    bool letters = true, hex = true;
    c->gap = true;
    if (pci) {
        c->at += pci;
        return;
    }
    for (end = from; is_digit(peek(c->s, end));)
        end++;
    if ((peek(c->s, end) | 32) == 'x' && end - from == 1 && is_hex(peek(c->s, end + 1))) {
        for (end++; end < c->s.n && is_alnum(c->s.p[end]);)
            end++;
        c->at = end;
        return;
    }
    for (unit = end; end < c->s.n && is_alnum(c->s.p[end]); end++) {
        letters = letters && !is_digit(c->s.p[end]);
        hex = hex && is_hex(c->s.p[end]);
    }
    c->at = end;
    if (unit < end) {
        if (letters && !hex && end - unit >= 2 && end - unit <= 8)
            put_word(c, fl_str_sub(c->s, unit, end - unit));
        return;
    }
    if (!c->armed || end - from > NUMBER_MAX || tied(c->s, from, end)) {
        c->armed =
            c->armed && (peek(c->s, end) == '.' || peek(c->s, from - 1) == '.'); /* HTTP/1.1 503 */
        return;
    }
    for (size_t i = from; i < end; i++)
        put(c, c->s.p[i]);
    c->gap = true;
    c->armed = false;
}

static bool path_byte(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '~' || c == '+' ||
           c == '@' || c == '%' || (unsigned char)c >= 0x80;
}

/* "name.ext" with one to five letters behind the last point. */
static bool has_extension(fl_str base)
{
    ptrdiff_t dot = fl_str_rfind_c(base, '.');
    size_t n = dot > 0 ? base.n - (size_t)dot - 1 : 0;
    if (n < 1 || n > 5)
        return false;
    for (size_t i = (size_t)dot + 1; i < base.n; i++)
        if (!is_lower(base.p[i]) && !is_upper(base.p[i]))
            return false;
    return true;
}

/*
 * At the start of a run of bytes such as paths have: goes to the last name when it is a path. Of a
 * URL the host is kept too, so it only steps into the path at the next call.
 */
static void chunk(struct scan *c)
{
    fl_str s = c->s, whole;
    size_t from = c->at, end = from, slashes = 0, base;
    for (; end < s.n && path_byte(s.p[end]); end++)
        slashes += s.p[end] == '/';
    c->chunk_end = end > from ? end : from + 1;
    if (from && s.p[from - 1] == ':' && s.p[from] == '/' && peek(s, from + 1) == '/') {
        c->chunk_end = from + 2;
        c->at = from + 2;
        return;
    }
    if (!slashes)
        return;
    if (from >= 3 && memcmp(s.p + from - 3, "://", 3) == 0 && s.p[from] != '/') {
        c->chunk_end = from + (size_t)fl_str_find_c(fl_str_from(s, from), '/');
        return;
    }
    whole = fl_str_sub(s, from, end - from);
    while (whole.n > 1 && (whole.p[whole.n - 1] == '/' || whole.p[whole.n - 1] == '.'))
        whole.n--;
    base = (size_t)(fl_str_rfind_c(whole, '/') + 1);
    if (whole.p[0] == '/' || whole.p[0] == '~' || whole.p[0] == '.' || slashes > 1 ||
        has_extension(fl_str_from(whole, base)))
        c->at = from + base;
}

/* Above ASCII: letters are kept as they are; quotes, lines, boxes and wide punctuation are not. */
static void beyond_ascii(struct scan *c)
{
    fl_str rest = fl_str_from(c->s, c->at);
    size_t n = fl_text_unit(rest);
    const unsigned char *p = (const unsigned char *)rest.p;
    bool mark = n == 0 || p[0] == 0xc2 ||
                (n == 3 && ((p[0] == 0xe2 && p[1] <= 0xaf) || (p[0] == 0xe3 && p[1] == 0x80) ||
                            (p[0] == 0xef && p[1] >= 0xbb)));
    if (mark)
        c->gap = true;
    else
        for (size_t i = 0; i < n; i++)
            put(c, rest.p[i]);
    c->at += n ? n : 1;
}

void fl_normal(fl_str text, fl_buf *out)
{
    struct scan c = {.s = text};
    c.out = fl_buf_room(out, 2 * text.n + 1);
    if (!c.out)
        return;
    while (c.at < text.n) {
        char byte;
        if (c.at >= c.chunk_end) {
            chunk(&c);
            continue;
        }
        byte = text.p[c.at];
        if (is_digit(byte)) {
            number(&c);
        } else if (is_upper(byte) || is_lower(byte)) {
            word(&c);
        } else if ((unsigned char)byte >= 0x80) {
            beyond_ascii(&c);
        } else {
            c.gap = true;
            c.armed = c.armed && byte != ',' && byte != ';';
            c.at++;
        }
    }
    out->n += c.n;
    out->p[out->n] = 0;
}
