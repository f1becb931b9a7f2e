/*
 * Any bytes as what a server answered and as what a model wrote: an error with a sentence, or a
 * verdict in which every name is a known one and nothing is missing. The reasoning filter gives the
 * same however its text is cut.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/base64.h"
#include "llm/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct fl_llm_cause causes[] = {
    {"gpu.ecc", "infrastructure", "e"}, {"fw.nan", "framework", "n"}, {"unknown", "-", "u"}};
static const char *const actions[] = {"restart", "none"};
static const struct fl_llm_terms terms = {causes, 3, actions, 2};

static void check_verdict(const struct fl_said *v)
{
    bool known = false;

    for (size_t i = 0; i < 3; i++)
        known = known || v->cause == causes[i].id;
    if (!known || !v->class_name || !v->summary || !v->action ||
        !(v->confidence >= 0 && v->confidence <= 1))
        abort();
    if (!v->ncitations && strcmp(v->cause, "unknown") != 0)
        abort();
    for (size_t i = 0; i < v->ncitations; i++)
        if (!v->citations[i].file[0] || !v->citations[i].quote[0] || v->citations[i].line < 1)
            abort();
    for (size_t i = 0; i < v->nalternatives; i++)
        if (!v->alternatives[i].id || !strcmp(v->alternatives[i].id, v->cause))
            abort();
}

static void try_text(fl_str text)
{
    struct fl_said v = {0};
    fl_str object = {NULL, 0};
    fl_err err = {0};
    fl_arena arena;
    fl_buf complaints;
    int r;

    if (fl_llm_extract(text, "cause", &object, &err)) {
        if (object.p || !err.msg[0])
            abort();
        return;
    }
    if (object.p < text.p || object.p + object.n > text.p + text.n || object.p[0] != '{')
        abort();
    fl_arena_init(&arena);
    fl_buf_init(&complaints, 65536);
    r = fl_said_read(object, &terms, &arena, &v, &complaints, &err);
    if (r < 0 || (r > 0 && (!complaints.n || v.cause)))
        abort();
    if (r == 0)
        check_verdict(&v);
    fl_buf_dispose(&complaints);
    fl_arena_dispose(&arena);
}

static int collect(void *ctx, fl_str text)
{
    fl_buf_add(ctx, text);
    return 0;
}

static void unthink(fl_str text, size_t piece, fl_buf *out)
{
    struct fl_llm_unthink u;

    fl_llm_unthink_init(&u, collect, out);
    for (; text.n; text = fl_str_from(text, piece))
        fl_llm_unthink_feed(&u, fl_str_sub(text, 0, piece));
    fl_llm_unthink_end(&u);
}

static void try_unthink(fl_str text)
{
    fl_buf a, b;

    fl_buf_init(&a, 1 << 20);
    fl_buf_init(&b, 1 << 20);
    unthink(text, 1, &a);
    unthink(text, 7, &b);
    if (!fl_str_eq(fl_buf_str(&a), fl_buf_str(&b)))
        abort();
    fl_buf_dispose(&a);
    fl_buf_dispose(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fl_str bytes = {(const char *)data, n};
    struct fl_llm_reading r = {.tokens_in = -1};
    fl_buf text, words;
    fl_err err = {0};

    fl_buf_init(&text, 1 << 20);
    fl_buf_init(&words, 1 << 20);
    r.text = &text;
    if (fl_llm_read_reply(&r, bytes, "s", &err) && !err.msg[0])
        abort();
    if (text.n)
        try_text(fl_buf_str(&text));
    fl_llm_error_words(bytes, &words);
    try_text(bytes);
    try_unthink(bytes);
    fl_buf_clear(&text);
    if (fl_base64_get(bytes, &text)) {
        fl_buf_clear(&words);
        fl_base64_put(fl_buf_str(&text), &words);
        if (words.n != n)
            abort();
    }
    fl_buf_dispose(&text);
    fl_buf_dispose(&words);
    return 0;
}
