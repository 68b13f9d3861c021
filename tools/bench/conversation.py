# SPDX-License-Identifier: Apache-2.0
"""The TCP connections and UDP flows in a capture: each direction's bytes in order, what was acknowledged when, and what came
again. What the bytes mean is for the readers that are given them."""

from pcap import RST, SYN, datagram, packets, segment

_HALF = 1 << 31
_MASK = (1 << 32) - 1


class Stream:
    """One direction. Offsets count from its first byte and do not wrap."""

    def __init__(self, reader=None):
        self.reader = reader  # its feed(time_ns, data) gets the bytes in order; None: not needed
        self.base = None
        self.end = 0  # after the furthest byte seen
        self.in_order = 0
        self.segments = 0  # with payload
        self.repeated = 0  # bytes behind the furthest one: sent again, or overtaken
        self.arrivals = []  # (time, bytes) of what was new
        self.acknowledgements = []  # (time, offset), rising
        self.first_ns = self.last_ns = None  # of payload
        self.was_reset = False
        self.seen = []  # (time, offset, bytes, whether it was behind the furthest), of all with payload
        self._waiting = {}
        self._holes = []  # (start, end) of bytes that are missing before the furthest one

    def _offset(self, sequence):
        if self.base is None:
            self.base = sequence
        return self.end + ((sequence - self.base - self.end + _HALF) & _MASK) - _HALF

    def take(self, time_ns, tcp):
        if tcp.flags & SYN:
            self.base = (tcp.sequence + 1) & _MASK
            return
        self.was_reset = self.was_reset or bool(tcp.flags & RST)
        offset = self._offset(tcp.sequence)
        if tcp.length <= 0 or offset < 0:  # a keep-alive asks with a byte that was there before
            return
        self.segments += 1
        self.seen.append((time_ns, offset, tcp.length, offset < self.end))
        self.repeated += max(0, min(self.end, offset + tcp.length) - offset)
        if self.first_ns is None:
            self.first_ns = time_ns
        if fresh := self._fill(offset, offset + tcp.length):
            self.arrivals.append((time_ns, fresh))
            self.last_ns = time_ns
        if self.reader:
            self._deliver(time_ns, offset, tcp.payload)

    def _fill(self, start, end):
        """Notes these bytes as seen; gives how many of them are new."""
        fresh = 0
        if self._holes and start < self.end:
            holes = []
            for first, last in self._holes:
                common = min(last, end) - max(first, start)
                if common <= 0:
                    holes.append((first, last))
                    continue
                fresh += common
                holes += [hole for hole in ((first, start), (end, last)) if hole[0] < hole[1]]
            self._holes = holes
        if start > self.end:
            self._holes.append((self.end, start))
        if end > self.end:
            fresh += end - max(start, self.end)
            self.end = end
        return fresh

    def acknowledged(self, time_ns, number):
        if self.base is None:
            return
        offset = self._offset(number)
        if offset > (self.acknowledgements[-1][1] if self.acknowledgements else 0):
            self.acknowledgements.append((time_ns, offset))

    def acknowledged_at(self, offset):
        """When all bytes before this offset were acknowledged; None: never in this capture."""
        return next((time_ns for time_ns, upto in self.acknowledgements if upto >= offset), None)

    def _deliver(self, time_ns, offset, payload):
        self._waiting[offset] = (time_ns, payload)
        while self._waiting and (first := min(self._waiting)) <= self.in_order:
            since, data = self._waiting.pop(first)
            if (fresh := data[self.in_order - first:]):
                self.reader.feed(max(since, time_ns) if first != offset else time_ns, fresh)
                self.in_order += len(fresh)


