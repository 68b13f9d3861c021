#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Writes with pysmb: SMB1 and SMB 2, unsigned. It asks for a durable handle with every open, and its call that writes
opens, writes and closes; that it asks for the next block means that the last WRITE was answered."""

import io

from smb import smb_structs
from smb.base import NotConnectedError, SMBTimeout
from smb.SMBConnection import SMBConnection
from smb.smb_structs import OperationFailure

import looking
import writing


class Blocks:
    """The file object that pysmb reads from: a block for each WRITE."""

    def __init__(self, client, first, acked):
        self.client, self.next, self.last, self.acked = client, first, None, acked

    def read(self, most):
        if self.last is None:
            writing.say(opened=True)
        else:
            self.acked(self.last)
        options = self.client.options
        if options.size > most:
            raise ValueError(f"the server takes {most} bytes at most")
        if self.next == options.blocks:
            self.client.call = "close"
            return b""
        self.client.call = "write"
        self.last = self.next
        self.next += 1
        return self.client.block(self.last)


class Pysmb(writing.Client):
    connection = None

    def login(self):
        options = self.options
        smb_structs.SUPPORT_SMB2 = options.dialect != "NT1"
        self.connection = SMBConnection(options.user, options.password, "writer", "LABSERVER", is_direct_tcp=True,
                                        sign_options=SMBConnection.SIGN_NEVER)
        if not self.connection.connect(options.host, 445, timeout=options.timeout):
            raise ConnectionError("login refused")

    def looker(self, what):
        self.login()
        share, name = self.options.share, self.options.name
        if what == "held":
            raise ValueError("pysmb keeps no file open")
        return {"opened": self.read_once, "size": lambda: self.connection.getAttributes(share, name).file_size,
                "names": lambda: [entry.filename for entry in
                                  self.connection.listPath(share, name.rpartition("/")[0])]}[what]

    def read_once(self):
        found = io.BytesIO()
        self.connection.retrieveFileFromOffset(self.options.share, self.options.name, found, 0, looking.BYTES)
        return found.getvalue()

    def write_from(self, first, replace, acked, flushed):
        options = self.options
        try:
            self.made("login")
        except Exception as error:  # a server that is not there is told in many ways
            raise writing.Broken(f"{type(error).__name__}: {error}") from error
        try:
            self.call = "open"
            self.connection.storeFileFromOffset(options.share, options.name, Blocks(self, first, acked),
                                                first * options.size, replace, timeout=options.timeout)
            if options.policy != "close-only":
                self.connection.close()
        except OperationFailure as error:
            # The status is in the messages alone; that of SMB1 is an object.
            statuses = [getattr(message.status, "internal_value", message.status) for message in error.smb_messages]
            failed = [status for status in statuses if status] or [0xC0000001]  # STATUS_UNSUCCESSFUL
            writing.check(failed[-1], f"{self.call}: {str(error).splitlines()[0]}", self.call == "open")
        except (NotConnectedError, SMBTimeout, OSError) as error:
            raise writing.Broken(f"{type(error).__name__}: {error}") from error

    def drop(self):
        try:
            self.connection.sock.close()
        except Exception:  # pylint: disable=broad-except
            pass


if __name__ == "__main__":
    writing.main(Pysmb)
