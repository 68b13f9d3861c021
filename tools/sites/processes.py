# SPDX-License-Identifier: Apache-2.0
"""Waiting for processes and ending them, by pidfd: a pid may have been reused."""

import contextlib
import os
import select
import signal
import time

from failure import Failure


def started(pid):
    """When the process was started, in clock ticks since boot: tells it from a later one of its number (proc(5), stat)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def wait_for_end(pidfd, seconds=None):
    return bool(select.select([pidfd], [], [], seconds)[0])


def end_processes(pids, patience_seconds=2.0):
    """Asks, waits, then kills. Returns when all are gone."""
    fds = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            fds.append(os.pidfd_open(pid))
    for number, patience in ((signal.SIGTERM, patience_seconds), (signal.SIGKILL, 5.0)):
        for fd in fds:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, number)
        deadline = time.monotonic() + patience
        fds = [fd for fd in fds if not wait_for_end(fd, max(0.0, deadline - time.monotonic()))]
        if not fds:
            return
    raise Failure(f"{len(fds)} processes of the lab could not be ended")
