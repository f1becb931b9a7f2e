/*
 * What anybody would write first: compile each pattern with PCRE2's JIT, and try them one by one.
 *
 * Two orders of the loops are there, and the bench compares with the faster. "lines" takes each
 * line and tries the patterns until one matches. "blocks" takes each pattern over all of the text,
 * which lets PCRE2 look for a pattern's first byte with memchr over long stretches; it marks the
 * lines where a match was found and counts the marks. Both print the number of lines that match,
 * seconds for the search alone, and bytes, so that the caller can see that they found the same.
 *
 * The pattern file is the one that ripgrep gets. Its groups may carry ripgrep's flag -u, "match
 * bytes", which PCRE2 does not know and does not need: it is taken out, and the text is matched as
 * bytes. The file is read whole, for this is a slice of some megabytes. It refuses a pattern that
 * PCRE2 refuses, rather than be faster by leaving it out.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
    char *p;
    size_t n;
};

struct patterns {
    pcre2_code **code;
    size_t n;
    pcre2_match_data *found;
};

static bool read_whole(const char *path, struct text *out)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    bool ok = false;

    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size >= 0 && fseek(f, 0, SEEK_SET) == 0 && (out->p = malloc((size_t)size + 1))) {
        out->n = fread(out->p, 1, (size_t)size, f);
        out->p[out->n] = 0;
        ok = out->n == (size_t)size;
    }
    if (!ok)
        fprintf(stderr, "naive_pcre2: %s cannot be read\n", path);
    if (f)
        fclose(f);
    return ok;
}

/* "(?i-u:X)" becomes "(?i:X)" in place; the new length. */
static size_t without_byte_flag(char *p, size_t n)
{
    for (size_t i = 2; i + 1 < n && i < 4; i++) {
        if (p[0] == '(' && p[1] == '?' && p[i] == '-' && p[i + 1] == 'u') {
            memmove(p + i, p + i + 2, n - i - 2);
            return n - 2;
        }
    }
    return n;
}

static bool add(struct patterns *s, char *p, size_t n)
{
    PCRE2_UCHAR why[256];
    PCRE2_SIZE at;
    int code;
    pcre2_code **grown = realloc(s->code, (s->n + 1) * sizeof(*grown));

    if (!grown)
        return false;
    s->code = grown;
    n = without_byte_flag(p, n);
    grown[s->n] = pcre2_compile((PCRE2_SPTR)p, n, 0, &code, &at, NULL);
    if (grown[s->n] && pcre2_jit_compile(grown[s->n], PCRE2_JIT_COMPLETE) == 0) {
        s->n++;
        return true;
    }
    if (!grown[s->n])
        pcre2_get_error_message(code, why, sizeof(why));
    fprintf(stderr, "naive_pcre2: %.*s: %s\n", (int)n, p,
            grown[s->n] ? "no JIT code" : (const char *)why);
    pcre2_code_free(grown[s->n]);
    return false;
}

static bool compile(struct text *t, struct patterns *s)
{
    for (char *p = t->p, *end = t->p + t->n, *lf; p < end; p = lf + 1) {
        lf = memchr(p, '\n', (size_t)(end - p));
        if (!lf)
            lf = end;
        if (lf > p && !add(s, p, (size_t)(lf - p)))
            return false;
    }
    s->found = pcre2_match_data_create(1, NULL);
    return s->found != NULL;
}

static bool hit(const struct patterns *s, size_t k, const char *p, size_t n)
{
    return pcre2_jit_match(s->code[k], (PCRE2_SPTR)p, n, 0, 0, s->found, NULL) >= 0;
}

static const char *line_end(const char *p, const char *end)
{
    const char *lf = memchr(p, '\n', (size_t)(end - p));

    return lf ? lf : end;
}

static size_t by_lines(const struct patterns *s, const struct text *t)
{
    const char *end = t->p + t->n, *lf;
    size_t lines = 0;

    for (const char *p = t->p; p < end; p = lf + 1) {
        size_t k = 0;

        lf = line_end(p, end);
        while (k < s->n && !hit(s, k, p, (size_t)(lf - p)))
            k++;
        lines += k < s->n;
    }
    return lines;
}

/* One pattern over all text. A match may have run over a line's end, so its line decides alone. */
static void mark(const struct patterns *s, size_t k, const struct text *t, char *marks)
{
    const char *end = t->p + t->n, *p = t->p;

    while (p < end && hit(s, k, p, (size_t)(end - p))) {
        const char *at = p + pcre2_get_ovector_pointer(s->found)[0], *from = at, *lf;

        while (from > p && from[-1] != '\n')
            from--;
        lf = line_end(at, end);
        if (hit(s, k, from, (size_t)(lf - from)))
            marks[from - t->p] = 1;
        p = lf + 1;
    }
}

static size_t by_blocks(const struct patterns *s, const struct text *t)
{
    char *marks = calloc(t->n + 1, 1);
    size_t lines = 0;

    for (size_t k = 0; marks && k < s->n; k++)
        mark(s, k, t, marks);
    for (size_t i = 0; marks && i < t->n; i++)
        lines += (size_t)marks[i];
    free(marks);
    return lines;
}

int main(int argc, char **argv)
{
    struct text list = {0}, log = {0};
    struct patterns s = {0};
    struct timespec a, b;
    size_t lines;
    int status = 1;

    if (argc != 4 || (strcmp(argv[1], "lines") != 0 && strcmp(argv[1], "blocks") != 0)) {
        fputs("usage: naive_pcre2 lines|blocks PATTERNS LOG\n", stderr);
        return 2;
    }
    if (!read_whole(argv[2], &list) || !read_whole(argv[3], &log) || !compile(&list, &s))
        goto out;
    clock_gettime(CLOCK_MONOTONIC, &a);
    lines = argv[1][0] == 'l' ? by_lines(&s, &log) : by_blocks(&s, &log);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%zu lines %.6f seconds %zu bytes %zu patterns\n", lines,
           (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, log.n, s.n);
    status = 0;
out:
    for (size_t i = 0; i < s.n; i++)
        pcre2_code_free(s.code[i]);
    free(s.code);
    pcre2_match_data_free(s.found);
    free(list.p);
    free(log.p);
    return status;
}
