# SPDX-License-Identifier: Apache-2.0
"""A sample of the promise table (promises/README.md): several clients write while something breaks, and no block is missing
that was acknowledged to a client whose run ended in success. --long plays many rounds of each."""

import os
import pathlib
import sys
import unittest
import zlib

sys.path.append(os.fspath(pathlib.Path(__file__).resolve().parent / "promises"))

import scenarios
import smb_client
from faults import FAULTS, silence
from lab import early, long_test
from smb_client import LOST_WRITES, READ, SmbError, WRITE
from writers import KINDS

BLOCK = bytes(range(256)) * 64

SEED = int(os.environ.get("LONGHAUL_PROMISES_SEED", "1"))


class Stage(unittest.TestCase):
    """The stage that the faults of a class share."""

    stage_of = {}
    kernel = False

    @classmethod
    def setUpClass(cls):
        if cls.kernel and not KINDS["kernel"].is_there():
            raise unittest.SkipTest("there is no guest: it is made by tools/setup, on x86_64")
        cls.stage = cls.enterClassContext(scenarios.Stage(guest=cls.kernel, **cls.stage_of))

    def play(self, *faults, rounds=1, clients=5, longest=20):
        kinds = [name for name, kind in KINDS.items() if kind.is_there() and kind.is_kernel <= self.kernel]
        table, bad = scenarios.Table(), []
        for fault in faults:
            for number in range(rounds):
                seed = SEED + number + zlib.crc32(fault.encode())
                for outcome in self.stage.play(scenarios.drawn(seed, [fault], kinds, clients, longest)):
                    table.add(fault, outcome)
                    if outcome.lost or outcome.unflushed or outcome.wrong:
                        bad.append(f"{fault}, seed {seed}: {outcome.told.described()}: lost {outcome.lost}, lost after flush "
                                   f"{outcome.unflushed}, wrong {outcome.wrong}, errors {outcome.errors}")
        missing = [name for name, kind in KINDS.items() if not kind.is_there()]
        print("\n".join((f"LONGHAUL_PROMISES_SEED={SEED}" + "".join(f", without {name}" for name in missing), *table.lines())))
        if bad:
            self.fail("\n".join(bad))


@early
class Promises(Stage):
    def test_no_acknowledged_block_is_lost_where_smbd_is_killed_or_restarted(self):
        self.play("smbd killed", "smbd restarted")

    def test_no_acknowledged_block_is_lost_where_the_near_daemon_is_killed_or_restarted(self):
        self.play("near killed", "near restarted")

    def test_no_acknowledged_block_is_lost_where_the_far_daemon_is_killed_or_restarted(self):
        self.play("far killed", "far restarted")

    def test_no_acknowledged_block_is_lost_where_the_line_is_cut_for_4_seconds(self):
        self.play("line cut 4 s")

    def test_no_acknowledged_block_is_lost_where_the_disk_is_full(self):
        self.play("disk full", "disk full, then freed")

    def test_no_acknowledged_block_is_lost_where_the_administrator_ends_sessions_or_closes_the_share(self):
        self.play("session ended", "share closed")


@early
class PromisesToTheGone(Stage):
    def test_no_acknowledged_block_is_lost_where_smbd_is_gone_for_good(self):
        self.play("smbd gone")

    def test_no_acknowledged_block_is_lost_where_a_daemon_is_gone_for_good(self):
        self.play("near gone", "far gone")


@early
class PromisesWithoutPower(Stage):
    stage_of = {"power": True}

    def test_no_flushed_block_is_lost_where_the_server_loses_its_power(self):
        self.play("server's power")

    def test_no_acknowledged_block_is_lost_where_the_daemons_hosts_lose_their_power(self):
        self.play("near's power", "far's power", "far's, then near's power")


