/*
 * Redaction over all of tests/cases takes names and nothing else.
 *
 * Each log is redacted as a whole, its hosts made known as a caller would, and compared line by
 * line. Every failure rule that matches a line must match what came of it. A rule may ask in its
 * pattern what a host name may be made of, and "<HOST_3>" is not made of that; so the line is
 * compared with each placeholder exchanged for a made-up name of its kind, which shows whether
 * anything but names was lost, and the share that holds as it stands is printed. Numbers that a
 * diagnosis reads (Xids, PCI addresses, ranks, exit codes, steps, times, places in code) must be
 * there unchanged in any case.
 */
#include "redact_walk.h"

#include "match/match.h"
#include "read/prefix.h"
#include "rules/rules.h"

struct work {
    struct fl_ruleset *rules;
    fl_matcher *matcher;
    fl_match_scratch *scratch;
    fl_regex **kept;
    size_t nkept;
    size_t files, lines, changed, hits, as_it_stands, bad;
    size_t bytes_in, bytes_out;
};

/* What must survive in a line, literally. */
static const char *const kept[] = {
    "Xid \\(PCI:[^)]*\\): \\d+",
    "(?<![0-9a-zA-Z:])[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\\.\\d)?(?![0-9a-zA-Z:])",
    "\\b(?i:local_)?(?i:rank)[ :=]{0,2}\\d+",
    "(?i:exit(?:ed with)?[ _]?(?:code|status)s?)[:= ]{0,2}-?\\d+",
    "(?i:signal)[ :=]{0,2}\\d+",
    "(?i:errno)[ :=]{0,2}\\d+",
    "(?i:step|iteration)[ :=]{1,3}\\d+",
    "(?<!\\w)0x[0-9a-fA-F]+",
    "(?<![\\w:])\\d\\d:\\d\\d:\\d\\d(?![\\w:])",
    "\\.(?:py|cc|cpp|hpp|h|cu|c):\\d+",
    "\", line \\d+, in \\w+",
    "status=\\d+",
    "\\b(?:[A-Z][A-Za-z]*)?(?:Error|Exception)\\b",
    "\\b(?:NCCL|CUDA|HCCL|RCCL)_?[A-Z_]*\\b",
    "(?<![\\d.])\\d+\\.\\d+\\.\\d+(?![\\d.])",
    "(?<!\\w)\\[(?:\\d+, ?)+\\d+\\]",
    "\\b\\d+(?:\\.\\d+)? ?(?:GiB|MiB|GB|MB)\\b",
};

/* A made-up name for the placeholder whose original is `text`. */
static void neutral(const char *word, unsigned number, fl_str text, fl_buf *out)
{
    if (strcmp(word, "IP") == 0 && fl_str_find_c(text, ':') >= 0)
        fl_buf_addf(out, "fe80::%x", number);
    else if (strcmp(word, "IP") == 0)
        fl_buf_addf(out, "10.9.%u.%u", number / 250, number % 250 + 1);
    else if (strcmp(word, "HOST") == 0 && fl_str_find_c(text, '[') >= 0)
        fl_buf_addf(out, "nd%u[1-2]", number);
    else if (strcmp(word, "HOST") == 0)
        fl_buf_addf(out, "nd%u", number);
    else if (strcmp(word, "DOMAIN") == 0)
        fl_buf_addf(out, "d%u.lan", number);
    else
        fl_buf_addf(out, "n%u", number);
}

/* Exchanges placeholders for made-up names of their kind. */
static void exchange(const fl_redactor *r, fl_str line, fl_buf *out)
{
    fl_err err = {0};
    fl_buf original;

    fl_buf_init(&original, 1 << 20);
    for (size_t i = 0; i < line.n;) {
        char word[12] = "";
        unsigned number = 0;
        size_t n = 0;
        fl_str rest = fl_str_from(line, i), close = rest;
        if (rest.p[0] == '<' && rest.n > 4 && rest.n < (1 << 20)) {
            (void)fl_str_cut(&close, '>');
            n = rest.n - close.n;
            for (size_t k = 1; k < n && k < 8 && rest.p[k] >= 'A' && rest.p[k] <= 'Z'; k++)
                word[k - 1] = rest.p[k];
            number = (unsigned)atoi(rest.p + strlen(word) + 2);
            fl_buf_clear(&original);
            assert_int_equal(fl_restore(r, fl_str_n(rest.p, n), &original, &err), 0);
            if (n > 24 || fl_str_eq(fl_buf_str(&original), fl_str_n(rest.p, n)))
                n = 0;
        }
        if (n)
            neutral(word, number, fl_buf_str(&original), out);
        else
            fl_buf_addc(out, rest.p[0]);
        i += n ? n : 1;
    }
    fl_buf_dispose(&original);
}

static bool confirms(struct work *w, uint32_t pattern, fl_str line)
{
    struct fl_prefix p;

    fl_prefix_parse(line, &p);
    return fl_match_confirm(w->matcher, w->scratch, pattern, line, p.message, NULL);
}

