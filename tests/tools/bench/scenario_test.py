# SPDX-License-Identifier: Apache-2.0
"""Scenario files: what they mean, and how one that cannot be meant is refused."""

import unittest

import scenario
import sources

SMALL = """
title = "small"
[[matrix]]
title = "one"
rates = ["OC-1", "10mbit"]
round_trips_ms = [0, 100]
applications = ["http", "tcp write 10 flows"]
features = ["bare", "A"]
"""


class Scenarios(unittest.TestCase):
    def refused(self, words, old="", new=""):
        self.assertIn(old, SMALL)
        with self.assertRaisesRegex(scenario.BadScenario, words):
            scenario.parse(SMALL.replace(old, new, 1) if old else new, "small")

    def test_every_included_scenario_can_be_run_in_full_and_quick(self):
        self.assertEqual(set(scenario.names()), {"wx-2006", "buyer", "loss", "reduction", "regression", "repeat", "short", "packet-sizes", "transactions",
                                                 "transports", "one-loss"})
        for name in scenario.names():
            for quick in (False, True):
                with self.subTest(name, quick=quick):
                    found = scenario.load(name, quick)
                    cells = found.cells()
                    self.assertEqual(len({cell.key for cell in cells}), len(cells))
                    for matrix in found.matrices:
                        self.assertTrue(not matrix.source or matrix.source in sources.names(), matrix.source)

    def test_one_loss_is_for_what_the_capture_can_show(self):
        found = scenario.load("one-loss").cells()[0].place
        self.assertEqual(found.lose_after_s, 15)
        self.assertIn("one packet lost after 15 s", str(found))
        self.refused("one packet is lost for", 'features = ["bare", "A"]', 'features = ["bare", "A"]\nlose_after_s = 5')

    def test_all_combinations_are_measured_place_by_place(self):
        cells = scenario.parse(SMALL, "small").cells()
        self.assertEqual(len(cells), 2 * 2 * 2 * 2)
        places = [cell.place for cell in cells]
        self.assertEqual(len(list(dict.fromkeys(places))), 4)
        self.assertEqual(places, sorted(places, key=list(dict.fromkeys(places)).index))

    def test_a_cell_that_two_matrices_name_is_measured_once_and_next_to_its_other_passes(self):
        more = SMALL + SMALL[SMALL.index("[[matrix]]"):].replace('["bare", "A"]', '["A"]\npasses = ["cold", "restart", "warm"]')
        cells = scenario.parse(more, "small").cells()
        self.assertEqual(len(cells), 2 * 2 * 2 * (1 + 3))
        where = [cell.turn for cell in cells if cell.features == "A" and cell.application.protocol == "http"]
        self.assertEqual(where[:3], ["cold", "warm", "restart"])

    def test_files_are_as_long_as_some_seconds_of_the_line_within_bounds(self):
        found = scenario.load("wx-2006")
        sizes = {cell.place.line_name(): cell.size for cell in found.cells()}
        self.assertEqual(sizes, {"T1": 5_000_000, "OC-1": 100_000_000})

    def test_transactions_are_named_as_they_are_read_and_over_udp_bare_alone(self):
        for text in ("txn EFT-SHORT", "txn EFT-LONG udp", "txn FILETRANSF-LONG 10 pairs file 100000 send 1461 window 8760"):
            self.assertEqual(str(scenario.parse_application(text)), text)
        found = scenario.parse(SMALL.replace('"http"', '"txn EFT-LONG udp", "txn FILETRANSF-LONG 2 pairs"'), "small")
        cells = [cell for cell in found.cells() if cell.application.protocol == "txn" and cell.place.round_trip_ms == 0]
        self.assertEqual({(cell.application.transaction.over, cell.features) for cell in cells},
                         {("udp", "bare"), ("tcp", "bare"), ("tcp", "A")})
        sizes = {(cell.place.line_name(), cell.application.transaction.over): cell.size for cell in cells}
        self.assertEqual(sizes, {("OC-1", "udp"): 100_000, ("10 Mbit/s", "udp"): 100_000,  # 1,000 transactions
                                 ("OC-1", "tcp"): 130_000_000, ("10 Mbit/s", "tcp"): 25_000_000})  # 20 s of the line
        for wrong in ("EFT", "EFT-SHORT tcp", "EFT-SHORT 0 pairs", "EFT-SHORT 1 pairs 2 pairs", "EFT-LONG file",
                      "EFT-LONG file 0", "EFT-LONG window 100", "EFT-LONG udp file -1", "EFT-LONG size 5"):
            self.refused("is not an application.*txn EFT-SHORT", '"http"', f'"txn {wrong}"')

    def test_the_tuned_hosts_are_a_place_of_their_own(self):
        cells = scenario.parse(SMALL.replace('"bare", "A"', '"bare", "tuned"'), "small").cells()
        self.assertEqual({cell.features for cell in cells if cell.place.tuned}, {"tuned"})

    def test_mistakes_are_named_with_their_place(self):
        self.refused("small: Invalid value", new="title = ")
        self.refused("small: 'title' is missing", 'title = "small"')
        self.refused("small: matrix 1: 'rates' is missing", 'rates = ["OC-1", "10mbit"]\n')
        self.refused("'fast' is not a rate", '"OC-1"', '"fast"')
        self.refused("'smtp' is not an application", '"http"', '"smtp"')
        self.refused("smbclient can only read and write", '"http"', '"smb files 3.1.1 smbclient"')
        self.refused("small: matrix 1: 'features' has 'Z'.*bare, tuned", '"A"', '"Z"')
        self.refused("small: matrix 1: unknown key 'rate'", "features", "rate = 5\nfeatures")
        self.refused("each entry of 'round_trips_ms' must be a number", "[0, 100]", '["fast"]')
        self.refused("losses are shares", "features", "losses = [5]\nfeatures")
        self.refused("the first pass is cold", "features", 'passes = ["warm"]\nfeatures')
        self.refused("has one pass", '["http", "tcp write 10 flows"]\n',
                     '["smb document SMB1 impacket"]\npasses = ["cold", "warm"]\n')
        self.refused("least = 'small' is not a size", 'title = "small"', 'title = "small"\nsize = { least = "small" }')
        self.refused("unknown key 'sizes'", 'title = "small"', 'title = "small"\nsizes = { least = "small" }')

    def test_a_scenario_that_is_not_there_says_which_are(self):
        with self.assertRaisesRegex(scenario.BadScenario, "nothere: there is no such scenario; included are .*wx-2006"):
            scenario.load("nothere")
        with self.assertRaisesRegex(scenario.BadScenario, "No such file"):
            scenario.load("nothere.toml")


if __name__ == "__main__":
    unittest.main()
