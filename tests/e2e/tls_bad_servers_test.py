# SPDX-License-Identifier: Apache-2.0
"""Servers whose certificates are wrong in the ways that badssl.com and bettertls try: each is listed, and none is decrypted. The
client shakes hands with the server itself and sees what it would see without the pair."""

import hashlib
import itertools
import ssl
import subprocess

import tcp
import tls
from lab import SERVER
from pair import PairTest

NO_DEFAULTS = "[req]\ndistinguished_name = none\n[none]\n"
AUTHORITY = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign")
# The same certificate for a name of each table: the operator's own, and made by the operator's authority.
TABLES = ("own.corp", "mint.corp")
WEAK = "ssl_ciphers DEFAULT:@SECLEVEL=0;"  # so that nginx shows it at all


class Maker:
    """Certificates with exactly the extensions that are asked for."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.configuration = folder / "configuration"
        self.configuration.write_text(NO_DEFAULTS)
        self.numbers = itertools.count(1)

    def make(self, name, extensions, issuer=None, *, days=30, since="-0d", digest="sha256", key="ec:P-256"):
        """(file with the chain, file with the key); `issuer` is such a pair."""
        stem = self.folder / f"{next(self.numbers)}"
        certificate, key_file = stem.with_suffix(".crt"), stem.with_suffix(".key")
        kind, size = key.split(":")
        of_key = ("ec", "-pkeyopt", f"ec_paramgen_curve:{size}") if kind == "ec" else (f"rsa:{size}",)
        words = ["faketime", "-f", since, "openssl", "req", "-new", "-x509", "-config", self.configuration, "-newkey", *of_key,
                 "-nodes", "-subj", f"/CN={name}" if name else "/", "-days", days, f"-{digest}", "-keyout", key_file,
                 "-out", certificate]
        for extension in extensions:
            words += ["-addext", extension]
        if issuer:
            words += ["-CA", issuer[0], "-CAkey", issuer[1]]
        subprocess.run(list(map(str, words)), check=True, capture_output=True, timeout=60)
        if issuer:
            certificate.write_text(certificate.read_text() + issuer[0].read_text())
        return certificate, key_file

    def authority(self, name, issuer=None, *more, extensions=AUTHORITY, **how):
        return self.make(name, (*extensions, *more), issuer, **how)

    def leaf(self, label, issuer, *more, names=None, subject=None, **how):
        """For `label` in each table, or for `names` (none: no subjectAltName)."""
        names = [f"{label}.{table}" for table in TABLES] if names is None else names
        san = (("critical," if subject == "" else "") + ",".join(f"DNS:{name}" for name in names),) if names else ()
        return self.make(f"{label}.own.corp" if subject is None else subject,
                         (*(f"subjectAltName={each}" for each in san), *more), issuer, **how)


class BadServers(PairTest):
    @classmethod
    def prepare(cls):
        maker = Maker(cls.lab.scratch / "certificates")
        cls.root = maker.authority("Root")
        unknown = maker.authority("Unknown root")
        middle = maker.authority("Middle", cls.root)
        bad = {
            "expired": maker.leaf("expired", cls.root, since="-60d"),
            "early": maker.leaf("early", cls.root, since="+60d"),
            "otherhost": maker.leaf("otherhost", cls.root, names=["elsewhere.own.corp", "elsewhere.mint.corp"]),
            "parent": maker.leaf("a.parent", cls.root, names=["parent.own.corp", "parent.mint.corp"]),
            "selfsigned": maker.leaf("selfsigned", None),
            "unknownroot": maker.leaf("unknownroot", unknown),
            "expiredmiddle": maker.leaf("expiredmiddle", maker.authority("Expired", cls.root, since="-60d")),
            "incomplete": maker.leaf("incomplete", middle),
            "signedbyleaf": maker.leaf("signedbyleaf", maker.make("leaf", ("basicConstraints=critical,CA:FALSE",), cls.root)),
            "noconstraints": maker.leaf("noconstraints", maker.make("leaf", (), cls.root)),
            "maynotsign": maker.leaf("maynotsign", maker.authority(
                "No signer", cls.root, extensions=(AUTHORITY[0], "keyUsage=critical,digitalSignature"))),
            "toolong": maker.leaf("toolong", maker.authority("Below", maker.authority(
                "No more", cls.root, extensions=("basicConstraints=critical,CA:TRUE,pathlen:0", AUTHORITY[1])))),
            "notpermitted": maker.leaf("notpermitted", maker.authority(
                "Limited", cls.root, "nameConstraints=critical,permitted;DNS:else.where")),
            "excluded": maker.leaf("excluded", maker.authority(
                "Limited, too", cls.root, "nameConstraints=critical,excluded;DNS:corp")),
            "forclients": maker.leaf("forclients", cls.root, "extendedKeyUsage=clientAuth"),
            "cafornone": maker.leaf("cafornone", maker.authority("For mail", cls.root, "extendedKeyUsage=emailProtection")),
            "sha1": maker.leaf("sha1", cls.root, digest="sha1"),
            "sha1middle": maker.leaf("sha1middle", maker.authority("SHA-1", cls.root, digest="sha1")),
            "weakkey": maker.leaf("weakkey", cls.root, key="rsa:1024"),
        }
        bad["incomplete"][0].write_text(bad["incomplete"][0].read_text().partition("-----END CERTIFICATE-----\n")[0]
                                        + "-----END CERTIFICATE-----\n")
        # OpenSSL accepts these, and browsers do not.
        unclear = {
            "commonname": maker.leaf("commonname", cls.root, names=[]),
            "partial": maker.leaf("partial", cls.root, names=["part*.own.corp", "part*.mint.corp"]),
        }
        good = {
            "good": maker.leaf("good", cls.root),
            "middle": maker.leaf("middle", middle),
            "nosubject": maker.leaf("nosubject", cls.root, subject=""),
            "permitted": maker.leaf("permitted", maker.authority(
                "Limited as well", cls.root, "nameConstraints=critical,permitted;DNS:corp")),
        }
        cls.bad, cls.unclear, cls.good = bad, unclear, good
        cls.at_server = bad | unclear | good
        cls.nginx = tls.Nginx(cls.lab, [
            (" ".join(f"{'a.' * (label == 'parent')}{label}.{table}" for table in TABLES), pair,
             WEAK if label.startswith(("sha1", "weakkey")) else "") for label, pair in cls.at_server.items()])
        (cls.nginx.files / "page").write_text("the page\n")
        own = maker.leaf("pair", cls.root, names=["*.own.corp", "a.parent.own.corp"])
        mint = maker.authority("Operator's CA", None, "nameConstraints=critical,permitted;DNS:mint.corp")
        cls.trusted = {"own.corp": cls.root[0], "mint.corp": mint[0]}
        table = {"addresses": [SERVER], "ca": str(cls.root[0])}
        cls.datacenter.settings["tls_server"] = [
            table | {"names": ["*.own.corp"], "certificate": str(own[0]), "key": str(own[1])},
            table | {"names": ["*.mint.corp"], "mode": "mint", "certificate": str(mint[0]), "key": str(mint[1])}]

    def visit(self, name, trusts=None):
        """The certificate that a client gets, which verifies it or takes any, and the page."""
        context = ssl.create_default_context(cafile=trusts)
        if not trusts:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with context.wrap_socket(tcp.connect(self.lab, SERVER, 443).socket, server_hostname=name) as connection:
            connection.sendall(f"GET /page HTTP/1.0\r\nHost: {name}\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            self.assertTrue(answer.endswith(b"the page\n"), answer)
            return hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()

    def shown(self, certificate):
        return tls.fingerprint(certificate).replace(":", "").lower()

    def given(self, since):
        return {code: count - since.get(code, 0) for code, count in self.datacenter.reasons().items()
                if count != since.get(code, 0) and code != "optimised"}

    def test_a_server_that_does_not_verify_is_the_clients_own_affair(self):
        for label, table in itertools.product(self.bad, TABLES):
            name = f"{'a.' * (label == 'parent')}{label}.{table}"
            with self.subTest(name=name):
                before = self.datacenter.reasons()
                with self.assertRaises(ssl.SSLCertVerificationError):
                    self.visit(name, trusts=self.root[0])
                # Twice: while the refusal is remembered, too.
                for _ in range(2):
                    self.assertEqual(self.visit(name), self.shown(self.bad[label][0]))
                self.assertEqual(self.given(before), {"tls_server_refused": 3})

    def test_names_that_browsers_do_not_accept_are_not_made_better(self):
        for label, table, reason in (("commonname", "own.corp", "tls_server_refused"), ("partial", "own.corp", "tls_server_refused"),
                                     ("partial", "mint.corp", "tls_not_minted")):
            with self.subTest(label=label, table=table):
                before = self.datacenter.reasons()
                for _ in range(2):
                    self.assertEqual(self.visit(f"{label}.{table}"), self.shown(self.unclear[label][0]))
                self.assertEqual(self.given(before), {reason: 2})

    def test_what_is_unusual_and_right_is_decrypted(self):
        for label, table in itertools.product(self.good, TABLES):
            with self.subTest(label=label, table=table):
                before = self.datacenter.reasons()
                self.assertNotEqual(self.visit(f"{label}.{table}", trusts=self.trusted[table]),
                                    self.shown(self.good[label][0]))
                self.assertEqual(self.given(before), {})
