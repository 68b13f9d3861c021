# SPDX-License-Identifier: Apache-2.0
"""What the demo moves: a TCP stream, a file over HTTP, a file over SMB both ways, short transactions. Each workload
runs once per call, checks its bytes, and knows nothing of proxies."""

import collections
import hashlib
import itertools
import os
import random
import select
import socket
import struct
import threading
import time

import smb
import tcp
import web
from lab import SERVER

# seconds: None where the bound cut it or it failed; right: False when any byte was wrong, also among those before the
# cut; failure: what the program or the socket said.
Moved = collections.namedtuple("Moved", "seconds right bytes_arrived sha256 note failure", defaults=(None,))

PATIENT = ("--timeout", 120)  # smbclient gives up on an answer after 20 s, which long queues exceed
seeds = itertools.count(1)  # no two transfers carry the same bytes


def sha256_of_first(size, whole, seed):
    """SHA-256 of the first `size` of the `whole` bytes that a seed makes."""
    sha = hashlib.sha256()
    for piece in tcp.pieces(whole, seed):
        sha.update(piece[:max(0, size)])
        size -= len(piece)
    return sha.hexdigest()


class Stream:
    """One connection, client to server; over when the server has read all and said so."""

    name = "TCP stream"

    def __init__(self, lab, size):
        self.lab, self.size, self.arrived = lab, size, 0

    def move(self, bound):
        self.arrived = 0
        seed = next(seeds)
        with tcp.Server(self.lab, self._receive) as server:
            began = time.monotonic()
            connection = tcp.connect(self.lab, SERVER, server.port)
            try:
                for piece in tcp.pieces(self.size, seed):
                    connection.socket.settimeout(max(0.01, began + bound - time.monotonic()))
                    connection.send(piece)
                connection.end()
                connection.socket.settimeout(max(0.01, began + bound - time.monotonic()))
                answer, _ = connection.receive_rest()
                seconds = time.monotonic() - began
                connection.close()
                sha256 = answer.decode().strip()
                return Moved(seconds, sha256 == tcp.digest(self.size, seed).sha256, self.arrived, sha256, "")
            except (ConnectionError, BrokenPipeError) as error:
                connection.close()
                return Moved(None, True, self.arrived, None, "", str(error))
            except TimeoutError:
                connection.reset()
                size, sha256 = server.results.get(timeout=10)
                return Moved(None, sha256 == sha256_of_first(size, self.size, seed), size, sha256, "")

    def _receive(self, connection):
        sha, buffer = hashlib.sha256(), bytearray(tcp.PIECE)
        try:
            while size := connection.socket.recv_into(buffer):
                sha.update(memoryview(buffer)[:size])
                self.arrived += size
            connection.send(sha.hexdigest().encode() + b"\n")
        except OSError:  # the client cut it
            pass
        return self.arrived, sha.hexdigest()


class FileCopy:
    """A third-party program copies a file, until it ends. Subclasses define the program and the source."""

    name = ""

    def __init__(self, lab, size):
        self.lab, self.size, self.target = lab, size, None

    @property
    def arrived(self):
        try:
            return os.path.getsize(self.target)
        except (TypeError, FileNotFoundError):
            return 0

    def move(self, bound):
        seed = next(seeds)
        words, source, self.target = self._prepare(seed)
        expected = web.sha256_of(source)
        began = time.monotonic()
        process = self.lab.start("client", *words)
        pidfd = os.pidfd_open(process.pid)
        try:
            ended = bool(select.select([pidfd], [], [], bound)[0])
        finally:
            os.close(pidfd)
        seconds = time.monotonic() - began
        if not ended:
            process.kill()
            moved = self._cut(seed)
        elif process.wait() != 0:
            said = " ".join(process.log().split())
            moved = Moved(None, True, self.arrived, None, "", f"{words[0]} ended with {process.popen.returncode}: {said}")
        else:
            sha256 = web.sha256_of(self.target)
            moved = Moved(seconds, sha256 == expected, self.arrived, sha256, "")
        for path in (source, self.target):
            if path.exists():
                path.unlink()
        return moved

    def _cut(self, seed):
        size = self.arrived
        sha256 = web.sha256_of(self.target) if size else None
        return Moved(None, sha256 is None or sha256 == sha256_of_first(size, self.size, seed), size, sha256, "")

    def _prepare(self, seed):
        raise NotImplementedError


