#!/usr/bin/env python3
"""Drives the REPL through a pseudo-terminal: terminal.py PROGRAM LLM_SERVER SAMPLE

Each part opens `diagnose` on a terminal of 80 columns, types what a person would, and waits for
what must come. A part that fails prints everything that was on the screen. What is held here and
cannot be by piped commands: prompts, history, completion, Ctrl-C in the middle of an answer and at
the prompt, Ctrl-D, a dumb terminal, and that no byte of a log reaches the terminal as a command.
"""
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM, SERVER, SAMPLE = (os.path.abspath(p) for p in sys.argv[1:4])
PROMPT = b"diagnose> "
WAIT = 60
work = tempfile.mkdtemp()
failures = []


class Failed(Exception):
    pass


class Terminal:
    def __init__(self, args, term="xterm", home="home", env=None, columns=80):
        self.seen = b""
        self.at = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            e = {"PATH": os.environ["PATH"], "HOME": os.path.join(work, home), "TERM": term,
                 "LC_ALL": "C.UTF-8", "TZ": "UTC",
                 "XDG_CACHE_HOME": os.environ.get("FL_CLI_CACHE", os.path.join(work, "cache")),
                 "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
            e.update(env or {})
            os.makedirs(e["HOME"], exist_ok=True)
            os.chdir(work)
            os.execve(PROGRAM, [PROGRAM] + args, e)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def pump(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def expect(self, what, seconds=WAIT):
        """Waits for a text behind what was expected last; returns what stood before it."""
        what = what if isinstance(what, bytes) else what.encode()
        end = time.monotonic() + seconds
        while True:
            at = self.seen.find(what, self.at)
            if at >= 0:
                before = self.seen[self.at:at]
                self.at = at + len(what)
                return before
            if time.monotonic() > end or not self.pump(0.2):
                if self.seen.find(what, self.at) < 0:
                    raise Failed("%r did not come; on the screen was:\n%s" %
                                 (what, self.seen.decode("utf-8", "replace")))

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def line(self, text):
        self.type(text + "\r")

    def ended(self, status=0):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            self.pump(0.1)
            pid, got = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                if os.WIFSIGNALED(got) or os.WEXITSTATUS(got) != status:
                    raise Failed("ended with %r instead of %d:\n%s" %
                                 (got, status, self.seen.decode("utf-8", "replace")))
                return
        raise Failed("did not end:\n%s" % self.seen.decode("utf-8", "replace"))

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def check(so, what, screen=b""):
    if not so:
        raise Failed("%s; on the screen was:\n%s" % (what, screen.decode("utf-8", "replace")))


@contextlib.contextmanager
def server(mode, answer):
    path = os.path.join(work, "answer.txt")
    with open(path, "w") as f:
        f.write(answer)
    p = subprocess.Popen([SERVER, "--mode", mode, "--answer", path, "--keep",
                          os.path.join(work, "sent-" + mode)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield p.stdout.readline().split()[1].decode()
    finally:
        p.kill()
        p.wait()


def config(port):
    path = os.path.join(work, "config.yaml")
    with open(path, "w") as f:
        f.write("llm:\n  endpoints:\n    - url: http://127.0.0.1:%s/v1\n      model: fake-1\n" % port)
    return path


def with_terminal(args, run, **more):
    t = Terminal(args, **more)
    try:
        run(t)
    finally:
        t.close()


# ---- the parts ----

def opens_and_leaves():
    def run(t):
        t.expect("gpu.off_bus")
        t.expect(PROMPT)
        t.line("/why")
        t.expect("decided by rule")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], run)


def without_arguments():
    def run(t):
        t.expect("Which log is it")
        t.expect("log: ")
        t.line("/no/such/log")
        t.expect("/no/such/log")
        t.expect("log: ")
        t.type(SAMPLE[:-2] + "\t")
        t.expect(SAMPLE.encode()[-2:])
        t.type("\r")
        t.expect("gpu.off_bus")
        t.expect(PROMPT)
        t.line("/quit")
        t.ended()
    with_terminal([], run)


def completes():
    def run(t):
        t.expect(PROMPT)
        t.type("/evi\t")
        t.expect("dence ")  # libedit prints what is new
        t.type("\r")
        t.expect("root gpu.off_bus")
        t.expect(PROMPT)
        t.type("/correct gpu.off\t")
        t.expect("_bus ")
        t.type("\r")
        t.expect("Stored as inc-")
        t.expect(PROMPT)
        t.type("/explain gpu-xid-7\t\t")
        t.expect("gpu-xid-79")
        t.type("\x15/around train-gn0\t")
        t.expect("train-gn0")
        t.type("7.log:78 1\r")
        t.expect("train-gn07.log:78")
        t.expect(PROMPT)
        t.line("/explian")
        t.expect("the nearest is /explain")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], run)


