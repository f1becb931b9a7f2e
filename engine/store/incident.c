/*
 * What an incident may be.
 *
 * Two kinds of text are told apart. Words that the program chooses by (id, cause, phase, stack,
 * shape) have a narrow alphabet, so that they can stand in a file name, a shell line or a YAML
 * document without a thought. What logs and people wrote may have any bytes and is kept as it is:
 * evidence is worth something only as long as it is the line that was printed. Limits are on the
 * whole incident, because one with a megabyte of evidence is a log that somebody stored, and raw
 * logs make the search worse.
 */
#include "store/incident.h"

#include "base/alloc.h"

static const char *const kind_words[] = {"incident", "follow_on", "harmless"};
static const char *const origin_words[] = {"user", "corpus", "confirmed", "corrected"};

const char *fl_incident_kind_word(enum fl_incident_kind k)
{
    return kind_words[k];
}

const char *fl_incident_origin_word(enum fl_incident_origin o)
{
    return origin_words[o];
}

bool fl_incident_kind_of(fl_str word, enum fl_incident_kind *out)
{
    for (int i = 0; i < 3; i++)
        if (fl_str_eqz(word, kind_words[i])) {
            *out = (enum fl_incident_kind)i;
            return true;
        }
    return false;
}

bool fl_incident_origin_of(fl_str word, enum fl_incident_origin *out)
{
    for (int i = 0; i < 4; i++)
        if (fl_str_eqz(word, origin_words[i])) {
            *out = (enum fl_incident_origin)i;
            return true;
        }
    return false;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int check_word(fl_str s, const char *what, fl_err *err)
{
    if (s.n > FL_INCIDENT_MAX_WORD)
        return fl_fail(err, FL_EUSAGE, "%s '%.*s...' is longer than %d bytes; shorten it", what,
                       FL_FMT(fl_str_sub(s, 0, 40)), FL_INCIDENT_MAX_WORD);
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && !(i && s.p[i] && strchr("._+:/-", s.p[i])))
            return fl_fail(err, FL_EUSAGE,
                           "%s '%.*s' may hold letters, digits and ._+:/- and begins with a letter "
                           "or digit; choose another",
                           what, FL_FMT(s));
    return FL_OK;
}

/* Phase and stack: short words for people, in any language, on one line. */
static int check_label(fl_str s, const char *what, fl_err *err)
{
    if (s.n > FL_INCIDENT_MAX_WORD)
        return fl_fail(err, FL_EUSAGE, "%s '%.*s...' is longer than %d bytes; shorten it", what,
                       FL_FMT(fl_str_sub(s, 0, 40)), FL_INCIDENT_MAX_WORD);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F)
            return fl_fail(err, FL_EUSAGE, "%s '%.*s' holds a control byte; write it on one line",
                           what, FL_FMT(s));
    return FL_OK;
}

static int check_time(fl_str s, const char *what, fl_err *err)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    bool good = s.n == 0 || s.n == sizeof(form) - 1;

    for (size_t i = 0; good && i < s.n; i++)
        good = form[i] == 'd' ? s.p[i] >= '0' && s.p[i] <= '9' : s.p[i] == form[i];
    return good ? FL_OK
                : fl_fail(err, FL_EUSAGE,
                          "%s '%.*s' is not a time such as 2026-03-01T02:03:04Z; mend it", what,
                          FL_FMT(fl_str_sub(s, 0, 40)));
}

static int check_shape(fl_str s, fl_err *err)
{
    bool good = s.n <= FL_INCIDENT_MAX_WORD;

    for (size_t i = 0; good && i < s.n; i++)
        good = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');
    return good ? FL_OK
                : fl_fail(err, FL_EUSAGE, "shape '%.*s' is not lower-case hex; leave it out",
                          FL_FMT(fl_str_sub(s, 0, 40)));
}

static int check_amount(const struct fl_incident *inc, fl_err *err)
{
    size_t n = inc->title.n + inc->explanation.n + inc->fix.n + inc->source.n;

    if (inc->nevidence > FL_INCIDENT_MAX_EVIDENCE || inc->nstack > FL_INCIDENT_MAX_EVIDENCE)
        return fl_fail(err, FL_EUSAGE,
                       "incident '%.*s' has %zu evidence lines, at most %d; keep "
                       "the decisive ones",
                       FL_FMT(inc->id), inc->nevidence, FL_INCIDENT_MAX_EVIDENCE);
    for (size_t i = 0; i < inc->nevidence; i++) {
        if (inc->evidence[i].n == 0)
            return fl_fail(err, FL_EUSAGE, "incident '%.*s': evidence line %zu is empty; remove it",
                           FL_FMT(inc->id), i + 1);
        n += inc->evidence[i].n;
    }
    if (n > FL_INCIDENT_MAX_BYTES)
        return fl_fail(err, FL_EUSAGE,
                       "incident '%.*s' has %zu bytes of text, at most %u; keep "
                       "the decisive lines",
                       FL_FMT(inc->id), n, FL_INCIDENT_MAX_BYTES);
    return FL_OK;
}

int fl_incident_check(const struct fl_incident *inc, bool need_id, fl_err *err)
{
    int r = FL_OK;

    if (need_id && inc->id.n == 0)
        return fl_fail(err, FL_EUSAGE, "an incident has no id; give it one");
    if (inc->cause.n == 0)
        return fl_fail(err, FL_EUSAGE, "incident '%.*s' has no cause; give it one",
                       FL_FMT(fl_str_sub(inc->id, 0, 80)));
    r = check_word(inc->id, "id", err);
    if (!r)
        r = check_word(inc->cause, "cause", err);
    if (!r)
        r = check_label(inc->phase, "phase", err);
    for (size_t i = 0; !r && i < inc->nstack; i++)
        r = inc->stack[i].n ? check_label(inc->stack[i], "stack", err)
                            : fl_fail(err, FL_EUSAGE,
                                      "incident '%.*s': a word of stack is empty; "
                                      "remove it",
                                      FL_FMT(inc->id));
    if (!r)
        r = check_time(inc->created, "created", err);
    if (!r)
        r = check_time(inc->updated, "updated", err);
    if (!r)
        r = check_shape(inc->shape, err);
    if (!r)
        r = check_amount(inc, err);
    return r;
}

static const fl_str *dup_list(const fl_str *v, size_t n, fl_arena *a)
{
    fl_str *out = fl_arena_alloc(a, (n + 1) * sizeof(*out));

    for (size_t i = 0; out && i < n; i++)
        out[i] = fl_arena_str(a, v[i]);
    return out;
}

int fl_incident_dup(const struct fl_incident *inc, fl_arena *a, struct fl_incident *out)
{
    struct fl_incident d = *inc;
    fl_str *texts[] = {&d.id,  &d.cause,  &d.title,   &d.phase,   &d.explanation,
                       &d.fix, &d.source, &d.created, &d.updated, &d.shape};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        *texts[i] = fl_arena_str(a, *texts[i]);
    d.stack = dup_list(inc->stack, inc->nstack, a);
    d.evidence = dup_list(inc->evidence, inc->nevidence, a);
    if (inc->file)
        d.file = fl_arena_z(a, fl_str_c(inc->file));
    if (a->failed)
        return FL_ENOMEM;
    *out = d;
    return FL_OK;
}
