# SPDX-License-Identifier: Apache-2.0
"""Netflix's bettertls tests programs that verify servers: here the far side. Each of its tests is a server with a chain of
certificates; the far side accepts it if it decrypts the connection, and rejects it if it passes the connection. OpenSSL visits
the same servers directly. The tests of addresses are omitted: no connection without a name is decrypted."""

import collections
import contextlib
import hashlib
import http.client
import json
import pathlib
import random
import ssl
import subprocess
import sys

import tcp
import tls
from lab import SERVER6, Lab, until
from pair import Pair

CONTROL, PORT = 8080, 8443  # bettertls' own
NAMES = ("test.localhost", "localhost")
OPERATOR = "Operator's CA"
# What the far side has found out about a server it remembers by address, so each test has an address of its own.
PREFIXES = {"own certificate": "fd10:2::b:", "minted": "fd10:2::c:"}
NETWORKS = {mode: f"{prefix}0/112" for mode, prefix in PREFIXES.items()}


class Server:
    """bettertls in the server's node, which answers at every address of PREFIXES."""

    def __init__(self, lab, program):
        self.lab = lab
        self.root = lab.scratch / "root.pem"
        exported = lab.scratch / "tests.json"
        subprocess.run([program, "export-tests", "--rootCa", self.root, "--out", exported], check=True, timeout=600)
        self.suites = json.loads(exported.read_text())["suites"]
        pem = self.root.read_text().partition("-----BEGIN PRIVATE KEY")[0]
        self.authority = lab.scratch / "root.crt"
        self.authority.write_text(pem)
        for network in NETWORKS.values():
            lab.run("server", "ip", "-6", "route", "add", "local", network, "dev", "lo")
            lab.run("datacenter", "ip", "-6", "route", "add", network, "via", SERVER6)
        self.process = lab.start("server", program, "server", "--rootCa", self.root)
        until(self.answers, what="bettertls answers")

    def tests(self, limit):
        for name, suite in sorted(self.suites.items(), reverse=True):
            known = [test for test in suite["testCases"] if test["hostname"] in NAMES]
            yield from random.Random(1).sample(known, min(limit, len(known))) if limit else known

    def answers(self):
        try:
            with self.lab.inside("server"):
                connection = http.client.HTTPConnection("127.0.0.1", CONTROL, timeout=tcp.PATIENCE)
                connection.connect()
            connection.close()
            return True
        except OSError:
            return False

    def choose(self, test):
        """What it shows from now on."""
        with self.lab.inside("server"):
            connection = http.client.HTTPConnection("127.0.0.1", CONTROL, timeout=tcp.PATIENCE)
            connection.connect()
        with contextlib.closing(connection):
            connection.request("POST", "/setTest", json.dumps({"suite": test["suite"], "testCase": test["id"]}))
            if (status := connection.getresponse().status) != 200:
                raise AssertionError(f"bettertls answers {status} to test {test['suite']} {test['id']}")


def by_openssl(lab, context, test):
    """Whether libssl accepts it in a program with its usual settings, on the server's own host."""
    try:
        with context.wrap_socket(tcp.connect(lab, "127.0.0.1", PORT, node="server").socket, server_hostname=test["hostname"]):
            return True
    except ssl.SSLCertVerificationError:
        return False


def credulous():
    """A client that takes whatever certificate it gets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


def by_pair(lab, context, test, address, own):
    """Whether the connection is decrypted."""
    with context.wrap_socket(tcp.connect(lab, address, PORT).socket, server_hostname=test["hostname"]) as connection:
        shown = connection.getpeercert(binary_form=True)
        connection.sendall(f"GET /ok HTTP/1.0\r\nHost: {test['hostname']}\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    if not answer.endswith(b"OK"):
        raise AssertionError(f"{test['suite']} {test['id']}: {answer}")
    is_ours = hashlib.sha256(shown).hexdigest() == own or OPERATOR.encode() in shown
    if not is_ours and b"bettertls.com" not in shown:
        raise AssertionError(f"{test['suite']} {test['id']}: a certificate that nobody made")
    return is_ours


def kind_of(test):
    """What bettertls expects: `should` where it only warns."""
    return f"{'should' if test['failureIsWarning'] else 'must'} be {test['expected'].lower()}ed"


def print_table(tests, found):
    kinds = sorted({kind_of(test) for test in tests})
    for suite in dict.fromkeys(test["suite"] for test in tests):
        for kind in kinds:
            of_kind = [test for test in tests if test["suite"] == suite and kind_of(test) == kind]
            counts = collections.Counter(who for test in of_kind for who, accepted in found.items()
                                         if accepted[suite, test["id"]])
            if of_kind:
                print(f"  {suite}, {kind}: {len(of_kind)}; accepted by", ", ".join(f"{who} {counts[who]}" for who in found))


def run(program, limit, into):
    """Prints what was found; whether a server was accepted that must be rejected."""
    with Lab() as lab:
        server = Server(lab, pathlib.Path(program).resolve())
        tests = list(server.tests(limit))
        found = collections.defaultdict(dict)
        authority = tls.Authority(lab.scratch / "ca")
        own = authority.issue(*NAMES)
        fingerprint = tls.fingerprint(own[0]).replace(":", "").lower()
        mint = tls.Authority(lab.scratch / "mint", OPERATOR, "permitted;DNS:localhost")
        tables = [{"addresses": [NETWORKS[mode]], "names": list(NAMES), "ca": str(server.authority),
                   "certificate": str(pair[0]), "key": str(pair[1])} | more
                  for mode, pair, more in (("own certificate", own, {}),
                                           ("minted", (mint.certificate, mint.key), {"mode": "mint"}))]
        both = {"log": {"level": "warn"}, "tls": {"ports": [PORT]}}
        verifying, taking = ssl.create_default_context(cafile=server.authority), credulous()
        with Pair(lab, both=both, datacenter={"tls_server": tables}) as pair:
            for number, test in enumerate(tests, 1):
                server.choose(test)
                found["OpenSSL"][test["suite"], test["id"]] = by_openssl(lab, verifying, test)
                for mode, prefix in PREFIXES.items():
                    found[mode][test["suite"], test["id"]] = by_pair(lab, taking, test, f"{prefix}{number:x}", fingerprint)
                if number % 500 == 0:
                    print(f"{number} of {len(tests)} tests", flush=True)
            print("reasons at the datacenter:", pair.datacenter.reasons())
    if into:
        into.write_text(json.dumps({who: {f"{suite} {number}": is_accepted for (suite, number), is_accepted in of_one.items()}
                                    for who, of_one in found.items()}, indent=1))
    print(f"bettertls: {len(tests)} tests")
    print_table(tests, found)
    wrong = [(who, test) for test in tests for who in PREFIXES if kind_of(test) == "must be rejected"
             and found[who][test["suite"], test["id"]]]
    for who, test in wrong:
        print(f"  WORSE: {who}: {test['suite']} {test['id']} is accepted and must be rejected", file=sys.stderr)
    if not any(found[who].values() for who in PREFIXES) or not all(any(of_one.values()) for of_one in found.values()):
        raise AssertionError("nothing was accepted: nothing was tested")
    return not wrong
