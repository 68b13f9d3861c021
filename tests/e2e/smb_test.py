# SPDX-License-Identifier: Apache-2.0
"""SMB in every dialect, plain, signed and encrypted, by impacket and smbclient: what is read and written is the same
with the pair and without it. What two clients see of each other is in smb_two_clients_test.py."""

import contextlib
import hashlib
import unittest
import zlib

import random_file
import smb
import smb_client
import smb_work
import tcp
from lab import SERVER, Lab, until
from pair import PairTest
from smb_client import BATCH, NO_OPLOCK

DIALECTS = ("NT1", "2.02", "2.1", "3.0", "3.1.1")


def made(size, seed):
    return b"".join(tcp.pieces(size, seed))


def seed_of(*words):
    return zlib.crc32(repr(words).encode())


class WithoutPair(unittest.TestCase):
    """The counterparts themselves: what fails here is not the pair's doing."""

    def test_every_dialect_reads_writes_lists_renames_locks_and_breaks(self):
        lab = self.enterContext(Lab())
        smbd = smb.Smbd(lab)
        whole_story(self, lab, smbd)

    def test_signed_and_encrypted_sessions_read_and_write(self):
        lab = self.enterContext(Lab())
        protected_story(self, lab, smb.Smbd(lab))


class ThroughPair(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)

    def test_every_dialect_reads_writes_lists_renames_locks_and_breaks(self):
        whole_story(self, self.lab, self.smbd)

    def test_signed_and_encrypted_sessions_read_and_write(self):
        protected_story(self, self.lab, self.smbd)

    def test_smbclient_copies_in_every_dialect(self):
        for name, word in smb.DIALECTS.items():
            with self.subTest(name):
                there = self.smbd.make("there", 1_500_000, seed=seed_of(name))
                self.assertEqual(self.smbd.get("there", "-m", word), there)
                self.assertEqual(self.smbd.put(self.smbd.share / "there", f"copy-{word}", "-m", word), there)

    def test_smbclient_copies_signed_and_encrypted(self):
        protected_copies(self, self.smbd)

    def test_random_operations_match_a_model_in_memory(self):
        for dialect, oplock, offset in (("NT1", NO_OPLOCK, 0), ("2.1", BATCH, 0), ("3.1.1", NO_OPLOCK, 0),
                                        ("3.1.1", BATCH, (1 << 31) - 100_000), ("NT1", BATCH, (1 << 32) - 100_000)):
            with self.subTest(dialect=dialect, oplock=oplock, offset=offset):
                name = f"random-{dialect}-{oplock}-{offset}"
                (self.smbd.share / name).touch()
                with smb_client.connect(self.lab, self.smbd, dialect) as client:
                    data = random_file.check(lambda: Chunked(client, name, oplock), 150, seed=7, offset=offset)
                with open(self.smbd.share / name, "rb") as file:
                    file.seek(offset)
                    self.assertEqual(hashlib.sha256(file.read()).digest(), hashlib.sha256(data).digest())
                (self.smbd.share / name).unlink()

    def test_raw_transfers_of_smb_1_stand_between_others_which_stay_accelerated(self):
        data = bytearray(made(300_000, 11))
        (self.smbd.share / "raw").write_bytes(data)
        with smb_client.connect(self.lab, self.smbd, "NT1") as client:
            with client.open("raw", smb_client.READ | smb_client.WRITE) as file:
                for turn, at in enumerate(range(0, 180_000, 30_000)):
                    self.assertEqual(file.read(at, 20_000), data[at:at + 20_000])
                    self.assertEqual(file.read_raw(at + 5, 10_000), data[at + 5:at + 10_005])
                    new = made(7_000, turn)
                    file.write_raw(at + 10, new, through=turn % 2)
                    data[at + 10:at + 7_010] = new
                    self.assertEqual(file.read(at, 8_000), data[at:at + 8_000])
                    file.write(at + 1000, new[:3000])
                    data[at + 1000:at + 4000] = new[:3000]
                    self.assertEqual(file.read_raw(at, 5_000), data[at:at + 5_000])
                self.assertEqual(file.read_raw(400_000, 100), b"")
            self.assertEqual((self.smbd.share / "raw").read_bytes(), data)
            # As if nothing had been.
            def saved():
                counters = [flow["module"]["counters"] for flow in self.branch.flows() if flow["module"]]
                return sum(each["round_trips_saved"] for each in counters)
            before = saved()
            self.assertEqual(smb_work.read_file(client, "raw", 20_000), data)
            self.assertGreater(saved(), before)

    def test_an_office_programs_document_opens_and_saves(self):
        for dialect in ("NT1", "3.1.1"):
            with self.subTest(dialect):
                size = 400_000
                there = self.smbd.make(f"document-{dialect}", size, seed=seed_of(dialect))
                with smb_client.connect(self.lab, self.smbd, dialect) as client:
                    requests, sha256 = smb_work.open_document(client, f"document-{dialect}", size)
                    self.assertEqual(sha256, there)
                    self.assertEqual(requests, smb_work.DOCUMENT_REQUESTS)
                    new = made(size + 1000, 5)
                    smb_work.save_document(client, f"document-{dialect}", new)
                    self.assertEqual(self.smbd.sha256_of(f"document-{dialect}"), smb_work.sha256(new))

    def test_many_small_files_are_written_listed_and_read(self):
        for dialect in ("NT1", "3.1.1"):
            with self.subTest(dialect):
                folder = f"many-{dialect}"
                (self.smbd.share / folder).mkdir()
                files = {f"file-{number:03}": made(3000 + number, number) for number in range(60)}
                with smb_client.connect(self.lab, self.smbd, dialect) as client:
                    smb_work.write_many(client, folder, files)
                    for name, data in files.items():
                        self.assertEqual((self.smbd.share / folder / name).read_bytes(), data)
                with smb_client.connect(self.lab, self.smbd, dialect) as client:
                    count, sha256 = smb_work.read_many(client, folder)
                self.assertEqual(count, 60)
                self.assertEqual(sha256, smb_work.sha256(b"".join(files[name] for name in sorted(files))))


