/*
 * A healthy log is like no past incident: each log of corpus/healthy is looked up, and what is
 * found above the floor is printed. How many must be silent stands in tests/data/healthy-floor.txt:
 * what was reached, not what is wanted, which is all of them.
 */
#include "memory_fixture.h"

static bool silent(struct home *h, const char *dir, const char *name)
{
    fl_neighbours *n = NULL;
    char path[600];
    fl_err err = {0};
    bool none;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fl_diagnosis *d = home_diagnose(h, path);
    must(fl_search_job(h->m, d, NULL, &n, &err));
    none = fl_neighbours_count(n) == 0;
    for (size_t i = 0; i < fl_neighbours_count(n) && i < 2; i++) {
        const struct fl_neighbour *x = fl_neighbours_get(n, i);
        print_message("%-24s %-20s %.2f %s: %s\n", name, x->cause, x->score, x->incident,
                      x->nmatched ? x->matched[0].text : "");
    }
    fl_neighbours_free(n);
    fl_diagnosis_free(d);
    return none;
}

static void healthy_logs_find_nothing(void **state)
{
    static const char dir[] = FL_SOURCE_DIR "/corpus/healthy";
    const char **names;
    size_t n = 0, logs = 0, quiet = 0;
    uint64_t floor = 0;
    fl_err err = {0};
    struct home h;
    fl_arena a;
    fl_buf b;

    (void)state;
    home_make(&h, true);
    fl_arena_init(&a);
    fl_buf_init(&b, 1u << 16);
    must(fl_file_list(dir, &a, &names, &n, &err));
    for (size_t i = 0; i < n; i++) {
        if (!fl_str_ends(fl_str_c(names[i]), FL_S(".log")))
            continue;
        logs++;
        quiet += silent(&h, dir, names[i]);
    }
    must(fl_file_read(FL_TEST_DATA "/healthy-floor.txt", &b, &err));
    for (fl_str rest = fl_buf_str(&b); rest.n;) {
        fl_str line = fl_str_cut(&rest, '\n');
        if (fl_str_starts(line, FL_S("silent ")) &&
            !fl_str_to_u64(fl_str_trim(fl_str_from(line, 7)), &floor))
            fail_msg("healthy-floor.txt: %.*s", FL_FMT(line));
    }
    print_message("%zu of %zu healthy logs find nothing, floor %llu\n", quiet, logs,
                  (unsigned long long)floor);
    assert_true(logs >= 10);
    assert_true(quiet >= floor);
    fl_buf_dispose(&b);
    fl_arena_dispose(&a);
    home_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(healthy_logs_find_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
