# SPDX-License-Identifier: Apache-2.0
"""Several paths between the two daemons: here IPv4 and IPv6 on one line, each of which can be cut without the other."""

import unittest

from lab import DATACENTER_WAN, Lab, until
from link_test import Copies
from pair import Pair, path_roles, use_two_paths, wait_paths
from udp_test import moved, rules

# Of the link alone, TCP included: what bypasses it has other addresses.
CUT_IPV4 = (f"chain out {{ type filter hook output priority 0; ip daddr {DATACENTER_WAN} drop; }}\n"
            f"chain in {{ type filter hook input priority 0; ip saddr {DATACENTER_WAN} drop; }}\n")


class Paths(unittest.TestCase):
    def start(self, policy):
        self.lab = self.enterContext(Lab("51.84mbit,40"))
        self.pair = self.enterContext(use_two_paths(Pair(self.lab), policy))
        self.branch, self.datacenter = self.pair.sites
        wait_paths(self.pair)

    def check_cut(self, policy, before, after):
        self.start(policy)
        with Copies(self.lab, 12_000_000) as copies:
            moved(self.branch, 1_000_000)
            until(lambda: path_roles(self.branch) == before, 5, "the paths are used as configured")
            with rules(self.lab, "branch", CUT_IPV4):
                until(lambda: path_roles(self.branch) == after, 5, "the cut is noticed")
                self.assertEqual(copies.wait(), copies.expected())
                status = self.branch.longhaul("status")
                self.assertIn("path six: carries the link (no other path works)", status)
                self.assertIn('The path "four" to "datacenter" does not work', status)
                # The TCP connection was on the path that is cut; the other one takes its place.
                until(lambda: self.branch.link()["carriers_attached"] > 1, 45, "it is made again")
        for site in self.pair.sites:
            self.assertEqual(site.status()["flows"]["reset"], 0)
            self.assertEqual(site.link()["udp"]["fallbacks"], 0)
            self.assertTrue(site.process.lines_with("path_down"))
        until(lambda: path_roles(self.branch) == before, 30, "the path works again")

    def test_a_transfer_goes_on_over_the_other_path(self):
        self.check_cut("failover", {"four": "carries", "six": "standby"}, {"four": "none", "six": "carries"})

    def test_transfers_use_both_paths(self):
        self.start("sum")
        with Copies(self.lab, 12_000_000) as copies:
            self.assertEqual(copies.wait(), copies.expected())
        for site in self.pair.sites:
            for path in site.link()["paths"]:
                self.assertGreater(path["bytes_sent"], 2_000_000)

    def test_a_site_without_paths_uses_one_line(self):
        self.lab = self.enterContext(Lab("51.84mbit,40"))
        pair = Pair(self.lab)
        peer = pair.branch.settings["peer"][0]
        peer["path"] = [{"name": "four", "address": peer.pop("address")}]
        self.enterContext(pair)
        for site in pair.sites:
            until(lambda: site.link()["carrier"] == "udp", 15, f"{site.name} sends over UDP")
            self.assertEqual(site.link()["paths"], [])
        self.assertTrue(pair.branch.process.lines_with("paths_not_agreed"))


if __name__ == "__main__":
    unittest.main()
