/*
 * The incident memory, function by function: what is stored comes back, duplicates are counted,
 * changes are whole or not there, exports and imports are the same bytes.
 */
#include "store_fixture.h"

static void what_is_added_comes_back(void **state)
{
    struct fixture *x = *state;
    fl_err err = {0};

    for (size_t i = 0; i < COUNT(hostile); i++) {
        fl_str lines[] = {hostile[i], FL_S("second"), hostile[(i + 1) % COUNT(hostile)]};
        fl_str stack[] = {FL_S("pytorch 2.1"), FL_S("h100")};
        struct fl_incident inc = incident("", "gpu.ecc", lines), out = {0};
        struct fl_store_added added = {0};
        inc.title = inc.explanation = inc.fix = inc.source = hostile[i];
        inc.nevidence = 3;
        inc.stack = stack;
        inc.nstack = 2;
        inc.phase = FL_S("iterating");
        inc.kind = FL_KIND_HARMLESS;
        inc.origin = FL_ORIGIN_CORRECTED;
        inc.shape = FL_S("");
        must(fl_store_add(x->s, &inc, &added, &err));
        if (added.duplicate) /* texts that differ in digits only */
            continue;
        must(fl_store_get_number(x->s, added.number, &x->a, &out, &err));
        same_text(out.id, fl_str_c(added.id), "id");
        same_text(out.title, hostile[i], "title");
        same_text(out.explanation, hostile[i], "explanation");
        same_text(out.fix, hostile[i], "fix");
        same_text(out.source, hostile[i], "source");
        same_text(out.phase, inc.phase, "phase");
        same_text(out.created, FL_S("2026-03-01T02:03:04Z"), "created");
        assert_int_equal(out.nevidence, 3);
        for (size_t k = 0; k < 3; k++)
            same_text(out.evidence[k], lines[k], "evidence");
        assert_int_equal(out.nstack, 2);
        same_text(out.stack[0], stack[0], "stack");
        assert_int_equal(out.kind, FL_KIND_HARMLESS);
        assert_int_equal(out.origin, FL_ORIGIN_CORRECTED);
        assert_int_equal(out.count, 1);
    }
}

static void duplicates_are_counted(void **state)
{
    struct fixture *x = *state;
    struct fl_store_added first = add(x, "one", "gpu.ecc", "Xid 94 at 1"), again, other;
    struct fl_store_counts n = {0};
    fl_err err = {0};

    x->now += 86400;
    again = add(x, "two", "gpu.ecc", "Xid 95 at 2");
    other = add(x, "three", "gpu.off_bus", "Xid 79 at 3");
    assert_true(again.duplicate);
    assert_int_equal(again.number, first.number);
    assert_string_equal(again.id, "one");
    assert_false(other.duplicate);
    assert_int_equal(get(x, "one").count, 2);
    same_text(get(x, "one").updated, FL_S("2026-03-02T02:03:04Z"), "updated");
    same_text(get(x, "one").created, FL_S("2026-03-01T02:03:04Z"), "created");
    must(fl_store_count(x->s, &n, &err));
    assert_int_equal(n.incidents, 2);
    assert_int_equal(n.docs, 4);
}

static void ids_are_one_of_a_kind(void **state)
{
    struct fixture *x = *state;
    fl_str line = FL_S("another line");
    struct fl_incident inc = incident("one", "gpu.ecc", &line);
    struct fl_store_added a, b;
    fl_err err = {0};

    add(x, "one", "gpu.ecc", "a line");
    must_fail(fl_store_add(x->s, &inc, NULL, &err), FL_EUSAGE, "incident 'one' is there already");
    inc.id = FL_S("'; DROP TABLE incident; --");
    must_fail(fl_store_add(x->s, &inc, NULL, &err), FL_EUSAGE, "may hold letters, digits");
    inc.id = FL_S("\xff");
    must_fail(fl_store_add(x->s, &inc, NULL, &err), FL_EUSAGE, "id '\\xff'");
    a = add(x, "", "gpu.ecc", "a third line");
    b = add(x, "", "gpu.ecc", "a fourth line");
    assert_int_equal(strncmp(a.id, "inc-", 4), 0);
    assert_string_not_equal(a.id, b.id);
    must_fail(fl_store_get(x->s, FL_S("\" OR 1"), &x->a, &inc, NULL, &err), FL_ENOTFOUND,
              "there is no incident '\" OR 1'");
    must_fail(fl_store_get_number(x->s, 999, &x->a, &inc, &err), FL_ENOTFOUND,
              "there is no incident number 999");
}

