# SPDX-License-Identifier: Apache-2.0
"""The client of smb_client.py for SMB2 and SMB3: requests on files ([MS-SMB2])."""

import os
import struct

from smb_client import (ATTRIBUTES, DELETE, DELETE_ON_CLOSE, DIRECTORY_FILE, END_OF_FILE, FOREVER, LEASE, NON_DIRECTORY_FILE,
                        NO_MORE_FILES, NO_OPLOCK, OK, OPEN, READ, SHARE_ALL, Client, SmbError, names_and_sizes)


class Smb2Client(Client):
    def __init__(self, outer, dialect, smbd, share, protection):
        super().__init__(outer, dialect, share)
        connection, session = self.inner._Connection, self.inner._Session  # impacket has no other way to choose
        if protection != "encrypt":
            connection["SupportsEncryption"] = False
        if protection == "sign":
            connection["RequireSigning"] = True
        smbd.log_in_with(outer)
        self.tree = outer.connectTree(share)
        if protection == "none":
            session["SigningActivated"] = False
        large = connection["SupportsMultiCredit"] and dialect != "2.02"
        self.largest = 1 << 20 if large else 1 << 16

    def _session(self):
        return self.inner._NetBIOSSession

    @staticmethod
    def _break_in(message):
        if message[:4] != b"\xfeSMB" or message[24:32] != b"\xff" * 8:
            return None
        body = message[64:]
        if struct.unpack_from("<H", body)[0] == 44:  # 2.2.23.2: of a lease
            _, _, flags, key, old, new = struct.unpack_from("<HHI16sII", body)
            return {"lease": key, "from": old, "to": new, "acknowledge": bool(flags & 1)}
        level, file_id = body[2], body[8:24]
        return {"file": file_id, "to": level, "acknowledge": True}

    def ask(self, command, body, payload=0, expected=(OK,), what=""):
        """One request and its final answer: status and body. `payload` is what credits are charged for."""
        packet = self.inner.SMB_PACKET()
        packet["Command"], packet["TreeID"], packet["Data"] = command, self.tree, body
        if self.dialect != "2.02":
            packet["CreditCharge"] = 1 + max(0, payload - 1) // 65536
        answer = self.inner.recvSMB(self.inner.sendSMB(packet))
        status = answer["Status"] & 0xFFFFFFFF
        if status not in expected:
            raise SmbError(status, what)
        return status, bytes(answer["Data"])

    def open(self, name, access=READ, disposition=OPEN, share=SHARE_ALL, oplock=NO_OPLOCK, options=NON_DIRECTORY_FILE,
             lease=None, durable=False):
        """`lease` is (key, state) and wins over `oplock`. `durable` asks for a handle that outlives the connection."""
        text = name.replace("/", "\\").encode("utf-16-le")
        context = b""
        if lease:  # 2.2.13.2.8
            oplock = LEASE
            context = struct.pack("<IHHHHI4s4x16sIIQ", 0, 16, 4, 0, 24, 32, b"RqLs", lease[0], lease[1], 0, 0)
        if durable:  # 2.2.13.2.3, 2.2.13.2.11
            context = (struct.pack("<I", len(context)) + context[4:]) if context else b""
            if self.dialect in ("3.0", "3.1.1"):
                context += struct.pack("<IHHHHI4s4xIIQ16s", 0, 16, 4, 0, 24, 32, b"DH2Q", 0, 0, 0, os.urandom(16))
            else:
                context += struct.pack("<IHHHHI4s4x16x", 0, 16, 4, 0, 24, 16, b"DHnQ")
        padded = text + bytes(-len(text) % 8) if context else text or b"\0"
        body = struct.pack("<HBBIQQIIIIIHHII", 57, 0, oplock, 2, 0, 0, access, 0, share, disposition, options, 120,
                           len(text), 120 + len(padded) if context else 0, len(context)) + padded + context
        _, got = self.ask(5, body, what=f"open {name}")
        return Smb2File(self, name, got)

    def look(self, name, information_class=18, close_flags=0):
        """Opens it only for this query and closes it, in one message (3.2.4.1.4), as Linux does before an open.
        Returns the bodies of the three responses. For plain sessions."""
        text = name.replace("/", "\\").encode("utf-16-le")
        previous = b"\xff" * 16
        bodies = [struct.pack("<HBBIQQIIIIIHHII", 57, 0, NO_OPLOCK, 2, 0, 0, ATTRIBUTES, 0, SHARE_ALL, OPEN, 0, 120,
                              len(text), 0, 0) + text,
                  struct.pack("<HBBIHHIII16s", 41, 1, information_class, 8296, 0, 0, 0, 0, 0, previous),
                  struct.pack("<HHI16s", 24, close_flags, 0, previous)]
        connection = self.inner._Connection
        message = b""
        for number, (command, body) in enumerate(zip((5, 16, 6), bodies)):
            body += bytes(-len(body) % 8 if number < 2 else 0)
            message += struct.pack("<4sHHIHHIIQIIQ16s", b"\xfeSMB", 64, 1, 0, command, 10, 4 if number else 0,
                                   64 + len(body) if number < 2 else 0, connection["SequenceWindow"], 0, self.tree,
                                   self.inner._Session["SessionID"], bytes(16)) + body
            connection["SequenceWindow"] += 1
        self.session.send_packet(message)
        answers, rest = [], b""
        while len(answers) < 3:
            rest = rest or self.session.recv_packet(FOREVER).get_trailer()
            status, after = struct.unpack_from("<8xI8xI", rest)
            if status:
                raise SmbError(status, f"look at {name}")
            answers.append(rest[64:after or None])
            rest = rest[after:] if after else b""
        return answers

    def acknowledge(self, found, level=NO_OPLOCK):
        if "lease" in found:
            self.ask(18, struct.pack("<HHI16sIQ", 36, 0, 0, found["lease"], found["to"], 0), what="acknowledge")
        else:
            self.ask(18, struct.pack("<HBBI16s", 24, level, 0, 0, found["file"]), what="acknowledge")

    def echo(self):
        self.ask(13, struct.pack("<HH", 4, 0), what="echo")

    def listing(self, folder="", pattern="*", buffer_bytes=65536):
        found = {}
        for page in self.pages(folder, pattern, buffer_bytes):
            found.update(page)
        return found

    def pages(self, folder="", pattern="*", buffer_bytes=65536):
        """Names and sizes, an answer at a time; the next one is asked for when it is wanted."""
        with self.open(folder, READ, options=DIRECTORY_FILE) as handle:
            while (some := handle.list_some(buffer_bytes, pattern)) is not None:
                yield some

    def remove_folder(self, name):
        self.open(name, DELETE | ATTRIBUTES, options=DIRECTORY_FILE | DELETE_ON_CLOSE).close()

    def remove(self, name):
        self.open(name, DELETE | ATTRIBUTES, options=NON_DIRECTORY_FILE | DELETE_ON_CLOSE).close()

    def rename(self, old, new, replace=False):
        with self.open(old, DELETE | ATTRIBUTES, options=0) as handle:
            handle.rename(new, replace)

    def disconnect(self):
        """Tree disconnect and logoff, as a program that ends well does."""
        self.ask(4, struct.pack("<HH", 4, 0), what="tree disconnect")
        self.tree = 0
        self.ask(2, struct.pack("<HH", 4, 0), what="logoff")
        self.close()


