#include <faultline.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *log[] = {argc > 1 ? argv[1] : "-"};
    struct fl_diagnose_opts opts = FL_DIAGNOSE_OPTS_INIT;
    struct fl_engine_opts engine_opts = {0};
    fl_engine *engine = NULL;
    fl_diagnosis *diagnosis = NULL;
    fl_err err;
    int status = 1;

    opts.paths = log;
    opts.npaths = 1;
    if (fl_engine_open(&engine_opts, &engine, &err) ||
        fl_diagnose(engine, &opts, &diagnosis, &err)) {
        fprintf(stderr, "%s\n", err.msg);
    } else {
        puts(fl_diagnosis_report(diagnosis)->cause.id);
        status = 0;
    }
    fl_diagnosis_free(diagnosis);
    fl_engine_free(engine);
    return status;
}
