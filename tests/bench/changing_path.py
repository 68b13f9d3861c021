# SPDX-License-Identifier: Apache-2.0
"""Bulk while the line's round trip changes, as when a route fails over: what arrives at the server in each second after
the change, and what share of the new line that is from three of its round trips and half a second on. The same over the
TCP carrier with its default, BBR, where the first three seconds do not count, and beside it the bare line with BBR."""

import concurrent.futures
import time

import conditions
import loads
from figures import SHARE, Row, at_least
from lab import SERVER, Lab
from lossy_transfer import OC1, TCP_SHARE, UDP_SHARE, on_udp, udp_pair

STEPS_MS = ((20, 120), (50, 600), (10, 40), (100, 150), (120, 20))
TCP_STEPS_MS = ((0, 100), *STEPS_MS)
BEFORE_SECONDS, AFTER_SECONDS = 8, 20
TCP_SKIPPED_SECONDS = 3


def run(bench):
    for before, after in STEPS_MS:
        for configured in (True, False):
            if bench.wants(label := f"OC-1 {before} to {after} ms {'configured' if configured else 'measured'}"):
                change(bench, label, before, after, configured)
    for before, after in TCP_STEPS_MS:
        if bench.wants(label := f"OC-1 {before} to {after} ms TCP"):
            change_over_tcp(bench, label, before, after)


def line_of(before, seed, cc="cubic"):
    return Lab(f"{OC1 / 1e6:g}mbit,{before}", options=["--seed", str(seed), "--cc", cc])


def change(bench, label, before, after, configured):
    bound = OC1 * UDP_SHARE
    shares, least, note = [], [], ""
    where = ""
    for seed in range(1, 1 + bench.times(5, quick=1)):
        with line_of(before, seed) as lab:
            sink = loads.Server(lab, "sink")
            where = conditions.of_lab(lab)
            with udp_pair(lab, f"{OC1 / 1e6:g}mbit" if configured else None) as pair:
                on_udp(pair)
                rates = each_second(lab, sink, after, given_by(pair))
        shares.append(mean(rates, 3 * after / 1000 + 0.5) * 8 / bound)
        least.append(min(rate for _, rate in rates) * 8 / bound)
        note = written(rates)
    bench.report(Row(f"{label}: share of the bound from 3 round trips + 0.5 s on", SHARE, shares, at_least(0.9), conditions=where,
                     note=note))
    bench.report(Row(f"{label}: the least second", SHARE, least, at_least(0.01), conditions=where))


def change_over_tcp(bench, label, before, after):
    bound = OC1 * TCP_SHARE
    shares, bare, note, where = [], [], "", ""
    for seed in range(1, 1 + bench.times(5, quick=1)):
        with line_of(before, seed, "bbr") as lab:
            sink = loads.Server(lab, "sink")
            bare.append(mean(each_second(lab, sink, after, lambda: arrived(lab)), TCP_SKIPPED_SECONDS) * 8 / bound)
        with line_of(before, seed) as lab:
            sink = loads.Server(lab, "sink")
            where = conditions.of_lab(lab)
            with udp_pair(lab, None, transport="tcp") as pair:
                rates = each_second(lab, sink, after, given_by(pair))
        shares.append(mean(rates, TCP_SKIPPED_SECONDS) * 8 / bound)
        note = written(rates)
    bench.report(Row(f"{label}: share of the bound from {TCP_SKIPPED_SECONDS} s on", SHARE, shares, at_least(0.8), bare,
                     "bare BBR", conditions=where, note=note))


def mean(rates, skipped):
    counted = [rate for at, rate in rates if at - 1 >= skipped]
    return sum(counted) / len(counted)


def written(rates):
    return "Mbit/s in each second " + " ".join(f"{rate * 8 / 1e6:.1f}" for _, rate in rates)


def given_by(pair):
    return lambda: pair.datacenter.status()["flows"]["bytes"]["lan_out"]


def arrived(lab):
    """Bytes of TCP's payload that have left the bare line, without those that were sent twice: there are hardly any."""
    return lab.stats()["a_to_b"]["ip_bytes_out"] * TCP_SHARE


def each_second(lab, sink, after, given):
    """[(seconds since the change, bytes a second that were given to the server since the entry before)]."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stream = pool.submit(loads.transfer, lab, SERVER, sink.port, 0, BEFORE_SECONDS + AFTER_SECONDS + 2)
        time.sleep(BEFORE_SECONDS)
        lab.link(f"{OC1 / 1e6:g}mbit,{after}")
        began = last_at = time.monotonic()
        last, found = given(), []
        for second in range(1, AFTER_SECONDS + 1):
            time.sleep(max(0.0, began + second - time.monotonic()))
            now, at = given(), time.monotonic()
            found.append((at - began, (now - last) / (at - last_at)))
            last, last_at = now, at
        stream.result()  # every byte was compared
    return found
