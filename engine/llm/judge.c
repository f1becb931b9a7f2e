/*
 * An answer that names a cause: asked for, read, and given one turn to be mended.
 *
 * One turn, because what a model cannot say right when it is told exactly what is wrong, it will
 * not say at the third time, and each turn costs as much as the first. The complaints are those of
 * the schema first; only an answer of the right form is shown to the caller's check, which knows
 * the log. The second turn holds the whole conversation, so that the model sees what it said, and
 * goes to the endpoint that gave the first: another one cannot mend what it did not write.
 *
 * When the second turn is worse than the first (no answer, no form), the first stands if it had the
 * right form, with the complaints that the check had. So asking again never loses an answer.
 */
#include <stdio.h>

#include "llm/parts.h"

#include "base/alloc.h"

#define MAX_MESSAGES 64
#define SHOWN_REPLY 8192

void fl_llm_verdict_init(struct fl_llm_verdict *v)
{
    memset(v, 0, sizeof(*v));
    fl_llm_answer_init(&v->answer);
    fl_buf_init(&v->complaint_text, 8192);
}

void fl_llm_verdict_dispose(struct fl_llm_verdict *v)
{
    fl_llm_answer_dispose(&v->answer);
    fl_buf_dispose(&v->complaint_text);
}

/* Complaints about the answer's form or substance; *formed says whether it has the right form. */
static int examine(const struct fl_llm_question *q, const struct fl_llm_answer *a, fl_arena *arena,
                   struct fl_said *v, bool *formed, fl_buf *complaints, fl_err *err)
{
    fl_str object;
    fl_err said = {0};
    int n;

    *formed = false;
    fl_buf_clear(complaints);
    if (!strcmp(a->finish, "refusal")) {
        fl_buf_addz(complaints,
                    "- The reply is a refusal. The log is a technical text; answer with "
                    "the JSON object, with the cause \"unknown\" if need be.\n");
        return 1;
    }
    n = fl_llm_extract(fl_buf_str(&a->text), "cause", &object, &said);
    if (n == FL_ENOMEM)
        return fl_fail_nomem(err);
    if (n) {
        fl_buf_addf(complaints, "- %s\n", said.msg);
        if (!strcmp(a->finish, "length"))
            fl_buf_addz(complaints, "- The reply was cut off at its allowed length.\n");
        return 1;
    }
    n = fl_said_read(object, q->terms, arena, v, complaints, err);
    if (n)
        return n;
    *formed = true;
    return q->check ? q->check(q->check_ctx, v, complaints, err) : 0;
}

static void add_up(struct fl_llm_answer *sum, const struct fl_llm_answer *other)
{
    sum->seconds += other->seconds;
    sum->requests += other->requests;
    if (sum->tokens_in >= 0 && other->tokens_in >= 0)
        sum->tokens_in += other->tokens_in;
    if (sum->tokens_out >= 0 && other->tokens_out >= 0)
        sum->tokens_out += other->tokens_out;
    if (sum->cost >= 0 && other->cost >= 0)
        sum->cost += other->cost;
}

/* The conversation so far, the reply and what is wrong with it. */
static int second_turn(fl_llm *c, const struct fl_llm_question *q, const struct fl_llm_verdict *v,
                       struct fl_llm_answer *out, fl_err *err)
{
    struct fl_llm_message m[MAX_MESSAGES + 2];
    struct fl_prompt_value value = {"complaints", fl_str_trim(fl_buf_str(&v->complaint_text))};
    struct fl_llm_ask ask = q->ask;
    fl_buf system, user;
    fl_str said = fl_llm_without_reasoning(fl_buf_str(&v->answer.text));
    int r;

