/*
 * The answer as text, for a tired person at 3 a.m.
 *
 * The first line is the verdict. Then, under short labels: why, where, the lines that prove it,
 * what followed, what to do, how much of the job was seen. Each section has its share of 24 lines
 * and is cut, never scrolled: who wants the rest asks with -v. The host list is the one thing never
 * cut or wrapped, because it is copied into a command.
 *
 * Unknown and healthy have their own words: unknown says what was seen, the best leads and which
 * logs would help; healthy says how far the job came. Neither pretends to a cause.
 */
#include "out_text.h"

#include <inttypes.h>
#include <string.h>

#define SCREEN 24
#define PROOFS 4
#define PROOF_LINES 5

unsigned out_place(const struct out *o, const struct fl_place *at, unsigned columns)
{
    char number[24];
    size_t n = (size_t)snprintf(number, sizeof(number), ":%" PRIu64, at->line);
    unsigned name;

    name = out_name(o, at->file ? at->file : "?", columns > n + 4 ? columns - (unsigned)n : 4);
    fputs(number, o->f);
    return name + (unsigned)n;
}

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static const char *sureness(double confidence)
{
    if (confidence >= 0.9)
        return "sure";
    return confidence >= 0.6 ? "likely" : "weak";
}

static void verdict(const struct out *o, const struct fl_report *r)
{
    enum out_style style = OUT_RED;
    const char *title = r->cause.title ? r->cause.title : "";
    const char *class_name = r->cause.class_name;
    struct out_line tail = {.n = 0};
    size_t used;

    if (is(r->outcome, "unknown")) {
        style = OUT_YELLOW;
        title = "A failure, but these logs do not show its cause";
    } else if (is(r->outcome, "healthy")) {
        style = OUT_GREEN;
        title = "No failure found";
    }
    if (!is(r->outcome, "unknown")) {
        out_line_add(&tail, "   (%s%s%s: %.0f %%)",
                     class_name && !is(class_name, "-") ? class_name : "",
                     class_name && !is(class_name, "-") ? ", " : "", sureness(r->cause.confidence),
                     r->cause.confidence * 100);
    }
    used = out_columns(r->cause.id) + 2;
    out_text(o, style, r->cause.id);
    fputs("  ", o->f);
    if (used + out_columns(title) + tail.n <= o->width) {
        fprintf(o->f, "%s%s\n\n", title, tail.p);
        return;
    }
    /* A long title is worth more than the blank line below it. */
    out_cut(o, title, used + 10 < o->width ? o->width - (unsigned)used : 10);
    fprintf(o->f, "\n%s%s", tail.p, tail.n ? "\n" : "");
}

