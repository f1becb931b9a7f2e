/*
 * What people do with incidents, through the library: a new one is found at once, the same again is
 * counted, a person's word is kept, an incident always has lines to be known by.
 */
#include "memory_fixture.h"

static const char ecc_log[] =
    "step 1 loss 2.1\nstep 2 loss 2.0\n"
    "NVRM: Xid (PCI:0000:5d:00): 94, pid=3318, name=python, Contained: SM (0x1)\n"
    "RuntimeError: CUDA error: uncorrectable ECC error encountered\n";

struct seen {
    size_t n;
    char id[140], cause[64], fix[200], origin[16], first[500], title[200];
    size_t lines;
};

static int look(void *ctx, const struct fl_past *p)
{
    struct seen *s = ctx;

    s->n++;
    snprintf(s->id, sizeof(s->id), "%s", p->id);
    snprintf(s->cause, sizeof(s->cause), "%s", p->cause);
    snprintf(s->fix, sizeof(s->fix), "%s", p->fix);
    snprintf(s->origin, sizeof(s->origin), "%s", p->origin);
    snprintf(s->title, sizeof(s->title), "%s", p->title);
    snprintf(s->first, sizeof(s->first), "%s", p->nevidence ? p->evidence[0] : "");
    s->lines = p->nevidence;
    return 0;
}

static struct seen get(struct home *h, const char *id)
{
    struct seen s = {.n = 0};
    fl_err err = {0};

    must(fl_memory_get(h->m, id, look, &s, &err));
    return s;
}

static size_t count(struct home *h, const struct fl_past_filter *f)
{
    struct seen s = {.n = 0};
    fl_err err = {0};

    must(fl_memory_list(h->m, f, look, &s, &err));
    return s.n;
}

static void a_new_incident_is_found_at_once(void **state)
{
    struct fl_past_said said = {.cause = "gpu.ecc", .fix = "changed the card"};
    struct fl_past_added added;
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, true);
    fl_diagnosis *d = home_log(&h, ecc_log);
    must(fl_memory_add_job(h.m, d, FL_PAST_USER, &said, &added, &err));
    assert_false(added.duplicate);
    assert_string_equal(added.lines_from, "evidence");
    fl_neighbours *n = NULL;
    must(fl_search_job(h.m, d, NULL, &n, &err));
    bool found = false;
    for (size_t i = 0; i < fl_neighbours_count(n); i++)
        found |= !strcmp(fl_neighbours_get(n, i)->incident, added.id) &&
                 fl_neighbours_get(n, i)->similarity > 0.99;
    if (!found)
        fail_msg("%s is not among the %zu neighbours of its own log", added.id,
                 fl_neighbours_count(n));
    fl_neighbours_free(n);
    home_open(&h, true); /* and by the next process */
    assert_true(home_place(&h, "NVRM: Xid (PCI:0000:11:00): 94, Contained: SM (0x2)", added.id) >
                0);
    fl_diagnosis_free(d);
    home_drop(&h);
}

static void the_same_again_is_counted_and_fills_in_what_is_missing(void **state)
{
    struct fl_past_said bare = {.cause = "gpu.ecc"}, more = {.cause = "gpu.ecc", .fix = "new card"},
                        other = {.cause = "gpu.ecc", .fix = "something else"};
    struct fl_past_added one, two, three;
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, false);
    fl_diagnosis *d = home_log(&h, ecc_log);
    must(fl_memory_add_job(h.m, d, FL_PAST_USER, &bare, &one, &err));
    must(fl_memory_add_job(h.m, d, FL_PAST_CONFIRMED, &more, &two, &err));
    assert_true(two.duplicate && two.filled && !one.duplicate);
    assert_string_equal(one.id, two.id);
    assert_int_equal(two.seen, 2);
    assert_string_equal(get(&h, one.id).fix, "new card");
    assert_string_equal(get(&h, one.id).origin, "confirmed");
    must(fl_memory_add_job(h.m, d, FL_PAST_USER, &other, &three, &err));
    assert_true(three.duplicate && !three.filled);
    assert_int_equal(three.seen, 3);
    assert_string_equal(get(&h, one.id).fix, "new card");
    assert_string_equal(get(&h, one.id).origin, "confirmed");
    assert_int_equal(count(&h, NULL), 1);
    fl_diagnosis_free(d);
    home_drop(&h);
}

