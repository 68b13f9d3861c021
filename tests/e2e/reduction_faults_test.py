# SPDX-License-Identifier: Apache-2.0
"""Dictionaries that are switched off, cleared, damaged, cut short and removed while flows run or between two runs: bytes
are sent again, and every byte that arrives is the one that was sent."""

import os
import random
import time
import unittest

import tcp
from lab import SERVER, Lab, until
from link_test import Copies
from pair import Pair

DICTIONARY = {"memory": "64MiB", "disk": "1GiB"}
SIZE = 4_000_000
SEED = int(os.environ.get("LONGHAUL_SEED", "1"))


class Dictionaries(unittest.TestCase):
    def start(self, *line, **changes):
        self.lab = self.enterContext(Lab(*line))
        both = {"dictionary": DICTIONARY, **changes.pop("both", {})}
        self.pair = self.enterContext(Pair(self.lab, both=both, **changes))
        self.branch, self.datacenter = self.pair.sites
        self.server = self.enterContext(tcp.Server(self.lab, tcp.report_digest))

    def upload(self, seed, size=SIZE, address=SERVER):
        """Bytes that only a dictionary makes fewer; gives what the branch sent for one of them."""
        before = self.branch.link()["bytes_sent"]
        self.assertEqual(tcp.upload(self.lab, address, self.server.port, size, seed), tcp.digest(size, seed))
        self.pair.wait_flows(0)
        return (self.branch.link()["bytes_sent"] - before) / size

    def test_flows_that_a_rule_excludes_from_reduction_do_not_disturb_others(self):
        off = {"compression": False, "dedup_memory": False, "dedup_disk": False}
        lab = self.enterContext(Lab())
        with tcp.Server(lab, tcp.report_digest) as plain:
            pair = self.enterContext(Pair(lab, both={"dictionary": DICTIONARY,
                                                     "rule": [{"to_ports": [plain.port], "features": off}]}))
            self.lab, self.pair, self.branch = lab, pair, pair.branch
            self.server = plain
            for _ in range(2):
                self.assertGreater(self.upload(1), 0.95)
            self.server = self.enterContext(tcp.Server(lab, tcp.report_digest))
            self.assertGreater(self.upload(1), 0.95)
            self.assertLess(self.upload(1), 0.01)

    def test_a_small_message_does_not_wait_for_more(self):
        self.start("51.84mbit,20")
        with tcp.Server(self.lab, tcp.echo) as server:
            here = tcp.connect(self.lab, SERVER, server.port)
            taken = []
            for number in range(20):
                message = f"message {number} of a protocol that waits for each answer".encode()
                began = time.monotonic()
                here.send(message)
                self.assertEqual(here.receive(len(message)), message)
                taken.append(time.monotonic() - began)
            here.close()
        # A busy machine makes many late; what waits for more makes all of them so. The round trip is 20 ms.
        self.assertLess(sorted(taken)[len(taken) // 4], 0.1, taken)

    # -- switched while it runs

    def test_features_change_in_the_middle_of_transfers(self):
        self.start("51.84mbit,20")
        dice = random.Random(SEED)
        for _ in range(2):  # the second time with repeats
            with Copies(self.lab, 12_000_000) as copies:
                while any(thread.is_alive() for thread in copies.threads):
                    site = dice.choice(self.pair.sites)
                    site.set(**{dice.choice(("compression", "dedup_memory", "dedup_disk")): dice.random() < 0.5})
                    time.sleep(0.1)
                self.assertEqual(copies.wait(), copies.expected())
        self.assertEqual([site.status()["flows"]["reset"] for site in self.pair.sites], [0, 0])

    def test_cleared_dictionaries_are_empty_on_both_sides_and_running_flows_go_on(self):
        self.start("51.84mbit,20")
        self.upload(1)
        for site in self.pair.sites:
            before = self.branch.link()["reduction"]["out"]["restarts"]
            site.longhaul("clear-cache")
            until(lambda: self.branch.link()["reduction"]["out"]["restarts"] > before,
                  what=f"what the branch sent is forgotten by word of the {site.name}")
            self.assertGreater(self.upload(1), 0.9)
            self.assertLess(self.upload(1), 0.05)  # what came last is not answered yet when the next one starts
        dice = random.Random(SEED)
        with Copies(self.lab, 12_000_000) as copies:
            while any(thread.is_alive() for thread in copies.threads):
                dice.choice(self.pair.sites).longhaul("clear-cache")
            self.assertEqual(copies.wait(), copies.expected())

    # -- disk

    def recover(self):
        """The first time what the disk lost goes again, and each block that was asked for lets the histories begin anew;
        the second time may still pay for that, the third has all of it in memory. A block that was on its way when the
        histories began anew goes twice, and so do the last few: hence the 5 %."""
        for _ in range(2):
            self.assertLess(self.upload(1), 1.05)
        self.assertLess(self.upload(1), 0.02)

    def disk_files(self, site):
        return [path for path in (site.folder / "state" / "dictionary").rglob("*") if path.is_file()]

    def test_damaged_files_on_one_side_cost_bytes_and_never_a_wrong_one(self):
        dice = random.Random(SEED)
        self.start()
        for site in self.pair.sites:
            self.upload(1)
            time.sleep(3)
            for each in self.pair.sites:
                each.stop()
            for path in self.disk_files(site):
                data = bytearray(path.read_bytes())
                for _ in range(0 if not data else 1 + len(data) // 500_000):
                    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
                path.write_bytes(data)
            self.pair.start()
            with self.subTest(site.name, seed=SEED):
                self.recover()

    def test_files_cut_short_on_one_side_cost_bytes_and_never_a_wrong_one(self):
        dice = random.Random(SEED)
        self.start()
        for site in self.pair.sites:
            self.upload(1)
            time.sleep(3)
            for each in self.pair.sites:
                each.kill()
            for path in self.disk_files(site):
                os.truncate(path, dice.randint(0, path.stat().st_size))
            self.pair.start()
            with self.subTest(site.name, seed=SEED):
                self.recover()


if __name__ == "__main__":
    unittest.main()
