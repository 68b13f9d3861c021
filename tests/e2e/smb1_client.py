# SPDX-License-Identifier: Apache-2.0
"""The client of smb_client.py for SMB1: requests on files ([MS-CIFS], [MS-SMB])."""

import hashlib
import itertools
import os
import struct

from smb_client import (BATCH, EXCLUSIVE, FOREVER, LARGEST_SMB1_READ, LEVEL_II, NON_DIRECTORY_FILE, NO_OPLOCK, OK, OPEN,
                        READ, SHARE_ALL, Client, SmbError, names_and_sizes)

_OPLOCK_OF_SMB1 = {0: NO_OPLOCK, 1: EXCLUSIVE, 2: BATCH, 3: LEVEL_II}


class Smb1Client(Client):
    def __init__(self, outer, dialect, smbd, share, protection):
        super().__init__(outer, dialect, share)
        if protection == "encrypt":
            raise ValueError("SMB1 has no encryption that impacket knows")
        self.inner._SignatureRequired = protection == "sign"
        smbd.log_in_with(outer)
        if protection == "sign":  # impacket signs only if it must
            self.inner._SignatureEnabled, self.inner._SignSequenceNumber = True, 2
        self.tree = outer.connectTree(share)
        # [MS-CIFS] 3.1.4.1: the key, the number of the next request, and those of the requests without an answer.
        self.key = self.inner._SigningSessionKey if protection == "sign" else None
        self.number, self.numbers = self.inner._SignSequenceNumber, {}
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
        # Flags2: Unicode, NT status codes, extended security, signed, long names
        return struct.pack("<4sBIBHH8sHHHHH", b"\xffSMB", command, 0, 0x18, 0xC805 if self.key else 0xC801, 0, bytes(8), 0, self.tree,
                           self.pid, self.uid, next(self.mids))

    def send(self, command, words, data=b""):
        count = struct.pack("<H", len(data) & 0xFFFF)  # large writes overflow it, and servers ignore it then
        message = self._header(command) + bytes((len(words) // 2,)) + words + count + data
        if self.key:
            message = self._signed(message, self.number)
            self.numbers[message[30:32]] = self.number
            self.number += 2
        self.session.send_packet(message)
        return message[30:32]

    def _signed(self, message, number):
        signature = hashlib.md5(self.key + message[:14] + struct.pack("<II", number, 0) + message[22:]).digest()[:8]
        return message[:14] + signature + message[22:]

    def receive(self, mid):
        message = bytes(self.session.recv_packet(FOREVER).get_trailer())
        if message[30:32] != mid:
            raise AssertionError("an answer to another request")
        if self.key and message != self._signed(message, self.numbers[mid] + 1):
            raise AssertionError("an answer without the right signature")
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
        found = {}
        for page in self.pages(folder, pattern, buffer_bytes):
            found.update(page)
        return found

    def pages(self, folder="", pattern="*", buffer_bytes=65000):
        """Names and sizes, an answer at a time; the next one is asked for when it is wanted."""
        path = unicode_path(f"{folder}/{pattern}" if folder else pattern)
        parameters, data = self.transact2(1, struct.pack("<HHHHI", 0x16, 2000, 6, 0x104, 0) + path, most=buffer_bytes,
                                          what=f"list {folder}")  # 0x104: SMB_FIND_FILE_BOTH_DIRECTORY_INFO
        (search,) = struct.unpack_from("<H", parameters)
        parameters = parameters[2:]
        while True:
            yield names_and_sizes(data, 94)
            count, end = struct.unpack_from("<HH", parameters)
            if end or not count:
                return
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
