/*
 * The table of commands: the one place where a command, an option or a help text is written.
 */
#include "cli.h"

#define AT(field) offsetof(struct cli_args, field)
#define FLAG(letter, name, field, text)                                                            \
    {                                                                                              \
        letter, name, NULL, CLI_OPT_FLAG, AT(field), NULL, 0, 0, text                              \
    }
#define VALUE(letter, name, arg, kind, field, text)                                                \
    {                                                                                              \
        letter, name, arg, kind, AT(field), NULL, 0, 0, text                                       \
    }
#define WORDS(name, list, field, text)                                                             \
    {                                                                                              \
        0, name, list, CLI_OPT_WORD, AT(field), list, 0, 0, text                                   \
    }
#define THREADS                                                                                    \
    {                                                                                              \
        0, "threads", "N", CLI_OPT_NUM, AT(threads), NULL, 1, 16,                                  \
            "read and search with so many threads, 1 to 16 (else one a core, at most 8); the "     \
            "answer is the same"                                                                   \
    }
#define END                                                                                        \
    {                                                                                              \
        0, NULL, NULL, CLI_OPT_FLAG, 0, NULL, 0, 0, NULL                                           \
    }

static const struct cli_opt common_opts[] = {
    VALUE(0, "rules", "DIR", CLI_OPT_DIRS, rule_dirs,
          "add the rules in DIR/failures to the shipped ones (may be repeated)"),
    VALUE(0, "config", "FILE", CLI_OPT_TEXT, config, "read this configuration file and no other"),
    FLAG(0, "no-cache", no_cache, "neither read nor write compiled patterns on disk"),
    WORDS("engine", "auto|pcre2", engine,
          "how to scan: auto takes the fastest, pcre2 is the reference; the answers are the same"),
    WORDS("color", "auto|always|never", color,
          "colour the text; auto: on a terminal, unless NO_COLOR is set"),
    {0, "width", "COLUMNS", CLI_OPT_NUM, AT(width), NULL, 40, 500,
     "width of the text, 40 to 500 (else the terminal's, or 80)"},
    FLAG('v', "verbose", verbose, "tell everything"),
    FLAG('q', "quiet", quiet, "no progress and no notes on stderr; errors are still told"),
    FLAG('h', "help", help, "show the help of this command"),
    END,
};

static const struct cli_opt help_opt[] = {
    FLAG('h', "help", help, "show the help of this command"),
    END,
};

static const struct cli_opt diagnose_opts[] = {
    FLAG(0, "json", json, "print one JSON object (schema faultline.diagnosis/1) and nothing else"),
    FLAG('i', "interactive", interactive,
         "open the LOG and take questions and commands, until Ctrl-D; this is what `diagnose` "
         "alone does on a terminal"),
    FLAG(0, "each", each, "take each LOG as a job of its own; with --json one object a line"),
    FLAG(0, "exit-decision", exit_decision,
         "let the exit status carry what to do next: 0 restart, 10 restart elsewhere, 11 test "
         "first, 12 roll back, 20 ask a person, 93 stop, 94 nothing to do; errors keep 2 to 4"),
    FLAG(0, "offline", offline, "use no network, whatever the configuration says"),
    FLAG(0, "ask", ask,
         "ask the configured language model whatever the rules say; a confident answer of theirs "
         "stands, and the model's is shown beside it"),
    {0, "budget-seconds", "N", CLI_OPT_NUM, AT(seconds), NULL, 1, 86400,
     "the most time that the whole answer may take (else 240); the rules' answer is what you get "
     "when it is up"},
    VALUE(0, "record", "DIR", CLI_OPT_TEXT, record,
          "keep what was sent and answered in DIR, redacted and without keys"),
    VALUE(0, "replay", "DIR", CLI_OPT_TEXT, replay, "take the answers from DIR; no network"),
    FLAG(0, "no-memory", no_memory,
         "do not look among past incidents when no rule knows the failure"),
    VALUE(0, "since", "TIME", CLI_OPT_TIME, since_us,
          "leave out lines older than this, as the log prints its time: 2026-03-01T02:03:04"),
    VALUE(0, "until", "TIME", CLI_OPT_TIME, until_us, "leave out lines later than this"),
    THREADS,
    FLAG('V', "version", version, "print the program's version"),
    END,
};

