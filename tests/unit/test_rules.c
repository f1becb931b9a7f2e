/*
 * rules: loading, what is refused and how it is said, folders, lint, the shipped taxonomy and
 * policy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "rules/rules.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const char taxonomy[] = "groups:\n"
                               "  fallout: [net.*, fw.hang]\n"
                               "causes:\n"
                               "  - id: gpu.ecc\n"
                               "    class: infrastructure\n"
                               "    title: Memory error\n"
                               "    precedence: 90\n"
                               "    explains: [fallout, gpu.*]\n"
                               "    action: cordon_and_restart\n"
                               "    advice: Take it out.\n"
                               "  - id: gpu.nvlink\n"
                               "    class: infrastructure\n"
                               "    title: Link\n"
                               "    action: cordon_and_restart\n"
                               "  - {id: net.nccl_timeout, class: infrastructure, title: T, "
                               "action: investigate, last_resort: true}\n"
                               "  - {id: net.dns, class: infrastructure, title: T, action: "
                               "wait_and_retry, explains: net.*}\n"
                               "  - {id: fw.hang, class: framework, title: T, action: restart, "
                               "gives_way: true, timeline: true}\n"
                               "  - {id: sched.cancelled, class: '-', title: T, action: none, "
                               "bystander: true}\n";

static const char rule_full[] = "rules:\n"
                                "  - id: z-last\n"
                                "    cause: fw.hang\n"
                                "    role: symptom\n"
                                "    maturity: test\n"
                                "    match: 'stuck for (?P<seconds>\\d+) s'\n"
                                "  - id: gpu-ecc-1\n"
                                "    cause: gpu.ecc\n"
                                "    role: root\n"
                                "    maturity: stable\n"
                                "    match:\n"
                                "      - 'uncorrectable ECC on (?P<gpu>\\S+)'\n"
                                "      - 'Xid \\(PCI:(?P<gpu>[0-9a-f:.]+)\\): (?:48|94|95)\\b'\n"
                                "    not: [test run, '(?<=a)b']\n"
                                "    anchored: true\n"
                                "    icase: true\n"
                                "    strength: 95\n"
                                "    frame: library\n"
                                "    phase: running\n"
                                "    blame: peer\n"
                                "    class: framework\n"
                                "    action: reset_gpu\n"
                                "    summary: 'GPU {gpu} has a memory error.'\n"
                                "    source: a manual\n"
                                "    hits:\n"
                                "      - uncorrectable ECC on 0000:3b\n"
                                "      - |-\n"
                                "        two\n"
                                "        lines\n"
                                "    misses: [correctable ECC on x]\n"
                                "  - id: old\n"
                                "    maturity: retired\n"
                                "  - {id: draft-1, cause: net.dns, role: confirm, maturity: draft, "
                                "match: abc}\n";

static struct fl_ruleset *parse(const char *t, const char *p, const char *r)
{
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};

    if (fl_ruleset_parse(fl_str_c(t), fl_str_c(p), fl_str_c(r), &rs, &err))
        fail_msg("fl_ruleset_parse: %s", err.msg);
    return rs;
}

static void a_rule_has_all_its_fields(void **state)
{
    (void)state;
    struct fl_ruleset *rs = parse(taxonomy, "", rule_full);
    const struct fl_rule *r = fl_ruleset_rule(rs, FL_S("gpu-ecc-1"));
    const struct fl_rule *z = fl_ruleset_rule(rs, FL_S("z-last"));

    assert_non_null(r);
    assert_non_null(z);
    assert_int_equal(rs->nrules, 4);
    assert_string_equal(rs->rules[0].id, "draft-1");
    assert_string_equal(r->file, "rules.yaml");
    assert_int_equal(r->line, 7);
    assert_string_equal(rs->causes[r->cause].id, "gpu.ecc");
    assert_int_equal(r->role, FL_ROLE_ROOT);
    assert_int_equal(r->maturity, FL_STABLE);
    assert_int_equal(r->class, FL_CLASS_FRAMEWORK);
    assert_int_equal(r->frame, FL_FRAME_LIBRARY);
    assert_int_equal(r->phase, FL_WHEN_RUNNING);
    assert_int_equal(r->blame, FL_BLAME_PEER);
    assert_int_equal(r->strength, 95);
    assert_string_equal(r->action, "reset_gpu");
    assert_string_equal(r->summary, "GPU {gpu} has a memory error.");
    assert_string_equal(r->source, "a manual");
    assert_int_equal(r->npatterns, 2);
    assert_int_equal(rs->patterns[r->pattern + 1].id, r - rs->rules);
    assert_true(rs->patterns[r->pattern].icase && rs->patterns[r->pattern].anchored);
    assert_string_equal(rs->patterns[r->pattern + 1].where, "rules.yaml:13");
    assert_int_equal(r->nnots, 2);
    assert_true(fl_str_eqz(r->not_text[1], "(?<=a)b"));
    assert_int_equal(r->nhits, 2);
    assert_true(fl_str_eqz(r->hits[1], "two\nlines"));
    assert_int_equal(r->hit_lines[0], 26);
    assert_int_equal(r->nmisses, 1);
    assert_int_equal(r->miss_lines[0], 30);
    assert_int_equal(z->strength, 40);
    assert_null(z->action);
    assert_null(z->summary);
    assert_int_equal(z->class, FL_CLASS_NONE);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("old"))->maturity, FL_RETIRED);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("old"))->npatterns, 0);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("draft-1"))->npatterns, 1);
    assert_int_equal(rs->npatterns, 4);
    assert_null(fl_ruleset_rule(rs, FL_S("nothing")));
    fl_ruleset_free(rs);
}

static bool explains(const struct fl_ruleset *rs, const char *a, const char *b)
{
    int x = fl_ruleset_cause(rs, fl_str_c(a)), y = fl_ruleset_cause(rs, fl_str_c(b));

    if (x < 0 || y < 0)
        fail_msg("%s or %s is not a cause", a, b);
    return fl_cause_explains(&rs->causes[x], (uint16_t)y);
}

static void causes_explain_groups_but_not_themselves(void **state)
{
    (void)state;
    struct fl_ruleset *rs = parse(taxonomy, "", "");

    assert_int_equal(rs->ncauses, 8); /* two are built in */
    assert_true(explains(rs, "gpu.ecc", "gpu.nvlink"));
    assert_true(explains(rs, "gpu.ecc", "net.dns"));
    assert_true(explains(rs, "gpu.ecc", "fw.hang"));
    assert_false(explains(rs, "gpu.ecc", "gpu.ecc"));
    assert_false(explains(rs, "gpu.ecc", "sched.cancelled"));
    assert_true(explains(rs, "net.dns", "net.nccl_timeout"));
    assert_false(explains(rs, "net.dns", "net.dns"));
    assert_false(explains(rs, "fw.hang", "net.dns"));
    assert_string_equal(rs->causes[rs->unknown].action, "investigate");
    assert_string_equal(rs->causes[rs->none].id, "none");
    assert_true(rs->causes[fl_ruleset_cause(rs, FL_S("net.nccl_timeout"))].last_resort);
    assert_true(rs->causes[fl_ruleset_cause(rs, FL_S("fw.hang"))].gives_way);
    assert_true(rs->causes[fl_ruleset_cause(rs, FL_S("sched.cancelled"))].bystander);
    fl_ruleset_free(rs);
    rs = parse("", "", "");
    assert_int_equal(rs->ncauses, 2);
    fl_ruleset_free(rs);
}

