# SPDX-License-Identifier: Apache-2.0
"""A second peer of the datacenter, with a valid key of its own, wants what another branch sent and received: it asks
which segments there are, loads one by its id and lets the daemon check guesses of its bytes, claims to have it, has it
forgotten, and has it evicted. The first branch's dictionary must neither be read nor become smaller."""

import shutil
import struct
import unittest

import tcp
from dictionary_test import wait_stored
from hostile_peer import (BLOCK, CONTROL_STREAM, DATA, DICTIONARY, OPEN_CREDIT, STREAM, HostilePeer, frame, read_varint,
                          record, varint)
from lab import CLIENT, SERVER, Lab, until
from pair import NETWORKS, Pair, Site, configuration
from reduction_test import MB, Wan, digest, download, noise, sender, text

HELLO, WELCOME, HELD, NEED, _, _, _, _, HAVE, LOST, SEALED, CANNOT, _, _, FORGET, FORGOTTEN = range(1, 17)
RING_START = 65536
RING_BYTES = 64 << 20
UNREACHABLE, MISMATCH = 0, 1
SECOND_CLIENT = "10.10.3.7"
# Stages of a block, PROTOCOL.md section 15.
IN_RING, REFERENCES, LOADS = 1, 2, 8


def records(data):
    """(type, body) of every record in a stream's bytes."""
    at = 0
    while at < len(data):
        size, start = read_varint(data, at + 1)
        if len(data) < start + size:
            return
        yield data[at], data[start:start + size]
        at = start + size


class DictionaryPeer(HostilePeer):
    """One that speaks with the daemon's block codec: it greets as an encoder and answers as a decoder."""

    def __enter__(self):
        super().__enter__()
        self.wait_for(OPEN_CREDIT)
        self.says(HELLO, varint(1) + struct.pack(">Q", 0x5EC0) + varint(RING_BYTES))
        self.says(HAVE)
        until(lambda: self.told(WELCOME) and self.told(HELLO), what="the daemon's codec has greeted")
        self.says(WELCOME, varint(1) + varint(RING_BYTES))
        return self

    def says(self, kind, body=b""):
        self.dictionary(bytes([kind]) + body)

    def told(self, kind):
        """The bodies of the daemon's messages of a type."""
        said = [body for type_, body in records(self.received(CONTROL_STREAM)) if type_ == DICTIONARY]
        return [body[1:] for body in said if body[0] == kind]

    def ids(self):
        """Of all segments that the daemon said it has."""
        return {body[at:at + 8] for body in self.told(HAVE) for at in range(0, len(body), 8)}

    def send_block(self, stream, codec, plain, ring_offset, content):
        self.stream(stream, self.block(plain, codec, ring_offset, content))

    def guess(self, stream, segment, offset, plain, ring_offset):
        """A block that is right if the segment has the bytes `plain` there."""
        loads = segment + varint(offset) + varint(len(plain)) + varint(ring_offset)
        at = ring_offset + len(plain)
        distance = 2 * len(plain)
        change = distance.to_bytes(2, "big")
        references = b"\x00" and bytes([2 << 5]) + varint(len(plain) - 8) + change
        content = varint(len(references)) + references
        self.send_block(stream, IN_RING | REFERENCES | LOADS, plain, at, varint(len(loads)) + loads + content)


