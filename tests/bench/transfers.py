# SPDX-License-Identifier: Apache-2.0
"""Files sent from the client to the server of a lab, timed, compared by SHA-256, and what the line carried for it."""

import contextlib
import hashlib
import socket
import threading
import time

import tcp
from lab import SERVER

PIECE = 256 * 1024
PATIENCE = 600.0  # seconds without a byte; a T1 takes its time


class WrongBytes(AssertionError):
    pass


class Upload:
    """One connection to a listener of its own. `began` is before connect, `ended` at the last byte in the server. The
    hash is taken after that, so that it is not measured."""

    def __init__(self, lab, file, pause=0.0, piece=PIECE, reader_pause=0.0):
        self.file = file
        self.listener = tcp.Listener(lab)
        self.pause, self.piece, self.reader_pause = pause, piece, reader_pause
        self.error = None
        self.got = bytearray(file.size + 1)
        self.size = 0
        self.began = self.ended = 0.0
        with lab.inside("client"):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.accepted = None
        self.socket.settimeout(PATIENCE)
        self.threads = [threading.Thread(target=self._guarded, args=(task,), daemon=True)
                        for task in (self._send, self._receive)]

    def start(self):
        """Connects, and goes on by itself."""
        self.began = time.monotonic()
        self.socket.connect((SERVER, self.listener.port))
        for thread in self.threads:
            thread.start()
        return self

    def finish(self):
        for thread in self.threads:
            thread.join()
        self.listener.close()
        if self.error:
            raise self.error
        got = memoryview(self.got)[:self.size]
        if self.size != self.file.size or hashlib.sha256(got).hexdigest() != self.file.sha256:
            raise WrongBytes(f"WRONG BYTES: {self.size} of {self.file.size} of {self.file.name}")
        self.got = None
        return self

    @property
    def seconds(self):
        return self.ended - self.began

    @property
    def bits_per_second(self):
        return 8 * self.file.size / self.seconds

    def _guarded(self, task):
        try:
            task()
        except Exception as error:  # pylint: disable=broad-except
            self.error = self.error or error
            for end in filter(None, (self.socket, self.accepted)):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _send(self):
        view = memoryview(self.file.bytes)
        for at in range(0, len(view), self.piece):
            self.socket.sendall(view[at:at + self.piece])
            if self.pause:
                time.sleep(self.pause)
        self.socket.shutdown(socket.SHUT_WR)
        self.socket.recv(1)  # the far end closes when it has all
        self.socket.close()

    def _receive(self):
        self.accepted = self.listener.accept().socket
        self.accepted.settimeout(PATIENCE)
        view = memoryview(self.got)
        while got := self.accepted.recv_into(view[self.size:self.size + self.piece]):
            self.size += got
            self.ended = time.monotonic()
            if self.reader_pause:
                time.sleep(self.reader_pause)
        self.accepted.close()


def on_line(stats):
    """IP bytes that took line time, both ways: data, acknowledgements, the dictionaries' messages."""
    return sum(stats[way]["ip_bytes_on_line"] for way in ("a_to_b", "b_to_a"))


def upload(lab, file, pair=None):
    """One file on an otherwise quiet line: the upload, and the bytes on the line until its flow is gone."""
    if lab.line:
        lab.stats(reset=True)
    one = Upload(lab, file).start().finish()
    if pair:
        pair.wait_flows(0)
    one.on_line = on_line(lab.stats()) if lab.line else None
    return one