#define RULE "rules:\n  - id: a\n    cause: gpu.ecc\n    role: root\n    maturity: test\n"
#define CAUSE "causes:\n  - id: a.b\n    class: script\n    title: t\n    action: none\n"

static const struct {
    int where; /* 0 taxonomy, 1 policy, 2 rules */
    const char *text, *says;
} wrong[] = {
    {2, RULE "    match: x\n    macth: y\n",
     "rules.yaml:7: unknown key 'macth'; did you mean 'match'?"},
    {2, "rulez: []\n", "rules.yaml:1: unknown key 'rulez'; did you mean 'rules'?"},
    {2, "rules: x\n", "rules.yaml:1: 'rules' must be a list"},
    {2, "rules:\n  - x\n", "rules.yaml:2: a map (key: value) is expected here"},
    {2, "- x\n", "rules.yaml:1: a map (key: value) is expected here"},
    {2, RULE, "rules.yaml:2: 'match:' is missing here; add it"},
    {2, RULE "    match: []\n", "rules.yaml:6: 'match' has no pattern; add one"},
    {2, RULE "    match: ['']\n", "rules.yaml:6: an empty text in 'match'"},
    {2, RULE "    match: [a: b]\n", "rules.yaml:6: 'match' must hold texts"},
    {2, RULE "    match: x\n    not: ['a', '(b']\n",
     "rules.yaml:7: the pattern is wrong at position 2: missing closing parenthesis"},
    {2, RULE "    match: x\n    strength: 101\n",
     "rules.yaml:7: 'strength' must be a whole number from 0 to 100"},
    {2, RULE "    match: x\n    strength: hi\n", "rules.yaml:7: 'strength' must be a number"},
    {2, RULE "    match: x\n    anchored: yes\n",
     "rules.yaml:7: 'anchored' is 'yes' but must be one of: false, true"},
    {2, RULE "    match: x\n    action: reboot\n",
     "rules.yaml:7: 'action' is 'reboot' but must be one of: restart, wait_and_retry"},
    {2, RULE "    match: x\n    class: '-'\n", "rules.yaml:7: 'class' is '-' but must be"},
    {2, RULE "    match: x\n    frame: mine\n", "rules.yaml:7: 'frame' is 'mine'"},
    {2, RULE "    match: x\n    phase: late\n", "rules.yaml:7: 'phase' is 'late'"},
    {2, RULE "    match: x\n    blame: all\n", "rules.yaml:7: 'blame' is 'all'"},
    {2, RULE "    match: x\n    hits: {a: b}\n", "rules.yaml:7: 'hits' must be a list"},
    {2, RULE "    match: x\n    summary: ''\n", "rules.yaml:7: 'summary' is empty"},
    {2,
     RULE "    match: x\n"
          "  - id: a\n    maturity: retired\n",
     "rules.yaml:7: rule 'a' stands already in rules.yaml:2; ids are unique"},
    {2, "rules:\n  - cause: gpu.ecc\n", "rules.yaml:2: 'id:' is missing here"},
    {2, "rules:\n  - id: a\n", "rules.yaml:2: 'maturity:' is missing here"},
    {2, "rules:\n  - id: A_b\n    maturity: test\n",
     "rules.yaml:2: rule id 'A_b' must be lower-case words joined by '-'"},
    {2, "rules:\n  - id: a\n    maturity: new\n", "rules.yaml:3: 'maturity' is 'new'"},
    {2, "rules:\n  - {id: a, maturity: test, cause: gpu.eccc, role: root, match: x}\n",
     "rules.yaml:2: cause 'gpu.eccc' is not in taxonomy.yaml; did you mean 'gpu.ecc'?"},
    {2, "rules:\n  - {id: a, maturity: test, cause: gpu.ecc, role: rot, match: x}\n",
     "rules.yaml:2: 'role' is 'rot' but must be one of: root, symptom"},
    {2, "rules:\n  - {id: a, maturity: test, cause: [x], role: root, match: x}\n",
     "rules.yaml:2: one cause id is expected here"},
    {2, "rules:\n  - id: &x a\n", "rules.yaml:2:"},
    {2, "rules:\n\t- id\n", "rules.yaml:2: not valid YAML"},
    {0, CAUSE "    titel: x\n", "taxonomy.yaml:6: unknown key 'titel'; did you mean 'title'?"},
    {0, CAUSE "  - {id: a.b, class: script, title: t, action: none}\n",
     "taxonomy.yaml:6: cause 'a.b' stands already in taxonomy.yaml:2"},
    {0, CAUSE "    explains: [c.*]\n",
     "taxonomy.yaml:6: cause 'c.*' is not in taxonomy.yaml; did you mean 'a.b'?"},
    {0, CAUSE "    explains: [a.c]\n", "taxonomy.yaml:6: cause 'a.c' is not in taxonomy.yaml"},
    {0, CAUSE "    explains: {a: b}\n", "taxonomy.yaml:6: a cause id, 'area.*' or a group"},
    {0, CAUSE "    precedence: -1\n", "taxonomy.yaml:6: 'precedence' must be a whole number"},
    {0, CAUSE "    precedence: nan\n", "taxonomy.yaml:6: 'precedence' must be a whole number"},
    {0, CAUSE "groups: [a]\n", "taxonomy.yaml:6: 'groups' must be a map"},
    {0, CAUSE "    explains: g\ngroups: {g: [g]}\n", "taxonomy.yaml:7: a cause id"},
    {0, "causes:\n  - {id: A.b, class: script, title: t, action: none}\n",
     "taxonomy.yaml:2: cause id 'A.b' must look like area.cause"},
    {0, "causes:\n  - {id: a.b, class: no, title: t, action: none}\n",
     "taxonomy.yaml:2: 'class' is 'no' but must be one of: -, infrastructure"},
    {0, "causes:\n  - {id: a.b, class: script, title: t}\n",
     "taxonomy.yaml:2: 'action:' is missing here"},
    {1, "policy:\n  - cause: gpu.ecc\n", "policy.yaml:2: 'action:' is missing here"},
    {1, "policy:\n  - {action: restart, hosts: few}\n",
     "policy.yaml:2: 'hosts' is 'few' but must be one of: none, one, some, many"},
    {1, "policy:\n  - {action: restart, repeats: 0.5}\n",
     "policy.yaml:2: 'repeats' must be a whole number from 0 to 1000"},
    {1, "policy:\n  - {action: restart, cause: [gpu.ecc, x.y]}\n",
     "policy.yaml:2: cause 'x.y' is not in taxonomy.yaml"},
    {1, "policy:\n  - {action: restart, when: now}\n", "policy.yaml:2: unknown key 'when'"},
};

