# SPDX-License-Identifier: Apache-2.0
"""CPU seconds per GB at a line of 1 Gbit/s and 1 ms without offloads, where the kernel pays for every packet:
through the pair with TLS over TCP, through the pair over UDP, and relayed by the branch's proxy, bypassing the link. And
at 51.84 Mbit/s and 100 ms with all default features, for random bytes, which no dictionary and no compression shortens."""

import conditions
import features
import loads
from figures import Row, at_most
from lab import SERVER, Lab
from lossy_transfer import on_udp
from pair import Pair
from usage import Cpu

SECONDS = 20.0


def run(bench):
    if any(bench.wants(word) for word in ("TLS", "relayed", "UDP")):
        at_a_gigabit(bench)
    if bench.wants("OC-1 everything"):
        everything(bench)


def everything(bench):
    with Lab("51.84mbit,100") as lab, Pair(lab, both={"log": {"level": "warn"}}) as pair:
        sink = loads.Server(lab, "sink")
        on_udp(pair)
        pids = [site.process.pid for site in pair.sites]
        loads.transfer(lab, SERVER, sink.port, seconds=5.0)
        costs, note = [], ""
        for _ in range(bench.times(3, quick=1)):
            with Cpu(*pids) as used:
                stream = loads.transfer(lab, SERVER, sink.port, seconds=5.0 if bench.quick else 30.0)[0]
            costs.append(sum(used.per_gb(pid, stream.bytes) for pid in pids))
            note = f"{stream.bits_per_second / 1e6:.1f} Mbit/s; " + ", ".join(
                f"{site.name} {used.per_gb(site.process.pid, stream.bytes):.1f}" for site in pair.sites)
        bench.report(Row("OC-1 100 ms, everything on: CPU seconds per GB, both proxies", "s/GB", costs, at_most(20.0), note=note,
                         conditions=conditions.of_lab(lab)))


def at_a_gigabit(bench):
    seconds = 3.0 if bench.quick else SECONDS
    with Lab("1gbit,1") as lab:
        sink = loads.Server(lab, "sink")
        where = conditions.of_lab(lab)

        def measure(*pids):
            with Cpu(*pids) as used:
                streams = loads.transfer(lab, SERVER, sink.port, seconds=seconds)
            return streams[0], used

        def rows(label, goal, pair):
            pids = [site.process.pid for site in pair.sites]
            measure(*pids)  # warm
            found = [measure(*pids) for _ in range(times)]
            cost = [sum(used.per_gb(pid, stream.bytes) for pid in pids) for stream, used in found]
            stream, used = found[-1]
            note = ", ".join(f"{site.name} {used.per_gb(site.process.pid, stream.bytes):.2f}" for site in pair.sites)
            bench.report(Row(f"1 Gbit/s 1 ms, {label}: CPU seconds per GB, both proxies", "s/GB", cost, goal,
                             note=f"{note}; cores busy with anything {100 * used.busy:.0f} %", conditions=where))
            bench.report(Row(f"1 Gbit/s 1 ms, {label}: goodput", "Mbit/s",
                             [stream.bits_per_second / 1e6 for stream, _ in found], beside=bare, conditions=where,
                             note=features.reasons(pair.branch)))

        times = bench.times(3, quick=1)
        bare = [measure()[0].bits_per_second / 1e6 for _ in range(times)]
        with Pair(lab, both={"features": features.TCP_ONLY, "log": {"level": "warn"}}) as pair:
            if bench.wants("TLS"):
                rows("TLS", at_most(4.0), pair)
            if bench.wants("relayed"):
                pair.branch.set(**features.RELAYED)
                rows("relayed past the link", at_most(3.0), pair)
                pair.branch.set(**features.TCP_ONLY)
        if bench.wants("UDP"):
            for site in pair.sites:
                site.settings["features"]["transport"] = "udp"
                site.settings["peer"][0]["rate"] = "1gbit"
            with pair:
                on_udp(pair)
                rows("UDP", at_most(7.0), pair)
