"""What the table is trained on: entries of the corpus and of the rules, as texts in pairs.

An entry has a cause, lines as software prints them (variants), an explanation and a full text.
Rules give entries too: their examples are lines, their summaries explain. The labelled cases in
tests/cases are the test set and are not read here.
"""
import glob
import os
import random
import re

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry:
    def __init__(self, key, cause, kind, variants, explanation, full):
        self.key, self.cause, self.kind = key, cause, kind
        self.variants, self.explanation, self.full = variants, explanation, full


def load(path):
    with open(path, encoding="utf-8") as f:
        return yaml.load(f, Loader=LOADER) or {}


def words(*parts):
    return " ".join(" ".join(str(p).split()) for p in parts if p)


def taxonomy(root):
    """Cause id to what the taxonomy says of it."""
    return {c["id"]: words(c["title"] + ".", c.get("advice"))
            for c in load(os.path.join(root, "rules/taxonomy.yaml"))["causes"]}


def rule_entries(root):
    for path in sorted(glob.glob(os.path.join(root, "rules/failures/*.yaml"))):
        for r in load(path)["rules"]:
            if r.get("maturity") in ("draft", "retired") or not r.get("hits"):
                continue
            # A quiet line and a line of no certain cause are classes of their own.
            harmless = r.get("role") in ("benign", "advice")
            cause = r["cause"] if r["cause"] not in ("none", "unknown") else "rule:" + r["id"]
            if harmless:
                cause = "quiet:" + r["id"]
            summary = re.sub(r"\{\w+\}", " ", r.get("summary", ""))
            # In an example of several lines the last one is the exception, and often all of it.
            variants = [words(h) for h in r["hits"]]
            yield Entry("rule " + r["id"], cause, "harmless" if harmless else "incident", variants,
                        words(summary), words(summary, variants[0]))


def corpus_entries(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.yaml"))):
        for e in load(path).get("incidents") or []:
            kind = e.get("kind") or "incident"
            # What a follow-on or harmless entry is filed under is no cause to be found.
            cause = e.get("cause") or "none"
            if kind != "incident" or cause in ("none", "unknown"):
                cause = kind + ":" + e["id"]
            lines = [words(x) for x in e.get("evidence") or []]
            explanation = words(e.get("explanation") or e.get("title"))
            full = words(e.get("title"), " ".join(lines[:2]), e.get("explanation"), e.get("fix"))
            yield Entry(e["id"], cause, kind, lines or [words(e.get("title"))], explanation, full)


def entries(root, corpus):
    return [e for e in list(corpus_entries(corpus)) + list(rule_entries(root)) if e.variants]


HEADS = ["", "[rank%d]: ", "%d: ", "[default%d]:", "node%02d: ", "2026-03-%02d 04:05:06,789 ERROR ",
         "gpu-%03d kernel: [ 8123.401] ", "worker-%d E0301 04:05:06.123 ", "(pid=%d) "]
NAMES = ["train", "main", "run", "pretrain", "trainer", "model", "launch", "utils", "data"]


def perturb(text, draw):
    """The same event in another job: other numbers, another script and folder, another rank."""
    def digits(m):
        s = m.group(0)
        return s if len(s) < 4 else "".join(draw.choice("0123456789") for _ in s)

    def path(m):
        return "/%s/%s/%s.py" % (draw.choice(["data", "home/u", "mnt/nfs", "workspace"]),
                                 draw.choice(NAMES), draw.choice(NAMES))

    text = re.sub(r"(?:/[\w.-]+){1,6}/(?:train|main|run|pretrain\w*)\.py", path, text)
    text = re.sub(r"(?<![A-Za-z])\d+", digits, text)
    head = draw.choice(HEADS)
    return (head % draw.randrange(64) if "%" in head else head) + text


def perturbed(lines, seed, copies):
    """For each line itself and `copies` others of it."""
    draw = random.Random(seed)
    return [[t] + [perturb(t, draw) for _ in range(copies)] for t in lines]
