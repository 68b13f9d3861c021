# SPDX-License-Identifier: Apache-2.0
"""A stream that lasts some seconds, by one transport or another: TCP by iperf3, SCTP by longhaul-sctp, and both as Linux
has them by iperf3 between two emulated machines. What arrives is counted at the receiver, from the first word to the end
of the time, slow start included."""

import json
import os
import time

import usage
from lab import BUILD, CLIENT, SERVER, until
from scenario import IN_GUESTS, PARALLEL

SCTP_PROGRAM = BUILD / "tools" / "sctp" / "longhaul-sctp"
BUFFER = 16_000_000  # of SCTP's sockets and in guests, where the scenario says nothing


def iperf3_report(printed, complaint=""):
    """What iperf3 said; fails with its own sentence where it could not do it."""
    try:
        said = json.loads(printed)
    except ValueError:
        said = {"error": complaint.strip() or printed.strip() or "it printed nothing"}
    if "error" in said:
        raise AssertionError(f"iperf3: {said['error']}")
    return said


def received(said):
    end = said["end"]
    return {"size": end["sum_received"]["bytes"], "seconds": end["sum_received"]["seconds"],
            "again": end["sum_sent"].get("retransmits"), "segment_bytes": said["start"].get("tcp_mss_default")}


class Stream:
    """Has its servers in the lab; `measure` runs one stream, in a process of its own that may be killed."""

    def __init__(self, rig, application):
        self.rig, self.lab, self.application = rig, rig.lab, application
        self.seed = 0
        self.buffers = rig.place.buffers or BUFFER
        self.servers = []
        self._start("listening", "iperf3", "--server", "--forceflush")
        if "sctp" in rig.needs:
            self._start("listening", SCTP_PROGRAM, "server", SERVER, *self._sctp_words())
        if rig.server_guest:
            self._prepare_guests()

    def _start(self, said, *words):
        process = self.lab.start("server", *words)
        self.servers.append(process)
        until(lambda: said in process.log() or not process.is_running(), 30, f"{process.name} listens")
        if not process.is_running():
            raise AssertionError(f"{process.name} ended at its start: {process.log().strip()}")

    def _prepare_guests(self):
        size = self.buffers
        settings = [f"net.core.rmem_max={size}", f"net.core.wmem_max={size}", "net.ipv4.tcp_congestion_control=cubic",
                    f"net.ipv4.tcp_rmem=4096 131072 {size}", f"net.ipv4.tcp_wmem=4096 16384 {size}",
                    # An association's buffers are what they are at its start.
                    f"net.sctp.sctp_rmem=4096 {size} {size}", f"net.sctp.sctp_wmem=4096 {size} {size}"]
        for guest in (self.rig.guest, self.rig.server_guest):
            guest.run("modprobe sctp && sysctl -qw " + " ".join(f"'{setting}'" for setting in settings))
        self.rig.server_guest.run("pgrep iperf3 >/dev/null || iperf3 --server --daemon; "
                                  "for i in $(seq 50); do ss -tlnH sport = 5201 | grep -q . && exit 0; sleep 0.1; done; exit 1")

    def _sctp_words(self):
        return ["--mtu", self.rig.place.mtu, "--buffer", self.buffers]

    def measure(self, cell):
        features = cell.features
        began, idle = time.monotonic(), usage.machine_ticks()
        if features in IN_GUESTS:
            found = self._in_guests("--sctp" if features == "guest-sctp" else "")
        else:
            found = self._sctp() if features == "sctp" else self._tcp(PARALLEL if features == "parallel" else 1)
        idle, every = (after - before for after, before in zip(usage.machine_ticks(), idle))
        busy = (1 - idle / every) * len(os.sched_getaffinity(0)) if every else 0.0
        return found | {"busy_cores": round(busy, 3), "client_seconds": round(time.monotonic() - began, 3)}

    def _tcp(self, connections):
        words = ["iperf3", "--client", SERVER, "--json", "--time", f"{self.application.seconds:g}"]
        if connections > 1:
            words += ["--parallel", connections]
        done = self.lab.run("client", *words, seconds=self.application.seconds + 120, check=False)
        said = iperf3_report(done.stdout, done.stderr)
        used = said["end"]["cpu_utilization_percent"]
        return received(said) | {"cpu_share": {"client": used["host_total"] / 100, "server": used["remote_total"] / 100}}

    def _in_guests(self, option):
        _, printed = self.rig.guest.run(
            f"iperf3 --client {self.rig.server_guest.address} --json --time {self.application.seconds:g} {option}",
            seconds=self.application.seconds + 120, check=False)
        return received(iperf3_report(printed))

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
