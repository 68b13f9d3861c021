# SPDX-License-Identifier: Apache-2.0
"""A link whose rate is configured to that of the line, beside one and four bare CUBIC flows on the same line, with queues of
half a round trip to two: its share of what all of them carry, as a part of an even share. Client to server."""

import concurrent.futures
import re
import time

import conditions
import loads
from figures import SHARE, Row, at_least, at_most
from lab import SERVER, Lab
from lossy_transfer import OC1, lossy_lab, on_udp, udp_pair

ROUND_TRIP_MS = 40
QUEUES_BDP = (0.5, 1, 2)
OTHERS = (1, 4)
BEFORE_SECONDS = 5  # in which the CUBIC flows have the line to themselves
SKIPPED_SECONDS = 20  # from the start of the link's flow on: shares are those of what follows
COUNTED_SECONDS = 40
LEAST, MOST = 0.75, 1.25


def run(bench):
    for others in OTHERS:
        for queue in QUEUES_BDP:
            for configured in (True, False):
                law = "configured" if configured else "measured"
                label = f"{law}, {others} CUBIC, queue {queue:g} bdp"
                if bench.wants(label.replace(",", "")):
                    share(bench, label, others, queue, configured)


def share(bench, label, others, queue, configured):
    skipped, counted = (4, 8) if bench.quick else (SKIPPED_SECONDS, COUNTED_SECONDS)
    parts, note, where = [], "", ""
    for seed in range(1, 1 + bench.times(3, quick=1)):
        with lossy_lab(OC1, ROUND_TRIP_MS, 0, (f"queue={queue:g}bdp",), seed) as lab:
            where = conditions.of_lab(lab)
            with udp_pair(lab, f"{OC1 / 1e6:g}mbit" if configured else None) as pair:
                on_udp(pair)
                ours, theirs = carried(lab, pair, others, skipped, counted)
        parts.append(ours / (ours + sum(theirs)) * (1 + others))
        note = f"Mbit/s: link {ours / 1e6:.1f}, CUBIC " + ", ".join(f"{rate / 1e6:.1f}" for rate in sorted(theirs))
    for goal in at_least(LEAST), at_most(MOST):
        bench.report(Row(f"OC-1 {ROUND_TRIP_MS} ms, {label}: part of an even share", SHARE, parts, goal, conditions=where,
                         note=note))


def carried(lab, pair, others, skipped, counted):
    """Bits a second of the link and of each other flow, in the time that counts."""
    bare, linked = loads.Server(lab, "sink"), loads.Server(lab, "sink")
    seconds = skipped + counted + 2
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        # Flows that a proxy's own host opens are not intercepted.
        cubic = pool.submit(loads.transfer, lab, SERVER, bare.port, seconds=BEFORE_SECONDS + seconds, flows=others, node="branch")
        time.sleep(BEFORE_SECONDS)
        ours = pool.submit(loads.transfer, lab, SERVER, linked.port, seconds=seconds)
        time.sleep(skipped)
        before = looked(lab, pair, bare.port)
        time.sleep(counted)
        after = looked(lab, pair, bare.port)
        ours.result(), cubic.result()  # every byte was compared
    seconds = after[0] - before[0]
    return 8 * (after[1] - before[1]) / seconds, [8 * (later - given) / seconds for given, later in zip(before[2], after[2])]


def looked(lab, pair, port):
    """When; the bytes that the far side has given to the server; those that the receivers of the CUBIC flows have acknowledged."""
    told = lab.run("branch", "ss", "-tinHO", "dst", SERVER, "and", "dport", f"= :{port}")
    acknowledged = {found[1]: int(found[2]) for found in re.finditer(r"[\d.]+:(\d+) +[\d.]+:\d+.*?bytes_acked:(\d+)", told)}
    return time.monotonic(), given(pair), [acknowledged[port] for port in sorted(acknowledged)]


def given(pair):
    return pair.datacenter.status()["flows"]["bytes"]["lan_out"]

