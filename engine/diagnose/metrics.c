/*
 * One metric line to numbers.
 *
 * Trainers write step, loss, gradient norm and speed in some thirty layouts, and each team adds its
 * own. So there is no grammar a trainer: names are looked for, each with the values it can have
 * behind it. A name counts only as a word of its own, so that `max_steps` is no step and
 * `eval_loss` no training loss. Where several names of one meaning stand in a line, the earlier in
 * the table is the more specific and wins ("lm loss" before "loss").
 *
 * The line is walked once: at each beginning of a word the few names with that first letter are
 * compared. Looking for ninety names by memmem() one after another was forty percent of the whole
 * run on a log in which every rank prints its step.
 *
 * A plain "step 12" with no number that belongs to training beside it is refused: launch banners
 * and argument dumps are full of them. Progress bars count when they are the trainer's, not when
 * they download or tokenise.
 */
#include "diagnose/job.h"

#include <math.h>

enum meaning {
    LOSS,
    NORM,
    SCALE,
    SKIPPED,
    NANS,
    RATE,
    TIME_MS,
    TIME_S,
    TIME_ANY, /* the unit stands behind the value */
    STEP_SURE,
    STEP_WORD,
    TRAINING,   /* a loss that is certainly the training's */
    EVALUATION, /* needs no value */
    EVAL_LOSS,
    MEANINGS
};

#define N(text, meaning)                                                                           \
    {                                                                                              \
        {text, sizeof(text) - 1}, meaning                                                          \
    }
/* In each meaning the specific name stands first. */
static const struct name {
    fl_str text;
    uint8_t meaning;
} names[] = {N("lm loss", LOSS),
             N("lm_loss", LOSS),
             N("reduced_train_loss", LOSS),
             N("Train loss/train/total", LOSS),
             N("train/loss", LOSS),
             N("train_loss", LOSS),
             N("loss/train", LOSS),
             N("loss", LOSS),
             N("Loss", LOSS),
             N("train loss", LOSS),
             N("total_loss", LOSS),
             N("nll_loss", LOSS),
             N("ce_loss", LOSS),
             N("loss_total", LOSS),
             N("grad norm", NORM),
             N("grad_norm", NORM),
             N("gnorm", NORM),
             N("Train l2_norm/grad/global", NORM),
             N("grad-norm", NORM),
             N("gradnorm", NORM),
             N("GradNorm", NORM),
             N("grad_norm_total", NORM),
             N("train/grad_norm", NORM),
             N("global_grad_norm", NORM),
             N("gradient norm", NORM),
             N("loss scale", SCALE),
             N("loss_scale", SCALE),
             N("number of skipped iterations", SKIPPED),
             N("skipped", SKIPPED),
             N("number of nan iterations", NANS),
             N("inf_nan_skip_batches", NANS),
             N("throughput per GPU (TFLOP/s/GPU)", RATE),
             N("tps", RATE),
             N("tgs (tokens/gpu/second)", RATE),
             N("tokens_per_sec_per_gpu", RATE),
             N("wps", RATE),
             N("CurrSamplesPerSec", RATE),
             N("samples/sec", RATE),
             N("tokens/sec", RATE),
             N("tokens/s", RATE),
             N("tflops", RATE),
             N("TFLOPs", RATE),
             N("throughput", RATE),
             N("tgs", RATE),
             N("tok/s", RATE),
             N("rate (tokens/sec)", RATE),
             N("speed", RATE),
             N("samples_per_second", RATE),
             N("tokens_per_second", RATE),
             N("Train throughput/batches_per_sec", RATE),
             N("tokens/s/gpu", RATE),
             N("Tokens/s/device", RATE),
             N("elapsed time per iteration (ms)", TIME_MS),
             N("step_time_ms", TIME_MS),
             N("dt", TIME_ANY),
             N("elapsed time per iteration (s)", TIME_S),
             N("train_step_timing in s", TIME_S),
             N("iter time (s)", TIME_S),
             N("step_time", TIME_ANY),
             N("iter_time", TIME_ANY),
             N("sec/step", TIME_S),
             N("step time (s)", TIME_S),
             N("step time", TIME_ANY),
             N("timing_s/step", TIME_S),
             N("time/step", TIME_ANY),
             N("s/step", TIME_S),
             N("sec/iter", TIME_S),
             N("s/it", TIME_S),
             N("seconds", TIME_S),
             N("time per step", TIME_ANY),
             N("fwd_bwd_time", TIME_S),
             N("time", TIME_ANY),
             N("global_step", STEP_SURE),
             N("num_updates", STEP_SURE),
             N("consumed_steps", STEP_SURE),
             N("iteration", STEP_WORD),
             N("iter", STEP_WORD),
             N("Iteration", STEP_WORD),
             N("Iter", STEP_WORD),
             N("step", STEP_WORD),
             N("Step", STEP_WORD),
             N("steps", STEP_WORD),
             N("Steps", STEP_WORD),
             N("STEP", STEP_WORD),
             N("[batch", STEP_WORD),
             N("[token", STEP_WORD),
             N("reduced_train_loss", TRAINING),
             N("train_loss", TRAINING),
             N("train/loss", TRAINING),
             N("'loss'", TRAINING),
             N("\"loss\"", TRAINING),
             N("train loss", TRAINING),
             N("eval_loss", EVALUATION),
             N("validation loss", EVALUATION),
             N("valid loss", EVALUATION),
             N("valid_loss", EVALUATION),
             N("validate step", EVALUATION),
             N("val_loss", EVALUATION),
             N("\"valid_", EVALUATION),
             N("Eval ", EVALUATION),
             N("test_loss", EVALUATION),
             N("Validation loss", EVALUATION),
             N("Validation: ", EVALUATION),
             N("Validating", EVALUATION),
             N("val loss", EVALUATION),
             N("eval loss", EVALUATION),
             N("eval/loss", EVALUATION),
             N("val/loss", EVALUATION),
             N("lm loss value", EVAL_LOSS),
             N("eval_loss", EVAL_LOSS),
             N("valid_loss", EVAL_LOSS),
             N("val_loss", EVAL_LOSS),
             N("val loss", EVAL_LOSS),
             N("validation loss", EVAL_LOSS),
             N("eval/loss", EVAL_LOSS),
             N("val/loss", EVAL_LOSS)};

