/*
 * Rule sets from the cache: equal to those from YAML in every field, whatever is in the cache.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cache.h"
#include "base/file.h"
#include "base/map.h"
#include "base/yaml.h"
#include "rules/filter.h"
#include "rules/rules.h"

static char dir[64]; /* holds rules/ and cache/ */
static const char shipped[] = FL_SOURCE_DIR "/rules";

static const char *in_dir(const char *name)
{
    static char path[8][200];
    static unsigned at;
    char *p = path[at++ % 8];

    snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
    return p;
}

static void write_file(const char *path, fl_str text)
{
    FILE *f = fopen(path, "w");

    if (!f || fwrite(text.p ? text.p : "", 1, text.n, f) != text.n || fclose(f) ||
        chmod(path, 0600))
        fail_msg("%s cannot be written", path);
}

static void put_z(fl_buf *b, const char *name, const char *z)
{
    fl_buf_addf(b, " %s=%s", name, z ? z : "(none)");
}

static void put_texts(fl_buf *b, const char *name, const fl_str *v, const unsigned *lines, size_t n)
{
    fl_buf_addf(b, " %s=%zu", name, n);
    for (size_t i = 0; i < n; i++)
        fl_buf_addf(b, "\n    %u:%zu:%.*s", lines ? lines[i] : 0, v[i].n, FL_FMT(v[i]));
}

static void put_patterns(fl_buf *b, const struct fl_pattern *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fl_buf_addf(b, "pattern %s id %u icase %d anchored %d %.*s\n", p[i].where, p[i].id,
                    p[i].icase, p[i].anchored, FL_FMT(p[i].regex));
}

static void put_rule(fl_buf *b, const struct fl_rule *r, fl_match_scratch *s)
{
    fl_buf_addf(b, "rule %s %s:%u cause %u role %d maturity %d class %d frame %d phase %d blame %d",
                r->id, r->file, r->line, r->cause, (int)r->role, (int)r->maturity, (int)r->class,
                (int)r->frame, (int)r->phase, (int)r->blame);
    fl_buf_addf(b, " strength %d patterns %u+%u inside %d", r->strength, r->pattern, r->npatterns,
                r->inside ? fl_regex_match(r->inside, s, FL_S("/a/synchronize.py f"), NULL) : -1);
    put_z(b, "action", r->action);
    put_z(b, "summary", r->summary);
    put_z(b, "source", r->source);
    put_texts(b, "not", r->not_text, NULL, r->nnots);
    for (size_t i = 0; i < r->nnots; i++)
        for (size_t k = 0; k < r->nhits; k++)
            fl_buf_addf(b, " %d", fl_regex_match(r->nots[i], s, r->hits[k], NULL));
    put_texts(b, "hits", r->hits, r->hit_lines, r->nhits);
    put_texts(b, "misses", r->misses, r->miss_lines, r->nmisses);
    fl_buf_addc(b, '\n');
}

static void put_filter(fl_buf *b, const struct fl_filter *f, fl_match_scratch *s)
{
    fl_buf_addf(b, "filter %s %s:%u action %d maturity %d metric %d guard %u despite %llx %u+%u",
                f->id, f->file, f->line, (int)f->action, (int)f->maturity, f->metric, f->guard,
                (unsigned long long)f->despite, f->pattern, f->npatterns);
    put_z(b, "why", f->why);
    put_z(b, "source", f->source);
    put_texts(b, "not", f->not_text, NULL, f->nnots);
    for (size_t i = 0; i < f->nnots; i++)
        for (size_t k = 0; k < f->nmisses; k++)
            fl_buf_addf(b, " %d", fl_regex_match(f->nots[i], s, f->misses[k], NULL));
    put_texts(b, "takes", f->takes, f->take_lines, f->ntakes);
    put_texts(b, "misses", f->misses, f->miss_lines, f->nmisses);
    fl_buf_addc(b, '\n');
}

