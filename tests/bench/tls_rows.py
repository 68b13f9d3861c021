# SPDX-License-Identifier: Apache-2.0
"""HTTPS of a listed server, nginx to curl and to Python's TLS: the first byte of a new connection at 250 ms, full and resumed; text
sent again; 10 MB on lines with delay and loss, beside HTTP; CPU for decrypted and for plain bytes. The HTTP cache is off, except
for rows that say so and for files that are fetched for the first time with it, as most of them are."""

import contextlib
import itertools
import ssl
import time

import conditions
import tcp
import tls
import web
from figures import SHARE, Row, at_least, at_most
from lab import SERVER, Lab
from pair import Pair
from reduction_test import text
from transfers import on_line
from usage import Cpu

NAME = "intranet.corp"
FILE = 10_000_000
LINES = {"OC-1": "51.84mbit", "T1": "1.544mbit"}
PATIENCE = 900
FRESH = "location /small { add_header Cache-Control max-age=3600; }"


class Setup:
    """nginx with HTTP and HTTPS, and the pair that may decrypt it, in a lab."""

    def __init__(self, lab):
        self.lab = lab
        self.authority = tls.Authority(lab.scratch / "ca")
        certificate = self.authority.issue(NAME)
        self.nginx = tls.Nginx(lab, [(NAME, certificate, FRESH)])
        self.seeds = itertools.count(1)
        listed = {"addresses": [SERVER], "names": [NAME], "certificate": str(certificate[0]), "key": str(certificate[1]),
                  "ca": str(self.authority.certificate)}
        self.pair = Pair(lab, both={"log": {"level": "warn"}}, datacenter={"tls_server": [listed]})

    @contextlib.contextmanager
    def running(self):
        with self.pair as pair:
            pair.branch.set(http=False)
            yield pair

    def made(self, size):
        seed = next(self.seeds)
        return f"file-{seed}", self.nginx.put(f"file-{seed}", size, seed)

    def fetch(self, path, sha256, scheme="https"):
        """Seconds that curl took, and the bytes on the line."""
        if self.lab.line:
            self.lab.stats(reset=True)
        target = self.lab.scratch / "fetched"
        words = (tls.curl_words(NAME, path, "--cacert", self.authority.certificate) if scheme == "https"
                 else ("curl", "--silent", "--show-error", "--noproxy", "*", f"http://{SERVER}/{path}"))
        began = time.monotonic()
        self.lab.run("client", *words, "--max-time", PATIENCE, "--output", target, seconds=PATIENCE + 5)
        took = time.monotonic() - began
        if web.sha256_of(target) != sha256:
            raise AssertionError(f"wrong bytes of {path}")
        target.unlink()
        return took, on_line(self.lab.stats()) if self.lab.line else 0

    def first_byte(self, context, session=None, path="small"):
        """Seconds from the client's connect to the first byte of the answer, and the session for the next."""
        with self.lab.inside("client"):
            began = time.monotonic()
            plain = tcp.socket.create_connection((SERVER, 443), timeout=tcp.PATIENCE)
        with context.wrap_socket(plain, server_hostname=NAME, session=session) as connection:
            connection.sendall(f"GET /{path} HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
            answer = connection.recv(65536)
            took = time.monotonic() - began
            if session and not connection.session_reused:
                raise AssertionError("not resumed")
            while piece := connection.recv(65536):
                answer += piece
            if not answer.endswith(b"small page"):
                raise AssertionError(f"{len(answer)} bytes")
            return took, connection.session

    def first_bytes(self, times, cached_by=None):
        """Of full handshakes, and of those that resume the one before; from the cache of a site, if one is given."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if cached_by:
            cached_by.set(http=True)
            self.first_byte(context)
        full = [self.first_byte(context)[0] for _ in range(times)]
        session = self.first_byte(context, path="first")[1]  # from the server: with the cache it may be over before its ticket
        resumed = []
        for _ in range(times):
            took, session = self.first_byte(context, session)
            resumed.append(took)
        return full, resumed


def run(bench):
    if bench.wants("first byte"):
        first_byte(bench)
    if bench.wants("again"):
        again(bench)
    for (line, rate), round_trip, loss in itertools.product(LINES.items(), (30, 100, 250), (0, 0.01, 0.05)):
        label = f"file {line} {round_trip} ms {100 * loss:g} %"
        if bench.wants(label) and (not bench.quick or (line, round_trip) == ("OC-1", 100)):
            one_line(bench, label, f"{rate},{round_trip},{loss}")
    if bench.wants("cpu"):
        cpu(bench)


def first_byte(bench):
    times = bench.times(11, quick=3)
    with Lab("51.84mbit,250") as lab:
        setup = Setup(lab)
        for name in "small", "first":
            (setup.nginx.files / name).write_bytes(b"a small page")
        where = conditions.of_lab(lab)
        bare = setup.first_bytes(times)
        with setup.running() as pair:
            paired = setup.first_bytes(times)
            cached = setup.first_bytes(times, pair.branch)
    for label, goal, with_pair, without in (
            ("full", 0.52, paired[0], bare[0]), ("resumed", 0.26, paired[1], bare[1]),
            ("full, from the cache", 0.26, cached[0], bare[0]), ("resumed, from the cache", 0.05, cached[1], bare[1])):
        bench.report(Row(f"OC-1 250 ms: first byte, TLS 1.3, {label}", "s", with_pair, at_most(goal), without, conditions=where))


def again(bench):
    size = 5_000_000 if bench.quick else 50_000_000
    with Lab("51.84mbit,100") as lab:
        setup = Setup(lab)
        where = conditions.of_lab(lab)
        first, second = [], []
        with setup.running() as pair:
            for seed in range(bench.times(3, quick=1)):
                (setup.nginx.files / "text").write_bytes(text(size, seed))
                digest = web.sha256_of(setup.nginx.files / "text")
                for crossed in (first, second):
                    carried = setup.fetch("text", digest)[1]
                    pair.wait_flows(0)
                    crossed.append(carried / size)
    bench.report(Row(f"OC-1 100 ms: {size // 1_000_000} MB of text over HTTPS again, bytes on the line", SHARE, second,
                     at_most(0.005), first, "first time", conditions=where))


def one_line(bench, label, line):
    times = bench.times(3, quick=1)
    with Lab(line) as lab:
        setup = Setup(lab)
        where = conditions.of_lab(lab)
        bare = [setup.fetch(*setup.made(FILE))[0] for _ in range(times)]
        with setup.running() as pair:
            setup.fetch(*setup.made(100_000))  # the link has carried something
            plain = [setup.fetch(*setup.made(FILE), "http")[0] for _ in range(times)]
            paired = [setup.fetch(*setup.made(FILE))[0] for _ in range(times)]
            pair.branch.set(http=True)
            cold = {scheme: [setup.fetch(*setup.made(FILE), scheme)[0] for _ in range(times)] for scheme in ("http", "https")}

    def row(what, taken, beside, name):
        speed, other = ([8 * FILE / seconds / 1e6 for seconds in found] for found in (taken, beside))
        bench.report(Row(f"{label}: 10 MB over {what}", "Mbit/s", speed, None, other, name, at_least(0.98), conditions=where))

    stream = "a plain stream"  # HTTP through the pair without the module
    row("HTTPS", paired, bare, "bare")
    row("HTTPS", paired, plain, stream)
    row("HTTPS, cold cache", cold["https"], plain, stream)
    row("HTTP, cold cache", cold["http"], plain, stream)
    row("HTTP, cold cache", cold["http"], bare, "bare HTTPS")


def cpu(bench):
    size = 200_000_000 if bench.quick else 1_000_000_000
    with Lab("1gbit,1") as lab:
        setup = Setup(lab)
        where = conditions.of_lab(lab)
        file = setup.made(size)
        with setup.running() as pair:
            pids = [site.process.pid for site in pair.sites]
            for reduced in (False, True):
                pair.branch.set(compression=reduced, dedup_memory=reduced, dedup_disk=False)
                cost = {"http": [], "https": []}
                for scheme, _ in itertools.product(cost, range(bench.times(3, quick=1))):
                    with Cpu(*pids) as used:
                        setup.fetch(*file, scheme)
                    cost[scheme].append(sum(used.per_gb(pid, size) for pid in pids))
                more = [one - other for one, other in zip(cost["https"], cost["http"])]
                how = "reduced" if reduced else "not reduced"
                bench.report(Row(f"1 Gbit/s 1 ms, {how}: CPU seconds per GB decrypted, both proxies", "s/GB", cost["https"],
                                 None, cost["http"], "plain", conditions=where))
                bench.report(Row(f"1 Gbit/s 1 ms, {how}: of these, for TLS", "s/GB", more, at_most(3), conditions=where))