    if (ask.nmessages > MAX_MESSAGES)
        return fl_fail(err, FL_EUSAGE, "more than %d messages", MAX_MESSAGES);
    fl_buf_init(&system, 1u << 16);
    fl_buf_init(&user, 1u << 16);
    r = fl_prompt_render(q->repair, &value, 1, c->o.count, c->o.count_ctx, &system, &user, NULL,
                         err);
    if (!r) {
        memcpy(m, ask.messages, ask.nmessages * sizeof(*m));
        m[ask.nmessages].role = FL_LLM_ASSISTANT;
        m[ask.nmessages].text = said.n ? fl_str_sub(said, 0, SHOWN_REPLY) : FL_S("(nothing)");
        m[ask.nmessages + 1].role = FL_LLM_USER;
        m[ask.nmessages + 1].text = fl_buf_str(&user);
        ask.messages = m;
        ask.nmessages += 2;
        ask.endpoint = (int)v->answer.endpoint;
        ask.on_text = NULL;
        r = fl_llm_chat(c, &ask, out, err);
    }
    fl_buf_dispose(&system);
    fl_buf_dispose(&user);
    return r;
}

/* The second answer takes the first one's place, or is added to its costs only. */
static void settle(struct fl_llm_verdict *out, struct fl_llm_answer *second, bool taken)
{
    if (taken) {
        struct fl_llm_answer first = out->answer;
        out->answer = *second;
        *second = first;
        /* Why earlier endpoints did not answer stands with the first turn. */
        fl_buf failures = out->answer.failures;
        out->answer.failures = second->failures;
        second->failures = failures;
        memcpy(out->answer.prompt, second->prompt, sizeof(second->prompt));
    }
    add_up(&out->answer, second);
}

/* The complaints in a sentence for a person, who gets one line. */
static int unusable(const struct fl_llm_verdict *v, const char *when, fl_err *err)
{
    fl_str rest = fl_str_trim(fl_buf_str(&v->complaint_text));
    fl_buf all;
    int r;

    fl_buf_init(&all, 400);
    while (rest.n) {
        fl_str line = fl_str_cut(&rest, '\n');
        if (fl_str_starts(line, FL_S("- ")))
            line = fl_str_from(line, 2);
        fl_buf_addf(&all, "%s%.*s", all.n ? "; " : "", FL_FMT(fl_str_sub(line, 0, 200)));
    }
    r = fl_fail(err, FL_EBACKEND, "%s: the answer cannot be used%s: %s", v->answer.url, when,
                all.p ? all.p : "");
    fl_buf_dispose(&all);
    return r;
}

static int repair(fl_llm *c, const struct fl_llm_question *q, fl_arena *arena, bool formed,
                  struct fl_llm_verdict *out, fl_err *err)
{
    struct fl_llm_answer second;
    struct fl_said v = {0};
    bool formed_now = false;
    fl_buf complaints;
    int r, n = 0;

    fl_llm_answer_init(&second);
    fl_buf_init(&complaints, 8192);
    out->turns = 2;
    r = second_turn(c, q, out, &second, err);
    if (!r) {
        n = examine(q, &second, arena, &v, &formed_now, &complaints, err);
        r = n < 0 ? n : FL_OK;
    }
    if (!r && (formed_now || !formed)) {
        fl_buf old = out->complaint_text;
        out->verdict = v;
        out->complaints = n;
        if (n) {
            out->complaint_text = complaints;
            complaints = old;
        }
        settle(out, &second, true);
        formed = formed_now;
    } else if (second.requests) {
        settle(out, &second, false);
    }
    if (!r && !formed)
        r = unusable(out, ", not even after a second try", err);
    else if (r && r != FL_ENOMEM && formed)
        r = FL_OK; /* the first answer stands */
    fl_llm_answer_dispose(&second);
    fl_buf_dispose(&complaints);
    return r;
}

int fl_llm_judge(fl_llm *c, const struct fl_llm_question *q, fl_arena *arena,
                 struct fl_llm_verdict *out, fl_err *err)
{
    bool formed = false;
    fl_err ignored = {0};
    int r, n;

    r = fl_llm_chat(c, &q->ask, &out->answer, err);
    if (r)
        return r;
    out->turns = 1;
    n = examine(q, &out->answer, arena, &out->verdict, &formed, &out->complaint_text, err);
    if (n < 0)
        return n;
    out->complaints = n;
    if (!n || (!q->repair && formed))
        return FL_OK;
    if (!q->repair)
        return unusable(out, "", err);
    r = repair(c, q, arena, formed, out, &ignored);
    if (r && err)
        *err = ignored;
    return r;
}
