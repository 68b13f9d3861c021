# SPDX-License-Identifier: Apache-2.0
"""How fast the UDP carrier is when the line is not: both proxies on this machine's cores, 1500-byte packets over
virtual Ethernet, sealed and paced at 10 Gbit/s. Source and sink use the same cores, so what one core could send or
receive follows from the CPU time of each daemon."""

import conditions
import features
import loads
from figures import Row, at_least
from lab import SERVER, Lab, until
from pair import Pair
from usage import Cpu

SECONDS = 10.0


def run(bench):
    seconds = 2.0 if bench.quick else SECONDS
    with Lab() as lab:
        sink = loads.Server(lab, "sink")
        pair = Pair(lab, both={"features": {**features.TCP_ONLY, "transport": "udp"}, "log": {"level": "warn"}})
        for site in pair.sites:
            site.settings["peer"][0]["rate"] = "10gbit"
        with pair:
            for site in pair.sites:
                until(lambda: site.link()["carrier"] == "udp", 10, f"{site.name} sends on udp")
            loads.transfer(lab, SERVER, sink.port, seconds=1.0)
            speed, cost = [], {"sent": [], "received": []}
            for _ in range(bench.times(5, quick=1)):
                with Cpu(*(site.process.pid for site in pair.sites)) as used:
                    streams = loads.transfer(lab, SERVER, sink.port, seconds=seconds)
                speed.append(streams[0].bits_per_second / 1e9)
                for name, site in zip(cost, pair.sites):
                    cost[name].append(used.per_gb(site.process.pid, streams[0].bytes))
            udp = pair.branch.link()["udp"]
            where = conditions.of_lab(lab)
            bench.report(Row("UDP over virtual Ethernet: goodput", "Gbit/s", speed, conditions=where,
                             note=f"lost {udp['packets_lost']} of {udp['packets_sent']}; {features.reasons(pair.branch)}"))
            for name, goal in (("sent", 3.0), ("received", 2.5)):
                each = [f"{value:.2f}" for value in sorted(cost[name])]
                bench.report(Row(f"UDP over virtual Ethernet: {name} by one core", "Gbit/s",
                                 [8 / value for value in cost[name]], at_least(goal), conditions=where,
                                 note=f"CPU seconds per GB {', '.join(each)}"))
