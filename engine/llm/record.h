#ifndef FL_LLM_RECORD_H
#define FL_LLM_RECORD_H
/*
 * Recording: what was asked and answered, kept in a folder, and given again without a network.
 *
 * DIR/meta.json   {"schema": "faultline.recording/1", "seed": "16 hex digits", "calls": N}
 * DIR/0001.json   {"schema", "call", "prompt", "request": {"method", "url", "headers", "body"},
 *                  "reply": {"status", "content_type", "retry_after", "tries", "seconds", "body"}}
 *                 or, for a request that got no answer, "failure": {"end", "code", "message"}.
 *                 Bytes that are no UTF-8 stand under "body_base64". A header that holds a key is
 *                 left out.
 */
#include "http/http.h"

/* Wraps `inner` (with its retries: one recording is one answer, not one try). Creates the folder;
 * one that holds a recording already is refused. `seed` is whatever chance the diagnosis uses, for
 * its fences. */
typedef struct fl_llm_recorder fl_llm_recorder;
int fl_llm_record(const char *dir, uint64_t seed, const struct fl_http_transport *inner,
                  fl_llm_recorder **out, fl_err *err);
/* Gives the recorded answers in their order to requests that are the same, byte for byte, as those
 * that were recorded. Another prompt, another body, or one request more is an error that says what
 * changed and what to do. */
int fl_llm_replay(const char *dir, fl_llm_recorder **out, uint64_t *seed, fl_err *err);
const struct fl_http_transport *fl_llm_recorder_transport(const fl_llm_recorder *r);
/* Recorded answers that nobody asked for; 0 when recording. */
unsigned fl_llm_recorder_left(const fl_llm_recorder *r);
void fl_llm_recorder_free(fl_llm_recorder *r);

#endif
