# SPDX-License-Identifier: Apache-2.0
"""Finds the requests and answers of SMB1, 2 and 3 in a TCP stream, as far as timing needs: which command, which offset,
how many bytes, which status. Contents are skipped; an encrypted session cannot be read and says so."""

import struct
from typing import NamedTuple

READ, WRITE, CLOSE, LOGIN, OTHER = "read", "write", "close", "login", "other"
_SMB1 = {0x2E: READ, 0x2F: WRITE, 0x04: CLOSE, 0x72: LOGIN, 0x73: LOGIN, 0x74: LOGIN, 0x75: LOGIN, 0x71: LOGIN}
_SMB2 = {8: READ, 9: WRITE, 6: CLOSE, 0: LOGIN, 1: LOGIN, 2: LOGIN, 3: LOGIN, 4: LOGIN}
_HEAD = 1024  # bytes of a message that are kept; chains of several requests have their headers far in front


class Encrypted(Exception):
    pass


class Command(NamedTuple):
    kind: str
    is_answer: bool
    first_ns: int  # when the message's first byte was seen
    last_ns: int  # and its last
    stream_end: int  # offset in the stream after the message
    offset: int  # in the file, of reads and writes
    count: int  # bytes of the file in an answer to READ
    status: int


class Frames:
    """A reader of one direction. `commands` grows as bytes are fed."""

    def __init__(self):
        self.commands = []
        self._position = 0
        self._head = bytearray()
        self._left = 0  # bytes of the message that are not here yet
        self._length = bytearray()
        self._first_ns = 0

    def feed(self, time_ns, data):
        at = 0
        while at < len(data):
            if not self._left:
                if not self._length:
                    self._first_ns = time_ns
                take = min(4 - len(self._length), len(data) - at)
                self._length += data[at:at + take]
                at += take
                self._position += take
                if len(self._length) == 4:
                    self._left = int.from_bytes(self._length[1:], "big")  # the first byte is the kind of frame
                    self._head.clear()
                    if not self._left:
                        self._length.clear()
                continue
            take = min(self._left, len(data) - at)
            if len(self._head) < _HEAD:
                self._head += data[at:at + min(take, _HEAD - len(self._head))]
            at += take
            self._left -= take
            self._position += take
            if not self._left:
                self._length.clear()
                self.commands += self._read(bytes(self._head), time_ns)

    def _read(self, head, last_ns):
        if head[:4] == b"\xffSMB":
            return [self._smb1(head, last_ns)] if len(head) >= 33 else []
        if head[:4] == b"\xfdSMB":
            raise Encrypted("the SMB session is encrypted: its requests cannot be found in a capture")
        found, at = [], 0
        while head[at:at + 4] == b"\xfeSMB" and len(head) >= at + 64:
            found.append(self._smb2(head[at:], last_ns))
            following = struct.unpack_from("<I", head, at + 20)[0]
            if not following:
                break
            at += following
        return found

    def _smb1(self, head, last_ns):
        kind, is_answer = _SMB1.get(head[4], OTHER), bool(head[9] & 0x80)
        (status,) = struct.unpack_from("<I", head, 5)
        offset = count = 0
        words = head[33:33 + 2 * head[32]]
        if kind in (READ, WRITE) and not is_answer and len(words) >= 10:  # [MS-CIFS] 2.2.4.42.1, 2.2.4.43.1
            (offset,) = struct.unpack_from("<I", words, 6)
            high_at = 20 if kind == READ else 24
            if len(words) >= high_at + 4:
                offset |= struct.unpack_from("<I", words, high_at)[0] << 32
        elif kind == READ and len(words) >= 16:  # 2.2.4.42.2
            low, _, high = struct.unpack_from("<HHH", words, 10)
            count = low | high << 16
        return Command(kind, is_answer, self._first_ns, last_ns, self._position, offset, count, status)

    def _smb2(self, head, last_ns):
        status, command, _, flags = struct.unpack_from("<IHHI", head, 8)
        kind, is_answer = _SMB2.get(command, OTHER), bool(flags & 1)
        offset = count = 0
        if kind in (READ, WRITE) and not is_answer and len(head) >= 80:  # [MS-SMB2] 2.2.19, 2.2.21
            (offset,) = struct.unpack_from("<Q", head, 72)
        elif kind == READ and status == 0 and len(head) >= 72:  # 2.2.20
            (count,) = struct.unpack_from("<I", head, 68)
        return Command(kind, is_answer, self._first_ns, last_ns, self._position, offset, count, status)
