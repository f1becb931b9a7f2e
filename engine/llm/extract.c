/*
 * The JSON object in what a model wrote.
 *
 * Even a server that was asked for JSON may run a model that reasons aloud first, wraps the object
 * in a code fence, or explains itself before and after. What is looked for is therefore every
 * balanced object at the outermost level, with strings and escapes read as JSON has them, and the
 * last one that has the wanted member wins: models draft first and conclude last.
 *
 * Nothing is repaired here. A missing brace or quote is the model's to mend, in the one repair
 * turn, for a program that closes an object by guess decides what the model meant. An object that
 * begins and does not end is told apart from no object, because the remedy differs: answer shorter.
 *
 * A lone brace in prose makes the scan start again behind it. That is bounded (STARTS), so that a
 * reply of a million braces costs a few passes and not a million.
 */
#include "llm/extract.h"

#include "base/alloc.h"
#include "base/json.h"

#define STARTS 64

struct mark {
    const char *open, *close;
};

/* Reasoning, as the chat templates of open models mark it. */
static const struct mark marks[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"<|channel|>analysis", "<|end|>"},
};
#define NMARKS (sizeof(marks) / sizeof(*marks))

fl_str fl_llm_without_reasoning(fl_str text)
{
    bool again = true;

    while (again) {
        again = false;
        text = fl_str_trim(text);
        for (size_t i = 0; i < NMARKS && !again; i++) {
            ptrdiff_t end;
            if (!fl_str_starts(text, fl_str_c(marks[i].open)))
                continue;
            end = fl_str_find(text, fl_str_c(marks[i].close));
            if (end < 0)
                return fl_str_from(text, text.n);
            text = fl_str_from(text, (size_t)end + strlen(marks[i].close));
            again = true;
        }
    }
    return text;
}

/* The end of the object that begins at `at`, or 0 when the text ends first. */
static size_t object_end(fl_str s, size_t at)
{
    size_t depth = 0;
    bool string = false;

    for (size_t i = at; i < s.n; i++) {
        char c = s.p[i];
        if (string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                string = false;
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (--depth == 0)
                return i + 1;
        }
    }
    return 0;
}

struct found {
    fl_str best;
    bool has_key, cut;
};

/* Whether it is valid JSON, so that nothing in it need be looked at. */
static bool consider(fl_str object, const char *key, struct found *f)
{
    fl_json *root = NULL;
    bool has;

    if (fl_json_parse(object, "the reply", &root, NULL))
        return false;
    has = key && fl_json_get(root, key);
    if (fl_json_is_object(root) && (has || !f->has_key)) {
        f->best = object;
        f->has_key = has;
    }
    fl_json_free(root);
    return true;
}

static struct found search(fl_str s, const char *key)
{
    struct found f = {{NULL, 0}, false, false};
    unsigned starts = 0;
    size_t at = 0;

    while (at < s.n && starts < STARTS) {
        const char *open = memchr(s.p + at, '{', s.n - at);
        size_t end;
        if (!open)
            break;
        at = (size_t)(open - s.p);
        end = object_end(s, at);
        starts++;
        if (!end) {
            f.cut = true; /* or a brace in prose: look behind it */
            at++;
            continue;
        }
        at = consider(fl_str_sub(s, at, end - at), key, &f) ? end : at + 1;
    }
    return f;
}

int fl_llm_extract(fl_str text, const char *key, fl_str *out, fl_err *err)
{
    fl_str rest = fl_llm_without_reasoning(text);
    struct found f = search(rest, key);
    ptrdiff_t close;

    if (!f.best.p && rest.n == 0 && text.n)
        return fl_fail(err, FL_ELIMIT,
                       "The reply ended inside the reasoning, before any JSON. Think less and "
                       "answer with the JSON object alone.");
    /* A template may have opened the block in the prompt, so that only its end is in the reply. */
    close = fl_str_find(rest, FL_S("</think>"));
    if (close >= 0 && (!f.best.p || f.best.p < rest.p + close)) {
        struct found behind = search(fl_str_from(rest, (size_t)close + 8), key);
        if (behind.best.p && (behind.has_key || !f.has_key))
            f = behind;
    }
    if (f.best.p && (f.has_key || !f.cut)) {
        *out = f.best;
        return FL_OK;
    }
    if (f.cut)
        return fl_fail(err, FL_ELIMIT,
                       "The JSON object does not end, or a brace or quotation mark in it is not "
                       "closed. Answer with one complete JSON object, and shorter.");
    return fl_fail(err, FL_ENOTFOUND,
                   "The reply holds no valid JSON object. Answer with one JSON object and nothing "
                   "else.");
}

/* ---- while it arrives ---- */

enum { BEFORE, BEHIND, WITHIN }; /* WITHIN + i: inside marks[i] */

void fl_llm_unthink_init(struct fl_llm_unthink *u, int (*out)(void *ctx, fl_str text), void *ctx)
{
    memset(u, 0, sizeof(*u));
    u->out = out;
    u->ctx = ctx;
}

static bool blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* One byte at the beginning: it goes on with a mark, completes one, or shows that there is none. */
static void before(struct fl_llm_unthink *u, char c)
{
    fl_str held;
    bool partly = false;

    if (!u->nheld && blank(c))
        return;
    u->held[u->nheld++] = c;
    held = (fl_str){u->held, u->nheld};
    for (size_t i = 0; i < NMARKS; i++) {
        if (fl_str_eqz(held, marks[i].open)) {
            u->state = WITHIN + (int)i;
            u->nheld = 0;
            return;
        }
        partly = partly || fl_str_starts(fl_str_c(marks[i].open), held);
    }
    if (!partly)
        u->state = BEHIND;
}

/* One byte inside: the tail that may be the closing mark is kept. */
static void within(struct fl_llm_unthink *u, char c)
{
    fl_str close = fl_str_c(marks[u->state - WITHIN].close);

    u->held[u->nheld++] = c;
    while (u->nheld && !fl_str_starts(close, (fl_str){u->held, u->nheld}))
        memmove(u->held, u->held + 1, --u->nheld);
    if (u->nheld == close.n) {
        u->state = BEFORE;
        u->nheld = 0;
    }
}

int fl_llm_unthink_feed(struct fl_llm_unthink *u, fl_str piece)
{
    int r = 0;

    for (size_t i = 0; i < piece.n; i++) {
        if (u->state == BEHIND)
            return u->out(u->ctx, fl_str_from(piece, i));
        if (u->state == BEFORE)
            before(u, piece.p[i]);
        else
            within(u, piece.p[i]);
        if (u->state == BEHIND) {
            r = u->out(u->ctx, (fl_str){u->held, u->nheld});
            u->nheld = 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int fl_llm_unthink_end(struct fl_llm_unthink *u)
{
    int r = u->state == BEFORE && u->nheld ? u->out(u->ctx, (fl_str){u->held, u->nheld}) : 0;

    u->nheld = 0;
    return r < 0 ? r : 0;
}
