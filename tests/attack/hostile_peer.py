# SPDX-License-Identifier: Apache-2.0
"""A peer that holds a valid key and breaks the link protocol: it dials a real daemon, says HELLO, and then sends
whatever a test gives it. It implements just enough of proxy/link/PROTOCOL.md to reach the code under attack."""

import contextlib
import ctypes
import ipaddress
import os
import socket
import ssl
import struct
import threading

from lab import DATACENTER_WAN, PATIENCE
from pair import LINK_PORT
from tls_exporter import exported

# Frame and record types, by their names in PROTOCOL.md.
HELLO, STREAM, ACK, CREDIT, CREDIT_RETURN, RESET, RESET_DONE, PING, PONG, CLOSE, OPEN_CREDIT = range(1, 12)
OPEN, ANSWER, DATA, BLOCK, MODULE, END, ABORT, ALLOWED, DICTIONARY, FEATURES = range(10)
CONTROL_STREAM = 0


def varint(number):
    """RFC 9000, section 16, in its shortest form."""
    for exponent, bits in enumerate((6, 14, 30, 62)):
        if number < 1 << bits:
            size = 1 << exponent
            return (number | exponent << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(f"{number} does not fit a varint")


def read_varint(data, at=0):
    """The number at `at`, and where the next one begins."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at:at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def frame(kind, body):
    return bytes([kind]) + varint(len(body)) + body


def record(kind, body=b""):
    return bytes([kind]) + varint(len(body)) + body


def address(host):
    packed = ipaddress.ip_address(host).packed
    return bytes([4 if len(packed) == 4 else 6]) + packed


def open_record(destination, client=None, source=0, forward_credit=0, reverse_credit=1 << 16, module="",
                module_version=0):
    """`destination` and `client` are (host, port); a host that is no address is sent as a name."""
    host, port = destination
    try:
        to = address(host)
    except ValueError:
        to = b"\x01" + varint(len(host)) + host.encode()
    asker = address(client[0]) + struct.pack(">H", client[1]) if client else b"\0"
    return record(OPEN, to + struct.pack(">H", port) + asker + bytes([source]) + varint(forward_credit) +
                  varint(reverse_credit) + varint(len(module)) + module.encode() + varint(module_version) + varint(0))


def keyed_checksum(plain, secret):
    """XXH3-64 with a secret, which the xxhash module does not have."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits_withSecret.restype = ctypes.c_uint64
    return struct.pack(">Q", library.XXH3_64bits_withSecret(plain, ctypes.c_size_t(len(plain)), secret,
                                                            ctypes.c_size_t(len(secret))))


class TlsConnection:
    """TLS on a connected socket, for one thread that reads and others that write: an ssl.SSLSocket is not made for
    both at a time, and would send broken records."""

    def __init__(self, plain, context):
        self.plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing)
        self._engine, self._order = threading.Lock(), threading.Lock()
        done = False
        while not done:
            try:
                self.tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            self.plain.sendall(self._outgoing.read())
            if not done:
                self._take()

    def _take(self):
        data = self.plain.recv(65536)
        with self._engine:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def sendall(self, data):
        with self._order:
            with self._engine:
                self.tls.write(data)
                records = self._outgoing.read()
            self.plain.sendall(records)

    def recv(self, size):
        while True:
            with self._engine, contextlib.suppress(ssl.SSLWantReadError):
                return self.tls.read(size)
            self._take()

    def close(self):
        self.plain.close()


