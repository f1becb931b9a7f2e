/*
 * Names that are known: from the caller, and from what the conversation has shown so far.
 *
 * A job can have thousands of hosts whose names share their beginnings, so the names stand in one
 * hash map together with their beginnings at each word's end ("gn", "gn-c07" for gn-c07.ib): the
 * text is walked word by word, and at each word the map says whether a name ends here and whether
 * longer ones may follow. Most words of a log cost one lookup. An automaton over all names would
 * be a little faster and would have to be rebuilt whenever a line shows a new host.
 *
 * A name is found as a word of its own. A digit in it makes it rare enough to be taken also between
 * '-' and '_' (dmesg-gn07.txt); without one only blanks and punctuation separate it, so that a host
 * called `gpu` leaves multi-gpu alone. Weak names, users whose name is a word of logs, count only
 * as a later part of a path: `opt` in /home/opt must not take /opt/venv with it, nor `trainer` the
 * word.
 */
#include "redact/redactor.h"
#include "redact/scan.h"

#include "base/alloc.h"

/* Account and folder names that say nothing about anybody, and words that logs are made of. */
static const char common[] =
    "localhost\0localdomain\0root\0none\0null\0true\0false\0unknown\0nobody\0default\0host\0hosts\0"
    "hostname\0node\0nodes\0user\0users\0home\0opt\0usr\0var\0tmp\0mnt\0data\0work\0workspace\0src"
    "\0"
    "lib\0lib64\0bin\0env\0envs\0venv\0conda\0miniconda3\0anaconda3\0site-packages\0dist-packages\0"
    "python\0torch\0train\0trainer\0training\0model\0models\0code\0proj\0project\0projects\0app\0"
    "tools\0scripts\0runs\0logs\0log\0cache\0checkpoint\0checkpoints\0ckpt\0ckpts\0shared\0scratch"
    "\0"
    "public\0error\0errors\0warning\0info\0debug\0cuda\0nccl\0gpu\0gpus\0cpu\0rank\0kernel\0slurm\0"
    "srun\0main\0master\0worker\0workers\0server\0client\0local\0cluster\0llm\0test\0tests\0nvidia"
    "\0"
    "config\0configs\0conf\0etc\0sys\0dev\0run\0core\0base\0utils\0engine\0launch\0job\0jobs\0"
    "system\0service\0admin\0ubuntu\0pytorch\0megatron\0deepspeed\0";

static bool has_digit(fl_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (fl_digit(s.p[i]))
            return true;
    return false;
}

static bool worth(enum fl_redact_kind kind, fl_str low, bool weak)
{
    size_t letters = 0;

    if (kind == FL_REDACT_TEXT || low.n < 2 || low.n > FL_REDACT_MAX_NAME)
        return false;
    for (size_t i = 0; i < low.n; i++)
        letters += fl_alpha(low.p[i]) || (unsigned char)low.p[i] >= 0x80;
    if (kind == FL_REDACT_PATH) /* of one component: it would take every path below it */
        return low.p[0] == '/' && memchr(low.p + 1, '/', low.n - 1) && letters > 0;
    if (!fl_alnum(low.p[0]) || !fl_alnum(low.p[low.n - 1]))
        return false;
    if (kind == FL_REDACT_IP || kind == FL_REDACT_SECRET)
        return true;
    if (letters == 0)
        return false;
    if (kind == FL_REDACT_HOST && has_digit(low))
        return fl_str_find_c(low, '.') >= 0 || low.n < 3 || fl_hosty(low.p, low.n) ||
               fl_str_find_c(low, '_') >= 0 || fl_digit(low.p[0]);
    return (low.n > 2 || !weak) && !fl_word_in(low.p, low.n, common);
}

static int set(struct fl_redactor *r, fl_str key, uint32_t bits)
{
    uint32_t old = 0;

    if (fl_map_get(&r->known, key, &old)) {
        if ((old & FL_KNOWN_KIND) && (bits & FL_KNOWN_KIND)) {
            if (!(old & FL_KNOWN_WEAK))
                bits &= FL_KNOWN_MORE; /* the first kind stands */
            else if (!(bits & FL_KNOWN_WEAK))
                old &= FL_KNOWN_MORE; /* what was weak is now sure */
            else
                bits &= FL_KNOWN_MORE;
        }
        bits |= old;
    } else if (r->known.n >= FL_KNOWN_MAX) {
        return FL_OK;
    }
    return fl_map_set(&r->known, key, bits);
}