/* Every field of a rule set in words. */
static void describe(const struct fl_ruleset *rs, fl_buf *b)
{
    fl_match_scratch *s;

    assert_int_equal(fl_match_scratch_new(NULL, &s, NULL), 0);
    fl_buf_addf(b, "version %s unknown %u none %u\n", rs->version, rs->unknown, rs->none);
    for (size_t i = 0; i < rs->ncauses; i++) {
        const struct fl_cause *c = &rs->causes[i];
        fl_buf_addf(b, "cause %s %s:%u class %d precedence %d %d%d%d%d explains", c->id, c->file,
                    c->line, (int)c->class, c->precedence, c->last_resort, c->gives_way,
                    c->bystander, c->timeline);
        for (size_t k = 0; k < c->nexplains; k++)
            fl_buf_addf(b, " %u", c->explains[k]);
        put_z(b, "title", c->title);
        put_z(b, "advice", c->advice);
        put_z(b, "action", c->action);
        fl_buf_addc(b, '\n');
    }
    for (size_t i = 0; i < rs->nrules; i++)
        put_rule(b, &rs->rules[i], s);
    put_patterns(b, rs->patterns, rs->npatterns);
    for (size_t i = 0; i < rs->npolicy; i++) {
        const struct fl_policy_row *p = &rs->policy[i];
        fl_buf_addf(b, "policy %s:%u class %d phase %d hosts %d..%d repeats %d causes", p->file,
                    p->line, (int)p->class, (int)p->phase, p->hosts_min, p->hosts_max,
                    p->repeats_min);
        for (size_t k = 0; k < p->ncauses; k++)
            fl_buf_addf(b, " %u", p->causes[k]);
        put_z(b, "action", p->action);
        put_z(b, "advice", p->advice);
        fl_buf_addc(b, '\n');
    }
    for (size_t i = 0; i < rs->nfilters; i++)
        put_filter(b, &rs->filters[i], s);
    put_patterns(b, rs->filter_patterns, rs->nfilter_patterns);
    fl_match_scratch_free(s);
    assert_int_equal(b->bad, 0);
}

/* The first line in which they differ is told. */
static void same_text(const char *what, fl_str want, fl_str have)
{
    for (int line = 1; want.n || have.n; line++) {
        fl_str w = fl_str_cut(&want, '\n'), h = fl_str_cut(&have, '\n');
        if (!fl_str_eq(w, h))
            fail_msg("%s: line %d differs\n wanted %.*s\n    got %.*s", what, line, FL_FMT(w),
                     FL_FMT(h));
    }
}

static struct fl_ruleset *load(const char *rules, const char *cache)
{
    struct fl_ruleset *rs = NULL;
    fl_err err = {0};

    if (fl_ruleset_load_cached(&rules, 1, cache, &rs, &err))
        fail_msg("%s: %s", rules, err.msg);
    return rs;
}

/* Loads with the cache and without: equal, and the note is what is expected (NULL: none). */
static void expect(const char *rules, const char *what, const char *note)
{
    struct fl_ruleset *plain = load(rules, NULL), *kept = load(rules, in_dir("cache"));
    fl_buf want, have;

    fl_buf_init(&want, 256u << 20);
    fl_buf_init(&have, 256u << 20);
    describe(plain, &want);
    describe(kept, &have);
    same_text(what, fl_buf_str(&want), fl_buf_str(&have));
    assert_null(plain->cache_note);
    if (!kept->cache_note != !note || (note && !strstr(kept->cache_note, note)))
        fail_msg("%s: note %s; wanted %s", what, kept->cache_note ? kept->cache_note : "none",
                 note ? note : "none");
    fl_buf_dispose(&want);
    fl_buf_dispose(&have);
    fl_ruleset_free(plain);
    fl_ruleset_free(kept);
}

/* How many files there are in the cache, the last one's path and bytes. */
static size_t cache_file(char *path, size_t cap, fl_buf *bytes)
{
    fl_arena a;
    const char **names;
    size_t n = 0;

    fl_arena_init(&a);
    if (fl_file_list(in_dir("cache"), &a, &names, &n, NULL) == 0 && n) {
        snprintf(path, cap, "%s/cache/%s", dir, names[n - 1]);
        fl_buf_clear(bytes);
        assert_int_equal(fl_file_read(path, bytes, NULL), 0);
    }
    fl_arena_dispose(&a);
    return n;
}

static void the_shipped_rules_are_the_same(void **state)
{
    char path[300];
    fl_buf first, second;
    struct stat before, after;

    (void)state;
    fl_buf_init(&first, 64u << 20);
    fl_buf_init(&second, 64u << 20);
    expect(shipped, "first", NULL);
    assert_int_equal(cache_file(path, sizeof(path), &first), 1);
    assert_int_equal(stat(path, &before), 0);
    expect(shipped, "second", NULL);
    assert_int_equal(cache_file(path, sizeof(path), &second), 1);
    assert_int_equal(stat(path, &after), 0);
    if (before.st_ino != after.st_ino)
        fail_msg("what was kept was written again");
    if (!fl_str_eq(fl_buf_str(&first), fl_buf_str(&second)))
        fail_msg("the file has changed");
    fl_buf_dispose(&first);
    fl_buf_dispose(&second);
}