static void wrong_files_are_refused_with_their_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct fl_ruleset *rs = NULL;
        fl_err err = {0};
        int r = fl_ruleset_parse(fl_str_c(wrong[i].where == 0 ? wrong[i].text : taxonomy),
                                 fl_str_c(wrong[i].where == 1 ? wrong[i].text : ""),
                                 fl_str_c(wrong[i].where == 2 ? wrong[i].text : ""), &rs, &err);
        assert_null(rs);
        if (r != FL_ERULE || strncmp(err.msg, wrong[i].says, strlen(wrong[i].says)) != 0)
            fail_msg("row %zu: got %d '%s', wanted '%s'", i, r, err.msg, wrong[i].says);
    }
}

static void policy_rows_keep_their_order(void **state)
{
    (void)state;
    struct fl_ruleset *rs = parse(taxonomy,
                                  "policy:\n"
                                  "  - {cause: [gpu.*, fw.hang], hosts: many, repeats: 2, "
                                  "action: investigate, advice: look}\n"
                                  "  - {class: infrastructure, phase: startup, hosts: none, "
                                  "action: fix_config}\n"
                                  "  - {cause: fallout, hosts: one, action: restart}\n"
                                  "  - {hosts: some, action: none}\n",
                                  "");
    const struct fl_policy_row *p = rs->policy;

    assert_int_equal(rs->npolicy, 4);
    assert_int_equal(p[0].ncauses, 3);
    assert_string_equal(rs->causes[p[0].causes[2]].id, "fw.hang");
    assert_int_equal(p[0].hosts_min, 2);
    assert_int_equal(p[0].hosts_max, -1);
    assert_int_equal(p[0].repeats_min, 2);
    assert_string_equal(p[0].advice, "look");
    assert_null(p[1].causes);
    assert_int_equal(p[1].class, FL_CLASS_INFRASTRUCTURE);
    assert_int_equal(p[1].phase, FL_WHEN_STARTUP);
    assert_int_equal(p[1].hosts_max, 0);
    assert_int_equal(p[2].ncauses, 3);
    assert_int_equal(p[2].hosts_min, 1);
    assert_int_equal(p[2].hosts_max, 1);
    assert_int_equal(p[3].hosts_min, 1);
    assert_int_equal(p[3].hosts_max, -1);
    assert_int_equal(p[3].line, 5);
    fl_ruleset_free(rs);
}

