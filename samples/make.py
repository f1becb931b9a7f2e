#!/usr/bin/env python3
"""Writes samples/gpu-lost: what a 16-rank job on two nodes leaves behind when one GPU is lost.

Two nodes of eight GPUs, one torchrun on each (--tee, so every line carries [default<local rank>]:).
At 02:03:44 the GPU of rank 13 falls off the bus of gn08. Rank 13 hangs in a driver call and says
nothing more. The other 15 ranks wait ten minutes in the next all-reduce, and then each prints a
page about a time-out. The kernel log of gn08 holds the reason in one line, between an old warning
about another GPU and what the driver prints afterwards.

Everything here is made up; host names, addresses and numbers are of no real machine. The random
seed is fixed: running this again writes the same bytes. --compare writes nothing and fails when the
files are not what it would write.
"""
import datetime
import os
import random
import sys

R = random.Random(79)
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu-lost")
NODES = ["gn07", "gn08"]
BUS = ["1b", "43", "52", "61", "9d", "b7", "c3", "d1"]
START = datetime.datetime(2026, 3, 14, 1, 2, 11, 204000)
LOST = datetime.datetime(2026, 3, 14, 2, 3, 44, 0)
VICTIM = 13
LAST_ITERATION = 1140
SEQ = 41054
PID = {r: (20111 if r < 8 else 31877) + 3 * (r % 8) + 1 for r in range(16)}

logs = {n: [] for n in NODES}  # (time, order, text)


def put(node, when, text):
    logs[node].append((when, len(logs[node]), text))


