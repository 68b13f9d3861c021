# SPDX-License-Identifier: Apache-2.0
"""What a cell does: a file over raw TCP, HTTP or SMB, by which program. Each has a server in the lab, and moves bytes that
it is given; which bytes, how often and under what is the runner's."""

import hashlib
import itertools
import threading
import time
from typing import NamedTuple

import streams
import tcp
import web
from lab import SERVER

_names = itertools.count(1)
REQUEST = 64  # bytes


class Moved(NamedTuple):
    seconds: float  # by the client's own clock
    sha256: str  # of what arrived, where it arrived
    requests: int = 0
    facts: dict | None = None  # more for the sample


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Work:
    """One application on one rig. `place` puts a file where it is moved from; `move` moves it, in a process of its own that
    may be killed; `arrived` looks at the far side afterwards."""

    kind = ""  # of timing.KINDS
    port = 0

    def __init__(self, rig, application, seed):
        self.rig, self.lab, self.application = rig, rig.lab, application
        self.name = f"file-{next(_names)}"
        self.expected = None
        self.seed = seed

    def place(self, data):
        self.expected = sha256(data)

    def prime(self):
        """Before a measurement: what the proxies have to know of the server."""
        self.rig.prime(self.port)

    @property
    def ports(self):
        return [self.port]

    def move(self):
        raise NotImplementedError

    def finish(self, moved):
        """What arrived, where only the far side knows it."""
        return moved.sha256

    def remove(self):
        """Nothing of it is left on the servers."""


class Tcp(Work):
    """One question, one answer of all the bytes; or all the bytes and their SHA-256 as the answer. Several connections
    share the bytes."""

    def __init__(self, rig, application, seed):
        super().__init__(rig, application, seed)
        self.kind = "down" if application.work == "read" else "up"
        self.parts = []
        self.server = tcp.Server(self.lab, self._give if self.kind == "down" else self._take)
        self.port = self.server.port

    def place(self, data):
        flows = self.application.flows
        bounds = [len(data) * number // flows for number in range(flows + 1)]
        self.parts = [data[start:end] for start, end in itertools.pairwise(bounds)]
        self.expected = sha256("".join(map(sha256, self.parts)).encode())

    def _give(self, connection):
        connection.socket.settimeout(None)
        number = int(connection.receive(REQUEST))
        connection.send(self.parts[number])
        connection.end()
        connection.receive_rest()

    def _take(self, connection):
        connection.socket.settimeout(None)
        got = connection.digest_rest()
        connection.send(got.sha256.encode())

    def move(self):
        sums = [""] * len(self.parts)
        errors = []

        def one(number):
            try:
                sums[number] = (self._read if self.kind == "down" else self._write)(number)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(len(self.parts))]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        if errors:
            raise errors[0]
        return Moved(seconds, sha256("".join(each if isinstance(each, str) else sha256(each) for each in sums).encode()))

    def _connect(self):
        connection = tcp.connect(self.lab, SERVER, self.port, seconds=60)
        connection.socket.settimeout(None)
        return connection

    def _read(self, number):
        connection = self._connect()
        connection.send(str(number).encode().rjust(REQUEST))
        data, _ = connection.receive_rest()
        connection.close()
        return data  # hashed when all is over

    def _write(self, number):
        connection = self._connect()
        connection.send(self.parts[number])
        connection.end()
        answer, _ = connection.receive_rest()
        connection.close()
        return answer.decode()

    def remove(self):
        self.server.error = None  # a client that was cut off is a reset there
        self.server.close()


class Http(Work):
    """nginx and curl."""

    kind, port = "down", 80

    def place(self, data):
        super().place(data)
        (self.rig.nginx.files / self.name).write_bytes(data)

    def move(self):
        target = self.lab.scratch / f"fetched-{self.name}"
        target.unlink(missing_ok=True)
        began = time.monotonic()
        self.lab.run("client", *web.curl_words(self.name, target), seconds=3600)
        seconds = time.monotonic() - began
        return Moved(seconds, web.sha256_of(target))

    def remove(self):
        (self.rig.nginx.files / self.name).unlink(missing_ok=True)
        (self.lab.scratch / f"fetched-{self.name}").unlink(missing_ok=True)


class SmbFile(Work):
    """One file read or written. Subclasses define the client."""

    port = 445

    def __init__(self, rig, application, seed):
        super().__init__(rig, application, seed)
        self.kind = f"smb {application.work}"
        self.reads = application.work == "read"
        self.smbd = rig.smbd
        self.dialect = "NT1" if application.dialect == "SMB1" else application.dialect
        self.data = b""

    def place(self, data):
        super().place(data)
        if self.reads:
            (self.smbd.share / self.name).write_bytes(data)
        else:
            (self.smbd.share / self.name).unlink(missing_ok=True)
            self.data = data

    def finish(self, moved):
        return moved.sha256 if self.reads else self.smbd.sha256_of(self.name)

    def remove(self):
        (self.smbd.share / self.name).unlink(missing_ok=True)


