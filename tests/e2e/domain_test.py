# SPDX-License-Identifier: Apache-2.0
"""The domain of the other tests serves files directly: with tickets, and with NTLM."""

import unittest

import domain
from lab import Lab


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Direct(unittest.TestCase):
    def test_a_file_of_the_domains_server_with_kerberos_and_ntlm(self):
        lab = self.enterContext(Lab())
        site = self.enterContext(domain.Domain(lab))
        there = site.make("file", 300_000)
        site.log_in()
        for protection in ("sign", "encrypt"):
            for kerberos in (True, False):
                with self.subTest(protection=protection, kerberos=kerberos):
                    self.assertEqual(site.get("file", protection=protection, kerberos=kerberos), there)
