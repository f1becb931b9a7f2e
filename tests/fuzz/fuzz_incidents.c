/*
 * Any text as a file of incidents: it loads or is refused with a message that names a place; what
 * loads is what may be stored, and comes back the same from what is written of it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "store/incident.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int keep(void *ctx, const struct fl_incident *inc, fl_err *err)
{
    (void)err;
    if (inc->file == NULL || fl_incident_check(inc, true, NULL))
        abort();
    fl_incident_write(inc, NULL, NULL, ctx);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fl_buf once, twice;
    fl_err err = {0};
    int r;

    fl_buf_init(&once, 1u << 26);
    fl_buf_init(&twice, 1u << 26);
    fl_buf_addz(&once, FL_INCIDENTS_HEAD);
    fl_buf_addz(&twice, FL_INCIDENTS_HEAD);
    r = fl_incidents_parse(fl_str_n((const char *)data, n), "f.yaml", keep, &once, &err);
    if (r && (err.code != r || strncmp(err.msg, "f.yaml:", 7) != 0))
        abort();
    if (!r && (once.bad || fl_incidents_parse(fl_buf_str(&once), "once.yaml", keep, &twice, &err) ||
               !fl_str_eq(fl_buf_str(&once), fl_buf_str(&twice))))
        abort();
    fl_buf_dispose(&once);
    fl_buf_dispose(&twice);
    return 0;
}