/* An incident without lines would be found by nobody. */
static void there_are_always_lines(void **state)
{
    static const struct {
        const char *log, *cause, *from, *has;
    } rows[] = {
        {ecc_log, "gpu.ecc", "evidence", "ECC error"},
        {ecc_log, "node.disk_full", "pieces", ""},
        {"one quiet line\nand another\n", "fw.hang", "last", "and another"},
        {"Traceback (most recent call last):\n  File \"/home/u/train.py\", line 3, in <module>\n"
         "    main(cfg)\nZorkError: the flux is out of phase\n",
         "node.disk_full", "pieces", "main(cfg)"},
        {"\xfb\xfd weird \x01 bytes: error\n", "fw.hang", "pieces", "weird"},
    };
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, false);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fl_past_said said = {.cause = rows[i].cause};
        struct fl_past_added added;
        fl_diagnosis *d = home_log(&h, rows[i].log);
        must(fl_memory_add_job(h.m, d, FL_PAST_CORRECTED, &said, &added, &err));
        struct seen s = get(&h, added.id);
        if (strcmp(added.lines_from, rows[i].from) || !s.lines || s.lines != added.lines ||
            !strstr(s.first, rows[i].has))
            fail_msg("row %zu: %zu lines from %s, first '%s'", i, s.lines, added.lines_from,
                     s.first);
        assert_string_equal(s.origin, "corrected");
        fl_diagnosis_free(d);
    }
    struct fl_past_said said = {.cause = "fw.hang"};
    struct fl_past_added added;
    fl_diagnosis *d = home_log(&h, "");
    must_fail(fl_memory_add_job(h.m, d, FL_PAST_USER, &said, &added, &err), FL_ERROR_INPUT,
              "no line");
    fl_diagnosis_free(d);
    home_drop(&h);
}

static void what_cannot_be_stored_is_refused(void **state)
{
    struct fl_past_said none = {.cause = "none"}, unknown = {.cause = "gpu.nosuch"};
    struct fl_past_added added;
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, false);
    fl_diagnosis *d = home_log(&h, "all is well\n");
    must_fail(fl_memory_add_job(h.m, d, FL_PAST_CONFIRMED, NULL, &added, &err), FL_ERROR_NOT_FOUND,
              "name a cause");
    must_fail(fl_memory_add_job(h.m, d, FL_PAST_USER, &none, &added, &err), FL_ERROR_USAGE,
              "no cause");
    must_fail(fl_memory_add_job(h.m, d, FL_PAST_USER, &unknown, &added, &err), FL_ERROR_USAGE,
              "gpu.nosuch");
    fl_diagnosis_free(d);
    must_fail(fl_memory_judge(h.m, "inc-none", NULL, &added, &err), FL_ERROR_NOT_FOUND, "inc-none");
    must_fail(fl_memory_remove(h.m, "inc-none", &err), FL_ERROR_NOT_FOUND, "inc-none");
    must_fail(fl_memory_get(h.m, "", look, NULL, &err), FL_ERROR_NOT_FOUND, "");
    struct fl_past_filter f = {.kind = "odd"};
    must_fail(fl_memory_list(h.m, &f, look, NULL, &err), FL_ERROR_USAGE, "odd");
    assert_int_equal(count(&h, NULL), 0);
    home_drop(&h);
}

static void a_persons_word_on_a_stored_one(void **state)
{
    struct fl_past_said to_net = {.cause = "net.config", .fix = "other fix"};
    struct fl_past_added a, b, word;
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, false);
    fl_diagnosis *d = home_log(&h, ecc_log);
    must(fl_memory_add_job(h.m, d, FL_PAST_CONFIRMED, NULL, &a, &err));
    fl_diagnosis_free(d);
    must(fl_memory_judge(h.m, a.id, &to_net, &word, &err));
    assert_string_equal(word.id, a.id);
    assert_string_equal(get(&h, a.id).cause, "net.config");
    assert_string_equal(get(&h, a.id).origin, "corrected");
    assert_string_equal(get(&h, a.id).fix, "other fix");
    must(fl_memory_judge(h.m, a.id, NULL, &word, &err));
    assert_string_equal(get(&h, a.id).origin, "confirmed");

    /* the same lines under the first cause, then corrected: the two become one */
    d = home_log(&h, ecc_log);
    must(fl_memory_add_job(h.m, d, FL_PAST_CONFIRMED, NULL, &b, &err));
    fl_diagnosis_free(d);
    assert_false(b.duplicate);
    must(fl_memory_judge(h.m, b.id, &to_net, &word, &err));
    assert_true(word.duplicate);
    assert_string_equal(word.id, a.id);
    assert_int_equal(count(&h, NULL), 1);
    assert_true(home_place(&h, "NVRM: Xid (PCI:0000:5d:00): 94, Contained", a.id) == 1);
    must(fl_memory_remove(h.m, a.id, &err));
    assert_int_equal(home_place(&h, "NVRM: Xid (PCI:0000:5d:00): 94, Contained", a.id), 0);
    home_drop(&h);
}

