# SPDX-License-Identifier: Apache-2.0
"""The maximum age of an answer: a program on the server changes files beside smbd while a client behind the pair has
them open, lists their folder or looks at them. The tests assert an order: once the server's report of the change has
reached the near side, the new bytes and names are seen."""

import functools
import os
import time
import unittest

import smb
import smb_client
from lab import until
from pair import PairTest
from smb_client import ATTRIBUTES, NO_OPLOCK, READ, WRITE
from two_clients import BLOCK, made, read_all

DIALECTS = ("NT1", "2.1", "3.1.1")


def change(path, offset, data):
    """In place, as a program does that has the file open: neither its size nor its name changes."""
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def each_dialect(test):
    """The test once for each dialect, with a client behind the pair and a file of 600,000 bytes."""

    @functools.wraps(test)
    def tests(self):
        for dialect in DIALECTS:
            with self.subTest(dialect), smb_client.connect(self.lab, self.smbd, dialect) as client:
                for path in self.smbd.share.iterdir():
                    path.unlink()
                self.smbd.make("file", len(self.data), seed=1)
                test(self, client)

    return tests


class Beside(PairTest):
    line = ("51.84mbit,20",)
    data = made(600_000, 1)

    def ahead(self):
        """Bytes that were fetched before they were asked for."""
        return self.counted(self.branch, "ahead_bytes")

    @staticmethod
    def counted(site, name):
        return sum(module["counters"][name] for module in site.status()["modules"])

    def noticed_by(self, act):
        """Acts beside smbd, and waits until the far side has got the report."""
        before = self.counted(self.datacenter, "changes_noticed")
        act()
        until(lambda: self.counted(self.datacenter, "changes_noticed") > before, what="the change is noticed")

    def lists_what_came_meanwhile(self, client, seen_by):
        names = {f"a file with number {number:04}" for number in range(1500)}
        for name in names:
            (self.smbd.share / name).touch()
        before = self.counted(self.branch, "metadata_answers")
        pages = client.pages(buffer_bytes=16384)
        found = next(pages)
        self.assertLess(len(found), 200)
        while self.counted(self.branch, "metadata_answers") == before:
            self.assertLess(len(found), 1000, "nothing of the listing was ahead")
            found.update(next(pages))
        longer = max(names - set(found))

        def act():
            (self.smbd.share / "zz came later").touch()
            os.truncate(self.smbd.share / longer, 77)
        seen_by(act)
        client.open("file", ATTRIBUTES).close()  # over the line, behind the report of the change
        for page in pages:
            found.update(page)
        self.assertEqual(set(found), names | {"file", "zz came later"})
        self.assertEqual(found[longer], 77)


class Fresh(Beside):
    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab, shares={"silent": {"change notify": "no"}})
        cls.path = cls.smbd.share / "file"

    # -- bytes

    @each_dialect
    def test_bytes_changed_beside_smbd_are_read_although_they_were_read_ahead(self, client):
        file = client.open("file", READ)
        self.assertEqual(file.oplock, NO_OPLOCK)
        self.assertEqual(file.read(0, BLOCK), self.data[:BLOCK])
        until(lambda: self.ahead() >= len(self.data) - BLOCK, what="all of it lies ahead")
        data = bytearray(self.data)
        data[300_000:300_007] = b"changed"
        self.noticed_by(lambda: change(self.path, 300_000, b"changed"))
        until(lambda: file.read(300_000, 7) == b"changed", what="the new bytes are read")
        self.assertEqual(read_all(file), bytes(data))
        file.close()

    @each_dialect
    def test_data_read_before_a_change_is_not_returned_after_it(self, client):
        file = client.open("file", READ | WRITE)
        for turn in range(5):
            word = b"turn %d" % turn
            self.assertEqual(len(file.read(200_000, BLOCK)), BLOCK)
            self.noticed_by(lambda word=word: change(self.path, 200_000, word))
            until(lambda word=word: file.read(200_000, 6) == word, what="the new bytes are read")
            self.assertEqual(file.read(200_000, 6), word)
        file.close()

    @each_dialect
    def test_the_clients_own_writes_beside_others_do_not_hide_them(self, client):
        file = client.open("file", READ | WRITE)
        for turn in range(5):
            file.write(0, b"mine %d" % turn)
            self.assertEqual(file.read(0, 6), b"mine %d" % turn)
            self.noticed_by(lambda turn=turn: change(self.path, 400_000, b"theirs %d" % turn))
            until(lambda turn=turn: file.read(400_000, 8) == b"theirs %d" % turn, what="theirs is read")
        file.close()
        self.assertEqual(self.path.read_bytes()[:6], b"mine 4")

    @each_dialect
    def test_no_change_is_reported_while_nothing_changes(self, client):
        os.utime(self.path, (0, 1e9))  # one that was written a moment before counts as changed with SMB1
        with client.open("file", READ) as file:
            before = self.counted(self.datacenter, "changes_noticed")
            self.assertEqual(read_all(file), self.data)
            self.assertEqual(read_all(file), self.data)
            asked = self.counted(self.datacenter, "injected")
            until(lambda: self.counted(self.datacenter, "injected") >= asked + 2, what="the far half looks at the file")
            self.assertEqual(read_all(file), self.data)
            self.assertEqual(self.counted(self.datacenter, "changes_noticed"), before)

    # -- attributes and names

    @each_dialect
    def test_the_size_of_an_open_file_is_the_one_that_a_local_program_has_made(self, client):
        file = client.open("file", READ)
        self.assertEqual(file.size(), len(self.data))
        self.noticed_by(lambda: os.truncate(self.path, 1000))
        until(lambda: file.size() == 1000, what="the new size is told")
        self.assertEqual(read_all(file), self.data[:1000])
        with client.open("file", ATTRIBUTES) as look:
            self.assertEqual((look.size_at_open, look.size()), (1000, 1000))
        file.close()

    @each_dialect
    def test_the_free_space_is_told_without_the_line_while_it_is_looked_at(self, client):
        with client.open("file", READ) as file:
            before = self.counted(self.branch, "metadata_answers")

            def is_told_here():
                file.query_volume()
                return self.counted(self.branch, "metadata_answers") > before
            until(is_told_here, what="a query is answered on the near side")

    @each_dialect
    def test_a_name_that_comes_and_goes_beside_smbd_is_listed_so(self, client):
        self.assertEqual(set(client.listing()), {"file"})
        (self.smbd.share / "new").touch()
        self.assertIn("new", client.listing())
        (self.smbd.share / "new").unlink()
        self.assertNotIn("new", client.listing())

    @each_dialect
    def test_a_listing_in_progress_includes_names_created_meanwhile(self, client):
        self.lists_what_came_meanwhile(client, self.noticed_by)

    @each_dialect
    def test_a_large_folder_is_listed_ahead_of_the_client_and_whole(self, client):
        sizes = {f"a file with number {number:04}": number for number in range(3000)}
        for name, size in sizes.items():
            with open(self.smbd.share / name, "wb") as file:
                file.truncate(size)
        before = self.counted(self.branch, "metadata_answers")
        self.assertEqual(client.listing(buffer_bytes=16384), sizes | {"file": len(self.data)})
        self.assertGreater(self.counted(self.branch, "metadata_answers"), before)
        # What was deleted while the client had half of it is no reason to end early.
        pages, found = client.pages(buffer_bytes=16384), {}
        while len(found) < 1000:
            found.update(next(pages))
        for name in sorted(sizes)[::3]:
            (self.smbd.share / name).unlink()
        for page in pages:
            found.update(page)
        self.assertLessEqual(set(sorted(sizes)[1::3]) | set(sorted(sizes)[2::3]), set(found))

    # -- folders are let go of

    @each_dialect
    def test_a_watched_folder_can_be_removed_and_renamed(self, client):
        if client.dialect == "NT1":
            return  # that client cannot remove folders
        folder = self.smbd.share / "folder"
        folder.mkdir()
        (folder / "file").write_bytes(self.data)
        with client.open("folder/file", READ) as file:
            self.assertEqual(read_all(file), self.data)
        client.rename("folder", "other")
        self.assertFalse(folder.exists())
        with client.open("other/file", READ) as file:
            self.assertEqual(read_all(file), self.data)
        client.remove("other/file")
        client.remove_folder("other")
        self.assertFalse((self.smbd.share / "other").exists())

    def test_a_server_that_watches_nothing_is_read_through(self):
        path = self.smbd.folder_of("silent") / "file"
        path.write_bytes(self.data)
        for dialect in DIALECTS:
            with self.subTest(dialect), smb_client.connect(self.lab, self.smbd, dialect, share="silent") as client, \
                    client.open("file", READ) as file:
                self.assertEqual(read_all(file), self.data)


