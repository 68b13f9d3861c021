# SPDX-License-Identifier: Apache-2.0
"""Records what the client's network card sees, with tcpdump, between two pings as marks. What it shows is in
timing.py."""

import re

from lab import SERVER, until

CARD = "eth0"
FAST = 155e6  # bits a second above which packets are handed over in heaps: one by one they would cost a core
TAIL = 1 << 17


class CaptureFailed(Exception):
    pass


class Recording:
    """`with Recording(lab, rate) as recording: ...` and then `recording.path`. The marks are set by the block's ends; when
    it ends well, all is in the file."""

    def __init__(self, lab, rate, node="client"):
        self.lab, self.node = lab, node
        self.number = next(lab.counter)
        self.path = lab.scratch / f"capture-{self.number}.pcap"
        self.at_once = ["--immediate-mode"] if rate <= FAST else []
        self.process = None

    def __enter__(self):
        self.process = self.lab.start(self.node, "tcpdump", "-i", CARD, "-n", "-s", "0", "-U", "-B", "65536",
                                      "-Z", "root", "--time-stamp-precision=nano", *self.at_once, "-w", self.path)
        until(self._is_listening, 60, "tcpdump listens")
        self.mark("before")
        return self

    def _is_listening(self):
        if not self.process.is_running():
            raise CaptureFailed(f"tcpdump ended at its start: {self.process.log().strip()}")
        return "listening on" in self.process.log()

    def mark(self, name):
        """One answered ping of a pattern of its own."""
        pattern = f"mark{self.number % 10000:04} {name}".ljust(15, ".").encode()
        for _ in range(30):  # the line may lose it
            done = self.lab.run(self.node, "ping", "-n", "-c", "1", "-W", "2", "-p", pattern.hex(), SERVER, check=False,
                                seconds=10)
            if done.returncode == 0:
                return pattern
        said = " ".join(done.stderr.split())
        raise CaptureFailed(f"no ping was answered {name} the transfer; is the server or the line down?" +
                            (f" ping says: {said}" if said else ""))

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                pattern = self.mark("after")
                until(lambda: self._tail().count(pattern) >= 2, 30, "the last mark is in the capture")  # and its answer
        finally:
            self._stop()
        if kind is None:
            self._check()

    def _tail(self):
        if not self.process.is_running():
            raise CaptureFailed(f"tcpdump ended: {self.process.log().strip()}")
        with open(self.path, "rb") as file:
            file.seek(max(0, self.path.stat().st_size - TAIL))
            return file.read()

    def _stop(self):
        if self.process.is_running():
            self.process.stop()
        if self.process in self.lab.processes:
            self.lab.processes.remove(self.process)

    def _check(self):
        found = re.search(r"(\d+) packets? dropped by kernel", self.process.log())
        self.dropped = int(found[1]) if found else 0

    def remove(self):
        self.path.unlink(missing_ok=True)
        self.process.log_file.unlink(missing_ok=True)
