"""embedding.py DIAGNOSE SERVER: an endpoint that makes vectors beside the local model's.

It finds what the local model cannot, gets nothing but redacted text, and whatever it does wrong the
local result is there, in time, with one sentence.
"""
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time

import lab

DIM = 32
SECRETS = ["hunter2-swordfish", "sk-proj-Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz", "jane.doe@corp.example",
           "10.83.12.7", "gpu-secret-b17", "/home/janedoe"]
# Words of the log, and what an incident says for them: to the endpoint they are one.
ALIKE = {"quuxify": "zorblax", "plonkist": "grimbled", "vexomat": "turbolin", "wobbulo": "frandish",
         "snerkle": "dribbon", "yoptar": "klemvig"}
QUERY = "quuxify plonkist\nplonkist vexomat\nvexomat wobbulo\nsnerkle yoptar quuxify"
INCIDENTS = """incidents:
  - id: far-1
    cause: storage.io_error
    title: 'klemvig dribbon'
    evidence:
      - 'zorblax grimbled'
      - 'grimbled turbolin'
      - 'turbolin frandish'
      - 'dribbon klemvig zorblax'
      - 'srun: error: node-c01: tasks 0-7: Exited with exit code 1'
    explanation: 'frandish'
    fix: 'wait for the rebuild'
  - id: secret-1
    cause: net.config
    title: 'login as jane.doe@corp.example'
    evidence:
      - 'curl https://jane:hunter2-swordfish@10.83.12.7/x failed on host=gpu-secret-b17'
      - 'export OPENAI_API_KEY=sk-proj-Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz'
      - 'cannot read /home/janedoe/run/x.yaml'
    explanation: 'see jane.doe@corp.example'
"""
JOB = """ERROR: quuxify plonkist
ERROR: plonkist vexomat
FATAL: vexomat wobbulo
ERROR: snerkle yoptar quuxify
srun: error: node-b03: tasks 8-15: Exited with exit code 1
"""


class Embedder(lab.Posted):
    """Vectors out of hashes of words; those of ALIKE are one word to it."""

    def __init__(self):
        self.texts, self.salt, self.dim, self.fail_after, self.delay = [], "", DIM, None, 0
        self.requests = 0
        super().__init__(self.reply)

    def reply(self, body, _):
        self.requests += 1
        time.sleep(self.delay)
        if self.fail_after is not None and self.requests > self.fail_after:
            return 400, {"error": {"message": "no such luck"}}
        self.texts += body["input"]
        return 200, {"data": [{"index": i, "embedding": self.vector(t)}
                              for i, t in enumerate(body["input"])]}

    def vector(self, text):
        v = [0.01] * self.dim
        for word in re.findall("[a-z]+", text):
            h = hashlib.sha256((self.salt + ALIKE.get(word, word)).encode()).digest()
            v = [x + b - 127.5 for x, b in zip(v, h[:self.dim])]
        return v


NO_FAISS = "it was built without FAISS"


def reindex(l, config, *more, timeout=120):
    """Without FAISS it makes the vectors, and says that it makes no index: that is set aside."""
    r = l.run("reindex", "--config", config, *more, timeout=timeout)
    if NO_FAISS in r.err:
        r.lines = [x for x in r.lines if NO_FAISS not in x]
        r.err = "\n".join(r.lines)
        r.status = 4 if r.lines else 0
        r.without_faiss = True
    return r


def configure(l, url, model="m-1", more=None, **llm):
    end = {"url": url, "model": model, "timeout": 3, **(more or {})}
    return l.file("config.yaml", json.dumps({"memory": {"embedding": end}, **llm}))


def ids(r):
    return [n["incident"] for n in (r.json or {"neighbours": []})["neighbours"]]


def expect(what, ok, r=None):
    if not ok:
        lab.fault("%s: %s", what, "status %d\n%s\n%s" % (r.status, r.out[:2000], r.err) if r else "")


def find(l, config, text, *more):
    return l.run("search", "--json", "-k", 10, "--floor", 0, "--text", text, "--config", config,
                 *more)


def as_without(what, l, config, words, seconds=25):
    """A search and a diagnosis are those of --offline, with one sentence that has these words."""
    log = l.file("job.log", JOB)
    for args in (("search", "--json", "--floor", "0", "--text", QUERY),
                 ("--json", log)):
        a = l.run(*args, "--config", config, "--offline")
        b = l.run(*args, "--config", config)
        same = re.sub(r'"elapsed_ms":\s*\d+', "", a.out) == re.sub(r'"elapsed_ms":\s*\d+', "", b.out)
        expect(what + ": the local result is not there", same and a.status == b.status, b)
        expect(what + ": not one sentence with %s" % words,
               len(b.lines) == 1 and all(w in b.err for w in words), b)
        expect(what + ": took %.0f s" % b.seconds, b.seconds < seconds * lab.SLOW, b)
        expect(what + ": --offline says something", not a.lines, a)


