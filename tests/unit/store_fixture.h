#ifndef FL_TESTS_STORE_FIXTURE_H
#define FL_TESTS_STORE_FIXTURE_H
/*
 * What the tests of the incident memory share: a folder of their own, incidents, hostile texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FL_BASE_INTERNAL
#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "store/store.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

struct folder {
    char dir[64], db[100];
};

static inline void folder_make(struct folder *f)
{
    snprintf(f->dir, sizeof(f->dir), "/tmp/fl-store-XXXXXX");
    if (!mkdtemp(f->dir))
        fail_msg("no folder in /tmp");
    snprintf(f->db, sizeof(f->db), "%s/incidents.db", f->dir);
}

static inline void folder_remove(struct folder *f)
{
    char cmd[128];

    snprintf(cmd, sizeof(cmd), "d=%s; chmod -R u+w $d; rm -rf $d", f->dir);
    if (system(cmd) != 0)
        fail_msg("%s: cannot be removed", f->dir);
}

#define must(call) must_at((call), &err, #call, __FILE__, __LINE__)
static inline void must_at(int r, const fl_err *err, const char *what, const char *file, int line)
{
    if (r < 0)
        fail_msg("%s:%d: %s: %d: %s", file, line, what, r, err->msg);
}

/* The call fails with this code and says this. */
#define must_fail(call, code, words) must_fail_at((call), (code), (words), &err, __FILE__, __LINE__)
static inline void must_fail_at(int r, int code, const char *words, const fl_err *err,
                                const char *file, int line)
{
    if (r != code || err->code != code || !strstr(err->msg, words))
        fail_msg("%s:%d: %d instead of %d, \"%s\" instead of something with \"%s\"", file, line, r,
                 code, err->msg, words);
}

static inline void same_text_at(fl_str got, fl_str want, const char *what, const char *file,
                                int line)
{
    size_t i = 0;

    if (fl_str_eq(got, want))
        return;
    while (i < got.n && i < want.n && got.p[i] == want.p[i])
        i++;
    i = i > 40 ? i - 40 : 0;
    fail_msg("%s:%d: %s: %zu bytes \"...%.*s\" instead of %zu bytes \"...%.*s\" (from byte %zu)",
             file, line, what, got.n, FL_FMT(fl_str_sub(got, i, 100)), want.n,
             FL_FMT(fl_str_sub(want, i, 100)), i);
}
#define same_text(got, want, what) same_text_at((got), (want), (what), __FILE__, __LINE__)

/* Texts that have broken a reader or a writer of something. */
static const fl_str hostile[] = {
    FL_S("- no"),
    FL_S("2026-01-01"),
    FL_S("~"),
    FL_S("null"),
    FL_S("No"),
    FL_S("0x1f"),
    FL_S("1e5"),
    FL_S(".inf"),
    FL_S("true"),
    FL_S("---"),
    FL_S("..."),
    FL_S("  two leading blanks"),
    FL_S("\ttab first, tab\tinside"),
    FL_S("trailing blank "),
    FL_S("key: value # no comment"),
    FL_S("key:"),
    FL_S("it's \"quoted\" \\ and \\x41"),
    FL_S("'"),
    FL_S("\""),
    FL_S("[a, b]"),
    FL_S("{a: b}"),
    FL_S("{escaped: x}"),
    FL_S("&anchor *alias !tag"),
    FL_S("%TAG ! x"),
    FL_S("@at `tick"),
    FL_S("| block"),
    FL_S("> folded"),
    FL_S("two\nlines"),
    FL_S("\nfirst line empty"),
    FL_S("last line empty\n"),
    FL_S("blank line\n\n\nbetween"),
    FL_S("line of blanks\n   \nbetween"),
    FL_S("first\n  deeper\n # comment?\n- item\n--- \nend"),
    FL_S(" leading\nblank in a block"),
    FL_S("ends in a blank line\n  "),
    FL_S("\n"),
    FL_S(" "),
    FL_S("carriage\rreturn\r\n"),
    FL_S("nul \0 inside"),
    FL_S("\0"),
    FL_S("escape \x1b[31mred\x1b[0m bell \x07 del \x7f"),
    FL_S("invalid \xff\xfe utf-8 \xc3"),
    FL_S("invalid \x80 with \\ and ' and \"\n and \x01"),
    FL_S("overlong \xc0\xaf surrogate \xed\xa0\x80"),
    FL_S("emoji \xf0\x9f\x94\xa5 umlaut \xc3\xbc \xe6\x97\xa5\xe6\x9c\xac"),
    FL_S("bom \xef\xbb\xbf nel \xc2\x85 nbsp \xc2\xa0 ls \xe2\x80\xa8 rlo \xe2\x80\xae"),
    FL_S("non-characters \xef\xbf\xbe \xef\xbf\xbf \xf4\x8f\xbf\xbf"),
    FL_S("'; DROP TABLE incident; --"),
    FL_S("NEAR(a b) OR * ^ \" AND col: {x y} : -"),
    FL_S("%s%n%x"),
};

