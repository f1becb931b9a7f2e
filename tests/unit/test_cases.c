/*
 * The labelled cases of tests/cases, scored by the product itself and held to the floors of
 * tests/data/cases-floor.txt. Each case that is wrong is printed, so that a fall shows where.
 *
 * The floors are what was reached, not what is wanted: raise them when the answers get better.
 */
#include "job_fixture.h"

#define PARTS 5

static const char *const names[PARTS] = {"cause", "class", "action", "place", "evidence"};

struct score {
    unsigned right[PARTS], of[PARTS], false_alarms, errors;
};

static void count(struct score *s, int part, int ok)
{
    if (ok < 0)
        return;
    s->of[part]++;
    s->right[part] += ok > 0;
}

static void take_case(struct score *s, const struct fl_case_result *c)
{
    int ok[PARTS] = {c->cause_ok, c->class_ok, c->action_ok, c->place_ok, c->evidence_ok};
    bool wrong = c->error || c->false_alarm;

    for (int i = 0; i < PARTS; i++) {
        count(s, i, c->error ? 0 : ok[i]);
        wrong |= ok[i] == 0;
    }
    s->false_alarms += c->false_alarm;
    s->errors += c->error != NULL;
    if (!wrong)
        return;
    print_message("%-9s %-24s", c->id, c->expected);
    if (c->error)
        print_message(" error: %s", c->error);
    else if (!c->cause_ok)
        print_message(" got %s (%.2f)", c->got, c->confidence);
    for (int i = 1; i < PARTS && !c->error; i++)
        if (ok[i] == 0)
            print_message("%s %s", i == 1 || ok[0] ? "" : ",", names[i]);
    if (!c->error && !c->action_ok)
        print_message(": %s, not %s", c->action_got, c->action_expected);
    print_message("%s\n", c->false_alarm ? ", FALSE ALARM" : "");
}

static bool above_floor(const struct score *s, fl_str name, double floor)
{
    for (int i = 0; i < PARTS; i++) {
        double got = s->of[i] ? 100.0 * s->right[i] / s->of[i] : 100;
        if (!fl_str_eqz(name, names[i]))
            continue;
        print_message("%-9s %3u of %3u  %5.1f %%  floor %.1f %%\n", names[i], s->right[i], s->of[i],
                      got, floor);
        return got >= floor;
    }
    if (fl_str_eqz(name, "false_alarms"))
        return s->false_alarms <= floor;
    fail_msg("cases-floor.txt: no such part: %.*s", FL_FMT(name));
    return false;
}

static void the_cases_stay_above_the_floors(void **state)
{
    (void)state;
    fl_engine *e = job_engine(NULL, false);
    struct score s = {.errors = 0};
    fl_eval *ev = NULL;
    fl_err err = {0};
    fl_buf b;
    fl_str text;
    unsigned below = 0;

    if (fl_eval_run(e, FL_SOURCE_DIR "/tests/cases", NULL, NULL, &ev, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < fl_eval_cases(ev); i++)
        take_case(&s, fl_eval_case(ev, i));
    fl_buf_init(&b, 1 << 16);
    if (fl_file_read(FL_TEST_DATA "/cases-floor.txt", &b, &err))
        fail_msg("%s", err.msg);
    for (text = fl_buf_str(&b); text.n;) {
        fl_str line = fl_str_cut(&text, '\n'), name = fl_str_cut(&line, ' ');
        double floor = 0;
        if (!name.n || name.p[0] == '#')
            continue;
        if (!fl_str_f64(fl_str_trim(line), &floor))
            fail_msg("cases-floor.txt: %.*s has no number", FL_FMT(name));
        below += !above_floor(&s, name, floor);
    }
    print_message("%zu cases, %u false alarms\n", fl_eval_cases(ev), s.false_alarms);
    assert_true(fl_eval_cases(ev) >= 35);
    assert_int_equal(s.errors, 0);
    assert_int_equal(below, 0);
    fl_buf_dispose(&b);
    fl_eval_free(ev);
    fl_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_cases_stay_above_the_floors)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
