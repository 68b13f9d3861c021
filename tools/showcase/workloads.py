# SPDX-License-Identifier: Apache-2.0
"""What the demo moves: a file over HTTP, a folder and a document over SMB, short transactions. Each workload belongs to
one lane (lanes.py), runs once, compares every byte that arrives, and knows nothing of proxies or of the other lane."""

import collections
import contextlib
import hashlib
import os
import random
import select
import socket
import struct
import threading
import time

import tcp
import web
from lab import SERVER

# seconds: None where it was cut or failed; right: False when any byte that arrived was wrong; compared: how many bytes
# were; sha256: of what arrived, where all of it did; failure: what the program or the socket said.
Moved = collections.namedtuple("Moved", "seconds cut right compared sha256 failure parts", defaults=(None, {}))


class WrongBytes(Exception):
    pass


class HttpDownload:
    """nginx serves a file, curl fetches it; over when curl has ended."""

    unit = "bytes"

    def __init__(self, lane, name, data):
        self.lane, self.name, self.data, self.size = lane, name, data, len(data)
        self.target = lane.lab.scratch / f"fetched-{next(lane.lab.counter)}"
        self.received = None  # the size of the target once it is removed

    @property
    def arrived(self):
        try:
            return os.path.getsize(self.target)
        except FileNotFoundError:
            return self.received or 0

    def prepare(self):
        (self.lane.nginx.files / self.name).write_bytes(self.data)

    def run(self, bound):
        began = time.monotonic()
        process = self.lane.lab.start("client", *web.curl_words(self.name, self.target))
        pidfd = os.pidfd_open(process.pid)
        try:
            cut = not select.select([pidfd], [], [], bound)[0]
        finally:
            os.close(pidfd)
        seconds = time.monotonic() - began
        failure = None
        if cut:
            process.kill()
        elif process.wait() != 0:
            failure = f"curl ended with {process.popen.returncode}: {' '.join(process.log().split())}"
        arrived, sha256 = self.arrived, web.sha256_of(self.target) if self.arrived else None
        right = sha256 is None or sha256 == hashlib.sha256(memoryview(self.data)[:arrived]).hexdigest()
        whole = not cut and not failure
        right = right and (arrived == self.size or not whole)
        self.received = arrived
        self.target.unlink(missing_ok=True)
        return Moved(seconds if whole else None, cut, right, arrived, sha256 if whole else None, failure)


class SmbVisit:
    """A client that waits for each answer connects, lists a folder, reads every file of it, and then a large document in
    blocks of 64 KiB; over when the last file is closed."""

    unit = "bytes"
    BLOCK = 65536  # what Windows' redirectors and Linux's `cache=none` mounts ask for at once

    def __init__(self, lane, folder, files, document, protection):
        self.lane, self.folder, self.files, self.document = lane, folder, files, document
        self.protection = protection  # "none" or "sign"
        self.size = sum(map(len, files.values())) + len(document)
        self.arrived = 0

    def prepare(self):
        place = self.lane.smbd.share / self.folder
        place.mkdir()
        for name, data in self.files.items():
            (place / name).write_bytes(data)
        (self.lane.smbd.share / f"{self.folder}.tar").write_bytes(self.document)

    def run(self, bound):
        import smb_client  # impacket may be missing where this step was not chosen
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            is_cut = threading.Event()
            try:
                client = stack.enter_context(smb_client.connect(self.lane.lab, self.lane.smbd, "3.1.1",
                                                                protection=self.protection))
                timer = threading.Timer(max(0.0, began + bound - time.monotonic()), self._cut, (client, is_cut))
                stack.callback(timer.cancel)
                timer.daemon = True
                timer.start()
                sha = hashlib.sha256()
                names = sorted(client.listing(self.folder))
                if names != sorted(self.files):
                    raise WrongBytes("the listing")
                for name in names:
                    self._read(client, f"{self.folder}/{name}", self.files[name], sha)
                middle = time.monotonic()
                self._read(client, f"{self.folder}.tar", self.document, sha)
                ended = time.monotonic()
            except WrongBytes as error:
                return Moved(None, False, False, self.arrived, None, f"wrong: {error}")
            except Exception as error:  # pylint: disable=broad-except
                if is_cut.is_set():
                    return Moved(None, True, True, self.arrived, None)
                return Moved(None, False, True, self.arrived, None, f"{type(error).__name__}: {error}")
        return Moved(ended - began, False, True, self.arrived, sha.hexdigest(), None,
                     {"files": middle - began, "document": ended - middle})

    @staticmethod
    def _cut(client, is_cut):
        is_cut.set()
        with contextlib.suppress(OSError):
            client.socket.shutdown(socket.SHUT_RDWR)

    def _read(self, client, name, expected, sha):
        """In blocks, in order, to the file's end, each compared when it arrives."""
        at = 0
        with client.open(name) as file:
            if file.size_at_open != len(expected):
                raise WrongBytes(f"{name} has {file.size_at_open} bytes")
            while at < len(expected):
                got = file.read(at, min(self.BLOCK, client.largest))
                if not got or got != expected[at:at + len(got)]:
                    raise WrongBytes(f"{name} at byte {at}")
                sha.update(got)
                at += len(got)
                self.arrived += len(got)


class Transactions:
    """Each a connection of its own: a request of 128 bytes, an answer of 1000, the end."""

    unit = "transactions"
    REQUEST_BYTES, ANSWER_BYTES, CLIENTS = 128, 1000, 20

    def __init__(self, lane, count):
        self.lane, self.size = lane, count
        self.done = []  # seconds of each, in the order they ended
        self.answers, self.wrong, self.error = {}, 0, None

    @property
    def arrived(self):
        return len(self.done)

    def prepare(self):
        pass

    def run(self, bound):
        numbers = iter(range(self.size))
        server = tcp.Server(self.lane.lab, self._answer)
        began = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(server.port, numbers, began + bound), daemon=True)
                   for _ in range(self.CLIENTS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.monotonic() - began
        server.error = None  # a client's cut is seen there as a reset
        server.close()
        sha = hashlib.sha256()
        for number in sorted(self.answers):
            sha.update(self.answers[number])
        whole = len(self.done) == self.size
        median = sorted(self.done)[len(self.done) // 2] if self.done else None
        return Moved(seconds if whole else None, not whole and not self.error, self.wrong == 0,
                     len(self.done) * self.ANSWER_BYTES, sha.hexdigest() if whole else None,
                     str(self.error) if self.error else None, {"median": median} if median else {})

    def _work(self, port, numbers, deadline):
        try:
            for number in numbers:
                began = time.monotonic()
                connection = tcp.connect(self.lane.lab, SERVER, port, seconds=max(0.01, deadline - began))
                connection.socket.settimeout(max(0.01, deadline - time.monotonic()))
                connection.send(struct.pack("!Q", number).ljust(self.REQUEST_BYTES, b"?"))
                answer, _ = connection.receive_rest()
                connection.close()
                self.answers[number] = answer
                self.wrong += answer != answer_to(number)
                self.done.append(time.monotonic() - began)
        except TimeoutError:
            pass  # the bound
        except (OSError, EOFError) as error:
            self.error = error

    def _answer(self, connection):
        (number,) = struct.unpack("!Q", connection.receive(self.REQUEST_BYTES)[:8])
        connection.send(answer_to(number))
        connection.socket.shutdown(socket.SHUT_WR)


def answer_to(number):
    return random.Random(number).randbytes(Transactions.ANSWER_BYTES)
