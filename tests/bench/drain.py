"""drain.py masked|plain LOG: lines a second of Drain3, run by tests/bench/run in a virtual
environment of its own.

"plain" is its default: no masks, so that a line costs it only the walk through its tree. "masked"
lets it replace colon-separated ids, addresses, hex and decimal numbers first, as its own examples
do and as everybody needs who wants templates of job logs; our folding masks more than that, so this
is the one to compare with. The file is read and decoded before the clock starts.
"""
import logging
import sys
import time

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

EDGES = r"((?<=[^A-Za-z0-9])|^)(%s)((?=[^A-Za-z0-9])|$)"
MASKS = ((r"([0-9a-f]{2,}:){3,}[0-9a-f]{2,}", "ID"), (r"\d{1,3}(\.\d{1,3}){3}", "IP"),
         (r"0x[0-9A-Fa-f]+", "HEX"), (r"[-+]?\d+", "NUM"))


def main():
    logging.disable(logging.CRITICAL)
    config = TemplateMinerConfig()
    if sys.argv[1] == "masked":
        config.masking_instructions = [MaskingInstruction(EDGES % p, name) for p, name in MASKS]
    with open(sys.argv[2], encoding="utf-8", errors="replace", newline="\n") as f:
        lines = f.read().split("\n")
    if lines[-1] == "":
        lines.pop()
    miner = TemplateMiner(config=config)
    began = time.monotonic()
    for line in lines:
        miner.add_log_message(line)
    print("%d lines %.6f seconds %d templates" % (len(lines), time.monotonic() - began,
                                                  len(miner.drain.clusters)))


main()
