#!/usr/bin/env python3
"""Trains the table of rows and writes embed/model/table.bin.

    embed/train/table.py --lines PROGRAM [--corpus DIR] [--out FILE] [--no-check]

A text's vector is the sum of its pieces' rows, each weighted by a / (a + p) where p is how often
the piece occurs; see embed/static.c. The rows are learnt by contrast: of 256 pairs of texts in a
batch each left side must find its right side among all, and the other way round (symmetric
InfoNCE). Pairs are a line and its explanation, a line and its full entry, an explanation and what
the taxonomy says of the cause, and two entries of one cause. Others of the same cause in the batch
do not count as wrong. Pieces are dropped and pieces of other texts mixed in, so that no single
piece carries a text. Rows begin at random.

First a table is trained without a seventh of the entries, and those are looked up among the rest
with the program's own code: what is printed is the share of lines whose right cause comes first,
among the first three and the first five distinct causes, beside the same with rows as they were
before training, with BM25, and with both lists joined by their ranks. Then the table that is
written is trained on all entries.

Everything is seeded. Sums of floats differ between processors, so another machine gives a table
that is as good and not the same; the one that is committed is the one that counts.
"""
import argparse
import collections
import hashlib
import math
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

import texts as source

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIM = 256
# Chosen on a quarter of 1,895 entries held out (1,009 lines looked up): first, in three, in five
# 47.9, 66.9, 72.8 of 100; with A 0.001, temperature 0.07, 600 steps at rate 0.01 and 0.3 for both
# shares 45.9, 63.7, 69.7, since that learns the entries by heart. 1,200 steps were worse than 600,
# a batch of 512 and each piece counted once made no difference.
A = 3e-3
TEMPERATURE = 0.15
BATCH = 256
STEPS = 400
RATE = 0.005
DROP, NOISE = 0.5, 0.6   # at most this share of a text's pieces goes, and comes in
COPIES = 3
HOLD = 7                 # one entry in so many is held out of the checked table
SCALE_MAX = 32767


class Pieces:
    """Texts to arrays of piece ids, by the program that runs them later."""

    def __init__(self, lines, tokens):
        self.lines, self.tokens = lines, tokens

    def run(self, args, texts):
        done = subprocess.run([self.lines] + args, input="\n".join(texts) + "\n",
                              capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:len(texts)]

    def __call__(self, texts):
        texts = [t.replace("\n", " ") for t in texts]
        rows = self.run(["pieces", self.tokens], self.run(["normal"], texts))
        return [np.array(r.split(), dtype=np.int64) for r in rows]

    def vectors(self, table, texts):
        done = subprocess.run([self.lines, "vectors", self.tokens, table],
                              input=("\n".join(t.replace("\n", " ") for t in texts) + "\n").encode(),
                              capture_output=True, check=True)
        return np.frombuffer(done.stdout, dtype=np.float32).reshape(len(texts), DIM)


class Pool:
    """All texts of the entries as pieces, and pairs drawn from them."""

    def __init__(self, entries, taxonomy, pieces, seed):
        self.causes = sorted({e.cause for e in entries})
        index = {c: i for i, c in enumerate(self.causes)}
        self.cause = np.array([index[e.cause] for e in entries])
        flat, self.variants, self.explanation, self.full = [], [], [], []

        def add(text):
            flat.append(text)
            return len(flat) - 1

        for n, e in enumerate(entries):
            copies = source.perturbed(e.variants, seed + n, COPIES)
            self.variants.append([[add(t) for t in c] for c in copies])
            self.explanation.append(add(e.explanation) if e.explanation else None)
            self.full.append(add(e.full))
        self.told = {index[c]: add(t) for c, t in taxonomy.items() if c in index}
        self.pieces = pieces(flat)
        self.same = collections.defaultdict(list)
        for n, c in enumerate(self.cause):
            self.same[c].append(n)

    def variant(self, rng, n):
        line = self.variants[n][rng.integers(len(self.variants[n]))]
        return line[rng.integers(len(line))]

    def pair(self, rng, n):
        """Two texts of entry n, or of it and another entry of its cause."""
        kind = rng.random()
        cause = self.cause[n]
        if kind < 0.2 and cause in self.told:
            left = self.explanation[n] if rng.random() < 0.5 else None
            return (self.variant(rng, n) if left is None else left), self.told[cause]
        if kind < 0.4 and len(self.same[cause]) > 1:
            other = n
            while other == n:
                other = self.same[cause][rng.integers(len(self.same[cause]))]
            right = self.explanation[other] if rng.random() < 0.3 else None
            return self.variant(rng, n), (self.variant(rng, other) if right is None else right)
        if kind < 0.75 and self.explanation[n] is not None:
            return self.variant(rng, n), self.explanation[n]
        if kind < 0.85:
            return self.variant(rng, n), self.variant(rng, n)
        return self.variant(rng, n), self.full[n]


