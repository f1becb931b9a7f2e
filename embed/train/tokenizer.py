#!/usr/bin/env python3
"""Trains the tokenizer on the texts of this repository and writes embed/model/tokens.model.

    embed/train/tokenizer.py --lines PROGRAM [--out FILE]

It needs spm_train of SentencePiece 0.1.97, the built program embed_lines, which normalises texts and
seals the model, and nothing beside Python's own library.

Each text goes in twice: as it stands, because the digest's budget is counted on lines as they
stand, and as embed/normal.c leaves it, because that is what is embedded.

Numbers must not become the vocabulary, so digits stand alone, but for the hundred pairs, without
which a line's time alone has twenty pieces, and for the numbers that name errors here: Xid 79 and
exit code 137 are one piece and have one row in the table.

The same files give the same model: lines are taken in the order of the files' names, one line a
shape, nothing is sampled, and the trainer runs in one thread. It runs in a folder of its own with
a relative name, since it writes the name of its input into the model.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PIECES = 8000
LINE_MAX = 400      # bytes of a line: what is behind them is mostly one more list of numbers
FILE_LINES = 300    # distinct shapes of one log: no single log may fill the vocabulary

# Logs of the test cases are read for their words only; labels are not read.
LOGS = ["tests/cases/*/*", "samples/*/*", "tests/data/*", "tests/data/principles/*"]
PROSE = ["rules/*.yaml", "rules/failures/*.yaml", "rules/filters/*.yaml", "rules/README.md",
         "corpus/**/*.yaml", "prompts/*", "*.md"]
VARIABLE = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|\d+")


def files(patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            if path.endswith("/vectors.tsv"):
                continue  # made from this model: it would never come to rest
            if os.path.isfile(path) and not path.endswith((".json", ".gz", ".zst", ".xz", ".tar")):
                yield path


def lines_of(path, seen, most):
    """Lines of a shape that no earlier file had, as text, cut at LINE_MAX bytes."""
    kept = 0
    with open(path, "rb") as f:
        for raw in f:
            text = raw[:LINE_MAX].decode("utf-8", "ignore").strip("\r\n")
            text = "".join(c if c.isprintable() else " " for c in text)
            shape = VARIABLE.sub("0", text)
            if not text.strip() or shape in seen:
                continue
            seen.add(shape)
            yield text
            kept += 1
            if kept == most:
                return


def gather():
    seen, out = set(), []
    for path in files(PROSE):
        for text in lines_of(path, seen, 1 << 30):
            # YAML's own keys and quotes are no prose; what is quoted is.
            m = re.match(r"^\s*(?:- )?(?:\w+: )?['\"]?(.*?)['\"]?$", text)
            out.append(m.group(1).replace("''", "'"))
    for path in files(LOGS):
        out.extend(lines_of(path, seen, FILE_LINES))
    return [t for t in out if t.strip()]


def normalised(lines, texts):
    """Each distinct normalised text once."""
    done = subprocess.run([lines, "normal"], input="\n".join(texts) + "\n",
                          capture_output=True, text=True, check=True)
    return [t for t in dict.fromkeys(done.stdout.split("\n")) if t]


def numbers(texts):
    """The pairs of digits, and what the normaliser keeps in several texts."""
    count = collections.Counter(n for t in texts for n in set(re.findall(r"\b\d{3,6}\b", t)))
    return ["%02d" % n for n in range(100)] + sorted(n for n in count if count[n] >= 3)


def train(lines, texts, symbols, out):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "texts"), "w", encoding="utf-8") as f:
            f.write("\n".join(texts) + "\n")
        done = subprocess.run(
            ["spm_train", "--input=texts", "--model_prefix=tokens", "--model_type=unigram",
             "--vocab_size=%d" % PIECES, "--byte_fallback", "--split_digits",
             "--user_defined_symbols=" + ",".join(symbols),
             "--normalization_rule_name=identity", "--remove_extra_whitespaces=false",
             "--allow_whitespace_only_pieces", "--character_coverage=0.9998",
             "--bos_id=-1", "--eos_id=-1", "--pad_id=-1", "--num_threads=1",
             "--input_sentence_size=0", "--minloglevel=1"],
            cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit("spm_train failed: " + done.stderr.strip()[-500:])
        subprocess.run([lines, "seal", os.path.join(folder, "tokens.model"), out], check=True)


def main():
    p = argparse.ArgumentParser(description="Trains embed/model/tokens.model.")
    p.add_argument("--lines", required=True, help="the program embed_lines")
    p.add_argument("--out", default=os.path.join(ROOT, "embed/model/tokens.model"))
    args = p.parse_args()
    lines = os.path.abspath(args.lines)
    raw = gather()
    bare = normalised(lines, raw)
    texts = raw + bare
    train(lines, texts, numbers(bare), args.out)
    os.chmod(args.out, 0o644)
    print("tokenizer: %d texts as they stand, %d normalised, %d pieces, %d bytes" %
          (len(raw), len(texts) - len(raw), PIECES, os.path.getsize(args.out)))


main()
