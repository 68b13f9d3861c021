# SPDX-License-Identifier: Apache-2.0
"""Bulk over lines that lose packets, client to server: 30 MB files over the fast carrier from connect to the last
byte, its steady rate against the line's bound, and beside it in the same lab the bare line and the TCP carrier.

The bound is line rate x payload share x (1 - loss); the share is that of a full packet of the carrier: 1435 bytes of
a stream in 1500 IP bytes over UDP, 1448 over TCP."""

import contextlib
import statistics

import conditions
import features
import loads
from figures import SHARE, Row, at_least, at_most
from lab import SERVER, Lab, until
from pair import Pair

UDP_SHARE, TCP_SHARE = 1435 / 1500, 1448 / 1500
OC1 = 51.84e6
FILE_BYTES = 30_000_000
# Mbit/s of a 30 MB file at 250 ms: rate configured, path known, cold (best open peer, rate configured: 43.9 to 30).
FILE_GOALS = {0: (45.5, 43.5, 40), 0.01: (45, 42.5, 39), 0.05: (42.5, 40, 37), 0.1: (39.5, 37, 34)}
BULK_GOALS = {0: 0.97, 0.001: 0.97, 0.005: 0.97, 0.01: 0.97, 0.05: 0.95, 0.1: 0.93, 0.2: 0.85}
OTHER_LOSS = 0.03  # in bursts, or with packets out of order: as much less than at random may be
SEEDS = (1, 2, 3, 4, 5)


def run(bench):
    for loss in FILE_GOALS:
        if bench.wants(f"file OC-1 250 ms {loss:g}"):
            files(bench, loss)
    for round_trip in (0, 30, 100, 250):
        for loss in (0, 0.001, 0.005, 0.01, 0.05, 0.1):
            if bench.wants(label := f"bulk OC-1 {round_trip} ms {loss:g}"):
                bulk(bench, label, OC1, round_trip, loss)
    for round_trip in (100, 250):
        for loss in (0.01, 0.05):
            for length in (3, 10):
                if bench.wants(label := f"bursts of {length} OC-1 {round_trip} ms {loss:g}"):
                    bulk(bench, label, OC1, round_trip, loss, burst_loss(loss, length), OTHER_LOSS)
        if bench.wants(label := f"reordered OC-1 {round_trip} ms 0.02"):
            bulk(bench, label, OC1, round_trip, 0, ("reorder=2%,5ms",), OTHER_LOSS)
    for rate, round_trip, loss in ((200e6, 50, 0.01), (200e6, 50, 0.1), (100e6, 200, 0.05), (100e6, 200, 0.2)):
        if bench.wants(label := f"bulk {rate / 1e6:g}M {round_trip} ms {loss:g}"):
            bulk(bench, label, rate, round_trip, loss)
    for loss in (0.01, 0.1):
        if bench.wants(label := f"beside OC-1 100 ms {loss:g}"):
            beside(bench, label, OC1, 100, loss)


def burst_loss(loss, length):
    """The same share of packets lost in bursts of a mean length: the two chances of Gilbert and Elliott's chain."""
    return (f"burst-loss={loss / (1 - loss) / length:.6g},{1 / length:.6g}",)


@contextlib.contextmanager
def lossy_lab(rate, round_trip, loss, settings=(), seed=1, cc="cubic"):
    # Each way loses: acknowledgements, too.
    random = 0 if any(word.startswith("burst-loss") for word in settings) else loss
    with Lab(f"{rate / 1e6:g}mbit,{round_trip},{random:g}", *settings,
             options=["--seed", str(seed), "--cc", cc, "--proxy-cc", cc]) as lab:
        yield lab


def udp_pair(lab, rate, fec="adaptive", transport="udp"):
    pair = Pair(lab, both={"features": {**features.TCP_ONLY, "transport": transport, "fec": fec},
                           "log": {"level": "warn"}})
    return tell(pair, rate)


def tell(pair, rate):
    """The line's rate as its operator would give it: in IP bits. None: it is to be measured."""
    for site in pair.sites:
        site.settings["peer"][0]["rate"] = rate
    return pair


def on_udp(pair):
    for site in pair.sites:
        until(lambda: site.link()["carrier"] == "udp", 10, f"{site.name} sends on udp")
    return pair


