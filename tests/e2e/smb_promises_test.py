# SPDX-License-Identifier: Apache-2.0
"""A sample of the promise table (promises/README.md): several clients write while something breaks, and no block is missing
that was acknowledged to a client whose run ended in success. --long plays many rounds of each."""

import collections
import os
import pathlib
import sys
import unittest

sys.path.append(os.fspath(pathlib.Path(__file__).resolve().parent / "promises"))

import scenarios
import smb_client
from faults import FAULTS, silence
from lab import early, long_test
from smb_client import LOST_WRITES, READ, SmbError, WRITE
from writers import KINDS

BLOCK = bytes(range(256)) * 64

SEED = int(os.environ.get("LONGHAUL_PROMISES_SEED", "1"))


def kinds_of(kernel=False):
    """Linux alone, or all others: with the guest, which runs one program at a time, those would be played once more."""
    return [name for name, kind in KINDS.items() if kind.is_there() and kind.is_kernel == kernel]


class Stage(unittest.TestCase):
    """The stage that the faults of a class share."""

    stage_of = {}
    kernel = False
    only = ()  # clients

    @classmethod
    def setUpClass(cls):
        if cls.kernel and not KINDS["kernel"].is_there():
            raise unittest.SkipTest("there is no guest: it is made by tools/setup, on x86_64")
        cls.stage = cls.enterClassContext(scenarios.Stage(guest=cls.kernel, **cls.stage_of))

    def play(self, *faults, times=0, clients=6, longest=20):
        """A sample of the table's part of each fault, or all of it, so many times."""
        kinds = [name for name in kinds_of(self.kernel) if not self.only or name in self.only]
        table, bad, promised, in_place, played = scenarios.Table(), [], collections.Counter(), collections.Counter(), []
        for fault in faults:
            for seed in range(SEED, SEED + max(times, 1)):
                rounds = scenarios.covering(seed, fault, kinds, clients, longest, bool(self.stage_of.get("keys")))
                # A client may have ended before its promises were seen, on a busy machine: then the sample is played again.
                again = () if times else 3 * rounds[:1]
                for round_ in (*(rounds if times else rounds[:1]), *again):
                    if round_ in played and all(promised.values()) and all(in_place.values()):
                        break
                    played.append(round_)
                    for outcome in self.stage.play(round_):
                        table.add(fault, outcome)
                        if self.stage.may_promise(outcome.told):
                            promised[self.key(fault, outcome.told, bool(times))] += outcome.promised
                            if outcome.at_work:
                                in_place[(fault, *self.place(outcome.told))] += outcome.promised
                        if fault == "nothing" and outcome.end != "success":
                            bad.append(f"{fault}, seed {seed}: {outcome.told.described()}: {outcome.end}, errors {outcome.errors}")
                        if outcome.lost or outcome.unflushed or outcome.wrong:
                            bad.append(f"{fault}, seed {seed}: {outcome.told.described()}: lost {outcome.lost}, lost after flush "
                                       f"{outcome.unflushed}, wrong {outcome.wrong}, errors {outcome.errors}")
        missing = [name for name, kind in KINDS.items() if not kind.is_there()]
        print("\n".join((f"LONGHAUL_PROMISES_SEED={SEED}" + "".join(f", without {name}" for name in missing), *table.lines())))
        if bad:
            self.fail("\n".join(bad))
        for key, bytes_ in (*promised.items(), *in_place.items()):
            self.assertGreater(bytes_, 0, f"{key}: nothing was acknowledged early, so nothing was tried")

    def key(self, fault, told, is_whole):
        """Of what must have been promised something: each fault, and in the whole table each dialect, too."""
        return (fault, told.dialect) if is_whole else fault

    @staticmethod
    def place(told):
        """The same of each place of the table in which a client was at work when the fault began."""
        return KINDS[told.kind].behaviour or told.policy, told.dialect, told.ask


@early
class Promises(Stage):
    def test_every_program_ends_in_success_where_nothing_breaks(self):
        self.play("nothing")

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
class PromisesOverALongCut(Stage):
    def test_no_acknowledged_block_is_lost_where_the_line_is_cut_for_15_seconds(self):
        self.play("line cut 15 s")


@early
class PromisesOverALongerCut(Stage):
    def test_no_acknowledged_block_is_lost_where_the_line_is_cut_for_90_seconds(self):
        self.play("line cut 90 s")


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
        self.play("near's power", "far's power", "far's, then near's power", "near's, then far's power")


@early
class PromisesToClientsThatCache(Stage):
    stage_of = {"both": {"features": {"smb.write_behind_cached": True}}}

    def test_no_acknowledged_block_is_lost_of_clients_with_oplocks_and_leases_of_their_own(self):
        self.play("smbd killed", "near killed", "far killed", clients=8)

    def key(self, fault, told, is_whole):
        return (fault, told.ask) if is_whole else told.ask


