/*
 * A conversation about one log.
 *
 * The servers keep no state: each question is sent with all that came before. What came before
 * grows, and the context does not, so the oldest turns are left out when it gets narrow. The
 * beginning, which has the log, is never cut: an answer without the evidence is worth less than one
 * without memory. What was left out stays in the list, for a model with a larger context may be
 * next.
 *
 * Old turns were not summarised by the model, which would be a request of its own, slow, and
 * a place where an invention becomes a fact for all later turns.
 */
#include "llm/parts.h"

#include "base/alloc.h"

#define ROOM 8192
#define MAX_TURN (256u << 10)

struct turn {
    char *question, *answer;
};
struct fl_llm_talk {
    struct fl_llm_message *begin;
    size_t nbegin;
    struct turn *turns;
    size_t nturns, cap, left_out;
    unsigned room;
};

int fl_llm_talk_new(const struct fl_llm_message *begin, size_t n, unsigned room, fl_llm_talk **out,
                    fl_err *err)
{
    fl_llm_talk *t = fl_calloc(1, sizeof(*t));

    if (!t)
        return fl_fail_nomem(err);
    t->room = room ? room : ROOM;
    t->begin = fl_calloc(n + 1, sizeof(*t->begin));
    for (size_t i = 0; t->begin && i < n; i++) {
        char *copy = fl_strdup_s(begin[i].text);
        if (!copy)
            break;
        t->begin[i].role = begin[i].role;
        t->begin[i].text = fl_str_n(copy, begin[i].text.n);
        t->nbegin++;
    }
    if (!t->begin || t->nbegin != n) {
        fl_llm_talk_free(t);
        return fl_fail_nomem(err);
    }
    *out = t;
    return FL_OK;
}

void fl_llm_talk_free(fl_llm_talk *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->nbegin; i++)
        fl_free((char *)(uintptr_t)t->begin[i].text.p);
    for (size_t i = 0; i < t->nturns; i++) {
        fl_free(t->turns[i].question);
        fl_free(t->turns[i].answer);
    }
    fl_free(t->begin);
    fl_free(t->turns);
    fl_free(t);
}

size_t fl_llm_talk_turns(const fl_llm_talk *t)
{
    return t->nturns;
}

size_t fl_llm_talk_left_out(const fl_llm_talk *t)
{
    return t->left_out;
}

static size_t count(const fl_llm *c, fl_str s)
{
    /* a few more for the role and what stands around a message */
    return 8 + (c->o.count ? c->o.count(c->o.count_ctx, s) : (s.n + 3) / 4);
}

/* How many of the oldest turns must be left out, or -1: it does not fit without any. */
static ptrdiff_t fit(const fl_llm_talk *t, const fl_llm *c, const struct fl_llm_ask *ask,
                     fl_str question, size_t *needed)
{
    size_t first = t->nturns;

    *needed = count(c, question) + (ask->max_tokens ? ask->max_tokens : 1000);
    for (size_t i = 0; i < t->nbegin; i++)
        *needed += count(c, t->begin[i].text);
    if (*needed > t->room)
        return -1;
    for (size_t sum = *needed; first > 0; first--) {
        const struct turn *turn = &t->turns[first - 1];
        sum += count(c, fl_str_c(turn->question)) + count(c, fl_str_c(turn->answer));
        if (sum > t->room)
            break;
    }
    return (ptrdiff_t)first;
}

static int keep(fl_llm_talk *t, fl_str question, fl_str answer)
{
    struct turn turn;

    answer = fl_str_sub(fl_llm_without_reasoning(answer), 0, MAX_TURN);
    if (!answer.n)
        return FL_OK;
    if (fl_grow((void **)&t->turns, &t->cap, t->nturns + 1, sizeof(*t->turns)))
        return FL_ENOMEM;
    turn.question = fl_strdup_s(fl_str_sub(question, 0, MAX_TURN));
    turn.answer = fl_strdup_s(answer);
    if (!turn.question || !turn.answer) {
        fl_free(turn.question);
        fl_free(turn.answer);
        return FL_ENOMEM;
    }
    t->turns[t->nturns++] = turn;
    return FL_OK;
}

static void fill(const fl_llm_talk *t, size_t first, fl_str question, struct fl_llm_message *m)
{
    for (size_t i = 0; i < t->nbegin; i++)
        *m++ = t->begin[i];
    for (size_t i = first; i < t->nturns; i++) {
        *m++ = (struct fl_llm_message){FL_LLM_USER, fl_str_c(t->turns[i].question)};
        *m++ = (struct fl_llm_message){FL_LLM_ASSISTANT, fl_str_c(t->turns[i].answer)};
    }
    *m = (struct fl_llm_message){FL_LLM_USER, question};
}

int fl_llm_talk_ask(fl_llm_talk *t, fl_llm *c, const struct fl_llm_ask *ask, fl_str question,
                    struct fl_llm_answer *out, fl_err *err)
{
    struct fl_llm_ask a = *ask;
    struct fl_llm_message *m;
    size_t needed = 0;
    ptrdiff_t first = fit(t, c, ask, question, &needed);
    int r;

    if (first < 0)
        return fl_fail(err, FL_ELIMIT,
                       "the log, the question and an answer take about %zu tokens, and the context "
                       "has %u; ask shorter, or make the digest smaller",
                       needed, t->room);
    m = fl_calloc(t->nbegin + 2 * (t->nturns - (size_t)first) + 1, sizeof(*m));
    if (!m)
        return fl_fail_nomem(err);
    t->left_out = (size_t)first;
    fill(t, (size_t)first, question, m);
    a.messages = m;
    a.nmessages = t->nbegin + 2 * (t->nturns - (size_t)first) + 1;
    a.schema = fl_str_n(NULL, 0);
    r = fl_llm_chat(c, &a, out, err);
    /* After a failure only what a person has seen is kept, and only streams are seen early. */
    if ((!r || ask->on_text) && keep(t, question, fl_buf_str(&out->text)) && !r)
        r = fl_fail_nomem(err);
    fl_free(m);
    return r;
}
