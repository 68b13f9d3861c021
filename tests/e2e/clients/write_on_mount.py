#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes to a file of a mounted share, as a program does that knows nothing of SMB: run by the tests' guest on a mount
of Linux's own client, which reconnects by itself. `--name` is the path of the file."""

import errno
import os

import looking
import writing

BROKEN = {errno.EIO, errno.EHOSTDOWN, errno.EAGAIN, errno.ECONNABORTED, errno.ENOTCONN, errno.EBADF, errno.ETIMEDOUT,
          errno.ESTALE, errno.ENOENT, errno.EINTR}


class Mounted(writing.Client):
    file = -1

    def ask(self, what, call, *arguments):
        try:
            return call(*arguments)
        except OSError as error:
            # `continue` opens the file again after these, as a shell script that tries again does.
            if self.options.policy == "continue" and error.errno in BROKEN and what == "open":
                raise writing.Broken(f"{what}: {error}") from error
            raise

    def login(self):
        """The mount is there."""

    def open(self, replace):
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else 0)
        self.file = self.ask("open", os.open, self.options.name, flags, 0o644)

    def write(self, offset, block):
        if self.ask("write", os.pwrite, self.file, block, offset) != len(block):
            raise OSError("short write")

    def flush(self):
        self.ask("flush", os.fsync, self.file)

    def close(self):
        file, self.file = self.file, -1
        self.ask("close", os.close, file)

    def looker(self, what):
        name = self.options.name
        if what == "held":
            self.file = os.open(name, os.O_RDONLY)
            return looking.walk(lambda offset, size: os.pread(self.file, size, offset))
        return {"opened": self.read_once, "size": lambda: os.stat(name).st_size,
                "names": lambda: os.listdir(os.path.dirname(name))}[what]

    def drop(self):
        if self.file >= 0:
            self.close()

    def read_once(self):
        with open(self.options.name, "rb", buffering=0) as file:
            return file.read(looking.BYTES)


if __name__ == "__main__":
    writing.main(Mounted)
