/*
 * The border to SentencePiece, which has no C interface: load, encode, free, and nothing else.
 *
 * What it refuses: to let an exception through (the callers are C and would be unwound without
 * releasing what they hold), and to pass a type of the library on. The model is taken from bytes
 * and not from a file, so that the caller reads and checks them; the library itself would accept a
 * model with flipped bits.
 */
#include "embed/spm.h"

#include <sentencepiece_processor.h>

#include <cstdio>
#include <new>
#include <vector>

struct fl_spm {
    sentencepiece::SentencePieceProcessor model;
};

fl_spm *fl_spm_load(const char *bytes, size_t n, char *why, size_t why_size)
{
    fl_spm *m = nullptr;
    try {
        m = new fl_spm;
        const auto status = m->model.LoadFromSerializedProto({bytes, n});
        if (status.ok() && m->model.GetPieceSize() > 0)
            return m;
        std::snprintf(why, why_size, "%s", status.ok() ? "it has no pieces" : status.message());
    } catch (const std::exception &e) {
        std::snprintf(why, why_size, "%s", e.what());
    } catch (...) {
        std::snprintf(why, why_size, "unknown exception");
    }
    fl_spm_free(m);
    return nullptr;
}

void fl_spm_free(fl_spm *m)
{
    delete m;
}

size_t fl_spm_size(const fl_spm *m)
{
    return static_cast<size_t>(m->model.GetPieceSize());
}

int fl_spm_encode(const fl_spm *m, const char *text, size_t len, uint32_t *ids, size_t cap,
                  size_t *n)
{
    try {
        std::vector<int> found;
        if (!m->model.Encode({text, len}, &found).ok())
            return -1;
        for (size_t i = 0; i < found.size() && i < cap; i++)
            ids[i] = static_cast<uint32_t>(found[i]);
        *n = found.size();
        return 0;
    } catch (...) {
        return -1;
    }
}
