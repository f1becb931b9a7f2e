/*
 * From a prompt and its inputs to what is sent.
 *
 * Rendering fails rather than guesses: an input too few or too many means that code and file have
 * grown apart. So does a prompt over its budget, because what a server does with one that is too
 * long differs from server to server, and cutting the front off in silence is among it.
 *
 * The fence around log text is a mark that the log cannot hold, by test, and cannot foresee, by
 * chance: a log that was written to close the fence and go on as a prompt would have to know 64
 * random bits.
 */
#include "llm/prompt.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/map.h"

static size_t quarter(void *ctx, fl_str text)
{
    (void)ctx;
    return (text.n + 3) / 4;
}

static const struct fl_prompt_value *find(const struct fl_prompt_value *values, size_t n,
                                          fl_str name)
{
    for (size_t i = 0; i < n; i++)
        if (fl_str_eqz(name, values[i].name))
            return &values[i];
    return NULL;
}

static int check_values(const struct fl_prompt *p, const struct fl_prompt_value *values, size_t n,
                        fl_err *err)
{
    for (size_t i = 0; i < p->ninputs; i++)
        if (!find(values, n, fl_str_c(p->inputs[i])))
            return fl_fail(err, FL_EUSAGE, "%s: the input %s was not given", p->path, p->inputs[i]);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < p->ninputs && strcmp(values[i].name, p->inputs[k]) != 0)
            k++;
        if (k == p->ninputs || find(values, i, fl_str_c(values[i].name)))
            return fl_fail(err, FL_EUSAGE, "%s: %s was given, which is %s", p->path, values[i].name,
                           k == p->ninputs ? "no input of it" : "there already");
    }
    return FL_OK;
}

static void fill(fl_str text, const struct fl_prompt_value *values, size_t n, fl_buf *out)
{
    while (text.n) {
        ptrdiff_t at = fl_str_find(text, FL_S("{{"));
        ptrdiff_t end = at < 0 ? -1 : fl_str_find(fl_str_from(text, (size_t)at), FL_S("}}"));
        const struct fl_prompt_value *v;
        if (end < 0)
            break;
        v = find(values, n, fl_str_sub(text, (size_t)at + 2, (size_t)end - 2));
        fl_buf_add(out, fl_str_sub(text, 0, (size_t)at + (v ? 0 : 2)));
        if (v)
            fl_buf_add(out, v->text);
        text = fl_str_from(text, (size_t)at + 2 + (v ? (size_t)end : 0));
    }
    fl_buf_add(out, text);
}

int fl_prompt_render(const struct fl_prompt *p, const struct fl_prompt_value *values, size_t n,
                     fl_prompt_count count, void *ctx, fl_buf *system, fl_buf *user, size_t *tokens,
                     fl_err *err)
{
    size_t sum, system_at = system->n, user_at = user->n;
    int r = check_values(p, values, n, err);

    if (r)
        return r;
    fill(p->system, values, n, system);
    fill(p->user, values, n, user);
    r = fl_buf_check(system, "the prompt", err);
    if (!r)
        r = fl_buf_check(user, "the prompt", err);
    if (r)
        return r;
    count = count ? count : quarter;
    sum = count(ctx, fl_str_from(fl_buf_str(system), system_at)) +
          count(ctx, fl_str_from(fl_buf_str(user), user_at));
    if (tokens)
        *tokens = sum;
    if (sum > p->token_budget)
        return fl_fail(
            err, FL_ELIMIT,
            "the prompt %s has %zu tokens, and its budget is %u; make the digest smaller "
            "or raise token_budget in %s",
            p->id, sum, p->token_budget, p->path);
    return FL_OK;
}

static void add_list(const struct fl_llm_terms *t, bool causes, fl_buf *out)
{
    size_t n = causes ? t->ncauses : t->nactions;

    for (size_t i = 0; i < n; i++)
        fl_buf_addf(out, "%s\"%s\"", i ? "," : "", causes ? t->causes[i].id : t->actions[i]);
}

int fl_prompt_schema(const struct fl_prompt *p, const struct fl_llm_terms *terms, fl_buf *out,
                     fl_err *err)
{
    fl_str rest = p->schema;

    while (rest.n) {
        static const fl_str marks[2] = {FL_S("\"$causes\""), FL_S("\"$actions\"")};
        ptrdiff_t a = fl_str_find(rest, marks[0]), b = fl_str_find(rest, marks[1]);
        bool first = a >= 0 && (b < 0 || a < b);
        ptrdiff_t at = first ? a : b;
        if (at < 0)
            break;
        fl_buf_add(out, fl_str_sub(rest, 0, (size_t)at));
        add_list(terms, first, out);
        rest = fl_str_from(rest, (size_t)at + marks[first ? 0 : 1].n);
    }
    fl_buf_add(out, rest);
    return fl_buf_check(out, "the output schema", err);
}

void fl_prompt_causes(const struct fl_llm_terms *terms, fl_buf *out)
{
    static const char *const classes[] = {"infrastructure", "framework", "script", "-"};

    for (size_t c = 0; c < sizeof(classes) / sizeof(*classes); c++) {
        bool begun = false;
        for (size_t i = 0; i < terms->ncauses; i++) {
            const struct fl_llm_cause *cause = &terms->causes[i];
            if (strcmp(cause->class_name, classes[c]) != 0)
                continue;
            if (!begun)
                fl_buf_addf(out, "class %s\n", classes[c]);
            begun = true;
            fl_buf_addf(out, "%s: %s\n", cause->id, cause->title);
        }
    }
    if (out->n && out->p[out->n - 1] == '\n')
        fl_buf_cut(out, out->n - 1);
}

void fl_prompt_actions(const struct fl_llm_terms *terms, fl_buf *out)
{
    for (size_t i = 0; i < terms->nactions; i++)
        fl_buf_addf(out, "%s%s", i ? ", " : "", terms->actions[i]);
}

void fl_prompt_fence(uint64_t seed, fl_str content, char out[24])
{
    char mark[24];

    do {
        seed = fl_hash64(&seed, sizeof(seed), 0x666c);
        snprintf(mark, sizeof(mark), "LOG-%016llx", (unsigned long long)seed);
        memcpy(out, mark, sizeof(mark));
    } while (fl_str_has(content, fl_str_c(out)));
}
