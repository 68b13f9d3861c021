# SPDX-License-Identifier: Apache-2.0
"""Two SMB clients on one file, one behind the pair and one beside the server: what each sees of the other, and what is
on the server's disk after whatever happened between. The pair must not be told from a long line."""

import functools
import time
import unittest

import smb
import smb_client
import tcp
from lab import Lab, until
from pair import Pair, PairTest, link_cut_off
from smb_client import (ATTRIBUTES, BATCH, Broken, DELETE, DELETE_PENDING, DISK_FULL, FILE_LOCK_CONFLICT, LEVEL_II,
                        LOCK_NOT_GRANTED, NAME_NOT_FOUND, NO_OPLOCK, READ, SHARE_NONE, SHARE_READ, SHARING_VIOLATION,
                        SmbError, WRITE, beside)

BLOCK = 60_000
DIALECTS = ("NT1", "2.1", "3.1.1")


def made(size, seed):
    return b"".join(tcp.pieces(size, seed))


def each_dialect(story):
    """The test once for each dialect, with two clients and a file of 600,000 bytes: here is behind the pair."""

    @functools.wraps(story)
    def test(self):
        for dialect in DIALECTS:
            for path in self.smbd.share.iterdir():
                path.unlink()
            with self.subTest(dialect), \
                    smb_client.connect(self.lab, self.smbd, dialect) as here, \
                    smb_client.connect(self.lab, self.smbd, dialect, node="server") as there:
                self.smbd.make("file", len(self.data), seed=1)
                story(self, here, there)

    return test


def write_blocks(file, data, start=0):
    for at in range(0, len(data), BLOCK):
        file.write(start + at, data[at:at + BLOCK])


def read_all(file, start=0):
    data = bytearray()
    while got := file.read(start + len(data), BLOCK):
        data += got
    return bytes(data)