static void updates_are_whole(void **state)
{
    struct fixture *x = *state;
    fl_str lines[] = {FL_S("new words"), FL_S("and more")};
    struct fl_incident inc;
    struct fl_store_added out = {0}, added = add(x, "one", "gpu.ecc", "old words");
    fl_str term = FL_S("old");
    uint64_t n = 9;
    fl_err err = {0};

    x->now += 60;
    inc = get(x, "one");
    inc.cause = FL_S("gpu.off_bus");
    inc.origin = FL_ORIGIN_CORRECTED;
    inc.evidence = lines;
    inc.nevidence = 2;
    inc.created = FL_S("2000-01-01T00:00:00Z");
    inc.count = 0;
    must(fl_store_update(x->s, &inc, &out, &err));
    assert_int_equal(out.number, added.number);
    assert_false(out.duplicate);
    inc = get(x, "one");
    same_text(inc.cause, FL_S("gpu.off_bus"), "cause");
    same_text(inc.created, FL_S("2026-03-01T02:03:04Z"), "created");
    same_text(inc.updated, FL_S("2026-03-01T02:04:04Z"), "updated");
    assert_int_equal(inc.nevidence, 2);
    assert_int_equal(inc.count, 1);
    must(fl_store_frequency(x->s, term, 10, &n, &err));
    assert_int_equal(n, 0);
    term = FL_S("words");
    must(fl_store_frequency(x->s, term, 10, &n, &err));
    assert_int_equal(n, 1);
    inc.id = FL_S("other");
    must_fail(fl_store_update(x->s, &inc, &out, &err), FL_ENOTFOUND, "no incident 'other'");
}

/* A correction may make two incidents the same: then one remains. */
static void a_correction_may_join_two(void **state)
{
    struct fixture *x = *state;
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a line"), out = {0};
    struct fl_incident inc;
    fl_err err = {0};

    add(x, "two", "gpu.off_bus", "a line");
    add(x, "twice", "gpu.off_bus", "a line");
    inc = get(x, "two");
    assert_int_equal(inc.count, 2);
    inc.cause = FL_S("gpu.ecc");
    must(fl_store_update(x->s, &inc, &out, &err));
    assert_true(out.duplicate);
    assert_int_equal(out.number, one.number);
    assert_string_equal(out.id, "one");
    assert_int_equal(get(x, "one").count, 3);
    must_fail(fl_store_get(x->s, FL_S("two"), &x->a, &inc, NULL, &err), FL_ENOTFOUND, "'two'");
}

static void removal_leaves_nothing(void **state)
{
    struct fixture *x = *state;
    struct fl_store_added one = add(x, "one", "gpu.ecc", "a line"), two;
    struct fl_store_counts n = {0};
    fl_err err = {0};

    must(fl_store_remove(x->s, FL_S("one"), &err));
    must_fail(fl_store_remove(x->s, FL_S("one"), &err), FL_ENOTFOUND, "no incident 'one'");
    must(fl_store_count(x->s, &n, &err));
    assert_int_equal(n.incidents + n.docs, 0);
    two = add(x, "one", "gpu.ecc", "a line");
    assert_true(two.number > one.number); /* an index may still know the old number */
}

static int ids_of(void *ctx, int64_t number, const struct fl_incident *inc, fl_err *err)
{
    fl_buf *b = ctx;

    (void)number;
    (void)err;
    fl_buf_addf(b, "%s%.*s", b->n ? " " : "", FL_FMT(inc->id));
    return 0;
}

