# SPDX-License-Identifier: Apache-2.0
"""What the status page costs the daemon with many live flows: the sample that is taken each second whether anybody looks or
not, and a page that stands open and asks as page.js does."""

import threading
import time

import conditions
import loads
from figures import Row
from lab import BRANCH
from loopback import Loopback, forwarding_pair, forwards
from usage import Cpu, memory

FLOWS = 10_000
ASKED = (("/v1/status", 2.0), ("/v1/history?step=1", 2.0), ("/v1/talkers?by=client&limit=10", 2.0), ("/v1/flows?limit=50", 3.0))


class OpenPage:
    """Asks at the page's times until the block ends."""

    def __init__(self, site, path, every):
        self.site, self.path, self.every = site, path, every
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        while not self.over.wait(self.every):
            self.site.get(self.path)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def busy(pid, seconds):
    with Cpu(pid) as used:
        time.sleep(seconds)
    return 100 * used.seconds[pid] / used.wall


def run(bench):
    flows, watch = (1000, 3.0) if bench.quick else (FLOWS, 30.0)
    with Loopback() as lab:
        echo = loads.Server(lab, "echo", ports=4)
        with forwarding_pair(lab, echo.ports) as pair:
            site, pid = pair.branch, pair.branch.process.pid
            times = bench.times(3)
            alone = [busy(pid, watch) for _ in range(times)]
            with loads.Held(lab, to=BRANCH, ports=forwards(echo.ports), flows=flows, exchange=1) as held:
                held.wait("held", 120)
                sampled = [busy(pid, watch) for _ in range(times)]
                before = memory(pid)["pss"]
                pages = [OpenPage(site, path, every) for path, every in ASKED]
                for page in pages:
                    page.__enter__()
                try:
                    time.sleep(4)  # each has asked once
                    looked_at = [busy(pid, watch) for _ in range(times)]
                    grown = memory(pid)["pss"] - before
                finally:
                    for page in pages:
                        page.__exit__()
            where = conditions.of_lab(lab)
            bench.report(Row(f"{flows} idle flows, nobody looks", "% of a core", sampled, beside=alone,
                             beside_name="no flows", conditions=where))
            bench.report(Row(f"{flows} idle flows, one open page", "% of a core", looked_at, beside=sampled,
                             beside_name="nobody looks", conditions=where, note=f"memory grew by {grown / 1024:.0f} KiB"))
