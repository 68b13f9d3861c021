# SPDX-License-Identifier: Apache-2.0
"""Memory of both proxies while many flows are full and have no reader: at the servers, then at the clients. And the
speed of one more flow meanwhile, whose reader does read."""

import time

import conditions
import loads
from figures import Row, at_most
from lab import BRANCH
from loopback import Loopback, forwarding_pair, forwards
from relay_loopback import gigabits
from usage import memory

FLOWS = 1000
CAP_MIB = 64
SOCKET_BUFFER_BYTES = 256 << 10  # so that the kernel's own buffers do not hold it all
MIB = 1 << 20


def run(bench):
    flows = 200 if bench.quick else FLOWS
    for who in ("servers", "clients"):
        if bench.wants(f"stalled {who}"):
            with Loopback(SOCKET_BUFFER_BYTES) as lab:
                stalled(bench, lab, who, flows, 5 if bench.quick else 30)


def left_after(site, seconds):
    """How many flows are there still, when there are none or the time is over."""
    deadline = time.monotonic() + seconds
    while (live := site.status()["flows"]["live"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return live


def stalled(bench, lab, who, flows, seconds):
    server = loads.Server(lab, "stall", ports=4, sends=int(who == "clients"))
    sink = loads.Server(lab, "sink")
    ports = [*server.ports, sink.port]
    with forwarding_pair(lab, ports, limits={"memory": f"{CAP_MIB}MiB"}) as pair:
        listening = forwards(ports)

        def live_flow():
            return gigabits(loads.transfer(lab, BRANCH, listening[-1], seconds=2.0))

        pids = {site.name: site.process.pid for site in pair.sites}
        base = {name: memory(pid)["rss"] for name, pid in pids.items()}  # before any flow
        alone = [live_flow() for _ in range(bench.times(3, quick=1))]
        pair.branch.wait_flows(0)
        most, reported, granted = (dict.fromkeys(pids, 0) for _ in range(3))
        with loads.Held(lab, to=BRANCH, ports=listening[:-1], flows=flows,
                        fill=seconds if who == "servers" else 0) as held:
            held.wait("held", 60)

            def look():
                for site in pair.sites:
                    most[site.name] = max(most[site.name], memory(pids[site.name])["rss"])
                    status = site.status()
                    reported[site.name] = max(reported[site.name], status["memory"]["bytes"])
                    granted[site.name] = max(granted[site.name], status["links"][0]["credit_granted"])

            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and not (who == "servers" and held.find("filled")):
                look()
                time.sleep(0.1)
            live = {site.name: site.status()["flows"]["live"] for site in pair.sites}
            beside = [live_flow() for _ in range(bench.times(3, quick=1))]
            look()
            where = conditions.of_lab(lab)
        left = {site.name: left_after(site, 20.0) for site in pair.sites}
        for name in pids:
            bench.report(Row(f"{flows} flows, stalled {who}: memory above base, {name}", "MiB",
                             [(most[name] - base[name]) / MIB], at_most(CAP_MIB), conditions=where,
                             note=f"base {base[name] / MIB:.1f}, after {memory(pids[name])['rss'] / MIB:.1f} MiB; cap "
                                  f"{CAP_MIB} MiB; it counted {reported[name] / MIB:.1f}, granted "
                                  f"{granted[name] / MIB:.1f} MiB; live {live[name]}"))
        bench.report(Row(f"{flows} flows, stalled {who}: flows left 20 s after their clients' resets", "flows",
                         [max(left.values())], at_most(0), conditions=where, note=str(left)))
        bench.report(Row(f"{flows} flows, stalled {who}: goodput of one more flow", "Gbit/s", beside, beside=alone,
                         beside_name="alone", conditions=where))
