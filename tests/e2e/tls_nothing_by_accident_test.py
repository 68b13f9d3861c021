# SPDX-License-Identifier: Apache-2.0
"""What is listed is decrypted, and what is not is the same bytes on both LANs, for programs that people use; and what becomes
of a handshake that something happens to in its middle: a reload, a switch, the loss of the link."""

import hashlib
import itertools
import pathlib
import shutil
import ssl
import unittest

import tcp
import tls
from lab import SERVER, SERVER6, Lab, until
from pair import Pair, PairTest, link_cut_off
from relay import Relay

PORT = 8443  # of the relay before nginx
MARK = b"the page of this server\n"


def tables(authority, at_pair, mint):
    listed = {"addresses": [SERVER], "ca": str(authority.certificate)}
    certificate, key = at_pair
    return [listed | {"names": ["listed.corp"], "certificate": str(certificate), "key": str(key)},
            listed | {"names": ["minted.corp"], "mode": "mint", "certificate": str(mint.certificate), "key": str(mint.key)}]


class World:
    """Authorities, servers and what the far side lists."""

    def __init__(self, lab):
        self.authority = tls.Authority(lab.scratch / "ca")
        self.mint = tls.Authority(lab.scratch / "mint", "Operator's CA", "permitted;DNS:corp")
        self.trusted = lab.scratch / "trusted.crt"
        self.trusted.write_text(self.authority.certificate.read_text() + self.mint.certificate.read_text())
        self.at_server = {name: self.authority.issue(name) for name in ("listed.corp", "minted.corp", "other.corp")}
        self.at_pair = self.authority.issue("listed.corp")
        for key in (self.at_pair[1], self.mint.key):
            shutil.chown(key, "longhaul")  # which reads it again at a reload
        self.nginx = tls.Nginx(lab, [(name, pair, "") for name, pair in self.at_server.items()])
        (self.nginx.files / "page").write_bytes(MARK)
        self.settings = {"tls_server": tables(self.authority, self.at_pair, self.mint)}


