"""leaving.py DIAGNOSE SERVER: what leaves the machine.

Ten secrets of each of 56 shapes are planted into the lines that a prompt shows, of jobs that no
rule resolves, and the jobs are sent to a server that keeps what it gets: no piece of twelve bytes of
any secret is in it, nor in what `diagnose prompt` prints, nor in a recording. Then the size: at most
6,000 tokens for every case and for a log of 20 MB, and the time that asking takes beside the model's.
"""
import random
import re
import statistics
import string
import sys
import time

import lab

SHAPES = [
    "OPENAI_API_KEY=sk-{m48}", "sk-proj-{t74}", "ANTHROPIC_API_KEY=sk-ant-api03-{t93}",
    "sk-or-v1-{x64}", "HF_TOKEN=hf_{m34}", "ghp_{m36}", "github_pat_{m22}_{m59}",
    "https://oauth2:glpat-{t20}@gitlab.corp.example/x.git", "AKIA{u16}", "ASIA{u16}",
    "aws_secret_access_key = {b40}", "AWS_SESSION_TOKEN=IQoJb3JpZ2luX2Vj{b120}", "AIza{t35}",
    "ya29.{t80}", "AccountKey={b86}==;EndpointSuffix=core.windows.net", "xoxb-{d12}-{d12}-{m24}",
    "https://hooks.slack.com/services/T{u10}/B{u10}/{m24}", "SG.{t22}.{t43}", "npm_{m36}",
    "pypi-AgEIcHlwaS5vcmc{t120}", "dckr_pat_{t27}", "dapi{x32}", "WANDB_API_KEY={x40}",
    "wandb: login --relogin key={x40}", "nvapi-{t64}", "NGC_API_KEY={m84}", "gsk_{m52}",
    "xai-{m80}", "lsv2_pt_{x32}_{x10}", "eyJhbGciOiJIUzI1NiJ9.eyJ{m60}.{t43}", "hvs.{t90}",
    "Authorization: Bearer {m64}", "Authorization: Basic {b44}", "Cookie: session={m48}",
    "postgresql://train:{m24}@db7:5432/runs", "mongodb+srv://u:{m20}@c0.mongodb.net",
    "redis://:{m32}@cache:6379/0", "password: {m20}", "export RAY_AUTH_SECRET={m40}",
    '{{"api_key": "{m40}", "region": "x"}}', "client_secret='{m36}'", "--token {m40}",
    "X-Api-Key: {m40}", "MLFLOW_TRACKING_PASSWORD={l24}", "COMET_API_KEY={m25}",
    "https://store.example/obj?X-Amz-Signature={x64}", "https://x.blob.core/c?sv=1&sig={m43}%3D",
    "KAGGLE_KEY={x32}", "glsa_{m32}_{x8}", "tskey-auth-{m12}-{m32}",
    "export ACME_KEY={l12}", "setenv DB_PWD {m12}", "wandb login --relogin {x40}",
    "password {m12}7 rejected", "Password for bob: {m12}7", "mysql -u root -p{m16}",
]
SETS = {"m": string.ascii_letters + string.digits, "t": string.ascii_letters + string.digits + "-_",
        "x": "0123456789abcdef", "u": string.ascii_uppercase + string.digits, "d": string.digits,
        "b": string.ascii_letters + string.digits + "+/", "l": string.ascii_lowercase +
        string.digits}
EACH = 10
PIECE = 12
BUDGET = 6000
WORDS = ("upload", "download", "handshake", "mount", "fetch", "publish", "resolve", "refresh")