static const char taxonomy[] =
    "causes:\n"
    "  - {id: gpu.ecc, class: infrastructure, title: 'a title', precedence: 3, action: restart, "
    "advice: \"\\u00e4\"}\n"
    "  - {id: unknown, class: \"-\", title: u, action: investigate}\n"
    "  - {id: none, class: \"-\", title: n, action: none}\n";
#define RULE(id, more)                                                                             \
    "  - {id: " id ", cause: gpu.ecc, role: root, maturity: stable, match: ['x y', z], not: "      \
    "'n[0-9]', hits: [x y, z], misses: \"q\\tq\"" more "}\n"
#define A "rules:\n" RULE("one", "") RULE("two", ", inside: 'synchronize\\.py'")
#define BAD_NOT                                                                                    \
    "rules:\n  - {id: x, cause: gpu.ecc, role: root, maturity: stable, match: x, not: '['}\n"
#define B "rules:\n" RULE("three", ", strength: 77")

static void write_small(const char *a, const char *b)
{
    write_file(in_dir("rules/taxonomy.yaml"), fl_str_c(taxonomy));
    write_file(in_dir("rules/failures/a.yaml"), fl_str_c(a));
    write_file(in_dir("rules/failures/b.yaml"), fl_str_c(b));
}

static void an_edited_file_counts_at_once(void **state)
{
    char path[300];
    fl_buf bytes;

    (void)state;
    fl_buf_init(&bytes, 64u << 20);
    write_small(A, B);
    expect(in_dir("rules"), "as written", NULL);
    write_small(A, "rules:\n" RULE("three", ", strength: 12"));
    expect(in_dir("rules"), "one edited", NULL);
    write_small(B, A);
    expect(in_dir("rules"), "exchanged", NULL);
    write_small("# a line more\n" B, A);
    expect(in_dir("rules"), "other lines", NULL);
    write_small("rules:\n", B);
    expect(in_dir("rules"), "one emptied", NULL);
    unlink(in_dir("rules/failures/a.yaml"));
    expect(in_dir("rules"), "one removed", NULL);
    assert_int_equal(cache_file(path, sizeof(path), &bytes), 1);
    write_small(A, B);
    expect(in_dir("rules"), "one added", NULL);
    expect(in_dir("rules"), "kept", NULL);
    fl_buf_dispose(&bytes);
}

static void a_wrong_file_is_told_as_ever(void **state)
{
    static const char *const wrong[] = {"rules: [", "rules:\n" RULE("one", ", color: red"),
                                        "rules:\n" RULE("one", "") RULE("one", ""), BAD_NOT};
    char folder[100];
    const char *rules = folder;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/rules", dir);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct fl_ruleset *rs = NULL;
        fl_err plain = {0}, kept = {0}, again = {0};
        write_small(A, B);
        expect(rules, "before", NULL);
        write_file(in_dir("rules/failures/b.yaml"), fl_str_c(wrong[i]));
        assert_int_equal(fl_ruleset_load(&rules, 1, &rs, &plain), FL_ERULE);
        assert_int_equal(fl_ruleset_load_cached(&rules, 1, in_dir("cache"), &rs, &kept), FL_ERULE);
        assert_int_equal(fl_ruleset_load_cached(&rules, 1, in_dir("cache"), &rs, &again), FL_ERULE);
        assert_string_equal(plain.msg, kept.msg);
        assert_string_equal(plain.msg, again.msg);
    }
}

/* With a checksum that is right, as only somebody could write who may write anything. */
static void seal(fl_buf *file)
{
    char hash[33];

    for (unsigned i = 0; i < 8; i++)
        file->p[44 + i] = (char)((file->n - 84) >> (8 * i) & 0xff);
    fl_hash128_hex(file->p + 84, file->n - 84, hash);
    memcpy(file->p + 52, hash, 32);
}

static void damage_is_noticed(void **state)
{
    char path[300];
    fl_buf good;

    (void)state;
    fl_buf_init(&good, 64u << 20);
    write_small(A, B);
    expect(in_dir("rules"), "fresh", NULL);
    assert_int_equal(cache_file(path, sizeof(path), &good), 1);
    for (size_t at = 0; at < good.n; at += at < 150 ? 9 : 211) {
        good.p[at] ^= 0x11;
        write_file(path, fl_buf_str(&good));
        good.p[at] ^= 0x11;
        expect(in_dir("rules"), "damaged", "is not used");
        expect(in_dir("rules"), "mended", NULL);
    }
    for (size_t n = 0; n < good.n; n += n < 150 ? 41 : 701) {
        write_file(path, fl_str_n(good.p, n));
        expect(in_dir("rules"), "cut", "is not used");
    }
    write_file(path, fl_buf_str(&good));
    assert_int_equal(chmod(path, 0666), 0);
    expect(in_dir("rules"), "writable by all", "other users");
    fl_buf_dispose(&good);
}

