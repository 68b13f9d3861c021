# SPDX-License-Identifier: Apache-2.0
"""What the pair adds to an exchange of one byte each way over a connection that stands, over loopback: through the
pair minus without it, measured in turn."""

import conditions
import loads
from figures import Row, at_most
from lab import BRANCH, SERVER
from loopback import Loopback, forwarding_pair, forwards

SECONDS = 5.0


def run(bench):
    seconds = 1.0 if bench.quick else SECONDS
    with Loopback() as lab:
        echo = loads.Server(lab, "echo")
        with forwarding_pair(lab, [echo.port]):
            def exchange(to, port):
                return loads.run(lab, "exchanges", seconds + 30, to=to, port=port, seconds=seconds)[0]

            direct, paired = [], []
            for _ in range(bench.times(5, quick=2)):
                direct.append(exchange(SERVER, echo.port))
                paired.append(exchange(BRANCH, forwards([echo.port])[0]))
            for key, goal in (("p50_us", 150.0), ("p99_us", 1000.0)):
                added = [there[key] - here[key] for here, there in zip(direct, paired)]
                bench.report(Row(f"1-byte exchange: added at {key.removesuffix('_us')}", "µs", added, at_most(goal),
                                 [here[key] for here in direct], beside_name="direct",
                                 conditions=conditions.of_lab(lab),
                                 note=f"through the pair {paired[-1][key]:.1f} µs, {paired[-1]['done']} exchanges; "
                                      f"worst {paired[-1]['most_us']:.0f}, direct {direct[-1]['most_us']:.0f}"))
