# SPDX-License-Identifier: Apache-2.0
"""SMB clients that a test leads step by step, in every dialect: connection, login, signing and encryption are
impacket's, the requests on files are built here, so that oplocks, flags and sizes are the test's to choose. What
programs do with files is in smb_work.py."""

import concurrent.futures
import itertools
import os
import select
import struct
import sys
import time

from lab import REPOSITORY, SERVER
from smb import USER

_PACKAGES = REPOSITORY / "build" / "python" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
if not (_PACKAGES / "impacket").exists():
    raise ImportError("impacket is not installed: run tools/setup")
sys.path.append(os.fspath(_PACKAGES))

from impacket import nt_errors, smb3structs  # pylint: disable=wrong-import-position
from impacket.smb import SMB_DIALECT  # pylint: disable=wrong-import-position
from impacket.smbconnection import SMBConnection  # pylint: disable=wrong-import-position

DIALECTS = {"NT1": SMB_DIALECT, "2.02": smb3structs.SMB2_DIALECT_002, "2.1": smb3structs.SMB2_DIALECT_21,
            "3.0": smb3structs.SMB2_DIALECT_30, "3.1.1": smb3structs.SMB2_DIALECT_311}

# Access masks, dispositions, sharing, options ([MS-SMB2] 2.2.13; the same in [MS-CIFS] 2.2.4.64)
READ, WRITE, DELETE, ATTRIBUTES = 0x00120089, 0x00120116, 0x00010000, 0x00100080
SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
SHARE_NONE, SHARE_READ, SHARE_WRITE, SHARE_DELETE, SHARE_ALL = 0, 1, 2, 4, 7
DIRECTORY_FILE, WRITE_THROUGH, NON_DIRECTORY_FILE, DELETE_ON_CLOSE = 0x1, 0x2, 0x40, 0x1000
NO_INTERMEDIATE_BUFFERING = 0x8

NO_OPLOCK, LEVEL_II, EXCLUSIVE, BATCH, LEASE = 0x00, 0x01, 0x08, 0x09, 0xFF  # as SMB2 writes them
_OPLOCK_OF_SMB1 = {0: NO_OPLOCK, 1: EXCLUSIVE, 2: BATCH, 3: LEVEL_II}
LEASE_READ, LEASE_HANDLE, LEASE_WRITE, LEASE_ALL = 1, 2, 4, 7

OK, PENDING, END_OF_FILE, NO_MORE_FILES = 0, 0x103, 0xC0000011, 0x80000006
SHARING_VIOLATION, FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED = 0xC0000043, 0xC0000054, 0xC0000055
DELETE_PENDING, NAME_NOT_FOUND, DISK_FULL, NAME_COLLISION = 0xC0000056, 0xC0000034, 0xC000007F, 0xC0000035
LOST_WRITES = 0xC0000222  # STATUS_LOST_WRITEBEHIND_DATA
RANGE_NOT_LOCKED, PATH_NOT_FOUND = 0xC000007E, 0xC000003A

LARGEST_SMB1_READ = 61440  # what the older redirectors ask for at once
FOREVER = 60.0


class SmbError(Exception):
    def __init__(self, status, what=""):
        name = nt_errors.ERROR_MESSAGES.get(status, (f"status {status:#010x}",))[0]
        super().__init__(f"{what}: {name}")
        self.status = status


class Broken(ConnectionError):
    """The connection ended or was reset before the answer."""


def connect(lab, smbd, dialect="3.1.1", node="client", host=SERVER, share="share", protection="none", port=445):
    """A connection to a share. `protection` is none, sign or encrypt. With none a session of 3.1.1 is what smbclient's
    is: the requests up to the tree connect are signed, as the dialect demands, and those on files are not."""
    with lab.inside(node):
        outer = SMBConnection(host, host, sess_port=port, timeout=FOREVER, preferredDialect=DIALECTS[dialect])
    kind = Smb1Client if dialect == "NT1" else Smb2Client
    return kind(outer, dialect, smbd, share, protection)


def beside(call):
    """Starts a call that may have to wait for somebody else. What this gives waits for its result."""
    thread = concurrent.futures.ThreadPoolExecutor(1)
    future = thread.submit(call)
    thread.shutdown(wait=False)
    return lambda seconds=FOREVER: future.result(seconds)