class NotSmb(PairTest):
    """Other protocols on SMB's ports, and SMB that stops in the middle, cross like any other stream."""

    line = ("51.84mbit,20",)

    def test_other_protocols_on_smbs_ports_cross_unchanged_whichever_side_speaks_first(self):
        data = made(600_000, 8)
        for port in 445, 139:
            with self.subTest(port):
                with tcp.Server(self.lab, tcp.report_digest, port=port):
                    self.assertEqual(tcp.upload(self.lab, SERVER, port, len(data), 8), tcp.digest(len(data), 8))
                with tcp.Server(self.lab, tcp.sender(len(data), 8), port=port):
                    self.assertEqual(tcp.download(self.lab, SERVER, port), tcp.digest(len(data), 8))

    def test_messages_that_begin_as_smb_and_break_off_cross_completely(self):
        negotiate = bytes.fromhex("000000b4fe534d4240000000")  # the head of a frame of 180 bytes
        for sent in (b"", b"\0", negotiate[:4], negotiate, negotiate + bytes(100), b"\0\0\0\0" * 3 + b"\0\xff\xff\xff" + bytes(50),
                     b"\x85\0\0\0" + negotiate, b"GET / HTTP/1.0\r\n\r\n"):
            with self.subTest(sent=sent[:16]), tcp.Listener(self.lab, port=445) as listener:
                here = tcp.connect(self.lab, SERVER, 445)
                there = listener.accept()
                here.send(sent)
                here.end()
                self.assertEqual(there.receive_rest(), (sent, "end"))
                there.send(b"answer")
                there.end()
                self.assertEqual(here.receive_rest(), (b"answer", "end"))

    def test_a_reset_on_smbs_port_crosses_as_a_reset(self):
        with tcp.Listener(self.lab, port=445) as listener:
            here = tcp.connect(self.lab, SERVER, 445)
            there = listener.accept()
            here.send(b"hello")
            self.assertEqual(there.receive(5), b"hello")
            there.reset()
            self.assertEqual(here.receive_rest(), (b"", "reset"))


