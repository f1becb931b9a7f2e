/*
 * Any text as a log, through the whole diagnosis: tracebacks of interleaved ranks above all, and
 * with them marks, events, arbitration and the report, which must be valid on its own terms.
 *
 * The way in is the public one, a file, so that what is found here can happen to a user. The engine
 * is opened once, with some of the shipped rules (CMake links them together) and PCRE2 alone:
 * compiling all of them for Vectorscan took most of the time there is.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faultline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[] = "/tmp/fl-fuzz-traceback-XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

static fl_engine *engine(void)
{
    static fl_engine *e;
    static const char *const dirs[] = {FL_FUZZ_RULES};
    struct fl_engine_opts opts = {.rule_dirs = dirs, .nrule_dirs = 1, .pcre2_only = true};
    fl_err err;
    int fd;

    if (e)
        return e;
    if (fl_engine_open(&opts, &e, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    fd = mkstemp(path);
    if (fd < 0)
        abort();
    close(fd);
    atexit(remove_file);
    return e;
}

static void check(const struct fl_report *r)
{
    char *json = NULL;
    fl_err err;

    if (!r->outcome || !r->cause.id || !r->action.decision)
        abort();
    if (!(r->cause.confidence >= 0 && r->cause.confidence <= 1))
        abort();
    if (strcmp(r->outcome, "diagnosed") == 0 && r->nevidence == 0)
        abort();
    for (size_t i = 0; i < r->nevidence; i++) {
        const struct fl_evidence *e = &r->evidence[i];
        if (!e->text || !e->at.file || e->at.line == 0 ||
            (size_t)e->match_at + e->match_len > strlen(e->text))
            abort();
    }
    if (fl_report_json(r, false, &json, &err) || json[0] != '{')
        abort();
    fl_text_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    const char *paths[] = {path};
    fl_engine *e = engine();
    fl_diagnosis *d = NULL;
    FILE *f = fopen(path, "wb");
    fl_err err;

    if (!f || fwrite(data, 1, n, f) != n || fclose(f))
        abort();
    opts.paths = paths;
    opts.npaths = 1;
    opts.threads = 1;
    if (fl_diagnose(e, &opts, &d, &err) == 0)
        check(fl_diagnosis_report(d));
    else if (d)
        abort();
    fl_diagnosis_free(d);
    return 0;
}
