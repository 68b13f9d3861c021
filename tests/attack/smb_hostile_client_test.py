# SPDX-License-Identifier: Apache-2.0
"""A host on the LAN that may log in to a file server and asks for what costs the proxies more than it costs the host. It
holds an account on the server and its own address; another client's files and flows must go on as if it were not
there."""

import contextlib
import os
import struct
import threading

import smb
import smb_client
import tcp
from lab import PATIENCE, SERVER, until
from pair import PairTest
from smb_client import ATTRIBUTES, NON_DIRECTORY_FILE, READ, SHARE_ALL

CREATE, WRITE, CLOSE, ECHO = 5, 9, 6, 13


class Pipelined:
    """Requests of an smb2_client.Smb2Client, sent without waiting for answers, as bytes of our own."""

    def __init__(self, client):
        self.client, self.socket = client, client.socket
        self.next_id = client.inner._Connection["SequenceWindow"]  # impacket has no other way to tell
        self.session = client.inner._Session["SessionID"]

    def frame(self, command, body, credits=1, behind=b""):
        """`behind` is sent as a part of the message that nothing in it refers to."""
        header = struct.pack("<4sHHIHHIIQIIQ16x", b"\xfeSMB", 64, 1, 0, command, credits, 0, 0, self.next_id, 0xFEFF,
                             self.client.tree, self.session)
        self.next_id += 1
        message = header + body + behind
        return struct.pack(">I", len(message)) + message

    def create(self, name, access=READ, oplock=0, contexts=b"", behind=b""):
        text = name.encode("utf-16-le")
        padded = text + bytes(-len(text) % 8) if contexts else text
        body = struct.pack("<HBBIQQIIIIIHHII", 57, 0, oplock, 2, 0, 0, access, 0, SHARE_ALL, 1, NON_DIRECTORY_FILE, 120,
                           len(text), 120 + len(padded) if contexts else 0, len(contexts)) + padded + contexts
        return self.frame(CREATE, body, credits=64, behind=behind)

    def write(self, file_id, offset, data):
        return self.frame(WRITE, struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), offset, file_id, 0, 0, 0, 0, 0) + data)

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """The next message of the server: command, status, body."""
        head = self._exactly(4)
        message = self._exactly(struct.unpack(">I", head)[0])
        status, command = struct.unpack_from("<IH", message, 8)
        return command, status, message[64:]

    def answers(self, count):
        """The next `count` final answers; breaks and interim ones are passed over."""
        found = []
        while len(found) < count:
            command, status, body = self.receive()
            if status != 0x103 and command != 18:
                found.append((command, status, body))
        return found

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise smb_client.Broken("the connection ended")
            data += more
        return data


class Beside:
    """A client of its own connection that reads and writes a file, and a TCP flow, until the end of the `with` block,
    comparing every byte. `name`: the server's, where it takes tickets."""

    def __init__(self, test, name=None):
        self.lab, self.smbd, self.name = test.lab, test.smbd, name
        self.rounds = [0, 0]
        self.failures = []
        self.over = threading.Event()

    def __enter__(self):
        self.smbd.make("theirs.bin", 300_000, seed=7)
        self.threads = [threading.Thread(target=self._run, args=(i, call))
                        for i, call in enumerate((self._files, self._flow))]
        for thread in self.threads:
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
        if self.failures:
            raise self.failures[0]

    def go_on(self):
        """Waits until both have done their work twice more, at least once from its beginning to its end."""
        before = list(self.rounds)
        until(lambda: self.failures or all(now >= was + 2 for now, was in zip(self.rounds, before)), seconds=2 * PATIENCE,
              what="the other client and the other flow go on")
        if self.failures:
            raise self.failures[0]

    def _run(self, index, call):
        try:
            for _ in call():
                self.rounds[index] += 1
                if self.over.is_set():
                    return
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(error)

    def _files(self):
        theirs = (self.smbd.share / "theirs.bin").read_bytes()
        with smb_client.connect(self.lab, self.smbd, "3.1.1", name=self.name) as client:
            while True:
                data = os.urandom(50_000)
                with client.open("made.bin", READ | smb_client.WRITE, smb_client.OVERWRITE_IF) as file:
                    file.write(0, data)
                    file.flush()
                    assert file.read(0, len(data)) == data, "what was written is read"
                with client.open("theirs.bin") as file:
                    got = b"".join(file.read(at, 60_000) for at in range(0, 300_000, 60_000))
                assert got == theirs, "the file is what the server has"
                yield

    def _flow(self):
        with tcp.Server(self.lab, tcp.echo) as server, \
                contextlib.closing(tcp.connect(self.lab, SERVER, server.port)) as connection:
            while True:
                data = os.urandom(100_000)
                connection.send(data)
                assert connection.receive(len(data)) == data, "the echo is what was sent"
                yield


class Client(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)

    def setUp(self):
        self.pids = [site.process.pid for site in self.pair.sites]

    def assert_alive(self):
        for site, pid in zip(self.pair.sites, self.pids):
            self.assertTrue(site.process.is_running(), f"{site.name}: {site.process.log()[-2000:]}")
            self.assertEqual(site.process.pid, pid)
            site.wait_link()  # or again: on a busy machine it may be silent for a moment

    def test_writes_to_a_file_with_thousands_of_opens_disturb_no_other_client(self):
        opens, writes = 4000, 500
        self.smbd.make("open often.bin", 100_000)
        with Beside(self) as others, smb_client.connect(self.lab, self.smbd, "3.1.1") as client:
            file = client.open("open often.bin", READ | smb_client.WRITE)
            attack = Pipelined(client)
            for _ in range(opens // 50):
                attack.send(b"".join(attack.create("open often.bin") for _ in range(50)))
                self.assertEqual({status for _, status, _ in attack.answers(50)}, {0})
            others.go_on()
            attack.send(b"".join(attack.write(file.id, n, bytes([n % 256])) for n in range(writes)))
            self.assertEqual({status for _, status, _ in attack.answers(writes)}, {0})
            others.go_on()
        self.assert_alive()
        self.assertEqual((self.smbd.share / "open often.bin").read_bytes()[:writes],
                         bytes(n % 256 for n in range(writes)))

    def test_a_create_with_much_data_behind_it_disturbs_no_other_client(self):
        self.smbd.make("looked at.bin", 1000)
        with Beside(self) as others, smb_client.connect(self.lab, self.smbd, "2.1") as client:
            file = client.open("looked at.bin", READ, oplock=smb_client.BATCH)
            self.assertEqual(file.oplock, smb_client.BATCH)
            attack = Pipelined(client)
            attack.send(attack.create("looked at.bin", ATTRIBUTES, behind=bytes(300_000)))
            ((command, _, _),) = attack.answers(1)
            self.assertEqual(command, CREATE)
            # What it was opened behind is closed: whatever was answered for it has to be told to the other side.
            attack.send(attack.frame(CLOSE, struct.pack("<HHI16s", 24, 0, 0, file.id)))
            ((command, status, _),) = attack.answers(1)
            self.assertEqual((command, status), (CLOSE, 0))
            others.go_on()
        self.assert_alive()
