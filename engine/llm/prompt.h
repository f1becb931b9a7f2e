#ifndef FL_LLM_PROMPT_H
#define FL_LLM_PROMPT_H
/*
 * Prompts are files: front matter between two lines of "---", then text in two parts, which lines
 * "[system]" and "[user]" begin. {{name}} stands for an input. Front matter, as YAML:
 *   id             as the file is called, without .md
 *   version        a number that goes up when the text changes
 *   inputs         the names that the text uses, each of them and no other
 *   output_schema  a JSON Schema: a file beside the prompt, or the JSON itself; absent: free text
 *   token_budget   what a rendered prompt may have at most
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "llm/verdict.h"

struct fl_prompt {
    const char *path, *id, *schema_name;
    unsigned version, token_budget;
    const char *const *inputs;
    size_t ninputs;
    fl_str system, user; /* with placeholders; either may be empty */
    fl_str schema;       /* JSON text with "$causes" and "$actions"; empty: free text */
    char hash[33];       /* of the file and its schema */
};

struct fl_prompt_value {
    const char *name;
    fl_str text; /* put in as it is: what it holds is never a placeholder */
};

/* Loads and lints: an input that is not used, a placeholder that is no input, a schema that is not
 * one are errors with file and line. Everything lives in the arena. */
int fl_prompt_load(const char *path, fl_arena *arena, struct fl_prompt *out, fl_err *err);
/* Loads every *.md of the folder but README.md. Each fault is a line in `report`; *faults counts
 * them, *n the prompts. Fails only when the folder cannot be read or memory runs out. */
int fl_prompt_lint(const char *dir, fl_buf *report, size_t *n, size_t *faults, fl_err *err);

/* Counts tokens; NULL where one is taken: four bytes count as one. */
typedef size_t (*fl_prompt_count)(void *ctx, fl_str text);

/*
 * Appends the two parts with every input put in. Each input must be given exactly once, and no
 * other. FL_ELIMIT when it has more tokens than its budget; *tokens (may be NULL) is set then too.
 */
int fl_prompt_render(const struct fl_prompt *p, const struct fl_prompt_value *values, size_t n,
                     fl_prompt_count count, void *ctx, fl_buf *system, fl_buf *user, size_t *tokens,
                     fl_err *err);
/* The schema with the terms' causes and actions in their places; appends nothing when the prompt
 * asks for free text. */
int fl_prompt_schema(const struct fl_prompt *p, const struct fl_llm_terms *terms, fl_buf *out,
                     fl_err *err);
/* The causes as the prompts show them: under each class its ids, with a few words. */
void fl_prompt_causes(const struct fl_llm_terms *terms, fl_buf *out);
/* The actions, parted by commas. */
void fl_prompt_actions(const struct fl_llm_terms *terms, fl_buf *out);
/* A mark for fencing `content` that does not occur in it and that nobody who does not know the seed
 * can foresee: "LOG-" and 16 hex digits. */
void fl_prompt_fence(uint64_t seed, fl_str content, char out[24]);

#endif