static int collect(void *ctx, const char *bytes, size_t n)
{
    fl_buf_add(ctx, fl_str_n(bytes, n));
    return 0;
}

static void what_is_exported_comes_back(void **state)
{
    struct fl_past_imported n;
    struct home h, back;
    fl_err err = {0};
    fl_buf one, two;
    char path[100];

    (void)state;
    home_make(&h, true);
    home_make(&back, false);
    fl_buf_init(&one, 64u << 20);
    fl_buf_init(&two, 64u << 20);
    must(fl_memory_export(h.m, NULL, collect, &one, &err));
    job_write(back.dir, "all.yaml", fl_buf_str(&one));
    snprintf(path, sizeof(path), "%s/all.yaml", back.dir);
    must(fl_memory_import(back.m, path, NULL, &n, &err));
    must(fl_memory_export(back.m, NULL, collect, &two, &err));
    assert_true(one.n > 100000);
    if (!fl_str_eq(fl_buf_str(&one), fl_buf_str(&two)))
        fail_msg("%zu bytes were exported, %zu after the import", one.n, two.n);
    fl_buf_clear(&two);
    uint64_t saved = 0, lost = 9;
    must(fl_memory_salvage(h.m, collect, &two, &saved, &lost, &err));
    assert_int_equal(saved, count(&h, NULL));
    assert_int_equal(lost, 0);
    fl_buf_dispose(&one);
    fl_buf_dispose(&two);
    home_drop(&h);
    home_drop(&back);
}

static void a_cause_that_no_taxonomy_knows(void **state)
{
    struct fl_past_import strict = {.known_causes = true};
    struct fl_past_imported n;
    struct home h;
    fl_err err = {0};
    char path[100];

    (void)state;
    home_make(&h, false);
    job_write(h.dir, "odd.yaml",
              FL_S("incidents:\n  - id: a\n    cause: our.own\n    evidence: ['x failed']\n"));
    snprintf(path, sizeof(path), "%s/odd.yaml", h.dir);
    must_fail(fl_memory_import(h.m, path, &strict, &n, &err), FL_ERROR_RULES, "odd.yaml:2");
    assert_int_equal(count(&h, NULL), 0);
    must(fl_memory_import(h.m, path, NULL, &n, &err));
    assert_int_equal(n.added, 1);
    assert_int_equal(n.unknown_causes, 1);
    home_drop(&h);
}

static int remember(void *ctx, const struct fl_past *p)
{
    fl_buf *b = ctx;

    for (size_t i = 0; i < p->nevidence; i++)
        fl_buf_addf(b, "%s%c", p->evidence[i], 0);
    return 0;
}

/* Whatever is looked up, even their own lines, entries that absorb noise are not given. */
static void entries_that_absorb_are_never_returned(void **state)
{
    static const char *const kinds[] = {"follow_on", "harmless"};
    struct home h;
    fl_err err = {0};
    size_t searches = 0;

    (void)state;
    home_make(&h, true);
    for (size_t k = 0; k < 2; k++) {
        struct fl_past_filter f = {.kind = kinds[k]};
        fl_buf lines;
        fl_str rest;
        fl_buf_init(&lines, 16u << 20);
        must(fl_memory_list(h.m, &f, remember, &lines, &err));
        for (rest = fl_buf_str(&lines); rest.n; searches++) {
            fl_str line = fl_str_cut(&rest, 0);
            struct fl_search_opts o = {.k = 20, .floor = -1};
            fl_neighbours *n = NULL;
            must(fl_search_text(h.m, line.p, &o, &n, &err));
            for (size_t i = 0; i < fl_neighbours_count(n); i++) {
                const char *id = fl_neighbours_get(n, i)->incident;
                struct fl_past_filter same = {.kind = kinds[k], .text = id};
                if (count(&h, &same))
                    fail_msg("'%s' found %s, which is %s", line.p, id, kinds[k]);
                break; /* the first is the nearest; all would take minutes */
            }
            fl_neighbours_free(n);
        }
        fl_buf_dispose(&lines);
    }
    assert_true(searches > 100);
    home_drop(&h);
}

