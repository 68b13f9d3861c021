# SPDX-License-Identifier: Apache-2.0
"""Two lanes of a race: the same sites, servers and line twice, bare and with the pair. Both run a workload at the same
time, each over an emulated line of its own; what it is and how it is shown are in steps.py and screen.py."""

import contextlib
import json
import re
import socket
import threading
import time

import smb
import web
from lab import Lab
from pair import Pair

DIRECTIONS = ("a_to_b", "b_to_a")  # branch to datacenter, and back
SAMPLE_SECONDS = 0.1
QUIET_BYTES, QUIET_SECONDS, QUIET_PATIENCE = 5_000, 0.3, 3.0


class Lane:
    """One way over the line: `bare` or `pair`."""

    def __init__(self, way, line, stack, needs):
        self.way = way
        self.lab = stack.enter_context(Lab(line, prefix="demo"))
        self.nginx = web.Nginx(self.lab) if "http" in needs else None
        self.smbd = smb.Smbd(self.lab) if "smb" in needs else None
        # The tests let an unknown system call kill the daemon; the demo runs what users run.
        keys = {"smb_server": self.smbd.keys()} if self.smbd else None
        self.pair = stack.enter_context(Pair(self.lab, both={"log": {"level": "info"}, "process": None},
                                             datacenter=keys)) if way == "pair" else None

    def ask_emulator(self, command):
        """Directly, since it is asked ten times a second."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(f"/run/longhaul-lab/{self.lab.name}/wan.sock")
            sock.sendall(command.encode() + b"\n")
            answer = b""
            while piece := sock.recv(65536):
                answer += piece
        return json.loads(answer)

    def wan_bytes(self):
        """IP bytes that have left the line since the step began."""
        counted = self.ask_emulator("stats")
        return sum(counted[direction]["ip_bytes_out"] for direction in DIRECTIONS)

    def wait_for_quiet(self):
        """Until the line carries nothing but keep-alives, so that each step is counted whole and alone."""
        deadline = time.monotonic() + QUIET_PATIENCE
        before = None
        while time.monotonic() < deadline:
            now = self.wan_bytes()
            if before is not None and now - before < QUIET_BYTES:
                return
            before = now
            time.sleep(QUIET_SECONDS)


class Runner:
    """A workload in its lane, in a thread of its own. `series` are samples of (seconds, arrived, WAN bytes)."""

    def __init__(self, lane, work, bound):
        self.lane, self.work, self.bound = lane, work, bound
        self.series = [(0.0, 0, 0)]
        self.moved = self.counted = self.error = None
        self.ended = threading.Event()  # the workload; the thread goes on until the line is quiet
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self, began):
        self.began = began
        self.lane.ask_emulator("stats reset")
        self.thread.start()

    def _run(self):
        try:
            self.moved = self.work.run(self.bound)
            self.ran_seconds = time.monotonic() - self.began
            self.ended.set()
            self.lane.wait_for_quiet()
            self.counted = self.lane.ask_emulator("stats")
        except Exception as error:  # pylint: disable=broad-except
            self.error = error  # raised again by the main thread
        finally:
            self.ended.set()

    def sample(self):
        """Called by the main thread."""
        if not self.ended.is_set():
            with contextlib.suppress(OSError):  # the emulator is gone: the thread finds out, too
                self.series.append((time.monotonic() - self.began, self.work.arrived, self.lane.wan_bytes()))

    def result(self):
        to_server, to_client = (self.counted[direction]["ip_bytes_out"] for direction in DIRECTIONS)
        moved = self.moved
        seconds = moved.seconds or self.ran_seconds
        series = [sample for sample in self.series if sample[0] < seconds]
        series.append((seconds, self.work.arrived if not moved.sha256 else self.work.size, to_server + to_client))
        return {"seconds": moved.seconds, "ran_seconds": seconds, "cut": moved.cut, "right": moved.right,
                "failure": moved.failure, "bytes_compared": moved.compared, "sha256": moved.sha256, "parts": moved.parts,
                "wan_to_server": to_server, "wan_to_client": to_client,
                "emulator_late_p99_ms": max(self.counted[direction]["lateness_us"]["p99"] or 0
                                            for direction in DIRECTIONS) / 1000,
                "series": [[round(time_, 3), arrived, wan] for time_, arrived, wan in series]}


def race(lanes, works, bound, show):
    """Runs a workload in each lane at the same time and gives their results; `show(runners)` is called meanwhile."""
    for work in works:
        work.prepare()
    for lane in lanes:
        lane.wait_for_quiet()
    runners = [Runner(lane, work, bound) for lane, work in zip(lanes, works)]
    began = time.monotonic()
    for runner in runners:
        runner.start(began)
    while any(runner.thread.is_alive() for runner in runners):
        for runner in runners:
            runner.sample()
        show(runners)
        time.sleep(SAMPLE_SECONDS)
    for runner in runners:
        if runner.error:
            raise runner.error
    return [runner.result() for runner in runners]


# What a reader of the figures has to know.


def carrier_of(lane):
    """What carried the flows between the proxies, in words."""
    if lane.pair.branch.link()["carrier"] == "udp":
        return "the link over UDP, its rate measured"
    shown = lane.lab.run("branch", "ss", "-tinH", "dport", "=", ":7600", check=False).stdout
    found = re.search(r"^\s+(?:ts |sack |ecn |ecnseen )*(\w+)\b", shown, re.MULTILINE)
    return f"the link over TCP with {found[1] if found else 'unknown congestion control'}"


def flows_of(lane):
    """How many flows got which reason (as `longhaul why` explains it)."""
    counts = lane.pair.branch.status()["flows"]["by_reason"]
    return ", ".join(f"{number} {code}" for code, number in counts.items() if number)


def conditions_of(lane):
    nodes = lane.lab.status()["nodes"]
    return {"congestion_control": nodes["client"]["congestion_control"], "rmem": nodes["server"]["tcp_rmem"][2],
            "wmem": nodes["server"]["tcp_wmem"][2], "proxy_buffer": nodes["branch"]["tcp_rmem"][2]}