static const struct cli_opt compress_opts[] = {
    {0, "budget", "TOKENS", CLI_OPT_NUM, AT(budget), NULL, 500, 1000000,
     "the most tokens that the page may have (else 4000), at least 500"},
    FLAG(0, "json", json, "print one JSON object (schema faultline.digest/1) and nothing else"),
    VALUE(0, "since", "TIME", CLI_OPT_TIME, since_us,
          "take no evidence from lines older than this, as the log prints its time"),
    VALUE(0, "until", "TIME", CLI_OPT_TIME, until_us, "nor from lines later than this"),
    THREADS,
    END,
};

static const struct cli_opt prompt_opts[] = {
    FLAG(0, "no-memory", no_memory, "without past incidents"),
    THREADS,
    END,
};

static const struct cli_opt search_opts[] = {
    VALUE(0, "text", "TEXT", CLI_OPT_TEXT, text, "look up this text instead of a LOG"),
    {'k', "count", "N", CLI_OPT_NUM, AT(k), NULL, 1, 60, "at most so many (else 5), 1 to 60"},
    VALUE(0, "floor", "X", CLI_OPT_SHARE, floor,
          "leave out what scores less, 0 to 1; 0 shows all (else a floor that was measured)"),
    FLAG(0, "offline", offline, "do not ask the configured embedding endpoint"),
    FLAG(0, "json", json, "print one JSON object (schema faultline.neighbours/1)"),
    THREADS,
    END,
};

#define PAST_FILTERS                                                                               \
    VALUE(0, "cause", "ID", CLI_OPT_TEXT, cause, "of this cause, or of an area such as net.*"),    \
        WORDS("kind", "incident|follow_on|harmless", kind, "of this kind"),                        \
        WORDS("origin", "user|corpus|confirmed|corrected", origin,                                 \
              "added, shipped with the program, confirmed or corrected"),                          \
        VALUE(0, "text", "TEXT", CLI_OPT_TEXT, text,                                               \
              "with this text somewhere in it, letter case ignored")
#define PAST_WORDS                                                                                 \
    VALUE(0, "fix", "TEXT", CLI_OPT_TEXT, fix, "what helped"),                                     \
        VALUE(0, "title", "TEXT", CLI_OPT_TEXT, title,                                             \
              "what happened, in a few words (else the cause's)"),                                 \
        VALUE(0, "explanation", "TEXT", CLI_OPT_TEXT, explanation,                                 \
              "why it happened (else what the diagnosis says)"),                                   \
        VALUE(0, "source", "TEXT", CLI_OPT_TEXT, source,                                           \
              "where it is known from (else the name of the log)"),                                \
        FLAG(0, "json", json, "print one JSON object (schema faultline.incidents/1)"), THREADS

static const struct cli_opt past_list_opts[] = {
    PAST_FILTERS,
    {'n', "limit", "N", CLI_OPT_NUM, AT(limit), NULL, 1, 1000000, "at most so many (else all)"},
    FLAG(0, "json", json, "print one JSON object (schema faultline.incidents/1)"),
    END,
};

static const struct cli_opt past_show_opts[] = {
    FLAG(0, "json", json, "print one JSON object (schema faultline.incidents/1)"),
    END,
};

static const struct cli_opt past_add_opts[] = {
    VALUE(0, "cause", "ID", CLI_OPT_TEXT, cause, "what it was: a cause of the taxonomy"),
    VALUE(0, "from", "FILE", CLI_OPT_TEXT, from,
          "take incidents from this YAML file instead of a LOG"),
    PAST_WORDS,
    END,
};

