/*
 * embed_lines: this room on standard input and output, for the training scripts and for looking.
 *
 *   embed_lines count TOKENS          each line's number of pieces, TAB, the line
 *   embed_lines pieces TOKENS         each line's pieces as ids
 *   embed_lines seal FILE OUT         FILE with its seal, as OUT
 *   embed_lines hash FILE             the hash in a file's seal, 16 hex digits
 *
 * The scripts do not normalise or cut text themselves: what is trained is what is run. It refuses
 * to be more than that; a line is what stands between two newlines, and memory is one line's.
 */
#define _POSIX_C_SOURCE 200809L
#include "embed/seal.h"
#include "embed/tokens.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { IDS = 4096, FILE_MAX = 64 << 20 };

static int put_count(const fl_tokenizer *t, fl_str line, fl_err *err)
{
    (void)err;
    printf("%zu\t%.*s\n", fl_tokenizer_count(t, line), FL_FMT(line));
    return 0;
}

static int put_pieces(const fl_tokenizer *t, fl_str line, fl_err *err)
{
    uint32_t ids[IDS];
    size_t n;
    int rc = fl_tokenizer_pieces(t, line, ids, IDS, &n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        printf(i ? " %" PRIu32 : "%" PRIu32, ids[i]);
    putchar('\n');
    return 0;
}

static int each_line(int (*put)(const fl_tokenizer *, fl_str, fl_err *), const fl_tokenizer *t,
                     fl_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;
    while (!rc && (n = getline(&line, &cap, stdin)) >= 0) {
        if (n && line[n - 1] == '\n')
            n--;
        rc = put(t, fl_str_n(line, (size_t)n), err);
    }
    free(line);
    return rc;
}

static int with_tokens(const char *path, int (*put)(const fl_tokenizer *, fl_str, fl_err *),
                       fl_err *err)
{
    fl_tokenizer *t = NULL;
    int rc = fl_tokenizer_open(path, &t, err);
    if (!rc)
        rc = each_line(put, t, err);
    fl_tokenizer_free(t);
    return rc;
}

static int seal(const char *path, const char *out, fl_err *err)
{
    fl_buf b;
    int rc;
    fl_buf_init(&b, FILE_MAX);
    rc = fl_file_read(path, &b, err);
    if (!rc) {
        fl_seal_add(&b);
        rc = fl_buf_check(&b, path, err);
    }
    if (!rc)
        rc = fl_file_write_atomic(out, fl_buf_str(&b), err);
    fl_buf_dispose(&b);
    return rc;
}

static int hash(const char *path, fl_err *err)
{
    fl_buf b;
    uint64_t h;
    int rc;
    fl_buf_init(&b, FILE_MAX);
    rc = fl_file_read(path, &b, err);
    if (!rc && fl_seal_check(fl_buf_str(&b), &h))
        rc = fl_fail(err, FL_EINPUT, "%s: no seal, or one of other bytes", path);
    if (!rc)
        printf("%016" PRIx64 "\n", h);
    fl_buf_dispose(&b);
    return rc;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    fl_err err;
    int rc;
    if (argc == 3 && !strcmp(verb, "count"))
        rc = with_tokens(argv[2], put_count, &err);
    else if (argc == 3 && !strcmp(verb, "pieces"))
        rc = with_tokens(argv[2], put_pieces, &err);
    else if (argc == 4 && !strcmp(verb, "seal"))
        rc = seal(argv[2], argv[3], &err);
    else if (argc == 3 && !strcmp(verb, "hash"))
        rc = hash(argv[2], &err);
    else
        rc = fl_fail(&err, FL_EUSAGE, "usage: embed_lines count|pieces|seal|hash FILE [OUT]");
    if (rc)
        fprintf(stderr, "embed_lines: %s\n", err.msg);
    return rc ? 2 : 0;
}
