/*
 * Is a line somebody's opinion, rather than what software prints when it fails?
 *
 * A log can be written by one who wants to be believed: orders to whoever reads it, a forged turn
 * of a conversation, a forged answer, a sentence that states the cause. Such a line can stand in
 * the log a thousand times and proves nothing, so it never carries what a model claims.
 *
 * Words in the languages that logs are written in are looked for in a folded form: small ASCII
 * letters, full-width forms made ASCII, characters without width and marks of emphasis left out. A
 * word that mixes Latin letters with Cyrillic or Greek ones is a disguise and counts as one. The
 * list refuses some honest lines too ("Root Cause (first observed failure)" of torchrun is a
 * heading and no failure). That is the cheap side to err on: a refused line leaves the rules'
 * answer as it is, and the model may cite another. What the list cannot know is an order in words
 * that nobody thought of; such a line must still look like a failure to carry anything, and even
 * then it can only choose among known causes.
 */
#include "compress/shape.h"
#include "diagnose/ask.h"

#include "base/alloc.h"

#define OVERLAP 64 /* bytes, more than the longest word in any disguise is likely to have */

/* In folded form. Whole lines of real failures are the other side: "illegal instruction",
 * "KeyError: 'prompt'", "did not respond", "a causal mask" must not be among these. */
static const char *const told[] = {
    /* stating the cause */
    "root cause", "true cause", "cause is", "cause was", "cause:", "caused by the", "culprit",
    "diagnosis", "diagnosed", "diagnose ", "verdict", "conclu", "confidence", "postmortem",
    "post-mortem", "rca", "answer is", "answer:", "final answer",
    "explanation:", "summary:", "analysis:", "faultline", "was to blame",
    /* giving orders */
    "ignore ", "disregard", "you are ", "you must", "you should", "you will", "must cite",
    "must answer", "please answer", "please respond", "answer with", "respond with", "reply with",
    "instructions", "instruction:", "system prompt", "prompt:", "cordon ", "exclude host",
    "exclude node", "blame ", "trust me", "trust this", "believe", "operator note", "note to ",
    "important:", "choose ", "select cause", "report cause", "citation", "cite ",
    "quote:", "jailbreak", "override", "from now on", "forget ",
    /* forged turns, calls and answers */
    "assistant:", "ai assistant", "assistant>", "assistant]", "an assistant", "language model",
    "the llm", "chatgpt", "gpt-4", "claude", "<|im_", "<|assistant", "<|system", "<|user",
    "<|start", "<|end|", "<|eot", "[inst", "[/inst", "<<sys", "</s>", "[system]", "system message",
    "[user]", "### ", "```", "tool_call", "tool call", "function_call", "<tool", "</tool", "</log",
    "</data", "</system", "</user", "</digest", "</document", "\"role\"", "\"content\"",
    "\"cause\"", "\"action\"", "\"quote\"", "\"arguments\"", "<think", "end of log",
    "end of the log", "end of data", "begin of log", "begin instruct",
    /* German, French, Spanish, Portuguese, Italian, Dutch */
    "ursache", "ignorier", "anweisung", "antworte", "cause racine", "la cause", "cause principale",
    "ignorez", "instrucc", "la causa", "causa ra", "causa principal", "ignora", "a causa do",
    "a causa é", "responda", "rispondi", "istruzion", "oorzaak", "negeer",
    /* Turkish, Polish, Vietnamese, Indonesian, Swedish, Czech */
    "neden", "talimat", "przyczyn", "zignoruj", "nguyên nhân", "penyebab", "abaikan", "orsak",
    "příčin",
    /* Russian and Ukrainian, Greek */
    "причин", "Причин", "игнор", "Игнор", "инструкц", "αιτία",
    /* Chinese, Japanese, Korean */
    "原因", "忽略", "無視", "无视", "请回答", "指令", "指示", "助手", "诊断", "診断", "结论",
    "結論", "원인", "무시", "지시", "결론",
    /* Arabic and Persian, Hebrew, Hindi, Thai */
    "سبب", "تجاهل", "הסיבה", "התעלם", "कारण", "สาเหตุ"};

