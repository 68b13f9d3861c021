# SPDX-License-Identifier: Apache-2.0
"""A reader that stops: it costs a bounded buffer, and other flows are not affected."""

import os
import time
import unittest
from unittest import mock

import tcp
from lab import PATIENCE, SERVER, SERVER6, alone, until
from pair import PairTest

MIB = 1 << 20


def fill(connections, seconds=PATIENCE):
    """Sends on all of them until no system takes a byte more, and gives how many bytes each has sent."""
    for connection in connections:
        connection.socket.setblocking(False)
    piece = bytes(256 * 1024)
    sent = [0] * len(connections)
    last, still = -1, 0

    def is_full():
        nonlocal last, still
        for number, connection in enumerate(connections):
            try:
                while True:
                    sent[number] += connection.socket.send(piece)
            except BlockingIOError:
                pass
        still = still + 1 if sum(sent) == last else 0
        last = sum(sent)
        return still >= 50  # half a second without progress

    until(is_full, seconds, "the senders are stopped")
    return sent


@alone
class Backpressure(PairTest):
    both = {"limits": {"memory": "128MiB"}, "dictionary": {"memory": "16MiB"}, "log": {"level": "info"}}
    memory = 128 * MIB

    @classmethod
    def setUpClass(cls):
        # A sanitized daemon keeps what it has freed for a while: that is not what is measured here.
        cls.enterClassContext(mock.patch.dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1"))
        super().setUpClass()

    def seconds_of_others(self):
        """How long flows of both families take, their bytes compared."""
        expected = tcp.digest(10_000_000, 1)
        with tcp.Server(self.lab, tcp.report_digest) as server:
            began = time.monotonic()
            for address in (SERVER, SERVER6):
                self.assertEqual(tcp.upload(self.lab, address, server.port, 10_000_000, 1), expected)
            return time.monotonic() - began

    def assert_others_flow_as_before(self, seconds_before):
        self.assertLess(self.seconds_of_others(), 10 * seconds_before + 10)  # a busy host's noise; a stall takes minutes

    def test_a_stopped_reader_costs_a_bounded_buffer_and_slows_no_other_flow(self):
        seconds = self.seconds_of_others()
        before = [site.resident_bytes() for site in self.pair.sites]
        here, there = tcp.pair(self.lab)
        (sent,) = fill([here])
        self.assert_others_flow_as_before(seconds)
        for site, bytes_before in zip(self.pair.sites, before):
            self.assertLess(site.resident_bytes() - bytes_before, 64 * MIB, site.name)
        self.assertLess(sent, 64 * MIB)  # buffers of three systems included
        # It reads again, and nothing is lost.
        here.socket.setblocking(True)
        here.end()
        self.assertEqual(there.digest_rest().size, sent)
        there.close()
        self.pair.wait_flows()

    def test_two_hundred_stalled_readers_stay_under_the_cap_and_leave_room_for_others(self):
        seconds = self.seconds_of_others()
        ends = []
        with tcp.Listener(self.lab) as listener:
            for _ in range(200):
                ends.append((tcp.connect(self.lab, SERVER, listener.port), listener.accept()))
        senders = [here for here, _ in ends]
        sent = fill(senders, 60)
        self.assert_others_flow_as_before(seconds)
        for site in self.pair.sites:
            memory = site.status()["memory"]
            self.assertLessEqual(memory["bytes"], memory["limit_bytes"], site.name)
            self.assertEqual(memory["limit_bytes"], self.memory)
            self.assertLess(site.resident_bytes(), self.memory + 64 * MIB, site.name)
        # The last ones read on: what they were sent is all there.
        for (here, there), bytes_sent in list(zip(ends, sent))[-3:]:
            here.socket.setblocking(True)
            here.end()
            self.assertEqual(there.digest_rest().size, bytes_sent)
            there.close()
        for here, there in ends[:-3]:
            here.reset()
            there.reset()
        self.pair.wait_flows()


if __name__ == "__main__":
    unittest.main()
