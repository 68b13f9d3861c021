# SPDX-License-Identifier: Apache-2.0
"""Results: kept when a run is cut off, shown in a report with all that went wrong, compared with another run's."""

import contextlib
import csv
import errno
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import compare
import main
import report
import scenario
from store import Store, StoreFailure

TEXT = """
title = "results & <reports>"
repetitions = 3
[[matrix]]
title = "one"
rates = ["OC-1"]
round_trips_ms = [0, 100]
losses = [0, 0.1]
applications = ["smb read SMB1 impacket"]
features = ["bare", "T", "A"]
source = "throughput cifs"
[[matrix]]
title = "two"
rates = ["T1"]
round_trips_ms = [30]
applications = ["http"]
features = ["bare", "T"]
passes = ["cold", "warm"]
[[pending]]
rows = "MAPI"
why = "not there"
"""
HEADER = {"name": "made", "scenario": TEXT, "quick": False, "sessions": [{
    "command": "longhaul-bench run made", "versions": {"longhaul": "1"},
    "machine": {"cpu": "a CPU", "cores": 2, "memory_gib": 4, "kernel": "6", "commit": "abc", "time": "today"}}]}


def sample(cell, repetition, seconds, **more):
    return {"key": cell.key, "repetition": repetition, "size": cell.size, "at": "now", "load": 0.5, "seconds": seconds,
            "client_seconds": seconds + 0.001, "wan_up": 1000, "wan_down": cell.size, "line_late_p99_us": 100,
            "cpu_seconds": {} if cell.features == "bare" else {"branch": 0.1, "datacenter": 0.2},
            "peak_bytes": {} if cell.features == "bare" else {"branch": 50_000_000, "datacenter": 60_000_000},
            "repeated_share": 0.0, "foreign_share": 0.0, "marks_ms": [1, 1], "interval": 0.1, "series": [1000] * 20,
            "carrier": "udp", "reasons": {}, "discarded": [], **more}


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.cells = scenario.parse(TEXT, "made").cells()

    def filled(self, name, factor=1.0, change=None):
        """A run in which A is ten times as fast as bare, and what happened to single cells."""
        with Store(self.folder / name).writing(json.loads(json.dumps(HEADER))) as store:
            for cell in self.cells:
                for repetition in range(3):
                    seconds = (10 if cell.features == "bare" else 5 if cell.features == "T" else 1) * factor * \
                        (1 + 0.01 * repetition)
                    found = sample(cell, repetition, seconds)
                    if change:
                        found = change(cell, found)
                    store.add(found)
        return Store(self.folder / name).read()

    def text(self, store, name, with_plots=False):
        """Plots take seconds each: one test is enough for them."""
        with contextlib.nullcontext() if with_plots else mock.patch.object(report.plots, "matplotlib", None):
            report.write(store)
        return (store.folder / name).read_text()

    def test_the_report_shows_ours_beside_the_sources_with_gains_and_spreads(self):
        store = self.filled("run")
        text = self.text(store, "report.md")
        size = self.cells[0].size
        speed = f"{size / 10.1 / 1024:,.0f} ± 1.0 %"
        row = next(line for line in text.splitlines() if line.startswith("| OC-1, 100 ms |"))
        self.assertIn(speed, row)
        self.assertIn("+900 %", row)
        for figure in ("126.1", "139.5", "774.7", "+514 %"):
            self.assertIn(figure, row)
        self.assertIn("| MAPI | not there |", text)
        self.assertIn("longhaul-bench run made", text)
        page = self.text(store, "report.html", with_plots=True)
        self.assertIn("results &amp; &lt;reports&gt;", page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", "").replace("http://purl", "").replace(
            "http://creativecommons", ""))  # everything is in it
        self.assertEqual("<svg" in page, report.plots.are_possible())

    def test_raw_figures_are_there_as_csv_and_json(self):
        store = self.filled("run")
        rows = list(csv.DictReader(io.StringIO(self.text(store, "figures.csv"))))
        self.assertEqual(len(rows), 3 * len(self.cells))
        self.assertEqual({row["application"] for row in rows}, {"smb read SMB1 impacket", "http"})
        self.assertEqual(len(json.loads((store.folder / "results.json").read_text())["samples"]), len(rows))

    def test_transactions_have_response_times_in_every_form(self):
        text = TEXT.replace('applications = ["http"]', 'applications = ["txn EFT-SHORT 2 pairs", "txn EFT-LONG udp"]').replace(
            'passes = ["cold", "warm"]', "")
        self.cells = scenario.parse(text, "made").cells()
        header = json.loads(json.dumps(HEADER)) | {"scenario": text}
        with Store(self.folder / "run").writing(header) as store:
            for cell in self.cells:
                seconds = 10.0 if cell.features == "bare" else 5.0
                times = {name: seconds * place for place, name in enumerate(report.RESPONSE, 1)}
                store.add(sample(cell, 0, seconds, size=1000, transactions=10, response_ms=times, datagrams_sent_again=3))
        page = self.text(store, "report.html", with_plots=True)
        self.assertIn("Response time, ms", page)
        rows = [line for line in self.text(store, "report.md").splitlines() if line.startswith("| EFT-SHORT over TCP, 2 pairs")]
        self.assertEqual(rows[0], "| EFT-SHORT over TCP, 2 pairs | T1, 30 ms | 0.0008 | 0.0016 | 1.00 | 2.00 | +100 % |")
        self.assertEqual(rows[1], "| EFT-SHORT over TCP, 2 pairs | T1, 30 ms | 10.0 | 40.0 | 50.0 | 60.0 | 5.00 | 20.0 | 25.0 | "
                                  "30.0 |")
        row = next(row for row in csv.DictReader(io.StringIO(self.text(store, "figures.csv")))
                   if row["application"] == "txn EFT-LONG udp")
        self.assertEqual((row["transactions"], row["mbit_per_second"], row["response_p99_ms"], row["datagrams_sent_again"]),
                         ("10", "0.000800", "60.0000", "3"))
        self.assertIn("longhaul-txn's own clock compared with the capture", page.replace("&#x27;", "'"))

    def test_failures_cuts_and_doubts_are_shown(self):
        def change(cell, found):
            if cell.place.loss and cell.features == "bare":
                return {name: found[name] for name in ("key", "repetition", "size", "load", "at", "wan_up", "wan_down")} | {
                    "cut": 600, "moved_until_cut": 1024 * 600 * 50}
            if cell.place.loss and cell.features == "T":
                return {name: found[name] for name in ("key", "repetition", "size", "load", "at")} | {"failure": "WRONG BYTES"}
            if cell.turn == "warm" and cell.features == "T":
                return found | {"doubt": "2 % of the capture is other traffic", "discarded": ["the capture lacks 7 packets"]}
            return found

        text = self.text(self.filled("run", change=change), "report.md")
        row = next(line for line in text.splitlines() if line.startswith("| OC-1, 0 ms, loss 10 % |"))
        self.assertIn("cut after 600 s (50.0 until then)", row)
        self.assertIn("FAILED", row)
        bound = 600 / 1.01 - 1  # A took 1.01 s, bare more than 600
        self.assertIn(f"> +{100 * bound:,.0f} %", row)
        for words in ("2 FAILED", "2 cut off", "1 doubtful", "discarded and repeated", "WRONG BYTES", "lacks 7 packets",
                      "2 % of the capture is other traffic"):
            self.assertIn(words, text)

    def test_what_is_slower_than_the_bare_line_beyond_the_noise_is_listed(self):
        def change(cell, found):
            factor = {0: 1.2, 100: 1.01}[cell.place.round_trip_ms] if cell.features == "T" and not cell.place.tuned and \
                cell.application.protocol == "smb" else None
            return found | {"seconds": 10 * factor} if factor else found

        text = self.text(self.filled("run", change=change), "report.md")
        self.assertIn("2 slower than the bare line", text)
        part = text[text.index("## Slower than the bare line"):text.index("## CPU and memory of the proxies")]
        self.assertEqual(part.count("| T |"), 2)
        self.assertNotIn("100 ms", part)

    def test_a_run_with_nothing_measured_has_a_report(self):
        with Store(self.folder / "run").writing(json.loads(json.dumps(HEADER))) as store:
            self.assertIn("0 of 16 cells measured", self.text(store, "report.md", with_plots=True))

    def test_a_run_without_matplotlib_has_a_report_that_says_so(self):
        self.assertIn("python3-matplotlib is not installed", self.text(self.filled("run"), "report.html"))

    # -- the store

    def test_a_line_that_was_cut_off_is_measured_again(self):
        store = self.filled("run")
        data = store.samples_file.read_bytes()
        store.samples_file.write_bytes(data[:-20])
        with Store(store.folder).writing(json.loads(json.dumps(HEADER))) as again:
            self.assertEqual(len(again.samples), len(store.samples) - 1)
            last = self.cells[-1]
            self.assertFalse(again.has(last.key, 2))
            again.add(sample(last, 2, 1))
            self.assertEqual(len(again.header["sessions"]), 2)
        self.assertEqual(len(Store(store.folder).read().samples), len(store.samples))

    def test_folders_are_not_mixed_up(self):
        self.filled("run")
        other = json.loads(json.dumps(HEADER)) | {"scenario": TEXT + "\n# another", "name": "another"}
        with self.assertRaisesRegex(StoreFailure, "contains another run \\(scenario made\\)"):
            with Store(self.folder / "run").writing(other):
                pass
        with Store(self.folder / "run").writing(json.loads(json.dumps(HEADER))):
            with self.assertRaisesRegex(StoreFailure, "another run is writing"):
                with Store(self.folder / "run").writing(json.loads(json.dumps(HEADER))):
                    pass
        with self.assertRaisesRegex(StoreFailure, "contains no run"):
            Store(self.folder / "nothing").read()

    def test_a_full_disk_is_a_sentence_and_what_was_measured_stays(self):
        store = self.filled("run")
        with mock.patch("store.os.fsync", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            with self.assertRaisesRegex(StoreFailure, "the disk under .* is full; the results so far are kept"):
                store.add(sample(self.cells[0], 0, 1))
        self.assertEqual(len(Store(store.folder).read().samples), len(store.samples))

    # -- comparing

    def test_differences_within_the_noise_are_none(self):
        _, slower, faster, alone = compare.compare(self.filled("before"), self.filled("after", 1.01))
        self.assertEqual((slower, faster, alone), ([], [], []))

    def test_what_is_slower_or_faster_beyond_the_noise_is_named(self):
        def change(cell, found):
            factor = {"bare": 1.0, "T": 1.2, "A": 0.5}[cell.features]
            return found | {"seconds": found["seconds"] * factor}

        table, slower, faster, _ = compare.compare(self.filled("before"), self.filled("after", change=change))
        self.assertEqual({key.split(" | ")[3] for key in slower}, {"T"})
        self.assertEqual({key.split(" | ")[3] for key in faster}, {"A"})
        self.assertEqual(len(table.rows), len(self.cells))

    def test_what_fails_now_is_slower(self):
        def change(cell, found):
            if cell.features == "A":
                return {"key": found["key"], "repetition": found["repetition"], "size": 1, "failure": "WRONG BYTES"}
            return found

        _, slower, _, _ = compare.compare(self.filled("before"), self.filled("after", change=change))
        self.assertEqual({key.split(" | ")[3] for key in slower}, {"A"})
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            words = ["compare", str(self.folder / "before"), str(self.folder / "after")]
            self.assertEqual((main.main(words), main.main([*words, "--fail-if-slower"])), (0, 1))
        self.assertIn("it FAILS now", output.getvalue())


class OverTime(unittest.TestCase):
    def test_what_is_left_at_the_end_is_no_drop(self):
        sample = {"seconds": 2.35, "interval": 0.1, "series": [10] * 23 + [5]}
        self.assertEqual(report.plots.whole_intervals(sample, False), (0.1, [10] * 23))
        self.assertEqual(report.plots.whole_intervals(sample, True), (1.0, [100, 100]))

    def test_where_one_packet_was_lost_each_second_is_shown_however_long(self):
        sample = {"seconds": 400.5, "interval": 1.0, "series": [7] * 401}
        self.assertEqual(report.plots.whole_intervals(sample, True), (1.0, [7] * 400))
        self.assertEqual(report.plots.whole_intervals(sample, False), (10.0, [70] * 40))


if __name__ == "__main__":
    unittest.main()
