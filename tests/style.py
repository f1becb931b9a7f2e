#!/usr/bin/env python3
"""The house style that a machine can check. Run from anywhere; prints file:line: what is wrong.

What it checks is listed in STYLE.md. It reads the files as text: with the braces where
clang-format puts them, a function is what stands between a '{' and a '}' in the first column.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_FUNCTION = 60
MAX_FILE = 800
CLANG_FORMAT = "14."  # the version of Debian 12; others lay out some lines otherwise

BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|strtok|strtok_r|gets|mmap|alloca)\s*\(")

# Who may include whom; every room may include itself.
BELOW = {
    "base": set(),
    "read": {"base"},
    "match": {"base"},
    "compress": {"base"},
    "store": {"base"},
    "http": {"base"},
    "rules": {"base", "match"},
    "redact": {"base", "match"},
    "llm": {"base", "http"},
    "embed": {"base", "http"},
    "diagnose": {"base", "read", "match", "compress", "store", "http", "rules", "redact", "llm",
                 "embed"},
    "cli": set(),
}

STANDARD = re.compile(
    r"^(assert|ctype|dirent|errno|fcntl|fnmatch|glob|inttypes|langinfo|limits|locale|math|poll|"
    r"pthread|pwd|setjmp|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|"
    r"stdlib|stdnoreturn|string|strings|termios|time|unistd|wchar|sys/\w+|netinet/\w+|arpa/\w+|"
    r"netdb|getopt|sched|dlfcn|float|fenv|endian|byteswap|link|execinfo)\.h$")

TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)

faults = []


def fault(path, line, text):
    faults.append("%s:%d: %s" % (path, line, text))


def blank(text):
    """The code with comments and literals blanked out, lines kept; and the // comments' lines."""
    slashes = []

    def out(m):
        t = m.group(0)
        if t.startswith("//"):
            slashes.append(text.count("\n", 0, m.start()) + 1)
        return re.sub(r"[^\n]", " ", t)

    return TOKEN.sub(out, text), slashes


def check_layout(path, lines):
    if len(lines) >= MAX_FILE:
        fault(path, len(lines), "%d lines; a file has fewer than %d: split it" %
              (len(lines), MAX_FILE))
    start = 0
    for n, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = n
        elif line.startswith("}") and start:
            length = n - start + 1
            if length >= MAX_FUNCTION:
                fault(path, start, "a function of %d lines; it has fewer than %d: split it" %
                      (length, MAX_FUNCTION))
            start = 0


def room_of(path):
    parts = path.split("/")
    if parts[0] == "engine" and len(parts) > 2 and parts[1] != "include":
        return parts[1]
    return "embed" if parts[0] == "embed" else None


def check_includes(path, raw, users):
    room = room_of(path)
    if room is None:
        return
    if room not in BELOW:
        fault(path, 1, "room %s has no row in tests/style.py (BELOW): say what it may see" % room)
        return
    for n, line in enumerate(raw, 1):
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not m:
            continue
        kind, name = m.groups()
        if kind == "<" and not STANDARD.match(name):
            users.setdefault(name, {}).setdefault(room, (path, n))
        elif kind == '"' and "/" in name:
            other = name.split("/")[0]
            if other != room and other not in BELOW[room]:
                fault(path, n, "%s may not see %s (the dependency law, ARCHITECTURE.md)" %
                      (room, other))
        elif kind == '"' and name == "faultline.h" and room not in ("cli", "diagnose"):
            fault(path, n, "only cli and diagnose see faultline.h")


def check_file(path, users):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        text = f.read()
    code, slashes = blank(text)
    check_layout(path, text.split("\n")[:-1])
    check_includes(path, text.split("\n"), users)
    for n in slashes:
        fault(path, n, "a // comment: /* */ stays, // means unfinished")
    for n, line in enumerate(code.split("\n"), 1):
        m = BANNED.search(line)
        if m:
            fault(path, n, "%s is banned" % m.group(1))
    if path.endswith((".c", ".cpp")) and not path.startswith("tests/"):
        essay = re.match(r"/\*.*?\*/", text, re.S)
        if not essay or essay.group(0).count("\n") < 2:
            fault(path, 1, "opens with no essay: what it does, what it refuses, why this way")
    if not text.endswith("\n"):
        fault(path, text.count("\n") + 1, "no newline at the end")


def check_format(paths):
    tool = shutil.which("clang-format")
    said = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout if tool else ""
    if "version " + CLANG_FORMAT not in said:
        print("clang-format %sx is not here (%s): layout not checked" %
              (CLANG_FORMAT, said.strip() or "none"))
        return
    done = subprocess.run([tool, "--dry-run", "--ferror-limit=1"] + paths, cwd=ROOT,
                          capture_output=True, text=True)
    for line in done.stderr.split("\n"):
        m = re.match(r"(.+?):(\d+):\d+: ", line)
        if m:
            fault(m.group(1), int(m.group(2)), "not as clang-format lays it out: clang-format -i")


def tracked():
    """Tracked files, and new ones that are not ignored; a tree without git is walked."""
    try:
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "engine", "embed",
                              "tests"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        names = out.split("\n")
    except (OSError, subprocess.CalledProcessError):
        names = [os.path.relpath(os.path.join(d, f), ROOT)
                 for top in ("engine", "embed", "tests")
                 for d, _, files in os.walk(os.path.join(ROOT, top)) for f in files]
    return sorted(n for n in names if n.endswith((".c", ".cpp", ".h"))
                  and os.path.isfile(os.path.join(ROOT, n)))


def main():
    paths = tracked()
    users = {}
    for path in paths:
        check_file(path, users)
    for header, rooms in sorted(users.items()):
        if len(rooms) > 1:
            for path, n in rooms.values():
                fault(path, n, "<%s> is included in several rooms: %s" %
                      (header, ", ".join(sorted(rooms))))
    check_format(paths)
    for f in faults:
        print(f)
    print("%d files, %d faults" % (len(paths), len(faults)))
    return 1 if faults or not paths else 0


sys.exit(main())