class Crowded(PairTest):
    """More parts of frames than the modules have memory for: a quarter of the limit."""

    both = {"limits": {"memory": "16MiB"}}

    def test_flows_with_incomplete_frames_are_counted_and_continue_without_their_module(self):
        head = bytes.fromhex("00100000fe534d4240000000")  # a frame of 1 MiB
        first, rest = head + made(400_000 - len(head), 1), made((1 << 20) + 4 - 400_000, 2)
        ends = []
        with tcp.Listener(self.lab, port=445) as listener:
            for _ in range(30):
                ends.append((tcp.connect(self.lab, SERVER, 445), listener.accept()))
            for here, _ in ends:
                here.socket.setblocking(False)
            left = {here: memoryview(first) for here, _ in ends}
            most = 0

            def push():
                nonlocal most
                for here, data in list(left.items()):
                    with contextlib.suppress(BlockingIOError):
                        left[here] = data[here.socket.send(data):]
                most = max(most, self.branch.status()["memory"]["module_bytes"])
                return "memory_limit" in self.branch.reasons() and not any(map(len, left.values()))

            until(push, what="flows go on without their module")
            self.assertLess(most, (4 << 20) + 30 * (192 << 10))
            for here, there in ends:
                received = smb_client.beside(there.receive_rest)  # all of it is more than the buffers on the way hold
                here.socket.setblocking(True)
                here.send(rest)
                here.end()
                self.assertEqual(received(), (first + rest, "end"))
                there.close()
                here.close()
        self.pair.wait_flows()
        until(lambda: self.branch.status()["memory"]["module_bytes"] == 0, what="the modules' memory is free")


class OlderPort(PairTest):
    """Over NetBIOS sessions, port 139."""

    def test_smbclient_copies_over_port_139(self):
        smbd = smb.Smbd(self.lab, {"smb ports": "139 445", "disable netbios": "no"})
        there = smbd.make("there", 500_000, seed=139)
        for dialect in "NT1", "SMB3_11":
            with self.subTest(dialect):
                self.assertEqual(smbd.get("there", "-m", dialect, "-p", 139), there)
                self.assertEqual(smbd.put(smbd.share / "there", "copy", "-m", dialect, "-p", 139), there)


class Demanding(PairTest):
    """Servers that want more than the clients would give."""

    line = ("51.84mbit,20",)

    def copy_both_ways(self, smbd, *words, **where):
        there = smbd.make("there", 900_000, seed=seed_of(*words))
        if share := where.get("share"):
            smbd.folder_of(share).joinpath("there").write_bytes((smbd.share / "there").read_bytes())
        self.assertEqual(smbd.get("there", *words, **where), there)
        self.assertEqual(smbd.put(smbd.share / "there", "copy", *words, **where), there)

    def test_servers_that_demand_signatures(self):
        with smb.Smbd(self.lab, {"server signing": "mandatory"}) as smbd:
            for name, word in smb.DIALECTS.items():
                with self.subTest(name):
                    self.copy_both_ways(smbd, "-m", word)

    def test_servers_and_shares_that_demand_encryption(self):
        with smb.Smbd(self.lab, shares={"secret": {"smb encrypt": "required"}}) as smbd:
            for word in "SMB3_00", "SMB3_11":
                with self.subTest(word):
                    self.copy_both_ways(smbd, "-m", word, share="secret")
                    self.copy_both_ways(smbd, "-m", word)
        with smb.Smbd(self.lab, {"smb encrypt": "required"}) as smbd:
            self.copy_both_ways(smbd, "-m", "SMB3_11")


