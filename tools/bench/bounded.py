# SPDX-License-Identifier: Apache-2.0
"""Does a piece of work in a process of its own, which is ended when it takes too long: no third-party client can
hold a run up."""

import ctypes
import os
import pickle
import select
import signal
import time


PR_SET_PDEATHSIG = 1


class TooLong(Exception):
    pass


class WorkFailed(Exception):
    """What the work raised, in words."""


def call(work, seconds, meanwhile=lambda: None):
    """What work() returns. It, and all that it started, is killed when it is not done in time or this process gives up
    waiting. `meanwhile` is called a few times a second."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(work, writing, parent)
    os.close(writing)
    ended = False
    try:
        deadline, said = time.monotonic() + seconds, b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TooLong
            if select.select([reading], [], [], min(0.25, left))[0]:
                piece = os.read(reading, 1 << 16)
                if not piece:
                    break
                said += piece
            meanwhile()
        ended = True
    finally:
        os.close(reading)
        if not ended:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:  # not its own group yet
                os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not said:
        raise WorkFailed("the client's process ended without a message")
    kind, value = pickle.loads(said)
    if kind == "failed":
        raise WorkFailed(value)
    return value


def _child(work, writing, parent):
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after kill -9 of a run nothing goes on
        if os.getppid() != parent:
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            said = ("done", work())
        except Exception as error:  # pylint: disable=broad-except
            said = ("failed", f"{type(error).__name__}: {error}")
        with open(writing, "wb") as file:
            file.write(pickle.dumps(said))
    finally:
        os._exit(0)
