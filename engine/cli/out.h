#ifndef FL_CLI_OUT_H
#define FL_CLI_OUT_H
/*
 * Printing for people: width, colour, wrapping, and hostile text made harmless.
 *
 * Everything from a log or a rule file goes through these functions, which escape control bytes
 * with fl_printable(). Nothing here allocates.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct out {
    FILE *f;
    unsigned width; /* columns */
    bool color;
};

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_RED, OUT_GREEN, OUT_YELLOW, OUT_DIM };

#define OUT_GUTTER 8 /* columns of a label in front of its text */

/* Width 0: the terminal's, 80 when there is none. Color: auto, always, never; NULL is auto, which
 * colours a terminal unless NO_COLOR is set or TERM is dumb. */
void out_init(struct out *o, FILE *f, const char *color, unsigned width);
/* The whole text, escaped, in a style. */
void out_text(const struct out *o, enum out_style style, const char *text);
/* A label in the gutter; "" gives blanks. */
void out_label(const struct out *o, const char *label);
/* Words wrapped behind the gutter and the label, at most `max_lines` (0: no limit), the rest cut
 * with "...". Returns the lines printed. */
unsigned out_wrapped(const struct out *o, const char *label, const char *text, unsigned max_lines);
/* A line of a log, escaped, broken at words where it can be: `first` columns, then whole lines
 * behind the gutter, `max_lines` in all. What does not fit is cut with "..." so that the bytes from
 * `at`
 * (`len` of them; 0: unknown) are seen. Returns the lines printed. */
unsigned out_quote(const struct out *o, const char *text, size_t at, size_t len, unsigned first,
                   unsigned max_lines);
/* The start of a text, at most `columns`, with "..." for the rest. No newline. */
void out_cut(const struct out *o, const char *text, unsigned columns);
/* The name without its head when it is longer than `columns`. Returns the columns printed. */
unsigned out_name(const struct out *o, const char *name, unsigned columns);
void out_pad(const struct out *o, unsigned columns);
/* Code points of an escaped text. */
size_t out_columns(const char *text);
/* `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD; NULL gives null. */
void out_json_text(FILE *f, const char *text);

/* A text of limited size built piece by piece; what does not fit is dropped and marked by "...". */
struct out_line {
    char p[1024];
    size_t n;
    bool full;
};
__attribute__((format(printf, 2, 3))) void out_line_add(struct out_line *l, const char *fmt, ...);
/* 0..4, 7 and at most `max` numbers or ranges; sorted input gives the shortest text. */
void out_line_ranges(struct out_line *l, const int32_t *v, size_t n, size_t max);
/* a, b and 3 more */
void out_line_names(struct out_line *l, const char *const *v, size_t n, size_t max);
void out_line_bytes(struct out_line *l, uint64_t bytes); /* 3.1 GB */

#endif
