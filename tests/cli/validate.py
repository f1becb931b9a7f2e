"""validate.py SCHEMA FILE COUNT: each line of FILE is JSON that the schema accepts. Of a digest also
that its numbers agree: the account's sum, the lines on the page, the budget."""
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1], encoding="utf-8"))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
faults = 0
lines = open(sys.argv[2], "rb").read().decode("utf-8", errors="strict").split("\n")[:-1]
if len(lines) != int(sys.argv[3]):
    print("%d objects, expected %s" % (len(lines), sys.argv[3]))
    faults += 1
for number, line in enumerate(lines, 1):
    report = json.loads(line)
    names = [f["name"] for f in report.get("input", {}).get("files", [])[:1]] or number
    for e in validator.iter_errors(report):
        print("%s: %s: %s" % (names, "/".join(str(p) for p in e.absolute_path), e.message[:300]))
        faults += 1
    if "account" in report:
        a, rows = report["account"], report["lines"]
        parts = [a[k] for k in ("kept", "folded", "dropped", "left_out", "no_room")]
        said = ["%s:%d\t%s" % (x["file"], x["line"], x["text"]) for x in rows]
        page = [x for x in report["text"].split("\n")[:-1] if not x.startswith("#")]
        if sum(parts) != a["lines"] or report["tokens"] > report["budget"]:
            print("%d: %s of %d lines, %d of %d tokens" %
                  (number, parts, a["lines"], report["tokens"], report["budget"]))
            faults += 1
        if len(rows) != a["kept"] or said != page:
            print("%d: %d rows, %d kept, %d on the page; first other one: %s" %
                  (number, len(rows), a["kept"], len(page),
                   [x for x in zip(said, page) if x[0] != x[1]][:1]))
            faults += 1
sys.exit(1 if faults else 0)
