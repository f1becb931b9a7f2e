/*
 * One metric line to numbers.
 *
 * Trainers write step, loss, gradient norm and speed in some thirty layouts, and each team adds its
 * own. So there is no grammar a trainer: names are looked for, each with the values it can have
 * behind it, in an order in which the specific name comes before the general one ("lm loss" before
 * "loss", never "loss scale"). A name counts only as a word of its own, so that `max_steps` is no
 * step and `eval_loss` no training loss.
 *
 * A plain "step 12" with no number that belongs to training beside it is refused: launch banners
 * and argument dumps are full of them. Progress bars count when they are the trainer's, not when
 * they download or tokenise.
 */
#include "diagnose/job.h"

#include <math.h>

static bool ident(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '-';
}

/* A number with thousands separators; "nan", "inf" and quoted numbers are numbers too. */
static size_t number(fl_str s, double *out)
{
    char plain[40];
    size_t q = s.n && (s.p[0] == '"' || s.p[0] == '\''), n = 0, i = q, used;

    while (i < s.n && n < sizeof(plain) - 1) {
        if (s.p[i] == ',' && i + 3 < s.n && s.p[i + 1] >= '0' && s.p[i + 1] <= '9' &&
            s.p[i + 2] >= '0' && s.p[i + 2] <= '9' && s.p[i + 3] >= '0' && s.p[i + 3] <= '9' &&
            n > 0 && !(i + 4 < s.n && s.p[i + 4] >= '0' && s.p[i + 4] <= '9')) {
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

/* The value behind `name`: between them only ' ', ':', '=', a closing quote, or '(...)' units. */
static bool value_of(fl_str s, const char *name, double *out)
{
    fl_str key = fl_str_c(name);
    size_t from = 0;
    ptrdiff_t at;

    while ((at = fl_str_find(fl_str_from(s, from), key)) >= 0) {
        size_t p = from + (size_t)at, q = p + key.n;
        from = q;
        if (p > 0 && ident(s.p[p - 1]) && !(s.p[p - 1] == '/' && key.p[0] == 'g'))
            continue; /* DeepSpeed writes "micro_step=450/global_step=1060" */
        while (q < s.n && strchr(" :='\"", s.p[q]))
            q++;
        if (q == p + key.n && !strchr(" :=", key.p[key.n - 1]))
            continue;
        if (q > 0 && q <= s.n && (s.p[q - 1] == '"' || s.p[q - 1] == '\''))
            q--;
        if (number(fl_str_from(s, q), out))
            return true;
    }
    return false;
}

static bool first_value(fl_str s, const char *const *names, double *out)
{
    for (; *names; names++)
        if (value_of(s, *names, out))
            return true;
    return false;
}

static void set_step(struct fl_metric *m, double v)
{
    if (v >= 0 && v < 1e15)
        m->step = (int64_t)v;
}

/* "12/ 100" at `s`: step and total. */
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

/* "... 12%|###   | 12/100 [01:02<07:30,  5.12s/it, loss=2.1]" */
static bool bar(fl_str s, struct fl_metric *m)
{
    static const char *const others[] = {
        "Loading",    "Map",       "Filter",     "Fetching",   "Download",  "Generating",
        "okeniz",     "Saving",    "Grouping",   "Flattening", "Casting",   "Processing",
        "Extracting", "Preparing", "Running",    "Sanity",     "Upload",    "examples/s",
        "B/s]",       "Building",  "Converting", "Reading",    "Capturing", "prompts"};
    static const char *const evals[] = {"eval", "Eval", "Valid", "valid", "Test", "Predict"};
    ptrdiff_t open = -1;
    size_t i;
    double v;
    fl_str tail;

    for (i = 0; i + 2 < s.n; i++)
        if (s.p[i] == '|' && fraction(fl_str_from(s, i + 1), &m->step, &m->total)) {
            open = fl_str_find_c(fl_str_from(s, i), '[');
            break;
        }
    if (open < 0)
        return false;
    for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
        if (fl_str_has(s, fl_str_c(others[k])))
            return false;
    for (size_t k = 0; k < sizeof(evals) / sizeof(*evals); k++)
        if (fl_str_has(fl_str_sub(s, 0, i), fl_str_c(evals[k])))
            return false;
    tail = fl_str_from(s, i + (size_t)open);
    m->bar = true;
    for (i = 0; i + 4 < tail.n; i++) {
        fl_str unit = fl_str_sub(tail, i, 4);
        size_t d = i;
        if (!fl_str_eqz(unit, "s/it") && !fl_str_eqz(unit, "it/s"))
            continue;
        while (d > 0 && ((tail.p[d - 1] >= '0' && tail.p[d - 1] <= '9') || tail.p[d - 1] == '.'))
            d--;
        if (fl_str_f64(fl_str_sub(tail, d, i - d), &v) && v > 0)
            m->step_ms = unit.p[0] == 's' ? v * 1000 : 1000 / v;
        if (m->step_ms < 10)
            return false; /* a hundred a second: no training step of a language model */
        break;
    }
    return true;
}

static void read_step(fl_str s, struct fl_metric *m)
{
    static const char *const sure[] = {"global_step", "num_updates", "consumed_steps", NULL};
    static const char *const words[] = {"iteration", "iter",  "Iteration", "Iter", "step",
                                        "Step",      "steps", "Steps",     "STEP", NULL};
    static const char *const framed[] = {"iteration", "Iteration", "iter", "Iter",
                                         "[batch=",   "[token=",   "Step", "step",
                                         "Steps:",    "steps",     NULL};
    double v;

    for (const char *const *f = framed; *f; f++) {
        ptrdiff_t at = fl_str_find(s, fl_str_c(*f));
        size_t q;
        if (at < 0 || (at > 0 && ident(s.p[at - 1])))
            continue;
        q = (size_t)at + strlen(*f);
        while (q < s.n && strchr(" :=[#", s.p[q]))
            q++;
        if (fraction(fl_str_from(s, q), &m->step, &m->total))
            return;
    }
    if (first_value(s, sure, &v) || first_value(s, words, &v))
        set_step(m, v);
}

static void read_losses(fl_str s, struct fl_metric *m)
{
    static const char *const losses[] = {"lm loss",
                                         "lm_loss",
                                         "reduced_train_loss",
                                         "Train loss/train/total",
                                         "train/loss",
                                         "train_loss",
                                         "loss/train",
                                         "loss",
                                         "Loss",
                                         "train loss",
                                         "total_loss",
                                         "nll_loss",
                                         "ce_loss",
                                         "loss_total",
                                         NULL};
    static const char *const norms[] = {
        "grad norm",       "grad_norm",        "gnorm",         "Train l2_norm/grad/global",
        "grad-norm",       "gradnorm",         "GradNorm",      "grad_norm_total",
        "train/grad_norm", "global_grad_norm", "gradient norm", NULL};
    static const char *const scales[] = {"loss scale", "loss_scale", NULL};
    double v;

    if (first_value(s, losses, &v)) {
        m->loss = v;
        m->loss_nan = !isfinite(v);
    }
    if (first_value(s, norms, &v)) {
        m->grad_norm = v;
        m->grad_nan = !isfinite(v);
    }
    if (first_value(s, scales, &v))
        m->loss_scale = v;
    if (value_of(s, "number of skipped iterations", &v) || value_of(s, "skipped", &v))
        m->skipped = (int64_t)v;
    if (value_of(s, "number of nan iterations", &v) || value_of(s, "inf_nan_skip_batches", &v))
        m->nans = (int64_t)v;
}

static void read_speed(fl_str s, struct fl_metric *m)
{
    static const char *const rates[] = {"throughput per GPU (TFLOP/s/GPU)",
                                        "tps",
                                        "tgs (tokens/gpu/second)",
                                        "tokens_per_sec_per_gpu",
                                        "wps",
                                        "CurrSamplesPerSec",
                                        "samples/sec",
                                        "tokens/sec",
                                        "tokens/s",
                                        "tflops",
                                        "TFLOPs",
                                        "throughput",
                                        "tgs",
                                        "tok/s",
                                        "rate (tokens/sec)",
                                        "speed",
                                        "samples_per_second",
                                        "tokens_per_second",
                                        "Train throughput/batches_per_sec",
                                        "tokens/s/gpu",
                                        NULL};
    static const struct {
        const char *name;
        double ms;
    } times[] = {{"elapsed time per iteration (ms)", 1},
                 {"elapsed time per iteration (s)", 1000},
                 {"train_step_timing in s", 1000},
                 {"iter time (s)", 1000},
                 {"step_time_ms", 1},
                 {"step_time", 1000},
                 {"iter_time", 1000},
                 {"sec/step", 1000},
                 {"step time (s)", 1000},
                 {"step time", 1000},
                 {"time/step", 1000},
                 {"s/step", 1000},
                 {"sec/iter", 1000},
                 {"seconds", 1000},
                 {"time per step", 1000},
                 {"fwd_bwd_time", 1000},
                 {"dt", 1},
                 {"time", 1}};
    double v;

    if (first_value(s, rates, &v) && v > 0)
        m->rate = v;
    if (!isnan(m->step_ms))
        return;
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        ptrdiff_t at;
        if (!value_of(s, times[i].name, &v) || v <= 0)
            continue;
        at = fl_str_find(s, fl_str_c(times[i].name));
        if (times[i].ms == 1000 && fl_str_has(fl_str_sub(s, (size_t)at, 48), FL_S("ms")))
            v /= 1000; /* the unit stands behind the value */
        if (i + 2 >= sizeof(times) / sizeof(*times) &&
            !fl_str_has(fl_str_sub(s, (size_t)at, 24), FL_S("ms"))) {
            if (!fl_str_has(fl_str_sub(s, (size_t)at, 20), FL_S("s")) || v > 3600)
                continue;
            v *= 1000;
        }
        m->step_ms = v * times[i].ms;
        return;
    }
}

static bool evaluation(fl_str s)
{
    static const char *const words[] = {
        "eval_loss", "validation loss", "valid loss", "valid_loss", "validate step",
        "val_loss",  "\"valid_",        "Eval ",      "test_loss",  "Validation loss",
        "val loss",  "eval loss",       "eval/loss",  "val/loss"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (fl_str_has(s, fl_str_c(words[i])))
            return true;
    return false;
}

/* NeMo and others repeat the latest val_loss on every training line. */
static bool names_training(fl_str s)
{
    static const char *const names[] = {"reduced_train_loss", "train_loss", "train/loss", "'loss'",
                                        "\"loss\"", "train loss", NULL};
    double v;

    return first_value(s, names, &v);
}

static bool eval_loss(fl_str s, double *out)
{
    static const char *const names[] = {"lm loss value", "eval_loss", "valid_loss",
                                        "val_loss",      "val loss",  "validation loss",
                                        "eval/loss",     "loss",      NULL};

    return first_value(s, names, out);
}

bool fl_metric_parse(fl_str s, struct fl_metric *out)
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
    bool megatron, is_bar, loss;

    s = fl_str_sub(s, 0, 4000);
    is_bar = bar(s, &m);
    if (!is_bar && fl_str_has(s, FL_S("%|")))
        return false; /* another kind of bar */
    if (!is_bar)
        read_step(s, &m);
    m.eval = evaluation(s) && !names_training(s);
    read_losses(s, &m);
    read_speed(s, &m);
    if (m.eval && isnan(m.loss) && !m.loss_nan && eval_loss(s, &m.loss))
        m.loss_nan = !isfinite(m.loss);
    loss = m.loss_nan || !isnan(m.loss);
    megatron = m.total >= 0 && fl_str_has(s, FL_S("consumed samples"));
    m.loss_absent = megatron && !loss;
    if (m.step < 0 && !loss)
        return false;
    if (!is_bar && m.total < 0 && !loss && isnan(m.rate) && isnan(m.step_ms) && m.skipped < 0 &&
        !fl_str_has(s, FL_S("global_step")) && !fl_str_has(s, FL_S("[batch=")))
        return false;
    *out = m;
    return true;
}
