# SPDX-License-Identifier: Apache-2.0
"""longhaul-bench with a lab, servers and captures of its own: a small scenario to its report."""

import csv
import itertools
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from lab import BUILD, REPOSITORY, alone, until

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

TRANSACTIONS = """
title = "transactions"
[quick]
size = { transactions = 10 }
[[matrix]]
title = "one"
rates = ["OC-1"]
round_trips_ms = [30]
applications = ["txn EFT-SHORT 2 pairs", "txn EFT-LONG udp"]
features = ["bare", "T"]
"""


STREAMS = """
title = "streams"
[quick]
repetitions = 1
[[matrix]]
title = "one"
rates = ["OC-1"]
round_trips_ms = [10]
mtus = [9000]
buffers = "4MB"
applications = ["stream 1 s"]
features = ["bare", "sctp", "carrier-tcp"]
source = "transports"
"""

GUESTS = """
title = "emulated machines"
[quick]
repetitions = 1
[[matrix]]
title = "one"
rates = ["2mbit"]
round_trips_ms = [10]
applications = ["stream 2 s"]
features = ["bare", "guest-tcp", "guest-sctp"]
source = "transports"
"""

ONE_LOSS = """
title = "one packet"
[quick]
size = { seconds = 4, least = "1MB", most = "10MB" }
[[matrix]]
title = "one"
rates = ["10mbit"]
round_trips_ms = [30]
lose_after_s = 1.5
source = "long paths"
applications = ["tcp read"]
features = ["bare", "F"]
"""

PACKETS = """
title = "packets"
[quick]
size = { seconds = 1, least = "200kB", most = "200kB" }
[[matrix]]
title = "one"
rates = ["10mbit"]
round_trips_ms = [10]
applications = ["packets tcp 512", "packets udp 4096", "packets udp+12 64"]
features = ["bare", "carrier-udp"]
"""


def processes_that_name(text):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if text in path.read_text(errors="replace") else []
        except OSError:  # it has ended meanwhile
            pass
    return found


