# SPDX-License-Identifier: Apache-2.0
"""What `longhaul why` says before a flow exists, while it hangs, and after somebody reset it."""

import re
import unittest

import tcp
from lab import CLIENT, SERVER, SERVER6, Lab, until
from pair import PROGRAM, Pair, link_cut_off


class Why(unittest.TestCase):
    def start(self, **settings):
        self.lab = self.enterContext(Lab())
        self.server = self.enterContext(tcp.Server(self.lab, tcp.echo))
        self.pair = self.enterContext(Pair(self.lab, **settings))
        self.branch, self.datacenter = self.pair.sites
        self.tuple = f"{CLIENT}-{SERVER}:{self.server.port}"

    def test_why_says_that_a_flow_would_not_be_intercepted(self):
        self.start()
        self.assertIn("use the link to datacenter", self.branch.longhaul("why", self.tuple))
        self.branch.longhaul("intercept", "down")
        why = self.branch.longhaul("why", self.tuple)
        self.assertIn("would not reach this proxy", why)
        self.assertIn("run longhaul intercept up", why)
        self.branch.longhaul("intercept", "up")
        self.assertIn("use the link to datacenter", self.branch.longhaul("why", self.tuple))
        self.assertIn("The client is this host", self.branch.longhaul("why", f"10.10.1.1-{SERVER}:80"))

    def test_why_explains_a_server_before_there_is_a_client(self):
        self.start(datacenter={"link": {"allow": [SERVER]}})
        for words in ((SERVER, str(self.server.port)), (f"{SERVER}:{self.server.port}",)):
            self.assertIn(f"a new connection from {CLIENT} (assumed) to {SERVER}:{self.server.port} would use the link to datacenter",
                          self.branch.longhaul("why", *words))
        self.assertIn("would use the link to datacenter", self.branch.longhaul("why", SERVER6, "445"))
        self.assertIn("would bypass the link", self.branch.longhaul("why", "192.0.2.1", "443"))
        self.branch.longhaul("intercept", "down")
        self.assertIn("run longhaul intercept up", self.branch.longhaul("why", SERVER, "445"))
        self.branch.longhaul("intercept", "up")
        # The far side assumes a client of its peer.
        self.assertIn("come over the link from branch and reach its server from here", self.datacenter.longhaul("why", SERVER, "80"))
        self.assertIn("peer_refused", self.datacenter.longhaul("why", "10.10.2.77", "80"))

    def test_the_screens_fit_100_columns_and_say_what_passes_now(self):
        self.start()
        here, there = tcp.pair(self.lab)
        until(lambda: (here.send(bytes(50_000)), there.receive(50_000), (self.branch.status()["throughput"] or {}).get("lan_in_bits"))[-1],
              what="something passes")
        link = until(lambda: (found := self.branch.link())["throughput"] and found, what="the link's rates")
        self.assertGreater(link["throughput"]["out_bits"], 0)
        # Where processes stand still, UDP may count as one that does not answer for a moment.
        status = until(lambda: re.match(r"OK; saved .*; WAN now .* out, .* in\n", text := self.lab.run("branch", PROGRAM, "status"))
                       and text, what="all is well")
        number = str(self.branch.flows()[0]["id"])
        for text in (status, *(self.lab.run("branch", PROGRAM, *words) for words in (("flows",), ("why", number), ("top", "--count", "1")))):
            self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])

    def test_why_names_the_interface_that_should_have_been_named(self):
        self.start(branch={"intercept": {"interfaces": ["wan0"]}})
        why = self.branch.longhaul("why", self.tuple)
        self.assertRegex(why, r"not_intercepted")
        self.assertRegex(why, r"leads through lan0, which \[intercept\] interfaces \(wan0\) does not name")

    def test_the_far_side_explains_what_it_would_connect_for_a_peer(self):
        self.start(datacenter={"link": {"allow": ["10.10.2.77"]}})
        self.assertIn("peer_refused", self.datacenter.longhaul("why", self.tuple))
        self.assertIn("come over the link from branch",
                      self.datacenter.longhaul("why", f"{CLIENT}-10.10.2.77:80"))
        for port in (7, 8, 9):
            self.assertTrue(tcp.is_reset(self.lab, SERVER, port))
        self.pair.wait_flows(0)
        self.assertEqual(self.datacenter.reasons()["peer_refused"], 3)
        self.assertEqual(self.datacenter.status()["flows"]["reset_by"]["far"], 3)
        refused = self.datacenter.process.lines_with(" flow_refused")
        self.assertEqual(len(refused), 1, refused)
        self.assertIn("[link] allow of this site", refused[0])

    def test_why_says_which_party_reset_a_flow(self):
        self.start()
        for number, party in enumerate(("server", "client"), 1):
            here, there = tcp.pair(self.lab, SERVER)
            here.send(b"question")
            self.assertEqual(there.receive(8), b"question")
            (there if party == "server" else here).reset()
            self.assertEqual((here if party == "server" else there).receive_rest()[1], "reset")
            self.pair.wait_flows(0)
            for site in self.pair.sites:
                self.assertIn(f"reset by the {party}", site.longhaul("why", str(number)))
                self.assertEqual(site.status()["flows"]["reset_by"][party], 1)
        # Nobody listens at this port.
        self.assertTrue(tcp.is_reset(self.lab, SERVER, 9))
        self.assertIn("reset by the server", until(
            lambda: "no longer live" in (said := self.branch.longhaul("why", "3")) and said))
        self.assertIn("destination_refused", self.datacenter.longhaul("why", "3"))

    def test_why_says_that_a_live_flow_waits_for_a_cut_wan(self):
        self.start()
        here, there = tcp.pair(self.lab, SERVER)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        with link_cut_off(self.lab, "drop"):
            for site in self.pair.sites:
                why = until(lambda: "waits for the link" in (said := site.longhaul("why", "1")) and said)
                self.assertNotIn("none needed", why)
                self.assertRegex(why, "link_silent|link_down")
        self.pair.wait_link()
        here.send(b"more")
        self.assertEqual(there.receive(4), b"more")


if __name__ == "__main__":
    unittest.main()
