# SPDX-License-Identifier: Apache-2.0
"""`longhaul support`: what is in the archive, and that no secret is."""

import json
import os
import pathlib
import secrets
import stat
import tarfile
import unittest

import tcp
from lab import SERVER, Lab
from pair import PROGRAM, Pair


class Support(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.branch = self.pair.branch
        psk = secrets.token_hex(32)
        for site in self.pair.sites:
            file = site.folder / "link.psk"
            file.write_text(psk + "\n")
            file.chmod(0o600)
            site.settings["peer"][0]["preshared_key_file"] = "link.psk"
        self.secrets = [psk]

    def archive(self, *words):
        """Its texts by name, and what was printed."""
        file = self.branch.folder / f"support-{secrets.token_hex(4)}.tar.gz"
        said = self.branch.longhaul("support", self.branch.file, "--output", file, *words)
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        with tarfile.open(file) as tar:
            members = tar.getmembers()
            self.assertTrue(all(member.mode == 0o600 and member.isfile() for member in members))
            return {pathlib.PurePath(member.name).name: tar.extractfile(member).read().decode(errors="replace")
                    for member in members}, said

    def assert_no_secret(self, texts):
        state = self.branch.folder / "state"
        known = [*self.secrets, (self.branch.folder / "branch.key").read_text()]
        for name in ("control.token", "dictionary.key"):
            if (state / name).exists():
                known.append((state / name).read_bytes().decode(errors="replace"))
        lines = [line for secret in known for line in secret.splitlines() if len(line) >= 16 and "-----" not in line]
        self.assertGreaterEqual(len(lines), 3)
        for name, text in texts.items():
            for line in lines:
                self.assertNotIn(line, text, name)

    def test_the_archive_explains_the_daemon_and_has_no_secret(self):
        self.pair.start()
        here, there = tcp.pair(self.lab, SERVER)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        # What an operator might have written into the file, and a program into the log.
        canary = secrets.token_hex(16)
        token = (self.branch.folder / "state/control.token").read_text().strip()
        key = (self.branch.folder / "branch.key").read_text()
        self.secrets += [canary, token]
        self.branch.file.write_text(self.branch.file.read_text() + f"# the password is {canary}\n")
        log = self.branch.folder / "branch.log"
        log.write_text(self.branch.process.log() + f"token={token}\n{key}\nend of the log\n")
        texts, said = self.archive("--log", log)
        self.assertIn("no keys", said)
        self.assert_no_secret(texts)
        self.assertEqual(json.loads(texts["status.json"])["site"], "branch")
        self.assertEqual(len(json.loads(texts["flows.json"])["flows"]), 1)
        self.assertIn("longhaul_uptime_seconds", texts["metrics.txt"])
        self.assertIn('name = "datacenter"', texts["configuration.toml"])
        self.assertIn("Flows that enter here", texts["check.txt"])
        self.assertIn("link_up", texts["log.txt"])
        self.assertIn("end of the log", texts["log.txt"])
        self.assertIn("table inet longhaul", texts["packet_rules.txt"])
        self.assertIn("fwmark", texts["network.txt"])
        self.assertIn("PRETTY_NAME", texts["packages.txt"])
        self.assertRegex(texts["about.txt"], r"^longhaul \d")

    def test_the_journal_is_that_of_the_unit_which_runs_the_file(self):
        programs = self.branch.folder / "programs"
        programs.mkdir()
        journalctl = programs / "journalctl"
        journalctl.write_text('#!/bin/sh\necho "the journal: $*"\n')
        journalctl.chmod(0o755)
        for file, words, unit in (("/etc/longhaul/longhaul.toml", (), "longhaul.service"),
                                  ("/etc/longhaul/no-such-site.toml", (), "longhaul@no-such-site.service"),
                                  ("/etc/longhaul/../longhaul/no-such-site.toml", (), "longhaul@no-such-site.service"),
                                  ("/etc/longhaul/no-such-site.toml", ("--unit", "own.service"), "own.service"),
                                  (self.branch.file, (), "longhaul.service")):
            with self.subTest(file=file, words=words):
                archive = self.branch.folder / f"{secrets.token_hex(4)}.tar.gz"
                self.lab.run("branch", "env", f"PATH={programs}:{os.environ['PATH']}", PROGRAM, "support", file,
                             "--output", archive, *words)
                with tarfile.open(archive) as tar:
                    log = next(member for member in tar.getmembers() if member.name.endswith("/log.txt"))
                    self.assertIn(f" -u {unit} -n 10000\n", tar.extractfile(log).read().decode())

    def test_without_a_daemon_and_with_a_wrong_file_there_is_an_archive_all_the_same(self):
        self.branch.file.write_text("site = \nsecret = \"" + self.secrets[0] + "\"\n")
        texts, said = self.archive()
        self.assertIn("branch.toml:1", said)
        self.assertIn("branch.toml:1", texts["check.txt"])
        self.assertNotIn("status.json", texts)
        self.assert_no_secret({**texts, "said": said})
        refused = self.branch.longhaul("support", self.branch.file, "--output", self.branch.file, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("cannot be created", refused.stderr)


if __name__ == "__main__":
    unittest.main()
