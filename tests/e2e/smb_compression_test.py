# SPDX-License-Identifier: Apache-2.0
"""SMB's own compression ([MS-SMB2] 2.2.3.1.3, 2.2.42). No server of the tests has it, so both ends are the test's: with the
server's keys the far side declines it in NEGOTIATE of 3.1.1, because nothing compressed can be read; without them nothing
is changed, and the module steps aside at the first compressed message."""

import os
import secrets
import struct
import unittest

import tcp
from lab import SERVER, until
from pair import PairTest

PLAIN_SERVER = "10.10.2.5"  # whose keys the far side does not have
PREAUTH, ENCRYPTION, COMPRESSION, SIGNING = 1, 2, 3, 8
LZNT1, LZ77, HUFFMAN, PATTERN, LZ4 = range(1, 6)
CHAINED = 1
ALGORITHMS = (PATTERN, LZ77, HUFFMAN, LZNT1, LZ4)
RESPONSE = 1


def header(command, message_id, flags=0, session=0):
    return struct.pack("<4sHHIHHIIQIIQ16x", b"\xfeSMB", 64, 1, 0, command, 1, flags, 0, message_id, 0xFEFF, 0, session)


def framed(message):
    return struct.pack(">I", len(message)) + message


def contexts(chosen):
    """`chosen`: (type, data) each. Every one begins at a multiple of eight."""
    data = b""
    for kind, content in chosen:
        data += bytes(-len(data) % 8) + struct.pack("<HHI", kind, len(content), 0) + content
    return data


def preauth():
    return PREAUTH, struct.pack("<HHH", 1, 32, 1) + secrets.token_bytes(32)


def choices(kind, *values):
    return kind, struct.pack(f"<H{len(values)}H", len(values), *values)


def compression(*algorithms):
    return COMPRESSION, struct.pack(f"<HHI{len(algorithms)}H", len(algorithms), 0, CHAINED, *algorithms)


def request():
    offered = contexts((preauth(), choices(ENCRYPTION, 2, 1), compression(*ALGORITHMS), choices(SIGNING, 2, 1)))
    dialects = struct.pack("<4H", 0x0210, 0x0300, 0x0302, 0x0311)
    fixed = struct.pack("<HHHHI16sIHH", 36, 4, 1, 0, 0x7F, os.urandom(16), 64 + 36 + 8 + 4, 4, 0)
    return framed(header(0, 0) + fixed + dialects + bytes(4) + offered)


def response(*chosen):
    fixed = struct.pack("<HHHH16sIIIIQQHHI", 65, 1, 0x0311, len(chosen), os.urandom(16), 0x2F, 1 << 20, 1 << 20, 1 << 20,
                        0, 0, 128, 0, 128)
    return framed(header(0, 0, RESPONSE) + fixed + contexts(chosen))


def offered_in(message, at=4 + 64 + 36 + 8 + 4):
    """The contexts of our request, by type."""
    found = {}
    while at < len(message):
        at += -(at - 4) % 8
        kind, size = struct.unpack_from("<HH", message, at)
        found[kind] = message[at + 8:at + 8 + size]
        at += 8 + size
    return found


def compressed(size):
    """A message with the head of a chained one, and a payload that only its receiver could read."""
    return framed(struct.pack("<4sIHHI", b"\xfcSMB", size, LZ4, CHAINED, 200) + os.urandom(200))


class Compression(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.lab.run("server", "ip", "address", "add", f"{PLAIN_SERVER}/24", "dev", "eth0")
        hashes = cls.lab.scratch / "ntlm_hashes"
        hashes.write_text(f"alice:{'5c' * 16}\n")
        hashes.chmod(0o600)
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER], "ntlm_hashes": str(hashes)}]

    def connection(self, address):
        listener = self.enterContext(tcp.Listener(self.lab, port=445))
        here = tcp.connect(self.lab, address, 445)
        there = listener.accept()
        for end in here, there:
            self.addCleanup(end.close)
        return here, there

    def test_it_is_declined_where_the_far_side_has_the_servers_keys_and_nothing_else_is(self):
        here, there = self.connection(SERVER)
        asked = request()
        here.send(asked)
        received = there.receive(len(asked))
        before, after = offered_in(asked), offered_in(received)
        self.assertEqual(after[COMPRESSION], struct.pack("<HHI5H", 5, 0, CHAINED, *[0] * 5))  # five times "none"
        self.assertNotEqual(after[PREAUTH], before[PREAUTH])  # another salt
        self.assertEqual({kind: after[kind] for kind in (ENCRYPTION, SIGNING)},
                         {kind: before[kind] for kind in (ENCRYPTION, SIGNING)})
        self.assertEqual(received[:4 + 64 + 36 + 8 + 4], asked[:4 + 64 + 36 + 8 + 4])
        answer = response(preauth(), choices(ENCRYPTION, 2), choices(SIGNING, 2))
        there.send(answer)
        given = here.receive(len(answer))
        self.assertEqual(len(given), len(answer))
        self.assertNotEqual(given, answer)  # another salt

    def test_compressed_messages_cross_unchanged_where_it_does_not(self):
        here, there = self.connection(PLAIN_SERVER)
        asked = request()
        here.send(asked)
        self.assertEqual(there.receive(len(asked)), asked)
        answer = response(preauth(), choices(ENCRYPTION, 2), compression(LZ77, PATTERN), choices(SIGNING, 2))
        there.send(answer)
        self.assertEqual(here.receive(len(answer)), answer)
        for size in 5000, 70_000:
            for source, target in (here, there), (there, here):
                message = compressed(size) + framed(header(13, 1, RESPONSE if source is there else 0, 5) + bytes((4, 0, 0, 0)))
                source.send(message)
                self.assertEqual(target.receive(len(message)), message)
        until(lambda: [flow["reason"] for flow in self.branch.flows()] == ["smb_not_understood"], what="the reason is shown")
        here.end()
        self.assertEqual(there.receive_rest(), (b"", "end"))
        there.end()
        self.assertEqual(here.receive_rest(), (b"", "end"))


if __name__ == "__main__":
    unittest.main()