def keeps_history():
    def first(t):
        t.expect(PROMPT)
        t.line("/timeline")
        t.expect("last progress")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()

    def second(t):
        t.expect(PROMPT)
        t.type("\x1b[A")
        t.expect("/timeline")
        t.type("\r")
        t.expect("last progress")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], first, home="h2")
    with_terminal(["-i", SAMPLE], second, home="h2")
    path = os.path.join(work, "h2/.local/share/faultline/history")
    mode = os.stat(path).st_mode & 0o777
    check(mode == 0o600, "the history has mode %o" % mode)


def stops_at_the_prompt():
    def run(t):
        t.expect(PROMPT)
        t.type("/half a comm")
        t.expect("half a comm")
        t.type("\x03")
        t.expect("^C")
        t.expect(PROMPT)
        t.line("/why")
        t.expect("decided by rule")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], run)


def answers_without_a_model():
    def run(t):
        t.expect(PROMPT)
        t.line("what about the watchdog timeout?")
        t.expect("No language model is configured")
        t.expect("atchdog")
        t.expect(PROMPT)
        t.line("/ask")
        t.expect("No language model is configured")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], run)


def talks_to_a_model():
    long = "The card of <HOST_1> fell off the bus. " + "Then the others waited for it. " * 40
    with server("slow", long + "END OF ANSWER") as port:
        def run(t):
            t.expect(PROMPT)
            t.line("why did gn08 die?")
            before = t.expect("fell off the bus")
            check(b"<HOST" not in before, "a placeholder was shown", t.seen)
            t.type("\x03")
            t.expect("(stopped")
            screen = t.expect(PROMPT)
            check(b"END OF ANSWER" not in t.seen, "the answer was not stopped", screen)
            t.line("/why")
            t.expect("decided by rule")
            t.expect(PROMPT)
            t.line("/save talk.txt")
            t.expect("Saved as talk.txt")
            t.expect(PROMPT)
            t.type("\x04")
            t.ended()
        with_terminal(["-i", "--config", config(port), SAMPLE], run)
        with open(os.path.join(work, "talk.txt")) as f:
            saved = f.read()
        check("Q: why did gn08 die?" in saved and "fell off the bus" in saved and
              "(stopped)" in saved, "not saved", saved.encode())
        with open(os.path.join(work, "sent-slow"), errors="replace") as f:
            sent = f.read()
        check("gn08" not in sent and "gn07" not in sent, "a host name left the machine",
              sent.encode())
        check("why did <HOST_" in sent, "the question was not sent", sent.encode()[-2000:])


def remembers_turns():
    with server("good", "It was the card, see dmesg-gn08.log:14.") as port:
        def run(t):
            t.expect(PROMPT)
            t.line("what was it?")
            t.expect("dmesg-gn08.log:14.")
            t.expect("tokens in")
            t.expect(PROMPT)
            t.line("and then?")
            t.expect("tokens in")
            t.expect(PROMPT)
            t.type("\x04")
            t.ended()
        with_terminal(["-i", "--config", config(port), SAMPLE], run)
        with open(os.path.join(work, "sent-good"), errors="replace") as f:
            sent = f.read()
        last = sent[sent.rfind("POST "):]
        check("what was it?" in last and "It was the card" in last and "and then?" in last,
              "the second question came without the first", last.encode()[-3000:])


