"""doctor.py DIAGNOSE SERVER: `diagnose doctor` asks each endpoint, and says in words what is wrong.

An endpoint that does not work breaks nothing: the status is 0, and each other row is there.
"""
import json
import shutil
import sys

import jsonschema

import lab

SCHEMA = json.loads((lab.SOURCE / "engine/doc/doctor.schema.json").read_text())


def rows(r, name="endpoint"):
    return [c for c in (r.json or {"checks": []})["checks"] if c["name"] == name]


def main():
    with lab.Lab(sys.argv[1]) as l:
        fake, good = lab.Fake(sys.argv[2]), lab.Model(lambda _: {"status": "ready"})
        secret = {"url": fake.url("401"), "api_key_env": "LAB_KEY", "timeout": 3}
        kinds = [
            ("good", good.url, "ok", ["obedient-1", "100 tokens in"]),
            ("another model", {"url": fake.url(), "model": "nope"}, "worse",
             ["nope is not in the server's list", "correct model"]),
            ("a small context", {"url": fake.url(), "model": "fake-small"}, "worse",
             ["context of 2048 tokens is too small"]),
            ("a small context, as configured", {"url": fake.url("context"), "model": "fake-1"},
             "worse", []),
            ("a wrong key", secret, "worse", ["401"]),
            ("no such model", fake.url("404"), "worse", ["no such address or model"]),
            ("nobody", "http://127.0.0.1:9/v1", "worse", ["refused", "is the server running"]),
            ("a page", fake.url("html"), "worse", ["a web page"]),
            ("hangs", {"url": fake.url("hang"), "timeout": 2}, "worse", ["within 2 seconds"]),
            ("TLS where there is none", fake.url(scheme="https"), "worse", []),
        ]

        def one(what, end, health, words):
            config = l.config(end)
            r = l.run("doctor", "--json", "--config", config, env={"LAB_KEY": "lab-key-98765432"})
            try:
                jsonschema.validate(r.json, SCHEMA)
            except jsonschema.ValidationError as e:
                lab.fault("%s: %s", what, e.message)
            found = rows(r)
            text = "\n".join(c["text"] for c in found)
            if r.status or not found or r.err:
                lab.fault("%s: status %d, %s %s", what, r.status, r.out, r.err)
            if health not in [c["health"] for c in found] or any(
                    c["health"] == "broken" for c in found):
                lab.fault("%s: not %s: %s", what, health, found)
            for w in words:
                if w not in text:
                    lab.fault("%s: %r is not said: %s", what, w, text)
            if "lab-key" in r.out or r.seconds > 20 * lab.SLOW:
                lab.fault("%s: a key is told, or it took long (%.0f s): %s", what, r.seconds, text)

        lab.together(one, kinds, 4)
        sent = len(good.bodies)
        r = l.run("doctor", "--offline", "--json", "--config", l.config(good.url))
        if len(good.bodies) != sent or "--offline" not in rows(r)[0]["text"]:
            lab.fault("asked with --offline: %s", r.out)
        r = l.run("doctor", "--json")
        if len(rows(r)) != 1 or "none is configured" not in rows(r)[0]["text"]:
            lab.fault("without an endpoint: %s", r.out)
        data = l.path("data")
        data.mkdir()
        for name in ("rules", "embed", "corpus"):
            (data / name).symlink_to(lab.SOURCE / name)
        shutil.copytree(lab.SOURCE / "prompts", data / "prompts")
        prompt = data / "prompts/diagnose.md"
        text = prompt.read_text()
        for what, broken in (("missing", None), ("an input that is not used",
                                                text.replace("inputs: [", "inputs: [other, "))):
            prompt.unlink() if broken is None else prompt.write_text(broken)
            r = l.run("doctor", "--json", env={"FAULTLINE_DATA": str(data)})
            if r.status or [c["health"] for c in rows(r, "prompts")] != ["worse"] or \
                    "diagnose.md" not in rows(r, "prompts")[0]["text"]:
                lab.fault("a prompt that is %s: %s", what, r.out)
        good.close()
        fake.close()
    lab.finish()


main()
