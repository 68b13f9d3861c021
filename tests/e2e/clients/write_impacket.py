#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes with impacket: every dialect, unsigned, with an oplock, a lease or a durable handle where it is asked to. The
requests on files are those of ../smb1_client.py and ../smb2_client.py."""

import contextlib
import os
import pathlib
import sys
import types

sys.path.insert(1, os.fspath(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

import looking
import smb_client
import writing

HERE = types.SimpleNamespace(inside=lambda node: contextlib.nullcontext())  # runs in its node


class Impacket(writing.Client):
    connection = file = None
    lacks = False  # the oplock or lease that it asks for

    def login(self):
        smb_client.FOREVER = self.options.timeout
        try:
            self.connection = smb_client.connect(HERE, self, self.options.dialect, host=self.options.host,
                                                 share=self.options.share)
        except Exception as error:  # impacket has many for a server that is not there
            raise writing.Broken(f"{type(error).__name__}: {error}") from error

    def log_in_with(self, connection):
        connection.login(self.options.user, self.options.password)

    def ask(self, what, call, *arguments, opening=False, **named):
        try:
            return call(*arguments, **named)
        except smb_client.Broken as error:
            raise writing.Broken(str(error)) from error
        except smb_client.SmbError as error:
            return writing.check(error.status, f"{what}: {error}", opening)

    def asked(self):
        return {"none": {}, "oplock": {"oplock": smb_client.BATCH},
                "lease": {"lease": (os.urandom(16), smb_client.LEASE_ALL)},
                "durable": {"oplock": smb_client.BATCH, "durable": True}}[self.options.ask]

    def open(self, replace):
        self.file = self.ask("open", self.connection.open, self.options.name, smb_client.READ | smb_client.WRITE,
                             smb_client.OVERWRITE_IF if replace else smb_client.OPEN_IF, opening=True, **self.asked())

    def write(self, offset, block):
        self.ask("write", self.file.write, offset, block)

    def flush(self):
        self.ask("flush", self.file.flush)

    def close(self):
        self.ask("close", self.file.close)

    def rename(self, new):
        self.ask("rename", self.connection.rename, self.options.name, new, opening=True)

    def logout(self):
        self.connection.close()

    def looker(self, what):
        self.login()
        name = self.options.name
        if what == "held":
            self.file = self.connection.open(name, **self.asked())
            return looking.walk(self.read_held)
        if what == "names":
            return lambda: self.connection.listing(name.rpartition("/")[0])
        return self.read_once if what == "opened" else self.size

    def read_held(self, offset, size):
        """With an oplock or a lease of its own the client acknowledges each break and opens the file again for a new one: at once,
        or when the client that caused the break has closed the file."""
        while self.connection.breaks:
            with contextlib.suppress(smb_client.SmbError):  # one that takes no answer
                self.connection.acknowledge(self.connection.breaks.pop(0))
            self.lacks = True
        if self.lacks:
            self.file.close()
            self.file = self.connection.open(self.options.name, **self.asked())
            self.lacks = self.file.oplock == smb_client.NO_OPLOCK
        return self.file.read(offset, size)

    def read_once(self):
        with self.connection.open(self.options.name) as file:
            return file.read(0, looking.BYTES)

    def size(self):
        with self.connection.open(self.options.name, smb_client.ATTRIBUTES) as file:
            return file.size()

    def drop(self):
        if self.connection:
            self.connection.close()


if __name__ == "__main__":
    writing.main(Impacket)
