/*
 * Errors: codes, and messages that are safe to print.
 *
 * Messages quote hostile text (file names, rule text, log lines). They are escaped here, once, so
 * that no caller can forget: control bytes become \xNN, and a text that does not fit is cut with
 * "...". Nothing here allocates, so running out of memory can still be reported.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

static void set_text(fl_err *err, const char *raw)
{
    size_t n = fl_text_escape(fl_str_c(raw), err->msg, sizeof(err->msg) - 4);

    if (n < strlen(raw))
        memcpy(err->msg + strlen(err->msg), "...", 4);
}

int fl_fail(fl_err *err, int code, const char *fmt, ...)
{
    char raw[1024];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    err->code = code;
    set_text(err, raw);
    return code;
}

int fl_fail_nomem(fl_err *err)
{
    return fl_fail(err, FL_ENOMEM, "out of memory; free some or diagnose fewer files at once");
}
