"""validate.py SCHEMA FILE COUNT: each line of FILE is JSON that the schema accepts."""
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
    names = [f["name"] for f in report["input"]["files"][:1]]
    for e in validator.iter_errors(report):
        print("%s: %s: %s" % (names, "/".join(str(p) for p in e.absolute_path), e.message[:300]))
        faults += 1
sys.exit(1 if faults else 0)