def made_and_used(l, e):
    config = configure(l, e.url)
    as_without("before a reindex", l, config, ["not ready", "diagnose reindex"])
    expect("asked before it was ready", not e.requests)
    r = l.run("doctor", "--config", config)
    expect("doctor does not say that vectors are missing",
           r.status == 0 and "embedding worse" in r.out and "run: diagnose reindex" in r.out, r)
    r = reindex(l, config)
    expect("a reindex is not silent", r.status == 0 and not r.out and not r.err, r)
    sent = "\n".join(e.texts).lower()
    for secret in SECRETS:
        expect("%s was sent" % secret, secret.lower() not in sent)
    expect("janedoe was sent", "janedoe" not in sent and "corp" not in sent.replace("corpus", ""))
    r = reindex(l, config, "-v")
    expect("all is made anew", r.without_faiss or "0 incidents embedded" in r.out, r)
    r = find(l, config, QUERY)
    expect("the endpoint's neighbour is not first", ids(r)[:1] == ["far-1"] and not r.err, r)
    r = find(l, config, QUERY, "--offline")
    expect("first without the endpoint: this tests nothing", ids(r)[:1] != ["far-1"], r)
    before = len(e.texts)
    log = l.file("job.log", JOB)
    r = l.run("--json", "--config", config, log)
    expect("a job's neighbour is not found", "far-1" in ids(r) and not r.err, r)
    sent = "\n".join(e.texts[before:])
    expect("a host was sent: " + sent, "quuxify" in sent and "b03" not in sent and "node" not in sent)
    n = e.requests
    l.run("--json", "--config", config, "--offline", log)
    l.run("search", "--config", config, "--offline", log)
    reindex(l, config, "--offline", "--full")
    l.run("doctor", "--config", config, "--offline")
    r = l.run("prompt", "--config", config, log)
    expect("asked with --offline, or by prompt", e.requests == n, r)
    r = l.run("doctor", "--config", config)
    expect("doctor does not see that all is well", "embedding ok" in r.out and
           "%d dimensions" % DIM in r.out, r)
    r = l.run("incidents", "add", "--config", config, "--cause", "gpu.ecc", "--title", "new one",
              l.file("new.log", "ERROR wamblecropt: blorptastic failure\n"))
    expect("an incident that has no vector of the endpoint is not found",
           r.status == 0 and ids(find(l, config, "blorptastic failure"))[:1], r)
    return config


def faults(l, fake):
    """The vectors are there; who answers under their name misbehaves."""
    words = {"429": ["crowded"], "nan": ["not valid JSON"], "good": ["4 where 32", "4 numbers"],
             "hang": ["within 3 seconds"], "refuse": []}
    modes = [m for m in lab.modes() if not m.endswith("-once")]
    if lab.SLOW > 1:  # under a sanitizer
        modes = lab.spread(modes, 10)

    def one(mode):
        url = "http://127.0.0.1:9/v1" if mode == "refuse" else fake.url(mode)
        as_without(mode, l, configure(l, url), ["local model's vectors"] + words.get(mode, [])[-1:])

    lab.together(one, [(m,) for m in modes + ["refuse"]], 6)


def switched(l, e, config):
    other = configure(l, e.url, "m-2")
    as_without("another model", l, other, ["not ready"])
    expect("the old model is gone", ids(find(l, config, QUERY))[:1] == ["far-1"])
    expect("reindex", reindex(l, other).status == 0)
    expect("the new model finds nothing", ids(find(l, other, QUERY))[:1] == ["far-1"])
    r = l.run("doctor", "--config", other)
    expect("doctor does not see the old one's vectors", "1 other models" in r.out, r)
    reindex(l, other, "--prune")
    r = l.run("doctor", "--config", other)
    expect("pruned, and still there", "other models" not in r.out and "embedding ok" in r.out, r)
    return other


def turned(l, e, config):
    """The server answers under the old name with another model's vectors."""
    for salt, dim in (("x", DIM), ("x", DIM - 8), ("", DIM)):
        e.salt, e.dim = salt, dim
        r = l.run("doctor", "--config", config)
        expect("doctor does not see another model", "other vectors than before" in r.out and
               "run: diagnose reindex --full" in r.out, r)
        r = reindex(l, config)
        expect("vectors of two models are mixed", r.status == 4 and len(r.lines) == 1 and
               "other vectors than before" in r.err and "reindex --full" in r.err, r)
        as_without("another model behind the name", l, config, ["not ready"])
        r = reindex(l, config, "--full")
        expect("--full does not mend it", r.status == 0 and not r.err, r)
        r = find(l, config, QUERY)
        expect("not found after --full", ids(r)[:1] == ["far-1"] and not r.err, r)


