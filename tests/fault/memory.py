#!/usr/bin/env python3
"""memory.py PROGRAM [KILLS]: what happens to the memory of incidents from outside, through the program.

Writers killed at random moments while readers read, a full disk, a folder that cannot be written,
damaged and foreign files, two at once. Each part prints what it saw; the exit status is 1 when
anything was lost, failed that should not, or was not told.
"""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = tempfile.mkdtemp(prefix="fl-memory-")
os.chmod(WORK, 0o755)
CACHE = WORK + "/cache"  # of compiled patterns; a copy, so that another user can read it
if os.path.isdir(os.environ.get("FL_CLI_CACHE", "")):
    shutil.copytree(os.environ["FL_CLI_CACHE"], CACHE)
failures = []
random.seed(11)


def wrong(text):
    failures.append(text)
    print("WRONG:", text)


def environment(home):
    env = {"PATH": os.environ["PATH"], "HOME": WORK, "FAULTLINE_HOME": home, "LC_ALL": "C",
           "XDG_CACHE_HOME": CACHE,
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), "OMP_NUM_THREADS": "2"}
    if "FAULTLINE_DATA" in os.environ:
        env["FAULTLINE_DATA"] = os.environ["FAULTLINE_DATA"]
    return env


def start(home, *args, **more):
    return subprocess.Popen([PROGRAM, *args], env=environment(home), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            errors="replace", **more)


def run(home, *args, **more):
    p = start(home, *args, **more)
    out, err = p.communicate()
    return p.returncode, out, err


def expect(what, got, statuses):
    if got[0] not in statuses:
        wrong("%s: exit status %d: %s%s" % (what, got[0], got[2][-300:], got[1][-200:]))
    return got


def word(n):
    parts = "ba ke li mo nu ra se ti vo xu da fe gi ho ju pa".split()
    n = n * 2654435761 % 2**32 >> 4
    return "".join(parts[n >> 4 * i & 15] for i in range(6))


def line(n):
    return "fatal: " + " ".join(word(n * 8 + k) for k in range(4))


def log(n):
    path = "%s/job-%d.log" % (WORK, n)
    with open(path, "w") as f:
        f.write("starting\n%s\n" % line(n))
    return path


def made(path, first, last):
    causes = ["gpu.ecc", "net.config", "node.disk_full", "fw.hang"]
    with open(path, "w") as f:
        f.write("incidents:\n")
        for n in range(first, last):
            f.write("  - id: made-%d\n    cause: %s\n    title: 'case %s %s'\n    evidence:\n" %
                    (n, causes[n % 4], word(n * 8 + 5), word(n * 8 + 6)))
            for k in range(3):
                f.write("      - 'error: %s %s'\n" % (line(n * 3 + k + 1000000),
                                                      word(n * 8 + 7 + k)))
            f.write("    explanation: made for a test\n")
    return path


def home_with(name, incidents):
    home = "%s/%s" % (WORK, name)
    expect("import", run(home, "incidents", "import", made(WORK + "/made.yaml", 0, incidents)), [0])
    return home


def healthy(home, what):
    status, out, err = run(home, "doctor", "--json")
    checks = {c["name"]: c for c in json.loads(out)["checks"]}
    for name in ("data", "database", "corpus", "model", "vectors"):
        if name in checks and checks[name]["health"] not in ("ok", "note"):
            wrong("%s: doctor says of %s: %s" % (what, name, checks[name]["text"]))
    return status, checks


def whole(home, what):
    found = sqlite3.connect("file:%s/incidents.db?mode=ro" % home, uri=True)
    try:
        said = found.execute("pragma integrity_check").fetchall()
        if said != [("ok",)]:
            wrong("%s: integrity_check: %s" % (what, said[:3]))
    finally:
        found.close()


class Readers:
    """Searches without end; any that fails is told."""

    def __init__(self, home, number):
        self.home, self.go, self.done = home, True, 0
        self.threads = [threading.Thread(target=self.read) for _ in range(number)]
        for t in self.threads:
            t.start()

    def read(self):
        while self.go:
            n = random.randrange(50)
            got = run(self.home, "search", "--floor", "0", "--json", "--text",
                      "error: " + line(n * 3 + 1000000))
            expect("a reader", got, [0])
            if got[0] == 0 and json.loads(got[1])["neighbours"][0]["incident"] != "made-%d" % n:
                wrong("a reader did not find made-%d" % n)
            self.done += 1

    def stop(self):
        self.go = False
        for t in self.threads:
            t.join()
        return self.done


