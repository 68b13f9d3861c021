# SPDX-License-Identifier: Apache-2.0
"""1,000 ClientHellos a second from strangers, from one source and from 256: how long a peer that was never seen takes
from the start of its daemon until its link is up, and what another peer's flows keep of their speed meanwhile."""

import contextlib
import time

import conditions
import loads
import stranger
from figures import SHARE, Row, at_least, at_most
from lab import SERVER, Lab, until
from pair import Pair

RATE = 1000


def run(bench):
    for sources, goal in ((1, 3.0), (256, 5.0)):
        if bench.wants(f"link strangers {sources}"):
            link_up(bench, sources, goal)
        if bench.wants(f"service strangers {sources}"):
            service(bench, sources, 2 if bench.quick else 10)


@contextlib.contextmanager
def flood(lab, sources):
    with stranger.Flood(lab, stranger.give_addresses(lab, sources), RATE) as running:
        until(lambda: running.sent > RATE, 60, "the flood")
        yield running


def named(sources):
    return f"{RATE} ClientHellos/s from {sources} source{'s' if sources > 1 else ''}"


def link_up(bench, sources, goal):
    times, rates = [], []
    for _ in range(bench.times(5)):
        with Lab() as lab:
            pair = Pair(lab)
            pair.datacenter.start()
            with flood(lab, sources) as running:
                begun, sent = time.monotonic(), running.sent
                pair.branch.start()
                pair.branch.wait_link(seconds=60)
                times.append(time.monotonic() - begun)
                rates.append((running.sent - sent) / times[-1])
            pair.stop()
            where = conditions.of_lab(lab)
    bench.report(Row(f"{named(sources)}: a new peer's link is up", "s", times, at_most(goal),
                     note=f"from the start of its daemon; {min(rates):.0f} a second were sent at least", conditions=where))


def service(bench, sources, seconds):
    """The flows of a peer whose link is up."""
    quiet, busy, slower, shares = [], [], [], []
    with Lab("200mbit,20") as lab, Pair(lab):
        echo, sink = loads.Server(lab, "echo"), loads.Server(lab, "sink")

        def measure():
            answers = loads.run(lab, "exchanges", seconds + 30, to=SERVER, port=echo.port, seconds=seconds)[0]
            moved, took = loads.together(loads.transfer(lab, SERVER, sink.port, seconds=seconds))
            return answers["p99_us"] / 1000, moved / took * 8 / 1e6

        for _ in range(bench.times(3)):
            delay, rate = measure()
            with flood(lab, sources):
                delay_then, rate_then = measure()
            quiet.append(rate)
            busy.append(rate_then)
            slower.append(delay_then - delay)
            shares.append(rate_then / rate)
        where = conditions.of_lab(lab)
    bench.report(Row(f"{named(sources)}: 1-byte exchange of another peer, p99 later by", "ms", slower, at_most(20.0),
                     conditions=where))
    bench.report(Row(f"{named(sources)}: bulk of another peer keeps", SHARE, shares, at_least(0.9), conditions=where,
                     note=f"quiet {quiet[-1]:.1f} Mbit/s, then {busy[-1]:.1f}"))
