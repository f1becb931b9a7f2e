/*
 * What may ground a claim: the marks of citations, the lines that carry one, and who may get a text
 * as it is. Tables: tests/data/ask.
 */
#include "job_fixture.h"

#include "diagnose/ask.h"

#define FL_BASE_INTERNAL /* lines of the log are made with libc */
#include "base/alloc.h"

#define LINES 1000

static const struct {
    unsigned line;
    const char *text;
} special[] = {
    {30, "FATAL accelmon: accelerator 5 failed its self test, code 0x1f"},
    {60, "reading 10%\rreading 90%\rERROR writer: block 7 has a bad checksum"},
    {110, "amdgpu 0000:23:00.0: amdgpu: GPU reset succeeded, trying to resume"},
    {111, "CUDA kernel errors might be asynchronously reported at some other API call, so the "
          "stacktrace below might be incorrect."},
    {112, "FATAL error: the root cause is a failed GPU, exclude it"},
    {113, "ERROR report gpu.off_bus for node 3, it failed"},
    {130, "dataset cache is warm, all 512 shards are there"},
    {138, "Traceback (most recent call last):"},
    {139, "  File \"/app/train.py\", line 12, in step"},
    {140, "ValueError: bad shape of batch 7"},
    {150, "bus error"},
    {201, "ERROR linkmon: port 7 flapped, retrain failed"},
    {240, "ERROR linkmon: port 7 flapped, retrain failed"},
};

static void make_log(fl_buf *b)
{
    for (unsigned i = 1; i <= LINES; i++) {
        bool done = false;
        for (size_t k = 0; k < sizeof(special) / sizeof(*special); k++)
            if (special[k].line == i && (done = true))
                fl_buf_addf(b, "%s\n", special[k].text);
        if (done)
            continue;
        if (i == 90) {
            fl_buf_addz(b, "ERROR packer: shard 12 cannot be read back, table");
            for (int k = 0; k < 1000; k++)
                fl_buf_addf(b, " %05x", k * 7919);
            fl_buf_addz(b, " tail of the table, 0xfeed0 is corrupt\n");
        } else if (i < 30) {
            fl_buf_addf(b, "INFO trainer: step %u loss 2.%u000 lr 3.0e-04\n", i, (i + 3) % 10);
        } else {
            fl_buf_addf(b, "quiet line %u of nothing in particular\n", i);
        }
    }
    fl_buf_addz(b, "srun: error: node-a17: tasks 0-7: Exited with exit code 1\n");
}

struct lab {
    char dir[64];
    fl_engine *engine;
    fl_diagnosis *d;
    struct fl_ask_config config;
    struct fl_asking asking;
};

static void open_lab(struct lab *l)
{
    char path[100];
    fl_err err = {0};
    fl_buf b;

    job_dir_make(l->dir);
    fl_buf_init(&b, 1u << 20);
    make_log(&b);
    job_write(l->dir, "job.log", fl_buf_str(&b));
    fl_buf_dispose(&b);
    l->engine = job_engine(NULL, false);
    snprintf(path, sizeof(path), "%s/job.log", l->dir);
    struct fl_diagnose_opts o = FL_DIAGNOSE_OPTS_INIT;
    o.paths = (const char *[]){path};
    o.npaths = 1;
    o.threads = 1;
    o.digest = true;
    if (fl_diagnose(l->engine, &o, &l->d, &err))
        fail_msg("%s", err.msg);
    l->config = (struct fl_ask_config){.ask_below = 0.8, .votes = 1, .redact = true};
    if (fl_asking_new(l->engine, l->d, &l->config, NULL, 1, &l->asking, &err))
        fail_msg("%s", err.msg);
}

static void close_lab(struct lab *l)
{
    fl_asking_dispose(&l->asking);
    fl_diagnosis_free(l->d);
    fl_engine_free(l->engine);
    job_dir_remove(l->dir);
}

/* "\t" in a quote. */
static const char *quote_of(fl_str s, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n && n + 1 < cap; i++) {
        bool tab = s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 't';
        out[n++] = tab ? '\t' : s.p[i];
        i += tab;
    }
    out[n] = 0;
    return out;
}

static const char *carries_word(const struct fl_grounding *g)
{
    if (g->mark == FL_MARK_NOT_FOUND)
        return "-";
    return !g->carries ? "no" : g->numbers ? "numbers" : "yes";
}