static void tell(struct work *w, const char *path, const char *what, fl_str line, fl_str red)
{
    if (w->bad++ < 40)
        fprintf(stderr, "%s: %s\n  line: %.*s\n  now:  %.*s\n", path, what,
                (int)(line.n < 300 ? line.n : 300), line.p, (int)(red.n < 300 ? red.n : 300),
                red.p ? red.p : "");
}

static void check_numbers(struct work *w, const char *path, fl_str line, fl_str red)
{
    struct fl_caps caps;

    for (size_t k = 0; k < w->nkept; k++) {
        fl_str rest = line;
        while (rest.n && fl_regex_match(w->kept[k], w->scratch, rest, &caps)) {
            size_t end = (size_t)(caps.whole.p - rest.p) + caps.whole.n;
            if (!fl_str_has(red, caps.whole))
                tell(w, path, kept[k], line, red);
            rest = fl_str_from(rest, end ? end : 1);
        }
    }
}

static void check_rules(struct work *w, const char *path, const fl_redactor *r, fl_str line,
                        fl_str red)
{
    const struct fl_candidate *c = NULL;
    uint32_t found[256];
    size_t n = 0, nfound = 0;
    fl_err err = {0};
    fl_buf block, same;

    fl_buf_init(&block, 1 << 20);
    fl_buf_init(&same, 1 << 20);
    fl_buf_add(&block, line);
    fl_buf_addc(&block, '\n');
    assert_int_equal(fl_match_block(w->matcher, w->scratch, fl_buf_str(&block), &c, &n, &err), 0);
    for (size_t i = 0; i < n && nfound < 256; i++)
        if (nfound == 0 || found[nfound - 1] != c[i].pattern)
            found[nfound++] = c[i].pattern;
    if (nfound)
        exchange(r, red, &same);
    for (size_t i = 0; i < nfound; i++) {
        const struct fl_rule *rule = &w->rules->rules[w->rules->patterns[found[i]].id];
        if (!confirms(w, found[i], line))
            continue;
        w->hits++;
        w->as_it_stands += confirms(w, found[i], red);
        if (!confirms(w, found[i], fl_buf_str(&same)))
            tell(w, path, rule->id, line, red);
    }
    fl_buf_dispose(&block);
    fl_buf_dispose(&same);
}

/* The hosts that lines' heads name, as the program would make them known. */
static void know_hosts(fl_redactor *r, fl_str text)
{
    fl_err err = {0};

    while (text.n) {
        struct fl_prefix p;
        fl_prefix_parse(fl_str_cut(&text, '\n'), &p);
        if (p.host.n)
            assert_int_equal(fl_redact_know(r, FL_REDACT_HOST, p.host, &err), 0);
    }
}

static void one_case(void *ctx, const char *path, fl_str text)
{
    struct work *w = ctx;
    fl_redactor *r = NULL;
    fl_err err = {0};
    fl_buf out;
    fl_str red;

    fl_buf_init(&out, text.n * 4 + 1000);
    assert_int_equal(fl_redactor_new(NULL, &r, &err), 0);
    know_hosts(r, text);
    if (fl_redact(r, text, &out, &err))
        fail_msg("%s: %s", path, err.msg);
    w->files++;
    w->bytes_in += text.n;
    w->bytes_out += out.n;
    for (red = fl_buf_str(&out); text.n || red.n;) {
        fl_str line = fl_str_cut(&text, '\n'), now = fl_str_cut(&red, '\n');
        w->lines++;
        if (fl_str_eq(line, now))
            continue;
        w->changed++;
        check_numbers(w, path, line, now);
        check_rules(w, path, r, line, now);
    }
    fl_buf_dispose(&out);
    fl_redactor_free(r);
}

static void names_and_nothing_else(void **state)
{
    const char *dir = FL_SOURCE_DIR "/rules";
    struct work w = {.nkept = sizeof(kept) / sizeof(*kept)};
    fl_regex *re[sizeof(kept) / sizeof(*kept)] = {NULL};
    fl_err err = {0};

    (void)state;
    if (fl_ruleset_load(&dir, 1, &w.rules, &err) ||
        fl_matcher_new(w.rules->patterns, w.rules->npatterns, NULL, &w.matcher, &err) ||
        fl_match_scratch_new(w.matcher, &w.scratch, &err))
        fail_msg("%s", err.msg);
    for (size_t k = 0; k < w.nkept; k++)
        if (fl_regex_new(fl_str_c(kept[k]), false, "kept", &re[k], &err))
            fail_msg("%s", err.msg);
    w.kept = re;
    walk_folder(FL_SOURCE_DIR "/tests/cases", one_case, &w);
    printf("%zu files, %zu lines of which %zu changed; rules matched these %zu times, %zu of them "
           "as they stand; %zu faults\n",
           w.files, w.lines, w.changed, w.hits, w.as_it_stands, w.bad);
    for (size_t k = 0; k < w.nkept; k++)
        fl_regex_free(re[k]);
    fl_match_scratch_free(w.scratch);
    fl_matcher_free(w.matcher);
    fl_ruleset_free(w.rules);
    assert_true(w.files > 300 && w.changed > 1000 && w.hits > 500);
    assert_int_equal(w.bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_nothing_else)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
