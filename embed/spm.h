#ifndef FL_EMBED_SPM_H
#define FL_EMBED_SPM_H
/*
 * SentencePiece in plain C types. embed/spm.cpp is the only C++ of the project and embed/tokens.c
 * its only user.
 *
 * No exception leaves these functions. Memory of SentencePiece comes from C++'s own allocator.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fl_spm fl_spm;

/* The model in these bytes, which may go when it returns; NULL with a cause in `why`. */
fl_spm *fl_spm_load(const char *bytes, size_t n, char *why, size_t why_size);
void fl_spm_free(fl_spm *m); /* NULL is fine */
/* How many pieces there are; ids are smaller than this. */
size_t fl_spm_size(const fl_spm *m);
/* The pieces of the text: writes the first `cap` ids and says in *n how many there are. 0, or -1
 * with outputs untouched. Any thread may call it. */
int fl_spm_encode(const fl_spm *m, const char *text, size_t len, uint32_t *ids, size_t cap,
                  size_t *n);

#ifdef __cplusplus
}
#endif
#endif