static bool starts(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

/* A reason that says more than the verdict and the proof do. */
static const char *best_reason(const struct fl_report *r)
{
    for (size_t i = 0; i < r->nreasons; i++) {
        if (!starts(r->reasons[i], "rule ") && !starts(r->reasons[i], "began first") &&
            !is(r->reasons[i], r->cause.summary))
            return r->reasons[i];
    }
    return NULL;
}

static unsigned why(const struct out *o, const struct fl_report *r, bool verbose)
{
    const char *reason = best_reason(r);
    unsigned lines = 0;

    if (r->cause.summary && *r->cause.summary)
        lines = out_wrapped(o, "WHY", r->cause.summary, verbose ? 0 : 3);
    if (!verbose && reason && lines < 3)
        lines += out_wrapped(o, lines ? "" : "WHY", reason, 3 - lines);
    for (size_t i = 0; verbose && i < r->nreasons; i++) {
        if (!is(r->reasons[i], r->cause.summary))
            lines += out_wrapped(o, lines ? "" : "WHY", r->reasons[i], 0);
    }
    return lines;
}

static void add_part(struct out_line *l, const char *text)
{
    if (l->n)
        out_line_add(l, ", ");
    out_line_add(l, "%s", text);
}

static unsigned where(const struct out *o, const struct fl_report *r, bool verbose)
{
    struct out_line l = {.n = 0};
    size_t max = verbose ? 200 : 6;

    if (r->location.nranks) {
        add_part(&l, r->location.nranks > 1 ? "ranks " : "rank ");
        out_line_ranges(&l, r->location.ranks, r->location.nranks, max);
    }
    if (r->location.nhosts) {
        add_part(&l, r->location.nhosts > 1 ? "hosts " : "host ");
        out_line_names(&l, r->location.hosts, r->location.nhosts, max);
    }
    if (r->location.ngpus) {
        add_part(&l, r->location.ngpus > 1 ? "GPUs " : "GPU ");
        out_line_names(&l, r->location.gpus, r->location.ngpus, verbose ? max : 3);
    }
    if (r->location.ngpu_indices) {
        add_part(&l, r->location.ngpu_indices > 1 ? "GPU indices " : "GPU index ");
        out_line_ranges(&l, r->location.gpu_indices, r->location.ngpu_indices, max);
    }
    return l.n ? out_wrapped(o, "WHERE", l.p, verbose ? 0 : 2) : 0;
}

/* The first lines are the decisive ones: they get the room that fewer others leave. */
static unsigned proof(const struct out *o, const struct fl_report *r, const char *label)
{
    size_t n = r->nevidence < PROOFS ? r->nevidence : PROOFS;
    unsigned lines = 0;

    for (size_t i = 0; i < n; i++) {
        const struct fl_evidence *e = &r->evidence[i];
        unsigned room = o->width - OUT_GUTTER, used, max;

        max = PROOF_LINES - lines - (unsigned)(n - i - 1);
        out_label(o, i ? "" : label);
        used = out_place(o, &e->at, room / 2) + 2;
        fputs("  ", o->f);
        lines += out_quote(o, e->text ? e->text : "", e->match_at, e->match_len,
                           room > used + 20 ? room - used : 20, max < 3 ? max : 3);
    }
    return lines;
}

static unsigned followed(const struct out *o, const struct fl_report *r, bool verbose)
{
    size_t max = verbose ? r->nfollow_on : 2;
    struct out_line rest = {.n = 0};
    unsigned lines = 0;

    for (size_t i = 0; i < r->nfollow_on && i < max; i++) {
        const struct fl_follow_on *f = &r->follow_on[i];
        struct out_line l = {.n = 0};

        out_line_add(&l, "%s", f->cause);
        if (f->count > 1)
            out_line_add(&l, " %" PRIu64 " times", f->count);
        if (f->rank_count)
            out_line_add(&l, " on %" PRIu32 " rank%s", f->rank_count, f->rank_count > 1 ? "s" : "");
        if (f->first.file)
            out_line_add(&l, ", first at %s:%" PRIu64, f->first.file, f->first.line);
        lines += out_wrapped(o, i ? "" : "THEN", l.p, verbose ? 0 : 1);
    }
    if (r->nfollow_on > max) {
        out_line_add(&rest, "and %zu more kind%s of error that followed", r->nfollow_on - max,
                     r->nfollow_on - max > 1 ? "s" : "");
        lines += out_wrapped(o, "", rest.p, 1);
    }
    return lines;
}

static void decision_words(const struct fl_report *r, struct out_line *l)
{
    static const char *const words[][2] = {
        {"restart", "Restart the job."},
        {"restart_elsewhere", "Restart the job on other nodes."},
        {"test_first", "Test or reset the GPUs before restarting."},
        {"roll_back", "Roll back to an earlier checkpoint."},
        {"ask", "Do not restart yet: a person must look."},
        {"stop", "Do not restart: the same error would come again."},
        {"none", "Nothing to do."}};

    if (is(r->action.id, "wait_and_retry")) {
        out_line_add(l, "Wait until the service is back, then restart the job.");
    } else if (is(r->action.decision, "restart_elsewhere") && r->action.nexclude_hosts) {
        out_line_add(l, "Restart the job without ");
        out_line_names(l, r->action.exclude_hosts, r->action.nexclude_hosts, 4);
        out_line_add(l, ".");
    } else {
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
            if (is(r->action.decision, words[i][0]))
                out_line_add(l, "%s", words[i][1]);
        }
    }
    if (r->action.id && !is(r->action.id, "none"))
        out_line_add(l, "%s(%s)", l->n ? " " : "", r->action.id);
}

static void exclude(const struct out *o, const struct fl_report *r)
{
    if (!r->action.nexclude_hosts)
        return;
    out_label(o, "");
    fputs("--exclude=", o->f);
    for (size_t i = 0; i < r->action.nexclude_hosts; i++) {
        fputs(i ? "," : "", o->f);
        out_text(o, OUT_PLAIN, r->action.exclude_hosts[i]);
    }
    fputs("   (for srun, sbatch)\n", o->f);
}

