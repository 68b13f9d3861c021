# SPDX-License-Identifier: Apache-2.0
"""Bounds on what clients, peers and strangers may have, each with a clear refusal."""

import contextlib
import unittest

import socks
import tcp
from lab import BRANCH, CLIENT, DATACENTER, DATACENTER_WAN, SERVER, SERVER6, Lab, until
from pair import LINK_PORT, NETWORKS, Pair


class Limits(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.open_connections = self.enterContext(contextlib.ExitStack())

    def start(self, **changes):
        self.pair = self.enterContext(Pair(self.lab, **changes))
        self.branch, self.datacenter = self.pair.sites

    def echo(self, server, address=SERVER):
        connection = tcp.connect(self.lab, address, server.port)
        self.open_connections.callback(connection.close)
        connection.send(b"x")
        self.assertEqual(connection.receive(1), b"x")
        return connection

    def test_flows_above_the_limit_go_past_the_link_and_above_twice_of_it_are_refused(self):
        self.start(branch={"limits": {"flows": 3}})
        with tcp.Server(self.lab, tcp.echo) as server:
            first = [self.echo(server, address) for address in (SERVER, SERVER6) * 3]
            self.assertEqual(self.branch.reasons(), {"optimised": 3, "flow_limit": 3})
            self.assertEqual(self.branch.status()["flows"]["limit"], 3)
            self.assertIn("raise [limits] flows",
                          self.branch.longhaul("why", f"{CLIENT}-{SERVER}:{server.port}"))
            self.assertTrue(tcp.is_reset(self.lab, SERVER, server.port))
            for connection in first:
                connection.close()
            self.branch.wait_flows(0)
            self.echo(server)
        self.assertEqual(self.branch.reasons(), {"optimised": 4, "flow_limit": 3})

    def test_a_peer_that_opens_more_flows_than_this_side_takes_keeps_its_link_and_its_flows(self):
        self.start(datacenter={"limits": {"flows": 2}})
        with tcp.Server(self.lab, tcp.echo) as server, tcp.Server(self.lab, tcp.echo) as another:
            first = [self.echo(server, address) for address in (SERVER, SERVER6)]
            self.assertTrue(tcp.is_reset(self.lab, SERVER, another.port))
            for connection in first:
                connection.send(b"still here")
                self.assertEqual(connection.receive(10), b"still here")
            self.assertEqual(self.datacenter.reasons(), {"optimised": 2, "flow_limit": 1})
            self.assertEqual(self.branch.link()["carriers_attached"], 1)

    def test_handshakes_in_progress_are_bounded(self):
        self.start(datacenter={"limits": {"handshakes": 2}})
        # Strangers, since places are kept for the branch's address; a source has a quarter of them, at least one.
        silent = [tcp.connect(self.lab, DATACENTER_WAN, LINK_PORT, node) for node in ("client", "server")]
        until(lambda: self.datacenter.status()["handshakes"] == {"now": 2, "limit": 2}, what="two handshakes")
        self.assertTrue(tcp.is_reset(self.lab, DATACENTER_WAN, LINK_PORT, "client"))
        self.assertEqual(self.datacenter.link()["state"], "up")
        self.assertEqual(self.datacenter.status()["strangers"]["refused"]["no_place"], 1)
        for connection in silent:
            connection.close()
        until(lambda: self.datacenter.status()["handshakes"]["now"] == 0, what="the handshakes are over")

    def test_only_what_allow_names_is_dialled_for_a_peer(self):
        far = NETWORKS["datacenter"] + ["10.99.0.0/16"]
        self.start(branch={"socks": {"listen": f"{BRANCH}:1080"}}, datacenter={"link": {"allow": ["10.10.2.2/32"]}})
        self.branch.stop()
        self.branch.settings["peer"][0]["networks"] = far
        self.datacenter.stop()
        self.datacenter.hosts = {"own.far": "127.0.0.1", "lan.far": DATACENTER}
        self.pair.start()
        with tcp.Server(self.lab, tcp.echo) as server, tcp.Server(self.lab, tcp.echo, "datacenter") as own:
            for to in (("own.far", own.port), ("lan.far", own.port), (DATACENTER, own.port), ("10.99.0.1", 80),
                       (SERVER6, server.port)):
                with self.subTest(to):
                    self.assertEqual(socks.connect(self.lab, (BRANCH, 1080), to)[1], "not allowed")
            self.assertEqual(own.clients, [])
            self.assertEqual(self.branch.reasons()["peer_refused"], 5)
            why = self.branch.longhaul("why", "5")
            self.assertIn("add the destination to [link] allow on the far side", why)
            self.echo(server)

    def test_a_flow_that_the_peer_refuses_is_reset_and_its_client_then_goes_past(self):
        self.start(datacenter={"link": {"allow": []}})
        with tcp.Server(self.lab, tcp.echo) as server:
            self.assertTrue(tcp.is_reset(self.lab, SERVER, server.port))
            self.assertIn("peer_refused", self.branch.longhaul("why", f"{CLIENT}-{SERVER}:{server.port}"))
            self.echo(server)
        self.assertEqual(self.datacenter.status()["flows"]["live"], 0)


if __name__ == "__main__":
    unittest.main()
