# SPDX-License-Identifier: Apache-2.0
"""A message of 200 bytes every 20 ms beside a bulk transfer, over a line that loses 5 % each way: how long after it
was sent each message was read, in order, at the other end; with repairs and without. Both ends read one clock."""

import contextlib
import os
import socket
import statistics
import struct
import threading
import time

import conditions
import loads
from figures import Row, at_most
from lab import SERVER, until
from lossy_transfer import OC1, lossy_lab, on_udp, udp_pair

BYTES, EVERY_SECONDS = 200, 0.02
ROUND_TRIP_MS, LOSS = 100, 0.05
WARM_MESSAGES = 250  # until the loss is known
IN_TIME_MS = 25
HEAD = struct.Struct("!QQ")  # when it was sent, and its number


def run(bench):
    seconds = 20 if bench.quick else 120
    for beside in ("bulk", "nothing"):
        for fec in ("adaptive", "off"):
            if bench.wants(f"messages beside {beside} fec {fec}"):
                measure(bench, beside, fec, seconds)


def measure(bench, beside, fec, seconds):
    late, later, medians, behind = [], [], [], 0
    for seed in range(1, bench.times(3) + 1):
        with lossy_lab(OC1, ROUND_TRIP_MS, LOSS, seed=seed) as lab:
            sink = loads.Server(lab, "sink")
            with udp_pair(lab, f"{OC1 / 1e6:g}mbit", fec) as pair, contextlib.ExitStack() as stack:
                on_udp(pair)
                if beside == "bulk":
                    bulk = threading.Thread(target=loads.transfer, args=(lab, SERVER, sink.port),
                                            kwargs={"seconds": seconds + 10})
                    bulk.start()
                    stack.callback(bulk.join)
                    until(lambda: pair.branch.link()["udp"]["packets_sent"] > 10_000, 20, "the bulk transfer runs")
                delays = sorted(messages(lab, int(seconds / EVERY_SECONDS)))
            where = conditions.of_lab(lab)
        # Most packets are not lost: what they take is what the line takes.
        medians.append(statistics.median(delays))
        late.append(delays[int(0.99 * len(delays))] - medians[-1])
        later.append(delays[int(0.999 * len(delays))] - medians[-1])
        behind += sum(delay > medians[-1] + IN_TIME_MS for delay in delays)
    what = f"200 B every 20 ms beside {beside}, 5 %, 100 ms, rate configured, fec {fec}: later than the median"
    note = f"median {statistics.median(medians):.1f} ms; {behind} of {len(delays) * len(late):,} later than {IN_TIME_MS} ms"
    goals = (at_most(IN_TIME_MS), at_most(ROUND_TRIP_MS)) if (beside, fec) == ("bulk", "adaptive") else (None, None)
    bench.report(Row(f"{what}, 99 of 100", "ms", late, goals[0], note=note, conditions=where))
    bench.report(Row(f"{what}, 999 of 1,000", "ms", later, goals[1], note=note, conditions=where))


def messages(lab, count):
    """Milliseconds from writing to reading, of each after the first ones."""
    with lab.inside("server"):
        listener = socket.create_server((SERVER, 0))
    with lab.inside("client"):
        sender = socket.socket()
    delays = []

    def read():
        taker, _ = listener.accept()
        with taker, taker.makefile("rb", buffering=0) as stream:
            waiting = b""
            while piece := stream.read(64 * 1024):
                now = time.monotonic_ns()
                waiting += piece
                while len(waiting) >= BYTES:
                    sent, number = HEAD.unpack_from(waiting)
                    if number != len(delays):
                        raise AssertionError(f"message {number} came in the place of {len(delays)}")
                    delays.append((now - sent) / 1e6)
                    waiting = waiting[BYTES:]

    with listener, sender:
        reader = threading.Thread(target=read)
        reader.start()
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sender.connect(listener.getsockname())
        due = time.monotonic()
        for number in range(count):
            sender.sendall(HEAD.pack(time.monotonic_ns(), number) + os.urandom(BYTES - HEAD.size))
            due += EVERY_SECONDS
            time.sleep(max(0, due - time.monotonic()))
        sender.shutdown(socket.SHUT_WR)
        reader.join(60)
    if len(delays) != count:
        raise AssertionError(f"{len(delays)} of {count} messages came")
    return delays[WARM_MESSAGES:]
