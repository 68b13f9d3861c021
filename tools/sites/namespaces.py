# SPDX-License-Identifier: Apache-2.0
"""Network namespaces by their files: /run/netns/NAME of those that have a name, /proc/PID/ns/net of a process."""

import contextlib
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def identity(path):
    """Device and inode of the namespace to which the file refers: equal for two files of the same one."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def inside(path):
    """In the block, this thread and the programs that it starts are in the namespace. Sockets made there stay in it."""
    with open(path, "rb") as namespace, inside_open(namespace):
        yield


@contextlib.contextmanager
def inside_open(namespace):
    """The same for an open file."""
    with open("/proc/thread-self/ns/net", "rb") as home:
        _enter(namespace)
        try:
            yield
        finally:
            _enter(home)


def new():
    """An open file of a new namespace, which exists until the file is closed and no process is in it."""
    with open("/proc/thread-self/ns/net", "rb") as home:
        if LIBC.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            return open("/proc/thread-self/ns/net", "rb")
        finally:
            _enter(home)


def _enter(file):
    if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
