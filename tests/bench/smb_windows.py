#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Files and folders as Windows' client asks for them, sent with smbprotocol: each open of a file requests a lease (read, handle and
write caching) with the folder's as its parent, a durable handle (version 2), the maximal access and the identifier on disk; a
folder is opened and queried in one compound. A file that was read is closed without waiting if its lease caches handles. It is no
Windows: the leases of folders are missing, and nothing is kept in a cache. Prints one line of JSON; the time begins after the login.
smb_sealed_clients.py runs it in a node of the lab."""

import argparse
import hashlib
import json
import os
import pathlib
import socket
import struct
import sys
import time
import uuid

from smbprotocol.connection import Connection, Dialects
from smbprotocol.create_contexts import (CreateContextName, LeaseRequestFlags, LeaseState, SMB2CreateContextRequest,
                                         SMB2CreateDurableHandleRequestV2, SMB2CreateDurableHandleResponseV2,
                                         SMB2CreateQueryMaximalAccessRequest, SMB2CreateRequestLeaseV2,
                                         SMB2CreateResponseLeaseV2)
from smbprotocol.exceptions import NoMoreFiles
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import (CreateDisposition, CreateOptions, FileAttributes, FilePipePrinterAccessMask, ImpersonationLevel,
                              Open, RequestedOplockLevel, ShareAccess, SMB2QueryDirectoryResponse)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from on_mount import made  # pylint: disable=wrong-import-position

BLOCK = 65536
CACHES = (LeaseState.SMB2_LEASE_READ_CACHING, LeaseState.SMB2_LEASE_HANDLE_CACHING, LeaseState.SMB2_LEASE_WRITE_CACHING)
EVERYONE = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
READ, WRITE = FilePipePrinterAccessMask.GENERIC_READ, FilePipePrinterAccessMask.GENERIC_WRITE


class Client:
    def __init__(self, options):
        signs = options.protection == "sign"
        self.connection = Connection(uuid.uuid4(), options.host, 445, require_signing=signs)
        self.connection.connect(Dialects.SMB_3_1_1)
        # Else an open waits for the acknowledgement of the CLOSE before it (Nagle), which costs a round trip.
        self.connection.transport._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # pylint: disable=protected-access
        session = Session(self.connection, options.user, options.password, auth_protocol="ntlm",
                          require_encryption=options.protection == "encrypt")
        session.connect()
        self.tree = TreeConnect(session, rf"\\{options.host}\share")
        session.signing_required = not session.encrypt_data  # 3.1.1 demands it of TREE_CONNECT, whatever protection is wanted
        self.tree.connect()
        session.signing_required = signs
        self.connection.echo(session.session_id, credit_request=256)
        self.ids = session.session_id, self.tree.tree_connect_id
        self.requests = self.leases = self.durable = 0

    def send(self, *messages):
        """In one compound if they are several."""
        self.requests += len(messages)
        return self.connection.send_compound(list(messages), *self.ids, related=len(messages) > 1)

    def open(self, path, parent, access, disposition):
        """And what its lease permits to be cached."""
        lease = SMB2CreateRequestLeaseV2()
        lease["lease_key"], lease["parent_lease_key"], lease["epoch"] = os.urandom(16), parent, bytes(2)
        lease["lease_flags"].set_flag(LeaseRequestFlags.SMB2_LEASE_FLAG_PARENT_LEASE_KEY_SET)
        for state in CACHES:
            lease["lease_state"].set_flag(state)
        durable = SMB2CreateDurableHandleRequestV2()
        durable["create_guid"] = uuid.uuid4()
        file = Open(self.tree, path)
        message, answer = file.create(
            ImpersonationLevel.Impersonation, access, FileAttributes.FILE_ATTRIBUTE_NORMAL, EVERYONE, disposition,
            CreateOptions.FILE_NON_DIRECTORY_FILE, [durable, SMB2CreateQueryMaximalAccessRequest(), on_disk(), lease],
            RequestedOplockLevel.SMB2_OPLOCK_LEVEL_LEASE, send=False)
        given = answer(self.send(message)[0]) or []
        held = sum(context["lease_state"].get_value() for context in given if isinstance(context, SMB2CreateResponseLeaseV2))
        self.leases += held == sum(CACHES)
        self.durable += any(isinstance(context, SMB2CreateDurableHandleResponseV2) for context in given)
        return file, held

    def ask(self, prepared):
        message, answer = prepared
        return answer(self.send(message)[0])

    def listing(self, path):
        """The names of a folder, and their attributes: opened and queried twice in one compound, then block after block."""
        folder = Open(self.tree, path)
        message, opened = folder.create(
            ImpersonationLevel.Impersonation, READ, 0, EVERYONE, CreateDisposition.FILE_OPEN,
            CreateOptions.FILE_DIRECTORY_FILE, send=False)
        first, *others = self.send(message, self.query(folder), self.query(folder))
        opened(first)
        found = {}
        while others:
            for request in others:
                try:
                    found.update(entries(self.connection.receive(request)))
                except NoMoreFiles:
                    others = None
            if others:
                others = self.send(self.query(folder))
        self.ask(folder.close(send=False))
        return found

    @staticmethod
    def query(folder):
        return folder.query_directory("*", FileInformationClass.FILE_ID_BOTH_DIRECTORY_INFORMATION, max_output=BLOCK,
                                      send=False)[0]


def on_disk():
    """Asks for the file's identifier. It has no data."""
    context = SMB2CreateContextRequest()
    context["buffer_name"] = CreateContextName.SMB2_CREATE_QUERY_ON_DISK_ID
    return context


