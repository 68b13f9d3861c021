# SPDX-License-Identifier: Apache-2.0
"""TLS of listed servers is terminated at the far side and reduced; everything else passes byte for byte."""

import base64
import contextlib
import hashlib
import ssl

import canaries
import socks
import tcp
import tls
from lab import BRANCH, SERVER, until
from pair import PairTest
from reduction_test import Wan
from smb_test import made


class Tls(PairTest):
    line = ("51.84mbit,20",)
    branch_has = {"socks": {"listen": f"{BRANCH}:1080"}}

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        rogue = tls.Authority(cls.lab.scratch / "rogue", "Unknown CA")
        # Two certificates for each name: what a client sees says which end of the pair it shook hands with.
        names = ("intranet.corp", "private.corp", "personal.corp", "strange.corp", "picky.corp", "secret.corp")
        cls.at_server = {name: (rogue if name == "strange.corp" else cls.authority).issue(name) for name in names}
        cls.at_pair = {name: cls.authority.issue(name) for name in names if name != "private.corp"}
        stapled = cls.at_server["stapled.corp"] = cls.at_pair["stapled.corp"] = cls.authority.issue("stapled.corp")
        more = {"stapled.corp": f"ssl_stapling on; ssl_stapling_file {cls.authority.status_of(stapled[0])};",
                "intranet.corp": "location /hour/ { add_header Cache-Control max-age=3600; }",
                "personal.corp": f"ssl_client_certificate {cls.authority.certificate}; ssl_verify_client on;"}
        cls.nginx = tls.Nginx(cls.lab, [(name, pair, more.get(name, "")) for name, pair in cls.at_server.items()])
        cls.datacenter.hosts = {"intranet.corp": SERVER}
        cls.datacenter.settings["tls_server"] = [
            {"addresses": [SERVER], "names": [name], "certificate": str(pair[0]), "key": str(pair[1]),
             "ca": str(cls.authority.certificate), "dedup": name != "secret.corp"} for name, pair in cls.at_pair.items()]

    def curl(self, name, path, *options, check=True):
        target = self.lab.scratch / "fetched"
        target.unlink(missing_ok=True)
        done = self.lab.run("client", *tls.curl_words(name, path, "--cacert", self.authority.certificate, "--max-time", 60,
                                                      "--output", target, *options), check=check)
        return target.read_bytes() if check else done

    @contextlib.contextmanager
    def connection(self, name, trusts=True, **attributes):
        """A TLS connection of the client; without trust the certificate is taken unseen."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if not trusts:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for key, value in attributes.items():
            setattr(context, key, value)
        plain = tcp.connect(self.lab, SERVER, 443).socket
        with context.wrap_socket(plain, server_hostname=name) as wrapped:
            yield wrapped

    def shown_by(self, name, **how):
        """The certificate that a client gets, as "pair" or "server"."""
        with self.connection(name, **how) as connection:
            shown = hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()
        known = {tls.fingerprint(pair[0]).replace(":", "").lower(): end
                 for end, pairs in (("pair", self.at_pair), ("server", self.at_server))
                 for pair in [pairs.get(name)] if pair}
        return known[shown]

    def given_by_datacenter(self, since):
        """How often a flow got each reason of this module there since then."""
        return {code: count - since.get(code, 0) for code, count in self.datacenter.reasons().items()
                if count != since.get(code, 0) and code != "optimised"}

    def put(self, name, size, seed):
        data = made(size, seed)
        (self.nginx.files / name).write_bytes(data)
        return data

    def test_a_listed_server_is_decrypted_and_what_crosses_again_is_small(self):
        data = self.put("twice", 2_000_000, 1)
        crossed = []
        for version in ("--http2", "--http1.1"):
            with Wan(self.lab) as wan:
                self.assertEqual(self.curl("intranet.corp", "twice", version), data)
            crossed.append(wan.received)
        self.assertLess(crossed[1], len(data) // 20, crossed)

    def test_a_server_whose_content_goes_into_no_dictionary_is_decrypted_and_crosses_whole_each_time(self):
        data = self.put("private", 500_000, 11)
        for _ in range(2):
            with Wan(self.lab) as wan:
                self.assertEqual(self.curl("secret.corp", "private", "--http1.1"), data)
            self.assertGreater(wan.received, len(data))
        # Neither does it help another server's.
        with Wan(self.lab) as wan:
            self.assertEqual(self.curl("intranet.corp", "private", "--http1.1"), data)
        self.assertGreater(wan.received, len(data))
        self.assertEqual(self.shown_by("secret.corp"), "pair")

    def test_headers_of_requests_go_into_no_dictionary_and_what_is_uploaded_does(self):
        headers = [word for seed in range(3) for word in ("--header", f"X-{seed}: {base64.b64encode(made(4500, 40 + seed)).decode()}")]
        upload = self.lab.scratch / "uploaded"
        upload.write_bytes(made(400_000, 44))
        for version in ("--http1.1", "--http2"):
            with self.subTest(version):
                sent = []
                for turn in range(2):
                    with Wan(self.lab) as wan:
                        self.curl("intranet.corp", f"put{version}{turn}", version, *headers, "--upload-file", upload)
                    self.assertEqual((self.nginx.files / f"put{version}{turn}").read_bytes(), upload.read_bytes())
                    sent.append(wan.sent)
                self.assertLess(sent[1], 100_000, sent)
                self.assertGreater(sent[1], 3 * 4500, sent)

    @staticmethod
    def only_flow(site):
        """As soon as earlier flows have ended, and the site knows that this one is decrypted."""
        return until(lambda: len(flows := site.flows()) == 1 and "decrypted" in flows[0]["module"]["detail"] and flows[0],
                     what=f"{site.name} has one flow, which is decrypted")

    def test_the_client_sees_the_certificate_of_the_configuration(self):
        with self.connection("intranet.corp") as connection:
            self.assertEqual(connection.version(), "TLSv1.3")
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
            self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
            far, near = map(self.only_flow, (self.datacenter, self.branch))
            self.assertIn("TLS 1.3 for intranet.corp, decrypted", far["module"]["detail"])
            self.assertEqual(near["module"]["detail"], "TLS 1.3 for intranet.corp, decrypted")
            self.assertEqual((far["reason"], near["reason"]), ("optimised", "optimised"))
        self.assertEqual(self.shown_by("intranet.corp"), "pair")

    def test_the_status_of_a_certificate_is_the_servers(self):
        since = self.datacenter.reasons()
        said = self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", "stapled.corp", "-status",
                            "-CAfile", self.authority.certificate, "-verify_return_error")
        self.assertIn("OCSP Response Status: successful", said)
        self.assertIn("Cert Status: good", said)
        self.assertEqual(self.given_by_datacenter(since), {}, "it was decrypted")

    def test_a_server_that_the_client_gave_by_name_is_listed_by_its_address(self):
        context = ssl.create_default_context(cafile=self.authority.certificate)
        plain, reply = socks.connect(self.lab, (BRANCH, 1080), ("intranet.corp", 443))
        self.assertEqual(reply, "succeeded")
        with context.wrap_socket(plain.socket, server_hostname="intranet.corp") as connection:
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
            self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))  # the server's side is up, too
            self.only_flow(self.datacenter)

    def test_pages_of_listed_servers_are_answered_from_the_cache(self):
        (self.nginx.files / "hour").mkdir()
        data = self.put("hour/page", 2_000_000, 4)
        heads, again = self.lab.scratch / "heads", self.lab.scratch / "again"
        url = "https://intranet.corp/hour/page"
        with Wan(self.lab) as wan:
            # Two requests on one connection.
            self.assertEqual(self.curl("intranet.corp", "hour/page", "--http1.1", "--dump-header", heads, url, "--output", again),
                             data)
        self.assertEqual(again.read_bytes(), data)
        self.assertEqual(heads.read_text().count("Cache-Status: longhaul;hit"), 1)
        # On a new one, as soon as the near side can read it.
        with self.connection("intranet.corp") as connection:
            until(lambda: any("decrypted" in flow["module"]["detail"] for flow in self.branch.flows()), what="the keys are there")
            with Wan(self.lab) as wan:
                connection.sendall(b"GET /hour/page HTTP/1.1\r\nHost: intranet.corp\r\nConnection: close\r\n\r\n")
                answer = b""
                while piece := connection.recv(65536):  # ends without ssl.SSLEOFError: close_notify has come
                    answer += piece
            head, _, content = answer.partition(b"\r\n\r\n")
            self.assertIn(b"Cache-Status: longhaul;hit", head)
            self.assertEqual(content, data)
            self.assertLess(wan.received, 30_000)
        counters = next(each["counters"] for each in self.branch.status()["modules"] if each["module"] == "tls")
        self.assertEqual(counters["cache_hits"], 2)
        # A tag alone: the server confirms it, and what it changed arrives.
        for seed in (5, 6):
            data = self.put("tagged", 1_000_000 + seed, seed)
            tagged = self.curl("intranet.corp", "tagged", "--http1.1", "--dump-header", heads,
                               "https://intranet.corp/tagged", "--output", again)
            self.assertEqual((tagged, again.read_bytes()), (data, data))
            self.assertEqual(heads.read_text().count("fwd-status=304"), 1)
        self.branch.set(http=False)
        try:
            self.curl("intranet.corp", "hour/page", "--http1.1", "--dump-header", heads, url, "--output", again)
            self.assertEqual(len(again.read_bytes()), 2_000_000)
            self.assertNotIn("Cache-Status", heads.read_text())
        finally:
            self.branch.set(http=True)

    def test_uploads_arrive(self):
        data = made(3_000_000, 2)
        source = self.lab.scratch / "upload"
        source.write_bytes(data)
        self.lab.run("client", *tls.curl_words("intranet.corp", "uploaded", "--cacert", self.authority.certificate,
                                               "--max-time", 60, "--upload-file", source))
        self.assertEqual((self.nginx.files / "uploaded").read_bytes(), data)

    def test_the_end_of_the_connection_is_the_servers(self):
        with self.connection("intranet.corp") as connection:
            connection.sendall(b"GET /none HTTP/1.0\r\n\r\n")
            answer = b""
            while piece := connection.recv(65536):  # ends without ssl.SSLEOFError: close_notify has come
                answer += piece
            self.assertTrue(answer.startswith(b"HTTP/1.1 404"))

    def test_what_is_not_listed_passes(self):
        before = self.datacenter.reasons()
        self.assertEqual(self.shown_by("private.corp"), "server")
        self.assertEqual(self.given_by_datacenter(before), {"tls_not_listed": 1})

    def test_a_client_with_tls_1_2_is_decrypted_and_resumes(self):
        data = self.put("older", 500_000, 10)
        before = self.datacenter.reasons()
        for suites in ("ECDHE+AES128+AESGCM", "ECDHE+AES256+AESGCM", "ECDHE+CHACHA20"):
            context = ssl.create_default_context(cafile=self.authority.certificate)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(suites)
            content, session, resumed = self.visit(context, path="older")
            self.assertEqual((content, resumed), (data, False))
            self.assertEqual(self.visit(context, session, "older")[::2], (data, True))
        self.assertEqual(self.shown_by("intranet.corp", maximum_version=ssl.TLSVersion.TLSv1_2), "pair")
        self.assertEqual(self.given_by_datacenter(before), {})

    def test_a_client_without_a_name_or_without_a_suite_that_is_decrypted_passes(self):
        before = self.datacenter.reasons()
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES256-SHA384")
        self.visit(context)
        self.assertEqual(self.given_by_datacenter(before), {"tls_version": 1})
        done = self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-noservername", check=False, text="")
        self.assertIn("SSL handshake has read", done.stdout)
        self.assertEqual(self.given_by_datacenter(before), {"tls_version": 1, "tls_no_name": 1})

    def test_a_server_that_does_not_verify_shows_its_own_certificate(self):
        before = self.datacenter.reasons()
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "unable to get|self.signed"), self.connection("strange.corp"):
            pass
        self.assertEqual(self.shown_by("strange.corp", trusts=False), "server")
        self.assertEqual(self.given_by_datacenter(before), {"tls_server_refused": 2})

    def test_a_server_that_asks_for_a_certificate_gets_the_clients(self):
        data = self.put("mine", 1000, 3)
        certificate, key = self.authority.issue("somebody")
        own = ("--cert", certificate, "--key", key)
        before = self.datacenter.reasons()
        self.assertEqual(self.curl("personal.corp", "mine", *own), data)
        self.assertEqual(self.given_by_datacenter(before), {"tls_client_certificate": 1})

    def test_a_client_without_a_protocol_of_the_servers_hears_it_from_the_server_and_others_are_decrypted(self):
        before = self.datacenter.reasons()
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.set_alpn_protocols(["unheard-of"])
        with self.assertRaisesRegex(ssl.SSLError, "no application protocol"):
            context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname="intranet.corp")
        self.assertEqual(self.given_by_datacenter(before), {"tls_server_refused": 1})
        self.assertEqual(self.shown_by("intranet.corp"), "pair")

    def test_a_client_that_refuses_the_certificate_is_left_alone(self):
        untrusting = ssl.create_default_context()
        with self.assertRaises(ssl.SSLCertVerificationError):
            untrusting.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname="picky.corp")
        until(lambda: not self.datacenter.flows(), what="the flow has ended")
        self.assertEqual(self.shown_by("picky.corp"), "server")

    def test_what_is_not_tls_passes(self):
        connection = tcp.connect(self.lab, SERVER, 443)
        connection.send(b"\x00\x01\x02 not a record\r\n\r\n")
        # nginx answers such bytes with an alert or an error of HTTP; either way it has got them.
        self.assertTrue(connection.receive(1))
        connection.close()

    def test_the_switch_stops_it_at_once(self):
        for site in (self.branch, self.datacenter):
            with self.connection("intranet.corp") as decrypted, self.connection("private.corp") as passing:
                for connection in (decrypted, passing):
                    connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
                    self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
                resets = self.branch.status()["flows"]["reset"]
                site.set(tls=False)
                try:
                    while decrypted.recv(65536):  # Python takes a reset for an end here
                        pass
                    until(lambda: self.branch.status()["flows"]["reset"] == resets + 1, what="the flow is reset")
                    passing.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
                    self.assertTrue(passing.recv(1))
                    until(lambda: self.shown_by("intranet.corp") == "server", what="both sides know")
                finally:
                    site.set(tls=True)
            until(lambda: self.shown_by("intranet.corp") == "pair", what="both sides allow it")

    def visit(self, context, session=None, path="none", site=None):
        """One request on a connection of its own: what came, the session for the next, and whether it was resumed."""
        plain = tcp.connect(self.lab, SERVER, 443).socket
        with context.wrap_socket(plain, server_hostname="intranet.corp", session=session) as connection:
            connection.sendall(f"GET /{path} HTTP/1.0\r\nHost: intranet.corp\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer.partition(b"\r\n\r\n")[2], connection.session, connection.session_reused

    def test_a_client_that_comes_again_resumes_at_the_near_side(self):
        data = self.put("again", 300_000, 8)
        context = ssl.create_default_context(cafile=self.authority.certificate)
        before = self.datacenter.reasons()
        content, session, resumed = self.visit(context, path="again")
        self.assertEqual((content, resumed), (data, False))
        for _ in range(3):
            content, session, resumed = self.visit(context, session, "again")
            self.assertEqual((content, resumed), (data, True))
        with context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname="intranet.corp",
                                 session=session) as connection:
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
            self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
            for site in (self.branch, self.datacenter):
                self.assertIn("for intranet.corp, decrypted, resumed", self.only_flow(site)["module"]["detail"])
        # Each once.
        self.assertEqual(self.visit(context, session, "again")[::2], (data, False))
        self.assertEqual(self.given_by_datacenter(before), {})

    def test_another_library_resumes_too(self):
        def resumes():
            return "*** This is a resumed session" in self.lab.run(
                "client", "gnutls-cli", "--resume", "--x509cafile", self.authority.certificate, "--sni-hostname", "intranet.corp",
                "--verify-hostname", "intranet.corp", "--port", "443", SERVER, text="\n")

        until(resumes, what="a session is resumed")  # again where the end of its input came before the ticket

    def test_sessions_are_forgotten_with_the_switch_and_with_a_reload(self):
        data = self.put("kept", 1000, 9)
        context = ssl.create_default_context(cafile=self.authority.certificate)
        session = self.visit(context)[1]
        content, session, resumed = self.visit(context, session, "kept")
        self.assertEqual((content, resumed), (data, True))
        self.branch.set(tls=False)
        self.branch.set(tls=True)
        until(lambda: self.shown_by("intranet.corp") == "pair", what="both sides allow it")
        content, session, resumed = self.visit(context, session, "kept")
        self.assertEqual((content, resumed), (data, False))
        self.branch.longhaul("reload")
        self.assertEqual(self.visit(context, session, "kept")[::2], (data, False))

    def test_no_file_has_the_key_or_what_was_decrypted(self):
        secret = b"canary-of-the-plaintext-" + b"0123456789abcdef" * 8
        (self.nginx.files / "secret").write_bytes(secret * 400)
        self.assertEqual(self.curl("intranet.corp", "secret"), secret * 400)
        key = self.at_pair["intranet.corp"][1].read_text().splitlines()[1].encode()
        log = self.lab.scratch / "client's secrets"
        with self.connection("intranet.corp", keylog_filename=str(log)) as connection:
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
            self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
            secrets = {words[0]: bytes.fromhex(words[2]) for words in map(str.split, log.read_text().splitlines())
                       if words[0] in ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")}
            self.assertEqual(len(secrets), 2)
            for site in (self.branch, self.datacenter):
                canaries.assert_absent(self, site, secrets | {"the plaintext": secret, "the server's key": key})
