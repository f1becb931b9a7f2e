/*
 * The index in the memory: used where there are many vectors, never trusted when it does not fit,
 * and no answer depends on it.
 */
#include "memory_fixture.h"

#include "diagnose/memory.h"

#define MANY 2100 /* incidents of four vectors: more than FL_INDEX_FROM */

static void finds(struct home *h, uint32_t i, bool by_index)
{
    char line[80], id[32];
    size_t place;

    snprintf(id, sizeof(id), "gen-%u", i);
    place = home_place(h, made_line(i, line), id);
    if (place != 1)
        fail_msg("%s is at place %zu of the search for '%s'", id, place, line);
    if (by_index != (h->m->local.index != NULL))
        fail_msg("%s: %s", by_index ? "the index is not used" : "the index is used",
                 fl_memory_note(h->m) ? fl_memory_note(h->m) : "no reason told");
}

#ifdef FL_HAVE_FAISS
static void path_of_index(struct home *h, char out[4400])
{
    fl_space_index_path(h->m, &h->m->local, fl_space_generation(h->m, &h->m->local), out, 4400);
}

static struct fl_reindexed reindex(struct home *h, bool full)
{
    struct fl_reindex_opts o = {.full = full};
    struct fl_reindexed n;
    fl_err err = {0};

    must(fl_memory_reindex(h->m, &o, &n, &err));
    return n;
}

static void few_vectors_are_compared_one_by_one(void **state)
{
    struct home h;

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, 100);
    assert_int_equal(reindex(&h, false).vectors, 400);
    home_open(&h, false);
    finds(&h, 7, false);
    assert_null(fl_memory_note(h.m));
    home_drop(&h);
}

static void many_are_found_by_the_index_and_new_ones_beside_it(void **state)
{
    struct fl_reindexed n;
    struct home h;
    fl_err err = {0};
    char line[80];

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, MANY);
    finds(&h, 7, false);
    assert_null(fl_memory_note(h.m)); /* there was none to use */
    n = reindex(&h, false);
    assert_int_equal(n.vectors, 4 * MANY);
    assert_false(n.carried_over);
    home_open(&h, false);
    finds(&h, 7, true);
    finds(&h, MANY - 1, true);
    home_generate(&h, MANY, MANY + 20); /* at noon */
    finds(&h, MANY + 3, true);
    must(fl_memory_remove(h.m, "gen-7", &err));
    assert_int_equal(home_place(&h, made_line(7, line), "gen-7"), 0);
    n = reindex(&h, false);
    assert_true(n.carried_over && !n.unchanged);
    assert_int_equal(n.vectors, 4 * (MANY + 19));
    assert_int_equal(n.removed, 1);
    home_open(&h, false);
    finds(&h, MANY + 3, true);
    assert_int_equal(home_place(&h, made_line(7, line), "gen-7"), 0);
    assert_true(reindex(&h, false).unchanged);
    home_drop(&h);
}

static void spoil(const char *path, int how)
{
    FILE *f;

    if (how == 0 && truncate(path, 5000))
        fail_msg("%s cannot be cut", path);
    if (how == 1 && unlink(path))
        fail_msg("%s cannot be removed", path);
    if (how == 2) {
        f = fopen(path, "r+b");
        if (!f || fseek(f, 100000, SEEK_SET) || fputs("spoilt", f) < 0 || fclose(f))
            fail_msg("%s cannot be spoilt", path);
    }
    if (how == 3) {
        f = fopen(path, "wb");
        if (!f || fputs("this is no index\n", f) < 0 || fclose(f))
            fail_msg("%s cannot be overwritten", path);
    }
    if (how == 4) { /* a good index, of another model */
        char bytes[4096];
        ptrdiff_t at;
        f = fopen(path, "r+b");
        at = fl_str_find(fl_str_n(bytes, f ? fread(bytes, 1, sizeof(bytes), f) : 0),
                         FL_S("static-"));
        if (at < 0 || fseek(f, at, SEEK_SET) || fputs("dynami", f) < 0 || fclose(f))
            fail_msg("%s: no model's name in it", path);
    }
}

