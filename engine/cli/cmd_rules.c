/*
 * `diagnose rules list|show|test`: the rules as people and other tools see them.
 *
 * The patterns of --patterns are for ripgrep and its like, so they leave out what only PCRE2 takes,
 * and the rules that speak of no failure (benign, advice): a tool that searches for failures would
 * report those as such.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool speaks_of_failure(const struct fl_rule_info *r)
{
    return strcmp(r->role, "benign") != 0 && strcmp(r->role, "advice") != 0;
}

/* Length of a group's opening at p that names the group, (?P<name> or (?<name>; 0: something else.
 * Looking behind, (?<= and (?<!, is not naming. */
static size_t named_group(const char *p)
{
    size_t n = p[0] == '(' && p[1] == '?' ? 2 : 0;

    if (!n)
        return 0;
    n += p[n] == 'P';
    if (p[n] != '<' || p[n + 1] == '=' || p[n + 1] == '!')
        return 0;
    n += strcspn(p + n, ">");
    return p[n] ? n + 1 : 0;
}

/* A character beyond ASCII inside a class, which cannot be said in bytes. */
static bool class_beyond_ascii(const char *p)
{
    bool in_class = false;

    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '[')
            in_class = true;
        else if (*p == ']')
            in_class = false;
        else if (in_class && (unsigned char)*p >= 0x80)
            return true;
    }
    return false;
}

/* One UTF-8 character as a group of bytes, so that a quantifier behind it still takes it whole. */
static const char *print_bytes(const char *p)
{
    fputs("(?:", stdout);
    do
        printf("\\x%02X", (unsigned char)*p++);
    while (((unsigned char)*p & 0xC0) == 0x80);
    putchar(')');
    return p;
}

/*
 * ripgrep joins the patterns of a file with '|' as they stand: a name used by two patterns is then
 * an error and a flag set in one holds for the next. And with Unicode classes the shipped rules
 * together pass its size limit, while as bytes (-u), which is how we match too, they take a
 * fraction. All measured with 13.0.0. So each pattern is a group with its own flags, and groups
 * lose their names.
 */
static void print_pattern(const char *p, bool icase)
{
    bool bytes = !class_beyond_ascii(p), in_class = false;

    printf("(?%s%s:", icase ? "i" : "", bytes ? "-u" : "");
    while (*p) {
        size_t n = in_class ? 0 : named_group(p);

        if (n) {
            fputs("(?:", stdout);
            p += n;
            continue;
        }
        if (bytes && (unsigned char)*p >= 0x80) {
            p = print_bytes(p);
            continue;
        }
        if (*p == '\\' && p[1])
            putchar(*p++);
        else if (*p == '[')
            in_class = true;
        else if (*p == ']')
            in_class = false;
        putchar(*p++);
    }
    puts(")");
}

static void print_patterns(const struct fl_engine *e)
{
    for (size_t i = 0; i < fl_engine_rules(e); i++) {
        const struct fl_rule_info *r = fl_engine_rule(e, i);

        if (!speaks_of_failure(r))
            continue;
        for (size_t k = 0; k < r->npatterns; k++) {
            if (!strchr(r->patterns[k], '\n') && fl_pattern_portable(r->patterns[k]))
                print_pattern(r->patterns[k], r->icase);
        }
    }
}

static void json_field(const char *name, const char *text, bool first)
{
    if (!text)
        return;
    printf("%s\"%s\":", first ? "" : ",", name);
    out_json_text(stdout, text);
}

static void json_list(const char *name, const char *const *texts, size_t n)
{
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "," : "", stdout);
        out_json_text(stdout, texts[i]);
    }
    fputs("]", stdout);
}

static void json_rule(const struct fl_rule_info *r)
{
    fputs("{", stdout);
    json_field("id", r->id, true);
    json_field("cause", r->cause, false);
    json_field("class", r->class_name, false);
    json_field("title", r->title, false);
    json_field("role", r->role, false);
    json_field("maturity", r->maturity, false);
    json_field("summary", r->summary, false);
    json_field("source", r->source, false);
    json_field("file", r->file, false);
    printf(",\"line\":%u,\"strength\":%d,\"ignore_case\":%s", r->line, r->strength,
           r->icase ? "true" : "false");
    json_list("patterns", r->patterns, r->npatterns);
    json_list("hits", r->hits, r->nhits);
    json_list("misses", r->misses, r->nmisses);
    fputs("}", stdout);
}