class Matrix(PairTest):
    """Names, addresses, programs and versions; a relay on each LAN has what the client and what the server got."""

    line = ("51.84mbit,20",)
    both = {"tls": {"ports": [443, PORT]}}

    @classmethod
    def prepare(cls):
        cls.world = World(cls.lab)
        cls.datacenter.settings |= cls.world.settings

    def curl(self, name, *options):
        return self.lab.run("client", *tls.curl_words(name, "page", "--cacert", self.world.trusted, "--max-time", 30,
                                                      *options, address="127.0.0.1"))

    def s_client(self, name, *options):
        of_name = ("-servername", name, "-verify_hostname", name) if name else ("-noservername",)
        return self.lab.run("client", "openssl", "s_client", "-connect", "127.0.0.1:443", *of_name, "-CAfile", self.world.trusted,
                            "-verify_return_error", "-quiet", *options,
                            text=f"GET /page HTTP/1.0\r\nHost: {name}\r\n\r\n")

    def gnutls(self, name):
        # It leaves with the end of its input, whatever the server has still to say: the input ends when the page is there.
        out = self.lab.scratch / f"gnutls-{next(self.lab.counter)}"
        request = (rf"(printf 'GET /page HTTP/1.0\r\nHost: {name}\r\n\r\n'; turn=0; "
                   f"while [ $turn -lt 300 ] && ! grep -q '{MARK.decode().strip()}' {out}; do sleep 0.1; turn=$((turn + 1)); done) | ")
        return self.lab.run("client", "sh", "-c", f": > {out}; {request} gnutls-cli --x509cafile {self.world.trusted} --sni-hostname "
                                                  f"{name} --verify-hostname {name} --port 443 127.0.0.1 > {out}; cat {out}")

    def java(self, name):
        return self.lab.run("client", "java", "-cp", self.lab.scratch, "Visit", name, self.world.trusted)

    def python(self, name, session=None):
        context = self.context
        with context.wrap_socket(tcp.connect(self.lab, "127.0.0.1", 443).socket, server_hostname=name, session=session) as connection:
            connection.sendall(f"GET /page HTTP/1.0\r\nHost: {name}\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            self.session, self.resumed = connection.session, connection.session_reused
        return answer.decode()

    def programs(self):
        """Each with whether it can be decrypted."""
        yield "curl, HTTP/2", True, lambda name: self.curl(name, "--http2")
        yield "curl, HTTP/1.1, TLS 1.2", True, lambda name: self.curl(name, "--http1.1", "--tls-max", "1.2")
        yield "openssl, TLS 1.3", True, lambda name: self.s_client(name, "-tls1_3")
        yield "openssl, TLS 1.2 with CBC", False, lambda name: self.s_client(
            name, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384")
        yield "gnutls", True, self.gnutls
        if shutil.which("javac"):
            yield "java", True, self.java
        yield "python, first", True, self.python
        yield "python, again", True, lambda name: self.python(name, self.session)

    def test_what_is_listed_is_decrypted_and_nothing_else_is_touched(self):
        done = 0
        if shutil.which("javac"):
            self.lab.run("client", "javac", "-d", self.lab.scratch, pathlib.Path(__file__).with_name("Visit.java"))
        with Relay(self.lab, "server", ("127.0.0.1", 443), PORT) as at_server:
            for name, address in itertools.product(("listed.corp", "minted.corp", "other.corp"), (SERVER, SERVER6)):
                self.context = ssl.create_default_context(cafile=self.world.trusted)
                with Relay(self.lab, "client", (address, PORT), 443) as at_client:
                    for program, can_be, visit in self.programs():
                        is_listed = name != "other.corp" and address == SERVER
                        with self.subTest(name=name, address=address, program=program):
                            before = self.datacenter.reasons()
                            self.assertIn(MARK.decode(), visit(name))
                            of_client, of_server = at_client.passed(), at_server.passed()
                            given = {code: count - before.get(code, 0) for code, count in self.datacenter.reasons().items()
                                     if count != before.get(code, 0) and code != "optimised"}
                            if is_listed and can_be:
                                if program == "python, again":
                                    self.assertTrue(self.resumed)
                                self.assertEqual(given, {})
                                self.assertNotEqual(of_client.to_server[:200], of_server.to_server[:200])
                            else:
                                self.assertEqual(of_client, of_server)
                                reason = "tls_version" if is_listed else "tls_not_listed"
                                # No table has the other address, so nothing is read there.
                                self.assertEqual(given, {reason: 1} if address == SERVER else {})
                            done += 1
                            # Nothing else has reached the server.
                            self.assertTrue(at_server.server.results.empty())
        self.assertEqual(done, 3 * 2 * len(list(self.programs())))

    def test_a_client_that_names_no_server_passes(self):
        with Relay(self.lab, "server", ("127.0.0.1", 443), PORT) as at_server, \
             Relay(self.lab, "client", (SERVER, PORT), 443) as at_client:
            self.s_client("")
            self.assertEqual(at_client.passed(), at_server.passed())


class Client:
    """A handshake step by step, so that something can happen in between. It takes whatever certificate it gets."""

    def __init__(self, lab, name="listed.corp"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.connection = tcp.connect(lab, SERVER, PORT)
        self.name = name
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.goes, server_hostname=name)
        self.shown = None

    def hello(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self.connection.send(self.goes.read())
        return self

    def receive_answer(self):
        """Up to the server's Finished; the client's own is not sent yet."""
        while not self.shown:
            piece = self.connection.socket.recv(65536)
            if not piece:
                raise ConnectionResetError("ended in the middle of the handshake")
            self.came.write(piece)
            try:
                self.tls.do_handshake()
                self.shown = hashlib.sha256(self.tls.getpeercert(binary_form=True)).hexdigest()
            except ssl.SSLWantReadError:
                pass
        return self

    def page(self):
        self.tls.write(f"GET /page HTTP/1.0\r\nHost: {self.name}\r\n\r\n".encode())
        self.connection.send(self.goes.read())
        answer = b""
        while True:
            try:
                if not (piece := self.tls.read(65536)):
                    break
                answer += piece
            except ssl.SSLWantReadError:
                if not (piece := self.connection.socket.recv(65536)):
                    raise ConnectionResetError("cut off") from None
                self.came.write(piece)
            except ssl.SSLZeroReturnError:
                break
        self.connection.close()
        return answer


class MiddleOfAHandshake(unittest.TestCase):
    """Something happens while the far side asks the server, or before the client's Finished: the connection is decrypted, the
    server's own or reset, and never anything between."""

    def setUp(self):
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.world = World(self.lab)
        self.pair = Pair(self.lab, both={"tls": {"ports": [443, PORT]}}, datacenter=self.world.settings)
        self.branch, self.datacenter = self.pair.sites
        # The system's authorities, which no server here has, are read on the loop at each reload: on a busy machine, with
        # sanitizers, that can take longer than the watchdog waits.
        self.datacenter.environment = {"SSL_CERT_FILE": "/dev/null"}
        self.enterContext(self.pair)
        self.relay = self.enterContext(Relay(self.lab, "server", ("127.0.0.1", 443), PORT))

    def whose(self, shown):
        known = {tls.fingerprint(pair[0]).replace(":", "").lower(): end
                 for end, pair in (("pair", self.world.at_pair), ("server", self.world.at_server["listed.corp"]))}
        return known[shown]

    def while_asking(self, happens):
        """A client that has said hello; its server does not hear of it before something has happened."""
        with self.relay.held():
            client = Client(self.lab).hello()
            self.assertTrue(self.relay.waits.wait(tcp.PATIENCE))
            happens()
        return client

    def before_finished(self, happens):
        client = Client(self.lab).hello().receive_answer()
        happens()
        return client

    def assert_visited(self, client, end):
        client.receive_answer()
        self.assertEqual(self.whose(client.shown), end)
        self.assertIn(MARK, client.page())

    def assert_reset(self, client):
        with self.assertRaises(ConnectionError):
            client.receive_answer().page()

    def new(self):
        return Client(self.lab).hello()

    def test_a_reload_at_either_side_is_for_the_connections_after_it(self):
        def reload(tables_of_now):
            self.datacenter.settings["tls_server"] = tables_of_now
            self.datacenter.write()
            self.datacenter.longhaul("reload")

        all_of_them = self.world.settings["tls_server"]
        for begins in (self.while_asking, self.before_finished):
            with self.subTest(begins=begins.__name__):
                self.assert_visited(begins(lambda: self.branch.longhaul("reload")), "pair")
                self.assert_visited(begins(lambda: reload(all_of_them[1:])), "pair")
                self.assert_visited(self.new(), "server")
                reload(all_of_them)
                self.assert_visited(self.new(), "pair")

    def test_the_switch_leaves_the_client_to_the_server_or_resets_it(self):
        def switch_off(site):
            site.set(tls=False)
            self.addCleanup(site.set, tls=True)

        for site in self.pair.sites:
            with self.subTest(site=site.name):
                def while_asking(site=site):
                    connections = len(self.relay.server.clients)
                    switch_off(site)
                    until(lambda: len(self.relay.server.clients) == connections + 1, what="the server is connected again")

                def before_finished(site=site):
                    resets = self.branch.status()["flows"]["reset"]
                    switch_off(site)
                    until(lambda: self.branch.status()["flows"]["reset"] == resets + 1, what="the flow is reset")

                self.assert_visited(self.while_asking(while_asking), "server")
                self.assert_visited(self.new(), "server")
                site.set(tls=True)
                until(lambda: self.whose(self.new().receive_answer().shown) == "pair", what="both sides allow it")
                self.assert_reset(self.before_finished(before_finished))
                self.assert_visited(self.new(), "server")
                site.set(tls=True)
                until(lambda: self.whose(self.new().receive_answer().shown) == "pair", what="both sides allow it")

    def test_a_handshake_survives_a_link_that_is_cut_off_and_comes_back(self):
        def cut():
            with link_cut_off(self.lab, "reject with tcp reset"):
                self.branch.wait_link("down")
                if self.relay.opened.is_set():
                    self.assert_visited(self.new(), "server")
            self.pair.wait_link()

        for begins in (self.while_asking, self.before_finished):
            with self.subTest(begins=begins.__name__):
                self.assert_visited(begins(cut), "pair")

    def test_the_end_of_the_far_side_resets_the_connection_and_new_ones_reach_the_server(self):
        for begins in (self.while_asking, self.before_finished):
            with self.subTest(begins=begins.__name__):
                client = begins(self.datacenter.kill)
                self.branch.wait_link("down")
                self.assert_visited(self.new(), "server")
                self.datacenter.start()
                self.pair.wait_link()
                self.assert_reset(client)
                self.assert_visited(self.new(), "pair")
