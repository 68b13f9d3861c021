#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `longhaul-ttcp plot` makes of files: of right ones every plot and a page, of wrong ones a sentence."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

PLOT = pathlib.Path(__file__).resolve().parents[3] / "tools" / "ttcp" / "longhaul-ttcp-plot"
KINDS = ("throughput-size", "throughput-time", "received-size")


def row(protocol, size, received):
    return {"protocol": protocol, "packet_bytes": size, "packets_sent": 10, "bytes_sent": 10 * size, "seconds": 1 / size,
            "bytes_received": received * size / 10, "mbit_per_second": size * received / 1000, "percent_received": received}


def report():
    rows = [dict(row(protocol, size, received), trial=trial) for trial in (1, 2) for protocol, received in
            (("TCP", 100), ("UDP", 0), ("UDP+12", 50), ("UDP+12+RTT", 70)) for size in (32, 1024)]
    return {"from": "a", "to": "<b>", "began": "now", "complete": False, "planned": 99, "rows": rows, "means": rows[:8]}


class Plots(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def plot(self, text, name, *words):
        (self.folder / name).write_text(text)
        return subprocess.run([PLOT, self.folder / name, *words], capture_output=True, text=True, check=False)

    def test_every_trial_and_the_mean_have_three_plots_and_a_place_in_the_page(self):
        rows = report()["rows"]
        table = "\n".join([",".join(rows[0]), *(",".join(map(str, each.values())) for each in rows),
                           *(",".join(map(str, dict(each, trial="mean").values())) for each in rows[:8])])
        for name, text in (("sweep.json", json.dumps(report())), ("table.csv", table)):
            with self.subTest(name):
                done = self.plot(text, name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                out = self.folder / f"{name.split('.')[0]}-plots"
                page = (out / "index.html").read_text()
                for plot in KINDS:
                    for whose in ("mean", "trial-1", "trial-2"):
                        xml.etree.ElementTree.parse(out / f"{plot}-{whose}.svg")
                        self.assertIn(f'src="{plot}-{whose}.svg"', page)
                self.assertNotIn("<b>", page)
                if name.endswith(".json"):
                    self.assertIn("unfinished: 16 of 99 tests", page)

    def test_axes_have_numbers_where_all_values_are_nearly_the_same(self):
        rows = [dict(row("TCP", size, 100), trial=1, mbit_per_second=47 + size / 1e3, seconds=1.4 + size / 1e5)
                for size in (32, 8192)]
        self.assertEqual(self.plot(json.dumps(dict(report(), rows=rows, means=rows)), "flat").returncode, 0)
        text = (self.folder / "flat-plots" / "throughput-time-mean.svg").read_text()
        for axis in "xy":  # letters are drawn, and named in a comment
            numbers = re.findall(rf'id="{axis}tick_\d+">(?:(?!<g id="[xy]tick).)*?<!-- ([\d.,]+) -->', text, re.S)
            self.assertGreaterEqual(len(numbers), 2, axis)

    def test_what_no_sweep_wrote_gets_a_sentence(self):
        for text in ("", "{", "{}", "[]", "protocol,trial\nTCP,1\n", json.dumps(dict(report(), rows=[], means=[]))):
            with self.subTest(text):
                done = self.plot(text, "wrong")
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"^longhaul-ttcp plot: .*\n$")
        done = subprocess.run([PLOT, self.folder / "absent"], capture_output=True, text=True, check=False)
        self.assertIn("cannot read", done.stderr)


if __name__ == "__main__":
    unittest.main()
