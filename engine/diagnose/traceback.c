/*
 * Python tracebacks: each one event, whatever stands between its lines.
 *
 * A traceback belongs to a writer, so the tracebacks of ranks that print line by line into one
 * stream do not mix as long as a prefix tells them apart. Without a prefix they do mix; then the
 * last frame before an exception line counts, which is right whenever the ranks failed alike.
 *
 * Kept are the exception's type and message and the innermost frame, nothing else: the text of a
 * traceback is in the log. A chain ("direct cause", "during handling") numbers its blocks, and the
 * first is the origin. Two forms turn that round, since their wrapper is printed first: "Original
 * Traceback" of a data loader worker and "-- Process N terminated with the following error".
 *
 * The rich library draws the same in a box: frames as "PATH:LINE in FUNCTION" between bars, then
 * the exception below the box. What Python itself says it ignored (a destructor's exception, one of
 * an exit handler) is never an origin: it counts as if something stood before it in its chain.
 *
 * Refused on purpose: guessing an exception from a line that stands in no traceback. Rules do that.
 */
#include "diagnose/job.h"

#include "base/alloc.h"

#define STRANGERS 80 /* lines of another kind that may stand inside a traceback */
#define LINES 1500

/* Bytes kept of an exception's and a frame's texts. */
#define TYPE 200
#define MESSAGE 512
#define FILE_NAME 512
#define FUNCTION 120

/* The frame's texts stand here while the traceback is open: kept for good is only the last. */
struct fl_tb_open {
    struct fl_traceback tb;
    char file[FILE_NAME], function[FUNCTION];
    unsigned lines, strangers;
    bool frames; /* a frame has been seen */
    bool box;    /* drawn by rich, and its lower edge has not come yet */
};

static const char *const library_paths[] = {"site-packages/",
                                            "dist-packages/",
                                            "/lib/python",
                                            "<frozen ",
                                            "/megatron/",
                                            "/deepspeed/",
                                            "/fairseq/",
                                            "/metaseq/",
                                            "/internlm/",
                                            "/internevo/",
                                            "/nemo/",
                                            "/torchtitan/",
                                            "/composer/",
                                            "/llmfoundry/",
                                            "/colossalai/",
                                            "/src/transformers/",
                                            "/lightning/",
                                            "/pytorch_lightning/",
                                            "/src/accelerate/",
                                            "/apex/",
                                            "/torch_npu/",
                                            "/mindspeed/",
                                            "/transformer_engine/"};

static bool library_frame(fl_str file)
{
    for (size_t i = 0; i < sizeof(library_paths) / sizeof(*library_paths); i++)
        if (fl_str_has(file, fl_str_c(library_paths[i])))
            return true;
    return fl_str_starts(file, FL_S("torch/")) || fl_str_starts(file, FL_S("<"));
}

/* Python's own library raises for its caller: json, subprocess and socket are nobody's code. */
static bool stdlib_frame(fl_str file)
{
    return fl_str_starts(file, FL_S("<frozen ")) ||
           (fl_str_has(file, FL_S("/lib/python3")) && !fl_str_has(file, FL_S("-packages/")));
}