class TwoClients(PairTest):
    line = ("51.84mbit,40",)
    data = made(600_000, 1)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)

    def assert_fails(self, status, call):
        with self.assertRaises(SmbError) as failed:
            call()
        self.assertIn(failed.exception.status, (status,) if isinstance(status, int) else status)

    # -- breaks

    @each_dialect
    def test_a_break_reaches_the_holder_of_an_oplock_and_the_other_reads_all_that_it_wrote(self, here, there):
        new = made(900_000, 2)
        mine = here.open("file", READ | WRITE, oplock=BATCH)
        self.assertEqual(mine.oplock, BATCH)
        write_blocks(mine, new)
        opened = beside(lambda: there.open("file"))
        found = here.wait_break()
        here.acknowledge(found, LEVEL_II)
        theirs = opened()
        self.assertEqual(read_all(theirs), new)
        self.assertEqual(here.breaks, [])

    @each_dialect
    def test_who_asked_for_no_oplock_gets_no_break_and_keeps_nobody_waiting(self, here, there):
        new = made(900_000, 3)
        mine = here.open("file", READ | WRITE)
        self.assertEqual(mine.oplock, NO_OPLOCK)
        write_blocks(mine, new)
        began = time.monotonic()
        theirs = there.open("file")
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(read_all(theirs), new)
        mine.write(0, b"once more")
        self.assertEqual(theirs.read(0, 9), b"once more")
        self.assertEqual(here.breaks, [])

    @each_dialect
    def test_what_the_other_wrote_is_read_although_the_file_was_being_read(self, here, there):
        mine = here.open("file")
        data = bytearray(self.data)
        for at in range(0, 240_000, BLOCK):
            self.assertEqual(mine.read(at, BLOCK), self.data[at:at + BLOCK])
        theirs = there.open("file", READ | WRITE)
        for at in (0, 250_000, 590_000):
            theirs.write(at, b"changed")
            data[at:at + 7] = b"changed"
            self.assertEqual(mine.read(at, 7), b"changed")
        self.assertEqual(read_all(mine), bytes(data))

    @each_dialect
    def test_what_a_client_writes_that_had_the_file_open_before_is_read_at_once(self, here, there):
        theirs = there.open("file", READ | WRITE)
        mine = here.open("file")
        data = bytearray(self.data)
        for turn in range(8):
            at = turn * BLOCK
            self.assertEqual(mine.read(at, BLOCK), bytes(data[at:at + BLOCK]))
            theirs.write(at + BLOCK, b"turn %d" % turn)
            data[at + BLOCK:at + BLOCK + 6] = b"turn %d" % turn
        self.assertEqual(read_all(mine), bytes(data))

    @each_dialect
    def test_two_handles_of_one_client_see_each_others_bytes(self, here, there):
        one = here.open("file", READ | WRITE)
        two = here.open("file", READ | WRITE)
        for turn in range(6):
            one.write(turn * 1000, b"one %d" % turn)
            self.assertEqual(two.read(turn * 1000, 5), b"one %d" % turn)
            two.write(turn * 1000 + 100, b"two %d" % turn)
            self.assertEqual(one.read(turn * 1000 + 100, 5), b"two %d" % turn)
        one.close()
        self.assertEqual(there.open("file").read(5100, 5), b"two 5")

    # -- share modes, locks

    @each_dialect
    def test_share_modes_hold_while_a_file_is_open_and_not_a_moment_longer(self, here, there):
        mine = here.open("file", share=SHARE_NONE)
        self.assert_fails(SHARING_VIOLATION, lambda: there.open("file"))
        mine.close()
        theirs = there.open("file", share=SHARE_READ)
        self.assert_fails(SHARING_VIOLATION, lambda: here.open("file", WRITE))
        here.open("file").close()
        theirs.close()
        here.open("file", WRITE).close()
        there.open("file", share=SHARE_NONE).close()

    @each_dialect
    def test_byte_range_locks_of_the_other_refuse_reads_and_writes(self, here, there):
        mine = here.open("file", READ | WRITE)
        self.assertEqual(mine.read(0, BLOCK), self.data[:BLOCK])
        theirs = there.open("file", READ | WRITE)
        theirs.lock(100_000, 10)
        self.assert_fails((FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED), lambda: mine.read(90_000, BLOCK))
        self.assert_fails((FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED), lambda: mine.write(100_005, b"x"))
        self.assert_fails((FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED), lambda: mine.lock(100_009, 5))
        mine.write(100_010, b"beside it")
        theirs.unlock(100_000, 10)
        mine.lock(100_000, 10)
        self.assert_fails((FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED), lambda: theirs.write(100_005, b"x"))
        mine.close()
        theirs.write(100_005, b"x")

    # -- truncation, names, deletion

    @each_dialect
    def test_a_truncation_by_the_other_is_seen(self, here, there):
        mine = here.open("file")
        self.assertEqual(read_all(mine), self.data)
        theirs = there.open("file", READ | WRITE)
        theirs.truncate(1000)
        self.assertEqual(mine.read(1000, BLOCK), b"")
        self.assertEqual(mine.read(0, BLOCK), self.data[:1000])
        self.assertEqual(mine.size(), 1000)
        theirs.truncate(2000)
        self.assertEqual(mine.read(900, BLOCK), self.data[900:1000] + bytes(1000))

    @each_dialect
    def test_the_name_that_the_other_gave_a_file_is_its_name(self, here, there):
        mine = here.open("file")
        self.assertEqual(mine.read(0, 10), self.data[:10])
        mine.close()
        there.rename("file", "other")
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open("file"))
        self.assertEqual(here.listing(), {"other": 600_000})
        self.smbd.make("file", 10, seed=9)
        self.assertEqual(here.open("file").read(0, BLOCK), made(10, 9))
        self.assertEqual(here.open("other").read(0, BLOCK), self.data[:BLOCK])

    @each_dialect
    def test_a_file_deleted_by_either_is_gone_for_both(self, here, there):
        theirs = there.open("file", READ | DELETE)
        theirs.delete_on_close()
        self.assert_fails(DELETE_PENDING, lambda: here.open("file"))
        theirs.close()
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open("file"))
        self.smbd.make("file", 1000, seed=1)
        mine = here.open("file", READ | DELETE)
        self.assertEqual(mine.read(0, 10), self.data[:10])
        mine.delete_on_close()
        mine.close()
        self.assertFalse((self.smbd.share / "file").exists())
        self.assert_fails(NAME_NOT_FOUND, lambda: there.open("file", ATTRIBUTES))

    # -- what an answer promises

    @each_dialect
    def test_after_flush_and_after_close_all_is_on_the_servers_disk(self, here, there):
        new = made(800_000, 4)
        for oplock in NO_OPLOCK, BATCH:
            mine = here.open(f"new-{oplock}", READ | WRITE, smb_client.CREATE, oplock=oplock)
            write_blocks(mine, new[:400_000])
            mine.flush()
            self.assertEqual((self.smbd.share / mine.name).read_bytes(), new[:400_000])
            write_blocks(mine, new[400_000:], 400_000)
            mine.close()
            self.assertEqual((self.smbd.share / mine.name).read_bytes(), new)
            (self.smbd.share / mine.name).unlink()

    @each_dialect
    def test_write_through_is_on_the_servers_disk_when_answered(self, here, there):
        mine = here.open("file", READ | WRITE, oplock=BATCH,
                         options=smb_client.NON_DIRECTORY_FILE | smb_client.WRITE_THROUGH)
        mine.write(300, b"through")
        self.assertEqual((self.smbd.share / "file").read_bytes()[300:307], b"through")
        mine.close()
        mine = here.open("file", READ | WRITE, oplock=BATCH)
        mine.write(400, b"through", through=True)
        self.assertEqual((self.smbd.share / "file").read_bytes()[400:407], b"through")

    @each_dialect
    def test_a_client_that_just_ends_leaves_all_that_it_was_told_is_written(self, here, there):
        new = made(800_000, 5)
        mine = here.open("file", READ | WRITE, oplock=BATCH)
        write_blocks(mine, new)
        here.close()
        until(lambda: (self.smbd.share / "file").read_bytes() == new, what="all bytes are there")


