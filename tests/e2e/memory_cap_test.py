# SPDX-License-Identifier: Apache-2.0
"""[limits] memory is a cap on the whole process: what it takes beyond a daemon that has done nothing yet stays below it, with
dictionaries full, clients that do not read, and files read ahead."""

import os
import unittest
from unittest import mock

import smb
import tcp
from backpressure_test import fill
from lab import SERVER, Lab, alone
from pair import Pair
from reduction_test import MB, digest, download, noise, upload

CAP = 192 << 20


@alone
class MemoryCap(unittest.TestCase):
    def setUp(self):
        # A sanitized daemon keeps what it has freed for a while: that is not what is measured here.
        self.enterContext(mock.patch.dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1"))
        self.lab = self.enterContext(Lab())
        self.smbd = smb.Smbd(self.lab)
        # Dictionaries as by default, which are larger than this cap.
        self.pair = self.enterContext(Pair(self.lab, both={"limits": {"memory": "192MiB"}, "log": {"level": "info"}}))

    def test_full_dictionaries_stalled_readers_and_files_ahead_stay_below_the_cap_together(self):
        idle = [site.resident_bytes() for site in self.pair.sites]
        grown = lambda: [site.resident_bytes() - base for site, base in zip(self.pair.sites, idle)]
        for seed in range(10):  # more than histories hold, each way
            data = noise(10 * MB, seed)
            self.assertEqual(download(self.lab, data), digest(data))
            self.assertEqual(upload(self.lab, data[::-1]), digest(data[::-1]))
        self.assertLess(max(grown()), CAP)
        document = self.smbd.make("document", 40 * MB, seed=3)
        self.assertEqual(self.smbd.get("document", "-m", "SMB3_11"), document)
        with tcp.Listener(self.lab) as listener:
            ends = [(tcp.connect(self.lab, SERVER, listener.port), listener.accept()) for _ in range(100)]
            fill([here for here, _ in ends], 60)
            for site in self.pair.sites:
                memory = site.status()["memory"]
                self.assertEqual(memory["limit_bytes"], CAP)
                self.assertEqual(memory["bytes"], sum(part["bytes"] for part in memory["parts"]))
                self.assertLessEqual(sum(part["limit_bytes"] for part in memory["parts"]), CAP)
                for part in memory["parts"]:
                    self.assertLessEqual(part["bytes"], part["limit_bytes"], part["part"])
            self.assertLess(max(grown()), CAP)
            for here, there in ends:
                here.reset()
                there.reset()
        data = noise(MB, "afterwards")
        self.assertEqual(download(self.lab, data), digest(data))

    def test_the_operator_is_informed_which_sizes_the_cap_does_not_allow(self):
        branch = self.pair.branch
        said = branch.longhaul("check", branch.file.name)
        self.assertIn("At most 192MiB in all", said)
        self.assertIn("makes the dictionaries in memory smaller", said)
        self.assertIn("no room for the index of the dictionary on disk", said)
        branch.process.lines_with("no room for the index of the dictionary on disk")
        self.assertRegex(branch.longhaul("status"), r"of 192 MiB: credit .*, dictionaries .* of ")


if __name__ == "__main__":
    unittest.main()