class TellsNothing(Beside):
    """A server that accepts a CHANGE_NOTIFY, and reports no local change. It cannot be distinguished from a server where
    nothing happens, so all are also asked for the times of files."""

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab, settings={"kernel change notify": "no"})  # of notifyd: no share can set it
        cls.path = cls.smbd.share / "file"

    def test_bytes_changed_beside_smbd_are_read_by_the_time_of_their_file(self):
        self.times([dialect for dialect in DIALECTS if dialect != "NT1"])

    def test_the_same_with_smb_1(self):
        self.times(["NT1"])

    def times(self, dialects):
        path = self.smbd.share / "file"
        for dialect in dialects:
            path.write_bytes(self.data)
            noticed = self.counted(self.datacenter, "changes_noticed")
            with self.subTest(dialect), smb_client.connect(self.lab, self.smbd, dialect) as client:
                before = self.ahead()  # opening the file may be enough
                with client.open("file", READ) as file:
                    self.assertEqual(file.read(0, BLOCK), self.data[:BLOCK])
                    until(lambda before=before: self.ahead() >= before + 2 * BLOCK, what="the next blocks lie ahead")
                    change(path, BLOCK, b"changed")
                    until(lambda file=file: file.read(BLOCK, 7) == b"changed", what="the change is seen")
                    self.assertEqual(file.read(2 * BLOCK, 7), self.data[2 * BLOCK:2 * BLOCK + 7])
                self.assertGreater(self.counted(self.datacenter, "changes_noticed"), noticed)

    @each_dialect
    def test_bytes_are_read_so_by_a_client_that_asks_for_an_oplock_and_reads_from_the_server_all_the_same(self, client):
        before = self.ahead()  # opening the file may be enough
        with client.open("file", READ, oplock=smb_client.BATCH) as file:
            self.assertNotEqual(file.oplock, NO_OPLOCK)
            self.assertEqual(file.read(0, BLOCK), self.data[:BLOCK])
            until(lambda: self.ahead() >= before + 2 * BLOCK, what="the next blocks lie ahead")
            noticed = self.counted(self.datacenter, "changes_noticed")
            change(self.path, BLOCK, b"changed")
            until(lambda: file.read(BLOCK, 7) == b"changed", what="the change is seen")
            self.assertGreater(self.counted(self.datacenter, "changes_noticed"), noticed)

    @each_dialect
    def test_a_listing_in_progress_includes_names_created_and_sizes_changed_meanwhile(self, client):
        def after_a_second(act):
            act()
            made = time.monotonic()  # the rest of a listing serves for a second
            until(lambda: time.monotonic() > made + 1.1)
        self.lists_what_came_meanwhile(client, after_a_second)


if __name__ == "__main__":
    unittest.main()