class Trouble(unittest.TestCase):
    """Each with a lab of its own, since something in it breaks."""

    def start(self, **settings):
        self.lab = self.enterContext(Lab("51.84mbit,40"))
        self.smbd = smb.Smbd(self.lab, **settings)
        self.pair = self.enterContext(Pair(self.lab))

    def connect(self, dialect, **where):
        return self.enterContext(smb_client.connect(self.lab, self.smbd, dialect, **where))

    def test_a_full_disk_is_reported_and_what_was_not_reported_is_there(self):
        self.start(small="2m")
        for dialect in DIALECTS:
            for oplock in NO_OPLOCK, BATCH:
                with self.subTest(dialect=dialect, oplock=oplock):
                    client = self.connect(dialect, share="small")
                    data = made(3_000_000, 3)
                    file = client.open("large", READ | WRITE, smb_client.CREATE, oplock=oplock)
                    reported = []
                    for at in range(0, len(data), BLOCK):
                        try:
                            file.write(at, data[at:at + BLOCK])
                        except SmbError as error:
                            reported.append(error.status)
                            break
                    for end in file.flush, file.close:
                        try:
                            end()
                        except SmbError as error:
                            reported.append(error.status)
                    self.assertIn(DISK_FULL, reported)
                    there = self.smbd.path_of("large", "small").read_bytes()
                    self.assertEqual(there.rstrip(b"\0"), data[:len(there)][:len(there.rstrip(b"\0"))])
                    client.remove("large")
                    # What is not its fault goes on: the same connection, where there is room.
                    with client.open("little", READ | WRITE, smb_client.OVERWRITE_IF, oplock=oplock) as little:
                        write_blocks(little, data[:200_000])
                    self.assertEqual(self.smbd.path_of("little", "small").read_bytes(), data[:200_000])

    def test_a_server_that_crashes_breaks_the_connection_and_loses_nothing_that_was_flushed(self):
        self.start()
        for dialect in DIALECTS:
            with self.subTest(dialect):
                client = self.connect(dialect)
                data = made(900_000, 6)
                file = client.open(f"file-{dialect}", READ | WRITE, smb_client.CREATE, oplock=BATCH)
                write_blocks(file, data[:400_000])
                file.flush()
                self.smbd.crash()
                with self.assertRaises((Broken, SmbError)):
                    write_blocks(file, data[400_000:], 400_000)
                    file.close()
                self.smbd.start()
                again = self.connect(dialect)
                with again.open(f"file-{dialect}") as file:
                    self.assertEqual(read_all(file)[:400_000], data[:400_000])

    def test_a_link_that_is_cut_for_a_moment_costs_time_and_no_byte(self):
        self.start()
        for dialect in DIALECTS:
            with self.subTest(dialect):
                client = self.connect(dialect)
                data = made(1_500_000, 7)
                file = client.open(f"file-{dialect}", READ | WRITE, smb_client.CREATE, oplock=BATCH)
                write_blocks(file, data[:500_000])
                with link_cut_off(self.lab, "reject with tcp reset"):
                    rest = beside(lambda: (write_blocks(file, data[500_000:], 500_000), file.flush(), file.close()))
                    self.pair.branch.wait_link("down")
                rest()
                self.assertEqual((self.smbd.share / f"file-{dialect}").read_bytes(), data)
                self.pair.wait_link()

    def test_a_proxy_that_is_killed_resets_the_client_and_loses_nothing_that_was_flushed(self):
        for victim in "branch", "datacenter":
            self.start()
            for dialect in DIALECTS:
                with self.subTest(victim=victim, dialect=dialect):
                    client = self.connect(dialect)
                    data = made(900_000, 8)
                    file = client.open(f"file-{dialect}", READ | WRITE, smb_client.CREATE, oplock=BATCH)
                    write_blocks(file, data[:400_000])
                    file.flush()
                    write_blocks(file, data[400_000:], 400_000)
                    site = getattr(self.pair, victim)
                    site.kill()
                    end = beside(lambda: (file.flush(), file.close()))
                    site.start()  # a flow outlives the loss of its link for a while, but not its peer's
                    self.assertRaises(Broken, end)
                    there = (self.smbd.share / f"file-{dialect}").read_bytes()
                    self.assertEqual(there[:400_000], data[:400_000])
                    self.assertEqual(there.rstrip(b"\0"), data[:len(there.rstrip(b"\0"))])
                    self.pair.wait_link()


if __name__ == "__main__":
    unittest.main()
