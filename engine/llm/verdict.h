#ifndef FL_LLM_VERDICT_H
#define FL_LLM_VERDICT_H
/*
 * A model's answer, checked against the reply schema: what it may say, and what is wrong with it.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* What may be named. The caller keeps the strings. */
struct fl_llm_cause {
    const char *id, *class_name, *title;
};
struct fl_llm_terms {
    const struct fl_llm_cause *causes;
    size_t ncauses;
    const char *const *actions;
    size_t nactions;
};

struct fl_said_citation {
    const char *file;
    int64_t line;
    const char *quote;
};
struct fl_said_alternative {
    const char *id, *why;
};
struct fl_said {
    const char *cause, *class_name, *summary, *action;
    double confidence;
    const struct fl_said_citation *citations;
    size_t ncitations; /* at most 20; those behind are dropped */
    const struct fl_said_alternative *alternatives;
    size_t nalternatives; /* known causes other than `cause`, at most 8; the rest is dropped */
};

/*
 * Reads the JSON object `json` (as fl_llm_extract gives it). Returns the number of complaints, each
 * a line appended to `complaints` in words for the model; 0 means that *out is valid, its strings
 * in the arena. Negative: memory ran out, or `json` does not parse. *out is untouched unless 0.
 */
int fl_said_read(fl_str json, const struct fl_llm_terms *terms, fl_arena *arena,
                 struct fl_said *out, fl_buf *complaints, fl_err *err);

#endif