static void json_filter(const struct fl_filter_info *f)
{
    fputs("{", stdout);
    json_field("id", f->id, true);
    json_field("action", f->action, false);
    json_field("maturity", f->maturity, false);
    json_field("why", f->why, false);
    json_field("source", f->source, false);
    json_field("file", f->file, false);
    printf(",\"line\":%u,\"metric\":%s,\"ignore_case\":%s", f->line, f->metric ? "true" : "false",
           f->icase ? "true" : "false");
    json_list("patterns", f->patterns, f->npatterns);
    json_list("takes", f->takes, f->ntakes);
    json_list("misses", f->misses, f->nmisses);
    fputs("}", stdout);
}

static void list_json(const struct fl_engine *e)
{
    fputs("{\"schema\":\"faultline.rules/1\",\"rules_version\":", stdout);
    out_json_text(stdout, fl_engine_rules_version(e));
    fputs(",\"rules\":[", stdout);
    for (size_t i = 0; i < fl_engine_rules(e); i++) {
        fputs(i ? ",\n" : "\n", stdout);
        json_rule(fl_engine_rule(e, i));
    }
    fputs("\n],\"filters\":[", stdout);
    for (size_t i = 0; i < fl_engine_filters(e); i++) {
        fputs(i ? ",\n" : "\n", stdout);
        json_filter(fl_engine_filter(e, i));
    }
    fputs("\n]}\n", stdout);
}

static void list_text(const struct fl_engine *e, bool verbose)
{
    int id = 10, role = 4, maturity = 5;

    for (size_t i = 0; i < fl_engine_filters(e); i++) {
        int n = (int)strlen(fl_engine_filter(e, i)->id);

        id = n > id ? n : id;
    }
    for (size_t i = 0; i < fl_engine_rules(e); i++) {
        const struct fl_rule_info *r = fl_engine_rule(e, i);

        id = (int)strlen(r->id) > id ? (int)strlen(r->id) : id;
        role = (int)strlen(r->role) > role ? (int)strlen(r->role) : role;
        maturity = (int)strlen(r->maturity) > maturity ? (int)strlen(r->maturity) : maturity;
    }
    for (size_t i = 0; i < fl_engine_rules(e); i++) {
        const struct fl_rule_info *r = fl_engine_rule(e, i);

        printf("%-*s  %-*s  %-*s  %s", id, r->id, role, r->role, maturity, r->maturity,
               r->cause ? r->cause : "-");
        if (verbose)
            printf("  %s:%u", r->file, r->line);
        fputc('\n', stdout);
    }
    for (size_t i = 0; i < fl_engine_filters(e); i++) {
        const struct fl_filter_info *f = fl_engine_filter(e, i);

        printf("%-*s  %-*s  %-*s  filter", id, f->id, role, f->action, maturity, f->maturity);
        if (verbose)
            printf("  %s:%u", f->file, f->line);
        fputc('\n', stdout);
    }
}

int cmd_rules_list(const struct cli_args *args)
{
    struct cli_session s;
    int status;

    if (args->json && args->patterns)
        return cli_fail(CLI_USAGE, "--json and --patterns exclude each other");
    status = cli_session_open(&s, args);
    if (status == CLI_OK && args->patterns)
        print_patterns(s.engine);
    else if (status == CLI_OK && args->json)
        list_json(s.engine);
    else if (status == CLI_OK)
        list_text(s.engine, args->verbose);
    cli_session_dispose(&s);
    return status;
}

static void show_list(const struct out *o, const char *label, const char *const *texts, size_t n)
{
    if (!n)
        return;
    fputc('\n', o->f);
    out_text(o, OUT_BOLD, label);
    fputc('\n', o->f);
    for (size_t i = 0; i < n; i++) {
        fputs("  ", o->f);
        out_text(o, OUT_PLAIN, texts[i]);
        fputc('\n', o->f);
    }
}

static void show(const struct out *o, const struct fl_rule_info *r)
{
    struct out_line l = {.n = 0};

    out_text(o, OUT_BOLD, r->id);
    fputc('\n', o->f);
    out_line_add(&l, "%s (%s): %s", r->cause ? r->cause : "no cause",
                 r->class_name ? r->class_name : "-", r->title ? r->title : "");
    out_wrapped(o, "cause", l.p, 0);
    l.n = 0;
    out_line_add(&l, "%s, strength %d, %s%s", r->role, r->strength, r->maturity,
                 r->icase ? ", letter case ignored" : "");
    out_wrapped(o, "role", l.p, 0);
    if (r->summary)
        out_wrapped(o, "says", r->summary, 0);
    if (r->source)
        out_wrapped(o, "source", r->source, 0);
    l.n = 0;
    out_line_add(&l, "%s:%u", r->file, r->line);
    out_wrapped(o, "file", l.p, 0);
    show_list(o, "Patterns", r->patterns, r->npatterns);
    show_list(o, "Must match", r->hits, r->nhits);
    show_list(o, "Must not match", r->misses, r->nmisses);
}

