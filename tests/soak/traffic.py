# SPDX-License-Identifier: Apache-2.0
"""Transfers whose every byte both ends know: each sends a stretch of one pool of random bytes, and the reader compares
what arrives with that stretch. A transfer may be reset by a fault; what arrived before must still be right, and one
that ends in order must be whole."""

import contextlib
import random
import struct
import threading

import tcp
from lab import SERVER, SERVER6

POOL_BYTES = 256 << 20
HEAD = struct.Struct(">QQB")  # offset in the pool, size, direction
UPLOAD, DOWNLOAD = 0, 1


class Wrong(Exception):
    """A byte that was not sent, or an end in order that came too early."""


class Traffic:
    """Transfers between client and server in several threads at once, until stop(). The counters may be read any time."""

    def __init__(self, lab, seed, flows):
        self.lab = lab
        self.seed = seed
        self.pool = b"".join(tcp.pieces(POOL_BYTES, seed))
        self.bytes = self.transfers = self.resets = 0
        self.wrong = []
        self._count = threading.Lock()
        self._stop = threading.Event()
        self._server = tcp.Server(lab, self._serve)
        self._threads = [threading.Thread(target=self._transfer, args=(number,), daemon=True) for number in range(flows)]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        self._server.close()

    # -- both ends

    def _send(self, sock, offset, size):
        view = memoryview(self.pool)
        for start in range(offset, offset + size, tcp.PIECE):
            sock.sendall(view[start:min(start + tcp.PIECE, offset + size)])

    def _receive(self, sock, offset, size):
        """Compares all that comes; returns when the other end has ended in order, and was whole."""
        buffer, at = bytearray(tcp.PIECE), offset
        while got := sock.recv_into(buffer):
            if at + got > offset + size or buffer[:got] != self.pool[at:at + got]:
                raise Wrong(f"bytes {at - offset} to {at - offset + got} of {size} from {offset} differ")
            at += got
            with self._count:
                self.bytes += got
        if at != offset + size:
            raise Wrong(f"an end in order after {at - offset} of {size} bytes from {offset}")

    def _guard(self, work):
        """Whether the transfer came to its end."""
        try:
            work()
        except Wrong as wrong:
            self.wrong.append(str(wrong))
        except (OSError, EOFError):
            return False
        return True

    def _serve(self, connection):
        sock = connection.socket

        def work():
            head = connection.receive(HEAD.size)
            offset, size, direction = HEAD.unpack(head)
            if direction == DOWNLOAD:
                self._send(sock, offset, size)
                connection.end()
                connection.receive_rest()
            else:
                self._receive(sock, offset, size)
                sock.sendall(b"\1")

        self._guard(work)

    def _transfer(self, number):
        dice = random.Random(f"{self.seed} {number}")
        while not self._stop.is_set():
            # Mostly the same few stretches, so that the dictionaries in memory and on disk are used all the time.
            size = dice.choice((1000, 100_000, 4 << 20, 16 << 20))
            offset = dice.randrange(8) * (16 << 20) if dice.random() < 0.9 else dice.randrange(POOL_BYTES - size)
            direction, address = dice.randrange(2), dice.choice((SERVER, SERVER6))
            whole = self._guard(lambda: self._ask(address, offset, size, direction))
            with self._count:
                self.transfers += 1
                self.resets += not whole
            if not whole:
                self._stop.wait(0.05)

    def _ask(self, address, offset, size, direction):
        connection = tcp.connect(self.lab, address, self._server.port, seconds=10)
        with contextlib.closing(connection):
            connection.send(HEAD.pack(offset, size, direction))
            if direction == DOWNLOAD:
                self._receive(connection.socket, offset, size)
            else:
                self._send(connection.socket, offset, size)
                connection.end()
                if connection.receive(1) != b"\1":
                    raise Wrong("an answer that the server did not give")