static void lists_are_filtered(void **state)
{
    struct fixture *x = *state;
    static const struct {
        struct fl_store_filter f;
        const char *want;
    } rows[] = {
        {{.kind = -1, .origin = -1}, "a b c d"},
        {{.kind = -1, .origin = -1, .cause = FL_S("gpu.ecc")}, "b d"},
        {{.kind = -1, .origin = -1, .cause = FL_S("gpu.*")}, "b c d"},
        {{.kind = -1, .origin = -1, .cause = FL_S("%")}, ""},
        {{.kind = FL_KIND_HARMLESS, .origin = -1}, "d"},
        {{.kind = -1, .origin = FL_ORIGIN_CORPUS}, "c"},
        {{.kind = -1, .origin = -1, .text = FL_S("XID")}, "b d"},
        {{.kind = -1, .origin = -1, .text = FL_S("%")}, ""},
        {{.kind = -1, .origin = -1, .limit = 2}, "a b"},
        {{.kind = FL_KIND_INCIDENT,
          .origin = FL_ORIGIN_USER,
          .cause = FL_S("gpu.*"),
          .text = FL_S("xid 9")},
         "b"},
    };
    struct fl_incident inc;
    fl_err err = {0};

    add(x, "d", "gpu.ecc", "xid 94 d");
    add(x, "b", "gpu.ecc", "Xid 95 b");
    add(x, "c", "gpu.off_bus", "nothing of it");
    add(x, "a", "net.dns", "a name");
    inc = get(x, "d");
    inc.kind = FL_KIND_HARMLESS;
    must(fl_store_update(x->s, &inc, NULL, &err));
    inc = get(x, "c");
    inc.origin = FL_ORIGIN_CORPUS;
    must(fl_store_update(x->s, &inc, NULL, &err));
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_buf b;
        fl_buf_init(&b, 65536);
        must(fl_store_list(x->s, &rows[i].f, ids_of, &b, &err));
        if (strcmp(b.p ? b.p : "", rows[i].want) != 0)
            fail_msg("filter %zu gives \"%s\" instead of \"%s\"", i, b.p, rows[i].want);
        fl_buf_dispose(&b);
    }
}

static void transactions_are_whole(void **state)
{
    struct fixture *x = *state;
    fl_str line = FL_S("x");
    struct fl_incident inc = incident("a", "gpu.ecc", &line);
    struct fl_store_counts n = {0};
    fl_err err = {0};

    must(fl_store_begin(x->s, &err));
    must_fail(fl_store_begin(x->s, &err), FL_EBUG, "open already");
    add(x, "a", "gpu.ecc", "one");
    add(x, "b", "gpu.ecc", "two");
    fl_store_rollback(x->s);
    must(fl_store_count(x->s, &n, &err));
    assert_int_equal(n.incidents, 0);

    must(fl_store_begin(x->s, &err));
    add(x, "a", "gpu.ecc", "one");
    must_fail(fl_store_add(x->s, &inc, NULL, &err), FL_EUSAGE, "is there already");
    must_fail(fl_store_remove(x->s, FL_S("a"), &err), FL_EBACKEND, "an earlier step");
    must_fail(fl_store_commit(x->s, &err), FL_EBACKEND, "none of it was stored");
    must_fail(fl_store_commit(x->s, &err), FL_EBUG, "no transaction is open");
    must(fl_store_count(x->s, &n, &err));
    assert_int_equal(n.incidents, 0);

    must(fl_store_begin(x->s, &err));
    add(x, "a", "gpu.ecc", "one");
    add(x, "b", "gpu.ecc", "two");
    must(fl_store_commit(x->s, &err));
    must(fl_store_begin(x->s, &err));
    add(x, "c", "gpu.ecc", "three");
    open_again(x); /* closed in the middle */
    must(fl_store_count(x->s, &n, &err));
    assert_int_equal(n.incidents, 2);
}

static void facts_are_kept(void **state)
{
    struct fixture *x = *state;
    fl_str v = {0};
    fl_err err = {0};

    must_fail(fl_store_meta_get(x->s, "generation", &x->a, &v, &err), FL_ENOTFOUND, "'generation'");
    must(fl_store_meta_set(x->s, "generation", FL_S("1"), &err));
    must(fl_store_meta_set(x->s, "generation", FL_S("2 \0 \xff"), &err));
    must(fl_store_meta_set(x->s, "empty", FL_S(""), &err));
    open_again(x);
    must(fl_store_meta_get(x->s, "generation", &x->a, &v, &err));
    same_text(v, FL_S("2 \0 \xff"), "generation");
    must(fl_store_meta_get(x->s, "empty", &x->a, &v, &err));
    same_text(v, FL_S(""), "empty");
}

