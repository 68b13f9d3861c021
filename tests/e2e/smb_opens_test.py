# SPDX-License-Identifier: Apache-2.0
"""Files that the pair opens before its client requests them, and operations of another client on the same files:
both must see what they would see without the pair."""

import functools
import struct
import time
import unittest
import uuid

import smb
import smb_client
import smb_work
from lab import until
from pair import PairTest
from smb_client import (ATTRIBUTES, DELETE, DELETE_PENDING, NAME_NOT_FOUND, READ, SHARE_NONE, SHARING_VIOLATION,
                        SmbError, WRITE)

COUNT, SIZE = 24, 3000
WRITTEN = 132_000_000_000_000_000  # a FILETIME: 2019
READ_BEFORE = 8  # so many are read, and the next ones are opened ahead


def name_of(number):
    return f"folder/file {number:02}"


def each_dialect(story):
    """The test once for each dialect: `here`, behind the pair, has listed a folder and read its first files."""

    @functools.wraps(story)
    def test(self):
        # The client of 3.1.1 asks for a durable handle with every open, and is granted none without an oplock.
        for dialect, self.durable in (("2.1", False), ("3.1.1", True)):
            with self.subTest(dialect), \
                    smb_client.connect(self.lab, self.smbd, dialect) as here, \
                    smb_client.connect(self.lab, self.smbd, dialect, node="server") as there:
                for number in range(COUNT):
                    self.smbd.make(name_of(number), SIZE, seed=number)
                self.here = here
                self.assertEqual(len(here.listing("folder")), COUNT)
                for number in range(READ_BEFORE):
                    self.assert_reads(number, self.bytes_of(number))
                until(lambda: self.counted("opens_ahead") >= self.counted("opens_ahead_used") + 4,
                      what="some files are open ahead")
                story(self, here, there)

    return test


