/*
 * Messages on stderr, and the check that the result arrived on stdout.
 *
 * A message may quote a file name or a line of a rule file, so it is escaped as a whole. The
 * result is checked once, when all of it has been written: a full disk or a closed pipe shows at
 * the latest when the last buffer is flushed.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 1, 0))) static void say(const char *fmt, va_list ap)
{
    char raw[1500], shown[6000];

    vsnprintf(raw, sizeof(raw), fmt, ap);
    fl_printable(raw, shown, sizeof(shown));
    fprintf(stderr, "diagnose: %s\n", shown);
}

int cli_fail(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    return status;
}

void cli_note(const struct cli_args *args, const char *fmt, ...)
{
    va_list ap;

    if (args->quiet)
        return;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

int cli_fail_err(const fl_err *err)
{
    int status = CLI_INPUT;

    if (err->code == FL_ERROR_USAGE)
        status = CLI_USAGE;
    else if (err->code == FL_ERROR_BACKEND)
        status = CLI_BACKEND;
    return cli_fail(status, "%s", err->msg);
}

int cli_out_end(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    if (errno)
        return cli_fail(CLI_INPUT, "the result could not be written to stdout: %s",
                        strerror(errno));
    return cli_fail(CLI_INPUT, "the result could not be written to stdout");
}