class Conversation:
    """A connection, named by the side that opened it."""

    def __init__(self, client, server, readers=(None, None)):
        self.client, self.server = client, server
        self.up, self.down = (Stream(reader) for reader in readers)  # what the client sends, what the server sends
        self.opened_ns = None  # its first packet

    def take(self, time_ns, tcp):
        if self.opened_ns is None:
            self.opened_ns = time_ns
        mine, other = (self.up, self.down) if tcp.source == self.client else (self.down, self.up)
        mine.take(time_ns, tcp)
        other.acknowledged(time_ns, tcp.acknowledged)


class Datagrams:
    """One direction of a UDP flow, as far as a Stream's questions have an answer: retransmissions are unknown."""

    def __init__(self):
        self.end = self.segments = self.repeated = 0
        self.arrivals = []
        self.first_ns = self.last_ns = None

    def take(self, time_ns, size):
        self.segments += 1
        self.end += size
        self.arrivals.append((time_ns, size))
        self.last_ns = time_ns
        if self.first_ns is None:
            self.first_ns = time_ns


class Exchange:
    """A UDP flow, named as a connection is."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.up, self.down = Datagrams(), Datagrams()
        self.opened_ns = None

    def take(self, time_ns, from_server, size):
        if self.opened_ns is None:
            self.opened_ns = time_ns
        (self.down if from_server else self.up).take(time_ns, size)


class Echo:
    """An answered ping."""

    def __init__(self, asked_ns, answered_ns):
        self.asked_ns, self.answered_ns = asked_ns, answered_ns

    @property
    def milliseconds(self):
        return (self.answered_ns - self.asked_ns) / 1e6


class Capture:
    """What a capture holds: the conversations with some ports of servers, pings, and how much of it was neither."""

    def __init__(self, path, ports, make_readers=lambda: (None, None)):
        self.conversations = {}
        self.echoes = []
        self.bytes = self.foreign_bytes = 0
        self._asked = {}
        self._latest = {}  # of a pair of hosts: the UDP flow that fragments belong to
        self._ports, self._make_readers = set(ports), make_readers
        for packet in packets(path):
            self.bytes += packet.size
            if not (self._take_tcp(packet) or self._take_udp(packet) or self._take_echo(packet)):
                self.foreign_bytes += packet.size

    @property
    def foreign_share(self):
        return self.foreign_bytes / self.bytes if self.bytes else 0.0

    def _take_tcp(self, packet):
        tcp = segment(packet)
        if not tcp:
            return False
        if tcp.target[1] in self._ports:
            client, server = tcp.source, tcp.target
        elif tcp.source[1] in self._ports:
            client, server = tcp.target, tcp.source
        else:
            return False
        key = client, server
        if key not in self.conversations:
            self.conversations[key] = Conversation(client, server, self._make_readers())
        self.conversations[key].take(packet.time_ns, tcp)
        return True

    def _take_udp(self, packet):
        found = datagram(packet)
        if not found:
            return False
        source, target, size = found
        hosts = packet.source, packet.target
        if packet.fragment:
            if hosts not in self._latest:
                return False
            exchange, from_server = self._latest[hosts]
        else:
            from_server = source[1] in self._ports
            if not from_server and target[1] not in self._ports:
                self._latest.pop(hosts, None)
                return False
            client, server = (target, source) if from_server else (source, target)
            key = "udp", client, server
            if key not in self.conversations:
                self.conversations[key] = Exchange(client, server)
            exchange = self.conversations[key]
            self._latest[hosts] = exchange, from_server
        exchange.take(packet.time_ns, from_server, size)
        return True

    def _take_echo(self, packet):
        """ICMP and ICMPv6 echo requests and their answers."""
        asks, answers = {1: (8, 0), 58: (128, 129)}.get(packet.protocol, (None, None))
        if asks is None or len(packet.transport) < 8 or packet.transport[0] not in (asks, answers):
            return False
        name = bytes(packet.transport[4:8])  # identifier and number
        if packet.transport[0] == asks:
            self._asked[name] = packet.time_ns
        elif name in self._asked:
            self.echoes.append(Echo(self._asked.pop(name), packet.time_ns))
        return True
