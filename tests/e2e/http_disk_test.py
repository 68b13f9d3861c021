# SPDX-License-Identifier: Apache-2.0
"""Stored responses on disk between curl and nginx: they survive a restart of the near daemon, and a kill makes the server confirm
them first."""

import contextlib
import hashlib
import os
import unittest

import web
from http_test import Asked
from lab import Lab, until
from pair import Pair

CANARY = b"canary of a stored response, which must not be in the clear on any disk"


class OnDisk(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.pair = self.enterContext(Pair(self.lab))
        self.branch = self.pair.branch
        self.nginx = Asked(self.lab)
        (self.nginx.files / "hour").mkdir()
        self.content = CANARY * 20_000
        (self.nginx.files / "hour/file").write_bytes(self.content)
        until(lambda: self.objects()["ready"], what="the store on disk is ready")

    def objects(self):
        return self.branch.status()["disk_objects"]

    def stored_files(self):
        return [each for each in (self.branch.folder / "state/dictionary/objects").iterdir() if len(each.name) == 16]

    def fetch(self, *options):
        fetched = web.fetch(self.lab, "hour/file", *options)
        self.assertEqual((fetched.status, fetched.sha256), (200, hashlib.sha256(self.content).hexdigest()))
        return fetched

    def asked(self):
        return [status for target, _, status in self.nginx.asked() if target == "/hour/file"]

    def store(self):
        self.fetch()
        until(lambda: self.objects()["queued_bytes"] == 0 and self.objects()["objects"] == 1, what="it is on disk")

    def again(self):
        self.pair.branch.start()
        self.pair.wait_link()
        until(lambda: self.objects()["ready"], what="the store on disk is ready")

    def check_found(self, end, fetches, asked):
        """After this end of the near daemon its disk has the response, and the server is asked only so much."""
        for _ in range(5):  # a read that a busy host delays is not waited for: the server sends the response anew
            until(lambda: self.objects()["queued_bytes"] == 0 and self.objects()["objects"] == 1, what="it is on disk")
            end()
            self.again()
            before = self.asked()
            for _ in range(fetches):
                self.fetch()
            if not self.objects()["reads_late"]:
                break
        self.assertEqual(self.asked(), before + asked)
        self.assertEqual(self.objects()["reads"], 1)

    def test_a_restart_keeps_responses_and_a_kill_has_them_confirmed(self):
        self.store()
        for file in (self.branch.folder / "state").rglob("*"):
            if file.is_file():
                self.assertNotIn(CANARY, file.read_bytes(), file)
        self.check_found(self.branch.stop, fetches=1, asked=[])
        self.check_found(self.branch.kill, fetches=2, asked=["304"])
        self.assertIn("longhaul_disk_objects_total", self.branch.get("/metrics"))

    def test_a_disk_that_hangs_delays_one_request_and_is_not_asked_meanwhile(self):
        for name in "abcdef":
            (self.nginx.files / f"hour/{name}").write_bytes(name.encode() * 20_000)
            web.fetch(self.lab, f"hour/{name}")
        until(lambda: self.objects()["queued_bytes"] == 0 and self.objects()["objects"] == 6, what="they are on disk")
        self.branch.stop()
        self.again()
        # A program that opens a FIFO to read waits for a writer. Under another name, because the daemon removes what it replaces.
        fifos = self.lab.scratch / "fifos"
        fifos.mkdir()
        for path in self.stored_files():
            path.unlink()
            os.mkfifo(fifos / path.name)
            os.link(fifos / path.name, path)
        try:
            for name in "abcdef":
                self.assertEqual(web.fetch(self.lab, f"hour/{name}").sha256, hashlib.sha256(name.encode() * 20_000).hexdigest())
            hanging = self.objects()
            self.assertEqual((hanging["answers"], hanging["reads_late"], hanging["read_bytes"]), (False, hanging["reads"], 0))
            self.assertGreater(hanging["reads_skipped"], 0)
            self.assertIn("the disk responds too slowly", " ".join(self.branch.longhaul("status").split()))
        finally:
            for fifo in fifos.iterdir():  # its reader gets an empty file
                with contextlib.suppress(OSError):
                    os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        until(lambda: self.objects()["answers"], what="the disk answers again")

    def test_what_was_cleared_is_gone_with_its_key(self):
        self.store()
        key = (self.branch.folder / "state/objects.key").read_bytes()
        self.branch.longhaul("clear-cache", "objects")
        self.assertEqual(self.stored_files(), [])
        self.assertNotEqual((self.branch.folder / "state/objects.key").read_bytes(), key)
        self.branch.stop()
        self.again()
        self.fetch()
        self.assertEqual(self.asked(), ["200", "200"])


if __name__ == "__main__":
    unittest.main()
