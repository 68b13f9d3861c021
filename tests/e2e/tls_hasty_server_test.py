# SPDX-License-Identifier: Apache-2.0
"""A listed server that says something and closes as soon as its own handshake is over, while the client's, which takes a round trip
of the line longer, is not: the client gets what it would get from the server itself."""

import contextlib
import socket
import ssl
import threading

import tcp
import tls
from lab import SERVER
from pair import PairTest

SAID = b"the last words of a server that does not wait " * 1000


class HastyServer:
    """Of TLS, on port 443 of the node `server`. Without close_notify if `cuts` says so."""

    def __init__(self, lab, certificate, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.cuts = False
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
                accepted.sendall(says.read())
                received = accepted.recv(65536)
                if not received:
                    return
                heard.write(received)
        connection.write(SAID)
        if not self.cuts:
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.unwrap()
        accepted.sendall(says.read())

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

    def heard(self, version):
        """All bytes until the end, and whether that was a proper one. The client says nothing."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.minimum_version = context.maximum_version = version
        # Python's default hides with OpenSSL 3 what is looked for here.
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        plain = tcp.connect(self.lab, SERVER, 443).socket
        got = b""
        with context.wrap_socket(plain, server_hostname="hasty.corp", suppress_ragged_eofs=False) as connection:
            shown = ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))
            self.assertIn(shown.split(), [self.at_pair[0].read_text().split()], "it is decrypted")
            while True:
                try:
                    received = connection.recv(65536)
                except ssl.SSLError as error:
                    self.assertTrue(isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING", error)
                    return got, False
                if not received:
                    return got, True
                got += received

    def test_what_it_has_said_arrives_and_so_does_the_way_in_which_it_has_ended(self):
        for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
            for cuts in (False, True):
                with self.subTest(version=version, cuts=cuts):
                    self.server.cuts = cuts
                    self.assertEqual(self.heard(version), (SAID, not cuts))
        self.pair.wait_flows(0)
        self.assertEqual(set(self.datacenter.reasons()) - {"optimised"}, set())