class HttpDownload(FileCopy):
    name = "HTTP download (nginx, curl)"

    def __init__(self, lab, size):
        super().__init__(lab, size)
        self.nginx = web.Nginx(lab)

    def _prepare(self, seed):
        self.nginx.put("file", self.size, seed)
        target = self.lab.scratch / f"fetched-{seed}"
        return web.curl_words("file", target), self.nginx.files / "file", target


class SmbCopyDown(FileCopy):
    name = "SMB copy from the server"

    def __init__(self, lab, size, smbd):
        super().__init__(lab, size)
        self.smbd = smbd

    def _prepare(self, seed):
        self.smbd.make("file", self.size, seed)
        target = self.lab.scratch / f"copy-{seed}"
        return self.smbd.words(f"get file {target}", *PATIENT), self.smbd.share / "file", target


class SmbCopyUp(FileCopy):
    name = "SMB copy to the server"

    def __init__(self, lab, size, smbd):
        super().__init__(lab, size)
        self.smbd = smbd

    def _prepare(self, seed):
        source = self.lab.scratch / f"source-{seed}"
        with open(source, "wb") as file:
            for piece in tcp.pieces(self.size, seed):
                file.write(piece)
        return self.smbd.words(f"put {source} copy", *PATIENT), source, self.smbd.share / "copy"

    def _cut(self, seed):
        # Several writes are under way at once, so the part that is there may have gaps.
        return Moved(None, True, self.arrived, None, "bytes not checked")


class Transactions:
    """Each a connection of its own: a request of 128 bytes, an answer of 1000, the end."""

    name = "short transactions"
    request_bytes, answer_bytes, clients = 128, 1000, 20

    def __init__(self, lab, count):
        self.lab, self.count = lab, count
        self.done = []  # seconds of each, in the order they ended
        self.size = count * self.answer_bytes

    @property
    def arrived(self):
        return len(self.done) * self.answer_bytes

    def move(self, bound):
        self.done, self.wrong, self.error = [], 0, None
        base = next(seeds) * 1_000_000
        numbers = iter(range(base, base + self.count))
        answers = {}
        server = tcp.Server(self.lab, self._answer)
        began = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(server.port, numbers, answers, began + bound), daemon=True)
                   for _ in range(self.clients)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.monotonic() - began
        server.error = None  # a client's cut is seen there as a reset
        server.close()
        sha = hashlib.sha256()
        for number in sorted(answers):
            sha.update(answers[number])
        median = sorted(self.done)[len(self.done) // 2] if self.done else None
        note = f"median {median * 1000:.0f} ms each" if median else ""
        whole = len(self.done) == self.count
        failure = str(self.error) if self.error else None
        return Moved(seconds if whole else None, self.wrong == 0, self.arrived, sha.hexdigest(), note, failure)

    def _work(self, port, numbers, answers, deadline):
        try:
            for number in numbers:
                began = time.monotonic()
                connection = tcp.connect(self.lab, SERVER, port, seconds=max(0.01, deadline - began))
                connection.socket.settimeout(max(0.01, deadline - time.monotonic()))
                connection.send(struct.pack("!Q", number).ljust(self.request_bytes, b"?"))
                answer, _ = connection.receive_rest()
                connection.close()
                answers[number] = answer
                self.wrong += answer != answer_to(number)
                self.done.append(time.monotonic() - began)
        except TimeoutError:
            pass  # the bound
        except OSError as error:
            self.error = error

    def _answer(self, connection):
        (number,) = struct.unpack("!Q", connection.receive(self.request_bytes)[:8])
        connection.send(answer_to(number))
        connection.socket.shutdown(socket.SHUT_WR)


def answer_to(number):
    return random.Random(number).randbytes(Transactions.answer_bytes)


def make(lab, rate_bits):
    """All of them, sized so that each takes some 8 s of a line this fast, and never more than a plain CPU carries."""
    size = int(float(f"{max(64_000, min(50_000_000, rate_bits)):.1e}"))
    count = max(20, min(1000, int(rate_bits * 10 / 8 / 1600)))
    smbd = smb.Smbd(lab)
    return [Stream(lab, size), HttpDownload(lab, size), SmbCopyDown(lab, size, smbd), SmbCopyUp(lab, size, smbd),
            Transactions(lab, count)]
