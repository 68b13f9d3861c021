# SPDX-License-Identifier: Apache-2.0
"""What processes cost: CPU time and memory, from the kernel's books. Softirq work that the kernel does while a
process runs is booked to that process, packet handling of its own sockets included."""

import pathlib
import re
import time

PIECE = 1_000_000_000  # "per GB": 10^9 bytes, as on a line


def cpu_seconds(pid):
    """User and system time of all its threads, those that have ended included."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of another process: clock_getcpuclockid(3)


class Cpu:
    """`with Cpu(pid, pid) as used: ...` and then used.seconds[pid] and used.busy, the share of the whole machine
    that was busy with anything."""

    def __init__(self, *pids):
        self.pids = pids

    def __enter__(self):
        self._machine = machine_ticks()
        self._before = {pid: cpu_seconds(pid) for pid in self.pids}
        self._began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.wall = time.monotonic() - self._began
        self.seconds = {pid: cpu_seconds(pid) - before for pid, before in self._before.items()}
        idle, every = (after - before for after, before in zip(machine_ticks(), self._machine))
        self.busy = 1 - idle / every if every else 0.0

    def per_gb(self, pid, size):
        return self.seconds[pid] / size * PIECE


def machine_ticks():
    """Idle and all, of all cores."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def memory(pid):
    """Bytes: rss, pss (shared pages counted in part), anonymous (what it has for itself)."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {name: int(re.search(rf"^{key}:\s*(\d+) kB", text, re.M)[1]) << 10
            for name, key in (("rss", "Rss"), ("pss", "Pss"), ("anonymous", "Anonymous"))}


def forget_peak(pid):
    """Restarts the measurement of peak_bytes."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(pid):
    """The most memory that was resident since forget_peak."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmHWM:\s*(\d+) kB", text, re.M)[1]) << 10
