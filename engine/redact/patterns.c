/*
 * The user's own patterns.
 *
 * They run line by line, each match from the end of the one before. PCRE2 stops an expression that
 * backtracks without end, and a scan that was stopped has not said that there is nothing to hide:
 * that line then goes as a whole. Matches of no length hide nothing and are stepped over.
 */
#include "redact/redactor.h"
#include "redact/scan.h"

static bool kind_of(const char *name, enum fl_redact_kind *kind)
{
    static const char *const names[] = {"secret", "host", "domain", "ip",
                                        "user",   "path", "email",  "bucket"};

    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        if (strcmp(name, names[k]) == 0) {
            *kind = (enum fl_redact_kind)k;
            return true;
        }
    }
    return false;
}

/* One match; true when a group of a known name took part. */
static void add_match(struct fl_scan *s, const struct fl_caps *caps)
{
    enum fl_redact_kind kind;
    bool some = false;

    for (unsigned k = 0; k < caps->n; k++) {
        fl_str t = caps->cap[k].text;
        if (!t.p || t.n == 0 || !kind_of(caps->cap[k].name, &kind))
            continue;
        fl_scan_add(s, (size_t)(t.p - s->p), (size_t)(t.p - s->p) + t.n, kind);
        some = true;
    }
    if (!some && caps->whole.n)
        fl_scan_add(s, (size_t)(caps->whole.p - s->p),
                    (size_t)(caps->whole.p - s->p) + caps->whole.n, FL_REDACT_SECRET);
}

static void one_line(struct fl_scan *s, const fl_regex *re, size_t a, size_t b)
{
    fl_match_scratch *scratch = s->r->scratch;
    struct fl_caps caps;
    size_t from = a, end;
    uint64_t limited = fl_match_limited(scratch);

    while (from <= b && fl_regex_match(re, scratch, fl_str_n(s->p + from, b - from), &caps)) {
        add_match(s, &caps);
        end = (size_t)(caps.whole.p - s->p) + caps.whole.n;
        from = end > from ? end : from + 1;
    }
    if (fl_match_limited(scratch) != limited)
        fl_scan_add(s, a, b, FL_REDACT_SECRET);
}

int fl_scan_patterns(struct fl_scan *s, fl_err *err)
{
    for (size_t k = 0; k < s->r->npatterns; k++) {
        for (size_t a = 0, b; a < s->n; a = b + 1) {
            const char *lf = memchr(s->p + a, '\n', s->n - a);
            b = lf ? (size_t)(lf - s->p) : s->n;
            if (b > a)
                one_line(s, s->r->patterns[k], a, b);
        }
    }
    if (s->r->scratch && fl_match_out_of_memory(s->r->scratch))
        return fl_fail_nomem(err);
    return FL_OK;
}
