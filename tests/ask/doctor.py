"""doctor.py DIAGNOSE SERVER: what `diagnose doctor` says of endpoints that work, and of those that
do not.

Each row is an endpoint and what must be said of it: the health of its checks, and words of them. The
text and the JSON say the same, the JSON fits its schema, the exit status stays 0 since answers can
be given without a model, nothing takes longer than its time, and no key is printed.
"""
import http.server
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import threading

import sys

import jsonschema

import lab

KEY = "sk-doctor-0123456789abcdef"
BUDGET = 3
MOST = 30  # above the budget is starting and reading, on a machine that does more
SCHEMA = json.loads((lab.SOURCE / "engine/doc/doctor.schema.json").read_text())
NAMES = set(SCHEMA["properties"]["checks"]["items"]["properties"]["name"]["enum"])

# name, its healths in order, words of its texts, words of what to run
ROWS = [
    ("good", ["ok"], ["the model fake-1 is there; it answers in JSON by a schema; model fake-1, "
                      "100 tokens in, 20 out"], []),
    ("refused", ["worse"], ["the connection was refused; is the server running"], []),
    ("401", ["worse"], ["the server wants a key; name one by api_key_file or api_key_env"], []),
    ("401-key", ["worse"], ["the key was refused; check what api_key_file"], []),
    ("no-key", ["worse"], ["its key cannot be read: "], []),
    ("404", ["worse"], ["there is no such address or model; check url"], []),
    ("no-model", ["worse", "worse"],
     ["the model m is not in the server's list (fake-1, fake-small)", "status 404"],
     ["set the endpoint's `model` to one of these"]),
    ("other-model", ["worse", "ok"],
     ["the model m is not in the server's list", "it answers in JSON by a schema"],
     ["set the endpoint's `model` to one of these"]),
    ("no-schema", ["worse", "ok"], ["it does not take a JSON schema (response_format json_object",
                                    "the model fake-1 is there"], ["enforces a schema"]),
    ("no-json", ["worse", "ok"], ["not with the JSON that was asked for"], ["a larger model"]),
    ("small", ["worse", "ok"], ["its context of 2048 tokens is too small, a diagnosis takes up to "
                                "8000"], ["start the server with a larger context"]),
    ("context", ["worse"], ["the prompt is too long for the model"], []),
    ("tls", ["worse"], ["the server's certificate is not trusted"], []),
    ("not-tls", ["worse"], [" TLS "], []),  # how it ends depends on when the server hangs up
    ("no-host", ["worse"], ["the host name does not resolve"], []),
    ("html", ["worse"], ["a web page"], []),
    ("hang", ["worse"], ["no complete answer within the time that was left"], []),
    ("deaf", ["worse"], ["no complete answer within the time that was left"], []),
    ("500", ["worse"], ["the server failed; see its log (status 500, 2 tries)"], []),
    ("no-list", ["ok"], ["it answers in JSON by a schema", "it does not list its models"], []),
]


