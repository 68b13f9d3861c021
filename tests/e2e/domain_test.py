# SPDX-License-Identifier: Apache-2.0
"""The domain of the other tests, without the pair: its controller and a member serve files, with tickets and with NTLM."""

import unittest

import domain
from lab import Lab
from member import Member


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Direct(unittest.TestCase):
    def test_files_of_the_controller_and_a_member_with_kerberos_and_ntlm(self):
        lab = self.enterContext(Lab())
        site = self.enterContext(domain.Domain(lab))
        member = self.enterContext(Member(site))
        site.log_in()
        for server in (site, member):
            there = server.make("file", 300_000)
            for protection in ("sign", "encrypt"):
                for kerberos in (True, False):
                    with self.subTest(server=server.name, protection=protection, kerberos=kerberos):
                        self.assertEqual(server.get("file", protection=protection, kerberos=kerberos), there)
            self.assertEqual(server.put(server.share / "file", "copy", dialect="2.1"), there)
        held = lab.run(site.node, "klist", "-k", "-e", member.keytab)
        self.assertIn(f"MEMBER$@{domain.REALM} (aes256-cts-hmac-sha1-96)", held)
