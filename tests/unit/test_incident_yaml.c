/*
 * Incidents as YAML: every text comes back as it went out, what is wrong is said with file and
 * line, lint finds what should not ship.
 */
#include "store_fixture.h"

struct last {
    struct fl_incident inc;
    fl_arena a;
    unsigned n;
};

static int keep_last(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    struct last *l = ctx;

    (void)err;
    l->n++;
    return fl_incident_dup(inc, &l->a, &l->inc);
}

static void same_incidents(const struct fl_incident *a, const struct fl_incident *b)
{
    same_text(a->id, b->id, "id");
    same_text(a->cause, b->cause, "cause");
    same_text(a->title, b->title, "title");
    same_text(a->phase, b->phase, "phase");
    same_text(a->explanation, b->explanation, "explanation");
    same_text(a->fix, b->fix, "fix");
    same_text(a->source, b->source, "source");
    same_text(a->created, b->created, "created");
    same_text(a->updated, b->updated, "updated");
    same_text(a->shape, b->shape, "shape");
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->nstack, b->nstack);
    assert_int_equal(a->nevidence, b->nevidence);
    for (size_t i = 0; i < a->nstack; i++)
        same_text(a->stack[i], b->stack[i], "stack");
    for (size_t i = 0; i < a->nevidence; i++)
        same_text(a->evidence[i], b->evidence[i], "evidence");
}

/* Written and read again. */
static void there_and_back(const struct fl_incident *inc)
{
    struct last l = {.n = 0};
    fl_err err = {0};
    fl_buf out;

    fl_buf_init(&out, 1u << 26);
    fl_arena_init(&l.a);
    fl_buf_addz(&out, FL_INCIDENTS_HEAD);
    fl_incident_write(inc, NULL, NULL, &out);
    fl_incident_write(inc, NULL, NULL, &out);
    if (fl_incidents_parse(fl_buf_str(&out), "out.yaml", keep_last, &l, &err))
        fail_msg("%s in:\n%s", err.msg, out.p);
    assert_int_equal(l.n, 2);
    same_incidents(&l.inc, inc);
    fl_arena_dispose(&l.a);
    fl_buf_dispose(&out);
}

static void each_text_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        fl_str lines[2] = {hostile[i], FL_S("x")},
               stack[] = {FL_S("a, b"), FL_S("no"), FL_S("[x]")};
        struct fl_incident inc = {.id = FL_S("no"),
                                  .cause = FL_S("gpu.ecc"),
                                  .title = hostile[i],
                                  .explanation = hostile[i],
                                  .fix = hostile[i],
                                  .source = hostile[COUNT(hostile) - 1 - i],
                                  .phase = FL_S("- start: #1"),
                                  .created = FL_S("2026-01-01T00:00:00Z"),
                                  .shape = FL_S("1e5"),
                                  .kind = FL_KIND_HARMLESS,
                                  .origin = FL_ORIGIN_CONFIRMED,
                                  .evidence = lines,
                                  .nevidence = 2,
                                  .stack = stack,
                                  .nstack = 3,
                                  .count = 7};
        there_and_back(&inc);
    }
}

static void long_lines_come_back(void **state)
{
    size_t n = 1u << 20;
    char *p = malloc(n);
    fl_str line = {p, n};
    struct fl_incident inc = {
        .id = FL_S("a"), .cause = FL_S("c"), .evidence = &line, .nevidence = 1, .count = 1};

    (void)state;
    assert_non_null(p);
    memset(p, 'x', n);
    there_and_back(&inc);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * 7 + i / 256);
    there_and_back(&inc);
    free(p);
}