#define NAMES (sizeof(names) / sizeof(*names))
#define NONE UINT8_MAX

/* What a line says: for each meaning the best name's value. */
struct found {
    uint8_t by[MEANINGS]; /* index in names, NONE */
    double value[MEANINGS];
    size_t behind[MEANINGS]; /* position behind the value */
    int64_t step, total;     /* "12/100" behind a step word, -1 */
};

static bool ident(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '-';
}

static bool digit(fl_str s, size_t i)
{
    return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

/* A number with thousands separators; "nan", "inf" and quoted numbers are numbers too. */
static size_t number(fl_str s, double *out)
{
    char plain[40];
    size_t q = s.n && (s.p[0] == '"' || s.p[0] == '\''), n = 0, i = q, used;

    while (i < s.n && n < sizeof(plain)) {
        if (s.p[i] == ',' && n > 0 && digit(s, i + 1) && digit(s, i + 2) && digit(s, i + 3) &&
            !digit(s, i + 4)) {
            i++;
            continue;
        }
        if (!ident(s.p[i]) && s.p[i] != '.' && s.p[i] != '+')
            break;
        plain[n++] = s.p[i++];
    }
    used = fl_str_f64(fl_str_n(plain, n), out);
    return used ? q + used : 0;
}

/* "12/ 100": step and total. */
static bool fraction(fl_str s, int64_t *step, int64_t *total)
{
    uint64_t a, b;
    size_t n;

    while (s.n && s.p[0] == ' ')
        s = fl_str_from(s, 1);
    n = fl_str_u64(s, INT64_MAX, &a);
    if (!n || n >= s.n || s.p[n] != '/')
        return false;
    s = fl_str_from(s, n + 1);
    while (s.n && s.p[0] == ' ')
        s = fl_str_from(s, 1);
    if (!fl_str_u64(s, INT64_MAX, &b))
        return false;
    *step = (int64_t)a;
    *total = (int64_t)b;
    return true;
}

/* The name `k` stands at `p`: is there a value behind it, and is it better than what was found? */
static void take(fl_str s, size_t p, uint8_t k, struct found *f)
{
    const struct name *n = &names[k];
    size_t end = p + n->text.n, q = end, used;
    bool step = n->meaning == STEP_WORD;
    double v;

    if (n->meaning == EVALUATION) {
        f->by[EVALUATION] = k;
        return;
    }
    if (f->by[n->meaning] <= k && !(step && f->step < 0))
        return;
    while (q < s.n && (s.p[q] == ' ' || s.p[q] == ':' || s.p[q] == '=' || s.p[q] == '\'' ||
                       s.p[q] == '"' || (step && (s.p[q] == '[' || s.p[q] == '#'))))
        q++;
    if (q == end)
        return;
    if (step && f->step < 0 && fraction(fl_str_from(s, q), &f->step, &f->total))
        return;
    if (f->by[n->meaning] <= k)
        return;
    if (s.p[q - 1] == '"' || s.p[q - 1] == '\'')
        q--;
    used = number(fl_str_from(s, q), &v);
    if (!used)
        return;
    f->by[n->meaning] = k;
    f->value[n->meaning] = v;
    f->behind[n->meaning] = q + used;
}

_Static_assert(NAMES <= FL_METRIC_NAMES, "the chains have a link for each name");

void fl_metric_names_init(struct fl_metric_names *c)
{
    memset(c->first, NONE, sizeof(c->first));
    for (size_t i = NAMES; i-- > 0;) { /* in the table's order */
        unsigned char at = (unsigned char)names[i].text.p[0] & 127;
        c->next[i] = c->first[at];
        c->first[at] = (uint8_t)i;
    }
}

/* One walk over the line. */
static void walk(fl_str s, const struct fl_metric_names *chains, struct found *f)
{
    memset(f->by, NONE, sizeof(f->by));
    f->step = f->total = -1;
    for (size_t p = 0; p + 1 < s.n; p++) {
        unsigned char c = (unsigned char)s.p[p];
        uint8_t k = c < 128 ? chains->first[c] : NONE;
        if (k == NONE || (p > 0 && ident(s.p[p - 1]) && !(s.p[p - 1] == '/' && c == 'g')))
            continue; /* DeepSpeed writes "micro_step=450/global_step=1060" */
        for (; k != NONE; k = chains->next[k])
            if (names[k].text.p[1] == s.p[p + 1] && names[k].text.n <= s.n - p &&
                memcmp(s.p + p, names[k].text.p, names[k].text.n) == 0)
                take(s, p, k, f);
    }
}

static bool any_of(fl_str s, const char *const *words)
{
    for (; *words; words++)
        if (fl_str_has(s, fl_str_c(*words)))
            return true;
    return false;
}

/* The same for a short text and many words, by their first letters. */
static bool any_word(fl_str s, const char *const *words)
{
    uint64_t first[4] = {0};

    for (const char *const *w = words; *w; w++)
        first[(unsigned char)**w >> 6] |= 1ull << (**w & 63);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (!(first[c >> 6] >> (c & 63) & 1))
            continue;
        for (const char *const *w = words; *w; w++)
            if (**w == s.p[i] && fl_str_starts(fl_str_from(s, i), fl_str_c(*w)))
                return true;
    }
    return false;
}

