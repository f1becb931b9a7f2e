/*
 * The answer as text, on reports made by hand: exact screens in tests/data/out_text, and the
 * promises that hold for any report (columns, lines, no control byte). FL_UPDATE=1 in the
 * environment writes the screens anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli.h"
#include "faultline.h"
#include "out.h"
#include "out_text.h"

#define HOSTILE "\033[2J\033]0;x\007 a\tb \302\233 \377\376 \342\200\256 \177 end"

static const struct fl_evidence ecc_lines[] = {
    {.at = {"n12/dmesg.log", 48211},
     .text = "[Mon Mar  2 02:03:04 2026] NVRM: Xid (PCI:0000:3b:00): 94, pid=18122, name=python, "
             "Contained: CE User Channel (0x9). RST: No, D-RST: No",
     .role = "root",
     .cause = "gpu.ecc",
     .rank = 96,
     .host = "n12",
     .gpu = "0000:3b:00",
     .time = "2026-03-02T02:03:04",
     .match_at = 27,
     .match_len = 35},
    {.at = {"a/very/long/path/to/the/logs/of/this/job/job-00012345.log", 48977},
     .text = "[rank7]:[E302 02:13:05.1 ProcessGroupNCCL.cpp:632] [Rank 7] Watchdog caught "
             "collective operation timeout: WorkNCCL(SeqNum=402, OpType=ALLREDUCE)",
     .role = "symptom",
     .cause = "net.nccl_timeout",
     .rank = 7},
    {.at = {"job.log", 3}, .text = HOSTILE, .role = "symptom", .cause = "fw.runtime", .rank = -1},
};
static const int32_t some_ranks[] = {96, 97, 98, 99, 101, 2047};
static const char *const some_hosts[] = {"n12", "n13"};
static const char *const some_gpus[] = {"0000:3b:00"};
static const int32_t some_indices[] = {2};
static const struct fl_follow_on some_follow[] = {
    {"net.nccl_timeout", 2040, 2040, {"job.log", 48977}},
    {"net.nccl_remote", 1, 1, {"job.log", 48990}},
    {"fw.native_crash", 12, 0, {NULL, 0}},
};
static const struct fl_alternative some_leads[] = {
    {"gpu.hardware", "the same card, three minutes later", 0.12},
    {"fw.hang", NULL, 0.03},
};
static const char *const some_reasons[] = {
    "rule gpu-ecc-xid-94 matched n12/dmesg.log:48211",
    "explains 2040 timeouts that began to wait 1.2 s later",
};
static const char *const some_notes[] = {"the step time was steady at 4.1 s"};
static const char *const some_skipped[] = {"core.1812: binary"};
static const struct fl_input_file some_files[] = {
    {"n12/dmesg.log", 3100000, 50000, NULL},
    {"job.log.gz", 3100000000, 1234567, "the gzip stream ends early; what came before was read"},
};
static const struct fl_attempt some_attempts[] = {
    {1, {"job.log", 1}, {"job.log", 400}, NULL},
    {2, {"job.log", 401}, {"job.log", 52011}, "gpu.ecc"},
};

static struct fl_report empty_report(void)
{
    return (struct fl_report){
        .outcome = "unknown",
        .cause = {.id = "unknown", .class_name = "-", .title = "?", .decided_by = "none"},
        .action = {.id = "investigate",
                   .decision = "ask",
                   .resume_step = -1,
                   .skip_from = -1,
                   .skip_to = -1},
        .timeline = {.first_step = -1, .last_step = -1, .last_healthy_step = -1, .total_steps = -1},
        .input = {.ranks_seen = -1, .world_size = -1, .hosts_seen = -1},
        .rules_version = "0123",
        .version = "1.2.3",
        .elapsed_ms = 41};
}

static struct fl_report ecc_report(void)
{
    struct fl_report r = empty_report();

    r.outcome = "diagnosed";
    r.cause.id = "gpu.ecc";
    r.cause.class_name = "infrastructure";
    r.cause.title = "Uncorrectable GPU memory error";
    r.cause.confidence = 0.97;
    r.cause.decided_by = "rule";
    r.cause.rule = "gpu-ecc-xid-94";
    r.cause.summary = "The memory of one GPU on n12 failed in a way that could be contained.";
    r.evidence = ecc_lines;
    r.nevidence = 3;
    r.location.ranks = some_ranks;
    r.location.nranks = 1;
    r.location.hosts = some_hosts;
    r.location.nhosts = 1;
    r.location.gpus = some_gpus;
    r.location.ngpus = 1;
    r.location.gpu_indices = some_indices;
    r.location.ngpu_indices = 1;
    r.follow_on = some_follow;
    r.nfollow_on = 3;
    r.alternatives = some_leads;
    r.nalternatives = 2;
    r.reasons = some_reasons;
    r.nreasons = 2;
    r.action.id = "cordon_and_restart";
    r.action.decision = "restart_elsewhere";
    r.action.exclude_hosts = some_hosts;
    r.action.nexclude_hosts = 2;
    r.action.advice = "Take the node out, then reset the GPU and run its memory test before it "
                      "comes back. Count row remappings.";
    r.action.resume_step = 1200;
    r.action.checkpoint = "/ckpt/step1200";
    r.action.skip_from = 1201;
    r.action.skip_to = 1250;
    r.timeline.phase = "iterating";
    r.timeline.last_step = 1234;
    r.timeline.total_steps = 5000;
    r.timeline.last_progress = (struct fl_place){"job.log", 47800};
    r.timeline.last_progress_time = "2026-03-02T02:03:01";
    r.timeline.notes = some_notes;
    r.timeline.nnotes = 1;
    r.attempts = some_attempts;
    r.nattempts = 2;
    r.input.files = some_files;
    r.input.nfiles = 2;
    r.input.bytes = 3103100000u;
    r.input.lines = 1284567;
    r.input.skipped = some_skipped;
    r.input.nskipped = 1;
    r.input.ranks_seen = 2047;
    r.input.world_size = 2048;
    r.input.hosts_seen = 256;
    r.input.cut_lines = 3;
    return r;
}

static char *print(const struct fl_report *r, unsigned width, const char *color, bool verbose)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct out o = {.f = f, .width = width, .color = strcmp(color, "always") == 0};

    assert_non_null(f);
    out_report(&o, r, verbose);
    fclose(f);
    return text;
}

static void golden(const char *name, const struct fl_report *r, unsigned width, const char *color,
                   bool verbose)
{
    char path[500], *text = print(r, width, color, verbose), *expected;
    size_t n, cap = 1u << 16;
    FILE *f;

    snprintf(path, sizeof(path), "%s/out_text/%s.txt", FL_TEST_DATA, name);
    if (getenv("FL_UPDATE")) {
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
    }
    expected = malloc(cap);
    f = fopen(path, "r");
    if (!f)
        fail_msg("%s is not there", path);
    n = fread(expected, 1, cap - 1, f);
    expected[n] = 0;
    fclose(f);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: expected\n%s\nprinted\n%s", path, expected, text);
    free(expected);
    free(text);
}

static void test_screens(void **state)
{
    struct fl_report r = ecc_report();

    (void)state;
    golden("ecc", &r, 80, "never", false);
    golden("ecc-color", &r, 80, "always", false);
    golden("ecc-verbose", &r, 80, "never", true);
    golden("ecc-narrow", &r, 40, "never", false);
    golden("ecc-wide", &r, 160, "never", false);

    r.cause.confidence = 0.64;
    r.location.nranks = 6;
    r.location.nhosts = 2;
    r.nevidence = 1;
    golden("doubtful", &r, 80, "never", false);

    r = empty_report();
    r.evidence = ecc_lines + 1;
    r.nevidence = 2;
    r.alternatives = some_leads;
    r.nalternatives = 2;
    r.location.hosts = some_hosts;
    r.location.nhosts = 2;
    r.input.ranks_seen = 12;
    r.input.world_size = 64;
    golden("unknown", &r, 80, "never", false);

    r = empty_report();
    r.outcome = "healthy";
    r.cause.id = "none";
    r.cause.confidence = 0.95;
    r.cause.summary = "The job says that it finished.";
    r.action.id = r.action.decision = "none";
    r.timeline.phase = "shutdown";
    r.timeline.last_step = r.timeline.total_steps = 5000;
    r.input.files = some_files;
    r.input.nfiles = 1;
    r.input.lines = 1;
    golden("healthy", &r, 80, "never", false);
}

static void check_screen(const char *text, size_t width, size_t max_lines)
{
    size_t lines = 0;

    for (const char *p = text; *p; lines++) {
        size_t n = strcspn(p, "\n"), columns = 0;

        for (size_t i = 0; i < n; i++) {
            if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
                fail_msg("control byte %02x in: %.*s", (unsigned char)p[i], (int)n, p);
            columns += ((unsigned char)p[i] & 0xC0) != 0x80;
        }
        if (columns > width && !strstr(p, "--exclude="))
            fail_msg("%zu columns of %zu: %.*s", columns, width, (int)n, p);
        p += n + (p[n] == '\n');
    }
    if (lines > max_lines)
        fail_msg("%zu lines of %zu:\n%s", lines, max_lines, text);
}

/* Random bytes in every text, random lengths: the screen keeps its size and holds no control. */
static void test_any_text_fits(void **state)
{
    uint32_t seed = 12345;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct fl_report r = ecc_report();
        struct fl_evidence e[4];
        static char bytes[4][3000];
        unsigned width = 60 + (unsigned)(round % 60);
        char *text;

        for (int i = 0; i < 4; i++) {
            size_t n = (seed >> 8) % (round % 3 ? 300 : 2999);

            for (size_t k = 0; k < n; k++) {
                seed = seed * 1664525u + 1013904223u;
                bytes[i][k] = (char)((seed >> 24) ? (seed >> 24) : 'x');
            }
            bytes[i][n] = 0;
            e[i] = ecc_lines[i % 3];
            e[i].text = bytes[i];
            e[i].match_at = (seed >> 16) % (uint32_t)(n + 1);
            e[i].match_len = (seed >> 10) % 50;
        }
        r.evidence = e;
        r.nevidence = 1 + (size_t)(round % 4);
        r.cause.summary = bytes[1];
        r.action.advice = bytes[2];
        r.action.checkpoint = bytes[3];
        r.cause.confidence = 0.5;
        text = print(&r, width, "never", false);
        check_screen(text, width, 28);
        free(text);
    }
}