/* The bytes of an export are a promise: other programs compare them. */
static void the_form_is_fixed(void **state)
{
    static const char want[] = "  - id: inc-1\n"
                               "    kind: follow_on\n"
                               "    cause: net.nccl_timeout\n"
                               "    title: A watchdog, late\n"
                               "    stack: [pytorch, '2.1']\n"
                               "    phase: iterating\n"
                               "    evidence:\n"
                               "      - '[rank3]: it''s late'\n"
                               "      - |-\n"
                               "        Traceback:\n"
                               "          File \"a.py\"\n"
                               "\n"
                               "        E: x\n"
                               "      - \"\\x1b[0m\\tend\"\n"
                               "      - {escaped: 'caf\\xe9 \\\\'}\n"
                               "    fix: 'no'\n"
                               "    origin: user\n"
                               "    created: '2026-01-01T00:00:00Z'\n"
                               "    count: 2\n";
    fl_str stack[] = {FL_S("pytorch"), FL_S("2.1")};
    fl_str lines[] = {FL_S("[rank3]: it's late"), FL_S("Traceback:\n  File \"a.py\"\n\nE: x"),
                      FL_S("\x1b[0m\tend"), FL_S("caf\xe9 \\")};
    struct fl_incident inc = {.id = FL_S("inc-1"),
                              .kind = FL_KIND_FOLLOW_ON,
                              .cause = FL_S("net.nccl_timeout"),
                              .title = FL_S("A watchdog, late"),
                              .stack = stack,
                              .nstack = 2,
                              .phase = FL_S("iterating"),
                              .evidence = lines,
                              .nevidence = 4,
                              .fix = FL_S("no"),
                              .created = FL_S("2026-01-01T00:00:00Z"),
                              .count = 2};
    fl_buf out;

    (void)state;
    fl_buf_init(&out, 65536);
    fl_incident_write(&inc, NULL, NULL, &out);
    same_text(fl_buf_str(&out), fl_str_c(want), "an incident");
    fl_buf_dispose(&out);
}

static void hide(void *ctx, fl_str text, fl_buf *out)
{
    ++*(int *)ctx;
    fl_buf_addf(out, "<%zu>", text.n);
}

static void texts_are_mapped(void **state)
{
    fl_str line = FL_S("secret");
    struct fl_incident inc = {.id = FL_S("a"),
                              .cause = FL_S("c"),
                              .title = FL_S("t"),
                              .source = FL_S("so"),
                              .evidence = &line,
                              .nevidence = 1,
                              .count = 1};
    int calls = 0;
    fl_buf out;

    (void)state;
    fl_buf_init(&out, 65536);
    fl_incident_write(&inc, hide, &calls, &out);
    same_text(fl_buf_str(&out),
              FL_S("  - id: a\n    cause: c\n    title: '<1>'\n    evidence:\n      - '<6>'\n    "
                   "source: '<2>'\n    origin: user\n    count: 1\n"),
              "a mapped incident");
    assert_int_equal(calls, 3);
    fl_buf_dispose(&out);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"incident:\n- {id: a, cause: c}\n",
         "x.yaml:1: unknown key; a file holds only 'incidents:'"},
        {"incidents:\n- {id: a, cause: c}\nmore: 1\n", "x.yaml:3: unknown key"},
        {"- a\n", "x.yaml:1: begin the file with 'incidents:'"},
        {"incidents: x\n", "x.yaml:1: 'incidents' must be a list"},
        {"incidents:\n- a\n", "x.yaml:2: a map (key: value) is expected"},
        {"incidents:\n- id: a\n  cause: c\n  evidnce: [x]\n",
         "x.yaml:4: unknown key 'evidnce'; did you mean 'evidence'?"},
        {"incidents:\n- id: a\n  id: b\n", "x.yaml:3: key 'id' stands here twice"},
        {"incidents:\n- {cause: c}\n", "x.yaml:2: an incident has no id"},
        {"incidents:\n- {id: a}\n", "x.yaml:2: incident 'a' has no cause"},
        {"incidents:\n- {id: ../a, cause: c}\n", "x.yaml:2: id '../a' may hold"},
        {"incidents:\n- {id: \"a\\0b\", cause: c}\n", "x.yaml:2: id 'a"},
        {"incidents:\n- {id: a, cause: c, kind: other}\n",
         "must be one of: incident, follow_on, harmless"},
        {"incidents:\n- {id: a, cause: c, origin: me}\n", "must be one of: user, corpus"},
        {"incidents:\n- {id: a, cause: c, count: 0}\n", "'count' must be a whole number from 1"},
        {"incidents:\n- {id: a, cause: c, count: -1}\n", "'count' must be a whole number from 1"},
        {"incidents:\n- {id: a, cause: c, created: today}\n", "created 'today' is not a time"},
        {"incidents:\n- {id: a, cause: c, shape: XY}\n", "shape 'XY' is not lower-case hex"},
        {"incidents:\n- {id: a, cause: c, phase: \"a\\nb\"}\n", "phase 'a\\x0ab' holds a control"},
        {"incidents:\n- {id: a, cause: c, stack: [\"a\\nb\"]}\n",
         "stack 'a\\x0ab' holds a control"},
        {"incidents:\n- {id: a, cause: c, evidence: [x, '']}\n", "evidence line 2 is empty"},
        {"incidents:\n- {id: a, cause: c, evidence: {x: y}}\n", "unknown key 'x'"},
        {"incidents:\n- {id: a, cause: c, title: {escaped: '\\x4'}}\n",
         "an escaped text has '\\\\' or '\\xNN' behind"},
        {"incidents:\n- {id: a, cause: c, title: {escaped: [x]}}\n", "'title' must be a text"},
        {"incidents:\n- {id: a, cause: c, title: {}}\n", "'title' must be a text"},
        {"incidents:\n- {id: a, cause: c, title: *x}\n", "aliases are not used here"},
        {"incidents:\n- {id: a\n", "x.yaml:"},
        {"incidents: []\n---\nincidents: []\n", "only one document a file"},
    };
    struct last l = {.n = 0};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        fl_err err = {0};
        int r;
        fl_arena_init(&l.a);
        r = fl_incidents_parse(fl_str_c(bad[i].text), "x.yaml", keep_last, &l, &err);
        if (r != FL_ERULE || !strstr(err.msg, bad[i].words))
            fail_msg("%s gives %d, \"%s\" instead of something with \"%s\"", bad[i].text, r,
                     err.msg, bad[i].words);
        fl_arena_dispose(&l.a);
    }
}