int fl_known_add(struct fl_redactor *r, enum fl_redact_kind kind, fl_str low, bool weak)
{
    size_t i = 0;
    int e;

    while (kind == FL_REDACT_PATH && low.n > 1 && low.p[low.n - 1] == '/')
        low.n--;
    if (!worth(kind, low, weak))
        return FL_OK;
    if (kind == FL_REDACT_PATH)
        i = 1;
    for (;;) {
        while (i < low.n && fl_alnum(low.p[i]))
            i++;
        if (i >= low.n)
            break;
        e = set(r, fl_str_sub(low, 0, i), FL_KNOWN_MORE);
        if (e)
            return e;
        while (i < low.n && !fl_alnum(low.p[i]))
            i++;
    }
    return set(r, low, (uint32_t)(kind + 1) | (weak ? FL_KNOWN_WEAK : 0));
}

int fl_redact_know(fl_redactor *r, enum fl_redact_kind kind, fl_str text, fl_err *err)
{
    char low[FL_REDACT_MAX_NAME];

    if (kind >= FL_REDACT_KINDS || text.n > sizeof(low))
        return FL_OK;
    for (size_t i = 0; i < text.n; i++)
        low[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] + 32 : text.p[i]);
    return fl_known_add(r, kind, fl_str_n(low, text.n), false) ? fl_fail_nomem(err) : FL_OK;
}

/* May a name [a, b) of this make stand between these neighbours? */
static bool fits(const struct fl_scan *s, size_t a, size_t b, uint32_t bits)
{
    enum fl_redact_kind kind = (bits & FL_KNOWN_KIND) - 1;
    char before = fl_back(s->p, a, 1), after = s->p[b];
    bool in_path;

    if (fl_alnum(after) || (kind != FL_REDACT_PATH && fl_alnum(before)))
        return false;
    if (kind == FL_REDACT_PATH)
        return !fl_word(before) && before != '.' && after != '-' && after != '_';
    in_path = before == '/' && a > 1 &&
              (fl_word(fl_back(s->p, a, 2)) || fl_back(s->p, a, 2) == '}') && after != '.' &&
              after != '(';
    if ((bits & FL_KNOWN_WEAK) || (kind == FL_REDACT_USER && in_path))
        return in_path;
    if (has_digit(fl_str_n(s->low + a, b - a)))
        return kind != FL_REDACT_IP || (before != '.' && !(after == '.' && fl_digit(s->p[b + 1])));
    if (kind == FL_REDACT_USER && after == '.' && fl_alnum(s->p[b + 1])) /* bob.train is a module */
        return false;
    return before != '-' && after != '-' && before != '_' && after != '_' && after != '(' &&
           (before != '.' || kind == FL_REDACT_DOMAIN);
}

/* The longest known name from `a`; its end, or `a`. */
static size_t name_at(const struct fl_scan *s, size_t a, size_t i, enum fl_redact_kind *kind)
{
    size_t end = a, last;
    uint32_t bits;

    while (i - a <= FL_REDACT_MAX_NAME) {
        while (i < s->n && fl_alnum(s->p[i]))
            i++;
        if (!fl_map_get(&s->r->known, fl_str_n(s->low + a, i - a), &bits))
            break;
        if ((bits & FL_KNOWN_KIND) && fits(s, a, i, bits)) {
            end = i;
            *kind = (bits & FL_KNOWN_KIND) - 1;
        }
        if (!(bits & FL_KNOWN_MORE))
            break;
        last = i;
        while (i < s->n && !fl_alnum(s->p[i]) && s->p[i] != '\n' && i - last < 8)
            i++;
        if (i == last || !fl_alnum(s->p[i]))
            break;
    }
    return end;
}

void fl_scan_known(struct fl_scan *s)
{
    enum fl_redact_kind kind = FL_REDACT_HOST;
    size_t i = 0, end;

    if (s->r->known.n == 0)
        return;
    while (i < s->n) {
        bool word = fl_alnum(s->p[i]) && !fl_alnum(fl_back(s->p, i, 1));
        if (!word && !(s->p[i] == '/' && fl_alnum(s->p[i + 1]))) {
            i++;
            continue;
        }
        end = name_at(s, i, word ? i : i + 1, &kind);
        if (end > i)
            fl_scan_add(s, i, end, kind);
        i = end > i ? end : i + 1;
    }
}
