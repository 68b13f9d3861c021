# SPDX-License-Identifier: Apache-2.0
"""Packet sizes: which tests a scenario means, what they offer the line, and what is said and drawn of them."""

import pathlib
import tempfile
import unittest

import packet_report
import packet_tests
import plots
import report
import scenario
from packet_tests import PacketTest
from progress import expected_seconds
from store import Store
from summary import Figures

TEXT = """
title = "made up"
repetitions = 2
[[matrix]]
title = "one"
rates = ["10mbit"]
round_trips_ms = [30]
applications = ["packets tcp 32", "packets tcp 8192", "packets udp 32", "packets udp+12 32"]
features = ["bare", "carrier-udp"]
"""
HEADER = {"name": "made", "scenario": TEXT, "quick": False, "sessions": [], "places": {}}


def found(cell, seconds, percent=100.0):
    facts = dict.fromkeys(packet_tests.COLUMNS, 0) | {"percent_received": percent}
    return {"key": cell.key, "size": 1_000_000, "seconds": seconds, "client_seconds": seconds + 1, "at": "now", "load": 0.1,
            "wan_up": 1, "wan_down": 1, "line_late_p99_us": 1, "cpu_seconds": {}, "peak_bytes": {}, "carrier": None, "reasons": {},
            "packets": facts}


class Words(unittest.TestCase):
    def test_a_name_is_read_back_as_it_is_shown(self):
        for text in ("tcp 32", "udp 8192", "udp+12 512"):
            self.assertEqual(str(packet_tests.parse(text.split())), f"packets {text}")
        for text in ("tcp", "udp 15", "udp 65001", "udp+13 32", "tcp -5", "tcp 32 64", "sctp 32"):
            self.assertIsNone(packet_tests.parse(text.split()))

    def test_udp_is_offered_what_the_line_can_carry_with_its_headers_and_fragments(self):
        self.assertAlmostEqual(PacketTest("udp", 1472).payload_share(), 1472 / 1500)
        self.assertAlmostEqual(PacketTest("udp+12", 32).payload_share(), 32 / (32 + 12 + 8 + 20))
        self.assertAlmostEqual(PacketTest("udp", 4096).payload_share(), 4096 / (4096 + 8 + 3 * 20))
        place = scenario.Place("10mbit", 30.0)
        words = PacketTest("udp", 1472).words(5000, place)
        self.assertEqual(words[words.index("--rate") + 1], "9715.200kbit")
        words = PacketTest("udp+12", 32).words(5000, place)  # 44 bytes of 72 are what longhaul-ttcp counts
        self.assertEqual(words[words.index("--rate") + 1], "6050.000kbit")
        self.assertNotIn("--rate", PacketTest("tcp", 1472).words(5000, place))

    def test_udp_is_measured_without_the_pair_alone_and_stands_in_a_matrix_of_its_own(self):
        cells = scenario.parse(TEXT, "made").cells()
        self.assertEqual([(str(cell.application), cell.features) for cell in cells],
                         [("packets tcp 32", "bare"), ("packets tcp 32", "carrier-udp"), ("packets tcp 8192", "bare"),
                          ("packets tcp 8192", "carrier-udp"), ("packets udp 32", "bare"), ("packets udp+12 32", "bare")])
        self.assertAlmostEqual(expected_seconds(cells[4], 600), cells[4].size * 60 / 32 * 8 / 1e7, delta=5)
        for old, new, words in (('"packets tcp 32"', '"http"', "a matrix of its own"), ('"carrier-udp"', '"A"', "not a transport"),
                                ('"carrier-udp"', '"sctp"', "not a transport"), ("tcp 32", "tcp 3", "not an application"), ('"bare", ', "", "with 'bare' alone")):
            with self.subTest(new), self.assertRaisesRegex(scenario.BadScenario, words):
                scenario.parse(TEXT.replace(old, new, 1), "made")


class Report(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.scenario = scenario.parse(TEXT, "made")
        with Store(folder / "run").writing(HEADER) as self.store:
            for cell in self.scenario.cells():
                name = str(cell.application), cell.features
                if name == ("packets tcp 8192", "carrier-udp"):
                    self.store.add({"key": cell.key, "repetition": 0, "size": 0, "at": "now", "load": 1.0, "failure": "it burnt"})
                elif name != ("packets udp+12 32", "bare"):  # which was not reached
                    for repetition, seconds in enumerate((0.9, 1.1)):
                        self.store.add(found(cell, seconds, 97.5 if "udp" in name[0] else 100.0) | {"repetition": repetition})
        self.figures = Figures(self.scenario, self.store)

    def test_sizes_are_rows_and_what_carries_them_columns(self):
        speed, share = packet_report.tables(self.figures, 0)
        self.assertEqual(speed.headings, ["packet, bytes", "TCP CUBIC", "Longhaul, UDP", "UDP", "UDP+12"])
        middle = "8.08 ± 10.0 %"  # of 8.89 and 7.27 Mbit/s
        self.assertEqual(speed.rows, [["32", middle, middle, middle, "not measured"], ["8,192", middle, "FAILED", "–", "–"]])
        self.assertEqual(share.rows, [["32", "100.00", "100.00", "97.50", "–"], ["8,192", "100.00", "–", "–", "–"]])

    def test_the_page_has_the_three_plots_and_the_failure(self):
        if not plots.are_possible():
            self.skipTest("no matplotlib")
        self.assertEqual(len(list(packet_report.drawn(self.figures, 0))), 3)
        page, text, table = report.to_html(self.figures), report.to_markdown(self.figures), report.to_csv(self.figures)
        self.assertEqual(page.count("<svg"), 3)
        for words in ("it burnt", "Throughput, Mbit/s: 10 Mbit/s, 30 ms", "UDP+12 adds 12 bytes"):
            self.assertIn(words, page)
            self.assertIn(words, text)
        self.assertNotIn("SHA-256", page)
        self.assertIn("packets_percent_received", table.splitlines()[0])
        self.assertEqual(sum("97.5" in line for line in table.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
