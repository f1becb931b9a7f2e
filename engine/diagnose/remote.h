#ifndef FL_DIAGNOSE_REMOTE_H
#define FL_DIAGNOSE_REMOTE_H
/*
 * The second provider of vectors: an endpoint that speaks OpenAI's /v1/embeddings.
 *
 * What it is sent is redacted and normalised. It is asked by a reindex for what has no vector of
 * its model, and by a search for the pieces of a job, and never while a memory is opened.
 */
#include "diagnose/ask.h"
#include "diagnose/memory.h"

/* `memory.embedding` of the configuration. */
struct fl_embedding_config {
    struct fl_llm_endpoint endpoint;
    const struct fl_ask_config *llm; /* what to redact, and for whom not */
};
/* Reads the map: the keys of an endpoint, of which `url` and `model` are needed.
 * Everything in the arena. */
int fl_embedding_config_read(const fl_yaml *map, const struct fl_ask_config *llm, fl_arena *a,
                             struct fl_embedding_config *out, fl_err *err);

/* Nothing is sent yet. *out is NULL when no endpoint is configured or it must not be asked. */
int fl_remote_open(struct fl_memory *m, const struct fl_memory_opts *o, struct fl_remote **out,
                   fl_err *err);
void fl_remote_free(struct fl_remote *x);
struct fl_space *fl_remote_space(struct fl_remote *x);
/* Its address, for people. */
const char *fl_remote_name(const struct fl_remote *x);
/* Whether a reindex has given all incidents vectors of this model; those that came later have none
 * yet. */
bool fl_remote_ready(struct fl_memory *m);

/* Vectors of the pieces, one after the other, in the arena. A piece of which nothing is left to
 * send has the zero vector. */
int fl_remote_pieces(struct fl_memory *m, const struct fl_pieces *p, fl_arena *a, float **out,
                     fl_err *err);
/* What a cosine of the endpoint's would be among the local model's: cosines of unlike lines are
 * about 0.85 with one model and about 0.1 with another, and all that follows is set to the local
 * model's. */
double fl_remote_cosine(struct fl_memory *m, double cosine);

/* Gives vectors to what has none, and says what the endpoint's cosines are worth. FL_EBACKEND: the
 * endpoint; what came until then is kept, and the next time goes on from there. With `full` the
 * vectors of a model that answers otherwise than it did are made anew. */
int fl_remote_refresh(struct fl_memory *m, bool full, uint64_t *embedded,
                      int (*told)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                      fl_err *err);

/* Embeds one line, a stored one where there is one, which must have the vector that it had. */
int fl_remote_probe(struct fl_memory *m, unsigned *dim, double *seconds, fl_err *err);

#endif
