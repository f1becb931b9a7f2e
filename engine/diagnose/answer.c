/*
 * What the log has to say to a question, without a language model.
 *
 * The question's words are looked up among the lines that the digest kept, of which every shape of
 * line has one. A word counts the more the fewer of the log's lines hold it (each shape's line
 * stands for all of its shape), the small words of a sentence count nothing, and a line that sounds
 * like trouble wins between equals. A word with a digit in it that none of those lines has, such as
 * a step or a node's name, is searched in the whole log: shapes stand for all numbers.
 *
 * It finds lines; it does not understand the question, and the caller says so.
 */
#include "diagnose/look.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "compress/shape.h"

#define WORDS 16
#define NUMBER_LINES 3 /* of the whole log, for words that no kept line has */
#define NUMBER_TEXT 4096

struct word {
    fl_str text; /* lower case, in the arena */
    double weight;
    uint64_t lines;
    bool number; /* has a digit */
};

struct asked {
    struct word v[WORDS];
    size_t n;
};

struct scored {
    size_t kept;
    double score;
};

static bool is_small(fl_str w)
{
    static const char *const small[] = {
        "a",     "an",    "and",   "any",    "are",    "at",    "be",       "but",
        "by",    "can",   "cause", "did",    "do",     "does",  "for",      "from",
        "had",   "has",   "have",  "how",    "i",      "in",    "is",       "it",
        "its",   "job",   "log",   "me",     "my",     "of",    "on",       "or",
        "say",   "show",  "so",    "tell",   "that",   "the",   "them",     "then",
        "there", "they",  "this",  "to",     "was",    "we",    "were",     "what",
        "when",  "who",   "why",   "with",   "you",    "line",  "happened", "about",
        "which", "where", "after", "before", "please", "could", "would",    "should"};

    for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++)
        if (fl_str_eqz(w, small[i]))
            return true;
    return false;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || (unsigned char)c >= 0x80;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int read_words(fl_str s, fl_arena *a, struct asked *out, fl_err *err)
{
    out->n = 0;
    for (size_t i = 0; i < s.n && out->n < WORDS;) {
        struct word *w = &out->v[out->n];
        size_t from = i;
        bool again = false;
        while (i < s.n && is_word(s.p[i]))
            i++;
        if (i == from) {
            i++;
            continue;
        }
        *w = (struct word){.text = fl_str_sub(s, from, i - from)};
        while (w->text.n && strchr(".-", w->text.p[w->text.n - 1]))
            w->text.n--;
        w->text = fl_arena_str(a, w->text);
        if (!w->text.p)
            return fl_fail_nomem(err);
        for (size_t k = 0; k < w->text.n; k++) {
            ((char *)(uintptr_t)w->text.p)[k] = lower(w->text.p[k]);
            w->number |= w->text.p[k] >= '0' && w->text.p[k] <= '9';
        }
        for (size_t k = 0; k < out->n; k++)
            again |= fl_str_eq(out->v[k].text, w->text);
        if (w->text.n && !again && !is_small(w->text) && (w->text.n > 1 || w->number))
            out->n++;
    }
    return FL_OK;
}

/* Somewhere in the line, whatever its case; a number must not be part of a longer one. */
static bool holds(fl_str line, const struct word *w)
{
    for (size_t i = 0; i + w->text.n <= line.n; i++) {
        size_t k = 0;
        while (k < w->text.n && lower(line.p[i + k]) == w->text.p[k])
            k++;
        if (k < w->text.n)
            continue;
        if (!w->number || ((i == 0 || line.p[i - 1] < '0' || line.p[i - 1] > '9') &&
                           (i + k >= line.n || line.p[i + k] < '0' || line.p[i + k] > '9')))
            return true;
    }
    return false;
}

static void weigh(const struct fl_shapes *t, struct asked *q)
{
    for (size_t k = 0; k < q->n; k++) {
        struct word *w = &q->v[k];
        for (size_t i = 0; i < t->n; i++)
            if (holds(t->rows[i].text, w))
                w->lines += t->rows[i].count;
        w->weight = w->lines ? log(1 + (double)t->lines / (double)w->lines) : 0;
    }
}

static int by_score(const void *x, const void *y)
{
    const struct scored *a = x, *b = y;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->kept < b->kept ? -1 : a->kept > b->kept;
}

static int rank_lines(fl_log *l, const struct asked *q, struct scored **out, size_t *n, fl_err *err)
{
    struct scored *v = fl_calloc(l->nkept + 1, sizeof(*v));

    if (!v)
        return fl_fail_nomem(err);
    *n = 0;
    for (size_t i = 0; i < l->nkept; i++) {
        fl_str text = fl_str_sub(l->kept[i].text, 0, 1024);
        double score = 0;
        for (size_t k = 0; k < q->n; k++)
            if (q->v[k].weight > 0 && holds(text, &q->v[k]))
                score += q->v[k].weight;
        if (score > 0)
            v[(*n)++] = (struct scored){i, score * (1 + 0.1 * fl_badness(text))};
    }
    if (*n)
        qsort(v, *n, sizeof(*v), by_score);
    *out = v;
    return FL_OK;
}

