# SPDX-License-Identifier: Apache-2.0
"""A stream that lasts some seconds, by one transport or another: TCP by iperf3, SCTP by longhaul-sctp. What arrives is
counted at the receiver, from the first word to the end of the time, slow start included."""

import json
import os
import time

import usage
from lab import BUILD, CLIENT, SERVER, until
from scenario import PARALLEL

SCTP_PROGRAM = BUILD / "tools" / "sctp" / "longhaul-sctp"
SCTP_BUFFER = 16_000_000  # where the scenario says nothing


class Stream:
    """Has its servers in the lab; `measure` runs one stream, in a process of its own that may be killed."""

    def __init__(self, rig, application):
        self.rig, self.lab, self.application = rig, rig.lab, application
        self.seed = 0
        self.buffers = rig.place.buffers or SCTP_BUFFER
        self.servers = []
        self._start("listening", "iperf3", "--server", "--forceflush")
        if "sctp" in rig.needs:
            self._start("listening", SCTP_PROGRAM, "server", SERVER, *self._sctp_words())

    def _start(self, said, *words):
        process = self.lab.start("server", *words)
        self.servers.append(process)
        until(lambda: said in process.log() or not process.is_running(), 30, f"{process.name} listens")
        if not process.is_running():
            raise AssertionError(f"{process.name} ended at its start: {process.log().strip()}")

    def _sctp_words(self):
        return ["--mtu", self.rig.place.mtu, "--buffer", self.buffers]

    def measure(self, cell):
        features = cell.features
        began, idle = time.monotonic(), usage.machine_ticks()
        found = self._sctp() if features == "sctp" else self._tcp(PARALLEL if features == "parallel" else 1)
        idle, every = (after - before for after, before in zip(usage.machine_ticks(), idle))
        busy = (1 - idle / every) * len(os.sched_getaffinity(0)) if every else 0.0
        return found | {"busy_cores": round(busy, 3), "client_seconds": round(time.monotonic() - began, 3)}

    def _tcp(self, connections):
        words = ["iperf3", "--client", SERVER, "--json", "--time", f"{self.application.seconds:g}"]
        if connections > 1:
            words += ["--parallel", connections]
        done = self.lab.run("client", *words, seconds=self.application.seconds + 120, check=False)
        try:
            said = json.loads(done.stdout)
        except ValueError:
            said = {"error": done.stderr.strip() or done.stdout.strip() or "it said nothing"}
        if "error" in said:
            raise AssertionError(f"iperf3: {said['error']}")
        end = said["end"]
        used = end["cpu_utilization_percent"]
        return {"size": end["sum_received"]["bytes"], "seconds": end["sum_received"]["seconds"],
                "cpu_share": {"client": used["host_total"] / 100, "server": used["remote_total"] / 100},
                "again": end["sum_sent"].get("retransmits"), "segment_bytes": said["start"].get("tcp_mss_default")}

    def _sctp(self):
        done = self.lab.run("client", SCTP_PROGRAM, "client", SERVER, "--from", CLIENT, "--seconds",
                            f"{self.application.seconds:g}", *self._sctp_words(), seconds=self.application.seconds + 120)
        said = json.loads(done)
        return {"size": said["received"]["bytes"], "seconds": said["received"]["seconds"],
                "cpu_share": {"client": said["sent"]["cpu_seconds"] / said["sent"]["seconds"],
                              "server": said["received"]["cpu_seconds"] / said["received"]["seconds"]},
                "again": said["chunks_again"], "segment_bytes": said["message_bytes"]}

    def remove(self):
        for process in self.servers:
            if process.is_running():
                process.stop()
            if process in self.lab.processes:
                self.lab.processes.remove(process)
