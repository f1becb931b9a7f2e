#!/usr/bin/env python3
"""real.py: `diagnose --ask` against a real llama.cpp server, which tests/real/run.sh starts.

The model has 135 million parameters and names no cause. What is held: the program's prompt fits into
its context, the answer has the form, whatever it says is checked, and the rules' answer stands."""
import os
import tempfile

import lab

LINE = "FATAL accelmon: accelerator 5 failed its self test, code 0x1f"
JOB = LINE + "\nsrun: error: node-b03: tasks 8-15: Exited with exit code 1\n"


def small_corpus(folder):
    """The program's data with four incidents in it: a real server takes its time."""
    for name in ("rules", "prompts", "embed"):
        os.symlink(lab.SOURCE / name, os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "corpus/incidents"))
    lines = ["NCCL watchdog caught a collective operation timeout on all ranks",
             "CUDA out of memory while the activations were allocated",
             "No space left on device when the checkpoint was written",
             "no vocabulary file was found for the tokenizer"]
    causes = ["net.nccl_timeout", "gpu.oom", "node.disk_full", "script.file_not_found"]
    with open(os.path.join(folder, "corpus/incidents/four.yaml"), "w") as f:
        f.write("incidents:\n" + "".join(
            "  - id: real-%d\n    cause: %s\n    title: '%s'\n    evidence:\n"
            "      - '%s'\n    explanation: '%s'\n" % (i, c, c, t, t[::-1])
            for i, (t, c) in enumerate(zip(lines, causes))))


def embedding():
    """A real embedding server: what another choice of words means is found."""
    with tempfile.TemporaryDirectory() as folder:
        small_corpus(folder)
        os.environ["FAULTLINE_DATA"] = folder
        with lab.Lab(os.environ["FL_DIAGNOSE"]) as l:
            config = l.file("config.yaml", "memory:\n  embedding: {url: '%s', model: e5, timeout: 60}"
                            "\n" % os.environ["FL_REAL_EMBED"])
            r = l.run("reindex", "-v", "--config", config, timeout=300)
            if r.status or "4 incidents embedded" not in r.out.split("endpoint:")[-1]:
                lab.fault("reindex with a real server: %d %s %s", r.status, r.out, r.err)
            print(r.out.strip())
            r = l.run("doctor", "--config", config)
            if "embedding ok" not in r.out or "384 dimensions" not in r.out:
                lab.fault("doctor with a real server: %s", r.out)
            for query, want in (("disk is full, cannot write the snapshot", "real-2"),
                                ("GPU ran short of VRAM", "real-1")):
                r = l.run("search", "--json", "--floor", 0, "--text", query, "--config", config)
                ids = [n["incident"] for n in (r.json or {"neighbours": []})["neighbours"]]
                if want not in ids[:2] or r.err:
                    lab.fault("%r finds %s: %s", query, ids, r.err)
        del os.environ["FAULTLINE_DATA"]


def main():
    embedding()
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
