"""evaluate.py DIAGNOSE SERVER: `eval --ask`: both columns, what changed, and going on after a stop."""
import json
import re
import signal
import subprocess
import sys
import time

import lab

LINE = "FATAL accelmon: accelerator 5 failed its self test, code 0x%02x"
END = "srun: error: node-b03: tasks 8-15: Exited with exit code 1\n"
OOM = ("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a "
       "total capacity of 79.15 GiB of which 1.10 GiB is free.\n")


def case(folder, name, text, cause, action):
    (folder / name).mkdir(parents=True)
    (folder / name / "job.log").write_text(text)
    (folder / name / "label.json").write_text(json.dumps(
        {"id": name, "cause": cause, "class": "infrastructure", "action": action}))


def answer(body):
    """Right where the log has a failed self test, wrong otherwise."""
    text = body["messages"][-1]["content"]
    m = re.search(r"^(\S+):(\d+)\t(FATAL accelmon.*)$", text, re.M)
    time.sleep(0.1)
    if m:
        return lab.verdict("gpu.hardware", [(m.group(1), int(m.group(2)), m.group(3))])
    return lab.verdict("node.disk_full", [("job.log", 1, "no space left on the device")])


def make(l):
    folder = l.path("cases")
    for i in range(6):
        case(folder, "new-%d" % i, LINE % i + "\n" + END, "gpu.hardware", "cordon_and_restart")
    case(folder, "known", OOM, "fw.cuda_oom", "fix_config")
    case(folder, "bare", END, "unknown", "investigate")
    case(folder, "misled", LINE % 9 + "\n" + END, "fw.nan", "rollback_and_skip")
    return folder


def totals(r, what):
    if r.json is None:
        lab.fault("%s: %s %s", what, r.out[:300], r.err)
        return {}
    return r.json["totals"]


def expect(what, got, **want):
    for key, value in want.items():
        if got.get(key) != value:
            lab.fault("%s: %s is %s, not %s (%s)", what, key, got.get(key), value, got)


def main():
    with lab.Lab(sys.argv[1]) as l:
        folder = make(l)
        model = lab.Model(answer)
        config = l.config(model.url)
        args = ["eval", "--ask", "--no-memory", "--config", config, "--resume"]

        # Stopped in the middle, twice, and gone on with: nothing is asked twice.
        kept = l.path("kept.json")
        p = subprocess.Popen([l.program, *map(str, args + [kept, folder])], env=l.env, cwd=l.dir,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while len(model.bodies) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        p.send_signal(signal.SIGKILL)
        p.wait()
        time.sleep(0.3)
        before = len(json.loads(kept.read_text())["cases"])
        sent = len(model.bodies)
        r = l.run(*args, kept, "--json", folder)
        got = totals(r, "resumed")
        expect("resumed", got, cases=9, asked=8, answered=8, kept=before, rules=2, with_model=8,
               decided=7, mended=6, spoilt=0)
        # "bare" is answered without proof, which its repair turn does not mend: two requests.
        if before < 1 or len(model.bodies) - sent > (8 - before) + 1:
            lab.fault("%d kept, and %d requests after it", before, len(model.bodies) - sent)
        n = len(model.bodies)
        again = l.run(*args, kept, "--json", folder)
        expect("again", totals(again, "again"), kept=8, with_model=8, mended=6)
        if len(model.bodies) != n:
            lab.fault("asked again for what was answered")
        text = l.run(*args, kept, folder)
        for wanted in (r"new-0 +gpu\.hardware +unknown +X gpu\.hardware +\+ gpu\.hardware +\+ mended",
                       r"misled .*changed, no better", r"bare .*an opinion",
                       r"cause +2 +22\.2 % +8 +88\.9 % +of 9", r"6 mended, 0 spoilt"):
            if not re.search(wanted, text.out):
                lab.fault("the table has no %r:\n%s", wanted, text.out)

        # All cases: also the one that the rules are sure of; its answer stands.
        r = l.run(*args, l.path("all.json"), "--all", "--json", folder)
        expect("all", totals(r, "all"), cases=9, asked=9, with_model=8, spoilt=0)

        # Other settings, another prompt's results, a broken file.
        r = l.run(*args, kept, "--all", folder)
        if r.status != 2 or "other models or settings" not in r.err:
            lab.fault("results of other settings: %d %s", r.status, r.err)
        model.close()
        r = l.run("eval", "--ask", "--no-memory", "--config", config, "--json", folder)
        expect("nobody answers", totals(r, "nobody"), asked=8, answered=0, rules=2, with_model=2)
        if r.status != 4 or "asks them again" not in r.err:
            lab.fault("nobody answers: %d %s", r.status, r.err)
        r = l.run("eval", "--ask", "--no-memory", folder)
        if r.status != 2 or "llm.endpoints" not in r.err:
            lab.fault("no endpoint: %d %s", r.status, r.err)
        kept.write_text("{")
        r = l.run(*args, kept, folder)
        if r.status not in (2, 3) or "kept.json" not in r.err:
            lab.fault("a broken file: %d %s", r.status, r.err)
    lab.finish()


main()