static void an_index_that_does_not_fit_is_not_used_and_is_mended(void **state)
{
    static const char *const names[] = {"cut short", "gone", "spoilt inside", "no index at all",
                                        "of another model"};
    struct home h;
    char path[4400];

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, MANY);
    for (int how = 0; how < 5; how++) {
        reindex(&h, how == 0);
        home_open(&h, false);
        finds(&h, 9, true);
        path_of_index(&h, path);
        home_open(&h, false);
        spoil(path, how);
        finds(&h, 9, false);
        const char *note = fl_memory_note(h.m);
        if (!note || !strstr(note, "diagnose reindex"))
            fail_msg("an index %s: '%s'", names[how], note ? note : "nothing is said");
        print_message("an index %s: %s\n", names[how], note);
    }
    reindex(&h, false);
    home_open(&h, false);
    finds(&h, 9, true);
    assert_null(fl_memory_note(h.m));
    home_drop(&h);
}

/* A reader that has the old index open goes on with it. */
static void a_reader_keeps_the_index_that_it_has(void **state)
{
    struct fl_reindexed n;
    struct home reader, other;
    char old[4400];

    (void)state;
    home_make(&reader, false);
    home_generate(&reader, 0, MANY);
    reindex(&reader, false);
    home_open(&reader, false);
    finds(&reader, 3, true);
    path_of_index(&reader, old);
    other = (struct home){.e = reader.e};
    snprintf(other.dir, sizeof(other.dir), "%s", reader.dir);
    snprintf(other.data, sizeof(other.data), "%s", reader.data);
    home_open(&other, false);
    home_generate(&other, MANY, MANY + 10);
    n = reindex(&other, false);
    assert_int_equal(n.in_use, 1);
    assert_true(fl_file_exists(old));
    finds(&reader, 3, true);
    fl_memory_free(reader.m);
    reader.m = NULL;
    n = reindex(&other, false);
    assert_int_equal(n.removed, 1);
    assert_false(fl_file_exists(old));
    fl_memory_free(other.m);
    home_drop(&reader);
}
#else
static void without_faiss_all_is_found_and_reindex_says_so(void **state)
{
    struct fl_reindexed n;
    struct home h;
    fl_err err = {0};

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, MANY);
    must_fail(fl_memory_reindex(h.m, NULL, &n, &err), FL_ERROR_BACKEND, "FAISS");
    home_open(&h, false);
    finds(&h, 7, false);
    home_drop(&h);
}
#endif

/* Vectors that are not of the model's size are left out, told, and made anew in full. */
static void damaged_vectors_are_made_anew(void **state)
{
    struct home h;
    char cmd[400];

    (void)state;
    home_make(&h, false);
    home_generate(&h, 0, 50);
    fl_memory_free(h.m);
    h.m = NULL;
    snprintf(cmd, sizeof(cmd),
             "python3 -c 'import sqlite3; d = sqlite3.connect(\"%s/incidents.db\"); "
             "d.execute(\"update vector set data = substr(data, 1, 100) where number %% 7 = 0\"); "
             "d.commit()'",
             h.data);
    assert_int_equal(system(cmd), 0);
    home_open(&h, false);
    finds(&h, 3, false);
    assert_non_null(fl_memory_note(h.m));
#ifdef FL_HAVE_FAISS
    struct fl_reindexed n = reindex(&h, false);
    assert_true(n.damaged > 0);
    n = reindex(&h, true);
    assert_int_equal(n.damaged, 0);
    assert_int_equal(n.vectors, 200);
    home_open(&h, false);
    finds(&h, 3, false);
    assert_null(fl_memory_note(h.m));
#endif
    home_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef FL_HAVE_FAISS
        cmocka_unit_test(few_vectors_are_compared_one_by_one),
        cmocka_unit_test(many_are_found_by_the_index_and_new_ones_beside_it),
        cmocka_unit_test(an_index_that_does_not_fit_is_not_used_and_is_mended),
        cmocka_unit_test(a_reader_keeps_the_index_that_it_has),
#else
        cmocka_unit_test(without_faiss_all_is_found_and_reindex_says_so),
#endif
        cmocka_unit_test(damaged_vectors_are_made_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
