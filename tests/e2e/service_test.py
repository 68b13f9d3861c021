# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: what it tells the service manager that started it, and what units call."""

import pathlib
import queue
import shutil
import signal
import socket
import tempfile
import threading
import time
import unittest

import tcp
from lab import PATIENCE, SERVER, Lab, until
from pair import PROGRAM, Pair


class Notified(unittest.TestCase):
    """A socket like the one that systemd names in NOTIFY_SOCKET."""

    def setUp(self):
        self.lab = self.enterContext(Lab())
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{folder}/notify")
        self.addCleanup(self.socket.shutdown, socket.SHUT_RDWR)  # which ends the thread
        self.messages = queue.SimpleQueue()
        threading.Thread(target=self.receive, daemon=True).start()
        pathlib.Path(folder).chmod(0o755)
        self.pair = Pair(self.lab)
        self.site = self.pair.branch
        self.site.environment = {"NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": "400000"}

    def receive(self):
        """At once: the kernel keeps a few datagrams only, and the daemon says many times that it is alive."""
        with self.socket:
            while said := self.socket.recv(4096):
                self.messages.put(dict(line.split("=", 1) for line in said.decode().splitlines()))

    def next(self, alive=False):
        """The next message; those that only say that the daemon is alive are left out."""
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.messages.get(timeout=max(0, deadline - time.monotonic()))
            if alive or "WATCHDOG" not in message:
                return message

    def test_systemd_learns_that_the_daemon_listens_lives_reloads_and_ends(self):
        self.pair.datacenter.start()
        self.site.start_anyhow()
        ready = self.next()
        self.assertEqual(ready, {"READY": "1", "STATUS": "Site branch, 1 peer"})
        self.assertEqual(self.site.status()["site"], "branch")  # it listens already
        for _ in range(3):
            self.assertEqual(self.next(alive=True), {"WATCHDOG": "1"})
        self.pair.wait_link()
        here, there = tcp.pair(self.lab, SERVER)

        self.site.process.signal(signal.SIGHUP)
        reloading = self.next()
        self.assertEqual(reloading["RELOADING"], "1")
        self.assertGreater(int(reloading["MONOTONIC_USEC"]), 0)
        self.assertEqual(self.next()["READY"], "1")

        good = self.site.file.read_text()
        self.site.file.write_text("site = \n")
        done = self.site.longhaul("reload", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.next()["RELOADING"], "1")
        refused = self.next()
        self.assertEqual(refused["READY"], "1")
        self.assertIn("Reload refused", refused["STATUS"])
        self.assertIn("branch.toml:1", refused["STATUS"])
        self.site.file.write_text(good)

        self.assertIn("nothing", self.lab.run("branch", PROGRAM, "reload", "--config", self.site.file).lower())
        self.assertEqual(self.next()["RELOADING"], "1")
        self.assertEqual(self.next()["READY"], "1")
        here.send(b"still there")  # no reload has cost a flow
        self.assertEqual(there.receive(11), b"still there")

        self.site.process.signal(signal.SIGTERM)
        self.assertEqual(self.next()["STOPPING"], "1")
        self.assertEqual(self.site.process.wait(), 0)

    def test_a_notify_socket_that_is_gone_does_not_keep_the_daemon_from_running(self):
        self.site.environment = {"NOTIFY_SOCKET": "/nonexistent/notify", "WATCHDOG_USEC": "100000"}
        self.site.start()
        self.assertEqual(self.site.status()["site"], "branch")
        self.site.stop()


class AsItsUser(unittest.TestCase):
    def test_started_by_its_user_with_two_capabilities_the_daemon_does_all_that_root_starts_it_for(self):
        lab = self.enterContext(Lab())
        pair = Pair(lab)
        site = pair.branch
        site.write()
        shutil.chown(site.folder / "state", "longhaul", "longhaul")
        two = "-all,+net_admin,+net_bind_service"
        site.process = lab.start("branch", "setpriv", "--reuid=longhaul", "--regid=longhaul", "--clear-groups",
                                 f"--inh-caps={two}", f"--ambient-caps={two}", f"--bounding-set={two}", "--no-new-privs",
                                 PROGRAM, "run", site.file, name="longhaul-branch", clean_end=True)
        pair.datacenter.start()
        until(lambda: "started" in site.process.log(), what="the daemon has started")
        pair.wait_link()
        self.assertEqual(sorted(site.status()["process"]["capabilities"]), ["net_admin", "net_bind_service"])
        here, there = tcp.pair(lab, SERVER)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        self.assertEqual(site.flows()[0]["reason"], "optimised")
        lab.run("branch", PROGRAM, "reload", "--config", site.file)


class Door(unittest.TestCase):
    def test_at_boot_the_rules_are_installed_only_where_the_file_closes_something(self):
        lab = self.enterContext(Lab())
        site = Pair(lab).branch
        for fail, there in (("open", False), ("closed", True)):
            site.settings["intercept"]["fail"] = fail
            site.write()
            with self.subTest(fail):
                done = site.longhaul("fail-closed", "install", "--if-configured", site.file, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("longhaul" in site.rules(), there)
        # At boot the keys may not be there yet: systemd gives them to the daemon alone (LoadCredential).
        key = site.folder / "branch.key"
        key.rename(site.folder / "elsewhere")
        site.longhaul("fail-closed", "remove", site.file)
        site.longhaul("fail-closed", "install", site.file)
        (site.folder / "elsewhere").rename(key)
        site.longhaul("fail-closed", "remove", site.file)

    def test_at_boot_with_a_wrong_file_the_rules_that_were_last_in_force_are_installed(self):
        lab = self.enterContext(Lab())
        site = Pair(lab).branch
        site.settings["intercept"]["fail"] = "closed"
        kept = site.folder / "state/closed.rules"
        site.start()
        rules = site.longhaul("fail-closed", "print", site.file)
        self.assertIn("longhaul_closed_7650", rules)
        site.stop()
        site.longhaul("fail-closed", "remove", site.file)
        good = site.file.read_text()
        boot = ("fail-closed", "install", "--if-configured", "--kept", kept, site.file)
        site.file.write_text(good.replace('mode = "tproxy"', 'mode = "tproxyy"'))
        done = site.longhaul(*boot, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is installed as it was last in force", done.stderr)
        self.assertIn("tproxyy", done.stderr)
        site.file.write_text(good)
        self.assertEqual(site.longhaul("fail-closed", "print", site.file), rules)
        # Removal of the package: also with a file that nobody can read.
        site.file.write_text("site = ")
        site.longhaul("fail-closed", "remove", "--kept", kept, site.file, check=False)
        self.assertEqual(site.rules(), "")
        # What is not wanted any more is not kept.
        site.settings["intercept"]["fail"] = "open"
        site.start()
        site.stop()
        self.assertFalse(kept.exists())
        site.file.write_text("site = ")
        done = site.longhaul(*boot, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing enforces it now", done.stderr)


if __name__ == "__main__":
    unittest.main()
