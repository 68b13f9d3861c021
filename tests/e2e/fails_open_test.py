# SPDX-License-Identifier: Apache-2.0
"""Without link, peer or daemon new flows still reach their server, unless the configuration says otherwise."""

import concurrent.futures
import contextlib
import socket
import unittest

import socks
import tcp
from lab import BRANCH, BRANCH6, CLIENT, CLIENT6, SERVER, SERVER6, Lab, until
from pair import Pair, link_cut_off


def echoes(lab, address, port, patience=tcp.PATIENCE):
    """Does a new connection reach the echo server?"""
    try:
        with lab.inside("client"):
            sock = socket.create_connection((address, port), timeout=patience)
        with sock:
            sock.settimeout(patience)
            sock.sendall(b"hello")
            return sock.recv(5) == b"hello"
    except OSError:
        return False


def greet(connection):
    """A server that speaks first."""
    connection.send(b"ready")
    tcp.echo(connection)


def fate(lab, address, port, speaks, patience=tcp.PATIENCE):
    """How a new connection fares: "answered", "reset", or "silent" after all that time."""
    try:
        with lab.inside("client"):
            sock = socket.create_connection((address, port), timeout=patience)
        with sock:
            sock.settimeout(patience)
            if speaks:
                sock.sendall(b"hello")
            return "answered" if sock.recv(5) else "ended"
    except TimeoutError:
        return "silent"
    except ConnectionError:
        return "reset"


def echoes_by_socks(lab, to):
    try:
        connection, answer = socks.connect(lab, (BRANCH, 1080), to)
        with contextlib.closing(connection):
            connection.send(b"hello")
            return answer == "succeeded" and connection.receive(5) == b"hello"
    except (OSError, EOFError):
        return False


class Crash(unittest.TestCase):
    """The server is reached as soon as the crash is known, and sees the client as it would without the pair."""

    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.server = self.enterContext(tcp.Server(self.lab, tcp.echo))
        forwards = [{"listen": f"{BRANCH}:9000", "to": f"{SERVER}:{self.server.port}"},
                    {"listen": f"[{BRANCH6}]:9000", "to": f"[{SERVER6}]:{self.server.port}"}]
        self.pair = self.enterContext(
            Pair(self.lab, branch={"forward": forwards, "socks": {"listen": f"{BRANCH}:1080"}}))
        self.branch, self.datacenter = self.pair.sites

    def transparent(self, patience=tcp.PATIENCE):
        return all(echoes(self.lab, address, self.server.port, patience) for address in (SERVER, SERVER6))

    def explicit(self):
        return all(echoes(self.lab, address, 9000) for address in (BRANCH, BRANCH6)) and \
            all(echoes_by_socks(self.lab, (address, self.server.port)) for address in (SERVER, SERVER6))

    def test_after_kill_9_of_the_peer_new_flows_reach_the_server_in_every_mode(self):
        self.assertTrue(self.transparent() and self.explicit())
        self.assertEqual(self.branch.reasons(), {"optimised": 6})
        self.pair.wait_flows(0)  # one that is still ending would be what `why` tells of below
        self.datacenter.kill()
        # One that began before the branch could know of the crash is reset two seconds later if it had said something.
        until(lambda: self.transparent(patience=0.5) or self.branch.link()["state"] != "up", what="the crash is known")
        self.assertTrue(self.transparent(), "transparent flows reach the server")
        self.assertEqual({client[0] for client in self.server.clients[6:]}, {"::ffff:" + CLIENT, CLIENT6})
        until(self.explicit, what="explicit flows reach the server")
        # Silent until nothing more can come over UDP.
        self.assertEqual(self.branch.reasons().keys() - {"link_down", "link_silent"}, {"optimised"})
        asked = ("why", f"{CLIENT}-{SERVER}:{self.server.port}")
        # A flow that began before the crash was noticed waits for its reset first, and would be what `why` tells of.
        until(lambda: "bypass the link" in (said := self.branch.longhaul(*asked)) and "link_down" in said,
              what="the link is down")
        # And back again, by itself.
        self.datacenter.start()
        self.pair.wait_link()
        before = self.branch.reasons()["optimised"]
        self.assertTrue(self.transparent() and self.explicit())
        self.assertEqual(self.branch.reasons()["optimised"], before + 6)

    def test_after_kill_9_of_the_local_daemon_new_flows_reach_the_server_and_no_rule_is_left(self):
        self.assertTrue(self.transparent())
        self.branch.kill()
        self.assertTrue(self.transparent(), "transparent flows reach the server")
        self.assertEqual(self.branch.rules(), "")
        with self.assertRaises(ConnectionRefusedError):  # explicit: closed until the daemon runs again
            tcp.connect(self.lab, BRANCH, 9000)
        self.branch.start()
        self.pair.wait_link()
        self.assertTrue(self.transparent() and self.explicit())
        self.assertEqual(self.branch.reasons(), {"optimised": 6})


