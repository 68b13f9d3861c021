# SPDX-License-Identifier: Apache-2.0
"""Transports over delay: how often they are measured, what is said of them, and how they are graded."""

import io
import math
import pathlib
import tempfile
import unittest
from unittest import mock

import confidence
import report
import scenario
import sources
import transports
from progress import Progress, expected_seconds
from runner import Runner
from runner_test import FakeRig, Work
from store import Store
from summary import Figures

TEXT = """
title = "made up"
[confidence]
level = 0.95
within = 0.025
least = 3
most = 9
[[matrix]]
title = "one"
rates = ["100mbit"]
round_trips_ms = [0, 60]
mtus = [1500, 9000]
buffers = "16MB"
applications = ["stream 30 s"]
features = ["bare", "sctp", "carrier-udp"]
source = "transports"
"""
HEADER = {"name": "made", "scenario": TEXT, "quick": False, "sessions": []}
RULE = scenario.Confidence(0.95, 0.025, 3, 9)


def found(mbit, seconds=30.0, client=0.05, server=0.1, proxies=None):
    return {"size": round(mbit * 1e6 / 8 * seconds), "seconds": seconds, "client_seconds": seconds + 1, "wan_up": 1, "wan_down": 1,
            "cpu_share": {"client": client, "server": server}, "cpu_seconds": proxies or {}, "peak_bytes": {}, "busy_cores": 0.3,
            "line_late_p99_us": 100, "again": 0, "segment_bytes": 1448, "carrier": None, "reasons": {}}


class Confidence(unittest.TestCase):
    def test_the_quantiles_are_those_of_the_printed_tables(self):
        for level, freedom, t in ((0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 8, 2.306), (0.99, 2, 9.925), (0.99, 7, 3.499),
                                  (0.90, 29, 1.699)):
            self.assertAlmostEqual(confidence.quantile(level, freedom), t, 3)

    def test_equal_values_are_enough_and_two_never_are(self):
        self.assertTrue(confidence.is_enough([90.0] * 3, RULE))
        self.assertFalse(confidence.is_enough([90.0] * 2, RULE))
        self.assertEqual(confidence.half_width([90.0]), math.inf)

    def test_the_interval_is_that_of_a_worked_example(self):
        values = [98.0, 100.0, 102.0]  # deviation 2; 4.303 * 2 / sqrt(3)
        self.assertAlmostEqual(confidence.half_width(values), 4.969, 2)
        self.assertFalse(confidence.is_enough(values, RULE))
        self.assertTrue(confidence.is_enough([99.0, 100.0, 101.0], RULE))  # 2.48 %


class Grades(unittest.TestCase):
    def test_the_bounds_are_the_sources(self):
        self.assertEqual([transports.grade_speed(share) for share in (0.9, 0.899, 0.8, 0.799, 0.7, 0.6, 0.599)],
                         ["A", "B", "B", "C", "C", "D", "F"])
        self.assertEqual([transports.grade_cpu(share) for share in (0.19, 0.2, 0.39, 0.4, 0.6, 0.79, 0.8, 1.9)],
                         ["A", "B", "B", "C", "D", "D", "F", "F"])

    def test_the_sources_own_figures_fall_as_it_says(self):
        rows = sources.over_delay()["netperf"]
        self.assertEqual(len(rows), 13)
        last = rows[-1]
        self.assertEqual((last["rtt_ms"], last["sctp_mbit"], last["tcp_mbit"]), (60, 266, 820))
        self.assertEqual([transports.grade_speed(last[name] / 1000) for name in ("sctp_mbit", "tcp_mbit")], ["F", "B"])


class MadeUp(Runner):
    speeds = staticmethod(lambda cell, number: 90.0)

    def _attempt(self, rig, work, cell, file, again):
        number = len(self.store.of(cell.key))
        return found(self.speeds(cell, number), proxies={"branch": 3.0, "datacenter": 6.0}
                     if cell.features == "carrier-udp" else None)