/* --- import and export --- */

static const char corpus_1[] = "incidents:\n"
                               "  - {id: c1, cause: gpu.ecc, title: t, evidence: [alpha]}\n"
                               "  - {id: c2, cause: gpu.ecc, title: t, evidence: [beta]}\n"
                               "  - {id: c3, cause: gpu.ecc, title: t, evidence: [gamma 1]}\n"
                               "  - {id: c4, cause: gpu.ecc, title: t, evidence: [gamma 7]}\n";
static const char corpus_2[] = "incidents:\n"
                               "  - {id: c1, cause: gpu.ecc, title: t, evidence: [alpha]}\n"
                               "  - {id: c2, cause: gpu.ecc, title: new, evidence: [beta]}\n"
                               "  - {id: c5, cause: gpu.ecc, title: t, evidence: [delta]}\n";

static void an_update_of_the_corpus_spares_people(void **state)
{
    struct fixture *x = *state;
    struct fl_store_import o = {.corpus = true};
    struct fl_store_imported n = {0};
    struct fl_incident inc;
    fl_buf ids;
    struct fl_store_filter all = FL_STORE_ALL;
    fl_err err = {0};

    must(fl_store_import_text(x->s, fl_str_c(corpus_1), "one.yaml", &o, &n, &err));
    assert_int_equal(n.read, 4);
    assert_int_equal(n.added, 3);
    assert_int_equal(n.duplicates, 1);
    assert_int_equal(get(x, "c3").count, 1);
    must(fl_store_import_text(x->s, fl_str_c(corpus_1), "one.yaml", &o, &n, &err));
    assert_int_equal(n.same, 3);
    assert_int_equal(get(x, "c3").count, 1);
    add(x, "mine", "net.dns", "mine");
    inc = get(x, "c1");
    inc.cause = FL_S("gpu.off_bus");
    inc.origin = FL_ORIGIN_CORRECTED;
    must(fl_store_update(x->s, &inc, NULL, &err));
    must(fl_store_import_text(x->s, fl_str_c(corpus_2), "two.yaml", &o, &n, &err));
    assert_int_equal(n.kept, 1);
    assert_int_equal(n.replaced, 1);
    assert_int_equal(n.added, 1);
    assert_int_equal(n.removed, 1);
    same_text(get(x, "c1").cause, FL_S("gpu.off_bus"), "a corrected cause");
    same_text(get(x, "c2").title, FL_S("new"), "a new title");
    fl_buf_init(&ids, 65536);
    must(fl_store_list(x->s, &all, ids_of, &ids, &err));
    assert_string_equal(ids.p, "c1 c2 c5 mine");
    fl_buf_dispose(&ids);
}

static void imports_are_whole(void **state)
{
    struct fixture *x = *state;
    struct fl_store_import o = {.clash = FL_CLASH_FAIL};
    struct fl_store_imported n = {.read = 77};
    struct fl_store_counts c = {0};
    fl_err err = {0};

    must_fail(fl_store_import_text(
                  x->s, FL_S("incidents:\n- {id: a, cause: c, evidence: [p]}\n- {id: b}\n"),
                  "x.yaml", &o, &n, &err),
              FL_ERULE, "x.yaml:3: incident 'b' has no cause");
    assert_int_equal(n.read, 77);
    must(fl_store_count(x->s, &c, &err));
    assert_int_equal(c.incidents, 0);
    add(x, "c2", "gpu.ecc", "mine");
    must_fail(fl_store_import_text(x->s, fl_str_c(corpus_1), "one.yaml", &o, &n, &err), FL_EUSAGE,
              "one.yaml:3: incident 'c2' is there already with another text");
    must(fl_store_count(x->s, &c, &err));
    assert_int_equal(c.incidents, 1);
    o.clash = FL_CLASH_KEEP;
    must(fl_store_import_text(x->s, fl_str_c(corpus_1), "one.yaml", &o, &n, &err));
    assert_int_equal(n.kept, 1);
    same_text(get(x, "c2").evidence[0], FL_S("mine"), "kept evidence");
    assert_int_equal(get(x, "c3").count, 2);
    o.clash = FL_CLASH_REPLACE;
    must(fl_store_import_text(x->s, fl_str_c(corpus_1), "one.yaml", &o, &n, &err));
    assert_int_equal(n.replaced, 1);
    same_text(get(x, "c2").evidence[0], FL_S("beta"), "replaced evidence");
    must_fail(fl_store_import(x->s, "/nowhere", &o, &n, &err), FL_EINPUT, "/nowhere");
}

