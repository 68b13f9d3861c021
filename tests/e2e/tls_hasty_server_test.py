# SPDX-License-Identifier: Apache-2.0
"""A listed server that ends its connection in one of several ways, also as soon as its own handshake is over, while the client's,
which takes a round trip of the line longer, is not: the client gets what it would get from the server itself."""

import contextlib
import fcntl
import socket
import ssl
import struct
import termios
import threading

import tcp
import tls
from lab import SERVER, until
from pair import PairTest

SAID = b"the last words of a server that does not wait " * 1000
ASKED = b"question"
# A record that cannot be decrypted: its receiver answers with the alert bad_record_mac.
FORGED = b"\x17\x03\x03\x00\x20" + bytes(32)
VERSIONS = (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2)


class HastyServer:
    """A TLS server on port 443 of the node `server`. `ends` is how it ends a connection: "properly", "cut" (without close_notify), "failed" (with a fatal
    alert), "reset" (the same, and then a TCP reset), or "torn" (a TCP reset as soon as its part of the handshake is done). With `waits`, it
    first receives a question."""

    def __init__(self, lab, certificate, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.ends, self.waits = "properly", False
        with lab.inside("server"):
            self.listener = socket.create_server((SERVER, 443))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                accepted, _ = self.listener.accept()
                accepted.settimeout(tcp.PATIENCE)
                with accepted, contextlib.suppress(OSError):
                    self.answer(accepted)

    def answer(self, accepted):
        heard, says = ssl.MemoryBIO(), ssl.MemoryBIO()
        connection = self.context.wrap_bio(heard, says, server_side=True)
        while True:
            try:
                connection.do_handshake()
                break
            except ssl.SSLWantReadError:
                accepted.sendall(flight := says.read())
                # In TLS 1.3, after its first flight.
                if self.ends == "torn" and flight and self.context.maximum_version == ssl.TLSVersion.TLSv1_3:
                    return self.reset(accepted)
                received = accepted.recv(65536)
                if not received:
                    return
                heard.write(received)
        if self.ends == "torn":
            accepted.sendall(says.read())
            return self.reset(accepted)
        if self.waits:
            accepted.sendall(says.read())
            self.hear(accepted, connection, heard)
        connection.write(SAID)
        if self.ends == "properly":
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.unwrap()
        elif self.ends in ("failed", "reset"):
            heard.write(FORGED)
            with contextlib.suppress(ssl.SSLError):
                connection.read()
        accepted.sendall(says.read())
        if self.ends == "reset":
            self.reset(accepted)

    @staticmethod
    def reset(accepted):
        """At the latest when it is closed."""
        until(lambda: not fcntl.ioctl(accepted, termios.TIOCOUTQ, bytes(4)).strip(b"\0"), tcp.PATIENCE, what="all has arrived")
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @staticmethod
    def hear(accepted, connection, heard):
        got = b""
        while got != ASKED:
            try:
                got += connection.read()
            except ssl.SSLWantReadError:
                received = accepted.recv(65536)
                if not received:
                    raise OSError("the client has not asked") from None
                heard.write(received)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(tcp.PATIENCE)


class TlsHastyServer(PairTest):
    line = ("51.84mbit,100",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        at_server, cls.at_pair = (cls.authority.issue("hasty.corp") for _ in range(2))
        cls.server = HastyServer(cls.lab, *at_server)
        cls.addClassCleanup(cls.server.stop)
        cls.datacenter.settings["tls_server"] = [
            {"addresses": [SERVER], "names": ["hasty.corp"], "certificate": str(cls.at_pair[0]), "key": str(cls.at_pair[1]),
             "ca": str(cls.authority.certificate)}]

    def connect(self, version, node="client"):
        """A connection, its two buffers and the connection below, after its handshake. It must be decrypted."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.minimum_version = context.maximum_version = version
        # Python's default hides with OpenSSL 3 what is looked for here.
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        arrives, says = ssl.MemoryBIO(), ssl.MemoryBIO()
        connection = context.wrap_bio(arrives, says, server_hostname="hasty.corp")
        plain = tcp.connect(self.lab, SERVER, 443, node=node).socket
        self.addCleanup(plain.close)
        while True:
            try:
                connection.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(says.read())
                arrives.write(plain.recv(65536))
        plain.sendall(says.read())
        shown = ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))
        self.assertEqual(shown.split() == self.at_pair[0].read_text().split(), node == "client", "it is decrypted")
        return connection, arrives, says, plain

    def heard(self, version, asked=b"", node="client"):
        """All bytes until the end of the TCP connection, which must not be reset, and how that of TLS has ended."""
        connection, arrives, says, plain = self.connect(version, node)
        if asked:
            connection.write(asked)
            plain.sendall(says.read())
        while received := plain.recv(65536):
            arrives.write(received)
        arrives.write_eof()
        plain.close()
        got = b""
        while True:
            try:
                piece = connection.read(65536)
            except ssl.SSLZeroReturnError:
                return got, "properly"
            except ssl.SSLError as error:
                if isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING":
                    return got, "cut"
                self.assertEqual(error.reason, "SSLV3_ALERT_BAD_RECORD_MAC")
                return got, "failed"
            if not piece:
                return got, "properly"
            got += piece

    def check(self, asked, ways):
        self.server.waits = bool(asked)
        for version in VERSIONS:
            for how in ways:
                with self.subTest(version=version, how=how):
                    self.server.ends = how
                    self.assertEqual(self.heard(version, asked), (SAID, how.replace("reset", "failed")))
        self.pair.wait_flows(0)
        self.assertEqual(set(self.datacenter.reasons()) - {"optimised"}, set())

    def test_what_it_has_said_arrives_and_so_does_the_way_in_which_it_has_ended(self):
        self.check(b"", ("properly", "cut", "failed"))

    def test_the_same_after_a_question(self):
        self.check(ASKED, ("properly", "cut", "failed", "reset"))

    def test_a_reset_while_the_client_shakes_hands_resets_the_client(self):
        self.server.ends = "torn"
        for version in VERSIONS:
            self.server.context.maximum_version = version
            for node in ("datacenter", "client"):  # without the pair, and with it
                with self.subTest(version=version, node=node), self.assertRaises(ConnectionResetError):
                    self.heard(version, node=node)
        self.server.context.maximum_version = ssl.TLSVersion.TLSv1_3
        self.pair.wait_flows(0)
        # Not taken for a server that cannot be decrypted.
        self.server.ends = "properly"
        self.check(b"", ("properly",))
