/*
 * Seals of model files.
 *
 * The seal is written as a field of protocol buffers: number 1000, 64 bits, little-endian. A
 * SentencePiece model is a message of that kind whose numbers from 200 on are free for others, so a
 * sealed model is still one that SentencePiece's own tools read. The table of rows, which is no
 * such message, ends in the same ten bytes for the sake of one piece of code.
 *
 * XXH3 is no signature: it finds accidents and does not resist somebody who changes a file and
 * seals it again.
 */
#include "embed/seal.h"

#include "base/map.h"

#include "base/alloc.h"

/* (1000 << 3) | 1 as a varint. */
static const unsigned char mark[2] = {0xc1, 0x3e};

int fl_seal_check(fl_str file, uint64_t *hash)
{
    const unsigned char *p;
    uint64_t said = 0;

    if (file.n < FL_SEAL_BYTES)
        return FL_EINPUT;
    p = (const unsigned char *)file.p + file.n - FL_SEAL_BYTES;
    if (memcmp(p, mark, sizeof(mark)))
        return FL_EINPUT;
    for (int i = 0; i < 8; i++)
        said |= (uint64_t)p[sizeof(mark) + i] << (8 * i);
    if (said != fl_hash64(file.p, file.n - FL_SEAL_BYTES, 0))
        return FL_EINPUT;
    *hash = said;
    return 0;
}

void fl_seal_add(fl_buf *file)
{
    uint64_t hash;
    if (!fl_seal_check(fl_buf_str(file), &hash))
        return;
    hash = fl_hash64(file->p, file->n, 0);
    fl_buf_add(file, fl_str_n((const char *)mark, sizeof(mark)));
    for (int i = 0; i < 8; i++)
        fl_buf_addc(file, (char)(hash >> (8 * i)));
}
