# SPDX-License-Identifier: Apache-2.0
"""A client of a listed server that ends its connection with a fatal alert: nginx logs the same as if it had been without the pair, and is not reset."""

import contextlib
import re
import ssl

import tcp
import tls
from lab import SERVER, until
from pair import PairTest

# A record that cannot be decrypted: its receiver answers with the alert bad_record_mac.
FORGED = b"\x17\x03\x03\x00\x20" + bytes(32)
NAMES = {"1.3": "new.corp", "1.2": "old.corp"}
VERSIONS = {"1.3": ssl.TLSVersion.TLSv1_3, "1.2": ssl.TLSVersion.TLSv1_2}
AT_SERVER = "datacenter"  # a node without the pair before the server


class TlsFailingClient(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        at_server, cls.at_pair = (cls.authority.issue(*NAMES.values()) for _ in range(2))
        cls.nginx = tls.Nginx(cls.lab, [("new.corp", at_server, "error_log stderr info;")])
        (cls.nginx.files / "page").write_bytes(b"page")
        cls.datacenter.settings["tls_server"] = [
            {"addresses": [SERVER], "names": list(NAMES.values()), "certificate": str(cls.at_pair[0]), "key": str(cls.at_pair[1]),
             "ca": str(cls.authority.certificate)}]

    def logged(self, act, *words):
        """What nginx logs of the client's connection, which ends meanwhile."""
        before = len(self.nginx.process.log())
        act(*words)

        def found():
            return re.findall(r"\*\d+ (.*), client: ", self.nginx.process.log()[before:])

        return until(found, what="nginx logs the end of the connection")

    # -- during the handshake

    def refuse(self, node, version):
        self.lab.run(node, "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", NAMES[version],
                     f"-tls{version.replace('.', '_')}", "-no-CAfile", "-no-CApath", "-no-CAstore", "-verify_return_error", check=False)

    def test_a_client_that_refuses_the_certificate(self):
        for count, version in enumerate(VERSIONS):
            with self.subTest(version=version):
                directly = self.logged(self.refuse, AT_SERVER, version)
                self.assertIn("SSL alert number 48", directly[0])
                decrypted = self.logged(self.refuse, "client", version)
                if version == "1.2":  # the server has shaken hands when the client does
                    alerts = [[re.search(r"\(SSL: .*\)", line)[0] for line in lines] for lines in (directly, decrypted)]
                    self.assertEqual(*alerts)
                else:
                    self.assertEqual(decrypted, directly)
                self.assertEqual(self.datacenter.reasons().get("tls_client_refused", 0), count, "it was decrypted")
                self.assertEqual(self.logged(self.refuse, "client", version), directly)
                self.assertEqual(self.datacenter.reasons()["tls_client_refused"], count + 1, "it has passed")
        self.pair.wait_flows(0)

    # -- after it

    def fail(self, node, version, asks):
        """Connects, perhaps asks for a page, and fails. The connection must end in order."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.minimum_version = context.maximum_version = VERSIONS[version]
        arrives, says = ssl.MemoryBIO(), ssl.MemoryBIO()
        connection = context.wrap_bio(arrives, says, server_hostname=NAMES[version])
        plain = tcp.connect(self.lab, SERVER, 443, node=node).socket
        with plain:
            def call(what, *words):
                while True:
                    try:
                        return what(*words)
                    except ssl.SSLWantReadError:
                        plain.sendall(says.read())
                        arrives.write(plain.recv(65536))

            call(connection.do_handshake)
            is_pairs = ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True)).split() == self.at_pair[0].read_text().split()
            self.assertEqual(is_pairs, node == "client", "it is decrypted")
            if asks:
                connection.write(f"GET /page HTTP/1.1\r\nHost: {NAMES[version]}\r\n\r\n".encode())
                got = b""
                while not got.endswith(b"\r\n\r\npage"):
                    got += call(connection.read, 65536)
            plain.sendall(says.read())
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.read()  # session tickets
            arrives.write(FORGED)
            with self.assertRaisesRegex(ssl.SSLError, "BAD_RECORD_MAC|DECRYPTION_FAILED"):
                connection.read()
            plain.sendall(says.read())
            while plain.recv(65536):
                pass

    def test_a_client_that_fails_after_its_handshake(self):
        for version in VERSIONS:
            for asks in (False, True):
                with self.subTest(version=version, asks=asks):
                    directly = self.logged(self.fail, AT_SERVER, version, asks)
                    self.assertIn("SSL alert number 20", directly[0])
                    self.assertEqual(self.logged(self.fail, "client", version, asks), directly)
        self.pair.wait_flows(0)
        self.assertNotIn("tls_client_refused", self.datacenter.reasons())