/* The launcher's own exceptions: they say that somebody failed, not why. */
static bool launcher_type(fl_str type)
{
    static const char *const names[] = {"ChildFailedError", "SignalException",
                                        "ProcessExitedException", "ProcessRaisedException"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (fl_str_ends(type, fl_str_c(names[i])))
            return true;
    return false;
}

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* "module.Type: message" or "module.Type"; the type's name begins with a capital, or the module is
 * named and the name speaks of an error ("socket.timeout", "struct.error"). */
static bool exception_line(fl_str s, fl_str *type, fl_str *message)
{
    size_t n = 0;
    ptrdiff_t dot;
    fl_str name;

    while (n < s.n && n < TYPE && word_char(s.p[n]))
        n++;
    if (n < 3 || (s.p[0] >= '0' && s.p[0] <= '9') || s.p[n - 1] == '.')
        return false;
    if (n < s.n && s.p[n] != ':')
        return false;
    if (n + 1 < s.n && s.p[n + 1] != ' ')
        return false;
    *type = fl_str_sub(s, 0, n);
    dot = fl_str_rfind_c(*type, '.');
    name = fl_str_from(*type, dot < 0 ? 0 : (size_t)dot + 1);
    if (name.n == 0)
        return false;
    if (!(name.p[0] >= 'A' && name.p[0] <= 'Z') &&
        (dot < 0 || !(fl_str_has(name, FL_S("error")) || fl_str_has(name, FL_S("timeout")) ||
                      fl_str_has(name, FL_S("exception")))))
        return false;
    *message = fl_str_trim(fl_str_from(s, n + 1));
    return true;
}

static fl_str hold(char *room, size_t cap, fl_str s)
{
    s = fl_str_sub(s, 0, cap);
    if (s.n)
        memcpy(room, s.p, s.n);
    return fl_str_n(room, s.n);
}

static void take_frame(struct fl_tb_open *o, fl_str file, uint64_t line, fl_str function)
{
    struct fl_traceback *tb = &o->tb;

    tb->file = hold(o->file, sizeof(o->file), file);
    tb->file_line = line;
    tb->function = hold(o->function, sizeof(o->function), function);
    if (!stdlib_frame(tb->file))
        tb->user = !library_frame(tb->file);
}

/* `File "x.py", line 12, in f` */
static bool frame_line(struct fl_tb_open *o, fl_str s)
{
    ptrdiff_t quote, in;
    fl_str rest, file;
    uint64_t line = 0;

    if (!fl_str_starts(s, FL_S("File \"")))
        return false;
    rest = fl_str_from(s, 6);
    quote = fl_str_find_c(rest, '"');
    if (quote < 0 || !fl_str_starts(fl_str_from(rest, (size_t)quote), FL_S("\", line ")))
        return false;
    file = fl_str_sub(rest, 0, (size_t)quote);
    rest = fl_str_from(rest, (size_t)quote + 8);
    fl_str_u64(rest, UINT32_MAX, &line);
    in = fl_str_find(rest, FL_S(", in "));
    take_frame(o, file, line, in < 0 ? FL_S("") : fl_str_from(rest, (size_t)in + 5));
    return true;
}

/* `│ /run/train.py:12 in f        │`, the borders taken off */
static void box_frame(struct fl_tb_open *o, fl_str s)
{
    ptrdiff_t at = fl_str_find(s, FL_S(" in ")), colon;
    fl_str file, function;
    uint64_t line;

    if (at < 0)
        return;
    file = fl_str_sub(s, 0, (size_t)at);
    colon = fl_str_rfind_c(file, ':');
    if (colon <= 0 || fl_str_find_c(file, ' ') >= 0 ||
        fl_str_u64(fl_str_from(file, (size_t)colon + 1), UINT32_MAX, &line) !=
            file.n - (size_t)colon - 1)
        return;
    file = fl_str_sub(file, 0, (size_t)colon);
    function = fl_str_from(s, (size_t)at + 4);
    if (fl_str_find_c(function, ' ') >= 0)
        return;
    take_frame(o, file, line, function);
}

static void open_traceback(struct fl_job *j, struct fl_writer *w, fl_str message,
                           const struct fl_mark *m)
{
    struct fl_tb_open *o = w->tb;
    bool wrapped;

    if (!o && j->open_tracebacks >= FL_MAX_OPEN_TRACEBACKS)
        return;
    if (!o) {
        o = fl_calloc(1, sizeof(*o));
        if (!o) {
            j->failed = FL_ENOMEM;
            return;
        }
        w->tb = o;
        j->open_tracebacks++;
    }
    wrapped = fl_str_has(message, FL_S("Original Traceback"));
    if (!w->inner && !wrapped)
        w->process = -1;
    *o = (struct fl_tb_open){.tb = {.first = *m, .process = w->process}};
    o->tb.wrapped = wrapped || w->inner;
    if (w->connector || o->tb.wrapped) {
        o->tb.chain = w->chain;
        o->tb.position = o->tb.wrapped ? 0 : (uint16_t)(w->position + (w->position < UINT16_MAX));
    }
    if (!o->tb.chain)
        o->tb.chain = ++j->chains;
    if (w->ignored && !o->tb.position)
        o->tb.position = 1;
    o->box = fl_str_starts(message, FL_S("╭")) || fl_str_starts(message, FL_S("+-"));
    w->connector = w->inner = w->ignored = false;
}

/* Where the n-th traceback of the job is kept. When the room is full the later half is used again
 * and again: a job that dies after ten thousand exceptions it got over dies of the last. */
static size_t slot_of(uint64_t n)
{
    const uint64_t most = FL_MAX_TRACEBACKS, half = most / 2;

    return (size_t)(n < most ? n : half + (n - most) % half);
}

/* The wrapper that was printed before its origin moves behind it in the chain. */
static void demote_wrapper(struct fl_job *j, uint32_t chain)
{
    for (uint64_t i = j->ended_tracebacks; i-- > 0 && j->ended_tracebacks - i < 64;) {
        struct fl_traceback *tb = &j->tracebacks[slot_of(i)];
        if (tb->chain == chain && tb->position < UINT16_MAX)
            tb->position++;
    }
}

/* The texts of a slot stand in one piece of memory, which the next traceback in it takes over. */
static int keep_texts(struct fl_job *j, struct fl_traceback *tb, fl_str type, fl_str message)
{
    fl_str *const to[] = {&tb->type, &tb->message, &tb->file, &tb->function};
    const fl_str from[] = {type, message, tb->file, tb->function};
    static const size_t most[] = {TYPE, MESSAGE, FILE_NAME, FUNCTION};
    char *p = tb->room;

    if (!p)
        p = tb->room = fl_arena_alloc(&j->arena, TYPE + MESSAGE + FILE_NAME + FUNCTION + 4);
    if (!p)
        return FL_ENOMEM;
    for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++) {
        *to[i] = hold(p, most[i], from[i]);
        p[to[i]->n] = 0;
        p += most[i] + 1;
    }
    return FL_OK;
}