def make(shape, rng):
    """The line's text and the parts that are secret."""
    parts = []

    def fill(m):
        n = int(m.group(2))
        text = "".join(rng.choice(SETS[m.group(1)]) for _ in range(n))
        if m.group(1) == "t":  # such a key has both in it and does not end with them
            text = "a" + text[1:n // 2] + "-" + text[n // 2 + 1:-2] + "_z"
        if n >= PIECE:
            parts.append(text)
        return text

    text = re.sub(r"\{([mtxudbl])(\d+)\}", fill, shape).replace("{{", "{").replace("}}", "}")
    return text, parts


def planted_job(rng, n, shapes):
    """A failed job with one secret a line, in lines of trouble, each of a shape of its own."""
    lines = ["2026-03-01 02:00:00 INFO launcher: starting 8 ranks"]
    secrets = []
    for i, shape in enumerate(shapes):
        text, parts = make(shape, rng)
        secrets += [(shape, p) for p in parts]
        word = WORDS[(i + n) % len(WORDS)]
        lines.append("2026-03-01 02:%02d:%02d ERROR %s%d: %s failed: %s"
                     % (i // 60, i % 60, "".join(rng.choice("abcdefgh") for _ in range(5)), n, word,
                        text))
    lines.append("srun: error: node-a17: tasks 0-7: Exited with exit code 1")
    return "\n".join(lines) + "\n", secrets


def found(text, secrets, where):
    """Returns how many shapes could be looked for: those whose line the prompt shows."""
    for shape, secret in secrets:
        for i in range(len(secret) - PIECE + 1):
            if secret[i:i + PIECE] in text:
                lab.fault("%s: a piece of %s", where, shape)
                break


def secrets_stay(l):
    rng = random.Random(20260301)
    total, seen = 0, 0
    half = len(SHAPES) // 2  # a prompt has room for so many lines
    for n in range(2 * EACH):
        text, secrets = planted_job(rng, n, SHAPES[half:] if n % 2 else SHAPES[:half])
        log = l.file("job.log", text)
        model = lab.Model(lambda _: lab.verdict("unknown", [], "investigate", kind="-"))
        config, record = l.config(model.url), l.path("record")
        r = l.run("--json", "--ask", "--config", config, "--record", record, log)
        model.close()
        if not model.raw:
            return lab.fault("nothing was sent: %s %s", r.out[:300], r.err)
        sent = b"\n".join(model.raw).decode()
        shown = model.text()
        found(sent, secrets, "sent")
        found("".join(p.read_text() for p in record.iterdir()), secrets, "recorded")
        prompt = l.run("prompt", "--config", config, log)
        found(prompt.out, secrets, "diagnose prompt")
        total += len({s for s, _ in secrets})
        seen += sum(1 for line in range(2, half + 2) if "job.log:%d\t" % line in shown)
    print("%d secrets of %d shapes planted, %d in lines that were sent" % (total, len(SHAPES), seen))
    if total < 500 or seen < total * 9 // 10:
        lab.fault("%d of %d planted lines were sent: the test shows too little", seen, total)
    return None


def tokens_of(r, what):
    m = re.search(r"(\d+) tokens", r.err)
    if r.status or not m:
        lab.fault("%s: no prompt: %s", what, r.err)
        return 0
    if int(m.group(1)) > BUDGET:
        lab.fault("%s: %s tokens", what, m.group(1))
    return int(m.group(1))


def big_log(l, megabytes):
    rng = random.Random(7)
    path = l.path("big.log")
    with open(path, "w", encoding="utf-8") as f:
        step = 0
        while f.tell() < megabytes << 20:
            step += 1
            for rank in range(64):
                f.write("[rank%d]: 2026-03-01 02:%02d:%02d INFO step %d loss %.4f grad %.3f\n"
                        % (rank, step // 60 % 60, step % 60, step, 3 - step / 1e4, rng.random()))
            if step % 10 == 0:
                f.write("[rank%d]: ERROR %s failed with %x in %s\n"
                        % (rng.randrange(64), "".join(rng.choice("abcdefghij") for _ in range(8)),
                           rng.getrandbits(60), " ".join("w%x" % rng.getrandbits(40)
                                                         for _ in range(rng.randrange(200)))))
        f.write("srun: error: node-a17: tasks 0-7: Exited with exit code 1\n")
    return path


def sizes(l):
    some = lab.cases() if lab.FULL or lab.SLOW == 1 else lab.spread(lab.cases(), 20)
    got = {}

    def one(case):
        got[case.name] = tokens_of(l.run("prompt", case), case.name)

    lab.together(one, [(c,) for c in some], 3)
    big = big_log(l, 20 if lab.SLOW == 1 else 2)
    got["big"] = tokens_of(l.run("prompt", big), "a log of %d bytes" % big.stat().st_size)
    print("prompts of %d cases: median %d tokens, most %d; of %d MB: %d"
          % (len(some), statistics.median(got.values()), max(got.values()),
             big.stat().st_size >> 20, got["big"]))
    return big


def overhead(l):
    """Reported, not asserted: a busy machine says nothing about the program."""
    log = l.file("job.log", planted_job(random.Random(1), 1, SHAPES)[0])
    model = lab.Model(lambda _: lab.verdict("unknown", [], "investigate", kind="-"))
    config = l.config(model.url)
    with_model, without, server = [], [], []
    for _ in range(15 if lab.SLOW == 1 else 3):
        a = l.run("--json", "--ask", "--config", config, log)
        b = l.run("--json", "--offline", log)
        with_model.append(a.seconds)
        without.append(b.seconds)
        server.append(a.json["llm"]["seconds"])
    model.close()
    ms = [1000 * statistics.median(x) for x in (with_model, without, server)]
    print("asking: %.1f ms, without %.1f ms, of it the model %.1f ms: %.1f ms are ours"
          % (ms[0], ms[1], ms[2], ms[0] - ms[1] - ms[2]))


def main():
    with lab.Lab(sys.argv[1]) as l:
        for part in (secrets_stay, sizes, overhead):
            start = time.monotonic()
            part(l)
            print("%s: %.1f s" % (part.__name__, time.monotonic() - start))
    lab.finish()


main()