def files(bench, loss):
    configured_goal, known_goal, cold_goal = FILE_GOALS[loss]
    found = {"configured": [], "known": [], "cold": []}
    sent = []
    where = ""
    for seed in SEEDS[:bench.times(5, quick=1)]:
        with lossy_lab(OC1, 250, loss, seed=seed) as lab:
            sink = loads.Server(lab, "sink")
            where = conditions.of_lab(lab)

            def transfer():
                stream = loads.transfer(lab, SERVER, sink.port, FILE_BYTES, 60)[0]
                return stream.bits_per_second / 1e6

            with (pair := udp_pair(lab, f"{OC1 / 1e6:g}mbit")):
                on_udp(pair)
                lab.stats(reset=True)
                found["configured"].append(transfer())
                sent.append(lab.stats()["a_to_b"]["ip_bytes_in"] / FILE_BYTES)
            with tell(pair, None):
                on_udp(pair)
                found["cold"].append(transfer())
                pair.wait_flows(0)
                found["known"].append(transfer())
    for name, goal, words in (("configured", configured_goal, "rate configured"), ("known", known_goal, "path known"),
                              ("cold", cold_goal, "cold")):
        worst = min(found[name]) / statistics.median(found[name])
        bench.report(Row(f"30 MB, OC-1 250 ms, loss {loss:g}, {words}", "Mbit/s", found[name], at_least(goal),
                         conditions=where, note=f"worst seed {100 * worst:.1f} % of the median"))
    bench.report(Row(f"30 MB, OC-1 250 ms, loss {loss:g}: bytes sent for a byte of payload", "",
                     sent, at_most(1.06 / (1 - loss) + 0.02), conditions=where))


def steady(stream, after_seconds):
    """Bits a second from the first tenth of the bytes that came after the start."""
    marks = stream.marks_ns
    first = next(index for index, mark in enumerate(marks) if mark - stream.start_ns > after_seconds * 1e9)
    return 8 * stream.bytes * (len(marks) - 1 - first) / (len(marks) - 1) / ((marks[-1] - marks[first]) / 1e9)


def bulk(bench, label, rate, round_trip, loss, settings=(), less=0):
    """20 s after the first 3, against the goal for random loss less `less`."""
    bound = rate * UDP_SHARE * (1 - loss)
    seconds = 6 if bench.quick else 20
    size = int(bound / 8 * (seconds + 3))
    for configured in (f"{rate / 1e6:g}mbit", None):
        with lossy_lab(rate, round_trip, loss, settings) as lab:
            sink = loads.Server(lab, "sink")
            with udp_pair(lab, configured) as pair:
                on_udp(pair)
                streams = [loads.transfer(lab, SERVER, sink.port, size, 4 * seconds + 30)[0]
                           for _ in range(bench.times(1))]
                udp = pair.branch.link()["udp"]
            bench.report(Row(f"{label}, {'configured' if configured else 'measured'}: share of the bound", SHARE,
                             [steady(stream, 3) / bound for stream in streams], at_least(BULK_GOALS[loss] - less),
                             conditions=conditions.of_lab(lab),
                             note=f"lost {udp['packets_lost']} of {udp['packets_sent']}, "
                                  f"spurious {udp['spurious_losses']}, repairs {udp['repairs_sent']}"))


def beside(bench, label, rate, round_trip, loss):
    """All that a line can be used with, one after the other on the same line."""
    seconds = 8 if bench.quick else 20
    bound = rate * UDP_SHARE * (1 - loss)

    def one(name, lab, pair):
        sink = loads.Server(lab, "sink")
        with contextlib.ExitStack() as stack:
            if pair:
                stack.enter_context(pair)
                if pair.branch.settings["features"]["transport"] == "udp":
                    on_udp(pair)
            stream = loads.transfer(lab, SERVER, sink.port, seconds=seconds)[0]
        bench.report(Row(f"{label}, {name}: share of the bound", SHARE, [stream.bits_per_second / bound],
                         conditions=conditions.of_lab(lab)))

    for cc in ("cubic", "bbr"):
        with lossy_lab(rate, round_trip, loss, cc=cc) as lab:
            one(f"bare {cc}", lab, None)
    with lossy_lab(rate, round_trip, loss) as lab:
        one("TCP carrier cubic", lab, udp_pair(lab, None, transport="tcp"))
    for fec in ("off", "adaptive"):
        with lossy_lab(rate, round_trip, loss) as lab:
            one(f"UDP carrier, rate configured, fec {fec}", lab, udp_pair(lab, f"{rate / 1e6:g}mbit", fec))
        with lossy_lab(rate, round_trip, loss) as lab:
            one(f"UDP carrier measured, fec {fec}", lab, udp_pair(lab, None, fec))
