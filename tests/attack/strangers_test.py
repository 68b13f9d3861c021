# SPDX-License-Identifier: Apache-2.0
"""The attacker holds no key and reaches the link's port from one address of the WAN or from many."""

import contextlib
import re
import ssl
import unittest

import stranger
import tcp
from lab import BRANCH_WAN, DATACENTER_WAN, SERVER, Lab, until
from pair import LINK_PORT, Pair


class Strangers(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.branch, self.datacenter = self.pair.sites
        self.open = self.enterContext(contextlib.ExitStack())

    def start(self, *sites):
        for site in sites:
            site.start()
            self.addCleanup(site.stop)

    def connect(self, source=None):
        return self.open.enter_context(stranger.connect(self.lab, source))

    def refusals(self, reason):
        return self.datacenter.status()["strangers"]["refused"][reason]

    def assert_flows_are_carried(self, size=300_000):
        """Over the link: again, if it was silent for a moment on a busy machine, so that the flow bypassed it."""
        with tcp.Server(self.lab, tcp.report_digest) as server:
            for _ in range(5):
                self.pair.wait_link()
                self.assertEqual(tcp.upload(self.lab, SERVER, server.port, size, 1), tcp.digest(size, 1))
                if "optimised" in self.branch.reasons():
                    return
        self.fail(f"no flow was carried over the link: {self.branch.reasons()}")

    # -- work

    def test_client_hellos_with_the_costliest_key_exchange_do_not_stop_the_daemon(self):
        source, = stranger.give_addresses(self.lab, 1)
        self.start(self.datacenter)
        sockets = []
        for _ in range(40):
            with contextlib.suppress(ConnectionResetError):  # one above the source's limit may be over before connect() returns
                sockets.append(self.connect(source))
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.sendall(stranger.client_hello(stranger.FFDHE8192))
        for sock in sockets:
            self.assertTrue(stranger.is_ended(sock))
        self.assertTrue(self.datacenter.process.is_running(), "the daemon is alive")
        self.start(self.branch)
        self.pair.wait_link()

    def test_a_client_hello_longer_than_any_peer_sends_is_refused_unread(self):
        source, = stranger.give_addresses(self.lab, 1)
        self.start(self.datacenter)
        sock = self.connect(source)
        with contextlib.suppress(OSError):
            sock.sendall(stranger.client_hello(padding=60_000))
        self.assertTrue(stranger.is_ended(sock))
        until(lambda: self.refusals("too_long") == 1, what="the refusal is counted")

    def test_a_chain_of_certificates_above_8_kib_is_refused(self):
        source, = stranger.give_addresses(self.lab, 1)
        self.start(self.datacenter)
        own = self.branch.keygen("stranger")
        self.assertNotEqual(own, self.branch.fingerprint)
        folder = self.branch.folder
        chain = folder / "chain.crt"
        chain.write_text((folder / "stranger.crt").read_text() * 40)  # about 450 bytes each
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(chain, folder / "stranger.key")
        with contextlib.suppress(OSError), context.wrap_socket(self.connect(source)) as sock:
            self.assertTrue(stranger.is_ended(sock))
        until(lambda: self.refusals("too_long") == 1, what="the refusal is counted")

    # -- slots

    def assert_a_branch_links_beside_silent_connections(self, sources):
        """The datacenter has never seen the branch. The silent connections are made again whenever they end."""
        self.start(self.datacenter)
        with stranger.Flood(self.lab, sources, rate=300, hello=lambda: b"") as flood:
            until(lambda: flood.sent > 500, what="the flood")
            self.start(self.branch)
            self.pair.wait_link()
            self.assert_flows_are_carried()

    def test_silent_connections_from_one_address_do_not_lock_out_a_branch(self):
        self.assert_a_branch_links_beside_silent_connections(stranger.give_addresses(self.lab, 1))

    def test_silent_connections_from_many_addresses_do_not_lock_out_a_branch(self):
        self.assert_a_branch_links_beside_silent_connections(stranger.give_addresses(self.lab, 400))

    def test_a_branch_links_again_beside_silent_connections_after_both_daemons_were_restarted(self):
        sources = stranger.give_addresses(self.lab, 400)
        self.start(self.datacenter, self.branch)
        self.pair.wait_link()
        self.pair.stop()
        self.datacenter.start()  # it remembers from where the branch dialled
        with stranger.Flood(self.lab, sources, hello=lambda: b"") as flood:
            until(lambda: flood.sent > 500, what="the flood")
            self.branch.start()
            self.pair.wait_link()
            self.assert_flows_are_carried()

    # -- floods

    def assert_service_under(self, sources):
        """A running transfer stays right, and a branch that was never seen links while the flood goes on."""
        self.start(self.datacenter)
        with stranger.Flood(self.lab, sources) as flood:
            until(lambda: flood.sent > 500, what="the flood")
            self.start(self.branch)
            self.pair.wait_link()
            begun = flood.sent
            self.assert_flows_are_carried(20_000_000)
            until(lambda: flood.sent > begun, what="the flood goes on")
            until(lambda: self.refusals("source_rate") > 0, what="hostile handshakes are refused")
        self.assertTrue(self.datacenter.process.is_running())

    def test_a_flood_of_client_hellos_from_one_address(self):
        self.assert_service_under(stranger.give_addresses(self.lab, 1))

    def test_a_flood_of_client_hellos_from_256_addresses(self):
        self.assert_service_under(stranger.give_addresses(self.lab, 256))

    # -- what strangers learn, and what is said of them

    def test_a_certificate_does_not_name_the_site(self):
        self.start(self.datacenter)
        shown = self.lab.run("branch", "timeout", "60", "openssl", "s_client", "-showcerts", "-connect",
                             f"{DATACENTER_WAN}:{LINK_PORT}", check=False, text="")
        certificate = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", shown.stdout, re.DOTALL)[0]
        text = self.lab.run("branch", "openssl", "x509", "-noout", "-text", text=certificate)
        self.assertIn("NIST CURVE: P-256", text)
        self.assertNotIn("datacenter", text)
        self.assertNotIn("datacenter", shown.stdout)

    def test_refusals_of_one_address_are_counted_each_and_logged_once(self):
        source, another = stranger.give_addresses(self.lab, 2)
        self.start(self.datacenter)
        for _ in range(10):
            sock = self.connect(source)
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertTrue(stranger.is_ended(sock))
        sock = self.connect(another)
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        self.assertTrue(stranger.is_ended(sock))
        until(lambda: self.refusals("not_tls") == 11, what="eleven refusals")
        for address in (source, another):
            lines = self.datacenter.process.lines_with("link_refused", f"address={address}:")
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("remedy=", lines[0])
        self.assertIn("longhaul_strangers_refused_total{reason=\"not_tls\"} 11", self.metrics())

    def metrics(self):
        return self.lab.run("datacenter", "curl", "-s", "http://127.0.0.1:7601/metrics")

    def test_an_unknown_key_is_refused_before_it_is_proved(self):
        self.datacenter.settings["peer"][0]["fingerprint"] = self.datacenter.keygen("another")
        self.start(self.datacenter, self.branch)
        until(lambda: self.refusals("unknown_key") >= 1, what="the refusal is counted")
        self.datacenter.process.lines_with(BRANCH_WAN, self.branch.fingerprint)