def killed(home, args, seconds):
    p = start(home, *args)
    try:
        out, err = p.communicate(timeout=random.uniform(0, seconds))
        return p.returncode, out, err
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGKILL)
        p.communicate()
        return None, "", ""


def length_of(home, args):
    begin = time.time()
    expect(" ".join(args), run(home, *args),
           [ends_with(home)] if "reindex" in args else [0])
    return (time.time() - begin) * 1.2


def kill_adds(home, kills):
    """What was told as stored is there; what was killed is there whole or not at all."""
    long = length_of(home, ["incidents", "add", log(90000), "--cause", "gpu.ecc"])
    told, dead = [], 0
    for n in range(kills):
        got = killed(home, ["incidents", "add", log(n), "--cause", "gpu.ecc", "--fix", word(n)],
                     long)
        if got[0] is None:
            dead += 1
        elif got[0] == 0:
            told.append(n)
        else:
            wrong("add: exit status %d: %s" % (got[0], got[2]))
    status, out, err = run(home, "incidents", "list", "--origin", "user", "--json")
    have = {}
    for i in json.loads(out)["incidents"]:
        for text in i["evidence"]:
            have[text] = i
    for n in told:
        if line(n) not in have or have[line(n)].get("fix") != word(n):
            wrong("add %d was told as stored and is not there" % n)
    print("%d adds: %d killed, %d told as stored and all there" % (kills, dead, len(told)))


def kill_reindexes(home, kills):
    reindexed = ends_with(home)
    run(home, "reindex")
    long = length_of(home, ["reindex", "--full"])
    dead = 0
    for n in range(kills):
        got = killed(home, ["reindex", "--full"] if n % 2 else ["reindex"], long)
        dead += got[0] is None
        if got[0] not in (None, 0, reindexed):
            wrong("reindex: exit status %d: %s" % (got[0], got[2]))
        if n % 4 == 0:
            expect("an add between", run(home, "incidents", "add", log(50000 + n), "--cause",
                                         "gpu.ecc"), [0])
    print("%d reindexes: %d killed" % (kills, dead))


def mends(home, what):
    faiss = have_faiss(home)
    got = expect(what + ": the next reindex", run(home, "reindex", "-v"), [ends_with(home)])
    if got[2] and faiss:
        wrong("%s: the next reindex says: %s" % (what, got[2]))
    whole(home, what)
    status, checks = healthy(home, what)
    if "faiss" in checks and checks["faiss"]["health"] == "ok" and \
            checks.get("index", {}).get("health") != "ok":
        wrong("%s: doctor says of the index: %s" % (what, checks.get("index")))
    left = [f for f in os.listdir(home + "/index") if ".tmp-" not in f]
    if len(left) != (1 if faiss else 0):
        wrong("%s: index files left: %s" % (what, left))


def have_faiss(home):
    status, out, err = run(home, "doctor", "--json")
    return any(c["name"] == "faiss" and c["health"] == "ok" for c in json.loads(out)["checks"])


# Without FAISS there is no index to make: reindex embeds what is new, says so and ends with 4.
def ends_with(home):
    return 0 if have_faiss(home) else 4


def kills():
    home = home_with("kill", 2000)
    readers = Readers(home, 2)
    kill_adds(home, KILLS)
    kill_reindexes(home, KILLS)
    print("%d searches beside them" % readers.stop())
    mends(home, "after the kills")


def two_at_once():
    home = home_with("two", 2000)
    ps = [start(home, "reindex", "--full", "-v") for _ in range(4)]
    told = [p.communicate() + (p.returncode,) for p in ps]
    if any(t[2] not in (0, ends_with(home)) for t in told):
        wrong("of four reindexes at once one failed: %s" % told)
    print("four reindexes at once: " + "; ".join(t[0].strip().split("\n")[0] for t in told))
    mends(home, "two at once")