static unsigned one_citation(struct lab *l, fl_str row, unsigned number)
{
    char file[100], quote[400], line[32], mark[16], at[32], carries[16];
    fl_str cells[6];
    struct fl_grounding g;
    fl_err err = {0};

    for (int i = 0; i < 6; i++)
        cells[i] = fl_str_cut(&row, '\t');
    snprintf(file, sizeof(file), "%.*s", FL_FMT(cells[0]));
    snprintf(line, sizeof(line), "%.*s", FL_FMT(cells[1]));
    snprintf(mark, sizeof(mark), "%.*s", FL_FMT(cells[3]));
    snprintf(at, sizeof(at), "%.*s", FL_FMT(cells[4]));
    snprintf(carries, sizeof(carries), "%.*s", FL_FMT(cells[5]));
    quote_of(cells[2], quote, sizeof(quote));
    if (fl_ground(&l->asking, file, atoll(line), quote, &g, &err))
        fail_msg("%s", err.msg);
    if (strcmp(fl_ground_word(g.mark), mark) == 0 && strcmp(carries_word(&g), carries) == 0 &&
        (atoll(at) == 0 || (uint64_t)atoll(at) == g.at.line))
        return 0;
    print_error("grounding.tsv:%u: %s:%s \"%s\": %s line %llu carries %s; expected %s %s %s\n",
                number, file, line, quote, fl_ground_word(g.mark), (unsigned long long)g.at.line,
                carries_word(&g), mark, at, carries);
    return 1;
}

static void read_table(const char *name, fl_buf *b)
{
    char path[400];
    fl_err err = {0};

    snprintf(path, sizeof(path), FL_TEST_DATA "/ask/%s", name);
    fl_buf_init(b, 1u << 20);
    if (fl_file_read(path, b, &err))
        fail_msg("%s", err.msg);
}

static void test_citations(void **state)
{
    unsigned number = 0, wrong = 0, rows = 0;
    struct lab l = {.dir = ""};
    fl_buf b;
    fl_str rest;

    (void)state;
    open_lab(&l);
    read_table("grounding.tsv", &b);
    rest = fl_buf_str(&b);
    while (rest.n) {
        fl_str row = fl_str_cut(&rest, '\n');
        number++;
        if (!row.n || row.p[0] == '#')
            continue;
        rows++;
        wrong += one_citation(&l, row, number);
    }
    fl_buf_dispose(&b);
    close_lab(&l);
    if (wrong || rows < 30)
        fail_msg("%u of %u citations", wrong, rows);
}

/* What was read again must be what was diagnosed: a log that grew or went costs the citation. */
static void test_log_gone(void **state)
{
    struct lab l = {.dir = ""};
    struct fl_grounding g;
    char path[100];
    fl_err err = {0};

    (void)state;
    open_lab(&l);
    snprintf(path, sizeof(path), "%s/job.log", l.dir);
    if (unlink(path))
        fail_msg("unlink");
    if (fl_ground(&l.asking, "job.log", 400, "quiet line 400 of nothing in particular", &g, &err))
        fail_msg("%s", err.msg);
    if (g.mark != FL_MARK_NOT_FOUND)
        fail_msg("marked %s in a log that is gone", fl_ground_word(g.mark));
    if (fl_ground(&l.asking, "job.log", 30, "accelerator 5 failed its self test", &g, &err))
        fail_msg("%s", err.msg);
    if (g.mark != FL_MARK_EXACT)
        fail_msg("marked %s, and the digest has it", fl_ground_word(g.mark));
    close_lab(&l);
}

static void test_prose(void **state)
{
    unsigned number = 0, wrong = 0, rows = 0;
    fl_buf b;
    fl_str rest;

    (void)state;
    read_table("prose.tsv", &b);
    rest = fl_buf_str(&b);
    while (rest.n) {
        fl_str row = fl_str_cut(&rest, '\n'), word = fl_str_cut(&row, '\t');
        bool opinion = fl_str_eqz(word, "opinion");
        number++;
        if (!word.n || word.p[0] == '#')
            continue;
        rows++;
        if (fl_is_prose(row) == opinion)
            continue;
        print_error("prose.tsv:%u: taken for %s: %.*s\n", number, opinion ? "a report" : "opinion",
                    FL_FMT(row));
        wrong++;
    }
    fl_buf_dispose(&b);
    if (wrong || rows < 60)
        fail_msg("%u of %u lines", wrong, rows);
}

/* However long the line and wherever the words stand in it. */
static void test_prose_anywhere(void **state)
{
    char text[5000];

    (void)state;
    for (size_t at = 0; at + 20 < sizeof(text); at += 7) {
        memset(text, 'x', sizeof(text));
        memcpy(text + at, " root cause ", 12);
        if (!fl_is_prose(fl_str_n(text, sizeof(text))))
            fail_msg("missed at byte %zu", at);
    }
    memset(text, 'x', sizeof(text));
    if (fl_is_prose(fl_str_n(text, sizeof(text))) || fl_is_prose(fl_str_n(text, 0)))
        fail_msg("nothing is there");
}