/* Any bytes under a checksum that holds: rules may then be others, but nothing breaks. */
static void a_forged_file_breaks_nothing(void **state)
{
    static const unsigned char with[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    char path[300], folder[100];
    const char *rules = folder;
    fl_buf good, bad;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/rules", dir);
    fl_buf_init(&good, 64u << 20);
    fl_buf_init(&bad, 64u << 20);
    write_small(A, B);
    expect(rules, "fresh", NULL);
    assert_int_equal(cache_file(path, sizeof(path), &good), 1);
    for (size_t at = 84; at <= good.n; at++) {
        struct fl_ruleset *rs = NULL;
        fl_buf_clear(&bad);
        fl_buf_add(&bad, at % 7 ? fl_buf_str(&good) : fl_str_n(good.p, at));
        if (at < bad.n)
            bad.p[at] = (char)with[at % sizeof(with)];
        seal(&bad);
        write_file(path, fl_buf_str(&bad));
        fl_ruleset_load_cached(&rules, 1, in_dir("cache"), &rs, NULL);
        fl_ruleset_free(rs);
        unlink(path);
    }
    fl_buf_dispose(&good);
    fl_buf_dispose(&bad);
}

static void no_folder_no_cache(void **state)
{
    struct fl_ruleset *rs;

    (void)state;
    write_small(A, B);
    rs = load(in_dir("rules"), "/proc/no-such/place");
    if (!rs->cache_note || !strstr(rs->cache_note, "was not written"))
        fail_msg("note: %s", rs->cache_note ? rs->cache_note : "none");
    fl_ruleset_free(rs);
}

static void same_tree(const fl_yaml *a, const fl_yaml *b)
{
    if (a->kind != b->kind || a->line != b->line || strcmp(a->file, b->file) != 0 ||
        !fl_str_eq(a->key, b->key) || !fl_str_eq(a->text, b->text) || a->quoted != b->quoted ||
        a->n != b->n || !a->key.p != !b->key.p || !a->first != !b->first || !a->next != !b->next)
        fail_msg("%s:%u: '%.*s: %.*s' became line %u '%.*s: %.*s'", a->file, a->line,
                 FL_FMT(a->key), FL_FMT(a->text), b->line, FL_FMT(b->key), FL_FMT(b->text));
    if (b->text.p && b->text.p[b->text.n] != 0)
        fail_msg("%s:%u: no NUL behind the text", a->file, a->line);
    if (a->first)
        same_tree(a->first, b->first);
    if (a->next)
        same_tree(a->next, b->next);
}

static void trees_become_bytes_and_trees(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "''",
                                        "[]",
                                        "{}",
                                        "a: b\n",
                                        "- a\n- - b\n  - {}\n",
                                        "a: |-\n  one\n\n  two\nb: \"nul \\0 here\"\n'': ~\n",
                                        "[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const fl_yaml *a, *b;
        fl_buf bytes;
        fl_arena arena;
        fl_err err = {0};
        fl_arena_init(&arena);
        fl_buf_init(&bytes, 1 << 20);
        fl_buf_addz(&bytes, "before");
        if (fl_yaml_parse(fl_str_c(texts[i]), "f.yaml", &arena, &a, &err) ||
            fl_yaml_pack(a, &bytes, &err))
            fail_msg("%s: %s", texts[i], err.msg);
        assert_int_equal(fl_yaml_unpack(fl_str_n(bytes.p + 6, bytes.n - 6), "f.yaml", &arena, &b),
                         0);
        same_tree(a, b);
        for (size_t n = 0; n + 6 < bytes.n; n++)
            if (fl_yaml_unpack(fl_str_n(bytes.p + 6, n), "f.yaml", &arena, &b) == 0)
                fail_msg("%s: its first %zu bytes pass for a tree", texts[i], n);
        fl_buf_dispose(&bytes);
        fl_arena_dispose(&arena);
    }
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/fl-trees-XXXXXX");
    return mkdtemp(dir) && fl_file_mkdirs(in_dir("rules/failures"), NULL) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_become_bytes_and_trees),
                                       IN_DIR(the_shipped_rules_are_the_same),
                                       IN_DIR(an_edited_file_counts_at_once),
                                       IN_DIR(a_wrong_file_is_told_as_ever),
                                       IN_DIR(damage_is_noticed),
                                       IN_DIR(a_forged_file_breaks_nothing),
                                       IN_DIR(no_folder_no_cache)};

    return cmocka_run_group_tests_name("trees", tests, NULL, NULL);
}