static const struct cli_opt past_confirm_opts[] = {
    PAST_WORDS,
    END,
};

static const struct cli_opt past_correct_opts[] = {
    VALUE(0, "cause", "ID", CLI_OPT_TEXT, cause, "what it really was: a cause of the taxonomy"),
    PAST_WORDS,
    END,
};

static const struct cli_opt past_import_opts[] = {
    WORDS("clash", "fail|keep|replace", clash,
          "an id that is there with another text: an error (the default), the stored one stays, or "
          "the read one wins"),
    END,
};

static const struct cli_opt past_export_opts[] = {
    PAST_FILTERS,
    FLAG(0, "redact", redact,
         "put <HOST_1> and the like for hosts, users, addresses, paths and secrets, one name one "
         "placeholder; read the file all the same before you pass it on"),
    FLAG(0, "salvage", salvage,
         "of a damaged memory, write what can still be read; the status is 1 when something is "
         "lost"),
    END,
};

static const struct cli_opt reindex_opts[] = {
    FLAG(0, "full", full,
         "train the index anew and make damaged vectors again, and those of an embedding endpoint "
         "that answers otherwise than it did"),
    FLAG(0, "prune", prune, "forget the vectors of models that are no longer configured"),
    FLAG(0, "offline", offline, "do not ask the configured embedding endpoint"),
    END,
};

static const struct cli_opt doctor_opts[] = {
    FLAG(0, "offline", offline, "do not ask the configured endpoints"),
    FLAG(0, "json", json, "print one JSON object (schema faultline.doctor/1)"),
    FLAG(0, "offline", offline, "ask no language model, whatever the configuration says"),
    {0, "budget-seconds", "N", CLI_OPT_NUM, AT(seconds), NULL, 1, 86400,
     "the most time that each language model may take (else 30)"},
    END,
};

static const struct cli_opt eval_opts[] = {
    FLAG(0, "search", search,
         "score the search for past incidents instead: how often the right cause is among the "
         "first distinct ones, by words, by vectors and by both, and with the embedding endpoint "
         "where one is configured"),
    FLAG(0, "ask", ask,
         "ask the configured language model where `diagnose` would, and print the rules alone, the "
         "answer with the model, and what changed"),
    FLAG(0, "all", all, "with --ask: ask about every case, also where the rules are sure"),
    VALUE(0, "resume", "FILE", CLI_OPT_TEXT, resume,
          "with --ask: keep answers in FILE (else faultline-eval-ask.json) and go on from there"),
    {0, "budget-seconds", "N", CLI_OPT_NUM, AT(seconds), NULL, 1, 86400,
     "with --ask: the most time for one case (else 240)"},
    FLAG(0, "no-memory", no_memory, "with --ask: without past incidents"),
    FLAG(0, "offline", offline, "with --search: do not ask the configured embedding endpoint"),
    FLAG(0, "json", json, "print one JSON object"),
    END,
};

static const struct cli_opt list_opts[] = {
    FLAG(0, "json", json, "print one JSON object with all rules"),
    FLAG(0, "patterns", patterns,
         "print the regexes of the rules that speak of failures (roles root, symptom and confirm), "
         "one a line, flags inline, groups without names; only those that ripgrep's default engine "
         "takes"),
    END,
};

static const struct cli_opt test_opts[] = {
    VALUE(0, "id", "ID", CLI_OPT_TEXT, id, "test this rule or filter only"),
    VALUE(0, "quiet-logs", "DIR", CLI_OPT_TEXT, quiet_logs,
          "healthy logs on which stable rules must be silent (else corpus/quiet beside the rules, "
          "where it is there)"),
    END,
};

static const struct cli_opt json_opt[] = {
    FLAG(0, "json", json, "print one JSON object"),
    END,
};

