# SPDX-License-Identifier: Apache-2.0
"""A file server of SMB2 whose answers a test chooses, and a client's requests for it, as bytes of our own: it needs
no user name, has every file, and never reads a disk ([MS-SMB2])."""

import struct
import threading

NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT, TREE_DISCONNECT, CREATE, CLOSE, FLUSH, READ, WRITE = range(10)
QUERY_INFO = 16
SESSION, TREE = 0x51, 7
LEASE_KEY = bytes(range(16))


def header(command, message_id, status=0, credits=1, flags=0, charge=1, session=SESSION, tree=TREE):
    return struct.pack("<4sHHIHHIIQIIQ16x", b"\xfeSMB", 64, charge, status, command, credits, flags, 0, message_id, 0xFEFF,
                       tree, session)


def framed(message):
    return struct.pack(">I", len(message)) + message


def request(command, message_id, body, charge=1, behind=b""):
    """`behind` is sent as a part of the message that nothing in it refers to."""
    return framed(header(command, message_id, charge=charge) + body + behind)


def negotiate():
    return struct.pack("<HHHHI16sQH", 36, 1, 1, 0, 0, bytes(range(16)), 0, 0x0210)


def session_setup():
    return struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, 0, 0) + b"\0"


def tree_connect():
    path = r"\\server\share".encode("utf-16-le")
    return struct.pack("<HHHH", 9, 0, 72, len(path)) + path


def create(name, access=0x12019F, oplock=0):
    text = name.encode("utf-16-le")
    return struct.pack("<HBBIQQIIIIIHHII", 57, 0, oplock, 2, 0, 0, access, 0, 7, 1, 0x40, 120, len(text), 0, 0) + text


def file_id(number):
    return struct.pack("<QQ", number, 100 + number)


def opened_file(answer):
    """The number of the file that this answer to CREATE has opened."""
    return struct.unpack_from("<Q", answer, 64 + 64)[0]


def write(number, offset, data):
    return struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), offset, file_id(number), 0, 0, 0, 0, 0) + data


def read(number, offset, length):
    return struct.pack("<HBBIQ16sIIIHHx", 49, 80, 0, length, offset, file_id(number), 0, 0, 0, 0, 0)


def close(number):
    return struct.pack("<HHI16s", 24, 0, 0, file_id(number))


class Server:
    """For tcp.Server. Files are numbered from 1 in the order in which they are opened. `most_bytes` is announced as the
    most to read, to write and to ask at once; `holds` names commands that it does not answer before go_on()."""

    def __init__(self, most_bytes=1 << 20, oplock=0x09, holds=()):
        self.most_bytes, self.oplock, self.holds = most_bytes, oplock, holds
        self.seen = []  # commands
        self.opened = 0
        self._go_on = threading.Event()

    def go_on(self):
        self._go_on.set()

    def __call__(self, connection):
        data = b""
        try:
            while more := connection.socket.recv(65536):
                data += more
                while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack(">I", data[:4])[0]):
                    self._answer(connection, data[4:4 + size])
                    data = data[4 + size:]
        except OSError:
            pass

    def _answer(self, connection, message):
        charge, command, message_id = (struct.unpack_from("<H", message, 6)[0], struct.unpack_from("<H", message, 12)[0],
                                       struct.unpack_from("<Q", message, 24)[0])
        self.seen.append(command)
        if command in self.holds:
            self._go_on.wait(20)
        body, status = self._body(command, message)
        granted = max(charge, 1) + 512  # what a READ of 17 MiB takes
        connection.send(framed(header(command, message_id, status, granted, 1, charge) + body))

    def _body(self, command, message):
        most = self.most_bytes
        if command == NEGOTIATE:
            return struct.pack("<HHHH16sIIIIQQHHI", 65, 1, 0x0210, 0, bytes(16), 4, most, most, most, 0, 0, 128, 0, 0), 0
        if command == SESSION_SETUP:
            return struct.pack("<HHHH", 9, 0, 72, 0), 0
        if command == TREE_CONNECT:
            return struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1F01FF), 0
        if command == CREATE:
            self.opened += 1
            return struct.pack("<HBBI32sQQII16sII", 89, self.oplock, 0, 1, bytes(32), 1 << 30, 1 << 30, 0x80, 0,
                               file_id(self.opened), 0, 0), 0
        if command == CLOSE:
            return struct.pack("<HHI32sQQI", 60, 0, 0, bytes(32), 0, 0, 0), 0
        if command == READ:
            length, = struct.unpack_from("<I", message, 68)
            return struct.pack("<HBBIII", 17, 80, 0, min(length, 1 << 20), 0, 0) + bytes(min(length, 1 << 20)), 0
        if command == WRITE:
            return struct.pack("<HHIIHH", 17, 0, struct.unpack_from("<I", message, 68)[0], 0, 0, 0), 0
        if command == QUERY_INFO:
            return struct.pack("<HHI", 9, 72, 32) + bytes(32), 0
        return struct.pack("<HH", 4, 0), 0
