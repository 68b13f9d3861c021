# SPDX-License-Identifier: Apache-2.0
"""`longhaul init`: two hosts become a pair by typing at each what the other has printed."""

import json
import re
import unittest

import tcp
from lab import DATACENTER_WAN, SERVER, SERVER6, Lab, until
from pair import PROGRAM


class Init(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.folder = {}
        for node in ("branch", "datacenter"):
            self.folder[node] = self.lab.scratch / f"init-{node}"

    def init(self, node, *words, answers="", code=0):
        done = self.lab.run(node, PROGRAM, "init", *words, "--dir", self.folder[node], check=False, text=answers)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def line_for_other_site(self, printed):
        words = re.search(r"^  longhaul init (.*)$", printed, re.M)[1]
        return words.replace("'", "").split()

    def test_two_sites_are_a_pair_after_three_lines(self):
        printed = self.init("datacenter", "--site", "datacenter", "--interface", "lan0",
                            "--own-address", DATACENTER_WAN).stdout
        line = self.line_for_other_site(printed)
        self.assertIn(f"{DATACENTER_WAN}:7600", line)
        self.assertIn("10.10.2.0/24,fd10:2::/64", line)
        self.assertIn("Nothing else on this host was changed", printed)

        # What was not typed is asked; the interface that does not lead to the peer is proposed.
        done = self.init("branch", *line, answers="branch\n\n")
        self.assertIn("Interface towards the clients [lan0]", done.stderr)
        done = self.init("datacenter", *self.line_for_other_site(done.stdout))
        self.assertIn('Added the peer "branch"', done.stdout)

        for node, folder in self.folder.items():
            self.assertEqual((folder / f"{node}.key").stat().st_mode & 0o777, 0o600)
            file = folder / "longhaul.toml"
            file.write_text(f'state_dir = "{folder}/state"\n' + file.read_text())
            self.lab.start(node, PROGRAM, "run", file, name=f"longhaul-{node}", clean_end=True)
        until(lambda: self.link("branch") == "up", what="the link is up")
        for server in (SERVER, SERVER6):
            here, there = tcp.pair(self.lab, server)
            here.send(b"question")
            self.assertEqual(there.receive(8), b"question")
            there.send(b"answer")
            self.assertEqual(here.receive(6), b"answer")
        flows = json.loads(self.lab.run("branch", PROGRAM, "flows", "--json", "--config",
                                        self.folder["branch"] / "longhaul.toml"))["flows"]
        self.assertEqual({flow["reason"] for flow in flows}, {"optimised"})

    def link(self, node):
        done = self.lab.run(node, PROGRAM, "status", "--json", "--config", self.folder[node] / "longhaul.toml", check=False)
        return done.returncode == 0 and json.loads(done.stdout)["links"][0]["state"]

    def test_mistakes_are_reported_and_nothing_is_written(self):
        fingerprint = "sha256:" + 31 * "ab" + "cd"
        for words, said in ((("--role", "branch"), "run longhaul init there first"),
                            (("--site", "a"), "--interface is missing"),
                            (("--site", "a", "--interface", "lan7"), "lan7"),
                            (("--site", "a/b", "--interface", "lan0", "--own-address", "10.1.1.1"), "letters, digits"),
                            (("--site", "a", "--interface", "lan0", "--own-address", "10.1.1.1\n"), "--own-address"),
                            (("--site", "a", "--interface", "lan0", "--peer", "b"), "--fingerprint is missing"),
                            (("--site", "a", "--interface", "lan0", "--fingerprint", fingerprint), "--peer NAME is missing"),
                            (("--site", "a", "--interface", "lan0", "--peer", "b", "--fingerprint", "sha256:12"),
                             "64 hexadecimal digits, not 2"),
                            (("--site", "a", "--interface", "lan0", "--peer", 'b"\n[x', "--fingerprint", fingerprint),
                             "letters, digits")):
            with self.subTest(words):
                self.assertIn(said, self.init("branch", *words, code=2).stderr)
                self.assertFalse(self.folder["branch"].exists())

    def test_doubts_are_said(self):
        """A peer without networks, the WAN's interface, an address of another host."""
        fingerprint = "sha256:" + 31 * "ab" + "cd"
        said = " ".join(self.init("branch", "--site", "branch", "--interface", "wan0", "--peer", "datacenter", "--address",
                                  DATACENTER_WAN, "--fingerprint", fingerprint).stdout.split())
        self.assertIn("has no networks", said)
        self.assertIn("wan0 leads to the peer, so it may be the WAN", said)
        self.assertIn(f'address = "{DATACENTER_WAN}:7600"', (self.folder["branch"] / "longhaul.toml").read_text())
        done = self.init("datacenter", "--site", "datacenter", "--interface", "lan0", "--own-address", "192.0.2.7")
        self.assertIn("192.0.2.7 is not an address of this host", done.stderr)

    def test_a_file_that_exists_is_kept(self):
        words = ("--site", "datacenter", "--interface", "lan0", "--own-address", DATACENTER_WAN)
        self.init("datacenter", *words)
        file = self.folder["datacenter"] / "longhaul.toml"
        before = file.read_text()
        self.assertIn("is not overwritten", self.init("datacenter", *words, code=2).stderr)
        peer = ("--peer", "branch", "--fingerprint", "sha256:" + 31 * "ab" + "cd", "--networks", "10.10.1.0/24")
        for option, value in (("--role", "datacenter"), ("--site", "other"), ("--interface", "lan1"), ("--own-networks", "10.9.0.0/16"),
                              ("--own-address", "10.9.0.1")):
            self.assertIn(f"{option} would have no effect", self.init("datacenter", *peer, option, value, code=2).stderr)
        self.assertEqual(file.read_text(), before)
        self.init("datacenter", *peer)
        after = file.read_text()
        self.assertTrue(after.startswith(before))
        self.assertIn("already the name of another peer", self.init("datacenter", *peer, code=2).stderr)
        self.assertEqual(file.read_text(), after)


if __name__ == "__main__":
    unittest.main()
