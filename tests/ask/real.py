#!/usr/bin/env python3
"""real.py: `diagnose --ask` against a real llama.cpp server, which tests/real/run.sh starts.

The model has 135 million parameters and names no cause. What is held: the program's prompt fits into
its context, the answer has the form, whatever it says is checked, and the rules' answer stands."""
import os

import lab

LINE = "FATAL accelmon: accelerator 5 failed its self test, code 0x1f"
JOB = LINE + "\nsrun: error: node-b03: tasks 8-15: Exited with exit code 1\n"


def main():
    with lab.Lab(os.environ["FL_DIAGNOSE"]) as l:
        log = l.file("job.log", JOB)
        key = {"LAB_KEY": "real-key-0123456789"}
        end = {"url": os.environ["FL_REAL_LLM"], "model": "SmolLM2", "api_key_env": "LAB_KEY",
               "context": 4096, "max_tokens": 400, "timeout": 700}
        config, record = l.config(end), l.path("record")
        base = l.run("--json", "--offline", "--no-memory", log)
        r = l.run("--json", "--no-memory", "--budget-seconds", 700, "--config", config, "--record",
                  record, log, env=key, timeout=760)
        lab.valid("a real model", r.json)
        llm = r.json["llm"]
        print("%s: %s, %s tokens in, %s out, %.1f s: %s" % (
            llm.get("model"), llm.get("cause"), llm.get("tokens_in"), llm.get("tokens_out"),
            llm["seconds"], llm["error"]))
        if not llm.get("tokens_in") or llm["tokens_in"] > 2 * (4096 - 400):
            lab.fault("it did not answer, or the prompt does not fit: %s", llm)
        if llm["decided"] != llm["grounded"] and llm.get("cause") not in ("unknown", "none"):
            lab.fault("decided without proof, or the other way round: %s", llm)
        if not llm["decided"]:
            lab.same("a real model", lab.decision(base.json), lab.decision(r.json))
        elif r.json["evidence"][0]["text"] not in JOB:
            lab.fault("evidence that is not in the log: %s", r.json["evidence"][0])
        again = l.run("--json", "--no-memory", "--config", config, "--replay", record, log)
        lab.same("replayed", lab.decision(r.json), lab.decision(again.json))
        wrong = l.run("--json", "--no-memory", "--config", config, log, env={"LAB_KEY": "wrong"})
        lab.same("a wrong key", lab.decision(base.json), lab.decision(wrong.json))
        if "401" not in (wrong.json["llm"]["error"] or ""):
            lab.fault("a wrong key: %s", wrong.json["llm"])
    lab.finish()


main()
