# SPDX-License-Identifier: Apache-2.0
"""Two lines between the sites, 30 and 20 Mbit/s, 40 and 90 ms, one of which loses 1 % each way: bulk over both, with a
message of 200 bytes every 20 ms beside it; the same over each line alone, bare and with the pair; and what is left in
each second after one of the lines was cut. Client to server. Bulk is compared by its hash, messages by their number."""

import concurrent.futures
import contextlib
import statistics
import time

import conditions
import features
import loads
from figures import SHARE, Row, at_least, at_most
from lab import BRANCH_SECOND, DATACENTER_SECOND, SERVER, Lab
from lossy_transfer import UDP_SHARE, on_udp, udp_pair
from message_delay import BYTES, EVERY_SECONDS, WARM_MESSAGES, messages
from pair import LINK_PORT, Pair, use_two_lines, wait_paths

LINES = ((30, 40), (20, 90))  # Mbit/s, round trip in ms
LOSS = 0.01
WARM_SECONDS = WARM_MESSAGES * EVERY_SECONDS
SUM_GOAL, LEAST_GOAL = 0.92, 0.85
P99_GOAL_MS = min(round_trip for _, round_trip in LINES) / 2 + 30
LOOKS_PER_SECOND = 10


def run(bench):
    for lossy in (1, 0):
        if bench.quick and lossy == 0 and not bench.only:
            continue
        name = f"loss on the line of {LINES[lossy][0]} Mbit/s"
        laws = [law for law in ("configured", "measured") if bench.wants(f"{name} {law}")]
        if laws:
            TwoLines(bench, lossy, name).compare(laws)


def rate_of(line):
    return f"{LINES[line][0]}mbit"


class TwoLines:
    """One case: what it needs for a lab, and what was found on the bare lines."""

    def __init__(self, bench, lossy, name):
        self.bench, self.lossy, self.name = bench, lossy, name
        self.seconds = 6 if bench.quick else 20
        self.words = [f"{rate}mbit,{round_trip},{LOSS if line == lossy else 0:g}"
                      for line, (rate, round_trip) in enumerate(LINES)]
        self.bounds = [rate * 1e6 * UDP_SHARE * (1 - (LOSS if line == lossy else 0))
                       for line, (rate, _) in enumerate(LINES)]
        self.where = ""

    @contextlib.contextmanager
    def lab(self, seed):
        with Lab(self.words[0], second=self.words[1], options=["--seed", str(seed)]) as lab:
            self.where = f"{conditions.of_lab(lab)}; second line {self.words[1]}"
            yield lab

    def seeds(self):
        return range(1, 1 + self.bench.times(1, quick=1))

    def report(self, what, unit, samples, goal=None, beside=None, beside_name="bare", note=""):
        self.bench.report(Row(f"{self.name}, {what}", unit, samples, goal, beside, beside_name, note=note,
                              conditions=self.where))

    def compare(self, laws):
        bare = [self.bare(line) for line in range(len(LINES))]
        for law in laws:
            configured = law == "configured"
            alone = [self.alone(law, line, configured, bare[line]) for line in range(len(LINES))]
            self.both(law, configured, alone)
            for line in range(len(LINES)):
                self.cut(law, line, configured)

    # -- each line alone

    def bare(self, line):
        """Bits a second and milliseconds (p99) of each seed."""
        found = Found()
        for seed in self.seeds():
            with self.lab(seed) as lab, led_over(lab, line):
                found.add(*bulk_and_messages(lab, loads.Server(lab, "sink"), self.seconds))
        self.report(f"bare line of {LINES[line][0]} Mbit/s, CUBIC: share of the line's bound", SHARE,
                    [rate / self.bounds[line] for rate in found.rates], note="from connect to the last byte")
        self.report(f"bare line of {LINES[line][0]} Mbit/s, CUBIC: messages, p99", "ms", found.p99s, note=found.note())
        return found

    def alone(self, law, line, configured, bare):
        found = Found()
        for seed in self.seeds():
            with self.lab(seed) as lab:
                pair = udp_pair(lab, rate_of(line) if configured else None)
                if line == 1:
                    pair.branch.settings["peer"][0]["address"] = f"{DATACENTER_SECOND}:{LINK_PORT}"
                with pair:
                    found.add(*bulk_and_messages(lab, loads.Server(lab, "sink"), self.seconds, on_udp(pair)))
        self.report(f"{law}, the line of {LINES[line][0]} Mbit/s alone: share of its bound", SHARE,
                    [rate / self.bounds[line] for rate in found.rates],
                    beside=[rate / self.bounds[line] for rate in bare.rates])
        self.report(f"{law}, the line of {LINES[line][0]} Mbit/s alone: messages, p99", "ms", found.p99s,
                    beside=bare.p99s, note=found.note())
        return found

    # -- both

    def pair(self, lab, configured):
        pair = Pair(lab, both={"features": {**features.TCP_ONLY, "transport": "udp"}, "log": {"level": "warn"}})
        return use_two_lines(pair, "sum", [rate_of(line) if configured else None for line in range(len(LINES))])

    def both(self, law, configured, alone):
        found, shares = Found(), []
        for seed in self.seeds():
            with self.lab(seed) as lab, self.pair(lab, configured) as pair:
                wait_paths(pair)
                found.add(*bulk_and_messages(lab, loads.Server(lab, "sink"), self.seconds, on_udp(pair)))
                sent = [path["bytes_sent"] for path in pair.branch.link()["paths"]]
                shares.append(f"{100 * sent[0] / sum(sent):.0f}:{100 * sent[1] / sum(sent):.0f}")
        bound = sum(self.bounds)
        self.report(f"{law}, both lines: share of both bounds", SHARE, [rate / bound for rate in found.rates],
                    at_least(SUM_GOAL), [sum(rates) / bound for rates in zip(*(one.rates for one in alone))],
                    "each alone, added", f"bytes on the lines {', '.join(shares)}")
        self.report(f"{law}, both lines: messages, p99", "ms", found.p99s, at_most(P99_GOAL_MS), alone[0].p99s,
                    "the first line alone", found.note())

    def cut(self, law, line, configured):
        """`line` is cut while bulk runs; of the other one's bound, the least of all seconds from then on."""
        bound = self.bounds[1 - line]
        least, means, note = [], [], ""
        for seed in self.seeds():
            with self.lab(seed) as lab, self.pair(lab, configured) as pair:
                wait_paths(pair)
                on_udp(pair)
                looks = looks_after_cut(lab, pair, line, self.words[line], self.seconds)
            rates = [8 * (later - given) / (then - at) for (at, given), (then, later)
                     in zip(looks, looks[LOOKS_PER_SECOND:])]
            least.append(min(rates) / bound)
            means.append(8 * (looks[-1][1] - looks[0][1]) / (looks[-1][0] - looks[0][0]) / bound)
            note = (f"mean {100 * statistics.median(means):.1f} %; Mbit/s in each second "
                    f"{' '.join(f'{rate / 1e6:.1f}' for rate in rates[::LOOKS_PER_SECOND])}")
        self.report(f"{law}, the line of {LINES[line][0]} Mbit/s cut: least second, share of the other's bound", SHARE,
                    least, at_least(LEAST_GOAL), note=note)


