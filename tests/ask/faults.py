"""faults.py DIAGNOSE SERVER: cases times all ways in which an endpoint can misbehave.

Whatever the endpoint does, the answer is that of --offline, with the same exit status, in time, and
one sentence on stderr that stands in llm.error as well. Forty cases, all healthy ones among them, a
part of the modes each so that every mode meets many cases; FL_ASK_FULL=1 takes all cases and modes.
"""
import socket
import sys
import threading

import lab

BUDGET = 3
# Hangs are cut by the budget; above it is starting and reading, on a machine that does more.
MOST = 30
EACH = 6  # modes a case
# These wait for their budget, and cost no processor while they do.
WAITING = ("hang", "drip", "tls-hang", "429", "500", "503", "reset", "cut", "429-long")


def deaf():
    """A port that takes connections and never says a word."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(64)
    kept = []

    def accept():
        while True:
            try:
                kept.append(s.accept())
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    return s


def check(l, name, mode, config, case, base):
    r = l.run("--json", "--ask", "--budget-seconds", BUDGET, "--config", config, case)
    what = "%s, %s" % (case.name, mode)
    if not lab.same(what, lab.decision(base.json), lab.decision(r.json)):
        return
    if r.status != base.status:
        lab.fault("%s: exit status %d, not %d", what, r.status, base.status)
    if r.seconds > MOST * lab.SLOW:
        lab.fault("%s: took %.1f s with a budget of %d", what, r.seconds, BUDGET)
    lab.valid(what, r.json)
    llm = r.json["llm"] or {}
    error = llm.get("error")
    if not error:
        lab.fault("%s: no llm.error: %s", what, llm)
        return
    if llm["decided"] or llm.get("grounded"):
        lab.fault("%s: an answer that cites no line of this log has decided: %s", what, llm)
    said = [x for x in r.lines if x.endswith(error)]
    if len(said) != 1 or len(r.lines) != 1:
        lab.fault("%s: stderr is not the one sentence of llm.error (%s): %s", what, error, r.err)
    if not 20 < len(error) < 500 or "\n" in error or "(null)" in error:
        lab.fault("%s: not a clear sentence: %r", what, error)
    name.setdefault(mode, error)


def main():
    program, server = sys.argv[1:3]
    healthy = [c for c in lab.cases() if lab.label(c)["cause"] in ("none", "unknown")]
    rest = [c for c in lab.cases() if c not in healthy]
    sample = lab.cases() if lab.FULL else healthy + lab.spread(rest, 40 - len(healthy))
    names = lab.modes() + ["refuse", "tls-unknown", "tls-hang", "key-missing", "no-host"]
    said = {}
    with lab.Lab(program) as l:
        fake, dead = lab.Fake(server), lab.Fake(server, "--mode", "refuse")
        tls, mute = lab.Fake(server, "--tls", l.dir), deaf()
        urls = {"refuse": dead.url(), "tls-unknown": tls.url(scheme="https"),
                "tls-hang": "https://127.0.0.1:%d/v1" % mute.getsockname()[1],
                "key-missing": {"url": fake.url(), "api_key_file": str(l.dir / "nothing")},
                "no-host": "http://no-such-host.invalid/v1"}
        configs = {m: l.config(urls.get(m, fake.url(m))) for m in names}
        base = {}

        def baseline(case):
            base[case] = l.run("--json", "--offline", "--config", configs["good"], case)
            if base[case].json is None or base[case].json["llm"] is not None or base[case].lines:
                lab.fault("%s offline: %s %s", case.name, base[case].out[:200], base[case].err)

        lab.together(baseline, [(c,) for c in sample], 3)
        jobs = []
        for i, case in enumerate(sample):
            for k, mode in enumerate(names):
                if lab.FULL or (i * EACH + k) % len(names) < EACH:
                    jobs.append((l, said, mode, configs[mode], case, base[case]))
        waiting = [j for j in jobs if j[2] in WAITING]
        lab.together(check, [j for j in jobs if j[2] not in WAITING], 3)
        lab.together(check, waiting, 16)
        for mode in names:
            print("%-14s %s" % (mode, said.get(mode, "(not met)")))
            if mode not in said:
                lab.fault("mode %s met no case", mode)
        print("%d cases, %d modes, %d runs" % (len(sample), len(names), len(jobs)))
        for s in (fake, dead, tls):
            s.close()
    lab.finish()


main()