def steps_until_it_fits(small, home, args, what, step):
    """Leaves ever more room on the disk, until the command succeeds."""
    failed = 0
    for room in range(0, 400):
        fill(small, room * step << 10)
        got = run(home, *args)
        if got[0] == 0:
            break
        failed += 1
        if not got[2].strip():
            wrong("%s on a full disk says nothing" % what)
        os.unlink(small + "/fill")
        fill(small, 0)
        expect("a search on a full disk after " + what,
               run(home, "search", "--floor", "0", "--text", line(1000003)), [0])
        os.unlink(small + "/fill")
    else:
        wrong("%s never fits: %s" % (what, got[2]))
    if os.path.exists(small + "/fill"):
        os.unlink(small + "/fill")
    print("%s: failed with %d sizes of the disk, then fitted" % (what, failed))
    whole(home, what + " on a full disk")


def fill(small, room):
    s = os.statvfs(small)
    with open(small + "/fill", "wb") as f:
        try:
            os.posix_fallocate(f.fileno(), 0, max(1, s.f_bavail * s.f_frsize - room))
        except OSError:
            pass


def full_disk():
    small = WORK + "/small"
    os.mkdir(small)
    if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=24m", "none", small],
                       stderr=subprocess.DEVNULL):
        print("no small disk can be made here: not tried")
        return
    try:
        home = small + "/home"
        expect("import", run(home, "incidents", "import", made(WORK + "/made.yaml", 0, 600)), [0])
        steps_until_it_fits(small, home, ["incidents", "add", log(70001), "--cause", "gpu.ecc"],
                            "incidents add", 12)
        if have_faiss(home):
            steps_until_it_fits(small, home, ["reindex"], "reindex", 100)
            mends(home, "after a full disk")
        fresh = small + "/fresh"
        fill(small, 64 << 10)
        got = run(fresh, "search", "--text", "x failed")
        if got[0] == 0 or not got[2].strip():
            wrong("a first search on a full disk: %s" % (got,))
        os.unlink(small + "/fill")
        expect("the first search, with room again",
               run(fresh, "search", "--floor", "0", "--text", "NCCL error"), [0])
        healthy(fresh, "a home that was begun on a full disk")
    finally:
        subprocess.call(["umount", small])


def read_only():
    home = home_with("reader", 100)
    if os.getuid() == 0:
        os.chmod(home, 0o755)
        for f in os.listdir(home):
            os.chmod(home + "/" + f, 0o644 if os.path.isfile(home + "/" + f) else 0o755)
        subprocess.call(["chmod", "-R", "a+rX", CACHE])
        more = {"preexec_fn": lambda: (os.setgid(65534), os.setuid(65534))}
    else:
        os.chmod(home, 0o555)
        more = {}
    text = "error: " + line(7 * 3 + 1000000)
    got = expect("a search in a folder that cannot be written",
                 run(home, "search", "--floor", "0", "--json", "--text", text, **more), [0])
    if got[0] == 0 and json.loads(got[1])["neighbours"][0]["incident"] != "made-7":
        wrong("a reader of a folder that cannot be written does not find made-7")
    got = expect("an add there", run(home, "incidents", "add", log(3), "--cause", "gpu.ecc",
                                     "--no-cache", **more), [3, 4])
    if not got[2].strip():
        wrong("an add that cannot write says nothing")
    expect("a reindex there", run(home, "reindex", **more), [3, 4])
    got = expect("doctor there", run(home, "doctor", **more), [0])
    if "cannot be written" not in got[1]:
        wrong("doctor does not say that the folder cannot be written: " + got[1])
    os.chmod(home, 0o755)
    print("a folder that cannot be written: read, and said")


