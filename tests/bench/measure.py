"""Running programs and reading what they cost; telling it as a table and as rows of a CSV file.

Seconds are by the clock, CPU seconds are what the kernel accounts to the process and its threads.
Programs that are compared take turns, and the best of the runs counts, since what disturbs a run
only makes it slower. Memory is the resident peak that the kernel accounts to the process, the
largest of all runs; below some 15 MB it is that of this script, from which it was started.
"""
import csv
import os
import platform
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Took:
    def __init__(self, wall, cpu, rss, status):
        self.wall, self.cpu, self.rss, self.status = wall, cpu, rss, status


def environment(cache):
    return dict(os.environ, XDG_CACHE_HOME=cache)


def run(argv, cache, watch=None):
    """Starts argv and waits; watch(pid), where given, is called again and again meanwhile."""
    began = time.monotonic()
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         stdin=subprocess.DEVNULL, env=environment(cache))
    while watch:
        pid, status, usage = os.wait4(p.pid, os.WNOHANG)
        if pid:
            break
        watch(p.pid)
    else:
        _, status, usage = os.wait4(p.pid, 0)
    took = time.monotonic() - began
    p.returncode = os.waitstatus_to_exitcode(status)
    return Took(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, p.returncode)


def run_together(argvs, cache):
    """All at once, until the last has ended; for their memory there is no one number."""
    began = time.monotonic()
    running = [subprocess.Popen(x, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                stdin=subprocess.DEVNULL, env=environment(cache)) for x in argvs]
    cpu, worst = 0, 0
    for p in running:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        cpu += usage.ru_utime + usage.ru_stime
        worst = max(worst, abs(p.returncode))
    return Took(time.monotonic() - began, cpu, float("nan"), worst)


def turns(programs, runs, cache):
    """{name: argv, or a function that runs it} -> {name: the best Took}, run in turns."""
    done = {name: [] for name in programs}
    for _ in range(runs):
        for name, argv in programs.items():
            done[name].append(argv() if callable(argv) else run(argv, cache))
    out = {}
    for name, took in done.items():
        out[name] = min(took, key=lambda x: x.wall)
        out[name].rss = max(x.rss for x in took)
        out[name].cpu = min(x.cpu for x in took)
        out[name].status = max((x.status for x in took), key=abs)
    return out


class OpenFiles:
    """The most files below a folder that a process had open at any look."""

    def __init__(self, below):
        self.below, self.peak, self.looks = os.path.realpath(below) + "/", 0, 0

    def __call__(self, pid):
        folder, n = "/proc/%d/fd" % pid, 0
        try:
            for fd in os.listdir(folder):
                n += os.readlink(os.path.join(folder, fd)).startswith(self.below)
        except OSError:
            pass
        self.peak, self.looks = max(self.peak, n), self.looks + 1
        time.sleep(0.0002)


def instructions(argv, cache):
    """What callgrind counts, over all threads; None when the program failed under it."""
    p = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + argv,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(cache))
    m = re.search(rb"Collected : (\d+)", p.stderr)
    return int(m.group(1)) if m and p.returncode in (0, 1) else None


def machine():
    name = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    name = line.split(":", 1)[1].strip()
                    break
    except OSError:
        pass
    return "%s, %d cores" % (name, len(os.sched_getaffinity(0)))


def commit():
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


COLUMNS = ["date", "machine", "commit", "command", "row", "what", "bytes", "seconds",
           "cpu_seconds", "rss_mb", "exit", "value", "unit", "goal", "met"]


def short(x):
    if isinstance(x, float):
        return "" if x != x else "%.4g" % x
    return x


class Report:
    """Prints while it collects: measurements, and goals with what came of them."""

    def __init__(self, command):
        self.fixed = [time.strftime("%Y-%m-%d"), machine(), commit(), command]
        self.rows, self.goals, self.row = [], [], None
        print("%s, commit %s, %s" % (self.fixed[1], self.fixed[2], command))

    def begin(self, row, title):
        self.row = row
        print("\n%s: %s" % (row, title))
        print("    %-26s %9s %9s %9s %9s" % ("", "seconds", "CPU s", "MB/s", "RSS MB"))

    def took(self, what, size, t, note=""):
        speed = size / 1e6 / t.wall if size else float("nan")
        print("    %-26s %9.3f %9.3f %9s %9s  %s"
              % (what, t.wall, t.cpu, "" if speed != speed else "%.0f" % speed,
                 "" if t.rss != t.rss else "%.0f" % t.rss, note))
        if t.status not in (0, 1):
            print("    %s failed with status %d: its figures mean nothing" % (what, t.status))
        self.rows.append([self.row, what, size, t.wall, t.cpu, t.rss, t.status, "", "", "", ""])
        sys.stdout.flush()

    def value(self, what, value, unit, goal="", met=None):
        """met: True, False, or None where there is no goal."""
        verdict = {True: "met", False: "NOT MET", None: ""}[met]
        text = "%s %s" % (short(value), unit)
        print("    %-48s %14s  %s  %s" % (what, text, goal, verdict))
        self.rows.append([self.row, what, "", "", "", "", "", value, unit, goal, verdict])
        if goal:
            self.goals.append((self.row, what, text, goal, verdict))
        sys.stdout.flush()

    def skip(self, row, why):
        print("\n%s: left out, %s" % (row, why))

    def note(self, text):
        print("    (%s)" % text)

    def summary(self):
        if not self.goals:
            return
        print("\n%-13s %-48s %14s   %-22s %s" % ("row", "measured", "", "goal", ""))
        for row, what, text, goal, verdict in self.goals:
            print("%-13s %-48s %14s   %-22s %s" % (row, what, text, goal, verdict))

    def save(self, path):
        new = not os.path.exists(path)
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "a", newline="", encoding="utf-8") as f:
            w = csv.writer(f)
            if new:
                w.writerow(COLUMNS)
            for r in self.rows:
                w.writerow(self.fixed + [short(x) for x in r])
        print("\nrows appended to %s" % os.path.relpath(path))
