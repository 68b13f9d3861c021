# SPDX-License-Identifier: Apache-2.0
"""What the erasure code costs: source bytes of 1,400-byte symbols for a second of one core's time, with 10 % repairs.
No network; the program is fec/fec_speed.cc."""

import json
import subprocess

from figures import Row, at_least
from lab import BUILD

UNIT = "GB/s"


def run(bench):
    rounds = bench.times(3, quick=1)
    printed = subprocess.run([BUILD / "tests" / "bench" / "fec_speed", str(rounds)], check=True, capture_output=True,
                             text=True).stdout
    cases = {}
    for line in printed.splitlines():
        found = json.loads(line)
        cases.setdefault((found["case"], found["from"]), []).append(found)
    for (case, source), samples in cases.items():
        if not bench.wants(f"{case} {source}"):
            continue
        # The goals are for symbols that the carrier has just handled; from memory a copy alone takes half of the time.
        goals = source == "cache"
        for what, goal in (("encode", 5.0), ("decode at 5 %", 3.0), ("decode all it can", 3.0)):
            if what in samples[0]:
                bench.report(Row(f"FEC {case}, symbols from {source}: {what}", UNIT, [s[what] for s in samples],
                                 at_least(goal) if goals else None))
