#ifndef FL_LLM_EXTRACT_H
#define FL_LLM_EXTRACT_H
/*
 * The JSON object in what a model wrote.
 */
#include "base/buf.h"
#include "base/err.h"

/*
 * Finds the answer's object in `text`: behind reasoning blocks, inside code fences, between
 * chatter. Of several the last that has the member `key` is taken, else the last one. *out is a
 * part of `text`, and is valid JSON. FL_ENOTFOUND: there is none. FL_ELIMIT: one begins and does
 * not end. The sentence in err is meant for the model.
 */
int fl_llm_extract(fl_str text, const char *key, fl_str *out, fl_err *err);

/* The text without the reasoning blocks it begins with; a block that does not end leaves nothing.
 */
fl_str fl_llm_without_reasoning(fl_str text);

/* The same while the text arrives in pieces, for showing a stream. */
struct fl_llm_unthink {
    char held[32]; /* what may still become a mark */
    size_t nheld;
    int state;
    int (*out)(void *ctx, fl_str text);
    void *ctx;
};
void fl_llm_unthink_init(struct fl_llm_unthink *u, int (*out)(void *ctx, fl_str text), void *ctx);
/* Returns what `out` returned when that was negative, else 0. */
int fl_llm_unthink_feed(struct fl_llm_unthink *u, fl_str piece);
int fl_llm_unthink_end(struct fl_llm_unthink *u);

#endif
