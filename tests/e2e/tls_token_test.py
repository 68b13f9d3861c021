# SPDX-License-Identifier: Apache-2.0
"""TLS of listed servers is decrypted with keys that only a PKCS#11 token has (SoftHSM). Without the token, connections pass
encrypted, and the daemon lives."""

import shutil
import subprocess
import unittest

import tls
import tokens
from lab import SERVER, until
from pair import PROGRAM, PairTest
from reduction_test import Wan
from smb_test import made

NAMES = ("ec.corp", "rsa.corp")


HAS_SOFTHSM = tokens.MODULE.exists() and shutil.which("softhsm2-util")


def issue_rsa(authority, name):
    """(certificate, key) for a host."""
    key, request, certificate = (authority.folder / f"{name}-token{end}" for end in (".key", ".csr", ".crt"))
    for words in (("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request,
                   "-addext", f"subjectAltName=DNS:{name}"),
                  ("x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key,
                   "-CAcreateserial", "-days", 30, "-copy_extensions", "copy", "-out", certificate)):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)
    return certificate, key


@unittest.skipUnless(HAS_SOFTHSM, "SoftHSM is not installed (softhsm2)")
class TlsToken(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        cls.token = tokens.Token(cls.lab.scratch / "token")
        cls.at_server = {name: cls.authority.issue(name) for name in (*NAMES, "minted.corp")}
        cls.mint = tls.Authority(cls.lab.scratch / "mint", "Mint CA", "permitted;DNS:corp")
        cls.at_pair = {"ec.corp": cls.authority.issue("ec.corp"), "rsa.corp": issue_rsa(cls.authority, "rsa.corp")}
        for number, (name, (_, key)) in enumerate(cls.at_pair.items(), 1):
            cls.token.take(key, name, number)
            key.rename(key.with_suffix(".away"))  # nothing has it but the token
        cls.token.take(cls.mint.key, "mint", 3)
        cls.mint.key.unlink()
        cls.nginx = tls.Nginx(cls.lab, [(name, pair, "") for name, pair in cls.at_server.items()])
        cls.datacenter.environment = cls.token.environment
        cls.datacenter.settings["process"]["writable"] = [str(cls.token.tokens)]
        cls.datacenter.settings["tls_server"] = [*(cls.table(name) for name in NAMES), cls.mint_table()]

    @classmethod
    def table(cls, name, **changes):
        return {"addresses": [SERVER], "names": [name], "certificate": str(cls.at_pair[name][0]), "key": cls.token.uri(name),
                "ca": str(cls.authority.certificate)} | changes

    @classmethod
    def mint_table(cls):
        return {"addresses": [SERVER], "names": ["minted.corp"], "mode": "mint", "certificate": str(cls.mint.certificate),
                "key": cls.token.uri("mint"), "ca": str(cls.authority.certificate)}

    def fetch(self, name, path, *options):
        target = self.lab.scratch / "fetched"
        target.unlink(missing_ok=True)
        self.lab.run("client", *tls.curl_words(name, path, "--cacert", self.authority.certificate, "--max-time", 60,
                                               "--output", target, *options))
        return target.read_bytes()

    def shown_by(self, name):
        """Whose certificate a client sees."""
        said = self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", name,
                            "-CAfile", self.authority.certificate, "-verify_return_error")
        shown = self.lab.run("client", "openssl", "x509", "-noout", "-fingerprint", "-sha256", text=said).split("=")[1].strip()
        return {tls.fingerprint(self.at_pair[name][0]): "pair", tls.fingerprint(self.at_server[name][0]): "server"}[shown]

    def is_decrypted_again(self):
        self.datacenter.longhaul("reload")
        return self.shown_by("rsa.corp") == "pair"

    def given(self, since):
        return {code: count - since.get(code, 0) for code, count in self.datacenter.reasons().items()
                if count != since.get(code, 0) and code != "optimised"}

    def use(self, *tables):
        self.datacenter.settings["tls_server"] = list(tables)
        self.datacenter.write()
        self.datacenter.longhaul("reload")

    def check(self):
        """What `longhaul check` says of the keys."""
        self.datacenter.write()
        words = ["env", *(f"{name}={value}" for name, value in self.token.environment.items())]
        done = self.lab.run("datacenter", *words, PROGRAM, "check", self.datacenter.file, check=False)
        return " ".join((done.stdout + done.stderr).split())

    def test_a_key_of_a_token_decrypts_and_what_crosses_again_is_small(self):
        for seed, name in enumerate(NAMES, 1):
            data = made(1_000_000, seed)
            (self.nginx.files / "twice").write_bytes(data)
            for options in (("--tlsv1.3", "--http2"), ("--tls-max", "1.2", "--http1.1")):
                crossed = []
                for _ in range(2):
                    with Wan(self.lab) as wan:
                        self.assertEqual(self.fetch(name, "twice", *options), data)
                    crossed.append(wan.received)
                self.assertLess(crossed[1], len(data) // 20, (name, options, crossed))
            self.assertEqual(self.shown_by(name), "pair")
        self.assertIn("Keys of servers (tls):", said := self.check())
        self.assertIn("key in pkcs11:token=test;object=ec.corp;type=private", said)
        self.assertNotIn("not available", said)

    def test_an_authority_whose_key_a_token_has_makes_certificates(self):
        data = made(300_000, 9)
        (self.nginx.files / "minted").write_bytes(data)
        target = self.lab.scratch / "fetched-minted"
        for options in (("--tlsv1.3",), ("--tls-max", "1.2")):
            self.lab.run("client", *tls.curl_words("minted.corp", "minted", "--cacert", self.mint.certificate, "--max-time", 60,
                                                   "--output", target, *options))
            self.assertEqual(target.read_bytes(), data)
        said = self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", "minted.corp",
                            "-CAfile", self.mint.certificate, "-verify_return_error")
        self.assertIn("issuer=CN = Mint CA", said)

    def test_what_is_wrong_with_a_key_is_said_and_the_server_is_reached_without_it(self):
        data = made(300_000, 5)
        (self.nginx.files / "plain").write_bytes(data)
        cases = (("the token has no such private key", {"key": self.token.uri("nowhere")}),
                 ("no token is present that it describes", {"key": self.token.uri("ec.corp", "nowhere")}),
                 ("it is not the key of the certificate", {"key": self.token.uri("rsa.corp")}))
        try:
            for why, change in cases:
                with self.subTest(why):
                    before = self.datacenter.reasons()
                    self.use(self.table("ec.corp", **change))
                    # SoftHSM rewrites a token's file at each login, here the daemon's; a program that reads it at that moment sees no token.
                    until(lambda wanted=why: f"is not available: {wanted}" in self.check(), what=why)
                    self.assertEqual(self.fetch("ec.corp", "plain"), data)
                    self.assertEqual(self.shown_by("ec.corp"), "server")
                    self.assertEqual(self.given(before), {"tls_key_unavailable": 2})
                    self.datacenter.process.lines_with("server_key_unavailable", why)
            self.token.set_pin(tokens.WRONG_PIN)
            # With all tables: a daemon reads later only from folders that it had files in at its start.
            self.datacenter.settings["tls_server"] = [*(self.table(name) for name in NAMES), self.mint_table()]
            self.datacenter.stop()
            self.datacenter.start()
            self.pair.wait_link()
            self.assertEqual(self.shown_by("ec.corp"), "server")
            self.datacenter.process.lines_with("the token refuses the PIN")
        finally:
            self.token.set_pin(tokens.PIN)
        self.use(*(self.table(name) for name in NAMES), self.mint_table())
        self.assertEqual(self.shown_by("ec.corp"), "pair")

    def test_a_file_that_says_the_pin_itself_is_refused_without_repeating_it(self):
        kept = self.datacenter.settings["tls_server"]
        try:
            uri = f"pkcs11:token=test;object=ec.corp?pin-value={tokens.PIN}"
            self.datacenter.settings["tls_server"] = [self.table("ec.corp", key=uri)]
            said = self.check()
            self.assertIn("contains the PIN itself, which must not be in this file", said)
            self.assertNotIn(tokens.PIN, said)
        finally:
            self.datacenter.settings["tls_server"] = kept
            self.datacenter.write()

    def test_a_token_that_vanishes_leaves_connections_encrypted_until_it_is_back(self):
        data = made(300_000, 7)
        (self.nginx.files / "plain").write_bytes(data)
        self.assertEqual(self.shown_by("rsa.corp"), "pair")
        self.token.vanish()
        try:
            before = self.datacenter.reasons()
            self.assertEqual(self.fetch("rsa.corp", "plain"), data)
            self.assertEqual(self.shown_by("rsa.corp"), "server")
            self.assertEqual(self.given(before), {"tls_key_unavailable": 2})
        finally:
            self.token.tokens.rmdir()
            (self.token.folder / "elsewhere").rename(self.token.tokens)
        # The library sees a token that has returned once nothing uses it any more, perhaps only after the first reload.
        until(self.is_decrypted_again, 90, what="the token is used again")
        self.assertEqual(self.fetch("rsa.corp", "plain"), data)


