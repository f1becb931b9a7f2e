#ifndef FL_CLI_OUT_INCIDENT_H
#define FL_CLI_OUT_INCIDENT_H
/*
 * An incident as text and as JSON, and what one says when there is none of that name.
 */
#include "cli.h"

void out_incident(const struct out *o, const struct fl_past *p);
/* One JSON object without a newline. */
void out_incident_json(FILE *f, const struct fl_past *p);
/* Tells that there is no such incident, and the nearest id. The exit status. */
int cli_no_incident(fl_memory *m, const char *id);
/* CLI_OK, or CLI_USAGE with the nearest known cause. NULL is fine. */
int cli_check_cause(const fl_engine *e, const char *cause);

#endif