class Found:
    def __init__(self):
        self.rates, self.p99s, self.medians = [], [], []

    def add(self, rate, delays):
        delays.sort()
        self.rates.append(rate)
        self.p99s.append(delays[int(0.99 * len(delays))])
        self.medians.append(statistics.median(delays))

    def note(self):
        return f"median {statistics.median(self.medians):.1f} ms"


@contextlib.contextmanager
def led_over(lab, line):
    """The hosts' bare packets go over that line."""
    routes = (("branch", "10.10.2.0/25", DATACENTER_SECOND), ("datacenter", "10.10.1.0/25", BRANCH_SECOND))
    if line == 1:
        for node, network, via in routes:
            lab.run(node, "ip", "route", "add", network, "via", via)
    yield


def bulk_and_messages(lab, sink, seconds, pair=None):
    """Bits a second of bulk, and the messages' delays in milliseconds. Of a pair, what the far side gave to the server
    behind the first WARM_SECONDS; of the bare line, all that arrived, in the time that it took."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bulk = pool.submit(loads.transfer, lab, SERVER, sink.port, seconds=WARM_SECONDS + seconds + 2)
        delays = pool.submit(messages, lab, WARM_MESSAGES + int(seconds / EVERY_SECONDS))
        rate = None
        if pair:
            time.sleep(WARM_SECONDS)
            began, before = time.monotonic(), given(pair)
            time.sleep(seconds)
            rate = 8 * ((given(pair) - before) / (time.monotonic() - began) - BYTES / EVERY_SECONDS)
        stream = bulk.result()[0]  # every byte was compared
        return rate or stream.bits_per_second, delays.result()


def given(pair):
    return pair.datacenter.status()["flows"]["bytes"]["lan_out"]


def looks_after_cut(lab, pair, line, words, seconds):
    """[(when, bytes that the far side has given to the server)], from the cut on."""
    sink = loads.Server(lab, "sink")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        bulk = pool.submit(loads.transfer, lab, SERVER, sink.port, seconds=WARM_SECONDS + seconds + 3)
        time.sleep(WARM_SECONDS)
        lab.link(words, "cut=on", which="second" if line == 1 else "line")
        began = time.monotonic()
        looks = []
        for look in range(LOOKS_PER_SECOND * seconds):
            time.sleep(max(0.0, began + look / LOOKS_PER_SECOND - time.monotonic()))
            looks.append((time.monotonic(), given(pair)))
        bulk.result()
    return looks