class SmbImpacket(SmbFile):
    """Asks for a block, waits for it, asks for the next: 61,440 bytes with SMB1, else 64 KiB. The login is over before the
    first is asked for, and not timed."""

    def move(self):
        import smb_client
        import smb_work
        with smb_client.connect(self.lab, self.smbd, self.dialect) as client, smb_work.Took() as took:
            if self.reads:
                data = smb_work.read_file(client, self.name)
            else:
                smb_work.write_file(client, self.name, self.data)
                data = b""
        return Moved(took.seconds, sha256(data))


class SmbSmbclient(SmbFile):
    """Keeps many requests on their way by itself."""

    def move(self):
        from smb import DIALECTS
        local = self.lab.scratch / f"local-{self.name}"
        if not self.reads:
            local.write_bytes(self.data)
        command = f"get {self.name} {local}" if self.reads else f"put {local} {self.name}"
        began = time.monotonic()
        self.lab.run("client", *self.smbd.words(command, "-m", DIALECTS[self.dialect], "--timeout", 600), seconds=3600)
        seconds = time.monotonic() - began
        return Moved(seconds, web.sha256_of(local) if self.reads else "")

    def remove(self):
        super().remove()
        (self.lab.scratch / f"local-{self.name}").unlink(missing_ok=True)


class SmbKernel(SmbFile):
    """Linux's own client in an emulated machine, mounted with cache=none: each system call is a request that waits."""

    def move(self):
        from kernel_client import Mount
        with Mount(self.rig.guest, self.smbd, self.dialect, "cache=none") as mount:
            if self.reads:
                found = mount.work("read", self.name, seconds=3600)
            else:
                found = mount.work("write", self.name, seconds=3600, size=len(self.data), seed=self.seed)
        return Moved(found["seconds"], found["sha256"])


class SmbFiles(SmbImpacket):
    """Many files of 10 KB: the folder is listed, and each read whole, one after the other."""

    SIZE = 10_000

    def __init__(self, rig, application, seed):
        super().__init__(rig, application, seed)
        self.kind = "smb all"

    def place(self, data):
        folder = self.smbd.share / self.name
        folder.mkdir(exist_ok=True)  # what is measured again has it already, and gets new bytes
        for at in range(0, len(data), self.SIZE):
            (folder / f"file-{at // self.SIZE:05}").write_bytes(data[at:at + self.SIZE])
        self.expected = sha256(data)

    def move(self):
        import smb_client
        import smb_work
        with smb_client.connect(self.lab, self.smbd, self.dialect) as client, smb_work.Took() as took:
            _, found = smb_work.read_many(client, self.name)
        return Moved(took.seconds, found)

    def finish(self, moved):
        return moved.sha256

    def remove(self):
        for path in (self.smbd.share / self.name).glob("*"):
            path.unlink()
        (self.smbd.share / self.name).rmdir()


class SmbDocument(SmbImpacket):
    """A document opened as an office program opens it: 700 requests (tests/e2e/smb_work.py)."""

    def __init__(self, rig, application, seed):
        super().__init__(rig, application, seed)
        self.kind, self.reads = "smb all", True

    def move(self):
        import smb_client
        import smb_work
        size = (self.smbd.share / self.name).stat().st_size
        with smb_client.connect(self.lab, self.smbd, self.dialect) as client, smb_work.Took() as took:
            requests, found = smb_work.open_document(client, self.name, size)
        return Moved(took.seconds, found, requests)


def make(rig, application, seed, count=1, seconds=20.0):
    """`count` and `seconds` bound transactions."""
    if application.transaction:
        from transacting import Txn
        return Txn(rig, application, seed, count, seconds)
    if application.packets:
        from packet_sizes import PacketSizes
        return PacketSizes(rig, application)
    if application.protocol == "stream":
        return streams.Stream(rig, application)
    if application.protocol == "tcp":
        return Tcp(rig, application, seed)
    if application.protocol == "http":
        return Http(rig, application, seed)
    if application.work in ("files", "document"):
        return {"files": SmbFiles, "document": SmbDocument}[application.work](rig, application, seed)
    return {"impacket": SmbImpacket, "smbclient": SmbSmbclient, "kernel": SmbKernel}[application.client](
        rig, application, seed)