def entries(response):
    """Name and size of each of a block, [MS-FSCC] 2.4.22. smbprotocol's own classes take longer than the line."""
    answer = SMB2QueryDirectoryResponse()
    answer.unpack(response["data"].get_value())
    block = answer["buffer"].get_value()
    at = 0
    while True:
        following, = struct.unpack_from("<I", block, at)
        size, = struct.unpack_from("<Q", block, at + 40)
        length, = struct.unpack_from("<I", block, at + 60)
        name = block[at + 104:at + 104 + length].decode("utf-16-le")
        if name not in (".", ".."):
            yield name, size
        if not following:
            return
        at += following


def read_many(client, path):
    sha = hashlib.sha256()
    closing = []
    names = sorted(client.listing(path))
    parent = os.urandom(16)
    for name in names:
        file, held = client.open(f"{path}\\{name}", parent, READ, CreateDisposition.FILE_OPEN)
        sha.update(client.ask(file.read(0, BLOCK, send=False)))
        message, answer = file.close(send=False)
        request = client.send(message)[0]
        if held & LeaseState.SMB2_LEASE_HANDLE_CACHING:
            closing.append((answer, request))
        else:
            answer(request)
    for answer, request in closing:
        answer(request)
    return {"files": len(names), "sha256": sha.hexdigest()}


def write_many(client, path, files):
    parent = os.urandom(16)
    for number, data in enumerate(files):
        file, _ = client.open(f"{path}\\file-{number:04}", parent, READ | WRITE, CreateDisposition.FILE_OVERWRITE_IF)
        if client.ask(file.write(data, send=False)) != len(data):
            raise OSError("short write")
        client.ask(file.close(send=False))
    return {"files": len(files), "sha256": hashlib.sha256(b"".join(files)).hexdigest()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("read-many", "write-many", "list"))
    parser.add_argument("path")
    for name in "host", "user", "password":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--protection", default="none", choices=("none", "sign", "encrypt"))
    for name in "count", "size", "seed":
        parser.add_argument(f"--{name}", type=int, default=0)
    options = parser.parse_args()
    files = [made(options.size, options.seed + number) for number in range(options.count)]
    client = Client(options)
    began, cpu = time.monotonic(), time.process_time()
    found = {"read-many": lambda: read_many(client, options.path), "write-many": lambda: write_many(client, options.path, files),
             "list": lambda: {"files": len(client.listing(options.path))}}[options.what]()
    print(json.dumps({"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu, "requests": client.requests,
                      "leases": client.leases, "durable": client.durable, **found}), flush=True)
    client.connection.disconnect()


if __name__ == "__main__":
    main()
