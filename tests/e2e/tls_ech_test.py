# SPDX-License-Identifier: Apache-2.0
"""Encrypted Client Hello (RFC 9849): the name that the far side sees is not the name that the client wants. Go's client and server
use it; Chromium sends random values instead (GREASE), which can be told from ECH only by the keys that the server
publishes in its handshake."""

import collections
import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import unittest

import browser
import tls
from lab import SERVER, until
from pair import PairTest
from relay import Relay
from tls_clients_test import GO, PROGRAMS

PORT = 8443  # of the relay before the server
ECH = 0xFE0D


def has_go_with_ech():
    if not GO:
        return False
    said = subprocess.run([GO, "env", "GOVERSION"], capture_output=True, text=True, timeout=60,
                          env={"HOME": "/nonexistent"} | os.environ | {"GOTOOLCHAIN": "local"}).stdout
    version = re.match(r"go(\d+)\.(\d+)", said)
    return bool(version) and (int(version[1]), int(version[2])) >= (1, 24)


def extensions(hello):
    """Of a ClientHello in one record (RFC 8446, section 4.1.2), by type."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from(">H", hello, at)[0]
    at += 1 + hello[at]
    end = at + 2 + struct.unpack_from(">H", hello, at)[0]
    at += 2
    found = {}
    while at < end:
        kind, size = struct.unpack_from(">HH", hello, at)
        found[kind] = hello[at + 4:at + 4 + size]
        at += 4 + size
    return found


def hello_in(passed):
    return passed.to_server[:5 + struct.unpack_from(">H", passed.to_server, 3)[0]]


def name_in(hello):
    return extensions(hello)[0][5:].decode()


class EncryptedClientHello(PairTest):
    line = ("51.84mbit,20",)
    both = {"tls": {"ports": [443, PORT]}}

    @classmethod
    def prepare(cls):
        # The system's authorities, which no server here has, are read on the loop at each reload: slow on a busy machine.
        cls.datacenter.environment = {"SSL_CERT_FILE": "/dev/null"}
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        mint = tls.Authority(cls.lab.scratch / "mint", "Operator's CA", "permitted;DNS:corp")
        cls.trusted = cls.lab.scratch / "trusted.crt"
        cls.trusted.write_text(cls.authority.certificate.read_text() + mint.certificate.read_text())
        cls.at_server = {name: cls.authority.issue(name) for name in ("listed.corp", "minted.corp", "other.corp")}
        at_pair = cls.authority.issue("listed.corp")
        for key in (at_pair[1], mint.key):
            shutil.chown(key, "longhaul")  # which reads it again at a reload
        table = {"addresses": [SERVER], "ca": str(cls.authority.certificate)}
        cls.datacenter.settings["tls_server"] = [
            table | {"names": ["listed.corp"], "certificate": str(at_pair[0]), "key": str(at_pair[1])},
            table | {"names": ["minted.corp"], "mode": "mint", "certificate": str(mint.certificate), "key": str(mint.key)}]

    def since(self, before):
        return {code: count - before.get(code, 0) for code, count in self.datacenter.reasons().items()
                if count != before.get(code, 0) and code != "optimised"}

    @unittest.skipUnless(has_go_with_ech(), "there is no Go 1.24 or later")
    def test_what_is_encrypted_for_another_server_is_never_decrypted(self):
        program = self.lab.scratch / "ech"
        subprocess.run([GO, "build", "-o", program, PROGRAMS / "ech.go"], check=True, timeout=600,
                       env={"HOME": str(self.lab.scratch)} | os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"})
        # "serve" tells clients that use another key about its own, "hide" does not.
        for number, (outer, inner, mode) in enumerate((("other.corp", "listed.corp", "serve"), ("other.corp", "minted.corp", "hide"),
                                                       ("listed.corp", "other.corp", "hide"), ("minted.corp", "other.corp", "hide"),
                                                       ("listed.corp", "other.corp", "serve"), ("minted.corp", "other.corp", "serve"),
                                                       ("listed.corp", "minted.corp", "serve"))):
            is_told = outer != "other.corp" and mode == "serve"
            self.datacenter.longhaul("reload")  # whatever a client has refused is forgotten
            port = 9443 + number
            known = self.lab.scratch / f"configuration-{number}"
            pairs = [file for name in (outer, inner) for file in self.at_server[name]]
            self.lab.start("server", program, mode, port, outer, known, *pairs)
            until(known.exists, what="Go's server listens")
            with self.subTest(outer=outer, inner=inner, mode=mode), Relay(self.lab, "server", ("127.0.0.1", port), PORT) as at_server, \
                    Relay(self.lab, "client", (SERVER, PORT), 443) as at_client:

                def visit(known=known, inner=inner):
                    return json.loads(self.lab.run("client", program, "visit", inner, "127.0.0.1", 443, self.trusted, known))

                if outer != "other.corp" and not is_told:
                    # The far side answers for the outer name. The client does not go on, and says so.
                    before = self.datacenter.reasons()
                    said = visit()
                    self.assertEqual((said["rejected"], said["page"]), (True, ""), said)
                    self.assertNotEqual(at_client.passed().to_server, at_server.passed().to_server)
                    self.assertEqual(self.since(before), {})
                for _ in range(2):
                    before = self.datacenter.reasons()
                    said = visit()
                    self.assertEqual((said["accepted"], said["page"]), (True, f"the page of {inner}\n"), said)
                    of_client = at_client.passed()
                    of_server = [at_server.passed() for _ in range(1 + is_told)]  # once the far side's own
                    self.assertIn(of_client, of_server)
                    self.assertEqual(name_in(of_client.to_server), outer)
                    self.assertIn(ECH, extensions(of_client.to_server))
                    why = "tls_not_listed" if outer == "other.corp" else "tls_ech" if is_told else "tls_client_refused"
                    self.assertEqual(self.since(before), {why: 1})

    @unittest.skipUnless(browser.PROGRAM, "Chromium is not installed")
    def test_a_browser_that_only_pretends_is_decrypted(self):
        nginx = tls.Nginx(self.lab, [(name, pair, "") for name, pair in self.at_server.items()])
        (nginx.files / "page.html").write_text("<!DOCTYPE html><title>page</title>the page")
        with contextlib.ExitStack() as relays:
            at_server = relays.enter_context(Relay(self.lab, "server", ("127.0.0.1", 443), PORT))
            at_client = {name: relays.enter_context(Relay(self.lab, "client", (SERVER, PORT))) for name in self.at_server}
            given = {}
            targets = ",".join(f"MAP {name} 127.0.0.1:{relay.port}" for name, relay in at_client.items())
            options = (f"--host-resolver-rules={targets}", "--ignore-certificate-errors")
            with browser.Browser(self.lab, "client", self.lab.scratch / "profile", options=options) as chromium:
                for name in at_client:
                    before = self.datacenter.reasons()
                    chromium.open(f"https://{name}/page.html")
                    chromium.until(f"location.host == '{name}' && document.body?.innerText == 'the page'")
                    given[name] = set(self.since(before))
            of_server = collections.defaultdict(set)
            for name, relay in at_client.items():
                with self.subTest(name=name):
                    of_client = hello_in(relay.passed())
                    self.assertEqual(name_in(of_client), name)
                    self.assertIn(ECH, extensions(of_client))
                    while not of_server[name]:
                        hello = hello_in(at_server.passed())
                        of_server[name_in(hello)].add(hello)
                    self.assertEqual(given[name], {"tls_not_listed"} if name == "other.corp" else set())
                    if name == "other.corp":
                        while of_client not in of_server[name]:  # a browser may open several connections
                            of_server[name].add(hello_in(at_server.passed()))
                    else:
                        # The far side pretends, too, with values of its own.
                        self.assertNotIn(extensions(of_client)[ECH], [extensions(hello)[ECH] for hello in of_server[name]])