class Bench(unittest.TestCase):
    def run_quick(self, scenario):
        """The folder of the run."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "small.toml").write_text(scenario)
        words = [PROGRAM, "run", folder / "small.toml", "--quick", "--into", folder / "run", "--alongside"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False,
                              env=dict(os.environ, LONGHAUL_BUILD=str(BUILD)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return folder / "run"

    @staticmethod
    def figures(run):
        with open(run / "figures.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_a_quick_run_measures_bare_and_pair_and_writes_its_report(self):
        run = self.run_quick(SCENARIO)
        rows = {(row["features"], row["pass"]): row for row in self.figures(run)}
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
        page = (run / "report.html").read_text()
        self.assertIn("SMB1, file read by impacket", page)
        self.assertIn("4 of 4 cells measured", page)

    def test_an_interrupted_run_keeps_what_it_has_and_leaves_nothing_running(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "small.toml").write_text(TRANSACTIONS)
        log = folder / "log"
        words = [PROGRAM, "run", folder / "small.toml", "--quick", "--into", folder / "run", "--alongside"]
        with open(log, "wb") as file:
            run = subprocess.Popen(words, stdout=file, stderr=file, env=dict(os.environ, LONGHAUL_BUILD=str(BUILD)),
                                   start_new_session=True,  # and as at a terminal, whatever this test was started with
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(run.wait, 60)
        self.addCleanup(run.kill)
        until(lambda: "[1/3]" in log.read_text(), 120, "the first measurement is there")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(120), 130, log.read_text())
        self.assertRegex(log.read_text().splitlines()[-1],
                         r"^longhaul-bench: interrupted after [12] of 3 measurements, which are kept and reported in .*/run; run the "
                         r"same command again to continue$")
        self.assertTrue(self.figures(folder / "run"))
        self.assertEqual([name for name in os.listdir("/run/netns") if name.startswith(f"bench-{run.pid}-")], [])
        until(lambda: not processes_that_name(f"bench-{run.pid}-"), what="no process of it is left")

    def test_transactions_are_timed_by_their_agents_and_by_the_capture(self):
        rows = {(row["application"], row["features"]): row for row in self.figures(self.run_quick(TRANSACTIONS))}
        self.assertEqual(len(rows), 3)  # UDP is not the pair's business
        for (application, features), row in rows.items():
            with self.subTest(application, features=features):
                self.assertFalse(row["failure"] or row["doubt"])
                self.assertEqual(int(row["transactions"]), 20 if "pairs" in application else 10)
                # Bare each EFT-SHORT takes a round trip to connect and one to ask; the pair answers for the server.
                trips = 2 if "SHORT" in application and features == "bare" else 1
                self.assertGreater(float(row["response_least_ms"]), trips * 29)
                self.assertGreater(float(row["seconds"]), 10 * trips * 0.029)
                # One clock is the agent's, the other the capture's: the client reads later than a packet arrives, on a busy
                # host seconds later.
                self.assertLess(abs(float(row["client_seconds"]) - float(row["seconds"])), 0.5 * float(row["seconds"]) + 10)

    def test_packet_sizes_are_counted_by_their_receiver(self):
        run = self.run_quick(PACKETS)
        rows = {(row["application"], row["features"]): row for row in self.figures(run)}
        self.assertEqual(len(rows), 4)  # UDP is not the pair's business
        for (application, features), row in rows.items():
            with self.subTest(application, features=features):
                self.assertFalse(row["failure"])
                self.assertEqual(row["carrier"] or "none", "none" if features == "bare" else "udp")
                # Of UDP a busy host sends in bursts, which the queue of the line drops.
                self.assertGreater(float(row["packets_percent_received"]), 99 if "tcp" in application else 0)
                self.assertLessEqual(float(row["packets_percent_received"]), 100)
                self.assertGreater(float(row["mbit_per_second"]), 0)
                self.assertGreater(int(row["packets_sent"]), 0)  # how many is a matter of how busy the host is
                if application.endswith(" 4096"):
                    self.assertEqual(int(row["packets_fragments_sent"]), 3 * int(row["packets_sent"]))
        self.assertIn("Received over packet size", (run / "report.html").read_text())

    def test_transports_are_compared_with_large_packets(self):
        run = self.run_quick(STREAMS)
        rows = {row["features"]: row for row in self.figures(run)}
        self.assertEqual(set(rows), {"bare", "sctp", "carrier-tcp"})
        for what, row in rows.items():
            with self.subTest(what):
                self.assertFalse(row["failure"])
                # What arrived was on the line; a busy host may see the first of it late, so how fast is not compared.
                self.assertGreater(int(row["size"]), 100_000)
                self.assertGreater(int(row["wan_up"]), int(row["size"]))
        # MTU 9000: less 40 bytes of IPv4 and TCP and 12 of timestamps; less 20 of IPv4, 12 of SCTP, 16 of the chunk.
        self.assertEqual((rows["bare"]["segment_bytes"], rows["sctp"]["segment_bytes"]), ("8948", "8952"))
        self.assertEqual(rows["carrier-tcp"]["carrier"], "tcp")
        self.assertIn("Throughput, Mbit/s: OC-1, MTU 9000", (run / "report.html").read_text())

    def test_the_repair_of_one_lost_packet_is_seen_where_and_when_it_was_lost(self):
        run = self.run_quick(ONE_LOSS)
        samples = {line["key"].split(" | ")[3]: line for line in map(json.loads, (run / "samples.jsonl").read_text().splitlines())}
        self.assertEqual(set(samples), {"bare", "F"})
        for what, sample in samples.items():
            with self.subTest(what):
                self.assertNotIn("failure", sample)
                self.assertEqual(sample["line_lost"], 1)
                self.assertGreater(sample["repair"]["after_s"], 0.5)
                self.assertLess(sample["repair"]["after_s"], 4)
                self.assertTrue(sample["repair"]["acknowledged"])
        # Bare the client acknowledges nothing behind the lost packet for a round trip or longer, until that very packet comes
        # again. On a busy host it may be the last of a flight: then none was ahead of it, or it comes behind what is shown.
        repair = samples["bare"]["repair"]
        standing = [(after - before, upto, after) for (before, upto), (after, _) in itertools.pairwise(repair["acknowledged"])
                    if after > 29]
        before, upto = repair["acknowledged"][-1]
        shown_until = max(when for when, *_ in repair["segments"] + repair["acknowledged"])
        longest, lost, until = max(standing + [(shown_until - before, upto, None)])
        self.assertGreater(longest, 29, repair["acknowledged"])
        if until is not None:
            self.assertTrue([when for when, first, _ in repair["segments"] if first <= lost and 29 < when <= until],
                            f"the packet at {lost} did not come again before {until}: {repair['segments']}")
        page = (run / "report.html").read_text()
        self.assertIn("one packet lost", page)
        self.assertIn("2002: one TCP connection over real long paths", page)

    @alone
    def test_sctp_of_linux_is_measured_between_emulated_machines(self):
        run = self.run_quick(GUESTS)
        rows = {row["features"]: row for row in self.figures(run)}
        self.assertEqual(set(rows), {"bare", "guest-tcp", "guest-sctp"})
        for what, row in rows.items():
            with self.subTest(what):
                self.assertFalse(row["failure"])
                # An emulated machine on a busy host is slow; how fast it is is not what is tested.
                self.assertGreater(int(row["size"]), 10_000)
                self.assertGreater(float(row["seconds"]), 0)
                self.assertGreater(int(row["wan_up"]), int(row["size"]))  # it was this line that carried it
        self.assertIn("SCTP (Linux), emulated", (run / "report.html").read_text())


if __name__ == "__main__":
    unittest.main()
