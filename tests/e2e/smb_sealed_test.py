# SPDX-License-Identifier: Apache-2.0
"""Signed and encrypted SMB where the far side has the server's keys: everything that the pair does for plain sessions,
with protection on both legs as client and server agreed. Without a key: smb_test.py."""

import contextlib
import unittest

import canaries
import domain
import random_file
import smb
import smb_client
import smb_work
from lab import SERVER, long_test, until
from pair import PairTest
from reduction_test import Wan
from smb_test import Chunked, made, protected_copies, seed_of

PROTECTED = (("NT1", "sign"), ("2.02", "sign"), ("2.1", "sign"), ("3.0", "sign"), ("3.1.1", "sign"), ("3.0", "encrypt"),
             ("3.1.1", "encrypt"))


class Ntlm(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)
        cls.datacenter.settings["smb_server"] = cls.smbd.keys()

    def counted(self, name):
        return sum(flow["module"]["counters"][name] for flow in self.branch.flows())

    def test_files_are_read_ahead_and_written_behind(self):
        for dialect, protection in PROTECTED:
            (self.smbd.share / f"there-{protection}-{dialect}").write_bytes(made(600_000, seed_of(dialect, protection)))
        for dialect, protection in PROTECTED:
            with self.subTest(dialect=dialect, protection=protection), \
                    smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
                data = made(600_000, seed_of(dialect, protection))
                self.assertEqual(smb_work.read_file(client, f"there-{protection}-{dialect}", 60_000), data)
                self.assertGreater(self.counted("ahead_used_bytes"), 0)
                smb_work.write_file(client, f"new-{protection}-{dialect}", data)
                self.assertEqual((self.smbd.share / f"new-{protection}-{dialect}").read_bytes(), data)
                self.assertGreater(self.counted("promises_made"), 0)
                flow, = self.branch.flows()
                self.assertEqual(flow["reason"], "optimised")
                self.assertIn("key from an NTLM hash", flow["module"]["detail"])
                client.disconnect()
            until(lambda: not self.branch.flows(), what="the flow has ended")

    def test_random_operations_give_the_bytes_that_they_should(self):
        for dialect, protection in ("NT1", "sign"), ("3.1.1", "sign"), ("3.1.1", "encrypt"):
            self.operate_at_random(dialect, protection, 150)

    @long_test
    def test_many_random_operations_give_the_bytes_that_they_should(self):
        for dialect, protection in PROTECTED:
            self.operate_at_random(dialect, protection, 400)

    def operate_at_random(self, dialect, protection, operations):
        name = f"random-{protection}-{dialect}"
        with self.subTest(dialect=dialect, protection=protection), \
                smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
            client.open(name, smb_client.READ | smb_client.WRITE, smb_client.CREATE).close()
            data = random_file.check(lambda: Chunked(client, name, smb_client.BATCH), operations,
                                     seed=seed_of(dialect, protection))
            self.assertEqual((self.smbd.share / name).read_bytes(), data)

    def test_smbclient_copies(self):
        protected_copies(self, self.smbd)

    def test_what_is_encrypted_is_reduced_like_anything_else(self):
        data = made(1_500_000, 77)
        (self.smbd.share / "twice").write_bytes(data)
        crossed = []
        for _ in range(2):
            with Wan(self.lab) as wan, \
                    smb_client.connect(self.lab, self.smbd, "3.1.1", protection="encrypt") as client:
                self.assertEqual(smb_work.read_file(client, "twice"), data)
                client.disconnect()
            crossed.append(wan.received)
        self.assertLess(crossed[1], len(data) // 20, crossed)

    def test_no_key_is_written_anywhere(self):
        nt_hash = bytes.fromhex(self.smbd.ntlm_hashes().read_text().strip().split(":")[1])
        for dialect, protection in ("2.1", "sign"), ("3.0", "encrypt"), ("3.1.1", "encrypt"):
            with self.subTest(dialect=dialect, protection=protection), \
                    smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
                smb_work.write_file(client, "known", made(100_000, 5))
                smb_work.read_file(client, "known")
                flow, = until(lambda: len(flows := self.datacenter.flows()) == 1 and flows, what="earlier flows have ended")
                self.assertIn("key from an NTLM hash", flow["module"]["detail"])
                session = client.inner._Session  # pylint: disable=protected-access
                names = ("SessionKey",) if dialect == "2.1" else ("SessionKey", "EncryptionKey", "DecryptionKey")
                keys = {name: session[name] for name in names}
                for site in (self.branch, self.datacenter):
                    canaries.assert_absent(self, site, keys | {"the hash": nt_hash})
                client.disconnect()

    def test_a_forged_message_resets_its_connection_and_reaches_nobody(self):
        for dialect, protection in PROTECTED:
            with self.subTest(dialect=dialect, protection=protection):
                name = f"forged-{protection}-{dialect}"
                before = self.branch.reasons()
                with smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
                    file = client.open(name, smb_client.READ | smb_client.WRITE, smb_client.CREATE)
                    file.write(0, b"genuine")
                    file.flush()
                    with changed_on_its_way(client), self.assertRaises(smb_client.Broken):
                        file.write(0, b"forged!")
                        file.flush()
                self.assertEqual((self.smbd.share / name).read_bytes(), b"genuine")
                until(lambda before=before: self.reasons_given(before).get("smb_forged") == 1, what="the reason is counted")


class UserWithoutHash(PairTest):
    """A login that cannot be opened: 3.1.1 is reset once, and then left alone; older dialects never notice."""

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)
        path = cls.lab.scratch / "ntlm_hashes"
        path.write_text(f"nobody:{'00' * 16}\n")
        path.chmod(0o600)
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER], "ntlm_hashes": str(path)}]

    def copies(self, dialect, protection):
        with smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
            data = made(100_000, seed_of(dialect, protection))
            smb_work.write_file(client, "copy", data)
            self.assertEqual((self.smbd.share / "copy").read_bytes(), data)
            until(lambda: [flow["reason"] for flow in self.branch.flows()] == ["smb_ntlm_user"], what="one flow, and why")
            client.disconnect()

    def test_each_dialect_is_served(self):
        for dialect, protection in PROTECTED:
            with self.subTest(dialect=dialect, protection=protection):
                if (dialect, protection) == ("3.1.1", "sign"):
                    before = self.branch.reasons()
                    with self.assertRaises(Exception):  # impacket's own, of many kinds
                        self.copies(dialect, protection)
                    until(lambda: self.reasons_given(before).get("smb_ntlm_user") == 1, what="both sides know why")
                self.copies(dialect, protection)


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Kerberos(PairTest):
    """A file server of a domain, whose keytab the far side has. Its clients log in with tickets."""

    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.site = cls.enterClassContext(domain.Domain(cls.lab))
        cls.site.log_in()
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER], "keytab": str(cls.site.export_keytab())}]

    def test_files_are_copied_with_tickets(self):
        for dialect, protection in PROTECTED:
            with self.subTest(dialect=dialect, protection=protection):
                how = {"dialect": dialect, "protection": protection}
                before = self.branch.reasons()
                there = self.site.make("there", 1_500_000, seed=seed_of(dialect, protection))
                self.assertEqual(self.site.get("there", **how), there)
                self.assertEqual(self.site.put(self.site.share / "there", "here", **how), there)
                self.assertEqual(set(self.reasons_given(before)), {"optimised"})


@contextlib.contextmanager
def changed_on_its_way(client):
    """The last byte of each message of this client is another one when it arrives."""
    session, send = client.session, client.session.send_packet
    session.send_packet = lambda data: send(bytes(data)[:-1] + bytes([bytes(data)[-1] ^ 1]))
    try:
        yield
    finally:
        session.send_packet = send


if __name__ == "__main__":
    unittest.main()