static void exports_come_back(void **state)
{
    struct fixture *x = *state, other = {.now = 0};
    struct fl_store_import o = {.clash = FL_CLASH_FAIL};
    struct fl_store_imported n = {0};
    fl_buf first, second;
    fl_err err = {0};

    for (size_t i = 0; i < COUNT(hostile); i++) {
        fl_str lines[] = {hostile[i], FL_S("x")};
        struct fl_incident inc = incident("", i % 2 ? "gpu.ecc" : "no", lines);
        inc.title = inc.fix = hostile[i];
        inc.nevidence = 2;
        inc.kind = (enum fl_incident_kind)(i % 3);
        inc.origin = (enum fl_incident_origin)(i % 4);
        inc.count = i;
        x->now += 1000;
        must(fl_store_add(x->s, &inc, NULL, &err));
    }
    export_all(x->s, &first);
    folder_make(&other.f);
    open_again(&other);
    must(fl_store_import_text(other.s, fl_buf_str(&first), "out.yaml", &o, &n, &err));
    assert_int_equal(n.added, n.read);
    assert_true(n.read > 30);
    export_all(other.s, &second);
    same_text(fl_buf_str(&second), fl_buf_str(&first), "the second export");
    must(fl_store_import_text(other.s, fl_buf_str(&first), "out.yaml", &o, &n, &err));
    assert_int_equal(n.same, n.read);
    fl_buf_dispose(&second);
    export_all(other.s, &second);
    same_text(fl_buf_str(&second), fl_buf_str(&first), "the third export");
    must_be_whole(other.s);
    fl_store_close(other.s);
    folder_remove(&other.f);
    fl_buf_dispose(&first);
    fl_buf_dispose(&second);
}

static void locks_hold(void **state)
{
    struct fixture *x = *state;
    struct fl_store_lock a = {-1, false}, b = {-1, false}, c = {-1, false};
    char path[100];
    fl_err err = {0};

    snprintf(path, sizeof(path), "%s/gen", x->f.dir);
    must_fail(fl_store_lock(path, false, false, &a, &err), FL_ENOTFOUND, "cannot be opened");
    must(fl_store_lock(path, true, false, &a, &err));
    must_fail(fl_store_lock(path, true, false, &b, &err), FL_EBACKEND, "in use by another process");
    must_fail(fl_store_lock(path, false, false, &b, &err), FL_EBACKEND, "in use");
    fl_store_unlock(&a);
    must(fl_store_lock(path, false, false, &a, &err));
    must(fl_store_lock(path, false, true, &b, &err));
    must_fail(fl_store_lock(path, true, false, &c, &err), FL_EBACKEND, "in use");
    fl_store_unlock(&a);
    fl_store_unlock(&b);
    must(fl_store_lock(path, true, true, &c, &err));
    fl_store_unlock(&c);
    fl_store_unlock(&c);
    fl_store_unlock(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each(what_is_added_comes_back),
        each(duplicates_are_counted),
        each(ids_are_one_of_a_kind),
        each(updates_are_whole),
        each(a_correction_may_join_two),
        each(removal_leaves_nothing),
        each(lists_are_filtered),
        each(transactions_are_whole),
        each(facts_are_kept),
        each(an_update_of_the_corpus_spares_people),
        each(imports_are_whole),
        each(exports_come_back),
        each(locks_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