class Client:
    """What both have in common. A break that the server sends unasked waits in `breaks` until the test looks."""

    def __init__(self, outer, dialect, share):
        self.outer, self.dialect, self.share_name = outer, dialect, share
        self.inner = outer.getSMBServer()
        self.breaks = []
        self.requests = 0  # sent so far, those of the login included
        self.socket = self.inner.get_socket()
        self.session = self._session()
        self._receive, self._send = self.session.recv_packet, self.session.send_packet
        self.session.recv_packet, self.session.send_packet = self._receive_filtered, self._send_counted

    def _send_counted(self, data):
        self.requests += 1
        try:
            self._send(data)
        except OSError as error:
            raise Broken(str(error)) from error

    def _receive_filtered(self, timeout=FOREVER):
        while True:
            try:
                packet = self._receive(timeout)
            except Exception as error:
                raise Broken(f"{type(error).__name__}: {error}") from error
            found = self._break_in(packet.get_trailer())
            if found is None:
                return packet
            self.breaks.append(found)

    def wait_break(self, seconds=10.0):
        """The next break that the server sends while this client asks nothing."""
        deadline = time.monotonic() + seconds
        while not self.breaks:
            ready, _, _ = select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no break within {seconds:g} s")
            try:
                found = self._break_in(self._receive(FOREVER).get_trailer())
            except Exception as error:
                raise Broken(f"{type(error).__name__}: {error}") from error
            if found is None:
                raise AssertionError("an answer that nobody asked for")
            self.breaks.append(found)
        return self.breaks.pop(0)

    def close(self):
        """Ends the TCP connection, as a program that exits does."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# -- SMB2 and SMB3 ([MS-SMB2])


class Smb2Client(Client):
    def __init__(self, outer, dialect, smbd, share, protection):
        super().__init__(outer, dialect, share)
        connection, session = self.inner._Connection, self.inner._Session  # impacket has no other way to choose
        if protection != "encrypt":
            connection["SupportsEncryption"] = False
        if protection == "sign":
            connection["RequireSigning"] = True
        outer.login(USER, smbd.password)
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

    def acknowledge(self, found, level=NO_OPLOCK):
        if "lease" in found:
            self.ask(18, struct.pack("<HHI16sIQ", 36, 0, 0, found["lease"], found["to"], 0), what="acknowledge")
        else:
            self.ask(18, struct.pack("<HBBI16s", 24, level, 0, 0, found["file"]), what="acknowledge")

    def echo(self):
        self.ask(13, struct.pack("<HH", 4, 0), what="echo")

    def listing(self, folder="", pattern="*", buffer_bytes=65536):
        """Names and sizes, asked for page by page until there are no more."""
        with self.open(folder, READ, options=DIRECTORY_FILE) as handle:
            text = pattern.encode("utf-16-le")
            found = {}
            while True:
                status, body = self.ask(14, struct.pack("<HBBI16sHHI", 33, 37, 0, 0, handle.id, 96, len(text),
                                                        buffer_bytes) + text, buffer_bytes, (OK, NO_MORE_FILES),
                                        f"list {folder}")  # 37: FileIdBothDirectoryInformation
                if status == NO_MORE_FILES:
                    return found
                found.update(names_and_sizes(answer_buffer(body), 104))

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


def names_and_sizes(buffer, name_at):
    """Of a chain of directory entries ([MS-FSCC] 2.4); . and .. are left out."""
    at, found = 0, {}
    while at < len(buffer):  # the last entry of SMB1 names its own end as the next
        (following,) = struct.unpack_from("<I", buffer, at)
        (size,) = struct.unpack_from("<Q", buffer, at + 40)
        (length,) = struct.unpack_from("<I", buffer, at + 60)
        name = buffer[at + name_at:at + name_at + length].decode("utf-16-le").rstrip("\0")
        if name not in (".", ".."):
            found[name] = size
        if not following:
            break
        at += following
    return found


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


# -- SMB1 ([MS-CIFS], [MS-SMB])


class Smb1Client(Client):
    def __init__(self, outer, dialect, smbd, share, protection):
        super().__init__(outer, dialect, share)
        if protection == "encrypt":
            raise ValueError("SMB1 has no encryption that impacket knows")
        if protection == "sign":
            raise ValueError("signed SMB1 is tested with smbclient")
        outer.login(USER, smbd.password)
        self.tree = outer.connectTree(share)
        self.uid = self.inner.get_uid()
        self.pid = os.getpid() & 0xFFFF
        self.mids = itertools.cycle(range(64, 0xFF00))
        self.largest = LARGEST_SMB1_READ

    def _session(self):
        return self.inner._sess

    @staticmethod
    def _break_in(message):
        if message[:5] != b"\xffSMB\x24" or message[30:32] != b"\xff\xff" or message[9] & 0x80:
            return None
        fid, _, level = struct.unpack_from("<HBB", message, 37)  # LOCKING_ANDX as the server's request
        return {"file": fid, "to": LEVEL_II if level else NO_OPLOCK, "acknowledge": True}

    def _header(self, command):
        # Flags2: Unicode, NT status codes, extended security, long names
        return struct.pack("<4sBIBHH8sHHHHH", b"\xffSMB", command, 0, 0x18, 0xC801, 0, bytes(8), 0, self.tree,
                           self.pid, self.uid, next(self.mids))

    def send(self, command, words, data=b""):
        count = struct.pack("<H", len(data) & 0xFFFF)  # large writes overflow it, and nobody reads it there
        message = self._header(command) + bytes((len(words) // 2,)) + words + count + data
        self.session.send_packet(message)
        return message[30:32]

    def receive(self, mid):
        message = bytes(self.session.recv_packet(FOREVER).get_trailer())
        if message[30:32] != mid:
            raise AssertionError("an answer to another request")
        return message

    def ask(self, command, words, data=b"", expected=(OK,), what=""):
        """One request and its answer: status, words, and the whole message, in which offsets count."""
        message = self.receive(self.send(command, words, data))
        (status,) = struct.unpack_from("<I", message, 5)
        if status not in expected:
            raise SmbError(status, what)
        return status, message[33:33 + 2 * message[32]], message

    def transact2(self, function, parameters, data=b"", most=65000, what=""):
        """TRANS2 (2.2.4.46): parameters and data of the answer, put together from its parts."""
        at = 68
        data_at = at + len(parameters) + (-len(parameters) % 4)
        words = struct.pack("<HHHHBBHIHHHHHBBH", len(parameters), len(data), 1024, most, 0, 0, 0, 0, 0, len(parameters),
                            at, len(data), data_at if data else 0, 1, 0, function)
        mid = self.send(0x32, words, bytes(3) + parameters + bytes(-len(parameters) % 4) + data)
        got_parameters, got_data = bytearray(), bytearray()
        while True:
            message = self.receive(mid)
            (status,) = struct.unpack_from("<I", message, 5)
            if status != OK:
                raise SmbError(status, what)
            total_parameters, total_data, _, count, offset, _, data_count, data_offset = struct.unpack_from(
                "<HHHHHHHH", message, 33)
            got_parameters += message[offset:offset + count]
            got_data += message[data_offset:data_offset + data_count]
            if len(got_parameters) >= total_parameters and len(got_data) >= total_data:
                return bytes(got_parameters), bytes(got_data)

    def open(self, name, access=READ, disposition=OPEN, share=SHARE_ALL, oplock=NO_OPLOCK, options=NON_DIRECTORY_FILE,
             lease=None):
        if lease:
            raise ValueError("SMB1 has no leases")
        text = unicode_path(name)
        flags = {NO_OPLOCK: 0, EXCLUSIVE: 2, BATCH: 6}[oplock]
        words = struct.pack("<BBHBHIIIQIIIIIB", 0xFF, 0, 0, 0, len(text) - 2, flags, 0, access, 0, 0, share,
                            disposition, options, 2, 0)
        _, got, _ = self.ask(0xA2, words, b"\0" + text, what=f"open {name}")
        return Smb1File(self, name, got)

    def acknowledge(self, found, level=NO_OPLOCK):
        """Has no answer ([MS-CIFS] 3.2.4.18)."""
        self.send(0x24, struct.pack("<BBHHBBIHH", 0xFF, 0, 0, found["file"], 2, 1 if level else 0, 0, 0, 0))

    def echo(self):
        self.ask(0x2B, struct.pack("<H", 1), b"echo", what="echo")

    def listing(self, folder="", pattern="*", buffer_bytes=65000):
        path = unicode_path(f"{folder}/{pattern}" if folder else pattern)
        parameters, data = self.transact2(1, struct.pack("<HHHHI", 0x16, 2000, 6, 0x104, 0) + path, most=buffer_bytes,
                                          what=f"list {folder}")  # 0x104: SMB_FIND_FILE_BOTH_DIRECTORY_INFO
        (search,) = struct.unpack_from("<H", parameters)
        parameters = parameters[2:]
        found = {}
        while True:
            found.update(names_and_sizes(data, 94))
            count, end = struct.unpack_from("<HH", parameters)
            if end or not count:
                return found
            # On from the last one, and closed at the end.
            parameters, data = self.transact2(2, struct.pack("<HHHIH", search, 2000, 0x104, 0, 0xE) + bytes(2),
                                              most=buffer_bytes, what=f"list {folder} on")

    def remove(self, name):
        self.ask(0x06, struct.pack("<H", 0x16), b"\4" + unicode_path(name), what=f"remove {name}")

    def rename(self, old, new, replace=False):
        if replace:
            raise ValueError("RENAME of SMB1 does not replace")
        self.ask(0x07, struct.pack("<H", 0x16), b"\4" + unicode_path(old) + b"\4\0" + unicode_path(new),
                 what=f"rename {old}")

    def disconnect(self):
        self.ask(0x71, b"", what="tree disconnect")
        self.ask(0x74, struct.pack("<BBH", 0xFF, 0, 0), what="logoff")
        self.close()


def unicode_path(name):
    return ("\\" + name.replace("/", "\\")).encode("utf-16-le") + bytes(2)


class Smb1File:
    def __init__(self, client, name, words):
        self.client, self.name = client, name
        level, self.id = struct.unpack_from("<BH", words, 4)
        self.oplock = _OPLOCK_OF_SMB1[level]
        self.size_at_open = struct.unpack_from("<Q", words, 55)[0]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()

    def _ask(self, command, words, data=b"", expected=(OK,), what=""):
        return self.client.ask(command, words, data, expected, f"{what} {self.name}")

    def read(self, offset, size):
        _, got, message = self._ask(0x2E, struct.pack("<BBHHIHHIHI", 0xFF, 0, 0, self.id, offset & 0xFFFFFFFF,
                                                      size & 0xFFFF, 0, size >> 16, 0, offset >> 32), what="read")
        length, at, high = struct.unpack_from("<HHH", got, 10)
        length += high << 16
        return message[at:at + length]

    def write(self, offset, data, through=False):
        _, got, _ = self._ask(0x2F, struct.pack("<BBHHIIHHHHHI", 0xFF, 0, 0, self.id, offset & 0xFFFFFFFF, 0,
                                                1 if through else 0, 0, len(data) >> 16, len(data) & 0xFFFF, 64,
                                                offset >> 32), b"\0" + data, what="write")
        count, _, high = struct.unpack_from("<HHH", got, 4)
        if count + (high << 16) != len(data):
            raise AssertionError(f"wrote {count + (high << 16)} of {len(data)} bytes of {self.name}")

    def read_raw(self, offset, size):
        """Data without a header (2.2.4.22); none at the end of the file, and on every error."""
        self.client.send(0x1A, struct.pack("<HIHHIHI", self.id, offset & 0xFFFFFFFF, size, 0, 0, 0, offset >> 32))
        return bytes(self.client.session.recv_packet(FOREVER).get_trailer())

    def write_raw(self, offset, data, through=False):
        """Data without a header, behind the server's go-ahead (2.2.4.25). Only `through` is answered."""
        mid = self.client.send(0x1D, struct.pack("<HHHIIHIHHI", self.id, len(data), 0, offset & 0xFFFFFFFF, 0,
                                                 1 if through else 0, 0, 0, 60, offset >> 32))
        if (message := self.client.receive(mid))[4] != 0x1D:
            raise SmbError(struct.unpack_from("<I", message, 5)[0], f"raw write {self.name}")
        self.client.session.send_packet(data)
        if through:
            message = self.client.receive(mid)
            if (written := struct.unpack_from("<H", message, 33)[0]) != len(data):
                raise AssertionError(f"wrote {written} of {len(data)} bytes of {self.name} raw")

    def flush(self):
        self._ask(0x05, struct.pack("<H", self.id), what="flush")

    def close(self):
        self._ask(0x04, struct.pack("<HI", self.id, 0xFFFFFFFF), what="close")

    def query(self, level):
        return self.client.transact2(7, struct.pack("<HH", self.id, level), what=f"query {self.name}")[1]

    def size(self):
        return struct.unpack_from("<Q", self.query(0x102), 8)[0]  # SMB_QUERY_FILE_STANDARD_INFO

    def query_volume(self):
        return self.client.transact2(3, struct.pack("<H", 0x103), what="volume")[1]

    def _set(self, level, data, what):
        self.client.transact2(8, struct.pack("<HHH", self.id, level, 0), data, what=f"{what} {self.name}")

    def truncate(self, size):
        self._set(0x104, struct.pack("<Q", size), "truncate")

    def delete_on_close(self, really=True):
        self._set(0x102, struct.pack("<B", really), "delete on close")

    def lock(self, offset, size, exclusive=True):
        self._lock(offset, size, 0x10 if exclusive else 0x11, (0, 1), "lock")

    def unlock(self, offset, size):
        self._lock(offset, size, 0x10, (1, 0), "unlock")

    def _lock(self, offset, size, kind, counts, what):
        self._ask(0x24, struct.pack("<BBHHBBIHH", 0xFF, 0, 0, self.id, kind, 0, 0, *counts),
                  struct.pack("<HHIIII", self.client.pid, 0, offset >> 32, offset & 0xFFFFFFFF, size >> 32,
                              size & 0xFFFFFFFF), what=what)
