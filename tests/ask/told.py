"""told.py DIAGNOSE SERVER: what a person is told of an asking: where the answer comes from, what it
took, who was passed over, and that a recording was not made or not used.
"""
import sys

import lab

LINE = "FATAL accelmon: accelerator 5 failed its self test, code 0x1f"
JOB = LINE + "\nsrun: error: n12: task 3: Exited with exit code 1\n"
SURE = "[ 8123.456789] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n"


def expect(what, ok, r):
    if not ok:
        lab.fault("%s: status %d\n%s\n%s", what, r.status, r.out, r.err)


def conversation(l, server):
    """Free questions are recorded and replayed too."""
    fake = lab.Fake(server, "--answer", l.file("answer", "The card is broken, see accelmon."))
    config = l.config({"url": fake.url(), "api_key_env": "LAB_KEY"})
    folder, lines = l.path("talk"), l.file("lines", "why did it die?\nand what now?\n")
    log = l.file("job.log", JOB)
    runs = []
    for args, env in ((("--record", folder), {"LAB_KEY": "a-key-of-the-lab-17"}),
                      (("--replay", folder), {}), (("--replay", folder, "--offline"), {})):
        with open(lines) as stdin:
            runs.append(l.run("-i", "--config", config, *args, log, stdin=stdin, env=env))
        fake.close()
    expect("no answer", runs[0].out.count("The card is broken") == 2, runs[0])
    for r in runs[1:]:
        expect("a conversation is not replayed as it was", r.out == runs[0].out, r)
    kept = "".join(p.read_text() for p in (folder / "talk-1").iterdir())
    expect("a key or a host is in the recording", "a-key-of" not in kept and "n12" not in kept,
           runs[0])


def main():
    with lab.Lab(sys.argv[1]) as l:
        model = lab.Model(lambda _: lab.verdict("gpu.hardware", [("job.log", 1, LINE)]))
        log, sure = l.file("job.log", JOB), l.file("sure.log", SURE)
        good = {"url": model.url, "price_in": 2.5, "price_out": 10}
        one = l.config(good)
        r = l.run("--config", one, "--width", 80, log)
        flat = " ".join(r.out.split())
        expect("the source of the answer", all(w in flat for w in (
            "obedient-1 says gpu.hardware", "the rules alone said unknown", model.url,
            "100 tokens in, 20 out", "cost 0.0004")) and "..." not in flat.split("MODEL")[1], r)
        expect("a line is wider than 80", max(map(len, r.out.split("\n"))) <= 80, r)
        two = l.config("http://127.0.0.1:9/v1", good)
        r = l.run("--config", two, log)
        expect("who was passed over", "before it there was no answer: http://127.0.0.1:9/v1" in
               " ".join(r.out.split()) and "refused" in r.out, r)

        none = l.file("none.yaml", "color: never\n")
        folder, made = l.path("recording"), l.path("made")
        l.run("--config", one, "--record", made, log)
        asked = len(model.bodies)
        for what, config, args, words in (
                ("recorded without an endpoint", none, ("--record", folder, log), "names none"),
                ("recorded with --offline", one, ("--offline", "--record", folder, log),
                 "--offline asks nobody"),
                ("recorded where the rules are sure", one, ("--record", folder, sure),
                 "the rules are sure"),
                ("replayed where the rules are sure", one, ("--replay", made, sure),
                 "the rules are sure"),
                ("replayed without an endpoint", none, ("--replay", made, log),
                 "must name the endpoint that was recorded")):
            r = l.run("--config", config, *args)
            expect(what, words in r.err and len(r.lines) == 1 and not folder.exists(), r)
        r = l.run("--json", "--offline", "--config", one, "--replay", made, log)
        expect("a replay without a network", r.json["cause"]["decided_by"] == "llm" and
               not r.lines, r)
        if len(model.bodies) != asked:
            lab.fault("somebody was asked")

        conversation(l, sys.argv[2])
        end = {"url": "http://127.0.0.1:9/v1"}
        for proxy, hidden in ((None, False), ("http://127.0.0.1:3128", False),
                              ("http://proxy.corp.example:3128", True)):
            config = l.config({**end, **({"proxy": proxy} if proxy else {})}, redact=False)
            r = l.run("prompt", "--no-memory", "--config", config, log)
            expect("hidden behind %s" % proxy, ("n12: task" not in r.out) == hidden, r)
        model.close()
    lab.finish()


main()
