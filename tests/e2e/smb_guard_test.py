# SPDX-License-Identifier: Apache-2.0
"""Clients that come back for a file whose promised writes are lost, while the flow cannot use the link any more: the
daemon beside the server is gone for good, or the one beside the client is. The next open that goes on with the file
fails, once, whichever way its flow takes."""

import unittest

import smb
import smb_client
from lab import Lab, long_test
from pair import Pair
from smb_client import Broken, READ, SmbError, WRITE, beside
from two_clients import made, read_all, write_blocks


class ComesBack(unittest.TestCase):
    """The client logs in again, with another GUID and from another port, and requests no oplock."""

    def start(self):
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.smbd = smb.Smbd(self.lab)
        self.pair = self.enterContext(Pair(self.lab))

    def connect(self, dialect):
        return self.enterContext(smb_client.connect(self.lab, self.smbd, dialect))

    def lose_writes(self, dialect, name, crash):
        """Leaves acknowledged writes on the line as something crashes. Gives the client and its file."""
        client = self.connect(dialect)
        client.open(f"whole-{name}", READ | WRITE, smb_client.CREATE).close()
        file = client.open(name, READ | WRITE, smb_client.CREATE)
        write_blocks(file, made(300_000, 15))
        file.flush()
        self.lab.link("1mbit,40")  # so that much is on its way, however slow this host is
        write_blocks(file, made(900_000, sum(name.encode())), 300_000)  # bytes that did not cross before
        self.assertGreater(sum(module["counters"]["promised_bytes"]
                               for module in self.pair.branch.status()["modules"]), 0)
        crash()
        return client, file

    def assert_told_once(self, dialect, name):
        self.lab.link("51.84mbit,20")
        again = self.connect(dialect)
        again.open(f"whole-{name}", READ | WRITE).close()
        for access in READ, READ | WRITE:  # a client that only reads would get old bytes
            with self.assertRaises(SmbError) as refused:
                again.open(name, access)
            self.assertEqual(refused.exception.status, smb_client.LOST_WRITES)
        # The same connection goes on, and the file is the client's again.
        with again.open(name, READ | WRITE) as file:
            self.assertEqual(file.read(0, 1000), made(1000, 15))
            write_blocks(file, made(600_000, 17))
            file.flush()
            self.assertEqual(read_all(file)[:600_000], made(600_000, 17))
        again.close()
        other = self.connect(dialect)
        other.open(name, READ | WRITE).close()
        other.close()


class PastTheLink(ComesBack):
    def lose_far_daemon(self):
        self.pair.datacenter.kill()
        self.pair.branch.wait_link("down")

    def test_a_client_that_bypasses_the_link_is_told_once_of_writes_lost_by_a_crashed_server(self):
        self.start()
        for dialect in "NT1", "2.1", "3.1.1":
            with self.subTest(dialect):
                _, file = self.lose_writes(dialect, f"robbed-{dialect}", self.smbd.crash)
                self.assertRaises((Broken, SmbError), file.flush)
                self.smbd.start()
        self.lose_far_daemon()
        for dialect in "NT1", "2.1", "3.1.1":
            with self.subTest(dialect):
                self.assert_told_once(dialect, f"robbed-{dialect}")
        self.assertIn("lost_writes", self.pair.branch.reasons())

    @long_test
    def test_a_client_that_gives_up_waiting_for_a_far_daemon_that_is_gone_is_told_once(self):
        for dialect in "NT1", "2.1", "3.1.1":
            with self.subTest(dialect):
                self.start()
                client, _ = self.lose_writes(dialect, "robbed", self.lose_far_daemon)
                client.close()
                self.pair.branch.wait_flows(0, 90)
                self.assert_told_once(dialect, "robbed")

    @long_test
    def test_a_client_that_is_reset_after_the_far_daemon_is_gone_is_told_once(self):
        for dialect in "NT1", "2.02", "3.0":
            with self.subTest(dialect):
                self.start()
                client, file = self.lose_writes(dialect, "robbed", self.lose_far_daemon)
                self.assertRaises(Broken, beside(lambda: (file.flush(), file.close())), 120)
                client.close()
                self.assert_told_once(dialect, "robbed")


class NearIsGone(ComesBack):
    """The host beside the client forwards its packets, and the one beside the server meets them on the WAN."""

    @long_test
    def test_a_client_whose_near_daemon_is_gone_for_good_is_told_once(self):
        for dialect in "2.1", "NT1":
            with self.subTest(dialect):
                self.start()
                _, file = self.lose_writes(dialect, "robbed", self.pair.branch.kill)
                self.assertRaises((Broken, SmbError), file.flush)
                self.pair.datacenter.wait_flows(0, 90)  # a session without a carrier is given up after 60 s
                self.assert_told_once(dialect, "robbed")
                self.assertIn("lost_writes", self.pair.datacenter.reasons())


if __name__ == "__main__":
    unittest.main()
