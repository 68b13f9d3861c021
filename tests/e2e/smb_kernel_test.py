# SPDX-License-Identifier: Apache-2.0
"""Linux's own SMB client, in the guest, through the pair: with and without a cache of its own, signed, encrypted. What
it reads, writes and finds on a file of random operations is what is on the server's disk."""

import hashlib
import unittest

import kernel_client
import realms
import smb
import smb_client
from guest import Guest, ScriptFailed
from kernel_client import Mount
from lab import SERVER, early, long_test, until
from pair import PairTest


class Mounts(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)
        cls.guest = cls.enterClassContext(Guest(cls.lab))

    def story(self, dialect, *options, operations, size, offset=0, seed=3):
        with self.subTest(dialect=dialect, options=options, offset=offset), \
                Mount(self.guest, self.smbd, dialect, *options) as mount:
            there = self.smbd.make("there", size, seed=seed)
            found = mount.work("read", "there")
            self.assertEqual((found["bytes"], found["sha256"]), (size, there))
            found = mount.work("write", "here", size=size, seed=seed + 1)
            self.assertEqual(self.smbd.sha256_of("here"), found["sha256"])
            mapped = {"mapped": True} if "cache=strict" in options else {}
            found = mount.work("random", "random", 300, count=operations, seed=seed, offset=offset, **mapped)
            with open(self.smbd.share / "random", "rb") as file:
                file.seek(offset)
                rest = file.read()
            self.assertEqual(hashlib.sha256(rest).hexdigest(), found["sha256_of_rest"])
            if kernel_client.FSX.exists():
                mount.fsx(operations, seed)
            self.assert_tree(mount)

    def copied(self, dialect, *options, key, **where):
        """Files are read ahead, and both copies are right. `key`: how the pair has found the session's."""
        with self.subTest(dialect=dialect, options=options), \
                Mount(self.guest, self.smbd, dialect, "cache=none", *options, **where) as mount:
            there = self.smbd.make("there", 900_000, seed=len(str(options)))
            self.assertEqual(mount.work("read", "there")["sha256"], there)
            self.assertEqual(mount.work("write", "here", size=700_000, seed=5)["sha256"], self.smbd.sha256_of("here"))
            flow, = until(lambda: len(found := [flow for flow in self.branch.flows() if flow["module"]]) == 1 and found,
                          what="earlier flows have ended")
            self.assertIn(f"SMB {dialect}, ", flow["module"]["detail"])
            self.assertIn(key, flow["module"]["detail"])
            self.assertGreater(flow["module"]["counters"]["ahead_used_bytes"], 0)
            self.assertNotIn(flow["reason"], ("smb_signed", "smb_encrypted"))
            self.assert_tree(mount)

    def looks(self, *options):
        """Linux queries a name before it opens the file once a second has passed since the listing. These queries are
        answered from files opened for them."""
        with self.subTest(options=options), Mount(self.guest, self.smbd, "3.1.1", "cache=none", *options) as mount:
            for number in range(100):
                self.smbd.make(f"looks/file-{number:04}", 2000 + number, seed=number)
            data = b"".join((self.smbd.share / f"looks/file-{number:04}").read_bytes() for number in range(100))
            used = self.opens_ahead_used()
            self.assertEqual(mount.work("list", "looks")["files"], 100)
            self.assertEqual(mount.work("read-many", "looks")["sha256"], hashlib.sha256(data).hexdigest())
            until(lambda: self.opens_ahead_used() >= used + 20, what="queries were answered locally")

    def opens_ahead_used(self):
        return sum(module["counters"]["opens_ahead_used"] for module in self.branch.status()["modules"])

    def assert_tree(self, mount):
        folder = self.smbd.share / "tree"
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        found = mount.work("write-many", "tree", count=30, size=5000, seed=9)
        self.assertEqual(mount.work("list", "tree")["files"], 30)
        self.assertEqual(mount.work("read-many", "tree")["sha256"], found["sha256"])
        data = b"".join((folder / f"file-{number:04}").read_bytes() for number in range(30))
        self.assertEqual(hashlib.sha256(data).hexdigest(), found["sha256"])