static void actions_have_their_decision(void **state)
{
    (void)state;
    static const struct fl_action rows[] = {
        {"restart", "restart", 0},
        {"wait_and_retry", "restart", 0},
        {"cordon_and_restart", "restart_elsewhere", 10},
        {"reset_gpu", "test_first", 11},
        {"rollback_and_skip", "roll_back", 12},
        {"investigate", "ask", 20},
        {"fix_code", "stop", 93},
        {"fix_config", "stop", 93},
        {"free_space", "stop", 93},
        {"raise_limit", "stop", 93},
        {"none", "none", 94},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct fl_action *a = fl_action_find(rows[i].id);
        assert_non_null(a);
        assert_string_equal(a->decision, rows[i].decision);
        assert_int_equal(a->exit_code, rows[i].exit_code);
    }
    assert_null(fl_action_find("reboot"));
    assert_null(fl_action_find(NULL));
}

/* Folders on disk: DIR/1 and DIR/2. */
static char dir[64];

static void write_file(const char *name, const char *text)
{
    char path[200];
    fl_err err = {0};
    char *slash;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(fl_file_mkdirs(path, &err), 0);
    *slash = '/';
    if (fl_file_write_atomic(path, fl_str_c(text), &err))
        fail_msg("%s", err.msg);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/fl-rules-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[100];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

static int load(size_t n, struct fl_ruleset **rs, fl_err *err)
{
    char one[100], two[100];
    const char *dirs[] = {one, two};

    snprintf(one, sizeof(one), "%s/1", dir);
    snprintf(two, sizeof(two), "%s/2", dir);
    return fl_ruleset_load(dirs, n, rs, err);
}

#define ROW(id, cause, more)                                                                       \
    "rules:\n  - {id: " id ", cause: " cause ", role: root, maturity: stable, match: x" more "}\n"

static void folders_add_and_retire(void **state)
{
    (void)state;
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};
    char version[33], says[300];

    write_file("1/taxonomy.yaml", taxonomy);
    write_file("1/policy.yaml", "policy:\n  - action: restart\n");
    write_file("1/failures/b/deep.yaml", ROW("one", "gpu.ecc", ""));
    write_file("1/failures/a.yaml", ROW("two", "net.dns", ""));
    write_file("1/failures/notes.txt", "not a rule");
    write_file("1/failures/.a.yaml.swp", "not a rule");
    write_file("2/taxonomy.yaml", "causes:\n  - {id: site.own, class: script, title: t, action: "
                                  "none, explains: fallout}\n");
    write_file("2/policy.yaml", "policy:\n  - {cause: site.own, action: none}\n");
    write_file("2/failures/x.yaml",
               ROW("three", "site.own", "") "  - {id: one, maturity: retired}\n");
    if (load(1, &rs, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(rs->nrules, 2);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("one"))->maturity, FL_STABLE);
    memcpy(version, rs->version, sizeof(version));
    assert_int_equal(strlen(version), 32);
    fl_ruleset_free(rs);

    if (load(2, &rs, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(rs->nrules, 3);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("one"))->maturity, FL_RETIRED);
    assert_int_equal(fl_ruleset_rule(rs, FL_S("one"))->npatterns, 0);
    assert_int_equal(rs->npatterns, 2);
    assert_true(explains(rs, "site.own", "net.dns"));
    assert_int_equal(rs->npolicy, 2);
    assert_string_equal(rs->policy[0].action, "none");
    assert_string_not_equal(rs->version, version);
    fl_ruleset_free(rs);

    rs = NULL;
    write_file("2/failures/x.yaml", ROW("one", "gpu.ecc", ""));
    assert_int_equal(load(2, &rs, &err), FL_ERULE);
    assert_null(rs);
    snprintf(says, sizeof(says),
             "%s/2/failures/x.yaml:2: rule 'one' belongs to %s/1/failures/b/deep.yaml:2; retire",
             dir, dir);
    if (strncmp(err.msg, says, strlen(says)) != 0)
        fail_msg("got '%s', wanted '%s'", err.msg, says);
    write_file("2/failures/x.yaml", "rules:\n  - {id: two, maturity: test, maturity: test}\n");
    assert_int_equal(load(2, &rs, &err), FL_ERULE);
    assert_non_null(strstr(err.msg, "2/failures/x.yaml:2: key 'maturity' stands here twice"));
}