@early
class PromisesMarked(unittest.TestCase):
    def test_a_client_is_told_what_both_hosts_have_forgotten_with_their_power(self):
        """Once, and not about the file that had all its bytes."""
        stage = self.enterContext(scenarios.Stage(power=True))
        for dialect in ("NT1", "2.1", "3.1.1"):
            with self.subTest(dialect):
                self.lose(stage, dialect)

    def lose(self, stage, dialect):
        client = smb_client.connect(stage.lab, stage.smbd, dialect)
        with client.open(f"whole {dialect}", READ | WRITE, smb_client.CREATE) as whole:
            whole.write(0, BLOCK)
        file = client.open(f"cut {dialect}", READ | WRITE, smb_client.CREATE)
        file.write(0, BLOCK)
        file.flush()
        before = stage.promised()
        with silence(stage.lab, "branch", "wan0"):
            file.write(len(BLOCK), BLOCK)  # acknowledged, and never there
            self.assertEqual(stage.promised() - before, len(BLOCK))
            stage.fail_power("far")
            stage.fail_power("near")
        for site in stage.pair.sites:
            site.start()
        stage.pair.wait_link(seconds=60)
        self.assertEqual(stage.smbd.path_of(f"cut {dialect}").read_bytes(), BLOCK)
        with smb_client.connect(stage.lab, stage.smbd, dialect) as again:
            again.open(f"whole {dialect}", READ | WRITE).close()
            with self.assertRaises(SmbError) as refused:
                again.open(f"cut {dialect}", READ | WRITE)
            self.assertEqual(refused.exception.status, LOST_WRITES)
            with again.open(f"cut {dialect}", READ | WRITE) as file:
                file.write(len(BLOCK), BLOCK)
        self.assertEqual(stage.smbd.path_of(f"cut {dialect}").read_bytes(), 2 * BLOCK)


    def test_a_client_is_told_by_a_far_daemon_that_was_stopped_in_order_although_the_near_host_is_gone(self):
        stage = self.enterContext(scenarios.Stage(power=True))
        for dialect in ("NT1", "3.1.1"):
            with self.subTest(dialect):
                self.stop(stage, dialect)

    def stop(self, stage, dialect):
        client = smb_client.connect(stage.lab, stage.smbd, dialect)
        file = client.open(f"stopped {dialect}", READ | WRITE, smb_client.CREATE)
        file.write(0, BLOCK)
        file.flush()
        before = stage.promised()
        with silence(stage.lab, "branch", "wan0"):
            file.write(len(BLOCK), BLOCK)  # acknowledged, and never there
            self.assertEqual(stage.promised() - before, len(BLOCK))
            stage.pair.datacenter.stop()
            stage.fail_power("near")
        stage.pair.datacenter.start()
        with smb_client.connect(stage.lab, stage.smbd, dialect) as again:
            with self.assertRaises(SmbError) as refused:
                again.open(f"stopped {dialect}", READ | WRITE)
            self.assertEqual(refused.exception.status, LOST_WRITES)
        stage.pair.branch.start()
        stage.pair.wait_link(seconds=60)


class PromisesWithoutThePair(Stage):
    """The baseline: what is lost here is a mistake of the scenarios."""

    stage_of = {"direct": True}

    def test_directly_no_block_is_lost(self):
        self.play("nothing", "smbd killed", "share closed")


class ManyPromises(Stage):
    @long_test
    def test_no_acknowledged_block_is_lost_in_many_scenarios(self):
        self.play(*(name for name, fault in FAULTS.items() if not fault.power and name != "line cut 90 s"), rounds=15, clients=8, longest=70)
        self.play("line cut 90 s", clients=8)


class ManyPromisesWithoutPower(Stage):
    stage_of = {"power": True}

    @long_test
    def test_no_acknowledged_block_is_lost_in_many_scenarios_without_power(self):
        self.play(*(name for name, fault in FAULTS.items() if fault.power), rounds=10, clients=8)


class ManyPromisesWithoutThePair(Stage):
    stage_of = {"direct": True}

    @long_test
    def test_directly_no_block_is_lost_in_many_scenarios(self):
        self.play(*(name for name, fault in FAULTS.items() if not fault.power and not fault.needs_pair), rounds=5, clients=8)


class PromisesToAKernel(Stage):
    kernel = True

    @long_test
    def test_no_acknowledged_block_of_linuxs_client_is_lost(self):
        self.play(*(name for name, fault in FAULTS.items() if not fault.power and name != "line cut 90 s"), rounds=2, clients=3)


if __name__ == "__main__":
    unittest.main()
