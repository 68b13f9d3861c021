# SPDX-License-Identifier: Apache-2.0
"""A rogue with a valid key attacks over the UDP carrier, and an outsider the port beside it. The pair's link uses UDP,
too, and goes on over it."""

import contextlib
import itertools
import os
import random
import socket
import threading

from hostile_peer import ACK, OPEN_CREDIT, RESET, STREAM, frame, open_record, varint
from hostile_udp import (PACKET_ACK, PADDING, PATH_CHALLENGE, PROBE, RECOVERED, REPAIR, SYMBOL, UdpPeer)
from lab import DATACENTER_WAN, SERVER, alone, until
from pair import LINK_PORT
from rogue import BesiegedTest

PACKETS = 3000


def ack(largest, first=0, *ranges):
    """`ranges`: gap and length, by turns."""
    return frame(PACKET_ACK, varint(largest) + varint(0) + varint(0) + varint(first) + b"".join(map(varint, ranges)))


class PeerUdp(BesiegedTest):
    both = {"features": {"transport": "udp"}}

    def setUp(self):
        super().setUp()
        self.wait_udp()

    def wait_udp(self):
        """Over UDP, or again over it: on a busy machine an attack can make it fail for a moment."""
        until(lambda: self.besieged.pair.branch.link()["carrier"] == "udp", what="the pair's link over UDP")

    def check_served(self):
        super().check_served()
        self.wait_udp()

    @contextlib.contextmanager
    def rogue(self):
        with UdpPeer(self.lab, self.besieged.rogue_site) as rogue:
            rogue.wait_for(OPEN_CREDIT)
            yield rogue

    def test_a_rogue_that_behaves_has_its_flow_carried_over_udp(self):
        with self.rogue() as rogue:
            rogue.packet(frame(STREAM, varint(1) + varint(0) + open_record((SERVER, 9))))
            until(lambda: rogue.opened > 3, what="packets of the daemon")
            self.check_served()

    def attack(self, packets):
        """Sends them; the daemon may end the rogue's session at any of them."""
        with self.rogue() as rogue:
            for frames in packets:
                rogue.packet(frames)
                if rogue.ended.is_set():
                    break
            self.check_served()

    def test_acknowledgements_of_packets_that_were_never_sent(self):
        self.attack([ack((1 << 62) - 1, (1 << 62) - 1)])

    def test_acknowledgements_that_are_all_gaps(self):
        many = list(itertools.chain.from_iterable([(0, 0)] * 63))
        self.attack(ack(126, 0, *many) * 4 for _ in range(PACKETS))

    @alone
    def test_streams_in_reverse_order_and_with_a_gap_between_any_two_bytes(self):
        def packets():
            yield frame(STREAM, varint(1) + varint(0) + open_record((SERVER, 9)))
            for at in range(200_000, 200_000 - 2 * PACKETS * 50, -100):
                yield b"".join(frame(STREAM, varint(1) + varint(max(1, at - 2 * step)) + b"x") for step in range(50))
        self.attack(packets())

    def test_unfinished_opens_and_resets_of_streams_that_do_not_exist(self):
        opening = open_record((SERVER, 9))[:5]
        self.attack(b"".join(frame(STREAM, varint(number) + varint(0) + opening) + frame(RESET, varint(number + 40_000) +
                                                                                    varint(1) + varint(0))
                             for number in range(first, first + 60, 2)) for first in range(1, 30_000, 60))

    def test_challenges_probes_padding_and_acknowledgements_without_end(self):
        every = [frame(PATH_CHALLENGE, os.urandom(8)) * 40, frame(PROBE, bytes(1000)), frame(PADDING, b"") * 500,
                 frame(ACK, b"".join(varint(2 * n) + varint(5) for n in range(300))),
                 frame(RECOVERED, b"".join(map(varint, range(64)))) * 8]
        self.attack(frames for _ in range(PACKETS // len(every)) for frames in every)

    def test_repairs_of_symbols_that_never_came(self):
        rng = random.Random(1)

        def repair(first, count):
            coded = rng.randbytes(1100)
            return frame(REPAIR, b"\x01" + varint(first) + varint(count) + varint(rng.randrange(64)) + coded)

        def packets():
            for number in range(PACKETS):
                yield frame(SYMBOL, b"\x01" + varint(4 * number)) + frame(0x08, varint(number))  # PING
                yield repair(number, 192)
                yield repair(rng.randrange(1 << 40), rng.randrange(1, 193))
        self.attack(packets())

    def test_garbage_forged_and_replayed_datagrams_of_an_outsider(self):
        with self.rogue() as rogue:
            seen = [rogue.packet(frame(PROBE, b"x" * 100)) for _ in range(64)]
            rng = random.Random(2)

            def flipped(packet):
                changed = bytearray(packet)
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
                return bytes(changed)

            def datagrams():
                while True:
                    yield rng.randbytes(rng.randrange(1, 1400))
                    yield rng.choice(seen)
                    yield flipped(rng.choice(seen))
                    yield rng.choice(seen)[:rng.randrange(40)]

            sent, over = 0, threading.Event()
            with self.lab.inside("branch"):
                outsider = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

            def flood():
                nonlocal sent
                for datagram in datagrams():
                    if over.is_set():
                        return
                    with contextlib.suppress(OSError):
                        outsider.sendto(datagram, (DATACENTER_WAN, LINK_PORT))
                    sent += 1

            thread = threading.Thread(target=flood, daemon=True)
            thread.start()
            try:
                until(lambda: sent > 5000, what="the flood")
                super().check_served()
                until(lambda: self.datacenter.metric("longhaul_udp_unknown_datagrams_total") > 1000, what="what the flood brought")
            finally:
                over.set()
                thread.join()
                outsider.close()
            self.check_served()
