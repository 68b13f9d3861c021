# SPDX-License-Identifier: Apache-2.0
"""Packet sizes as a scenario names them, "packets udp+12 512": one test of a sweep of longhaul-ttcp. What it costs the line,
and what longhaul-ttcp is told for it. Doing it is packet_sizes.py's, showing it packet_report.py's."""

import dataclasses
import math

KINDS = {"tcp": "TCP", "udp": "UDP", "udp+12": "UDP+12"}
PADDING = {"udp+12": 12}  # bytes that make UDP's header as long as TCP's
LEAST, MOST = 16, 65_000
GRAMMAR = f"packets {'|'.join(KINDS)} BYTES"
# What is kept of longhaul-ttcp's columns.
COLUMNS = ("packets_sent", "bytes_sent", "packets_lost", "percent_received", "sending_mbit_per_second", "fragments_sent",
           "out_of_order", "socket_drops")
OFFERED = 0.99  # of what the line can carry: UDP has no congestion control


@dataclasses.dataclass(frozen=True)
class PacketTest:
    kind: str
    bytes: int  # of data in each; over TCP of each write

    def __str__(self):
        return f"packets {self.kind} {self.bytes}"

    @property
    def is_tcp(self):
        return self.kind == "tcp"

    def payload_share(self, mtu=1500):
        """Of a datagram's IP bytes, those of its fragments counted; what TCP makes of its writes is TCP's."""
        if self.is_tcp:
            return (mtu - 52) / mtu
        datagram = 8 + PADDING.get(self.kind, 0) + self.bytes
        return self.bytes / (datagram + 20 * math.ceil(datagram / (mtu - 20)))

    def words(self, size, place):
        """longhaul-ttcp's options for a test of `size` bytes."""
        found = ["--kinds", self.kind, "-S", self.bytes, "-N", 1, "-L", size]
        if not self.is_tcp:
            carried = place.bits_per_second * self.payload_share(place.mtu)
            rate = OFFERED * carried * (self.bytes + PADDING.get(self.kind, 0)) / self.bytes  # it counts its padding
            found += ["--rate", f"{rate / 1000:.3f}kbit"]
        return found

    def title(self):
        return f"{KINDS[self.kind]}, {'writes' if self.is_tcp else 'packets'} of {self.bytes:,} bytes"


def parse(words):
    """Of what follows "packets"; None where that is no test."""
    if len(words) != 2 or words[0] not in KINDS or not words[1].isdecimal() or not LEAST <= int(words[1]) <= MOST:
        return None
    return PacketTest(words[0], int(words[1]))
