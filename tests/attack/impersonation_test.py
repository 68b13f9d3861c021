# SPDX-License-Identifier: Apache-2.0
"""A peer with a valid key asks for connections to servers under addresses of others: of the datacenter's hosts, of
another site's, of the proxy itself."""

import unittest

import tcp
from hostile_peer import ABORT, ANSWER, DATA, OPEN_CREDIT, HostilePeer, record
from lab import CLIENT, CLIENT6, DATACENTER, SERVER, SERVER6, Lab, until
from pair import NETWORKS, Pair, Site

AUTOMATIC, AS_CLIENT = 0, 1
OTHER_SITE = "10.10.3.0/24"
CLIENT_NOT_ALLOWED = b"\x08\0"


class Impersonation(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        other = Site(self.lab, "branch", "other")
        self.pair = Pair(self.lab)
        self.datacenter = self.pair.datacenter
        # All of 10.0.0.0/8 is behind the branch, but for what another site or the datacenter has itself.
        self.datacenter.settings["peer"][0]["networks"] = [*NETWORKS["branch"], "10.0.0.0/8"]
        self.datacenter.settings["peer"].append(
            {"name": other.name, "fingerprint": other.fingerprint, "networks": [OTHER_SITE]})
        self.datacenter.start()
        self.addCleanup(self.datacenter.stop)

    def test_a_server_never_sees_an_address_that_is_not_the_peers(self):
        foreign = ["10.10.2.77", "::ffff:10.10.2.77", "fd10:2::77", "10.10.3.9", "::ffff:10.10.3.9", "fd99::1",
                   DATACENTER, "10.10.100.9", "127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.1.1", "224.0.0.1",
                   "0.0.0.0", "255.255.255.255"]
        own = [CLIENT, "10.77.0.1", CLIENT6]
        for address in (*foreign, *own):  # or connections under it could not be answered
            family = "-6" if ":" in address else "-4"
            if address in ("10.10.2.77", "10.10.3.9", "10.77.0.1", "fd10:2::77", "fd99::1"):
                self.lab.run("server", "ip", family, "route", "add", address, "via",
                             DATACENTER if family == "-4" else "fd10:2::1")
        with tcp.Server(self.lab, tcp.echo) as server, HostilePeer(self.lab, self.pair.branch) as peer:
            peer.wait_for(OPEN_CREDIT)
            refused = []
            for port, (address, source) in enumerate([(a, s) for a in foreign for s in (AUTOMATIC, AS_CLIENT)], 40000):
                to = SERVER6 if ":" in address and "ffff" not in address else SERVER
                stream = peer.open((to, server.port), client=(address, port % 3 and port), source=source)
                refused.append((stream, address, source))
            carried = {}
            for address in own:
                stream = peer.open((SERVER6 if ":" in address else SERVER, server.port), client=(address, 40000),
                                   source=AS_CLIENT, forward_credit=1024)
                peer.stream(stream, record(DATA, b"honest"))
                carried[stream] = address
            for stream, address in carried.items():
                until(lambda: record(DATA, b"honest") in peer.received(stream), what=f"the echo for {address}")
            for stream, address, source in refused:
                with self.subTest(address=address, source=source):
                    until(lambda: peer.received(stream), what="an answer")
                    self.assertEqual(peer.received(stream), record(ANSWER, CLIENT_NOT_ALLOWED) + record(ABORT))
            self.assertEqual(sorted(address.removeprefix("::ffff:") for address, _ in server.clients), sorted(own))
        self.assertEqual(self.datacenter.reasons()["client_not_in_networks"], len(refused))
        self.assertEqual(self.datacenter.link()["state"], "up")
        # However many there are, the log has one line.
        lines = self.datacenter.process.lines_with(" flow_refused ")
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("add the client's network to `networks`", lines[0])


class Explained(unittest.TestCase):
    def test_clients_that_the_far_side_does_not_know_bypass_the_link_and_the_reason_is_shown(self):
        lab = self.enterContext(Lab())
        pair = Pair(lab)
        pair.datacenter.settings["peer"][0]["networks"] = ["10.10.7.0/24"]
        with pair, tcp.Server(lab, tcp.echo) as server:
            self.assertTrue(tcp.is_reset(lab, SERVER, server.port))
            why = pair.branch.longhaul("why", f"{CLIENT}-{SERVER}:{server.port}")
            self.assertIn("client_not_in_networks", why)
            self.assertIn("add the client's network to `networks`", why)
            connection = tcp.connect(lab, SERVER, server.port)
            connection.send(b"past the link")
            self.assertEqual(connection.receive(13), b"past the link")
            connection.close()
            self.assertEqual(pair.datacenter.reasons(), {"client_not_in_networks": 1})


if __name__ == "__main__":
    unittest.main()
