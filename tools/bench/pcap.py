# SPDX-License-Identifier: Apache-2.0
"""Reads capture files: the packets of a pcap file (libpcap's own format, Ethernet) as addresses, ports, sequence numbers
and payload. What a conversation of them means is in conversation.py."""

import functools
import ipaddress
import mmap
import struct
from typing import NamedTuple

ETHERNET = 1
_MAGICS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # nanoseconds of one unit of the second time field
SYN, RST = 0x02, 0x04


class BadCapture(Exception):
    """Not a capture that can be read; the sentence says why."""


class Packet(NamedTuple):
    time_ns: int
    size: int  # on the wire, headers of the link included
    protocol: int  # of IP; 0: another than IP
    source: str
    target: str
    transport: memoryview  # header and payload of the protocol, as far as they were captured
    length: int  # of the same on the wire
    fragment: bool = False  # not the first of a packet of IPv4: without the protocol's header


class Segment(NamedTuple):
    """What TCP says in a packet."""

    source: tuple  # address and port
    target: tuple
    sequence: int
    acknowledged: int
    flags: int
    payload: memoryview  # as far as it was captured
    length: int  # of the payload on the wire


def packets(path):
    """All packets of a file, in the order they were seen. A last packet that was cut off is left out: the program that
    wrote it was ended meanwhile."""
    with open(path, "rb") as file:
        try:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:
            raise BadCapture(f"{path} is empty") from None
    order, unit = _format(path, data)
    header = struct.Struct(order + "IIII")
    at, end = 24, len(data)
    while at + 16 <= end:
        seconds, part, captured, size = header.unpack_from(data, at)
        at += 16
        if captured > end - at:
            return
        yield _packet(seconds * 1_000_000_000 + part * unit, size, data[at:at + captured])
        at += captured


def _format(path, data):
    if len(data) < 24:
        raise BadCapture(f"{path} is too short for a capture")
    for order in "<>":
        magic, _, _, _, _, _, link = struct.unpack_from(order + "IHHiIII", data)
        if magic in _MAGICS:
            if link & 0xFFFF != ETHERNET:
                raise BadCapture(f"{path} was not captured on Ethernet (link type {link & 0xFFFF})")
            return order, _MAGICS[magic]
    raise BadCapture(f"{path} is not a pcap file")


def _packet(time_ns, size, frame):
    at, kind = 14, int.from_bytes(frame[12:14], "big")
    while kind in (0x8100, 0x88A8) and len(frame) >= at + 4:  # VLAN tags
        kind, at = int.from_bytes(frame[at + 2:at + 4], "big"), at + 4
    if kind == 0x0800 and len(frame) >= at + 20:
        header = 4 * (frame[at] & 15)
        # A length of 0 is that of a segment too large for the field, which the network card would have cut.
        length = int.from_bytes(frame[at + 2:at + 4], "big") or size - at
        return Packet(time_ns, size, frame[at + 9], _address(bytes(frame[at + 12:at + 16])),
                      _address(bytes(frame[at + 16:at + 20])), frame[at + header:at + length], length - header,
                      bool(int.from_bytes(frame[at + 6:at + 8], "big") & 0x1FFF))
    if kind == 0x86DD and len(frame) >= at + 40:
        length = int.from_bytes(frame[at + 4:at + 6], "big") or size - at - 40
        return Packet(time_ns, size, frame[at + 6], _address(bytes(frame[at + 8:at + 24])),
                      _address(bytes(frame[at + 24:at + 40])), frame[at + 40:at + 40 + length], length)
    return Packet(time_ns, size, 0, "", "", frame[14:], size - 14)


@functools.lru_cache(1024)
def _address(data):
    return str(ipaddress.ip_address(data))


def segment(packet):
    """The packet's TCP, or None where it has none that can be read."""
    data = packet.transport
    if packet.protocol != 6 or len(data) < 20 or packet.fragment:
        return None
    from_port, to_port, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", data)
    header = 4 * (offset >> 4)
    return Segment((packet.source, from_port), (packet.target, to_port), sequence, acknowledged, flags, data[header:],
                   packet.length - header)


def datagram(packet):
    """UDP's ends and bytes of payload in this packet, or None. Ports of later fragments are unknown: 0."""
    data = packet.transport
    if packet.protocol != 17 or (len(data) < 8 and not packet.fragment):
        return None
    if packet.fragment:
        return (packet.source, 0), (packet.target, 0), packet.length
    from_port, to_port = struct.unpack_from(">HH", data)
    return (packet.source, from_port), (packet.target, to_port), packet.length - 8