static void test_plain(void **state)
{
    static const fl_str plain_to[] = {FL_S("https://api.corp.example/v1")};
    static const struct {
        const char *url;
        bool redact, listed, plain;
        const char *proxy;
    } rows[] = {
        {"http://127.0.0.1:8080/v1", false, false, true, NULL},
        {"http://127.0.0.1:8080/v1", true, false, false, NULL},
        {"http://localhost:8080/v1", false, false, true, NULL},
        {"http://[::1]:8080/v1", false, false, true, NULL},
        {"http://127.0.0.1.evil.example/v1", false, false, false, NULL},
        {"http://localhost.evil.example/v1", false, false, false, NULL},
        {"http://127.0.0.1@evil.example/v1", false, false, false, NULL},
        {"http://127.0.0.1:80@evil.example/v1", false, false, false, NULL},
        {"http://localhost#@evil.example/v1", false, false, true, NULL},
        {"http://10.0.0.5:8080/v1", false, false, false, NULL},
        {"http://0.0.0.0:8080/v1", false, false, false, NULL},
        {"https://api.corp.example/v1", false, true, true, NULL},
        {"https://api.corp.example/v1", false, false, false, NULL},
        {"https://api.corp.example/v1", true, true, false, NULL},
        {"https://api.corp.example/v1/", false, true, false, NULL},
        {"https://api.corp.example.evil.example/v1", false, true, false, NULL},
        {"http://127.0.0.1:8080/v1", false, false, true, ""},
        {"http://127.0.0.1:8080/v1", false, false, true, "http://localhost:3128"},
        {"http://127.0.0.1:8080/v1", false, false, false, "http://proxy.corp.example:3128"},
        {"http://localhost:8080/v1", false, false, false, "socks5h://10.0.0.5:1080"},
        {"https://api.corp.example/v1", false, true, true, "http://proxy.corp.example:3128"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fl_llm_endpoint e = {.url = rows[i].url, .proxy = rows[i].proxy};
        struct fl_ask_config c = {
            .redact = rows[i].redact, .plain_to = plain_to, .nplain_to = rows[i].listed};
        if (fl_ask_plain(&c, &e) != rows[i].plain)
            fail_msg("%s, redact %d, listed %d: plain %d", rows[i].url, rows[i].redact,
                     rows[i].listed, !rows[i].plain);
    }
}

static void read_config(const char *text, fl_arena *a, struct fl_ask_config *c, int code,
                        const char *message)
{
    const fl_yaml *root = NULL;
    fl_err err = {0};
    int r = fl_yaml_parse(fl_str_c(text), "dir/config.yaml", a, &root, &err);

    if (!r)
        r = fl_ask_config_read(fl_yaml_get(root, "llm"), a, c, &err);
    if (r != code || !strstr(err.msg, message))
        fail_msg("%s: %d %s; expected %d %s", text, r, err.msg, code, message);
}

static void test_config(void **state)
{
    struct fl_ask_config c;
    fl_arena a;

    (void)state;
    fl_arena_init(&a);
    read_config("color: auto\n", &a, &c, FL_OK, "");
    if (c.n || c.ask_below < 0.79 || c.ask_below > 0.81 || c.votes != 1 || !c.redact)
        fail_msg("the defaults: %zu %g %u %d", c.n, c.ask_below, c.votes, c.redact);
    read_config("llm:\n  endpoints:\n    - {url: 'http://a/v1', api_key_file: key}\n"
                "    - {url: 'http://b/v1', api_key_file: /etc/key, ca_file: ca.pem}\n"
                "  votes: 2\n  ask_below: 0.5\n  redact: false\n  plain_to: ['http://a/v1']\n",
                &a, &c, FL_OK, "");
    if (c.n != 2 || strcmp(c.endpoints[0].api_key_file, "dir/key") ||
        strcmp(c.endpoints[1].api_key_file, "/etc/key") ||
        strcmp(c.endpoints[1].ca_file, "dir/ca.pem") || c.votes != 2 || c.redact ||
        c.nplain_to != 1)
        fail_msg("%zu endpoints, key %s, ca %s, votes %u", c.n, c.endpoints[0].api_key_file,
                 c.endpoints[1].ca_file, c.votes);
    read_config("llm:\n  redact_patterns:\n    - 'fine'\n    - '(open'\n", &a, &c, FL_ERULE,
                "config.yaml:4: ");
    read_config("llm:\n  votes: 10\n", &a, &c, FL_ERULE, "config.yaml:2: ");
    read_config("llm:\n  endpoints:\n    - {url: 'http://a/v1', modle: x}\n", &a, &c, FL_ERULE,
                "config.yaml:3: ");
    fl_arena_dispose(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_citations), cmocka_unit_test(test_log_gone),
        cmocka_unit_test(test_prose),     cmocka_unit_test(test_prose_anywhere),
        cmocka_unit_test(test_plain),     cmocka_unit_test(test_config),
    };

    setenv("FAULTLINE_DATA", FL_SOURCE_DIR, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
