# SPDX-License-Identifier: Apache-2.0
"""Signed and encrypted sessions of the client libraries that sign by themselves, by the server's address and by its name:
each is treated as if it were plain. The programs are in clients/."""

import contextlib
import json
import pathlib
import sys
import unittest

import smb
from lab import SERVER
from pair import PairTest
from two_clients import made

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE / "promises"), str(HERE / "clients")]

from writers import KINDS  # pylint: disable=wrong-import-position
from looking import BLOCK, BLOCKS  # pylint: disable=wrong-import-position

NAME = "files.lab"
SHARES = ("share", "secret")  # what is signed, and what must be encrypted


class Clients(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab, {"server signing": "mandatory"}, shares={"secret": {"smb encrypt": "required"}})
        with open(cls.smbd.hosts, "a", encoding="ascii") as hosts:
            hosts.write(f"{SERVER} {NAME}\n")
        cls.datacenter.settings["smb_server"] = cls.smbd.keys()

    def run_client(self, kind, share, host, name, *words):
        """Its lines of JSON."""
        options = {"host": host, "share": share, "user": self.smbd.user, "password": self.smbd.password, "name": name,
                   "dialect": "3.1.1", "configuration": self.smbd.client_configuration}
        said = self.lab.run("client", *self.smbd.knowing_its_name(
            [*kind.words, *(str(word) for option in options.items() for word in (f"--{option[0]}", option[1])), "--no-wait",
             *words]), seconds=120)
        lines = []
        for line in said.splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines

    @contextlib.contextmanager
    def grows(self, metric):
        before = self.counted(metric)
        yield
        self.assertGreater(self.counted(metric), before, metric)

    def counted(self, metric):
        return sum(float(line.split()[-1]) for line in self.branch.get("/metrics").splitlines()
                   if line.startswith(f"{metric}{{"))

    def accelerated(self, name, *words, reads=False, hides_errors=False):
        kind = KINDS[name]
        if not kind.is_there():
            self.skipTest(f"{name} is not installed: tests/e2e/clients/setup")
        data = self.lab.scratch / f"{name}.data"
        data.write_bytes(made(40 * 32768, 7))
        for share in SHARES[:1] if hides_errors else SHARES:
            for host in SERVER, NAME:
                with self.subTest(share=share, host=host):
                    before = self.branch.reasons()
                    with contextlib.nullcontext() if hides_errors else self.grows("longhaul_module_promises_made_total"):
                        said = self.run_client(kind, share, host, f"{name}-{host}", "--data", data, *words)
                    self.assertEqual(said[-1].get("end"), "success", said[-4:])
                    self.assertEqual((self.smbd.folder_of(share) / f"{name}-{host}").read_bytes(), data.read_bytes())
                    if reads:
                        self.read_ahead(kind, share, host)
                    self.assertEqual(set(self.reasons_given(before)),
                                     {"optimised", "smb_hides_errors"} if hides_errors else {"optimised"})

    def read_ahead(self, kind, share, host):
        (self.smbd.folder_of(share) / "blocks").write_bytes(
            b"".join((b"block %d" % number).ljust(BLOCK, b"\0") for number in range(BLOCKS)))
        with self.grows("longhaul_module_ahead_used_bytes_total"):
            said = self.run_client(kind, share, host, "blocks", "--look", "held", "--until", f"block {BLOCKS - 1}")
        self.assertEqual([line["seen"] for line in said if "seen" in line], [f"block {number}" for number in range(BLOCKS)])

    def test_smbprotocol(self):
        self.accelerated("smbprotocol", reads=True)  # the programs of the others only write, or read without end

    def test_go_smb2(self):
        # Without FLUSH, whose interim answer Samba does not sign if the disk is slow: go-smb2 refuses that, without the pair too.
        self.accelerated("go-smb2", "--policy", "close-only")

    def test_jcifs_ng(self):
        # Its keys are found like the others'; nothing is promised to it, for it hides errors from its programs. It encrypts only if
        # it is told to.
        self.accelerated("jcifs-ng", hides_errors=True)

    def test_libsmbclient(self):
        self.accelerated("libsmbclient")


if __name__ == "__main__":
    unittest.main()