def say(rank, when, text):
    put(NODES[rank // 8], when, "[default%d]:%s" % (rank % 8, text))


def after(seconds):
    return START + datetime.timedelta(seconds=seconds)


def glog(when, level, place, pid, text):
    return "%s%s %d %s] %s" % (level, when.strftime("%m%d %H:%M:%S.%f"), pid, place, text)


def c10(when, level, place):
    return "[%s%d%s %s%03d %s]" % (level, when.month, when.strftime("%d"),
                                   when.strftime("%H:%M:%S.%f"), R.randrange(1000), place)


def launch():
    for i, node in enumerate(NODES):
        t, pid = after(0.05 * i), 20102 if i == 0 else 31868
        put(node, t, glog(t, "W", "torch/distributed/run.py:793", pid, ""))
        for text in ("*****************************************",
                     "Setting OMP_NUM_THREADS environment variable for each process to be 1 in "
                     "default, to avoid your system being overloaded, please further tune the "
                     "variable for optimal performance in your application as needed. ",
                     "*****************************************"):
            put(node, t, glog(t, "W", "torch/distributed/run.py:793", pid, text))
        t = after(3.1 + 0.02 * i)
        where = "torch/distributed/elastic/agent/server/api.py:525"
        put(node, t, glog(t, "I", where, pid,
                          "[default] Rendezvous complete for workers. Result:"))
        for line in ("restart_count=0", "master_addr=gn07", "master_port=29500",
                     "group_rank=%d" % i, "group_world_size=2",
                     "local_ranks=[0, 1, 2, 3, 4, 5, 6, 7]",
                     "role_ranks=[%s]" % ", ".join(str(8 * i + k) for k in range(8)),
                     "role_world_sizes=[16, 16, 16, 16, 16, 16, 16, 16]",
                     "global_ranks=[%s]" % ", ".join(str(8 * i + k) for k in range(8)),
                     "global_world_sizes=[16, 16, 16, 16, 16, 16, 16, 16]"):
            put(node, t, "  " + line)


def set_up():
    for rank in range(16):
        node, local, pid = NODES[rank // 8], rank % 8, PID[rank]
        t = after(21 + R.random() * 4)
        head = "%s:%d:%d [%d] NCCL INFO " % (node, pid, pid, local)
        say(rank, t, head + "Bootstrap : Using bond0:10.3.0.%d<0>" % (7 + rank // 8))
        say(rank, t, head + "NET/Plugin: No plugin found (libnccl-net.so)")
        head = "%s:%d:%d [%d] NCCL INFO " % (node, pid, pid + 400, local)
        say(rank, t, head + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_4:1/IB "
            "[3]mlx5_5:1/IB ; OOB bond0:10.3.0.%d<0>" % (7 + rank // 8))
        t = after(29 + R.random())
        comm = "comm 0x%x rank %d nranks 16 cudaDev %d nvmlDev %d busId %s000 commId " \
            "0x6f1c9b27de40a315 - Init COMPLETE" % (0x55d0a0000000 + R.randrange(1 << 24) * 16, rank,
                                                    local, local, BUS[local])
        say(rank, t, head + comm)
    for k, text in enumerate(("> building model: 32 layers, hidden size 4096, tensor parallel 1, "
                              "data parallel 16",
                              "> number of parameters on rank 0: 6738415616",
                              "> building train dataset: 41230118 samples",
                              "WARNING: no checkpoint found in /lustre/runs/lm7b-03/ckpt, starting "
                              "from random",
                              "[before the start of training step] datetime: 2026-03-14 01:05:40")):
        say(0, after(60 + 37 * k), text)


def train():
    t = datetime.datetime(2026, 3, 14, 1, 5, 48, 331000)
    loss = 10.9
    for it in range(10, LAST_ITERATION + 1, 10):
        left = (LOST - t).total_seconds() - 1.9
        step = left / ((LAST_ITERATION + 10 - it) / 10) * (1 + R.uniform(-0.01, 0.01))
        t += datetime.timedelta(seconds=step)
        loss = 2.6 + (loss - 2.6) * 0.965 + R.uniform(-0.02, 0.02)
        say(15, t, " [%s] iteration %8d/   20000 | consumed samples: %12d | elapsed time per "
            "iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | "
            "global batch size:   256 | lm loss: %.6E | grad norm: %.3f | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |" %
            (t.strftime("%Y-%m-%d %H:%M:%S.%f"), it, it * 256, step * 100,
             452 * 3.03 / (step / 10), min(3e-4, it * 1.5e-7), loss, 0.4 + R.random() / 4))
        if it % 500 == 0:
            say(0, t, "saving checkpoint at iteration %8d to /lustre/runs/lm7b-03/ckpt" % it)
            t += datetime.timedelta(seconds=7.2)
            say(0, t, "  successfully saved checkpoint from iteration %8d to "
                "/lustre/runs/lm7b-03/ckpt" % it)
        if it == 270:
            say(3, t, "[rank3]:%s Warning: barrier() using the device under current context"
                % c10(t, "W", "ProcessGroupNCCL.cpp:4561"))


def work():
    return ("WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=67108864, NumelOut=67108864, "
            "Timeout(ms)=600000)" % SEQ)


def time_out(rank):
    began = LOST + datetime.timedelta(seconds=0.6 + R.random() * 0.8)
    ran = 600000 + R.randrange(8, 97)
    t = began + datetime.timedelta(milliseconds=ran)
    who, said = "[rank%d]:" % rank, "[PG ID 0 PG GUID 0(default_pg) Rank %d]" % rank
    caught = "[Rank %d] Watchdog caught collective operation timeout: %s ran for %d milliseconds " \
        "before timing out." % (rank, work(), ran)
    last = "last enqueued NCCL work: %d, last completed NCCL work: %d." % (SEQ + 2, SEQ - 1)

    def line(dt, level, place, text):
        when = t + datetime.timedelta(milliseconds=dt)
        say(rank, when, who + c10(when, level, "ProcessGroupNCCL.cpp:%d" % place) + " " + text)

    line(0, "E", 616, caught)
    line(2, "E", 1785, said + " Exception (either an error or timeout) detected by watchdog at "
         "work: %d, %s" % (SEQ, last))
    if rank == 0:
        line(4, "E", 1595, said + " First PG on this rank to signal dumping.")
    line(1400, "E", 1834, said + " Timeout at NCCL work: %d, %s" % (SEQ, last))
    line(1401, "E", 630, "[Rank %d] Some NCCL operations have failed or timed out. Due to the "
         "asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
         "corrupted/incomplete data." % rank)
    line(1401, "E", 636, "[Rank %d] To avoid data inconsistency, we are taking the entire process "
         "down." % rank)
    line(1403, "E", 1595, said + " Process group watchdog thread terminated with exception: " +
         caught)
    when = t + datetime.timedelta(milliseconds=1404)
    base = 0x7f0000000000 + R.randrange(1 << 34) * 64
    say(rank, when, "Exception raised from checkTimeout at "
        "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:618 (most recent call first):")
    for n, (name, offset, lib) in enumerate((
            ("c10::Error::Error(c10::SourceLocation, std::string)", 0x96, "libc10.so"),
            ("c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout", 0x282, "libtorch_cuda.so"),
            ("c10d::ProcessGroupNCCL::watchdogHandler()", 0x233, "libtorch_cuda.so"),
            ("c10d::ProcessGroupNCCL::ncclCommWatchdog()", 0x14d, "libtorch_cuda.so"),
            ("<unknown function>", 0xdc253, "libstdc++.so.6"))):
        say(rank, when, "frame #%d: %s + 0x%x (0x%x in /opt/venv/lib/%s)" %
            (n, name, offset, base + n * 0x31f40, lib))
    say(rank, when, "terminate called after throwing an instance of 'c10::DistBackendError'")
    say(rank, when, "  what():  [PG ID 0 PG GUID 0(default_pg) Rank %d] Process group watchdog "
        "thread terminated with exception: %s" % (rank, caught))


def tear_down():
    for i, node in enumerate(NODES):
        t, pid = LOST + datetime.timedelta(seconds=604 + i), 20102 if i == 0 else 31868
        first = 2 if i == 0 else 1
        api = "torch/distributed/elastic/multiprocessing/api.py"
        for k in range(8):
            if k != first:
                put(node, t, glog(t, "W", api + ":897", pid, "Sending process %d closing signal "
                                  "SIGTERM" % PID[8 * i + k]))
        t += datetime.timedelta(seconds=30)
        if i == 1:
            put(node, t, glog(t, "W", api + ":916", pid, "Unable to shutdown process %d via 15, "
                              "forcefully exiting via 9" % PID[VICTIM]))
            t += datetime.timedelta(seconds=2)
        put(node, t, glog(t, "E", api + ":869", pid, "failed (exitcode: -6) local_rank: %d (pid: "
                          "%d) of binary: /opt/venv/bin/python3" % (first, PID[8 * i + first])))
        bar = "=" * 60
        table = ["Traceback (most recent call last):",
                 '  File "/opt/venv/bin/torchrun", line 8, in <module>',
                 "    sys.exit(main())",
                 '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/run.py", line '
                 "919, in main",
                 "    run(args)",
                 "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", bar,
                 "pretrain_gpt.py FAILED", "-" * 60, "Failures:", "  <NO_OTHER_FAILURES>", "-" * 60,
                 "Root Cause (first observed failure):", "[0]:",
                 "  time      : %s" % (LOST + datetime.timedelta(seconds=603 + i)).strftime(
                     "%Y-%m-%d_%H:%M:%S"),
                 "  host      : %s" % node,
                 "  rank      : %d (local_rank: %d)" % (8 * i + first, first),
                 "  exitcode  : -6 (pid: %d)" % PID[8 * i + first], "  error_file: <N/A>",
                 "  traceback : Signal 6 (SIGABRT) received by PID %d" % PID[8 * i + first], bar]
        for text in table:
            put(node, t, text)


def kernel():
    def at(when, text):
        day = when.strftime("%a %b ") + "%2d" % when.day
        return "[%s %s] %s" % (day, when.strftime("%H:%M:%S %Y"), text)

    boot = datetime.datetime(2026, 3, 9, 8, 11, 2)
    lines = [at(boot, "Linux version 6.1.0-28-amd64 (gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP"),
             at(boot, "EDAC MC0: Giving out device to module i10nm_edac"),
             at(boot + datetime.timedelta(seconds=14), "nvidia: loading out-of-tree module taints "
                "kernel."),
             at(boot + datetime.timedelta(seconds=16), "NVRM: loading NVIDIA UNIX x86_64 Kernel "
                "Module  550.90.07")]
    for k in range(4):
        lines.append(at(boot + datetime.timedelta(seconds=25 + k),
                        "mlx5_core 0000:%02x:00.0 ibp%ds0: Link up" % (0x19 + 0x20 * k, k)))
    t = datetime.datetime(2026, 3, 12, 17, 40, 9)
    lines += [at(t, "NVRM: GPU at PCI:0000:43:00: GPU-b0e6e2b4-7f14-9c1e-5d0a-3c2f6a7d8e91"),
              at(t, "NVRM: Xid (PCI:0000:43:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: "
                 "New row marked for remapping, reset gpu to activate."),
              at(datetime.datetime(2026, 3, 13, 3, 22, 51), "perf: interrupt took too long (2508 > "
                 "2500), lowering kernel.perf_event_max_sample_rate to 79500")]
    gpu, name = "0000:b7:00", "pid=%d, name=python3" % PID[VICTIM]
    s = datetime.timedelta(seconds=1)
    lines += [at(LOST, "NVRM: GPU at PCI:%s: GPU-2f9d4c10-8a6b-41d7-b3e5-90c1f7e26a48" % gpu),
              at(LOST, "NVRM: GPU Board Serial Number: 1653923044117"),
              at(LOST, "NVRM: Xid (PCI:%s): 79, %s, GPU has fallen off the bus." % (gpu, name)),
              at(LOST, "NVRM: GPU %s.0: GPU has fallen off the bus." % gpu),
              at(LOST, "NVRM: GPU %s.0: GPU serial number is 1653923044117." % gpu),
              at(LOST + s, "NVRM: A GPU crash dump has been created. If possible, please run"),
              at(LOST + s, "NVRM: nvidia-bug-report.sh as root to collect this data before"),
              at(LOST + s, "NVRM: the NVIDIA kernel module is unloaded."),
              at(LOST + s, "NVRM: Xid (PCI:%s): 154, GPU recovery action changed from 0x0 (None) "
                 "to 0x2 (Node Reboot Required)" % gpu),
              at(LOST + 120 * s, "INFO: task python3:%d blocked for more than 120 seconds." %
                 PID[VICTIM]),
              at(LOST + 120 * s, "      Tainted: P           OE      6.1.0-28-amd64 #1 Debian"),
              at(LOST + 120 * s, "\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables "
                 "this message.")]
    return lines


def main():
    launch()
    set_up()
    train()
    for rank in range(16):
        if rank != VICTIM:
            time_out(rank)
    tear_down()
    os.makedirs(HERE, exist_ok=True)
    files = {"train-%s.log" % n: [x[2] for x in sorted(logs[n], key=lambda x: x[:2])]
             for n in NODES}
    files["dmesg-gn08.log"] = kernel()
    differs = 0
    for name, lines in files.items():
        text = "\n".join(lines) + "\n"
        path = os.path.join(HERE, name)
        if "--compare" in sys.argv:
            with open(path, encoding="utf-8", newline="") as f:
                if f.read() != text:
                    print("samples/gpu-lost/%s is not what samples/make.py writes" % name)
                    differs = 1
        else:
            with open(path, "w", encoding="utf-8", newline="\n") as f:
                f.write(text)
    return differs


sys.exit(main())
