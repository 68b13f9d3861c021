# SPDX-License-Identifier: Apache-2.0
"""Downloads over HTTPS from servers whose key the far side has: a Debian package with apt-get, a Python wheel with pip, a container
image of two layers with skopeo, a repository with git clone. On the bare line, by the first client of the branch through the pair,
and by the second, who is also compared with a client on the server's own LAN: the least that the program itself needs. The content
cannot be compressed; each sample through the pair has content of its own."""

import itertools

import conditions
from figures import SHARE, Row, at_most
from lab import Lab
from mirrors import Mirrors
from pair import Pair
from transfers import on_line

LINE, ROUND_TRIP_MS = "51.84mbit", 100
SIZE = 20_000_000
GOAL = 0.1  # of the second client: share of the bare line's seconds and bytes


def measured(lab, mirrors, kind, seed, pair=None):
    """Seconds of a client that has never been there, and the bytes on the line until its connections have ended."""
    if lab.line:
        lab.stats(reset=True)
    took = mirrors.get(kind, seed)
    if pair:
        pair.wait_flows(0, seconds=60)
    return took, on_line(lab.stats()) if lab.line else 0


def run(bench):
    for kind in Mirrors.KINDS:
        if not bench.wants(kind):
            continue
        if missing := Mirrors.missing(kind):
            bench.report(Row(f"{kind}: download", "s", [], note=f"not installed: {', '.join(missing)}"))
            continue
        one_kind(bench, kind, 3_000_000 if bench.quick else SIZE)


def one_kind(bench, kind, size):
    times = bench.times(3, quick=1)
    seeds = itertools.count(1)
    with Lab() as lab:
        mirrors = Mirrors(lab, (kind,))
        mirrors.put(kind, 1, size)
        lan = [measured(lab, mirrors, kind, 1)[0] for _ in range(times)]
    with Lab(f"{LINE},{ROUND_TRIP_MS}") as lab:
        mirrors = Mirrors(lab, (kind,))
        where = conditions.of_lab(lab)
        mirrors.put(kind, next(seeds), size)
        bare = [measured(lab, mirrors, kind, 1) for _ in range(times)]
        first, second = [], []
        with Pair(lab, both={"log": {"level": "warn"}}, datacenter={"tls_server": mirrors.tables}) as pair:
            for seed in itertools.islice(seeds, times):
                mirrors.put(kind, seed, size)
                for found in (first, second):
                    found.append(measured(lab, mirrors, kind, seed, pair))
            reasons = pair.datacenter.reasons()
    label = f"OC-1 {ROUND_TRIP_MS} ms: {kind}, {size // 1_000_000} MB"
    note = "" if set(reasons) == {"optimised"} else f"reasons {reasons}"
    seconds, shares = ([[each[of] for each in found] for found in (bare, first, second)] for of in (0, 1))
    shares = [[carried / size for carried in found] for found in shares]
    for client, at, goal in (("first client", 1, None), ("second client", 2, at_most(GOAL))):
        bench.report(Row(f"{label}: {client}", "s", seconds[at], None, seconds[0], beside_goal=goal, note=note, conditions=where))
        bench.report(Row(f"{label}: {client}, bytes on the line", SHARE, shares[at], None, shares[0], beside_goal=goal,
                         conditions=where))
    bench.report(Row(f"{label}: second client, beside one on the LAN", "s", seconds[2], None, lan, beside_name="LAN", conditions=where))
