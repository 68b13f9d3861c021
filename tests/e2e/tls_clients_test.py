# SPDX-License-Identifier: Apache-2.0
"""The TLS and HTTP clients of Go, Java and Node, through a pair that decrypts: first visit, resumption, HTTP/2, a large upload."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import tcp
import tls
from lab import SERVER
from pair import PairTest

PROGRAMS = pathlib.Path(__file__).with_name("tls_clients")
GO = shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/go/bin")
JAVA = shutil.which("java") if shutil.which("javac") else None
NODE = shutil.which("node")


class TlsClients(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        at_server, at_pair = (cls.authority.issue("intranet.corp") for _ in range(2))
        cls.nginx = tls.Nginx(cls.lab, [("intranet.corp", at_server, "")])
        cls.page, cls.upload = (b"".join(tcp.pieces(*each)) for each in ((200_000, 1), (12_000_000, 2)))
        (cls.nginx.files / "page").write_bytes(cls.page)
        (cls.lab.scratch / "upload").write_bytes(cls.upload)
        cls.datacenter.settings["tls_server"] = [
            {"addresses": [SERVER], "names": ["intranet.corp"], "certificate": str(at_pair[0]), "key": str(at_pair[1]),
             "ca": str(cls.authority.certificate)}]

    def assert_visits(self, *program, uploaded):
        before = self.datacenter.reasons()
        said = self.lab.run("client", *program, "intranet.corp", SERVER, self.authority.certificate, self.lab.scratch / "upload")
        visits = [json.loads(line) for line in said.splitlines()]
        self.assertEqual([(visit["protocol"], visit["step"], visit["resumed"]) for visit in visits],
                         [(protocol, step, step != "first") for protocol in ("HTTP/1.1", "HTTP/2.0")
                          for step in ("first", "again", "upload")])
        for visit in visits:
            if visit["step"] == "upload":
                self.assertEqual(visit["status"], 201)
            else:
                self.assertEqual((visit["status"], visit["bytes"], visit["sha256"]),
                                 (200, len(self.page), hashlib.sha256(self.page).hexdigest()))
        for name in uploaded:
            self.assertEqual((self.nginx.files / name).read_bytes(), self.upload)
        given = {code for code, count in self.datacenter.reasons().items() if count != before.get(code, 0)}
        self.assertEqual(given - {"optimised"}, set(), "all of them were decrypted")

    @unittest.skipUnless(GO, "there is no Go (tools/setup --long installs it)")
    def test_go_visits_resumes_and_uploads(self):
        program = self.lab.scratch / "visit"
        subprocess.run([GO, "build", "-o", program, PROGRAMS / "visit.go"], check=True, timeout=600,
                       env={"HOME": str(self.lab.scratch)} | os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"})
        self.assert_visits(program, uploaded=("by-go-false", "by-go-true"))

    @unittest.skipUnless(JAVA, "there is no Java (tools/setup --long installs it)")
    def test_java_visits_resumes_and_uploads(self):
        self.assert_visits(JAVA, PROGRAMS / "Visit.java", uploaded=("by-java-HTTP_1_1", "by-java-HTTP_2"))

    @unittest.skipUnless(NODE, "there is no Node (tools/setup --long installs it)")
    def test_node_visits_resumes_and_uploads(self):
        self.assert_visits(NODE, PROGRAMS / "visit.mjs", uploaded=("by-node-1", "by-node-2"))
