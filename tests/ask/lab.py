"""What the tests of asking a language model share: a home of their own, servers, runs, comparisons.

A test is a script that is called with the paths of `diagnose` and of the fake server. Nothing of the
caller's settings is seen; patterns are kept in $FL_CLI_CACHE, the memory in a folder that goes.
"""
import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import jsonschema

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CASES = SOURCE / "tests/cases"
FULL = os.environ.get("FL_ASK_FULL", "") not in ("", "0")
# Under a sanitizer everything takes many times as long.
SLOW = float(os.environ.get("FL_SLOW", "1"))

faults = []


def fault(text, *args):
    faults.append(text % args if args else text)
    if len(faults) <= 30:
        print("FAULT " + faults[-1], flush=True)


def finish():
    print("%d faults" % len(faults))
    sys.exit(1 if faults else 0)


class Run:
    without_faiss = False

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds
        self.lines = [x for x in err.split("\n") if x]
        try:
            self.json = json.loads(out)
        except ValueError:
            self.json = None


class Lab:
    """A folder with a home, and `diagnose` run in it."""

    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fl-ask-"))
        self.home = self.dir / "home"
        self.home.mkdir()
        cache = os.environ.get("FL_CLI_CACHE") or str(self.home / ".cache")
        os.makedirs(cache, exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C", "TZ": "UTC",
                    "XDG_CACHE_HOME": cache, "FAULTLINE_HOME": str(self.dir / "memory")}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "FAULTLINE_DATA"):
            if os.environ.get(name):
                self.env[name] = os.environ[name]
        self.number = 0
        self.lock = threading.Lock()
        # The first run makes the memory of past incidents, which takes a second.
        self.run("search", "--text", "NCCL watchdog timeout")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, *args, env=None, timeout=120, cwd=None, stdin=None):
        start = time.monotonic()
        p = subprocess.run([self.program, *map(str, args)], capture_output=True, stdin=stdin or
                           subprocess.DEVNULL, env={**self.env, **(env or {})}, cwd=cwd or self.dir,
                           timeout=timeout * SLOW)
        return Run(p.returncode, p.stdout.decode("utf-8", "replace"),
                   p.stderr.decode("utf-8", "replace"), time.monotonic() - start)

    def path(self, name):
        with self.lock:
            self.number += 1
            p = self.dir / ("%d" % self.number)
        p.mkdir()
        return p / name

    def file(self, name, text):
        p = self.path(name)
        p.write_bytes(text if isinstance(text, bytes) else text.encode())
        return p

    def config(self, *urls, **more):
        """A configuration with these endpoints (texts, or dicts of their keys)."""
        ends = [u if isinstance(u, dict) else {"url": u} for u in urls]
        for e in ends:
            e.setdefault("model", "m")
            e.setdefault("timeout", 60)
        return self.file("config.yaml", json.dumps({"llm": {"endpoints": ends, **more}}))


class Fake:
    """tests/fakes/llm_server.c; ends with us."""

    def __init__(self, program, *args):
        self.child = subprocess.Popen([program, *map(str, args)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        line = self.child.stdout.readline().split()
        if len(line) != 2:
            sys.exit("the fake server did not start")
        self.port = int(line[1])

    def url(self, mode="", scheme="http"):
        return "%s://127.0.0.1:%d/%sv1" % (scheme, self.port, mode + "/" if mode else "")

    def close(self):
        self.child.kill()
        self.child.wait()


class Posted:
    """A server of JSON on loopback: `reply(body, raw)` gives the status and the object."""

    def __init__(self, reply):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                raw = self.path.encode() + b"\n" + bytes(self.headers) + body
                status, said = reply(json.loads(body), raw)
                out = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # a client that was stopped is no fault

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/v1" % self.server.server_address[1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Model(Posted):
    """A server whose answer is `answer(body)`: a text, or a dict that becomes one. Keeps what it was
    sent."""

    def __init__(self, answer):
        self.answer, self.bodies, self.raw = answer, [], []
        super().__init__(self.reply)

    def reply(self, body, raw):
        self.raw.append(raw)
        self.bodies.append(body)
        said = self.answer(body)
        if isinstance(said, dict):
            said = json.dumps(said, ensure_ascii=False)
        return 200, {"model": "obedient-1", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": said},
             "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20}}

    def text(self, i=-1):
        return "\n".join(m["content"] for m in self.bodies[i]["messages"])


def verdict(cause, citations, action="restart", confidence=0.99, kind="infrastructure",
            summary="It died of this."):
    return {"citations": [{"file": f, "line": n, "quote": q} for f, n, q in citations],
            "cause": cause, "class": kind, "summary": summary, "alternatives": [],
            "action": action, "confidence": confidence}


def decision(report):
    """What a restart pipeline acts on."""
    if report is None:
        return None
    c = report["cause"]
    return {"outcome": report["outcome"], "cause": c["id"], "class": c["class"],
            "decided_by": c["decided_by"], "rule": c.get("rule"), "summary": c["summary"],
            "action": report["action"], "location": report["location"],
            "evidence": report["evidence"]}


def same(what, a, b):
    """Tells what differs between two decisions."""
    for key in sorted(set(a or {}) | set(b or {})) or ["nothing printed"]:
        x, y = (a or {}).get(key), (b or {}).get(key)
        if x != y or not a or not b:
            fault("%s: %s is %s, not %s", what, key, json.dumps(y)[:300], json.dumps(x)[:300])
            return False
    return True


def cases():
    return sorted(p for p in CASES.iterdir() if (p / "label.json").exists())


def label(case):
    return json.loads((case / "label.json").read_text())


SCHEMA = json.loads((SOURCE / "engine/doc/diagnosis.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def valid(what, report):
    """Against the schema; and no member of `llm` or `neighbours` that the schema does not know."""
    for e in VALIDATOR.iter_errors(report):
        fault("%s: %s: %s", what, "/".join(str(p) for p in e.absolute_path), e.message[:200])
    known = SCHEMA["properties"]
    for name, objects in (("llm", [report["llm"] or {}]), ("neighbours", report["neighbours"])):
        rules = known[name].get("items", known[name])["properties"]
        for o in objects:
            unknown = set(o) - set(rules)
            for part in ("citations", "matched"):
                for x in o.get(part, []):
                    unknown |= set(x) - set(rules[part]["items"]["properties"])
            if unknown:
                fault("%s: %s has %s, which the schema does not name", what, name, unknown)


def spread(items, n):
    """n of them, evenly."""
    if n >= len(items):
        return list(items)
    return [items[i * len(items) // n] for i in range(n)]


def together(work, jobs, threads):
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work, *j) for j in jobs]:
            future.result()


def modes():
    """The names of the fake server's modes, from its own table."""
    text = (SOURCE / "tests/fakes/llm_server.c").read_text()
    table = text[text.index("static const struct mode modes[]"):]
    return re.findall(r'^    \{"([^"]+)", [A-Z]', table[:table.index("#define NMODES")], re.M)
