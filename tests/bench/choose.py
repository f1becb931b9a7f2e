#!/usr/bin/env python3
"""choose.py PROGRAM [--want 300]: prints the patterns that tests/bench/patterns.txt was frozen from.

ripgrep and the naive loop are given the same list in every run of the bench, for years, so that a
faster row means a faster program and not a shorter list. It is chosen once, from the stable rules
of role root, symptom and confirm, by this script and not by hand: each rule file gives in
proportion to the patterns it has (one at least), taken at even distances, so that neither the
cheap nor the dear ones are preferred. The text of a pattern is what `rules list --patterns` prints
for other tools; one that ripgrep's default engine refuses is passed over.

Running it again after the rules have changed gives another list. Do not put that into patterns.txt
unless every number of old is to be measured anew.
"""
import argparse
import json
import os
import re
import subprocess
import sys

NAMED = re.compile(r"\(\?P?<(?![=!])\w+>")


def said(argv):
    return subprocess.run(argv, capture_output=True, check=True).stdout.decode("utf-8", "replace")


def printed(program):
    """Pattern as the rule has it, without names of groups -> as it is printed for ripgrep."""
    out = {}
    for line in said([program, "rules", "list", "--patterns"]).splitlines():
        m = re.fullmatch(r"\(\?(i?)(?:-u)?:(.*)\)", line)
        if m:
            out[m.group(1), m.group(2)] = line
    return out


def ripgrep_takes(pattern):
    p = subprocess.run(["rg", "--no-config", "--text", "-c", "-e", pattern], input=b"\n",
                       capture_output=True)
    return p.returncode in (0, 1)


def by_file(program):
    ready, files, seen = printed(program), {}, set()
    for rule in json.loads(said([program, "rules", "list", "--json"]))["rules"]:
        if rule["maturity"] != "stable" or rule["role"] not in ("root", "symptom", "confirm"):
            continue
        for p in rule["patterns"]:
            line = ready.get(("i" if rule["ignore_case"] else "", NAMED.sub("(?:", p)))
            if line and line not in seen and ripgrep_takes(line):
                seen.add(line)
                files.setdefault(os.path.basename(rule["file"]), []).append(line)
    return files


def shares(files, want):
    """How many each file gives: by largest remainder, one at least."""
    total = sum(map(len, files.values()))
    exact = {f: len(p) * want / total for f, p in files.items()}
    n = {f: max(1, int(x)) for f, x in exact.items()}
    for f in sorted(files, key=lambda f: (int(exact[f]) - exact[f], f)):
        if sum(n.values()) >= want:
            break
        n[f] += n[f] < len(files[f]) and exact[f] >= 1
    return n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--want", type=int, default=300)
    a = p.parse_args()
    files = by_file(a.program)
    n = shares(files, a.want)
    for f in sorted(files):
        for i in range(n[f]):
            print(files[f][(2 * i + 1) * len(files[f]) // (2 * n[f])])
    print("%d of %d patterns, %d files" % (sum(n.values()), sum(map(len, files.values())),
                                           len(files)), file=sys.stderr)


main()
