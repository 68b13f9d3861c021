# SPDX-License-Identifier: Apache-2.0
"""A stranger: it holds no key and reaches the link's port over the WAN, from as many addresses as it likes. Builds
TLS 1.3 ClientHellos by hand (RFC 8446, section 4.1.2), so that a test says exactly what the daemon has to work on."""

import contextlib
import os
import select
import socket
import struct
import threading
import time

from lab import DATACENTER_WAN, PATIENCE
from pair import LINK_PORT

X25519, P256, FFDHE8192 = 0x001D, 0x0017, 0x0104
ADDRESSES = "10.66"  # of strangers; the addresses of sites are others


def vector(size_bytes, data):
    return len(data).to_bytes(size_bytes, "big") + data


def extension(kind, body):
    return struct.pack(">H", kind) + vector(2, body)


def key_share(group):
    """Bytes that are a valid public key of the group."""
    if group == X25519:
        return os.urandom(32)
    if group == FFDHE8192:
        return b"\x02" + os.urandom(1023)
    raise ValueError(f"no key share for group {group:#x}")


def client_hello(group=X25519, padding=0):
    """One as a record, or as several where `padding` makes it longer than a record may be."""
    shares = struct.pack(">H", group) + vector(2, key_share(group))
    extensions = (extension(0x002B, vector(1, b"\x03\x04")) +  # supported_versions: TLS 1.3
                  extension(0x000A, vector(2, struct.pack(">H", group))) +  # supported_groups
                  extension(0x000D, vector(2, b"\x04\x03\x08\x07\x08\x04")) +  # signature_algorithms
                  extension(0x0033, vector(2, shares)))  # key_share
    if padding:
        extensions += extension(0x0015, bytes(padding))
    body = b"\x03\x03" + os.urandom(32) + vector(1, os.urandom(32)) + vector(2, b"\x13\x01\x13\x02\x13\x03")
    body += b"\x01\x00" + vector(2, extensions)
    message = b"\x01" + vector(3, body)
    return b"".join(b"\x16\x03\x01" + vector(2, message[at:at + 16384]) for at in range(0, len(message), 16384))


def give_addresses(lab, count, node="branch"):
    """Adds `count` addresses to the WAN interface of `node` that the datacenter can answer, each a source of its own."""
    addresses = [f"{ADDRESSES}.{number // 200 + 1}.{number % 200 + 1}" for number in range(count)]
    lab.run(node, "ip", "-batch", "-", text="".join(f"addr replace {address}/16 dev wan0\n" for address in addresses))
    lab.run("datacenter", "ip", "route", "replace", f"{ADDRESSES}.0.0/16", "dev", "wan0")
    return addresses


def connect(lab, source=None, to=DATACENTER_WAN, port=LINK_PORT, node="branch"):
    with lab.inside(node):
        return socket.create_connection((to, port), timeout=PATIENCE, source_address=(source, 0) if source else None)


def is_ended(sock, seconds=PATIENCE):
    """Whether the daemon ends the connection, with or without a word before."""
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


class Flood:
    """ClientHellos from the given addresses in turn, `rate` a second as far as the machine can, until the block ends.
    Every connection that the daemon leaves open is kept open."""

    most_open = 4000

    def __init__(self, lab, sources, rate=1000, hello=client_hello, to=DATACENTER_WAN, port=LINK_PORT, node="branch"):
        self.lab, self.sources, self.rate, self.hello = lab, sources, rate, hello
        self.to, self.port, self.node = to, port, node
        self.sent = 0
        self._over = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(30)

    def _run(self):
        connecting, kept, begun, number = {}, [], time.monotonic(), 0
        poll = select.poll()
        with self.lab.inside(self.node):
            while not self._over.is_set():
                due = int((time.monotonic() - begun) * self.rate)
                for _ in range(min(due - number, 64)):
                    sock = socket.socket()
                    sock.setblocking(False)
                    number += 1
                    with contextlib.suppress(BlockingIOError, OSError):
                        sock.bind((self.sources[number % len(self.sources)], 0))
                        sock.connect_ex((self.to, self.port))
                        connecting[sock.fileno()] = sock
                        poll.register(sock, select.POLLOUT)
                for descriptor, _ in poll.poll(2):
                    poll.unregister(descriptor)
                    sock = connecting.pop(descriptor)
                    try:
                        sock.send(self.hello())
                        self.sent += 1
                        kept.append(sock)
                    except OSError:
                        sock.close()
                while len(kept) > self.most_open:
                    kept.pop(0).close()
        for sock in [*connecting.values(), *kept]:
            sock.close()
