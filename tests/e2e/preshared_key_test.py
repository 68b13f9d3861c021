# SPDX-License-Identifier: Apache-2.0
"""A secret that both sites share beside their keys."""

import shutil
import unittest

import tcp
from lab import SERVER, Lab, until
from pair import Pair


class PresharedKey(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.branch, self.datacenter = self.pair.sites

    def give(self, site, secret, mode=0o600):
        file = site.folder / "peer.psk"
        file.write_text(secret + "\n")
        file.chmod(mode)
        shutil.chown(file, "longhaul")  # which reads it again at a reload
        site.settings["peer"][0]["preshared_key_file"] = "peer.psk"

    def start(self):
        for site in self.pair.sites:
            site.start()
            self.addCleanup(site.stop)

    def test_with_equal_secrets_flows_are_carried_by_udp_and_by_tcp(self):
        for site in self.pair.sites:
            self.give(site, "5a" * 32)
        self.start()
        self.pair.wait_link()
        for transport in ("udp", "tcp"):
            with self.subTest(transport=transport):
                self.branch.set(transport=transport)
                until(lambda: self.branch.link()["carrier"] == transport, what=f"{transport} carries")
                with tcp.Server(self.lab, tcp.report_digest) as server:
                    self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 3_000_000, 1), tcp.digest(3_000_000, 1))
        self.assertEqual(self.branch.reasons(), {"optimised": 2})

    def assert_both_say_why_there_is_no_link(self):
        for site in self.pair.sites:
            until(lambda: "preshared_key_file" in (site.link()["last_error"] or ""), what=f"{site.name} says why")
            self.assertEqual(site.link()["state"], "never_up")

    def test_different_secrets_are_reported_at_both_sides(self):
        self.give(self.branch, "5a" * 32)
        self.give(self.datacenter, "5b" * 32)
        self.start()
        self.assert_both_say_why_there_is_no_link()
        self.give(self.datacenter, "5a" * 32)
        self.assertIn("the preshared key of branch", self.datacenter.longhaul("reload"))
        self.pair.wait_link()

    def test_a_secret_at_one_side_only_is_reported_at_both(self):
        self.give(self.datacenter, "5a" * 32)
        self.start()
        self.assert_both_say_why_there_is_no_link()

    def test_a_readable_or_invalid_secret_prevents_the_start(self):
        for secret, mode, said in (("5a" * 32, 0o644, "chmod 600"), ("5a" * 31, 0o600, "64 hexadecimal digits"),
                                   ("5a" * 33, 0o600, "64 hexadecimal digits")):
            self.give(self.branch, secret, mode)
            self.branch.write()
            checked = self.branch.longhaul("check", self.branch.file, check=False)
            self.assertNotEqual(checked.returncode, 0)
            self.assertIn(said, checked.stderr)
