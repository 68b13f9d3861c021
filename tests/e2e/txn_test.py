# SPDX-License-Identifier: Apache-2.0
"""longhaul-txn between two hosts on a long line that loses packets: what the line allows bounds what is measured."""

import json
import signal
import unittest

from lab import BUILD, CLIENT, CLIENT6, SERVER, SERVER6, Lab, until

PROGRAM = BUILD / "tools" / "txn" / "longhaul-txn"
ROUND_TRIP_MS = 40


class Transactions(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab(f"20mbit,{ROUND_TRIP_MS},0.01"))
        self.agents = [self.lab.start(node, PROGRAM, "agent", "--listen", "::", clean_end=True)
                       for node in ("client", "server")]
        for agent in self.agents:
            until(lambda agent=agent: "listens" in agent.log(), what="the agent listens")

    def words(self, client, server, *words):
        return [PROGRAM, "run", "--from", client, "--to", server, *words]

    def rows(self, *words):
        return json.loads(self.lab.run("client", *self.words(*words), "--json", "-"))["rows"]

    def test_figures_are_within_the_limits_of_the_line(self):
        with self.subTest("EFT-SHORT"):
            rows = self.rows(CLIENT, SERVER, "--over", "tcp,udp", "--transactions", 15)
            # Connect and ask: two round trips; UDP has nothing to connect. Half of all lost nothing, or nearly.
            for row, trips in zip(rows, (2, 1), strict=True):
                self.assertEqual((row["outcome"], row["transactions"]), ("done", 15))
                self.assertGreater(row["response_ms"]["least"], trips * ROUND_TRIP_MS * 0.98)
                self.assertLess(row["response_ms"]["least"], trips * ROUND_TRIP_MS * 5)
        with self.subTest("FILETRANSF-LONG"):
            rows = self.rows(CLIENT6, SERVER6, "--script", "FILETRANSF-LONG", "--over", "tcp,udp", "--file", 50_000,
                             "--transactions", 3, "--mtu", 1500, "--pairs", 2)
            for row in rows:
                self.assertEqual((row["outcome"], row["transactions"]), ("done", 6))
                self.assertLess(row["mbit_per_s"], 20)
            window = self.rows(CLIENT, SERVER, "--script", "FILETRANSF-LONG", "--file", 50_000, "--transactions", 4,
                               "--window", 8_760)[0]  # that it must keep, however long the receiver's kernel looks on
            self.assertLess(window["mbit_per_s"], 8_760 * 8 / ROUND_TRIP_MS / 1000)
            # A window of 17,726 bytes for each round trip, from each of the two pairs.
            self.assertLess(rows[1]["mbit_per_s"], 2 * 17_726 * 8 / ROUND_TRIP_MS / 1000)
            self.assertGreater(rows[1]["mbit_per_s"], 0.02)

    def test_an_interrupted_run_reports_its_results_and_leaves_the_agents_ready(self):
        run = self.lab.start("client", *self.words(CLIENT, SERVER, "--script", "EFT-LONG", "--transactions", 1_000_000,
                                                   "--json", "-", "--quiet"))
        until(lambda: self.lab.stats()["a_to_b"]["packets_in"] > 60, what="transactions are under way")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 130)
        self.assertEqual(json.loads(run.log())["rows"][0]["outcome"], "interrupted")
        self.assertEqual(self.rows(CLIENT, SERVER, "--transactions", 2)[0]["transactions"], 2)
        self.agents[1].stop()
        away = self.lab.run("client", *self.words(CLIENT, SERVER), check=False)
        self.assertEqual(away.returncode, 1)
        self.assertIn(f"nothing listens at {SERVER}:7610; start `longhaul-txn agent` there", away.stderr)


if __name__ == "__main__":
    unittest.main()