static void test_ranges(void **state)
{
    static const struct {
        int32_t v[8];
        size_t n, max;
        const char *text;
    } rows[] = {
        {{0}, 0, 5, ""},
        {{7}, 1, 5, "7"},
        {{0, 1, 2, 3, 7}, 5, 5, "0-3,7"},
        {{0, 2, 4, 6}, 4, 2, "0,2 and 2 more"},
        {{3, 2, 1}, 3, 5, "3,2,1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct out_line l = {.n = 0};

        out_line_ranges(&l, rows[i].v, rows[i].n, rows[i].max);
        assert_string_equal(l.p, rows[i].text);
    }
}

static void test_bytes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"},         {999, "999 bytes"},      {1000, "1.0 KB"},
                {9949, "9.9 KB"},       {9960, "10 KB"},         {999600, "1.0 MB"},
                {3100000000, "3.1 GB"}, {UINT64_MAX, "18447 PB"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct out_line l = {.n = 0};

        out_line_bytes(&l, rows[i].bytes);
        assert_string_equal(l.p, rows[i].text);
    }
}

static void test_line_is_capped(void **state)
{
    struct out_line l = {.n = 0};

    (void)state;
    for (int i = 0; i < 500; i++)
        out_line_add(&l, "host-%d, ", i);
    assert_int_equal(strlen(l.p), sizeof(l.p) - 1);
    assert_string_equal(l.p + l.n - 3, "...");
}

