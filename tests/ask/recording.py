"""recording.py DIAGNOSE SERVER: a diagnosis that was recorded is replayed byte for byte, offline.

What the clock says (elapsed_ms) is set aside. A recording that does not fit any more is
told to be stale, and the rules' answer stands; a recording is never overwritten.
"""
import json
import re
import shutil
import sys

import lab

LINE = "FATAL accelmon: node-b03 accelerator 5 failed its self test, code 0x1f"
# node-a17 is told to be a host by nothing but its likeness to node-b03.
JOB = "\n".join(["2026-03-01 02:00:00 INFO launcher: starting on node-a17, node-b03", LINE,
                 "srun: error: node-b03: tasks 8-15: Exited with exit code 1"]) + "\n"
KEY = "the-key-is-a-secret-4711"


def timeless(text):
    return re.sub(r'"(elapsed_ms)":\s*[0-9.e+-]+', r'"\1":0', text)


def replay(l, folder, log, config, what, words, base, env=None):
    """Must fail with these words, and change nothing."""
    r = l.run("--json", "--config", config, "--replay", folder, log, env=env)
    lab.same(what, lab.decision(base.json), lab.decision(r.json))
    error = (r.json["llm"] or {}).get("error") or ""
    if not all(w in error for w in words) or r.status != base.status or len(r.lines) != 1:
        lab.fault("%s: %r has not the words %s; %s", what, error, words, r.err)


def main():
    with lab.Lab(sys.argv[1]) as l:
        log = l.file("job.log", JOB)
        model = lab.Model(lambda _: lab.verdict(
            "gpu.hardware", [("job.log", 2, LINE.replace("node-b03", "<HOST_1>"))]))
        config = l.config({"url": model.url, "api_key_env": "LAB_KEY", "price_in": 2.5,
                           "price_out": 10, "extra_headers": {"X-Team": "hidden-team-9"}})
        folder = l.path("recording")
        base = l.run("--json", "--offline", log)
        first = l.run("--json", "--config", config, "--record", folder, log, env={"LAB_KEY": KEY})
        text = "".join(p.read_text() for p in folder.iterdir()) + model.text()
        for secret in (KEY, "hidden-team-9", "node-b03", "node-a17"):
            if secret in text:
                lab.fault("the recording has %s in it", secret)
        if KEY.encode() not in model.raw[0] or first.json["cause"]["decided_by"] != "llm":
            lab.fault("recording: %s %s", first.json["cause"], first.err)
        lab.valid("recorded", first.json)
        again = l.run("--json", "--config", config, "--record", folder, log, env={"LAB_KEY": KEY})
        if len(model.bodies) != 1 or "record" not in again.err:
            lab.fault("recorded over a recording: %s", again.err)
        model.close()

        for env in ({"LAB_KEY": KEY}, {}):
            r = l.run("--json", "--config", config, "--replay", folder, log, env=env)
            if timeless(r.out) != timeless(first.out) or r.status != first.status or r.lines:
                lab.fault("the replay differs with %s: %s\n%s\n%s", sorted(env), r.err,
                          timeless(first.out), timeless(r.out))
        other = l.file("job.log", JOB.replace("0x1f", "0x20"))
        other_base = l.run("--json", "--offline", other)
        replay(l, folder, other, config, "another log", ["stale"], other_base)

        data = l.path("data")
        data.mkdir()
        for name in ("rules", "corpus", "embed"):
            if (lab.SOURCE / name).exists():
                (data / name).symlink_to(lab.SOURCE / name)
        shutil.copytree(lab.SOURCE / "prompts", data / "prompts")
        prompt = data / "prompts/diagnose.md"
        prompt.write_text(prompt.read_text().replace("Do not guess.", "Never guess."))
        env = {"FAULTLINE_DATA": str(data)}
        if l.run("--json", "--offline", log, env=env).json:
            replay(l, folder, log, config, "a changed prompt", ["stale", "prompt"], base, env)
        replay(l, l.dir / "nowhere", log, config, "no recording", ["nowhere"], base)
        meta = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps({**meta, "schema": "faultline.recording/9"}))
        replay(l, folder, log, config, "a recording of tomorrow", ["recording"], base)
        (folder / "meta.json").write_text("{")
        replay(l, folder, log, config, "a broken recording", ["meta.json"], base)
        both = l.run("--json", "--record", folder, "--replay", folder, log)
        if both.status != 2 or len(both.lines) != 1:
            lab.fault("--record and --replay: %d %s", both.status, both.err)
        print("recorded %d bytes, replayed alike" % len(text))
    lab.finish()


main()
