#!/usr/bin/env python3
"""No past incident may come from a source that a test case uses.

The corpus is what a search finds, and the cases are what the search is measured on. An incident
re-made from the report that a case was re-made from would be found for that reason alone, and the
measure would be worth nothing. So the public reports (owner/repository#number) named as sources
on both sides are compared, and so are documents named in full; 'knowledge' is nobody's report.

    corpus_sources.py [--cases DIR]...      further folders of cases may be named

Prints each source that stands on both sides, with the entry and the case, and exits 1 if there is
one; exits 2 if there is nothing to compare. The entries are read line by line, for the standard
library has no YAML.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def names(text):
    """The reports that a source text names; the whole text if it names none."""
    reports = {r.lower() for r in REPORT.findall(text)}
    plain = text.strip().strip("'\"").lower()
    return reports or ({plain} if plain and not plain.startswith("knowledge") else set())


def of_cases(folders):
    found = {}
    for folder in folders:
        for label in sorted(folder.glob("*/label.json")):
            source = json.loads(label.read_text(encoding="utf-8")).get("source") or []
            for text in source if isinstance(source, list) else [source]:
                for name in names(str(text)):
                    found.setdefault(name, []).append(label.parent.name)
    return found


def of_corpus(folder):
    found, entry = {}, "?"
    for path in sorted(folder.glob("*.yaml")):
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\s*(?:- )?(id|source):\s*(.+)", line)
            if match and match[1] == "id":
                entry = match[2]
            elif match:
                for name in names(match[2]):
                    found.setdefault(name, []).append(f"{path.name}: {entry}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", action="append", type=pathlib.Path, default=[])
    folders = [ROOT / "tests" / "cases"] + parser.parse_args().cases
    cases, corpus = of_cases(folders), of_corpus(ROOT / "corpus" / "incidents")
    if not cases or not corpus:
        print("corpus_sources: no case or no incident found, nothing was compared")
        return 2
    both = sorted(set(cases) & set(corpus))
    for name in both:
        print(f"{name}: incident {', '.join(corpus[name])}; case {', '.join(cases[name])}")
    return 1 if both else 0


if __name__ == "__main__":
    sys.exit(main())
