# SPDX-License-Identifier: Apache-2.0
"""How fast the pair is when there is no line: source, both proxies with TLS between them, and sink, all over loopback
on this machine's cores, by an explicit forward. Beside it the same source and sink without a pair."""

import conditions
import loads
from figures import Row, at_most
from lab import BRANCH, SERVER
from loopback import Loopback, forwarding_pair, forwards
from usage import Cpu

SECONDS = 10.0


def run(bench):
    seconds = 2.0 if bench.quick else SECONDS
    times = bench.times(5, quick=1)
    with Loopback() as lab:
        sink = loads.Server(lab, "sink")
        where = conditions.of_lab(lab)
        with forwarding_pair(lab, [sink.port]) as pair:
            port = forwards([sink.port])[0]
            pids = {site.name: site.process.pid for site in pair.sites}
            loads.transfer(lab, BRANCH, port, seconds=1.0)
            for flows in (1, 8):
                if not bench.wants(f"{flows} flow"):
                    continue
                speed, direct, cost, busy = [], [], {name: [] for name in pids}, 0.0
                for _ in range(times):  # in turn, so that what else the machine does meets both
                    direct.append(gigabits(loads.transfer(lab, SERVER, sink.port, seconds=seconds / 2, flows=flows)))
                    with Cpu(*pids.values()) as used:
                        streams = loads.transfer(lab, BRANCH, port, seconds=seconds, flows=flows)
                    speed.append(gigabits(streams))
                    busy = used.busy
                    for name, pid in pids.items():
                        cost[name].append(used.per_gb(pid, loads.together(streams)[0]))
                label = f"loopback, TLS, {flows} flow{'s' if flows > 1 else ''}"
                bench.report(Row(f"{label}: goodput", "Gbit/s", speed, beside=direct, beside_name="direct",
                                 conditions=where, note=f"cores busy with anything {100 * busy:.0f} %"))
                for name, found in cost.items():
                    bench.report(Row(f"{label}: CPU seconds per GB, {name}", "s/GB", found, at_most(0.8),
                                     conditions=where))


def gigabits(streams):
    size, seconds = loads.together(streams)
    return 8 * size / seconds / 1e9
