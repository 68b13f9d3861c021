# SPDX-License-Identifier: Apache-2.0
"""Preset B: one proxy takes the flow by an explicit forward and relays it to the server, bypassing the link, by
splice if the kernel can. CPU of that proxy per GB, over loopback, and its speed compared with no proxy at all."""

import conditions
import features
import loads
from figures import Row, at_most
from lab import BRANCH, SERVER
from loopback import Loopback, forwarding_pair, forwards
from relay_loopback import gigabits
from usage import Cpu

SECONDS = 10.0


def run(bench):
    seconds = 2.0 if bench.quick else SECONDS
    times = bench.times(5, quick=1)
    with Loopback() as lab:
        sink = loads.Server(lab, "sink")
        where = conditions.of_lab(lab)
        with forwarding_pair(lab, [sink.port], features.RELAYED) as pair:
            port = forwards([sink.port])[0]
            pid = pair.branch.process.pid
            loads.transfer(lab, BRANCH, port, seconds=1.0)
            for flows in (1, 8):
                if not bench.wants(f"{flows} flow"):
                    continue
                speed, direct, cost = [], [], []
                for _ in range(times):
                    direct.append(gigabits(loads.transfer(lab, SERVER, sink.port, seconds=seconds / 2, flows=flows)))
                    with Cpu(pid) as used:
                        streams = loads.transfer(lab, BRANCH, port, seconds=seconds, flows=flows)
                    speed.append(gigabits(streams))
                    cost.append(used.per_gb(pid, loads.together(streams)[0]))
                label = f"relayed past the link, loopback, {flows} flow{'s' if flows > 1 else ''}"
                bench.report(Row(f"{label}: CPU seconds per GB of the one proxy", "s/GB", cost, at_most(0.35),
                                 conditions=where))
                bench.report(Row(f"{label}: goodput", "Gbit/s", speed, beside=direct, beside_name="direct",
                                 conditions=where, note=f"cores busy with anything {100 * used.busy:.0f} %; "
                                                        f"{features.reasons(pair.branch)}"))
