# SPDX-License-Identifier: Apache-2.0
"""How a daemon refuses to start, ends, and stands a pause."""

import os
import signal
import time
import unittest

import tcp
from lab import SERVER, SERVER6, Lab
from pair import CONTROL_PORT, PROGRAM, Pair, PairTest


class Refusals(unittest.TestCase):
    """One sentence, nothing left behind. Exit code 2: the file is wrong; 1: this host lacks something, which may come."""

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab())
        cls.pair = Pair(cls.lab)

    def setUp(self):
        self.site = self.pair.datacenter
        self.good = self.site.settings

    def tearDown(self):
        self.site.settings = self.good

    def refused(self, text=None, code=1, **changes):
        self.site.settings = self.good | changes
        self.site.write()
        if text is not None:
            self.site.file.write_text(text)
        done = self.site.longhaul("run", self.site.file, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        said = [line for line in done.stderr.strip().splitlines() if " warn " not in line and " info " not in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertEqual(self.site.rules(), "")
        for family in ("-4", "-6"):
            self.assertNotIn("fwmark", self.lab.run("datacenter", "ip", family, "rule"))
        return said[0]

    def test_a_port_in_use_is_named_with_its_configuration_entry(self):
        for port, entry, changes in ((7600, "[link] listen", {}), (CONTROL_PORT, "[control] listen", {}),
                                     (7650, "[intercept] port", {}),
                                     (1080, "[socks] listen", {"socks": {"listen": "127.0.0.1:1080"}}),
                                     (8000, "[[forward]] listen",
                                      {"forward": [{"listen": "127.0.0.1:8000", "to": f"{SERVER}:80"}]})):
            with self.subTest(entry), tcp.Listener(self.lab, "datacenter", port):
                said = self.refused(**changes)
                self.assertIn(entry, said)
                self.assertIn(f":{port}", said)
                self.assertIn("already", said)

    def test_a_file_that_is_not_toml_is_refused_with_its_line(self):
        said = self.refused('site = "datacenter"\n[link\n', code=2)
        self.assertIn(f"{self.site.file}:2", said)

    def test_an_unknown_key_is_refused_with_the_probable_one(self):
        said = self.refused(code=2, limits={"flowz": 3})
        self.assertIn("flowz", said)
        self.assertIn("flows", said.replace("flowz", ""))

    def test_a_missing_private_key_is_refused_with_its_path(self):
        said = self.refused(identity={"certificate": "datacenter.crt", "private_key": "nowhere.key"})
        self.assertIn("nowhere.key", said)

    def test_an_interface_that_does_not_exist_is_refused(self):
        said = self.refused(intercept={"mode": "tproxy", "interfaces": ["lan7"]})
        self.assertIn("lan7", said)

    def test_transparent_mode_without_privilege_is_refused(self):
        self.site.write()
        done = self.lab.run("datacenter", "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", PROGRAM,
                            "run", self.site.file, check=False, cwd=self.site.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("root or CAP_NET_ADMIN", done.stderr)

    def test_a_missing_file_is_refused(self):
        done = self.site.longhaul("run", "nowhere.toml", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere.toml", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)


class Life(PairTest):
    def test_sigterm_ends_a_daemon_in_order_and_leaves_no_rule_or_route(self):
        here, there = tcp.pair(self.lab)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        for number in (signal.SIGTERM, signal.SIGINT):
            self.assertIn("tproxy", self.branch.rules())
            self.branch.process.signal(number)
            self.assertEqual(self.branch.process.wait(), 0)
            self.assertEqual(self.branch.rules(), "")
            for family in ("-4", "-6"):
                self.assertNotIn("fwmark", self.lab.run("branch", "ip", family, "rule"))
            self.branch.start()
            self.pair.wait_link()
        for connection in (here, there):
            self.assertEqual(connection.receive_rest(), (b"", "reset"))

    def test_a_daemon_that_was_stopped_and_continued_is_not_ended(self):
        here, there = tcp.pair(self.lab, SERVER6)
        process = self.branch.process
        process.signal(signal.SIGSTOP)
        try:
            here.send(b"while it stands")
            time.sleep(4.5)  # longer than the watchdog's patience
        finally:
            process.signal(signal.SIGCONT)
        self.assertEqual(there.receive(15), b"while it stands")
        self.pair.wait_link()
        self.assertTrue(process.is_running())
        here.close()
        there.close()


if __name__ == "__main__":
    unittest.main()
