# SPDX-License-Identifier: Apache-2.0
"""Servers whose key nobody has: the far side makes a certificate from the operator's own authority. Clients trust that
authority alone, and verify."""

import hashlib
import pathlib
import re
import shutil
import ssl

import canaries
import tcp
import tls
from lab import SERVER, until
from pair import PairTest
from reduction_test import Wan
from smb_test import made


class TlsMint(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        scratch = cls.lab.scratch
        cls.authority = tls.Authority(scratch / "ca")
        cls.mint = tls.Authority(scratch / "mint", "Operator's CA", "permitted;DNS:corp,excluded;IP:0.0.0.0/0.0.0.0")
        cls.elsewhere = tls.Authority(scratch / "elsewhere", "Another CA", "permitted;DNS:elsewhere.corp")
        for each in (cls.mint, cls.elsewhere):
            shutil.chown(each.key, "longhaul")  # which reads it again at a reload
        rogue = tls.Authority(scratch / "rogue", "Unknown CA")
        cls.at_server = {
            "intranet.corp": cls.authority.issue("intranet.corp", "also.corp", "private.corp", "intranet.com"),
            "private.corp": cls.authority.issue("private.corp"),
            "x.build.corp": cls.authority.issue("build.corp", "*.build.corp"),
            "old.corp": cls.authority.issue("old.corp", has_alternative_names=False),
            "foreign.corp": cls.authority.issue("foreign.corp"),
            "strange.corp": rogue.issue("strange.corp")}
        cls.nginx = tls.Nginx(cls.lab, [(name, pair, "") for name, pair in cls.at_server.items()])
        cls.datacenter.settings["tls_server"] = [
            cls.table(cls.mint, ["intranet.corp", "also.corp", "*.build.corp", "old.corp", "strange.corp"]),
            cls.table(cls.elsewhere, ["foreign.corp"])]

    @classmethod
    def table(cls, mint, names):
        return {"addresses": [SERVER], "names": names, "mode": "mint", "certificate": str(mint.certificate),
                "key": str(mint.key), "ca": str(cls.authority.certificate)}

    def s_client(self, name, *options, check=True, trusts=None):
        """openssl s_client, which verifies the chain and the name, and prints what it got."""
        return self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", name,
                            "-verify_hostname", name, "-CAfile", (trusts or self.mint).certificate, "-verify_return_error",
                            *options, check=check)

    def shown(self, name, *options):
        """The text of the certificate that a client gets that trusts the operator's authority alone."""
        said = self.s_client(name, *options)
        pem = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", said, re.DOTALL)[0]
        return self.lab.run("client", "openssl", "x509", "-noout", "-text", text=pem)

    def sees_the_servers_own(self, name):
        """Without verification, which is the client's own affair."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname=name) as connection:
            shown = hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()
        return shown == tls.fingerprint(self.at_server[name][0]).replace(":", "").lower()

    def given_by_datacenter(self, since):
        return {code: count - since.get(code, 0) for code, count in self.datacenter.reasons().items()
                if count != since.get(code, 0) and code != "optimised"}

    def test_a_client_that_trusts_the_operators_authority_alone_is_decrypted_and_what_crosses_again_is_small(self):
        data = made(2_000_000, 1)
        (self.nginx.files / "twice").write_bytes(data)
        target = self.lab.scratch / "fetched"
        crossed = []
        for version in ("--http2", "--http1.1"):
            with Wan(self.lab) as wan:
                self.lab.run("client", *tls.curl_words("intranet.corp", "twice", "--cacert", self.mint.certificate,
                                                       "--max-time", 60, "--output", target, version))
            self.assertEqual(target.read_bytes(), data)
            crossed.append(wan.received)
        self.assertLess(crossed[1], len(data) // 20, crossed)

    def test_the_certificate_has_what_server_and_table_have_in_common_and_nothing_else(self):
        for options in (("-tls1_3",), ("-tls1_2",)):
            text = self.shown("intranet.corp", *options)
            self.assertIn("DNS:also.corp, DNS:intranet.corp\n", text)
            self.assertIn("TLS Web Server Authentication\n", text)
            self.assertIn("CA:FALSE", text)
            self.assertRegex(text, r"Issuer: CN = Operator's CA\n")
            self.assertRegex(text, r"Subject: *\n")
        self.assertIn("DNS:*.build.corp\n", self.shown("x.build.corp"))

    def test_one_certificate_is_made_for_a_server_until_the_next_reload(self):
        serials = [re.search(r"Serial Number:\s+([0-9a-f:]+)", self.shown("intranet.corp"))[1] for _ in range(2)]
        self.assertEqual(serials[0], serials[1])
        self.datacenter.longhaul("reload")
        self.assertNotIn(re.search(r"Serial Number:\s+([0-9a-f:]+)", self.shown("intranet.corp"))[1], serials)

    def test_flows_say_so_and_clients_resume(self):
        context = ssl.create_default_context(cafile=self.mint.certificate)
        session = None
        for end in ("decrypted, certificate minted", "decrypted, resumed, certificate minted"):
            with context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname="intranet.corp",
                                     session=session) as connection:
                connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
                self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
                self.assertEqual(connection.session_reused, session is not None)
                session = connection.session
                flow, = until(lambda: len(flows := self.datacenter.flows()) == 1 and flows, what="earlier flows have ended")
                self.assertIn(f"for intranet.corp, {end}", flow["module"]["detail"])
                self.assertIn(end, self.datacenter.longhaul("why", flow["id"]))

    def test_a_server_that_does_not_verify_shows_its_own_certificate(self):
        before = self.datacenter.reasons()
        self.assertTrue(self.sees_the_servers_own("strange.corp"))
        self.assertNotEqual(self.s_client("strange.corp", check=False).returncode, 0)
        self.assertEqual(self.given_by_datacenter(before), {"tls_server_refused": 2})

    def test_a_server_for_which_no_certificate_can_be_made_shows_its_own(self):
        before = self.datacenter.reasons()
        for count, name in enumerate(("foreign.corp", "old.corp"), 1):
            self.assertTrue(self.sees_the_servers_own(name))
            self.assertEqual(self.given_by_datacenter(before), {"tls_not_minted": count})
        self.s_client("foreign.corp", trusts=self.authority)
        self.assertTrue(self.sees_the_servers_own("private.corp"))
        self.assertEqual(self.given_by_datacenter(before), {"tls_not_minted": 3, "tls_not_listed": 1})
        self.datacenter.process.lines_with("TLS for foreign.corp not decrypted: the minting CA's name constraints do not permit it")

    def test_no_file_has_the_authoritys_key(self):
        key = self.mint.key.read_text().splitlines()[1].encode()
        context = ssl.create_default_context(cafile=self.mint.certificate)
        with context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname="intranet.corp") as connection:
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: intranet.corp\r\n\r\n")
            self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 404"))
            for site in (self.branch, self.datacenter):
                canaries.assert_absent(self, site, {"the authority's key": key})

    def test_check_names_what_an_authority_lacks(self):
        site = self.datacenter
        self.assertIn("certificates minted by a CA that is valid until", site.longhaul("check", site.file))
        said = site.longhaul("check", site.file)
        self.assertIn("is not allowed to sign for foreign.corp (nameConstraints)", said)
        self.assertNotIn("is not limited to names", said)
        file = site.folder / "changed.toml"
        for old, new, expected in ((self.mint.certificate, self.authority.certificate, "is not the key of"),
                                   (self.mint.certificate, self.at_server["old.corp"][0], "is not the key of")):
            file.write_text(site.file.read_text().replace(str(old), str(new)))
            done = site.longhaul("check", file, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stdout + done.stderr)
        both = site.file.read_text().replace(str(self.mint.certificate), str(self.authority.certificate))
        file.write_text(both.replace(str(self.mint.key), str(self.authority.key)))
        self.assertIn("is not limited to names (nameConstraints", site.longhaul("check", file))
        certificate, key = map(pathlib.Path, self.at_server["private.corp"])
        text = site.file.read_text().replace(str(self.mint.certificate), str(certificate))
        file.write_text(text.replace(str(self.mint.key), str(key)))
        done = site.longhaul("check", file, check=False)
        self.assertIn("is not that of a CA", done.stdout + done.stderr)
