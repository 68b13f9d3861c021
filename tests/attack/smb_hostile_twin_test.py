# SPDX-License-Identifier: Apache-2.0
"""A peer with a valid key whose half of the SMB module is not ours: it opens flows with the module, to a file
server, and sends messages that no half would. Its flow may end because of that, and nothing else."""

import pathlib
import re
import struct
import unittest

import fake_smb2
import tcp
from fake_smb2 import CLOSE, CREATE, NEGOTIATE, READ, SESSION_SETUP, TREE_CONNECT, WRITE
from hostile_peer import CREDIT, DATA, MODULE, OPEN_CREDIT, HostilePeer, read_varint, record
from lab import CLIENT, SERVER, Lab, until
from pair import Pair

SOURCES = pathlib.Path(__file__).resolve().parents[2]
# With another version the flow would be refused, or carried without the module.
MODULE_VERSION = int(re.search(r"kModuleVersion = (\d+);", (SOURCES / "proxy/modules/smb/module.h").read_text())[1])
# Types of messages between the halves: proxy/modules/smb/twin_messages.h, counted from 1.
ASKED, DROP, PROMISED, EXPECT, ENUMERATE, MAKE_REAL = 3, 5, 6, 13, 14, 21
OVERHEAD = 64  # of a message, in credit


def number(value):
    """Seven bits at a time, lowest first."""
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def text(data):
    return number(len(data)) + data


def key(file):
    return number(fake_smb2.SESSION) + number(fake_smb2.TREE) + text(fake_smb2.file_id(file).rstrip(b"\0"))


class Flow:
    """A flow with the module, within the credit that the daemon gives."""

    def __init__(self, peer, port):
        self.peer, self.sent, self.next_id = peer, 0, 0
        above, at = read_varint(peer.wait_for(OPEN_CREDIT))
        floor, _ = read_varint(peer.wait_for(OPEN_CREDIT), at)
        self.first = floor + above // 4
        self.stream = peer.open((SERVER, port), client=(CLIENT, 40000), forward_credit=self.first, module="smb",
                                module_version=MODULE_VERSION)

    def _credit(self):
        limit = self.first
        for body in self.peer.frames(CREDIT):
            at = 0
            while at < len(body):
                stream, at = read_varint(body, at)
                _, at = read_varint(body, at)
                got, at = read_varint(body, at)
                if stream == self.stream:
                    limit = max(limit, got)
        return limit

    def _take(self, size):
        until(lambda: self.peer.ended.is_set() or self._credit() >= self.sent + size, what="there is credit")
        self.sent += size

    def raw(self, data):
        self._take(len(data))
        self.peer.stream(self.stream, record(DATA, data))

    def tell(self, message):
        """In pieces, as credit may be short."""
        pieces = [message[at:at + 30_000] for at in range(0, len(message), 30_000)] or [b""]
        for piece in pieces:
            body = bytes([0 if piece is pieces[-1] else 1]) + piece
            self._take(len(body) + OVERHEAD)
            self.peer.stream(self.stream, record(MODULE, body))

    def ask(self, command, body):
        self.raw(fake_smb2.request(command, self.next_id, body))
        self.next_id += 1
        return self.next_id - 1

    def connect(self):
        self.ask(NEGOTIATE, fake_smb2.negotiate())
        self.ask(SESSION_SETUP, fake_smb2.session_setup())
        self.ask(TREE_CONNECT, fake_smb2.tree_connect())


class Twin(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.pair.datacenter.start()
        self.addCleanup(self.pair.datacenter.stop)
        self.pid = self.pair.datacenter.process.pid
        self.fake = fake_smb2.Server(holds=(WRITE,))
        self.server = self.enterContext(tcp.Server(self.lab, self.fake, port=445))

    def peer(self):
        return HostilePeer(self.lab, self.pair.branch, modules=(("smb", MODULE_VERSION),))

    def assert_lives(self, peer):
        """Another flow of the same peer, behind all that was said, is carried."""
        with tcp.Server(self.lab, tcp.echo) as server:
            peer.wait_for(OPEN_CREDIT)
            stream = peer.open((SERVER, server.port), client=(CLIENT, 40001))
            until(lambda: peer.received(stream) or peer.ended.is_set(), what="the flow is answered")
        process = self.pair.datacenter.process
        self.assertTrue(process.is_running(), process.log()[-2000:])
        self.assertEqual(process.pid, self.pid)
        # Its connection is the same; on a busy machine this test may answer no PING for a moment.
        self.pair.datacenter.wait_link()
        self.assertFalse(peer.ended.is_set())

    def test_a_promise_that_is_sent_twice_ends_only_its_flow(self):
        with self.peer() as peer:
            flow = Flow(peer, 445)
            flow.connect()
            flow.ask(CREATE, fake_smb2.create("a"))
            flow.ask(CREATE, fake_smb2.create("b"))
            until(lambda: self.fake.opened >= 2, what="two files are open")  # and those of our own
            # The same request, promised through one file and then through another.
            flow.tell(bytes([PROMISED]) + key(1) + number(flow.next_id))
            promised = flow.ask(WRITE, fake_smb2.write(1, 0, b"data"))
            until(lambda: WRITE in self.fake.seen, what="the write is at the server")
            flow.tell(bytes([PROMISED]) + key(2) + number(promised))
            self.fake.go_on()
            flow.ask(READ, fake_smb2.read(1, 0, 100))
            flow.ask(READ, fake_smb2.read(1, 0, 100))
            self.assert_lives(peer)

    def test_a_query_with_an_oversized_answer_ends_only_its_flow(self):
        with self.peer() as peer:
            flow = Flow(peer, 445)
            flow.connect()
            question = bytes(262_144 - 6 - len(number(flow.next_id)))
            flow.tell(bytes([EXPECT]) + number(flow.next_id) + number(16) + text(question))
            flow.ask(CREATE, fake_smb2.create("a"))
            self.assert_lives(peer)

    def test_messages_about_files_that_are_not_open_use_no_memory(self):
        with self.peer() as peer:
            flow = Flow(peer, 445)
            flow.connect()
            for n in range(1, 3000):
                flow.tell(bytes([ENUMERATE]) + key(n) + number(n) + number(0) + number(0) + number(37) + text(bytes(2000)))
                if peer.ended.is_set():
                    break
            self.assert_lives(peer)

    def test_invalid_bodies_end_only_their_flow(self):
        with self.peer() as peer:
            for body in (b"", b"\x00", b"\x00\xff", b"\x00" + bytes([ASKED]) + b"\xff" * 40, b"\x07", b"\x02\x02",
                         b"\x00" + bytes([MAKE_REAL]) + key(1) + text(struct.pack("<4s60x", b"\xfeSMB") + bytes(100))):
                flow = Flow(peer, 445)
                flow.connect()
                flow.peer.stream(flow.stream, record(MODULE, body))
                flow.peer.stream(flow.stream, record(MODULE, body))
                flow.ask(CLOSE, fake_smb2.close(1))
                self.assert_lives(peer)