static const struct cli_opt help_opts[] = {
    FLAG(0, "man", man, "print the manual page"),
    FLAG(0, "completion", completion, "print the completion for bash"),
    END,
};

const struct cli_command cli_commands[] = {
    {.name = "diagnose",
     .args = "LOG...",
     .brief = "name the root cause of a failed job",
     .about =
         "Reads what a training job printed and says what died first and why, where, what proves "
         "it, and what the restart should do. The word `diagnose` itself may be left out.\n"
         "\n"
         "A LOG is a file, a folder of files (read with all below it), or - for standard input. "
         "Several are one job, unless --each is given: give rank logs, kernel logs and scheduler "
         "output together. Files packed with gzip, zstd or xz are read as what they hold. A log "
         "whose name is that of a command is given as ./NAME.\n"
         "\n"
         "The answer goes to stdout. Messages and progress go to stderr, progress only on a "
         "terminal. With --each the exit status is the highest of all.\n"
         "\n"
         "With -i, or with no LOG at all on a terminal, the job is opened for questions. A line is "
         "a question in plain words, which goes to the configured language model, redacted, and "
         "otherwise is searched for in the log and among past incidents; or a command: /evidence, "
         "/digest [TOKENS], /timeline, /around FILE:LINE [N], /grep REGEX, /rank N, /similar, "
         "/incident ID, /why, /explain [RULE], /ask, /correct CAUSE [WHY], /save [FILE], /json, "
         "/help, /quit. TAB completes commands, causes, rules and files; Ctrl-C stops an answer, "
         "Ctrl-D leaves. Nothing is sent before something is asked. From a pipe the same lines are "
         "read without prompts. Earlier lines are kept in the data folder.",
     .examples = "diagnose job.log\tone log\n"
                 "diagnose rank-*.log dmesg-n12.txt slurm.out\tone job from several logs\n"
                 "zcat job.log.gz | diagnose --json -\tfrom a pipe, for a machine\n"
                 "diagnose --exit-decision logs/\tin a restart script\n"
                 "diagnose -i logs/\task, look around, correct\n"
                 "diagnose --since 2026-03-01T02:00:00 dmesg.txt\twithout last week's faults\n",
     .own = diagnose_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_diagnose},
    {.name = "compress",
     .args = "LOG...",
     .brief = "print the lines that are worth reading, as one page",
     .about =
         "Reads a job as `diagnose` does and prints a digest of it: the evidence, what the job is, "
         "its timeline, each event with the lines around it, tracebacks whole, and all other lines "
         "folded by shape, the rare and the late first. Every line is the log's, printed as "
         "FILE:LINE, a tab, and the text, so that it can be looked up and cited; what is not of "
         "the log begins with '#'.\n"
         "\n"
         "The page keeps to a budget of tokens, counted by the tokenizer that comes with the "
         "program. The account (lines read, shown, folded, routine by the filter rules, left out) "
         "goes to stderr, or into the JSON. The same log gives the same page.",
     .examples = "diagnose compress job.log\ta page of 4000 tokens\n"
                 "diagnose compress --budget 1500 logs/ | less\ta shorter one\n"
                 "zcat job.log.gz | diagnose compress --json -\tfor a program\n",
     .own = compress_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_compress},
    {.name = "search",
     .args = "[LOG...]",
     .brief = "find the nearest past incidents",
     .about =
         "Looks up a job, or a text, among past incidents and prints the nearest: the cause, what "
         "fixed it, and the lines on both sides that are alike. Failure rules play no part in it. "
         "The score says how often such a neighbour had the right cause; the similarity is the "
         "cosine of the best pair of lines.\n"
         "\n"
         "When nothing is similar enough that is said, and the exit status is 1. The first run "
         "makes the memory from the incidents that come with the program, in $FAULTLINE_HOME or "
         "~/.local/share/faultline.",
     .examples = "diagnose search job.log\n"
                 "diagnose search --text \"RuntimeError: NCCL error: unhandled system error\"\n"
                 "diagnose search -k 10 --floor 0 logs/\tten, however far\n",
     .own = search_opts,
     .common = common_opts,
     .min_args = 0,
     .max_args = SIZE_MAX,
     .run = cmd_search},
    {.name = "prompt",
     .args = "LOG...",
     .brief = "print what a language model would be sent, and send nothing",
     .about =
         "The prompt of `diagnose LOG` as it would leave this machine: the digest, the nearest "
         "past incidents and what the rules said, with secrets, names and addresses replaced "
         "by placeholders, and the log between two marks. How many tokens it has goes to "
         "stderr.",
     .examples = "diagnose prompt job.log | less\n",
     .own = prompt_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_prompt},
    {.name = "incidents list",
     .args = "",
     .brief = "list the past incidents",
     .about = "One line an incident: its id, its cause, where it is from, how often it was seen, "
              "and what it was. With -v also the lines that it is known by. The exit status is 1 "
              "when there is none.",
     .examples = "diagnose incidents list --origin confirmed\n"
                 "diagnose incidents list --cause 'net.*' --text mlx5\n"
                 "diagnose incidents list --json | jq -r '.incidents[].id'\tfor a program\n",
     .own = past_list_opts,
     .common = common_opts,
     .run = cmd_incidents_list},
    {.name = "incidents show",
     .args = "ID",
     .brief = "show one incident with its lines",
     .about = "Everything that is stored of it.",
     .examples = "diagnose incidents show inc-slow-zero3-cache-flush-each-step\n",
     .own = past_show_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = 1,
     .run = cmd_incidents_show},
    {.name = "incidents add",
     .args = "[LOG...]",
     .brief = "store a job as an incident",
     .about =
         "Stores a job whose cause is known, with the lines that show it: those by which the "
         "diagnosis saw that cause, else those that sound most like trouble. It is found from then "
         "on. The same failure again (lines of the same shapes, the same cause) is counted on the "
         "first.\n"
         "\n"
         "With --from the incidents are read from a YAML file, in the format of "
         "corpus/incidents/*.yaml.",
     .examples =
         "diagnose incidents add job.log --cause storage.shared_fs --fix \"remounted /scratch\"\n"
         "diagnose incidents add --from ours.yaml\n",
     .own = past_add_opts,
     .common = common_opts,
     .max_args = SIZE_MAX,
     .run = cmd_incidents_add},
    {.name = "incidents confirm",
     .args = "LOG...|ID",
     .brief = "say that an answer was right",
     .about = "Diagnoses the LOG again and stores the answer as a confirmed incident, or marks a "
              "stored incident as confirmed; what is said with it is stored too. A name that is "
              "both is taken for the file. The exit status is 1 when the log has no answer to "
              "confirm.",
     .examples = "diagnose incidents confirm job.log --fix \"replaced the cable of n12\"\n"
                 "diagnose incidents confirm inc-0123456789ab\n",
     .own = past_confirm_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_incidents_confirm},
    {.name = "incidents correct",
     .args = "LOG...|ID",
     .brief = "say what it really was",
     .about =
         "Stores the LOG as an incident of the cause that is named, or gives a stored incident "
         "that cause. When the same is known of that cause already the two become one.",
     .examples = "diagnose incidents correct job.log --cause storage.shared_fs\n"
                 "diagnose incidents correct inc-0123456789ab --cause gpu.ecc\n",
     .own = past_correct_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_incidents_correct},
    {.name = "incidents remove",
     .args = "ID...",
     .brief = "forget incidents",
     .about = "An incident that comes with the program returns with its next version; correct it "
              "instead.",
     .examples = "diagnose incidents remove inc-0123456789ab\n",
     .own = NULL,
     .common = common_opts,
     .min_args = 1,
     .max_args = SIZE_MAX,
     .run = cmd_incidents_remove},
    {.name = "incidents import",
     .args = "FILE|DIR",
     .brief = "read incidents from YAML",
     .about = "Reads a file, or each *.yaml of a folder: all of it or nothing. Incidents that are "
              "there already (the same shapes and cause) are counted on the stored one.",
     .examples = "diagnose incidents import ours.yaml\n"
                 "diagnose incidents import --clash replace backup.yaml\n",
     .own = past_import_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = 1,
     .run = cmd_incidents_import},
    {.name = "incidents export",
     .args = "",
     .brief = "write incidents as YAML",
     .about =
         "To stdout, in the order of ids. Imported into an empty memory and exported again it "
         "is the same, byte for byte. Log lines are written as they are, names and all, unless "
         "--redact is given. Ids are never changed.",
     .examples = "diagnose incidents export >backup.yaml\n"
                 "diagnose incidents export --origin confirmed >ours.yaml\n"
                 "diagnose incidents export --origin user --redact >share.yaml\n"
                 "diagnose incidents export --salvage >saved.yaml\tfrom a damaged memory\n",
     .own = past_export_opts,
     .common = common_opts,
     .run = cmd_incidents_export},
    {.name = "incidents lint",
     .args = "[DIR]",
     .brief = "check incident files",
     .about = "Checks a file or folder of incidents, by default those that come with the program: "
              "that each loads, has evidence, title, explanation, fix and source, a cause of the "
              "taxonomy and an id of its own. Findings are printed as FILE:LINE: TEXT, then their "
              "number. The exit status is 0 when there is none and 3 when there is.",
     .examples = "diagnose incidents lint\n"
                 "diagnose incidents lint ./our-incidents\n",
     .own = NULL,
     .common = common_opts,
     .max_args = 1,
     .run = cmd_incidents_lint},
    {.name = "reindex",
     .args = "",
     .brief = "bring the index of past incidents up to date",
     .about =
         "Embeds what has no vector yet and makes a new index beside the old one, which others go "
         "on reading until the new one is complete. For cron: it says nothing unless something is "
         "wrong. Searches find new incidents without it; it makes them quick where there are many. "
         "A second one at the same time leaves with status 0.\n"
         "\n"
         "With `memory: embedding` in the configuration the endpoint makes vectors of all "
         "incidents too, redacted before they are sent, and searches join both. When it fails "
         "that is said, the status is 4, the local model's index is up to date all the same, and "
         "the next run goes on where this one stopped.",
     .examples = "diagnose reindex -v\n"
                 "15 3 * * * diagnose reindex\ta line of a crontab\n"
                 "diagnose reindex --full\tafter `diagnose doctor` said so\n",
     .own = reindex_opts,
     .common = common_opts,
     .run = cmd_reindex},
    {.name = "doctor",
     .args = "",
     .brief = "check configuration, rules, memory, index and endpoints",
     .about = "One line for each part: whether it is there and fits together with the others, and "
              "what to run when it does not. Nothing is changed. The database and the index are "
              "read from end to end. Each configured language model is asked for its models and "
              "sent one tiny request that needs an answer in a given form, the embedding endpoint "
              "one line; none of that holds anything of yours but a line of a past incident, "
              "redacted. The exit status is 0 when answers can be given, even if less "
              "well than they could, and 4 when something is broken that they need.",
     .examples = "diagnose doctor\n"
                 "diagnose doctor --offline --json\tfor a monitor, without a network\n",
     .own = doctor_opts,
     .common = common_opts,
     .run = cmd_doctor},
    {.name = "rules list",
     .args = "",
     .brief = "list the rules, or their patterns",
     .about = "One line a rule: its id, its role, its maturity and the cause it names; then the "
              "filters with their action. With -v also the file and line it stands in.",
     .examples = "diagnose rules list\tall rules\n"
                 "diagnose rules list --patterns > p; rg -f p job.log\tsearch with other tools\n",
     .own = list_opts,
     .common = common_opts,
     .run = cmd_rules_list},
    {.name = "rules show",
     .args = "ID",
     .brief = "show one rule with its examples",
     .about = "Everything the rule file says about the rule: cause, role, strength, patterns, the "
              "lines it must match and the near-misses it must not.",
     .examples = "diagnose rules show slurm-time-limit\n",
     .own = json_opt,
     .common = common_opts,
     .min_args = 1,
     .max_args = 1,
     .run = cmd_rules_show},
    {.name = "rules test",
     .args = "",
     .brief = "test the rules on their own examples",
     .about = "Each hit must be taken by its own rule, no near-miss may be, the rule files must "
              "have no fault, and stable rules must be silent on healthy logs. Filters must take "
              "their lines and none that a failure rule takes. Each failure is printed as "
              "FILE:LINE: TEXT, then a summary. The exit status is 0 when all is right and 3 when "
              "it is not.",
     .examples = "diagnose rules test\tafter every change\n"
                 "diagnose rules test --id my-rule --rules ./my-rules\twhile writing one\n",
     .own = test_opts,
     .common = common_opts,
     .run = cmd_rules_test},
    {.name = "eval",
     .args = "DIR",
     .brief = "score the diagnosis on labelled cases",
     .about =
         "Diagnoses each folder below DIR that holds a label.json and compares: a line for "
         "each case, then totals for cause, class, action, place and evidence, false alarms on "
         "healthy logs, and claimed confidence against what came true. The exit status is 0 "
         "when every case could be run, whatever it scored, and 3 when one could not.",
     .examples = "diagnose eval tests/cases\n"
                 "diagnose eval --json tests/cases\tfor a machine\n"
                 "diagnose eval --search tests/cases\thow well past incidents are found\n"
                 "diagnose eval --ask --all tests/cases\twhat a language model adds\n",
     .own = eval_opts,
     .common = common_opts,
     .min_args = 1,
     .max_args = 1,
     .run = cmd_eval},
    {.name = "version",
     .args = "",
     .brief = "show the versions of program, rules and scanner",
     .about = "Also where rules and compiled patterns are found.",
     .examples = "diagnose version\n",
     .own = NULL,
     .common = common_opts,
     .run = cmd_version},
    {.name = "help",
     .args = "[COMMAND | TOPIC]",
     .brief = "show help",
     .about = "Without COMMAND an overview. The manual page and the completion are made from the "
              "same table.",
     .examples = "diagnose help rules test\n"
                 "diagnose help ask\thow to ask a language model, with examples\n"
                 "source <(diagnose help --completion)\tcompletion in this shell\n",
     .own = help_opts,
     .common = help_opt,
     .max_args = 2,
     .run = cmd_help},
    {.name = NULL},
};

const char cli_exit_text[] =
    "0\ta cause was found; for other commands: done\n"
    "1\tno cause was found: the job looks healthy, or the cause is unknown\n"
    "2\tthe command line is wrong\n"
    "3\tan input, a rule file or the configuration cannot be read, rules "
    "are wrong, or the result could not be written\n"
    "4\ta needed backend failed\n";

const char cli_environment_text[] =
    "FAULTLINE_CONFIG\tconfiguration file, when --config does not name one; else "
    "~/.config/faultline/config.yaml, else /etc/faultline/config.yaml\n"
    "FAULTLINE_HOME\tfolder of past incidents; else `memory: {home: DIR}` of the configuration, "
    "else faultline/ below $XDG_DATA_HOME or ~/.local/share\n"
    "FAULTLINE_DATA\tfolder that holds rules/, instead of the one beside the program\n"
    "XDG_CACHE_HOME\tcompiled patterns are kept in faultline/ below it, by default below "
    "~/.cache; none are kept when neither this nor HOME is set\n"
    "NO_COLOR\twhen set and not empty, no colour unless --color=always\n";
