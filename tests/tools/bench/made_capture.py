# SPDX-License-Identifier: Apache-2.0
"""Captures made by hand, packet by packet, for the tests of what reads them."""

import ipaddress
import struct

CLIENT, SERVER = "10.10.1.2", "10.10.2.2"
PORT = 445
SYN, ACK, PUSH = 0x02, 0x10, 0x18


def ip(source, target, protocol, payload):
    ends = [ipaddress.ip_address(address).packed for address in (source, target)]
    if len(ends[0]) == 4:
        header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0, *ends)
        return struct.pack(">6s6sH", bytes(6), bytes(6), 0x0800) + header + payload
    header = struct.pack(">IHBB16s16s", 6 << 28, len(payload), protocol, 64, *ends)
    return struct.pack(">6s6sH", bytes(6), bytes(6), 0x86DD) + header + payload


def tcp(source, target, ports, sequence, acknowledged, flags, payload=b""):
    header = struct.pack(">HHIIBBHHH", *ports, sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF, 5 << 4, flags, 65535, 0, 0)
    return ip(source, target, 6, header + payload)


def udp(source, target, ports, size, fragments=1):
    """A datagram with so many bytes of payload, over IPv4 in so many fragments."""
    data = struct.pack(">HHHH", *ports, 8 + size, 0) + bytes(size)
    piece = -(-len(data) // fragments // 8) * 8
    for number in range(fragments):
        frame = bytearray(ip(source, target, 17, data[number * piece:(number + 1) * piece]))
        struct.pack_into(">H", frame, 20, (0x2000 if number < fragments - 1 else 0) | number * piece // 8)
        yield bytes(frame)


def echo(source, target, number, answer=False):
    return ip(source, target, 1, struct.pack(">BBHHH", 0 if answer else 8, 0, 0, 77, number) + b"mark" * 8)


def write(path, frames, order="<", nanoseconds=False, cut=0):
    """`frames` are (seconds, bytes). `cut` bytes are missing at the end."""
    unit = 1e9 if nanoseconds else 1e6
    data = struct.pack(order + "IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    for seconds, frame in frames:
        whole = int(seconds)
        data += struct.pack(order + "IIII", whole, round((seconds - whole) * unit), len(frame), len(frame)) + frame
    path.write_bytes(data[:len(data) - cut])
    return path


class Talk:
    """A TCP connection whose packets are written down as they are said."""

    def __init__(self, frames, first=1000, port=PORT, client_port=40000):
        self.frames, self.port, self.client_port = frames, port, client_port
        self.next = {"up": first, "down": first + 7}

    def open(self, time):
        for way, flags in (("up", SYN), ("down", SYN | ACK)):
            self._packet(time, way, self.next[way], flags)
        for way in self.next:
            self.next[way] += 1
        return self

    def say(self, time, way, payload):
        self._packet(time, way, self.next[way], PUSH, payload)
        self.next[way] += len(payload)

    def again(self, time, way, payload):
        """The last bytes once more."""
        self._packet(time, way, self.next[way] - len(payload), PUSH, payload)

    def late(self, way, payload):
        """Leaves room for bytes that come later; what this gives says them."""
        at = self.next[way]
        self.next[way] += len(payload)
        return lambda time: self._packet(time, way, at, PUSH, payload)

    def acknowledge(self, time, way):
        """By the side that speaks `way`: all that the other has said."""
        self._packet(time, way, self.next[way], ACK)

    def _packet(self, time, way, sequence, flags, payload=b""):
        ends = (CLIENT, SERVER) if way == "up" else (SERVER, CLIENT)
        ports = (self.client_port, self.port) if way == "up" else (self.port, self.client_port)
        other = self.next["down" if way == "up" else "up"]
        self.frames.append((time, tcp(*ends, ports, sequence, other, flags, payload)))


def marks(frames, before, after):
    """A ping at either end, each answered after 30 ms."""
    for number, time in enumerate((before, after)):
        frames += [(time, echo(CLIENT, SERVER, number)), (time + 0.03, echo(SERVER, CLIENT, number, True))]
    frames.sort(key=lambda item: item[0])
    return frames


# -- SMB messages, as far as anybody looks at them


def framed(message):
    return len(message).to_bytes(4, "big") + message


def smb2(command, body, answer=False, status=0):
    return framed(struct.pack("<4sHHIHHIIQIIQ16s", b"\xfeSMB", 64, 0, status, command, 1, 1 if answer else 0, 0, 1, 0, 0, 0,
                              bytes(16)) + body)


def smb2_read(offset):
    return smb2(8, struct.pack("<HBBIQ16sIIIHHx", 49, 80, 0, 65536, offset, bytes(16), 0, 0, 0, 0, 0))


def smb2_data(data, status=0):
    return smb2(8, struct.pack("<HBBIII", 17, 80, 0, len(data), 0, 0) + data, True, status)


def smb2_write(offset, data):
    return smb2(9, struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), offset, bytes(16), 0, 0, 0, 0, 0) + data)


def smb2_close(answer=False):
    return smb2(6, bytes(24), answer)


def smb1(command, words, data=b"", answer=False, status=0):
    header = struct.pack("<4sBIBHH8sHHHHH", b"\xffSMB", command, status, 0x98 if answer else 0x18, 0xC801, 0, bytes(8), 0, 1, 2,
                         3, 4)
    return framed(header + bytes((len(words) // 2,)) + words + struct.pack("<H", len(data) & 0xFFFF) + data)


def smb1_read(offset):
    return smb1(0x2E, struct.pack("<BBHHIHHIHI", 0xFF, 0, 0, 5, offset & 0xFFFFFFFF, 61440, 0, 0, 0, offset >> 32))


def smb1_data(data):
    return smb1(0x2E, struct.pack("<BBHHHHHHH8x", 0xFF, 0, 0, 0xFFFF, 0, 0, len(data) & 0xFFFF, 60, len(data) >> 16), data,
                True)


def smb1_write(offset, data):
    return smb1(0x2F, struct.pack("<BBHHIIHHHHHI", 0xFF, 0, 0, 5, offset & 0xFFFFFFFF, 0, 0, 0, len(data) >> 16,
                                  len(data) & 0xFFFF, 64, offset >> 32), data)
