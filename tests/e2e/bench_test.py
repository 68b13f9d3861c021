# SPDX-License-Identifier: Apache-2.0
"""longhaul-bench with a lab, servers and captures of its own: a small scenario to its report."""

import csv
import os
import pathlib
import subprocess
import tempfile
import unittest

from lab import BUILD, REPOSITORY

PROGRAM = REPOSITORY / "tools" / "longhaul-bench"
SCENARIO = """
title = "a small one"
[quick]
size = { seconds = 1, least = "200kB", most = "200kB" }
[[matrix]]
title = "one"
rates = ["OC-1"]
round_trips_ms = [30]
applications = ["smb read SMB1 impacket"]
features = ["bare", "A"]
passes = ["cold", "warm"]
"""


class Bench(unittest.TestCase):
    def test_a_quick_run_measures_bare_and_pair_and_writes_its_report(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "small.toml").write_text(SCENARIO)
        words = [PROGRAM, "run", folder / "small.toml", "--quick", "--into", folder / "run", "--alongside"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False,
                              env=dict(os.environ, LONGHAUL_BUILD=str(BUILD)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(folder / "run" / "figures.csv", encoding="utf-8", newline="") as file:
            rows = {(row["features"], row["pass"]): row for row in csv.DictReader(file)}
        self.assertEqual(len(rows), 2 * 2)
        for what, row in rows.items():
            with self.subTest(what):
                self.assertFalse(row["failure"])
                # Bare waits a round trip for each of 4 blocks; the pair may have all at hand when it is asked.
                self.assertGreater(float(row["seconds"]), 4 * 0.029 if what[0] == "bare" else 0)
                carried = int(row["wan_up"]) + int(row["wan_down"])
                if what == ("A", "warm"):
                    self.assertLess(carried, 50_000)
                else:
                    self.assertGreater(carried, 200_000)
        page = (folder / "run" / "report.html").read_text()
        self.assertIn("SMB1, file read by impacket", page)
        self.assertIn("4 of 4 cells measured", page)


if __name__ == "__main__":
    unittest.main()