def broken_off(l, e):
    """The endpoint fails on the way, or the reindex is killed: what was made is kept."""
    config = configure(l, e.url, "m-3")
    e.texts, e.requests, e.fail_after = [], 0, 40
    r = reindex(l, config)
    first = len(e.texts)
    expect("an endpoint that fails on the way", r.status == 4 and "no such luck" in r.err and
           len(r.lines) == 1 and first > 500, r)
    as_without("half a space", l, config, ["not ready"])
    e.fail_after, e.delay, e.requests = None, 0.2, 0
    p = subprocess.Popen([l.program, "reindex", "--config", config], env=l.env)
    while e.requests < 20 and p.poll() is None:
        time.sleep(0.05)
    p.send_signal(signal.SIGKILL)
    p.wait()
    e.delay, second = 0, len(e.texts)
    r = reindex(l, config, "-v")
    found = re.search(r"endpoint: (\d+) vectors", r.out)
    total = int(found.group(1)) if found else len(e.texts)
    expect("what was made before is made again", first < second and
           len(e.texts) - second < total - second / 2, r)
    expect("not found", ids(find(l, config, QUERY))[:1] == ["far-1"])


def many(l, e):
    """So many vectors that they have an index of their own."""
    rows = "".join("  - id: many-%d\n    cause: gpu.ecc\n    title: 'word%s'\n    evidence:\n%s" % (
        i, letters(i), "".join("      - 'error %s %s'\n" % (letters(i), letters(i * 7 + k))
                               for k in range(4))) for i in range(1500))
    r = l.run("incidents", "import", l.file("many.yaml", "incidents:\n" + rows))
    config = configure(l, e.url, "m-3")
    r = reindex(l, config, "-v", timeout=300)
    expect("no index", r.without_faiss or r.status == 0 and list((l.dir / "memory/index").glob("remote-*.index")), r)
    r = find(l, config, QUERY)
    expect("not found with an index", ids(r)[:1] == ["far-1"] and not r.err, r)
    r = reindex(l, config, "-v")
    expect("made again", r.without_faiss or "nothing new" in r.out, r)


def letters(n):
    return "".join(chr(97 + int(c)) for c in "%d" % (n * 7919 + 10007)) + "q"


def recorded(l, e):
    config = configure(l, e.url, "m-3", llm={"endpoints": [{"url": "http://127.0.0.1:9/v1",
                                                           "model": "m"}]})
    log, folder = l.file("job.log", JOB), l.path("recording")
    first = l.run("--json", "--config", config, "--record", folder, log)
    expect("not recorded", "far-1" in ids(first) and (folder / "embedding/0001.json").exists(),
           first)
    n = e.requests
    again = l.run("--json", "--config", config, "--replay", folder, log)
    expect("the replay used the network", e.requests == n)
    lab.same("replayed", lab.decision(first.json), lab.decision(again.json))
    expect("the replay has other neighbours", ids(first) == ids(again), again)
    shutil.rmtree(folder / "embedding")
    r = l.run("--json", "--config", config, "--replay", folder, log)
    expect("a recording without vectors used the network", e.requests == n, r)


def in_time(l, fake):
    """The budget is for both: an endpoint that hangs and a model that hangs."""
    config = configure(l, fake.url("hang"), "m-3", {"timeout": 60},
                       llm={"endpoints": [{"url": fake.url("hang"), "model": "m", "timeout": 60}]})
    r = l.run("--json", "--config", config, "--budget-seconds", 4, l.file("job.log", JOB))
    expect("the budget is overrun: %.1f s" % r.seconds, r.seconds < 7 * lab.SLOW and
           r.json["outcome"] == "unknown" and len(r.lines) == 2, r)


def main():
    with lab.Lab(sys.argv[1]) as l:
        l.run("incidents", "import", l.file("far.yaml", INCIDENTS))
        e, fake = Embedder(), lab.Fake(sys.argv[2])
        config = made_and_used(l, e)
        faults(l, fake)
        config = switched(l, e, config)
        turned(l, e, config)
        broken_off(l, e)
        if lab.SLOW <= 1:
            many(l, e)
        recorded(l, e)
        in_time(l, fake)
        e.close()
        fake.close()
    lab.finish()


main()
