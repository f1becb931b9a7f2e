#ifndef FL_CLI_OUT_TEXT_H
#define FL_CLI_OUT_TEXT_H
/*
 * A report as text for a person.
 */
#include "faultline.h"
#include "out.h"

/* The answer on one screen: 24 lines of 80 columns, fewer where there is less to say. `verbose`
 * prints everything the report holds instead of cutting. */
void out_report(const struct out *o, const struct fl_report *r, bool verbose);
/* What out_report adds when verbose; in out_more.c. */
void out_report_more(const struct out *o, const struct fl_report *r);
/* What a language model said, with its citations and their marks. Returns the lines printed. */
unsigned out_model(const struct out *o, const struct fl_report *r, bool verbose);
/* Past incidents like it, at most `most`; in out_more.c. Returns the lines printed. */
unsigned out_neighbours(const struct out *o, const struct fl_report *r, size_t most);
/* One line of evidence whole, below what it was taken for; in out_more.c. */
void out_evidence(const struct out *o, const struct fl_evidence *e);
/* "file:line" of a place, at most `columns` wide; returns the columns printed. */
unsigned out_place(const struct out *o, const struct fl_place *at, unsigned columns);

#endif