static inline int keep_bytes(void *ctx, fl_str bytes, fl_err *err)
{
    fl_buf_add(ctx, bytes);
    return fl_buf_check(ctx, "an export", err);
}

/* All of a store as YAML; freed with fl_buf_dispose. */
static inline void export_all(fl_store *s, fl_buf *out)
{
    struct fl_store_filter all = FL_STORE_ALL;
    fl_err err = {0};

    fl_buf_init(out, (size_t)1 << 30);
    must(fl_store_export(s, &all, NULL, NULL, keep_bytes, out, &err));
}

static inline void print_finding(void *ctx, const char *text)
{
    (void)ctx;
    print_message("%s\n", text);
}

static inline void must_be_whole(fl_store *s)
{
    fl_err err = {0};
    int n = fl_store_verify(s, print_finding, NULL, &err);

    if (n)
        fail_msg("verify: %d: %s", n, err.msg);
}

/* --- a store in a folder of its own, for each test --- */

static inline int64_t clock_at(void *ctx)
{
    return *(int64_t *)ctx;
}

/* Of the first evidence line without its digits, so that tests choose what is alike. */
static inline void shape_of(void *ctx, const struct fl_incident *inc, fl_buf *out)
{
    char hex[33];
    fl_buf b;

    (void)ctx;
    fl_buf_init(&b, 65536);
    for (size_t i = 0; inc->nevidence && i < inc->evidence[0].n; i++)
        if (inc->evidence[0].p[i] < '0' || inc->evidence[0].p[i] > '9')
            fl_buf_addc(&b, inc->evidence[0].p[i]);
    fl_hash128_hex(b.p ? b.p : "", b.n, hex);
    if (b.n)
        fl_buf_addz(out, hex);
    fl_buf_dispose(&b);
}

struct fixture {
    struct folder f;
    fl_store *s;
    fl_arena a;
    int64_t now;
};

static inline void open_again(struct fixture *x)
{
    struct fl_store_opts o = {.hooks = {.ctx = &x->now, .shape = shape_of, .now = clock_at}};
    fl_err err = {0};

    fl_store_close(x->s);
    x->s = NULL;
    must(fl_store_open(x->f.dir, &o, &x->s, &err));
}

static inline int set_up(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));

    x->now = 1772330584; /* 2026-03-01T02:03:04Z */
    folder_make(&x->f);
    fl_arena_init(&x->a);
    open_again(x);
    *state = x;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *x = *state;

    must_be_whole(x->s);
    fl_store_close(x->s);
    fl_arena_dispose(&x->a);
    folder_remove(&x->f);
    free(x);
    return 0;
}

static inline struct fl_incident incident(const char *id, const char *cause, const fl_str *line)
{
    return (struct fl_incident){.id = fl_str_c(id),
                                .cause = fl_str_c(cause),
                                .title = FL_S("A title"),
                                .explanation = FL_S("Because of it"),
                                .fix = FL_S("Restarted"),
                                .source = FL_S("a test"),
                                .evidence = line,
                                .nevidence = 1};
}

static inline struct fl_store_added add(struct fixture *x, const char *id, const char *cause,
                                        const char *line)
{
    fl_str text = fl_str_c(line);
    struct fl_incident inc = incident(id, cause, &text);
    struct fl_store_added added = {0};
    fl_err err = {0};

    must(fl_store_add(x->s, &inc, &added, &err));
    return added;
}

static inline struct fl_incident get(struct fixture *x, const char *id)
{
    struct fl_incident inc = {0};
    fl_err err = {0};

    must(fl_store_get(x->s, fl_str_c(id), &x->a, &inc, NULL, &err));
    return inc;
}

#define each(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
