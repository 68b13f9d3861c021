# SPDX-License-Identifier: Apache-2.0
"""New connections a second: connect, one byte each way, close, from many client addresses to many server ports. In
transparent mode between namespaces, and by explicit forwards over loopback; beside each the same without a pair."""

import conditions
import features
import loads
from figures import Row, at_least
from lab import BRANCH, SERVER, Lab
from loopback import Loopback, forwarding_pair, forwards
from pair import Pair
from usage import Cpu

SERVER_PORTS = 16
CLIENTS = [f"10.10.1.{number}" for number in range(10, 110)]
AT_ONCE = 128
SECONDS = 10.0


def run(bench):
    seconds = 2.0 if bench.quick else SECONDS
    if bench.wants("transparent"):
        with Lab() as lab:
            for address in CLIENTS:
                lab.run("client", "ip", "address", "add", f"{address}/24", "dev", "eth0")
            transparent(bench, lab, seconds)
    if bench.wants("forwards"):
        with Loopback() as lab:
            explicit(bench, lab, seconds)


def transparent(bench, lab, seconds):
    echo = loads.Server(lab, "echo", ports=SERVER_PORTS)

    def call():
        return loads.run(lab, "connects", seconds + 30, to=SERVER, ports=echo.ports, seconds=seconds,
                         at_once=AT_ONCE, **{"from": CLIENTS})[0]

    times = bench.times(3, quick=1)
    direct = [call() for _ in range(times)]
    with Pair(lab, both={"features": features.TCP_ONLY, "log": {"level": "warn"}}) as pair:
        measure(bench, "transparent", call, pair, direct, conditions.of_lab(lab), times)


def explicit(bench, lab, seconds):
    echo = loads.Server(lab, "echo", ports=SERVER_PORTS)

    def call(to, ports):
        return loads.run(lab, "connects", seconds + 30, to=to, ports=ports, seconds=seconds, at_once=AT_ONCE,
                         **{"from": [f"127.1.0.{number}" for number in range(1, 101)]})[0]

    times = bench.times(3, quick=1)
    direct = [call(SERVER, echo.ports) for _ in range(times)]
    with forwarding_pair(lab, echo.ports) as pair:
        measure(bench, "forwards, loopback", lambda: call(BRANCH, forwards(echo.ports)), pair, direct,
                conditions.of_lab(lab), times)


def measure(bench, label, call, pair, direct, where, times):
    found, costs = [], []
    for _ in range(times):
        with Cpu(*(site.process.pid for site in pair.sites)) as used:
            found.append(call())
        costs.append(sum(used.seconds.values()) / max(found[-1]["done"], 1) * 1e6)
        pair.branch.wait_flows(0, 60)
    last = found[-1]
    bench.report(Row(f"new connections, {label}", "/s", [one["done"] / one["seconds"] for one in found],
                     at_least(5000), [one["done"] / one["seconds"] for one in direct], beside_name="direct",
                     conditions=where,
                     note=f"{AT_ONCE} at once; p50 {last['p50_us'] / 1e3:.1f} ms, p99 {last['p99_us'] / 1e3:.1f} ms, "
                          f"failed {sum(one['failed'] for one in found)} (direct "
                          f"{sum(one['failed'] for one in direct)}); CPU of both proxies {costs[-1]:.0f} µs each; "
                          f"{features.reasons(pair.branch)}"))
