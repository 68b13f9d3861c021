# SPDX-License-Identifier: Apache-2.0
"""The table of staleness/README.md. A sample of it: what others change is seen through the pair at all, whatever the machine does
meanwhile. --long plays all of it both ways, on a quiet machine, and compares the delays."""

import concurrent.futures
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [os.fspath(HERE / "staleness"), os.fspath(HERE / "promises")]

import both_ways
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
                  if watch.kind == "impacket" or watch.look in ("held", "size")], 1)


class StalenessBothWays(unittest.TestCase):
    is_alone = True  # it compares times

    @long_test
    def test_no_client_sees_a_change_later_than_is_allowed(self):
        self.compare(None)

    @long_test
    def test_no_client_sees_a_change_later_than_is_allowed_where_the_server_reports_none(self):
        self.compare({"kernel change notify": "no"})

    def compare(self, settings):
        kinds = [name for name, kind in KINDS.items() if kind.is_there()]
        watches = watchers.all_watches(kinds)
        ways = [both_ways.measured(direct, watches, 3, "kernel" in kinds, settings) for direct in (True, False)]
        for _, failed in ways:
            self.assertEqual(failed, [])
        rows = both_ways.rows(*(found for found, _ in ways))
        self.assertEqual(len(rows), len(watches) * len(watchers.CHANGERS))
        for row in rows:
            with self.subTest(row.watch.name(), changed_by=row.changer):
                self.assertFalse(row.is_late(), f"direct {row.direct}, pair {row.pair} ms; allowed: "
                                 f"{row.watch.allowed_ms(row.changer)} ms later")


if __name__ == "__main__":
    unittest.main()