static void nothing_is_a_list_of_none(void **state)
{
    static const char *const none[] = {
        "", "# only a comment\n", "incidents:\n", "incidents: []\n", "{}\n", "---\n"};
    struct last l = {.n = 0};
    fl_err err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(none); i++)
        must(fl_incidents_parse(fl_str_c(none[i]), "x.yaml", keep_last, &l, &err));
    assert_int_equal(l.n, 0);
}

/* A file may be of any size, one row may not. */
static void rows_are_limited_and_files_are_not(void **state)
{
    struct last l = {.n = 0};
    fl_err err = {0};
    fl_buf text, row;
    unsigned n = 0;

    (void)state;
    fl_buf_init(&text, 1u << 26);
    fl_buf_init(&row, 1u << 26);
    fl_buf_addz(&text, FL_INCIDENTS_HEAD);
    for (int i = 0; i < 1 << 20; i++)
        fl_buf_addz(&row, "x y");
    for (; text.n < 20u << 20; n++) {
        fl_buf_addf(&text, "- id: n%u\n  cause: c\n  evidence: [l1, ", n);
        fl_buf_add(&text, fl_str_sub(fl_buf_str(&row), 0, 1u << 20));
        fl_buf_addz(&text, "]\n");
    }
    fl_arena_init(&l.a);
    must(fl_incidents_parse(fl_buf_str(&text), "x.yaml", keep_last, &l, &err));
    assert_int_equal(l.n, n);
    fl_arena_dispose(&l.a);
    fl_buf_clear(&text);
    fl_buf_addz(&text, "incidents:\n- {id: a, cause: c}\n- {id: b, title: '");
    for (int i = 0; i < 7; i++)
        fl_buf_add(&text, fl_buf_str(&row));
    fl_buf_addz(&text, "'}\n");
    fl_arena_init(&l.a);
    must_fail(fl_incidents_parse(fl_buf_str(&text), "x.yaml", keep_last, &l, &err), FL_ERULE,
              "one row is larger than 16 MiB");
    fl_arena_dispose(&l.a);
    fl_buf_clear(&text);
    fl_buf_addz(&text, "incidents:\n- {id: a, cause: c, title: '");
    fl_buf_add(&text, fl_str_sub(fl_buf_str(&row), 0, FL_INCIDENT_MAX_BYTES + 1));
    fl_buf_addz(&text, "'}\n");
    must_fail(fl_incidents_parse(fl_buf_str(&text), "x.yaml", keep_last, &l, &err), FL_ERULE,
              "bytes of text, at most");
    fl_buf_dispose(&row);
    fl_buf_dispose(&text);
}

static int stop_at_two(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    (void)inc;
    (void)err;
    return ++*(int *)ctx == 2;
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[200];
    fl_err err = {0};

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    must(fl_file_write_atomic(path, fl_str_c(text), &err));
}

