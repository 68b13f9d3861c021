# SPDX-License-Identifier: Apache-2.0
"""The load program (load/) in the nodes of a lab: its servers, its clients, and what they report."""

import json
import subprocess

import lab as labs

PROGRAM = labs.BUILD / "tests" / "bench" / "bench_load"


def settings(values):
    return [f"{name}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
            for name, value in values.items()]


class Server:
    """sink, echo or stall; the ports it listens on are in `ports`."""

    def __init__(self, lab, kind, node="server", **values):
        self.process = lab.start(node, PROGRAM, kind, *settings(values), name=f"load-{kind}")
        labs.until(lambda: "]}" in self.process.log() or not self.process.is_running(), what=f"{kind} listens")
        if not self.process.is_running():
            raise AssertionError(f"{kind}: {self.process.log()}")
        self.ports = json.loads(self.process.log().splitlines()[0])["ports"]
        self.port = self.ports[0]


def run(lab, kind, seconds_at_most, node="client", **values):
    """A client to its end: the lines it printed."""
    printed = lab.run(node, PROGRAM, kind, *settings(values), seconds=seconds_at_most)
    return [json.loads(line) for line in printed.splitlines()]


class Stream:
    """One transfer from the client's connect to the server's last byte; checked byte by byte (by their hash)."""

    def __init__(self, found):
        if not found["intact"]:
            raise AssertionError(f"WRONG BYTES: {found}")
        self.bytes = found["received"]
        self.start_ns, self.last_ns = found["start_ns"], found["last_ns"]
        self.seconds = (self.last_ns - self.start_ns) / 1e9
        self.bits_per_second = 8 * self.bytes / self.seconds
        self.marks_ns = found["mark_ns"]

    def steady_bits_per_second(self):
        """Between 30 % and all of the bytes: what the start cost is not in it."""
        return 8 * 0.7 * self.bytes / ((self.marks_ns[10] - self.marks_ns[3]) / 1e9)


def transfer(lab, to, port, size=0, seconds=60.0, flows=1, node="client"):
    """Streams of `size` bytes each, or of `seconds`. What is under way when the source ends still has to arrive."""
    patience = seconds * 2 + 60
    return [Stream(found) for found in run(lab, "source", patience, node, to=to, port=port, size=size, seconds=seconds,
                                           flows=flows)]


def together(streams):
    """Bytes and seconds from the first connect to the last byte of any."""
    began, ended = min(stream.start_ns for stream in streams), max(stream.last_ns for stream in streams)
    return sum(stream.bytes for stream in streams), (ended - began) / 1e9


class Held:
    """Connections that stay until the block ends (load `hold`)."""

    def __init__(self, lab, node="client", **values):
        self.log_file = lab.scratch / f"{next(lab.counter)}-held.log"
        with open(self.log_file, "wb") as log:
            self.popen = subprocess.Popen(lab.words_in(node, [PROGRAM, "hold", *settings(values)]), stdout=log,
                                          stderr=log, stdin=subprocess.PIPE, start_new_session=True)

    def find(self, key):
        """What it printed under this name so far, or None."""
        text = self.log_file.read_text()
        if self.popen.poll() is not None:
            raise AssertionError(f"held connections ended: {text}")
        for line in text.splitlines():
            if line.startswith("{") and line.endswith("}") and key in (found := json.loads(line)):
                return found[key]
        return None

    def wait(self, key, seconds):
        return labs.until(lambda: self.find(key), seconds, f"'{key}' of the held connections")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.stdin.close()
        try:
            self.popen.wait(20)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(10)