/* Milliseconds a step from a bar's "5.12s/it" or "3.4it/s"; false when it is far too fast. */
static bool bar_speed(fl_str tail, double *ms)
{
    double v;

    for (size_t i = 0; i + 4 < tail.n + 1; i++) {
        fl_str unit = fl_str_sub(tail, i, 4);
        size_t d = i;
        if (!fl_str_eqz(unit, "s/it") && !fl_str_eqz(unit, "it/s"))
            continue;
        while (d > 0 && (digit(tail, d - 1) || tail.p[d - 1] == '.'))
            d--;
        if (fl_str_f64(fl_str_sub(tail, d, i - d), &v) && v > 0)
            *ms = unit.p[0] == 's' ? v * 1000 : 1000 / v;
        return !(*ms < 10); /* a hundred a second is no training step of a language model */
    }
    return true;
}

/* "... 12%|###   | 12/100 [01:02<07:30,  5.12s/it, loss=2.1]" */
static bool bar(fl_str s, struct fl_metric *m)
{
    static const char *const others[] = {
        "Loading",    "Map",       "Filter",    "Fetching",   "Download", "Generating",
        "okeniz",     "Saving",    "Grouping",  "Flattening", "Casting",  "Processing",
        "Extracting", "Preparing", "Running",   "Sanity",     "Upload",   "Building",
        "Converting", "Reading",   "Capturing", "prompts",    "eval",     "Eval",
        "Valid",      "valid",     "Test",      "Predict",    NULL};
    static const char *const units[] = {"examples/s", "B/s]", NULL};
    ptrdiff_t open = -1;
    size_t i;

    for (i = 0; i + 2 < s.n; i++) {
        const char *pipe = memchr(s.p + i, '|', s.n - i);
        if (!pipe)
            return false;
        i = (size_t)(pipe - s.p);
        if (fraction(fl_str_from(s, i + 1), &m->step, &m->total)) {
            open = fl_str_find_c(fl_str_from(s, i), '[');
            break;
        }
    }
    if (open < 0 || any_word(fl_str_sub(s, 0, i), others) ||
        any_of(fl_str_from(s, i + (size_t)open), units))
        return false;
    m->bar = true;
    return bar_speed(fl_str_from(s, i + (size_t)open), &m->step_ms);
}

