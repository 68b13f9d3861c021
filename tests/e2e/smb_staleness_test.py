# SPDX-License-Identifier: Apache-2.0
"""A sample of the table of staleness/README.md: what others change is seen through the pair, by each client that is there, and in
each way of looking. How late is measured by staleness/run; here every change must be seen at all, whatever the machine does meanwhile."""

import concurrent.futures
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [os.fspath(HERE / "staleness"), os.fspath(HERE / "promises")]

import watchers
from lab import long_test
from writers import KINDS


class Staleness(unittest.TestCase):
    def see(self, watches, changes):
        stage = self.enterContext(watchers.Stage())
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda watch: stage.delays(watch, changes), watches))
        for watch, delays in zip(watches, found):
            for changer, each in delays.items():
                with self.subTest(watch.name(), changed_by=changer):
                    self.assertNotIn(None, each)

    def test_a_sample_of_clients_sees_what_others_change(self):
        self.see([watch for watch in watchers.all_watches(["impacket", "libsmbclient"], ("NT1", "3.1.1"))
                  if watch.kind == "impacket" or watch.look == "size"], 1)

    @long_test
    def test_every_client_sees_what_others_change(self):
        self.see(watchers.all_watches([name for name, kind in KINDS.items() if kind.is_there() and not kind.is_kernel]), 3)


if __name__ == "__main__":
    unittest.main()
