# SPDX-License-Identifier: Apache-2.0
"""Samba's own programs that send the same random operations to two servers and compare the answers: here one server
with two addresses, one of them through the pair and the other bypassing it. (Of the same package, gentest for SMB1
and masktest crash by themselves.)"""

import unittest

import smb
import torture
from lab import SERVER, long_test
from pair import PairTest

PAST = "10.10.2.3"  # the server's other address; all traffic to it bypasses the link


class Differential(PairTest):
    line = ("1000mbit,2",)
    branch_has = {"rule": [{"to_networks": [f"{PAST}/32"], "features": {"transport": "off"}}]}

    @classmethod
    def prepare(cls):
        cls.lab.run("server", "ip", "address", "add", f"{PAST}/24", "dev", "eth0")
        cls.smbd = smb.Smbd(cls.lab, torture.SETTINGS, torture.SHARE, {"other": torture.SHARE})

    def operations(self, program, *words, seed, count):
        """Sends them to both servers; fails with the program's report of the first difference."""
        user = f"{self.smbd.user}%{self.smbd.password}"
        with self.subTest(f"{program} {' '.join(words)}", seed=seed):
            done = self.lab.run("client", program, f"//{SERVER}/share", f"//{PAST}/other", "-s",
                                self.smbd.client_configuration, f"--user1={user}", f"--user2={user}",
                                f"--seed={seed}", f"--num-ops={count}", *words, seconds=600, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

    def files(self, *words, seed, count):
        ignored = self.lab.scratch / "ignored"
        ignored.write_text("*file_id*\n*time*\n")  # of two files that never are the same
        said = self.operations("gentest", "--smb2", f"--ignore={ignored}", *words, seed=seed, count=count)
        self.assertIn("no errors", said)

    def locks(self, *words, seed, count):
        said = self.operations("locktest", *words, seed=seed, count=count)
        self.assertNotIn("conn=", said)  # it tells of an operation only when its answers differ

    def test_random_operations_of_smb_2_and_locks_of_smb_1_are_answered_as_without_the_pair(self):
        self.files(seed=1, count=100)
        self.files("--valid", "--oplocks", seed=2, count=200)
        self.locks("--exacterrors", seed=3, count=100)
        self.locks("--exacterrors", "--oplocks", "--lockrange=10", seed=4, count=100)

    @long_test
    def test_many_random_operations_are_answered_as_without_the_pair(self):
        for seed in range(10, 20):
            for words in (), ("--oplocks",), ("--valid",), ("--valid", "--oplocks"):
                self.files(*words, seed=seed, count=1000)
            for words in (), ("--oplocks",), ("--lockrange=10",), ("--lockrange=10", "--oplocks"):
                self.locks("--exacterrors", *words, seed=seed, count=1000)


if __name__ == "__main__":
    unittest.main()
