# SPDX-License-Identifier: Apache-2.0
"""How exact the measuring programs are: longhaul-probe on three lines whose capacity and delay are configured, and
longhaul-ttcp beside iperf3 on the same line. Lateness of this machine's processes counts as the programs' error."""

import json

import conditions
import iperf
from figures import SHARE, Row, at_most
from hops import PROBE, SERVER as PROBED, SERVER6 as PROBED6, Hops
from lab import Lab
from ttcp_test import Receiver, sweep

LINES = (8e6, 1.0), (4e6, 3.0), (5e6, 0.5)  # bits per second, ms one way
# In IPv6 answers carry up to 1280 bytes, which leaves few sizes to tell the ways there and back apart.
WAYS = {"UDP": (PROBED, "--sizes", "20", "--probes", "6"),
        "ICMP": (PROBED, "--by", "icmp", "--sizes", "20", "--probes", "6"),
        "TCP": (PROBED, "--by", "tcp", "--sizes", "20", "--probes", "6"),
        "UDP over IPv6": (PROBED6, "--symmetric", "--sizes", "12", "--probes", "5")}


def run(bench):
    for name, words in WAYS.items():
        if bench.wants(f"path {name}"):
            path(bench, name, words)
    for name, measure in (("TCP", over_tcp), ("UDP", over_udp)):
        if bench.wants(f"ttcp {name}"):
            beside_iperf3(bench, name, measure)


def path(bench, name, words):
    """The worst of three lines, each time."""
    capacities, delays = [], []
    with Hops(*(f"{rate / 1e6:g}mbit delay={delay:g}ms" for rate, delay in LINES)) as hops:
        for _ in range(bench.times(5)):
            links = json.loads(hops.run("client", PROBE, "path", "--json", *words))["links"]
            capacities.append(max(abs(link["capacity"]["bps"] / rate - 1) for link, (rate, _) in zip(links, LINES)))
            delays.append(max(abs(link["delay_ms"] - delay) for link, (_, delay) in zip(links, LINES)))
    bench.report(Row(f"probe path by {name}: error of the capacity", SHARE, capacities, at_most(0.05)))
    bench.report(Row(f"probe path by {name}: error of the delay", "ms", delays, at_most(0.5)))


def over_tcp(lab, other, seconds):
    report, _ = sweep(lab, "-S", "8192", "--kinds", "tcp", "-N", 1, "-L", "1MiB", "--min-time", seconds)
    return 1e6 * report["rows"][0]["mbit_per_second"], other.received_bits_per_second(seconds=seconds)


def over_udp(lab, other, seconds):
    """More than the line takes: what arrives is the line's rate."""
    report, _ = sweep(lab, "-S", "1024", "--kinds", "udp", "-N", 1, "--min-time", seconds, "-L", "1MiB", "--rate", "30mbit")
    theirs = other.run("--udp", "--bitrate", "30M", "--length", 1024, seconds=seconds)["end"]["sum"]
    return 1e6 * report["rows"][0]["mbit_per_second"], theirs["bits_per_second"] * (1 - theirs["lost_percent"] / 100)


def beside_iperf3(bench, name, measure):
    differences, ours, theirs = [], [], []
    with Lab("20mbit,10") as lab:
        Receiver(lab)
        other = iperf.Iperf3(lab)
        for _ in range(bench.times(5)):
            one, two = measure(lab, other, 2 if bench.quick else 5)
            ours.append(one / 1e6)
            theirs.append(two / 1e6)
            differences.append(abs(one / two - 1))
        where = conditions.of_lab(lab)
    bench.report(Row(f"ttcp, {name}, 20 Mbit/s", "Mbit/s", ours, beside=theirs, beside_name="iperf3", conditions=where))
    bench.report(Row(f"ttcp, {name}: difference from iperf3", SHARE, differences, at_most(0.05), conditions=where))
