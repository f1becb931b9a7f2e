#!/usr/bin/env python3
"""check.py PROGRAM NAIVE: what the bench rests on, without a clock.

The generator gives the same bytes twice; its labels name lines that are there; `diagnose eval`
finds cause, place and evidence of every kind of failure it makes; hostile logs are what they are
called; rank files come as said. The frozen patterns are all taken by ripgrep and by PCRE2, and
both find the same number of lines. Prints what differed; fails if anything did.
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERNS = os.path.join(HERE, "patterns.txt")
KINDS = ("cuda-ecc", "xid-ecc", "traceback", "hang", "loss-spike", "none")
wrong = []


def expect(what, got, wanted):
    if got != wanted:
        wrong.append("%s: %r, expected %r" % (what, got, wanted))


def gen(path, *how):
    subprocess.run([sys.executable, os.path.join(HERE, "gen.py"), path, *map(str, how)],
                   check=True)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def check_labels(cases):
    for kind in KINDS:
        folder = gen(os.path.join(cases, kind), "--case", "--failure", kind, "--mb", 1,
                     "--ranks", 64)
        label = json.loads(read(os.path.join(folder, "label.json")))
        expect("%s: decisive lines are named" % kind, bool(label["decisive"]), kind != "none")
        for d in label["decisive"]:
            lines = read(os.path.join(folder, d["file"])).decode().split("\n")
            expect("%s: %s:%d" % (kind, d["file"], d["line"]), lines[d["line"] - 1], d["text"])
            expect("%s: an expression of the label matches %s:%d" % (kind, d["file"], d["line"]),
                   any(re.search(x, d["text"]) for x in label["decisive_lines"]), True)


def check_answers(program, cases):
    said = subprocess.run([program, "eval", "--json", cases], capture_output=True)
    answers = {c["id"]: c for c in json.loads(said.stdout)["cases"]}
    expect("cases that eval ran", sorted(answers), sorted(KINDS))
    for kind, c in answers.items():
        expect("%s: cause" % kind, c["cause_ok"] or c["got"], True)
        expect("%s: place" % kind, c.get("place_ok", True), True)
        expect("%s: evidence" % kind, c.get("evidence_ok", True), True)


def check_again(folder):
    how = ("--mb", 1, "--ranks", 64, "--prose", 0.1)
    one, two = (read(gen(os.path.join(folder, x), *how)) for x in ("one", "two"))
    expect("the same bytes twice", one == two, True)
    expect("another seed gives the same bytes",
           read(gen(os.path.join(folder, "three"), *how, "--seed", 7)) == one, False)
    prose = [x for x in one.split(b"\n") if b": sample: " in x]
    expect("a tenth of the lines is prose", 0.05 < len(prose) / one.count(b"\n") < 0.15, True)


def check_hostile(folder):
    for kind in ("shapes", "long", "cr", "bytes"):
        text = read(gen(os.path.join(folder, kind), "--hostile", kind, "--mb", 3))
        expect("%s: about the size asked for" % kind, 3e6 <= len(text) < 4.1e6, True)
        lines = text.split(b"\n")
        if kind == "shapes":
            long = [x for x in lines if len(x) > 20]
            expect("shapes: lines alike", len(long) - len(set(long)), 0)
        elif kind == "long":
            expect("long: lengths", {len(x) for x in lines[:-1]}, {1000000})
        elif kind == "cr":
            expect("cr: line feeds", len(lines) - 1, 0)
            expect("cr: carriage returns", text.count(b"\r") > 10000, True)
        else:
            expect("bytes: values", len(set(text)), 256)


def check_files(folder):
    ranks = gen(os.path.join(folder, "ranks"), "--split", "--ranks", 16, "--mb", 0.5)
    names = sorted(os.listdir(ranks))
    expect("rank files", len(names), 16)
    expect("gzipped", [n.endswith(".gz") for n in names], [False, True] * 8)
    text = gzip.decompress(read(os.path.join(ranks, names[1])))
    expect("a gzipped file has steps", text.count(b"\nstep ") > 100, True)


def check_patterns(naive, folder):
    lines = read(PATTERNS).split(b"\n")[:-1]
    expect("patterns", (len(lines), len(set(lines))), (300, 300))
    log = gen(os.path.join(folder, "log"), "--mb", 1, "--ranks", 64)
    with open(log, "ab") as f:
        f.write(read(gen(os.path.join(folder, "x"), "--case", "--failure", "xid-ecc", "--mb", 0.1,
                         "--ranks", 8) + "/dmesg-gn0000.log"))
    counts = {}
    for order in ("lines", "blocks"):
        p = subprocess.run([naive, order, PATTERNS, log], capture_output=True, text=True)
        counts[order] = p.stdout.split()[:1] or p.stderr
    p = subprocess.run(["rg", "-c", "--no-config", "--text", "-f", PATTERNS, log],
                       capture_output=True, text=True)
    counts["rg"] = p.stdout.split()[:1] or p.stderr
    expect("ripgrep and both naive loops find the same, and something", len(set(
        map(str, counts.values()))) == 1 and int(counts["rg"][0]) > 50 or counts, True)


def main():
    program, naive = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        cases = os.path.join(folder, "cases")
        os.mkdir(cases)
        check_labels(cases)
        check_answers(program, cases)
        check_again(folder)
        check_hostile(folder)
        check_files(folder)
        check_patterns(naive, folder)
    for w in wrong:
        print(w)
    sys.exit(bool(wrong))


main()
