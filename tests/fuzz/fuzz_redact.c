/*
 * Any text: what is redacted comes back byte for byte, alone and after another text of the same
 * conversation, and restoring any text stays within it. The first byte chooses what is known
 * beforehand.
 */
#include <stdint.h>
#include <stdlib.h>

#include "redact/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void there_and_back(fl_redactor *r, fl_str text)
{
    fl_buf out, home;
    fl_err err;

    fl_buf_init(&out, (size_t)64 << 20);
    fl_buf_init(&home, (size_t)64 << 20);
    if (fl_redact(r, text, &out, &err) || fl_restore(r, fl_buf_str(&out), &home, &err) ||
        !fl_str_eq(fl_buf_str(&home), text))
        abort();
    fl_buf_clear(&home);
    if (fl_restore(r, text, &home, &err) && err.code != FL_ELIMIT)
        abort();
    fl_buf_dispose(&out);
    fl_buf_dispose(&home);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const fl_str own = {"ticket-[0-9]+", 13};
    struct fl_redact_opts o = {.patterns = &own, .npatterns = 1};
    fl_str text = {(const char *)data, n}, half;
    uint8_t known = n ? data[0] : 0;
    fl_redactor *r = NULL;
    fl_err err;

    o.max_bytes = known & 1 ? 4096 : 0;
    o.npatterns = known >> 1 & 1;
    if (fl_redactor_new(&o, &r, &err))
        abort();
    half = fl_str_sub(text, 1, n / 2);
    if (known & 4)
        fl_redact_know(r, (enum fl_redact_kind)(known >> 4), fl_str_sub(half, 0, 20), &err);
    if (known & 8)
        fl_redact_know(r, FL_REDACT_HOST, FL_S("gn-c07"), &err);
    if (o.max_bytes == 0) {
        there_and_back(r, half);
        there_and_back(r, text);
    } else { /* what is past the limit does not come back */
        fl_buf out;
        fl_buf_init(&out, (size_t)64 << 20);
        if (fl_redact(r, text, &out, &err))
            abort();
        fl_buf_dispose(&out);
    }
    fl_redactor_free(r);
    return 0;
}
