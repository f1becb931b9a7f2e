#!/usr/bin/env python3
"""gen.py OUT [--mb 300] [--ranks 2048]: one combined log of a large job, as `srun -l` writes it.

Start-up with NCCL's INFO lines from every rank; then steps, each with a line from every rank and a
metric line from the last one, and now and then a warning that means nothing; then one rank meets an
uncorrectable memory error, and all others time out with a dozen lines each. The seed is fixed: the
same arguments give the same bytes.

Steps are cut from a few blocks made once, with the step number put in: formatting three million
lines one by one took most of a minute, this takes seconds.
"""
import argparse
import random


def label(rank, text):
    return "%4d: %s\n" % (rank, text)


def start_up(r, ranks):
    out = []
    for rank in range(ranks):
        host, local, pid = "gn%04d" % (rank // 8), rank % 8, 20000 + rank % 8 * 3
        head = "%s:%d:%d [%d] NCCL INFO " % (host, pid, pid + 411, local)
        out.append(label(rank, head + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB "
                         "bond0:10.%d.%d.7<0>" % (rank // 2048, rank // 8 % 256)))
        for c in range(0, 16, 2):
            out.append(label(rank, head + "Channel %02d/0 : %d[%d] -> %d[%d] [send] via "
                             "NET/IB/%d/GDRDMA" % (c, rank, local, (rank + 8) % ranks, local,
                                                   c % 4)))
        out.append(label(rank, head + "Connected all rings"))
        out.append(label(rank, head + "comm 0x%012x rank %d nranks %d cudaDev %d busId %x000 commId "
                         "0x7f3c19a2bb04d5e1 - Init COMPLETE" %
                         (r.randrange(1 << 47), rank, ranks, local, 16 + local * 17)))
    return "".join(out).encode()


def step_block(r, ranks):
    out = []
    for rank in range(ranks):
        pick = r.randrange(400)
        if pick == 0:
            out.append(label(rank, "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py"
                             ":1399: FutureWarning: `torch.cpu.amp.autocast(args...)` is deprecated."
                             ))
        elif pick == 1:
            out.append(label(rank, "[2026-03-14 02:%02d:%02d,%03d] [WARNING] [stage3.py:2114:step] 1 "
                             "pytorch allocator cache flushes since last step." %
                             (r.randrange(60), r.randrange(60), r.randrange(1000))))
        out.append(label(rank, "step @STEP@ fwd %6.1f ms bwd %6.1f ms comm %6.1f ms opt %5.1f ms "
                         "data %4.1f ms mem %.2f GiB" %
                         (310 + r.random() * 9, 640 + r.random() * 20, 88 + r.random() * 30,
                          31 + r.random() * 2, r.random() * 3, 61 + r.random())))
    r.shuffle(out)
    return "".join(out).encode()


def metric(r, ranks, step):
    t = 3600 + step * 3.1
    loss = 2.4 + 8.0 / (1 + step * 0.02) + r.uniform(-0.02, 0.02)
    return label(ranks - 1, " [2026-03-14 %02d:%02d:%06.3f] iteration %8d/  100000 | consumed "
                 "samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: 3.000000E-04"
                 " | global batch size:  4096 | lm loss: %.6E | grad norm: %.3f |" %
                 (t // 3600 % 24, t // 60 % 60, t % 60, step, step * 4096, 3100 + r.random() * 20,
                  loss, 0.3 + r.random() / 5)).encode()


def failure(r, ranks, step):
    bad = ranks * 3 // 5
    out = [label(bad, "[rank%d]: %s" % (bad, t)) for t in (
        "Traceback (most recent call last):",
        '  File "/workspace/train/pretrain.py", line 412, in <module>',
        "    main()",
        '  File "/workspace/train/pretrain.py", line 377, in main',
        "    loss.backward()",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 825, in '
        "_engine_run_backward",
        "    return Variable._execution_engine.run_backward(",
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")]
    waits = []
    for rank in range(ranks):
        if rank == bad:
            continue
        said = "[PG ID 0 PG GUID 0(default_pg) Rank %d]" % rank
        t = 3600 + step * 3.1 + 600 + r.random()
        head = "[rank%d]:[E314 %02d:%02d:%02d.%09d ProcessGroupNCCL.cpp:" % (
            rank, t // 3600 % 24, t // 60 % 60, t % 60, r.randrange(10 ** 9))
        caught = "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, " \
            "OpType=ALLREDUCE, NumelIn=67108864, NumelOut=67108864, Timeout(ms)=600000) ran for " \
            "%d milliseconds before timing out." % (rank, step * 36, 600000 + r.randrange(90))
        waits.append("".join(label(rank, x) for x in (
            head + "616] " + caught,
            head + "1785] %s Exception (either an error or timeout) detected by watchdog at work: "
            "%d, last enqueued NCCL work: %d, last completed NCCL work: %d." %
            (said, step * 36, step * 36 + 2, step * 36 - 1),
            head + "636] [Rank %d] To avoid data inconsistency, we are taking the entire process "
            "down." % rank,
            "terminate called after throwing an instance of 'c10::DistBackendError'",
            "  what():  %s Process group watchdog thread terminated with exception: %s" %
            (said, caught),
            "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96",
            "frame #1: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233")))
    r.shuffle(waits)
    return ("".join(out) + "".join(waits)).encode()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--mb", type=float, default=300)
    p.add_argument("--ranks", type=int, default=2048)
    a = p.parse_args()
    r = random.Random(20260314)
    blocks = [step_block(r, a.ranks) for _ in range(12)]
    with open(a.out, "wb") as f:
        f.write(start_up(r, a.ranks))
        end = a.mb * 1e6 - len(failure(random.Random(1), a.ranks, 1000))
        step = 0
        while f.tell() < end or step < 3:
            step += 1
            f.write(r.choice(blocks).replace(b"@STEP@", b"%6d" % step))
            f.write(metric(r, a.ranks, step))
        f.write(failure(r, a.ranks, step + 1))


main()
