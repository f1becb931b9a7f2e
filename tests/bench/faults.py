"""How the generated jobs end: one fault at one rank, then what all the others print because of it.

Each kind returns a Tail: lines for the end of the job's log, perhaps a kernel log of one host, and
which of the lines is decisive, that is, what a person would have to see to name the cause. Of the
thousands of lines around them none is.
"""
import re

from joblog import SECONDS_A_STEP, clock, host, label, loss_at, metric_text, put_in, step_block

WAIT = 600  # seconds, the job's collective time-out


class Tail:
    def __init__(self, cause, klass, action, why, also=(), place=None):
        self.cause, self.klass, self.action, self.why = cause, klass, action, why
        self.also, self.place = list(also), place or {}
        self.job, self.kernel, self.kernel_host = [], [], None
        self.follow_on = ["net.nccl_timeout"]
        self.decisive = []  # (which list, index in it, how a label says it: a regular expression)

    def add(self, text, decisive=None):
        if decisive:
            self.decisive.append(("job", len(self.job), decisive))
        self.job.append(text)

    def add_kernel(self, text, decisive=None):
        if decisive:
            self.decisive.append(("kernel", len(self.kernel), decisive))
        self.kernel.append(text)


def watchdog(r, rank, step, seq_behind=0):
    """The dozen lines with which one waiting rank gives up."""
    said = "[PG ID 0 PG GUID 0(default_pg) Rank %d]" % rank
    seq = step * 36 - seq_behind
    t = step * SECONDS_A_STEP + WAIT + r.random()
    day, h, m, s = clock(t)
    front = "[rank%d]:[E3%02d %02d:%02d:%09.6f ProcessGroupNCCL.cpp:" % (rank, day, h, m, s)
    caught = "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, " \
        "OpType=ALLREDUCE, NumelIn=67108864, NumelOut=67108864, Timeout(ms)=600000) ran for " \
        "%d milliseconds before timing out." % (rank, seq, WAIT * 1000 + r.randrange(90))
    out = [front + "632] " + caught,
           front + "2271] %s failure detected by watchdog at work sequence id: %d PG status: last "
           "enqueued work: %d, last completed work: %d" % (said, seq, seq + 2, seq - 1),
           front + "684] [Rank %d] Some NCCL operations have failed or timed out. Due to the "
           "asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
           "corrupted/incomplete data." % rank,
           front + "698] [Rank %d] To avoid data inconsistency, we are taking the entire process "
           "down." % rank,
           "terminate called after throwing an instance of 'c10::DistBackendError'",
           "  what():  %s Process group watchdog thread terminated with exception: %s"
           % (said, caught),
           "Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/"
           "ProcessGroupNCCL.cpp:635 (most recent call first):",
           "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x%012x in "
           "libc10.so)" % r.randrange(1 << 47),
           "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout + 0x232 (0x%012x in "
           "libtorch_cuda.so)" % r.randrange(1 << 47),
           "frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 (0x%012x in "
           "libtorch_cuda.so)" % r.randrange(1 << 47)]
    return [label(rank, x) for x in out]


def all_others_wait(r, ranks, bad, step):
    """Every rank but one, mixed as their writes come in: some lines at a time."""
    left = [watchdog(r, rank, step) for rank in range(ranks) if rank != bad]
    r.shuffle(left)
    out = []
    for at in range(0, len(left), 24):
        group = left[at:at + 24]
        while group:
            pick = r.randrange(len(group))
            n = r.randrange(1, 5)
            out += group[pick][:n]
            del group[pick][:n]
            if not group[pick]:
                del group[pick]
    return out


def launcher(ranks, bad, code):
    """srun's own lines, which name every task and help nobody."""
    out = ["srun: error: %s: task %d: %s\n" % (host(bad), bad, code)]
    out.append("srun: launch/slurm: _step_signal: Terminating StepId=884213.0\n")
    for first in range(0, ranks, 8):
        tasks = "%d-%d" % (first, min(ranks, first + 8) - 1)
        out.append("srun: error: %s: tasks %s: Aborted (core dumped)\n" % (host(first), tasks))
    return out


def follow(tail, r, ranks, bad, step, code):
    for line in all_others_wait(r, ranks, bad, step):
        tail.add(line)
    for line in launcher(ranks, bad, code):
        tail.add(line)
    return tail


def raised(tail, bad, frames, last):
    tail.add(label(bad, "[rank%d]: Traceback (most recent call last):" % bad))
    for file, line, function, code in frames:
        tail.add(label(bad, '[rank%d]:   File "%s", line %d, in %s' % (bad, file, line, function)))
        tail.add(label(bad, "[rank%d]:     %s" % (bad, code)))
    tail.add(label(bad, "[rank%d]: %s" % (bad, last)), re.escape(last))


MAIN = (("/workspace/train/pretrain_gpt.py", 412, "<module>", "main()"),
        ("/workspace/train/pretrain_gpt.py", 377, "main", "train_step(model, batch)"))


