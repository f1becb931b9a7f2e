/*
 * The tokenizer: a checked model file, and long lines in parts.
 *
 * The model is an ordinary SentencePiece file with one more field at its end, which SentencePiece
 * passes over: XXH3 of all bytes before it. SentencePiece finds a cut file but not a flipped bit in
 * a piece or in its score, and such a model would count and embed a little differently for ever
 * after. The hash is also the model's name: a table of rows fits one tokenizer only.
 *
 * Encoding makes an object of about a hundred bytes for each piece, which for one line of a
 * megabyte would be more memory than all else together. So a line is encoded in parts of at most
 * PART bytes, cut at a blank: the model marks a word by the blank in front of it and adds one in
 * front of the text, so the blank at the cut is left out and the pieces are those of the whole.
 * Only where PART bytes hold no single blank is a word cut, between two UTF-8 characters, and then
 * one piece more may be counted.
 *
 * The number of pieces is not that of GPT-4 or of any model asked later. Digits go in pairs at
 * most, so lines full of times count a little more than with tokenizers that take three digits as
 * one and less than with those that take each alone: 2.3 bytes a piece over the logs of the test
 * cases.
 */
#include "embed/tokens.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "embed/seal.h"
#include "embed/spm.h"

#include "base/alloc.h"

enum { PART = 4096, MODEL_MAX = 16 << 20 };

struct fl_tokenizer {
    fl_spm *spm;
    uint64_t hash;
};

int fl_tokenizer_open(const char *model_path, fl_tokenizer **out, fl_err *err)
{
    fl_buf bytes;
    fl_tokenizer *t = NULL;
    char why[200] = "";
    int rc;

    fl_buf_init(&bytes, MODEL_MAX);
    rc = fl_file_read(model_path, &bytes, err);
    if (rc)
        goto out;
    rc = FL_ENOMEM;
    t = fl_calloc(1, sizeof(*t));
    if (!t) {
        fl_fail_nomem(err);
        goto out;
    }
    rc = fl_seal_check(fl_buf_str(&bytes), &t->hash);
    if (rc) {
        fl_fail(err, rc, "%s: the tokenizer is damaged or cut short; restore it or install again",
                model_path);
        goto out;
    }
    t->spm = fl_spm_load(bytes.p, bytes.n, why, sizeof(why));
    if (!t->spm) {
        rc = fl_fail(err, FL_EINPUT, "%s: SentencePiece does not take this model (%s)", model_path,
                     why);
        goto out;
    }
    *out = t;
    t = NULL;
out:
    fl_tokenizer_free(t);
    fl_buf_dispose(&bytes);
    return rc;
}

void fl_tokenizer_free(fl_tokenizer *t)
{
    if (!t)
        return;
    fl_spm_free(t->spm);
    fl_free(t);
}

/* True where a blank stands alone: cutting there and leaving it out changes no piece. */
static bool lone_blank(fl_str s, size_t i)
{
    return s.p[i] == ' ' && i > 0 && s.p[i - 1] != ' ' && i + 1 < s.n && s.p[i + 1] != ' ';
}

/* The next part of *rest, which becomes what is behind it. */
static fl_str next_part(fl_str *rest)
{
    fl_str all = *rest;
    size_t i;
    if (all.n <= PART) {
        *rest = fl_str_from(all, all.n);
        return all;
    }
    for (i = PART; i > PART / 2; i--)
        if (lone_blank(all, i)) {
            *rest = fl_str_from(all, i + 1);
            return fl_str_sub(all, 0, i);
        }
    for (i = PART; i > PART - 4 && ((unsigned char)all.p[i] & 0xc0) == 0x80;)
        i--;
    *rest = fl_str_from(all, i);
    return fl_str_sub(all, 0, i);
}

size_t fl_tokenizer_count(const fl_tokenizer *t, fl_str text)
{
    size_t total = 0;
    while (text.n) {
        fl_str part = next_part(&text);
        size_t n;
        total += fl_spm_encode(t->spm, part.p, part.n, NULL, 0, &n) ? part.n : n;
    }
    return total;
}

int fl_tokenizer_pieces(const fl_tokenizer *t, fl_str text, uint32_t *ids, size_t cap, size_t *n,
                        fl_err *err)
{
    size_t have = 0;
    while (text.n && have < cap) {
        fl_str part = next_part(&text);
        size_t found;
        if (fl_spm_encode(t->spm, part.p, part.n, ids + have, cap - have, &found))
            return fl_fail(err, FL_EBACKEND, "SentencePiece failed on a text of %zu bytes", part.n);
        have = found < cap - have ? have + found : cap;
    }
    *n = have;
    return 0;
}

size_t fl_tokenizer_size(const fl_tokenizer *t)
{
    return fl_spm_size(t->spm);
}

uint64_t fl_tokenizer_hash(const fl_tokenizer *t)
{
    return t->hash;
}