class OneWay(PairTest):
    """Tokens with one of the two mechanisms for RSA-PSS. Many hardware security modules accept only digests, which they pad
    themselves; older ones accept only data that is padded already."""
    line = ("51.84mbit,20",)
    mechanisms = ()

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        token = tokens.Token(cls.lab.scratch / "token", mechanisms=cls.mechanisms)
        at_server, cls.at_pair = cls.authority.issue("rsa.corp"), issue_rsa(cls.authority, "rsa.corp")
        token.take(cls.at_pair[1], "rsa.corp", 1)
        cls.at_pair[1].unlink()
        cls.nginx = tls.Nginx(cls.lab, [("rsa.corp", at_server, "")])
        cls.datacenter.environment = token.environment
        cls.datacenter.settings["process"]["writable"] = [str(token.tokens)]
        cls.datacenter.settings["tls_server"] = [{
            "addresses": [SERVER], "names": ["rsa.corp"], "certificate": str(cls.at_pair[0]), "key": token.uri("rsa.corp"),
            "ca": str(cls.authority.certificate)}]

    def check_all_signatures(self):
        data = made(100_000, 1)
        (self.nginx.files / "page").write_bytes(data)
        target = self.lab.scratch / "fetched"
        for options in (("--tlsv1.3",), ("--tls-max", "1.2")):
            target.unlink(missing_ok=True)
            self.lab.run("client", *tls.curl_words("rsa.corp", "page", "--cacert", self.authority.certificate, "--max-time", 60,
                                                   "--output", target, *options))
            self.assertEqual(target.read_bytes(), data)
        for version, kind in (("-tls1_3", "rsa_pss_rsae_"), ("-tls1_2", "rsa_pss_rsae_"), ("-tls1_2", "rsa_pkcs1_")):
            for digest in ("sha256", "sha384", "sha512"):
                with self.subTest(version=version, kind=kind, digest=digest):
                    said = self.lab.run("client", "openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", "rsa.corp", version,
                                        "-sigalgs", f"{kind}{digest}:ecdsa_secp256r1_sha256", "-CAfile", self.authority.certificate,
                                        "-verify_return_error")
                    self.assertEqual([line.partition(": ")[2] for line in said.splitlines() if line.startswith("Peer sign")],
                                     [digest.upper(), "RSA-PSS" if "pss" in kind else "RSA"])
        self.assertEqual(set(self.datacenter.reasons()) - {"optimised"}, set())


@unittest.skipUnless(HAS_SOFTHSM, "SoftHSM is not installed (softhsm2)")
class TokenWithoutRawRsa(OneWay):
    mechanisms = ("CKM_RSA_PKCS", "CKM_RSA_PKCS_PSS")

    def test_it_pads_itself(self):
        self.check_all_signatures()


@unittest.skipUnless(HAS_SOFTHSM, "SoftHSM is not installed (softhsm2)")
class TokenWithoutPss(OneWay):
    mechanisms = ("CKM_RSA_PKCS", "CKM_RSA_X_509")

    def test_openssl_pads_for_it(self):
        self.check_all_signatures()


@unittest.skipUnless(HAS_SOFTHSM, "SoftHSM is not installed (softhsm2)")
class TokenThatHashes(OneWay):
    mechanisms = tuple(f"CKM_SHA{size}_RSA_PKCS{end}" for size in (256, 384, 512) for end in ("", "_PSS"))

    def test_it_gets_whole_texts(self):
        self.check_all_signatures()