class TwoBranches(unittest.TestCase):
    """The branch and the datacenter are a pair; the second peer has only its key, and dials from the branch's node."""

    def start(self, disk=None):
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.pair = Pair(self.lab)
        self.second = Site(self.lab, "branch", name="second")
        self.second.settings = configuration(self.second, self.pair.datacenter)
        datacenter = self.pair.datacenter.settings
        datacenter["peer"].append({"name": "second", "fingerprint": self.second.fingerprint,
                                   "networks": ["10.10.3.0/24"]})
        if disk:
            datacenter["dictionary"] = {"disk": disk}
        self.enterContext(self.pair)

    def first_transfer(self, size=6 * MB):
        """The branch's first download: at its full cost; afterwards it is on both disks."""
        self.data = noise(size, seed="the first branch's secret")
        with Wan(self.lab) as wan:
            self.assertEqual(download(self.lab, self.data), digest(self.data))
        self.assertGreater(wan.received, len(self.data))
        wait_stored(self.pair, len(self.data))

    def check_repeat_is_cheap(self):
        """Also where memory does not have it any more."""
        self.pair.stop()
        self.pair.start()
        with Wan(self.lab) as wan:
            self.assertEqual(download(self.lab, self.data), digest(self.data))
        self.assertLess(wan.received, len(self.data) / 5)

    def ids_of_the_branch(self):
        """The datacenter's messages to the first branch, which the second peer may have obtained somehow."""
        self.pair.branch.stop()
        with DictionaryPeer(self.lab, self.pair.branch) as itself:
            until(itself.ids, what="the datacenter told its segments to the branch that made them")
            return itself.ids()

    def attacker(self):
        return DictionaryPeer(self.lab, self.second)

    def segments(self):
        return self.pair.datacenter.status()["disk_dictionary"]["segments"]

    # -- reading

    def test_a_second_peer_is_not_told_of_what_another_branch_sent(self):
        self.start()
        self.first_transfer()
        with self.attacker() as attacker:
            until(lambda: attacker.told(HAVE), what="the datacenter says what it has")
            self.assertEqual(attacker.ids(), set())

    def test_loading_a_segment_by_id_does_not_confirm_a_guess(self):
        self.start()
        self.first_transfer()
        segments = sorted(self.ids_of_the_branch())
        self.assertTrue(segments)
        with self.attacker() as attacker:
            # Nobody reads what is sent: a stream to a port where nothing listens is enough.
            place = RING_START
            answers = []
            right = {self.data[at:at + 64] for at in range(0, 256, 64)}
            for segment in segments:
                for plain in (*sorted(right), b"\0" * 64):
                    with tcp.Server(self.lab, tcp.echo) as server:
                        stream = attacker.open((SERVER, server.port), client=(SECOND_CLIENT, 40000),
                                               forward_credit=1024)
                        before = len(attacker.told(NEED)), len(attacker.told(HELD))
                        attacker.guess(stream, segment, 0, plain, place)
                        answered = lambda: len(attacker.told(NEED)) > before[0] or self.held(attacker, place + 64)
                        until(answered, what="an answer to the guess")
                        answers.append("held" if self.held(attacker, place + 64) else attacker.told(NEED)[-1][-1])
                    place += 128
            # Whatever was guessed, the answer is that of a segment that never was.
            self.assertEqual(set(answers), {UNREACHABLE})
            until(lambda: len(attacker.told(CANNOT)) >= len(answers), what="it says of each that it cannot be had")
            self.assertEqual(len(attacker.told(CANNOT)), len(answers))

    def held(self, peer, offset):
        """Whether the daemon said that it holds the byte at the offset."""
        for body in peer.told(HELD):
            at, end = 0, 0
            while at < len(body):
                gap, at = read_varint(body, at)
                length, at = read_varint(body, at)
                if end + gap <= offset < end + gap + length:
                    return True
                end += gap + length
        return False

    def test_the_daemon_does_not_refer_to_what_another_branch_received(self):
        self.start()
        self.first_transfer()
        segments = self.ids_of_the_branch()
        with self.attacker() as attacker:
            attacker.says(HAVE, b"".join(segments))
            with tcp.Server(self.lab, sender(self.data)) as server:
                stream = attacker.open((SERVER, server.port), client=(SECOND_CLIENT, 40000), forward_credit=1024,
                                       reverse_credit=2 * len(self.data))

                def got():
                    said = list(records(attacker.received(stream)))
                    blocks = [(body[0], read_varint(body, 1)[0]) for kind, body in said if kind == BLOCK]
                    plain = sum(len(body) for kind, body in said if kind == DATA)
                    return blocks, plain + sum(size for _, size in blocks)

                until(lambda: got()[1] >= len(self.data), what="all of the data came, in blocks or as it is")
                self.assertEqual([codec for codec, _ in got()[0] if codec & LOADS], [])

    # -- destroying

    def test_segments_that_a_second_peer_forgets_stay_for_the_branch_that_sent_them(self):
        self.start()
        self.first_transfer()
        segments = self.ids_of_the_branch()
        before = self.segments()
        with self.attacker() as attacker:
            attacker.says(HAVE, b"".join(segments))
            attacker.says(FORGET)
            until(lambda: attacker.told(FORGOTTEN), what="the answer to FORGET")
            self.assertEqual(attacker.told(FORGOTTEN), [varint(0)])
        self.assertEqual(self.segments(), before)
        self.check_repeat_is_cheap()

    def test_segments_of_bytes_that_never_arrived_are_not_stored_and_evict_nothing(self):
        self.start(disk="64MiB")
        self.first_transfer(16 * MB)
        before = self.pair.datacenter.status()["disk_dictionary"]
        with self.attacker() as attacker, tcp.Server(self.lab, tcp.echo) as server:
            stream = attacker.open((SERVER, server.port), client=(SECOND_CLIENT, 40000), forward_credit=1024)
            # The history's head is far on: everything below it would be the peer's.
            end = RING_START + RING_BYTES - 16
            attacker.send_block(stream, IN_RING, b"sixteen bytes...", end, b"sixteen bytes...")
            until(lambda: self.held(attacker, end), what="the block is in the history")
            for at in range(64):
                attacker.says(SEALED, varint(RING_START + at * (1 << 16)) + varint(16 << 20) + bytes(16))
            # Each of these is answered behind all that was said before.
            attacker.says(FORGET)
            until(lambda: attacker.told(FORGOTTEN), what="the answer to FORGET")
        disk = self.pair.datacenter.status()["disk_dictionary"]
        self.assertEqual({key: disk[key] for key in ("put", "wrong_digest", "evicted")},
                         {key: before[key] for key in ("put", "wrong_digest", "evicted")})
        self.check_repeat_is_cheap()


