# SPDX-License-Identifier: Apache-2.0
"""Long transfers of incompressible bytes, client to server, over lines without loss: the bare line and then the
pair in the same lab, ends and link with the same congestion control. Shares are of what TCP's payload can be on that
line: 1448 of every 1500 IP bytes."""

import time

import conditions
import features
import loads
from figures import SHARE, Row, at_least
from lab import SERVER, Lab
from pair import Pair

LINES = {"T1": 1.544e6, "OC-1": 51.84e6}  # bits of IP packets a second
ROUND_TRIPS_MS = (0, 30, 100, 250)
FILE_BYTES = 10_000_000
FILE_GOALS = {100: at_least(0.85), 250: at_least(0.75)}
PAUSE_SECONDS = 2.0  # between the earlier transfer and the file: longer than any retransmission timer


def run(bench):
    for choice in ("cubic", "bbr"):
        for line, rate in LINES.items():
            for round_trip in ROUND_TRIPS_MS:
                if bench.wants(label := f"{line} {round_trip} ms {choice}"):
                    one_line(bench, label, choice, line, rate, round_trip)


def one_line(bench, label, choice, line, rate, round_trip):
    payload_rate = rate * 1448 / 1500
    seconds = 8.0 if bench.quick else 30.0
    size = int(payload_rate / 8 * seconds)
    with_file = line == "OC-1" or (round_trip in FILE_GOALS and not bench.quick)  # 54 s each on a T1
    with Lab(f"{rate / 1e6:g}mbit,{round_trip}", options=["--cc", choice, "--proxy-cc", choice]) as lab:
        sink = loads.Server(lab, "sink")

        def transfer(amount):
            limit = 4 * amount * 8 / payload_rate + 20
            return loads.transfer(lab, SERVER, sink.port, amount, limit)[0]

        def share(stream):
            return stream.bits_per_second / payload_rate

        times = bench.times(1)
        bare = [transfer(size) for _ in range(times)]
        bare_file = [transfer(FILE_BYTES) for _ in range(times)] if with_file else []
        where = conditions.of_lab(lab)
        paired, file = [], []
        pair = Pair(lab, both={"features": features.TCP_ONLY, "log": {"level": "warn"},
                               "link": {"congestion_control": choice}})
        for _ in range(times):
            with pair:  # started anew: each time a link that nothing has warmed up
                paired.append(transfer(size))
                pair.branch.wait_flows(0)
                if with_file:
                    time.sleep(PAUSE_SECONDS)
                    file.append(transfer(FILE_BYTES))
                reasons = features.reasons(pair.branch)
        steady = [stream.steady_bits_per_second() / payload_rate for stream in (*bare[-1:], *paired[-1:])]
        bench.report(Row(f"{label}, {seconds:g} s of bytes: share of payload rate", SHARE,
                         [share(stream) for stream in paired], at_least(0.95), [share(stream) for stream in bare],
                         beside_goal=at_least(0.98), conditions=where,
                         note=f"after 30 % of the bytes {100 * steady[1]:.1f} %, bare {100 * steady[0]:.1f} %; "
                              f"{reasons}"))
        if with_file:
            seconds_each = sorted(stream.seconds for stream in file)
            bench.report(Row(f"{label}, 10 MB after an earlier transfer: share of payload rate", SHARE,
                             [share(stream) for stream in file], FILE_GOALS.get(round_trip),
                             [share(stream) for stream in bare_file],
                             beside_goal=at_least(0.98), conditions=where,
                             note=f"{seconds_each[len(file) // 2]:.2f} s from connect to the last byte"))
