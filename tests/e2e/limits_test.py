# SPDX-License-Identifier: Apache-2.0
"""Bounds on what clients, peers and strangers may have, each with a clear refusal."""

import contextlib
import socket
import unittest

import socks
import tcp
from lab import BRANCH, CLIENT, DATACENTER, DATACENTER_WAN, SERVER, SERVER6, Lab, until
from pair import LINK_PORT, NETWORKS, Pair

OTHER_CLIENT = "10.10.1.50"


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

    def bypassed(self, limit):
        return self.branch.status()["intercept"]["bypassed"][limit]

    def test_flows_above_the_limit_bypass_the_proxy_and_none_is_reset(self):
        self.start(branch={"limits": {"flows": 3, "flows_per_source": 3}})
        with tcp.Server(self.lab, tcp.echo) as server:
            first = [self.echo(server, address) for address in (SERVER, SERVER6, SERVER)]
            until(lambda: first.append(self.echo(server, SERVER6)) or self.bypassed("flow_limit") > 0, what="a bypass")
            first += [self.echo(server, address) for address in (SERVER, SERVER6) * 10]
            reasons = self.branch.reasons()
            self.assertEqual(reasons.pop("optimised"), 3)
            self.assertLessEqual(set(reasons), {"flow_limit"})  # those under way when the third one began
            self.assertEqual(len(first), 3 + sum(reasons.values()) + self.bypassed("flow_limit"))
            self.assertEqual(self.branch.status()["flows"]["limit"], 3)
            self.assertIn("raise [limits] flows",
                          self.branch.longhaul("why", f"{CLIENT}:1-{SERVER}:{server.port}"))
            for connection in first:
                connection.send(b"still here")
                self.assertEqual(connection.receive(10), b"still here")
                connection.close()
            self.branch.wait_flows(0)
            until(lambda: self.echo(server) and self.branch.reasons()["optimised"] > 3, what="room again")

    def test_flows_of_a_client_above_its_limit_bypass_the_proxy_and_others_are_carried(self):
        self.lab.run("client", "ip", "address", "add", f"{OTHER_CLIENT}/24", "dev", "eth0")
        self.start(branch={"limits": {"flows": 100, "flows_per_source": 2}})
        with tcp.Server(self.lab, tcp.echo) as server:
            for address in (SERVER, SERVER6):
                carried = self.branch.reasons().get("optimised", 0)
                passed = self.bypassed("source_limit")
                for _ in range(2):
                    self.echo(server, address)
                until(lambda to=address: self.echo(server, to) and self.bypassed("source_limit") > passed,
                      what="a bypass")
                for _ in range(10):
                    self.echo(server, address)
                self.assertEqual(self.branch.reasons()["optimised"], carried + 2)
            self.assertIn("raise [limits] flows_per_source",
                          self.branch.longhaul("why", f"{CLIENT}:1-{SERVER}:{server.port}"))
            other = tcp.connect(self.lab, SERVER, server.port, source=(OTHER_CLIENT, 0))
            other.send(b"x")
            self.assertEqual(other.receive(1), b"x")
            other.close()
            self.assertEqual(self.branch.reasons()["optimised"], 5)

    def test_a_repeated_syn_takes_the_same_path_as_the_first(self):
        self.start(branch={"limits": {"flows": 1}})
        with tcp.Server(self.lab, tcp.echo) as server:
            held = [self.echo(server)]
            until(lambda: held.append(self.echo(server)) or self.bypassed("flow_limit") > 0, what="a bypass")
            passed = self.bypassed("flow_limit")
            self.lab.run("server", "nft", "-f", "-", text="""table inet deaf {
                chain in {
                    type filter hook input priority 0
                    tcp flags & (syn | ack) == syn drop
                }
            }""")
            with self.lab.inside("client"):
                sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((SERVER, server.port))
            until(lambda: self.bypassed("flow_limit") > passed, what="its SYN is let pass")
            for connection in held:
                connection.close()
            self.branch.wait_flows(0)
            self.lab.run("server", "nft", "delete", "table", "inet", "deaf")
            sock.settimeout(120)  # the client repeats its SYN after 1, 3, 7, 15, 31 and 63 s
            sock.send(b"x")
            self.assertEqual(sock.recv(1), b"x")
            self.assertEqual(self.branch.status()["flows"]["live"], 0)
            sock.close()

    def test_new_flows_of_a_client_above_its_rate_bypass_the_proxy(self):
        self.start(branch={"limits": {"new_flows_per_source": 1}})
        with tcp.Server(self.lab, tcp.echo) as server:
            for address in (SERVER, SERVER6):
                passed = self.bypassed("over_rate")
                until(lambda to=address: self.echo(server, to) and self.bypassed("over_rate") > passed, what="a bypass")
        self.assertEqual(set(self.branch.reasons()), {"optimised"})

    def test_a_client_of_an_explicit_listener_above_its_limit_is_relayed_and_above_twice_of_it_refused(self):
        with tcp.Server(self.lab, tcp.echo) as server:
            self.start(branch={"limits": {"flows_per_source": 2},
                               "forward": [{"listen": f"{BRANCH}:8445", "to": f"{SERVER}:{server.port}"}]})
            for _ in range(4):
                connection = tcp.connect(self.lab, BRANCH, 8445)
                self.open_connections.callback(connection.close)
                connection.send(b"x")
                self.assertEqual(connection.receive(1), b"x")
            self.assertEqual(self.branch.reasons(), {"optimised": 2, "source_limit": 2})
            self.assertTrue(tcp.is_reset(self.lab, BRANCH, 8445))

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

    def test_only_destinations_in_allow_are_dialled_for_a_peer(self):
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
            self.assertIn("add the destination to [link] allow at the far site", why)
            self.echo(server)

    def test_a_flow_that_the_peer_refuses_is_reset_and_then_bypasses_the_link(self):
        self.start(datacenter={"link": {"allow": []}})
        with tcp.Server(self.lab, tcp.echo) as server:
            self.assertTrue(tcp.is_reset(self.lab, SERVER, server.port))
            self.assertIn("peer_refused", self.branch.longhaul("why", f"{CLIENT}-{SERVER}:{server.port}"))
            self.echo(server)
        self.datacenter.wait_flows(0)


if __name__ == "__main__":
    unittest.main()