def weights(pieces, size):
    count = np.bincount(np.concatenate(pieces), minlength=size).astype(np.float64)
    return (A / (A + count / count.sum())).astype(np.float32)


def disturbed(rng, ids, all_pieces):
    """Some pieces less and some of another text more."""
    keep = ids[rng.random(len(ids)) >= rng.random() * DROP]
    keep = keep if len(keep) else ids
    other = all_pieces[rng.integers(len(all_pieces))]
    more = int(rng.random() * NOISE * len(keep))
    if more and len(other):
        at = rng.integers(len(other))
        keep = np.concatenate([keep, other[at:at + more]])
    return keep


def bags(lists, weight):
    """The batch as a matrix of texts by the distinct pieces in it."""
    used, where = np.unique(np.concatenate(lists), return_inverse=True)
    bag = np.zeros((len(lists), len(used)), np.float32)
    rows = np.repeat(np.arange(len(lists)), [len(x) for x in lists])
    np.add.at(bag, (rows, where), weight[used[where]])
    return used, bag


def unit(x):
    length = np.sqrt((x * x).sum(1, keepdims=True)) + 1e-9
    return x / length, length


def loss_and_gradient(left, right, cause):
    """Symmetric InfoNCE over rows of length 1, and its gradient for both sides."""
    score = left @ right.T / TEMPERATURE
    mask = (cause[:, None] == cause[None, :]) & ~np.eye(len(cause), dtype=bool)
    score[mask] = -1e9
    loss, grad = 0.0, np.zeros_like(score)
    for axis in (1, 0):
        p = np.exp(score - score.max(axis, keepdims=True))
        p /= p.sum(axis, keepdims=True)
        loss -= np.log(np.diag(p) + 1e-30).mean() / 2
        grad += p / 2
    grad = (grad - np.eye(len(cause), dtype=np.float32)) / (len(cause) * TEMPERATURE)
    return loss, grad @ right, grad.T @ left


def train(pool, size, weight, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, DIM)).astype(np.float32) / math.sqrt(DIM)
    first, second = np.zeros_like(rows), np.zeros_like(rows)
    began, mean = time.time(), 0.0
    for step in range(1, STEPS + 1):
        picked = rng.permutation(len(pool.cause))[:BATCH]
        pairs = [pool.pair(rng, n) for n in picked]
        lists = [disturbed(rng, pool.pieces[t], pool.pieces) for side in (0, 1)
                 for t in (p[side] for p in pairs)]
        used, bag = bags(lists, weight)
        value, length = unit(bag @ rows[used])
        half = len(picked)
        loss, dl, dr = loss_and_gradient(value[:half], value[half:], pool.cause[picked])
        d = np.concatenate([dl, dr])
        d = (d - value * (d * value).sum(1, keepdims=True)) / length
        g = bag.T @ d
        # Adam for the rows in use.
        first[used] += 0.1 * (g - first[used])
        second[used] += 0.001 * (g * g - second[used])
        rate = RATE * min(1.0, step / 20) * (0.5 + 0.5 * math.cos(math.pi * step / STEPS))
        rate *= math.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
        rows[used] -= rate * first[used] / (np.sqrt(second[used]) + 1e-8)
        mean += 0.05 * (loss - mean) if step > 1 else loss
        if step % 200 == 0:
            print("  step %d, loss %.3f, %.0f s" % (step, mean, time.time() - began), flush=True)
    return rows