class WhileRunning(PairTest):
    """Features are changed under sessions that go on."""

    line = ("51.84mbit,20",)
    datacenter_has = {"features": {"smb.metadata": "relaxed"}}

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)

    def test_features_and_presets_change_while_files_are_copied(self):
        smbd = self.smbd
        for dialect in "NT1", "3.1.1":
            with self.subTest(dialect), smb_client.connect(self.lab, smbd, dialect) as client:
                for turn, preset in enumerate(("A", "T", "A", "B", "A")):
                    self.branch.set(preset=preset)
                    name = f"file-{dialect}-{turn}"
                    data = made(400_000, seed_of(name))
                    smb_work.write_file(client, name, data, oplock=BATCH)
                    self.assertEqual((smbd.share / name).read_bytes(), data)
                    self.assertEqual(smb_work.read_file(client, name), data)
                    with smb_client.connect(self.lab, smbd, dialect) as other:
                        self.assertEqual(smb_work.read_file(other, name), data)


    def counted(self, name):
        return sum(module["counters"][name] for module in self.branch.status()["modules"])

    def test_each_part_is_switched_under_a_session_and_does_nothing_while_it_is_off(self):
        smbd = self.smbd
        parts = {"smb.read_ahead": ("ahead_used_bytes", self.reads), "smb.write_behind": ("promises_made", self.writes),
                 "smb.metadata": ("metadata_answers", self.lists)}
        for dialect in "NT1", "3.1.1":
            folder = f"folder-{dialect}"
            (smbd.share / folder).mkdir()
            for number in range(1500):
                (smbd.share / folder / f"a file with number {number:04}").touch()
            with smb_client.connect(self.lab, smbd, dialect) as client:
                for part, (counter, work) in parts.items():
                    with self.subTest(dialect, part=part):
                        for turn, on in enumerate((False, True, False, True)):
                            # What is strict answers few of these questions.
                            wanted = on and ("relaxed" if part == "smb.metadata" else True)
                            self.branch.set(**{"preset": "A", **dict.fromkeys(parts, False), part: wanted})
                            before = {name: self.counted(name) for name, _ in parts.values()}
                            for attempt in range(5):  # the far side may hear of the change a moment later
                                work(client, smbd, f"{dialect}-{part}-{turn}-{attempt}", folder)
                                gained = {name for name in before if self.counted(name) > before[name]}
                                if not on or counter in gained:
                                    break
                            if not on:
                                self.assertEqual(gained, set(), f"turn {turn}")
                                continue
                            # A listing that is fetched to its end is read ahead, too.
                            also = {"ahead_used_bytes"} if part == "smb.metadata" else set()
                            self.assertEqual(gained | also, {counter} | also, f"turn {turn}")
                            self.assertIn(counter, gained, f"turn {turn}")

    def reads(self, client, smbd, name, _):
        sha256 = smbd.make(name, 600_000, seed=seed_of(name))
        self.assertEqual(smb_work.sha256(smb_work.read_file(client, name)), sha256)

    def writes(self, client, smbd, name, _):
        data = made(600_000, seed_of(name))
        smb_work.write_file(client, name, data)
        self.assertEqual((smbd.share / name).read_bytes(), data)

    def lists(self, client, _, name, folder):
        self.assertEqual(len(client.listing(folder)), 1500, name)


class ByRule(PairTest):
    """A rule switches a part off for the flows it names, and leaves the others as they are."""

    line = ("51.84mbit,20",)
    branch_has = {"rule": [{"to_ports": [139], "features": {"smb.write_behind": False}}]}

    def test_writes_are_promised_unless_a_rule_forbids_it(self):
        smbd = smb.Smbd(self.lab, {"smb ports": "139 445", "disable netbios": "no"})
        for port, promised in (139, False), (445, True):
            for dialect in "NT1", "3.1.1":
                with self.subTest(port=port, dialect=dialect), \
                        smb_client.connect(self.lab, smbd, dialect, port=port) as client:
                    name = f"file-{port}-{dialect}"
                    data = made(600_000, seed_of(name))
                    smb_work.write_file(client, name, data)
                    self.assertEqual((smbd.share / name).read_bytes(), data)
                    module, = until(lambda: len(found := [flow["module"] for flow in self.branch.flows() if flow["module"]]) == 1
                                    and found, what="earlier flows have ended")
                    self.assertEqual(module["counters"]["promised_bytes"] > 0, promised)
                    self.assertEqual(module["state"], "running")


