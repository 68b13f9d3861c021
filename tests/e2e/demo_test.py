# SPDX-License-Identifier: Apache-2.0
"""The demo (tools/demo): every step compares its bytes, the page is whole, an interrupt leaves nothing. Small sizes; what
the pair gains is for its readers to see."""

import fcntl
import json
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import types
import unittest
import xml.etree.ElementTree as ElementTree

import smb
import web
from lab import BUILD, REPOSITORY, Lab, traces_of, until

sys.path += [str(REPOSITORY / "tools" / "showcase"), str(REPOSITORY / "tools" / "sites")]

import corpus
import wording
import workloads

DEMO = REPOSITORY / "tools" / "demo"
PATIENCE = 240  # a sanitized build on a busy machine
STYLES = re.compile(r"\033\[[0-9;]*m")


def environment(**more):
    return {**os.environ, "LONGHAUL_BUILD": str(BUILD), **more}


def demo(*words, cwd, **more):
    return subprocess.run([DEMO, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, cwd=cwd,
                          env=environment(**more))


class Whole(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_every_step_compares_its_bytes_and_the_page_is_well_formed(self):
        done = demo("--quick", "--link", "20mbit,10", "--json", "results.json", "--page", "page.html", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = json.loads((self.folder / "results.json").read_text())["rows"]
        self.assertEqual([row["step"] for row in rows],
                         ["http", "http", "http", "smb", "smb", "transactions", "random", "loss"])
        for row in rows:
            with self.subTest(row["title"]):
                bytes_ = row["size"] * (1 if row["unit"] == "bytes" else workloads.Transactions.ANSWER_BYTES)
                for way in ("bare", "pair"):
                    result = row[way]
                    self.assertEqual((result["right"], result["failure"], result["bytes_compared"]), (True, None, bytes_))
                    self.assertGreater(result["wan_to_client"], 0)
                self.assertEqual(row["bare"]["sha256"], row["pair"]["sha256"])
        self.assertNotIn("\033", done.stdout)  # it is not a terminal
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        self.check_page((self.folder / "page.html").read_text(), len(rows))

    def check_page(self, text, rows):
        root = ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))
        self.assertEqual(len(root.findall(".//svg")), 3 * rows)  # in the table, and two plots
        self.assertEqual(len(root.findall(".//tbody/tr")), rows)
        for word in ("http:", "https:", "src=", "href=", "<script", "url(", "@import"):
            self.assertNotIn(word, text)
        self.assertNotRegex(text, r"\b(nan|inf|None)\b")
        self.assertIn("prefers-color-scheme: dark", text)

    def test_mistakes_are_reported_before_anything_is_made(self):
        for words, said in ((("--link", "20mbit"), "'20mbit' is not a line"), (("--link", "9gbit,10"), "from 64kbit to 1gbit"),
                            (("--link", "20mbit,10,much"), "'much' is not a share"),
                            (("--steps", "http,nfs"), "'nfs' is not a step"), (("--page", "nowhere/page"), "not a directory")):
            with self.subTest(words):
                done = demo(*words, cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(said, done.stderr)
        done = demo(cwd=self.folder, LONGHAUL_BUILD=str(self.folder))
        self.assertEqual(done.returncode, 2)
        self.assertIn("longhaul does not exist", done.stderr)

    def test_an_interrupt_leaves_nothing(self):
        """At a terminal of 80 columns, without colours, while the race is drawn."""
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

        def begin():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background of a shell

        process = subprocess.Popen([DEMO, "--link", "1mbit,10", "--steps", "http"], stdin=theirs, stdout=theirs, stderr=theirs,
                                   cwd=self.folder, env=environment(NO_COLOR="1", TERM="xterm"), start_new_session=True,
                                   preexec_fn=begin)
        self.addCleanup(process.kill)
        os.close(theirs)
        shown = bytearray()

        def read():
            while select.select([ours], [], [], 0.05)[0]:
                try:
                    shown.extend(os.read(ours, 65536))
                except OSError:  # the other end is closed
                    return

        def drawn_again():
            read()
            return b"\033[2A" in shown

        until(drawn_again, PATIENCE, "the race is drawn")
        self.assertTrue(traces_of(f"demo-{process.pid}-"))
        os.write(ours, b"\x03")
        until(lambda: read() or process.poll() is not None, PATIENCE, "the demo has ended")
        read()
        text = shown.decode()
        self.assertEqual(process.returncode, 130, text)
        self.assertIn("interrupted", text)
        until(lambda: not traces_of(f"demo-{process.pid}-"), what="everything is removed")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertFalse(STYLES.search(text), "NO_COLOR")
        lines = re.split(r"[\r\n]+", text.replace("\033[K", "").replace("\033[2A", ""))
        self.assertLessEqual(max(map(len, lines)), 79)


class Parts(unittest.TestCase):
    def test_wrong_bytes_are_found(self):
        lab = self.enterContext(Lab())
        lane = types.SimpleNamespace(lab=lab, nginx=web.Nginx(lab), smbd=smb.Smbd(lab))
        data = os.urandom(300_000)
        download = workloads.HttpDownload(lane, "file", data)
        visits = [workloads.SmbVisit(lane, f"folder-{name}", {"small": b"1234" * 2000}, data, "none") for name in "ab"]
        for work in (download, *visits):
            work.prepare()
        spoil(lane.nginx.files / "file", 299_999)
        self.assertFalse(download.run(30).right)
        self.assertTrue(visits[0].run(30).right)
        spoil(lane.smbd.share / "folder-b.tar", 150_000)
        found = visits[1].run(30)
        self.assertFalse(found.right)
        self.assertIn("folder-b.tar at byte 131072", found.failure)
        transactions = workloads.Transactions(lane, 20)
        transactions._answer = lambda connection: connection.send(b"\0" * len(connection.receive(128)))
        self.assertFalse(transactions.run(30).right)

    def test_the_same_system_gives_the_same_files_and_a_next_version_that_shares_most(self):
        first, second = corpus.Pool(), corpus.Pool()
        files = first.mixture(1_000_000)
        self.assertEqual(corpus.archive(files), corpus.archive(second.mixture(1_000_000)))
        new, _ = corpus.next_version(files, first)
        self.assertNotEqual(new, files)
        self.assertGreater(len(set(new) & set(files)), 0.8 * len(files))

    def test_a_result_without_gain_is_not_reported_as_a_gain(self):
        def result(seconds, wan, **more):
            return {"seconds": seconds, "ran_seconds": seconds or 45, "cut": not seconds, "right": True, "failure": None,
                    "wan_to_server": 0, "wan_to_client": wan, **more}

        for bare, pair, words in (((10, 1000), (5, 100), "2.00 times as fast, 90 % fewer WAN bytes; every byte equal"),
                                  ((10, 1000), (9.5, 1020), "no gain in time (1.05 times as fast), 2 % more WAN bytes"),
                                  ((10, 1000), (12.5, 1000), "slower: 1.25 times as long"),
                                  ((None, 1000), (9, 1000), "more than 5.0 times as fast")):
            self.assertIn(words, wording.verdict({"bare": result(*bare), "pair": result(*pair)}))
        wrong = {"bare": result(10, 1), "pair": result(1, 1, right=False)}
        self.assertEqual(wording.verdict(wrong), "WRONG BYTES through the pair")


def spoil(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


if __name__ == "__main__":
    unittest.main()
