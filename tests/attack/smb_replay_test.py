# SPDX-License-Identifier: Apache-2.0
"""A host on the client's LAN that has recorded a signed or encrypted session, of which it holds no key, and sends the same
bytes again: between the client's own messages, as one who is on the path can, and over connections of its own while the
session goes on. Nothing is accepted, answered or written, and other clients do not notice."""

import contextlib
import socket
import struct
import threading
import unittest

import realms
import smb
import smb_client
import tcp
from lab import SERVER, until
from pair import PairTest
from smb_client import OVERWRITE_IF, READ, WRITE
from smb_hostile_client_test import Beside

PROTECTED = (("NT1", "sign"), ("2.1", "sign"), ("3.0", "sign"), ("3.1.1", "sign"), ("3.0", "encrypt"), ("3.1.1", "encrypt"))
ATTACKER = "10.10.1.66"
SECRET = b"the salaries of everybody. " * 3000
FIRST, SECOND = b"pay the attacker", b"pay nobody at all"
LOGIN = (0, 1)  # NEGOTIATE, SESSION_SETUP


def frames_in(data):
    """The messages, each with the length before it; a part of one at the end is left out."""
    found, at = [], 0
    while at + 4 <= len(data) and at + 4 + (size := struct.unpack_from(">I", data, at)[0] & 0xFFFFFF) <= len(data):
        found.append(bytes(data[at:at + 4 + size]))
        at += 4 + size
    return found


def is_accepted(answer):
    """The server has done what the request demanded; in SMB1 and SMB2, a login or a NEGOTIATE apart."""
    protocol = answer[4:8]
    if protocol == b"\xfdSMB":
        return True  # encrypted with the keys of a session
    if protocol == b"\xffSMB":
        return answer[8] not in (0x72, 0x73) and answer[9:13] == bytes(4)
    status, command = struct.unpack_from("<IH", answer, 12)
    return protocol != b"\xfeSMB" or (command not in LOGIN and status == 0)


