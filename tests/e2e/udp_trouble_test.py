# SPDX-License-Identifier: Apache-2.0
"""Paths that let UDP pass badly or not at all: what the link does, and what the operator is told."""

import contextlib
import unittest

import tcp
from lab import PATIENCE, SERVER, Lab, until
from pair import LINK_PORT, Pair


@contextlib.contextmanager
def dropped(lab, what):
    """UDP packets of the link that match (all, if nothing is named) are dropped as they leave the branch."""
    rules = f"""table inet trouble {{
      chain out {{ type filter hook output priority 0; udp dport {LINK_PORT} {what} drop; }}
    }}"""
    lab.run("branch", "nft", "-f", "-", text=rules)
    try:
        yield
    finally:
        lab.run("branch", "nft", "delete", "table", "inet", "trouble")


class UdpTrouble(unittest.TestCase):
    def transfer(self, lab, size):
        """To the server, every byte compared."""
        with tcp.Server(lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(lab, SERVER, server.port, size, 7), tcp.digest(size, 7))

    def test_udp_that_a_firewall_filters_is_logged_once_and_reported_at_both_sites(self):
        lab = self.enterContext(Lab())
        with dropped(lab, ""):
            pair = self.enterContext(Pair(lab))
            for site in pair.sites:
                problem = until(lambda: [each for each in site.status()["verdict"]["problems"] if "UDP" in each["sentence"]],
                                what="the verdict names UDP")
                self.assertIn("allow UDP", problem[0]["remedy"])
                self.assertIn("UDP", site.longhaul("status"))
                metric = 'longhaul_udp_unanswered{peer="%s"}' % site.link()["peer"]
                until(lambda: site.metric(metric) == 1, what="UDP is said to be unanswered")
            self.transfer(lab, 300_000)
        until(lambda: pair.branch.link()["udp"]["state"] == "up", 2 * PATIENCE, "UDP is tried again")
        for site in pair.sites:
            until(lambda: not site.link()["udp"]["unanswered"], what="UDP is answered")
            lines = site.process.lines_with(" udp_unanswered ")
            self.assertEqual(len(lines), 1, lines)

    def test_on_a_path_that_drops_large_bursts_packets_are_sent_one_by_one(self):
        lab = self.enterContext(Lab("100mbit,20"))
        pair = self.enterContext(Pair(lab, both={"features": {"transport": "udp", "compression": False,
                                                              "dedup_memory": False, "dedup_disk": False}}))
        until(lambda: pair.branch.link()["carrier"] == "udp", what="UDP carries")
        # The kernel's own segmentation comes behind this rule, so it meets whole bursts.
        with dropped(lab, "meta length > 4000"):
            # It is certain after some hundred bursts; a busy machine sends more single packets and fewer of those.
            for _ in range(10):
                self.transfer(lab, 8_000_000)
                if pair.branch.link()["udp"]["drops_bursts"]:
                    break
            self.assertTrue(pair.branch.link()["udp"]["drops_bursts"])
            self.assertFalse(pair.branch.link()["udp"]["segments_in_kernel"])
            self.assertIn("drops bursts of UDP packets", pair.branch.longhaul("status"))
            lines = pair.branch.process.lines_with(" udp_bursts_dropped ")
            self.assertEqual(len(lines), 1, lines)
        self.assertFalse(pair.datacenter.link()["udp"]["drops_bursts"])


if __name__ == "__main__":
    unittest.main()
