# SPDX-License-Identifier: Apache-2.0
"""A rogue with a valid key makes the datacenter work: whatever it sends costs it something, and others are served
meanwhile. Before it was bounded each of these held the loop until the watchdog killed the daemon."""

import contextlib
import ctypes
import random
import socket
import ssl
import threading
import zlib

import tcp
from hostile_peer import DICTIONARY, OPEN_CREDIT, RESET, STREAM, frame, open_record, record, varint
from lab import BRANCH_WAN, PATIENCE, SERVER, alone, until
from rogue import ROGUE_PORT, BesiegedTest

RING = 64 << 20
IN_RING, ZSTD, OPENED = 1, 4, 64
NEED, MISMATCH = 4, 1
FIRST_RING_OFFSET = 65_536


def zstd_frame(content, level=19):
    """Without the magic number, as blocks have it."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(content)))
    out = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(out, ctypes.c_size_t(room), content, ctypes.c_size_t(len(content)), level)
    return out.raw[4:size]


def slow_content():
    """What zlib needs 0.6 s to close again, and how long the stream is: two letters in no order at level 9. They come
    again farther back than zlib looks, so that zstd makes 5 KB of them. As (opened content, the stream)."""
    plain = (bytes(random.Random(1).choices(b"ab", k=40_000)) * 7)[:260_000]
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = deflate.compress(plain) + deflate.flush()
    piece = varint(0) + varint(len(plain)) + varint(len(deflated)) + b"\x09"
    return varint(len(piece)) + piece + plain, deflated


# A second of processor time on the loop ends the daemon, so other tests beside it would decide.
@alone
class PeerWork(BesiegedTest):
    def test_blocks_that_zlib_packs_slowly_are_refused(self):
        with tcp.Server(self.lab, tcp.echo) as server, self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            rogue.dictionary(b"\x01" + varint(1) + bytes(8) + varint(RING))
            until(lambda: b"\x02" + varint(1) in rogue.received(0), what="the decoder's WELCOME")
            content, deflated = slow_content()
            encoded = varint(len(content)) + zstd_frame(content)
            streams = [rogue.open((SERVER, server.port), forward_credit=60_000) for _ in range(12)]
            frames = b""
            for number, stream in enumerate(streams):
                block = rogue.block(deflated, IN_RING | ZSTD | OPENED, FIRST_RING_OFFSET * (number + 1), encoded)
                frames += frame(STREAM, varint(stream) + varint(rogue.offsets[stream]) + block)
            self.assertLess(len(frames), 100_000)
            rogue.send(frames)
            needs = [record(DICTIONARY, bytes([NEED]) + varint(FIRST_RING_OFFSET * (number + 1)) + varint(len(deflated)) +
                            bytes([MISMATCH])) for number in range(len(streams))]
            until(lambda: all(need in rogue.received(0) for need in needs), what="a NEED for each")
            self.check_served()

    def test_resets_with_gaps_cost_no_more_than_others(self):
        with self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            resets = (frame(RESET, varint(4 * number + 1) + b"\1" + varint(0)) for number in range(120_000, 0, -1))
            rogue.send_anyhow(b"".join(resets))
            self.check_served()

    def test_opens_by_the_thousand_take_turns_with_others(self):
        with tcp.Server(self.lab, tcp.echo) as server, self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            opening = open_record((SERVER, server.port), reverse_credit=0)
            rogue.send_anyhow(b"".join(frame(STREAM, varint(number) + varint(0) + opening)
                                       for number in range(1, 20_000, 2)))
            self.check_served()


class PeerEpoch(BesiegedTest):
    """The datacenter dials the rogue, too."""

    dials_rogue = True

    def rogue_answers(self):
        """A listener where the datacenter dials the rogue; gives the first bytes that it says over TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.besieged.rogue_site.folder / "rogue.crt",
                                self.besieged.rogue_site.folder / "rogue.key")
        with self.lab.inside("branch"):
            listener = socket.create_server((BRANCH_WAN, ROGUE_PORT))
        listener.settimeout(PATIENCE)
        heard = []

        def answer():
            while not heard:
                with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    if said := connection.recv(4096):
                        heard.append(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        self.addCleanup(listener.close)
        return heard

    def test_an_impossible_epoch_is_refused_and_dialling_continues(self):
        for epoch in ((1 << 62) - 1, (1 << 48) + 1):
            with contextlib.suppress(AssertionError, OSError), self.besieged.rogue(epoch=epoch, udp_port=7600):
                pass
        heard = self.rogue_answers()
        until(lambda: heard, what="the datacenter's HELLO")
        self.check_served()