class OnPath:
    """Where the client's one connection passes: `asked` and `answered` have what did so far, and more can be put between."""

    def __init__(self, lab):
        self.listener = tcp.Listener(lab, "client")
        self.port = self.listener.port
        self.asked, self.answered = bytearray(), bytearray()
        self.server = tcp.connect(lab, SERVER, 445)
        self.over = threading.Event()  # the server's side has ended
        self.threads = [threading.Thread(target=self._run, daemon=True)]
        self.threads[0].start()

    def _run(self):
        self.client = self.listener.accept()
        self.threads.append(threading.Thread(target=self._pump, args=(self.client, self.server, self.asked), daemon=True))
        self.threads[1].start()
        self._pump(self.server, self.client, self.answered)
        self.over.set()

    def _pump(self, source, target, kept):
        source.socket.settimeout(None)
        with contextlib.suppress(OSError):
            while piece := source.socket.recv(65536):
                kept += piece
                target.send(piece)
        with contextlib.suppress(OSError):
            target.socket.shutdown(socket.SHUT_RDWR)

    def asked_by(self, call):
        """The messages that the client sent for this."""
        before = len(self.asked)
        call()
        return frames_in(self.asked[before:])

    def inject(self, data):
        """All that comes back; the connection must end."""
        before = len(self.answered)
        self.server.send(data)
        if not self.over.wait(tcp.PATIENCE):
            raise AssertionError("the connection goes on")
        return bytes(self.answered[before:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.server.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(tcp.PATIENCE)
        for end in (self.client, self.server, self.listener):
            end.close()


class Replays:
    """What both classes of tests do, each with logins of another kind."""

    line = ("51.84mbit,10",)
    name = None  # of the server, for tickets

    def setUp(self):
        self.pids = [site.process.pid for site in self.pair.sites]
        (self.smbd.share / "secret").write_bytes(SECRET)

    def assert_alive(self):
        for site, pid in zip(self.pair.sites, self.pids):
            self.assertTrue(site.process.is_running(), f"{site.name}: {site.process.log()[-2000:]}")
            self.assertEqual(site.process.pid, pid)
            site.wait_link()  # or again: on a busy machine it may be silent for a moment

    @contextlib.contextmanager
    def session(self, dialect, protection):
        """A client at work: where its connection passes, its READ, whose data the near half may still have, and its WRITE,
        after which it has written something else at the same place."""
        with OnPath(self.lab) as path, \
                smb_client.connect(self.lab, self.smbd, dialect, host="127.0.0.1", port=path.port, protection=protection,
                                   name=self.name) as client:
            path.login = frames_in(path.asked)  # NEGOTIATE, logins, the tree
            secret = client.open("secret", READ)
            read = path.asked_by(lambda: self.assertEqual(secret.read(0, 20_000), SECRET[:20_000]))
            self.assertEqual(secret.read(20_000, 20_000), SECRET[20_000:40_000])
            orders = client.open("orders", READ | WRITE, OVERWRITE_IF)
            write = path.asked_by(lambda: orders.write(0, FIRST))
            orders.write(0, SECOND)
            orders.flush()
            self.assertEqual((len(read), len(write)), (1, 1))
            yield path, client, read[0], write[0]
            self.assertEqual((self.smbd.share / "orders").read_bytes(), SECOND)

    def test_a_request_that_is_repeated_within_its_connection_resets_it(self):
        with Beside(self, self.name) as others:
            for dialect, protection in self.protected:
                for what in "read", "write":
                    with self.subTest(dialect=dialect, protection=protection, what=what):
                        before = self.branch.reasons()
                        with self.session(dialect, protection) as (path, client, read, write):
                            self.assertEqual(path.inject({"read": read, "write": write}[what]), b"")
                            with self.assertRaises(smb_client.Broken):
                                client.open("secret", READ)
                        until(lambda: self.reasons_given(before).get("smb_forged") == 1, what="the reason is counted")
            others.go_on()
        self.assert_alive()

    def test_what_is_repeated_over_another_connection_is_refused(self):
        with Beside(self, self.name) as others:
            for dialect, protection in self.protected:
                with self.subTest(dialect=dialect, protection=protection), \
                        self.session(dialect, protection) as (path, client, read, write):
                    session = frames_in(path.asked)
                    self.assertIn(write, session)
                    for sent in ([read], [write], session, [*path.login, read], [*path.login, write]):
                        answers = self.repeated(sent)
                        self.assertEqual([answer for answer in answers if is_accepted(answer)], [])
                        self.assertNotIn(SECRET[:27], b"".join(answers))
                    self.assertEqual(client.open("secret", READ).read(50_000, 100), SECRET[50_000:50_100])
            others.go_on()
        self.assert_alive()

    def repeated(self, session):
        """The answers to these messages over a connection of the attacker's, each sent when the one before is answered."""
        connection = tcp.connect(self.lab, SERVER, 445, source=(ATTACKER, 0))
        answers = []
        with contextlib.closing(connection), contextlib.suppress(ConnectionError, EOFError):
            for message in session:
                connection.send(message)
                head = connection.receive(4)
                answers.append(head + connection.receive(struct.unpack(">I", head)[0] & 0xFFFFFF))
        return answers


class Ntlm(Replays, PairTest):
    protected = PROTECTED

    @classmethod
    def prepare(cls):
        cls.smbd = smb.Smbd(cls.lab)
        cls.datacenter.settings["smb_server"] = cls.smbd.keys()
        cls.lab.run("client", "ip", "address", "add", f"{ATTACKER}/24", "dev", "eth0")


@unittest.skipUnless(realms.are_there(), "MIT's KDC is not installed: run tools/setup")
class Kerberos(Replays, PairTest):
    """This server takes a ticket and its authenticator twice: nobody remembers them. The new session has another key."""

    protected = (("2.1", "sign"), ("3.0", "encrypt"), ("3.1.1", "sign"))
    name = realms.NAME

    @classmethod
    def prepare(cls):
        cls.realms = cls.enterClassContext(realms.Realms(cls.lab))
        keytab = cls.realms.export_keytab()
        cls.smbd = realms.Server(cls.realms, keytab)
        cls.realms.log_in()
        cls.datacenter.settings["smb_server"] = [{"addresses": [SERVER], "keytab": str(keytab)}]
        cls.lab.run("client", "ip", "address", "add", f"{ATTACKER}/24", "dev", "eth0")


if __name__ == "__main__":
    unittest.main()