def damage():
    home = home_with("damage", 1500)
    text = "error: " + line(7 * 3 + 1000000)
    db = home + "/incidents.db"

    def keep(name):
        shutil.rmtree("%s/%s" % (WORK, name), ignore_errors=True)
        return shutil.copytree(home, "%s/%s" % (WORK, name))

    at = keep("future")
    c = sqlite3.connect(at + "/incidents.db")
    c.execute("pragma user_version = 9999")
    c.commit()
    c.close()
    got = expect("a search in a database from the future", run(at, "search", "--text", text), [4])
    if "newer" not in got[2]:
        wrong("a database from the future: " + got[2])
    got = expect("doctor on it", run(at, "doctor"), [4])
    if "newer" not in got[1]:
        wrong("doctor on a database from the future: " + got[1])

    at = keep("corrupt")
    size = os.path.getsize(db)
    with open(at + "/incidents.db", "r+b") as f:
        for page in range(8, size // 4096, 3):
            f.seek(page * 4096)
            f.write(os.urandom(512))
    got = expect("doctor on a corrupt database", run(at, "doctor"), [4])
    if "--salvage" not in got[1]:
        wrong("doctor on a corrupt database: " + got[1])
    got = expect("a search in it", run(at, "search", "--text", text), [0, 1, 3, 4])
    if not got[2].strip() and got[0] != 0:
        wrong("a search in a corrupt database says nothing")
    got = expect("salvage", run(at, "incidents", "export", "--salvage"), [0, 1])
    saved = got[1].count("  - id: ")
    with open(WORK + "/saved.yaml", "w") as f:
        f.write(got[1])
    expect("import of what was saved", run(WORK + "/again", "incidents", "import", "--clash",
                                           "replace", WORK + "/saved.yaml"), [0])
    print("a corrupt database: %d incidents saved; %s" % (saved, got[2].strip()))

    at = keep("text")
    with open(at + "/incidents.db", "w") as f:
        f.write("this is no database\n" * 500)
    expect("a search in a file that is no database", run(at, "search", "--text", text), [3, 4])
    expect("doctor on it", run(at, "doctor"), [4])

    at = keep("empty")
    open(at + "/incidents.db", "w").close()
    for f in os.listdir(at):
        if re.match(r"incidents.db-", f):
            os.unlink(at + "/" + f)
    expect("a search with an empty file for a database",
           run(at, "search", "--floor", "0", "--text", "NCCL error"), [0])

    if not have_faiss(home):
        return
    at = keep("index")
    expect("reindex", run(at, "incidents", "import", made(WORK + "/more.yaml", 1500, 2500)), [0])
    expect("reindex", run(at, "reindex"), [0])
    name = at + "/index/" + os.listdir(at + "/index")[0]
    for how in ("cut", "gone", "other"):
        if how == "cut":
            os.truncate(name, os.path.getsize(name) // 3)
        elif how == "gone":
            os.unlink(name)
        else:
            data = open(name, "rb").read()
            open(name, "wb").write(data.replace(b"static-", b"dynami-", 1))
        got = expect("a search with the index " + how,
                     run(at, "search", "--floor", "0", "--json", "--text", text), [0])
        if "one by one" not in got[2]:
            wrong("a search with the index %s says: %s" % (how, got[2]))
        if json.loads(got[1])["neighbours"][0]["incident"] != "made-7":
            wrong("a search with the index %s does not find made-7" % how)
        got = expect("doctor with the index " + how, run(at, "doctor", "--json"), [0])
        index = [c for c in json.loads(got[1])["checks"] if c["name"] == "index"][0]
        if index["health"] != "worse" or index.get("run") != "diagnose reindex":
            wrong("doctor with the index %s: %s" % (how, index))
        expect("reindex with the index " + how, run(at, "reindex"), [0])
        name = at + "/index/" + os.listdir(at + "/index")[0]
        got = run(at, "search", "--floor", "0", "--json", "--text", text)
        if got[2]:
            wrong("after the reindex a search says: " + got[2])
    print("an index cut, gone, of another model: said, searched without, mended")


def first_search():
    begin = time.time()
    got = run(WORK + "/first", "search", "--floor", "0", "--text", "NCCL timeout")
    expect("a first search", got, [0])
    print("a first search, import included: %.2f s" % (time.time() - begin))


def main():
    parts = [first_search, read_only, two_at_once, damage, full_disk, kills]
    if len(sys.argv) > 3:
        parts = [p for p in parts if p.__name__ in sys.argv[3:]]
    try:
        run(WORK + "/warm", "search", "--text", "x")  # compiles the patterns
        for part in parts:
            begin = time.time()
            part()
            print("    %s: %.0f s" % (part.__name__, time.time() - begin))
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    print("%d wrong" % len(failures))
    return 1 if failures else 0


sys.exit(main())
