# SPDX-License-Identifier: Apache-2.0
"""User memory of flows that stand idle after one byte each way, and what they cost in CPU while nothing happens.
Kernel memory of their sockets is not in it."""

import time

import conditions
import loads
from figures import Row, at_most
from lab import BRANCH, until
from loopback import Loopback, forwarding_pair, forwards
from usage import Cpu, memory

FLOWS = 10_000


def settled(pid):
    """Memory once it has stopped to change."""
    last = None

    def still():
        nonlocal last
        before, last = last, memory(pid)
        time.sleep(0.5)
        return before and abs(before["pss"] - last["pss"]) < 64 << 10 and last

    return until(still, 30, "memory stands still")


def run(bench):
    flows = 1000 if bench.quick else FLOWS
    watch = 2.0 if bench.quick else 10.0
    with Loopback() as lab:
        echo = loads.Server(lab, "echo", ports=4)
        with forwarding_pair(lab, echo.ports) as pair:
            def hold(count):
                return loads.Held(lab, to=BRANCH, ports=forwards(echo.ports), flows=count, exchange=1)

            with hold(1) as first:  # what the first flow makes once for all is not part of any
                first.wait("held", 30)
            pair.branch.wait_flows(0)
            pair.datacenter.wait_flows(0)
            pids = {site.name: site.process.pid for site in pair.sites}
            before = {name: settled(pid) for name, pid in pids.items()}
            alone = busy(watch, pids)
            with hold(flows) as held:
                held.wait("held", 120)
                during = {name: settled(pid) for name, pid in pids.items()}
                loaded = busy(watch, pids)
                live = {site.name: site.status()["flows"]["live"] for site in pair.sites}
                budget = {site.name: (site.status()["memory"], site.link()["credit_granted"]) for site in pair.sites}
            pair.branch.wait_flows(0, 60)
            pair.datacenter.wait_flows(0, 60)
            after = {name: settled(pid) for name, pid in pids.items()}
            for name in pids:
                each = {key: (during[name][key] - before[name][key]) / flows / 1024 for key in before[name]}
                kept = (after[name]["pss"] - before[name]["pss"]) / (1 << 20)
                bench.report(Row(f"{flows} idle flows: user memory each, {name}", "KiB", [each["pss"]], at_most(8.0),
                                 conditions=conditions.of_lab(lab),
                                 note=f"RSS {each['rss']:.2f}; live {live[name]}; without flows "
                                      f"{before[name]['pss'] / (1 << 20):.1f} MiB, kept after they ended {kept:.1f} "
                                      f"MiB; counted {budget[name][0]}, credit granted {budget[name][1]}"))
                bench.report(Row(f"{flows} idle flows: CPU while nothing happens, {name}", SHARE_OF_A_CORE,
                                 [loaded[name]], beside=[alone[name]], beside_name="no flows",
                                 conditions=conditions.of_lab(lab)))


SHARE_OF_A_CORE = "% of a core"


def busy(seconds, pids):
    with Cpu(*pids.values()) as used:
        time.sleep(seconds)
    return {name: 100 * used.seconds[pid] / used.wall for name, pid in pids.items()}