static void test_json_text(void **state)
{
    static const char *const rows[][2] = {
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\t\x7f", "\"\\u000a\\u0009\\u007f\""},
        {"\303\251 \342\200\256", "\"\303\251 \342\200\256\""},
        {"\377\355\240\200\300\200", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\342\200", "\"\\ufffd\\ufffd\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);

        out_json_text(f, rows[i][0]);
        fclose(f);
        assert_string_equal(text, rows[i][1]);
        free(text);
    }
}

static void test_distance(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
        bool near;
    } rows[] = {
        {"json", "json", 0, true},
        {"jsn", "json", 1, true},
        {"jsno", "json", 1, true},
        {"sjon", "json", 1, true},
        {"exit", "exit-decision", 9, true},
        {"frob", "json", 3, false},
        {"", "json", 4, false},
        {"x", "q", 1, false},
        {"verbsoe", "verbose", 1, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t d;

        if (cli_near(rows[i].a, rows[i].b, &d) != rows[i].near || d != rows[i].distance)
            fail_msg("%s, %s: distance %zu, near %d", rows[i].a, rows[i].b, d, !rows[i].near);
    }
}

/* Every row of the table can be found by its name, has help, and no option comes twice. */
static void test_table(void **state)
{
    (void)state;
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        char words[2][40] = {"", ""};
        const char *argv[2] = {words[0], words[1]};
        size_t n = strcspn(c->name, " "), used = 0;
        bool letters[128] = {false};

        snprintf(words[0], sizeof(words[0]), "%.*s", (int)n, c->name);
        snprintf(words[1], sizeof(words[1]), "%s", c->name[n] ? c->name + n + 1 : "");
        assert_ptr_equal(cli_command_find(2, argv, &used), c);
        assert_int_equal(used, c->name[n] ? 2 : 1);
        assert_non_null(c->run);
        if (!c->brief[0] || !c->about[0] || !c->examples[0])
            fail_msg("%s has no help", c->name);
        for (int t = 0; t < 2; t++) {
            for (const struct cli_opt *o = t ? c->common : c->own; o && o->name; o++) {
                if (!o->help[0])
                    fail_msg("%s --%s has no help", c->name, o->name);
                if (o->letter && letters[(int)o->letter])
                    fail_msg("%s has -%c twice", c->name, o->letter);
                letters[(int)o->letter] = true;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_screens),        cmocka_unit_test(test_any_text_fits),
        cmocka_unit_test(test_ranges),         cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_line_is_capped), cmocka_unit_test(test_json_text),
        cmocka_unit_test(test_distance),       cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