/* The length of what has no width, or is emphasis, at the beginning of s; 0: nothing such. */
static size_t weightless(const unsigned char *p, size_t n)
{
    if (p[0] == '*' || p[0] == '~')
        return 1;
    if (n >= 2 && p[0] == 0xc2 && p[1] == 0xad)
        return 2;
    if (n >= 3 && p[0] == 0xe2 && p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || p[2] >= 0xa8))
        return 3;
    if (n >= 3 && p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf)
        return 3;
    if (n >= 3 && p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)
        return 3;
    return 0;
}

/* One character in folded form to `c`; its length. Other characters keep their bytes. */
static size_t one(const unsigned char *p, size_t n, char *c)
{
    unsigned code;

    *c = (char)p[0];
    if (p[0] >= 'A' && p[0] <= 'Z')
        *c = (char)(p[0] + 32);
    if (p[0] == '\t' || p[0] == '_')
        *c = p[0] == '_' ? '_' : ' ';
    if (n < 3 || p[0] != 0xef || p[1] < 0xbc || p[1] > 0xbd)
        return 1;
    code = (p[1] - 0xbcu) * 64 + (p[2] & 63u) + 32; /* U+FF00 is 32 */
    if (code <= 32 || code >= 127)
        return 1;
    *c = (char)(code >= 'A' && code <= 'Z' ? code + 32 : code);
    return 3;
}

static size_t folded(fl_str text, char *out, size_t cap)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t n = 0;

    for (size_t i = 0; i < text.n && n < cap;) {
        size_t skip = weightless(p + i, text.n - i);
        char c;
        if (skip) {
            i += skip;
            continue;
        }
        i += one(p + i, text.n - i, &c);
        if (c != ' ' || !n || out[n - 1] != ' ')
            out[n++] = c;
    }
    return n;
}

/* Latin and Cyrillic or Greek letters in one word; one Latin letter is a unit's: microseconds. */
static bool disguised(fl_str s)
{
    size_t latin = 0, other = 0;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 'a' && c <= 'z') {
            latin++;
        } else if ((c == 0xd0 || c == 0xd1 || c == 0xce || c == 0xcf) && i + 1 < s.n) {
            other++;
            i++;
        } else {
            latin = other = 0;
        }
        if (latin >= 2 && other)
            return true;
    }
    return false;
}

/* l e t t e r s  that stand apart: five of them in a row. */
static bool spaced_out(fl_str s)
{
    size_t run = 0;

    for (size_t i = 0; i + 1 < s.n; i += 2) {
        bool single = s.p[i] >= 'a' && s.p[i] <= 'z' && (s.p[i + 1] == ' ' || s.p[i + 1] == '.');
        run = single ? run + 1 : 0;
        if (run == 5)
            return true;
        if (!single)
            i--;
    }
    return false;
}

static bool letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Short ones are words of their own and not the middle of some: "rca", "neden", "orsak". */
static bool has_word(fl_str s, fl_str word)
{
    ptrdiff_t at = fl_str_find(s, word);

    if (at < 0 || word.n > 5)
        return at >= 0;
    return (at == 0 || !letter(s.p[at - 1])) &&
           ((size_t)at + word.n == s.n || !letter(s.p[word.n - 1]) ||
            !letter(s.p[(size_t)at + word.n]));
}

static bool is_told(fl_str part)
{
    char low[FL_SHAPE_IN];
    fl_str s = fl_str_n(low, folded(part, low, sizeof(low)));

    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
        if (has_word(s, fl_str_c(told[i])))
            return true;
    return disguised(s) || spaced_out(s);
}

bool fl_is_prose(fl_str text)
{
    while (text.n > FL_SHAPE_IN) {
        if (is_told(fl_str_sub(text, 0, FL_SHAPE_IN)))
            return true;
        text = fl_str_from(text, FL_SHAPE_IN - OVERLAP);
    }
    return is_told(text);
}