static void drop(struct fl_job *j, struct fl_writer *w)
{
    fl_free(w->tb);
    w->tb = NULL;
    j->open_tracebacks--;
}

static void end_traceback(struct fl_job *j, struct fl_writer *w, fl_str type, fl_str message,
                          const struct fl_mark *m)
{
    struct fl_traceback tb = w->tb->tb;
    size_t slot = slot_of(j->ended_tracebacks);

    w->chain = tb.chain;
    w->position = tb.position;
    tb.last = *m;
    tb.torchrun = launcher_type(type);
    if (slot < j->ntracebacks)
        tb.room = j->tracebacks[slot].room;
    if (keep_texts(j, &tb, type, message) ||
        fl_grow((void **)&j->tracebacks, &j->tracebacks_cap, slot + 1, sizeof(*j->tracebacks))) {
        j->failed = FL_ENOMEM;
    } else {
        if (tb.wrapped)
            demote_wrapper(j, tb.chain);
        j->tracebacks[slot] = tb;
        j->ntracebacks += slot == j->ntracebacks;
        j->ended_tracebacks++;
        w->tb_done = (uint32_t)slot + 1;
    }
    drop(j, w);
}

void fl_traceback_close(struct fl_job *j, struct fl_writer *w)
{
    if (w->tb)
        drop(j, w);
}

#define BAR FL_S("│")

/* Exception groups draw a frame of '|' and '+' on the left; rich one of bars on both sides. */
static fl_str without_border(fl_str s)
{
    fl_str t = fl_str_trim(s);

    while (t.n && (t.p[0] == '|' || (t.p[0] == '+' && t.n > 1 && t.p[1] == ' ')))
        t = fl_str_trim(fl_str_from(t, 1));
    if (fl_str_starts(t, BAR)) {
        t = fl_str_trim(fl_str_from(t, BAR.n));
        if (fl_str_ends(t, BAR))
            t = fl_str_trim(fl_str_sub(t, 0, t.n - BAR.n));
    }
    return t;
}

/* A line that says what the next traceback is to the one before. */
static bool between(struct fl_writer *w, fl_str t)
{
    uint64_t v;

    if (fl_str_starts(t, FL_S("The above exception was the direct cause")) ||
        fl_str_starts(t, FL_S("During handling of the above exception"))) {
        w->connector = true;
        return true;
    }
    if (fl_str_starts(t, FL_S("Exception ignored in")) ||
        fl_str_starts(t, FL_S("Error in atexit._run_exitfuncs:"))) {
        w->ignored = true;
        return true;
    }
    if (fl_str_starts(t, FL_S("-- Process ")) &&
        fl_str_has(t, FL_S("terminated with the following error"))) {
        w->inner = true;
        w->process = fl_str_u64(fl_str_from(t, 11), 4096, &v) ? (int32_t)v : -1;
        return true;
    }
    return false;
}

/* Within the box nothing is an exception: its lines are source, and the values of variables. */
static bool box_line(struct fl_tb_open *o, fl_str message, fl_str t)
{
    fl_str s = fl_str_trim(message);

    if (!o->box)
        return false;
    if (fl_str_starts(s, FL_S("╰")) || fl_str_starts(s, FL_S("+-"))) {
        o->box = false;
        return true;
    }
    if (!fl_str_starts(s, BAR) && !fl_str_starts(s, FL_S("|")))
        return false;
    o->frames = true;
    box_frame(o, fl_str_ends(t, FL_S("|")) ? fl_str_trim(fl_str_sub(t, 0, t.n - 1)) : t);
    return true;
}

enum fl_tb_part fl_traceback_line(struct fl_job *j, struct fl_writer *w, fl_str message,
                                  const struct fl_mark *m)
{
    fl_str t = without_border(message), type, text;
    struct fl_tb_open *o = w->tb;

    if (fl_str_find(fl_str_sub(t, 0, 400), FL_S("Traceback (most recent call last)")) >= 0) {
        open_traceback(j, w, t, m);
        return FL_TB_INSIDE;
    }
    if (between(w, t))
        return FL_TB_INSIDE;
    if (!o)
        return FL_TB_NONE;
    if (++o->lines > LINES) {
        drop(j, w);
        return FL_TB_NONE;
    }
    if (box_line(o, message, t))
        return FL_TB_INSIDE;
    if (frame_line(o, t)) {
        o->frames = true;
        return FL_TB_INSIDE;
    }
    if (t.n == 0 || (message.n && (message.p[0] == ' ' || message.p[0] == '\t') && o->frames &&
                     t.p == fl_str_trim(message).p))
        return FL_TB_INSIDE;
    if (exception_line(t, &type, &text)) {
        end_traceback(j, w, type, text, m);
        return FL_TB_END;
    }
    if (++o->strangers > STRANGERS)
        drop(j, w);
    return FL_TB_NONE;
}
