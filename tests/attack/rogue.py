# SPDX-License-Identifier: Apache-2.0
"""A pair at work, and at the datacenter a third site whose key a rogue holds. What the rogue sends is in the tests."""

import contextlib
import threading
import unittest

import tcp
from hostile_peer import HostilePeer
from lab import BRANCH_WAN, SERVER, Lab
from pair import Pair, Site, merge

ROGUE_NETWORKS = ["10.10.9.0/24"]
ROGUE_PORT = 7700  # where the datacenter dials the rogue, if it does


class Besieged:
    """`pair` runs; the datacenter takes the rogue, too. Use as a context."""

    def __init__(self, lab, dials_rogue=False, both=None, **changes):
        self.lab = lab
        self.pair = Pair(lab, both=both or {})
        self.rogue_site = Site(lab, "branch", "rogue")
        self.datacenter = self.pair.datacenter
        self.datacenter.settings["peer"].append({
            "name": "rogue", "fingerprint": self.rogue_site.fingerprint, "networks": ROGUE_NETWORKS,
            "address": f"{BRANCH_WAN}:{ROGUE_PORT}" if dials_rogue else None})
        merge(self.datacenter.settings, changes)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for site in (self.datacenter, self.pair.branch):
                site.start()
                stack.callback(lambda site=site: site.process.is_running() and site.stop())
            self.pair.branch.wait_link()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details):
        return self._stack.__exit__(*details)

    def rogue(self, **what):
        return HostilePeer(self.lab, self.rogue_site, **what)

    def check_transfer(self, test, size=2_000_000, seed=5):
        """A transfer of the pair arrives byte for byte, and over its link: another one, if the link was silent for a moment on
        a busy machine, so that the flow bypassed it."""
        for _ in range(5):
            self.pair.branch.wait_link()
            before = self.pair.branch.reasons().get("optimised", 0)
            self._transfer(test, size, seed)
            if self.pair.branch.reasons().get("optimised", 0) > before:
                return
        test.fail(f"no transfer was carried over the link: {self.pair.branch.reasons()}")

    def _transfer(self, test, size, seed):
        with tcp.Server(self.lab, tcp.echo) as server:
            client = tcp.connect(self.lab, SERVER, server.port)
            echoed = {}
            reader = threading.Thread(target=lambda: echoed.update(got=client.digest_rest()), daemon=True)
            reader.start()
            client.send_made(size, seed)
            client.end()
            reader.join(120)
            client.close()
        test.assertEqual(echoed.get("got"), tcp.digest(size, seed))


class BesiegedTest(unittest.TestCase):
    """Each test has a lab of its own, for the rogue may have hurt the daemon."""

    dials_rogue = False
    both = {}  # of the pair's configuration
    changes = {}  # of the datacenter's

    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.besieged = self.enterContext(Besieged(self.lab, self.dials_rogue, self.both, **self.changes))
        self.datacenter = self.besieged.datacenter

    def check_served(self):
        """The pair is served, by the same daemon."""
        self.besieged.check_transfer(self)
        self.assertTrue(self.datacenter.process.is_running())