/* What log lines and people may hold comes out as it went in, or is refused, and finds itself. */
static void hostile_text(void **state)
{
    static const char *const texts[] = {
        "\" OR 1=1; DROP TABLE incident; --",
        "NEAR(error failed, 10) AND NOT *",
        "'''\"\"\"```",
        "{escaped: '\\x00'}",
        "%s%n%d",
        "\xff\xfe\x80 not utf8",
        "\xe2\x80\xae right to left",
        "a\tb\rc\x1b[31mred",
        "- - - : : : # ! & *",
        "../../../etc/passwd",
        "error " /* long ones below */,
        "\xf0\x9f\x92\xa9 \xf0\x9f\x92\xa9",
    };
    struct home h;
    fl_err err = {0};
    fl_buf big;

    (void)state;
    home_make(&h, false);
    fl_buf_init(&big, 4u << 20);
    for (int i = 0; i < 100000; i++)
        fl_buf_addz(&big, "word\" ( ");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct fl_past_said said = {"gpu.ecc", texts[i], texts[i], texts[i], texts[i]};
        struct fl_past_added added;
        fl_neighbours *n = NULL;
        char line[300];
        snprintf(line, sizeof(line), "fatal error number %zu: %s\n", i, texts[i]);
        fl_diagnosis *d = home_log(&h, line);
        must(fl_memory_add_job(h.m, d, FL_PAST_USER, &said, &added, &err));
        fl_diagnosis_free(d);
        assert_string_equal(get(&h, added.id).title, texts[i]);
        must(fl_search_text(h.m, texts[i], NULL, &n, &err));
        fl_neighbours_free(n);
        if (fl_memory_get(h.m, texts[i], look, &(struct seen){0}, &err) != FL_ERROR_NOT_FOUND)
            fail_msg("an incident named '%s'", texts[i]);
        struct fl_past_filter f = {.text = texts[i]};
        assert_true(count(&h, &f) >= 1);
    }
    fl_neighbours *n = NULL;
    must(fl_search_text(h.m, big.p, NULL, &n, &err));
    fl_neighbours_free(n);
    fl_buf_dispose(&big);
    home_drop(&h);
}

static void checkup(void *ctx, const struct fl_checkup *c)
{
    fl_buf_addf(ctx, "%s %d %s\n", c->name, (int)c->health, c->text);
}

static void the_doctor_changes_nothing(void **state)
{
    struct home h;
    fl_err err = {0};
    char none[100];
    fl_buf b;

    (void)state;
    home_make(&h, true);
    fl_buf_init(&b, 1u << 20);
    snprintf(none, sizeof(none), "%s/none", h.dir);
    assert_in_range(fl_doctor(&(struct fl_memory_opts){.home = none}, checkup, &b, &err),
                    FL_HEALTH_OK, FL_HEALTH_NOTE);
    assert_false(fl_file_exists(none));
    if (!strstr(b.p, "database 0 not made yet"))
        fail_msg("of an empty home it says:\n%s", b.p);
    fl_buf_clear(&b);
    assert_in_range(fl_doctor(&(struct fl_memory_opts){.home = h.data}, checkup, &b, &err),
                    FL_HEALTH_OK, FL_HEALTH_NOTE);
    if (!strstr(b.p, "corpus 0 imported") || !strstr(b.p, "whole"))
        fail_msg("of a whole home it says:\n%s", b.p);
    fl_buf_dispose(&b);
    home_drop(&h);
}

static void the_shipped_corpus_has_no_finding(void **state)
{
    struct home h;
    fl_err err = {0};
    fl_buf b;

    (void)state;
    home_make(&h, false);
    fl_buf_init(&b, 1u << 20);
    int n = fl_incidents_check(h.e, NULL, (void (*)(void *, const char *))fl_buf_addz, &b, &err);
    if (n)
        fail_msg("%d findings: %s%s", n, n < 0 ? err.msg : "", b.p ? b.p : "");
    fl_buf_dispose(&b);
    home_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_incident_is_found_at_once),
        cmocka_unit_test(the_same_again_is_counted_and_fills_in_what_is_missing),
        cmocka_unit_test(there_are_always_lines),
        cmocka_unit_test(what_cannot_be_stored_is_refused),
        cmocka_unit_test(a_persons_word_on_a_stored_one),
        cmocka_unit_test(what_is_exported_comes_back),
        cmocka_unit_test(a_cause_that_no_taxonomy_knows),
        cmocka_unit_test(entries_that_absorb_are_never_returned),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(the_doctor_changes_nothing),
        cmocka_unit_test(the_shipped_corpus_has_no_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