static void missing_folders_are_told(void **state)
{
    (void)state;
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};

    assert_int_equal(load(1, &rs, &err), FL_EINPUT);
    assert_non_null(strstr(err.msg, "/1: the rule folder is not there"));
    write_file("1/policy.yaml", "");
    assert_int_equal(load(1, &rs, &err), FL_ERULE);
    assert_non_null(strstr(err.msg, "no taxonomy.yaml with causes"));
    assert_null(rs);
}

static void gather(void *ctx, const char *text)
{
    fl_buf_addz(ctx, text);
    fl_buf_addc(ctx, '\n');
}

static void lint_finds_each_fault(void **state)
{
    (void)state;
    static const char rules[] =
        "rules:\n"
        "  - {id: bare, cause: gpu.ecc, role: root, maturity: test, match: 'a(?=b)'}\n"
        "  - id: full\n"
        "    cause: gpu.nvlink\n"
        "    role: root\n"
        "    maturity: test\n"
        "    match: ['^aab', '(?:a+)+b', 'z*']\n"
        "    summary: 'is {gpu} here'\n"
        "    source: s\n"
        "    hits: [aaaab]\n"
        "    misses: [c]\n"
        "  - {id: wrong, cause: net.dns, role: confirm, maturity: test, match: '(x', source: s, "
        "hits: [x], misses: [y], summary: '{open'}\n"
        "  - {id: gone, maturity: retired}\n"
        "  - {id: draft, cause: fw.hang, role: root, maturity: draft, match: q, source: s, hits: "
        "[q], misses: [y]}\n";
    static const char *const wanted[] = {
        "rules.yaml:2: rule 'bare' has no example; add one under hits:\n",
        "rules.yaml:2: rule 'bare' has no near-miss; add one under misses:\n",
        "rules.yaml:2: rule 'bare' has no source; say where the wording is from\n",
        "rules.yaml:2: rule 'bare': Vectorscan and ripgrep read this pattern differently",
        "rules.yaml:3: rule 'full': no pattern has the group {gpu} of the summary\n",
        "rules.yaml:7: rule 'full': no '^' in a pattern; write 'anchored: true': ^aab\n",
        "rules.yaml:7: the pattern backtracks: more than ",
        "rules.yaml:7: rule 'full': the pattern matches an empty line: z*\n",
        "rules.yaml:12: rule 'wrong': the summary has a '{' without '}'\n",
        "rules.yaml:12: the pattern is wrong at position 2: missing closing parenthesis: (x\n",
        "taxonomy.yaml:15: cause 'net.nccl_timeout' has no root or symptom rule\n",
        "taxonomy.yaml:16: cause 'net.dns' has no root or symptom rule\n",
        "taxonomy.yaml:18: cause 'sched.cancelled' has no root or symptom rule\n",
    };
    struct fl_ruleset *rs = parse(taxonomy, "", rules);
    fl_err err = {0};
    fl_buf b;
    int n;

    fl_buf_init(&b, 1 << 20);
    n = fl_ruleset_lint(rs, gather, &b, &err);
    for (size_t i = 0; i < COUNT(wanted); i++)
        if (!b.p || !strstr(b.p, wanted[i]))
            fail_msg("not found: %s\nin: %s", wanted[i], b.p ? b.p : "");
    if (n != (int)COUNT(wanted))
        fail_msg("%d findings, not %zu: %s", n, COUNT(wanted), b.p);
    fl_buf_dispose(&b);
    fl_ruleset_free(rs);
}