static void resume(const struct out *o, const struct fl_report *r)
{
    struct out_line l = {.n = 0};

    if (r->action.resume_step >= 0)
        out_line_add(&l, "Resume at step %" PRId64, r->action.resume_step);
    else if (r->action.checkpoint)
        out_line_add(&l, "Resume");
    if (r->action.checkpoint)
        out_line_add(&l, " from checkpoint %s", r->action.checkpoint);
    if (r->action.skip_from >= 0 && r->action.skip_to >= 0)
        out_line_add(&l, "%s steps %" PRId64 " to %" PRId64, l.n ? ", skip" : "Skip",
                     r->action.skip_from, r->action.skip_to);
    if (l.n)
        out_wrapped(o, "", l.p, 2);
}

/* `room`: lines the advice may take. */
static void action(const struct out *o, const struct fl_report *r, bool verbose, unsigned room)
{
    const char *advice = r->action.advice, *reason = r->action.why;
    struct out_line l = {.n = 0};

    if (!advice || !*advice)
        advice = reason;
    decision_words(r, &l);
    out_wrapped(o, "DO", l.p, verbose ? 0 : 2);
    exclude(o, r);
    if (!is(r->action.decision, "none"))
        resume(o, r);
    if (advice && *advice)
        out_wrapped(o, "", advice, verbose ? 0 : room);
    if (verbose && reason && *reason && strcmp(reason, advice) != 0)
        out_wrapped(o, "", reason, 0);
}

static void course(const struct out *o, const struct fl_report *r)
{
    struct out_line l = {.n = 0};
    const char *phase = r->timeline.phase;

    if (phase)
        out_line_add(&l, "phase %s", is(phase, "startup") ? "start-up" : phase);
    if (r->timeline.last_step >= 0) {
        out_line_add(&l, "%sstep %" PRId64, l.n ? ", " : "", r->timeline.last_step);
        if (r->timeline.total_steps >= 0)
            out_line_add(&l, " of %" PRId64, r->timeline.total_steps);
        if (r->timeline.last_progress_time)
            out_line_add(&l, " at %s", r->timeline.last_progress_time);
        if (r->timeline.last_healthy_step >= 0 &&
            r->timeline.last_healthy_step != r->timeline.last_step)
            out_line_add(&l, ", healthy until %" PRId64, r->timeline.last_healthy_step);
    }
    if (r->nattempts > 1)
        out_line_add(&l, "%s%zu attempts", l.n ? ", " : "", r->nattempts);
    if (l.n)
        out_wrapped(o, "", l.p, 1);
}

/* Files that were broken or left out: a wrong answer often starts there. */
static void troubles(const struct out *o, const struct fl_report *r)
{
    size_t noted = 0, shown = 0;
    struct out_line l = {.n = 0};

    for (size_t i = 0; i < r->input.nfiles; i++) {
        struct out_line note = {.n = 0};

        if (!r->input.files[i].note)
            continue;
        noted++;
        if (shown++ > 0)
            continue;
        out_line_add(&note, "%s: %s", r->input.files[i].name, r->input.files[i].note);
        out_wrapped(o, "", note.p, 1);
    }
    if (noted > 1)
        out_line_add(&l, "%zu more files with a note", noted - 1);
    if (r->input.nskipped)
        out_line_add(&l, "%s%zu file%s skipped", l.n ? ", " : "", r->input.nskipped,
                     r->input.nskipped > 1 ? "s" : "");
    if (r->input.cut_lines)
        out_line_add(&l, "%s%" PRIu64 " over-long line%s cut", l.n ? ", " : "", r->input.cut_lines,
                     r->input.cut_lines > 1 ? "s" : "");
    if (noted > 1 || r->input.nskipped)
        out_line_add(&l, " (-v lists them)");
    if (l.n)
        out_wrapped(o, "", l.p, 1);
    for (size_t i = 0; i < r->input.nleft_out; i++) {
        struct out_line left = {.n = 0};
        out_line_add(&left, "left out: %s", r->input.left_out[i]);
        out_wrapped(o, "", left.p, 1);
    }
}