static void show_filter(const struct out *o, const struct fl_filter_info *f)
{
    struct out_line l = {.n = 0};

    out_text(o, OUT_BOLD, f->id);
    fputc('\n', o->f);
    out_line_add(&l, "%s%s, %s%s", f->action, f->metric ? " (the job's numbers)" : "", f->maturity,
                 f->icase ? ", letter case ignored" : "");
    out_wrapped(o, "filter", l.p, 0);
    if (f->why)
        out_wrapped(o, "why", f->why, 0);
    if (f->source)
        out_wrapped(o, "source", f->source, 0);
    l.n = 0;
    out_line_add(&l, "%s:%u", f->file, f->line);
    out_wrapped(o, "file", l.p, 0);
    show_list(o, "Patterns", f->patterns, f->npatterns);
    show_list(o, "Must take", f->takes, f->ntakes);
    show_list(o, "Must not take", f->misses, f->nmisses);
}

static int no_rule(const struct fl_engine *e, const char *id)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX, d;

    for (size_t i = 0; i < fl_engine_rules(e); i++) {
        const char *known = fl_engine_rule(e, i)->id;

        if (cli_near(id, known, &d) && d < least) {
            nearest = known;
            least = d;
        }
    }
    for (size_t i = 0; i < fl_engine_filters(e); i++) {
        const char *known = fl_engine_filter(e, i)->id;

        if (cli_near(id, known, &d) && d < least) {
            nearest = known;
            least = d;
        }
    }
    if (nearest)
        return cli_fail(CLI_USAGE, "no rule '%s'; the nearest is %s", id, nearest);
    return cli_fail(CLI_USAGE, "no rule '%s'; `diagnose rules list` lists them", id);
}

int cmd_rules_show(const struct cli_args *args)
{
    struct cli_session s;
    struct out o;
    int status = cli_session_open(&s, args);
    const struct fl_rule_info *r = NULL;
    const struct fl_filter_info *f = NULL;

    if (status == CLI_OK) {
        r = fl_engine_rule_by_id(s.engine, args->rest[0]);
        f = r ? NULL : fl_engine_filter_by_id(s.engine, args->rest[0]);
        if (!r && !f)
            status = no_rule(s.engine, args->rest[0]);
    }
    out_init(&o, stdout, s.color, args->width);
    if (args->json && (r || f)) {
        if (r)
            json_rule(r);
        else
            json_filter(f);
        fputc('\n', stdout);
    } else if (r) {
        show(&o, r);
    } else if (f) {
        show_filter(&o, f);
    }
    cli_session_dispose(&s);
    return status;
}

static void tell(void *ctx, const char *text)
{
    out_text(ctx, OUT_PLAIN, text);
    fputc('\n', ((struct out *)ctx)->f);
}

static const char *quiet_logs(const struct cli_session *s, const struct cli_args *args, char *buf,
                              size_t cap)
{
    struct stat st;

    if (args->quiet_logs)
        return args->quiet_logs;
    snprintf(buf, cap, "%s/corpus/quiet", s->data_dir);
    return stat(buf, &st) == 0 && S_ISDIR(st.st_mode) ? buf : NULL;
}

int cmd_rules_test(const struct cli_args *args)
{
    struct fl_rules_result result;
    struct cli_session s;
    struct out o;
    char dir[1100];
    fl_err err;
    int status = cli_session_open(&s, args);

    if (status == CLI_OK && args->id && !fl_engine_rule_by_id(s.engine, args->id) &&
        !fl_engine_filter_by_id(s.engine, args->id))
        status = no_rule(s.engine, args->id);
    if (status == CLI_OK) {
        out_init(&o, stdout, s.color, args->width);
        if (fl_rules_test(s.engine, args->id, quiet_logs(&s, args, dir, sizeof(dir)), tell, &o,
                          &result, &err)) {
            status = cli_fail_err(&err);
        } else {
            printf("%zu rules, %zu hits, %zu near-misses, ", result.rules, result.hits,
                   result.misses);
            if (result.filters)
                printf("%zu filters, %zu of their lines, ", result.filters, result.filter_lines);
            printf("%zu healthy logs: %zu failures\n", result.quiet_logs, result.failures);
            status = result.failures ? CLI_INPUT : CLI_OK;
        }
    }
    cli_session_dispose(&s);
    return status;
}