class LongLine(unittest.TestCase):
    """Flows that begin when the peer is dead, or the link cut, before this side can know it."""

    def setUp(self):
        self.lab = self.enterContext(Lab("100mbit,200,0"))
        self.echo = self.enterContext(tcp.Server(self.lab, tcp.echo)).port
        self.greeter = self.enterContext(tcp.Server(self.lab, greet)).port
        self.pair = self.enterContext(Pair(self.lab))
        self.branch, self.datacenter = self.pair.sites
        # The line is known to both carriers, and quiet.
        self.assertTrue(all(echoes(self.lab, address, self.echo) for address in (SERVER, SERVER6)))
        self.pair.wait_flows(0)

    def fates(self, pool, speak, count):
        return [pool.submit(fate, self.lab, address, self.echo if speak else self.greeter, speak)
                for _ in range(count) for address in (SERVER, SERVER6)]

    def test_every_flow_that_begins_as_the_peer_dies_gets_an_answer(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.datacenter.kill()  # the branch hears of it 100 ms later
            speak, wait = self.fates(pool, True, 4), self.fates(pool, False, 4)
        # What a client said in that moment the server may have: it is not said again, and the client hears of it.
        self.assertLessEqual({each.result() for each in speak}, {"answered", "reset"})
        self.assertEqual({each.result() for each in wait}, {"answered"})
        self.assertTrue(all(echoes(self.lab, address, self.echo) for address in (SERVER, SERVER6)))

    def test_flows_without_data_bypass_a_link_that_has_just_fallen_silent(self):
        with link_cut_off(self.lab, "drop"), concurrent.futures.ThreadPoolExecutor(8) as pool:
            fates = self.fates(pool, False, 2)
            self.assertEqual({each.result() for each in fates}, {"answered"})
            self.assertNotEqual(self.branch.link()["state"], "up")
            self.assertGreaterEqual(sum(self.branch.reasons().get(code, 0) for code in ("link_silent", "link_down")), 4)


class FailClosed(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.open = self.enterContext(tcp.Server(self.lab, tcp.echo)).port
        self.closed = self.enterContext(tcp.Server(self.lab, tcp.echo)).port

    def start(self, **changes):
        pair = Pair(self.lab, branch=changes)
        pair.branch.start()
        self.addCleanup(pair.branch.stop)
        return pair

    def assert_refused(self, address, port):
        self.assertTrue(tcp.is_reset(self.lab, address, port))

    def test_fail_closed_refuses_flows_without_a_link_and_reports_it(self):
        pair = self.start(intercept={"fail": "closed"}, socks={"listen": f"{BRANCH}:1080"})
        for address in (SERVER, SERVER6):
            self.assert_refused(address, self.closed)
        self.assertEqual(pair.branch.reasons(), {"link_never_up": 2})
        until(lambda: pair.branch.status()["flows"]["reset"] == 2, what="both are counted as reset")
        until(lambda: "flow_refused" in pair.branch.process.log(), what="it is logged")  # by a thread of its own
        why = pair.branch.longhaul("why", f"{CLIENT}-{SERVER}:{self.closed}")
        self.assertIn("be refused", why)
        self.assertIn("link_never_up", why)
        self.assertIn("fail = closed", why)
        self.assertIn("link_never_up", pair.branch.longhaul("why", "1"))
        # With the link it serves.
        pair.datacenter.start()
        self.addCleanup(pair.datacenter.stop)
        pair.wait_link()
        self.assertTrue(echoes(self.lab, SERVER, self.closed) and echoes(self.lab, SERVER6, self.closed))
        # And once more without it, after it was there.
        pair.datacenter.kill()
        pair.branch.wait_link("down")
        self.assert_refused(SERVER, self.closed)
        self.assertEqual(pair.branch.reasons(), {"link_never_up": 2, "optimised": 2, "link_down": 1})

    def test_a_socks_client_is_told_that_the_flow_is_not_allowed(self):
        self.start(intercept={"fail": "closed"}, socks={"listen": f"{BRANCH}:1080"})
        self.assertEqual(socks.connect(self.lab, (BRANCH, 1080), (SERVER, self.closed))[1], "not allowed")

    def test_a_rule_closes_some_flows_and_opens_others(self):
        pair = self.start(rule=[{"to_ports": [self.closed], "fail": "closed"}])
        self.assert_refused(SERVER, self.closed)
        self.assertTrue(echoes(self.lab, SERVER, self.open))
        self.assertIn("[[rule]] number 1", pair.branch.longhaul("why", f"{CLIENT}-{SERVER}:{self.closed}"))
        self.assertIn("bypass the link", pair.branch.longhaul("why", f"{CLIENT}-{SERVER}:{self.open}"))

    def test_a_rule_opens_some_flows_where_the_others_are_closed(self):
        self.start(intercept={"fail": "closed"}, rule=[{"to_ports": [self.open], "fail": "open"}])
        self.assert_refused(SERVER, self.closed)
        self.assertTrue(echoes(self.lab, SERVER, self.open))


if __name__ == "__main__":
    unittest.main()