static void folders_are_read_in_order(void **state)
{
    struct folder f;
    fl_err err = {0};
    struct last l = {.n = 0};
    int n = 0;

    (void)state;
    folder_make(&f);
    must_fail(fl_incidents_load(f.dir, keep_last, &l, &err), FL_EINPUT, "holds no .yaml file");
    write_file(f.dir, "b.yaml", "incidents:\n- {id: b1, cause: c}\n- {id: b2, cause: c}\n");
    write_file(f.dir, "a.yaml", "incidents:\n- {id: a1, cause: c}\n");
    write_file(f.dir, "README.md", "no YAML: [\n");
    write_file(f.dir, ".c.yaml", "no YAML: [\n");
    fl_arena_init(&l.a);
    must(fl_incidents_load(f.dir, keep_last, &l, &err));
    assert_int_equal(l.n, 3);
    same_text(l.inc.id, FL_S("b2"), "the last id");
    same_text(fl_str_from(fl_str_c(l.inc.file), strlen(f.dir)), FL_S("/b.yaml"), "its file");
    assert_int_equal(l.inc.line, 3);
    fl_arena_dispose(&l.a);
    must(fl_incidents_load(f.dir, stop_at_two, &n, &err));
    assert_int_equal(n, 2);
    must_fail(fl_incidents_load("/nowhere/x.yaml", keep_last, &l, &err), FL_EINPUT,
              "/nowhere/x.yaml: cannot be opened");
    folder_remove(&f);
}

static bool is_known(void *ctx, fl_str id)
{
    (void)ctx;
    return fl_str_eqz(id, "gpu.ecc");
}

static void collect(void *ctx, const char *text)
{
    fl_buf_addz(ctx, text);
    fl_buf_addc(ctx, '\n');
}

static void lint_finds_it_all(void **state)
{
    static const char *const want[] = {
        "a.yaml:2: incident 'a': has no evidence; quote",
        "a.yaml:2: incident 'a': cause 'gpu.eec' is not in taxonomy.yaml",
        "a.yaml:2: incident 'a': has no title",
        "a.yaml:2: incident 'a': has no explanation",
        "a.yaml:2: incident 'a': has no fix",
        "a.yaml:2: incident 'a': has no source",
        "a.yaml:3: incident 'b': evidence line 1 is blank",
        "a.yaml:3: incident 'b': evidence lines 2 and 3 are the same",
        "a.yaml:3: incident 'b': evidence line 4 has 401 bytes, at most 400",
        "b.yaml:2: incident 'b': the id is taken at ",
        "a.yaml:3; choose another",
        "c.yaml:1: not valid YAML",
    };
    struct folder f;
    struct fl_incident_lint l = {is_known, collect, NULL};
    fl_err err = {0};
    fl_buf said, text;
    int n;

    (void)state;
    folder_make(&f);
    fl_buf_init(&said, 65536);
    fl_buf_init(&text, 65536);
    l.ctx = &said;
    fl_buf_addz(&text,
                "incidents:\n- {id: a, cause: gpu.eec}\n- {id: b, cause: gpu.ecc, kind: harmless, "
                "title: t, source: s, evidence: ['  ', x, x, '");
    for (int i = 0; i < 401; i++)
        fl_buf_addc(&text, 'y');
    fl_buf_addz(&text, "']}\n");
    write_file(f.dir, "a.yaml", text.p);
    write_file(f.dir, "b.yaml",
               "incidents:\n- {id: b, cause: gpu.ecc, title: t, explanation: e, fix: f, "
               "source: s, evidence: [x]}\n");
    write_file(f.dir, "c.yaml", "}\n");
    n = fl_incidents_lint(f.dir, &l, &err);
    for (size_t i = 0; i < COUNT(want); i++)
        if (!said.p || !strstr(said.p, want[i]))
            fail_msg("lint does not say \"%s\" but:\n%s", want[i], said.p);
    if (n != 11)
        fail_msg("%d findings instead of 11:\n%s", n, said.p);
    fl_buf_dispose(&said);
    fl_buf_dispose(&text);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_comes_back),
        cmocka_unit_test(long_lines_come_back),
        cmocka_unit_test(the_form_is_fixed),
        cmocka_unit_test(texts_are_mapped),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(nothing_is_a_list_of_none),
        cmocka_unit_test(folders_are_read_in_order),
        cmocka_unit_test(lint_finds_it_all),
        cmocka_unit_test(rows_are_limited_and_files_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
