#!/usr/bin/env python3
"""gen.py OUT [--mb 300] [--ranks 2048] [--seed N] [what]: logs of large jobs, made up.

  --prose SHARE    that share of the lines is free text, new on every line, as of a job that prints
                   samples of its data
  --failure KIND   how the job ends: cuda-ecc (default), xid-ecc, traceback, hang, loss-spike, none
  --case           OUT is a folder: job.log, for xid-ecc the kernel log of one host, and label.json
                   as tests/cases has it, which also names the decisive lines by file and number
  --split          OUT is a folder with a file for each rank, every second one gzipped
  --hostile KIND   no job at all: shapes (a new one on every line), long (lines of 1 MB), cr (only
                   carriage returns), bytes (random)

The same arguments give the same bytes. joblog.py has what a healthy job prints, faults.py how one
fails. 300 MB take about two seconds.
"""
import argparse
import gzip
import json
import os
import random
import sys

from faults import KINDS, Tail
from joblog import (BLOCKS, DAY, first_words, harmless, host, label, metric_text, now_and_then,
                    put_in, start_up, step_block, step_line)


class Out:
    """A file that knows how many bytes and lines went into it."""

    def __init__(self, path):
        self.f, self.bytes, self.lines = open(path, "wb", buffering=1 << 20), 0, 0

    def write(self, data):
        self.f.write(data)
        self.bytes += len(data)
        self.lines += data.count(b"\n")

    def close(self):
        self.f.close()


def healthy_end(r, ranks, step):
    t = Tail("none", "-", "none", "The job reached its last step and left.")
    t.follow_on = []
    for text in ("saving checkpoint at iteration %7d to /ckpt/gpt-175b in torch_dist format" % step,
                 "  successfully saved checkpoint from iteration %7d to /ckpt/gpt-175b" % step,
                 "[after training is done] datetime: 2026-03-%02d 23:59:59 " % DAY):
        t.add(label(0, text))
    return t