@unittest.skipUnless(kernel_client.is_there(), "there is no guest: it is made by tools/setup, on x86_64")
@early
class Kernel(Mounts):
    def test_mounts_of_smb_1_and_3_read_write_and_pass_random_operations(self):
        self.story("NT1", "cache=none", operations=40, size=300_000)
        self.story("3.1.1", "cache=none", operations=40, size=300_000)
        self.story("3.1.1", "cache=strict", operations=40, size=300_000)

    def test_queries_before_opens_are_answered_locally(self):
        self.looks()

    def promised_bytes(self):
        return sum(module["counters"]["promised_bytes"] for module in self.branch.status()["modules"])

    def write_cached(self, on):
        """Promises also for clients that cache by themselves."""
        for site in self.branch, self.datacenter:
            site.set(**{"smb.write_behind_cached": on})

    def test_writes_of_a_mount_wait_for_the_server_unless_configured_otherwise(self):
        # SMB1, since in all other dialects its handles are durable, and those are promised nothing.
        self.addCleanup(self.write_cached, False)
        with Mount(self.guest, self.smbd, "NT1", "cache=none") as mount:
            for turn, on in enumerate((False, True)):
                self.write_cached(on)
                before = self.promised_bytes()
                found = mount.work("write", f"file-{turn}", size=1_500_000, seed=20 + turn)
                self.assertEqual(self.smbd.sha256_of(f"file-{turn}"), found["sha256"])
                self.assertEqual(self.promised_bytes() > before, on)
        with Mount(self.guest, self.smbd, "3.1.1", "cache=none") as mount:
            before = self.promised_bytes()
            found = mount.work("write", "durable", size=1_500_000, seed=22)
            self.assertEqual(self.smbd.sha256_of("durable"), found["sha256"])
            self.assertEqual(self.promised_bytes(), before)

    @long_test
    def test_a_program_learns_of_promised_writes_that_died_with_the_far_proxy(self):
        # Linux opens the file again by its name and would go on as if nothing had been.
        self.addCleanup(self.write_cached, False)
        self.write_cached(True)
        with Mount(self.guest, self.smbd, "NT1", "cache=none") as mount:
            self.lab.link("4mbit,40")  # so that much is on its way
            self.addCleanup(lambda: self.lab.link(*self.line))
            promised = self.promised_bytes()
            program = smb_client.beside(lambda: mount.work("write", "lost", size=4_000_000, seed=31))
            until(lambda: self.promised_bytes() > promised + 600_000, what="writes are promised")
            self.datacenter.kill()
            self.datacenter.start()
            with self.assertRaises(ScriptFailed) as failed:
                program(120)
            self.assertIn("Input/output error", failed.exception.output)
            self.pair.wait_link()

    @long_test
    def test_every_dialect_and_cache_with_random_operations_also_beyond_two_and_four_gibibytes(self):
        for dialect in kernel_client.VERSIONS:
            for cache in "cache=none", "cache=strict":
                for offset in 0, (1 << 31) - 100_000, (1 << 32) - 100_000:
                    self.story(dialect, cache, operations=1000, size=3_000_001, offset=offset)

    @long_test
    def test_signed_and_encrypted_mounts(self):
        for dialect, protection in (("NT1", "sign"), ("2.1", "sign"), ("3.0", "sign"), ("3.1.1", "sign"),
                                    ("3.0", "seal"), ("3.1.1", "seal")):
            for cache in "cache=none", "cache=strict":
                self.story(dialect, protection, cache, operations=300, size=3_000_001)


