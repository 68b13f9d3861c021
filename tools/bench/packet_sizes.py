# SPDX-License-Identifier: Apache-2.0
"""A test of one packet size, by longhaul-ttcp: `serve` at the server, a sweep of one test from the client."""

import json
import time

from lab import BUILD, SERVER, until
from packet_tests import COLUMNS

PROGRAM = BUILD / "tools" / "ttcp" / "longhaul-ttcp"


class PacketSizes:
    """`measure` does one test, in a process of its own that may be killed."""

    def __init__(self, rig, application):
        self.rig, self.lab, self.packets = rig, rig.lab, application.packets
        self.seed = 0
        self.server = self.lab.start("server", PROGRAM, "serve")
        until(lambda: "ready for sweeps" in self.server.log() or not self.server.is_running(), 30, "longhaul-ttcp serves")
        if not self.server.is_running():
            raise AssertionError(f"longhaul-ttcp ended at its start: {self.server.log().strip()}")

    def measure(self, cell):
        began = time.monotonic()
        file = self.lab.scratch / "packets.json"
        done = self.lab.run("client", PROGRAM, "sweep", SERVER, "--json", file, "--force", "--quiet",
                            *self.packets.words(cell.size, cell.place), seconds=3600, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr.strip() or f"longhaul-ttcp ended with {done.returncode}")
        row = json.loads(file.read_text(encoding="utf-8"))["rows"][0]
        return {"size": row["bytes_received"], "seconds": row["seconds"], "client_seconds": round(time.monotonic() - began, 3),
                "packets": {name: row[name] for name in COLUMNS}}

    def remove(self):
        if self.server.is_running():
            self.server.stop()
        self.lab.processes.remove(self.server)
        self.server.log_file.unlink(missing_ok=True)
