# SPDX-License-Identifier: Apache-2.0
"""A page of 60 objects in Chromium with a cold cache, until its load event, at 100 ms: over HTTP/1 on six connections, and over TLS
and HTTP/2 on one. On the bare line; through the pair without the module; with it the first visitor, without and with prefetch,
and a later one, who is also compared with a visitor on the server's own LAN: the least that the browser itself needs."""

import base64
import itertools

import conditions
import features
import tcp
import tls
from browser import Browser
from figures import Row, at_most
from lab import SERVER, Lab
from pair import Pair

LINE, ROUND_TRIP_MS = "51.84mbit", 100
OBJECTS = 60
SIZES = (2_000, 5_000, 10_000, 20_000, 40_000, 60_000)  # in turn: 1.4 MB in all
NAME = "intranet.corp"
FRESH = "location /fresh/ { add_header Cache-Control max-age=3600; }"
CLEAR = "  server {{ listen 8080; root {folder}/files; location /fresh/ {{ add_header Cache-Control max-age=3600; }} }}\n}}\n"


class Server(tls.Nginx):
    def __init__(self, lab, pair):
        super().__init__(lab, [(NAME, pair, FRESH)])
        (self.files / "fresh").mkdir()
        self.seeds = itertools.count(1)

    def configuration(self):
        return super().configuration().rstrip().removesuffix("}") + CLEAR.format(folder=self.folder)

    def page(self):
        """A page that nobody has visited yet. Each object is a script that reports itself, and hard to compress."""
        number = next(self.seeds)
        names = [f"{number}-{at}.js" for at in range(OBJECTS)]
        for at, name in enumerate(names):
            noise = base64.b64encode(b"".join(tcp.pieces(SIZES[at % len(SIZES)] * 3 // 4, number * 1000 + at))).decode()
            (self.files / "fresh" / name).write_text(f"(window.got ??= []).push({at});//{noise}")
        scripts = "".join(f'<script src="{name}"></script>' for name in names)
        (self.files / "fresh" / f"{number}.html").write_text(f"<!DOCTYPE html><title>page</title>{scripts}")
        sizes = {name: (self.files / "fresh" / name).stat().st_size for name in names}
        return f"fresh/{number}.html", sizes


def visit(lab, base, page):
    """Seconds to the load event of a browser that has never been there."""
    path, sizes = page
    options = (f"--host-resolver-rules=MAP {NAME} {SERVER}", "--ignore-certificate-errors")
    with Browser(lab, "client", lab.scratch / f"profile-{next(lab.counter)}", options=options) as browser:
        browser.open(f"{base}/{path}")
        browser.until("performance.getEntriesByType('navigation')[0]?.loadEventEnd > 0 && location.href != 'about:blank'")
        got = browser.value("Object.fromEntries(performance.getEntriesByType('resource').map("
                            "e => [e.name.split('/').pop(), e.decodedBodySize]))")
        ran = browser.value("window.got")
        if {name: got.get(name) for name in sizes} != sizes or ran != list(range(OBJECTS)):
            raise AssertionError(f"{path}: {got}, {ran}")
        return browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000


def visits_on_lan(base, times):
    with Lab() as lab:
        server = Server(lab, tls.Authority(lab.scratch / "ca").issue(NAME))
        return [visit(lab, base, server.page()) for _ in range(times)]


def run(bench):
    times = bench.times(5)
    for label, base in (("HTTP/1, 6 connections", f"http://{SERVER}:8080"), ("HTTP/2 over TLS, 1 connection", f"https://{NAME}")):
        if not bench.wants(label):
            continue
        lan = visits_on_lan(base, times)
        with Lab(f"{LINE},{ROUND_TRIP_MS}") as lab:
            authority = tls.Authority(lab.scratch / "ca")
            certificate = authority.issue(NAME)
            server = Server(lab, certificate)
            where = conditions.of_lab(lab)
            bare = [visit(lab, base, server.page()) for _ in range(times)]
            table = [{"addresses": [SERVER], "names": [NAME], "certificate": str(certificate[0]), "key": str(certificate[1]),
                      "ca": str(authority.certificate)}]
            both = {"features": {"http.prefetch": True}, "log": {"level": "warn"}}
            with Pair(lab, both=both, datacenter={"tls_server": table}) as pair:
                pair.branch.set(http=False)
                without = [visit(lab, base, server.page()) for _ in range(times)]
                pair.branch.set(http=True)
                ahead = [visit(lab, base, server.page()) for _ in range(times)]
                pair.branch.set(**{"http.prefetch": False})
                first, later = [], []
                for _ in range(times):
                    page = server.page()
                    first.append(visit(lab, base, page))
                    later.append(visit(lab, base, page))
                note = features.reasons(pair.branch)
        for row in (Row(f"{label}: without the module", "s", without, None, bare, conditions=where),
                    Row(f"{label}: first visitor", "s", first, None, bare, beside_goal=at_most(0.4), note=note, conditions=where),
                    Row(f"{label}: first visitor, with prefetch", "s", ahead, None, bare, beside_goal=at_most(0.4), conditions=where),
                    Row(f"{label}: later visitor", "s", later, None, bare, beside_goal=at_most(0.15), conditions=where),
                    Row(f"{label}: later visitor, beside one on the LAN", "s", later, None, lan, beside_name="LAN", conditions=where)):
            bench.report(row)
