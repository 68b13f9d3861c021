# SPDX-License-Identifier: Apache-2.0
"""Destinations given as names where there are several peers: each name is resolved at the site that claims it."""

import unittest

import socks
import tcp
from lab import BRANCH, DATACENTER_WAN, SERVER, Lab, until
from pair import Pair, Site

PORT = 7700  # of the second far site's link, beside the first one in the same node


class Names(unittest.TestCase):
    def test_a_name_is_resolved_by_the_peer_with_the_longest_match(self):
        lab = self.enterContext(Lab())
        pair = Pair(lab, branch={"socks": {"listen": f"{BRANCH}:1080"}})
        other = Site(lab, "datacenter", "other")
        first = pair.branch.settings["peer"][0]
        first["names"] = ["*.corp"]
        pair.branch.settings["peer"].append(
            {"name": other.name, "fingerprint": other.fingerprint, "address": f"{DATACENTER_WAN}:{PORT}",
             "names": ["*.lab.corp", "files.corp"]})
        other.settings = {
            "site": other.name, "state_dir": str(other.folder / "state"),
            "identity": {"certificate": "other.crt", "private_key": "other.key"},
            "link": {"listen": f"0.0.0.0:{PORT}", "allow": [SERVER]},
            "peer": [{"name": "branch", "fingerprint": pair.branch.fingerprint, "networks": ["10.10.1.0/24"]}],
            "intercept": {"port": 7651}, "control": {"listen": "127.0.0.1:7602"}}
        # Each far site knows all names, and every other address than the server's is refused.
        pair.datacenter.hosts = {"www.corp": SERVER, "a.lab.corp": "127.0.0.1", "files.corp": "127.0.0.1"}
        other.hosts = {"www.corp": "127.0.0.1", "a.lab.corp": SERVER, "files.corp": SERVER}
        other.start()
        self.addCleanup(other.stop)
        pair.datacenter.start()
        self.addCleanup(pair.datacenter.stop)
        pair.branch.start()
        self.addCleanup(pair.branch.stop)
        until(lambda: [link["state"] for link in pair.branch.status()["links"]] == ["up", "up"], what="both links")
        with tcp.Server(lab, tcp.report_digest) as server:
            for name, peer in (("www.corp", "datacenter"), ("A.Lab.Corp", "other"), ("files.corp", "other")):
                with self.subTest(name):
                    connection, reply = socks.connect(lab, (BRANCH, 1080), (name, server.port))
                    self.assertEqual(reply, "succeeded")
                    self.assertEqual(pair.branch.flows()[-1]["peer"], peer)
                    connection.send_made(100_000, 1)
                    connection.end()
                    wanted = tcp.digest(100_000, 1)
                    self.assertEqual(connection.receive_rest(), (f"{wanted.size} {wanted.sha256}\n".encode(), "end"))
                    connection.close()
                    pair.branch.wait_flows(0)
            # No peer claims it: it bypasses the link, and the branch cannot resolve it.
            self.assertEqual(socks.connect(lab, (BRANCH, 1080), ("www.example.invalid", 80))[1], "host unreachable")
        self.assertEqual(pair.branch.reasons(), {"optimised": 3, "no_peer_for_network": 1})


if __name__ == "__main__":
    unittest.main()
