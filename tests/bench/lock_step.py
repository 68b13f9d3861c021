# SPDX-License-Identifier: Apache-2.0
"""A client that waits for each block of 64 KiB of random bytes, on OC-1 with no delay of its own: what a block costs on
the bare line, through the pair as a relay, and with each feature of transport and reduction that may cost time."""

import conditions
import features
import loads
from figures import Row, at_most
from lab import SERVER, Lab
from pair import Pair

SIZE = 64 * 1024
# By what is on; "T" is all of it.
SETTINGS = {"relay (B)": features.RELAYED, "transport alone": features.NOT_REDUCED,
            "compression": {**features.NOT_REDUCED, "compression": True},
            "memory dictionary": {**features.NOT_REDUCED, "dedup_memory": True},
            "T": features.REDUCED}


def run(bench):
    count = 50 if bench.quick else 400
    with Lab("51.84mbit,0") as lab:
        server = loads.Server(lab, "blocks")
        pair = Pair(lab, both={"log": {"level": "warn"}})

        def block(blocks=count):
            return loads.run(lab, "lock_step", 60, to=SERVER, port=server.port, size=SIZE, count=blocks, warm=40)[0]

        bare, found = [], {name: [] for name in SETTINGS if bench.wants(f"lock step {name}")}
        reasons = ""
        for _ in range(bench.times(3)):
            bare.append(block())
            with pair:
                for name in found:
                    pair.branch.set(**SETTINGS[name])
                    block(1)  # without fast connects a server's first connection is not taken
                    found[name].append(block())
                reasons = features.reasons(pair.branch)
        for name, samples in found.items():
            bench.report(Row(f"64 KiB after the other, OC-1 0 ms, {name}: a block on average", "ms",
                             [sample["mean_us"] / 1e3 for sample in samples], None,
                             [sample["mean_us"] / 1e3 for sample in bare], beside_goal=at_most(1 / 0.98),
                             note=f"median {samples[-1]['p50_us'] / 1e3:.2f} (bare {bare[-1]['p50_us'] / 1e3:.2f}), "
                                  f"99 of 100 {samples[-1]['p99_us'] / 1e3:.2f} ({bare[-1]['p99_us'] / 1e3:.2f}); "
                                  f"all settings' {reasons}",
                             conditions=conditions.of_lab(lab)))
