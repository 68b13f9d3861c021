# SPDX-License-Identifier: Apache-2.0
"""The UDP carrier of a hostile peer: packets that open at the daemon and hold whatever a test gives, and datagrams that
do not open. Implements just enough of proxy/link/PROTOCOL.md, sections 11 and 12."""

import contextlib
import hashlib
import hmac
import itertools
import os
import socket
import struct
import sys
import threading

from hostile_peer import HELLO, HostilePeer, frame, read_varint, varint
from lab import BRANCH_WAN, DATACENTER_WAN, REPOSITORY
from tls_exporter import exported

sys.path.append(os.fspath(REPOSITORY / "build" / "python" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"))

from Cryptodome.Cipher import AES  # pylint: disable=wrong-import-position

PACKET_ACK, PROBE, PATH_CHALLENGE, PATH_RESPONSE, SYMBOL, REPAIR, RECOVERED, PADDING = range(0x20, 0x28)
AES_128_GCM = 1


def expand_label(secret, label, size):
    """RFC 8446, section 7.1, for at most one hash."""
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0"
    return hmac.new(secret, info + b"\x01", hashlib.sha256).digest()[:size]


class Direction:
    def __init__(self, exported_bytes):
        self.id, secret = exported_bytes[:8], exported_bytes[8:]
        self.key, self.iv = expand_label(secret, b"longhaul key", 16), expand_label(secret, b"longhaul iv", 12)

    def cipher(self, number, head):
        nonce = (int.from_bytes(self.iv, "big") ^ number).to_bytes(12, "big")
        cipher = AES.new(self.key, AES.MODE_GCM, nonce=nonce)
        cipher.update(head)
        return cipher

    def seal(self, number, frames):
        head = b"\x40" + self.id + struct.pack(">I", number & 0xFFFFFFFF)
        return head + b"".join(self.cipher(number, head).encrypt_and_digest(frames))

    def open(self, packet):
        """The number and the frames; the numbers of a test fit 32 bits."""
        number = struct.unpack(">I", packet[9:13])[0]
        return number, self.cipher(number, packet[:13]).decrypt_and_verify(packet[13:-16], packet[-16:])


class UdpPeer(HostilePeer):
    """A hostile peer with a UDP carrier beside its connection. A thread acknowledges what comes, until it is told not to,
    so that the daemon sends over UDP, too."""

    def __init__(self, lab, site, **what):
        with lab.inside("branch"):
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.bind((BRANCH_WAN, 0))
        super().__init__(lab, site, epoch=1, udp_port=self.udp.getsockname()[1], ciphers=AES_128_GCM, **what)
        self.numbers = itertools.count()
        self.acknowledges = True
        self.opened = 0  # packets of the daemon
        self._up = threading.Event()

    def __enter__(self):
        super().__enter__()
        body = self.wait_for(HELLO)
        at = read_varint(body)[1]
        nonce = body[at + 16:at + 32]
        size, at = read_varint(body, at + 32)
        port = struct.unpack(">H", body[at + size:at + size + 2])[0]
        session = hashlib.sha256(self.nonce + nonce).digest()[:16]
        keys = exported(self.socket.tls, b"EXPORTER-longhaul-udp", session + struct.pack(">Q", 1), 80)
        self.mine, self.theirs = Direction(keys[:40]), Direction(keys[40:])
        self.udp.connect((DATACENTER_WAN, port))
        threading.Thread(target=self._hear, daemon=True).start()
        while not self._up.wait(0.1):
            self.packet(frame(PROBE, b""))
        return self

    def __exit__(self, *details):
        super().__exit__(*details)
        self.udp.close()

    def packet(self, frames, number=None):
        """Sends one with these frames, and returns the datagram."""
        datagram = self.mine.seal(next(self.numbers) if number is None else number, frames)
        with contextlib.suppress(OSError):  # the buffer is full, or the daemon's port is gone
            self.udp.send(datagram)
        return datagram

    def acknowledge(self, largest):
        self.packet(frame(PACKET_ACK, varint(largest) + varint(0) + varint(0) + varint(largest)))

    def _hear(self):
        while True:
            try:
                packet = self.udp.recv(65536)
                number, frames = self.theirs.open(packet)
            except OSError:
                return
            except ValueError:
                continue
            self.opened += 1
            if self.acknowledges and not (frames and frames[0] == PACKET_ACK and len(frames) < 20):
                self.packet(frame(PACKET_ACK, varint(number) + varint(0) + varint(0) + varint(0)))
            if frames[0] == PACKET_ACK:
                self._up.set()
