/*
 * One expression, compiled by PCRE2.
 *
 * Nine hundred patterns with JIT cost far more than the 100 ms in which a small log must be
 * answered, and one log makes use of a few dozen of them. So a pattern is compiled at its first
 * confirmation. Threads that meet there both compile; one result is published with a compare and
 * exchange, the other is freed: no lock, and no wait for a compilation that another thread does.
 *
 * No UTF mode: log bytes are not UTF-8, and `(*UTF)` in a pattern is refused. LF is the only line
 * end. MULTILINE is on, so that one code serves a line and a block; within a line it changes
 * nothing.
 */
#include "match/code.h"

#include <stdio.h>

#include "base/alloc.h"

/* Bounds of one search, so that no line of a hostile log holds the job: steps of the matcher, KiB
 * of heap for the interpreter, bytes of stack for the JIT. A search that needs more is given up. */
#define MATCH_LIMIT 500000
#define HEAP_LIMIT_KIB 8192
#define JIT_STACK_MIN (32 << 10)
#define JIT_STACK_MAX (1 << 20)
#define OVECTOR_PAIRS 64
#define MAX_PATTERN 16384
#define MAX_FORM (1u << 20)

static void *pcre_malloc(size_t n, void *ctx)
{
    (void)ctx;
    return fl_malloc(n);
}

static void pcre_free(void *p, void *ctx)
{
    (void)ctx;
    fl_free(p);
}

void fl_regex_version(fl_buf *out)
{
    char text[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, text);
    fl_buf_addz(out, text);
}

