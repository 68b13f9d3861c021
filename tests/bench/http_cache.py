# SPDX-License-Identifier: Apache-2.0
"""10 MB of incompressible bytes over HTTP, nginx to curl: on the bare line; through the pair without the module; with it the
first time, again while fresh, and again when the server has to be asked. Beside them the time in a LAN without a line."""

import itertools

import conditions
import features
import web
from figures import SHARE, Row, at_most
from lab import Lab
from pair import Pair
from transfers import on_line

SIZE = 10_000_000
LINES = {"OC-1": "51.84mbit", "T1": "1.544mbit"}
ROUND_TRIPS_MS = (0, 30, 100, 250)
FRESH = ("  server {{ listen 80 backlog=4096; listen [::]:80 backlog=4096; root {folder}/files;\n"
         "    location /fresh/ {{ add_header Cache-Control max-age=3600; }} }}\n}}\n")
PATIENCE = 600


class Server(web.Nginx):
    def __init__(self, lab):
        super().__init__(lab)
        (self.files / "fresh").mkdir()
        self.seeds = itertools.count(1)

    def configuration(self):
        return (web.CONFIGURATION.split("  server {{")[0] + FRESH).format(folder=self.folder)

    def made(self, folder=""):
        """A file that nobody has asked for yet: its path and SHA-256."""
        seed = next(self.seeds)
        path = f"{folder}file-{seed}"
        return path, self.put(path, SIZE, seed)


def timed(lab, path, sha256):
    """Seconds, and the bytes on the line."""
    if lab.line:
        lab.stats(reset=True)
    fetched = web.fetch(lab, path, seconds=PATIENCE)
    if (fetched.status, fetched.sha256) != (200, sha256):
        raise AssertionError(f"{path}: {fetched}")
    return fetched.seconds, on_line(lab.stats()) if lab.line else 0


def run(bench):
    with Lab() as lab:
        server = Server(lab)
        in_lan = [timed(lab, *server.made())[0] for _ in range(bench.times(3))]
    for line, rate in LINES.items():
        for round_trip in ROUND_TRIPS_MS:
            label = f"{line} {round_trip} ms"
            if (line == "OC-1" or round_trip == 100) and bench.wants(label):
                one_line(bench, label, f"{rate},{round_trip}", in_lan)


def one_line(bench, label, line, in_lan):
    times = bench.times(3)
    with Lab(line) as lab:
        server = Server(lab)
        where = conditions.of_lab(lab)
        bare = [timed(lab, *server.made())[0] for _ in range(times)]
        first, fresh, asked, bytes_fresh, bytes_asked = [], [], [], [], []
        with Pair(lab, both={"log": {"level": "warn"}}) as pair:
            pair.branch.set(http=False)
            without = [timed(lab, *server.made())[0] for _ in range(times)]
            pair.branch.set(http=True)
            for _ in range(times):
                for folder, again, carried in (("fresh/", fresh, bytes_fresh), ("", asked, bytes_asked)):
                    file = server.made(folder)
                    first.append(timed(lab, *file)[0])
                    pair.wait_flows(0)
                    seconds, carries = timed(lab, *file)
                    again.append(seconds)
                    carried.append(carries / SIZE)
            note = features.reasons(pair.branch)
    for row in (
        Row(f"{label}: first time", "s", first, None, without, "without the module", at_most(1 / 0.98), conditions=where),
        Row(f"{label}: first time, bare beside", "s", first, None, bare, beside_goal=at_most(1 / 0.98), conditions=where),
        Row(f"{label}: again, fresh", "s", fresh, None, in_lan, "in the LAN", at_most(1.1), note, where),
        Row(f"{label}: again, fresh: bytes on the line", SHARE, bytes_fresh, at_most(0.005), conditions=where),
        Row(f"{label}: again, asked about", "s", asked, None, bare, conditions=where),
        Row(f"{label}: again, asked about: bytes on the line", SHARE, bytes_asked, at_most(0.005), conditions=where)):
        bench.report(row)