def with_prose(r, block, n, ranks):
    """The block with n lines of free text, in eight places."""
    words = r.randbytes(n * 100).translate(letters()).decode().replace("\n", " ")
    lines = [label(r.randrange(ranks), "sample: " + words[i * 100:i * 100 + 40 + r.randrange(60)])
             for i in range(n)]
    out, at = [], 0
    for k in range(8):
        to = block.find(b"\n", len(block) * (k + 1) // 9) + 1
        out += [block[at:to], "".join(lines[n * k // 8:n * (k + 1) // 8]).encode()]
        at = to
    return b"".join(out + [block[at:]])


def combined(a, path):
    """Writes the job's log; returns its tail and the number of lines before it."""
    r = random.Random(a.seed)
    bad = a.bad if a.bad is not None else a.ranks * 3 // 5
    blocks = [step_block(r, a.ranks) for _ in range(BLOCKS)]
    end = KINDS.get(a.failure, healthy_end)
    size = sum(map(len, end(random.Random(1), a.ranks, bad, 1000).job)) if a.failure != "none" \
        else 300
    out = Out(path)
    out.write(start_up(r, a.ranks))
    step = 0
    while out.bytes < a.mb * 1e6 - size or step < 12:
        step += 1
        block = put_in(r.choice(blocks), step)
        if a.prose:
            block = with_prose(r, block, int(a.ranks * a.prose / (1 - a.prose)), a.ranks)
        out.write(block)
        out.write((label(a.ranks - 1, metric_text(r, step)) + now_and_then(r, a.ranks, step))
                  .encode())
    tail = end(r, a.ranks, bad, step + 1) if a.failure != "none" else healthy_end(r, a.ranks, step)
    before = out.lines
    out.write("".join(tail.job).encode())
    out.close()
    return tail, before


def case(a):
    os.makedirs(a.out, exist_ok=True)
    tail, before = combined(a, os.path.join(a.out, "job.log"))
    places = {"job": ("job.log", before)}
    if tail.kernel:
        name = "dmesg-%s.log" % tail.kernel_host
        with open(os.path.join(a.out, name), "w", encoding="utf-8") as f:
            f.writelines(tail.kernel)
        places["kernel"] = (name, 0)
    label_ = {"id": os.path.basename(os.path.abspath(a.out)), "cause": tail.cause,
              "class": tail.klass, "also_acceptable": tail.also,
              "decisive_lines": [x[2] for x in tail.decisive], "follow_on": tail.follow_on,
              "fault_location": tail.place, "action": tail.action, "explanation": tail.why,
              "source": ["tests/bench/gen.py"], "confidence": "high",
              "decisive": [{"file": places[w][0], "line": places[w][1] + i + 1,
                            "text": (tail.job if w == "job" else tail.kernel)[i].rstrip("\n")}
                           for w, i, _ in tail.decisive]}
    with open(os.path.join(a.out, "label.json"), "w", encoding="utf-8") as f:
        json.dump(label_, f, indent=1)
        f.write("\n")


def rank_body(r, ranks, steps, last):
    out = []
    for step in range(1, steps + 1):
        if r.randrange(200) == 0:
            out.append(harmless(r).replace("@TIME@", "2026-03-14 02:00:00.000"))
        out.append(step_line(r).replace("@STEP@", "%6d" % step))
        if last:
            out.append(metric_text(r, step))
    return "\n".join(out) + "\n"


def split(a):
    """A file for each rank. Bodies are shared among ranks, as formatting each would take minutes:
    what differs is the start, the end and the name."""
    r = random.Random(a.seed)
    os.makedirs(a.out, exist_ok=True)
    bad = a.bad if a.bad is not None else a.ranks * 3 // 5
    front = [("\n".join(first_words(r, rank, a.ranks)) + "\n") for rank in range(a.ranks)]
    steps = max(12, int((a.mb * 1e6 / a.ranks - len(front[0])) / len(step_line(r) + "\n")))
    bodies = [rank_body(r, a.ranks, steps, False) for _ in range(16)]
    ends = {}
    for line in KINDS["cuda-ecc"](r, a.ranks, bad, steps + 1).job:
        rank, _, text = line.partition(": ")
        if rank.strip().isdigit():
            ends.setdefault(int(rank), []).append(text)
    for rank in range(a.ranks):
        body = rank_body(r, a.ranks, steps, True) if rank == a.ranks - 1 else bodies[rank % 16]
        text = (front[rank] + body + "".join(ends.get(rank, ()))).encode()
        path = os.path.join(a.out, "%s-rank-%04d.log" % (host(rank), rank))
        if rank % 2:
            with open(path + ".gz", "wb") as f, \
                    gzip.GzipFile("", "wb", 6, fileobj=f, mtime=0) as z:
                z.write(text)
        else:
            with open(path, "wb") as f:
                f.write(text)


def letters():
    """From random bytes to text: words of some five letters, lines of some fifteen words."""
    return b"etaoinshrdlucmfwypvbgkqjxz" * 8 + b" " * 42 + b"-_/" + b"\n" * 3


def hostile_chunks(a, r):
    size = 1 << 20
    if a.hostile == "bytes":
        while True:
            yield r.randbytes(size)
    if a.hostile == "shapes":
        table = letters()
        while True:
            yield r.randbytes(size).translate(table)
    ranks, step = 256, 0
    blocks = [step_block(r, ranks) for _ in range(BLOCKS)]
    while True:
        step += 1
        text = put_in(r.choice(blocks), step)
        if a.hostile == "cr":
            yield text.replace(b"\n", b"\r")
            continue
        while len(text) < 1000000:
            text += put_in(r.choice(blocks), step)
        yield text[:1000000].replace(b"\n", b" ") + b"\n"


def hostile(a):
    out, r = Out(a.out), random.Random(a.seed)
    for chunk in hostile_chunks(a, r):
        out.write(chunk)
        if out.bytes >= a.mb * 1e6:
            break
    out.close()


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("out")
    p.add_argument("--mb", type=float, default=300)
    p.add_argument("--ranks", type=int, default=2048)
    p.add_argument("--seed", type=int, default=20260314)
    p.add_argument("--bad", type=int, help="the rank that fails; default three fifths up")
    p.add_argument("--prose", type=float, default=0)
    p.add_argument("--failure", choices=[*KINDS, "none"], default="cuda-ecc")
    p.add_argument("--case", action="store_true")
    p.add_argument("--split", action="store_true")
    p.add_argument("--hostile", choices=["shapes", "long", "cr", "bytes"])
    a = p.parse_args()
    if a.hostile:
        hostile(a)
    elif a.split:
        split(a)
    elif a.case:
        case(a)
    else:
        combined(a, a.out)


if __name__ == "__main__":
    sys.exit(main())