class Measured(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.scenario = scenario.parse(TEXT, "made")
        self.cells = self.scenario.cells()
        self.enterContext(mock.patch("runner.applications.make", return_value=Work()))

    def measure(self, speeds):
        with Store(self.folder / "run").writing(HEADER) as store:
            runner = MadeUp(self.scenario, store, Progress(600, io.StringIO()), 600)
            runner.make_rig = FakeRig
            runner.speeds = speeds
            runner.run()
        return store

    def test_a_steady_one_is_measured_three_times_and_a_restless_one_until_it_is_known(self):
        def speeds(cell, number):
            if cell.features == "sctp":  # never known so well
                return 60.0 + 30 * (number % 2)
            if cell.features == "carrier-udp" and number < 2:  # five times are enough to know
                return 88.0 + 4 * number
            return 90.0

        store = self.measure(speeds)
        counts = {(cell.features, cell.place.round_trip_ms, cell.place.mtu): len(store.of(cell.key)) for cell in self.cells}
        self.assertEqual(len(counts), 12)
        for (name, *_), count in counts.items():
            self.assertEqual(count, {"bare": 3, "sctp": 9, "carrier-udp": 5}[name])

    def test_the_report_has_means_intervals_grades_and_the_sources_beside_them(self):
        store = self.measure(lambda cell, number: {"bare": 95.0, "sctp": 60.0 + 30 * (number % 2), "carrier-udp": 85.0}
                             [cell.features] - (20 if cell.place.round_trip_ms else 0))
        figures = Figures(self.scenario, store)
        shown = list(transports.tables(figures, 0))
        self.assertEqual(len(shown), 3 * 2)
        speed, cpu, cost = shown[:3]
        self.assertEqual(speed.headings, ["round trip", "TCP CUBIC", "SCTP (usrsctp)", "Longhaul, UDP", "2007: SCTP", "2007: TCP"])
        self.assertEqual(speed.rows[0][1], "95.0 ± 0.00 A")
        self.assertEqual(speed.rows[1][1], "75.0 ± 0.00 C")
        self.assertEqual(speed.rows[1][4:], ["266.0 F", "820.0 B"])
        self.assertEqual([row[0] for row in speed.rows], ["0 ms", "60 ms", "mean"])
        self.assertEqual(speed.rows[2][1], "85.0 B")
        self.assertEqual(speed.rows[2][4:], ["628.8 D", "961.9 A"])  # over all of its delays
        # 10 % of iperf3 at the receiver; with the pair also 6 s of its proxy in 30 s.
        self.assertEqual((cpu.rows[0][1], cpu.rows[0][3]), ("10.0 ± 0.00 A", "30.0 ± 0.00 B"))
        self.assertEqual(cost.rows[0][1], "1.58 ± 0.00")  # 0.15 * 30 s for 2.85 Gbit
        unsure = transports.unsure(figures)
        self.assertEqual([row[1] for row in unsure.rows], ["9"] * 4)

        store.header["places"] = {}
        page, text, table = report.to_html(figures), report.to_markdown(figures), report.to_csv(figures)
        theirs = list(transports.their_tools())
        self.assertEqual(theirs[0].headings[1:], ["SCTP, Iperf 2.0.6", "TCP, Iperf 2.0.6", "SCTP, Netperf 2.4.3", "TCP, Netperf 2.4.3",
                                                  "SCTP, Netperf 2.4.6, STREAMS"])
        self.assertEqual(theirs[0].rows[0][:3], ["0 ms", "989.0 A", "994.0 A"])
        self.assertEqual(theirs[1].rows[0][1], "100.0 F")
        for words in ("2007, with each of the source", "Throughput, Mbit/s: 100 Mbit/s, MTU 9000", "Sandia", "usrsctp", "3 to 9 repetitions"):
            self.assertIn(words, page)
            self.assertIn(words, text)
        self.assertNotIn("SHA-256", page)  # which no stream is compared by
        self.assertEqual(len(table.splitlines()), 1 + len(store.samples))

    def test_failures_are_shown_and_have_no_mean(self):
        with Store(self.folder / "run").writing(HEADER) as store:
            for cell in self.cells:
                said = {"failure": "gone"} if cell.features == "sctp" else found(95.0)
                store.add({"key": cell.key, "repetition": 0, "size": 0, "at": "now", "load": 1.0, **said})
        speed = next(transports.tables(Figures(self.scenario, store), 0))
        self.assertEqual([row[2] for row in speed.rows], ["FAILED", "FAILED", "–"])
        self.assertEqual(speed.rows[0][1], "95.0 A")

    def test_emulated_machines_have_a_speed_and_no_processor(self):
        text = TEXT.replace('"sctp"', '"guest-sctp"').replace("[1500, 9000]", "[1500]")
        made = scenario.parse(text, "made")
        with Store(self.folder / "run").writing(HEADER | {"scenario": text}) as store:
            for cell in made.cells():
                said = found(9.5)
                if cell.features == "guest-sctp":
                    del said["cpu_share"]
                store.add({"key": cell.key, "repetition": 0, "at": "now", "load": 1.0, **said})
        store.header["places"] = {}
        figures = Figures(made, store)
        speed, cpu, cost = transports.tables(figures, 0)
        self.assertEqual(speed.headings[2], "SCTP (Linux), emulated")
        self.assertEqual(speed.rows[0][2], "9.50 F")
        for each in cpu, cost:
            self.assertEqual([row[2] for row in each.rows], ["not measured", "not measured", "–"])
        self.assertIn("SCTP (Linux), emulated", report.to_html(figures))

    def test_what_it_takes_is_foreseen(self):
        self.assertAlmostEqual(expected_seconds(self.cells[0], 600), 33, delta=5)


class Scenarios(unittest.TestCase):
    def refused(self, words, old, new):
        self.assertIn(old, TEXT)
        with self.assertRaisesRegex(scenario.BadScenario, words):
            scenario.parse(TEXT.replace(old, new, 1), "made")

    def test_what_cannot_be_meant_is_refused(self):
        self.refused("a matrix of its own", '"stream 30 s"', '"stream 30 s", "http"')
        self.refused("not an application", '"stream 30 s"', '"stream 0 s"')
        self.refused("'A' is not a transport", '"sctp"', '"A"')
        self.refused("'sctp' is only for streams", '"stream 30 s"', '"http"')
        self.refused("MTU", "[1500, 9000]", "[100]")
        self.refused("'guest-sctp' has an MTU of 1500 alone", '"sctp"', '"guest-sctp"')
        self.refused("not a size", '"16MB"', '"much"')
        self.refused("2 <= least <= most", "least = 3", "least = 1")
        self.refused("either", "[confidence]", "repetitions = 3\n[confidence]")

    def test_mtu_and_buffers_tell_places_apart(self):
        places = dict.fromkeys(str(cell.place) for cell in scenario.parse(TEXT, "made").cells())
        self.assertEqual(list(places), ["100 Mbit/s, 0 ms, buffers 16 MB", "100 Mbit/s, 60 ms, buffers 16 MB",
                                        "100 Mbit/s, 0 ms, MTU 9000, buffers 16 MB", "100 Mbit/s, 60 ms, MTU 9000, buffers 16 MB"])


if __name__ == "__main__":
    unittest.main()