class OpensAhead(PairTest):
    line = ("51.84mbit,40",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)

    def counted(self, name):
        return sum(module["counters"][name] for module in self.branch.status()["modules"])

    def bytes_of(self, number):
        return (self.smbd.share / name_of(number)).read_bytes()

    def assert_reads(self, number, data):
        with self.here.open(name_of(number), durable=self.durable) as file:
            self.assertEqual(file.read(0, 65536), data)

    def assert_fails(self, status, call):
        with self.assertRaises(SmbError) as failed:
            call()
        self.assertEqual(failed.exception.status, status)

    @each_dialect
    def test_files_opened_ahead_cost_no_round_trips(self, here, there):
        del there
        used = self.counted("opens_ahead_used")
        count, _ = smb_work.read_many(here, "folder")
        self.assertEqual(count, COUNT)
        until(lambda: self.counted("opens_ahead_used") > used, what="some of them were used")

    @each_dialect
    def test_another_client_can_open_one_exclusively_at_once(self, here, there):
        began = time.monotonic()
        theirs = there.open(name_of(READ_BEFORE), share=SHARE_NONE)
        self.assertLess(time.monotonic() - began, 30)  # a break without an answer takes 35 s
        self.assert_fails(SHARING_VIOLATION, lambda: here.open(name_of(READ_BEFORE)))
        theirs.close()
        self.assert_reads(READ_BEFORE, self.bytes_of(READ_BEFORE))

    @each_dialect
    def test_data_that_another_client_writes_into_one_is_read(self, here, there):
        del here
        for number, how in ((READ_BEFORE, "write"), (READ_BEFORE + 1, "truncate"), (READ_BEFORE + 2, "replace")):
            with there.open(name_of(number), READ | WRITE,
                            smb_client.SUPERSEDE if how == "replace" else smb_client.OPEN) as theirs:
                if how == "truncate":
                    theirs.truncate(1000)
                else:
                    theirs.write(100, b"written by another")
        for number in range(READ_BEFORE, READ_BEFORE + 4):
            self.assert_reads(number, self.bytes_of(number))

    @each_dialect
    def test_one_that_another_deletes_or_renames_is_gone(self, here, there):
        there.remove(name_of(READ_BEFORE))
        there.rename(name_of(READ_BEFORE + 1), "folder/another name")
        theirs = there.open(name_of(READ_BEFORE + 2), READ | DELETE)
        theirs.delete_on_close()
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open(name_of(READ_BEFORE)))
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open(name_of(READ_BEFORE + 1)))
        self.assert_fails(DELETE_PENDING, lambda: here.open(name_of(READ_BEFORE + 2)))
        theirs.close()
        self.assert_reads(READ_BEFORE + 3, self.bytes_of(READ_BEFORE + 3))
        there.remove("folder/another name")

    @each_dialect
    def test_the_client_itself_may_do_anything_with_them(self, here, there):
        del there
        with here.open(name_of(READ_BEFORE), READ | WRITE, share=SHARE_NONE) as file:
            file.write(0, b"by itself")
        self.assertEqual(self.bytes_of(READ_BEFORE)[:9], b"by itself")
        self.assert_reads(READ_BEFORE, self.bytes_of(READ_BEFORE))
        here.remove(name_of(READ_BEFORE + 1))
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open(name_of(READ_BEFORE + 1)))
        self.assertFalse((self.smbd.share / name_of(READ_BEFORE + 1)).exists())
        here.rename(name_of(READ_BEFORE + 2), name_of(READ_BEFORE + 1))
        self.assert_fails(NAME_NOT_FOUND, lambda: here.open(name_of(READ_BEFORE + 2)))
        self.assert_reads(READ_BEFORE + 1, self.bytes_of(READ_BEFORE + 1))
        here.open(name_of(READ_BEFORE + 4), ATTRIBUTES).close()
        self.assert_reads(READ_BEFORE + 3, self.bytes_of(READ_BEFORE + 3))
        here.rename("folder", "other")
        self.assertTrue((self.smbd.share / "other").exists())
        with here.open("other/file 23") as file:
            self.assertEqual(file.read(0, 65536), (self.smbd.share / "other/file 23").read_bytes())
        self.assert_fails(smb_client.PATH_NOT_FOUND, lambda: here.open(name_of(READ_BEFORE + 5)))
        here.rename("other", "folder")

    def lease(self):
        return uuid.uuid4().bytes, 0x07

    def look(self, client, number):
        """Its size and its last write, as a look tells them."""
        created, queried, closed = client.look(name_of(number), close_flags=1)
        told = struct.unpack_from("<16xQ24xQ", queried, 8)
        self.assertEqual(told, struct.unpack_from("<24xQ16xQ", created))  # 2.2.14
        self.assertEqual(told, struct.unpack_from("<24xQ16xQ", closed))  # 2.2.16
        self.assertEqual(struct.unpack_from("<76xI", queried, 8), (ATTRIBUTES,))  # AccessFlags
        return told[::-1]

    def looks_and_reads(self, client, number):
        size, _ = self.look(client, number)
        data = self.bytes_of(number)
        self.assertEqual(size, len(data))
        with client.open(name_of(number), lease=self.lease()) as file:
            self.assertEqual(file.read(0, 65536), data)

    def test_looks_before_opens_are_answered_from_files_opened_for_them(self):
        for dialect in ("2.1", "3.1.1"):
            with self.subTest(dialect), smb_client.connect(self.lab, self.smbd, dialect) as here, \
                    smb_client.connect(self.lab, self.smbd, dialect, node="server") as there:
                for number in range(COUNT):
                    self.smbd.make(name_of(number), SIZE + number, seed=number)
                self.look(here, 0)  # as Linux does when it mounts a share
                self.assertEqual(len(here.listing("folder")), COUNT)
                ahead, used = self.counted("opens_ahead"), self.counted("opens_ahead_used")
                for number in range(READ_BEFORE):
                    self.looks_and_reads(here, number)
                until(lambda: self.counted("opens_ahead") - ahead > self.counted("opens_ahead_used") - used,
                      what="the next files are open ahead")

                # The next ones are changed: by another client, and their times by this one.
                with there.open(name_of(READ_BEFORE), READ | WRITE) as theirs:
                    theirs.write(SIZE, b"longer than before, by another client")
                self.assertEqual(self.look(here, READ_BEFORE)[0], len(self.bytes_of(READ_BEFORE)))
                there.remove(name_of(READ_BEFORE + 1))
                self.assert_fails(NAME_NOT_FOUND, lambda: here.look(name_of(READ_BEFORE + 1)))
                with here.open(name_of(READ_BEFORE + 2), smb_client.WRITE_ATTRIBUTES) as own:
                    own.set_written(WRITTEN)
                self.assertEqual(self.look(here, READ_BEFORE + 2)[1], WRITTEN)
                began = time.monotonic()
                there.open(name_of(READ_BEFORE + 3), share=SHARE_NONE).close()
                self.assertLess(time.monotonic() - began, 30)  # a break without an answer takes 35 s
                until(lambda: self.counted("opens_ahead_used") > used, what="some looks were answered locally")
                used = self.counted("opens_ahead_used")
                for number in (READ_BEFORE, *range(READ_BEFORE + 2, COUNT)):
                    self.looks_and_reads(here, number)
                until(lambda: self.counted("opens_ahead_used") > used, what="some more looks were answered locally")


if __name__ == "__main__":
    unittest.main()
