# SPDX-License-Identifier: Apache-2.0
"""Clients that request a durable handle with every open. A client that is granted one keeps it and gets no promises,
however much it writes; a client that requests it without an oplock is granted none, as at the server, and is
answered early, unless the request is of version 2, which the server needs to recognise replays."""

import os
import unittest

import smb
import smb_client
from pair import PairTest, link_cut_off
from smb_client import BATCH, Broken, CREATE, DISK_FULL, LEASE_ALL, READ, SmbError, WRITE, beside
from two_clients import errors_of, made, read_all, write_blocks


class Durable(PairTest):
    line = ("51.84mbit,40",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab, small="4m")

    def setUp(self):
        self.pair.wait_link()  # a test before this one may have cut it
        for path in self.smbd.share.iterdir():
            path.unlink()

    def connect(self, dialect="2.1", **where):
        return self.enterContext(smb_client.connect(self.lab, self.smbd, dialect, **where))

    def open(self, client, name):
        """As pysmb does: durable, without an oplock."""
        file = client.open(name, READ | WRITE, CREATE, durable=True)
        self.assertFalse(file.durable)
        return file

    @staticmethod
    def counter(site, name):
        return sum(module["counters"][name] for module in site.status()["modules"])

    def promised(self):
        return self.counter(self.branch, "promises_made")

    def assert_begins(self, there, data, least):
        """All that was flushed, and behind that nothing that was not written."""
        there = there.read_bytes()
        self.assertEqual(there[:least], data[:least])
        there = there.rstrip(b"\0")
        self.assertEqual(there, data[:len(there)])

    def test_a_handle_that_is_durable_stays_so_and_is_promised_nothing(self):
        for dialect in "2.02", "2.1", "3.1.1":
            with self.subTest(dialect), smb_client.connect(self.lab, self.smbd, dialect) as client:
                promised = self.promised()
                asked = {"oplock": BATCH} if dialect == "2.02" else {"lease": (os.urandom(16), LEASE_ALL)}
                for name in "first", "second":
                    data = made(1_200_000, 2)
                    with client.open(f"{name}-{dialect}", READ | WRITE, CREATE, durable=True, **asked) as file:
                        self.assertTrue(file.durable)
                        write_blocks(file, data)
                    self.assertEqual((self.smbd.share / f"{name}-{dialect}").read_bytes(), data)
                self.assertEqual(self.promised(), promised)

    def write_without_an_oplock(self, dialect):
        """Gives how many writes were promised."""
        with smb_client.connect(self.lab, self.smbd, dialect, node="server") as directly:
            self.open(directly, "directly").close()
            directly.remove("directly")
        client, promised, data = self.connect(dialect), self.promised(), made(500_000, 2)
        with self.open(client, f"file-{dialect}") as file:
            write_blocks(file, data)
        self.assertEqual((self.smbd.share / f"file-{dialect}").read_bytes(), data)
        return self.promised() - promised

    def test_durability_without_an_oplock_is_ignored_as_at_the_server_and_writes_are_answered_early(self):
        for dialect in "2.02", "2.1":
            with self.subTest(dialect):
                self.assertGreater(self.write_without_an_oplock(dialect), 0)

    def test_durability_of_version_2_without_an_oplock_stays_in_the_request_and_is_promised_nothing(self):
        for dialect in "3.0", "3.1.1":
            with self.subTest(dialect):
                self.assertEqual(self.write_without_an_oplock(dialect), 0)

    def test_a_full_disk_is_reported_and_all_other_writes_are_on_disk(self):
        client = self.connect(share="small")
        promised = self.promised()
        data = made(4_500_000, 3)
        file = self.open(client, "large")
        reported = errors_of(lambda: write_blocks(file, data), file.flush, file.close)
        self.assertTrue({DISK_FULL, smb_client.LOST_WRITES} & set(reported), reported)  # a late error names no cause
        self.assertGreater(self.promised(), promised)
        self.assert_begins(self.smbd.path_of("large", "small"), data, 0)

    def test_a_server_that_crashes_breaks_the_connection_and_loses_nothing_that_was_flushed(self):
        client = self.connect()
        data = made(900_000, 6)
        file = self.open(client, "file")
        write_blocks(file, data[:400_000])
        file.flush()
        self.smbd.crash()
        with self.assertRaises((Broken, SmbError)):
            write_blocks(file, data[400_000:], 400_000)
            file.close()
        self.smbd.start()
        with smb_client.connect(self.lab, self.smbd) as again, again.open("file") as file:
            self.assertEqual(read_all(file)[:400_000], data[:400_000])

    def test_a_short_cut_of_the_link_delays_writes_and_loses_none(self):
        client = self.connect()
        promised = self.promised()
        data = made(1_500_000, 7)
        file = self.open(client, "file")
        write_blocks(file, data[:500_000])
        with link_cut_off(self.lab, "reject with tcp reset"):
            rest = beside(lambda: (write_blocks(file, data[500_000:], 500_000), file.flush(), file.close()))
            self.branch.wait_link("down")
        rest()
        self.assertEqual((self.smbd.share / "file").read_bytes(), data)
        self.assertGreater(self.promised(), promised)

    def test_a_proxy_that_is_killed_resets_the_client_whose_handle_is_gone_at_the_server(self):
        for site in self.branch, self.datacenter:
            with self.subTest(site.name):
                client = self.connect()
                promised = self.promised()
                data = made(900_000, 8)
                file = self.open(client, f"file-{site.name}")
                write_blocks(file, data[:400_000])
                file.flush()
                write_blocks(file, data[400_000:], 400_000)
                self.assertGreater(self.promised(), promised)
                site.kill()
                end = beside(lambda: (file.flush(), file.close()))
                site.start()  # a flow outlives the loss of its link for a while, but not its peer's
                self.assertRaises(Broken, end)
                self.assert_begins(self.smbd.share / file.name, data, 400_000)
                self.pair.wait_link()
                # No other client is kept out, so no handle can be reconnected. The client is told of the loss, once at most.
                with smb_client.connect(self.lab, self.smbd) as again:
                    told = errors_of(lambda: again.open(file.name).close())
                    self.assertIn(told, ([], [smb_client.LOST_WRITES]))
                    again.open(file.name, share=smb_client.SHARE_NONE).close()


if __name__ == "__main__":
    unittest.main()
