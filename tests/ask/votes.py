"""votes.py DIAGNOSE SERVER: several endpoints: one after the other, or compared."""
import sys

import lab

LINE = "FATAL accelmon: accelerator 5 failed its self test, code 0x1f"
JOB = LINE + "\nsrun: error: node-b03: tasks 8-15: Exited with exit code 1\n"
RIGHT = lab.verdict("gpu.hardware", [("job.log", 1, LINE)])
OTHER = lab.verdict("node.disk_full", [("job.log", 1, LINE)])
NO_PROOF = lab.verdict("gpu.hardware", [("job.log", 1, "some other words than those")])
UNKNOWN = lab.verdict("unknown", [], "investigate", kind="-")

# name, votes, what the endpoints say (None: nobody there), decides, words in llm.error, requests
ROWS = [
    ("one", 1, [RIGHT, OTHER], True, None, [1, 0]),
    ("the first is down", 1, [None, RIGHT], True, None, [0, 1]),
    ("two agree", 2, [RIGHT, RIGHT, OTHER], True, None, [1, 1, 0]),
    ("two disagree", 2, [RIGHT, OTHER], False, "disagree", [1, 1]),
    ("two disagree, the other way round", 2, [OTHER, RIGHT], False, "disagree", [1, 1]),
    ("the second does not know", 2, [RIGHT, UNKNOWN], False, "disagree", [1, 1]),
    ("the first does not know", 2, [UNKNOWN, RIGHT], False, "disagree", [1, 1]),
    ("both do not know", 2, [UNKNOWN, UNKNOWN], False, None, [1, 1]),
    ("proof by the first", 2, [RIGHT, NO_PROOF], True, None, [1, 2]),
    ("proof by the second", 2, [NO_PROOF, RIGHT], True, None, [2, 1]),
    ("proof by none", 2, [NO_PROOF, NO_PROOF], False, "opinion", [2, 2]),
    ("one is down, the third has its vote", 2, [None, RIGHT, RIGHT], True, None, [0, 1, 1]),
    ("one is down, the third disagrees", 2, [RIGHT, None, OTHER], False, "disagree", [1, 0, 1]),
    ("one talks nonsense", 2, ["I refuse.", RIGHT, RIGHT], True, None, [2, 1, 1]),
    ("all are down", 2, [None, None], False, "refused", [0, 0]),
    ("three of three", 3, [RIGHT, RIGHT, RIGHT], True, None, [1, 1, 1]),
    ("two of three", 3, [RIGHT, RIGHT, OTHER], False, "disagree", [1, 1, 1]),
    ("more votes than endpoints", 9, [RIGHT, RIGHT], True, None, [5, 4]),
    ("one model three times", 3, [RIGHT], True, None, [3]),
    ("one model of two minds", 2, [(RIGHT, OTHER)], False, "disagree", [2]),
    ("one of two is down, the other has both votes", 2, [None, RIGHT], True, None, [0, 2]),
]


def in_turn(says):
    """What a model says: always the same, or of several answers one after the other."""
    left = list(says) if isinstance(says, tuple) else None
    return lambda _: left.pop(0) if left else says


def row(l, dead, name, votes, says, decides, words, requests):
    models = [s and lab.Model(in_turn(s)) for s in says]
    config = l.config(*[m.url if m else dead.url() for m in models], votes=votes)
    log = l.file("job.log", JOB)
    base = l.run("--json", "--offline", "--no-memory", log)
    r = l.run("--json", "--no-memory", "--config", config, log)
    for m in models:
        if m:
            m.close()
    lab.valid(name, r.json)
    llm = r.json["llm"]
    got = [len(m.bodies) if m else 0 for m in models]
    if got != requests:
        lab.fault("%s: %s requests, not %s", name, got, requests)
    if decides:
        if (r.json["cause"]["id"], r.json["cause"]["decided_by"]) != ("gpu.hardware", "llm") or \
                llm["error"] or r.lines or r.json["evidence"][0]["text"] != LINE:
            lab.fault("%s: does not decide: %s %s", name, llm, r.err)
        if llm["citations"][0]["mark"] != "exact":
            lab.fault("%s: shows the answer without proof: %s", name, llm)
    else:
        lab.same(name, lab.decision(base.json), lab.decision(r.json))
        if (words or "") not in (llm["error"] or "") or bool(words) != bool(llm["error"]) or \
                len(r.lines) != bool(words):
            lab.fault("%s: %r should have %r; %s", name, llm["error"], words, r.err)
    if len(says) == 1 and votes > 1 and \
            [b.get("temperature", 0) > 0 for b in models[0].bodies] != [False] + [True] * (votes - 1):
        lab.fault("%s: temperatures %s", name, [b.get("temperature") for b in models[0].bodies])
    answered = [n for n, s in zip(got, says) if n and isinstance(s, (dict, tuple))]
    if answered and llm.get("tokens_in") != 100 * sum(answered):
        lab.fault("%s: %s tokens in for %s answers", name, llm.get("tokens_in"), answered)
    if any(s is None for s in says[:votes]) and decides and not llm.get("passed_over"):
        lab.fault("%s: who was passed over is not told: %s", name, llm)


def main():
    with lab.Lab(sys.argv[1]) as l:
        dead = lab.Fake(sys.argv[2], "--mode", "refuse")
        lab.together(row, [(l, dead, *r) for r in ROWS], 3)
        dead.close()
        print("%d ways to vote" % len(ROWS))
    lab.finish()


main()
