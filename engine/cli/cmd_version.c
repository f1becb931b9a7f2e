/*
 * `diagnose version`: what is running, and with which rules. For bug reports.
 */
#include "cli.h"

#include <stdio.h>

static void row(const struct out *o, const char *name, const char *text)
{
    fprintf(o->f, "%-10s", name);
    out_text(o, OUT_PLAIN, text);
    fputc('\n', o->f);
}

int cmd_version(const struct cli_args *args)
{
    struct cli_session s;
    struct out o;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK) {
        out_init(&o, stdout, s.color, args->width);
        row(&o, "diagnose", fl_version());
        row(&o, "scanner", fl_engine_scanner(s.engine));
        row(&o, "rules", fl_engine_rules_version(s.engine));
        row(&o, "data", s.data_dir);
        if (fl_engine_cache_note(s.engine))
            row(&o, "cache", fl_engine_cache_note(s.engine));
    }
    cli_session_dispose(&s);
    return status;
}