class Groups(unittest.TestCase):
    """A branch with a copy of another one's dictionary: it is useful only if the operator of the datacenter has
    configured that the two share theirs."""

    def test_a_copied_dictionary_is_useful_only_within_a_group(self):
        lab = self.enterContext(Lab("51.84mbit,20"))
        pair = Pair(lab)
        second = Site(lab, "branch", name="second")
        second.settings = configuration(second, pair.datacenter)
        parts = [noise(6 * MB, seed=number) for number in range(2)]
        with pair:
            for part in parts:
                self.assertEqual(download(lab, part), digest(part))
            wait_stored(pair, sum(map(len, parts)))
        shutil.rmtree(second.folder / "state")
        shutil.copytree(pair.branch.folder / "state", second.folder / "state")
        settings = pair.datacenter.settings
        first = settings["peer"][0]
        settings["peer"].append({**first, "name": "second", "fingerprint": second.fingerprint})
        first["networks"] = ["10.10.3.0/24"]
        for shared, part in ((False, parts[0]), (True, parts[1])):
            with self.subTest(shared=shared):
                if shared:
                    settings["dictionary"] = {"share": ["branches"]}
                    for peer in settings["peer"]:
                        peer["groups"] = ["branches"]
                pair.datacenter.start()
                second.start()
                second.wait_link()
                with Wan(lab) as wan:
                    self.assertEqual(download(lab, part), digest(part))
                if shared:
                    self.assertLess(wan.received, len(part) / 5)
                else:
                    self.assertGreater(wan.received, len(part))
                second.stop()
                pair.datacenter.stop()


if __name__ == "__main__":
    unittest.main()