/* The unit behind a time that does not say it in its name. */
static void read_time(fl_str s, const struct found *f, struct fl_metric *m)
{
    fl_str unit;
    double v;

    if (!isnan(m->step_ms))
        return;
    if (f->by[TIME_MS] != NONE && f->value[TIME_MS] > 0) {
        m->step_ms = f->value[TIME_MS];
    } else if (f->by[TIME_S] != NONE && f->value[TIME_S] > 0) {
        m->step_ms = f->value[TIME_S] * 1000;
    } else if (f->by[TIME_ANY] != NONE && f->value[TIME_ANY] > 0) {
        v = f->value[TIME_ANY];
        unit = fl_str_trim(fl_str_sub(s, f->behind[TIME_ANY], 8));
        if (fl_str_starts(unit, FL_S("ms")))
            m->step_ms = v;
        else if (fl_str_starts(unit, FL_S("s")) || v < 3600)
            m->step_ms = v * 1000;
    }
}

static void set_step(struct fl_metric *m, double v)
{
    if (v >= 0 && v < 1e15)
        m->step = (int64_t)v;
}

/* "nan" and 1e300 are numbers, but no counts. */
static void set_count(int64_t *out, const struct found *f, enum meaning what)
{
    if (f->by[what] != NONE && f->value[what] >= 0 && f->value[what] < 1e15)
        *out = (int64_t)f->value[what];
}

static void fill(fl_str s, const struct found *f, struct fl_metric *m)
{
    m->eval = f->by[EVALUATION] != NONE && f->by[TRAINING] == NONE;
    if (f->by[LOSS] != NONE) {
        m->loss = f->value[LOSS];
        m->loss_nan = !isfinite(m->loss);
    } else if (m->eval && f->by[EVAL_LOSS] != NONE) {
        m->loss = f->value[EVAL_LOSS];
        m->loss_nan = !isfinite(m->loss);
    }
    if (f->by[NORM] != NONE) {
        m->grad_norm = f->value[NORM];
        m->grad_nan = !isfinite(m->grad_norm);
    }
    if (f->by[SCALE] != NONE)
        m->loss_scale = f->value[SCALE];
    set_count(&m->skipped, f, SKIPPED);
    set_count(&m->nans, f, NANS);
    if (f->by[RATE] != NONE && f->value[RATE] > 0)
        m->rate = f->value[RATE];
    read_time(s, f, m);
    if (m->bar)
        return;
    if (f->step >= 0) {
        m->step = f->step;
        m->total = f->total;
    } else if (f->by[STEP_SURE] != NONE) {
        set_step(m, f->value[STEP_SURE]);
    } else if (f->by[STEP_WORD] != NONE) {
        set_step(m, f->value[STEP_WORD]);
    }
}

bool fl_metric_parse(fl_str s, const struct fl_metric_names *chains, struct fl_metric *out)
{
    struct fl_metric m = {.step = -1,
                          .total = -1,
                          .loss = NAN,
                          .grad_norm = NAN,
                          .step_ms = NAN,
                          .rate = NAN,
                          .skipped = -1,
                          .nans = -1,
                          .loss_scale = NAN};
    static const char *const speed_units[] = {" sec/step", " s/step", " ms/step", " s/it", NULL};
    struct found f;
    bool loss;

    s = fl_str_sub(s, 0, 4000);
    if (!bar(s, &m) && fl_str_has(s, FL_S("%|")))
        return false; /* another kind of bar */
    if (!m.bar)
        m.step = m.total = -1;
    walk(s, chains, &f);
    fill(s, &f, &m);
    loss = m.loss_nan || !isnan(m.loss);
    if (m.step < 0 && !loss)
        return false;
    if (!m.bar && m.total < 0 && !loss && isnan(m.rate) && isnan(m.step_ms) && m.skipped < 0 &&
        f.by[STEP_SURE] == NONE && !any_of(s, speed_units))
        return false;
    m.loss_absent = m.total >= 0 && !loss && fl_str_has(s, FL_S("consumed samples"));
    *out = m;
    return true;
}