@early
class PromisesToClientsThatSign(Stage):
    """Those that the table has without promises, since they sign. While the link is down only resets can tell them
    (proxy/modules/smb/README.md, Lost writes and flows that bypass the link)."""

    stage_of = {"keys": True}
    only = ("go-smb2", "smbprotocol")

    def test_no_acknowledged_block_is_lost_of_clients_that_sign(self):
        self.play("smbd killed", "near killed", "far killed", "session ended", "line cut 4 s", "far gone")

    def key(self, fault, told, is_whole):
        return (fault, told.kind) if is_whole else told.kind


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
        stage.pair.wait_link()
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
        stage.pair.wait_link()


class PromisesWithoutThePair(Stage):
    """The baseline: what is lost here is a mistake of the scenarios."""

    stage_of = {"direct": True}

    def test_directly_no_block_is_lost(self):
        self.play("nothing", "smbd killed", "share closed")


class TheTable(unittest.TestCase):
    """What the tests above and below play, without playing it."""

    def test_the_sample_has_each_dialect_behaviour_and_request_for_each_fault(self):
        kinds = kinds_of()
        for fault in FAULTS:
            with self.subTest(fault):
                told = scenarios.covering(SEED, fault, kinds, 6, 20)[0].scenarios
                played = {value for each in told for value in (each.dialect, each.ask, KINDS[each.kind].behaviour or each.policy)}
                self.assertEqual(played, {value for place in scenarios.places(fault, kinds) for value in place})

    def test_the_whole_table_has_each_client_and_at_least_2000_scenarios_in_two_turns(self):
        kinds = list(KINDS)
        played = [(fault, told) for fault in FAULTS for seed in (1, 2)
                  for round_ in scenarios.covering(seed, fault, kinds) for told in round_.scenarios]
        self.assertGreaterEqual(len(played), 2000)
        self.assertEqual({told.kind for _, told in played}, set(KINDS))
        for fault in FAULTS:
            places = {(KINDS[told.kind].behaviour or told.policy, told.dialect, told.ask) for name, told in played if name == fault}
            self.assertEqual(places, set(scenarios.places(fault, kinds)))
        self.assertEqual({place[1:] for place in scenarios.places("near killed", kinds) if place[0] == "kernel"},
                         {("NT1", "none"), ("NT1", "oplock"),
                          *((dialect, ask) for dialect in ("2.1", "3.0", "3.1.1") for ask in ("none", "lease"))})
        self.assertEqual({place[1:] for place in scenarios.places("near killed", kinds) if place[0] == "continue"},
                         {("NT1", "none"), ("NT1", "oplock"), ("NT1", "durable"),
                          *((dialect, ask) for dialect in ("2.1", "3.0", "3.1.1")
                            for ask in ("none", "oplock", "lease", "durable"))})


def faults(*words):
    return [name for name, fault in FAULTS.items() if not fault.power and any(name.startswith(word) for word in words)]


class ManyPromises(Stage):
    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_of_the_daemons(self):
        self.play(*faults("near", "far"), times=2, clients=8, longest=70)


class ManyPromisesOfServers(Stage):
    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_of_servers(self):
        self.play(*faults("smbd", "disk", "session", "share", "nothing"), times=2, clients=8, longest=70)


class ManyPromisesOverTheLine(Stage):
    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_of_lines(self):
        self.play(*faults("line"), times=2, clients=8, longest=70)


class ManyPromisesWithoutPower(Stage):
    stage_of = {"power": True}

    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_without_power(self):
        self.play(*(name for name, fault in FAULTS.items() if fault.power), times=2, clients=8, longest=70)


class ManyPromisesToClientsThatCache(Stage):
    stage_of = PromisesToClientsThatCache.stage_of
    key = PromisesToClientsThatCache.key

    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_with_oplocks_and_leases_of_their_own(self):
        self.play(*faults("near", "far", "smbd", "session"), times=1, clients=8, longest=70)


class ManyPromisesToClientsThatSign(Stage):
    stage_of, only, key = PromisesToClientsThatSign.stage_of, PromisesToClientsThatSign.only, PromisesToClientsThatSign.key

    @long_test
    def test_no_acknowledged_block_is_lost_in_the_whole_table_of_clients_that_sign(self):
        self.play(*faults("near", "far", "smbd", "session", "share", "line"), times=1, clients=8, longest=70)


class ManyPromisesWithoutThePair(Stage):
    stage_of = {"direct": True}

    @long_test
    def test_directly_no_block_is_lost_in_many_scenarios(self):
        self.play(*(name for name, fault in FAULTS.items() if not fault.power and not fault.needs_pair), times=1, clients=8, longest=70)


class PromisesToAKernel(Stage):
    kernel = True

    @long_test
    def test_no_acknowledged_block_of_linuxs_client_is_lost(self):
        self.play(*(name for name, fault in FAULTS.items() if not fault.power), times=1, longest=20)


class PromisesToAKernelWithoutPower(Stage):
    kernel = True
    stage_of = {"power": True}

    @long_test
    def test_no_acknowledged_block_of_linuxs_client_is_lost_where_the_daemons_hosts_lose_their_power(self):
        self.play(*(name for name, fault in FAULTS.items() if fault.power and not fault.unsynced), times=1, longest=20)


if __name__ == "__main__":
    unittest.main()
