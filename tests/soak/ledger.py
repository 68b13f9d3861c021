# SPDX-License-Identifier: Apache-2.0
"""What soak runs have moved and injected so far: one JSON line for each run, so that runs add up and none has to be
long. Leaves moving and injecting to the other modules."""

import collections
import json

Totals = collections.namedtuple("Totals", "runs seconds bytes transfers resets wrong crashes faults commits")


def append(path, run):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="ascii") as file:
        file.write(json.dumps(run, sort_keys=True) + "\n")


def read(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines() if line]


def totals(runs):
    faults = collections.Counter()
    for run in runs:
        faults.update(run["faults"])
    return Totals(len(runs), *(sum(run[key] for run in runs)
                               for key in ("seconds", "bytes", "transfers", "resets", "wrong", "crashes")),
                  dict(faults), sorted({run["commit"] for run in runs}))


def text(runs):
    """For people, and for a README."""
    sums = totals(runs)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(sums.faults.items()))
    return (f"{sums.runs} runs, {sums.seconds / 3600:.1f} h, {sums.bytes / 1e12:.3f} TB in {sums.transfers:,} transfers "
            f"({sums.resets:,} of them cut short by a reset)\n"
            f"{sum(sums.faults.values()):,} faults: {kinds}\n"
            f"{sums.wrong} transfers with wrong bytes or a false end, {sums.crashes} crashes that no fault explains\n"
            f"commits: {', '.join(sums.commits)}")
