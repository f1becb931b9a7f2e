/*
 * Is what a model cites really there, and does it show what it is cited for?
 *
 * A quote is compared with the digest, which is what the model saw, and then with the log itself:
 * the same line (exact), a line within fifty (nearby, corrected), another one (elsewhere), none.
 * Blanks are compared loosely and a quote may be a part of its line, but of some length: "error" is
 * in every log. Where the digest cut a line, both its ends are looked at.
 *
 * A line carries a claim when it is evidence of a failure by itself: a rule's event, a line of a
 * traceback, a metric line, or words of trouble in what software prints. It does not when a rule
 * calls it harmless or advice, and not when it is prose that states what the cause is or what is to
 * be done: a log can be written by someone who wants to be believed.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "compress/shape.h"
#include "diagnose/ask.h"

#define NEAR 50
#define SHORTEST 12 /* bytes of a quote that says anything */

const char *fl_ground_word(enum fl_ground_mark m)
{
    static const char *const words[] = {"exact", "nearby", "elsewhere", "not_found"};

    return words[m];
}

/* Blanks in a row as one, none at the ends; the text is in `out`. */
static fl_str squeezed(fl_str s, fl_buf *out)
{
    fl_buf_clear(out);
    s = fl_str_trim(s);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i] == '\t' ? ' ' : s.p[i];
        if (c != ' ' || (out->n && out->p[out->n - 1] != ' '))
            fl_buf_addc(out, c);
    }
    return fl_buf_str(out);
}

static fl_str without_mark(fl_str s)
{
    fl_str mark = FL_S(FL_CUT_MARK);

    if (fl_str_starts(s, mark))
        s = fl_str_from(s, mark.n);
    if (fl_str_ends(s, mark))
        s = fl_str_sub(s, 0, s.n - mark.n);
    return s;
}

struct grounding {
    fl_buf quote, line;
    fl_str want;
    int64_t cited; /* line */
};

/* Every part of the quote between marks stands in the line. */
static bool stands_in(struct grounding *g, fl_str text)
{
    fl_str line = squeezed(text, &g->line), rest = g->want;
    size_t seen = 0;

    while (rest.n) {
        ptrdiff_t at = fl_str_find(rest, FL_S(FL_CUT_MARK));
        fl_str part = fl_str_trim(at < 0 ? rest : fl_str_sub(rest, 0, (size_t)at));
        if (part.n && !fl_str_has(line, part))
            return false;
        seen += part.n;
        rest = at < 0 ? FL_S("") : fl_str_from(rest, (size_t)at + sizeof(FL_CUT_MARK) - 1);
    }
    return seen >= SHORTEST || (seen && seen == line.n);
}

/* A cause's own id in a log is somebody's opinion. */
static bool names_a_cause(const struct fl_ruleset *rs, fl_str text)
{
    for (size_t i = 0; i < rs->ncauses; i++)
        if (strchr(rs->causes[i].id, '.') && fl_str_has(text, fl_str_c(rs->causes[i].id)))
            return true;
    return false;
}

static bool carries(const struct fl_asking *a, fl_str text, bool *numbers)
{
    const struct fl_shapes *t = &a->d->job.gather->shapes;
    const struct fl_shape_row *r;
    struct fl_tag tag = {0, 0};

    fl_gather_tag(text, false, &tag);
    r = fl_shapes_find(t, tag.a);
    if (fl_is_prose(text) || names_a_cause(a->d->job.rules, text))
        return false;
    if (r && r->owner & FL_OWN_NOISE)
        return false;
    *numbers = r && !(r->owner & (FL_OWN_EVENT | FL_OWN_TRACEBACK)) && r->owner & FL_OWN_METRIC;
    if (r && r->owner & (FL_OWN_EVENT | FL_OWN_TRACEBACK | FL_OWN_METRIC))
        return true;
    return fl_badness(text) >= 2;
}

static uint64_t away(uint64_t line, int64_t cited)
{
    uint64_t c = cited < 0 ? 0 : (uint64_t)cited;

    return line > c ? line - c : c - line;
}

/* Of several lines with the same text the nearest is meant: others may be of other hosts. */
static bool found(struct fl_asking *a, const struct grounding *g, struct fl_grounding *out,
                  enum fl_ground_mark mark, struct fl_place at, fl_str text)
{
    bool nearer = mark == FL_MARK_NEARBY && mark == out->mark &&
                  away(at.line, g->cited) < away(out->at.line, g->cited);

