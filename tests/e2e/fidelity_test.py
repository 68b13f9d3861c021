# SPDX-License-Identifier: Apache-2.0
"""Each end sees the actions of the other end on its connection, over the link and bypassing it."""

import errno
import functools
import unittest

import tcp
from lab import CLIENT, SERVER, SERVER6, until
from pair import PairTest

NOBODY = "10.10.2.77"  # an address of the far LAN that no machine has


def in_both_families(story):
    """Runs the test once over IPv4 and once over IPv6, with a client's end and a server's."""

    @functools.wraps(story)
    def test(self):
        for address in (SERVER, SERVER6):
            with self.subTest(address):
                story(self, *tcp.pair(self.lab, address, port=self.port))

    return test


class Fidelity:
    """For both ways that a flow can go; `reasons` are those that such flows have."""

    line = ("51.84mbit,20",)
    port = 0  # a free one

    def setUp(self):
        self.before = self.branch.reasons()

    @in_both_families
    def test_half_close_crosses_from_client_to_server(self, here, there):
        here.send(b"question")
        here.end()
        self.assertEqual(there.receive_rest(), (b"question", "end"))
        there.send_made(300_000, seed=5)  # long after the other direction has ended
        there.end()
        self.assertEqual(here.digest_rest(), tcp.digest(300_000, seed=5))
        self.pair.wait_flows()
        self.assertEqual(set(self.reasons_given(self.before)), self.reasons)

    @in_both_families
    def test_half_close_crosses_from_server_to_client(self, here, there):
        there.send(b"greeting")
        there.end()
        self.assertEqual(here.receive_rest(), (b"greeting", "end"))
        here.send_made(300_000, seed=6)
        here.end()
        self.assertEqual(there.digest_rest(), tcp.digest(300_000, seed=6))
        self.pair.wait_flows()

    @in_both_families
    def test_the_client_resets_and_the_server_has_the_bytes_before(self, here, there):
        here.send(b"x" * 20_000)
        here.arrived()  # its own system throws away what it has not sent yet
        here.reset()
        self.assertEqual(there.receive_rest(), (b"x" * 20_000, "reset"))
        self.pair.wait_flows()

    @in_both_families
    def test_the_server_resets_and_the_client_has_the_bytes_before(self, here, there):
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        there.send(b"y" * 20_000)
        there.arrived()
        there.reset()
        self.assertEqual(here.receive_rest(), (b"y" * 20_000, "reset"))
        self.pair.wait_flows()

    @in_both_families
    def test_a_reset_after_half_close_crosses(self, here, there):
        here.end()
        self.assertEqual(there.receive_rest(), (b"", "end"))
        there.reset()
        self.assertEqual(here.receive_rest(), (b"", "reset"))

    @in_both_families
    def test_data_of_a_server_that_speaks_first_arrives(self, here, there):
        there.send(b"220 ready\r\n")
        self.assertEqual(here.receive(11), b"220 ready\r\n")
        here.send(b"QUIT\r\n")
        self.assertEqual(there.receive(6), b"QUIT\r\n")
        there.close()
        self.assertEqual(here.receive_rest(), (b"", "end"))

    def test_a_refusal_is_a_reset_and_the_next_attempt_gets_the_servers_own(self):
        for address in (SERVER, SERVER6):
            with self.subTest(address):
                with tcp.Listener(self.lab) as unused:
                    port = unused.port
                self.assertTrue(tcp.is_reset(self.lab, address, port))
                until(lambda: self.is_refused_by_the_server(address, port), what="the next attempt goes plainly")

    def is_refused_by_the_server(self, address, port):
        try:
            tcp.connect(self.lab, address, port).close()
            return False
        except ConnectionRefusedError:
            return True

    def test_an_absent_host_gives_a_reset_and_then_the_routers_answer(self):
        self.assertTrue(tcp.is_reset(self.lab, NOBODY, 80))
        until(self.is_unreachable_by_the_routers_word, what="the next attempt goes plainly")

    def is_unreachable_by_the_routers_word(self):
        try:  # the packet rules learn of it in batches: until then it is taken once more
            self.assertEqual(tcp.connect(self.lab, NOBODY, 80).receive_rest(), (b"", "reset"))
            return False
        except OSError as error:
            self.assertIn(error.errno, (errno.EHOSTUNREACH, errno.ECONNRESET, errno.ENOTCONN))
            return error.errno == errno.EHOSTUNREACH


class OverTheLink(Fidelity, PairTest):
    reasons = {"optimised"}

    def test_why_says_that_the_server_refused(self):
        with tcp.Listener(self.lab) as unused:
            port = unused.port
        self.assertTrue(tcp.is_reset(self.lab, SERVER, port))
        why = self.branch.longhaul("why", f"{CLIENT}-{SERVER}:{port}")
        self.assertIn("destination_refused", why)
        self.assertIn("bypass the link", why)


class OverTheLinkOnAModulesPort(Fidelity, PairTest):
    """The protocol on this port is not the one that the module parses."""

    reasons = {"optimised", "smb_not_understood"}
    port = 445

    @in_both_families
    def test_data_that_the_module_cannot_parse_bypasses_it(self, here, there):
        here.send_made(3_000_000, seed=7)
        here.end()
        self.assertEqual(there.digest_rest(), tcp.digest(3_000_000, seed=7))
        there.send_made(2_000_000, seed=8)
        there.end()
        self.assertEqual(here.digest_rest(), tcp.digest(2_000_000, seed=8))
        why = self.branch.longhaul("why", f"{here.local[0]}:{here.local[1]}-{there.local[0]}:445"
                                   if ":" not in here.local[0] else
                                   f"[{here.local[0]}]:{here.local[1]}-[{there.local[0]}]:445")
        self.assertIn("smb_not_understood", why)
        self.pair.wait_flows()


class PastTheLink(Fidelity, PairTest):
    reasons = {"transport_off"}
    both = {"features": {"transport": "off"}}


if __name__ == "__main__":
    unittest.main()
