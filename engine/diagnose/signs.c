/*
 * The table of signs.
 *
 * Loose on purpose: a sign only picks the lines that a parser then reads (metrics.c, place.c), so a
 * false candidate costs a microsecond and a missed one costs the timeline. They carry no names of
 * failures; those are rules.
 */
#include "diagnose/signs.h"

#define P(kind, text, ic)                                                                          \
    {                                                                                              \
        .regex = {"" text "", sizeof(text) - 1}, .id = FL_SIGN_ID + (kind), .icase = (ic),         \
        .where = "diagnose/signs.c"                                                                \
    }

static const struct fl_pattern table[] = {
    P(FL_SIGN_TRACEBACK, "Traceback \\(most recent call last\\)", false),
    P(FL_SIGN_TRACEBACK, "The above exception was the direct cause of", false),
    P(FL_SIGN_TRACEBACK, "During handling of the above exception", false),
    P(FL_SIGN_TRACEBACK, "Exception ignored in|Error in atexit\\._run_exitfuncs:", false),
    P(FL_SIGN_TRACEBACK, "-- Process [0-9]+ terminated with the following error", false),

    P(FL_SIGN_METRIC, "\\biteration +[0-9]+/", false),
    P(FL_SIGN_METRIC, "\\biter(?:ation)?[ :=]+[0-9]+\\b[^|]{0,40}loss", false),
    P(FL_SIGN_METRIC, "'(?:train_|eval_)?loss': ", false),
    P(FL_SIGN_METRIC, "\"(?:train_|valid_)?loss\": ", false),
    P(FL_SIGN_METRIC, "\\b(?:lm_|train/|train_|reduced_train_)?loss ?[=:] ?[-+0-9.nNiI]", false),
    P(FL_SIGN_METRIC, "\\bLoss ?[=:] ?[-+0-9.nNiI]", false),
    P(FL_SIGN_METRIC, "\\bloss [0-9]+\\.[0-9]", false),
    P(FL_SIGN_METRIC, "\\b(?:global_)?[sS]teps?[ =:]+[0-9]", false),
    P(FL_SIGN_METRIC, "\\b(?:completed|finished) step", true),
    P(FL_SIGN_METRIC, "\\| *[0-9]+/[0-9]+ \\[[0-9?]", false),
    P(FL_SIGN_METRIC, "Train (?:loss/|[a-z_0-9]+/grad/)", false),
    P(FL_SIGN_METRIC, "\\[(?:epoch|batch|token)=[0-9]+", false),
    P(FL_SIGN_METRIC, "\"num_updates\": ", false),
    P(FL_SIGN_METRIC, "\\bnum_updates=", false),
    P(FL_SIGN_METRIC, "SamplesPerSec=", false),
    P(FL_SIGN_METRIC, "Epoch *[:=\\[]? ?[0-9]+ *[|,/:\\]].{0,80}[0-9]", false),
    P(FL_SIGN_METRIC, "validation loss at ", false),
    P(FL_SIGN_METRIC, "valid loss at ", false),

    P(FL_SIGN_PLACE, "NCCL INFO .*Init (?:START|COMPLETE)", false),
    P(FL_SIGN_PLACE, "GLOBAL_RANK: ", false),
    P(FL_SIGN_PLACE, "global_rank_mapping", false),
    P(FL_SIGN_PLACE, "is bound to host", false),
    P(FL_SIGN_PLACE, "\\bworld[ _-]?size\\b", true),
    P(FL_SIGN_PLACE, "\\bnranks ", false),
    P(FL_SIGN_PLACE, "Starting with [0-9]+ processes", false),
    P(FL_SIGN_PLACE, "--(?:nnodes|nproc[_-]per[_-]node|ntasks|nodes)[ =]", false),
    P(FL_SIGN_PLACE, "(?:SLURM|SLURMD)_[A-Z_]*(?:NODELIST|NTASKS|NNODES|PROCID|NODENAME|NODEID)",
      false),
    P(FL_SIGN_PLACE, "[nN]ode ?[lL]ist", false),
    P(FL_SIGN_PLACE, "MASTER_ADDR", false),
    P(FL_SIGN_PLACE, "[rR]ank [0-9]+ .{0,20}(?:exited with code|crashed with exit code) ", false),
    P(FL_SIGN_PLACE, "\\b[Hh]ostname:? +[A-Za-z0-9]", false),
    P(FL_SIGN_PLACE, "  (?:host|rank|exitcode) +: ", false),
    P(FL_SIGN_PLACE, "\\blocal_rank: [0-9]+ \\(pid", false),
    P(FL_SIGN_PLACE, "srun: error: [^ ]+: tasks? ", false),
    P(FL_SIGN_PLACE, "\\brank[ =:]+[0-9]+.{0,40}\\bhost", true),
    P(FL_SIGN_PLACE, "\\bhost.{0,40}\\brank[ =:]+[0-9]+", true),
    P(FL_SIGN_PLACE, "\\| +[0-9]+ +(?:NVIDIA|Tesla|GeForce|Quadro) ", false),
    P(FL_SIGN_PLACE, "\\|   [0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\\.0", false),
    P(FL_SIGN_PLACE, "\\bGPU ?[0-9]+:? .{0,60}[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:00", false),
    P(FL_SIGN_PLACE, "-> (?:[0-9]{1,3}\\.){3}[0-9]{1,3}", false),
    P(FL_SIGN_PLACE, "distributed_world_size", false),
    P(FL_SIGN_PLACE,
      "NCCL INFO (?:NET/(?:IB|Socket)|Bootstrap) ?: ?Using "
      ".*<0>",
      false),
    P(FL_SIGN_PLACE, /* kubectl get pods -o wide */
      "/[0-9]+ "
      "+(?:Running|Completed|Error|OOMKilled|Evicted|Pending|CrashLoopBackOff|Terminating|Failed|"
      "Unknown|Init:\\S+) +[0-9]+ .*\\.[0-9]+ +[a-z0-9]",
      false),
    P(FL_SIGN_PLACE,
      "\\b[rR]ank[ =:]+[0-9]+(?:/[0-9]+| of [0-9]+)? (?:is |runs |running |started )?on [a-zA-Z]",
      false),

    P(FL_SIGN_CHECKPOINT, "\\b(?:saving|save|writing|storing)\\b.{0,30}\\bcheckpoint", true),
    P(FL_SIGN_CHECKPOINT, "Saving model checkpoint to", false),
    P(FL_SIGN_CHECKPOINT, "is about to be saved!", false),
    P(FL_SIGN_CHECKPOINT, "Checkpoint save for step", false),
    P(FL_SIGN_SAVED, "successfully saved checkpoint", true),
    P(FL_SIGN_SAVED, "\\b(?:saved|finished saving|finished writing)\\b.{0,20}\\bcheckpoint", true),
    P(FL_SIGN_SAVED, "checkpoint.{0,60}\\b(?:saved|is ready now|finalized successfully|written)",
      true),
    P(FL_SIGN_SAVED, "Model weights saved in", false),
    P(FL_SIGN_LOADED, "successfully loaded checkpoint", true),
    P(FL_SIGN_LOADED,
      "\\b(?:loaded|loading|resum(?:ing|ed)|restor(?:ing|ed))\\b.{0,40}\\bcheckpoint", true),
    P(FL_SIGN_LOADED, "\\bresum(?:ing|ed?)\\b.{0,30}\\b(?:from|at)\\b", true),
    P(FL_SIGN_EVAL,
      "\\b(?:evaluating|running (?:evaluation|validation)|validation:|start(?:ing)? eval)", true),
    P(FL_SIGN_EVAL, "validat(?:e|ion) (?:step|loss)", true),

    P(FL_SIGN_END, "'train_runtime': ", false),
    P(FL_SIGN_END, "\\btraining (?:is )?(?:has )?(?:completed|complete|finished|done)\\b", true),
    P(FL_SIGN_END, "\\b(?:finished|completed) training\\b", true),
    P(FL_SIGN_END, "\\btrain(?:ing)? ?(?:job|run) (?:completed|complete|finished|succeeded)\\b",
      true),
    P(FL_SIGN_END, "after training is done", false),
    P(FL_SIGN_END, "exiting program (?:after|at iteration)", false),
    P(FL_SIGN_END, "exits successfully", false),
    P(FL_SIGN_END, "\\bfinished successfully\\b", false),
    P(FL_SIGN_END, "\\bTraining (?:ended|succeeded)\\b", true),
    P(FL_SIGN_END, "reason=Completed|\\bCompleted +0 ", false),
    P(FL_SIGN_END, "`?Trainer\\.fit`? stopped: `?max_(?:steps|epochs)", false),
    P(FL_SIGN_END, "wandb: Synced ", false),
    P(FL_SIGN_END, "wandb: .{0,12}View run .{0,60} at:? ", false),
    P(FL_SIGN_END, "Local worker group finished \\(WorkerState\\.SUCCEEDED\\)", false),
    P(FL_SIGN_END, "\\[default\\] worker group successfully finished", false),
    P(FL_SIGN_END, "done training in ", false),
    P(FL_SIGN_END, "\\ball (?:epochs|steps|iterations) (?:done|completed|finished)", true),
    P(FL_SIGN_END, "\\bsav(?:ed|ing) (?:the )?final (?:model|checkpoint)", true),
    P(FL_SIGN_END, "\\bjob (?:has )?(?:completed|finished|succeeded)(?: successfully)?\\b", true),

    P(FL_SIGN_ATTEMPT, "will restart worker group", false),
    P(FL_SIGN_ATTEMPT, "attempts? left; will restart", false),
    P(FL_SIGN_ATTEMPT, "\\bStarting attempt [0-9]+", true),
    P(FL_SIGN_ATTEMPT,
      "\\b(?:restart|attempt|retry)(?: number| no\\.?| #)?[ "
      ":=#]+[0-9]+.{0,30}(?:start|launch|begin)",
      true),
    P(FL_SIGN_ATTEMPT,
      "\\b(?:requeued|restarting the job|restarting job|relaunching|resubmitt(?:ing|ed))\\b", true),
    P(FL_SIGN_TEARDOWN, "closing signal SIGTERM", false),
    P(FL_SIGN_TEARDOWN, "Killing subprocess", false),
    P(FL_SIGN_TEARDOWN, "CANCELLED AT ", false),
    P(FL_SIGN_TEARDOWN, "Job step aborted", false),
    P(FL_SIGN_TEARDOWN, "pdsh@[^:]*: interrupt ", false),
    P(FL_SIGN_TEARDOWN, "KeyboardInterrupt", false),
    P(FL_SIGN_TEARDOWN, "after attempting to dump", false),
    P(FL_SIGN_TEARDOWN, "Received signal.{0,12}(?:SIGTERM|\\b15\\b)", true),
    P(FL_SIGN_BUSY, "examples/s\\]", false),
    P(FL_SIGN_BUSY,
      "\\b(?:Map|Filter|Tokeniz(?:e|ing)|Running tokenizer|Grouping texts)\\b[^|]{0,60}\\|", false),
    P(FL_SIGN_BUSY,
      "\\b(?:tokeniz|pre-?process|index|pack|shuffl)ing\\b.{0,60}(?:[0-9]+ "
      "?%|[0-9]+/[0-9]+|samples|documents|dataset)",
      true),
    P(FL_SIGN_BUSY, "> building (?:the )?(?:index|shuffle|sample|doc)", false),
    P(FL_SIGN_STACK, "Process [0-9]+: .{0,20}python", false),
    P(FL_SIGN_STACK, "Process [0-9]+: /", false),
    P(FL_SIGN_STACK, "Thread (?:[0-9]+|0x[0-9a-fA-F]+) \\((?:idle|active)", false),
    P(FL_SIGN_STACK, "    [A-Za-z_<>]+[A-Za-z_0-9<>]* \\([^ ()]+\\.py:[0-9]+\\)", false),
    P(FL_SIGN_WAIT, "Watchdog caught collective operation timeout", false),
    P(FL_SIGN_WAIT, "last enqueued (?:NCCL )?work", false),
    P(FL_SIGN_PULSE, "PULSE: .{0,80} is running", false),
    P(FL_SIGN_PULSE, "\\bRUNNING\\b +[0-9-]*:?[0-9:]+", false),
    P(FL_SIGN_PULSE, "\\bThread (?:[0-9]+|0x[0-9a-f]+) \\((?:idle|active)", false),
};

size_t fl_signs(const struct fl_pattern **out)
{
    *out = table;
    return sizeof(table) / sizeof(*table);
}