def answer_buffer(body):
    """The buffer of a QUERY_DIRECTORY or QUERY_INFO answer; its offset counts from the header."""
    _, offset, size = struct.unpack_from("<HHI", body)
    return body[offset - 64:offset - 64 + size]


def created_contexts(buffer):
    """The data of each context by its name (2.2.13.2)."""
    found, at = {}, 0
    while buffer[at:]:
        following, name_at, name_size, _, data_at, size = struct.unpack_from("<IHHHHI", buffer, at)
        found[buffer[at + name_at:at + name_at + name_size]] = buffer[at + data_at:at + data_at + size]
        if not following:
            break
        at += following
    return found


class Smb2File:
    def __init__(self, client, name, created):
        self.client, self.name = client, name
        self.oplock = created[2]
        self.size_at_open = struct.unpack_from("<Q", created, 48)[0]
        self.id = created[64:80]
        offset, length = struct.unpack_from("<II", created, 80)
        contexts = created_contexts(created[offset - 64:offset - 64 + length])
        self.lease_state = struct.unpack_from("<I", contexts[b"RqLs"], 16)[0] if b"RqLs" in contexts else 0
        self.durable = b"DHnQ" in contexts or b"DH2Q" in contexts

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()

    def _ask(self, command, body, payload=0, expected=(OK,), what=""):
        return self.client.ask(command, body, payload, expected, f"{what} {self.name}")

    def read(self, offset, size):
        status, body = self._ask(8, struct.pack("<HBBIQ16sIIIHHx", 49, 80, 0, size, offset, self.id, 0, 0, 0, 0, 0),
                                 size, (OK, END_OF_FILE), "read")
        if status == END_OF_FILE:
            return b""
        start, length = body[2] - 64, struct.unpack_from("<I", body, 4)[0]
        return body[start:start + length]

    def write(self, offset, data, through=False):
        _, body = self._ask(9, struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), offset, self.id, 0, 0, 0, 0,
                                           1 if through else 0) + data, len(data), what="write")
        written = struct.unpack_from("<I", body, 4)[0]
        if written != len(data):
            raise AssertionError(f"wrote {written} of {len(data)} bytes of {self.name}")

    def flush(self):
        self._ask(7, struct.pack("<HHI16s", 24, 0, 0, self.id), what="flush")

    def close(self):
        self._ask(6, struct.pack("<HHI16s", 24, 0, 0, self.id), what="close")

    def list_some(self, buffer_bytes=65536, pattern="*"):
        """Names and sizes of one page of a directory; None behind its end."""
        text = pattern.encode("utf-16-le")
        status, body = self._ask(14, struct.pack("<HBBI16sHHI", 33, 37, 0, 0, self.id, 96, len(text), buffer_bytes) + text,
                                 buffer_bytes, (OK, NO_MORE_FILES), "list")  # 37: FileIdBothDirectoryInformation
        return dict(names_and_sizes(answer_buffer(body), 104)) if status == OK else None

    def query(self, information_class, kind=1):
        _, body = self._ask(16, struct.pack("<HBBIHHIII16s", 41, kind, information_class, 4096, 0, 0, 0, 0, 0, self.id),
                            what="query")
        return answer_buffer(body)

    def size(self):
        return struct.unpack_from("<Q", self.query(5), 8)[0]  # FileStandardInformation

    def query_volume(self):
        return self.query(7, kind=2)  # FileFsFullSizeInformation

    def _set(self, information_class, data, what):
        self._ask(17, struct.pack("<HBBIHHI16s", 33, 1, information_class, len(data), 96, 0, 0, self.id) + data,
                  what=what)

    def truncate(self, size):
        self._set(20, struct.pack("<Q", size), "truncate")

    def set_written(self, filetime):
        self._set(4, struct.pack("<QQQQII", 0, 0, filetime, 0, 0, 0), "set times")  # FileBasicInformation

    def delete_on_close(self, really=True):
        self._set(13, struct.pack("<B", really), "delete on close")

    def rename(self, new, replace=False):
        text = new.replace("/", "\\").encode("utf-16-le")
        self._set(10, struct.pack("<B7xQI", replace, 0, len(text)) + text, "rename")

    def lock(self, offset, size, exclusive=True):
        """Fails at once when it cannot be had."""
        self._lock(offset, size, (2 if exclusive else 1) | 0x10, "lock")

    def unlock(self, offset, size):
        self._lock(offset, size, 4, "unlock")

    def _lock(self, offset, size, flags, what):
        self._ask(10, struct.pack("<HHI16sQQII", 48, 1, 0, self.id, offset, size, flags, 0), what=what)
