# SPDX-License-Identifier: Apache-2.0
"""A rogue with a valid key makes the datacenter hold bytes that cannot be read yet: parts of records, and bytes
behind a gap. They count towards [limits] memory."""

import os
from unittest import mock

import tcp
from hostile_peer import BLOCK, OPEN, OPEN_CREDIT, STREAM, frame, varint
from lab import SERVER, alone
from rogue import BesiegedTest

MIB = 1 << 20
CAP = 64 * MIB
STREAMS = 12_000
PART = 63_000  # of a record that may have 69,632 bytes


@alone
class PeerMemory(BesiegedTest):
    changes = {"limits": {"memory": f"{CAP // MIB}MiB"}, "dictionary": {"memory": "0"}}

    @classmethod
    def setUpClass(cls):
        # A sanitizer keeps what was freed, to see who uses it.
        cls.enterClassContext(mock.patch.dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1"))

    def setUp(self):
        super().setUp()
        self.besieged.check_transfer(self)
        self.before = self.datacenter.resident_bytes()

    def check_memory(self):
        self.check_served()
        self.assertLess(self.datacenter.resident_bytes() - self.before, CAP)

    def hold(self, rogue, parts):
        """Sends as many as the datacenter takes, and sees to its memory on the way."""
        for number, part in enumerate(parts):
            if not rogue.send_anyhow(part):
                break
            if number % 500 == 0:
                self.assertLess(self.datacenter.resident_bytes() - self.before, CAP)

    def test_opens_that_never_end(self):
        with self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            part = bytes([OPEN]) + varint(69_000) + bytes(PART)
            self.hold(rogue, (frame(STREAM, varint(2 * n + 1) + varint(0) + part) for n in range(STREAMS)))
            self.check_memory()

    def test_bytes_behind_gaps_of_streams_that_were_not_opened(self):
        with self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            self.hold(rogue, (frame(STREAM, varint(2 * n + 1) + varint(1) + bytes(PART)) for n in range(STREAMS)))
            self.check_memory()

    def test_blocks_that_never_end_in_open_flows(self):
        with tcp.Server(self.lab, tcp.echo) as server, self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)

            def parts():
                for _ in range(2000):
                    stream = rogue.open((SERVER, server.port))
                    at = rogue.offsets[stream]
                    yield frame(STREAM, varint(stream) + varint(at) + bytes([BLOCK]) + varint(69_000) + bytes(PART))

            try:
                self.hold(rogue, parts())
            except OSError:
                pass  # the datacenter ended the connection
            self.check_memory()
