#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Writes with smbprotocol: SMB 2.1 to 3.1.1, with an oplock, a lease or a durable handle where it is asked to. With
3.1.1 its requests are signed, whatever the server wants."""

import os
import threading
import uuid

from smbprotocol.connection import Connection, Dialects
from smbprotocol.create_contexts import (CreateContextName, LeaseState, SMB2CreateContextRequest,
                                         SMB2CreateDurableHandleRequest, SMB2CreateDurableHandleRequestV2,
                                         SMB2CreateRequestLease)
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import (CreateDisposition, CreateOptions, FileAttributes, FilePipePrinterAccessMask,
                              ImpersonationLevel, Open, RequestedOplockLevel, ShareAccess)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

import looking
import writing

DIALECTS = {"2.1": Dialects.SMB_2_1_0, "3.0": Dialects.SMB_3_0_0, "3.1.1": Dialects.SMB_3_1_1}


def context(name, data):
    made = SMB2CreateContextRequest()
    made["buffer_name"] = name
    made["buffer_data"] = data
    return made


class Smbprotocol(writing.Client):
    connection = tree = file = None

    def ask(self, what, call, opening=False):
        """The library waits for ever: a connection that does not answer is closed after the time that was given."""
        timer = threading.Timer(self.options.timeout, self.drop)
        timer.start()
        try:
            return call()
        except SMBResponseException as error:
            return writing.check(error.status, f"{what}: {error}", opening)
        except (SMBException, OSError) as error:
            raise writing.Broken(f"{what}: {error}") from error
        finally:
            timer.cancel()

    def login(self):
        options = self.options
        # 3.1.1 demands a signed TREE_CONNECT, and the library signs all requests or none.
        self.connection = Connection(uuid.uuid4(), options.host, 445, require_signing=options.dialect == "3.1.1")

        def enter():
            self.connection.connect(DIALECTS[options.dialect], timeout=options.timeout)
            session = Session(self.connection, options.user, options.password, require_encryption=False,
                              auth_protocol="ntlm")
            session.connect()
            self.tree = TreeConnect(session, rf"\\{options.host}\{options.share}")
            self.tree.connect()

        try:
            self.ask("login", enter)
        except Exception as error:
            raise writing.Broken(f"{type(error).__name__}: {error}") from error

    def open(self, replace):
        self.file = Open(self.tree, self.options.name)
        contexts, oplock = [], RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE
        if self.options.ask == "lease":
            lease = SMB2CreateRequestLease()
            lease["lease_key"] = os.urandom(16)
            for state in (LeaseState.SMB2_LEASE_READ_CACHING, LeaseState.SMB2_LEASE_WRITE_CACHING,
                          LeaseState.SMB2_LEASE_HANDLE_CACHING):
                lease["lease_state"].set_flag(state)
            contexts = [context(CreateContextName.SMB2_CREATE_REQUEST_LEASE, lease)]
            oplock = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_LEASE
        elif self.options.ask != "none":
            oplock = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
        if self.options.ask == "durable" and self.options.dialect == "2.1":
            contexts = [context(CreateContextName.SMB2_CREATE_DURABLE_HANDLE_REQUEST, SMB2CreateDurableHandleRequest())]
        elif self.options.ask == "durable":
            durable = SMB2CreateDurableHandleRequestV2()
            durable["create_guid"] = uuid.uuid4()
            contexts = [context(CreateContextName.SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, durable)]
        disposition = CreateDisposition.FILE_OVERWRITE_IF if replace else CreateDisposition.FILE_OPEN_IF
        self.ask("open", lambda: self.file.create(
            ImpersonationLevel.Impersonation,
            FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE,
            FileAttributes.FILE_ATTRIBUTE_NORMAL, ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE,
            disposition, CreateOptions.FILE_NON_DIRECTORY_FILE, contexts or None, oplock), opening=True)

    def write(self, offset, block):
        written = self.ask("write", lambda: self.file.write(block, offset))
        if written != len(block):
            raise OSError(f"wrote {written} of {len(block)} bytes")

    def flush(self):
        self.ask("flush", self.file.flush)

    def close(self):
        self.ask("close", self.file.close)

    def logout(self):
        try:
            self.connection.disconnect(timeout=self.options.timeout)
        except Exception:  # pylint: disable=broad-except
            pass  # the file is closed

    def looker(self, what):
        self.login()
        path = self.options.name.replace("/", "\\")
        if what == "held":
            return looking.walk(self.opened(path).read)
        return {"opened": lambda: self.looked(path, lambda file: file.read(0, looking.BYTES)),
                "size": lambda: self.looked(path, lambda file: file.end_of_file),
                "names": lambda: self.looked(path.rpartition("\\")[0], self.names, CreateOptions.FILE_DIRECTORY_FILE)}[what]

    def opened(self, path, options=CreateOptions.FILE_NON_DIRECTORY_FILE):
        file = Open(self.tree, path)
        file.create(ImpersonationLevel.Impersonation, FilePipePrinterAccessMask.GENERIC_READ,
                    FileAttributes.FILE_ATTRIBUTE_NORMAL,
                    ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE,
                    CreateDisposition.FILE_OPEN, options)
        return file

    def looked(self, path, look, *options):
        file = self.opened(path, *options)
        try:
            return look(file)
        finally:
            file.close()

    @staticmethod
    def names(folder):
        entries = folder.query_directory("*", FileInformationClass.FILE_NAMES_INFORMATION)
        return [entry["file_name"].get_value().decode("utf-16-le") for entry in entries]

    def drop(self):
        try:
            self.connection.transport.close()
        except Exception:  # pylint: disable=broad-except
            pass


if __name__ == "__main__":
    writing.main(Smbprotocol)
    os._exit(0)  # its threads may still wait for a server that is gone