/* The same message of many ranks is told once. */
static bool told(const fl_log *l, const struct scored *v, size_t i, size_t first)
{
    struct fl_tag a = {0, 0}, b;

    fl_gather_tag(l->kept[v[i].kept].text, false, &a);
    for (size_t k = first; k < i; k++) {
        b = (struct fl_tag){0, 0};
        fl_gather_tag(l->kept[v[k].kept].text, false, &b);
        if (a.a == b.a)
            return true;
    }
    return false;
}

/* The lines of the whole log that hold such a word, the best of them by all words. */
struct numbers {
    const struct asked *q;
    struct found {
        uint32_t file;
        uint64_t line;
        double score;
        size_t seq; /* of equals the later one is nearer to the end */
        fl_buf text;
    } best[NUMBER_LINES];
    size_t n, all;
};

static bool is_sought(const struct word *w)
{
    return w->number && !w->lines;
}

static int on_line(void *ctx, uint32_t file, uint64_t line, fl_str text, fl_err *err)
{
    struct numbers *x = ctx;
    fl_str head = fl_str_sub(text, 0, 1024);
    double score = 0;
    bool sought = false;
    struct found *f = &x->best[0];

    for (size_t k = 0; k < x->q->n && !sought; k++)
        sought = is_sought(&x->q->v[k]) && holds(head, &x->q->v[k]);
    if (!sought)
        return 0;
    for (size_t k = 0; k < x->q->n; k++)
        if (holds(head, &x->q->v[k]))
            score += is_sought(&x->q->v[k]) ? 1 : x->q->v[k].weight;
    score *= 1 + 0.1 * fl_badness(head);
    x->all++;
    if (x->n < NUMBER_LINES)
        f = &x->best[x->n++];
    else
        for (size_t i = 1; i < x->n; i++)
            if (x->best[i].score < f->score ||
                (x->best[i].score == f->score && x->best[i].seq < f->seq))
                f = &x->best[i];
    if (x->all > NUMBER_LINES && f->score > score)
        return 0;
    f->seq = x->all;
    f->file = file;
    f->line = line;
    f->score = score;
    fl_buf_clear(&f->text);
    fl_buf_add(&f->text, fl_str_sub(text, 0, NUMBER_TEXT));
    return f->text.bad ? fl_fail_nomem(err) : 0;
}

static int by_found(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static int look_for_numbers(fl_log *l, const struct asked *q, const struct fl_log_look *look,
                            struct fl_log_seen *seen, fl_err *err)
{
    struct numbers x = {.q = q};
    bool any = false, ended = false;
    int r;

    for (size_t k = 0; k < q->n; k++)
        any |= is_sought(&q->v[k]);
    if (!any)
        return FL_OK;
    for (size_t i = 0; i < NUMBER_LINES; i++)
        fl_buf_init(&x.best[i].text, NUMBER_TEXT + 16);
    r = fl_log_walk(l, UINT32_MAX, look, seen, on_line, &x, err);
    qsort(x.best, x.n, sizeof(x.best[0]), by_found);
    for (size_t i = 0; !r && !ended && i < x.n; i++)
        ended = fl_log_give(l, look, seen, x.best[i].file, x.best[i].line,
                            fl_buf_str(&x.best[i].text), FL_S(""), false);
    seen->more |= x.all > x.n;
    for (size_t i = 0; i < NUMBER_LINES; i++)
        fl_buf_dispose(&x.best[i].text);
    return r;
}

int fl_log_words(fl_log *l, const char *question, const struct fl_log_look *look,
                 struct fl_log_seen *seen, fl_err *err)
{
    struct scored *v = NULL;
    struct asked q;
    fl_arena a;
    size_t n = 0, limit = fl_log_limit(look);
    int r;

    *seen = (struct fl_log_seen){.lines = 0};
    fl_arena_init(&a);
    r = read_words(fl_str_c(question), &a, &q, err);
    if (!r)
        r = fl_log_keep(l, err);
    if (!r) {
        weigh(&l->d->job.gather->shapes, &q);
        r = rank_lines(l, &q, &v, &n, err);
    }
    if (!r)
        r = look_for_numbers(l, &q, look, seen, err);
    for (size_t i = 0; !r && i < n && i < 200 && !seen->stopped && seen->lines < limit; i++) {
        const struct fl_kept_line *k = &l->kept[v[i].kept];
        if (v[i].score * 2 < v[0].score)
            break;
        if (!told(l, v, i, 0))
            fl_log_give(l, look, seen, k->file, k->line, k->text, FL_S(""), false);
    }
    fl_free(v);
    fl_arena_dispose(&a);
    return r;
}