def write(path, lines, tokens, rows, weight):
    """The table in the form of embed/static.h: 8 bits a number, 15 bits a row's scale."""
    rows = rows * weight[:, None]
    top = np.abs(rows).max(1)
    scale = np.maximum(1, np.round(top / top.max() * SCALE_MAX)).astype(np.int64)
    step = scale * (top.max() / SCALE_MAX)          # what a whole row's 127 stands for
    numbers = np.clip(np.round(rows / step[:, None] * 127), -127, 127).astype(np.int8)
    said = subprocess.run([lines, "hash", tokens], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        bare = os.path.join(folder, "table")
        with open(bare, "wb") as f:
            f.write(b"FLROWS\r\n" + struct.pack("<IIIIQ", 1, len(rows), DIM, 0,
                                                int(said.stdout, 16)))
            f.write(scale.astype("<u2").tobytes() + numbers.tobytes())
        subprocess.run([lines, "seal", bare, path], check=True)
    os.chmod(path, 0o644)


def places_of(scores, causes):
    """Each cause's place among distinct causes, by the best text of each; from 0."""
    best = {}
    for s, c in zip(scores, causes):
        if s > best.get(c, -1e9):
            best[c] = s
    order = sorted(best, key=lambda c: (-best[c], c))
    return {c: n for n, c in enumerate(order)}


def shares(places):
    places = np.array(places)
    return [100.0 * (places < k).mean() for k in (1, 3, 5)]


def bm25(docs, queries):
    n = len(docs)
    size = np.array([len(d) for d in docs], float)
    where = collections.defaultdict(dict)
    for i, d in enumerate(docs):
        for t in d:
            where[t][i] = where[t].get(i, 0) + 1
    for q in queries:
        score = np.zeros(n)
        for t in set(q):
            for i, f in where.get(t, {}).items():
                idf = math.log(1 + (n - len(where[t]) + 0.5) / (len(where[t]) + 0.5))
                score[i] += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * size[i] / size.mean()))
        yield score


def check(pool_of, pieces, entries, taxonomy, size, folder, lines):
    held = [e for e in entries if int(hashlib.sha256(e.key.encode()).hexdigest(), 16) % HOLD == 0]
    keys = {e.key for e in held}
    rest = [e for e in entries if e.key not in keys]
    pool = pool_of(rest)
    weight = weights(pool.pieces, size)
    known = {e.cause for e in rest}
    docs = [(t, e.cause) for e in rest for t in e.variants + [e.explanation, e.full] if t]
    queries = [(t, e.cause) for e in held for t in e.variants if e.cause in known]
    causes = [c for _, c in docs]
    rng = np.random.default_rng(7)
    start = rng.standard_normal((size, DIM)).astype(np.float32) / math.sqrt(DIM)
    print("check: %d entries held out of %d, %d lines looked up among %d texts of %d causes" %
          (len(held), len(entries), len(queries), len(docs), len(known)))
    found = {}
    for what, rows in (("before training", start), ("trained", train(pool, size, weight, 1))):
        table = os.path.join(folder, "table.bin")
        write(table, lines, pieces.tokens, rows, weight)
        d = pieces.vectors(table, [t for t, _ in docs])
        q = pieces.vectors(table, [t for t, _ in queries])
        found[what] = [places_of(row, causes) for row in q @ d.T]
    split = [t.split() for t in pieces.run(["normal"], [t for t, _ in docs + queries])]
    found["BM25"] = [places_of(row, causes) for row in bm25(split[:len(docs)], split[len(docs):])]
    # Reciprocal ranks added up, as the search does.
    found["trained and BM25"] = [
        places_of([1 / (60 + a[c]) + 1 / (60 + b[c]) for c in a], list(a))
        for a, b in zip(found["trained"], found["BM25"])]
    for what, lists in found.items():
        got = shares([places[c] for places, (_, c) in zip(lists, queries)])
        print("  %-16s first %.0f, in three %.0f, in five %.0f of 100" % (what, *got))


def main():
    p = argparse.ArgumentParser(description="Trains embed/model/table.bin.")
    p.add_argument("--lines", required=True, help="the program embed_lines")
    p.add_argument("--tokens", default=os.path.join(ROOT, "embed/model/tokens.model"))
    p.add_argument("--corpus", default=os.path.join(ROOT, "corpus/incidents"))
    p.add_argument("--out", default=os.path.join(ROOT, "embed/model/table.bin"))
    p.add_argument("--no-check", action="store_true", help="train only the table that is written")
    args = p.parse_args()
    lines = os.path.abspath(args.lines)
    pieces = Pieces(lines, args.tokens)
    entries = source.entries(ROOT, args.corpus)
    told = source.taxonomy(ROOT)
    if not entries:
        sys.exit("table.py: no entries in %s and rules/failures" % args.corpus)
    size = int(pieces.run(["size", args.tokens], [""])[0])

    def pool_of(some):
        return Pool(some, told, pieces, 20260301)

    if not args.no_check:
        with tempfile.TemporaryDirectory() as folder:
            check(pool_of, pieces, entries, told, size, folder, lines)
    pool = pool_of(entries)
    weight = weights(pool.pieces, size)
    write(args.out, lines, args.tokens, train(pool, size, weight, 1), weight)
    print("table: %d entries, %d texts, %d rows of %d, %d bytes" %
          (len(entries), len(pool.pieces), size, DIM, os.path.getsize(args.out)))


main()