class Echo(http.server.BaseHTTPRequestHandler):
    """Lists models with hostile names, its caller's key among them; and answers with the key."""
    protocol_version = "HTTP/1.1"
    names = ["m", "\x1b[2J\x1b]0;title\x07", "a\r\nconfig    broken all", "\u009b31m\u202e", "\0nul",
             "x" * 5000]

    def log_message(self, *_):
        pass

    def send(self, value):
        out = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def do_GET(self):
        key = self.headers.get("Authorization", "").split(" ")[-1]
        self.send({"data": [{"id": n} for n in [key] + self.names[1:]]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Authorization", "").split(" ")[-1]
        self.send({"model": "\x1b[31m" + key, "choices": [
            {"index": 0, "message": {"role": "assistant", "content": '{"status": "ready"}'},
             "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})


def serve(handler):
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    s.daemon_threads = True
    threading.Thread(target=s.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d/v1" % s.server_address[1]


def deaf():
    """A port that takes connections and never says a word."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(64)
    return s


def look(l, what, config, *args):
    """The checks of the endpoints, as JSON and as text."""
    j = l.run("doctor", "--json", "--config", config, "--budget-seconds", BUDGET, *args)
    t = l.run("doctor", "--config", config, "--budget-seconds", BUDGET, *args)
    for r in (j, t):
        if r.status != 0 or r.err:
            lab.fault("%s: status %d, stderr %r", what, r.status, r.err)
        if r.seconds > MOST * lab.SLOW:
            lab.fault("%s: took %.1f s with %d for the endpoint", what, r.seconds, BUDGET)
        if KEY in r.out or KEY[4:16] in r.out:
            lab.fault("%s: prints the key: %s", what, r.out[-600:])
        if re.search("[\0-\x09\x0b-\x1f\x7f]", r.out) or \
                r is t and re.search("[\x80-\x9f\u202e]", r.out):
            lab.fault("%s: prints control characters: %r", what, r.out[-600:])
    if j.json is None:
        lab.fault("%s: no JSON: %s", what, j.out[-600:])
        return []
    for e in jsonschema.Draft7Validator(SCHEMA).iter_errors(j.json):
        lab.fault("%s: %s", what, e.message[:200])
    checks = [c for c in j.json["checks"] if c["name"] == "endpoint"]
    rows = re.findall(r"^endpoint  (\w+) ", t.out, re.M)
    if rows != [c["health"] for c in checks]:
        lab.fault("%s: the text has %s, the JSON %s", what, rows, checks)
    if any(not re.match(r"(%s) +(ok|note|worse|broken) |                 run: " % "|".join(NAMES), x)
           for x in t.out.split("\n")[:-1]):
        lab.fault("%s: a line that is no check: %s", what, t.out)
    return checks


def row(l, ends, name, healths, texts, runs):
    end = dict(ends[name])
    url = end["url"]
    checks = look(l, name, l.config(end))
    said = [c["text"] for c in checks]
    if [c["health"] for c in checks] != healths:
        lab.fault("%s: %s, not %s", name, [(c["health"], c["text"]) for c in checks], healths)
    for words in texts:
        if not any(words in x for x in said):
            lab.fault("%s: nothing says %r: %s", name, words, said)
    for words in runs:
        if not any(words in c.get("run", "") for c in checks):
            lab.fault("%s: nothing to do says %r: %s", name, words, checks)
    if not all(x.startswith(url) for x in said):
        lab.fault("%s: a text that does not begin with the endpoint: %s", name, said)


def several(l, ends):
    """Each is asked, in the order of the configuration; --offline asks none."""
    config = l.config(dict(ends["refused"], name="desk"), ends["good"], ends["404"])
    said = [c["text"] for c in look(l, "several", config)]
    if len(said) != 3 or not said[0].startswith("desk: ") or "fake-1 is there" not in said[1]:
        lab.fault("several: %s", said)
    checks = look(l, "offline", config, "--offline")
    if [(c["health"], c["text"]) for c in checks] != [
            ("note", "3 configured, not asked: --offline")]:
        lab.fault("offline: %s", checks)
    checks = look(l, "none", l.config())
    if [c["health"] for c in checks] != ["ok"] or "none is configured" not in checks[0]["text"]:
        lab.fault("none: %s", checks)


def offline_sends_nothing(l, server):
    kept = l.path("kept")
    fake = lab.Fake(server, "--keep", kept)
    look(l, "offline", l.config(fake.url()), "--offline")
    if kept.exists():
        lab.fault("--offline: a request was sent: %s", kept.read_text()[:200])
    look(l, "online", l.config({"url": fake.url(), "model": "fake-1"}))
    sent = kept.read_text() if kept.exists() else ""
    if sent.count("GET ") != 2 or sent.count("POST ") != 2 or len(sent) > 5000:
        lab.fault("two looks sent %d bytes: %s", len(sent), sent[:600])
    fake.close()


def progress(l, ends):
    """On a terminal stderr says who is asked, and erases it."""
    master, slave = pty.openpty()
    p = subprocess.Popen([l.program, "doctor", "--budget-seconds", "1", "--config",
                          str(l.config(ends["hang"]))], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=slave, env=dict(l.env, TERM="xterm"))
    os.close(slave)
    seen = b""
    try:
        while True:
            piece = os.read(master, 4096)
            if not piece:
                break
            seen += piece
    except OSError:
        pass
    p.communicate()
    os.close(master)
    if b"asking http://127.0.0.1" not in seen or not seen.endswith(b"\r\x1b[K"):
        lab.fault("progress: %r", seen)


def prompts(l):
    """One that is missing or wrong is told, and breaks nothing that rules need."""
    data = l.path("data")
    data.mkdir()
    for name in ("rules", "embed", "corpus"):
        (data / name).symlink_to(lab.SOURCE / name)
    shutil.copytree(lab.SOURCE / "prompts", data / "prompts")
    prompt = data / "prompts/diagnose.md"
    text = prompt.read_text()
    for what, broken in (("missing", None),
                         ("of unused inputs", text.replace("inputs: [", "inputs: [other, "))):
        prompt.unlink() if broken is None else prompt.write_text(broken)
        r = l.run("doctor", "--json", env={"FAULTLINE_DATA": str(data)})
        found = [c for c in r.json["checks"] if c["name"] == "prompts"]
        if r.status or [c["health"] for c in found] != ["worse"] or \
                "diagnose.md" not in found[0]["text"]:
            lab.fault("a prompt that is %s: %s", what, r.out)


def main():
    program, server = sys.argv[1:3]
    with lab.Lab(program) as l:
        ready = l.file("ready", '{"status": "ready"}')
        key = str(l.file("key", KEY))
        fake, vague = lab.Fake(server, "--answer", ready), lab.Fake(server)
        tls, dead, mute = lab.Fake(server, "--tls", l.dir), lab.Fake(server, "--mode", "refuse"), \
            deaf()
        ends = {m: {"url": fake.url(m)} for m in ("401", "404", "no-model", "html", "hang", "500",
                                                  "context")}
        ends.update({
            "good": {"url": fake.url(), "model": "fake-1"},
            "other-model": {"url": fake.url()},
            "refused": {"url": dead.url()},
            "401-key": {"url": fake.url("401"), "api_key_file": key},
            "no-key": {"url": fake.url(), "api_key_file": str(l.dir / "nothing")},
            "no-schema": {"url": fake.url("no-schema"), "model": "fake-1"},
            "no-json": {"url": vague.url(), "model": "fake-1"},
            "small": {"url": fake.url(), "model": "fake-small"},
            "context": {"url": fake.url("context"), "model": "fake-1"},
            "tls": {"url": tls.url(scheme="https")},
            "not-tls": {"url": fake.url(scheme="https")},
            "no-host": {"url": "http://no-such-host.invalid/v1"},
            "deaf": {"url": "http://127.0.0.1:%d/v1" % mute.getsockname()[1]},
            "no-list": {"url": lab.Model(lambda _: '{"status": "ready"}').url}})
        lab.together(row, [(l, ends, *r) for r in ROWS], 6)
        several(l, ends)
        offline_sends_nothing(l, server)
        progress(l, ends)
        prompts(l)
        look(l, "hostile", l.config({"url": serve(Echo), "api_key_file": key}))
        for s in (fake, vague, tls, dead):
            s.close()
    lab.finish()


main()