/* The shipped files, without the failure rules, which others write and `rules test` checks. */
static struct fl_ruleset *shipped(void)
{
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};
    fl_buf t, p;

    fl_buf_init(&t, 1 << 20);
    fl_buf_init(&p, 1 << 20);
    assert_int_equal(fl_file_read(FL_SOURCE_DIR "/rules/taxonomy.yaml", &t, &err), 0);
    assert_int_equal(fl_file_read(FL_SOURCE_DIR "/rules/policy.yaml", &p, &err), 0);
    if (fl_ruleset_parse(fl_buf_str(&t), fl_buf_str(&p), FL_S(""), &rs, &err))
        fail_msg("%s", err.msg);
    fl_buf_dispose(&t);
    fl_buf_dispose(&p);
    return rs;
}

static void shipped_taxonomy_is_the_table(void **state)
{
    (void)state;
    struct fl_ruleset *rs = shipped();
    fl_err err = {0};
    fl_buf ids;
    fl_str rest;
    size_t n = 0;

    fl_buf_init(&ids, 1 << 20);
    assert_int_equal(fl_file_read(FL_TEST_DATA "/cause-ids.txt", &ids, &err), 0);
    rest = fl_buf_str(&ids);
    while (rest.n) {
        fl_str class = fl_str_cut(&rest, '\n'), id = fl_str_cut(&class, ' ');
        int at = fl_ruleset_cause(rs, id);
        if (at < 0 || !fl_str_eqz(class, fl_class_word(rs->causes[at].class)))
            fail_msg("%.*s must be in taxonomy.yaml with class %.*s", FL_FMT(id), FL_FMT(class));
        if (!rs->causes[at].advice)
            fail_msg("%.*s has no advice", FL_FMT(id));
        n++;
    }
    if (n != rs->ncauses)
        fail_msg("taxonomy.yaml has %zu causes, the table has %zu", rs->ncauses, n);
    fl_buf_dispose(&ids);
    fl_ruleset_free(rs);
}