    if (mark >= out->mark && !nearer)
        return false;
    out->mark = mark;
    out->at = at;
    out->text = fl_arena_str(&a->arena, text);
    out->carries = carries(a, out->text, &out->numbers);
    return mark == FL_MARK_EXACT;
}

static bool near(uint64_t line, int64_t cited)
{
    return away(line, cited) <= NEAR;
}

static bool in_digest(struct fl_asking *a, struct grounding *g, const char *file, int64_t line,
                      struct fl_grounding *out)
{
    const struct fl_digest_row *rows = fl_digest_rows(a->page);
    size_t n = fl_digest_account(a->page)->rows;

    for (size_t i = 0; i < n; i++) {
        bool same = strcmp(rows[i].at.file, file) == 0;
        enum fl_ground_mark mark = same && rows[i].at.line == (uint64_t)line ? FL_MARK_EXACT
                                   : same && near(rows[i].at.line, line)     ? FL_MARK_NEARBY
                                                                             : FL_MARK_ELSEWHERE;
        if (mark <= out->mark && stands_in(g, without_mark(fl_str_c(rows[i].text))) &&
            found(a, g, out, mark, rows[i].at, fl_str_c(rows[i].text)))
            return true;
    }
    return false;
}

/* Reads the file again, as far as the lines around the cited one: a digest has one line of many
 * that are alike, and it may not be the nearest. */
static int in_file(struct fl_asking *a, struct grounding *g, const struct fl_read_file *f,
                   int64_t line, struct fl_grounding *out, fl_err *err)
{
    fl_reader *r = NULL;
    struct fl_block b;
    fl_err why = {0};
    int code;

    if (!f->path || fl_reader_open(&f->path, 1, NULL, &r, &why))
        return FL_OK; /* stdin, a member of an archive, or gone: not looked at */
    while ((code = fl_reader_next(r, &b, &why)) > 0) {
        fl_str rest = fl_str_n(b.data, b.len);
        uint64_t number = b.first_line, lfs = 0;
        while (rest.n) {
            size_t at = b.len - rest.n;
            fl_str text = fl_str_cut(&rest, '\n');
            number = fl_block_line(&b, at, lfs++);
            if (near(number, line) && stands_in(g, text))
                found(a, g, out, number == (uint64_t)line ? FL_MARK_EXACT : FL_MARK_NEARBY,
                      (struct fl_place){f->name, number}, text);
        }
        if (number > (uint64_t)line && !near(number, line))
            break;
    }
    fl_reader_free(r);
    return code == FL_ENOMEM ? fl_fail_nomem(err) : FL_OK;
}

static bool ends_path(const char *name, const char *tail)
{
    size_t n = strlen(name), k = strlen(tail);

    return k && n > k && name[n - k - 1] == '/' && strcmp(name + n - k, tail) == 0;
}

/* Models like to leave folders out: "job.log" is the one file whose path ends so. */
static const char *whole_name(const fl_reader *reader, const char *file)
{
    const char *found = NULL;

    for (size_t i = 0; i < fl_reader_files(reader); i++) {
        const char *name = fl_reader_file(reader, i)->name;
        if (strcmp(name, file) == 0)
            return file;
        if (ends_path(name, file)) {
            if (found)
                return file;
            found = name;
        }
    }
    return found ? found : file;
}

int fl_ground(struct fl_asking *a, const char *file, int64_t line, const char *quote,
              struct fl_grounding *out, fl_err *err)
{
    const fl_reader *reader = a->d->job.reader;
    struct grounding g;
    int r = FL_OK;

    *out = (struct fl_grounding){.mark = FL_MARK_NOT_FOUND};
    fl_buf_init(&g.quote, 1u << 20);
    fl_buf_init(&g.line, 1u << 20);
    if (line < 0)
        line = 0;
    file = whole_name(reader, file);
    g.cited = line;
    g.want = squeezed(fl_str_c(quote), &g.quote);
    if (g.want.n && !in_digest(a, &g, file, line, out))
        for (size_t i = 0; !r && out->mark != FL_MARK_EXACT && i < fl_reader_files(reader); i++)
            if (strcmp(fl_reader_file(reader, i)->name, file) == 0)
                r = in_file(a, &g, fl_reader_file(reader, i), line, out, err);
    if (!r && (g.quote.bad || g.line.bad || a->arena.failed))
        r = fl_fail_nomem(err);
    fl_buf_dispose(&g.quote);
    fl_buf_dispose(&g.line);
    return r;
}