class Chunked:
    """A handle as random_file wants it: any size, in requests the dialect allows."""

    def __init__(self, client, name, oplock):
        self.file = client.open(name, smb_client.READ | smb_client.WRITE, oplock=oplock)
        self.most = min(smb_work.BLOCK, client.largest)

    def read(self, at, size):
        found = bytearray()
        while len(found) < size and (piece := self.file.read(at + len(found), min(self.most, size - len(found)))):
            found += piece
        return bytes(found)

    def write(self, at, data):
        for start in range(0, len(data), self.most):
            self.file.write(at + start, data[start:start + self.most])

    def __getattr__(self, name):
        return getattr(self.file, name)


def whole_story(test, lab, smbd):
    for dialect in DIALECTS:
        with test.subTest(dialect), smb_client.connect(lab, smbd, dialect) as client:
            folder = f"story-{dialect}"
            (smbd.share / folder).mkdir()
            data = made(700_001, seed_of(dialect))
            smb_work.write_file(client, f"{folder}/one", data)
            test.assertEqual((smbd.share / folder / "one").read_bytes(), data)
            test.assertEqual(smb_work.read_file(client, f"{folder}/one"), data)
            smb_work.write_file(client, f"{folder}/two", data[:1234])
            test.assertEqual(client.listing(folder), {"one": 700_001, "two": 1234})

            with client.open(f"{folder}/one", smb_client.READ | smb_client.WRITE, oplock=BATCH) as file:
                test.assertEqual(file.oplock, BATCH)
                test.assertEqual(file.size_at_open, 700_001)
                file.lock(100, 50)
                file.unlock(100, 50)
                with test.assertRaises(smb_client.SmbError) as failed:
                    file.unlock(100, 50)
                test.assertEqual(failed.exception.status, smb_client.RANGE_NOT_LOCKED)
                file.write(10, b"changed")
                test.assertEqual(file.read(8, 11), data[8:10] + b"changed" + data[17:19])
                file.truncate(20)
                test.assertEqual(file.size(), 20)
                test.assertEqual(file.read(20, 10), b"")
                file.flush()
                # Another client, at the server: the oplock breaks.
                with smb_client.connect(lab, smbd, dialect, node="server") as other:
                    opened = smb_client.beside(lambda: other.open(f"{folder}/one"))
                    found = client.wait_break()
                    client.acknowledge(found, found["to"])
                    opened().close()

            client.rename(f"{folder}/two", f"{folder}/three")
            client.remove(f"{folder}/three")
            test.assertEqual(client.listing(folder), {"one": 20})
            with test.assertRaises(smb_client.SmbError) as failed:
                client.open(f"{folder}/three")
            test.assertEqual(failed.exception.status, smb_client.NAME_NOT_FOUND)
            client.echo()
            client.disconnect()


def protected_copies(test, smbd):
    newer = (("3.0", "SMB3_00"), ("3.1.1", "SMB3_11"))
    for protection, dialects in (("sign", smb.DIALECTS.items()), ("encrypt", newer)):
        for name, word in dialects:
            with test.subTest(protection=protection, dialect=name):
                words = ("-m", word, f"--client-protection={protection}")
                there = smbd.make("there", 1_500_000, seed=seed_of(protection, name))
                test.assertEqual(smbd.get("there", *words), there)
                test.assertEqual(smbd.put(smbd.share / "there", "copy", *words), there)


def protected_story(test, lab, smbd):
    for dialect, protection in (("2.02", "sign"), ("2.1", "sign"), ("3.0", "sign"), ("3.1.1", "sign"),
                                ("3.0", "encrypt"), ("3.1.1", "encrypt")):
        with test.subTest(dialect=dialect, protection=protection), \
                smb_client.connect(lab, smbd, dialect, protection=protection) as client:
            data = made(300_000, seed_of(dialect, protection))
            smb_work.write_file(client, f"{protection}-{dialect}", data)
            test.assertEqual((smbd.share / f"{protection}-{dialect}").read_bytes(), data)
            test.assertEqual(smb_work.read_file(client, f"{protection}-{dialect}"), data)
            client.disconnect()


if __name__ == "__main__":
    unittest.main()