def stops_waiting():
    with server("hang", "never") as port:
        def run(t):
            t.expect(PROMPT)
            t.line("are you there?")
            t.expect("are you there?\r\n")
            time.sleep(1)
            t.type("\x03")
            t.expect("(stopped", 10)
            t.expect(PROMPT)
            t.type("\x04")
            t.ended()
        with_terminal(["-i", "--config", config(port), SAMPLE], run)


def tells_of_a_dead_endpoint():
    def run(t):
        t.expect(PROMPT)
        t.line("what failed with Xid?")
        t.expect("diagnose: ")
        t.expect("What a search for the question's words finds instead")
        t.expect(PROMPT)
        t.line("/save dead.txt")
        t.expect("Saved as dead.txt")
        t.expect(PROMPT)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", "--config", config("9"), SAMPLE], run)
    with open(os.path.join(work, "dead.txt")) as f:
        saved = f.read()
    check("(no answer: http://127.0.0.1:9" in saved and "\n(answered by a search)\n" in saved and
          "Xid" in saved.split("(answered by a search)")[1] and "\x1b" not in saved,
          "what a person saw is not saved", saved.encode())


def hostile():
    evil = b"step 1\n\x1b]0;title\x07\x1b[2J\x9bRuntimeError: CUDA out of memory. Tried to " \
           b"allocate 2.00 GiB \x01\x7f\xe2\x80\xae\n\xc2\x9b31mplain \x1b]52;c;AAAA\x07 words\n"
    with open(os.path.join(work, "evil.log"), "wb") as f:
        f.write(evil)
    with server("good", "An answer \x1b]0;owned\x07 with \x1b[2J escapes \x9b and \u202e.") as port:
        def run(t):
            t.expect(PROMPT)
            for command in ("/evidence", "/digest", "/grep .", "/around 2", "/json",
                            "what of the memory?"):
                t.line(command)
                t.expect(PROMPT)
            t.type("\x04")
            t.ended()
            screen = t.seen
            for bad in (b"\x1b]", b"\x1b[2J", b"\x07", b"\x01", b"\x7f", b"\xe2\x80\xae",
                        b"\xc2\x9b"):
                check(bad not in screen, "%r reached the terminal" % bad, screen)
        with_terminal(["-i", "--color=never", "--config", config(port), "evil.log"], run,
                      term="dumb")


def dumb():
    def run(t):
        t.expect(PROMPT)
        t.line("/why")
        t.expect("decided by rule")
        t.expect(PROMPT)
        check(b"\x1b" not in t.seen, "an escape on a dumb terminal", t.seen)
        for line in re.sub(rb"[^\n]*\r(?!\n)", b"", t.seen).split(b"\n"):
            check(len(line.rstrip(b"\r")) <= 80, "a line of %d columns" % len(line), line)
        t.type("\x04")
        t.ended()
    with_terminal(["-i", SAMPLE], run, term="dumb")


PARTS = [opens_and_leaves, without_arguments, completes, keeps_history, stops_at_the_prompt,
         answers_without_a_model, talks_to_a_model, remembers_turns, stops_waiting,
         tells_of_a_dead_endpoint, hostile, dumb]
for part in PARTS:
    if len(sys.argv) > 4 and part.__name__ not in sys.argv[4:]:
        continue
    started = time.monotonic()
    try:
        part()
        print("ok      %s (%.1f s)" % (part.__name__, time.monotonic() - started))
    except Failed as e:
        failures.append(part.__name__)
        print("FAILED  %s: %s" % (part.__name__, e))
    sys.stdout.flush()
shutil.rmtree(work, ignore_errors=True)
sys.exit(1 if failures else 0)