def cuda_ecc(r, ranks, bad, step):
    t = Tail("gpu.ecc", "infrastructure", "cordon_and_restart",
             "Rank %d met an uncorrectable memory error; everybody else waited for it." % bad,
             also=["gpu.hardware"], place={"rank": bad})
    raised(t, bad, MAIN + (
        ("/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", 825,
         "_engine_run_backward", "return Variable._execution_engine.run_backward("),),
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")
    return follow(t, r, ranks, bad, step, "Exited with exit code 1")


def dmesg(t, text):
    day, h, m, s = clock(t)
    return "[Sat Mar %2d %02d:%02d:%02d 2026] %s\n" % (day, h, m, s, text)


KERNEL_NOISE = (
    "mlx5_core 0000:%02x:00.0: mlx5_pcie_event:301:(pid 1417): PCIe slot advertised sufficient "
    "power (27W).",
    "nvidia-peermem: registered client %d",
    "systemd-journald[%d]: Data hash table of /run/log/journal has a fill level at 75.0",
    "perf: interrupt took too long (%d > 2500), lowering kernel.perf_event_max_sample_rate",
    "LNet: %d:0:(o2iblnd_cb.c:3442:kiblnd_check_conns()) Timed out tx for 10.4.0.11@o2ib: 0 "
    "seconds",
)


def xid_ecc(r, ranks, bad, step):
    t = Tail("gpu.ecc", "infrastructure", "cordon_and_restart",
             "The kernel log of rank %d's host has the uncorrectable memory error; the job's log "
             "only shows who waited." % bad, also=["gpu.hardware"], place={"host": host(bad)})
    t.kernel_host = host(bad)
    when = step * SECONDS_A_STEP
    for i in range(600):
        t.add_kernel(dmesg(-3000 + i * (when + 2900) / 600,
                           r.choice(KERNEL_NOISE) % r.randrange(16, 96)))
    bus = "0000:%02x:00" % (16 + bad % 8 * 17)
    said = "NVRM: Xid (PCI:%s): 48, pid=%d, name=python, An uncorrectable double bit error (DBE) " \
        "has been detected on GPU in the framebuffer at partition 6, subpartition 1." % (
            bus, 20000 + bad % 8 * 3)
    t.add_kernel(dmesg(when + 0.7, said), r"NVRM: Xid \(PCI:%s\): 48," % re.escape(bus))
    t.add_kernel(dmesg(when + 0.8, "NVRM: Xid (PCI:%s): 45, pid=%d, name=python, Ch 00000008"
                       % (bus, 20000 + bad % 8 * 3)))
    return follow(t, r, ranks, bad, step, "Killed")


def traceback(r, ranks, bad, step):
    t = Tail("script.key", "script", "fix_code",
             "The user's data code raised a KeyError in rank %d; everybody else waited for it."
             % bad, place={"rank": bad})
    raised(t, bad, MAIN + (
        ("/workspace/train/data/mixture.py", 188, "__next__", "return self.pack(sample)"),
        ("/workspace/train/data/mixture.py", 143, "pack",
         'weights = self.by_source[sample["source"]]')), "KeyError: 'web-2025-11'")
    return follow(t, r, ranks, bad, step, "Exited with exit code 1")


def hang(r, ranks, bad, step):
    t = Tail("net.nccl_timeout", "infrastructure", "investigate",
             "Rank %d fell silent without a word; all others timed out in the collective that it "
             "never entered, and none of them is to blame." % bad,
             also=["fw.hang", "fw.late_rank", "fw.desync"], place={"rank": bad})
    t.follow_on = []
    lines = all_others_wait(r, ranks, bad, step)
    for i, line in enumerate(lines):
        caught = "Watchdog caught collective operation timeout: WorkNCCL" in line
        t.add(line, r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=%d,"
              % (step * 36) if caught and not t.decisive else None)
    for line in launcher(ranks, bad, "Killed"):
        t.add(line)
    return t


def loss_spike(r, ranks, bad, step):
    t = Tail("fw.loss_spike", "framework", "rollback_and_skip",
             "The loss leaves its plateau at step %d, settles three times as high and does not "
             "come back; nothing else changes." % step)
    t.follow_on = []
    calm = metric_text(r, step - 1)
    t.add(label(ranks - 1, calm))
    block = step_block(r, ranks).decode()
    for i in range(40):
        lines = put_in(block.encode(), step + i).decode().splitlines(True)
        for line in lines:
            t.add(line)
        loss = loss_at(r, step) * (1 + min(2, 0.4 * (i + 1))) + r.random() / 10
        norm = min(60, 2 + 6 * i) + r.random()
        t.add(label(ranks - 1, metric_text(r, step + i, loss, norm)),
              r"iteration +%d/" % (step + i) if i < 12 else None)
    return t


KINDS = {"cuda-ecc": cuda_ecc, "xid-ecc": xid_ecc, "traceback": traceback, "hang": hang,
         "loss-spike": loss_spike}