static void seen(const struct out *o, const struct fl_report *r)
{
    struct out_line l = {.n = 0};

    if (r->input.ranks_seen > 0 && r->input.world_size > 0)
        out_line_add(&l, "%" PRId32 " of %" PRId32 " ranks, ", r->input.ranks_seen,
                     r->input.world_size);
    else if (r->input.ranks_seen > 0)
        out_line_add(&l, "%" PRId32 " rank%s, ", r->input.ranks_seen,
                     r->input.ranks_seen > 1 ? "s" : "");
    else if (r->input.world_size > 0)
        out_line_add(&l, "a job of %" PRId32 " ranks, ", r->input.world_size);
    if (r->input.hosts_seen > 0)
        out_line_add(&l, "%" PRId32 " host%s, ", r->input.hosts_seen,
                     r->input.hosts_seen > 1 ? "s" : "");
    out_line_add(&l, "%zu file%s, %" PRIu64 " line%s, ", r->input.nfiles,
                 r->input.nfiles == 1 ? "" : "s", r->input.lines, r->input.lines == 1 ? "" : "s");
    out_line_bytes(&l, r->input.bytes);
    out_wrapped(o, "SEEN", l.p, 1);
    course(o, r);
    troubles(o, r);
}

static unsigned alternatives(const struct out *o, const struct fl_report *r, const char *label,
                             size_t max, bool verbose)
{
    unsigned lines = 0;

    for (size_t i = 0; i < r->nalternatives && i < max; i++) {
        const struct fl_alternative *a = &r->alternatives[i];
        struct out_line l = {.n = 0};

        out_line_add(&l, "%s (%.0f %%)", a->id, a->confidence * 100);
        if (a->why && *a->why)
            out_line_add(&l, ": %s", a->why);
        lines += out_wrapped(o, i ? "" : label, l.p, verbose ? 0 : 1);
    }
    return lines;
}

static bool has_file(const struct fl_report *r, const char *const *words, size_t n)
{
    for (size_t i = 0; i < r->input.nfiles; i++) {
        for (size_t k = 0; k < n; k++) {
            if (strstr(r->input.files[i].name, words[k]))
                return true;
        }
    }
    return false;
}

/* What would help, judged by what is missing. File names tell which kinds of log were given. */
static unsigned wanted(const struct out *o, const struct fl_report *r)
{
    static const char *const kernel[] = {"dmesg", "kern", "syslog", "journal", "messages"};
    static const char *const scheduler[] = {"slurm", "sacct", "sched", "kube", "pod"};
    struct out_line l = {.n = 0};

    if (r->input.world_size > 0 && r->input.ranks_seen >= 0 &&
        r->input.ranks_seen < r->input.world_size)
        out_line_add(&l, "the logs of the other %" PRId32 " ranks; ",
                     r->input.world_size - r->input.ranks_seen);
    if (!has_file(r, kernel, sizeof(kernel) / sizeof(*kernel))) {
        out_line_add(&l, "the kernel log (dmesg -T) of ");
        if (r->location.nhosts)
            out_line_names(&l, r->location.hosts, r->location.nhosts, 3);
        else
            out_line_add(&l, "the nodes");
        out_line_add(&l, "; ");
    }
    if (!has_file(r, scheduler, sizeof(scheduler) / sizeof(*scheduler)))
        out_line_add(&l, "the scheduler's word (sacct, scontrol show job, kubectl describe); ");
    if (l.n < 2 || l.full)
        return 0;
    l.p[l.n - 2] = 0;
    return out_wrapped(o, "ADD", l.p, 3);
}

void out_report(const struct out *o, const struct fl_report *r, bool verbose)
{
    bool unknown = is(r->outcome, "unknown"), healthy = is(r->outcome, "healthy");
    bool doubtful = !unknown && !healthy && r->cause.confidence < 0.8;
    unsigned lines = 2, rest;

    verdict(o, r);
    lines += why(o, r, verbose);
    lines += where(o, r, verbose);
    if (!verbose)
        lines += proof(o, r, unknown ? "SAW" : healthy ? "LAST" : "PROOF");
    if (!healthy || verbose)
        lines += followed(o, r, verbose);
    if (unknown || doubtful || verbose)
        lines += alternatives(o, r, unknown ? "LEADS" : "OR",
                              verbose   ? r->nalternatives
                              : unknown ? 3
                                        : 1,
                              verbose);
    lines += out_model(o, r, verbose);
    lines += out_neighbours(o, r, verbose ? r->nneighbours : 3);
    if (unknown)
        lines += wanted(o, r);
    /* What stands below the advice: the decision, the hosts, where to resume, what was seen. */
    rest = 1 + (r->action.nexclude_hosts > 0) + 2 * (r->action.resume_step >= 0) + 4;
    action(o, r, verbose, lines + rest + 1 < SCREEN ? SCREEN - lines - rest : 1);
    seen(o, r);
    if (verbose)
        out_report_more(o, r);
}
