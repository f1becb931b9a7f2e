#ifndef FL_BASE_CACHE_H
#define FL_BASE_CACHE_H
/*
 * Files that spare a program work at its next start, and are never needed.
 *
 * A payload is stored in DIR under a kind and a key of 32 hex digits. Nothing here is an error:
 * what went wrong is written to `note` and the caller does the work itself.
 */
#include "base/buf.h"

struct fl_cache_kind {
    const char *magic;  /* 8 bytes, the first of the file */
    uint32_t format;    /* raised when payloads of one key change their meaning */
    const char *prefix; /* of the names of the files */
    const char *what;   /* in notes: "pattern cache" */
};

/* True when there is a file that may be believed. *payload is then a slice of `file`, which the
 * caller has initialised and disposes of. A missing file leaves no note. */
bool fl_cache_load(const struct fl_cache_kind *kind, const char *dir, const char *key, fl_buf *file,
                   fl_str *payload, char *note, size_t cap);
void fl_cache_store(const struct fl_cache_kind *kind, const char *dir, const char *key,
                    fl_str payload, char *note, size_t cap);

/* Numbers in files: little-endian. */
static inline void fl_put_le(fl_buf *b, uint64_t v, unsigned bytes)
{
    char *at = fl_buf_room(b, bytes);

    for (unsigned i = 0; at && i < bytes; i++)
        at[i] = (char)(v >> (8 * i) & 0xff);
    if (at) {
        b->n += bytes;
        b->p[b->n] = 0;
    }
}
static inline uint64_t fl_get_le(const char *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = bytes; i-- > 0;)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

#endif