/* Names in the order of their groups' numbers. */
static void read_names(struct fl_expr *c)
{
    uint32_t count = 0, size = 0;
    PCRE2_SPTR table = NULL;

    pcre2_pattern_info(c->re, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(c->re, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(c->re, PCRE2_INFO_NAMETABLE, &table);
    for (uint32_t i = 0; i < count && c->ngroups < FL_MATCH_CAPS; i++) {
        PCRE2_SPTR row = table + (size_t)i * size;
        unsigned at = c->ngroups++, number = (unsigned)row[0] << 8 | row[1];
        for (; at && c->group[at - 1].number > number; at--)
            c->group[at] = c->group[at - 1];
        c->group[at].number = number;
        c->group[at].name = (const char *)row + 2;
    }
}

static int compile_error(int code, size_t at, fl_str regex, const char *where, fl_err *err)
{
    PCRE2_UCHAR text[160] = "";

    if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
        return fl_fail_nomem(err);
    pcre2_get_error_message(code, text, sizeof(text));
    return fl_fail(err, FL_ERULE, "%s: the pattern is wrong at position %zu: %s: %.*s", where, at,
                   (char *)text, (int)(regex.n < 200 ? regex.n : 200), regex.p ? regex.p : "");
}

int fl_expr_new(fl_str regex, bool icase, bool jit, const char *where, struct fl_expr **out,
                fl_err *err)
{
    const uint32_t options = PCRE2_MULTILINE | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP |
                             PCRE2_NEVER_BACKSLASH_C | (icase ? PCRE2_CASELESS : 0);
    struct fl_expr *c = fl_calloc(1, sizeof(*c));
    pcre2_general_context *general = pcre2_general_context_create(pcre_malloc, pcre_free, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    size_t at = 0;
    int code = 0, r = FL_OK;

    if (!c || !context) {
        r = fl_fail_nomem(err);
        goto done;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(context, MAX_PATTERN);
    c->re =
        pcre2_compile((PCRE2_SPTR)(regex.p ? regex.p : ""), regex.n, options, &code, &at, context);
    if (!c->re) {
        r = compile_error(code, at, regex, where, err);
        goto done;
    }
    /* Where a system forbids writable code pages the interpreter gives the same answers. */
    if (jit)
        pcre2_jit_compile(c->re, PCRE2_JIT_COMPLETE);
    read_names(c);
    *out = c;
    c = NULL;
done:
    fl_expr_free(c);
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return r;
}

void fl_expr_free(struct fl_expr *c)
{
    if (!c)
        return;
    pcre2_code_free(c->re);
    fl_free(c);
}

void fl_lazy_text(const struct fl_lazy *l, fl_buf *out)
{
    fl_buf line;

    if (l->form == FL_FORM_SOURCE) {
        fl_buf_add(out, l->source);
    } else if (l->form == FL_FORM_ONE_LINE) {
        fl_pattern_one_line(l->source, out);
    } else {
        fl_buf_init(&line, out->max);
        fl_pattern_one_line(l->source, &line);
        fl_pattern_relax(fl_buf_str(&line), out);
        if (line.bad)
            out->bad = line.bad;
        fl_buf_dispose(&line);
    }
}

int fl_lazy_compile(const struct fl_lazy *l, bool jit, struct fl_expr **out, fl_err *err)
{
    fl_err problem = {0};
    fl_buf text;
    int r;

    fl_buf_init(&text, MAX_FORM);
    fl_lazy_text(l, &text);
    r = fl_buf_check(&text, "the pattern", &problem);
    if (r == FL_OK)
        r = fl_expr_new(fl_buf_str(&text), l->icase, jit, l->where, out, &problem);
    fl_buf_dispose(&text);
    if (r == FL_ERULE && l->form != FL_FORM_SOURCE)
        return fl_expr_new(l->source, l->icase, jit, l->where, out, err);
    return r ? fl_fail(err, r, "%s", problem.msg) : FL_OK;
}

int fl_lazy_get(struct fl_lazy *l, struct fl_expr **out, fl_err *err)
{
    struct fl_expr *c = atomic_load_explicit(&l->code, memory_order_acquire), *other = NULL;
    int r = FL_OK;

    if (!c) {
        r = fl_lazy_compile(l, l->jit, &c, err);
        if (r == FL_OK && !atomic_compare_exchange_strong(&l->code, &other, c)) {
            fl_expr_free(c);
            c = other;
        }
    }
    if (r == FL_OK)
        *out = c;
    return r;
}

void fl_lazy_dispose(struct fl_lazy *l)
{
    fl_expr_free(atomic_load(&l->code));
    atomic_store(&l->code, NULL);
}

int fl_tools_init(struct fl_tools *t, fl_err *err)
{
    *t = (struct fl_tools){0};
    t->general = pcre2_general_context_create(pcre_malloc, pcre_free, NULL);
    t->context = t->general ? pcre2_match_context_create(t->general) : NULL;
    t->data = t->general ? pcre2_match_data_create(OVECTOR_PAIRS, t->general) : NULL;
    if (!t->context || !t->data) {
        fl_tools_dispose(t);
        return fl_fail_nomem(err);
    }
    pcre2_set_match_limit(t->context, MATCH_LIMIT);
    pcre2_set_heap_limit(t->context, HEAP_LIMIT_KIB);
    /* Without a stack of its own the JIT uses 32 KiB of the machine's. */
    t->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, t->general);
    if (t->stack)
        pcre2_jit_stack_assign(t->context, NULL, t->stack);
    return FL_OK;
}

void fl_tools_dispose(struct fl_tools *t)
{
    pcre2_match_data_free(t->data);
    pcre2_jit_stack_free(t->stack);
    pcre2_match_context_free(t->context);
    pcre2_general_context_free(t->general);
    *t = (struct fl_tools){0};
}

ptrdiff_t fl_expr_search(const struct fl_expr *c, struct fl_tools *t, fl_str text, size_t from,
                         size_t *end)
{
    int rc;

    if (from > text.n)
        return -1;
    rc = pcre2_match(c->re, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, from, 0, t->data,
                     t->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return -1;
    if (rc < 0) {
        t->limited++;
        t->nomem |= rc == PCRE2_ERROR_NOMEMORY;
        return -2;
    }
    if (end)
        *end = pcre2_get_ovector_pointer(t->data)[1];
    /* Not the ovector: with \K it begins later than the match. */
    return (ptrdiff_t)pcre2_get_startchar(t->data);
}

static fl_str group_text(const struct fl_tools *t, fl_str text, unsigned number)
{
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(t->data);

    if (number >= OVECTOR_PAIRS)
        return (fl_str){NULL, 0};
    v += (size_t)2 * number;
    if (v[0] == PCRE2_UNSET || v[0] > v[1])
        return (fl_str){NULL, 0};
    return (fl_str){(text.p ? text.p : "") + v[0], v[1] - v[0]};
}

void fl_expr_caps(const struct fl_expr *c, const struct fl_tools *t, fl_str text,
                  struct fl_caps *caps)
{
    caps->whole = group_text(t, text, 0);
    caps->n = c->ngroups;
    for (unsigned i = 0; i < c->ngroups; i++) {
        caps->cap[i].name = c->group[i].name;
        caps->cap[i].text = group_text(t, text, c->group[i].number);
    }
}
