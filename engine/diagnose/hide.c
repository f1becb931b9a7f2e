/*
 * Names and secrets of a job to placeholders, before anything is sent.
 *
 * Texts that belong together are hidden together, since what one of them tells about a name holds
 * for all. Beside what the redactor finds by shape, the hosts that the job told of are made known,
 * and words that are numbered like them.
 */
#include "diagnose/ask.h"

#define HOSTS_COMPARED 256 /* with each word, for others of their kind */

/* Names that the job told of itself. */
static int know_names(fl_redactor *x, const struct fl_places *p, fl_err *err)
{
    int r = FL_OK;

    for (size_t i = 0; !r && i < p->nhosts; i++)
        if (!p->hosts[i].no_host)
            r = fl_redact_know(x, p->hosts[i].address ? FL_REDACT_IP : FL_REDACT_HOST,
                               p->hosts[i].name, err);
    return r;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Hosts of one cluster are numbered: node-b03 tells that node-a17 is one too, though nothing that
 * was understood says so. The beginning is the same, digits stand where digits stand, and at most
 * one letter is another. */
static bool siblings(fl_str host, fl_str word)
{
    size_t same = 0, letters = 0, digits = 0;

    if (host.n != word.n || host.n < 5)
        return false;
    while (same < host.n && host.p[same] == word.p[same] && !digit(host.p[same]))
        same++;
    for (size_t i = same; i < host.n; i++) {
        if (digit(host.p[i]) != digit(word.p[i]))
            return false;
        digits += digit(host.p[i]);
        letters += !digit(host.p[i]) && host.p[i] != word.p[i];
    }
    return same >= 3 && digits && letters <= 1;
}

static bool name_byte(char c)
{
    return digit(c) || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int know_siblings(fl_redactor *x, const struct fl_places *p, fl_str text, fl_err *err)
{
    size_t most = p->nhosts < HOSTS_COMPARED ? p->nhosts : HOSTS_COMPARED;
    int r = FL_OK;

    for (size_t i = 0, end; !r && i < text.n; i = end + 1) {
        fl_str word;
        for (end = i; end < text.n && name_byte(text.p[end]); end++)
            ;
        word = fl_str_sub(text, i, end - i);
        for (size_t h = 0; !r && word.n >= 5 && h < most; h++)
            if (!p->hosts[h].no_host && !p->hosts[h].address && siblings(p->hosts[h].name, word))
                r = fl_redact_know(x, FL_REDACT_HOST, word, err);
    }
    return r;
}

int fl_hide_open(const struct fl_ask_config *c, const struct fl_llm_endpoint *endpoints, size_t n,
                 const struct fl_job *job, fl_redactor **out, fl_err *err)
{
    struct fl_redact_opts o = {
        .patterns = c->patterns, .npatterns = c->npatterns, .where = "llm.redact_patterns"};
    bool plain = n > 0;
    int r;

    *out = NULL;
    for (size_t i = 0; i < n; i++)
        plain &= fl_ask_plain(c, &endpoints[i]);
    if (plain)
        return FL_OK;
    r = fl_redactor_new(&o, out, err);
    return r || !job ? r : know_names(*out, &job->places, err);
}

int fl_hide(fl_redactor *x, const struct fl_job *job, fl_buf *text, fl_err *err)
{
    fl_buf out;
    int r = FL_OK;

    if (!x)
        return FL_OK;
    fl_buf_init(&out, 64u << 20);
    if (job)
        r = know_siblings(x, &job->places, fl_buf_str(text), err);
    if (!r)
        r = fl_redact(x, fl_buf_str(text), &out, err);
    if (r) {
        fl_buf_dispose(&out);
        return r;
    }
    fl_buf_dispose(text);
    *text = out;
    return FL_OK;
}

fl_str fl_hide_next(fl_str *rest)
{
    ptrdiff_t at = fl_str_find(*rest, FL_S(FL_HIDE_PART));
    fl_str part = at < 0 ? *rest : fl_str_sub(*rest, 0, (size_t)at);

    *rest = at < 0 ? FL_S("") : fl_str_from(*rest, (size_t)at + sizeof(FL_HIDE_PART) - 1);
    return fl_str_trim(part);
}
