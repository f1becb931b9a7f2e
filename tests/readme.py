#!/usr/bin/env python3
"""readme.py PROGRAM [--update]: the example output in README.md is what the program prints."""
import difflib
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
PLACE = re.compile(r"(<!-- output: build/release/diagnose ([^>]*?) -->\n```\n)(.*?)(```\n"
                   r"<!-- end of output -->)", re.S)


def main():
    program = os.path.abspath(sys.argv[1])
    with open(README, encoding="utf-8") as f:
        text = f.read()
    found = PLACE.search(text)
    if not found:
        sys.exit("README.md has no place for example output")
    said = subprocess.run([program, "--color=never", "--width=80"] + found.group(2).split(),
                          cwd=ROOT, capture_output=True, text=True).stdout
    new = text[:found.start(3)] + said + text[found.end(3):]
    if "--update" in sys.argv:
        with open(README, "w", encoding="utf-8") as f:
            f.write(new)
    elif new != text:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), new.splitlines(True),
                                                   "README.md", "the program"))
        sys.exit("README.md shows another answer than the program gives; when the new one is "
                 "right: tests/readme.py PROGRAM --update")


main()