@unittest.skipUnless(kernel_client.is_there(), "there is no guest: it is made by tools/setup, on x86_64")
@early
class Sealed(Mounts):
    """Where the far side has the key, signed and encrypted mounts are accelerated."""

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.datacenter.settings["smb_server"] = cls.smbd.keys()

    def test_signed_and_encrypted_mounts_pass_random_operations(self):
        for dialect, protection in ("NT1", "sign"), ("2.1", "sign"), ("3.1.1", "sign"), ("3.1.1", "seal"):
            before = self.branch.reasons()
            self.story(dialect, protection, "cache=none", operations=40, size=300_000)
            self.assertNotIn("smb_signed", self.reasons_given(before))
            self.assertNotIn("smb_encrypted", self.reasons_given(before))

    def test_queries_before_opens_are_answered_locally(self):
        self.looks("sign")
        self.looks("seal")

    def test_mounts_that_name_ntlm_are_accelerated(self):
        for dialect, *options in ("2.1", "sec=ntlmsspi"), ("3.1.1", "sec=ntlmsspi"), ("3.1.1", "sec=ntlmssp", "seal"):
            self.copied(dialect, *options, key="key from an NTLM hash")


@unittest.skipUnless(kernel_client.is_there(), "there is no guest: it is made by tools/setup, on x86_64")
@early
class Channels(Mounts):
    """Mounts that ask the server for its addresses and open more connections for their session."""

    @classmethod
    def prepare(cls):
        # With RSS Linux opens several to one address.
        cls.smbd = smb.Smbd(cls.lab, {"server multi channel support": "yes",
                                      "interfaces": f'"{SERVER};speed=1000000000,capability=RSS"'})
        cls.guest = cls.enterClassContext(Guest(cls.lab))
        cls.datacenter.settings["smb_server"] = cls.smbd.keys()

    def worked(self, dialect, *options):
        """What the flows of a mount with several connections, if it gets them, were given, and how many they are."""
        before, flows = self.branch.reasons(), 0
        with Mount(self.guest, self.smbd, dialect, "cache=none", "multichannel", "max_channels=3", *options) as mount:
            there = self.smbd.make("there", 900_000, seed=len(str(options)))
            self.assertEqual(mount.work("read", "there")["sha256"], there)
            self.assertEqual(mount.work("write", "here", size=700_000, seed=6)["sha256"], self.smbd.sha256_of("here"))
            self.assert_tree(mount)
            flows = len(self.branch.flows())
        until(lambda: not self.branch.flows(), what="the mount's connections have ended")
        return flows, set(self.reasons_given(before))

    def test_a_mount_with_several_connections_in_3_0_reads_and_writes_what_it_should_without_the_module(self):
        for protection in "sign", "seal":
            with self.subTest(protection):
                flows, reasons = self.worked("3.0", protection)
                self.assertEqual(flows, 3)
                self.assertIn("smb_multichannel", reasons)

    def test_a_mount_in_3_1_1_gets_one_connection_which_is_accelerated(self):
        for protection in "sign", "seal":
            with self.subTest(protection):
                flows, reasons = self.worked("3.1.1", protection)
                self.assertEqual(flows, 1)
                self.assertNotIn("smb_multichannel", reasons)


@unittest.skipUnless(kernel_client.is_there() and kernel_client.knows_tickets() and realms.are_there(),
                     "there is no guest, request-key, or MIT's KDC: they come with tools/setup, on x86_64")
@early
class Tickets(Mounts):
    """Mounts that log in with Kerberos."""

    @classmethod
    def prepare(cls):
        cls.realms = cls.enterClassContext(realms.Realms(cls.lab))
        keytab = cls.realms.export_keytab()
        cls.smbd = realms.Server(cls.realms, keytab)
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER], "keytab": str(keytab)}]
        cls.guest = cls.enterClassContext(Guest(cls.lab))

    def test_signed_and_encrypted_mounts_with_tickets_are_accelerated(self):
        self.realms.log_in()
        kernel_client.give_tickets(self.guest, self.realms, realms.NAME)
        for dialect, *options in (("2.1", "sec=krb5i"), ("3.0", "sec=krb5i"), ("3.1.1", "sec=krb5i"),
                                  ("3.1.1", "sec=krb5", "seal"), ("3.1.1", "sec=krb5i", "seal")):
            self.copied(dialect, *options, host=realms.NAME, key="key from the keytab")


if __name__ == "__main__":
    unittest.main()
