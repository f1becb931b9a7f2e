/*
 * What a hostile log cannot do: make a diagnosis hold more memory the longer it is, or push what
 * ended the job out of it.
 *
 * Each kind of log names something new on every line. It is diagnosed twice, the second time twice
 * as long; both are longer than every limit of job.h, so that the second run must not need more
 * than the first. Counted are the bytes that pass through the allocator hook.
 */
#include "job_fixture.h"

#include "alloc_fixture.h"

#define LINES 140000
#define SLACK (1u << 20)

static const char taxonomy[] =
    "causes:\n"
    "  - {id: gpu.off_bus, class: infrastructure, title: gone, action: cordon_and_restart}\n"
    "  - {id: script.key, class: script, title: key, action: fix_code}\n"
    "  - {id: fw.nan, class: framework, title: nan, action: rollback_and_skip}\n";

static const char failures[] =
    "rules:\n"
    "  - {id: xid, cause: gpu.off_bus, role: root, maturity: stable, blame: self,\n"
    "     match: ['Xid \\(PCI:(?P<gpu>[0-9a-f:]+)\\): 79']}\n"
    "  - {id: key-error, cause: script.key, role: root, maturity: stable, anchored: true,\n"
    "     frame: user, match: ['KeyError: ']}\n";

static void xid(FILE *f, unsigned i)
{
    fprintf(f, "Mar  1 02:03:04 n%u kernel: NVRM: Xid (PCI:%04x:%02x:00): 79, pid=%u\n", i, i >> 8,
            i & 255, i);
}

static void bound(FILE *f, unsigned i)
{
    fprintf(f, "process rank %u is bound to host h%u pid %u local_rank %u\n", i % 1000, i, i + 1,
            i);
}

static void card(FILE *f, unsigned i)
{
    fprintf(f, "|   %u  NVIDIA H100   Off | 0000%04X:%02X:00.0 Off |\n", i & 63, i >> 8, i & 255);
}

static void ended(FILE *f, unsigned i)
{
    fprintf(f, "training completed in %u seconds, its log is below /logs/run-%u/out\n", i, i);
}

static void saved(FILE *f, unsigned i)
{
    fprintf(f, "successfully saved checkpoint at iteration %u to /ckpt/of/the/run/%u\n", i, i);
}

static void frame(FILE *f, unsigned i)
{
    if (i % 1000 == 0)
        fputs("Traceback (most recent call last):\n", f);
    fprintf(f, "  File \"/home/user/train_%u.py\", line %u, in step_%u\n", i, i, i);
}

static void caught(FILE *f, unsigned i)
{
    fprintf(f,
            "Traceback (most recent call last):\n  File \"/home/user/t_%u.py\", line 1, in f_%u\n"
            "ValueError: sample %u is bad\n",
            i, i, i);
}

static void waits(FILE *f, unsigned i)
{
    fprintf(f,
            "[rank%u]: [PG ID 2 PG GUID %u Rank 3] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=%u, OpType=ALLREDUCE) ran for 9000000000000000000 milliseconds\n",
            i, i, i);
}

static void stack(FILE *f, unsigned i)
{
    fprintf(f, "Thread %u (idle): \"MainThread\"\n    step_%u (train_%u.py:%u)\n", i, i, i, i);
}

struct trial {
    char dir[64], path[100];
    fl_engine *engine;
};

static void begin(struct trial *t, void (*line)(FILE *, unsigned), unsigned n)
{
    char rules[100];
    FILE *f;

    job_dir_make(t->dir);
    job_write(t->dir, "rules/taxonomy.yaml", fl_str_c(taxonomy));
    job_write(t->dir, "rules/failures/all.yaml", fl_str_c(failures));
    snprintf(rules, sizeof(rules), "%s/rules", t->dir);
    snprintf(t->path, sizeof(t->path), "%s/job.log", t->dir);
    f = fopen(t->path, "w");
    for (unsigned i = 0; f && i < n; i++)
        line(f, i);
    if (!f || fclose(f))
        fail_msg("%s cannot be written", t->path);
    t->engine = job_engine(rules, true);
}

static void end(struct trial *t)
{
    fl_engine_free(t->engine);
    job_dir_remove(t->dir);
}

static size_t top_of(void (*line)(FILE *, unsigned), unsigned n)
{
    struct bytes b = {0};
    struct trial t;

    begin(&t, line, n);
    fl_alloc_hook(counted_bytes, &b);
    fl_diagnosis_free(job_run(t.engine, t.path));
    fl_alloc_hook(NULL, NULL);
    end(&t);
    return b.top;
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*line)(FILE *, unsigned);
    } rows[] = {{"Xid lines of ever new cards and hosts", xid},
                {"ever new hosts and pids", bound},
                {"ever new cards", card},
                {"words that the job is done", ended},
                {"checkpoints", saved},
                {"frames", frame},
                {"tracebacks", caught},
                {"time-outs of ever new groups", waits},
                {"stack dumps", stack}};
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t once = top_of(rows[i].line, LINES), twice = top_of(rows[i].line, 2 * LINES);
        if (twice <= once + SLACK)
            continue;
        wrong++;
        print_error("%s: %zu KB for %d lines, %zu KB for twice as many\n", rows[i].name, once >> 10,
                    LINES, twice >> 10);
    }
    assert_int_equal(wrong, 0);
}

static void check_last(const char *want, void (*line)(FILE *, unsigned), unsigned n)
{
    struct trial t;
    fl_diagnosis *d;
    const struct fl_report *r;

    begin(&t, line, n);
    d = job_run(t.engine, t.path);
    r = fl_diagnosis_report(d);
    if (strcmp(r->cause.id, want))
        fail_msg("%s (%s), wanted %s", r->cause.id, r->cause.summary, want);
    fl_diagnosis_free(d);
    end(&t);
}

/* More exceptions than are kept, all survived but the last. */
static void exceptions(FILE *f, unsigned i)
{
    if (i < 9000)
        caught(f, i);
    else
        fputs(
            "Traceback (most recent call last):\n  File \"/home/user/train.py\", line 9, in main\n"
            "KeyError: 'lr'\n",
            f);
}

static void the_last_exception_counts(void **state)
{
    (void)state;
    check_last("script.key", exceptions, 9001);
}

/* More points with NaN than are kept, and then a loss again. */
static void losses(FILE *f, unsigned i)
{
    if (i < 20000)
        fprintf(f, "iteration %u/ 40000 | lm loss: nan | grad norm: nan\n", i);
    else
        fprintf(f, "iteration %u/ 40000 | lm loss: 2.%u | grad norm: 1.0\n", i, i % 10);
}

static void the_last_points_count(void **state)
{
    (void)state;
    check_last("none", losses, 20200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_has_a_limit),
                                       cmocka_unit_test(the_last_exception_counts),
                                       cmocka_unit_test(the_last_points_count)};

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