static void shipped_taxonomy_keeps_the_order_of_evidence(void **state)
{
    (void)state;
    struct fl_ruleset *rs = shipped();

    /* The table's own words on who gives way. */
    for (size_t i = 0; i < rs->ncauses; i++) {
        const struct fl_cause *c = &rs->causes[i];
        bool last = !strcmp(c->id, "net.nccl_timeout") || !strcmp(c->id, "net.nccl_remote");
        bool way = !strcmp(c->id, "fw.hang") || !strcmp(c->id, "fw.runtime") ||
                   !strcmp(c->id, "fw.native_crash") || !strcmp(c->id, "fw.dataloader_killed");
        if (c->last_resort != last || c->gives_way != way)
            fail_msg("%s: last_resort or gives_way is wrong", c->id);
        if (explains(rs, "unknown", c->id) || explains(rs, "none", c->id))
            fail_msg("no cause may explain %s", c->id);
    }
    /* A burst's order, strongest first; and what follows does not explain what it follows. */
    static const char *const order[] = {"node.memory",  "node.pcie",          "gpu.off_bus",
                                        "gpu.ecc",      "gpu.nvlink",         "gpu.gsp",
                                        "gpu.hardware", "gpu.illegal_access", "net.nccl_timeout"};
    for (size_t i = 1; i < COUNT(order); i++) {
        const struct fl_cause *a = &rs->causes[fl_ruleset_cause(rs, fl_str_c(order[i - 1]))];
        const struct fl_cause *b = &rs->causes[fl_ruleset_cause(rs, fl_str_c(order[i]))];
        if (a->precedence <= b->precedence)
            fail_msg("%s must stand before %s", a->id, b->id);
        if (explains(rs, b->id, a->id) && strcmp(b->id, "gpu.illegal_access") != 0)
            fail_msg("%s must not explain %s", b->id, a->id);
        if (!explains(rs, a->id, "net.nccl_timeout") && i + 1 < COUNT(order))
            fail_msg("%s must explain net.nccl_timeout", a->id);
    }
    fl_ruleset_free(rs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_has_all_its_fields),
        cmocka_unit_test(causes_explain_groups_but_not_themselves),
        cmocka_unit_test(wrong_files_are_refused_with_their_line),
        cmocka_unit_test(policy_rows_keep_their_order),
        cmocka_unit_test(actions_have_their_decision),
        cmocka_unit_test_setup_teardown(folders_add_and_retire, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(missing_folders_are_told, make_dir, remove_dir),
        cmocka_unit_test(lint_finds_each_fault),
        cmocka_unit_test(shipped_taxonomy_is_the_table),
        cmocka_unit_test(shipped_taxonomy_keeps_the_order_of_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
