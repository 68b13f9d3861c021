# SPDX-License-Identifier: Apache-2.0
"""Signed and encrypted SMB where the far side has the server's keys: everything that the pair does for plain sessions,
with protection on both legs as client and server agreed. Without a key: smb_test.py."""

import unittest

import smb
import smb_client
import smb_work
from lab import SERVER, SERVER6
from pair import PairTest
from smb_test import made, seed_of

from impacket.ntlm import compute_nthash  # pylint: disable=wrong-import-order

PROTECTED = (("2.02", "sign"), ("2.1", "sign"), ("3.0", "sign"), ("3.1.1", "sign"), ("3.0", "encrypt"),
             ("3.1.1", "encrypt"))


def hashes_of(lab, smbd):
    """The file that opens NTLM logins of smbd's user."""
    path = lab.scratch / "ntlm_hashes"
    path.write_text(f"{smbd.user}:{compute_nthash(smbd.password).hex()}\n")
    path.chmod(0o600)
    return str(path)


class Ntlm(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER, SERVER6],
                                                  "ntlm_hashes": hashes_of(cls.lab, cls.smbd)}]

    def counters(self):
        return [flow["module"]["counters"] for flow in self.branch.flows() if flow["module"]]

    def saved(self, name="round_trips_saved"):
        return sum(each[name] for each in self.counters())

    def test_files_are_read_ahead_and_written_behind(self):
        for dialect, protection in PROTECTED:
            with self.subTest(dialect=dialect, protection=protection), \
                    smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as client:
                name, data = f"{protection}-{dialect}", made(600_000, seed_of(dialect, protection))
                smb_work.write_file(client, name, data)
                self.assertEqual((self.smbd.share / name).read_bytes(), data)
                self.assertEqual(smb_work.read_file(client, name), data)
                self.assertGreater(self.saved("promises_made"), 0)
                self.assertGreater(self.saved("ahead_used_bytes"), 0)
                self.assertEqual({flow["reason"] for flow in self.branch.flows() if flow["module"]}, {"optimised"})
                client.disconnect()

    def test_smbclient_copies(self):
        newer = (("3.0", "SMB3_00"), ("3.1.1", "SMB3_11"))
        for protection, dialects in (("sign", list(smb.DIALECTS.items())[1:]), ("encrypt", newer)):
            for name, word in dialects:
                with self.subTest(protection=protection, dialect=name):
                    words = ("-m", word, f"--client-protection={protection}")
                    there = self.smbd.make("there", 1_500_000, seed=seed_of(protection, name))
                    self.assertEqual(self.smbd.get("there", *words), there)
                    self.assertEqual(self.smbd.put(self.smbd.share / "there", "copy", *words), there)


if __name__ == "__main__":
    unittest.main()