class HostilePeer:
    """Dials the daemon at `to` from `node` with the key of `site` (a pair.Site whose daemon does not run). Use as a
    context. A thread reads what the daemon says; frames(KIND) gives the bodies of one kind so far."""

    def __init__(self, lab, site, node="branch", to=DATACENTER_WAN, port=LINK_PORT, source=None, epoch=0, udp_port=0,
                 blocks=2, modules=(), answers_pings=True, ciphers=1):
        self.lab, self.site, self.node, self.to, self.port, self.source = lab, site, node, to, port, source
        self.answers_pings = answers_pings
        self.hello = {"epoch": epoch, "udp_port": udp_port, "ciphers": ciphers, "blocks": blocks,
                      "modules": modules}
        self.nonce = os.urandom(16)
        self.heard = []
        self.ended = threading.Event()  # the daemon ended the connection
        self.offsets = {}
        self.next_stream = 1
        self._news = threading.Condition()

    def __enter__(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(self.site.folder / f"{self.site.name}.crt", self.site.folder / f"{self.site.name}.key")
        with self.lab.inside(self.node):
            plain = socket.create_connection((self.to, self.port), timeout=PATIENCE,
                                             source_address=(self.source, 0) if self.source else None)
        self.socket = TlsConnection(plain, context)
        self.block_secret = exported(self.socket.tls, b"EXPORTER-longhaul-blocks", b"", 192)
        self.send(self.hello_frame())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for(HELLO)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.socket.close()

    def hello_frame(self, session=bytes(16)):
        says = self.hello
        name = self.site.name.encode()
        body = varint(1) + session + self.nonce + varint(len(name)) + name
        body += struct.pack(">H", says["udp_port"]) + varint(says["epoch"]) + bytes([says["ciphers"]])
        body += varint(says["blocks"])
        body += varint(len(says["modules"]))
        for module, version in says["modules"]:
            body += varint(len(module)) + module.encode() + varint(version)
        return frame(HELLO, body)

    # -- what it says

    def send(self, data):
        """Raw frames, as they are. Raises OSError once the daemon has ended the connection."""
        self.socket.sendall(data)

    def send_anyhow(self, data):
        """Returns whether the daemon still took it."""
        try:
            self.send(data)
        except OSError:
            return False
        return True

    def stream(self, stream, data):
        """The next bytes of a stream, in as many frames as it takes."""
        at = self.offsets.get(stream, 0)
        self.offsets[stream] = at + len(data)
        for start in range(0, len(data), 65536):
            piece = data[start:start + 65536]
            self.send(frame(STREAM, varint(stream) + varint(at + start) + piece))

    def open(self, destination, **what):
        """Opens the next stream, and returns its number."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.stream(stream, open_record(destination, **what))
        return stream

    def block(self, plain, codec=0, ring_offset=0, content=None):
        """A BLOCK record; `content` is what is sent in the place of the plain bytes, `codec` says how."""
        body = bytes([codec]) + varint(len(plain)) + keyed_checksum(plain, self.block_secret) + varint(ring_offset)
        return record(BLOCK, body + (plain if content is None else content))

    def dictionary(self, message):
        """A message between the block codecs, on the control stream."""
        self.stream(CONTROL_STREAM, record(DICTIONARY, message))

    # -- what it hears

    def _read(self):
        data = b""
        try:
            while more := self.socket.recv(65536):
                data += more
                data = self._take(data)
        except OSError:
            pass
        self.ended.set()
        with self._news:
            self._news.notify_all()

    def _take(self, data):
        at = 0
        while len(data) - at >= 2:
            head = 1 << (data[at + 1] >> 6)
            if len(data) - at < 1 + head:
                break
            size, start = read_varint(data, at + 1)
            if len(data) < start + size:
                break
            kind, body, at = data[at], data[start:start + size], start + size
            if kind == PING and self.answers_pings:
                with contextlib.suppress(OSError):
                    self.send(frame(PONG, body))
            with self._news:
                self.heard.append((kind, body))
                self._news.notify_all()
        return data[at:]

    def frames(self, kind):
        with self._news:
            return [body for said, body in self.heard if said == kind]

    def wait_for(self, kind, count=1, seconds=PATIENCE):
        """The body of the last of `count` frames of a kind."""
        with self._news:
            self._news.wait_for(lambda: self.ended.is_set() or sum(said == kind for said, _ in self.heard) >= count,
                                seconds)
        bodies = self.frames(kind)
        if len(bodies) < count:
            raise AssertionError(f"the daemon said {len(bodies)} frames of type {kind} instead of {count}, "
                                 f"{'and ended the connection' if self.ended.is_set() else 'in time'}")
        return bodies[count - 1]

    def received(self, stream):
        """The bytes of a stream so far, as records."""
        data = bytearray()
        for body in self.frames(STREAM):
            number, at = read_varint(body)
            offset, at = read_varint(body, at)
            if number == stream:
                data[offset:offset + len(body) - at] = body[at:]
        return bytes(data)
