# SPDX-License-Identifier: Apache-2.0
"""Packets on the WAN outside the link, as an observer on the line sees them, and clients that keep trying to cause
such packets. The tests judge the daemons' behaviour."""

import contextlib
import errno
import ipaddress
import socket
import struct
import threading
import time

from lab import CLIENT, CLIENT6, PATIENCE, SERVER, SERVER6, until

CANARY = b"canary in the mine, 32 bytes of it"
SITES = [ipaddress.ip_network(text) for text in ("10.10.1.0/24", "fd10:1::/64", "10.10.2.0/24", "fd10:2::/64")]
ETH_P_ALL, SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 3, 33, 263, 6
TCP = 6


class WanCapture:
    """Every frame in the WAN node from now on."""

    def __init__(self, lab):
        with lab.inside("wan"):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 512 << 20)
        self.socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def outside_the_link(self):
        """TCP packets from or to a LAN's address, and anything that contains the canary, since the last call."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                if (line := judge(self.socket.recv(1 << 17))) is not None:
                    found.append(line)
        _, dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        if dropped:
            raise AssertionError(f"the capture lost {dropped} frames")
        return found


def judge(frame):
    """A line about a frame that should not be there, or None."""
    kind, packet = frame[12:14], frame[14:]
    canary = " with the canary" if CANARY in frame else ""
    if kind == b"\x08\x00":
        protocol, source, destination = packet[9], packet[12:16], packet[16:20]
    elif kind == b"\x86\xdd":
        protocol, source, destination = packet[6], packet[8:24], packet[24:40]
    else:
        return f"a frame{canary}" if canary else None
    ends = [ipaddress.ip_address(each) for each in (source, destination)]
    if canary or (protocol == TCP and any(end in site for end in ends for site in SITES)):
        return f"{ends[0]} > {ends[1]}, protocol {protocol}, {len(packet)} bytes{canary}"
    return None


def attempt(lab, node, address, port, turns=20):
    """One connection that says the canary and wants it back, so often. How it fared, in a word."""
    try:
        with lab.inside(node):
            sock = socket.create_connection((address, port), timeout=10)
    except ConnectionRefusedError:
        return "refused"
    except ConnectionError:
        return "reset"
    except TimeoutError:
        return "silent"
    except OSError as error:
        return errno.errorcode.get(error.errno, "failed")
    with sock:
        sock.settimeout(10)
        try:
            for _ in range(turns):
                sock.sendall(CANARY)
                got = b""
                while len(got) < len(CANARY):
                    piece = sock.recv(len(CANARY) - len(got))
                    if not piece:
                        return "ended"
                    got += piece
        except TimeoutError:
            return "silent"
        except OSError:
            return "reset"
    return "answered"


class Knocking:
    """Clients at both sites that connect to servers at the other, over both families, again and again."""

    def __init__(self, lab, port_of_server, port_of_client=None):
        self.ways = [("client", SERVER, port_of_server), ("client", SERVER6, port_of_server)]
        if port_of_client:
            self.ways += [("server", CLIENT, port_of_client), ("server", CLIENT6, port_of_client)]
        self.lab = lab
        self.fared = {way: [] for way in self.ways}
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._knock, args=way, daemon=True) for way in self.ways]

    def _knock(self, *way):
        while not self.over.is_set():
            self.fared[way].append(attempt(self.lab, *way))
            self.over.wait(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)

    def more(self, count=4, seconds=60.0):
        """Waits until every client has made so many more attempts; how those fared that began after this call."""
        before = {way: len(self.fared[way]) + 1 for way in self.ways}  # the one that is under way began earlier
        until(lambda: all(len(self.fared[way]) >= before[way] + count for way in self.ways), seconds, "more attempts")
        return {word for way in self.ways for word in self.fared[way][before[way]:]}

    def until(self, word, seconds=PATIENCE):
        """Waits until every client's latest attempt fared so."""
        began = time.monotonic()
        start = {way: len(self.fared[way]) + 1 for way in self.ways}
        until(lambda: all(len(self.fared[way]) > start[way] and self.fared[way][-1] == word for way in self.ways),
              seconds, f"every client is {word}")
        return time.monotonic() - began
